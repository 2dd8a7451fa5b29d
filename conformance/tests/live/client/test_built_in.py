"""The consumers that come with kipcheck: their programs, settings and names."""

from pathlib import Path

import pytest

from kipcheck.conformance.live.client import compiled
from kipcheck.conformance.live.client.built_in import BUILT_IN, PREFIX, Settings, command, program, release, taken
from kipcheck.conformance.targets.toolchains import build, node
from kipcheck.conformance.tests.support.loops import for_each

LINES = 60
LACKED = {
    "kafka-python": {"PROTOCOL"},
    "aiokafka": {"PROTOCOL"},
    "sarama": {"PROTOCOL"},
    "kafkajs": {"INSTANCE", "ASSIGNORS", "PROTOCOL"},
    "platformatic-kafka": {"ASSIGNORS"},
}
"""Settings that a client does not have."""


@for_each([*BUILT_IN])
def test_a_program_is_short_and_reads_every_setting_that_its_client_has(name: str) -> None:
    folder = program("")
    (path,) = [each for each in folder.iterdir() if each.stem in (f"consume_{name.replace('-', '_')}", "Consume")
               and (each.stem == "Consume") == (name == "java")]  # fmt: skip
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= LINES
    all_given = Settings("a", "g", ("t",), "c", "i", "range", 1, 1, 1, "classic").environment
    names = {each.removeprefix(PREFIX) for each in all_given}
    assert {each for each in names if f'"{each}"' in text or f"'{each}'" in text} == names - LACKED.get(name, set())
    assert "SIGTERM" in text or "ShutdownHook" in text


def test_settings_become_variables_and_those_not_given_are_left_out() -> None:
    given = Settings("127.0.0.1:1", "g", ("t", "u"), instance="i", session_ms=7)
    assert given.environment == {
        "KIPCHECK_BOOTSTRAP": "127.0.0.1:1", "KIPCHECK_GROUP": "g", "KIPCHECK_TOPICS": "t,u", "KIPCHECK_INSTANCE": "i",
        "KIPCHECK_SESSION_MS": "7",
    }  # fmt: skip


def test_an_unknown_client_is_refused_with_the_nearest() -> None:
    with pytest.raises(LookupError, match="unknown client 'kafkapython'; the nearest: kafka-python"):
        command("kafkapython")
    with pytest.raises(LookupError, match=r"use a release from 1\.0\.0"):
        command("java@0.11.0.3")
    with pytest.raises(LookupError, match="invalid release"):
        command("java@new")


def test_signals_reach_node_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper = tmp_path / "node"
    wrapper.write_text("#!/bin/sh\necho /opt/node\n", "utf-8")
    wrapper.chmod(0o755)
    monkeypatch.setattr(node, "node", lambda: wrapper)
    monkeypatch.setattr(build, "built", lambda *given: tmp_path)
    assert compiled.in_node("kafkajs", "2.2.4", Path("a.mjs")) == ("/opt/node", "--no-opt", "a.mjs", str(tmp_path))


def test_what_a_program_reads_is_known() -> None:
    assert {"instance", "assignors", "session_ms"} <= taken("kafka-python@2.3.0")
    assert "protocol" in taken("java") and "protocol" not in taken("kafka-python")
    assert release("kafka-python@2.3.0") == "2.3.0" and release("kafkajs") == "2.2.4"


def test_a_named_release_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "java", lambda version, source: (version, source.name))
    assert command("java@2.3.1") == ("2.3.1", "Consume.java")
    assert compiled.java("2.3.1", program("Consume.java"))[0] == "2.3.1"
