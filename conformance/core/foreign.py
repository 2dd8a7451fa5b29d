"""Text from outside: names, versions and messages of testees, and whatever stands in a file.

It may steer a terminal, turn the direction of reading, end a line and begin a forged one, or be a command to a CI
service, which reads standard output and standard error. Each function here takes one of these powers from it.
"""

import re
from typing import Final

UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufdd0-\ufdef\ud800-\udfff\ufffe\uffff]"
    "|[" + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0x10000, 0x110000, 0x10000)) + "]"
)
"""What XML and HTML refuse, what steers a terminal, what turns the direction of reading, halves of surrogate pairs."""
COMMAND: Final = re.compile(r"(?m)(?:^[^\S\n]*:(?=:)|##(?=[A-Za-z]*\[))")
"""Where a CI service sees a command: ``::error::`` at the beginning of a line, ``##[error]`` and ``##vso[...]``
anywhere. A match ends where one more character takes the power from it.
"""
TARGETS: Final = ("java", "tcp")
"""Prefixes of targets that a file may name: a released jar of Kafka's own, and what listens on this machine."""
LINE_ENDS: Final = re.compile("[\t\n]")
_NOT_IN_JSON: Final = re.compile(f"{UNSEEN.pattern}|##(?=[A-Za-z]*\\[)")


def clean(text: str) -> str:
    """What cannot be shown, or does harm where it is shown, as ``\\x1b`` or ``\\ud800``. Keeps tab and line feed."""
    return UNSEEN.sub(_escape, text)


def one_line(text: str) -> str:
    """``clean``, and tab and line feed as ``\\x09`` and ``\\x0a``: text that stays within its line."""
    return LINE_ENDS.sub(_escape, clean(text))


def harmless(text: str) -> str:
    """For a terminal or the log of a CI service: ``clean``, and a blank breaks what would be a command to the service.

    Lines stay lines: pass each text from outside through ``one_line`` before it becomes part of one.
    """
    return COMMAND.sub(r"\g<0> ", clean(text))


def harmless_line(what: object) -> str:
    """A message of one line for a terminal or a log; the lines of a longer one are joined by blanks."""
    return harmless(one_line(str(what).replace("\n", " ")))


def harmless_json(text: str) -> str:
    """JSON that says the same and that ``clean`` and a CI service leave as it is. ``text`` is what json.dumps gave."""
    return _NOT_IN_JSON.sub(lambda found: "".join(map(_in_json, found[0])), text)


def is_data(target: str) -> bool:
    """May a target be opened whose name comes from a file, and not from the user?

    A client that is listed may, in a release too: names and releases are checked, and what is fetched is that client.
    ``cmd:`` may not, for it starts any program; nor may ``drill:``, which writes a file.
    """
    prefix, colon, _ = target.partition(":")
    return not colon or prefix in TARGETS


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _in_json(letter: str) -> str:
    data = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))
