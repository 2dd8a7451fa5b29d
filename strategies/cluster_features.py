"""What the strategies of feature versions are made of: ranges of levels, fleets, ApiVersions responses, updates, rolls.

The nodes are drawn as plain data; a function of each makes the value that users get.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kipcheck.conformance.core.files.releases_table import since, table
from kipcheck.conformance.core.values.release import Release, releases as releases_of
from kipcheck.conformance.wire import layout as layout_of
from kipcheck.conformance.wire.schema import Slot
from kipcheck.strategies.arguments import check_levels, names, number_of
from kipcheck.strategies.body import Body, body_of
from kipcheck.strategies.nodes import Flag, Integer, Node, Pick, Record, Seq, record
from kipcheck.strategies.versions import Members

FEATURES: Final = ("group_coordinator", "transaction_coordinator", "consumer_offsets_topic_schema")
"""Names in KIP-584."""
UPDATE: Final = "UpdateFeaturesRequest"
RESPONSE: Final = "ApiVersionsResponse"
FIRST: Final = Release.parse(since("java-controller-runs"))
"""The first release with a feature."""
UNKNOWN: Final = ("unknown", "")
"""Names that no broker supports."""
MOST: Final = 4
"""The highest level in made-up clusters."""
Ranges = dict[str, tuple[int, int]]


def ranges_node(features: Sequence[str], lowest: int, highest: int) -> Node:
    features = names("features", features)
    check_levels(lowest, highest)
    span = record(low=Integer(lowest, highest), more=Integer(0, highest - lowest), highest=Pick((highest,)))
    return Record((), tuple((name, span) for name in features))


def ranges_of(drawn: Mapping[str, Any]) -> Ranges:
    return {name: (each["low"], min(each["low"] + each["more"], each["highest"])) for name, each in drawn.items()}


# Fleets of releases


def features_of(release: str) -> Ranges:
    """The levels that a release declares, by feature. Errors: LookupError for a release without features."""
    at = Release.parse(release)
    found: Ranges = {}
    for name, spans in table()["features"].items():
        before = [Release.parse(each) for each in spans if Release.parse(each) <= at]
        span = tuple(spans[str(max(before))]) if before else (0, 0)
        if span != (0, 0):
            found[name] = (span[0], span[1])
    if not found or at < FIRST:
        raise LookupError(f"release {release} declares no features; the first is {FIRST}")
    return found


def fleet_node(brokers: Members, limit: str | None) -> Node:
    """Errors: LookupError where no such release has features."""
    wanted = releases_of(limit or f"{FIRST}+")
    found = [each for each in table()["lists"]["controllers"] if Release.parse(each) in wanted]
    if not found:
        raise LookupError(f"no release in {limit} has features; the first is {FIRST}")
    return _several(record(release=Pick(tuple(found))), brokers)


def fleet_of(drawn: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"broker": number, "release": each["release"], "supported": features_of(each["release"])}
        for number, each in enumerate(drawn)
    ]


def _several(node: Node, brokers: Members, least: int = 0) -> Seq:
    return Seq(node, *number_of("brokers", brokers, least))


# ApiVersions responses


def pictures_node(brokers: Members) -> Node:
    """A history of contents, and how far each broker is behind, with the levels that it supports above them."""
    levels = Record((), tuple((name, Integer(1, MOST)) for name in FEATURES))
    broker = record(behind=Integer(0, 2), above=Integer(0, 2), reads=Flag())
    return record(contents=Seq(levels, 1, 3), brokers=_several(broker, brokers))


def pictures_of(edition: str, version: int, drawn: Mapping[str, Any]) -> list[Body]:
    contents = drawn["contents"]
    highest = {name: max(each.get(name, 1) for each in contents) for each in contents for name in each}
    return [_picture(edition, version, contents, highest, each) for each in drawn["brokers"]]


def _picture(
    edition: str, version: int, contents: Sequence[Mapping[str, int]], highest: Mapping[str, int], broker: Any
) -> Body:
    """The answer of a broker: it supports every level of every content; one that has not read the node knows none."""
    epoch = len(contents) - 1 - broker["behind"]
    knows = epoch >= 0 and not broker["reads"]
    supported = [
        {"name": name, "minVersion": 1, "maxVersion": level + broker["above"]} for name, level in highest.items()
    ]
    levels = contents[epoch].items() if knows else ()
    finalized = [{"name": name, "maxVersionLevel": level, "minVersionLevel": 1} for name, level in levels]
    value = {"supportedFeatures": supported, "finalizedFeatures": finalized,
             "finalizedFeaturesEpoch": epoch if knows else -1}  # fmt: skip
    found = layout_of(edition, RESPONSE, version)
    whole = found.decode(found.encode({"errorCode": 0, "apiKeys": [], "throttleTimeMs": 0, **value}))
    return body_of({"edition": edition, "message": RESPONSE, "version": version, "value": whole})


# Updates


def update_node(slots: Iterable[Slot], features: Sequence[str]) -> Node:
    """A request of the version with these fields."""
    features = names("features", features, taken=UNKNOWN)
    fields = {each.name for each in slots}
    (item,) = (each.item for each in slots if each.item is not None)
    own = {each.name for each in item.slots}
    how = {"allowDowngrade": Flag()} if "allowDowngrade" in own else {"upgradeType": Pick((1, 2, 3, 0, 99))}
    one = record(feature=Pick((*features, *UNKNOWN)), maxVersionLevel=Integer(-1, MOST), **how)
    checks = {"validateOnly": Flag()} if "validateOnly" in fields else {}
    return record(timeoutMs=Pick((60_000, 0, 1)), featureUpdates=Seq(one, 0, 3), **checks)


def update_of(edition: str, drawn: Mapping[str, Any]) -> Body:
    """The last update of a feature counts, as it is a key of the request."""
    value = dict(drawn["value"])
    value["featureUpdates"] = [*{each["feature"]: each for each in value["featureUpdates"]}.values()]
    return body_of({"edition": edition, "message": UPDATE, "version": drawn["version"], "value": value})


# Rolls


def roll_node(brokers: Members) -> Node:
    between = record(
        do=Pick(("nothing", "bounce", "update")), broker=Integer(0, 3), feature=Integer(0, 7),
        level=Integer(0, 3), place=Integer(0, 7),
    )  # fmt: skip
    return record(brokers=_several(record(place=Integer(0, 7)), brokers, least=1), between=Seq(between, 0, 3))


def roll_of(before: Ranges, after: Ranges, old: str, new: str, drawn: Mapping[str, Any]) -> list[dict[str, Any]]:
    places = [each["place"] for each in drawn["brokers"]]
    order = sorted(range(len(places)), key=lambda number: places[number])
    steps: list[dict[str, Any]] = [{"do": "restart", "broker": number, "release": new} for number in order]
    restarted = [*order]
    for each in drawn["between"]:
        at = each["place"] % (len(steps) + 1)
        steps[at:at] = _between(each, steps[:at], restarted, {**before, **after}, old, new)
    return steps


def _between(
    drawn: Mapping[str, Any],
    done: Sequence[Mapping[str, Any]],
    brokers: Sequence[int],
    features: Ranges,
    old: str,
    new: str,
) -> list[dict[str, Any]]:
    """What happens between two restarts."""
    number = drawn["broker"] % len(brokers)
    if drawn["do"] == "bounce":
        rolled = any(each["do"] == "restart" and each["broker"] == number for each in done)
        return [{"do": "stop", "broker": number}, {"do": "start", "broker": number, "release": new if rolled else old}]
    if drawn["do"] == "update":
        name = [*features][drawn["feature"] % len(features)]
        return [{"do": "update", "feature": name, "level": max(0, features[name][1] + 1 - drawn["level"])}]
    return []
