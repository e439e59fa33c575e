"""Converts pixels to the input of a network, with the same view of an image as ``onetap run`` and ``onetap eval``."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from .errors import UsageError

# The part of the shorter side that is shown of an image of another size: the usual test view of ImageNet.
SHOWN = 224.0 / 256.0


def _triangle_matrix(extent: int, start: float, length: float, count: int) -> np.ndarray:
    """[count, extent]: weights of the input samples for ``count`` outputs that cover [start, start + length).

    The triangle is wider if the image is reduced, to avoid aliasing.
    """
    scale = length / count
    support = max(scale, 1.0)
    centres = start + (np.arange(count) + 0.5) * scale
    distance = np.abs(np.arange(extent) + 0.5 - centres[:, None]) / support
    weights = np.clip(1.0 - distance, 0.0, None)
    matrix: np.ndarray = (weights / weights.sum(1, keepdims=True)).astype(np.float32)
    return matrix


def resize_centre(pixels: np.ndarray, size: int) -> np.ndarray:
    """The centre of an image [rows, columns, channels] as [size, size, channels] of float32.

    An image that already has the size is returned unchanged. Otherwise a centred square of 7/8 of the shorter side is
    resized with a triangle filter.
    """
    rows, columns = pixels.shape[:2]
    if rows == size and columns == size:
        return pixels.astype(np.float32)
    side = min(rows, columns) * SHOWN
    by_row = _triangle_matrix(rows, (rows - side) / 2, side, size)
    by_column = _triangle_matrix(columns, (columns - side) / 2, side, size)
    narrow = np.einsum("xw,hwc->hxc", by_column, pixels.astype(np.float32), optimize=True)
    view: np.ndarray = np.einsum("yh,hxc->yxc", by_row, narrow, optimize=True)
    return view


def planes_of(pixels: np.ndarray, shape: Sequence[int], mean: Sequence[float], sd: Sequence[float]) -> np.ndarray:
    """Bytes [rows, columns, 3] as the float32 planes [3, rows, columns] of a network: (value / 255 - mean) / sd.

    Several images of one size are [images, rows, columns, 3].
    """
    channels, rows, columns = shape
    if channels != 3:
        raise UsageError(
            f"[python] expected a network for colour images, got one for {channels} channels "
            f"(give it float32 [{channels}, {rows}, {columns}], normalised)"
        )
    if pixels.ndim not in (3, 4) or pixels.shape[-1] != 3:
        raise UsageError(f"[python] expected uint8 pixels [rows, columns, 3], got {list(pixels.shape)}")
    if 0 in pixels.shape[-3:]:
        raise UsageError(f"[python] expected an image with pixels, got {list(pixels.shape)}")
    if pixels.shape[-3:-1] == (rows, columns):
        view = pixels.astype(np.float32)
    elif rows != columns:
        raise UsageError(f"[python] expected pixels [{rows}, {columns}, 3], got {list(pixels.shape)}")
    elif pixels.ndim == 3:
        view = resize_centre(pixels, rows)
    else:
        view = np.empty((len(pixels), rows, columns, 3), np.float32)
        for to, each in zip(view, pixels):
            to[:] = resize_centre(each, rows)
    multiply = (1.0 / (255.0 * np.asarray(sd, np.float32))).astype(np.float32)
    add = -np.asarray(mean, np.float32) / np.asarray(sd, np.float32)
    return np.ascontiguousarray(np.moveaxis(view * multiply + add, -1, -3))


def is_pil_image(value: object) -> bool:
    """Whether it is a Pillow image, without importing Pillow."""
    return any(base.__module__ == "PIL.Image" and base.__name__ == "Image" for base in type(value).__mro__)


def pixels_of(image: object) -> np.ndarray:
    """The RGB bytes [rows, columns, 3] of a Pillow image."""
    return np.asarray(image.convert("RGB"))  # type: ignore[attr-defined]
