"""Parses and prints the shorthand of a classic group: ``join a; join b as i; elapse 3000; sync a a=x b=y; beat b``.

========================  ==========================================================================================
``join a``                without a member id; ``rejoin a``: with the id most recently given to ``a``
``as i``                  with a group instance id (in every request that has one)
``lists=p:x,q:y``         protocols and their metadata, preferred first; ``lists=``: none
``type=T``                the protocol type, default ``consumer``
``session=MS``            and ``rebalance=MS``, the timeouts
``pv=1``                  the protocol version of KIP-429's draft
``sync a a=x b=y``        the leader's assignments; a follower's ``sync b``; ``type=T protocol=p`` since version 5
``beat a``                a heartbeat
``leave a b/i /j``        members with ids, instances, both or neither (``/``); ``leave a``: itself; ``leave a none``
``commit a 5 t:1:7``      offsets of partition 0 of ``t``, and of any partition
``fetch``, ``describe``   offsets, the group; ``list`` and ``delete``: groups. The client is omitted if it is ``a``
``id=b-old``              the request names another member (a reference) than its sender; ``id=``: none
``behind=1``              its generation is 1 less than the last one its client received; ``behind=none``: -1
``nameless``              its group id is empty
``v4``                    its version; default 3 for joins without an instance, else the first with an instance
``elapse 3000``           time passes; ``fail ERROR``: the next append fails
``unload; load; loaded``  the group's partition moves away, comes back, and is read; ``move`` is all three
========================  ==========================================================================================
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kipcheck.conformance.core.case import Step, step
from kipcheck.conformance.tests.protocols.group.old_ops import BROKER, DATED, REQUESTS, TIME

VERB_OF_WORD: Final = {
    "join": "join",
    "sync": "sync",
    "beat": "heartbeat",
    "leave": "leave",
    "commit": "commit",
    "fetch": "fetch",
    "describe": "describe-group",
    "list": "list-groups",
    "delete": "delete-group",
}
DEFAULT_VERSIONS: Final[Mapping[str, int]] = {
    "join": 3,
    "sync": 3,
    "heartbeat": 3,
    "leave": 3,
    "commit": 7,
    "fetch": 5,
    "describe-group": 4,
    "list-groups": 2,
    "delete-group": 1,
}
"""Versions of requests, unless the shorthand has one."""
STATIC_JOIN: Final = 5
"""The first version with an instance id."""
DRAFT_JOIN: Final = 5
FIRST: Final = "a"
TYPE: Final = "consumer"
PROTOCOLS: Final = "p:x"
SESSION_MS: Final = 10_000
REBALANCE_MS: Final = 30_000
MOVE: Final = "unload; load; loaded"
_WORD_OF_VERB: Final = {verb: word for word, verb in VERB_OF_WORD.items()}
_HAVE_MEMBER: Final = frozenset({"join", "sync", "heartbeat", "commit"})


def parse_shorthand(text: str, newest: Mapping[str, int] | None = None) -> tuple[Step, ...]:
    """Parses shorthand into steps. A default version is never above ``newest``, by verb.

    Errors: ValueError.
    """
    said = (
        word.split() for each in text.split(";") for word in (MOVE.split(";") if each.strip() == "move" else [each])
    )
    return tuple(_step(words, newest or {}) for words in said if words)


def shorthand(steps: Iterable[Step], newest: Mapping[str, int] | None = None) -> str:
    """The shorthand that parses to these steps."""
    return "; ".join(_step_text(each, newest or {}) for each in steps).replace(MOVE, "move")


def _default_version(verb: str, body: Mapping[str, Any], newest: Mapping[str, int]) -> int:
    usual = DEFAULT_VERSIONS[verb]
    if verb == "join" and (body["instance"] is not None or body.get("protocol_version") is not None):
        usual = STATIC_JOIN
    return min(usual, newest.get(verb, usual))


# From words to steps


def _step(words: list[str], newest: Mapping[str, int]) -> Step:
    try:
        match words:
            case ["elapse", ms]:
                return step(TIME, "elapse", ms=int(ms))
            case ["fail", error]:
                return step(BROKER, "fail-write", error=error)
            case ["unload" | "load" | "loaded" as verb]:
                return step(BROKER, verb)
            case [word, *rest] if word in VERB_OF_WORD or word == "rejoin":
                return _request(word, rest, newest)
    except ValueError as wrong:
        raise ValueError(f"{' '.join(words)!r}: {wrong}") from None
    known = ", ".join(("rejoin", *VERB_OF_WORD, "elapse", "fail", "unload", "load", "loaded", "move"))
    raise ValueError(f"invalid event {' '.join(words)!r}: it must begin with one of {known}")


def _request(word: str, rest: list[str], newest: Mapping[str, int]) -> Step:
    verb = VERB_OF_WORD.get(word, "join")
    named = verb in _HAVE_MEMBER or verb == "leave"
    if named and not rest:
        raise ValueError("the client is missing")
    actor, words = (rest[0], rest[1:]) if named or (rest and not _is_option(rest[0])) else (FIRST, rest)
    options, others = _options(words)
    body = _BODIES[verb](actor, options, others)
    if verb in _HAVE_MEMBER:
        own = actor if word != "join" else ""
        body = {"member": options.pop("id", own), "instance": options.pop("as", None), **body}
    if verb in DATED:
        behind = options.pop("behind", "0")
        body["behind"] = None if behind == "none" else int(behind)
    if options.pop("nameless", None) is not None:
        body["nameless"] = True
    said = options.pop("v", None)
    body = {"version": _default_version(verb, body, newest) if said is None else int(said), **body}
    if options or others or "=" in actor:
        raise ValueError(f"unexpected {', '.join([*options, *others]) or actor}")
    return Step(actor, verb, body)


_KEYS: Final = ("id", "type", "lists", "session", "rebalance", "pv", "protocol", "behind")


def _is_option(word: str) -> bool:
    return word == "nameless" or (word[0] == "v" and word[1:].isdecimal()) or word.partition("=")[0] in _KEYS


def _options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Options by name, and the remaining words. The parser of an operation removes those that it uses from both."""
    options: dict[str, str] = {}
    others = []
    left = iter(words)
    for word in left:
        if word == "as":
            options["as"] = next(left, "")
        elif not _is_option(word):
            others.append(word)
        elif word == "nameless":
            options[word] = ""
        elif "=" in word:
            key, _, value = word.partition("=")
            options[key] = value
        else:
            options["v"] = word[1:]
    return options, others


def _join(actor: str, options: dict[str, str], others: list[str]) -> dict[str, Any]:
    lists = options.pop("lists", PROTOCOLS)
    draft = options.pop("pv", None)
    return {
        "protocol_type": options.pop("type", TYPE),
        "protocols": [[name, blob] for name, _, blob in (each.partition(":") for each in lists.split(",") if each)],
        "session_ms": int(options.pop("session", SESSION_MS)),
        "rebalance_ms": int(options.pop("rebalance", REBALANCE_MS)),
        **({} if draft is None else {"protocol_version": int(draft)}),
    }


def _sync(actor: str, options: dict[str, str], others: list[str]) -> dict[str, Any]:
    given = [[member, blob] for member, equals, blob in (each.partition("=") for each in others) if equals]
    others[:] = [each for each in others if "=" not in each]
    return {
        "assignments": given,
        "protocol_type": options.pop("type", None),
        "protocol": options.pop("protocol", None),
    }


def _leave(actor: str, options: dict[str, str], others: list[str]) -> dict[str, Any]:
    members: list[list[str | None]] = [[actor, options.pop("as", None)]] if not others else []
    for each in others if others != ["none"] else ():
        member, _, instance = each.partition("/")
        members.append([member, instance or None])
    others.clear()
    return {"members": members}


def _commit(actor: str, options: dict[str, str], others: list[str]) -> dict[str, Any]:
    offsets: list[list[str | int]] = []
    for each in others:
        topic, partition, offset = each.split(":") if ":" in each else ("t", "0", each)
        offsets.append([topic, int(partition), int(offset)])
    others.clear()
    return {"offsets": offsets}


_BODIES: Final[Mapping[str, Callable[[str, dict[str, str], list[str]], dict[str, Any]]]] = {
    **dict.fromkeys(REQUESTS, lambda actor, options, others: {}),
    "join": _join,
    "sync": _sync,
    "leave": _leave,
    "commit": _commit,
}


# From steps to words


def _step_text(step: Step, newest: Mapping[str, int]) -> str:
    match step.verb:
        case "elapse":
            return f"elapse {step['ms']}"
        case "fail-write":
            return f"fail {step['error']}"
        case verb if verb not in REQUESTS:
            return verb
    return " ".join((*_actor_words(step), *_body_words(step), *_option_words(step, newest)))


def _actor_words(step: Step) -> Iterable[str]:
    word = _WORD_OF_VERB[step.verb]
    if step.verb == "join" and step["member"] == step.actor:
        word = "rejoin"
    yield word
    if step.verb in _HAVE_MEMBER or step.verb == "leave" or step.actor != FIRST:
        yield step.actor
    if step.verb in _HAVE_MEMBER:
        if step["member"] != ("" if word == "join" else step.actor):
            yield f"id={step['member']}"
        if step["instance"] is not None:
            yield f"as {step['instance']}"


def _body_words(step: Step) -> Iterable[str]:
    match step.verb:
        case "join":
            lists = ",".join(f"{name}:{blob}" for name, blob in step["protocols"])
            values = {"lists": lists, "type": step["protocol_type"]}
            values |= {"session": step["session_ms"], "rebalance": step["rebalance_ms"]}
            usual = {"lists": PROTOCOLS, "type": TYPE, "session": SESSION_MS, "rebalance": REBALANCE_MS}
            yield from (f"{key}={value}" for key, value in values.items() if value != usual[key])
            if step.body.get("protocol_version") is not None:
                yield f"pv={step['protocol_version']}"
        case "sync":
            yield from (f"{member}={blob}" for member, blob in step["assignments"])
            for key, name in (("type", "protocol_type"), ("protocol", "protocol")):
                if step[name] is not None:
                    yield f"{key}={step[name]}"
        case "leave":
            members = step["members"]
            if members == [[step.actor, None]]:
                return
            yield from (
                f"{member}/{instance or ''}" if instance or not member else member for member, instance in members
            )
            yield from ["none"] if not members else []
        case "commit":
            for topic, partition, offset in step["offsets"]:
                yield str(offset) if (topic, partition) == ("t", 0) else f"{topic}:{partition}:{offset}"


def _option_words(step: Step, newest: Mapping[str, int]) -> Iterable[str]:
    if step.verb in DATED and step["behind"] != 0:
        yield f"behind={'none' if step['behind'] is None else step['behind']}"
    if step.body.get("nameless"):
        yield "nameless"
    if step["version"] != _default_version(step.verb, step.body, newest):
        yield f"v{step['version']}"
