"""The networks in models/: each opens and is what its card says. What checks that is tried on a folder made here."""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

from support import ONETAP, CommandTest, main, needs_no_training, onetap

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "scripts" / "model-card"
DATA = "shapes:train=16,test=40"


def card_rows(text):
    return dict(re.findall(r"^\| ([\w-]+) \| (.*) \|$", text, re.MULTILINE))


def whole(text):
    return float(text.replace(",", ""))


def problems_of(model, card):
    """What is wrong with one network and its card, one line each."""
    if not card.exists():
        return [f"{model.name}: no card {card.name}"]
    text = card.read_text()
    rows, content, found = card_rows(text), model.read_bytes(), []
    result = onetap("count", model, "--json")
    if result.returncode != 0:
        return [f"{model.name}: {result.stderr.strip()}"]
    count = json.loads(result.stdout)
    expected = {"file": f"`{model.name}`", "SHA-256": f"`{hashlib.sha256(content).hexdigest()}`"}
    for key, value in expected.items():
        if rows.get(key) != value:
            found.append(f"{card.name}: expected {key} {value}, got {rows.get(key)}")
    for key, value in (("bytes", len(content)), ("parameters", count["params"]), ("MACs", count["macs"])):
        if key not in rows or not re.fullmatch(r"[\d,.]+", rows[key]) or whole(rows[key]) != round(value, 1):
            found.append(f"{card.name}: expected {key} {value}, got {rows.get(key)}")
    accuracy = re.fullmatch(r"(\d+\.\d\d) %", rows.get("accuracy", ""))
    if not accuracy or float(accuracy.group(1)) > 100:
        found.append(f"{card.name}: expected an accuracy, got {rows.get('accuracy')}")
    if not rows.get("data"):
        found.append(f"{card.name}: expected the data set")
    if not re.search(rf"^    onetap eval {re.escape(model.name)} --data \S+$", text, re.MULTILINE):
        found.append(f"{card.name}: expected the command that gives the accuracy")
    return found


def problems(folder):
    models = sorted(folder.glob("*.tap"))
    cards = {path.stem for path in folder.glob("*.md")} - {"README"}
    found = [problem for model in models for problem in problems_of(model, model.with_suffix(".md"))]
    return found + [f"{name}.md: a card without {name}.tap" for name in sorted(cards - {model.stem for model in models})]


@needs_no_training
class Models(CommandTest):
    def test_every_model_is_what_its_card_says(self):
        self.assertTrue((ROOT / "models" / "README.md").exists())
        self.assertEqual(problems(ROOT / "models"), [])


@needs_no_training
class Cards(CommandTest):
    def model(self, name="tiny"):
        path = self.path("models", name + ".tap")
        os.makedirs(self.path("models"), exist_ok=True)
        self.succeeds("nets", "resnet8", "--width", 4, "--method", "sal", "--tap", path)
        return path

    def write_card(self, *arguments):
        return subprocess.run([sys.executable, str(SCRIPT), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, env=dict(os.environ, ONETAP=ONETAP))

    def folder(self):
        return pathlib.Path(self.path("models"))

    def good(self):
        result = self.write_card(self.model(), "--data", DATA)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(problems(self.folder()), [])
        return self.folder() / "tiny.md"

    def test_a_card_says_what_the_file_is(self):
        rows = card_rows(self.good().read_text())
        # ResNet-8 of width 4 with one tap in each 3x3 slice but the first convolution's: 32-bit words of weights, the
        # biases that batch norms were folded into, and a position of 4 bits for each slice.
        slices = 4 * 4 + 4 * 4 + 4 * 8 + 8 * 8 + 8 * 16 + 16 * 16
        weights = 27 * 4 + slices + 4 * 8 + 8 * 16 + 16 * 10
        biases = 4 + 4 + 4 + 8 + 8 + 8 + 16 + 16 + 16 + 10
        self.assertEqual(whole(rows["parameters"]), weights + biases + slices * 4 / 32)
        macs = 32 * 32 * (27 * 4 + 4 * 4 + 4 * 4) + 16 * 16 * (4 * 8 + 8 * 8 + 4 * 8) + \
            8 * 8 * (8 * 16 + 16 * 16 + 8 * 16) + 16 * 10
        self.assertEqual(whole(rows["MACs"]), macs)
        self.assertEqual(rows["data"], DATA)
        answer = json.loads(self.succeeds("eval", self.path("models", "tiny.tap"), "--data", DATA, "--json").stdout)
        self.assertEqual(rows["accuracy"], f"{100 * answer[0]['accuracy']:.2f} %")

    def refuses(self, part):
        found = problems(self.folder())
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def test_cards_that_lie_are_found(self):
        card = self.good()
        text = card.read_text()
        for key, part in (("parameters", "expected parameters"), ("MACs", "expected MACs"), ("bytes", "expected bytes"),
                          ("SHA-256", "expected SHA-256"), ("accuracy", "expected an accuracy"), ("data", "data set")):
            row = re.search(rf"^\| {key} \| .* \|$", text, re.MULTILINE).group()
            card.write_text(text.replace(row, f"| {key} |  |"))
            self.refuses(part)
        card.write_text(text.replace("    onetap eval", "    onetap check"))
        self.refuses("the command that gives the accuracy")
        card.unlink()
        self.refuses("no card tiny.md")

    def test_files_that_changed_are_found(self):
        self.good()
        path = self.folder() / "tiny.tap"
        content = bytearray(path.read_bytes())
        content[-3] ^= 1  # a weight's last bits: it opens, and is another network
        path.write_bytes(content)
        self.refuses("expected SHA-256")
        path.write_bytes(content[:-1])
        self.refuses("tiny.tap: onetap: ")
        path.unlink()
        self.refuses("a card without tiny.tap")

    def test_a_run_brings_its_recipe_and_no_places(self):
        run = self.path("run")
        os.makedirs(run)
        os.rename(self.model(), os.path.join(run, "model.tap"))
        self.write("run/config.toml", f'arch = "resnet8"\nwidth = 4\ninit = "{self.dir}/teacher/weights.safetensors"\n'
                                      f'data = "{DATA}"\nepochs = 3\n\n[provenance]\nhost = "workstation"\n')
        result = self.write_card(run, "--name", "mine", "--into", self.path("models"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.strip(), self.path("models", "mine.md"))
        self.assertEqual(problems(self.folder()), [])
        text = (self.folder() / "mine.md").read_text()
        self.assertIn('epochs = 3\n```', text)
        self.assertIn('init = "weights.safetensors"', text)
        self.assertNotIn(self.dir, text)
        self.assertNotIn("workstation", text)

    def test_what_it_cannot_write_a_card_for(self):
        model = self.model()
        for code, part, arguments in (
                (2, "expected --data", [model]), (2, "NAME.tap", [model, "--data", DATA, "--name", "other"]),
                (4, "expected a run directory", [model, "--run", self.path("nowhere")]),
                (4, "onetap eval failed", [model, "--data", "cifar10:" + self.path("nowhere")]),
                (4, "got none", [self.path("nothing.tap"), "--data", DATA])):
            result = self.write_card(*arguments)
            self.assertEqual(result.returncode, code, (arguments, result.stderr))
            self.assertIn(part, result.stderr)
        self.assertEqual(sorted(path.name for path in self.folder().iterdir()), ["tiny.tap"])


if __name__ == "__main__":
    main()
