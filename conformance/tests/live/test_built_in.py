"""The consumers that come with kipcheck: their programs, settings and names."""

import pytest

from kipcheck.conformance.live import compiled
from kipcheck.conformance.live.built_in import BUILT_IN, Settings, command, program
from kipcheck.conformance.tests.support.loops import for_each

LINES = 60


@for_each([*BUILT_IN])
def test_a_program_is_short_and_reads_every_setting_that_it_needs(name: str) -> None:
    folder = program("")
    (path,) = [each for each in folder.iterdir() if each.stem in (f"consume_{name.replace('-', '_')}", "Consume")
               and (each.stem == "Consume") == (name == "java")]  # fmt: skip
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= LINES
    for setting in ("BOOTSTRAP", "GROUP", "TOPICS", "CLIENT_ID", "SESSION_MS", "HEARTBEAT_MS"):
        assert setting in text
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
    with pytest.raises(LookupError, match=r"use a release from 2\.0\.0"):
        command("java@1.1.1")
    with pytest.raises(LookupError, match="invalid release"):
        command("java@new")


def test_a_named_release_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "java", lambda version, source: (version, source.name))
    assert command("java@2.3.1") == ("2.3.1", "Consume.java")
    assert compiled.java("2.3.1", program("Consume.java"))[0] == "2.3.1"
