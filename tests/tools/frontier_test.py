"""onetap frontier: points of runs and files, fronts, equal accuracy, figures, bad input; freezing for real."""
import csv
import json
import math
import os
import pathlib
import re
import resource
import shutil
import subprocess
import unittest
import xml.etree.ElementTree

import browser
from support import HAS_TRAINING, SMALL, CommandTest, main, needs_no_training, needs_training, onetap, set_metadata

DATA = "shapes:train=16,test=40"
QUICK = ["--seconds", "0.01"]
MEASURES = ("milliseconds", "bytes", "macs", "memory")


def has_onnxruntime(modules="numpy, onnxruntime"):
    python = os.environ.get("ONETAP_PYTHON", "python3")
    check = subprocess.run([python, "-c", "import " + modules], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return check.returncode == 0


class Frontier(CommandTest):
    def setUp(self):
        super().setUp()
        self.out = self.path("out")

    def tap(self, path, width=4, flags=("--method", "conv")):
        path = self.path(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.succeeds("nets", "resnet8", "--width", width, *flags, "--tap", path)
        return path

    def make_run(self, path, accuracy, width=4, method="conv", share=1, data="cifar10", seed=0, frozen=True):
        """A finished run with this hard accuracy on record."""
        flags = ["--method", method] + (["--share", share] if method == "sal" else [])
        text = self.succeeds("nets", "resnet8", "--width", width, *flags, "--text").stdout
        sharing = f"share = {json.dumps(share)}\n" if method == "sal" else ""
        self.write(os.path.join(path, "config.toml"),
                   f'arch = "resnet8"\nwidth = {width}\nmethod = "{method}"\n{sharing}epochs = 1\ndata = "{data}"\n'
                   f'seed = {seed}\n\n[provenance]\nonetap = "test"\n')
        self.write(os.path.join(path, "network.txt"), text)
        self.write(os.path.join(path, "metrics.jsonl"), json.dumps(
            {"step": 10, "epoch": 1, "split": "test", "loss": 1.0, "acc_soft": 0.99, "acc_hard": accuracy, "lr": 0.1,
             "temperature": 1.0, "img_per_s": 1.0, "wall_s": 1.0}) + "\n")
        self.write(os.path.join(path, "checkpoints", "last", "state.json"), json.dumps(
            {"format": 1, "step": 10, "epoch_logged": True, "loss_sum": 0, "right": 0, "seen": 0, "temperature": 1,
             "wall_s": 0, "metrics_bytes": 0, "attention_bytes": 0, "best_accuracy": 0, "best_step": -1}))
        if frozen:
            self.tap(os.path.join(path, "model.tap"), width, flags)
        return self.path(path)

    def quantize(self, model, out=None):
        out = out or os.path.join(os.path.dirname(model), "model-int8.tap")
        self.succeeds("quantize", model, "--data", DATA, "-o", out)
        return out

    def command(self, *arguments):
        return ["frontier", *arguments, "-o", self.out, *QUICK]

    def frontier(self, *arguments, **kwargs):
        """Its JSON, by name of the data set."""
        self.result = self.succeeds(*self.command(*arguments), "--json", **kwargs)
        return {data["name"]: data for data in json.loads(self.result.stdout)["data"]}

    def points(self, *arguments, data="CIFAR-10", **kwargs):
        return {point["name"]: point for point in self.frontier(*arguments, **kwargs)[data]["points"]}

    def text(self, name):
        return pathlib.Path(self.out, name).read_text()


@needs_no_training
class Points(Frontier):
    def test_runs_with_what_they_recorded(self):
        dense = self.make_run("runs/dense", 0.91)
        sal = self.make_run("runs/sal", 0.9, method="sal", share=4)
        points = self.points(self.path("runs"), "--no-eval")
        self.assertEqual(list(points), ["dense", "sal"])
        self.assertEqual([(p["accuracy"], p["accuracy_of"], p["network"], p["kind"]) for p in points.values()],
                         [(91, "run", "resnet8 w4", "dense"), (90, "run", "resnet8 w4", "sal taps=1 share=4")])
        # ResNet-8 of width 4 by hand: 3x3 slices (but for the first convolution's) have nine weights, or one.
        slices = 4 * 4 + 4 * 4 + 4 * 8 + 8 * 8 + 8 * 16 + 16 * 16
        others = 27 * 4 + 4 * 8 + 8 * 16 + 16 * 10
        self.assertEqual([p["weights"] for p in points.values()], [9 * slices + others, slices + others])
        macs = 32 * 32 * 9 * (3 * 4 + 4 * 4 + 4 * 4) + 16 * 16 * (9 * (4 * 8 + 8 * 8) + 4 * 8) + \
            8 * 8 * (9 * (8 * 16 + 16 * 16) + 8 * 16) + 16 * 10
        self.assertEqual(points["dense"]["macs"], macs)
        for run, point in zip((dense, sal), points.values()):
            self.assertEqual(point["bytes"], os.path.getsize(os.path.join(run, "model.tap")))
            self.assertGreater(point["memory"], 4 * point["weights"])
            self.assertTrue(0 < point["p10_ms"] <= point["milliseconds"] <= point["p90_ms"])

    def test_frozen_files_are_tested_where_there_is_data(self):
        model = self.tap("models/tiny.tap", flags=("--method", "sal"))
        run = self.make_run("models/run", 0.77, data=DATA)
        expected = [json.loads(self.succeeds("eval", path, "--data", DATA, "--json").stdout)[0]["accuracy"]
                    for path in (model, os.path.join(run, "model.tap"))]
        points = self.points(self.path("models"), "--data", DATA, data=DATA)
        for name, accuracy in zip(("tiny.tap", "run"), expected):
            self.assertAlmostEqual(points[name]["accuracy"], 100 * accuracy)
            self.assertEqual(points[name]["accuracy_of"], "file")
        for link in re.findall(r"!\[.*\]\((.*)\)", self.text("frontier.md")):
            self.assertTrue(os.path.exists(os.path.join(self.out, link)), link)
        points = self.points(self.path("models"), data=DATA)  # the run's own data; the file has none
        self.assertAlmostEqual(points["run"]["accuracy"], 100 * expected[1])
        self.assertNotIn("tiny.tap", points)
        self.assertIn("tiny.tap left out", self.result.stderr)
        self.assertIn("expected --data with 10 classes", self.result.stderr)

    def test_a_file_says_how_it_was_trained(self):
        model = self.tap("tiny.tap", flags=("--method", "sal", "--share", 4))
        kinds = [point["kind"] for point in self.points(model, "--data", DATA, data=DATA).values()]
        self.assertEqual(kinds, ["frozen taps=1 share=4"])
        set_metadata(model, "about.method", "magnitude taps=1")
        kinds = [point["kind"] for point in self.points(model, "--data", DATA, data=DATA).values()]
        self.assertEqual(kinds, ["magnitude taps=1"])

    def test_int8_files_are_kinds_of_their_own(self):
        for name, method in (("dense", "conv"), ("sal", "sal")):
            run = self.make_run("runs/" + name, 0.9, method=method, share="4x4", data=DATA)
            self.quantize(os.path.join(run, "model.tap"))
        alone = self.quantize(self.tap("files/tiny.tap"), self.path("files", "tiny-int8.tap"))
        answer = self.frontier(self.path("runs"), alone, "--data", DATA)[DATA]
        points = {p["name"]: p for p in answer["points"]}
        self.assertEqual({name: (p["kind"], p["type"], p["network"]) for name, p in points.items()}, {
            "runs/dense": ("dense", "f32", "resnet8 w4"),
            "runs/sal": ("sal taps=1 share=4x4", "f32", "resnet8 w4"),
            "runs/dense/model-int8.tap": ("dense int8", "int8", "resnet8 w4"),
            "runs/sal/model-int8.tap": ("sal taps=1 share=4x4 int8", "int8", "resnet8 w4"),
            "files/tiny-int8.tap": ("dense int8", "int8", "resnet8")})
        for name in ("runs/dense/model-int8.tap", "files/tiny-int8.tap"):
            path = self.path(name)
            tested = json.loads(self.succeeds("eval", path, "--data", DATA, "--json").stdout)[0]["accuracy"]
            self.assertAlmostEqual(points[name]["accuracy"], 100 * tested)
            self.assertEqual(points[name]["accuracy_of"], "file")
            self.assertEqual(points[name]["bytes"], os.path.getsize(path))
        self.assertEqual(points["runs/dense"]["macs"], points["runs/dense/model-int8.tap"]["macs"])
        # Dense networks of floats against all other kinds, those of int8 against int8.
        rows = {(row["dense"], row["kind"]) for row in answer["equal_accuracy"]}
        int8 = "sal taps=1 share=4x4 int8"
        self.assertEqual(rows, {("runs/dense", "sal taps=1 share=4x4"), ("runs/dense", "dense int8"), ("runs/dense", int8),
                                ("runs/dense/model-int8.tap", int8), ("files/tiny-int8.tap", int8)})

    def test_int8_files_never_have_the_accuracy_of_the_run(self):
        run = self.make_run("run", 0.77, data=DATA)
        file = self.quantize(os.path.join(run, "model.tap"))
        with open(file, "rb") as content:
            header = content.read()[8:]
        tested = float(re.search(rb'"about.tested":"([0-9.e-]+) of 40 images, shapes"', header).group(1))
        points = self.points(run, "--no-eval", data=DATA)
        self.assertEqual({name: p["accuracy_of"] for name, p in points.items()},
                         {"run": "run", "run/model-int8.tap": "quantize"})
        self.assertAlmostEqual(points["run/model-int8.tap"]["accuracy"], 100 * tested)
        for other in ("0.5 of 40 images, cifar10", "much"):
            set_metadata(file, "about.tested", other)
            self.assertEqual(list(self.points(run, "--no-eval", data=DATA)), ["run"])
            self.assertIn("run/model-int8.tap left out", self.result.stderr)

    def test_int8_files_of_seeds(self):
        for seed in range(2):
            run = self.make_run(f"runs/s{seed}", 0.9, seed=seed, data=DATA)
            self.quantize(os.path.join(run, "model.tap"))
        points = self.points(self.path("runs"), "--mean-seeds", data=DATA)
        self.assertEqual({name: (p["kind"], p["seeds"]) for name, p in points.items()},
                         {"s0": ("dense", 2), "s0/model-int8.tap": ("dense int8", 2)})

    def test_data_that_is_not_here(self):
        self.make_run("a", 0.9, data="cifar10:" + self.path("nowhere"))
        points = self.points(self.path("a"))
        self.assertEqual((points["a"]["accuracy"], points["a"]["accuracy_of"]), (90, "run"))
        self.assertIn("accuracies are those that the runs recorded", self.result.stderr)

    def test_directories_of_sweeps_and_reproductions(self):
        for name in ("sweep/seed=0", "sweep/seed=1", "reproduced/runs/x-e1-s0", "reproduced/.partial-y"):
            self.make_run(name, 0.9)
        self.write("reproduced/runs/x-e1-s0.log", "log")
        self.write("sweep/recipe.toml", "")
        names = ["reproduced/runs/x-e1-s0", "sweep/seed=0", "sweep/seed=1"]
        self.assertEqual(sorted(self.points(self.path("sweep"), self.path("reproduced"), "--no-eval")), names)
        self.assertEqual(sorted(self.points(self.dir, "--no-eval")), names)
        self.assertEqual(sorted(self.points(self.path("sweep"), "--no-eval")), ["seed=0", "seed=1"])

    def test_several_data_sets_are_not_compared(self):
        self.make_run("runs/ten", 0.9)
        self.make_run("runs/hundred", 0.7, data="cifar100")
        self.make_run("runs/sal", 0.8, method="sal")
        answer = self.frontier(self.path("runs"), "--no-eval")
        self.assertEqual({name: [p["name"] for p in data["points"]] for name, data in answer.items()},
                         {"CIFAR-10": ["ten", "sal"], "CIFAR-100": ["hundred"]})
        self.assertEqual(answer["CIFAR-100"]["equal_accuracy"], [])
        for data in ("CIFAR-10", "CIFAR-100"):
            for measure in MEASURES:
                self.assertTrue(os.path.exists(os.path.join(self.out, f"{data}-{measure}.svg")))

    def test_seeds_can_be_one_point(self):
        for seed, accuracy in enumerate((0.90, 0.92)):
            self.make_run(f"runs/s{seed}", accuracy, seed=seed)
        self.make_run("runs/wide", 0.93, width=8)
        points = self.points(self.path("runs"), "--no-eval", "--mean-seeds")
        self.assertEqual(list(points), ["s0", "wide"])
        self.assertAlmostEqual(points["s0"]["accuracy"], 91)
        self.assertAlmostEqual(points["s0"]["accuracy_sd"], 2 ** 0.5)  # of 90 and 92, n - 1
        self.assertEqual((points["s0"]["seeds"], points["wide"]["seeds"]), (2, 1))
        self.assertIn("91.00 ± 1.41 %", self.text("frontier.md"))

    @unittest.skipUnless(has_onnxruntime(), "no onnxruntime")
    def test_dense_networks_by_onnxruntime(self):
        self.make_run("runs/dense", 0.91)
        self.make_run("runs/sal", 0.92, method="sal")
        answer = self.frontier(self.path("runs"), "--no-eval", "--against", "onnxruntime")["CIFAR-10"]
        peers = [p for p in answer["points"] if p["run_by"] != "onetap"]
        self.assertEqual([(p["name"], p["accuracy"], p["bytes"], p["on_front"]) for p in peers],
                         [("dense", 91, None, ["milliseconds"])])
        self.assertRegex(peers[0]["kind"], r"^dense by ONNX Runtime \d")
        row, = answer["equal_accuracy"]
        self.assertEqual(row["onnxruntime_milliseconds"], peers[0]["milliseconds"])
        self.assertIn("ms / ONNX Runtime's", self.text("frontier.md"))
        self.assertNotIn("by ONNX Runtime", self.text("CIFAR-10-bytes.svg"))
        self.assertIn("by ONNX Runtime", self.text("CIFAR-10-milliseconds.svg"))

    @unittest.skipUnless(has_onnxruntime("numpy, onnxruntime, onnx"), "no onnxruntime and onnx")
    def test_int8_networks_by_onnxruntime(self):
        for name, method in (("dense", "conv"), ("sal", "sal")):
            run = self.make_run("runs/" + name, 0.9, method=method, data=DATA)
            self.quantize(os.path.join(run, "model.tap"))
        answer = self.frontier(self.path("runs"), "--against", "onnxruntime")[DATA]
        peers = {p["name"]: p for p in answer["points"] if p["run_by"] != "onetap"}
        self.assertEqual(sorted(peers), ["dense", "dense/model-int8.tap"])
        peer = peers["dense/model-int8.tap"]
        self.assertRegex(peer["kind"], r"^dense int8 by ONNX Runtime [\d.]+$")
        self.assertEqual((peer["type"], peer["bytes"]), ("int8", None))
        self.assertIn("int8 by ONNX Runtime: it quantizes the same network of floats itself (QDQ, static, weights per "
                      f"output channel, calibrated on 16 images of {DATA})", self.text("frontier.md"))
        rows = {row["dense"]: row for row in answer["equal_accuracy"] if row["kind"] == "sal taps=1 share=1 int8"}
        self.assertEqual(rows["dense/model-int8.tap"]["onnxruntime_milliseconds"], peer["milliseconds"])
        self.assertEqual(rows["dense"]["onnxruntime_milliseconds"], peers["dense"]["milliseconds"])

    @unittest.skipUnless(has_onnxruntime("numpy, onnxruntime, onnx"), "no onnxruntime and onnx")
    def test_without_data_onnxruntime_is_calibrated_with_random_images(self):
        run = self.make_run("runs/dense", 0.9, data="cifar10:" + self.path("nowhere"))
        set_metadata(self.quantize(os.path.join(run, "model.tap")), "about.tested",
                     "0.5 of 40 images, cifar10")
        self.frontier(self.path("runs"), "--against", "onnxruntime")
        self.assertIn("calibrated on 32 random images)", self.text("frontier.md"))

    def test_onnxruntime_that_is_not_there(self):
        self.make_run("a", 0.9)
        self.refused(2, "expected a Python with onnxruntime", *self.command(self.path("a"), "--no-eval", "--against",
                     "onnxruntime"), env={"ONETAP_PYTHON": "false"})
        self.assertFalse(os.path.exists(self.out))


@needs_no_training
class Fronts(Frontier):
    def fronts(self):
        """Bytes and MACs grow with the width."""
        for name, accuracy, width, method in (
                ("d4", 0.60, 4, "conv"), ("d8", 0.725, 8, "conv"), ("d12", 0.70, 12, "conv"), ("d16", 0.80, 16, "conv"),
                ("s8", 0.70, 8, "sal"), ("s12", 0.75, 12, "sal"), ("s16", 0.74, 16, "sal")):
            self.make_run(f"runs/{name}", accuracy, width, method)
        return self.frontier(self.path("runs"), "--no-eval")["CIFAR-10"]

    def test_what_others_beat_is_not_on_the_front(self):
        points = {p["name"]: p for p in self.fronts()["points"]}
        for measure in ("bytes", "macs"):
            self.assertEqual([name for name, point in points.items() if measure in point["on_front"]],
                             ["d4", "d8", "d16", "s8", "s12"], measure)
        with open(os.path.join(self.out, "frontier.csv")) as file:
            rows = {row["name"]: row for row in csv.DictReader(file)}
        self.assertEqual({name: row["on_front_bytes"] for name, row in rows.items()},
                         {name: "01"["bytes" in point["on_front"]] for name, point in points.items()})
        self.assertEqual({name: float(row["memory"]) for name, row in rows.items()},
                         {name: point["memory"] for name, point in points.items()})

    def test_equal_accuracy(self):
        answer = self.fronts()
        points = {p["name"]: p for p in answer["points"]}
        rows = {row["dense"]: row for row in answer["equal_accuracy"]}
        self.assertEqual(list(rows), ["d4", "d12", "d8", "d16"], "accuracies ascend")
        # 72.5 lies half way between 70 and 75: the geometric mean of their costs.
        for measure in ("bytes", "macs"):
            cost = math.sqrt(points["s8"][measure] * points["s12"][measure])
            at = rows["d8"][measure]
            self.assertEqual(at["place"], "interpolated")
            self.assertAlmostEqual(at["cost"] / cost, 1, places=9)
            self.assertAlmostEqual(at["ratio"] / (cost / points["d8"][measure]), 1, places=9)
            self.assertEqual(rows["d12"][measure]["cost"], points["s8"][measure], "a point's own accuracy")
            self.assertEqual(rows["d16"][measure], {"place": "not reached", "cost": None, "ratio": None})
            self.assertEqual((rows["d4"][measure]["place"], rows["d4"][measure]["cost"]),
                             ("upper bound", points["s8"][measure]))
        self.assertRegex(self.text("frontier.md"), r"\| d16 \| resnet8 w16 \| 80.00 % \| sal taps=1 share=1 \| not reached \|")
        self.assertRegex(self.text("frontier.md"), r"\| d4 \| resnet8 w4 \| 60.00 % \| sal taps=1 share=1 \| ≤ ")
        with open(os.path.join(self.out, "equal-accuracy.csv")) as file:
            ratios = {(row["dense"], row["measure"]): row["ratio"] for row in csv.DictReader(file)}
        self.assertAlmostEqual(float(ratios["d8", "bytes"]), rows["d8"]["bytes"]["ratio"])
        self.assertEqual(ratios["d16", "bytes"], "")

    def test_figures(self):
        self.fronts()
        for measure in MEASURES:
            figure = self.text(f"CIFAR-10-{measure}.svg")
            xml.etree.ElementTree.fromstring(figure)
            self.assertEqual(len(re.findall(r"<title>\w+ \((dense|sal taps=1 share=1)\): ", figure)), 7, measure)
        figure = self.text("CIFAR-10-bytes.svg")
        # Two fronts; markers of the beaten d12 and s16 are hollow.
        self.assertEqual(len(re.findall(r'<path d="M[0-9.]+ [0-9.]+L', figure)), 2)
        for name, hollow in (("d12", True), ("s16", True), ("d8", False), ("s12", False)):
            fill, = re.findall(rf'fill="(#\w+)"[^>]*><title>{name} ', figure)
            self.assertEqual(fill in ("#ffffff", "#fff"), hollow, (name, fill))

    def test_a_page_and_points_of_chosen_names(self):
        dense = self.tap("nets/dense.tap")
        page, points = self.path("pages", "front.html"), self.path("points.csv")
        os.makedirs(os.path.dirname(page))
        result = self.succeeds("frontier", dense, "--data", DATA, "-o", page, "--csv", points, *QUICK)
        self.assertEqual(result.stdout.splitlines()[-1], page)
        with open(page) as file:
            self.assertIn('href="front/frontier.csv"', file.read())
        beside = self.path("pages", "front")
        self.assertNotIn("index.html", os.listdir(beside))
        with open(points) as copy, open(os.path.join(beside, "frontier.csv")) as file:
            self.assertEqual(copy.read(), file.read())

    def test_a_copy_among_the_results(self):
        dense, out = self.tap("nets/dense.tap"), self.path("new")
        for name in ("points.csv", "frontier.csv"):  # the second one is there anyway
            self.succeeds("frontier", dense, "--data", DATA, "-o", out, "--csv", os.path.join(out, name),
                          *QUICK)
            self.assertIn(name, os.listdir(out))
        page = os.path.join(out, "index.html")
        os.unlink(page)
        os.mkdir(page)
        self.refused(2, "expected a file for the page, got the folder", "frontier", dense, "-o", out)

    def test_text_and_page(self):
        self.fronts()
        shutil.rmtree(self.out)
        result = self.succeeds(*self.command(self.path("runs"), "--no-eval"))
        self.assertEqual(result.stdout.splitlines()[-1], os.path.join(self.out, "index.html"))
        self.assertIn("CIFAR-10, at equal accuracy", result.stdout)
        self.assertEqual(sorted(os.listdir(self.out)),
                         sorted(["index.html", "frontier.md", "frontier.csv", "equal-accuracy.csv", "frontier.json"] +
                                [f"CIFAR-10-{measure}.svg" for measure in MEASURES]))
        if not browser.available():
            return
        page = browser.Browser(self.path("profile"))
        self.addCleanup(page.close)
        page.open(os.path.join(self.out, "index.html"))
        self.assertEqual(page.script("document.querySelectorAll('.figure svg').length"), 4)
        self.assertEqual(page.script("document.querySelectorAll('tbody tr').length"), 7 + 4)
        page.resize(360, 740)
        self.assertLessEqual(page.script("document.documentElement.scrollWidth"), 360)
        # Figures keep a size at which their labels can be read, and scroll in their boxes.
        self.assertGreaterEqual(page.script("document.querySelector('.figure svg').getBoundingClientRect().width"), 440)
        self.assertEqual(page.console(), [])


@needs_no_training
class BadInput(Frontier):
    def test_no_points(self):
        os.makedirs(self.path("empty"))
        for argument in (self.path("empty"), self.path("nowhere"), self.write("text.txt", "no network")):
            self.refused(4, "expected runs, .tap files or directories", *self.command(argument))
        self.refused(2, "required", "frontier")
        damaged = self.make_run("damaged", 0.9)
        self.write("damaged/model.tap", "x" * 100)
        result = onetap(*self.command(damaged, "--no-eval"))
        self.assertEqual((result.returncode, result.stdout), (4, ""))
        self.assertIn("damaged left out", result.stderr)
        self.assertIn("got none that can be used", result.stderr)
        self.assertFalse(os.path.exists(self.out), "nothing is left behind")

    def test_one_point(self):
        self.make_run("dense", 0.9)
        self.succeeds(*self.command(self.path("dense"), "--no-eval"))
        self.assertIn("Dense networks only", self.text("frontier.md"))
        self.assertNotIn("nan", self.text("CIFAR-10-bytes.svg"))
        self.make_run("sal", 0.9, method="sal")
        self.succeeds(*self.command(self.path("sal"), "--no-eval"))
        self.assertIn("No dense network to compare with", self.text("index.html"))

    def test_what_is_damaged_is_left_out_with_a_warning(self):
        good = self.make_run("runs/good", 0.9)
        self.make_run("runs/config", 0.9)
        self.write("runs/config/config.toml", "epochs = [")
        self.make_run("runs/network", 0.9)
        self.write("runs/network/network.txt", "onetap-net 1\nx = input 3x\n")
        self.make_run("runs/model", 0.9)
        with open(os.path.join(good, "model.tap"), "rb") as file:
            self.write("runs/model/model.tap", file.read()[:-1])
        self.make_run("runs/nan", 0.9)
        self.write("runs/nan/metrics.jsonl", '{"step": 10, "epoch": 1, "split": "test", "acc_hard": NaN}\n')
        self.make_run("runs/untested", 0.9)
        os.remove(self.path("runs", "untested", "metrics.jsonl"))
        self.write("runs/loose.tap", "x")
        self.assertEqual(list(self.points(self.path("runs"), self.path("nowhere"), "--no-eval")), ["good"])
        for name in ("config", "network", "model", "nan", "untested", "loose.tap"):
            self.assertIn(f"warning: {name} left out: ", self.result.stderr)
        self.assertIn(f"got {self.path('nowhere')}", self.result.stderr)

    def test_outputs_that_are_no_numbers(self):
        model = self.tap("models/a.tap")
        with open(model, "r+b") as file:  # finite weights that are too large to compute with
            length = int.from_bytes(file.read(8), "little")
            begin, end = json.loads(file.read(length))["conv1.weight"]["data_offsets"]
            file.seek(8 + length + begin)
            file.write(b"\xff\xff\x7f\x7f" * ((end - begin) // 4))
        self.tap("models/b.tap")
        self.assertEqual(list(self.points(self.path("models"), "--data", DATA, data=DATA)), ["b.tap"])
        self.assertIn("a.tap left out: [eval] expected finite outputs, got nan or inf", self.result.stderr)

    def test_same_names(self):
        self.make_run("a/run", 0.9)
        self.make_run("b/run", 0.8)
        points = self.points(self.path("a"), self.path("b"), self.path("a", "run"), self.path("b", "..", "b"), "--no-eval")
        self.assertEqual(sorted(points), ["a/run", "b/run"])
        self.assertIn("named twice", self.result.stderr)

    def test_hostile_names(self):
        self.make_run("runs/<b>|x", 0.9)
        self.make_run("runs/a,\"b\"", 0.8)
        self.assertEqual(sorted(self.points(self.path("runs"), "--no-eval")), ['<b>|x', 'a,"b"'])
        self.assertNotIn("<b>", self.text("index.html"))
        self.assertIn("&lt;b&gt;|x", self.text("index.html"))
        self.assertIn(r"<b>\|x", self.text("frontier.md"))
        with open(os.path.join(self.out, "frontier.csv")) as file:
            self.assertEqual(sorted(row["name"] for row in csv.DictReader(file)), ['<b>|x', 'a,"b"'])

    def test_a_place_that_is_no_directory(self):
        run = self.make_run("run", 0.9)
        self.write("out", "a file")
        self.refused(2, "expected a folder to write to, got a file", *self.command(run))
        self.refused(2, "expected a directory for the results, got a run", "frontier", run, "-o", run)
        self.refused(2, "did you mean 'cifar10'", "frontier", run, "--data", "cifar1", "-o", self.path("other"))
        os.mkdir(self.path("page.html"))
        for flags, part in ((["-o", self.path("out", "deep")], f"got the file {self.path('out')}"),
                            (["-o", self.path("page.html")], f"got the folder {self.path('page.html')}"),
                            (["-o", self.path("other"), "--csv", self.path("no", "points.csv")], "got no folder"),
                            (["-o", self.path("other"), "--csv", self.dir], f"got the folder {self.dir}"),
                            (["-o", ""], "got an empty one")):
            self.refused(2, part, "frontier", run, "--no-eval", *flags)
        self.assertFalse(os.path.exists(self.path("other")))

    def test_a_copy_in_the_place_of_another_result(self):
        run, out = self.make_run("run", 0.9), self.path("results")
        taken = ["frontier.md", "equal-accuracy.csv", "frontier.json", "index.html", "models", "CIFAR-10-bytes.svg"]
        for is_there in (False, True):
            for name in taken:
                self.refused(2, f"that no other result has, got {out}/{name}", "frontier", run, "--no-eval", "-o", out,
                             "--csv", os.path.join(out, name), *QUICK)
            self.refused(2, "expected a file for --csv, got the folder", "frontier", run, "-o", out, "--csv", out + "/")
            self.assertEqual(os.path.exists(out), is_there)
            if not is_there:
                self.refused(2, "that no other result has", "frontier", run, "-o", out, "--csv", out)
                self.refused(2, "that no other result has", "frontier", run, "-o", out + "/deep", "--csv", out)
                os.mkdir(out)
        self.refused(2, "that no other result has", "frontier", run, "-o", out + ".html", "--csv", out + ".html")
        os.symlink(out, self.path("link"))
        self.refused(2, "that no other result has", "frontier", run, "-o", out, "--csv", self.path("link", "frontier.md"))
        self.assertEqual(os.listdir(out), [])
        # The points themselves, by another name of the folder.
        self.succeeds("frontier", run, "--no-eval", "-o", out, "--csv", self.path("link", "frontier.csv"), *QUICK)
        self.assertIn("frontier.csv", os.listdir(out))

    def test_images_without_the_peer_that_takes_them(self):
        run = self.make_run("run", 0.9)
        self.refused(2, "--images requires --against", *self.command(run, "--no-eval", "--images", "5"))
        self.assertFalse(os.path.exists(self.out))

    def test_impossible_accuracies_are_left_out(self):
        for name, accuracy in (("good", 0.9), ("more", 7), ("less", -0.5)):
            self.make_run("runs/" + name, accuracy)
        self.assertEqual(list(self.points(self.path("runs"), "--no-eval")), ["good"])
        self.assertIn("more left out: [frontier] expected an accuracy from 0 to 100 %, got 700 %", self.result.stderr)
        self.assertIn("less left out: [frontier] expected an accuracy from 0 to 100 %, got -50 %", self.result.stderr)

    def test_names_are_no_formulas(self):
        for name in ("=cmd|calc", "@sum", "plain"):
            self.make_run("runs/" + name, 0.9)
        self.assertEqual(sorted(self.points(self.path("runs"), "--no-eval")), ["=cmd|calc", "@sum", "plain"])
        with open(os.path.join(self.out, "frontier.csv")) as file:
            self.assertEqual(sorted(row["name"] for row in csv.DictReader(file)), ["'=cmd|calc", "'@sum", "plain"])

    def test_results_that_cannot_all_be_written_leave_none(self):
        run = self.make_run("run", 0.9)

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

        result = onetap(*self.command(run), "--no-eval", preexec_fn=limit)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("File too large", result.stderr)
        self.assertEqual(os.listdir(self.out), [])

    def test_a_file_of_another_step_is_told(self):
        run = self.make_run("run", 0.9)
        lines = pathlib.Path(run, "metrics.jsonl")
        lines.write_text(lines.read_text().replace('"step": 10', '"step": 20'))
        self.points(run, "--no-eval")  # it does not say its step
        self.assertNotIn("was frozen at step", self.result.stderr)
        set_metadata(os.path.join(run, "model.tap"), "about.step", "20")
        self.points(run, "--no-eval")
        self.assertNotIn("was frozen at step", self.result.stderr)
        set_metadata(os.path.join(run, "model.tap"), "about.step", "10")
        self.points(run, "--no-eval")
        self.assertIn("was frozen at step 10, the run's last test was at step 20", self.result.stderr)


@needs_no_training
class Freezing(Frontier):
    def program(self, code=0):
        """Freezes by copying a file."""
        model = self.tap("prepared.tap")
        path = self.write("program", f"#!/bin/sh\necho called >> {self.dir}/calls\n[ {code} = 0 ] || {{ echo 'onetap: "
                                     f"[freeze] as planned' >&2; exit {code}; }}\nfor last; do :; done\ncp {model} \"$last\"\n")
        os.chmod(path, 0o755)
        return path

    def test_runs_without_a_file_are_frozen_into_the_output(self):
        self.make_run("runs/sweep/a=1", 0.9, frozen=False)
        self.make_run("runs/b", 0.8)
        points = self.points(self.path("runs"), "--no-eval", "--program", self.program())
        self.assertRegex(points["sweep/a=1"]["file"], re.escape(self.out) + r"/models/sweep%2Fa=1-[0-9a-f]{8}\.tap$")
        self.assertTrue(os.path.exists(points["sweep/a=1"]["file"]))
        self.assertFalse(os.path.exists(self.path("runs", "sweep", "a=1", "model.tap")))

    def test_runs_whose_names_read_alike_have_files_of_their_own(self):
        program = self.program()
        files = []
        for directory in ("one", "two"):
            for name in "ab":
                self.make_run(f"{directory}/{name}", 0.9, frozen=False)
            files.append(self.points(self.path(directory), "--no-eval", "--program", program)["a"]["file"])
        self.assertNotEqual(*files)
        with open(self.path("calls")) as calls:
            self.assertEqual(len(calls.readlines()), 4)

    def test_what_an_earlier_call_froze_is_no_network_of_its_own(self):
        for name in "ab":
            self.make_run(f"runs/{name}", 0.9, frozen=False)
        self.out = self.path("runs", "first")
        self.points(self.path("runs"), "--no-eval", "--program", self.program())
        self.out = self.path("runs", "second")
        self.assertEqual(sorted(self.points(self.path("runs"), "--no-eval", "--program", self.program())), ["a", "b"])

    def test_what_cannot_be_frozen_is_left_out(self):
        self.make_run("runs/a", 0.9, frozen=False)
        self.make_run("runs/b", 0.8)
        self.assertEqual(list(self.points(self.path("runs"), "--no-eval", "--program", self.program(3))), ["b"])
        self.assertIn("a left out: [frontier] freeze ended with exit code 3: onetap: [freeze] as planned",
                      self.result.stderr)
        self.make_run("runs/a", 0.9, frozen=False)
        os.remove(self.path("runs", "a", "checkpoints", "last", "state.json"))
        self.assertEqual(list(self.points(self.path("runs"), "--no-eval", "--program", self.program())), ["b"])
        self.assertIn("expected a finished run or its model.tap, got neither", self.result.stderr)

    @unittest.skipIf(HAS_TRAINING, "built with LibTorch")
    def test_a_build_that_cannot_freeze_says_so(self):
        self.make_run("runs/a", 0.9, frozen=False)
        self.make_run("runs/b", 0.8)
        self.assertEqual(list(self.points(self.path("runs"), "--no-eval")), ["b"])
        self.assertIn("has no training module", self.result.stderr)
        self.assertIn(f"'onetap freeze {self.path('runs', 'a')}'", self.result.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.out, "models")))


class ForReal(Frontier):
    @needs_training
    def test_runs_are_frozen_once(self):
        self.trained(*SMALL, "--method", "sal", out="runs/sal")
        self.trained(*SMALL, "--method", "conv", out="runs/dense")
        data = SMALL[SMALL.index("--data") + 1]
        points = self.points(self.path("runs"), data=data)
        self.assertEqual([p["kind"] for p in points.values()], ["dense", "sal taps=1 share=1"])
        for name, point in points.items():
            row = json.loads(self.succeeds("eval", point["file"], "--data", data, "--json").stdout)[0]
            self.assertEqual(point["accuracy"], round(100 * row["accuracy"], 8))
            self.assertEqual(point["accuracy_of"], "file")
        files = {name: os.stat(point["file"]).st_mtime_ns for name, point in points.items()}
        again = self.points(self.path("runs"), "--no-eval", data=data)
        self.assertEqual({name: os.stat(point["file"]).st_mtime_ns for name, point in again.items()}, files)
        self.assertEqual([p["accuracy_of"] for p in again.values()], ["run", "run"])
        # The file alone says how it was trained.
        loose = self.points(points["sal"]["file"], "--data", data, data=data)
        self.assertEqual([p["kind"] for p in loose.values()], ["sal taps=1 share=1"])


if __name__ == "__main__":
    main()
