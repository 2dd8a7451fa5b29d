"""Draws conversations with a consumer, using its model: the coordinator responds as for a group with other members, the
user polls, time passes; sometimes responses are lost, the user changes the subscription, processes die.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Final

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.assignment.model import membership
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.assignment.model.mixed_group import INCOMPATIBLE
from kipcheck.conformance.protocols.group.model import messages as group
from kipcheck.conformance.protocols.group.ops import Elapse
from kipcheck.conformance.protocols.member import ops
from kipcheck.conformance.protocols.member.model import possible
from kipcheck.conformance.protocols.member.model.client import OFFERED, Client
from kipcheck.conformance.protocols.member.model.consumer import CONSUMER, Consumer
from kipcheck.conformance.protocols.member.model.conversation_repair import GENERATIONS, possible_event
from kipcheck.conformance.protocols.member.model.rules import Rules, rules_of
from kipcheck.conformance.protocols.member.model.state import Pause, Phase, State
from kipcheck.conformance.protocols.member.strategies import events
from kipcheck.conformance.protocols.member.strategies.episodes import EPISODES, Episode, Move
from kipcheck.conformance.protocols.member.strategies.events import declared, known_errors, known_lists
from kipcheck.strategies.events import Conversations, Swarm

PROGRESS: Final = frozenset({"member-open", "member-subscribe", "member-poll", "member-told", "member-elapse"})
BACK_OFF, HEARTBEAT, SESSION, LONG = events.ELAPSES[:4]
FORMER: Final = ("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID")
"""Errors that make the answers behind them answers to a former generation."""
UNPOLLED: Final = (HEARTBEAT, SESSION, LONG, LONG)
"""Waits of a user who does not poll for a long time."""
EPISODIC: Final = 0.4
"""The share of conversations that tend towards some situation."""
USUAL: Final = 3
"""The first errors of a list, which are drawn more often."""
SUBSCRIPTIONS: Final = (("t",), ("t", "u"), ("u",))


@dataclass(frozen=True, slots=True)
class Profile:
    """The participants in a conversation, and its likely faults."""

    assignors: tuple[str, ...]
    protocol: str | None
    """For members of the draft."""
    instance: str | None
    errors: float
    """The share of responses with errors."""
    leads: float
    """The share of rounds in which the consumer is the leader."""
    stays: float
    """The share of its partitions that it keeps."""
    late: bool
    """Whether heartbeats are answered after the next join is sent."""
    absent: bool
    """Whether the user stops polling once the consumer has nothing to do."""
    restless: float
    """The share of events that make no progress."""
    episode: Episode | None
    """The situation that the conversation tends towards."""


def draw_profile(random: Random, rules: Rules) -> Profile:
    lists = known_lists(rules)
    incremental = [each for each in lists if len(each) == 1 and membership.COOPERATIVE in OFFERED[each[0]].supports]
    known = [each for each in EPISODES if rules.static or not each.static]
    episode = random.choice(known) if random.random() < EPISODIC else None
    static = rules.static and (random.random() < 0.3 or (episode is not None and episode.static))
    keeps = incremental and (random.random() < 0.4 or (episode is not None and episode.cooperative))
    return Profile(
        random.choice(incremental) if keeps else random.choice(lists),
        random.choice((None, membership.EAGER, membership.COOPERATIVE, membership.COOPERATIVE))
        if rules.draft
        else None,
        events.INSTANCE if static else None,
        random.choice((0.0, 0.15, 0.4)),
        random.choice((0.0, 0.3, 0.8)),
        random.choice((0.3, 0.7, 1.0)),
        random.random() < 0.4,
        random.random() < 0.2 and episode is None,
        random.choice((0.2, 0.5, 1.0)),
        episode,
    )


@dataclass(frozen=True, slots=True)
class MemberView:
    """A consumer's state, and the events that may come next."""

    rules: Rules
    profile: Profile
    random: Random
    scene: possible.Scene
    consumer: Consumer

    @property
    def state(self) -> State:
        return self.scene.seat.state

    @property
    def situation(self) -> possible.Situation:
        return self.scene.situation

    def moves(self) -> Iterator[Move]:
        state, wants_poll, blocked = self.state, self.consumer.wants_poll(self.state), self.situation.commits
        beating = self.consumer.is_beating(state)
        if not blocked:
            usual = 12 if wants_poll else 1 if state.pause is Pause.NO else 2
            yield 0.2 if self.is_absent else usual, "member-poll", ops.Poll
        if self.situation.pending:
            asked = self.situation.pending[0].request
            yield self.weight(asked), ops.ANSWER_VERB, lambda: ops.AnswerReceived(self.answer(asked))
        if state.pause is not Pause.NO:
            yield 12, "member-elapse", lambda: Elapse(BACK_OFF)
        if beating and state.beat_as is None:
            # A heartbeat behind a SyncGroup is answered after it: the error may be of an older generation.
            behind = self.profile.late and state.phase is Phase.COMPLETING
            yield 12 if behind else 4, "member-elapse", lambda: Elapse(HEARTBEAT)
        if self.is_absent:
            yield 4, "member-elapse", lambda: Elapse(self.random.choice(UNPOLLED))
        if self.profile.episode is not None:
            yield from self.profile.episode.moves(self.scene)
        if not wants_poll and not self.is_absent and self.random.random() < self.profile.restless:
            yield from self.diversions(blocked)

    @property
    def is_absent(self) -> bool:
        """Whether the user does not poll, until max.poll.interval.ms has passed."""
        state = self.state
        idle = self.consumer.is_beating(state) and state.result is None and bool(state.owned)
        return self.profile.absent and idle and not self.situation.commits

    def weight(self, asked: ops.Request) -> float:
        """That of the answer to the oldest request, behind which others may be pending."""
        match asked:
            case group.Join() | group.Sync():
                return 12 if self.state.pause is not Pause.SEARCH else 1
            case group.Heartbeat() if len(self.situation.pending) == 1:
                return 0.5 if self.profile.late else 5
            case group.Leave() if len(self.situation.pending) == 1:
                return 2
        return 5

    def diversions(self, blocked: bool) -> Iterator[Move]:
        """``blocked``: a blocking call of the user lasts."""
        state = self.state
        yield 0.5, "member-elapse", lambda: Elapse(self.random.choice(events.ELAPSES))
        yield 3 if state.commit_as is not None else 1, "member-disconnected", ops.Disconnected
        yield 0.5, "member-metadata", lambda: ops.Metadata(self.cluster())
        if blocked:
            return
        yield 0.6, "member-subscribe", lambda: ops.Subscribe(self.random.choice(SUBSCRIPTIONS))
        yield 3 if state.phase is Phase.STABLE else 1, "member-commit", self.commit
        yield 0.5, "member-unsubscribe", ops.Unsubscribe
        joins = state.phase in (Phase.PREPARING, Phase.COMPLETING)
        yield 2 if joins and state.given else 0.5, "member-close", ops.Close
        yield 0.1, "member-open", self.open

    def answer(self, asked: ops.Request) -> ops.Answer:
        match asked:
            case group.Join():
                return self.joined(asked)
            case group.Sync():
                return self.synced(asked)
            case group.Heartbeat():
                return self.beat(asked)
            case group.Leave():
                return group.Left(0, self.error(asked, events.LEAVE_ERRORS, 2))
            case group.Commit():
                return group.Committed(0, self.error(asked, events.COMMIT_ERRORS, 3))

    def beat(self, asked: group.Heartbeat) -> group.Beat:
        """In half of the cases the group rebalances, not while the user does not poll."""
        if self.is_absent and self.random.random() < 0.9:
            return group.Beat(0, group.Error.NONE)
        error = self.error(asked, events.BEAT_ERRORS, 2)
        calls = error is group.Error.NONE and self.state.phase is Phase.STABLE and self.random.random() < 0.5
        return group.Beat(0, group.Error.REBALANCE_IN_PROGRESS if calls else error)

    def open(self) -> ops.Open:
        profile = self.profile
        topics = tuple((each.name, each.partitions) for each in self.cluster())
        rack = events.RACK if self.rules.subscription >= 3 and self.random.random() < 0.2 else None
        # Assignors without a common protocol are refused, each time.
        other = self.random.random() < 0.3
        assignors = self.random.choice(known_lists(self.rules)) if other else profile.assignors
        return ops.Open(assignors, topics, profile.instance, rack, profile.protocol)

    def cluster(self) -> tuple[Topic, ...]:
        return tuple(Topic(name, self.random.choice(events.SIZES)) for name in events.TOPICS)

    def commit(self) -> ops.CommitOffsets:
        partition = self.random.choice(self.state.owned or (("t", 0),))
        return ops.CommitOffsets(((*partition, self.random.randint(0, 9)),))

    def error(self, asked: ops.Request, errors: tuple[str, ...], times: float = 1) -> group.Error:
        """One of the errors that the request can have, or none."""
        if self.random.random() >= self.profile.errors * times:
            return group.Error.NONE
        able = [each for each in known_errors(errors, self.rules) if possible.can_have(asked, group.Error[each])]
        known = [each for each in able if possible.is_remembered(self.situation, asked, group.Error[each])]
        if len(self.situation.pending) > 1 and self.random.random() < 0.5:
            known = [each for each in known if each in FORMER] or known
        return group.Error[self.random.choice(known[:USUAL] if self.random.random() < 0.5 else known)]

    # Answers

    def joined(self, asked: group.Join) -> group.Joined:
        random, me = self.random, asked.member
        error = self.error(asked, events.JOIN_ERRORS)
        if error is group.Error.MEMBER_ID_REQUIRED or (
            possible.can_have(asked, group.Error.MEMBER_ID_REQUIRED) and random.random() < 0.5
        ):
            return group.Joined(0, group.Error.MEMBER_ID_REQUIRED, member=random.choice(events.ME))
        if error is not group.Error.NONE:
            return group.Joined(0, error)
        me = me or random.choice(events.ME)
        leads = random.random() < self.profile.leads
        protocol = random.choice([name for name, _ in asked.protocols])
        oldest, newest = possible.oldest_generation(self.situation, asked), self.situation.generation + 1
        return group.Joined(
            0,
            group.Error.NONE,
            min(random.choice((oldest, newest)), GENERATIONS),
            CONSUMER if self.rules.join >= 7 else None,
            protocol,
            me if leads else events.OTHERS[0],
            me,
            ((me, asked.instance, dict(asked.protocols)[protocol]), *self.others()) if leads else (),
            self.rules.join >= 9 and leads and asked.instance is not None and random.random() < 0.5,
        )

    def others(self) -> Iterator[tuple[str, str | None, group.Blob]]:
        for other in events.OTHERS[: self.random.choice((0, 1, 1, 2))]:
            version = self.random.choice((0, self.rules.subscription)) if self.rules.draft else self.rules.subscription
            owned = self.some(0.3) if version else ()
            generation = self.state.identity.generation if version >= 2 else group.NO_GENERATION
            yield other, None, membership.Subscription(self.random.choice(SUBSCRIPTIONS), version, owned, generation)

    def synced(self, asked: group.Sync) -> group.Synced:
        error = self.error(asked, events.SYNC_ERRORS)
        if error is not group.Error.NONE:
            return group.Synced(0, error)
        own = dict(asked.assignments).get(asked.member, group.EMPTY) if asked.assignments else self.assignment()
        if self.rules.sync < 5:
            return group.Synced(0, group.Error.NONE, assignment=own)
        return group.Synced(0, group.Error.NONE, CONSUMER, asked.protocol, own)

    def assignment(self) -> group.Blob:
        chance = self.random.random()
        if self.rules.draft and chance < 0.3:
            return membership.Assigned(error=INCOMPATIBLE)
        if chance > 0.97:
            return group.EMPTY
        kept = {each for each in self.state.owned if self.random.random() < self.profile.stays}
        return membership.Assigned(tuple(sorted({*kept, *self.some(0.5)})))

    def some(self, share: float) -> membership.Partitions:
        """Partitions of the topics that it subscribes to, and rarely of others."""
        topics = events.TOPICS if self.random.random() < 0.05 else self.state.topics
        there = ((each.name, number) for each in self.state.topics_known for number in range(each.partitions))
        return tuple(each for each in there if each[0] in topics and self.random.random() < share)


def likely(client: Client, rules: Rules) -> Callable[[possible.Scene, Swarm, Random], Step | None]:
    def next_step(scene: possible.Scene, swarm: Swarm, random: Random) -> Step | None:
        profile: Profile = swarm.traits
        seat = scene.seat
        if seat.opened is None or seat.state.phase is Phase.CLOSED:
            view = MemberView(rules, profile, random, scene, client.consumer(ops.Open()))
            return ops.OPERATIONS.step_of(view.open())
        view = MemberView(rules, profile, random, scene, client.consumer(seat.opened))
        if not seat.state.topics and not scene.situation.commits:
            return ops.OPERATIONS.step_of(ops.Subscribe(random.choice(SUBSCRIPTIONS)))
        verbs = {*swarm.verbs, *(profile.episode.verbs if profile.episode else ())}
        moves = [(weight, make) for weight, verb, make in view.moves() if verb in verbs]
        (move,) = random.choices([make for _, make in moves], [weight for weight, _ in moves])
        return ops.OPERATIONS.step_of(move())

    return next_step


@cache
def conversations_of(rules: Rules) -> Conversations[possible.Scene, ops.Event]:
    client = Client(rules)
    stage = possible.Stage(client)
    return Conversations(
        stage,
        ops.OPERATIONS.step_of,
        ops.OPERATIONS.event_of,
        declared(rules),
        PROGRESS,
        max_steps=40,
        usual_steps=12,
        likely=likely(client, rules),
        traits=lambda random: draw_profile(random, rules),
        possible=lambda scene, event: possible_event(stage, scene, event),
        enabled_shares=(1.0, 1.0, 0.97, 0.9),
        near_shares=(0.0, 0.05, 0.2),
    )


def conversations(edition_name: str) -> Conversations[possible.Scene, ops.Event]:
    """Errors: LookupError where the edition specifies no consumer."""
    rules = rules_of(edition(edition_name))
    if rules is None:
        raise LookupError(f"edition {edition_name} specifies no consumer")
    return conversations_of(rules)
