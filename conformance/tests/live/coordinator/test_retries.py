"""Which conversations with a broker are played again, because what they show proves nothing."""

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Died, Observation, Replied
from kipcheck.conformance.live.coordinator.retries import proves_nothing
from kipcheck.conformance.protocols.group.ops import OPERATIONS

CASE = Case("group/parked", "apache@2.8.2", Role.COORDINATOR, OPERATIONS.parse_shorthand("join a; describe"))
CLOSED = Died("crashed", "DescribeGroups v5: the broker closed the connection instead of answering")


def after_a_join(last: Observation) -> tuple[Observation, ...]:
    return Replied((("answers", []),)), last


def test_a_closed_connection_proves_nothing_if_the_broker_answers_requests_twice() -> None:
    """Kafka 2.5.0 to 3.3.1 repeat responses to JoinGroup, and close the connection after it."""
    assert proves_nothing("kafka:2.8.2", CASE, after_a_join(CLOSED), repeats=True)


def test_a_connection_that_another_broker_closes_is_a_crash() -> None:
    assert not proves_nothing("kafka:2.8.2", CASE, after_a_join(CLOSED), repeats=False)


def test_a_response_that_cannot_be_read_is_not_excused() -> None:
    assert not proves_nothing("kafka:2.8.2", CASE, after_a_join(Died("garbled")), repeats=True)
