"""Validates what a testee sends against the testee protocol. Errors name the place of the first violation.

``testee.schema.json`` states the same rules for testees in other languages; a test compares the two.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

from kipcheck.conformance.core.operations import verb_registry
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.untrusted_text import one_line
from kipcheck.conformance.targets.protocol import OPERATIONS, VERSION, Claims
from kipcheck.conformance.targets.transport.framing import Framing
from kipcheck.conformance.targets.transport.pipe import DUMPS

SHOWN: Final = 80
HEX: Final = re.compile(r"[0-9a-fA-F]*")
VERSIONS: Final = 1 << 15
"""A version is an int16."""
Found: TypeAlias = Mapping[str, Any]


@final
class ProtocolViolation(ValueError):
    """A message that violates the protocol: the place and what was expected, in one line."""

    def __init__(self, what: str) -> None:
        super().__init__(one_line(what))


@dataclass(frozen=True, slots=True)
class Hello:
    """The testee's name and capabilities. Texts are one line each, without control characters."""

    name: str
    version: str
    language: str
    issues: str
    roles: frozenset[Role]
    claims: Claims
    framing: Framing
    """The first framing offered that kipcheck knows."""
    dump_signal: str | None
    """The signal on which the testee writes to stderr where it hangs."""
    unavailable: str = ""
    """Why the testee cannot be tested here; all other fields are empty then."""


def hello(found: Found) -> Hello:
    """Parses the response to ``hello``. Errors: at the first violation."""
    _type(found, "hello")
    if "unavailable" in found:
        why = _text(found, "unavailable", "hello")
        why = one_line(why) or "it gives no reason"
        return Hello("", "", "", "", frozenset(), Claims(), Framing.LINES, None, why)
    if (protocol := _required(found, "protocol", "hello")) != VERSION or isinstance(protocol, bool):
        raise ProtocolViolation(f"hello.protocol: {_shown(protocol)}, expected {VERSION}")
    name, version, language = (one_line(_text(found, key, "hello")) for key in ("name", "version", "language"))
    issues = one_line(_text(found, "issues", "hello")) if "issues" in found else ""
    claims, roles = _claims(found), _roles(found)
    for role in Role:
        if role in roles and role not in claims.roles and (needed := needed_key(role)) is not None:
            raise ProtocolViolation(f"hello.{needed}: is empty, but the role {role.value} needs it")
    dump = found.get("dump_signal")
    if dump is not None and dump not in DUMPS:
        raise ProtocolViolation(f"hello.dump_signal: {_shown(dump)} is not one of {', '.join(DUMPS)}")
    return Hello(name, version, language, issues, roles, claims, _framing(found), dump)


def needed_key(role: Role) -> str | None:
    """The key of ``hello`` that must not be empty for the role; None for a role without operations."""
    keys = {
        **dict.fromkeys(verb_registry.roles_with_machines(), "machines"),
        Role.CODEC: "capabilities",
        Role.LEADER: "assignors",
    }
    return keys.get(role)


def _roles(found: Found) -> frozenset[Role]:
    roles = _texts(found, "roles", "hello", needed=True)
    known = [role.value for role in Role]
    for index, each in enumerate(roles):
        if each not in known:
            raise ProtocolViolation(f"hello.roles[{index}]: {each!r} is not one of {', '.join(known)}")
    if not roles:
        raise ProtocolViolation("hello.roles: must not be empty")
    return frozenset(map(Role, roles))


def _claims(found: Found) -> Claims:
    spans = _object(found, "capabilities", "hello")
    messages = {name: _span(span, f"hello.capabilities.{name}") for name, span in spans.items()}
    missing: dict[str, tuple[int, ...]] = {}
    for name, versions in _object(found, "missing", "hello").items():
        at = f"hello.missing.{name}"
        missing[name] = tuple(_version(each, f"{at}[{index}]") for index, each in enumerate(_list(versions, at)))
    limits = _object(found, "limits", "hello")
    for name, sentence in limits.items():
        if not isinstance(sentence, str):
            raise ProtocolViolation(f"hello.limits.{name}: {_shown(sentence)} must be text")
    limits = {name: one_line(sentence) for name, sentence in limits.items()}
    assignors, machines = (_texts(found, key, "hello") for key in ("assignors", "machines"))
    return Claims(messages, missing, assignors, machines, limits, _operations(found, messages))


def _operations(found: Found, messages: Iterable[str]) -> dict[str, tuple[str, ...]]:
    operations: dict[str, tuple[str, ...]] = {}
    for name, listed in _object(found, "operations", "hello").items():
        at = f"hello.operations.{name}"
        if name not in messages:
            raise ProtocolViolation(f"{at}: the message is not in hello.capabilities")
        if not _list(listed, at):
            raise ProtocolViolation(f"{at}: must not be empty: leave the message out of hello.capabilities")
        for index, each in enumerate(listed):
            if each not in OPERATIONS:
                raise ProtocolViolation(f"{at}[{index}]: {_shown(each)} is not one of {', '.join(OPERATIONS)}")
        operations[name] = tuple(each for each in OPERATIONS if each in listed)
    return operations


def _span(found: Any, at: str) -> tuple[int, int]:
    ends = _list(found, at)
    if len(ends) != 2:
        raise ProtocolViolation(f"{at}: {_shown(found)} must be the lowest and the highest version")
    low, high = (_version(each, f"{at}[{index}]") for index, each in enumerate(ends))
    if low > high:
        raise ProtocolViolation(f"{at}: {_shown(found)}: the lowest version is above the highest")
    return low, high


def _version(found: Any, at: str) -> int:
    if not _is_integer(found) or not 0 <= found < VERSIONS:
        raise ProtocolViolation(f"{at}: {_shown(found)} must be a version, from 0 to 32767")
    return int(found)


def _framing(found: Found) -> Framing:
    offered = _texts(found, "framing", "hello")
    known = {each.value: each for each in Framing}
    return next((known[each] for each in offered if each in known), Framing.LINES)


def configured(found: Found) -> str | None:
    """Why the testee refuses the role or edition; None where it accepts. Errors: at the first violation."""
    _type(found, "configure")
    if "unsupported" in found:
        return one_line(_text(found, "unsupported", "configure"))
    if found.get("ok") is not True:
        raise ProtocolViolation(f"configure: must have ok: true, or unsupported with a reason, not {_shown(found)}")
    return None


def results(found: Found, batch: int, asked: Mapping[int, str]) -> dict[int, Found]:
    """Results by number. ``asked``: the operation of each number of the batch. Errors: at the first violation."""
    _type(found, "results")
    if not _is_integer(number := _required(found, "id", "results")) or number != batch:
        raise ProtocolViolation(f"results.id: {_shown(number)}, expected batch {batch}")
    by_number: dict[int, Found] = {}
    for index, each in enumerate(_list(_required(found, "results", "results"), "results.results")):
        at = f"results[{index}]"
        if not isinstance(each, Mapping):
            raise ProtocolViolation(f"{at}: {_shown(each)} must be an object")
        n = _required(each, "n", at)
        if not _is_integer(n) or n not in asked:
            raise ProtocolViolation(f"{at}.n: {_shown(n)} is not a case of this batch")
        if n in by_number:
            raise ProtocolViolation(f"{at}.n: a second result of case {n}")
        _result(each, asked[n], at)
        by_number[n] = each
    if left := asked.keys() - by_number.keys():
        raise ProtocolViolation(
            f"results.results: {len(by_number)} of {len(asked)} results; case {min(left)} is missing"
        )
    return by_number


def _result(found: Found, op: str, at: str) -> None:
    match _required(found, "status", at):
        case "accepted":
            _accepted(op, found, at)
        case "rejected":
            _text(found, "class", at)
            if not _is_integer(offset := found.get("offset", 0)) or offset < 0:
                raise ProtocolViolation(f"{at}.offset: {_shown(offset)} must be an offset, 0 or more")
        case "unsupported":
            if "capability" in found:
                _text(found, "capability", at)
        case "internal":
            _text(found, "class", at)
        case "died":
            if _required(found, "cause", at) not in CAUSES:
                raise ProtocolViolation(f"{at}.cause: {_shown(found['cause'])} is not one of {', '.join(CAUSES)}")
        case other:
            raise ProtocolViolation(f"{at}.status: {_shown(other)} is not one of {', '.join(STATUSES)}")
    for key in ("message", "evidence", "at"):
        if key in found:
            _text(found, key, at)


STATUSES: Final = ("accepted", "rejected", "unsupported", "internal", "died")
CAUSES: Final = ("crashed", "timeout", "memory")
"""Of a death that the testee itself detected."""


def _bytes(found: Found, at: str) -> None:
    _hex(_required(found, "hex", at), f"{at}.hex")


def _bytes_or_none(found: Found, at: str) -> None:
    if _required(found, "hex", at) is not None:
        _bytes(found, at)


def _value(found: Found, at: str) -> None:
    if not isinstance(value := _required(found, "value", at), Mapping):
        raise ProtocolViolation(f"{at}.value: {_shown(value)} must be an object")
    if not _is_integer(left := found.get("left", 0)) or left < 0:
        raise ProtocolViolation(f"{at}.left: {_shown(left)} must be a number of bytes, 0 or more")


def _assignment(found: Found, at: str) -> None:
    seen: set[str] = set()
    for index, each in enumerate(_list(_required(found, "assignment", at), f"{at}.assignment")):
        here = f"{at}.assignment[{index}]"
        if not isinstance(each, Mapping):
            raise ProtocolViolation(f"{here}: {_shown(each)} must be an object")
        if (member := _text(each, "id", here)) in seen:
            raise ProtocolViolation(f"{here}.id: a second assignment of member {member!r}")
        seen.add(member)
        for number, pair in enumerate(_list(_required(each, "partitions", here), f"{here}.partitions")):
            if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and _is_integer(pair[1])):
                raise ProtocolViolation(f"{here}.partitions[{number}]: {_shown(pair)} must be a topic and a partition")
        if each.get("userData") is not None:
            _hex(each["userData"], f"{here}.userData")
        if not _is_integer(error := each.get("error", 0)):
            raise ProtocolViolation(f"{here}.error: {_shown(error)} must be an integer")


def _numbers(*needed: str) -> "Accepted":
    def check(found: Found, at: str) -> None:
        for key in needed:
            if not _is_integer(number := _required(found, key, at)):
                raise ProtocolViolation(f"{at}.{key}: {_shown(number)} must be an integer")

    return check


def _configured(found: Found, at: str) -> None:
    """The configuration of a Streams member."""
    _numbers("used", "latest")(found, at)
    _required(found, "protocols", at)
    _texts(found, "protocols", at)


def _subscribed(found: Found, at: str) -> None:
    _bytes(found, at)
    _memory(found, at)


def _check_stream_assignment(found: Found, at: str) -> None:
    _assignment(found, at)
    _memory(found, at)


def _assigned(found: Found, at: str) -> None:
    _memory(found, at)
    _numbers("atMs", "error")(found, at)
    if (rejoin := _required(found, "rejoin", at)) not in REJOINS:
        raise ProtocolViolation(f"{at}.rejoin: {_shown(rejoin)} is not one of {', '.join(REJOINS)}")
    if not isinstance(applied := _required(found, "applied", at), bool):
        raise ProtocolViolation(f"{at}.applied: {_shown(applied)} must be true or false")


REJOINS: Final = ("never", "again", "now", "later")
TASK: Final = re.compile(r"(.+__)?[0-9]+_[0-9]+")


def _memory(found: Found, at: str) -> None:
    here = f"{at}.memory"
    if not isinstance(memory := _required(found, "memory", at), Mapping):
        raise ProtocolViolation(f"{here}: {_shown(memory)} must be an object")
    _numbers("used", "unique", "error")(memory, here)
    for key in ("active", "standby"):
        _required(memory, key, here)
        for index, task in enumerate(_texts(memory, key, here)):
            if not TASK.fullmatch(task):
                raise ProtocolViolation(f"{here}.{key}[{index}]: {task!r} must be a task id, as 0_1 or name__0_1")
    _required(memory, "sums", here)
    for task, offsets in _object(memory, "sums", here).items():
        if not _is_integer(offsets):
            raise ProtocolViolation(f"{here}.sums.{task}: {_shown(offsets)} must be an integer")


def _accepted(op: str, found: Found, at: str) -> None:
    if op in _ACCEPTED:
        _ACCEPTED[op](found, at)
    elif (listed := verb_registry.answers_to(op)) is not None:
        for index, each in enumerate(_list(_required(found, listed.key, at), f"{at}.{listed.key}")):
            if wrong := listed.check(each):
                raise ProtocolViolation(f"{at}.{listed.key}[{index}]{wrong}")
    elif (fields := verb_registry.fields_of_answer(op)) is not None:
        for key, read in fields.checks.items():
            if key not in found and key not in fields.needed:
                continue
            try:
                read(_required(found, key, at))
            except TypeError as wrong:
                raise ProtocolViolation(f"{at}.{key}{wrong}") from None


Accepted: TypeAlias = Callable[[Found, str], None]
_ACCEPTED: Final[Mapping[str, Accepted]] = {
    "encode": _bytes,
    "recode": _bytes,
    "decode": _value,
    "assign": _assignment,
    "user-data": _bytes_or_none,
    "stream-configure": _configured,
    "stream-subscribe": _subscribed,
    "stream-assign": _check_stream_assignment,
    "stream-assigned": _assigned,
}
"""Operation -> the check of an accepted result. Protocols register the verbs of their machines in ``verb_registry``."""


def _type(found: Found, wanted: str) -> None:
    if (kind := found.get("type")) != wanted:
        note = f" ({_shown(found['message'])})" if "message" in found else ""
        raise ProtocolViolation(f"type: {_shown(kind)}, expected {wanted}{note}")


def _required(found: Found, key: str, at: str) -> Any:
    if key not in found:
        raise ProtocolViolation(f"{at}.{key}: is missing")
    return found[key]


def _text(found: Found, key: str, at: str) -> str:
    if not isinstance(text := _required(found, key, at), str):
        raise ProtocolViolation(f"{at}.{key}: {_shown(text)} must be text")
    return text


def _texts(found: Found, key: str, at: str, needed: bool = False) -> tuple[str, ...]:
    texts = _list(_required(found, key, at) if needed else found.get(key, []), f"{at}.{key}")
    for index, each in enumerate(texts):
        if not isinstance(each, str):
            raise ProtocolViolation(f"{at}.{key}[{index}]: {_shown(each)} must be text")
    return tuple(texts)


def _object(found: Found, key: str, at: str) -> Found:
    if not isinstance(each := found.get(key, {}), Mapping):
        raise ProtocolViolation(f"{at}.{key}: {_shown(each)} must be an object")
    return each


def _list(found: Any, at: str) -> Sequence[Any]:
    if not isinstance(found, list):
        raise ProtocolViolation(f"{at}: {_shown(found)} must be a list")
    return found


def _hex(found: Any, at: str) -> None:
    if not isinstance(found, str) or len(found) % 2 or not HEX.fullmatch(found):
        raise ProtocolViolation(f"{at}: {_shown(found)} must be hex, two digits a byte")


def _is_integer(found: Any) -> bool:
    return isinstance(found, int) and not isinstance(found, bool)


def _shown(found: Any) -> str:
    text = repr(found)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def operations_by_number(operations: Iterable[Found]) -> dict[int, str]:
    """Number -> operation, as ``results`` takes it."""
    return {each["n"]: each["op"] for each in operations}
