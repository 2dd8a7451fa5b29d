"""Mistakes that people make in clients: each is a rule in words, and a change that applies to its release."""

import json
import subprocess

import pytest

from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.recall import go_changes
from kipcheck.conformance.recall.changes import of_mistake
from kipcheck.conformance.recall.go_copies import MODULES
from kipcheck.conformance.recall.mistakes import Edit, mistakes
from kipcheck.conformance.recall.python_copies import PACKAGES, sources
from kipcheck.conformance.targets.toolchains import build, go

LEAST, OF_SEVERAL_CLIENTS = 60, 40


def test_every_mistake_is_a_rule_with_a_change_to_each_client() -> None:
    for each in mistakes().values():
        assert each.rule.endswith(".") and ("; here " in each.rule or ": it " in each.rule or "; this " in each.rule), (
            each.id
        )
        assert set(each.requirements) <= set(requirements()), each.id
        clients = [edit.client for edit in each.change]
        assert clients and len({*clients}) == len(clients), each.id
        assert {*clients} <= {*PACKAGES, *MODULES}, each.id
        assert not any("\n" in edit.line for edit in each.change), each.id
    assert len(mistakes()) >= LEAST
    assert sum(len(each.change) > 1 for each in mistakes().values()) >= OF_SEVERAL_CLIENTS


@pytest.mark.integration
@pytest.mark.parametrize("client", PACKAGES)
def test_every_change_in_python_applies_once(client: str) -> None:
    """``of_mistake`` compiles the changed text too."""
    edits = _edits(client)
    texts = {release: sources(client, release) for release in {edit.release for edit in edits}}
    assert edits and all(of_mistake(edit, texts[edit.release][edit.file]) for edit in edits)


@pytest.mark.go
@pytest.mark.parametrize("client", MODULES)
def test_every_change_in_go_applies_once(client: str) -> None:
    """A text that is no longer Go is a SyntaxError."""
    edits = _edits(client)
    folders = {release: _module(client, release) for release in {edit.release for edit in edits}}
    for edit in edits:
        with open(f"{folders[edit.release]}/{edit.file}", encoding="utf-8") as file:
            assert go_changes.sites(of_mistake(edit, file.read()).after), edit


def _edits(client: str) -> list[Edit]:
    return [edit for each in mistakes().values() for edit in each.change if edit.client == client]


def _module(client: str, release: str) -> str:
    """The folder of the module in Go's cache."""
    argv = [str(go.go()), "mod", "download", "-json", f"{MODULES[client]}@v{release}"]
    done = subprocess.run(argv, env=build.environment(go.ENVIRONMENT), capture_output=True, check=True)
    return str(json.loads(done.stdout)["Dir"])
