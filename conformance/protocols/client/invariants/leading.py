"""Laws of a client that leads: its SyncGroup is judged by the invariants of assignors."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History, Op, Replied
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.assignment.invariants import assignments, cooperation
from kipcheck.conformance.protocols.assignment.model.assignment import ASSIGNORS, COOPERATIVE, NO_GENERATION
from kipcheck.conformance.protocols.client.invariants.law import SURVIVES_GROUPS, breach, law
from kipcheck.conformance.protocols.client.premises import JOINED, SYNCS
from kipcheck.conformance.protocols.client.trace import GRACE_MS, RACE_MS, STARTS, Happened, trace, was_late
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 40

INT32: Final = 4
TURNS: Final = 2
"""So often in a row a leader gives up whose reason is the members that it is sent: once it may have another one."""
Search = Callable[[History], Iterator[Violation]]


@dataclass(frozen=True, slots=True)
class Led:
    """A SyncGroup of a client that leads, and the answer to its JoinGroup."""

    joined: Mapping[str, Any]
    synced: Happened
    sizes: Mapping[str, int]
    """Topic -> partitions, as the client was sent them last in Metadata."""
    lasted_ms: int = 0
    """Until the client sent JoinGroup again, or was closed."""
    is_last: bool = True

    @property
    def is_readable(self) -> bool:
        return all(each["subscription"] is not None for each in self.joined["members"])

    @property
    def is_judged(self) -> bool:
        """Whether the client was sent the numbers of partitions of all subscribed topics.

        A client may assign before it has them, and join again when it has. What others subscribe to it has to ask for:
        an assignment without it counts, if the client made not up for it.
        """
        topics = {each["id"]: {*each["subscription"]["topics"]} for each in self.joined["members"]}
        wanted = {n: size for n, size in self.joined["sizes"].items() if n in set[str]().union(*topics.values())}
        unknown = wanted.keys() - self.sizes.keys()
        if any(self.sizes.get(name, size) != size for name, size in wanted.items()):
            return False
        rests = self.is_last and self.lasted_ms > GRACE_MS
        return not unknown or (rests and unknown.isdisjoint(topics.get(self.joined["member"], ())))

    @property
    def op(self) -> Op:
        """As an assignment of an assignor."""
        topics = [{"name": name, "partitions": size, "racks": None} for name, size in self.joined["sizes"].items()]
        assignor = self.joined["protocol"]
        members = [_member(each, assignor) for each in self.joined["members"]]
        given = [{"id": id, "partitions": _pairs(found or ())} for id, found in self.synced.event["assignments"]]
        step = Step("leader", "assign", {"assignor": assignor, "topics": topics, "members": members})
        return Op(self.synced.step, step, Replied((("assignment", given),)))


def _member(each: Mapping[str, Any], assignor: str) -> dict[str, Any]:
    found = each["subscription"] or {"topics": []}
    generation, data = found.get("generation", NO_GENERATION), found.get("data")
    if assignor == COOPERATIVE and "generation" not in found and data and len(data) >= 2 * INT32:
        generation = int.from_bytes(bytes.fromhex(data)[:INT32], "big", signed=True)
    return {
        "id": each["id"], "subscription": found["topics"], "owned": _pairs(found.get("owned", ())),
        "generation": generation, "instance": each["instance"], "rack": None, "userData": data,
    }  # fmt: skip


def _pairs(names: Any) -> list[list[Any]]:
    return [[topic, int(number)] for topic, _, number in (each.rpartition("-") for each in names)]


@cached_on_history
def led(history: History) -> tuple[Led, ...]:
    joined: Mapping[str, Any] | None = None
    answers: list[Happened] = []
    found: list[Led] = []
    rests = False
    late = was_late(history)
    for each in trace(history):
        if found and rests:
            found[-1] = replace(found[-1], lasted_ms=each.ms - found[-1].synced.ms)
        if each.what in STARTS:
            answers, joined, rests = [], None, False
        elif each.is_answer("Metadata"):
            answers.append(each)
        elif each.is_answer("JoinGroup"):
            joined = each.event if "members" in each.event else None
        elif each.is_request("SyncGroup") and joined is not None:
            if (each.event["member"], each.event["generation"]) == (joined["member"], joined["generation"]):
                found.append(Led(joined, each, _known_sizes(answers, each.ms)))
                rests = not late
            joined = None
        elif found and each.is_request("JoinGroup"):
            rests, found[-1] = False, replace(found[-1], is_last=False)
        elif each.what == "signalled":
            rests = False
    return tuple(found)


def _known_sizes(answers: list[Happened], ms: int) -> dict[str, int]:
    """Topic -> partitions, as a client certainly has them at this time.

    An answer just before may not have been read. One that lacks topics may have been: a client may forget them all.
    """
    known: dict[str, int] = {}
    for each in answers:
        if each.error or each.event.get("missing"):
            known = {}
        elif each.ms < ms - RACE_MS:
            known |= each.event.get("sizes", {})
    return known


def _judged_ops(history: History) -> tuple[Op, ...]:
    return tuple(
        each.op for each in led(history)
        if each.is_readable and each.is_judged and each.joined["protocol"] in ASSIGNORS
        and all(found is not None for _, found in each.synced.event["assignments"])
    )  # fmt: skip


def _is_judged(history: History) -> bool:
    """Whether the client led with an assignor of Kafka's, and was sent all that it had to know."""
    return bool(_judged_ops(history))


def _judged(history: History, *searches: Search) -> Iterator[Violation]:
    ops = _judged_ops(history)
    if not ops:
        return
    made = History(Case(SURVIVES_GROUPS, history.case.edition, Role.LEADER, tuple(op.step for op in ops)), "", ops)
    for search in searches:
        for each in search(made):
            yield Violation(each.why, each.at, each.expected, each.observed, shape=each.shape)


@impact("A member of the group gets no assignment, or a stranger gets one", "stuck group", "answers", "stuck-group")
@law("client/assigns-to-everybody", "grp-12", "grp-67", premise=(JOINED, SYNCS))
def assigns_to_everybody(history: History) -> Iterator[Violation]:
    """A leader's SyncGroup has an assignment for each member and no other; that of a follower has none."""
    leads: bool | None = None
    for each in trace(history):
        if each.is_answer("JoinGroup") and not each.error:
            leads = each.event["leads"]
        elif each.is_request("SyncGroup") and leads is False and each.event["assignments"] and not each.pipelined:
            yield breach(each, "a follower sends assignments", "none", str(len(each.event["assignments"])), "follower")
    for round in led(history):
        members = {each["id"]: each["subscription"] for each in round.joined["members"]}
        given = [id for id, _ in round.synced.event["assignments"]]
        for id in sorted(members.keys() - {*given}):
            found = members[id]
            kind = ("unreadable",) if found is None else () if found["topics"] else ("no topics",)
            yield breach(round.synced, f"{id} is a member, and gets no assignment", id, "none", "member missing", *kind)
        for id in sorted({*given} - members.keys()):
            yield breach(round.synced, f"{id} gets an assignment, and is no member", "none", id, "stranger")
        for id in sorted({each for each in given if given.count(each) > 1}):
            yield breach(round.synced, f"{id} gets two assignments", "one", "two", "member twice")


@impact(
    "A partition has two readers, or none",
    "double processing",
    "ownership",
    "double-processing",
    "unread-partition",
)
@law("client/assigns-each-partition-once", "grp-03", "429-16", premise=_is_judged)
def assigns_each_partition_once(history: History) -> Iterator[Violation]:
    """A leader gives each partition of subscribed topics to one member that subscribes to it, and nothing else."""
    yield from _judged(history, assignments.nothing_else, assignments.one_owner, assignments.none_idle)


@impact("Members get more partitions than others without need", "trivia", "balance", "unfair-load")
@law("client/assigns-evenly", "grp-13", premise=_is_judged)
def assigns_evenly(history: History) -> Iterator[Violation]:
    """The shares that a leader gives differ by no more than its assignor allows."""
    yield from _judged(history, assignments.balance)


@impact(
    "A partition is assigned while another member still reads it",
    "double processing",
    "claims",
    "double-processing",
    links=("KIP-429",),
)
@law("client/hands-over", "429-05", "429-16", premise=_is_judged)
def hands_over(history: History) -> Iterator[Violation]:
    """A cooperative leader gives a claimed partition to no member that does not claim it."""
    yield from _judged(history, cooperation.hand_over)


def _shows_others(event: Mapping[str, Any]) -> bool:
    """Whether a leader is sent another member, and each of them has a whole subscription to topics that exist. One with
    user data is left out: an assignor need not understand it."""
    others = [each["subscription"] for each in _others(event)]
    return bool(others) and all(
        each is not None and "data" not in each and event["sizes"].keys() >= {*each["topics"]} for each in others
    )


def _others(event: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [each for each in event.get("members", ()) if each["id"] != event["member"]]


def _leads_others(history: History) -> bool:
    return any(each.is_answer("JoinGroup") and _shows_others(each.event) for each in trace(history))


@impact(
    "A group gets no assignment, because its leader cannot read what another client wrote", "stuck group", "layout",
    "stuck-group", "refused-peer",
)  # fmt: skip
@law("client/leads-other-clients", "grp-162", "grp-67", premise=_leads_others)
def leads_other_clients(history: History) -> Iterator[Violation]:
    """A leader that is sent whole subscriptions of others sends SyncGroup, whatever version they have.

    It breaks this that assigned before, and joins again, or leaves, twice in a row without SyncGroup, though nothing
    that it was sent meanwhile was an error, and the broker closed no connection.
    """
    shown: Mapping[str, Any] | None = None
    leads, has_assigned, turns = False, False, 0
    for each in trace(history):
        if each.what in STARTS or each.what == "signalled":
            shown, leads, has_assigned, turns = None, False, False, 0
        elif each.is_answer("JoinGroup") and not each.error:
            leads = "members" in each.event
            shown = each.event if has_assigned and _shows_others(each.event) else None
            turns = turns if shown is not None else 0
        elif each.is_request("SyncGroup"):
            shown, has_assigned, turns = None, has_assigned or leads, 0
        elif shown is not None and (
            (each.is_answer() and (each.error or each.event.get("missing")))
            or (each.what == "closed" and each.event["why"])
        ):
            shown, turns = None, 0
        elif shown is not None and each.is_request("JoinGroup", "LeaveGroup"):
            turns += 1
            if turns >= TURNS:
                versions = sorted({one["subscription"]["version"] for one in _others(shown)})
                found = f"of version {', '.join(map(str, versions))}"
                why = f"the leader is sent whole subscriptions {found}, and sends no SyncGroup, {turns} times in a row"
                yield breach(each, why, "SyncGroup", each.api, "no assignment")
            shown = None
