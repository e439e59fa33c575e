"""onetap report: the verb, and its page in a headless Chromium."""
import csv
import io
import json
import os
import re

import browser
from fake_runs import make_run, write_lines, write_state
from report_page import PageTest
from support import CommandTest, main, onetap

HOSTILE = "a</script><script>document.title='broken'<b>"


class Verb(CommandTest):
    def test_one_run_gets_its_page_inside(self):
        run = make_run(self.path("run"), epochs=3)
        result = self.succeeds("report", run)
        self.assertEqual(result.stdout, os.path.join(run, "report.html") + "\n")
        self.assertEqual(result.stderr, "")
        self.assertIn("<!DOCTYPE html>", self.page(os.path.join(run, "report.html")))

    def test_several_runs_get_one_page_here(self):
        runs = [make_run(self.path("a"), epochs=2), make_run(self.path("b"), method="conv", epochs=0)]
        self.assertEqual(self.succeeds("report", *runs, cwd=self.dir).stdout, "report.html\n")
        data = re.search(r'id="data">(.*?)</script>', self.page(self.path("report.html")), re.S).group(1)
        self.assertEqual([run["label"] for run in json.loads(data)["runs"]], runs)
        other = self.path("other.html")
        self.assertEqual(self.succeeds("report", *runs, "-o", other).stdout, other + "\n")
        self.assertTrue(os.path.exists(other))

    def test_refuses_what_is_no_run_and_leaves_nothing_behind(self):
        run = make_run(self.path("run"), epochs=1)
        self.refused(2, "RUN is required", "report")
        self.refused(4, "expected a run directory", "report", self.path("missing"))
        os.makedirs(self.path("empty"))
        result = onetap("report", self.path("empty"), self.path("missing"), "-o", self.path("x.html"))
        self.assertEqual((result.returncode, result.stdout), (4, ""))
        self.assertEqual(result.stderr.count("expected a run directory"), 2)
        self.assertIn("expected a run to show, got none in ", result.stderr)
        self.assertEqual(sorted(os.listdir(self.dir)), ["empty", "run"])
        self.assertNotIn("report.html", os.listdir(run))

    def test_a_folder_stands_for_the_runs_in_it(self):
        runs = [make_run(self.path("sweep", name), epochs=1) for name in ("seed=0", "seed=1")]
        self.write("sweep/results.csv", "run\n")
        self.write("sweep/seed=0.log", "words\n")
        os.makedirs(self.path("sweep/.trash/x"))
        result = self.succeeds("report", self.path("sweep"))
        page = self.path("sweep/report.html")
        self.assertEqual(result.stdout, page + "\n")
        self.assertIn("2 runs", result.stderr)
        data = re.search(r'id="data">(.*?)</script>', self.page(page), re.S).group(1)
        self.assertEqual([run["label"] for run in json.loads(data)["runs"]], runs)
        result = self.succeeds("report", runs[0], self.path("sweep/results.csv"), "-o", self.path("x.html"))
        self.assertIn("warning: [report] expected a run directory", result.stderr)

    def damaged(self, name, text):
        """The page's data about three runs, one of them with a damaged file."""
        runs = [make_run(self.path(label), epochs=2) for label in ("good", "bad", "fine")]
        self.write(os.path.join("bad", name), text)
        result = self.succeeds("report", *runs, "-o", self.path("x.html"))
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("warning: "), result.stderr)
        self.assertIn(name, result.stderr)
        data = re.search(r'id="data">(.*?)</script>', self.page(self.path("x.html")), re.S).group(1)
        shown = json.loads(data)["runs"]
        self.assertEqual([run["label"] for run in shown], runs)
        self.assertEqual([len(run["notices"]) for run in shown], [0, 1, 0])
        self.assertEqual([run["epochs_done"] for run in shown][::2], [2, 2])
        return shown[1]

    def test_int8_files_of_runs(self):
        runs = [make_run(self.path(label), epochs=2) for label in ("both", "floats")]
        for run in runs:
            self.succeeds("nets", "resnet8", "--width", 4, "--tap", os.path.join(run, "model.tap"))
        int8 = os.path.join(runs[0], "model-int8.tap")
        report = json.loads(self.succeeds("quantize", os.path.join(runs[0], "model.tap"), "--data",
                                          "shapes:train=16,test=40", "-o", int8, "--json").stdout)
        self.succeeds("report", *runs, "-o", self.path("x.html"), "--latency")
        data = re.search(r'id="data">(.*?)</script>', self.page(self.path("x.html")), re.S).group(1)
        both, floats = json.loads(data)["runs"]
        self.assertEqual((both["int8_bytes"], both["int8_accuracy"]),
                         (os.path.getsize(int8), report["stages"][1]["accuracy"]))
        self.assertLess(both["int8_bytes"], both["file_bytes"])
        for run, key in ((both, "latency_ms"), (both, "int8_latency_ms"), (floats, "latency_ms")):
            self.assertGreater(run[key], 0)
        self.assertEqual([floats[key] for key in ("int8_bytes", "int8_accuracy", "int8_latency_ms")], [None] * 3)

    def test_damaged_int8_file(self):
        self.assertIsNone(self.damaged("model-int8.tap", "x" * 100)["int8_bytes"])

    def test_damaged_metrics(self):
        self.assertEqual(self.damaged("metrics.jsonl", "\x01\n" * 3)["epochs_done"], 0)

    def test_damaged_attention(self):
        run = self.damaged("attention.jsonl", '{"epoch": 1}\n')
        self.assertEqual((run["epochs_done"], run["attention"]), (2, None))

    def test_damaged_config(self):
        run = self.damaged("config.toml", "epochs = = 3\n")
        self.assertEqual((run["epochs_done"], run["epochs_total"], run["network"]), (2, None, "resnet20"))

    def test_damaged_network(self):
        run = self.damaged("network.txt", "nonsense")
        self.assertEqual((run["epochs_done"], run["epochs_total"], run["network"]), (2, 40, None))

    def test_what_is_no_run_does_not_stop_the_others(self):
        run = make_run(self.path("run"), epochs=1)
        os.makedirs(self.path("empty"))
        result = self.succeeds("report", run, self.path("empty"), "-o", self.path("x.html"))
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertIn("expected a run directory", result.stderr)
        self.assertTrue(os.path.exists(self.path("x.html")))

    def test_output_that_cannot_be_written_is_a_failure(self):
        run = make_run(self.path("run"), epochs=1)
        self.refused(2, "got no folder", "report", run, "-o", self.path("no/such/folder/x.html"))

    def page(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read()


class Page(PageTest):
    def test_sections_have_headings_and_charts(self):
        self.open(make_run(self.path("sal")), make_run(self.path("dense"), method="conv", seed=2))
        self.assertEqual(self.texts("section h2"), [
            "Summary", "Where the runs come from", "Learning curves", "Soft-versus-hard gap", "Accuracy by class",
            "Which taps are kept", "Confidence of the attention",
            "Tap agreement between epochs", "Accuracy against memory", "Counts by layer"])
        self.assertEqual(self.count("#curves .chart svg"), 4)
        # Losses: two for each run. Accuracies: soft and hard, and one of the dense run, whose forms are one network.
        # Learning rates: one for each. Temperature: one.
        self.assertEqual(self.count("#curves .chart svg path.curve"), 2 * 2 + (2 + 1) + 2 + 1)
        names = self.texts("#curves .panel:nth-child(2) .legend li")
        self.assertEqual([name.strip() for name in names], ["sal, soft", "sal, hard", "dense"])
        for section in ("gap", "confidence", "agreement", "memory"):
            self.assertEqual(self.count(f"#{section} .chart svg"), 1, section)
        self.assertEqual(self.count("#memory .chart .star"), 2)
        rows = self.texts("#summary tbody tr")
        self.assertIn("40 / 40", rows[0])
        self.assertIn("38,618", rows[0])
        self.assertIn("272,474", rows[1])
        self.assertIn("dense", rows[1])

    def test_headline_and_order_of_the_summary(self):
        self.open(make_run(self.path("sal"), best=0.91), make_run(self.path("dense"), method="conv", best=0.92, seed=2))
        # 272,474 words of the dense network and 38,618 of the pruned one.
        self.assertRegex(self.texts("#summary .headline")[0], r"^sal against dense: 7\.1x fewer words, −\d\.\d points$")
        self.assertEqual([text[:4] for text in self.texts("#summary th")][:3], ["Run", "Hard", "Soft"])
        self.open(make_run(self.path("alone")))
        self.assertRegex(self.texts("#summary .headline")[0], r"^alone: 7\.1x fewer words than the same network with every tap")
        self.open(make_run(self.path("other"), method="conv"))
        self.assertEqual(self.count("#summary .headline"), 0)

    def test_headline_compares_networks_of_one_width(self):
        wide = make_run(self.path("wide"), width=83, best=0.94)
        narrow = make_run(self.path("narrow"), width=16, best=0.90)
        dense = make_run(self.path("dense"), method="conv", best=0.92, seed=2)
        better = make_run(self.path("better"), method="conv", best=0.93, seed=3)
        huge = make_run(self.path("huge"), method="conv", width=96, best=0.95, seed=4)
        # The dense network of width 16 has fewer words than the pruned one of width 83.
        self.assertRegex(self.headline(dense, wide)[0], r"^wide: \d\.\dx fewer words than the same network with every tap")
        # The network of the same width, in any order of the arguments, and the best of several.
        for runs in ((wide, dense, better, narrow), (better, narrow, wide, dense)):
            self.assertRegex(self.headline(*runs)[0], r"^narrow against better: 7\.1x fewer words, −\d\.\d points$")
        # Else a larger one.
        self.assertRegex(self.headline(dense, wide, huge)[0], r"^wide against huge: \d+\.\dx fewer words, −\d\.\d points$")

    def test_headline_compares_runs_of_one_test_set(self):
        few = make_run(self.path("few"), best=0.99, limit=5)
        all_images = make_run(self.path("all"), best=0.90)
        dense = make_run(self.path("dense"), method="conv", best=0.92, seed=2)
        # 10,000 images are all that CIFAR-10 has to test on.
        whole = make_run(self.path("whole"), method="conv", best=0.91, seed=3, limit=10000)
        self.assertRegex(self.headline(few, dense)[0],
                         r"^few: 7\.1x fewer words than the same network .*\(cifar10, limit=5\)$")
        self.assertIn("Not all runs are tested on the same images", self.texts("#summary .note")[0])
        self.assertEqual(self.texts("#memory h3"), ["Accuracy against memory, cifar10, limit=5",
                                                    "Accuracy against memory, CIFAR-10"])
        self.assertRegex(self.headline(few, dense, all_images)[0],
                         r"^all against dense: 7\.1x fewer words, −\d\.\d points \(CIFAR-10\)$")
        self.assertRegex(self.headline(all_images, whole)[0], r"^all against whole: 7\.1x fewer words, −\d\.\d points$")
        self.assertEqual(self.count("#summary .note"), 0)
        self.assertEqual(self.count("#memory h3"), 1)

    def test_headline_takes_validation_sets_for_no_test_sets(self):
        runs = [make_run(self.path("sal"), epochs=4, total=4, validated=True),
                make_run(self.path("dense"), epochs=4, total=4, method="conv", seed=2)]
        with open(os.path.join(runs[0], "config.toml")) as file:
            text = file.read()
        self.write("sal/config.toml", text.replace("limit = 0", "validation = 0.1"))
        self.assertRegex(self.headline(*runs)[0], r"^sal against dense: ")

    def test_runs_that_ended_early_are_not_called_unfinished(self):
        runs = [make_run(self.path("ended"), epochs=5, ended=True), make_run(self.path("waiting"), epochs=6)]
        # Its state says that it is still to be tested.
        runs.append(make_run(self.path("untested"), epochs=7))
        write_state(runs[2], ended=True, epoch_logged=False)
        self.open(*runs)
        self.assertEqual(self.texts("#summary .note"), [
            "Not finished when this page was made: waiting, untested.",
            "Ended early, when the accuracy no longer rose (patience): ended."])
        rows = self.texts("#summary tbody tr")
        self.assertIn("5 / 40ended early", rows[0])
        self.assertEqual(["ended early" in row for row in rows], [True, False, False])

    def test_validation_data_are_called_so(self):
        runs = [make_run(self.path(name), epochs=4, total=4, validated=name == "validated", seed=i)
                for i, name in enumerate(("validated", "tested"))]
        accuracy, loss = "#curves .panel:nth-child(2)", "#curves .panel:first-child"
        for run, kind in zip(runs, ("validation", "test")):
            self.open(run)
            self.assertEqual(self.texts("#gap h3"), [f"Soft minus hard {kind} accuracy"])
            self.assertEqual(self.texts(accuracy + " h3"), [f"{kind.capitalize()} accuracy"])
            self.assertEqual([name.strip() for name in self.texts(loss + " .legend li")], ["train", kind])
        self.open(*runs, make_run(self.path("dense"), method="conv", epochs=4, total=4))
        self.assertEqual(self.texts("#gap h3"), ["Soft minus hard accuracy"])
        self.assertEqual(self.texts(accuracy + " h3"), ["Accuracy"])
        self.assertEqual([name.strip() for name in self.texts("#gap .legend li")], ["validated, validation", "tested, test"])
        self.assertEqual([name.strip() for name in self.texts(accuracy + " .legend li")],
                         ["validated, validation soft", "validated, validation hard", "tested, test soft",
                          "tested, test hard", "dense, test"])
        self.assertEqual([name.strip() for name in self.texts(loss + " .legend li")],
                         ["validated, train", "validated, validation", "tested, train", "tested, test",
                          "dense, train", "dense, test"])

    def test_an_accuracy_on_validation_data_is_no_headline(self):
        run = make_run(self.path("early"), epochs=2, total=4, validated=True)
        self.assertEqual(self.headline(run), [])
        self.assertIn("validation", self.texts("#summary tbody tr")[0])
        self.assertIn("early (validation)", self.texts("#memory .panel")[0])

    def test_where_runs_come_from(self):
        one = make_run(self.path("one"), epochs=2)
        two = make_run(self.path("two"), width=8, epochs=2)
        text = open(os.path.join(one, "config.toml")).read()
        self.write("one/config.toml", text + 'command = "onetap train --t1 <0.1>"\nstarted = "2026-01-02T03:04:05Z"\n'
                   'extended_1 = "onetap train --extend 5"\nextended_2 = "onetap train --extend 7"\n'
                   'extended_10 = "onetap train --extend 9"\n')
        with open(os.path.join(one, "config.toml"), "a") as file:
            file.write('host = "secret-workstation"\n')
        self.open(one, two)
        with open(self.path("page.html"), encoding="utf-8") as file:
            self.assertFalse("secret-workstation" in file.read(), "the page may be mailed")
        words = self.texts("#provenance dl")[0]
        self.assertIn("onetap train --t1 <0.1>", words)
        self.assertIn("2026-01-02T03:04:05Z", words)
        self.assertRegex(words, r"(?s)--t1.*--extend 5.*--extend 7.*--extend 9")
        self.assertEqual(self.texts("#recipe-difference tbody td"), ["width", "16", "8"])
        self.open(one)
        rows = self.texts("#recipe-difference tbody tr")
        self.assertIn("width–16", rows)
        self.assertIn("epochs30040", rows)

    def test_curves_hide_and_have_a_log_scale(self):
        self.open(make_run(self.path("sal")))
        loss = "#curves .panel:first-child"
        self.assertEqual(self.count(loss + " path.curve"), 2 + 2)  # and two swatches
        self.browser.click(loss + " .legend li:first-child button")
        self.assertEqual(self.count(loss + " .chart path.curve"), 1)
        self.assertEqual(self.count(loss + " .legend button[aria-pressed=false]"), 1)
        self.browser.click(loss + " .legend li:last-child button")
        self.assertIn("All hidden", self.texts(loss + " .chart")[0])
        self.browser.click(loss + " .legend li:last-child button")
        linear = self.script("document.querySelector(arguments[0]).getAttribute('d')", loss + " .chart path.curve")
        self.browser.click(loss + " .control.small")
        self.assertIn("Cross-entropy (log scale)", self.texts(loss + " .chart")[0])
        self.assertNotEqual(linear, self.script("document.querySelector(arguments[0]).getAttribute('d')",
                                                loss + " .chart path.curve"))

    def test_names_in_csv_files_are_no_formulas(self):
        make_run(self.path("=cmd|calc"), epochs=2)
        self.open("=cmd|calc", cwd=self.dir)
        summary = self.script("decodeURIComponent(document.querySelector('#summary .downloads a').href.split(',')"
                              ".slice(1).join(','))")
        self.assertEqual(list(csv.reader(io.StringIO(summary)))[1][0], "'=cmd|calc")

    def test_csv_files(self):
        run = make_run(self.path("a,b"), epochs=2)
        self.open(run)
        files = self.script("[...document.querySelectorAll('#summary .downloads a')]"
                            ".map((one) => [one.download, decodeURIComponent(one.href.split(',').slice(1).join(','))])")
        (name, summary), (_, curves) = files
        self.assertEqual(name, "onetap-summary.csv")
        rows = list(csv.reader(io.StringIO(summary)))
        self.assertEqual((len(rows), rows[0][:3], rows[1][0]), (2, ["run", "hard", "soft"], run))
        self.assertEqual(len(rows[0]), len(rows[1]))
        rows = list(csv.DictReader(io.StringIO(curves)))
        self.assertEqual([row["epoch"] for row in rows], ["1", "2"])
        with open(os.path.join(run, "metrics.jsonl")) as file:
            last = json.loads(file.readlines()[-1])
        self.assertEqual(float(rows[1]["hard"]), last["acc_hard"])

    def test_other_data_stand_apart_from_the_papers_points(self):
        self.open(make_run(self.path("cifar")), make_run(self.path("shapes"), data="shapes", seed=2))
        titles = self.texts("#memory h3")
        self.assertEqual(titles, ["Accuracy against memory, CIFAR-10", "Accuracy against memory, shapes"])
        self.assertEqual(self.count("#memory .panel:nth-child(1) .chart .star"), 1)
        self.assertEqual(self.count("#memory .panel:nth-child(2) .chart .star"), 1)
        self.assertGreater(self.count("#memory .panel:nth-child(1) .chart .mark"), 10)
        self.assertEqual(self.count("#memory .panel:nth-child(2) .chart .mark"), 0)
        self.open(make_run(self.path("folder"), data="folder:/home/me/photos,limit=5"))
        self.assertEqual(self.texts("#memory h3"), ["Accuracy against memory, folder:photos,limit=5"])
        self.assertIn("no run here uses it", self.texts("#memory .note")[0])

    def test_accuracy_by_class(self):
        run = make_run(self.path("run"), epochs=2)
        self.open(run)
        self.assertIn("eval RUN --per-class", self.texts("#classes .note")[0])
        self.write("run/classes.json", json.dumps({"step": 782, "form": "hard", "top5": 0.9, "classes": ["ant", "<b>ee", "cow"],
                                                   "confusion": [8, 2, 0, 1, 9, 0, 0, 0, 0]}))
        self.open(run)
        rows = self.texts("#classes tbody tr")
        self.assertEqual(rows[:3], ["ant1080.00 %<b>ee (2)", "<b>ee1090.00 %ant (1)", "cow0–"])
        self.assertEqual(self.texts("#confusion tbody td")[:3], ["8", "2", ""])
        self.write("run/classes.json", "{}")
        self.assertIn("classes.json", self.succeeds("report", run, "-o", self.path("x.html")).stderr)

    def test_taps_that_never_moved_are_not_called_settled(self):
        run = make_run(self.path("run"), epochs=4)
        lines = [json.loads(line) for line in open(os.path.join(run, "attention.jsonl"))]
        for line in lines:
            for layer in line["layers"]:
                layer["agreement"] = None if line["epoch"] == 1 else 1.0
        self.open(run)
        self.assertEqual(self.count("#agreement .note"), 0)
        self.write("run/attention.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        self.open(run)
        self.assertEqual(self.count("#agreement .note"), 0, "counts differ: agreement is rounded")
        for line in lines:
            for layer, first in zip(line["layers"], lines[0]["layers"]):
                layer["kept"] = first["kept"]
        self.write("run/attention.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        self.open(run)
        unmoved = "the kept taps never changed from the first record (epoch 1) on: no taps were learned after it"
        self.assertIn(unmoved, self.texts("#agreement .note")[0])
        # P of random logits at a high temperature: even on average.
        for line in lines:
            for layer in line["layers"]:
                layer["mean_p"] = [1 / 9] * 9
        self.write("run/attention.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        self.open(run)
        self.assertIn(unmoved, self.texts("#agreement .note")[0])
        for line in lines:
            for layer in line["layers"]:
                layer["kept"] = [sum(layer["kept"])] + [0] * 8
        self.write("run/attention.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        self.open(run)
        self.assertIn("run: no taps were learned. P is the same at every position", self.texts("#agreement .note")[0])

    def test_curves_of_several_runs_differ_without_colour(self):
        self.open(*(make_run(self.path(name), epochs=3, seed=i) for i, name in enumerate("abc")))
        marks = ("[...document.querySelectorAll('#gap .legend li svg')]"
                 ".map((one) => one.lastChild.tagName + one.lastChild.getAttribute('d'))")
        self.assertEqual(len(set(self.script(marks))), 3)
        self.assertEqual(self.count("#curves .panel:first-child .chart .curve.dashed"), 3)

    def test_heat_maps_follow_their_controls(self):
        self.open(make_run(self.path("sal")))
        self.assertEqual(self.count("#maps figure"), 8)
        first = self.texts("#maps figure:first-child text")
        self.assertEqual(len(first), 9)
        self.assertTrue(all(re.fullmatch(r"\d+%", text) for text in first), first)
        self.assertAlmostEqual(sum(int(text[:-1]) for text in first), 100, delta=5)
        scale = self.texts("#maps .scale")

        self.browser.click("#maps-all")
        self.assertEqual(self.count("#maps figure"), 18)
        self.assertEqual(self.texts("#maps .scale"), scale)
        self.browser.click("#maps-all")
        self.assertEqual(self.count("#maps figure"), 8)

        self.assertIn("40, T = 0.02", self.texts("#maps output"))
        self.script("(() => { const slider = document.getElementById('maps-epoch'); slider.value = 0;"
                    "slider.dispatchEvent(new Event('input')); })()")
        self.assertTrue(self.texts("#maps output")[0].startswith("1, T = "))
        early = self.texts("#maps figure:first-child text")
        self.assertNotEqual(early, first)
        self.assertEqual(self.texts("#maps .scale"), scale, "one scale for all epochs")

        self.browser.click("#maps input[value=mean_p] + span")
        self.assertIn("Mean of P", self.texts("#maps .scale")[0])
        self.browser.hover("#maps figure:first-child svg")
        self.assertRegex(self.browser.text("#tip"), r"layer1\.0\.conv1, shift 0 down, 0 right.*mean of P.*\d %")

    def test_no_temperature_is_drawn_where_taps_are_fixed(self):
        run = make_run(self.path("run"), epochs=4, total=4)
        for name in ("metrics.jsonl", "attention.jsonl"):
            with open(os.path.join(run, name)) as file:
                lines = [json.loads(line) for line in file]
            write_lines(os.path.join(run, name),
                        [{**line, "temperature": 1e-6} if line["epoch"] >= 3 else line for line in lines])
        self.open(run)
        self.assertEqual(self.count("#curves .panel:nth-child(4) .chart .mark"), 2)
        self.assertEqual(self.texts("#maps output"), ["4, taps fixed"])

    def test_soft_and_hard_are_one_curve_where_they_are_equal(self):
        runs = [make_run(self.path("equal")), make_run(self.path("other"), seed=7)]
        path = os.path.join(runs[0], "metrics.jsonl")
        with open(path) as file:
            lines = [json.loads(line) for line in file]
        for line in lines:
            if line["acc_hard"] is not None:
                line["acc_soft"] = line["acc_hard"]
        with open(path, "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        legend = "#curves .panel:nth-child(2) .legend li"
        self.open(*runs)
        self.assertEqual([name.strip() for name in self.texts(legend)],
                         ["equal, soft and hard", "other, soft", "other, hard"])
        self.assertEqual(self.count("#curves .panel:nth-child(2) .chart svg path.curve"), 3)

    def test_layers_and_runs_can_be_chosen(self):
        runs = [make_run(self.path("one")), make_run(self.path("two"), width=8, epochs=5, seed=7)]
        self.open(*runs)
        self.choose("#maps-run", "1")
        self.assertIn("5, T = ", self.texts("#maps output")[0])
        self.choose("#confidence-layer", "1:3")
        self.assertEqual(self.texts("#confidence h3"), ["layer1.1.conv2, two"])
        before = self.count("#agreement .chart .curve")
        self.choose("#agreement-layer", "0:2")
        self.assertEqual(self.count("#agreement .chart .curve"), before + 1)
        self.choose("#layers-run", "1")
        self.assertIn("216", self.texts("#layers tbody tr:nth-child(2)")[0])

    def test_values_are_read_by_mouse_and_by_keyboard(self):
        self.open(make_run(self.path("sal")))
        self.browser.hover("#curves .panel:nth-child(2) svg[role=img]")
        self.assertRegex(self.browser.text("#tip"), r"Epoch \d+soft\d+\.\d\d %hard\d+\.\d\d %")
        self.browser.hover("#memory svg[role=img]")
        self.assertRegex(self.browser.text("#tip"), r"accuracy\d+\.\d\d %memory, words[\d,]+")
        self.browser.hover("h1")
        self.assertTrue(self.script("document.getElementById('tip').hidden"))
        for selector, words in (("#gap .chart svg", r"Epoch 39: sal .* points"),
                                ("#confidence .chart svg", r"Epoch 39: max P 0.95 to 1.00 "),
                                ("#maps figure svg", r"layer1.0.conv1, shift \+1 down, 0 right: ")):
            self.script("document.querySelector(arguments[0]).focus()", selector)
            self.browser.type(selector, "\ue014\ue012")  # right, left
            self.assertRegex(self.browser.text("#spoken"), words)

    def test_layer_table_sorts_and_filters(self):
        self.open(make_run(self.path("sal")))
        names = "#layers tbody td:nth-child(2)"
        self.assertEqual(self.texts(names)[:2], ["input", "conv1"])
        self.browser.click("#layers th:nth-child(6) button")
        self.assertEqual(self.count("#layers th:nth-child(6)[aria-sort=descending]"), 1)
        params = [float((text or "0").replace(",", "")) for text in self.texts("#layers tbody td:nth-child(6)")]
        self.assertEqual(params, sorted(params, reverse=True))
        self.browser.click("#layers th:nth-child(6) button")
        self.assertEqual(self.texts("#layers tbody td:nth-child(6)")[-1], "4,608")
        self.browser.type("#layers-filter", "DOWNSAMPLE.0")
        self.assertEqual(self.texts(names), ["layer2.0.downsample.0", "layer3.0.downsample.0"])
        self.assertIn("2 of 73 nodes", self.texts("#layers .controls")[0])
        self.assertIn("2,560", self.texts("#layers tfoot")[0])  # 16 x 32 + 32 x 64

    def test_sections_without_data_say_so(self):
        self.open(make_run(self.path("dense"), method="conv"))
        for section in ("gap", "maps", "confidence", "agreement"):
            self.assertIn("No run here learns its taps by attention", self.texts(f"#{section} .note")[0])
            self.assertEqual(self.count(f"#{section} svg"), 0)
        # Pruned, and not dense: the notes are for all methods without attention.
        self.open(make_run(self.path("random"), method="random-taps"))
        self.assertIn("random-taps", self.texts("#summary tbody tr")[0])
        for section in ("gap", "maps", "confidence", "agreement"):
            self.assertEqual(len(self.texts(f"#{section} .note")), 1)
        self.assertIn("No run here has a temperature", self.texts("#curves .panel:nth-child(4) .note")[0])
        self.assertNotIn("Dense networks", self.script("document.querySelector('main').innerText"))
        self.open(make_run(self.path("new"), epochs=0))
        self.assertIn("No epoch is done yet", self.texts("#maps .note")[0])
        self.assertEqual(self.count("#curves .chart svg"), 0)
        self.assertIn("0 / 40", self.texts("#summary tbody tr")[0])
        self.assert_fits(360)
        for epochs in (3, 2, 1):
            self.open(make_run(self.path(f"short{epochs}"), epochs=epochs))
        self.assertEqual(self.count("#curves .chart svg"), 4)
        self.assertIn("Needs two records", self.texts("#agreement .note")[0])

    def test_damaged_runs_are_shown_as_far_as_they_go(self):
        runs = [make_run(self.path(name), epochs=3) for name in ("a", "b", "c")]
        self.write("a/config.toml", "epochs = = 3\n")
        self.write("b/network.txt", "nonsense\n")
        self.write("c/attention.jsonl", "nonsense\n")
        for shown in (runs, runs[:1], runs[1:2], runs[2:]):
            self.open(*shown)
            self.assertEqual(self.count("#summary tbody tr"), len(shown))
            self.assertEqual(self.texts("#summary .note")[-1].startswith("Damaged files of "), True)
            self.assertEqual(self.count("#curves .chart svg"), 4)
        self.open(*runs)
        rows = self.texts("#summary tbody tr")
        self.assertIn("3 / –", rows[0])
        self.assertIn("–", rows[1])
        self.choose("#layers-run", "1")
        self.assertIn("0 of 0 nodes", self.texts("#layers .controls")[0])

    def test_hostile_names_are_shown_as_they_are(self):
        run = make_run(self.path("run"), epochs=2)
        attention = self.path("run", "attention.jsonl")
        with open(attention) as file:
            text = file.read()
        self.write("run/attention.jsonl", text.replace("layer1.0.conv1", HOSTILE))
        hostile = self.path(HOSTILE.replace("/", "%"))
        os.rename(run, hostile)
        self.open(hostile)
        self.assertNotEqual(self.script("document.title"), "broken")
        self.assertEqual(self.texts("#maps figcaption")[0], HOSTILE)
        self.assertEqual(self.count("main b"), 0)


if __name__ == "__main__":
    if not browser.available():
        print("skipped: no chromium")
    main()
