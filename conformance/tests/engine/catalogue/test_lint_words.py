"""The lint of words: each is found in every kind of text, and names that contain one are not."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import parser
from kipcheck.conformance.core.files.remedies import Remedy
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.engine.catalogue.lint import lint_input, words
from kipcheck.conformance.engine.catalogue.lint_words import (
    EXEMPT,
    GIVEN,
    WORD,
    WORDS,
    Text,
    folder,
    options,
    package,
    words_in,
)


def test_no_text_of_the_project_contains_an_unwanted_word() -> None:
    assert list(words(lint_input())) == []


def test_no_help_text_contains_an_unwanted_word() -> None:
    assert list(map(str, words_in(options(parser())))) == []


def test_every_word_is_found_in_any_case_and_not_within_another() -> None:
    assert [each.word for word in WORDS for each in words_in([Text(f"It is {word.title()}.")])] == list(WORDS)
    assert not list(words_in([Text("retold, told_of, outvoices; a lucky advice: telltale services")]))


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.py", "raise ValueError('somebody broke it')", 1),
        ("a.py", "x = 1\nprint(f'{x} was\\n'\n      f'told {x}')", 2),
        ("a.py", 'add("--x", help="tells more")', 1),
        ("a.py", '"""Tells more."""', 1),
        ("a.py", 'class A:\n    """Nobody."""', 2),
        ("a.py", 'class A:\n    def f(self):\n        """Nobody."""', 3),
        ("a.py", 'A = 1\n"""Luck."""', 2),
        ("a.md", "# A\n\n```\ntold\n```\nIt is told.\n", 6),
        ("requirements.toml", '[[requirement]]\nid = "x-1"\ntext = "It is told."', 3),
        ("remedies.toml", '[x-1]\nfix = "Tell it."', 2),
        ("tags.toml", '[classes]\nbounds = "nobody looks"', 2),
        ("known/a.toml", '[[deviation]]\nreason = "nobody looks"', 2),
        ("a.schema.json", '{\n"description": "what is told"}', 2),
        ("a.java", 'throw new Error("nobody looks");', 1),
    ],
)
def test_a_planted_word_is_found_with_its_place(tmp_path: Path, name: str, text: str, line: int) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    found = list(words_in(folder(tmp_path, "top")))
    assert [each.text.place for each in found] == [f"top/{name}:{line}"]
    assert str(found[0]).startswith(f"top/{name}:{line}") and found[0].word in str(found[0])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", 'told = {"told": 1}\n"""x"""\nprint(told)  # nobody is told'),
        ("a.py", '_A = 1\n"""Nobody."""'),
        ("a.py", 'def _f():\n    """Nobody."""'),
        ("a.py", 'x = "run `told` of miniature/ID, or kipcheck vices"'),
        ("a.py", 'case("beat a on t told; beat b-1 told")'),
        ("a.py", 'Violation(why, shape=("above told",))'),
        ("a.md", "See [it](findings/nobody-told.md) and `told`."),
        ("requirements.toml", '[[requirement]]\nid = "429-11"\ntext = "It is told."'),
        ("requirements.toml", '[[requirement]]\nid = "x-1"\nclause = "It is told."\ntext = ""'),
        ("tests/a.py", "x = 'nobody looks'"),
        ("a.json", '{"why": "nobody looks"}'),
    ],
)
def test_names_and_private_texts_are_not_meant(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    assert not list(words_in(folder(tmp_path, "top")))


def _search(history: History) -> Iterator[Violation]:
    """Nobody reads this, Xyzzy."""
    yield from ()


def test_declarations_made_at_run_time_are_read_as_well() -> None:
    of = lint_input()
    check = replace(of.checks[0], id="wire/x", sentence="whoever reads this, Xyzzy")
    invariant = replace(of.invariants[0], id="x", search=_search)
    changed = replace(
        of,
        checks=(check,),
        invariants=(invariant,),
        requirements={"x-1": replace(of.requirements["grp-05"], text="Xyzzy: it tells.")},
        remedies={"x-2": Remedy("Xyzzy: luck.")},
        tags=replace(of.tags, classes={"bounds": "Xyzzy, and spoken"}, effects={"crash": "Xyzzy, and foretold"}),
    )
    ids = [each.partition(":")[0] for each in words(changed) if "Xyzzy" in each]
    assert ids == ["wire/x", "x", "x-1", "x-2", "bounds", "crash"]


def test_no_exemption_is_stale() -> None:
    texts = [each.text for each in package() if WORD.search(each.text)]
    assert texts and all(reason for _, reason in EXEMPT)
    assert [id for id in GIVEN if not WORD.search(requirements()[id].text)] == []
