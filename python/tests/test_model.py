"""The runtime: what Model computes against numpy and the command, and what it refuses."""

import copy
import gc
import os
import pickle
import signal
import sys
import threading
import traceback
import unittest
import unittest.mock
import warnings

import numpy as np

import onetap
from onetap import _command, _library
from support import ALL_OPS, CORPUS, ROOT, TestCase, convolve, random_planes, write_small


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

    def test_other_threads_run_while_a_network_is_computed(self):
        ran = []
        gate = threading.Lock()
        gate.acquire()

        def work():
            with gate:
                ran.append(True)

        worker = threading.Thread(target=work)
        worker.start()
        interval = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, interval)
        with onetap.Model(ALL_OPS, threads=1) as model:
            planes = random_planes((64, 3, 32, 32))
            # From here on the interpreter takes its lock from no thread: the worker runs when a call releases it.
            sys.setswitchinterval(1000)
            gate.release()
            for _ in range(200):
                model(planes)
                if ran:
                    break
            released = bool(ran)
            sys.setswitchinterval(interval)
        worker.join()
        self.assertTrue(released)

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
            self.assertEqual(model.predict(planes[None], top=3), guesses)
            self.assertEqual(model.predict([planes], top=3), guesses)


class Int8(TestCase):
    def test_an_int8_network_computes_from_pixels_what_it_computes_from_floats(self):
        random = np.random.default_rng(4)
        for path in (CORPUS / "tap" / "int8", ALL_OPS):
            with onetap.Model(path) as model:
                self.assertEqual(model.number_type, "f32" if path == ALL_OPS else "int8")
                _, rows, columns = model.input_shape
                pixels = random.integers(0, 256, (3, rows, columns, 3), np.uint8)
                # onetap.h: computed in doubles and rounded to a float.
                planes = ((pixels / 255.0 - model.mean) / model.sd).transpose(0, 3, 1, 2).astype(np.float32)
                wanted = model(planes)
                self.assertTrue((wanted[0] != wanted[1]).any())
                np.testing.assert_array_equal(model(pixels), wanted)
                np.testing.assert_array_equal(model(pixels[1]), wanted[1])
                np.testing.assert_array_equal(model(list(pixels)), wanted)
                np.testing.assert_array_equal(model([planes[0], pixels[1], pixels[2]]), wanted)
                np.testing.assert_array_equal(model(pixels[:, :, ::-1])[0], model(planes[:, :, :, ::-1])[0])
                with unittest.mock.patch.object(_library.library, "onetap_run", side_effect=AssertionError("floats")):
                    model(pixels)

    def test_a_trained_int8_network_agrees_with_its_floats(self):
        floats, bytes_ = (ROOT / "models" / f"cifar10-sal-w56-share4x4{kind}.tap" for kind in ("", "-int8"))
        pixels = np.random.default_rng(6).integers(0, 256, (16, 32, 32, 3), np.uint8)
        with onetap.Model(floats) as wanted, onetap.Model(bytes_) as model:
            self.assertEqual((wanted.number_type, model.number_type), ("f32", "int8"))
            self.assertEqual(model.classes, wanted.classes)
            self.assert_close(model(pixels), wanted(pixels), 0.1)


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
            ({"target": 5}, "target"),
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
            for count in (0, 2):
                with self.assert_error(onetap.UsageError, f"one image, got a batch of {count}"):
                    model.predict(np.zeros((count, 3, 32, 32), np.float32))
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

    def test_a_forked_child(self):
        model = onetap.Model(ALL_OPS, threads=2)
        planes = random_planes((3, 32, 32))
        wanted = model(planes)

        def child():
            nonlocal model
            with self.assert_error(onetap.UsageError, "fork"):
                model(planes)
            model.close()
            with onetap.Model(ALL_OPS, threads=2) as other:
                np.testing.assert_array_equal(other(planes), wanted)

        def collecting_child():
            nonlocal model
            model = None
            gc.collect()

        def child_of_a_call():
            self.assertTrue(model._lock.locked())
            with self.assert_error(onetap.UsageError, "fork"):
                model(planes)
            model.close()

        self.assert_forked(child)
        self.assert_forked(collecting_child)
        with model._lock:  # as another thread in the middle of a call
            self.assert_forked(child_of_a_call)
        np.testing.assert_array_equal(model(planes), wanted)
        model.close()

    def assert_forked(self, work):
        """Runs ``work`` in a forked child, which must end by itself."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads
            process = os.fork()
        if process == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(60)
            code = 1
            try:
                work()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        _, status = os.waitpid(process, 0)
        self.assertEqual(status, 0)

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

    def test_the_library_is_found_in_any_folder_of_the_package(self):
        folder = self.folder()  # an editable install has the sources in one folder and the library in another
        (folder / "library").mkdir()
        (folder / "library" / "libonetap.so").write_bytes(b"")
        folders = [str(folder / "sources"), str(folder / "library")]
        with unittest.mock.patch.dict("os.environ"):
            os.environ.pop("ONETAP_LIBRARY", None)
            self.assertEqual(_library._candidates(folders), [str(folder / "library" / "libonetap.so")])
            self.assertEqual(_library._candidates(folders[:1]), ["libonetap.so.0"])
            os.environ["ONETAP_LIBRARY"] = "/nowhere/libonetap.so"
            self.assertEqual(_library._candidates(folders), ["/nowhere/libonetap.so"])

    def test_a_command_that_is_not_there(self):
        with unittest.mock.patch.dict("os.environ", {"ONETAP": "/nowhere/onetap"}):
            with self.assert_error(onetap.Error, "/nowhere/onetap"):
                _command.run_command("count")


if __name__ == "__main__":
    unittest.main()
