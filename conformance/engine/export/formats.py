"""Exports a stored failure as a program, a test, a packet capture or bytes, which need no run of kipcheck."""

import json
import re
import shlex
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from pprint import pformat
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.ledger import FiledFailure
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.untrusted_text import clean, harmless, harmless_json, is_data, one_line
from kipcheck.conformance.engine.findings import failures
from kipcheck.conformance.protocols.declare.invariant import INVARIANTS, RightAnswer
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import PAYLOAD, operation
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.framing import encode_request, frame, header_version
from kipcheck.conformance.wire.pcap import Sent, pcap
from kipcheck.conformance.wire.schema import spec


class Impossible(Exception):
    """The form cannot represent this failure. The message gives the reason, and a form that can."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The content of ``failures/ID.json``."""

    line: FiledFailure
    case: Case
    trusted: bool = False
    """Whether a command in the file may become part of a program."""

    @property
    def id(self) -> str:
        return self.line.id

    @property
    def guilty(self) -> int:
        return self.line.guilty_step

    @property
    def target(self) -> str:
        """The target that a program uses by default; empty if the file names a command that is not trusted."""
        named = self.line.opened
        return named if self.trusted or is_data(named) else ""


def load(path: Path, trusted: bool = False) -> Stored:
    """``trusted``: a command in the file may become part of a program.

    Errors: OSError; ValueError with the file and the reason.
    """
    line, case = failures.load(path)
    try:
        if missing := [key for key in NEEDED if key not in line.present]:
            raise ValueError(f"{', '.join(missing)} must be there")
        if not 0 <= line.guilty_step < len(case.steps):
            raise ValueError(f"guilty_step is {line.guilty_step!r}, and there are {len(case.steps)} steps")
    except (ValueError, KeyError, TypeError) as wrong:
        raise ValueError(f"{path} does not contain a failure: {wrong}") from None
    return Stored(line, case, trusted)


NEEDED: Final = ("sentence", "why", "requirements", "guilty_step")


# ---- programs

STANDALONE: Final = "standalone.py"
MARK: Final = "# ---- from here on as it stands\n"


def as_script(stored: Stored) -> bytes:
    """A program that runs the case with a testee, and exits with 1 while the failure occurs. Errors: ``Impossible``."""
    return _program(stored, without="def test_it_fails_no_more(")


def as_pytest(stored: Stored) -> bytes:
    """A test file. It needs a testee; and kipcheck, if only an invariant can judge the answer, as of an assignment."""
    try:
        return _program(stored, without="def main(")
    except Impossible:
        return _judged(stored)


def _program(stored: Stored, without: str) -> bytes:
    told = (files("kipcheck.conformance.engine.export") / STANDALONE).read_text("utf-8")
    kept = told.partition(MARK)[2].replace('if __name__ == "__main__":\n    sys.exit(main())\n', "")
    parts = [part for part in kept.split("\n\n\n") if part.strip() and without not in part]
    constants = {
        "COMMAND": _command(stored.target),
        "ROLE": stored.case.role.value,
        "EDITION": stored.case.edition,
        "STEPS": [operation(step) for step in stored.case.steps],
        "GUILTY": stored.guilty,
        "WANTED": wanted(stored),
    }
    lines = [f"{name} = {_literal(pformat(value, width=110, sort_dicts=False))}" for name, value in constants.items()]
    imports = "import json\nimport os\nimport shlex\nimport subprocess\nimport sys"
    if any(re.search(r"\b(inf|nan)\b", line) for line in lines):  # JSON may hold them; Python has no literal
        imports += "\nfrom math import inf, nan"
    end = [] if without == "def main(" else ['if __name__ == "__main__":\n    sys.exit(main())']
    head = f'"""{_about(stored)}\n\n{_how(stored, without)}\n"""\n\n{imports}\n\n' + "\n".join(lines)
    return ("\n\n\n".join([head, *(part.strip("\n") for part in parts), *end]) + "\n").encode()


def _literal(source: str) -> str:
    """The same literal, in which a CI service that prints it sees no command: such signs stand in strings alone."""
    return re.sub(r"##(?=[A-Za-z]*\[)", r"\\x23#", source)


def _how(stored: Stored, without: str) -> str:
    says = "" if without == "def main(" else " It leaves with 1 while it fails, with 0 once it is gone."
    asks = "Stand-alone: it asks the testee that is started by COMMAND, or by KIPCHECK_TESTEE of the environment."
    if not _command(stored.target):
        asks = "Stand-alone: it asks the testee that KIPCHECK_TESTEE of the environment starts, which has to be given."
    return _wrapped(asks + says)


def _about(stored: Stored) -> str:
    line = stored.line
    asked = [f"{each.id} ({each.clause}): {each.text}" for each in line.requirements]
    version = f" {line.version}" if line.version else ""
    paragraphs = [
        f"{line.target}{version}: {line.why}", f"Broken: {line.sentence}", *asked,
        f"kipcheck {line.id}, case {stored.case.id}.",
    ]  # fmt: skip
    return "\n\n".join(map(_wrapped, paragraphs))


def _wrapped(text: str) -> str:
    safe = clean(text).replace("\\", "\\\\").replace('"""', "'''")
    return harmless("\n".join(textwrap.wrap(safe, 110, break_long_words=False, break_on_hyphens=False)))


def _command(target: str) -> list[str]:
    """Of the testee; none for one that listens somewhere, and where there is none."""
    prefix, _, rest = target.partition(":")
    if prefix == "tcp" or not target:
        return []
    return shlex.split(rest) if prefix == "cmd" else ["python", "-m", "kipcheck", "testee", target]


ANY: Final = {"any": True}


def wanted(stored: Stored) -> dict[str, Any]:
    """What the answer to the guilty step has to be. Errors: ``Impossible`` where no one answer is the right one."""
    invariant = stored.line.invariant
    if invariant == "survives":
        return ANY
    # A failure that an earlier kipcheck stored may name an invariant that is gone.
    known = INVARIANTS.get(invariant)
    right = RightAnswer.REFERENCE if known is None else known.right_answer
    if right is RightAnswer.SEVERAL:
        raise Impossible("the invariant compares several answers, so no fixed expectation shows it: use --as pytest")
    if stored.case.role not in (Role.CODEC, Role.CONTROLLER):
        answers = "assignment" if stored.case.role is Role.LEADER else "answer"
        raise Impossible(
            f"more than one {answers} satisfies the invariant, so a fixed expectation is impossible: use --as pytest"
        )
    guilty = stored.case.steps[stored.guilty]
    if right is RightAnswer.EARLIER:
        same = (index for index, step in enumerate(stored.case.steps[: stored.guilty]) if step == guilty)
        earlier = next(same, None)
        if earlier is not None:
            return {"same_as": earlier}
    return _reference(stored, ["class"] if right is RightAnswer.WITH_CLASS else [])


def _reference(stored: Stored, also: list[str]) -> dict[str, Any]:
    """What our own codec, or machine, answers: status, what was asked for, and ``also``."""
    adapter = registry.adapter(registry.REFERENCE)
    with InProcess(adapter).open(stored.case.edition, stored.case.role):
        answers = [adapter.answer({"case": 0, **operation(step)}) for step in stored.case.steps]
    answer = answers[stored.guilty]
    compared = ["status", *(("value", "hex") if stored.case.role is Role.CODEC else PAYLOAD), *also]
    return {key: answer[key] for key in compared if key in answer}


JUDGED = '''\
import os
from pathlib import Path

from kipcheck.conformance.engine.execution.replay import replay

TARGET = {target}
FAILURE = {failure}


def test_it_fails_no_more(tmp_path: Path) -> None:
    """What is right here is for kipcheck's judge to say: more than one answer may be."""
    path = tmp_path / "failure.json"
    path.write_text(FAILURE, "utf-8")
    testee = os.environ.get("KIPCHECK_TESTEE")
    target = f"cmd:{{testee}}" if testee else TARGET
    assert target, "no testee: name its command in KIPCHECK_TESTEE"
    found = replay(path, target)
    assert found.exit_code == 0, found.message
'''


def _judged(stored: Stored) -> bytes:
    plain = stored.line.plain
    kept = {key: plain[key] for key in ("format", "id", "target", "invariant", "case") if key in plain}
    text = harmless_json(json.dumps({**kept, "case": stored.case.plain}, indent=1))
    how = "It asks TARGET, or the testee that KIPCHECK_TESTEE of the environment starts."
    if not stored.target:
        how = "It asks the testee that KIPCHECK_TESTEE of the environment starts, which has to be given."
    body = JUDGED.format(target=_literal(repr(stored.target)), failure=_text(text))
    return f'"""{_about(stored)}\n\n{_wrapped(how)}\n"""\n\n{body}'.encode()


def _text(text: str) -> str:
    return 'r"""\n' + text + '\n"""' if '"""' not in text else repr(text)


# ---- bytes


def as_hex(stored: Stored) -> bytes:
    """A line for each step that carries bytes, or whose value has some; what it is stands behind a mark before it."""
    found: list[str] = []
    for number, step in enumerate(stored.case.steps):
        data = _data(stored.case, step)
        if data is not None:
            mark = ", the guilty one" if number == stored.guilty else ""
            about = one_line(f"{step.verb} {step['message']} v{step['version']}")
            found += [f"# step {number + 1}: {about}{mark}", data.hex()]
    if not found:
        raise Impossible(f"no step of a {stored.case.role.value} carries bytes; --as script would do")
    return ("\n".join(found) + "\n").encode()


def _data(case: Case, step: Step) -> bytes | None:
    """What a step carries, or what the value of a step should give."""
    if "message" not in step.body:
        return None
    if "hex" in step.body:
        return bytes.fromhex(step["hex"])
    layout = _layout(case.edition, step["message"], step["version"])
    try:
        return bytes(layout.encode(layout.codec.from_json(step["value"])))
    except Refused:
        return None


def _layout(edition_name: str, message: str, version: int) -> Layout:
    return spec(edition(edition_name), message).at(version)


def as_pcap(stored: Stored) -> bytes:
    """What the steps carry, each as Kafka would send it, to or from port 9092. Errors: ``Impossible``."""
    frames: list[Sent] = []
    for number, step in enumerate(stored.case.steps, 1):
        data = _data(stored.case, step)
        if data is not None:
            frames += _frames(stored.case.edition, step["message"], step["version"], data, number)
    if not frames:
        raise Impossible("no step carries bytes that have a place in a frame; --as script would do")
    return pcap(frames)


CLIENT_ID: Final = "kipcheck"


def _frames(edition_name: str, message: str, version: int, data: bytes, number: int) -> Iterator[Sent]:
    """A request, and, where the bytes are those of an answer, it after a request that asks for it."""
    carried = CARRIERS.get(message)
    if carried is not None:
        inner, inner_version, body = carried(data)
        yield from _frames("apache", inner, inner_version, body, number)  # of which drafts say nothing
    elif message.endswith("Header"):
        yield Sent(frame(data), by_client=message == "RequestHeader")
    elif message.endswith("Request"):
        whole = _request(edition_name, message, version, number)
        yield Sent(frame(whole[: len(whole) - _body(edition_name, message, version)] + data), by_client=True)
    elif message.endswith("Response"):
        asked = f"{message.removesuffix('Response')}Request"
        yield Sent(frame(_request(edition_name, asked, version, number)), by_client=True)
        layout = _layout(edition_name, message, version)
        header = number.to_bytes(4, "big") + b"\0" * header_version(layout)
        yield Sent(frame(header + data), by_client=False)
    else:
        raise Impossible(f"{message} is never sent: it is stored. --as hex would do")


def _request(edition_name: str, message: str, version: int, number: int) -> bytes:
    body = _layout(edition_name, message, version).defaults()
    return encode_request(edition_name, message, version, number, CLIENT_ID, body)


def _body(edition_name: str, message: str, version: int) -> int:
    layout = _layout(edition_name, message, version)
    return len(layout.encode(layout.defaults()))


Carried: TypeAlias = tuple[str, int, bytes]
"""Message, version, body."""


def _in_join(data: bytes) -> Carried:
    layout = _layout("apache", "JoinGroupRequest", 5)
    join = layout.defaults() | {
        "groupId": "group", "protocolType": "consumer", "protocols": [{"name": "protocol", "metadata": data}]
    }  # fmt: skip
    return "JoinGroupRequest", 5, layout.encode(join)


def _in_sync(data: bytes) -> Carried:
    layout = _layout("apache", "SyncGroupResponse", 3)
    return "SyncGroupResponse", 3, layout.encode(layout.defaults() | {"assignment": data})


def _in_subscription(data: bytes) -> Carried:
    layout = _layout("apache", "ConsumerProtocolSubscription", 1)
    return "ConsumerProtocolSubscription", 1, layout.encode(layout.defaults() | {"userData": data})


def _in_assignment(data: bytes) -> Carried:
    layout = _layout("apache", "ConsumerProtocolAssignment", 1)
    return "ConsumerProtocolAssignment", 1, layout.encode(layout.defaults() | {"userData": data})


CARRIERS: Final[Mapping[str, Callable[[bytes], Carried]]] = {
    "ConsumerProtocolSubscription": _in_join,
    "ConsumerProtocolAssignment": _in_sync,
    "SubscriptionInfo": _in_subscription,
    "StickyAssignorUserData": _in_subscription,
    "CooperativeStickyAssignorUserData": _in_subscription,
    "AssignmentInfo": _in_assignment,
}
"""What travels inside of another message."""

FORMS: Final[Mapping[str, tuple[Callable[[Stored], bytes], str]]] = {
    "pytest": (as_pytest, "test_{}.py"),
    "script": (as_script, "{}.py"),
    "pcap": (as_pcap, "{}.pcap"),
    "hex": (as_hex, "{}.hex"),
}
"""Each with the name of the file that it makes."""
