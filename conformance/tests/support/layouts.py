"""Layouts and refusals that tests of the codec share."""

from typing import Any

import pytest

from kipcheck.conformance.core.values.edition import EDITIONS
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import messages, spec

JOIN_0, JOIN_4, JOIN_5, JOIN_9 = (layout("apache", "JoinGroupRequest", version) for version in (0, 4, 5, 9))
VERSIONS_0, VERSIONS_3 = (layout("apache", "ApiVersionsResponse", version) for version in (0, 3))
SUBSCRIPTION_3 = layout("apache", "ConsumerProtocolSubscription", 3)
HEARTBEAT_4 = layout("apache", "HeartbeatRequest", 4)
STREAMS_10 = layout("apache", "AssignmentInfo", 10)

ALL = [each for edition in EDITIONS.values() for message in messages(edition) for each in spec(edition, message)]
FUTURE = spec(EDITIONS["apache"], "SubscriptionInfo").at(12)


def refusal(work: Any, *arguments: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        work(*arguments)
    return caught.value


def spaced(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))
