#!/usr/bin/env python3
"""Stands in for `onetap train` in tests of what starts it. The JSON file that FAKE_TRAIN names says what each run does:

    epochs   [[loss, soft accuracy, hard accuracy], ...]
    waits    the sitting (counted from 1) that stops after its first epoch until a signal comes
    deaf     that sitting ignores signals
    fails    the sittings that end with code 1 before they do anything
    seconds  how long a sitting takes

Every sitting is noted in calls.jsonl beside that file, and so is every signal.
"""
import json
import os
import signal
import sys
import time

plan_path = os.environ["FAKE_TRAIN"]
calls_path = os.path.join(os.path.dirname(plan_path), "calls.jsonl")
out = sys.argv[sys.argv.index("--out") + 1]
name = os.path.basename(out)
with open(plan_path) as file:
    plan = json.load(file).get(name, {})


def note(**entry):
    with open(calls_path, "a") as file:
        file.write(json.dumps({"name": name, "pid": os.getpid(), "time": time.time(), **entry}) + "\n")


def sittings():
    with open(calls_path) as file:
        return sum("arguments" in entry and entry["name"] == name for entry in map(json.loads, file))


def write(path, text):
    path = os.path.join(out, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def save(lines):
    write("metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    write("checkpoints/last/state.json", json.dumps({
        "format": 1, "step": 10 * len(lines), "epoch_logged": True, "loss_sum": 0, "right": 0, "seen": 0,
        "temperature": 1, "wall_s": 0, "metrics_bytes": 0, "attention_bytes": 0, "best_accuracy": 0, "best_step": -1}))


signals = []


def on_signal(number, frame):
    signals.append(number)
    note(signal=number)


signal.signal(signal.SIGINT, on_signal)
signal.signal(signal.SIGTERM, on_signal)
signal.signal(signal.SIGHUP, on_signal)
note(arguments=sys.argv[1:])
sitting = sittings()
print(f"sitting {sitting} of {name}", file=sys.stderr)
if sitting in plan.get("fails", []):
    print("onetap: [train] the loss became nan", file=sys.stderr)
    sys.exit(1)

epochs = plan.get("epochs", [[1.0, 0.5, 0.5]])
if not os.path.exists(os.path.join(out, "config.toml")):
    write("config.toml", f"epochs = {len(epochs)}\n\n[provenance]\n")
metrics = os.path.join(out, "metrics.jsonl")
lines = []
if os.path.exists(metrics):
    with open(metrics) as file:
        lines = [json.loads(line) for line in file]
for loss, soft, hard in epochs[len(lines):]:
    epoch = len(lines) + 1
    lines.append({"step": 10 * epoch, "epoch": epoch, "split": "test", "loss": loss, "acc_soft": soft,
                  "acc_hard": hard, "lr": 0.1, "temperature": 1.0, "img_per_s": 100.0, "wall_s": 2.5 * epoch})
    save(lines)
    if plan.get("waits") == sitting:
        note(waits=True)
        while not signals or plan.get("deaf"):
            time.sleep(0.02)
        time.sleep(0.2)  # a second signal would come now
        sys.exit(128 + signals[0])
time.sleep(plan.get("seconds", 0))
note(finished=True)
