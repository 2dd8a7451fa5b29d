"""A made-up KIP with behaviour, the tutorial of CONTRIBUTING.md, is one folder and lines of data files."""

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.tests.support.one_more_protocol import Copy, with_protocol

LEASES = Path(str(files("kipcheck.conformance.tests.protocols"))).resolve() / "leases"
PUBLISH = "kipcheck.conformance.protocols.publish"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return with_protocol(tmp_path_factory.mktemp("one-more") / "copy", LEASES)


def test_its_machine_stands_after_those_of_other_roles(copy: Copy) -> None:
    script = "import kipcheck.conformance.protocols.registry as found; print(*found.machines())"
    (copy.root / "machines.py").write_text(script)
    machines = copy.run(module="machines").split()
    assert machines.index("consumer-group") < machines.index("leases") < machines.index("member")


@pytest.mark.integration
def test_its_invariants_and_their_requirements_are_listed_and_linted(copy: Copy) -> None:
    listed = json.loads(copy.run("checks", "--json"))
    kinds = [*dict.fromkeys(each["id"].partition("/")[0] for each in listed["checks"])]
    assert kinds.index("group") < kinds.index("leases") < kinds.index("member")
    (check,) = (each for each in listed["checks"] if each["id"] == "leases/holders")
    judged = {each["id"]: each for each in check["invariants"]}
    assert [id for id in judged if "/" in id] == ["leases/one-holder", "leases/next-epoch"]
    assert judged["leases/one-holder"]["tags"]["effects"] == ["double-processing"]
    copy.run("checks", "--lint")


@pytest.mark.integration
def test_it_is_played(copy: Copy) -> None:
    lines = copy.run("play", "leases", "-", given="lease 1 10; lease 2 5; wait 10; lease 2 5\n").splitlines()
    actions = [json.loads(each)["actions"] for each in lines]
    assert [[*each[0].values()][1:] if each else [] for each in actions] == [[1], ["LEASED"], [], [2]]
    events = json.loads(copy.run("play", "leases", "--events", "--json"))
    assert "lease-elapse" in json.dumps(events)


@pytest.mark.integration
def test_it_is_explored(copy: Copy) -> None:
    assert "no law is broken" in copy.run("explore", "leases", "--scope", "leases=2")


@pytest.mark.integration
def test_the_reference_keeps_its_invariants_and_the_mutants_are_found(copy: Copy) -> None:
    assert "50 PASS" in copy.run("run", "--target", "reference", "--check", "leases/*", "--cases", "50")
    assert "3 of 3 planted defects are caught" in copy.run("mutants", "--check", "leases/*")


@pytest.mark.integration
def test_its_operations_are_published(copy: Copy) -> None:
    copy.run(module=PUBLISH)
    testee, case = (
        json.loads((copy.conformance / name).read_text("utf-8"))
        for name in ("targets/testee.schema.json", "core/case.schema.json")
    )
    assert {"lease", "release", "leaseElapse"} <= testee["$defs"].keys()
    assert case["$defs"]["leasesVerbs"] == {"enum": ["lease", "release", "lease-elapse"]}
    assert "leases" in _of_hello(testee)["machines"]["description"]
    rows = (copy.conformance / "docs" / "testee.md").read_text("utf-8").splitlines()
    assert any(each.startswith("| broker, `leases` | `lease`, `release`, `lease-elapse` |") for each in rows)
    assert copy.run("--check", module=PUBLISH) == ""


def _of_hello(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = schema["$defs"]["helloAnswer"]
    return next(each for each in _objects(found) if "machines" in each)


def _objects(value: Any) -> Any:
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _objects(each)
    elif isinstance(value, list):
        for each in value:
            yield from _objects(each)
