"""What generic rooms ask a family, and what protocols register with the testee protocol."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from kipcheck.conformance.core.operations import verb_registry
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History, Op, Refused, Replied
from kipcheck.conformance.engine.doctor.samples import asked_of, assignors, comparisons, named, renamed
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.assignment.checks.assignors import LEADER, two_members
from kipcheck.conformance.protocols.assignment.checks.mixed import MIXED
from kipcheck.conformance.protocols.checks import CHECKS, FAMILIES, family_of
from kipcheck.conformance.protocols.group import ops as group
from kipcheck.conformance.protocols.member import ops as member
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.protocol import STREAM, Claims, operation
from kipcheck.conformance.tests.support.loops import some_by_default

CLAIMS = replace(Reference().claims(), messages={"HeartbeatRequest": (3, 4), "Unknown": (0, 1)})
PLAIN = Case("no-such-check", "apache", Role.LEADER, ())


def test_the_family_of_a_case_is_that_of_its_check() -> None:
    for check in CHECKS.values():
        assert family_of(replace(PLAIN, check=check.id, role=check.role)) is check.family


def test_the_family_of_an_unknown_check_is_the_first_of_its_role() -> None:
    assert family_of(PLAIN) is LEADER
    assert family_of(replace(PLAIN, check="wire/round-trip")) is LEADER


def test_every_role_has_a_family() -> None:
    for role in Role:
        assert family_of(replace(PLAIN, role=role)).role is role


def test_a_step_that_leaves_nothing_open_is_sent_as_it_is() -> None:
    op = two_members("range", "t")
    first = Step("leader", "assign", {key: each for key, each in op.items() if key != "op"})
    again = Step("leader", "assign", {**first.body, "rejoin": True})
    complete = LEADER.complete
    assert complete is not None and complete is MIXED.complete
    assert complete(first, ()) is first
    assert complete(again, ()) is None
    answered = Op(0, first, Replied((("assignment", [{"id": "c1", "partitions": [["t", 0]]}]),)), 1)
    sent = complete(again, (answered,))
    assert sent is not None and "rejoin" not in sent.body
    assert [(each["id"], each["owned"], each["generation"]) for each in sent["members"]] == [
        ("c1", [["t", 0]], 1),
        ("c2", [], -1),
    ]
    assert complete(again, (Op(0, first, Refused("E", ""), 1),)) is None


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_a_step_names_its_subject(check: Any) -> None:
    where = next(
        (each for each in ("apache", "kip-429", "kip-584", "apache@3.9.2") if any(check.family.subjects(each))),
        "kip-268",
    )
    subject = next(each for each in check.family.subjects(where) if check.about(each))
    sample = next(check.samples(subject, 0, 5), None)
    if sample is not None:
        place = check.family.place(sample.case.steps[0])
        assert place is None or place[0] == subject.name


@pytest.mark.parametrize("family", FAMILIES)
def test_a_digest_is_that_of_the_answers(family: Any) -> None:
    def digest(*answers: Any) -> str:
        steps = tuple(Step("a", "b") for _ in answers)
        ops = tuple(Op(at, Step("a", "b"), each, at + 1) for at, each in enumerate(answers))
        return str(family.digest(History(replace(PLAIN, steps=steps), "t", ops)))

    one = Replied((("assignment", [{"id": "a", "partitions": [["t", 0], ["t", 1]]}, {"id": "b", "partitions": []}]),))
    other = Replied((("assignment", [{"id": "b", "partitions": []}, {"id": "a", "partitions": [["t", 1], ["t", 0]]}]),))
    assert (digest(one) == digest(other)) is (family.role is Role.LEADER)
    assert digest(Refused("E", "why")) == digest(Refused("F", "")) == "refused"


@pytest.mark.parametrize(
    ("role", "sent"),
    [
        (
            Role.CODEC,
            [f"{op} HeartbeatRequest v{version}" for version in (3, 4) for op in ("encode", "decode", "recode")],
        ),
        (Role.LEADER, ["assign range", "assign roundrobin", "assign sticky", "assign cooperative-sticky"]),
        (
            Role.CONTROLLER,
            [
                "broker-up",
                "update",
                "start-broker",
                "elect-controller",
                "update-features",
                "kraft-levels",
                "zk-controller",
                "zk-node",
                "kraft-cluster",
                "kraft-picture",
                "client-features",
                "broker-answers",
                "app-join",
                "app-state",
                "tool-broker",
                "tool-knows",
                "tool-upgrade-all",
                "tool-describe",
            ],
        ),
        (
            Role.COORDINATOR,
            [
                "join v3",
                "describe-group v3",
                "consumer-heartbeat",
                "classic-join",
                "mixed-elapse",
                "classic-receive",
                "streams-group-heartbeat",
                "streams-group-describe",
                "share-group-heartbeat",
                "share-reset",
                "share-produce",
                "share-fetch",
                "share-acknowledge",
            ],
        ),
        (
            Role.MEMBER,
            [f"{op} HeartbeatRequest v{version}" for version in (3, 4) for op in ("encode", "decode", "recode")],
        ),
    ],
)
def test_a_doctor_asks_what_families_offer(role: Role, sent: list[str]) -> None:
    assert [named(each) for each in asked_of(CLAIMS, role)] == sent


def test_a_doctor_asks_members_and_leaders_of_streams_groups() -> None:
    claims = Claims(assignors=(STREAM,))
    assert [each["op"] for each in asked_of(claims, Role.LEADER)] == ["stream-assign"]
    assert [each["op"] for each in asked_of(claims, Role.MEMBER)] == [
        "stream-configure", "stream-subscribe", "stream-assigned",
    ]  # fmt: skip


def test_the_assignors_of_all_editions_are_known() -> None:
    assert set(Reference().claims().assignors) < set(assignors())
    assert assignors()[-1] == STREAM and len(assignors()) == len(set(assignors()))


# ---- verbs


def test_verbs_are_registered_with_the_check_of_their_answers() -> None:
    for each in group.OPERATIONS.verbs:
        assert verb_registry.answers_to(each) == verb_registry.Answers("answers", group.check_answer)
        assert verb_registry.names_its_sender(each) is (each in group.OPERATIONS.requests)
    for each in member.OPERATIONS.verbs:
        assert verb_registry.answers_to(each) == verb_registry.Answers("actions", member.ACTIONS.check)
    assert verb_registry.answers_to("enchant") is None
    assert operation(Step("a", "join", {"version": 3})) == {"op": "join", "actor": "a", "version": 3}
    assert operation(Step("codec", "decode", {"hex": ""})) == {"op": "decode", "hex": ""}


@pytest.mark.parametrize(
    "module",
    some_by_default(
        [
            "kipcheck.conformance.campaign.shard",
            "kipcheck.conformance.engine.doctor.probes",
            "kipcheck.conformance.engine.execution.run",
            "kipcheck.conformance.engine.execution.replay",
            "kipcheck.conformance.suite.items",
            "kipcheck.conformance.protocols.machine_targets",
            "kipcheck.conformance.engine.strength.mutation_test",
            "kipcheck.conformance.engine.execution.worker",
            "kipcheck.golden.regressions",
        ],
        2,
    ),
)
def test_every_process_that_talks_to_targets_knows_all_verbs(module: str) -> None:
    code = f"""if True:
        from importlib import import_module
        import_module({module!r})
        from kipcheck.conformance.core.operations.verb_registry import answers_to
        print(*(each for each in ("join", "loaded", "member-told", "member-poll") if answers_to(each) is None))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == ""


def test_a_machine_that_begins_a_case_with_the_state_of_another_is_seen() -> None:
    shown: dict[Role, dict[str, Any]] = {
        Role.CONTROLLER: {"level": 3, "epoch": 1},
        Role.COORDINATOR: {"answers": [{"members": [{"id": "c"}]}]},
    }
    new: dict[Role, dict[str, Any]] = {
        Role.CONTROLLER: {"level": 0, "epoch": 0},
        Role.COORDINATOR: {"answers": [{"members": []}]},
    }
    found = {family.role: probe for family in FAMILIES if (probe := family.state_probe(CLAIMS)) is not None}
    assert found.keys() == shown.keys()
    for role, probe in found.items():
        assert probe.before and not probe.is_new(shown[role]) and probe.is_new(new[role])
    assert [each["op"] for each in found[Role.CONTROLLER].before] == ["broker-up", "update"]
    assert all(family.state_probe(Claims()) is None for family in FAMILIES if family.role is Role.COORDINATOR)


def test_the_doctor_compares_what_is_claimed() -> None:
    claims = Claims(messages={"HeartbeatRequest": (3, 4)}, operations={"HeartbeatRequest": ("decode",)})
    assert [named(each.operation) for each in comparisons(claims, Role.CODEC)] == [
        "decode HeartbeatRequest v3",
        "decode HeartbeatRequest v4",
    ]
    assert not [*comparisons(claims, Role.LEADER)]


def test_a_sample_is_asked_with_another_text() -> None:
    assert renamed(two_members("range", "t"), "t", "grüße") == two_members("range", "grüße")


def test_the_reference_announces_every_machine_before_an_edition_is_chosen() -> None:
    claimed = {*Reference().claims().machines}
    declared = {machine for each in registry.operations().values() for machine in each.machines}
    played = {"client", "client-share", "client-streams", "damage", "failover"}
    assert declared - claimed == played, "a check of another machine would select no target"
