"""The protocol of feature updates: KIP-584's draft, controllers as released, and clients that follow features.

A package has one role: a testee that is a client, or a Streams group, claims their machines in the role controller.
"""

from typing import Final

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import KIP_584
from kipcheck.conformance.protocols.declare.package import ProtocolPackage, either, released_since

PROTOCOL: Final = ProtocolPackage(
    50,
    Role.CONTROLLER,
    {
        "features": lambda edition: True,
        "feature-cluster": lambda edition: True,
        "kraft-features": released_since(since("java-controller-runs")),
        "zookeeper-features": lambda edition: True,
        "kraft-brokers": released_since(since("java-controller-runs")),
        "feature-client": either(KIP_584, released_since(since("feature-znode"))),
        "feature-app": lambda edition: True,
        "feature-tool": lambda edition: True,
        "feature-commands": released_since(since("feature-znode")),
        "kraft-quorum": released_since(since("java-controller-runs")),
    },
)
