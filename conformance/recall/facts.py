"""Records what a client sent in each case of a run, in a form that is equal in two runs of the same client.

Two runs of an unchanged client are the measure: what differs between them is noise, and a changed client differs only
by more than that.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

from kipcheck.conformance.core.operations.field_kinds import from_json, to_json
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Observation, Refused, Replied
from kipcheck.conformance.targets.protocol import Plan, Session, Target, WaitsInRealTime
from kipcheck.conformance.targets.session import renewed
from kipcheck.conformance.targets.session_wrapper import SessionWrapper, TargetWrapper

T = TypeVar("T")
RANDOM: Final = frozenset(
    {"ms", "connection", "correlation", "digest", "pipelined", "offsets", "assignments", "protocols"}
)
"""Keys of a request of a live client that differ from run to run, or that ``_features`` describes otherwise."""
STEP: Final = 80
LINE: Final = 400
"""Characters of a step, and of all steps of a case, that are shown."""
COUNT_TIMES: Final = 2
COUNT_MORE: Final = 3
"""Requests of a kind are more or less than those of the unchanged client if they are more than so many times as many,
and so many more."""


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """What a client sent in a case."""

    case: str
    """Its id."""
    features: frozenset[str]
    """Digests: of all answers in process, of each kind of request of a live client."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Requests of a live client by API."""
    reached: bool = False
    """Whether the changed line was run."""
    steps: str = ""
    """What was done, in a line, if it was."""

    def united(self, other: "CaseFacts") -> "CaseFacts":
        """The facts of the case where it was run twice: in two checks, or again alone."""
        counts = {api: max(self.counts.get(api, 0), other.counts.get(api, 0)) for api in {*self.counts, *other.counts}}
        return replace(
            self,
            features=self.features | other.features,
            counts=counts,
            reached=self.reached or other.reached,
            steps=self.steps or other.steps,
        )


def read(path: Path) -> dict[str, CaseFacts]:
    """By case."""
    found: dict[str, CaseFacts] = {}
    for line in path.read_text("utf-8").splitlines():
        facts = from_json(CaseFacts, json.loads(line))
        found[facts.case] = found[facts.case].united(facts) if facts.case in found else facts
    return found


@dataclass(frozen=True, slots=True)
class Usual:
    """What the unchanged client sends, from several runs of it."""

    runs: Sequence[Mapping[str, CaseFacts]]

    def differs(self, facts: CaseFacts) -> bool:
        """Whether a run of the case differs from every run of the unchanged client by more than these differ."""
        known = [each[facts.case] for each in self.runs if facts.case in each]
        if not known:
            return False
        ever = frozenset[str]().union(*(each.features for each in known))
        always = known[0].features.intersection(*(each.features for each in known))
        if facts.features - ever or always - facts.features:
            return True
        apis = {api for each in (*known, facts) for api in each.counts}
        return any(_is_unusual(facts.counts.get(api, 0), [each.counts.get(api, 0) for each in known]) for api in apis)

    @property
    def noisy(self) -> frozenset[str]:
        """The cases in which one of its runs differs from the others: they show nothing."""
        if len(self.runs) < 2:
            return frozenset()
        left_out = [Usual([*self.runs[:at], *self.runs[at + 1 :]]) for at in range(len(self.runs))]
        return frozenset(
            case for one, rest in zip(self.runs, left_out, strict=True) for case, facts in one.items()
            if rest.differs(facts)
        )  # fmt: skip


def _is_unusual(count: int, known: Sequence[int]) -> bool:
    return count > COUNT_TIMES * max(known) + COUNT_MORE or COUNT_TIMES * count + COUNT_MORE < min(known)


class Recorded(TargetWrapper):
    """A target whose cases are recorded in a file as they end."""

    def __init__(self, target: Target, file: TextIO, was_reached: Callable[[Case], bool], alone: bool) -> None:
        """``was_reached``: whether a case ran the changed line; called once after each case. ``alone``: cases are run
        one by one, so that it can tell them apart."""
        super().__init__(target)
        self._file, self._was_reached, self._alone = file, was_reached, alone

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        opened: AbstractContextManager[Session] = self._target.open(edition, role)
        with opened as session:
            wrapper = _InRealTime if isinstance(session, WaitsInRealTime) else _Session
            yield wrapper(session, self._note, self._alone)

    def _note(self, case: Case, observations: Sequence[Observation]) -> None:
        facts = facts_of(case, observations)
        if self._was_reached(case):
            facts = replace(facts, reached=True, steps=_line(case))
        self._file.write(json.dumps(to_json(facts), separators=(",", ":")) + "\n")
        self._file.flush()


class _Session(SessionWrapper):
    def __init__(self, session: Session, note: Callable[[Case, Sequence[Observation]], None], alone: bool) -> None:
        super().__init__(session)
        self._note, self._run_alone = note, alone

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        found: list[tuple[Observation, ...]] = []
        for several in [[each] for each in cases] if self._run_alone else [cases]:
            observed = self._session.run(several)
            for case, observations in zip(several, observed, strict=True):
                self._note(case, observations)
            found += observed
        return found

    def renew(self) -> bool:
        return renewed(self._session)


class _InRealTime(_Session):
    """Cases of a live client run side by side."""

    _session: WaitsInRealTime

    @property
    def at_once(self) -> int:
        return self._session.at_once

    @property
    def searches_at_once(self) -> int:
        return self._session.searches_at_once

    def lasts_s(self, case: Case, /) -> float:
        return self._session.lasts_s(case)

    def run_plans(self, plans: Sequence[Plan[T]], /) -> list[T]:
        return self._session.run_plans(plans)


def facts_of(case: Case, observations: Sequence[Observation]) -> CaseFacts:
    if case.role is Role.CLIENT:
        actions = [
            each for one in observations if isinstance(one, Replied) for each in dict(one.payload).get("actions", ())
        ]
        others = [one for one in observations if not isinstance(one, Replied)]
        counts = Counter(each["api"] for each in actions if each["what"] == "request")
        features = {*map(_digest, _features(actions)), *(_digest(_plain(each)) for each in others)}
        return CaseFacts(case.id, frozenset(features), counts)
    return CaseFacts(case.id, frozenset({_digest([_plain(each) for each in observations])}))


def _line(case: Case) -> str:
    """Its steps in a line, cut."""
    steps = (" ".join([each.verb, *map(str, each.body.values())]) for each in case.steps)
    return "; ".join(each if len(each) <= STEP else f"{each[:STEP]}..." for each in steps)[:LINE]


def _plain(observed: Observation) -> Any:
    """Without texts, which may have addresses in memory."""
    match observed:
        case Replied(payload):
            return ["accepted", *payload]
        case Refused(error, offset=offset):
            return ["rejected", error, offset]
    return [type(observed).__name__, getattr(observed, "cause", "")]


def _digest(plain: Any) -> str:
    return hashlib.blake2b(json.dumps(plain, sort_keys=True, default=repr).encode(), digest_size=6).hexdigest()


def _features(actions: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
    """The kinds of requests and ends of a live client, without member ids and times: after which error of its group
    each request comes, and whether it commits what it was sent."""
    error = 0
    ends: dict[str, int] = {}
    started = 0
    for each in actions:
        what, api = each["what"], each.get("api")
        if what == "request":
            yield [started, error if api in AFTER_ERRORS else 0, *_request(each)]
            if api in ("OffsetCommit", "Fetch"):
                offsets = zip(each.get("partitions", ()), each.get("offsets", ()), strict=False)
                # Whether it lags behind what it was sent is a matter of time; whether it ever comes up is not.
                yield from ([api, offset > ends[name]] for name, offset in offsets if offset >= ends.get(name, inf))
        elif what == "answer" and api == "Fetch":
            ends |= each.get("ends") or {}
        elif what == "answer" and (each["error"] or api == "JoinGroup") and api in AFTER_ERRORS:
            error = each["error"]  # of either of two requests that are under way
        elif what in ("ended", "killed", "unsettled", "joined", "settled"):
            yield [started, what, each.get("code"), each.get("unsent")]
        elif what == "restarted":
            started, error = started + 1, 0
        elif what not in ("answer", "launched", "opened", "closed", "idle", "signalled"):
            yield [started, what, each.get("kind")]


AFTER_ERRORS: Final = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "LeaveGroup", "FindCoordinator",
                                 "ConsumerGroupHeartbeat"})  # fmt: skip


def _request(each: Mapping[str, Any]) -> Iterator[Any]:
    yield each["api"]
    yield each["version"]
    yield [name for name, _ in each.get("protocols", ())]
    for key, value in sorted(each.items()):
        if key in RANDOM or key in ("what", "api", "version"):
            continue
        if key == "member":
            value = bool(value)
        elif key == "partitions" and isinstance(value, list) and each["api"] != "JoinGroup":
            continue  # how they are split among requests is a matter of time
        yield [key, value]
