"""Ledgers for tests of reports: small, with every kind of line."""

import json
from pathlib import Path
from typing import Any

from kipcheck.conformance.core.ledger import FAILURE_FORMAT, FORMAT
from kipcheck.conformance.core.values.untrusted_text import harmless_json

Line = dict[str, Any]

HEADER: Line = {
    "format": FORMAT,
    "kipcheck": "0.1.0",
    "python": "3.12.1",
    "begun": "2026-01-31T23:59:59Z",
    "options": {
        "targets": ["somebody", "another"], "edition": "apache", "checks": ["*"], "messages": ["*"], "seed": 7,
        "cases": None, "out": "kipcheck-out",
    },
    "part": None,
    "checks": {"wire/two-readings": "bytes mean what they mean", "assignment/owners": "each partition has one owner"},
    "invariants": {
        "wire/decodes": {
            "sentence": "Legal bytes are read as what they are.", "grade": "MUST", "checks": ["wire/two-readings"],
            "requirements": ["grp-05"], "besides": {"SyncGroupResponse": ["584-04"]},
        },
        "one-owner": {
            "sentence": "A partition has one owner.", "grade": "MUST", "checks": ["assignment/owners"],
            "requirements": ["429-07"], "besides": {},
        },
    },
    "requirements": {
        "grp-05": {
            "clause": "generated message classes", "grade": "MUST", "role": "codec", "edition": "shipped",
            "releases": "all", "text": "What is written is read back.", "means": "Read it.", "fix": "Mend it.",
        },
        "584-04": {"clause": "Tags", "grade": "MUST", "role": "codec", "edition": "shipped", "text": "As they are."},
        "429-07": {"clause": "Assignor", "grade": "MUST", "role": "leader", "edition": "both", "text": "One owner."},
        "268-09": {"clause": "Version probing", "grade": "SHOULD", "role": "member", "edition": "both"},
    },
    "failure_format": FAILURE_FORMAT,
}  # fmt: skip
TARGETS: list[Line] = [
    {"target": "somebody", "version": "1.0", "language": "python", "issues": "https://issues.example/"},
    {"target": "another", "version": "2.0", "language": "go", "issues": "nobody knows"},
]
FAILURE: Line = {
    "id": "0123456789ab",
    "target": "somebody",
    "version": "1.0",
    "check": "wire/two-readings",
    "checks": ["wire/two-readings"],
    "shrunk": True,
    "invariant": "wire/decodes",
    "grade": "MUST",
    "sentence": "Legal bytes are read as what they are.",
    "requirements": [{"id": "grp-05", "clause": "generated message classes", "text": "What is written is read back."}],
    "edition": "apache",
    "subject": "HeartbeatResponse",
    "subject_version": 1,
    "why": "errorCode is read as 65535, not -1",
    "expected": "-1",
    "observed": "65535",
    "path": "errorCode",
    "offset": None,
    "shape": ["misread"],
    "cases": 12,
    "where": {"HeartbeatResponse": "0-4", "SyncGroupResponse": "0"},
    "steps": [{"verb": "decode", "message": "HeartbeatResponse", "version": 1, "hex": "00000000ffff"}],
    "guilty_step": 0,
    "fix": "Read an error code as a signed number.",
    "exhibits": [
        {
            "kind": "bytes",
            "rows": [
                {
                    "offset": 0, "bytes": "00000000", "path": "throttleTimeMs", "type": "int32", "value": "0",
                    "guilty": False,
                },
                {"offset": 4, "bytes": "ffff", "path": "errorCode", "type": "int16", "value": "-1", "guilty": True},
            ],
        }
    ],
    "case_id": "aa",
    "reproduce": "kipcheck replay /somewhere/0123456789ab.json",
}  # fmt: skip
TABLE: Line = {
    "kind": "table",
    "columns": ["member", "subscribes to", "owned", "generation", "got"],
    "rows": [
        {"cells": ["c1", "t", "t-0", 3, "t-0 t-1"], "guilty": False},
        {"cells": ["c2", "t", "t-1", 3, "t-1"], "guilty": True},
    ],
}
SEQUENCE: Line = {
    "kind": "sequence",
    "steps": [
        {"from": "operator", "to": "controller", "says": "update level 3", "answer": "accepted", "guilty": False},
        {"from": "controller", "to": "controller", "says": "epoch 4", "answer": None, "guilty": False},
        {"from": "broker 1", "to": "controller", "says": "up, 1 to 2", "answer": "registered", "guilty": True},
    ],
}
SEEN: Line = {
    **FAILURE,
    "id": "ba9876543210",
    "check": "assignment/owners",
    "checks": ["assignment/owners"],
    "invariant": "one-owner",
    "sentence": "A partition has one owner.",
    "requirements": [{"id": "429-07", "clause": "Assignor", "text": "One owner."}],
    "subject": "sticky",
    "subject_version": None,
    "why": "t-1 has two owners",
    "expected": "",
    "observed": "",
    "path": "",
    "shape": ["two owners"],
    "cases": 1,
    "where": {"sticky": ""},
    "steps": [{"verb": "assign", "assignor": "sticky", "topics": [], "members": []}],
    "exhibits": [TABLE, SEQUENCE],
    "case_id": "bb",
    "reproduce": "kipcheck replay /somewhere/ba9876543210.json",
    "tags": ["ownership", "KAFKA-1"],
}
REASON: Line = {
    "file": "known.toml", "line": 3, "reason": "it is old", "link": "https://issues.example/1", "expires": None,
}  # fmt: skip
DIFFERENCE: Line = {
    "check": "wire/two-readings", "subject": "HeartbeatResponse", "versions": "0-1",
    "cells": {"somebody": "FAIL", "another": "PASS"}, "cases": 3, "case": "aa", "grade": "INFO",
}  # fmt: skip
FOOTER: Line = {
    "complete": True,
    "stopped_by": None,
    "exit": 1,
    "exits": [1],
    "meaning": "an unexpected failure",
    "counts": {},
    "seconds": 1.0,
}


def verdicts(result: str, number: int, **about: Any) -> list[tuple[str, Line]]:
    line = {"target": "somebody", "check": "wire/two-readings", "subject": "HeartbeatResponse", "version": 1, **about}
    invariant = "one-owner" if line["check"] == "assignment/owners" else "wire/decodes"
    by = {invariant: result if result in ("PASS", "SKIP", "UNKNOWN") else "FAIL"}
    return [("verdict", {**line, "case": f"{each:x}", "result": result, "by": by}) for each in range(number)]


def write(path: Path, *lines: tuple[str, Line], footer: Line | None = FOOTER, header: Line = HEADER) -> Path:
    """A ledger in the folder, with these lines between the header and the footer."""
    path.mkdir(parents=True, exist_ok=True)
    every = [("header", header), *lines, *([("footer", footer)] if footer is not None else [])]
    text = "".join(json.dumps({"type": kind, **line}, ensure_ascii=False) + "\n" for kind, line in every)
    (path / "ledger.jsonl").write_text(harmless_json(text), "utf-8", errors="backslashreplace", newline="\n")
    return path / "ledger.jsonl"


CAUSE: Line = {
    "id": "feedfeedfeed", "target": FAILURE["target"], "title": "An assignment is lost", "severity": "stuck group",
    "cases": 13, "failures": [FAILURE["id"], "222222222222"], "least": FAILURE["id"], "kafka": ["kafka-clients 4.4.0"],
    "at": "codec.py:12", "reason": "A poll drops it.", "page": "conformance/docs/findings/no-such.md", "status": "new",
}  # fmt: skip


def everything() -> list[tuple[str, Line]]:
    """Every kind of line, and of failure."""
    owners = {"check": "assignment/owners", "subject": "sticky", "version": None}
    known = {**FAILURE, "id": "111111111111", "target": "another", "version": "2.0", "known": REASON}
    beyond = {
        **FAILURE,
        "id": "222222222222",
        "grade": "SHOULD",
        "beyond": {**REASON, "where": {"SyncGroupResponse": "0"}},
    }
    changed = {**FAILURE, "id": "333333333333", "grade": "INFO", "changed": REASON}
    wanted = {
        **SEEN, "id": "444444444444", "check": "profile", "checks": ["profile"], "cases": 0, "case_id": "", "steps": [],
        "exhibits": [TABLE], "subject": "range", "where": {"range": ""},
    }  # fmt: skip
    del wanted["shrunk"]
    alike = {"subject": "sticky", "versions": "", "cells": {"somebody": "PASS a", "another": "PASS b"}}
    begun = {"target": "somebody", "check": "wire/two-readings", "units": 2}
    return [
        *(("target", each) for each in TARGETS),
        ("begin", begun),
        *verdicts("PASS", 30),
        *verdicts("FAIL", 12, version=2),
        *verdicts("PASS", 3, subject="SyncGroupResponse", version=0),
        ("check", {**begun, "counts": {"PASS": 33, "FAIL": 12}, "seconds": 0.25}),
        *verdicts("FAIL", 4, target="another"),
        *verdicts("UNKNOWN", 2, target="another", subject="SyncGroupResponse"),
        *verdicts("FAIL", 1, **owners),
        *verdicts("WARN", 2, **owners, target="another"),
        *verdicts("NOTE", 2, subject="JoinGroupRequest"),
        *verdicts("SKIP", 2, subject="LeaveGroupRequest"),
        *(("failure", each) for each in (SEEN, beyond, FAILURE, known, changed, wanted)),
        ("cause", CAUSE),
        ("difference", DIFFERENCE),
        ("difference", {**DIFFERENCE, **alike}),
        ("skip", {"target": "another", "check": "wire/claims", "why": "it claims nothing that this is about"}),
        ("trouble", {"target": "another", "why": "it went down\nof itself"}),
        ("stale", {"kind": "passes", "entry": "known.toml:9", "why": "it no longer fails", "target": "another",
                   "checks": ["wire/claims"], "invariant": "survives", "where": {"sticky": ""}, **REASON}),
        ("flaky", {"target": "another", "check": "assignment/owners", "invariant": "one-owner", "subject": "sticky",
                   "version": None, "case": "cc", "why": "now and then", "alone": "failed 2 of 5 times",
                   "entry": "known.toml:12", **REASON}),
    ]  # fmt: skip


CAMPAIGN: Line = {
    "id": "c0ffee00c0ffee00", "targets": {"somebody": True, "another": False}, "engine": "mixed",
    "settings": {"executor": "pool", "slots": 2}, "host": {"name": "here"}, "seed": 7, "cases": 100, "rounds": 2,
    "shard_cases": 25, "complete": True, "stopped_by": "the plan", "planned": 9, "shards": {"done": 8, "crashed": 1},
    "held": 200, "seconds": 10.0, "cpu_seconds": 18.0, "coverage": 60, "corpus": 12, "hash": "0123456789abcdef",
    "clashes": [], "set_aside": [],
}  # fmt: skip
TALLY: Line = {
    "target": "somebody", "check": "wire/two-readings", "subject": "HeartbeatResponse", "version": 1,
    "results": {"PASS": 88, "FAIL": 12}, "by": {"wire/decodes": {"PASS": 88, "FAIL": 12}},
}  # fmt: skip
FLAKY: Line = {
    "id": "abcdef012345", "target": "another", "check": "assignment/owners", "invariant": "one-owner",
    "requirements": ["429-07"], "subject": "sticky", "version": None, "case": "dd", "cases": 2,
    "why": "t-0 has two owners", "alone": "did not fail every time", "entry": "",
}  # fmt: skip


def round_(number: int, *failures: str, **about: Any) -> Line:
    growth = {name: [[50 * number, 20 * number], [50 * number + 50, 40 + 20 * number]] for name in CAMPAIGN["targets"]}
    return {
        "campaign": CAMPAIGN["id"], "round": number, "planned": 5, "shards": {"done": 4}, "cases": 100, "steps": 200,
        "seconds": 5.0, "cpu_seconds": 9.0, "coverage": 40 + 20 * number, "new": 20, "corpus": 6 + 6 * number,
        "failures": list(failures), "growth": growth, **about,
    }  # fmt: skip


def campaigned(**about: Any) -> Line:
    """The header of a campaign."""
    return {**HEADER, "campaigns": [{**CAMPAIGN, **about}]}


def met(failure: Line, cases: int = 33, **about: Any) -> Line:
    """The failure, as a campaign met it."""
    first = {"campaign": CAMPAIGN["id"], "round": 0, "shard": 1, "cases": cases}
    return {**failure, "first": first, **about}


def campaign() -> list[tuple[str, Line]]:
    """What a campaign tells with these lines, and no run."""
    return [
        ("tally", TALLY),
        ("tally", {**TALLY, "target": "another", "check": "assignment/owners", "subject": "sticky", "version": None,
                   "results": {"PASS": 97, "FAIL": 3}, "by": {"one-owner": {"PASS": 97, "FAIL": 3}}}),
        *(("target", each) for each in TARGETS),
        ("flaky", FLAKY),
        ("failure", met(FAILURE)),
        ("failure", met(SEEN, 77, target="another", version="2.0", known=REASON)),
        ("round", round_(0, FAILURE["id"], SEEN["id"])),
        ("round", round_(1)),
    ]  # fmt: skip
