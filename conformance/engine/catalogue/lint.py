"""Lints the declarations: checks, invariants, requirements, remedies and tags must be well formed and consistent."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import Any

from kipcheck.conformance.core.files.releases_table import rule_laws, table
from kipcheck.conformance.core.files.remedies import FailureFix, Remedy, failure_fixes, remedies
from kipcheck.conformance.core.files.tags import Vocabulary
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.failure_pattern import FailurePattern
from kipcheck.conformance.core.values.impacts import Effect
from kipcheck.conformance.core.values.requirement import Half, Requirement, requirements
from kipcheck.conformance.core.values.verdict import Grade
from kipcheck.conformance.engine.catalogue import lint_words
from kipcheck.conformance.protocols.checks import CHECKS, LISTED, Check
from kipcheck.conformance.protocols.declare.invariant import Invariant
from kipcheck.conformance.protocols.invariants import all_effects, all_invariants, tags_vocabulary

CHECK = re.compile(r"[a-z]+(-[a-z]+)*/[a-z0-9]+(-[a-z0-9]+)*")
INVARIANT = re.compile(r"([a-z]+(-[a-z]+)*/)?[a-z0-9]+(-[a-z0-9]+)*")
REQUIREMENT = re.compile(r"([0-9]{3,4}|grp|card)-[0-9]{2,3}")
WITH_HALVES = ("KIP-258", "KIP-268", "KIP-384", "KIP-429", "KIP-584")
"""The documents whose requirements state both halves."""
LINK = re.compile(r"(KAFKA|KIP)-[1-9][0-9]*|CVE-[0-9]{4}-[0-9]{4,}|CWE-[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class LintInput:
    """The declarations to lint; a test passes its own."""

    checks: Sequence[Check[Any]]
    invariants: Sequence[Invariant]
    requirements: Mapping[str, Requirement]
    remedies: Mapping[str, Remedy]
    tags: Vocabulary
    effects: Sequence[Effect] = ()
    fixes: Sequence[FailureFix] = ()
    rules: Mapping[str, Any] = field(default_factory=dict)
    """By section and name of ``releases.toml``: the invariants that read a rule, or why none does."""


def lint_input() -> LintInput:
    invariants = {each.id: each for role in Role for each in all_invariants(role)}
    about_failures = all_effects(), failure_fixes()
    return LintInput(
        LISTED, tuple(invariants.values()), requirements(), remedies(), tags_vocabulary(), *about_failures, rule_laws()
    )


def troubles(of: LintInput) -> Iterator[str]:
    """Error messages, each with the id of the declaration."""
    yield from _twice("as a check", (each.id for each in of.checks))
    yield from _twice("as an invariant", (each.id for each in of.invariants))
    yield from _twice("as a requirement", _ids())
    known = {each.id: each for each in of.invariants}
    by_check = {each.id: each.invariants for each in of.checks}
    used_invariants = {id for ids in by_check.values() for id in ids}
    for check in of.checks:
        yield from _check(check, known)
    for invariant in of.invariants:
        yield from _invariant(invariant, of)
        if invariant.role is not None and invariant.id not in used_invariants:
            yield f"{invariant.id}: no check uses it"
        for name in invariant.checks:
            if "/" in name and invariant.id not in by_check.get(name, ()):
                yield f"{invariant.id}: it names the check {name!r}, which does not use it"
    yield from _parts(of, known)
    for id in of.requirements:
        if not REQUIREMENT.fullmatch(id):
            yield f"{id}: invalid id of a requirement: use the form of grp-05"
        if of.requirements[id].role not in {each.value for each in Role}:
            yield f"{id}: unknown role {of.requirements[id].role!r}"
        if id not in of.remedies:
            yield f"{id}: it has no remedy"
    yield from (f"{id}: remedy for an unknown requirement" for id in of.remedies if id not in of.requirements)
    yield from _tags(of)
    yield from _about_failures(of)
    yield from _rules(of, known)


def _rules(of: LintInput, known: Mapping[str, Invariant]) -> Iterator[str]:
    """Each rule of a release is read by an invariant, or a sentence says why none reads it."""
    for section, answers in of.rules.items():
        rules = table()[section]
        yield from (f"{section}.{name}: no invariant reads this rule" for name in rules if name not in answers)
        for name, answer in answers.items():
            if name not in rules:
                yield f"{section}.{name}: rule_laws.toml has a rule that releases.toml lacks"
            elif not answer or (isinstance(answer, str) and not answer.endswith(".")):
                yield f"{section}.{name}: name invariants, or state in a sentence why there is none"
            elif not isinstance(answer, str):
                yield from (f"{section}.{name}: unknown invariant {id!r}" for id in answer if id not in known)


def _parts(of: LintInput, known: Mapping[str, Invariant]) -> Iterator[str]:
    """Each invariant of a part covers the requirement, and a sentence has no single part."""
    for id, each in of.requirements.items():
        if len(each.parts) == 1:
            yield f"{id}: a single part is the requirement itself"
        if each.tests and any(id in invariant.requirements for invariant in of.invariants):
            yield f"{id}: tests of kipcheck show it, and an invariant covers it"
        for part in each.parts:
            for name in part.invariants:
                if name not in known or id not in known[name].all_requirements:
                    yield f"{id}: the part {part.text!r} names {name}, which does not cover the requirement"


def halves(of: LintInput, mutants: Mapping[str, str]) -> Iterator[str]:
    """Each half of a requirement that a check covers has a text, invariants that cover it, and mutants of these.

    ``mutants``: the invariant that each of them breaks; a mutant that fits every machine breaks ``*``.
    """
    known = {each.id: each for each in of.invariants}
    for id, each in of.requirements.items():
        if each.tests or each.kip not in WITH_HALVES:
            continue
        stated = {"does": each.does, "never": each.never}
        if not any(half and half.text for half in stated.values()):
            yield f"{id}: it has neither does nor never"
        for name, half in stated.items():
            if half is None:
                yield f"{id}: state {name}, or why it is absent"
            elif bool(half.text) is bool(half.absent):
                yield f"{id}: {name} needs either a text, or why it is absent"
            elif half.text:
                yield from (f"{id}: {name} {wrong}" for wrong in _half(id, half, known, mutants))


def _half(id: str, half: Half, known: Mapping[str, Invariant], mutants: Mapping[str, str]) -> Iterator[str]:
    if not half.invariants or not half.mutants:
        yield "needs invariants and mutants"
    for name in half.invariants:
        if name not in known or id not in known[name].all_requirements:
            yield f"names {name}, which does not cover the requirement"
    for name in half.mutants:
        if mutants.get(name) not in (*half.invariants, "*"):
            yield f"names the mutant {name}, which breaks {mutants.get(name, 'nothing: it is unknown')}"


def _twice(what: str, ids: Iterable[str]) -> Iterator[str]:
    for id, times in Counter(ids).items():
        if times > 1:
            yield f"{id}: named {times} times {what}"


def _ids() -> Iterator[str]:
    """In the order of the file, duplicates included."""
    text = (files("kipcheck.conformance") / "requirements.toml").read_text("utf-8")
    return (each["id"] for each in tomllib.loads(text)["requirement"])


def _check(check: Check[Any], known: Mapping[str, Invariant]) -> Iterator[str]:
    if not CHECK.fullmatch(check.id):
        yield f"{check.id}: invalid id of a check: use the form of wire/round-trip"
    if not check.sentence or check.sentence.endswith(".") or check.sentence != check.sentence.strip():
        yield f"{check.id}: its sentence must not be empty or end with a full stop"
    if not check.invariants:
        yield f"{check.id}: it has no invariants"
    yield from _twice(f"by {check.id}", check.invariants)
    for id in check.invariants:
        if id not in known:
            yield f"{check.id}: unknown invariant {id!r}"
        elif known[id].role not in (check.role, None):
            yield f"{check.id}: {id} is for another role than {check.role.value}"


def _invariant(invariant: Invariant, of: LintInput) -> Iterator[str]:
    if not INVARIANT.fullmatch(invariant.id):
        yield f"{invariant.id}: invalid id of an invariant: use the form of wire/encodes"
    if not invariant.statement.endswith("."):
        yield f"{invariant.id}: its statement must end with a full stop"
    if not (invariant.requirements or invariant.extra_requirements):
        yield f"{invariant.id}: it covers no requirement"
    for id in invariant.all_requirements:
        if id not in of.requirements:
            yield f"{invariant.id}: unknown requirement {id!r}"
    for name, _ in invariant.extra_requirements:
        try:
            edition(name)
        except LookupError:
            yield f"{invariant.id}: unknown edition {name!r}"


def _tags(of: LintInput) -> Iterator[str]:
    listed = {each.id for each in of.invariants}
    yield from (f"{id}: it has no tags" for id in sorted(listed - of.tags.invariants.keys()))
    for id, tags in of.tags.invariants.items():
        if id not in listed:
            yield f"{id}: tags for an unknown invariant"
        if tags.bug not in of.tags.classes:
            yield f"{id}: unknown class of mistakes {tags.bug!r}"
        if not tags.effects:
            yield f"{id}: it has no effects"
        yield from (f"{id}: unknown effect {each!r}" for each in tags.effects if each not in of.tags.effects)
        yield from (f"{id}: invalid link {each!r}" for each in tags.links if not LINK.fullmatch(each))
    used = {word for each in of.tags.invariants.values() for word in (each.bug, *each.effects)}
    yield from (f"{word}: unused tag" for word in (*of.tags.classes, *of.tags.effects) if word not in used)


def _about_failures(of: LintInput) -> Iterator[str]:
    """Each invariant has a last entry among the effects, for any shape, and each pattern is about an invariant."""
    last = {each.pattern.invariant: each.pattern for each in of.effects}
    for invariant in of.invariants:
        if last.get(invariant.id) != FailurePattern(invariant.id):
            yield f"{invariant.id}: its last entry in effects.toml must be one for any failure"
    ids = [each.id for each in of.invariants]
    for name, patterns in {
        "effects.toml": [each.pattern for each in of.effects],
        "remedies.toml": [each.pattern for each in of.fixes],
        "tags.toml": [each.pattern for each in of.tags.failures],
    }.items():
        for pattern in patterns:
            if not any(fnmatchcase(id, pattern.invariant) for id in ids):
                yield f"{pattern.invariant}: {name} has an entry for an unknown invariant"


def words(of: LintInput) -> Iterator[str]:
    """Each unwanted word in texts that people read, with its place."""
    stated = [
        *((each.id, each.sentence) for each in of.checks),
        *((each.id, each.statement) for each in of.invariants),
        *((id, each.text) for id, each in of.requirements.items()),
        *((id, text) for id, each in of.remedies.items() for text in (each.fix, each.means)),
        *((each.pattern.invariant, each.title) for each in of.effects),
        *((each.pattern.invariant, each.fix) for each in of.fixes),
        *of.tags.classes.items(),
        *of.tags.effects.items(),
        *((name, answer) for rules in of.rules.values() for name, answer in rules.items() if isinstance(answer, str)),
    ]
    yield from map(str, lint_words.found(lint_words.Text(text, id=id) for id, text in stated))


def coverage_counts(of: LintInput) -> Iterator[tuple[str, str, int, int]]:
    """Role, grade, the number of its requirements that checks cover, and the number of its requirements."""
    known = {each.id: each for each in of.invariants}
    always = [each.id for each in of.invariants if each.role is None]  # judged in the cases of every check
    covered = {
        id
        for check in of.checks
        for each in (known[id] for id in dict.fromkeys((*check.invariants, *always)) if id in known)
        for id in (*each.requirements, *(id for ids in each.extra_requirements.values() for id in ids))
    }
    for role in Role:
        for grade in Grade:
            there = [id for id, each in of.requirements.items() if (each.role, each.grade) == (role.value, grade)]
            if there:
                yield role.value, grade.value, len(covered & set(there)), len(there)


def checked_roles() -> set[str]:
    """The roles that checks test."""
    return {each.role.value for each in CHECKS.values()}
