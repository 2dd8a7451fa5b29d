"""Codecs of the JSON nodes in ZooKeeper with one planted defect each."""

import json
from typing import Any

from kipcheck.conformance.protocols.codec.target import ReferenceCodec
from kipcheck.conformance.protocols.declare.mutant import mutant
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.znodes import ZNode

PLACE = 20

Value = dict[str, Any]


def taken(layout: Layout, data: bytes, kind: str, word: str) -> Value:
    """The raw value of a node that the strict reader refuses for this reason. Errors: ``Refused`` for any other."""
    try:
        return layout.decode(data)
    except Refused as refusal:
        if not isinstance(layout, ZNode) or refusal.kind != kind or word not in f"{refusal.path} {refusal.why}":
            raise
    found: Value = {**layout.defaults(), **json.loads(data)}
    return {name: found[name] for name in layout.names}


@mutant("nodes/flaws", "nodes/refuses", "FeatureZNode", 0, ...)
class TakesLevelsAsText(ReferenceCodec):
    """A level may be a number in a string."""

    def read(self, layout: Layout, data: bytes) -> Value:
        return taken(layout, data, "type", "level")


@mutant("nodes/flaws", "nodes/refuses", "FeatureZNode", 0, ...)
class TakesLevelZero(ReferenceCodec):
    """A level may be 0."""

    def read(self, layout: Layout, data: bytes) -> Value:
        return taken(layout, data, "range", "0 where")


@mutant("nodes/flaws", "nodes/refuses", "FeatureZNode", 0, ...)
class TakesLargeLevels(ReferenceCodec):
    """A level may have more than 16 bits."""

    def read(self, layout: Layout, data: bytes) -> Value:
        return taken(layout, data, "range", "32768")


@mutant("nodes/flaws", "nodes/refuses", "FeatureZNode", 1, ...)
class TakesAnyStatus(ReferenceCodec):
    """The status of a node is not checked."""

    def read(self, layout: Layout, data: bytes) -> Value:
        return taken(layout, data, "range", "status")


@mutant("nodes/flaws", "nodes/refuses", "FeatureZNode", 2, ...)
class NeedsNoFeatures(ReferenceCodec):
    """A node without features is accepted as one with no features."""

    def read(self, layout: Layout, data: bytes) -> Value:
        return taken(layout, data, "missing", "features")


@mutant("nodes/round-trip", "nodes/reads", "BrokerIdZNode", 5, ...)
class WantsKnownKeysOnly(ReferenceCodec):
    """A node with an unknown key is refused."""

    def read(self, layout: Layout, data: bytes) -> Value:
        value = super().read(layout, data)
        if isinstance(layout, ZNode) and json.loads(data).keys() - {*layout.names}:
            raise Refused("unknown-field", "an unknown key", message=layout.message, version=layout.version)
        return value


@mutant("nodes/round-trip", "nodes/reads", "BrokerIdZNode", 5, ...)
class TurnsRangesAround(ReferenceCodec):
    """The lowest and the highest level are swapped when they are read."""

    def read(self, layout: Layout, data: bytes) -> Value:
        value = super().read(layout, data)
        if isinstance(layout, ZNode) and "features" in value:
            ranges = value["features"].items()
            value["features"] = {name: dict(zip(each, [*each.values()][::-1], strict=True)) for name, each in ranges}
        return value


@mutant("nodes/round-trip", "nodes/writes", "BrokerIdZNode", 3, ...)
class ForgetsTheRack(ReferenceCodec):
    """A broker registers without its rack."""

    def write(self, layout: Layout, value: Value) -> bytes:
        known = {key: each for key, each in value.items() if key != "rack" or not isinstance(layout, ZNode)}
        return super().write(layout, known)


@mutant("nodes/round-trip", "nodes/writes", "BrokerIdZNode", 4, ...)
class WritesPortsAsText(ReferenceCodec):
    """A port is written as a string."""

    def write(self, layout: Layout, value: Value) -> bytes:
        data = super().write(layout, value)
        if not isinstance(layout, ZNode):
            return data
        return data.replace(b'"port":', b'"port":"', 1).replace(b',"jmx_port"', b'","jmx_port"', 1)
