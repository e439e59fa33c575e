"""onetap sweep with a stand-in for training: the runs it starts, its tables, failures, Ctrl-C and going on."""
import collections
import csv
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import unittest

from support import HAS_TRAINING, ONETAP, CommandTest, gone, main, onetap, terminal_parts, wait_until

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_train.py")


class Sweep(CommandTest):
    def setUp(self):
        super().setUp()
        self.out = self.path("sweep")
        self.plan({})

    def plan(self, runs):
        """What each run will do, see fake_train.py."""
        self.write("fake/plan.json", json.dumps(runs))

    def environment(self):
        return {"FAKE_TRAIN": self.path("fake", "plan.json")}

    def sweep(self, *arguments):
        return onetap("sweep", "--program", PROGRAM, "--out", self.out, *arguments, env=self.environment())

    def swept(self, *arguments):
        result = self.sweep(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def start(self, *arguments):
        return subprocess.Popen([ONETAP, "sweep", "--program", PROGRAM, "--out", self.out, *arguments], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **self.environment()})

    def notes(self, kind):
        """What the stand-ins noted: (run, what) in order."""
        path = pathlib.Path(self.path("fake", "calls.jsonl"))
        lines = path.read_text().splitlines() if path.exists() else []
        entries = [json.loads(line) for line in lines]
        return [(entry["name"], entry[kind]) for entry in entries if kind in entry]

    def calls(self):
        return [name for name, _ in self.notes("arguments")]

    def forget_calls(self):
        os.remove(self.path("fake", "calls.jsonl"))

    def rows(self, name="results.csv"):
        with open(os.path.join(self.out, name)) as file:
            return list(csv.DictReader(file))

    def text(self, name):
        return pathlib.Path(self.out, name).read_text()


class Results(Sweep):
    # By hand: over seeds of t1 = 0.02 the hard accuracies 0.90, 0.92 and 0.97 have the mean 2.79 / 3 = 0.93, the
    # deviations -0.03, -0.01, 0.04 the squares 0.0026, and the root of 0.0026 / 2 is 0.03605551.
    RUNS = {
        "seed=0,t1=0.02": {"epochs": [[2.0, 0.5, 0.3], [1.0, 0.8, 0.95], [0.5, 0.91, 0.90]]},
        "seed=1,t1=0.02": {"epochs": [[0.25, 0.93, 0.92]]},
        "seed=2,t1=0.02": {"epochs": [[0.75, 0.98, 0.97]]},
        "seed=0,t1=0.1": {"epochs": [[1.5, 0.5, 0.25]]},
        "seed=1,t1=0.1": {"fails": [1, 2]},
        "seed=2,t1=0.1": {"epochs": [[1.0, 0.5, 0.75]]},
    }

    def run_it(self, *arguments):
        self.plan(self.RUNS)
        return self.sweep("--grid", "seed=0,1,2", "--grid", "t1=0.02,0.1", *arguments)

    def test_files(self):
        self.assertEqual(self.run_it().returncode, 1)
        rows = self.rows()
        self.assertEqual([(row["seed"], row["t1"]) for row in rows],
                         [("0", "0.02"), ("0", "0.1"), ("1", "0.02"), ("1", "0.1"), ("2", "0.02"), ("2", "0.1")])
        self.assertEqual(rows[0], {"seed": "0", "t1": "0.02", "state": "finished", "acc_hard": "0.9",
                                   "best_acc_hard": "0.95", "acc_soft": "0.91", "loss": "0.5", "epochs": "3",
                                   "wall_s": "7.5"})
        self.assertEqual(rows[3], {"seed": "1", "t1": "0.1", "state": "failed", "acc_hard": "", "best_acc_hard": "",
                                   "acc_soft": "", "loss": "", "epochs": "", "wall_s": ""})
        low, high = self.rows("results-over-seeds.csv")
        self.assertEqual((low["t1"], low["seeds"], high["t1"], high["seeds"]), ("0.02", "3", "0.1", "2"))
        for name, mean, sd in (("acc_hard", 0.93, 0.0013 ** 0.5), ("best_acc_hard", 2.84 / 3, 0.00063333333 ** 0.5),
                               ("acc_soft", 0.94, 0.0013 ** 0.5), ("loss", 0.5, 0.25)):
            self.assertAlmostEqual(float(low[name + "_mean"]), mean, places=7)
            self.assertAlmostEqual(float(low[name + "_sd"]), sd, places=7)
        self.assertAlmostEqual(float(high["acc_hard_mean"]), 0.5)
        self.assertAlmostEqual(float(high["acc_hard_sd"]), 0.125 ** 0.5)
        markdown = self.text("results.md")
        self.assertIn("| 0 | 0.02 | finished | 90.00 % | 95.00 % | 91.00 % | 0.5000 | 3 | 7.5 |", markdown)
        self.assertIn("| 1 | 0.1 | failed |  |  |  |  |  |  |", markdown)
        self.assertIn("| 0.02 | 3 | 93.00 % | 3.61 % | 94.67 % | 2.52 % | 94.00 % | 3.61 % | 0.5000 | 0.2500 |", markdown)

    def test_table_and_json(self):
        result = self.run_it()
        self.assertIn("over seeds:", result.stdout)
        self.assertRegex(result.stdout, r"0\.02 +3 +93\.00 % +3\.61 %")
        self.assertIn("seed=0,t1=0.02: soft 91.00 %, hard 90.00 %", result.stderr)
        self.assertIn("[sweep] 1 of 6 runs failed", result.stderr.splitlines()[-1])
        result = self.sweep("--json", "-q")
        self.assertEqual(result.returncode, 1)
        answer = json.loads(result.stdout)
        self.assertEqual(answer["runs"][0],
                         {"name": "seed=0,t1=0.02", "values": {"seed": 0, "t1": 0.02}, "state": "finished",
                          "acc_hard": 0.9, "best_acc_hard": 0.95, "acc_soft": 0.91, "loss": 0.5, "epochs": 3,
                          "wall_s": 7.5})
        self.assertEqual(answer["runs"][3]["acc_hard"], None)
        self.assertEqual(answer["over_seeds"][0]["values"], {"t1": 0.02})
        self.assertEqual(answer["over_seeds"][0]["seeds"], 3)
        self.assertAlmostEqual(answer["over_seeds"][0]["acc_hard"]["mean"], 0.93)

    def test_without_seeds_there_are_no_means(self):
        result = self.swept("--grid", "width=4,8")
        self.assertNotIn("over seeds", result.stdout)
        self.assertFalse(os.path.exists(os.path.join(self.out, "results-over-seeds.csv")))

    def test_one_seed_has_no_deviation(self):
        self.swept("--grid", "seed=3", "--grid", "width=4")
        self.assertEqual(self.rows("results-over-seeds.csv")[0]["acc_hard_sd"], "")


class Runs(Sweep):
    def test_what_the_children_are_given(self):
        recipe = self.write("r.toml", 'arch = "resnet8"\nepochs = 7\nlr = 0.5\ninit = "w.safetensors"\n')
        self.swept(recipe, "--lr", 0.25, "--grid", "batch-size=16,32", "--grid", "flip=true,false", "--threads", 1)
        pinned = os.path.join(self.out, "recipe.toml")
        self.assertEqual(self.notes("arguments")[1],
                         ("batch_size=16,flip=false",
                          ["train", pinned, "--batch-size=16", "--no-flip", "--out",
                           os.path.join(self.out, "batch_size=16,flip=false"), "--resume"]))
        self.assertIn("--flip", self.notes("arguments")[0][1])
        for line in ('arch = "resnet8"', "epochs = 7", "lr = 0.25", "threads = 1",
                     f'init = "{os.path.abspath("w.safetensors")}"'):
            self.assertIn(line, self.text("recipe.toml"))

    def test_shares_are_numbers_or_texts(self):
        answer = json.loads(self.swept("--grid", "share=4,4x4,all", "--json").stdout)
        self.assertEqual([run["values"]["share"] for run in answer["runs"]], [4, "4x4", "all"])
        self.assertEqual([row["share"] for row in self.rows()], ["4", "4x4", "all"])
        self.assertIn("--share=4x4", self.notes("arguments")[1][1])
        self.assertEqual(self.sweep("--grid", "share=4x", "--dry-run").returncode, 2)

    def test_names_are_safe_and_distinct(self):
        long = ",".join(f"layer{i}.*" for i in range(60))
        self.swept("--grid", f"layers=layer2.*,!a/b;layer3.*;{long};{long}x")
        names = self.calls()
        self.assertEqual(names[:2], ["layers=layer2.%2A,%21a%2Fb", "layers=layer3.%2A"])
        self.assertEqual(len(set(names)), 4)
        self.assertTrue(all(len(name) <= 200 and "/" not in name for name in names))
        self.assertEqual(self.rows()[0]["layers"], "layer2.*,!a/b")
        self.assertEqual(self.swept().stderr, "", "the plan comes back, and all is done")

    def test_jobs_at_a_time(self):
        self.plan({f"seed={i}": {"seconds": 0.4} for i in range(4)})
        self.swept("--grid", "seed=0,1,2,3", "--jobs", 2)
        lines = [json.loads(line) for line in pathlib.Path(self.path("fake", "calls.jsonl")).read_text().splitlines()]
        running, most = 0, 0
        for line in lines:
            running += 1 if "arguments" in line else -1 if "finished" in line else 0
            most = max(most, running)
        self.assertEqual(most, 2)

    def test_finished_runs_are_left_alone_and_failed_ones_tried_once_a_call(self):
        self.plan({"seed=1": {"fails": [1, 2]}})
        result = self.sweep("--grid", "seed=0,1,2")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(self.calls(), ["seed=0", "seed=1", "seed=2"])
        self.assertIn("seed=1 ended with exit code 1: onetap: [train] the loss became nan", result.stderr)
        self.assertIn(os.path.join(self.out, "seed=1.log"), result.stderr)
        self.assertEqual(self.sweep().returncode, 1)
        self.assertEqual(self.swept().stderr.count("seed=1: "), 1)
        self.assertEqual(self.calls(), ["seed=0", "seed=1", "seed=2", "seed=1", "seed=1"])
        self.assertEqual(self.text("seed=1.log").count("sitting"), 3, "the log keeps every sitting")
        self.swept()
        self.assertEqual(len(self.calls()), 5)

    def test_a_run_that_is_killed_has_failed(self):
        self.plan({"seed=0": {"waits": 1}})
        process = self.start("--grid", "seed=0,1")
        wait_until(lambda: self.notes("waits"))
        os.kill(self.notes("pid")[0][1], signal.SIGKILL)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 1)
        self.assertIn("seed=0 was ended by signal 9 (Killed)", errors)
        self.assertEqual([row["state"] for row in self.rows()], ["failed", "finished"])

    def test_dry_run_lists_and_leaves_nothing(self):
        result = self.swept("--grid", "seed=0,1", "--dry-run")
        self.assertIn("seed=0  new", result.stdout)
        self.assertFalse(os.path.exists(self.out))
        self.plan({"seed=1": {"epochs": [[1, 0.5, 0.5], [1, 0.6, 0.6]], "waits": 1}})
        process = self.start("--grid", "seed=0,1")
        wait_until(lambda: self.notes("waits"))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        self.assertEqual(json.loads(self.swept("--grid", "seed=0,1,2", "--dry-run", "--json").stdout),
                         [{"name": "seed=0", "state": "finished"}, {"name": "seed=1", "state": "resumes"},
                          {"name": "seed=2", "state": "new"}])
        self.assertEqual([row["state"] for row in self.rows()], ["finished", "stopped"])


class Recipes(Sweep):
    def setUp(self):
        super().setUp()
        # Installed recipes lie beside the program; what it links is found from a copy of it, too.
        self.program = self.path("bin", "onetap")
        os.makedirs(os.path.dirname(self.program))
        shutil.copy(ONETAP, self.program)
        self.recipe = self.write("share/onetap/recipes/mine.toml", 'arch = "resnet8"\ndata = "shapes"\nepochs = 1\n')
        os.makedirs(self.path("here", "recipes"))

    def said(self, *arguments):
        result = subprocess.run([self.program, "sweep", "--grid", "seed=0", "--dry-run", "--program", PROGRAM, "--out", "x",
                                 *arguments], capture_output=True, text=True, cwd=self.path("here"))
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr

    def test_an_installed_recipe_is_named(self):
        for name in ("mine.toml", "recipes/mine.toml"):
            self.assertEqual(self.said(name).count(f"using {os.path.realpath(self.recipe)}\n"), 1, name)
            self.assertNotIn("using", self.said("-q", name))

    def test_a_recipe_of_ones_own_comes_first(self):
        for name in ("recipes/mine.toml", "mine.toml"):
            shutil.copy(self.recipe, self.path("here", name))
            self.assertNotIn("using", self.said(name))


class Interrupts(Sweep):
    TWO = [[1.0, 0.5, 0.4], [0.5, 0.9, 0.8]]

    def begin(self, *arguments, deaf=False):
        """Runs 1 and 2 of four wait for a signal after their first epoch."""
        self.plan({f"seed={i}": {"epochs": self.TWO, "waits": 1 if i in (1, 2) else 0, "deaf": deaf} for i in range(4)})
        process = self.start("--grid", "seed=0,1,2,3", "--jobs", "2", *arguments)
        wait_until(lambda: len(self.notes("waits")) == 2)
        return process

    def test_signals_stop_the_runs_and_the_next_call_goes_on(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            self.out = self.path(f"sweep{code}")
            process = self.begin()
            process.send_signal(number)
            _, errors = process.communicate(timeout=30)
            self.assertEqual(process.returncode, code, errors)
            self.assertIn(f"'onetap sweep --out {self.out}' resumes the sweep", errors)
            self.assertCountEqual(self.notes("signal"), [("seed=1", number), ("seed=2", number)])
            self.assertEqual([(row["state"], row["epochs"]) for row in self.rows()],
                             [("finished", "2"), ("stopped", "1"), ("stopped", "1"), ("waiting", "")])
            self.assertEqual(self.rows("results-over-seeds.csv")[0]["seeds"], "1", "means are of finished runs")
            self.swept()
            self.assertEqual(collections.Counter(self.calls()), {"seed=0": 1, "seed=1": 2, "seed=2": 2, "seed=3": 1})
            self.assertEqual([(row["state"], row["acc_hard"]) for row in self.rows()], [("finished", "0.8")] * 4)
            self.forget_calls()

    def test_a_second_signal_kills(self):
        process = self.begin(deaf=True)
        process.send_signal(signal.SIGINT)
        wait_until(lambda: len(self.notes("signal")) == 2)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertTrue(all(gone(pid) for _, pid in self.notes("pid")))

    def test_no_run_survives_and_none_is_lost_when_the_sweep_is_killed(self):
        process = self.begin()
        process.kill()
        process.communicate()
        wait_until(lambda: all(gone(pid) for _, pid in self.notes("pid")))
        self.swept()
        self.assertEqual([row["state"] for row in self.rows()], ["finished"] * 4)

    def test_a_rival_is_kept_out(self):
        process = self.begin()
        result = self.sweep()
        self.assertEqual(result.returncode, 1)
        self.assertIn(str(process.pid), result.stderr)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)

    def test_progress_and_ctrl_c_in_a_terminal(self):
        self.plan({"seed=1": {"epochs": self.TWO, "waits": 1}})
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(ONETAP, [ONETAP, "sweep", "--program", PROGRAM, "--out", self.out, "--grid", "seed=0,1"],
                      {**os.environ, **self.environment(), "TERM": "xterm"})
        shown = b""
        for part in terminal_parts(terminal):
            before, shown = shown, shown + part
            if b"1 of 2 runs done, 1 running, 0 failed" in shown and b"1 of 2 runs done" not in before:
                wait_until(lambda: self.notes("waits"))
                os.write(terminal, b"\x03")
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
        self.assertEqual(os.WEXITSTATUS(status), 130)
        self.assertIn(b"ETA", shown)
        self.assertEqual(self.notes("signal"), [("seed=1", signal.SIGINT)], "once, not by the terminal as well")


class Plan(Sweep):
    def setUp(self):
        super().setUp()
        self.swept("--epochs", 5, "--grid", "seed=0,1", "--grid", "t1=0.02,0.1")
        self.forget_calls()

    def refuses(self, code, part, *arguments):
        before = {name: self.text(name) for name in ("sweep.json", "recipe.toml", "results.csv")}
        self.refused(code, part, "sweep", "--program", PROGRAM, "--out", self.out, *arguments, env=self.environment())
        self.assertEqual(self.calls(), [])
        self.assertEqual(before, {name: self.text(name) for name in before})

    def test_a_grid_may_grow(self):
        self.swept("--grid", "t1=0.5,0.1,0.020", "--grid", "seed=1,2,0")
        self.assertEqual(sorted(self.calls()), ["seed=0,t1=0.5", "seed=1,t1=0.5", "seed=2,t1=0.02", "seed=2,t1=0.1",
                                                "seed=2,t1=0.5"])
        self.assertEqual(len(self.rows()), 9)
        self.assertEqual(self.swept().stderr, "", "the larger grid is the plan now")

    def test_another_grid_is_refused(self):
        self.refuses(2, "was started with --grid t1=0.02,0.1, got t1=0.02,0.5: values may be added, not left out",
                     "--grid", "seed=0,1", "--grid", "t1=0.02,0.5")
        self.refuses(2, "was started with a grid over seed, t1, got seed", "--grid", "seed=0,1")
        self.refuses(2, "was started with a grid over seed, t1, got seed, t1, lr", "--grid", "seed=0,1", "--grid",
                     "t1=0.02,0.1", "--grid", "lr=0.1")
        self.refuses(2, "was started with a grid over seed, t1, got seed, lr", "--grid", "seed=0,1", "--grid", "lr=1")

    def test_another_recipe_is_refused(self):
        self.refuses(2, "was started with epochs = 5, got 6: a resumed sweep keeps its recipe", "--epochs", 6)
        recipe = self.write("r.toml", 'arch = "resnet8"\n')
        self.refuses(2, "was started with arch = resnet20, got resnet8", recipe)

    def test_what_does_not_alter_the_computation_may_change(self):
        recipe = self.write("r.toml", "epochs = 5\nseed = 7\n")  # the grid decides the seed
        self.swept(recipe, "--threads", 3, "--workers", 2)
        self.assertIn("threads = 3", self.text("recipe.toml"))

    def test_a_damaged_plan_is_bad_data_and_a_damaged_run_hides_no_other(self):
        for text in ("", "[]", '{"format": 1}', '{"format": 1, "grid": [1]}', '{"format": 9, "grid": []}',
                     '{"format": 1, "grid": "seed=0"}'):
            self.write("sweep/sweep.json", text)
            self.refuses(4, "sweep.json")
        self.write("sweep/sweep.json", '{"format": 1, "grid": ["seed=0,1", "t1=0.02,0.1"]}')
        self.write("sweep/seed=0,t1=0.1/metrics.jsonl", "no JSON\n")
        result = self.sweep()
        self.assertIn("warning:", result.stderr)
        self.assertEqual([row["acc_hard"] != "" for row in self.rows()], [True, False, True, True])


class Refusals(Sweep):
    def refuses(self, part, *arguments, code=2):
        self.refused(code, part, "sweep", "--program", PROGRAM, "--out", self.out, *arguments, env=self.environment())
        self.assertFalse(os.path.exists(self.out))
        self.assertEqual(self.calls(), [])

    def test_of_grids(self):
        self.refuses("expected --grid KEY=VALUE")
        self.refuses("expected --grid KEY=VALUE,VALUE..., got 'seed'", "--grid", "seed")
        self.refuses("unknown key seeds (--grid seeds=0,1), did you mean 'seed'?", "--grid", "seeds=0,1")
        self.refuses("expected a whole number for seed (--grid seed=0,x), got 'x'", "--grid", "seed=0,x")
        self.refuses("did you mean 'cosine'", "--grid", "schedule=step,cosin")
        self.refuses("between separators", "--grid", "seed=0,,1")
        self.refuses("between separators", "--grid", "seed=")
        self.refuses("got 0.10 twice", "--grid", "t1=0.1,0.10")
        self.refuses("each key once", "--grid", "seed=0", "--grid", "seed=1")
        self.refuses("got both", "--grid", "seed=0,1", "--seed", 3)
        self.refuses("at most 100000 runs", *[word for key in ("pad", "taps", "epochs", "seed", "width", "workers")
                                              for word in ("--grid", f"{key}=1,2,3,4,5,6,7,8")])

    def test_of_combinations(self):
        self.refuses("expected t1 to be at most t0 = 0.5 (the temperature falls), got 0.6 (t0=0.5,t1=0.6)",
                     "--grid", "t0=1,0.5", "--grid", "t1=0.02,0.6")
        self.refuses("did you mean 'shapes'", "--grid", "data=shape,cifar10")

    def test_of_the_rest(self):
        self.refused(2, "--out is required", "sweep", "--grid", "seed=0")
        self.refuses("missing.toml", self.path("missing.toml"), "--grid", "seed=0")
        self.refuses("--jobs", "--grid", "seed=0", "--jobs", 0)
        self.write("run/config.toml", "epochs = 1\n")
        self.refused(2, "got a run", "sweep", "--program", PROGRAM, "--out", self.path("run"), "--grid", "seed=0")
        self.refused(2, "cannot start", "sweep", "--program", self.path("nothing"), "--out", self.out, "--grid", "seed=0")

    @unittest.skipIf(HAS_TRAINING, "built with LibTorch")
    def test_of_training_that_is_not_there(self):
        self.refused(2, "[sweep] this onetap has no training module", "sweep", "--grid", "seed=0", "--out", self.out)
        self.assertFalse(os.path.exists(self.out))


if __name__ == "__main__":
    main()
