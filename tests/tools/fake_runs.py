"""Run directories made by hand, with plausible numbers: for tests of what reads a run."""
import json
import math
import os
import random

import support


def network_text(arch, width, method, taps=1):
    flags = ["--width", width, "--method", method] + (["--taps", taps] if method == "sal" else [])
    result = support.onetap("nets", arch, *flags, "--text")
    assert result.returncode == 0, result.stderr
    return result.stdout


def slices_of(text):
    """(layer, kernel slices) of every Shift Attention Layer of a network text."""
    channels, layers = {}, []
    for line in text.splitlines():
        name, equals, rest = line.partition(" = ")
        if not equals:
            continue
        words = rest.split()
        options = dict(word.split("=", 1) for word in words[1:] if "=" in word)
        source = next((word for word in words[1:] if word in channels), None)
        if words[0] == "input":
            channels[name] = int(words[1].split("x")[0])
        else:
            channels[name] = int(options.get("out", channels.get(source, 0)))
        if words[0] == "conv" and options.get("method") == "sal":
            layers.append((name, channels[name] * channels[source]))
    return layers


def metric_lines(epochs, total, sal, best, rng, validated=False):
    lines, wall = [], 0.0
    for epoch in range(1, epochs + 1):
        done = epoch / total
        temperature = 6.7 * (0.02 / 6.7) ** done
        rate = 0.1 * 0.1 ** int(3 * (epoch - 1) / total)
        soft = best - (best - 0.3) * math.exp(-6 * done) + rng.uniform(-0.01, 0.01) * (1 - done)
        hard = soft - (0.6 * max(0.0, 1 - 1.15 * done) ** 2 * soft if sal else 0.0)
        wall += 31.5
        shared = {"step": 391 * epoch, "epoch": epoch, "lr": rate, "temperature": temperature, "img_per_s": 1600.0}
        lines.append({**shared, "split": "train", "loss": 2.2 * math.exp(-4 * done) + 0.02,
                      "acc_soft": min(1, soft + 0.03), "acc_hard": None, "wall_s": wall - 2})
        lines.append({**shared, "split": "validation" if validated else "test", "loss": 2.0 * math.exp(-4 * done) + 0.22 + rng.uniform(0, 0.05),
                      "acc_soft": soft, "acc_hard": hard, "wall_s": wall})
    if validated and epochs == total:
        lines.append({**lines[-1], "split": "test", "acc_soft": soft - 0.02, "acc_hard": hard - 0.02})
    return lines


def attention_line(epoch, total, layers, rng):
    done = epoch / total
    items = []
    for at, (name, slices) in enumerate(layers):
        # Early layers like the centre, late ones the border, and both more so as time goes on.
        lean = (0.5 - at / max(1, len(layers) - 1)) * 1.5 * done
        weights = [math.exp(lean * (1.5 - abs(i // 3 - 1) - abs(i % 3 - 1))) * rng.uniform(0.95, 1.05)
                   for i in range(9)]
        kept = [int(slices * weight / sum(weights)) for weight in weights]
        kept[4] += slices - sum(kept)
        sure = 1 / 9 + (1 - 1 / 9) * min(1, 1.25 * done) ** 1.5
        spread = 0.03 + 0.2 * done * (1 - done)
        bins = [math.exp(-((i + 0.5) / 20 - sure) ** 2 / (2 * spread ** 2)) for i in range(20)]
        agreement = None if epoch == 1 else 1 - 0.5 * math.exp(-4 * done) * rng.uniform(0.8, 1)
        items.append({"name": name, "kernel": [3, 3], "mean_p": [weight / sum(weights) for weight in weights],
                      "kept": kept, "max_p": [value / sum(bins) for value in bins], "agreement": agreement})
    return {"step": 391 * epoch, "epoch": epoch, "temperature": 6.7 * (0.02 / 6.7) ** done, "layers": items}


def write_lines(path, lines):
    with open(path, "w") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def make_run(path, arch="resnet20", width=16, method="sal", taps=1, epochs=40, total=40, best=0.92, data="cifar10",
             seed=1, validated=False, limit=0, ended=False):
    """A run directory; `epochs` of `total` are done. `validated`: with a validation set. It has no checkpoints; if it
    `ended` early, the state of one."""
    rng = random.Random(seed)
    text = network_text(arch, width, method, taps)
    os.makedirs(path)
    with open(os.path.join(path, "config.toml"), "w") as file:
        file.write(f'arch = "{arch}"\nwidth = {width}\nmethod = "{method}"\ntaps = {taps}\nepochs = {total}\n'
                   f'data = "{data}"\nlimit = {limit}\n\n[provenance]\nonetap = "test"\n')
    with open(os.path.join(path, "network.txt"), "w") as file:
        file.write(text)
    if epochs > 0:
        write_lines(os.path.join(path, "metrics.jsonl"), metric_lines(epochs, total, method == "sal", best, rng, validated))
        layers = slices_of(text)
        if layers:
            write_lines(os.path.join(path, "attention.jsonl"),
                        [attention_line(epoch, total, layers, rng) for epoch in range(1, epochs + 1)])
    if ended:
        write_state(path, ended=True, step=391 * epochs)
    return path


def write_state(path, **values):
    """The state of a checkpoint, as an older version wrote it: without checksums."""
    state = {"format": 1, "step": 0, "epoch_logged": True, "loss_sum": 0, "right": 0, "seen": 0, "temperature": 1,
             "wall_s": 1, "metrics_bytes": 0, "attention_bytes": 0, "best_accuracy": 0.5, "best_step": 1, **values}
    os.makedirs(os.path.join(path, "checkpoints", "last"))
    with open(os.path.join(path, "checkpoints", "last", "state.json"), "w") as file:
        json.dump(state, file)
