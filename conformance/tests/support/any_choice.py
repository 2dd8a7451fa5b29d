"""A coordinator of mixed groups that chooses at random where coordinators may choose, to explain what a released one
answered: who gets which partition, and who leads a group that becomes a classic one."""

from collections.abc import Callable, Iterator, Sequence
from random import Random

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Observation
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.consumer_group import model as consumer
from kipcheck.conformance.protocols.consumer_group.rules import DEFAULT, Rules
from kipcheck.conformance.protocols.group.model.rules import Rules as ClassicRules
from kipcheck.conformance.protocols.migration.ops import OPERATIONS
from kipcheck.conformance.protocols.migration.search_model import ReleasedGroup
from kipcheck.conformance.protocols.migration.state import State
from kipcheck.conformance.protocols.reconciled.terms import Partitions
from kipcheck.conformance.targets.protocol import observed

TRIES = ((3, 6), (20, 20), (300, 60))
"""How many choices are tried in a state, and how many states are followed: more only where fewer explain nothing."""


class AnyAssignment(consumer.ConsumerGroup):
    """Balanced assignments, mostly sticky ones."""

    def __init__(self, rules: Rules, random: Random) -> None:
        super().__init__(rules=rules, config=DEFAULT)
        self.random = random
        self.chose = False

    def shares(self, state: consumer.State) -> Iterator[tuple[str, Partitions]]:
        self.chose = True
        given: dict[str, list[Partition]] = {each.id: [] for each in state.members}
        owners = {partition: member for member, partitions in state.target for partition in partitions}
        topics = {each.id: self.topics_of(state, each) for each in state.members}
        wanted = [
            (topic, each)
            for topic in sorted(frozenset[str]().union(*topics.values()))
            for each in range(self.topics[topic])
        ]
        self.random.shuffle(wanted)
        least, more = divmod(len(wanted), max(len(given), 1))
        quotas = {id: least + (at < more) for at, id in enumerate(self.random.sample(sorted(given), len(given)))}
        sticky, late = self.random.random() < 0.7, list[Partition]()
        for each in wanted:
            owner = owners.get(each, "")
            keeps = sticky and owner in given and each[0] in topics[owner]
            keeps = keeps and (len(given[owner]) < quotas[owner] or self.random.random() < 0.1)
            (given[owner] if keeps else late).append(each)
        for each in late:
            able = [id for id in given if each[0] in topics[id]]
            given[min(able, key=lambda id: (len(given[id]), self.random.random()))].append(each)
        return ((id, tuple(sorted(partitions))) for id, partitions in given.items())


class AnyChoice(ReleasedGroup):
    def __init__(self, release: str, random: Random) -> None:
        rules = Rules.of(release)
        super().__init__(rules, classic=ClassicRules.of(release))
        self.random = random
        self.consumers: AnyAssignment = AnyAssignment(rules, random)
        self.consumers.counts_successors = rules.counts_successors

    def as_classic(self, state: State, rebalances: bool) -> State:
        """Any member leads."""
        self.consumers.chose = True
        members = tuple(self.random.sample(state.group.members, len(state.group.members)))
        return super().as_classic(state._replace(group=state.group._replace(members=members)), rebalances)


def unexplained(
    release: str, talk: Sequence[Step], seen: Sequence[Observation], alike: Callable[[Observation, Observation], bool]
) -> str | None:
    """The steps up to the first answer that no choice explains, with it and one of ours; None: all are explained."""
    found = None
    for tries, most in TRIES:
        found = _parted(AnyChoice(release, Random("choices")), talk, seen, alike, tries, most)
        if found is None:
            return None
    return found


def _parted(
    machine: AnyChoice,
    talk: Sequence[Step],
    seen: Sequence[Observation],
    alike: Callable[[Observation, Observation], bool],
    tries: int,
    most: int,
) -> str | None:
    states = [machine.initial()]
    for at, (step, theirs) in enumerate(zip(talk, seen, strict=True)):
        possible: dict[State, None] = {}
        ours: Observation | None = None
        for state in states:
            for _ in range(tries):
                machine.consumers.chose = False
                after, actions = machine.step(state, OPERATIONS.event_of(step))
                ours = observed(OPERATIONS.answer_of(actions))
                if alike(ours, theirs):
                    possible[after] = None
                if not machine.consumers.chose or len(possible) >= 2 * most:
                    break
        if not possible:
            return f"{OPERATIONS.shorthand(talk[: at + 1])}\n  ours {ours}\n  seen {theirs}"
        states = machine.random.sample([*possible], min(most, len(possible)))
    return None
