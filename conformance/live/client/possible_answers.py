"""What a scripted broker can answer: the versions that it serves, and the errors that fit a request."""

from collections.abc import Mapping
from typing import Final

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.live.recording.fetch_sessions import FULL, epoch_of
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.protocols.client.answer_ops import SHARES
from kipcheck.conformance.protocols.client.model import OF_CLASSIC, OF_KIP_848
from kipcheck.conformance.protocols.client.ops import Error, Kind
from kipcheck.conformance.protocols.client.terms import HEARTBEATS
from kipcheck.conformance.wire.framing import requests

OF_MEMBERS: Final = frozenset({"UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "GROUP_ID_NOT_FOUND"})
"""The errors of heartbeats with epochs that none with epoch 0 gets, since it joins."""


def within(served: range, key: int, offered: Mapping[Kind, range]) -> range:
    """The versions of a request that are offered. Errors: LookupError."""
    name = requests(APACHE)[key].name.removesuffix("Request")
    wanted = next((versions for kind, versions in offered.items() if kind == name), served)
    found = range(max(served.start, wanted.start), min(served.stop, wanted.stop))
    if not found:
        raise LookupError(f"the broker has no version {wanted.start} to {wanted.stop - 1} of {name}")
    return found


def can_get(request: Received, error: Error, is_modern: bool) -> bool:
    """Whether the request says what the error is about: a member, the epoch of a leader, or stable offsets.

    ``is_modern``: the client is a member of KIP-848.
    """
    if error == "UNKNOWN_MEMBER_ID" and request.api == "JoinGroup":
        return bool(request.body["memberId"])
    if request.api in HEARTBEATS and error in OF_MEMBERS:
        epoch: int = request.body["memberEpoch"]
        return epoch > 0 or (epoch < 0 and error != "FENCED_MEMBER_EPOCH")  # which no member that leaves gets
    if request.api in SHARES[1:]:
        return bool(request.body["shareSessionEpoch"] > 0)
    if (request.api, error) in OF_CLASSIC:
        return not is_modern
    if (request.api, error) in OF_KIP_848:
        return is_modern and any(each.get("memberId") for each in request.body.get("groups", (request.body,)))
    if error in ("FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH"):
        return epoch_of(request) > FULL
    if error in ("FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH"):
        parts = (part for each in request.body["topics"] for part in each["partitions"])
        return any(each.get("currentLeaderEpoch", -1) >= 0 for each in parts)
    return error != "UNSTABLE_OFFSET_COMMIT" or bool(request.body.get("requireStable"))
