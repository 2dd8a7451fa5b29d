"""The command ``features --bootstrap-server``, on controllers of kipcheck's own and on a released broker."""

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.tests.support.wire_features import feature_broker


def tool(address: str, *options: str) -> int:
    return run(["features", "--bootstrap-server", address, *options])


def test_levels_fall_and_rise_on_a_controller_of_3_9(capsys: pytest.CaptureFixture[str]) -> None:
    def lines(*options: str) -> tuple[int, list[str]]:
        code = tool(address, *options)
        return code, capsys.readouterr().out.splitlines()

    line = "Feature: metadata.version  ExistingFinalizedMaxVersion: {}  NewFinalizedMaxVersion: {}  Result: OK"
    lower = ("downgrade-all", "--from-kafka-release", "3.8.1")
    with feature_broker("apache@3.9.2") as address:
        assert lines(*lower, "--dry-run") == (0, [f"[Downgrade] {line.format(21, 20)}"])
        assert lines("upgrade-all") == (0, [])  # nothing was changed
        assert lines(*lower) == (0, [f"[Downgrade] {line.format(21, 20)}"])
        assert "FinalizedMaxVersionLevel: 20" in lines("describe")[1][1]
        assert lines("upgrade-all") == (0, [f"[Upgrade] {line.format(20, 21)}"])
        code, found = lines("update", "--upgrade", "kraft.version:1,metadata.version:99")
        assert (code, [each.partition("Result: ")[2][:22] for each in found]) == (1, ["OK", "INVALID_UPDATE_VERSION"])


def test_one_refused_update_fails_all_on_a_controller_of_4_0(capsys: pytest.CaptureFixture[str]) -> None:
    with feature_broker("apache@4.0.0") as address:
        assert tool(address, "update", "--delete", "group.version", "--upgrade", "metadata.version:99") == 1
        out = capsys.readouterr().out
        assert out.count("Result: INVALID_UPDATE_VERSION") == 2
        assert tool(address, "update", "--delete", "group.version") == 0
        assert "[Delete] Feature: group.version  ExistingFinalizedMaxVersion: 1  NewFinalizedMaxVersion: -" in (
            capsys.readouterr().out
        )


@for_each(
    [
        (("upgrade-all", "--from-kafka-release", "9.9"), "unknown release '9.9'"),
        (("downgrade-all", "--from-kafka-release", "2.8.2"), "release 2.8.2 has no KRaft controller"),
        (("update", "--upgrade", "grup.version:1"), "unknown feature 'grup.version'"),
        (("update", "--upgrade", "kraft.version"), "invalid --upgrade 'kraft.version': use FEATURE:LEVEL"),
        (("update", "--from-kafka-release", "3.9.2", "--delete", "kraft.version"), "belongs to upgrade-all and"),
        (("update",), "nothing to update"),
        (("describe", "--delete", "kraft.version"), "--delete belongs to the action update"),
        (("describe", "--state", "x"), "only one of them"),
    ]
)
def test_bad_input_is_one_line(options: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with feature_broker("apache@3.9.2") as address:
        assert tool(address, *options) == 2
    err = capsys.readouterr().err
    assert why in err and err.count("\n") == 1


@for_each(
    [
        ("127.0.0.1:1", "the cluster does not answer: 127.0.0.1:1 accepts no connection"),
        ("192.0.2.1:9092", "192.0.2.1 is not this machine: add --allow-remote"),
    ]
)
def test_what_cannot_be_asked_is_one_line(address: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool(address, "describe") == 2
    assert why in capsys.readouterr().err


def test_with_zookeeper_updates_are_refused_and_there_is_no_dry_run(capsys: pytest.CaptureFixture[str]) -> None:
    with feature_broker("apache@2.8.2") as address:
        assert (tool(address, "describe"), capsys.readouterr().out) == (0, "")
        assert tool(address, "upgrade-all", "--from-kafka-release", "3.9.2", "--dry-run") == 2
        assert "leave out --dry-run" in capsys.readouterr().err
        assert tool(address, "upgrade-all", "--from-kafka-release", "3.9.2") == 1
        assert "Result: INVALID_REQUEST" in capsys.readouterr().out


def test_the_draft_is_no_running_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    with feature_broker("kip-584") as address:
        assert tool(address, "describe") == 2
    assert "has no feature versions" in capsys.readouterr().err


@pytest.mark.jars
def test_levels_of_a_released_broker(capsys: pytest.CaptureFixture[str]) -> None:
    with kafka_broker.running("4.3.1", coordinates=False) as broker:
        assert tool(broker.address, "update", "--downgrade", "streams.version:1", "--dry-run") == 0
        assert tool(broker.address, "upgrade-all") == 0
        assert tool(broker.address, "update", "--delete", "streams.version") == 0
        assert tool(broker.address, "downgrade-all", "--from-kafka-release", "4.0.2") == 1
        assert "Result: INVALID_UPDATE_VERSION: " in capsys.readouterr().out.splitlines()[-1]
        assert tool(broker.address, "upgrade-all") == 0
        out = capsys.readouterr().out
    assert out == (
        "[Add] Feature: streams.version  ExistingFinalizedMaxVersion: -  NewFinalizedMaxVersion: 1  Result: OK\n"
    )
