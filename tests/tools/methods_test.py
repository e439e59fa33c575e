"""Runs of every method through the command: train, eval, heatmap, report, resume; and what is refused."""
import json
import os

from support import SMALL, CommandTest, main, needs_training, onetap

QUICK = SMALL + ["--epochs", "1"]


@needs_training
class MethodsTest(CommandTest):
    def train(self, name, *arguments):
        run = self.path(name)
        self.succeeds("train", *QUICK, "--out", run, *arguments)
        return run

    def network(self, run):
        with open(os.path.join(run, "network.txt")) as file:
            return file.read()

    def test_every_method_has_its_verbs(self):
        dense = self.train("dense", "--method", "conv")
        runs = [dense]
        for method in ("random-taps", "magnitude", "shift", "active-shift", "bc", "bwn"):
            init = ["--init", dense] if method == "magnitude" else []
            run = self.train(method, "--method", method, *init)
            runs.append(run)
            row = json.loads(self.succeeds("eval", run, "--json", "--device", "cpu").stdout)[0]
            self.assertEqual(row["form"], "trained")
            self.assertEqual(row["method"].split()[0], method)
            with open(os.path.join(run, "metrics.jsonl")) as file:
                last = [json.loads(line) for line in file][-1]
            self.assertEqual(row["accuracy"], last["acc_soft"])
            tap = self.path(method + ".tap")
            self.succeeds("freeze", run, "-o", tap)
            frozen = json.loads(self.succeeds("eval", tap, "--json", "--data", "shapes:train=96,test=40").stdout)[0]
            self.assertEqual(frozen["accuracy"], row["accuracy"])
            if method in ("random-taps", "magnitude"):
                heat = json.loads(self.succeeds("heatmap", run, "--all", "--json").stdout)
                self.assertEqual(len(heat["layers"]), 6)
                self.assertEqual(sum(heat["layers"][0]["kept"]), 16)
            elif method == "shift":
                self.assertEqual(*(self.succeeds("heatmap", what, "--all").stdout for what in (run, tap)))
            else:
                self.refused(4, "expected a run with layers that keep taps", "heatmap", run)
        page = self.path("report.html")
        self.succeeds("report", *runs, "-o", page)
        self.assertTrue(os.path.getsize(page) > 0)

    def test_a_run_to_start_from_brings_network_and_data(self):
        run = self.train("run", "--share", "4x4", "--layers", "layer2.*")
        rest = ["--epochs", 1, "--batch-size", 16, "--threads", 1, "--device", "cpu"]
        result = self.succeeds("train", "--init", run, "--quantize", "int8", *rest, "--out", self.path("int8"))
        self.assertIn(f"taken from {run}: arch resnet8, width 4, kernel 3, image_size 32, method sal, share 4x4, "
                      "layers layer2.*, data shapes:",
                      result.stderr)
        self.assertEqual(self.network(self.path("int8")), self.network(run))
        # What another method would drop or round, int8's fixed batch norms would not make up for.
        result = onetap("train", "--init", run, "--method", "random-taps", "--data", "shapes:train=32,test=20", "--quantize", "int8",
                        *rest, "--out", self.path("never"))
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("--quantize expected 'layer1.0.conv1' trained as random-taps taps=1 share=1, got ", result.stderr)
        self.assertFalse(os.path.exists(self.path("never")))
        # What the user names is the user's; another method takes none of the settings of the run's.
        result = self.succeeds("train", "--init", run, "--method", "conv", "--data", "shapes:train=32,test=20", *rest, "--out",
                               self.path("dense"))
        self.assertIn(f"taken from {run}: arch resnet8, width 4, kernel 3, image_size 32\n", result.stderr)
        # A network of one's own comes from the run itself: its file may be gone.
        net = self.write("own.net", self.network(run))
        own = self.train("own", "--arch", net)
        os.remove(net)
        self.succeeds("train", "--init", own, *rest, "--out", self.path("again"))
        self.assertEqual(self.network(self.path("again")), self.network(own))

    def test_shared_blocks(self):
        # ResNet-8 of width 4: a layer with 4 x 4 slices is one block of 4x4.
        for share, relax, line in (("4x4", None, 'share = "4x4"'), ("all", None, 'share = "all"'),
                                   ("4x1", "straight-through", "share = 4"), ("allx4", "softmax", 'share = "allx4"')):
            run = self.train(share, "--t1", 3, "--share", share, *(["--relax", relax] if relax else []))
            with open(os.path.join(run, "config.toml")) as file:
                config = file.read().splitlines()
            self.assertIn(line, config)
            self.assertIn(f'relax = "{relax or "auto"}"', config)
            soft, hard = json.loads(self.succeeds("eval", run, "--json", "--device", "cpu").stdout)
            if relax == "straight-through" or (share == "all" and relax is None):
                self.assertEqual((soft["accuracy"], soft["loss"]), (hard["accuracy"], hard["loss"]))
            else:
                self.assertNotEqual(soft["loss"], hard["loss"])
            tap = self.path("model.tap")
            self.succeeds("freeze", run, "-o", tap)
            frozen = json.loads(self.succeeds("eval", tap, "--json", "--data", "shapes:train=96,test=40").stdout)[0]
            self.assertEqual(frozen["accuracy"], hard["accuracy"])
            if share == "4x4":
                self.assertEqual(frozen["method"], "frozen taps=1 share=4x4")
            kept = json.loads(self.succeeds("heatmap", run, "--all", "--json").stdout)["layers"][0]["kept"]
            self.assertEqual(sum(kept), 16)
            self.assertEqual(kept, json.loads(self.succeeds("heatmap", tap, "--all", "--json").stdout)["layers"][0]["kept"])
            if share in ("4x4", "allx4"):
                self.assertEqual(max(kept), 16)
            # Resuming takes the run's own words for it, and no others.
            self.succeeds("train", "--out", run, "--resume", "--share", share)
            self.refused(2, "a resumed run keeps its recipe", "train", "--out", run, "--resume", "--share", "2")

    def test_magnitude_needs_trained_weights(self):
        self.refused(2, "[train] method magnitude starts from a trained network: expected --init RUN|FILE",
                     "train", *QUICK, "--method", "magnitude", "--out", self.path("run"))
        self.assertFalse(os.path.exists(self.path("run")))

    def test_init_that_does_not_fit(self):
        dense = self.train("dense", "--method", "conv")
        self.refused(4, "expected shape [4, 4, 1, 1] for 'layer1.0.conv1.weight', got [4, 4, 3, 3]",
                     "train", *QUICK, "--method", "shift", "--init", dense, "--out", self.path("run"))
        self.refused(2, "no tensor matches 'head.*' of --init-skip", "train", *QUICK, "--method", "bc", "--init", dense,
                     "--init-skip", "head.*", "--out", self.path("run"))
        self.assertFalse(os.path.exists(self.path("run")))

    def test_shift_table_of_a_run(self):
        sal = self.train("sal", "--method", "sal")
        heat = json.loads(self.succeeds("heatmap", sal, "--all", "--json").stdout)["layers"]
        shift = self.train("shift", "--method", "shift", "--shift-table", "from:" + os.path.relpath(sal))
        lines = [line for line in self.network(shift).splitlines() if " = shift " in line]
        self.assertEqual(len(lines), 6)
        for line, layer in zip(lines, heat):
            self.assertEqual(line.split()[0], layer["layer"].replace("conv", "shift"))
            counts = [int(count) for count in line.split("counts=")[1].split()[0].split(",")]
            channels = sum(counts)
            for count, share in zip(counts, layer["share"]):
                self.assertLess(abs(count - share * channels), 1)
        # The run has the table: it goes on without the other one.
        os.rename(sal, self.path("gone"))
        self.succeeds("train", "--out", shift, "--resume")

    def test_a_shift_table_passes_over_damaged_lines(self):
        sal = self.train("sal", "--method", "sal")
        path = os.path.join(sal, "attention.jsonl")
        with open(path) as file:
            lines = file.read()
        with open(path, "w") as file:
            file.write("{\"step\": 1, what\n" + lines)
        result = self.succeeds("train", *QUICK, "--method", "shift", "--out", self.path("shift"), "--shift-table",
                               "from:" + sal)
        self.assertIn("attention.jsonl:1", result.stderr)
        with open(path, "w") as file:
            file.write("no line of it\n")
        self.refused(4, "expected learned taps for the shift table, found none", "train", *QUICK, "--method",
                     "shift", "--out", self.path("run"), "--shift-table", "from:" + sal)

    def test_shift_tables_that_are_not_there(self):
        dense = self.train("dense", "--method", "conv")
        train = ["train", *QUICK, "--method", "shift", "--out", self.path("run"), "--shift-table"]
        self.refused(4, "expected learned taps for the shift table, got none", *train, "from:" + dense)
        self.refused(4, "nowhere", *train, "from:" + self.path("nowhere"))
        self.refused(2, "expected shift_table to be uniform or from:RUN, got 'some'", *train, "some")
        sal = self.train("sal", "--method", "sal")
        self.refused(2, "has no shift to give a table to", "train", *QUICK, "--method", "sal", "--out", self.path("run"),
                     "--shift-table", "from:" + sal)
        self.assertFalse(os.path.exists(self.path("run")))


if __name__ == "__main__":
    main()
