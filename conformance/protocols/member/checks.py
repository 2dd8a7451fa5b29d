"""Checks of consumers, of releases and of KIP-429's draft."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import KIP_429, Standing, edition
from kipcheck.conformance.core.values.history import History, Op, Replied
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.check import Check, Conversation, Exhibit, Family, none_given
from kipcheck.conformance.protocols.declare.conversations import (
    Message,
    Subject,
    answer,
    diagram,
    listed,
    machine_family,
)
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.protocols.member import invariants, ops
from kipcheck.conformance.protocols.member.model.client import HEARTBEAT_MS
from kipcheck.conformance.protocols.member.model.rules import rules_of
from kipcheck.conformance.protocols.member.possible_conversations import conversation, impossible
from kipcheck.conformance.protocols.member.strategies.conversations import conversations

BEATS: Final = 20
"""Answered heartbeats in max.poll.interval.ms."""
HEARTBEAT_S: Final = HEARTBEAT_MS // 1000
SILENCE: Final = 2 * HEARTBEAT_S
"""Seconds: an unpolled member leaves within the first heartbeat interval at the latest."""


def released(name: str) -> Iterable[str]:
    """Any release whose consumers send heartbeats on their own."""
    found = edition(name)
    return (name,) if found.standing is Standing.RELEASED and rules_of(found) is not None else ()


def draft(name: str) -> Iterable[str]:
    """Not in a run of ``apache``: targets that are released consumers do not implement the draft."""
    return (name,) if edition(name) == KIP_429 else ()


def member_sequence(history: History, violation: Violation) -> list[Exhibit]:
    """Calls and callbacks between user and consumer, requests and answers between consumer and coordinator."""

    def messages(op: Op) -> Iterator[Message]:
        step = op.step
        says = ops.OPERATIONS.sentence(step)
        if not isinstance(op.observation, Replied):
            yield Message(
                step.actor, ops.CONSUMER, says, answer(op.observation, listed), reply=step.actor == ops.COORDINATOR
            )
            return
        yield Message(step.actor, ops.CONSUMER, says, reply=step.actor == ops.COORDINATOR)
        actions = map(ops.ACTIONS.from_json, dict(op.observation.payload).get("actions", ()))
        for to, several in groupby(
            actions, lambda each: ops.COORDINATOR if isinstance(each, ops.Request) else ops.USER
        ):
            if to == ops.USER:
                yield Message(ops.CONSUMER, ops.USER, ", ".join(map(ops.ACTIONS.describe, several)), reply=True)
                continue
            for each in several:
                assert isinstance(each, ops.Request)
                yield Message(ops.CONSUMER, ops.COORDINATOR, ops.ACTIONS.describe(each))

    return diagram(history, violation, messages)


def _family(editions: Callable[[str], Iterable[str]]) -> Family[Subject]:
    return machine_family(Role.MEMBER, ops.MEMBER, editions, conversations, member_sequence, impossible)


def directed(subject: Subject) -> Iterable[Conversation]:
    """A member that is not polled while its heartbeats are answered, for max.poll.interval.ms and longer; and one whose
    heartbeats are answered at once.

    The former is polled last a second after it entered its generation, so that its last heartbeat is answered before
    the time is over.
    """
    rules = rules_of(edition(subject.edition))
    second, beat = "elapse 1000", f"elapse {HEARTBEAT_MS}; beat"
    for instance in ("", " as=i") if rules is not None and rules.static else ("",):
        begun = f"open range{instance}; subscribe t; poll; joined 1; synced t:0; poll; {second}; poll"
        beats = "; ".join([f"elapse {HEARTBEAT_MS - 1000}; beat", *[beat] * (BEATS - 1)])
        silence = "; ".join([second] * SILENCE)
        yield Conversation(ops.OPERATIONS.parse_shorthand(f"{begun}; {beats}; {silence}; poll"), "unpolled")
    # An answer to a heartbeat that was not sent has no effect.
    often = "; ".join([f"{second}; beat"] * 2 * HEARTBEAT_S)
    yield Conversation(
        ops.OPERATIONS.parse_shorthand(f"open range; subscribe t; poll; joined 1; synced t:0; poll; {often}"), "often"
    )


MEMBER = _family(released)
DRAFT_MEMBER = _family(draft)

of = partial(invariants_of, part=invariants)


def member_check(
    id: str, sentence: str, ids: tuple[str, ...], given: Callable[[Subject], Iterable[Conversation]] = none_given
) -> Check[Subject]:
    return Check(id, sentence, MEMBER, conversation, values=300, invariants=ids, given=given)


CHECKS: tuple[Check[Subject], ...] = (
    member_check(
        "member/callbacks",
        "callbacks are called in polls and on leaving, with owned partitions, and distinguish lost from revoked",
        of("member/callbacks"),
    ),
    member_check(
        "member/ownership",
        "a consumer reads what it was assigned, keeps what it may, and reports exactly that in its subscription",
        (*of("member/ownership"), *of(invariants.PROTOCOLS)),
    ),
    member_check(
        "member/errors",
        "each error has its documented effect, and a lost response is neither done nor failed",
        of("member/errors"),
    ),
    member_check(
        "member/duties",
        "a consumer syncs, leads, sends heartbeats and leaves as its coordinator expects, in requests as configured",
        (*of("member/duties"), *of(invariants.REQUESTS)),
        directed,
    ),
    Check(
        "member/draft",
        "the draft's member revokes all or keeps all, as configured, and counts assignments with the error",
        DRAFT_MEMBER,
        conversation,
        values=200,
        invariants=of("member/draft", first=("member/counts-incompatible", "member/drafted-subscription")),
    ),
)
