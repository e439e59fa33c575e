"""A headless Chromium, driven through chromedriver's WebDriver protocol with Python's standard library."""
import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's name for a reference to an element


def available():
    return CHROMIUM is not None and DRIVER is not None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Browser:
    def __init__(self, profile):
        self.port = free_port()
        self.driver = subprocess.Popen([DRIVER, f"--port={self.port}"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        self.session = None
        try:
            self.wait_until_ready()
            arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                         f"--user-data-dir={profile}", "--force-device-scale-factor=1", "--hide-scrollbars"]
            wanted = {"browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"},
                      "goog:chromeOptions": {"binary": CHROMIUM, "args": arguments}}
            self.session = self.start_session({"capabilities": {"alwaysMatch": wanted}})
        except BaseException:
            self.close()
            raise

    def start_session(self, capabilities, tries=4):
        """On a busy machine the browser may take longer to come up than the driver waits."""
        for left in reversed(range(tries)):
            try:
                return self.call("POST", "/session", capabilities)["sessionId"]
            except RuntimeError:
                if left == 0:
                    raise
                time.sleep(2)

    def wait_until_ready(self):
        for _ in range(300):
            try:
                if self.call("GET", "/status")["ready"]:
                    return
            except (urllib.error.URLError, ConnectionError):
                pass
            time.sleep(0.1)
        raise RuntimeError("chromedriver did not start")

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data,
                                         {"Content-Type": "application/json"}, method=method)
        # A proxy of the environment has no business with this machine's own ports.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as problem:
            raise RuntimeError(f"{method} {path}: {problem.read().decode()[:600]}") from None

    def post(self, path, body):
        return self.call("POST", f"/session/{self.session}{path}", body)

    def open(self, path):
        self.post("/url", {"url": "file://" + path})

    def script(self, code, *arguments):
        """Runs `return CODE` in the page."""
        return self.post("/execute/sync", {"script": "return " + code, "args": list(arguments)})

    def devtools(self, command, parameters):
        return self.post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def resize(self, width, height):
        # Not the window's size: Chromium refuses windows as narrow as a phone.
        self.devtools("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1,
                                                             "mobile": width < 600})
        self.settle()

    def media(self, features=None, kind=""):
        self.devtools("Emulation.setEmulatedMedia", {"media": kind, "features": [
            {"name": name, "value": value} for name, value in (features or {}).items()]})
        self.settle()

    def settle(self):
        """Two frames: observers have run and what they drew is there."""
        code = "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(arguments[0], 30)))"
        self.post("/execute/async", {"script": code, "args": []})

    def find(self, selector):
        return self.post("/element", {"using": "css selector", "value": selector})

    def click(self, selector):
        element = self.find(selector)
        self.script("arguments[0].scrollIntoView({block: 'center'})", element)
        self.post(f"/element/{element[ELEMENT]}/click", {})
        self.settle()

    def type(self, selector, text):
        self.post(f"/element/{self.find(selector)[ELEMENT]}/value", {"text": text})
        self.settle()

    def hover(self, selector, x=0, y=0):
        """Moves the mouse to this offset from the element's middle."""
        element = self.find(selector)
        self.script("arguments[0].scrollIntoView({block: 'center'})", element)
        move = {"type": "pointerMove", "origin": element, "x": x, "y": y, "duration": 20}
        self.post("/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]})
        self.settle()

    def text(self, selector):
        return self.script("document.querySelector(arguments[0]).textContent", selector)

    def console(self):
        """Messages since the last call, warnings and worse."""
        return [entry for entry in self.post("/se/log", {"type": "browser"}) if entry["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, path, whole=True):
        size = self.script("[document.documentElement.clientWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
        parameters = {"captureBeyondViewport": True, "clip": clip} if whole else {}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.devtools("Page.captureScreenshot", parameters)["data"]))

    def close(self):
        try:
            if self.session:
                self.call("DELETE", f"/session/{self.session}")
        except (RuntimeError, OSError):
            pass
        self.driver.terminate()
        self.driver.wait(timeout=30)
