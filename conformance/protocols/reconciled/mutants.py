"""Defects that a coordinator of any reconciled group can have: a mutant of a protocol inherits from one of them."""

from typing import Any, TypeAlias

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.reconciled.model import Member, ReconciledGroup, member_of, with_member

AnyGroup: TypeAlias = ReconciledGroup[Any, Any, Any, Any]


class FreesWhatIsAssigned(AnyGroup):
    def is_free(self, state: Any, member: Any, partition: Partition) -> bool:
        return True


class FreesWhatIsPending(AnyGroup):
    def is_free(self, state: Any, member: Any, partition: Partition) -> bool:
        return not any(partition in each.assigned for each in state.members if each.id != member.id)


class TakesNewerEpochs(AnyGroup):
    def is_stale(self, member: Member, epoch: int, owned: Any) -> bool:
        return epoch < member.epoch and super().is_stale(member, epoch, owned)


class FencesTheCurrentEpoch(AnyGroup):
    def is_stale(self, member: Member, epoch: int, owned: Any) -> bool:
        return epoch == member.epoch > 0 or super().is_stale(member, epoch, owned)


class ReleasesEveryInstance(AnyGroup):
    def is_released(self, holder: Any) -> bool:
        return True


class EndsNoSession(AnyGroup):
    def is_late(self, member: Any) -> bool:
        return super().is_late(member._replace(silent_ms=0))


class FencesWhoComesBack(AnyGroup):
    def is_stale(self, member: Member, epoch: int, owned: Any) -> bool:
        return 0 == epoch < member.epoch or super().is_stale(member, epoch, owned)


class RefusesItsOwnInstance(AnyGroup):
    def is_back(self, holder: Any, client: str) -> bool:
        return False


class GivesNoTimeToRevoke(AnyGroup):
    def is_late(self, member: Any) -> bool:
        return member.revoking_ms >= self.revocation_ms - 1 or super().is_late(member)


class EndsSessionsEarly(AnyGroup):
    def is_late(self, member: Any) -> bool:
        return member.silent_ms >= self.session_of(member) - 1 or super().is_late(member)


class RenewsRefusedSessions(AnyGroup):
    """A protocol gives ``beat`` to a mutant of it."""

    def beat(self, state: Any, beat: Any) -> Any:
        after, actions = super().beat(state, beat)  # type: ignore[misc]
        member = member_of(state.members, beat.client)
        if member is None or not any(hasattr(each, "error") for each in actions):
            return Transition(after, actions)
        return Transition(with_member(after, member._replace(silent_ms=0)), actions)
