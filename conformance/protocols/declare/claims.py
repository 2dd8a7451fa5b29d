"""Invariant of every target: it supports the capabilities that it claims."""

from collections.abc import Iterator

from kipcheck.conformance.core.values.history import History, Unsupported
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import invariant


@invariant("keeps-its-claims", "grp-30", role=None)
def keeps_its_claims(history: History) -> Iterator[Violation]:
    """Steps use only claimed capabilities, so none is answered as unsupported, except by an announced limit."""
    for op in history.ops:
        if isinstance(op.observation, Unsupported) and not op.observation.limit:
            body = op.step.body
            named = body.get("message") or body.get("assignor") or ""
            version = f" v{body['version']}" if "version" in body else ""
            reason = op.observation.reason
            yield Violation(
                f"{op.step.verb} {named}{version}".rstrip() + " is claimed, and answered as unsupported"
                + (f": {reason}" if reason else ""),
                (op.index,), "an answer, or unsupported by a limit that its hello announced",
                f"unsupported{f': {reason}' if reason else ''}", shape=("unsupported", op.step.verb),
            )  # fmt: skip
