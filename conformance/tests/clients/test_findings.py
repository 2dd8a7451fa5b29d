"""Every page about a finding still says what is so: its reproduction is run, and prints what the page says."""

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.checks import CHECKS
from kipcheck.conformance.clients.java import target
from kipcheck.conformance.clients.java.programs import tool
from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.requirement import requirements
from kipcheck.conformance.invariants.registry import all_invariants
from kipcheck.conformance.targets.target_entries import target_entries
from kipcheck.conformance.targets.toolchains import build, go, maven, node
from kipcheck.conformance.tests.support.loops import for_each

FINDINGS = Path(__file__).parents[2] / "docs" / "findings"
PAGES = sorted(each for each in FINDINGS.glob("*.md") if each.name != "index.md")
REPRODUCTION = re.compile(
    r"^```(python|java|go|js)\n(.*?)^```\n\nIt prints\n\n^```text\n(.*?)^```\n", re.MULTILINE | re.DOTALL
)


def row(page: str, name: str) -> str:
    found = re.search(rf"^\| {name} \| (.*) \|$", page, re.MULTILINE)
    assert found is not None, f"it does not tell the {name}"
    return found[1]


MARKS = {"java": pytest.mark.jars, "go": pytest.mark.go, "js": pytest.mark.node}


def marked(path: Path) -> Any:
    text = path.read_text("utf-8")
    marks = [mark for language, mark in MARKS.items() if f"\n```{language}\n" in text]
    return pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.integration
@pytest.mark.parametrize("path", [marked(path) for path in PAGES])
def test_a_reproduction_needs_only_the_release_and_prints_what_the_page_says(path: Path, tmp_path: Path) -> None:
    page = path.read_text("utf-8")
    name, release = row(page, "target").split()
    ((language, code, printed),) = REPRODUCTION.findall(page)
    command = COMMANDS[language](code, name, release, tmp_path)
    try:
        done = played(command)
    except subprocess.TimeoutExpired:  # threads of kafka-python may wait for each other on a busy machine: once more
        done = played(command)
    ends = int(row(page, "ends with")) if "| ends with |" in page else 0
    assert (done.returncode, done.stdout) == (ends, printed), done.stderr


def played(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def python(code: str, name: str, release: str, place: Path) -> list[str]:
    imported = re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE)
    assert {*imported} - sys.stdlib_module_names == {{"kafka-python": "kafka"}.get(name, name)}
    try:
        installed = version(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    if installed != release:
        pytest.skip(f"{name} {installed} is installed, the page is about {release}")
    return [sys.executable, "-c", code]


CLIENTS = {"org.apache.kafka.clients.consumer", "org.apache.kafka.common", "org.apache.kafka.common.serialization"}
STREAMS = ("", ".errors", ".kstream", ".state", ".processor.assignment", ".processor.internals",
           ".processor.internals.assignment")  # fmt: skip
KAFKA = {
    "clients": CLIENTS,
    "group": {
        "org.apache.kafka.common.message", "org.apache.kafka.common.message.JoinGroupRequestData",
        "org.apache.kafka.common.utils", "org.apache.kafka.common.utils.internals",
        "org.apache.kafka.coordinator.group.classic", "org.apache.kafka.timeline",
    },
    "streams": {*CLIENTS, *(f"org.apache.kafka.streams{each}" for each in STREAMS)},
}  # fmt: skip
"""Of the first word of an artifact: packages of it, and of what it comes with."""


def java(code: str, name: str, release: str, place: Path) -> list[str]:
    imported = re.findall(r"^import ([\w.]+?)\.(?:\*|[A-Z])", code, re.MULTILINE)
    ours = KAFKA[name.partition("-")[2].partition("-")[0]]
    assert all(each in ours for each in imported if not each.startswith("java."))
    program = place / "Reproduction.java"
    program.write_text(code, "utf-8")
    jars = maven.fetch(target.coordinates(name, release))
    return [tool("java"), "-cp", os.pathsep.join(map(str, jars.values())), str(program)]


def in_go(code: str, name: str, release: str, place: Path) -> list[str]:
    """Built with what the testee of that release was built with."""
    imported = re.findall(r'^\t"([^"]+)"$', code, re.MULTILINE)
    assert all(each.startswith(f"{go.MODULES[name]}/") for each in imported if "." in each)
    built = go.build(name, release).parent
    for file in ("go.mod", "go.sum"):
        shutil.copy(built / file, place)
    (place / "main.go").write_text(code, "utf-8")
    argv = [str(go.go()), "build", "-mod=mod", "-o", "main", "."]
    subprocess.run(argv, cwd=place, env=build.environment(go.ENVIRONMENT), check=True, timeout=300)
    return [str(place / "main")]


def in_js(code: str, name: str, release: str, place: Path) -> list[str]:
    """Beside what npm installed for the testee of that release."""
    imported = re.findall(r"from '(?:\./node_modules/)?(@?[^']+)'", code)
    assert all(each.startswith(node.PACKAGES[name]) for each in imported if not each.startswith("node:"))
    if release == target_entries()[name].default != node.default(target_entries()[name]):
        pytest.skip(f"{name} {release} needs a later Node than {node.node()}")
    (place / "node_modules").symlink_to(node.build(name, release) / "node_modules")
    (place / "main.mjs").write_text(code, "utf-8")
    return [str(node.node()), str(place / "main.mjs")]


COMMANDS = {"python": python, "java": java, "go": in_go, "js": in_js}


@for_each(PAGES)
def test_a_page_names_what_is_broken_and_stands_in_the_index(path: Path) -> None:
    page = path.read_text("utf-8")
    named = [requirements()[id] for id in re.findall(r"\b(?:grp|\d{3})-\d\d\b", row(page, "requirement"))]
    roles = (Role.CODEC, Role.LEADER, Role.COORDINATOR, Role.MEMBER, Role.OPERATOR_TOOL)
    invariants = {each.id: each for role in roles for each in all_invariants(role)}
    found_by = re.findall(r"`([\w/-]+)`", row(page, "found by"))
    assert {*found_by} <= {*CHECKS, *invariants}
    broken = [invariants[id] for id in found_by if id in invariants]
    assert row(page, "grade") in {each.grade.value for each in broken}
    assert {each.id for each in named} & {id for each in broken for id in each.requirements} or "survives" in found_by
    assert row(page, "status").startswith(("new", "known before"))
    index = (FINDINGS / "index.md").read_text("utf-8")
    assert f"[{page.splitlines()[0].removeprefix('# ')}]({path.name})" in index
