"""Invariants of a cluster with KIP-384's setting.

They read the answers, and the table of settings; none compares with the model. After a violation what was answered
counts for the following steps.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import impact, invariant, steps_of
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, plain_steps
from kipcheck.conformance.protocols.persistent_metadata.ops import INVALID_CONFIG, REPLICATED, SHARED, UNREADABLE
from kipcheck.conformance.protocols.persistent_metadata.settings import (
    NEW_FORMAT,
    Rank,
    Settings,
    admits,
    name,
    rank,
    resolved,
)

CONFIGURATION: Final = "persistent-metadata/configuration"
FORMATS: Final = "persistent-metadata/formats"
ROLLS: Final = "persistent-metadata/rolls"
configuration = partial(invariant, role=Role.BROKER, checks=(CONFIGURATION,))
formats = partial(invariant, role=Role.BROKER, checks=(FORMATS,))
rolls = partial(invariant, role=Role.BROKER, checks=(ROLLS,))
LINKS: Final = ("KIP-384", "KAFKA-7481")
NEWEST_BINARY: Final = "2.2"


@dataclass(frozen=True, slots=True)
class Cluster:
    """What is known of the cluster from the answers so far."""

    live: Mapping[int, Settings] = field(default_factory=dict)
    """The settings with which the live brokers were started."""
    new: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """Broker -> the stores of its directory with the new format, and the step that wrote it."""
    shared: Mapping[str, int] = field(default_factory=dict)
    topic_format: Rank | None = None
    raised: int | None = None
    """The first step that allowed a new format of what is not compatible."""

    def stored(self, broker: int) -> dict[str, int]:
        return {**self.new.get(broker, {}), **self.shared}

    def fetched(self, broker: int) -> dict[str, int]:
        """What a broker finds when it starts: its directory, and what the live brokers replicate to it."""
        found = self.stored(broker)
        for number in self.live:
            if number != broker:
                found |= {store: at for store, at in self.new.get(number, {}).items() if store in REPLICATED}
        return found


@dataclass(frozen=True, slots=True)
class ClusterStep(AnsweredStep[Step, Mapping[str, Any], Cluster]):
    @property
    def requested(self) -> Settings | None:
        """The settings of a start with their defaults; None for names that the binary does not know."""
        step = self.request
        return resolved(step["binary"], step["inter_broker"], step["persistent"], step["format"])

    @property
    def gate(self) -> Rank | None:
        """The setting that decides about the format of a write; None if the broker does not know it."""
        step, settings = self.request, self.before.live[self.request["broker"]]
        if step["compatible"]:
            return settings.inter_broker
        if step["store"] == "messages":
            return settings.format if self.before.topic_format is None else self.before.topic_format
        return settings.persistent

    def known_after(self) -> Cluster:
        return _after(self)


@cached_on_history
def trace(history: History) -> tuple[ClusterStep, ...]:
    return plain_steps(history, Cluster(), ClusterStep)


def _after(answered: ClusterStep) -> Cluster:
    before, step = answered.before, answered.request
    match step.verb:
        case "start-binary":
            stopped = {number: each for number, each in before.live.items() if number != step["broker"]}
            settings = answered.requested
            if not answered.accepted or settings is None:
                return replace(before, live=stopped)
            found = {store: at for store, at in before.fetched(step["broker"]).items() if store != SHARED}
            return replace(
                before,
                live={**stopped, step["broker"]: settings},
                new={**before.new, step["broker"]: found},
                raised=before.raised if before.raised is not None or not _allows(settings) else answered.op.index,
            )
        case "stop-binary":
            return replace(before, live={each: at for each, at in before.live.items() if each != step["broker"]})
        case "topic-format" if answered.accepted:
            wanted = None if step["format"] is None else rank(step["format"], NEWEST_BINARY)
            allows = wanted is not None and wanted[0] >= NEW_FORMAT
            first = answered.op.index if allows and before.raised is None else before.raised
            return replace(before, topic_format=wanted, raised=first)
        case "write-store" if answered.answer.get("format") == 2 and not step["compatible"]:
            return _written(before, step["broker"], step["store"], answered.op.index)
    return before


def _allows(settings: Settings) -> bool:
    return any(each is not None and each[0] >= NEW_FORMAT for each in (settings.persistent, settings.format))


def _written(before: Cluster, writer: int, store: str, at: int) -> Cluster:
    if store == SHARED:
        return replace(before, shared={store: before.shared.get(store, at)})
    takers = before.live if store in REPLICATED else (writer,)
    new = {each: {store: at, **before.new.get(each, {})} for each in takers}
    return replace(before, new={**before.new, **new})


def starts(history: History, accepted: bool) -> Iterator[ClusterStep]:
    return (each for each in trace(history) if each.op.step.verb == "start-binary" and each.accepted is accepted)


def breach(answered: ClusterStep, why: str, expected: str, *shape: str, at: int | None = None) -> Violation:
    first = () if at is None else (at,)
    observed = f"refused: {answered.error}" if answered.error else "accepted"
    for key in ("format", "persistent"):
        if answered.answer.get(key) is not None:
            observed += f", {key} {answered.answer.get(key)}"
    return Violation(why, (*first, answered.op.index), expected, observed, shape=shape)


# The configuration


@impact("A broker starts with a version that does not exist", "wrong data", "guards", "misled-operator", links=LINKS)
@configuration("persistent-metadata/known-names", "384-01", applies_to=steps_of("start-binary", "topic-format"))
def known_names(history: History) -> Iterator[Violation]:
    """A setting takes the names of versions that the binary knows, and refuses all others."""
    for each in trace(history):
        step = each.op.step
        if not each.accepted:
            continue
        if step.verb == "start-binary" and each.requested is None:
            yield breach(each, "a setting has a name that the binary does not know", INVALID_CONFIG, "unknown name")
        elif step.verb == "topic-format" and step["format"] is not None and rank(step["format"], NEWEST_BINARY) is None:
            why = f"the topic has the message format {step['format']}, which no binary knows"
            yield breach(each, why, INVALID_CONFIG, "unknown name", "topic")


@impact(
    "A broker runs with other settings than the operator expects", "wrong data", "guards", "lost-setting", links=LINKS
)
@configuration("persistent-metadata/defaults", "384-02", "384-18", applies_to=steps_of("start-binary"))
def defaults(history: History) -> Iterator[Violation]:
    """A setting has the given value; without one, the persistent metadata version is the message format's."""
    for each in starts(history, accepted=True):
        settings, step = each.requested, each.op.step
        if settings is None:
            continue
        wanted = {
            "inter_broker": settings.inter_broker, "format": settings.format, "persistent": settings.persistent,
        }  # fmt: skip
        for key, right in wanted.items():
            reported = each.answer.get(key)
            found = rank(reported, NEWEST_BINARY) if isinstance(reported, str) else None
            if found != right:
                given = "set" if step[key] is not None else "not set"
                expected = "none, because the binary does not know it" if right is None else name(right)
                yield breach(each, f"{key} is {reported}, and was {given}", f"{key}: {expected}", key, given)


@impact("Messages in a newer format take away the way back", "wrong data", "guards", "unsafe-downgrade", links=LINKS)
@configuration(
    "persistent-metadata/format-bound", "384-03", "384-17", applies_to=steps_of("start-binary", "topic-format")
)
def format_bound(history: History) -> Iterator[Violation]:
    """No message format is above the persistent metadata version, neither a broker's nor a topic's."""
    for each in trace(history):
        step, topic = each.op.step, each.before.topic_format
        if not each.accepted:
            continue
        if step.verb == "start-binary" and (settings := each.requested) is not None:
            if not admits(settings, settings.format):
                why = f"the message format {name(settings.format)} is above the persistent metadata version"
                yield breach(each, why, INVALID_CONFIG, "broker")
            elif topic is not None and not admits(settings, topic):
                why = f"the topic's message format {name(topic)} is above what the broker allows"
                yield breach(each, why, INVALID_CONFIG, "topic", "at start")
        elif step.verb == "topic-format" and step["format"] is not None:
            wanted = rank(step["format"], NEWEST_BINARY)
            if wanted is not None and not all(admits(other, wanted) for other in each.before.live.values()):
                why = f"the topic's message format {step['format']} is above what a live broker allows"
                yield breach(each, why, INVALID_CONFIG, "topic", "when set")


@impact("A valid configuration is refused", "refused peer", "guards", "stuck-upgrade", links=LINKS)
@configuration(
    "persistent-metadata/nothing-else-refused", "384-08", "384-19", "384-01", "384-02", "384-03", "384-17", "384-18",
    "384-25", applies_to=steps_of("start-binary", "topic-format"),
)  # fmt: skip
def nothing_else_refused(history: History) -> Iterator[Violation]:
    """Settings are refused for an unknown name or the message format's bound, and for nothing else."""
    for each in trace(history):
        step = each.op.step
        if each.error in ("", UNREADABLE) or step.verb not in ("start-binary", "topic-format"):
            continue
        if _is_legal(each):
            yield breach(each, "valid settings were refused", "accepted", step.verb)


def _is_legal(each: ClusterStep) -> bool:
    """Whether the names of a start or of a topic's format are known, and the format is within the bound."""
    step, topic = each.request, each.before.topic_format
    if step.verb == "start-binary":
        settings = each.requested
        return settings is not None and all(
            format is None or admits(settings, format) for format in (settings.format, topic)
        )
    wanted = None if step["format"] is None else rank(step["format"], NEWEST_BINARY)
    return step["format"] is None or (
        wanted is not None and all(admits(other, wanted) for other in each.before.live.values())
    )


# The formats


GATED: Final[Mapping[str, tuple[str, str]]] = {
    "offsets": ("384-04", "the __consumer_offsets records"),
    "transactions": ("384-10", "the __transaction_state records"),
    "index": ("384-11", "index files"),
    "snapshot": ("384-12", "producer snapshots"),
    "epochs": ("384-13", "leader epoch checkpoints"),
    "replication": ("384-14", "the replication checkpoint"),
    "cleaner": ("384-15", "the cleaner checkpoint"),
    "zookeeper": ("384-16", "ZooKeeper metadata"),
    "messages": ("384-27", "messages"),
}
"""Store -> the requirement of its own, and what it is."""


def _gate_of(store: str, requirement: str, what: str) -> None:
    """Declares the invariant of one store: an implementation may forget one of them alone."""
    setting = "log.message.format.version" if store == "messages" else "persistent.metadata.version"

    def is_written(case: Case, step: Step) -> bool:
        return step.verb == "write-store" and step["store"] == store and not step["compatible"]

    def search(history: History) -> Iterator[Violation]:
        yield from _wrong_formats(history, lambda step: step["store"] == store and not step["compatible"])

    search.__doc__ = f"An incompatible format of {what} is written once {setting} of the writer allows it, not before."
    name = "persistent-metadata/gated" if store == "offsets" else f"persistent-metadata/gates-{store}"
    more = ("384-04", "384-19", "384-26") if store != "offsets" else ("384-19", "384-26")
    declare = formats(
        name, requirement, *more, applies_to=steps_of("start-binary", "topic-format", "write-store", "stop-binary"),
        needs=is_written,
    )  # fmt: skip
    title = f"An older binary cannot read {what} of a newer one, or never gets the new format"
    impact(title, "wrong data", "gating", "unreadable", links=LINKS)(declare(search))


for _store, (_requirement, _what) in GATED.items():
    _gate_of(_store, _requirement, _what)


@impact("A feature of the new version cannot be tested", "wrong data", "gating", "stuck-upgrade", links=LINKS)
@formats(
    "persistent-metadata/compatible-at-once", "384-04", "384-16",
    applies_to=steps_of("start-binary", "topic-format", "write-store", "stop-binary"),
    needs=steps_of("start-binary", "write-store"),
)  # fmt: skip
def compatible_at_once(history: History) -> Iterator[Violation]:
    """A compatible change follows the inter-broker version at once."""
    yield from _wrong_formats(history, lambda step: step["compatible"])


def _wrong_formats(history: History, is_judged: Callable[[Step], bool]) -> Iterator[Violation]:
    """Of the writes by binaries that have a new format."""
    for each in trace(history):
        step, written = each.op.step, each.answer.get("format")
        if step.verb != "write-store" or not is_judged(step) or step["broker"] not in each.before.live:
            continue
        if not each.before.live[step["broker"]].reads_new_format:
            continue
        gate = each.gate
        right = 2 if gate is not None and gate[0] >= NEW_FORMAT else 1
        if each.accepted and written != right:
            setting = "a setting that its binary does not know" if gate is None else f"the setting at {name(gate)}"
            why = f"{step['store']} is written in format {written}, with {setting}"
            yield breach(each, why, f"format {right}", "early" if right == 1 else "late")


@impact("The release with the setting changes what is stored", "wrong data", "gating", "unreadable", links=LINKS)
@formats(
    "persistent-metadata/brings-no-format", "384-20", applies_to=steps_of("start-binary", "write-store", "stop-binary"),
    needs=steps_of("write-store"),
)  # fmt: skip
def brings_no_format(history: History) -> Iterator[Violation]:
    """The release that brings the setting, and each one before it, writes every store in its old format."""
    for each in trace(history):
        step, written = each.op.step, each.answer.get("format")
        settings = each.before.live.get(step["broker"]) if step.verb == "write-store" else None
        if each.accepted and settings is not None and not settings.reads_new_format and written != 1:
            why = f"{step['store']} is written in format {written} by the binary {settings.binary}"
            yield breach(each, why, "format 1", "changed")


@impact(
    "A broker that runs does not store or read its metadata", "refused peer", "guards", "stuck-upgrade", links=LINKS
)
@formats(
    "persistent-metadata/serves", "384-04", "384-05", "384-06", "384-07", "384-10", "384-11", "384-12", "384-13",
    "384-14", "384-15", "384-16", "384-20", "384-25", "384-26", "384-27",
    applies_to=steps_of("start-binary", "topic-format", "write-store", "read-store", "stop-binary"),
    needs=steps_of("start-binary", "write-store", "read-store"),
)  # fmt: skip
def serves(history: History) -> Iterator[Violation]:
    """A live broker writes every store and reads what its binary knows; a binary with the new format starts on it."""
    for each in trace(history):
        step = each.op.step
        if not each.error or step.verb not in ("start-binary", "write-store", "read-store"):
            continue
        settings = each.requested if step.verb == "start-binary" else each.before.live.get(step["broker"])
        if settings is None:
            continue
        if step.verb == "start-binary":
            refused = each.error == UNREADABLE and settings.reads_new_format and _is_legal(each)
        elif step.verb == "read-store" and not settings.reads_new_format:
            refused = step["store"] not in each.before.stored(step["broker"])
        else:
            refused = True
        if refused:
            yield breach(each, f"the broker with the binary {settings.binary} refuses it", "accepted", step.verb)


@impact("A follower changes the leader's records", "wrong data", "versions", "wrong-data", links=LINKS)
@formats("persistent-metadata/leaders-format", "384-07")
def leaders_format(history: History) -> Iterator[Violation]:
    """A broker finds what was written: a follower stores the leader's records unchanged, whatever its own settings."""
    for each in trace(history):
        step = each.op.step
        if step.verb == "read-store" and each.accepted and step["broker"] in each.before.live:
            written = each.before.stored(step["broker"])
            right = 2 if step["store"] in written else 1
            if each.answer.get("format") != right and each.before.live[step["broker"]].reads_new_format:
                why = f"{step['store']} contains format {each.answer.get('format')}, but format {right} was written"
                yield breach(
                    each, why, f"format {right}", "lost" if right == 2 else "made", at=written.get(step["store"])
                )


# The way back


@impact("A cluster cannot go back to its old release", "refused peer", "durability", "unreadable", links=LINKS)
@rolls(
    "persistent-metadata/way-back", "384-05", "384-20",
    applies_to=steps_of("start-binary", "topic-format", "read-store"),
)  # fmt: skip
def way_back(history: History) -> Iterator[Violation]:
    """Until persistent.metadata.version is raised, every older binary reads all that is stored."""
    for each in trace(history):
        step = each.op.step
        if each.error == UNREADABLE and each.before.raised is None and not each.before.fetched(step["broker"]):
            what = step["store"] if step.verb == "read-store" else "its directory"
            yield breach(each, f"the broker cannot read {what}, though no setting was raised", "accepted", step.verb)


@impact(
    "An old binary reads data that it does not know",
    "wrong data",
    "guards",
    "unsafe-downgrade",
    "wrong-data",
    links=LINKS,
)
@rolls("persistent-metadata/no-blind-downgrade", "384-06")
def no_blind_downgrade(history: History) -> Iterator[Violation]:
    """Once the new format is written, a binary that cannot read it is refused, or reports the store as unreadable."""
    for each in trace(history):
        step = each.op.step
        if step.verb == "start-binary" and each.accepted and (settings := each.requested) is not None:
            unread = {} if settings.reads_new_format else each.before.fetched(step["broker"])
            for store, at in sorted(unread.items())[:1]:
                why = f"a broker with the binary {step['binary']} starts, and cannot read {store}"
                yield breach(each, why, UNREADABLE, "start", at=at)
        elif step.verb == "read-store" and each.accepted and step["broker"] in each.before.live:
            first = each.before.stored(step["broker"]).get(step["store"])
            binary = each.before.live[step["broker"]]
            if first is not None and not binary.reads_new_format:
                why = f"a broker with the binary {binary.binary} reads {step['store']}, which has the new format"
                yield breach(each, why, UNREADABLE, "read", at=first)
