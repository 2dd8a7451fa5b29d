"""How the log of a coordinator may be compacted before the coordinator reads it.

Kafka's cleaner compacts a log up to a segment, never the one that is written to: of the records with one key only the
last one stays, and a tombstone stays until the retention time of deletions has passed. A coordinator may be reading
the log meanwhile: then it has read the first records as they were before. Source: Kafka's documentation, section Log
Compaction; the classes Cleaner and LogCleanerManager of the releases.
"""

from typing import Annotated, Literal, TypeAlias

from kipcheck.conformance.core.operations.field_annotations import about, optional, typical
from kipcheck.conformance.core.operations.field_kinds import schema

_PERCENT = schema(minimum=0, maximum=100)

Compacted: TypeAlias = Annotated[
    int, _PERCENT, about("percent of the log that are compacted before it is read"), typical(0, 100, 50), optional
]
Since: TypeAlias = Annotated[
    int, _PERCENT, about("percent of the log that the coordinator has read before"), typical(0, 50), optional
]
Tombstones: TypeAlias = Annotated[
    Literal["kept", "gone"],
    about("`gone`: the retention time of deletions has passed, so tombstones are removed, too"),
    typical("kept", "gone"),
    optional,
]
COMPACTED = "[ compacted {compacted}][ from {since}][ {tombstones}]"
"""In shorthand."""
