"""onetap launch: what the processes are told, what comes through, and that none is left behind."""
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import time
import unittest

from support import ONETAP, CommandTest, gone, main, onetap, process_state, terminal_parts, wait_until

HEAD = f"""#!{sys.executable}
import os, signal, sys, time
rank = int(os.environ["RANK"])
def say(text):
    print(text, file=sys.stderr, flush=True)
def ready():
    with open(sys.argv[1] + str(rank), "w") as file:
        file.write(str(os.getpid()))
"""
# Notes each signal, and ends as a training does: with the first signal's code, unless a second one comes.
STOPPABLE = """
got = []
def on_signal(number, frame):
    got.append(number)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, on_signal)
ready()
while not got:
    time.sleep(0.02)
time.sleep(0.3)
say(f"signals {got}")
sys.exit(128 + got[0])
"""
DEAF = """
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
ready()
time.sleep(60)
"""


class Launch(CommandTest):
    def program(self, body):
        path = self.write("program", HEAD + body)
        os.chmod(path, 0o755)
        return path

    def launch(self, ranks, body, *flags):
        return onetap("launch", "-n", ranks, *flags, "--program", self.program(body), "--", self.path("pid"))

    def start(self, ranks, body, *flags):
        """A launch in the background, once all its ranks are ready; returns it and their processes."""
        process = subprocess.Popen([ONETAP, "launch", "-n", str(ranks), *flags, "--program", self.program(body), "--",
                                    self.path("pid")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return process, self.pids(ranks)

    def pids(self, ranks):
        files = [self.path(f"pid{rank}") for rank in range(ranks)]
        wait_until(lambda: all(os.path.exists(file) and os.path.getsize(file) > 0 for file in files))
        return [int(pathlib.Path(file).read_text()) for file in files]

    def test_every_rank_knows_its_place(self):
        self.launch(3, "import json\njson.dump(dict(os.environ), open(sys.argv[1] + str(rank), 'w'))")
        ports = set()
        for rank in range(3):
            environment = json.loads(pathlib.Path(self.path(f"pid{rank}")).read_text())
            self.assertEqual([environment[name] for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
                                                             "MASTER_ADDR")],
                             [str(rank), str(rank), "3", "3", "127.0.0.1"])
            self.assertIn("PATH", environment)
            ports.add(int(environment["MASTER_PORT"]))
        self.assertEqual(len(ports), 1)
        self.assertTrue(1024 <= ports.pop() <= 65535)

    def test_a_given_port_and_an_inherited_environment(self):
        program = self.program("print(os.environ['MASTER_PORT'], os.environ['WORLD_SIZE'], os.environ['OTHER'])")
        result = self.succeeds("launch", "-n", 1, "--master-port", 29511, "--program", program, "--", "x",
                               env={"WORLD_SIZE": "77", "OTHER": "kept"})
        self.assertEqual(result.stdout, "29511 1 kept\n")

    def test_rank_0_passes_untouched_and_the_others_with_their_rank(self):
        body = "print('data of', rank, flush=True)\nsay(f'one from {rank}\\ntwo from {rank}')\nsys.stderr.write('end')"
        result = self.launch(2, body)
        self.assertEqual(result.stdout, "data of 0\n")
        for line in ("one from 0\n", "two from 0\n", "[rank 1] one from 1\n", "[rank 1] two from 1\n", "[rank 1] end\n"):
            self.assertIn(line, result.stderr)
        self.assertNotIn("data of 1", result.stderr)
        result = self.launch(2, body, "-v")
        self.assertEqual(result.stdout, "data of 0\n")
        self.assertIn("[rank 1] data of 1\n", result.stderr)

    def test_the_first_failure_ends_the_others_and_gives_its_code(self):
        result = self.launch(3, "if rank == 1:\n    time.sleep(0.2)\n    sys.exit(4)\n" + STOPPABLE)
        self.assertEqual(result.returncode, 4)
        self.assertIn("[launch] rank 1 of 3 ended with exit code 4", result.stderr.splitlines()[-1])
        self.assertIn(f"[rank 2] signals [{int(signal.SIGTERM)}]", result.stderr)

    def test_a_rank_that_a_signal_ended_gives_code_1(self):
        process, pids = self.start(2, STOPPABLE)
        os.kill(pids[1], signal.SIGKILL)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 1)
        self.assertIn("[launch] rank 1 of 2 was ended by signal 9 (Killed)", errors)

    def test_ranks_that_do_not_end_are_killed_after_the_grace(self):
        body = "if rank == 0:\n    time.sleep(0.5)\n    sys.exit(7)\n" + DEAF
        result = self.launch(2, body, "--grace", 0.3)
        self.assertEqual(result.returncode, 7)
        self.assertIn("rank 0 of 2 ended with exit code 7", result.stderr)

    def test_a_rank_that_is_done_leaves_the_others_alone(self):
        self.assertEqual(self.launch(2, "time.sleep(0.4 * rank)\nready()").returncode, 0)
        self.assertTrue(os.path.exists(self.path("pid1")))

    def test_signals_are_passed_on_once_and_waited_for(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            process, pids = self.start(2, STOPPABLE)
            process.send_signal(number)
            _, errors = process.communicate(timeout=30)
            self.assertEqual(process.returncode, code, errors)
            self.assertIn(f"signals [{int(number)}]\n", errors)
            self.assertIn(f"[rank 1] signals [{int(number)}]\n", errors)
            self.assertNotIn("[launch]", errors)
            for rank in range(2):
                os.remove(self.path(f"pid{rank}"))

    def test_a_second_signal_kills(self):
        process, pids = self.start(2, DEAF)
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        self.assertEqual((process.returncode, errors), (130, ""))
        self.assertTrue(all(map(gone, pids)))

    def test_no_rank_survives_the_launcher(self):
        process, pids = self.start(3, DEAF)
        process.kill()
        process.wait()
        wait_until(lambda: all(map(gone, pids)), seconds=10)
        process.communicate()

    def test_stopping_and_going_on_takes_the_ranks_along(self):
        process, pids = self.start(2, STOPPABLE)
        all_three = [process.pid, *pids]
        process.send_signal(signal.SIGTSTP)
        wait_until(lambda: all(process_state(pid) == "T" for pid in all_three))
        process.send_signal(signal.SIGCONT)
        wait_until(lambda: all(process_state(pid) in "RS" for pid in all_three))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 143)

    def test_in_a_terminal(self):
        """Rank 0 has the terminal, and Ctrl-C reaches every rank exactly once."""
        program = self.program("say(f'terminal {sys.stderr.isatty()}')\n" + STOPPABLE)
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(ONETAP, [ONETAP, "launch", "-n", "2", "--program", program, "--", self.path("pid")],
                      dict(os.environ, TERM="xterm"))
        # A rank in the terminal's group would get two signals, and a training stop at once at the second.
        for rank in self.pids(2):
            self.assertEqual(os.getpgid(rank), rank)
        os.write(terminal, b"\x03")
        shown = b"".join(terminal_parts(terminal))
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
        self.assertEqual(os.WEXITSTATUS(status), 130)
        self.assertIn(b"terminal True", shown)
        self.assertIn(b"\r\x1b[K[rank 1] terminal False", shown)
        self.assertIn(b"[rank 1] signals [2]", shown)
        self.assertEqual(shown.count(b"signals [2]"), 2)

    def test_any_verb_of_this_program(self):
        one = self.succeeds("nets", "resnet8", "--json").stdout
        self.assertEqual(self.succeeds("launch", "-n", 2, "--", "nets", "resnet8", "--json").stdout, one)
        result = onetap("launch", "-n", 2, "--", "nets", "resnett20")
        self.assertEqual(result.returncode, 2)
        self.assertIn("did you mean 'resnet20'", result.stderr)

    def test_refusals(self):
        self.refused(2, "COMMAND is required", "launch", "-n", 2)
        self.refused(2, "--processes is required", "launch", "--", "nets")
        self.refused(2, "--processes", "launch", "-n", 0, "--", "nets")
        self.refused(2, "--master-port", "launch", "-n", 1, "--master-port", 70000, "--", "nets")
        self.refused(2, "cannot start", "launch", "-n", 2, "--program", self.path("missing"), "--", "train")


if __name__ == "__main__":
    main()
