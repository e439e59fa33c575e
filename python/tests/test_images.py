"""Images as the input of a network: against formulas and the command, which has readers and resizing of its own."""

import json
import subprocess
import sys
import tracemalloc
import unittest
import warnings

import numpy as np

import onetap
from onetap import _command, images
from support import ALL_OPS, CORPUS, TestCase, environment

try:
    from PIL import Image, features
except ImportError:
    Image = None


def probabilities(image):
    with onetap.Model(ALL_OPS) as model:
        return {guess.name: guess.probability for guess in model.predict(image, top=10)}


class Views(TestCase):
    """Against the command, which has its own reader and its own resizing."""

    def command(self, path):
        try:
            _command.find_command()
        except onetap.Error:
            self.skipTest("no command onetap")
        said = json.loads(_command.run_command("run", str(ALL_OPS), str(path), "--json", "--top", "10"))
        return {guess["class"]: guess["probability"] for guess in said["top"]}

    def assert_alike(self, got, wanted, most):
        self.assertEqual(got.keys(), wanted.keys())
        for label, probability in wanted.items():
            self.assertAlmostEqual(got[label], probability, delta=most)

    @unittest.skipIf(Image is None, "no Pillow")
    def test_images_look_as_they_do_to_the_command(self):
        for name in ("rgb.png", "palette.png", "grey.png"):
            wanted = self.command(CORPUS / "image" / name)
            with Image.open(CORPUS / "image" / name) as image, onetap.Model(ALL_OPS) as model:
                self.assert_alike(probabilities(image), wanted, 5e-6)
                batch = model([image, image])
                np.testing.assert_array_equal(batch[0], model(image))

    @unittest.skipIf(Image is None, "no Pillow")
    def test_a_large_photograph_looks_nearly_as_it_does_to_the_command(self):
        path = self.folder() / "photo.jpg"
        blots = np.random.default_rng(5).integers(0, 256, (9, 12, 3), np.uint8)
        photo = Image.fromarray(blots).resize((1600, 1200), Image.BICUBIC)
        photo.save(path, quality=95)
        wanted = self.command(path)  # decodes a JPEG in a smaller size
        with Image.open(path) as image:
            self.assert_alike(probabilities(image), wanted, 3e-4)
        turned = probabilities(photo.transpose(Image.ROTATE_180))
        self.assertGreater(max(abs(turned[label] - wanted[label]) for label in wanted), 1e-3)

    @unittest.skipIf(Image is None, "no Pillow")
    def test_grey_of_16_bits_looks_as_it_does_to_the_command(self):
        path = self.folder() / "grey.png"
        Image.fromarray(np.linspace(0, 65535, 32 * 32).reshape(32, 32).astype(np.uint16)).save(path)
        with Image.open(path) as image:
            self.assert_alike(probabilities(image), self.command(path), 5e-5)

    @unittest.skipIf(Image is None, "no Pillow")
    def test_images_are_turned_as_the_command_turns_them(self):
        folder = self.folder()
        blots = Image.fromarray(np.random.default_rng(4).integers(0, 256, (4, 4, 3), np.uint8)).resize((32, 32))
        stored = with_orientation(np.asarray(blots), 6)
        for name in ("photo.jpg", "photo.png"):
            stored.save(folder / name, exif=stored.info["exif"])
            with Image.open(folder / name) as image:
                self.assertEqual(image.getexif()[0x0112], 6)
                # Decoders of JPEG differ by 1 in some bytes.
                self.assert_alike(probabilities(image), self.command(folder / name), 2e-4)
        sideways, upright = probabilities(np.asarray(blots)), probabilities(np.rot90(blots, -1))
        self.assertGreater(max(abs(sideways[label] - upright[label]) for label in upright), 2e-3)

    @unittest.skipIf(Image is None, "no Pillow")
    def test_the_module_prints_what_the_command_prints(self):
        image = str(CORPUS / "image" / "rgb.png")
        self.command(image)
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

    @unittest.skipIf(Image is None, "no Pillow")
    def test_the_module_turns_images_and_reports_those_that_have_no_pixels_of_8_bits(self):
        folder = self.folder()
        stored = with_orientation(np.random.default_rng(8).integers(0, 256, (32, 32, 3), np.uint8), 6)
        stored.save(folder / "turned.jpg", exif=stored.info["exif"])
        with Image.open(folder / "turned.jpg") as image:
            upright = np.rot90(np.asarray(image), -1)
        Image.fromarray(upright).save(folder / "upright.png")
        Image.fromarray(upright.astype(np.float32)[:, :, 0]).save(folder / "floats.tiff")
        names = ["turned.jpg", "floats.tiff", "upright.png"]
        done = subprocess.run([sys.executable, "-m", "onetap", str(ALL_OPS), *names, "--json"], cwd=folder,
                              capture_output=True, text=True, env=environment())
        turned, wanted = (json.loads(line)["top"] for line in done.stdout.splitlines())
        self.assertEqual(turned, wanted)
        self.assertEqual(done.returncode, 4)
        self.assertRegex(done.stderr, r"^onetap: \[python\] expected .*mode F.* \(floats.tiff\)\n$")


def with_orientation(stored, orientation):
    """A Pillow image of these pixels with Exif data that say how it is to be turned."""
    image = Image.fromarray(np.ascontiguousarray(stored))
    exif = Image.Exif()
    exif[0x0112] = orientation
    image.info["exif"] = exif.tobytes()
    return image


@unittest.skipIf(Image is None, "no Pillow")
class PillowImages(TestCase):
    def test_images_are_turned_as_their_exif_orientation_says(self):
        upright = np.random.default_rng(9).integers(0, 256, (20, 30, 3), np.uint8)
        # The table of the Exif standard: where the stored row 0 and the stored column 0 are seen.
        seen = {1: ("top", "left"), 2: ("top", "right"), 3: ("bottom", "right"), 4: ("bottom", "left"),
                5: ("left", "top"), 6: ("right", "top"), 7: ("right", "bottom"), 8: ("left", "bottom")}
        with onetap.Model(ALL_OPS) as model:
            wanted = model(upright)
            for orientation, (row, column) in seen.items():
                stored = upright if row in ("top", "bottom") else upright.swapaxes(0, 1)
                stored = stored[::-1] if row in ("bottom", "right") else stored
                stored = stored[:, ::-1] if column in ("bottom", "right") else stored
                image = with_orientation(stored, orientation)
                np.testing.assert_array_equal(images.pixels_of(image), upright)
                np.testing.assert_array_equal(model(image), wanted)
        for orientation in (0, 9):  # not in the table
            np.testing.assert_array_equal(images.pixels_of(with_orientation(upright, orientation)), upright)

    def test_of_files_only_jpegs_are_turned(self):
        stored = with_orientation(np.random.default_rng(9).integers(0, 256, (20, 30, 3), np.uint8), 6)
        folder = self.folder()
        for name, is_turned in (("a.jpg", True), ("a.png", False), ("a.webp", False), ("a.tiff", False)):
            if name == "a.webp" and not features.check("webp"):
                continue
            stored.save(folder / name, exif=stored.info["exif"])
            with Image.open(folder / name) as image:
                self.assertEqual(image.getexif()[0x0112], 6)
                pixels = np.asarray(image.convert("RGB"))
                np.testing.assert_array_equal(images.pixels_of(image), np.rot90(pixels, -1) if is_turned else pixels)

    def test_damaged_exif_data_are_none(self):
        upright = np.random.default_rng(9).integers(0, 256, (20, 30, 3), np.uint8)
        whole = with_orientation(upright, 6).info["exif"]
        self.assertTrue(whole.startswith(b"Exif\0\0"))
        for damaged in (b"Exif\0\0nonsense", whole[:-7], b"Exif\0\0II*\0\xff\xff\xff\xff"):
            image = Image.fromarray(upright)
            image.info["exif"] = damaged
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                np.testing.assert_array_equal(images.pixels_of(image), upright)

    def test_pixels_that_cannot_be_decoded_are_an_error(self):
        path = self.folder() / "cut.png"
        Image.fromarray(np.random.default_rng(1).integers(0, 256, (64, 64, 3), np.uint8)).save(path)
        path.write_bytes(path.read_bytes()[:5000])
        with Image.open(path) as image, self.assertRaises(OSError):
            images.pixels_of(image)

    def test_modes(self):
        grey = np.arange(0, 65536, 64, np.int64).reshape(32, 32)
        eight = Image.fromarray((grey >> 8).astype(np.uint8))
        for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV"):
            image = eight.convert("RGB").convert(mode)
            np.testing.assert_array_equal(images.pixels_of(image), np.asarray(image.convert("RGB")))
        sixteen = Image.fromarray(grey.astype(np.uint16))
        self.assertEqual(sixteen.mode, "I;16")
        wanted = np.rint(grey / 257).astype(np.uint8)
        for stored in (sixteen, Image.frombytes("I;16B", (32, 32), grey.astype(">u2").tobytes())):
            got = images.pixels_of(stored)
            self.assertEqual((got.dtype, got.shape), (np.uint8, (32, 32, 3)))
            for channel in range(3):
                np.testing.assert_array_equal(got[:, :, channel], wanted)
        with onetap.Model(ALL_OPS) as model:
            for image in (Image.fromarray(grey.astype(np.int32)), Image.fromarray(grey.astype(np.float32))):
                with self.assert_error(onetap.UsageError, f"mode {image.mode}"):
                    model(image)


class Resizing(TestCase):
    def test_is_the_triangle_filter(self):
        """Against sums over all samples."""

        def matrix(extent, side, count):
            scale = side / count
            weights = np.zeros((count, extent))
            for i in range(count):
                centre = (extent - side) / 2 + (i + 0.5) * scale
                for k in range(extent):
                    weights[i, k] = max(0, 1 - abs(k + 0.5 - centre) / max(scale, 1))
            return weights / weights.sum(1, keepdims=True)

        random = np.random.default_rng(10)
        for rows, columns, size in ((1, 1, 4), (1, 7, 3), (9, 5, 16), (33, 32, 32), (40, 61, 8), (50, 20, 1)):
            pixels = random.integers(0, 256, (rows, columns, 3), np.uint8)
            side = min(rows, columns) * 7 / 8
            wanted = np.einsum("yh,xw,hwc->yxc", matrix(rows, side, size), matrix(columns, side, size), pixels)
            np.testing.assert_allclose(images.resize_centre(pixels, size), wanted, rtol=1e-4, atol=1e-3)

    def test_needs_less_memory_than_the_photograph(self):
        photo = np.full((1500, 2000, 3), 77, np.uint8)
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        images.resize_centre(photo, 64)
        self.assertLess(tracemalloc.get_traced_memory()[1], photo.nbytes)

    def test_images_of_other_sizes(self):
        random = np.random.default_rng(2)
        small, large = random.integers(0, 256, (2, 20, 30, 3), np.uint8), random.integers(0, 256, (64, 50, 3), np.uint8)
        exact = random.integers(0, 256, (32, 32, 3), np.uint8)
        with onetap.Model(ALL_OPS) as model:
            np.testing.assert_array_equal(model(small), model([small[0], small[1]]))
            mixed = model([large, small[1], exact])
            for got, image in zip(mixed, (large, small[1], exact)):
                np.testing.assert_array_equal(got, model(image))

    def test_keeps_constants_and_slopes(self):
        grey = np.full((40, 60, 3), 77, np.uint8)
        np.testing.assert_allclose(images.resize_centre(grey, 16), 77, rtol=1e-6)
        # Columns 0, 1, 2, ... shrunk by 2: outputs lie 2 apart, around the middle.
        slope = np.broadcast_to(np.arange(64, dtype=np.uint8)[None, :, None], (64, 64, 3))
        got = images.resize_centre(slope, 28)
        np.testing.assert_allclose(np.diff(got[:, :, 0], axis=1), 2, rtol=1e-5)
        self.assertAlmostEqual(float(got.mean()), 31.5, places=3)


if __name__ == "__main__":
    unittest.main()
