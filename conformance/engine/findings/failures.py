"""Distinct failures: groups of what shows the same one, the least case of a group, and its file.

A run groups findings, a campaign and ``merge`` group failures of shards and ledgers, all by ``distinct``.
``failures/ID.json`` contains a failure and its case.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from kipcheck.conformance.core.files.output_folder import OutputFolder
from kipcheck.conformance.core.files.unreadable_file import not_text
from kipcheck.conformance.core.ledger import (
    FAILURE_FORMATS,
    Failure,
    FiledFailure,
    Flaky,
    Malformed,
    check_failure,
    places_of,
    united_followers,
    where_of,
)
from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.failure_group import FailureGroup, grouped
from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.core.values.untrusted_text import harmless_json, is_data

FOLDER = "failures"
DEFAULT_OUT: Final = "kipcheck-out"
FLAKY = "flaky"
"""The folder in it for failures that do not occur every time."""
Member = TypeVar("Member")


@dataclass(frozen=True, slots=True)
class DistinctFailure:
    """A failure of a ledger, and the content of its file."""

    line: Failure
    filed: FiledFailure | None
    """None: there is no file any more."""


# ---- groups


class Kind(NamedTuple):
    """Findings of one target with equal kinds are probably one failure: only the first of them is shrunk."""

    check: str
    invariant: str
    subject: str
    """Of the first of them; empty if the check does not shrink: then subjects make no difference."""
    shape: tuple[str, ...]

    @classmethod
    def of(cls, check: str, invariant: str, subject: str, shape: tuple[str, ...], shrinks: bool) -> "Kind":
        """``shrinks``: whether the check does."""
        return cls(check, invariant, subject if shrinks else "", shape)


class Traits(NamedTuple):
    """The properties of a failure that decide whether two of them are the same."""

    key: Any
    """Equal for the same failure; it can be ordered."""
    target: str
    invariant: str
    shape: tuple[Any, ...]
    shrunk: bool
    """If not, the shape may be the beginning of what it would be after shrinking."""

    def may_be(self, other: "Traits") -> bool:
        """Whether the other is the same failure, as far as this one, which was not shrunk, shows."""
        same = (self.target, self.invariant) == (other.target, other.invariant)
        return same and other.shape[: len(self.shape)] == self.shape


def traits(line: Failure) -> Traits:
    return Traits(line.id, line.target, line.invariant, line.shape, line.shrunk)


def distinct(
    groups: Iterable[FailureGroup[Member]], traits: Callable[[FailureGroup[Member]], Traits], also_unshrunk: bool
) -> list[FailureGroup[Member]]:
    """Groups of the same failure together: first those that were shrunk, in their order, then the others.

    A group that was not shrunk joins the one with the least shape that it may be. ``also_unshrunk``: even if that one
    was not shrunk either.
    """
    found: dict[Any, tuple[Traits, list[Member]]] = {}
    for about, group in sorted(((traits(each), each) for each in groups), key=lambda pair: not pair[0].shrunk):
        key = about.key
        if not about.shrunk:
            others = [
                (other.shape, other.key)
                for other, _ in found.values()
                if (also_unshrunk or other.shrunk) and about.may_be(other)
            ]
            key = min(others)[1] if others else key
        found.setdefault(key, (about, []))[1].extend(group.members)
    return [FailureGroup(tuple(members)) for _, members in found.values()]


def distinct_failures(found: Iterable[DistinctFailure]) -> list[FailureGroup[DistinctFailure]]:
    """The distinct failures of several ledgers or shards."""

    def of_group(group: FailureGroup[DistinctFailure]) -> Traits:
        return traits(group.first.line)._replace(shrunk=any(each.line.shrunk for each in group.members))

    return distinct(grouped(found, lambda each: each.line.id), of_group, also_unshrunk=False)


def united(group: FailureGroup[DistinctFailure]) -> DistinctFailure:
    """One failure with all cases and places of the group, and the least of its cases."""
    least = min(group.members, key=_size)
    lines = [each.line for each in group.members]
    line = least.line.update(
        cases=sum(each.cases for each in lines),
        checks=tuple(sorted({check for each in lines for check in each.checks})),
        shrunk=any(each.shrunk for each in lines),
        where=_where(each.where for each in lines),
        **({"unlisted": True} if any(each.unlisted for each in lines) else {}),
    )
    if followers := united_followers(each for one in lines for each in one.followed_by or ()):
        line = line.update(followed_by=followers)
    return DistinctFailure(_partly_known(line, lines), least.filed)


def is_among(line: Failure, others: Iterable[Failure | Flaky]) -> bool:
    """Whether it is one of them, as far as those show that were not shrunk."""
    mine = traits(line)
    for other in others:
        if line.id == other.id:
            return True
        if isinstance(other, Failure) and not (line.shrunk and other.shrunk):
            theirs = traits(other)
            if (not line.shrunk and mine.may_be(theirs)) or (not other.shrunk and theirs.may_be(mine)):
                return True
    return False


def _size(stored: DistinctFailure) -> tuple[int, int, str]:
    """Orders failures by their cases as ``evidence`` does; those that were not shrunk as a run finds them."""
    line, filed = stored.line, stored.filed
    if not line.shrunk:
        return -len(line.shape), 0, line.subject
    steps = filed.case["steps"] if filed is not None and filed.case is not None else []
    size = sum(len(json.dumps(step["body"])) for step in steps) if steps else 1 << 40
    return -len(line.shape), size, line.case_id


def _partly_known(line: Failure, lines: Sequence[Failure]) -> Failure:
    """With the entry that covers some of the lines, and the places that it does not cover."""
    entries = [each.known or each.beyond for each in lines]
    entry = next((each for each in entries if each is not None), None)
    if entry is None or all(each.known for each in lines):
        return line
    left = [_uncovered(each) for each in lines if not each.known]
    return line.update(known=None, beyond=entry.update(where=_where(left)))


def _uncovered(line: Failure) -> Mapping[str, str]:
    return line.where if line.beyond is None or line.beyond.where is None else line.beyond.where


def _where(each: Iterable[Mapping[str, str]]) -> dict[str, str]:
    return where_of(place for where in each for place in places_of(where))


# ---- files


def file(stored: DistinctFailure, out: Path, below: str = "") -> DistinctFailure:
    """Writes ``failures/ID.json`` under ``out``, if there is a case; gives the failure with its command.

    Errors: OSError; ``output_folder.Unusable`` if a file of that name was not written by kipcheck; ValueError if the
    failure came from a file, and its id is none.
    """
    line = stored.line
    check_failure({"id": line.id, "reproduce": line.reproduce}, "a failure")
    entry = "/".join(filter(None, (FOLDER, below, f"{line.id}.json")))
    path = (out / entry).absolute()
    line = line.update(reproduce=again(path, line.opened))
    if stored.filed is None:
        return DistinctFailure(line, None)
    filed = stored.filed.with_line(line)
    OutputFolder(out).claim(entry)
    text = harmless_json(json.dumps(filed.plain, indent=1, ensure_ascii=False)) + "\n"
    path.write_text(text, "utf-8", errors="backslashreplace")
    return DistinctFailure(line, filed)


def again(path: Path, target: str) -> str:
    """The command that replays a failure. It names the target if that starts a command: a file must not start one."""
    named = () if is_data(target) else ("--target", target)
    return shlex.join(("kipcheck", "replay", *_place(path), *named))


def _place(path: Path) -> tuple[str, ...]:
    """The words for the file of a failure: its id where it is in ``--out``; paths below here are relative."""
    if path.parent.name != FOLDER:
        return (_below_here(path),)
    out = _below_here(path.parent.parent)
    return (path.stem, *(() if out == DEFAULT_OUT else ("--out", out)))


def _below_here(path: Path) -> str:
    whole, here = path.absolute(), Path.cwd()
    return str(whole.relative_to(here) if whole.is_relative_to(here) else whole)


def _requirement(found: Any) -> Any:
    """A regression has the ids of requirements only."""
    if not isinstance(found, str):
        return found
    known = requirements().get(found)
    return {"id": found, "clause": "" if known is None else known.clause, "text": "" if known is None else known.text}


def load(path: Path) -> tuple[FiledFailure, Case]:
    """Reads the file of a failure, or of a regression, and checks all that becomes a path, a command or a case.

    Errors: OSError; ValueError that names the file and the wrong value.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as wrong:
        raise ValueError(f"{path} does not contain a failure: {not_text(wrong)}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} does not contain a failure: it is not a JSON object")  # noqa: TRY004
    for key in ("target", "invariant"):
        if not isinstance(found.get(key), str):
            raise ValueError(f'{path} does not contain a failure: "{key}" must be a text')  # noqa: TRY004
    if isinstance(found.get("requirements"), list):
        found["requirements"] = [*map(_requirement, found["requirements"])]
    check_failure(found, str(path))
    try:
        filed = FiledFailure.of(found, blank=True)
        if filed.failure_format not in FAILURE_FORMATS:
            known = " and ".join(map(str, FAILURE_FORMATS))
            raise Malformed(f'"format" is {filed.format}, and this kipcheck reads {known}')
        case = Case.of(found["case"])
        whole = all(isinstance(each.verb, str) and isinstance(each.body, Mapping) for each in case.steps)
        if not case.steps or not whole or not isinstance(case.edition, str):
            raise ValueError("a case has an edition, and steps with a verb and a body each")
    except Malformed as wrong:
        raise ValueError(f"{path} does not contain a failure: {wrong}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise ValueError(f'{path} does not contain a failure: "case": {wrong!r}') from None
    return filed, case


def filed(folder: Path, id: str, below: str = "") -> FiledFailure | None:
    """The content of the file under ``folder``; None if there is none that can be read."""
    try:
        return FiledFailure.of(json.loads((folder / FOLDER / below / f"{id}.json").read_text("utf-8")), blank=True)
    except (OSError, ValueError):
        return None


def is_filed(path: Path) -> bool:
    """Whether kipcheck wrote the file for a failure, under this name."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    named = re.fullmatch(r"([0-9a-f]{12})\.json", path.name)
    return named is not None and not path.is_symlink() and isinstance(found, dict) and found.get("id") == named[1]
