"""Options and fixtures of the pytest plugin. Every pytest loads it, so it imports other modules late."""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kipcheck.conformance.live.testing.in_thread import Broker
    from kipcheck.conformance.suite.items import Item, SessionTargets
    from kipcheck.conformance.targets.protocol import Target

ITEM, TARGET = "kipcheck_item", "kipcheck_target"
LISTS = {
    "target": "target to test, as for kipcheck run; may be repeated",
    "name": "name of a cmd: target in results, in the order of the targets; default the one in its hello",
    "check": "checks to run; default all; may be repeated",
    "message": "messages, assignors, machines; default all; may be repeated",
    "known": "known deviations: a file, or default for the lists shipped with kipcheck; may be repeated",
}
BROKER = "kipcheck_broker"
BROKERS = pytest.StashKey["list[Broker]"]()
SESSION_TARGETS = pytest.StashKey["SessionTargets"]()
SUMMARY = pytest.StashKey[str]()


class KipcheckWarning(UserWarning):
    """A violation of a SHOULD."""


def pytest_addoption(parser: pytest.Parser) -> None:
    about = "conformance with Kafka's protocols (pytest --pyargs kipcheck.conformance.suite)"
    group = parser.getgroup("kipcheck", about)
    for name, about in LISTS.items():
        metavar = {"target": "T", "name": "NAME", "known": "FILE"}.get(name, "GLOB")
        group.addoption(f"--kipcheck-{name}", action="append", default=[], metavar=metavar, help=about)
        parser.addini(f"kipcheck_{name}", about, type="linelist")
    group.addoption("--kipcheck-edition", metavar="E", help="default apache")
    parser.addini("kipcheck_edition", "edition of the protocol", default="apache")
    group.addoption("--kipcheck-seed", type=int, default=0, metavar="N")
    group.addoption("--kipcheck-cases", type=int, metavar="N", help="values drawn for each check and subject")
    group.addoption(
        "--kipcheck-out", type=Path, default=Path("kipcheck-out"), metavar="DIR",
        help="folder for ledger, reports and failures (default kipcheck-out)",
    )  # fmt: skip


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if ITEM in metafunc.fixturenames:
        items = _session_targets(metafunc.config).items()
        metafunc.parametrize(ITEM, items, ids=[item.id for item in items], indirect=True)
    elif TARGET in metafunc.fixturenames:
        metafunc.parametrize(TARGET, _session_targets(metafunc.config).names(), indirect=True, scope="session")


@pytest.fixture
def kipcheck_item(request: pytest.FixtureRequest) -> "Item":
    """A check on a subject with a target: ``hold`` fails with the report of its run."""
    item: Item = request.param
    return item


@pytest.fixture(scope="session")
def kipcheck_target(request: pytest.FixtureRequest) -> "Target":
    """A target of ``--kipcheck-target``: ``open`` gives a session, which runs cases. All tests share its process."""
    found = _session_targets(request.config).find(request.param)
    return found


@pytest.fixture
def kipcheck_broker(request: pytest.FixtureRequest) -> "Iterator[Broker]":
    """A broker on a port of its own, which ``kipcheck.testing`` describes. Its settings are those of the mark:
    ``@pytest.mark.kipcheck_broker("SCRIPT", release="3.9.2", topics={"orders": 3}, config={...})``."""
    from kipcheck.conformance.live.testing.in_thread import broker

    mark = request.node.get_closest_marker(BROKER)
    with broker(*mark.args, **mark.kwargs) if mark else broker() as made:
        request.node.stash.setdefault(BROKERS, []).append(made)
        yield made


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{BROKER}(script, release, topics, config): the broker of a test, by kipcheck")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" and report.failed:
        for made in item.stash.get(BROKERS, ()):
            report.sections.append(("kipcheck broker", made.report))
    return report


def pytest_sessionstart(session: pytest.Session) -> None:
    if _reports_session(session.config):
        from kipcheck.conformance.suite.combined import remove_earlier

        remove_earlier(session.config)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if not _reports_session(session.config):
        return
    from kipcheck.conformance.suite.combined import merged_result

    result = merged_result(session.config)
    if result is not None:
        session.config.stash[SUMMARY] = result.line
        # Failures of the whole session, such as a known deviation that matches nothing.
        if result.exit_code and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _reports_session(config: pytest.Config) -> bool:
    """Whether this process reports the session: not in a worker of pytest-xdist, and not without a target."""
    named = config.getoption("--kipcheck-target") or config.getini("kipcheck_target")
    return bool(named) and not config.option.collectonly and not hasattr(config, "workerinput")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    line = config.stash.get(SUMMARY, "")
    if line:
        terminalreporter.section("kipcheck")
        terminalreporter.line(line)


def pytest_unconfigure(config: pytest.Config) -> None:
    targets = config.stash.get(SESSION_TARGETS, None)
    if targets is not None:
        targets.close()


def _session_targets(config: pytest.Config) -> "SessionTargets":
    """The open targets and the options."""
    if SESSION_TARGETS not in config.stash:
        from kipcheck.conformance.suite.items import SessionTargets

        config.stash[SESSION_TARGETS] = SessionTargets(config, LISTS, KipcheckWarning)
    return config.stash[SESSION_TARGETS]
