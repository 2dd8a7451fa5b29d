"""Restarts of a broker that kipcheck started, amid conversations."""

import asyncio
from collections.abc import Sequence

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Observation, Replied
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.coordinator import restarts
from kipcheck.conformance.live.coordinator.restarts import Reload, Restarted, Restarts, reloads
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS as CONSUMER
from kipcheck.conformance.protocols.group.ops import OPERATIONS as CLASSIC
from kipcheck.conformance.protocols.share_group.ops import OPERATIONS as SHARES
from kipcheck.conformance.targets.protocol import Broken
from kipcheck.conformance.tests.support.loops import for_each

STOPS_S = 0.05
"""How long the broker takes to stop."""
STARTS_S = 0.05


def case(text: str) -> Case:
    return Case("consumer-group/records", "apache", Role.COORDINATOR, CONSUMER.parse_shorthand(text))


@for_each(
    [
        ("join a on t none; reload; beat a told", True),
        ("join a on t none; beat a told", False),
        ("join a on t none; reload; beat a told; reload", False),  # it would be a restart for this one alone
        ("join a none like t|u; reload", False),
        ("join a on t none; create v; reload", False),
        ("configure session 60000; join a on t none; reload", True),
    ]
)
def test_conversations_with_one_reload_and_nothing_that_comes_later_are_played(text: str, played: bool) -> None:
    assert reloads(case(text)) is played


def test_share_groups_have_reloads_too() -> None:
    steps = SHARES.parse_shorthand("join a on t; reload; beat a")
    assert reloads(Case("share-group/records", "apache", Role.COORDINATOR, steps))


def test_classic_groups_have_no_reload() -> None:
    steps = CLASSIC.parse_shorthand("join a; unload; load")
    assert not reloads(Case("group/records", "apache", Role.COORDINATOR, steps))


def played(
    monkeypatch: pytest.MonkeyPatch, texts: Sequence[str], fails: bool = False
) -> tuple[list[Restarted], Restarts, list[tuple[Observation, ...]]]:
    """The restarts that conversations waited for. One that has no reload ends before them."""
    monkeypatch.setattr(restarts, "CLEANS_S", 0.0)
    found: list[Restarted] = []

    async def restart() -> float:
        await asyncio.sleep(STOPS_S)
        if fails:
            raise Broken("it does not start")
        started = now()
        await asyncio.sleep(STARTS_S)
        return started

    async def play(each: Case, reload: Reload) -> tuple[Observation, ...]:
        if any(step.verb == "consumer-reload" for step in each.steps):
            found.append(await reload())
        return (Replied(()),) * len(each.steps)

    async def all_of_them() -> tuple[Restarts, list[tuple[Observation, ...]]]:
        made = Restarts(restart, 5)
        return made, await made.play([case(each) for each in texts], play)

    made, observed = asyncio.run(all_of_them())
    return found, made, observed


def test_one_restart_serves_all_conversations_also_where_one_ends_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Restarts, "_before_s", lambda self, case: 0.0)
    found, made, observed = played(monkeypatch, ["join a on t none; reload"] * 2 + ["join a on t none"])
    assert made.made == 1 and found == [found[0]] * 2
    assert [len(each) for each in observed] == [2, 2, 1]


def test_sessions_begin_again_after_the_new_process_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    ((at,), made, _) = played(monkeypatch, ["join a on t none; reload"])
    assert at.gone_s + STOPS_S <= at.read.first + 0.01 and at.read.first + STARTS_S <= at.read.last + 0.01
    assert made.took_s >= STOPS_S


def test_a_broker_that_does_not_start_again_ends_all_conversations(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Broken, match="it does not start"):
        played(monkeypatch, ["join a on t none; reload"] * 2, fails=True)
