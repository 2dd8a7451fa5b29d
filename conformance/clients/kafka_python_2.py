"""Adapts kafka-python before release 3 as a codec and as a leader. No other module imports those releases."""

from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any

from kipcheck.conformance.clients.assignor_adapter import Member
from kipcheck.conformance.clients.structs import Classes, Structs, by_api, present
from kipcheck.conformance.clients.structs_assignors import StructAssignors

MODULES = ("admin", "api_versions", "commit", "find_coordinator", "group", "metadata")
"""Not every release has all of them."""


class KafkaPython2(Structs):
    name = "kafka-python"
    issues = "https://github.com/dpkp/kafka-python/issues"

    def __init__(self) -> None:
        api = import_module("kafka.protocol.api")
        modules = [import_module(name) for each in MODULES if find_spec(name := f"kafka.protocol.{each}") is not None]
        classes = {
            **by_api(modules, lambda each: issubclass(each, api.Request), lambda each: issubclass(each, api.Response)),
            **_records(api),
        }
        super().__init__(metadata.version("kafka-python"), classes, _assignors())


def _records(api: Any) -> Classes:
    protocol = import_module("kafka.coordinator.protocol")
    sticky = import_module("kafka.coordinator.assignors.sticky.sticky_assignor")
    metadatas = "ConsumerProtocolMemberMetadata_v0", "ConsumerProtocolMemberMetadata"
    assignments = "ConsumerProtocolMemberAssignment_v0", "ConsumerProtocolMemberAssignment"
    return present(
        {
            ("ConsumerProtocolSubscription", 0): (protocol, metadatas),
            ("ConsumerProtocolAssignment", 0): (protocol, assignments),
            ("StickyAssignorUserData", 1): (sticky, ("StickyAssignorUserDataV1",)),
            ("RequestHeader", 1): (api, ("RequestHeader",)),
            ("RequestHeader", 2): (api, ("RequestHeaderV2",)),
            ("ResponseHeader", 0): (api, ("ResponseHeader",)),
            ("ResponseHeader", 1): (api, ("ResponseHeaderV2",)),
        }
    )


def _assignors() -> StructAssignors:
    protocol = import_module("kafka.coordinator.protocol").ConsumerProtocol
    return StructAssignors(
        "kafka",
        protocol[0] if isinstance(protocol, list) else protocol,
        passes_generation=True,
        joined=_joined,
    )


def _joined(written: Any, member: Member) -> Any:
    """Passes the instance id with the metadata, in the wrapper that releases with static members have."""
    if find_spec("kafka.coordinator.subscription") is None:
        return written
    return import_module("kafka.coordinator.subscription").Subscription(written, member.instance)
