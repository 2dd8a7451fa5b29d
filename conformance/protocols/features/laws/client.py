"""Laws of clients, Streams groups and tools that follow features, of released controllers, and of registrations."""

from typing import Any, Final

from kipcheck.conformance.machines.product import Did, Law, StepLaw
from kipcheck.conformance.protocols.features.model.app import NEW, State as AppState
from kipcheck.conformance.protocols.features.model.client import State as ClientState
from kipcheck.conformance.protocols.features.model.kraft import State as KraftState
from kipcheck.conformance.protocols.features.model.quorum import State as QuorumState
from kipcheck.conformance.protocols.features.model.ranges import Range
from kipcheck.conformance.protocols.features.model.tool import State as ToolState
from kipcheck.conformance.protocols.features.model.zookeeper import BELOW_MIGRATION, State as ZkState
from kipcheck.conformance.protocols.features.ops.app import Begin, Event as AppEvent, Rebalance, Tell, Wipe
from kipcheck.conformance.protocols.features.ops.client import Event as ClientEvent, StartClient
from kipcheck.conformance.protocols.features.ops.commands import Event as CommandEvent
from kipcheck.conformance.protocols.features.ops.quorum import Event as QuorumEvent, QuorumFormat
from kipcheck.conformance.protocols.features.ops.tool import Event as ToolEvent
from kipcheck.conformance.protocols.features.ops.zookeeper import DeleteNode, Event as ZkEvent, StartController


def _back(index: int, before: AppState, event: AppEvent, did: Did[AppState, Any]) -> str | None:
    """If a member is upgraded, every later level is the new one, until the application is wiped."""
    if not isinstance(event, Rebalance) or before.newest < NEW:
        return None
    behind = [each.name for each in did.part.members if each.level < NEW]
    return f"{behind[0]} is sent the old level" if behind else None


def _switches(index: int, before: AppState, event: AppEvent, did: Did[AppState, Any]) -> str | None:
    """A member changes its producers only when an instruction reaches it."""
    if isinstance(event, Tell | Wipe | Begin):
        return None
    for each in did.part.members:
        own = before.member(each.name)
        if own is not None and own.told != each.told:
            return f"{each.name} changes its producers"
    return None


APP_LAWS: Final[tuple[StepLaw[AppState, AppEvent, Any], ...]] = (
    StepLaw("feature-app/never-back", _back),
    StepLaw("feature-app/switches-when-instructed", _switches),
)


def client_laws(ordered: bool) -> tuple[StepLaw[ClientState, ClientEvent, Any], ...]:
    """Of a client that keeps the order of epochs, or takes answers as they come."""
    return (StepLaw("feature-client/never-goes-back", _forward),) if ordered else ()


def _forward(index: int, before: ClientState, event: ClientEvent, did: Did[ClientState, Any]) -> str | None:
    """The epoch that a client knows never falls, until it starts anew."""
    falls = did.part.epoch < before.epoch and not isinstance(event, StartClient)
    return f"the client goes from epoch {before.epoch} to {did.part.epoch}" if falls else None


def _fits(views: tuple[KraftState]) -> str | None:
    """Each registered broker supports every finalized level of a feature that it declares."""
    (state,) = views
    for number, declared in state.brokers:
        for name, level in state.levels:
            if not dict(declared).get(name, Range(level, level)).holds(level):
                return f"{name} is at {level}, and broker {number} does not support it"
    return None


def _cluster(index: int, state: KraftState) -> KraftState:
    return state


REGISTERED: Final[Law[KraftState]] = Law("kraft-brokers/refuses-incompatible", _cluster, _fits)


def _status(index: int, before: ZkState, event: ZkEvent, did: Did[ZkState, Any]) -> str | None:
    """After the start of a controller the node is enabled exactly at the migration version or above."""
    if not isinstance(event, StartController):
        return None
    node, active = did.part.node, event.inter_broker != BELOW_MIGRATION
    return None if node is not None and node.enabled is active else f"a controller at {event.inter_broker}: {node}"


def _counts(index: int, before: ZkState, event: ZkEvent, did: Did[ZkState, Any]) -> str | None:
    """The epoch rises by one with each change, and at no other time, unless the node is deleted."""
    old, new = before.node, did.part.node
    if old is None or isinstance(event, DeleteNode):
        return None
    if new is None or new.epoch != old.epoch + (new != old):
        return f"the node goes from {old} to {new}"
    return None


ZOOKEEPER_LAWS: Final[tuple[StepLaw[ZkState, ZkEvent, Any], ...]] = (
    StepLaw("zookeeper-features/status-follows-version", _status),
    StepLaw("zookeeper-features/epoch-counts-writes", _counts),
)


def _dry(index: int, before: ToolState, event: ToolEvent, did: Did[ToolState, Any]) -> str | None:
    """A dry run changes nothing."""
    return "a dry run changes the cluster" if getattr(event, "dry_run", False) and did.part != before else None


TOOL_LAWS: Final[tuple[StepLaw[ToolState, ToolEvent, Any], ...]] = (StepLaw("feature-tool/dry-run", _dry),)


def _dry_command(index: int, before: KraftState, event: CommandEvent, did: Did[KraftState, Any]) -> str | None:
    """A dry run changes nothing."""
    return "a dry run changes the cluster" if getattr(event, "dry_run", False) and did.part != before else None


DRY_COMMANDS: Final[StepLaw[KraftState, CommandEvent, Any]] = StepLaw("feature-commands/dry-run", _dry_command)


def _majority(index: int, before: QuorumState, event: QuorumEvent, did: Did[QuorumState, Any]) -> str | None:
    """What is committed changes only while a majority runs."""
    changed = did.part.cluster != before.cluster and not isinstance(event, QuorumFormat)
    return "an update is committed without a majority" if changed and not did.part.has_majority else None


MAJORITY_APPLIES: Final[StepLaw[QuorumState, QuorumEvent, Any]] = StepLaw("kraft-quorum/needs-a-majority", _majority)
