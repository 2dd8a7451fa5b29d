"""The tool for operators on small clusters: brokers of neighbouring releases, tools of several, and their commands."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

from kipcheck.conformance.core.values.edition import KIP_584, edition
from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA, Rules
from kipcheck.conformance.protocols.features.model.released_tool import ReleasedTool
from kipcheck.conformance.protocols.features.model.tool import FeatureTool, State
from kipcheck.conformance.protocols.features.ops import tool as ops
from kipcheck.strategies.events import Conversations
from kipcheck.strategies.nodes import Node, OneOf, Pick, Row, Seq, record
from kipcheck.strategies.operations import nodes

SPANS: Final = ((1, 1), (1, 2), (1, 3))
NAMES: Final = ("a", "b")
LEVELS: Final = Pick((1, 2, 3))


def _one(name: str) -> Node:
    return OneOf(tuple(record(feature=Pick((name,)), low=Pick((low,)), high=Pick((high,))) for low, high in SPANS))


def _each_once(made: Mapping[str, Node]) -> Node:
    """None of the features, or one."""
    return OneOf(tuple(Seq(each, 0, 1) for each in made.values()))


def _often_all(made: Mapping[str, Node]) -> Node:
    """Brokers that lack a feature leave nothing to apply."""
    return OneOf((Row((*made.values(),)), Row((*made.values(),)), _each_once(made)))


def drawn() -> dict[str, Node]:
    """Fields whose values are records."""
    levels = {name: record(feature=Pick((name,)), level=LEVELS) for name in NAMES}
    named = OneOf((_each_once(levels), Row((*levels.values(),))))
    return {
        "supported": _often_all({name: _one(name) for name in NAMES}),
        "levels": named,
        "upgrade": named,
        "downgrade": named,
        "delete": Seq(Pick(NAMES), 0, 1),
    }


FEATURE_TOOLS: Final[Conversations[State, ops.Event]] = Conversations(
    FeatureTool(),
    ops.OPERATIONS.step_of,
    ops.OPERATIONS.event_of,
    events=nodes(
        ops.ToolDescribe, ops.ToolUpdate, ops.ToolUpgradeAll, ops.ToolDowngradeAll, ops.ToolKnows, ops.ToolBroker,
        drawn=drawn(),
    ),
    progress=frozenset({"tool-broker", "tool-update", "tool-upgrade-all", "tool-downgrade-all"}),
    max_steps=12,
    usual_steps=7,
    enabled_shares=(0.0,),
)  # fmt: skip


def one_list(state: State, event: ops.Event) -> ops.Event:
    """A released tool has a command for each list of the draft's update, and none for all features."""
    if not isinstance(event, ops.ToolUpdate):
        return event
    if event.upgrade:
        return replace(event, downgrade=(), delete=())
    if event.downgrade:
        return replace(event, delete=())
    return event if event.delete else ops.ToolDescribe()


@cache
def released_tools(name: str) -> Conversations[State, ops.Event]:
    """On a controller of an edition: levels that it takes and refuses. Errors: ValueError where it has none."""
    rules = Rules.of(edition(name).release)
    newest = rules.newest
    levels = {
        METADATA: record(feature=Pick((METADATA,)), level=Pick((newest, newest - 1, newest + 1))),
        **{each: record(feature=Pick((each,)), level=Pick((1, 2))) for each in ("group.version", "x")},
    }
    named = _each_once(levels)
    return Conversations(
        ReleasedTool(rules),
        ops.OPERATIONS.step_of,
        ops.OPERATIONS.event_of,
        events=nodes(
            ops.ToolUpdate, ops.ToolDescribe,
            drawn={"upgrade": named, "downgrade": named, "delete": Seq(Pick((*levels,)), 0, 1)},
        ),
        progress=frozenset({"tool-update"}),
        max_steps=8,
        possible=one_list,
        usual_steps=4,
        enabled_shares=(0.0,),
    )  # fmt: skip


def feature_tools(name: str) -> Conversations[Any, ops.Event]:
    """The tool of the edition. Errors: ValueError for a release without KRaft controllers."""
    return FEATURE_TOOLS if edition(name) == KIP_584 else released_tools(name)
