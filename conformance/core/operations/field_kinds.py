"""The types of the fields of operations: how each is read, written, described in JSON Schema, and put in shorthand.

A kind is derived from the annotation of a field: ``int``, ``float``, ``bool``, ``str``, ``Any``, an enum, a literal, a
tuple of one kind or of a fixed number of kinds, a mapping of texts, a dataclass or named tuple, and each or None.
A kind in an annotation, such as ``Annotated[str, one_of("a", "b")]``, is taken as it is; the last one, if there are
several. A class that reads and writes itself has ``kind_in_json``.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from enum import Enum
from operator import attrgetter
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

T = TypeVar("T")
Read: TypeAlias = Callable[[Any], Any]
"""A value of JSON -> the value of the field. Errors: TypeError with a path, a colon and the reason."""


@dataclass(frozen=True, slots=True)
class TextForm:
    """The form of a field in a template."""

    pattern: str
    """A regular expression without groups."""
    parse: Callable[[str], Any]
    print: Callable[[Any], str]
    usage: str = ""
    """The form, for people; empty: the name of the field, in capitals."""
    prints_json: bool = False
    """Whether ``print`` takes the value as JSON too: lists in place of tuples."""


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    words: str
    """For people: ``integer``."""
    schema: Mapping[str, Any]
    read: Read
    write: Callable[[Any], Any] | None
    """The value of a field -> a value of JSON; None: they are the same."""
    text: Callable[[str], TextForm]
    """The note behind a field's name in a template -> its form there. Errors: ValueError."""
    nullable: bool = False
    exact: frozenset[type] = frozenset()
    """The types of the values of JSON that are read as they are, whatever the value."""
    edges: tuple[Any, ...] = ()
    """Values of JSON at the bounds of the rules that read the field: see ``Edges``."""
    parts: tuple[tuple[str, "Kind"], ...] = ()
    """The kinds of its parts: by name of those of an object, by index of a row, and ``[]`` of the items of a list."""

    def fits(self, found: Any) -> bool:
        try:
            self.read(found)
        except TypeError:
            return False
        return True

    def plain(self, value: Any) -> Any:
        return value if self.write is None else self.write(value)

    def printed_by(self, text: Callable[[Any], str]) -> "Kind":
        """The same kind with this form in templates, which cannot be parsed."""
        form = TextForm(NOTHING, str, text)
        return replace(self, text=lambda note: form)


@dataclass(frozen=True, slots=True)
class Edges:
    """``edges(...)``: values at the bounds of the rules that read the field, in JSON.

    A default case has each of them, and every flag, choice, null and typical value: ``tests/strategies/test_edges.py``.
    """

    values: tuple[Any, ...]


def edges(*values: Any) -> Edges:
    return Edges(values)


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """``schema(minimum=0)``: what JSON Schema states of a field besides its type. Reading does not require it."""

    words: Mapping[str, Any]

    def over(self, kind: Kind) -> Kind:
        """The kind with this schema: descriptions come first, and values that are listed take the place of a type."""
        others = {key: each for key, each in self.words.items() if key != "description"}
        about = {key: each for key, each in self.words.items() if key == "description"}
        is_listed = "enum" in others or "const" in others
        return replace(kind, schema={**about, **(others if is_listed else {**kind.schema, **others})})


def schema(**words: Any) -> Schema:
    return Schema(words)


def described(text: str) -> Schema:
    return Schema({"description": text})


NOTHING = "(?!)"
"""A pattern that matches no text."""


def one_of(*names: str) -> Kind:
    """The kind of these texts."""
    return _choice({each: each for each in names})


def kind_of(annotation: Any) -> Kind:
    """Errors: TypeError for an annotation that has no kind."""
    options = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    present = [each for each in options if each is not NoneType]
    if len(present) != 1:
        raise TypeError(f"{annotation} is no kind of field")
    kind = _present(present[0])
    return _nullable(kind) if NoneType in options else kind


def _present(annotation: Any) -> Kind:
    if get_origin(annotation) is Annotated:
        given = [each for each in annotation.__metadata__ if isinstance(each, Kind)]
        found = given[-1] if given else kind_of(get_args(annotation)[0])
        for note in annotation.__metadata__:
            if isinstance(note, Schema):
                found = note.over(found)
        more = [value for each in annotation.__metadata__ if isinstance(each, Edges) for value in each.values]
        return replace(found, edges=(*found.edges, *more)) if more else found
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]
    if hasattr(annotation, "kind_in_json"):
        made: Kind = annotation.kind_in_json()
        return made
    if get_origin(annotation) is Literal:
        return _choice({each: each for each in get_args(annotation)})
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _choice({each.value: each for each in annotation})
    if get_origin(annotation) is tuple:
        items = get_args(annotation)
        return _listing(kind_of(items[0])) if items[1:] == (...,) else _row(tuple(map(kind_of, items)))
    if get_origin(annotation) is frozenset:
        listing = _listing(kind_of(get_args(annotation)[0]))
        return replace(listing, read=lambda found: frozenset(listing.read(found)), write=sorted)
    if get_origin(annotation) is not None and issubclass(get_origin(annotation), Mapping):
        key, item = get_args(annotation)
        return _table(key, kind_of(item))
    if is_dataclass(annotation) or hasattr(annotation, "_field_defaults"):
        return record(annotation)
    raise TypeError(f"{annotation} is no kind of field")


def _of_type(kinds: tuple[type, ...], words: str) -> Read:
    def read(found: Any) -> Any:
        if type(found) in kinds or (isinstance(found, kinds) and type(found) is not bool):
            return found
        raise TypeError(f": must be {words}, got {found!r}")

    return read


def _integer_text(note: str) -> TextForm:
    """Note ``-``: the negative of the number, with its sign; nothing for 0."""
    if note == "-":
        signed = lambda value: f"{-value:+d}" if value else ""
        return TextForm(r"(?:[+-]\d+)?", lambda text: -int(text or 0), signed, "[+N|-N]")
    return TextForm(r"-?\d+", int, str)


def _flag_text(note: str) -> TextForm:
    """The note if the flag is set, else nothing. Note ``loses|revokes``: one of the two texts."""
    if "|" in note:
        yes, no = note.split("|")
        return TextForm(f"{re.escape(yes)}|{re.escape(no)}", yes.__eq__, lambda value: yes if value else no, note)
    return TextForm(f"(?:{re.escape(note)})?", bool, lambda value: note if value else "", f"[{note}]")


def _plain_text(note: str) -> TextForm:
    """The note is the pattern; default: a word that begins with a letter."""
    return TextForm(note or r"[A-Za-z]\w*", str, str)


_SIMPLE: Mapping[Any, Kind] = {
    made: Kind(words, {"type": name}, _of_type(kinds, wanted), None, text, exact=frozenset(kinds))
    for made, kinds, words, name, wanted, text in (
        (int, (int,), "integer", "integer", "an integer", _integer_text),
        (float, (float, int), "number", "number", "a number", _plain_text),
        (bool, (bool,), "true or false", "boolean", "true or false", _flag_text),
        (str, (str,), "text", "string", "a string", _plain_text),
    )
} | {Any: Kind("any value", {}, lambda found: found, None, _plain_text)}


def _choice(values: Mapping[Any, Any]) -> Kind:
    plain = {value: each for each, value in values.items()}
    names = ", ".join(map(str, values))

    def read(found: Any) -> Any:
        if isinstance(found, str) and found in values:
            return values[found]
        raise TypeError(f": must be one of {names}, got {found!r}")

    def text(note: str) -> TextForm:
        """Note ``stay=beat,...``: other words for some of the values."""
        other = dict(each.split("=") for each in note.split(",") if each)
        words = {other.get(each, each): value for each, value in values.items()}
        printed = {value: word for word, value in words.items()}
        return TextForm("|".join(map(re.escape, words)), words.__getitem__, printed.__getitem__, "|".join(words))

    same = all(each is value for each, value in values.items())
    return Kind(f"one of {names}", {"enum": [*values]}, read, None if same else plain.__getitem__, text)


def _listing(item: Kind) -> Kind:
    exact, read_item, write_item = item.exact, item.read, item.write

    def read(found: Any) -> tuple[Any, ...]:
        if not isinstance(found, list | tuple):
            raise TypeError(f": must be a list, got {found!r}")
        try:
            return tuple([each if type(each) in exact else read_item(each) for each in found])
        except TypeError:
            return tuple(read_at(f"[{index}]", item, each) for index, each in enumerate(found))

    def text(note: str) -> TextForm:
        """The note separates the items."""
        form, separator = item.text(""), note or ","
        pattern = f"(?:{form.pattern})(?:{re.escape(separator)}(?:{form.pattern}))*"
        return TextForm(
            pattern,
            lambda text: tuple(map(form.parse, text.split(separator))),
            lambda value: separator.join(map(form.print, value)),
        )

    schema = {"type": "array", "items": item.schema}
    written = list if write_item is None else lambda value: [write_item(each) for each in value]
    return Kind(f"list of {item.words}", schema, read, written, text, parts=(("[]", item),))


def _row(items: tuple[Kind, ...]) -> Kind:
    words = f"[{', '.join(each.words for each in items)}]"
    size, readers = len(items), tuple((each.exact, each.read) for each in items)

    def read(found: Any) -> tuple[Any, ...]:
        if not isinstance(found, list | tuple) or len(found) != size:
            raise TypeError(f": must be {words}, got {found!r}")
        try:
            return tuple(
                [
                    each if type(each) in exact else read(each)
                    for each, (exact, read) in zip(found, readers, strict=True)
                ]
            )
        except TypeError:
            return tuple(
                read_at(f"[{index}]", kind, each) for index, (kind, each) in enumerate(zip(items, found, strict=True))
            )

    schema = {
        "type": "array", "prefixItems": [each.schema for each in items], "items": False, "minItems": len(items),
    }  # fmt: skip
    parts = tuple((str(at), each) for at, each in enumerate(items))
    if all(each.write is None for each in items):
        return Kind(words, schema, read, list, without_form(words), parts=parts)
    written = lambda value: [kind.plain(each) for kind, each in zip(items, value, strict=True)]
    return Kind(words, schema, read, written, without_form(words), parts=parts)


def read_at(path: str, kind: Kind, found: Any) -> Any:
    """Reads a value inside of another one. Errors: TypeError with the path of the value."""
    try:
        return found if type(found) in kind.exact else kind.read(found)
    except TypeError as wrong:
        raise TypeError(f"{path}{wrong}") from None


def _table(key_of: Callable[[Any], Any], item: Kind) -> Kind:
    """The kind of objects with any keys, which are texts or integers."""

    def read(found: Any) -> dict[Any, Any]:
        if not isinstance(found, Mapping):
            raise TypeError(f": must be an object, got {found!r}")
        return {key_of(key): read_at(f".{key}", item, each) for key, each in found.items()}

    write = item.write
    written = dict if write is None else lambda value: {key: write(each) for key, each in value.items()}
    schema = {"type": "object", **({"additionalProperties": item.schema} if item.schema else {})}
    return Kind(f"table of {item.words}", schema, read, written, without_form("table"), parts=())


def without_form(what: str) -> Callable[[str], TextForm]:
    """Of a kind whose values have no form in templates."""

    def text(note: str) -> TextForm:
        raise ValueError(f"{what} has no form in templates")

    return text


# Objects


class Part(Protocol):
    """A field of an object, as ``Field`` of ``field_annotations`` is one."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> Kind: ...

    @property
    def default(self) -> Any:
        """MISSING: an object cannot omit the field."""

    @property
    def optional(self) -> bool:
        """Whether an object that is written omits the field where it has its default."""


class _Part(NamedTuple):
    name: str
    kind: Kind
    default: Any
    optional: bool


def values_reader(
    parts: Sequence[Part], *, outer: bool = False, lenient: bool = False
) -> Callable[[Any], dict[str, Any]]:
    """Reads the values of the fields that an object has. Errors: TypeError with the path of the invalid one.

    ``outer``: the object has no path of its own. ``lenient``: it may have other fields, which are ignored.
    """
    kinds = {each.name: (each.kind.exact, each.kind.read) for each in parts}
    needed = tuple(each.name for each in parts if each.default is MISSING)
    dot, colon = ("", "") if outer else (".", ": ")

    def values(found: Any) -> dict[str, Any]:
        if type(found) is not dict and not isinstance(found, Mapping):
            raise TypeError(f"{colon}must be an object, got {found!r}")
        given = {}
        for name, value in found.items():
            if name in kinds:
                exact, read = kinds[name]
                try:
                    given[name] = value if type(value) in exact else read(value)
                except TypeError as wrong:
                    raise TypeError(f"{dot}{name}{wrong}") from None
            elif not lenient:
                raise TypeError(f"{colon}unknown field {name}: the fields are {', '.join(kinds) or 'none'}")
        for name in needed:
            if name not in given:
                raise TypeError(f"{colon}the field {name} is missing")
        return given

    return values


def reader(made: Any, parts: Sequence[Part], *, outer: bool = False, lenient: bool = False) -> Read:
    """Reads an object as a value of the class ``made``. Errors and options: as ``values_reader``."""
    values = values_reader(parts, outer=outer, lenient=lenient)
    usual = tuple((each.name, each.kind.exact, each.kind.read) for each in parts if lenient or not each.optional)
    size, names = len(usual), tuple(name for name, _, _ in usual)
    is_positional = _names_of(made)[:size] == names

    def read(found: Any) -> Any:
        try:
            if lenient or len(found) == size:
                given = [value if type(value := found[name]) in exact else read(value) for name, exact, read in usual]
                return made(*given) if is_positional else made(**dict(zip(names, given, strict=True)))
        except (KeyError, TypeError):
            pass  # which field it is, is found below
        return made(**values(found))

    return read


def writer(parts: Sequence[Part], *, whole: bool = False) -> Callable[[Any], dict[str, Any]]:
    """Writes the fields of a value as an object. ``whole``: those too that are optional and have their default."""
    names = tuple(each.name for each in parts)
    omitted = () if whole else tuple((each.name, each.default) for each in parts if each.optional)
    if len(names) > 1 and not omitted and all(each.kind.write is None for each in parts):
        values = attrgetter(*names)
        return lambda value: dict(zip(names, values(value), strict=True))
    writers = tuple((each.name, each.kind.write) for each in parts)

    def written(value: Any) -> dict[str, Any]:
        plain = {}
        for name, write in writers:
            part = getattr(value, name)
            plain[name] = part if write is None else write(part)
        for name, default in omitted:
            if getattr(value, name) == default:
                del plain[name]
        return plain

    return written


def _names_of(made: Any) -> tuple[str, ...]:
    """The fields of a dataclass or named tuple, in the order of its arguments."""
    return tuple(each.name for each in fields(made) if not each.kw_only) if is_dataclass(made) else made._fields


def record(
    made: Any,
    *,
    kinds: Mapping[str, Kind] | None = None,
    without: tuple[str, ...] = (),
    omitted: tuple[str, ...] = (),
    lenient: bool = False,
) -> Kind:
    """The kind of a dataclass or named tuple: an object with its fields, which may omit those that have a default.

    ``kinds``: those of some fields. ``without``: fields that have a default, and that the object has not.
    ``omitted``: fields that it has not where they have their default. ``lenient``: it may have others, which are
    ignored.
    """
    hints, given = get_type_hints(made, include_extras=True), kinds or {}
    if is_dataclass(made):
        defaults = {each.name: _default(each) for each in fields(made)}
    else:
        defaults = {name: made._field_defaults.get(name, MISSING) for name in made._fields}
    parts = [
        _Part(name, given.get(name) or kind_of(hints[name]), default, name in omitted)
        for name, default in defaults.items()
        if name not in without
    ]

    schema = {
        "type": "object",
        "properties": {each.name: each.kind.schema for each in parts},
        "required": [each.name for each in parts if each.default is MISSING],
    }
    inside = tuple((each.name, each.kind) for each in parts)
    text = without_form(made.__name__)
    return Kind("object", schema, reader(made, parts, lenient=lenient), writer(parts), text, parts=inside)


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _nullable(kind: Kind) -> Kind:
    read, write = kind.read, kind.write

    def read_or_none(found: Any) -> Any:
        return None if found is None else read(found)

    schema = dict(kind.schema)
    if "enum" in schema:
        schema["enum"] = [*schema["enum"], None]
    elif "type" in schema:
        schema["type"] = [schema["type"], "null"]
    else:
        schema = {"anyOf": [schema, {"type": "null"}]}
    written = None if write is None else lambda value: None if value is None else write(value)
    return replace(
        kind, words=f"{kind.words}, or null", schema=schema, read=read_or_none, write=written, nullable=True,
        exact=kind.exact | {NoneType},
    )  # fmt: skip


_CLASSES: dict[type, Kind] = {}


def kind_of_class(made: type) -> Kind:
    """The kind of a dataclass or named tuple, which is made once."""
    if (found := _CLASSES.get(made)) is None:
        found = _CLASSES[made] = kind_of(made)
    return found


def to_json(value: Any) -> Any:
    """A dataclass or named tuple as JSON."""
    return kind_of_class(type(value)).plain(value)


def from_json(made: type[T], found: Any) -> T:
    """Reads what ``to_json`` wrote. Errors: TypeError with the path of an invalid value."""
    try:
        value: T = kind_of_class(made).read(found)
    except TypeError as wrong:
        raise TypeError(str(wrong).removeprefix(": ").removeprefix(".")) from None
    return value
