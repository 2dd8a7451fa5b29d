"""Explains bytes as they are sent: size, header and body. Where message or version is not given, they are found."""

from collections.abc import Iterator
from dataclasses import dataclass

from kipcheck.conformance.wire import framing
from kipcheck.conformance.wire.constructs import read_first
from kipcheck.conformance.wire.embedded import ASSIGNMENT, OF_STREAMS, SUBSCRIPTION
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.explain import Explained, Row, explain
from kipcheck.conformance.wire.explain_inside import led
from kipcheck.conformance.wire.log_files import VERSIONS as LOG_FILES
from kipcheck.conformance.wire.schema import Layout, MessageSpec, messages
from kipcheck.conformance.wire.workbench import Unreadable, declared, named
from kipcheck.conformance.wire.znodes import ZNode

SIZE = 4
"""The bytes of the size in front of a frame."""
HEADER = 8
"""The fewest bytes of the header of a request."""
PRODUCE = 0
"""Its API key is two zero bytes, with which most responses and sizes of frames begin too."""


MOST_VERSIONS = 64
"""No record of Streams has as many."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One interpretation of the bytes."""

    explained: Explained
    """Of all bytes; the paths of the header begin with ``header.``."""
    size: bool = False
    """Whether the size of the frame is in front."""
    header: int | None = None
    """The version of the header; None for a body alone."""
    others: tuple[int, ...] = ()
    """Other versions of the message that end with the bytes too."""
    alike: tuple[str, ...] = ()
    """Other records that end with the bytes too, each as ``MESSAGE vN``."""

    @property
    def whole(self) -> bool:
        return self.explained.damage is None

    def title(self) -> str:
        layout = self.explained.layout
        parts = [*(["size"] if self.size else []), *([f"header v{self.header}"] if self.header is not None else [])]
        also = f"; v{', v'.join(map(str, self.others))} would end there too" if self.others else ""
        also += f"; {', '.join(self.alike)} would end there too" if self.alike else ""
        return f"{layout.message} v{layout.version}, edition {layout.edition}: {', '.join([*parts, 'body'])}{also}"


def find(data: bytes, edition: str, message: str | None, version: int | None) -> Sent:
    """The interpretation in which the body ends with the bytes; without such, the most likely up to its damage.

    A request needs no name: its header has key and version; a damaged Produce request needs one, because a response may
    begin with its key. Versions of anything else are tried, the newest first. Bytes without a name that are no request
    may be a record with its version in front: a subscription, an assignment, or a key or value of a coordinator.
    Errors: ``Unreadable`` for an unknown name, and for bytes without a name that do not begin as a request.
    """
    try:
        sent = _framed_or_body(data, edition, message, version)
    except Unreadable:
        if message is not None or (record := _record(data, edition)) is None:
            raise
        return record
    if message is None and version is None and not sent.whole:
        return _record(data, edition) or sent
    return sent


def _framed_or_body(data: bytes, edition: str, message: str | None, version: int | None) -> Sent:
    """A frame, or the body of a named message. Errors: as of ``find``."""
    if message in LOG_FILES:
        raise Unreadable("unknown-message", f"{message} is the file of a log, not a message: use kipcheck decode")
    if message is not None and version is not None:
        layout = named(edition, message, version)
        tried = [Sent(explain(layout, data)), *_framed(layout, data)]
        return next((each for each in tried if each.whole), tried[0])
    tried = list(_requests(data, edition, message, version))
    if message is not None:
        for layout in _layouts(edition, message):
            tried += [*_framed(layout, data), Sent(explain(layout, data))]
    fits = [each for each in tried if each.whole]
    if not tried:
        raise Unreadable("bad-line", _no_request(data, edition, message))
    if not fits:
        return max(tried, key=_extent)
    best = max(fits, key=lambda each: (each.header is not None, each.size))
    return best if message is None else _with_others(best, fits)


def _record(data: bytes, edition: str) -> Sent | None:
    """A record that has its version in front and ends with the bytes; the most usual of several.

    Names and ids are printable in what members and coordinators write, so such a record comes before others.
    """
    if len(data) > SIZE and _size(data) == len(data) - SIZE:  # a frame, whose message has no name
        return None
    read = [each for name in _records(edition) if (each := led(edition, name, data)) is not None]
    whole = [each for each in read if not each.damage and _is_known(each)]
    if not whole:
        return None
    best, *others = sorted(whole, key=lambda each: not _is_printable(each))  # stable: the usual ones are first
    return Sent(best, alike=tuple(f"{each.layout.message} v{each.layout.version}" for each in others))


def _records(edition: str) -> list[str]:
    usual = [SUBSCRIPTION, ASSIGNMENT, *OF_STREAMS.values()]
    resolved = framing.resolved(edition)
    return usual + [each for each in messages(resolved) if each.endswith(("Key", "Value")) and each not in usual]


def _is_known(found: Explained) -> bool:
    """A subscription of Streams of a later version takes whatever follows, but it names the latest version itself."""
    latest = next((row.value for row in found.rows if row.path == "latestSupportedVersion"), None)
    return latest is None or (isinstance(latest, int) and 0 < found.layout.version <= latest < MOST_VERSIONS)


def _is_printable(found: Explained) -> bool:
    return all(row.value.isprintable() for row in found.rows if isinstance(row.value, str))


@dataclass(frozen=True, slots=True)
class Frame:
    """One of several frames, as they follow each other on a connection."""

    at: int
    """Its first byte."""
    sent: Sent


def frames(data: bytes, edition: str, message: str | None, version: int | None) -> tuple[list[Frame], str]:
    """The frames that the bytes consist of, and what is wrong with the bytes after the last one; the list is empty
    unless the bytes begin with a whole frame and continue after it. The last frame may be truncated.
    """
    found: list[Frame] = []
    at = 0
    while at < len(data):
        end = at + SIZE + _size(data[at:])
        try:
            sent = _framed_or_body(data[at:end], edition, message, version)
        except Unreadable as why:
            here = len(data) - at - SIZE
            cut = here < _size(data[at:]) <= framing.LARGEST
            rest = f"a frame of {_size(data[at:])} bytes begins, and {max(0, here)} of them are there" if cut else why
            return found, f"byte {at}: {rest}" if found else ""
        if not found and (end >= len(data) or not sent.size or not sent.whole):
            break
        found.append(Frame(at, sent))
        if not sent.size:
            return found[:-1], f"byte {at}: the {len(data) - at} bytes from here on begin with no size of a frame"
        at = end
    return found, ""


def _no_request(data: bytes, edition: str, message: str | None) -> str:
    """Why the bytes are no request, and what to do."""
    start = SIZE if len(data) > SIZE and _size(data) == len(data) - SIZE else 0
    key, version = (int.from_bytes(data[start + n : start + n + 2], "big", signed=True) for n in (0, 2))
    spec = framing.requests(framing.resolved(edition)).get(key)
    if not data:
        return "there are no bytes"
    if len(data) < start + HEADER:
        why = f"{len(data)} bytes are too few for a request"
    elif spec is None:
        why = f"read as a request, the bytes have API key {key}, which kipcheck does not know"
    elif message not in (None, spec.name):
        why = f"read as a request, the bytes are {spec.name}, not {message}"
    elif version in spec.versions:
        why = f"read as a request, the bytes are a damaged {spec.name} v{version}"
    else:
        why = f"read as a request, the bytes are {spec.name} v{version}; {edition} has versions {spec.versions}"
    return f"{why}; a response needs --message, a body alone --message and --version"


def _with_others(best: Sent, fits: list[Sent]) -> Sent:
    if best.explained.layout.message.endswith("Request") and best.header is not None:
        return best  # the header has the version
    form = best.size, best.header is not None
    alike = {each.explained.layout.version for each in fits if (each.size, each.header is not None) == form}
    others = tuple(sorted(alike - {best.explained.layout.version}))
    return Sent(best.explained, best.size, best.header, others)


def _extent(one: Sent) -> int:
    """How many bytes were read before the damage."""
    return sum(row.size for row in one.explained.rows if row.read)


def _layouts(edition: str, message: str) -> Iterator[Layout]:
    """At all versions, the newest first."""
    found = declared(edition, message)
    if not isinstance(found, MessageSpec):
        raise Unreadable("bad-line", f"--version is required for {message}")
    yield from sorted(found, key=lambda each: -each.version)


def _starts(data: bytes) -> Iterator[int]:
    """Where the header may begin: after the size, if the first bytes may be that of a frame, and at the first byte."""
    if len(data) > SIZE and len(data) - SIZE <= _size(data) <= framing.LARGEST:
        yield SIZE
    yield 0


def _size(data: bytes) -> int:
    return int.from_bytes(data[:SIZE], "big")


def _requests(data: bytes, edition: str, message: str | None, version: int | None) -> Iterator[Sent]:
    """With the message and version that the header names."""
    for start in _starts(data):
        key, at = (int.from_bytes(data[start + n : start + n + 2], "big", signed=True) for n in (0, 2))
        spec = framing.requests(framing.resolved(edition)).get(key)
        if len(data) < start + HEADER or spec is None or message not in (None, spec.name) or version not in (None, at):
            continue
        try:
            sent = _sent(spec.at(at), data, start)
        except LookupError:
            continue
        if key != PRODUCE or message is not None or sent.whole:
            yield sent


def _framed(layout: Layout, data: bytes) -> Iterator[Sent]:
    """As a request whose header names the layout, or as a response."""
    if isinstance(layout, ZNode):
        return
    if layout.message.endswith("Request"):
        yield from _requests(data, layout.edition, layout.message, layout.version)
    elif layout.message.endswith("Response"):
        for start in _starts(data):
            yield _sent(layout, data, start)


def _sent(layout: Layout, data: bytes, start: int) -> Sent:
    side = "Request" if layout.message.endswith("Request") else "Response"
    shutdown = side == "Request" and (int.from_bytes(data[start : start + 2], "big"), layout.version)
    version = 0 if shutdown == (framing.CONTROLLED_SHUTDOWN, 0) else framing.header_version(layout)
    header = framing.header_layout(side, version)
    rows = [Row(0, start, 0, "size", "int32", _size(data), "of the frame in bytes")] if start else []
    try:
        size = read_first(header, data[start:])[1]
    except Refused:
        read = explain(header, data[start:])
        rows += _shifted(read, start, "header.")
        return Sent(Explained(layout, data, tuple(rows), _moved(read.damage, start)), bool(start), version)
    rows += _shifted(explain(header, data[start : start + size]), start, "header.")
    body = explain(layout, data[start + size :])
    rows += _shifted(body, start + size, "")
    damage = _moved(body.damage, start + size)
    if damage is None and start and _size(data) > len(data) - SIZE:
        damage = Refused("truncated", f"size {_size(data)}, {len(data) - SIZE} bytes there", message="Frame", version=0)
    return Sent(Explained(layout, data, tuple(rows), damage), bool(start), version)


def _shifted(explained: Explained, by: int, above: str) -> list[Row]:
    return [row._replace(offset=row.offset + by, path=f"{above}{row.path}".rstrip(".")) for row in explained.rows]


def _moved(damage: Refused | None, by: int) -> Refused | None:
    if damage is None:
        return None
    offset = None if damage.offset is None else damage.offset + by
    return Refused(
        damage.kind, damage.why, message=damage.message, version=damage.version, path=damage.path, offset=offset
    )
