"""Consumers of classic groups with one planted defect each. Least cases are in shorthand."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.assignment.model.membership import EAGER, Partitions, Subscription
from kipcheck.conformance.protocols.declare.mutant import Least, mutant
from kipcheck.conformance.protocols.group.model.messages import Blob, Timer
from kipcheck.conformance.protocols.member.model.consumer import Consumer
from kipcheck.conformance.protocols.member.model.messages import POLLED
from kipcheck.conformance.protocols.member.model.state import Phase, State, Step
from kipcheck.conformance.protocols.member.ops import MEMBER, Given, Lost, Revoked
from kipcheck.conformance.protocols.member.target import ConsumerAdapter

PLACE = 10

Made = TypeVar("Made", bound=type[Consumer])


def _check(name: str) -> Callable[[str, Least], Callable[[Made], Made]]:
    def declared(invariant: str, least: Least) -> Callable[[Made], Made]:
        def declare(made: Made) -> Made:
            adapter = type(made.__name__, (ConsumerAdapter,), {"consumer": made, "__doc__": made.__doc__})
            mutant(f"member/{name}", f"member/{invariant}", MEMBER, None, least)(adapter)
            return made

        return declare

    return declared


BY: Final = "by=cooperative-sticky"
COOPERATIVE: Final = f"open cooperative-sticky; subscribe t; poll; joined 1 {BY}; subscribe t,u; synced t:0; poll"
"""A cooperative member that owns something, and joins again."""
callbacks, ownership, errors, duties, draft = map(_check, ("callbacks", "ownership", "errors", "duties", "draft"))


# Callbacks


@callbacks(
    "callbacks-in-their-time",
    "open range; subscribe t; poll; joined 1; synced t:0; poll; elapse 30000; disconnected; elapse 30000",
)
class CallsInTheBackground(Consumer):
    """When max.poll.interval.ms has passed, the lost callback is called at once, outside a poll."""

    def fired(self, state: State, timer: Timer) -> Step:
        after, actions = super().fired(state, timer)
        if timer != POLLED or not state.owned:
            return Transition(after, actions)
        return Transition(replace(after, owned=()), (*actions, Lost(state.owned)))


@callbacks("callbacks-in-their-time", "open range; subscribe t; poll; joined 1; subscribe t,u; synced t:0; poll")
class RevokesAfterItJoined(Consumer):
    """JoinGroup is sent first, and the callbacks are called while it is pending."""

    def poll(self, state: State) -> Step:
        after, actions = super().poll(state)
        late = tuple(each for each in actions if isinstance(each, Revoked) and each.partitions)
        return Transition(after, (*(each for each in actions if each not in late), *late))


@callbacks("gives-up-what-it-owns", f"{COOPERATIVE}; joined 2 {BY}; synced t:0; poll")
class GivesAgain(Consumer):
    """The assigned callback gets the whole assignment instead of the new partitions."""

    def new(self, state: State, assigned: Partitions) -> Partitions:
        return assigned


@callbacks("gives-up-what-it-owns", "open range; subscribe t; poll; joined 1; subscribe t,u; synced t:0; poll; close")
class RevokesWhatItGaveUp(Consumer):
    """A consumer that leaves revokes its last assignment again."""

    def leave(self, state: State) -> Step:
        return super().leave(replace(state, owned=state.given))


@callbacks("gives-up-first", "open range; subscribe t; poll; joined 1; subscribe t,u; synced t:0; poll")
class JoinsWithAll(Consumer):
    """An eager member keeps its partitions while it joins."""

    def prepare(self, state: State) -> Step:
        return Transition(state) if self.protocol == EAGER else super().prepare(state)


@callbacks(
    "lost-when-out",
    "open range; subscribe t; poll; joined 1; synced t:0; poll; elapse 30000; disconnected; elapse 30000; poll",
)
class RevokesWhatIsLost(Consumer):
    """A consumer that was removed from the group gets its partitions revoked instead of lost."""

    def lose(self, state: State) -> Step:
        return Transition(replace(state, owned=()), (Revoked(state.owned),))


@callbacks("lost-when-out", "open range; subscribe t; poll; joined 1; subscribe t,u; synced t:0; poll")
class LosesAtEachRebalance(Consumer):
    """An eager member calls the lost callback instead of the revoked one."""

    def prepare(self, state: State) -> Step:
        return self.lose(state) if state.owned and self.protocol == EAGER else super().prepare(state)


@callbacks("lost-when-out", f"{COOPERATIVE}; joined UNKNOWN_MEMBER_ID; poll")
class PreparesOnce(Consumer):
    """A member that is removed during a rebalance joins again with its previous partitions (KAFKA-12983)."""

    def reset(self, state: State, keeps_id: bool) -> State:
        return replace(super().reset(state, keeps_id), prepared=state.prepared)


@callbacks("leaves-with-callbacks", "open range; subscribe t; poll; joined 1; synced t:0; poll; close")
class ClosesInSilence(Consumer):
    """No callback is called when the consumer leaves."""

    def leave(self, state: State) -> Step:
        return self.send_leave(replace(state, owned=()))


@callbacks("leaves-amid-a-rebalance", f"{COOPERATIVE}; close")
class RevokesWhileItJoins(Consumer):
    """A consumer that leaves during a rebalance gets its partitions revoked instead of lost."""

    def leave(self, state: State) -> Step:
        after, actions = super().leave(state)
        return Transition(
            after, tuple(Revoked(each.partitions) if isinstance(each, Lost) else each for each in actions)
        )


# Ownership


@ownership("takes-what-fits", "open range; subscribe t; poll; joined 1; synced u:0; poll")
class TakesWhatItDidNotSubscribeTo(Consumer):
    """An assignment is not compared with the subscription (KAFKA-7961)."""

    def is_covered(self, state: State, partitions: Partitions) -> bool:
        return True


@ownership("owns-what-it-was-given", "open range; subscribe t; poll; joined 1; synced t:0; poll")
class DropsTheFirst(Consumer):
    """The assigned callback lacks the first new partition."""

    def new(self, state: State, assigned: Partitions) -> Partitions:
        return super().new(state, assigned)[1:]


@ownership("owns-what-it-was-given", "open range; subscribe t; poll; joined 1; synced; poll")
class AdoptsNothingInSilence(Consumer):
    """The assigned callback is not called for an assignment with no new partition."""

    def complete(self, state: State, blob: Blob) -> Step:
        after, actions = super().complete(state, blob)
        return Transition(after, tuple(each for each in actions if each != Given(())))


@ownership("owns-what-it-was-given", "open range; subscribe t; poll; joined 1; synced t:0; poll")
class AdoptsInSilence(Consumer):
    """The assigned callback is never called."""

    def complete(self, state: State, blob: Blob) -> Step:
        after, actions = super().complete(state, blob)
        return Transition(after, tuple(each for each in actions if not isinstance(each, Given)))


@ownership("reads-what-it-owns", "open range; subscribe t; poll; joined 1; subscribe t,u; synced t:0; poll")
class ReadsOn(Consumer):
    """Revoked partitions are read until there is a new assignment (KAFKA-14196)."""

    def readable(self, state: State) -> Partitions:
        return tuple(sorted({*state.owned, *state.given}))


@ownership("reads-what-it-owns", COOPERATIVE)
class PausesWhileItJoins(Consumer):
    """A cooperative member stops reading its partitions while it joins."""

    def readable(self, state: State) -> Partitions:
        return () if state.phase is Phase.PREPARING else state.owned


@ownership("keeps-what-it-may", COOPERATIVE)
class StopsTheWorld(Consumer):
    """A cooperative member revokes all partitions before it joins, like an eager one."""

    def prepare(self, state: State) -> Step:
        if self.is_out(state):
            return super().prepare(state)
        return Transition(replace(state, owned=()), (Revoked(state.owned),))


@ownership(
    "gives-up-unsubscribed",
    "open cooperative-sticky; subscribe t; poll; joined 1 by=cooperative-sticky; synced t:0; poll; subscribe u; poll",
)
class KeepsWhatItDropped(Consumer):
    """A cooperative member keeps partitions of topics that it no longer subscribes to."""

    def prepare(self, state: State) -> Step:
        cooperates = self.protocol != EAGER and not self.is_out(state)
        return Transition(state) if cooperates else super().prepare(state)


@ownership("keeps-what-it-may", COOPERATIVE)
class PrefersEager(Consumer):
    """The lowest protocol that all assignors support is used, not the highest."""

    def chosen_protocol(self) -> str:
        chosen = super().chosen_protocol()
        both = all(EAGER in each.supports for each in self.config.assignors)
        return EAGER if both else chosen


@ownership("revokes-what-it-lost", f"{COOPERATIVE}; joined 2 {BY}; synced; poll")
class GivesUpInSilence(Consumer):
    """Partitions that were not assigned again are removed without a callback."""

    def given_up(self, state: State, assigned: Partitions) -> Partitions:
        return ()


@ownership("revokes-what-it-lost", f"{COOPERATIVE.replace('t:0', 't:0 t:1')}; joined 2 {BY}; synced t:0; poll")
class RevokesTooMuch(Consumer):
    """A member that has to revoke a partition revokes all."""

    def given_up(self, state: State, assigned: Partitions) -> Partitions:
        return state.owned if super().given_up(state, assigned) else ()


@ownership("rejoins-after-revoking", f"{COOPERATIVE}; joined 2 {BY}; synced; poll; poll")
class NeverComesBack(Consumer):
    """A member that revoked partitions does not join again."""

    def rejoins_after_revoking(self) -> bool:
        return False


@ownership("tells-what-it-holds", "open range; subscribe t; poll; joined 1; subscribe t,u; synced t:0; poll")
class TellsWhatItHad(Consumer):
    """The subscription names the last assignment, without its later revocations."""

    def subscription(self, state: State, assignor: str) -> Subscription:
        found = super().subscription(state, assignor)
        return replace(found, owned=state.given) if found.version else found


@ownership("tells-what-it-holds", "open range; subscribe t; poll; joined 1; synced REBALANCE_IN_PROGRESS; poll")
class NeverGrowsOld(Consumer):
    """The subscription names the generation of the last assignment, even after a newer one."""

    def subscription(self, state: State, assignor: str) -> Subscription:
        found = super().subscription(state, assignor)
        return replace(found, generation=state.given_in) if found.version >= 2 else found


@ownership("tells-what-it-holds", "open range; subscribe t; poll; joined UNKNOWN_MEMBER_ID; subscribe u; poll")
class TellsTheFirstTopics(Consumer):
    """The subscription names the topics of the previous JoinGroup."""

    def subscription(self, state: State, assignor: str) -> Subscription:
        return super().subscription(replace(state, topics=state.told or state.topics), assignor)

    def send_join(self, state: State) -> Step:
        actions = (self.join_of(state),)
        return Transition(super().send_join(state).state, actions)


@ownership("finds-a-protocol", "open range,incremental")
class TakesAnyAssignors(Consumer):
    """A consumer whose assignors have no protocol in common is created, and eager."""

    def chosen_protocol(self) -> str:
        try:
            return super().chosen_protocol()
        except ValueError:
            return EAGER


@ownership("finds-a-protocol", "open range,cooperative-sticky")
class WantsOneAssignor(Consumer):
    """Several assignors are refused unless all support the same protocols."""

    def chosen_protocol(self) -> str:
        if len({each.supports for each in self.config.assignors}) > 1:
            raise ValueError("these assignors differ")
        return super().chosen_protocol()


# The draft


@draft("counts-incompatible", "open range; subscribe t; poll; joined 1; synced error; poll")
class CountsNothing(Consumer):
    """An assignment with the error is not counted."""

    def incompatible(self, state: State) -> Step:
        after, _ = super().incompatible(state)
        return Transition(replace(after, incompatible=0))


@draft("counts-incompatible", "open range; subscribe t; poll; joined 1; synced error; poll")
class CountsByTwo(Consumer):
    """Each assignment with the error is counted twice."""

    def incompatible(self, state: State) -> Step:
        return super().incompatible(replace(state, incompatible=state.incompatible + 1))


@draft("backs-off", "open range; subscribe t; poll; joined 1; synced error; poll")
class RushesOn(Consumer):
    """After an assignment with the error JoinGroup is sent without a back-off."""

    def back_off(self, state: State) -> State:
        return state


@draft("joins-when-due", "open range; subscribe t; poll; joined 1; synced error; poll; elapse 200; poll")
class RestsWithTheError(Consumer):
    """After an assignment with the error no JoinGroup follows."""

    def incompatible(self, state: State) -> Step:
        after, actions = super().incompatible(state)
        return Transition(replace(after, rejoin=False), actions)


@draft("drafted-subscription", "open range; subscribe t; poll")
class SpeaksAsANewOne(Consumer):
    """A new binary sends version 1, whatever its configuration."""

    @property
    def subscription_version(self) -> int:
        return 1


@draft(
    "keeps-what-it-may",
    "open range protocol=cooperative; subscribe t; poll; joined 1; subscribe t,u; synced t:0; poll",
)
class IsAlwaysEager(Consumer):
    """rebalance.protocol is ignored."""

    def chosen_protocol(self) -> str:
        return EAGER
