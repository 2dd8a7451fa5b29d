"""Runs one broker of a Kafka release, for a test that is skipped where its jars cannot be had."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import kafka_broker


@contextmanager
def running(release: str, level: str | None = None) -> Iterator[int]:
    """The port of a broker with the settings of Kafka's quickstart; it ends with the block.

    ``level``: the metadata.version of its new cluster; None for the usual one.
    """
    try:
        kafka_broker.class_path(release)
    except Unavailable as why:
        pytest.skip(str(why))
    form = None if level is None else kafka_broker.Format(options=("--release-version", level))
    with kafka_broker.running(release, form=form) as broker:
        yield broker.port
