"""Invariants of a broker with a client that damages its requests."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.history import History, Op, Replied
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import impact, invariant, steps_of

REQUESTS: Final = "damage/requests"
OLD_CLIENTS: Final = "damage/old-clients"
SERVED: Final = "served"
MOST_DESCRIPTORS: Final = 3
MOST_THREADS: Final = 3
MOST_MEMORY_MIB: Final = 64
MOST_PROCESSOR_MS: Final = 1000
"""For each damaged request."""
damaged = partial(invariant, role=Role.COORDINATOR, checks=(REQUESTS,))
OTHERS: Final = "damage-others"
SEND: Final = "damage-send"
OLD: Final = "damage-old"
MAY_WAIT: Final = frozenset({"JoinGroup", "SyncGroup"})
"""A coordinator may answer them later, in any version: silence says nothing about the version."""


def _looks(history: History) -> Iterator[tuple[Op, Replied, int]]:
    """Each look at the others, and the number of damaged requests before it, at least one."""
    for op in history.ops:
        if op.step.verb == OTHERS and isinstance(op.observation, Replied):
            yield op, op.observation, max(1, sum(each.step.verb == SEND for each in history.ops[: op.index]))


@impact("One client with damaged requests stops a broker for all", "crash or hang", "resources", "hang")
@damaged("damage/serves-others", "grp-26", applies_to=steps_of(OTHERS))
def serves_others(history: History) -> Iterator[Violation]:
    """Whatever one client sends, the broker serves its other clients, over old and new connections, and correctly."""
    for op, found, _ in _looks(history):
        for which in ("old", "new"):
            if found[which] != SERVED:
                yield Violation(
                    f"after damaged requests of another client a request over the {which} connection is not served: "
                    f"{found[which]}",
                    (op.index,), "the answer that it had before", found[which],
                    shape=("others", which, found[which].partition(":")[0]),
                )  # fmt: skip


@impact("Damaged requests use up a broker", "crash or hang", "resources", "memory", links=("CWE-400",))
@damaged("damage/costs-little", "grp-27", applies_to=steps_of(OTHERS))
def costs_little(history: History) -> Iterator[Violation]:
    """Once the connections of damaged requests are gone, so is what they took: files, threads, memory, processor."""
    for op, found, sent in _looks(history):
        bounds = (
            ("descriptors", MOST_DESCRIPTORS, "open files"), ("threads", MOST_THREADS, "threads"),
            ("memory_mib", MOST_MEMORY_MIB, "MiB of memory"),
            ("processor_ms", MOST_PROCESSOR_MS * sent, "ms of processor time"),
        )  # fmt: skip
        for key, most, what in bounds:
            if found[key] > most:
                yield Violation(
                    f"{sent} damaged requests cost {found[key]} {what}", (op.index,), f"at most {most}",
                    str(found[key]), shape=("cost", key),
                )  # fmt: skip


@impact("Connections of clients that are gone stay open", "crash or hang", "resources", "memory", links=("CWE-772",))
@damaged("damage/lets-go", "grp-28", grade=Grade.SHOULD, applies_to=steps_of(SEND))
def lets_go(history: History) -> Iterator[Violation]:
    """A connection that the client half closes after a damaged request is answered or closed."""
    for op in history.ops:
        half = op.step.verb == SEND and op.step["end"] == "half-closes"
        if half and isinstance(op.observation, Replied) and op.observation["end"] == "silent":
            yield Violation(
                f"{op.step['api']} with {op.step['kind']} in its {op.step['place']}, then the end of the stream: the "
                "broker neither answers nor closes",
                (op.index,), "an answer, or the end of the connection", "neither within 5 s",
                shape=("half-open", op.step["place"]),
            )  # fmt: skip


@impact("Older clients cannot use a group", "refused peer", "versions", "refused-peer", links=("KIP-896",))
@invariant(
    "damage/serves-old-clients", "grp-404", role=Role.COORDINATOR, checks=(OLD_CLIENTS,), applies_to=steps_of(OLD)
)
def serves_old_clients(history: History) -> Iterator[Violation]:
    """A broker answers what members of groups send in the oldest versions that 4.0 keeps."""
    for op in history.ops:
        if op.step.verb != OLD or not isinstance(op.observation, Replied):
            continue
        api, version, end = op.step["api"], op.step["version"], op.observation["end"]
        if end == "answered" or (end == "silent" and api in MAY_WAIT):
            continue
        yield Violation(
            f"{api} v{version} of a client that has no later version is not answered: {end}",
            (op.index,), "an answer", end, shape=("old", api),
        )  # fmt: skip
