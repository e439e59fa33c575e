"""The Debian packages of a build: what they hold and need, and that they work where they are unpacked."""
import ctypes
import email.utils
import glob
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from run_test import png

BUILD = os.environ["ONETAP_BUILD"]
VERSION = os.environ["ONETAP_VERSION"]
MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz", "corpus", "tap", "all-ops")
CHANGELOG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "CHANGELOG.md")


def output(*command, **kwargs):
    result = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)
    if result.returncode != 0:
        raise AssertionError(f"{command}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="onetap-packages-")
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        output("cpack", "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-B", cls.dir)
        cls.packages = {output("dpkg-deb", "-f", path, "Package").strip(): path for path in glob.glob(cls.dir + "/*.deb")}
        cls.root = os.path.join(cls.dir, "root")
        for path in cls.packages.values():
            output("dpkg-deb", "-x", path, cls.root)
        cls.onetap = os.path.join(cls.root, "usr/bin/onetap")

    def field(self, package, name):
        return output("dpkg-deb", "-f", self.packages[package], name).strip()

    def files(self, package):
        return [line.split(None, 5)[5].split(" -> ")[0] for line in output("dpkg-deb", "-c", self.packages[package]).splitlines()]

    def one(self, pattern):
        found, = glob.glob(os.path.join(self.root, pattern))
        return found

    def test_each_part_is_a_package_with_its_version_and_licence(self):
        self.assertEqual(set(self.packages), {"libonetap0", "libonetap-dev", "onetap"})
        for package in self.packages:
            self.assertEqual(self.field(package, "Version"), VERSION + "-1")
            self.assertIn(f"./usr/share/doc/{package}/copyright", self.files(package))
            for name in self.files(package):
                self.assertTrue(name in ("./",) or name.startswith("./usr/"), name)
            self.assertIn(f"./usr/share/doc/{package}/THIRD-PARTY.txt", self.files(package))

    def test_each_has_a_synopsis_of_its_own(self):
        synopses = {}
        for package in self.packages:
            synopses[package], *text = self.field(package, "Description").splitlines()
            self.assertGreater(len(text), 0)
        self.assertEqual(synopses, {"libonetap0": "runs convolutional networks frozen to .tap files",
                                    "libonetap-dev": "headers and libraries of the onetap runtime",
                                    "onetap": "trains, prunes, counts and runs shift networks"})

    def test_the_changelog_has_the_date_of_the_release(self):
        with open(CHANGELOG) as file:
            line = next(line for line in file if line.startswith(f"## {VERSION} "))
        with gzip.open(self.one("usr/share/doc/onetap/changelog.Debian.gz"), "rt") as file:
            entry = file.read()
        author, date = re.search(r"^ -- (.*)  (.*)$", entry, re.MULTILINE).groups()
        self.assertEqual(author, self.field("onetap", "Maintainer"))
        day = email.utils.parsedate_to_datetime(date).strftime("%Y-%m-%d")
        released = re.search(r"\((\d+-\d+-\d+)\)", line)
        if released:
            self.assertEqual(day, released.group(1))
        else:
            self.assertGreater(day, "2026-01-01")

    def test_they_need_what_their_programs_link(self):
        for library in ("libc6", "libstdc++6", "libpng16-16", "libturbojpeg0"):
            self.assertRegex(self.field("onetap", "Depends"), rf"(^|, ){re.escape(library)} ")
        self.assertNotIn("libpng", self.field("libonetap0", "Depends"))
        self.assertNotIn("torch", self.field("onetap", "Depends"))
        self.assertIn(f"libonetap0 (= {VERSION}-1)", self.field("libonetap-dev", "Depends"))

    def test_static_libraries_need_what_they_link(self):
        """libonetap-dev: a package for every library that its CMake files name."""
        files = glob.glob(self.root + "/usr/lib/*/cmake/onetap/onetap*.cmake")
        text = "".join(pathlib.Path(path).read_text() for path in files)
        for named, package in (("PNG::PNG", "libpng-dev"), ("turbojpeg", "libturbojpeg0-dev"), ("libwebp", "libwebp-dev"),
                               ("protobuf::", "libprotobuf-dev")):
            if re.search(named, text, re.IGNORECASE):
                self.assertRegex(self.field("libonetap-dev", "Depends"), rf"(^|, ){package}(,|$)")

    def test_no_program_looks_for_libraries_in_the_build_folder(self):
        for path in (self.onetap, self.one("usr/lib/*/onetap/libonetap_verbs.so"), self.one("usr/lib/*/libonetap.so.0")):
            for places in re.findall(r"R(?:UN)?PATH.*\[(.*)\]", output("readelf", "-d", path)):
                for place in places.split(":"):
                    self.assertTrue(place.startswith(("$ORIGIN", "/usr/lib/")), place)

    def test_the_command_classifies_an_image(self):
        image = png(os.path.join(self.dir, "a.png"), (10, 120, 200))
        model = os.path.join(self.dir, "net.tap")
        output(self.onetap, "nets", "resnet8", "--width", 4, "--tap", model)
        self.assertEqual(output(self.onetap, "run", model, image, "--top", 3).count("%"), 3)

    def test_the_library_reads_a_network(self):
        library = ctypes.CDLL(self.one("usr/lib/*/libonetap.so.0"))
        library.onetap_version.restype = ctypes.c_char_p
        self.assertEqual(library.onetap_version().decode(), VERSION)
        model = ctypes.c_void_p()
        library.onetap_open.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]
        self.assertEqual(library.onetap_open(MODEL.encode(), None, ctypes.byref(model)), 0)
        shape = (ctypes.c_int64 * 3)()
        self.assertEqual(library.onetap_input_shape(model, shape), 0)
        self.assertGreater(shape[0], 0)
        library.onetap_close(model)

    def test_without_the_training_module_it_says_what_to_install(self):
        result = subprocess.run([self.onetap, "train", "--out", "x"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("onetap-training", result.stderr)

    def test_a_training_module_that_cannot_be_used_is_an_error_of_one_line(self):
        folder = os.path.join(self.dir, "moved")  # programs find their libraries wherever the whole is put
        shutil.copytree(os.path.join(self.root, "usr"), folder, symlinks=True)
        module = os.path.join(os.path.dirname(glob.glob(folder + "/lib/*/onetap/libonetap_verbs.so")[0]), "libonetap_training.so")

        def answer(*arguments):
            return subprocess.run([folder + "/bin/onetap", *arguments], capture_output=True, text=True)

        with open(module, "w") as file:
            file.write("no library")
        for arguments in (["train", "--out", "x"], ["train", "--help"], ["bench", "train"], ["completion", "bash"]):
            result = answer(*arguments)
            self.assertEqual((result.returncode, result.stdout, len(result.stderr.splitlines())), (1, "", 1), arguments)
            self.assertIn("cannot load the training module: " + folder, result.stderr)
            self.assertIn("/onetap/libonetap_training.so: ", result.stderr)
        self.assertEqual(answer("--help").returncode, 0)
        self.assertNotIn("not installed", answer("--help").stdout)
        shutil.copy(self.one("usr/lib/*/libonetap.so.0"), module)
        result = answer("freeze", "x")
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"expected the training module of onetap {VERSION}, got another library", result.stderr)

    def test_recipes_come_along(self):
        self.assertIn("./usr/share/onetap/recipes/quick.toml", self.files("onetap"))
        folder = os.path.join(self.dir, "elsewhere")
        os.makedirs(folder)

        def sweep(recipe):
            return subprocess.run([self.onetap, "sweep", recipe, "--grid", "seed=0", "--dry-run", "--program", "/bin/true",
                                   "--out", "x"], capture_output=True, text=True, cwd=folder)

        for name in ("quick.toml", "recipes/quick.toml"):
            result = sweep(name)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("using " + os.path.realpath(self.root) + "/usr/share/onetap/recipes/quick.toml", result.stderr)
        # A file of the user's own comes first.
        with open(os.path.join(folder, "quick.toml"), "w") as file:
            file.write("epochs = 'many'\n")
        self.assertEqual(sweep("quick.toml").returncode, 2)
        result = sweep("recipes/none.toml")
        self.assertEqual((result.returncode, len(result.stderr.splitlines())), (2, 1))
        self.assertIn("expected a recipe, got recipes/none.toml: neither it nor " +
                      os.path.realpath(self.root) + "/usr/share/onetap/recipes/none.toml is a file", result.stderr)
        self.assertIn("got mine/quick.toml: there is no such file", sweep("mine/quick.toml").stderr)

    def test_every_verb_has_a_man_page_without_errors(self):
        listed = output(self.onetap, "--help").split("Verbs:")[1].split("\n\n")[0]
        verbs = re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)
        self.assertIn("count", verbs)
        pages = {name.rsplit("/", 1)[1] for name in self.files("onetap") if "/man1/" in name}
        for verb in verbs:
            self.assertIn(f"onetap-{verb}.1.gz", pages)
        self.assertIn("onetap-data-fetch.1.gz", pages)
        if shutil.which("man") is None:
            self.skipTest("no man")
        for name in ("onetap.1.gz", "onetap-count.1.gz"):
            page = subprocess.run(["man", "--warnings", "-l", os.path.join(self.root, "usr/share/man/man1", name)],
                                  capture_output=True, text=True, env=dict(os.environ, MANWIDTH="100", LC_ALL="C.UTF-8"))
            self.assertEqual((page.returncode, page.stderr), (0, ""))
        for text in ("--json", "onetap count resnet20 --width 83 --method sal", "EXIT STATUS"):
            self.assertIn(text, page.stdout)

    def test_completions_of_three_shells(self):
        share = "usr/share/"
        for place, text in (("bash-completion/completions/onetap", "complete -o default"),
                            ("zsh/vendor-completions/_onetap", "#compdef onetap"),
                            ("fish/vendor_completions.d/onetap.fish", "complete -c onetap")):
            with open(self.one(share + place)) as file:
                self.assertIn(text, file.read())


if __name__ == "__main__":
    missing = [tool for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps", "readelf") if shutil.which(tool) is None]
    if missing:
        print("skipped: no " + ", ".join(missing))
        sys.exit(77)
    unittest.main()
