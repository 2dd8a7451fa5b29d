"""Invariants of a Kafka Streams group that follows group_coordinator. Each reads events and answers, not the model."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import impact, invariant
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, plain_steps
from kipcheck.conformance.protocols.features.ops import app

PLACE = 60

UPGRADES: Final = "feature-app/upgrades"
upgrades = partial(invariant, role=Role.CONTROLLER, checks=(UPGRADES,))
OLD, NEW = 1, 2
KIP: Final = ("KIP-584", "KIP-447")


@dataclass(frozen=True, slots=True)
class KnownGroup:
    level: int = OLD
    """Finalized."""
    caches: Mapping[int, int] = field(default_factory=dict)
    """The level that a notified broker knows; others know the first one."""
    members: Mapping[str, int] = field(default_factory=dict)
    """The level in the metadata of each member, by the answers to rebalances."""
    told: frozenset[str] = frozenset()
    """The members that the instruction for the new level reached."""

    @property
    def upgraded(self) -> bool:
        return NEW in self.members.values()

    def without(self, member: str) -> "KnownGroup":
        members = {name: level for name, level in self.members.items() if name != member}
        return replace(self, members=members, told=self.told - {member})


@dataclass(frozen=True, slots=True)
class AppStep(AnsweredStep[Step, Mapping[str, Any], KnownGroup]):
    @property
    def cached(self) -> int:
        """The level that the broker of the step knows."""
        return self.before.caches.get(self.request["broker"], OLD)

    def known_after(self) -> KnownGroup:
        known = self.before
        match app.OPERATIONS.event_of(self.request):
            case app.Finalize(level):
                return replace(known, level=level)
            case app.Notify(broker):
                return replace(known, caches={**known.caches, broker: known.level})
            case app.Begin(member):
                fresh = known.without(member)
                return replace(fresh, members={**fresh.members, member: OLD})
            case app.End(member):
                return known.without(member)
            case app.Rebalance() if self.accepted:
                return replace(known, members=dict.fromkeys(known.members, self.answer["level"]))
            case app.Tell(member) if known.members.get(member) == NEW:
                return replace(known, told=known.told | {member})
            case app.Commit(member) if self.accepted and self.answer["crashed"]:
                return known.without(member)
            case app.Wipe():
                return replace(known, members=dict.fromkeys(known.members, OLD), told=frozenset())
            case _:
                return known


@cached_on_history
def trace(history: History) -> tuple[AppStep, ...]:
    return plain_steps(history, KnownGroup(), AppStep)


def on(*verbs: str) -> Callable[[Case, Step], bool]:
    return lambda case, step: step.verb in verbs


def _steps(history: History, verb: str) -> Iterator[AppStep]:
    return (step for step in trace(history) if step.verb == verb and step.accepted and step.before.members)


def _breach(step: AppStep, why: str, expected: object, observed: object, shape: str) -> Violation:
    return Violation(why, (step.op.index,), str(expected), str(observed), shape=(shape,))


@impact("A Streams group does not notice a finalized feature", "refused peer", "gating", "stuck-upgrade", links=KIP)
@upgrades("feature-app/asks-again", "584-70", "584-58", applies_to=on("app-poll"))
def asks_again(history: History) -> Iterator[Violation]:
    """The leader of a group in which no member is upgraded asks a broker again and again."""
    for step in _steps(history, "app-poll"):
        if not step.before.upgraded and not step.answer["asks"]:
            yield _breach(step, "a minute passed, and no member is upgraded", "a question", "none", "silent")


@impact("A Streams group is upgraded too early", "wrong data", "gating", "double-processing", links=KIP)
@upgrades("feature-app/support-changes-nothing", "584-70", "584-74", applies_to=on("app-poll"))
def support_changes_nothing(history: History) -> Iterator[Violation]:
    """Brokers that support the new level, where the old one is finalized, change nothing for the group."""
    for step in _steps(history, "app-poll"):
        if step.cached == OLD and step.answer["rebalances"]:
            yield _breach(step, "the broker answered the old level", "nothing", "a rebalance", "early")


@impact("A Streams group waits for every broker", "refused peer", "waiting", "stuck-upgrade", links=KIP)
@upgrades("feature-app/one-broker-is-enough", "584-71", applies_to=on("app-poll"))
def one_broker_is_enough(history: History) -> Iterator[Violation]:
    """The new level on one broker is enough to start the upgrade."""
    for step in _steps(history, "app-poll"):
        if step.cached == NEW and not step.before.upgraded and not step.answer["rebalances"]:
            yield _breach(step, "the broker answered the new level", "a rebalance", "none", "waits")


@impact("A Streams group asks although its upgrade began", "trivia", "epochs", "stale-view", links=KIP)
@upgrades("feature-app/asks-no-broker", "584-72", applies_to=on("app-poll", "app-rebalance"))
def asks_no_broker(history: History) -> Iterator[Violation]:
    """If a member is upgraded, the leader asks no broker, and starts no rebalance because of an answer."""
    for step in trace(history):
        if step.verb not in ("app-poll", "app-rebalance") or not step.accepted or not step.before.upgraded:
            continue
        if step.answer["asks"]:
            yield _breach(step, "a member is on the new level", "no question", "a question", step.verb)
        elif step.answer.get("rebalances"):
            yield _breach(step, "no broker was asked", "no rebalance", "a rebalance", "rebalances")


@impact("A Streams group goes back to the old producers", "double processing", "durability", "double-processing",
        links=KIP)  # fmt: skip
@upgrades("feature-app/never-back", "584-30", "584-72", applies_to=on("app-rebalance"))
def never_back(history: History) -> Iterator[Violation]:
    """If a member is upgraded, the leader sends the new level to all members, whatever brokers answer."""
    for step in _steps(history, "app-rebalance"):
        if step.before.upgraded and step.answer["level"] < NEW:
            yield _breach(step, "a member is on the new level", NEW, step.answer["level"], "back")


@impact("A Streams group is sent another level than is finalized", "wrong data", "gating", "stuck-upgrade", links=KIP)
@upgrades("feature-app/sends-what-it-learned", "584-30", "584-74", "584-71", applies_to=on("app-rebalance"))
def sends_what_it_learned(history: History) -> Iterator[Violation]:
    """In a rebalance before the upgrade the leader asks a broker, and sends all members the level that it answers."""
    for step in _steps(history, "app-rebalance"):
        if step.before.upgraded:
            continue
        if not step.answer["asks"]:
            yield _breach(step, "no member is upgraded", "a question", "none", "silent")
        if step.answer["level"] != step.cached:
            shape = "early" if step.answer["level"] > step.cached else "late"
            yield _breach(step, "this level was answered", step.cached, step.answer["level"], shape)


@impact("A member forgets the level of its group", "double processing", "durability", "double-processing", links=KIP)
@upgrades("feature-app/metadata-records", "584-72", "584-73", applies_to=on("app-state"))
def metadata_records(history: History) -> Iterator[Violation]:
    """Every member is in the group, and its metadata has the level of the last rebalance."""
    for step in _steps(history, "app-state"):
        found = {each["name"]: each["level"] for each in step.answer["members"]}
        if found != dict(step.before.members):
            shape = "level" if found.keys() == step.before.members.keys() else "members"
            yield _breach(step, "the last rebalance", dict(step.before.members), found, shape)


@impact("A Streams group stops", "refused peer", "answers", "stuck-upgrade", links=KIP)
@upgrades(
    "feature-app/goes-on", "584-70", "584-73", applies_to=on("app-poll", "app-rebalance", "app-state", "app-write")
)
def goes_on(history: History) -> Iterator[Violation]:
    """A group that has members polls, rebalances and writes, whatever is finalized."""
    for step in trace(history):
        if step.verb in ("app-poll", "app-rebalance", "app-state", "app-write") and not step.accepted:
            yield _breach(step, "the group has members", "an answer", f"refused: {step.error}", step.verb)


@impact("A member changes its producers on its own", "double processing", "callbacks", "double-processing", links=KIP)
@upgrades("feature-app/switches-when-instructed", "584-73", applies_to=on("app-state"))
def switches_when_instructed(history: History) -> Iterator[Violation]:
    """A member has a producer for each thread from the moment on at which the leader's instruction reaches it."""
    for step in _steps(history, "app-state"):
        for each in step.answer["members"]:
            expected = each["name"] in step.before.told
            if each["name"] in step.before.members and each["per_thread"] is not expected:
                why = f"the instruction for the new level {'reached' if expected else 'did not reach'} {each['name']}"
                shape = "late" if expected else "early"
                wanted, found = (f"a producer for each {'thread' if on else 'task'}" for on in (expected, not expected))
                yield _breach(step, why, wanted, found, shape)


@impact(
    "A member writes at a level that is not finalized", "double processing", "gating", "double-processing", links=KIP
)
@upgrades("feature-app/crashes-rather", "584-51", grade=Grade.SHOULD, applies_to=on("app-write"))
def crashes_rather(history: History) -> Iterator[Violation]:
    """A member on the new level ends if the level falls under it; a group that was downgraded first does not."""
    for step in _steps(history, "app-write"):
        if step.request["member"] in step.before.members:
            expected = step.request["member"] in step.before.told and step.before.level < NEW
            if step.answer["crashed"] is not expected:
                why = f"{step.request['member']} wrote, and level {step.before.level} is finalized"
                shape = "stays" if expected else "ends"
                yield _breach(step, why, "it ends" if expected else "it writes", shape, shape)
