"""Conformance tests and fuzzing for the group, Streams and feature-version protocols of Apache Kafka.

    from kipcheck import layout                # the bytes of a message at a version
    from kipcheck.strategies import values     # Hypothesis strategies over all messages

To import this package imports none of its parts: its pytest plugin is loaded with every pytest where it is installed.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kipcheck.conformance.wire import layout

__all__ = ["layout"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kipcheck.conformance import wire

    return getattr(wire, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
