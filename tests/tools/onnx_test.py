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

from support import CommandTest, needs_no_training, onetap

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

    def dump(self, count, *more):
        """Names of networks, each with NAME.tap and NAME.safetensors in self.dir."""
        subprocess.run([DUMP_NETS, self.dir, str(self.seed), str(count), *more], check=True)
        return sorted(os.path.basename(path)[:-len(".tap")] for path in glob.glob(self.path("*.tap")))

    def export(self, name, *flags):
        path = self.path(name + ".onnx")
        result = self.succeeds("export", self.path(name + ".tap"), "--to", "onnx", "-o", path, *flags)
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

    def compare(self, name, *flags, images=1):
        session = onnxruntime.InferenceSession(self.export(name, *flags), providers=["CPUExecutionProvider"])
        tensors = read_tensors(self.path(name + ".safetensors"))
        (got,) = session.run(None, {session.get_inputs()[0].name: tensors["x"][:images]})
        expected = tensors["y"][:images]
        self.assertEqual(got.shape, expected.shape)
        self.assertLessEqual(np.abs(got - expected).max(), TOLERANCE * np.abs(expected).max(), f"{name} {flags} {self.seed}")
        return session

    @needs_no_training
    def test_every_network_of_the_zoo_in_every_opset(self):
        networks = [name for name in self.dump(0, "zoo") if name.startswith("zoo-")]
        self.assertGreaterEqual(len(networks), 9)
        opsets = list(range(13, 21))
        for i, name in enumerate(networks + ["imported"] * len(opsets)):
            opset = opsets[i % len(opsets)]
            self.compare(name, "--opset", opset)
            if onnx:
                model = onnx.load(self.path(name + ".onnx"))
                onnx.checker.check_model(model, full_check=True)
                self.assertEqual(model.opset_import[0].version, opset)
                self.assertEqual(len(onnx.shape_inference.infer_shapes(model, strict_mode=True).graph.value_info),
                                 len(model.graph.node) - 1)

    def test_fixed_batches(self):
        self.dump(0)
        session = self.compare("rare", "--batch", 3, images=3)
        self.assertEqual((session.get_inputs()[0].shape[0], session.get_outputs()[0].shape[0]), (3, 3))

    def test_shift_form_computes_the_same(self):
        self.dump(0)
        for name in ("share-all", "share-allx4"):
            self.compare(name, "--form", "shift")
            if onnx:
                model = onnx.load(self.path(name + ".onnx"))
                onnx.checker.check_model(model, full_check=True)
                kernels = {tuple(t.dims[1:]) for t in model.graph.initializer if t.name.endswith(".shift")}
                self.assertEqual(kernels, {(1, 3, 3)})
        self.refused(2, "share=all", "export", self.path("imported.tap"), "--to", "onnx", "-o", self.path("o"), "--form",
                     "shift")

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
                                "GlobalAveragePool", "Flatten", "Slice", "Pad", "Clip", "Sigmoid", "HardSigmoid",
                                "Unsqueeze"})


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
        for place, part in (("no/out.onnx", "got no folder no (no/out.onnx)"), (".", "got the folder ."),
                            ("", "got an empty name"), ("rare.tap/out.onnx", "got no folder rare.tap"),
                            ("/dev/null", "got a device")):
            for kind in ("onnx", "safetensors"):
                self.refused(2, "[export] expected a file", "export", "rare.tap", "--to", kind, "-o", place, cwd=self.dir)
                self.refused(2, part, "export", "rare.tap", "--to", kind, "-o", place, cwd=self.dir)
        self.refused(2, "13..20", "export", self.path("rare.tap"), "--to", "onnx", "-o", out, "--opset", 12)
        self.refused(2, "--batch", "export", self.path("rare.tap"), "--to", "onnx", "-o", out, "--batch", 0)
        for batch in (1048577, 99999999999):
            self.refused(2, f"number of images from 1 to 1048576, got '{batch}'", "export", self.path("rare.tap"), "--to",
                         "onnx", "-o", out, "--batch", batch)
        self.refused(2, "--form", "export", self.path("rare.tap"), "--to", "onnx", "-o", out, "--form", "thin")
        self.refused(2, "--to", "export", self.path("rare.tap"), "--to", "onxx", "-o", out)
        self.assertEqual(sorted(os.listdir(self.dir)), before)

    def test_help_says_how(self):
        self.assertIn("onetap export model.tap --to onnx", onetap("export", "--help").stdout)


if __name__ == "__main__":
    passed = unittest.main(exit=False).result.wasSuccessful()
    if passed and not onnxruntime:
        print("skipped: no onnxruntime")
    sys.exit(1 if not passed else 0 if onnxruntime else 77)
