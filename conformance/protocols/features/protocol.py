"""The protocol of feature updates: KIP-584's draft, and controllers as released, in KRaft and with ZooKeeper."""

from typing import Final

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.releases_table import since, span
from kipcheck.conformance.protocols.declare.package import ProtocolPackage, released_in, released_since

PROTOCOL: Final = ProtocolPackage(
    50,
    Role.CONTROLLER,
    {
        "features": lambda edition: True,
        "feature-cluster": lambda edition: True,
        "kraft-features": released_since(since("java-controller-runs")),
        "zookeeper-features": released_in(span("feature-znode"), span("zookeeper")),
    },
)
