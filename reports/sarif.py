"""SARIF 2.1.0: rules are invariants, a result is a distinct failure, its place is the file with its least case."""

from collections.abc import Iterator
from typing import Any

from kipcheck.conformance.core.ledger import AboutInvariant, AboutRequirement, BrokenRequirement, Cause, Failure
from kipcheck.conformance.core.values.target_title import titled
from kipcheck.conformance.core.values.untrusted_text import clean
from kipcheck.reports.phrases import about_cause, named, reason, remarks, where
from kipcheck.reports.results import dumped
from kipcheck.reports.summary import Summary

LEVELS = {"MUST": "error", "SHOULD": "warning", "INFO": "note"}


def render(found: Summary) -> str:
    rules = list(_rules(found))
    places = {rule["id"]: number for number, rule in enumerate(rules)}
    campaigns = found.ledger.campaigns
    return dumped(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [
                {
                    "tool": {
                        "driver": {
                            "name": "kipcheck",
                            "version": found.header.kipcheck,
                            "semanticVersion": found.header.kipcheck or "0.0.0",
                            "rules": rules,
                        }
                    },
                    "automationDetails": {"id": f"kipcheck/{'+'.join(found.targets)}/{found.options.edition}/"},
                    "columnKind": "utf16CodeUnits",
                    "invocations": [_invocation(found)],
                    "artifacts": [_artifact(each) for each in found.failures],
                    "results": [
                        _result(each, found.cause_of(each), places[each.invariant], number)
                        for number, each in enumerate(found.failures)
                    ],
                    "properties": {
                        "causes": list(_causes(found)),
                        "totals": found.totals.plain,
                        "complete": found.complete,
                        "seed": found.options.seed,
                        "part": found.header.part,
                        **({"campaigns": [each.id for each in campaigns]} if campaigns else {}),
                    },
                }
            ],
        }
    )


def _invocation(found: Summary) -> dict[str, Any]:
    """Whether the tool succeeded: failures of a target are its result, not its failure."""
    notes = [
        *(f"{each.target}: {each.why}" for each in found.ledger.troubles),
        *(f"{each.target}: {each.check}: {each.why}" for each in found.ledger.inconclusive),
        *(f"{each.entry}: {each.why}" for each in found.stale),
        *([] if found.complete else [found.state]),
    ]
    code = {"exitCode": found.exit, "exitCodeDescription": found.meaning} if found.exit is not None else {}
    begun = found.header.begun
    return {
        "executionSuccessful": found.complete and found.exit in (0, 1),
        **code,
        **({"startTimeUtc": begun} if begun else {}),
        "toolExecutionNotifications": [{"level": "error", "message": {"text": clean(each)}} for each in notes],
    }


def _causes(found: Summary) -> Iterator[dict[str, Any]]:
    """The gravest first; ``failures`` are fingerprints of results."""
    for each in found.causes:
        cause, first = each.cause, each.failures[0]
        yield {
            "title": clean(first.why if cause is None else cause.title),
            "severity": None if cause is None else cause.severity,
            "kind": each.kind,
            "target": clean(first.target),
            "cases": first.cases if cause is None else cause.cases,
            "failures": [line.id for line in each.failures],
        }


def _rules(found: Summary) -> Iterator[dict[str, Any]]:
    """The invariants that judged cases, and those that are broken."""
    judged = dict.fromkeys(invariant for _, invariant in found.ledger.held)
    broken = {each.invariant: each for each in found.failures}
    invariants = found.header.invariants
    for id in dict.fromkeys([*(id for id in invariants if id in judged or id in broken), *broken]):
        line = broken.get(id)
        about = invariants.get(id) or AboutInvariant(sentence=broken[id].sentence, grade=broken[id].grade)
        requirements = _requirements(found, about, line)
        help_text = "\n\n".join(_help(key, each) for key, each in requirements.items())
        yield {
            "id": clean(id),
            "name": "".join(word.capitalize() for word in clean(id).replace("/", "-").split("-")),
            "shortDescription": {"text": clean(about.sentence)},
            "fullDescription": {"text": clean(about.sentence)},
            "help": {"text": clean(help_text) or clean(about.sentence)},
            "defaultConfiguration": {"level": LEVELS[about.grade]},
            "properties": {"tags": ["kafka", about.grade, *requirements], "precision": "very-high"},
        }


def _help(id: str, requirement: AboutRequirement | BrokenRequirement) -> str:
    return f"{id}, {requirement.clause}: {requirement.text or ''}"


def _requirements(
    found: Summary, about: AboutInvariant, line: Failure | None
) -> dict[str, AboutRequirement | BrokenRequirement]:
    known = found.header.requirements
    broken = {each.id: each for each in (line.requirements if line else ())}
    return {id: known.get(id) or broken[id] for id in (*about.requirements, *broken) if id in known or id in broken}


def _artifact(failure: Failure) -> dict[str, Any]:
    return {"location": {"uri": _file(failure)}, "mimeType": "application/json"}


def _file(failure: Failure) -> str:
    """The file with the least case; the ledger if no case shows it."""
    return f"failures/{failure.id}.json" if failure.case_id else "ledger.jsonl"


def _result(failure: Failure, cause: Cause | None, rule: int, artifact: int) -> dict[str, Any]:
    words = [failure.why]
    if cause is not None:
        words.insert(0, f"{cause.title} ({cause.severity}).")
        words += [f"{text}." for name, text in about_cause(cause) if name in ("Kafka", "page")]
    if failure.expected or failure.observed:
        words.append(f"Expected {failure.expected or 'nothing'}, observed {failure.observed or 'nothing'}.")
    found = f"found in {failure.cases} cases: {where(failure)}{remarks(failure)}."
    words.append(f"{titled(failure.target, failure.version)}, {found}")
    words += [f"How to fix it: {failure.fix}"] if failure.fix else []
    words.append(f"Reproduce: {failure.reproduce}")
    place = {
        "physicalLocation": {
            "artifactLocation": {"uri": _file(failure), "index": artifact},
            "region": {"startLine": 1},
        },
        "logicalLocations": [
            {
                "name": clean(failure.path or failure.subject),
                "fullyQualifiedName": clean(
                    f"{named(failure.subject, failure.subject_version)} {failure.path}".strip()
                ),
                "kind": "member",
            }
        ],
    }
    known = failure.known
    about = {"cause": cause.id, "title": clean(cause.title), "severity": cause.severity} if cause is not None else {}
    return {
        "ruleId": clean(failure.invariant),
        "ruleIndex": rule,
        "kind": "fail",
        "level": LEVELS["MUST" if failure.decides else failure.grade],
        "message": {"text": clean("\n".join(words))},
        "locations": [place],
        "partialFingerprints": {"kipcheckFailure/v1": failure.id},
        "occurrenceCount": max(1, failure.cases),
        **(
            {"suppressions": [{"kind": "external", "status": "accepted", "justification": clean(reason(known))}]}
            if known
            else {}
        ),
        "properties": {
            "target": failure.target,
            "check": failure.check,
            "case": failure.case_id,
            "tags": list(failure.tags),
            **about,
        },
    }
