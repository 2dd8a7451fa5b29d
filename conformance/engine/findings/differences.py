"""Cross-target differences: the same case with different results, or passed by all with different answers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from kipcheck.conformance.core.ledger import Difference
from kipcheck.conformance.engine.execution.worker import UnitResult
from kipcheck.conformance.protocols.declare.answer_digest import REFUSED

JUDGED = ("PASS", "FAIL", "WARN", "NOTE")
"""Results that show how a target behaves; UNKNOWN and SKIP do not."""
Place: TypeAlias = tuple[str, str, int | None]
"""Check, subject, version."""


@dataclass(slots=True)
class Differences:
    """Collects the results and answers of all targets, and lists the cases in which they differ."""

    targets: tuple[str, ...]
    _seen: dict[tuple[Place, str], dict[str, tuple[str, str]]] = field(default_factory=dict)

    def add(self, target: str, result: UnitResult) -> None:
        place = result.unit.check, result.unit.subject, result.unit.version
        for (case, word, _), answer in zip(result.cases, result.answers, strict=False):
            self._seen.setdefault((place, case), {})[target] = word, answer

    def rows(self) -> Iterator[Difference]:
        """One for each check, subject and combination of results."""
        found: dict[tuple[str, ...], list[tuple[int | None, str]]] = {}
        for ((check, subject, version), case), by in self._seen.items():
            judged = {name: each for name, each in by.items() if each[0] in JUDGED}
            words, answers = {word for word, _ in judged.values()}, {answer for _, answer in judged.values()}
            if len(words) > 1 or (words == {"PASS"} and len(answers) > 1):
                found.setdefault((check, subject, *self._cells(by)), []).append((version, case))
        for place, cases in found.items():
            yield Difference.between(self.targets, place, cases)

    def _cells(self, by: Mapping[str, tuple[str, str]]) -> Iterator[str]:
        """``PASS``, ``FAIL`` ...; if all pass, with a mark of the answer: ``PASS a``, ``PASS refused``."""
        all_pass = {word for word, _ in by.values() if word in JUDGED} == {"PASS"}
        letters: dict[str, str] = {}
        for name in self.targets:
            word, answer = by.get(name, ("SKIP", ""))
            if all_pass and word == "PASS":
                mark = REFUSED if answer == REFUSED else letters.setdefault(answer, chr(ord("a") + len(letters)))
                yield f"{word} {mark}"
            else:
                yield word
