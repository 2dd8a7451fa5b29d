"""Invariants of version probing: it ends, happens only when needed, and reaches the latest common version."""

from collections.abc import Iterator
from functools import partial

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.streams.invariants import ENDING, trace
from kipcheck.conformance.protocols.streams.invariants.versions import begins_in, has_cause, has_fixed_version
from kipcheck.conformance.protocols.streams.model.members import AssignmentInfo
from kipcheck.conformance.protocols.streams.ops import Present, Start
from kipcheck.conformance.protocols.upgrade.ops import Settle

PLACE = 30

of_ending = partial(trace.streams_invariant, checks=(ENDING,))

GENERATIONS = 3
"""The generations that a group may need per step until it is at rest: one to meet, one to change the version or to give
up tasks, one to assign them."""
AFTER_RESTART = 2
"""The generations after a restarted member, as released from 2.4 on (268-37); one more if cooperative members hand over
tasks, and another one if the leader cannot decode yet that the new member is a thread of an existing instance."""
CHANGES = 3
"""How often a process may change its version until the group is at rest again, if nothing else happens."""
TWO_ROUNDS = span("cooperative-rebalancing")
"""Releases in which a restart costs at most two rounds (268-37)."""
LEAVES = span("leaves-to-probe")
"""Releases whose members leave the group to subscribe again; later ones stay in (268-18)."""
UNIQUE = 8
"""The first metadata version with a byte that makes successive subscriptions differ (268-45)."""


@impact("Version probing never ends", "stuck group", "waiting", "stuck-group", links=("KIP-268",))
@trace.streams_invariant("streams/probing-ends", "268-24", "268-37", checks=(ENDING, "streams/topologies"))
def probing_ends(history: History) -> Iterator[Violation]:
    """A group comes to rest after a limited number of rebalances for each step."""
    events = trace.streams_trace(history).events
    for each in trace.stretches(history):
        numbers = [one.number for one in each.rounds]
        if each.rests is None:
            why = f"after generations {_few(numbers)} the group is not at rest"
            yield Violation(why, (each.last,), "rest", "no rest", shape=("restless",))
            return
        operations = [one for one in events[each.first : each.last + 1] if one is not None]
        most = GENERATIONS * len(operations)
        match [one for one in operations if not isinstance(one, Settle)]:
            case [Start()] | [] if len(operations) <= 2 and each.first and _are_bound(each):
                owned = any(one.joining.owned for round in each.rounds for one in round.members)
                most = min(most, AFTER_RESTART + owned + (owned and _is_regrouped(each)) + _absences(each))
        if len(numbers) > most:
            steps = f"steps {each.first + 1} to {each.last + 1}"
            why = f"{steps} cost the group {len(numbers)} generations, {_few(numbers)}"
            yield Violation(why, (each.first, each.last), f"at most {most}", str(len(numbers)), shape=("generations",))
        yield from _wavering(each)


def _are_bound(stretch: trace.Stretch) -> bool:
    """Does the lower bound after a restart apply? Only if nothing else happens, and to releases from 2.4.0 on."""
    if any(round.failures for round in stretch.rounds):
        return False
    lives = [one.life for round in stretch.rounds for one in round.members]
    return all(life is not None and life.bound("268-37") and trace.is_among(life.release, TWO_ROUNDS) for life in lives)


def _absences(stretch: trace.Stretch) -> int:
    """The generations without a member that runs: its old session ended before it was back, or it left to probe."""
    return sum(not {*stretch.running} <= {one.life for one in round.members} for round in stretch.rounds)


def _is_regrouped(stretch: trace.Stretch) -> bool:
    """Does a member whose subscription the leader could not decode turn out to be a thread of another's instance?"""
    unknown = {one.life for round in stretch.rounds for one in round.futures}
    return any(
        one.life in unknown and other.life is not one.life and other.info.process == one.info.process
        for round in stretch.rounds
        if not round.futures
        for one in round.members
        for other in round.members
    )


def _wavering(stretch: trace.Stretch) -> Iterator[Violation]:
    """Repeated version changes in the last step, in which no other event affects the group."""
    changes: dict[trace.Life, list[trace.Processed]] = {}
    for round in stretch.rounds:
        for each in round.processed:
            if each.at == stretch.last and each.event.used != each.event.before:
                changes.setdefault(each.life, []).append(each)
    for life, found in changes.items():
        if len(found) > CHANGES:
            used = ", ".join(str(each.event.used) for each in found)
            why = f"{life} changes to versions {used} in step {stretch.last + 1}, in which nothing else happens"
            yield Violation(why, (stretch.last,), "one version", used, shape=("wavers",))


def _few(generations: list[int]) -> str:
    shown = [str(each) for each in generations]
    return ", ".join(shown if len(shown) < 6 else [*shown[:3], "...", shown[-1]]) or "none"


# Requests for a rebalance


@impact(
    "A group stays in an old version after an upgrade",
    "trivia",
    "gating",
    "stuck-upgrade",
    "stuck-group",
    links=("KIP-268", "KAFKA-8649"),
)
@of_ending("streams/last-rebalance", "268-17", "268-18", "268-21", "268-36", "268-37", "268-64")
def last_rebalance(history: History) -> Iterator[Violation]:
    """By edition, members whose version falls or changes, or the leader alone, request one more rebalance."""
    for round, each, info in trace.processed(history):
        subscribed = round.subscribed(each.life)
        if info.used < trace.FIRST_PROBED or subscribed is None or not each.life.bound("268-17"):
            continue
        cause = _cause(each.life, subscribed.info.used, info, round)
        requested = each.event.rejoin.when
        shown = f"{each.life} subscribed in {subscribed.info.used}, got version {info.used}, supported {info.supported}"
        if cause and requested in trace.NO_REJOIN:
            why = f"{shown} in {round.where}, and requests no rebalance, although {cause}"
            yield Violation(why, (round.at, each.at), "a rebalance", "none", shape=("rejoin", "none"))
        elif not cause and requested not in trace.NO_REJOIN and not _has_other_causes(each.life):
            why = f"{shown} in {round.where}, and requests a rebalance without a reason to"
            yield Violation(why, (round.at, each.at), "none", "a rebalance", shape=("rejoin", "needless"))
        elif cause and (leaves := trace.is_draft(each.life.release) or trace.is_among(each.life.release, LEAVES)) != (
            requested == "again"
        ):
            how = {True: "leaves and subscribes again", False: "stays in and rejoins"}
            why = f"{shown} in {round.where}, and {how[not leaves]}"
            yield Violation(why, (round.at, each.at), how[leaves], how[not leaves], shape=("rejoin", requested))


def _cause(life: trace.Life, used: int, info: AssignmentInfo, round: trace.Round) -> str:
    """Why versions require a member to request a rebalance; empty if they do not."""
    if trace.is_draft(life.release):
        if info.supported < used:
            return "its version falls"
        last = trace.FIRST_PROBED <= round.lowest < life.latest <= round.supported
        return "it leads, and all know its version" if last and round.leader is life else ""
    if life.bound("268-36"):
        return "its version falls" if info.supported < used else ""
    return "its version changes" if has_cause(used, info) else ""


def _has_other_causes(life: trace.Life) -> bool:
    """May it request a rebalance for other reasons? From 2.6 on: tasks to wait for, an end point missing in the map."""
    return not trace.is_draft(life.release) and not trace.is_among(life.release, LEAVES)


@impact(
    "A rebalance that a member requested never happens",
    "stuck group",
    "waiting",
    "stuck-upgrade",
    links=("KIP-268", "KAFKA-10455"),
)
@of_ending("streams/rejoins", "268-18", "268-24")
def rejoins(history: History) -> Iterator[Violation]:
    """A member that requested an immediate rebalance gets one before the group is at rest.

    Members whose subscription would be unchanged are exempt: coordinators ignore such a JoinGroup.
    """
    for each in trace.stretches(history):
        if each.rests is None:
            continue
        for round in each.rounds:
            for one in round.processed if round.number == each.rests.generation else ():
                differs = one.event.used != one.event.before or (one.event.used >= UNIQUE and one.life.bound("268-45"))
                if one.event.rejoin.when not in trace.NO_REJOIN and differs and one.life in each.running:
                    why = f"{one.life} requests a rebalance in generation {round.number}, and the group stays in it"
                    yield Violation(why, (one.at, each.last), f"a generation after {round.number}", "none",
                                    shape=("no rebalance",))  # fmt: skip


@impact(
    "A rebalance is skipped because two subscriptions are equal",
    "stuck group",
    "epochs",
    "stuck-upgrade",
    links=("KAFKA-10455",),
)
@of_ending("streams/successive-differ", "268-45")
def successive_differ(history: History) -> Iterator[Violation]:
    """Two successive subscriptions of a member differ."""
    last: dict[trace.Life, tuple[trace.Round, int]] = {}
    for round in trace.streams_trace(history).rounds:
        for each in round.members:
            if each.life is None or each.info.used < UNIQUE or not each.life.bound("268-45"):
                continue
            before, unique = last.get(each.life, (round, None))
            if unique == each.info.unique:
                why = (
                    f"{each.life} has {each.info.unique} in its unique byte in generation {before.number}, and again "
                    f"in generation {round.number}"
                )
                yield Violation(why, (before.at, round.at), f"not {unique}", str(unique), shape=("the same",))
            last[each.life] = round, each.info.unique


# At rest


@impact(
    "A group stays incomplete, or in an old version, after an upgrade",
    "stuck group",
    "negotiation",
    "stuck-upgrade",
    links=("KIP-268",),
)
@of_ending("streams/upgraded", "268-12", "268-13", "268-22", "268-23", "268-26")
def upgraded(history: History) -> Iterator[Violation]:
    """A group at rest has all its members, and uses the latest version that all support."""
    for each in trace.stretches(history):
        if each.rests is None:
            continue
        present = {one.member: one for one in each.rests.members}
        for life in each.running:
            if life.member not in present:
                why = f"the group is at rest in generation {each.rests.generation}, and {life} is not in it"
                yield Violation(why, (life.began, each.last), f"{life.member} in the group", "not there",
                                shape=("upgraded", "missing"))  # fmt: skip
        round = trace.streams_trace(history).round(each.rests.generation)
        lives = [life for life in each.running if life.member in present]
        if round is not None and lives and {one.life for one in round.members} == {*lives}:
            yield from _at_rest(each, round, lives, present)


def _at_rest(
    stretch: trace.Stretch, round: trace.Round, lives: list[trace.Life], present: dict[str, Present]
) -> Iterator[Violation]:
    common = min(begins_in(life) or 0 if has_fixed_version(life) else life.latest for life in lives)
    at = (round.at, stretch.last)
    # 268-36 itself has these releases wait for the next rebalance with another cause.
    silent = [life for life in lives if life.bound("268-36") and not trace.is_draft(life.release)]
    if not silent and round.lowest != common:
        names = ", ".join(map(str, lives))
        why = f"{names} are at rest in generation {round.number}, and use {round.lowest}; all know {common}"
        yield Violation(why, at, f"version {common}", f"version {round.lowest}",
                        shape=("upgraded", "below" if round.lowest < common else "above"))  # fmt: skip
    same_latest = len({life.latest for life in lives}) == 1
    if common < trace.FIRST_PROBED or not (same_latest or all(life.bound("268-37") for life in lives)):
        return
    for life in lives:
        used = present[life.member].used
        if used != common and (not silent or len(silent) == len(lives)):
            why = f"{life} is at rest in generation {round.number}, and uses {used}; all know {common}"
            yield Violation(why, at, f"version {common}", f"version {used}",
                            shape=("upgraded", "uses less" if used < common else "uses more"))  # fmt: skip


@impact("A group probes versions without need", "trivia", "gating", "needless-move", links=("KIP-268",))
@of_ending("streams/no-probing", "268-46")
def no_probing(history: History) -> Iterator[Violation]:
    """Between releases with the same latest version no member changes its version, or rejoins to change it."""
    found = trace.streams_trace(history)
    for round in found.rounds:
        lives = {each.life for each in found.observed if each.life is not None and each.life.began <= round.at}
        if len({life.latest for life in lives}) > 1 or any(
            has_fixed_version(life) or not life.bound("268-46") for life in lives
        ):
            return
        for each in round.members:
            if each.life is not None and each.info.used != (latest := each.life.latest):
                why = f"{each.life} uses {each.info.used} in {round.where}, and all processes so far know {latest}"
                yield Violation(why, (round.at,), str(latest), str(each.info.used), shape=("probing", "says"))
        for one in round.processed:
            if one.event.rejoin.when == "again":
                why = f"{one.life} subscribes again after {round.where}, and all processes so far know the same version"
                yield Violation(why, (round.at, one.at), "no rebalance", "one more", shape=("probing", "rejoins"))
