"""Chromium without a window, driven through its debugging pipe: what a reader of a page sees and does.

The protocol is Chrome's DevTools protocol: JSON messages that a null byte ends, on the file descriptors 3 and 4. No
library and no driver is needed, and no port is opened.
"""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

CHROMIUM = shutil.which("chromium")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--remote-debugging-pipe", "--no-first-run", "--disable-extensions", "--disable-background-networking"),
)


class Browser:
    """A browser with one page.

    Attributes:
        faults: errors of scripts and of the console, and refusals of the content security policy.
        requested: addresses that the page asked for.
    """

    def __init__(self, width: int = 1400, height: int = 900) -> None:
        assert CHROMIUM is not None
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        to_browser, self._in = os.pipe()
        self._out, from_browser = os.pipe()
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"]

        def take_pipes() -> None:
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
            for number, end in zip((3, 4), ends):
                os.dup2(end, number)

        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(command, preexec_fn=take_pipes, pass_fds=(3, 4), stdout=quiet, stderr=quiet)
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._number, self._events = b"", 0, list[dict[str, Any]]()
        self.faults: list[str] = []
        self.requested: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait(20)
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def call(self, method: str, **params: Any) -> Any:
        """The result of a command of the protocol, for the page."""
        return self._call(method, self._session, **params)

    def _call(self, method: str, session: str | None = None, **params: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._in, data) :]
        while True:
            found = self._receive()
            if found.get("id") == self._number:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']}")
                return found["result"]
            self._note(found)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._out, 1 << 20)
            if not part:
                raise RuntimeError("the browser has ended")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.faults.append(str(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.faults.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.faults.append(str(params["args"]))
        elif method == "Network.requestWillBeSent":
            self.requested.append(params["request"]["url"])

    def resize(self, width: int, height: int) -> None:
        """Give the page this size, in pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, path: Path) -> None:
        """Load a page, and wait until its script has run."""
        self.faults.clear()
        self.requested.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        end = time.monotonic() + 60
        while not self.run("document.documentElement?.dataset.ready === 'yes'"):
            if self.faults or time.monotonic() > end:
                raise RuntimeError(f"the page does not get ready: {self.faults}")
            time.sleep(0.02)
        self.settle()

    def run(self, script: str) -> Any:
        """The value of an expression, awaited if it is a promise."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"].get("description", "an error of a script"))
        return found["result"].get("value")

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements that a selector matches."""
        return self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")

    def click(self, selector: str, index: int = 0) -> None:
        """Click the middle of an element, as a mouse does."""
        box = self.run(
            f"(e => {{ e.scrollIntoView({{block: 'nearest'}}); const b = e.getBoundingClientRect(); "
            f"return [b.x + b.width / 2, b.y + b.height / 2]; }})"
            f"(document.querySelectorAll({json.dumps(selector)})[{index}])"
        )
        self.click_at(*box)

    def click_at(self, x: float, y: float) -> None:
        """Click a point of the window."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def type(self, text: str) -> None:
        """Insert text where the focus is."""
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)
        self.settle()

    def settle(self) -> None:
        """Wait for the next two frames."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def screenshot(self, path: Path) -> None:
        """Write what is seen as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
