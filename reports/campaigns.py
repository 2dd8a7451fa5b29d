"""What several forms say of campaigns in the same words: pace, shards, and how each distinct failure stands."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from kipcheck.conformance.core.ledger import Line
from kipcheck.reports.phrases import some
from kipcheck.reports.summary import Summary

DONE = "done"


def of_campaigns(found: Summary) -> bool:
    return bool(found.ledger.campaigns)


def kind(found: Summary) -> str:
    """``campaign`` or ``run``."""
    return "campaign" if of_campaigns(found) else "run"


def brief(campaign: Line) -> str:
    """``mixed engine, 2 rounds, 16 of 16 shards, 2,000 cases at 5/s, 0.06 CPU hours``, and so on."""
    told = [f"{campaign['engine']} engine on {executor(campaign)}", shards(campaign["shards"], campaign["planned"])]
    told.append(f"{some(campaign['held'], 'case')} at {pace(campaign['held'], campaign['seconds'])}")
    told.append(hours(campaign["cpu_seconds"]))
    told.append(f"{some(campaign['coverage'], 'kind')} of behaviour, {some(campaign['corpus'], 'value')} kept")
    return ", ".join(told)


def executor(campaign: Line) -> str:
    settings = campaign["settings"]
    slots = f" with {some(settings['slots'], 'slot')}" if settings.get("slots") else ""
    return f"{settings.get('executor', 'nobody')}{slots}"


def shards(ended: Mapping[str, int], planned: int) -> str:
    """``14 of 16 shards, 1 crashed, 1 infra``"""
    others = [f"{number} {status}" for status, number in sorted(ended.items()) if status != DONE]
    return ", ".join([f"{ended.get(DONE, 0):,} of {some(planned, 'shard')}", *others])


def pace(cases: int, seconds: float) -> str:
    """``51 cases/s``, by the clock on the wall."""
    if seconds <= 0:
        return "– cases/s"
    rate = cases / seconds
    return f"{rate:,.0f} cases/s" if rate >= 10 else f"{rate:.1f} cases/s"


def hours(cpu_seconds: float) -> str:
    found = cpu_seconds / 3600
    return f"{found:,.1f} CPU hours" if found >= 10 else f"{found:.2f} CPU hours"


def troubles(campaign: Line) -> Sequence[str]:
    """What is wrong with the campaign itself."""
    return [*campaign["clashes"], *campaign["set_aside"]]


def stopped(campaign: Line) -> str:
    """Why it ended; empty while it goes on."""
    return str(campaign["stopped_by"] or "")


def first(failure: Line) -> str:
    """``round 1, after 1,234 cases``: where it was met; empty where no campaign tells."""
    met = failure.get("first")
    return f"round {met['round'] + 1}, after {some(met['cases'], 'case')}" if met else ""


def standing(found: Summary) -> Iterator[tuple[str, Line]]:
    """Each distinct failure with how it stands: NEW, FLAKY or KNOWN. What somebody has to look at is first."""
    flaky = {each.get("id") for each in found.flaky}
    yield from (("NEW", each) for each in found.failures if not each.get("known") and each["id"] not in flaky)
    yield from (("FLAKY", each) for each in found.failures if each["id"] in flaky)
    told = {each["id"] for each in found.failures}
    yield from (("FLAKY", each) for each in found.flaky if each.get("id") and each["id"] not in told)
    yield from (("KNOWN", each) for each in found.failures if each.get("known") and each["id"] not in flaky)


def grade(found: Summary, failure: Line) -> str:
    """Of what it breaks; what comes and goes does not tell it itself."""
    about = found.header.get("invariants", {}).get(failure["invariant"], {})
    return str(failure.get("grade") or about.get("grade", ""))


def stands(found: Summary) -> str:
    """``3 new (1 of them notes, which decide nothing), 1 flaky, 2 known``"""
    every = list(standing(found))
    counted = Counter(word for word, _ in every)
    notes = sum(word == "NEW" and grade(found, each) == "INFO" for word, each in every)
    told = f" ({notes} of them notes, which decide nothing)" if notes else ""
    return f"{counted['NEW']} new{told}, {counted['FLAKY']} flaky, {counted['KNOWN']} known"
