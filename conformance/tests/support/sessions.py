"""Questions to a session of one role or the other, in few words."""

from collections.abc import Mapping, Sequence
from typing import Any

from kipcheck.conformance.core.values.case import Case, Role, Step, step
from kipcheck.conformance.core.values.history import History, Observation, Op, Replied
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import Adapter, Session


def history_of(adapter: Adapter, case: Case) -> History:
    """What the adapter does in one case."""
    with InProcess(adapter).open(case.edition, case.role) as session:
        (history,) = converse([case], session)
    return history


def played(case: Case, observations: Sequence[Observation]) -> History:
    """What a broker did in one case."""
    ops = tuple(Op(at, *pair, at + 1) for at, pair in enumerate(zip(case.steps, observations, strict=True)))
    return History(case, "broker", ops)


def executed(session: Session, *steps: Step) -> tuple[Observation, ...]:
    """What came back on each, in one case."""
    (answers,) = session.run([Case("test", "apache", Role.CODEC, steps)])
    return answers


def asked(verb: str, message: str, version: int, **body: Any) -> Step:
    return step("codec", verb, message=message, version=version, **body)


def member(id: str, subscription: list[str], **more: Any) -> dict[str, Any]:
    rest = {"owned": [], "generation": -1, "instance": None, "rack": None, "userData": None}
    return {"id": id, "subscription": subscription, **rest, **more}


def shares(session: Session, assignor: str, topics: Mapping[str, int], *members: dict[str, Any]) -> dict[str, Any]:
    """Member -> partitions, as its leader sends them; no user data is expected."""
    counts = [{"name": name, "partitions": count, "racks": None} for name, count in topics.items()]
    (found,) = executed(session, step("leader", "assign", assignor=assignor, topics=counts, members=list(members)))
    assert isinstance(found, Replied), found
    assert not any(share["userData"] for share in found["assignment"])
    return {share["id"]: share["partitions"] for share in found["assignment"]}
