"""The page of `onetap report` in a headless Chromium: what its tests share."""
import re
import shutil
import tempfile
import unittest

import browser
from support import CommandTest


@unittest.skipUnless(browser.available(), "no chromium")
class PageTest(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.profile = tempfile.mkdtemp(prefix="onetap-browser-")
        cls.addClassCleanup(shutil.rmtree, cls.profile, ignore_errors=True)
        try:
            cls.browser = browser.Browser(cls.profile)
        except RuntimeError as problem:  # as where the machine does not know the name localhost
            raise unittest.SkipTest(f"skipped: chromium does not start here: {problem}") from None
        cls.addClassCleanup(cls.browser.close)

    def open(self, *runs, **kwargs):
        path = self.path("page.html")
        self.succeeds("report", *runs, "-o", path, **kwargs)
        self.browser.media()
        self.browser.resize(1280, 900)
        self.browser.open(path)
        self.browser.settle()

    def tearDown(self):
        self.assertEqual(self.browser.console(), [])

    def script(self, code, *arguments):
        return self.browser.script(code, *arguments)

    def count(self, selector):
        return self.script("document.querySelectorAll(arguments[0]).length", selector)

    def texts(self, selector):
        return self.script("[...document.querySelectorAll(arguments[0])].map((one) => one.textContent)", selector)

    def assert_fits(self, width):
        self.browser.resize(width, 740)
        self.assertLessEqual(self.script("document.documentElement.scrollWidth"), width)
        # Charts are drawn for the width they have, not scaled.
        for have, drawn in self.script("[...document.querySelectorAll('.chart svg')].map((one) => "
                                       "[one.getBoundingClientRect().width, one.viewBox.baseVal.width])"):
            self.assertAlmostEqual(have, drawn, delta=1.5)

    def background(self):
        colour = self.script("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in re.findall(r"\d+", colour)[:3])

    def headline(self, *runs):
        self.open(*runs)
        return self.texts("#summary .headline")

    def choose(self, selector, value):
        self.script("(() => { const select = document.querySelector(arguments[0]); select.value = arguments[1];"
                    "select.dispatchEvent(new Event('change')); })()", selector, value)
        self.browser.settle()
