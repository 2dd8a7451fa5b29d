"""The command ``assign``: lets a target's assignor compute the assignment of a group."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, TypeAlias

from kipcheck.conformance.cli.options import (
    FAILED,
    NOT_STARTED,
    OK,
    USAGE,
    Commands,
    Parser,
    complain,
    edition_name,
    target_name,
)
from kipcheck.conformance.core.files.unreadable_file import unreadable
from kipcheck.conformance.core.values.untrusted_text import harmless_json

if TYPE_CHECKING:
    from kipcheck.conformance.targets.protocol import Target

STREAM: Final = "stream"
ASSIGNORS: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""The same as those of ``protocols.assignment``; a test compares them."""
Line: TypeAlias = tuple[str, bool]
One: TypeAlias = "Callable[[str, Target, str], Line]"
Many: TypeAlias = "Callable[[Iterable[str], Target, str], Iterator[Line]]"


def add(commands: Commands) -> None:
    made = commands.add("assign", _assign, "print what a target's assignor assigns to the members of a group", _epilog)
    made.add_argument(
        "--target",
        type=target_name,
        default="kafka-python",
        metavar="T",
        help="target that assigns; default kafka-python",
    )
    made.add_argument("--assignor", required=True, choices=(*ASSIGNORS, STREAM), help="its name in JoinGroup")
    made.add_argument("--edition", type=edition_name, default="apache", metavar="E", help="default apache")
    one_file(made)


def one_file(made: Parser) -> None:
    made.add_argument("--batch", action="store_true", help="read and write JSON Lines, one result for each line")
    made.add_argument(
        "input", nargs="?", default="-", metavar="FILE", help="a file with one JSON object, or - for standard input"
    )


def _epilog() -> str:
    from kipcheck.conformance.protocols.assignment.group_answers import CLASSES

    width = max(map(len, CLASSES))
    classes = "\n".join(f"  {name:<{width}}  {meaning}" for name, meaning in CLASSES.items())
    return f"""\
{{"topics": {{"t": 3, "u": {{"partitions": 1, "racks": [["a", "b"]]}}}},
 "members": {{"c1": {{"subscription": ["t"], "owned": [["t", 0]], "generation": 10,
                    "instance": null, "rack": null, "userData": null}}}}}}
gives
{{"c1": {{"partitions": [["t", 0], ["t", 1], ["t", 2]], "userData": null}}}}

A key that a member lacks is [], -1 or null. The owned partitions and their generation reach the assignor in
the fields that it reads, user data included, unless userData (hex) is given. racks: the racks of the replicas of each
partition. cooperative-sticky: what the leader sends, without partitions that another member has to revoke first.

stream: the group of a Kafka Streams application, with reference or java:kafka-streams:RELEASE; its file is that of
`kipcheck subscribe`, which computes the userData that every member needs here. The first member is the leader.

exit codes: 0 assigned, 1 {{"error": {{"class", "message"}}}} in place of a result, 2 unreadable,
3 the target did not start; with --batch 1 if any line failed. Classes (any other is an exception of the target):
{classes}"""


def _assign(options: argparse.Namespace) -> int:
    if options.assignor == STREAM:
        from kipcheck.conformance.clients.java import user_data

        return answering(options, user_data.assigned, user_data.assign_lines)
    from kipcheck.conformance.protocols.assignment import group_answers

    name = options.assignor
    return answering(
        options,
        lambda text, target, edition: group_answers.assigned(text, target, name, edition),
        lambda lines, target, edition: group_answers.assign_lines(lines, target, name, edition),
    )


def answering(options: argparse.Namespace, one: One, many: Many) -> int:
    """Prints the result of ``one`` for a whole file, or with ``--batch`` the results of ``many`` for its lines."""
    from kipcheck.conformance.core.values.edition import edition
    from kipcheck.conformance.targets.protocol import Broken, Unavailable
    from kipcheck.conformance.targets.registry import target
    from kipcheck.conformance.wire.workbench import Unreadable

    try:
        edition(options.edition)
        opened = target(options.target), options.edition
    except LookupError as unknown:
        return complain(unknown.args[0], USAGE)
    except Unavailable as missing:
        return complain(missing, NOT_STARTED)
    with ExitStack() as stack:
        source = sys.stdin
        if options.input != "-":
            try:
                source = stack.enter_context(open(options.input, encoding="utf-8", errors="surrogateescape"))
            except OSError as missing:
                return complain(unreadable(missing), USAGE)
        try:
            if options.batch:
                return _print(many(source, *opened))
            return _print([one(source.read(), *opened)])
        except Unreadable as wrong:
            return complain(wrong, USAGE)
        except (Broken, Unavailable) as gone:
            return complain(gone, NOT_STARTED)


def _print(results: Iterable[Line]) -> int:
    well = True
    for line, good in results:
        print(harmless_json(line))
        well = well and good
    return OK if well else FAILED
