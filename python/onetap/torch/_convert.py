"""Converts PyTorch networks to networks with Shift Attention Layers, and back to plain convolutions."""

from __future__ import annotations

import copy
import fnmatch
from typing import Callable, Iterable, TypeVar, Union

from torch import nn

from ..errors import UsageError
from ._layer import FIRST_TEMPERATURE, Share, ShiftAttentionConv2d, block_of

Skip = Union[str, "Iterable[str]", Callable[[str, nn.Module], bool], None]
M = TypeVar("M", bound=nn.Module)


def _replace(module: nn.Module, make: Callable[[nn.Module], "nn.Module | None"]) -> nn.Module:
    """``module`` with every submodule for which ``make(it)`` gives another one replaced; ``module`` itself too.

    A module that is used in several places is replaced by the same one in all of them.
    """
    made: dict[nn.Module, nn.Module | None] = {}
    for part in module.modules():
        made[part] = make(part)
    for part in list(module.modules()):
        # named_children() would leave out the second place of a module that is used twice.
        for name, child in list(part._modules.items()):
            other = None if child is None else made.get(child)
            if other is not None:
                setattr(part, name, other)
    other = made[module]
    return module if other is None else other


def _spatial_convs(module: nn.Module) -> list[tuple[str, nn.Conv2d]]:
    """With their names; a convolution that is used in several places has several."""
    # Subclasses compute something else with their weights.
    return [
        (name, part)
        for name, part in module.named_modules(remove_duplicate=False)
        if type(part) is nn.Conv2d and part.kernel_size[0] * part.kernel_size[1] > 1
    ]


def _is_skipped(module: nn.Module, skip: Skip) -> Callable[[str, nn.Module], bool]:
    if skip is None:
        return lambda name, part: False
    if callable(skip):
        return skip
    patterns = [skip] if isinstance(skip, str) else list(skip)
    names = [name for name, _ in _spatial_convs(module)]
    first = next((name for name, part in module.named_modules() if isinstance(part, nn.Conv2d)), None)
    for pattern in patterns:
        if pattern != "first" and not fnmatch.filter(names, pattern):
            raise UsageError(f"[torch] no k x k convolution matches {pattern!r} of skip")
    return lambda name, part: any(
        name == first if pattern == "first" else fnmatch.fnmatchcase(name, pattern) for pattern in patterns
    )


def convert(
    module: M,
    share: Share = (4, 4),
    *,
    taps: int = 1,
    skip: Skip = "first",
    relax: str = "auto",
    init: str = "uniform",
    temperature: float = FIRST_TEMPERATURE,
    inplace: bool = False,
) -> M:
    """The same network with its k x k convolutions as Shift Attention Layers.

    ``module``: any network. It is copied, unless ``inplace``. Training starts from its weights: with relax softmax
    (the default unless share is ``"all"``) the first forward pass of the result equals that of ``module``.

    ``share``, ``taps``, ``relax`` and ``init`` are those of :class:`ShiftAttentionConv2d`. Blocks are made smaller
    for layers with fewer channels.

    ``skip``: layers that are not converted: names or patterns (``"layer1.*"``), a function of (name, module), or
    None. ``"first"`` (the default) stands for the first convolution of the network; use ``["first", "layer1.*"]`` to
    skip further layers. A layer that is used in several places is skipped if one of its names is. 1x1 and depthwise
    convolutions are never converted: the former have one position, the latter one slice per output. Convolutions with
    frozen weights (``weight.requires_grad`` is False) are not converted either: they could not adapt to the loss of
    weights.

    A converted layer is a new module with new parameters: create the optimiser afterwards. ``requires_grad`` of weights
    and bias is kept. Hooks of the convolution are not; register them on the result. A convolution with ``weight_norm``
    or ``spectral_norm`` in the form of hooks (``torch.nn.utils``) loses it; remove it before. One with such a norm in
    the form of ``torch.nn.utils.parametrizations`` is a subclass, and is not converted.

    ``temperature``: the temperature of the first step; a :class:`TemperatureSchedule` with the same ``start`` lowers
    it.
    """
    outputs, inputs = block_of(share)
    if not inplace:
        module = copy.deepcopy(module)
    is_skipped = _is_skipped(module, skip)
    convs = _spatial_convs(module)
    skipped = {part for name, part in convs if is_skipped(name, part)}
    chosen = {
        part
        for _, part in convs
        if part.in_channels > part.groups and part.weight.requires_grad and part not in skipped
    }
    if not chosen:
        raise UsageError(
            "[torch] expected k x k convolutions to convert, got none "
            "(1x1, depthwise, frozen and skipped ones do not count)"
        )

    def fitting(conv: nn.Conv2d) -> Share:
        rows = "all" if outputs is None else min(outputs, conv.out_channels)
        return (rows, min(inputs, conv.in_channels // conv.groups))

    def make(part: nn.Module) -> nn.Module | None:
        if not isinstance(part, nn.Conv2d) or part not in chosen:
            return None
        return ShiftAttentionConv2d.from_conv(
            part, taps=taps, share=fitting(part), relax=relax, init=init, temperature=temperature
        )

    return _replace(module, make)  # type: ignore[return-value]


def harden(module: M, *, inplace: bool = False) -> M:
    """The same network with its Shift Attention Layers as plain ``nn.Conv2d``, zero where positions are not kept."""
    if not inplace:
        module = copy.deepcopy(module)

    def make(part: nn.Module) -> nn.Module | None:
        return part.hardened() if isinstance(part, ShiftAttentionConv2d) else None

    return _replace(module, make)  # type: ignore[return-value]
