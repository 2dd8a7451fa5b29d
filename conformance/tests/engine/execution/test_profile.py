"""Profiles: what a target must claim."""

from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.cli import main
from kipcheck.conformance.core.ledger import Ledger, read
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.engine.execution import run as engine_run
from kipcheck.conformance.engine.execution.profile import InvalidProfile, load, shipped, with_options
from kipcheck.conformance.engine.execution.run import Options, Outcome, run
from kipcheck.conformance.live.client.built_in import Settings
from kipcheck.conformance.live.client.launch import Commands
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import Claims
from kipcheck.conformance.wire.schema import messages, spec

WANTED = """
sentence = "a client for a test"
roles = ["codec", "leader"]
assignors = ["range", "sticky"]
machines = ["features"]
[messages]
HeartbeatRequest = "0-4"
JoinGroupRequest = "0, 2-3"
"""


class Little(Reference):
    def claims(self) -> Claims:
        return Claims({"HeartbeatRequest": (0, 2), "JoinGroupRequest": (0, 9)}, {"JoinGroupRequest": (2,)}, ("range",))


@pytest.fixture
def options(tmp_path: Path) -> Options:
    wanted = tmp_path / "wanted.toml"
    wanted.write_text(WANTED)
    return Options(
        targets=("reference",), messages=("HeartbeatRequest",), checks=("wire/two-readings",), workers=1,
        profiles=(str(wanted),), out=tmp_path / "out",
    )  # fmt: skip


def executed(monkeypatch: pytest.MonkeyPatch, options: Options, target: Any) -> tuple[Outcome, Ledger]:
    monkeypatch.setattr(engine_run, "target_of", lambda name: InProcess(target))
    outcome = run(options)
    assert outcome.ledger is not None
    return outcome, read(outcome.ledger)


def test_options_of_a_profile_end_the_command_of_a_live_client_only(tmp_path: Path) -> None:
    short = tmp_path / "short.toml"
    short.write_text('sentence = "short times"\noptions = ["--option", "session.timeout.ms={session_ms}", "a b"]\n')
    profiles = (str(short), "consumer-client")
    command = "client:./consume {bootstrap} {group} {topics}"
    found = with_options(command, profiles)
    assert found == f"{command} --option 'session.timeout.ms={{session_ms}}' 'a b'"
    given = Settings("127.0.0.1:1", "g", ("t",), session_ms=3000)
    words = Commands.of(found.removeprefix("client:")).argv(given)
    assert words == ["./consume", "127.0.0.1:1", "g", "t", "--option", "session.timeout.ms=3000", "a b"]
    for other in ("client:kafka-python", "kafka-python", "cmd:./testee"):
        assert with_options(other, profiles) == other


def test_a_bad_profile_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text('sentence = "short times"\noptions = "--fast"\n')
    assert main.run(["run", "--profile", str(bad), "--out", str(tmp_path / "out")]) == 2
    assert "options must be a list of strings, got '--fast'" in capsys.readouterr().err


def test_who_claims_all_of_it_conforms(monkeypatch: pytest.MonkeyPatch, options: Options) -> None:
    outcome, ledger = executed(monkeypatch, options, Reference())
    assert (outcome.exit_code, ledger.failures) == (0, ())


def test_what_is_not_claimed_is_a_failure_each(monkeypatch: pytest.MonkeyPatch, options: Options) -> None:
    outcome, ledger = executed(monkeypatch, options, Little())
    assert (outcome.exit_code, outcome.failures) == (1, 4)
    assert {each.subject: (each.where, each.observed) for each in ledger.failures} == {
        "sticky": ({"sticky": ""}, "claimed: range"),
        "features": ({"features": ""}, "claimed: none"),
        "HeartbeatRequest": ({"HeartbeatRequest": "3-4"}, "claimed: v0-2"),
        "JoinGroupRequest": ({"JoinGroupRequest": "2"}, "claimed: v0-1, 3-9"),
    }
    assert {each.check for each in ledger.failures} == {"profile"}
    assert len({each.id for each in ledger.failures}) == 4
    assert all(str(options.profiles[0]) in each.reproduce for each in ledger.failures)
    assert ledger.failures[0].sentence == "A target of the profile wanted claims sticky: a client for a test"


def test_what_a_profile_wants_may_be_known_to_be_missing(
    monkeypatch: pytest.MonkeyPatch, options: Options, tmp_path: Path
) -> None:
    known = tmp_path / "known.toml"
    known.write_text("""
[[deviation]]
target = "reference"
checks = ["profile"]
invariant = "profile/wanted"
versions = "all"
shape = ["not claimed", "*"]
reason = "It is small on purpose, and will stay so."
link = "https://github.com/little/client/issues/1"
[deviation.where]
sticky = ""
features = ""
HeartbeatRequest = "3-4"
JoinGroupRequest = "2"
""")
    outcome, _ = executed(monkeypatch, replace(options, known=(str(known),)), Little())
    assert (outcome.exit_code, outcome.known) == (0, 4)
    outcome, ledger = executed(monkeypatch, replace(options, known=(str(known),)), Reference())
    assert (outcome.exit_code, ledger.stale[0].kind) == (5, "passes")
    outcome, ledger = executed(monkeypatch, replace(options, known=(str(known),), profiles=()), Reference())
    assert (outcome.exit_code, ledger.lines.get("stale")) == (0, None)


def test_a_profile_may_make_a_failure_of_a_warning(monkeypatch: pytest.MonkeyPatch, options: Options) -> None:
    strict = Path(options.profiles[0]).with_name("strict.toml")
    strict.write_text('sentence = "whoever passes messages on"\nmust = ["grp-06"]\n')
    mutant = next(each for each in MUTANTS.values() if each.invariant == "wire/keeps-unknown-tags")
    tags = replace(options, checks=("wire/unknown-tags",), messages=("HeartbeatRequest",), profiles=())
    outcome, ledger = executed(monkeypatch, tags, mutant.made())
    assert (outcome.exit_code, outcome.failures, outcome.warnings) == (0, 0, 1)
    outcome, ledger = executed(monkeypatch, replace(tags, profiles=(str(strict),)), mutant.made())
    assert (outcome.exit_code, outcome.failures, outcome.warnings) == (1, 1, 0)
    assert (ledger.failures[0].grade, ledger.failures[0].raised_by) == ("MUST", "strict")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("sentence", "sentences", "unknown key 'sentences': use sentence, roles"),
        ('sentence = "a client for a test"', "", "needs a sentence"),
        ('"codec", "leader"', '"codec", "cook"', "unknown role 'cook': use codec, member, "),
        ('roles = ["codec", "leader"]', 'roles = "codec"', "roles must be a list of strings, got 'codec'"),
        ('"0-4"', '"0+"', "messages.HeartbeatRequest: versions need an upper end"),
        ('"0-4"', '"4-0"', "messages.HeartbeatRequest: '4-0' ends before it begins"),
        ('"0-4"', "4", "messages must be a table of strings"),
        ('machines = ["features"]', 'must = ["grp-05"]', "'grp-05' is not a requirement of grade SHOULD"),
        ("[messages]", "[messages", "not valid TOML"),
    ],
)
def test_what_is_wrong_in_a_profile_is_told(options: Options, old: str, new: str, why: str) -> None:
    path = Path(options.profiles[0])
    path.write_text(WANTED.replace(old, new))
    with pytest.raises(InvalidProfile, match=r"^profile ") as wrong:
        load(str(path))
    assert why in str(wrong.value)
    outcome = run(options)
    assert outcome.exit_code == 2 and why in outcome.why


def test_a_profile_that_is_not_there_or_asks_for_nothing_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidProfile, match="use consumer-client, feature-tool, or a file"):
        load("consumer-cliemt")
    (tmp_path / "empty.toml").write_text('sentence = "nobody"\n')
    with pytest.raises(InvalidProfile, match="it requires nothing"):
        load(str(tmp_path / "empty.toml"))


def test_the_profiles_that_come_with_kipcheck_ask_for_what_there_is() -> None:
    assert shipped() == ["consumer-client", "feature-tool"]
    there = set(messages(edition("apache")))
    for name in shipped():
        profile = load(name)
        assert profile.name == name and set(profile.roles) <= set(Role) and set(profile.must) <= requirements().keys()
        assert profile.messages.keys() <= there
        for message, versions in profile.messages.items():
            spoken = spec(edition("apache"), message).versions
            assert spoken.high is not None and spoken.low <= min(versions) and max(versions) <= spoken.high
    folder = files("kipcheck.conformance.engine") / "profiles"
    assert sorted(each.name for each in folder.iterdir()) == [f"{name}.toml" for name in shipped()]
