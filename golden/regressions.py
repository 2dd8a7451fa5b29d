"""Conversations that failed once, kept for good: ``vectors/regressions/ID.json``.

A campaign proposes them as ``failures/regressions/ID.json``; a person reviews one, describes it in ``note``, and copies
it here. ``regression.schema.json`` explains every key, and ``lock.json`` has a digest of each. Any target with the
role can replay them: ``kipcheck replay golden/vectors/regressions --target T``.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from kipcheck.conformance.core.ledger import FAILURE_FORMATS
from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import NotPlayed, Target
from kipcheck.golden.vector_files import REGRESSIONS


class Malformed(ValueError):
    """A file that contains no valid regression; the text names the file and the error."""


@dataclass(frozen=True, slots=True)
class Regression:
    id: str
    """Of the failure: a hash of target, invariant and shape."""
    note: str
    """What is special about it."""
    target: str
    """The target that failed, and its version."""
    version: str
    invariant: str
    requirements: tuple[str, ...]
    shape: tuple[str, ...]
    case_id: str
    case: Case


def regression(filed: Mapping[str, Any]) -> str:
    """The text of a file, from the content of ``failures/ID.json``."""
    content = {
        "format": filed.get("format", 1),
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
    return json.dumps(content, indent=1, ensure_ascii=True) + "\n"


def regressions(root: Traversable | None = None) -> tuple[Regression, ...]:
    """All regressions. Errors: ``Malformed``."""
    folder = (root or files("kipcheck.golden")) / "vectors" / REGRESSIONS
    found = sorted(folder.iterdir(), key=lambda each: each.name) if folder.is_dir() else []
    return tuple(read(each) for each in found)


def read(file: Traversable) -> Regression:
    """Errors: ``Malformed``; OSError."""
    try:
        content = json.loads(file.read_text("utf-8"))
        if content["format"] not in FAILURE_FORMATS:
            known = " or ".join(map(str, FAILURE_FORMATS))
            raise Malformed(f"{file.name}: unsupported format {content['format']}: must be {known}")
        found = Regression(
            content["id"],
            content["note"],
            content["target"],
            content["version"],
            content["invariant"],
            tuple(content["requirements"]),
            tuple(content["shape"]),
            content["case_id"],
            Case.of(content["case"]),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as wrong:
        if isinstance(wrong, Malformed):
            raise
        raise Malformed(f"{file.name}: {wrong!r}") from None
    if file.name != f"{found.id}.json":
        raise Malformed(f"{file.name}: contains regression {found.id}")
    return found


def verify(root: Traversable | None = None) -> Iterator[str]:
    """A line for each regression that changed, refers to something unknown, or fails with the reference target."""
    for each in regressions(root):
        yield from check(each)


def total(wrong: int, root: Traversable | None = None) -> str:
    """The last line of a verification: how many regressions there are. ``wrong``: lines of ``verify``."""
    return f"{len([*regressions(root)])} regressions, {wrong} wrong"


def check(one: Regression, target: Target | None = None) -> Iterator[str]:
    """The problems of one regression, a line each. ``target``: the target that replays it; default: the reference."""
    if one.case.id != one.case_id:
        yield f"{one.id}: the case has id {one.case.id}, but {one.case_id} was reviewed"
    for strange in sorted(set(one.requirements) - requirements().keys()):
        yield f"{one.id}: unknown requirement {strange}"
    invariants = all_invariants(one.case.role)
    if one.invariant not in {each.id for each in invariants}:
        yield f"{one.id}: unknown invariant {one.invariant!r} of a {one.case.role.value}"
        return
    try:
        edition(one.case.edition)
        with (target or InProcess(Reference())).open(one.case.edition, one.case.role) as session:
            if not session.info.claims.supports(one.case):
                yield f"{one.id}: the case cannot run: the target does not claim an operation of it"
                return
            (history,) = converse([one.case], session)
    except (LookupError, NotPlayed) as unknown:
        yield f"{one.id}: the case cannot run: {unknown}"
        return
    about = f"{session.info.name} {session.info.version}"
    verdicts = list(judge(history, invariants))
    for verdict in verdicts:
        if verdict.violations:
            yield f"{one.id}: {about} breaks {verdict.invariant}: {verdict.violations[0].why}"
    decided = {each.invariant for each in verdicts if each.result in (Result.PASS, Result.FAIL)}
    if one.invariant not in decided:
        yield f"{one.id}: {one.invariant} cannot be judged with {about}"
