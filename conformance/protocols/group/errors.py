"""The errors of the protocol of classic groups, and how fields and answers have them."""

from operator import attrgetter
from typing import Any, Final

from kipcheck.conformance.core.operations.field_kinds import Kind, TextForm
from kipcheck.conformance.core.operations.wire_form import Value
from kipcheck.conformance.core.values.kafka_errors import KafkaError as Error, error_name

__all__ = ["ERROR", "KNOWN", "KNOWN_ERROR", "REPORTED_ERROR", "Error"]

KNOWN: Final = {name: Error[name] for name in (
    "UNKNOWN_SERVER_ERROR", "NONE", "UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT",
    "MESSAGE_TOO_LARGE", "OFFSET_METADATA_TOO_LARGE", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR", "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "ILLEGAL_GENERATION",
    "INCONSISTENT_GROUP_PROTOCOL", "INVALID_GROUP_ID", "UNKNOWN_MEMBER_ID", "INVALID_SESSION_TIMEOUT",
    "REBALANCE_IN_PROGRESS", "INVALID_COMMIT_OFFSET_SIZE", "GROUP_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION",
    "KAFKA_STORAGE_ERROR", "NON_EMPTY_GROUP", "GROUP_ID_NOT_FOUND", "MEMBER_ID_REQUIRED", "GROUP_MAX_SIZE_REACHED",
    "FENCED_INSTANCE_ID",
)}  # fmt: skip
"""Those that the protocol of classic groups uses. Others become UNKNOWN_SERVER_ERROR."""


def _known_error(found: Any) -> Error:
    if found not in KNOWN:
        raise TypeError(f": unknown error {found!r}: use one of {', '.join(KNOWN)}")
    return KNOWN[found]


def _any_error(found: Any) -> Error:
    if not isinstance(found, str):
        raise TypeError(f": must be a string, got {found!r}")
    return KNOWN.get(found, Error.UNKNOWN_SERVER_ERROR)


_NAME: Final = attrgetter("name")
_TEXT: Final = TextForm(r"\w+", _known_error, _NAME)
KNOWN_ERROR: Final = Kind("name of an error", {"type": "string"}, _known_error, _NAME, lambda note: _TEXT)
REPORTED_ERROR: Final = Kind("name of an error", {"type": "string"}, _any_error, _NAME, lambda note: _TEXT)
"""Errors unknown to this protocol become UNKNOWN_SERVER_ERROR."""


def _of_code(code: int) -> Error:
    return KNOWN.get(error_name(code), Error.UNKNOWN_SERVER_ERROR)


ERROR: Final = Value(int, _of_code)
"""How messages have errors: by code."""
