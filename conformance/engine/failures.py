"""Distinct failures: their files, and what those of several runs or shards are together.

``Line`` is what a ledger says of one; ``filed`` is what ``failures/ID.json`` holds: the same, and the case.
"""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from kipcheck.conformance.core.case import Case
from kipcheck.conformance.core.foreign import harmless_json, is_data
from kipcheck.conformance.core.ledger import Line, check_failure, numbers, spans
from kipcheck.conformance.core.output_folder import OutputFolder

FOLDER = "failures"
FLAKY = "flaky"
"""Below it: what fails now and then."""
Members: TypeAlias = list[tuple[Line, Line | None]]
"""Lines that tell of one failure, each with what its file holds; None where that is not there any more."""


def file(line: Line, filed: Line | None, out: Path, below: str = "") -> Line:
    """Write ``failures/ID.json`` under ``out``, as the line has it; gives the line with how to reproduce it.

    Errors: OSError; ``output_folder.Unusable`` where a file that kipcheck did not write is there; ValueError where the
    line came from a file, and its id is none.
    """
    check_failure(line, "a failure")
    entry = "/".join(filter(None, (FOLDER, below, f"{line['id']}.json")))
    path = (out / entry).absolute()
    line = {**line, "reproduce": again(path, str(line["target"]))}
    if filed is not None:
        told = {**filed, **{key: each for key, each in line.items() if key != "type"}}
        OutputFolder(out).claim(entry)
        text = harmless_json(json.dumps(told, indent=1, ensure_ascii=False)) + "\n"
        path.write_text(text, "utf-8", errors="backslashreplace")
    return line


def again(path: Path, target: str) -> str:
    """The command that replays a failure. A file names no command that is started, so the command line names it."""
    named = () if is_data(target) else ("--target", target)
    return shlex.join(("kipcheck", "replay", str(path), *named))


def load(path: Path) -> tuple[Line, Case]:
    """A file of a failure. What it holds is data: what becomes a path, a command or a conversation is checked.

    Errors: OSError; ValueError that names the file and what is wrong with it.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as wrong:
        raise ValueError(f"{path} holds no failure: {wrong}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds no failure: it is no JSON object")  # noqa: TRY004
    for key in ("target", "invariant"):
        if not isinstance(found.get(key), str):
            raise ValueError(f'{path} holds no failure: "{key}" is no text')  # noqa: TRY004
    check_failure(found, str(path))
    try:
        case = Case.of(found["case"])
        whole = all(isinstance(each.verb, str) and isinstance(each.body, Mapping) for each in case.steps)
        if not case.steps or not whole or not isinstance(case.edition, str):
            raise ValueError("a case has an edition, and steps with a verb and a body each")
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise ValueError(f'{path} holds no failure: "case": {wrong!r}') from None
    return found, case


def filed(folder: Path, id: str, below: str = "") -> Line | None:
    """What the file under ``folder`` holds; None where it is not there any more."""
    try:
        found = json.loads((folder / FOLDER / below / f"{id}.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def is_filed(path: Path) -> bool:
    """Is it a file that kipcheck wrote for a failure, under the name that it gave it?"""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    named = re.fullmatch(r"([0-9a-f]{12})\.json", path.name)
    return named is not None and not path.is_symlink() and isinstance(found, dict) and found.get("id") == named[1]


def where_places(where: Mapping[str, str]) -> list[tuple[str, int | None]]:
    """Subjects and versions, one by one, of what ``where`` of a line tells."""
    return [
        (subject, version) for subject, versions in where.items() for version in (sorted(numbers(versions)) or (None,))
    ]


def gathered(by_id: Mapping[str, Members]) -> list[Members]:
    """What was not shrunk goes, as in one run, to what was and breaks the same invariant as far as it tells."""
    whole = {id: members for id, members in by_id.items() if any(line.get("shrunk", True) for line, _ in members)}
    found = {id: list(members) for id, members in whole.items()}
    for id, members in by_id.items():
        if id in whole:
            continue
        line = members[0][0]
        alike = [(other[0][0]["shape"], key) for key, other in whole.items() if goes_to(line, other[0][0])]
        found.setdefault(min(alike)[1] if alike else id, []).extend(members)
    return list(found.values())


def united(members: Members) -> tuple[Line, Line | None]:
    """One failure of all that tell of it, with the least case of theirs."""
    line, filed = min(members, key=lambda each: _least(*each))
    return {**line, **_together([each for each, _ in members])}, filed


def goes_to(line: Line, other: Line) -> bool:
    """Does the other tell of the same failure, as far as the line goes, which nobody has shrunk?"""
    same = (line["target"], line["invariant"]) == (other["target"], other["invariant"])
    return same and other["shape"][: len(line["shape"])] == line["shape"]


def _least(line: Line, filed: Line | None) -> tuple[int, int, str]:
    """The one with the least case, as ``evidence`` has it; of what was not shrunk the one that a run meets first."""
    if not line.get("shrunk", True):
        return -len(line["shape"]), 0, line["subject"]
    steps = filed["case"]["steps"] if filed is not None else []
    size = sum(len(json.dumps(step["body"])) for step in steps) if steps else 1 << 40
    return -len(line["shape"]), size, line["case_id"]


def _together(lines: Sequence[Line]) -> Line:
    """What a failure is in all: cases and places of all, and whether all of it is expected."""
    found: Line = {
        "cases": sum(each["cases"] for each in lines),
        "checks": sorted({check for each in lines for check in each["checks"]}),
        "shrunk": any(each.get("shrunk", True) for each in lines),
        "where": _where(each["where"] for each in lines),
    }
    expected = [each.get("known") or each.get("beyond") for each in lines]
    if any(expected) and not all(each.get("known") for each in lines):
        beyond = [
            each["beyond"]["where"] if each.get("beyond") else each["where"] for each in lines if not each.get("known")
        ]
        reason = next(each for each in expected if each)
        found |= {"known": None, "beyond": {**reason, "where": _where(beyond)}}
    return found


def _where(each: Iterable[Mapping[str, str]]) -> dict[str, str]:
    found: dict[str, set[int]] = {}
    for where in each:
        for subject, versions in where.items():
            found.setdefault(subject, set()).update(numbers(versions))
    return {subject: spans(versions) for subject, versions in sorted(found.items())}
