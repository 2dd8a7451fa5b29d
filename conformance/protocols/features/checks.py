"""Checks of controllers: the feature updates of KIP-584's draft."""

from collections.abc import Iterable
from dataclasses import replace

from kipcheck.conformance.core.files.releases_table import listed
from kipcheck.conformance.core.values.edition import APACHE, KIP_584, edition
from kipcheck.conformance.protocols.declare.check import Check, Family, StateProbe, no_operations
from kipcheck.conformance.protocols.declare.conversations import (
    Subject,
    conversation,
    operations_family,
    possible_conversation,
)
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.protocols.features import invariants as laws
from kipcheck.conformance.protocols.features.invariants import (
    app,
    client,
    cluster,
    commands,
    controller as invariants,
    kraft,
    kraft_brokers,
    quorum,
    tool,
    zookeeper,
    zookeeper_updates as zookeeper_laws,
)
from kipcheck.conformance.protocols.features.ops.app import OPERATIONS as APP_OPERATIONS
from kipcheck.conformance.protocols.features.ops.client import OPERATIONS as CLIENT_OPERATIONS
from kipcheck.conformance.protocols.features.ops.cluster import OPERATIONS as CLUSTER_OPERATIONS
from kipcheck.conformance.protocols.features.ops.commands import OPERATIONS as COMMAND_OPERATIONS
from kipcheck.conformance.protocols.features.ops.controller import OPERATIONS
from kipcheck.conformance.protocols.features.ops.kraft import OPERATIONS as KRAFT_OPERATIONS
from kipcheck.conformance.protocols.features.ops.kraft_brokers import OPERATIONS as KRAFT_BROKER_OPERATIONS
from kipcheck.conformance.protocols.features.ops.quorum import OPERATIONS as QUORUM_OPERATIONS
from kipcheck.conformance.protocols.features.ops.tool import OPERATIONS as TOOL_OPERATIONS
from kipcheck.conformance.protocols.features.ops.zookeeper import OPERATIONS as ZOOKEEPER_OPERATIONS
from kipcheck.conformance.protocols.features.strategies.client import FEATURE_APPS, feature_clients
from kipcheck.conformance.protocols.features.strategies.cluster import FEATURE_CLUSTERS
from kipcheck.conformance.protocols.features.strategies.commands import feature_commands, given as given_commands
from kipcheck.conformance.protocols.features.strategies.controller import FEATURE_UPDATES
from kipcheck.conformance.protocols.features.strategies.kraft import kraft_brokers as drawn_brokers, kraft_updates
from kipcheck.conformance.protocols.features.strategies.quorum import given as given_quorums, kraft_quorums
from kipcheck.conformance.protocols.features.strategies.tool import FEATURE_TOOLS, released_tools
from kipcheck.conformance.protocols.features.strategies.zookeeper import zookeeper_declared, zookeeper_updates
from kipcheck.conformance.protocols.features.tables import draft as draft_tables, kraft as kraft_tables
from kipcheck.conformance.protocols.features.target import HAS_COMMANDS, IN_ZOOKEEPER, client_adapter, kraft_adapter
from kipcheck.conformance.targets.protocol import Claims
from kipcheck.strategies.nodes import Node


def editions(name: str) -> Iterable[str]:
    """The draft, the only edition with rules so far; a run of ``apache``, which names no release, includes it too."""
    return (KIP_584.name,) if edition(name) in (APACHE, KIP_584) else ()


def state_probe(claims: Claims) -> StateProbe | None:
    """A new controller has no finalized level."""
    if OPERATIONS.machine not in claims.machines:
        return None
    *before, description = OPERATIONS.as_json("up 1 1-3; update 3; describe")
    return StateProbe(tuple(before), description, lambda answer: answer.get("level") == 0)


CONTROLLER: Family[Subject] = replace(
    operations_family(OPERATIONS, editions, lambda edition: FEATURE_UPDATES, "controller"), state_probe=state_probe
)

CLUSTER: Family[Subject] = operations_family(
    CLUSTER_OPERATIONS, editions, lambda edition: FEATURE_CLUSTERS, "controller"
)


def _of_clusters(id: str, about: str, values: int, given: draft_tables.Given) -> Check[Subject]:
    return Check(id, about, CLUSTER, conversation, values=values, invariants=invariants_of(id, laws), given=given)


def releases_with_kraft(name: str) -> Iterable[str]:
    found = edition(name)
    return (str(found),) if kraft_adapter(found) is not None else ()


KRAFT: Family[Subject] = operations_family(KRAFT_OPERATIONS, releases_with_kraft, kraft_updates, "controller")
KRAFT_BROKERS: Family[Subject] = operations_family(
    KRAFT_BROKER_OPERATIONS, releases_with_kraft, drawn_brokers, "controller"
)


def releases_with_zookeeper(name: str) -> Iterable[str]:
    """A run of ``apache``, which names no release, includes the last one with ZooKeeper."""
    found = edition(name)
    if found == APACHE:
        known = (edition(f"{APACHE.name}@{each}") for each in listed("controllers"))
        return [str(each) for each in known if IN_ZOOKEEPER(each)][-1:]
    return (str(found),) if IN_ZOOKEEPER(found) else ()


ZOOKEEPER: Family[Subject] = operations_family(
    ZOOKEEPER_OPERATIONS, releases_with_zookeeper, zookeeper_updates, "controller"
)


def declared_features(subject: Subject) -> Node:
    """The steps of conversations with brokers that declare features, which are not all of the machine."""
    return zookeeper_declared(subject.edition).declaration


ZOOKEEPER_DECLARED: Family[Subject] = replace(
    operations_family(ZOOKEEPER_OPERATIONS, releases_with_zookeeper, zookeeper_declared, "controller"),
    sample_ops=no_operations,
)
CLIENT: Family[Subject] = operations_family(CLIENT_OPERATIONS, editions, feature_clients, "client")
APP: Family[Subject] = operations_family(APP_OPERATIONS, editions, lambda edition: FEATURE_APPS, "group")

TOOL: Family[Subject] = operations_family(TOOL_OPERATIONS, editions, lambda edition: FEATURE_TOOLS, "operator")

RELEASED_TOOL: Family[Subject] = replace(
    operations_family(TOOL_OPERATIONS, releases_with_kraft, released_tools, "operator"), sample_ops=no_operations
)


def released_clients(name: str) -> Iterable[str]:
    found = edition(name)
    return (str(found),) if found != KIP_584 and client_adapter(found) is not None else ()


RELEASED_CLIENT: Family[Subject] = replace(
    operations_family(CLIENT_OPERATIONS, released_clients, feature_clients, "client"), sample_ops=no_operations
)


def releases_with_commands(name: str) -> Iterable[str]:
    found = edition(name)
    return (str(found),) if HAS_COMMANDS(found) else ()


RELEASED_COMMANDS: Family[Subject] = replace(
    operations_family(COMMAND_OPERATIONS, releases_with_commands, feature_commands, "operator"),
    sample_ops=no_operations,
)
KRAFT_QUORUM: Family[Subject] = replace(
    operations_family(QUORUM_OPERATIONS, releases_with_kraft, kraft_quorums, "quorum"), sample_ops=no_operations
)

CHECKS: tuple[Check[Subject], ...] = (
    Check(
        invariants.EPOCHS,
        "the epoch counts the applied updates, and nothing else changes it",
        CONTROLLER,
        conversation,
        values=300,
        invariants=invariants_of(invariants.EPOCHS),
    ),
    Check(
        invariants.GATING,
        "a level is raised, lowered and deleted only as the rules, the operator and every live broker allow",
        CONTROLLER,
        conversation,
        values=300,
        invariants=invariants_of(invariants.GATING),
        given=draft_tables.UPDATES_OF_ONE,
    ),
    Check(
        invariants.BROKERS,
        "no broker is live with a finalized level that it does not support",
        CONTROLLER,
        conversation,
        values=150,
        invariants=invariants_of(invariants.BROKERS),
        given=draft_tables.ARRIVALS_OF_ONE,
    ),
    _of_clusters(
        cluster.NODE,
        "the node has one content per epoch, within what every registered broker supports",
        300,
        draft_tables.CLUSTER_LIFE,
    ),
    _of_clusters(
        cluster.UPDATES,
        "requests for several features are applied one by one, as the rules allow",
        300,
        draft_tables.CLUSTER_UPDATES,
    ),
    _of_clusters(
        cluster.BROKERS,
        "brokers stop exactly if they do not support what is finalized, and decide by it",
        300,
        draft_tables.CLUSTER_ARRIVALS,
    ),
    Check(
        kraft.UPDATES,
        "requests of released versions are applied as their results say, within what every broker supports",
        KRAFT,
        possible_conversation(kraft_updates),
        values=300,
        invariants=invariants_of(kraft.UPDATES, laws),
        given=kraft_tables.updates,
        given_is_large=True,
    ),
    Check(
        zookeeper.LIFE,
        "controllers with ZooKeeper keep the node as their inter-broker version wants it, and finalize nothing",
        ZOOKEEPER,
        conversation,
        values=300,
        invariants=invariants_of(zookeeper.LIFE, laws),
        given=draft_tables.ZOOKEEPER_LIFE,
        given_is_large=True,
    ),
    Check(
        kraft_brokers.BROKERS,
        "brokers are registered if they support what is finalized, and clients are shown it as it is",
        KRAFT_BROKERS,
        possible_conversation(drawn_brokers),
        values=200,
        invariants=invariants_of(kraft_brokers.BROKERS, laws),
        given=kraft_tables.registrations,
    ),
    Check(
        client.DISCOVERY,
        "a client follows the newest features that it has seen, and uses what is finalized",
        CLIENT,
        conversation,
        values=150,
        invariants=invariants_of(client.DISCOVERY, laws),
        given=draft_tables.DISCOVERY,
    ),
    Check(
        client.RELEASED,
        "a client takes answers as the released Java clients do",
        RELEASED_CLIENT,
        conversation,
        values=50,
        invariants=invariants_of(client.RELEASED, laws),
    ),
    Check(
        app.UPGRADES,
        "a Streams group follows group_coordinator once, and never back",
        APP,
        conversation,
        values=300,
        invariants=invariants_of(app.UPGRADES, laws),
        given=draft_tables.APP_UPGRADES,
    ),
    Check(
        tool.COMMANDS,
        "the tool for operators shows, asks for and reports what its commands say",
        TOOL,
        conversation,
        values=200,
        invariants=invariants_of(tool.COMMANDS, laws),
        given=draft_tables.TOOL_COMMANDS,
    ),
    Check(
        tool.RELEASED,
        "the exit code of the tool for operators says whether a released controller refused an update",
        RELEASED_TOOL,
        possible_conversation(released_tools),
        values=50,
        invariants=invariants_of(tool.RELEASED, laws),
    ),
    Check(
        zookeeper_laws.UPDATES,
        "controllers with ZooKeeper apply updates of features that every broker declares, and no others",
        ZOOKEEPER_DECLARED,
        conversation,
        values=400,
        invariants=invariants_of(zookeeper_laws.UPDATES, laws),
        given=draft_tables.ZOOKEEPER_UPDATES,
        node=declared_features,
        given_is_large=True,
    ),
    Check(
        commands.COMMANDS,
        "the commands of Kafka's own tool do and print what they say on a cluster of its release, or are refused",
        RELEASED_COMMANDS,
        conversation,
        values=60,
        invariants=invariants_of(commands.COMMANDS, laws),
        given=given_commands,
    ),
    Check(
        quorum.QUORUM,
        "three controllers keep what they acknowledged, and apply the rest as a whole or not, whichever end or pause",
        KRAFT_QUORUM,
        possible_conversation(kraft_quorums),
        values=80,
        invariants=invariants_of(quorum.QUORUM, laws),
        given=given_quorums,
    ),
)
