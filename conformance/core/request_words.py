"""The shorthand of requests: ``join a v9 as i lists=p:x session=6000``: a word, the client, and options in any order.

A form is declared as text: ``join {actor} {member:id=} {instance:as} {version:v} {nameless} {offsets*}``. An option is
``key=VALUE``, ``key VALUE``, a key and a number, or the name of a flag that is set; each other word is an item of the
field with a star. An option is left out where its field has its default, which may depend on the other fields.

The form of an event has no client: ``words("open {assignors!} {instance:as=}")``. A field with an exclamation mark is
the first word, which a text may leave out if the form has a default of its own. With two stars, all other words are
the text of one value.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.field_kinds import Kind, TextForm

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

    def value(self, text: str) -> Any:
        lacks = text == NONE and self.kind.nullable and self.default is not None
        return None if lacks else self.form.parse(text)

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
        """The same for the value as JSON."""
        return self.text if self.form.prints_json else _text_of(self, self.kind.read)


def _text_of(option: WordOption, read: Callable[[Any], Any]) -> Callable[[Any], str]:
    key, write = option.key, option.form.print
    if option.is_flag:
        return lambda value: key
    if option.whole:
        return lambda value: write(read(value))
    if not key:
        return lambda value: " ".join(map(write, read(value))) or NONE
    prefix = f"{key} " if key == KEYWORD else key
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

    def _read(self, left: list[str], context: Fields) -> Fields:
        """All fields. Errors: ValueError."""
        given: Fields = {}
        items: list[str] = []
        while left:
            word = left.pop(0)
            option, text = self._option(word)
            if option is None:
                items.append(word)
            elif option.is_flag:
                given[option.name] = True
            else:
                given[option.name] = option.value(left.pop(0) if text is None and left else text or "")
        if items and self._items is None:
            raise ValueError(f"unexpected {', '.join(items)}")
        if items and self._items is not None:
            given[self._items.name] = self._items.of_items(items)
        for name, default, function in self._in_order:
            if name not in given:
                given[name] = default if function is None else function(context, given)
        return given

    def _is_option(self, word: str) -> bool:
        return self._option(word)[0] is not None

    def _option(self, word: str) -> tuple[WordOption | None, str | None]:
        """The option that begins with a word, and its text; None: the text is the next word."""
        key, equals, text = word.partition("=")
        if equals:
            return self._by_key.get(f"{key}="), text
        if word in self._by_key:
            return self._by_key[word], None
        return (self._by_key.get(word[0]), word[1:]) if word[1:].isdecimal() else (None, None)


class RequestWords(Words):
    """One form of a request."""

    def __init__(
        self, text: str, kinds: Mapping[str, Kind], defaults: Mapping[str, Default], forms: Mapping[str, TextForm]
    ) -> None:
        self.text = text
        word, actor, *parts = text.split()
        super().__init__(word, parts, kinds, defaults, forms)
        self.first = "" if actor == "{actor}" else actor.removeprefix("{actor=").removesuffix("}")
        """The client that a text may leave out; empty: it may not."""

    def default(self, name: str) -> Any:
        """The default of a field without other fields."""
        found = next(each for each in self.options if each.name == name)
        return found.absent({WORD: self.word, ACTOR: self.first, NEWEST: None}, {})

    @cached_property
    def plan(self) -> tuple[tuple[str, Any, Callable[..., Any] | None, Callable[[Any], str]], ...]:
        """For each option the name of its field, its default as JSON or the function that makes it, and its text."""
        return tuple(
            (each.name, None, _in_json(each.default, each.kind), each.json_text)
            if callable(each.default)
            else (each.name, each.kind.plain(each.default), None, each.json_text)
            for each in self.options
        )

    def printed(self, actor: str, body: Mapping[str, Any], newest: int | None = None) -> str:
        """``body``: the fields as JSON; defaults may depend on those alone whose values are the same in JSON.

        ``newest``: the last version of the request, for defaults.
        """
        words = [self.word] if actor == self.first else [self.word, actor]
        context = {WORD: self.word, ACTOR: actor, NEWEST: newest}
        for name, default, function, text in self.plan:
            if function is not None:
                default = function(context, body)
            value = body.get(name, default)
            if value != default:
                words.append(text(value))
        return " ".join(words)

    def parsed(self, words: list[str], newest: int | None = None) -> tuple[str, Fields]:
        """The client and all fields. Errors: ValueError."""
        left = [*words]
        named = left and (not self.first or not self._is_option(left[0]))
        actor = left.pop(0) if named else self.first
        if not actor:
            raise ValueError("the client is missing")
        given = self._read(left, {WORD: self.word, ACTOR: actor, NEWEST: newest})
        if "=" in actor:
            raise ValueError(f"unexpected {actor}")
        return actor, given


def shortest(forms: tuple[RequestWords, ...], actor: str, body: Mapping[str, Any], newest: int | None) -> str:
    """As ``printed``, in the form that is shortest; the forms differ in their words alone."""
    contexts = [{WORD: each.word, ACTOR: actor, NEWEST: newest} for each in forms]
    texts = [[each.word] if actor == each.first else [each.word, actor] for each in forms]
    for name, default, function, text in forms[0].plan:
        value = body.get(name, default)
        if function is None:
            if value != default:
                part = text(value)
                for each in texts:
                    each.append(part)
        else:
            for each, context in zip(texts, contexts, strict=True):
                if value != function(context, body):
                    each.append(text(value))
    return min(map(" ".join, texts), key=len)


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
