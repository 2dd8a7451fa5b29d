"""Coordinators of a KIP-848 group with one planted defect each. The least case is told in shorthand."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kipcheck.conformance.apis.consumer_group import VERBS, answer_of, event_of
from kipcheck.conformance.core.machine import Transition
from kipcheck.conformance.models.assignment import Partition
from kipcheck.conformance.models.consumer_group import (
    Action,
    Answered,
    Beat,
    ConsumerGroup,
    Member,
    Partitions,
    State,
)
from kipcheck.conformance.mutants.declare import vice
from kipcheck.conformance.targets.machine_target import Player
from kipcheck.conformance.targets.protocol import CONSUMER_GROUP, Claims


class Playing(ConsumerGroup):
    """The machine as an adapter of its own."""

    name = "consumer-group"
    version = "0"
    issues = ""

    def __init__(self) -> None:
        self._player = Player(self, VERBS, event_of, answer_of)

    def claims(self) -> Claims:
        return Claims(machines=(CONSUMER_GROUP,))

    def configure(self, edition: str, /) -> str | None:
        return None

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        return self._player.answer(op)


Made = TypeVar("Made", bound=type[Playing])


def ownership(invariant: str, least: str) -> Callable[[Made], Made]:
    return vice("consumer-group/ownership", f"consumer-group/{invariant}", CONSUMER_GROUP, None, least)


def epochs(invariant: str, least: str) -> Callable[[Made], Made]:
    return vice("consumer-group/epochs", f"consumer-group/{invariant}", CONSUMER_GROUP, None, least)


AFTER_ROUNDS = f"join a on t none; join b on t none; {4 * 'beat a told; beat b told; '}beat a told"
"""Four rounds are granted, and one heartbeat more shows that they were not enough."""


# Who owns what


@ownership("one-owner", "join a on t none; join b on t none; beat a told; beat b told")
class GivesWhatIsPending(Playing):
    """What a member was told to give up counts as free at once."""

    def is_free(self, state: State, member: Member, partition: Partition) -> bool:
        others = (each for each in state.members if each.id != member.id)
        return not any(partition in each.assigned for each in others)


@ownership("one-owner", "join a on t none; join b on t none")
class GivesWhatIsOwned(Playing):
    """A partition goes to its new owner while the old one has not been told of it."""

    def is_free(self, state: State, member: Member, partition: Partition) -> bool:
        return True


@ownership("one-owner", "beat a on t,u told; beat a on t told; beat a; beat b on t,u told")
class TakesSilenceForConsent(Playing):
    """A heartbeat that says nothing of what its member owns acknowledges the revocation."""

    def has_revoked(self, member: Member, owned: Partitions | None) -> bool:
        return owned is None or super().has_revoked(member, owned)


@ownership("co-subscription", "beat a on t,u told; join b on t none; beat a told; beat a told; beat b told")
class GivesAnyTopic(Playing):
    """Subscriptions are not looked at when partitions are dealt out."""

    def may_have(self, member: Member, partition: Partition) -> bool:
        return True


@ownership("settles", AFTER_ROUNDS)
class ForgetsWhoWaits(Playing):
    """A member that has to wait for a partition is taken for settled."""

    def computed(self, state: State, member: Member, owned: Partitions | None, epoch: int) -> Member:
        return super().computed(state, member, owned, epoch)._replace(waiting=False)


@ownership("settles", f"beat a on t told; beat b on t told; leave a told{5 * '; beat b told'}")
class KeepsTheTarget(Playing):
    """When a member goes, what it had stays set aside for it."""

    def without(self, state: State, id: str) -> State:
        return super().without(state, id)._replace(group_epoch=state.group_epoch)


@ownership("settles", AFTER_ROUNDS)
class WaitsForSilence(Playing):
    """What was given up is not believed before the member says that it owns nothing at all."""

    def has_revoked(self, member: Member, owned: Partitions | None) -> bool:
        return owned == ()


# Epochs


@epochs("epochs-rise", "beat a on t told; beat b on t told; leave b told; beat a told")
class CountsDown(Playing):
    """Who leaves takes the epoch back with it."""

    def without(self, state: State, id: str) -> State:
        after = super().without(state, id)
        return after._replace(group_epoch=0, target_epoch=-1) if after.members else after


@epochs("group-epoch-rises", "beat a on t told; beat a on t,u told; beat b on t told")
class BeginsAgain(Playing):
    """A member that joins is told the first epoch."""

    def beat(self, state: State, beat: Beat) -> Transition[State, Action]:
        after, actions = super().beat(state, beat)
        known = state.member(beat.client) is not None
        told = tuple(
            Answered(each.client, 1, each.assignment) if isinstance(each, Answered) and not known else each
            for each in actions
        )
        return Transition(after, told)


@epochs("answers-leaving", "beat a on t told; beat a-2 told")
class AnswersTheGroupsEpoch(Playing):
    """Who leaves is told the epoch of the group that goes on."""

    def beat(self, state: State, beat: Beat) -> Transition[State, Action]:
        after, actions = super().beat(state, beat)
        told = tuple(
            Answered(each.client, after.group_epoch, None) if isinstance(each, Answered) and each.epoch < 0 else each
            for each in actions
        )
        return Transition(after, told)


@epochs("stale-epoch-fenced", "beat a on t told; beat a+1 told")
class BelievesNewerEpochs(Playing):
    """Only epochs that are too old are fenced."""

    def is_stale(self, member: Member, epoch: int, owned: Partitions | None) -> bool:
        return epoch < member.epoch and super().is_stale(member, epoch, owned)


@epochs("stale-epoch-fenced", "beat a on t told; beat b on t told; leave a told; beat b told; beat b-1")
class BelievesOldEpochs(Playing):
    """The epoch before is taken whatever its member owns."""

    def is_stale(self, member: Member, epoch: int, owned: Partitions | None) -> bool:
        return epoch not in (member.epoch, member.previous)


@epochs("repetition-taken", "beat a on t told; beat a on t,u told; beat a-1 told")
class KnowsNoRepetition(Playing):
    """Who missed an answer is fenced."""

    def is_stale(self, member: Member, epoch: int, owned: Partitions | None) -> bool:
        return epoch != member.epoch


@epochs("names-the-fault", "beat a told")
class JoinsWithoutTopics(Playing):
    """A member joins that does not say what it subscribes to."""

    def fault(self, state: State, beat: Beat, epoch: int, owned: Partitions | None) -> str | None:
        if epoch == 0 and beat.topics is None and state.member(beat.client) is None:
            return None
        return super().fault(state, beat, epoch, owned)


@epochs("names-the-fault", "leave a told")
class KnowsNoGroup(Playing):
    """A group that is not there has members that are unknown."""

    def fault(self, state: State, beat: Beat, epoch: int, owned: Partitions | None) -> str | None:
        return super().fault(state._replace(exists=True), beat, epoch, owned)


@epochs("silent-are-fenced", "beat a on t told; pass 45000; beat a told")
class NeverExpires(Playing):
    """The session of a member never ends."""

    def is_late(self, member: Member) -> bool:
        return super().is_late(member._replace(silent_ms=0))


@epochs("silent-are-fenced", "beat a on t told; pass 1000; beat a told")
class ExpiresAtOnce(Playing):
    """A member is removed when it was silent for a second."""

    def is_late(self, member: Member) -> bool:
        return member.silent_ms >= 1_000


@epochs("late-revokers-are-fenced", "beat a on t told; beat b on t told; beat a told; pass 30000; beat a told")
class WaitsForEver(Playing):
    """Nobody is fenced who does not give up what it was told to."""

    def is_late(self, member: Member) -> bool:
        return super().is_late(member._replace(revoking_ms=0))
