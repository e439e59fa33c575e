"""The verbs as a person types them: help, streams, exit codes, JSON, completion."""
import fcntl
import json
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import termios
import unittest

from support import ONETAP, SMALL, TRAINING_ONLY, CommandTest, main, metrics, needs_no_training, needs_training


class Help(CommandTest):
    def test_every_verb_explains_itself_with_examples(self):
        top = self.succeeds("--help")
        verbs = [["train"], ["sweep"], ["reproduce"], ["eval"], ["freeze"], ["prune"], ["sensitivity"], ["export"], ["bench", "train"]]
        if not TRAINING_ONLY:
            verbs += [["launch"], ["data"], ["data", "fetch"], ["data", "check"], ["nets"], ["count"], ["run"], ["bench"],
                      ["bench", "data"], ["heatmap"], ["report"], ["completion"], ["manual"], ["help"]]
        for verb in verbs:
            self.assertIn(verb[0], top.stdout)
            result = self.succeeds(*verb, "--help")
            if "not installed" in result.stdout:
                continue
            self.assertIn("Examples:", result.stdout, verb)
            self.assertIn("onetap " + " ".join(verb), result.stdout)
            self.assertEqual(result.stderr, "")

    # Both without LibTorch; they have flags of recipes.
    RECIPE_FLAGS = ("sweep", "nets")

    def too_long(self, text, width):
        """Lines that are neither commands nor a flag whose values alone are as long."""
        return [line for line in text.splitlines() if len(line) > width and not re.match(r"  (onetap |--\S+ \S+( \[\S+\])?$)", line)]

    @needs_no_training
    def test_lines_are_as_wide_as_asked_for(self):
        for verb in (*self.RECIPE_FLAGS, "bench", "eval", "frontier"):
            texts = {}
            for columns in ("", "60", "80", "140", "none"):
                texts[columns] = self.succeeds(verb, "--help", env={"COLUMNS": columns}).stdout
                self.assertEqual(self.too_long(texts[columns], int(columns) if columns.isdigit() else 100), [], (verb, columns))
            self.assertEqual(texts[""], texts["none"])
            for text in texts.values():  # no word is lost
                self.assertEqual(text.split(), texts[""].split())
            self.assertGreater(max(map(len, texts["140"].splitlines())), 120)

    @needs_no_training
    def test_lines_are_as_wide_as_the_terminal(self):
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 72, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        done = subprocess.run([ONETAP, "run", "--help"], stdout=follower, env=environment)
        os.close(follower)
        text = os.read(leader, 1 << 16).decode().replace("\r\n", "\n")
        os.close(leader)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(text, self.succeeds("run", "--help", env={"COLUMNS": "72"}).stdout)
        self.assertNotEqual(text, self.succeeds("run", "--help", env={"COLUMNS": ""}).stdout)

    @needs_no_training
    def test_flags_are_printed_as_they_are_typed(self):
        sweep = self.succeeds("sweep", "--help").stdout
        self.assertIn("\n  --flip, --no-flip           flip training images at random (default: yes)\n", sweep)
        self.assertIn("\n  -h, --help                  print this help\n", sweep)
        self.assertIn("\n  --to safetensors|onnx|c REQUIRED\n", self.succeeds("export", "--help").stdout)
        for verb in self.RECIPE_FLAGS:
            text = self.succeeds(verb, "--help").stdout
            self.assertNotIn("{", text)
            self.assertEqual(re.findall(r"\b[a-z]+[0-9]*_[a-z]+", text), [], "a key of recipes, not a flag")
        words = " ".join(sweep.split())
        self.assertIn("constant, at --t1 unless --alpha is given", words)
        self.assertIn("conv: dense; sal: Shift Attention; random-taps: ", words)

    @needs_no_training
    def test_help_as_a_verb(self):
        self.assertEqual(self.succeeds("help").stdout, self.succeeds("--help").stdout)
        self.assertEqual(self.succeeds("help", "nets").stdout, self.succeeds("nets", "--help").stdout)
        self.assertEqual(self.succeeds("-q", "--color", "never", "help", "data", "fetch").stdout,
                         self.succeeds("data", "fetch", "--help").stdout)
        self.assertEqual(self.succeeds("help", "train").stdout, self.succeeds("train", "--help").stdout)
        self.refused(2, "onetap has no verb 'nest', did you mean 'nets'?", "help", "nest")
        self.refused(2, "onetap data has no verb 'chekc', did you mean 'check'?", "help", "data", "chekc")

    @needs_no_training
    def test_what_other_tools_call_it(self):
        for typed, ours in (("evaluate", "eval"), ("test", "eval"), ("predict", "run"), ("infer", "run"), ("fit", "train"),
                            ("compress", "freeze"), ("benchmark", "bench"), ("sens", "sensitivity"), ("training", "train"),
                            ("quant", "quantize"), ("download", "data fetch")):
            self.refused(2, f"onetap has no verb '{typed}', did you mean '{ours}'?", typed, "x")
        self.refused(2, "onetap has no verb 'convert', did you mean 'import' or 'export'?", "convert", "x.onnx")
        self.refused(2, "onetap has no verb 're', did you mean 'reproduce' or 'report'?", "re")
        for typed, ours in (("--learning_rate", "'--lr'"), ("--learning-rate", "'--lr'"), ("--batch_size", "'--batch-size'"),
                            ("--weight_decay=0", "'--weight-decay'"), ("--lr_evry", "'--lr-every'"), ("--dataset", "'--data'"),
                            ("--out-dir", "'--out'"), ("--checkpoint", "'--checkpoint-epochs' or '--checkpoint-steps'")):
            name = typed.split("=")[0]
            self.refused(2, f"onetap sweep has no flag {name}, did you mean {ours}?", "sweep", typed, 1)

    @needs_no_training
    def test_an_argument_is_refused_without_its_name(self):
        self.refused(2, "onetap: expected a recipe, got none.toml", "sweep", "none.toml", "--out", "x", cwd=self.dir)

    @needs_no_training
    def test_version(self):
        self.assertRegex(self.succeeds("--version").stdout, r"^onetap \d+\.\d+\.\d+\n$")

    @needs_no_training
    def test_usage_errors_are_code_2_and_one_line(self):
        self.refused(2, "--help' explains")
        self.refused(2, "explains", "nonsense")
        self.refused(2, "onetap nets has no flag --widht, did you mean '--width'?", "nets", "resnet20", "--widht", "3")
        self.refused(2, "onetap has no verb 'nest', did you mean 'nets'?", "nest", "resnet20")
        self.refused(2, "onetap data has no verb 'chekc', did you mean 'check'?", "-q", "data", "chekc", "shapes")
        self.refused(2, "onetap bench has no flag --agianst, did you mean '--against'?", "bench", "x.tap", "--agianst=dense")
        self.refused(2, "onetap nets has no flag --frobnicate ('onetap nets --help' explains)", "nets", "--frobnicate")
        self.refused(2, "onetap has no flag -z (", "-z", "nets")
        self.refused(2, "--json", "nets", "resnet20", "--width", "--json")  # a value that looks like a flag is a value
        self.refused(2, "NAME is required", "data", "fetch")
        self.refused(2, "expected bash, zsh or fish for SHELL, got 'fishh', did you mean 'fish'?", "completion", "fishh")
        self.refused(2, "expected safetensors, onnx or c for --to, got 'onxx', did you mean 'onnx'?", "export", "x", "--to",
                     "onxx")
        self.refused(2, "expected a value for --width, got none", "nets", "resnet20", "--width")
        self.refused(2, "expected a verb: train, ")
        self.refused(2, "onetap nets has no flag -w, did you mean '--width'?", "nets", "resnet20", "-width", 4)
        for number in ("nan", "inf", "1x"):
            self.refused(2, f"--seconds: expected a number from 0.01 to 3600, got {number}", "frontier", "x", "--seconds", number)

    @needs_no_training
    def test_help_to_a_full_disk_is_an_error(self):
        for asks in (["--version"], ["--help"], ["nets", "--help"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([ONETAP, *asks], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 1, asks)
            self.assertIn("cannot write to standard output", done.stderr)


@needs_no_training
class BenchData(CommandTest):
    def test_images_a_second_by_workers(self):
        arguments = ["bench", "data", "--data", "shapes:train=50,test=10", "--image-size", 32, "--seconds", 0.05]
        result = json.loads(self.succeeds(*arguments, "--workers", "1,2", "--json").stdout)
        self.assertEqual([row["workers"] for row in result["by_workers"]], [1, 2])
        for row in result["by_workers"]:
            for way in ("whole", "reduced", "bytes"):
                self.assertGreater(row[way + "_img_per_s"], 0)
        self.assertIn("times whole", self.succeeds(*arguments).stdout)
        self.refused(2, "--data is required", "bench", "data")


class MistypedTraining(CommandTest):
    @needs_training
    def test_the_flag_is_blamed_not_its_value(self):
        self.refused(2, "onetap train has no flag --epoch, did you mean '--epochs'?", "train", "--epoch", 3)
        self.refused(2, "onetap has no verb 'trian', did you mean 'train'?", "trian", "--epochs", 3)
        self.refused(2, "expected f16 or f32 for --dtype, got 'fp16', did you mean 'f16'?", "freeze", "x", "--dtype", "fp16")
        # What other tools call it.
        self.refused(2, "no flag --learning-rate, did you mean '--lr'?", "train", "--learning-rate", 0.1)
        self.refused(2, "no flag --wd, did you mean '--weight-decay'?", "train", "--wd", 0.1)
        self.refused(2, "no flag --batch, did you mean '--batch-size'?", "train", "--batch", 8)
        # Only where the verb has ours.
        self.refused(2, "onetap sensitivity has no flag --output (", "sensitivity", "r", "--output", "x")
        self.refused(2, "expected a number above 0 and at most 1, got -1", "freeze", "x", "--density", -1)

    @needs_training
    def test_a_recipe_nearly_named_is_offered(self):
        os.makedirs(self.path("recipes"))
        self.write("recipes/mine.toml", "")
        for near in ("mine", "mien.toml", "mine.tml"):
            self.refused(2, "did you mean 'recipes/mine.toml'?", "train", os.path.join("recipes", near), cwd=self.dir)


@needs_no_training
class FrozenRun(CommandTest):
    """A run directory where a .tap file is meant."""

    def setUp(self):
        super().setUp()
        os.makedirs(self.path("run"))
        self.succeeds("nets", "resnet8", "--width", 4, "--tap", self.path("run/model.tap"))

    def test_its_model_is_used(self):
        run, model = self.path("run"), self.path("run/model.tap")
        for verb in (["heatmap"], ["bench", "--seconds", 0.01, "--json"], ["export", "--to", "onnx", "-o", self.path("m.onnx")]):
            self.assertIn("using " + model, self.succeeds(verb[0], run, *verb[1:]).stderr)
        quantized = ["--data", "shapes:train=20,test=10", "-o", self.path("run/model-int8.tap")]
        self.assertIn("using " + model, self.succeeds("quantize", run, *quantized).stderr)
        self.assertEqual(self.succeeds("heatmap", run, "-q").stdout, self.succeeds("heatmap", model).stdout)
        os.makedirs(self.path("raw"))
        self.write("raw/config.toml", "")
        for verb in (["run", self.path("raw"), model], ["bench", self.path("raw")], ["quantize", self.path("raw"), *quantized]):
            self.refused(2, "freeze it first (onetap freeze ", *verb)
        self.refused(4, "got the folder", "run", self.dir, model)

    def test_a_peer_that_is_not_installed_is_left_out(self):
        result = self.succeeds("bench", self.path("run/model.tap"), "--against", "onnxruntime,dense", "--seconds", 0.01,
                               "--json", env={"ONETAP_PYTHON": "/bin/false"})
        answer = json.loads(result.stdout)
        self.assertEqual(list(answer["peers"]), ["dense"])
        self.assertIn("pip install onnxruntime", answer["left_out"]["onnxruntime"])
        self.assertIn("warning: left out onnxruntime: ", result.stderr)

    def test_so_is_one_whose_interpreter_is_not_installed(self):
        python = self.path("no-python3")
        result = self.succeeds("bench", self.path("run/model.tap"), "--against", "dense,onnxruntime", "--seconds", 0.01,
                               "--json", env={"ONETAP_PYTHON": python})
        answer = json.loads(result.stdout)
        self.assertEqual(list(answer["peers"]), ["dense"])
        self.assertEqual(answer["left_out"]["onnxruntime"],
                         f"[bench] expected the program {python}, got: No such file or directory")


@needs_training
class Loading(CommandTest):
    """LibTorch takes half a second to load: verbs that need none must not."""

    def libraries(self, *arguments):
        result = self.succeeds(*arguments, env={"LD_DEBUG": "files"})  # the dynamic linker writes to stderr
        return {os.path.basename(path) for path in re.findall(r"calling init: (\S+)", result.stderr)}

    def test_verbs_without_libtorch_do_not_load_it(self):
        model = self.path("net.tap")
        for verb in (["--version"], ["--help"], ["count", "resnet20"], ["nets", "resnet8", "--width", 4, "--tap", model],
                     ["count", model], ["heatmap", model, "-o", self.path("a.png")], ["run", model, self.path("a.png")],
                     ["bench", model, "--seconds", 0.01], ["quantize", "--help"], ["sweep", "--help"]):
            libraries = self.libraries(*verb)
            self.assertIn("libonetap_verbs.so", libraries)
            self.assertEqual([name for name in libraries if "torch" in name or "libonetap_training" in name], [], verb)

    def test_a_verb_that_trains_does(self):
        libraries = self.libraries("train", *SMALL, "--dry-run")
        self.assertIn("libonetap_training.so", libraries)
        self.assertTrue([name for name in libraries if name.startswith("libtorch")], libraries)


@needs_training
class BenchTrain(CommandTest):
    def test_says_which_steps_it_timed(self):
        arguments = ["bench", "train", *SMALL[:4], "--data", "shapes:train=16,test=4", "--batch-size", 16, "--steps", 1,
                     "--device", "cpu", "--threads", 1]
        for flags, engine in ((["--engine", "captured"], "captured"), ([], "fused"), (["--shortcut", "A"], "fused"),
                              (["--no-decay-norms", "--method", "active-shift"], "fused"),
                              (["--method", "bc"], "fused")):
            result = json.loads(self.succeeds(*arguments, *flags, "--json").stdout)
            self.assertEqual(result["engine"], engine)
            self.assertGreater(result["ms_per_step"], 0)
            self.assertGreater(result["convolutions_ms"], 0)
        self.assertIn("fp32 on cpu, captured steps\n", self.succeeds(*arguments, "--engine", "captured").stdout)
        self.refused(2, "got plain", *arguments, "--engine", "plain")
        self.refused(2, "conv1 (conv): has a bias", "bench", "train", "--arch", "squeezenet", "--method", "conv",
                     *arguments[6:], "--engine", "fused")


@needs_no_training
class Nets(CommandTest):
    def test_table_and_json_agree_with_the_paper(self):
        table = self.succeeds("nets", "resnet20", "--width", 83).stdout
        self.assertIn("981,609.5", table)
        self.assertIn("129,276,152", table)
        network = json.loads(self.succeeds("nets", "resnet20", "--width=83", "--json").stdout)
        self.assertEqual(network["params"], 981609.5)
        self.assertEqual(network["macs"], 129276152)
        self.assertEqual(sum(layer["params"] for layer in network["layers"]), network["params"])

    def test_lists_the_zoo(self):
        names = [entry["name"] for entry in json.loads(self.succeeds("nets", "--json").stdout)]
        table = self.succeeds("nets").stdout
        for name in names:
            self.assertIn(name, table)
        for name in ("resnet50-cifar", "resnet-w", "shiftnet-a", "shiftnet-b", "asresnet", "asresnet-w", "mobilenetv2",
                     "squeezenet"):
            self.assertIn(name, names)
        for network in ("shiftresnet20", "shiftresnet56", "shiftresnet110", "as-resnet20", "mobilenetv2-cifar",
                        "squeezenet-cifar"):
            self.assertIn(network, self.succeeds("nets", network).stdout)

    def test_a_rival_is_printed_as_published_unless_a_method_is_named(self):
        def network(*arguments):
            return json.loads(self.succeeds("nets", *arguments, "--json").stdout)

        self.assertEqual(network("mobilenetv2")["params"], 2296922)
        self.assertEqual(network("shiftresnet110", "--expansion", 6)["params"], 1177946)
        self.assertEqual(network("shiftresnet110", "--expansion", 6, "--method", "conv")["params"], 1177946)
        # A tap and its position of 4 bits for each of the depthwise filters, which have 9 weights.
        depthwise = {layer["name"]: layer for layer in network("mobilenetv2", "--taps", 1)["layers"]}["layer1.0.conv2"]
        self.assertEqual(depthwise["params"], 32 * (1 + 4 / 32))

    def test_text_comes_back(self):
        text = self.succeeds("nets", "resnet20", "--width", 8, "--share", 4, "--text").stdout
        path = self.write("my.net", text)
        self.assertEqual(self.succeeds("nets", path, "--text").stdout, text)

    def test_shared_blocks(self):
        for share, written in (("4x1", "4"), ("4x4", "4x4"), ("all", "all"), ("allx4", "allx4")):
            for method in ("sal", "random-taps", "magnitude"):
                network = ["nets", "resnet20", "--width", 8, "--method", method, "--share", share]
                text = self.succeeds(*network, "--text").stdout
                self.assertIn(f"method={method} taps=1 share={written}\n", text)
                self.assertEqual(self.succeeds("nets", self.write("my.net", text), "--text").stdout, text)
        text = self.succeeds("nets", "resnet20", "--share", "4x4", "--relax", "straight-through", "--text").stdout
        self.assertIn(" share=4x4 relax=straight-through\n", text)
        # 16 inputs and outputs of layer1.0.conv1: 256 weights and 4 x 4 positions of 4 bits.
        for share, positions in (("1", 256), ("4", 64), ("4x4", 16), ("all", 16), ("allx4", 4)):
            counts = json.loads(self.succeeds("count", "resnet20", "--width", 16, "--share", share, "--json").stdout)
            layer, = [layer for layer in counts["layers"] if layer["name"] == "layer1.0.conv1"]
            self.assertEqual(layer["params"], 256 + positions * 4 / 32)

    def test_refuses_impossible_networks(self):
        self.refused(2, "expected --width in 1..65536, got 0", "nets", "resnet20", "--width", 0)
        self.refused(2, "did you mean 'resnet20'", "nets", "resnett20")
        for place, part in (("", "got an empty one"), (self.dir, "got the folder"), (self.path("no", "x"), "got no folder")):
            self.refused(2, part, "nets", "resnet20", "--tap", place)
        self.refused(2, "expected taps in 1..9", "nets", "resnet20", "--taps", 10)
        self.refused(2, "expected share in 1..16", "nets", "resnet20", "--share", 17)
        self.refused(2, "expected share by 1..16 inputs", "nets", "resnet20", "--share", "4x17")
        for share in ("4x", "0x4", "4x4x4", "allx0", "x4", "0", "most"):
            self.refused(2, f"expected outputs (4), outputs x inputs (4x4), all or allx4 for --share, got '{share}'",
                         "nets", "resnet20", f"--share={share}")
        self.refused(2, "expected --relax to be auto, softmax or straight-through, got 'ste'", "nets", "resnet20",
                     "--relax", "ste")
        self.refused(2, "resnet20 has no expansion to set (shiftresnetN,", "nets", "resnet20", "--expansion", 2)
        self.refused(2, "shiftnet-a has no kernel to set", "nets", "shiftnet-a", "--kernel", 3)
        self.refused(2, "expected --expansion in 1..64, got 0", "nets", "shiftresnet20", "--expansion", 0)
        self.refused(2, "--method conv trains it as it is", "nets", "asresnet", "--method", "sal")
        self.refused(4, "cannot open", "nets", self.path("missing.net"))
        bad = self.write("bad.net", "onetap-net 1\nx = input 3x8x8\nc = conv x out=4 kernel=9\n")
        self.refused(2, "does not fit 8 rows", "nets", bad)


@needs_no_training
class Completion(CommandTest):
    def complete_in_bash(self, words):
        """What bash offers after these words."""
        script = ('source <("$1" completion bash); COMP_WORDS=("${@:2}"); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); '
                  '_onetap; printf "%s\\n" "${COMPREPLY[@]}"')
        result = subprocess.run(["bash", "-c", script, "bash", ONETAP, "onetap", *words], text=True,
                                stdout=subprocess.PIPE, check=True)
        return result.stdout.split()

    TARGETS = "avx512vnni avxvnni avx512 avx2 sse4 sse2 neondot neon plain"  # of floats and of int8
    # The words so far, and what must be offered next: by every shell the same.
    VALUES = ((["export", "--schedule"], "rows layers"), (["export", "--input"], "floats pixels"),
              (["sweep", "--schedule"], "step cosine"),
              (["export", "--to"], "safetensors onnx c"), (["frontier", "--against"], "onnxruntime"),
              (["bench", "--against"], "dense one-thread float onnxruntime libtorch"),
              (["quantize", "--calibration"], "minmax percentile mse"), (["count", "--rules"], "paper plain"),
              (["run", "--target"], TARGETS), (["bench", "--target"], TARGETS), (["eval", "--checkpoint"], "last best"),
              (["nets", "resnet20", "--color"], "auto always never"))
    ARCHITECTURES = {"resnet20", "resnet110", "resnet-w", "shiftresnet56", "shiftnet-a", "asresnet", "mobilenetv2",
                     "squeezenet"}

    def check_values(self, offered):
        for words, expected in self.VALUES:
            self.assertEqual(sorted(offered(*words)), sorted(expected.split()), words)
        self.assertLessEqual(self.ARCHITECTURES, set(offered("sweep", "--arch")))

    def test_bash_offers_the_values_of_the_verbs_own_flag(self):
        self.check_values(lambda *words: self.complete_in_bash([*words, ""]))
        self.assertNotIn("onnx", self.complete_in_bash(["data", "fetch", "--to", ""]))
        self.assertLessEqual(self.ARCHITECTURES, set(self.complete_in_bash(["nets", ""])))
        self.assertLessEqual({"all", "table1"}, set(self.complete_in_bash(["reproduce", ""])))
        self.assertEqual(self.complete_in_bash(["completion", "f"]), ["fish"])

    def test_what_a_flag_offers_is_accepted(self):
        for arch in set(self.complete_in_bash(["sweep", "--arch", ""])):
            self.succeeds("nets", arch, "--json")

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish_offers_verbs_flags_and_values(self):
        script = self.write("onetap.fish", self.succeeds("completion", "fish").stdout)
        os.makedirs(self.path("empty"))

        def offered(*words):
            line = "onetap " + " ".join(words)
            text = f"source {script}; cd {self.path('empty')}; complete -C '{line}'"
            result = subprocess.run(["fish", "--no-config", "-c", text], text=True, stdout=subprocess.PIPE, check=True)
            return [entry.split("\t")[0] for entry in result.stdout.splitlines()]

        self.check_values(lambda *words: offered(*words, ""))
        self.assertIn("nets", offered(""))
        self.assertIn("--to", offered("data", "fetch", "--t"))
        self.assertIn("--against", offered("bench", "--"))
        self.assertNotIn("--against", offered("bench", "data", "--"))
        self.assertNotIn("--method", offered("launch", "nets", "--"))

    def test_fish_tells_a_verb_of_a_verb_from_one_of_its_name(self):
        script = self.succeeds("completion", "fish").stdout
        self.assertIn("complete -c onetap -n '__onetap_verb_is \" bench data\"' -l workers", script)
        self.assertNotIn("__fish_seen_subcommand_from", script)

    def test_bash_offers_verbs_flags_and_values(self):
        self.assertIn("nets", self.complete_in_bash([""]))
        self.assertEqual(self.complete_in_bash(["da"]), ["data"])
        self.assertEqual(self.complete_in_bash(["data", "fe"]), ["fetch"])
        self.assertIn("--to", self.complete_in_bash(["data", "fetch", "--t"]))
        self.assertEqual(self.complete_in_bash(["nets", "--method", "s"]), ["sal", "shift"])
        self.assertEqual(self.complete_in_bash(["nets", "--wid"]), ["--width"])
        self.assertEqual(self.complete_in_bash(["help", "se"]), ["sensitivity"])

    def test_scripts_for_other_shells_parse(self):
        self.assertIn("complete -c onetap", self.succeeds("completion", "fish").stdout)
        self.assertTrue(self.succeeds("completion", "zsh").stdout.startswith("#compdef onetap\n"))

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh_offers_verbs_flags_and_values(self):
        script = self.write("_onetap", self.succeeds("completion", "zsh").stdout)

        def offered(*words):
            # Zsh's own functions in place of its completion system: what the script gives them is printed.
            text = ('compdef() { :; }; _files() { :; }; compadd() { shift; print -l -- "$@"; }; source "$1"; shift; '
                    'words=(onetap "$@"); CURRENT=$#words; _onetap')
            return subprocess.run(["zsh", "-f", "-c", text, "zsh", script, *words], text=True, stdout=subprocess.PIPE,
                                  check=True).stdout.split()

        self.check_values(lambda *words: offered(*words, ""))

        self.assertIn("nets", offered(""))
        self.assertIn("--to", offered("data", "fetch", ""))
        self.assertNotIn("--to", offered("nets", ""))
        self.assertIn("sal", offered("nets", "--method", ""))


@needs_training
class TrainAndEval(CommandTest):
    def test_run_directory_streams_and_json(self):
        run = self.path("run")
        result = self.succeeds("train", *SMALL, "--out", run, "--json")
        last = json.loads(result.stdout)
        self.assertEqual(last["run"], run)
        self.assertIn("epoch 3/3", result.stderr)
        self.assertNotIn("\r", result.stderr, "no progress line outside a terminal")
        for line in metrics(run):
            self.assertEqual(set(line), {"step", "epoch", "split", "loss", "acc_soft", "acc_hard", "lr", "temperature"})
        for name in ("config.toml", "network.txt", "metrics.jsonl", "checkpoints"):
            self.assertTrue(os.path.exists(os.path.join(run, name)), name)

        rows = json.loads(self.succeeds("eval", run, "--json", "--threads", 1).stdout)
        self.assertEqual([row["form"] for row in rows], ["soft", "hard"])
        self.assertEqual(rows[0]["accuracy"], last["acc_soft"])
        self.assertEqual(rows[1]["accuracy"], last["acc_hard"])
        self.assertLess(rows[1]["params"], rows[0]["params"] / 5)

    def test_quiet_is_quiet(self):
        result = self.succeeds("train", "-q", *SMALL, "--epochs", 1, "--out", self.path("run"))
        self.assertEqual(result.stderr, "")

    def test_flags_override_the_recipe_and_the_resolved_one_is_saved(self):
        recipe = self.write("r.toml", 'arch = "resnet8"\nwidth = 6\nepochs = 2\nbatch_size = 16\n'
                                      'data = "shapes:train=32,test=20"\nthreads = 1\n')
        self.succeeds("train", recipe, "--epochs=1", "--method", "conv", "--out", self.path("run"))
        with open(self.path("run", "config.toml")) as file:
            config = file.read()
        for line in ("width = 6", "epochs = 1", 'method = "conv"', "lr_every = 1", 'augment = "crop"', "[provenance]"):
            self.assertIn(line, config)
        # The saved recipe is a recipe.
        self.succeeds("train", self.path("run", "config.toml"), "--out", self.path("again"))
        self.assertEqual(metrics(self.path("run")), metrics(self.path("again")))

    def test_the_command_of_a_run_can_be_copied(self):
        run = self.path("my 'own' run")
        self.succeeds("train", *SMALL, "--epochs", 1, "--layers", "layer2.*,!layer2.0.conv1", "--init-skip", "", "--out", run)
        with open(os.path.join(run, "config.toml")) as file:
            line = next(line for line in file if line.startswith("command = "))
        words = shlex.split(json.loads(line.split(" = ", 1)[1]))
        self.assertEqual(words, [ONETAP, "train", *SMALL, "--epochs", "1", "--layers", "layer2.*,!layer2.0.conv1",
                                 "--init-skip", "", "--out", run])

    def test_fewer_epochs_shorten_the_warm_up_of_a_recipe(self):
        recipe = self.write("r.toml", 'arch = "resnet8"\nwidth = 4\nepochs = 60\nwarmup_epochs = 3\nbatch_size = 16\n'
                                      'data = "shapes:train=32,test=20"\nthreads = 1\n')

        def warmup(*flags):
            result = self.succeeds("train", recipe, *flags, "--dry-run")
            return next(l for l in result.stdout.splitlines() if l.startswith("warmup_epochs")), result.stderr

        line, notes = warmup("--epochs", 2)
        self.assertEqual(line, "warmup_epochs = 0.1")  # 3 * 2 / 60
        self.assertIn("the warm-up of the recipe, 3 of 60 epochs, is shortened to 0.1 of 2 (--warmup-epochs)\n", notes)
        for flags in (["--epochs", 3], ["--epochs", 30], []):
            line, notes = warmup(*flags)
            self.assertEqual((line, "shortened" in notes), ("warmup_epochs = 3", False))
        self.refused(2, "expected warmup_epochs of at most epochs = 2, got 3 (--warmup-epochs)", "train", recipe,
                     "--epochs", 2, "--warmup-epochs", 3, "--dry-run")
        run = self.path("run")
        self.succeeds("train", recipe, "--epochs", 2, "--out", run)
        self.succeeds("train", recipe, "--epochs", 2, "--out", run, "--resume")  # it is the run's own recipe

    def test_a_sweep_is_the_runs_one_by_one(self):
        result = self.succeeds("sweep", *SMALL, "--epochs", 1, "--grid", "seed=0,1", "--jobs", 2, "--out",
                               self.path("sweep"), "--json")
        answer = json.loads(result.stdout)
        for seed in (0, 1):
            self.succeeds("train", *SMALL, "--epochs", 1, "--seed", seed, "--out", self.path(f"run{seed}"))
            self.assertEqual(metrics(self.path("sweep", f"seed={seed}")), metrics(self.path(f"run{seed}")))
            self.assertEqual(answer["runs"][seed]["acc_hard"], metrics(self.path(f"run{seed}"))[-1]["acc_hard"])
        again = self.succeeds("sweep", "--out", self.path("sweep"), "--json")
        self.assertEqual(json.loads(again.stdout), answer)
        self.assertEqual(again.stderr, "")

    def test_a_network_of_ones_own(self):
        net = self.write("my.net", "onetap-net 1\nx = input 3x32x32\na = conv x out=8 kernel=3 pad=1 stride=2\n"
                                   "b = bn a\nr = relu b\nc = conv r out=8 kernel=5 pad=2 method=sal taps=2 share=4\n"
                                   "p = gap c\nfc = linear p out=10\n")
        self.succeeds("train", *SMALL, "--arch", net, "--out", self.path("run"))
        os.remove(net)  # the run carries its network
        self.succeeds("eval", self.path("run"))

    def test_methods_switches_and_schedules(self):
        for i, flags in enumerate((["--method", "conv", "--nesterov", "--label-smoothing", "0.1"],
                                   ["--taps", "2", "--share", "2", "--tap-init", "centre"],
                                   ["--binarize", "round", "--restart-momentum", "--schedule", "cosine"],
                                   ["--layers", "layer3.*", "--warmup-epochs", "0.5", "--no-flip"],
                                   ["--shortcut", "A", "--kernel", "5", "--augment", "none"],
                                   ["--weight-init", "fan-out", "--alpha", "0.9", "--t-floor", "0.1"])):
            self.succeeds("train", *SMALL, "--epochs", 1, *flags, "--out", self.path(f"run{i}"))
        self.assertEqual(metrics(self.path("run5"))[-1]["temperature"], 6.7 * 0.9 ** 6)

    def test_dry_run_touches_nothing(self):
        result = self.succeeds("train", *SMALL, "--dry-run", "--out", self.path("run"))
        self.assertIn('arch = "resnet8"', result.stdout)
        self.assertEqual(os.listdir(self.dir), [])

    def test_one_by_one_fails_on_shapes_where_three_by_three_learns(self):
        layers = ("onetap-net 1\nx = input 3x32x32\n"
                  "a = conv x out=16 stride=2 {k}\nb = bn a\nc = relu b\nd = conv c out=32 stride=2 {k}\ne = bn d\nf = relu e\n"
                  "g = conv f out=32 {k}\nh = bn g\ni = relu h\np = gap i\nfc = linear p out=10\n")
        one = self.write("one.net", layers.format(k="kernel=1"))
        three = self.write("three.net", layers.format(k="kernel=3 pad=1"))
        accuracy = {}
        for name, net in (("one", one), ("three", three)):
            result = self.succeeds("train", "--arch", net, "--method", "conv", "--data", "shapes:train=3000,test=300",
                                   "--batch-size", "32", "--epochs", "6", "--threads", "1", "--schedule", "cosine", "--json", "--augment",
                                   "none", "--out", self.path(name))
            accuracy[name] = json.loads(result.stdout)["acc_soft"]
        self.assertLess(accuracy["one"], 0.25)
        self.assertGreater(accuracy["three"], 0.60)


if __name__ == "__main__":
    main()
