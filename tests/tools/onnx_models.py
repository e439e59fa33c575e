"""ONNX models of every operator that onetap import reads, made with the onnx package."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSETS = (9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20)


class Builder:
    """A model, node by node. Names of values are numbers unless given."""

    def __init__(self, opset, shape=(3, 12, 11), batch="batch"):
        self.opset, self.shape, self.batch = opset, shape, batch
        self.random = np.random.default_rng(7)
        self.nodes, self.initialisers, self.functions = [], [], []
        self.last = "x"

    def constant(self, array, name=None):
        name = name or f"constant{len(self.initialisers)}"
        self.initialisers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def floats(self, *shape, low=-1.0, high=1.0, name=None):
        return self.constant(self.random.uniform(low, high, shape).astype(np.float32), name)

    def integers(self, *values):
        return self.constant(np.array(values, np.int64))

    def add(self, op, *inputs, name=None, outputs=1, **attributes):
        made = name or f"v{len(self.nodes)}"
        names = [made] + [f"{made}.{i}" for i in range(1, outputs)]
        self.nodes.append(helper.make_node(op, list(inputs) or [self.last] * (op != "Constant"), names, name=f"{op}_{len(self.nodes)}",
                                           **attributes))
        self.last = made
        return made

    def conv(self, inputs, outputs, kernel=3, groups=1, bias=True, name="conv", source=None, **attributes):
        rows, columns = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        weight = self.floats(outputs, inputs // groups, rows, columns, name=f"{name}.weight")
        return self.add("Conv", source or self.last, weight, *([self.floats(outputs)] if bias else []), group=groups,
                        **attributes)

    def axes(self, op, *axes, source=None, since=13, **attributes):
        """Axes are an attribute before opset `since`, then an input."""
        source = source or self.last
        if self.opset < since:
            return self.add(op, source, axes=list(axes), **attributes)
        return self.add(op, source, self.integers(*axes), **attributes)

    def model(self, extra_opsets=()):
        graph = helper.make_graph(self.nodes, "made", [helper.make_tensor_value_info("x", TensorProto.FLOAT,
                                                                                    [self.batch, *self.shape])],
                                  [helper.make_tensor_value_info(self.last, TensorProto.FLOAT, None)],
                                  self.initialisers)
        opsets = [helper.make_opsetid("", self.opset), *extra_opsets]
        return helper.make_model(graph, opset_imports=opsets, functions=self.functions, ir_version=8)


# --- one function per group of operators; each builds on the model and may look at its opset

def convolutions(m):
    m.conv(3, 8, kernel=(3, 5), pads=[1, 2, 1, 2], strides=[2, 1], name="a")
    m.conv(8, 12, groups=4, dilations=[2, 2], pads=[2, 2, 2, 2], name="b", bias=False)
    m.conv(12, 12, groups=12, pads=[0, 1, 2, 0], name="c")  # asymmetric
    m.conv(12, 6, kernel=2, auto_pad="SAME_UPPER", strides=[2, 2], name="d")
    m.conv(6, 6, kernel=2, auto_pad="SAME_LOWER", name="e")
    m.conv(6, 5, kernel=2, auto_pad="VALID", name="f")


def batch_norms(m):
    def norm(channels, epsilon, **attributes):
        m.add("BatchNormalization", m.last, m.floats(channels, low=0.5), m.floats(channels), m.floats(channels),
              m.floats(channels, low=0.3, high=2), epsilon=epsilon, **attributes)
    norm(3, 1e-3)
    m.conv(3, 6, bias=False)
    norm(6, 1e-5, momentum=0.9)
    m.add("Relu")
    m.conv(6, 4, name="second")
    norm(4, 0.25, **({"training_mode": 0} if m.opset >= 14 else {}))


def functions(m):
    m.add("Relu")
    if m.opset < 11:
        m.add("Clip", m.last, min=0.0, max=6.0)
        m.add("Clip", m.last, min=0.0)
    else:
        m.add("Clip", m.last, m.constant(np.float32(0)), m.constant(np.float32(6)))
        m.add("Clip", m.last, m.constant(np.float32(0)))
    m.conv(3, 4)
    m.add("HardSigmoid", m.last, alpha=1 / 6, beta=0.5)
    m.conv(4, 4, name="next")
    x = m.last
    m.add("Mul", m.add("HardSigmoid", x, alpha=1 / 6), x)  # hardswish before opset 14
    if m.opset >= 14:
        m.add("HardSwish")
    x = m.conv(4, 4, name="third")
    m.add("Mul", x, m.add("Sigmoid", x))  # silu
    m.add("Sigmoid")


def squeeze_excite(m):
    x = m.conv(3, 8, pads=[1, 1, 1, 1])
    m.add("GlobalAveragePool")
    m.conv(8, 2, kernel=1, name="reduce")
    m.add("Relu")
    m.conv(2, 8, kernel=1, name="expand")
    m.add("Mul", m.add("Sigmoid"), x)
    m.axes("ReduceMean", 2, 3, since=18, keepdims=0)


def sums_and_products(m):
    x = m.conv(3, 4)
    y = m.conv(3, 4, source="x", name="other")
    m.add("Add", x, y)
    m.add("Sum", m.last, x, y)
    m.add("Mul", m.last, m.floats(1, 4, 1, 1))
    m.add("Add", m.floats(4, 1, 1), m.last)
    m.add("Sub", m.last, m.constant(np.float32(0.5)))
    m.add("Div", m.last, m.floats(4, 1, 1, low=1, high=3))
    m.add("Sub", m.constant(np.float32(0.25)), m.last)
    m.add("Mul", m.last, x)
    m.add("Concat", m.last, x, m.last, axis=1)
    m.add("Concat", m.last, y, axis=-3)


def pools(m):
    m.add("MaxPool", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    m.add("MaxPool", kernel_shape=[2, 2], pads=[0, 0, 1, 1])
    if m.opset >= 10:
        m.add("MaxPool", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    m.add("AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    m.add("AveragePool", kernel_shape=[2, 2], pads=[0, 1, 0, 0], count_include_pad=1)
    m.add("AveragePool", kernel_shape=[2, 2])
    m.add("MaxPool", kernel_shape=[1, 1])


def heads(m):
    m.conv(3, 4, strides=[2, 2])
    m.axes("ReduceMean", -1, -2, since=18, keepdims=1)
    m.add("Flatten", axis=1)
    m.add("Dropout")
    m.add("Gemm", m.last, m.floats(4, 6), m.floats(6), alpha=0.5, beta=2.0)
    m.add("Relu")
    m.add("MatMul", m.last, m.floats(6, 5))
    m.add("Add", m.last, m.floats(5))
    m.add("BatchNormalization", m.last, m.floats(5, low=0.5), m.floats(5), m.floats(5), m.floats(5, low=0.3, high=2))
    m.add("Relu")
    m.add("Gemm", m.last, m.floats(3, 5), *([m.floats(3)] if m.opset < 11 else []), transB=1)
    m.add("Identity")


def shape_chain(m):
    """What view(x.size(0), -1) becomes."""
    x = m.conv(3, 2)
    m.add("Shape", x)
    m.add("Gather", m.last, m.constant(np.array(0, np.int64)), axis=0)
    size = m.axes("Unsqueeze", 0)
    m.add("Concat", size, m.integers(-1), axis=0)
    m.add("Reshape", x, m.last)
    m.add("Constant", value=numpy_helper.from_array(np.array([0, -1], np.int64)))
    m.add("Reshape", m.nodes[-2].output[0], m.last)
    m.axes("Unsqueeze", 2, 3)
    m.axes("Squeeze", 3, 2)


def pads_and_slices(m):
    if m.opset < 11:
        m.add("Pad", m.last, pads=[0, 0, 1, 1, 0, 0, 1, 1], mode="constant", value=0.0)
        m.conv(3, 4)
        m.add("Pad", m.last, pads=[0, 0, 0, 2, 0, 0, 1, 0])
        m.add("Pad", m.last, pads=[0, 1, 0, 0, 0, 2, 0, 0])
    else:
        m.add("Pad", m.last, m.integers(0, 0, 1, 1, 0, 0, 1, 1), mode="constant")
        m.conv(3, 4)
        m.add("Pad", m.last, m.integers(0, 0, 0, 2, 0, 0, 1, 0), m.constant(np.float32(0)))
        m.add("Pad", m.last, m.integers(0, 1, 0, 0, 0, 2, 0, 0))
    if m.opset >= 18:
        m.add("Pad", m.last, m.integers(1, 2, 0, 1), "", m.integers(2, -1))
    if m.opset >= 10:
        m.add("Slice", m.last, m.integers(0, 0), m.integers(2**31, 2**31), m.integers(2, 3), m.integers(2, 3))


def shared_values(m):
    """Two names of one value: what one reader adds must not reach the other."""
    weight = m.floats(4, 3, 3, 3, name="layer.weight")
    x = m.add("Conv", "x", weight)
    twin = m.add("Conv", "x", weight)  # shared weights
    same = m.add("Identity", x)
    m.add("Add", same, m.floats(4, 1, 1))
    m.add("Add", m.last, x)
    m.add("Add", m.last, twin)


def one_pixel(m):
    """Squeeze-excite where the image has shrunk to one pixel: it has as many numbers as its gate."""
    x = m.conv(3, 8, kernel=(12, 11))
    m.add("GlobalAveragePool")
    m.conv(8, 8, kernel=1, name="expand")
    x = m.add("Mul", m.add("Sigmoid"), x)
    m.add("Add", m.add("Mul", x, m.conv(8, 8, kernel=1, name="other", source=m.add("GlobalAveragePool"))), x)
    m.add("Flatten")


def padded_by_a_list(m):
    """F.pad(x, (0, 1, 2, 0)) and F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 1, 1)) as the exporter by TorchScript writes
    them: the list goes from the last extent to the first, and is turned round."""
    def pad(*given):
        more = m.add("ConstantOfShape", m.integers(8 - len(given)), value=numpy_helper.from_array(np.zeros(1, np.int64)))
        pairs = m.add("Reshape", m.add("Concat", m.integers(*given), more, axis=0), m.integers(-1, 2))
        turned = m.add("Slice", pairs, m.integers(-1), m.integers(-2**63 + 1), m.integers(0), m.integers(-1))
        flat = m.add("Reshape", m.add("Transpose", turned, perm=[1, 0]), m.integers(-1))
        return m.add("Cast", flat, to=TensorProto.INT64)
    x = m.conv(3, 4)
    m.add("Pad", x, pad(0, 1, 2, 0))
    m.conv(4, 4, name="next")
    m.add("Slice", m.last, m.integers(0, 0), m.integers(2**31, 2**31), m.integers(2, 3), m.integers(2, 2))
    m.add("Pad", m.last, pad(0, 0, 0, 0, 1, 1))


def relu6(m, x, how):
    six, zero = m.constant(np.float32(6)), m.constant(np.float32(0))
    if how == "min":
        return m.add("Min", m.add("Relu", x), six)
    if how == "max":
        return m.add("Min", six, m.add("Max", x, zero))
    return m.add("Clip", x, min=0.0, max=6.0) if m.opset < 11 else m.add("Clip", x, zero, six)


def hard_functions(m):
    """Hardsigmoid and hardswish as code has them that writes them by hand: of images, of gates and of vectors."""
    six, sixth = m.constant(np.float32(6)), m.constant(np.float32(1 / 6))
    def shifted(x, how="clip"):
        return relu6(m, m.add("Add", x, m.constant(np.float32(3))), how)
    x = m.conv(3, 4)
    x = m.add("Div", m.add("Mul", x, shifted(x)), six)
    x = m.conv(4, 4, source=m.add("Mul", x, m.add("Mul", shifted(x, "min"), sixth)), name="a")
    x = m.conv(4, 4, source=m.add("Div", shifted(x, "max"), six), name="b")
    gated = m.add("Mul", x, shifted(m.conv(4, 4, kernel=1, source=x, name="c")))
    x = m.add("Div", m.add("Div", gated, six), six)  # a sixth of what already is a product of a gate
    m.add("GlobalAveragePool", x)
    x = m.add("Mul", m.add("Div", shifted(m.conv(4, 4, kernel=1, name="gate")), six), x)
    gate = shifted(m.conv(4, 4, kernel=1, name="other", source=m.add("GlobalAveragePool", x), bias=False))
    x = m.add("Div", m.add("Mul", gate, x), six)
    m.axes("ReduceMean", 3, since=18, keepdims=0)
    m.axes("ReduceMean", 2, since=18, keepdims=0)
    x = m.add("Gemm", m.last, m.floats(4, 6), m.floats(6))
    m.add("Div", m.add("Mul", x, shifted(x)), six)
    m.add("Gemm", m.last, m.floats(6, 5), m.floats(5))


def vectors(m):
    """Batch norms, factors and terms of vectors that only linear layers behind them can take in."""
    def norm(channels):
        m.add("BatchNormalization", m.last, m.floats(channels, low=0.5), m.floats(channels), m.floats(channels),
              m.floats(channels, low=0.3, high=2))
    m.conv(3, 4)
    m.axes("ReduceMean", 2, since=18, keepdims=1)
    m.axes("ReduceMean", -1, since=18, keepdims=1)
    m.axes("Squeeze", -1 if m.opset >= 11 else 3)
    m.axes("Squeeze", -1 if m.opset >= 11 else 2)
    norm(4)
    m.add("Mul", m.last, m.floats(4))
    m.add("Dropout")
    m.add("MatMul", m.last, m.floats(4, 6))
    x = m.add("Relu")
    norm(6)
    both = m.last
    one = m.add("Gemm", both, m.floats(5, 6), m.floats(5), transB=1)
    m.add("Add", one, m.add("MatMul", both, m.floats(6, 5)))
    m.add("Concat", m.last, x, axis=-1)


# An image of one pixel stays an image for what reads it, also where no layer takes in a factor or a term.

def one_pixel_hard_swish(m):
    """The head of MobileNetV3 as code has it that writes its functions by hand."""
    m.conv(3, 4)
    m.add("GlobalAveragePool")
    x = m.conv(4, 6, kernel=1, name="head")
    m.add("Mul", x, relu6(m, m.add("Add", x, m.constant(np.float32(3))), "clip"))
    m.add("Div", m.last, m.constant(np.float32(6)))
    m.conv(6, 5, kernel=1, name="next")


def one_pixel_norm(m):
    m.conv(3, 4)
    m.add("GlobalAveragePool")
    m.add("BatchNormalization", m.last, m.floats(4, low=0.5), m.floats(4), m.floats(4), m.floats(4, low=0.3, high=2))
    m.conv(4, 6, kernel=1, name="next")


def one_pixel_factors(m):
    m.conv(3, 4)
    m.add("GlobalAveragePool")
    x = m.add("Mul", m.last, m.floats(1, 4, 1, 1))  # has two readers
    one = m.conv(4, 5, kernel=1, name="one", source=m.add("Add", x, m.floats(1, 4, 1, 1)))
    m.add("Add", m.conv(4, 5, kernel=1, name="two", source=m.add("Sub", x, m.floats(4, 1, 1))), one)


def softmax_at_the_end(m):
    m.conv(3, 4)
    m.add("GlobalAveragePool")
    m.add("Flatten")


def constant_lists(m):
    """Shapes that are computed by transposes and slices of constants, and by Shape with a start and an end."""
    x = m.conv(3, 4, kernel=(12, 11))
    shape = m.integers(0, 4)
    if m.opset >= 10:
        numbers = m.constant(np.arange(24, dtype=np.int64).reshape(2, 3, 4))
        m.add("Transpose", numbers, perm=[2, 0, 1])
        m.add("Slice", m.last, m.integers(-1, 0), m.integers(-2**63, 2**63 - 1), m.integers(0, 2), m.integers(-3, 2))
        m.add("Slice", m.last, m.integers(1, 7), m.integers(2, -2), m.integers(1, -1), m.integers(2**62, -1))
        shape = m.add("Sub", m.add("Reshape", m.last, m.integers(-1)), m.integers(23, 16))
    if m.opset >= 15:
        shape = m.add("Concat", m.integers(0), m.add("Shape", x, start=1, end=-2), axis=-1)
        ones = m.add("Shape", m.constant(np.zeros((1, 1, 4), np.int64)), start=-9, end=2)
        shape = m.add("Mul", shape, ones)
    m.add("Reshape", x, shape)
    m.add("Gemm", m.last, m.floats(4, 5), m.floats(5))


CASES = [convolutions, batch_norms, functions, squeeze_excite, sums_and_products, pools, heads, shape_chain,
         pads_and_slices, shared_values, softmax_at_the_end, one_pixel, one_pixel_hard_swish,
         one_pixel_norm, one_pixel_factors, constant_lists, hard_functions, vectors]
