"""What is published of declared operations: both JSON schemas, and the table in docs/testee.md."""

import json
from importlib.resources import files

import pytest

from kipcheck.conformance.protocols import publish, registry
from kipcheck.conformance.targets.protocol import PAYLOAD

DECLARED = registry.operations()


def test_the_published_files_are_up_to_date() -> None:
    """If not: ``python -m kipcheck.conformance.protocols.publish``."""
    for path, text in publish.published().items():
        assert path.read_text("utf-8") == text, path.name


@pytest.mark.parametrize("name", DECLARED)
def test_every_operation_is_in_both_schemas_and_in_the_table(name: str) -> None:
    operations = DECLARED[name]
    testee = json.loads((files("kipcheck.conformance.targets") / "testee.schema.json").read_text("utf-8"))
    case = json.loads((files("kipcheck.conformance.core") / "case.schema.json").read_text("utf-8"))
    page = (files("kipcheck.conformance") / "docs" / "testee.md").read_text("utf-8")
    (of_role,) = (each["then"] for each in case["$defs"]["case"]["allOf"]
                  if each["if"]["properties"]["role"] == {"const": operations.role.value})  # fmt: skip
    assert f'"#/$defs/{publish.definition_name(operations.machine)}Verbs"' in json.dumps(of_role)
    for each in operations.declared:
        assert f"`{each.verb}`" in page
        assert each.verb in case["$defs"][f"{publish.definition_name(operations.machine)}Verbs"]["enum"]
        if each.fields:
            found = testee["$defs"][publish.definition_name(each.verb)]
            assert [*found["properties"]] == [field.name for field in each.fields]
            assert any(condition["if"]["properties"].get("op") == {"const": each.verb} for condition in
                       testee["$defs"]["op"]["allOf"])  # fmt: skip


@pytest.mark.parametrize(("definition", "key"), [("happening", "what"), ("action", "action")])
def test_every_observed_event_is_in_the_schema_of_the_testee(definition: str, key: str) -> None:
    testee = json.loads((files("kipcheck.conformance.targets") / "testee.schema.json").read_text("utf-8"))
    observed = [each.observed for each in DECLARED.values() if each.observed is not None and each.observed.key == key]
    names = {one.what for each in observed for one in each.declared}
    assert names and names == {*testee["$defs"][definition]["properties"][key]["enum"]}


def test_a_file_without_a_place_for_a_line_is_an_error() -> None:
    with pytest.raises(ValueError, match="no line begins with"):
        publish._table(DECLARED["features"], ["# a page"])
    with pytest.raises(ValueError, match="no line begins with"):
        publish._case_schema(DECLARED["features"], ["{", "}"])


@pytest.mark.parametrize("name", DECLARED)
def test_every_field_of_an_answer_is_kept(name: str) -> None:
    """A field that observations leave out is seen by no invariant."""
    fields = {key for each in DECLARED[name].declared for key in DECLARED[name].answer_keys(each)}
    assert fields <= {*PAYLOAD}
