"""Each released client is sent every error at every request, those that pass and those that no client recovers from."""

from collections.abc import Iterator

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History, Op, Unsupported
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.engine.known.lists import load
from kipcheck.conformance.live.client.target import LiveClient
from kipcheck.conformance.protocols.client.answer_ops import UNDRAWN
from kipcheck.conformance.protocols.client.model import (
    CLASSIC_ONLY,
    CONSUMER_ONLY,
    ERRORS,
    OF_KIP_848,
    REFUSALS,
    STATIC_ONLY,
)
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.registry import target

CLIENTS = (
    "kafka-python", "aiokafka", "confluent-kafka", pytest.param("java", marks=pytest.mark.jars),
    pytest.param("franz-go", marks=pytest.mark.go), pytest.param("sarama", marks=pytest.mark.go),
    pytest.param("kafkajs", marks=pytest.mark.node), pytest.param("platformatic-kafka", marks=pytest.mark.node),
)  # fmt: skip
MODERN = ("confluent-kafka", "java", "franz-go", "platformatic-kafka")
STATIC = ("kafka-python", "aiokafka", "confluent-kafka", "java", "franz-go", "sarama", "platformatic-kafka")
LAWS = [each for each in all_invariants(Role.CLIENT) if each.role is Role.CLIENT]


def scripts() -> Iterator[str]:
    """A member that has committed is sent the error; where its offsets are looked up, it gets other partitions."""
    for kind in (each for each in ERRORS if each not in UNDRAWN):
        modern = ["protocol consumer"] if kind in CONSUMER_ONLY else []
        moves = ["others 1 follow", "pass 300", "assign 1,2"] if kind == "OffsetFetch" else ["pass 300"]
        for error in ERRORS[kind]:
            before = ["protocol consumer"] if (kind, error) in OF_KIP_848 else modern
            yield "; ".join([*before, *moves, f"answer {kind} {error}", "pass 200", "stop"])
        for refusal in REFUSALS[kind]:
            static = ["static"] if (kind, refusal) in STATIC_ONLY else []
            yield "; ".join([*static, *modern, *moves, f"refuse {kind} {refusal}", "stop"])


def test_every_error_is_sent_at_every_request() -> None:
    texts = [*scripts()]
    steps = {OPERATIONS.shorthand((each,)) for text in texts for each in OPERATIONS.parse_shorthand(text)}
    assert {f"answer {kind} {error}" for kind in ERRORS.keys() - UNDRAWN for error in ERRORS[kind]} <= steps
    assert {f"refuse {kind} {error}" for kind in ERRORS.keys() - UNDRAWN for error in REFUSALS[kind]} <= steps
    assert ERRORS.keys() >= CLASSIC_ONLY | CONSUMER_ONLY


@pytest.mark.integration
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_that_is_sent_every_error_breaks_no_law_in_an_unknown_way(name: str) -> None:
    try:
        client = target(f"client:{name}")
    except Unavailable as why:
        pytest.skip(str(why))
    assert isinstance(client, LiveClient)
    cases = [Case("client/groups", "apache", Role.CLIENT, OPERATIONS.parse_shorthand(each)) for each in scripts()]
    with client.open("apache", Role.CLIENT) as session:
        found = session.run(cases)
    entries = [each for known in load(["default"], [f"client:{name}"]) for each in known.entries]
    unknown, played = set[str](), 0
    for case, observed in zip(cases, found, strict=True):
        text = OPERATIONS.shorthand(case.steps)
        if isinstance(observed[-1], Unsupported):
            lacks = ("static" in text and name not in STATIC) or ("protocol consumer" in text and name not in MODERN)
            assert lacks, (text, observed[-1])
            continue
        played += 1
        ops = (Op(at, *each, at + 1) for at, each in enumerate(zip(case.steps, observed, strict=True)))
        for verdict in judge(History(case, client.info.name, tuple(ops)), LAWS):
            for breach in verdict.violations:
                if not any(
                    each.applies_to(f"client:{name}", client.info.version)
                    and each.invariant == verdict.invariant
                    and each.matches_shape(breach.shape, breach.why)
                    for each in entries
                ):
                    unknown.add(f"{verdict.invariant} {breach.shape}: {text}")
    assert not unknown, "\n".join(sorted(unknown))
    assert played > 50
