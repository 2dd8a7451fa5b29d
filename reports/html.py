"""The whole report as one HTML page without network, scripts and fonts: for a browser, a printer, an archive."""

import shlex
from collections.abc import Iterator

from kipcheck.conformance.core.ledger import Campaign, RunOptions
from kipcheck.reports.campaigns import executor, kind, of_campaigns, stopped
from kipcheck.reports.html_campaign import campaigns, news
from kipcheck.reports.html_causes import causes
from kipcheck.reports.html_components import components
from kipcheck.reports.html_tables import coverage, differences, invariants, played_cells, results
from kipcheck.reports.markup import Safe, joined, link, tag
from kipcheck.reports.page import page
from kipcheck.reports.phrases import reason, some, to_do
from kipcheck.reports.scripts import section
from kipcheck.reports.summary import Summary
from kipcheck.reports.totals import NO_ROLE, grouped_skips

TONES = {0: "pass", 1: "fail", 2: "unknown", 3: "fail", 4: "warn", 5: "warn", 6: "unknown", 7: "unknown", 70: "fail"}
"""How the outcome looks, by exit code."""
OPEN = ("troubles", "new", "causes", "components", "lists", "campaign")
"""Sections that cannot be closed."""


def render(found: Summary) -> str:
    sections = list(_sections(found))
    return page(
        f"kipcheck: {_short(found)}",
        tag("a", "To the causes", class_="jump", href="#causes"),
        tag("header", _header(found)),
        tag(
            "main", _nav(sections), (tag("section", part, id=id if id in OPEN else None) for id, _, _, part in sections)
        ),
        tag("footer", _footer(found)),
    )


def _short(found: Summary) -> str:
    """For the title of a window."""
    names = ", ".join(found.called(each) for each in found.targets) or "nothing"
    return f"{names}: {f'exit {found.exit}' if found.exit is not None else 'INCOMPLETE'}"


# ---- what ran, and its result


def _header(found: Summary) -> Iterator[Safe]:
    names = ", ".join(found.called(each) for each in found.targets) or "nothing"
    yield tag("h1", tag("b", "kipcheck"), " fuzzed " if of_campaigns(found) else " checked ", names)
    tone = TONES.get(found.exit, "unknown") if found.exit is not None else "unknown"
    outcome = f"Exit {found.exit}: {found.meaning}" if found.exit is not None else "Cut off: there is no exit code"
    state = (
        found.state if found.complete else found.state.replace("INCOMPLETE", "INCOMPLETE: this report is partial", 1)
    )
    rows = [("to do", to_do(found.exit)), *found.totals.lines]
    yield tag(
        "div",
        tag("p", outcome, class_="say"),
        tag("p", _complete(found) if found.complete else tag("strong", state), class_="plain"),
        tag("dl", (tag("div", tag("dt", name), tag("dd", text)) for name, text in rows if text), class_="rows"),
        class_=f"outcome {tone}",
    )


def _complete(found: Summary) -> str:
    why = "; ".join(dict.fromkeys(filter(None, map(stopped, found.ledger.campaigns))))
    return f"The {kind(found)} is complete{f', stopped by: {why}' if why else ''}."


def _facts(found: Summary) -> Iterator[tuple[str, Safe | str]]:
    options, header = found.options, found.header
    yield "targets", joined(_between(_target(found, each) for each in found.targets))
    yield "edition", options.edition
    yield "seed", str(options.seed)
    if (cases := options.cases) is not None:
        yield "cases for each target" if of_campaigns(found) else "values for each check", f"{cases:,}"
    for each in found.ledger.campaigns:
        yield "engine", f"{each.engine}, on {executor(each)}"
    yield "cases", f"{sum(found.totals.cases.values()):,}"
    if header.part:
        yield "part", "{} of {}".format(*header.part)
    if header.merged:
        yield "merged from", f"{len(header.merged)} ledgers"
    if options.budget:
        yield "budget", f"{options.budget:g} s"
    yield "time", f"{found.seconds:g} s" if found.exit is not None else ""
    yield "begun", header.begun.replace("T", " ").replace("Z", " UTC")
    yield "made by", f"kipcheck {header.kipcheck or '?'}, Python {header.python or '?'}"


def _between(parts: Iterator[Safe]) -> Iterator[Safe]:
    for number, each in enumerate(parts):
        yield joined(", " if number else None, each)


def _target(found: Summary, name: str) -> Safe:
    issues = next((each.issues for each in found.ledger.targets if each.target == name), None)
    called = found.called(name)
    return link(issues, called) if issues else joined(called)


def command(options: RunOptions, campaign: Campaign | None = None) -> str:
    """The command that repeats the run; empty if the header has no targets. ``campaign``: if it was one."""
    if not options.targets:
        return ""
    words = ["kipcheck", "campaign" if campaign else "run"]
    several = {"--target": "targets", "--name": "names", "--check": "checks", "--message": "messages"}
    for name, key in {**several, "--script": "scripts", "--known": "known", "--profile": "profiles"}.items():
        words += [word for each in getattr(options, key) if each != "*" for word in (name, each)]
    for name, default in (("edition", "apache"), ("seed", 0), ("cases", None)):
        if (value := getattr(options, name)) != default:
            words += [f"--{name}", str(value)]
    if campaign is not None:
        words += ["--rounds", str(campaign.rounds)] if campaign.rounds is not None else []
    return shlex.join(words)


# ---- the parts


def _sections(found: Summary) -> Iterator[tuple[str, str, int, Safe]]:
    """Id, name, number of entries, and content. What is behind links comes last, and is closed."""
    if found.ledger.troubles or found.open_ends:
        troubles = list(_troubles(found))
        yield "troubles", "Troubles", len(troubles), joined(tag("h2", "Troubles"), tag("ul", troubles, class_="list"))
    if of_campaigns(found) and not any(each.cause for each in found.causes):
        yield "new", "What is new", 0, news(found)
    yield "causes", "Causes", len(found.causes), causes(found)
    if found.components:
        yield "components", "Components", len(found.components), components(found)
    if found.stale or found.flaky:
        yield "lists", "Lists", len(found.stale) + len(found.flaky), _lists(found)
    if of_campaigns(found):
        yield "campaign", "Campaign", 0, campaigns(found)
    behind = [
        ("checks", "Checks", len(found.table), results),
        ("differences", "Where targets differ", len(found.ledger.differences), differences),
        ("scripts", "Conversations", len(found.ledger.scripts), lambda found: section(found.ledger)),
        ("cells", "What happened to requests", len(found.ledger.cells), played_cells),
        ("requirements", "Requirements", len(found.coverage), coverage),
        ("invariants", "Invariants", sum(map(len, found.totals.judged.values())), invariants),
        ("skipped", "Skipped", len(found.ledger.skips), _skips),
    ]
    for id, name, number, content in behind:
        if number:
            title = tag("summary", tag("h2", name), tag("span", f"{number:,}", class_="who"))
            # The id is inside of the element that can be closed, so that a link to it opens it.
            yield id, name, number, tag("details", title, tag("div", content(found), class_="inside", id=id))
    yield "run", "About this run", 0, tag("details", tag("summary", tag("h2", "About this run")), _about(found))


def _about(found: Summary) -> Safe:
    facts = [(name, value) for name, value in _facts(found) if value]
    rows = tag("dl", (tag("div", tag("dt", name), tag("dd", value)) for name, value in facts), class_="facts")
    return tag("div", rows, class_="inside", id="run")


def _nav(sections: list[tuple[str, str, int, Safe]]) -> Safe:
    items = (
        tag("li", tag("a", name, href=f"#{id}"), joined(" ", tag("b", f"{number:,}")) if number else None)
        for id, name, number, _ in sections
    )
    return tag("nav", tag("ul", items), aria_label="Parts of this report")


def _troubles(found: Summary) -> Iterator[Safe]:
    for each in found.ledger.troubles:
        first, _, rest = str(each.why).partition("\n")
        yield tag("li", tag("b", each.target), ": ", first, tag("pre", rest) if rest.strip() else None)
    for target, check, what in found.open_ends:
        yield tag("li", tag("b", target), f": {check}: {what}")


def _lists(found: Summary) -> Safe:
    listed = [*(each.entry for each in found.stale), *(each.entry for each in found.flaky)]
    stale = (tag("li", tag("b", each.entry), ": ", each.why) for each in found.stale)
    flaky = (
        tag(
            "li",
            tag("b", f"{each.target}, {each.check}"),
            f": {each.why}; alone it {each.alone}. ",
            reason(each) if each.entry else "It is not listed.",
        )
        for each in found.flaky
    )
    return joined(
        tag("h2", "Lists of known deviations" if any(listed) else "Flaky failures"),
        (tag("h3", "Stale entries"), tag("ul", stale, class_="list")) if found.stale else None,
        (tag("h3", "Cases that do not fail every time"), tag("ul", flaky, class_="list")) if found.flaky else None,
    )


def _skips(found: Summary) -> Safe:
    rows = (
        tag(
            "tr",
            tag("th", target, scope="row"),
            tag("td", "everything" if check == "*" else check),
            tag("td", why),
        )
        for target, checks, why in grouped_skips(found.ledger.skips)
        for check in ([some(len(checks), "check")] if why.startswith(NO_ROLE) else checks)
    )
    head = tag("tr", (tag("th", name, scope="col") for name in ("target", "check", "why")))
    return joined(
        tag("p", "These checks were not run: they did not pass.", class_="hint"),
        tag("div", tag("table", tag("thead", head), tag("tbody", rows)), class_="scroll", tabindex=0),
    )


def _footer(found: Summary) -> Iterator[Safe | None]:
    every = found.ledger.campaigns
    again = command(found.options, every[0] if every else None) if len(every) < 2 else ""
    yield tag("p", "To repeat it: ", tag("code", again)) if again else None
    yield tag("p", "Made from ", tag("code", str(found.ledger.path)), ", which contains every verdict.")
