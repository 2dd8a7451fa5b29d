"""The shorthand of requests: ``join a v9 as i lists=p:x session=6000``: a word, the client, and options in any order.

A form is declared as text: ``join {actor} {member:id=} {instance:as} {version:v} {nameless} {offsets*}``. An option is
``key=VALUE``, ``key VALUE``, a key and a number, or the name of a flag that is set; each other word is an item of the
field with a star. An option is left out where its field has its default, which may depend on the other fields.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.field_kinds import Kind, TextForm

ACTOR: Final = "actor"
WORD: Final = "word"
NEWEST: Final = "newest"
Fields: TypeAlias = dict[str, Any]
Default: TypeAlias = "Callable[[Fields], Any] | Any"
"""A value, or a function of the actor and the fields in front of it."""
PART: Final = re.compile(r"\{(?P<name>\w+)(?P<items>\*?)(?::(?P<key>[a-z]+=?))?\}")
NONE: Final = "none"
"""No items, or null where the default is another value."""
KEYWORD: Final = "as"
"""The option whose value is the next word."""


@dataclass(frozen=True, slots=True)
class WordOption:
    name: str
    key: str
    """``id=``, ``as``, ``v``; empty: of a field with items."""
    form: TextForm
    kind: Kind
    default: Default

    @property
    def is_flag(self) -> bool:
        return self.kind.schema.get("type") == "boolean"

    def absent(self, given: Fields) -> Any:
        return self.default(given) if callable(self.default) else self.default

    def value(self, text: str) -> Any:
        lacks = text == NONE and self.kind.nullable and self.default is not None
        return None if lacks else self.form.parse(text)

    def texts(self, value: Any) -> Iterator[str]:
        if self.is_flag:
            yield self.key
        elif not self.key:
            yield from map(self.form.print, value) if value else [NONE]
        else:
            text = NONE if value is None else self.form.print(value)
            yield from (self.key, text) if self.key == KEYWORD else (f"{self.key}{text}",)


class RequestWords:
    """One form of a request."""

    def __init__(
        self, text: str, kinds: Mapping[str, Kind], defaults: Mapping[str, Default], forms: Mapping[str, TextForm]
    ) -> None:
        """``forms``: of fields whose kind has none, or another one; of one item, where the field has a star."""
        self.text = text
        self.word, actor, *parts = text.split()
        self.first = "" if actor == "{actor}" else actor.removeprefix("{actor=").removesuffix("}")
        """The client that a text may leave out; empty: it may not."""
        found = [each for part in parts if (each := PART.fullmatch(part))]
        self.options = tuple(_option(each, kinds, defaults, forms) for each in found)
        self._by_key = {each.key: each for each in self.options if each.key}
        self._items = next((each for each in self.options if not each.key), None)
        self._defaults = defaults

    @cached_property
    def _in_order(self) -> tuple[WordOption, ...]:
        """Those whose default is a function last."""
        return tuple(sorted(self.options, key=lambda each: callable(each.default)))

    def default(self, name: str) -> Any:
        """The default of a field without other fields."""
        found = next(each for each in self.options if each.name == name)
        return found.absent({WORD: self.word, ACTOR: self.first, NEWEST: None})

    def printed(self, actor: str, fields: Fields, newest: int | None = None) -> str:
        """``newest``: the last version of the request, for defaults."""
        given = {WORD: self.word, ACTOR: actor, NEWEST: newest, **fields}
        words = [self.word] if actor == self.first else [self.word, actor]
        for each in self.options:
            value = fields[each.name]
            if value != each.absent(given):
                words += each.texts(value)
        return " ".join(words)

    def parsed(self, words: list[str], newest: int | None = None) -> tuple[str, Fields]:
        """The client and all fields. Errors: ValueError."""
        left = [*words]
        named = left and (not self.first or not self._is_option(left[0]))
        actor = left.pop(0) if named else self.first
        if not actor:
            raise ValueError("the client is missing")
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
        if items and self._items is not None:
            form = self._items.form
            given[self._items.name] = tuple(form.parse(each) for each in items) if items != [NONE] else ()
        if (items and self._items is None) or "=" in actor:
            raise ValueError(f"unexpected {', '.join(items) or actor}")
        for each in self._in_order:
            if each.name not in given:
                given[each.name] = each.absent({WORD: self.word, ACTOR: actor, NEWEST: newest, **given})
        return actor, given

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


def _option(
    found: re.Match[str], kinds: Mapping[str, Kind], defaults: Mapping[str, Default], forms: Mapping[str, TextForm]
) -> WordOption:
    name = found["name"]
    key = "" if found["items"] else found["key"] or name
    return WordOption(name, key, forms.get(name) or kinds[name].text(""), kinds[name], defaults.get(name))


def pair(separator: str) -> TextForm:
    """Two texts; the second one is empty if there is no separator."""

    def parse(text: str) -> tuple[str, str]:
        first, _, second = text.partition(separator)
        return first, second

    return TextForm("", parse, separator.join)


def listed(form: TextForm, separator: str = ",") -> TextForm:
    return TextForm(
        "",
        lambda text: tuple(form.parse(each) for each in text.split(separator) if each),
        lambda value: separator.join(map(form.print, value)),
    )
