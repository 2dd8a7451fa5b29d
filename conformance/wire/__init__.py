"""Messages on the wire: ``layout("apache", "JoinGroupRequest", 5)`` has ``.names``, ``.encode`` and ``.decode``."""

from kipcheck.conformance.core.edition import Edition, edition as _edition
from kipcheck.conformance.wire.schema import Layout, spec

__all__ = ["Layout", "layout"]


def layout(edition: str | Edition, message: str, version: int) -> Layout:
    """The fields of ``message`` at ``version`` as ``edition`` has them.

    Errors: LookupError where the edition has no such message or the message no such version.
    """
    found = _edition(edition) if isinstance(edition, str) else edition
    if message.endswith("ZNode"):
        from kipcheck.conformance.wire.znodes import znode  # JSON, which hardly anybody asks for

        return znode(found, message, version)
    return spec(found, message).at(version)
