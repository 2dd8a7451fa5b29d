"""A thread of a Streams instance: a consumer of its release, with StreamsPartitionAssignor as its only assignor."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, final

from kipcheck.conformance.core.files.releases_table import named
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.protocols.assignment.model.assignment import Assignment, Group, Topic
from kipcheck.conformance.protocols.assignment.model.membership import Assigned, Partitions, Subscription
from kipcheck.conformance.protocols.group.model.messages import Blob, Joined
from kipcheck.conformance.protocols.member.model.consumer import Consumer, Reaction
from kipcheck.conformance.protocols.member.model.messages import Noted
from kipcheck.conformance.protocols.member.model.rules import Assignor, Config, Rules
from kipcheck.conformance.protocols.member.model.state import State, Step
from kipcheck.conformance.protocols.member.ops import Given, Lost, Revoked
from kipcheck.conformance.protocols.streams.model import members as model_members

OLDEST: Final = named("first-consumer")
"""Used for older consumers, too, which send heartbeats only in polls: the assignor behaves the same."""
DRAFTED: Final = named("kip-268-base")
"""The consumer of members of KIP-268's draft, which does not change the consumer."""
CODES: Final[Mapping[int, str]] = {
    1: "INCOMPLETE_SOURCE_TOPIC_METADATA", 3: "ASSIGNMENT_ERROR", 4: "SHUTDOWN_REQUESTED"
}  # fmt: skip


@final
@dataclass(frozen=True, slots=True)
class Adopted:
    """An assignment was applied."""

    generation: int
    partitions: Partitions
    before: int
    """The version used before it."""
    heard: model_members.AssignmentResult


@final
@dataclass(frozen=True, slots=True)
class Threw:
    """An exception ends the thread."""

    during: str
    """``subscribe``, ``lead``, ``assigned``, or ``error`` for an error code in the assignment."""
    kind: str
    why: str


class StreamsConsumer(Consumer):
    def __init__(self, binary: model_members.Binary, topics: tuple[Topic, ...]) -> None:
        """``topics``: all topics of the cluster. Errors: as ``Binary.initial``."""
        self.binary = binary
        assignor = Assignor(model_members.STREAM, tuple(binary.supports), _unused_assign)
        super().__init__(Config(rules_of(binary.settings.release), (assignor,), topics=topics))
        self.begins = binary.initial()

    def initial(self) -> State:
        return replace(super().initial(), memory=self.begins)

    def subscription(self, state: State, assignor: str) -> Subscription:
        _, data = self.binary.subscribe(memory_of(state), state.topics)
        return replace(super().subscription(state, assignor), user_data=data)

    def send_join(self, state: State) -> Step:
        try:
            memory, _ = self.binary.subscribe(memory_of(state), state.topics)
        except model_members.Fatal as thrown:
            return self.thread_failed(state, "subscribe", thrown)
        after, actions = super().send_join(state)
        return Transition(replace(after, memory=memory), actions)

    def led(self, state: State, answer: Joined) -> Step:
        members = tuple(
            model_members.Joining(
                id, subscription.topics, subscription.user_data, subscription.owned, subscription.generation
            )
            for id, _, subscription in answer.members
            if isinstance(subscription, Subscription)
        )
        try:
            memory, shares = self.binary.lead(memory_of(state), state.topics_known, members)
        except model_members.Fatal as thrown:
            return self.thread_failed(state, "lead", thrown)
        topics = frozenset(topic for each in members for topic in each.topics)
        state = replace(state, leads=True, watched=self.counted(state, topics), memory=memory)
        assignments = ((id, Assigned(share.partitions, user_data=share.data)) for id, share in sorted(shares.items()))
        return self.send_sync(state, tuple(assignments))

    def complete(self, state: State, blob: Blob) -> Step:
        after, actions = super().complete(state, blob)
        taken_up = any(isinstance(each, Given) for each in actions)
        if not taken_up or not isinstance(blob, Assigned):
            return Transition(after, actions)
        memory, generation = memory_of(state), state.identity.generation
        try:
            result = self.binary.assigned(memory, model_members.Share(blob.partitions, blob.user_data))
        except model_members.Fatal as thrown:
            return self.thread_failed(replace(state, result=None), "assigned", thrown)
        noted = Noted(Adopted(generation, blob.partitions, memory.used, result))
        after = replace(after, memory=result.memory)
        if result.error:
            subscription = model_members.Fatal(
                CODES.get(result.error, f"error code {result.error}"), "error code in the assignment"
            )
            after, ended = self.thread_failed(after, "error", subscription)
            return Transition(after, (*actions, noted, *ended))
        if result.rejoin.when == "again":
            # The thread unsubscribes and subscribes: it leaves the group, and joins as a new member.
            # Up to 2.3 no callback revokes its partitions.
            revocations = () if self.rules.incremental else (Revoked(after.owned),)
            left, leave_actions = self.leave(after)
            return Transition(left, (*actions, noted, *revocations, *leave_actions))
        return Transition(replace(after, rejoin=after.rejoin or result.rejoin.when == "now"), (*actions, noted))

    def lose(self, state: State) -> Step:
        """Losing partitions also closes their tasks."""
        lost = replace(memory_of(state), active=())
        return Transition(replace(state, owned=(), memory=lost), (Lost(state.owned),))

    def thread_failed(self, state: State, during: str, thrown: model_members.Fatal) -> Step:
        kind = model_members.ENDLESS if isinstance(thrown, model_members.Endless) else thrown.kind
        noted = Noted(Threw(during, kind, thrown.why))
        return Transition(self.failed(state, Reaction.RAISE, str(thrown)), (noted,))


def memory_of(state: State) -> model_members.Memory:
    assert isinstance(state.memory, model_members.Memory)
    return state.memory


def rules_of(release: str) -> Rules:
    """The consumer rules of an instance of this release; for a draft's member, those of its time."""
    if release == model_members.FUTURE:
        return Rules.of(NEWEST)
    try:
        return Rules.of(release)
    except ValueError:
        return Rules.of(OLDEST if release.startswith("0.10.0.") else DRAFTED)


def _unused_assign(group: Group) -> Assignment:
    raise NotImplementedError("Streams consumers assign through their binary")
