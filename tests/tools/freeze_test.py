"""From a run to a file and back: freeze, eval, count, heatmap, export, --init, sensitivity."""
import json
import os
import re
import struct
import subprocess

from support import SMALL, CommandTest, main, onetap

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
DATA = SMALL[SMALL.index("--data") + 1]


def read_safetensors(path):
    """Header and tensors' bytes, by the format's own rules."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    metadata = header.pop("__metadata__", {})
    return metadata, {name: (entry, data[slice(*entry["data_offsets"])]) for name, entry in header.items()}


class Freeze(CommandTest):
    def train(self, *more, out="run"):
        return self.trained(*SMALL, *more, out=out)

    def test_statistics_taken_anew(self):
        """Hardened early, the averages of training are those of another network."""
        run, model = self.train("--t1", 6), self.path("model.tap")
        result = json.loads(self.succeeds("freeze", run, "-o", model, "--recalibrate", 90, "--json").stdout)
        stages = {stage["stage"]: stage for stage in result["stages"]}
        self.assertEqual(list(stages), ["soft", "hard", "recalibrated", "folded", "file"])
        self.assertGreater(stages["recalibrated"]["relative_difference"], 1e-3)
        self.assertLess(stages["folded"]["relative_difference"], 1e-4)
        self.assertEqual(stages["file"]["accuracy"], stages["recalibrated"]["accuracy"])
        self.assertIn("96 images", str(read_safetensors(model)[0]))  # whole batches of 16
        again = json.loads(self.succeeds("freeze", run, "-o", model, "--json").stdout)
        self.assertEqual(again["stages"][1]["loss"], stages["hard"]["loss"])  # the run is as it was

    def test_warns_where_the_kept_taps_do_worse(self):
        # Soft, it is the dense network that it starts from; hard, eight of nine weights of that are gone at once.
        dense = self.trained("--arch", "resnet8", "--width", 8, "--method", "conv", "--data", "shapes:train=600,test=100",
                             "--augment", "none", "--schedule", "cosine", "--lr", 0.02, "--batch-size", 8, "--epochs", 6,
                             "--threads", 1, "--device", "cpu", out="dense")
        self.succeeds("train", "--init", dense, "--method", "sal", "--t0", 6, "--t1", 6, "--lr", 1e-6, "--epochs", 1,
                      "--data", "shapes:train=32,test=100", "--batch-size", 16, "--threads", 1, "--device", "cpu", "--out", self.path("run"))
        model = self.path("model.tap")
        result = json.loads(self.succeeds("freeze", self.path("run"), "-o", model, "--json").stdout)
        soft, hard = (stage["accuracy"] for stage in result["stages"][:2])
        self.assertGreater(soft, 0.3)
        self.assertLess(hard, soft - 0.1)
        warned = [text for text in result["warnings"] if "the accuracy with the kept taps only is" in text]
        self.assertEqual(len(warned), 1, result["warnings"])
        same = json.loads(self.succeeds("freeze", dense, "-o", model, "--json").stdout)
        self.assertEqual([text for text in same["warnings"] if "the kept taps only" in text], [])

    def test_warns_of_a_checkpoint_before_the_end(self):
        run, model = self.train("--t1", 6), self.path("model.tap")
        early = json.loads(self.succeeds("freeze", run, "-o", model, "--checkpoint", 12, "--json").stdout)
        self.assertIn("this checkpoint is from step 12, epoch 2 of 3, at temperature", early["warnings"][0])

    def test_the_whole_way(self):
        run, model = self.train("--share", 2), self.path("model.tap")
        table = self.succeeds("freeze", run, "-o", model).stdout
        for word in ("soft", "hard", "folded", "file", "smaller than dense"):
            self.assertIn(word, table)
        result = json.loads(self.succeeds("freeze", run, "-o", model, "--json").stdout)
        stages = {stage["stage"]: stage for stage in result["stages"]}
        self.assertEqual(list(stages), ["soft", "hard", "folded", "file"])
        self.assertEqual(stages["hard"]["accuracy"], stages["file"]["accuracy"])
        self.assertLess(stages["folded"]["relative_difference"], 1e-4)
        self.assertEqual(stages["file"]["largest_difference"], 0)
        self.assertEqual(result["file_bytes"], os.path.getsize(model))
        self.assertLess(result["file_bytes"], result["checkpoint_bytes"])

        # The same accuracy from the file alone, and from the run.
        rows = json.loads(self.succeeds("eval", run, model, "--data", DATA, "--json").stdout)
        self.assertEqual([row["form"] for row in rows], ["soft", "hard", "frozen"])
        self.assertEqual(rows[1]["accuracy"], rows[2]["accuracy"])
        self.assertAlmostEqual(rows[1]["loss"], rows[2]["loss"], places=4)
        slow, = json.loads(self.succeeds("eval", model, "--data", DATA, "--reference", "--json").stdout)
        self.assertEqual(rows[2]["accuracy"], slow["accuracy"])
        self.assertAlmostEqual(rows[2]["loss"], slow["loss"], places=4)
        self.assertNotEqual(rows[2]["loss"], slow["loss"])  # another order of sums: it is another executor

        counted = json.loads(self.succeeds("count", model, "--json").stdout)
        self.assertEqual(counted["file_bytes"], os.path.getsize(model))
        self.assertGreater(counted["peak_activation_bytes"], 4 * 3 * 32 * 32)
        predicted = json.loads(self.succeeds("count", run, "--json").stdout)
        self.assertEqual(predicted["macs"], counted["macs"])
        # But for the names of classes and the facts, which a network of nine kilobytes feels.
        self.assertLess(abs(predicted["tap_bytes"] - counted["file_bytes"]), 0.03 * counted["file_bytes"])

        # What is kept at the last epoch is what the file keeps.
        self.assertEqual(self.succeeds("heatmap", run, "--all").stdout, self.succeeds("heatmap", model, "--all").stdout)
        self.refused(2, "need a run", "heatmap", model, "--what", "mean-p")
        self.refused(2, "its network is fixed", "count", model, "--width", 4)
        self.refused(2, "expected --data", "eval", model)

    def test_the_python_reader_of_the_examples_opens_it(self):
        self.succeeds("freeze", self.train(), "-o", self.path("m.tap"))
        script = os.path.join(EXAMPLES, "read_tap.py")
        result = subprocess.run(["/usr/bin/python3", script, self.path("m.tap")], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)
        if "No module named 'numpy'" in result.stderr:
            self.skipTest("no numpy")
        self.assertEqual(result.returncode, 0, result.stderr)
        counted = json.loads(self.succeeds("count", self.path("m.tap"), "--json").stdout)
        kept = sum(int(number) for number in re.findall(r"(\d+) weights kept", result.stdout))
        # 3x3 slices of resnet8 w=4: 2 w w + (2 w)(w + 2 w) + (4 w)(2 w + 4 w).
        self.assertEqual(kept, 2 * 16 + 8 * 12 + 16 * 24)
        self.assertGreater(counted["params"], kept)

    def test_default_place_half_precision_and_early_checkpoints(self):
        run = self.train()
        self.succeeds("freeze", run)
        whole = os.path.getsize(os.path.join(run, "model.tap"))
        self.succeeds("freeze", run, "--dtype", "f16", "-o", self.path("half.tap"), "--images", 10)
        self.assertLess(os.path.getsize(self.path("half.tap")), whole)
        metadata, tensors = read_safetensors(self.path("half.tap"))
        self.assertEqual(metadata["format"], "onetap-tap")
        self.assertEqual(tensors["conv1.weight"][0]["dtype"], "F16")
        self.assertEqual(tensors["layer1.0.conv1.positions"][0]["dtype"], "U8")
        self.succeeds("eval", self.path("half.tap"), "--data", DATA)
        self.refused(4, "no checkpoint of step 5", "freeze", run, "--checkpoint", 5)
        self.refused(2, "runs in 64.00 KiB of memory", "freeze", run, "--memory", "64K", "-o", self.path("large.tap"))
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith("large")], [])

    def test_a_dense_run_goes_through_the_same_door(self):
        run = self.train("--method", "conv")
        result = json.loads(self.succeeds("freeze", run, "-o", self.path("dense.tap"), "--json").stdout)
        self.assertEqual([stage["stage"] for stage in result["stages"]], ["dense", "folded", "file"])
        self.refused(4, "dense network", "heatmap", self.path("dense.tap"))
        self.refused(4, "got a dense one", "sensitivity", run)

    def test_dropped_weights(self):
        """Half of the 512 taps of resnet8 w=4 go, the same ones from the run and from its file."""
        run, whole, half = self.train(), self.path("whole.tap"), self.path("half.tap")
        self.assertIn("0 of 512 tap weights dropped", self.succeeds("freeze", run, "-o", whole).stdout)
        result = json.loads(self.succeeds("freeze", run, "-o", half, "--density", 0.5, "--json").stdout)
        self.assertEqual([stage["stage"] for stage in result["stages"]], ["soft", "hard", "folded", "dropped", "file"])
        self.assertEqual((result["tap_weights"], result["dropped"]), (512, 256))
        self.assertEqual(sum(layer["dropped"] for layer in result["layers"]), 256)
        self.assertGreater(result["stages"][3]["largest_difference"], 0)
        self.assertEqual(result["stages"][4]["largest_difference"], 0)
        self.assertLess(os.path.getsize(half), os.path.getsize(whole) - 256 * 4 + 400)  # six attributes and a fact more
        metadata, tensors = read_safetensors(half)
        self.assertEqual((metadata["version"], metadata["about.dropped"]), ("3", "256 of 512 tap weights"))

        from_file = self.path("from-file.tap")
        arguments = ["freeze", whole, "--data", DATA, "-o", from_file, "--json"]
        again = json.loads(self.succeeds(*arguments, "--density", 0.5).stdout)
        self.assertEqual([stage["stage"] for stage in again["stages"]], ["given", "dropped", "file"])
        self.assertEqual(again["given_bytes"], os.path.getsize(whole))
        self.assertEqual(read_safetensors(from_file)[1], tensors)
        same = json.loads(self.succeeds(*arguments, "--drop-below", result["drop_below"]).stdout)
        self.assertEqual(same["layers"], result["layers"])
        nothing = json.loads(self.succeeds(*arguments).stdout)  # no weight is exactly zero
        self.assertEqual([stage["stage"] for stage in nothing["stages"]], ["given", "file"])
        self.assertEqual(nothing["dropped"], 0)

        # Everyone who reads the file knows of it.
        counted, before = (json.loads(self.succeeds("count", path, "--json").stdout) for path in (half, whole))
        self.assertEqual(counted["empty"], 0.5)
        self.assertNotIn("empty", before)
        self.assertEqual(before["params"] - counted["params"], 256)
        self.assertLess(counted["macs"], before["macs"])
        self.assertIn("50.00 %", self.succeeds("count", half).stdout)
        self.assertIn("empty", self.succeeds("count", half, "--csv").stdout)
        layers = json.loads(self.succeeds("heatmap", half, "--all", "--json").stdout)["layers"]
        for layer, dropped in zip(layers, result["layers"]):
            self.assertEqual(layer.get("none", 0), dropped["dropped"] / dropped["weights"])
        row, = json.loads(self.succeeds("eval", half, "--data", DATA, "--json").stdout)
        slow, = json.loads(self.succeeds("eval", half, "--data", DATA, "--reference", "--json").stdout)
        self.assertEqual(row["accuracy"], result["stages"][4]["accuracy"])
        self.assertAlmostEqual(row["loss"], slow["loss"], places=4)
        script = os.path.join(EXAMPLES, "read_tap.py")
        read = subprocess.run(["/usr/bin/python3", script, half], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        if "No module named 'numpy'" not in read.stderr:
            self.assertEqual(read.returncode, 0, read.stderr)
            self.assertEqual(sum(int(n) for n in re.findall(r"(\d+) weights kept", read.stdout)), 256)

    def test_a_learned_density_is_the_chosen_one(self):
        # 3x3 layers of ResNet-8, width 4: 4x4, 4x4, 4x8, 8x8, 8x16 and 16x16 slices, or 1, 1, 2, 4, 8 and 16 blocks of
        # 4x4. A layer keeps the rounded share of its sets, and at least one.
        slices = [16, 16, 32, 64, 128, 256]
        for share, density, empty in (("1", 0.5, [count // 2 for count in slices]),
                                      ("4x4", 0.3, [0, 0, 16, 3 * 16, 6 * 16, 11 * 16])):
            run, model = self.train("--share", share, "--density", density), self.path("model.tap")
            result = json.loads(self.succeeds("freeze", run, "-o", model, "--json").stdout)
            self.assertEqual([layer["dropped"] for layer in result["layers"]], empty)
            self.assertEqual([layer["weights"] for layer in result["layers"]], slices)
            counted, predicted = (json.loads(self.succeeds("count", what, "--json").stdout) for what in (model, run))
            self.assertEqual(counted["empty"], sum(empty) / sum(slices))
            self.assertEqual(predicted["empty"], counted["empty"])
            self.assertEqual(predicted["macs"], counted["macs"])

    def test_statistics_without_what_was_dropped(self):
        run, model = self.train(), self.path("model.tap")
        arguments = ["freeze", run, "-o", model, "--density", 0.5, "--json"]
        plain = json.loads(self.succeeds(*arguments).stdout)
        result = json.loads(self.succeeds(*arguments, "--recalibrate", 90).stdout)
        stages = {stage["stage"]: stage for stage in result["stages"]}
        self.assertEqual(list(stages), ["soft", "hard", "dropped", "recalibrated", "folded", "file"])
        self.assertEqual(result["layers"], plain["layers"])
        self.assertAlmostEqual(stages["dropped"]["loss"], plain["stages"][3]["loss"], places=4)
        self.assertGreater(stages["recalibrated"]["relative_difference"], 1e-3)
        self.assertLess(stages["folded"]["relative_difference"], 1e-4)

    def test_bad_shares_and_flags_that_do_not_fit(self):
        run, model = self.train("--epochs", 1), self.path("model.tap")
        self.succeeds("freeze", run, "-o", model)
        for flags in (["--density", 0], ["--density", 1.5], ["--density", -1], ["--density", "half"],
                      ["--drop-below", -0.1], ["--drop-below", "nan"], ["--drop-below", 0.1, "--density", 0.5]):
            result = onetap("freeze", run, "-o", self.path("no.tap"), *flags)
            self.assertEqual(result.returncode, 2, (flags, result.stderr))
        self.refused(2, "expected --data", "freeze", model, "-o", self.path("no.tap"))
        self.refused(2, "expected -o", "freeze", model, "--data", DATA)
        os.mkdir(self.path("folder"))
        for place, part in (("folder", "got the folder"), ("no/x.tap", "got no folder"), ("", "got an empty one")):
            for source in (run, model):
                self.refused(2, part, "freeze", source, "--data", DATA, "-o", place, cwd=self.dir)
        for flags in (["--recalibrate", 10], ["--dtype", "f16"], ["--checkpoint", "best"]):
            self.refused(2, "need a run", "freeze", model, "--data", DATA, "-o", self.path("no.tap"), *flags)
        self.assertFalse(os.path.exists(self.path("no.tap")))

    def test_damage_is_refused(self):
        run = self.train()
        self.succeeds("freeze", run)
        with open(os.path.join(run, "model.tap"), "rb") as file:
            data = file.read()
        bad = self.write("bad.tap", data[:-1])
        for verb in (["count", bad], ["eval", bad, "--data", DATA], ["heatmap", bad]):
            self.refused(4, "bad.tap", *verb)
        self.refused(4, "expected a run directory", "freeze", self.path("nothing"))
        result = onetap("freeze", run, "-o", "/nonexistent/place/m.tap")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("got no folder /nonexistent/place", result.stderr)
        self.assertEqual([name for name in os.listdir(run) if "unchecked" in name], [])

    def test_weights_go_out_and_come_back(self):
        run, weights = self.train(), self.path("w.safetensors")
        self.assertEqual(self.succeeds("export", run, "--to", "safetensors", "-o", weights).stdout, weights + "\n")
        _, tensors = read_safetensors(weights)
        self.assertNotIn("layer1.0.conv1.attention", tensors)
        entry, data = tensors["layer1.0.conv1.weight"]
        values = struct.unpack(f"<{len(data) // 4}f", data)
        self.assertEqual(sum(value != 0 for value in values), 16)  # one of nine in each of 4x4 slices
        # A dense network that starts from them and does not move is the hard network.
        self.train("--method", "conv", "--init", weights, "--lr", 0, "--epochs", 1, "--momentum", 0, out="again")
        hard = json.loads(self.succeeds("eval", run, "--json").stdout)[1]
        self.assertIn("layer1.0.bn1.running_mean", tensors)
        self.succeeds("export", self.path("again"), "--to", "safetensors", "-o", self.path("again.safetensors"))
        _, again = read_safetensors(self.path("again.safetensors"))
        self.assertEqual(again["layer1.0.conv1.weight"][1], data)
        self.assertEqual(hard["form"], "hard")
        self.refused(4, "expected shape", "train", *SMALL, "--width", 5, "--init", weights, "--out", self.path("no"))
        self.assertFalse(os.path.exists(self.path("no")))
        self.refused(4, "cannot open", "train", *SMALL, "--init", self.path("none"), "--out", self.path("no"))
        # A frozen file gives folded weights.
        self.succeeds("freeze", run)
        self.succeeds("export", os.path.join(run, "model.tap"), "--to", "safetensors", "-o", self.path("d.safetensors"))
        _, folded = read_safetensors(self.path("d.safetensors"))
        self.assertEqual(folded["layer1.0.conv1.weight"][0]["shape"], [4, 4, 3, 3])
        self.assertIn("layer1.0.conv1.bias", folded)

    def test_sensitivity(self):
        run = self.train("--t1", 1)
        table = self.succeeds("sensitivity", run).stdout
        self.assertIn("layer3.0.conv2", table)
        result = json.loads(self.succeeds("sensitivity", run, "--json", "--sort", "cost").stdout)
        self.assertEqual(len(result["layers"]), 6)
        costs = [layer["cost"] for layer in result["layers"]]
        self.assertEqual(costs, sorted(costs, reverse=True))
        self.assertEqual(result["images"], 40)


if __name__ == "__main__":
    main()
