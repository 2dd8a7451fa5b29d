"""All that the options select: an item for each target, check and subject."""

from kipcheck.conformance.suite.items import Item


def test_conformance(kipcheck_item: Item) -> None:
    kipcheck_item.hold()
