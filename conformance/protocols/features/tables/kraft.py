"""Decision tables of KRaft controllers, by release: levels, upgrade types, versions, and the one node that forbids."""

from collections.abc import Iterator
from itertools import chain, product
from typing import Any, Final

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.declare.check import Conversation
from kipcheck.conformance.protocols.features.model.kraft_rules import KRAFT, METADATA, Rules
from kipcheck.conformance.protocols.features.ops import kraft, kraft_brokers

MARKS: Final = ("", "!", "!!")
UNKNOWN: Final = ("~0", "~99")
NODES: Final = (1, 2, 3)


def updates(subject: Any) -> Iterator[Conversation]:
    rules = Rules.of(edition(subject.edition).release)
    tables = (_metadata, _steps, _features, _nodes, _controllers, _several)
    for text in dict.fromkeys(chain.from_iterable(each(rules) for each in tables)):
        yield Conversation(kraft.OPERATIONS.parse_shorthand(text))


def registrations(subject: Any) -> Iterator[Conversation]:
    rules = Rules.of(edition(subject.edition).release)
    for text in dict.fromkeys(_brokers(rules)):
        yield Conversation(kraft_brokers.OPERATIONS.parse_shorthand(text))


def _first(rules: Rules) -> int:
    return max(rules.first_bootstrap, rules.supported[METADATA].low)


def _others(rules: Rules) -> list[str]:
    """Features other than metadata.version and kraft.version, with at least one level."""
    return [name for name, span in rules.declares() if name not in (METADATA, KRAFT) and span.high > 0]


def _metadata(rules: Rules) -> Iterator[str]:
    newest, first = rules.newest, _first(rules)
    for level in sorted({first, newest - 2, newest - 1, newest}):
        requested = {-1, 0, 1, first - 1, first, level - 2, level - 1, level, level + 1, newest, newest + 1}
        for each, mark in product(sorted(requested), MARKS):
            yield f"format {level}; levels; kraft-update v1 metadata.version:{each}{mark}; levels"
        for each, version in product(sorted(requested), (0, 1)):
            yield f"format {level}; kraft-update v{version} metadata.version:{each} validate; levels"
        for each, mark in product((level - 1, level, level + 1), UNKNOWN):
            yield f"format {level}; levels; kraft-update v1 metadata.version:{each}{mark}; levels"


def _steps(rules: Rules) -> Iterator[str]:
    """Down from each level to each lower one: along steps that change no record, and along those that do."""
    for level in range(_first(rules) + 1, rules.newest + 1):
        for lower in range(max(_first(rules), level - 4), level):
            yield f"format {level}; levels; kraft-update v1 metadata.version:{lower}!; levels"


def _features(rules: Rules) -> Iterator[str]:
    for name in _others(rules)[:2]:
        high = rules.supported[name].high
        for level, requested, mark in product(range(high + 1), range(-1, high + 2), (*MARKS, *UNKNOWN)):
            begun = f"format {rules.newest}{f' {name}:{level}' * bool(level)}; levels; "
            yield f"{begun}kraft-update v1 {name}:{requested}{mark}; levels; fail-over; levels"
    for (name, level), least in rules.needs.items():
        for metadata in (least - 1, least) if name != KRAFT and least > _first(rules) else ():
            yield f"format {metadata}; kraft-update v1 {name}:{level}; levels"
            yield f"format {metadata}; kraft-update v1 {name}:{level},metadata.version:{least}; levels"
    for name, level in product(("kip.check", ""), (0, 1)):
        yield f"levels; kraft-update v1 {name}:{level}; levels"


def declared(rules: Rules, **other: tuple[int, int] | None) -> str:
    """What a node of this release declares, but for these ranges; None: it does not declare the feature."""
    spans: dict[str, tuple[int, int] | None] = {**dict(rules.declares()), **other}
    return ",".join(f"{name}:{span[0]}-{span[1]}" for name, span in spans.items() if span is not None)


def _moves(rules: Rules) -> Iterator[tuple[str, str, dict[str, tuple[int, int] | None]]]:
    """A cluster, an update that is legal there, and the ranges of a node that forbids it."""
    newest = rules.newest
    yield f"format {newest - 1}; ", f"metadata.version:{newest}", {METADATA: (_low(rules, METADATA), newest - 1)}
    for name in _others(rules):
        span = rules.supported[name]
        yield f"format {newest}; ", f"{name}:{span.high}", {name: (0, span.high - 1)}
        yield f"format {newest}; ", f"{name}:{span.high}", {name: None}
        yield f"format {newest} {name}:1; ", f"{name}:0!", {name: (1, span.high)}


def _low(rules: Rules, name: str) -> int:
    return rules.supported[name].low


def _nodes(rules: Rules) -> Iterator[str]:
    """Three brokers, of which none or any one forbids the update."""
    for begun, update, ranges in _moves(rules):
        for behind in (None, *NODES):
            nodes = (declared(rules, **ranges) if number == behind else declared(rules) for number in NODES)
            brokers = "".join(f"broker {number} {each}; " for number, each in zip(NODES, nodes, strict=True))
            yield f"{begun}{brokers}levels; kraft-update v1 {update}; levels"
            if behind is not None:  # it does not count any more
                yield f"{begun}{brokers}broker {behind} gone; levels; kraft-update v1 {update}; levels"


def _controllers(rules: Rules) -> Iterator[str]:
    """Two other controllers, of which none or any one forbids the update, or has not registered."""
    for begun, update, ranges in _moves(rules):
        begun = begun.removesuffix("; ") + " with 1,2; "
        for behind, silent in product((None, 1, 2), (None, 1, 2)):
            nodes = (declared(rules, **ranges) if number == behind else declared(rules) for number in (1, 2))
            others = "".join(
                f"controller {number} {each}; "
                for number, each in zip((1, 2), nodes, strict=True) if number != silent
            )  # fmt: skip
            yield f"{begun}{others}levels; kraft-update v1 {update}; levels; fail-over; levels"


def _several(rules: Rules) -> Iterator[str]:
    """Two updates, good or bad, in both orders, in each version, validated or not."""
    newest = rules.newest
    names = [*_others(rules), "kip.check"]
    good = [f"metadata.version:{newest}", f"{names[0]}:1"]
    bad = [f"metadata.version:{newest + 1}", f"{names[-1]}:2"]
    versions = (0, 1, 2) if rules.all_or_nothing else (0, 1)
    for one, other, version, mode in product((good[0], bad[0]), (good[1], bad[1]), versions, ("", " validate")):
        for text in (f"{one},{other}", f"{other},{one}"):
            yield f"format {newest - 1}; levels; kraft-update v{version} {text}{mode}; levels"


def _brokers(rules: Rules) -> Iterator[str]:
    """A broker that supports everything, and one that lacks one feature, or its finalized level, on either side."""
    newest, first = rules.newest, _first(rules)
    for level in sorted({first, newest - 1, newest}):
        for span in (
            (_low(rules, METADATA), level - 1),
            (_low(rules, METADATA), level),
            (level, newest),
            (level + 1, newest + 1),
        ):
            if span[0] <= span[1]:
                text = declared(rules, **{METADATA: span})
                yield f"format {level}; register 1 {text}; api-versions v3; api-versions v4"
    names = _others(rules)
    for name in names:
        high = rules.supported[name].high
        levels = ",".join(f"{each}:1" for each in names)
        for other in (None, (0, 0), (0, 1), (1, high), (high + 1, high + 1)):
            text = declared(rules, **{name: other})
            yield f"format {newest} {levels}; register 1 {text}; register 2 {declared(rules)}; api-versions v4"
