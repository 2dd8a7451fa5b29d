"""The lists that come with kipcheck, and the clients that are installed: green as they are, red when that changes."""

import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.engine.execution.run import Options, run
from kipcheck.conformance.engine.known.lists import everything
from kipcheck.conformance.targets.registry import installed
from kipcheck.conformance.tests.support.releases import PYTHON_CLIENTS

pytestmark = pytest.mark.integration

CHECKS, MESSAGES = ("wire/prefixes", "wire/unknown-tags"), ("HeartbeatRequest", "ResponseHeader")
PART = Options(checks=CHECKS, messages=MESSAGES, workers=1)
LISTS = Path(str(files("kipcheck.conformance.clients"))) / "known"


@pytest.fixture(params=PYTHON_CLIENTS)
def options(request: pytest.FixtureRequest, tmp_path: Path) -> Options:
    name: str = request.param
    assert installed(name) == PYTHON_CLIENTS[name], "the lists are about the releases that the tests are run with"
    return replace(PART, targets=(name,), out=tmp_path / "out")


def ids(options: Options) -> list[str]:
    return sorted(each.id for each in read(options.out / "ledger.jsonl").failures if each.grade != "INFO")


def test_what_comes_with_kipcheck_makes_todays_clients_green_and_nothing_else_does(options: Options) -> None:
    plain = run(options)
    failures = ids(options)
    assert (plain.exit_code, plain.known) == (1, 0) and failures
    known = run(replace(options, known=("default",)))
    assert (known.exit_code, known.failures, known.warnings, known.known) == (0, 0, 0, len(failures)), known.text
    assert ids(options) == failures


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (r'^HeartbeatRequest = ".*"$', 'HeartbeatRequest = "77"', 1),  # a place that is not named
        (r'^(HeartbeatRequest = ".*)"$', r'\1, 99"', 5),  # one that there is not
        (r'^shape = \["(.*?)"', r'shape = ["not \1"', 5),  # another reason
        (r"^reason = ", "expires = 2026-01-01\nreason = ", 5),
    ],
)
def test_any_change_to_a_list_that_comes_with_kipcheck_is_seen(old: str, new: str, code: int, tmp_path: Path) -> None:
    edited = tmp_path / "edited.toml"
    text = (LISTS / "kafka-python.toml").read_text("utf-8")
    edited.write_text(re.sub(old, new, text, flags=re.MULTILINE), "utf-8")
    part = replace(PART, targets=("kafka-python",), messages=("HeartbeatRequest",), out=tmp_path / "out")
    assert run(replace(part, known=(str(edited),))).exit_code == code


@pytest.mark.timeout(900)
@pytest.mark.parametrize("options", ["aiokafka"], indirect=True)  # the part seeds of the night runs all, ten seeds each
def test_the_whole_run_is_green_with_a_seed_with_which_no_list_was_begun(options: Options) -> None:
    outcome = run(replace(Options(), targets=options.targets, seed=1, known=("default",), out=options.out))
    assert (outcome.exit_code, outcome.failures, outcome.warnings) == (0, 0, 0), outcome.text
    assert outcome.known > 0


WITHOUT_RELEASES = ("kfake", "seaweedfs")
"""Go modules that have pseudo-versions only, which no list can name."""


STARTED = ("kafka", "kafka-features")
"""Released software that kipcheck starts, of any release."""


def test_every_entry_names_its_releases_and_says_why() -> None:
    """One; or spans with both their ends, of jars and live clients: what is to come is not excused beforehand."""
    entries = [entry for known in everything(["default"]) for entry in known.entries]
    assert PYTHON_CLIENTS.keys() <= {entry.target for entry in entries}
    for entry in entries:
        has_spans = entry.target.startswith(("java:", "client:")) or entry.target in STARTED
        ends = re.split(", |-", entry.versions) if has_spans else [entry.versions]
        if entry.target in WITHOUT_RELEASES:
            assert entry.versions == "all", entry.at
        else:
            assert all(re.fullmatch(r"\d+(\.\d+)+", end) for end in ends), entry.at
        assert entry.open_keys == () and not any("*" in word for word in entry.shape or ()), entry.at
        assert PYTHON_CLIENTS.get(entry.target, entry.versions) == entry.versions, entry.at
