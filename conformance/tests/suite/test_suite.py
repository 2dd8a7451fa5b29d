"""The gate under pytest: items, what they tell, one report of all; and no weight where nobody asks for it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.suite import items
from kipcheck.conformance.suite.items import _SharedTarget
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import Session, Target, Unavailable
from kipcheck.conformance.tests.support import broken_testees

pytest_plugins = ["pytester"]

SUITE = ("--pyargs", "kipcheck.conformance.suite", "-p", "no:cacheprovider")
SMALL = ("--kipcheck-check", "wire/two-readings", "--kipcheck-message", "HeartbeatR*")


@pytest.fixture(scope="module", autouse=True)
def whole() -> None:
    """An inner session forgets what was imported since pytester began, and invariants register themselves once."""
    all_invariants(Role.CODEC)


@pytest.fixture
def inside(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Targets without a process of their own."""
    known = registry.target

    def target_of(name: str) -> Target:
        if name == "absent":
            raise Unavailable("absent is not installed")
        short = name.removeprefix("miniature/")
        made = Reference if name == "reference" else MUTANTS[short].made if short in MUTANTS else None
        return known(name) if made is None else InProcess(made())

    monkeypatch.setattr(items, "target_of", target_of)
    return pytester


def test_an_item_for_each_target_check_and_subject(inside: pytest.Pytester) -> None:
    names = ("--kipcheck-target", "reference", "--kipcheck-target", "miniature/ignores-nullability")
    result = inside.runpytest_inprocess(*SUITE, *names, *SMALL, "--kipcheck-check", "wire/prefixes", "-v")
    result.assert_outcomes(passed=7, failed=1)
    result.stdout.fnmatch_lines([
        "*test_conformance?reference-wire/two-readings-HeartbeatRequest? PASSED*",
        "*test_conformance?miniature/ignores-nullability-wire/two-readings-HeartbeatRequest? FAILED*",
    ])  # fmt: skip
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.integration
def test_items_of_a_command_have_the_name_of_its_testee(inside: pytest.Pytester) -> None:
    command = f"cmd:{sys.executable} -I -S {broken_testees.__file__} well-bred"
    other = f"{command} once-more"
    both = ("--kipcheck-target", command, "--kipcheck-target", other)
    small = ("--kipcheck-check", "wire/two-readings", "--kipcheck-message", "HeartbeatRequest", "--kipcheck-cases", "1")
    result = inside.runpytest_inprocess(*SUITE, *both, *small, "--kipcheck-name", "mine", "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["*?mine-wire/two-readings-HeartbeatRequest? PASSED*", "*?broken-wire/two-readings-HeartbeatRequest? PASSED*"]
    )
    assert {place.target for place in read(inside.path / "kipcheck-out" / "ledger.jsonl").cases} == {"mine", "broken"}
    result = inside.runpytest_inprocess(*SUITE, *both, *small)
    result.stdout.fnmatch_lines(["*are both named 'broken'*"])


def test_a_failure_tells_what_a_run_tells(inside: pytest.Pytester) -> None:
    result = inside.runpytest_inprocess(*SUITE, "--kipcheck-target", "miniature/forgets-the-sign", *SMALL)
    printed = result.stdout.str()
    assert "broken    Legal bytes are read as the value that both reference readers find in them." in printed
    assert "grp-05    generated message classes, ConsumerProtocol" in printed
    assert "HeartbeatResponse v0: in legal bytes errorCode is read as 65535, not -1" in printed
    assert ">  0 ffff  errorCode int16 -1" in printed
    again = [
        line.partition("kipcheck replay ")[2] for line in printed.splitlines() if line.lstrip().startswith("again ")
    ]
    assert again, printed
    for id, option, out in map(str.split, again):
        assert option == "--out" and (Path(out) / "failures" / f"{id}.json").is_file()
    assert "def hold" not in printed, "a traceback of ours is of no use"


def test_all_items_have_one_ledger_and_one_set_of_reports(inside: pytest.Pytester) -> None:
    arguments = (*SUITE, *SMALL, "--kipcheck-target", "miniature/forgets-the-sign", "--kipcheck-out", "there")
    result = inside.runpytest_inprocess(*arguments)
    out = inside.path / "there"
    result.stdout.fnmatch_lines([f"an unexpected failure; reports in {out}"])
    ledger = read(out / "ledger.jsonl")
    assert {(place.check, place.subject) for place in ledger.cases} == {
        ("wire/two-readings", "HeartbeatRequest"), ("wire/two-readings", "HeartbeatResponse")
    }  # fmt: skip
    assert {"report.html", "junit.xml", "results.sarif", "summary.md"} <= {path.name for path in out.iterdir()}
    # The next session forgets the items of this one.
    inside.runpytest_inprocess(*arguments, "-k", "HeartbeatRequest").assert_outcomes(passed=1, deselected=1)
    assert {place.subject for place in read(out / "ledger.jsonl").cases} == {"HeartbeatRequest"}


def test_in_a_suite_of_ones_own(inside: pytest.Pytester) -> None:
    inside.makeini("[pytest]\nkipcheck_target = reference\nkipcheck_check = features/*\nkipcheck_edition = kip-584\n")
    inside.makepyfile(
        """
        from kipcheck.conformance.core.values.case import Role

        def test_conformance(kipcheck_item):
            assert kipcheck_item.subject == "features"
            kipcheck_item.hold()

        def test_something_else(kipcheck_target):
            with kipcheck_target.open("kip-584", Role.CONTROLLER) as session:
                assert session.info.name == "reference"
        """
    )
    result = inside.runpytest_inprocess("-v")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*::test_conformance?reference-features/gating-features? PASSED*"])


def test_what_stands_on_the_command_line_takes_the_place_of_the_ini_file(inside: pytest.Pytester) -> None:
    inside.makeini("[pytest]\nkipcheck_target = absent\nkipcheck_message = HeartbeatRequest\n")
    result = inside.runpytest_inprocess(*SUITE, "--kipcheck-target", "reference", "--kipcheck-check", "wire/prefixes")
    result.assert_outcomes(passed=1)


def test_a_breach_of_a_should_is_a_warning(inside: pytest.Pytester) -> None:
    arguments = ("--kipcheck-check", "wire/unknown-tags", "--kipcheck-message", "HeartbeatResponse")
    result = inside.runpytest_inprocess(*SUITE, "--kipcheck-target", "miniature/drops-unknown-tags", *arguments)
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*  WARN ????????????  miniature/drops-unknown-tags *"])
    (inside.path / "known.toml").write_text("")
    listed = ("--kipcheck-known", "known.toml")
    result = inside.runpytest_inprocess(
        *SUITE, "--kipcheck-target", "miniature/drops-unknown-tags", *arguments, *listed
    )
    result.assert_outcomes(failed=1)


def test_where_nothing_is_judged_nothing_passes(inside: pytest.Pytester) -> None:
    arguments = ("--kipcheck-check", "wire/vectors", "--kipcheck-message", "HeartbeatRequest", "-rs")
    release = ("--kipcheck-edition", "apache@2.0.0")  # of which no vector says anything
    result = inside.runpytest_inprocess(*SUITE, "--kipcheck-target", "reference", *release, *arguments)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*there are no cases for the subjects that the target claims*"])


def test_a_target_that_is_not_there_fails_alone_and_beside_another(inside: pytest.Pytester) -> None:
    alone = inside.runpytest_inprocess(*SUITE, "--kipcheck-target", "absent", *SMALL)
    alone.assert_outcomes(failed=1)
    alone.stdout.fnmatch_lines(["*absent is not installed*"])
    beside = inside.runpytest_inprocess(*SUITE, "--kipcheck-target", "absent", "--kipcheck-target", "reference", *SMALL)
    beside.assert_outcomes(failed=1, passed=2)
    beside.stdout.fnmatch_lines(["*absent is not installed*"])


KNOWN = """
target = "miniature/forgets-the-sign"
[[deviation]]
checks = ["wire/two-readings"]
invariant = "wire/decodes"
versions = "all"
shape = ["misread", "int16", "int", "int"]
reason = "It forgets the sign."
link = "https://kafka.apache.org/protocol"
[deviation.where]
HeartbeatResponse = "0-4"
"""


def test_what_is_known_does_not_fail_as_long_as_nothing_changes(inside: pytest.Pytester) -> None:
    (inside.path / "known.toml").write_text(KNOWN)
    arguments = (*SUITE, *SMALL, "--kipcheck-target", "miniature/forgets-the-sign", "--kipcheck-known", "known.toml")
    inside.runpytest_inprocess(*arguments).assert_outcomes(passed=2)
    (inside.path / "known.toml").write_text(KNOWN + 'HeartbeatRequest = "3"\n')
    changed = inside.runpytest_inprocess(*arguments)
    changed.assert_outcomes(passed=1, failed=1)
    changed.stdout.fnmatch_lines(["*HeartbeatRequest v3: this known deviation no longer occurs: remove it*"])


def test_what_no_item_alone_shows_fails_all_the_same(inside: pytest.Pytester) -> None:
    """An entry of two checks is settled only where both were held."""
    known = KNOWN.replace('["wire/two-readings"]', '["wire/two-readings", "wire/unknown-tags"]')
    (inside.path / "known.toml").write_text(known.replace("0-4", "0-5"))
    both = (*SMALL, "--kipcheck-check", "wire/unknown-tags", "--kipcheck-target", "miniature/forgets-the-sign")
    result = inside.runpytest_inprocess(*SUITE, *both, "--kipcheck-known", "known.toml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["stale expectations; reports in *"])


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "no target: use --kipcheck-target, for example kafka-python, or kipcheck_target in the ini file"),
        (("--kipcheck-target", "nobody"), "unknown target 'nobody'; known:"),
        (("--kipcheck-target", "reference", "--kipcheck-check", "no/such"), "no check matches 'no/such'"),
        (("--kipcheck-target", "reference", "--kipcheck-edition", "kip-1"), "unknown edition 'kip-1'"),
        (("--kipcheck-target", "reference", "--kipcheck-message", "NoSuch"), "--message 'NoSuch' matches no message"),
        (("--kipcheck-target", "reference", "--kipcheck-cases", "0"), "--kipcheck-cases must be a positive integer"),
    ],
)
def test_nothing_to_hold_is_wrong_usage(inside: pytest.Pytester, arguments: tuple[str, ...], why: str) -> None:
    result = inside.runpytest_inprocess(*SUITE, *arguments)
    assert result.ret in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERRUPTED)
    assert why in result.stdout.str() + result.stderr.str()


@pytest.mark.integration
def test_with_workers_of_xdist_and_targets_in_processes(pytester: pytest.Pytester) -> None:
    names = ("--kipcheck-target", "miniature/forgets-the-sign", "--kipcheck-target", "reference")
    result = pytester.runpytest_subprocess(*SUITE, *names, *SMALL, "-n", "2", timeout=120)
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["an unexpected failure; reports in *"])
    places = read(pytester.path / "kipcheck-out" / "ledger.jsonl").cases
    assert {(place.target, place.subject) for place in places} == {
        (target, f"Heartbeat{kind}")
        for target in ("miniature/forgets-the-sign", "reference") for kind in ("Request", "Response")
    }  # fmt: skip


@pytest.mark.integration
def test_where_nobody_asks_for_it_it_weighs_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_nothing_of_it_is_here(request):
            assert request.config.pluginmanager.has_plugin("kipcheck")
            heavy = [name for name in sys.modules if name.startswith(("kipcheck", "construct", "kafka", "hypothesis."))]
            suite = "kipcheck.conformance.suite"
            assert sorted(heavy) == ["kipcheck", "kipcheck.conformance", suite, f"{suite}.plugin"]
        """
    )
    result = pytester.runpytest_subprocess(timeout=60)
    result.assert_outcomes(passed=1)
    assert not (pytester.path / "kipcheck-out").exists()


def test_it_explains_its_options_and_fixtures(pytester: pytest.Pytester) -> None:
    printed = pytester.runpytest_inprocess("--help").stdout.str()
    for option in ("target", "edition", "check", "message", "seed", "cases", "known", "out"):
        assert f"--kipcheck-{option}" in printed
    fixtures = pytester.runpytest_inprocess("--fixtures").stdout.str()
    assert "kipcheck_item" in fixtures
    assert "kipcheck_target [session scope]" in fixtures


class Counted:
    """A target that counts how often it is opened."""

    name = "counted"

    def __init__(self) -> None:
        self.opened = self.closed = 0
        self._target = InProcess(Reference())

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        self.opened += 1
        with self._target.open(edition, role) as session:
            yield session
        self.closed += 1


def test_a_session_lasts_from_item_to_item_and_is_fresh_where_an_item_wants_one_again() -> None:
    counted = Counted()
    lasting = _SharedTarget(counted)
    for _ in range(3):
        lasting.begin()
        with lasting.open("apache", Role.CODEC):
            pass
    assert (counted.opened, counted.closed) == (1, 0)
    with lasting.open("apache", Role.CODEC) as again:
        assert again.info.name == "reference"
    assert (counted.opened, counted.closed) == (2, 1)
    lasting.begin()
    with lasting.open("kip-584", Role.CONTROLLER), lasting.open("apache", Role.CODEC):
        pass
    assert counted.opened == 3
    lasting.close()
    assert counted.closed == counted.opened


def test_the_entry_point_is_declared() -> None:
    from importlib.metadata import entry_points

    (ours,) = entry_points(group="pytest11", name="kipcheck")
    assert ours.value == "kipcheck.conformance.suite.plugin"
    assert ours.value in sys.modules
