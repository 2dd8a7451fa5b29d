"""Damaged requests to running brokers: their bytes, what a process uses, and a released broker that survives them."""

import os
from pathlib import Path

import pytest

from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History, Replied
from kipcheck.conformance.engine.execution.run import Options, run
from kipcheck.conformance.live.damage.requests import damaged, key_of, nearest, sound
from kipcheck.conformance.live.damage.resources import Resources, used
from kipcheck.conformance.protocols.damage.invariants import OLD_CLIENTS, serves_old_clients
from kipcheck.conformance.protocols.damage.ops import OPERATIONS, Send
from kipcheck.conformance.protocols.damage.strategies import APIS, PLACES, systematic
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.wire.framing import frame
from kipcheck.strategies.damage import KINDS


def test_every_kind_of_damage_has_bytes_at_every_place() -> None:
    assert {*KINDS} <= {kind for _, kind in PLACES}
    for number, (place, kind) in enumerate(PLACES):
        api = APIS[number % len(APIS)]
        version = nearest(api, number % 10, {key_of(api): (0, 9)})
        assert version is not None
        header, head, layout, body = sound(api, version)
        made = damaged(Send(api, version, place, kind, number), version)  # type: ignore[arg-type]
        assert made != frame(header.encode(head) + layout.encode(body)), (api, version, place, kind)
        assert made == damaged(Send(api, version, place, kind, number), version)  # type: ignore[arg-type]


def test_a_version_is_the_nearest_that_the_broker_announces() -> None:
    key = key_of("JoinGroup")
    assert [nearest("JoinGroup", each, {key: (2, 4)}) for each in (0, 3, 9)] == [2, 3, 4]
    assert nearest("JoinGroup", 3, {}) is None


def test_systematic_values_have_each_kind_at_each_place_once() -> None:
    steps = [step["body"] for value in systematic() for step in value]
    assert sorted((each["place"], each["kind"]) for each in steps) == sorted(PLACES)


def test_a_descriptor_that_stays_open_is_seen() -> None:
    before = used([os.getpid()])
    assert before.threads >= 1 and before.memory_mib > 1
    kept = [os.dup(0) for _ in range(3)]
    try:
        assert used([os.getpid()]).since(before).descriptors == 3
    finally:
        for each in kept:
            os.close(each)
    assert used([0]) == Resources()


def test_an_old_client_waits_for_a_group_and_for_nothing_else() -> None:
    asked = [(api, end) for api in ("JoinGroup", "SyncGroup", "Heartbeat") for end in ("answered", "silent", "closed")]
    steps = OPERATIONS.parse_shorthand("; ".join(f"old {api} 0" for api, _ in asked))
    observed = [Replied((("end", end), ("responses", 0), ("sent", ""))) for _, end in asked]
    history = History.of(Case(OLD_CLIENTS, "apache", Role.COORDINATOR, tuple(steps)), "a broker", observed)
    broken = [asked[found.at[0]] for found in serves_old_clients(history)]
    assert broken == [
        ("JoinGroup", "closed"),
        ("SyncGroup", "closed"),
        ("Heartbeat", "silent"),
        ("Heartbeat", "closed"),
    ]


@pytest.mark.jars
def test_a_released_broker_survives_each_kind(tmp_path: Path) -> None:
    try:
        kafka_broker.class_path("4.4.0")
    except Unavailable as why:
        pytest.skip(str(why))
    outcome = run(
        Options(targets=("kafka:4.4.0",), edition="apache@4.4.0", checks=("damage/requests",), cases=8, workers=1,
                out=tmp_path)
    )  # fmt: skip
    assert outcome.ledger is not None and outcome.exit_code == 0, outcome.text
    footer = read(outcome.ledger).footer
    assert footer is not None and footer.counts["kafka:4.4.0"]["damage/requests"]["PASS"] == 8
