"""The errors of the protocol of classic groups, and how fields and answers have them."""

from enum import IntEnum
from operator import attrgetter
from typing import Any, Final

from kipcheck.conformance.core.operations.field_kinds import Kind, TextForm
from kipcheck.conformance.core.operations.wire_form import Value


class Error(IntEnum):
    """Kafka's error codes that this protocol uses (``org.apache.kafka.common.protocol.Errors``)."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    MESSAGE_TOO_LARGE = 10
    OFFSET_METADATA_TOO_LARGE = 12
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    GROUP_AUTHORIZATION_FAILED = 30
    UNSUPPORTED_VERSION = 35
    KAFKA_STORAGE_ERROR = 56
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82


def _known_error(found: Any) -> Error:
    if found not in Error.__members__:
        raise TypeError(f": unknown error {found!r}: use one of {', '.join(Error.__members__)}")
    return Error[found]


def _any_error(found: Any) -> Error:
    if not isinstance(found, str):
        raise TypeError(f": must be a string, got {found!r}")
    return Error.__members__.get(found, Error.UNKNOWN_SERVER_ERROR)


_NAME: Final = attrgetter("name")
_TEXT: Final = TextForm(r"\w+", _known_error, _NAME)
KNOWN_ERROR: Final = Kind("name of an error", {"type": "string"}, _known_error, _NAME, lambda note: _TEXT)
REPORTED_ERROR: Final = Kind("name of an error", {"type": "string"}, _any_error, _NAME, lambda note: _TEXT)
"""Errors unknown to this protocol become UNKNOWN_SERVER_ERROR."""


def _of_code(code: int) -> Error:
    return Error(code) if code in _CODES else Error.UNKNOWN_SERVER_ERROR


_CODES: Final = frozenset(Error)
ERROR: Final = Value(int, _of_code)
"""How messages have errors: by code, of which unknown ones become UNKNOWN_SERVER_ERROR, too."""
