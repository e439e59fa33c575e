"""Reads a .tap file with only numpy: python3 read_tap.py model.tap"""
import json, struct, sys
import numpy as np

raw = open(sys.argv[1], "rb").read()
start = 8 + struct.unpack_from("<Q", raw)[0]
header = json.loads(raw[8:start])
types = {"F32": "<f4", "F16": "<f2", "U8": "u1", "I8": "i1", "I16": "<i2"}
metadata = header.pop("__metadata__")
tensors = {name: np.frombuffer(raw[start:][slice(*entry["data_offsets"])], types[entry["dtype"]]).reshape(entry["shape"])
           for name, entry in header.items()}
if "network" in metadata:  # int8: all layers' numbers in one tensor per kind (docs/quantization.md, docs/file-format.md)
    for line, scale in zip((line for line in metadata["network"].split("\n") if " = " in line), tensors["int8/value"]):
        print(line, f"# scale {scale:.6g}" if scale else "# no scale: fused into a later node, or floats")
    print(f"int8: {tensors['int8/weight'].size} weights kept, {tensors['int8/step'].size} outputs with a scale of their own")
    sys.exit()
graph = json.loads(metadata["graph"])
for node in [node for node in graph["nodes"] if node["op"] == "tapconv" and "kernel" in node]:
    weight, size = tensors[node["name"] + ".weight"], int(np.prod(node["kernel"]))
    dropped = node.get("dropped", 0)  # weights that are not in the file: position `size` is "none" where there are any
    width, taps = (size - (dropped == 0)).bit_length(), node["taps"]
    share = [node["out"] if part == "all" else int(part) for part in str(node["share"]).split("x")] + [1]  # outputs, inputs
    inputs = (weight.size + dropped) // (node["out"] * taps)
    groups = -(-node["out"] // share[0])
    count = groups * -(-inputs // share[1]) * taps
    bits = np.unpackbits(tensors[node["name"] + ".positions"], bitorder="little")[: count * width]
    positions = (bits.reshape(-1, width) @ (1 << np.arange(width))).reshape(groups, -1)  # [groups, blocks of inputs x taps]
    print(f"{node['name']}: {weight.size} weights kept, per position {np.bincount(positions.ravel(), minlength=size)}")
for node in [node for node in graph["nodes"] if node.get("method") == "binary"]:
    # Weight i of [out, in / groups, ...] is scale[output], negative where bit i is 1; zeros fill the last byte.
    bits = np.unpackbits(tensors[node["name"] + ".signs"], bitorder="little")
    scale = tensors[node["name"] + ".scale"]
    print(f"{node['name']}: {bits.sum()} binary weights negative, scales {scale.min():.4g} to {scale.max():.4g}")
