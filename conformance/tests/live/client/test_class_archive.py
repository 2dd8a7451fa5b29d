"""The archive of the Java consumer's classes: made once, used, and no condition of a run."""

from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.live.client import class_archive
from kipcheck.conformance.live.client.target import LiveClient
from kipcheck.conformance.targets.protocol import Broken
from kipcheck.conformance.targets.registry import target
from kipcheck.conformance.targets.transport import process_tree

OPTION = "-XX:SharedArchiveFile="


def test_a_consumer_that_cannot_be_archived_is_tried_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    jar, tried = tmp_path / "consumer.jar", list[Any]()
    jar.touch()

    async def fails(edition: Any, launcher: Any, steps: Any) -> None:
        tried.append(launcher.words)
        raise Broken("it does not join")

    monkeypatch.setattr(class_archive, "play", fails)
    command = ("java", "-Xmx1m", "-cp", str(jar), "Consume")
    first, second = (class_archive.archived(command, edition("apache")) for _ in range(2))
    assert first == second and (*first[:2], *first[3:]) == command
    assert len(tried) == 1 and "-XX:ArchiveClassesAtExit=" in tried[0][2]
    assert Path(first[2].removeprefix(OPTION)).read_bytes() == b""
    jar.write_bytes(b"another")
    assert class_archive.archived(command, edition("apache")) != first


@pytest.mark.jars
def test_classes_of_a_client_come_from_its_archive() -> None:
    live = target("client:java@4.4.0")
    assert isinstance(live, LiveClient)
    argv = [*live.launcher.words]  # type: ignore[attr-defined]
    done = process_tree.run([argv[0], "-Xlog:class+load", *argv[1:]], 60)
    (loaded,) = (each for each in done.stdout.splitlines() if "clients.consumer.KafkaConsumer source" in each)
    assert "shared objects file (top)" in loaded
