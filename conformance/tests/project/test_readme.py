"""README is short and begins with the newcomer's two commands; blocks of all pages work in the environment it makes."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from kipcheck.conformance.cli.main import parser
from kipcheck.conformance.tests.project.test_guides import MINE, play, player

ROOT: Final = Path(__file__).resolve().parents[3]
README: Final = (ROOT / "README.md").read_text("utf-8")
WORDS: Final = 600
SETUP: Final = (
    "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/kipcheck run",
    '.venv/bin/pip install -q -e ".[dev]" && .venv/bin/python -m pytest -n 2',
    ". .venv/bin/activate",
)
BLOCK: Final = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "conformance" / "docs").rglob("*.md"))]


def test_it_is_short_and_begins_with_the_set_up() -> None:
    assert len(README.split()) <= WORDS
    assert tuple(block.strip() for block in BLOCK.findall(README)[:3]) == SETUP


def test_all_other_blocks_are_for_the_activated_environment() -> None:
    for path in PAGES:
        for block in BLOCK.findall(path.read_text("utf-8")):
            assert ".venv/bin/" not in block or block.strip() in SETUP, f"{path.relative_to(ROOT)}: {block}"


def commands(block: str) -> Iterator[list[str]]:
    """The arguments of each ``kipcheck`` in a block, without redirections."""
    for line in block.replace("\\\n", " ").splitlines():
        for part in re.split(r"\s(?:\||\|\||&&)\s|;\s", re.sub(r"\s#\s.*", "", f" {line}")):
            try:
                words = shlex.split(re.sub(r"\s\d?[<>]\s*\S+", "", part))
            except ValueError:  # a quoted text of several lines
                continue
            while words and re.match(r"[A-Z_]+=|do$", words[0]):
                del words[0]
            if words and words[0] in ("kipcheck", ".venv/bin/kipcheck"):
                yield [re.sub(r"\$\w+", "1", word) for word in words[1:]]


def test_the_parser_reads_every_command_of_every_page() -> None:
    read = parser()
    number = 0
    for path in PAGES:
        for block in BLOCK.findall(path.read_text("utf-8")):
            for words in commands(block):
                number += 1
                try:
                    read.parse_args(words)
                except SystemExit as stopped:
                    assert not stopped.code, f"{path.relative_to(ROOT)}: kipcheck {' '.join(words)}"
    assert number > 150


@pytest.mark.integration
def test_the_line_for_a_program_of_ones_own_finds_what_is_shown(tmp_path: Path) -> None:
    place, tools = tmp_path / "place", tmp_path / "tools"
    place.mkdir()
    tools.mkdir()
    player(place, tools)
    line = next(block for block in BLOCK.findall(README) if "client:./my-consumer" in block)
    assert shlex.split(line) == ["kipcheck", "run", "--target", MINE]
    done = play([*shlex.split(line), "--cases", "2", "--least", "0"], place, tools)
    assert done.returncode == 1, done.stderr
    shown = re.search(r"^stuck group .*?(A consumer .*)$", README, re.MULTILINE)
    assert shown is not None and shown[1] in done.stdout


def test_the_constraints_name_every_dependency_of_a_gate() -> None:
    """If not: ``nox -s constraints``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = {re.split(r"[^\w.-]", each)[0].lower() for each in (
        *project["dependencies"], *extras["pytest"], *extras["targets"], *extras["spark"])}  # fmt: skip
    lines = (ROOT / "conformance" / "docs" / "ci" / "constraints.txt").read_text("utf-8").splitlines()
    assert needed <= {line.partition("==")[0].lower() for line in lines}
