"""Which release is played for a client, and what of it reaches reports and replays."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from kipcheck.conformance.core.files.releases_table import named
from kipcheck.conformance.core.ledger import Target as TargetLine, lines
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.engine.execution.replay import replay
from kipcheck.conformance.engine.execution.run import run
from kipcheck.conformance.engine.execution.selection import Options
from kipcheck.conformance.live.client import doctor, target as live_target
from kipcheck.conformance.live.client.consumer import Consumer
from kipcheck.conformance.live.client.consumer_connections import Channel
from kipcheck.conformance.live.client.in_process import Consumers
from kipcheck.conformance.live.client.played_release import newest_with, played
from kipcheck.conformance.live.client.target import LiveClient
from kipcheck.conformance.tests.support.loops import for_each

LAST: Final = named("last-before-4")
OLD: Final[Mapping[str, int]] = {
    "JoinGroup": 0, "SyncGroup": 0, "Heartbeat": 0, "LeaveGroup": 0, "OffsetCommit": 1, "OffsetFetch": 1, "Fetch": 1,
    "Metadata": 0,
}  # fmt: skip


class Unasking(Consumer):
    """It never asks which versions there are."""

    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return {} if api == "ApiVersions" else await super().ask(api, body)


class OldConsumer(Unasking):
    def version(self, api: str) -> int:
        return OLD.get(api, super().version(api))


class OfZookeeper(OldConsumer):
    """Its offsets are in ZooKeeper."""

    def version(self, api: str) -> int:
        return 0 if api.startswith("Offset") else super().version(api)


class OldButAsking(Consumer):
    """It asks, and does not use what it is answered."""

    def version(self, api: str) -> int:
        return OLD.get(api, super().version(api))


class OfNoRelease(OldConsumer):
    def version(self, api: str) -> int:
        return 99 if api == "Heartbeat" else super().version(api)

    def written(self, api: str, version: int, correlation: int, body: Mapping[str, Any]) -> bytes:
        made = super().written(api, min(version, 4), correlation, body)
        return made[:2] + version.to_bytes(2, "big") + made[4:]

    def known(self, api: str, version: int, body: Mapping[str, Any]) -> dict[str, Any]:
        return super().known(api, min(version, 4), body)


@for_each(
    (
        (Consumer, NEWEST), (Unasking, NEWEST), (OldConsumer, LAST), (OfZookeeper, LAST), (OldButAsking, LAST),
        (OfNoRelease, NEWEST),
    )
)  # fmt: skip
def test_the_newest_release_that_the_versions_of_a_client_fit(made: type[Consumer], release: str) -> None:
    found = asyncio.run(played(Consumers(made)))
    assert (found.release, found.broken, bool(found.unserved)) == (release, "", release == LAST)


def test_a_program_that_is_no_consumer_is_not_started_for_each_script() -> None:
    class Failing(Unasking):
        async def join(self) -> None:
            raise RuntimeError("no")

    found = asyncio.run(played(Consumers(Failing)))
    assert "ended with code 1 before it was a member of the group" in found.broken
    assert "RuntimeError: no" in found.broken


@for_each(
    (
        ({("JoinGroup", 0), ("ListOffsets", 0)}, LAST), ({("JoinGroup", 0), ("ListOffsets", 1)}, NEWEST),
        ({("Fetch", 3), ("Fetch", 12)}, LAST), ({("Fetch", 18)}, NEWEST), ({("Fetch", 3), ("Fetch", 18)}, NEWEST),
        ({("NoSuchThing", 0)}, NEWEST), (set(), NEWEST),
    )
)  # fmt: skip
def test_the_release_is_that_of_all_versions_together(versions: set[tuple[str, int]], release: str) -> None:
    assert newest_with(versions) == release


# -- where it is named


def client(made: type[Consumer]) -> LiveClient:
    return LiveClient("client:old", Consumers(made), "0", frozenset(), command="client:old")


def test_a_session_has_the_broker_of_that_release_and_names_it() -> None:
    old = client(OldConsumer)
    with old.open("apache", Role.CLIENT) as session:
        assert session.info.played == LAST
    with old.open("apache@2.8.2", Role.CLIENT) as session:
        assert session.info.played == "2.8.2"


@pytest.mark.parametrize(("states", "version"), [("4.2.0", "4.2.0"), ("v1.18-rc1", "v1.18-rc1"), ("unknown", "0")])
def test_a_program_has_the_version_that_it_states(states: str, version: str) -> None:
    class Stating(Consumer):
        def version(self, api: str) -> int:
            return 3 if api == "ApiVersions" else super().version(api)

        async def _ask(self, channel: Channel, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
            software = {"clientSoftwareName": "its-library", "clientSoftwareVersion": states}
            return await super()._ask(channel, api, software if api == "ApiVersions" else body)

    with client(Stating).open("apache", Role.CLIENT) as session:
        assert session.info.version == version


def test_the_doctor_names_it_and_sees_what_a_run_sees() -> None:
    lines = {each.id: each for each in doctor.examine(client(OldConsumer), "apache")}
    assert lines["fetches"].state == "ok"
    why = f"since Kafka {NEWEST} does not serve "
    assert lines["release"].found.startswith(f"Kafka {LAST}, {why}"), lines["release"]
    assert "Fetch 1" in lines["release"].found


@pytest.mark.timeout(120)
def test_reports_and_replays_know_the_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(OldConsumer):
        """It joins under no id whenever it joins."""

        async def join(self) -> None:
            self.member = ""
            await super().join()

    made = client(Forgetful)
    found = run_with(made, tmp_path, monkeypatch)
    (line,) = [each for each in lines(found) if isinstance(each, TargetLine)]
    assert line.played == LAST
    for name in ("report.html", "summary.md"):
        assert f"its broker was that of Kafka {LAST}" in (tmp_path / name).read_text("utf-8"), name
    assert json.loads((tmp_path / "results.json").read_text("utf-8"))["targets"][0]["played"] == LAST
    failure = next(iter(sorted((tmp_path / "failures").glob("*.json"))))
    assert json.loads(failure.read_text("utf-8"))["played"] == LAST
    editions: list[str] = []
    opened = live_target.served

    def served(name: str) -> Any:
        editions.append(name)
        return opened(name)

    monkeypatch.setattr(live_target, "served", served)
    assert replay(failure, trusted=True).exit_code == 1
    assert {*editions} == {f"apache@{LAST}"}, "no program is started to find the release again"


def run_with(made: LiveClient, out: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The ledger of a run of a few scripts."""
    for module in ("run", "replay"):
        monkeypatch.setattr(f"kipcheck.conformance.engine.execution.{module}.target_of", lambda name: made)
    scripts = ("rebalance; stop",)
    options = Options(targets=("client:old",), checks=("client/groups",), scripts=scripts, out=out, workers=1)
    outcome = run(options)
    assert outcome.ledger is not None, outcome.why
    return outcome.ledger
