"""The probes of ``kipcheck doctor``, in their order, each with advice how to fix a failure."""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from importlib.resources import files
from itertools import cycle, islice
from typing import Any, Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.nearest import nearest
from kipcheck.conformance.engine.doctor import report, sample_probes
from kipcheck.conformance.engine.doctor.samples import EDITION, asked_of, assignors, named, plain, renamed
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.checks import FAMILIES
from kipcheck.conformance.protocols.declare.check import Operation
from kipcheck.conformance.targets import answers
from kipcheck.conformance.targets.claimed_layouts import claimed_layouts
from kipcheck.conformance.targets.protocol import BATCH, OPERATIONS, Claims
from kipcheck.conformance.targets.transport.framing import Framing
from kipcheck.conformance.targets.transport.pipe import Pipe
from kipcheck.conformance.wire.schema import Layout, messages, spec

SILENCE_S: Final = 0.2
"""Seconds in which it must not write anything unsolicited."""
MOST_STDERR: Final = 1 << 20
"""So many bytes on stderr are too many."""
SPEED_BATCHES: Final = 16
"""The number of batches."""
TEXT: Final = "grüße 中文 \N{PARTY POPPER}"
BIG: Final = 128 << 10
"""Bytes in one case of a big batch."""
SIMILARITY: Final = 0.93
"""The similarity from which an unknown name is reported as a misspelling."""
BYE_S: Final = 5.0
"""Seconds to answer bye, and to exit after it."""
PROBES: list[report.Probe] = []


def probe(
    tried: str, fix: str, decisive: bool = False, usual: bool = False
) -> Callable[[report.ProbeFunction], report.ProbeFunction]:
    """Registers a probe; its id is the name of the function."""

    def add(look: report.ProbeFunction) -> report.ProbeFunction:
        PROBES.append(report.Probe(look.__name__.replace("_", "-"), tried, fix, look, decisive, usual))
        return look

    return add


# ---- hello and configure


@probe(
    "it starts and waits for hello", "write nothing to stdout before the hello response; log to stderr", decisive=True
)
def starts(testee: report.TesteeUnderTest) -> str:
    started_at = time.monotonic()
    testee.start()
    time.sleep(SILENCE_S)
    assert testee.link is not None
    channel = testee.link.channel
    channel.quiet()
    if isinstance(testee.link, Pipe) and testee.link.gone():
        raise channel.ended("crashed", "")
    return f"started within {time.monotonic() - started_at - SILENCE_S:.2f} s"


@probe("it answers hello", "answer in one line of JSON with the keys that testee.schema.json requires", decisive=True)
def hello(testee: report.TesteeUnderTest) -> str:
    started_at = time.monotonic()
    found = testee.hello = testee.send_hello()
    if found.unavailable:
        raise report.ProbeFailed(f"it is not available: {found.unavailable}", "install what the message names")
    took = time.monotonic() - started_at
    return f"{found.name} {found.version}, {found.language}, protocol 1, within {took:.2f} s"


@probe("the hello response matches the schema", "compare with testee.schema.json at the given path")
def schema(testee: report.TesteeUnderTest) -> str:
    try:
        validator = import_module("jsonschema").Draft202012Validator
    except ImportError:
        raise report.Unsuitable("jsonschema is not installed here") from None
    schema_file = json.loads((files("kipcheck.conformance.targets") / "testee.schema.json").read_text("utf-8"))
    requested = {"$ref": "#/$defs/helloAnswer", "$defs": schema_file["$defs"]}
    for wrong in validator(requested).iter_errors(testee.hello_message):
        raise report.ProbeFailed(f"hello{wrong.json_path.removeprefix('$')}: {wrong.message}")
    return "it matches"


@probe(
    "hello identifies the testee",
    "give name and version of the tested code, and the URL of its issue tracker in issues",
)
def identity(testee: report.TesteeUnderTest) -> str:
    assert testee.hello is not None
    empty = [key for key in ("name", "version", "language") if not getattr(testee.hello, key).strip()]
    if empty:
        raise report.ProbeFailed(f"empty: {', '.join(empty)}")
    return f"issues: {testee.hello.issues}" if testee.hello.issues else "no URL for issues is given"


@probe(
    "it supports a role with checks",
    f"support one of {', '.join(each.value for each in registry.roles())}",
    decisive=True,
)
def roles(testee: report.TesteeUnderTest) -> str:
    assert testee.hello is not None
    played = [each.value for each in Role if each in testee.hello.roles and each in registry.roles()]
    others = [each.value for each in Role if each in testee.hello.roles and each not in registry.roles()]
    if not played:
        raise report.ProbeFailed(f"no operation exists for {', '.join(others)}")
    return ", ".join(played) + (f"; no operation exists for {', '.join(others)}" if others else "")


@probe("its claims are known", "use kipcheck's spelling, and claim only existing versions")
def capabilities(testee: report.TesteeUnderTest) -> str:
    assert testee.hello is not None
    claims = testee.hello.claims
    known = set(messages(edition(EDITION)))
    for stranger in sorted({*claims.messages} - known):
        if similar := nearest(stranger, sorted(known - {*claims.messages}), SIMILARITY):
            raise report.ProbeFailed(f"unknown message {stranger}: did you mean {similar[0]}?")
    if strangers := [*({*claims.assignors} - {*assignors()}), *({*claims.machines} - {*registry.machines()})]:
        there = f"{', '.join(assignors())}; {', '.join(registry.machines())}"
        raise report.ProbeFailed(f"unknown: {', '.join(strangers)}; known are {there}")
    if claims.messages and not known & {*claims.messages}:
        raise report.ProbeFailed("kipcheck knows none of the claimed messages")
    for name in sorted({*claims.messages} & known):
        (low, high), span = claims.messages[name], spec(edition(EDITION), name).versions
        if span.high is not None and (high < span.low or low > span.high):
            raise report.ProbeFailed(f"{name} {low}-{high}: the versions are {span.low}-{span.high}")
        if stray := [each for each in claims.missing.get(name, ()) if not low < each < high]:
            raise report.ProbeFailed(f"missing.{name}: {stray[0]} is not between {low} and {high}")
    counted = {"messages": known & {*claims.messages}, "assignors": claims.assignors, "machines": claims.machines}
    found = ", ".join(f"{name}: {len(each)}" for name, each in counted.items() if each)
    others = len({*claims.messages} - known)
    operations = _operations(claims)
    return f"{found}{f'; {others} messages are unknown to kipcheck' if others else ''}{operations}"


def _operations(claims: Claims) -> str:
    """Which operations are claimed for how many messages, if not all for each."""
    if not claims.operations:
        return ""
    counted = Counter(claims.operations.get(name, OPERATIONS) for name in claims.messages)
    named = {OPERATIONS: "all operations"}
    found = (f"{named.get(each) or ' and '.join(each)} of {number}" for each, number in counted.most_common())
    return f"; {', '.join(found)}"


@probe("an unknown role is unsupported", 'answer {"type": "configure", "unsupported": "why"}')
def unknown_role(testee: report.TesteeUnderTest) -> str:
    return _rejected(testee, "wizard", EDITION)


@probe("an unknown edition is unsupported", 'answer {"type": "configure", "unsupported": "why"} for unknown editions')
def unknown_edition(testee: report.TesteeUnderTest) -> str:
    assert testee.hello is not None
    role = next(each for each in registry.roles() if each in testee.hello.roles)
    return _rejected(testee, role.value, "no-such-edition")


def _rejected(testee: report.TesteeUnderTest, role: str, edition_name: str) -> str:
    _ensure_running(testee)
    why = answers.configured(testee.exchange({"type": "configure", "role": role, "edition": edition_name}))
    if why is None:
        raise report.ProbeFailed("it answers ok")
    return f"answered with unsupported: {why}"


def _ensure_running(testee: report.TesteeUnderTest) -> None:
    if testee.link is None or testee.link.over:
        testee.start()
        testee.send_hello()


@probe("it accepts configure for each of its roles", 'answer {"type": "configure", "ok": true}', decisive=True)
def configure(testee: report.TesteeUnderTest) -> str:
    found = [role.value for role in _roles(testee)]
    for role in _roles(testee):
        testee.ready(role)
    return ", ".join(found)


def _claims(testee: report.TesteeUnderTest) -> Claims:
    assert testee.hello is not None
    return testee.hello.claims


def _roles(testee: report.TesteeUnderTest) -> list[Role]:
    assert testee.hello is not None
    return [each for each in registry.roles() if each in testee.hello.roles]


# ---- batches


@probe("it answers a batch without cases", 'answer {"type": "results", "id": the batch\'s, "results": []}')
def empty_batch(testee: report.TesteeUnderTest) -> str:
    testee.ready()
    testee.batch()
    return "answered with no results"


@probe(
    f"it answers a batch of {BATCH} cases",
    "give one result for each case, with its n, in any order, with the batch's id",
    usual=True,
)
def full_batch(testee: report.TesteeUnderTest) -> str:
    for role in _roles(testee):
        testee.ready(role)
        testee.batch(*islice(cycle(asked_of(_claims(testee), role)), BATCH))
    return "all answered" + ("" if testee.in_order else ", out of order, which is allowed")


@probe(
    "it answers each claim once", "support it, or claim a smaller range; name inexpressible cases in limits", usual=True
)
def claims(testee: report.TesteeUnderTest) -> str:
    assert testee.hello is not None
    count, limits = 0, testee.hello.claims.limits
    for role in _roles(testee):
        testee.ready(role)
        questions = list(asked_of(_claims(testee), role))
        for start in range(0, len(questions), BATCH):
            some = questions[start : start + BATCH]
            for requested, result in zip(some, testee.batch(*some), strict=True):
                count += 1
                if result["status"] == "unsupported" and result.get("capability") not in limits:
                    raise report.ProbeFailed(
                        f"{named(requested)} is claimed, but answered with unsupported: {result.get('message', '')}"
                    )
                if result["status"] in ("internal", "died"):
                    raise report.ProbeFailed(f"{named(requested)}: {result['status']}, {result.get('message', '')}")
    return f"{count} answered"


@probe("it answers equal operations equally", "keep no state from one case to the next", usual=True)
def repeated(testee: report.TesteeUnderTest) -> str:
    for role in _roles(testee):
        testee.ready(role)
        some = list(islice(asked_of(_claims(testee), role), 8))
        first, second = (testee.batch(*some) for _ in range(2))
        for requested, before, after in zip(some, first, second, strict=True):
            if plain(before) != plain(after):
                raise report.ProbeFailed(
                    f"{named(requested)}: first {plain(before)!s:.100}, then {plain(after)!s:.100}"
                )
    return "equal answers"


probe(
    "it encodes and decodes a sample of each message",
    "name each field as kipcheck decode prints it, and let the library do the rest",
    usual=True,
)(sample_probes.samples)


@probe("an unknown operation is unsupported", 'answer {"n": n, "status": "unsupported"} and continue')
def unknown_operation(testee: report.TesteeUnderTest) -> str:
    testee.ready()
    return _unsupported(testee, {"op": "enchant", "message": "Nothing", "version": 0})


@probe("an unknown message or assignor is unsupported", 'answer {"n": n, "status": "unsupported"} and continue')
def unknown_message(testee: report.TesteeUnderTest) -> str:
    if Role.CODEC in _roles(testee):
        testee.ready(Role.CODEC)
        _unsupported(testee, {"op": "decode", "message": "Nothing", "version": 0, "hex": ""})
    if Role.LEADER in _roles(testee):
        testee.ready(Role.LEADER)
        known = replace(_claims(testee), assignors=assignors())
        _unsupported(testee, {**next(asked_of(known, Role.LEADER)), "assignor": "first-come"})
    return "unsupported"


def _unsupported(testee: report.TesteeUnderTest, op: Operation) -> str:
    (result,) = testee.batch(op)
    if result["status"] != "unsupported":
        raise report.ProbeFailed(f"{named(op)} is answered with {plain(result)!s:.100}")
    return "unsupported"


@probe("a request of an unknown type is unsupported", 'answer {"type": "unsupported"} and continue')
def unknown_type(testee: report.TesteeUnderTest) -> str:
    testee.ready()
    response = testee.exchange({"type": "sing", "song": "any"})
    if response.get("type") != "unsupported":
        raise report.ProbeFailed(f"answered with {response!s:.100}")
    testee.batch()
    return "unsupported"


@probe("it answers an incomplete case", "catch all exceptions of a case, and answer internal or rejected")
def incomplete_case(testee: report.TesteeUnderTest) -> str:
    for role in _roles(testee):
        testee.ready(role)
        requested = next(asked_of(_claims(testee), role))
        testee.batch(
            {"op": requested["op"], "message": requested.get("message", ""), "version": requested.get("version", 0)}
        )
    return "answered"


@probe("it ignores unknown keys", "ignore keys that a later protocol version may add")
def unknown_keys(testee: report.TesteeUnderTest) -> str:
    testee.ready()
    assert testee.role is not None
    requested = next(asked_of(_claims(testee), testee.role))
    (before,), (after,) = testee.batch(requested), testee.batch({**requested, "novelty": [None]})
    if plain(before) != plain(after):
        raise report.ProbeFailed(f"answered with {plain(after)!s:.100} instead of {plain(before)!s:.100}")
    return "ignored"


@probe("it answers a big batch", "read complete lines of up to 16 MiB, and write complete responses")
def big_batch(testee: report.TesteeUnderTest) -> str:
    if Role.CODEC not in _roles(testee):
        raise report.Unsuitable("it does not support the role codec")
    testee.ready(Role.CODEC)
    decoded = [each for each in asked_of(_claims(testee), Role.CODEC) if each["op"] == "decode"]
    if not decoded:
        raise report.Unsuitable("it decodes no message that kipcheck knows")
    requested = [*islice(cycle(decoded), 8)]
    testee.batch(*({**each, "hex": "ff" * BIG} for each in requested))
    return f"{len(requested) * BIG * 2 >> 20} MiB"


@probe("it keeps text beyond ASCII", "read and write UTF-8, whatever the locale is")
def unicode(testee: report.TesteeUnderTest) -> str:
    if Role.CODEC in _roles(testee) and (found := _with_text(testee)) is not None:
        layout, name = found
        testee.ready(Role.CODEC)
        value = {**layout.defaults(), name: TEXT}
        about = {"message": layout.message, "version": layout.version}
        operations = (
            {"op": "encode", **about, "value": layout.codec.to_json(value)},
            {"op": "decode", **about, "hex": layout.encode(value).hex()},
        )
        claimed = [each for each in operations if _claims(testee).performs(str(each["op"]), layout.message)]
        results = testee.batch(*claimed)
        for each, result in zip(claimed, results, strict=True):
            if result["status"] == "accepted" and each["op"] == "encode":
                _is_text(bytes.fromhex(result["hex"]), TEXT.encode(), f"encode {layout.message}", result)
            elif result["status"] == "accepted":
                _is_text(result["value"].get(name, ""), TEXT, f"decode {layout.message}", result)
        if all(each["status"] != "accepted" for each in results):
            raise report.Unsuitable(f"{layout.message} is refused with {TEXT}")
        return f"kept in {layout.message}.{name}"
    sample = next(asked_of(_claims(testee), Role.LEADER), {})
    if Role.LEADER in _roles(testee) and sample.get("op") == "assign":
        testee.ready(Role.LEADER)
        (result,) = testee.batch(renamed(sample, sample["topics"][0]["name"], TEXT))
        topics = [topic for each in result.get("assignment", ()) for topic, _ in each["partitions"]]
        _is_text(topics, TEXT, "assign", result)
        return "kept in the name of a topic"
    raise report.Unsuitable("its claims contain no text")


def _is_text(found: Any, expected: Any, what: str, result: Mapping[str, Any]) -> None:
    if expected not in found:
        raise report.ProbeFailed(f"{what}: {TEXT!r} is not in {plain(result)!s:.100}")


def _with_text(testee: report.TesteeUnderTest) -> tuple[Layout, str] | None:
    for layout in claimed_layouts(_claims(testee)):
        for slot in layout.slots:
            if slot.type == "string" and not slot.array and slot.tag is None:
                return layout, slot.name
    return None


probe("who answers for messages that are cut off", "", usual=True)(sample_probes.prefixes)
probe("who answers for trailing bytes", "", usual=True)(sample_probes.trailing)
probe("who answers for leading versions", "", usual=True)(sample_probes.leading)


@probe("each case starts with a new state", "start with a new state when the case of an operation changes")
def afresh(testee: report.TesteeUnderTest) -> str:
    before, after = 1 << 30, (1 << 30) + 1
    for family in FAMILIES:
        found = family.state_probe(_claims(testee)) if family.role in _roles(testee) else None
        if found is not None:
            testee.ready(family.role)
            for each in found.before:
                testee.batch({**each, "case": before})
            (response,) = testee.batch({**found.after, "case": after})
            if not found.is_new(response):
                raise report.ProbeFailed(f"a new case starts with the state {plain(response)!s:.100}")
            return "it does"
    raise report.Unsuitable("it supports no machine that would show it")


# ---- output and shutdown


@probe("it writes little to stderr", "log less: kipcheck reads every byte")
def noise(testee: report.TesteeUnderTest) -> str:
    assert testee.link is not None
    size = testee.stderr_bytes + testee.link.channel.stderr_bytes
    if size > MOST_STDERR:
        raise report.ProbeFailed(f"{size} bytes so far")
    return f"{size} bytes so far"


@probe("speed", "")
def speed(testee: report.TesteeUnderTest) -> str:
    testee.ready()
    assert testee.role is not None
    some = list(islice(cycle(asked_of(_claims(testee), testee.role)), BATCH))
    started_at = time.monotonic()
    for _ in range(SPEED_BATCHES):
        testee.batch(*some)
    return report.Measurement(
        f"{SPEED_BATCHES * BATCH / (time.monotonic() - started_at):.0f} cases/s in batches of {BATCH}"
    )


@probe("bye", 'answer {"type": "bye"} and exit')
def bye(testee: report.TesteeUnderTest) -> str:
    testee.ready()
    link = testee.link
    assert link is not None
    response = testee.exchange({"type": "bye"})
    if response.get("type") != "bye":
        raise report.ProbeFailed(f"answered with {response!s:.100}")
    if not isinstance(link, Pipe):
        testee.stop()
        return "answered"
    started_at = time.monotonic()
    if (trouble := link.leave(BYE_S)) or link.over is False:
        raise report.ProbeFailed(trouble)
    return f"answered, and exited within {time.monotonic() - started_at:.2f} s"


@probe("it gives the same hello after a restart", "give the same hello at every start")
def second_life(testee: report.TesteeUnderTest) -> str:
    testee.start()
    second = testee.send_hello()
    if second != testee.hello:
        raise report.ProbeFailed("the hello after a restart differs")
    return "the same hello"


@probe(
    "frames",
    "after the response to configure, prefix each message, in both directions, with its length (u32, big-endian)",
)
def frames(testee: report.TesteeUnderTest) -> str:
    if Framing.FRAMES not in report.offered(testee.hello_message):
        raise report.Unsuitable("it does not offer frames")
    testee.stop()
    testee.ready(framing=Framing.FRAMES)
    testee.batch()
    testee.batch(*islice(asked_of(_claims(testee), testee.role or Role.CODEC), 8))
    response = testee.exchange({"type": "bye"})
    testee.stop()
    return f"frames work from configure to {response.get('type')}"


@probe("it exits at the end of stdin", "exit when stdin ends, because the parent process may have ended")
def end_of_stdin(testee: report.TesteeUnderTest) -> str:
    testee.stop()
    testee.ready()
    if not isinstance(testee.link, Pipe):
        raise report.Unsuitable("kipcheck did not start it")
    if trouble := testee.link.leave(BYE_S):
        raise report.ProbeFailed(trouble)
    return "it exits"
