"""Invariants of what a consumer's requests carry, of how it handles errors, and of when it joins."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from kipcheck.conformance.core.values.history import History, Replied
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.assignment.model.assignment import partition_names
from kipcheck.conformance.protocols.assignment.model.membership import Subscription
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.group.model import messages as group
from kipcheck.conformance.protocols.group.request_rules import (
    CONSUMER,
    NO_IDENTITY,
    PROTOCOL_SINCE,
    Identity,
    chosen_protocol,
    unequal,
    way,
)
from kipcheck.conformance.protocols.member import ops
from kipcheck.conformance.protocols.member.invariants import REQUESTS, member_invariant
from kipcheck.conformance.protocols.member.invariants.callbacks import (
    every,
    joins,
    on,
    outcome,
    owned_at_join,
    promptly,
    violation,
)
from kipcheck.conformance.protocols.member.invariants.trace import MemberStep, member_steps
from kipcheck.conformance.protocols.member.model.client import POLL_MS, SESSION_MS

PLACE = 20

of_errors = partial(member_invariant, checks=("member/errors",))
of_requests = partial(member_invariant, checks=(REQUESTS,))

ANSWERED = "member-told"


# Member id and generation


@impact(
    "A request has an outdated member id or generation, and is refused or fences the member", "stuck group", "epochs",
    "stuck-group", "needless-move", links=("KAFKA-13891",),
)  # fmt: skip
@of_errors("member/speaks-as-it-was-told", "grp-64", applies_to=every, needs=on("member-poll"))
def uses_its_identity(history: History) -> Iterator[Violation]:
    """Each request carries the member id and generation of the last response, unless a later error reset them."""
    for step in member_steps(history):
        view = step.received
        if view.loose or step.before.loose:
            continue
        known = view.identities
        for action in step.actions:
            match action:
                case group.Join(member=member):
                    carried, right = Identity(member), {Identity(one.member) for one in known}
                case group.Sync(member=member, generation=generation):
                    carried, right = Identity(member, generation), {*known}
                case group.Heartbeat(member=member, generation=generation):
                    carried, right = Identity(member, generation), {*known, *step.before.identities}
                case group.Commit(member=member, generation=generation):
                    carried = Identity(member, generation)
                    right = {*known, *step.before.identities} if view.topics else {NO_IDENTITY, *step.before.identities}
                case group.Leave(members=members):
                    carried = Identity(members[0][0] if members else "")
                    right = {Identity(one.member) for one in step.before.identities}
                case _:
                    continue
            if carried not in right:
                kind, wanted = type(action).__name__, _wanted(action, view.who)
                why = f"{kind} carries {describe_identity(carried)}, and {describe_identity(wanted)} is right since "
                shape = (kind, carried.differs(wanted), f"since {view.who_since}")
                yield violation(step, f"{why}{view.who_since}", describe_identity(wanted), *shape)


def _wanted(action: object, who: Identity) -> Identity:
    return Identity(who.member) if isinstance(action, group.Join | group.Leave) else who


def describe_identity(identity: Identity) -> str:
    id = f"member id {identity.member}" if identity.member else "an empty member id"
    return id if identity.generation == group.NO_GENERATION else f"{id} and generation {identity.generation}"


@impact(
    "A consumer gives up its member id, and leaves a member behind that no process serves", "trivia", "epochs",
    "needless-move", links=("KAFKA-13419",),
)  # fmt: skip
@of_errors("member/keeps-its-id", "grp-83", grade=Grade.SHOULD, applies_to=on("member-poll"))
def keeps_its_id(history: History) -> Iterator[Violation]:
    """After ILLEGAL_GENERATION a consumer joins again with its member id, unless it dropped an assignment as well."""
    fenced = False
    for step in member_steps(history):
        view = step.received
        was_fenced, fenced = fenced, (fenced or "FENCED" in step.name) and not joins(step)
        if was_fenced or view.loose or "ILLEGAL_GENERATION" not in view.who_since or step.before.taking is not None:
            continue
        for action in step.actions:
            if isinstance(action, group.Join) and view.who.member and not action.member:
                why = f"JoinGroup carries no member id after {view.who_since}, which says nothing about the id"
                yield violation(step, why, describe_identity(Identity(view.who.member)), "no id", view.who_since)


# What a request says


@impact(
    "A subscription claims partitions that the member does not own, or omits some", "double processing", "claims",
    "double-processing", links=("KAFKA-12984",),
)  # fmt: skip
@member_invariant(
    "member/tells-what-it-holds", "grp-62", "429-17", checks=("member/ownership", "member/draft"),
    applies_to=on("member-poll"),
)  # fmt: skip
def subscription_is_true(history: History) -> Iterator[Violation]:
    """A subscription names the subscribed topics, the owned partitions and the generation in which they are owned."""
    for step in member_steps(history):
        for action in step.actions:
            if not isinstance(action, group.Join):
                continue
            for name, blob in action.protocols:
                if isinstance(blob, Subscription):
                    yield from _untrue(step, name, blob)


def _untrue(step: MemberStep, assignor: str, subscription: Subscription) -> Iterator[Violation]:
    view, owned = step.received, owned_at_join(step)
    if {*subscription.topics} != {*view.topics}:
        why = f"its subscription for {assignor} names {', '.join(subscription.topics)}"
        less = "too few" if {*view.topics} - {*subscription.topics} else "too many"
        yield violation(step, why, ", ".join(view.topics), "topics", less)
    told = {*subscription.owned}
    if view.is_out and owned:  # member/lost-when-out
        return
    if told != (owned if subscription.version >= 1 else set()):
        why = (
            f"it owns {partition_names(owned)}, and its subscription names {partition_names(told)} in "
            f"version {subscription.version}"
        )
        what = "in version 0" if subscription.version < 1 else "too many" if told - owned else "too few"
        wanted = partition_names(owned) if subscription.version else "nothing in version 0"
        given_up = any(type(action).__name__ in ("Revoked", "Lost") for action in step.actions)
        since = step.name if given_up else step.before.moved_by
        state = "out of the group" if view.is_out else "in the group"
        whose = "for the chosen assignor" if assignor == view.protocol else "for another assignor"
        yield violation(step, why, wanted, "owned", what, whose, state, f"since {since}")
    generations = {each.generation for each in view.identities}
    if subscription.version >= 2 and not view.loose and subscription.generation not in generations:
        why = f"its generation is {view.who.generation}, and its subscription names {subscription.generation}"
        what = Identity("", subscription.generation).differs(Identity("", view.who.generation))
        yield violation(step, why, f"generation {view.who.generation}", "generation", what, f"since {view.who_since}")


def _sent(step: MemberStep, name: str) -> Iterator[Mapping[str, Any]]:
    """The requests of a step as the testee reports them: what it leaves out is not judged."""
    if isinstance(step.op.observation, Replied):
        for each in dict(step.op.observation.payload).get("actions", ()):
            if each["action"] == name:
                yield each


@impact(
    "A group uses other timeouts than the user configured", "stuck group", "gating", "stuck-group", "needless-move",
    links=("KIP-62",),
)  # fmt: skip
@of_requests("member/names-its-timeouts", "grp-84", applies_to=on("member-poll"))
def names_its_timeouts(history: History) -> Iterator[Violation]:
    """JoinGroup carries session.timeout.ms, and from version 1 on max.poll.interval.ms as rebalance timeout."""
    for step in member_steps(history):
        for join in _sent(step, "join"):
            wanted = {"session_ms": SESSION_MS, **({"rebalance_ms": POLL_MS} if join["version"] >= 1 else {})}
            for key, carried_ms, ms in unequal({**wanted, **join}, wanted):
                name = "session timeout" if key == "session_ms" else "rebalance timeout"
                yield violation(step, f"JoinGroup has a {name} of {carried_ms} ms", f"{ms} ms", name)


@impact(
    "A static member is not fenced, or is taken for a dynamic one", "double processing", "epochs", "double-processing",
    links=("KIP-345",),
)  # fmt: skip
@of_requests("member/names-its-instance", "grp-85", applies_to=every, needs=on("member-poll"))
def names_its_instance(history: History) -> Iterator[Violation]:
    """Every request of a static member carries its group.instance.id, and no request of a dynamic one any."""
    for step in member_steps(history):
        if step.before.opened is None or not step.rules.static:
            continue
        wanted = step.before.opened.instance
        for action in step.actions:
            if not isinstance(action, group.Join | group.Sync | group.Heartbeat | group.Commit):
                continue
            if isinstance(action, group.Commit) and action.generation == group.NO_GENERATION:
                continue  # It is not sent as a member.
            if action.instance != wanted:
                kind = type(action).__name__
                why = f"{kind} of a {'static' if wanted else 'dynamic'} member has the instance id {action.instance}"
                yield violation(step, why, str(wanted), kind, way(action.instance, wanted))


@impact("A member's SyncGroup is refused", "stuck group", "versions", "stuck-group", links=("KIP-559",))
@of_requests("member/syncs-as-chosen", "grp-86", applies_to=on(ANSWERED))
def syncs_as_chosen(history: History) -> Iterator[Violation]:
    """From version 5 on SyncGroup carries the protocol type, and the name of the protocol that JoinGroup returned."""
    for step in member_steps(history):
        joined = step.received.joined
        for sync in _sent(step, "sync"):
            if sync["version"] < PROTOCOL_SINCE or joined is None:
                continue
            sent = {"type": sync.get("protocol_type"), "protocol": sync.get("protocol")}
            for name, carried, wanted in unequal(sent, chosen_protocol(joined.protocol)):
                named = "protocol type" if name == "type" else name
                why = f"SyncGroup has the {named} {carried}"
                yield violation(step, why, str(wanted), named, "absent" if carried is None else "another")


@impact("A group uses another assignor than the configured one", "wrong data", "answers", "stuck-upgrade")
@of_requests("member/offers-in-order", "grp-87", applies_to=on("member-poll"))
def offers_in_order(history: History) -> Iterator[Violation]:
    """JoinGroup offers the configured assignors, the preferred one first, under the protocol type of consumers."""
    for step in member_steps(history):
        opened = step.before.opened
        for action in step.actions:
            if not isinstance(action, group.Join) or opened is None:
                continue
            offered, wanted = tuple(name for name, _ in action.protocols), opened.assignors
            if action.protocol_type != CONSUMER:
                yield violation(step, f"JoinGroup has the type {action.protocol_type}", CONSUMER, "protocol type")
            if offered != wanted:
                what = "order" if sorted(offered) == sorted(wanted) else "others"
                yield violation(step, f"JoinGroup offers {', '.join(offered)}", ", ".join(wanted), what)


@impact("Other offsets are committed than the user gave", "double processing", "durability", "wrong-data")
@of_requests("member/commits-what-it-was-given", "grp-88", applies_to=every, needs=on("member-poll"))
def commits_what_it_was_given(history: History) -> Iterator[Violation]:
    """OffsetCommit carries the partitions and offsets that the user commits, and no others."""
    for step in member_steps(history):
        if not step.received.commits:
            continue
        wanted = {(topic, number): offset for topic, number, offset in step.received.offsets}
        for action in step.actions:
            if isinstance(action, group.Commit):
                sent = {(topic, number): offset for topic, number, offset, *_ in action.offsets}
                if sent != wanted:
                    what = "offsets" if sent.keys() == wanted.keys() else "partitions"
                    why = f"the user commits {_offsets(wanted)}, and OffsetCommit has {_offsets(sent)}"
                    again = "repeated" if step.before.commits else "first"
                    yield violation(step, why, _offsets(wanted), what, again)


def _offsets(found: Mapping[tuple[str, int], int]) -> str:
    return ", ".join(f"{topic}-{number} at {offset}" for (topic, number), offset in sorted(found.items())) or "nothing"


# Errors


@impact(
    "A poll raises an error that the user cannot cause, or hides a fatal one", "stuck group", "error-codes",
    "stuck-group", "misled-operator", links=("KIP-345",),
)  # fmt: skip
@of_errors("member/raises-what-is-fatal", "grp-65", applies_to=every, needs=on("member-poll"))
def raises_what_is_fatal(history: History) -> Iterator[Violation]:
    """The next poll raises an error that the consumer cannot recover from, once; it raises no other error."""
    last = "open"
    for step in member_steps(history):
        view = step.received
        if step.polls and view.topics and not view.may_raise and not view.loose:
            raised = [action for action in step.actions if isinstance(action, ops.Raised)]
            if not view.raises and raised:
                why = f"the poll raised {raised[0].error}"
                shape = ("nothing", raised[0].exception or raised[0].error, f"after {last}", view.round.value)
                yield violation(step, why, "nothing raised", *shape)
            elif view.raises and [action.error for action in raised] != [view.raises] and (raised or not view.waits):
                why = f"the poll raised {' and '.join(action.error for action in raised) or 'nothing'}"
                wanted = "a fatal error" if view.later else view.raises
                shape = (wanted, f"since {view.raises_since.split()[0]}", outcome(step), promptly(view))
                if view.waits is False or raised:
                    yield violation(step, why, f"raised {view.raises}", *shape)
        last = step.name


# When it joins


@impact(
    "A consumer does not join when a rebalance requires it", "stuck group", "gating", "stuck-group",
    links=("KAFKA-13214",),
)  # fmt: skip
@member_invariant(
    "member/joins-when-due", "grp-66", "429-03", checks=("member/errors", "member/draft"), applies_to=every,
    needs=on("member-poll"),
)  # fmt: skip
def joins_when_due(history: History) -> Iterator[Violation]:
    """A poll joins if a rebalance, an error, a lost answer or a new subscription requires it, and nothing else does."""
    for step in member_steps(history):
        view = step.received
        if not step.polls:
            if joins(step):
                yield violation(
                    step, "it joins while the user does not poll", "no JoinGroup", "outside a poll", step.name
                )
            continue
        # The back-off of the draft's error comes first; what a poll adopts or drops may come first; and a revocation
        # has a requirement of its own.
        busy = any(isinstance(action, ops.Metric | ops.Given | ops.Raised) for action in step.actions)
        if busy or view.revoked or (view.dropped and not step.before.dropped):
            continue
        if view.must_join and step.assigned is None and not joins(step):
            since = view.join_reason
            yield violation(step, f"a join is due since {since}, and none is sent", "a JoinGroup", "none", since)


@impact(
    "A consumer causes rebalances that nothing requires", "trivia", "gating", "needless-move", links=("KAFKA-13214",)
)
@of_errors("member/joins-only-when-due", "grp-77", grade=Grade.SHOULD, applies_to=every,
           needs=on("member-poll"))  # fmt: skip
def joins_only_when_due(history: History) -> Iterator[Violation]:
    """A consumer sends JoinGroup only if one is due, and no SyncGroup for a group that it left."""
    for step in member_steps(history):
        view, loose = step.received, step.received.loose or step.before.loose
        if step.polls and joins(step) and view.must_join is False and not loose and not view.raises:
            shape = _needless(step)
            if shape:
                yield violation(step, "it joins without a reason to", "no JoinGroup", "undue", *shape)
        answer = step.event.answer if isinstance(step.event, ops.AnswerReceived) else None
        if isinstance(answer, group.Joined) and answer.error is group.Error.NONE and not loose:
            left = step.before.join is not None and step.before.join.left
            if left and any(isinstance(action, group.Sync) for action in step.actions):
                yield violation(step, "it sends SyncGroup for a group that it left", "no SyncGroup", "left")


def _needless(step: MemberStep) -> tuple[str, ...]:
    """The shape of a needless join; none where a back-off that is not that of a join is going on."""
    view = step.received
    if view.waits:
        return ("searching",) if view.searches else ()
    if view.join_pending:
        return ("pending",)
    if step.before.taking is not None:
        return "with an assignment", promptly(step.before)
    role = "leader" if view.joined is not None and view.joined.leader == view.joined.member else "follower"
    return view.round.value, role


@impact("A consumer joins again before its back-off ends", "trivia", "gating", "stuck-group", links=("KIP-429",))
@member_invariant("member/backs-off", "429-03", checks=("member/draft",), applies_to=every, needs=on("member-poll"))
def backs_off(history: History) -> Iterator[Violation]:
    """After an assignment with the draft's error no JoinGroup is sent before the back-off ends."""
    for step in member_steps(history):
        counted = step.before.backs_off is False and step.after.backs_off is True and isinstance(step.event, ops.Poll)
        if (step.received.backs_off or counted) and joins(step):
            yield violation(step, "it joins before its back-off ends", "no JoinGroup", "joins", "counted" * counted)
