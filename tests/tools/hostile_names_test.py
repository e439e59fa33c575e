"""Names from files and folders reach the terminal as text: nothing in them is obeyed, and one-line errors stay one line."""
import json
import os
import pty
import struct
import unittest

from fake_runs import make_run
from support import ONETAP, CommandTest, main, onetap, terminal_parts

# A line end, a new title for the window, a colour, a turn of the writing direction, and a byte that is no UTF-8.
HOSTILE = os.fsdecode(b"x\nonetap: all is well\x1b]0;owned\x07\x1b[31m\xe2\x80\xae\xff")
SHOWN = r"x\nonetap: all is well\x1b]0;owned\x07\x1b[31m\u202e\xff"
CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz", "corpus")
IMAGE = os.path.join(CORPUS, "image", "rgb.png")


def with_classes(source, path, classes):
    """A .tap file like `source`, with other class names."""
    with open(source, "rb") as file:
        data = file.read()
    length, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    header["__metadata__"]["classes"] = json.dumps(classes)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data[8 + length:])


class HostileNames(CommandTest):
    def output(self, code, *arguments, lines=None, **kwargs):
        """stdout and stderr as bytes, after a look at every one of them."""
        result = onetap(*arguments, errors="surrogateescape", **kwargs)
        out, err = os.fsencode(result.stdout), os.fsencode(result.stderr)
        self.assertIn(result.returncode, code if isinstance(code, tuple) else (code,), (out, err))
        for byte in set(out + err):
            self.assertTrue(byte >= 0x20 or byte == 0x0a, (byte, out, err))
        self.assertNotIn("\u202e", (out + err).decode())  # which is UTF-8, or this throws
        if lines is not None:
            self.assertEqual((out + err).count(b"\n"), lines, (out, err))
        return out.decode(), err.decode()

    def copy(self, source, name):
        with open(source, "rb") as file:
            return self.write(name, file.read())

    def tap(self, name="net.tap"):
        self.succeeds("nets", "resnet8", "--width", 4, "--method", "sal", "--tap", self.path(name))
        return self.path(name)

    def test_errors_about_files(self):
        missing = self.path(HOSTILE)
        for arguments in (["count", missing], ["nets", missing], ["nets", missing + ".net"], ["run", missing, IMAGE],
                          ["heatmap", missing], ["report", missing], ["export", missing, "--to", "onnx", "-o", "x"],
                          ["frontier", missing],
                          ["data", "check", "folder:" + missing], ["data", "check", missing],
                          ["bench", missing], ["bench", "data", "--data", "folder:" + missing],
                          ["eval", self.copy(os.path.join(CORPUS, "tap", "half"), "h.tap"), "--data", missing]):
            out, err = self.output((1, 2, 4), *arguments, lines=1)
            self.assertEqual(out, "")
            self.assertIn(SHOWN, err, arguments)

    def test_usage_errors(self):
        self.assertIn(r"\x1b", self.output(2, "nets", "--" + "\x1b[31m\n", lines=1)[1])
        self.assertIn(SHOWN, self.output(2, "nets", "resnet20", HOSTILE, lines=1)[1])

    def test_names_of_classes_and_images(self):
        with_classes(self.tap(), self.path("evil.tap"), [f"class {i} x\n\x1b]0;owned\x07\u202e" for i in range(10)])
        image = self.copy(IMAGE, HOSTILE + ".png")
        out, _ = self.output(0, "run", self.path("evil.tap"), image, "--top", 2, lines=1)
        self.assertIn(SHOWN + ".png:  class ", out)
        self.assertEqual(out.count(r" x\n\x1b]0;owned\x07\u202e "), 2)
        for line in self.succeeds("run", self.path("evil.tap"), IMAGE, IMAGE, "--json").stdout.splitlines():
            self.assertIn("\n\x1b]0;owned\x07\u202e", json.loads(line)["top"][0]["class"], "JSON keeps what names are")

    def test_names_of_networks_in_tables(self):
        tap = self.tap(HOSTILE + ".tap")
        out, _ = self.output(0, "bench", tap, "--seconds", 0.01, "--layers")
        self.assertEqual(out.count(SHOWN + ".tap"), 3)
        self.output(0, "count", tap)
        out, _ = self.output(0, "heatmap", tap, "-o", self.path(HOSTILE + ".svg"), lines=1)
        self.assertTrue(out.endswith(SHOWN + ".svg\n"), out)
        out, _ = self.output(0, "export", tap, "--to", "onnx", "-o", self.path(HOSTILE + ".onnx"), lines=1)
        self.assertTrue(out.endswith(SHOWN + ".onnx\n"), out)

    def test_folders_of_images(self):
        for split in ("train", "val"):
            for name in ("a", HOSTILE):
                self.copy(IMAGE, os.path.join("f", split, name, "1.png"))
        self.write(os.path.join("f", "train", HOSTILE, "2.png"), b"no image")
        os.mkfifo(self.path("f", "train", "a", HOSTILE + ".png"))
        _, err = self.output(4, "data", "check", "folder:" + self.path("f"))
        self.assertEqual(err.count(SHOWN), 2, err)
        self.assertEqual(err.count("\n"), 3, err)

    def test_reports(self):
        run = make_run(self.path(HOSTILE), epochs=1)
        out, _ = self.output(0, "report", run, lines=1)
        self.assertTrue(out.endswith(SHOWN + "/report.html\n"), out)
        self.write(os.path.join(HOSTILE, "metrics.jsonl"), "\x1b[31m\n")
        _, err = self.output(0, "report", run, lines=2)
        self.assertIn("warning: [metrics]", err)

    def test_lines_of_other_processes(self):
        program = self.write("say.sh", "#!/bin/sh\nprintf 'rank \\033]0;owned\\007\\033[1;31mred\\033[0m\\n' >&2\n")
        os.chmod(program, 0o755)
        result = onetap("launch", "-n", 2, "--program", program, "--", "x")
        self.assertIn("[rank 1] rank \\x1b]0;owned\\x07red\n", result.stderr)

    def test_in_a_terminal(self):
        """Colours and the progress line are our own; what names bring along is not."""
        for split in ("train", "val"):
            for name in ("a", "b"):
                self.copy(IMAGE, os.path.join("f", split, name, "1.png"))
        self.write(os.path.join("f", "train", "a", HOSTILE + ".png"), b"no image")
        pid, terminal = pty.fork()
        if pid == 0:
            environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
            os.execve(ONETAP, [ONETAP, "data", "check", "folder:" + self.path("f")], dict(environment, TERM="xterm"))
        shown = b"".join(terminal_parts(terminal))
        os.waitpid(pid, 0)
        os.close(terminal)
        self.assertIn(b"\x1b[31monetap: \x1b[0m", shown)
        self.assertIn(SHOWN.encode() + b".png", shown)
        for part in (b"\x1b]0", b"\x07", b"\nonetap: all is well", b"\xe2\x80\xae", b"\xff"):
            self.assertNotIn(part, shown)


if __name__ == "__main__":
    main()
