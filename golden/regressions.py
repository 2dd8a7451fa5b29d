"""Conversations in which something failed once, kept for good: ``vectors/regressions/ID.json``.

A campaign proposes them, as ``failures/regressions/ID.json``; a person reviews one, says in ``note`` what is special
about it, and puts it here. ``regression.schema.json`` explains every key. Whoever plays its role can be held to it:
``kipcheck replay golden/vectors/regressions --target T``.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

from kipcheck.conformance.apis.reference import Reference
from kipcheck.conformance.core.case import Case
from kipcheck.conformance.core.edition import edition
from kipcheck.conformance.core.requirement import requirements
from kipcheck.conformance.core.verdict import Result
from kipcheck.conformance.engine.converse import converse, judge
from kipcheck.conformance.invariants.registry import all_invariants
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import NotPlayed, Target
from kipcheck.golden.vector_files import REGRESSIONS

FORMAT: Final = 1


class Malformed(ValueError):
    """A file that holds no regression; which, and why."""


@dataclass(frozen=True, slots=True)
class Regression:
    id: str
    """Of the failure: of target, invariant and shape."""
    note: str
    """What is special about it."""
    target: str
    """Which one failed, and in which version."""
    version: str
    invariant: str
    requirements: tuple[str, ...]
    shape: tuple[str, ...]
    case_id: str
    case: Case


def regression(filed: Mapping[str, Any]) -> str:
    """The text of a file, from what ``failures/ID.json`` holds."""
    told = {
        "format": FORMAT,
        "id": filed["id"],
        "note": filed["why"],
        "target": filed["target"],
        "version": filed["version"],
        "invariant": filed["invariant"],
        "requirements": [each["id"] for each in filed["requirements"]],
        "shape": filed["shape"],
        "case_id": filed["case_id"],
        "case": filed["case"],
    }
    return json.dumps(told, indent=1, ensure_ascii=True) + "\n"


def regressions(root: Traversable | None = None) -> tuple[Regression, ...]:
    """All there are. Errors: ``Malformed``."""
    folder = (root or files("kipcheck.golden")) / "vectors" / REGRESSIONS
    found = sorted(folder.iterdir(), key=lambda each: each.name) if folder.is_dir() else []
    return tuple(read(each) for each in found)


def read(file: Traversable) -> Regression:
    """Errors: ``Malformed``; OSError."""
    try:
        held = json.loads(file.read_text("utf-8"))
        if held["format"] != FORMAT:
            raise Malformed(f"{file.name}: format {FORMAT} is read, not {held['format']}")
        found = Regression(
            held["id"], held["note"], held["target"], held["version"], held["invariant"], tuple(held["requirements"]),
            tuple(held["shape"]), held["case_id"], Case.of(held["case"]),
        )  # fmt: skip
    except (KeyError, TypeError, AttributeError, ValueError) as wrong:
        if isinstance(wrong, Malformed):
            raise
        raise Malformed(f"{file.name}: {wrong!r}") from None
    if file.name != f"{found.id}.json":
        raise Malformed(f"{file.name}: it holds {found.id}")
    return found


def verify(root: Traversable | None = None) -> Iterator[str]:
    """A line for each that is not what it was, names what there is not, or that our own reference fails."""
    for each in regressions(root):
        yield from check(each)


def check(one: Regression, target: Target | None = None) -> Iterator[str]:
    """What is wrong with it, a line each. ``target``: who is held to it; our reference where nobody is named."""
    if one.case.id != one.case_id:
        yield f"{one.id}: its case is {one.case.id}, and not {one.case_id} as was reviewed"
    for strange in sorted(set(one.requirements) - requirements().keys()):
        yield f"{one.id}: there is no requirement {strange}"
    invariants = all_invariants(one.case.role)
    if one.invariant not in {each.id for each in invariants}:
        yield f"{one.id}: no invariant of a {one.case.role.value} is called {one.invariant!r}"
        return
    try:
        edition(one.case.edition)
        with (target or InProcess(Reference())).open(one.case.edition, one.case.role) as session:
            (history,) = converse([one.case], session)
    except (LookupError, NotPlayed) as unknown:
        yield f"{one.id}: it cannot be held: {unknown}"
        return
    about = f"{session.info.name} {session.info.version}"
    verdicts = list(judge(history, invariants))
    for verdict in verdicts:
        if verdict.violations:
            yield f"{one.id}: {about} breaks {verdict.invariant}: {verdict.violations[0].why}"
    decided = {each.invariant for each in verdicts if each.result in (Result.PASS, Result.FAIL)}
    if one.invariant not in decided:
        yield f"{one.id}: {one.invariant} cannot be judged with {about}"
