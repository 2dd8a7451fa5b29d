"""The results as one JSON value in the form of ``results.schema.json``, with the outcome as its last key."""

import json
import re
from collections.abc import Iterator
from typing import Any

from kipcheck.conformance.core.ledger import plain, spans
from kipcheck.conformance.core.values.untrusted_text import harmless_json
from kipcheck.reports.summary import Cell, Reached, Summary

HALVES = re.compile("[\ud800-\udfff]")


def render(found: Summary) -> str:
    return dumped(
        {
            "format": found.ledger.failure_format,
            "kipcheck": found.header.kipcheck or None,
            "python": found.header.python or None,
            "begun": found.header.begun or None,
            "options": found.options.plain,
            "part": found.header.part,
            "merged": plain(found.header.merged),
            "targets": plain(found.ledger.targets),
            "checks": list(_checks(found)),
            "failures": plain(found.failures),
            "causes": plain([each.cause for each in found.causes if each.cause is not None]),
            "differences": plain(found.ledger.differences),
            "requirements": [_requirement(each) for each in found.coverage],
            "invariants": {
                target: {id: each._asdict() for id, each in by.items()} for target, by in found.totals.judged.items()
            },
            "cells": plain(found.ledger.cells),
            "skips": plain(found.ledger.skips),
            "inconclusive": plain(found.ledger.inconclusive),
            "held_back": plain(found.ledger.held_back),
            "troubles": plain(found.ledger.troubles),
            "stale": plain(found.stale),
            "flaky": plain(found.flaky),
            "campaigns": plain(found.ledger.campaigns),
            "rounds": plain(found.ledger.rounds),
            "footer": {
                "complete": found.complete,
                "stopped_by": None if found.complete else found.state,
                "exit": found.exit,
                "meaning": found.meaning,
                "seconds": found.seconds if found.exit is not None else None,
                "cases": sum(found.totals.cases.values()),
                "failures": found.totals.failures["FAIL"],
                "warnings": found.totals.failures["WARN"],
                "known": found.totals.failures["KNOWN"],
                "counts": found.ledger.counts,
                "totals": found.totals.plain,
            },
        }
    )


def dumped(value: Any) -> str:
    """JSON that every reader accepts: halves of surrogate pairs are written as text, ``\\ud800`` with its backslash."""
    text = json.dumps(value, ensure_ascii=False, indent=1)
    return harmless_json(HALVES.sub(lambda half: f"\\\\u{ord(half[0]):04x}", text)) + "\n"


def _checks(found: Summary) -> Iterator[dict[str, Any]]:
    for check, by in found.table.items():
        yield {
            "check": check,
            "sentence": found.header.checks.get(check, ""),
            "targets": {target: _cell(cell) for target, cell in by.items()},
            "subjects": {
                subject: {target: _cell(cell) for target, cell in cells.items()}
                for subject, cells in found.cells[check].items()
            },
        }


def _cell(cell: Cell) -> dict[str, Any]:
    versions = {result: spans(each) for result, each in cell.versions.items()}
    return {"result": cell.word, "counts": dict(cell.counts), **({"versions": versions} if versions else {})}


def _requirement(each: Reached) -> dict[str, Any]:
    return {
        "id": each.id,
        "clause": each.about.clause,
        "grade": each.about.grade,
        "role": each.about.role,
        "checks": list(each.checks),
        "cases": each.cases,
        "reached": {
            target: {
                subject: {
                    "result": cell.word,
                    "cases": cell.cases,
                    "versions": spans(set().union(*cell.versions.values())),
                }
                for subject, cell in subjects.items()
            }
            for target, subjects in each.by.items()
        },
    }
