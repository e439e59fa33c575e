"""Converts images to the input of a network: the pixels and the view that ``onetap run`` and ``onetap eval`` use."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from .errors import UsageError

# The part of the shorter side that is shown of an image of another size: the usual test view of ImageNet.
SHOWN = 224.0 / 256.0
# Pillow's names of 16-bit grey.
SIXTEEN_BITS = ("I;16", "I;16L", "I;16B", "I;16N")
# Pillow's names of the formats whose Exif orientation counts, as in ``onetap run``: JPEG, alone or the first of several
# in a file. None: images made in memory, and copies of any image, such as a JPEG that was converted or cropped.
TURNED = ("JPEG", "MPO", None)


def _filters(extent: int, start: float, length: float, count: int) -> list[tuple[int, np.ndarray]]:
    """Triangle filters for ``count`` outputs that cover [start, start + length) of ``extent`` samples.

    Each is its first sample, and the weights of that and the following ones. The triangle is wider if the image is
    reduced, to avoid aliasing.
    """
    scale = length / count
    support = max(scale, 1.0)
    filters = []
    for centre in start + (np.arange(count) + 0.5) * scale:
        first = max(int(np.floor(centre - support + 0.5)), 0)
        last = min(int(np.floor(centre + support + 0.5)), extent)
        weights = np.clip(1.0 - np.abs(np.arange(first, last) + 0.5 - centre) / support, 0.0, None)
        filters.append((first, (weights / weights.sum()).astype(np.float32)))
    return filters


def _filtered(samples: np.ndarray, filters: list[tuple[int, np.ndarray]]) -> np.ndarray:
    """Applies filters along the rows: float32 [filters, ...]. Only the rows of one filter at a time become floats."""
    outputs = np.empty((len(filters), *samples.shape[1:]), np.float32)
    for output, (first, weights) in zip(outputs, filters):
        rows = samples[first : first + len(weights)].astype(np.float32)
        output[:] = (weights @ rows.reshape(len(weights), -1)).reshape(output.shape)
    return outputs


def resize_centre(pixels: np.ndarray, size: int) -> np.ndarray:
    """The centre of an image [rows, columns, channels] as [size, size, channels] of float32.

    An image that already has the size is returned unchanged. Otherwise a centred square of 7/8 of the shorter side is
    resized with a triangle filter.
    """
    rows, columns = pixels.shape[:2]
    if rows == size and columns == size:
        return pixels.astype(np.float32)
    side = min(rows, columns) * SHOWN
    across = _filters(columns, (columns - side) / 2, side, size)
    left, right = across[0][0], across[-1][0] + len(across[-1][1])
    low = _filtered(pixels[:, left:right], _filters(rows, (rows - side) / 2, side, size))
    across = [(first - left, weights) for first, weights in across]
    view: np.ndarray = _filtered(low.swapaxes(0, 1), across).swapaxes(0, 1)
    return view


def planes_of(pixels: np.ndarray, shape: Sequence[int], mean: Sequence[float], sd: Sequence[float]) -> np.ndarray:
    """Bytes [rows, columns, 3] as the planes [3, rows, columns] of a network.

    Pixels of the network's size stay bytes, which the library normalises; an image of another size is resized, and
    becomes float32, normalised. Several images of one size are [images, rows, columns, 3].
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
        return np.ascontiguousarray(np.moveaxis(pixels, -1, -3))
    if rows != columns:
        raise UsageError(f"[python] expected pixels [{rows}, {columns}, 3], got {list(pixels.shape)}")
    if pixels.ndim == 3:
        view = resize_centre(pixels, rows)
    else:
        view = np.empty((len(pixels), rows, columns, 3), np.float32)
        for to, each in zip(view, pixels):
            to[:] = resize_centre(each, rows)
    multiply = (1.0 / (255.0 * np.asarray(sd, np.float32))).astype(np.float32)
    add = -np.asarray(mean, np.float32) / np.asarray(sd, np.float32)
    return np.ascontiguousarray(np.moveaxis(view * multiply + add, -1, -3))


def joined(batches: Sequence[np.ndarray], mean: Sequence[float], sd: Sequence[float]) -> np.ndarray:
    """Batches of planes [images, 3, rows, columns] as one; bytes among floats are normalised as the library does it."""
    if len({planes.dtype for planes in batches}) > 1:
        # In doubles, as onetap_run_u8: an image must have the same outputs alone and in a list.
        low, unit = (np.asarray(values, np.float64)[:, None, None] for values in (mean, sd))
        batches = [((p / 255.0 - low) / unit).astype(np.float32) if p.dtype == np.uint8 else p for p in batches]
    return np.concatenate(batches)


def is_pil_image(value: object) -> bool:
    """Whether it is a Pillow image, without importing Pillow."""
    return any(base.__module__ == "PIL.Image" and base.__name__ == "Image" for base in type(value).__mro__)


def _upright(image: Any) -> Any:
    """A Pillow image, turned as its Exif orientation says if it is a JPEG; damaged Exif data count as none."""
    from PIL import ImageOps

    image.load()  # its errors are about pixels
    if image.format not in TURNED:
        return image
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # of many kinds: whatever the bytes make Pillow's parser do
        return image


def pixels_of(image: Any) -> np.ndarray:
    """The RGB bytes [rows, columns, 3] of a Pillow image; a JPEG upright."""
    upright = _upright(image)
    # Older versions of Pillow open 16-bit grey PNGs in mode I, which may have any range otherwise.
    if image.mode in SIXTEEN_BITS or (image.mode == "I" and image.format == "PNG"):
        grey = (np.asarray(upright).astype(np.int64) + 128) // 257  # 65535 becomes 255
        return np.repeat(np.clip(grey, 0, 255).astype(np.uint8)[..., None], 3, axis=-1)
    if image.mode in ("I", "F"):
        raise UsageError(
            f"[python] expected an image of 8 or 16 bits per sample, got mode {image.mode} (convert it to mode L first)"
        )
    try:
        return np.asarray(upright.convert("RGB"))
    except ValueError as problem:
        raise UsageError(f"[python] expected an image that Pillow converts to RGB, got: {problem}") from None
