"""Decision tables of KIP-584 that are small enough to be played whole: the cases of checks that no seed changes.

A table crosses what a rule reads: the finalized level, the requested one, the downgrade flag, and the ranges of
brokers, of which any single one may be the one that forbids an update. Cases are in shorthand.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any, Final

from kipcheck.conformance.core.operations.declaration import Operations
from kipcheck.conformance.protocols.declare.check import Conversation
from kipcheck.conformance.protocols.features.ops import app, client, cluster, controller, tool, zookeeper

Given = Callable[[Any], Iterable[Conversation]]
LEVELS: Final = (0, 1, 2, 3)
REQUESTED: Final = range(-1, 5)
RANGES: Final = ((1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3))
WHOLE: Final = (1, 3)
PLACES: Final = (0, 1, 2)
"""Of three brokers."""


def table(operations: Operations[Any, Any], cases: Callable[[], Iterable[str]]) -> Given:
    """The conversations of a check, each once, whatever the subject."""

    def given(subject: Any) -> Iterator[Conversation]:
        for text in dict.fromkeys(cases()):
            yield Conversation(operations.parse_shorthand(text))

    return given


def _holding(level: int) -> list[tuple[int, int]]:
    """The ranges of brokers that can be live where a level is finalized; 0: none is."""
    return [each for each in RANGES if not level or each[0] <= level <= each[1]]


def _span(each: tuple[int, int] | None) -> str:
    return "-" if each is None else f"{each[0]}-{each[1]}"


# The controller of one feature


def _begun(level: int) -> str:
    return f"up 0 1-3; update {level}; " if level else ""


def updates_of_one() -> Iterator[str]:
    """X, Y and the flag, with no broker, a single one, and three of which one differs."""
    for level in LEVELS:
        others: list[tuple[int, int] | None] = [*_holding(level), *([] if level else [None])]
        brokers = [_begun(level) + "down 0; ", *(f"{_begun(level)}up 0 {_span(each)}; " for each in others)]
        three = "".join(f"up {place} 1-3; " for place in PLACES) + (f"update {level}; " if level else "")
        brokers += [f"{three}up {place} {_span(each)}; " for each in others if each != WHOLE for place in PLACES]
        for before, requested, flag in product(brokers, REQUESTED, ("", "!")):
            yield f"{before}update {requested}{flag}; describe"


def arrivals_of_one() -> Iterator[str]:
    """X and the range of a broker that starts, beside another one or in its place."""
    for level, each, number in product(LEVELS, (*RANGES, None), (0, 1)):
        yield f"{_begun(level)}up {number} {_span(each)}; describe"


# Clusters of the draft


def _cluster(level: int) -> str:
    """Three brokers, and a level of a; b is at 3."""
    brokers = "".join(f"start {place} a:1-3,b:1-3; " for place in PLACES)
    return f"{brokers}elect 0; update-features a:0!; " + (f"update-features a:{level}; " if level else "")


def _restarted(place: int, each: tuple[int, int] | None) -> str:
    """A broker comes back with another range of a, and is registered."""
    features = f"a:{_span(each)},b:1-3" if each else "b:1-3"
    return f"start {place} {features}; " + ("elect 0; " if place == 0 else f"handle {place}; ")


def cluster_updates() -> Iterator[str]:
    """X and Y with the flag that fits, where one of three brokers differs; results of several updates; senders."""
    for level in LEVELS:
        others: list[tuple[int, int] | None] = [*_holding(level), *([] if level else [None])]
        for each, place, requested in product(others, PLACES, range(5)):
            flag = "!" * (requested < level)
            yield f"{_cluster(level)}{_restarted(place, each)}node; update-features a:{requested}{flag}; node"
    for requested, flag in product(REQUESTED, ("", "!")):
        yield f"{_cluster(2)}node; update-features a:{requested}{flag}; node"
    begun = _cluster(2) + "node; "
    singles = ("a:3", "a:1!", "a:0!", "a:1", "a:3!", "a:2", "a:4", "c:1")
    for one, other in product(singles, ("b:2!", "b:0!", "b:2", "b:4")):
        yield from (f"{begun}update-features {text}; node" for text in (f"{one},{other}", f"{other},{one}"))
    for sender in (" at 0", " at 1", " unauthorized", " at 1 unauthorized", " at 0 unauthorized"):
        yield from (f"{begun}update-features {text}{sender}; node" for text in ("", " a:3", " a:3,b:2!"))
    same = "start 0 a:1-2,b:1-2; elect 0; node; "
    yield from (f"{same}update-features {text}; node" for text in ("a:0!", "b:0!", "a:1!", "c:0!", "c:0", "a:0!,c:0!"))
    disabled = "start 0 a:1-2 old; start 1 a:1-2; elect 0; node; "
    yield from (f"{disabled}update-features {text}; node" for text in ("a:0!", "a:1", "a:2", "a:1!"))
    for span, text in product(("1-1", "3-3"), ("a:2", "a:1", "a:3")):  # a broker counts from its registration on
        begun = f"start 0 a:1-3; elect 0; update-features a:0!; start 1 a:{span}; node; "
        yield f"{begun}update-features {text}; node"
        yield f"{begun}handle 1; node; update-features {text}; node"
    for text in ("a:3", "a:0!", "a:3,b:4", "a:4"):
        yield f"{begun}validate-features {text}; write 0; node"
        yield f"{begun}validate-features {text}; elect 1; write 0; node"


def cluster_life() -> Iterator[str]:
    """The node absent, enabled with and without features, and disabled; a controller of either side is elected."""
    new, old = "start 0 a:1-2,b:1-3; start 1 a:1-3,b:1-2; ", "start 0 a:1-2 old; start 1 a:1-3 old; "
    befores = {
        "": "",
        "enabled": new + "elect 0; ",
        "empty": new + "elect 0; update-features a:0!,b:0!; ",
        "disabled": old + "elect 0; ",
    }
    for before, brokers, number in product(befores.values(), (new, old), (0, 1)):
        yield f"{before}{brokers}node; elect {number}; node; watch 0; features 0; elect {number}; node"
    for text in ("a:0!", "b:1!", "a:0!,b:0!", "a:1!,b:0!", "a:1!,b:1!", "c:0!", "a:9", ""):
        yield f"{new}elect 0; watch 1; features 1; node; update-features {text}; node; features 1; watch 1; features 1"
    for low, high in RANGES:  # a feature is added again
        begun = f"start 0 a:{low}-{high}; start 1 a:1-3; elect 0; update-features a:0!; node; "
        yield f"{begun}update-features a:{high}; node; update-features a:{high - 1}!; node"
    for each, number in product((new + "elect 0; ", old + "elect 0; "), (0, 1)):
        yield f"{each}node; stop {number}; node; start {number} a:1-3,b:1-3; node; handle {number}; node; elect 1; node"


def cluster_arrivals() -> Iterator[str]:
    """A broker that lacks one of two finalized features, or its level, starts, or reads the node, and is handled."""
    spans: tuple[tuple[int, int] | None, ...] = (*RANGES, None)
    for level, (one, other) in product(
        (1, 2, 3), [(each, WHOLE) for each in spans] + [(WHOLE, each) for each in spans]
    ):
        features = [f"{name}:{_span(each)}" for name, each in (("a", one), ("b", other)) if each is not None]
        starts = "start 1 " + ",".join(features)
        levels = f"update-features a:{level}!,b:{level}!; " if level < 3 else ""
        begun = f"start 0 a:1-3,b:1-3; elect 0; {levels}"
        yield f"{begun}node; {starts}; features 1; handle 1; node"
        yield f"{starts}; {begun}node; watch 1; features 1; version 1"
    for level, each in product((1, 2, 3), RANGES):  # a level rises before the registration of a broker is handled
        begun = f"start 0 a:1-3,b:1-3; elect 0; update-features a:0!; start 1 a:{_span(each)},b:1-3; "
        yield f"{begun}update-features a:{level}; node; watch 1; features 1; handle 1; node"
    for level, static, old in product((1, 2, 3), (1, 2, 3), ("", " old")):
        begun = f"start 0 ibp_feature:1-{level} static {static}{old}; "
        yield f"{begun}version 0; elect 0; node; watch 0; features 0; version 0"


# Clients, groups, tools


def discovery() -> Iterator[str]:
    """Two answers in each order of epochs; what is needed against what is finalized, and supported; results."""
    for before, after in product((-1, 0, 1, 2), repeat=2):
        yield f"client needs a:2; answer {before} a:1-1; answer {after} a:1-2 supports a:1-3"
    for needed, (low, high), supported in product((1, 2, 3), RANGES, ("", " supports a:1-3")):
        yield f"client needs a:{needed}; answer 1 a:{low}-{high}{supported}; answer 2 b:1-3{supported}"
    for needs, seconds in product(("", " needs a:1"), (600, 1800)):
        yield f"client{needs}; pass {seconds}; pass {seconds}; pass {seconds}"
    errors = ("NONE", "INVALID_REQUEST", "FEATURE_UPDATE_FAILED")
    for one, other, top in product(errors, errors, ("", " top NOT_CONTROLLER", " top CLUSTER_AUTHORIZATION_FAILED")):
        yield f"client; results a:{one},b:{other}{top}"


def app_upgrades() -> Iterator[str]:
    """Each moment of an upgrade of two members, and of its way back, with everything that can happen then."""
    known = "finalize 2; notify 0; begin a; begin b; "
    both = known + "rebalance 0; instruct a; instruct b; "
    moments = (
        "begin a; begin b; ", "finalize 2; begin a; begin b; ", known, known + "rebalance 1; ", known + "rebalance 0; ",
        known + "rebalance 0; instruct a; ", known + "rebalance 0; instruct a; finalize 1; ", both,
        both + "finalize 1; ", both + "finalize 1; notify 0; ",
        both + "wipe; finalize 1; notify 0; ", both + "wipe; finalize 1; ",
        known + "rebalance 0; end a; ", known + "rebalance 0; begin a; ", both + "begin a; rebalance 1; ",
    )  # fmt: skip
    actions = (
        "ask 0",
        "ask 1",
        "rebalance 0",
        "rebalance 1",
        "commit a",
        "commit b",
        "instruct a",
        "instruct b",
        "wipe",
    )
    for moment, action in product(moments, actions):
        yield f"{moment}{action}; app; commit b; rebalance 1; app"


def tool_commands() -> Iterator[str]:
    """X and Y in each command, dry or not, with two brokers of which one may lack the level."""
    commands = ("update upgrade a:{}", "update downgrade a:{}", "update delete a", "upgrade-all", "downgrade-all")
    for level, requested, command, dry in product(LEVELS, (1, 2, 3), commands, ("", " dry")):
        begun = "tool broker a:1-3,b:1-3; " + (f"tool update upgrade a:{level},b:2; " if level else "")
        text = command.format(requested)
        yield f"{begun}tool knows a:{requested}; tool describe; tool {text}{dry}; tool describe"
    for low, place, text in product(
        (1, 2), (0, 1), ("update upgrade a:2,b:2", "update upgrade b:2,a:3", "upgrade-all")
    ):
        spans = [f"tool broker a:1-{low if number == place else 3},b:1-3; " for number in (0, 1)]
        yield f"{''.join(spans)}tool knows a:3,b:3; tool {text}; tool describe; tool {text}; tool describe"


# Controllers with ZooKeeper


def zookeeper_life() -> Iterator[str]:
    """What the node is before a controller starts, below and above the migration version, and is lost or not."""
    nodes = ("", "write node; ", "write node disabled; ", "write node disabled a:1-1; ", "write node a:1-1; ")
    shown = "zk-node; read 0; zk-features 0; zk-registration 0; "
    for node, first, second in product(nodes, ("2.6", "2.7"), ("2.6", "2.7")):
        begun = f"{node}controller at {first}; {shown}zk-update v0 a:1; controller at {second}; {shown}"
        yield f"{begun}zk-update v0; zk-node"
        yield f"{begun}delete node; {shown}controller at {second}; {shown}"
        yield f"{begun}delete node; controller at {second}; {shown}"


def zookeeper_updates() -> Iterator[str]:
    """X, Y and the flag, with another broker that forbids some levels or all; and requests for several features."""
    others = ("", "declare 1; ", *(f"declare 1 a:{low}-{high}; " for low, high in RANGES))
    shown = "zk-node; read 0; zk-features 0"
    for other, (x, y, flag) in product(others, product(LEVELS, REQUESTED, ("", "!"))):
        node = f"write node a:1-{x}; " if x else "write node; "
        yield f"declare 0 a:1-3; controller at 2.7; {node}{other}zk-update v0 a:{y}{flag}; {shown}"
    for levels in ("a:0!,b:0!", "b:0!,a:0!", "a:0!,b:9", "b:9,a:0!", "a:1,b:0!", "a:1!,b:1!"):
        yield f"declare 0 a:1-2,b:1-2; controller at 2.7; zk-node; zk-update v0 {levels}; {shown}"
    yield f"declare 0 a:1-2; controller at 2.7; {shown}; controller at 2.6; {shown}; controller at 2.7; {shown}"


UPDATES_OF_ONE: Final = table(controller.OPERATIONS, updates_of_one)
ARRIVALS_OF_ONE: Final = table(controller.OPERATIONS, arrivals_of_one)
CLUSTER_UPDATES: Final = table(cluster.OPERATIONS, cluster_updates)
CLUSTER_LIFE: Final = table(cluster.OPERATIONS, cluster_life)
CLUSTER_ARRIVALS: Final = table(cluster.OPERATIONS, cluster_arrivals)
DISCOVERY: Final = table(client.OPERATIONS, discovery)
APP_UPGRADES: Final = table(app.OPERATIONS, app_upgrades)
TOOL_COMMANDS: Final = table(tool.OPERATIONS, tool_commands)
ZOOKEEPER_LIFE: Final = table(zookeeper.OPERATIONS, zookeeper_life)
ZOOKEEPER_UPDATES: Final = table(zookeeper.OPERATIONS, zookeeper_updates)
