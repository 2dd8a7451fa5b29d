"""Changes to files in Go, and programs of Go clients that are built with one of them."""

import os
import subprocess
from pathlib import Path

import pytest

from kipcheck.conformance.live.client import built_in
from kipcheck.conformance.recall.change import KINDS, Change
from kipcheck.conformance.recall.changes import changes_in, of_mistake, sample
from kipcheck.conformance.recall.go_copies import NOTE, DoesNotBuild, GoCopy, copied, instrumented
from kipcheck.conformance.recall.mistakes import Edit
from kipcheck.conformance.recall.python_copies import REACHED, count
from kipcheck.conformance.targets.toolchains.maven import cache

pytestmark = pytest.mark.go

CLIENT = """package client

import "fmt"

const size = 4

func (c *consumer[T]) onError(err error, known bool) error {
	c.logger.Log(5, "é")
	if errors.Is(err, kerr.Stale) || err == kerr.Fenced && c.epoch < 10 {
		c.member = nil
		c.rejoin(c.memberID, c.instanceID)
	}
	switch {
	case known:
		return fmt.Errorf("lost %d", 8)
	}
	c.sleep(2 * time.Second)
	return nil
}

func (c *consumer[T]) String() string { return "9" }
"""


def test_every_place_of_a_small_client() -> None:
    """All changes to it: nothing in logging, texts of errors and ``String``. Places count characters, not bytes."""
    condition = "\tif errors.Is(err, kerr.Stale) || err == kerr.Fenced && c.epoch < 10 {"
    becomes = {
        "branch": {
            condition.replace("||", "&&"),
            condition.replace("&&", "||"),
            condition.replace("==", "!="),
            condition.replace("<", "<="),
            condition.replace("<", ">="),
            condition.replace(" || err == kerr.Fenced && c.epoch < 10", ""),
            condition.replace("errors.Is(err, kerr.Stale) || ", ""),
            condition.replace(" && c.epoch < 10", ""),
            condition.replace("err == kerr.Fenced && ", ""),
        },
        "constant": {
            "const size = 5",
            "const size = 3",
            condition.replace("10", "11"),
            condition.replace("10", "9"),
            "\tc.sleep(20 * time.Second)",
        },
        "order": {"\t\tc.rejoin(c.instanceID, c.memberID)", "\t\tc.rejoin(c.memberID, c.instanceID)"},
        "dropped statement": {"\t\t", "\t"},
        "dropped reset": {"\t\t"},
        "swapped error": {condition.replace("Stale", "Fenced"), condition.replace("Fenced", "Stale")},
    }
    found: dict[str, set[str]] = {kind: set() for kind in KINDS}
    changes = changes_in("client.go", CLIENT, None)
    for change in changes:
        found[change.kind].add(change.after.split("\n")[change.line - 1])
    assert found == becomes
    assert len({each.id for each in changes}) == len({each.after for each in changes}) == len(changes)
    assert {each.inside for each in changes} == {"", "consumer.onError"}
    assert {each.line for each in changes_in("client.go", CLIENT, frozenset({9}))} == {9}


@pytest.mark.timeout(900)
def test_a_changed_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is found through the cache folder, and the copy stays as it is; Go says what it refuses."""
    copy = copied("client:sarama")
    text = copy.sources()["consumer_group.go"]
    assert not any(each.endswith("_test.go") for each in copy.sources())
    real = built_in.command("sarama")
    change = _mistake(copy, text, "GenerationId: generationID,", "GenerationId: generationID - 1,")
    unchanged, changed = copy.build(tmp_path / "same", None), copy.build(tmp_path / "other", change)
    programs = []
    for place in (unchanged, changed):
        monkeypatch.setenv("KIPCHECK_CACHE", str(place))
        (program,) = built_in.command("sarama")
        assert Path(program).is_relative_to(place)
        programs.append(Path(program).read_bytes())
    monkeypatch.delenv("KIPCHECK_CACHE")
    assert built_in.command("sarama") == real
    assert programs[0] != programs[1]
    assert (copy.module / "consumer_group.go").read_text("utf-8") == text
    with pytest.raises(DoesNotBuild, match=r"undefined: generation"):
        copy.build(tmp_path / "other", _mistake(copy, text, "GenerationId: generationID,", "GenerationId: generation,"))


@pytest.mark.timeout(900)
def test_a_changed_program_counts(tmp_path: Path) -> None:
    """How often the changed line is run, over several processes; not where no function has it."""
    copy = copied("client:sarama")
    file, text = "client.go", copy.sources()["client.go"]
    edit = Edit("sarama", copy.release, file, "conf.Validate()", "conf.Validate( )", "NewClient")
    copy.build(tmp_path / "cache", of_mistake(edit, text))
    program = tmp_path / "cache" / copy.program.relative_to(cache()) / "program"
    given = {"KIPCHECK_BOOTSTRAP": "127.0.0.1:1", "KIPCHECK_GROUP": "g", "KIPCHECK_TOPICS": "t"}
    for times in range(3):
        assert count(tmp_path / "count") == times
        variables = {**os.environ, **given, REACHED: str(tmp_path / "count")}
        subprocess.run([program], env=variables, check=False, capture_output=True)
    outside = of_mistake(Edit("client", "1", "client.go", "size = 4", "size = 5"), CLIENT)
    assert instrumented(outside) is None
    inside = of_mistake(Edit("client", "1", "client.go", "c.epoch < 10", "c.epoch < 11"), CLIENT)
    assert instrumented(inside) == CLIENT.replace("if errors", f"{NOTE}; if errors").replace("epoch < 10", "epoch < 11")
    case = of_mistake(Edit("client", "1", "client.go", "case known:", "case !known:"), CLIENT)
    assert instrumented(case) == CLIENT.replace("switch", f"{NOTE}; switch").replace("case known", "case !known")


def _mistake(copy: GoCopy, text: str, line: str, becomes: str) -> Change:
    edit = Edit("sarama", copy.release, "consumer_group.go", line, becomes, "consumerGroup.heartbeatRequest")
    return of_mistake(edit, text)


@pytest.mark.timeout(900)
def test_most_changes_build(tmp_path: Path) -> None:
    copy = copied("client:sarama")
    changes = changes_in("consumer_group.go", copy.sources()["consumer_group.go"], None)
    assert len(changes) > 200 and {each.kind for each in changes} == set(KINDS)
    refused = []
    taken = sample(changes, 12, 0)
    for change in taken:
        try:
            copy.build(tmp_path / "alternative", change)
        except DoesNotBuild as why:
            refused.append((change.id, str(why)))
    assert len(refused) <= len(taken) // 4, refused


def test_other_targets() -> None:
    for name in ("client:aiokafka", "java:kafka-clients", "cmd:sarama", "reference"):
        with pytest.raises(LookupError, match="is not a client in Go"):
            copied(name)
