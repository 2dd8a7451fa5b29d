"""Which releases the tests ask: the one place to change when Kafka or a client has a new release."""

from typing import Final

from kipcheck.conformance.core.files.releases_table import listed, named
from kipcheck.conformance.core.values.release import NEWEST, judged_lines
from kipcheck.conformance.targets.target_entries import target_entries

OLD: Final = named("last-before-4")
"""Kafka: the last line that reads and writes the versions which 4.0 removed."""
NEWEST_STREAMS: Final = judged_lines("streams")[-1]
"""kafka-streams: the newest release that judges golden vectors."""
CLIENTS: Final = (OLD, NEWEST)
"""kafka-clients: together they know every version of every message."""
STREAMS_JARS: Final = (OLD, NEWEST_STREAMS)
COORDINATORS: Final = listed("coordinators")
"""kafka-group-coordinator: one of each behaviour since it is in Java."""
ORACLES: Final = {
    OLD: ("streams", "metadata", "group-coordinator", "transaction-coordinator"),
    NEWEST: ("metadata", "group-coordinator", "transaction-coordinator"),
    NEWEST_STREAMS: ("streams",),
}
"""Release -> its artifacts, which together know every version of every message."""
PYTHON_CLIENTS: Final = {"kafka-python": "3.0.12", "aiokafka": "0.14.0", "kio": "0.6.5"}
"""Those that are installed with the development tools, and that findings and known lists describe."""
FRANZ_GO: Final = target_entries()["franz-go"].default
PLATFORMATIC: Final = target_entries()["platformatic-kafka"].default
