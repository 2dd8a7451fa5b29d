"""Default cases have each edge of each field: of its type and its rules as declared, and of what is drawn.

``core/operations/field_edges.py`` derives the edges from the operations, ``strategies/edges.py`` from the declaration
of the steps that are drawn. An edge that no case has is one at which an implementation can be wrong unnoticed.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from kipcheck.conformance.core.operations.field_edges import edges_of, values_in
from kipcheck.conformance.core.values.edition import APACHE, EDITIONS
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.checks import CHECKS, Check
from kipcheck.conformance.protocols.codec.checks.version_pairs import SUPPORTED, supported_versions
from kipcheck.strategies.edges import edges_drawn, values_drawn

IN_REAL_TIME = ("client", "feature-commands", "kraft-quorum")
"""Scripts of live clients and of started clusters take real time, so there are few: a campaign draws other values."""
EXPENSIVE = (
    "features", "feature-cluster", "kraft-features", "group", "member", "consumer_group", "upgrade", "streams",
    "persistent_metadata", "store_upgrade", "streams_group",
)  # fmt: skip
"""Drawing their default cases takes about a second or more."""
FAMILIES = [
    pytest.param(name, marks=pytest.mark.integration) if name in EXPENSIVE else name
    for name in registry.operations()
    if name not in IN_REAL_TIME
]
Found = tuple[str, str, str]
"""Verb, path and value."""

NO_NAME = "a node declares names, and a cluster is formatted with those of its release: others are replaced"
NO_LEVEL = "a cluster is formatted with levels that its release supports: others are replaced"
BOTH_TOPICS = "both topics exist in all cases: what a consumer does about a deleted topic is not specified"
LATE = "no case has as many generations"
NO_TOPOLOGY = "Streams makes no such topology"
FORMATTED = {
    ("{0}", "level", "1"): NO_LEVEL,
    ("{0}", "level", "40"): NO_LEVEL,
    ("{0}", "levels[].level", "3"): NO_LEVEL,
    **{("{0}", "levels[].feature", name): NO_NAME for name in ('"metadata.version"', '"kip.check"', '""')},
    **{("{1}", f"supported[].{end}", "40"): "40 is above every level of a release" for end in ("low", "high")},
    ("{1}", "supported[].feature", '""'): NO_NAME,
}


def of_kraft(cluster: str, node: str) -> dict[Found, str]:
    return {(verb.format(cluster, node), path, value): why for (verb, path, value), why in FORMATTED.items()}


NOT_DRAWN: dict[str, dict[Found, str]] = {
    "kraft-features": of_kraft("kraft-format", "kraft-node"),
    "kraft-brokers": {
        **of_kraft("kraft-cluster", "kraft-register"),
        ("kraft-register", "supported[].feature", '"kip.check"'): NO_NAME,
    },
    "group": {
        ("commit", "offsets", "no items"): "without offsets an answer has no place for an error",
        **{
            (verb, "nameless", "true"): "only of the requests of members is it specified that they need a group id"
            for verb in ("commit", "fetch", "describe-group", "list-groups", "delete-group")
        },
    },
    "member": {
        ("member-open", "assignors", "no items"): "a step names an assignor, or it is refused when it is read",
        ("member-subscribe", "topics", "no items"): "a step without topics is member-unsubscribe",
        ("member-commit", "offsets", "no items"): "no request is sent",
        ("member-told", "members[].2.topics", "no items"): "a consumer without topics does not join",
        **{(verb, "topics", "no items"): BOTH_TOPICS for verb in ("member-open", "member-metadata")},
        ("member-metadata", "topics", "one item"): BOTH_TOPICS,
        **{("member-told", f"members[].2.{name}", "60"): LATE for name in ("generation", "data_generation")},
    },
    "stores": {("store-put-if-absent", "timestamp", "null"): "a task puts records, which have a timestamp"},
    "streams": {
        ("stream-deploy", f"topology.subtopologies{path}", value): NO_TOPOLOGY
        for path, value in (
            ("", "no items"),
            ("[].sources", "no items"),
            ("[].copartition", "several items"),
            ("[].copartition[]", "no items"),
            ("[].copartition[]", "one item"),
        )
    },
}
"""Edges that cannot be in a case, by family, and the reason."""


@pytest.mark.parametrize("family", FAMILIES)
def test_default_cases_have_every_edge(family: str) -> None:
    seen, wanted = edges_in_default_cases(family)
    excused = NOT_DRAWN.get(family, {})
    missing = [each for each in wanted if not seen[each] and each not in excused]
    assert not missing, f"no default case of {family} has: {missing}"
    stale = [each for each in excused if seen[each] or each not in wanted]
    assert not stale, f"drawn, or no edge: remove {stale}"


def edges_in_default_cases(family: str) -> tuple[Counter[Found], dict[Found, None]]:
    """In how many cases each value is; and the edges."""
    operations = registry.operations()[family]
    fields = {each.verb: tuple(getattr(each, "fields", ())) for each in operations.declared}
    wanted = dict.fromkeys((verb, *edge) for verb, some in fields.items() for each in some for edge in edges_of(each))
    seen = Counter[Found]()
    for check, subject in checks_of(operations.machines):
        declared: Any = check.declaration(subject)
        wanted |= dict.fromkeys(of_steps(declared.item))
        for sample in check.samples(subject, seed=0):
            inside = set[Found]()
            for step in sample.case.steps:
                inside.update((step.verb, *each) for each in values_drawn(step.body))
                for field in fields.get(step.verb, ()):
                    inside.update((step.verb, *each) for each in values_in(field, step.body))
            seen.update(inside)
    return seen, wanted


def checks_of(machines: tuple[str, ...]) -> Iterator[tuple[Check[Any], Any]]:
    """The checks of these machines, with their subjects of a default run and of drafts."""
    for check in CHECKS.values():
        subjects = {each: None for name in EDITIONS for each in check.family.subjects(name)}
        yield from ((check, each) for each in subjects if each.name in machines and check.about(each))


def of_steps(node: Any) -> Iterator[Found]:
    for step in getattr(node, "options", (node,)):
        parts = dict(step.fields)
        (verb,) = parts["verb"].options
        yield from ((verb, *each) for each in edges_drawn(parts["body"]))


def test_default_cases_have_every_pair_of_used_and_supported_versions() -> None:
    check = CHECKS["wire/round-trip"]
    for subject in check.family.subjects(APACHE.name):
        if not (wanted := supported_versions(subject)):
            continue
        layout, name = subject.layout, SUPPORTED[subject.name]
        bodies = [step.body for sample in check.samples(subject, seed=0) for step in sample.case.steps]
        decoded = [layout.decode(bytes.fromhex(each["hex"])) for each in bodies if "hex" in each]
        assert {*wanted} <= {each[name] for each in decoded}, (subject.name, layout.version)
