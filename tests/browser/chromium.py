"""A headless Chromium, driven by its DevTools protocol."""

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import websocket
from tests.web.served import stop

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage")
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions")


def program() -> str | None:
    """The browser, if there is one."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


needs_chromium = pytest.mark.skipif(
    program() is None, reason="no Chromium on this machine; install chromium to run these"
)
CONTRASTS = """(selector => {
  const rgb = text => text.match(/[\\d.]+/g).map(Number);
  const part = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0.99) return c; } return [255, 255, 255]; };
  return [...document.querySelectorAll(selector)]
    .filter(e => (e.innerText || e.value) && e.offsetParent && !e.closest('.top')).map(e => {
      const a = light(rgb(getComputedStyle(e).color)), b = light(ground(e));
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); });
})"""


class Tab:
    """One page. `events` holds everything the browser told since it was opened."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._socket = websocket.create_connection(address, timeout=60, suppress_origin=True)
        self._numbers = count(1)
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        """Let go of the page."""
        self._socket.close()

    @contextmanager
    def beside(self) -> Iterator["Tab"]:
        """Another tab of the same browser."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        with closing(Tab(f"{self._address.rpartition('/')[0]}/{target}")) as other:
            yield other
        self.send("Target.closeTarget", targetId=target)

    def contrasts(self, selector: str) -> list[float]:
        """Of every text in these elements with what is behind it."""
        return [float(ratio) for ratio in self.js(f"{CONTRASTS}({json.dumps(selector)})")]

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and wait for its answer."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == number:
                assert "error" not in message, message
                return dict(message["result"])
            self.events.append(message)

    def open(self, address: str) -> None:
        """Go to a page and wait until it is loaded."""
        self.events.clear()
        self.send("Page.navigate", url=address)
        end = time.monotonic() + 60
        while self.js("document.readyState") != "complete" or not self.told("Page.loadEventFired"):
            assert time.monotonic() < end, f"{address} did not load"
            time.sleep(0.05)

    def js(self, expression: str) -> Any:
        """The value of an expression on the page."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, expression: str, seconds: float = 60.0) -> None:
        """Wait until an expression holds; a page that is just being left holds nothing."""
        end = time.monotonic() + seconds
        while True:
            try:
                if self.js(expression):
                    return
            except AssertionError:
                pass
            assert time.monotonic() < end, (expression, self.js("document.body.innerText")[:500])
            time.sleep(0.05)

    def press(self, key: str, code: int) -> None:
        """Press and release a key."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def look(self, *, media: str = "", scheme: str = "light", width: int = 1000, height: int = 900) -> None:
        """Show the page on another medium, in another colour scheme, or at another size."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", media=media, features=features)
        size = {"width": width, "height": height}
        self.send("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=False)

    def told(self, method: str) -> list[dict[str, Any]]:
        """The parameters of all events of a kind."""
        return [event["params"] for event in self.events if event.get("method") == method]

    @property
    def complaints(self) -> list[Any]:
        """Errors and warnings of the console, and exceptions of scripts."""
        logged = [told["entry"] for told in self.told("Log.entryAdded")]
        said = self.told("Runtime.consoleAPICalled")
        return [
            *(each for each in logged if each["level"] in ("error", "warning")),
            *(each for each in said if each["type"] in ("error", "warning", "assert")),
            *self.told("Runtime.exceptionThrown"),
        ]

    @property
    def requests(self) -> list[str]:
        """Every address the page asked for."""
        return [each["request"]["url"] for each in self.told("Network.requestWillBeSent")]


@contextmanager
def browsing() -> Iterator[Tab]:
    """A tab of a new browser, which is gone afterwards; one at a time, also where tests run side by side."""
    found = program()
    assert found is not None
    with _alone(), tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [found, *FLAGS, *QUIET, "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with closing(Tab(_address(Path(folder) / "DevToolsActivePort", process))) as tab:
                yield tab
        finally:
            stop(process)


@contextmanager
def _alone() -> Iterator[None]:
    with (Path(tempfile.gettempdir()) / f"sfumato-browser-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _address(note: Path, process: subprocess.Popen[bytes]) -> str:
    """Where the first tab listens, from the port that the browser wrote down."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert process.poll() is None, "the browser did not start"
        if note.exists() and (lines := note.read_text().split()):
            with urlopen(f"http://127.0.0.1:{lines[0]}/json/list", timeout=30) as answer:
                pages = [each for each in json.load(answer) if each["type"] == "page"]
            if pages:
                return str(pages[0]["webSocketDebuggerUrl"])
        time.sleep(0.1)
    raise AssertionError("the browser did not tell its port")
