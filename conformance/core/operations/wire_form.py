"""Converts requests and answers to the bodies of Kafka's messages and back, in every version of a message.

A class names its message, and each field its place there::

    @message("LeaveGroupRequest", "groupId = group")
    class Leave:
        version: int
        members: Annotated[
            tuple[tuple[str, str | None], ...],
            wire("members[].memberId | memberId", "members[].groupInstanceId | groupInstanceId"),
        ]

``a.b`` is field b of struct a, ``a[0]`` the only element of list a, ``a[]`` each of them: a tuple has a row for each,
and a place for each part of a row; a value that is no tuple is the same in all of them. ``p | q`` is q in versions
without p. ``p as x`` is converted by the value ``x`` of the context: ids of topics, bytes, scaled times. ``p = x`` is
what the context names ``x``, or ``null``; rows where it differs are left out. Lists inside lists group the rows with
equal parts. A field that is a dataclass, or a tuple of them, has places of its own. A field without a place is an
argument of ``read``, except ``version``, which is that of the message.

``write(Leave(...), layout, context)`` is a body and ``read(Leave, layout, body, context, request=7)`` the reverse:
``kipcheck.conformance.wire.bodies`` finds the layout of a version, and has bytes. What depends on versions is in the
layouts: a field that a version lacks is left out where it has its default or the message ignores it, else
``Inexpressible`` is raised. A body that has no value of the class (two groups in place of one) raises ``Unfit``.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

from kipcheck.conformance.core.operations.field_annotations import Wire


class Slot(Protocol):
    """A field of a message, as ``wire.schema`` has it."""

    @property
    def name(self) -> str: ...
    @property
    def item(self) -> "Layout | None": ...
    @property
    def nullable(self) -> bool: ...
    @property
    def default(self) -> Any: ...


class Absent(Protocol):
    """A field that a version lacks."""

    @property
    def name(self) -> str: ...
    @property
    def default(self) -> Any: ...
    @property
    def ignorable(self) -> bool: ...


class Layout(Protocol):
    """A message, or a struct in it, at one version."""

    @property
    def message(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def slots(self) -> Sequence[Slot]: ...
    @property
    def absent(self) -> Sequence[Absent]: ...


class Inexpressible(Exception):
    """A version of a message cannot have the value of a field."""


class Unfit(Exception):
    """A body has no value of the class."""


@dataclass(frozen=True, slots=True)
class Value:
    """The conversion of a value to the message, and back. Null is not converted."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Context:
    """What a message depends on beside the fields of its class."""

    values: Mapping[str, Value] = field(default_factory=dict)
    """By the names behind ``as``."""
    named: Mapping[str, Any] = field(default_factory=dict)
    """By the names behind ``=``."""


SAME: Final = Value(lambda value: value, lambda value: value)
NULL: Final = "null"
_MESSAGE: Final = "__message__"
C = TypeVar("C", bound=type)
T = TypeVar("T")


def message(name: str, *others: str) -> Callable[[C], C]:
    """Names the message of a class. ``others``: places that are no fields, ``groupId = group``."""

    def declare(made: C) -> C:
        setattr(made, _MESSAGE, (name, others))
        return made

    return declare


def message_of(made: type) -> str:
    """For example ``JoinGroupRequest``."""
    name: str = getattr(made, _MESSAGE)[0]
    return name


def write(value: Any, layout: Layout, context: Context, repeated: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The body of a request or answer. ``repeated``: the body of the request whose rows an answer repeats.

    Errors: ``Inexpressible``.
    """
    return _form(type(value), layout).written(value, context, repeated or {})


def read(made: type[T], layout: Layout, body: Mapping[str, Any], context: Context, **others: Any) -> T:
    """The request or answer in a decoded body. ``others``: the fields without a place. Errors: ``Unfit``."""
    found: T = _form(made, layout).parsed(body, context, others)
    return found


def named(made: type, layout: Layout, body: Mapping[str, Any]) -> dict[str, Any]:
    """What a body has in the places that are no fields, by name. Errors: ``Unfit``."""
    others = _form(made, layout).others
    return {each.name: next(_found(body, each.steps)) for each in others if each.steps and each.name != NULL}


def check(made: type, layout: Layout, context: Context) -> None:
    """Errors: ``Inexpressible`` where the context lacks a value of this version."""
    for each in _form(made, layout).fields:
        _check_values(each.columns, context)


def lacking(made: type, layout: Layout) -> frozenset[str]:
    """The fields that have a place which the version lacks."""
    every = _form(made, layout).fields
    return frozenset(each.name for each in every if not all(place.steps for place in each.columns))


# Places


@dataclass(frozen=True, slots=True)
class _Step:
    name: str
    rows: str
    """``[]``, ``[0]``, or empty: no list."""
    nullable: bool
    default: Any


_Steps = tuple[_Step, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    text: str
    steps: _Steps
    """None: the version lacks it."""
    converted: str
    name: str
    absent: Any
    """What is read in a version that lacks it; MISSING: the default of the field."""
    is_ignorable: bool
    form: "_Form | None"
    loops: tuple[_Steps, ...] = ()
    """The steps to each list that has rows: from the message, then from an element of the list before."""
    tail: _Steps = ()
    """The steps behind the last list."""

    def value(self, context: Context) -> Value:
        """Errors: ``Inexpressible``."""
        if not self.converted:
            return SAME
        if self.converted not in context.values:
            raise Inexpressible(f"{self.text}: there is no {self.converted}")
        return context.values[self.converted]

    def written(self, value: Any, context: Context) -> Any:
        if value is None:
            return None
        return self.value(context).write(value) if self.form is None else self.form.written(value, context, {})

    def parsed(self, found: Any, context: Context) -> Any:
        if found is None:
            return None
        return self.value(context).read(found) if self.form is None else self.form.parsed(found, context, {})


def _check_values(places: Iterable[_Place], context: Context) -> None:
    """Errors: ``Inexpressible`` where the context lacks a value."""
    for each in places:
        if each.steps:
            each.value(context)


_OPTION: Final = re.compile(r"(\S+)(?: as (\w+)| = (\w+))?")


def _place(text: str, layout: Layout, item: type | None) -> _Place:
    for option in text.split(" | "):
        found = _OPTION.fullmatch(option)
        if found is None:
            raise ValueError(f"invalid place {option!r}")
        path, converted, name = found.groups()
        steps, lacks, inside = _steps(path, layout)
        if not lacks:
            form = None if item is None or inside is None else _form(item, inside)
            ends = [at for at, step in enumerate(steps, 1) if step.rows == "[]"]
            loops = tuple(steps[low:high] for low, high in zip((0, *ends), ends, strict=False))
            tail = steps[ends[-1] if ends else 0 :]
            return _Place(option, steps, converted or "", name or "", None, False, form, loops, tail)
    missing = next((each for each in inside.absent if each.name == lacks), None) if inside is not None else None
    is_last = re.sub(r"\[0?\]", "", path).endswith(lacks) and len(steps) == path.count(".")
    absent = missing.default if missing is not None and is_last else MISSING
    ignorable = missing is not None and missing.ignorable
    return _Place(text, (), converted or "", name or "", None if absent is ... else absent, ignorable, None)


def _steps(path: str, layout: Layout) -> tuple[_Steps, str, Layout | None]:
    """The steps of a path, the name of the first one that the layout lacks, and the struct where the path ends."""
    steps: list[_Step] = []
    inside: Layout | None = layout
    for part in path.split("."):
        name, bracket, rest = part.partition("[")
        slot = next((each for each in inside.slots if each.name == name), None) if inside is not None else None
        if slot is None:
            return tuple(steps), name, inside
        steps.append(_Step(name, bracket + rest, slot.nullable, slot.default))
        inside = slot.item
    return tuple(steps), "", inside


def _found(body: Any, steps: _Steps) -> Iterator[Any]:
    """The values at a place; null if a part of it is. Errors: ``Unfit``."""
    if not steps:
        yield body
        return
    step, rest = steps[0], steps[1:]
    found = body.get(step.name, step.default)
    if found is None or not step.rows:
        yield from _found(found, rest if found is not None else ())
    elif step.rows == "[]":
        for each in found:
            yield from _found(each, rest)
    elif len(found) == 1:
        yield from _found(found[0], rest)
    else:
        raise Unfit(f"{len(found)} {step.name} in place of one")


def _put(body: dict[str, Any], steps: _Steps, value: Any) -> None:
    step, rest = steps[0], steps[1:]
    if step.rows == "[]":
        for each in body.get(step.name, ()):
            _put(each, rest, value)
    elif not rest:
        body[step.name] = [value] if step.rows else value
    else:
        _put(body.setdefault(step.name, [{}])[0] if step.rows else body.setdefault(step.name, {}), rest, value)


def _list(body: dict[str, Any], steps: _Steps) -> list[Any]:
    """The list at a place, which is made where it is not there."""
    for each in steps[:-1]:
        body = body.setdefault(each.name, [{}])[0] if each.rows else body.setdefault(each.name, {})
    found: list[Any] = body.setdefault(steps[-1].name, [])
    return found


# Fields


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a class at one version of its message."""

    name: str
    default: Any
    columns: tuple[_Place, ...]
    wire: Wire
    where: str
    """The message and its version, for people."""

    def refuse_absent(self, place: _Place, value: Any) -> None:
        """Errors: ``Inexpressible`` where the version lacks the place, and must not lose the value."""
        if not place.is_ignorable and value is not None and value not in (place.absent, self.default):
            raise Inexpressible(f"{self.where} has no {place.text}")


class _Scalar(_Field):
    """A value that is no tuple."""

    def put(self, body: dict[str, Any], value: Any, context: Context) -> None:
        (place,) = self.columns
        if not place.steps:
            self.refuse_absent(place, value)
        elif value is not None or place.steps[-1].nullable:
            _put(body, place.steps, place.written(value, context))

    def get(self, body: Mapping[str, Any], context: Context) -> Any:
        (place,) = self.columns
        if not place.steps:
            if place.absent is not MISSING:
                return place.parsed(place.absent, context)
            return None if self.default is MISSING else self.default
        values = [place.parsed(each, context) for each in _found(body, place.steps)]
        if any(each != values[0] for each in values):
            raise Unfit(f"different values of {place.text}: {', '.join(map(str, dict.fromkeys(values)))}")
        value = values[0] if values else place.parsed(place.steps[-1].default, context)
        return None if self.wire.blank_is_null and value == "" else value


@dataclass(frozen=True, slots=True)
class _Level:
    """The message itself, its list that has rows, or a list in the elements of the level before."""

    steps: _Steps
    """To the list; empty: the message itself."""
    columns: tuple[tuple[int, _Place], ...]
    """With their numbers in a row."""


@dataclass(frozen=True, slots=True)
class _Rows(_Field):
    """A tuple: a row has a part for each place."""

    is_nullable: bool
    is_single: bool
    """A row is a value, and no tuple."""
    levels: tuple[_Level, ...]
    absent: tuple[Any, ...]
    """A row of an empty element."""

    def put(self, body: dict[str, Any], rows: Any, context: Context) -> None:
        first = next((each for each in self.columns if each.steps), None)
        if first is None:
            return self.refuse_absent(self.columns[0], rows or None)
        if rows is None:
            nullable = next((at for at, step in enumerate(first.steps) if step.nullable), None)
            if nullable is not None:
                _put(body, (*first.steps[:nullable], replace(first.steps[nullable], rows="")), None)
            return
        _check_values(self.columns, context)
        if len(self.levels) > 1:
            _list(body, self.levels[1].steps)
        elif len(rows) != 1:
            raise Inexpressible(f"{self.where} has one {first.text}, and not {len(rows)}")
        groups: dict[Any, Any] = {}
        for row in rows:
            given = iter((row,) if self.is_single else row)
            self._put_row(
                body, [context.named[each.name] if each.name else next(given) for each in self.columns], groups, context
            )

    def _put_row(self, body: dict[str, Any], row: list[Any], groups: dict[Any, Any], context: Context) -> None:
        """``groups``: the elements of lists that have lists, by the parts of their rows."""
        element, key = body, tuple[Any, ...]()
        for level in self.levels:
            if level.steps:
                rows, is_last = _list(element, level.steps), level is self.levels[-1]
                key = (*key, *(row[at] for at, _ in level.columns))
                if is_last and not level.columns[0][1].tail:
                    return rows.append(level.columns[0][1].written(row[level.columns[0][0]], context))
                element = {} if is_last else groups.get(key, {})
                if is_last or key not in groups:
                    groups[key] = element
                    rows.append(element)
            for at, place in level.columns:
                if row[at] is not None or place.tail[-1].nullable:
                    _put(element, place.tail, place.written(row[at], context))
        for place, value in zip(self.columns, row, strict=True):
            if not place.steps:
                self.refuse_absent(place, value)

    def get(self, body: Mapping[str, Any], context: Context) -> Any:
        if not any(each.steps for each in self.columns):
            return () if self.default is MISSING else self.default
        rows = [*self._read(body, 0, self.absent, context)]
        if None in rows:
            return None if self.is_nullable else ()
        found = [
            tuple(value for value, place in row if not place.name)
            for row in (tuple(zip(each, self.columns, strict=True)) for each in rows if each is not None)
            if all(value == context.named[place.name] for value, place in row if place.name)
        ]
        values = [row[0] for row in found] if self.is_single else found
        return tuple(sorted(values) if self.wire.is_sorted else values)

    def _read(self, element: Any, depth: int, known: Sequence[Any], context: Context) -> Iterator[Sequence[Any] | None]:
        """The rows; None for a null list."""
        row = [*known]
        for at, place in self.levels[depth].columns:
            row[at] = place.parsed(next(_found(element, place.tail)), context)
        if depth + 1 == len(self.levels):
            yield row
            return
        for inner in _found(element, self.levels[depth + 1].steps):
            if inner is None:
                yield None
            else:
                yield from self._read(inner, depth + 1, row, context)


@dataclass(frozen=True, slots=True)
class _Form:
    """A class at one version of its message."""

    made: type
    layout: Layout
    fields: tuple[_Scalar | _Rows, ...]
    others: tuple[_Place, ...]
    has_version: bool

    def written(self, value: Any, context: Context, repeated: Mapping[str, Any]) -> dict[str, Any]:
        body: dict[str, Any] = {}
        for place in self.others:
            if place.steps:
                self._put_other(body, place, context)
        for each in self.fields:
            if repeated and isinstance(each, _Scalar) and each.columns[0].loops:
                body |= _repeated(self.layout, repeated)
            each.put(body, getattr(value, each.name), context)
        return body

    def _put_other(self, body: dict[str, Any], place: _Place, context: Context) -> None:
        if place.name == NULL and not place.steps[-1].nullable:
            raise Inexpressible(f"{self.layout.message} v{self.layout.version} has no null for {place.text}")
        _put(body, place.steps, None if place.name == NULL else context.named[place.name])

    def parsed(self, body: Mapping[str, Any], context: Context, others: Mapping[str, Any]) -> Any:
        version = {"version": self.layout.version} if self.has_version else {}
        return self.made(**version, **others, **{each.name: each.get(body, context) for each in self.fields})


def _repeated(layout: Layout, request: Mapping[str, Any]) -> dict[str, Any]:
    """The lists of a request that its answer has too, with what both have in their elements."""
    found: dict[str, Any] = {}
    for slot in layout.slots:
        value = request.get(slot.name)
        if slot.item is None and value is not None:
            found[slot.name] = value
        elif slot.item is not None and isinstance(value, list):
            found[slot.name] = [_repeated(slot.item, each) for each in value]
    return found


_FORMS: Final[dict[tuple[type, Layout], _Form]] = {}


def _form(made: type, layout: Layout) -> _Form:
    found = _FORMS.get((made, layout))
    if found is None:
        found = _FORMS[made, layout] = _made_form(made, layout)
    return found


def _made_form(made: Any, layout: Layout) -> _Form:
    hints = get_type_hints(made, include_extras=True)
    found: list[_Scalar | _Rows] = []
    for each in fields(made):
        wires = [extra for extra in getattr(hints[each.name], "__metadata__", ()) if isinstance(extra, Wire)]
        if wires:
            found.append(_field(each.name, each.default, hints[each.name], wires[-1], layout))
    others = tuple(_place(each, layout, None) for each in getattr(made, _MESSAGE, ("", ()))[1])
    has_version = any(each.name == "version" for each in fields(made))
    return _Form(made, layout, tuple(found), others, has_version)


def _field(name: str, default: Any, annotation: Any, wire: Wire, layout: Layout) -> _Scalar | _Rows:
    form, is_nullable = _stripped(annotation)
    where = f"{layout.message} v{layout.version}"
    if get_origin(form) is not tuple:
        item = form if isinstance(form, type) and is_dataclass(form) else None
        return _Scalar(name, default, (_place(wire.places[0], layout, item),), wire, where)
    row, _ = _stripped(get_args(form)[0])
    item = row if isinstance(row, type) and is_dataclass(row) else None
    columns = tuple(_place(each, layout, item) for each in wire.places)
    loops = ((), *max((each.loops for each in columns), key=len))
    present = [(at, each) for at, each in enumerate(columns) if each.steps]
    levels = tuple(
        _Level(steps, tuple(each for each in present if len(each[1].loops) == depth))
        for depth, steps in enumerate(loops)
    )
    absent = tuple(None if each.absent is MISSING else each.absent for each in columns)
    return _Rows(name, default, columns, wire, where, is_nullable, get_origin(row) is not tuple, levels, absent)


def _stripped(annotation: Any) -> tuple[Any, bool]:
    """The type without notes and null, and whether it may be null."""
    if get_origin(annotation) is Annotated:
        return _stripped(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        present = [each for each in get_args(annotation) if each is not NoneType]
        return _stripped(present[0])[0], len(present) < len(get_args(annotation))
    return annotation, False
