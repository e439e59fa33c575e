"""onetap run and onetap bench on frozen networks with random weights: what is printed, in which order, and what fails."""
import json
import os
import re
import struct
import subprocess
import unittest

from support import ONETAP, CommandTest, main, onetap, png

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")


class Tap(CommandTest):
    def tap(self, *flags, name="net.tap"):
        self.succeeds("nets", "resnet8", "--width", 4, "--method", "sal", "--tap", self.path(name), *flags)
        return self.path(name)

    def folder(self, count):
        os.makedirs(self.path("images/more"), exist_ok=True)
        for i in range(count):
            where = "images/more" if i % 3 == 0 else "images"
            png(self.path(f"{where}/{i:03}.png"), (i * 7 % 200, i * 13 % 200, 90))
        self.write("images/notes.txt", "no image")
        return self.path("images")


class Run(Tap):
    def test_names_the_best_classes(self):
        image = png(self.path("a.png"), (10, 120, 200))
        out = self.succeeds("run", self.tap(), image, "--top", 3).stdout
        self.assertTrue(out.startswith(image + ":"), out)
        self.assertEqual(out.count("%"), 3)

    def test_json_lines_in_the_order_of_names_whatever_the_threads(self):
        tap, folder = self.tap(), self.folder(150)
        one = self.succeeds("run", tap, folder, "--json", "--threads", 1).stdout
        self.assertEqual(one, self.succeeds("run", tap, folder, "--json", "--threads", 3).stdout)
        lines = [json.loads(line) for line in one.splitlines()]
        self.assertEqual(len(lines), 150)
        self.assertEqual([line["image"] for line in lines], sorted(line["image"] for line in lines))
        for line in lines:
            probabilities = [guess["probability"] for guess in line["top"]]
            self.assertEqual(len(probabilities), 5)
            self.assertEqual(probabilities, sorted(probabilities, reverse=True))
            self.assertLessEqual(sum(probabilities), 1 + 1e-9)

    def test_every_target_says_the_same(self):
        tap, image = self.tap(), png(self.path("a.png"), (200, 20, 60))
        plain = json.loads(self.succeeds("run", tap, image, "--json", "--target", "plain").stdout)
        best = json.loads(self.succeeds("run", tap, image, "--json").stdout)
        self.assertEqual((len(plain["top"]), len(best["top"])), (5, 5))
        for a, b in zip(plain["top"], best["top"]):
            self.assertEqual(a["index"], b["index"])
            self.assertAlmostEqual(a["probability"], b["probability"], places=4)

    def test_standard_input(self):
        tap, image = self.tap(), png(self.path("a.png"), (10, 120, 200))
        with open(image, "rb") as file:
            got = subprocess.run([ONETAP, "run", tap, "-", "--json"], stdin=file, capture_output=True, check=True)
        expected = json.loads(self.succeeds("run", tap, image, "--json").stdout)
        self.assertEqual(json.loads(got.stdout)["top"], expected["top"])

    def test_outputs_that_are_not_finite_are_an_error(self):
        # Finite weights, as a file must have, whose sums are not.
        net = self.write("large.net", "onetap-net 1\nnetwork large\nx = input 3x32x32\n"
                         "a = conv x out=2\ng = gap a\nfc = linear g out=10\n")
        self.succeeds("nets", net, "--method", "conv", "--tap", self.path("net.tap"))
        with open(self.path("net.tap"), "rb") as file:
            content = file.read()
        header = 8 + struct.unpack("<Q", content[:8])[0]
        count = (len(content) - header) // 4
        large = self.write("large.tap", content[:header] + struct.pack("<f", 3e38) * count)
        image = png(self.path("a.png"), (10, 120, 200))
        self.refused(1, "[run] expected finite outputs of large, got nan or inf", "run", large, image)
        several = onetap("run", large, image, self.write("b.png", "no PNG"), "--json")
        self.assertEqual(several.returncode, 1, several.stderr)
        self.assertIn("warning: 2 of 2 images have no prediction", several.stderr)
        lines = [json.loads(line) for line in several.stdout.splitlines()]
        self.assertEqual([sorted(line) for line in lines], [["error", "image"]] * 2)
        self.refused(1, "expected finite outputs", "eval", large, "--data", "shapes:train=10,test=10")

    def test_a_bad_image_does_not_stop_the_others(self):
        folder = self.folder(5)
        self.write("images/002.png", "this is no PNG")
        result = subprocess.run([ONETAP, "run", self.tap(), folder, "--json"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 4)
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual(sum("top" in line for line in lines), 4)
        self.assertEqual([line["image"] for line in lines if "error" in line], [self.path("images/002.png")])
        self.assertIn("002.png", result.stderr)

    def test_what_is_no_file_is_left_out_and_named(self):
        folder = self.folder(2)
        os.mkfifo(self.path("images/pipe.png"))
        os.makedirs(self.path("images/folder.png"))
        os.symlink("loop", self.path("images/loop"))  # of no kind at all
        os.symlink("loop.png", self.path("images/loop.png"))
        result = self.succeeds("run", self.tap(), folder, timeout=60)
        self.assertEqual(len(result.stdout.splitlines()), 2)
        for name in ("pipe.png", "loop.png"):
            self.assertIn(f"warning: skipped {self.path('images', name)}: it is not a regular file\n", result.stderr)
        others = "warning: skipped files of unsupported formats: 1 without an extension, 1 .txt\n"
        self.assertTrue(result.stderr.endswith(others), result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 3)
        self.write("images/more/README", "no image")
        result = self.succeeds("run", self.tap(), folder, "--json", timeout=60)
        self.assertEqual(len(result.stdout.splitlines()), 2)
        self.assertIn("warning: skipped files of unsupported formats: 2 without an extension, 1 .txt\n", result.stderr)

    def test_refusals(self):
        tap = self.tap()
        os.makedirs(self.path("empty"))
        self.refused(4, "found none", "run", tap, self.path("empty"))
        self.refused(4, "nothing.tap", "run", self.path("nothing.tap"), self.path("a.png"))
        self.refused(2, "abacus", "run", tap, self.path("a.png"), "--target", "abacus")
        self.refused(2, "IMAGE", "run", tap)

    def test_the_variable_forces_the_kernels(self):
        tap = self.tap()
        for target in ("plain", "abacus"):
            result = subprocess.run([ONETAP, "bench", tap, "--seconds", "0.01", "--json"], capture_output=True, text=True,
                                    env={**os.environ, "ONETAP_TARGET": target})
            if target == "plain":
                self.assertEqual(json.loads(result.stdout)["target"], "plain")
            else:
                self.assertEqual(result.returncode, 2)


class Rivals(Tap):
    def test_run_and_open_in_python(self):
        """Binary weights, shifts and a depthwise convolution: in a file, by two targets, and by the example's reader."""
        net = self.write("net.txt", "onetap-net 1\nx = input 3x32x32\na = conv x out=9 kernel=3 pad=1 method=binary\n"
                         "s = shift a kernel=3\nr = relu s\nm = activeshift r stride=2\n"
                         "d = conv m out=18 kernel=3 pad=1 groups=9\nt = shift d kernel=3\nc = conv t out=12 bias=1\n"
                         "g = gap c\nf = linear g out=10 method=binary\n")
        self.succeeds("nets", net, "--tap", self.path("net.tap"))
        image = png(self.path("a.png"), (200, 20, 60))
        tops = [json.loads(self.succeeds("run", self.path("net.tap"), image, "--json", *flags).stdout)["top"]
                for flags in ([], ["--target", "plain"])]
        for a, b in zip(*tops):
            self.assertAlmostEqual(a["probability"], b["probability"], places=4)
        script = os.path.join(EXAMPLES, "read_tap.py")
        result = subprocess.run(["/usr/bin/python3", script, self.path("net.tap")], text=True, capture_output=True)
        if "No module named 'numpy'" in result.stderr:
            self.skipTest("no numpy")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("c: 216 weights kept", result.stdout)  # the shift before it went into it: 12 x 18, one position each
        self.assertRegex(result.stdout, r"a: \d+ binary weights negative")
        self.assertRegex(result.stdout, r"f: \d+ binary weights negative")

    def test_the_example_reads_shared_blocks(self):
        script = os.path.join(EXAMPLES, "read_tap.py")
        # Layers of 10 x 10 slices: 3 x 3 blocks of 4 x 4, 10 inputs, 3 blocks of 4 inputs.
        for share, sets in (("4x4", 9), ("all", 10), ("allx4", 3)):
            self.succeeds("nets", "resnet8", "--width", 10, "--method", "sal", "--share", share, "--tap", self.path("s.tap"))
            result = subprocess.run(["/usr/bin/python3", script, self.path("s.tap")], text=True, capture_output=True)
            if "No module named 'numpy'" in result.stderr:
                self.skipTest("no numpy")
            self.assertEqual(result.returncode, 0, result.stderr)
            kept = re.search(r"layer1.0.conv1: 100 weights kept, per position \[([\d ]+)\]", result.stdout)
            self.assertEqual(sum(map(int, kept.group(1).split())), sets)


class HugeNetwork(Tap):
    """A file of a thousand bytes that asks for 2 GiB: the image has 768 MiB, the layer's value 512, its masks 768."""
    NEEDS = "runs in 1.00 GiB of memory, got one that needs 2.00 GiB, of which"

    def huge(self):
        net = self.write("huge.net", "onetap-net 1\nnetwork huge\nx = input 3x8192x8192\n"
                         "a = conv x out=2 kernel=3 pad=1\ng = gap a\nfc = linear g out=10\n")
        self.succeeds("nets", net, "--method", "conv", "--tap", self.path("huge.tap"))
        self.assertLess(os.path.getsize(self.path("huge.tap")), 2000)
        return self.path("huge.tap")

    def test_is_refused_by_whoever_runs_it(self):
        tap, image = self.huge(), png(self.path("a.png"), (10, 120, 200))
        self.refused(2, self.NEEDS, "run", tap, image)
        self.refused(2, "of layer 'a' (huge; --memory", "run", tap, image)
        self.refused(2, self.NEEDS, "bench", tap)
        self.refused(2, self.NEEDS, "eval", tap, "--data", "shapes:train=10,test=10")
        # Plain loops have no masks: the image and the layer's value.
        self.refused(2, "needs 1.25 GiB, of which 1.25 GiB for values around layer 'a'", "eval", tap, "--data",
                     "shapes:train=10,test=10", "--reference")

    def test_is_counted_all_the_same(self):
        self.assertIn("1,342,177,280 bytes", self.succeeds("count", self.huge(), timeout=20).stdout)

    def test_the_limit_is_the_users(self):
        tap, image = self.tap(), png(self.path("a.png"), (10, 120, 200))
        self.refused(2, "runs in 64.00 KiB of memory", "run", tap, image, "--memory", "64K")
        self.refused(2, "runs in 64.00 KiB of memory", "run", tap, image, env={"ONETAP_MEMORY": "64K"})
        # Plain loops take three values of 4x32x32 floats at a sum, 48 KiB; the fast model takes more.
        evaluate = ["eval", tap, "--data", "shapes:train=10,test=10"]
        self.refused(2, "runs in 64.00 KiB of memory", *evaluate, "--memory", "64K")
        self.refused(2, "runs in 40.00 KiB of memory, got one that needs 48.00 KiB", *evaluate, "--reference",
                     "--memory", "40K")
        self.succeeds(*evaluate, "--reference", "--memory", "64K")
        self.succeeds("run", tap, image, "--memory", "64M", env={"ONETAP_MEMORY": "64K"})
        self.refused(2, "for --memory, got 'much'", "run", tap, image, "--memory", "much")
        self.refused(2, "for ONETAP_MEMORY, got 'much'", "bench", tap, env={"ONETAP_MEMORY": "much"})


class Targets(CommandTest):
    # The names of docs/runtime.md: of floats and of int8.
    NAMES = {"avx512", "avx2", "sse4", "sse2", "neon", "plain", "avx512vnni", "avxvnni", "neondot"}

    def test_help_lists_all_of_them(self):
        for verb in ("run", "bench"):
            text, = re.findall(r"--target (\S+)", self.succeeds(verb, "--help").stdout)
            self.assertEqual(set(text.split("|")), self.NAMES, verb)


class Bench(Tap):
    def test_json_has_what_scripts_rely_on(self):
        result = json.loads(self.succeeds("bench", self.tap("--share", 4), "--against", "dense", "--layers", "--threads",
                                          2, "--batch", 3, "--seconds", 0.02, "--json").stdout)
        for key in ("median_ms", "p10_ms", "p90_ms", "gflops", "fma_peak_fraction", "layers", "peers"):
            self.assertIn(key, result)
        self.assertEqual((result["threads"], result["batch"]), (2, 3))
        self.assertLessEqual(result["p10_ms"], result["median_ms"])
        self.assertLessEqual(result["median_ms"], result["p90_ms"])
        self.assertIn("median_ms", result["peers"]["dense"])
        self.assertEqual(sum(layer["macs"] for layer in result["layers"]), result["macs"])
        count = json.loads(self.succeeds("count", self.path("net.tap"), "--json").stdout)
        self.assertEqual(result["macs"], count["macs"])

    def test_several_files_and_an_architecture(self):
        a, b = self.tap(name="a.tap"), self.tap("--share", 2, name="b.tap")
        both = json.loads(self.succeeds("bench", a, b, "--seconds", 0.01, "--json").stdout)
        self.assertEqual([entry["network"] for entry in both], [a, b])
        table = self.succeeds("bench", "resnet8", "--width", 4, "--method", "sal", "--seconds", 0.01).stdout
        self.assertIn("FMA peak", table)

    def test_refusals(self):
        tap = self.tap()
        self.refused(2, "do not apply", "bench", tap, "--width", 4)
        self.refused(2, "several", "bench", tap, "resnet8")
        self.refused(2, "--against", "bench", tap, "--against", "abacus")

    def test_against_onnxruntime(self):
        tap = self.tap()
        python = os.environ.get("ONETAP_PYTHON") or "python3"
        if subprocess.run([python, "-c", "import onnxruntime, numpy"], capture_output=True).returncode != 0:
            self.skipTest("no onnxruntime")
        result = json.loads(self.succeeds("bench", tap, "--against", "onnxruntime", "--seconds", 0.05, "--json").stdout)
        self.assertGreater(result["peers"]["onnxruntime"]["median_ms"], 0)


if __name__ == "__main__":
    main()
