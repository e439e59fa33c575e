"""Heat maps of a run directory made by hand: formats, choices and errors."""
import csv
import io
import json
import os
import struct
import subprocess
import xml.etree.ElementTree as ElementTree

from support import ONETAP, CommandTest, main, onetap

SVG = "{http://www.w3.org/2000/svg}"
LAYERS = ["conv1"] + [f"layer{stage}.{block}.conv{i}" for stage in (1, 2, 3) for block in (0, 1, 2) for i in (1, 2)]


def layer(name, kept, kernel=(3, 3)):
    return {"name": name, "kernel": list(kernel), "mean_p": [1 / len(kept)] * len(kept), "kept": kept,
            "max_p": [0.05] * 20, "agreement": None}


def line(epoch, layers):
    return json.dumps({"step": 10 * epoch, "epoch": epoch, "temperature": 1.0, "layers": layers}) + "\n"


CENTRE = [0, 0, 0, 0, 64, 0, 0, 0, 0]
CORNERS = [16, 0, 16, 0, 0, 0, 16, 0, 16]


class HeatmapTest(CommandTest):
    def run_directory(self, attention, method="sal"):
        self.write("run/config.toml", 'arch = "resnet20"\n')
        text = self.succeeds("nets", "resnet20", "--width", 4, "--method", method, "--text").stdout
        self.write("run/network.txt", text)
        if attention is not None:
            self.write("run/attention.jsonl", attention)
        return self.path("run")

    def usual_run(self):
        return self.run_directory(line(2, [layer(name, CORNERS) for name in LAYERS]) +
                                  line(4, [layer(name, CENTRE) for name in LAYERS]))

    def rows(self, text):
        return list(csv.DictReader(io.StringIO(text)))


class Formats(HeatmapTest):
    def test_csv_on_stdout_and_in_a_file(self):
        run = self.usual_run()
        text = self.succeeds("heatmap", run).stdout
        self.assertEqual(text.splitlines()[0], "layer,row,column,dy,dx,kept,share")
        rows = self.rows(text)
        self.assertEqual(len(rows), 8 * 9)
        self.assertEqual([row["layer"] for row in rows[::9]], LAYERS[:4] + LAYERS[-4:])
        for row in rows:
            centre = row["dy"] == row["dx"] == "0"
            self.assertEqual((row["kept"], float(row["share"])), ("64", 1.0) if centre else ("0", 0.0))
        path = self.path("heat.csv")
        self.assertEqual(self.succeeds("heatmap", run, "-o", path).stdout, path + "\n")
        with open(path) as file:
            self.assertEqual(file.read(), text)

    def test_svg_has_a_titled_cell_per_position(self):
        path = self.path("heat.svg")
        self.succeeds("heatmap", self.usual_run(), "-o", path)
        root = ElementTree.parse(path).getroot()
        self.assertEqual(root.tag, SVG + "svg")
        self.assertEqual(root.get("role"), "img")
        self.assertEqual(root.get("viewBox"), f"0 0 {root.get('width')} {root.get('height')}")
        self.assertEqual(root.find(SVG + "title").text,
                         "resnet20 after epoch 4, 8 of 19 layers: kept taps per kernel position")
        cells = [rect for rect in root.findall(SVG + "rect") if rect.find(SVG + "title") is not None]
        self.assertEqual(len(cells), 8 * 9)
        self.assertEqual(cells[4].find(SVG + "title").text, "conv1, row 1, column 1 (dy 0, dx 0): 100.00 %, 64 kept")
        self.assertEqual(len({cell.get("fill") for cell in cells[4::9]}), 1)
        self.assertEqual(len({cell.get("fill") for cell in cells}), 2)
        labels = [text.text for text in root.findall(SVG + "text")]
        self.assertEqual(labels.count("100"), 8)
        for name in LAYERS[:4] + LAYERS[-4:]:
            self.assertIn(name, labels)

    def test_png_is_a_png_twice_the_size_of_the_svg(self):
        run = self.usual_run()
        result = onetap("heatmap", run, "-o", self.path("heat.png"))
        if "without libpng" in result.stderr:
            self.assertEqual(result.returncode, 2)
            self.skipTest("built without libpng")
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.path("heat.png"), "rb") as file:
            head = file.read(24)
        self.assertEqual(head[:8], b"\x89PNG\r\n\x1a\n")
        self.succeeds("heatmap", run, "-o", self.path("heat.svg"))
        root = ElementTree.parse(self.path("heat.svg")).getroot()
        self.assertEqual(struct.unpack(">II", head[16:24]), (2 * int(root.get("width")), 2 * int(root.get("height"))))

    def test_json(self):
        run = self.usual_run()
        result = json.loads(self.succeeds("heatmap", run, "--json").stdout)
        self.assertEqual((result["source"], result["network"], result["epoch"], result["what"]),
                         (run, "resnet20", 4, "kept"))
        self.assertNotIn("output", result)
        self.assertEqual(result["layers"][0],
                         {"layer": "conv1", "kernel": [3, 3], "kept": CENTRE, "share": [k / 64 for k in CENTRE]})
        path = self.path("heat.svg")
        self.assertEqual(json.loads(self.succeeds("heatmap", run, "--json", "-o", path).stdout)["output"], path)
        self.assertTrue(os.path.exists(path))


class Choices(HeatmapTest):
    def test_all_layers(self):
        rows = self.rows(self.succeeds("heatmap", self.usual_run(), "--all").stdout)
        self.assertEqual([row["layer"] for row in rows[::9]], LAYERS)

    def test_epoch(self):
        run = self.usual_run()
        rows = self.rows(self.succeeds("heatmap", run, "--epoch", 2).stdout)
        self.assertEqual([float(row["share"]) for row in rows[:9]], [k / 64 for k in CORNERS])
        self.refused(2, "among the 2 tested epochs in 2..4, got 3", "heatmap", run, "--epoch", 3)

    def test_fixed_shifts_are_in_the_network(self):
        self.write("run/config.toml", 'arch = "resnet20"\n')
        self.write("run/network.txt",
                   self.succeeds("nets", "resnet20", "--width", 12, "--method", "shift", "--text").stdout)
        run = self.succeeds("heatmap", self.path("run"), "--all").stdout
        # 12 inputs: one for each of 9 positions, the other 3 stay in the centre; of 12 outputs each.
        self.assertEqual([row["kept"] for row in self.rows(run)[:9]], ["12"] * 4 + ["48"] + ["12"] * 4)
        for flags in (["--epoch", 1], ["--what", "mean-p"]):
            self.refused(2, "got fixed shifts", "heatmap", self.path("run"), *flags)

    def test_mean_attention(self):
        run = self.usual_run()
        for row in self.rows(self.succeeds("heatmap", run, "--what", "mean-p").stdout):
            self.assertEqual(row["kept"], "")
            self.assertAlmostEqual(float(row["share"]), 1 / 9, places=6)
        self.succeeds("heatmap", run, "--what", "mean-p", "-o", self.path("mean.svg"))
        self.assertIn("mean attention", ElementTree.parse(self.path("mean.svg")).getroot().find(SVG + "title").text)

    def test_dark(self):
        run = self.usual_run()
        backgrounds = []
        for flags in ([], ["--dark"]):
            self.succeeds("heatmap", run, "-o", self.path("heat.svg"), *flags)
            backgrounds.append(ElementTree.parse(self.path("heat.svg")).getroot().find(SVG + "rect").get("fill"))
        self.assertEqual(backgrounds[0], "#ffffff")
        self.assertLess(int(backgrounds[1][1:3], 16), 64)

    def test_odd_names_and_mixed_kernels(self):
        layers = [layer('a<b>&"c", \u00e4', [1, 2, 3], (1, 3)), layer("five", list(range(25)), (5, 5)),
                  layer("x" * 200, CENTRE)]
        run = self.run_directory(line(1, layers))
        self.succeeds("heatmap", run, "-o", self.path("heat.svg"))
        texts = [text.text for text in ElementTree.parse(self.path("heat.svg")).getroot().iter(SVG + "text")]
        self.assertIn('a<b>&"c", \u00e4', texts)
        self.assertTrue(any("x\u2026x" in text for text in texts))
        rows = self.rows(self.succeeds("heatmap", run).stdout)
        self.assertEqual(len(rows), 3 + 25 + 9)
        self.assertEqual(rows[2]["layer"], 'a<b>&"c", \u00e4')
        self.assertEqual((rows[2]["dy"], rows[2]["dx"], rows[2]["share"]), ("0", "1", "0.5"))

    def test_completion_offers_the_values(self):
        script = ('source <("$1" completion bash); COMP_WORDS=(onetap heatmap --what ""); COMP_CWORD=3; _onetap; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        result = subprocess.run(["bash", "-c", script, "bash", ONETAP], text=True, stdout=subprocess.PIPE, check=True)
        self.assertEqual(result.stdout.split(), ["kept", "mean-p"])


class Errors(HeatmapTest):
    def test_usage(self):
        run = self.usual_run()
        self.refused(2, "SOURCE is required", "heatmap")
        self.refused(2, "ending in .svg, .png or .csv", "heatmap", run, "-o", self.path("heat.pdf"))
        self.refused(2, "got an empty one", "heatmap", run, "-o", "")
        self.refused(2, "--what", "heatmap", run, "--what", "nonsense")
        self.refused(4, "expected at least 8 bytes, got 1", "heatmap", self.write("model.bin", b"x"))

    def test_a_damaged_line_costs_itself(self):
        good = self.usual_run()
        expected = self.succeeds("heatmap", good).stdout
        with open(os.path.join(good, "attention.jsonl")) as file:
            first, last = file.readlines()
        run = self.run_directory("nonsense\n" + first + first.replace("step", "stop") + last)
        result = self.succeeds("heatmap", run)
        self.assertEqual(result.stdout, expected)
        self.assertIn("attention.jsonl:1); 1 more lines are left out", result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1)

    def test_bad_runs(self):
        self.refused(4, "expected a run directory", "heatmap", self.path("missing"))
        self.refused(4, "got none yet", "heatmap", self.run_directory(None))
        self.refused(4, "got none yet", "heatmap", self.run_directory('{"step": 1'))
        self.refused(4, "attention.jsonl:1", "heatmap", self.run_directory("{}\n"))
        self.refused(4, "got none in epoch 1", "heatmap", self.run_directory(line(1, [])))
        self.refused(4, "got a dense network", "heatmap", self.run_directory(None, method="conv"))

    def test_unwritable_output(self):
        run = self.usual_run()
        self.refused(2, "heat.svg", "heatmap", run, "-o", self.path("missing", "heat.svg"))
        self.assertEqual(sorted(os.listdir(self.dir)), ["run"])


if __name__ == "__main__":
    main()
