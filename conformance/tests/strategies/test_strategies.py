"""What people import: families of values and bytes, with versions as one asks for them."""

import subprocess
import sys
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings, strategies as st

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.tests.support.loops import some_by_default
from kipcheck.conformance.wire import Layout, layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.framing import decode_request, decode_response, unframe
from kipcheck.conformance.wire.schema import messages, spec, stable_versions
from kipcheck.strategies import (
    Body,
    Damaged,
    Frame,
    api_versions_streams,
    assignment_streams,
    bodies,
    damaged,
    frames,
    join_group_streams,
    subscription_streams,
    values,
    version_mixes,
)
from kipcheck.strategies.damage import Outcome
from kipcheck.strategies.messages import layouts
from kipcheck.strategies.typical_values import EMBEDDED, NUMBERS, TEXTS

few = settings(max_examples=25, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
MESSAGES = messages(APACHE)
FRAMED = [each for each in MESSAGES if spec(APACHE, each).kind in ("request", "response")]


@settings(few, max_examples=150)
@given(data=st.data())
@pytest.mark.integration
def test_bodies_of_every_message_decode_to_the_value_behind_them(data: st.DataObject) -> None:
    body: Body = data.draw(bodies(data.draw(st.sampled_from(MESSAGES))))
    decoded = layout(body.edition, body.message, body.version).decode(body.data)
    assert decoded == body.value and [*decoded] == [*body.value]  # in the order of the wire


@few
@given(values("JoinGroupRequest", versions=3), values("JoinGroupRequest", versions=range(5, 7)))
def test_values_are_of_the_versions_asked_for(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert "groupInstanceId" not in old and "groupInstanceId" in new
    assert layout("apache", "JoinGroupRequest", 3).decode(layout("apache", "JoinGroupRequest", 3).encode(old)) == old


@few
@given(bodies("JoinGroupRequest", versions=5, edition="kip-429"), bodies("JoinGroupRequest", edition="apache@2.2.2"))
def test_an_edition_has_its_own_layouts(draft: Body, release: Body) -> None:
    assert draft.value.keys() == {*layout("kip-429", "JoinGroupRequest", 5).names}
    assert release.version <= 4 and release.edition == "apache@2.2.2"


@pytest.mark.integration
@settings(few, max_examples=60)
@given(data=st.data())
def test_frames_have_a_size_a_header_and_a_body(data: st.DataObject) -> None:
    frame: Frame = data.draw(frames(data.draw(st.sampled_from(FRAMED))))
    payload, rest = unframe(frame.data)
    assert not rest and payload.endswith(frame.body.data)
    body = frame.body
    if body.message.endswith("Request"):
        request = decode_request(payload)
        assert (request.message, request.version, request.header, request.body) == (
            body.message, body.version, frame.header, body.value,
        )  # fmt: skip
    else:
        response = decode_response(payload, "apache", body.message, body.version)
        assert (response.header, response.body) == (frame.header, body.value)


@few
@given(damaged("HeartbeatRequest"))
def test_damage_comes_with_what_is_expected_of_a_reader(case: Damaged) -> None:
    try:
        found = case.body.layout.decode(case.data)
    except Refused:
        assert case.damage.outcome is not Outcome.ACCEPT
    else:
        assert case.damage.outcome is not Outcome.REFUSE
        assert case.damage.value in (None, found)


@few
@given(damaged("JoinGroupRequest", versions=range(6, 10), kinds=["unknown-tag", "padded-varint"]))
def test_damage_is_of_the_kinds_asked_for(case: Damaged) -> None:
    assert case.damage.kind in ("unknown-tag", "padded-varint") and case.data != case.body.data


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.integration
def test_damage_shrinks_to_the_least_body_that_has_a_place_for_it(seed: int) -> None:
    """Wherever the search begins: member ids have names that are tried often, none of which may stop the shrinker."""
    heartbeats = damaged("HeartbeatRequest", kinds=["text"])
    case = find(heartbeats, lambda _: True, settings=settings(few, max_examples=30), random=Random(seed))
    assert (case.body.version, case.damage.path, case.data) == (0, "memberId", b"\0\0\0\0\0\0\0\1\xff")


@pytest.mark.parametrize(
    "wrong, complaint",
    [
        (lambda: values("NoSuch"), "NoSuch"),
        (lambda: bodies("JoinGroupRequest", versions=10), "no version 10"),
        (lambda: bodies("JoinGroupRequest", versions=()), "no version of JoinGroupRequest"),
        (lambda: bodies("JoinGroupRequest", edition="kip-1"), "kip-1"),
        (lambda: frames("ConsumerProtocolSubscription"), "no frame"),
        (lambda: damaged("JoinGroupRequest", kinds=["rust"]), "unknown kind of damage 'rust'; known: prefix"),
        (lambda: damaged("JoinGroupRequest", kinds=[]), "no kind"),
        (lambda: version_mixes("JoinGroupRequest", releases="0.10.0.9"), "no release"),
        (lambda: api_versions_streams(versions=5, releases="3.9.2"), "supports ApiVersions at"),
    ],
)
def test_what_there_is_not_is_told_at_once(wrong: Any, complaint: str) -> None:
    with pytest.raises(LookupError, match=complaint):
        wrong()


# Groups of several releases


@few
@given(version_mixes(members=(2, 5)))
def test_members_use_what_their_release_speaks(members: list[dict[str, Any]]) -> None:
    assert 2 <= len(members) <= 5
    for member in members:
        for message, version in member["versions"].items():
            span = stable_versions(message, member["release"])
            assert span is not None and version in span


@few
@given(version_mixes(["JoinGroupRequest", "ShareGroupHeartbeatRequest"], releases="3.0.0-4.0.0, 4.1.0"))
def test_releases_can_be_limited_and_lack_messages(members: list[dict[str, Any]]) -> None:
    for member in members:
        release = Release.parse(member["release"])
        assert Release.parse("3.0.0") <= release <= Release.parse("4.1.0")
        assert ("ShareGroupHeartbeatRequest" in member["versions"]) == (str(release) == "4.1.0")


STREAMS: dict[str, tuple[st.SearchStrategy[list[Body]], str]] = {
    "subscriptions": (subscription_streams(), "ConsumerProtocolSubscription"),
    "assignments": (assignment_streams(), "ConsumerProtocolAssignment"),
    "joins": (join_group_streams(), "JoinGroupRequest"),
    "api versions": (api_versions_streams(), "ApiVersionsResponse"),
}


@pytest.mark.parametrize(
    "stream, message", some_by_default([pytest.param(*each, id=name) for name, each in STREAMS.items()], 1)
)
def test_streams_are_of_one_message_and_any_versions(stream: st.SearchStrategy[list[Body]], message: str) -> None:
    seen: set[int] = set()
    mixed = []

    @few
    @given(stream)
    def drawn(group: list[Body]) -> None:
        assert 2 <= len(group) <= 4 and {body.message for body in group} == {message}
        for body in group:
            assert body.layout.decode(body.data) == body.value
            seen.add(body.version)
        mixed.append(len({body.version for body in group}) > 1)

    drawn()
    assert any(mixed) and len(seen) > 2


@pytest.mark.integration
def test_members_of_streams_may_support_more_than_they_use_and_come_from_the_future() -> None:
    def user_data(group: list[Body]) -> list[tuple[int, int]]:
        found = []
        for body in group:
            data = body.value["userData"] or b""
            for version in (3, 11, 12):
                try:
                    value = layout("apache", "SubscriptionInfo", version).decode(data)
                except Refused:
                    continue
                found.append((version, value["latestSupportedVersion"]))
        return found

    tries = settings(few, max_examples=3_000, phases=[Phase.generate])
    find(subscription_streams(), lambda group: any(used < latest for used, latest in user_data(group)), settings=tries)
    find(subscription_streams(), lambda group: any(used == 12 for used, _ in user_data(group)), settings=tries)


@pytest.mark.integration
@few
@given(api_versions_streams(releases="3.9.2"))
def test_brokers_announce_what_their_release_has(group: list[Body]) -> None:
    for body in group:
        ranges = {each["apiKey"]: (each["minVersion"], each["maxVersion"]) for each in body.value["apiKeys"]}
        assert ranges[11] == (0, 9) and ranges[18] == (0, 4) and 62 not in ranges


# Lazy imports


def modules_after(program: str) -> set[str]:
    code = f"{program}\nimport sys\nprint(' '.join(sys.modules))"
    return {*subprocess.check_output([sys.executable, "-c", code], text=True, timeout=120).split()}


def test_nodes_do_without_hypothesis() -> None:
    loaded = modules_after(
        "from kipcheck import strategies\n"
        "from kipcheck.strategies import body, compiled, damage, messages, mutate, nodes, parse\n"
        "from kipcheck.strategies import Body, reduce, versions\n"
        "from kipcheck import layout\n"
        "from random import Random\n"
        "node = messages.from_layout(layout('apache', 'JoinGroupRequest', 9))\n"
        "reduce.reduce(node, compiled.compiled(node)(Random(1)), bool)\n"
    )
    assert "kipcheck.strategies.reduce" in loaded and "hypothesis" not in loaded


def test_strategies_load_hypothesis_when_they_are_asked_for() -> None:
    assert "hypothesis" not in modules_after("from kipcheck import strategies; dir(strategies)")
    assert "hypothesis" in modules_after("from kipcheck.strategies import values")


def test_a_name_that_there_is_not() -> None:
    from kipcheck import strategies

    with pytest.raises(AttributeError, match="no attribute 'vlaues'"):
        strategies.vlaues  # noqa: B018
    assert "values" in dir(strategies)


def test_what_is_familiar_names_fields_that_there_are() -> None:
    paths, names = set(), set()
    for message in MESSAGES:
        for one in layouts("apache", message):
            for path in _paths(one):
                paths |= {".".join(path[-2:]), ".".join((message, *path))}
                names.add(path[-1])
    for table in (TEXTS, NUMBERS):
        assert {key for key in table if key not in paths | names} == set()
    assert {key for key in EMBEDDED if key not in paths} == set()
    assert {inner for result in EMBEDDED.values() for inner in result} <= {*MESSAGES}


def _paths(one: Layout, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for slot in one.slots:
        yield (*path, slot.name)
        if slot.item is not None:
            yield from _paths(slot.item, (*path, slot.name))
