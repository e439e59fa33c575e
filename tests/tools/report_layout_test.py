"""How the page of `onetap report` looks: on phones, wide screens and paper; its themes, axes and curves."""
import json
import os

import browser
from fake_runs import make_run, write_lines
from report_page import PageTest
from support import main


class Layout(PageTest):
    def frozen_runs(self):
        runs = [make_run(self.path("seed=0,method=" + method), arch=arch, method=method, seed=i)
                for i, (method, arch) in enumerate((("conv", "resnet110"), ("sal", "resnet20")))]
        model = os.path.join(runs[1], "model.tap")
        self.succeeds("nets", "resnet20", "--width", 4, "--tap", model)
        self.succeeds("quantize", model, "--data", "shapes:train=16,test=40", "-o", self.path(runs[1], "model-int8.tap"))
        return runs

    def box(self, section):
        return self.script("(() => { const box = document.querySelector(`${arguments[0]} .scroll`); return "
                           "[box.clientWidth, box.scrollWidth, box.parentNode.className]; })()", section)

    def test_summary_takes_the_width_of_the_window(self):
        runs = self.frozen_runs()
        path = self.path("page.html")
        self.succeeds("report", *runs, "--latency", "-o", path)
        self.browser.media()
        self.browser.open(path)
        for width in (1440, 1920, 2560):
            self.assert_fits(width)
            self.assertEqual(self.count("#summary th"), 16)
            have, needed, edges = self.box("#summary")
            self.assertLessEqual(needed, have, width)
            self.assertEqual(edges, "edges")
        self.assert_fits(1000)
        have, needed, edges = self.box("#summary")
        self.assertGreater(needed, have)
        self.assertEqual(edges, "edges more-right")
        # Few columns stay in the page's own.
        self.open(runs[0])
        self.browser.resize(1920, 900)
        self.assertLess(self.box("#summary")[0], 1180)

    def test_cards_name_units(self):
        self.open(*self.frozen_runs())
        self.browser.resize(390, 844)
        labels = self.script("[...document.querySelectorAll('#summary tbody tr:last-child td')].map((one) => "
                             "[getComputedStyle(one, '::before').content.replaceAll('\"', ''), one.dataset.label, "
                             "one.textContent])")
        shown = {label: text for _, label, text in labels}
        self.assertEqual(shown["Network"], "resnet20width 16")
        for label in ("Params, words", "MACs, one image", "File, bytes", "int8 file, bytes"):
            self.assertIn(label, shown)

    def classes(self, run, names=10):
        self.write(os.path.join(run, "classes.json"), json.dumps({
            "step": 782, "form": "hard", "top5": 0.9, "classes": [f"class number {i}" for i in range(names)],
            "confusion": [1] * names ** 2}))

    def test_edges_are_shaded_over_cells_with_colours(self):
        run = make_run(self.path("run"), epochs=2)
        self.classes(run)
        self.open(run)
        self.assertGreater(self.script("parseFloat(getComputedStyle(document.querySelector('#classes .body')).marginTop)"), 8)
        shown = "getComputedStyle(document.querySelector('#confusion .edges'), arguments[0]).visibility"
        self.browser.resize(390, 844)
        self.assertEqual([self.script(shown, edge) for edge in ("::before", "::after")], ["hidden", "visible"])
        self.script("document.querySelector('#confusion .scroll').scrollTo(1e5, 0)")
        self.browser.settle()
        self.assertEqual([self.script(shown, edge) for edge in ("::before", "::after")], ["visible", "hidden"])

    def test_paper_names_what_is_shown(self):
        runs = [make_run(self.path("one")), make_run(self.path("two"), epochs=5, seed=7)]
        for run in runs:
            self.classes(run)
        self.open(*runs)
        self.assertIn("Click a name", self.shown("#curves"))
        self.assertNotIn("Epoch 40, T = 0.02", self.shown("#maps"))
        for section in ("classes", "maps", "layers"):
            self.choose(f"#{section}-run", "1")
        self.browser.type("#layers-filter", "downsample")
        self.browser.media(kind="print")
        for section in ("classes", "maps"):
            self.assertIn("two", self.shown(f"#{section}").splitlines(), section)
        self.assertIn("two: 4 of 73 nodes, with “downsample”", self.shown("#layers").splitlines())
        self.assertRegex(self.shown("#maps"), r"Epoch 5, T = \d\S+; first and last four of 18 layers\n")
        self.assertNotRegex(self.shown("main"), r"[Cc]lick|[Tt]ype to filter")
        self.assertEqual(self.script("getComputedStyle(document.querySelector('#layers th button'), '::after').content"), "none")
        self.browser.media()

    def test_a_run_without_a_chooser_is_named(self):
        self.open(make_run(self.path("sal")), make_run(self.path("dense"), method="conv"))
        self.assertEqual(self.texts("#maps .shown-run"), ["sal"])
        self.open(make_run(self.path("alone")))
        self.assertEqual(self.count("#maps .shown-run"), 0)

    def shown(self, selector):
        return self.script("document.querySelector(arguments[0]).innerText", selector)

    def test_a_phone_shows_accuracy_first(self):
        self.open(make_run(self.path("sal")))
        self.assertEqual(self.script("getComputedStyle(document.querySelector('#summary thead')).display"), "table-header-group")
        self.browser.resize(390, 844)
        self.assertEqual(self.script("getComputedStyle(document.querySelector('#summary thead')).display"), "none")
        places = self.script("[...document.querySelectorAll('#summary tbody td')].slice(0, 4)"
                             ".map((one) => [one.dataset.label, one.getBoundingClientRect().top])")
        self.assertEqual([name for name, _ in places], ["Run", "Hard, final test", "Soft, final test", "Best hard"])
        self.assertLess(places[0][1], places[1][1])
        self.assertEqual(places[1][1], places[2][1])
        self.assertLess(places[2][1], places[3][1])
        self.assert_fits(390)

    def test_cards_have_one_left_edge(self):
        self.open(*self.frozen_runs())
        edges = ("[...new Set([...document.querySelectorAll('#summary td')].map((one) => "
                 "getComputedStyle(one).paddingLeft))]")
        self.browser.resize(390, 844)
        self.assertEqual(len(self.script(edges)), 1, self.script(edges))
        self.browser.resize(1280, 900)
        self.browser.media(kind="print")
        self.assertEqual(len(self.script(edges)), 1, self.script(edges))
        self.browser.media()

    def test_a_lower_edge_is_shaded_while_there_is_more(self):
        run = make_run(self.path("run"), epochs=2)
        self.classes(run, 30)
        self.open(run)
        shown = ("['classes', 'layers', 'summary'].map((one) => "
                 "getComputedStyle(document.querySelector(`#${one} .below`)).visibility)")
        self.assertEqual(self.script(shown), ["visible", "visible", "hidden"])
        self.script("['classes', 'layers'].map((one) => document.querySelector(`#${one} .scroll`).scrollTo(0, 1e5))")
        self.browser.settle()
        self.assertEqual(self.script(shown), ["hidden"] * 3)

    def test_no_setting_is_cut_off(self):
        run = make_run(self.path("run"), epochs=2)
        keys = {"lr": 0.3, "t0": 5, "t1": 0.5, "batch_size": 32, "seed": 3, "weight_decay": 0.01, "momentum": 0.5,
                "augment": '"none"', "threads": 1, "workers": 1, "device": '"cpu"', "eval_every": 2, "keep_checkpoints": 3,
                "checkpoint_epochs": 2, "label_smoothing": 0.1, "warmup_epochs": 1, "ema": 0.99}
        with open(os.path.join(run, "config.toml")) as file:
            text = file.read()
        self.write("run/config.toml", "".join(f"{key} = {value}\n" for key, value in keys.items()) + text)
        self.open(run)
        self.assertGreater(self.count("#recipe-difference tbody tr"), 17)
        box = self.script("(() => { const box = document.querySelector('#recipe-difference .scroll');"
                          "return [box.clientHeight, box.scrollHeight]; })()")
        self.assertEqual(box[0], box[1])
        self.assertGreater(box[0], 30 * 16)

    def test_theme_follows_the_system_until_it_is_chosen(self):
        run = make_run(self.path("sal"), epochs=3)
        self.succeeds("nets", "resnet8", "--width", 4, "--tap", os.path.join(run, "model.tap"))
        self.open(run)
        light = self.background()
        self.browser.media({"prefers-color-scheme": "dark"})
        dark = self.background()
        self.assertGreater(light, 600)
        self.assertLess(dark, 150)
        self.browser.click("#theme")
        self.assertEqual(self.background(), light)
        self.browser.click("#theme")
        self.assertEqual(self.background(), dark)
        self.browser.media(kind="print")
        self.assertEqual(self.background(), light, "paper is light")
        # Cards instead of the summary's table, which is wider than paper.
        self.assertEqual(self.script("getComputedStyle(document.querySelector('#summary thead')).display"), "none")
        self.browser.resize(700, 900)
        self.assertLessEqual(self.script("document.querySelector('#summary table').scrollWidth"), 700)
        self.browser.resize(1280, 900)
        self.assertEqual(self.script("getComputedStyle(document.querySelector('.contents')).display"), "none")
        self.browser.media()

    def test_fits_a_phone(self):
        long_name = "a-run-with-a-name-that-is-much-too-long-for-the-screen-of-a-phone-" * 2
        self.open(make_run(self.path("sal")), make_run(self.path(long_name), method="conv"))
        for width in (360, 768, 1600):
            self.assert_fits(width)

    def test_large_network(self):
        self.open(make_run(self.path("deep"), arch="resnet110", epochs=60, total=60))
        self.browser.click("#maps-all")
        self.assertEqual(self.count("#maps figure"), 108)
        self.assertGreater(self.count("#layers tbody tr"), 330)
        box = self.script("(() => { const box = document.querySelector('#layers .scroll');"
                          "return [box.clientHeight, box.scrollHeight]; })()")
        self.assertLess(box[0], 600)
        self.assertGreater(box[1], 5000)
        self.assert_fits(360)

    def test_labels_of_an_axis_differ(self):
        run = make_run(self.path("run"), epochs=4)
        with open(os.path.join(run, "attention.jsonl")) as file:
            lines = [json.loads(line) for line in file]
        for line in lines:
            for layer in line["layers"]:
                layer["agreement"] = None if line["epoch"] == 1 else 1 - 0.0002 * line["epoch"]
        write_lines(os.path.join(run, "attention.jsonl"), lines)
        self.open(run)
        labels = self.texts("#agreement .chart text[text-anchor=end]")[:-1]  # the last is the title of the other axis
        self.assertEqual(labels, ["99.92", "99.94", "99.96", "99.98", "100"])

    def test_equal_learning_rates_all_show(self):
        self.open(*(make_run(self.path(name), epochs=3, seed=i) for i, name in enumerate("abc")))
        panel = "#curves .panel:nth-child({}) .chart path.curve"
        dashes = ("[...document.querySelectorAll(arguments[0])].map((one) => "
                  "[one.getAttribute('stroke-dasharray'), one.getAttribute('stroke-dashoffset')])")
        self.assertEqual(self.script(dashes, panel.format(3)), [[None, None], ["6 12", "-6"], ["6 12", "-12"]])
        self.assertEqual(self.script(dashes, panel.format(1)), [[None, None]] * 6, "losses differ")
        self.browser.click("#curves .panel:nth-child(3) .legend li:first-child button")
        self.assertEqual(self.script(dashes, panel.format(3)), [[None, None], ["6 6", "-6"]])
        # Behind the end of the others the longest is alone: it is the whole one.
        self.open(make_run(self.path("short"), epochs=2), make_run(self.path("long"), epochs=4, seed=2))
        paths = self.script("[...document.querySelectorAll(arguments[0])].map((one) => [one.classList[1], "
                            "one.getAttribute('stroke-dasharray')])", panel.format(3))
        self.assertEqual(paths, [["c1", None], ["c0", "6 6"]])


if __name__ == "__main__":
    if not browser.available():
        print("skipped: no chromium")
    main()
