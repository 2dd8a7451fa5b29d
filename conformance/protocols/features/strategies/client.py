"""Clients of feature versions: answers of brokers, late or not, time, results of updates; and Streams groups."""

from functools import cache
from typing import Final

from kipcheck.conformance.core.values.edition import KIP_584, edition
from kipcheck.conformance.protocols.features.model.app import FeatureApp, State as AppState
from kipcheck.conformance.protocols.features.model.client import FeatureClient, State
from kipcheck.conformance.protocols.features.ops import app, client
from kipcheck.conformance.protocols.features.ops.client import BrokerAnswers, StartClient, UpdateResults, Wait
from kipcheck.strategies.events import Conversations
from kipcheck.strategies.nodes import Node, OneOf, Pick, Row, Seq, record
from kipcheck.strategies.operations import nodes

SPANS: Final = ((1, 1), (1, 2), (1, 3), (2, 3))
ERRORS: Final = Pick(("NONE", "INVALID_REQUEST", "FEATURE_UPDATE_FAILED"))


def _ranges() -> Node:
    """At most one range of each feature."""
    alone = [Seq(_range(name), 0, 1) for name in ("a", "b")]
    return OneOf((*alone, Row((_range("a"), _range("b")))))


def _range(name: str) -> Node:
    return OneOf(tuple(record(feature=Pick((name,)), low=Pick((low,)), high=Pick((high,))) for low, high in SPANS))


def _need(name: str) -> Node:
    return record(feature=Pick((name,)), level=Pick((1, 2, 3)))


def _result(name: str) -> Node:
    return record(feature=Pick((name,)), error=ERRORS)


def drawn() -> dict[str, Node]:
    """Fields whose values are records."""
    return {
        "needs": OneOf((*(Seq(_need(name), 0, 1) for name in ("a", "b")), Row((_need("a"), _need("b"))))),
        "finalized": _ranges(),
        "supported": _ranges(),
        "results": OneOf((*(Seq(_result(name), 0, 1) for name in ("a", "b")), Row((_result("a"), _result("b"))))),
    }


@cache
def feature_clients(name: str) -> Conversations[State, client.Event]:
    """Conversations with a client of an edition."""
    return Conversations(
        FeatureClient(ordered=edition(name) == KIP_584),
        client.OPERATIONS.step_of,
        client.OPERATIONS.event_of,
        events=nodes(StartClient, BrokerAnswers, Wait, UpdateResults, drawn=drawn()),
        progress=frozenset({"client-features", "broker-answers"}),
        max_steps=12,
        usual_steps=4,
        enabled_shares=(0.0,),
    )


FEATURE_APPS: Conversations[AppState, app.Event] = Conversations(
    FeatureApp(),
    app.OPERATIONS.step_of,
    app.OPERATIONS.event_of,
    events=nodes(
        app.Look, app.Begin, app.Finalize, app.Notify, app.Poll, app.Rebalance, app.Tell, app.Commit, app.End, app.Wipe
    ),
    progress=frozenset({"app-join", "app-finalized", "app-notified", "app-rebalance", "app-instruct", "app-write"}),
    usual_steps=8,
)
