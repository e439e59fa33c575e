"""onetap export --to onnx: what ONNX Runtime computes from the file against the reference executor.

Networks are drawn anew at every run by DUMP_NETS. The interpreter is python3, or the one that ONETAP_PYTHON names: it
needs onnxruntime (with numpy), and onnx for the checker. Without them the verb alone is tested, and the exit code is 77.
"""
import glob
import json
import os
import struct
import subprocess
import sys
import unittest

if python := os.environ.pop("ONETAP_PYTHON", None):
    os.execvp(python, [python, *sys.argv])

from support import CommandTest, onetap

try:
    import numpy as np
    import onnxruntime
    onnxruntime.set_default_logger_severity(3)  # errors; a node that nobody reads is none
except ImportError:
    onnxruntime = None
try:
    import onnx
except ImportError:
    onnx = None

DUMP_NETS = os.environ.get("DUMP_NETS", "dump_nets")
TOLERANCE = 1e-4  # of the largest output
RANDOM_NETS = 30


def read_tensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        buffer = file.read()
    return {name: np.frombuffer(buffer[slice(*entry["data_offsets"])], np.float32).reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__"}


class OnnxTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.seed = int.from_bytes(os.urandom(4), "little")

    def dump(self, count):
        """Names of networks, each with NAME.tap and NAME.safetensors in self.dir."""
        subprocess.run([DUMP_NETS, self.dir, str(self.seed), str(count)], check=True)
        return sorted(os.path.basename(path)[:-len(".tap")] for path in glob.glob(self.path("*.tap")))

    def export(self, name):
        path = self.path(name + ".onnx")
        result = self.succeeds("export", self.path(name + ".tap"), "--to", "onnx", "-o", path)
        self.assertEqual(result.stdout, path + "\n")
        self.assertEqual(result.stderr, "")
        return path


@unittest.skipUnless(onnxruntime, "no onnxruntime")
class Runtime(OnnxTest):
    def test_outputs_are_those_of_the_reference_executor(self):
        worst = 0
        for name in self.dump(RANDOM_NETS):
            session = onnxruntime.InferenceSession(self.export(name), providers=["CPUExecutionProvider"])
            (source,), (result,) = session.get_inputs(), session.get_outputs()
            tensors = read_tensors(self.path(name + ".safetensors"))
            x, y = tensors["x"], tensors["y"]
            self.assertEqual(source.shape, ["batch", *x.shape[1:]])
            self.assertEqual(result.shape, ["batch", *y.shape[1:]])
            for images in (1, len(x)):
                (got,) = session.run(None, {source.name: x[:images]})
                error, largest = float(np.abs(got - y[:images]).max()), float(np.abs(y).max())
                self.assertLessEqual(error, TOLERANCE * largest, f"{name}, {images} images, seed {self.seed}")
                worst = max(worst, error / largest if error else 0)
        print(f"seed {self.seed}: largest difference {worst:.1e} of the largest output")

    def test_metadata(self):
        self.dump(0)
        session = onnxruntime.InferenceSession(self.export("rare"), providers=["CPUExecutionProvider"])
        meta = session.get_modelmeta()
        self.assertEqual(meta.producer_name, "onetap")
        properties = meta.custom_metadata_map
        self.assertEqual(json.loads(properties["mean"]), [0.5, 0.25, 0.125])
        self.assertEqual(json.loads(properties["sd"]), [1, 2, 4])
        self.assertEqual(json.loads(properties["classes"]), ["a", "b", "c", "d", "e"])
        self.assertEqual(properties["about.seed"], str(self.seed))


@unittest.skipUnless(onnx, "no onnx")
class Checker(OnnxTest):
    def test_models_are_valid_and_hold_every_operator(self):
        used = set()
        for name in self.dump(RANDOM_NETS):
            model = onnx.load(self.export(name))
            onnx.checker.check_model(model, full_check=True)  # with the inference of shapes
            self.assertEqual((model.ir_version, model.opset_import[0].version), (8, 13))
            used |= {node.op_type for node in model.graph.node}
        self.assertEqual(used, {"Conv", "Gemm", "Mul", "Add", "Sum", "Relu", "Concat", "AveragePool", "MaxPool",
                                "GlobalAveragePool", "Flatten", "Slice", "Pad"})


class Verb(OnnxTest):
    def test_a_file_of_16_bit_weights_gives_32_bit_ones(self):
        self.dump(0)
        wide, narrow = (os.path.getsize(self.export(name)) for name in ("rare", "rare-f16"))
        self.assertEqual(wide, narrow)

    def test_a_run_must_be_frozen_first(self):
        self.write("run/config.toml", 'arch = "resnet8"\n')
        out = self.path("out.onnx")
        self.refused(2, "freeze it first", "export", self.path("run"), "--to", "onnx", "-o", out)
        self.assertFalse(os.path.exists(out))

    def test_bad_sources_leave_nothing(self):
        self.dump(0)
        with open(self.path("rare.tap"), "rb") as file:
            cut = self.write("cut.tap", file.read()[:-1])
        before = sorted(os.listdir(self.dir))
        out = self.path("out.onnx")
        self.refused(4, "cut.tap", "export", cut, "--to", "onnx", "-o", out)
        self.refused(4, "expected a .tap file", "export", self.path("missing"), "--to", "onnx", "-o", out)
        self.refused(1, "out.onnx", "export", self.path("rare.tap"), "--to", "onnx", "-o", self.path("no", "out.onnx"))
        self.refused(2, "--to", "export", self.path("rare.tap"), "--to", "onxx", "-o", out)
        self.assertEqual(sorted(os.listdir(self.dir)), before)

    def test_help_says_how(self):
        self.assertIn("onetap export model.tap --to onnx", onetap("export", "--help").stdout)


if __name__ == "__main__":
    passed = unittest.main(exit=False).result.wasSuccessful()
    if passed and not onnxruntime:
        print("skipped: no onnxruntime")
    sys.exit(1 if not passed else 0 if onnxruntime else 77)
