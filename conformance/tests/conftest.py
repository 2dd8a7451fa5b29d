"""Which tests run, and for how long: tiers by marker, a limit for each test, and a skip where a tool is missing.

Without an option the default tier runs: the tests without a marker of another tier. ``nox -s integration`` and the
parts of ``nox -s nightly`` run the others. A test that needs a JDK and jars, Go, Node or Spark is skipped with the
reason where these are missing, or fails where they are required.
"""

import gc
import os
import signal
import sys
from collections.abc import Collection, Generator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kipcheck.conformance.clients.java.programs import JavaCodec, java_judge
from kipcheck.conformance.targets.protocol import Unavailable, Unavailable as Missing
from kipcheck.conformance.tests.support.releases import ORACLES

REQUIRE = "KIPCHECK_REQUIRE"
"""Words with commas between them, ``jars``, ``index``, ``go``, ``node``, ``spark``: a test that cannot have what it
needs of it fails. ``index``: earlier releases of Python clients, in environments of their own.
"""
NEEDS = {"jars": "jars", "all_jars": "jars", "go": "go", "node": "node", "spark": "spark"}
"""Marker -> the word for what it needs."""
TIERS: Final = ("default", "integration", "jars", "mutants", "faults", "long", "hostile")
"""What ``--tier`` takes. The last five are parts of ``nox -s nightly``; ``jars`` runs all tests that ask jars."""
LIMIT_S: Final = 120
"""Of a test in the default tier: [tool.pytest.ini_options] sets it. A slower test belongs to a later tier."""
COLLECTIONS: Final = (20_000, 20, 50)
"""Thresholds of the garbage collector, in allocations, collections and collections."""
LATER_LIMIT_S: Final = 900
"""Of a test in a later tier that has no ``timeout`` mark of its own."""


def tiers_of(markers: Collection[str]) -> frozenset[str]:
    """The tiers of a test with these markers."""
    night = {"all_jars": "jars", "mutants": "mutants", "faults": "faults", "long": "long", "hostile": "hostile"}
    found = {tier for marker, tier in night.items() if marker in markers}
    if "jars" in markers:
        found.add("jars")
    if not any(marker in markers for marker in night):
        needs = any(marker in markers for marker in NEEDS) and "default" not in markers
        found.add("integration" if needs or "integration" in markers else "default")
    return frozenset(found)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=(*TIERS, "all"), default="default", help="which tests to run (default: default)")


def pytest_configure(config: pytest.Config) -> None:
    _one_name()
    # A shell without job control starts background jobs with SIGINT ignored; tests that interrupt kipcheck, and all
    # processes that they start, need the usual handler.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Where Python may not keep what it compiles, each of some thousand child processes compiles all it imports again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # The tests of a worker keep millions of objects alive, which each full collection visits again.
    gc.set_threshold(*COLLECTIONS)


def _without_constants_of_sources() -> None:
    """Keeps Hypothesis from parsing all of our modules in each worker, some seconds of processor time in a new clone.

    It adds their numbers and texts to what it draws anyway. Later tiers have them.
    """
    providers: Any = sys.modules.get("hypothesis.internal.conjecture.providers")
    if hasattr(providers, "_get_local_constants"):  # else a release of Hypothesis that has another name for it
        providers._get_local_constants = lambda: providers._local_constants


def _one_name() -> None:
    """Every module of ours has one name: under a second one its classes would be others, and no ``isinstance`` hold."""
    if not __name__.startswith("kipcheck."):
        raise pytest.UsageError(
            f"{__name__} is not a name of these tests: give their place in the package, "
            "as in python -m pytest src/kipcheck/conformance/tests/cli/test_cli.py"
        )
    root = Path(__file__).resolve().parents[2]
    # Where "python -m pytest" puts it, "import conformance" would find the folder of that name.
    sys.path[:] = [each for each in sys.path if Path(each).resolve() != root]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tier = config.getoption("--tier")
    if tier == "default":
        _without_constants_of_sources()
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        tiers = tiers_of({each.name for each in item.iter_markers()})
        _limit(item, tiers)
        (kept if tier == "all" or tier in tiers else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


def _limit(item: pytest.Item, tiers: frozenset[str]) -> None:
    own = item.get_closest_marker("timeout")
    if "default" in tiers:
        if own is not None and own.args[0] > LIMIT_S:
            raise pytest.UsageError(f"{item.nodeid}: a limit of {own.args[0]} s needs the marker of a later tier")
    elif own is None:
        item.add_marker(pytest.mark.timeout(LATER_LIMIT_S))


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
