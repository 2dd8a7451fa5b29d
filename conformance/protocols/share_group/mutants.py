"""Coordinators of KIP-932 groups with one planted defect each. Least cases are in shorthand."""

from collections.abc import Iterator
from typing import Any

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutants_of
from kipcheck.conformance.protocols.reconciled import mutants as defects, terms
from kipcheck.conformance.protocols.reconciled.log_ops import Reload
from kipcheck.conformance.protocols.share_group.model import Member, ShareGroup, State
from kipcheck.conformance.protocols.share_group.ops import OPERATIONS, Action, Beat
from kipcheck.conformance.protocols.share_group.rules import Rules


class MutantCoordinator(MachineMutant, ShareGroup):
    """The reference machine as an adapter, with overridable decisions. It computes target assignments at once."""

    operations = OPERATIONS
    rules = Rules.of(since("kip-932"))


membership = mutants_of("share-group/membership", OPERATIONS.machine)
records = mutants_of("share-group/records", OPERATIONS.machine)


@membership("epochs-rise", "beat a on t; beat b on t; beat a; leave b; beat a")
class CountsShareEpochsDown(MutantCoordinator):
    """A leaving member resets the epoch of the group."""

    def without(self, state: State, id: str) -> State:
        after = super().without(state, id)
        return after._replace(group_epoch=1, target_epoch=0) if after.members else after


@membership("co-subscription", "beat a on t")
class SharesAllTopics(MutantCoordinator):
    """Partitions are assigned without regard to subscriptions."""

    def shares(self, state: State) -> Iterator[tuple[str, terms.Partitions]]:
        members = tuple(member._replace(topics=("t", "u")) for member in state.members)
        return super().shares(state._replace(members=members))

    def reduced(self, member: Member) -> Member:
        return member


@membership("reads-everything", "beat a on t; pass 1000; beat a; beat a; beat c")
class ForgetsTheLastPartition(MutantCoordinator):
    """The last partition of the assignment of a member is left out."""

    def shares(self, state: State) -> Iterator[tuple[str, terms.Partitions]]:
        return ((id, partitions[:-1]) for id, partitions in super().shares(state))


@membership(
    "reads-everything", f"beat a on u; beat b on u; beat c on u; pass 1000; {2 * 'beat a; beat b; beat c; '}beat a"
)
class LeavesSharersIdle(MutantCoordinator):
    """Each partition has one member at most: members above their number get none."""

    def shares(self, state: State) -> Iterator[tuple[str, terms.Partitions]]:
        taken = set[Any]()
        for id, partitions in super().shares(state):
            yield id, tuple(each for each in partitions if each not in taken)
            taken.update(partitions)


@membership("stale-epoch-fenced", "beat a on t; beat a on u; beat a on t; beat a-2")
class TakesAnyShareEpoch(MutantCoordinator):
    """The epoch of a member is not compared."""

    def is_stale(self, member: Member, epoch: int, owned: None) -> bool:
        return False


@membership("stale-epoch-fenced", "beat a on t; beat a+1")
class TakesNewerShareEpochs(defects.TakesNewerEpochs, MutantCoordinator):
    """A member may have an epoch above its own."""


@membership("refuses-invalid", "beat a on t without rack")
class TakesEmptyRacks(MutantCoordinator):
    """A heartbeat with an empty rack is accepted."""

    def beat(self, state: State, beat: Beat) -> Transition[State, Action]:
        return super().beat(state, Beat(beat.client, beat.says, beat.behind, beat.topics, _other(beat.flaw)))


def _other(flaw: Any) -> Any:
    return None if flaw == "rack" else flaw


@membership("silent-are-removed", f"beat b on t; {3 * 'pass 15000; '}beat b")
class KeepsSilentSharers(defects.EndsNoSession, MutantCoordinator):
    """The session of a member never ends."""


@membership("silent-are-removed", "beat a on t; pass 1000; beat a")
class DropsSharersAtOnce(MutantCoordinator):
    """A member is removed after one second of silence."""

    def is_late(self, member: Member) -> bool:
        return member.silent_ms >= 1_000


@membership("admits-members", "beat a on t; beat a")
class FencesTheCurrentShareEpoch(defects.FencesTheCurrentEpoch, MutantCoordinator):
    """A member is fenced with the epoch that it was given."""


@records("outlives-reloads", ...)
class ForgetsTheYoungestSharer(MutantCoordinator):
    """A coordinator that reads a compacted log lacks the last member."""

    def reloaded(self, state: State, reload: Reload) -> State:
        after = super().reloaded(state, reload)
        return after._replace(members=after.members[:-1]) if reload.compacted else after


@membership("taken-back", "join a on t; beat a+1; join a on t")
class FencesSharersForGood(defects.FencesWhoComesBack, MutantCoordinator):
    """A member that was fenced, and joins again, is fenced again."""


@membership("size-limit", "join a on t; join b on t; join c on t; join d on t")
class TakesAnyNumberOfSharers(MutantCoordinator):
    """A group is never full."""

    def is_full(self, state: State, id: str) -> bool:
        return False


@membership("silent-are-removed", ...)
class EndsSharersEarly(defects.EndsSessionsEarly, MutantCoordinator):
    """The session of a member ends one millisecond before its time."""


@membership("silent-are-removed", ...)
class RenewsRefusedSharers(defects.RenewsRefusedSessions, MutantCoordinator):
    """A refused heartbeat renews the session of the member, too."""
