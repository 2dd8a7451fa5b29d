"""Coordinators of streams groups with one planted defect each. Least cases are in shorthand."""

from collections.abc import Iterator
from dataclasses import replace

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutants_of
from kipcheck.conformance.protocols.reconciled import mutants as defects, terms
from kipcheck.conformance.protocols.reconciled.log_ops import Offset, Reload
from kipcheck.conformance.protocols.reconciled.model import with_member
from kipcheck.conformance.protocols.reconciled.terms import Rejected
from kipcheck.conformance.protocols.streams_group import model, ops
from kipcheck.conformance.protocols.streams_group.invariants import DESCRIBE, EPOCHS, RECORDS, TASKS
from kipcheck.conformance.protocols.streams_group.state import Member, Owned, State
from kipcheck.conformance.protocols.streams_group.topology import REPARTITIONED, STATEFUL


class MutantCoordinator(MachineMutant, model.StreamsGroup):
    """The reference machine as an adapter, with overridable decisions."""

    operations = ops.OPERATIONS

    def __init__(self) -> None:
        model.StreamsGroup.__init__(self)
        MachineMutant.__init__(self)


tasks = mutants_of(TASKS, ops.OPERATIONS.machine)
epochs = mutants_of(EPOCHS, ops.OPERATIONS.machine)
described = mutants_of(DESCRIBE, ops.OPERATIONS.machine)
records = mutants_of(RECORDS, ops.OPERATIONS.machine)


# Tasks


@tasks("one-owner", ...)
class GivesRunningTasks(defects.FreesWhatIsAssigned, MutantCoordinator):
    """A task goes to its new owner before the old one is asked to revoke it."""


@tasks("revoked-first", ...)
class GivesTasksBeingRevoked(defects.FreesWhatIsPending, MutantCoordinator):
    """A task that a member has to revoke counts as free at once."""


@tasks("revoked-first", ...)
class TakesOmittedTasksForRevoked(MutantCoordinator):
    """A heartbeat without owned tasks confirms the revocation."""

    def has_revoked(self, member: Member, owned: Owned) -> bool:
        return owned.active is None or super().has_revoked(member, owned)


@tasks("known-tasks", ...)
class GivesOneTaskTooMany(MutantCoordinator):
    """The first subtopology has one task more than its topic has partitions."""

    def shares(self, state: State) -> Iterator[tuple[str, ops.Tasks]]:
        first = state.members[0].id
        found = self.sizes(state)
        extra = tuple((each, found[each]) for each in (state.topology or ())[:1] if each in found)
        return ((id, (*given, *extra) if id == first else given) for id, given in super().shares(state))


@tasks("joins-get-tasks", ...)
class AnswersOnlyChanges(MutantCoordinator):
    """The answer to a member that joins again has tasks only if they changed."""

    def _answered(self, state: State, memory: terms.Memory, answer: ops.Answered) -> Transition[State, ops.Action]:
        kept = memory.epoch > 0 and answer.tasks == memory.given
        return super()._answered(state, memory, replace(answer, tasks=None) if kept else answer)


@tasks("missing-topics-reported", ...)
class HidesMissingTopics(MutantCoordinator):
    """The status does not say that a source topic is missing."""

    def statuses(self, state: State, member: Member) -> tuple[str, ...]:
        return tuple(each for each in super().statuses(state, member) if each != model.MISSING_SOURCE_TOPICS)


@tasks("wrong-partitions-reported", ...)
class HidesWrongPartitions(MutantCoordinator):
    """The status does not say that a changelog has a wrong number of partitions."""

    def statuses(self, state: State, member: Member) -> tuple[str, ...]:
        return tuple(each for each in super().statuses(state, member) if each != model.INCORRECTLY_PARTITIONED_TOPICS)


@tasks("internal-topics-created", ...)
class HidesMissingInternalTopics(MutantCoordinator):
    """The status does not say that internal topics are missing."""

    def statuses(self, state: State, member: Member) -> tuple[str, ...]:
        return tuple(each for each in super().statuses(state, member) if each != model.MISSING_INTERNAL_TOPICS)


@tasks("internal-topics-created", ...)
class CreatesTopicsOfOnePartition(MutantCoordinator):
    """Internal topics are created with one partition."""

    def creates(self, missing: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
        return tuple((name, 1) for name, _ in missing)


@tasks("internal-topics-created", ...)
class CreatesNoRepartitionTopics(MutantCoordinator):
    """Only changelogs are created."""

    def creates(self, missing: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
        return tuple(each for each in missing if each[0] != REPARTITIONED)


@tasks("away-keeps-tasks", ...)
class ReleasesTasksOfTheAway(MutantCoordinator):
    """The tasks of a static member that leaves for a while are free."""

    def away(self, state: State, id: str) -> State:
        after = super().away(state, id)
        member = after.member(id)
        return after if member is None else with_member(after, member._replace(assigned=()))


@tasks("standby-elsewhere", ...)
class StandsByItself(MutantCoordinator):
    """The member that runs a task gets its standby."""

    def standby_shares(self, state: State) -> Iterator[tuple[str, ops.Tasks]]:
        return ((id, tuple(each for each in tasks if each[0] == STATEFUL[0])) for id, tasks in state.target)

    def may_stand_by(self, state: State, member: Member, task: Partition) -> bool:
        return True


@tasks("standby-elsewhere", ...)
class StandsByWithoutChangelogs(MutantCoordinator):
    """Tasks without a changelog have standby tasks, too."""

    def standby_shares(self, state: State) -> Iterator[tuple[str, ops.Tasks]]:
        everything = {task for _, tasks in state.target for task in tasks}
        return ((id, tuple(sorted(everything - {*tasks}))) for id, tasks in state.target)


@tasks("warm-ups-elsewhere", ...)
class WarmsUpWhatItRuns(MutantCoordinator):
    """Each active task is a warm-up task as well."""

    def _answered(self, state: State, memory: terms.Memory, answer: ops.Answered) -> Transition[State, ops.Action]:
        return super()._answered(state, memory, replace(answer, warmup=answer.tasks))


@tasks("no-warm-up-unasked", ...)
class WarmsUpStandbys(MutantCoordinator):
    """Each standby task is a warm-up task as well."""

    def _answered(self, state: State, memory: terms.Memory, answer: ops.Answered) -> Transition[State, ops.Action]:
        return super()._answered(state, memory, replace(answer, warmup=answer.standby))


# Epochs


@epochs("epochs-rise", ...)
class BeginsAnewWithoutALeaver(MutantCoordinator):
    """The epoch of the group begins again when one of several members leaves."""

    def without(self, state: State, id: str) -> State:
        after = super().without(state, id)
        return after._replace(epoch=1, target_epoch=0) if after.members else after


@epochs("answers-leaving", ...)
class AnswersLeaversWithTheGroup(MutantCoordinator):
    """A member that leaves gets the epoch of the remaining group."""

    def _answered(self, state: State, memory: terms.Memory, answer: ops.Answered) -> Transition[State, ops.Action]:
        after, (found,) = super()._answered(state, memory, answer)
        assert isinstance(found, ops.Answered)
        return Transition(after, (replace(found, epoch=state.epoch) if found.epoch == terms.LEAVING else found,))


@epochs("answers-leaving", ...)
class AnswersTheAwayAsLeavers(MutantCoordinator):
    """A static member that leaves for a while gets epoch -1."""

    def _answered(self, state: State, memory: terms.Memory, answer: ops.Answered) -> Transition[State, ops.Action]:
        return super()._answered(state, memory, replace(answer, epoch=max(answer.epoch, terms.LEAVING)))


@epochs("stale-epoch-fenced", ...)
class BelievesHigherEpochs(defects.TakesNewerEpochs, MutantCoordinator):
    """Only epochs that are too old are fenced, not those that are too new."""


@epochs("stale-epoch-fenced", ...)
class BelievesAnyOldEpoch(MutantCoordinator):
    """An older epoch is accepted whatever the member owns."""

    def is_stale(self, member: Member, epoch: int, owned: Owned) -> bool:
        return epoch > member.epoch


@epochs("repetition-taken", ...)
class KnowsNoLostAnswers(MutantCoordinator):
    """A member that repeats its previous epoch after a lost response is fenced."""

    def is_stale(self, member: Member, epoch: int, owned: Owned) -> bool:
        return epoch not in (0, member.epoch)


@epochs("strangers-refused", ...)
class FencesStrangers(MutantCoordinator):
    """A client that is no member is fenced."""

    def fault(self, state: State, beat: ops.Beat, epoch: int, owned: Owned) -> str | None:
        error = super().fault(state, beat, epoch, owned)
        return terms.FENCED_MEMBER_EPOCH if error == terms.UNKNOWN_MEMBER_ID else error


@epochs("invalid-refused", ...)
class NeedsNoTimeout(MutantCoordinator):
    """A member may join without a rebalance timeout."""

    def invalid(self, beat: ops.Beat, epoch: int, owned: ops.Tasks | None) -> str | None:
        return super().invalid(replace(beat, flaw=None) if beat.flaw == "timeout" else beat, epoch, owned)


@epochs("invalid-refused", ...)
class TakesSizedChangelogs(MutantCoordinator):
    """A topology may state the number of partitions of a changelog."""

    def invalid(self, beat: ops.Beat, epoch: int, owned: ops.Tasks | None) -> str | None:
        return super().invalid(replace(beat, flaw=None) if beat.flaw == "changelog" else beat, epoch, owned)


@epochs("invalid-refused", ...)
class TakesAnyTask(MutantCoordinator):
    """A member may own a task that does not exist."""

    def is_possible(self, state: State, owned: ops.Tasks | None) -> bool:
        return True


@epochs("one-type", ...)
class AdmitsConsumers(MutantCoordinator):
    """A consumer may join a streams group."""

    def admits_consumers(self, state: State) -> bool:
        return True


@epochs("one-type", ...)
class TurnsConsumerGroups(MutantCoordinator):
    """A consumer group becomes a streams group when a member joins that."""

    def fault(self, state: State, beat: ops.Beat, epoch: int, owned: Owned) -> str | None:
        form = "none" if state.form == "consumer" else state.form
        return super().fault(state._replace(form=form), beat, epoch, owned)


@epochs("silent-are-removed", ...)
class KeepsSilentMembers(defects.EndsNoSession, MutantCoordinator):
    """The session of a member never ends."""


@epochs("silent-are-removed", ...)
class EndsSessionsEarly(MutantCoordinator):
    """A session ends after a third of its time."""

    def is_late(self, member: Member) -> bool:
        return member.silent_ms >= ops.SESSION_MS // 3


@epochs("silent-are-removed", ...)
class DescribesForHeartbeats(MutantCoordinator):
    """A describe extends the sessions of all members."""

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        after, actions = super().step(state, event)
        if not isinstance(event, ops.Describe):
            return Transition(after, actions)
        return Transition(after._replace(members=tuple(each._replace(silent_ms=0) for each in after.members)), actions)


@epochs("one-member-an-instance", ...)
class ReleasesInstances(defects.ReleasesEveryInstance, MutantCoordinator):
    """A process that joins as an instance replaces the member that has it."""


@epochs("one-member-an-instance", ...)
class IgnoresInstances(MutantCoordinator):
    """A member may state the instance id of another one."""

    def holds(self, holder: Member, client: str) -> bool:
        return True


# Topologies


@epochs("stale-topology-reported", ...)
class HidesStaleTopologies(MutantCoordinator):
    """The status does not say that the topology of a member is old."""

    def statuses(self, state: State, member: Member) -> tuple[str, ...]:
        return tuple(each for each in super().statuses(state, member) if each != model.STALE_TOPOLOGY)


@epochs("one-topology", ...)
class ComparesTopologyEpochsOnly(MutantCoordinator):
    """A member may join with another topology of the same epoch."""

    def may_run(self, state: State, beat: ops.Beat) -> bool:
        return beat.topology_epoch <= state.topology_epoch or super().may_run(state, beat)


@epochs("no-update-yet", ...)
class TakesNewerTopologies(MutantCoordinator):
    """A member may join with a topology of a newer epoch."""

    def may_run(self, state: State, beat: ops.Beat) -> bool:
        return beat.topology_epoch > state.topology_epoch or super().may_run(state, beat)


# Describe


@described("describes-members", ...)
class DescribesTargets(MutantCoordinator):
    """The description of a member has its target in place of its tasks."""

    def described_member(self, state: State, member: Member) -> ops.DescribedMember:
        found = super().described_member(state, member)
        return replace(found, tasks=found.target)


@described("describes-members", ...)
class DescribesTheGroupsTopologyEpoch(MutantCoordinator):
    """The description of a member has the topology epoch of the group."""

    def described_member(self, state: State, member: Member) -> ops.DescribedMember:
        return replace(super().described_member(state, member), topology_epoch=state.topology_epoch)


@described("describes-members", ...)
class KeepsTheAwayForever(MutantCoordinator):
    """The session of a static member that left for a while never ends."""

    def is_late(self, member: Member) -> bool:
        return member.epoch != terms.AWAY and super().is_late(member)


@described("describes-topology", ...)
class DescribesTheLastTopology(MutantCoordinator):
    """A member that joins with an old topology replaces that of the group."""

    def joined(self, state: State, beat: ops.Beat) -> State:
        after = super().joined(state, beat)
        return after._replace(topology=beat.topology) if not after.members[1:] else after


@described("empty-without-members", ...)
class NeverEmpty(MutantCoordinator):
    """A group without members is described as stable."""

    def phase(self, state: State) -> str:
        found = super().phase(state)
        return model.STABLE if found == model.EMPTY else found


@described("group-epoch-rises", ...)
class ForgetsItsEpoch(MutantCoordinator):
    """The epoch of the group begins again when the last member leaves."""

    def without(self, state: State, id: str) -> State:
        after = super().without(state, id)
        return after if after.members else after._replace(epoch=1, target_epoch=1)


@described("group-epoch-rises", ...)
class DescribesTheNextEpoch(MutantCoordinator):
    """The assignment epoch of a description is ahead of the group's."""

    def described(self, state: State) -> ops.Action:
        found = super().described(state)
        return replace(found, assignment_epoch=state.epoch + 1) if isinstance(found, ops.Described) else found


@described("empty-owes-nothing", ...)
class OwesEmptyGroups(MutantCoordinator):
    """No target assignment is computed when the last member leaves."""

    def __init__(self) -> None:
        super().__init__()
        self.rules = replace(self.rules, aims_when_empty=False)


@described("stable-is-complete", ...)
class StableTooSoon(MutantCoordinator):
    """A group is described as stable while members revoke tasks, or wait for them."""

    def phase(self, state: State) -> str:
        found = super().phase(state)
        return model.STABLE if found == model.RECONCILING else found


@described("stable-is-complete", ...)
class LosesTasksOfTheSilent(MutantCoordinator):
    """No target assignment is computed when a silent member is removed."""

    def passed(self, state: State, ms: int) -> State:
        after = super().passed(state, ms)
        return after._replace(epoch=state.epoch) if after.members else after


@described("stable-is-complete", ...)
class StandsByNothing(MutantCoordinator):
    """There are no standby tasks."""

    def standby_shares(self, state: State) -> Iterator[tuple[str, ops.Tasks]]:
        return iter(())


@described("follows-its-settings", ...)
class KeepsItsFirstSettings(MutantCoordinator):
    """A group has as many standby tasks as the broker states, whatever its own settings are."""

    def copies(self, state: State) -> int:
        return super().copies(state._replace(standby_copies=None))


@described("describes-members", ...)
class HidesStandbys(MutantCoordinator):
    """The description of a member has no standby tasks."""

    def described_member(self, state: State, member: Member) -> ops.DescribedMember:
        return replace(super().described_member(state, member), standby=())


@described("revokes-before-its-epoch", ...)
class RaisesEpochsTooSoon(MutantCoordinator):
    """A member gets the epoch of the target assignment while it has tasks to revoke."""

    def computed(self, state: State, member: Member, owned: Owned, epoch: int) -> Member:
        return super().computed(state, member, owned, state.target_epoch)


@described("not-ready-without-topics", ...)
class ReadyWithoutTopics(MutantCoordinator):
    """A group whose source topics are missing is described as stable."""

    def phase(self, state: State) -> str:
        return model.STABLE if state.members and not state.validated else super().phase(state)


@epochs("admits-members", ...)
class AdmitsNoSecondProcess(MutantCoordinator):
    """A group with a member takes no other one."""

    def fault(self, state: State, beat: ops.Beat, epoch: int, owned: Owned) -> str | None:
        full = epoch == 0 and bool(state.members) and state.member(beat.client) is None
        return "GROUP_MAX_SIZE_REACHED" if full else super().fault(state, beat, epoch, owned)


@epochs("admits-members", ...)
class FencesOwnEpochs(defects.FencesTheCurrentEpoch, MutantCoordinator):
    """A member is fenced when it sends the epoch that it has."""


@described("describes", ...)
class DescribesNothing(MutantCoordinator):
    """A describe finds no group."""

    def described(self, state: State) -> ops.Action:
        return Rejected("", terms.GROUP_ID_NOT_FOUND)


# The log


@records("outlives-reloads", ...)
class LoadsSimpleGroups(MutantCoordinator):
    """Offsets that were committed before the first member make the group that is read from the log a simple one."""

    def reloaded(self, state: State, reload: Reload) -> State:
        after = super().reloaded(state, reload)
        drops = reload.compacted > 0 and reload.tombstones == "gone"
        return after._replace(form="consumer", members=()) if drops and state.offsets else after


@records("commits-kept", ...)
class ForgetsMetadata(MutantCoordinator):
    """The log has no metadata of committed offsets."""

    def stored(self, row: Offset) -> Offset:
        return (*row[:4], "")


@epochs("taken-back", ...)
class FencesStreamsClientsForGood(defects.FencesWhoComesBack, MutantCoordinator):
    """A member that was fenced, and joins again, is fenced again."""


@epochs("taken-back", ...)
class RefusesTheInstanceOfAStreamsClient(defects.RefusesItsOwnInstance, MutantCoordinator):
    """A static member that was fenced, and joins again, is refused: it has its instance id itself."""


@described("rests", ...)
class RebalancesForListedTasks(MutantCoordinator):
    """A heartbeat that lists the tasks of a member raises the epoch of a stable group."""

    def beat(self, state: State, beat: ops.Beat) -> Transition[State, ops.Action]:
        lists = beat.owned == "told" and self.phase(state) == model.STABLE
        return super().beat(state._replace(epoch=self.bumped(state)) if lists else state, beat)


@epochs("size-limit", ...)
class TakesAnyNumberOfStreamsClients(MutantCoordinator):
    """A group is never full."""

    def is_full(self, state: State, beat: ops.Beat) -> bool:
        return False


@epochs("taken-back", ...)
class CountsWhoComesBack(MutantCoordinator):
    """A full group has no room for a member that was fenced, and joins again."""

    def is_full(self, state: State, beat: ops.Beat) -> bool:
        return bool(len(state.members) >= self.config.max_size)


@epochs("revokers-have-time", ...)
class GivesNoTimeForTasks(defects.GivesNoTimeToRevoke, MutantCoordinator):
    """A member that has to revoke tasks is removed one millisecond before its time is over."""


@epochs("silent-are-removed", ...)
class EndsStreamsClientsEarly(defects.EndsSessionsEarly, MutantCoordinator):
    """The session of a member ends one millisecond before its time."""


@epochs("silent-are-removed", ...)
class RenewsRefusedStreamsClients(defects.RenewsRefusedSessions, MutantCoordinator):
    """A refused heartbeat renews the session of the member, too."""


@tasks("endpoints-current", ...)
class KeepsOldEndpoints(MutantCoordinator):
    """The endpoint information has only the member that asks for it."""

    def endpoints(self, state: State, client: str) -> ops.Endpoints | None:
        members = tuple(member for member in state.members if member.id == client)
        return super().endpoints(state._replace(members=members), client)


@tasks("endpoints-spread", ...)
class SpreadsEndpointsAlways(MutantCoordinator):
    """Each answer has the endpoint information."""

    def endpoints(self, state: State, client: str) -> ops.Endpoints | None:
        return super().endpoints(state._replace(known_endpoints=()), client)


@tasks("endpoint-epoch-rises", ...)
class CountsNoEndpoints(MutantCoordinator):
    """The epoch of the endpoint information stays the same."""

    def next_endpoint_epoch(self, state: State) -> int:
        return 1
