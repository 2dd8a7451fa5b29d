"""A finding of a live client is shown without kipcheck too: by the consumer of its page, and a broker of one file."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.clients.java.programs import tool
from kipcheck.conformance.live.client import built_in
from kipcheck.conformance.targets.toolchains import build, go
from kipcheck.conformance.tests.clients.test_findings import (
    FINDINGS,
    LANGUAGES,
    LIVE,
    LIVE_MARKS,
    PAGES,
    PRIVATE,
    SCRIPTS,
    SHOWN_LINES,
    is_part,
    private_names,
    program,
    row,
    skip_a_release_for_later_nodes,
)
from kipcheck.conformance.tests.support.loops import for_each

BROKER = FINDINGS / "broker.py"
ALONE = re.compile(
    r"^### Without kipcheck\n.*?^```(python|java|go|js)\n(.*?)^```\n\n```sh\npython3 broker\.py (.*?)\n```\n\n"
    r"It prints(, among other lines,)?\n\n```text\n(.*?)^```\n",
    re.MULTILINE | re.DOTALL,
)


def consumer(path: Path) -> Path:
    """The program of a page: the file that it links to, which several pages of a client have in common, or a short one
    that the page shows whole.
    """
    linked = re.search(r"\(repro/([\w.-]+-alone\.\w+)\)", path.read_text("utf-8"))
    (file,) = [SCRIPTS / linked[1]] if linked else SCRIPTS.glob(f"{path.stem}-alone.*")
    return file


SHOWN = {
    path: (found[1], consumer(path).read_text("utf-8"), *found.groups()[2:])
    for path in PAGES
    if (found := ALONE.search(path.read_text("utf-8")))
}
RUN = ("python", "java", "node", "./consume")
STATIC = "static"
"""The argument of a consumer that has an instance id."""
TRIES = 5
"""On a busy machine a client may do something else in time."""


def client(path: Path) -> tuple[str, str]:
    name, release = row(path.read_text("utf-8"), "target").split()
    return name.removeprefix(LIVE), release


def installed(path: Path) -> tuple[str, ...]:
    """The command of kipcheck's own consumer of the page's release."""
    name, release = client(path)
    return built_in.command(f"{name}@{release}")


def python(path: Path, code: str, place: Path) -> list[str]:
    (place / "consume.py").write_text(code, "utf-8")
    return [installed(path)[0], str(place / "consume.py")]


def java(path: Path, code: str, place: Path) -> list[str]:
    (place / "Consume.java").write_text(code, "utf-8")
    command = installed(path)
    return [tool("java"), "-cp", command[command.index("-cp") + 1], str(place / "Consume.java")]


def node(path: Path, code: str, place: Path) -> list[str]:
    skip_a_release_for_later_nodes(*client(path))
    (place / "consume.mjs").write_text(code, "utf-8")
    runs, *_, folder = installed(path)
    (place / "node_modules").symlink_to(Path(folder) / "node_modules")
    return [runs, str(place / "consume.mjs")]


def in_go(path: Path, code: str, place: Path) -> list[str]:
    for file in ("go.mod", "go.sum"):
        shutil.copy(Path(installed(path)[0]).parent / file, place)
    (place / "main.go").write_text(code, "utf-8")
    argv = [str(go.go()), "build", "-mod=mod", "-o", "consume", "."]
    subprocess.run(argv, cwd=place, env=build.environment(go.ENVIRONMENT), check=True, timeout=300)
    return [str(place / "consume")]


COMMANDS: dict[str, Callable[[Path, str, Path], list[str]]] = {"python": python, "java": java, "js": node, "go": in_go}


def is_shown(path: Path, place: Path) -> tuple[bool, str]:
    """Whether the program prints what the page says, and what it printed."""
    language, code, arguments, among, printed = SHOWN[path]
    given = shlex.split(arguments)
    at = min(given.index(each) for each in RUN if each in given)
    more = [each for each in given[at + 1 :] if each == STATIC]
    command = [sys.executable, str(BROKER), *given[:at], *COMMANDS[language](path, code, place), *more]
    for _ in range(TRIES):
        done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False, cwd=place)
        if comes_in_order(done.stdout, printed) if among else done.stdout == printed:
            return True, ""
    return False, f"{done.stdout}{os.linesep}{done.stderr}"


def comes_in_order(output: str, lines: str) -> bool:
    rest = iter(output.splitlines())
    return all(line in rest for line in lines.splitlines())


@pytest.mark.integration
def test_consumers_in_python_show_their_findings_with_the_broker_of_one_file(tmp_path: Path) -> None:
    paths = [path for path, found in SHOWN.items() if found[0] == "python"]
    for path in paths:
        (tmp_path / path.stem).mkdir()
    with ThreadPoolExecutor() as threads:
        found = [*threads.map(lambda path: is_shown(path, tmp_path / path.stem), paths)]
    assert {path.stem: printed for path, (shown, printed) in zip(paths, found, strict=True) if not shown} == {}


OTHERS: list[Any] = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.faults, LIVE_MARKS[client(path)[0]]])
    for path, found in SHOWN.items()
    if found[0] != "python"
]


@pytest.mark.parametrize("path", OTHERS)
def test_a_consumer_in_another_language_shows_its_finding(path: Path, tmp_path: Path) -> None:
    shown, printed = is_shown(path, tmp_path)
    assert shown, printed


@for_each(tuple(SHOWN))
def test_a_consumer_on_a_page_is_short_and_uses_public_interfaces_only(path: Path) -> None:
    language, code, _, _, _ = SHOWN[path]
    assert len(code.splitlines()) <= 60
    found = ALONE.search(path.read_text("utf-8"))
    file = consumer(path)
    assert found is not None and is_part(found[2], code) and LANGUAGES[file.suffix] == language
    assert len(found[2].splitlines()) <= SHOWN_LINES
    assert len(code.splitlines()) <= SHOWN_LINES or f"(repro/{file.name})" in path.read_text("utf-8")
    assert (private_names(code) if language == "python" else re.findall(PRIVATE[language], code)) == []


def test_each_finding_that_a_script_shows_is_shown_without_kipcheck_too() -> None:
    by_script = {path for path in PAGES if program(path)[0] == "json"}
    assert not by_script - SHOWN.keys()
