"""What requests to the coordinator of a classic group depend on: names of topics, scaled times, versions."""

from collections.abc import Mapping
from dataclasses import dataclass

from kipcheck.conformance.core.operations.wire_form import Context, Inexpressible, Value, check
from kipcheck.conformance.protocols.group.model.messages import Commit, Request
from kipcheck.conformance.protocols.group.ops import ANSWERS, VALUES
from kipcheck.conformance.wire.bodies import body_of, layout_of


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of conversations, as the broker has them."""

    names: Mapping[str, str]
    """``t`` -> its name."""
    partitions: Mapping[str, int]
    """By name."""

    def own(self, name: str) -> str:
        return next((each for each, there in self.names.items() if there == name), name)


@dataclass(frozen=True, slots=True)
class Scale:
    """How much faster than stated the time of a broker passes, whose settings are divided likewise."""

    times: int
    min_session_ms: int

    def ms(self, stated: int) -> int:
        return -(-stated // self.times)

    def session(self, stated: int) -> int:
        """A session stays on its side of the bounds: below the least one it is rounded down."""
        return stated // self.times if stated < self.min_session_ms else self.ms(stated)


def context_of(group: str, topics: Topics, scaled: Scale) -> Context:
    """The context of the requests of a conversation, and of their answers."""
    values = {
        "topic": Value(topics.names.__getitem__, topics.own),
        "session": Value(scaled.session, int),
        "timeout": Value(scaled.ms, int),
    }
    return Context({**VALUES, **values}, {"group": group})


def unknown_partition(request: Request, topics: Topics) -> str:
    """A partition in the request that the broker lacks; empty: it has all."""
    for topic, partition, _ in request.offsets if isinstance(request, Commit) else ():
        if partition >= topics.partitions.get(topics.names.get(topic, ""), 0):
            return f"the broker has no partition {partition} for topic {topic}"
    return ""


def why_inexpressible(request: Request, context: Context) -> str:
    """Why its version does not have the request or its answer; empty: it has both."""
    answer = ANSWERS[type(request)]
    try:
        check(answer, layout_of(answer, request.version), context)
        body_of(request, request.version, context)
    except Inexpressible as why:
        return str(why)
    return ""
