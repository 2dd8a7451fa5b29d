"""Invariants of a coordinator of KIP-429's draft: the member with the highest protocol version leads."""

from collections.abc import Iterator, Mapping
from functools import partial

from kipcheck.conformance.core.values.case import Case, Step
from kipcheck.conformance.core.values.edition import KIP_429, edition
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import impact, steps_of
from kipcheck.conformance.protocols.group.invariants import group_invariant
from kipcheck.conformance.protocols.group.invariants.requests import at, breach
from kipcheck.conformance.protocols.group.invariants.view import GroupTrace, JoinResult, group_trace

PLACE = 80

of_newest = partial(group_invariant, checks=("group/newest-leads",))

NO_VERSION = -1
"""The protocol version of a member that sends none: below all others."""


def in_the_draft(case: Case, step: Step) -> bool:
    return edition(case.edition) == KIP_429


def _elections(history: History) -> Iterator[tuple[GroupTrace, JoinResult, Mapping[str, int]]]:
    """JoinGroup responses that list the members of a generation, with the protocol version of each member."""
    if edition(history.case.edition) != KIP_429:
        return
    group = group_trace(history)
    for result in group.join_results:
        if result.answer.members:
            joins = {id: group.joined(id, result.by) for id, _, _ in result.answer.members}
            versions = {
                id: NO_VERSION if join is None or join.protocol_version is None else join.protocol_version
                for id, join in joins.items()
            }
            yield group, result, versions


@impact(
    "An old member leads newer ones, and the group cannot be upgraded",
    "stuck group",
    "negotiation",
    "stuck-upgrade",
    links=("KIP-429",),
)
@of_newest("group/newest-leads", "429-08", "429-12", applies_to=in_the_draft, needs=steps_of("join"), after=("join",))
def newest_leads(history: History) -> Iterator[Violation]:
    """No member has a higher protocol version than its leader, also after the previous leader left."""
    for group, result, versions in _elections(history):
        leader = result.answer.leader
        newest = max(versions, key=lambda id: versions[id])
        if versions.get(leader, NO_VERSION) < versions[newest]:
            join = group.joining(newest, result.by)
            steps = (result.by,) if join is None else (join.index, result.by)
            why = (
                f"{newest} joined with protocol version {versions[newest]}, and {at(result.by)} makes {leader} lead"
                f" generation {result.generation} with {_version(versions.get(leader, NO_VERSION))}"
            )
            yield breach(why, steps, f"leader {newest}", f"leader {leader}", "leader", "older")


@impact("The leader changes without need", "trivia", "order", "needless-move", links=("KIP-429",))
@of_newest("group/first-of-newest-leads", "429-24", applies_to=in_the_draft, needs=steps_of("join"), after=("join",))
def first_of_newest_leads(history: History) -> Iterator[Violation]:
    """Of the members with the highest version the previous leader stays leader, else the first to join leads."""
    former: str | None = None
    incarnation = 0
    for group, result, versions in _elections(history):
        leader = result.answer.leader
        newest = [id for id in versions if versions[id] == max(versions.values())]
        if group.incarnation(result.by) != incarnation:
            former, incarnation = None, group.incarnation(result.by)
        if leader in newest and len(newest) > 1:
            first = min(newest, key=lambda id: group.joins[id][0].index if id in group.joins else -1)
            due = former if former in newest else first
            if leader != due:
                ground = "led before" if due == former else "joined first"
                why = (
                    f"{' and '.join(newest)} have the highest protocol version, {due} {ground}, and {at(result.by)} "
                    "makes"
                    f" {leader} lead generation {result.generation}"
                )
                yield breach(why, (result.by,), f"leader {due}", f"leader {leader}", "leader", ground)
        former = leader


def _version(version: int) -> str:
    return "none" if version == NO_VERSION else str(version)
