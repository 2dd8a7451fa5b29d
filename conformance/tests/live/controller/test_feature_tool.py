"""Kafka's own tool for operators as a target: its command lines, its output, and runs with released tools."""

from pathlib import Path

import pytest

from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Refused, Replied, Unsupported
from kipcheck.conformance.engine.execution.run import Options, run
from kipcheck.conformance.live.controller.tool import options_of, ran, rows_of
from kipcheck.conformance.live.server.features import Picture
from kipcheck.conformance.protocols.features.ops.tool import OPERATIONS, Row
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import NotPlayed, Unavailable

PICTURE = Picture(3, {"a": (0, 2)}, {"a": (1, 1)})


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("describe", "describe"),
        ("update upgrade a:2", "upgrade --feature a=2"),
        ("update downgrade a:1,b:2 dry", "downgrade --feature a=1 --feature b=2 --dry-run"),
        ("update delete a", "disable --feature a"),
        ("update upgrade a:2 delete b", None),
        ("update", None),
        ("upgrade-all", None),
        ("knows a:1", None),
    ],
)
def test_a_command_of_the_draft_is_one_of_the_tool_or_none(command: str, options: str | None) -> None:
    (event,) = map(OPERATIONS.event_of, OPERATIONS.parse_shorthand(f"tool {command}"))
    found = options_of(event)
    assert (None if found is None else " ".join(found)) == options


def test_what_describe_prints_is_read_with_tabs_and_with_blanks() -> None:
    labels = (
        "SupportedMinVersion: 3.0-IV1",
        "SupportedMaxVersion: 3.9-IV0",
        "FinalizedVersionLevel: 3.8-IV0",
        "Epoch: 7",
    )
    for between in ("\t", "   "):
        text = between.join(("Feature: metadata.version", *labels))
        off = "Feature: a SupportedMinVersion: 0 SupportedMaxVersion: 2 FinalizedVersionLevel: 0 Epoch: 7"
        assert rows_of(f"SLF4J: a warning\n{text}\n{off}\n") == (
            Row("metadata.version", 1, 21, 20, 20, 7), Row("a", 0, 2, None, None, 7),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"errorCode": 0, "results": [{"feature": "a", "errorCode": 0}]}, "NONE"),
        ({"errorCode": 0, "results": [{"feature": "a", "errorCode": 95}]}, "INVALID_UPDATE_VERSION"),
        ({"errorCode": 95}, "INVALID_UPDATE_VERSION"),
        ({"errorCode": 0}, "NONE"),
    ],
)
def test_the_answer_of_the_controller_decides_what_was_refused(answer: dict[str, object], error: str) -> None:
    asked = {"validateOnly": False, "featureUpdates": [{"feature": "a", "maxVersionLevel": 0, "upgradeType": 2}]}
    found = ran(PICTURE, asked, answer, 1)
    ((line,), (sent,)) = found.results, found.sent
    assert (line.change, line.existing, line.new, line.error, sent.allow_downgrade) == ("Delete", 1, None, error, True)
    assert ran(PICTURE, {**asked, "validateOnly": True}, answer, 0).sent == ()


def test_other_roles_and_releases_are_refused() -> None:
    with pytest.raises(LookupError, match=r"has the tool from release 2\.7\.0 on"):
        registry.target("kafka-features:2.6.3")
    tool = registry.target("kafka-features:3.9.2")
    with pytest.raises(NotPlayed), tool.open("apache@3.9.2", Role.COORDINATOR):
        pass
    with pytest.raises(Unavailable, match=r"use --edition apache@3\.9\.2"), tool.open("kip-584", Role.CONTROLLER):
        pass


@pytest.mark.all_jars
@pytest.mark.jars
@pytest.mark.parametrize("release", ["3.3.2", "3.9.2", "4.3.1"])
def test_the_exit_code_of_a_released_tool_says_whether_an_update_was_refused(release: str, tmp_path: Path) -> None:
    name = f"kafka-features:{release}"
    options = Options(
        targets=(name,), edition=f"apache@{release}", checks=("feature-tool/as-released",), cases=3, workers=1,
        out=tmp_path / "out",
    )  # fmt: skip
    outcome = run(options)
    assert outcome.exit_code == 0 and outcome.ledger is not None, outcome.text
    counts = read(outcome.ledger).footer
    assert counts is not None and sum(each["PASS"] for each in counts.counts[name].values()) == 3


@pytest.mark.all_jars
@pytest.mark.jars
def test_a_released_tool_lowers_a_level_and_is_refused_another() -> None:
    release = "3.9.2"
    text = "tool update downgrade metadata.version:20; tool describe; tool update upgrade x:1; tool upgrade-all"
    case = Case("test", f"apache@{release}", Role.CONTROLLER, tuple(OPERATIONS.parse_shorthand(text)))
    with registry.target(f"kafka-features:{release}").open(case.edition, Role.CONTROLLER) as session:
        ((lowered, described, refused, unknown),) = session.run([case])
    assert isinstance(lowered, Replied) and lowered["exit"] == 0 and not isinstance(refused, Refused)
    assert isinstance(described, Replied) and described["rows"][-1]["finalized_high"] == 20
    assert isinstance(refused, Replied) and (refused["exit"], refused["results"][0]["error"]) == (
        1, "INVALID_UPDATE_VERSION",
    )  # fmt: skip
    assert isinstance(unknown, Unsupported) and unknown.limit == "command"
