"""The coordinator of one KIP-848 consumer group, released with 4.0.0: reconciles members by their heartbeats.

Source: ``GroupMetadataManager``, ``CurrentAssignmentBuilder`` and ``ConsumerGroupMember`` of the releases. Clients
generate their member ids. Every heartbeat is answered immediately; a regular expression is resolved after the answer.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.consumer_group import ops
from kipcheck.conformance.protocols.consumer_group.rules import CURRENT, DEFAULT, Config, Rules
from kipcheck.conformance.protocols.reconciled import log_ops, model, terms
from kipcheck.conformance.protocols.reconciled.terms import Says

TOPICS: Final = {"t": 3, "u": 2}
"""Existing topics, with their numbers of partitions."""
SERVER_ASSIGNORS: Final = ops.ASSIGNORS[:2]
REFRESH_MS: Final = 10_000
"""The least time between two resolutions of regular expressions."""

UNSUPPORTED_ASSIGNOR = "UNSUPPORTED_ASSIGNOR"
INVALID_REGULAR_EXPRESSION = "INVALID_REGULAR_EXPRESSION"


class Member(NamedTuple):
    """A member of a reconciled group: partitions are assigned to it."""

    id: str
    topics: tuple[str, ...]
    epoch: int = 0
    previous: int = 0
    assigned: terms.Partitions = ()
    pending: terms.Partitions = ()
    waiting: bool = False
    silent_ms: int = 0
    revoking_ms: int = 0
    instance: str | None = None
    regex: str = ""
    session_ms: int = 0
    """Its session timeout, if the group has one of its own."""


class State(NamedTuple):
    exists: bool = False
    group_epoch: int = 0
    target_epoch: int = 0
    target: tuple[tuple[str, terms.Partitions], ...] = ()
    members: tuple[Member, ...] = ()
    """Sorted by id."""
    clients: tuple[terms.Memory, ...] = ()
    aimed_ms: int | None = None
    """The time since the target assignment was computed; None: it was not."""
    resolved: tuple[str, ...] = ()
    """Regular expressions whose topics are known."""
    refreshed_ms: int | None = None
    """The time since regular expressions were resolved; None: none was."""
    offsets: tuple[log_ops.Offset, ...] = ()
    created: tuple[str, ...] = ()
    """Topics that were created since the group began."""
    considered: tuple[str, ...] = ()
    """Those of them that existed when regular expressions were resolved."""
    session_ms: int = 0
    """The session timeout of the group; 0: that of the broker."""

    def member(self, id: str) -> Member | None:
        return model.member_of(self.members, id)

    def holder(self, instance: str | None) -> Member | None:
        """The member with this instance id."""
        return model.holder_of(self.members, instance)

    def memory(self, client: str) -> terms.Memory:
        return terms.memory_of(self.clients, client)

    def target_of(self, id: str) -> terms.Partitions:
        return model.part_of(self.target, id)


class ConsumerGroup(model.PacedGroup[State, Member, ops.Beat, terms.Partitions | None]):
    topics: Mapping[str, int] = TOPICS
    rules: Rules = CURRENT
    config: Config = DEFAULT
    revocation_ms = ops.REBALANCE_MS
    counts_successors: bool = False
    """A full group has no room for the successor of a static member."""

    def __init__(self, topics: Mapping[str, int] = TOPICS, rules: Rules = CURRENT, config: Config = DEFAULT) -> None:
        """``topics``: the existing topics, with their numbers of partitions."""
        self.topics = topics
        self.rules = rules
        self.config = config

    def initial(self) -> State:
        return State(group_epoch=self.rules.born_at, target_epoch=self.rules.born_at)

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        match event:
            case ops.Beat():
                return self.beat(state, event)
            case ops.Pass(ms):
                return Transition(self.passed(state, ms))
            case ops.Create(topic):
                return Transition(state._replace(created=tuple(sorted({*state.created, topic}))))
            case ops.Configure(session_ms):
                return Transition(state._replace(session_ms=session_ms))
            case _:
                return self.logged(state, event)

    def enabled(self, state: State, /) -> Iterator[ops.Event]:
        """Events that the coordinator accepts."""
        for client in ops.CLIENTS:
            member = state.member(client)
            if member is None or member.epoch == terms.AWAY:
                instances = (None, *(each for each in ops.INSTANCES if self._may_join(state, each)))
                if member is not None:
                    instances = (member.instance,)
                yield from (
                    ops.Beat(client, Says.JOIN, topics=topics, owned="none", instance=each)
                    for topics in ops.SUBSCRIPTIONS for each in instances
                )  # fmt: skip
                continue
            instance = member.instance
            yield from (
                ops.Beat(client, Says.STAY, owned=owned, instance=instance) for owned in (None, "told", "before")
            )
            yield from (
                ops.Beat(client, Says.STAY, topics=topics, owned="told", instance=instance)
                for topics in ops.SUBSCRIPTIONS
            )
            yield ops.Beat(client, Says.LEAVE, instance=instance)
            if instance is not None:
                yield ops.Beat(client, Says.AWAY, instance=instance)
        yield from map(ops.Pass, ops.PASSES)

    def _may_join(self, state: State, instance: str) -> bool:
        holder = state.holder(instance)
        return holder is None or holder.epoch == terms.AWAY

    # A heartbeat

    def beat(self, state: State, beat: ops.Beat) -> Transition[State, ops.Action]:
        memory = state.memory(beat.client)
        return self.heartbeat(state, beat, memory.epoch_in(beat), memory.claimed(beat.owned))

    def heartbeat(
        self, state: State, beat: ops.Beat, epoch: int, owned: terms.Partitions | None
    ) -> Transition[State, ops.Answer]:
        """A heartbeat with this epoch and these partitions, which may differ from what the client received."""
        memory = state.memory(beat.client)
        error = self.invalid(beat, epoch, owned) or self.fault(state, beat, epoch, owned)
        if error is not None:
            return Transition(state, (terms.Rejected(beat.client, error),))
        if epoch in terms.LEFT:
            answer = ops.Answered(beat.client, self.leaving_epoch(epoch), None)
            return Transition(remembered(self.gone(state, beat.client, epoch), memory, answer), (answer,))
        known = state
        state = self.replaced(state, beat) if epoch == 0 else state
        old, is_first = state.member(beat.client), not state.members
        state = self.subscribed(state, beat)
        if self.may_aim(state, is_first):
            state = self.aimed(state)
        before = state.member(beat.client)
        assert before is not None
        changed = old is not None and self.topics_of(state, old) != self.topics_of(state, before)
        after = self.reconciled(state, before, owned, changed)._replace(silent_ms=0, session_ms=state.session_ms)
        subscribes = beat.topics is not None or beat.regex is not None
        full = epoch == 0 or (subscribes and owned is not None and beat.lacks != "timeout")
        given = after.assigned if full or after.assigned != before.assigned else None
        answer = ops.Answered(beat.client, after.epoch, given)
        state = remembered(model.with_member(state, after), memory, answer)
        return Transition(self.resolved(state, known), (answer,))

    def leaving_epoch(self, epoch: int) -> int:
        """In the answer to a member that leaves."""
        return epoch

    def invalid(self, beat: ops.Beat, epoch: int, owned: terms.Partitions | None) -> str | None:
        """The error of a heartbeat that no group accepts."""
        if is_invalid(beat, epoch, owned):
            return terms.INVALID_REQUEST
        return UNSUPPORTED_ASSIGNOR if beat.assignor not in (None, *SERVER_ASSIGNORS) else None

    def shut(self, state: State, beat: ops.Beat, epoch: int) -> str | None:
        if not state.exists and epoch != 0:
            return terms.GROUP_ID_NOT_FOUND
        full = epoch not in terms.LEFT and self.is_full(state, beat.client, beat.instance)
        return terms.GROUP_MAX_SIZE_REACHED if full else None

    def unfit(self, state: State, beat: ops.Beat, epoch: int, owned: terms.Partitions | None) -> str | None:
        return INVALID_REGULAR_EXPRESSION if beat.regex and not is_regex(beat.regex) else None

    def is_full(self, state: State, id: str, instance: str | None) -> bool:
        """Whether the group has no room for this member, which states an instance."""
        if len(state.members) < self.config.max_size or state.member(id) is not None:
            return False
        return self.counts_successors or state.holder(instance) is None

    def owns_no_more(self, member: Member, owned: terms.Partitions | None) -> bool:
        return owned is not None and {*owned} <= {*member.assigned}

    # The group

    def subscribed(self, state: State, beat: ops.Beat) -> State:
        known = state.member(beat.client)
        member = known or Member(beat.client, ())
        topics = member.topics if beat.topics is None else beat.topics
        regex = member.regex if beat.regex is None else beat.regex
        instance = member.instance if beat.instance is None else beat.instance
        joins = known is None and (bool(topics) or not state.group_epoch)
        changed = joins or topics != member.topics  # an expression counts when it is resolved
        state = model.with_member(state, member._replace(topics=topics, regex=regex, instance=instance))
        return state._replace(exists=True, group_epoch=self.bumped(state) if changed else state.group_epoch)

    def aimed(self, state: State) -> State:
        return state._replace(target=tuple(self.shares(state)), target_epoch=state.group_epoch, aimed_ms=0)

    def resolved(self, state: State, before: State) -> State:
        """The topics of regular expressions are looked up after the answer. ``before``: before the heartbeat."""
        wanted = {each.regex for each in state.members if each.regex}
        due = not before.resolved or before.refreshed_ms is None or before.refreshed_ms >= REFRESH_MS
        new, later = wanted - {*state.resolved}, {*state.created} - {*state.considered}
        if not (new or (wanted and later)) or not due:
            return state._replace(resolved=tuple(each for each in state.resolved if each in wanted))
        old = self.topics_of_expressions(state)
        state = state._replace(resolved=tuple(sorted(wanted)), refreshed_ms=0, considered=state.created)
        changed = any(
            matches(regex, topic)
            for regex in wanted
            for topic in self.topics_of_expressions(state)
            if regex in new or topic not in old
        )
        return state._replace(group_epoch=self.bumped(state)) if changed else state

    def topics_of(self, state: State, member: Member) -> frozenset[str]:
        """The topics that it subscribes to, as far as they are known."""
        found = {*member.topics}
        regex = member.regex if member.regex in state.resolved else ""
        known = self.topics_of_expressions(state)
        return frozenset(found | {each for each in known if regex and matches(regex, each)})

    def topics_of_expressions(self, state: State) -> tuple[str, ...]:
        """The topics among which regular expressions were resolved."""
        return (*self.topics, *state.considered)

    def shares(self, state: State) -> Iterator[tuple[str, terms.Partitions]]:
        """A balanced and sticky target assignment; the protocol leaves the choice among such assignments open."""
        topics = {each.id: self.topics_of(state, each) for each in state.members}
        subscribed = frozenset[str]().union(*topics.values())
        sizes = {**self.topics, **{topic: ops.LATER[topic] for topic in state.created}}
        wanted = [(topic, each) for topic, size in sizes.items() if topic in subscribed for each in range(size)]
        return model.balanced(
            topics,
            wanted,
            state.target,
            may_keep=lambda id, partition: partition[0] in topics[id],
            may_have=lambda id, partition: self.may_have(topics[id], partition),
        )

    def may_have(self, topics: frozenset[str], partition: Partition) -> bool:
        return partition[0] in topics

    def without(self, state: State, id: str) -> State:
        after = super().without(state, id)
        regexes = {each.regex for each in after.members}
        resolved = tuple(each for each in state.resolved if each in regexes)
        return after._replace(resolved=resolved, group_epoch=self.bumped(state))

    # Reconciliation of one member

    def reconciled(self, state: State, member: Member, owned: terms.Partitions | None, changed: bool = False) -> Member:
        """``changed``: it subscribes to other topics than before."""
        after = super().reconciled(state, member, owned)
        drops = changed and self.rules.drops_unsubscribed and after is member
        return self.reduced(state, member, owned) if drops else after

    def reduced(self, state: State, member: Member, owned: terms.Partitions | None) -> Member:
        """The member without the partitions of topics that it does not subscribe to."""
        topics = self.topics_of(state, member)
        lost = tuple(each for each in member.assigned if each[0] not in topics)
        if not lost:
            return member
        member = member._replace(assigned=tuple(each for each in member.assigned if each not in lost))
        revokes = bool(member.pending) or owned is None or bool({*owned} & {*lost})
        return member._replace(pending=tuple(sorted({*member.pending, *lost})), waiting=False) if revokes else member

    def has_revoked(self, member: Member, owned: terms.Partitions | None) -> bool:
        return owned is not None and not {*owned} & {*member.pending}

    def computed(self, state: State, member: Member, owned: terms.Partitions | None, epoch: int) -> Member:
        """The member's next assignment: with ``epoch`` while it has partitions to revoke, else with the target's."""
        aims = self.aims_of(state, member)
        keep = [each for each in member.assigned if each in aims]
        revoke = [each for each in member.assigned if each not in aims]
        if revoke and (owned is None or {*owned} & {*revoke}):
            revoking_member = self.advanced(member, epoch)
            return revoking_member._replace(assigned=tuple(sorted(keep)), pending=tuple(sorted(revoke)), waiting=False)
        new = [each for each in aims if each not in member.assigned]
        free = [each for each in new if self.is_free(state, member, each)]
        settled = self.advanced(member, state.target_epoch)
        return settled._replace(assigned=tuple(sorted([*keep, *free])), waiting=len(free) < len(new))

    def aims_of(self, state: State, member: Member) -> terms.Partitions:
        """Its part of the target assignment."""
        target = state.target_of(member.id)
        if not self.rules.drops_unsubscribed:
            return target
        topics = self.topics_of(state, member)
        return tuple(each for each in target if each[0] in topics)

    def advanced(self, member: Member, epoch: int) -> Member:
        return member if member.epoch == epoch else member._replace(epoch=epoch, previous=member.epoch)

    def session_of(self, member: Member) -> int:
        return member.session_ms or super().session_of(member)

    def reloaded(self, state: State, reload: log_ops.Reload) -> State:
        state = super().reloaded(state, reload)
        return state._replace(members=tuple(each._replace(session_ms=state.session_ms) for each in state.members))

    def older(self, state: State, ms: int) -> State:
        aimed_ms = None if state.aimed_ms is None else state.aimed_ms + ms
        refreshed_ms = None if state.refreshed_ms is None else state.refreshed_ms + ms
        return super().older(state, ms)._replace(aimed_ms=aimed_ms, refreshed_ms=refreshed_ms)


def is_invalid(beat: ops.Beat, epoch: int, owned: terms.Partitions | None) -> bool:
    """Whether the heartbeat is invalid whatever the group is."""
    if epoch < terms.AWAY or beat.lacks in ("group", "member", "instance", "rack"):
        return True
    if epoch == terms.AWAY:
        return beat.instance is None
    if epoch != 0:
        return False
    return beat.lacks == "timeout" or owned is None or bool(owned) or not (beat.topics or beat.regex)


def is_regex(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


def matches(regex: str, topic: str) -> bool:
    """An invalid expression matches nothing."""
    return is_regex(regex) and re.fullmatch(regex, topic) is not None


def remembered(state: State, memory: terms.Memory, answer: ops.Answered) -> State:
    """The client has received an answer."""
    return state._replace(clients=terms.with_memory(state.clients, memory.after(answer.epoch, answer.assignment)))
