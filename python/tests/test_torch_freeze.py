"""onetap.torch.freeze: PyTorch networks as .tap files, against PyTorch itself."""

import json
import os
import struct
import unittest
import unittest.mock

import numpy as np

from support import TestCase

try:
    import torch
    from torch import nn
except ImportError:
    raise unittest.SkipTest("no PyTorch")

import onetap
import onetap.torch as sal
from onetap import _command
from onetap.torch import _freeze


def has_import():
    try:
        return "--tap" in _command.run_command("import", "--help")
    except onetap.Error:
        return False


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.conv1 = nn.Conv2d(8, 16, 3, 2, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 16, 3, 1, 1)
        self.short = nn.Conv2d(8, 16, 1, 2)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(16, 5)

    def forward(self, x):
        x = self.stem(x)
        x = torch.relu(self.conv2(torch.relu(self.norm1(self.conv1(x)))) + self.short(x))
        return self.fc(self.pool(x).mean((2, 3)))


def graph_of(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    return json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["graph"])


@unittest.skipUnless(has_import(), "no command onetap that imports")
class Freeze(TestCase):
    def setUp(self):
        torch.manual_seed(5)
        self.x = torch.randn(3, 3, 16, 12)
        network = Residual()
        network(torch.randn(16, 3, 16, 12))  # statistics of the batch norms
        self.network = sal.convert(network).eval()
        self.path = self.folder() / "model.tap"

    @staticmethod
    def damaged(path):
        raise onetap.DataError(f"[tap] expected x, got y ({path}: 'z')")

    def left(self):
        return sorted(path.name for path in self.path.parent.iterdir())

    def test_computes_what_the_hard_network_does(self):
        before = {name: value.clone() for name, value in self.network.state_dict().items()}
        difference = sal.freeze(self.network.train(), self.x, self.path)
        self.assertLess(difference, 1e-4)
        self.assertTrue(self.network.training)
        for name, value in self.network.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)
        with torch.no_grad(), sal.hard(self.network.eval()):
            wanted = self.network(self.x).numpy()
            soft_like = self.network(self.x * 2).numpy()
        with onetap.Model(self.path) as model:
            self.assertEqual(model.input_shape, (3, 16, 12))
            self.assertEqual((model.mean, model.sd), ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))
            self.assert_close(model(self.x.numpy()), wanted, 1e-4)
            self.assert_close(model(self.x.numpy() * 2), soft_like, 1e-4)
        self.assertEqual(self.left(), ["model.tap"])

    def test_layers_become_tap_convolutions_with_their_blocks(self):
        sal.freeze(self.network, self.x, self.path)
        nodes = graph_of(self.path)["nodes"]
        taps = [node for node in nodes if node["op"] == "tapconv"]
        self.assertEqual([(node["taps"], node["share"]) for node in taps], [(1, "4x4"), (1, "4x4")])
        self.assertEqual(sum(node["op"] == "conv" for node in nodes), 2)  # the stem and the shortcut
        self.assertEqual(sum(node["op"] in ("bn", "affine") for node in nodes), 0)

    def test_names_and_pixels(self):
        names = ["a", "b", "c", "d", "ü"]
        mean, sd = (0.5, 0.25, 0.125), (0.25, 0.5, 0.125)
        sal.freeze(self.network, self.x[0], self.path, classes=names, mean=mean, sd=sd)
        with onetap.Model(self.path) as model:
            self.assertEqual(model.classes, names)
            self.assertEqual((model.mean, model.sd), (mean, sd))
            pixels = np.random.default_rng(0).integers(0, 256, (16, 12, 3), np.uint8)
            planes = ((pixels / 255.0 - mean) / sd).transpose(2, 0, 1).astype(np.float32)
            with torch.no_grad(), sal.hard(self.network):
                wanted = self.network(torch.from_numpy(planes)[None])[0].numpy()
            self.assert_close(model(pixels), wanted, 1e-4)

    def test_a_dense_network_stays_dense(self):
        network = Residual().eval()
        sal.freeze(network, self.x, self.path)
        self.assertNotIn("tapconv", [node["op"] for node in graph_of(self.path)["nodes"]])

    def test_refuses_and_leaves_nothing(self):
        for options, part in (
            ({"classes": ["a"]}, "5 classes"),
            ({"mean": (1, 2)}, "three"),
            ({"sd": (1, 0, 1)}, "above 0"),
            ({"sd": (1, float("nan"), 1)}, "finite"),
        ):
            with self.assert_error(onetap.UsageError, part):
                sal.freeze(self.network, self.x, self.path, **options)
        for example in (self.x[0, 0], self.x.long(), np.zeros((1, 3, 16, 12)), self.x[:0]):
            with self.assert_error(onetap.UsageError, "example"):
                sal.freeze(self.network, example, self.path)

        class Unknown(nn.Module):
            def forward(self, x):
                return torch.sin(x).mean((2, 3))

        with self.assert_error(onetap.DataError, "Sin") as caught:
            sal.freeze(Unknown(), self.x, self.path)
        # The file between is gone.
        self.assertNotIn("model.onnx", str(caught.exception))
        self.assertNotIn(str(self.path.parent), str(caught.exception))
        with unittest.mock.patch.object(_freeze, "Model", self.damaged), self.assert_error(onetap.DataError, "x") as caught:
            sal.freeze(self.network, self.x, self.path)
        self.assertEqual(str(caught.exception), "[tap] expected x, got y (model.tap: 'z')")
        self.assertEqual(self.left(), [])

    def test_a_layer_in_two_places_is_frozen_in_both(self):
        once = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        network = nn.Sequential(nn.Conv2d(3, 8, 1), once, nn.ReLU(), once, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        converted = sal.convert(network, skip=None).eval()
        sal.freeze(converted, self.x, self.path)
        self.assertEqual([node["op"] for node in graph_of(self.path)["nodes"]].count("tapconv"), 2)
        with torch.no_grad(), sal.hard(converted), onetap.Model(self.path) as model:
            self.assert_close(model(self.x.numpy()), converted(self.x).numpy(), 1e-4)

    def test_places_that_cannot_be_written_are_refused_before_the_network_runs(self):
        folder = self.path.parent
        (folder / "file").write_text("")
        os.mkfifo(folder / "fifo")
        (folder / "null").symlink_to(os.devnull)

        class Runs(nn.Module):
            def forward(self, x):
                raise AssertionError("the network ran")

        for path, part in (
            (folder / "none" / "model.tap", "No such file"),
            (folder, "got a folder"),
            ("", "got a folder"),
            (folder / "file" / "model.tap", "Not a directory"),
            (folder / "fifo", "got a FIFO"),
            (folder / "null", "got a device"),
            ("zero\0byte", "null byte"),
            (folder / ("long" * 100), "too long"),
            ("/proc/model.tap", "expected a folder that files can be written to"),  # also as root
        ):
            with self.assert_error(onetap.UsageError, part):
                sal.freeze(Runs(), self.x, path)
        self.assertEqual(self.left(), ["fifo", "file", "null"])
        self.assertTrue((folder / "fifo").is_fifo())

    def test_networks_with_other_outputs_are_refused_before_the_export(self):
        class Gives(nn.Module):
            def __init__(self, forward):
                super().__init__()
                self.forward = forward

        with unittest.mock.patch.object(torch.onnx, "export", side_effect=AssertionError("exported")):
            for forward, part in (
                (lambda x: (x.mean((2, 3)), x), "tuple"),
                (lambda x: {"out": x}, "dict"),
                (lambda x: x.mean((2, 3))[:1], "3 images, got torch.float32 [1, 3]"),
                (lambda x: x.mean(), "[]"),
                (lambda x: x.argmax(1), "int64"),
            ):
                with self.assert_error(onetap.UsageError, part):
                    sal.freeze(Gives(forward), self.x, self.path)
            with self.assert_error(onetap.DataError, "RuntimeError"):
                sal.freeze(nn.Conv2d(4, 4, 3), self.x, self.path)
        self.assertEqual(self.left(), [])

    def test_a_file_that_computes_something_else_is_refused(self):
        class TwoFaced(nn.Module):
            """One network for the exporter, another for everyone else."""

            def __init__(self):
                super().__init__()
                self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(3, 4, 3)

            def forward(self, x):
                conv = self.first if torch.jit.is_tracing() else self.second
                return conv(x).mean((2, 3))

        with self.assert_error(onetap.CheckError, "within"):
            sal.freeze(TwoFaced(), self.x, self.path)
        self.assertEqual(self.left(), [])

    def test_a_network_that_cannot_be_exported(self):
        class Draws(nn.Module):
            def forward(self, x):
                return x.mean((2, 3)).new_empty(len(x), 3).exponential_()

        with self.assert_error(onetap.DataError, "torch.onnx.export"):
            sal.freeze(Draws(), self.x, self.path)
        self.assertEqual(self.left(), [])


if __name__ == "__main__":
    unittest.main()
