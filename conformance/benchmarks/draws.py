"""Measures the cost of drawing a value, by engine: ``python -m kipcheck.conformance.benchmarks.draws``.

One run, CPU time; ``@given`` without database, deadline and shrinking, the compiled draw in a loop. Both draw from one
declaration, but not the same values. Only ratios are meaningful: the microseconds are of one machine.
"""

from collections.abc import Callable
from random import Random
from time import process_time
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.constructs import byte_map
from kipcheck.strategies.as_hypothesis import strategy
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.damage import damages
from kipcheck.strategies.messages import from_layout
from kipcheck.strategies.nodes import Node
from kipcheck.strategies.versions import join_group_stream, version_mix

MESSAGES = (
    ("JoinGroupRequest", 0),
    ("JoinGroupRequest", 9),
    ("ApiVersionsResponse", 4),
    ("ConsumerProtocolSubscription", 3),
    ("SubscriptionInfo", 11),
    ("AssignmentInfo", 11),
    ("StreamsGroupHeartbeatRequest", 1),
)


def main() -> None:
    nodes: dict[str, Node] = {
        **{f"{name} v{version}": from_layout(layout("apache", name, version)) for name, version in MESSAGES},
        "versions of a group": version_mix(),
        "JoinGroup requests of a group": join_group_stream(),
    }
    print(f"{'us a value':32} {'@given':>8} {'compiled':>9} {'ratio':>7}")
    for name, node in nodes.items():
        slow, fast = by_given(node, 300), by_compiled(node, 3_000)
        print(f"{name:32} {slow:8.0f} {fast:9.1f} {slow / fast:6.0f}x")
    print(f"\n{'us a value':32} {'encode':>8} {'map':>9} {'damages':>9} {'damaged':>9}")
    for name, version in MESSAGES:
        print(f"{name + f' v{version}':32} {harm(name, version, 300)}")


def microseconds(work: Callable[[], object], cases: int) -> float:
    start = process_time()
    work()
    return (process_time() - start) * 1e6 / cases


def by_given(node: Node, cases: int) -> float:
    @settings(
        max_examples=cases,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy(node))
    def nothing(value: Any) -> None:
        pass

    return microseconds(nothing, cases)


def by_compiled(node: Node, cases: int) -> float:
    draw, random = compiled(node), Random(0)
    for _ in range(50):  # embedded nodes are compiled at their first use
        draw(random)
    return microseconds(lambda: [draw(random) for _ in range(cases)], cases)


def harm(name: str, version: int, cases: int) -> str:
    one = layout("apache", name, version)
    draw, random = compiled(from_layout(one)), Random(0)
    values = [draw(random) for _ in range(cases)]
    encode = microseconds(lambda: [one.encode(value) for value in values], cases)
    places = microseconds(lambda: [byte_map(one, value) for value in values], cases)
    made: list[Any] = []
    each = microseconds(lambda: made.extend(x for value in values for x in damages(one, value, random)), cases)
    return f"{encode:8.1f} {places:9.1f} {each:9.0f} {len(made) / cases:9.1f}"


if __name__ == "__main__":
    main()
