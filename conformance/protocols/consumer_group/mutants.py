"""Coordinators of KIP-848 groups with one planted defect each. Least cases are in shorthand."""

from collections.abc import Iterator
from dataclasses import replace

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.consumer_group.model import ConsumerGroup, Member, State
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS, Action, Answered, Beat
from kipcheck.conformance.protocols.consumer_group.rules import Rules
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutants_of
from kipcheck.conformance.protocols.reconciled import mutants as defects, terms
from kipcheck.conformance.protocols.reconciled.log_ops import Offset, Reload
from kipcheck.conformance.protocols.reconciled.terms import Says


class MutantCoordinator(MachineMutant, ConsumerGroup):
    """The reference machine as an adapter, with overridable decisions. It computes target assignments at once."""

    operations = OPERATIONS
    rules = Rules.owed(since("kip-848"))


ownership = mutants_of("consumer-group/ownership", OPERATIONS.machine)
epochs = mutants_of("consumer-group/epochs", OPERATIONS.machine)
records = mutants_of("consumer-group/records", OPERATIONS.machine)


AFTER_ROUNDS = f"join a on t none; join b on t none; pass 1000; {4 * 'beat a told; beat b told; '}beat a told"
"""Four rounds are allowed, and one more heartbeat shows that they were not enough."""


REVOKING = "join a on t,u none; join b on t,u none; beat a told"
"""The first member is asked to give up partitions, and still owns them."""


# Ownership


@ownership("one-owner", "join a on t none; join b on t none; beat a told; beat b told")
class GivesWhatIsPending(defects.FreesWhatIsPending, MutantCoordinator):
    """A partition that a member has to revoke counts as free at once."""


@ownership("one-owner", "join a on t none; join b on t none")
class GivesWhatIsOwned(defects.FreesWhatIsAssigned, MutantCoordinator):
    """A partition goes to its new owner before the old one is asked to revoke it."""


@ownership("one-owner", "beat a on t,u told; beat a on t told; beat a; beat b on t,u told")
class TakesSilenceForConsent(MutantCoordinator):
    """A heartbeat without owned partitions acknowledges the revocation."""

    def has_revoked(self, member: Member, owned: terms.Partitions | None) -> bool:
        return owned is None or super().has_revoked(member, owned)


@ownership("co-subscription", "beat a on t,u told; join b on t none; beat a told; beat a told; beat b told")
class GivesAnyTopic(MutantCoordinator):
    """Partitions are assigned without regard to subscriptions."""

    rules = replace(MutantCoordinator.rules, drops_unsubscribed=False)

    def may_have(self, topics: frozenset[str], partition: Partition) -> bool:
        return True


@ownership("co-subscription", f"{REVOKING}; beat a on u before")
class KeepsTopicsWhileRevoking(MutantCoordinator):
    """A member that has partitions to revoke keeps those of a topic that it gives up."""

    rules = replace(MutantCoordinator.rules, drops_unsubscribed=False)


@ownership("settles", AFTER_ROUNDS)
class ForgetsWhoWaits(MutantCoordinator):
    """A member that waits for a partition counts as settled."""

    def computed(self, state: State, member: Member, owned: terms.Partitions | None, epoch: int) -> Member:
        return super().computed(state, member, owned, epoch)._replace(waiting=False)


@ownership("settles", f"beat a on t told; beat b on t told; leave a told; pass 1000{5 * '; beat b told'}")
class KeepsTheTarget(MutantCoordinator):
    """When a member leaves, its partitions stay reserved for it."""

    def without(self, state: State, id: str) -> State:
        return super().without(state, id)._replace(group_epoch=state.group_epoch)


@ownership("settles", AFTER_ROUNDS)
class WaitsForSilence(MutantCoordinator):
    """A revocation is accepted only when the member owns no partition at all."""

    def has_revoked(self, member: Member, owned: terms.Partitions | None) -> bool:
        return owned == ()


# Epochs


@epochs("epochs-rise", "beat a on t told; beat b on t told; leave b told; beat a told")
class CountsDown(MutantCoordinator):
    """A leaving member resets the group epoch."""

    def without(self, state: State, id: str) -> State:
        after = super().without(state, id)
        return after._replace(group_epoch=0, target_epoch=-1) if after.members else after


@epochs("keeps-epoch-to-revoke", f"{REVOKING}; join c on t,u none; beat a told")
class CountsRevocations(MutantCoordinator):
    """A member that has revoked what it should, and has to revoke more, gets the next epoch."""

    rules = replace(MutantCoordinator.rules, counts_revocations=True)


@epochs("group-epoch-rises", "beat a on t told; beat a on t,u told; beat b on t told")
class BeginsAgain(MutantCoordinator):
    """A member that joins gets epoch 1."""

    def beat(self, state: State, beat: Beat) -> Transition[State, Action]:
        after, actions = super().beat(state, beat)
        known = state.member(beat.client) is not None
        changed = tuple(
            Answered(each.client, 1, each.assignment) if isinstance(each, Answered) and not known else each
            for each in actions
        )
        return Transition(after, changed)


@epochs("answers-leaving", "beat a on t told; beat a-2 told")
class AnswersTheGroupsEpoch(MutantCoordinator):
    """A member that leaves gets the epoch of the remaining group."""

    def beat(self, state: State, beat: Beat) -> Transition[State, Action]:
        after, actions = super().beat(state, beat)
        changed = tuple(
            Answered(each.client, after.group_epoch, None) if isinstance(each, Answered) and each.epoch < 0 else each
            for each in actions
        )
        return Transition(after, changed)


@epochs("answers-leaving", "beat a on t told as i; away a told as i")
class LeavesForGood(MutantCoordinator):
    """A member that leaves for a while gets the answer of one that leaves for good."""

    def leaving_epoch(self, epoch: int) -> int:
        return terms.LEAVING


@epochs("stale-epoch-fenced", "beat a on t told; beat a+1 told")
class BelievesNewerEpochs(defects.TakesNewerEpochs, MutantCoordinator):
    """Only epochs that are too old are fenced, not those that are too new."""


@epochs("stale-epoch-fenced", "beat a on t told; beat b on t told; leave a told; beat b told; beat b-1")
class BelievesOldEpochs(MutantCoordinator):
    """The previous epoch is accepted whatever the member owns."""

    def is_stale(self, member: Member, epoch: int, owned: terms.Partitions | None) -> bool:
        return epoch not in (member.epoch, member.previous)


@epochs("stale-epoch-fenced", "beat a+1 told")
class BelievesStrangers(MutantCoordinator):
    """A heartbeat of a member that never joined is accepted."""

    def beat(self, state: State, beat: Beat) -> Transition[State, Action]:
        after, actions = super().beat(state, beat)
        strange = beat.says is Says.STAY and state.member(beat.client) is None
        return Transition(after, (Answered(beat.client, 1, None),) if strange else actions)


@epochs("repetition-taken", "beat a on t told; beat a on t,u told; beat a-1 told")
class KnowsNoRepetition(MutantCoordinator):
    """A member that repeats its previous epoch after a lost response is fenced."""

    def is_stale(self, member: Member, epoch: int, owned: terms.Partitions | None) -> bool:
        return epoch != member.epoch


@epochs("names-the-fault", "beat a told")
class JoinsWithoutTopics(MutantCoordinator):
    """A member may join without a subscription."""

    def invalid(self, beat: Beat, epoch: int, owned: terms.Partitions | None) -> str | None:
        return super().invalid(replace(beat, topics=beat.topics or ("t",)), epoch, owned)


@epochs("names-the-fault", "leave a told")
class FencesWithoutAGroup(MutantCoordinator):
    """A heartbeat to a group that does not exist is fenced."""

    def fault(self, state: State, beat: Beat, epoch: int, owned: terms.Partitions | None) -> str | None:
        error = super().fault(state, beat, epoch, owned)
        return terms.FENCED_MEMBER_EPOCH if error == terms.GROUP_ID_NOT_FOUND else error


@epochs("names-the-fault", "beat a on t told by custom")
class TakesAnyAssignor(MutantCoordinator):
    """A member may ask for an assignor that the broker does not have."""

    def invalid(self, beat: Beat, epoch: int, owned: terms.Partitions | None) -> str | None:
        return super().invalid(replace(beat, assignor=None), epoch, owned)


@epochs("names-the-fault", "beat a told like [")
class TakesAnyRegex(MutantCoordinator):
    """A member may subscribe to an invalid regular expression."""

    def unfit(self, state: State, beat: Beat, epoch: int, owned: terms.Partitions | None) -> str | None:
        return None


@epochs("names-the-fault", "beat a on t told without group")
class TakesEmptyIds(MutantCoordinator):
    """A heartbeat with an empty id is accepted."""

    def invalid(self, beat: Beat, epoch: int, owned: terms.Partitions | None) -> str | None:
        return super().invalid(replace(beat, lacks=None), epoch, owned)


@epochs("silent-are-fenced", "beat a on t told; pass 45000; beat a told")
class NeverExpires(defects.EndsNoSession, MutantCoordinator):
    """The session of a member never ends."""


@epochs("silent-are-fenced", "beat a on t told; pass 1000; beat a told")
class ExpiresAtOnce(MutantCoordinator):
    """A member is removed after one second of silence."""

    def is_late(self, member: Member) -> bool:
        return member.silent_ms >= 1_000


@epochs("late-revokers-are-fenced", "beat a on t told; beat b on t told; beat a told; pass 30000; beat a told")
class WaitsForEver(MutantCoordinator):
    """A member that does not revoke its partitions in time is not fenced."""

    def is_late(self, member: Member) -> bool:
        return super().is_late(member._replace(revoking_ms=0))


# Static members and regular expressions


@epochs("one-holder", "beat a on t told as i; beat b on t told as i")
class ReplacesLiveInstances(defects.ReleasesEveryInstance, MutantCoordinator):
    """A process that joins as an instance replaces the one that is there."""


@epochs("one-holder", "beat a on t told as i; beat b on t told; beat b told as i")
class FencesNoInstance(MutantCoordinator):
    """A member may use the instance id of another one."""

    def fault(self, state: State, beat: Beat, epoch: int, owned: terms.Partitions | None) -> str | None:
        other = state.holder(beat.instance)
        if epoch > 0 and other is not None and other.id != beat.client:
            return super().fault(state, replace(beat, instance=None), epoch, owned)
        return super().fault(state, beat, epoch, owned)


@ownership("kept-while-away", "beat a on t told as i; away a told as i; beat b on t told")
class FreesWhatIsAway(MutantCoordinator):
    """No member owns the partitions of a member that left for a while."""

    def away(self, state: State, id: str) -> State:
        return self.without(super().away(state, id), id)


@ownership("gets-it-back", "beat a on t told as i; away a told as i; beat a on t told as i")
class ForgetsInstances(MutantCoordinator):
    """An instance that comes back begins with nothing."""

    def replaced(self, state: State, beat: Beat) -> State:
        holder = state.holder(beat.instance)
        away = holder.id if holder is not None and holder.epoch == terms.AWAY else None
        target = tuple(each for each in state.target if each[0] != away)
        return super().replaced(state._replace(target=target), beat)


@ownership("takeover-without-rebalance", ...)
class RebalancesForSuccessors(MutantCoordinator):
    """A process that takes the place of a static member counts as a new member."""

    def replaced(self, state: State, beat: Beat) -> State:
        after = super().replaced(state, beat)
        return after if state.holder(beat.instance) is None else after._replace(group_epoch=self.bumped(after))


@ownership("regex-is-followed", ...)
class IgnoresRegexes(MutantCoordinator):
    """A regular expression matches no topic."""

    def topics_of(self, state: State, member: Member) -> frozenset[str]:
        return super().topics_of(state, member._replace(regex=""))


@ownership("regex-matches-later", ...)
class ResolvesOnce(MutantCoordinator):
    """A regular expression is resolved once, and no topic that is created later counts."""

    def topics_of_expressions(self, state: State) -> tuple[str, ...]:
        return tuple(self.topics)


@epochs("follows-its-settings", "configure session 60000; join a on t none; pass 45000; beat a")
class HasNoGroupSettings(MutantCoordinator):
    """Sessions are as long as the setting of the broker, whatever that of the group is."""

    def session_of(self, member: Member) -> int:
        return self.config.session_ms


@epochs("admits-members", "join a on t none; join b on t none")
class AdmitsOneMember(MutantCoordinator):
    """A group with a member is full."""

    def is_full(self, state: State, id: str, instance: str | None) -> bool:
        return bool(state.members) and state.member(id) is None and state.holder(instance) is None


@epochs("admits-members", "join a on t none; beat a told")
class FencesCurrentEpochs(defects.FencesTheCurrentEpoch, MutantCoordinator):
    """A member is fenced when it sends the epoch that it has."""


# The log


@records("outlives-reloads", ...)
class ForgetsWhatIsAssigned(MutantCoordinator):
    """A coordinator that has read the log does not know the assignments of members."""

    def reloaded(self, state: State, reload: Reload) -> State:
        after = super().reloaded(state, reload)
        return after._replace(members=tuple(each._replace(assigned=()) for each in after.members))


@records("outlives-reloads", ...)
class ReadsNoChangingLog(MutantCoordinator):
    """A coordinator that reads a log while it is compacted has no members."""

    def reloaded(self, state: State, reload: Reload) -> State:
        after = super().reloaded(state, reload)
        return after._replace(members=()) if 0 < reload.since < reload.compacted else after


@records("commits-kept", ...)
class ForgetsLeaderEpochs(MutantCoordinator):
    """The log has no leader epochs of committed offsets."""

    def stored(self, row: Offset) -> Offset:
        return (*row[:3], -1, row[4])


@epochs("taken-back", "beat a on t told; beat a+1 told; join a on t none")
class FencesConsumersForGood(defects.FencesWhoComesBack, MutantCoordinator):
    """A member that was fenced, and joins again, is fenced again."""


@epochs("taken-back", "join a on t none as i; beat a+1 as i; join a on t none as i")
class RefusesTheInstanceOfAConsumer(defects.RefusesItsOwnInstance, MutantCoordinator):
    """A static member that was fenced, and joins again, is refused: it has its instance id itself."""


@ownership("rests", ...)
class RebalancesForFullHeartbeats(MutantCoordinator):
    """A heartbeat that names the topics raises the epoch of the group, although they are the same."""

    def subscribed(self, state: State, beat: Beat) -> State:
        after = super().subscribed(state, beat)
        again = state.member(beat.client) is not None and beat.topics is not None
        return after._replace(group_epoch=self.bumped(state)) if again else after


@ownership("sticky", ...)
class SharesOutAnew(MutantCoordinator):
    """Each target assignment goes to the members in another order."""

    def shares(self, state: State) -> Iterator[tuple[str, terms.Partitions]]:
        ids, parts = zip(*super().shares(state), strict=True)
        turn = state.group_epoch % len(ids)
        return zip(ids, parts[turn:] + parts[:turn], strict=True)


@epochs("revokers-have-time", ...)
class GivesNoTimeForPartitions(defects.GivesNoTimeToRevoke, MutantCoordinator):
    """A member that has to revoke partitions is removed one millisecond before its time is over."""


@epochs("silent-are-fenced", ...)
class EndsConsumersEarly(defects.EndsSessionsEarly, MutantCoordinator):
    """The session of a member ends one millisecond before its time."""


@epochs("silent-are-fenced", ...)
class RenewsRefusedConsumers(defects.RenewsRefusedSessions, MutantCoordinator):
    """A refused heartbeat renews the session of the member, too."""
