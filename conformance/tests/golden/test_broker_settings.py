"""The table of the settings of brokers is what the jars of each release define, and has no gap."""

import json
from collections.abc import Iterator
from importlib.resources import files
from itertools import pairwise

import pytest

from kipcheck.conformance.core.files.broker_settings import (
    FILE,
    INTEGERS,
    Of,
    Setting,
    defaults,
    releases_with,
    rows,
    settings,
    table,
)
from kipcheck.conformance.core.files.releases_table import patches
from kipcheck.conformance.core.values.release import NEWEST, Release, lines, releases, text_of
from kipcheck.conformance.live.server.settings import FIXED, RETENTION, SERVED
from kipcheck.conformance.protocols.group.invariants.records import KEPT_MS
from kipcheck.conformance.protocols.streams_group.model import SETTINGS as STREAMS_SETTINGS
from kipcheck.conformance.tests.support.loops import for_each, some_by_day
from kipcheck.golden.broker_settings import Defined, defined, text

KINDS: tuple[Of, ...] = ("broker", "group")


def stated() -> dict[str, Defined]:
    """What the file states of each release."""
    found: dict[str, dict[str, dict[str, dict[str, object]]]] = {}
    for release in patches():
        at = Release.parse(release)
        found[release] = {
            of: {
                name: {key: value for key, value in row.items() if key != "releases"}
                for name, some in table()[of].items()
                for row in some
                if at in releases(row["releases"])
            }
            for of in KINDS
        }
    return {**found}


STATED = stated()


def changes() -> Iterator[str]:
    """Both releases of each change within a line."""
    for before, after in pairwise(patches()):
        if before.rpartition(".")[0] == after.rpartition(".")[0] and STATED[before] != STATED[after]:
            yield from (before, after)


RELEASES = sorted({*lines(), *changes()}, key=Release.parse)


def test_the_table_has_all_releases_and_is_as_the_generator_writes_it() -> None:
    """A release that is new in releases.toml needs ``python -m kipcheck.golden.broker_settings``."""
    assert table()["releases"] == [*patches()]
    assert text(STATED) == (files("kipcheck.conformance.core") / "data" / FILE).read_text("utf-8")


def test_each_release_has_one_row_of_a_setting() -> None:
    for of in KINDS:
        for name, some in table()[of].items():
            for release in patches():
                at = Release.parse(release)
                assert sum(at in releases(row["releases"]) for row in some) <= 1, (name, release)


def test_defaults_are_valid() -> None:
    for of in KINDS:
        for name, each in rows(of):
            if isinstance(each.default, int) and each.type in INTEGERS:
                assert each.parse(str(each.default)) == each.default, name
            elif isinstance(each.default, tuple) and each.default:
                assert each.parse(",".join(each.default)) == each.default, name


def test_what_is_served_or_read_of_brokers_is_in_the_table() -> None:
    assert {*SERVED, *FIXED, *STREAMS_SETTINGS} <= {*table()["broker"]}
    kept = [each.default for name, each in rows() if name == RETENTION]
    assert min(each for each in kept if isinstance(each, int)) * 60_000 == KEPT_MS


@for_each(
    [
        ("group.max.session.timeout.ms", "2.2.2", 300_000, "0.10.0.0+"),
        ("group.max.session.timeout.ms", "2.3.0", 1_800_000, "0.10.0.0+"),
        ("offsets.retention.minutes", "1.1.1", 1_440, "0.10.0.0+"),
        ("offsets.retention.minutes", "2.0.0", 10_080, "0.10.0.0+"),
        ("group.max.size", "2.2.0", 2**31 - 1, "2.2.0+"),
        ("group.consumer.migration.policy", "3.8.0", "disabled", "3.8.0-3.8.1, 4.0.0+"),
        ("group.coordinator.rebalance.protocols", "4.0.0", ("classic", "consumer"), "3.7.0+"),
    ]
)
def test_a_default_changes_with_its_release(name: str, release: str, default: object, there: str) -> None:
    assert defaults(release)[name] == default
    assert releases_with(name) == there


def test_settings_that_users_may_not_set_are_left_out() -> None:
    assert "group.consumer.max.size" not in settings("3.6.2")
    assert "group.consumer.max.size" in settings("3.7.0")
    assert releases_with("consumer.session.timeout.ms", "group") == "4.0.0+"
    assert releases_with("group.share.persister.class.name") == ""


@for_each(
    [
        (("0.10.0.0", "0.10.0.1", "0.10.1.0"), "0.10.0.0-0.10.1.0"),
        (("2.3.0",), "2.3.0"),
        (("2.3.0", "2.4.0"), "2.3.0, 2.4.0"),
        ((NEWEST,), f"{NEWEST}+"),
        (patches(), f"{patches()[0]}+"),
        ((), ""),
    ]
)
def test_the_text_of_some_releases(some: tuple[str, ...], expected: str) -> None:
    assert text_of(some) == expected
    assert not some or [each for each in patches() if Release.parse(each) in releases(expected)] == [*some]


@for_each(
    [
        ("int", "1_0", "use an integer from -2147483648 to 2147483647"),
        ("short", "32768", "to 32767"),
        ("boolean", "yes", "use true or false"),
        ("list", "a,c", "use one of a, b or several of them"),
        ("string", "c", "use one of a, b$"),
    ]
)
def test_a_wrong_value_is_refused_with_the_valid_form(kind: str, given: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Setting("all", kind, None, values=("a", "b")).parse(given)


@pytest.mark.jars
@pytest.mark.parametrize("release", some_by_day(RELEASES, 2, pytest.mark.all_jars))
def test_the_jars_define_what_the_table_has(release: str) -> None:
    """The first and the newest line by day, every line at night."""
    found = defined([release])[release]
    assert len(found["broker"]) > 10
    assert json.dumps(found, sort_keys=True) == json.dumps(STATED[release], sort_keys=True)
