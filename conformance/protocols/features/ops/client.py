"""The operations of a client that reads and updates feature versions (KIP-584, Client discovery), and its answers.

The cluster is played: a client receives the answers of brokers, in any order and from any broker.
"""

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from kipcheck.conformance.core.operations.declaration import Operations, answer, operation
from kipcheck.conformance.core.operations.field_annotations import about, typical
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.features.ops.cluster import (
    NAME,
    SUPPORTED,
    Finalized,
    Outcome,
    Supported,
    kind_with_text,
)
from kipcheck.conformance.protocols.features.ops.kraft import LEVEL, Level

PLACE = 50


def _finalized(text: str) -> Finalized:
    name, _, span = text.partition(":")
    low, _, high = span.partition("-")
    return Finalized(name, int(low), int(high))


def _outcome(text: str) -> Outcome:
    name, _, error = text.partition(":")
    return Outcome(name, error)


FINALIZED: Final = kind_with_text(
    Finalized, rf"{NAME}:\d+-\d+", _finalized, lambda each: f"{each.feature}:{each.low}-{each.high}", "A:LOW-HIGH"
)
OUTCOME: Final = kind_with_text(
    Outcome, rf"{NAME}:[A-Z_]+", _outcome, lambda each: f"{each.feature}:{each.error}", "A:ERROR"
)
NO_EPOCH: Final = -1
"""Of an answer without finalized features."""


@answer()
@dataclass(frozen=True, slots=True)
class Asked:
    """Whether the client sent ApiVersions to a broker."""

    asks: bool


@answer()
@dataclass(frozen=True, slots=True)
class View:
    """What the client knows, as describeFeatures gives it, and which new behaviour it uses."""

    epoch: int | None
    """Null: no finalized features are known."""
    finalized: tuple[Finalized, ...]
    supported: tuple[Supported, ...]
    """Of the broker that answered."""
    uses: tuple[str, ...]
    """The features that it needs and uses."""


@answer()
@dataclass(frozen=True, slots=True)
class Futures:
    """How the futures of updateFeatures end: NONE, or an error."""

    results: tuple[Outcome, ...]
    all: str
    """Of the future for all updates."""


Action: TypeAlias = Asked | View | Futures


@operation(
    "client-features", "client", "client[ needs {needs}]", examples="client; client needs a:2",
    sentence="starts[, needs {needs}]", accepted=Asked,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class StartClient:
    """A client starts. It keeps the behaviour of a feature off until the level that it needs is finalized."""

    needs: Annotated[tuple[Annotated[Level, LEVEL], ...], about("the levels that it needs")] = ()


@operation(
    "broker-answers", "broker", "answer {epoch}[ {finalized}][ supports {supported}]",
    examples="answer -1; answer 3 a:1-2; answer 3 a:1-2 supports a:1-3",
    sentence="answers with epoch {epoch}[, {finalized}][, supports {supported}]", accepted=View,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class BrokerAnswers:
    """The client receives the answer of some broker to ApiVersions."""

    epoch: Annotated[int, about("of the finalized features; -1: there are none"), typical(0, 1, 2, -1)]
    finalized: Annotated[tuple[Annotated[Finalized, FINALIZED], ...], about("the finalized features")] = ()
    supported: Annotated[tuple[Annotated[Supported, SUPPORTED], ...], about("what the broker supports")] = ()


@operation("client-waits", "client", "pass {seconds}", examples="pass 600", sentence="{seconds} s pass", accepted=Asked)
@dataclass(frozen=True, slots=True)
class Wait:
    """Time passes."""

    seconds: Annotated[int, about("seconds"), typical(1, 60, 600)]


@operation(
    "controller-results", "controller", "results {results}[ top {top}]",
    examples="results a:NONE,b:INVALID_REQUEST; results a:NONE top NOT_CONTROLLER",
    sentence="answers UpdateFeatures: {results}[, top-level error {top}]", accepted=Futures,
)  # fmt: skip
@dataclass(frozen=True, slots=True)
class UpdateResults:
    """The client receives the response to its UpdateFeatures, with a result for each update."""

    results: Annotated[tuple[Annotated[Outcome, OUTCOME], ...], about("a result for each update")]
    top: Annotated[
        str | None, about("the top-level error"), typical(None, "NOT_CONTROLLER", "CLUSTER_AUTHORIZATION_FAILED")
    ] = None


Event: TypeAlias = StartClient | BrokerAnswers | Wait | UpdateResults
OPERATIONS: Operations[Event, Action] = Operations(
    "feature-client",
    Role.CONTROLLER,
    (StartClient, BrokerAnswers, Wait, UpdateResults),
    sample="client needs a:2; answer 1 a:1-2",
)
