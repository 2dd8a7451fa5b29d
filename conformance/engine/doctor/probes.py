"""The probes of ``kipcheck doctor``, in their order, each with advice how to fix a failure."""

import json
import time
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.resources import files
from itertools import cycle, islice
from typing import Any, Final

from kipcheck.conformance.checks.assignment import two_members
from kipcheck.conformance.checks.codec import layouts
from kipcheck.conformance.checks.declare import Operation
from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.edition import edition
from kipcheck.conformance.engine.doctor.report import Examination, Ill, Patient, Told, Tried, Unfit, offered
from kipcheck.conformance.engine.doctor.samples import EDITION, asked_of, assignors, named, plain
from kipcheck.conformance.targets import answers
from kipcheck.conformance.targets.protocol import BATCH, GROUP, MACHINES, Claims
from kipcheck.conformance.targets.transport.framing import Framing
from kipcheck.conformance.targets.transport.pipe import Pipe
from kipcheck.conformance.wire.schema import Layout, messages, spec

SILENCE: Final = 0.2
"""Seconds in which it must not write anything unsolicited."""
LOUD: Final = 1 << 20
"""So many bytes on stderr are too many."""
SPEED: Final = 16
"""The number of batches."""
TEXT: Final = "grüße 中文 \N{PARTY POPPER}"
BIG: Final = 128 << 10
"""Bytes in one case of a big batch."""
ALIKE: Final = 0.93
"""The similarity from which an unknown name is reported as a misspelling."""
GRACE: Final = 5.0
"""Seconds to answer bye, and to exit after it."""
EXAMINATIONS: list[Examination] = []


def examination(tried: str, fix: str, decisive: bool = False) -> Callable[[Tried], Tried]:
    """Registers a probe; its id is the name of the function."""

    def add(look: Tried) -> Tried:
        EXAMINATIONS.append(Examination(look.__name__.replace("_", "-"), tried, fix, look, decisive))
        return look

    return add


# ---- hello and configure


@examination(
    "it starts and waits for hello", "write nothing to stdout before the hello response; log to stderr", decisive=True
)
def starts(patient: Patient) -> str:
    begun = time.monotonic()
    patient.begin()
    time.sleep(SILENCE)
    assert patient.link is not None
    talk = patient.link.talk
    talk.quiet()
    if isinstance(patient.link, Pipe) and patient.link.gone():
        raise talk.ended("crashed", "")
    return f"started within {time.monotonic() - begun - SILENCE:.2f} s"


@examination(
    "it answers hello", "answer in one line of JSON with the keys that testee.schema.json requires", decisive=True
)
def hello(patient: Patient) -> str:
    begun = time.monotonic()
    found = patient.hello = patient.greet()
    if found.unavailable:
        raise Ill(f"it is not available: {found.unavailable}", "install what the message names")
    took = time.monotonic() - begun
    return f"{found.name} {found.version}, {found.language}, protocol 1, within {took:.2f} s"


@examination("the hello response matches the schema", "compare with testee.schema.json at the given path")
def schema(patient: Patient) -> str:
    try:
        validator = import_module("jsonschema").Draft202012Validator
    except ImportError:
        raise Unfit("jsonschema is not installed here") from None
    whole = json.loads((files("kipcheck.conformance.targets") / "testee.schema.json").read_text("utf-8"))
    asked = {"$ref": "#/$defs/helloAnswer", "$defs": whole["$defs"]}
    for wrong in validator(asked).iter_errors(patient.said):
        raise Ill(f"hello{wrong.json_path.removeprefix('$')}: {wrong.message}")
    return "it matches"


@examination(
    "hello identifies the testee",
    "give name and version of the tested code, and the URL of its issue tracker in issues",
)
def identity(patient: Patient) -> str:
    assert patient.hello is not None
    empty = [key for key in ("name", "version", "language") if not getattr(patient.hello, key).strip()]
    if empty:
        raise Ill(f"empty: {', '.join(empty)}")
    return f"issues: {patient.hello.issues}" if patient.hello.issues else "no URL for issues is given"


@examination(
    "it supports a role with checks", f"support one of {', '.join(each.value for each in answers.NEEDS)}", decisive=True
)
def roles(patient: Patient) -> str:
    assert patient.hello is not None
    played = [each.value for each in Role if each in patient.hello.roles and each in answers.NEEDS]
    others = [each.value for each in Role if each in patient.hello.roles and each not in answers.NEEDS]
    if not played:
        raise Ill(f"no operation exists for {', '.join(others)}")
    return ", ".join(played) + (f"; no operation exists for {', '.join(others)}" if others else "")


@examination("its claims are known", "use kipcheck's spelling, and claim only existing versions")
def capabilities(patient: Patient) -> str:
    assert patient.hello is not None
    claims = patient.hello.claims
    known = set(messages(edition(EDITION)))
    for stranger in sorted({*claims.messages} - known):
        if meant := get_close_matches(stranger, known - {*claims.messages}, 1, ALIKE):
            raise Ill(f"unknown message {stranger}: did you mean {meant[0]}?")
    if strangers := [*({*claims.assignors} - {*assignors()}), *({*claims.machines} - {*MACHINES})]:
        there = f"{', '.join(assignors())}; {', '.join(MACHINES)}"
        raise Ill(f"unknown: {', '.join(strangers)}; known are {there}")
    if claims.messages and not known & {*claims.messages}:
        raise Ill("kipcheck knows none of the claimed messages")
    for name in sorted({*claims.messages} & known):
        (low, high), span = claims.messages[name], spec(edition(EDITION), name).versions
        if span.high is not None and (high < span.low or low > span.high):
            raise Ill(f"{name} {low}-{high}: the versions are {span.low}-{span.high}")
        if stray := [each for each in claims.missing.get(name, ()) if not low < each < high]:
            raise Ill(f"missing.{name}: {stray[0]} is not between {low} and {high}")
    counted = {"messages": known & {*claims.messages}, "assignors": claims.assignors, "machines": claims.machines}
    found = ", ".join(f"{name}: {len(each)}" for name, each in counted.items() if each)
    others = len({*claims.messages} - known)
    return f"{found}{f'; {others} messages are unknown to kipcheck' if others else ''}"


@examination("an unknown role is unsupported", 'answer {"type": "configure", "unsupported": "why"}')
def unknown_role(patient: Patient) -> str:
    return _turned_away(patient, "wizard", EDITION)


@examination(
    "an unknown edition is unsupported", 'answer {"type": "configure", "unsupported": "why"} for unknown editions'
)
def unknown_edition(patient: Patient) -> str:
    assert patient.hello is not None
    role = next(each for each in answers.NEEDS if each in patient.hello.roles)
    return _turned_away(patient, role.value, "no-such-edition")


def _turned_away(patient: Patient, role: str, edition_name: str) -> str:
    _alive(patient)
    why = answers.configured(patient.exchange({"type": "configure", "role": role, "edition": edition_name}))
    if why is None:
        raise Ill("it answers ok")
    return f"answered with unsupported: {why}"


def _alive(patient: Patient) -> None:
    if patient.link is None or patient.link.over:
        patient.begin()
        patient.greet()


@examination("it accepts configure for each of its roles", 'answer {"type": "configure", "ok": true}', decisive=True)
def configure(patient: Patient) -> str:
    found = [role.value for role in _roles(patient)]
    for role in _roles(patient):
        patient.ready(role)
    return ", ".join(found)


def _claims(patient: Patient) -> Claims:
    assert patient.hello is not None
    return patient.hello.claims


def _roles(patient: Patient) -> list[Role]:
    assert patient.hello is not None
    return [each for each in answers.NEEDS if each in patient.hello.roles]


# ---- batches


@examination("it answers a batch without cases", 'answer {"type": "results", "id": the batch\'s, "results": []}')
def empty_batch(patient: Patient) -> str:
    patient.ready()
    patient.batch()
    return "answered with no results"


@examination(
    f"it answers a batch of {BATCH} cases",
    "give one result for each case, with its n, in any order, with the batch's id",
)
def full_batch(patient: Patient) -> str:
    for role in _roles(patient):
        patient.ready(role)
        patient.batch(*islice(cycle(asked_of(_claims(patient), role)), BATCH))
    return "all answered" + ("" if patient.in_order else ", out of order, which is allowed")


@examination("it answers each claim once", "support it, or claim a smaller range; name inexpressible cases in limits")
def claims(patient: Patient) -> str:
    assert patient.hello is not None
    count, limits = 0, patient.hello.claims.limits
    for role in _roles(patient):
        patient.ready(role)
        questions = list(asked_of(_claims(patient), role))
        for start in range(0, len(questions), BATCH):
            some = questions[start : start + BATCH]
            for asked, result in zip(some, patient.batch(*some), strict=True):
                count += 1
                if result["status"] == "unsupported" and result.get("capability") not in limits:
                    raise Ill(f"{named(asked)} is claimed, but answered with unsupported: {result.get('message', '')}")
                if result["status"] in ("internal", "died"):
                    raise Ill(f"{named(asked)}: {result['status']}, {result.get('message', '')}")
    return f"{count} answered"


@examination("it answers equal operations equally", "keep no state from one case to the next")
def repeated(patient: Patient) -> str:
    for role in _roles(patient):
        patient.ready(role)
        some = list(islice(asked_of(_claims(patient), role), 8))
        first, second = (patient.batch(*some) for _ in range(2))
        for asked, before, after in zip(some, first, second, strict=True):
            if plain(before) != plain(after):
                raise Ill(f"{named(asked)}: first {plain(before)!s:.100}, then {plain(after)!s:.100}")
    return "equal answers"


@examination("an unknown operation is unsupported", 'answer {"n": n, "status": "unsupported"} and continue')
def unknown_operation(patient: Patient) -> str:
    patient.ready()
    return _unsupported(patient, {"op": "enchant", "message": "Nothing", "version": 0})


@examination("an unknown message or assignor is unsupported", 'answer {"n": n, "status": "unsupported"} and continue')
def unknown_message(patient: Patient) -> str:
    if Role.CODEC in _roles(patient):
        patient.ready(Role.CODEC)
        _unsupported(patient, {"op": "decode", "message": "Nothing", "version": 0, "hex": ""})
    if Role.LEADER in _roles(patient):
        patient.ready(Role.LEADER)
        _unsupported(patient, two_members("first-come", "t"))
    return "unsupported"


def _unsupported(patient: Patient, op: Operation) -> str:
    (result,) = patient.batch(op)
    if result["status"] != "unsupported":
        raise Ill(f"{named(op)} is answered with {plain(result)!s:.100}")
    return "unsupported"


@examination("a request of an unknown type is unsupported", 'answer {"type": "unsupported"} and continue')
def unknown_type(patient: Patient) -> str:
    patient.ready()
    told = patient.exchange({"type": "sing", "song": "any"})
    if told.get("type") != "unsupported":
        raise Ill(f"answered with {told!s:.100}")
    patient.batch()
    return "unsupported"


@examination("it answers an incomplete case", "catch all exceptions of a case, and answer internal or rejected")
def incomplete_case(patient: Patient) -> str:
    for role in _roles(patient):
        patient.ready(role)
        asked = next(asked_of(_claims(patient), role))
        patient.batch({"op": asked["op"], "message": asked.get("message", ""), "version": asked.get("version", 0)})
    return "answered"


@examination("it ignores unknown keys", "ignore keys that a later protocol version may add")
def unknown_keys(patient: Patient) -> str:
    patient.ready()
    assert patient.role is not None
    asked = next(asked_of(_claims(patient), patient.role))
    (before,), (after,) = patient.batch(asked), patient.batch({**asked, "novelty": [None]})
    if plain(before) != plain(after):
        raise Ill(f"answered with {plain(after)!s:.100} instead of {plain(before)!s:.100}")
    return "ignored"


@examination("it answers a big batch", "read complete lines of up to 16 MiB, and write complete responses")
def big_batch(patient: Patient) -> str:
    if Role.CODEC not in _roles(patient):
        raise Unfit("it does not support the role codec")
    patient.ready(Role.CODEC)
    asked = [each for each in islice(cycle(asked_of(_claims(patient), Role.CODEC)), 8) if each["op"] == "encode"]
    patient.batch(*({**each, "op": "decode", "hex": "ff" * BIG} for each in asked))
    return f"{len(asked) * BIG * 2 >> 20} MiB"


@examination("it keeps text beyond ASCII", "read and write UTF-8, whatever the locale is")
def unicode(patient: Patient) -> str:
    if Role.CODEC in _roles(patient) and (found := _with_text(patient)) is not None:
        layout, name = found
        patient.ready(Role.CODEC)
        value = {**layout.defaults(), name: TEXT}
        about = {"message": layout.message, "version": layout.version}
        written, read = patient.batch(
            {"op": "encode", **about, "value": layout.codec.to_json(value)},
            {"op": "decode", **about, "hex": layout.encode(value).hex()},
        )
        if written["status"] == "accepted":
            _is_text(bytes.fromhex(written["hex"]), TEXT.encode(), f"encode {layout.message}", written)
        if read["status"] == "accepted":
            _is_text(read["value"].get(name, ""), TEXT, f"decode {layout.message}", read)
        if "accepted" not in (written["status"], read["status"]):
            raise Unfit(f"{layout.message} is refused with {TEXT}")
        return f"kept in {layout.message}.{name}"
    sample = next(asked_of(_claims(patient), Role.LEADER), {})
    if Role.LEADER in _roles(patient) and sample.get("op") == "assign":
        patient.ready(Role.LEADER)
        (result,) = patient.batch(two_members(sample["assignor"], TEXT))
        topics = [topic for each in result.get("assignment", ()) for topic, _ in each["partitions"]]
        _is_text(topics, TEXT, "assign", result)
        return "kept in the name of a topic"
    raise Unfit("its claims contain no text")


def _is_text(found: Any, wanted: Any, what: str, result: Mapping[str, Any]) -> None:
    if wanted not in found:
        raise Ill(f"{what}: {TEXT!r} is not in {plain(result)!s:.100}")


def _with_text(patient: Patient) -> tuple[Layout, str] | None:
    for layout in layouts(_claims(patient)):
        for slot in layout.slots:
            if slot.type == "string" and not slot.array and slot.tag is None:
                return layout, slot.name
    return None


@examination("each case starts with a new state", "start with a new state when the case of an operation changes")
def afresh(patient: Patient) -> str:
    before, after = 1 << 30, (1 << 30) + 1
    if Role.CONTROLLER in _roles(patient):
        patient.ready(Role.CONTROLLER)
        patient.batch({"op": "broker-up", "broker": 1, "low": 1, "high": 3, "case": before})
        patient.batch({"op": "update", "level": 3, "allow_downgrade": False, "case": before})
        (told,) = patient.batch({"op": "describe", "case": after})
        if told.get("level") != 0:
            raise Ill(f"a new case starts with the state {plain(told)}")
        return "it does"
    if GROUP in _claims(patient).machines:
        patient.ready(Role.COORDINATOR)
        join, describe = asked_of(_claims(patient), Role.COORDINATOR)
        patient.batch({**join, "case": before})
        (told,) = patient.batch({**describe, "case": after})
        if any(each.get("members") for each in told.get("answers", ())):
            raise Ill(f"a new case starts with the state {plain(told)!s:.100}")
        return "it does"
    raise Unfit("it supports no machine that would show it")


# ---- output and shutdown


@examination("it writes little to stderr", "log less: kipcheck reads every byte")
def noise(patient: Patient) -> str:
    assert patient.link is not None
    size = patient.noise + patient.link.talk.noise_bytes
    if size > LOUD:
        raise Ill(f"{size} bytes so far")
    return f"{size} bytes so far"


@examination("speed", "")
def speed(patient: Patient) -> str:
    patient.ready()
    assert patient.role is not None
    some = list(islice(cycle(asked_of(_claims(patient), patient.role)), BATCH))
    begun = time.monotonic()
    for _ in range(SPEED):
        patient.batch(*some)
    return Told(f"{SPEED * BATCH / (time.monotonic() - begun):.0f} cases/s in batches of {BATCH}")


@examination("bye", 'answer {"type": "bye"} and exit')
def bye(patient: Patient) -> str:
    patient.ready()
    link = patient.link
    assert link is not None
    told = patient.exchange({"type": "bye"})
    if told.get("type") != "bye":
        raise Ill(f"answered with {told!s:.100}")
    if not isinstance(link, Pipe):
        patient.end()
        return "answered"
    begun = time.monotonic()
    if (trouble := link.leave(GRACE)) or link.over is False:
        raise Ill(trouble)
    return f"answered, and exited within {time.monotonic() - begun:.2f} s"


@examination("it gives the same hello after a restart", "give the same hello at every start")
def second_life(patient: Patient) -> str:
    patient.begin()
    again = patient.greet()
    if again != patient.hello:
        raise Ill("the hello after a restart differs")
    return "the same hello"


@examination(
    "frames",
    "after the response to configure, prefix each message, in both directions, with its length (u32, big-endian)",
)
def frames(patient: Patient) -> str:
    if Framing.FRAMES not in offered(patient.said):
        raise Unfit("it does not offer frames")
    patient.end()
    patient.ready(framing=Framing.FRAMES)
    patient.batch()
    patient.batch(*islice(asked_of(_claims(patient), patient.role or Role.CODEC), 8))
    told = patient.exchange({"type": "bye"})
    patient.end()
    return f"frames work from configure to {told.get('type')}"


@examination("it exits at the end of stdin", "exit when stdin ends, because the parent process may have ended")
def end_of_stdin(patient: Patient) -> str:
    patient.end()
    patient.ready()
    if not isinstance(patient.link, Pipe):
        raise Unfit("kipcheck did not start it")
    if trouble := patient.link.leave(GRACE):
        raise Ill(trouble)
    return "it exits"
