"""Lists that differ in other ways have other shapes."""

import pytest

from kipcheck.conformance.protocols.declare.list_difference import list_difference


@pytest.mark.parametrize(
    ("expected", "observed", "shape"),
    [
        ("ab", "ba", "members in another order"),
        ("ab", "a", "members missing"),
        ("ab", "", "members missing"),
        ("ab", "abc", "more members"),
        ("ab", "abb", "members repeated"),
        ("ab", "ac", "other members"),
        ("ab", "cde", "other members"),
        ("ab", "aa", "other members"),
    ],
)
def test_each_way_has_a_word(expected: str, observed: str, shape: str) -> None:
    assert list_difference(expected, observed, "members") == shape
