"""Testees that crash, hang, lie and babble: what they do is pinned to its case, and nothing else is lost."""

import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.core.values.case import Case, Role, step
from kipcheck.conformance.core.values.history import Died, Lost, Observation, Refused, Replied, Unsupported
from kipcheck.conformance.targets import testee
from kipcheck.conformance.targets.protocol import Broken, Session, Unavailable, Unstable
from kipcheck.conformance.targets.registry import adapter, target, targets_table
from kipcheck.conformance.targets.target_entries import target_entries
from kipcheck.conformance.targets.testee import Limits
from kipcheck.conformance.targets.transport.pipe import Command
from kipcheck.conformance.tests.support.loops import some_by_default

QUICK = Limits(start_s=20, batch_s=1.5, cpu_s=0.3)

TESTEE = """
import json, os, signal, sys, time

def answer(op):
    {answer}
    return {{"status": "accepted", "hex": op["hex"], "value": {{}}}}

for line in sys.stdin:
    said = json.loads(line)
    match said["type"]:
        case "hello":
            reply = {{"type": "hello", "protocol": 1, "name": "scripted", "version": "1", "language": "python",
                      "roles": ["codec"], "capabilities": {{"HeartbeatRequest": [0, 4]}}}}
        case "configure":
            reply = {{"type": "configure", "ok": True}}
        case "batch":
            reply = {{"type": "results", "id": said["id"],
                      "results": [{{"n": each["n"], **answer(each)}} for each in said["cases"]]}}
        case _:
            reply = {{"type": said["type"]}}
    {reply}
    print(json.dumps(reply), flush=True)
"""


@contextmanager
def scripted(tmp_path: Path, answer: str = "pass", reply: str = "pass", limits: Limits = QUICK) -> Iterator[Session]:
    """A testee of a few lines: ``answer`` runs for each case, ``reply`` before each line that is said."""
    script = tmp_path / "testee.py"
    body = TESTEE.format(answer=textwrap.indent(answer, "    ").strip(), reply=textwrap.indent(reply, "    ").strip())
    script.write_text(body)
    with testee.Testee("scripted", Command((sys.executable, str(script)), memory=1 << 30), limits).open(
        "apache", Role.CODEC
    ) as session:
        yield session


def decode(*hexes: str) -> Case:
    steps = tuple(step("codec", "decode", message="HeartbeatRequest", version=0, hex=each) for each in hexes)
    return Case("test", "apache", Role.CODEC, steps)


CASES = [decode(f"{number:02x}") for number in range(10)]


def one(observations: list[tuple[Observation, ...]]) -> list[Observation]:
    return [observation for (observation,) in observations]


def echoed(observation: Observation, case: Case) -> bool:
    return isinstance(observation, Replied) and observation["hex"] == case.steps[0]["hex"]


@pytest.mark.parametrize(
    ("mutant", "cause", "detail"),
    some_by_default(
        [
            ("os.kill(os.getpid(), signal.SIGSEGV)", "crashed", "killed by SIGSEGV"),
            ("os.abort()", "crashed", "killed by SIGABRT"),
            ("sys.exit(3)", "crashed", "left with exit code 3"),
            ("os._exit(0)", "crashed", "left with exit code 0"),
            ("time.sleep(60)", "timeout", "no answer within 1.5 s"),
            ("print('Traceback, or so', flush=True)", "garbled", "not JSON"),
            ("print('[1]', flush=True)", "garbled", "not a JSON object"),
            ("sys.stdout.write('x' * (17 << 20)); sys.stdout.flush()", "garbled", "more than 16 MiB"),
            ("return {'status': 'splendid'}", "garbled", "results[0].status: 'splendid' is not one of"),
            ("return {'n': 99, 'status': 'accepted'}", "garbled", "results[0].n: 99 is not a case of this batch"),
            ("return {'status': 'internal', 'class': 'MemoryError', 'message': ''}", "memory", "MemoryError"),
        ],
        4,
    ),
)
def test_a_death_is_pinned_to_its_case_and_no_other_verdict_is_lost(
    tmp_path: Path, mutant: str, cause: str, detail: str
) -> None:
    with scripted(tmp_path, f'if op["hex"] == "07":\n    {mutant}') as session:
        observations = one(session.run(CASES))
    for number, (observation, case) in enumerate(zip(observations, CASES, strict=True)):
        if number == 7:
            assert isinstance(observation, Died)
            assert (observation.cause, detail in observation.detail) == (cause, True), observation
        else:
            assert echoed(observation, case)


def test_several_deaths_in_one_batch_are_told_apart(tmp_path: Path) -> None:
    with scripted(tmp_path, 'if op["hex"] in ("02", "05"):\n    os.abort()') as session:
        observations = one(session.run(CASES))
    assert [n for n, each in enumerate(observations) if isinstance(each, Died)] == [2, 5]
    assert all(echoed(each, CASES[n]) for n, each in enumerate(observations) if n not in (2, 5))


def test_what_it_wrote_to_stderr_is_kept_as_evidence_and_bounded(tmp_path: Path) -> None:
    noise = "sys.stderr.write('x' * 1000000 + 'the last words'); sys.stderr.flush(); os.abort()"
    with scripted(tmp_path, noise) as session:
        (died,) = one(session.run([decode("00")]))
    assert isinstance(died, Died)
    assert died.evidence.endswith("the last words")
    assert len(died.evidence) <= 8 << 10


def test_a_flood_on_stderr_does_not_stop_the_answers(tmp_path: Path) -> None:
    with scripted(tmp_path, "sys.stderr.write('x' * 300000)") as session:
        assert all(map(echoed, one(session.run(CASES)), CASES))


def test_the_steps_of_a_dying_case_keep_what_came_before_the_death(tmp_path: Path) -> None:
    with scripted(tmp_path, 'if op["hex"] == "07":\n    os.abort()') as session:
        (answers,) = session.run([decode("01", "07", "02")])
    assert isinstance(answers[0], Replied)
    assert isinstance(answers[1], Died)
    assert isinstance(answers[2], Lost)


def test_every_status_is_an_observation(tmp_path: Path) -> None:
    rows = {
        "00": {"status": "rejected", "class": "ValueError", "message": "no", "offset": 3},
        "01": {"status": "unsupported", "message": "not here"},
    }
    with scripted(tmp_path, f'if op["hex"] in {rows}:\n    return {rows}[op["hex"]]') as session:
        refused, unsupported = one(session.run([decode("00"), decode("01")]))
    assert refused == Refused("ValueError", "no", 3)
    assert unsupported == Unsupported("not here")


@pytest.mark.parametrize(
    "reply",
    [
        "reply['results'] = reply['results'][:-1]",
        "reply['results'] = reply['results'] + reply['results'][:1]",
    ],
)
def test_results_that_do_not_fit_their_batch_are_garbage(tmp_path: Path, reply: str) -> None:
    with scripted(tmp_path, reply=f"if 'results' in reply:\n    {reply}") as session:
        (died,) = one(session.run([decode("00")]))
        assert len(session.breaches) == 1
    assert isinstance(died, Died)
    assert died.cause == "garbled"


@pytest.mark.parametrize(
    "reply",
    ["reply['id'] = 999", "reply['results'] = 'all is well'", "reply['type'] = 'result'", "reply.pop('results')"],
)
def test_where_no_case_is_needed_for_garbage_none_is_blamed(tmp_path: Path, reply: str) -> None:
    with scripted(tmp_path, reply=f"if 'results' in reply:\n    {reply}") as session:
        (lost,) = one(session.run([decode("00")]))
        with pytest.raises(Broken, match="also ended at a batch without cases"):
            session.run([decode("00")])
    assert isinstance(lost, Lost)


def test_a_second_answer_to_one_batch_is_noticed(tmp_path: Path) -> None:
    with scripted(tmp_path, reply="if 'results' in reply:\n    print(json.dumps(reply), flush=True)") as session:
        first, second = one(session.run([decode("00")]) + session.run([decode("01")]))
    assert isinstance(first, Replied)
    assert isinstance(second, Died | Replied)
    assert isinstance(second, Died) or second["hex"] == "01"


def test_a_death_that_no_case_repeats_is_a_trouble_of_its_own(tmp_path: Path) -> None:
    flag = tmp_path / "died"
    answer = f'if op["hex"] == "07" and not os.path.exists("{flag}"):\n    open("{flag}", "w").close()\n    os.abort()'
    with scripted(tmp_path, answer) as session:
        observations = one(session.run(CASES))
        assert all(map(echoed, observations, CASES))
        (trouble,) = session.troubles
    assert "one by one none of them did" in trouble


def test_restarts_have_a_budget(tmp_path: Path) -> None:
    few = Limits(start_s=20, batch_s=1.5, restarts=3)
    with scripted(tmp_path, "os.abort()", limits=few) as session:
        observations = one(session.run(CASES))
        assert [type(each) for each in observations] == [Died, Died] + [Lost] * 8
        with pytest.raises(Unstable, match="went down 4 times"):
            session.run(CASES)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("sys.exit(1)", "left with exit code 1"),
        ("print('hello!', flush=True)", "not JSON"),
        ("reply = {}", "type: None, expected hello"),
        ("reply.pop('capabilities', None)", "hello.capabilities: is empty"),
        ("reply.pop('ok', None)", "configure: must have ok"),
    ],
)
def test_a_testee_that_does_not_shake_hands_is_broken(tmp_path: Path, reply: str, why: str) -> None:
    with pytest.raises(Broken, match=why), scripted(tmp_path, reply=reply):
        pass


def test_an_edition_that_the_testee_does_not_play_makes_it_unavailable(tmp_path: Path) -> None:
    reply = "if reply['type'] == 'configure':\n    reply = {'type': 'configure', 'unsupported': 'drafts'}"
    with pytest.raises(Unavailable, match="drafts"), scripted(tmp_path, reply=reply):
        pass


def test_a_program_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(Unavailable), testee.Testee("nobody", Command(("/no/such/program",))).open("apache", Role.CODEC):
        pass


def test_an_unknown_target_names_the_roll() -> None:
    with pytest.raises(LookupError, match=r"unknown target 'nobody'; known: .*kafka-python, .*reference"):
        target("nobody")


def test_a_misspelt_target_has_the_nearest_names() -> None:
    with pytest.raises(LookupError, match=r"unknown target 'kafka-pyton'; the nearest: kafka-python; known: "):
        target("kafka-pyton")


def test_the_table_has_the_roles_of_hello() -> None:
    for row in targets_table():
        if row["available"] and (row["name"] == "reference" or row["name"].startswith("kafka-python")):
            with target(row["name"]).open("apache", Role.CODEC) as session:
                assert sorted(row["roles"]) == sorted(each.value for each in session.info.roles), row["name"]


def test_kafka_python_2_is_listed_without_members() -> None:
    entry = target_entries()["kafka-python"]
    assert list(entry.roles_of("2.3.0")) == ["codec", "leader"]
    assert "member" in entry.roles_of("3.0.0")


@pytest.mark.parametrize("name", ["kafka-python", "aiokafka", "kio"])
@pytest.mark.integration
def test_messages_that_an_entry_omits_are_not_claimed_though_the_library_has_them(name: str) -> None:
    omitted = {f"{family}{kind}" for family in target_entries()[name].omits for kind in ("Request", "Response")}
    assert omitted & adapter(name).claims().messages.keys(), "the library has none of them: remove omits"
    with target(name).open("apache", Role.CODEC) as session:
        assert not omitted & session.info.claims.messages.keys()
        assert session.info.claims.has("JoinGroupRequest", 1)


CODECS = sorted(name for name, entry in target_entries().items() if Role.CODEC.value in entry.roles)


@pytest.mark.parametrize("name", some_by_default(CODECS, 2))
def test_every_target_of_the_roll_opens_and_survives_nonsense(name: str) -> None:
    try:
        made = target(name, Limits(cpu_s=2))
    except Unavailable as missing:
        pytest.skip(str(missing))
    with made.open("apache", Role.CODEC) as session:
        assert "JoinGroupRequest" in session.info.claims.messages
        _, version = session.info.claims.messages["JoinGroupResponse"]
        nonsense = step("codec", "decode", message="JoinGroupResponse", version=version, hex="ff")
        nothing = step("codec", "decode", message="Nothing", version=0, hex="")
        asked = [Case("test", "apache", Role.CODEC, (each,)) for each in (nonsense, nothing)]
        refused, unknown = one(session.run(asked))
    assert isinstance(refused, Refused)
    assert isinstance(unknown, Unsupported)


Ask = Callable[..., Observation]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """One step, said to kafka-python."""
    with target("kafka-python").open("apache", Role.CODEC) as session:

        def asking(verb: str, message: str, version: int, **body: Any) -> Observation:
            asked = step("codec", verb, message=message, version=version, **body)
            ((observation,),) = session.run([Case("test", "apache", Role.CODEC, (asked,))])
            return observation

        yield asking


def test_kafka_python_shows_null_and_empty_apart_in_both_of_its_codecs(ask: Ask) -> None:
    for user_data, wanted in (("ffffffff", None), ("00000000", "")):
        seen = ask("decode", "ConsumerProtocolSubscription", 0, hex="0000" + "00000000" + user_data)
        assert isinstance(seen, Replied)
        assert seen["value"] == {"topics": [], "userData": wanted}
    for instance, shown in (("00", None), ("01", "")):
        seen = ask("decode", "HeartbeatRequest", 4, hex="01" + "00000000" + "01" + instance + "00")
        assert isinstance(seen, Replied)
        assert seen["value"]["groupInstanceId"] == shown


def test_kafka_python_sets_of_bits_are_the_number_that_the_wire_has(ask: Ask) -> None:
    head = "00000000" + "00000000" + "ffff" + "00000000" + "00000000"
    for bits, number in (("80000000", -(1 << 31)), ("00000005", 5), ("ffffffff", -1)):
        seen = ask("decode", "MetadataResponse", 8, hex=head + bits)
        assert isinstance(seen, Replied)
        assert seen["value"]["clusterAuthorizedOperations"] == number
        written = ask("encode", "MetadataResponse", 8, value=seen["value"])
        assert written == Replied((("hex", head + bits),))


def test_kafka_python_headers_are_read_and_written(ask: Ask) -> None:
    value = {"requestApiKey": 18, "requestApiVersion": 3, "correlationId": 7, "clientId": None}
    written = ask("encode", "RequestHeader", 2, value=value)
    assert written == Replied((("hex", "0012000300000007ffff00"),))
    seen = ask("decode", "RequestHeader", 2, hex="0012000300000007ffff00")
    assert isinstance(seen, Replied)
    assert seen["value"] == value


def test_kafka_python_says_what_it_does_not_know_of_a_value(ask: Ask) -> None:
    seen = ask("encode", "HeartbeatResponse", 0, value={"errorCode": 0, "novelty": 1})
    assert isinstance(seen, Refused)
    assert "novelty" in seen.why
