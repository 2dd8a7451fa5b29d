"""Text from outside: names, versions and messages of testees, and the contents of files.

Such text may control a terminal, change the direction of writing, end a line and begin a forged one, or be a command to
a CI service, which reads standard output and standard error. Each function here removes one of these risks.
"""

import re
from typing import Final

UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufdd0-\ufdef\ud800-\udfff\ufffe\uffff]"
    "|[" + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0x10000, 0x110000, 0x10000)) + "]"
)
"""Characters that XML and HTML refuse, that control a terminal or the direction of writing, and lone surrogates."""
COMMAND: Final = re.compile(r"(?m)(?:^[^\S\n]*:(?=:)|##(?=[A-Za-z]*\[))")
"""Where a CI service sees a command: ``::error::`` at the beginning of a line, ``##[error]`` and ``##vso[...]``
anywhere. A blank after the match disables the command."""
TARGETS: Final = ("java", "kafka", "kafka-features", "tcp", "consumers", "kafka-streams")
"""Prefixes of targets that a file may name: released jars of Kafka, and testees that listen on this machine."""
LINE_ENDS: Final = re.compile("[\t\n]")
_NOT_IN_JSON: Final = re.compile(f"{UNSEEN.pattern}|##(?=[A-Za-z]*\\[)")


def clean(text: str) -> str:
    """Escapes characters that are invisible or harmful in output, as ``\\x1b`` or ``\\ud800``. Keeps tab and line
    feed.
    """
    return UNSEEN.sub(_escape, text)


def one_line(text: str) -> str:
    """``clean``, with tab and line feed escaped as ``\\x09`` and ``\\x0a``, so that the text stays within its line."""
    return LINE_ENDS.sub(_escape, clean(text))


def harmless(text: str) -> str:
    """For a terminal or the log of a CI service: ``clean``, with a blank inserted into commands to the service.

    Lines stay lines: pass each text from outside through ``one_line`` before it becomes part of one.
    """
    return COMMAND.sub(r"\g<0> ", clean(text))


def harmless_line(what: object) -> str:
    """A message of one line for a terminal or a log; several lines are joined by blanks."""
    return harmless(one_line(str(what).replace("\n", " ")))


def harmless_json(text: str) -> str:
    """Equivalent JSON that ``clean`` and a CI service leave unchanged. ``text``: output of json.dumps."""
    return _NOT_IN_JSON.sub(lambda found: "".join(map(_in_json, found[0])), text)


WATCHED: Final = "watched "
"""The begin of the names of clients in traffic that was watched. They are no targets: nothing opens them again."""


def is_data(target: str) -> bool:
    """Whether a target may be opened whose name comes from a file, and not from the user.

    A listed client may, in a release too: names and releases are checked, and only that client is fetched. ``cmd:`` may
    not, since it starts any program, nor ``client:`` with a command; nor may ``drill:``, which writes a file.
    """
    prefix, colon, rest = target.partition(":")
    return not colon or prefix in TARGETS or (prefix == "client" and "{" not in rest)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _in_json(letter: str) -> str:
    data = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))
