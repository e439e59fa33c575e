#!/usr/bin/env python3
"""Trains a PyTorch network in a plain PyTorch loop, prunes it to one tap per kernel slice and writes a .tap file.

    python3 -m venv venv && . venv/bin/activate
    pip install . torch                                  # in the folder of onetap
    python3 examples/cifar10_pytorch.py DATA --download  # downloads CIFAR-10 into the folder DATA, unless it is there
    python3 examples/cifar10_pytorch.py DATA             # a folder with CIFAR-10's binary files
    python3 examples/cifar10_pytorch.py                  # drawn images instead, to try it

1. trains a small dense network,
2. converts its 3x3 convolutions to Shift Attention Layers; at first they compute the same function,
3. continues the training while the temperature falls, and for the last fifth of the steps with fixed taps,
4. freezes the network to a .tap file and runs it without PyTorch.

A table shows the accuracy after every stage.
"""

import argparse
import hashlib
import math
import os
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import onetap
import onetap.torch as sal

CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
MEAN, SD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
SHA256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
TRAIN_FILES, TEST_FILES = [f"data_batch_{i}.bin" for i in range(1, 6)], ["test_batch.bin"]


# %% Data: bytes [images, 3, 32, 32] and labels

def folder_of_files(folder):
    return next((path.parent for path in sorted(folder.rglob(TEST_FILES[0]))), folder)


def download_cifar10(folder):
    """Downloads CIFAR-10's binary files (170 MB) into a folder, unless it has them. The archive is checked first."""
    wanted = TRAIN_FILES + TEST_FILES
    if all((folder_of_files(folder) / name).is_file() for name in wanted):
        return
    folder.mkdir(parents=True, exist_ok=True)
    # The files get their names when all of them are whole.
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        archive = Path(temporary) / "archive"
        print(f"downloading {URL}", flush=True)
        digest = hashlib.sha256()
        with urllib.request.urlopen(URL) as source, archive.open("wb") as file:
            while part := source.read(1 << 20):
                digest.update(part)
                file.write(part)
        if digest.hexdigest() != SHA256:
            raise SystemExit(f"expected SHA-256 {SHA256}, got {digest.hexdigest()} ({URL})")
        with tarfile.open(archive) as files:
            for member in files:
                name = Path(member.name).name
                if member.isfile() and name in wanted:
                    (Path(temporary) / name).write_bytes(files.extractfile(member).read())
        for name in wanted:
            os.replace(Path(temporary) / name, folder / name)


def read_cifar10(folder):
    def read(names):
        records = np.concatenate([np.fromfile(folder / name, np.uint8).reshape(-1, 3073) for name in names])
        return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].astype(np.int64)

    folder = folder_of_files(folder)
    return read(TRAIN_FILES), read(TEST_FILES)


def draw_stripes(count, seed):
    """Stripes in ten directions (the classes), with random phase, colour and noise."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, count)
    angle = labels * np.pi / 10 + random.normal(0, 0.05, count)
    y, x = np.mgrid[0:32, 0:32]
    wave = np.cos(0.9 * (np.cos(angle)[:, None, None] * x + np.sin(angle)[:, None, None] * y)
                  + random.uniform(0, 6.3, count)[:, None, None])
    colour = random.uniform(20, 60, (count, 3, 1, 1))
    images = 128 + colour * wave[:, None] + random.normal(0, 40, (count, 3, 32, 32))
    return np.clip(images, 0, 255).astype(np.uint8), labels


def planes(images):
    """The input of the network: (value / 255 - mean) / sd."""
    scale = torch.tensor(SD).view(3, 1, 1)
    return (torch.from_numpy(images).float() / 255 - torch.tensor(MEAN).view(3, 1, 1)) / scale


# %% The network: plain PyTorch, independent of onetap

class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.short(x))


def make_network(width):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
        Block(width, 2 * width, 2), Block(2 * width, 4 * width, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, 10))


# %% Training and testing

def train(network, images, labels, epochs, rate, schedule_temperature, mirror):
    """SGD with a cosine schedule; images are shifted by up to 4 pixels and, if that keeps their class, mirrored."""
    batch = 128
    steps = epochs * math.ceil(len(images) / batch)
    optimiser = torch.optim.SGD(network.parameters(), rate, momentum=0.9, weight_decay=5e-4)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    # After 80 % of the steps the taps are fixed: the kept weights adapt to the loss of the others.
    temperature = sal.TemperatureSchedule(network, steps, harden=0.8) if schedule_temperature else None
    network.train()
    for epoch in range(epochs):
        start, total = time.time(), 0.0
        for chosen in torch.randperm(len(images)).split(batch):
            top, left = torch.randint(0, 9, (2,)).tolist()
            x = F.pad(planes(images[chosen.numpy()]), (4, 4, 4, 4))[:, :, top:top + 32, left:left + 32]
            if mirror and torch.rand(()) < 0.5:
                x = x.flip(3)
            loss = F.cross_entropy(network(x), torch.from_numpy(labels[chosen.numpy()]), label_smoothing=0.1)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            rates.step()
            if temperature:
                temperature.step()
            total += loss.item() * len(chosen)
        falling = ""
        if temperature:
            falling = ", taps fixed" if temperature.is_hard else f", T {temperature.temperature:.3g}"
        print(f"  epoch {epoch + 1}/{epochs}: loss {total / len(images):.3f}{falling}, {time.time() - start:.0f} s",
              flush=True)


def accuracy(run, images, labels):
    correct = sum(int((np.asarray(run(images[i:i + 500])).argmax(1) == labels[i:i + 500]).sum())
                  for i in range(0, len(images), 500))
    return 100 * correct / len(images)


def in_pytorch(network):
    network.eval()
    with torch.no_grad():
        return lambda images: network(planes(images)).detach().numpy()


# %% The program

def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, help="folder of CIFAR-10's binary files")
    parser.add_argument("--download", action="store_true", help="download the files to that folder, unless it has them")
    parser.add_argument("--epochs", type=int, nargs=2, default=(3, 6), metavar=("DENSE", "SAL"))
    parser.add_argument("--width", type=int, default=16, help="channels of the first convolution")
    parser.add_argument("--images", type=int, default=50000, help="training images to use")
    parser.add_argument("--share", type=int, nargs=2, default=(4, 4), metavar=("OUTPUTS", "INPUTS"))
    parser.add_argument("--out", type=Path, default=Path("cifar10.tap"))
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes: few images and epochs")
    given = parser.parse_args()
    torch.manual_seed(0)
    if given.download:
        if not given.data:
            parser.error("--download: expected the folder DATA, got none")
        download_cifar10(given.data)
    if given.data:
        (images, labels), (test_images, test_labels) = read_cifar10(given.data)
    else:
        (images, labels), (test_images, test_labels) = draw_stripes(6000, 1), draw_stripes(1000, 2)
    if given.quick:
        images, labels, given.epochs, given.width = images[:1200], labels[:1200], (2, 4), 8
        test_images, test_labels = test_images[:300], test_labels[:300]
    images, labels = images[:given.images], labels[:given.images]
    stages = []

    def test(stage, run):
        stages.append((stage, accuracy(run, test_images, test_labels)))
        print(f"{stage}: {stages[-1][1]:.2f} %", flush=True)

    print("training the dense network")
    network = make_network(given.width)
    train(network, images, labels, given.epochs[0], 0.1, False, given.data is not None)
    test("dense", in_pytorch(network))

    print("training with Shift Attention Layers")
    network = sal.convert(network, share=tuple(given.share))
    test("converted", in_pytorch(network))
    train(network, images, labels, given.epochs[1], 0.05, True, given.data is not None)
    test("soft", in_pytorch(network))
    with sal.hard(network):
        test("hard", in_pytorch(network))

    example = planes(test_images[:8])
    difference = sal.freeze(network, example, given.out, classes=CLASSES if given.data else None, mean=MEAN, sd=SD)
    weights = sum(p.numel() for p in sal.harden(network).parameters())
    print(f"{given.out}: {os.path.getsize(given.out)} bytes for {weights} weights, {4 * weights} bytes dense; "
          f"outputs within {difference:.1e}")
    with onetap.Model(given.out, batch=128) as model:
        # Pixels as read from a file: the model normalises them.
        test("frozen", lambda pixels: model(pixels.transpose(0, 2, 3, 1)))
        print(model.predict(test_images[0].transpose(1, 2, 0), top=2))

    print("\nstage      accuracy")
    for stage, percent in stages:
        print(f"{stage:9s}  {percent:6.2f} %")


if __name__ == "__main__":
    main()
