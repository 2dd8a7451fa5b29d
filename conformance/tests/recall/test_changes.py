"""Random changes to a client's source, and edits of mistakes: each is one change of one place, and still a program."""

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

from kipcheck.conformance.recall.bugs import InvalidEntry
from kipcheck.conformance.recall.change import KINDS, Change, changed
from kipcheck.conformance.recall.changes import changes_in, of_mistake, sample
from kipcheck.conformance.recall.mistakes import Edit

CLIENT = '''"""A client with 1 member, and a dropped() call."""

import logging

log = logging.getLogger(__name__)
DEFAULTS = {"session_timeout_ms": 30, "size": 4}


class Coordinator:
    def __init__(self, timeout_ms: "int | 7" = 50):
        """Has 3 settings."""
        self.member = None
        self.timeout_ms = timeout_ms

    def on_error(self, error, known=True):
        log.debug("error %s %d", error, 5)
        assert isinstance(error, Exception), 6
        if error is E.StaleError or error in (E.FencedError, E.UnknownError):
            self.member = None
            self.rejoin(self.member_id, self.instance_id)
        elif not known and (
            self.epoch < 10  # and so on
        ):
            raise E.StaleError("lost 8")
        self.send(error, timeout_ms=self.timeout_ms)
        self.commit(f"{error:9}")

    def __repr__(self):
        return "Coordinator" * 9
'''


def test_every_place_of_a_small_client() -> None:
    """All changes to it: nothing in docstrings, logging, assertions, annotations, texts of errors and ``__repr__``."""
    becomes = {
        "branch": {
            "        if error is not E.StaleError or error in (E.FencedError, E.UnknownError):",
            "        if error is E.StaleError or error not in (E.FencedError, E.UnknownError):",
            "        if error is E.StaleError and error in (E.FencedError, E.UnknownError):",
            "        if error is E.StaleError:",
            "        if error in (E.FencedError, E.UnknownError):",
            "        elif known and (",
            "        elif not known or (",
            "        elif not known:",
            "        elif (",
            "            self.epoch <= 10  # and so on",
            "            self.epoch >= 10  # and so on",
        },
        "constant": {
            'DEFAULTS = {"session_timeout_ms": 300, "size": 4}',
            'DEFAULTS = {"session_timeout_ms": 30, "size": 5}',
            'DEFAULTS = {"session_timeout_ms": 30, "size": 3}',
            '    def __init__(self, timeout_ms: "int | 7" = 51):',
            '    def __init__(self, timeout_ms: "int | 7" = 49):',
            "    def on_error(self, error, known=False):",
            "            self.epoch < 11  # and so on",
            "            self.epoch < 9  # and so on",
            "        self.send(error, timeout_ms=self.timeout_ms * 10)",
        },
        "order": {
            "            self.rejoin(self.instance_id, self.member_id)",
            "            self.rejoin(self.member_id, self.instance_id)",
            '        self.commit(f"{error:9}")',
        },
        "dropped statement": {"            pass", "        pass"},
        "dropped reset": {"            pass"},
        "swapped error": {
            "        if error is E.UnknownError or error in (E.FencedError, E.UnknownError):",
            "        if error is E.StaleError or error in (E.StaleError, E.UnknownError):",
            "        if error is E.StaleError or error in (E.FencedError, E.StaleError):",
            "        if error is E.StaleError or error in (E.FencedError,):",
            "        if error is E.StaleError or error in (E.UnknownError,):",
        },
    }
    found: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for change in changes_in("client.py", CLIENT, None):
        found[change.kind].add(change.after.split("\n")[change.line - 1])
    assert found == becomes


def test_changes_of_a_real_client() -> None:
    """Of kafka-python's coordinators: each compiles, changes one place, and has an id and a text of its own."""
    spec = find_spec("kafka.coordinator")
    assert spec is not None and spec.submodule_search_locations
    changes: list[Change] = []
    for path in sorted(Path(spec.submodule_search_locations[0]).glob("*.py")):
        text = path.read_text("utf-8")
        found = changes_in(f"kafka/coordinator/{path.name}", text, None)
        assert (
            [each.id for each in found] == [each.id for each in changes_in(found[0].path, text, None)]
            if found
            else True
        )
        assert len({each.after for each in found}) == len(found)
        changes += found
    assert len(changes) > 500 and {each.kind for each in changes} == set(KINDS)
    assert len({each.id for each in changes}) == len(changes)
    for change in sample(changes, 150, 0):
        assert change.after != change.before
        assert ast.dump(compile_tree(change.after)) != ast.dump(compile_tree(change.before)), change.diff()
        first = next(at for at, (a, b) in enumerate(zip(change.before, change.after, strict=False)) if a != b)
        assert change.before.count("\n", 0, first) + 1 == change.line
        assert change.before[: change.start] == change.after[: change.start]
        assert change.before[change.end :] == change.after[change.start + len(change.becomes) :]
        assert sum(each.startswith("@@") for each in change.diff().splitlines()) == 1


def test_changes_that_give_the_same_text_have_one_place() -> None:
    """Whatever two ends they state: of all replacements in short texts, with letters that repeat."""
    letters = ["", *(a + b for a in ("", "a", "b") for b in ("a", "b"))]
    for text in ("aabab", "abaab", "aaaa"):
        places: dict[str, set[tuple[int, int, str]]] = {}
        for start in range(len(text) + 1):
            for end in range(start, len(text) + 1):
                for becomes in letters:
                    change = changed("a.py", "branch", "", text, start, end, becomes)
                    assert change.after == text[:start] + becomes + text[end:]
                    if change.after != text:
                        places.setdefault(change.after, set()).add(change.place)
        assert all(len(each) == 1 for each in places.values())
        assert len(set.union(*places.values())) == len(places) > 20


def compile_tree(text: str) -> ast.Module:
    compile(text, "client.py", "exec", dont_inherit=True)
    return ast.parse(text)


def test_only_lines_that_run() -> None:
    """A change counts for its whole statement, of one with a block for the lines before the block."""
    all_of_them = changes_in("client.py", CLIENT, None)
    for line in range(1, CLIENT.count("\n") + 1):
        kept = changes_in("client.py", CLIENT, frozenset({line}))
        assert [each for each in all_of_them if each in kept] == kept
    condition = CLIENT.split("\n").index("        elif not known and (") + 1
    of_condition = [each for each in all_of_them if each.line in (condition, condition + 1)]
    for line in (condition, condition + 1):
        assert changes_in("client.py", CLIENT, frozenset({line})) == of_condition


def test_a_sample_is_spread() -> None:
    """A smaller sample is the beginning of a larger one, and no function is taken twice before each was taken once."""
    other = CLIENT.replace("Coordinator", "Other")
    changes = [*changes_in("client.py", CLIENT, None), *changes_in("other.py", other, None)]
    functions = {(each.path, each.inside) for each in changes}
    taken = sample(changes, len(changes) + 5, 3)
    assert sorted(taken, key=changes.index) == changes
    assert {(each.path, each.inside) for each in taken[: len(functions)]} == functions
    assert sample(changes, 7, 3) == taken[:7] == sample(changes[::-1], 7, 3)
    assert len({sample(changes, 1, seed)[0].id for seed in range(20)}) > 3


GO = """package kgo

func (g *groupConsumer) heartbeat(a, b int) error {
	if a == b {
		return nil
	}
	return stop()
}

func (o *other) heartbeat() error { return nil }

func manage[T any](a T) error {
	return nil
}
"""


def test_edits_of_mistakes() -> None:
    inside = "Coordinator.on_error"
    for file, text, where, line, becomes, number in (
        ("client.py", CLIENT, "", "self.epoch < 10", "self.epoch < 11", 22),
        ("client.py", CLIENT, inside, "self.member = None", "pass", 19),
        ("client.py", CLIENT, inside, ", E.UnknownError", ",", 18),
        ("group.go", GO, "", "a == b", "a != b", 4),
        ("group.go", GO, "groupConsumer.heartbeat", "return nil", "return stop()", 5),
        ("group.go", GO, "other.heartbeat", "return nil", "return stop()", 10),
        ("group.go", GO, "manage", "return nil", "return stop()", 13),
    ):
        change = of_mistake(Edit("client", "1", file, line, becomes, where), text)
        lines = text.split("\n")
        lines[number - 1] = lines[number - 1].replace(line, becomes)
        assert (change.after.split("\n"), change.line, change.kind) == (lines, number, "mistake")
        assert change.inside == where


@pytest.mark.parametrize(
    ("file", "line", "becomes", "where", "wrong"),
    [
        ("client.py", "self.member = None", "pass", "", "client 1, client.py: .* occurs 2 times in the file, not once"),
        ("client.py", "self.gone", "pass", "Coordinator.on_error", "occurs 0 times in Coordinator.on_error"),
        ("client.py", "self.member", "pass", "Coordinator.lost", "there is no function Coordinator.lost"),
        ("client.py", "self.epoch < 10", "self.epoch <", "", "with 'self.epoch <' line 2[0-9] does not compile"),
        ("client.py", "self.epoch", "self.epoch", "", "becomes itself"),
        ("group.go", "return nil", "return 1", "groupConsumer.leave", "there is no function groupConsumer.leave"),
        ("group.go", "return nil", "return 1", "", "occurs 3 times in the file"),
    ],
)  # fmt: skip
def test_edits_that_do_not_apply(file: str, line: str, becomes: str, where: str, wrong: str) -> None:
    with pytest.raises(InvalidEntry, match=wrong):
        of_mistake(Edit("client", "1", file, line, becomes, where), CLIENT if file == "client.py" else GO)
