"""Opens a .tap file with numpy alone: python3 read_tap.py model.tap"""
import json, struct, sys
import numpy as np

with open(sys.argv[1], "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    data = file.read()
graph = json.loads(header.pop("__metadata__")["graph"])
types = {"F32": "<f4", "F16": "<f2", "U8": "u1"}
tensors = {k: np.frombuffer(data[slice(*v["data_offsets"])], types[v["dtype"]]).reshape(v["shape"]) for k, v in header.items()}
for node in (n for n in graph["nodes"] if n["op"] == "tapconv"):
    weight, size = tensors[node["name"] + ".weight"], int(np.prod(node["kernel"]))
    bits = np.unpackbits(tensors[node["name"] + ".positions"], bitorder="little")
    count, width = -(-weight.shape[0] // node["share"]) * weight.shape[1] * weight.shape[2], (size - 1).bit_length()
    positions = bits[: count * width].reshape(count, width) @ (1 << np.arange(width))
    print(node["name"], "kept per position:", np.bincount(positions, minlength=size))
print(sum(t.size for k, t in tensors.items() if k[:-6] + "positions" in tensors and k.endswith("weight")), "weights kept by tap convolutions")
