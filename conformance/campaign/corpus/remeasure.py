"""Runs corpus entries again, and replaces their coverage keys by those of the current target."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kipcheck.conformance.campaign import coverage
from kipcheck.conformance.campaign.corpus.entries import value_of
from kipcheck.conformance.campaign.rows import Kept
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.engine.execution.worker import Worker
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.targets.protocol import NotPlayed
from kipcheck.conformance.targets.registry import target as target_of


def remeasured(entries: Iterable[Kept], target: str) -> Iterator[Kept]:
    """The entries with the keys that they show with the target. Entries for roles that it does not support, and those
    that give no case for it, keep their keys.

    Errors: LookupError for an unknown target or check, ValueError for a value that is not declared any more;
    ``Unavailable``, ``Broken``, ``Unstable``.
    """
    with Worker(target, target_of(target)) as worker:
        for entry in entries:
            check = CHECKS[entry.check]
            subject = check.family.subject(entry.edition, entry.subject, entry.version)
            value = value_of(check.declaration(subject), entry.value)
            try:
                session = worker.session(entry.edition, check.role)
            except NotPlayed:
                yield entry
                continue
            drawn = (each.case for each in check.about_value(subject, value, 0, 0))
            cases = [case for case in drawn if session.info.claims.supports(case)]
            if not cases:
                yield entry
                continue
            shown = [coverage.keys(check, subject, each) for each in converse(cases, session)]
            keys = {key for steps in shown for found in steps for key in found}
            yield replace(entry, keys=tuple(sorted(keys)), steps=sum(len(case.steps) for case in cases))
