"""Translates between the field names of an edition and those of one release's classes.

Some releases name fields differently from the newest one, and some classes keep sets and maps where the wire has lists.
The declarations describe that; the program in the JVM knows only its release. So a step is translated to the release's
names before it is sent, and its answer to the edition's names. Nothing here decides what is right.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import Observation, Refused, Replied, Unsupported
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.targets.canonical_form import canonical, exceeds_collections
from kipcheck.conformance.targets.protocol import Session, Target
from kipcheck.conformance.targets.session import run_up_to_death
from kipcheck.conformance.targets.session_wrapper import SessionWrapper, TargetWrapper
from kipcheck.conformance.wire.errors import Refused as Illegal
from kipcheck.conformance.wire.quirks import without_unread
from kipcheck.conformance.wire.schema import Layout, Slot, messages, spec

Run: TypeAlias = Callable[[Sequence[Case]], list[tuple[Observation, ...]]]

TAGS: Final = "_unknownTaggedFields"
CODEC_OPS: Final = ("encode", "decode", "recode")
NAMELESS: Final = releases(span("hand-written-requests"))
"""Releases whose requests, responses and headers have no definitions, and get names of fields from the declarations."""
OF_SETS: Final = {
    "SubscriptionInfo": releases(span("hand-written-subscription-info")),
    "AssignmentInfo": releases("all"),
    "ConsumerProtocolSubscription": releases(span("hand-written-consumer-protocol")),
    "ConsumerProtocolAssignment": releases(span("hand-written-consumer-protocol")),
    "StickyAssignorUserData": releases("all"),
}
"""Messages, and the releases whose class for them is hand-written with sets and maps, not generated."""

Value = dict[str, Any]


FIELDS: Final = "fields"
VALUES: Final = "values"
"""The limits that the program announces."""


class Inexpressible(Exception):
    """A value or an answer that the release's classes cannot represent, and the limit that this falls under."""

    def __init__(self, why: str, limit: str) -> None:
        super().__init__(why)
        self.limit = limit


class Translated(TargetWrapper):
    """A target whose program uses the names of one release."""

    def __init__(self, target: Target, release: str) -> None:
        super().__init__(target)
        self._release = release

    def open(self, edition: str, role: Role, /) -> AbstractContextManager[Session]:
        opened = self._target.open(edition, role)
        return _translated(opened, ReleaseNames(self._release, edition)) if role is Role.CODEC else opened


@contextmanager
def _translated(opened: AbstractContextManager[Session], words: "ReleaseNames") -> Iterator[Session]:
    with opened as session:
        yield _Session(session, words)


class _Session(SessionWrapper):
    def __init__(self, session: Session, words: "ReleaseNames") -> None:
        super().__init__(session)
        self._words = words

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        return self._run(cases, self._session.run)

    def run_up_to_death(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        return self._run(cases, partial(run_up_to_death, self._session))

    def _run(self, cases: Sequence[Case], run: Run) -> list[tuple[Observation, ...]]:
        """Of the first cases, if ``run`` answers only these."""
        plans = [[self._translate_step(step) for step in case.steps] for case in cases]
        steps = [tuple(each for each in plan if isinstance(each, Step)) for plan in plans]
        asked = [replace(case, steps=some) for case, some in zip(cases, steps, strict=True) if some]
        given = run(asked) if asked else []
        answers = iter(given)
        found: list[tuple[Observation, ...]] = []
        for case, plan, some in zip(cases, plans, steps, strict=True):
            if some and (answer := next(answers, None)) is None:
                break
            found.append(tuple(self._translate_answers(case, plan, answer if some and answer is not None else ())))
        return found

    def _translate_step(self, step: Step) -> Step | Unsupported:
        try:
            return replace(step, body=self._words.to_release(step.verb, step.body)) if step.verb in CODEC_OPS else step
        except Inexpressible as why:
            return Unsupported(str(why), why.limit)

    def _translate_answers(
        self, case: Case, plan: Sequence[Step | Unsupported], answers: Sequence[Observation]
    ) -> Iterator[Observation]:
        waiting = iter(answers)
        for step, planned in zip(case.steps, plan, strict=True):
            if isinstance(planned, Unsupported):
                yield planned
                continue
            answer = next(waiting)
            if not isinstance(answer, Replied | Refused) or step.verb not in CODEC_OPS:
                yield answer
                continue
            try:
                yield self._words.from_release(step.verb, step.body, answer)
            except Inexpressible as why:
                yield Unsupported(str(why), why.limit)


class ReleaseNames:
    """Translates between the names of an edition and those of one release."""

    def __init__(self, release: str, edition_name: str) -> None:
        self._release = Release.parse(release)
        self._edition = edition_name

    def to_release(self, verb: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body of a step in the release's names. Errors: ``Inexpressible``."""
        layout = _layout(self._edition, body["message"], body["version"])
        if verb != "encode" or layout is None:
            return dict(body)
        if self._of_sets(body["message"]) and (beyond := [key for key in body["value"] if key not in layout.names]):
            raise Inexpressible(f"its class has no field for {beyond[0]} in this version", FIELDS)
        theirs = self._theirs(body)
        return dict(body) if theirs is None else {**body, "value": _given(layout, theirs, body["value"])}

    def from_release(self, verb: str, body: Mapping[str, Any], answer: Replied | Refused) -> Replied | Refused:
        """An answer in the edition's names. Errors: ``Inexpressible``."""
        layout = _layout(self._edition, body["message"], body["version"])
        if layout is None:
            return answer
        if verb == "decode" and isinstance(answer, Replied):
            answer = self._shown(layout, body, answer)
        if self._of_sets(body["message"]):
            self._check_keepable(layout, verb, body, answer)
        return answer

    def _shown(self, layout: Layout, body: Mapping[str, Any], answer: Replied) -> Replied:
        theirs = self._theirs(body)
        shown = answer["value"] if theirs is None else _renamed(layout, theirs, answer["value"])
        return Replied(tuple((key, shown if key == "value" else each) for key, each in answer.payload))

    def _check_keepable(self, layout: Layout, verb: str, body: Mapping[str, Any], answer: Replied | Refused) -> None:
        """Errors: ``Inexpressible`` where the answer is wrong only because the class keeps sets and maps."""
        try:
            value = layout.codec.from_json(body["value"]) if verb == "encode" else _leniently(layout, body["hex"])
            given = layout.codec.to_json(value)
            if isinstance(answer, Refused):
                lost = exceeds_collections(given)
            elif verb == "decode":
                found = answer["value"]
                given = without_unread(layout, given, found)
                lost = found != given and (exceeds_collections(given) or _same_canonical_form(layout, given, found))
            else:
                wanted = layout.encode(value) if verb == "encode" else bytes.fromhex(body["hex"])
                lost = answer["hex"] != wanted.hex() and (
                    exceeds_collections(given)
                    or _same_canonical_form(layout, given, layout.codec.to_json(_strictly(layout, answer["hex"])))
                )
        except (Illegal, LookupError, TypeError):
            return  # bytes or values that have no meaning to compare
        if lost:
            raise Inexpressible("its class stores this value as sets, maps and strings", VALUES)

    def _of_sets(self, message: str) -> bool:
        return message in OF_SETS and self._release in OF_SETS[message]

    def _theirs(self, body: Mapping[str, Any]) -> Layout | None:
        """The layout of the release; None where it has the same names."""
        return _other(self._edition, str(self._release), body["message"], body["version"])


def _leniently(layout: Layout, data: str) -> Value:
    return layout.decode(bytes.fromhex(data), lenient=True)


def _strictly(layout: Layout, data: str) -> Value:
    return layout.decode(bytes.fromhex(data))


def _same_canonical_form(layout: Layout, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return canonical(layout.message, one) == canonical(layout.message, other)


@lru_cache(maxsize=512)
def _layout(edition_name: str, message: str, version: int) -> Layout | None:
    try:
        return spec(edition(edition_name), message).at(version)
    except LookupError:
        return None  # a version above the newest


@lru_cache(maxsize=512)
def _other(edition_name: str, release: str, message: str, version: int) -> Layout | None:
    ours, theirs = (_layout(each, message, version) for each in (edition_name, f"apache@{release}"))
    return None if ours is None or theirs is None or _same_names(ours, theirs) else theirs


def _same_names(ours: Layout, theirs: Layout) -> bool:
    return ours.names == theirs.names and all(
        one.item is other.item is None or (one.item and other.item and _same_names(one.item, other.item))
        for one, other in zip(ours.slots, theirs.slots, strict=True)
    )


def _pairs(ours: Layout, theirs: Layout) -> Iterator[tuple[Slot, Slot | None]]:
    """Each field of ours with the release's field at its position, or with its tag."""
    tagged = {slot.tag: slot for slot in theirs.slots if slot.tag is not None}
    placed = iter([slot for slot in theirs.slots if slot.tag is None])
    for slot in ours.slots:
        yield slot, next(placed, None) if slot.tag is None else tagged.get(slot.tag)


def _default(layout: Layout, slot: Slot) -> Any:
    return layout.codec.to_json(layout.defaults())[slot.name]


def _given(ours: Layout, theirs: Layout, value: Mapping[str, Any]) -> Value:
    pairs = {slot.name: (slot, other) for slot, other in _pairs(ours, theirs)}
    given: Value = {}
    for key, each in value.items():
        slot, other = pairs.get(key, (None, None))
        if slot is None:
            given[key] = each  # a field of another version: the class decides whether it accepts it
        elif other is not None:
            given[other.name] = _inner(slot, other, each, _given)
        elif each != _default(ours, slot):
            raise Inexpressible(f"this release does not know {key}", FIELDS)
    return given


def _renamed(ours: Layout, theirs: Layout, value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    left = dict(value)
    unknown = {each["tag"] for each in value.get(TAGS, ())}
    shown: Value = {}
    for slot, other in _pairs(ours, theirs):
        if other is None:
            if slot.tag is None:
                continue
            if slot.tag in unknown:
                raise Inexpressible(f"this release has only the bytes of {slot.name}", FIELDS)
            shown[slot.name] = _default(ours, slot)
        elif other.name in left:
            shown[slot.name] = _inner(slot, other, left.pop(other.name), _renamed)
    return shown | left


def _inner(slot: Slot, other: Slot, value: Any, turned: Any) -> Any:
    if slot.item is None or other.item is None or value is None:
        return value
    if isinstance(value, list):
        return [turned(slot.item, other.item, each) for each in value]
    return turned(slot.item, other.item, value)


# -- names, for releases that have none


def names(release: str) -> dict[str, dict[str, Any]] | None:
    """Message -> version -> its fields in wire order; None for a release that has names of its own.

    For each field: the name, the default, whether it is an array, and the fields of its struct.
    """
    if Release.parse(release) not in NAMELESS:
        return None
    found = edition(f"apache@{release}")
    wire = [each for each in messages(found) if each.endswith(("Request", "Response", "Header"))]
    return {message: {str(each.version): _fields(each) for each in spec(found, message)} for message in wire}


def _fields(layout: Layout) -> list[dict[str, Any]]:
    return [
        {
            "name": slot.name, "array": slot.array, "default": _default(layout, slot),
            "fields": None if slot.item is None else _fields(slot.item),
        }
        for slot in layout.slots
    ]  # fmt: skip
