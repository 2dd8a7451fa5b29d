"""Texts about campaigns that several forms share: pace, shards, and the status of each distinct failure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from kipcheck.conformance.core.ledger import Campaign, Failure, Flaky
from kipcheck.reports.phrases import some
from kipcheck.reports.summary import Summary

DONE = "done"


def of_campaigns(found: Summary) -> bool:
    return bool(found.ledger.campaigns)


def kind(found: Summary) -> str:
    """``campaign`` or ``run``."""
    return "campaign" if of_campaigns(found) else "run"


def brief(campaign: Campaign) -> str:
    """``mixed engine, 2 rounds, 16 of 16 shards, 2,000 cases at 5/s, 0.06 CPU hours``, and so on."""
    parts = [f"{campaign.engine} engine on {executor(campaign)}", shards(campaign.shards, campaign.planned)]
    parts.append(f"{some(campaign.held, 'case')} at {pace(campaign.held, campaign.seconds)}")
    parts.append(hours(campaign.cpu_seconds))
    parts.append(f"{some(campaign.coverage, 'kind')} of behaviour, {some(campaign.corpus, 'value')} kept")
    return ", ".join(parts)


def executor(campaign: Campaign) -> str:
    settings = campaign.settings
    slots = f" with {some(settings['slots'], 'slot')}" if settings.get("slots") else ""
    return f"{settings.get('executor', 'unknown')}{slots}"


def shards(ended: Mapping[str, int], planned: int) -> str:
    """``14 of 16 shards, 1 crashed, 1 infra``"""
    others = [f"{number} {status}" for status, number in sorted(ended.items()) if status != DONE]
    return ", ".join([f"{ended.get(DONE, 0):,} of {some(planned, 'shard')}", *others])


def pace(cases: int, seconds: float) -> str:
    """``51 cases/s``, of wall time."""
    if seconds <= 0:
        return "– cases/s"
    rate = cases / seconds
    return f"{rate:,.0f} cases/s" if rate >= 10 else f"{rate:.1f} cases/s"


def hours(cpu_seconds: float) -> str:
    found = cpu_seconds / 3600
    return f"{found:,.1f} CPU hours" if found >= 10 else f"{found:.2f} CPU hours"


def troubles(campaign: Campaign) -> Sequence[str]:
    """Errors of the campaign itself."""
    return [*campaign.clashes, *campaign.set_aside]


def stopped(campaign: Campaign) -> str:
    """Why it ended; empty while it runs."""
    return str(campaign.stopped_by or "")


def first(failure: Failure | Flaky) -> str:
    """``round 1, after 1,234 cases``: where it was first found; empty outside of campaigns."""
    found_at = failure.first if isinstance(failure, Failure) else None
    return f"round {found_at.round + 1}, after {some(found_at.cases, 'case')}" if found_at else ""


def standing(found: Summary) -> Iterator[tuple[str, Failure | Flaky]]:
    """Each distinct failure with its status, NEW, FLAKY or KNOWN, in this order."""
    flaky = {each.id for each in found.flaky}
    yield from (("NEW", each) for each in found.failures if not each.known and each.id not in flaky)
    yield from (("FLAKY", each) for each in found.failures if each.id in flaky)
    written = {each.id for each in found.failures}
    yield from (("FLAKY", each) for each in found.flaky if each.id and each.id not in written)
    yield from (("KNOWN", each) for each in found.failures if each.known and each.id not in flaky)


def grade(found: Summary, failure: Failure | Flaky) -> str:
    """The grade of the invariant that it breaks."""
    if isinstance(failure, Failure):
        return failure.grade
    about = found.header.invariants.get(failure.invariant)
    return "" if about is None else about.grade


def stands(found: Summary) -> str:
    """``3 new (1 of them notes, which decide nothing), 1 flaky, 2 known``"""
    every = list(standing(found))
    counted = Counter(word for word, _ in every)
    notes = sum(word == "NEW" and grade(found, each) == "INFO" for word, each in every)
    more = f" ({notes} of them notes, which decide nothing)" if notes else ""
    return f"{counted['NEW']} new{more}, {counted['FLAKY']} flaky, {counted['KNOWN']} known"
