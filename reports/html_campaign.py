"""The campaign in the HTML page: new failures, the growth of coverage, and the rounds."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from kipcheck.conformance.core.ledger import Campaign, Failure, Flaky, Round
from kipcheck.reports.campaigns import executor, first, grade, hours, pace, shards, standing, stands, stopped, troubles
from kipcheck.reports.html_tables import table, word
from kipcheck.reports.markup import Child, Safe, joined, tag
from kipcheck.reports.phrases import some
from kipcheck.reports.summary import WORDS, Summary

SHOWN = 100
"""The most distinct failures in the first table."""
WIDTH, HEIGHT = 1000, 300
"""Of the drawing, in units of its own: it is scaled to the width of the page."""
STROKES = 6
"""The number of combinations of colour and dashes, for targets."""


# ---- what is new


def news(found: Summary) -> Safe:
    """Every distinct failure with its status, for a ledger without causes."""
    every = list(standing(found))
    if not every:
        return joined(tag("h2", "What is new"), tag("p", "No case failed." if found.complete else "Nothing so far."))
    head = ["", "grade", "what", "target", "check", "breaks", "cases", "first found"]
    left = len(every) - SHOWN
    return joined(
        tag("h2", "What is new"),
        _status(found),
        table(head, (_failure(found, how, each) for how, each in every[:SHOWN]), "Distinct failures", "grid news"),
        tag("p", f"{left} more are listed below.", class_="hint") if left > 0 else None,
    )


def _status(found: Summary) -> Safe:
    return tag(
        "p",
        f"{stands(found)}. New is what no list of known deviations names (--known); flaky what failed and did not, "
        "or not always, when it was run alone. To compare with an earlier campaign, run ",
        tag("code", "kipcheck triage DIR --against EARLIER"),
        ".",
        class_="hint",
    )


def _failure(found: Summary, how: str, failure: Failure | Flaky) -> Safe:
    requirements = (each if isinstance(each, str) else each.id for each in failure.requirements or ())
    why, broken = failure.why.partition("\n")[0], grade(found, failure)
    # Flaky failures are not among the failures below.
    what: Child = tag("a", why, href=f"#{failure.id}") if isinstance(failure, Failure) else why
    return tag(
        "tr",
        tag("td", tag("span", "NEW", class_=f"word {WORDS[broken].lower()}") if how == "NEW" else word(how)),
        tag("td", broken),
        tag("td", what, class_="what"),
        tag("td", failure.target),
        tag("td", failure.check),
        tag("td", ", ".join(requirements)),
        tag("td", f"{failure.cases or 0:,}", class_="num"),
        tag("td", first(failure) or "–"),
    )


# ---- the campaign


def campaigns(found: Summary) -> Safe:
    every = found.ledger.campaigns
    parts: list[Child] = [tag("h2", "Campaign" if len(every) == 1 else "Campaigns"), _status(found)]
    for each in every:
        rounds = [line for line in found.ledger.rounds if line.campaign == each.id]
        parts.append(tag("h3", f"Campaign {each.id}") if len(every) > 1 else None)
        parts.append(_numbers(each, len(rounds)))
        parts.append(_troubles(each))
        parts.append(_growth(found, each, rounds) if rounds else None)
        parts.append(_rounds(rounds, "h3" if len(every) == 1 else "h4") if rounds else None)
    return joined(parts)


def _numbers(campaign: Campaign, rounds: int) -> Safe:
    of = "" if campaign.rounds is None else f" of {campaign.rounds}"
    unlike = [name for name, steady in campaign.targets.items() if not steady]  # threads of their own
    facts = {
        "shards": shards(campaign.shards, campaign.planned),
        "rounds": f"{rounds}{of}",
        "cases": f"{campaign.held:,}, {pace(campaign.held, campaign.seconds)}",
        "processor time": hours(campaign.cpu_seconds),
        "kinds of behaviour": f"{campaign.coverage:,}",
        "values kept": f"{campaign.corpus:,}",
        "run by": executor(campaign),
        "stopped by": stopped(campaign) or "nothing: it is still running",
        "shards with two results": str(len(campaign.clashes)) if campaign.clashes else "none",
        "hash of the ledger": campaign.hash + (f", without {', '.join(unlike)}" if unlike else ""),
    }
    return tag("dl", (tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items()), class_="facts")


def _troubles(campaign: Campaign) -> Safe | None:
    found = troubles(campaign)
    return tag("ul", (tag("li", each) for each in found), class_="list") if found else None


def _rounds(rounds: Sequence[Round], heading: str) -> Safe:
    head = [
        "round",
        "shards",
        "cases",
        "by the clock",
        "processor",
        "new kinds of behaviour",
        "in all",
        "kept",
        "failures first found",
    ]

    def row(line: Round) -> Safe:
        return tag(
            "tr",
            tag("th", str(line.round + 1), scope="row"),
            tag("td", shards(line.shards, line.planned)),
            tag("td", f"{line.cases:,}", class_="num"),
            tag("td", f"{line.seconds:,.0f} s, {pace(line.cases, line.seconds)}", class_="num"),
            tag("td", f"{line.cpu_seconds:,.0f} s", class_="num"),
            tag("td", f"{line.new:,}", class_="num"),
            tag("td", f"{line.coverage:,}", class_="num"),
            tag("td", f"{line.corpus:,}", class_="num"),
            tag("td", str(len(line.failures)), class_="num"),
        )

    return joined(tag(heading, "Round by round"), table(head, map(row, rounds), "Rounds", "grid rounds"))


# ---- the drawing


def _growth(found: Summary, campaign: Campaign, rounds: Sequence[Round]) -> Safe | None:
    clock = _Clock(rounds)
    lines = _curves(rounds, clock)
    most_keys = max((keys for points in lines.values() for _, keys in points), default=0)
    if not clock.end or not most_keys:
        return None

    def drawn(points: Sequence[tuple[float, int]], most: int, kind: str) -> Safe:
        at = (f"{time * WIDTH / clock.end:.1f},{HEIGHT - number * HEIGHT / most:.1f}" for time, number in points)
        return tag("polyline", points=" ".join(at), class_=f"curve {kind}")

    causes = _causes(found, campaign, clock)
    most_causes = max(causes[-1][1], 1)
    drawing = tag(
        "svg",
        tag("title", "Growth of coverage and of causes; the table of rounds has the same numbers"),
        (tag("line", x1=0, x2=WIDTH, y1=y, y2=y, class_="rule-line") for y in (0, HEIGHT // 2, HEIGHT)),
        _ends(clock),
        (drawn(points, most_keys, f"stroke-{number % STROKES}") for number, points in enumerate(lines.values())),
        drawn(causes, most_causes, "causes"),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        role="img",
    )
    return tag(
        "figure",
        tag("figcaption", "Kinds of behaviour and new causes found (upwards, each to its own scale) by time"),
        tag("div", _scale(most_keys), drawing, tag("div", _times(clock.end), class_="cases"), class_="plot"),
        tag("ul", _legend(found, lines, causes[-1][1]), class_="legend"),
        class_="growth",
    )


class _Clock:
    """Seconds since the campaign began. Within a round they are estimated from the cases run with a target."""

    def __init__(self, rounds: Sequence[Round]) -> None:
        self.ends = [*accumulate(line.seconds for line in rounds)]
        self.end = self.ends[-1] if self.ends else 0.0
        self._rounds = {line.round: (end - line.seconds, line) for line, end in zip(rounds, self.ends, strict=True)}

    def at(self, round_: int, target: str, cases: int) -> float:
        begun, line = self._rounds[round_]
        points = line.growth.get(target, ())
        first, last = (points[0][0], points[-1][0]) if points else (0, 0)
        return begun + line.seconds * min(max((cases - first) / max(last - first, 1), 0.0), 1.0)


def _curves(rounds: Sequence[Round], clock: _Clock) -> Mapping[str, list[tuple[float, int]]]:
    lines: dict[str, list[tuple[float, int]]] = {}
    for line in rounds:
        for target, points in line.growth.items():
            timed = ((clock.at(line.round, target, int(cases)), int(keys)) for cases, keys in points)
            lines.setdefault(target, []).extend(timed)
    return {target: list(dict.fromkeys(points)) for target, points in lines.items()}


def _causes(found: Summary, campaign: Campaign, clock: _Clock) -> list[tuple[float, int]]:
    """Steps: causes with a failure that is not known, each at its first one. Failures without a cause count as one."""
    of = {id: number for number, cause in enumerate(found.ledger.causes) for id in cause.failures}
    first: dict[int | str, float] = {}
    for each in found.failures:
        if each.first and each.first.campaign == campaign.id and not each.known:
            time = clock.at(each.first.round, each.target, each.first.cases)
            cause = of.get(each.id, each.id)
            first[cause] = min(first.get(cause, time), time)
    points: list[tuple[float, int]] = [(0.0, 0)]
    for number, time in enumerate(sorted(first.values())):
        points += [(time, number), (time, number + 1)]
    return [*points, (clock.end, len(first))]


def _times(end: float) -> Iterator[Safe]:
    yield from (tag("span", each) for each in ("0 s", f"{end / 2:,.0f} s", f"{end:,.0f} s"))


def _scale(most: int) -> Safe:
    return tag("div", (tag("span", f"{each:,}") for each in (most, most // 2, 0)), class_="scale")


def _ends(clock: _Clock) -> Iterator[Safe]:
    """Where a round ends and the next begins."""
    for end in clock.ends[:-1]:
        x = f"{end * WIDTH / clock.end:.1f}"
        yield tag("line", x1=x, x2=x, y1=0, y2=HEIGHT, class_="round-line")


def _legend(found: Summary, lines: Mapping[str, Sequence[tuple[float, int]]], causes: int) -> Iterator[Safe]:
    def sample(kind: str) -> Safe:
        return tag("svg", tag("line", x1=0, x2=28, y1=6, y2=6, class_=kind), width=28, height=12, aria_hidden="true")

    for number, target in enumerate(lines):
        yield tag("li", sample(f"curve stroke-{number % STROKES}"), found.called(target))
    yield tag("li", sample("curve causes"), f"{some(causes, 'new cause')}")
    yield tag("li", sample("round-line"), "a round ends")
