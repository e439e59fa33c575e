"""onetap import: models of every operator and opset against ONNX Runtime, our own exports, and models that are refused.

Models are made with the onnx package. The interpreter is python3, or the one that ONETAP_PYTHON names; without onnx,
numpy and onnxruntime the exit code is 77.
"""
import json
import os
import pathlib
import resource
import struct
import subprocess
import sys
import unittest

if python := os.environ.pop("ONETAP_PYTHON", None):
    os.execvp(python, [python, *sys.argv])

from support import ONETAP, CommandTest, needs_no_training, onetap

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper
    from onnx_models import CASES, OPSETS, Builder, heads, padded_by_a_list, softmax_at_the_end
    onnxruntime.set_default_logger_severity(3)
except ImportError:
    onnx = None

RUN_ONNX = os.environ.get("RUN_ONNX", "run_onnx")
DUMP_NETS = os.environ.get("DUMP_NETS", "dump_nets")
TOLERANCE = 1e-4  # of the largest output


@needs_no_training
@unittest.skipUnless(onnx, "no onnx or onnxruntime")
class Operators(CommandTest):
    def run_all(self, models, images):
        """[(line that run_onnx printed, values)] of each model."""
        np.stack(images).tofile(self.path("x.bin"))
        lines = []
        for i, model in enumerate(models):
            self.write(f"{i}.onnx", model if isinstance(model, bytes) else model.SerializeToString())
            lines.append(f"{self.path(f'{i}.onnx')} {self.path('x.bin')} {self.path(f'{i}.bin')}")
        result = subprocess.run([RUN_ONNX], input="\n".join(lines) + "\n", text=True, stdout=subprocess.PIPE, check=True)
        printed = result.stdout.splitlines()
        self.assertEqual(len(printed), len(models))
        return [(line, np.fromfile(self.path(f"{i}.bin"), np.float32) if line == "ok" else None)
                for i, line in enumerate(printed)]

    def compare(self, named, shape=(3, 12, 11)):
        images = [np.random.default_rng(i).standard_normal(shape).astype(np.float32) for i in range(2)]
        for (name, model), (line, values) in zip(named, self.run_all([model for _, model in named], images)):
            self.assertEqual(line, "ok", name)
            session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            expected = np.concatenate([session.run(None, {"x": image[None]})[0].ravel() for image in images])
            self.assertEqual(len(values), 2 * len(expected), name)
            limit = TOLERANCE * max(1.0, float(np.abs(expected).max()))
            for got, what in ((values[:len(expected)], "fast"), (values[len(expected):], "in its form for training")):
                self.assertLessEqual(float(np.abs(got - expected).max()), limit, f"{name}, {what}")

    def test_equal_onnx_runtime_in_every_opset(self):
        named = []
        for opset in OPSETS:
            for case in CASES:
                builder = Builder(opset)
                case(builder)
                named.append((f"{case.__name__} in opset {opset}", builder.model()))
            if opset >= 11:  # before, pads are attributes
                builder = Builder(opset)
                padded_by_a_list(builder)
                named.append((f"padded_by_a_list in opset {opset}", builder.model()))
        self.compare(named)

    def test_a_softmax_at_the_end_is_left_out(self):
        builder = Builder(13)
        softmax_at_the_end(builder)
        plain = builder.model()
        builder.add("Softmax", axis=1)
        ((line, values), (_, expected)) = self.run_all([builder.model(), plain], [np.ones((3, 12, 11), np.float32)])
        self.assertEqual(line, "ok")
        self.assertEqual(values.tolist(), expected.tolist())

    def test_functions_are_inlined(self):
        """As early exports by dynamo have them: weights come in as inputs, attributes by reference."""
        builder = Builder(18)
        conv = helper.make_node("Conv", ["input", "kernel"], ["sum"])
        stride = onnx.AttributeProto(name="strides", ref_attr_name="stride", type=onnx.AttributeProto.INTS)
        conv.attribute.append(stride)
        builder.functions.append(helper.make_function(
            "pkg.torch", "Block", ["input", "kernel"], ["result"],
            [conv, helper.make_node("Relu", ["sum"], ["result"])], [helper.make_opsetid("", 18)], ["stride"]))
        builder.functions.append(helper.make_function(
            "pkg.torch", "Two", ["a", "w1", "w2"], ["b"],
            [helper.make_node("Block", ["a", "w1"], ["sum"], domain="pkg.torch", stride=[2, 1]),
             helper.make_node("Block", ["sum", "w2"], ["b"], domain="pkg.torch", stride=[1, 1])],
            [helper.make_opsetid("", 18), helper.make_opsetid("pkg.torch", 1)]))
        builder.add("Two", "x", builder.floats(4, 3, 3, 3, name="one.weight"), builder.floats(5, 4, 1, 1),
                    domain="pkg.torch")
        self.compare([("functions", builder.model([helper.make_opsetid("pkg.torch", 1)]))])

    def test_outputs_of_functions(self):
        """One that nobody reads has no name in the call; another is an input of the function."""
        builder = Builder(18)
        opsets = [helper.make_opsetid("", 18)]
        builder.functions.append(helper.make_function(
            "own", "Two", ["a"], ["unread", "b"],
            [helper.make_node("Relu", ["a"], ["unread"]), helper.make_node("Sigmoid", ["unread"], ["b"])], opsets))
        builder.functions.append(helper.make_function(
            "own", "Same", ["a"], ["a", "b"], [helper.make_node("Relu", ["a"], ["b"])], opsets))
        builder.nodes.append(helper.make_node("Two", ["x"], ["", "gate"], name="two", domain="own"))
        builder.nodes.append(helper.make_node("Same", ["gate"], ["again", "other"], name="same", domain="own"))
        builder.add("Add", "again", "other")
        plain = Builder(18)  # ONNX Runtime takes no such functions
        gate = plain.add("Sigmoid", plain.add("Relu"))
        plain.add("Add", gate, plain.add("Relu", gate))
        models = [builder.model([helper.make_opsetid("own", 1)]), plain.model()]
        image = np.random.default_rng(1).standard_normal((3, 12, 11)).astype(np.float32)
        (line, values), (_, expected) = self.run_all(models, [image])
        self.assertEqual(line, "ok")
        self.assertEqual(values.tolist(), expected.tolist())

    def test_fixed_batches_and_extents_left_open(self):
        builder = Builder(17, batch=4)
        x = builder.conv(3, 2)
        builder.add("Reshape", x, builder.integers(4, -1))
        fixed = builder.model()
        free = Builder(17, shape=("c", "h", "w"))
        free.conv(3, 2)
        free.add("GlobalAveragePool")
        np.ones((1, 3, 12, 11), np.float32).tofile(self.path("x.bin"))
        lines = []
        for name, model, shape in (("fixed", fixed, ""), ("free", free.model(), ""), ("free", free.model(), "3x12x11")):
            path = self.write(f"{name}.onnx", model.SerializeToString())
            lines.append(f"{path} {self.path('x.bin')} {self.path('y.bin')} {shape}")
        result = subprocess.run([RUN_ONNX], input="\n".join(lines), text=True, stdout=subprocess.PIPE, check=True)
        printed = result.stdout.splitlines()
        self.assertEqual((printed[0], printed[2]), ("ok", "ok"))
        self.assertIn("--shape CxHxW", printed[1])

    def refusals(self):
        """(part of the message, model)"""
        def made(opset, *steps, **settings):
            builder = Builder(opset, **settings)
            for step in steps:
                step(builder)
            return builder.model()

        def node(op, *inputs, **attributes):
            return lambda m: m.add(op, *inputs, **attributes)

        yield "LeakyRelu 'LeakyRelu_0' (opset 13): expected an activation that networks have", made(13, node("LeakyRelu"))
        yield "LRN 'LRN_0' (opset 13): expected BatchNormalization in its place", made(13, node("LRN", size=3))
        yield "Einsum 'Einsum_0' (opset 13): expected an operator of a plain", made(13, node("Einsum", equation="a->a"))
        nameless = made(13, node("LeakyRelu"))
        nameless.graph.node[0].name = ""
        yield "LeakyRelu 'v0' (opset 13)", nameless
        unnamed = made(13, lambda m: m.conv(3, 4))
        unnamed.graph.node[0].input[1] = ""
        yield "expected a name of input 2, got none", unnamed
        yield "expected opset 9 to 20, got 8", made(8, node("Relu"))
        yield "expected opset 9 to 20, got 21", made(21, node("Relu"))
        yield "expected limits 0 and 6", made(9, node("Clip", min=-1.0, max=1.0))
        yield "expected alpha 1/6 and beta 1/2", made(13, node("HardSigmoid"))
        yield "expected training_mode 0", made(15, lambda m: m.add(
            "BatchNormalization", "x", *[m.floats(3, low=0.5) for _ in range(4)], training_mode=1))
        yield "expected a mean over whole windows", made(13, node("AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
        yield "expected dilations of 1", made(13, node("MaxPool", kernel_shape=[3, 3], dilations=[2, 2]))
        yield "expected extents in their order", made(13, node("Transpose", perm=[0, 2, 3, 1]))
        yield "expected a mean over rows and columns", made(13, node("ReduceMean", axes=[1], keepdims=0))
        yield "expected it at the end", made(13, node("Softmax"), node("Relu"))
        yield "expected weights for 3 channels", made(13, lambda m: m.conv(4, 4))
        yield "expected mode constant, got reflect", made(13, lambda m: m.add(
            "Pad", "x", m.integers(0, 0, 1, 1, 0, 0, 1, 1), mode="reflect"))
        yield "a cycle, nodes out of order, or a missing value", made(13, node("Relu", "v1"), node("Relu", "v0"))
        yield "a cycle, nodes out of order, or a missing value", made(13, node("Relu", "nothing"))
        # To an image of one pixel ONNX adds three numbers as columns.
        yield "Add 'Add_2' (opset 13): expected constants of one number, or of one for each of 3 channels", made(
            13, node("GlobalAveragePool"), lambda m: m.add("Mul", m.last, m.floats(3, 1, 1)),
            lambda m: m.add("Add", m.last, m.floats(3)))
        yield "expected no pads around an image of one pixel", made(13, node("GlobalAveragePool"), lambda m: m.conv(
            3, 4, kernel=1, pads=[1, 1, 1, 1]))
        yield "expected a shape of 4294967296 numbers", made(13, lambda m: m.add(
            "Reshape", "x", m.integers(2**32, 2**32, -1)), shape=(1, 2**16, 2**16))
        for axis, step in ((0, 0), (1, 1), (-2, 1), (-2**63, 1)):
            yield "Slice", made(13, lambda m: m.add("Reshape", "x", m.add(
                "Slice", m.integers(0, -1), m.integers(0), m.integers(9), m.integers(axis), m.integers(step))))
        yield "expected each of 2 extents once in perm", made(13, lambda m: m.add("Gemm", m.add("Flatten", "x"), m.add(
            "Transpose", m.floats(5, 396), perm=[1, 1])))
        yield "expected lists (axis 0)", made(13, lambda m: m.add("Reshape", "x", m.add(
            "Concat", m.constant(np.array([[0]])), m.constant(np.array([[-1]])), axis=1)))
        tiny = lambda m: m.constant(np.full((3, 1, 1), 1e-39, np.float32))
        yield "Div 'Div_0' (opset 13): expected weights that stay finite", made(13, lambda m: m.add("Div", "x", tiny(m)))
        yield "Gemm 'Gemm_1' (opset 13): expected weights that stay finite", made(13, node("Flatten"), lambda m: m.add(
            "Gemm", m.last, m.floats(396, 2), m.floats(2), beta=float("inf")))
        def norm_without_variance(m):
            m.add("Gemm", m.add("Flatten"), m.floats(396, 2))
            m.add("BatchNormalization", m.last, m.floats(2), m.floats(2), m.floats(2), m.floats(2, low=0, high=0), epsilon=0.0)
        yield "Gemm 'Gemm_1' (opset 13): expected weights that stay finite", made(13, norm_without_variance)
        yield "expected alpha 1/6 and beta 1/2", made(13, node("HardSigmoid", alpha=float("nan")))
        for axis in (2**63 - 1, -2**63, 2, -2):
            yield "expected axis 1, got", made(13, node("Flatten", axis=axis))
        for axis in (2**63 - 1, -2**63, 2, -2):
            yield "expected axis 1 (channels), got", made(13, node("Concat", "x", "x", axis=axis))
        yield "Min 'Min_0' (opset 13): expected limits 0 and 6", made(13, lambda m: m.add("Min", "x", m.constant(np.float32(6))))
        yield "ReduceMean 'ReduceMean_1' (opset 13): expected a mean over rows", made(
            13, node("ReduceMean", axes=[3]), node("ReduceMean", axes=[3]))
        yield "got a mean over one of them", made(13, node("ReduceMean", axes=[3]), node("Relu"))
        yield "expected an output of floats", made(13, node("ReduceMean", axes=[3]))
        def norm_of_an_activation(m):
            m.add("Relu", m.add("Flatten"))
            m.add("BatchNormalization", m.last, *[m.floats(396, low=0.5) for _ in range(4)])
            m.add("Relu")
        yield ("BatchNormalization 'BatchNormalization_2' (opset 13): expected a linear layer directly before or behind",
               made(13, norm_of_an_activation))
        def bias_for_no_weights(m):
            weight = m.constant(np.zeros((2**29, 1, 0, 0), np.float32))
            m.add("Conv", "x", weight, m.constant(np.zeros(1, np.float32)), group=3)
        yield "Conv 'Conv_0' (opset 13): expected weights, got none", made(13, bias_for_no_weights)
        # Small files: with 100000 nodes they would ask for hundreds of gigabytes.
        def many(count, make):
            return made(13, lambda m: m.add("Sum", "x", *[make(m, m.nodes) for _ in range(count)]))
        yield "expected at most 16781328 numbers computed of the model's 257, got more", many(
            300, lambda m, _: m.add("ConstantOfShape", m.integers(65536)))
        def transposed(m, nodes):
            matrix = nodes[0].input[0] if nodes else m.floats(1024, 1024)
            return m.add("Transpose", matrix, perm=[1, 0])
        yield "expected at most 33554432 numbers computed of the model's 1048576, got more", many(40, transposed)
        thin_factor = made(13, lambda m: m.add("Mul", "x", m.floats(1)))
        thin_factor.graph.initializer[0].dims[:] = [1] * 65
        yield "Mul 'Mul_0' (opset 13): expected a tensor of at most 64 extents, got 65", thin_factor
        yield "Reshape 'Reshape_0' (opset 13): expected at most 64 extents, got 65", made(
            13, lambda m: m.add("Mul", "x", m.add("Reshape", m.floats(1), m.integers(*[1] * 65))))
        # Lists of axes that are longer than the extents there are, or name one twice.
        def unsqueezed(constant, *axes):
            return made(13, lambda m: m.add("Mul", "x", m.add("Unsqueeze", m.floats(1) if constant else "x",
                                                              m.integers(*axes))))
        for constant in (False, True):
            yield "Unsqueeze 'Unsqueeze_0' (opset 13): expected axes that differ, got 1 twice", unsqueezed(
                constant, 1, 0, 1)
            yield "Unsqueeze 'Unsqueeze_0' (opset 13): expected axes that differ, got 0 twice", unsqueezed(
                constant, 0, *[-4 if constant else -7] * 2)
            yield "Unsqueeze 'Unsqueeze_0' (opset 13): expected at most 64 axes, got 100000", unsqueezed(
                constant, *[0] * 100000)
        yield "Unsqueeze 'Unsqueeze_0' (opset 13): expected at most 64 extents, got 65", unsqueezed(
            True, *range(64))
        yield "Unsqueeze 'Unsqueeze_0' (opset 9): expected axes that differ, got 2 twice", made(
            9, lambda m: m.add("Unsqueeze", "x", axes=[2, 2]))
        yield "Squeeze 'Squeeze_0' (opset 13): expected at most 64 axes, got 65", made(
            13, lambda m: m.add("Squeeze", "x", m.integers(*[1] * 65)))
        yield "Pad 'Pad_0' (opset 18): expected at most 4 axes, got 5", made(18, lambda m: m.add(
            "Pad", "x", m.integers(*[0] * 10), "", m.integers(2, 2, 2, 2, 2)))
        yield "Slice 'Slice_0' (opset 13): expected every step-th row and column", made(13, lambda m: m.add(
            "Slice", "x", *[m.integers(*[value] * 5) for value in (0, 99, 2)]))
        yield "expected a 2-d convolution", made(13, lambda m: m.add("Conv", "x", m.floats(2, 3, 3)))
        yield "expected finite weights", made(13, lambda m: m.add(
            "Mul", "x", m.constant(np.full((3, 1, 1), np.nan, np.float32))))
        yield "expected an operator of ONNX itself, got one of domain 'com.other'", made(13, node("Relu", domain="com.other"))

        twice = made(13, node("Relu"))
        twice.graph.node.append(twice.graph.node[0])
        yield "got 'v0' twice", twice
        two_inputs = made(13, node("Relu"))
        two_inputs.graph.input.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [1]))
        yield "expected one input, got 'x' and 'z'", two_inputs
        for outputs, got in (([], "got 0"), (["v0", "v1"], "got 2")):
            model = made(13, node("Relu"), node("Relu"))
            del model.graph.output[:]
            model.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs)
            yield "expected one output, " + got, model
        recursive = made(13, node("Again", domain="own"))
        recursive.functions.append(helper.make_function("own", "Again", ["a"], ["b"], [
            helper.make_node("Again", ["a"], ["b"], domain="own")], [helper.make_opsetid("", 13)]))
        yield "expected functions that do not call themselves", recursive

        def tensor(change):
            model = made(13, lambda m: m.conv(3, 4))
            change(model.graph.initializer[0])
            return model

        def huge(weight):
            weight.dims[:] = [2**31, 2**31, 2**31, 3]

        def not_there(weight):  # 2 GB of it
            weight.dims[:] = [2**20, 64, 3, 3]
            weight.raw_data = b"few"

        def external(**entries):
            def change(weight):
                weight.ClearField("raw_data")
                weight.data_location = TensorProto.EXTERNAL
                for key, value in entries.items():
                    weight.external_data.add(key=key, value=value)
            return change

        def negative(weight):
            weight.dims[0] = -4

        def words(weight):
            weight.data_type = TensorProto.STRING

        def above_all_weights(weight):
            weight.dims[:] = [2**20, 2**11, 1, 1]

        yield "expected a tensor of at most 2^30 numbers", tensor(huge)
        yield "expected a tensor of at most 2^30 numbers", tensor(above_all_weights)
        yield "Conv 'Conv_0' (opset 13): expected 2415919104 bytes in tensor 'conv.weight', got 3", tensor(not_there)
        yield "expected a tensor of at most 2^30 numbers, got an extent of -4", tensor(negative)
        yield "Conv 'Conv_0' (opset 13): expected a tensor of floats or whole numbers, got type 8", tensor(words)
        no_name = made(13, lambda m: m.add("Constant", value=helper.make_tensor("", TensorProto.STRING, [1], [b"a"])),
                       lambda m: m.add("Add", "x", m.last))
        yield "Constant 'Constant_0' (opset 13): expected a tensor of floats or whole numbers, got type 8", no_name
        for location in ("../secret.bin", "/etc/passwd", "", "a/../../secret.bin"):
            yield "expected a data file in the model's folder", tensor(external(location=location))
        yield "expected a data file that is there", tensor(external(location="missing.bin"))
        yield "at 0 of 'short.bin', got a file of 5", tensor(external(location="short.bin"))
        yield "at 99999999999999 of 'short.bin'", tensor(external(location="short.bin", offset="99999999999999"))
        yield "expected a data file in the model's folder, not a link out of it,", tensor(external(location="link.bin"))

    def test_what_is_refused_says_why(self):
        self.write("short.bin", b"12345")
        os.symlink("/etc/passwd", self.path("link.bin"))
        cases = list(self.refusals())
        images = [np.zeros((3, 12, 11), np.float32)]
        for (part, _), (line, _) in zip(cases, self.run_all([model for _, model in cases], images)):
            self.assertTrue(line.startswith("4 [onnx] "), f"{line}, not {part}")
            self.assertIn(part, line)

    def test_damaged_files_are_refused(self):
        builder = Builder(13)
        heads(builder)
        whole = builder.model().SerializeToString()
        damaged = [whole[:n] for n in range(1, len(whole), max(1, len(whole) // 150))]
        damaged += [b"", b"not a model", b"\x3a\x00" * 1000, bytes(1000)]
        for i in range(150):
            broken = bytearray(whole)
            broken[i * len(whole) // 150] ^= 1 << (i % 8)
            damaged.append(bytes(broken))
        for line, _ in self.run_all(damaged, [np.zeros((3, 12, 11), np.float32)]):
            self.assertRegex(line, r"^(ok|4 \[(onnx|tap)\] .*)$")
        for line, _ in self.run_all(damaged[:100], [np.zeros((3, 12, 11), np.float32)]):
            self.assertRegex(line, r"^4 \[onnx\] ")  # a part is no model

    def test_more_messages_than_a_network_has(self):
        node = b"\x0a\x00" * 9_000_000  # empty nodes
        def varint(value):
            out = b""
            while value >= 128:
                out += bytes([value & 127 | 128])
                value >>= 7
            return out + bytes([value])
        ((line, _),) = self.run_all([b"\x3a" + varint(len(node)) + node], [np.zeros(1, np.float32)])
        self.assertIn("expected at most 8000000 parts of a model", line)


@needs_no_training
@unittest.skipUnless(onnx, "no onnx or onnxruntime")
class Verb(CommandTest):
    def model(self):
        builder = Builder(13)
        heads(builder)
        return builder.model()

    def tensors(self, path):
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            return json.loads(file.read(length))

    def test_writes_a_network_and_its_weights(self):
        path = self.write("net.onnx", self.model().SerializeToString())
        out = self.path("mine")
        result = self.succeeds("import", path, "-o", out)
        self.assertEqual(result.stdout, f"{out}.net\n{out}.safetensors\n")
        self.assertIn("1 convolutions have a bias and no batch norm", result.stderr)
        with open(out + ".net") as file:
            text = file.read()
        self.assertIn("conv = conv x out=4 kernel=3 stride=2\nconv_bn = bn conv\n", text)
        self.assertEqual(self.tensors(out + ".safetensors")["conv.weight"]["shape"], [4, 3, 3, 3])
        self.succeeds("count", out + ".net")
        self.succeeds("import", path, "-o", self.path("n.txt"), "--weights", self.path("w.safetensors"))
        self.assertEqual(sorted(os.listdir(self.dir)), ["mine.net", "mine.safetensors", "n.txt", "net.onnx",
                                                       "w.safetensors"])

    def test_writes_a_tap(self):
        path = self.write("net.onnx", self.model().SerializeToString())
        result = self.succeeds("import", path, "--tap", "-o", self.path("mine.tap"), "--mean", "0.5,0.4,0.3", "--sd",
                               "0.2,0.2,0.3")
        self.assertEqual(result.stdout, self.path("mine.tap") + "\n")
        about = self.tensors(self.path("mine.tap"))["__metadata__"]
        self.assertEqual(json.loads(about["sd"]), [0.2, 0.2, 0.3])
        self.succeeds("import", path, "--tap", cwd=self.dir)
        self.assertTrue(os.path.exists(self.path("net.tap")))

    def test_the_weights_say_how_pixels_are_scaled(self):
        model, unknown = self.model(), "training scales pixels by the mean and sd of its data"

        def imported(*flags):
            path = self.write("net.onnx", model.SerializeToString())
            result = self.succeeds("import", path, "-o", self.path("mine"), *flags)
            self.succeeds("import", path, "--tap", "-o", self.path("mine.tap"), *flags)
            scale = self.tensors(self.path("mine.safetensors")).get("__metadata__")
            frozen = self.tensors(self.path("mine.tap"))["__metadata__"]
            self.assertEqual(unknown in result.stderr, scale is None)
            if scale is not None:  # as a .tap file says it
                self.assertEqual(scale, {key: frozen[key] for key in ("mean", "sd")})
            return scale and [json.loads(scale[key]) for key in ("mean", "sd")]

        self.assertIsNone(imported())
        self.assertEqual(imported("--mean", "0.4914,0.4822,0.4465", "--sd", "0.2023,0.1994,0.2010"),
                         [[0.4914, 0.4822, 0.4465], [0.2023, 0.1994, 0.201]])
        self.assertEqual(imported("--mean", "0.5,0.4,0.3"), [[0.5, 0.4, 0.3], [1, 1, 1]])
        model.producer_name = "onetap"  # of others, the names may mean something else
        for key, value in (("mean", "[0.5, 0.25, 0]"), ("sd", "[0.125, 1, 2]")):
            model.metadata_props.add(key=key, value=value)
        self.assertEqual(imported(), [[0.5, 0.25, 0], [0.125, 1, 2]])
        self.assertEqual(imported("--sd", "1,2,3"), [[0.5, 0.25, 0], [1, 2, 3]])

    def test_external_data_beside_the_model(self):
        os.mkdir(self.path("apart"))
        onnx.save_model(self.model(), self.path("apart", "net.onnx"), save_as_external_data=True, location="net.data",
                        size_threshold=0)
        self.succeeds("import", self.path("apart", "net.onnx"), "--tap", "-o", self.path("apart.tap"))
        self.write("net.onnx", self.model().SerializeToString())
        self.succeeds("import", self.path("net.onnx"), "--tap", "-o", self.path("whole.tap"))
        with open(self.path("apart.tap"), "rb") as one, open(self.path("whole.tap"), "rb") as other:
            self.assertEqual(one.read(), other.read())

    def test_a_constant_with_many_names_is_held_once(self):
        numbers, count = 2**18, 2000  # 2 GB, were each of them a copy
        builder = Builder(13)
        constant, shape = builder.floats(numbers), builder.integers(1, numbers)
        builder.add("Sum", "x", *[builder.add("Reshape", builder.add("Identity", constant), shape)
                                  for _ in range(count)])
        path = self.write("net.onnx", builder.model().SerializeToString())
        process = subprocess.Popen([ONETAP, "import", path, "-o", self.path("mine")], stderr=subprocess.PIPE, text=True)
        with process.stderr:
            message = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertIn("[onnx] Sum 'Sum_4000' (opset 13): expected input 1 to be computed", message)
        self.assertEqual(process.returncode, 4)
        self.assertLess(usage.ru_maxrss, 2**20)  # KiB

    def tap_convolutions(self, path):
        graph = json.loads(self.tensors(path)["__metadata__"]["graph"])
        return [node["name"] for node in graph["nodes"] if node["op"] == "tapconv"]

    def test_our_own_export_comes_back(self):
        subprocess.run([DUMP_NETS, self.dir, "1", "0"], check=True)
        for name in ("resnet-A", "resnet-B", "rare", "share-all"):
            for opset in (13, 20):
                made = self.path("made.onnx")
                self.succeeds("export", self.path(name + ".tap"), "--to", "onnx", "-o", made, "--opset", opset)
                self.succeeds("import", made, "--tap", "-o", self.path("again.tap"))
                # Convolutions that are mostly zeros become tap convolutions again.
                self.assertEqual(self.tap_convolutions(self.path("again.tap")),
                                 self.tap_convolutions(self.path(name + ".tap")))
                self.succeeds("export", self.path("again.tap"), "--to", "onnx", "-o", self.path("again.onnx"), "--opset",
                              opset)
                first, second = onnx.load(made), onnx.load(self.path("again.onnx"))
                # 'unread' is read by nobody, 'once' flattens a vector.
                self.assertEqual([n.op_type for n in first.graph.node if n.output[0] not in ("unread", "once")],
                                 [n.op_type for n in second.graph.node], name)
                self.assertEqual({t.name: t for t in first.graph.initializer}, {t.name: t for t in second.graph.initializer})
                about = {entry.key: entry.value for entry in first.metadata_props}
                again = {entry.key: entry.value for entry in second.metadata_props}
                self.assertEqual(again.pop("about.imported"), "made.onnx")
                self.assertEqual(about, again)

    def test_our_own_export_of_int8_comes_back(self):
        subprocess.run([DUMP_NETS, self.dir, "1", "0"], check=True)
        made, first, again = self.path("made.onnx"), self.path("int8.tap"), self.path("again.tap")
        for name in ("resnet-A", "resnet-B", "share-all"):
            self.succeeds("quantize", self.path(name + ".tap"), "--data", "shapes:train=16,test=10", "-o", first)
            self.succeeds("export", first, "--to", "onnx", "-o", made)
            result = self.succeeds("import", made, "--tap", "-o", again)
            self.assertEqual(result.stderr, "")
            with open(first, "rb") as one, open(again, "rb") as other:
                contents = [one.read(), other.read()]
            headers = [self.tensors(first), self.tensors(again)]
            self.assertEqual(headers[1]["__metadata__"].pop("about.imported"), "made.onnx")
            self.assertEqual(headers[0], headers[1], name)
            tensors = [content[8 + struct.unpack("<Q", content[:8])[0]:] for content in contents]
            self.assertEqual(tensors[0], tensors[1], name)
        result = self.succeeds("import", made, "-o", self.path("floats"))
        self.assertIn("the model is quantized: weights are the floats", result.stderr)

    def test_a_full_disk_leaves_the_files_of_before(self):
        out = self.path("mine")
        self.succeeds("import", self.write("net.onnx", self.model().SerializeToString()), "-o", out)
        def contents():
            return {path.name: path.read_bytes() for path in pathlib.Path(self.dir).iterdir()}
        larger = Builder(13)
        larger.conv(3, 256)
        path = self.write("larger.onnx", larger.model().SerializeToString())
        before = contents()
        self.refused(1, "mine.safetensors", "import", path, "-o", out, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (16384, 16384)))
        self.assertEqual(contents(), before)

    def test_errors_of_frozen_networks_name_the_file(self):
        model = self.model()
        model.producer_name = "onetap"
        for key, value in (("mean", "[0, 0]"), ("sd", "[1, 1, 1]")):
            model.metadata_props.add(key=key, value=value)
        path = self.write("net.onnx", model.SerializeToString())
        for tap in (["--tap"], []):
            self.refused(4, f"({path})", "import", path, *tap, "-o", self.path("out"))
        self.assertEqual(os.listdir(self.dir), ["net.onnx"])

    def test_bad_places_and_flags_leave_nothing(self):
        path = self.write("net.onnx", self.model().SerializeToString())
        os.mkdir(self.path("folder"))
        self.write("folder/keep", "")
        os.mkdir(self.path("other.net"))
        before = sorted(os.listdir(self.dir))
        out = self.path("out")
        self.refused(2, "got no folder " + self.path("no"), "import", path, "-o", self.path("no", "out"))
        self.refused(2, "got no folder " + self.path("no"), "import", path, "-o", out, "--weights",
                     self.path("no", "w.safetensors"))
        for flag in ("-o", "--weights"):
            self.refused(2, "expected a name, got an empty one", "import", path, flag, "")
        self.refused(2, "expected a file to write, got the folder", "import", path, "-o", self.path("other.net"))
        self.refused(2, "expected a file to write, got the folder", "import", path, "-o", out, "--weights",
                     self.path("folder"))
        self.refused(4, "missing.onnx", "import", self.path("missing.onnx"), "-o", out)
        self.refused(4, "folder", "import", self.path("folder"), "-o", out)
        self.refused(2, "--tap or --weights", "import", path, "--tap", "--weights", out)
        for tap in (["--tap"], []):
            self.refused(2, "three numbers", "import", path, *tap, "-o", out, "--mean", "1,2")
            self.refused(2, "three numbers R,G,B above 0 for --sd", "import", path, *tap, "-o", out, "--sd", "1,0,1")
        wide = Builder(13, shape=(3, "H", "W"))
        wide.add("Relu")
        open_shape = self.write("folder/open.onnx", wide.model().SerializeToString())
        self.refused(2, f"[onnx] the input: expected every extent in 1..1048576, got 2000000 ({open_shape})", "import",
                     open_shape, "-o", out, "--shape", "3x2000000x2000000")
        self.refused(2, "got --shape 3x9x9", "import", path, "-o", out, "--shape", "3x9x9")
        for shape in ("3xa", "3x32", "3x0x32", "3x-1x32", "x"):
            self.refused(2, f"[import] expected --shape CxHxW, such as 3x32x32, got '{shape}'", "import", path, "-o", out,
                         "--shape", shape)
        for numbers in ("0,1,1", "nan,1,1", "-1,1,1", "1,1,1e99"):
            self.refused(2, "three numbers R,G,B above 0 for --sd", "import", path, "--tap", "-o", out, "--sd=" + numbers)
        self.refused(2, "three numbers R,G,B for --mean", "import", path, "--tap", "-o", out, "--mean", "inf,0,0")
        self.refused(2, "expected a file to write, got the folder", "import", path, "--tap", "-o", self.path("other.net"))
        self.refused(2, "got " + path + " for both", "import", path, "--tap", "-o", path)
        for name, content in (("bad", b"no model"), ("none", b""), ("cut", self.model().SerializeToString()[:-9])):
            self.refused(4, name + ".onnx", "import", self.write("folder/" + name + ".onnx", content), "-o", out)
        self.assertEqual(sorted(os.listdir(self.dir)), before)

    def test_help_says_how(self):
        self.assertIn("onetap train --arch mine.net --init mine.safetensors --method sal",
                      onetap("import", "--help").stdout)


if __name__ == "__main__":
    if onnx is None:
        print("skipped: no onnx, numpy or onnxruntime")
        sys.exit(77)
    unittest.main()
