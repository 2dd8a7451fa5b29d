"""The CI files do what they say: each step of theirs is run here as its runner would, with the runner's variables."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from kipcheck.conformance.core.ledger import read

pytestmark = pytest.mark.integration

CI = Path(str(files("kipcheck.conformance"))) / "docs" / "ci"


def loaded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CI / name).read_text("utf-8"))
    return found


class Runner:
    """A machine of a CI service: a folder, and commands that are there. pip is said to have installed what is here."""

    def __init__(self, folder: Path) -> None:
        self.work, self.temp, tools = folder / "work", folder / "temp", folder / "tools"
        for each in (self.work, self.temp, tools):
            each.mkdir()
        self._path = f"{tools}:/usr/bin:/bin"
        self.installed = folder / "installed"
        self._script(tools / "kipcheck", f'exec "{sys.executable}" -m kipcheck "$@"')
        # Of ``python3 -m venv PLACE`` and ``PLACE/bin/python -m pip install``, which would ask an index: the shape.
        for name in ("python", "python3"):
            self._script(tools / name, (
                'if [ "$1 $2" = "-m venv" ]; then mkdir -p "$3/bin"; cp "$(dirname "$0")"/* "$3/bin"; exit; fi\n'
                'if [ "$1 $2 $3" = "-m pip install" ]; then shift 3; '
                f'printf "%s\\n" "$@" >> "{self.installed}"; exit; fi\n'
                f'exec "{sys.executable}" "$@"'
            ))  # fmt: skip

    def script(self, name: str, text: str) -> None:
        """Another program of that name."""
        self._script(self.temp.parent / "tools" / name, text)

    def _script(self, path: Path, text: str) -> None:
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run(self, script: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], cwd=self.work, text=True,
            capture_output=True, timeout=400, check=False,
            env={"PATH": self._path, "HOME": str(self.temp), **environment},
        )  # fmt: skip


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


class GitHub:
    """As much of GitHub's runner as the steps use."""

    def __init__(self, runner: Runner, inputs: Mapping[str, str], matrix: Mapping[str, str] | None = None) -> None:
        self.runner = runner
        self.known = {f"inputs.{name}": value for name, value in inputs.items()}
        self.known |= {f"matrix.{name}": value for name, value in (matrix or {}).items()}
        self.known |= {"github.action_path": str(CI), "runner.temp": str(runner.temp), "strategy.job-index": "0"}
        self.summary, self.output = runner.temp / "summary.md", runner.temp / "output"
        self.used: list[str] = []

    def value(self, text: str) -> str:
        def look_up(found: re.Match[str]) -> str:
            return self.known[found[1].strip()]

        return re.sub(r"\$\{\{(.+?)\}\}", look_up, text)

    def holds(self, condition: str | None) -> bool:
        """Of the forms ``${{ always() }}`` and ``${{ always() && inputs.NAME == 'text' }}``."""
        terms = [] if condition is None else condition.removeprefix("${{").removesuffix("}}").split("&&")
        for term in map(str.strip, terms):
            if term == "always()":
                continue
            found = re.fullmatch(r"(\S+) (==|!=) '(.*)'", term)
            assert found is not None, term
            if (self.known[found[1]] == found[3]) is not (found[2] == "=="):
                return False
        return True

    def steps(self, steps: list[dict[str, Any]]) -> int:
        """The exit code of the first that fails."""
        failed = 0
        for step in steps:
            always = "always()" in str(step.get("if"))
            if (failed and not always) or not self.holds(step.get("if")):
                continue
            if "uses" in step:
                self.used.append(step["uses"])
                for text in step.get("with", {}).values():
                    self.value(str(text))
                continue
            environment = {name: self.value(str(text)) for name, text in step.get("env", {}).items()}
            self.output.write_text("")
            done = self.runner.run(
                self.value(step["run"]),
                {**environment, "GITHUB_OUTPUT": str(self.output), "GITHUB_STEP_SUMMARY": str(self.summary)},
            )
            for line in self.output.read_text().splitlines():
                name, _, text = line.partition("=")
                self.known[f"steps.{step['id']}.outputs.{name}"] = text
            self.said = done.stdout + done.stderr
            failed = failed or done.returncode
        return failed


def defaults(action: Mapping[str, Any], **given: str) -> dict[str, str]:
    inputs = {name: str(each.get("default", "")) for name, each in action["inputs"].items()}
    assert given.keys() <= inputs.keys()
    return {**inputs, **given}


SMALL = {"message": "HeartbeatRequest\nHeartbeatResponse", "check": "wire/two-readings\nwire/prefixes"}


def test_the_action_runs_and_tells_its_summary(runner: Runner) -> None:
    action = loaded("action.yml")
    asked = {**SMALL, "target": "reference\n", "artifact": "kept", "sarif": "true", "packages": "one\ntwo==2\n"}
    job = GitHub(runner, defaults(action, **asked))
    assert job.steps(action["runs"]["steps"]) == 0, job.said
    assert job.value(action["outputs"]["exit-code"]["value"]) == "0"
    ledger = read(runner.work / "kipcheck-out" / "ledger.jsonl")
    assert {place.check for place in ledger.cases} == {"wire/two-readings", "wire/prefixes"}
    assert {place.subject for place in ledger.cases} == {"HeartbeatRequest", "HeartbeatResponse"}
    assert job.summary.read_text() == (runner.work / "kipcheck-out" / "summary.md").read_text() != ""
    assert json.loads((runner.work / "kipcheck-out" / "results.sarif").read_text())["version"] == "2.1.0"
    assert [each.partition("@")[0] for each in job.used] == [
        "github/codeql-action/upload-sarif", "actions/upload-artifact"
    ]  # fmt: skip
    place, *packages = [line for line in runner.installed.read_text().splitlines() if not line.startswith("-")]
    assert (Path(place).resolve(), packages) == (CI.resolve().parents[2], ["one", "two==2"])


def test_the_action_fails_with_kipchecks_own_exit_code_after_it_told_everything(runner: Runner) -> None:
    action = loaded("action.yml")
    job = GitHub(runner, defaults(action, **SMALL, target="miniature/forgets-the-sign", artifact="kept"))
    assert job.steps(action["runs"]["steps"]) == 1
    assert "forgets-the-sign" in job.summary.read_text()
    assert job.used == ["actions/upload-artifact@v4"]
    misused = GitHub(runner, defaults(action, target="reference", check="no/such"))
    assert misused.steps(action["runs"]["steps"]) == 2


def test_what_a_user_gives_to_the_action_is_never_code(runner: Runner) -> None:
    action = loaded("action.yml")
    for step in action["runs"]["steps"]:
        assert "${{" not in step.get("run", ""), "an expression in a script is an injection"
    odd = 'HeartbeatRequest"; touch there; echo "'
    GitHub(runner, defaults(action, target="reference", message=odd)).steps(action["runs"]["steps"])
    assert not (runner.work / "there").exists()


CONFIGURED = """\
targets = "{target}"
checks = ["wire/two-readings", "wire/prefixes"]
messages = ["HeartbeatRequest", "HeartbeatResponse"]
known = "conformance/known.toml"
"""
"""A project's kipcheck.toml before its first run: there is no list of known deviations."""


def configured(runner: Runner, target: str) -> None:
    (runner.work / "kipcheck.toml").write_text(CONFIGURED.format(target=target))


@pytest.mark.parametrize(("target", "code"), [("reference", 0), ("miniature/forgets-the-sign", 1)])
def test_the_workflow_runs_as_it_is(runner: Runner, target: str, code: int) -> None:
    workflow, action = loaded("workflow.yml"), loaded("action.yml")
    (check,) = workflow["jobs"].values()
    ours = next(step for step in check["steps"] if "conformance/docs/ci" in step.get("uses", ""))
    assert ours["with"].keys() <= action["inputs"].keys()
    configured(runner, target)
    job = GitHub(runner, defaults(action, **ours["with"]))
    assert job.steps(action["runs"]["steps"]) == code, job.said
    ledger = read(runner.work / "kipcheck-out" / "ledger.jsonl")
    assert {place.check for place in ledger.cases} == {"wire/two-readings", "wire/prefixes"}
    assert {place.subject for place in ledger.cases} == {"HeartbeatRequest", "HeartbeatResponse"}
    assert job.summary.read_text() == (runner.work / "kipcheck-out" / "summary.md").read_text() != ""


@pytest.mark.parametrize(("target", "code"), [("reference", 0), ("miniature/forgets-the-sign", 1)])
def test_the_gitlab_pipeline_runs_as_it_is(runner: Runner, target: str, code: int) -> None:
    (job,) = loaded("gitlab-ci.yml").values()
    configured(runner, target)
    done = runner.run("\n".join([*job["before_script"], *job["script"]]), job["variables"])
    assert done.returncode == code, done.stderr
    assert "kipcheck known update creates it" in done.stderr
    assert (runner.work / job["artifacts"]["reports"]["junit"]).is_file()
    assert [str(Path(job["artifacts"]["reports"]["junit"]).parent) + "/"] == job["artifacts"]["paths"]
    assert job["artifacts"]["when"] == "always"
    assert job["variables"]["KIPCHECK"] in runner.installed.read_text().splitlines()


def test_the_second_day_has_the_list_that_the_documented_command_made(runner: Runner) -> None:
    (job,) = loaded("gitlab-ci.yml").values()
    configured(runner, "miniature/forgets-the-sign")
    lines = "\n".join([*job["before_script"], *job["script"]])
    assert runner.run(lines, job["variables"]).returncode == 1
    assert runner.run("kipcheck known update", {}).returncode == 1, "reasons are to be written"
    known = runner.work / "conformance" / "known.toml"
    text = re.sub(r"^reason = .*$", 'reason = "The sign is read as a bit."', known.read_text(), flags=re.MULTILINE)
    link = 'link = "https://github.com/some/client/issues/13"'
    known.write_text(re.sub(r"^link = .*$", link, text, flags=re.MULTILINE))
    assert runner.run("kipcheck known check", {}).returncode == 0
    done = runner.run(lines, job["variables"])
    assert done.returncode == 0, done.stdout + done.stderr


def test_parts_are_shared_by_the_variable_of_the_environment(runner: Runner) -> None:
    configured(runner, "reference")
    for part in ("1/2", "2/2"):
        done = runner.run(f"kipcheck run --out parts/{part[0]}", {"KIPCHECK_PART": part})
        assert done.returncode in (0, 7), done.stderr
    done = runner.run("kipcheck merge parts/* --out kipcheck-out", {})
    assert done.returncode == 0, done.stderr
    assert read(runner.work / "kipcheck-out" / "ledger.jsonl").complete


def test_every_recipe_names_the_version_of_this_package() -> None:
    texts = {path.name: path.read_text() for path in CI.iterdir() if path.suffix in (".yml", ".md")}
    for name, text in texts.items():
        assert set(re.findall(r"\bv\d+\.\d+\.\d+\b", text)) == {f"v{metadata.version('kipcheck')}"}, name
        if name.endswith(".yml"):
            assert len(re.findall("OWNER/REPOSITORY[/@]", text)) <= 1, f"{name}: one place to edit"
        assert "@REF" not in text and "/REF" not in text, name


def test_the_page_names_every_file_and_no_command_that_there_is_not() -> None:
    page = (CI / "index.md").read_text()
    for path in CI.iterdir():
        assert path.name == "index.md" or f"({path.name})" in page
    environment = {**os.environ, "COLUMNS": "200"}
    printed = subprocess.run(
        [sys.executable, "-m", "kipcheck", "--help"], capture_output=True, text=True, check=True, env=environment
    ).stdout
    for command in set(re.findall(r"(?:`|^)kipcheck ([a-z]+)", page, re.MULTILINE)):
        assert re.search(rf"^    {command} ", printed, re.MULTILINE), command


class Night:
    """The nightly workflow, with a campaign of a test's own in the place of kipcheck's where it is given."""

    def __init__(self, runner: Runner, **environment: str) -> None:
        workflow = loaded("nightly.yml")
        (job,) = workflow["jobs"].values()
        self.runner, self.steps = runner, job["steps"]
        for step in self.steps:
            if "run" in step:
                step["env"] = {**workflow["env"], **environment, **step.get("env", {})}

    def passes(self) -> tuple[int, GitHub]:
        """The exit code of one night."""
        shutil.rmtree(self.runner.work / "kipcheck-out", ignore_errors=True)  # a runner begins with the checkout alone
        job = GitHub(self.runner, {})
        job.known |= {"github.run_id": "1", "github.run_attempt": "1", "github.run_number": "7"}
        job.known["steps.night.outputs.exit-code"] = ""
        return job.steps(self.steps), job

    def kept(self) -> dict[str, str]:
        last = self.runner.work / "kipcheck-last"
        return {str(each.relative_to(last)): each.read_text() for each in sorted(last.rglob("*")) if each.is_file()}


def test_a_night_begins_with_what_the_last_one_kept_and_says_what_is_new(runner: Runner) -> None:
    # A pool of processes would take longer than its cases.
    runner.script("kipcheck", f'a=$1; shift; case $a in campaign) a="campaign --executor inline --rounds 1";; esac; '
                              f'exec "{sys.executable}" -m kipcheck $a "$@"')  # fmt: skip
    (runner.work / "kipcheck.toml").write_text(
        'targets = "miniature/stuck-epoch"\nchecks = "features/epochs"\ncases = 30\nknown = "conformance/known.toml"\n'
    )
    night = Night(runner, BUDGET="1h")
    codes = [night.passes()[0], night.passes()[0]]
    assert codes == [1, 1]
    last = json.loads((runner.work / "kipcheck-out" / "manifest.json").read_text())
    assert last["plan"]["corpus"], "the second night begins with a corpus"
    assert (runner.work / "kipcheck-last" / "ledger.jsonl").is_file()


PLAYED = """
echo "$@" >> "$HOME/asked"
case "$1 $NIGHT" in
  "campaign refused") exit 2;;
  "campaign failing") mkdir -p kipcheck-out/corpus kipcheck-out/failures; echo a > kipcheck-out/failures/a.json;;
  campaign*) mkdir -p kipcheck-out/corpus;;
  "triage unread") exit 2;;
  triage*) echo "new since the last night"; exit 1;;
esac
echo "corpus of $NIGHT" > kipcheck-out/corpus/latest
[ "$NIGHT" != cut ] || exit 6
echo "ledger of $NIGHT" > kipcheck-out/ledger.jsonl
[ "$NIGHT" != failing ]
"""


def test_the_corpus_survives_whatever_comes_of_a_night(runner: Runner) -> None:
    runner.script("kipcheck", PLAYED)

    def night(name: str) -> tuple[int, dict[str, str], str]:
        code, job = Night(runner, NIGHT=name).passes()
        asked = (runner.temp / "asked").read_text().splitlines()
        (runner.temp / "asked").unlink()
        assert ("--corpus kipcheck-last" in asked[0]) == (begun != {}), asked
        return code, Night(runner).kept(), job.summary.read_text()

    begun: dict[str, str] = {}
    assert night("refused")[:2] == (2, {}), "it did not start, and nothing is kept"
    code, begun, printed = night("failing")
    assert code == 1 and begun == {
        "corpus/latest": "corpus of failing\n", "failures/a.json": "a\n", "ledger.jsonl": "ledger of failing\n"
    }  # fmt: skip
    assert "new since the last night" in printed
    code, kept, printed = night("refused")
    assert (code, kept) == (2, begun) and "left no ledger" in printed
    code, kept, _ = night("clean")
    assert code == 0 and kept == {"corpus/latest": "corpus of clean\n", "ledger.jsonl": "ledger of clean\n"}
    code, cut, _ = night("cut")
    assert code == 6 and cut == kept | {"corpus/latest": "corpus of cut\n"}, "before there was a ledger"
    code, kept, _ = night("clean")
    assert code == 0 and kept["corpus/latest"] == "corpus of clean\n"


def test_a_night_that_was_not_held_does_not_pass_and_one_that_cannot_be_compared_says_so(runner: Runner) -> None:
    runner.script("kipcheck", PLAYED)
    assert Night(runner, NIGHT="unread").passes()[0] == 2, "the ledgers cannot be compared"
    assert Night(runner).kept()["ledger.jsonl"] == "ledger of unread\n", "and this one is kept all the same"
    steps = Night(runner).steps
    job = GitHub(runner, {})
    job.known["steps.night.outputs.exit-code"] = ""  # the step was cut off, or its turn never came
    assert job.steps(steps[-1:]) == 6
