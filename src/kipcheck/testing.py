"""A broker of Kafka for the tests of a client, whose answers a script changes.

    from kipcheck import testing

    with testing.broker("answer JoinGroup NOT_COORDINATOR at next", topics={"orders": 3}) as broker:
        ...  # a client with bootstrap.servers = broker.address
        broker.expect("JoinGroup", error="NOT_COORDINATOR")

With pytest, the fixture ``kipcheck_broker`` is such a broker.
"""

from kipcheck.conformance.live.testing.arrivals import Request
from kipcheck.conformance.live.testing.in_thread import Broker, broker
from kipcheck.conformance.live.testing.script import Unplayable
from kipcheck.conformance.live.testing.stage import Unexpected

__all__ = ["Broker", "Request", "Unexpected", "Unplayable", "broker"]
