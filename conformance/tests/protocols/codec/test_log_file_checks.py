"""The checks of files beside a log: what is drawn is a file, and what is spoilt no broker reads."""

from random import Random

import pytest

from kipcheck.conformance.protocols.codec.checks.log_files import FLAWS, drawn, flawed, round_trip, subjects
from kipcheck.conformance.protocols.codec.strategies import FILES
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.log_files import METADATA, decode
from kipcheck.strategies.parse import belongs


def test_what_is_drawn_is_a_file_and_every_flaw_ends_its_reading() -> None:
    kinds: dict[str, set[str]] = {}
    for of in subjects("apache"):
        for seed in range(30):
            value = drawn(of, Random(seed))
            assert belongs(FILES[of.name], value)
            write, read = round_trip(of, value, Random(0))
            (encode,) = write.steps
            assert decode(of.name, bytes.fromhex(read.steps[0]["hex"])) == encode["value"]
            for conversation in flawed(of, value, Random(0)):
                with pytest.raises(Refused):
                    decode(of.name, bytes.fromhex(conversation.steps[0]["hex"]), lenient=True)
                kinds.setdefault(of.name, set()).add(conversation.kind)
    assert kinds == {name: {*of} for name, of in FLAWS.items()}


def test_an_edition_has_the_files_of_its_release() -> None:
    assert METADATA not in [each.name for each in subjects("apache@2.7.2")]
    assert len([*subjects("apache@2.8.0")]) == 4 and not [*subjects("kip-384")]
