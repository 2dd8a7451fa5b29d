"""The session of a released coordinator, with a jar that is played: the steps of answers, of refusals and of deaths."""

from collections.abc import Mapping
from typing import Any

import pytest

from kipcheck.conformance.clients.java.coordinators import CoordinatorSession
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.core.values.history import Died, Lost, Observation, Replied, Unsupported
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS as CONSUMER_GROUPS
from kipcheck.conformance.protocols.group.ops import OPERATIONS as GROUPS
from kipcheck.conformance.targets.session import Limits
from kipcheck.conformance.targets.transport.channel import Channel, Ended
from kipcheck.conformance.targets.transport.framing import Framing
from kipcheck.conformance.wire.framing import decode_request, encode_response

HELLO = {
    "type": "hello", "protocol": 1, "name": "jar", "version": "1", "language": "java", "roles": ["coordinator"],
    "machines": ["group", "consumer-group"], "limits": {"fields": "", "versions": ""},
}  # fmt: skip


class Jar:
    """Parks each JoinGroup until time passes, answers a Heartbeat with the error of its generation, and dies of one
    with generation 99 behind."""

    channel: Channel
    dump_signal: str | None = None

    def __init__(self) -> None:
        self.over = False
        self.exchanges = 0
        self.parked: dict[int, list[str]] = {}

    def set_framing(self, framing: Framing, /) -> None:
        pass

    def exchange(self, message: Mapping[str, Any], seconds: float | None, /) -> dict[str, Any]:
        if message["type"] != "batch":
            return HELLO if message["type"] == "hello" else {"type": "configure", "ok": True}
        self.exchanges += 1
        results = [{"n": order["n"], **self._result(order)} for order in message["cases"]]
        return {"type": "results", "id": message["id"], "results": results}

    def _result(self, order: Mapping[str, Any]) -> dict[str, Any]:
        parked = self.parked.setdefault(order["conversation"], [])
        match order["op"].removeprefix("coordinator-"):
            case "begin":
                parked.clear()
                responses = []
            case "request":
                responses = self._responses(bytes.fromhex(order["hex"]), parked)
            case _:
                responses, parked[:] = [*parked], []
        return {"status": "accepted", "responses": responses, "created": {}, "unread": ""}

    def _responses(self, frame: bytes, parked: list[str]) -> list[str]:
        asked = decode_request(frame)
        error = abs(asked.body.get("generationId", 0))
        if error == 99:
            self.over = True
            raise Ended("crashed", "exit code 1", "")
        name = asked.message.replace("Request", "Response")
        joined = {"memberId": f"id of {asked.client_id}", "generationId": 16}
        body = {"errorCode": error} if name == "HeartbeatResponse" else joined
        response = encode_response(APACHE, name, asked.version, asked.correlation_id, body).hex()
        if name == "JoinGroupResponse":
            parked.append(response)
            return []
        return [response]

    def garbled(self, detail: str, /, unasked: bool = False) -> Ended:
        return Ended("garbled", detail, "")

    def close(self, last: Mapping[str, Any], /, seconds: float) -> str:
        return ""

    def kill(self) -> None:
        self.over = True


@pytest.fixture
def jars() -> list[Jar]:
    return []


def run(jars: list[Jar], *talks: str) -> list[tuple[Observation, ...]]:
    def begun() -> Jar:
        jars.append(Jar())
        return jars[-1]

    session = CoordinatorSession("jar", begun, Limits(), "apache", Role.COORDINATOR)
    return session.run([Case("test", "apache", Role.COORDINATOR, GROUPS.parse_shorthand(talk)) for talk in talks])


def answers(observations: tuple[Observation, ...]) -> list[list[tuple[int, str, str]]]:
    return [
        [(each["to"], each["error"], each.get("member", "")) for each in observation["answers"]]
        for observation in observations
        if isinstance(observation, Replied)
    ]


def test_conversations_go_on_side_by_side(jars: list[Jar]) -> None:
    """An answer belongs to the step that caused it, and to the conversation of its request."""
    first, other = run(jars, "join a v3; join b v3; beat a behind=25; elapse 1; beat a", "beat b behind=27")
    assert answers(first) == [
        [], [], [(2, "UNKNOWN_MEMBER_ID", "")], [(0, "NONE", "a.1"), (1, "NONE", "b.1")],
        [(4, "NOT_COORDINATOR", "")],
    ]  # fmt: skip
    assert answers(other) == [[(0, "REBALANCE_IN_PROGRESS", "")]]
    assert jars[0].exchanges == 1 + 5


def test_a_request_that_has_no_bytes_is_not_sent(jars: list[Jar]) -> None:
    ((no_instance, no_version),) = run(jars, "beat a as i v2; beat a v99")
    assert isinstance(no_instance, Unsupported) and no_instance.limit == "fields"
    assert isinstance(no_version, Unsupported) and no_version.limit == "versions"
    assert jars[0].exchanges == 1


def test_a_death_is_that_of_the_step_that_caused_it(jars: list[Jar]) -> None:
    alive, dead = run(jars, "beat a; beat a", "beat a behind=25; beat a behind=99; beat a")
    assert answers(alive) == [[(0, "NONE", "")], [(1, "NONE", "")]]
    before, died, after = dead
    assert answers((before,)) == [[(0, "UNKNOWN_MEMBER_ID", "")]]
    assert isinstance(died, Died) and died.cause == "crashed"
    assert isinstance(after, Lost)


def test_a_heartbeat_without_an_answer_is_garbled(jars: list[Jar]) -> None:
    def begun() -> Jar:
        jars.append(Jar())
        jars[-1]._responses = lambda frame, parked: []  # type: ignore[method-assign]
        return jars[-1]

    session = CoordinatorSession("jar", begun, Limits(), "apache", Role.COORDINATOR)
    steps = CONSUMER_GROUPS.parse_shorthand("join a on t none; pass 1")
    ((seen, passed),) = session.run([Case("test", "apache", Role.COORDINATOR, steps)])
    assert isinstance(seen, Died) and seen.cause == "garbled"
    assert passed == Replied(())
