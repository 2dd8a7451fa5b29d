"""Runs brokers of Kafka releases, for a test that is skipped where their jars cannot be had."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import pytest

from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.targets.toolchains.kafka_nodes import BOTH, CONTROLLER, cluster


@contextmanager
def running(
    release: str, level: str | None = None, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[int]:
    """The port of a broker with the settings of Kafka's quickstart, and more; it ends with the block.

    ``level``: the metadata.version of its new cluster; None for the usual one.
    """
    try:
        kafka_broker.class_path(release)
    except Unavailable as why:
        pytest.skip(str(why))
    with kafka_broker.running(release, settings, level=level) as broker:
        yield broker.port


@contextmanager
def with_a_controller_behind(release: str) -> Iterator[tuple[int, int]]:
    """A cluster at 3.6-IV2 whose second of three controllers is 3.6.2: the ports of its broker, and of that controller.

    Both other controllers have the release, and one of them leads.
    """
    old = "3.6.2"
    try:
        for each in (release, old):
            kafka_broker.class_path(each)
    except Unavailable as why:
        pytest.skip(str(why))
    with cluster("3.6-IV2", {1: BOTH, 2: CONTROLLER, 3: CONTROLLER}) as nodes:
        nodes.start(1, release)
        nodes.start(3, release)
        nodes.wait(1)
        nodes.start(2, old)
        nodes.wait(2)
        yield nodes.nodes[1].port, nodes.nodes[2].controller
