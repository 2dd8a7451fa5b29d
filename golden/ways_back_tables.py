"""The tables of ways back in ``docs/records.md``, from ``golden/ways_back.json``: ``python -m kipcheck.golden.ways_back
--tables`` writes them.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA
from kipcheck.conformance.protocols.features.upgrades.ways_back import (
    BINARIES,
    INTER_BROKER,
    NONE,
    PINNED,
    TOGETHER,
    Played,
    Return,
    Way,
    ways,
)

NOT_RUN: Final = "not run"
HEAD: Final = (
    "feature | lowered again | the old release at once | after a snapshot | raised, on 1 and 3 nodes or as stated"
)
BEGIN, END = "<!-- runs of ways back, generated -->\n\n", "\n\n<!-- end -->"
"""Around the tables in the page."""


def text(found: Mapping[Way, Played]) -> str:
    """Markdown. Runs without a row are counted in the last line."""
    features = [each for each in ways() if each.feature not in (BINARIES, INTER_BROKER, PINNED)]
    blocks = [
        _table(HEAD, _levels(found, features)),
        _releases(found),
        _table("from | to | not raised | raised and lowered again", _zookeeper(found)),
        _not_run(found),
    ]  # fmt: skip
    return "\n\n".join(each for each in blocks if each)


def replaced(page: str, found: Mapping[Way, Played]) -> str:
    """The page with these tables. Errors: ValueError where the page has no place for them."""
    begin = page.index(BEGIN) + len(BEGIN)
    return page[:begin] + text(found) + page[page.index(END, begin) :]


def _table(head: str, rows: Iterable[Iterable[str]]) -> str:
    lines = [head, "|".join(["---"] * (head.count("|") + 1)), *(" | ".join(each) for each in rows)]
    return "\n".join(f"| {each} |" if "---" not in each else f"|{each}|" for each in lines)


def _not_run(found: Mapping[Way, Played]) -> str:
    missing = sum(each not in found for each in ways())
    return f"Not run, so unknown: {missing} ways; `python -m kipcheck.golden.ways_back --list` names them."


def _levels(found: Mapping[Way, Played], those: Iterable[Way]) -> Iterator[tuple[str, ...]]:
    """A row for each outcome of a feature, with the pairs of releases that have it."""
    pairs: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for way in those:
        if way in found:
            feature, levels, *outcome = _outcomes(found[way])
            raised = f"{way.old} to {way.new}" + ("" if way.feature == METADATA else f" ({levels})")
            pairs.setdefault((feature, *outcome), {}).setdefault(raised, []).append(str(way.nodes))
    for row, nodes_of in pairs.items():
        yield *row, ", ".join(pair if len(nodes) > 1 else f"{pair} on {nodes[0]}" for pair, nodes in nodes_of.items())


def _outcomes(found: Played) -> tuple[str, ...]:
    """Feature, levels, and what came of lowering it and of the old release."""
    later = "" if found.after_snapshot is None else _outcome(found.after_snapshot)
    together = found.way.feature == TOGETHER
    feature, levels = (
        (TOGETHER, str(found.after)) if together else (found.way.feature, f"{found.before} to {found.after}")
    )
    return feature, levels, "yes" if found.lowered == NONE else "refused", _outcome(found.at_once), later


def _releases(found: Mapping[Way, Played]) -> str:
    back: dict[tuple[str, bool], list[str]] = {}
    for way, each in found.items():
        if way.feature == BINARIES:
            back.setdefault((way.old, each.at_once.runs), []).append(way.new)
    ends = {True: "runs again after", False: "**does not run** after"}
    pairs = (f"{old} {ends[runs]} {', '.join(new)}" for (old, runs), new in back.items())
    return f"No level raised: {'; '.join(pairs)}."


def _zookeeper(found: Mapping[Way, Played]) -> Iterator[tuple[str, ...]]:
    for old, new in dict.fromkeys((each.old, each.new) for each in ways() if each.feature == PINNED):
        pinned, raised = found.get(Way(old, new, PINNED)), found.get(Way(old, new, INTER_BROKER))
        if pinned or raised:
            yield old, new, *(NOT_RUN if each is None else _outcome(each.at_once) for each in (pinned, raised))


def _outcome(found: Return) -> str:
    if found.runs:
        return "runs"
    return "**loses offsets and groups**" if "committed offset" in found.why else "**ends**"
