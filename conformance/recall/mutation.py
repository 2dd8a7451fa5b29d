"""Changes a client in small ways, one at a time, and lists what the checks of a part find of them.

Results are lines of ``results.jsonl`` in a folder, by client, kipcheck's sources, part, seed and change: a run that was
interrupted goes on where it ended.
"""

import fcntl
import json
import os
import shutil
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.core.operations.field_kinds import from_json, to_json
from kipcheck.conformance.core.values.plain import short_digest
from kipcheck.conformance.engine.execution.pool import pool
from kipcheck.conformance.recall.bugs import InvalidEntry, entry, folder
from kipcheck.conformance.recall.change import MISTAKE, Change
from kipcheck.conformance.recall.changes import changes_in, of_mistake, sample
from kipcheck.conformance.recall.copies import PARTS, TARGETS, Copies, Reached
from kipcheck.conformance.recall.floor import MUTATION, killed, mutation_rows, raise_floor, replace_text
from kipcheck.conformance.recall.mistakes import mistakes
from kipcheck.conformance.recall.mutant_run import (
    DOES_NOT_START,
    HUNG,
    KILLED,
    MASKED,
    RESULTS,
    SAME,
    SURVIVED,
    Baseline,
    Measured,
    Trial,
    baseline,
)
from kipcheck.conformance.recall.python_copies import statement
from kipcheck.conformance.recall.sources import OF_FACTS, digest
from kipcheck.conformance.recall.why import NOT_REACHED, WHYS

RESULT_FILE: Final = "results.jsonl"
EQUIVALENT: Final = "equivalent.toml"
RANDOM: Final = 100
"""Changes where no number is given."""


@dataclass(frozen=True, slots=True)
class Equivalent:
    """A declaration that changes make no difference that a peer or a user can observe: of one id, or of all of a kind
    in a function."""

    client: str
    reason: str
    id: str = ""
    file: str = ""
    function: str = ""
    kind: str = ""

    def has(self, client: str, change: Change) -> bool:
        about = (self.file, self.function, self.kind)
        return client == self.client and (
            self.id == change.id if self.id else about == (change.path, change.inside, change.kind)
        )


def equivalents() -> tuple[Equivalent, ...]:
    """Those of ``equivalent.toml``. Errors: ``InvalidEntry``."""
    path = folder() / EQUIVALENT
    found = []
    for table in tomllib.loads(path.read_text("utf-8")).get("equivalent", ()):
        found.append(made := entry(Equivalent, path, table))
        if not made.reason.strip() or bool(made.id) == bool(made.function):
            raise InvalidEntry(f"{path}: the entry {made.id} needs a reason, and an id, or file, function and kind")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Row:
    """A change to a client, and what became of it."""

    target: str
    part: str
    seed: int
    change: str
    """Its id."""
    kind: str
    file: str
    function: str
    line: int
    diff: str
    measured: Measured
    mistake: str = ""
    """The id of the mistake that it is."""

    @property
    def result(self) -> str:
        return self.measured.result

    @property
    def about(self) -> str:
        name = f"{self.mistake}  " if self.mistake else ""
        return f"{self.change}  {name}{self.kind}, {self.file}:{self.line} {self.function}".rstrip()


@dataclass(frozen=True, slots=True)
class Plan:
    """Changes to a client, for one part."""

    copies: Copies
    part: str
    seed: int
    out: Path
    changes: Sequence[Change]
    names: Mapping[str, str]
    """Change -> the mistake that it is."""
    reached: Reached

    def checks_of(self, change: Change) -> tuple[str, ...]:
        """The checks whose cases reach the changed line."""
        first, last = statement(change) if change.path.endswith(".py") else (change.line, change.line)
        lines = frozenset(range(first, last + 1))
        found = [check for check, files in self.reached.items() if not lines.isdisjoint(files.get(change.path, ()))]
        return tuple(found)

    @property
    def key(self) -> str:
        """What the results of this kipcheck for the client are stored under."""
        return f"{digest(OF_FACTS, with_known=True)} {self.copies.target} {self.part} {self.seed}"


def plan(copies: Copies, part: str, seed: int, n: int | None, out: Path, reached: Reached, by_people: bool) -> Plan:
    """``n`` random changes to lines that the checks of the part reach (None: ``RANDOM``). Or, ``by_people``, what ``n``
    mistakes are in the client (None: all), reached or not; where the target has several parts, those to files of which
    the part runs something. A smaller choice of a seed is the beginning of a larger one.

    Errors: ``InvalidEntry``; ``Unavailable``.
    """
    sources = copies.sources()
    if not by_people:
        lines = {path: frozenset().union(*(each.get(path, ()) for each in reached.values())) for path in sources}
        every = [each for path, text in sources.items() if lines[path] for each in changes_in(path, text, lines[path])]
        return Plan(copies, part, seed, out, sample(every, RANDOM if n is None else n, seed), {}, reached)
    found: dict[str, str] = {}
    changes = []
    is_whole = len(TARGETS[copies.target.partition("@")[0]]) == 1
    mine = {path for path in sources if is_whole or any(path in files for files in reached.values())}
    for mistake in sorted(mistakes().values(), key=lambda each: short_digest([seed, each.id])):
        made = [
            of_mistake(edit, sources[edit.file]) for edit in mistake.change
            if (edit.client, edit.release) == (copies.client, copies.release) and edit.file in mine
        ]  # fmt: skip
        if len({*found.values()}) == n:
            break
        changes += made
        found |= {change.id: mistake.id for change in made}
    return Plan(copies, part, seed, out, changes, found, reached)


def results(plan: Plan, workers: int, only: str = "") -> Iterator[Row]:
    """The row of each change, in their order; those of ``results.jsonl`` are not measured again. ``only``: the change
    with this id, or this number from 1.

    Errors: ``Unavailable`` where the unchanged client cannot be run; LookupError for a change that is not in the plan.
    """
    chosen = [each for number, each in enumerate(plan.changes, 1) if only in ("", each.id, str(number))]
    if only and not chosen:
        raise LookupError(f"--only {only}: use the id of a change, or its number from 1 to {len(plan.changes)}")
    plan.out.mkdir(parents=True, exist_ok=True)
    key, stored = plan.key, _stored(plan)
    same, missing = _same(plan), [each for each in chosen if each.id not in stored]
    copies_of = plan.out / f"copies-{os.getpid()}"
    try:
        needed = [at for at, each in enumerate(missing) if each.id not in same]
        place = plan.out / "unchanged" / key.replace("/", "-").replace(" ", "+")
        base = baseline(plan.copies, plan.part, plan.seed, place, copies_of / "unchanged") if needed else None

        def measure(at: int) -> Row:
            assert base is not None
            row = _row(plan, missing[at], _measured(plan, missing[at], base, copies_of))
            _store(plan.out, key, row)
            return row

        with pool(max(1, min(workers, len(needed))), measure) as processes:
            found = processes.map(needed)
            for change in chosen:
                if change.id in stored:
                    yield stored[change.id]
                elif change.id in same:
                    yield _row(plan, change, Measured(SAME, 0.0, why=same[change.id]))
                else:
                    _, row = next(found)
                    assert row is not None
                    yield row
    finally:
        shutil.rmtree(copies_of, ignore_errors=True)


def _same(plan: Plan) -> Mapping[str, str]:
    """Change -> the reason for which it is declared to be equivalent."""
    declared = equivalents()
    found = (
        (each, next((one for one in declared if one.has(plan.copies.client, each)), None)) for each in plan.changes
    )
    return {each.id: one.reason for each, one in found if one is not None}


def _measured(plan: Plan, change: Change, base: Baseline, place: Path) -> Measured:
    mine = place / str(os.getpid())
    mine.mkdir(parents=True, exist_ok=True)
    checks = plan.checks_of(change)
    if not any(change.path in files for files in plan.reached.values()):
        return Measured(SURVIVED, 0.0, why=NOT_REACHED)  # the checks run nothing of the file
    # Where none reaches it, all are run: the lines of the unchanged client may not show it, as a constant of a module.
    trial = Trial(plan.copies, plan.seed, change, checks or PARTS[plan.part], bool(checks), base)
    return trial.measured(mine)


def _row(plan: Plan, change: Change, found: Measured) -> Row:
    name = plan.names.get(change.id, "")
    about = (change.id, change.kind, change.path, change.inside, change.line, change.diff())
    return Row(plan.copies.target, plan.part, plan.seed, *about, found, name)


def _stored(plan: Plan) -> dict[str, Row]:
    path, key = plan.out / RESULT_FILE, plan.key
    lines = map(json.loads, path.read_text("utf-8").splitlines()) if path.exists() else ()
    return {each["row"]["change"]: from_json(Row, each["row"]) for each in lines if each["key"] == key}


def _store(out: Path, key: str, row: Row) -> None:
    with (out / RESULT_FILE).open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps({"key": key, "row": to_json(row)}) + "\n")


def totals(rows: Iterable[Row]) -> dict[str, Any]:
    """Counts by result; of survivors by why; of survivors and masked ones those that were noticed."""
    rows = [*rows]
    counts = Counter(each.result for each in rows)
    whys = Counter(each.measured.why for each in rows if each.result == SURVIVED)
    return {
        **{result: counts[result] for result in RESULTS},
        "why": {why: whys[why] for why in WHYS},
        "noticed": sum(bool(each.measured.noticed) for each in rows if each.result in (MASKED, SURVIVED)),
        "seconds": round(sum(each.measured.seconds for each in rows), 1),
    }


def score(rows: Iterable[Row]) -> str:
    """In a line. Changes with which the client does not start, and equivalent ones, count in neither number."""
    counts = Counter(each.result for each in rows)
    counted = sum(counts[each] for each in (KILLED, MASKED, SURVIVED, HUNG))
    share = f" ({100 * counts[KILLED] / counted:.0f} %)" if counted else ""
    others = [f"{counts[each]} {each}" for each in (MASKED, SURVIVED, HUNG, DOES_NOT_START, SAME) if counts[each]]
    return f"killed {counts[KILLED]} of {counted}{share}" + "".join(f", {each}" for each in others)


def record(rows: Sequence[Row], plan: Plan) -> Path:
    """Writes totals and rows of this client and part, random changes and mistakes apart, beside those of others, and
    raises the totals of the floor. The record has no text of the client's source. Fewer changes to the same release
    than are recorded change nothing.
    """
    kind = "mistakes" if any(each.kind == MISTAKE for each in rows) else "random"
    place = (plan.copies.target.partition("@")[0], plan.part, kind)
    mine = {
        "target": place[0], "release": plan.copies.release, "part": plan.part, "kind": kind, "seed": plan.seed,
        "changes": len(rows), **totals(rows), "rows": [_recorded(each) for each in rows],
    }  # fmt: skip
    recorded = {(each["target"], each["part"], each["kind"]): each for each in mutation_rows()}
    before = recorded.get(place)
    if before is None or before["release"] != mine["release"] or before["changes"] <= mine["changes"]:
        recorded[place] = mine
    every = [recorded[each] for each in sorted(recorded)]
    replace_text(path := folder() / MUTATION, json.dumps(every, indent=1) + "\n")
    raise_floor(killed(every))
    return path


def _recorded(row: Row) -> dict[str, Any]:
    found = row.measured
    about = {"id": row.change, "kind": row.kind, "file": row.file, "function": row.function, "line": row.line}
    more = {"mistake": row.mistake} if row.mistake else {}
    if found.result in (KILLED, MASKED):
        more |= {"check": found.by[0], "invariant": found.by[1]}
    elif found.result == SURVIVED:
        more |= {"why": found.why}
    return {**about, **more, "result": found.result}
