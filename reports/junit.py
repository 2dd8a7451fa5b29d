"""JUnit XML for the common importers: a suite for each target and check, a test for each subject.

It keeps the strictest rules of the JUnit schemas in use: no attributes on the root; properties, system-out and
system-err in each suite; a decimal for each time.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from kipcheck.conformance.core.ledger import Failure
from kipcheck.conformance.core.values.untrusted_text import clean
from kipcheck.reports.markup import Safe, tag
from kipcheck.reports.summary import FLAKY, KNOWN, Cell, Summary
from kipcheck.reports.text import block, cause_lines

Test: TypeAlias = tuple[str, Safe | None]
"""Name and outcome; None: passed."""
Suite: TypeAlias = tuple[str, str, list[Test]]
"""Target, check, tests."""
RUN = ("kipcheck", "run")
"""The first suite: causes, and what belongs to no check."""
TIME = "0.000"
"""Cases run in batches: the time of a single one is not known."""


def render(found: Summary) -> str:
    suites = [
        (target, check, list(_tests(found, target, check)))
        for target in found.targets
        for check, by in found.table.items()
        if target in by
    ]
    suites = [(*RUN, [*_causes(found), *_run(found)]), *suites, *_elsewhere(found), *_skipped(found)]
    written: set[str] = set()
    shown = (_suite(found, number, *suite, written) for number, suite in enumerate(suites))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tag("testsuites", shown)}\n'


def _suite(found: Summary, number: int, target: str, check: str, tests: list[Test], written: set[str]) -> Safe:
    kinds = [str(outcome)[1:].split(" ", 1)[0] if outcome is not None else "" for _, outcome in tests]
    version = found.versions.get(target, "")
    properties = {
        "edition": found.options.edition,
        "seed": found.options.seed,
        "version": version,
        "kipcheck": found.header.kipcheck,
        "complete": str(found.complete).lower(),
        **(_counts(found) if (target, check) == RUN else {}),
    }
    notes = [each for each in found.failures if (each.target, each.check) == (target, check)]
    return tag(
        "testsuite",
        tag(
            "properties", (tag("property", name=key, value=str(each)) for key, each in properties.items() if each != "")
        ),
        (
            tag(
                "testcase",
                outcome,
                name=_token(name),
                classname=_token(f"{target}.{check.replace('/', '.')}"),
                time=TIME,
            )
            for name, outcome in tests
        ),
        # Warnings and notes that do not fail the run: they must not fail a test, and so a build.
        tag(
            "system-out",
            "\n".join(f"{name}: {text}" for name, text in found.totals.lines)
            if (target, check) == RUN
            else "\n".join(
                line
                for each in notes
                if each.grade != "MUST" and not each.decides
                for line in [*_block(found, each, written), ""]
            ),
        ),
        tag("system-err"),
        name=_token(f"{target} {check}"),
        timestamp=(found.header.begun or "1970-01-01T00:00:00")[:19],
        hostname="localhost",
        tests=len(tests),
        failures=kinds.count("failure"),
        errors=kinds.count("error"),
        skipped=kinds.count("skipped"),
        time=_seconds(found, target, check),
        id=number,
        package=_token(target),
    )


def _token(text: str) -> str:
    """A token of XML: without line feeds, and without blanks at its ends or several in a row."""
    return " ".join(clean(text).split()) or "-"


def _seconds(found: Summary, target: str, check: str) -> str:
    taken = sum(float(each.seconds) for each in found.ledger.checks if (each.target, each.check) == (target, check))
    return f"{taken:.3f}"


def _tests(found: Summary, target: str, check: str) -> Iterator[Test]:
    for subject, by in found.cells[check].items():
        if target in by:
            yield subject, _outcome(found, by[target], found.breaches(target, check, subject))


def _block(found: Summary, failure: Failure, written: set[str]) -> Iterator[str]:
    """The failure below the lines of its cause."""
    if (cause := found.cause_of(failure)) is not None:
        yield from cause_lines(cause)
    yield from block(failure, written)


def _outcome(found: Summary, cell: Cell, breaches: Sequence[Failure]) -> Safe | None:
    written: set[str] = set()
    text = "\n\n".join(
        "\n".join(_block(found, each, written)) for each in breaches if each.grade == "MUST" or each.decides
    )
    broken = [each for each in breaches if each.decides]
    if cell.word == "FAIL" or (cell.word == "WARN" and broken):
        if not broken:
            return tag("failure", message=f"{cell.counts['FAIL']} cases failed and were not examined", type="cut-off")
        return _failed(broken, text)
    if cell.word == "UNKNOWN":
        return tag("error", message=f"undecided: {cell.counts['UNKNOWN']} of {cell.cases} cases", type="UNKNOWN")
    if cell.word == KNOWN and any(each.grade == "MUST" for each in breaches):
        return tag("skipped", text, message=_brief("known deviation: " + "; ".join(each.why for each in breaches)))
    if cell.word == FLAKY:
        failed = cell.counts["FAIL"] + cell.counts["WARN"]
        return tag("skipped", message=f"{failed} cases failed, but not every time when run alone")
    if cell.word == "SKIP":
        return tag("skipped", message="the target does not support it")
    return None


def _failed(broken: Sequence[Failure], text: str) -> Safe:
    return tag("failure", text, message=_brief("; ".join(each.why for each in broken)), type=broken[0].invariant)


def _counts(found: Summary) -> dict[str, int]:
    """The counts that all forms have: of causes and cases by result, ``flaky``, ``unjudged_invariants``."""
    counted: dict[str, int] = {}
    for name, value in found.totals.plain.items():
        if name == "unjudged_invariants":
            counted[name] = sum(map(len, value.values()))
        else:
            counted |= (
                {f"{name}.{kind}": number for kind, number in value.items()}
                if isinstance(value, dict)
                else {name: value}
            )
    return counted


def _causes(found: Summary) -> Iterator[Test]:
    """A test for each cause, the gravest first: it fails if one of its failures fails the run."""
    names: set[str] = set()
    for each in found.causes:
        if (cause := each.cause) is None:
            continue
        name = f"{cause.target}: {cause.title}"
        name = f"{name} ({each.failures[0].id})" if name in names else name
        names.add(name)
        message = _brief(f"{cause.severity}: {cause.title}")
        text = "\n".join([*cause_lines(cause), *(f"  {line.id}  {line.reproduce}" for line in each.failures)])
        if any(line.decides for line in each.new):
            yield name, tag("failure", text, message=message, type=cause.severity)
        elif each.kind == KNOWN:
            yield name, tag("skipped", text, message=_brief(f"known deviation: {cause.title}"))
        else:
            yield name, None


def _elsewhere(found: Summary) -> Iterator[Suite]:
    """Failures without cases, by target and check."""
    suites: dict[tuple[str, str], list[Test]] = {}
    for each in found.elsewhere:
        text = "\n".join(_block(found, each, set()))
        outcome = _failed([each], text) if not each.known else tag("skipped", text, message="known deviation")
        suites.setdefault((each.target, each.check), []).append((each.subject, outcome))
    yield from ((*key, tests) for key, tests in suites.items())


def _brief(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 300 else f"{text[:299]}…"


def _skipped(found: Summary) -> Iterator[Suite]:
    for each in found.ledger.skips:
        if each.target in found.table.get(each.check, ()):
            continue  # it has tests, each of them skipped
        yield each.target, each.check, [("all of it", tag("skipped", message=_brief(each.why)))]


def _run(found: Summary) -> Iterator[Test]:
    """Results that belong to no check, as tests: importers show nothing else."""
    error = None if found.complete else tag("error", message=_brief(found.state), type="INCOMPLETE")
    yield "the run is complete", error
    for number, each in enumerate(found.ledger.troubles, 1):
        why = str(each.why)
        yield f"trouble {number}: {each.target}", tag("error", why, message=_brief(why), type="trouble")
    for number, short in enumerate(found.ledger.inconclusive, 1):
        error = tag("error", message=_brief(f"{short.check}: {short.why}"), type="inconclusive")
        yield f"inconclusive {number}: {short.target}", error
    for stale in found.stale:
        yield f"stale entry {stale.entry}", tag("error", message=_brief(stale.why), type="stale")
    others = (*found.ledger.troubles, *found.stale, *found.ledger.inconclusive)
    explained = others or any(each.decides for each in found.failures)
    if found.exit and found.complete and not explained:
        yield f"exit {found.exit}", tag("error", message=_brief(found.meaning), type=f"exit-{found.exit}")
