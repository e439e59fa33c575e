"""Runs that diverged and files that were damaged: one clear line, and every verb knows what it used."""
import json
import os
import re
import shutil
import subprocess
import unittest

from support import SMALL, CommandTest, main, metrics, needs_training, onetap, weights

# One step an epoch: weights become bad in the last step of an epoch, where no later loss of the epoch shows it.
DIVERGING = [*SMALL, "--batch-size", "96", "--epochs", "8", "--lr", "1e6"]


def without_checksums(state):
    """The state as versions before wrote it."""
    with open(state) as file:
        fields = json.load(file)
    fields.pop("files")
    fields.pop("crc32c")
    with open(state, "w") as file:
        json.dump(fields, file, indent=2)


def contents_below(folder):
    contents = {}
    for place, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                contents[os.path.join(place, name)] = file.read()
    return contents


@needs_training
class Damage(CommandTest):
    def one_line(self, code, pattern, *arguments):
        """Exit code, and a last line of stderr that fits; no traces of a library."""
        result = onetap(*arguments)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        self.assertRegex(result.stderr.strip().splitlines()[-1], pattern)
        self.assertNotIn("frame #", result.stderr)
        self.assertEqual(result.stdout, "")
        return result

    def small_run(self, name="run"):
        if not os.path.exists(self.path("good")):
            self.trained(*SMALL, out="good")
        return self.trained(*SMALL, out=name)

    def flip(self, *parts):
        with open(self.path(*parts), "r+b") as file:
            file.seek(-2001, os.SEEK_END)
            byte = file.read(1)[0]
            file.seek(-2001, os.SEEK_END)
            file.write(bytes([byte ^ 0x40]))

    def replace(self, path, old, new, count=1):
        with open(path) as file:
            text = file.read()
        self.assertIn(old, text)
        with open(path, "w") as file:
            file.write(text.replace(old, new, count))

    def test_a_run_that_diverges(self):
        good = self.small_run("other")
        for method in ("sal", "conv"):
            for flags in ([], ["--checkpoint-steps", "1", "--batch-size", "16"]):
                with self.subTest(method=method, flags=flags):
                    run = self.path(f"{method}{len(flags)}")
                    why = r"(loss|values of the network) became (nan|inf).* at step \d+ \(epoch \d\); (the last good checkpoint is /|there is no checkpoint yet)"
                    first = self.one_line(1, why, "train", *DIVERGING, *flags, "--method", method, "--out", run)
                    with open(os.path.join(run, "metrics.jsonl")) as file:
                        self.assertNotIn('"loss":null', file.read())
                    again = self.one_line(1, why, "train", "--out", run, "--resume")
                    self.assertEqual(first.stderr.splitlines()[-1], again.stderr.splitlines()[-1])
                    self.succeeds("report", run, good, "-o", self.path("page.html"))
                    for verb in ("eval", "freeze", "sensitivity") if method == "sal" else ("eval",):
                        result = onetap(verb, run)
                        self.assertNotRegex(result.stdout, r"\bnan\b")
                        if result.returncode != 0:
                            self.assertIn(result.returncode, (1, 3, 4))
                            self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)

    def test_runs_that_older_versions_let_diverge(self):
        run = self.small_run()
        self.replace(os.path.join(run, "metrics.jsonl"), '"loss":', '"loss":null,"lost":', 3)
        last = os.path.join(run, "checkpoints", "last")
        for name in ("state.json", "../step-000000012/state.json"):
            state = os.path.join(last, name)
            without_checksums(state)
            # Nulls are of another length than the losses were.
            with open(state) as file:
                fields = json.load(file)
            fields["metrics_bytes"] = os.path.getsize(os.path.join(run, "metrics.jsonl"))
            with open(state, "w") as file:
                json.dump(fields, file)
        self.succeeds("report", run, "-o", self.path("page.html"))
        self.assertIn("soft", self.succeeds("train", "--out", run, "--resume").stdout)

    def test_a_flipped_bit_sends_every_verb_one_checkpoint_back(self):
        run = self.small_run()
        self.flip("run", "checkpoints", "step-000000018", "model.safetensors")
        # Rows of the table as the checkpoint before has them.
        before = self.succeeds("eval", self.path("good"), "--checkpoint", "12", "--json").stdout
        for arguments in (["eval", run, "--json"], ["sensitivity", run], ["freeze", run],
                          ["export", run, "--to", "safetensors", "-o", self.path("w.safetensors")]):
            result = self.succeeds(*arguments)
            self.assertIn("skipping a damaged checkpoint: [checkpoint] expected CRC-32C", result.stderr)
            self.assertIn("step-000000012", result.stderr)
            if arguments[0] == "eval":
                self.assertEqual(result.stdout.replace(run, self.path("good")), before)
        self.refused(4, "expected CRC-32C", "eval", run, "--checkpoint", "18")
        result = self.succeeds("train", "--out", run, "--resume")
        self.assertIn("resuming after step 12 of 18", result.stderr)
        self.assertEqual(metrics(run), metrics(self.path("good")))
        self.assertEqual(weights(run), weights(self.path("good")))

    def test_missing_files_and_damaged_states_are_said(self):
        for damage in (lambda at: os.remove(os.path.join(at, "optimizer.safetensors")),
                       lambda at: self.replace(os.path.join(at, "state.json"), '"right": ', '"right": 1')):
            run = self.small_run()
            damage(os.path.join(run, "checkpoints", "step-000000018"))
            for verb in ("eval", "freeze"):
                result = self.succeeds(verb, run)
                self.assertIn("skipping a damaged checkpoint", result.stderr)
                self.assertIn("using " + os.path.join(run, "checkpoints", "step-000000012"), result.stderr)

    def test_damaged_journals_are_mended(self):
        for name in ("attention.jsonl", "metrics.jsonl"):
            run = self.small_run()
            self.replace(os.path.join(run, name), '"step"', '"stop"')
            result = self.succeeds("train", "--out", run, "--resume")
            self.assertIn(f"{name} is damaged (line 1)", result.stderr)
            self.assertTrue(os.path.exists(os.path.join(run, name + ".damaged")))
            self.succeeds("report", run)
            again = self.succeeds("train", "--out", run, "--resume")
            self.assertFalse(os.path.exists(os.path.join(run, name + ".damaged-2")), again.stderr)

    def test_a_config_that_is_not_whole(self):
        run = self.small_run()
        with open(self.path("good", "config.toml"), "rb") as file:
            text = file.read()
        os.remove(os.path.join(run, "SHA256SUMS"))  # as in a run of an older version
        for size in (0, 500):
            with open(os.path.join(run, "config.toml"), "wb") as file:
                file.write(text[:size])
            for arguments in (["eval", run], ["freeze", run], ["train", "--out", run, "--resume"]):
                self.refused(4, "config.toml", *arguments)
            # The page shows the rest of the run.
            shown = self.succeeds("report", run, "-o", self.path("page.html"))
            self.assertIn("config.toml", shown.stderr)

    def test_recipe_and_network_are_those_that_were_written(self):
        subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=self.small_run(), check=True,
                       stdout=subprocess.DEVNULL)
        # Either would be believed: a digit is another digit after the flip of a bit.
        for name, old, new in (("config.toml", "seed = 0", "seed = 1"), ("network.txt", "pad=1", "pad=0")):
            run = self.small_run()
            self.replace(os.path.join(run, name), old, new)
            verbs = {"config.toml": [["eval", run], ["sensitivity", run], ["train", "--out", run, "--resume"]],
                     "network.txt": [["freeze", run], ["count", run], ["heatmap", run],
                                     ["export", run, "--to", "safetensors", "-o", self.path("w")]]}
            for arguments in verbs[name]:
                error = self.refused(4, f"expected {name} as it was when the run was created", *arguments).stderr
                self.assertIn(os.path.join(run, name), error)
                self.assertIn("flags of 'onetap train --resume'", error)
            self.assertIn(name, self.succeeds("report", run, "-o", self.path("page.html")).stderr)
            # What the message says for a file that was edited on purpose, and a run of an older version.
            os.remove(os.path.join(run, "SHA256SUMS"))
            self.succeeds("count", run)
        run = self.small_run()
        os.remove(os.path.join(run, "SHA256SUMS"))
        self.succeeds("eval", run)
        self.succeeds("train", "--out", run, "--resume")
        with open(os.path.join(run, "SHA256SUMS"), "w") as file:
            file.write("nonsense\n")
        self.refused(4, "SHA256SUMS", "eval", run)

    def test_messages_are_not_those_of_the_json_library(self):
        run = self.small_run()
        state = os.path.join(run, "checkpoints", "step-000000018", "state.json")
        for text in ("nonsense", "{}", '{"format": 1, "step": 1, "epoch_logged": 3}'):
            with open(state, "w") as file:
                file.write(text)
            said = self.succeeds("eval", run).stderr
            self.assertIn("not a state file: expected ", said)
            self.assertNotIn("json", said.replace(state, ""))

    def test_keys_of_200000_parts(self):
        deep = self.write("deep.toml", ".".join(["a"] * 200000) + " = 1\n")
        self.refused(2, "expected keys of at most 17 parts, got more", "train", deep, "--out", self.path("new"))
        run = self.small_run()
        shutil.copy(deep, os.path.join(run, "config.toml"))
        os.remove(os.path.join(run, "SHA256SUMS"))
        self.refused(4, "expected keys of at most 17 parts, got more", "eval", run)

    def test_no_verb_writes_in_place_of_a_runs_records(self):
        run = self.small_run()
        tap = os.path.join(run, "model.tap")
        self.succeeds("freeze", run, "-q")
        before = contents_below(run)
        weights = os.path.join(run, "checkpoints", "last", "model.safetensors")
        for verb in (["export", run, "--to", "safetensors", "-o", weights],
                     ["export", tap, "--to", "onnx", "-o", os.path.join(run, "config.toml")],
                     ["report", run, "-o", os.path.join(run, "metrics.jsonl")],
                     ["freeze", run, "-o", os.path.join(run, "checkpoints", "last", "state.json")],
                     ["quantize", tap, "--data", "shapes:train=20,test=10", "-o", os.path.join(run, "network.txt")],
                     ["heatmap", run, "-o", os.path.join(run, "checkpoints", "heat.svg")]):
            self.refused(2, "expected another file to write than the records of a run", *verb)
        self.assertEqual(contents_below(run), before)

    def test_a_file_that_was_frozen_before_the_last_training_is_named(self):
        run = self.small_run()
        self.succeeds("freeze", run, "-q")
        self.assertNotIn("was frozen at step", self.succeeds("heatmap", run).stderr)
        self.succeeds("quantize", run, "--data", "shapes:train=20,test=10", "-o", os.path.join(run, "model-int8.tap"), "-q")
        self.succeeds("train", "--out", run, "--extend", 1)
        for verb in (["bench", run, "--seconds", 0.01], ["export", run, "--to", "onnx", "-o", self.path("m.onnx")]):
            self.assertRegex(self.succeeds(*verb).stderr, r"model.tap was frozen at step \d+, the run's last test was at")
        self.assertIn("model-int8.tap was frozen at step", self.succeeds("report", run).stderr)
        with open(os.path.join(run, "report.html")) as file:
            page = file.read()
        self.assertIn('"notices":[]', page)
        self.assertRegex(page, r'"remarks":\["[^"]*model.tap was frozen at step [^"]*","[^"]*model-int8.tap was frozen at step ')
        # A checkpoint that was asked for is no oversight.
        self.succeeds("freeze", run, "--checkpoint", "best", "-q")
        self.assertNotIn("was frozen at step", self.succeeds("bench", run, "--seconds", 0.01).stderr)

    def test_bf16_on_a_cpu(self):
        for precision in ("bf16", "tf32"):
            self.refused(2, f"got {precision}: it is for GPUs", "train", *SMALL, "--precision", precision, "--out",
                         self.path("new"))
            self.assertFalse(os.path.exists(self.path("new")))
        run = self.small_run()
        self.refused(2, "got bf16: it is for GPUs", "train", "--out", run, "--resume", "--precision", "bf16")
        self.replace(os.path.join(run, "config.toml"), 'precision = "auto"', 'precision = "bf16"')
        os.remove(os.path.join(run, "SHA256SUMS"))
        self.assertIn("computed in fp32", self.succeeds("train", "--out", run, "--resume").stderr)

    def test_a_sweep_goes_on_past_a_run_that_diverges(self):
        result = onetap("sweep", *DIVERGING[:-2], "--grid", "lr=1e6,0.1", "--method", "conv", "--out", self.path("sweep"),
                        "--json")
        self.assertEqual(result.returncode, 1, result.stderr)
        runs = {run["values"]["lr"]: run for run in json.loads(result.stdout)["runs"]}
        self.assertEqual([runs[1e6]["state"], runs[0.1]["state"]], ["failed", "finished"])
        self.assertTrue(re.search(r"ended with exit code 1: onetap: .* at step \d+ \(epoch \d\)", result.stderr))
        self.assertNotIn("not a line of metrics", result.stderr)

    def test_frozen_networks_say_where_they_are_from(self):
        run = self.small_run()
        self.succeeds("freeze", run)
        row = json.loads(self.succeeds("eval", os.path.join(run, "model.tap"), "--data", "shapes:test=40",
                                       "--json").stdout)[0]
        self.assertEqual((row["step"], row["method"], row["form"], row["weights"]),
                         (18, "frozen taps=1 share=1", "frozen", "f32"))


if __name__ == "__main__":
    main()
