"""The published schema says what travels: all that we send and our own testees answer, and no more than we take."""

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from itertools import islice
from typing import Any, Final

import jsonschema  # type: ignore[import-untyped]
import pytest

from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.protocols.checks import CHECKS, Check
from kipcheck.conformance.targets import answers
from kipcheck.conformance.targets.answers import ProtocolViolation
from kipcheck.conformance.targets.protocol import Session
from kipcheck.conformance.targets.registry import target
from kipcheck.conformance.targets.testee import Limits
from kipcheck.conformance.targets.transport.channel import Channel

WHOLE: Final = json.loads((files("kipcheck.conformance.targets") / "testee.schema.json").read_text("utf-8"))


def validator(definition: str) -> Any:
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": WHOLE["$defs"]})


def test_it_is_a_schema_of_its_draft() -> None:
    assert WHOLE["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(WHOLE)


def refers(schema: Any) -> Iterator[str]:
    match schema:
        case {"$ref": str(name)}:
            yield name.removeprefix("#/$defs/")
        case dict():
            for each in schema.values():
                yield from refers(each)
        case list():
            for each in schema:
                yield from refers(each)


def test_everything_in_it_is_used_and_nothing_is_missing() -> None:
    assert set(refers(WHOLE)) == set(WHOLE["$defs"])


Received = list[tuple[dict[str, Any], dict[str, Any]]]


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Received:
    """What was said, and what was answered."""
    found: Received = []
    exchange = Channel.exchange

    def listening(talk: Channel, message: Mapping[str, Any], seconds: float | None) -> dict[str, Any]:
        answer = exchange(talk, message, seconds)
        found.append((json.loads(json.dumps(message)), copy.deepcopy(answer)))
        return answer

    monkeypatch.setattr(Channel, "exchange", listening)
    return found


CODEC = ("wire/round-trip", "wire/damage")
LEADER = ("assign/one-round", "assign/rounds", "assign/static", "assign/user-data")
CONTROLLER = ("features/epochs",)
COORDINATOR = ("group/parked", "group/errors")
CONSUMER_GROUP = ("consumer-group/ownership", "consumer-group/epochs")
MEMBER = ("member/duties",)
MESSAGES = ("HeartbeatRequest", "ConsumerProtocolSubscription")
SUBJECTS = (*MESSAGES, "roundrobin", "sticky", "features", "group", "consumer-group", "member", "bounce")


def cases_of(check: Check[Any], session: Session) -> Iterator[Case]:
    for subject in check.family.subjects("apache"):
        if subject.name in SUBJECTS and check.about(subject) and check.family.claimed(subject, session.info.claims):
            yield from (sample.case for sample in islice(check.samples(subject, 0, 6), 20))


LATER = pytest.mark.integration


@pytest.mark.parametrize(
    ("name", "checks", "ops"),
    [
        ("reference", CODEC + LEADER + CONTROLLER, "encode decode recode assign user-data update broker-up"),
        pytest.param("reference", COORDINATOR, "join sync heartbeat commit elapse describe-group", marks=LATER),
        pytest.param("reference", CONSUMER_GROUP, "consumer-heartbeat consumer-elapse", marks=LATER),
        pytest.param(
            "reference",
            MEMBER,
            "member-open member-subscribe member-poll member-told member-elapse",
            marks=LATER,
        ),
        pytest.param(
            "reference",
            ("bounce/ownership", "bounce/streams"),
            "roll settle move crash revive lose",
            marks=LATER,
        ),
        pytest.param("kafka-python", CODEC + LEADER, "encode decode recode assign user-data", marks=LATER),
        pytest.param("aiokafka", CODEC + LEADER, "encode decode recode assign user-data", marks=LATER),
        pytest.param("kio", CODEC, "encode decode recode", marks=LATER),
        pytest.param("miniature/crashes-on-tags", ("wire/unknown-tags",), "decode recode", marks=LATER),
        pytest.param("java:kafka-clients:4.3.1", CODEC + LEADER, "encode decode assign", marks=pytest.mark.jars),
        pytest.param("franz-go", CODEC + LEADER, "encode decode assign", marks=pytest.mark.go),
        pytest.param("platformatic-kafka", CODEC + LEADER, "encode decode assign", marks=pytest.mark.node),
    ],
)
def test_what_we_send_and_our_own_testees_answer_is_as_published(
    name: str, checks: tuple[str, ...], ops: str, received: Received
) -> None:
    for role in dict.fromkeys(CHECKS[id].role for id in checks):
        with target(name, Limits(cpu_s=0.3)).open("apache", role) as session:
            for check in (CHECKS[id] for id in checks if CHECKS[id].role is role):
                list(converse(list(cases_of(check, session)), session))
            assert not session.breaches
    asked, answered = validator("toTestee"), validator("fromTestee")
    for message, answer in received:
        asked.validate(message)
        answered.validate(answer)
    assert {message["type"] for message, _ in received} == {"hello", "configure", "batch", "bye"}
    cases = [case for message, _ in received for case in message.get("cases", ())]
    assert {*ops.split()} <= {case["op"] for case in cases}
    assert {key for case in cases for key in case} & {"expected", "check", "invariant", "id"} == set()


HELLO: Final = {
    "type": "hello", "protocol": 1, "name": "n", "version": "1", "language": "l", "issues": "i",
    "roles": ["codec", "leader"], "capabilities": {"HeartbeatRequest": [0, 4]}, "missing": {"HeartbeatRequest": [2]},
    "operations": {"HeartbeatRequest": ["encode", "decode"]},
    "assignors": ["range"], "machines": ["features"], "limits": {"types": "some"}, "framing": ["lines"],
    "dump_signal": "SIGQUIT",
}  # fmt: skip
ASSIGNED: Final = [
    {"id": "c1", "partitions": [["t", 0]], "userData": "00"}, {"id": "c2", "partitions": [], "userData": None},
]  # fmt: skip
JOINED: Final = {
    "to": 0, "answer": "joined", "error": "NONE", "generation": 1, "protocol": "p", "member": "a.1",
    "members": [["a.1", None, "x"]], "skip_assignment": False,
}  # fmt: skip
LEFT: Final = {"to": 0, "answer": "left", "error": "NONE", "members": [["a.1", None, "UNKNOWN_MEMBER_ID"]]}
DESCRIBED: Final = {
    "to": 0, "answer": "described", "error": "NONE", "state": "Stable", "members": [["a.1", "i", "x", "y"]],
}  # fmt: skip
JOIN: Final = {
    "action": "join", "version": 9, "member": "", "instance": None, "protocol_type": "consumer",
    "protocols": [["range", {"topics": ["t"], "owned": [["t", 0]]}]],
}  # fmt: skip
SYNC: Final = {
    "action": "sync", "version": 5, "member": "m1", "instance": "i", "generation": 1,
    "assignments": [["m1", {"partitions": [["t", 0]]}]],
}  # fmt: skip
MEMORY: Final = {"used": 3, "unique": -1, "active": ["0_0"], "standby": ["n__1_0"], "sums": {"1_0": 5}, "error": 0}
RESULTS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("encode", {"status": "accepted", "hex": "00"}),
    ("recode", {"status": "accepted", "hex": ""}),
    ("decode", {"status": "accepted", "value": {"a": 1}, "left": 2}),
    ("assign", {"status": "accepted", "assignment": ASSIGNED}),
    ("user-data", {"status": "accepted", "hex": "00"}),
    ("user-data", {"status": "accepted", "hex": None}),
    ("stream-configure", {"status": "accepted", "used": 3, "latest": 3, "protocols": ["eager"]}),
    ("stream-subscribe", {"status": "accepted", "hex": "00", "memory": MEMORY}),
    ("stream-assign", {"status": "accepted", "assignment": ASSIGNED, "memory": MEMORY}),
    (
        "stream-assigned",
        {"status": "accepted", "memory": MEMORY, "rejoin": "again", "atMs": 0, "applied": False, "error": 0},
    ),
    ("update", {"status": "accepted", "epoch": 1}),
    ("describe", {"status": "accepted", "level": 1, "epoch": 1}),
    ("broker-up", {"status": "accepted"}),
    ("consumer-heartbeat", {"status": "accepted", "epoch": 1, "assignment": [["t", 0]]}),
    ("consumer-heartbeat", {"status": "accepted", "epoch": 1, "assignment": None}),
    ("consumer-heartbeat", {"status": "accepted", "epoch": -1}),
    ("consumer-elapse", {"status": "accepted"}),
    ("join", {"status": "accepted", "answers": [JOINED]}),
    ("leave", {"status": "accepted", "answers": [LEFT]}),
    ("describe-group", {"status": "accepted", "answers": [DESCRIBED]}),
    ("fetch", {"status": "accepted", "answers": [{"to": 0, "answer": "fetched", "error": "NONE", "offsets": []}]}),
    ("elapse", {"status": "accepted", "answers": []}),
    ("member-poll", {"status": "accepted", "actions": [{"action": "assigned", "partitions": [["t", 0]]}, JOIN]}),
    ("member-told", {"status": "accepted", "actions": [SYNC]}),
    ("member-close", {"status": "accepted", "actions": [{"action": "leave", "version": 5, "members": [["m1", None]]}]}),
    ("member-elapse", {"status": "accepted", "actions": [{"action": "raised", "error": "E"}]}),
    ("decode", {"status": "rejected", "class": "E", "offset": 1, "message": "m", "at": "x.py:1"}),
    ("decode", {"status": "unsupported", "capability": "types", "message": "m"}),
    ("decode", {"status": "internal", "class": "E", "message": "m", "at": "x.py:1"}),
    ("decode", {"status": "died", "cause": "crashed", "message": "m", "evidence": "e", "at": "x.py:1"}),
]
Checked = Callable[[Any], object]
ANSWERS: Final[list[tuple[str, dict[str, Any], Checked]]] = [
    ("helloAnswer", HELLO, answers.hello),
    ("helloAnswer", {"type": "hello", "unavailable": "gone"}, answers.hello),
    ("configureAnswer", {"type": "configure", "ok": True}, answers.configured),
    ("configureAnswer", {"type": "configure", "unsupported": "no"}, answers.configured),
    *(
        (
            "results", {"type": "results", "id": 1, "results": [{"n": 5, **result}]},
            lambda found, op=op: answers.results(found, 1, {5: op}),
        )
        for op, result in RESULTS
    ),
]  # fmt: skip
OTHERS: Final[tuple[Any, ...]] = (
    None, True, -1, 1 << 40, 1.5, "", "x", "0", "0G", [], [None], ["x", 1], {}, {"x": None}, {"x": "y"},
)  # fmt: skip


def changed(value: Any) -> Iterator[Any]:
    """Each of its parts left out, or something else in its place."""
    yield from OTHERS
    match value:
        case dict():
            for key in value:
                yield {name: each for name, each in value.items() if name != key}
                yield from ({**value, key: other} for other in changed(value[key]))
        case list():
            for index in range(len(value)):
                yield value[:index] + value[index + 1 :]
                yield [*value, value[index]]
                yield from ([*value[:index], other, *value[index + 1 :]] for other in changed(value[index]))


PAST_THE_SCHEMA: Final = (
    "the lowest version is above the highest",  # of two numbers one has to be the greater
    "the message is not in hello.capabilities",  # two keys
    "is empty, but the role",  # a role and what it is played with
    "is not a case of this batch", "expected batch 1", "a second result of case", "results; case",  # what was asked
    "a second assignment of member",
    r"results\[0\]\.(hex|value|assignment|epoch|level|answers|actions): is missing",  # which, depends on the op
    r"results\[0\]\.(used|latest|protocols|memory|rejoin|atMs|applied|error): is missing",
    r"results\[0\]\.hex: None must be hex",
    r"results\[0\]\.assignment: None must be",  # of which operation it is
)  # fmt: skip
"""What no schema of one message can say."""


@pytest.mark.parametrize(("definition", "answer", "check"), ANSWERS)
def test_what_the_runner_takes_is_what_the_schema_takes(definition: str, answer: Any, check: Checked) -> None:
    schema = validator(definition)
    schema.validate(answer)
    check(answer)
    refused = 0
    for other in changed(answer):
        if not isinstance(other, dict):
            continue  # no message at all
        try:
            check(other)
            why = ""
        except ProtocolViolation as wrong:
            why = str(wrong)
            assert re.match(r"(type|hello|configure|results)[\w.\[\]-]*: \S", why), "it says where"
        if not schema.is_valid(other):
            refused += 1
            assert why, f"only the schema refuses {other}"
        elif why:
            assert any(re.search(each, why) for each in PAST_THE_SCHEMA), f"only the runner refuses {other}: {why}"
    assert refused >= len(answer)


@pytest.mark.parametrize(
    ("op", "broken", "path"),
    [
        ("assign", {"assignment": [{"id": "c1", "partitions": [["t", 0], ["t", "1"]]}]}, "assignment[0].partitions[1]"),
        ("assign", {"assignment": [{"id": "c1"}]}, "assignment[0].partitions"),
        ("assign", {"assignment": {"c1": []}}, "assignment"),
        ("assign", {"assignment": [{"id": "c1", "partitions": [], "userData": "0"}]}, "assignment[0].userData"),
        ("encode", {"hex": "0x00"}, "hex"),
        ("decode", {"value": [1]}, "value"),
        ("update", {"epoch": True}, "epoch"),
    ],
)
def test_an_answer_that_breaks_the_schema_is_told_with_its_path(op: str, broken: Any, path: str) -> None:
    found = {"type": "results", "id": 1, "results": [{"n": 0, "status": "accepted", "hex": "", **broken}]}
    with pytest.raises(ProtocolViolation, match=f"^{re.escape(f'results[0].{path}')}: "):
        answers.results(found, 1, {0: op})
