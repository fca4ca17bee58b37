"""A headless Chromium, driven through pipes by its own protocol: https://chromedevtools.github.io/devtools-protocol."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path


def chromium():
    """Its program; None: it is not installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


_LOW_CONTRASTS = """
(() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const colour = channels(getComputedStyle(element).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const low = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    const text = texts.currentNode.data.trim();
    if (!text || !element.checkVisibility() || element.closest("script, noscript, style")) continue;
    const style = getComputedStyle(element);
    const [one, other] = [light(channels(element.closest("svg") ? style.fill : style.color)), light(behind(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) low.add(`${element.tagName} ${ratio.toFixed(2)} ${text.slice(0, 20)}`);
  }
  return [...low];
})()
"""


# Of a picture: width, height, how many colours it has, and the share of the commonest one.
_COLOURS = """
(async () => {
  const image = await createImageBitmap(await (await fetch("data:image/png;base64,%s")).blob());
  const drawn = new OffscreenCanvas(image.width, image.height).getContext("2d");
  drawn.drawImage(image, 0, 0);
  const counts = new Map();
  for (const colour of new Uint32Array(drawn.getImageData(0, 0, image.width, image.height).data.buffer))
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  return [image.width, image.height, counts.size, Math.max(...counts.values()) / (image.width * image.height)];
})()
"""


class Browser:
    """One page of a browser, as a context manager."""

    def __init__(self, folder, seconds=120):
        self.seconds, self.number, self.events, self.rest = seconds, 0, [], b""
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        command = (
            f'exec "$0" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --remote-debugging-pipe '
            f'--user-data-dir="{folder}" about:blank 3<&{to_browser} 4>&{from_browser}'
        )
        self.process = subprocess.Popen(
            ["bash", "-c", command, chromium()], pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self.session = None
        (target,) = (
            each for each in self.ask("Target.getTargets")["targetInfos"] if each["type"] == "page"
        )
        self.session = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)

    def ask(self, method, **parameters):
        """The answer to a request of the protocol."""
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.write_end, json.dumps(request).encode() + b"\0")
        return self._wait(lambda message: message.get("id") == self.number)["result"]

    def _wait(self, is_wanted):
        end = time.monotonic() + self.seconds
        while True:
            message = self._next(end)
            if "error" in message:
                raise RuntimeError(message["error"])
            if "method" in message:
                self.events.append(message)
            if is_wanted(message):
                return message

    def _next(self, end):
        while b"\0" not in self.rest:
            if not select.select([self.read_end], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"chromium did not answer within {self.seconds} s")
            self.rest += os.read(self.read_end, 1 << 20)
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def size(self, width, height=900):
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def scheme(self, name):
        """`light` or `dark`."""
        self.ask(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}]
        )

    def open(self, file, fragment=""):
        self.ask("Page.navigate", url="about:blank")
        self.ask("Page.navigate", url=f"{Path(file).as_uri()}{fragment}")
        self.run(
            "new Promise((done) => document.readyState === 'complete' ? done() : addEventListener('load', done))"
        )
        self.settle()

    def settle(self):
        """Until what was changed has been drawn; on the page that it leads to, if it was a link."""
        drawn = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
        try:
            self.run(drawn)
        except RuntimeError as error:
            if "navigated" not in str(error):
                raise
            self.run(drawn)

    def run(self, script):
        """The value of an expression; that of a promise is waited for."""
        told = self.ask(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in told:
            raise RuntimeError(told["exceptionDetails"])
        return told["result"].get("value")

    def low_contrasts(self):
        """Texts whose contrast to what is behind them is below 4.5."""
        return self.run(_LOW_CONTRASTS)

    def press(self, key, text=""):
        for kind in ("keyDown", "keyUp"):
            shown = {"text": text} if text and kind == "keyDown" else {}
            code = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowDown": 40, "ArrowUp": 38}.get(key, 0)
            self.ask(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **shown
            )
        self.settle()

    def complaints(self):
        """What the console has been told of errors and warnings, and exceptions."""
        told = []
        for event in self.events:
            parameters = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                told.append(parameters["exceptionDetails"])
            elif event["method"] == "Log.entryAdded":
                told.append(parameters["entry"])
            elif event["method"] == "Runtime.consoleAPICalled":
                told.append(parameters["args"])
        return told

    def colours(self, file):
        """Width and height of a picture, how many colours it has, and the share of the commonest. Leaves the page."""
        self.ask("Page.navigate", url="about:blank")
        self.settle()
        return self.run(_COLOURS % base64.b64encode(Path(file).read_bytes()).decode())

    def picture(self, file):
        self.settle()
        data = self.ask("Page.captureScreenshot", format="png")["data"]
        Path(file).write_bytes(base64.b64decode(data))
