"""Frozen dataclasses that are read from JSON objects and written as the same objects, key by key.

A subclass of ``Record`` declares each key once, as an annotated field. This module derives from the annotations how an
object is read and checked; ``core.ledger.schema`` derives the JSON Schema from them.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import Any, ClassVar, Final, Self, TypeAlias, get_type_hints

from kipcheck.conformance.core.operations.field_kinds import Kind, kind_of, read_at, without_form

Json: TypeAlias = dict[str, Any]
KEY: Final = "key"
"""In the metadata of a field: its key in JSON, where that is not the name of the field."""
LENIENT: Final[Mapping[str, bool]] = {"lenient": True}
"""Metadata of a field: the schema requires the key, but an object without it is read, with the default."""
NULLABLE: Final[Mapping[str, bool]] = {"nullable": True}
"""Metadata of an optional field: the key may be there and null, which means the same as no key."""
WRITTEN: Final[Mapping[str, bool]] = {"written": True}
"""Metadata of an optional field: None is written as null."""
UNDECLARED: Final[Mapping[str, bool]] = {"undeclared": True}
"""Metadata of a field: the key is written, but the schema does not list it."""
RECORD: Final = "record"
"""In the schema of a kind: the class of its records, whose schema stands there in a file."""


class Malformed(ValueError):
    """A JSON object does not have the form of its record. The message names the key and what is expected there."""


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
            each.key for each in keys_of(type(self)).values() if each.written or getattr(self, each.name) is not None
        )

    @property
    def plain(self) -> Json:
        """The JSON object."""
        known = keys_of(type(self))
        return {
            key: known[key].kind.plain(getattr(self, known[key].name)) if key in known else self.others[key]
            for key in self.present
        }

    def update(self, **values: Any) -> Self:
        """The same with other values, which are written even if they are None; new keys come last."""
        keys = {each.name: each.key for each in keys_of(type(self)).values()}
        return replace(self, keys=tuple(dict.fromkeys((*self.present, *(keys[name] for name in values)))), **values)

    def without(self, *names: str) -> Self:
        """The same without these optional fields."""
        by_name = {each.name: each for each in keys_of(type(self)).values()}
        gone = {by_name[name].key for name in names}
        keys = tuple(key for key in self.present if key not in gone)
        return replace(self, keys=keys, **{name: by_name[name].default for name in names})

    def shared(self, kind: "type[Record]") -> Json:
        """The fields that are written and that ``kind`` has too, by name."""
        known = keys_of(kind)
        return {known[key].name: getattr(self, known[key].name) for key in self.present if key in known}

    @classmethod
    def of(cls, found: Any, blank: bool = False) -> Self:
        """Reads a JSON object. ``blank``: keys that are missing are read as empty texts, lists and so on.

        Errors: ``Malformed``, with the path of the value.
        """
        try:
            return cls._of(found, blank)
        except TypeError as wrong:
            raise Malformed(shortened(str(wrong).removeprefix(": ").removeprefix("."), 200)) from None

    @classmethod
    def _of(cls, found: Any, blank: bool = False) -> Self:
        """Errors: TypeError, as kinds of fields raise it."""
        if not isinstance(found, Mapping):
            raise TypeError(f": must be an object, got {found!r}")
        values: Json = {}
        known = keys_of(cls)
        for each in known.values():
            if each.key in found:
                values[each.name] = read_at(f".{each.key}", each.kind, found[each.key])
            elif each.default is not MISSING or blank:
                values[each.name] = each.blank if each.default is MISSING else each.default
            else:
                raise TypeError(f": the field {each.key} is missing")
        values["others"] = {key: value for key, value in found.items() if key not in known}
        made = cls(**values)
        keys = tuple(found)
        return made if made.present == keys else replace(made, keys=keys)

    @classmethod
    def kind_in_json(cls) -> Kind:
        return Kind("object", {RECORD: cls}, cls._of, plain, without_form(cls.__name__))


@dataclass(frozen=True, slots=True)
class Key:
    """A declared key of a record."""

    name: str
    """Of the field."""
    key: str
    hint: Any
    kind: Kind
    required: bool
    """Whether the schema requires it."""
    declared: bool
    """Whether the schema lists it."""
    written: bool
    """Whether it is written even if it is None."""
    default: Any
    """For an object without the key; MISSING: such an object cannot be read."""

    @property
    def blank(self) -> Any:
        """Nothing, as a value of the field."""
        if self.kind.nullable:
            return None
        return {"integer": 0, "number": 0.0, "boolean": False, "array": (), "object": {}}.get(
            self.kind.schema.get("type", ""), ""
        )


_FORMS: Final[dict[type[Record], Mapping[str, Key]]] = {}


def keys_of(kind: type[Record]) -> Mapping[str, Key]:
    """The declared keys of a record, in the order in which they are written."""
    if (found := _FORMS.get(kind)) is None:
        hints = get_type_hints(kind, include_extras=True)
        keys = (_key(each, hints[each.name]) for each in fields(kind) if each.name not in ("keys", "others"))
        _FORMS[kind] = found = {each.key: each for each in keys}
    return found


def _key(each: Field[Any], hint: Any) -> Key:
    default = each.default if each.default_factory is MISSING else each.default_factory()
    required = default is MISSING or "lenient" in each.metadata
    declared = "undeclared" not in each.metadata
    key = each.metadata.get(KEY, each.name)
    return Key(each.name, key, hint, kind_of(hint), required, declared, required or "written" in each.metadata, default)


def plain(value: Any) -> Any:
    """A value of a record as JSON."""
    if isinstance(value, Record):
        return value.plain
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value


def one_of_records(name: str, *kinds: type[Record]) -> Kind:
    """Records that their key ``kind`` distinguishes; ``name``: that of their definition in the schema.

    Those of a later release stay as they are: reports pass over them.
    """
    by_kind = {each.__dataclass_fields__["kind"].default: each for each in kinds}

    def read(found: Any) -> Any:
        kind = found.get("kind") if isinstance(found, Mapping) else None
        return by_kind[kind]._of(found) if isinstance(kind, str) and kind in by_kind else found

    return Kind("object", {"$ref": f"#/$defs/{name}"}, read, plain, without_form(name))


def brief(found: object) -> str:
    """A value for an error message, shortened."""
    return shortened(repr(found), 80)


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."
