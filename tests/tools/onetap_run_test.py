"""onetap-run: the verb 'run' as a small program of its own. ONETAP is that program; WHOLE, where set, the whole command.
With ONETAP_STATIC=ON it must also be one static file below 2.5 MB."""
import os
import re
import resource
import signal
import struct
import subprocess
import unittest

from support import ONETAP, CommandTest, main

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz", "corpus")
MODEL = os.path.join(CORPUS, "tap", "all-ops")
IS_STATIC = os.environ.get("ONETAP_STATIC") == "ON"
# A static build reads no WebP.
IMAGES = sorted(os.path.join(CORPUS, "image", name) for name in os.listdir(os.path.join(CORPUS, "image"))
                if not (IS_STATIC and name.endswith(".webp")))
WHOLE = os.environ.get("WHOLE")
PT_INTERP = 3


def program_header_types(path):
    """Of a 64-bit little-endian ELF file."""
    with open(path, "rb") as file:
        data = file.read()
    start, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    return [struct.unpack_from("<I", data, start + i * size)[0] for i in range(count)]


class OnetapRun(CommandTest):
    def test_every_kind_of_image(self):
        lines = self.succeeds(MODEL, *IMAGES, "--top", 2).stdout.splitlines()
        self.assertEqual(len(lines), len(IMAGES))
        for line, image in zip(lines, IMAGES):
            self.assertTrue(line.startswith(image + ":"), line)
            found = re.findall(r"  ([a-z]+) (\d+\.\d\d) %", line)
            self.assertEqual(len(found), 2, line)
            self.assertGreaterEqual(float(found[0][1]), float(found[1][1]))

    @unittest.skipUnless(WHOLE, "the whole command was not built")
    def test_says_what_the_whole_command_says(self):
        for more in ([], ["--top", "3", "--threads", "2"], ["--target", "plain"]):
            whole = subprocess.run([WHOLE, "run", MODEL, *IMAGES, *more], stdout=subprocess.PIPE, text=True, check=True)
            self.assertEqual(self.succeeds(MODEL, *IMAGES, *more).stdout, whole.stdout)

    def test_standard_input(self):
        with open(IMAGES[-1], "rb") as image:
            result = subprocess.run([ONETAP, MODEL, "-"], stdin=image, stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(result.stdout[1:], self.succeeds(MODEL, IMAGES[-1]).stdout[len(IMAGES[-1]):])
        self.refused(4, "standard input", MODEL, "-")

    def test_one_bad_image_does_not_stop_the_others(self):
        bad = self.write("bad.png", b"\x89PNG\r\n\x1a\nrubbish")
        result = subprocess.run([ONETAP, MODEL, bad, IMAGES[0], self.path("missing.png")], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 4)
        self.assertEqual(len(result.stdout.splitlines()), 1)
        self.assertIn("bad.png", result.stderr)
        self.assertIn("missing.png", result.stderr)

    def test_what_is_wrong(self):
        self.refused(2, "--help")
        self.refused(2, "no image", MODEL)
        self.refused(2, "'--bogus'", MODEL, IMAGES[0], "--bogus")
        self.refused(2, "--top", MODEL, IMAGES[0], "--top", 0)
        self.refused(2, "'many'", MODEL, IMAGES[0], "--threads", "many")
        self.refused(2, "expected a value", MODEL, IMAGES[0], "--threads")
        self.refused(2, "'abacus'", MODEL, IMAGES[0], "--target", "abacus")
        self.refused(2, "runs in 10.00 KiB of memory", MODEL, IMAGES[0], "--memory", "10K")
        self.refused(2, "runs in 10.00 KiB of memory", MODEL, IMAGES[0], env={"ONETAP_MEMORY": "10K"})
        self.refused(2, "for --memory, got '10 K'", MODEL, IMAGES[0], "--memory", "10 K")
        self.refused(4, "missing.tap", self.path("missing.tap"), IMAGES[0])
        self.refused(4, IMAGES[0], IMAGES[0], IMAGES[0])

    def test_help_version_and_a_full_disk(self):
        help_text = self.succeeds("--help").stdout
        self.assertIn("usage", help_text)
        self.assertIn("neondot", help_text)
        self.assertIn("avx512vnni", help_text)
        self.assertRegex(self.succeeds("--version").stdout, r"^onetap-run \d+\.\d+\.\d+\n$")
        with open("/dev/full", "wb") as full:
            result = subprocess.run([ONETAP, MODEL, IMAGES[0]], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("standard output", result.stderr)

    def test_a_limit_on_the_size_of_files(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it, and children would inherit that
        with open(self.path("out"), "wb") as out:
            result = subprocess.run([ONETAP, MODEL, *IMAGES * 4], stdout=out, stderr=subprocess.PIPE, text=True,
                                    preexec_fn=limit)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stderr, "onetap-run: [run] cannot write to standard output: File too large\n")

    def test_names_are_text(self):
        name = self.path("a\n\x1b]0;owned\x07.png")
        os.symlink(os.path.abspath(IMAGES[0]), name)
        shown = self.path(r"a\n\x1b]0;owned\x07.png")
        self.assertTrue(self.succeeds(MODEL, name).stdout.startswith(shown + ": "))
        self.refused(4, shown + "x", MODEL, name + "x")
        os.mkfifo(self.path("fifo.png"))
        self.refused(4, "got a FIFO or pipe", MODEL, self.path("fifo.png"), timeout=60)

    @unittest.skipUnless(IS_STATIC, "not a static build")
    def test_is_static_and_small(self):
        self.assertNotIn(PT_INTERP, program_header_types(ONETAP))
        stripped = self.path("stripped")
        subprocess.run([os.environ.get("STRIP", "strip"), "-o", stripped, ONETAP], check=True)
        size = os.path.getsize(stripped)
        print("onetap-run:", size, "bytes stripped")
        self.assertLess(size, 2_500_000)


if __name__ == "__main__":
    main()
