"""The arithmetic of a Shift Attention Layer's logits, as functions of tensors; docs/layer.md has the formulas.

Logits are [taps, output blocks, input blocks, S] with S kernel positions; attention and masks are [output blocks, input
blocks, S].
"""

from __future__ import annotations

import torch
from torch import Tensor

# exp(-60) vanishes beside 1 in float32. Without this bound the attention of losing positions runs through the denormal
# numbers as the temperature falls, and a CPU convolves those several times slower.
DEEPEST_EXPONENT = -60.0


def _differences(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Logits less the maximum of their slice, and the slice's sd, both in a unit of the slice's own.

    The quotient of the two is N less its maximum, where N = A / sd(A). The unit is a power of two near the largest
    difference, so that squares neither vanish nor overflow at any scale of the logits.
    """
    below = logits - logits.detach().amax(-1, keepdim=True)
    spread = -below.detach().amin(-1, keepdim=True)
    flat = spread == 0
    mantissa = torch.frexp(spread)[0]
    unit = (spread / (2 * mantissa)).masked_fill(flat, 1.0)
    scaled = below / unit
    variance = scaled.var(-1, unbiased=True, keepdim=True)
    # A slice of equal logits has no sd: it is left unscaled, and its attention is uniform.
    return scaled, variance.masked_fill(flat, 1.0).sqrt()


def soft_attention(logits: Tensor, temperature: Tensor | float) -> Tensor:
    """P = softmax(N / T) over the positions; with several taps the elementwise maximum of theirs."""
    below, sd = _differences(logits)
    exponent = below / (sd * temperature)
    each = torch.softmax(exponent.clamp_min(DEEPEST_EXPONENT), -1)
    most: Tensor = each[0]
    for other in each[1:]:
        most = torch.maximum(most, other)
    return most


@torch.no_grad()
def hard_positions(logits: Tensor) -> Tensor:
    """The positions that stay, ascending: [output blocks, input blocks, taps].

    With one tap, that of the largest logit. With several, each tap's best; where two taps meet, the freed place goes to
    the position that lies least below a tap's maximum. Ties go to the lower position.
    """
    taps = logits.shape[0]
    score = logits[0]
    if taps > 1:
        below, sd = _differences(logits)
        score = (below / sd).amax(0)
    order = torch.sort(score, dim=-1, descending=True, stable=True)[1]
    kept: Tensor = order[..., :taps].sort(-1)[0]
    return kept


@torch.no_grad()
def hard_mask(logits: Tensor) -> Tensor:
    """Ones at the positions that stay, zeros elsewhere."""
    mask: Tensor = torch.zeros_like(logits[0]).scatter_(-1, hard_positions(logits), 1.0)
    return mask


def expand_blocks(by_block: Tensor, share: tuple[int, int], outputs: int, inputs: int) -> Tensor:
    """What blocks of slices have, for every slice: [output blocks, input blocks, X] to [outputs, inputs, X]."""
    for dim, (size, length) in enumerate(zip(share, (outputs, inputs))):
        if size > 1:
            by_block = by_block.repeat_interleave(size, dim).narrow(dim, 0, length)
    return by_block
