"""Makes the picture of a report in the README: ``python -m kipcheck.conformance.tests.support.picture PAGE PNG``."""

import sys
from pathlib import Path

from kipcheck.conformance.tests.support.browser import browser

WIDTH, HEIGHT = 1280, 860
"""Pixels: the first screen of the page."""


def picture(page: Path, to: Path) -> None:
    with browser() as shown:
        shown.load(page, width=WIDTH, height=HEIGHT)
        # A scroll bar is none of the page's.
        shown.asked("document.documentElement.style.overflow = 'hidden'")
        shown.screenshot(to, whole=False)


if __name__ == "__main__":
    picture(Path(sys.argv[1]), Path(sys.argv[2]))
