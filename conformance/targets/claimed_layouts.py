"""The layouts of the messages that a testee claims."""

from collections.abc import Iterator

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.targets.protocol import Claims
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.schema import messages, spec


def claimed_layouts(claims: Claims) -> Iterator[Layout]:
    """Of the messages and versions that are claimed and that ``apache`` has."""
    known = set(messages(APACHE))
    for name in claims.messages:
        if name in known:
            yield from (layout for layout in spec(APACHE, name) if claims.has(name, layout.version))
