"""Measures how fast models are explored: ``python -m kipcheck.conformance.benchmarks.explore``.

One run, CPU time. The first pass computes all transitions; the second visits the same states with cached transitions,
so it measures the search alone. The readable search has smaller scopes.
"""

from time import process_time
from typing import Any

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.machines.plain_search import explore
from kipcheck.conformance.machines.product import SimpleProduct
from kipcheck.conformance.machines.search import Search
from kipcheck.conformance.protocols.playables import playable

SCOPES = (
    ("group", "apache@3.9.2", "crashes=0"),
    ("group", "apache@3.9.2", ""),
    ("cluster", "apache@3.9.2", "members=2,partitions=2"),
    ("cluster", "apache@3.9.2", ""),
    ("bounce", "apache@3.9.2", ""),
    ("bounce", "kip-429", ""),
)
READABLE = (
    ("group", "apache@3.9.2", "static=1,dynamic=1,crashes=0"),
    ("cluster", "apache@3.9.2", "members=2,crashes=0"),
)
EVERYTHING = 10**9


def main() -> None:
    print(f"{'':52} {'states':>9} {'transitions':>12} {'computed':>9} {'states/s':>9} {'again':>9}")
    for name, text, scope in SCOPES:
        search = Search(product(name, text, scope))
        first = passed(search)
        computed = search.asked
        search.restart()
        second = passed(search)
        print(
            f"{name + ' ' + text + ' ' + scope:52} {search.states:9,} {search.transitions:12,} {computed:9,} "
            f"{search.states / first:9,.0f} {search.states / second:9,.0f}"
        )
    print(f"\n{'readable':52} {'states':>9} {'transitions':>12} {'':>9} {'states/s':>9}")
    for name, text, scope in READABLE:
        started_at = process_time()
        edges = [edge.after for edge in explore(SimpleProduct(product(name, text, scope)), lambda state: True)]
        spent, states = process_time() - started_at, len(set(edges)) + 1
        print(f"{name + ' ' + text + ' ' + scope:52} {states:9,} {len(edges):12,} {'':>9} {states / spent:9,.0f}")


def product(name: str, text: str, scope: str) -> Any:
    model, edition_used = playable(name), edition(text)
    return model.world(edition_used, model.scope(scope, edition_used))


def passed(search: Search[Any, Any, Any]) -> float:
    started_at = process_time()
    search.run(EVERYTHING)
    assert search.complete
    return process_time() - started_at


if __name__ == "__main__":
    main()
