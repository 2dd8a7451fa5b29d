"""The command ``inspect`` on released brokers with released members: what they describe is read, and sound."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import kafka  # type: ignore[import-untyped]
import pytest
from kafka.admin import NewTopic  # type: ignore[import-untyped]

from kipcheck.conformance.clients.java.programs import coordinates
from kipcheck.conformance.live.client.built_in import Settings, command
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import maven
from kipcheck.conformance.tests.support.kafka_broker import running
from kipcheck.conformance.tests.support.loops import for_each

NEWEST, CLASSIC, WITHOUT_SUBSCRIPTIONS = "4.3.1", "3.9.2", "2.3.1"
APP: Final = Path(__file__).with_name("StreamsApp.java")
WAIT_S: Final = 90.0
GREEDY: Final = """
import sys

import kafka
from kafka.coordinator.assignors.range import ConsumerProtocolAssignment, RangePartitionAssignor

class Greedy(RangePartitionAssignor):
    @classmethod
    def assign(cls, cluster, members):
        found = super().assign(cluster, members)
        everything = ConsumerProtocolAssignment(cls.version, [("t", [0, 1, 2, 3])], b"")
        return dict.fromkeys(found, everything)

consumer = kafka.KafkaConsumer(
    "t", bootstrap_servers=sys.argv[1], group_id=sys.argv[2], partition_assignment_strategy=[Greedy]
)
while True:
    consumer.poll(200)
"""
"""A leader that calls itself range and gives all partitions to everybody."""


@contextmanager
def programs(*commands: Sequence[str], env: Sequence[Mapping[str, str]] = ()) -> Iterator[None]:
    """All of them run until the block ends."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "KIPCHECK_"))}
    running_now = []
    try:
        for number, argv in enumerate(commands):
            more = env[number] if env else {}
            running_now.append(
                subprocess.Popen(
                    argv, env={**kept, **more}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )  # fmt: skip
        yield
    finally:
        for each in running_now:
            each.kill()
            each.wait(30)


def with_topic(port: int) -> None:
    admin: Any = kafka.KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{port}")
    admin.create_topics([NewTopic("t", 4, 1)])
    admin.close()


def inspected(port: int, group: str, members: int, generations: int = 1) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON, when the group has so many members."""
    until = time.monotonic() + WAIT_S
    while True:
        argv = [sys.executable, "-m", "kipcheck", "inspect", f"broker:127.0.0.1:{port}", "--group", group, "--json"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        found = json.loads(done.stdout)["groups"][0] if done.stdout else {}
        settled = found.get("state") == "Stable" and len(found["members"]) == members
        if settled and (found.get("generation") or generations) >= generations:
            return done.returncode, found
        assert time.monotonic() < until, (done.stdout, done.stderr)
        time.sleep(1)


def streams_app(release: str, port: int, place: Path) -> list[list[str]]:
    """Two instances, with a JDK and the released jars. Errors: pytest's skip."""
    try:
        jars = maven.fetch(coordinates(release, ("clients", "streams")))
    except Unavailable as missing:
        pytest.skip(str(missing))
    if shutil.which("javac") is None:
        pytest.skip("javac was not found on the PATH: install a JDK, 17 or later")
    path = os.pathsep.join(map(str, jars.values()))
    subprocess.run(["javac", "-proc:none", "-cp", path, "-d", str(place), str(APP)], check=True, timeout=60)
    java = [
        "java",
        "-Xmx128m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        os.pathsep.join([path, str(place)]),
    ]
    return [
        [*java, APP.stem, f"127.0.0.1:{port}", "app", str(8000 + number), str(place / str(number))] for number in (1, 2)
    ]


def consumers(
    client: str, port: int, group: str, **settings: Any
) -> tuple[list[Sequence[str]], list[Mapping[str, str]]]:
    given = [Settings(f"127.0.0.1:{port}", group, ("t",), f"{group}-{number}", **settings) for number in (1, 2)]
    try:
        return [command(client), command(client)], [each.environment for each in given]
    except Unavailable as why:
        pytest.skip(str(why))


@pytest.mark.integration
@pytest.mark.jars
@pytest.mark.timeout(400)
@for_each([(NEWEST, CLASSIC), (WITHOUT_SUBSCRIPTIONS, WITHOUT_SUBSCRIPTIONS)])
def test_a_real_streams_application_is_decoded_and_sound(broker: str, release: str, tmp_path: Path) -> None:
    place = tmp_path / broker
    place.mkdir()
    with running(broker) as port:
        with_topic(port)
        with programs(*streams_app(release, port, place)):
            code, found = inspected(port, "app", 2)
    assert (code, found["broken"], found["unjudged"]) == (0, [], None)
    assert "streams/hosts" in found["laws"], found["notes"]
    assert found["leader"] in {each["id"] for each in found["members"]}
    shares = [each["assignment"]["streams"] for each in found["members"]]
    assert sorted(task for each in shares for task in each["active"]) == ["0_0", "0_1", "0_2", "0_3"]
    ends = {each["subscription"]["streams"]["endPoint"] for each in found["members"]}
    assert ends == {"localhost:8001", "localhost:8002"}
    assert any(each.startswith("from ") for each in found["upgrade"])


@pytest.mark.integration
@pytest.mark.jars
@pytest.mark.timeout(400)
def test_real_groups_of_all_kinds(tmp_path: Path) -> None:
    with running(NEWEST) as port:
        with_topic(port)
        kinds: list[tuple[str, dict[str, Any]]] = [("eager", {}), ("coop", {"assignors": "cooperative-sticky"}),
                                                   ("new", {"protocol": "consumer"})]  # fmt: skip
        made = [consumers("java", port, group, **settings) for group, settings in kinds]
        argv = [each for commands, _ in made for each in commands]
        env = [each for _, given in made for each in given]
        with programs(*argv, env=env):
            seen = {group: inspected(port, group, 2) for group, _ in kinds}
        greedy = [sys.executable, "-c", GREEDY, f"127.0.0.1:{port}", "greedy"]
        with programs(greedy, greedy):
            code, found = inspected(port, "greedy", 2)
    for group, (exit, sound) in seen.items():
        assert (exit, sound["broken"], sound["unjudged"]) == (0, [], None), group
    assert [seen[group][1]["type"] for group, _ in kinds] == ["classic", "classic", "consumer"]
    assert seen["coop"][1]["upgrade"][0] == "to cooperative rebalances: done"
    assert seen["eager"][1]["leader"] in {each["id"] for each in seen["eager"][1]["members"]}
    assert code == 1
    assert "assign/one-owner" in {each["law"] for each in found["broken"]}
