#!/usr/bin/env python3
"""Stands in for onetap in tests of `reproduce`. Trainings are those of fake_train.py, with a config.toml of the flags
that they were given; the other verbs write or print what theirs would, and note their calls in the same file."""
import json
import os
import runpy
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
verb, arguments = sys.argv[1], sys.argv[2:]


def value_after(*flags):
    return next(arguments[at + 1] for at, word in enumerate(arguments) if word in flags)


def setting(word):
    """A flag as a line of TOML."""
    key, equals, value = word[2:].partition("=")
    if not equals:
        value = "false" if key.startswith("no-") else "true"
        key = key[3:] if key.startswith("no-") else key
    elif not value.replace(".", "").replace("-", "").replace("e", "").isdigit():
        value = json.dumps(value)
    return f"{key.replace('-', '_')} = {value}\n"


def save(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


if verb == "train":
    out = value_after("--out")
    if not os.path.exists(os.path.join(out, "config.toml")):
        lines = [setting(word) for word in arguments if word.startswith("--") and word not in ("--out", "--resume")]
        save(os.path.join(out, "config.toml"), "".join(lines) + "\n[provenance]\n")
        arch = next(word[7:] for word in arguments if word.startswith("--arch="))
        if os.path.exists(arch):
            with open(arch) as file:
                save(os.path.join(out, "network.txt"), file.read())
    runpy.run_path(os.path.join(HERE, "fake_train.py"), run_name="__main__")
    sys.exit()

plan_path = os.environ["FAKE_TRAIN"]
with open(plan_path) as file:
    plan = json.load(file).get(verb, {})
with open(os.path.join(os.path.dirname(plan_path), "calls.jsonl"), "a") as file:
    file.write(json.dumps({"name": verb, "pid": os.getpid(), "time": time.time(), "verb": sys.argv[1:]}) + "\n")
if plan.get("fails"):
    print(f"onetap: [{verb}] as planned", file=sys.stderr)
    sys.exit(3)
if verb == "prune":
    folder = value_after("-o")
    save(os.path.join(folder, "network.txt"), plan["network"])
    save(os.path.join(folder, "weights.safetensors"), "")
elif verb == "freeze":
    subprocess.run([os.environ["ONETAP"], "nets", "resnet8", "--width", "4", "--tap", value_after("-o")], check=True,
                   stdout=subprocess.DEVNULL)
elif verb == "eval":
    rounded = "--binarize=round" in arguments
    rows = [{"form": "soft", "accuracy": 0.5}, {"form": "round", "accuracy": 0.25}] if rounded else \
        [{"form": "frozen", "accuracy": 0.4375}]
    print(json.dumps(rows, indent=2))
elif verb == "bench":
    print(json.dumps({"median_ms": 2.5}))
