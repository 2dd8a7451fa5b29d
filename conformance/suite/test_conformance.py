"""The tests that the options select: one for each target, check and subject."""

from kipcheck.conformance.suite.items import Item


def test_conformance(kipcheck_item: Item) -> None:
    kipcheck_item.hold()
