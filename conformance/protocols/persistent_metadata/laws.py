"""Laws of the cluster, checked in every state of its model: they restate its invariants."""

from typing import Any

from kipcheck.conformance.machines.product import Did, Law, StepLaw
from kipcheck.conformance.protocols.persistent_metadata.model import State
from kipcheck.conformance.protocols.persistent_metadata.ops import REPLICATED, Event, Start, Write
from kipcheck.conformance.protocols.persistent_metadata.settings import admits


def _way_back(views: tuple[State]) -> str | None:
    """Without a raised setting nothing is stored that the old binary cannot read."""
    (state,) = views
    if state.raised:
        return None
    stored = next((each for each in state.brokers if each.new), None)
    if stored is not None:
        return f"broker {stored.number} has {min(stored.new)} in the new format, and no setting was raised"
    return "zookeeper has the new format, and no setting was raised" if state.shared else None


WAY_BACK: Law[State] = Law("persistent-metadata/way-back", lambda index, state: state, _way_back)


def _gated(index: int, before: State, event: Event, did: Did[State, Any]) -> str | None:
    """The new format appears in files only where its broker's settings allow it, and in topics from such a leader."""
    for each in did.part.brokers:
        made = each.new - before.broker(each.number).new
        if made and isinstance(event, Start) and not made <= REPLICATED:
            return f"broker {each.number} starts, and its {min(made - REPLICATED)} has the new format"
        if made - REPLICATED and (each.settings is None or not each.settings.reads_new_format):
            return f"broker {each.number} writes a format that its binary does not know"
    return None


GATED: StepLaw[State, Event, Event] = StepLaw("persistent-metadata/gated", _gated)


def _no_blind_downgrade(index: int, before: State, event: Event, did: Did[State, Any]) -> str | None:
    """A binary starts only on what it reads."""
    if not isinstance(event, Start):
        return None
    after = did.part.broker(event.broker)
    started = after.settings is not None and (after != before.broker(event.broker))
    if started and after.settings is not None and not after.settings.reads_new_format and after.new | did.part.shared:
        return f"broker {event.broker} starts with {event.binary} on the new format"
    return None


NO_BLIND_DOWNGRADE: StepLaw[State, Event, Event] = StepLaw(
    "persistent-metadata/no-blind-downgrade", _no_blind_downgrade
)


def _leaders_format(index: int, before: State, event: Event, did: Did[State, Any]) -> str | None:
    """What a leader writes in the new format, every live follower stores so."""
    if not isinstance(event, Write) or event.store not in REPLICATED or event.store not in _made(before, event, did):
        return None
    for each, _ in did.part.live():
        if event.store not in each.new:
            return f"broker {each.number} stores {event.store} of its leader, {event.broker}, in the old format"
    return None


def _made(before: State, event: Write, did: Did[State, Any]) -> frozenset[str]:
    return frozenset(did.part.broker(event.broker).new - before.broker(event.broker).new)


LEADERS_FORMAT: StepLaw[State, Event, Event] = StepLaw("persistent-metadata/leaders-format", _leaders_format)


def _format_bound(views: tuple[State]) -> str | None:
    """No live broker has a message format, of its own or of the topic, above its persistent metadata version."""
    (state,) = views
    for each, settings in state.live():
        if not admits(settings, settings.format):
            return f"broker {each.number} has a message format above its persistent metadata version"
        if state.topic_format is not None and not admits(settings, state.topic_format):
            return f"the topic has a message format above what broker {each.number} allows"
    return None


FORMAT_BOUND: Law[State] = Law("persistent-metadata/format-bound", lambda index, state: state, _format_bound)
LAWS = (WAY_BACK, GATED, NO_BLIND_DOWNGRADE, LEADERS_FORMAT, FORMAT_BOUND)
