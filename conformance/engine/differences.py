"""Where targets differ: the same case, judged otherwise, or judged alike and answered otherwise."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kipcheck.conformance.checks.answer_digest import REFUSED
from kipcheck.conformance.core.ledger import spans
from kipcheck.conformance.engine.worker import UnitResult

JUDGED = ("PASS", "FAIL", "WARN", "NOTE")
"""What says something of a target; the rest says that nothing is known."""
Place: TypeAlias = tuple[str, str, int | None]
"""Check, subject, version."""


@dataclass(slots=True)
class Differences:
    """Gathers what every target made of every case, and tells the cases in which they are not of one mind."""

    targets: tuple[str, ...]
    _seen: dict[tuple[Place, str], dict[str, tuple[str, str]]] = field(default_factory=dict)

    def add(self, target: str, result: UnitResult) -> None:
        place = result.unit.check, result.unit.subject, result.unit.version
        for (case, word, _), answer in zip(result.cases, result.answers, strict=False):
            self._seen.setdefault((place, case), {})[target] = word, answer

    def rows(self) -> Iterator[dict[str, Any]]:
        """One for each check, subject and way to differ; of grade INFO, for of right and wrong the verdicts tell."""
        found: dict[tuple[str, ...], list[tuple[int | None, str]]] = {}
        for ((check, subject, version), case), by in self._seen.items():
            judged = {name: each for name, each in by.items() if each[0] in JUDGED}
            words, answers = {word for word, _ in judged.values()}, {answer for _, answer in judged.values()}
            if len(words) > 1 or (words == {"PASS"} and len(answers) > 1):
                found.setdefault((check, subject, *self._cells(by)), []).append((version, case))
        for (check, subject, *cells), cases in found.items():
            yield {
                "check": check,
                "subject": subject,
                "versions": spans({version for version, _ in cases if version is not None}),
                "cells": dict(zip(self.targets, cells, strict=True)),
                "cases": len(cases),
                "case": cases[0][1],
                "grade": "INFO",
            }

    def _cells(self, by: Mapping[str, tuple[str, str]]) -> Iterator[str]:
        """``PASS``, ``FAIL`` ...; where all pass, with what tells the answers apart: ``PASS a``, ``PASS refused``."""
        all_pass = {word for word, _ in by.values() if word in JUDGED} == {"PASS"}
        letters: dict[str, str] = {}
        for name in self.targets:
            word, answer = by.get(name, ("SKIP", ""))
            if all_pass and word == "PASS":
                said = REFUSED if answer == REFUSED else letters.setdefault(answer, chr(ord("a") + len(letters)))
                yield f"{word} {said}"
            else:
                yield word
