"""Messages in a stream of bytes: found however it is cut, and refused as soon as they are sure to be too long."""

import json
import random
import tracemalloc
from typing import Any

import pytest

from kipcheck.conformance.targets.transport.framing import (
    MOST,
    Framing,
    MessageBuffer,
    Unreadable,
    pack_message,
    parse_message,
)

MESSAGES: list[dict[str, Any]] = [
    {"type": "hello"}, {"text": "grüße\n中文 \N{PARTY POPPER}"}, {"hex": "00" * 5000}, {}, {"n": -(1 << 63)},
]  # fmt: skip


def gathered(framing: Framing) -> MessageBuffer:
    found = MessageBuffer()
    found.framing = framing
    return found


@pytest.mark.parametrize("framing", Framing)
def test_what_is_packed_is_found_again_however_it_comes(framing: Framing) -> None:
    stream = b"".join(pack_message(each, framing) for each in MESSAGES)
    choose = random.Random(0)
    for most in (1, 3, 1000, len(stream)):
        result, found, at = gathered(framing), [], 0
        while at < len(stream):
            step = choose.randint(1, most)
            result.feed(stream[at : at + step])
            at += step
            while (message := result.take()) is not None:
                found.append(message)
        assert found == MESSAGES
        assert result.waiting == b""


def test_frames_are_led_by_their_length_as_kafka_s_own_are() -> None:
    assert pack_message({"a": 1}, Framing.FRAMES) == b'\x00\x00\x00\x07{"a":1}'
    assert pack_message({"a": 1}, Framing.LINES) == b'{"a":1}\n'


def test_from_lines_to_frames_in_the_middle_of_what_came() -> None:
    result = gathered(Framing.LINES)
    result.feed(pack_message({"a": 1}, Framing.LINES) + pack_message({"b": 2}, Framing.FRAMES))
    assert result.take() == {"a": 1}
    result.framing = Framing.FRAMES
    assert (result.take(), result.take()) == ({"b": 2}, None)


def test_a_length_is_refused_before_what_it_promises_is_there() -> None:
    tracemalloc.start()
    try:
        for length in (MOST + 1, 0x7FFFFFFF, 0xFFFFFFFF):
            result = gathered(Framing.FRAMES)
            result.feed(length.to_bytes(4, "big"))
            with pytest.raises(Unreadable, match=f"a frame of {length} bytes"):
                result.take()
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("framing", Framing)
def test_the_longest_message_is_one_of_16_mib(framing: Framing) -> None:
    longest = {"a": "x" * (MOST - len('{"a":""}'))}
    result = gathered(framing)
    result.feed(pack_message(longest, framing))
    assert result.take() == longest
    with pytest.raises(ValueError, match="16777217 bytes"):
        pack_message({"a": longest["a"] + "x"}, framing)
    too_long = b'{"a":"' + b"x" * MOST
    result.feed((MOST + 1).to_bytes(4, "big") + too_long if framing is Framing.FRAMES else too_long)
    with pytest.raises(Unreadable, match=r"16 MiB|a frame of 16777217"):
        result.take()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "empty"), (b" ", "empty"), (b"hello", "not JSON"), (b"[]", "not a JSON object"),
        (b"1", "not a JSON object"),
        (b'{"a":NaN}', "NaN is not a JSON number"), (b'{"a":-Infinity}', "is not a JSON number"),
        (b'{"a":1e999}', "too large for a number"),
        (b'{"a":"\xff"}', "not UTF-8 at byte 6"), (b"\xff\xfe{\x00}\x00", "not UTF-8 at byte 0"),
        (b'\xef\xbb\xbf{"a":1}', "not JSON"), (b'{"a":1}{"b":2}', "Extra data"), (b'{"a":' * 99999, "not JSON"),
        (b'{"a":' + b"1" * 5000 + b"}", "not JSON"),
    ],
)  # fmt: skip
def test_what_is_no_message_is_told(text: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        parse_message(text)


def test_half_a_character_has_a_sign_in_its_place_and_a_whole_one_is_kept() -> None:
    reported = parse_message(b'{"\\ud800": ["a\\uDFFFb", {"c": "\\ud83c\\udf89"}], "d": "\\u00e9\\\\ud800"}')
    assert reported == {"\N{REPLACEMENT CHARACTER}": ["a\N{REPLACEMENT CHARACTER}b", {"c": "\N{PARTY POPPER}"}],
                    "d": "\u00e9\\ud800"}  # fmt: skip
    json.dumps(reported, ensure_ascii=False).encode()
