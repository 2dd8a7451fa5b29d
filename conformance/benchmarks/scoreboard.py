"""Renders the tables of ``docs/scoreboard.md``: the known causes of clients and of coordinators by severity, and the
released bugs that are found. ``pages`` writes them.

A cell counts causes: entries of the shipped known lists for the release that lead to one page, or without a page have
one invariant. Their severity is that of the page, else that of the invariant's effect.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from kipcheck.conformance.benchmarks import coordinator_laws
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.impacts import Severity
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.engine.findings.finding_pages import cause_page, shown_effect
from kipcheck.conformance.engine.known import lists
from kipcheck.conformance.engine.known.rules import Entry
from kipcheck.conformance.live.client import built_in
from kipcheck.conformance.protocols.invariants import all_invariants, effect_of
from kipcheck.conformance.recall.bugs import Bug
from kipcheck.conformance.targets.target_entries import target_entries

CLIENTS: Final = "<!-- clients -->\n", "<!-- end of clients -->\n"
COORDINATORS: Final = "<!-- coordinators -->\n", "<!-- end of coordinators -->\n"
BUGS: Final = "<!-- released bugs -->\n", "<!-- end of released bugs -->\n"
"""The marks around the tables of the page."""
NOT_LOOKED_AT, NOT_OFFERED, NONE = "not looked at", "not offered", "none known"
KIP_848: Final = "KIP-848"
AREAS: Final = {"codec": ("codec", "wire/*"), "assignors": ("leader", "assign/*"), "membership": ("member", "member/*")}
"""Column -> the role of an adapter, and the checks."""
JAVA: Final = {"java": ("java:kafka-clients", frozenset({"leader"}))}
"""Clients whose adapter has another name, with the roles that its known list is about."""
OTHERS: Final = {"seaweedfs": ""}
"""Brokers that have a known list by their own name, with their release, if it is known."""
GROUPS: Final = {
    "classic groups": ("group/*", "damage/*"),
    "consumer groups": ("consumer-group/*",),
    "both protocols": ("migration/*",),
    "streams groups": ("streams-group/*",),
    "share groups": ("share-group/*", "share-partition/*"),
    "a node fails": ("failover/*",),
}
"""Column -> the checks."""


@dataclass(frozen=True, slots=True)
class System:
    """A client or a coordinator of a release, as it is in known lists."""

    target: str
    release: str

    @property
    def entries(self) -> list[Entry]:
        """Its known deviations; without those of grade INFO, which no list has."""
        listed = (entry for each in lists.load([lists.DEFAULT], [self.target]) for entry in each.entries)
        return [each for each in listed if each.kind == "deviation" and each.applies_to(self.target, self.release)]


def counted(entries: Iterable[Entry]) -> str:
    """The causes by severity, the gravest first."""
    causes: dict[str, Severity] = {}
    for each in entries:
        page = cause_page(each.link)
        effect = effect_of(each.invariant, each.shape or (), next(iter(each.where), ""))
        _, severity = shown_effect(page, effect, each.reason)
        cause = each.invariant if page is None else page.cause
        causes[cause] = min(causes.get(cause, severity), severity, key=lambda each: each.rank)
    numbers = Counter(causes.values())
    return ", ".join(f"{numbers[each]} {each.value}" for each in Severity if numbers[each]) or NONE


def clients_table() -> Iterator[str]:
    """A row for each client that comes with kipcheck."""
    yield f"| client | release | {' | '.join(AREAS)} | live, classic | live, {KIP_848} |"
    yield f"|{'---|' * (len(AREAS) + 4)}"
    adapters = {name: each for name, each in target_entries().items() if {"codec", "leader", "member"} & {*each.roles}}
    names = sorted({*built_in.BUILT_IN, *adapters} - {"reference"})
    for name in names:
        adapter, roles = JAVA.get(name, (name, frozenset(adapters[name].roles if name in adapters else ())))
        release = _release(name)
        own = System(adapter, release).entries if roles else []
        cells = [
            counted(_of_checks(own, (checks,))) if role in roles else NOT_LOOKED_AT for role, checks in AREAS.values()
        ]
        yield f"| {' | '.join([name, release, *cells, *_live(name, release)])} |"


def _release(name: str) -> str:
    """The newest one that kipcheck knows, whatever this machine can run."""
    listed = target_entries()[name].default if name in target_entries() else ""
    if name in built_in.BUILT_IN:
        return listed or built_in.release(name)
    return listed or max(each.versions for file in lists.load([lists.DEFAULT], [name]) for each in file.entries)


def _live(name: str, release: str) -> tuple[str, str]:
    """What is known of a client as a process: of classic groups, and of those of KIP-848."""
    if name not in built_in.BUILT_IN:
        return NOT_LOOKED_AT, NOT_LOOKED_AT
    modern = {
        each.id
        for each in all_invariants(Role.CLIENT)
        if each.requirements and all(requirements()[id].kip == KIP_848 for id in each.requirements)
    }
    known = System(f"client:{name}", release).entries
    classic = counted(each for each in known if each.invariant not in modern)
    if "protocol" not in built_in.taken(f"{name}@{release}"):
        return classic, NOT_OFFERED
    return classic, counted(each for each in known if each.invariant in modern)


def coordinators_table() -> Iterator[str]:
    """A row for each coordinator, of the release that comes with kipcheck or was recorded last."""
    yield f"| coordinator | release | looked at | {' | '.join(GROUPS)} |"
    yield f"|{'---|' * (len(GROUPS) + 3)}"
    runs = coordinator_laws.read()
    defaults = {name: each.default for name, each in target_entries().items() if "coordinator" in each.roles}
    del defaults["reference"]
    for target, release in {"kafka": NEWEST, "java:kafka-group-coordinator": NEWEST, **defaults, **OTHERS}.items():
        system = System(target, release)
        own = [each for each in runs if each.version == release and each.target in (target, f"{target}:{release}")]
        entries = system.entries
        seen = {check for each in entries for check in each.checks} | {check for run in own for check in run.checks}
        cells = [
            counted(_of_checks(entries, checks)) if _fit(seen, checks) else NOT_LOOKED_AT for checks in GROUPS.values()
        ]
        yield f"| {' | '.join([target, release or 'any', max((each.date for each in own), default=''), *cells])} |"


def _of_checks(entries: Iterable[Entry], checks: Iterable[str]) -> Iterator[Entry]:
    return (each for each in entries if _fit(each.checks, checks))


def _fit(named: Iterable[str], checks: Iterable[str]) -> bool:
    return any(fnmatchcase(each, pattern) for each in named for pattern in checks)


def bugs_table(bugs: Iterable[Bug]) -> Iterator[str]:
    """Released, fixed bugs by the project that released them."""
    yield "| project | released bugs | found | missed | other | not measured |"
    yield "|---|---|---|---|---|---|"
    by: dict[str, Counter[str]] = {}
    for each in bugs:
        by.setdefault(_project(each.affected), Counter())[each.today or "not measured"] += 1
    for project, results in sorted(by.items()):
        found = sum(number for result, number in results.items() if result.startswith("found"))
        known = found + results["missed"] + results["not measured"]
        cells = results.total(), found, results["missed"], results.total() - known, results["not measured"]
        yield f"| {project} | {' | '.join(map(str, cells))} |"


def _project(target: str) -> str:
    """Who released a target: ``client:aiokafka@0.14.0`` and ``aiokafka`` are one; what is of no library is Kafka's."""
    name = re.split("[@:]", target.removeprefix("client:"))[0]
    return name if name in {*built_in.BUILT_IN, *target_entries()} - {"java"} else "Apache Kafka"


def sections(bugs: Iterable[Bug]) -> Mapping[tuple[str, str], list[str]]:
    """The lines of each table, by its marks."""
    made: tuple[tuple[tuple[str, str], Callable[[], Iterator[str]]], ...] = (
        (CLIENTS, clients_table), (COORDINATORS, coordinators_table), (BUGS, lambda: bugs_table(bugs)),
    )  # fmt: skip
    return {marks: [*lines()] for marks, lines in made}
