"""Conformance tests and fuzzing for the group, Streams and feature-version protocols of Apache Kafka.

    from kipcheck import layout                # the bytes of a message at a version
    from kipcheck.strategies import values     # Hypothesis strategies over all messages

To import this package imports nothing else, not even of the standard library: its pytest plugin is loaded with every
pytest where it is installed.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kipcheck.conformance.wire import layout
else:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import kipcheck.conformance.targets  # noqa: F401 - lets editions such as maven:4.1.0 find their jars
        from kipcheck.conformance import wire

        return getattr(wire, name)


__all__ = ["layout"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
