"""onetap bench, frontier and scripts/bench-cpu on int8 networks: what is printed, and the images that a peer is calibrated
with."""
import array
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from folders_test import png
from support import ONETAP, CommandTest, main, needs_no_training, set_metadata

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = "shapes:train=60,test=30"
QUICK = ["--seconds", "0.02"]


def has_onnxruntime():
    python = os.environ.get("ONETAP_PYTHON", "python3")
    return subprocess.run([python, "-c", "import numpy, onnxruntime, onnx"], capture_output=True).returncode == 0


class Int8(CommandTest):
    def tap(self, name, *flags):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        self.succeeds("nets", "resnet8", "--width", 4, "--tap", self.path(name), *flags)
        return self.path(name)

    def quantized(self, model, data=DATA, images=8):
        out = model.replace(".tap", "-int8.tap")
        self.succeeds("quantize", model, "--data", data, "-o", out, "--images", images)
        return out

    def bench(self, *arguments, **kwargs):
        return json.loads(self.succeeds("bench", *arguments, *QUICK, "--json", **kwargs).stdout)


@needs_no_training
class Bench(Int8):
    def test_rates_are_multiply_adds_against_the_peak_of_dot_products(self):
        floats = self.tap("net.tap", "--share", "4x4")
        int8 = self.quantized(floats)
        result = self.bench(int8, "--against", "float,dense", "--layers")
        self.assertEqual(result["type"], "int8")
        self.assertGreater(result["dot_peak_gmacs"], 0)
        count = json.loads(self.succeeds("count", int8, "--json").stdout)
        self.assertEqual(result["macs"], count["macs"])
        self.assertAlmostEqual(result["gmacs"], result["macs"] / result["median_ms"] / 1e6, delta=1e-6 * result["gmacs"])
        self.assertAlmostEqual(result["dot_peak_fraction"], result["gmacs"] / result["dot_peak_gmacs"], places=9)
        for key in ("gflops", "fma_peak_fraction", "fma_peak_gflops"):
            self.assertNotIn(key, result)
        for layer in result["layers"]:
            self.assertIn("dot_peak_fraction", layer)
        # The network in floats is measured as networks of floats are; the dense one has bytes.
        self.assertIn("the network in floats", result["peers"]["float"]["version"])
        self.assertIn("fma_peak_fraction", result["peers"]["float"])
        self.assertNotIn("gmacs", result["peers"]["float"])
        self.assertIn("dot_peak_fraction", result["peers"]["dense"])
        table = self.succeeds("bench", int8, floats, *QUICK).stdout
        self.assertRegex(table, r"FMA peak here: [\d.]+ GFLOP/s; dot-product peak here: [\d.]+ GMAC/s")

    def test_a_peer_that_is_not_installed_is_left_out(self):
        int8 = self.quantized(self.tap("net.tap"))
        answer = self.bench(int8, "--against", "onnxruntime,float", env={"ONETAP_PYTHON": "/bin/false"})
        self.assertEqual(list(answer["peers"]), ["float"])
        self.assertIn("pip install onnxruntime onnx", answer["left_out"]["onnxruntime"])

    def test_a_peer_that_only_a_later_network_lacks_is_named(self):
        floats = self.tap("net.tap")
        int8 = self.quantized(floats)
        # As an interpreter with onnxruntime, but without onnx.
        python = self.write("python", "#!/usr/bin/env python3\nimport sys\n"
                                      "if 'int8' in sys.argv:\n    sys.exit(print('missing'))\n"
                                      "print('ready 1.0', flush=True)\n"
                                      "for line in sys.stdin:\n    print(*[1000] * int(line), flush=True)\n")
        os.chmod(python, 0o755)

        def warnings(*models, interpreter=python):
            answer = self.succeeds("bench", *models, "--against", "onnxruntime", *QUICK, env={"ONETAP_PYTHON": interpreter})
            return answer.stderr.splitlines()

        why = "[bench] expected a Python with onnxruntime and onnx"
        self.assertEqual([line.split(" (")[0] for line in warnings(floats, int8)],
                         [f"warning: left out onnxruntime of {int8}: {why}"])
        self.assertEqual([line.split(" (")[0] for line in warnings(int8, int8)], [f"warning: left out onnxruntime: {why}"])
        self.assertEqual(len(warnings(floats, int8, floats, interpreter="/bin/false")), 2)  # two texts

    @unittest.skipUnless(has_onnxruntime(), "no onnxruntime and onnx")
    def test_the_table_says_which_images_onnxruntime_was_calibrated_with(self):
        int8 = self.quantized(self.tap("net.tap"))
        version = self.bench(int8, "--against", "onnxruntime")["peers"]["onnxruntime"]["version"]
        self.assertRegex(version, r"^[\d.]+, its own QDQ int8, 32 random images$")
        chosen = ["--against", "onnxruntime", "--data", DATA, "--images", 6]
        version = self.bench(int8, *chosen)["peers"]["onnxruntime"]["version"]
        self.assertRegex(version, rf"^[\d.]+, its own QDQ int8, 6 images of {DATA}$")

    def test_refusals(self):
        floats = self.tap("net.tap")
        int8 = self.quantized(floats)
        asks = ["--against", "onnxruntime"]
        self.refused(2, "expected an int8 network for --against float", "bench", floats, "--against", "float")
        self.refused(2, "expected an int8 network for --data, got floats", "bench", floats, *asks, "--data", DATA)
        self.refused(2, "expected --against onnxruntime with --data", "bench", int8, "--data", DATA)
        self.refused(2, "--images", "bench", int8, *asks, "--images", 5)
        self.refused(4, "expected test_batch.bin", "bench", int8, *asks, "--data", "cifar10:" + self.path("nowhere"))
        self.write("f/a/1.png", png(32, 32, 1)), self.write("f/a/2.png", png(32, 32, 1))
        self.write("f/b/1.png", png(32, 32, 1)), self.write("f/b/2.png", png(32, 32, 1))
        self.refused(2, "expected 2 values from output", "bench", int8, *asks, "--data", "folder:" + self.path("f"))


@needs_no_training
class CalibrationImages(Int8):
    """With an interpreter that keeps the images that it is given, and has no onnxruntime."""

    def setUp(self):
        super().setUp()
        self.kept = self.path("kept.bin")
        python = self.write("python", f'#!/bin/sh\n[ "$5" = int8 ] && cp "$6" "{self.kept}"\necho missing\n')
        os.chmod(python, 0o755)
        self.env = {"ONETAP_PYTHON": python}
        for i in range(6):  # red grows with the place in the training set
            for name, red in (("a", i), ("b", 6 + i)):
                self.write(f"f/train/{name}/{i}.png", png(32, 32, 20 * red))
        self.write("f/val/a/0.png", png(32, 32, 1)), self.write("f/val/b/0.png", png(32, 32, 1))
        self.data = "folder:" + self.path("f")

    def network(self, name):
        """Pixels are (byte / 255 - mean) / sd."""
        model = self.tap(name, "--classes", 2, "--method", "conv")
        set_metadata(model, "mean", "[0.4,0.5,0.6]")
        set_metadata(model, "sd", "[0.3,0.2,0.1]")
        return model

    def reds(self):
        """The red of every image that the interpreter got, in bytes."""
        with open(self.kept, "rb") as file:
            pixels = array.array("f", file.read())
        plane = 32 * 32
        self.assertEqual(len(pixels) % (3 * plane), 0)
        firsts = []
        for first in range(0, len(pixels), 3 * plane):
            for channel in range(3):
                start = first + channel * plane
                self.assertEqual(len(set(pixels[start:start + plane])), 1)
            firsts.append(pixels[first])
        return [round((value * 0.3 + 0.4) * 255) for value in firsts]

    def test_bench_gives_the_images_of_quantize(self):
        int8 = self.quantized(self.network("net.tap"), self.data)
        self.bench(int8, "--against", "onnxruntime", "--data", self.data, "--images", 4, env=self.env)
        self.assertEqual(self.reds(), [20 * place for place in (0, 3, 6, 9)], "4 of 12, evenly spread")
        self.bench(int8, "--against", "onnxruntime", "--data", self.data, env=self.env)
        self.assertEqual(self.reds(), [20 * place for place in range(12)], "512, or all there are")

    def test_frontier_gives_the_images_of_the_data_that_it_tests_on(self):
        model = self.network("nets/net.tap")
        self.quantized(model, self.data)
        os.remove(model)
        self.refused(2, "expected a Python with onnxruntime", "frontier", self.path("nets"), "--data", self.data,
                     "--against", "onnxruntime", "--images", 3, "-o", self.path("out"), *QUICK, env=self.env)
        self.assertEqual(self.reds(), [20 * place for place in (0, 4, 8)])

    def test_images_are_written_one_by_one(self):
        int8 = self.quantized(self.tap("net.tap"))
        images, image = 10000, 3 * 32 * 32 * 4
        child = subprocess.Popen([ONETAP, "bench", int8, "--against", "onnxruntime", "--data", f"shapes:train={images},test=1",
                                  "--images", str(images), "--json", *QUICK], stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, env={**os.environ, **self.env})
        child.stdout.read()
        child.stdout.close()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(child.returncode, 0)
        self.assertEqual(os.path.getsize(self.kept), images * image)
        self.assertLess(usage.ru_maxrss * 1024, images * image)

    def test_more_images_than_fit_a_file(self):
        int8 = self.quantized(self.tap("net.tap", "--image-size", 224))
        # 4 GiB of 3x224x224 floats.
        self.refused(2, "at most 7133 calibration images of 150528 floats (4.3 GB) for ONNX Runtime, got --images 8000",
                     "bench", int8, "--against", "onnxruntime", "--data", "shapes:train=8000,test=1", "--images", 8000,
                     env=self.env)
        self.assertFalse(os.path.exists(self.kept))

    def test_quantize_without_training_images(self):
        model = self.network("net.tap")
        for name in "ab":
            shutil.rmtree(self.path("f/train", name))
            os.makedirs(self.path("f/train", name))
        self.refused(4, "got none", "quantize", model, "--data", self.data, "-o", self.path("out.tap"))
        self.assertFalse(os.path.exists(self.path("out.tap")))


@needs_no_training
class Script(CommandTest):
    """scripts/bench-cpu, without peers."""

    def table(self, *arguments):
        result = subprocess.run([sys.executable, str(ROOT / "scripts" / "bench-cpu"), "--onetap", ONETAP, "--seconds", "0.01",
                                 *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=dict(os.environ, ONETAP_PYTHON="/bin/false"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("bench-cpu: ONNX Runtime is left out: ", result.stderr)
        return result.stdout

    def test_int8(self):
        for name in "abcdefghij":
            self.write(f"f/train/{name}/0.png", png(32, 32, 99)), self.write(f"f/val/{name}/0.png", png(32, 32, 1))
        text = self.table("--int8", "--only", "sal-w56-share4x4", "--data", "folder:" + self.path("f"), "--images", "1")
        head, _, row = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[:3]]
        self.assertEqual(head, ["network", "MACs", "onetap int8, ms", "of dot-product peak", "onetap in floats, ms",
                                "onetap in floats / onetap int8"])
        self.assertEqual(row[:2], ["sal-w56-share4x4", "59,353,280"])  # as the card of the trained network says
        self.assertRegex(text, r"dot-product peak in the same run: \d+ GMAC/s")
        self.assertRegex(text, r"`scripts/bench-cpu .* --int8 --data folder:DIR --images 1 --only sal-w56-share4x4`")
        self.assertNotIn(self.dir, text)

    def test_floats(self):
        text = self.table("--only", "dense-w16")
        self.assertRegex(text, r"\| dense-w16 +\| 40,813,184 \|")
        self.assertRegex(text, r"FMA peak in the same run: \d+ GFLOP/s")


if __name__ == "__main__":
    main()
