"""Writes PyTorch networks as .tap files."""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import os
import stat
import tempfile
import warnings
from pathlib import Path
from typing import Any, Iterator, Sequence

import torch
from torch import Tensor, nn

from .. import Model
from .._command import run_command
from ..errors import CheckError, DataError, Error, UsageError
from ._convert import harden

OPSET = 13
# Of the largest output. Batch norms go into the convolutions before them, and sums have another order.
TOLERANCE = 1e-3


def _said(problem: Exception) -> str:
    """The kind and the first line of an exception of PyTorch or of the network."""
    return f"{type(problem).__name__}: {(str(problem).splitlines() or [''])[0]}"


def _outputs_of(module: nn.Module, images: Tensor) -> Tensor:
    """What the network computes; refused unless it is one tensor [images, ...] of floats."""
    try:
        with torch.no_grad():
            outputs = module(images)
    except Exception as problem:  # of many kinds, the network's own
        raise DataError(f"[torch] expected a network that runs on the example, got {_said(problem)}") from problem
    if not isinstance(outputs, Tensor):
        raise UsageError(f"[torch] expected a network with one tensor as output, got {type(outputs).__name__}")
    if outputs.dim() < 1 or len(outputs) != len(images) or not outputs.is_floating_point():
        raise UsageError(
            f"[torch] expected outputs of floats for {len(images)} images, got {outputs.dtype} {list(outputs.shape)}"
        )
    return outputs


def _export_onnx(module: nn.Module, example: Tensor, path: Path) -> None:
    options: dict[str, Any] = {
        "opset_version": OPSET,
        "input_names": ["input"],
        "output_names": ["output"],
        "do_constant_folding": True,
    }
    # From 2.5 on there are two exporters; this one needs no further packages.
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        options["dynamo"] = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.onnx.export(module, (example,), str(path), **options)
        except Exception as problem:  # of many kinds, some of them the network's own
            raise DataError(f"[torch] expected a network for torch.onnx.export, got {_said(problem)}") from problem


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _add_metadata(path: Path, entries: dict[str, object]) -> None:
    """Appends metadata_props, the model's field 14 with key (1) and value (2): protobuf takes fields in any order.

    ``onetap import`` reads those of models by the producer (2) onetap; the last field of a kind counts.
    """
    with path.open("ab") as file:
        file.write(_field(2, b"onetap"))
        for key, value in entries.items():
            file.write(_field(14, _field(1, key.encode()) + _field(2, json.dumps(value).encode())))


def _three(values: Sequence[float] | None, what: str, usual: float) -> list[float]:
    numbers = [usual] * 3 if values is None else [float(value) for value in values]
    if len(numbers) != 3 or not all(map(math.isfinite, numbers)):
        raise UsageError(f"[torch] expected three finite numbers for {what}, got {values!r}")
    return numbers


def _target_of(path: str | os.PathLike[str]) -> Path:
    """The path of the file to write; refused if there is something that is no regular file."""
    target = Path(path)
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return target
    except (OSError, ValueError) as problem:  # ValueError: a path with a zero byte
        said = problem.strerror if isinstance(problem, OSError) else problem
        raise UsageError(f"[torch] expected a file to write, got: {said} ({str(target)!r})") from None
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a FIFO" if stat.S_ISFIFO(mode) else "a device or socket"
        raise UsageError(f"[torch] expected a file to write, got {kind} ({target})")
    return target


def _folder_in(parent: Path) -> tempfile.TemporaryDirectory[str]:
    """A temporary folder beside the file to write."""
    try:
        return tempfile.TemporaryDirectory(dir=parent, prefix=".onetap-")
    except OSError as problem:
        raise UsageError(
            f"[torch] expected a folder that files can be written to, got: {problem.strerror} ({parent})"
        ) from None


@contextlib.contextmanager
def _without_path(file: Path) -> Iterator[None]:
    """Errors do not name this temporary file: it is gone when they are read."""
    try:
        yield
    except Error as problem:
        message = str(problem).replace(f" ({file})", "").replace(f"{file.parent}{os.sep}", "")
        raise type(problem)(message) from None


def _difference(got: Tensor, expected: Tensor) -> float:
    """The largest difference, relative to the largest output; infinite if there is another number of outputs."""
    if got.numel() != expected.numel():
        return math.inf
    apart = (got - expected.reshape(got.shape)).abs().max() / expected.abs().max().clamp_min(1e-30)
    return float(apart)


def freeze(
    module: nn.Module,
    example: Tensor,
    path: str | os.PathLike[str],
    *,
    classes: Sequence[str] | None = None,
    mean: Sequence[float] | None = None,
    sd: Sequence[float] | None = None,
) -> float:
    """Writes a network as a .tap file, which ``onetap.Model``, the command ``onetap``, C and C++ programs run.

    ``module``: a network, usually one that :func:`convert` returned and that was trained. It is not changed. Shift
    Attention Layers are frozen to their hard form, batch norms with their running statistics; plain convolutions
    whose kernels are mostly zeros become tap convolutions too. The network is exported to ONNX: ``onetap import``
    must support its operators.

    ``path``: the file to write. What is there and is no regular file (a folder, a device, a FIFO), and a folder that is
    missing or cannot be written to, are a :class:`onetap.UsageError` before the network runs.

    ``example``: an input of the network, [images, channels, rows, columns] or [channels, rows, columns]. Its size
    becomes that of the network. The file is run on it and compared with the hard network: :class:`onetap.CheckError`
    if the two differ by more than 1/1000 of the largest output.

    ``classes``: names of the outputs.

    ``mean``, ``sd``: three numbers each, for red, green and blue: pixels were normalised in training as
    (value / 255 - mean) / sd. Programs that read images need them; the defaults are 0 and 1.

    Returns the largest difference on the example, relative to the largest output.
    """
    if not isinstance(example, Tensor) or example.dim() not in (3, 4) or not example.is_floating_point():
        raise UsageError("[torch] expected an example [images, channels, rows, columns] of floats")
    hardened = harden(module).eval().float().cpu()
    images = (example if example.dim() == 4 else example[None]).detach().float().cpu()
    if len(images) == 0:
        raise UsageError("[torch] expected an example with at least one image, got none")
    metadata: dict[str, object] = {"mean": _three(mean, "mean", 0.0), "sd": _three(sd, "sd", 1.0)}
    if not all(value > 0 for value in metadata["sd"]):  # type: ignore[attr-defined]
        raise UsageError(f"[torch] expected sd above 0, got {sd!r}")
    if classes is not None:
        metadata["classes"] = [str(name) for name in classes]
    target = _target_of(path)
    # Made before the network runs: a folder that is missing or cannot be written to is refused at once.
    with _folder_in(target.absolute().parent) as folder:
        expected = _outputs_of(hardened, images)
        if classes is not None and expected[0].numel() != len(classes):
            raise UsageError(f"[torch] expected names of {expected[0].numel()} classes, got {len(classes)}")
        onnx = Path(folder) / "model.onnx"
        frozen = Path(folder) / "model.tap"
        _export_onnx(hardened, images[:1], onnx)
        _add_metadata(onnx, metadata)
        with _without_path(onnx):
            run_command("import", str(onnx), "--tap", "-o", str(frozen))
        with _without_path(frozen), Model(frozen) as model:
            got = torch.from_numpy(model(images.numpy()))
        difference = _difference(got, expected)
        if not difference <= TOLERANCE:
            raise CheckError(
                f"[torch] expected outputs within {TOLERANCE} of the module's, got {difference:.2g} ({target.name})"
            )
        os.replace(frozen, target)
    return difference
