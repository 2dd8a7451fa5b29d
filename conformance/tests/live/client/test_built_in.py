"""The consumers that come with kipcheck: their programs, settings and names."""

from pathlib import Path

import pytest

from kipcheck.conformance.live.client import compiled
from kipcheck.conformance.live.client.built_in import (
    BUILT_IN,
    JAVA,
    PREFIX,
    Settings,
    command,
    program,
    release,
    sources,
    taken,
)
from kipcheck.conformance.targets.toolchains import build, go, node
from kipcheck.conformance.tests.support.loops import for_each

LINES = 210
OF_POLLS = frozenset({"POLL_MS", "RESUME"})
"""Of clients whose users poll, and may resume partitions."""
LACKED = {
    "kafka-python": {"PROTOCOL"},
    "aiokafka": {"PROTOCOL"},
    "franz-go": {"MAX_POLL_MS", *OF_POLLS},
    "sarama": {"PROTOCOL", "MAX_POLL_MS", "PATTERN", *OF_POLLS},
    "kafkajs": {"INSTANCE", "ASSIGNORS", "PROTOCOL", "MAX_POLL_MS", *OF_POLLS},
    "platformatic-kafka": {"ASSIGNORS", "MAX_POLL_MS", "PATTERN", *OF_POLLS},
    "kafka-go": {"INSTANCE", "PROTOCOL", "MAX_POLL_MS", "PATTERN", *OF_POLLS},
}
"""Settings that a client does not have."""


@for_each([*BUILT_IN])
def test_a_program_is_short_and_reads_every_setting_that_its_client_has(name: str) -> None:
    stem = JAVA if name == "java" else f"consume_{name.replace('-', '_')}"
    texts = [each.read_text("utf-8") for each in sources(stem, release(name))]
    assert all(len(each.splitlines()) <= LINES for each in texts)
    text = "".join(texts)
    all_given = Settings(
        "a", "g", ("t",), "c", "i", "range", 1, 1, 1, "classic", "auto", 1, 1, "^t$", "latest", 1, 0, "always"
    ).environment
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


def test_a_setting_that_a_release_lacks_is_not_given_to_it() -> None:
    assert "protocol" not in taken("franz-go@1.18.1") and "protocol" in taken("franz-go@1.19.0")
    assert {"instance", "assignors"} <= taken("sarama@1.37.0") and "assignors" not in taken("sarama@1.36.0")
    assert "instance" in taken("sarama@1.34.0") and "instance" not in taken("sarama@1.33.0")
    assert "commit" in taken("sarama@1.27.0") and "commit" not in taken("sarama@1.26.4")
    assert "instance" in taken("kafka-python@2.3.0") and "instance" not in taken("kafka-python@2.2.20")
    assert "instance" in taken("platformatic-kafka@1.27.0") and "instance" not in taken("platformatic-kafka@1.22.0")


def test_a_program_has_one_part_for_releases_that_differ() -> None:
    def parts(stem: str, version: str) -> list[str]:
        return [each.stem.removeprefix(stem) for each in sources(stem, version)]

    assert parts("consume_franz_go", "1.21.10") == ["", "_from_1_19_0"]
    assert parts("consume_franz_go", "1.22.0") == ["", "_from_1_22_0"]
    assert parts("consume_kafka_go", "0.2.3") == ["", "_from_0_1_0"]
    assert parts("consume_kafka_go", "0.4.9") == ["", "_from_0_3_0"]
    assert parts("consume_kafka_python", "3.0.12") == [""]


@for_each([("1.40.0", "IBM"), ("1.38.1", "Shopify")])
def test_a_module_is_imported_by_the_path_that_it_had(
    version: str, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[build.Recipe] = []

    def built(name: str, release: str, recipe: build.Recipe) -> Path:
        made.append(recipe)
        return Path(f"{name}-{release}")

    monkeypatch.setattr(build, "built", built)
    monkeypatch.setattr(go, "go", lambda: Path("go"))
    monkeypatch.setattr(build, "version_text", lambda argv: "go version go1.26.8")
    assert command(f"sarama@{version}") == (f"live-sarama-{version}/program",)
    (recipe,) = made
    programs = [text for name, text in recipe.texts.items() if name.endswith(".go")]
    assert len(programs) == 2 and all(f'"github.com/{owner}/sarama"' in each for each in programs)
    assert [*recipe.steps[0][1]] == ["get", f"github.com/{owner}/sarama@v{version}"]


def test_a_named_release_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "java", lambda version, source: (version, source.name))
    assert command("java@2.3.1") == ("2.3.1", "Consume.java")
    assert compiled.java("2.3.1", program("Consume.java"))[0] == "2.3.1"
