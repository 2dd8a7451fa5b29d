"""``kipcheck roll``: what is written at each step of an upgrade, and the last step that can be undone."""

import json

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.protocols.features.upgrades.roll import Roll, roll
from kipcheck.conformance.protocols.features.upgrades.roll_report import as_json, lines
from kipcheck.conformance.protocols.features.upgrades.ways_back import By


def changed(found: Roll, number: int) -> dict[str, tuple[int | None, int | None, str]]:
    return {each.format: (each.before, each.after, each.old_release) for each in found.steps[number].changes}


def test_a_roll_with_zookeeper_has_its_point_of_no_return(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["roll", "--from", "2.0.1", "--to", "2.3.1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("roll from 2.0.1 to 2.3.1, ZooKeeper\n")
    assert "2. raise inter.broker.protocol.version from 2.0 to 2.3, and restart\n" in out
    assert "   OffsetCommitValue 1 -> 3: 2.0.1 cannot read it\n" in out
    assert "last step that can be undone: 1; step 2 is the point of no return\n" in out


@pytest.mark.parametrize(
    ("old", "new", "mode", "last", "steps"),
    [
        ("2.0.1", "2.3.1", None, 1, 3),
        ("2.1.1", "2.2.2", None, 2, 3),  # both write version 2 of groups, and 3 of offsets
        ("2.2.2", "2.3.1", None, 1, 3),  # groups in version 3
        ("0.10.2.2", "2.8.2", None, 0, 4),  # never run
        ("0.10.2.2", "3.9.2", None, 0, 3),  # from 3.0 on the inter-broker version raises the message format
        ("2.4.1", "3.2.3", None, 2, 3),
        ("3.3.2", "3.9.2", "zookeeper", 2, 3),
        ("3.3.2", "3.9.2", None, 1, 3),
        ("3.7.2", "3.9.2", None, 2, 3),
        ("3.9.2", "4.4.0", None, 1, 9),
        ("3.4.0", "4.1.0", None, 0, 7),
        ("3.4.0", "4.0.2", None, 1, 5),
        ("3.4.1", "4.1.0", None, 1, 7),
    ],
)  # fmt: skip
def test_the_last_step_that_can_be_undone(old: str, new: str, mode: str | None, last: int, steps: int) -> None:
    found = roll(old, new, mode)
    assert (found.last_undone, len(found.steps)) == (last, steps)


def test_a_level_that_was_lowered_has_to_wait_for_a_snapshot(capsys: pytest.CaptureFixture[str]) -> None:
    """Controllers 3.7.2 end with exit code 1 at a level 20 that was lowered to 19."""
    from importlib.resources import files

    assert run(["roll", "--from", "3.7.2", "--to", "3.8.1"]) == 0
    out = capsys.readouterr().out
    page = (files("kipcheck.conformance") / "docs" / "records.md").read_text("utf-8")
    assert f"```text\n{out}```" in page
    tool = "kafka-features.sh --bootstrap-server HOST:PORT"
    lowered, status, waits, listed, restarted = out.partition("the way back to 3.7.2:\n")[2].splitlines()
    assert lowered == f"   a. $ {tool} downgrade --feature metadata.version=19"
    assert status == "   b. $ kafka-metadata-quorum.sh --bootstrap-server HOST:PORT describe --status"
    assert waits.startswith("   c. WAIT until every node") and "metadata.log.max.snapshot.interval.ms" in waits
    assert listed == "   d. $ ls METADATA_LOG_DIR/__cluster_metadata-0/*.checkpoint"
    assert restarted == "   e. only then restart every node with 3.7.2, one by one"
    assert f"   $ {tool} upgrade --feature metadata.version=20\n" in out
    assert "step 2 only after the WAIT below" in out and "WAIT FOR A SNAPSHOT" in out


def test_json_has_what_the_way_back_waits_for() -> None:
    found = as_json(roll("3.7.2", "3.8.1"))
    restart, raised = found["steps"][1:]
    assert restart["way_back"] == {
        "by": "restart", "commands": [], "waits_for": None, "runs": ["3.7.2 3.8.1 no level 1"],
    }  # fmt: skip
    assert (
        raised["undone"]
        and raised["way_back"]["by"] == "snapshot"
        and "HighWatermark" in raised["way_back"]["waits_for"]
    )
    assert len(raised["way_back"]["commands"]) == 3 and len(raised["commands"]) == 1
    assert "3.7.2 3.8.1 metadata.version 1" in raised["way_back"]["runs"]
    kept = as_json(roll("3.9.2", "4.4.0"))["steps"][2]["way_back"]
    assert (kept["by"], kept["commands"], kept["waits_for"]) == ("impossible", [], None)


def test_each_way_back() -> None:
    by = {each.raised.feature: (each.by, each.undone) for each in roll("4.0.2", "4.1.2").steps if each.raised}
    assert by == {
        "metadata.version": (By.SNAPSHOT, True),
        "eligible.leader.replicas.version": (By.RESTART, True),
        "kraft.version": (By.KEPT, True),
    }


def test_what_was_never_run_is_unknown_and_not_safe(capsys: pytest.CaptureFixture[str]) -> None:
    found = roll("0.10.2.2", "0.11.0.3")  # nothing that it writes says so
    assert found.last_undone == 0 and [each.by for each in found.steps[1:2]] == [By.NOT_RUN]
    assert run(["roll", "--from", "0.10.2.2", "--to", "0.11.0.3"]) == 7
    out = capsys.readouterr().out
    assert "UNKNOWN whether 0.10.2.2 comes back after this step: not run with these releases" in out
    assert "last step that can be undone: none; of step 1 it is UNKNOWN" in out


@pytest.mark.parametrize(
    ("words", "assumed"),
    [
        (("3.2.3", "3.9.2"), "formatted in KRaft mode before 3.3.0"),
        (("3.7.2", "3.8.1"), "the cluster runs with KRaft; --mode zookeeper"),
        (("2.7.2", "3.9.2"), ""),
        (("3.9.2", "4.0.2"), ""),
        (("3.2.3", "3.9.2", "zookeeper"), ""),
    ],
)
def test_the_mode_that_is_assumed_is_named(words: tuple[str, ...], assumed: str) -> None:
    found = roll(*words)
    assert assumed in found.assumed and bool(found.assumed) == bool(assumed)
    shown = [each for each in lines(found) if each.startswith("assumed: ")]
    assert len(shown) == bool(assumed)


def test_the_binary_alone_takes_the_way_back_of_3_3() -> None:
    assert changed(roll("3.3.2", "4.1.2"), 1) == {"OffsetCommitValue": (3, 4, "fails")}
    assert changed(roll("3.9.2", "4.1.2"), 1) == {"OffsetCommitValue": (3, 4, "reads")}


def test_a_step_of_each_kind() -> None:
    found = roll("0.10.2.2", "2.8.2")
    assert changed(found, 1)["ProducerSnapshot"] == (None, 1, "ignores")
    assert changed(found, 2)["OffsetCommitValue"] == (1, 3, "fails")
    assert changed(found, 3) == {"RecordBatch": (1, 2, "fails")}
    assert found.steps[1].settings["log.message.format.version"] == "0.10.2"
    kraft = roll("3.9.2", "4.0.2")
    does = [each.does for each in kraft.steps]
    assert changed(kraft, does.index("raise transaction.version from 0 to 2")) == {
        "TransactionLogValue": (0, 1, "reads"), "level of transaction.version": (0, 2, "fails"),
    }  # fmt: skip
    assert changed(kraft, does.index("raise group.version from 0 to 1")) == {
        "records of consumer groups": (None, None, "ignores"), "level of group.version": (0, 1, "fails"),
    }  # fmt: skip


@pytest.mark.parametrize(("old", "new"), [("2.0.1", "2.3.1"), ("0.10.2.2", "3.9.2"), ("2.2.2", "2.8.2")])
def test_the_draft_puts_off_the_point_of_no_return(old: str, new: str) -> None:
    draft, released = roll(old, new, edition="kip-384"), roll(old, new)
    lost = next(number for number, each in enumerate(released.steps) if each.by is By.IMPOSSIBLE)
    assert draft.last_undone == lost
    assert "persistent.metadata.version" in draft.steps[draft.last_undone + 1].settings
    assert draft.steps[-1].writes == released.steps[-1].writes


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["roll", "--from", "3.9.2", "--to", "4.4.0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [*found] == ["from", "to", "mode", "edition", "steps", "last_undone", "keeps", "unguarded", "assumed"]
    assert found["steps"][1]["changes"] == [
        {"format": "OffsetCommitValue", "before": 3, "after": 4, "old_release": "reads"}
    ]
    assert [each["undone"] for each in found["steps"]][:3] == [True, True, False]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--from", "4.3.1", "--to", "3.9.2"), "4.3.1 is newer than 3.9.2"),
        (("--from", "3.9.2", "--to", "3.9.2"), "the releases are the same"),
        (("--from", "2.8.2", "--to", "4.0.0"), "roll to 3.9.2, migrate the cluster to KRaft there"),
        (("--from", "4.0.0", "--to", "5.9.9"), "unknown release 5.9.9"),
        (("--from", "four", "--to", "4.0.0"), "invalid release 'four'"),
        (("--from", "2.8.2", "--to", "3.9.2", "--mode", "kraft"), "2.8.2 does not run without ZooKeeper"),
        (("--from", "3.9.2", "--to", "4.0.2", "--mode", "zookeeper"), "4.0.2 has no ZooKeeper"),
        (("--from", "3.9.2", "--to", "4.0.2", "--edition", "kip-384"), "settings of brokers with ZooKeeper"),
    ],
)
def test_what_is_no_roll_is_exit_2(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str) -> None:
    assert run(["roll", *words]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and why in err
