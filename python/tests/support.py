"""What the tests of the package have in common. ONETAP_LIBRARY and ONETAP may name a library and a command to test."""

import json
import os
import shutil
import struct
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
ALL_OPS = CORPUS / "tap" / "all-ops"  # 3x32x32 to 10 classes


def write_tap(path, nodes, tensors, **metadata):
    """A .tap file by docs/file-format.md; float32 and uint8 tensors, the wider ones first."""
    header = {
        "__metadata__": {
            "format": "onetap-tap",
            "version": "1",
            "graph": json.dumps({"name": "test", "nodes": nodes, "output": nodes[-1]["name"]}),
            "mean": "[0, 0, 0]",
            "sd": "[1, 1, 1]",
            **{key: json.dumps(value) for key, value in metadata.items()},
        }
    }
    data = b""
    for name, tensor in sorted(tensors.items(), key=lambda item: -item[1].dtype.itemsize):
        kind = {"float32": "F32", "uint8": "U8"}[tensor.dtype.name]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + tensor.nbytes]}
        data += tensor.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def convolve(image, weight, bias, stride, padding):
    """Plain loops over [channels, rows, columns] and [outputs, inputs, rows, columns]."""
    outputs, _, kernel_rows, kernel_columns = weight.shape
    padded = np.pad(image, ((0, 0), (padding, padding), (padding, padding)))
    rows = (padded.shape[1] - kernel_rows) // stride + 1
    columns = (padded.shape[2] - kernel_columns) // stride + 1
    result = np.zeros((outputs, rows, columns))
    for d in range(outputs):
        for y in range(rows):
            for x in range(columns):
                window = padded[:, y * stride : y * stride + kernel_rows, x * stride : x * stride + kernel_columns]
                result[d, y, x] = bias[d] + (window * weight[d]).sum()
    return result


def random_planes(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def write_small(path, **metadata):
    """3x6x5 to 4 classes by a tapconv of one tap per slice; returns its dense weights and its bias."""
    random = np.random.default_rng(1)
    positions = random.integers(0, 9, (4, 3))
    taps = random.standard_normal((4, 3, 1)).astype(np.float32)
    bias = random.standard_normal(4).astype(np.float32)
    dense = np.zeros((4, 3, 9), np.float32)
    np.put_along_axis(dense, positions[..., None], taps, 2)
    nibbles = positions.reshape(-1).astype(np.uint8)
    packed = (nibbles[0::2] | nibbles[1::2] << 4).astype(np.uint8)
    nodes = [
        {"name": "input", "op": "input", "shape": [3, 6, 5]},
        {"name": "conv", "op": "tapconv", "inputs": ["input"], "out": 4, "kernel": [3, 3], "pad": [1, 1], "stride": [2, 2],
         "bias": 1, "taps": 1, "share": 1},
        {"name": "pool", "op": "gap", "inputs": ["conv"]},
    ]
    write_tap(path, nodes, {"conv.weight": taps, "conv.bias": bias, "conv.positions": packed}, **metadata)
    return dense.reshape(4, 3, 3, 3), bias


class TestCase(unittest.TestCase):
    def folder(self):
        """A folder of the test's own."""
        folder = Path(tempfile.mkdtemp(prefix="onetap-python-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def assert_close(self, got, wanted, tolerance):
        got, wanted = np.asarray(got), np.asarray(wanted)
        self.assertEqual(got.shape, wanted.shape)
        error = np.abs(got - wanted).max() / np.abs(wanted).max()
        self.assertLessEqual(error, tolerance)

    def assert_error(self, kind, part):
        """The code in the ``with`` must raise this error with ``part`` in its message, in one line."""
        return _Raises(self, kind, part)


class _Raises:
    def __init__(self, case, kind, part):
        self._case, self._context, self._part = case, case.assertRaises(kind), part

    def __enter__(self):
        return self._context.__enter__()

    def __exit__(self, *raised):
        if not self._context.__exit__(*raised):
            return False
        message = str(self._context.exception)
        self._case.assertIn(self._part, message)
        self._case.assertTrue(message.startswith("["), message)
        self._case.assertNotIn("\n", message)
        return True


def main():
    unittest.main(module="__main__", verbosity=1 if sys.stderr.isatty() else 2)


def environment(**more):
    """For child processes."""
    return {**os.environ, **more}
