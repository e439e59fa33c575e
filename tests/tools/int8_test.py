"""int8 .tap files against docs/quantization.md: the definition in numpy, from the bytes of the file on, gives the very
outputs of the reference executor; ONNX Runtime on the exported QDQ model says the same classes.

Networks are drawn anew at every run by DUMP_NETS. The interpreter is python3, or the one that ONETAP_PYTHON names; what
it lacks (numpy, onnxruntime) is skipped, and the exit code is 77.
"""
import glob
import itertools
import json
import math
import os
import re
import struct
import subprocess
import sys
import unittest

if python := os.environ.pop("ONETAP_PYTHON", None):
    os.execvp(python, [python, *sys.argv])

from support import ONETAP, CommandTest, png, set_metadata

try:
    import numpy as np
except ImportError:
    np = None
try:
    import onnxruntime
    onnxruntime.set_default_logger_severity(3)
except ImportError:
    onnxruntime = None
try:
    import onnx
except ImportError:
    onnx = None

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DUMP_NETS = os.environ.get("DUMP_NETS", "dump_nets")
TYPES = {"F32": "<f4", "I16": "<i2", "I8": "i1", "U8": "u1"}
BYTES = {"u8": (0, 255), "i8": (-127, 127)}


def read_file(path):
    with open(path, "rb") as file:
        raw = file.read()
    start = 8 + struct.unpack_from("<Q", raw)[0]
    header = json.loads(raw[8:start])
    metadata = header.pop("__metadata__", {})
    tensors = {name: np.frombuffer(raw[start:][slice(*entry["data_offsets"])], TYPES[entry["dtype"]])
               .reshape(entry["shape"]) for name, entry in header.items()}
    return metadata, tensors


def pair(text):
    sides = [int(side) for side in text.split("x")]
    return sides * 2 if len(sides) == 1 else sides


class Node:
    def __init__(self, line):
        words = line.split()
        self.name, self.op = words[0], words[2]
        self.keys = dict(word.split("=", 1) for word in words[3:] if "=" in word)
        self.inputs = [word for word in words[3:] if "=" not in word]
        self.kernel, self.stride = pair(self.keys.get("kernel", "1")), pair(self.keys.get("stride", "1"))
        self.pad, self.dilation = pair(self.keys.get("pad", "0")), pair(self.keys.get("dilation", "1"))
        self.out, self.groups = int(self.keys.get("out", 0)), int(self.keys.get("groups", 1))
        self.has_bias = self.keys.get("bias", "1" if self.op in ("linear", "affine") else "0") == "1"
        self.has_weights = self.op in ("conv", "tapconv", "linear", "affine")


def moved(x, down, right, stride, rows, columns):
    """x at (row * stride + down, column * stride + right), zeros outside."""
    y = np.zeros((x.shape[0], rows, columns), x.dtype)
    for row in range(rows):
        iy = row * stride[0] + down
        if not 0 <= iy < x.shape[1]:
            continue
        for column in range(columns):
            ix = column * stride[1] + right
            if 0 <= ix < x.shape[2]:
                y[:, row, column] = x[:, iy, ix]
    return y


def requantize(total, factor):
    """total * factor as the definition rounds it; factor is a double below one half."""
    assert 0 < factor < 0.5, factor
    fraction, exponent = math.frexp(factor)
    multiplier, shift = math.floor(math.ldexp(fraction, 31) + 0.5), 31 - exponent
    if multiplier == 1 << 31:
        multiplier, shift = multiplier >> 1, shift - 1
    if shift < 32:
        multiplier, shift = (1 << 31) - 1, 32
    if shift > 62:
        multiplier, shift = 0, 62
    return (total * multiplier + (1 << (shift - 1))) >> shift


class Sum:
    """A layer's sums before they are rounded: [outputs, ...] with what 1 of each output stands for."""
    def __init__(self, sums, units, reach):
        self.sums, self.units, self.reach, self.residual = sums, units, reach, None


class Network:
    def __init__(self, path):
        metadata, tensors = read_file(path)
        lines = metadata["network"].split("\n")
        self.output = [line.split()[1] for line in lines if line.startswith("output ")][0]
        self.nodes = [Node(line) for line in lines if " = " in line]
        self.scales = dict(zip((node.name for node in self.nodes), tensors["int8/value"]))
        self.take = {name: iter_parts(tensors.get("int8/" + name))
                     for name in ("weight", "bias", "positions", "step", "base", "bias_shift")}

    def run(self, image):
        self.values = {}  # name: (integers, type, scale), or a Sum that waits for its readers
        for node in self.nodes:
            self.values[node.name] = self.compute(node, image)
        result = self.values[self.output]
        return result if isinstance(result, np.ndarray) else np.float32(result[0]) * result[2]

    def compute(self, node, image):
        scale = self.scales[node.name]
        if node.op == "input":
            q = np.rint(np.clip(image / scale, np.float32(-127), np.float32(127))).astype(np.int64)
            return q, "i8", scale
        inputs = [self.values[name] for name in node.inputs]
        if node.op == "relu" and isinstance(inputs[0], Sum):
            return self.round(inputs[0], "u8", scale)
        if node.op == "add" and any(isinstance(x, Sum) for x in inputs):
            waiting, other = inputs if isinstance(inputs[0], Sum) else inputs[::-1]
            waiting.residual = other
            return waiting if scale == 0 else self.round(waiting, "i8", scale)
        if node.has_weights:
            sums = self.layer(node, inputs[0])
        elif node.op in ("gap", "avgpool"):
            sums = self.mean(node, inputs[0])
        elif node.op == "add":
            sums = Sum(inputs, None, None)
        else:
            return self.copy(node, inputs)
        if node.name == self.output and scale == 0:
            units = np.array(sums.units).astype(np.float32)
            return sums.sums.astype(np.float32) * units.reshape([-1] + [1] * (sums.sums.ndim - 1))
        if scale == 0:
            return sums
        unsigned = not node.has_weights and all(kind == "u8" for _, kind, _ in inputs)
        return self.round(sums, "u8" if unsigned else "i8", scale)

    def layer(self, node, x):
        q, kind, in_scale = x
        flat = q.reshape(q.shape[0], -1) if node.op == "linear" else q
        inputs = q.size if node.op == "linear" else q.shape[0] // node.groups
        outputs = node.out or q.shape[0]
        layer_taps = int(node.keys.get("taps", 0))
        if node.op == "affine":
            weight = self.take["weight"](outputs).astype(np.int64).reshape(outputs, 1)
        elif node.op == "tapconv":
            codes, dropped = self.codes(node, inputs, outputs, layer_taps)
            kept = codes < node.kernel[0] * node.kernel[1]
            weight = np.zeros(codes.shape, np.int64)
            weight[kept] = self.take["weight"](kept.sum())
            assert (~kept).sum() == dropped
        else:
            area = node.kernel[0] * node.kernel[1]
            weight = self.take["weight"](outputs * inputs * area).astype(np.int64).reshape(outputs, inputs, area)
            codes = np.broadcast_to(np.arange(area), weight.shape)
        steps = self.take["step"](outputs).tolist()
        base, shift = float(self.take["base"](1)[0]), int(self.take["bias_shift"](1)[0])
        bias = self.take["bias"](outputs).astype(np.int64) << shift if node.has_bias else np.zeros(outputs, np.int64)
        units = [float(in_scale) * math.ldexp(base * SIXTEENTHS[step % 16], -(step // 16)) for step in steps]
        reach = max(int(np.abs(weight[d]).sum()) * BYTES[kind][1] + abs(int(bias[d])) for d in range(outputs))
        if node.op == "linear":
            sums = weight.reshape(outputs, -1) @ flat.reshape(-1) + bias
        elif node.op == "affine":
            sums = q * weight.reshape([-1] + [1] * (q.ndim - 1)) + bias.reshape([-1] + [1] * (q.ndim - 1))
        else:
            sums = self.convolve(node, q, weight, codes, bias)
        return Sum(sums, units, reach)

    def codes(self, node, inputs, outputs, taps):
        area, dropped = node.kernel[0] * node.kernel[1], int(node.keys.get("dropped", 0))
        share = node.keys.get("share", "1").split("x") + ["1"]
        by_output = outputs if share[0] == "all" else int(share[0])
        by_input = int(share[1])
        blocks = (-(-outputs // by_output), -(-inputs // by_input))
        width = (area - (dropped == 0)).bit_length()
        count = blocks[0] * blocks[1] * taps
        bits = np.unpackbits(self.take["positions"](-(-count * width // 8)), bitorder="little")[:count * width]
        codes = (bits.reshape(count, width) @ (1 << np.arange(width))).astype(np.int64) if width else np.zeros(count, np.int64)
        codes = codes.reshape(blocks[0], blocks[1], taps)
        return codes[np.arange(outputs)[:, None] // by_output, np.arange(inputs)[None, :] // by_input], dropped

    def convolve(self, node, q, weight, codes, bias):
        outputs, inputs = weight.shape[:2]
        size = [(q.shape[1 + i] + 2 * node.pad[i] - node.dilation[i] * (node.kernel[i] - 1) - 1) // node.stride[i] + 1
                for i in (0, 1)]
        planes = {}
        for position in range(node.kernel[0] * node.kernel[1]):
            row, column = divmod(position, node.kernel[1])
            planes[position] = moved(q, row * node.dilation[0] - node.pad[0], column * node.dilation[1] - node.pad[1],
                                     node.stride, *size)
        sums = np.zeros((outputs, *size), np.int64) + bias[:, None, None]
        for d in range(outputs):
            first = d // (outputs // node.groups) * inputs
            for c in range(inputs):
                for t in range(weight.shape[2]):
                    if weight[d, c, t]:
                        sums[d] += weight[d, c, t] * planes[int(codes[d, c, t])][first + c]
        return sums

    def mean(self, node, x):
        q, _, in_scale = x
        if node.op == "gap":
            area, sums = q[0].size, q.reshape(q.shape[0], -1).sum(axis=1)
        else:
            area, sums = node.kernel[0] * node.kernel[1], self.window(node, q, 0, np.add)
        return Sum(sums, [float(in_scale) / area], area * 255)

    def window(self, node, q, outside, combine):
        size = [(q.shape[1 + i] + 2 * node.pad[i] - node.kernel[i]) // node.stride[i] + 1 for i in (0, 1)]
        result = None
        for row in range(node.kernel[0]):
            for column in range(node.kernel[1]):
                part = moved(q - outside, row - node.pad[0], column - node.pad[1], node.stride, *size) + outside
                result = part if result is None else combine(result, part)
        return result

    def copy(self, node, inputs):
        kind = "u8" if node.op == "relu" or all(kind == "u8" for _, kind, _ in inputs) else "i8"
        q, scale = inputs[0][0], inputs[0][2]
        if node.op == "concat":
            q = np.concatenate([x[0] for x in inputs])
        elif node.op == "flatten":
            q = q.reshape(-1)
        elif node.op == "maxpool":
            q = self.window(node, q, -1000, np.maximum)
        elif node.op == "subsample":
            front = (node.out - q.shape[0]) // 2
            q = np.pad(q[:, ::node.stride[0], ::node.stride[1]], ((front, node.out - q.shape[0] - front), (0, 0), (0, 0)))
        elif node.op == "shift":
            q = self.shift(node, q)
        else:
            assert node.op == "relu", node.op
        assert scale == self.scales[node.name]
        return np.clip(q, *BYTES[kind]), kind, scale

    def shift(self, node, q):
        area, channels = node.kernel[0] * node.kernel[1], q.shape[0]
        if "counts" in node.keys:
            codes = np.repeat(np.arange(area), [int(count) for count in node.keys["counts"].split(",")])
        else:
            whole = channels // area * area
            codes = [c % area if c < whole else area // 2 for c in range(channels)]
        return np.concatenate([moved(q[c:c + 1], (code // node.kernel[1] - node.kernel[0] // 2) * node.dilation[0],
                                     (code % node.kernel[1] - node.kernel[1] // 2) * node.dilation[1], (1, 1),
                                     *q.shape[1:]) for c, code in enumerate(codes)])

    def round(self, waiting, kind, scale):
        out = float(scale)
        if waiting.units is None:  # a sum of values
            total = sum(q * math.floor(math.ldexp(float(s) / out, 16) + 0.5) for q, _, s in waiting.sums) + (1 << 15)
            return np.clip(total >> 16, *BYTES[kind]), kind, scale
        sums, reach, left = waiting.sums, float(waiting.reach), 0
        factors = None
        if waiting.residual is not None:
            q, residual_kind, s = waiting.residual
            finest = max(float(s) / unit for unit in waiting.units)
            reach += (finest + 1) * BYTES[residual_kind][1]
            while left < 15 and math.ldexp(reach, left + 1) <= 2147483647.0:
                left += 1
            factors = [math.floor(math.ldexp(float(s) / unit, left) + 0.5) for unit in waiting.units]
        while left < 15 and not math.ldexp(max(waiting.units) / out, -left) < 0.5:
            left += 1
        y = np.empty_like(sums)
        for d in range(sums.shape[0]):
            unit = waiting.units[d if len(waiting.units) > 1 else 0]
            total = sums[d] << left
            if factors:
                total = total + waiting.residual[0][d] * factors[d]
            y[d] = requantize(total, math.ldexp(unit, -left) / out)
        return np.clip(y, *BYTES[kind]), kind, scale


def iter_parts(tensor):
    place = 0

    def take(count):
        nonlocal place
        place += int(count)
        return tensor[place - int(count):place]
    return take


SIXTEENTHS = [2.0 ** (-k / 16) for k in range(16)]


class Int8Test(CommandTest):
    def dump(self, count):
        self.seed = int.from_bytes(os.urandom(4), "little")
        subprocess.run([DUMP_NETS, self.dir, str(self.seed), str(count), "int8"], check=True)
        return sorted(os.path.basename(path)[:-len(".tap")] for path in glob.glob(self.path("*.tap")))

    @unittest.skipUnless(np, "no numpy")
    def test_the_definition_in_numpy_gives_the_very_outputs(self):
        for name in self.dump(20):
            _, tensors = read_file(self.path(name + ".safetensors"))
            for x, y in zip(tensors["x"], tensors["y"]):
                got = Network(self.path(name + ".tap")).run(x)
                np.testing.assert_array_equal(got, y, f"{name}, seed {self.seed}")

    @unittest.skipUnless(onnxruntime, "no onnxruntime")
    def test_onnx_runtime_agrees(self):
        for name, opset in zip(self.dump(10), itertools.cycle((13, 19, 20))):
            path = self.path(name + ".onnx")
            self.succeeds("export", self.path(name + ".tap"), "--to", "onnx", "-o", path, "--opset", opset)
            if onnx:
                model = onnx.load(path)
                onnx.checker.check_model(model, full_check=True)
                self.assertEqual(model.opset_import[0].version, opset)
                onnx.shape_inference.infer_shapes(model, strict_mode=True)
            session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
            _, tensors = read_file(self.path(name + ".safetensors"))
            (got,) = session.run(None, {session.get_inputs()[0].name: tensors["x"]})
            error, size = np.abs(got - tensors["y"]).max(), np.abs(tensors["y"]).max()
            self.assertLessEqual(error, 0.1 * size, f"{name}, opset {opset}, seed {self.seed}")  # some roundings fall the other way


@unittest.skipUnless(np and onnxruntime, "no numpy or no onnxruntime")
class TopOne(CommandTest):
    """scripts/check-onnx-int8 on a trained network, and on images of its input's form that are written here."""
    MODEL = os.path.join(ROOT, "models", "cifar10-sal-w56-share4x4-int8.tap")

    def setUp(self):
        super().setUp()
        random = np.random.default_rng(5)
        coarse = random.integers(0, 256, (40, 3, 4, 4))
        pixels = np.clip(coarse.repeat(8, 2).repeat(8, 3) + random.integers(-20, 21, (40, 3, 32, 32)), 0, 255)
        records = np.concatenate([random.integers(0, 10, (40, 1)), pixels.reshape(40, -1)], axis=1)
        self.write("test_batch.bin", records.astype(np.uint8).tobytes())

    def check(self, *arguments):
        return subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "check-onnx-int8"), *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ, ONETAP=ONETAP))

    def test_onnx_runtime_names_the_same_classes(self):
        result = self.check(self.MODEL, "--data", self.dir, "--least", "95")  # 2 of 40 may be close calls
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        agreed = int(re.match(r"(\d+) of 40 images agree", result.stdout).group(1))
        self.assertGreaterEqual(agreed, 38)
        self.assertRegex(result.stdout, r"accuracy: onetap [\d.]+ %, ONNX Runtime [\d.]+ [\d.]+ %")
        self.assertEqual(self.check(self.MODEL, "--data", self.dir, "--least", "100.1").returncode, 3)
        self.assertIn("expected test_batch.bin", self.check(self.MODEL, "--data", self.path("nowhere")).stderr)


class Quantize(CommandTest):
    DATA = "shapes:train=60,test=30"

    def setUp(self):
        super().setUp()
        subprocess.run([DUMP_NETS, self.dir, "1", "0"], check=True)
        self.model, self.out = self.path("resnet-A.tap"), self.path("int8.tap")

    def quantize(self, *more, model=None):
        return ["quantize", model or self.model, "--data", self.DATA, "-o", self.out, "--images", "20", *more]

    def test_prints_both_networks_and_the_errors_of_layers(self):
        report = json.loads(self.succeeds(*self.quantize("--layers", "--json")).stdout)
        before, after = report["stages"]
        self.assertEqual((before["weights"], after["weights"]), ("f32", "int8"))
        self.assertEqual((before["images"], after["images"], report["calibration_images"]), (30, 30, 20))
        self.assertEqual(after["bytes"], os.path.getsize(self.out))
        self.assertLess(after["bytes"], before["bytes"])
        self.assertEqual(report["layers"][0]["name"], "conv1")
        for layer in report["layers"]:
            self.assertLess(layer["error"], 0.2, layer)
        text = self.succeeds(*self.quantize("--layers", "--calibration", "minmax"))
        self.assertRegex(text.stdout, r"conv1 +conv +\d+\.\d+ %")
        self.assertRegex(text.stdout, r"after +int8 ")
        self.assertRegex(text.stderr, r"int8\.tap: .* smaller; 20 images to calibrate, 30 images to test")

    def test_other_verbs_take_the_file(self):
        self.succeeds(*self.quantize("--keep", "conv1"))
        table = json.loads(self.succeeds("eval", self.out, "--data", self.DATA, "--json").stdout)[0]
        slow = json.loads(self.succeeds("eval", self.out, "--data", self.DATA, "--json", "--reference").stdout)[0]
        self.assertEqual((table["weights"], table["accuracy"]), ("int8", slow["accuracy"]))
        count = json.loads(self.succeeds("count", self.out, "--json").stdout)
        self.assertEqual(count["file_bytes"], os.path.getsize(self.out))
        self.assertEqual(table["params"], count["params"])
        self.succeeds("heatmap", self.out, "-o", self.path("map.svg"))

    def test_a_percentile_chooses_its_method(self):
        def scales(*flags):
            self.succeeds(*self.quantize(*flags))
            with open(self.out, "rb") as file:
                return file.read()
        of_percentile = scales("--calibration", "percentile", "--percentile", "90")
        self.assertEqual(scales("--percentile", "90"), of_percentile)
        self.assertNotEqual(scales(), of_percentile)
        os.remove(self.out)
        for method in ("minmax", "mse"):
            self.refused(2, f"--percentile is a flag of --calibration percentile, got --calibration {method}",
                         *self.quantize("--percentile", "90", "--calibration", method))
        self.assertFalse(os.path.exists(self.out))

    @unittest.skipUnless(np, "no numpy")
    def test_exports_what_bytes_stand_for_as_safetensors(self):
        dense = self.path("dense.safetensors")
        self.succeeds(*self.quantize())
        self.succeeds("export", self.out, "--to", "safetensors", "-o", dense)
        network, (_, tensors) = Network(self.out), read_file(dense)
        first = next(node for node in network.nodes if node.has_weights)
        outputs, count = tensors[first.name + ".weight"].shape[0], tensors[first.name + ".weight"].size
        steps = np.exp2(-network.take["step"](outputs).astype(np.float64) / 16) * network.take["base"](1).astype(np.float64)
        weight = network.take["weight"](count).reshape(outputs, -1) * steps[:, None]
        np.testing.assert_allclose(tensors[first.name + ".weight"].reshape(outputs, -1), weight, rtol=1e-6)
        # Without the scale of a value that a layer reads: the layer's input is named.
        with open(self.out, "rb") as file:
            raw = bytearray(file.read())
        start = 8 + struct.unpack_from("<Q", raw)[0]
        begin = start + json.loads(raw[8:start])["int8/value"]["data_offsets"][0]
        raw[begin:begin + 4] = bytes(4)
        damaged = self.write("damaged.tap", bytes(raw))
        self.refused(4, f"expected a scale of the value of '{network.nodes[0].name}'", "export", damaged, "--to", "safetensors",
                     "-o", self.path("none"))
        self.assertFalse(os.path.exists(self.path("none")))

    def test_outputs_that_are_not_finite_are_no_accuracy(self):
        # Of black images the outputs are finite, of white ones they are not; calibration sees black ones alone.
        for split, colour in (("train", 0), ("test", 255)):
            for name in map(str, range(10)):
                os.makedirs(self.path("images", split, name))
                png(self.path("images", split, name, "a.png"), (colour,) * 3, corner=0)
        with open(self.model, "rb") as file:
            raw = bytearray(file.read())
        start = 8 + struct.unpack_from("<Q", raw)[0]
        begin, end = json.loads(raw[8:start])["conv1.weight"]["data_offsets"]
        raw[start + begin:start + end] = struct.pack("<f", 3e38) * ((end - begin) // 4)
        large = self.write("large.tap", bytes(raw))
        set_metadata(large, "mean", "[0,0,0]")
        set_metadata(large, "sd", "[1,1,1]")
        self.refused(1, f"[quantize] expected finite outputs, got nan or inf ({large})", "quantize", large, "--data",
                     "folder:" + self.path("images"), "-o", self.out, "--images", 1)
        self.assertFalse(os.path.exists(self.out))

    def test_places_are_checked_first(self):
        for place, part in (("no/x.tap", "got no folder no (no/x.tap)"), (".", "got the folder ."), ("", "an empty name")):
            result = self.refused(2, part, "quantize", self.model, "--data", "cifar10:" + self.path("nowhere"), "-o", place,
                                  cwd=self.dir)
            self.assertIn("[quantize] expected a file", result.stderr)

    def test_what_cannot_be_done_leaves_nothing(self):
        self.refused(2, "expected a layer with weights to keep, got no layer 'nobody'", *self.quantize("--keep", "nobody"))
        self.refused(4, "cannot open " + self.path("missing.tap"), *self.quantize(model=self.path("missing.tap")))
        self.refused(4, "expected a .tap file", *self.quantize(model=self.path("missing")))
        for line in ("sigmoid c", "hardsigmoid c", "hardswish c", "silu c", "mul c c", "pad c sides=1,1,1,1"):
            op = line.split()[0]
            self.write(op + ".txt", "onetap-net 1\nx = input 3x32x32\nc = conv x out=4 kernel=3 pad=1 bias=1\n"
                                    f"r = {line}\np = gap r\nf = linear p out=10\n")
            self.succeeds("nets", self.path(op + ".txt"), "--tap", self.path(op + ".tap"))
            self.refused(4, f"op that has an int8 form, got {op} ('r')", *self.quantize(model=self.path(op + ".tap")))
        self.refused(2, "--images", *self.quantize()[:-1], "0")
        self.assertFalse(os.path.exists(self.out))
        self.succeeds(*self.quantize())
        self.refused(4, "expected a network of floats, got one of int8", "quantize", self.out, "--data", self.DATA, "-o",
                     self.path("again.tap"))
        self.assertFalse(os.path.exists(self.path("again.tap")))


if __name__ == "__main__":
    passed = unittest.main(exit=False).result.wasSuccessful()
    if passed and not (np and onnxruntime):
        print("skipped: no numpy or no onnxruntime")
    sys.exit(1 if not passed else 0 if np and onnxruntime else 77)
