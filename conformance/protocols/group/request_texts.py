"""How requests to the coordinator of a classic group are written in shorthand and in sentences."""

import re
from collections.abc import Iterable, Mapping, Sequence
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


def offset_parsed(text: str) -> tuple[str, int, int, int, str]:
    """``5``, ``t:0:5``, or with leader epoch and metadata ``t:0:5:3:m``."""
    topic, partition, offset, *others = text.split(":", 4) if ":" in text else ("t", "0", text)
    epoch, metadata = others or ("-1", "")
    return topic, int(partition), int(offset), int(epoch), metadata


def offset_text(value: Sequence[Any]) -> str:
    topic, partition, offset, *others = value
    if any(each not in (-1, "") for each in others):
        return ":".join(map(str, value))
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


def offsets_text(offsets: Iterable[Sequence[Any]]) -> str:
    return ", ".join(_position_text(*each) for each in offsets)


def _position_text(topic: str, partition: int, offset: int, leader_epoch: int = -1, metadata: str = "") -> str:
    epoch = f" of leader epoch {leader_epoch}" if leader_epoch >= 0 else ""
    return f"{topic}-{partition} at {offset}{epoch}" + (f" with {metadata!r}" if metadata else "")


def members_text(members: Iterable[tuple[Any, ...]]) -> str:
    return ", ".join(member_text(*each) for each in members) or "no members"
