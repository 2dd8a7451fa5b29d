"""``kipcheck.toml``: where it is found, what it sets, and what is wrong with it."""

import json
import os
from pathlib import Path

import pytest

from kipcheck.conformance.cli import configuration
from kipcheck.conformance.cli.main import parser
from kipcheck.conformance.tests.cli.test_cli import outcome

WHOLE = """\
targets = ["cmd:./testee --fast", "kafka-python"]
names = ["mine", "theirs"]
edition = "jar:libs/clients.jar"
checks = "wire/*"
messages = ["Heartbeat*"]
known = ["default", "lists/known.toml"]
require = "wire/*"
profile = ["consumer-client", "./own.toml"]
cases = 7
budget = "5m"
seed = 3
out = "results"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The top of a repository, which is the working folder."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "known.toml").touch()
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def completed(*words: str) -> dict[str, object]:
    """The options of a command with what the file sets."""
    options = parser().parse_args(words)
    configuration.complete(options)
    return vars(options)


def test_each_key_gives_the_option_of_its_name(project: Path) -> None:
    (project / "kipcheck.toml").write_text(WHOLE)
    options = completed("run")
    assert {key: options[each.option] for key, each in configuration.KEYS.items()} == {
        "targets": ["cmd:./testee --fast", "kafka-python"], "names": ["mine", "theirs"],
        "edition": "jar:libs/clients.jar", "checks": ["wire/*"], "messages": ["Heartbeat*"],
        "known": ["default", "lists/known.toml"], "require": ["wire/*"], "profile": ["consumer-client", "./own.toml"],
        "cases": 7, "budget": 300.0, "seed": 3, "out": Path("results"),
    }  # fmt: skip


def test_without_a_file_and_without_a_key_defaults_stay(project: Path) -> None:
    defaults = completed("run")
    assert (defaults["seed"], defaults["edition"], defaults["out"]) == (0, "apache", Path("kipcheck-out"))
    assert all(defaults[each] is None for each in ("target", "known", "budget"))
    (project / "kipcheck.toml").write_text("cases = 1\n")
    assert completed("run") | {"call": 0} == defaults | {"cases": 1, "call": 0}


def test_an_option_replaces_the_value_of_its_key_also_with_the_default(project: Path) -> None:
    (project / "kipcheck.toml").write_text(WHOLE)
    options = completed("run", "--seed", "0", "--target", "aiokafka", "--out", "kipcheck-out", "--check", "assign/*")
    assert (options["seed"], options["target"], options["check"]) == (0, ["aiokafka"], ["assign/*"])
    assert options["out"] == Path("kipcheck-out")
    assert options["name"] is None, "names belong to the targets of the file"


def test_it_is_found_above_the_working_folder_and_paths_are_relative_to_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "kipcheck.toml").write_text(WHOLE)
    monkeypatch.chdir(project / "a" / "b")
    options = completed("run")
    assert options["target"] == ["cmd:../../testee --fast", "kafka-python"]
    assert (options["edition"], options["out"]) == ("jar:../../libs/clients.jar", Path("../../results"))
    assert options["known"] == ["default", "../../lists/known.toml"]
    assert options["profile"] == ["consumer-client", "../../own.toml"]
    (project / "a" / ".git").mkdir()
    assert completed("run")["target"] is None, "another repository begins there"


def test_a_file_above_that_belongs_to_another_user_starts_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "kipcheck.toml").write_text(WHOLE)
    mine = (project / "kipcheck.toml").stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    if mine == 0:
        os.chown(project / "kipcheck.toml", 12345, -1)
    assert completed("run")["seed"] == 3, "the working folder was chosen by the user"
    monkeypatch.chdir(project / "a")
    code, _, error = outcome(capsys, "config")
    assert code == 2 and "belongs to another user" in error


def test_pyproject_has_a_table_of_it_and_kipcheck_toml_comes_first(project: Path) -> None:
    (project / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.other]\nseed = 1\n')
    assert configuration.found() is None
    (project / "pyproject.toml").write_text('[tool.other]\nseed = 1\n[tool.kipcheck]\nchecks = "a"\nseed = 9\n')
    made = configuration.found()
    assert made is not None and (made.values["seed"], made.lines["seed"]) == (9, 5)
    (project / "kipcheck.toml").write_text("seed = 8\n")
    assert completed("run")["seed"] == 8
    (project / "kipcheck.toml").unlink()
    for text in ('tool = "kipcheck"\n', "kipcheck = 1\n"):
        (project / "pyproject.toml").write_text(text)
        assert configuration.found() is None
    (project / "pyproject.toml").write_text("[tool]\nkipcheck = 1\n")
    with pytest.raises(configuration.InvalidConfiguration, match="must be a table, got 1"):
        configuration.found()


def test_a_working_folder_that_was_deleted_has_no_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = project / "a" / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert configuration.found() is None


def test_a_list_that_does_not_exist_yet_is_no_error_and_is_where_update_writes(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "kipcheck.toml").write_text('known = ["default", "conformance/known.toml"]\nout = "results"\n')
    assert completed("run")["known"] == ["default"]
    assert "kipcheck known update creates it" in capsys.readouterr().err
    assert completed("run", "--known", "other.toml")["known"] == ["other.toml"]
    update = completed("known", "update")
    assert (update["file"], update["out"]) == (["default", "conformance/known.toml"], Path("results"))


def test_all_commands_that_read_a_run_read_the_folder_of_the_file(project: Path) -> None:
    (project / "kipcheck.toml").write_text('out = "results"\nseed = 5\ntargets = "aiokafka"\n')
    for words in (("show", "ID"), ("replay",), ("export", "ID"), ("explore", "list"), ("golden", "verify")):
        assert completed(*words)["out"] == Path("results"), words
    assert completed("report")["folder"] == Path("results")
    assert completed("doctor")["target"] == ["aiokafka"]
    campaign = completed("campaign")
    assert (campaign["out"], campaign["seed"], campaign["target"]) == (Path("results"), 5, ["aiokafka"])
    resumed = completed("campaign", "--resume", "results")
    assert (resumed["seed"], resumed["target"]) == (None, None), "its manifest has them"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("seed = 1\nbudgte = '5m'\n", "kipcheck.toml:2: unknown key 'budgte'; the nearest: budget"),
        ("seed = true\n", "kipcheck.toml:1: seed must be an integer, got True"),
        ("\nchecks = [1]\n", "kipcheck.toml:2: checks must be a string or a list of strings, got [1]"),
        ("checks = []\n", "kipcheck.toml:1: checks is empty"),
        ("budget = '5 minutes'\n", "kipcheck.toml:1: budget: invalid duration '5 minutes': use 90s, 5m or 8h"),
        ("cases = 0\n", "kipcheck.toml:1: cases: must be a positive integer, got '0'"),
        ("seed = \n", "kipcheck.toml:1: not valid TOML"),
        ("[run]\nseed = 1\n", "kipcheck.toml:1: unknown key 'run'"),
    ],
)
def test_what_is_wrong_has_its_line(project: Path, capsys: pytest.CaptureFixture[str], text: str, why: str) -> None:
    (project / "kipcheck.toml").write_text(text)
    for command in ("config", "run"):
        code, out, error = outcome(capsys, command)
        assert (code, out) == (2, "") and why in error


def test_config_prints_values_origins_and_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = outcome(capsys, "config")
    assert code == 0 and "all values are defaults" in out
    (project / "kipcheck.toml").write_text(WHOLE)
    code, out, _ = outcome(capsys, "config")
    lines = out.splitlines()
    assert lines[0] == str(project.resolve() / "kipcheck.toml")
    assert "known     default, lists/known.toml  (line 6)" in lines and "budget    5m  (line 10)" in lines
    printed = json.loads(outcome(capsys, "config", "--json")[1])
    assert printed["values"].keys() == configuration.KEYS.keys() and printed["values"]["out"] == "results"
