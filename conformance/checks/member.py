"""Checks of consumers, of releases and of KIP-429's draft."""

from collections.abc import Callable, Iterable

from kipcheck.conformance.apis.member import action_of, rules_of
from kipcheck.conformance.apis.member_shorthand import shorthand
from kipcheck.conformance.checks.conversations import Subject, Wording, conversation, machine_family
from kipcheck.conformance.checks.declare import Check, Family
from kipcheck.conformance.core.case import Role, Step
from kipcheck.conformance.core.edition import KIP_429, Standing, edition
from kipcheck.conformance.core.history import Replied
from kipcheck.conformance.invariants.member import describe
from kipcheck.conformance.targets.protocol import MEMBER as MACHINE
from kipcheck.strategies.member_conversations import conversations


def released(name: str) -> Iterable[str]:
    """Any release whose consumers send heartbeats on their own."""
    found = edition(name)
    return (name,) if found.standing is Standing.RELEASED and rules_of(found) is not None else ()


def draft(name: str) -> Iterable[str]:
    """Not in a run of ``apache``: targets that are released consumers do not implement the draft."""
    return (name,) if edition(name) == KIP_429 else ()


def _actor(step: Step) -> str:
    return step.actor


def _described(step: Step) -> str:
    return shorthand((step,))


def _replied(reply: Replied) -> str:
    return ", ".join(describe(action_of(each)) for each in dict(reply.payload).get("actions", ())) or "nothing"


WORDING = Wording("consumer", _actor, _described, _replied)


def _family(editions: Callable[[str], Iterable[str]]) -> Family[Subject]:
    return machine_family(Role.MEMBER, MACHINE, editions, conversations, WORDING)


MEMBER = _family(released)
DRAFT_MEMBER = _family(draft)

MEMBER_CHECKS: tuple[Check[Subject], ...] = (
    Check(
        "member/callbacks",
        "callbacks are called in polls and on leaving, with owned partitions, and distinguish lost from revoked",
        MEMBER,
        conversation,
        values=300,
        invariants=(
            "member/callbacks-in-their-time",
            "member/gives-up-what-it-owns",
            "member/gives-up-first",
            "member/lost-when-out",
            "member/leaves-with-callbacks",
        ),
    ),
    Check(
        "member/ownership",
        "a consumer reads what it was assigned, keeps what it may, and reports exactly that in its subscription",
        MEMBER,
        conversation,
        values=300,
        invariants=(
            "member/owns-what-it-was-given",
            "member/reads-what-it-owns",
            "member/keeps-what-it-may",
            "member/revokes-what-it-lost",
            "member/rejoins-after-revoking",
            "member/tells-what-it-holds",
            "member/finds-a-protocol",
        ),
    ),
    Check(
        "member/errors",
        "each error has its documented effect, and a lost response is neither done nor failed",
        MEMBER,
        conversation,
        values=300,
        invariants=(
            "member/speaks-as-it-was-told",
            "member/raises-what-is-fatal",
            "member/joins-when-due",
            "member/backs-off",
            "member/commit-is-known",
            "member/commit-ends",
        ),
    ),
    Check(
        "member/duties",
        "a consumer syncs, leads, sends heartbeats and leaves as its coordinator expects",
        MEMBER,
        conversation,
        values=300,
        invariants=("member/syncs", "member/leads", "member/beats", "member/leaves"),
    ),
    Check(
        "member/draft",
        "the draft's member revokes all or keeps all, as configured, and counts assignments with the error",
        DRAFT_MEMBER,
        conversation,
        values=200,
        invariants=(
            "member/counts-incompatible",
            "member/drafted-subscription",
            "member/gives-up-first",
            "member/keeps-what-it-may",
            "member/tells-what-it-holds",
            "member/joins-when-due",
            "member/backs-off",
        ),
    ),
)
