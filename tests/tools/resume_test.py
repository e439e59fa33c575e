"""Never lose work: kills, signals, full disks and rivals for one directory."""
import fcntl
import os
import pty
import random
import resource
import signal
import subprocess
import termios
import time
import unittest

from support import ONETAP, CommandTest, main, metrics, needs_training, onetap, trained, weights

RECIPE = ["--arch", "resnet8", "--width", "4", "--data", "shapes:train=320,test=80", "--batch-size", "16", "--epochs",
          "4", "--threads", "1", "--checkpoint-steps", "3", "--restart-momentum"]
KILLS = int(os.environ.get("ONETAP_KILLS", "25"))


def start(*arguments, **kwargs):
    return subprocess.Popen([ONETAP, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **kwargs)


def wait_for(process, beginning):
    """Reads stderr until a line begins so."""
    for line in process.stderr:
        if line.startswith(beginning):
            return
    raise AssertionError(f"the run ended before '{beginning}'")


@needs_training
class Resume(CommandTest):
    def assert_same_as_whole(self, run):
        self.assertEqual(metrics(trained(*RECIPE)), metrics(run))
        self.assertEqual(weights(trained(*RECIPE)), weights(run))

    def test_kills_at_random_moments(self):
        trained(*RECIPE)
        started = time.monotonic()
        self.succeeds("train", *RECIPE, "--out", self.path("timed"))
        whole = time.monotonic() - started
        draw = random.Random(os.environ.get("ONETAP_KILL_SEED", "7"))
        run, kills, sittings = self.path("killed"), 0, 0
        while True:
            process = start("train", *RECIPE, "--out", run, "--resume")
            sittings += 1
            # Anywhere between the first instructions and a good part of the run.
            try:
                process.communicate(timeout=draw.uniform(0, whole * 0.6) if kills < KILLS else 600)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                kills += 1
                continue
            self.assertEqual(process.returncode, 0)
            if kills >= KILLS:
                break
            # It finished before enough kills: begin again, so that every part of a run is hit.
            self.assert_same_as_whole(run)
            subprocess.run(["rm", "-rf", run], check=True)
        self.assert_same_as_whole(run)
        print(f"\n{kills} kills in {sittings} sittings; the resumed run equals the uninterrupted one bit for bit")

    def test_signals_write_a_checkpoint_and_say_so(self):
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)):
            run = self.path(f"signal{code}")
            process = start("train", *RECIPE, "--checkpoint-steps", "0", "--out", run)
            wait_for(process, "epoch 2/")
            process.send_signal(number)
            _, rest = process.communicate(timeout=60)
            self.assertEqual(process.returncode, code)
            self.assertIn("--resume", rest)
            self.succeeds("train", "--out", run, "--resume")
            self.assert_same_as_whole(run)

    def test_the_end_of_the_terminal_writes_a_checkpoint(self):
        """The shell and the kernel tell of it, and nothing can be written to it any more."""
        run = self.path("closed")
        leader, follower = pty.openpty()
        process = subprocess.Popen([ONETAP, "train", *RECIPE, "--checkpoint-steps", "0", "--out", run], stdin=follower,
                                   stdout=follower, stderr=follower, start_new_session=True,
                                   preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(follower)
        said = b""
        while b"epoch 2/" not in said:
            said += os.read(leader, 4096)
        process.send_signal(signal.SIGHUP)
        os.close(leader)
        self.assertEqual(process.wait(60), 129)
        self.succeeds("train", "--out", run, "--resume")
        self.assert_same_as_whole(run)

    def test_standard_error_on_a_full_disk_changes_nothing(self):
        run = self.path("unheard")
        with open("/dev/full", "w") as full:
            for arguments, code in (([*RECIPE, "--out", run], 0), (["--out", run], 2)):  # the second time it is there already
                done = subprocess.run([ONETAP, "train", *arguments], stdout=subprocess.DEVNULL, stderr=full)
                self.assertEqual(done.returncode, code)
        self.assert_same_as_whole(run)

    def test_full_disk(self):
        run = self.path("full")
        # Checkpoints need more than a file may grow to: the third is refused as on a full disk.
        limit = os.path.getsize(os.path.join(trained(*RECIPE), "checkpoints", "last", "model.safetensors")) - 1000
        failed = subprocess.run([ONETAP, "train", *RECIPE, "--out", run], stderr=subprocess.PIPE, text=True,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertEqual(failed.returncode, 1, failed.stderr)
        self.assertIn("cannot write", failed.stderr)
        self.assertIn("there is no checkpoint yet", failed.stderr)
        left = [name for name in os.listdir(os.path.join(run, "checkpoints")) if name.startswith("step-")]
        self.assertEqual(left, [], "no checkpoint may look complete")
        self.succeeds("train", "--out", run, "--resume")
        self.assert_same_as_whole(run)

    def test_two_runs_never_share_a_directory(self):
        run = self.path("shared")
        first = start("train", *RECIPE, "--epochs", "60", "--out", run)
        self.addCleanup(lambda: (first.kill(), first.communicate()))
        wait_for(first, "epoch 1/")
        for flags in (["--resume"], []):
            second = onetap("train", *RECIPE, "--epochs", "60", "--out", run, *flags)
            self.assertIn(second.returncode, (1, 2))
            self.assertRegex(second.stderr, "in use by process|already holds a run")

    def test_a_resumed_run_keeps_its_recipe(self):
        run = self.path("run")
        self.succeeds("train", *RECIPE, "--epochs", "1", "--out", run)
        self.refused(2, "started with epochs = 1, got 2", "train", "--out", run, "--resume", "--epochs", "2")
        self.refused(2, "--resume resumes it", "train", *RECIPE, "--out", run)
        # Finished already: nothing to do, the same result, also with what may change.
        before = metrics(run)
        self.succeeds("train", "--out", run, "--resume", "--workers", "2", "--keep-checkpoints", "5")
        self.assertEqual(metrics(run), before)
        # A copy may have lost its links.
        last = os.path.join(run, "checkpoints", "last")
        os.remove(last)
        self.succeeds("train", "--out", run, "--resume")
        self.assertTrue(os.path.isdir(last))
        self.assertEqual(metrics(run), before)

    def test_resume_without_a_run_starts_one(self):
        self.succeeds("train", *RECIPE, "--epochs", "1", "--out", self.path("new"), "--resume")


if __name__ == "__main__":
    main()
