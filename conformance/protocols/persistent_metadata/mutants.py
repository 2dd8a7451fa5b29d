"""Clusters with one planted defect each. Least cases are in shorthand."""

from dataclasses import replace

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutants_of
from kipcheck.conformance.protocols.persistent_metadata import ops
from kipcheck.conformance.protocols.persistent_metadata.invariants import CONFIGURATION, FORMATS, GATED, ROLLS
from kipcheck.conformance.protocols.persistent_metadata.model import NEW, OLD, PersistentCluster, State
from kipcheck.conformance.protocols.persistent_metadata.settings import (
    LINES,
    NEW_FORMAT,
    STEPS,
    Rank,
    Settings,
    admits,
    knows_setting,
    newest,
    rank,
    resolved,
)
from kipcheck.conformance.protocols.persistent_metadata.tables import STORES


class MutantCluster(MachineMutant, PersistentCluster):
    """The reference machine as an adapter, with overridable decisions."""

    operations = ops.OPERATIONS


configuration = mutants_of(CONFIGURATION, ops.OPERATIONS.machine)
formats = mutants_of(FORMATS, ops.OPERATIONS.machine)
rolls = mutants_of(ROLLS, ops.OPERATIONS.machine)
# The configuration


@configuration("known-names", "start 0 2.1 pmv 2.2")
class TakesUnknownNames(MutantCluster):
    """A name that the binary does not know stands for its newest version."""

    def settings(self, event: ops.Start) -> Settings | None:
        return super().settings(event) or resolved(event.binary, event.inter_broker, None, event.format)


@configuration("defaults", "start 0 2.1 format 2.0")
class DefaultsToTheBinary(MutantCluster):
    """Without a value persistent.metadata.version is the newest that the binary knows."""

    def settings(self, event: ops.Start) -> Settings | None:
        found = super().settings(event)
        if found is None or found.persistent is None or event.persistent is not None:
            return found
        return replace(found, persistent=newest(event.binary))


@configuration("known-names", "start 0 2.1 pmv 2.0-IV2 format 2.0")
class TakesTheStepAfterTheLast(MutantCluster):
    """The step after the last one of a line stands for the line."""

    def settings(self, event: ops.Start) -> Settings | None:
        given = (event.inter_broker, event.persistent, event.format)
        return resolved(event.binary, *(None if each is None else self.line(each) for each in given))

    def line(self, text: str) -> str:
        line, _, step = text.partition("-IV")
        return line if step == str(STEPS.get(line)) else text


@configuration("defaults", "start 0 2.1 ibp 2.0")
class FollowsTheLower(MutantCluster):
    """Without a value persistent.metadata.version is the lower of the two other settings."""

    def settings(self, event: ops.Start) -> Settings | None:
        found = super().settings(event)
        if found is None or found.persistent is None or event.persistent is not None:
            return found
        return replace(found, persistent=min(found.format, found.inter_broker))

    def bounded(self, settings: Settings, topic_format: Rank | None) -> bool:
        return True


@configuration("format-bound", "start 0 2.1 pmv 2.0")
class IgnoresTheBound(MutantCluster):
    """The message format of a broker may be above its persistent metadata version."""

    def bounded(self, settings: Settings, topic_format: Rank | None) -> bool:
        return topic_format is None or admits(settings, topic_format)


@configuration("format-bound", "start 0 2.1 format 2.0; topic-format 2.1")
class BoundsBrokersOnly(MutantCluster):
    """The message format of a topic may be above the persistent metadata version."""

    def bounded(self, settings: Settings, topic_format: Rank | None) -> bool:
        return admits(settings, settings.format)


@configuration("defaults", "start 0 2.1 pmv 2.1 format 2.0")
class IgnoresTheValue(MutantCluster):
    """The persistent metadata version is always that of the message format."""

    def settings(self, event: ops.Start) -> Settings | None:
        return super().settings(replace(event, persistent=None) if super().settings(event) is not None else event)


@configuration("format-bound", "start 0 2.1; start 1 2.1 format 2.0; topic-format 2.1")
class BoundsByAnyBroker(MutantCluster):
    """The message format of a topic may be what one of the live brokers allows."""

    def set_topic_format(self, state: State, text: str | None) -> Transition[State, ops.Action]:
        wanted = None if text is None else rank(text, "2.2")
        if wanted is not None and any(self.bounded(settings, wanted) for _, settings in state.live()):
            return Transition(replace(state, topic_format=wanted))
        return super().set_topic_format(state, text)


@configuration("nothing-else-refused", "start 0 2.1")
class NeedsTheSetting(MutantCluster):
    """A configuration of an earlier release, which lacks the setting, is refused."""

    def settings(self, event: ops.Start) -> Settings | None:
        return None if event.persistent is None and knows_setting(event.binary) else super().settings(event)


@configuration("nothing-else-refused", "start 0 2.1 pmv 2.1-IV2")
class TakesLinesOnly(MutantCluster):
    """A step of a line is no name of a version."""

    def settings(self, event: ops.Start) -> Settings | None:
        return None if "-IV" in (event.persistent or "") else super().settings(event)


@configuration("nothing-else-refused", "start 0 2.1")
class BoundsBelow(MutantCluster):
    """The message format has to be below the persistent metadata version."""

    def bounded(self, settings: Settings, topic_format: Rank | None) -> bool:
        return super().bounded(settings, topic_format) and settings.format != settings.persistent


@configuration("nothing-else-refused", "topic-format 2.1")
class TakesNoOverride(MutantCluster):
    """No topic may override the message format, as if that were a second setting of the same thing."""

    def set_topic_format(self, state: State, text: str | None) -> Transition[State, ops.Action]:
        return Transition(state, () if text is None else (ops.Rejected(ops.INVALID_CONFIG),))


@configuration("nothing-else-refused", "start 0 2.1 ibp 2.0")
class BoundsByTheInterBrokerVersion(MutantCluster):
    """The persistent metadata version may not be above the inter-broker version."""

    def bounded(self, settings: Settings, topic_format: Rank | None) -> bool:
        above = settings.persistent is not None and settings.persistent > settings.inter_broker
        return super().bounded(settings, topic_format) and not above


# The formats


@formats("gated", "start 0 2.2 format 2.1; write 0 offsets")
class GatesByTheInterBrokerVersion(MutantCluster):
    """The new setting is read, and the inter-broker version decides, as in every release."""

    def gate(self, settings: Settings, event: ops.Write, topic_format: Rank | None) -> Rank | None:
        return settings.inter_broker


@formats("gates-snapshot", "start 0 2.2 format 2.1; write 0 snapshot")
class GatesTopicsOnly(MutantCluster):
    """The files of a broker follow the inter-broker version."""

    def gate(self, settings: Settings, event: ops.Write, topic_format: Rank | None) -> Rank | None:
        if event.store in ("index", "snapshot", "epochs", "replication", "cleaner"):
            return settings.inter_broker
        return super().gate(settings, event, topic_format)


@formats("gated", "start 0 2.2 pmv 2.2-IV0 format 2.1; write 0 offsets")
class GatesOneStepLate(MutantCluster):
    """The first step of the line with the new format does not allow it."""

    def allows(self, setting: Rank) -> bool:
        return setting > (NEW_FORMAT, 0)


@formats("gated", "start 0 2.2 format 2.1; write 0 offsets")
class GatesOneStepEarly(MutantCluster):
    """The last step before the line with the new format allows it."""

    def allows(self, setting: Rank) -> bool:
        return setting >= (NEW_FORMAT - 1, STEPS[LINES[NEW_FORMAT - 1]] - 1)


@formats("gated", "start 0 2.2; start 1 2.2 format 2.1; write 1 offsets")
class GatesByTheHighest(MutantCluster):
    """One broker with the new setting lets every leader write the new format."""

    def write(self, state: State, event: ops.Write) -> Transition[State, ops.Action]:
        self.others = [each.persistent for _, each in state.live() if each.persistent is not None]
        return super().write(state, event)

    def gate(self, settings: Settings, event: ops.Write, topic_format: Rank | None) -> Rank | None:
        own = super().gate(settings, event, topic_format)
        return own if event.compatible or event.store == "messages" else self.chosen(own)

    def chosen(self, own: Rank | None) -> Rank | None:
        return max(self.others, default=own) if own is not None else own


@formats("gated", "start 0 2.2; start 1 2.2 format 2.1; write 0 offsets")
class GatesByTheLowest(GatesByTheHighest):
    """No leader writes the new format before every broker has the new setting."""

    def chosen(self, own: Rank | None) -> Rank | None:
        return min(self.others, default=own) if own is not None else own


@formats("gated", "start 0 2.2 ibp 2.1; write 0 offsets")
class HoldsBackByTheInterBrokerVersion(MutantCluster):
    """An incompatible change waits for the inter-broker version, too."""

    def gate(self, settings: Settings, event: ops.Write, topic_format: Rank | None) -> Rank | None:
        own = super().gate(settings, event, topic_format)
        return None if own is None else min(own, settings.inter_broker)


@formats("gates-messages", "start 0 2.2 pmv 2.2 format 2.1; write 0 messages")
class GatesMessagesByTheSetting(MutantCluster):
    """Messages follow the persistent metadata version."""

    def gate(self, settings: Settings, event: ops.Write, topic_format: Rank | None) -> Rank | None:
        return super().gate(settings, replace(event, store="offsets"), topic_format)


def _upgrades_early(store: ops.Store) -> type[MutantCluster]:
    class Early(MutantCluster):
        def gate(self, settings: Settings, event: ops.Write, topic_format: Rank | None) -> Rank | None:
            own = super().gate(settings, event, topic_format)
            return settings.inter_broker if event.store == store else own

    Early.__name__ = f"Upgrades{store.title()}Early"
    Early.__doc__ = f"The format of {GATED[store][1]} follows the inter-broker version."
    return Early


def _never_upgrades(store: ops.Store) -> type[MutantCluster]:
    class Never(MutantCluster):
        def gate(self, settings: Settings, event: ops.Write, topic_format: Rank | None) -> Rank | None:
            return super().gate(settings, event, topic_format) if event.store != store or event.compatible else None

    Never.__name__ = f"NeverUpgrades{store.title()}"
    Never.__doc__ = f"{GATED[store][1].capitalize()} keep the old format, whatever the settings."
    return Never


for _store in STORES:
    _name = "gated" if _store == "offsets" else f"gates-{_store}"
    formats(_name, f"start 0 2.2 format 2.1; write 0 {_store}")(_upgrades_early(_store))
    formats(_name, f"start 0 2.2; write 0 {_store}")(_never_upgrades(_store))


@formats("brings-no-format", "start 0 2.1; write 0 offsets")
class ChangesFormatsWithTheSetting(MutantCluster):
    """The release with the setting writes offsets in a format of its own."""

    def write(self, state: State, event: ops.Write) -> Transition[State, ops.Action]:
        settings = state.broker(event.broker).settings
        if settings is not None and settings.binary == "2.1" and event.store == "offsets":
            return Transition(state, (ops.Written(NEW),))
        return super().write(state, event)


@formats("serves", "start 0 2.2; write 0 offsets; start 0 2.2 format 2.1; read 0 offsets")
class ReadsByTheSetting(MutantCluster):
    """A broker reads the new format only if its own setting allows it."""

    def loads(self, settings: Settings) -> bool:
        return super().loads(settings) and (settings.persistent is None or self.allows(settings.persistent))


@formats("serves", "start 0 2.0; write 0 offsets")
class WritesNothing(MutantCluster):
    """A broker refuses each write."""

    def write(self, state: State, event: ops.Write) -> Transition[State, ops.Action]:
        return Transition(state, (ops.Rejected(ops.INVALID_CONFIG),))


@formats("serves", "start 0 2.2; start 1 2.2 format 2.1; write 1 offsets")
class WritesNothingDuringTheRoll(MutantCluster):
    """A broker with the old setting writes nothing while another one has the new setting."""

    def write(self, state: State, event: ops.Write) -> Transition[State, ops.Action]:
        settings, live = state.broker(event.broker).settings, [each.persistent for _, each in state.live()]
        behind = (
            settings is not None
            and settings.persistent is not None
            and settings.persistent < max(each for each in live if each is not None)
        )
        return Transition(state, (ops.Rejected(ops.INVALID_CONFIG),)) if behind else super().write(state, event)


@formats("serves", "start 0 2.2; write 0 offsets; start 0 2.2")
class NeedsAnEmptyDirectory(MutantCluster):
    """No broker starts on a directory that contains the new format."""

    def starts_on(self, settings: Settings, new: frozenset[ops.Store]) -> bool:
        return not new


@formats("compatible-at-once", "start 0 2.2 ibp 2.1; write 0 offsets~")
class WritesCompatibleChangesAnyway(MutantCluster):
    """A compatible change does not wait for the inter-broker version."""

    def gate(self, settings: Settings, event: ops.Write, topic_format: Rank | None) -> Rank | None:
        newest_known = newest(settings.binary)
        return newest_known if event.compatible else super().gate(settings, event, topic_format)


@formats("leaders-format", "start 0 2.2; write 0 offsets; start 0 2.2 format 2.1; read 0 offsets")
class ForgetsNewRecords(MutantCluster):
    """A broker drops the records of the new format when its setting is lowered."""

    def opened(self, settings: Settings, new: frozenset[ops.Store]) -> frozenset[ops.Store]:
        return new if settings.persistent is None or self.allows(settings.persistent) else frozenset()

    def fetched(self, state: State, number: int) -> frozenset[ops.Store]:
        return frozenset()


@formats("compatible-at-once", "start 0 2.2 format 2.1; write 0 offsets~")
class HoldsBackCompatibleChanges(MutantCluster):
    """Compatible changes wait for the persistent metadata version, too."""

    def gate(self, settings: Settings, event: ops.Write, topic_format: Rank | None) -> Rank | None:
        return super().gate(settings, replace(event, compatible=False), topic_format)


@formats("leaders-format", "start 0 2.2; start 1 2.2 format 2.1; write 0 offsets; read 1 offsets")
class FollowersConvert(MutantCluster):
    """A follower rewrites the records of the leader in the format of its own setting."""

    def takes(self, settings: Settings, store: ops.Store) -> bool:
        return settings.persistent is not None and settings.persistent[0] >= NEW_FORMAT


@formats("leaders-format", "start 0 2.2 format 2.1; start 1 2.2; write 0 offsets; read 1 offsets")
class FollowersUpgrade(MutantCluster):
    """A follower with the new setting stores the old records of its leader in the new format."""

    def write(self, state: State, event: ops.Write) -> Transition[State, ops.Action]:
        after, actions = super().write(state, event)
        if event.store in ops.REPLICATED and actions == (ops.Written(OLD),) and not event.compatible:
            for each, settings in state.live():
                if each.number != event.broker and settings.persistent and self.allows(settings.persistent):
                    after = after.having(replace(each, new=each.new | {event.store}))
        return Transition(after, actions)


# The way back


@rolls("way-back", "start 0 2.0; start 0 2.0")
class StartsOnce(MutantCluster):
    """A directory that a broker has used is refused, as if every restart were a downgrade."""

    def start(self, state: State, event: ops.Start) -> Transition[State, ops.Action]:
        after, actions = super().start(state, event)
        if any(each.number == event.broker for each in state.brokers) and isinstance(actions[0], ops.Started):
            return Transition(state.without(event.broker), (ops.Rejected(ops.UNREADABLE),))
        return Transition(after, actions)


@rolls("way-back", "start 0 2.2 format 2.1; start 0 2.0")
class ConvertsAtTheStart(MutantCluster):
    """The new binary writes its snapshots anew when it starts, in the format that it prefers."""

    def opened(self, settings: Settings, new: frozenset[ops.Store]) -> frozenset[ops.Store]:
        return new | {"snapshot"} if settings.reads_new_format else new


@rolls("no-blind-downgrade", "start 0 2.2; write 0 offsets; start 0 2.0")
class StartsOnAnything(MutantCluster):
    """A binary starts on a directory that it cannot read."""

    def starts_on(self, settings: Settings, new: frozenset[ops.Store]) -> bool:
        return True


@rolls("no-blind-downgrade", "start 0 2.2; start 1 2.0; write 0 offsets; read 1 offsets")
class ReadsAnything(MutantCluster):
    """A binary reads the new format as if it were the old one."""

    def loads(self, settings: Settings) -> bool:
        return True
