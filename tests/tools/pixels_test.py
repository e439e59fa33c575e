"""Training with pixels that are scaled as a network's first training did, not by the mean and sd of the data."""
import json
import os
import re
import shutil

from support import CommandTest, main, needs_training, png, set_metadata, weights

MEAN, SD = "0.2,0.6,0.9", "0.5,0.1,0.3"
DATA = "shapes:train=96,test=400"  # its own: 0.5 and 0.25
QUICK = ["--data", DATA, "--batch-size", 16, "--epochs", 1, "--threads", 1, "--device", "cpu"]
ARCH = ["--arch", "resnet8", "--width", 4, "--method", "conv"]


def metadata(path):
    with open(path, "rb") as file:
        return json.loads(file.read(int.from_bytes(file.read(8), "little"))).get("__metadata__", {})


def keys(run):
    """mean and sd of config.toml; those that are not there are None."""
    with open(os.path.join(run, "config.toml")) as file:
        text = file.read()
    found = [re.search(rf'^{key} = "(.*)"$', text, re.MULTILINE) for key in ("mean", "sd")]
    return tuple(line and line.group(1) for line in found)


@needs_training
class Pixels(CommandTest):
    def train(self, name, *arguments):
        self.result = self.succeeds("train", *QUICK, "--out", self.path(name), *arguments)
        return self.path(name)

    def accuracy(self, *arguments):
        """Of the hard network, or the frozen one."""
        return json.loads(self.succeeds("eval", *arguments, "--json").stdout)[-1]["accuracy"]

    def at_start(self, *arguments):
        """What a run says of the network before its first step."""
        shutil.rmtree(self.path("start"), ignore_errors=True)
        self.train("start", *arguments)
        return re.search(r"before the first step: test (.*)", self.result.stderr).group(1)

    def model(self):
        """An ONNX model of a network that was trained with MEAN and SD, and says so."""
        self.run = self.trained(*QUICK, *ARCH, "--data", "shapes:train=1200,test=400", "--epochs", 6, "--mean", MEAN, "--sd", SD)
        self.succeeds("freeze", self.run, "-o", self.path("run.tap"))
        self.succeeds("export", self.path("run.tap"), "--to", "onnx", "-o", self.path("net.onnx"))
        return self.path("net.onnx")

    def scaled_as_shapes(self):
        """The network with the pixels that it would have seen without keys of its own."""
        shutil.copy(self.path("run.tap"), self.path("other.tap"))
        set_metadata(self.path("other.tap"), "mean", "[0.5, 0.5, 0.5]")
        set_metadata(self.path("other.tap"), "sd", "[0.25, 0.25, 0.25]")
        return self.path("other.tap")

    def test_a_start_from_an_imported_network_keeps_its_function(self):
        model, mine = self.model(), self.path("mine")
        init = ["--arch", mine + ".net", "--init", mine + ".safetensors", "--method", "conv"]
        accuracies = set()
        # As the model says, and other numbers, which make other outputs.
        for flags in ([], ["--mean", "0.9,0.1,0.4", "--sd", "0.1,0.9,0.2"], ["--sd", "0.25,0.05,0.9"]):
            self.succeeds("import", model, "--tap", "-o", mine + ".tap", *flags)
            self.succeeds("import", model, "-o", mine, *flags)
            accuracy = self.accuracy(mine + ".tap", "--data", DATA)
            accuracies.add(accuracy)
            self.assertEqual(self.at_start(*init), f"{100 * accuracy:.2f} %", flags)
            mean = flags[1] if "--mean" in flags else MEAN
            sd = flags[-1] if flags else SD
            self.assertEqual(keys(self.path("start")), (mean, sd))
            self.assertIn(f"pixels are scaled with mean {mean} and sd {sd}, from {mine}.safetensors (--mean, --sd)\n",
                          self.result.stderr)
        self.assertEqual(len(accuracies), 3)
        # A method for its layers, at a temperature that is the same for all steps.
        soft = self.at_start(*init[:-1], "sal", "--layers", "*", "--t0", 6, "--t1", 6)
        self.assertAlmostEqual(float(re.match(r"soft (\S+) %", soft).group(1)), 100 * accuracy, delta=0.5)
        # The recipe's own numbers win, one by one.
        own = ["--mean", "0.1,0.1,0.1"]
        self.succeeds("import", model, "--tap", "-o", mine + ".tap", *own, "--sd", "0.25,0.05,0.9")
        self.assertEqual(self.at_start(*init, *own), f"{100 * self.accuracy(mine + '.tap', '--data', DATA):.2f} %")
        self.assertIn("pixels are scaled with sd 0.25,0.05,0.9, from", self.result.stderr)
        self.at_start(*init, *own, "--sd", "1,1,1")
        self.assertNotIn("pixels are scaled", self.result.stderr)
        self.assertEqual(keys(self.path("start")), ("0.1,0.1,0.1", "1,1,1"))
        # Both are said, where one is given: those of the data may change.
        run = self.train("one", *ARCH, "--mean", "0.1,0.1,0.1")
        self.assertEqual(keys(run), ("0.1,0.1,0.1", "0.25,0.25,0.25"))
        self.assertEqual(keys(self.train("none", *ARCH)), (None, None))

    def test_every_verb_takes_the_pixels_of_the_run(self):
        self.model()
        hard = self.accuracy(self.run, "--device", "cpu")
        self.assertNotEqual(hard, self.accuracy(self.scaled_as_shapes(), "--data", DATA))
        with open(os.path.join(self.run, "metrics.jsonl")) as file:
            self.assertEqual(json.loads(file.read().splitlines()[-1])["acc_hard"], hard)
        about = metadata(self.path("run.tap"))
        self.assertEqual([json.loads(about[key]) for key in ("mean", "sd")], [[0.2, 0.6, 0.9], [0.5, 0.1, 0.3]])
        self.assertEqual(self.accuracy(self.path("run.tap"), "--data", DATA), hard)
        # Data that the run was not trained on are scaled as those were.
        again = json.loads(self.succeeds("eval", self.run, "--data", DATA + ",limit=400", "--json", "--device",
                                         "cpu").stdout)
        self.assertEqual(again[-1]["accuracy"], hard)
        sal = self.train("sal", "--init", self.run, "--method", "sal", "--t0", 6, "--t1", 6)
        layers = json.loads(self.succeeds("sensitivity", sal, "--json", "--device", "cpu").stdout)
        self.assertEqual(layers["hard"]["accuracy"], self.accuracy(sal, "--device", "cpu"))
        # What leaves the run as weights keeps them too.
        self.succeeds("export", self.run, "--to", "safetensors", "-o", self.path("w.safetensors"))
        self.succeeds("prune", self.run, "--by", "l1", "--ratio", "0.25", "-o", self.path("cut"), "--data", DATA)
        for path in (self.path("w.safetensors"), self.path("cut", "weights.safetensors")):
            self.assertEqual(metadata(path), {key: about[key] for key in ("mean", "sd")})
        self.assertEqual(self.at_start(*ARCH, "--init", self.path("w.safetensors")), f"{100 * hard:.2f} %")
        for init in (["--init", self.run], ["--init", self.run, *ARCH]):
            self.assertEqual(self.at_start(*init, "--method", "conv"), f"{100 * hard:.2f} %")
            self.assertIn(f"pixels are scaled with mean {MEAN} and sd {SD}, from {self.run} (--mean, --sd)\n",
                          self.result.stderr)
            self.assertEqual(keys(self.path("start")), (MEAN, SD))
        rounded = self.train("int8", "--init", self.run, "--quantize", "int8", "--lr", 0)
        self.assertEqual(keys(rounded), (MEAN, SD))
        self.assertEqual(self.accuracy(rounded, "--device", "cpu"), hard)
        self.succeeds("sweep", "--init", self.run, "--grid", "seed=1", "--out", self.path("sweep"), *QUICK)
        self.assertEqual(keys(self.path("sweep", "seed=1")), (MEAN, SD))
        # A teacher reads the images of its student.
        for teacher in (self.run, self.path("run.tap")):
            self.train("student", *ARCH, "--mean", MEAN, "--sd", SD, "--teacher", teacher)
            shutil.rmtree(self.path("student"))
            self.refused(2, f"expected a network with the mean and sd of {DATA} in this run (0.5,0.5,0.5 and 0.25,0.25,0.25), "
                         f"got {MEAN} and {SD} ({teacher})", "train", *QUICK, *ARCH, "--teacher", teacher, "--out",
                         self.path("student"))

    def test_other_data_are_scaled_as_those_of_the_run(self):
        # Neither is in config.toml: they are those of the kind of data that it names.
        run = self.train("run", *ARCH)
        self.assertEqual(keys(run), (None, None))
        for kind in range(10):
            os.makedirs(self.path("photos", f"class{kind}"))
            for i in range(5):
                png(self.path("photos", f"class{kind}", f"{i}.png"), (20 * kind, 40 * i, 90))
        photos = "folder:" + self.path("photos")  # whose own are ImageNet's
        self.succeeds("freeze", run, "--data", photos, "-o", self.path("run.tap"))
        about = metadata(self.path("run.tap"))
        self.assertEqual([json.loads(about[key]) for key in ("mean", "sd")], [[0.5] * 3, [0.25] * 3])
        self.assertEqual(self.accuracy(run, "--data", photos, "--device", "cpu"),
                         self.accuracy(self.path("run.tap"), "--data", photos))
        self.succeeds("export", run, "--to", "safetensors", "-o", self.path("w.safetensors"))
        for init in (run, self.path("w.safetensors")):
            start = self.at_start(*ARCH, "--init", init, "--data", photos)
            self.assertIn("pixels are scaled with mean 0.5,0.5,0.5 and sd 0.25,0.25,0.25, from", self.result.stderr)
            self.assertEqual(start, f"{100 * self.accuracy(self.path('run.tap'), '--data', photos):.2f} %")
        self.at_start(*ARCH, "--init", run)  # the same data: nothing to say
        self.assertNotIn("pixels are scaled", self.result.stderr)
        self.assertEqual(keys(self.path("start")), (None, None))

    def test_steps_and_engines_see_the_same_pixels(self):
        # No step changes anything, so that losses of training are those of the network's outputs.
        self.model()
        losses = {}
        for engine in ("plain", "captured", "fused"):
            for scale in ([], ["--sd", "5,0.01,0.3"]):
                run = self.train(engine + "".join(scale[:1]), "--init", self.run, "--engine", engine, "--lr", 0, *scale)
                with open(os.path.join(run, "metrics.jsonl")) as file:
                    losses[engine, bool(scale)] = [json.loads(line)["loss"] for line in file]
        for split in (0, 1):  # of training, with the statistics of batches; of the test
            for scale in (False, True):
                for engine in ("captured", "fused"):
                    self.assertAlmostEqual(losses[engine, scale][split], losses["plain", scale][split], delta=1e-3, msg=engine)
            self.assertGreater(abs(losses["plain", True][split] - losses["plain", False][split]), 0.01)

    def test_a_resumed_run_keeps_its_pixels(self):
        model, mine = self.model(), self.path("mine")
        self.succeeds("import", model, "-o", mine)
        command = ["--arch", mine + ".net", "--init", mine + ".safetensors", "--method", "conv", "--epochs", 2]
        whole = self.train("whole", *command)
        part = self.train("part", *command)
        for name in os.listdir(os.path.join(part, "checkpoints")):
            if not name.endswith("6"):  # back to the end of the first epoch
                path = os.path.join(part, "checkpoints", name)
                os.remove(path) if os.path.islink(path) else shutil.rmtree(path)
        os.remove(mine + ".safetensors")  # read once
        self.train("part", *command, "--resume")
        self.assertIn("resuming after step 6", self.result.stderr)
        self.assertEqual(weights(part), weights(whole))
        self.train("part", *command, "--resume", "--mean", "0.20, 0.6,0.9")  # the same numbers
        self.refused(2, f"{part} was started with sd = {SD}, got 1,1,1: a resumed run keeps its recipe", "train", "--out",
                     part, "--resume", "--sd", "1,1,1")
        self.succeeds("train", "--out", part, "--extend", 1)
        self.assertEqual(keys(part), (MEAN, SD))
        # config.toml repeats the run; an older one has neither key, and keeps the pixels of its data.
        again = self.train("again", os.path.join(self.run, "config.toml"))
        self.assertEqual(keys(again), (MEAN, SD))

    def test_bad_numbers_and_damaged_metadata(self):
        train = ["train", *QUICK, *ARCH, "--out", self.path("no")]
        self.refused(2, "expected three numbers R,G,B for --mean, got '1,2'", *train, "--mean", "1,2")
        self.refused(2, "expected three numbers R,G,B above 0 for --sd, got '1,0,1'", *train, "--sd", "1,0,1")
        recipe = self.write("r.toml", 'sd = "1,nan,1"\n')
        self.refused(2, f"expected three numbers R,G,B above 0 for sd ({recipe}:1)", *train, recipe)
        run = self.train("run", *ARCH, "--mean", MEAN, "--sd", SD)
        init = self.path("w.safetensors")
        self.succeeds("export", run, "--to", "safetensors", "-o", init)
        for key, value, message in (("mean", "[1, 2]", "expected three numbers in 'mean', got '[1, 2]'"),
                                    ("mean", "0.5,0.5,0.5", "expected three numbers in 'mean', got '0.5,0.5,0.5'"),
                                    ("mean", "[1,2,1e99]", "expected a finite mean of pixels"),
                                    ("sd", "[1, 0, 1]", "expected a finite sd of pixels above 0, got 0"),
                                    ("sd", "[" * 500000, "expected three numbers in 'sd', got 500000 characters")):
            damaged = self.path("damaged.safetensors")
            shutil.copy(init, damaged)
            set_metadata(damaged, key, value)
            result = self.refused(4, message, *train, "--init", damaged)
            self.assertIn(f"({damaged})", result.stderr)
            # Numbers of the recipe's own: the file's are not read.
            self.succeeds("train", *QUICK, *ARCH, "--dry-run", "--init", damaged, "--mean", MEAN, "--sd", SD)
        self.assertFalse(os.path.exists(self.path("no")))


if __name__ == "__main__":
    main()
