"""Invariants of a coordinator of KIP-429's draft: the member with the highest protocol version leads."""

from collections.abc import Iterator, Mapping

from kipcheck.conformance.core.case import Case, Role, Step
from kipcheck.conformance.core.edition import KIP_429, edition
from kipcheck.conformance.core.history import History
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.invariants.group_requests import at, breach
from kipcheck.conformance.invariants.group_view import Reading, Told, reading
from kipcheck.conformance.invariants.registry import invariant

UNTOLD = -1
"""The protocol version of a member that sends none: below all others."""


def in_the_draft(case: Case, step: Step) -> bool:
    return edition(case.edition) == KIP_429


def _elections(history: History) -> Iterator[tuple[Reading, Told, Mapping[str, int]]]:
    """JoinGroup responses that list the members of a generation, with the protocol version of each member."""
    if edition(history.case.edition) != KIP_429:
        return
    talk = reading(history)
    for told in talk.told:
        if told.answer.members:
            joins = {id: talk.joined(id, told.by) for id, _, _ in told.answer.members}
            versions = {
                id: UNTOLD if join is None or join.protocol_version is None else join.protocol_version
                for id, join in joins.items()
            }
            yield talk, told, versions


@invariant("group/newest-leads", "429-08", "429-12", role=Role.COORDINATOR, concerns=in_the_draft)
def newest_leads(history: History) -> Iterator[Violation]:
    """No member has a higher protocol version than its leader, also after the previous leader left."""
    for talk, told, versions in _elections(history):
        leader = told.answer.leader
        newest = max(versions, key=lambda id: versions[id])
        if versions.get(leader, UNTOLD) < versions[newest]:
            join = talk.joining(newest, told.by)
            steps = (told.by,) if join is None else (join.index, told.by)
            why = (
                f"{newest} joined with protocol version {versions[newest]}, and {at(told.by)} makes {leader} lead"
                f" generation {told.generation} with {_version(versions.get(leader, UNTOLD))}"
            )
            yield breach(why, steps, f"leader {newest}", f"leader {leader}", "leader", "older")


@invariant("group/first-of-newest-leads", "429-24", role=Role.COORDINATOR, concerns=in_the_draft)
def first_of_newest_leads(history: History) -> Iterator[Violation]:
    """Of the members with the highest version the previous leader stays leader, else the first to join leads."""
    former: str | None = None
    reign = 0
    for talk, told, versions in _elections(history):
        leader = told.answer.leader
        newest = [id for id in versions if versions[id] == max(versions.values())]
        if talk.reign(told.by) != reign:
            former, reign = None, talk.reign(told.by)
        if leader in newest and len(newest) > 1:
            first = min(newest, key=lambda id: talk.joins[id][0].index if id in talk.joins else -1)
            due = former if former in newest else first
            if leader != due:
                ground = "led before" if due == former else "joined first"
                why = (
                    f"{' and '.join(newest)} have the highest protocol version, {due} {ground}, and {at(told.by)} makes"
                    f" {leader} lead generation {told.generation}"
                )
                yield breach(why, (told.by,), f"leader {due}", f"leader {leader}", "leader", ground)
        former = leader


def _version(version: int) -> str:
    return "none" if version == UNTOLD else str(version)
