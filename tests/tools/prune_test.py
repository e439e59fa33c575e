"""onetap prune: channels of a run cut, the files it writes, fine-tuning them, and what it refuses."""
import json
import os
import shlex
import struct

from freeze_test import read_safetensors
from support import SMALL, CommandTest, main, needs_training, onetap

DATA = SMALL[SMALL.index("--data") + 1]


@needs_training
class Prune(CommandTest):
    def train(self, *more, out="run"):
        self.succeeds("train", *SMALL, "--method", "conv", "--out", self.path(out), *more)
        return self.path(out)

    def prune(self, run, *more, out="cut"):
        return self.succeeds("prune", run, "-o", self.path(out), "--threads", 1, "--device", "cpu", *more)

    def test_filters_with_small_weights_go(self):
        run = self.train()
        result = json.loads(self.prune(run, "--by", "l1", "--ratio", 0.5, "--data", DATA, "--json").stdout)
        # Inner channels of the blocks of resnet8 w=4.
        self.assertEqual([(layer["name"], layer["channels"], layer["kept"]) for layer in result["layers"]],
                         [("layer1.0.conv1", 4, 2), ("layer2.0.conv1", 8, 4), ("layer3.0.conv1", 16, 8)])
        # Half of the weights of both convolutions of every block, and half of its first batch norm.
        w = 4
        dense = 27 * w + 9 * (2 * w * w + 2 * w * (w + 2 * w) + 4 * w * (2 * w + 4 * w))
        dense += 2 * w * w + 8 * w * w  # shortcuts
        dense += 2 * (w + 2 * w + 3 * 2 * w + 3 * 4 * w) + 10 * 4 * w + 10
        halves = 9 * (2 * w * w + 2 * w * (w + 2 * w) + 4 * w * (2 * w + 4 * w)) + 2 * (w + 2 * w + 4 * w)
        self.assertEqual(result["before"]["params"], dense)
        self.assertEqual(result["after"]["params"], dense - halves // 2)
        self.assertLess(result["after"]["macs"], result["before"]["macs"])
        for side in ("before", "after"):
            self.assertTrue(0 <= result[side]["accuracy"] <= 1)
            self.assertEqual(result[side]["images"], 40)
        self.assertEqual(sorted(os.listdir(self.path("cut"))), ["network.txt", "pruning.json", "weights.safetensors"])
        with open(self.path("cut", "pruning.json")) as file:
            self.assertEqual(json.load(file), result)
        counted = json.loads(self.succeeds("count", result["network"], "--method", "conv", "--json").stdout)
        self.assertEqual(counted["params"], result["after"]["params"])
        self.assertEqual(counted["macs"], result["after"]["macs"])

        # The kept filters are those of the run, and have the largest sums.
        _, before = read_safetensors(os.path.join(run, "checkpoints", "last", "model.safetensors"))
        _, after = read_safetensors(result["weights"])
        size = len(before["layer2.0.conv1.weight"][1]) // 8
        filters = [before["layer2.0.conv1.weight"][1][i * size:(i + 1) * size] for i in range(8)]
        kept = result["layers"][1]["kept_channels"]
        self.assertEqual(after["layer2.0.conv1.weight"][0]["shape"], [4, 4, 3, 3])
        self.assertEqual(after["layer2.0.conv1.weight"][1], b"".join(filters[i] for i in kept))
        sums = [sum(abs(v) for v in struct.unpack(f"<{len(f) // 4}f", f)) for f in filters]
        self.assertEqual(kept, sorted(sorted(range(8), key=lambda i: -sums[i])[:4]))
        self.assertEqual(after["layer2.0.conv2.weight"][0]["shape"], [8, 4, 3, 3])

        # The command that it prints trains what is left; without a step it has the accuracy after the cut.
        command = shlex.split(result["fine_tune"])
        self.assertEqual(command[:2], ["onetap", "train"])
        self.assertIn(DATA, command)
        command[command.index("--epochs") + 1] = "1"
        command[command.index("--lr") + 1] = "0"
        self.succeeds(*command[1:], "--threads", 1, "--device", "cpu", "--momentum", 0)
        tuned = command[command.index("--out") + 1]
        _, weights = read_safetensors(os.path.join(tuned, "checkpoints", "last", "model.safetensors"))
        self.assertEqual(weights["layer2.0.conv1.weight"][1], after["layer2.0.conv1.weight"][1])
        self.succeeds("freeze", tuned)

    def test_l1_needs_no_data(self):
        run = self.train()
        config = os.path.join(run, "config.toml")
        with open(config) as file:
            text = file.read()
        with open(config, "w") as file:
            file.write(text.replace(f'"{DATA}"', '"cifar10:/nonexistent"'))
        os.remove(os.path.join(run, "SHA256SUMS"))
        table = self.prune(run, "--by", "l1", "--ratio", 0.3).stdout
        self.assertNotIn("accuracy", table)
        lines = table.splitlines()
        self.assertRegex(lines[3], r"^layer2\.0\.conv1 +8 +5$")  # int(0.7 * 8)
        self.assertTrue(any(line.startswith("params ") for line in lines))
        self.assertTrue(any(line.startswith("MACs ") for line in lines))
        self.assertEqual(lines[-2], "Fine-tune it:")
        self.assertTrue(lines[-1].startswith("  onetap train --arch " + self.path("cut", "network.txt")), lines[-1])
        self.refused(4, "nonexistent", "prune", run, "--by", "nisp", "--ratio", 0.3, "-o", self.path("no"))
        self.assertFalse(os.path.exists(self.path("no")))

    def test_scores_that_look_at_images(self):
        run = self.train()
        for by, more in (("nisp", []), ("pcas", ["--epochs", 2])):
            options = ["--by", by, "--ratio", 0.44, "--score-images", 64, "--json", *more]
            first = json.loads(self.prune(run, *options, out=by).stdout)
            again = json.loads(self.prune(run, *options, out=by + "2").stdout)
            self.assertEqual(first["layers"], again["layers"])
            kept = [layer["kept"] for layer in first["layers"]]
            if by == "nisp":
                self.assertEqual(kept, [2, 4, 8])  # int(0.56 * 4, 8, 16)
            else:
                self.assertEqual(sum(kept), 15)  # int(0.56 * 28)
                self.assertGreaterEqual(min(kept), 1)
            self.assertIn("accuracy", first["after"])

    def test_chosen_layers_and_at_least_one_channel(self):
        run = self.train()
        options = ["--by", "l1", "--ratio", 0.99, "--json"]
        result = json.loads(self.prune(run, *options, "--layers", "!layer1.*").stdout)
        self.assertEqual([(layer["name"], layer["kept"]) for layer in result["layers"]],
                         [("layer2.0.conv1", 1), ("layer3.0.conv1", 1)])
        self.refused(2, "cut by themselves matches 'layer1.0.conv2'", "prune", run, *options, "--layers",
                     "layer1.0.conv2", "-o", self.path("no"))
        self.refused(2, "expected --layers that name one of layer1.0.conv1", "prune", run, *options, "--layers", "!*", "-o", self.path("no"))

    def test_refuses(self):
        run = self.train()

        def refused(code, part, *arguments, run=run):
            self.refused(code, part, "prune", run, "-o", self.path("no"), *arguments)
            self.assertFalse(os.path.exists(self.path("no")))

        refused(2, "--by", "--ratio", 0.5)
        refused(2, "l2", "--by", "l2", "--ratio", 0.5)
        refused(2, "expected --ratio or --preset, got neither", "--by", "l1")
        refused(2, "got both", "--by", "l1", "--ratio", 0.5, "--preset", "pruned-a")
        for ratio in ("0", "1", "-0.5", "1.5", "nan"):
            refused(2, "above 0 and below 1", "--by", "l1", f"--ratio={ratio}")
        refused(2, "half", "--by", "l1", "--ratio", "half")
        refused(2, "preset pruned-b is for resnet56, got resnet8", "--by", "l1", "--preset", "pruned-b")
        refused(2, "pruned-z", "--by", "l1", "--preset", "pruned-z")
        refused(2, "expected --ratio with --by pcas", "--by", "pcas", "--preset", "pruned-a")
        refused(2, "got both", "--by", "l1", "--preset", "pruned-a", "--layers", "layer1.*")
        refused(4, "expected a run directory", "--by", "l1", "--ratio", 0.5, run=self.path("nothing"))
        refused(4, "no checkpoint of step 5", "--by", "l1", "--ratio", 0.5, "--checkpoint", 5)
        self.refused(2, "--out is required", "prune", run, "--by", "l1", "--ratio", 0.5)
        os.symlink("nothing", self.path("link"))
        for out, part in ((run, "expected an empty folder, or a new one"), (self.path("link"), "got a link to nothing"),
                          (os.path.join(run, "config.toml"), "got a file"), ("", "got an empty name")):
            self.refused(2, part, "prune", run, "--by", "l1", "--ratio", 0.5, "-o", out)
        self.assertTrue(os.path.exists(os.path.join(run, "config.toml")))
        os.mkdir(self.path("nothing"), 0o700)
        self.succeeds("prune", run, "--by", "l1", "--ratio", 0.5, "-o", self.path("link"))
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertIn("pruning.json", os.listdir(self.path("nothing")))
        self.assertEqual(os.stat(self.path("nothing")).st_mode & 0o777, 0o700)
        result = onetap("prune", run, "--by", "l1", "--ratio", 0.5, "-o", "/proc/place/cut")
        # 2 where it is known before: root may write everywhere, until it does.
        self.assertEqual(result.returncode, 1 if os.geteuid() == 0 else 2, result.stderr)
        self.assertIn("/proc", result.stderr)
        empty = self.path("run-without-checkpoint")
        os.makedirs(empty)
        for name in ("config.toml", "network.txt"):
            with open(os.path.join(run, name)) as source, open(os.path.join(empty, name), "w") as target:
                target.write(source.read())
        refused(4, "checkpoint", "--by", "l1", "--ratio", 0.5, run=empty)

    def test_dense_runs_only(self):
        self.succeeds("train", *SMALL, "--epochs", 1, "--out", self.path("sal"))
        self.refused(4, "expected a dense run, got sal", "prune", self.path("sal"), "--by", "l1", "--ratio", 0.5, "-o",
                     self.path("no"))
        self.assertFalse(os.path.exists(self.path("no")))


if __name__ == "__main__":
    main()
