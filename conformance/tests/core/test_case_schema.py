"""Cases are data with a schema: whatever a run files belongs to it, and what a user may get wrong does not."""

import copy
import json
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from referencing import Registry, Resource

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.engine.execution import run
from kipcheck.conformance.engine.execution.run import Options
from kipcheck.conformance.engine.strength.mutation_test import subject_of
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import Target
from kipcheck.conformance.tests.support.loops import for_each

CASE = "urn:kipcheck:case:1"


def _schema(package: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((files(package) / name).read_text("utf-8"))
    return found


@pytest.fixture(scope="module")
def schema() -> Callable[[str], jsonschema.Draft202012Validator]:
    case = _schema("kipcheck.conformance.core", "case.schema.json")
    testee = _schema("kipcheck.conformance.targets", "testee.schema.json")
    registry: Registry[Any] = Registry().with_resources(
        (each["$id"], Resource.from_contents(each)) for each in (case, testee)
    )
    jsonschema.Draft202012Validator.check_schema(case)
    return lambda part: jsonschema.Draft202012Validator({"$ref": f"{CASE}#/$defs/{part}"}, registry=registry)


ONE_OF_EACH = {check.family.role: name for check in CHECKS.values() for name, mutant in MUTANTS.items()
               if mutant.check == check.id and not mutant.deadly and not mutant.remembers
               and check.id.partition("/")[0] != "damage"}  # fmt: skip
"""Without those that wait for real connections."""
ONE_OF_EACH[Role.CLIENT] = "beats-with-one-byte-more"  # which any script shows: a live client takes seconds for each


def filed(name: str, out: Path) -> list[dict[str, Any]]:
    """The failures of a run with a miniature."""
    mutant = MUTANTS[name]

    def find(target: str) -> Target:
        return InProcess(mutant.made())

    chosen = (mutant.check,), (mutant.subject,)
    scripts = ("stop",) if CHECKS[mutant.check].role is Role.CLIENT else ()
    options = Options((f"miniature/{name}",), subject_of(mutant).edition, *chosen, scripts=scripts, workers=1, out=out)
    assert run.execute(options, find).ledger is not None
    return [json.loads(path.read_text("utf-8")) for path in sorted((out / "failures").glob("*.json"))]


@pytest.fixture(scope="module")
def failure(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Role], dict[str, Any]]:
    """The failure of a role: a run of some roles takes seconds, and most tests need one role."""
    return cache(lambda role: filed(ONE_OF_EACH[role], tmp_path_factory.mktemp(role.value))[0])


@pytest.fixture(scope="module")
def failures(failure: Callable[[Role], dict[str, Any]]) -> dict[Role, dict[str, Any]]:
    return {role: failure(role) for role in ONE_OF_EACH}


Schema = Callable[[str], jsonschema.Draft202012Validator]


@pytest.mark.integration
def test_what_a_run_files_belongs_to_the_schema_in_every_role(
    schema: Schema, failures: dict[Role, dict[str, Any]]
) -> None:
    assert set(failures) == {check.role for check in CHECKS.values()}
    for role, failure in failures.items():
        schema("failure").validate(failure)
        assert failure["case"]["role"] == role.value
        assert Case.of(failure["case"]).plain == failure["case"]


@for_each(CHECKS)
@pytest.mark.integration
def test_every_case_of_every_check_belongs_to_the_schema(id: str, schema: Schema) -> None:
    check = CHECKS[id]
    validator = schema("case")
    wanted = next(each for each in MUTANTS.values() if each.check == id)
    samples = list(check.samples(subject_of(wanted), 0, 2))
    assert samples
    valid = set[str]()
    for sample in samples:
        case = json.loads(json.dumps(sample.case.plain))
        # A step is valid by itself: one that came before is not validated again, since long conversations repeat many.
        steps = {json.dumps(step): step for step in case["steps"]}
        case["steps"] = [step for text, step in steps.items() if text not in valid] or case["steps"][:1]
        validator.validate(case)
        valid |= steps.keys()


@pytest.mark.integration
@pytest.mark.parametrize(
    ("role", "change", "why"),
    [
        (Role.CODEC, {"role": "leader"}, "'decode' is not one of"),
        (Role.CODEC, {"steps": []}, "[] should be non-empty"),
        (Role.CODEC, {"edition": ""}, "'' should be non-empty"),
        (Role.CODEC, {"more": 1}, "Additional properties are not allowed"),
        (Role.CONTROLLER, {"steps": [{"actor": "a", "verb": "update", "body": {"level": "1"}}]}, "'1' is not of"),
        (Role.CODEC, {"steps": [{"actor": "codec", "verb": "decode", "body": {"hex": "0"}}]}, "'0' does not match"),
        (Role.CODEC, {"steps": [{"actor": "codec", "verb": "decode"}]}, "'body' is a required property"),
    ],
)
def test_what_is_no_case_does_not(
    schema: Schema, failure: Callable[[Role], dict[str, Any]], role: Role, change: dict[str, Any], why: str
) -> None:
    case = {**copy.deepcopy(failure(role)["case"]), **change}
    assert any(why in error.message for error in schema("case").iter_errors(case)), [
        error.message for error in schema("case").iter_errors(case)
    ]


@pytest.mark.parametrize("key", ["format", "id", "why", "guilty_step", "case", "exhibits", "subject_version"])
def test_a_failure_lacks_nothing(schema: Schema, failure: Callable[[Role], dict[str, Any]], key: str) -> None:
    whole = failure(Role.CODEC)
    assert not schema("failure").is_valid({name: each for name, each in whole.items() if name != key})


@pytest.mark.integration
def test_an_exhibit_is_of_one_kind(schema: Schema, failures: dict[Role, dict[str, Any]]) -> None:
    kinds = {each["kind"] for failure in failures.values() for each in failure["exhibits"]}
    assert kinds == {"bytes", "table", "sequence"}
    assert not schema("exhibit").is_valid({"kind": "picture", "rows": []})
