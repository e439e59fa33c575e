"""The modules of onetap/ as their CMake targets say: each links the modules that its files include, no more and no fewer, and
none includes one above it. Reads the sources; needs no build."""
import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"])([^>"]+)[>"]', re.MULTILINE)

# The only files that may include headers of LibTorch, by the first part of their path.
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
TORCH_HEADERS = {"nn/torch.h", "ranks/c10d.h"}
# Headers of its CUDA half are for sources that are compiled with it, and for no header.
TORCH_CUDA = re.compile(r"^(ATen|c10)/cuda/")


def declared_modules(cmake):
    """{module: the modules it links} in the order of their declaration, and the name of the first module of the half with
    LibTorch."""
    text = re.sub(r"#[^\n]*", "", cmake)
    split = text.find("if(ONETAP_TRAINING)")
    modules, first_of_training = {}, None
    for call in re.finditer(r"onetap_module\((\w+)([^)]*)\)", re.sub(r"\$<[^>]*>", "", text)):
        name, arguments = call.group(1), call.group(2).split()
        linked, keyword = set(), None
        for argument in arguments:
            if argument in ("SOURCES", "LINK", "PRIVATE_LINK"):
                keyword = argument
            elif keyword in ("LINK", "PRIVATE_LINK") and argument.startswith("onetap_"):
                linked.add(argument[len("onetap_"):])
        if first_of_training is None and text.find(f"onetap_module({name}") > split >= 0:
            first_of_training = name
        modules[name] = linked
    return modules, first_of_training


def includes_of(path):
    return INCLUDE.findall(path.read_text(encoding="utf-8"))


def problems(root):
    """What is wrong with the modules under `root`, one line each."""
    modules, first_of_training = declared_modules((root / "CMakeLists.txt").read_text(encoding="utf-8"))
    found = []
    order = list(modules)
    folders = {path.name for path in root.iterdir() if path.is_dir()}
    for name in sorted(folders - set(order)):
        found.append(f"{name}: a folder without a module in CMakeLists.txt")
    for name in order:
        included = {}
        for path in sorted((root / name).rglob("*")):
            if path.suffix not in SOURCES:
                continue
            where = path.relative_to(root).as_posix()
            for quote, target in includes_of(path):
                if TORCH.match(target) and where not in TORCH_HEADERS:
                    if not (TORCH_CUDA.match(target) and path.suffix == ".cpp"):
                        found.append(f"{where}: includes <{target}>, which only {' and '.join(sorted(TORCH_HEADERS))} may")
                if quote == '"' and target.startswith("onetap/"):
                    module = target.split("/")[1]
                    if module != name:
                        included.setdefault(module, where)
                    if not (root.parent / target).exists():
                        found.append(f"{where}: includes {target}, which is not there")
        for module in sorted(set(included) - modules[name]):
            found.append(f"{name}: includes {module} ({included[module]}) and does not link onetap_{module}")
        for module in sorted(modules[name] - set(included)):
            found.append(f"{name}: links onetap_{module} and includes nothing of it")
        for module in sorted(set(included) & set(order)):
            if order.index(module) > order.index(name):
                found.append(f"{name}: includes {module} ({included[module]}), a module above it")
        for module in sorted(modules[name] & set(order)):
            if first_of_training and order.index(name) < order.index(first_of_training) <= order.index(module):
                found.append(f"{name}: needs no LibTorch and links onetap_{module}, which does")
    return found


class Modules(unittest.TestCase):
    def test_link_what_they_include(self):
        self.assertEqual(problems(ROOT / "onetap"), [])

    def test_all_are_seen(self):
        modules, first_of_training = declared_modules((ROOT / "onetap" / "CMakeLists.txt").read_text(encoding="utf-8"))
        self.assertEqual(first_of_training, "nn")
        for name in ("base", "graph", "runtime", "batches", "fused", "train", "freeze"):
            self.assertIn(name, modules)
        self.assertNotIn("train", modules["freeze"])
        self.assertNotIn("fused", modules["batches"])


class Constants(unittest.TestCase):
    def test_batch_norms_epsilon_has_one_home(self):
        with_it = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "onetap").rglob("*"))
                   if path.suffix in SOURCES and re.search(r"\b(1e-0?5|0\.00001)f?\b", path.read_text(encoding="utf-8"))]
        self.assertEqual(with_it, ["onetap/graph/batch_norm.h"])


# Small houses with one thing wrong, so that the test above is known to see it.
class Violations(unittest.TestCase):
    CMAKE = ("onetap_module(low SOURCES low/low.cpp)\nonetap_module(high SOURCES high/high.cpp LINK onetap_low)\n"
             "if(ONETAP_TRAINING)\n  onetap_module(nn SOURCES nn/nn.cpp LINK onetap_low $<BUILD_INTERFACE:onetap_torch>)\nendif()\n")
    FILES = {"low/low.h": "", "low/low.cpp": '#include "onetap/low/low.h"\n', "high/high.h": "",
             "high/high.cpp": '#include "onetap/low/low.h"\n', "nn/torch.h": "#include <torch/torch.h>\n",
             "nn/nn.cpp": '#include "onetap/low/low.h"\n#include "onetap/nn/torch.h"\n'}

    def found(self, files=None, cmake=None):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder) / "onetap"
            for name, text in {"CMakeLists.txt": cmake or self.CMAKE, **self.FILES, **(files or {})}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            return problems(root)

    def check(self, part, **house):
        found = self.found(**house)
        self.assertTrue(any(part in line for line in found), f"'{part}' not in {found}")

    def test_nothing_is_found_where_nothing_is_wrong(self):
        self.assertEqual(self.found(), [])

    def test_an_include_without_a_link(self):
        self.check("high: includes nn (high/high.h) and does not link onetap_nn",
                   files={"high/high.h": '#include "onetap/nn/torch.h"\n'})

    def test_a_link_without_an_include(self):
        self.check("high: links onetap_low and includes nothing of it", files={"high/high.cpp": ""})

    def test_a_module_above(self):
        self.check("low: includes high (low/low.h), a module above it", files={"low/low.h": '#include "onetap/high/high.h"\n'})

    def test_torch_outside_its_header(self):
        self.check("nn/nn.cpp: includes <torch/nn.h>", files={"nn/nn.cpp": "#include <torch/nn.h>\n"})
        self.check("nn/x.h: includes <c10/cuda/CUDAStream.h>", files={"nn/x.h": "#include <c10/cuda/CUDAStream.h>\n"})

    def test_a_header_that_is_gone(self):
        self.check("includes onetap/low/old.h, which is not there",
                   files={"high/high.cpp": '#include "onetap/low/old.h"\n'})

    def test_a_folder_without_a_module(self):
        self.check("spare: a folder without a module", files={"spare/spare.h": ""})


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1] == "--list":
        for module, linked in declared_modules((ROOT / "onetap" / "CMakeLists.txt").read_text(encoding="utf-8"))[0].items():
            print(f"{module}: {', '.join(sorted(linked))}")
    else:
        unittest.main()
