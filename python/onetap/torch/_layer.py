"""The Shift Attention Layer as a PyTorch module."""

from __future__ import annotations

import contextlib
import math
import re
from typing import Any, Iterator, Literal, Sequence, Union

import torch
from torch import Tensor, nn

from ..errors import UsageError
from . import _attention

# A number of outputs, (outputs, inputs), or the text of the command: "4", "4x4", "all", "allx4".
Share = Union[int, str, "Sequence[Union[int, str]]"]

MODES = ("soft", "hard")
RELAXATIONS = ("auto", "softmax", "straight-through")
INITS = ("uniform", "centre")
FIRST_TEMPERATURE = 6.7
LEAST_ATTENTION = 1e-4  # that trained weights are divided by


def _one_of(value: str, choices: tuple[str, ...], what: str) -> str:
    if value not in choices:
        raise UsageError(f"[torch] expected {what} {' or '.join(choices)}, got {value!r}")
    return value


def _shape_of(conv: nn.Conv2d) -> dict[str, Any]:
    """The arguments of ``nn.Conv2d`` that give another one of the same shape, place and type."""
    return {
        "in_channels": conv.in_channels,
        "out_channels": conv.out_channels,
        "kernel_size": conv.kernel_size,
        "stride": conv.stride,
        "padding": conv.padding,
        "dilation": conv.dilation,
        "groups": conv.groups,
        "bias": conv.bias is not None,
        "padding_mode": conv.padding_mode,
        "device": conv.weight.device,
        "dtype": conv.weight.dtype,
    }


def _copy_parameters(source: nn.Conv2d, to: nn.Conv2d, weight: Tensor) -> None:
    """Gives ``to`` these weights and the bias of ``source``; what is frozen in ``source`` is frozen in it."""
    for from_, into, values in ((source.weight, to.weight, weight), (source.bias, to.bias, source.bias)):
        if from_ is not None and into is not None and values is not None:
            into.copy_(values)
            into.requires_grad_(from_.requires_grad)


def block_of(share: Share) -> tuple[int | None, int]:
    """``share`` as outputs and inputs of a block; outputs None: all of a layer's."""
    sides: list[Any]
    if isinstance(share, str):
        # As parse_share() of onetap/graph/share.cpp.
        text = re.fullmatch(r"(all|[0-9]{1,10})(?:x([0-9]{1,10}))?", share, re.ASCII)
        sides = ["all" if text[1] == "all" else int(text[1]), int(text[2] or 1)] if text else []
    else:
        sides = list(share) if isinstance(share, (tuple, list)) else [share, 1]
    counts = sides[1:] if sides[:1] == ["all"] else sides
    if len(sides) != 2 or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in counts):
        raise UsageError(
            "[torch] expected share as outputs (4), (outputs, inputs), 'all', ('all', inputs) or a text as '4x4', "
            f"got {share!r}"
        )
    return None if sides[0] == "all" else int(sides[0]), int(sides[1])


def _fitting_block(share: Share, outputs: int, inputs: int) -> tuple[int, int]:
    """``share`` as numbers, for a layer with these outputs and inputs (of a group)."""
    rows, columns = block_of(share)
    block = (outputs if rows is None else rows, columns)
    for size, most, what in zip(block, (outputs, inputs), ("outputs", "inputs of a group")):
        if size > most:
            raise UsageError(f"[torch] expected share of 1 to {most} {what}, got {share!r}")
    return block


class ShiftAttentionConv2d(nn.Conv2d):
    """A convolution that learns which positions of every kernel slice to keep.

    >>> layer = ShiftAttentionConv2d(64, 128, 3, stride=2, padding=1, bias=False, share=(4, 4))

    It takes what ``nn.Conv2d`` takes, with the same defaults, and

    ``taps``: positions that every kernel slice W[d, c] keeps.

    ``share``: slices that keep the same positions: a number of neighbouring outputs, or (outputs, inputs) of a block;
    ``"all"`` stands for every output. The texts of the command are accepted too: ``"4"``, ``"4x4"``, ``"allx4"``.

    ``relax``: the factor of the weights in the forward pass of mode soft. ``"softmax"`` is the attention P;
    ``"straight-through"`` is the hard mask, with the gradient of P. ``"auto"`` is straight-through for share ``"all"``,
    else softmax.

    ``init``: ``"uniform"`` draws the logits in [0, 1); ``"centre"`` then sets the centre's logit to the maximum of
    its slice.

    Parameters are ``weight``, ``bias`` and the logits ``attention`` [output blocks, input blocks, S] (with several
    taps [taps, output blocks, input blocks, S]). All are trained by the same optimiser. ``temperature`` is a buffer,
    so it is saved with them; set it with :func:`set_temperature` or a :class:`TemperatureSchedule`.

    In mode soft the layer convolves with W * softmax(A / sd(A) / T), in mode hard only with the weights that
    freezing keeps. The mode does not depend on ``train()`` and ``eval()``.
    """

    temperature: Tensor
    _has_logits = False  # nn.Conv2d's constructor calls reset_parameters() before there are any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] | str = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: Literal["zeros", "reflect", "replicate", "circular"] = "zeros",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        taps: int = 1,
        share: Share = 1,
        relax: str = "auto",
        init: str = "uniform",
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        )
        positions = self.kernel_size[0] * self.kernel_size[1]
        if positions < 2:
            raise UsageError("[torch] expected a kernel with more than one position, got 1x1")
        if isinstance(taps, bool) or not isinstance(taps, int) or not 1 <= taps <= positions:
            raise UsageError(f"[torch] expected taps from 1 to {positions} (kernel positions), got {taps!r}")
        self.taps = taps
        self.share = _fitting_block(share, out_channels, in_channels // groups)
        self.init = _one_of(init, INITS, "init")
        has_all = block_of(share)[0] is None
        if _one_of(relax, RELAXATIONS, "relax") == "auto":
            relax = "straight-through" if has_all else "softmax"
        self.relax = relax
        self.mode = "soft"
        rows = -(-out_channels // self.share[0])
        columns = -(-(in_channels // groups) // self.share[1])
        shape = (rows, columns, positions) if taps == 1 else (taps, rows, columns, positions)
        self.attention = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.register_buffer("temperature", torch.tensor(FIRST_TEMPERATURE, device=device, dtype=dtype))
        self._has_logits = True
        self._draw_attention()

    def reset_parameters(self) -> None:
        """Draws the weights as ``nn.Conv2d`` does, and the logits."""
        super().reset_parameters()
        if self._has_logits:
            self._draw_attention()

    @torch.no_grad()
    def _draw_attention(self) -> None:
        self.attention.uniform_(0.0, 1.0)
        if self.init == "centre":
            self.attention[..., self.attention.shape[-1] // 2] = self.attention.amax(-1)

    def _logits(self) -> Tensor:
        return self.attention.unsqueeze(0) if self.taps == 1 else self.attention

    def _spread(self, by_block: Tensor) -> Tensor:
        outputs, inputs = self.weight.shape[:2]
        spread: Tensor = _attention.expand_blocks(by_block, self.share, outputs, inputs).reshape(self.weight.shape)
        return spread

    def positions(self) -> Tensor:
        """The kernel positions that mode hard keeps, row * columns + column: [output blocks, input blocks, taps]."""
        return _attention.hard_positions(self._logits())

    def probabilities(self) -> Tensor:
        """P at the current temperature for every weight, in the shape of ``weight``, in any mode."""
        return self._spread(_attention.soft_attention(self._logits(), self.temperature))

    def mask(self) -> Tensor:
        """The factor of ``weight`` in the current mode."""
        if self.mode == "hard":
            return self._spread(_attention.hard_mask(self._logits()))
        soft = _attention.soft_attention(self._logits(), self.temperature)
        if self.relax == "straight-through":
            # The difference is exactly 0 and passes the gradient on.
            soft = _attention.hard_mask(self._logits()) + (soft - soft.detach())
        return self._spread(soft)

    def effective_weight(self) -> Tensor:
        """``weight * mask()``: what the layer convolves with."""
        weight: Tensor = self.weight * self.mask()
        return weight

    def forward(self, input: Tensor) -> Tensor:
        outputs: Tensor = self._conv_forward(input, self.effective_weight(), self.bias)
        return outputs

    def extra_repr(self) -> str:
        settings: Any = super()
        return f"{settings.extra_repr()}, taps={self.taps}, share={self.share}, relax={self.relax}"

    @torch.no_grad()
    def hardened(self) -> nn.Conv2d:
        """A plain ``nn.Conv2d`` that computes the same as mode hard, with zeros at all positions that are not kept."""
        plain = nn.Conv2d(**_shape_of(self))
        plain.train(self.training)
        _copy_parameters(self, plain, self.weight * self._spread(_attention.hard_mask(self._logits())))
        return plain

    @classmethod
    @torch.no_grad()
    def from_conv(
        cls,
        conv: nn.Conv2d,
        *,
        taps: int = 1,
        share: Share = 1,
        relax: str = "auto",
        init: str = "uniform",
        temperature: float = FIRST_TEMPERATURE,
    ) -> ShiftAttentionConv2d:
        """A layer that starts from a trained convolution.

        With relax softmax its weights are those of the convolution divided by P, so that in mode soft, at this
        temperature, it computes the same as the convolution. With straight-through the weights are those of the
        convolution, and the forward pass uses ``taps`` of them per slice.

        What is frozen (``requires_grad`` is False) stays frozen; the logits are frozen with the weights.
        """
        layer = cls(**_shape_of(conv), taps=taps, share=share, relax=relax, init=init)
        layer.train(conv.training)
        set_temperature(layer, temperature)
        weight: Tensor = conv.weight
        if layer.relax == "softmax":
            attention = layer.probabilities()
            if not attention.min() > LEAST_ATTENTION:
                raise UsageError(f"[torch] expected a temperature at which all attention is above {LEAST_ATTENTION}, "
                                 f"got {temperature} (weights are divided by it)")
            weight = weight / attention
        _copy_parameters(conv, layer, weight)
        layer.attention.requires_grad_(conv.weight.requires_grad)
        return layer


def layers_of(module: nn.Module) -> list[ShiftAttentionConv2d]:
    """The Shift Attention Layers of a module, each once."""
    return [layer for layer in module.modules() if isinstance(layer, ShiftAttentionConv2d)]


def set_temperature(module: nn.Module, temperature: float) -> None:
    """Sets the temperature of all Shift Attention Layers of a module."""
    temperature = float(temperature)
    if not 0 < temperature < float("inf"):
        raise UsageError(f"[torch] expected a temperature above 0, got {temperature}")
    for layer in layers_of(module):
        layer.temperature.fill_(temperature)


@torch.no_grad()
def _write_taps(layer: ShiftAttentionConv2d, kept: Tensor) -> None:
    """Makes the logits one at these positions (as of ``layer.positions()``) and zero elsewhere."""
    logits = layer._logits()
    kept = kept.to(logits.device)  # the module may have been moved since
    for tap in range(layer.taps):
        logits[tap].zero_().scatter_(-1, kept[..., tap : tap + 1], 1.0)


def fix_taps(module: nn.Module) -> None:
    """Makes the logits of all Shift Attention Layers of a module one at the positions they keep now and zero elsewhere.

    ``requires_grad`` of the logits is not changed. An optimiser with momentum, adaptive steps or weight decay may
    therefore move the positions in its next steps; a :class:`TemperatureSchedule` with ``harden`` writes them again
    after every step.
    """
    for layer in layers_of(module):
        _write_taps(layer, layer.positions())


def set_mode(module: nn.Module, mode: str) -> None:
    """Sets the mode of all Shift Attention Layers of a module: ``"soft"`` (for training) or ``"hard"``."""
    _one_of(mode, MODES, "mode")
    for layer in layers_of(module):
        layer.mode = mode


@contextlib.contextmanager
def hard(module: nn.Module) -> Iterator[nn.Module]:
    """Within the ``with`` block, all Shift Attention Layers are hard, to test the network that freezing produces."""
    before = [(layer, layer.mode) for layer in layers_of(module)]
    set_mode(module, "hard")
    try:
        yield module
    finally:
        for layer, mode in before:
            layer.mode = mode


class TemperatureSchedule:
    """Lowers the temperature of a module geometrically, once per optimiser step, from ``start`` to ``end``.

    >>> schedule = TemperatureSchedule(model, steps=epochs * len(loader))    # doctest: +SKIP
    >>> for images, labels in batches:                                       # doctest: +SKIP
    ...     ...; optimiser.step(); schedule.step()

    The temperature of step i is start * (end / start) ** (i / steps). ``fall`` below 1 reaches ``end`` after that
    fraction of the steps and stays there. With ``harden`` below 1, ``end`` is reached after that fraction of the steps at
    the latest; then the taps are fixed and only the kept weights are trained: the temperature is 1e-6, and every
    :meth:`step` makes the logits one at the kept positions and zero elsewhere, as :func:`fix_taps` does, so that what
    an optimiser adds to them has no effect. ``requires_grad`` of the logits stays as it is, which
    ``DistributedDataParallel`` needs. The first temperature is set when the schedule is created.
    """

    HARD_TEMPERATURE = 1e-6

    def __init__(
        self,
        module: nn.Module,
        steps: int,
        start: float = FIRST_TEMPERATURE,
        end: float = 0.02,
        fall: float = 1.0,
        harden: float = 1.0,
    ) -> None:
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            raise UsageError(f"[torch] expected at least 1 step, got {steps!r}")
        if not (0 < end < float("inf") and 0 < start < float("inf")):
            raise UsageError(f"[torch] expected temperatures above 0, got {start} and {end}")
        if not 0 < fall <= 1:
            raise UsageError(f"[torch] expected fall above 0 and at most 1, got {fall}")
        if not 0 < harden <= 1:
            raise UsageError(f"[torch] expected harden above 0 and at most 1, got {harden}")
        self._module = module
        self._start, self._end = float(start), float(end)
        self._falling = max(1.0, min(fall, harden) * steps)
        self._hard_from = harden * steps if harden < 1 else float("inf")
        self._done = 0
        self._fixed: list[tuple[ShiftAttentionConv2d, Tensor]] | None = None  # layers and the positions they keep
        set_temperature(module, self.temperature)

    def at(self, step: int) -> float:
        """The temperature of a step, counted from 0."""
        if step >= self._hard_from:
            return self.HARD_TEMPERATURE
        done = min(step, self._falling) / self._falling
        return self._start * math.pow(self._end / self._start, done)

    @property
    def is_hard(self) -> bool:
        """Whether the taps are fixed."""
        return self._done >= self._hard_from

    @property
    def temperature(self) -> float:
        """The current temperature."""
        return self.at(self._done)

    def step(self) -> float:
        """Sets and returns the next temperature. Call it after every step of the optimiser."""
        self._done += 1
        self._apply()
        return self.temperature

    def _apply(self) -> None:
        """Sets the temperature; once hard, also the logits of the positions that were kept when it became hard."""
        if self.is_hard:
            if self._fixed is None:
                self._fixed = [(layer, layer.positions()) for layer in layers_of(self._module)]
            for layer, kept in self._fixed:
                _write_taps(layer, kept)
        set_temperature(self._module, self.temperature)

    def state_dict(self) -> dict[str, int]:
        """The state to resume from: the number of steps."""
        return {"done": self._done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Restores the step of a state and sets its temperature.

        Load the state of the module first: if the taps are fixed at this step, they are those that it has now.
        """
        self._done = int(state["done"])
        self._fixed = None
        self._apply()
