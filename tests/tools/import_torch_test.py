"""onetap import of networks that PyTorch exported, by both of its exporters: logits against ONNX Runtime's.

    ONETAP_TORCH_PYTHON=venv/bin/python RUN_ONNX=... python3 import_torch_test.py

The interpreter (the one that ONETAP_TORCH_PYTHON or else ONETAP_PYTHON names, or python3) needs torch 2.x, torchvision,
onnxscript, onnx and onnxruntime: gigabytes, so './run test' installs them in CI alone. Without them the exit code is 77.
"""
import os
import subprocess
import sys
import unittest
import warnings

pythons = [os.environ.pop(name, None) for name in ("ONETAP_TORCH_PYTHON", "ONETAP_PYTHON")]
if python := pythons[0] or pythons[1]:
    os.execvp(python, [python, *sys.argv])

from support import CommandTest

try:
    import numpy as np
    import onnxruntime
    import onnxscript  # noqa: F401 (the newer exporter needs it)
    import torch
    import torchvision
    HAS_TORCH = int(torch.__version__.split(".")[0]) >= 2
except ImportError:
    HAS_TORCH = False

RUN_ONNX = os.environ.get("RUN_ONNX", "run_onnx")
TOLERANCE = 1e-4
# Rows and columns of images; with 32, the last feature maps have one pixel. The exporter by TorchScript has no pool that
# enlarges an image, as VGG's does of smaller images.
NETWORKS = {"resnet18": (32, 224), "mobilenet_v2": (32, 224), "vgg11_bn": (224,), "mobilenet_v3_small": (32, 224),
            "efficientnet_b0": (32, 224), "squeezenet1_1": (32, 224), "by_hand": (32,)}
# The last keeps batch norms apart, as training wants them.
EXPORTERS = {
    "TorchScript": {"dynamo": False, "opset_version": 13},
    "dynamo": {"dynamo": True, "opset_version": 18},
    "TorchScript, batch norms kept": {"dynamo": False, "opset_version": 17, "do_constant_folding": False,
                                      "training": 1},  # PRESERVE
}


def by_hand():
    """What networks of repositories write themselves: a shortcut without weights, hardswish, gates, heads."""
    nn, F = torch.nn, torch.nn.functional

    class ByHand(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.conv2, self.conv3 = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, 2, 1), nn.Conv2d(16, 16, 3)
            self.bn1, self.bn2 = nn.BatchNorm2d(8), nn.BatchNorm2d(16)
            self.squeeze, self.excite = nn.Conv2d(16, 4, 1), nn.Conv2d(4, 16, 1)
            self.norm1, self.norm2 = nn.BatchNorm1d(16), nn.BatchNorm1d(20)
            self.fc1, self.fc2 = nn.Linear(16, 20), nn.Linear(20, 10)

        def forward(self, x):
            x = self.bn1(self.conv1(x))
            x = x * F.relu6(x + 3) / 6
            x = F.relu(self.bn2(self.conv2(x)) + F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 4, 4)))
            x = self.conv3(F.pad(x, (0, 1, 2, 0)))
            gate = self.excite(F.relu(self.squeeze(F.adaptive_avg_pool2d(x, 1))))
            x = x * (F.relu6(gate + 3) / 6)
            x = self.norm1(x.mean(3).mean(2))
            x = self.fc1(F.dropout(x, training=self.training))
            x = self.fc2(self.norm2(x * (F.relu6(x + 3) * (1 / 6))))
            return x.unsqueeze(-1).unsqueeze(-1).squeeze(-1).squeeze(-1)
    return ByHand()


@unittest.skipUnless(HAS_TORCH, "no PyTorch 2")
class Exported(CommandTest):
    def network(self, name):
        torch.manual_seed(1)
        network = (by_hand() if name == "by_hand" else getattr(torchvision.models, name)(num_classes=100)).eval()
        for module in network.modules():  # statistics as after a training
            if isinstance(module, (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d)):
                module.running_mean.uniform_(-0.3, 0.3)
                module.running_var.uniform_(0.5, 2)
                module.weight.data.uniform_(0.5, 1.5)
                module.bias.data.uniform_(-0.2, 0.2)
        return network

    def test_logits_are_those_of_onnx_runtime(self):
        for name, side in ((name, side) for name, sides in NETWORKS.items() for side in sides):
            network = self.network(name)
            x = np.random.default_rng(1).standard_normal((2, 3, side, side)).astype(np.float32)
            x.tofile(self.path("x.bin"))
            for exporter, options in EXPORTERS.items():
                model = self.path("model.onnx")
                options = dict(options)
                if "training" in options:
                    options["training"] = torch.onnx.TrainingMode.PRESERVE
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    torch.onnx.export(network, (torch.from_numpy(x[:1]),), model, verbose=False, **options)
                result = subprocess.run([RUN_ONNX], input=f"{model} {self.path('x.bin')} {self.path('y.bin')}\n", text=True,
                                        stdout=subprocess.PIPE, check=True)
                self.assertEqual(result.stdout, "ok\n", f"{name}, {side}x{side}, {exporter}")
                session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
                source = session.get_inputs()[0].name
                expected = np.concatenate([session.run(None, {source: image[None]})[0] for image in x])
                got = np.fromfile(self.path("y.bin"), np.float32).reshape(2, *expected.shape)
                fast, plain = (float(np.abs(values - expected).max()) for values in got)
                print(f"{name}, {side}x{side}, {exporter}: logits up to {np.abs(expected).max():.3g}, differences {fast:.1e} (fast), "
                      f"{plain:.1e} (form for training)", flush=True)
                self.assertLessEqual(max(fast, plain), TOLERANCE, f"{name}, {side}x{side}, {exporter}")


if __name__ == "__main__":
    if not HAS_TORCH:
        print("skipped: no PyTorch 2 with torchvision, onnxscript and onnxruntime")
        sys.exit(77)
    unittest.main()
