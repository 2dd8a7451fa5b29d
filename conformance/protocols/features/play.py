"""Declares the models of controllers of feature versions."""

from typing import Final

from kipcheck.conformance.core.files.releases_table import listed, since, span
from kipcheck.conformance.core.values.edition import KIP_584, Edition
from kipcheck.conformance.protocols.declare.package import either, released_in, released_since
from kipcheck.conformance.protocols.declare.play import Bound, Conversation, Playable, Product, Scope, verbs
from kipcheck.conformance.protocols.declare.single_machine import SingleMachine
from kipcheck.conformance.protocols.features.laws import client as laws_client
from kipcheck.conformance.protocols.features.laws.cluster import LAWS
from kipcheck.conformance.protocols.features.laws.controller import COUNTS, SUITS
from kipcheck.conformance.protocols.features.model.app import FeatureApp
from kipcheck.conformance.protocols.features.model.client import FeatureClient
from kipcheck.conformance.protocols.features.model.cluster import FeatureCluster
from kipcheck.conformance.protocols.features.model.commands import FeatureCommands
from kipcheck.conformance.protocols.features.model.controller import ENVIRONMENT_EVENTS, FeatureController
from kipcheck.conformance.protocols.features.model.kraft import KraftController
from kipcheck.conformance.protocols.features.model.kraft_brokers import KraftBrokers
from kipcheck.conformance.protocols.features.model.kraft_rules import KRAFT, METADATA, Rules
from kipcheck.conformance.protocols.features.model.quorum import KraftQuorum
from kipcheck.conformance.protocols.features.model.ranges import Range
from kipcheck.conformance.protocols.features.model.tool import FeatureTool, State as ToolState
from kipcheck.conformance.protocols.features.model.zookeeper import ZooKeeperController
from kipcheck.conformance.protocols.features.ops import (
    app,
    client,
    cluster,
    commands,
    kraft,
    kraft_brokers,
    quorum,
    tool,
    zookeeper,
)
from kipcheck.conformance.protocols.features.ops.client import BrokerAnswers, StartClient, Wait
from kipcheck.conformance.protocols.features.ops.controller import OPERATIONS
from kipcheck.conformance.protocols.features.ops.kraft import (
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    Declared,
    Format,
    KraftUpdate,
    Level,
    TypedUpdate,
)
from kipcheck.conformance.protocols.features.ops.tool import ToolBroker, ToolDowngradeAll, ToolKnows, ToolUpgradeAll
from kipcheck.conformance.protocols.features.ops.zookeeper import DeleteNode, ReadFeature, StartController, ZkUpdate

KRAFT_HAS: Final = released_since(since("java-controller-runs"))
ZOOKEEPER_HAS: Final = released_in(span("feature-znode"), span("zookeeper"))
COMMANDS_HAVE: Final = released_since(since("feature-znode"))
CLIENT_HAS: Final = either(KIP_584, released_since(since("feature-znode")))


def _product(edition: Edition, scope: Scope) -> Product:
    brokers, updates = scope["brokers"], scope["updates"]
    events = [each for each in ENVIRONMENT_EVENTS if getattr(each, "broker", 0) < brokers]
    return SingleMachine(
        "controller",
        FeatureController(),
        within=lambda state: state.epoch < updates,
        tried=lambda state: events,
        step_of=OPERATIONS.step_of,
        shorthand=OPERATIONS.shorthand,
        laws=(SUITS, COUNTS),
    )


def _clusters(edition: Edition, scope: Scope) -> Product:
    names, levels = "ab"[: scope["features"]], scope["levels"]
    events = cluster_events(scope["brokers"], names, levels)
    return SingleMachine(
        "cluster",
        FeatureCluster(),
        within=lambda state: (
            state.term < scope["elections"] and (state.node is None or state.node.epoch < scope["writes"])
        ),
        tried=lambda state: events,
        step_of=cluster.OPERATIONS.step_of,
        shorthand=cluster.OPERATIONS.shorthand,
        laws=LAWS,
    )


def cluster_events(brokers: int, names: str, levels: int) -> tuple[cluster.Event, ...]:
    """Everything that can happen in a small cluster."""
    spans = [(1, levels), (1, levels - 1), (2, levels)]
    found: list[cluster.Event] = []
    for number in range(brokers):
        binaries = ([cluster.Supported(name, *span) for name in names] for span in spans)
        found += (cluster.StartBroker(number, tuple(each)) for each in binaries)
        found += (
            made(number)
            for made in (cluster.StopBroker, cluster.Elect, cluster.HandleRegistration, cluster.Watch, cluster.Write)
        )
    found.append(
        cluster.StartBroker(0, tuple(cluster.Supported(name, 1, levels) for name in names), before_migration=True)
    )
    for name in names:
        requests = [cluster.Requested(name, level) for level in range(2, levels + 1)]
        requests += [cluster.Requested(name, level, True) for level in range(levels)]
        found += (made((each,)) for each in requests for made in (cluster.UpdateFeatures, cluster.ValidateFeatures))
        found += (cluster.LoseUpdate((each,), arrives) for each in requests for arrives in (False, True))
    if len(names) > 1:
        found.append(
            cluster.UpdateFeatures((cluster.Requested(names[0], levels), cluster.Requested(names[1], 0, True)))
        )
    return tuple(found)


def _kraft(edition: Edition, scope: Scope) -> Product:
    rules = Rules.of_edition(edition)
    machine = KraftController(rules)
    names = [METADATA, *(name for name in rules.supported if name != METADATA)][: scope["features"]]
    events = tuple(
        KraftUpdate(1, (TypedUpdate(name, level, kind),))
        for name in names
        for level in range(max(0, rules.supported[name].high - scope["levels"]), rules.supported[name].high + 2)
        for kind in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE)
    )
    return SingleMachine(
        "controller",
        machine,
        within=lambda state: state.epoch <= scope["updates"],
        tried=lambda state: events,
        step_of=kraft.OPERATIONS.step_of,
        shorthand=kraft.OPERATIONS.shorthand,
        laws=(),
    )


def _brokers(edition: Edition, scope: Scope) -> Product:
    rules = Rules.of_edition(edition)
    others = [Rules.of(each) for each in listed("controllers")[-scope["neighbours"] :]]
    events: list[kraft_brokers.Event] = [Format(level) for level in range(rules.first_bootstrap, rules.newest + 1)]
    for each in (rules, *others):
        declared = tuple(Declared(name, *span) for name, span in each.declares())
        events += (kraft_brokers.Register(number, declared) for number in (1, 2))
    return SingleMachine(
        "controller",
        KraftBrokers(rules),
        within=lambda state: True,
        tried=lambda state: events,
        step_of=kraft_brokers.OPERATIONS.step_of,
        shorthand=kraft_brokers.OPERATIONS.shorthand,
        laws=(laws_client.REGISTERED,),
    )


def _zookeeper(edition: Edition, scope: Scope) -> Product:
    found: list[zookeeper.Event] = [
        StartController("2.6"),
        StartController("2.7"),
        StartController("3.3"),
        DeleteNode(),
    ]
    found += (ReadFeature(number) for number in range(scope["brokers"]))
    found += (ZkUpdate(0, (TypedUpdate("a", level, kind),)) for level in (0, 1) for kind in (UPGRADE, SAFE_DOWNGRADE))
    return SingleMachine(
        "controller",
        ZooKeeperController(edition.release, (("a", Range(1, 1)),) if scope["left"] else ()),
        within=lambda state: state.node is None or state.node.epoch < scope["writes"],
        tried=lambda state: found,
        step_of=zookeeper.OPERATIONS.step_of,
        shorthand=zookeeper.OPERATIONS.shorthand,
        laws=laws_client.ZOOKEEPER_LAWS,
    )


def _client(edition: Edition, scope: Scope) -> Product:
    answers = [
        BrokerAnswers(epoch, (cluster.Finalized("a", 1, level),))
        for epoch in range(scope["epochs"])
        for level in (1, 2)
    ]
    events: list[client.Event] = [StartClient((Level("a", 2),)), BrokerAnswers(-1), Wait(60), *answers]
    return SingleMachine(
        "client",
        FeatureClient(ordered=edition == KIP_584),
        within=lambda state: True,
        tried=lambda state: events,
        step_of=client.OPERATIONS.step_of,
        shorthand=client.OPERATIONS.shorthand,
        laws=laws_client.client_laws(edition == KIP_584),
    )


def _app(edition: Edition, scope: Scope) -> Product:
    machine = FeatureApp(("a", "b", "c")[: scope["members"]])
    return SingleMachine(
        "group",
        machine,
        within=lambda state: True,
        tried=machine.enabled,
        step_of=app.OPERATIONS.step_of,
        shorthand=app.OPERATIONS.shorthand,
        laws=laws_client.APP_LAWS,
    )


def _tool(edition: Edition, scope: Scope) -> Product:
    commands: list[tool.Event] = [
        *(ToolKnows(tuple(Level("a", level) for level in levels)) for levels in ((), (1,), (2,))),
        *(command(dry) for command in (ToolUpgradeAll, ToolDowngradeAll) for dry in (False, True)),
    ]
    starts = [ToolBroker((cluster.Supported("a", 1, high),)) for high in (1, 2)]

    def tried(state: ToolState) -> list[tool.Event]:
        return [*commands, *(starts if len(state.brokers) < scope["brokers"] else ())]

    return SingleMachine(
        "operator",
        FeatureTool(),
        within=lambda state: state.node is None or state.node.epoch < scope["writes"],
        tried=tried,
        step_of=tool.OPERATIONS.step_of,
        shorthand=tool.OPERATIONS.shorthand,
        laws=laws_client.TOOL_LAWS,
    )


def _commands(edition: Edition, scope: Scope) -> Product:
    rules = Rules.of_edition(edition) if KRAFT_HAS(edition) else None
    dry = (False, True) if scope["dry"] else (False,)
    names = [] if rules is None else [name for name in rules.supported if name != METADATA][: scope["features"]]
    events: list[commands.Event] = [
        *(commands.CommandAll(command, each) for command in ("upgrade-all", "downgrade-all") for each in dry),
        *(commands.CommandDisable((name,), dry_run=each) for name in names for each in dry),
        *(
            commands.CommandChange(command, (Level(name, level),), dry_run=each)
            for command in ("upgrade", "downgrade")
            for name in names
            for level in (0, 1, 2)
            for each in dry
        ),
    ]
    return SingleMachine(
        "operator",
        FeatureCommands(rules),
        within=lambda state: state.epoch <= scope["updates"],
        tried=lambda state: events,
        step_of=commands.OPERATIONS.step_of,
        shorthand=commands.OPERATIONS.shorthand,
        laws=(laws_client.DRY_COMMANDS,),
    )


def _quorum(edition: Edition, scope: Scope) -> Product:
    rules = Rules.of_edition(edition)
    names = [name for name in rules.supported if name not in (METADATA, KRAFT)][: scope["features"]]
    updates = [(TypedUpdate(name, 1, UPGRADE),) for name in names] or [(TypedUpdate(METADATA, rules.newest, UPGRADE),)]
    events: list[quorum.Event] = [
        *(quorum.QuorumSend(each) for each in updates),
        *(quorum.QuorumPause(which) for which in ("leader", "followers")),
        *(quorum.QuorumKill(which) for which in ("leader", "follower")),
        quorum.QuorumResume(),
        quorum.QuorumStart(),
        quorum.QuorumAwait(),
    ]
    return SingleMachine(
        "quorum",
        KraftQuorum(rules),
        within=lambda state: state.cluster.epoch <= scope["updates"],
        tried=lambda state: [
            each for each in events if state.pending is None or not isinstance(each, quorum.QuorumSend)
        ],
        step_of=quorum.OPERATIONS.step_of,
        shorthand=quorum.OPERATIONS.shorthand,
        laws=(laws_client.MAJORITY_APPLIES,),
    )


PLAYABLES = (
    Playable(
        name="features",
        about="the controller of KIP-584's draft: brokers support levels of a feature, the operator finalizes one",
        editions=lambda edition: None if edition == KIP_584 else str(KIP_584),
        world=_product,
        verbs=verbs(OPERATIONS),
        conversation=lambda edition: Conversation(
            "controller", FeatureController(), OPERATIONS.event_of, OPERATIONS.parse_shorthand
        ),
        dials={
            "brokers": Bound(3, "number of brokers", (1, 2, 3)),
            "updates": Bound(2, "number of accepted updates", (1, 2, 3, 4, 5)),
        },
    ),
    Playable(
        name="feature-cluster",
        about="a cluster of KIP-584's draft: brokers with caches, elections, requests for several features",
        editions=lambda edition: None if edition == KIP_584 else str(KIP_584),
        world=_clusters,
        verbs=verbs(cluster.OPERATIONS),
        conversation=lambda edition: Conversation(
            "controller", FeatureCluster(), cluster.OPERATIONS.event_of, cluster.OPERATIONS.parse_shorthand
        ),
        dials={
            "brokers": Bound(2, "number of brokers", (1, 2, 3)),
            "features": Bound(1, "number of features", (1, 2)),
            "levels": Bound(2, "highest level", (2, 3)),
            "elections": Bound(2, "number of elections", (1, 2, 3)),
            "writes": Bound(2, "the highest epoch from which the search goes on", (1, 2, 3)),
        },
    ),
    Playable(
        name="kraft-features",
        about="the controller of feature versions in KRaft, as a release has it",
        editions=lambda edition: None if KRAFT_HAS(edition) else "apache or apache@RELEASE from 3.3.0 on",
        world=_kraft,
        verbs=verbs(kraft.OPERATIONS),
        conversation=lambda edition: Conversation(
            "controller",
            KraftController(Rules.of_edition(edition)),
            kraft.OPERATIONS.event_of,
            kraft.OPERATIONS.parse_shorthand,
        ),
        dials={
            "features": Bound(2, "number of features", (1, 2, 3)),
            "levels": Bound(2, "levels below the highest", (1, 2, 3)),
            "updates": Bound(3, "number of accepted updates", (1, 2, 3, 4)),
        },
    ),
    Playable(
        name="kraft-brokers",
        about="the controller in KRaft that registers brokers, as a release has it, and answers to ApiVersions",
        editions=lambda edition: None if KRAFT_HAS(edition) else "apache or apache@RELEASE from 3.3.0 on",
        world=_brokers,
        verbs=verbs(kraft_brokers.OPERATIONS),
        conversation=lambda edition: Conversation(
            "controller",
            KraftBrokers(Rules.of_edition(edition)),
            kraft_brokers.OPERATIONS.event_of,
            kraft_brokers.OPERATIONS.parse_shorthand,
        ),
        dials={"neighbours": Bound(4, "number of releases whose brokers register", (1, 2, 4, 8))},
    ),
    Playable(
        name="zookeeper-features",
        about="the controller of feature versions with ZooKeeper, as a release has it, and caches of brokers",
        editions=lambda edition: None if ZOOKEEPER_HAS(edition) else "apache@RELEASE from 2.7.0 to 3.9.2",
        world=_zookeeper,
        verbs=verbs(zookeeper.OPERATIONS),
        conversation=lambda edition: Conversation(
            "controller",
            ZooKeeperController(edition.release),
            zookeeper.OPERATIONS.event_of,
            zookeeper.OPERATIONS.parse_shorthand,
        ),
        dials={
            "brokers": Bound(2, "number of brokers", (1, 2)),
            "left": Bound(0, "whether another program left a finalized feature in the node", (0, 1)),
            "writes": Bound(4, "the highest epoch from which the search goes on", (2, 3, 4, 6)),
        },
    ),
    Playable(
        name="feature-client",
        about="a client that reads and updates features: in the draft it never goes back to older ones",
        editions=lambda edition: None if CLIENT_HAS(edition) else "kip-584, apache or apache@RELEASE from 2.7.0 on",
        world=_client,
        verbs=verbs(client.OPERATIONS),
        conversation=lambda edition: Conversation(
            "client",
            FeatureClient(ordered=edition == KIP_584),
            client.OPERATIONS.event_of,
            client.OPERATIONS.parse_shorthand,
        ),
        dials={"epochs": Bound(3, "number of epochs", (2, 3, 4))},
    ),
    Playable(
        name="feature-app",
        about="a Kafka Streams group that follows group_coordinator, as KIP-584 describes it for KIP-447",
        editions=lambda edition: None if edition == KIP_584 else str(KIP_584),
        world=_app,
        verbs=verbs(app.OPERATIONS),
        conversation=lambda edition: Conversation(
            "group", FeatureApp(), app.OPERATIONS.event_of, app.OPERATIONS.parse_shorthand
        ),
        dials={"members": Bound(3, "number of members", (1, 2, 3))},
    ),
    Playable(
        name="feature-tool",
        about="the tool for operators of KIP-584's draft, on a cluster with a controller",
        editions=lambda edition: None if edition == KIP_584 else str(KIP_584),
        world=_tool,
        verbs=verbs(tool.OPERATIONS),
        conversation=lambda edition: Conversation(
            "operator", FeatureTool(), tool.OPERATIONS.event_of, tool.OPERATIONS.parse_shorthand
        ),
        dials={
            "brokers": Bound(2, "number of brokers", (1, 2, 3)),
            "writes": Bound(3, "the highest epoch from which the search goes on", (2, 3, 4)),
        },
    ),
    Playable(
        name="feature-commands",
        about="Kafka's own tool for operators, as a release has it, on a cluster of one node",
        editions=lambda edition: None if COMMANDS_HAVE(edition) else "apache or apache@RELEASE from 2.7.0 on",
        world=_commands,
        verbs=verbs(commands.OPERATIONS),
        conversation=lambda edition: Conversation(
            "operator",
            FeatureCommands(Rules.of_edition(edition) if KRAFT_HAS(edition) else None),
            commands.OPERATIONS.event_of,
            commands.OPERATIONS.parse_shorthand,
        ),
        dials={
            "features": Bound(2, "number of features", (1, 2, 3)),
            "updates": Bound(3, "number of applied updates", (1, 2, 3, 4)),
            "dry": Bound(1, "whether commands may be dry runs", (0, 1)),
        },
    ),
    Playable(
        name="kraft-quorum",
        about="three controllers in KRaft, as a release has them, that are paused, killed and started",
        editions=lambda edition: None if KRAFT_HAS(edition) else "apache or apache@RELEASE from 3.3.0 on",
        world=_quorum,
        verbs=verbs(quorum.OPERATIONS),
        conversation=lambda edition: Conversation(
            "quorum",
            KraftQuorum(Rules.of_edition(edition)),
            quorum.OPERATIONS.event_of,
            quorum.OPERATIONS.parse_shorthand,
        ),
        dials={
            "features": Bound(1, "number of features", (1, 2)),
            "updates": Bound(2, "number of applied updates", (1, 2, 3)),
        },
    ),
)
