"""What the tests of the command share. Python's standard library only."""
import atexit
import functools
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

ONETAP = os.environ.get("ONETAP", "onetap")
HAS_TRAINING = os.environ.get("ONETAP_TRAINING", "ON") == "ON"
needs_training = unittest.skipUnless(HAS_TRAINING, "built without LibTorch")
# Verbs with LibTorch take half a second to start: './run test' leaves what needs none to the build without it.
TRAINING_ONLY = HAS_TRAINING and os.environ.get("ONETAP_TRAINING_TESTS") == "only"
needs_no_training = unittest.skipIf(TRAINING_ONLY, "tested without LibTorch")


def onetap(*arguments, timeout=600, env=None, **kwargs):
    """Runs the command to its end; stdout and stderr apart, as text."""
    environment = dict(os.environ, NO_COLOR="1")
    environment.update(env or {})
    return subprocess.run([ONETAP, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, timeout=timeout, text=True, env=environment, **kwargs)


SMALL = ["--arch", "resnet8", "--width", "4", "--data", "shapes:train=96,test=40", "--batch-size", "16",
         "--epochs", "3", "--threads", "1", "--device", "cpu"]


@functools.lru_cache(maxsize=None)
def trained(*arguments):
    """A run that `train` makes of these arguments: once for all tests of a program, which change copies of it alone."""
    folder = tempfile.mkdtemp(prefix="onetap-test-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    result = onetap("train", *arguments, "--out", os.path.join(folder, "run"))
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return os.path.join(folder, "run")


def set_metadata(path, key, value):
    """Rewrites the header of a .tap file; its tensors stay as they are."""
    with open(path, "rb") as file:
        content = file.read()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + length])
    header["__metadata__"][key] = value
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + content[8 + length:])


def png(path, colour, size=32, corner=60):
    """A PNG of one colour with a brighter corner, written by hand."""
    rows = b""
    for y in range(size):
        rows += b"\0" + b"".join(bytes(min(255, c + (corner if x < 8 and y < 8 else 0)) for c in colour) for x in range(size))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    return path


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="onetap-test-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def write(self, name, content):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb" if isinstance(content, bytes) else "w") as file:
            file.write(content)
        return path

    def trained(self, *arguments, out="run"):
        """A copy of such a run, to be changed."""
        shutil.rmtree(self.path(out), ignore_errors=True)
        shutil.copytree(trained(*map(str, arguments)), self.path(out), symlinks=True)
        return self.path(out)

    def succeeds(self, *arguments, **kwargs):
        result = onetap(*arguments, **kwargs)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refused(self, code, part, *arguments, **kwargs):
        """Exit code, nothing on stdout, and one line on stderr that says what was expected and what came."""
        result = onetap(*arguments, **kwargs)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        self.assertEqual(result.stdout, "")
        self.assertIn(part, result.stderr)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        return result


def metrics(run):
    """metrics.jsonl without what depends on the clock."""
    with open(os.path.join(run, "metrics.jsonl")) as file:
        lines = [json.loads(line) for line in file]
    for line in lines:
        del line["img_per_s"], line["wall_s"]
        line.pop("data_wait", None)
    return lines


def weights(run):
    """Bytes of the newest checkpoint's tensors, and of the record of the attention."""
    last = os.path.join("checkpoints", "last")
    parts = []
    for name in (os.path.join(last, "model.safetensors"), os.path.join(last, "optimizer.safetensors"),
                 os.path.join(last, "taps.safetensors"), "attention.jsonl"):
        with open(os.path.join(run, name), "rb") as file:
            parts.append(file.read())
    return parts


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"it did not come true within {seconds} s")
        time.sleep(0.02)


def terminal_parts(terminal):
    """What a program shows in its pseudo-terminal, as it comes, until it ends."""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # its end, on Linux
            return
        if not part:
            return
        yield part


def process_state(pid):
    """R running, S sleeping, T stopped, Z ended but not asked for, X gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def gone(pid):
    return process_state(pid) in "ZX"


def main():
    unittest.main(argv=sys.argv[:1] + sys.argv[1:], verbosity=1)
