"""The conversions of a group between its classic and its consumer form.

Source: ``ConsumerGroup.fromClassicGroup`` and ``ClassicGroup.fromConsumerGroup`` of the releases from 4.0 on.
"""

from collections.abc import Collection
from typing import Final

from kipcheck.conformance.machines.clock import Clock
from kipcheck.conformance.protocols.consumer_group import model as consumer
from kipcheck.conformance.protocols.consumer_group.model import ConsumerGroup
from kipcheck.conformance.protocols.consumer_group.ops import REBALANCE_MS
from kipcheck.conformance.protocols.consumer_group.rules import CURRENT, DEFAULT, Config, Rules
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.answers import DEFAULT as CLASSIC_DEFAULT, Config as ClassicConfig
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.messages import Phase, Timer
from kipcheck.conformance.protocols.group.model.rules import Rules as ClassicRules, owed_rules
from kipcheck.conformance.protocols.group.model.service import Service
from kipcheck.conformance.protocols.group.model.state import Log, Member, State as ClassicState, arm_session
from kipcheck.conformance.protocols.migration.metadata import metadata_of, partitions_of, printed
from kipcheck.conformance.protocols.migration.ops import SESSION_MS, Received
from kipcheck.conformance.protocols.migration.running_sessions import RunningSessions
from kipcheck.conformance.protocols.migration.state import ClassicMember, State, with_client

UPGRADES: Final = ("bidirectional", "upgrade")
DOWNGRADES: Final = ("bidirectional", "downgrade")
DISABLED: Final = "disabled"
REBALANCE_IN_PROGRESS: Final = "REBALANCE_IN_PROGRESS"
UNKNOWN_SERVER_ERROR: Final = "UNKNOWN_SERVER_ERROR"


class Conversions:
    fails_at_first: bool = False
    """A consumer that joins a group in its first join phase gets UNKNOWN_SERVER_ERROR, as in all releases."""
    may_count_successors: bool = False
    """A full group refuses the successor of a static member, in releases that do."""

    def __init__(
        self,
        rules: Rules = CURRENT,
        config: Config = DEFAULT,
        classic: ClassicRules | None = None,
        classic_config: ClassicConfig = CLASSIC_DEFAULT,
    ) -> None:
        self.rules = rules
        self.config = config
        self.consumers = ConsumerGroup(rules=rules, config=config)
        self.consumers.counts_successors = self.may_count_successors and rules.counts_successors
        made = RunningSessions if self.fails_at_first else Coordinator
        self.coordinator = made(classic or owed_rules(), classic_config)
        self.service: Service[ClassicState] = Service(self.coordinator)

    def delivered(self, state: State, request: int, answer: Received, fresh: str = "") -> State:
        client = state.asking(request)
        return with_client(state, client._replace(answer=answer, fresh=fresh))

    # To a consumer group

    def may_upgrade(self, state: State) -> bool:
        """Whether a consumer that joins may change the form of the classic group."""
        if state.classic.phase in (Phase.EMPTY, Phase.DEAD):
            return True
        return self.config.policy in UPGRADES and len(state.classic.members) <= self.config.max_size

    def upgraded(self, state: State) -> tuple[State, str | None]:
        """The classic group as a consumer group; and the error, if it cannot be one.

        Members with a parked request are asked to join again in any case. In its first join phase a group has no
        protocol, and its members have no assignment. Ids that no client has joined with are forgotten.
        """
        former = state.classic
        if former.phase in (Phase.EMPTY, Phase.DEAD):
            return state._replace(is_consumer=True, classic=ClassicState(), clock=self.stopped(state)), None
        state = self.interrupted(state)
        if former.protocol is None and former.members and self.fails_at_first:
            return state, UNKNOWN_SERVER_ERROR
        generation = self.first_epoch(former)
        members = tuple(sorted(self.converted(each, former.protocol, generation) for each in former.members))
        group = consumer.State(
            exists=True, group_epoch=generation, target_epoch=generation, members=members,
            target=tuple((each.id, each.assigned) for each in members), clients=state.group.clients,
        )  # fmt: skip
        classic = tuple(sorted(ClassicMember(each.id, _protocols(each)) for each in former.members))
        return State(
            True,
            group,
            classic,
            clock=self.stopped(state),
            clients=state.clients,
            requests=state.requests,
            offsets=state.offsets,
        ), None

    def first_epoch(self, former: ClassicState) -> int:
        """Of the consumer group that a classic group becomes."""
        return former.generation

    def stopped(self, state: State) -> Clock[Timer]:
        return Clock(state.clock.now_ms)

    def converted(self, member: Member, protocol: str | None, generation: int) -> consumer.Member:
        topics, _ = metadata_of(str(member.metadata(protocol or member.protocols[0][0])))
        assigned = partitions_of(str(member.assignment))
        return consumer.Member(
            member.id, topics, epoch=generation, previous=generation, assigned=assigned, instance=member.instance
        )

    def interrupted(self, state: State) -> State:
        """Parked requests are answered: their members have to join again."""
        members = []
        for each in state.classic.members:
            for parked in (each.join, each.sync):
                if parked is not None:
                    state = self.delivered(state, parked.to, Received("", REBALANCE_IN_PROGRESS), each.id)
            members.append(each._replace(join=None, sync=None))
        return state._replace(classic=state.classic._replace(members=tuple(members)))

    # To a classic group

    def may_downgrade(self, state: State, leaving: str) -> bool:
        """Whether the group is a classic one after this member is gone: only others that use that protocol are left."""
        rest = [each.id for each in state.group.members if each.id != leaving]
        return bool(rest) and self.may_be_classic(state, leaving, rest, len(rest))

    def may_be_classic(self, state: State, without: str, rest: Collection[str], size: int) -> bool:
        """Whether the group is a classic one without its member ``without``: that uses KIP-848's protocol, the rest do
        not. ``size``: the number of members that it would have."""
        if self.config.policy not in DOWNGRADES or size > self.coordinator.config.max_size:
            return False
        if state.member(without) is not None:
            return False
        return all(state.member(each) is not None for each in rest)

    def downgraded(self, state: State, leaving: str) -> State:
        """The group as a classic one without a member, in a new join phase."""
        others = tuple(each for each in state.group.members if each.id != leaving)
        return self.as_classic(state._replace(group=state.group._replace(members=others)), rebalances=True)

    def as_classic(self, state: State, rebalances: bool) -> State:
        """The group, whose members all use the classic protocol, as a classic one, in a new join phase or stable."""
        group = state.group
        made = [
            Member(
                each.id, each.instance, SESSION_MS, REBALANCE_MS, known.protocols,
                assignment=printed(group.target_of(each.id)),
            )
            for each in group.members if (known := state.member(each.id)) is not None
        ]  # fmt: skip
        classic = ClassicState(
            phase=Phase.STABLE, generation=self.first_generation(group), protocol_type="consumer", leader=made[0].id,
            members=tuple(made),
        )  # fmt: skip
        classic = classic._replace(protocol=self.coordinator.elected_protocol(classic))
        classic = classic._replace(log=Log(self.coordinator.group_record(classic)))
        out: list[messages.Action] = [arm_session(each.id, each.session_ms) for each in made]
        classic = self.coordinator.prepare(classic, out) if rebalances else classic
        clock: Clock[Timer] = Clock(state.clock.now_ms)
        for action in out:
            if isinstance(action, messages.Arm):
                clock = clock.armed(action.timer, action.ms)
        begun = self.consumers.initial()._replace(clients=group.clients)
        return State(False, begun, (), classic, clock, state.clients, state.requests, state.offsets)

    def first_generation(self, group: consumer.State) -> int:
        """Of the classic group that a consumer group becomes, before a join phase of it ends."""
        return group.group_epoch


def _protocols(member: Member) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(blob)) for name, blob in member.protocols)
