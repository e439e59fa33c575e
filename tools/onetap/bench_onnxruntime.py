# Runs an ONNX model in turns: reads a number of repetitions from stdin, answers with the nanoseconds that each took.
# usage: MODEL.onnx INPUT.bin THREADS, the input being floats of the model's input shape, batch first.
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
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
image = session.get_inputs()[0]
x = numpy.fromfile(data, dtype=numpy.float32).reshape([-1] + image.shape[1:])
feed = {image.name: x}
outputs = session.run(None, feed)[0]
print("ready", onnxruntime.__version__, *outputs.ravel()[:1000].tolist(), flush=True)
for line in sys.stdin:
    times = []
    for _ in range(int(line)):
        start = time.perf_counter_ns()
        session.run(None, feed)
        times.append(time.perf_counter_ns() - start)
    print(*times, flush=True)
