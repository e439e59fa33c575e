"""onetap export --to c: what the verb prints, writes and refuses, and generated C on other processors.

DUMP_C writes generated C of networks with random weights. Self-tests run where the tools are: a C compiler;
arm-none-eabi-gcc and qemu-system-arm; cross compilers of Linux with qemu-user.
"""
import json
import os
import shutil
import subprocess
import unittest

from support import ONETAP, CommandTest, onetap

DUMP_C = os.environ.get("DUMP_C", "dump_c")
BOARD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "emit", "board")
STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
SOURCES = ["net.c", "net_weights.c", "net_selftest.c"]

CORTEX = {  # the processor's flags, and a board that has it or one that runs its code
    "M0+": (["-mcpu=cortex-m0plus"], "mps2-an385"),
    "M4": (["-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"], "mps2-an386"),
    "M7": (["-mcpu=cortex-m7", "-mfloat-abi=hard", "-mfpu=fpv5-d16"], "mps2-an500"),
    "M55": (["-mcpu=cortex-m55", "-mfloat-abi=hard"], "mps3-an547"),
    "M55 without MVE": (["-mcpu=cortex-m55+nomve", "-mfloat-abi=hard"], "mps3-an547"),
}
# What has other instructions than a Cortex-M: the code compiles, in plain C.
PLAIN_ARM = [["-march=armv7-a", "-marm"], ["-march=armv5te", "-marm"], ["-mcpu=cortex-m4", "-mthumb", "-mbig-endian"],
             ["-mcpu=cortex-m33+nodsp", "-mthumb"]]
LINUX = {"AArch64": ("aarch64-linux-gnu-gcc", "qemu-aarch64"), "RISC-V": ("riscv64-linux-gnu-gcc", "qemu-riscv64")}
NETWORKS = [("dense", "int8", "rows"), ("4x4", "int8", "rows"), ("4x4-drop", "int8", "layers"), ("1", "float", "rows")]
# Every form of a convolution that has vectors of its own.
VECTOR_NETWORKS = [("resnet8", "8", "4"), ("resnet8", "6", "1-drop"), ("resnet8", "8", "3x2"),
                   ("mobilenetv2", "4", "dense"), ("random:1", "0", "dense"), ("random:4", "0", "dense")]
# Sets of outputs that do not end where outputs are finished together, several sets that are listed together and fewer of
# them at the end, words that are not whole, blocks of several words, more words than are listed, more inputs than are
# gathered.
DSP_NETWORKS = [("resnet8", "6", "4x4"), ("resnet8", "28", "4x4"), ("resnet8", "7", "2x4-drop"), ("resnet8", "20", "6x8"), ("resnet8", "24", "12x4"),
                ("resnet8", "72", "4x4-drop"), ("resnet8", "14", "dense"), ("resnet8", "68", "1"), ("signed", "0", "dense")]


# With and without lists, words that lie apart, large kernels, many steps.
SIZED_NETWORKS = [("dense", "int8", "resnet8", "16"), ("4x4", "int8", "resnet8", "16"), ("1", "int8", "resnet8", "68"),
                  ("dense", "int8", "mobilenetv2", "4"), ("4x4", "int8", "resnet44", "4"), ("dense", "int8", "random:3", "0"),
                  ("4x4", "float", "resnet8", "8"), ("dense", "float", "mobilenetv2", "4"),
                  ("4x4", "int8", "resnet8", "16", "pixels"), ("dense", "int8", "random:3", "0", "pixels"),
                  ("4x4", "float", "resnet8", "8", "pixels")]


def has(*tools):
    return all(shutil.which(tool) for tool in tools)


class Verb(CommandTest):
    def network(self, *arguments, name="small"):
        path = self.path(name + ".tap")
        self.succeeds("nets", *(arguments or ("resnet8", "--width", "4", "--method", "sal")), "--tap", path)
        return path

    def test_writes_a_project_that_passes_its_self_test(self):
        tap = self.network()
        out = self.succeeds("export", tap, "--to", "c", "-o", self.path("c")).stdout
        for word in ("weights", "positions", "flash", "RAM, layer by layer", "RAM, row by row", "MACs", "dense"):
            self.assertIn(word, out)
        self.assertEqual(sorted(os.listdir(self.path("c"))), ["CMakeLists.txt", "README.md", "small.c", "small.h",
                                                              "small_selftest.c", "small_weights.c"])
        if not has("cc"):
            self.skipTest("no C compiler")
        sources = [self.path("c", "small" + end) for end in (".c", "_weights.c", "_selftest.c")]
        subprocess.run(["cc", *STRICT, *sources, "-o", self.path("selftest")], check=True)
        self.assertEqual(subprocess.run([self.path("selftest")]).returncode, 0)
        # A weight that is another one shows.
        with open(sources[1]) as file:
            text = file.read()
        begin = text.index("= {") + 4
        self.write("c/small_weights.c", text[:begin] + "9.5f," + text[text.index(",", begin) + 1:])
        subprocess.run(["cc", *STRICT, *sources, "-o", self.path("selftest")], check=True)
        self.assertEqual(subprocess.run([self.path("selftest")]).returncode, 1)

    def test_pixels(self):
        tap = self.network()
        said = json.loads(self.succeeds("export", tap, "--to", "c", "-o", self.path("c"), "--input", "pixels", "--json").stdout)
        self.assertEqual(said["input"], "pixels")
        said = json.loads(self.succeeds("export", tap, "--to", "c", "-o", self.path("default"), "--json").stdout)
        self.assertEqual(said["input"], "floats")
        self.succeeds("export", tap, "--to", "c", "-o", self.path("floats"), "--input", "floats")
        self.assertEqual(self.contents(self.path("default")), self.contents(self.path("floats")))
        files = self.contents(self.path("c"))
        self.assertIn(b"void small_run(const uint8_t* in, float* out, void* arena);", files["small.h"])
        self.assertIn(b"static uint8_t in[SMALL_INPUTS];", files["README.md"])
        self.refused(2, "--input", "export", tap, "--to", "c", "-o", self.path("none"), "--input", "bytes")
        self.assertFalse(os.path.exists(self.path("none")))
        if not has("cmake", "cc"):
            self.skipTest("no cmake or no C compiler")
        for command in (["cmake", "-S", self.path("c"), "-B", self.path("build")], ["cmake", "--build", self.path("build")],
                        [self.path("build", "small_selftest")]):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def test_active_shifts_are_written(self):
        moved = self.network("asresnet20", "--width", "4", name="moved")
        said = json.loads(self.succeeds("export", moved, "--to", "c", "-o", self.path("c"), "--json").stdout)
        self.assertNotIn("dense", said)  # nothing of it was pruned
        if not has("cc"):
            self.skipTest("no C compiler")
        sources = [self.path("c", "moved" + end) for end in (".c", "_weights.c", "_selftest.c")]
        subprocess.run(["cc", *STRICT, *sources, "-o", self.path("selftest")], check=True)
        self.assertEqual(subprocess.run([self.path("selftest")]).returncode, 0)

    def test_writes_to_any_name_of_a_folder(self):
        tap = self.network()
        os.mkdir(self.path("here"))
        same = os.stat(self.path("here")).st_ino
        self.succeeds("export", tap, "--to", "c", "-o", ".", cwd=self.path("here"))
        self.assertEqual(os.stat(self.path("here")).st_ino, same)
        for out in ("new", "slash/", "dot/.", "../up", "here/../there"):
            self.succeeds("export", tap, "--to", "c", "-o", out, cwd=self.path("here") if out[0] == "." else self.dir)
        for folder in ("here", "new", "slash", "dot", "up", "there"):
            self.assertIn("small.c", os.listdir(self.path(folder)))
        self.assertEqual(len(os.listdir(self.dir)), 7)

    def test_an_empty_folder_stays_what_it_is(self):
        tap = self.network()
        os.mkdir(self.path("real"), 0o750)
        os.symlink("real", self.path("link"))
        self.succeeds("export", tap, "--to", "c", "-o", self.path("link"))
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertIn("small.c", os.listdir(self.path("real")))
        self.assertEqual(os.stat(self.path("real")).st_mode & 0o777, 0o750)

    def test_exports_to_one_folder_at_once(self):
        taps = [self.network(name="one"), self.network("resnet8", "--width", "8", name="two")]
        folders = {}
        for tap in taps:
            self.succeeds("export", tap, "--to", "c", "-o", tap[:-4], "--name", "net")
            folders[tap] = self.contents(tap[:-4])
        for out in ("new", "there"):
            if out == "there":
                os.mkdir(self.path(out))
            running = {tap: subprocess.Popen([ONETAP, "export", tap, "--to", "c", "-o", self.path(out), "--name", "net"],
                                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                       for tap in taps}
            errors = {tap: process.communicate()[1] for tap, process in running.items()}
            done = [tap for tap in taps if running[tap].returncode == 0]
            self.assertEqual(len(done), 1, errors)
            self.assertEqual(self.contents(self.path(out)), folders[done[0]])
        self.assertEqual([name for name in os.listdir(self.dir) if "partial" in name], [])

    def contents(self, folder):
        content = {}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as file:
                content[name] = file.read()
        return content

    def test_json(self):
        tap = self.network()
        sizes = json.loads(self.succeeds("export", tap, "--to", "c", "-o", self.path("c"), "--json").stdout)
        small, dense = sizes["network"], sizes["dense"]
        self.assertLess(small["weights"], dense["weights"])
        self.assertEqual(dense["positions"], 0)
        self.assertLess(small["ram_rows"], small["ram_layers"])
        with open(self.path("c", "small.h")) as file:
            self.assertIn(f"#define SMALL_ARENA_BYTES {small['ram']}\n", file.read())

    def test_a_name_is_made_from_the_file(self):
        for stem, name in (("model-int8", "model_int8"), ("3x3 net", "net_3x3_net"), ("for", "for_net"), ("_a", "net__a")):
            result = self.succeeds("export", self.network(name=stem), "--to", "c", "-o", self.path(name))
            self.assertIn(f"functions and files are called {name}", result.stderr)
            self.assertIn(name + "_weights.c", os.listdir(self.path(name)))
        # Targets of CMake's own, and a header that would hide C's.
        for taken in ("test", "all", "stdint"):
            self.succeeds("export", self.network(name=taken), "--to", "c", "-o", self.path(taken))
            self.assertIn(taken + "_net.h", os.listdir(self.path(taken)))
            self.refused(2, f"that neither CMake nor C uses, got '{taken}'", "export", self.path(taken + ".tap"), "--to",
                         "c", "--name", taken, "-o", self.path("n"))
        if has("cmake", "cc"):
            subprocess.run(["cmake", "-S", self.path("test"), "-B", self.path("build")], check=True, stdout=subprocess.DEVNULL)
        result = self.succeeds("export", self.network(name="model-int8"), "--to", "c", "--name", "mine", "-o", self.path("m"))
        self.assertIn("mine.h", os.listdir(self.path("m")))
        self.assertEqual(result.stderr, "")

    def test_refuses_flags_of_other_formats(self):
        tap = self.network()
        for to, flags, own in (("onnx", ["--flash", "256K"], "c"), ("onnx", ["--ram", "9K"], "c"), ("onnx", ["--json"], "c"),
                               ("safetensors", ["--name", "net"], "c"), ("safetensors", ["--schedule", "rows"], "c"),
                               ("onnx", ["--input", "pixels"], "c"),
                               ("c", ["--opset", "13"], "onnx"), ("safetensors", ["--form", "shift"], "onnx"),
                               ("c", ["--batch", "1"], "onnx"), ("onnx", ["--checkpoint", "best"], "safetensors")):
            self.refused(2, f"[export] {flags[0]} is a flag of --to {own}, got --to {to}", "export", tap, "--to", to, *flags,
                         "-o", self.path("out"))
        self.refused(2, "--checkpoint needs a run", "export", tap, "--to", "safetensors", "--checkpoint", "last", "-o",
                     self.path("out"))
        self.assertEqual(os.listdir(self.dir), ["small.tap"])

    def test_refuses(self):
        tap = self.network()
        self.refused(2, "--to", "export", tap, "--to", "cpp", "-o", self.path("c"))
        self.refused(4, "cannot open " + self.path("none.tap"), "export", self.path("none.tap"), "--to", "c", "-o", self.path("c"))
        self.write("full/file", "mine")
        self.refused(2, "expected an empty folder", "export", tap, "--to", "c", "-o", self.path("full"))
        self.refused(2, "got a file", "export", tap, "--to", "c", "-o", self.path("full", "file"))
        self.refused(2, f"got the file {self.path('full', 'file')}", "export", tap, "--to", "c", "-o",
                     self.path("full", "file", "deep"))
        self.refused(2, "got an empty name", "export", tap, "--to", "c", "-o", "")
        os.symlink("nothing", self.path("full", "link"))
        self.refused(2, "got a link to nothing", "export", tap, "--to", "c", "-o", self.path("full", "link"))
        os.remove(self.path("full", "link"))
        self.refused(2, "C identifier, got 'my net'", "export", tap, "--to", "c", "--name", "my net", "-o", self.path("c"))
        self.refused(2, "C identifier, got 'for'", "export", tap, "--to", "c", "--name", "for", "-o", self.path("c"))
        self.refused(2, "of flash, got", "export", tap, "--to", "c", "--flash", "4K", "-o", self.path("c"))
        self.refused(2, " (the largest layer, 'layer3.0.conv2', has ", "export", tap, "--to", "c", "--flash", "4K", "-o",
                     self.path("c"))
        refused = self.refused(2, "of RAM, got", "export", tap, "--to", "c", "--ram", "1K", "-o", self.path("c"))
        self.assertIn("layer '", refused.stderr)
        # Input, output and stack are RAM too.
        sizes = json.loads(self.succeeds("export", tap, "--to", "c", "-o", self.path("sized"), "--json").stdout)["network"]
        self.assertEqual(sizes["input_and_output"], 4 * (3 * 32 * 32 + 10))
        self.assertEqual(sizes["ram_in_all"], sizes["ram"] + sizes["input_and_output"] + sizes["stack"])
        shutil.rmtree(self.path("sized"))
        self.refused(2, "(less with --input pixels)", "export", tap, "--to", "c", "--ram", sizes["ram_in_all"] - 1, "-o",
                     self.path("sized"))
        self.succeeds("export", tap, "--to", "c", "--ram", sizes["ram_in_all"], "-o", self.path("sized"))
        shutil.rmtree(self.path("sized"))
        self.refused(2, "--ram", "export", tap, "--to", "c", "--ram", "much", "-o", self.path("c"))
        self.write("bent.txt", "onetap-net 1\nx = input 3x8x8\nc = conv x out=4\ns = silu c\np = gap s\nf = linear p out=2\n")
        bent = self.network(self.path("bent.txt"), name="bent")
        self.refused(2, "got silu ('s')", "export", bent, "--to", "c", "-o", self.path("c"))
        self.assertEqual(sorted(os.listdir(self.dir)), ["bent.tap", "bent.txt", "full", "small.tap"])
        self.assertEqual(os.listdir(self.path("full")), ["file"])


class Processors(CommandTest):
    def dump(self, share, kind, schedule, arch="resnet8", width="8", given="floats"):
        folder = self.path("net")
        shutil.rmtree(folder, ignore_errors=True)
        words = subprocess.run([DUMP_C, folder, arch, width, share, kind, schedule, given], check=True, stdout=subprocess.PIPE,
                               text=True).stdout.split()
        self.printed = dict(zip(words[::2], map(int, words[1::2])))
        return [os.path.join(folder, name) for name in SOURCES]

    def passes_on_cortex_m(self, cpu, sources, what):
        self.runs_on_cortex_m(cpu, ["-DFUNCTION_PREFIX=net", "-DNET_NO_MAIN", *sources, BOARD + "/selftest.c"], what)

    def runs_on_cortex_m(self, cpu, arguments, what):
        flags, board = CORTEX[cpu]
        program = self.path("net.elf")
        subprocess.run(["arm-none-eabi-gcc", *STRICT, "-mthumb", *flags, "-I" + BOARD, *arguments, BOARD + "/start.c",
                        "-nostartfiles", "-T", BOARD + "/board.ld", "-o", program], check=True)
        result = subprocess.run(["qemu-system-arm", "-M", board, "-nographic", "-monitor", "none", "-serial",
                                 "none", "-semihosting-config", "enable=on,target=native", "-kernel", program],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                timeout=300)
        self.assertEqual(result.returncode, 0, (what, cpu, result.stdout))
        return result.stdout

    @unittest.skipUnless(has("arm-none-eabi-gcc", "arm-none-eabi-nm"), "no arm-none-eabi-gcc")
    def test_flash_is_what_is_printed(self):
        for share, kind, arch, width, *given in SIZED_NETWORKS:
            sources = self.dump(share, kind, "rows", arch, width, *given)[:2]
            objects = [self.path(os.path.basename(source) + ".o") for source in sources]
            for source, made in zip(sources, objects):
                subprocess.run(["arm-none-eabi-gcc", "-std=c99", "-Os", "-mthumb", *CORTEX["M4"][0], "-c", source, "-o", made],
                               check=True)
            text = subprocess.run(["arm-none-eabi-nm", "-S", "-t", "d", "--defined-only", *objects], check=True,
                                  stdout=subprocess.PIPE, text=True).stdout
            symbols = [words for line in text.splitlines() if len(words := line.split()) == 4]
            def size(kinds):
                return sum(int(words[1]) for words in symbols if words[2] in kinds and not words[3].startswith("zero"))
            printed, what = self.printed, (share, kind, arch, width, *given)
            self.assertEqual(size("rR"), printed["weights"] + printed["positions"] + printed["tables"], what)
            self.assertEqual(size("bBdDC"), 0, what)
            self.assertTrue(0.98 * size("tT") <= printed["code"] <= 1.2 * size("tT"), (what, size("tT"), printed["code"]))

    @unittest.skipUnless(has("arm-none-eabi-gcc", "qemu-system-arm"), "no arm-none-eabi-gcc or qemu-system-arm")
    def test_the_stack_is_what_is_printed(self):
        for share, kind, arch, width, *given in SIZED_NETWORKS:
            sources = self.dump(share, kind, "rows", arch, width, *given)[:2]
            measured = int(self.runs_on_cortex_m("M4", ["-DFUNCTION_PREFIX=net", "-DPREFIX=NET", '-DHEADER="net.h"',
                                                        "-I" + self.path("net"), *sources, BOARD + "/stack.c"], arch))
            printed = self.printed["stack"]
            self.assertTrue(measured <= printed <= 1.15 * measured, (share, kind, arch, width, given, measured, printed))

    @unittest.skipUnless(has("arm-none-eabi-gcc", "arm-none-eabi-nm"), "no arm-none-eabi-gcc")
    def test_flash_without_dsp_instructions_is_what_is_printed(self):
        self.write("net.txt", "onetap-net 1\nx = input 3x32x32\nc = conv x out=64 kernel=7 pad=3 stride=2 bias=1\nr = relu c\n"
                              "g = gap r\nfc = linear g out=10\n")
        self.succeeds("nets", self.path("net.txt"), "--tap", self.path("net.tap"))
        self.succeeds("quantize", self.path("net.tap"), "--data", "shapes:train=20,test=10", "-o", self.path("bytes.tap"))
        export = ["export", self.path("bytes.tap"), "--to", "c", "-o", self.path("c"), "--json"]
        sizes = json.loads(self.succeeds(*export).stdout)["network"]
        # By hand: 49 words of 4 bytes for each of 64 outputs, in place of the 37 that 147 inputs need.
        self.assertEqual(sizes["flash_without_dsp"] - sizes["flash"], 64 * 4 * (49 - 37))
        shutil.rmtree(self.path("c"))
        self.refused(2, f"bytes of flash, got {sizes['flash_without_dsp']} ", *export, "--flash", sizes["flash"])
        self.succeeds(*export)
        made = self.path("weights.o")
        subprocess.run(["arm-none-eabi-gcc", "-std=c99", "-Os", "-mthumb", "-mcpu=cortex-m0plus", "-c",
                        self.path("c", "bytes_weights.c"), "-o", made], check=True)
        text = subprocess.run(["arm-none-eabi-nm", "-S", "-t", "d", made], check=True, stdout=subprocess.PIPE, text=True).stdout
        weights = [int(line.split()[1]) for line in text.splitlines() if "_weights" in line]
        self.assertIn(64 * 4 * 49, weights)

    @unittest.skipUnless(has("arm-none-eabi-gcc", "qemu-system-arm"), "no arm-none-eabi-gcc or qemu-system-arm")
    def test_self_tests_pass_on_cortex_m(self):
        for network in NETWORKS:
            sources = self.dump(*network)
            for cpu in CORTEX:
                self.passes_on_cortex_m(cpu, sources, network)

    @unittest.skipUnless(has("arm-none-eabi-gcc", "qemu-system-arm"), "no arm-none-eabi-gcc or qemu-system-arm")
    def test_self_tests_of_pixels_pass_on_cortex_m(self):
        for share, kind in (("4x4", "int8"), ("1", "int8"), ("4x4", "float")):
            sources = self.dump(share, kind, "rows", given="pixels")
            for cpu in ("M0+", "M4"):
                self.passes_on_cortex_m(cpu, sources, (share, kind, "pixels"))

    # What --input pixels is for: each of these rows was divided by the scale in floats, which a Cortex-M0+ has not.
    @unittest.skipUnless(has("arm-none-eabi-gcc", "qemu-system-arm"), "no arm-none-eabi-gcc or qemu-system-arm")
    def test_pixels_are_read_with_fewer_instructions(self):
        count = os.path.join(BOARD, "..", "..", "..", "scripts", "count-c")
        first = {}
        for given in ("floats", "pixels"):
            self.dump("4x4", "int8", "rows", given=given)
            lines = subprocess.run([count, self.path("net"), "m0"], check=True, stdout=subprocess.PIPE, text=True).stdout
            first[given] = int(lines.splitlines()[0].split()[1])
        self.assertLess(20 * first["pixels"], first["floats"])

    @unittest.skipUnless(has("arm-none-eabi-gcc", "qemu-system-arm"), "no arm-none-eabi-gcc or qemu-system-arm")
    def test_every_convolution_with_vectors_passes(self):
        for arch, width, share in VECTOR_NETWORKS:
            self.passes_on_cortex_m("M55", self.dump(share, "int8", "rows", arch, width), (arch, share))

    @unittest.skipUnless(has("arm-none-eabi-gcc", "qemu-system-arm"), "no arm-none-eabi-gcc or qemu-system-arm")
    def test_every_convolution_with_dsp_instructions_passes(self):
        for arch, width, share in [*DSP_NETWORKS, *VECTOR_NETWORKS]:
            self.passes_on_cortex_m("M4", self.dump(share, "int8", "rows", arch, width), (arch, width, share))

    @unittest.skipUnless(has("arm-none-eabi-gcc", "qemu-system-arm"), "no arm-none-eabi-gcc or qemu-system-arm")
    def test_vectors_and_dsp_instructions_scale_as_plain_c_does(self):
        source, weights, _ = self.dump("4x4", "int8", "rows")
        arguments = [f'-DSOURCE="{source}"', BOARD + "/requantize.c", weights]
        for cpu in ("M55", "M4", "M7"):
            self.runs_on_cortex_m(cpu, arguments, "requantize")

    @unittest.skipUnless(has("arm-none-eabi-gcc", "qemu-system-arm"), "no arm-none-eabi-gcc or qemu-system-arm")
    def test_sums_of_listed_words_are_exact(self):
        source, weights, _ = self.dump("4x4", "int8", "rows")
        arguments = [f'-DSOURCE="{source}"', BOARD + "/listed.c", weights]
        for cpu in ("M4", "M0+"):
            for level in ("-O0", "-O2"):
                self.runs_on_cortex_m(cpu, [level, *arguments], "listed")

    @unittest.skipUnless(has("arm-none-eabi-gcc", "qemu-system-arm"), "no arm-none-eabi-gcc or qemu-system-arm")
    def test_dsp_instructions_need_no_optimization(self):
        for share in ("4x4", "dense"):
            sources = self.dump(share, "int8", "rows", width="12")
            for level in ("-O0", "-Os"):
                self.passes_on_cortex_m("M4", [level, *sources], (share, level))

    def assembly(self, source, flags):
        return subprocess.run(["arm-none-eabi-gcc", *STRICT, *flags, "-S", source, "-o", "-"], check=True,
                              capture_output=True, text=True).stdout

    @unittest.skipUnless(has("arm-none-eabi-gcc"), "no arm-none-eabi-gcc")
    def test_vectors_and_dsp_instructions_are_used_where_they_are(self):
        source = self.dump("4x4", "int8", "rows")[0]
        for cpu, (vectors, dsp) in {"M55": (True, False), "M55 without MVE": (False, True), "M7": (False, True),
                                    "M4": (False, True), "M0+": (False, False)}.items():
            text = self.assembly(source, ["-mthumb", *CORTEX[cpu][0]])
            self.assertEqual(("vmladava" in text, "smlad" in text), (vectors, dsp), cpu)

    @unittest.skipUnless(has("arm-none-eabi-gcc"), "no arm-none-eabi-gcc")
    def test_other_arm_processors_get_plain_c(self):
        for share in ("4x4", "1"):
            sources = self.dump(share, "int8", "rows")
            for flags in PLAIN_ARM:
                subprocess.run(["arm-none-eabi-gcc", *STRICT, *flags, "-c", sources[0], "-o", self.path("net.o")], check=True)
                self.assertFalse("smlad" in self.assembly(sources[0], flags), flags)

    @unittest.skipUnless(has("clang"), "no clang")
    def test_clang_does_not_warn_of_vectors_and_dsp_instructions(self):
        for arch, width, share in [*VECTOR_NETWORKS, ("resnet8", "8", "dense"), ("resnet8", "8", "4x4-drop")]:
            sources = self.dump(share, "int8", "rows", arch, width)[:2]
            for cpu in ("M55", "M4"):
                for source in sources:  # to machine code: registers for assembly are found last
                    subprocess.run(["clang", "--target=arm-none-eabi", "-mthumb", "-ffreestanding", *STRICT, *CORTEX[cpu][0],
                                    "-c", source, "-o", os.devnull], check=True)

    def test_self_tests_pass_on_other_linux_machines(self):
        tried = False
        for machine, (compiler, emulator) in LINUX.items():
            if not has(compiler, emulator):
                continue
            for network in NETWORKS:
                subprocess.run([compiler, *STRICT, "-static", *self.dump(*network), "-o", self.path("net.elf")], check=True)
                result = subprocess.run([emulator, self.path("net.elf")], timeout=300)
                self.assertEqual(result.returncode, 0, (machine, network))
                tried = True
        if not tried:
            self.skipTest("no cross compiler with qemu-user")


if __name__ == "__main__":
    unittest.main()
