"""Message layouts: ``layout("apache", "JoinGroupRequest", 5)`` has ``.names``, ``.encode`` and ``.decode``."""

from collections.abc import Mapping

from kipcheck.conformance.core.values.edition import Edition, edition as _edition
from kipcheck.conformance.wire.log_files import VERSIONS as LOG_FILES
from kipcheck.conformance.wire.schema import Attached, Codec, Layout, Raw, attach, spec

__all__ = ["Layout", "layout"]


def layout(edition: str | Edition, message: str, version: int) -> Layout:
    """The layout of ``message`` at ``version`` in ``edition``.

    Errors: LookupError where the edition has no such message or the message no such version.
    """
    found = _edition(edition) if isinstance(edition, str) else edition
    if message.endswith("ZNode"):
        from kipcheck.conformance.wire.znodes import znode  # a JSON module that is rarely needed

        return znode(found, message, version)
    if message in LOG_FILES:
        from kipcheck.conformance.wire.log_file_layouts import log_file_spec  # files that few processes read

        return log_file_spec(found, message).at(version)
    return spec(found, message).at(version)


def _codec(layout: Layout) -> Codec:
    from kipcheck.conformance.wire.codec import compile_codec  # for layouts that code: a declaration alone needs none

    return compile_codec(layout)


def _definitions(edition: Edition) -> Mapping[str, Raw]:
    from kipcheck.conformance.wire.definitions import definitions  # opens jars: only for these editions

    return definitions(edition)


attach(Attached(_codec, _definitions))
