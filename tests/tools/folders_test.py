"""Image folders: without splits of their own, with files that are no images, with images that do not decode."""
import json
import os
import struct
import zlib

from support import CommandTest, main, needs_no_training, needs_training, onetap


def png(width, height, red):
    """One colour."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    row = b"\0" + bytes((red, 90, 255 - red)) * width
    return b"\x89PNG\r\n\x1a\n" + b"".join((chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
                                            chunk(b"IDAT", zlib.compress(row * height)), chunk(b"IEND", b"")))


class Flat(CommandTest):
    def make(self, side=40):
        for i in range(10):
            self.write(f"f/dark/{i}.png", png(side, side, 10 + i))
            self.write(f"f/light/{i}.png", png(side, side, 240 - i))
        return "folder:" + self.path("f")

    def splits(self, spec):
        result = json.loads(self.succeeds("data", "check", spec, "--json").stdout)
        return {name: split["images"] for name, split in result["splits"].items()}

    @needs_no_training
    def test_the_split_is_automatic_and_can_be_chosen(self):
        spec = self.make()
        self.assertEqual(self.splits(spec), {"train": 16, "test": 4})
        self.assertEqual(self.splits(spec + ",test=0.5"), {"train": 10, "test": 10})
        self.assertEqual(self.splits(spec + ",limit=6"), {"train": 6, "test": 4})
        self.assertEqual(self.splits(spec + ",validation=0.25"), {"train": 12, "validation": 4, "test": 4})
        self.refused(2, "expected a fraction", "data", "check", spec + ",test=2")

    @needs_no_training
    def test_what_is_left_out_is_counted(self):
        spec = self.make()
        for name in ("a.gif", "b.GIF", "notes.txt", "Thumbs"):
            self.write("f/dark/" + name, b"x")
        result = self.succeeds("data", "check", spec)
        self.assertIn("skipped files of unsupported formats: 1 without an extension, 2 .gif, 1 .txt", result.stderr)
        self.assertEqual(json.loads(self.succeeds("data", "check", spec, "--json").stdout)["other_files"],
                         {"": 1, ".gif": 2, ".txt": 1})

    @needs_no_training
    def test_damaged_images_are_named_by_check(self):
        spec = self.make()
        self.write("f/dark/5.png", b"not an image")
        result = onetap("data", "check", spec)
        self.assertEqual(result.returncode, 4)
        self.assertIn("5.png", result.stderr)
        self.assertIn(f"[data] 1 of 20 images could not be decoded ({spec})", result.stderr)

    @needs_no_training
    def test_folders_within_a_class_are_read_and_images_outside_are_counted(self):
        spec = self.make()
        before = self.splits(spec)
        for i in range(5):
            self.write(f"f/dark/2026/may/{i}.png", png(40, 40, 30 + i))
        self.write("f/loose.png", png(40, 40, 1))
        self.write("f/loose.JPG", b"x")
        self.write("f/README", b"x")
        os.symlink("..", self.path("f/dark/2026/up"))
        os.mkfifo(self.path("f/dark/2026/pipe.png"))
        result = self.succeeds("data", "check", spec, timeout=60)
        self.assertEqual(result.stderr.splitlines(), [
            "warning: skipped 2 images outside of the class folders",
            f"warning: skipped 2 paths that are not regular files: {self.path('f/dark/2026/pipe.png')}, "
            f"{self.path('f/dark/2026/up')}"])
        self.assertEqual((before, self.splits(spec)), ({"train": 16, "test": 4}, {"train": 20, "test": 5}))
        self.assertEqual(json.loads(self.succeeds("data", "check", spec, "--json").stdout)["images_outside"], 2)

    DAMAGE = "warning: 1 image could not be decoded; the next image of the class is used instead: "

    def splits_with_damage(self):
        for split in ("train", "val"):
            for i in range(4):
                self.write(f"g/{split}/dark/{i}.png", png(72, 72, 10 + i))
                self.write(f"g/{split}/light/{i}.png", png(72, 72, 240 - i))
        self.write("g/val/light/1.png", b"not an image")
        return "folder:" + self.path("g")

    @needs_no_training
    def test_images_that_others_replaced_are_named_once(self):
        spec = self.splits_with_damage()
        tap, small = self.path("net.tap"), self.path("small.tap")
        net = self.write("two.net", "onetap-net 1\nx = input 3x32x32\na = conv x out=8 kernel=3 pad=1\nr = relu a\n"
                                    "g = gap r\nfc = linear g out=2\n")
        self.succeeds("nets", net, "--tap", tap)
        for arguments in (["eval", tap, tap, "--data", spec], ["quantize", tap, "--data", spec, "-o", small],
                          ["frontier", tap, "--data", spec, "--seconds", 0.01, "--out", self.path("frontier")]):
            result = self.succeeds(*arguments)
            self.assertIn(self.DAMAGE + self.path("g/val/light/1.png") + "\n", result.stderr)
            self.assertEqual(result.stderr.count("could not be decoded"), 1, result.stderr)
        self.refused(4, "1.png", "eval", tap, "--data", spec + ",strict")

    TRAIN = ["--arch", "resnet8", "--width", 4, "--batch-size", 8, "--epochs", 2, "--device", "cpu", "--threads", 1]

    @needs_training
    def test_from_photographs_to_a_tap(self):
        self.make(side=72)
        self.write("f/dark/5.png", b"not an image")
        run = self.path("run")
        result = self.succeeds("train", *self.TRAIN, "--data", "folder:f", "--lr", 0.05, "--out", run, cwd=self.dir)
        self.assertIn("16 training and 4 test images, 2 classes", result.stderr)
        self.assertIn("images are cropped and scaled to 64x64 pixels (--image-size)", result.stderr)
        self.assertEqual(result.stderr.count("1 image could not be decoded; the next image of the class is used instead ("), 1, result.stderr)
        frozen = json.loads(self.succeeds("freeze", run, "--json", "-q").stdout)
        self.assertEqual(frozen["stages"][-1]["images"], 4)
        damaged = self.splits_with_damage()
        for verb in ("freeze", "eval", "sensitivity"):
            result = self.succeeds(verb, run, "--data", damaged)
            self.assertIn(self.DAMAGE + self.path("g/val/light/1.png") + "\n", result.stderr, verb)
        self.assertIn("1 image could not be decoded", str(json.loads(self.succeeds(
            "freeze", run, "--data", damaged, "--json").stdout)["warnings"]))
        self.succeeds("train", *self.TRAIN, "--data", damaged, "--method", "conv", "--epochs", 1, "--out", self.path("dense"))
        result = self.succeeds("prune", self.path("dense"), "--by", "l1", "--ratio", 0.5, "--data", damaged, "--out",
                               self.path("pruned"))
        self.assertIn(self.DAMAGE + self.path("g/val/light/1.png") + "\n", result.stderr)
        answer = self.succeeds("run", run, self.path("f/light/3.png"), "--top", 1)
        self.assertRegex(answer.stdout, r"3\.png:  (dark|light) \d")
        self.assertIn("using " + os.path.join(run, "model.tap"), answer.stderr)

    @needs_training
    def test_recalibration_that_lowers_the_accuracy_is_not_advised(self):
        for split in ("train", "val"):
            for i in range(16):
                self.write(f"f/{split}/dark/{i}.png", png(40, 40, 10 + i))
                self.write(f"f/{split}/light/{i}.png", png(40, 40, 240 - i))
        run = self.path("run")
        self.succeeds("train", *self.TRAIN, "--data", "folder:" + self.path("f"), "--epochs", 16, "--batch-size", 4, "--harden", 0.5,
                      "--lr", 0.02, "--out", run)
        for name in ("dark", "light"):  # statistics of other images
            for i in range(16):
                self.write(f"f/train/{name}/{i}.png", png(40, 40, 255))
        frozen = json.loads(self.succeeds("freeze", run, "--recalibrate", 32, "--json").stdout)
        soft, hard, again = (stage["accuracy"] for stage in frozen["stages"][:3])
        self.assertEqual(soft, hard)
        self.assertGreater(hard, 0.7)
        self.assertLess(again, hard - 0.01)
        warned, = frozen["warnings"]
        self.assertIn(f"Recalibration lowered it from {100 * hard:.2f} %: omit --recalibrate", warned)
        self.assertNotIn("--harden", warned)

    @needs_training
    def test_strict_refuses_damage_and_limit_limits(self):
        spec = self.make()
        self.write("f/dark/5.png", b"not an image")
        run = self.path("run")
        result = onetap("train", *self.TRAIN, "--data", spec, "--strict", "--out", run)
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("5.png", result.stderr)
        result = self.succeeds("train", *self.TRAIN, "--data", spec, "--limit", 8, "--epochs", 1, "--out", self.path("two"))
        self.assertIn("8 training and 4 test images", result.stderr)
        self.assertIn("scaled to 32x32", result.stderr)  # images of 40 pixels have no more to show
        with open(self.path("two", "config.toml")) as file:
            self.assertIn("limit = 8", file.read())
        self.refused(2, "was started with limit = 8, got 4", "train", "--limit", 4, "--resume", "--out", self.path("two"))


RECIPES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "recipes")


@needs_training
class ImageNet(CommandTest):
    """Recipes and experiments of ImageNet on a folder in its layout, with few small images."""

    def setUp(self):
        super().setUp()
        for split, images in (("train", 4), ("val", 2)):
            for name, red in (("n01440764", 20), ("n01443537", 230)):
                for i in range(images):
                    self.write(f"imagenet/{split}/{name}/{name}_{i}.png", png(40, 32 + i, red + i))
        self.data = "folder:" + self.path("imagenet")

    def test_every_recipe_trains(self):
        names = sorted(name for name in os.listdir(RECIPES) if name.startswith("imagenet-"))
        self.assertEqual(len(names), 7)
        for name in names:
            run = self.path(name)
            self.succeeds("train", os.path.join(RECIPES, name), "--data", self.data, "--epochs", 1, "--image-size", 32,
                          "--workers", 1, "--threads", 1, "--device", "cpu", "--out", run)
            with open(os.path.join(run, "metrics.jsonl")) as file:
                last = [json.loads(line) for line in file][-1]
            self.assertEqual((last["split"], last["step"], last["epoch"]), ("test", 1, 1), name)

    def test_the_table_is_reproduced(self):
        # At the architectures' own 224 pixels, so only the two smallest rows.
        chosen = ["ResNet-w16 (CLs)", "ResNet-w32 + SAL"]
        answer = json.loads(self.succeeds("reproduce", "table-imagenet", "--only", chosen[0], "--only", chosen[1],
                                          "--data", self.data, "--epochs-scale", 0.01, "--device", "cpu", "--threads", 1,
                                          "--out", self.path("out"), "--json").stdout)
        rows = {row["network"]: row for row in answer[0]["rows"]}
        self.assertEqual(len(rows), 6)
        for name, row in rows.items():
            self.assertEqual(row["state"], "finished" if name in chosen else "not trained")
        for name in chosen:
            self.assertEqual((rows[name]["epochs"], rows[name]["epochs_full"]), (1, 90))


if __name__ == "__main__":
    main()
