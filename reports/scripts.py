"""The conversations of a run with ``--trace``, each with its verdicts."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kipcheck.conformance.core.ledger import Ledger, PlayedScript
from kipcheck.reports.diagram import sequence
from kipcheck.reports.markup import Safe, joined, tag

WORDS: Final = ("FAIL", "WARN", "NOTE", "UNKNOWN", "PASS", "SKIP")
"""Results, the gravest first."""


class Script(NamedTuple):
    line: PlayedScript
    result: str
    """The gravest of those of the checks that judged it."""
    verdicts: Mapping[str, tuple[str, ...]]
    """Result -> invariants."""


def played(ledger: Ledger) -> list[Script]:
    """Those whose exchanges are in the ledger, the gravest results first."""
    if not ledger.scripts:
        return []
    results: dict[tuple[str, str | None], set[str]] = {}
    by: dict[tuple[str, str | None], dict[str, str]] = {}
    for verdict in ledger.verdicts():
        key = verdict.target, verdict.case
        results.setdefault(key, set()).add(verdict.result)
        by.setdefault(key, {}).update(verdict.by or {})
    found = []
    for line in ledger.scripts:
        key = line.target, line.case
        result = min(results.get(key, {"SKIP"}), key=WORDS.index)
        words = {word: tuple(id for id, came in by.get(key, {}).items() if came == word) for word in WORDS}
        found.append(Script(line, result, {word: ids for word, ids in words.items() if ids}))
    return sorted(found, key=lambda script: WORDS.index(script.result))


def section(ledger: Ledger) -> Safe:
    """For the HTML page: a list, in which each conversation can be opened."""
    return joined(tag("ul", (tag("li", tag("details", *_entry(script))) for script in played(ledger)), class_="list"))


def _entry(script: Script) -> Iterator[Safe]:
    line = script.line
    word = tag("span", script.result, class_=f"word {script.result.lower()}")
    yield tag("summary", word, " ", tag("b", line.target), " ", tag("code", line.script))
    broken = [tag("li", tag("b", id), f": {why}") for id, why in line.broken.items()]
    others = [tag("li", f"{word}: {', '.join(ids)}") for word, ids in script.verdicts.items() if word != "FAIL"]
    yield tag("div", sequence(line.steps), tag("h4", "Verdicts"), tag("ul", broken, others), class_="inside")
