"""Which tests run: those that need a JDK and jars, Go or Node are skipped where there are none, with the reason, or
fail where they are required.
"""

import os
from collections.abc import Generator, Iterator

import pytest

from conformance.artifacts import Unavailable
from conformance.targets.java import JavaCodec, java_judge
from conformance.targets.protocol import Unavailable as Missing

REQUIRE = "KIPCHECK_REQUIRE"
"""Words with commas between them, ``jars``, ``index``, ``go``, ``node``, ``spark``: a test that cannot have what it
needs of it fails. ``index``: earlier releases of Python clients, in environments of their own.
"""
NEEDS = {"jars": "jars", "all_jars": "jars", "go": "go", "node": "node", "spark": "spark"}
"""Marker -> the word for what it needs."""
ORACLES = {
    "3.9.2": ("streams", "metadata", "group-coordinator", "transaction-coordinator"),
    "4.4.0": ("metadata", "group-coordinator", "transaction-coordinator"),
    "4.3.1": ("streams",),
}
"""Together they know every version: the last release with the old ones, and the newest of each artifact."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-jars", action="store_true", help="run the tests on every release line too")
    parser.addoption("--faults", action="store_true", help="run the slow drills of campaigns too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    unasked = [marker for marker in ("all_jars", "faults") if not config.getoption(f"--{marker.replace('_', '-')}")]
    left = [item for item in items if any(item.get_closest_marker(marker) for marker in unasked)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    yield from _skipped_without_its_needs(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    yield from _skipped_without_its_needs(item)


def _skipped_without_its_needs(item: pytest.Item) -> Generator[None, None, None]:
    try:
        yield
    except (Unavailable, Missing) as why:
        needs = {word for marker, word in NEEDS.items() if item.get_closest_marker(marker)}
        if not needs or needs & set(os.environ.get(REQUIRE, "").split(",")):
            raise
        pytest.skip(str(why))


@pytest.fixture(scope="session")
def judge() -> Iterator[JavaCodec]:
    """The oracle releases in one JVM."""
    with java_judge(ORACLES) as codec:
        yield codec
