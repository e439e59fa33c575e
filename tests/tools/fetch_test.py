"""onetap data fetch against a local server: whole, interrupted, resumed, corrupted."""
import hashlib
import http.server
import io
import os
import tarfile
import threading
import unittest

from support import CommandTest, main, onetap


def cifar10_archive():
    """A .tar.gz with files of the right size; zeros, so that it is small."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
            entry = tarfile.TarInfo("cifar-10-batches-bin/" + name)
            entry.size = 10000 * 3073
            archive.addfile(entry, io.BytesIO(bytes(entry.size)))
        names = b"\n".join(b"name%d" % i for i in range(10)) + b"\n"
        entry = tarfile.TarInfo("cifar-10-batches-bin/batches.meta.txt")
        entry.size = len(names)
        archive.addfile(entry, io.BytesIO(names))
    return buffer.getvalue()


ARCHIVE = cifar10_archive()
SHA256 = hashlib.sha256(ARCHIVE).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    """Serves ARCHIVE; `mode` says how badly."""
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.mode = "good"
        self.ranges = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/cifar.tar.gz"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        mode, body = self.server.mode, ARCHIVE
        asked = self.headers.get("Range")
        self.server.ranges.append(asked)
        if mode == "missing":
            return self.send_error(404)
        if mode == "corrupt":
            body = ARCHIVE[:1000] + bytes([ARCHIVE[1000] ^ 1]) + ARCHIVE[1001:]
        start = 0
        if asked and mode != "no-ranges":
            start = int(asked.split("=")[1].rstrip("-"))
            if start >= len(body):
                return self.send_error(416)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            self.send_response(200)
        rest = body[start:]
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if mode in ("breaks", "no-ranges-breaks-once"):
            rest = rest[:len(body) // 3]  # less than promised: the connection breaks
        if mode == "no-ranges-breaks-once":
            self.server.mode = "no-ranges"
        try:
            self.wfile.write(rest)
        except OSError:
            pass
        self.close_connection = True


class Fetch(CommandTest):
    def setUp(self):
        super().setUp()
        self.server = Server()
        self.addCleanup(self.server.shutdown)

    def fetch(self, *flags):
        return onetap("data", "fetch", "cifar10", "--to", self.path("data"), "--url", self.server.url, "--sha256", SHA256,
                      *flags)

    def listing(self):
        return sorted(name for name in os.listdir(self.path("data")) if name != ".lock")

    def assert_fetched(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.strip(), self.path("data", "cifar-10-batches-bin"))
        self.assertEqual(self.listing(), ["cifar-10-batches-bin"])
        self.assertIn("50000", self.succeeds("data", "check", "cifar10:" + self.path("data")).stdout)

    def test_whole(self):
        self.assert_fetched(self.fetch())
        self.assertIn("complete already", self.fetch().stderr)
        self.assertEqual(len(self.server.ranges), 1)

    def test_a_broken_connection_goes_on_where_it_broke(self):
        self.server.mode = "breaks"
        self.assert_fetched(self.fetch())
        self.assertEqual(self.server.ranges[0], None)
        self.assertEqual(self.server.ranges[1], f"bytes={len(ARCHIVE) // 3}-")

    def test_what_came_is_kept_for_the_next_command(self):
        self.server.mode = "breaks"
        result = self.fetch("--attempts", 1)
        self.assertEqual(result.returncode, 1)
        self.assertIn("the same command resumes", result.stderr)
        self.assertEqual(self.listing(), ["cifar-10-batches-bin.tar.gz.part"])
        self.server.mode = "good"
        self.assert_fetched(self.fetch())
        self.assertEqual(self.server.ranges[-1], f"bytes={len(ARCHIVE) // 3}-")

    def test_a_server_without_ranges_starts_again(self):
        self.server.mode = "no-ranges-breaks-once"
        self.assert_fetched(self.fetch())

    def test_corrupted_is_refused_and_removed(self):
        self.server.mode = "corrupt"
        result = self.fetch()
        self.assertEqual(result.returncode, 4)
        self.assertIn("expected SHA-256 " + SHA256, result.stderr)
        self.assertEqual(self.listing(), [])
        self.server.mode = "good"
        self.assert_fetched(self.fetch())

    def test_a_damaged_leftover_is_thrown_away(self):
        self.write("data/cifar-10-batches-bin.tar.gz.part", b"x" * 5000)
        self.assert_fetched(self.fetch())
        self.write("more/cifar-10-batches-bin.tar.gz.part", b"x" * (len(ARCHIVE) + 5))
        result = onetap("data", "fetch", "cifar10", "--to", self.path("more"), "--url", self.server.url, "--sha256", SHA256)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_what_is_not_there(self):
        self.server.mode = "missing"
        result = self.fetch()
        self.assertEqual(result.returncode, 1)
        self.assertIn("answers 404", result.stderr)
        self.assertEqual(len(self.server.ranges), 1, "a 404 is not worth a second try")
        self.refused(2, "did you mean 'cifar10'", "data", "fetch", "cifar11", "--to", self.path("x"))
        gone = onetap("data", "fetch", "cifar10", "--to", self.path("y"), "--url", "http://127.0.0.1:9/x", "--attempts", 2)
        self.assertEqual(gone.returncode, 1)
        self.assertIn("gave up after 2 attempts", gone.stderr)

    def test_an_archive_without_the_files(self):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            entry = tarfile.TarInfo("../../outside")
            archive.addfile(entry, io.BytesIO(b""))
        global ARCHIVE
        whole, ARCHIVE = ARCHIVE, buffer.getvalue()
        try:
            digest = hashlib.sha256(ARCHIVE).hexdigest()
            result = onetap("data", "fetch", "cifar10", "--to", self.path("data"), "--url", self.server.url, "--sha256",
                            digest)
        finally:
            ARCHIVE = whole
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("expected data_batch_1.bin in the archive", result.stderr)
        self.assertNotIn("cifar-10-batches-bin", self.listing())
        self.assertFalse(os.path.exists(self.path("outside")))


if __name__ == "__main__":
    main()
