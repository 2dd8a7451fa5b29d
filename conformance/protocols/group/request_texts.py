"""How requests to the coordinator of a classic group are written in shorthand and in sentences."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from kipcheck.conformance.core.operations.request_words import ACTOR, NEWEST, Default, Fields


def usual(version: int, static: int = 0) -> Default:
    """The version of a request in shorthand. ``static``: with an instance, or a version of KIP-429's draft."""

    def default(context: Fields, given: Mapping[str, Any]) -> int:
        newest: int | None = context[NEWEST]
        return version if newest is None or newest > version else newest

    def by_fields(context: Fields, given: Mapping[str, Any]) -> int:
        later = given.get("instance") is not None or given.get("protocol_version") is not None
        wanted = static if later else version
        return wanted if context[NEWEST] is None else min(wanted, context[NEWEST])

    return by_fields if static else default


def own(context: Fields, given: Mapping[str, Any]) -> str:
    name: str = context[ACTOR]
    return name


def offset_parsed(text: str) -> tuple[str, int, int]:
    topic, partition, offset = text.split(":") if ":" in text else ("t", "0", text)
    return topic, int(partition), int(offset)


def offset_text(value: tuple[str, int, int]) -> str:
    topic, partition, offset = value
    return str(offset) if topic == "t" and partition == 0 else f"{topic}:{partition}:{offset}"


def leaver_parsed(text: str) -> tuple[str, str | None]:
    member, _, instance = text.partition("/")
    return member, instance or None


def leaver_text(value: tuple[str, str | None]) -> str:
    member, instance = value
    return f"{member}/{instance or ''}" if instance or not member else member


def own_instance(words: list[str]) -> list[str]:
    """``leave a as i``: itself, with an instance. Errors: ValueError if it names others too."""
    if "as" not in words[1:]:
        return words
    at = words.index("as", 1)
    options = [*words[1:at], *words[at + 2 :]]
    if any(each != "nameless" and not re.fullmatch(r"v\d+", each) for each in options):
        raise ValueError("unexpected as")
    return [words[0], f"{words[0]}/{''.join(words[at + 1 : at + 2])}", *options]


# Parts of sentences


def id_text(member: str) -> str:
    return f"member {member}" if member else "no member id"


def member_text(id: str, instance: str | None, *others: object) -> str:
    return " as ".join(filter(None, (id, instance))) or "no member"


def offsets_text(offsets: Iterable[tuple[str, int, int]]) -> str:
    return ", ".join(f"{topic}-{partition} at {offset}" for topic, partition, offset in offsets)


def members_text(members: Iterable[tuple[Any, ...]]) -> str:
    return ", ".join(member_text(*each) for each in members) or "no members"
