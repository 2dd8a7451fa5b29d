"""Invariants of the leader of a Streams group towards members with older and newer metadata versions."""

from collections.abc import Iterator
from functools import partial

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.streams.blobs import read_assignment
from kipcheck.conformance.protocols.streams.invariants import LEADING, VERSIONS, trace
from kipcheck.conformance.protocols.streams.model.members import (
    ASSIGNMENT_ERROR,
    SHUTDOWN_REQUESTED,
    AssignmentInfo,
    Fatal,
    TaskId,
)
from kipcheck.conformance.protocols.streams.model.tasks import Work, work

PLACE = 20

of_leading = partial(trace.streams_invariant, checks=(LEADING,))

THROWS = span("throws-on-hard-mix")
"""Releases whose leaders have to throw if they cannot assign; later ones send an error to all members (268-32)."""
FIRST_CODED = 4
"""The first metadata version in which an assignment can carry an error."""


def deployed(history: History) -> Work:
    """The tasks of the deployed application."""
    found = trace.streams_trace(history).deployed
    return work(found.topology, found.topics)


def is_whole(todo: Work) -> bool:
    """Are no source topics missing, uneven or of a size that cannot be derived? Otherwise other rules apply."""
    return not (todo.missing or todo.uneven or todo.endless)


def listed(tasks: frozenset[TaskId] | set[TaskId]) -> str:
    return ", ".join(map(str, sorted(tasks, key=lambda each: (each.topology or "", *each[:2])))) or "no task"


# Decoding


@impact(
    "A member cannot read its assignment",
    "refused peer",
    "versions",
    "crash",
    "stuck-upgrade",
    links=("KIP-268", "KAFKA-6054"),
)
@trace.streams_invariant("streams/decodable", "268-07", "268-11", "268-12", checks=(VERSIONS, "streams/topologies"))
def decodable(history: History) -> Iterator[Violation]:
    """Every member can decode its assignment, also one with an error if all members use a version that has errors.

    If one does not, no version serves all: then the error has the leader's latest version (268-32).
    """
    for round, each, violation in _undecodable(history):
        if not _has_error(each) or round.lowest >= FIRST_CODED:
            yield violation


@impact(
    "A member cannot read an error from its leader",
    "refused peer",
    "versions",
    "crash",
    "misled-operator",
    links=("KIP-268",),
)
@trace.streams_invariant(
    "streams/errors-decodable", "268-42", checks=(VERSIONS, "streams/topologies"), grade=Grade.INFO
)
def errors_decodable(history: History) -> Iterator[Violation]:
    """Every member can decode an assignment with an error."""
    for round, each, violation in _undecodable(history):
        if _has_error(each) and round.leader is not None and round.leader.bound("268-42"):
            yield violation


def _has_error(given: trace.Given) -> bool:
    return given.info is not None and given.info.error != 0


def _undecodable(history: History) -> Iterator[tuple[trace.Round, trace.Given, Violation]]:
    for round in trace.streams_trace(history).rounds:
        for each in round.given:
            if each.life is None:
                continue  # The process ended, so the assignment is not read.
            is_error = _has_error(each)
            why = _unreadable_reason(each, each.life)
            if why:
                what = f"error {each.info.error}" if each.info is not None and is_error else "its assignment"
                at = (round.at, each.at)
                message = f"{each.life} cannot decode {what} in {round.where}: {why}"
                yield round, each, Violation(message, at, f"at most version {each.life.latest}", why,
                                             shape=("undecodable", "error" if is_error else "assignment"))  # fmt: skip


def _unreadable_reason(given: trace.Given, to: trace.Life) -> str:
    """Why the member cannot decode the assignment; empty if it can."""
    if given.info is None:
        return given.why or "unreadable"
    if given.info.used > to.latest:
        return f"it has version {given.info.used}, and the member knows up to {to.latest}"
    assert isinstance(given.sent.data, bytes)
    try:
        read_assignment(given.sent.data, to.release)
    except Fatal as fatal:
        return fatal.why
    return ""


# Subscriptions of unknown versions


@impact(
    "A leader fails because of newer members",
    "stuck group",
    "negotiation",
    "crash",
    "stuck-upgrade",
    links=("KIP-268",),
)
@of_leading("streams/leads-the-future", "268-06", "268-15", "268-22", "268-31")
def leads_the_future(history: History) -> Iterator[Violation]:
    """A leader with version probing makes an assignment although some subscriptions are newer than it knows."""
    todo = deployed(history)
    for round, leader in trace.led(history):
        failure = round.failure_while_leading()
        if failure is None or leader.is_before_probing or not round.futures or round.is_hard_mix or not is_whole(todo):
            continue
        if not failure.is_endless:
            names = ", ".join(f"{each.joining.member} {each.info.used}" for each in round.futures)
            why = (
                f"{leader} knows up to {leader.latest}, and fails on {names} in {round.where}: "
                f"{failure.event.kind}: {failure.event.why}"
            )
            yield Violation(why, (round.at, failure.at), "an assignment", failure.event.kind, shape=("future", "fatal"))


@impact(
    "An old leader accepts metadata that it cannot read",
    "wrong data",
    "guards",
    "wrong-data",
    links=("KIP-268", "KAFKA-6054"),
)
@of_leading("streams/old-leader-fails", "268-14")
def old_leader_fails(history: History) -> Iterator[Violation]:
    """A leader without version probing fails on a version that it does not know, as 268-14 itself demands."""
    for round, leader in trace.led(history):
        if leader.is_before_probing and round.futures and round.given:
            names = ", ".join(f"{each.joining.member} {each.info.used}" for each in round.futures)
            why = f"{leader} knows up to {leader.latest}, and makes an assignment for {names} in {round.where}"
            yield Violation(why, (round.at, round.given[0].at), "an exception", "an assignment",
                            shape=("future", "survived"))  # fmt: skip


# Used and supported version


def understood(
    history: History,
) -> Iterator[tuple[trace.Round, trace.Life, trace.Given, AssignmentInfo, trace.Subscribed]]:
    """Assignments without error to running members, whether or not the leader knows their versions."""
    for round, leader in trace.led(history):
        for each in round.given:
            subscribed = round.subscribed(each.life) if each.life is not None else None
            if subscribed is not None and each.info is not None and not each.info.error:
                yield round, leader, each, each.info, subscribed


@impact(
    "A member gets an assignment in a version that it cannot read",
    "refused peer",
    "negotiation",
    "crash",
    "stuck-upgrade",
    links=("KIP-268",),
)
@trace.streams_invariant("streams/lowest-version", "268-11", "268-12", checks=(VERSIONS, "streams/failures"))
def lowest_version(history: History) -> Iterator[Violation]:
    """Members whose version the leader knows get assignments in the lowest used version."""
    for round, leader, each, info, subscribed in understood(history):
        wanted = min(round.lowest, leader.latest)
        if leader.bound("268-11") and subscribed.info.used <= leader.latest and info.used != wanted:
            why = f"{each.name} is sent version {info.used} in {round.where}"
            yield Violation(why, (round.at, each.at), f"version {wanted}", f"version {info.used}",
                            shape=("version", "above" if info.used > wanted else "below"))  # fmt: skip


@impact(
    "The supported version in an assignment is wrong",
    "refused peer",
    "negotiation",
    "stuck-upgrade",
    links=("KIP-268", "KAFKA-8649"),
)
@trace.streams_invariant("streams/second-int", "268-20", "268-34", checks=(VERSIONS, "streams/failures"))
def second_int(history: History) -> Iterator[Violation]:
    """The supported version in an assignment is the leader's latest or the lowest of all members, by release."""
    for round, leader, each, info, _ in understood(history):
        if info.used < trace.FIRST_PROBED or not (leader.bound("268-20") or leader.bound("268-34")):
            continue
        wanted = min(round.supported, leader.latest) if leader.bound("268-34") else leader.latest
        if info.supported != wanted:
            what = "the lowest of all members" if leader.bound("268-34") else "the leader's latest"
            why = f"{each.name} gets supported version {info.supported} in {round.where}; {what} is {wanted}"
            yield Violation(why, (round.at, each.at), str(wanted), str(info.supported),
                            shape=("second number", "above" if info.supported > wanted else "below"))  # fmt: skip


# Groups with a member of an unknown version


@impact(
    "A newer member gets no tasks, or too many",
    "stuck group",
    "negotiation",
    "unread-partition",
    "stuck-upgrade",
    links=("KIP-268",),
)
@of_leading("streams/future-gets", "268-15", "268-16", "268-29", "268-31", "268-60")
def future_gets(history: History) -> Iterator[Violation]:
    """A member of a version unknown to the leader gets its share from 2.4 on, before and in the draft no tasks."""
    todo = deployed(history)
    for round, leader, each, info, subscribed in understood(history):
        if subscribed.info.used <= leader.latest or round.is_hard_mix or leader.is_before_probing:
            continue
        takes_part = leader.bound("268-31")
        common = takes_part or leader.bound("268-34")
        wanted = min(round.lowest, leader.latest) if common else leader.latest
        where = f"{each.name} uses {subscribed.info.used}, unknown to {leader}, and in {round.where}"
        at = (round.at, each.at)
        if info.used != wanted:
            yield Violation(f"{where} is sent version {info.used}", at, f"version {wanted}", f"version {info.used}",
                            shape=("future", "version"))  # fmt: skip
        got = frozenset(info.active) | {task for task, _ in info.standby}
        if takes_part:
            if not each.sent.partitions and _has_a_share(round, todo):
                why = f"{where} gets none of {len(todo.tasks)} tasks for {len(round.members)} members"
                yield Violation(why, at, "its share", "no task", shape=("future", "left out"))
        elif got or each.sent.partitions or info.hosts:
            what = listed(got) if got else "partitions without a task" if each.sent.partitions else "hosts"
            yield Violation(f"{where} gets {what}", at, "no task", what, shape=("future", "given"))


def _has_a_share(round: trace.Round, todo: Work) -> bool:
    """Does every member have to get a task? Only if no member has tasks yet, and no task has state."""
    if todo.stateful or not is_whole(todo) or len(todo.tasks) < len(round.members):
        return False
    infos = [each.info for each in round.members]
    return not any(each.active or each.standby or each.sums for each in infos) and not any(
        each.joining.owned for each in round.members
    )


@impact(
    "Members beside newer ones get the wrong tasks",
    "stuck group",
    "negotiation",
    "unread-partition",
    "needless-move",
    links=("KIP-268",),
)
@of_leading("streams/others-get", "268-16", "268-30")
def others_get(history: History) -> Iterator[Violation]:
    """Beside unknown versions the other members share all tasks in the draft, and up to 2.3.1 get what they claim."""
    todo = deployed(history)
    for round, leader in trace.led(history):
        given = [each for each in round.given if each.info is not None and not each.info.error]
        if not round.futures or round.is_hard_mix or not given or not is_whole(todo):
            continue
        if trace.is_draft(leader.release):
            idle = {*todo.tasks}.difference(*(each.info.active for each in given if each.info is not None))
            if idle:
                why = f"no member gets {listed(idle)} in {round.where}"
                yield Violation(why, (round.at, given[-1].at), "every task", f"not {listed(idle)}",
                                shape=("others", "idle"))  # fmt: skip
        elif leader.bound("268-30"):
            yield from _echoed(round, leader, given)


def _echoed(round: trace.Round, leader: trace.Life, given: list[trace.Given]) -> Iterator[Violation]:
    """Compared by instance: how its threads share the claimed tasks is not checked here (268-43)."""
    known = [each for each in round.members if each.info.used <= leader.latest and each.life is not None]
    for process in sorted({each.info.process for each in known}):
        threads = [each for each in known if each.info.process == process]
        claimed = {task for each in threads for task in each.info.active}
        lives = {each.life for each in threads}
        mine = [each for each in given if each.life in lives]
        got = {task for each in mine if each.info is not None for task in each.info.active}
        if len(mine) == len(threads) and got != claimed:
            names = " and ".join(each.joining.member for each in threads)
            why = f"{names} claimed {listed(claimed)}, and got {listed(got)} in {round.where}; claims should be kept"
            yield Violation(why, (round.at, mine[0].at), listed(claimed), listed(got),
                            shape=("others", "more" if got - claimed else "less"))  # fmt: skip


@impact(
    "A mix of versions that cannot work goes unnoticed",
    "refused peer",
    "error-codes",
    "misled-operator",
    links=("KIP-268",),
)
@trace.streams_invariant("streams/hard-mix", "268-32", checks=(LEADING, "streams/upgrade"))
def hard_mix(history: History) -> Iterator[Violation]:
    """An unknown version beside version 1 or 2 is an error: up to 2.6 an exception, later sent to all members."""
    todo = deployed(history)
    for round, leader in trace.led(history):
        if not round.is_hard_mix or not leader.bound("268-32") or not is_whole(todo):
            continue
        if any(each.info.error == SHUTDOWN_REQUESTED for each in round.members):
            continue  # A shutdown request takes precedence.
        failure = round.failure_while_leading()
        if trace.is_among(leader.release, THROWS):
            if round.given:
                why = f"{leader} makes an assignment in {round.where}"
                yield Violation(why, (round.at, round.given[0].at), "an exception", "an assignment",
                                shape=("hard mix", "assigned"))  # fmt: skip
        elif failure is not None:
            why = f"{leader} ends with {failure.event.kind} in {round.where}, without an error for the members"
            yield Violation(why, (round.at, failure.at), f"error {ASSIGNMENT_ERROR} for all", failure.event.kind,
                            shape=("hard mix", "thrown"))  # fmt: skip
        for each in round.given if failure is None and not trace.is_among(leader.release, THROWS) else ():
            got = "no assignment" if each.info is None else f"error {each.info.error} in version {each.info.used}"
            if got != (wanted := f"error {ASSIGNMENT_ERROR} in version {leader.latest}"):
                why = f"{each.name} is sent {got} in {round.where}"
                yield Violation(why, (round.at, each.at), wanted, got, shape=("hard mix", "not told"))
