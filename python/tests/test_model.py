"""The runtime: what Model computes against numpy and the command, and what it refuses."""

import copy
import ctypes
import gc
import json
import pickle
import subprocess
import sys
import threading
import unittest
import unittest.mock

import numpy as np

import onetap
from onetap import _command, _library, images
from support import ALL_OPS, CORPUS, TestCase, convolve, environment, write_tap

try:
    from PIL import Image
except ImportError:
    Image = None


def random_planes(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def write_small(path, **metadata):
    """3x6x5 to 4 classes by a tapconv of one tap per slice; returns its dense weights and its bias."""
    random = np.random.default_rng(1)
    positions = random.integers(0, 9, (4, 3))
    taps = random.standard_normal((4, 3, 1)).astype(np.float32)
    bias = random.standard_normal(4).astype(np.float32)
    dense = np.zeros((4, 3, 9), np.float32)
    np.put_along_axis(dense, positions[..., None], taps, 2)
    nibbles = positions.reshape(-1).astype(np.uint8)
    packed = (nibbles[0::2] | nibbles[1::2] << 4).astype(np.uint8)
    nodes = [
        {"name": "input", "op": "input", "shape": [3, 6, 5]},
        {"name": "conv", "op": "tapconv", "inputs": ["input"], "out": 4, "kernel": [3, 3], "pad": [1, 1], "stride": [2, 2],
         "bias": 1, "taps": 1, "share": 1},
        {"name": "pool", "op": "gap", "inputs": ["conv"]},
    ]
    write_tap(path, nodes, {"conv.weight": taps, "conv.bias": bias, "conv.positions": packed}, **metadata)
    return dense.reshape(4, 3, 3, 3), bias


class Computes(TestCase):
    def test_what_numpy_computes(self):
        path = self.folder() / "small.tap"
        weight, bias = write_small(path)
        planes = random_planes((2, 3, 6, 5))
        wanted = np.stack([convolve(image, weight, bias, 2, 1).mean((1, 2)) for image in planes])
        with onetap.Model(path) as model:
            self.assertEqual(model.input_shape, (3, 6, 5))
            self.assertEqual(model.output_shape, (4,))
            self.assertIsNone(model.classes)
            self.assert_close(model(planes), wanted, 1e-5)
            self.assert_close(model(planes[1]), wanted[1], 1e-5)
            self.assert_close(model(planes.astype(np.float64)), wanted, 1e-5)
            self.assert_close(model([planes[1], planes[0]]), wanted[::-1], 1e-5)
            self.assert_close(model(np.asfortranarray(planes)), wanted, 1e-5)

    def test_pixels_are_normalised(self):
        path = self.folder() / "small.tap"
        mean, sd = (0.5, 0.25, 0.125), (0.25, 0.5, 0.2)
        write_small(path, mean=mean, sd=sd)
        pixels = np.random.default_rng(3).integers(0, 256, (2, 6, 5, 3), np.uint8)
        planes = ((pixels / 255.0 - mean) / sd).transpose(0, 3, 1, 2)
        with onetap.Model(path) as model:
            self.assertEqual(model.mean, mean)
            np.testing.assert_allclose(model.sd, sd, rtol=1e-6)
            self.assert_close(model(pixels), model(planes), 1e-5)
            self.assert_close(model(pixels[0]), model(planes[0]), 1e-5)

    def test_images_and_threads_do_not_change_a_result(self):
        planes = random_planes((5, 3, 32, 32))
        alone = onetap.Model(ALL_OPS, threads=1)
        wanted = np.stack([alone(image) for image in planes])
        for threads, batch in ((1, 1), (2, 1), (3, 5)):
            with onetap.Model(ALL_OPS, threads=threads, batch=batch) as model:
                np.testing.assert_array_equal(model(planes), wanted)
        with onetap.Model(ALL_OPS, target="plain") as plain:
            self.assert_close(plain(planes), wanted, 1e-4)

    def test_no_images_give_no_outputs(self):
        with onetap.Model(ALL_OPS) as model:
            self.assertEqual(model([]).shape, (0, 10))
            self.assertEqual(model(np.empty((0, 3, 32, 32), np.float32)).shape, (0, 10))
            self.assertEqual(model(np.empty((0, 32, 32, 3), np.uint8)).shape, (0, 10))
            self.assertEqual(model(np.empty((0, 40, 50, 3), np.uint8)).shape, (0, 10))

    def test_images_of_other_sizes(self):
        random = np.random.default_rng(2)
        small, large = random.integers(0, 256, (2, 20, 30, 3), np.uint8), random.integers(0, 256, (64, 50, 3), np.uint8)
        with onetap.Model(ALL_OPS) as model:
            np.testing.assert_array_equal(model(small), model([small[0], small[1]]))
            np.testing.assert_array_equal(model([large, small[1]])[1], model(small)[1])

    def test_one_model_serves_several_threads(self):
        planes = random_planes((8, 3, 32, 32))
        with onetap.Model(ALL_OPS, threads=2) as model:
            wanted, got = model(planes), [None] * len(planes)

            def work(first):
                for _ in range(20):
                    for i in range(first, len(planes), 4):
                        got[i] = model(planes[i])

            workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            np.testing.assert_array_equal(np.stack(got), wanted)

    def test_the_interpreter_lock_is_released(self):
        self.assertIsInstance(_library.library, ctypes.CDLL)
        self.assertNotIsInstance(_library.library, ctypes.PyDLL)

    def test_predict_sorts_probabilities(self):
        path = self.folder() / "small.tap"
        names = ["a", "b", "c", "d"]
        write_small(path, classes=names)
        planes = random_planes((3, 6, 5))
        with onetap.Model(path) as model:
            self.assertEqual(model.classes, names)
            outputs = model(planes).astype(np.float64)
            wanted = np.exp(outputs) / np.exp(outputs).sum()
            guesses = model.predict(planes, top=3)
            self.assertEqual([g.index for g in guesses], list(np.argsort(-wanted)[:3]))
            for index, name, probability in guesses:
                self.assertEqual(name, names[index])
                self.assertAlmostEqual(probability, wanted[index], places=6)
            self.assertEqual(len(model.predict(planes, top=99)), 4)


class Views(TestCase):
    """Against the command, which has its own reader and its own resizing."""

    def command(self, name):
        try:
            _command.find_command()
        except onetap.Error:
            self.skipTest("no command onetap")
        said = json.loads(_command.run_command("run", str(ALL_OPS), str(CORPUS / "image" / name), "--json", "--top", "10"))
        return {guess["class"]: guess["probability"] for guess in said["top"]}

    @unittest.skipIf(Image is None, "no Pillow")
    def test_images_look_as_they_do_to_the_command(self):
        for name in ("rgb.png", "palette.png", "grey.png"):
            wanted = self.command(name)
            with Image.open(CORPUS / "image" / name) as image, onetap.Model(ALL_OPS) as model:
                got = {guess.name: guess.probability for guess in model.predict(image, top=10)}
                batch = model([image, image])
                np.testing.assert_array_equal(batch[0], model(image))
            self.assertEqual(got.keys(), wanted.keys())
            for label, probability in wanted.items():
                self.assertAlmostEqual(got[label], probability, places=5)

    @unittest.skipIf(Image is None, "no Pillow")
    def test_the_module_prints_what_the_command_prints(self):
        image = str(CORPUS / "image" / "rgb.png")
        self.command("rgb.png")
        ours = subprocess.run([sys.executable, "-m", "onetap", str(ALL_OPS), image], capture_output=True, text=True,
                              env=environment())
        self.assertEqual(ours.returncode, 0, ours.stderr)
        self.assertEqual(ours.stdout, _command.run_command("run", str(ALL_OPS), image))
        lines = subprocess.run([sys.executable, "-m", "onetap", str(ALL_OPS), image, "/nowhere.png", "--json", "--top", "2"],
                               capture_output=True, text=True, env=environment())
        self.assertEqual(lines.returncode, 4)
        self.assertIn("/nowhere.png", lines.stderr)
        self.assertEqual(len(json.loads(lines.stdout)["top"]), 2)
        missing = subprocess.run([sys.executable, "-m", "onetap", "/nowhere.tap", image], capture_output=True, text=True,
                                 env=environment())
        self.assertEqual(missing.returncode, 4)
        self.assertEqual(missing.stderr.count("\n"), 1)

    def test_resizing_keeps_constants_and_slopes(self):
        grey = np.full((40, 60, 3), 77, np.uint8)
        np.testing.assert_allclose(images.resize_centre(grey, 16), 77, rtol=1e-6)
        # Columns 0, 1, 2, ... shrunk by 2: outputs lie 2 apart, around the middle.
        slope = np.broadcast_to(np.arange(64, dtype=np.uint8)[None, :, None], (64, 64, 3))
        got = images.resize_centre(slope, 28)
        np.testing.assert_allclose(np.diff(got[:, :, 0], axis=1), 2, rtol=1e-5)
        self.assertAlmostEqual(float(got.mean()), 31.5, places=3)


class Refuses(TestCase):
    def test_files(self):
        folder = self.folder()
        with self.assert_error(onetap.DataError, "nowhere.tap"):
            onetap.Model(folder / "nowhere.tap")
        (folder / "cut.tap").write_bytes(ALL_OPS.read_bytes()[:1000])
        with self.assert_error(onetap.DataError, "cut.tap") as caught:
            onetap.Model(str(folder / "cut.tap"))
        self.assertEqual((caught.exception.kind, caught.exception.code), ("data", 4))

    def test_options(self):
        for options, part in (
            ({"threads": -1}, "threads"),
            ({"threads": 1025}, "threads"),
            ({"threads": 1.5}, "threads"),
            ({"batch": -1}, "batch"),
            ({"target": "abacus"}, "abacus"),
            ({"target": "a\0b"}, "NUL"),
            ({"memory_limit": 1000}, "memory"),
            ({"memory_limit": -1}, "memory"),
        ):
            with self.assert_error(onetap.UsageError, part):
                onetap.Model(ALL_OPS, **options)
        with self.assert_error(onetap.UsageError, "NUL"):
            onetap.Model("a\0b")

    def test_arrays(self):
        with onetap.Model(ALL_OPS) as model:
            for array, part in (
                (np.zeros((32, 32, 3), np.float32), "channels first"),
                (np.zeros((3, 31, 32), np.float32), "[3, 31, 32]"),
                (np.zeros((1, 1, 3, 32, 32), np.float32), "[1, 1, 3, 32, 32]"),
                (np.zeros((3, 32, 32), np.int64), "int64"),
                (np.zeros((3, 32, 32), bool), "bool"),
                (np.zeros((3, 32, 32), np.complex64), "complex64"),
                (np.zeros((32, 32), np.uint8), "[32, 32]"),
                (np.zeros((32, 32, 4), np.uint8), "[32, 32, 4]"),
                (np.zeros((0, 32, 3), np.uint8), "[0, 32, 3]"),
                ("photo.png", "<U9"),
                ([np.zeros((2, 3, 32, 32), np.float32)], "a batch"),
            ):
                with self.assert_error(onetap.UsageError, part):
                    model(array)
            with self.assert_error(onetap.UsageError, "one image"):
                model.predict(np.zeros((2, 3, 32, 32), np.float32))
            with self.assert_error(onetap.Error, "finite"):
                model.predict(np.full((3, 32, 32), np.nan, np.float32))
            self.assertTrue(np.isfinite(model(np.zeros((3, 32, 32), np.float32))).all())

    def test_another_size_where_a_view_is_no_square(self):
        path = self.folder() / "small.tap"
        write_small(path)
        with onetap.Model(path) as model, self.assert_error(onetap.UsageError, "[6, 5, 3]"):
            model(np.zeros((7, 5, 3), np.uint8))

    def test_a_closed_model(self):
        model = onetap.Model(ALL_OPS)
        model.close()
        model.close()
        with self.assert_error(onetap.UsageError, "closed"):
            model(np.zeros((3, 32, 32), np.float32))

    def test_copies(self):
        with onetap.Model(ALL_OPS) as model:
            self.assertRaises(TypeError, pickle.dumps, model)
            self.assertRaises(TypeError, copy.copy, model)
            self.assertIn("3x32x32 -> 10", repr(model))

    def test_a_model_that_nobody_closes_is_freed(self):
        before = threading.active_count()
        for _ in range(50):
            onetap.Model(ALL_OPS, threads=4)
        gc.collect()
        self.assertEqual(threading.active_count(), before)
        with open("/proc/self/status") as status:
            threads = int(next(line for line in status if line.startswith("Threads:")).split()[1])
        self.assertLess(threads, 100)

    def test_errors_are_errors_of_their_kind(self):
        self.assertTrue(issubclass(onetap.UsageError, ValueError))
        for code, kind in ((1, "failure"), (2, "usage"), (3, "check"), (4, "data"), (77, "failure")):
            self.assertEqual(onetap.errors.error_of(code, "x").kind, kind)

    def test_a_command_that_is_not_there(self):
        with unittest.mock.patch.dict("os.environ", {"ONETAP": "/nowhere/onetap"}):
            with self.assert_error(onetap.Error, "/nowhere/onetap"):
                _command.run_command("count")


if __name__ == "__main__":
    unittest.main()
