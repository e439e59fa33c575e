"""Opens a .tap file with numpy alone: python3 read_tap.py model.tap"""
import json, struct, sys
import numpy as np

raw = open(sys.argv[1], "rb").read()
start = 8 + struct.unpack_from("<Q", raw)[0]
header, types = json.loads(raw[8:start]), {"F32": "<f4", "F16": "<f2", "U8": "u1"}
graph = json.loads(header.pop("__metadata__")["graph"])
tensors = {name: np.frombuffer(raw[start:][slice(*entry["data_offsets"])], types[entry["dtype"]]).reshape(entry["shape"])
           for name, entry in header.items()}
for node in [node for node in graph["nodes"] if node["op"] == "tapconv" and "kernel" in node]:
    weight, size = tensors[node["name"] + ".weight"], int(np.prod(node["kernel"]))
    width, groups = (size - 1).bit_length(), -(-weight.shape[0] // node["share"])
    bits = np.unpackbits(tensors[node["name"] + ".positions"], bitorder="little")[: groups * weight[0].size * width]
    positions = (bits.reshape(-1, width) @ (1 << np.arange(width))).reshape(groups, *weight.shape[1:])
    print(f"{node['name']}: {weight.size} weights kept, per position {np.bincount(positions.ravel(), minlength=size)}")
for node in [node for node in graph["nodes"] if node.get("method") == "binary"]:
    scale, signs = tensors[node["name"] + ".scale"].astype("f4"), tensors[node["name"] + ".signs"]
    each = signs.size * 8 // node["out"]  # weights of an output: less than 8 bits are left (so with 8 outputs or more)
    bits = np.unpackbits(signs, bitorder="little")[: each * node["out"]].reshape(-1, each)
    weight = np.where(bits == 1, -scale[:, None], scale[:, None])  # [out, in / groups * rows * columns]
    print(f"{node['name']}: {weight.size} binary weights, {np.mean(weight < 0):.0%} negative, mean scale {scale.mean():.3g}")
