"""@platformatic/kafka as npm brings it: what it claims, what it answers, and what becomes of a case without end."""

import shutil
from collections.abc import Iterator
from itertools import islice

import pytest

from kipcheck.conformance.core.values.case import Case, Role, Step, step
from kipcheck.conformance.core.values.history import Died, Refused, Replied, Unsupported
from kipcheck.conformance.targets.protocol import NotPlayed, Session, Unavailable
from kipcheck.conformance.targets.registry import target
from kipcheck.conformance.targets.testee import Limits, Testee
from kipcheck.conformance.targets.toolchains import build, node
from kipcheck.conformance.targets.transport.pipe import Command
from kipcheck.conformance.tests.support.releases import PLATFORMATIC
from kipcheck.conformance.tests.support.sessions import asked, executed, member, shares
from kipcheck.golden.vectors import vectors

pytestmark = pytest.mark.node

EARLIER, OLDER = "platformatic-kafka@1.35.0", "platformatic-kafka@1.34.0"
"""Releases that run on every Node that is still maintained."""


@pytest.fixture(scope="module")
def codec() -> Iterator[Session]:
    with target(EARLIER).open("apache", Role.CODEC) as session:
        yield session


@pytest.fixture(scope="module")
def leader() -> Iterator[Session]:
    with target(EARLIER).open("apache", Role.LEADER) as session:
        yield session


def test_it_says_who_it_is_and_what_it_can_do(codec: Session) -> None:
    info = codec.info
    assert (info.version, info.language[:6], info.roles) == ("1.35.0", "node v", frozenset({Role.CODEC, Role.LEADER}))
    claimed = info.claims.messages
    assert claimed["JoinGroupRequest"] == claimed["JoinGroupResponse"] == (6, 9)
    assert claimed["MetadataRequest"] == (11, 12)  # before that it has no place for a field of the version
    assert "ConsumerProtocolSubscription" not in claimed  # which is private to its consumer
    assert info.claims.assignors == ("roundrobin",)


def test_the_newest_release_claims_more() -> None:
    if node.version_of(node.node()) < (22, 22):
        pytest.skip("it needs Node 22.22 or later")
    with target(f"platformatic-kafka@{PLATFORMATIC}").open("apache", Role.CODEC) as session:
        claims = session.info.claims
        assert claims.messages["JoinGroupRequest"] == (0, 9)
        assert claims.messages["ConsumerProtocolSubscription"] == (0, 3)
        assert not {"ConsumerProtocolSubscription", "ConsumerProtocolAssignment"} & claims.operations.keys()
        assert claims.missing["OffsetCommitResponse"] == (1,)  # this module exports no reader of its own
        assert claims.assignors == ("roundrobin", "cooperative-sticky")
        data = "000300000001000174ffffffff0000000000000005ffff"
        value = {"topics": ["t"], "userData": None, "ownedPartitions": [], "generationId": 5, "rackId": None}
        (written,) = executed(session, asked("encode", "ConsumerProtocolSubscription", 3, value=value))
        assert written == Replied((("hex", data),))
        nameless = {
            "topics": [{"topicId": "00000000-0000-0000-0000-000000000000", "name": None}],
            "allowAutoTopicCreation": False,
            "includeClusterAuthorizedOperations": False, "includeTopicAuthorizedOperations": False,
        }  # fmt: skip
        (unable,) = executed(session, asked("encode", "MetadataRequest", 10, value=nameless))
        assert isinstance(unable, Unsupported) and unable.limit == "place"  # it reads names only


@pytest.mark.parametrize("message", ["JoinGroupRequest", "SyncGroupRequest", "HeartbeatRequest", "LeaveGroupRequest"])
def test_it_writes_what_real_kafka_wrote(codec: Session, message: str) -> None:
    low, high = codec.info.claims.messages[message]
    plain = [each for each in vectors() if each.message == message and each.edition == "apache" and each.value]
    plain = [each for each in plain if low <= each.version <= high and "_unknownTagged" not in str(each.value)]
    assert plain
    for vector in islice(plain, 12):
        (written,) = executed(codec, asked("encode", message, vector.version, value=vector.value))
        assert written == Replied((("hex", vector.data.hex()),)), vector.name


def test_what_it_read_is_told_although_it_raises_at_an_error_code(codec: Session) -> None:
    data = "00000001001bffffffff00000100026d0100"
    (found,) = executed(codec, asked("decode", "JoinGroupResponse", 9, hex=data))
    assert isinstance(found, Replied)
    assert found["value"] == {
        "throttleTimeMs": 1, "errorCode": 27, "generationId": -1, "protocolType": None, "protocolName": None,
        "leader": "", "skipAssignment": False, "memberId": "m", "members": [],
    }  # fmt: skip


def test_whole_numbers_keep_their_value(codec: Session) -> None:
    offset = (1 << 63) - 1
    partition = {"partitionIndex": 1, "committedOffset": offset, "committedLeaderEpoch": -1, "committedMetadata": "x"}
    value = {
        "groupId": "g", "generationIdOrMemberEpoch": 1, "memberId": "m", "groupInstanceId": None,
        "topics": [{"name": "t", "partitions": [partition]}],
    }  # fmt: skip
    (written,) = executed(codec, asked("encode", "OffsetCommitRequest", 8, value=value))
    assert isinstance(written, Replied)
    assert "7fffffffffffffff" in written["hex"]
    data = "0000000002026702027402000000017fffffffffffffffffffffff00000000000000"
    (read,) = executed(codec, asked("decode", "OffsetFetchResponse", 8, hex=data + "0000"))
    assert isinstance(read, Replied)
    assert read["value"]["groups"][0]["topics"][0]["partitions"][0]["committedOffset"] == offset


def test_what_is_refused_is_told_with_the_words_of_the_library(codec: Session) -> None:
    (found,) = executed(codec, asked("decode", "HeartbeatResponse", 4, hex="0000"))
    assert found == Refused("OutOfBoundsError", "Out of bounds.")


@pytest.mark.parametrize(
    ("ask", "capability"),
    [
        (asked("encode", "DescribeGroupsRequest", 5, value={"groups": [], "_unknownTaggedFields": []}), "tags"),
        (asked("encode", "ListGroupsRequest", 5, value={"statesFilter": ["Stable"], "typesFilter": []}), "words"),
        (asked("decode", "ApiVersionsResponse", 3, hex="0000010000000001000101"), "tagged"),
    ],
)
def test_what_it_has_no_words_for_is_unsupported_by_a_limit_that_it_told(
    codec: Session, ask: Step, capability: str
) -> None:
    assert capability in codec.info.claims.limits
    (found,) = executed(codec, ask)
    assert isinstance(found, Unsupported)


def test_it_claims_to_write_requests_and_to_read_responses(codec: Session) -> None:
    operations = codec.info.claims.operations
    assert operations == {
        name: ("encode",) if name.endswith("Request") else ("decode",) for name in codec.info.claims.messages
    }
    value = {"throttleTimeMs": 0, "errorCode": 0}
    for ask in (
        asked("decode", "HeartbeatRequest", 4, hex="0100000000010000"),
        asked("encode", "HeartbeatResponse", 4, value=value),
        asked("recode", "HeartbeatResponse", 4, hex="00000000000000"),
    ):
        (found,) = executed(codec, ask)
        assert isinstance(found, Unsupported) and not found.limit


def test_a_small_group_is_assigned_as_its_leader_the_first_member_does(leader: Session) -> None:
    group = member("b", ["t", "u"]), member("a", ["t", "u"])
    assert shares(leader, "roundrobin", {"t": 3, "u": 1}, *group) == {
        "b": [["t", 0], ["t", 2]], "a": [["t", 1], ["u", 0]],
    }  # fmt: skip
    body = {"assignor": "roundrobin", "subscription": ["t"], "owned": [["t", 0]], "generation": 4}
    assert executed(leader, step("leader", "user-data", **body)) == (Replied((("hex", None),)),)


def test_it_knows_no_draft_and_plays_no_controller() -> None:
    with (
        pytest.raises(Unavailable, match="does not implement edition kip-584"),
        target(EARLIER).open("kip-584", Role.CODEC),
    ):
        pass
    with pytest.raises(NotPlayed), target(EARLIER).open("apache", Role.CONTROLLER):
        pass


def test_another_release_is_that_release() -> None:
    with target(OLDER).open("apache", Role.CODEC) as session:
        assert session.info.version == "1.34.0"
        (found,) = executed(session, asked("decode", "HeartbeatResponse", 4, hex="00000000000000"))
        assert found == Replied((("value", {"throttleTimeMs": 0, "errorCode": 0}),))


# -- a client of our own in its place, which misbehaves where it is told to

STUB = {
    "package.json": '{"name": "@platformatic/kafka", "version": "0.0.1", "type": "module"}',
    "dist/protocol/reader.js": "export class Reader {}",
    "dist/apis/consumer/heartbeat-v4.js": """
        export const api = { key: 12, version: 4 }
        export function createRequest(groupId, generationId, memberId, groupInstanceId) {}
        export function parseResponse() {}
    """,
    "dist/clients/consumer/partitions-assigners.js": """
        export function roundRobinAssigner(leader) {
          switch (leader) {
            case 'spin': for (;;);
            case 'grow': { const all = []; for (;;) all.push(new Array(1e5).fill(all.length)) }
            case 'leave': process.exit(3)
            case 'noise': console.log('{"type":"results"}'); console.error('in vain')
          }
          return [{ memberId: leader, assignments: new Map() }]
        }
    """,
}


@pytest.fixture(scope="module", params=["lines", "frames"])
def stub(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("stub")
    for name, text in build.sources("node", [".mjs"]).items():
        framing = text.replace("['lines', 'frames']", f"['{request.param}']")
        (folder / name).write_text(framing, "utf-8")
    package = folder / "node_modules" / "@platformatic" / "kafka"
    for name, text in STUB.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, "utf-8")
    for area in ("admin", "metadata"):
        (package / "dist" / "apis" / area).mkdir(parents=True)
    argv = (str(node.node()), str(folder / "main.mjs"), "platformatic-kafka", str(folder), build.definitions())
    program = Testee("stub", Command(argv), Limits(cpu_s=0.5))
    with program.open("apache", Role.LEADER) as session:
        yield session
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("does", "cause", "detail"),
    [
        ("spin", "timeout", "more processor time than a case may take"),
        ("leave", "crashed", "left with exit code 3"),
    ],
)
def test_a_death_is_told_and_the_next_case_is_answered(stub: Session, does: str, cause: str, detail: str) -> None:
    def assign(leads: str) -> Case:
        body = {"assignor": "roundrobin", "topics": [], "members": [member(leads, [])]}
        return Case("test", "apache", Role.LEADER, (step("leader", "assign", **body),))

    (before,), (died,), (after,) = stub.run([assign(each) for each in ("one", does, "two")])
    assert isinstance(died, Died)
    assert (died.cause, died.detail) == (cause, detail)
    for found, name in ((before, "one"), (after, "two")):
        assert isinstance(found, Replied)
        assert found["assignment"] == [{"id": name, "partitions": [], "userData": ""}]
    assert list(stub.troubles) == []


def test_memory_has_a_limit(stub: Session) -> None:
    body = {"assignor": "roundrobin", "topics": [], "members": [member("grow", [])]}
    (found,) = executed(stub, step("leader", "assign", **body))
    assert isinstance(found, Died)
    assert found.cause in ("memory", "timeout")  # whichever comes first on this machine


def test_what_the_library_prints_does_not_mix_with_the_protocol(stub: Session) -> None:
    assert shares(stub, "roundrobin", {}, member("noise", [])) == {"noise": []}
    assert list(stub.breaches) == []
