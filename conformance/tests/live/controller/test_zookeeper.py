"""Controllers of feature versions with ZooKeeper: released brokers and classes beside the machine."""

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from socket import create_server
from threading import Thread

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Observation, Refused, Replied, Unsupported
from kipcheck.conformance.live.connections.zookeeper import NO_NODE, Failed, ZooKeeper
from kipcheck.conformance.live.controller.started_controllers import claims
from kipcheck.conformance.protocols.features.model.zookeeper import ZooKeeperController
from kipcheck.conformance.protocols.features.ops.zookeeper import OPERATIONS
from kipcheck.conformance.targets import registry

LIFE = (
    "controller at 2.6; zk-node; read 0; zk-registration 0; zk-features 0; controller at 2.7; zk-node; "
    "zk-update v0 a:1,b:0!; read 0; zk-registration 0; zk-features 0; write node a:1-1; zk-node; controller at 2.7"
)
"""The node is created disabled, and enabled; brokers stop because of a feature that another program writes into it."""
UPDATES = (
    "declare 0 a:1-3; declare 1 a:1-2; controller at 2.7; zk-node; zk-update v0 a:2!; zk-node; zk-update v0 a:3; "
    "zk-update v0 a:2,b:1; declare 1 a:1-3; zk-update v0 a:3; zk-update v0 a:1; zk-node; read 1; zk-features 1; "
    "zk-update v0 a:0; zk-update v0 a:0!; zk-node; controller at 2.6; zk-node; write node a:3-3; read 1"
)


def played(target: str, release: str, text: str) -> tuple[list[Observation], list[Observation]]:
    """What the target answers, and what the machine does."""
    steps, machine = tuple(OPERATIONS.parse_shorthand(text)), ZooKeeperController(release)
    state, expected = machine.initial(), list[Observation]()
    for each in steps:
        state, actions = machine.step(state, OPERATIONS.event_of(each))
        answer = OPERATIONS.answer_of(actions)
        shown = {name: value for name, value in answer.items() if name not in ("status", "class", "message")}
        refused = answer["status"] == "rejected"
        expected.append(Refused(answer["class"]) if refused else Replied(tuple(shown.items())))
    with registry.target(target).open(f"apache@{release}", Role.CONTROLLER) as session:
        (found,) = session.run([Case("zookeeper-features/life", f"apache@{release}", Role.CONTROLLER, steps)])
    return [_plain(each) for each in found], [_plain(each) for each in expected]


def _plain(observation: Observation) -> Observation:
    """Without what is told in words."""
    match observation:
        case Refused():
            return Refused(observation.error)
        case Replied():
            return Replied(tuple(sorted(observation.payload)))
        case _:
            return observation


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_brokers_with_zookeeper_do_what_the_machine_does() -> None:
    found, expected = played("kafka:2.8.2", "2.8.2", LIFE)
    assert found == expected


@pytest.mark.jars
@pytest.mark.parametrize("release", ["2.7.0", "3.9.2"])
def test_the_classes_do_what_the_machine_does(release: str) -> None:
    found, expected = played(f"java:kafka_2.13:{release}", release, UPDATES)
    assert found == expected


@pytest.mark.jars
def test_a_broker_that_saw_the_node_deleted_is_not_notified_of_a_new_one() -> None:
    """As brokers of 3.9.2 do: they read it again only when they are started."""
    text = "controller at 2.7; delete node; write node a:1-1; controller at 2.7"
    found, expected = played("java:kafka_2.13:2.8.2", "2.8.2", text)
    assert found[2] == Replied(()) and expected[2] == found[3] == Refused("FEATURE_CACHE_UPDATE")


@pytest.mark.jars
def test_what_the_server_of_a_broker_does_is_not_played_by_the_classes() -> None:
    found, _ = played("java:kafka_2.13:2.8.2", "2.8.2", "controller at 2.6; zk-update v0 a:1")
    assert isinstance(found[1], Unsupported) and found[1].limit == "broker-api"


@pytest.mark.parametrize(
    ("release", "machines"),
    [
        ("2.6.3", ()), ("2.8.2", ("zookeeper-features",)), ("4.0.2", ("kraft-features", "kraft-quorum")),
        ("3.9.2", ("kraft-features", "kraft-quorum", "zookeeper-features")),
    ],
)  # fmt: skip
def test_a_release_plays_the_modes_that_it_has(release: str, machines: tuple[str, ...]) -> None:
    assert claims(release).machines == machines


@contextmanager
def answering(*replies: tuple[int, bytes]) -> Iterator[ZooKeeper]:
    """A ZooKeeper that answers each request with an error and a body."""

    def serve() -> None:
        for error, body in replies:
            with server.accept()[0] as connection:
                for reply in (bytes(37), struct.pack(">iqi", 1, 0, error) + body, bytes(16)):
                    (size,) = struct.unpack(">i", connection.recv(4))
                    connection.recv(size)
                    connection.sendall(struct.pack(">i", len(reply)) + reply)

    with create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=serve)
        thread.start()
        try:
            yield ZooKeeper("127.0.0.1", server.getsockname()[1])
        finally:
            thread.join()


def test_nodes_are_read_and_written() -> None:
    stat = struct.pack(">4qi", 0, 0, 0, 0, 7) + bytes(28)
    with answering((0, struct.pack(">i", 2) + b"{}" + stat), (NO_NODE, b""), (0, stat), (-4, b"")) as zookeeper:
        found = zookeeper.get("/feature")
        assert found is not None and (found.data, found.version) == (b"{}", 7)
        assert zookeeper.get("/feature") is None
        assert zookeeper.put("/feature", os.urandom(3)) == 7
        with pytest.raises(Failed, match="error -4"):
            zookeeper.delete("/feature")
