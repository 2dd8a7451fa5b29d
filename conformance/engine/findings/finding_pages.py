"""Reads the pages of findings that entries of known deviations link: title, severity, effect and status."""

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Final

from kipcheck.conformance.core.values.impacts import Effect, Severity

TITLE: Final = re.compile(r"^# (.+?)\s*$", re.MULTILINE)
ROW: Final = re.compile(r"^\|\s*(target|severity|effect|status|same cause)\s*\|\s*(.*?)\s*\|\s*$", re.MULTILINE)

LINK: Final = re.compile(r"\]\(([\w.-]+\.md)\)")


@dataclass(frozen=True, slots=True)
class FindingPage:
    link: str
    """As the entry has it."""
    title: str
    severity: Severity | None
    """None: the page states none, or one that is not defined."""
    effect: str
    status: str
    cause: str
    """The link of the page that describes the cause: of this one, unless the row ``same cause`` names another."""


def cause_page(link: str) -> FindingPage | None:
    """The page of the finding at this link, or the one that it names for its cause."""
    own = page_at(link)
    return None if own is None else page_at(own.cause) or own


def shown_effect(page: FindingPage | None, effect: Effect | None, sentence: str) -> tuple[str, Severity]:
    """Title and severity of a failure: those of its page, else those that its invariant and shape have in general, else
    the sentence of the invariant.
    """
    title, severity = (sentence, Severity.TRIVIA) if effect is None else (effect.title, effect.severity)
    return (title, severity) if page is None else (page.effect or page.title, page.severity or severity)


@cache
def page_at(link: str) -> FindingPage | None:
    """The page; None if the link is an address, or does not lead to the page of a finding."""
    path = Path(str(files("kipcheck.conformance"))).parent / link
    if "://" in link or path.suffix != ".md":
        return None
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    title, rows = TITLE.search(text), dict(ROW.findall(text))
    if title is None or "target" not in rows:
        return None
    words = {each.value: each for each in Severity}
    severity = words.get(rows.get("severity", "").lower())
    other = LINK.search(rows.get("same cause", ""))
    cause = link if other is None else str(PurePosixPath(link).with_name(other[1]))
    effect, status = rows.get("effect", ""), rows.get("status", "")
    return FindingPage(link, title[1].replace("`", ""), severity, effect, status, cause)
