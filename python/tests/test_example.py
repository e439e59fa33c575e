"""examples/cifar10_pytorch.py: its download, from an archive made here. scripts/test-python runs the whole program."""

import contextlib
import hashlib
import importlib.util
import io
import tarfile
import unittest
import unittest.mock

import numpy as np

from support import ROOT, TestCase

try:
    import torch  # noqa: F401
except ImportError:
    raise unittest.SkipTest("no PyTorch")


def load_example():
    spec = importlib.util.spec_from_file_location("cifar10_pytorch", ROOT / "examples" / "cifar10_pytorch.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


class Download(TestCase):
    def setUp(self):
        self.example = load_example()
        self.data = self.folder() / "data" / "cifar10"
        self.archive = self.folder() / "cifar.tar.gz"
        self.records = {}
        random = np.random.default_rng(0)
        with tarfile.open(self.archive, "w:gz") as files:
            for name in (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin", "readme.html"):
                self.records[name] = random.integers(0, 10, (2, 3073), np.uint8)
                member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
                member.size = self.records[name].nbytes
                files.addfile(member, io.BytesIO(self.records[name].tobytes()))
        digest = hashlib.sha256(self.archive.read_bytes()).hexdigest()
        for name, value in (("URL", self.archive.as_uri()), ("SHA256", digest)):
            patch = unittest.mock.patch.object(self.example, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def download(self):
        with contextlib.redirect_stdout(io.StringIO()):
            self.example.download_cifar10(self.data)

    def test_reads_what_the_archive_has(self):
        self.download()
        self.assertEqual(len(list(self.data.iterdir())), 6)
        self.archive.unlink()
        self.download()  # the files are here
        (images, labels), (test_images, test_labels) = self.example.read_cifar10(self.data.parent)
        trained = np.concatenate([self.records[f"data_batch_{i}.bin"] for i in range(1, 6)])
        np.testing.assert_array_equal(labels, trained[:, 0])
        np.testing.assert_array_equal(images, trained[:, 1:].reshape(10, 3, 32, 32))
        np.testing.assert_array_equal(test_labels, self.records["test_batch.bin"][:, 0])

    def test_an_archive_with_other_bytes_is_refused_and_leaves_nothing(self):
        self.archive.write_bytes(self.archive.read_bytes() + b"more")
        with self.assertRaisesRegex(SystemExit, "expected SHA-256"):
            self.download()
        self.assertEqual(list(self.data.iterdir()), [])

    def test_a_part_of_the_files_is_completed(self):
        self.data.mkdir(parents=True)
        (self.data / "test_batch.bin").write_bytes(b"")
        self.download()
        self.assertEqual((self.data / "test_batch.bin").stat().st_size, 2 * 3073)


if __name__ == "__main__":
    unittest.main()
