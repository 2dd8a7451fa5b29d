"""A matrix and a history for tests of reports: small, with every kind of cell and of what is seen."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Line = dict[str, Any]
RELEASES = {"0.10.0": ("0.10.0.1", 1), "0.10.2": ("0.10.2.2", 2), "2.0": ("2.0.1", 3), "2.1": ("2.1.1", 4),
            "2.4": ("2.4.1", 5), "future": ("future", 12)}  # fmt: skip
FIXED = {"reason": "2.1.1 is as it is.", "link": "https://issues.apache.org/jira/browse/KAFKA-8649"}
REQUIREMENTS = {
    "268-14": {"clause": "KIP-268, Future upgrades with version probing", "grade": "MUST", "text": "It fails."},
    "268-33": {"clause": "StreamsPartitionAssignor.onAssignment", "grade": "INFO", "text": "It raises <what> it uses."},
    "268-39": {"clause": "StreamsConfig.upgrade.from", "grade": "MUST", "text": "It is a configuration error."},
}


def cell(old: str, new: str, scenario: str = "join", verdict: str = "ok", **more: Any) -> Line:
    case = f"{scenario}-{old}-{new}".replace(".", "x")
    about: Line = {
        "from": old, "to": new, "scenario": scenario, "verdict": verdict, "rounds": 2, "requirement": None,
        "reason": None, "predicted": verdict, "case": case, "rule": "foreseen", "foreseen": verdict, "differs": False,
        "known": None, "needs_fix": False, "starred": False, "in_kip": False, "scripts": 6, "broken": 0,
        "play": f"kipcheck replay kipcheck-matrix/histories/{case}.json",
    }  # fmt: skip
    return {**about, **more}


CELLS = (
    cell("0.10.0", "0.10.2", "join", "breaks", requirement="268-14", reason="leader a dies", rounds=1, broken=4),
    cell("0.10.0", "2.0", "join", "breaks", requirement="268-14", reason="leader a dies", rounds=1, broken=4),
    cell("2.0", "2.1", "join", rounds=1),
    cell("2.0", "2.4", "join", known=FIXED, predicted="breaks", foreseen="ok", rule="fitted"),
    cell("2.0", "future", "join", predicted=None, foreseen=None, rule=None, in_kip=True),
    cell("2.0", "future", "bounce", in_kip=True),
    cell("0.10.0", "0.10.2", "two-bounce", in_kip=True, starred=True, needs_fix=True, rounds=1),
    cell("0.10.0", "2.0", "two-bounce", in_kip=True, rounds=1),
    cell("0.10.2", "2.0", "two-bounce", in_kip=True, starred=True, rounds=1),
    cell("0.10.0", "2.4", "two-bounce", "refused", requirement="268-39", reason="upgrade.from", rounds=0),
    cell("2.0", "2.1", "bounce", "breaks", requirement="268-33", reason="member b dies: <IllegalState>", broken=3,
         predicted="ok", differs=True, rule="observed", foreseen="ok"),
)  # fmt: skip
SKIPPED = ({"from": "0.10.2", "to": "2.1", "scenario": "join", "why": "kafka-streams 0.10.2.2 cannot be had"},)
LINES = ("# first bounce: with this line", "upgrade.from=0.10.0", "# second bounce: without it")


def answer(old: str, new: str, result: str = "works", way: str | None = "two-bounce", **more: Any) -> Line:
    about: Line = {
        "from": old, "to": new, "way": way, "result": result, "text": f"{old} to {new}: it {result}.",
        "more": [{"result": "unknown", "text": "Not run: offline."}],
        "configuration": [*LINES] if way == "two-bounce" else [],
    }  # fmt: skip
    return {**about, **more}


ANSWERS = (
    answer("0.10.0", "0.10.2"), answer("0.10.0", "2.4", "breaks", None), answer("2.0", "2.1", "conditional", "offline"),
    answer("2.0", "2.4", "unknown", None),
)  # fmt: skip
ABOUT = {"join": "one new member joins", "bounce": "one after the other", "two-bounce": "twice, with upgrade.from"}


def matrix(
    cells: Iterable[Line] = CELLS, complete: bool = True, stale: bool = False, skipped: Iterable[Line] = SKIPPED,
    answers: Iterable[Line] = ANSWERS, **more: Any,
) -> Line:  # fmt: skip
    cells, skipped = tuple(cells), tuple(skipped)
    verdicts = [each["verdict"] for each in cells]
    rules = [each["rule"] for each in cells]
    gone = {"from": "2.0", "to": "2.4", "scenario": "bounce", "why": "it is ok now"}
    return {
        "answers": list(answers), "cells": list(cells), "complete": complete, "kipcheck": "0.1.0", "full": False,
        "scenarios": [{"name": name, "about": about} for name, about in ABOUT.items()],
        "releases": [
            {"name": name, "patch": patch, "latest": latest, "kind": "speaks metadata 4" if name == "2.1" else None}
            for name, (patch, latest) in RELEASES.items()
        ],
        "skipped": list(skipped), "requirements": REQUIREMENTS,
        "counts": {
            "ok": verdicts.count("ok"), "breaks": verdicts.count("breaks"), "refused": verdicts.count("refused"),
            "skipped": len(skipped), "foreseen": rules.count("foreseen"), "fitted": rules.count("fitted"),
            "observed": rules.count("observed"), "differing": sum(each["differs"] for each in cells),
            "known": sum(each["known"] is not None for each in cells), "cached": 2, "histories": 6 * len(cells),
        },
        "stale": [gone] if stale else [], "begun": "2026-01-31T23:59:59Z", "seconds": 61.5, **more,
    }  # fmt: skip


def seen(what: str, text: str, member: str | None = None, **more: Any) -> Line:
    return {"what": what, "text": text, "member": member, "used": {}, "blobs": [], **more}


ROWS = [
    {"offset": 0, "hex": "00000004", "field": "version", "value": "4", "guilty": True},
    {"offset": 4, "hex": "00000004", "field": "latestSupportedVersion", "value": "4"},
]
BLOB = {"member": "a", "kind": "assignment", "hex": "0000000400000004", "rows": ROWS}
UNREAD = {"member": "b", "kind": "subscription", "hex": "ff" * 3, "rows": []}


def history(**more: Any) -> Line:
    """Of the cell that breaks: 2.0 to 2.1, bounce."""
    script = "start a 2.0.1; settle; start b 2.1.1; settle; lose b"
    about: Line = {
        "case": "bounce-2x0-2x1", "from": "2.0", "to": "2.1", "scenario": "bounce", "edition": "apache@2.1.1",
        "target": "java:kafka-streams:2.0.1 -> 2.1.1", "verdict": "breaks", "rounds": 2, "requirement": "268-33",
        "reason": "member b dies: <IllegalState>", "script": script,
        "play": "kipcheck replay kipcheck-matrix/histories/bounce-2x0-2x1.json", "plain": {},
        "members": [
            {"name": "a", "instance": None, "releases": ["2.0.1", "2.1.1"]},
            {"name": "d", "instance": "a", "releases": ["2.0.1"]},
        ],
        "broken": [
            {"invariant": "streams/used-version", "requirements": ["268-33", "268-99"], "why": "a uses 4 and knows 3",
             "steps": [3], "grade": "MUST"},
            {"invariant": "streams/alive", "requirements": ["268-14"], "why": "a died", "steps": [], "grade": "MUST"},
        ],
        "steps": [
            {"step": "start a 2.0.1", "rounds": 0, "seen": [seen("began", "a begins", "a")]},
            {"step": "settle", "rounds": 1, "seen": [
                seen("formed", "generation 1: a leads", used={"a": 3}),
                seen("sent", "a is sent 0_0", "a", blobs=[{**BLOB, "rows": ROWS[1:]}]),
            ]},
            {"step": "start b 2.1.1", "rounds": 0, "seen": [seen("began", "b begins", "b")]},
            {"step": "settle", "rounds": 2, "seen": [
                seen("formed", "generation 2: b leads", used={"a": 3, "b": 4}, blobs=[UNREAD]),
                seen("sent", "a is sent 0_0", "a", guilty=True, blobs=[BLOB]),
                seen("died", "a dies: <IllegalState>", "a"),
            ]},
            {"step": "lose b", "rounds": 0, "seen": []},
        ],
    }  # fmt: skip
    return {**about, **more}


def written(folder: Path, found: Line, *histories: Line) -> Path:
    """As ``kipcheck matrix`` leaves it; the path of the matrix."""
    (folder / "histories").mkdir(parents=True, exist_ok=True)
    for each in histories:
        (folder / "histories" / f"{each['case']}.json").write_text(json.dumps(each), "utf-8")
    path = folder / "matrix.json"
    path.write_text(json.dumps(found), "utf-8")
    return path
