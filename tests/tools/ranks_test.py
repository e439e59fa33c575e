"""Training as several processes: what they compute, and what becomes of them when one is lost or told to stop."""
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import unittest

from support import ONETAP, CommandTest, main, metrics, needs_training, onetap, wait_until, weights

# Without batch norm the gradients of parts add up to those of the whole.
PLAIN_NET = """onetap-net 1
x = input 3x32x32
conv1 = conv x out=6 kernel=3 pad=1 stride=2 bias=1
relu1 = relu conv1
conv2 = conv relu1 out=8 kernel=3 pad=1 stride=2 method=sal
relu2 = relu conv2
pool = gap relu2
fc = linear pool out=10
output fc
"""
SMALL = ["--arch", "resnet8", "--width", "4", "--threads", "1", "--device", "cpu"]
# Batches of 8 and 7: no number of ranks divides both. The seed is one for which rounding stays small: drawings are flat, and
# for some seeds many equal values lie at a ReLU's edge, so that even one and two threads of LibTorch are percents apart.
TWO_STEPS = ["--data", "shapes:train=15,test=24", "--batch-size", "8", "--epochs", "1", "--seed", "1", "--threads", "1",
             "--device", "cpu"]
LONG = [*SMALL, "--data", "shapes:train=64,test=16", "--batch-size", "16", "--checkpoint-steps", "3"]


def tensors(run, name):
    data = pathlib.Path(run, "checkpoints", "last", name + ".safetensors").read_bytes()
    length, = struct.unpack("<Q", data[:8])
    found = {}
    for key, entry in json.loads(data[8:8 + length]).items():
        if key != "__metadata__" and entry["dtype"] == "F32":
            first, last = (8 + length + offset for offset in entry["data_offsets"])
            found[key] = struct.unpack(f"<{(last - first) // 4}f", data[first:last])
    return found


def distance(a, b):
    """The largest difference of a tensor's values over its largest value, of the worst tensor."""
    return max(max(abs(x - y) for x, y in zip(a[key], b[key])) / (max(map(abs, a[key])) or 1) for key in a)


def state(run):
    return json.loads(pathlib.Path(run, "checkpoints", "last", "state.json").read_text())


def children(pid):
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def rank_of(pid):
    variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next(int(entry[5:]) for entry in variables if entry.startswith(b"RANK="))


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@needs_training
class Ranks(CommandTest):
    def alone(self, name, *flags):
        self.succeeds("train", *flags, "--out", self.path(name))

    def together(self, ranks, name, *flags):
        return self.succeeds("launch", "-n", ranks, "--", "train", *flags, "--out", self.path(name))

    def start(self, ranks, *flags):
        process = subprocess.Popen([ONETAP, "launch", "-n", str(ranks), "--", "train", *flags], text=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def wait_for_checkpoint(self, run):
        wait_until(lambda: os.path.exists(os.path.join(run, "checkpoints", "last", "state.json")), seconds=60)

    def assert_same_training(self, one, other, tolerance):
        for name in ("optimizer", "model"):
            self.assertLess(distance(tensors(self.path(one), name), tensors(self.path(other), name)), tolerance, name)
        for a, b in zip(metrics(self.path(one)), metrics(self.path(other))):
            self.assertAlmostEqual(a["loss"], b["loss"], delta=1e-4)
            self.assertEqual((a["step"], a["acc_soft"], a["acc_hard"]), (b["step"], b["acc_soft"], b["acc_hard"]))

    def test_two_and_three_train_as_one_does(self):
        flags = ["--arch", self.write("plain.net", PLAIN_NET), *TWO_STEPS, "--accumulate", "2", "--ema", "0.5"]
        self.alone("one", *flags)
        for ranks in (2, 3):
            self.together(ranks, f"of{ranks}", *flags)
            self.assert_same_training("one", f"of{ranks}", 1e-5)
        # A group of one is a group, and changes no bit.
        self.succeeds("train", *flags, "--out", self.path("group"), env={"RANK": "0", "WORLD_SIZE": "1",
                                                                         "MASTER_PORT": str(free_port())})
        self.assertEqual(weights(self.path("one")), weights(self.path("group")))

    def test_with_synchronised_norms(self):
        flags = [*SMALL, *TWO_STEPS, "--batch-size", "15", "--sync-norm"]
        self.alone("one", *flags)
        self.together(3, "three", *flags)
        # LibTorch's own batch norm of one process rounds more than ours.
        self.assert_same_training("one", "three", 1e-4)

    def test_steps_of_the_engine_are_the_plain_ones(self):
        flags = [*SMALL, *TWO_STEPS, "--batch-size", "15"]
        self.together(2, "plain", *flags)
        self.together(2, "fused", *flags, "--engine", "fused")
        self.assert_same_training("plain", "fused", 1e-4)
        self.together(2, "captured", *flags, "--engine", "captured")
        self.assert_same_training("plain", "captured", 1e-4)

    def test_all_learn_from_the_teacher_that_rank_0_reads(self):
        plain = ["--arch", self.write("plain.net", PLAIN_NET), *TWO_STEPS]
        self.alone("teacher", *SMALL, *TWO_STEPS, "--seed", "2")
        taught = [*plain, "--teacher", self.path("teacher"), "--teacher-weight", "0.5", "--logit-decay", "0.5"]
        self.alone("one", *taught)
        self.together(2, "of2", *taught)
        self.assert_same_training("one", "of2", 1e-5)
        # Every rank mixes its own images, in plain steps and in those of the engine.
        mixed = [*SMALL, *TWO_STEPS, "--batch-size", "15", "--teacher", self.path("teacher"), "--mixup", "0.5", "--cutmix",
                 "1", "--recalibrate", "15"]
        self.together(2, "plain", *mixed)
        self.together(2, "fused", *mixed, "--engine", "fused")
        self.assert_same_training("plain", "fused", 1e-4)

    def test_captured_steps_have_no_synchronised_norms(self):
        process = self.start(2, *SMALL, *TWO_STEPS, "--engine", "captured", "--sync-norm", "--out", self.path("run"))
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 2, errors)
        self.assertIn("captured steps are not available for this run: batch norm is synchronised (sync_norm)", errors)

    def test_a_killed_rank_ends_all_and_another_number_goes_on(self):
        run = self.path("run")
        process = self.start(3, *LONG, "--epochs", "500", "--out", run)
        self.wait_for_checkpoint(run)
        victim = next(pid for pid in children(process.pid) if rank_of(pid) == 1)
        os.kill(victim, signal.SIGKILL)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn("[launch] rank 1 of 3 was ended by signal 9 (Killed)", errors)
        self.assertIn("[ranks] rank 1 of 3 does not answer", errors)
        self.assertIn("the last good checkpoint is " + run, errors)
        # On with two, until told to stop: all stop at the same step, and its checkpoint is written.
        before = state(run)["step"]
        process = self.start(2, "--out", run, "--resume")
        wait_until(lambda: state(run)["step"] > before, seconds=60)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("--resume' resumes the run", errors)
        self.assertNotIn("[ranks]", errors)
        lines = metrics(run)
        epochs = [line["epoch"] for line in lines if line["split"] == "train"]
        self.assertEqual(epochs, list(range(1, len(epochs) + 1)))
        self.assertTrue(all(line["step"] == 4 * line["epoch"] for line in lines))

    def test_without_a_launcher_the_others_end_by_themselves(self):
        run = self.path("run")
        environment = dict(os.environ, WORLD_SIZE="2", MASTER_PORT=str(free_port()), LOCAL_WORLD_SIZE="2")
        ranks = [subprocess.Popen([ONETAP, "train", *(LONG + ["--epochs", "500"] if rank == 0 else []), "--out", run],
                                  text=True, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                  env=dict(environment, RANK=str(rank))) for rank in range(2)]
        self.wait_for_checkpoint(run)
        ranks[0].kill()
        _, errors = ranks[1].communicate(timeout=30)
        ranks[0].communicate()
        self.assertEqual(ranks[1].returncode, 1)
        self.assertIn("[ranks] rank 0", errors)
        self.assertIn("does not answer", errors)
        self.assertEqual(len(errors.strip().splitlines()), 1, errors)

    def test_what_is_wrong_is_wrong_for_all(self):
        run = self.path("run")
        result = onetap("launch", "-n", 2, "--", "train", *SMALL, "--data", "shapes:train=17,test=8", "--batch-size",
                        "16", "--out", run)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("got a last batch of 1 (--batch-size 16): use --batch-size 17", result.stderr)
        self.assertFalse(os.path.exists(run))
        result = onetap("launch", "-n", 2, "--", "train", *SMALL, *TWO_STEPS, "--lr", "1e5", "--epochs", "20", "--out",
                        run)
        self.assertEqual(result.returncode, 1, result.stderr)
        for rank in ("", r"\[rank 1\] "):
            self.assertRegex(result.stderr, rf"(?m)^{rank}onetap: \[(train|eval)\] the .*loss became .* at step")


if __name__ == "__main__":
    main()
