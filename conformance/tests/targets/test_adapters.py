"""Adapters of codecs: what they claim they can do, and values come through them unchanged."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from kipcheck.conformance.core.values.case import Case, Role, step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import Observation, Refused, Replied, Unsupported
from kipcheck.conformance.targets.protocol import Session, Unavailable
from kipcheck.conformance.targets.registry import target
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.schema import messages, spec

MODULES = {"kafka-python": "kafka", "aiokafka": "aiokafka", "kio": "kio"}
APACHE = edition("apache")


@pytest.fixture(scope="module", params=MODULES)
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    if find_spec(MODULES[request.param]) is None:
        pytest.skip(f"{request.param} is not installed (pip install '.[targets]')")
    with target(request.param).open("apache", Role.CODEC) as opened:
        yield opened


def claimed(session: Session) -> Iterator[Layout]:
    for message in messages(APACHE):
        low, high = session.info.claims.messages.get(message, (1, 0))
        yield from (each for each in spec(APACHE, message) if low <= each.version <= high)


def ask(session: Session, layout: Layout, verb: str, **body: Any) -> Case:
    asked = step("codec", verb, message=layout.message, version=layout.version, **body)
    return Case("t", "apache", Role.CODEC, (asked,))


def answers(session: Session, cases: list[Case]) -> list[Observation]:
    return [observation for (observation,) in session.run(cases)]


@pytest.mark.integration
def test_every_claim_reads_and_writes_the_defaults(session: Session) -> None:
    layouts = list(claimed(session))
    values = [layout.codec.to_json(layout.defaults()) for layout in layouts]
    texts = [layout.encode(layout.defaults()).hex() for layout in layouts]
    cases: list[Case] = []
    for layout, value, text in zip(layouts, values, texts, strict=True):
        cases += ask(session, layout, "encode", value=value), ask(session, layout, "decode", hex=text)
        cases.append(ask(session, layout, "recode", hex=text))
    wanted = [each for value, text in zip(values, texts, strict=True) for each in (text, value, text)]
    done = 0
    for case, right, seen in zip(cases, wanted, answers(session, cases), strict=True):
        if isinstance(seen, Unsupported):  # versions left out between others, headers that are only written
            not_claimed = not session.info.claims.supports(case)
            assert "no class" in seen.reason or not_claimed, (case.steps, seen)
            continue
        assert session.info.claims.supports(case), (case.steps, seen)
        assert isinstance(seen, Replied), (case.steps, seen)
        assert seen.payload[0][1] == right, case.steps
        done += 1
    assert done > 200


def test_what_is_not_claimed_is_unsupported(session: Session) -> None:
    layout = spec(APACHE, "HeartbeatRequest").at(4)
    _, high = session.info.claims.messages["HeartbeatRequest"]
    steps = [
        step("codec", "decode", message="HeartbeatRequest", version=high + 1, hex=""),
        step("codec", "decode", message="SubscriptionInfo", version=1, hex=""),
        step("codec", "whistle", message="HeartbeatRequest", version=0),
    ]
    seen = answers(session, [Case("t", "apache", Role.CODEC, (each,)) for each in steps])
    assert layout.version >= high
    assert [type(each) for each in seen] in ([Unsupported] * 3, [Refused, Unsupported, Unsupported])


PROTOCOLS = [{"name": "range", "metadata": "0001ff"}, {"name": "é", "metadata": ""}]
TIMEOUTS = {"sessionTimeoutMs": 1, "rebalanceTimeoutMs": -2}
APIS = [{"apiKey": 18, "minVersion": 0, "maxVersion": 4}]


@pytest.mark.parametrize(
    ("message", "version", "value"),
    [
        ("JoinGroupRequest", 1, {
            "groupId": "g", **TIMEOUTS, "memberId": "", "protocolType": "consumer", "protocols": PROTOCOLS,
        }),
        ("ConsumerProtocolSubscription", 0, {"topics": ["t", ""], "userData": None}),
        ("ConsumerProtocolSubscription", 0, {"topics": [], "userData": ""}),
        ("MetadataRequest", 1, {"topics": None}),
        ("MetadataRequest", 1, {"topics": []}),
        ("MetadataRequest", 4, {"topics": [{"name": "t"}], "allowAutoTopicCreation": False}),
        ("ApiVersionsResponse", 1, {"errorCode": 0, "apiKeys": APIS, "throttleTimeMs": 1 << 30}),
    ],
)  # fmt: skip
def test_values_come_through_in_both_directions(
    session: Session, message: str, version: int, value: dict[str, Any]
) -> None:
    layout = spec(APACHE, message).at(version)
    text = layout.encode(layout.codec.from_json(value)).hex()
    cases = [ask(session, layout, "encode", value=value), ask(session, layout, "decode", hex=text)]
    written, seen = answers(session, cases)
    assert written == Replied((("hex", text),))
    assert isinstance(seen, Replied)
    assert seen["value"] == value


def test_one_answer_is_not_changed_by_the_next(session: Session) -> None:
    layout = spec(APACHE, "DescribeGroupsRequest").at(0)
    hexes = [layout.encode({"groups": groups}).hex() for groups in (["a"], ["b", "c"], ["a"])]
    seen = answers(session, [ask(session, layout, "decode", hex=each) for each in hexes])
    assert [each["value"] for each in seen if isinstance(each, Replied)] == [
        {"groups": ["a"]}, {"groups": ["b", "c"]}, {"groups": ["a"]},
    ]  # fmt: skip


def test_an_edition_that_no_client_knows_is_unavailable(session: Session) -> None:
    with (
        pytest.raises(Unavailable, match="does not implement edition kip-584"),
        target(session.info.name).open("kip-584", Role.CODEC),
    ):
        pass


@pytest.fixture(scope="module")
def kio() -> Iterator[Session]:
    pytest.importorskip("kio", reason="kio is not installed (pip install '.[targets]')")
    with target("kio").open("apache", Role.CODEC) as opened:
        yield opened


def test_kio_is_not_asked_for_what_its_types_cannot_hold(kio: Session) -> None:
    heartbeat = spec(APACHE, "HeartbeatResponse").at(4)
    prefix = spec(APACHE, "ConsumerProtocolSubscription").at(3)
    unknown, tagged, later = answers(kio, [
        ask(kio, heartbeat, "encode", value={"throttleTimeMs": 0, "errorCode": 31000}),
        ask(kio, heartbeat, "encode", value={
            "throttleTimeMs": 0, "errorCode": 0, "_unknownTaggedFields": [{"tag": 7, "data": "00"}],
        }),
        ask(kio, prefix, "decode", hex="0004" + prefix.encode(prefix.defaults()).hex()[4:]),
    ])  # fmt: skip
    assert isinstance(unknown, Unsupported)
    assert "31000" in unknown.reason
    assert isinstance(tagged, Unsupported)
    assert isinstance(later, Unsupported)


def test_kio_shows_ids_in_lists_and_leading_versions(kio: Session) -> None:
    registration = spec(APACHE, "BrokerRegistrationRequest").at(2)
    value = registration.defaults() | {"logDirs": [registration.defaults()["incarnationId"]]}
    subscription = spec(APACHE, "ConsumerProtocolSubscription").at(1)
    asked = {"topics": ["t"], "userData": None, "ownedPartitions": [{"topic": "t", "partitions": [1]}]}
    seen, written = answers(kio, [
        ask(kio, registration, "decode", hex=registration.encode(value).hex()),
        ask(kio, subscription, "encode", value=asked),
    ])  # fmt: skip
    assert isinstance(seen, Replied)
    assert seen["value"]["logDirs"] == ["00000000-0000-0000-0000-000000000000"]
    assert written == Replied((("hex", subscription.encode(subscription.codec.from_json(asked)).hex()),))


def test_aiokafka_is_asked_as_its_users_ask_for_what_a_version_lacks() -> None:
    pytest.importorskip("aiokafka", reason="aiokafka is not installed (pip install '.[targets]')")
    layout = spec(APACHE, "JoinGroupRequest").at(1)
    plain = layout.defaults()
    asked = layout.codec.to_json(plain) | {"groupInstanceId": "i"}
    none = spec(APACHE, "ListGroupsRequest").at(0)
    inner = spec(APACHE, "OffsetCommitRequest").at(2)
    nested = inner.codec.to_json(inner.defaults()) | {
        "topics": [{"name": "t", "partitions": [
            {"partitionIndex": 0, "committedOffset": 0, "committedLeaderEpoch": 1, "committedMetadata": None},
        ]}],
    }  # fmt: skip
    with target("aiokafka").open("apache", Role.CODEC) as session:
        dropped, no_argument, no_place = answers(session, [
            ask(session, layout, "encode", value=asked),
            ask(session, none, "encode", value={"statesFilter": ["a"]}),
            ask(session, inner, "encode", value=nested),
        ])  # fmt: skip
    # Whether to drop it is right is for the gate to say.
    assert dropped == Replied((("hex", layout.encode(plain).hex()),))
    assert isinstance(no_argument, Unsupported)
    assert isinstance(no_place, Unsupported)


def test_a_struct_with_a_field_that_kio_lacks_is_refused_by_kio(kio: Session) -> None:
    layout = spec(APACHE, "LeaveGroupRequest").at(3)
    member = {"memberId": "", "groupInstanceId": None, "reason": "enough"}
    (seen,) = answers(kio, [ask(kio, layout, "encode", value={"groupId": "", "members": [member]})])
    assert isinstance(seen, Refused)
    assert "reason" in seen.why
