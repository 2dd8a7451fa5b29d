"""Adapts aiokafka as a codec and as a leader. No other module imports aiokafka."""

from collections.abc import Iterable
from importlib import import_module, metadata
from typing import Any

from kipcheck.conformance.clients.assignor_adapter import Member
from kipcheck.conformance.clients.structs import Classes, Structs, by_api, present
from kipcheck.conformance.clients.structs_assignors import StructAssignors

MODULES = ("admin", "commit", "coordination", "group", "metadata")


class Aiokafka(Structs):
    name = "aiokafka"
    issues = "https://github.com/aio-libs/aiokafka/issues"

    def __init__(self) -> None:
        api = import_module("aiokafka.protocol.api")
        request = getattr(api, "RequestStruct", api.Request)  # releases before 0.13 have no request builders
        modules = [import_module(f"aiokafka.protocol.{each}") for each in MODULES]
        classes = {
            **by_api(modules, lambda each: issubclass(each, request), lambda each: issubclass(each, api.Response)),
            **_records(api),
        }
        super().__init__(metadata.version("aiokafka"), classes, _assignors(), _builders(modules, api.Request))


def _builders(modules: Iterable[Any], base: Any) -> dict[str, Any]:
    """Name -> the class with which a user builds a request and that picks its version, since release 0.13."""
    found = {name: each for module in modules for name, each in vars(module).items() if hasattr(each, "_CLASSES")}
    return {name: each for name, each in found.items() if each is not base}


def _records(api: Any) -> Classes:
    protocol = import_module("aiokafka.coordinator.protocol")
    sticky = import_module("aiokafka.coordinator.assignors.sticky.sticky_assignor")
    return present(
        {
            ("ConsumerProtocolSubscription", 0): (protocol, ("ConsumerProtocolMemberMetadata",)),
            ("ConsumerProtocolAssignment", 0): (protocol, ("ConsumerProtocolMemberAssignment",)),
            ("StickyAssignorUserData", 1): (sticky, ("StickyAssignorUserDataV1",)),
            # Releases 0.11 and 0.12 count the versions of request headers from 0.
            ("RequestHeader", 1): (api, ("RequestHeader_v0", "RequestHeader_v1", "RequestHeader")),
            ("RequestHeader", 2): (api, ("RequestHeader_v2", "RequestHeaderV2", "RequestHeader_v1")),
            ("ResponseHeader", 0): (api, ("ResponseHeader_v0", "ResponseHeader")),
            ("ResponseHeader", 1): (api, ("ResponseHeader_v1", "ResponseHeaderV2")),
        }
    )


def _assignors() -> StructAssignors:
    coordinator = import_module("aiokafka.consumer.group_coordinator").GroupCoordinator
    return StructAssignors(
        "aiokafka",
        import_module("aiokafka.coordinator.protocol").ConsumerProtocol,
        # No release up to 0.14 calls an assignor's ``on_generation_assignment``, so their members write generation -1.
        passes_generation="on_generation_assignment" in coordinator._on_join_complete.__code__.co_names,
        joined=_joined,
    )


def _joined(written: Any, _: Member) -> Any:
    """aiokafka leaves out instance ids when it calls an assignor."""
    return written
