"""Snapshots of the log of metadata: how nodes write them soon, and which a log directory has."""

from pathlib import Path
from typing import Final

SOON: Final = {
    "metadata.log.max.snapshot.interval.ms": "2000",
    "metadata.log.max.record.bytes.between.snapshots": "1000",
}
"""Settings with which a node writes snapshots every few seconds; releases before 3.4 only have the second one."""


def ends(data: Path) -> list[int]:
    """The end offsets of the snapshots of the metadata in a log directory."""
    return sorted(int(each.name[:20]) for each in (data / "__cluster_metadata-0").glob("*.checkpoint"))
