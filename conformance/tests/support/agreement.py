"""Our layouts and a release's codec, asked the same things of many random values."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from kipcheck.conformance.clients.java.programs import Answer, JavaCodec, Order
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.targets.canonical_form import canonical
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import Layout, messages, spec
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.messages import from_layout

STREAMS = ("SubscriptionInfo", "AssignmentInfo")
CONSUMER = ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment")
STICKY = ("StickyAssignorUserData", "CooperativeStickyAssignorUserData")
BY_HAND = (*STREAMS, *STICKY, "ValueAndTimestamp")
"""Those for which the jars of ``clients`` and the coordinators have no generated class."""

OWN_SECOND_INT = releases("2.0.0-2.2.1, 2.3.0")
"""These write their own newest version as the second number, whatever the object holds."""
FORGETS_V1 = releases("0.10.1.0-0.10.2.1, 0.11.0.0-0.11.0.2, 1.0.0-1.0.1, 1.1.0")
"""In these a decoded assignment of version 1 says that it is of version 2."""
LONG_V1 = releases("0.10.1.0-1.1.1")
"""These write their version 1 of both Streams records as version 2, with a 1 before it, and read the true one."""
READS_STICKY_V0 = releases("2.3.0+")
"""These write version 1 of the sticky user data only."""

Value = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Disagreement:
    layout: Layout
    release: str
    what: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        bodies = f"  ours   {self.ours!s:.600}\n  theirs {self.theirs!s:.600}"
        return f"{self.release} / {self.layout}: {self.what}\n{bodies}"


def generated(release: str) -> Iterator[Layout]:
    """What the release speaks and has generated classes for."""
    for message in messages(edition(f"apache@{release}")):
        if message not in BY_HAND:
            yield from of(release, message)


def of(release: str, message: str) -> Iterator[Layout]:
    """The message at every version that the release speaks, none if it speaks none."""
    try:
        found = spec(edition(f"apache@{release}"), message)
    except LookupError:
        return iter(())
    return iter(found)


def drawn(layout: Layout, count: int) -> list[Value]:
    """The same values for the same layout, always."""
    draw, random = compiled(from_layout(layout)), Random(str(layout))
    return [draw(random) for _ in range(count)]


def exactly(judge: JavaCodec, release: str, layout: Layout, values: Iterable[Value]) -> Iterator[Disagreement]:
    """Bytes of values, values of bytes, and bytes read and written again: all three must be ours to the letter."""
    pairs = [(layout.codec.to_json(value), layout.encode(value)) for value in values]
    answers = judge.answers(each for value, data in pairs for each in _three(release, layout, value, data.hex()))
    for value, data in pairs:
        encoded, decoded, recoded = next(answers), next(answers), next(answers)
        if encoded.hex != data.hex():
            yield Disagreement(layout, release, f"the bytes of {value!s:.300}", data.hex(), _told(encoded))
        if decoded.value != value or decoded.left:
            yield Disagreement(layout, release, f"the value of {data.hex():.300}", value, _told(decoded))
        if recoded.hex != data.hex():
            yield Disagreement(layout, release, "read and written again", data.hex(), _told(recoded))


def rewritten(judge: JavaCodec, release: str, layout: Layout, values: Iterable[Value]) -> Iterator[Disagreement]:
    """Only that: the release reads our bytes and writes them again."""
    datas = [layout.encode(value).hex() for value in values]
    orders = (Order("recode", layout.message, layout.version, hex=data, release=release) for data in datas)
    for data, answer in zip(datas, judge.answers(orders), strict=True):
        if answer.hex != data:
            yield Disagreement(layout, release, "read and written again", data, _told(answer))


def of_another_version(judge: JavaCodec, release: str, layouts: list[Layout], count: int) -> Iterator[Disagreement]:
    """Values of one version of a message, written at another: what is refused, dropped or written must be the same."""
    asked = [
        (at, value, Order("encode", at.message, at.version, other.codec.to_json(value), release=release))
        for other in layouts
        for at in layouts
        if at is not other
        for value in drawn(other, count)
    ]
    for (at, value, _), answer in zip(asked, judge.answers(order for *_, order in asked), strict=True):
        try:
            ours, refused = at.encode(value).hex(), None
        except Refused as why:
            ours, refused = None, why
        if ours != answer.hex or answer.status not in ("accepted", "rejected"):
            yield Disagreement(at, release, f"the bytes of {value!s:.300}", ours or refused, _told(answer))


def in_substance(judge: JavaCodec, release: str, layout: Layout, values: Iterable[Value]) -> Iterator[Disagreement]:
    """Through classes that keep sets and maps: the same but for what those lose (see ``canonical``)."""
    kept = [keepable(layout, value, release) for value in values]
    pairs = [(layout.codec.to_json(value), layout.encode(value)) for value in kept]
    message = layout.message
    orders = (each for value, data in pairs for each in _three(release, layout, value, data.hex(), public=True))
    answers = judge.answers(orders)
    for value, data in pairs:
        encoded, decoded, recoded = next(answers), next(answers), next(answers)
        written = {"written": (encoded, canonical(message, value))}
        wanted = canonical(message, _read(release, layout, value))
        if not (message in STREAMS and layout.version == 1 and Release.parse(release) in LONG_V1):
            written["read and written again"] = (recoded, wanted)
        if message == "StickyAssignorUserData" and layout.version == 0 and Release.parse(release) in READS_STICKY_V0:
            written = {}
        for what, (answer, meant) in written.items():
            if answer.hex is None:
                yield Disagreement(layout, release, f"{what}: {value!s:.300}", data.hex(), _told(answer))
                continue
            theirs = bytes.fromhex(answer.hex)
            try:
                value_of_theirs = layout.decode(theirs)
            except Refused as refused:
                yield Disagreement(layout, release, f"we refuse what is {what}", refused, answer.hex)
                continue
            found = canonical(message, layout.codec.to_json(value_of_theirs))
            if found != meant or layout.encode(value_of_theirs) != theirs:
                yield Disagreement(layout, release, f"what is {what} means to us", found, meant)
        if decoded.value is None or canonical(message, _whole(release, layout, decoded.value)) != wanted:
            yield Disagreement(layout, release, f"the value of {data.hex():.300}", wanted, _told(decoded))


def _three(release: str, layout: Layout, value: Value, data: str, public: bool = False) -> Iterator[Order]:
    message, version = layout.message, layout.version
    yield Order("encode", message, version, value, release=release, public=public)
    yield Order("decode", message, version, hex=data, release=release, public=public)
    yield Order("recode", message, version, hex=data, release=release, public=public)


def _told(answer: Answer) -> Any:
    return answer.hex or answer.value or f"{answer.status} {answer.thrown} {answer.message}"


def _whole(release: str, layout: Layout, value: Value) -> Value:
    """With what we know the release's class not to tell."""
    if layout.message == "AssignmentInfo" and layout.version == 1 and Release.parse(release) in FORGETS_V1:
        return {name: 1 if name == "version" else each for name, each in value.items() if name != "partitionsByHost"}
    return value


def _read(release: str, layout: Layout, value: Value) -> Value:
    """What the release reads of all that it writes."""
    if layout.message in STREAMS and layout.version == 1 and Release.parse(release) in LONG_V1:
        return {name: each for name, each in value.items() if name not in ("userEndPoint", "partitionsByHost")}
    return value


# -- values that sets, maps and texts can hold


def keepable(layout: Layout, value: Value, release: str) -> Value:
    """``value``, changed to one that comes back in substance: no element twice, names where names are wanted."""
    out = dict(value)
    own = spec(edition(f"apache@{release}"), layout.message).versions.high if layout.message in STREAMS else 0
    constant = Release.parse(release) in OWN_SECOND_INT
    match layout.message:
        case "SubscriptionInfo":
            if "latestSupportedVersion" in out:
                # Later releases refuse a member that says less than it speaks.
                low = max(layout.version, out["latestSupportedVersion"])
                out["latestSupportedVersion"] = own if constant else low
            _subscription_info(out)
        case "AssignmentInfo":
            if "commonlySupportedVersion" in out and constant:
                out["commonlySupportedVersion"] = own
            _assignment_info(out)
        case "ConsumerProtocolSubscription" if "ownedPartitions" in out:
            out["ownedPartitions"] = _topics(out["ownedPartitions"])
        case "ConsumerProtocolAssignment":
            out["assignedPartitions"] = _topics(out["assignedPartitions"])
        case "StickyAssignorUserData":
            out["previousAssignment"] = _topics(out["previousAssignment"])
    return out


def _subscription_info(out: Value) -> None:
    if "prevTasks" in out:
        out["prevTasks"] = _once(out["prevTasks"], "topicGroupId", "partition")
        both = _once([*out["prevTasks"], *out["standbyTasks"]], "topicGroupId", "partition")
        out["standbyTasks"] = both[len(out["prevTasks"]) :]
    if "userEndPoint" in out:
        out["userEndPoint"] = out["userEndPoint"].hex().encode()
    if "taskOffsetSums" in out:
        sums = out["taskOffsetSums"]
        if any("namedTopology" in each for each in sums):
            sums = [{**each, "namedTopology": each["namedTopology"] or None} for each in sums]
            out["taskOffsetSums"] = _once(sums, "topicGroupId", "partition", "namedTopology")
        else:
            sums = [{**each, "partitionToOffsetSum": _once(each["partitionToOffsetSum"], "partition")} for each in sums]
            out["taskOffsetSums"] = _once([each for each in sums if each["partitionToOffsetSum"]], "topicGroupId")
    if "clientTags" in out:
        tags = [{name: data.hex().encode() for name, data in each.items()} for each in out["clientTags"]]
        out["clientTags"] = _once(tags, "key")


def _assignment_info(out: Value) -> None:
    standby = [{**each, "partitions": _once(each["partitions"], "topic", "partition")} for each in out["standbyTasks"]]
    out["standbyTasks"] = _once(standby, "topicGroupId", "partition", "namedTopology")
    # Two numbers of one topic would be one topic to the reader, and so perhaps one partition twice.
    topics = _once(_once(out.get("topics", []), "index"), "topic")
    if "topics" in out:
        out["topics"] = topics
    for field in ("partitionsByHost", "standbyPartitionsByHost"):
        if field in out:
            hosts = [{**each, "partitions": _among(each["partitions"], topics)} for each in out[field]]
            out[field] = _once(hosts, "host", "port")


def _among(partitions: list[Value], topics: list[Value]) -> list[Value]:
    """With numbers that the dictionary has."""
    named = [each for each in partitions if "topicIndex" not in each or topics]
    chosen = [
        {**each, "topicIndex": topics[each["topicIndex"] % len(topics)]["index"]} if "topicIndex" in each else each
        for each in named
    ]
    return _once(chosen, "topic", "topicIndex", "partition")


def _topics(topics: list[Value]) -> list[Value]:
    """None twice, none without partitions."""
    return _once([each for each in topics if each["partitions"]], "topic")


def _once(elements: Iterable[Mapping[str, Any]], *keys: str) -> list[Value]:
    """The first of those that agree in all of these keys."""
    found: dict[tuple[Any, ...], Value] = {}
    for each in elements:
        found.setdefault(tuple(each.get(key) for key in keys), dict(each))
    return list(found.values())
