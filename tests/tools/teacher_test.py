"""Runs with a teacher through the command, and the weights of runs with a moving average."""
import json
import os
import shutil

from support import SMALL, CommandTest, main, needs_training, onetap

QUICK = SMALL + ["--epochs", "1"]


@needs_training
class TeacherTest(CommandTest):
    def train(self, name, *arguments):
        run = self.path(name)
        self.succeeds("train", *QUICK, "--out", run, *arguments)
        return run

    def test_a_missing_teacher_leaves_nothing_behind(self):
        run = self.path("run")
        self.refused(4, "[teacher] cannot open", "train", *QUICK, "--teacher", self.path("nowhere"), "--out", run)
        self.refused(4, "[teacher] expected a run, a checkpoint of one or a .tap file", "train", *QUICK, "--teacher",
                     self.write("notes.txt", "nothing"), "--out", run)
        int8 = self.path("int8.tap")
        self.succeeds("nets", "resnet8", "--width", 4, "--method", "conv", "--tap", self.path("floats.tap"))
        self.succeeds("quantize", self.path("floats.tap"), "--data", "shapes:train=8,test=8", "-o", int8)
        self.refused(4, f"[teacher] expected a network of floats, got one of int8 ({int8})", "train", *QUICK, "--teacher",
                     int8, "--out", run)
        self.assertFalse(os.path.exists(run))

    def test_learns_from_runs_checkpoints_and_frozen_files(self):
        teacher = self.train("teacher", "--method", "conv", "--width", "8")
        tap = self.path("teacher.tap")
        self.succeeds("freeze", teacher, "-o", tap)
        losses = []
        for name, source in (("run", teacher), ("checkpoint", os.path.join(teacher, "checkpoints", "best")), ("tap", tap)):
            student = self.train(name, "--teacher", os.path.relpath(source))
            with open(os.path.join(student, "metrics.jsonl")) as file:
                losses.append(json.loads(file.readline())["loss"])
        self.assertEqual(losses[0], losses[1])
        self.assertAlmostEqual(losses[0], losses[2], delta=1e-3 * losses[0])

    def test_learns_from_frozen_binary_weights(self):
        teacher = self.train("teacher", "--method", "bc", "--width", "8")
        tap = self.path("teacher.tap")
        self.succeeds("freeze", teacher, "-o", tap)
        self.train("student", "--teacher", tap)

    def test_a_run_keeps_its_teacher(self):
        teacher = self.train("teacher", "--method", "conv")
        student = self.train("student", "--teacher", teacher, "--epochs", "2")
        with open(os.path.join(student, "checkpoints", "last", "state.json")) as file:
            self.assertEqual(len(json.load(file)["teacher"]), 64)
        for name in os.listdir(os.path.join(student, "checkpoints")):
            if name.startswith("step-") and not name.endswith("6"):
                shutil.rmtree(os.path.join(student, "checkpoints", name))  # back to the end of the first epoch
        shutil.rmtree(teacher)
        self.train("teacher", "--method", "conv", "--seed", "9")
        result = onetap("train", "--out", student, "--resume")
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("expected the teacher that this run began with", result.stderr.splitlines()[-1])
        self.refused(2, "was started with teacher", "train", "--out", student, "--resume", "--teacher", student)

    def test_the_weights_beside_an_average(self):
        run = self.train("run", "--ema", "0.9")
        average = json.loads(self.succeeds("eval", run, "--json", "--device", "cpu").stdout)
        own = json.loads(self.succeeds("eval", run, "--json", "--device", "cpu", "--no-ema").stdout)
        self.assertNotEqual(average[0]["loss"], own[0]["loss"])
        first, second = self.path("average.tap"), self.path("own.tap")
        self.succeeds("freeze", run, "-o", first)
        self.succeeds("freeze", run, "--no-ema", "-o", second)
        data = ["--data", "shapes:train=96,test=40", "--json"]
        for path, rows in ((first, average), (second, own)):
            frozen = json.loads(self.succeeds("eval", path, *data).stdout)[0]
            self.assertAlmostEqual(frozen["loss"], rows[1]["loss"], delta=1e-3)


if __name__ == "__main__":
    main()
