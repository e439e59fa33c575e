"""onetap reproduce: the jobs it starts, tables, figures and pages, failures, Ctrl-C, kill and going on; one small
experiment for real."""
import csv
import json
import os
import pathlib
import re
import signal
import subprocess
import unittest
import xml.etree.ElementTree

import browser
from fake_runs import make_run, network_text
from support import HAS_TRAINING, ONETAP, CommandTest, gone, main, needs_no_training, needs_training, onetap, wait_until

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_onetap.py")
SANET = "cifar10-resnet20-w83-sal-e1-s0"
UNEVEN = "cifar10-resnet20-w97-shift-uneven-e1-s0"
SHIFT = "cifar10-resnet20-w97-shift-e1-s0"
SHORT = ["--epochs-scale", "0.001"]  # one epoch each


class Reproduce(CommandTest):
    def setUp(self):
        super().setUp()
        self.out = self.path("out")
        for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
            self.sparse("ten", name, 10000 * 3073)
        self.sparse("hundred", "train.bin", 50000 * 3074)
        self.sparse("hundred", "test.bin", 10000 * 3074)
        self.data = ["--data", "cifar10:" + self.path("ten"), "--data", "cifar100:" + self.path("hundred")]
        self.plan({})

    def sparse(self, folder, name, size):
        """A file of that length that takes no room."""
        with open(self.write(os.path.join(folder, name), ""), "r+") as file:
            file.truncate(size)

    def plan(self, runs):
        """What each run will do, see fake_train.py; keys of verbs say what those do."""
        self.write("fake/plan.json", json.dumps(runs))

    def environment(self):
        return {"FAKE_TRAIN": self.path("fake", "plan.json"), "ONETAP_DATA": self.path("no-cache")}

    def command(self, *arguments):
        return ["reproduce", "--program", PROGRAM, "--out", self.out, *arguments]

    def reproduce(self, *arguments):
        return onetap(*self.command(*arguments), env=self.environment())

    def reproduced(self, *arguments):
        result = self.reproduce(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def start(self, *arguments):
        return subprocess.Popen([ONETAP, *self.command(*arguments)], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env={**os.environ, **self.environment()})

    def entries(self):
        path = pathlib.Path(self.path("fake", "calls.jsonl"))
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def trained(self):
        return [entry["name"] for entry in self.entries() if "arguments" in entry]

    def verbs(self):
        return [entry["verb"] for entry in self.entries() if "verb" in entry]

    def rows(self, name):
        with open(os.path.join(self.out, name, "results.csv")) as file:
            return list(csv.DictReader(file))

    def text(self, *parts):
        return pathlib.Path(self.out, *parts).read_text()

    def run_path(self, name):
        return os.path.join(self.out, "runs", name)


@needs_no_training
class Lists(Reproduce):
    def test_list_has_every_experiment(self):
        names = [entry["name"] for entry in json.loads(self.succeeds("reproduce", "--list", "--json").stdout)]
        self.assertEqual(names, ["table1", "table2", "table3", "table-imagenet", "uneven-shifts", "fig-heatmaps",
                                 "fig-heatmaps-center", "fig-heatmaps-r56", "fig-heatmaps-5x5", "fig-temperature",
                                 "fig-memory", "rivals", "learning", "depth-width", "density", "demo"])
        self.assertIn("fig-temperature", self.succeeds("reproduce", "--list").stdout)

    def test_dry_run(self):
        result = self.reproduced("uneven-shifts", *self.data, "--dry-run", "--epochs-scale", "0.1", "--device", "cuda")
        data, runs = "--data=cifar10:" + self.path("ten"), os.path.join(self.out, "runs")
        training = "--epochs=30 --batch-size=128 --lr=0.1 --lr-every=10 --weight-decay=0.0005 --restart-momentum"
        names = [name.replace("e1", "e30") for name in (SHIFT, SANET, UNEVEN)]
        lines = re.sub(r"about \w+ by", "about TIME by", result.stdout)
        self.assertEqual(lines, "".join(
            f"{name}: new, 30 epochs, 11730 steps, about TIME by H200\n"
            f"  onetap train {first}{training}{last} --device=cuda {data} --seed=0 --out {runs}/{name} --resume\n"
            for name, first, last in (
                (names[0], "--arch=resnet20 --width=97 --method=shift ", ""),
                (names[1], "--arch=resnet20 --width=83 --method=sal ", " --t0=6.7 --t1=0.02"),
                (names[2], f"--shift-table=from:{runs}/{names[1]} --arch=resnet20 --width=97 --method=shift ", ""))))
        self.assertIn("3 jobs", result.stderr)
        self.assertIn("'by H200'", result.stderr)
        self.assertFalse(os.path.exists(self.out))

    def test_dry_run_without_data_and_on_a_cpu(self):
        jobs = json.loads(self.reproduced("fig-heatmaps", "--dry-run", "--json", "--device", "cpu").stdout)
        self.assertEqual([(job["job"], job["state"], job["epochs"], job["steps"], "seconds" in job) for job in jobs],
                         [("cifar10-resnet20-w83-sal-e300-s0", "no data", 300, 117300, False)])
        self.assertIn("--data=cifar10:DIR", jobs[0]["command"])

    def test_time_by_a_run_that_is_there(self):
        self.reproduced("fig-heatmaps", *self.data, *SHORT)  # 10 steps in 2.5 seconds
        job, = json.loads(self.reproduced("fig-heatmaps", *self.data, "--dry-run", "--json", "--device", "cpu").stdout)
        self.assertEqual(job["seconds_by"], SANET)
        self.assertAlmostEqual(job["seconds"], 117300 * 0.25)


@needs_no_training
class Refusals(Reproduce):
    def refuses(self, code, part, *arguments):
        result = self.refused(code, part, *self.command(*arguments), env=self.environment())
        self.assertFalse(os.path.exists(self.out), "nothing is left behind")
        self.assertEqual(self.entries(), [])
        return result

    def test_unknown_names(self):
        self.refuses(2, "did you mean 'table1'", "tabel1")
        message = self.refuses(2, "known: ", "figure7").stderr
        for name in ("table1", "table-imagenet", "fig-heatmaps-5x5", "uneven-shifts", "rivals", "all"):
            self.assertIn(name, message)
        self.refuses(2, "expected a name: table1, table2")
        self.refuses(2, "rows: as many of each shift, in SANet's proportions, SANet", "uneven-shifts", "--only", "x*")

    def test_missing_data(self):
        missing = self.path("nowhere")
        self.refuses(4, f"onetap data fetch cifar10 --to {missing}", "table1", "--data", "cifar10:" + missing)
        self.refuses(4, "'onetap data fetch cifar10 --to DIR'", "fig-heatmaps")
        self.refuses(4, "'onetap data fetch cifar100 --to DIR'", "table3", "--data", "cifar10:" + self.path("ten"))
        self.refuses(4, "--data folder:DIR", "table-imagenet", *self.data)
        self.refuses(4, "expected ImageNet as", "table-imagenet", "--data", "folder:" + missing)
        self.refuses(2, "expected --data cifar10:DIR", "table1", "--data", "shapes")
        self.refuses(2, "each data set once", "table1", *self.data, *self.data)

    def test_files_of_the_wrong_length(self):
        self.sparse("ten", "data_batch_3.bin", 10000 * 3073 - 1)
        self.refuses(4, "expected 30730000 bytes (10000 records of 3073), got 30729999", "fig-heatmaps", *self.data)
        os.remove(self.path("hundred", "train.bin"))
        self.refuses(4, "train.bin", "table3", *self.data[2:])

    def test_bad_numbers(self):
        self.refused(2, "excludes", *self.command("demo", "--report-only", "--dry-run"))
        for bad in (["--epochs-scale", "0"], ["--epochs-scale", "nan"], ["--seeds", "x"], ["--seeds", "-1"],
                    ["--seeds", ""], ["--seeds", "0,"], ["--seeds", "0,,1"], ["-j", "0"], ["--precision", "int4"]):
            message = self.refuses(2, bad[0], "fig-heatmaps", *self.data, *bad).stderr
            self.assertLess(len(message), 200)

    def test_another_training_in_the_place_of_a_run(self):
        self.reproduced("fig-heatmaps", *self.data, *SHORT)
        path = pathlib.Path(self.run_path(SANET), "config.toml")
        path.write_text(path.read_text().replace("width = 83", "width = 80"))
        self.refused(2, "was started with width = 80, expected 83", *self.command("fig-heatmaps", *self.data, *SHORT),
                     env=self.environment())


@needs_no_training
class Jobs(Reproduce):
    def test_runs_start_after_what_they_need(self):
        self.plan({SANET: {"epochs": [[1.0, 0.9, 0.75]]}, UNEVEN: {"epochs": [[1.0, 0.5, 0.5]]}})
        self.reproduced("uneven-shifts", *self.data, *SHORT, "-j", 3)
        trained = self.trained()
        self.assertCountEqual(trained, [SHIFT, SANET, UNEVEN])
        self.assertEqual(trained[2], UNEVEN, "the other two at once, this one after them")
        rows = self.rows("uneven-shifts")
        self.assertEqual([(row["network"], row["state"], row["accuracy_mean"], row["accuracy_published"], row["epochs"],
                           row["epochs_full"]) for row in rows],
                         [("as many of each shift", "finished", "50", "93.17", "1", "300"),
                          ("in SANet's proportions", "finished", "50", "94.8", "1", "300"),
                          ("SANet", "finished", "75", "95.52", "1", "300")])
        self.reproduced("uneven-shifts", "fig-heatmaps", *self.data, *SHORT)
        self.assertEqual(len(self.trained()), 3, "all is there, for the other experiment too")

    def test_channels_are_cut_between_trainings(self):
        network = network_text("resnet8", 4, "conv")
        self.plan({"prune": {"network": network}})
        self.reproduced("table2", "--only", "Pruned-B", *self.data, *SHORT, "--threads", 1)
        source = "cifar10-resnet56-w16-scA-conv-e1-s0"
        cut = os.path.join(self.out, "cuts", source + "-l1-pruned-b")
        self.assertEqual(self.verbs(), [["prune", self.run_path(source), "--by=l1", "--preset=pruned-b",
                                         "--data=cifar10:" + self.path("ten"), "--seed=0", "--threads=1", "-o", cut]])
        self.assertEqual(self.trained()[0], source)
        tuned = next(entry for entry in self.entries() if "arguments" in entry and entry["name"] != source)
        self.assertIn(f"--arch={cut}/network.txt", tuned["arguments"])
        self.assertIn(f"--init={cut}/weights.safetensors", tuned["arguments"])
        row = next(row for row in self.rows("table2") if row["network"] == "Pruned-B")
        self.assertEqual((row["state"], row["params_published"]), ("finished", "730000"))
        # ResNet-8 of width 4, counted by hand: 1 block a stage, widths 4, 8, 16.
        convs = 27 * 4 + 9 * (4 * 4 + 4 * 4 + 4 * 8 + 8 * 8 + 8 * 16 + 16 * 16) + 4 * 8 + 8 * 16
        norms = 2 * (4 + 4 + 4 + 8 + 8 + 8 + 16 + 16 + 16)
        self.assertEqual(float(row["params"]), convs + norms + 16 * 10 + 10)

    def test_frozen_files_are_tested_and_timed_alone(self):
        self.plan({"freeze": {}, "bench": {}})
        self.reproduced("demo", *SHORT, "-j", 2)
        self.assertEqual(sorted(call[0] for call in self.verbs()), ["bench"] * 2 + ["eval"] * 3 + ["freeze"] * 2)
        self.assertEqual([call[0] for call in self.verbs()[-2:]], ["bench", "bench"], "when nothing else runs")
        baseline, sanet = self.rows("demo")
        tap = next(os.path.join(place, "model.tap") for place, _, names in os.walk(self.dir) if "model.tap" in names)
        size = os.path.getsize(tap)
        self.assertEqual((sanet["rounded_mean"], sanet["frozen_mean"], sanet["file_bytes"], sanet["milliseconds"]),
                         ("25", "43.75", str(size), "2.5"))
        self.assertEqual(baseline["rounded_mean"], "", "a dense network has nothing to round")
        self.assertIn(f"| 43.75 % | {size:,} | 2.50 |", self.text("demo", "results.md"))

    def test_what_waits_for_a_failure_is_not_started(self):
        self.plan({SANET: {"fails": [1]}})
        result = self.reproduce("uneven-shifts", *self.data, *SHORT)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"{SANET} ended with exit code 1: onetap: [train] the loss became nan", result.stderr)
        self.assertIn(f"2 of 3 jobs failed or depend on one that did: {SANET}, {UNEVEN}", result.stderr)
        self.assertEqual(self.trained(), [SHIFT, SANET])
        self.assertEqual([row["state"] for row in self.rows("uneven-shifts")],
                         ["finished", "not trained", f"failed after 0 of 1 epochs: see runs/{SANET}.log"])
        self.reproduced("uneven-shifts", *self.data, *SHORT)
        self.assertEqual(self.trained(), [SHIFT, SANET, SANET, UNEVEN])

    def test_a_training_that_fails_at_once_says_where_its_log_is(self):
        self.write("program", "#!/bin/sh\necho 'onetap: [data] as planned' >&2\nexit 4\n")
        os.chmod(self.path("program"), 0o755)
        result = onetap("reproduce", "fig-heatmaps", "--program", self.path("program"), "--out", self.out, *self.data,
                        *SHORT, env=self.environment())
        self.assertEqual(result.returncode, 1, result.stderr)
        row, = self.rows("fig-heatmaps")
        self.assertEqual(row["state"], f"failed: see runs/{SANET}.log")
        self.assertIn("as planned", self.text("runs", SANET + ".log"))
        self.reproduced("fig-heatmaps", *self.data, *SHORT)
        self.assertEqual([row["state"] for row in self.rows("fig-heatmaps")], ["finished"])

    def test_a_training_that_ends_without_a_word_is_marked_too(self):
        for script, words in (("kill -9 $$", "ended by signal 9"), ("printf boom >&2; exit 3", "exit code 3"),
                              ("exit 0", "ended without its last test on record")):
            out = self.path("of " + words)
            self.write("program", f"#!/bin/sh\n{script}\n")
            os.chmod(self.path("program"), 0o755)
            result = onetap("reproduce", "fig-heatmaps", "--program", self.path("program"), "--out", out, *self.data,
                            *SHORT, env=self.environment())
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn(words, result.stderr)
            self.assertIn(words, pathlib.Path(out, "runs", SANET + ".log").read_text().splitlines()[-1])
            self.assertIn(f"failed: see runs/{SANET}.log", pathlib.Path(out, "fig-heatmaps", "results.md").read_text())

    def test_numbers_that_cannot_be_are_left_out(self):
        self.reproduced("demo", *SHORT)
        frozen = [row["frozen_mean"] for row in self.rows("demo")]
        for run in pathlib.Path(self.out, "runs").iterdir():
            if run.is_dir():
                (run / "bench.json").write_text('{"median_ms": -1}')
        result = self.reproduced("demo", *SHORT, "--report-only")
        self.assertIn("expected 'median_ms' in 0..3600000, got -1", result.stderr)
        self.assertEqual([row["milliseconds"] for row in self.rows("demo")], ["", ""])
        self.assertEqual([row["frozen_mean"] for row in self.rows("demo")], frozen)

    def test_a_verb_that_fails_leaves_no_result(self):
        self.plan({"eval": {"fails": True}})
        result = self.reproduce("demo", *SHORT)
        self.assertEqual(result.returncode, 1)
        self.assertIn("[eval] as planned", result.stderr)
        self.assertEqual([row["frozen_mean"] for row in self.rows("demo")], ["", ""])
        self.plan({})
        self.reproduced("demo", *SHORT)
        self.assertEqual([row["frozen_mean"] for row in self.rows("demo")], ["43.75", "43.75"])

    def test_rows_without_data_are_marked(self):
        result = self.reproduced("fig-temperature", *self.data[:2], *SHORT, "--only", "Resnet-20+CIFAR10 T1=0.02")
        self.assertIn("warning: no data for some rows: CIFAR-100: 'onetap data fetch cifar100 --to DIR'",
                      self.reproduced("fig-temperature", *self.data[:2], *SHORT, "--only", "* T1=0.02").stderr)
        self.assertNotIn("no data", result.stderr)
        states = {row["network"]: row["state"] for row in self.rows("fig-temperature")}
        self.assertEqual(states["Resnet-20+CIFAR10 T1=0.02"], "finished")
        self.assertEqual(states["Resnet-20+CIFAR10 T1=1"], "not trained")
        self.assertEqual(states["Resnet-20+CIFAR100 T1=0.02"], "no data")
        self.assertEqual(len(states), 85)


@needs_no_training
class Interrupts(Reproduce):
    TWO = [[1.0, 0.5, 0.4], [0.5, 0.9, 0.8]]
    HALF = ["--epochs-scale", "0.00667"]  # two epochs of 300
    NAME = SANET.replace("e1", "e2")

    def begin(self):
        self.plan({self.NAME: {"epochs": self.TWO, "waits": 1}})
        process = self.start("fig-heatmaps", *self.data, *self.HALF)
        wait_until(lambda: any("waits" in entry for entry in self.entries()))
        return process

    def goes_on(self):
        self.assertEqual(self.rows("fig-heatmaps")[0]["state"], "unfinished: 1 of 2 epochs")
        self.reproduced("fig-heatmaps", *self.data, *self.HALF)
        row, = self.rows("fig-heatmaps")
        self.assertEqual((row["state"], row["accuracy_mean"], row["epochs"]), ("finished", "80", "2"))
        self.assertEqual(self.trained(), [self.NAME] * 2)

    def test_signals_stop_and_the_same_command_goes_on(self):
        process = self.begin()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("the same command resumes", errors)
        self.goes_on()

    def test_after_a_kill_the_same_command_goes_on(self):
        process = self.begin()
        process.kill()
        process.communicate()
        wait_until(lambda: all(gone(entry["pid"]) for entry in self.entries()))
        self.reproduced("fig-heatmaps", "--report-only")
        self.goes_on()

    def test_another_call_is_kept_out(self):
        process = self.begin()
        result = self.reproduce("fig-heatmaps", *self.data, *self.HALF)
        self.assertEqual(result.returncode, 1)
        self.assertIn(str(process.pid), result.stderr)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 143)


@needs_no_training
class Results(Reproduce):
    # By hand: 90, 92 and 97 have the mean 93 and the deviation sqrt(26 / 2) = 3.6056.
    def three_seeds(self):
        self.plan({SANET[:-1] + str(seed): {"epochs": [[1.0, 0.5, hard]]} for seed, hard in
                   enumerate((0.90, 0.92, 0.97))})
        return self.reproduced("fig-heatmaps", *self.data, *SHORT, "--seeds", "0,1,2")

    def test_seeds_are_averaged(self):
        result = self.three_seeds()
        self.assertIn("93.00 ± 3.61 %", result.stdout)
        row, = self.rows("fig-heatmaps")
        self.assertEqual(row["seeds"], "3")
        self.assertAlmostEqual(float(row["accuracy_mean"]), 93)
        self.assertAlmostEqual(float(row["accuracy_sd"]), 13 ** 0.5)
        self.assertIn("| SAL | ResNet-20 | 93.00 ± 3.61 % | 981,609.5 | 129,276,152 | 3 | 1/300 | finished |",
                      self.text("fig-heatmaps", "results.md"))
        answer = json.loads(self.text("fig-heatmaps", "results.json"))
        self.assertEqual([run["seed"] for run in answer["rows"][0]["runs"]], [0, 1, 2])
        self.assertEqual(answer["rows"][0]["epochs_full"], 300)
        self.assertIn("Shortened: 1 of 1 rows", self.text("fig-heatmaps", "results.md"))

    def test_the_memory_figure(self):
        self.reproduced("fig-memory", "--report-only")
        row = next(row for row in self.text("fig-memory", "results.md").splitlines() if "Resnet20+BC w=64" in row)
        # 141,328 words and 1,608,970 activations, as in the paper.
        self.assertIn("| 93.00 % | 141,328 | 141,328 | 1,750,298 | 647,694,848 |", row)
        figure = self.text("fig-memory", "figure.svg")
        self.assertEqual(figure.count("published: "), 24, "83.2 and 88.37 % lie below the paper's axis")
        low = "cifar10-resnet20-w8-conv-e1-s0"
        self.plan({low: {"epochs": [[1.0, 0.5, 0.5]]}})
        self.reproduced("fig-memory", *self.data, *SHORT, "--only", "Resnet20 w=8")
        figure = self.text("fig-memory", "figure.svg")
        self.assertEqual(figure.count("published: "), 26, "ours are always shown")
        self.assertIn("Resnet20 w=8: 50.00 %, 1 of 300 epochs", figure)

    def test_report_only_needs_no_data_and_trains_nothing(self):
        self.three_seeds()
        before = self.text("fig-heatmaps", "results.md")
        for name in os.listdir(os.path.join(self.out, "fig-heatmaps")):
            os.remove(os.path.join(self.out, "fig-heatmaps", name))
        calls = len(self.entries())
        answer = json.loads(self.reproduced("fig-heatmaps", "--report-only", "--json").stdout)
        self.assertEqual(answer[0]["rows"][0]["accuracy"]["mean"], 93)
        self.assertEqual(self.text("fig-heatmaps", "results.md"), before)
        self.assertEqual(len(self.entries()), calls)

    def test_a_longer_run_takes_the_place_of_shorter_ones(self):
        self.three_seeds()
        self.plan({"cifar10-resnet20-w83-sal-e2-s1": {"epochs": [[1.0, 0.5, 0.5], [1.0, 0.5, 0.6]]}})
        self.reproduced("fig-heatmaps", *self.data, "--epochs-scale", "0.00667", "--seeds", "1")
        row, = self.rows("fig-heatmaps")
        self.assertEqual((row["accuracy_mean"], row["accuracy_sd"], row["epochs"], row["seeds"]), ("60", "", "2", "1"))

    def test_a_figure_without_points_says_so(self):
        self.reproduced("rivals", "--report-only")
        self.assertIn("no points yet", self.text("rivals", "figure.svg"))
        self.reproduced("fig-memory", "--report-only")
        self.assertNotIn("no points yet", self.text("fig-memory", "figure.svg"))

    def fake_results(self):
        """Plausible runs for three experiments, with attention."""
        make_run(self.run_path("cifar10-resnet20-w83-sal-e40-s0"), width=83, best=0.953)
        make_run(self.run_path("cifar10-resnet20-w97-shift-e40-s0"), method="conv", width=97, best=0.934)
        for name in os.listdir(os.path.join(self.out, "runs")):
            last = os.path.join(self.run_path(name), "checkpoints", "last")
            os.makedirs(last)
            with open(os.path.join(last, "state.json"), "w") as file:
                json.dump({"format": 1, "step": 391 * 40, "epoch_logged": True, "loss_sum": 0, "right": 0, "seen": 0,
                           "temperature": 1, "wall_s": 0, "metrics_bytes": 0, "attention_bytes": 0, "best_accuracy": 0,
                           "best_step": -1}, file)
        self.reproduced("fig-heatmaps", "uneven-shifts", "fig-temperature", "--report-only")

    def test_figures_are_well_formed_and_have_both_kinds_of_points(self):
        self.fake_results()
        figures = {}
        for name in ("fig-heatmaps", "uneven-shifts", "fig-temperature"):
            figures[name] = self.text(name, "figure.svg")
            xml.etree.ElementTree.fromstring(figures[name])
        self.assertIn("Ours: ResNet-20, seed 0, 40 of 300 epochs", figures["fig-heatmaps"])
        self.assertIn("Published", figures["fig-heatmaps"])
        self.assertEqual(figures["fig-heatmaps"].count("<svg "), 3)
        self.assertEqual(figures["uneven-shifts"].count("published: "), 3)
        self.assertEqual(figures["uneven-shifts"].count("of 300 epochs"), 2)
        self.assertEqual(figures["fig-temperature"].count("published: "), 85)
        self.assertEqual(figures["fig-temperature"].count("of 300 epochs"), 2, "one run, in both panels")

    @unittest.skipUnless(browser.available(), "no chromium")
    def test_pages_open_in_a_browser(self):
        self.fake_results()
        with_browser = browser.Browser(self.path("profile"))
        self.addCleanup(with_browser.close)
        for name, rows in (("fig-heatmaps", 1), ("uneven-shifts", 3), ("fig-temperature", 85)):
            with_browser.open(os.path.join(self.out, name, "index.html"))
            self.assertEqual(with_browser.script("document.querySelectorAll('tbody tr').length"), rows)
            width = "document.querySelector('.figure svg').getBoundingClientRect().width"
            self.assertGreater(with_browser.script(width), 300)
            with_browser.resize(360, 740)
            self.assertLessEqual(with_browser.script("document.documentElement.scrollWidth"), 360)
            with_browser.resize(1280, 900)
            for target in with_browser.script("[...document.querySelectorAll('a')].map((a) => a.getAttribute('href'))"):
                self.assertTrue(os.path.exists(os.path.join(self.out, name, target)), target)
            with_browser.open(os.path.join(self.out, name, "runs.html"))
            self.assertEqual(with_browser.console(), [])


class ForReal(Reproduce):
    def test_without_libtorch_it_says_so(self):
        if not HAS_TRAINING:
            self.refused(2, "has no training module", "reproduce", "demo", "--out", self.out)

    @needs_training
    def test_demo(self):
        command = ["reproduce", "demo", "--epochs-scale", "0.34", "--out", self.out, "--device", "cpu", "--threads", 1,
                   "--json"]
        answer = json.loads(self.succeeds(*command).stdout)
        rows = answer[0]["rows"]
        self.assertEqual([(row["state"], row["epochs"], row["epochs_full"]) for row in rows], [("finished", 2, 6)] * 2)
        for row in rows:
            self.assertGreater(row["accuracy"]["mean"], 20, "chance is 10 %")
            self.assertAlmostEqual(row["frozen"]["mean"], row["accuracy"]["mean"], delta=1)
            self.assertGreater(row["milliseconds"], 0)
            file = os.path.join(self.run_path(row["runs"][0]["run"]), "model.tap")
            self.assertEqual(row["file_bytes"], os.path.getsize(file))
        again = onetap(*command, "-v")
        self.assertEqual(json.loads(again.stdout), answer)
        self.assertNotIn("starts", again.stderr)


if __name__ == "__main__":
    main()
