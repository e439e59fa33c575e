"""The layer against PyTorch: forward and backward, on inputs drawn anew at every run.

usage: peer_test.py DUMP_LAYER [REFERENCE.py]

The formulas below are the method's own: N = A / sd(A), P = softmax(N / T), y = conv(x, W * P), and with several taps
the elementwise maximum of the softmaxes. Straight-through has the hard max in the place of P, and P's gradient. The layer of
onetap.torch (python/onetap) is held against the same numbers, more closely: it does the same in the same order.
REFERENCE.py is another implementation with a class Conv to hold against.
"""
import importlib.util
import json
import os
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

TOLERANCE = 1e-5
PACKAGE_TOLERANCE = 1e-6

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))
import onetap.torch as sal  # noqa: E402


def read(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        buffer = file.read()
    types = {"F32": np.float32, "F64": np.float64}
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        array = np.frombuffer(buffer[begin:end], types[entry["dtype"]]).reshape(entry["shape"])
        case, key = name.split("/")
        tensors.setdefault(case, {})[key] = torch.from_numpy(array.copy())
    return tensors


def formulas(case, hard):
    stride, share, taps, temperature, share_inputs, through = case["settings"].tolist()
    x, weight, attention = (case[key].clone().requires_grad_(True) for key in ("x", "weight", "attention"))
    logits = attention if taps > 1 else attention[None]
    n = logits / logits.std(-1, keepdim=True)
    p = F.softmax(n / temperature, -1).max(0).values
    if hard or through:
        # Several taps: where two meet, the nearest runner-up takes the free place.
        score = (n - n.max(-1, keepdim=True).values).max(0).values.detach()
        one = torch.zeros_like(score).scatter_(-1, score.topk(int(taps), -1).indices, 1.0)
        p = one + (p - p.detach())
    p = p.repeat_interleave(int(share), 0)[:weight.shape[0]]
    p = p.repeat_interleave(int(share_inputs), 1)[:, :weight.shape[1]].reshape(weight.shape)
    return F.conv2d(x, weight * p, None, int(stride), 1), x, weight, attention


def reference_layer(module, case):
    """The same layer by REFERENCE.py, or nothing where it has no such layer."""
    stride, share, taps, temperature, share_inputs, through = case["settings"].tolist()
    out, inputs = case["weight"].shape[:2]
    if taps > 1 or out % share or share_inputs > 1 or through:
        return None
    layer = module.Conv(inputs, out, int(stride), kind="sal", group=int(share))
    layer.weight.data.copy_(case["weight"])
    layer.A.data.copy_(case["attention"])
    module.Temp.t = torch.tensor(temperature)
    x = case["x"].clone().requires_grad_(True)
    return layer(x), x, layer.weight, layer.A


def package_layer(case):
    """The layer of onetap.torch with the same parameters."""
    stride, share, taps, temperature, share_inputs, through = case["settings"].tolist()
    out, inputs = case["weight"].shape[:2]
    layer = sal.ShiftAttentionConv2d(
        inputs, out, 3, int(stride), 1, bias=False, taps=int(taps), share=(int(share), int(share_inputs)),
        relax="straight-through" if through else "softmax")
    layer.weight.data.copy_(case["weight"])
    layer.attention.data.copy_(case["attention"])
    sal.set_temperature(layer, temperature)
    return layer


def package_result(case):
    layer = package_layer(case)
    x = case["x"].clone().requires_grad_(True)
    return layer(x), x, layer.weight, layer.attention


def worst(case, result):
    y, x, weight, attention = result
    (y * case["probe"]).sum().backward()
    pairs = {"y": y, "grad_x": x.grad, "grad_weight": weight.grad, "grad_attention": attention.grad}
    return {name: ((case[name] - value).abs().max() / value.abs().max()).item() for name, value in pairs.items()}


def main():
    dump = sys.argv[1]
    seed = int.from_bytes(os.urandom(4), "little")
    reference = None
    if len(sys.argv) > 2:
        spec = importlib.util.spec_from_file_location("reference", sys.argv[2])
        reference = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(reference)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "layers.safetensors")
        subprocess.run([dump, path, str(seed)], check=True)
        cases = read(path)
    failures = 0
    for name, case in cases.items():
        results = {"formulas": formulas(case, False), "package": package_result(case)}
        if reference and (other := reference_layer(reference, case)):
            results["reference"] = other
        for who, result in results.items():
            errors = worst(case, result)
            most = PACKAGE_TOLERANCE if who == "package" else TOLERANCE
            failures += any(not error <= most for error in errors.values())
            print(f"{name:12s} {who:10s} " + "  ".join(f"{key} {error:.1e}" for key, error in errors.items()))
        with sal.hard(package_layer(case)) as layer:
            error = ((case["hard"] - layer(case["x"])).abs().max() / case["hard"].abs().max()).item()
        failures += not error <= PACKAGE_TOLERANCE
        print(f"{name:12s} {'package':10s} hard {error:.1e}")
        hard = formulas(case, True)[0]
        error = ((case["hard"] - hard).abs().max() / hard.abs().max()).item()
        failures += not error <= TOLERANCE
        print(f"{name:12s} {'hard':10s} y {error:.1e}")
    print(f"seed {seed}: {failures} of {len(cases)} cases beyond {TOLERANCE}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
