"""The table of coordinators by groups of laws: which each one keeps, breaks, or was not run with.

``coordinator_runs.json`` records runs: of which release, with which checks and seed, when, and in how many cases each
law was judged. ``coordinators.py`` adds runs to it. A law that a known list has for that release, or that failed in a
recorded run, is broken; one that was judged in a recorded run, and is not broken, is held. Nothing else is held.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.verdict import Grade
from kipcheck.conformance.engine.known import lists
from kipcheck.conformance.protocols.invariants import all_invariants

RECORD: Final = Path(__file__).with_name("coordinator_runs.json")
BEGIN, END = "<!-- groups of laws -->\n", "<!-- end of groups of laws -->\n"
NO_GROUP: Final = ("group/like-its-release", "group/newest-leads", "group/first-of-newest-leads")
"""A comparison with a machine, and laws of groups of processes, which these systems do not play."""
NO_CLIENT_CAUSES: Final = (
    "group/unload-answers-all",
    "group/outlives-moves",
    "group/goes-on-after-moves",
    "group/failed-writes-count-nothing",
)
"""Laws of partitions that move and writes that fail, which no client of a running broker causes: without such a step
they pass, and nothing was looked at."""
IN_PROCESS: Final = ("java:", "reference")
"""How the names of coordinators begin that are told to move."""
GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "join and sync": (
        "group/answers-join", "group/answers-sync", "group/rejoins", "group/*-leader", "group/leader-hears-all",
        "group/common-protocol", "group/most-votes", "group/generation-grows", "group/initial-delay",
        "group/join-phase-ends", "group/ends-when-all-joined", "group/stale-never-wins", "group/refused-*",
        "group/size-limit",
    ),
    "parked requests": (
        "group/answered-once", "group/answers-at-once", "group/parked-answered", "group/assignments-in-time",
        "group/removed-let-go", "group/superseded-let-go", "group/unload-answers-all",
    ),
    "heartbeats and sessions": ("group/answers-heartbeat", "group/beats-before-assignment", "group/sessions-*"),
    "leaving": ("group/answers-leave",),
    "static members": (
        "group/one-id-per-instance", "group/fenced-*", "group/fresh-ids", "group/ids-before-members",
        "group/replaced-at-once", "group/static-stay",
    ),
    "offsets": ("group/answers-offsets", "group/commits-*"),
    "describe, list, delete": ("group/answers-groups",),
    "reload": ("group/outlives-moves", "group/goes-on-after-moves", "group/failed-writes-count-nothing"),
    "damaged and old requests": ("damage/*",),
    "process and versions": ("survives", "keeps-its-claims"),
    "consumer groups": ("consumer-group/*",),
    "both protocols": ("migration/*",),
    "streams groups": ("streams-group/*",),
    "share groups": ("share-group/*", "share-partition/*"),
    "a node fails": ("failover/*",),
}  # fmt: skip
"""Column of the table -> patterns of the ids of its laws."""
NOT_LOOKED_AT, NOT_OFFERED, HELD = "not looked at", "not offered", "held"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run of a coordinator."""

    target: str
    version: str
    edition: str
    seed: int
    checks: tuple[str, ...]
    """Those that were run, by id, or were left out because the target does not offer what they are about."""
    date: str
    judged: Mapping[str, int]
    """Law -> the number of cases that judged it."""
    broken: tuple[str, ...]
    """The laws that failed, known or not."""

    @property
    def place(self) -> tuple[str, str, str, int, tuple[str, ...]]:
        """What a later run of the same replaces."""
        return self.target, self.version, self.edition, self.seed, self.checks


def recorded(results: Any) -> Iterator[Recorded]:
    """``results``: the ``results.json`` of a run, one that was not interrupted. Errors: KeyError for another file."""
    options, begun = results["options"], datetime.fromisoformat(results["begun"]).astimezone(UTC)
    laws = _laws()
    for each in results["targets"]:
        name = each["target"]
        unreached = () if name.startswith(IN_PROCESS) else NO_CLIENT_CAUSES
        judged = {
            id: 0 if id in unreached else counts["judged"]
            for id, counts in results["invariants"].get(name, {}).items()
            if id in laws
        }
        failed = {
            line["invariant"] for line in results["failures"] if line["target"] == name and line["invariant"] in laws
        }
        checks = tuple(sorted(check["check"] for check in results["checks"] if name in check["targets"]))
        yield Recorded(
            name, each["version"], options["edition"], options["seed"], checks, f"{begun:%Y-%m-%d}",
            dict(sorted(judged.items())), tuple(sorted(failed)),
        )  # fmt: skip


def read() -> list[Recorded]:
    rows = json.loads(RECORD.read_text("utf-8"))
    return [Recorded(**{**each, "checks": tuple(each["checks"]), "broken": tuple(each["broken"])}) for each in rows]


def add(runs: Iterable[Recorded]) -> None:
    """A run of another version of a coordinator replaces all runs of it."""
    new = {each.place: each for each in runs}
    versions = {each.target: each.version for each in new.values()}
    kept = {each.place: each for each in read() if versions.get(each.target, each.version) == each.version}
    rows = [asdict(each) for _, each in sorted((kept | new).items())]
    RECORD.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n", "utf-8")


def table(runs: Sequence[Recorded]) -> Iterator[str]:
    """Lines of the page: a row for each coordinator."""
    yield f"| coordinator | {' | '.join(GROUPS)} | runs |"
    yield f"|{'---|' * (len(GROUPS) + 2)}"
    systems = sorted({(each.target, each.version) for each in runs})
    for target, version in systems:
        own = [each for each in runs if (each.target, each.version) == (target, version)]
        name = target if target.endswith(version) else f"{target} {version}"
        cells = [_cell(own, laws_of(group)) for group in GROUPS]
        seeds = ", ".join(map(str, sorted({each.seed for each in own})))
        editions = ", ".join(sorted({each.edition for each in own}))
        runs_of_it = f"{editions}; seed {seeds}; {max(each.date for each in own)}"
        yield f"| {' | '.join([name, *cells, runs_of_it])} |"


def laws_of(group: str) -> tuple[str, ...]:
    """The laws of a column."""
    return tuple(id for id in _laws() if any(fnmatchcase(id, pattern) for pattern in GROUPS[group]))


def _cell(runs: Sequence[Recorded], laws: Sequence[str]) -> str:
    target, version = runs[0].target, runs[0].version
    known = {
        entry.invariant
        for file in lists.load([lists.DEFAULT], [target])
        for entry in file.entries
        if entry.kind == "deviation" and entry.applies_to(target, version)
    }
    broken = [law for law in laws if law in known or any(law in run.broken for run in runs)]
    held = [law for law in laws if law not in broken and any(run.judged.get(law) for run in runs)]
    if broken:
        return f"{len(broken)} broken, {len(held)} {HELD}"
    if held:
        return HELD if len(held) == len(laws) else f"{HELD} ({len(held)} of {len(laws)})"
    return NOT_OFFERED if any(law in run.judged for run in runs for law in laws) else NOT_LOOKED_AT


@cache
def _laws() -> tuple[str, ...]:
    """All laws of coordinators, but those of grade INFO."""
    return tuple(each.id for each in all_invariants(Role.COORDINATOR) if each.grade is not Grade.INFO)
