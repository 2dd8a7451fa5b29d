"""An application of a release in a group whose other members are models, on kipcheck's own broker."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.edition import edition as edition_of
from kipcheck.conformance.core.values.history import Unsupported
from kipcheck.conformance.live.members import application, session, streams
from kipcheck.conformance.live.members.group import Cluster, Group
from kipcheck.conformance.live.members.scripted_cluster import scripted
from kipcheck.conformance.live.members.streams import SIZES
from kipcheck.conformance.protocols.streams import one_application
from kipcheck.conformance.protocols.streams.blobs import latest, read_subscription
from kipcheck.conformance.protocols.streams.model import release_members
from kipcheck.conformance.protocols.streams.model.members import FUTURE, Joining, Share, TaskId
from kipcheck.conformance.protocols.streams.mutants.bases import AlteredMember, info_of
from kipcheck.conformance.protocols.streams.ops import OPERATIONS, Formed, Refused, Rests, Start
from kipcheck.conformance.protocols.streams.rolling import Pair, pairs_of_streams_groups
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import NotPlayed, Unavailable
from kipcheck.conformance.tests.live.members.test_members import _history, broken, events, played

OWN = "3.9.2"
EDITION = f"apache@{OWN}"


class Models(application.ApplicationScript):
    """All members are models, also those of the application's release."""

    def limit_of_script(self, check: str, events: list[Any]) -> str | None:
        return None

    def _is_own(self, start: Start) -> bool:
        return False


def played_by_models(text: str) -> Any:
    steps = tuple(OPERATIONS.parse_shorthand(text))
    case = Case("streams/beside", EDITION, Role.OPERATOR_TOOL, steps)

    async def play() -> Any:
        async with scripted(edition_of(EDITION), SIZES) as cluster:
            group = Group(cluster)
            try:
                return await Models(group, Path(), own=edition_of(EDITION)).played(case)
            finally:
                await group.close()

    return _history(case, "models", asyncio.run(play()))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group without processes comes to rest at once."""
    monkeypatch.setattr(session, "QUIET_S", 0.3)


@pytest.mark.usefixtures("quick")
def test_models_meet_in_the_lowest_version_and_come_back_when_their_session_has_ended() -> None:
    history = played_by_models(f"start a {OWN}; settle; start b {FUTURE}; settle; expire a; settle")
    assert broken(history) == {}
    found = events(history)
    used = [{each.member: each.used for each in rest.members} for rest in found if isinstance(rest, Rests)]
    assert used == [{"a": 11}, {"a": 11, "b": 11}, {"a": 11, "b": 11}]
    generations = [each.generation for each in found if isinstance(each, Rests)]
    assert generations == sorted({*generations}), "a joined again as a new member"
    versions = [
        {read_subscription(cast(bytes, each.data)).used for each in one.members}
        for one in found
        if isinstance(one, Formed)
    ]
    assert {11, 12} in versions and versions[-1] == {11}


class GivesAllToEach(AlteredMember):
    """A leader that gives all tasks to the members that it gives one."""

    def altered_shares(self, members: tuple[Joining, ...], shares: Mapping[str, Share]) -> Mapping[str, Share]:
        given = {id: share for id, share in shares.items() if share.partitions}
        partitions = tuple(sorted(each for share in given.values() for each in share.partitions))
        active = tuple(TaskId(0, number) for _, number in partitions)
        return {
            id: Share(partitions, replace(info_of(share), active=active)) if id in given else share
            for id, share in shares.items()
        }


@pytest.mark.usefixtures("quick")
def test_a_leader_that_gives_a_task_to_two_members_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    made = release_members.owed_beside
    monkeypatch.setattr(application, "owed_beside", lambda settings, edition: GivesAllToEach(made(settings, edition)))
    history = played_by_models(f"start a {OWN}; start b {OWN}; settle")
    assert broken(history).keys() >= {"streams/one-owner"}


@pytest.mark.usefixtures("quick")
def test_a_model_refuses_an_upgrade_from_that_its_release_does_not_have() -> None:
    history = played_by_models(f"start a {OWN}<9.9; settle")
    assert broken(history) == {} and [each.member for each in events(history) if isinstance(each, Refused)] == ["a"]


def test_the_target_plays_scripts_with_a_member_of_its_release_in_its_edition() -> None:
    found = registry.target(f"client:streams@{OWN}")
    assert found.name == f"client:streams@{OWN}"
    with pytest.raises(NotPlayed), found.open(EDITION, Role.CLIENT):
        pass
    for edition in ("kip-268", "apache@2.3.1"):
        with pytest.raises(Unavailable, match=f"use --edition {EDITION} or apache$"):
            found.open(edition, Role.OPERATOR_TOOL).__enter__()
    script = application.ApplicationScript(Group(Cluster(0)), Path(), own=edition_of(EDITION))
    steps = tuple(OPERATIONS.parse_shorthand("start a 2.8.2; start b future; settle"))
    answers = asyncio.run(script.played(Case("test", EDITION, Role.OPERATOR_TOOL, steps)))
    assert [each.limit for each in answers if isinstance(each, Unsupported)] == ["alone"] * 3
    steps = tuple(OPERATIONS.parse_shorthand("start a own; settle"))
    answers = asyncio.run(script.played(Case("streams/mixed", EDITION, Role.OPERATOR_TOOL, steps)))
    assert [each.limit for each in answers if isinstance(each, Unsupported)] == ["inside"] * 2


def test_streams_groups_are_of_brokers_and_members_that_have_them() -> None:
    with pytest.raises(LookupError, match=r"a broker of 3\.9\.2 has no streams groups: use 4\.2\.0 or later"):
        registry.target("kafka-streams:3.9.2?protocol=streams")
    script = streams.StreamsGroupScript(Group(Cluster(0)), Path())
    starts = [Start("a", "3.9.2"), Start("a", "4.4.0", "4.3"), Start("a", "4.4.0")]
    assert [script.limit_of(each) for each in starts] == ["streams-groups", "streams-groups", None]
    assert next(pairs_of_streams_groups()) == Pair("4.2.1", "4.3.1")


def test_an_application_meets_each_metadata_version_that_it_can_meet() -> None:
    """Older and newer ones by one bounce, others by two, and the future."""
    for own, others in (
        ("2.3.1", {"future", "2.0.1", "1.1.1", "0.10.0.1", "2.4.1", "2.5.1", "2.7.2"}),
        ("3.9.2", {"future", "3.1.2", "2.8.2", "2.7.2", "2.3.1", "2.0.1", "1.1.1"}),
        ("4.4.0", {"future", "3.1.2", "2.8.2", "2.7.2"}),
    ):
        starts = [
            each
            for text, _ in one_application.scripts(f"apache@{own}")
            for each in map(OPERATIONS.event_of, OPERATIONS.parse_shorthand(text))
            if isinstance(each, Start)
        ]
        assert {each.release for each in starts} - {"own"} == others
        assert latest(own) not in {latest(each) for each in others}


APP = "sh -c 'exit 3' {bootstrap} {group} {topics} {client_id} {state} {upgrade_from?}"


def test_a_command_with_upgrade_from_starts_an_application() -> None:
    found = registry.target(f"client:{APP}")
    with pytest.raises(NotPlayed), found.open(EDITION, Role.CLIENT):
        pass
    with pytest.raises(LookupError, match=r"lacks \{client_id\}, \{state\}, which an application of Streams needs"):
        registry.target("client:./app {bootstrap} {group} {topics} {upgrade_from}")
    with found.open(EDITION, Role.OPERATOR_TOOL) as opened:
        steps = tuple(OPERATIONS.parse_shorthand("start a own; settle"))
        case = Case("streams/beside", EDITION, Role.OPERATOR_TOOL, steps)
        (answers,) = opened.run([case])
    assert [each.release for each in events(_history(case, found.name, answers)) if isinstance(each, Refused)] == [OWN]


def test_words_of_a_command_have_the_settings_of_a_process() -> None:
    given = {"KIPCHECK_BOOTSTRAP": "h:1", "KIPCHECK_STATE": "/s"}
    assert application.words("./app {bootstrap} --state={state} --from={upgrade_from?} -x", given) == [
        "./app", "h:1", "--state=/s", "-x",
    ]  # fmt: skip
    assert application.words("./app '{upgrade_from}'", {**given, "KIPCHECK_UPGRADE_FROM": "2.3"}) == ["./app", "2.3"]


@pytest.mark.jars
@pytest.mark.timeout(240)
def test_a_released_leader_answers_a_member_of_the_future() -> None:
    """268-31: it assigns in its own version, and starts no task twice."""
    (history,) = played(
        f"client:streams@{OWN}", EDITION, "streams/beside", [f"start a own; settle; start b {FUTURE}; settle"]
    )
    assert broken(history) == {}
    last = events(history)[-1]
    assert isinstance(last, Rests) and {each.member: each.used for each in last.members} == {"a": 11, "b": 11}


@pytest.mark.jars
@pytest.mark.timeout(240)
def test_two_releases_share_the_tasks_of_a_streams_group() -> None:
    text = "start a 4.3.1; settle; start b 4.4.0; settle"
    (history,) = played("kafka-streams:4.4.0?protocol=streams", "apache", "streams/heartbeats", [text])
    assert broken(history) == {}
    last = events(history)[-1]
    assert isinstance(last, Rests) and sorted(len(each.active) for each in last.members) == [1, 2]
