"""Streams releases as rules: their versions, their settings and the protocols that they offer."""

import inspect
import re
import tomllib
from importlib.resources import files

import pytest

from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE, EAGER
from kipcheck.conformance.protocols.streams.model import (
    deviations as deviations_module,
    leader as leading,
    member as following,
    rules as ruling,
)
from kipcheck.conformance.protocols.streams.model.deviations import DEVIATIONS, Deviation, deviations
from kipcheck.conformance.protocols.streams.model.members import (
    Misconfigured,
)
from kipcheck.conformance.protocols.streams.model.rules import LINES, Rules
from kipcheck.conformance.wire.schema import release_table


@pytest.mark.parametrize(
    ("spans", "latest"),
    [
        ("0.10.0.0 0.10.0.1", 1),
        ("0.10.1.0 0.10.2.2 0.11.0.3 1.0.2 1.1.0 1.1.1", 2),
        ("2.0.0 2.0.1", 3),
        ("2.1.0 2.2.2 2.3.1", 4),
        ("2.4.0 2.4.1", 5),
        ("2.5.0 2.5.1", 6),
        ("2.6.0", 7),
        ("2.6.1 2.6.3 2.7.2", 8),
        ("2.8.0 2.8.2", 9),
        ("3.0.0 3.1.2", 10),
        ("3.2.0 3.9.2 4.0.0 4.3.1 4.4.0 5.0.0", 11),
    ],
)
def test_a_release_knows_its_latest_version_and_starts_with_it(spans: str, latest: int) -> None:
    for release in spans.split():
        for fitted in (True, False):
            rules = Rules.of(release, fitted)
            assert rules.latest == rules.used(None) == latest


@pytest.mark.parametrize("text", ["0.9.0.1", "3.9", "own", ""])
def test_what_is_no_release_of_streams_has_no_rules(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid release|0\.10\.0\.0"):
        Rules.of(text)


@pytest.mark.parametrize(
    ("release", "taken", "refused"),
    [
        ("0.10.2.2", "0.10.0", "0.10.1 0.10.2"),
        ("1.1.1", "0.10.0", "0.10.1 1.0"),
        ("2.0.0", "0.10.0 0.10.1 0.10.2 0.11.0 1.0 1.1", "2.0"),
        ("2.3.1", "1.1", "2.0 2.3"),
        ("2.4.0", "0.10.0 1.1 2.0 2.3", "2.4"),
        ("3.2.3", "2.3", "2.4 3.1"),
        ("3.3.2", "2.4 2.8 3.2", "3.3"),
        ("3.4.1", "3.3", "3.4"),
        ("3.5.1", "3.3", "3.4"),
        ("3.5.2", "3.4", "3.5"),
        ("3.6.1", "3.4", "3.5"),
        ("3.6.2", "3.5", "3.6"),
        ("3.7.2", "3.6", "3.7"),
        ("3.9.2", "0.10.0 2.3 3.8", "3.9"),
        ("4.0.0", "2.4 3.9", "2.3 0.10.0"),
        ("4.1.2", "4.0", "2.3 4.1"),
        ("4.2.1", "4.1", "1.1 4.2"),
        ("4.3.1", "2.4 4.2", "2.3 4.3"),
    ],
)
def test_a_release_takes_some_values_of_upgrade_from(release: str, taken: str, refused: str) -> None:
    """268-08, 268-09, 268-39, 268-55."""
    rules = Rules.of(release)
    for value in taken.split():
        old = LINES.index(value) <= LINES.index("1.1")
        assert rules.used(value) == (1 if value == "0.10.0" else 2 if old else rules.latest)
    for value in (*refused.split(), "nonsense"):
        with pytest.raises(Misconfigured) as wrong:
            rules.used(value)
        assert wrong.value.kind.endswith(("ConfigException", "IllegalArgumentException"))


def test_a_release_without_upgrade_from_does_not_look_at_it() -> None:
    assert Rules.of("1.1.0").used("0.10.0") == 2
    assert Rules.of("0.10.2.1").used("nonsense") == 2


def test_who_has_read_that_upgrade_from_grows_foresees_what_was_forgotten() -> None:
    assert "3.4" in Rules.of("3.5.1", fitted=False).accepts
    assert "3.5" in Rules.of("3.6.0", fitted=False).accepts


def test_4_0_and_4_1_say_why_there_is_no_live_upgrade() -> None:
    for release, explains in (("4.0.2", True), ("4.1.2", True), ("4.2.1", False)):
        with pytest.raises(Misconfigured) as wrong:
            Rules.of(release).used("2.3")
        assert ("no rolling upgrade" in str(wrong.value)) is explains


@pytest.mark.parametrize(
    ("release", "value", "protocols"),
    [
        ("2.3.1", None, (EAGER,)),
        ("2.4.0", None, (EAGER, COOPERATIVE)),
        ("2.4.0", "2.3", (EAGER,)),
        ("3.9.2", "0.10.0", (EAGER,)),
        ("3.9.2", "2.4", (EAGER, COOPERATIVE)),
        ("4.0.0", None, (COOPERATIVE,)),
        ("4.3.1", "3.9", (COOPERATIVE,)),
    ],
)
def test_a_member_offers_what_its_upgrade_leaves(release: str, value: str | None, protocols: tuple[str, ...]) -> None:
    """268-38, 268-39."""
    assert Rules.of(release).supports(value) == protocols


def test_each_departure_makes_a_difference_somewhere() -> None:
    sources = "".join(map(inspect.getsource, (leading, following, ruling)))
    named = {name: value for name, value in vars(deviations_module).items() if isinstance(value, Deviation)}
    asked = {deviation for name, deviation in named.items() if re.search(rf"\b{name}\b", sources)}
    assert asked == {*DEVIATIONS}


def test_departures_name_requirements_that_there_are() -> None:
    known = {
        each["id"]
        for each in tomllib.loads((files("kipcheck.conformance") / "requirements.toml").read_text())["requirement"]
    }
    named = {found for each in DEVIATIONS for found in re.findall(r"268-\d+", each.why)}
    assert named and named <= known


def test_departures_are_told_apart_and_belong_to_releases() -> None:
    assert len({each.id for each in DEVIATIONS}) == len(DEVIATIONS)
    changes = release_table()["messages"]["SubscriptionInfo"]
    known = [Release.parse(each) for each in (*changes, "2.2.2", "2.3.1", "3.6.1", "4.3.1")]
    for each in DEVIATIONS:
        assert any(at in each for at in known), each.id
    for at in known:
        foreseen = deviations(at, fitted=False)
        assert foreseen == {each for each in deviations(at) if each.foreseen}
