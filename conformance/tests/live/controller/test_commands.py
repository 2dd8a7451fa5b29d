"""The commands of Kafka's own tool: their options, what is read of their output, and runs on clusters of releases."""

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Refused, Replied
from kipcheck.conformance.live.controller.commands import options_of, printed
from kipcheck.conformance.protocols.features.invariants.commands import COMMANDS
from kipcheck.conformance.protocols.features.ops.commands import OPERATIONS, Event
from kipcheck.conformance.targets import registry


def event(text: str) -> Event:
    (found,) = map(OPERATIONS.event_of, OPERATIONS.parse_shorthand(f"command {text}"))
    return found


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("describe", "describe"),
        ("upgrade group.version:1,x:2 dry", "upgrade --feature group.version=1 --feature x=2 --dry-run"),
        ("downgrade metadata 20 unsafe", "downgrade --metadata 3.8-IV0 --unsafe"),
        ("upgrade release 25", "upgrade --release-version 4.0-IV3"),
        ("upgrade metadata 99", "upgrade --metadata 9.9"),
        ("disable group.version unsafe", "disable --feature group.version --unsafe"),
        ("mapping 21", "version-mapping --release-version 3.9-IV0"),
        ("needs x:1", "feature-dependencies --feature x=1"),
        ("upgrade-all dry", "upgrade-all --dry-run"),
    ],
)
def test_a_command_has_the_options_of_the_tool(command: str, options: str) -> None:
    assert " ".join(options_of(event(command), kraft=True)) == options


def test_the_tool_of_an_old_release_has_dashes() -> None:
    assert options_of(event("describe"), kraft=False) == ("--describe",)
    assert options_of(event("downgrade-all dry"), kraft=False) == ("--downgrade-all", "--dry-run")


def test_lines_of_changes_are_read_with_their_words() -> None:
    output = (
        " `metadata` flag is deprecated and may be removed in a future release.\n"
        "metadata.version can be downgraded to 20.\nCould not disable x. It is unknown.\nsomething else\n"
    )
    found = printed(event("downgrade metadata 20 dry"), output, "1 out of 2 operation(s) failed.\n", 1)
    assert isinstance(found, Replied)
    assert found["lines"] == [
        {"change": "downgrade", "feature": "metadata.version", "level": 20, "done": True, "dry": True},
        {"change": "disable", "feature": "x", "level": 0, "done": False, "dry": False},
    ]
    assert (found["failed"], found["unread"], found["exit"]) == (1, ["something else"], 1)


def test_what_the_tool_knows_is_read_with_its_dependencies() -> None:
    output = "a=1 requires:\n    metadata.version=23 (4.0-IV1)\nb=2 has no dependencies.\n"
    found = printed(event("needs a:1,b:2"), output, "", 0)
    assert isinstance(found, Replied)
    assert [each["needs"] for each in found["rows"]] == [[{"feature": "metadata.version", "level": 23}], []]
    mapped = printed(event("mapping"), "metadata.version=25 (4.0-IV3)\nkraft.version=1\n", "", 0)
    assert isinstance(mapped, Replied) and [each["level"] for each in mapped["levels"]] == [1, 25]


def test_a_command_without_a_line_was_refused_by_its_exit_code_alone() -> None:
    assert isinstance(printed(event("upgrade"), "", "You must specify at least one feature to upgrade\n", 1), Refused)
    silent = printed(event("upgrade-all"), "", "", 0)
    assert isinstance(silent, Replied) and silent["lines"] == []


@pytest.mark.jars
def test_a_released_tool_does_what_it_prints_on_a_cluster_of_its_release() -> None:
    release = "4.0.2"
    text = (
        "command levels; command describe; command levels; command disable group.version dry; command levels; "
        "command disable group.version; command levels; command upgrade kip.check:1"
    )
    case = Case(COMMANDS, f"apache@{release}", Role.CONTROLLER, tuple(OPERATIONS.parse_shorthand(text)))
    with registry.target(f"kafka-features:{release}").open(case.edition, Role.CONTROLLER) as session:
        ((first, described, _, dry, same, disabled, last, refused),) = session.run([case])
    levels = [
        {each["feature"]: each["level"] for each in found["levels"]}
        for found in (first, same, last)
        if isinstance(found, Replied)
    ]
    assert levels[0] == levels[1] and {*levels[0]} - {*levels[2]} == {"group.version"}
    assert isinstance(described, Replied) and len(described["rows"]) == 5
    for found, code in ((dry, 0), (disabled, 0), (refused, 1)):
        assert isinstance(found, Replied) and (found["exit"], len(found["lines"])) == (code, 1)
