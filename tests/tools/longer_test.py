"""How long a run takes and what decides it: --extend, patience, validation, --fast-dev-run; AdamW; --per-class."""
import json
import os
import re
import signal
import subprocess

from support import ONETAP, SMALL, CommandTest, main, metrics, onetap, trained, weights


class Extend(CommandTest):
    def test_a_run_in_two_parts_is_the_run_in_one(self):
        whole = trained(*SMALL, "--extend", "2")
        run = self.trained(*SMALL)
        self.refused(2, f"at least 1 epoch to extend a run by, got --extend 0 ({run})", "train", "--out", run, "--extend", 0)
        result = self.succeeds("train", "--out", run, "--extend", 2)
        self.assertIn(f"extended by 2 epochs to 5, at learning rate {metrics(run)[-1]['lr']:.3g} ", result.stderr)
        self.assertIn("epoch 5/5", result.stderr)
        with open(os.path.join(run, "config.toml")) as file:
            self.assertIn(f'\nextended_1 = "{ONETAP} train --out {run} --extend 2"\n', file.read())
        self.assertEqual(metrics(run), metrics(whole))
        self.assertEqual(weights(run), weights(whole))
        last = metrics(run)[-1]
        self.assertEqual((last["epoch"], last["temperature"]), (5, metrics(run)[5]["temperature"]))
        # Once more, at a rate of its own.
        result = self.succeeds("train", "--out", run, "--extend", 1, "--extend-lr", 0.03)
        self.assertIn("extended by 1 epoch to 6", result.stderr)
        self.assertEqual((metrics(run)[-1]["epoch"], metrics(run)[-1]["lr"]), (6, 0.03))
        with open(os.path.join(run, "config.toml")) as file:
            self.assertEqual(re.findall(r"(?m)^extended_\d", file.read()), ["extended_1", "extended_2"])
        self.succeeds("train", "--out", run, "--resume")
        self.succeeds("freeze", run, "-q")

    def test_a_run_that_is_not_there_is_not_extended(self):
        self.refused(2, f"[train] expected a run to extend, got none in {self.path('new')}", "train", "--out",
                     self.path("new"), "--extend", 1)
        self.assertEqual(os.listdir(self.dir), [])

    def test_a_recipe_that_was_extended_is_trained_whole_and_extends_nothing(self):
        run = self.trained(*SMALL)
        self.succeeds("train", "--out", run, "--extend", 1)
        again = ["train", os.path.join(run, "config.toml"), "--out", self.path("again")]
        self.succeeds(*again)
        self.assertEqual(metrics(self.path("again"))[-1]["epoch"], metrics(run)[-1]["epoch"])
        before = weights(self.path("again"))
        self.refused(2, "already holds a run", *again)
        self.assertEqual(weights(self.path("again")), before)

    def test_only_a_finished_run_is_extended(self):
        run = self.trained(*SMALL)
        self.refused(2, "was started with epochs = 3, got 9", "train", "--out", run, "--extend", 1, "--epochs", 9)
        self.refused(2, "extend_lr needs extend", "train", *SMALL, "--extend-lr", 0.1, "--out", self.path("new"))
        process = subprocess.Popen([ONETAP, "train", "--out", run, "--extend", "400"], stderr=subprocess.PIPE, text=True)
        for line in process.stderr:
            if line.startswith("epoch 4/"):
                break
        process.send_signal(signal.SIGINT)
        self.assertIn("resumes the run", process.communicate(timeout=300)[1])
        self.refused(2, "expected a finished run to extend", "train", "--out", run, "--extend", 1)
        self.refused(2, "was started with extend = 400, got 1", "train", "--out", run, "--extend", 1, "--resume")
        result = onetap("freeze", run, "-o", self.path("m.tap"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"warning: this checkpoint is from step \d+, epoch \d+ of 403")


class Hardening(CommandTest):
    def test_epochs_with_fixed_taps_show_no_temperature(self):
        result = self.succeeds("train", *SMALL, "--harden", 0.5, "--epochs", 4, "--out", self.path("run"))
        epochs = [line for line in result.stderr.splitlines() if line.startswith("epoch ")]
        self.assertEqual(["taps fixed" in line for line in epochs], [False, True, True, True])
        self.assertEqual(["  T " in line for line in epochs], [True, False, False, False])


class Patience(CommandTest):
    ARGUMENTS = [*SMALL, "--method", "conv", "--lr", "0", "--epochs", "9"]

    def test_stops_where_nothing_gets_better(self):
        run = self.path("run")
        result = self.succeeds("train", *self.ARGUMENTS, "--patience", 2, "--out", run)
        self.assertRegex(result.stderr, r"(?m)^resnet8, method conv: [\d,]+ parameters$")
        epochs = [line["epoch"] for line in metrics(run) if line["split"] == "test"]
        best = max(range(len(epochs)), key=lambda i: [l for l in metrics(run) if l["split"] == "test"][i]["acc_hard"])
        self.assertEqual(epochs[-1], best + 1 + 2)
        self.assertLess(epochs[-1], 9)
        self.assertIn("no better accuracy for 2 epochs", result.stderr)
        line = next(l for l in metrics(run) if l["split"] == "test" and l["epoch"] == best + 1)
        self.assertIn(f"epoch {best + 1} has the best accuracy on the test set, {100 * line['acc_hard']:.2f} %: "
                      f"'onetap freeze {run} --checkpoint best' freezes it\n", result.stderr)
        before = weights(run)
        self.succeeds("train", "--resume", "--out", run)  # it is finished
        self.assertEqual(weights(run), before)
        self.refused(2, "ended early cannot be extended", "train", "--out", run, "--extend", 1)
        self.assertNotIn("warning", self.succeeds("freeze", run).stderr)
        self.assertNotIn("warning", self.succeeds("freeze", run, "--checkpoint", "best").stderr)

    def test_waits_for_the_temperature(self):
        self.refused(2, "expected --t-end or --harden below 1", "train", *SMALL, "--patience", 1, "--out", self.path("run"))
        run = self.path("sal")
        self.succeeds("train", *SMALL, "--epochs", 8, "--lr", 0, "--t-end", 0.5, "--patience", 1, "--out", run)
        self.assertGreaterEqual(metrics(run)[-1]["epoch"], 5)  # the temperature ends with the fourth


class Validation(CommandTest):
    ARGUMENTS = [*SMALL, "--validation", "0.25"]

    def test_epochs_are_chosen_on_images_held_out(self):
        run = trained(*self.ARGUMENTS)
        splits = [line["split"] for line in metrics(run)]
        self.assertEqual(splits, ["train", "validation"] * 3 + ["test"])
        with open(os.path.join(run, "checkpoints", "last", "state.json")) as file:
            state = json.load(file)
        held = [line["acc_hard"] for line in metrics(run) if line["split"] == "validation"]
        self.assertEqual(state["best_accuracy"], max(held))
        hard = json.loads(self.succeeds("eval", run, "--json", "--threads", 1).stdout)[1]
        self.assertEqual(hard["accuracy"], metrics(run)[-1]["acc_hard"])
        self.succeeds("report", run, "-o", self.path("page.html"))

    def test_resumes_bit_for_bit(self):
        """With AdamW, whose averages are part of the state."""
        arguments = [*self.ARGUMENTS, "--optimizer", "adamw", "--checkpoint-steps", "1"]
        whole, run = trained(*arguments), self.path("run")
        process = subprocess.Popen([ONETAP, "train", *arguments, "--out", run], stderr=subprocess.PIPE, text=True)
        for line in process.stderr:
            if line.startswith("epoch 1/3"):
                break
        process.kill()
        process.communicate()
        self.succeeds("train", *arguments, "--out", run, "--resume")
        self.assertEqual(metrics(run), metrics(whole))
        self.assertEqual(weights(run), weights(whole))


class AdamW(CommandTest):
    def test_has_defaults_of_its_own_and_plain_steps(self):
        run = self.path("run")
        self.succeeds("train", *SMALL, "--epochs", 1, "--optimizer", "adamw", "--out", run)
        with open(os.path.join(run, "config.toml")) as file:
            config = file.read()
        for line in ('optimizer = "adamw"', "lr = 0.001", "weight_decay = 0.01"):
            self.assertIn(line, config)
        for engine in ("fused", "captured"):
            self.refused_at_last("expected --engine plain or auto", "train", *SMALL, "--optimizer", "adamw", "--engine",
                                 engine, "--out", self.path(engine))
        self.refused(2, "expected --optimizer to be sgd or adamw, got 'adam', did you mean 'adamw'?", "train", *SMALL,
                     "--optimizer", "adam", "--out", self.path("x"))
        self.refused(2, "got 'adam', did you mean 'adamw'?", "train", *SMALL, "--optimizer", "adam")

    def refused_at_last(self, part, *arguments):
        """With notes before the error."""
        result = onetap(*arguments)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(part, result.stderr.splitlines()[-1])


class Trying(CommandTest):
    def test_fast_dev_run_keeps_nothing(self):
        result = self.succeeds("train", *SMALL, "--epochs", 300, "--fast-dev-run", env={"TMPDIR": self.dir})
        self.assertIn("fast dev run: an epoch of at most two steps", result.stdout)
        self.assertIn("32 training and 32 test images", result.stderr)
        self.assertEqual(os.listdir(self.dir), [])
        self.refused(2, "--fast-dev-run cannot be combined with --resume or --dry-run", "train", *SMALL, "--fast-dev-run", "--out", self.path("run"), "--resume")
        tried = self.succeeds("train", *SMALL, "--fast-dev-run", "--out", self.path("run"))
        self.assertIn(f"{self.path('run')} is left as it is", tried.stderr)
        self.assertFalse(os.path.exists(self.path("run")))

    def test_devices_that_are_not_here(self):
        result = onetap("train", *SMALL, "--device", "cuda", "--out", self.path("run"), env={"CUDA_VISIBLE_DEVICES": ""})
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"\[train\] expected a GPU for device 'cuda', got none: .*--device cpu")
        run = trained(*SMALL)
        for verb in ("eval", "sensitivity"):
            self.refused(2, f"'onetap {verb}' runs on the CPU with --device cpu, or without --device", verb, run,
                         "--device", "cuda", env={"CUDA_VISIBLE_DEVICES": ""})
        self.refused(2, "expected --precision auto or fp32 on a CPU, got bf16", "train", *SMALL, "--precision", "bf16",
                     "--out", self.path("run"))


class PerClass(CommandTest):
    def test_accuracy_of_every_class(self):
        run = self.trained(*SMALL)
        soft, hard = json.loads(self.succeeds("eval", run, "--per-class", "--json", "--threads", 1).stdout)
        self.assertNotIn("per_class", soft)
        self.assertEqual(len(hard["per_class"]), 10)
        images = sum(row["images"] for row in hard["per_class"])
        right = sum(row["answers"][i] for i, row in enumerate(hard["per_class"]))
        self.assertEqual((images, right), (40, round(40 * hard["accuracy"])))
        self.assertGreaterEqual(hard["top5"], hard["accuracy"])
        with open(os.path.join(run, "classes.json")) as file:
            self.assertEqual(len(json.load(file)["confusion"]), 100)
        self.succeeds("freeze", run, "-q")
        table = self.succeeds("eval", os.path.join(run, "model.tap"), "--data", SMALL[5], "--per-class").stdout
        for words in ("most frequent error", "top-5 accuracy: ", "images of, predicted as"):
            self.assertIn(words, table)
        page = self.path("page.html")
        self.succeeds("report", run, "--latency", "-o", page)
        with open(page) as file:
            self.assertIn('"latency_ms":', file.read())


if __name__ == "__main__":
    main()
