"""Members of the classic protocol in a consumer group: the coordinator assigns, and no member leads.

Source: ``GroupMetadataManager.classicGroupJoinToConsumerGroup`` and its neighbours of the releases from 4.0 on.
"""

from typing import Final

from kipcheck.conformance.protocols.consumer_group import model as consumer
from kipcheck.conformance.protocols.consumer_group.ops import Beat
from kipcheck.conformance.protocols.migration import ops
from kipcheck.conformance.protocols.migration.conversions import DISABLED, REBALANCE_IN_PROGRESS, Conversions
from kipcheck.conformance.protocols.migration.metadata import metadata
from kipcheck.conformance.protocols.migration.state import LEFT, ClassicMember, Client, State, with_member
from kipcheck.conformance.protocols.reconciled import model as reconciled, terms

ILLEGAL_GENERATION: Final = "ILLEGAL_GENERATION"
INCONSISTENT_GROUP_PROTOCOL: Final = "INCONSISTENT_GROUP_PROTOCOL"
MEMBER_ID_REQUIRED: Final = "MEMBER_ID_REQUIRED"


class ClassicMembers(Conversions):
    assigns_unreleased: bool = False
    """A static member that makes the group a classic one is assigned partitions that others still own, as in all
    releases."""

    def asked(self, state: State, client: Client, event: ops.Classic) -> State:
        """The state after a request to a consumer group."""
        number = state.client(client.name).asked
        if isinstance(event, ops.ClassicJoin):
            return self.joined(state, client, event, number)
        if isinstance(event, ops.ClassicRemove):
            return self.dismissed(state, event, number)
        error = self.stranger(state, client)
        member, known = state.group.member(client.id), state.member(client.id)
        if error is not None or member is None or known is None:
            return self.delivered(state, number, ops.Received("", error or terms.UNKNOWN_MEMBER_ID), _left(event))
        match event:
            case ops.ClassicSync():
                return self.synced(state, client.generation - event.behind, member, known, number)
            case ops.ClassicBeat():
                return self.beaten(state, client.generation - event.behind, member, known, number)
            case ops.ClassicLeave():
                group = self.consumers.without(state.group, member.id)
                left = state._replace(group=group, members=tuple(each for each in state.members if each != known))
                return self.delivered(left, number, ops.Received("", ops.NONE), LEFT)
            case _:
                raise ValueError("no request")

    def dismissed(self, state: State, remove: ops.ClassicRemove, number: int) -> State:
        """An operator removes the member of an instance, whichever protocol it uses."""
        holder = state.group.holder(remove.instance)
        if holder is None:
            return self.delivered(state, number, ops.Received("", terms.UNKNOWN_MEMBER_ID))
        return self.delivered(self.fenced(state, holder.id), number, ops.Received("", ops.NONE))

    def fenced(self, state: State, id: str) -> State:
        """The group without a member that was removed, silent or late."""
        if self.may_downgrade(state, id):
            return self.downgraded(state, id)
        members = tuple(each for each in state.members if each.id != id)
        return state._replace(group=self.consumers.without(state.group, id), members=members)

    def stranger(self, state: State, client: Client) -> str | None:
        """The error of a client that states an instance id and is not the member with it."""
        if client.instance is None:
            return None
        holder = state.group.holder(client.instance)
        if holder is None:
            return terms.UNKNOWN_MEMBER_ID
        return None if self.is_same(holder, client) else terms.FENCED_INSTANCE_ID

    def is_same(self, holder: consumer.Member, client: Client) -> bool:
        return holder.id == client.id

    # JoinGroup

    def joined(self, state: State, client: Client, join: ops.ClassicJoin, number: int) -> State:
        """A JoinGroup is answered at once."""
        id = client.id or f"{client.name}.{number}"
        error = self.join_fault(state, client, join)
        if error is not None:
            return self.delivered(state, number, ops.Received("", error), id)
        beat = Beat(id, terms.Says.JOIN, topics=join.topics, instance=join.instance)
        owned = client.given if join.owned == "told" else ()
        former = state.group.holder(join.instance)
        group = state.group if former is None or former.id == id else self.replaced(state.group, former, beat)
        old = group.member(id)
        group = self.without_regex(group, old, join)
        group = self.consumers.subscribed(group, beat)
        blob = metadata(join.topics, owned)
        known = ClassicMember(id, tuple((each, blob) for each in join.protocols), syncing_ms=0)
        changed = old is not None and (bool(old.regex) or {*old.topics} != {*join.topics})
        others = [each.id for each in state.group.members if former is None or each.id != former.id]
        if former is not None and self.may_be_classic(state, former.id, others, len(group.members)):
            return self.joined_last(with_member(state, known), group, id, owned, number)
        ids = {each.id for each in group.members}
        members = tuple(each for each in state.members if each.id in ids)
        if self.consumers.may_aim(group, is_first=False):
            group = self.consumers.aimed(group)
        before = group.member(id)
        assert before is not None
        after = self.reconciled(group, before, owned, changed)._replace(silent_ms=0)
        state = state._replace(group=reconciled.with_member(group, after), members=members)
        return self.delivered(with_member(state, known), number, self.join_answer(after), id)

    def join_fault(self, state: State, client: Client, join: ops.ClassicJoin) -> str | None:
        if self.rules.refuses_classic_members and self.config.policy == DISABLED:
            return INCONSISTENT_GROUP_PROTOCOL
        if self.consumers.is_full(state.group, client.id, join.instance):
            return terms.GROUP_MAX_SIZE_REACHED
        if not self.supports(state, join):
            return INCONSISTENT_GROUP_PROTOCOL
        if join.instance is None:
            return MEMBER_ID_REQUIRED if self.must_ask(client, join) else None
        holder = state.group.holder(join.instance)
        if not client.id:
            return terms.UNRELEASED_INSTANCE_ID if holder is not None and not self.may_replace(holder) else None
        if holder is None:
            return terms.UNKNOWN_MEMBER_ID
        return None if self.is_same(holder, client) else terms.FENCED_INSTANCE_ID

    def must_ask(self, client: Client, join: ops.ClassicJoin) -> bool:
        """Whether the client has to join with an id that the answer gives it."""
        return not client.id and join.sent_version >= ops.ASKING_VERSION

    def may_replace(self, holder: consumer.Member) -> bool:
        """Whether a client of the classic protocol may take over the instance of a member, which uses any protocol."""
        return True

    def replaced(self, group: consumer.State, former: consumer.Member, beat: Beat) -> consumer.State:
        """The group with a new member in the place of the former one with its instance id."""
        return self.consumers.replaced(group, beat)

    def without_regex(
        self, group: consumer.State, member: consumer.Member | None, join: ops.ClassicJoin
    ) -> consumer.State:
        """A client of the classic protocol has no regular expression, also where its predecessor had one."""
        if member is None or not member.regex or not self.rules.drops_expressions:
            return group
        group = reconciled.with_member(group, member._replace(regex=""))
        same = {*member.topics} == {*join.topics}
        return group._replace(group_epoch=self.consumers.bumped(group)) if same else group

    def joined_last(self, state: State, group: consumer.State, id: str, owned: terms.Partitions, number: int) -> State:
        """A static member has taken the place of the last one that used KIP-848's protocol: the group is a classic one.

        It is stable, unless its target assignment is old. Source: ``validateOnlineDowngradeWithReplacedMember``.
        """
        bumped = group.group_epoch > state.group.group_epoch
        rebalances = group.target_epoch < group.group_epoch if self.rules.rebalances_old_targets else bumped
        if bumped and not self.rules.rebalances_changed_successors:
            group, rebalances = self.consumers.aimed(group), False
        member = group.member(id)
        assert member is not None
        if not rebalances:
            member = self.consumers.reconciled(group, member, owned, False)
            group = reconciled.with_member(group, member)
            rebalances = not self.assigns_unreleased and self.is_unsettled(group)
        group = group._replace(group_epoch=state.group.group_epoch)
        ids = {each.id for each in group.members}
        members = tuple(each for each in state.members if each.id in ids)
        state = self.as_classic(state._replace(group=group, members=members), rebalances)
        return self.delivered(state, number, self.join_answer(member), id)

    def is_unsettled(self, group: consumer.State) -> bool:
        """Whether a member has not yet the assignment that it should have."""
        return any(
            each.epoch != group.group_epoch or each.pending or {*each.assigned} != {*group.target_of(each.id)}
            for each in group.members
        )

    def reconciled(
        self, group: consumer.State, member: consumer.Member, owned: terms.Partitions, changed: bool
    ) -> consumer.Member:
        return self.consumers.reconciled(group, member, owned, changed)

    def join_answer(self, member: consumer.Member) -> ops.Received:
        return ops.Received("", ops.NONE, member.epoch)

    def supports(self, state: State, join: ops.ClassicJoin) -> bool:
        """Whether all members of the classic protocol have an assignor of the join."""
        return any(all(name in dict(each.protocols) for each in state.members) for name in join.protocols)

    # SyncGroup and Heartbeat

    def synced(
        self, state: State, generation: int, member: consumer.Member, known: ClassicMember, number: int
    ) -> State:
        if generation != member.epoch:
            return self.delivered(state, number, ops.Received("", ILLEGAL_GENERATION))
        if self.newest_epoch(state) > member.epoch and not member.pending:
            return self.delivered(self.told_to_join(state, known), number, ops.Received("", REBALANCE_IN_PROGRESS))
        state = with_member(self.heard(state, member), known._replace(syncing_ms=None))
        return self.delivered(state, number, ops.Received("", ops.NONE, assignment=member.assigned))

    def beaten(
        self, state: State, generation: int, member: consumer.Member, known: ClassicMember, number: int
    ) -> State:
        if self.is_stale(member, generation):
            return self.delivered(state, number, ops.Received("", ILLEGAL_GENERATION))
        state = self.heard(state, member)
        if self.must_rejoin(state, member):
            return self.delivered(self.told_to_join(state, known), number, ops.Received("", REBALANCE_IN_PROGRESS))
        return self.delivered(state, number, ops.Received("", ops.NONE))

    def is_stale(self, member: consumer.Member, generation: int) -> bool:
        return generation != member.epoch

    def must_rejoin(self, state: State, member: consumer.Member) -> bool:
        """Whether a heartbeat of the classic protocol asks the member to join again: for another assignment, to give up
        partitions, or for one that has become free."""
        if member.epoch < self.newest_epoch(state) or member.pending:
            return True
        return member.waiting and not self.awaits_others(state, member)

    def newest_epoch(self, state: State) -> int:
        """Members with an older one have to join again: that of the target assignment, if it may be later than the
        group's; else that of the group."""
        return state.group.target_epoch if self.rules.delays_targets else state.group.group_epoch

    def awaits_others(self, state: State, member: consumer.Member) -> bool:
        missing = [each for each in state.group.target_of(member.id) if each not in member.assigned]
        return any(not self.consumers.is_free(state.group, member, each) for each in missing)

    def told_to_join(self, state: State, known: ClassicMember) -> State:
        return with_member(state, known._replace(joining_ms=known.joining_ms or 0))

    def heard(self, state: State, member: consumer.Member) -> State:
        return state._replace(group=reconciled.with_member(state.group, member._replace(silent_ms=0)))


def _left(event: ops.Classic) -> str:
    return LEFT if isinstance(event, ops.ClassicLeave) else ""
