#!/usr/bin/env python3
"""Trains your own network in PyTorch and exports it as an ONNX model for onetap. This file does not use onetap.

    python3 examples/own_network.py DATA own.onnx --epochs 30 --device cuda     # CIFAR-10's binary files
    onetap import own.onnx -o own                                               # own.net, own.safetensors
    onetap train --arch own.net --init own.safetensors --method sal --share 4x4 --data cifar10:DATA --out runs/own
    onetap freeze runs/own -o own.tap
    onetap quantize own.tap --data cifar10:DATA -o own-int8.tap
    onetap export own-int8.tap --to c -o own-c

docs/onnx.md describes the import.
"""

import argparse
import inspect
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

MEAN, SD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)


def read_cifar10(folder):
    def read(names):
        records = np.concatenate([np.fromfile(folder / name, np.uint8).reshape(-1, 3073) for name in names])
        return torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32)), torch.from_numpy(records[:, 0].astype(np.int64))

    return read([f"data_batch_{i}.bin" for i in range(1, 6)]), read(["test_batch.bin"])


def make_network(width):
    """Plain convolutions one after another, as in VGG, each followed by a batch norm."""
    layers, inputs = [], 3
    for stage, outputs in enumerate((width, 2 * width, 4 * width)):
        for _ in range(2):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
            inputs = outputs
        if stage < 2:
            layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10))


def augmented(images):
    """Images shifted by up to 4 pixels; each is mirrored with probability 1/2."""
    count = len(images)
    rows = torch.arange(32, device=images.device) + torch.randint(0, 9, (count, 1), device=images.device)
    columns = torch.arange(32, device=images.device) + torch.randint(0, 9, (count, 1), device=images.device)
    mirrored = torch.rand(count, 1, device=images.device) < 0.5
    columns = torch.where(mirrored, columns.flip(1), columns)
    padded = F.pad(images, (4, 4, 4, 4))
    picture = torch.arange(count, device=images.device).view(-1, 1, 1)
    return padded[picture, :, rows.unsqueeze(2), columns.unsqueeze(1)].permute(0, 3, 1, 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of CIFAR-10's binary files")
    parser.add_argument("out", type=Path, help="the ONNX model to write")
    parser.add_argument("--width", type=int, default=32, help="channels of the first stage")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--images", type=int, default=50000, help="training images to use")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    torch.manual_seed(0)
    mean, sd = (torch.tensor(x, device=given.device).view(3, 1, 1) for x in (MEAN, SD))
    planes = lambda images: (images.to(given.device).float() / 255 - mean) / sd
    (images, labels), (test_images, test_labels) = read_cifar10(given.data)
    images, labels = planes(images[:given.images]), labels[:given.images].to(given.device)
    test_images, test_labels = planes(test_images), test_labels.to(given.device)

    network = make_network(given.width).to(given.device)
    batches = -(-len(images) // 128)
    optimiser = torch.optim.SGD(network.parameters(), 0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, given.epochs * batches)
    start = time.time()
    for epoch in range(given.epochs):
        network.train()
        for chosen in torch.randperm(len(images), device=given.device).split(128):
            loss = F.cross_entropy(network(augmented(images[chosen])), labels[chosen], label_smoothing=0.1)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            rates.step()
        print(f"epoch {epoch + 1}/{given.epochs}: loss {loss.item():.3f}, {time.time() - start:.0f} s", flush=True)
    network.eval()
    with torch.no_grad():
        right = sum(int((network(x).argmax(1) == y).sum()) for x, y in zip(test_images.split(500), test_labels.split(500)))
    print(f"test accuracy in PyTorch: {100 * right / len(test_images):.2f} %")

    # Batch norms are not folded into convolutions: training needs them. PyTorch 1.13 has no second exporter.
    legacy = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    torch.onnx.export(network.cpu(), (torch.randn(1, 3, 32, 32),), str(given.out), opset_version=17, **legacy,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
                      input_names=["image"], output_names=["logits"], dynamic_axes={"image": {0: "batch"}})


if __name__ == "__main__":
    main()
