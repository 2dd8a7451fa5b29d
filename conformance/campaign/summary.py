"""What the rows of a campaign come to: all that reports, reductions and the next corpus need.

Rows are added to the summary of their round when they come, in any order, and are not kept. Summaries of parts of a
round are united to the same result, so several processes can fold a ledger. The summary of a round that has ended is
added to that of the campaign, in the order of the rounds. Neither grows with the number of cases; that of a round has a
line for each of its shards.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from sys import intern
from typing import Any, Final, NamedTuple, TypeAlias

from kipcheck.conformance.campaign.corpus.entries import RoundCorpus
from kipcheck.conformance.campaign.rows import FINAL_STATUSES, Found, Row, Stage
from kipcheck.conformance.core.ledger import Round
from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.engine.findings.failures import Kind
from kipcheck.conformance.engine.known.rules import SubjectVersion
from kipcheck.conformance.protocols.checks import CHECKS

DOWN: Final = frozenset({"timeout", "memory", "crashed", "garbled"})
"""Statuses of a row of the stage ``hold`` for a shard whose child process died, with the target in it."""
POINTS: Final = 40
"""The most points of a round that show how coverage grew with a target."""
At: TypeAlias = tuple[int, int, int]
"""Round, shard, and position in its row: the order in which things were found."""


class Place(NamedTuple):
    check: str
    subject: str
    version: int | None
    invariant: str
    """Empty: the result of the case as a whole."""
    result: str


class ShardEnd(NamedTuple):
    target: str
    stage: Stage
    status: str
    cases: int
    digest: str
    """Empty: it is not part of the campaign's hash."""


class Trouble(NamedTuple):
    kind: str
    """``trouble``, ``breach`` or ``unreached``, as the field of a row; otherwise the status of the shard."""
    why: str


@dataclass(slots=True)
class Met:
    """Where something was found first, and how often it was found."""

    first: At
    times: int = 0

    def unite(self, other: "Met") -> None:
        self.first = min(self.first, other.first)
        self.times += other.times


@dataclass(slots=True)
class KindSummary:
    """A kind of failure of a target, in all shards."""

    first: Found
    at: At
    before: int = 0
    """Cases with the target before its first failure: of the shard, until its round is added to the campaign."""
    cases: int = 0
    where: set[SubjectVersion] = field(default_factory=set)
    alone: list[tuple[At, Found]] = field(default_factory=list)
    """Of each shard that searched for the least case."""

    def unite(self, other: "KindSummary") -> None:
        if other.at < self.at:
            self.first, self.at, self.before = other.first, other.at, other.before
        self.cases += other.cases
        self.where |= other.where
        self.alone = sorted([*self.alone, *other.alone], key=lambda each: each[0])


@dataclass(slots=True)
class DownSummary:
    """Cases of one place with which shards went down in one way."""

    row: Row
    """The first of them, without results of cases."""
    place: SubjectVersion
    met: Met
    before: int
    """As of a kind of failure."""

    def unite(self, other: "DownSummary") -> None:
        if other.met.first < self.met.first:
            self.row, self.place, self.before = other.row, other.place, other.before
        self.met.unite(other.met)


@dataclass(slots=True)
class TargetSummary:
    """The rows of one target."""

    version: str
    cases: int = 0
    counts: Counter[Place] = field(default_factory=Counter)
    keys: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Coverage keys, with the round and the shard that reached them first."""
    kinds: dict[Kind, KindSummary] = field(default_factory=dict)
    reduced: dict[Kind, list[tuple[At, Found]]] = field(default_factory=dict)
    """Reductions of kinds that these rows do not contain."""
    down: dict[tuple[str, ...], DownSummary] = field(default_factory=dict)
    troubles: dict[Trouble, Met] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        place = row.round, row.shard
        if row.stage == "hold":
            self.cases += row.cases
        for count in row.counts:
            self.counts[Place(count.check, count.subject, count.version, count.invariant, count.result)] += count.cases
        for key in row.coverage:
            if self.keys.get(key, place) >= place:
                self.keys[key] = place
        for number, found in enumerate(row.found):
            at = (*place, number)
            if row.stage == "reduce":
                self._add_reduced(found.group, [(at, found)])
            else:
                kind = KindSummary(found, at, found.at_case, found.cases, {*found.where})
                self._add_kind(found.group, kind)
        for number, trouble in enumerate(_troubles(row)):
            self._meet(trouble, Met((*place, number), 1))
        if row.stage == "hold" and row.status in DOWN and row.case:
            self._add_down(row)

    def _add_kind(self, group: Kind, kind: KindSummary) -> None:
        if group in self.kinds:
            self.kinds[group].unite(kind)
        else:
            self.kinds[group] = replace(kind, alone=[*kind.alone, *self.reduced.pop(group, ())])

    def _add_reduced(self, group: Kind, alone: Sequence[tuple[At, Found]]) -> None:
        into = self.kinds[group].alone if group in self.kinds else self.reduced.setdefault(group, [])
        into += alone
        into.sort(key=lambda each: each[0])

    def _add_down(self, row: Row) -> None:
        case = Case.of(json.loads(row.case))
        place = _place(case)
        kind = (case.check, *map(str, place), row.status, case.steps[-1].verb)
        met = Met((row.round, row.shard, row.at_case or 0), 1)
        light = replace(row, counts=(), coverage=(), kept=(), found=())
        self._go_down(kind, DownSummary(light, place, met, row.at_case or 0))

    def _go_down(self, kind: tuple[str, ...], down: DownSummary) -> None:
        if kind in self.down:
            self.down[kind].unite(down)
        else:
            self.down[kind] = down

    def _meet(self, trouble: Trouble, met: Met) -> None:
        if trouble in self.troubles:
            self.troubles[trouble].unite(met)
        else:
            self.troubles[trouble] = met

    def unite(self, other: "TargetSummary") -> None:
        """Adds other rows. ``other`` is not used any more."""
        self.cases += other.cases
        self.counts.update(other.counts)
        for key, place in other.keys.items():
            if self.keys.get(key, place) >= place:
                self.keys[key] = place
        for group, kind in other.kinds.items():
            self._add_kind(group, kind)
        for group, alone in other.reduced.items():
            self._add_reduced(group, alone)
        for which, down in other.down.items():
            self._go_down(which, down)
        for trouble, met in other.troubles.items():
            self._meet(trouble, met)


def _troubles(row: Row) -> Iterator[Trouble]:
    yield from (Trouble("trouble", each) for each in row.troubles)
    yield from (Trouble("breach", each) for each in row.breaches)
    if row.unreached:
        yield Trouble("unreached", row.unreached)
    if row.status != "done":
        yield Trouble(row.status, row.detail.partition("\n")[0])  # the rest is in the file of the failure


def _place(case: Case) -> SubjectVersion:
    """Subject and version of a case that came without them."""
    family = CHECKS[case.check].family
    named = family.place(case.steps[0])
    subjects = [(each.name, each.version) for each in family.subjects(case.edition)]
    return named if named is not None and named in subjects else subjects[0]


@dataclass(slots=True)
class RoundSummary:
    """The rows of one round so far."""

    campaign: str
    round: int
    targets: dict[str, TargetSummary] = field(default_factory=dict)
    ends: dict[int, ShardEnd] = field(default_factory=dict)
    """By the number of the shard."""
    steps: int = 0
    cpu_ms: int = 0
    corpus: RoundCorpus = field(default_factory=RoundCorpus)

    def add(self, row: Row) -> None:
        counts = row.deterministic and row.status in FINAL_STATUSES
        self.ends[row.shard] = ShardEnd(
            intern(row.target), row.stage, intern(row.status), row.cases, row.digest if counts else ""
        )
        self.steps += row.steps
        self.cpu_ms += row.cpu_ms
        self.corpus.add(row)
        self._target(row).add(row)

    def add_reductions(self, row: Row) -> None:
        """Adds what an unfinished round reduced for its report: when it is finished, it has reductions of its own."""
        self._target(row).add(replace(row, troubles=(), breaches=(), unreached="", status="done"))

    def _target(self, row: Row) -> TargetSummary:
        return self.targets.setdefault(row.target, TargetSummary(row.target_version))

    def add_final(self, rows: Iterable[Row]) -> None:
        """Adds those rows of shards that a resumed campaign does not run again."""
        for row in rows:
            if row.status in FINAL_STATUSES:
                self.add(row)

    def unite(self, other: "RoundSummary") -> None:
        """Adds other rows of the same round. ``other`` is not used any more."""
        self.ends.update(other.ends)
        self.steps += other.steps
        self.cpu_ms += other.cpu_ms
        self.corpus.unite(other.corpus)
        for name, target in other.targets.items():
            if name in self.targets:
                self.targets[name].unite(target)
            else:
                self.targets[name] = target

    @property
    def cases(self) -> int:
        return sum(each.cases for each in self.ends.values() if each.stage == "hold")

    def kinds(self) -> list[tuple[str, KindSummary]]:
        """Targets and kinds of failures."""
        return [(name, kind) for name, target in self.targets.items() for kind in target.kinds.values()]


@dataclass(frozen=True, slots=True)
class RoundEnd:
    """The data of a round that its rows do not contain."""

    round: int
    planned: int
    """Shards, of both stages."""
    corpus: int
    """Values kept at its end."""
    seconds: float
    """From its beginning until it ended or was stopped."""


@dataclass(slots=True)
class CampaignSummary:
    """The rounds that have ended."""

    targets: dict[str, TargetSummary] = field(default_factory=dict)
    rounds: list[Round] = field(default_factory=list)
    """Without the failures that were first found in them."""
    statuses: Counter[str] = field(default_factory=Counter)
    """Of shards."""
    keys: set[int] = field(default_factory=set)
    """Of all targets."""
    cpu_ms: int = 0
    _hash: Any = field(default_factory=lambda: hashlib.blake2b(b"[", digest_size=8))
    _is_first: bool = True

    def add(self, round_: RoundSummary, end: RoundEnd) -> None:
        """Adds the next round, which is not used any more."""
        before = len(self.keys)
        ends = [end for _, end in sorted(round_.ends.items())]
        growth = {name: self._growth(round_, name) for name in dict.fromkeys(end.target for end in ends)}
        for target in round_.targets.values():
            self.keys.update(target.keys)
        self.statuses.update(each.status for each in ends)
        self.cpu_ms += round_.cpu_ms
        self._add_digests(round_)
        self.rounds.append(
            Round(
                campaign=round_.campaign if round_.ends else "",
                round=end.round,
                planned=end.planned,
                shards=dict(Counter(each.status for each in ends)),
                cases=round_.cases,
                steps=round_.steps,
                seconds=round(end.seconds, 1),
                cpu_seconds=round(round_.cpu_ms / 1000, 1),
                coverage=len(self.keys),
                new=len(self.keys) - before,
                corpus=end.corpus,
                failures=(),
                growth=growth,
            )
        )
        for name, target in round_.targets.items():
            self._add_target(name, target, round_)

    @property
    def hash(self) -> str:
        """The hash of the campaign: ``rows.hash_of`` of all rows that count."""
        found = self._hash.copy()
        found.update(b"]")
        return str(found.hexdigest())

    @property
    def cases(self) -> int:
        return sum(each.cases for each in self.rounds)

    def _add_digests(self, round_: RoundSummary) -> None:
        for shard, end in sorted(round_.ends.items()):
            if end.digest:
                text = json.dumps([round_.campaign, round_.round, shard, end.digest], separators=(",", ":"))
                self._hash.update(text.encode() if self._is_first else b"," + text.encode())
                self._is_first = False

    def _add_target(self, name: str, target: TargetSummary, round_: RoundSummary) -> None:
        known = self.targets.setdefault(name, TargetSummary(target.version))
        begins = _cases_before(round_, name, known.cases)
        for group, kind in target.kinds.items():
            if group not in known.kinds:
                kind.before += begins[kind.at[1]]
        for which, down in target.down.items():
            if which not in known.down:
                down.before += begins[down.met.first[1]]
        known.unite(target)

    def _growth(self, round_: RoundSummary, name: str) -> tuple[tuple[int, int], ...]:
        """Cases with the target, and the kinds of behaviour that it had shown, after each shard."""
        known = self.targets.get(name)
        cases, keys = (0, 0) if known is None else (known.cases, len(known.keys))
        old = {} if known is None else known.keys
        new = Counter(shard for key, (_, shard) in round_.targets[name].keys.items() if key not in old)
        points = [(cases, keys)]
        for shard, end in _held(round_, name):
            cases, keys = cases + end.cases, keys + new[shard]
            points.append((cases, keys))
        return tuple(_thinned(points))


def _held(round_: RoundSummary, name: str) -> list[tuple[int, ShardEnd]]:
    return [each for each in sorted(round_.ends.items()) if each[1].target == name and each[1].stage == "hold"]


def _cases_before(round_: RoundSummary, name: str, cases: int) -> dict[int, int]:
    """Cases with the target before each shard of a round, after so many before the round."""
    found: dict[int, int] = {}
    for shard, end in _held(round_, name):
        found[shard] = cases
        cases += end.cases
    return found


def _thinned(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The first and the last, and as many between them as a drawing shows."""
    some = list(dict.fromkeys(points))
    every = -(-len(some) // POINTS)
    return [each for number, each in enumerate(some) if number % every == 0 or number == len(some) - 1]


def summary_of(rows: Iterable[Row], ends: Sequence[RoundEnd]) -> CampaignSummary:
    """Of rows in any order."""
    rounds = {end.round: RoundSummary("", end.round) for end in ends}
    for row in rows:
        rounds[row.round].campaign = row.campaign
        rounds[row.round].add(row)
    found = CampaignSummary()
    for end in ends:
        found.add(rounds[end.round], end)
    return found
