"""A headless Chromium, spoken to over a pipe: what it shows, asks for and complains of when it loads a page."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = (
    "chromium", "chromium-browser", "chromium-headless-shell", "google-chrome", "google-chrome-stable", "chrome",
)  # fmt: skip
PATIENCE = 60.0


def installed() -> str | None:
    """The browser on the path, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page in it. ``events`` holds what it told unasked."""

    def __init__(self, asks: int, answers: int) -> None:
        self._asks, self._answers = asks, answers
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log", "DOM"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._asks, json.dumps(message).encode() + b"\0")
        for each in self._messages():
            if each.get("id") == self._number:
                if "error" in each:
                    raise RuntimeError(f"{method}: {each['error']}")
                return dict(each["result"])
            self.events.append(each)
        raise RuntimeError(f"{method}: the browser went away")

    def _messages(self) -> Iterator[dict[str, Any]]:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            while b"\0" in self._buffer:
                text, self._buffer = self._buffer.split(b"\0", 1)
                yield json.loads(text)
            piece = os.read(self._answers, 1 << 16)
            if not piece:
                return
            self._buffer += piece

    def load(self, page: Path | str, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Opens a file or an address."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.call("Page.navigate", url=page if isinstance(page, str) else page.absolute().as_uri())
        while not self.events_of("Page.loadEventFired"):
            self.events.append(next(self._messages()))

    def events_of(self, method: str) -> list[dict[str, Any]]:
        return [each["params"] for each in self.events if each.get("method") == method]

    @property
    def requests(self) -> list[str]:
        """What the page asked for, itself included."""
        return [each["request"]["url"] for each in self.events_of("Network.requestWillBeSent")]

    @property
    def complaints(self) -> list[str]:
        """What stands in the console, and what the page was not allowed to do."""
        console = [str(each["args"]) for each in self.events_of("Runtime.consoleAPICalled")]
        thrown = [str(each["exceptionDetails"]) for each in self.events_of("Runtime.exceptionThrown")]
        return console + thrown + [str(each["entry"]["text"]) for each in self.events_of("Log.entryAdded")]

    def asked(self, expression: str) -> Any:
        """The value of an expression in the page."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def screenshot(self, path: Path, whole: bool = True) -> None:
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))


@contextmanager
def browser() -> Iterator[Browser]:
    program = installed()
    assert program is not None
    asks_theirs, asks = os.pipe()
    answers, answers_theirs = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        arguments = [
            program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
            "--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile}",
            "--remote-debugging-pipe",
        ]  # fmt: skip
        # The browser reads from 3 and writes to 4, whatever these pipes are called here.
        script = f'exec 30<&{asks_theirs} 31>&{answers_theirs} 3<&30 4>&31; exec "$@"'
        child = subprocess.Popen(
            ["bash", "-c", script, "bash", *arguments], pass_fds=(asks_theirs, answers_theirs),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            os.close(asks_theirs)
            os.close(answers_theirs)
            yield Browser(asks, answers)
        finally:
            child.terminate()
            child.wait(20)
            os.close(asks)
            os.close(answers)
