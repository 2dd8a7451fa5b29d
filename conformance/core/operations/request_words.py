"""The shorthand of requests: ``join a v9 as i lists=p:x session=6000``: a word, the client, and options in any order.

A form is declared as text: ``join {actor} {member:id=} {instance:as} {version:v} {nameless} {offsets*}``. An option is
``key=VALUE``, ``key VALUE``, a key and a number, or the name of a flag that is set; each other word is an item of the
field with a star. An option is left out where its field has its default, which may depend on the other fields.

The form of an event has no client: ``words("open {assignors!} {instance:as=}")``. A field with an exclamation mark is
the first word, which a text may leave out if the form has a default of its own. With two stars, all other words are
the text of one value.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.operations.field_kinds import Kind, TextForm

ACTOR: Final = "actor"
WORD: Final = "word"
NEWEST: Final = "newest"
Fields: TypeAlias = dict[str, Any]
Default: TypeAlias = "Callable[[Fields, Mapping[str, Any]], Any] | Any"
"""A value, or a function of the context (word, actor and newest version) and of the fields in front of it."""
PART: Final = re.compile(r"\{(?P<name>\w+)(?P<items>\*{0,2}|!)(?::(?P<key>[a-z]+=?))?\}")
FIRST: Final = "!"
WHOLE: Final = "**"
EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})
NONE: Final = "none"
"""No items, or null where the default is another value."""
KEYWORD: Final = "as"
"""The option whose value is the next word."""


@dataclass(frozen=True)
class WordOption:
    name: str
    key: str
    """``id=``, ``as``, ``v``; empty: of a field with items."""
    form: TextForm
    kind: Kind
    default: Default
    whole: bool
    """Its text is that of all items, and not of one."""
    is_flag: bool

    def absent(self, context: Fields, given: Mapping[str, Any]) -> Any:
        return self.default(context, given) if callable(self.default) else self.default

    @property
    def may_be_none(self) -> bool:
        return self.kind.nullable and self.default is not None

    def value(self, text: str) -> Any:
        return None if text == NONE and self.may_be_none else self.form.parse(text)

    def of_items(self, words: list[str]) -> Any:
        if self.whole:
            return self.form.parse(" ".join(words))
        return tuple(map(self.form.parse, words)) if words != [NONE] else ()

    @property
    def usage(self) -> str:
        if self.is_flag:
            return self.key
        return f"{self.key}{self.name.upper()}" if self.key else f"{self.name.upper()} ..."

    @cached_property
    def text(self) -> Callable[[Any], str]:
        """A value that is not the default -> its words."""
        return _text_of(self, lambda value: value)

    @cached_property
    def json_text(self) -> Callable[[Any], str]:
        """The same for the value as JSON, behind a space."""
        return _text_of(self, (lambda value: value) if self.form.prints_json else self.kind.read, " ")


def _text_of(option: WordOption, read: Callable[[Any], Any], before: str = "") -> Callable[[Any], str]:
    key, write = option.key, option.form.print
    if option.is_flag:
        return lambda value: f"{before}{key}"
    if option.whole:
        return lambda value: f"{before}{write(read(value))}"
    if not key:
        return lambda value: before + (" ".join(map(write, read(value))) or NONE)
    prefix = f"{before}{key} " if key == KEYWORD else f"{before}{key}"
    if write is str:
        return lambda value: f"{prefix}{NONE if value is None else value}"
    return lambda value: f"{prefix}{NONE if value is None else write(read(value))}"


class Words:
    """A word, and options in any order."""

    def __init__(
        self,
        word: str,
        parts: list[str],
        kinds: Mapping[str, Kind],
        defaults: Mapping[str, Default],
        forms: Mapping[str, TextForm],
    ) -> None:
        """``forms``: of fields whose kind has none, or another one; of one item, where the field has a star."""
        self.word = word
        found = [each for part in parts if (each := PART.fullmatch(part))]
        self.options = tuple(_option(each, kinds, defaults, forms) for each in found)
        self._by_key = {each.key: each for each in self.options if each.key}
        self._items = next((each for each in self.options if not each.key), None)

    @cached_property
    def _in_order(self) -> tuple[tuple[str, Any, Callable[..., Any] | None], ...]:
        """The fields with their defaults; those whose default is a function last."""
        found = [(each.name, each.default, each.default if callable(each.default) else None) for each in self.options]
        return tuple(sorted(found, key=lambda each: each[2] is not None))

    def _of_kind(self, option: WordOption, value: Any) -> Any:
        """A value as the fields that are read have it."""
        return value

    def _reader(self, option: WordOption) -> Callable[[str], Any]:
        return option.value if option.may_be_none else option.form.parse

    @cached_property
    def _readers(self) -> Mapping[str, tuple[str, bool, Callable[[str], Any]]]:
        """By the key: the field, whether it is a flag, and what reads the text."""
        return {key: (each.name, each.is_flag, self._reader(each)) for key, each in self._by_key.items()}

    def _given(self, words: Iterable[str]) -> Fields:
        """The fields that the words name. Errors: ValueError."""
        given: Fields = {}
        items: list[str] = []
        readers, following = self._readers, iter(words)
        for word in following:
            key, equals, text = word.partition("=")
            if equals:
                found = readers.get(f"{key}=")
            elif word in readers:
                found = readers[word]
                text = "" if found[1] else next(following, "")
            elif word[1:].isdecimal():
                found, text = readers.get(word[0]), word[1:]
            else:
                found = None
            if found is None:
                items.append(word)
            else:
                name, is_flag, read = found
                given[name] = True if is_flag else read(text)
        if items and self._items is None:
            raise ValueError(f"unexpected {', '.join(items)}")
        if items and self._items is not None:
            given[self._items.name] = self._of_kind(self._items, self._items.of_items(items))
        return given

    def _read(self, words: Iterable[str], context: Fields) -> Fields:
        """All fields. Errors: ValueError."""
        given = self._given(words)
        for name, default, function in self._in_order:
            if name not in given:
                given[name] = default if function is None else function(context, given)
        return given

    def _is_option(self, word: str) -> bool:
        """Whether an option begins with the word."""
        key, equals, _ = word.partition("=")
        if equals:
            return f"{key}=" in self._by_key
        return word in self._by_key or (word[1:].isdecimal() and word[0] in self._by_key)


class RequestWords(Words):
    """One form of a request."""

    def __init__(
        self,
        text: str,
        kinds: Mapping[str, Kind],
        defaults: Mapping[str, Default],
        forms: Mapping[str, TextForm],
        omitted: Collection[str],
    ) -> None:
        """``kinds``: in the order of the fields in a step. ``omitted``: the fields that a step lacks where they have
        their default, which is a value."""
        self.text = text
        word, actor, *parts = text.split()
        super().__init__(word, parts, kinds, defaults, forms)
        self._kinds = kinds
        self._omitted = omitted
        self.first = "" if actor == "{actor}" else actor.removeprefix("{actor=").removesuffix("}")
        """The client that a text may leave out; empty: it may not."""

    def default(self, name: str) -> Any:
        """The default of a field without other fields."""
        found = next(each for each in self.options if each.name == name)
        return found.absent({WORD: self.word, ACTOR: self.first, NEWEST: None}, {})

    def _of_kind(self, option: WordOption, value: Any) -> Any:
        return option.kind.plain(value)

    def _reader(self, option: WordOption) -> Callable[[str], Any]:
        value, write = super()._reader(option), option.kind.write
        return value if write is None else lambda text: write(value(text))

    @cached_property
    def _usual(self) -> Fields:
        """The fields in the order of the class, with those defaults as JSON that steps may share."""
        found = {each.name: each for each in self.options}
        return {
            name: None if callable(found[name].default) else kind.plain(found[name].default)
            for name, kind in self._kinds.items()
        }

    @cached_property
    def _made(self) -> tuple[tuple[str, Callable[..., Any]], ...]:
        """The fields whose default is made for each step: a list, or what a function gives, which come last."""
        lists = [
            (each.name, _in_json(lambda context, given, each=each: each.default, each.kind))
            for each in self.options
            if not callable(each.default) and isinstance(self._usual[each.name], list)
        ]
        return (*lists, *((name, function) for _, name, function, _ in self.functions))

    @cached_property
    def constants(self) -> tuple[tuple[str, Any, Callable[[Any], str]], ...]:
        """The name, default as JSON, and text of each option whose default is a value."""
        return tuple(
            (each.name, each.kind.plain(each.default), each.json_text)
            for each in self.options
            if not callable(each.default)
        )

    @cached_property
    def functions(self) -> tuple[tuple[bool, str, Callable[..., Any], Callable[[Any], str]], ...]:
        """Whether it stands in front, and the name, default and text of each option whose default is a function.

        Errors: ValueError if one stands between others.
        """
        made = [callable(each.default) for each in self.options]
        if made != [*takewhile(bool, made), *[False] * made.count(False), *takewhile(bool, reversed(made))]:
            raise ValueError(f"{self.text!r}: defaults that are made belong in front of the others, or behind them")
        first = made.index(False) if False in made else 0
        return tuple(
            (place < first, each.name, _in_json(each.default, each.kind), each.json_text)
            for place, each in enumerate(self.options)
            if callable(each.default)
        )

    @cached_property
    def parsed(self) -> Callable[[list[str], int | None], tuple[str, Fields]]:
        """Words, which it takes, -> the client and the fields of a step as JSON. Errors of it: ValueError."""
        word, first, made, read = self.word, self.first, self._made, self._given
        omitted = {name: self._usual[name] for name in self._omitted}
        usual = {name: each for name, each in self._usual.items() if name not in omitted}

        def parsed(words: list[str], newest: int | None) -> tuple[str, Fields]:
            actor = words.pop(0) if words and not (first and self._is_option(words[0])) else first
            if not actor:
                raise ValueError("the client is missing")
            given = read(words)
            if "=" in actor:
                raise ValueError(f"unexpected {actor}")
            found = {**usual, **given}
            context = {WORD: word, ACTOR: actor, NEWEST: newest}
            for name, make in made:
                if name not in given:
                    found[name] = make(context, found)
            for name, default in omitted.items():
                if name in given and given[name] == default:
                    del found[name]
            return actor, found

        return parsed


def printer(forms: Sequence[RequestWords]) -> Callable[[str, Mapping[str, Any], int | None], str]:
    """Prints a request in the form that is shortest; the forms differ in their words alone.

    It is given the client; the fields as JSON, where defaults may depend on those alone whose values are the same in
    JSON; and the last version of the request, for defaults.
    """
    constants = forms[0].constants
    by_length = sorted(forms, key=lambda each: len(each.word))
    variants = tuple((each.word, each.first, each.functions) for each in by_length)

    def printed(actor: str, body: Mapping[str, Any], newest: int | None) -> str:
        get, shortest = body.get, ""
        inner = "".join([text(value) for name, usual, text in constants if (value := get(name, usual)) != usual])
        for word, first, functions in variants:
            context = {WORD: word, ACTOR: actor, NEWEST: newest}
            front = behind = ""
            for is_first, name, made, text in functions:
                if (value := body[name]) != made(context, body):
                    if is_first:
                        front += text(value)
                    else:
                        behind += text(value)
            found = f"{word if actor == first else f'{word} {actor}'}{front}{inner}{behind}"
            if not shortest or len(found) < len(shortest):
                shortest = found
            if not (front or behind):
                break  # a longer word saves nothing
        return shortest

    return printed


class EventWords(Words):
    """One form of an event, in the place of a ``Template``."""

    def __init__(self, declared: "WordsForm", kinds: Mapping[str, Kind], absent: Mapping[str, Any]) -> None:
        """``absent``: the values of fields that the form does not name."""
        self.text = declared.text
        word, *parts = declared.text.split()
        defaults = {**absent, **declared.defaults}
        first = PART.fullmatch(parts[0]) if parts else None
        self._first = None
        if first is not None and first["items"] == FIRST:
            self._first = _option(first, kinds, defaults, declared.forms)
            parts = parts[1:]
        self._may_lack_first = self._first is not None and self._first.name in declared.defaults
        super().__init__(word, parts, kinds, defaults, declared.forms)
        options = (*([] if self._first is None else [self._first]), *self.options)
        self.fields = frozenset(each.name for each in options)
        self._others = {name: value for name, value in {**absent, **declared.fixed}.items() if name not in self.fields}

    def suits(self, value: Any) -> bool:
        """Whether the fields that the form does not name have the values that they have in its texts."""
        return all(getattr(value, name) == other for name, other in self._others.items())

    def printed(self, value: Any) -> str:
        words = [self.word]
        if self._first is not None:
            words.append(self._first.form.print(getattr(value, self._first.name)))
        for each in self.options:
            part = getattr(value, each.name)
            if part != each.default:
                words.append(each.text(part))
        return " ".join(words)

    def parsed(self, text: str) -> Fields | None:
        """All fields; None for a text with another word. Errors: ValueError."""
        word, *left = text.split()
        if word != self.word:
            return None
        given: Fields = {}
        try:
            if self._first is not None:
                given[self._first.name] = self._first_of(self._first, left)
            return {**self._others, **given, **self._read(left, {})}
        except (LookupError, TypeError) as wrong:
            raise ValueError(str(wrong)) from None

    def _first_of(self, first: WordOption, left: list[str]) -> Any:
        if left and "=" not in left[0] and not self._is_option(left[0]):
            return first.value(left.pop(0))
        if not self._may_lack_first:
            raise ValueError(f"{first.name} is missing")
        return first.default

    @property
    def usage(self) -> str:
        """For people: ``open [ASSIGNORS] [as=INSTANCE]``."""
        words = [self.word]
        if self._first is not None:
            words.append(f"[{self._first.name.upper()}]" if self._may_lack_first else self._first.name.upper())
        return " ".join([*words, *(f"[{each.usage}]" for each in self.options)])


@dataclass(frozen=True, slots=True)
class WordsForm:
    """What ``words`` declares."""

    text: str
    defaults: Mapping[str, Default]
    forms: Mapping[str, TextForm]
    fixed: Mapping[str, Any]


def words(
    text: str,
    *,
    defaults: Mapping[str, Default] = EMPTY,
    forms: Mapping[str, TextForm] = EMPTY,
    fixed: Mapping[str, Any] = EMPTY,
) -> WordsForm:
    """A form of an event. ``defaults``: in texts, where they are others than those of the class.

    ``fixed``: values of fields that the form does not name, where they are others than those of the class.
    """
    return WordsForm(text, defaults, forms, fixed)


def _option(
    found: re.Match[str], kinds: Mapping[str, Kind], defaults: Mapping[str, Default], forms: Mapping[str, TextForm]
) -> WordOption:
    name = found["name"]
    key = "" if found["items"] else found["key"] or name
    form = forms.get(name) or kinds[name].text("")
    is_flag = kinds[name].schema.get("type") == "boolean"
    return WordOption(name, key, form, kinds[name], defaults.get(name), found["items"] == WHOLE, is_flag)


def _in_json(default: Callable[..., Any], kind: Kind) -> Callable[..., Any]:
    write = kind.write
    return default if write is None else lambda context, given: write(default(context, given))


def pair(separator: str) -> TextForm:
    """Two texts; the second one is empty if there is no separator."""

    def parse(text: str) -> tuple[str, str]:
        first, _, second = text.partition(separator)
        return first, second

    return TextForm("", parse, separator.join, prints_json=True)


def listed(form: TextForm, separator: str = ",") -> TextForm:
    return TextForm(
        "",
        lambda text: tuple(form.parse(each) for each in text.split(separator) if each),
        lambda value: separator.join(map(form.print, value)),
        prints_json=form.prints_json,
    )
