# Runs an ONNX model in turns: reads a number of repetitions from stdin, answers with the nanoseconds that each took.
# usage: MODEL.onnx INPUT.bin THREADS [int8 IMAGES.bin], the input being floats of the model's input shape, batch first.
# With int8 the model is quantized first, as onnxruntime does it, calibrated on the images.
import sys
import time

try:
    import numpy
    import onnxruntime
except ImportError as problem:
    print("missing", problem, flush=True)
    sys.exit(0)

model, data, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
options.inter_op_num_threads = 1
options.log_severity_level = 3
if len(sys.argv) > 4:
    try:
        from onnxruntime import quantization
        from onnxruntime.quantization.shape_inference import quant_pre_process
    except ImportError as problem:
        print("missing", problem, flush=True)
        sys.exit(0)
    import logging

    logging.disable(logging.WARNING)
    shape = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).get_inputs()[0]
    images = numpy.memmap(sys.argv[5], dtype=numpy.float32, mode="r").reshape([-1, 1] + shape.shape[1:])

    class Images(quantization.CalibrationDataReader):
        def __init__(self):
            self.rest = iter(images)

        def get_next(self):
            image = next(self.rest, None)
            return None if image is None else {shape.name: numpy.array(image)}

    quant_pre_process(model, model + ".ready", skip_symbolic_shape=True)
    quantization.quantize_static(model + ".ready", model + ".int8", Images(),
                                 quant_format=quantization.QuantFormat.QDQ, per_channel=True,
                                 activation_type=quantization.QuantType.QUInt8,
                                 weight_type=quantization.QuantType.QInt8)
    model += ".int8"
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
image = session.get_inputs()[0]
x = numpy.fromfile(data, dtype=numpy.float32).reshape([-1] + image.shape[1:])
feed = {image.name: x}
# Outputs to compare: of int8 for an image of the calibration, since others may exceed the ranges found there.
outputs = session.run(None, feed if len(sys.argv) < 5 else {image.name: numpy.array(images[0])})[0]
print("ready", onnxruntime.__version__, *outputs.ravel()[:1000].tolist(), flush=True)
for line in sys.stdin:
    times = []
    for _ in range(int(line)):
        start = time.perf_counter_ns()
        session.run(None, feed)
        times.append(time.perf_counter_ns() - start)
    print(*times, flush=True)
