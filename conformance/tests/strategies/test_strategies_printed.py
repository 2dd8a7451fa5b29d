"""Failing examples can be pasted, groups are those of ``kipcheck assign``, and the page has a test for each name."""

import ast
import json
import re
import runpy
from importlib.resources import files
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings, strategies as st

from kipcheck import strategies
from kipcheck.conformance.protocols.assignment.group_answers import group
from kipcheck.strategies import (
    Body,
    Damage,
    Damaged,
    Frame,
    Outcome,
    bodies,
    conversations,
    damaged,
    frames,
    groups,
    steps,
    streams_groups,
    subscription_streams,
    values,
    version_mixes,
)

DOCS = files("kipcheck.conformance") / "docs"
PAGE = DOCS.joinpath("strategies" + ".md").read_text("utf-8")
PASTED = {"Body": Body, "Damage": Damage, "Damaged": Damaged, "Frame": Frame, "Outcome": Outcome, "UUID": UUID}
QUICK = settings(
    max_examples=8, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


def printed(found: st.SearchStrategy[Any]) -> tuple[Any, str]:
    """An example that fails a test, and the text that Hypothesis prints of it."""
    seen: list[Any] = []

    @settings(parent=QUICK, phases=[Phase.generate], print_blob=False)
    @given(found)
    def failing(case: Any) -> None:
        seen.append(case)
        raise AssertionError

    with pytest.raises(AssertionError) as caught:
        failing()
    text = "\n".join(caught.value.__notes__)
    return seen[-1], re.sub(r"\s*# or any other generated value", "", text.partition("case=")[2]).strip().rstrip("),\n")


def pasted(text: str) -> Any:
    """The value of the printed text, whose closing brackets at the end are those of the test call."""
    for closing in range(6):
        for comma in ("", ")" * closing, "]" * closing, ")" * closing + "]"):
            try:
                return eval(text + comma, dict(PASTED))
            except SyntaxError:
                continue
    raise AssertionError(text)


@pytest.mark.parametrize(
    "found",
    [
        damaged("JoinGroupRequest", versions=range(5, 10)),
        damaged("MetadataResponse", versions=[12]),
        bodies("JoinGroupRequest"),
        bodies("ConsumerGroupHeartbeatResponse"),
        bodies("MetadataResponse", versions=[12]),
        frames("JoinGroupRequest"),
        groups(),
        groups(claims=True, static=True, racks=True),
        conversations("group"),
        conversations("group", deep=True),
        steps("group"),
        values("MetadataResponse", versions=[12]),
        version_mixes(),
        subscription_streams(),
        streams_groups(cooperative=True, named=True),
    ],
)
def test_a_failing_example_can_be_pasted(found: st.SearchStrategy[Any]) -> None:
    value, text = printed(found)
    assert pasted(text) == value


def test_bytes_are_printed() -> None:
    value, text = printed(damaged("HeartbeatRequest", versions=3))
    assert repr(value.data) in text and repr(value.body.data) in text


@QUICK
@given(groups(claims=True, static=True, racks=True))
def test_groups_are_input_of_assign(drawn: dict[str, Any]) -> None:
    read = group(json.dumps(drawn))
    assert [each["id"] for each in read["members"]] == [*drawn["members"]]
    assert [each["name"] for each in read["topics"]] == [*drawn["topics"]]


def test_public_names_are_no_modules() -> None:
    find(conversations("group"), lambda _: True, settings=QUICK)
    for name in strategies.__all__:
        assert callable(getattr(strategies, name)), name


@pytest.mark.integration
def test_the_page_has_a_passing_test_for_each_name(tmp_path: Path) -> None:
    program = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    used = {node.id for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Name)}
    assert set(strategies.__all__) <= used
    (tmp_path / "examples.py").write_text(program)
    names = runpy.run_path(str(tmp_path / "examples.py"))
    tests = {name: each for name, each in names.items() if name.startswith("test_")}
    assert len(tests) == program.count("def test_") > 10
    for each in tests.values():
        (QUICK(each) if hasattr(each, "hypothesis") else each)()
