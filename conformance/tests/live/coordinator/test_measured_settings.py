"""What a running broker does not describe is measured, since settings break no law."""

from collections.abc import Sequence
from dataclasses import replace

from kipcheck.conformance.live.connections.connections import Connections
from kipcheck.conformance.live.coordinator.admin import versions_of
from kipcheck.conformance.live.coordinator.cleanup import UsedGroup
from kipcheck.conformance.live.coordinator.measured_settings import measured
from kipcheck.conformance.protocols.group.model.answers import Config
from kipcheck.conformance.tests.support.live import World, run
from kipcheck.conformance.tests.support.loops import for_each

DELAY, LONGEST = "group.initial.rebalance.delay.ms", "group.max.session.timeout.ms"
ASSUMED = Config(initial_delay_ms=400)


@for_each([
    ((f"{DELAY}=0", f"{LONGEST}=1800000"), replace(ASSUMED, initial_delay_ms=0)),
    ((f"{DELAY}=400", f"{LONGEST}=1800000"), ASSUMED),
    ((f"{DELAY}=0", f"{LONGEST}=300000"), replace(ASSUMED, initial_delay_ms=0, max_session_ms=300_000)),
    ((f"{DELAY}=0", f"{LONGEST}=7000"), ASSUMED),
])  # fmt: skip
def test_delay_and_longest_session_are_those_of_the_broker(config: Sequence[str], expected: Config) -> None:
    used: list[UsedGroup] = []

    async def test(world: World) -> None:
        connections = Connections("127.0.0.1", world.port)

        async def coordinator_of(group: str) -> Connections:
            return connections

        versions = await versions_of(connections)
        assert await measured(ASSUMED, {}, versions, "RUN", coordinator_of, used) == expected
        await connections.close()

    run(test, config=list(config))
    assert [each.group for each in used] == ["kipcheck-RUN-settings"] * ("7000" not in config[1])


def test_what_a_broker_describes_is_not_measured() -> None:
    async def coordinator_of(group: str) -> Connections:
        raise AssertionError(group)

    async def test(world: World) -> None:
        connections = Connections("127.0.0.1", world.port)
        versions = await versions_of(connections)
        assert await measured(ASSUMED, {DELAY: "400"}, versions, "RUN", coordinator_of, []) == ASSUMED
        await connections.close()

    run(test, config=[f"{DELAY}=0"])
