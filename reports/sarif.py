"""SARIF 2.1.0: rules are invariants, a result is a distinct failure, its place is the file with its least case."""

from collections.abc import Iterator
from typing import Any

from kipcheck.conformance.core.foreign import clean
from kipcheck.conformance.core.ledger import Line
from kipcheck.reports.phrases import named, reason, where
from kipcheck.reports.results import dumped
from kipcheck.reports.summary import Summary

LEVELS = {"MUST": "error", "SHOULD": "warning", "INFO": "note"}


def render(found: Summary) -> str:
    rules = list(_rules(found))
    places = {each["id"]: number for number, each in enumerate(rules)}
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
                            "version": str(found.header.get("kipcheck", "")),
                            "semanticVersion": str(found.header.get("kipcheck", "0.0.0")),
                            "rules": rules,
                        }
                    },
                    "automationDetails": {
                        "id": f"kipcheck/{'+'.join(found.targets)}/{found.options.get('edition', '')}/"
                    },
                    "columnKind": "utf16CodeUnits",
                    "invocations": [_invocation(found)],
                    "artifacts": [_artifact(each) for each in found.failures],
                    "results": [
                        _result(each, places[each["invariant"]], number) for number, each in enumerate(found.failures)
                    ],
                    "properties": {
                        "complete": found.complete,
                        "seed": found.options.get("seed"),
                        "part": found.header.get("part"),
                        **({"campaigns": [each["id"] for each in campaigns]} if campaigns else {}),
                    },
                }
            ],
        }
    )


def _invocation(found: Summary) -> dict[str, Any]:
    """Did the tool do its work? Failures of a target are its work."""
    notes = [
        *(f"{each['target']}: {each['why']}" for each in found.ledger.troubles),
        *(f"{each['entry']}: {each['why']}" for each in found.stale),
        *([] if found.complete else [found.state]),
    ]
    told = {"exitCode": found.exit, "exitCodeDescription": found.meaning} if found.exit is not None else {}
    begun = found.header.get("begun")
    return {
        "executionSuccessful": found.complete and found.exit in (0, 1),
        **told,
        **({"startTimeUtc": begun} if begun else {}),
        "toolExecutionNotifications": [{"level": "error", "message": {"text": clean(each)}} for each in notes],
    }


def _rules(found: Summary) -> Iterator[dict[str, Any]]:
    """Those that were held, and those that something breaks."""
    held = dict.fromkeys(invariant for _, invariant in found.ledger.held)
    broken = {each["invariant"]: each for each in found.failures}
    told = found.header.get("invariants", {})
    for id in dict.fromkeys([*(id for id in told if id in held or id in broken), *broken]):
        line = broken.get(id)
        about = told.get(id) or {**broken[id], "requirements": []}
        requirements = _requirements(found, about, line)
        help_text = "\n\n".join(_help(key, each) for key, each in requirements.items())
        yield {
            "id": clean(id),
            "name": "".join(word.capitalize() for word in clean(id).replace("/", "-").split("-")),
            "shortDescription": {"text": clean(about["sentence"])},
            "fullDescription": {"text": clean(about["sentence"])},
            "help": {"text": clean(help_text) or clean(about["sentence"])},
            "defaultConfiguration": {"level": LEVELS[about["grade"]]},
            "properties": {"tags": ["kafka", about["grade"], *requirements], "precision": "very-high"},
        }


def _help(id: str, requirement: Line) -> str:
    fix = f"\n\nHow to mend it: {requirement['fix']}" if requirement.get("fix") else ""
    return f"{id}, {requirement['clause']}: {requirement.get('text', '')}{fix}"


def _requirements(found: Summary, about: Line, line: Line | None) -> dict[str, Any]:
    known = found.header.get("requirements", {})
    broken = {each["id"]: each for each in (line["requirements"] if line else ())}
    return {id: known.get(id) or broken[id] for id in (*about["requirements"], *broken) if id in known or id in broken}


def _artifact(failure: Line) -> dict[str, Any]:
    return {"location": {"uri": _file(failure)}, "mimeType": "application/json"}


def _file(failure: Line) -> str:
    """With its least case; the ledger, where no case shows it."""
    return f"failures/{failure['id']}.json" if failure["case_id"] else "ledger.jsonl"


def _result(failure: Line, rule: int, artifact: int) -> dict[str, Any]:
    words = [failure["why"]]
    if failure["expected"] or failure["observed"]:
        words.append(f"Expected {failure['expected'] or 'nothing'}, observed {failure['observed'] or 'nothing'}.")
    words.append(f"{failure['target']} {failure['version']}, seen in {failure['cases']} cases: {where(failure)}.")
    words.append(f"Again: {failure['reproduce']}")
    place = {
        "physicalLocation": {
            "artifactLocation": {"uri": _file(failure), "index": artifact},
            "region": {"startLine": 1},
        },
        "logicalLocations": [
            {
                "name": clean(failure["path"] or failure["subject"]),
                "fullyQualifiedName": clean(
                    f"{named(failure['subject'], failure['subject_version'])} {failure['path']}".strip()
                ),
                "kind": "member",
            }
        ],
    }
    known = failure.get("known")
    return {
        "ruleId": clean(failure["invariant"]),
        "ruleIndex": rule,
        "kind": "fail",
        "level": LEVELS[failure["grade"]],
        "message": {"text": clean("\n".join(words))},
        "locations": [place],
        "partialFingerprints": {"kipcheckFailure/v1": failure["id"]},
        "occurrenceCount": max(1, failure["cases"]),
        **(
            {"suppressions": [{"kind": "external", "status": "accepted", "justification": clean(reason(known))}]}
            if known
            else {}
        ),
        "properties": {
            "target": failure["target"],
            "check": failure["check"],
            "case": failure["case_id"],
            "tags": failure.get("tags", []),
        },
    }
