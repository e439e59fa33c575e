"""Bad input: one clear line, exit code 2 or 4, nothing half-written."""
import json
import os
import resource
import signal
import struct
import subprocess
import unittest
import zlib

from support import ONETAP, SMALL, CommandTest, main, needs_no_training, needs_training, onetap


def sparse(path, size, patch=b""):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(patch)
        file.truncate(size)


@needs_no_training
class Cifar(CommandTest):
    RECORDS = 10000 * 3073

    def make(self, **changes):
        for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
            size, patch = changes.get(name.split(".")[0], (self.RECORDS, b""))
            sparse(self.path("data", name), size, patch)
        return "cifar10:" + self.path("data")

    def test_good_files_pass(self):
        result = self.succeeds("data", "check", self.make())
        self.assertIn("50000", result.stdout)

    def test_truncated_oversized_and_mislabelled(self):
        self.refused(4, "expected 30730000 bytes (10000 records of 3073), got 30729999", "data", "check",
                     self.make(data_batch_3=(self.RECORDS - 1, b"")))
        self.refused(4, "got 30730001", "data", "check", self.make(test_batch=(self.RECORDS + 1, b"")))
        self.refused(4, "got 0", "data", "check", self.make(data_batch_1=(0, b"")))
        self.refused(4, "expected labels 0..9, got 17 in record 0", "data", "check",
                     self.make(data_batch_2=(self.RECORDS, b"\x11")))

    def test_missing(self):
        self.refused(4, "onetap data fetch cifar10", "data", "check", "cifar10:" + self.path("nowhere"))
        self.refused(2, "did you mean 'cifar10'", "data", "check", "cifar1:" + self.path("nowhere"))

    def test_cifar100_wants_its_own_sizes(self):
        sparse(self.path("c100", "train.bin"), 50000 * 3074)
        sparse(self.path("c100", "test.bin"), 10000 * 3073)
        self.refused(4, "10000 records of 3074", "data", "check", "cifar100:" + self.path("c100"))


class Folder(CommandTest):
    @staticmethod
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    # 4x4 grey pixels.
    PNG = b"\x89PNG\r\n\x1a\n" + b"".join((
        chunk.__func__(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 0, 0, 0, 0)),
        chunk.__func__(b"IDAT", zlib.compress(bytes(4 * 5))), chunk.__func__(b"IEND", b"")))

    def make(self):
        for split in ("train", "val"):
            for name in ("ant", "bee"):
                self.write(f"f/{split}/{name}/1.png", self.PNG)
        return "folder:" + self.path("f")

    @needs_no_training
    def test_good_folder_passes(self):
        result = json.loads(self.succeeds("data", "check", self.make(), "--json").stdout)
        self.assertEqual((result["classes"], result["ok"], result["skipped"]), (["ant", "bee"], True, []))
        self.assertEqual({name: split["images"] for name, split in result["splits"].items()}, {"train": 2, "test": 2})

    @needs_no_training
    def test_what_is_no_file_is_left_out_and_named(self):
        """A FIFO has nobody writing to it: whoever opened it would wait for ever."""
        spec = self.make()
        os.mkfifo(self.path("f/train/ant/a.jpg"))
        os.symlink("/dev/zero", self.path("f/val/bee/z.png"))
        result = self.succeeds("data", "check", spec, timeout=60)
        self.assertEqual(result.stderr, "warning: skipped 2 paths that are not regular files: "
                         f"{self.path('f/train/ant/a.jpg')}, {self.path('f/val/bee/z.png')}\n")
        skipped = json.loads(self.succeeds("data", "check", spec, "--json", timeout=60).stdout)["skipped"]
        self.assertEqual(skipped, [self.path("f/train/ant/a.jpg"), self.path("f/val/bee/z.png")])
        os.remove(self.path("f/train/ant/1.png"))
        result = onetap("data", "check", spec, timeout=60)
        self.assertEqual(result.returncode, 4)
        self.assertIn("got none", result.stderr)

    @needs_training
    def test_training_passes_by_what_is_no_file(self):
        spec = self.make()
        os.mkfifo(self.path("f/train/ant/a.jpg"))
        result = self.succeeds("train", "--arch", "resnet8", "--width", "4", "--image-size", "32", "--data", spec,
                               "--epochs", 1, "--device", "cpu", "--out", self.path("run"), timeout=300)
        self.assertIn("skipped 1 path that is not a regular file: ", result.stderr)

    @needs_no_training
    def test_what_does_not_decode_is_named(self):
        spec = self.make()
        self.write("f/train/ant/2.png", b"not an image")
        self.write("f/train/ant/3.png", self.PNG[:-20])
        result = onetap("data", "check", spec)
        self.assertEqual(result.returncode, 4)
        self.assertIn("2.png", result.stderr)
        self.assertIn("3.png", result.stderr)
        self.assertIn("[data] 2 of 6 images could not be decoded (folder:", result.stderr)

    @needs_no_training
    def test_empty_class_and_missing_split(self):
        spec = self.make()
        os.makedirs(self.path("f/train/cow"))
        os.makedirs(self.path("f/val/cow"))
        self.refused(4, "got none", "data", "check", spec)
        self.refused(4, "expected at least 2 class folders, got 1", "data", "check", "folder:" + self.dir)
        os.makedirs(self.path("g/val"))
        self.refused(4, "got no folder train", "data", "check", "folder:" + self.path("g"))

    @needs_training
    def test_training_on_a_damaged_image_stops_with_its_name_where_that_is_asked_for(self):
        spec = self.make()
        self.write("f/train/ant/2.png", b"not an image")
        result = onetap("train", "--strict", "--arch", "resnet8", "--width", "4", "--image-size", "32", "--data", spec, "--epochs", 1,
                        "--out", self.path("run"))
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("2.png", result.stderr)


@needs_no_training
class Tap(CommandTest):
    def test_a_tap_file_that_is_missing_or_another_is_not_taken_for_something_else(self):
        missing, text = self.path("none.tap"), self.write("text.tap", "onetap-net 1\nx = input 3x8x8\n")
        for verb, *rest in (("bench",), ("count",), ("eval", "--data", "shapes"), ("heatmap",), ("run", "image.png"),
                            ("quantize", "--data", "shapes", "-o", self.path("out")),
                            ("export", "--to", "c", "-o", self.path("out")),
                            ("export", "--to", "onnx", "-o", self.path("out")),
                            ("export", "--to", "safetensors", "-o", self.path("out"))):
            for file, problem in ((missing, "[file] cannot open "), (text, "[safetensors] ")):
                result = self.refused(4, problem, verb, file, *rest)
                self.assertIn(file, result.stderr)
        self.assertEqual(os.listdir(self.dir), ["text.tap"])

    def test_what_is_wrong_with_a_network_is_said_with_its_file(self):
        tap = self.path("net.tap")
        self.succeeds("nets", "resnet8", "--width", 4, "--classes", 7, "--tap", tap)
        for part, *arguments in (("[runtime] ", "bench", tap, "--memory", "1K"),
                                 ("[runtime] ", "run", tap, "image.png", "--memory", "1K"),
                                 ("[graph] ", "eval", tap, "--data", "shapes:train=20,test=20"),
                                 ("[graph] ", "quantize", tap, "--data", "shapes:train=20,test=20", "-o", self.path("out")),
                                 ("[quant] ", "quantize", tap, "--data", "shapes", "--keep", "no", "-o", self.path("out")),
                                 ("[export] ", "export", tap, "--to", "c", "--flash", "1K", "-o", self.path("out"))):
            result = self.refused(2, part, *arguments)
            self.assertEqual(result.stderr.count(tap), 1, result.stderr)


class Fifo(CommandTest):
    """Wherever a file is read, a FIFO is refused at once."""

    @needs_no_training
    def test_every_kind_of_file(self):
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        self.succeeds("nets", "resnet8", "--width", 4, "--tap", self.path("net.tap"))
        for arguments in (["run", fifo, fifo], ["run", self.path("net.tap"), fifo], ["count", fifo], ["bench", fifo],
                          ["nets", os.path.join(".", fifo)], ["heatmap", fifo],
                          ["export", fifo, "--to", "onnx", "-o", self.path("x.onnx")], ["report", fifo],
                          ["frontier", fifo]):
            result = onetap(*arguments, timeout=60)
            self.assertIn(result.returncode, (2, 4), arguments)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        os.makedirs(self.path("run"))
        os.mkfifo(self.path("run/config.toml"))
        self.refused(4, "nothing that can be read", "report", self.path("run"), timeout=60)

    @needs_training
    def test_recipes_and_weights(self):
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        train = ["train", *SMALL, "--out", self.path("run")]
        for arguments in ([*train, fifo], [*train, "--init", fifo], [*train, "--arch", os.path.join(".", fifo)],
                          ["eval", fifo, "--data", "shapes"]):
            result = onetap(*arguments, timeout=60)
            self.assertIn(result.returncode, (2, 4), arguments)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    @needs_no_training
    def test_standard_input_by_its_name(self):
        self.succeeds("nets", "resnet8", "--width", 4, "--tap", self.path("net.tap"))
        image = self.write("image.png", Folder.PNG)
        with open(image, "rb") as file:
            by_name = subprocess.run([ONETAP, "run", self.path("net.tap"), "/dev/stdin"], stdin=file, capture_output=True)
        self.assertEqual(by_name.returncode, 0, by_name.stderr)
        with subprocess.Popen(["cat", image], stdout=subprocess.PIPE) as cat:
            piped = subprocess.run([ONETAP, "run", self.path("net.tap"), "-"], stdin=cat.stdout, capture_output=True)
        self.assertEqual(piped.returncode, 0, piped.stderr)
        self.assertEqual(piped.stdout.split(b":")[1], by_name.stdout.split(b":")[1])


class FileSizeLimit(CommandTest):
    """ulimit -f: the kernel's signal must not end a command without a word."""

    def limited(self, kilobytes, *arguments, **kwargs):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * kilobytes, 1024 * kilobytes))
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it, and children would inherit that
        return subprocess.run([ONETAP, *map(str, arguments)], stderr=subprocess.PIPE, preexec_fn=limit, text=True,
                              **kwargs)

    def check(self, result):
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("File too large", result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    @needs_no_training
    def test_a_file_that_is_too_large_is_an_error_and_leaves_nothing(self):
        self.check(self.limited(64, "nets", "resnet20", "--tap", self.path("net.tap")))
        self.assertEqual(os.listdir(self.dir), [])
        self.succeeds("nets", "resnet20", "--tap", self.path("net.tap"))
        for arguments in (["export", self.path("net.tap"), "--to", "onnx", "-o", self.path("net.onnx")],
                          ["export", self.path("net.tap"), "--to", "safetensors", "-o", self.path("dense")]):
            self.check(self.limited(64, *arguments))
            self.assertEqual(os.listdir(self.dir), ["net.tap"])

    @needs_no_training
    def test_an_old_file_stays(self):
        old = self.write("net.tap", "old")
        self.check(self.limited(64, "nets", "resnet20", "--tap", old))
        with open(old) as file:
            self.assertEqual(file.read(), "old")

    @needs_no_training
    def test_standard_output(self):
        with open(self.path("out"), "wb") as out:
            self.check(self.limited(1, "nets", "resnet20", "--json", stdout=out))

    @needs_training
    def test_training(self):
        result = self.limited(16, "train", *SMALL, "--width", 16, "--out", self.path("run"))
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("File too large", result.stderr.splitlines()[-1])
        if os.path.isdir(self.path("run", "checkpoints")):
            self.assertEqual([name for name in os.listdir(self.path("run", "checkpoints")) if "partial" in name], [])


@needs_training
class Train(CommandTest):
    def refused_and_clean(self, code, part, *flags):
        self.refused(code, part, "train", *SMALL, *flags, "--out", self.path("run"))
        self.assertFalse(os.path.exists(self.path("run")), "a refused run must leave nothing behind")

    def test_recipes(self):
        bad = self.write("bad.toml", "widht = 16\n")
        self.refused_and_clean(2, "unknown key widht", bad)
        self.refused_and_clean(2, "did you mean 'width'", bad)
        self.refused_and_clean(2, "bad2.toml:2", self.write("bad2.toml", 'arch = "resnet20"\nepochs = = 3\n'))

    def test_impossible_values(self):
        self.refused_and_clean(2, "expected --width in 1..65536, got 0", "--width", 0)
        self.refused_and_clean(2, "expected taps in 1..9", "--taps", 10)
        self.refused_and_clean(2, "expected share in 1..4", "--share", 5)
        self.refused_and_clean(2, "expected --epochs in", "--epochs", 0)
        self.refused_and_clean(2, "whole number for --epochs", "--epochs", "many")
        self.refused_and_clean(2, "expected --lr", "--lr", "-1")
        self.refused_and_clean(2, "did you mean 'sal'", "--method", "sall")
        self.refused_and_clean(2, "got 'gpu', did you mean 'cuda'?", "--device", "gpu")
        self.refused_and_clean(2, "got 'gpu:1', did you mean 'cuda:1'?", "--device", "gpu:1")
        self.refused_and_clean(2, "got 'cude', did you mean 'cuda'?", "--device", "cude")
        self.refused_and_clean(2, "matches 'layer7.*'", "--layers", "layer7.*")
        self.refused_and_clean(2, "expected a network for at most 40 pixels, got 41", "--image-size", 41)
        net = self.write("small.net", "onetap-net 1\nx = input 3x32x32\np = gap x\nfc = linear p out=7\n")
        self.refused_and_clean(2, "expected 10 values", "--arch", net, "--method", "conv")
        net = self.write("large.net", "onetap-net 1\nx = input 3x32x32\na = conv x out=60000\nb = conv a out=60000 kernel=3\n"
                                      "p = gap b\nfc = linear p out=10\n")
        self.refused_and_clean(2, "expected at most 2^33 weights", "--arch", net, "--method", "conv")

    def test_missing_data_and_places(self):
        self.refused_and_clean(4, "onetap data fetch", "--data", "cifar10:" + self.path("nowhere"))
        self.refused(2, "expected --out RUN", "train", *SMALL)
        # What is wrong wherever the run is to be is said first.
        self.refused(2, "got 'cifar', did you mean 'cifar10'?", "train", "--data", "cifar")
        self.refused(2, "expected a depth of 6n+2", "train", "--arch", "resnet21")
        self.refused(2, "did you mean 'cuda'?", "train", "--device", "gpu")
        file = self.write("file", "")
        self.refused(2, "got a file", "train", *SMALL, "--out", file)
        self.refused(2, "cannot create", "train", *SMALL, "--out", os.path.join(file, "run"))
        self.write("full/thesis.tex", "years of work")
        self.refused(2, "thesis.tex", "train", *SMALL, "--out", self.path("full"))
        self.assertEqual(os.listdir(self.path("full")), ["thesis.tex"])

    @unittest.skipIf(os.geteuid() == 0 and not os.path.isdir("/proc/self"), "no place that root cannot write")
    def test_unwritable_directory(self):
        self.refused(2, "cannot create", "train", *SMALL, "--out", "/proc/onetap-run")

    def test_eval_of_what_is_no_run(self):
        self.refused(4, "expected a run directory", "eval", self.dir)
        self.refused(4, "expected a run directory", "eval", self.path("nowhere"))

    def test_a_loss_that_explodes_names_step_and_checkpoint(self):
        result = onetap("train", *SMALL, "--lr", "1000000", "--weight-decay", "1", "--out", self.path("run"))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"the loss became (nan|inf|-nan) at step \d+ \(epoch \d\)")
        self.assertIn("there is no checkpoint yet", result.stderr)


if __name__ == "__main__":
    main()
