"""Conversations in which something failed once: each is what was reviewed, and our own models keep to it."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from referencing import Registry, Resource

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.golden.regressions import Malformed, Regression, check, read, regressions, verify
from kipcheck.golden.vectors import vectors

KEPT = regressions()
HERE = Path(str(files("kipcheck.golden"))) / "vectors" / "regressions"
ONE = next(each for each in KEPT if each.case.role is Role.CODEC)
TEXT = json.loads((HERE / f"{ONE.id}.json").read_text())


def file(folder: Path, name: str = f"{ONE.id}.json", **changed: Any) -> Path:
    path = folder / "vectors" / "regressions" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({key: each for key, each in {**TEXT, **changed}.items() if each is not None}))
    return path


@pytest.mark.parametrize("one", KEPT, ids=lambda each: each.id)
def test_our_own_models_keep_to_what_failed_once(one: Regression) -> None:
    assert list(check(one)) == []


def test_files_keep_to_the_schema_and_it_explains_every_key() -> None:
    names = ("conformance.core", "case"), ("conformance.targets", "testee"), ("golden", "regression")
    case, testee, mine = (
        json.loads((files(f"kipcheck.{in_}") / f"{name}.schema.json").read_text("utf-8")) for in_, name in names
    )
    jsonschema.Draft202012Validator.check_schema(mine)
    registry: Registry[Any] = Registry().with_resources(
        (each["$id"], Resource.from_contents(each)) for each in (case, testee)
    )
    judge = jsonschema.Draft202012Validator(mine, registry=registry)
    for path in HERE.glob("*.json"):
        assert [each.message for each in judge.iter_errors(json.loads(path.read_text()))] == [], path
    assert [each.message for each in judge.iter_errors({**TEXT, "extra": 1})]
    assert [each.message for each in judge.iter_errors({**TEXT, "case": {**TEXT["case"], "role": "king"}})]
    assert all("description" in each for key, each in mine["properties"].items() if key not in ("format", "case"))


def test_they_are_no_golden_vectors() -> None:
    assert {each.id for each in KEPT} == {path.stem for path in HERE.iterdir()}
    assert "regressions" not in {each.edition for each in vectors()}


def test_who_fails_again_is_told_of() -> None:
    for one in KEPT:
        if one.case.role is Role.CODEC:
            reported = list(check(one, InProcess(MUTANTS["believes-lengths"].made())))
            assert [line.partition(":")[0] for line in reported] == [one.id]
            assert f"breaks {one.invariant}: " in reported[0]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"case_id": "0" * 16}, f"the case has id {ONE.case_id}, but 0000000000000000 was reviewed"),
        ({"requirements": ["grp-05", "grp-00"]}, "unknown requirement grp-00"),
        ({"invariant": "wire/none"}, "unknown invariant 'wire/none' of a codec"),
        ({"invariant": "wire/reads-alike"}, "wire/reads-alike cannot be judged with reference"),
        ({"case": {**TEXT["case"], "edition": "none"}}, "the case cannot run: "),
    ],
)
def test_what_is_wrong_with_one_is_told(tmp_path: Path, changed: dict[str, Any], says: str) -> None:
    file(tmp_path, **changed)
    assert any(line.startswith(f"{ONE.id}: {says}") for line in verify(tmp_path)), list(verify(tmp_path))


@pytest.mark.parametrize("changed", [{"format": 3}, {"note": None}, {"case": {}}, {"name": "other.json"}])
def test_what_is_none_is_named(tmp_path: Path, changed: dict[str, Any]) -> None:
    with pytest.raises(Malformed, match=r"^[0-9a-z]+\.json: "):
        read(file(tmp_path, **changed))


def test_where_there_are_none_nothing_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "vectors").mkdir()
    assert regressions(tmp_path) == ()
