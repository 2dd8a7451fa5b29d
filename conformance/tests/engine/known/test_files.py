"""The grammar of known deviations, and which failure an entry means."""

import re
import tomllib
from dataclasses import replace
from datetime import date
from importlib.resources import files
from itertools import product
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from kipcheck.conformance.core.ledger import Failure as LedgerFailure
from kipcheck.conformance.engine.known.files import InvalidKnownFile, headings, overlaps, parse
from kipcheck.conformance.engine.known.rules import (
    Entry,
    KnownFile,
    ObservedFailure,
    base,
    fits,
    globs_overlap,
    is_release_in,
    numbers,
    overlap,
    places_in,
    releases_in,
)

SLICES = "It slices past the end, which gives less without an error."
FILE = f"""\
# The lists of one client.
target = "some-client"

[[deviation]]
checks = ["wire/prefixes"]
invariant = "wire/refuses"
versions = "3.0.0-3.0.12"
shape = ["accepted", "truncated", "bytes"]
reason = "{SLICES}"
link = "https://github.com/some/client/issues/12"
expires = 2027-01-01
[deviation.where]
HeartbeatRequest = "0-4"
JoinGroupRequest = "0, 5-9"

[[flaky]]
checks = ["wire/proportion"]
invariant = "survives"
versions = "all"
reason = "It runs out of time when the machine is busy."
link = "https://github.com/some/client/issues/13"
expires = 2027-06-30
where = {{ "Heartbeat*" = "*" }}
"""


def entries(text: str = FILE) -> list[Entry]:
    return list(parse(text, "known.toml").entries)


def entry(**changes: Any) -> Entry:
    return replace(entries()[0], **changes)


def failure(**changes: Any) -> ObservedFailure:
    line = {
        "id": "f1", "target": "some-client", "version": "3.0.12", "checks": ["wire/prefixes"],
        "invariant": "wire/refuses", "shrunk": True, "shape": ["accepted", "truncated", "bytes"],
        "why": "HeartbeatRequest v3 / groupId at byte 2: cut off; it was accepted",
        "where": {"HeartbeatRequest": "0-1, 4", "JoinGroupRequest": "6"},
    }  # fmt: skip
    return ObservedFailure.of(LedgerFailure.of(line | changes, blank=True))


def troubles(text: str) -> list[str]:
    with pytest.raises(InvalidKnownFile) as wrong:
        parse(dedent(text), "known.toml")
    return list(wrong.value.troubles)


def test_a_file_is_read_with_the_line_of_each_entry() -> None:
    known = parse(FILE, "known.toml")
    one, two = known.entries
    assert (one.kind, one.at, one.target, one.expires) == ("deviation", "known.toml:4", "some-client", date(2027, 1, 1))
    assert one.where == {"HeartbeatRequest": ((0, 4),), "JoinGroupRequest": ((0, 0), (5, 9))}
    assert (two.kind, two.at, two.shape, two.where) == ("flaky", "known.toml:16", None, {"Heartbeat*": ((0, None),)})
    assert (known.draw.edition, known.draw.seed, known.draw.cases) == ("apache", 0, None)


def test_an_empty_file_expects_nothing() -> None:
    assert parse("", "known.toml") == KnownFile("known.toml", parse(FILE, "").draw, ())


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ('reason = "It slices', 'cause = "It slices', "known.toml:9: unknown key 'cause' of an entry"),
        ('target = "some-client"', 'targets = "some-client"', "known.toml:2: unknown key 'targets' at the top"),
        ('invariant = "wire/refuses"', "", "known.toml:4: an entry of [[deviation]] needs 'invariant'"),
        ('target = "some-client"', "", "known.toml:4: an entry of [[deviation]] needs 'target'"),
        ("expires = 2027-06-30\n", "", "known.toml:16: an entry of [[flaky]] needs 'expires'"),
        ('shape = ["accepted", "truncated", "bytes"]\n', "", "known.toml:4: an entry of [[deviation]] needs 'shape'"),
        ('["accepted", "truncated", "bytes"]', '"accepted"', "known.toml:8: shape must be a list of strings, got"),
        ('["accepted", "truncated", "bytes"]', '["accepted", 1]', "known.toml:8: shape must be a list of strings"),
        ('["accepted", "truncated", "bytes"]', "[]", "known.toml:8: shape must not be empty"),
        ("expires = 2027-01-01", 'expires = "soon"', "known.toml:11: expires must be a date (2027-01-01)"),
        ("expires = 2027-01-01", "expires = 2027-01-01T00:00:00", "known.toml:11: expires must be a date"),
        ("expires = 2027-01-01", "seldom = 1", "known.toml:11: seldom must be true or false, got 1"),
        ('target = "some-client"', 'target = "some-client"\nseed = true', "known.toml:3: seed must be an integer"),
        ('target = "some-client"', 'target = "some-client"\ncases = 0', "known.toml:3: cases must be a positive"),
        ('"3.0.0-3.0.12"', '"3.x"', "known.toml:7: versions (of the target): invalid version '3.x'"),
        ('"3.0.0-3.0.12"', '"3.1-3.0"', "known.toml:7: versions (of the target): '3.1-3.0' ends before it begins"),
        ('["wire/prefixes"]', '"wire/prefixes"', "known.toml:5: checks must be a list of strings, got 'wire/prefixes'"),
        ('["wire/prefixes"]', "[]", "known.toml:5: checks must not be empty"),
        ('"wire/refuses"', '"wire/*"', "known.toml:6: invariant must name exactly one"),
        ('invariant = "wire/refuses"', 'invariant = ""', "known.toml:6: invariant must name exactly one"),
        (SLICES, "TODO: why?", "known.toml:9: reason must be written"),
        (SLICES, "broken", "known.toml:9: reason must explain"),
        ("https://github.com/some/client/issues/12", "TODO", "known.toml:10: link must be written"),
        ("https://github.com/some/client/issues/12", "https://example.com/1", "known.toml:10: link must be written"),
        ("https://github.com/some/client/issues/12", "see the tracker", "known.toml:10: link must be the https://"),
        ("https://github.com/some/client/issues/12", "https://github.com", "known.toml:10: link must be the https://"),
        ('HeartbeatRequest = "0-4"', 'HeartbeatRequest = "4-0"', "known.toml:13: where.HeartbeatRequest: '4-0' ends"),
        ('HeartbeatRequest = "0-4"', "HeartbeatRequest = 4", None),
        ('HeartbeatRequest = "0-4"', "HeartbeatRequest = [4]", "known.toml:13: where.HeartbeatRequest: invalid"),
        ('{ "Heartbeat*" = "*" }', "{ }", "known.toml:23: where must name a subject"),
        ('{ "Heartbeat*" = "*" }', '"*"', "known.toml:23: where must be a table, got '*'"),
        ("expires = 2027-01-01", 'why = "("', "known.toml:11: why is not a regular expression"),
    ],
)
def test_what_is_wrong_is_told_with_path_and_line(old: str, new: str, wanted: str | None) -> None:
    assert old in FILE
    text = FILE.replace(old, new, 1)
    if wanted is None:
        assert parse(text, "known.toml")
        return
    found = troubles(text)
    assert any(each.startswith(wanted) for each in found), found


def test_all_that_is_wrong_is_told_at_once() -> None:
    found = troubles(FILE.replace('"wire/refuses"', '"*"').replace("2027-06-30", '"never"').replace('"all"', '"none"'))
    assert [each.split(" ")[0] for each in found] == ["known.toml:6:", "known.toml:22:"]


def test_what_is_no_toml_is_told_with_its_line() -> None:
    (found,) = troubles("target = 'a'\n\nfoo = = 1\n")
    assert found.startswith("known.toml:3: not valid TOML")


def test_a_draft_may_be_left_to_be_written() -> None:
    text = FILE.replace(SLICES, "TODO: why is it expected?")
    assert parse(text, "known.toml", draft=True).entries[0].reason.startswith("TODO")


def test_headings_in_a_text_of_several_lines_are_no_headings() -> None:
    text = "a = \"\"\"\n[[deviation]]\n\"\"\"\n[[ deviation ]]\nb = '''\n[[flaky]]\n'''\n[[flaky]]\n"
    assert headings(text) == [("deviation", 4), ("flaky", 8)]


# ---- duplicates and overlaps


@pytest.mark.parametrize(
    ("changes", "meet"),
    [
        ({}, True),
        ({"versions": "3.0.12+"}, True),
        ({"versions": "3.0.13+"}, False),
        ({"versions": "all"}, True),
        ({"checks": ("wire/damage",)}, True),
        ({"invariant": "survives"}, False),
        ({"target": "kio"}, False),
        ({"shape": ("accepted", "truncated", "string")}, False),
        ({"shape": ("accepted", "*", "*")}, True),
        ({"shape": ("accepted", "truncated")}, False),
        ({"shape": None, "kind": "flaky"}, True),
        ({"where": {"HeartbeatRequest": ((5, None),)}}, False),
        ({"where": {"HeartbeatRequest": ((4, None),)}}, True),
        ({"where": {"*": ((9, 9),)}}, True),
        ({"where": {"Sync*": ((0, None),)}}, False),
        ({"where": {"HeartbeatRequest": ()}}, False),
    ],
)
def test_entries_that_may_mean_the_same_failure_are_refused(changes: dict[str, Any], meet: bool) -> None:
    one, two = entry(), entry(**changes)
    assert overlap(one, two) is overlap(two, one) is meet
    assert bool(overlaps([one, two])) is meet


def test_a_duplicate_is_refused_with_both_lines() -> None:
    block = FILE[FILE.index("[[deviation]]") : FILE.index("[[flaky]]")]
    (found,) = troubles(FILE + block)
    assert found.startswith("known.toml:24: it may match the same failure as known.toml:4")


GLOBS = st.text("ab*", min_size=1, max_size=5)


TEXTS = ["".join(letters) for size in range(5) for letters in product("ab", repeat=size)]


@given(one=GLOBS, other=GLOBS)
@settings(max_examples=300)
def test_two_globs_meet_where_there_is_a_text_for_both(one: str, other: str) -> None:
    assert globs_overlap(one, other) == globs_overlap(other, one)
    if any(fits(one, text) and fits(other, text) for text in TEXTS):
        assert globs_overlap(one, other)


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [("a*", "*b", True), ("a*", "b*", False), ("*a", "*b", False), ("a*c", "ab*", True), ("a*", "a", True),
     ("x*y*z", "x*w*z", True), ("ab*", "a", False), ("*", "", True), ("a.c", "abc", False)],
)  # fmt: skip
def test_globs_that_meet_and_that_do_not(one: str, other: str, meet: bool) -> None:
    assert globs_overlap(one, other) is globs_overlap(other, one) is meet


# ---- matching


def test_the_same_failure_is_meant_in_the_places_that_are_named() -> None:
    found, one = failure(), entry()
    assert found.places == {("HeartbeatRequest", v) for v in (0, 1, 4)} | {("JoinGroupRequest", 6)}
    assert one.matches(found)
    assert all(one.covers(place) for place in found.places)
    assert not one.covers(("JoinGroupRequest", 4)) and not one.covers(("SyncGroupRequest", 0))
    assert not one.covers(("HeartbeatRequest", None))


@pytest.mark.parametrize(
    "changes",
    [
        {"target": "kio"}, {"version": "3.0.13"}, {"version": "2.9.9"},
        {"invariant": "wire/decodes"}, {"shape": ["accepted", "truncated"]}, {"shape": ["accepted", "length", "bytes"]},
        {"shape": ["accepted", "truncated", "bytes", "more"]},
    ],
)  # fmt: skip
def test_another_failure_is_not_meant(changes: dict[str, Any]) -> None:
    assert not entry().matches(failure(**changes))


def test_the_same_failure_may_be_shown_by_another_check() -> None:
    assert entry().matches(failure(checks=["wire/damage", "wire/vectors"]))


def test_of_what_was_not_shrunk_the_shape_may_be_a_beginning() -> None:
    begun = failure(shape=["accepted", "truncated"])
    assert not entry().matches(begun) and entry().matches(replace(begun, whole=False))
    assert not entry().matches(replace(failure(shape=["accepted", "length"]), whole=False))


def test_why_narrows_what_is_meant() -> None:
    assert entry(why=r"cut off; it was accepted$").matches(failure())
    assert not entry(why=r"^cut off").matches(failure())
    assert entry(why="^never").same_invariant(failure())


def test_words_of_a_shape_may_hold_a_wildcard() -> None:
    assert entry(shape=("accepted", "*", "b*s")).matches(failure())
    assert not entry(shape=("accepted", "*")).matches(failure())
    assert fits("a*c", "abc") and fits("*", "") and not fits("a.c", "abc") and fits("[x]", "[x]")


def test_places_without_versions() -> None:
    one = entry(where={"sticky": (), "range": ()})
    assert one.exact_places == {("sticky", None), ("range", None)}
    assert one.matches(failure(where={"sticky": ""}))
    assert one.covers(("sticky", None)) and not one.covers(("sticky", 0))


def test_exact_places_are_those_that_are_named_one_by_one() -> None:
    one = entry(where={"A": ((0, 1), (4, 4)), "B": ((6, None),), "C*": ((0, 2),), "d": ()})
    assert one.exact_places == {("A", 0), ("A", 1), ("A", 4), ("d", None)}
    assert one.open_keys == ("B", "C*")


@pytest.mark.parametrize(
    ("version", "versions", "there"),
    [
        ("3.0.12", "3.0.12", True), ("3.0.12", "3.0.0-3.0.11", False), ("3.0.12", "3.0.0-3.0.12", True),
        ("3.0.9", "3.0.10+", False), ("3.1.0", "3.0.10+", True), ("3.0.12", "2.0.2, 3.0.12+", True),
        ("4.0.0rc1", "4.0.0+", False), ("4.0.0rc1", "3.9.2-4.0.0", True), ("4.0.0+local", "4.0.0", True),
        ("v1.21.4", "1.21.4", True), ("0.10.2.2", "0.10.2.0-0.10.2.3", True), ("HEAD", "1.0+", False),
        ("HEAD", "all", True), ("", "all", True),
    ],
)  # fmt: skip
def test_versions_of_a_target(version: str, versions: str, there: bool) -> None:
    assert is_release_in(version, versions) is there


def test_a_name_may_end_in_a_release() -> None:
    assert base("kafka-python@2.3.0", "2.3.0") == "kafka-python"
    assert base("java:kafka-clients:3.9.2", "3.9.2") == "java:kafka-clients"
    assert base("kafka:4.4.0?nodes=3&from=4.0.2", "4.4.0") == "kafka"
    assert base("cmd:./testee --fast", "1") == "cmd:./testee --fast"
    assert entry(target="kafka-python", versions="all").applies_to("kafka-python@2.3.0", "2.3.0")
    assert not entry(target="kafka-python", versions="3.0+").applies_to("kafka-python@2.3.0", "2.3.0")
    assert entry(target="kafka-python@2.3.0", versions="all").applies_to("kafka-python@2.3.0", "2.3.0")


def test_an_entry_expires_after_its_last_day() -> None:
    one = entry(expires=date(2027, 1, 1))
    assert not one.expired(date(2027, 1, 1)) and one.expired(date(2027, 1, 2))
    assert not entry(expires=None).expired(date(2999, 1, 1))


def test_versions_of_a_message() -> None:
    assert places_in("0-2, 4") == ((0, 2), (4, 4)) and numbers(places_in("0-2, 4")) == [0, 1, 2, 4]
    assert places_in("") == () and numbers(()) == [None]
    assert places_in("*") == ((0, None),) and places_in("6+") == ((6, None),)
    for wrong in ("a", "1-", "-1", "1..2", "2-1", "١"):
        with pytest.raises(ValueError, match=r"versions|ends before"):
            places_in(wrong)
    with pytest.raises(ValueError, match="invalid version"):
        releases_in("latest")


def test_what_the_page_shows_is_taken() -> None:
    page = (files("kipcheck.conformance") / "docs" / "known.md").read_text("utf-8")
    shown, flaky, profile = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (one,) = parse(shown, "known.md").entries
    assert one.exact_places == {("JoinGroupRequest", n) for n in range(6)} | {("SyncGroupRequest", n) for n in range(4)}
    assert one.matches_shape(("accepted", "length", "bytes"), "JoinGroupRequest v0: length 1 runs 1 past the end")
    assert [each.kind for each in parse(f'target = "odd"\n{flaky}', "known.md").entries] == ["flaky"]
    assert tomllib.loads(profile)["roles"] == ["codec", "leader"]
