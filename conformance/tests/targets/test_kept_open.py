"""A session is kept for the next one who opens the target, if the target can forget."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.targets.kept_open import KeptOpen
from kipcheck.conformance.targets.protocol import Session


class _Counting:
    """Counts how often it is opened, renewed and closed."""

    name = "counting"

    def __init__(self, forgets: bool) -> None:
        self.forgets = forgets
        self.events: list[str] = []

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        self.events.append(f"open {role.value}")
        yield cast(Any, self)
        self.events.append("close")

    def renew(self) -> bool:
        self.events.append("renew")
        return self.forgets


@pytest.mark.parametrize(
    ("forgets", "events"),
    [
        (True, ["open codec", "renew", "renew", "open leader", "renew", "close", "close"]),
        (False, [*["open codec", "renew", "close"] * 2, "open leader", "renew", "close"]),
    ],
)
def test_a_target_that_can_forget_is_opened_once_in_each_role(forgets: bool, events: list[str]) -> None:
    counting = _Counting(forgets)
    kept = KeptOpen(cast(Any, counting))
    for role in (Role.CODEC, Role.CODEC, Role.LEADER):
        with kept.open("apache", role) as session:
            assert session is cast(Any, counting)
    kept.close()
    assert counting.events == events


def test_two_sessions_at_once_are_two() -> None:
    counting = _Counting(forgets=True)
    kept = KeptOpen(cast(Any, counting))
    with kept.open("apache", Role.CODEC), kept.open("apache", Role.CODEC):
        assert counting.events == ["open codec"] * 2
    kept.close()
    assert counting.events.count("close") == 2
