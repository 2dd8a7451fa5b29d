"""Frozen dataclasses that are read from JSON objects and written as the same objects, key by key.

A subclass of ``Record`` declares each key once, as an annotated field. This module derives from the annotations how an
object is read and checked; ``core.ledger.schema`` derives the JSON Schema from them.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    Self,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

Json: TypeAlias = dict[str, Any]
Read: TypeAlias = Callable[[Any, str], Any]
"""Converts a value of JSON; the text is the path of the value, for errors."""
KEY: Final = "key"
"""In the metadata of a field: its key in JSON, where that is not the name of the field."""
LENIENT: Final = "lenient"
"""In the metadata of a field: the schema requires the key, but an object without it is read, with the default."""
NULLABLE: Final = "nullable"
"""In the metadata of an optional field: the key may be there and null, which means the same as no key."""
WRITTEN: Final = "written"
"""In the metadata of an optional field: None is written as null."""
UNDECLARED: Final = "undeclared"
"""In the metadata of a field: the key is written, but the schema does not list it."""


class Malformed(ValueError):
    """A JSON object does not have the form of its record. The message names the key and what is expected there."""


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The least integer that is allowed, in ``Annotated``."""

    least: int


@dataclass(frozen=True, slots=True)
class OneOf:
    """The texts that are allowed, in ``Annotated``. Reading takes others too: a later release may have more."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Requires:
    """A key that an object without declared keys must have, in ``Annotated``."""

    key: str


@dataclass(frozen=True, slots=True)
class About:
    """What a value means, in ``Annotated``: for a type that stands in several fields."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A JSON object with declared keys."""

    closed: ClassVar[bool] = True
    """Whether the schema refuses keys that are not declared. Reading keeps them in ``others`` in both cases."""

    keys: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """The keys that are written, in this order; empty: those of the fields, without optional ones that are None."""
    others: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Keys that are not declared, as a later release may write them, and their values."""

    @property
    def present(self) -> tuple[str, ...]:
        """The keys that are written, in their order."""
        return self.keys or tuple(
            each.key for each in form(type(self)) if each.written or getattr(self, each.name) is not None
        )

    @property
    def plain(self) -> Json:
        """The JSON object."""
        names = _names(type(self))
        return {key: plain(getattr(self, names[key])) if key in names else self.others[key] for key in self.present}

    def update(self, **values: Any) -> Self:
        """The same with other values, which are written even if they are None; new keys come last."""
        keys = {each.name: each.key for each in form(type(self))}
        return replace(self, keys=tuple(dict.fromkeys((*self.present, *(keys[name] for name in values)))), **values)

    def without(self, *names: str) -> Self:
        """The same without these optional fields."""
        by_name = {each.name: each for each in form(type(self))}
        gone = {by_name[name].key for name in names}
        keys = tuple(key for key in self.present if key not in gone)
        return replace(self, keys=keys, **{name: by_name[name].default for name in names})

    def shared(self, kind: "type[Record]") -> Json:
        """The fields that are written and that ``kind`` has too, by name."""
        names = _names(kind)
        return {names[key]: getattr(self, names[key]) for key in self.present if key in names}

    @classmethod
    def of(cls, found: Any, at: str = "", blank: bool = False) -> Self:
        """Reads a JSON object. ``blank``: keys that are missing are read as empty texts, lists and so on.

        Errors: ``Malformed``, with the path of the value behind ``at``.
        """
        if not isinstance(found, Mapping):
            raise Malformed(f"{at or 'it'} must be an object, got {brief(found)}")
        values: Json = {}
        for each in form(cls):
            if each.key in found:
                values[each.name] = each.read(found[each.key], f"{at}{'.' if at else ''}{each.key}")
            elif each.default is not MISSING:
                values[each.name] = each.default
            elif blank:
                values[each.name] = each.blank
            else:
                raise Malformed(f"{at}{'.' if at else ''}{each.key} is missing")
        names = _names(cls)
        values["others"] = {key: value for key, value in found.items() if key not in names}
        made = cls(**values)
        keys = tuple(found)
        return made if made.present == keys else replace(made, keys=keys)


@dataclass(frozen=True, slots=True)
class Key:
    """A declared key of a record."""

    name: str
    """Of the field."""
    key: str
    hint: Any
    required: bool
    """Whether the schema requires it."""
    declared: bool
    """Whether the schema lists it."""
    written: bool
    """Whether it is written even if it is None."""
    default: Any
    """For an object without the key; MISSING: such an object cannot be read."""
    blank: Any
    read: Read


_FORMS: Final[dict[type[Record], tuple[Key, ...]]] = {}
_NAMES: Final[dict[type[Record], Mapping[str, str]]] = {}


def form(kind: type[Record]) -> tuple[Key, ...]:
    """The declared keys of a record, in the order in which they are written."""
    if (found := _FORMS.get(kind)) is not None:
        return found
    hints = get_type_hints(kind, include_extras=True)
    _FORMS[kind] = found = tuple(
        _key(each, hints[each.name]) for each in fields(kind) if each.name not in ("keys", "others")
    )
    return found


def _key(each: Field[Any], hint: Any) -> Key:
    default = each.default if each.default_factory is MISSING else each.default_factory()
    required = default is MISSING or LENIENT in each.metadata
    declared = UNDECLARED not in each.metadata
    key = each.metadata.get(KEY, each.name)
    written = required or WRITTEN in each.metadata
    return Key(each.name, key, hint, required, declared, written, default, _blank(hint), _reader(hint))


def _names(kind: type[Record]) -> Mapping[str, str]:
    """Key -> name of the field."""
    if (found := _NAMES.get(kind)) is None:
        _NAMES[kind] = found = {each.key: each.name for each in form(kind)}
    return found


def plain(value: Any) -> Any:
    """A value of a record as JSON."""
    if isinstance(value, Record):
        return value.plain
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value


def brief(found: object) -> str:
    """A value for an error message, shortened."""
    text = repr(found)
    return text if len(text) <= 80 else f"{text[:80]}..."


def bare(hint: Any) -> Any:
    """Without the annotations of ``Annotated``."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def members(hint: Any) -> tuple[Any, ...]:
    """The types of a union; of any other type itself alone."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


# ---- reading

_SCALARS: Final[Mapping[Any, tuple[tuple[type, ...], str]]] = {
    str: ((str,), "a text"),
    int: ((int,), "an integer"),
    float: ((int, float), "a number"),
    bool: ((bool,), "true or false"),
}


def _reader(hint: Any) -> Read:
    hint = bare(hint)
    several = members(hint)
    if NoneType in several:
        return _nullable(_reader(reduce(or_, (each for each in several if each is not NoneType))))
    if len(several) > 1:
        return _one_of(several)
    if hint is Any:
        return lambda found, _: found
    origin, within = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _reader(type(within[0]))
    if origin is tuple:
        return _list(_reader(within[0]), None if within[-1] is Ellipsis else len(within))
    if origin is not None and issubclass(origin, Mapping):
        return _object(_reader(within[1]))
    if issubclass(hint, Record):
        return lambda found, at: hint.of(found, at)
    return _scalar(*_SCALARS[hint])


def _scalar(kinds: tuple[type, ...], wanted: str) -> Read:
    def read(found: Any, at: str) -> Any:
        if not isinstance(found, kinds) or (isinstance(found, bool) and bool not in kinds):
            raise Malformed(f"{at} must be {wanted}, got {brief(found)}")
        return found

    return read


def _nullable(within: Read) -> Read:
    return lambda found, at: None if found is None else within(found, at)


def _list(within: Read, length: int | None) -> Read:
    def read(found: Any, at: str) -> Any:
        if not isinstance(found, list | tuple) or length not in (None, len(found)):
            of = "" if length is None else f" of {length}"
            raise Malformed(f"{at} must be a list{of}, got {brief(found)}")
        return tuple(within(each, f"{at}[{number}]") for number, each in enumerate(found))

    return read


def _object(within: Read) -> Read:
    def read(found: Any, at: str) -> Any:
        if not isinstance(found, Mapping):
            raise Malformed(f"{at} must be an object, got {brief(found)}")
        return {key: within(each, f"{at}.{key}") for key, each in found.items()}

    return read


def _one_of(kinds: tuple[type[Record], ...]) -> Read:
    """Records that their key ``kind`` tells apart."""
    by_kind = {get_args(bare(get_type_hints(each)["kind"]))[0]: each for each in kinds}

    def read(found: Any, at: str) -> Any:
        kind = found.get("kind") if isinstance(found, Mapping) else None
        if not isinstance(kind, str) or kind not in by_kind:
            return found  # of a later release: reports pass over it
        return by_kind[kind].of(found, at)

    return read


def _blank(hint: Any) -> Any:
    hint = bare(hint)
    if hint is Any or NoneType in members(hint):
        return None
    origin = get_origin(hint)
    if origin is Literal:
        return get_args(hint)[0]
    if origin is tuple:
        return ()
    if origin is not None and issubclass(origin, Mapping):
        return {}
    return hint() if hint in _SCALARS else None
