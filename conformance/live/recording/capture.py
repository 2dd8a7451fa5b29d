"""Writes traffic to a packet capture while it passes."""

from collections.abc import Iterable
from pathlib import Path

from kipcheck.conformance.live.recording.traffic import Frame, Observer
from kipcheck.conformance.wire.pcap import Conversation, Sent, file_header, record


class Capture(Observer):
    """Errors of the constructor: OSError where the file cannot be written."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._file.write(file_header())
        self._conversations: dict[int, Conversation] = {}

    def opened(self, at_s: float, connection: int, peer: tuple[str, int]) -> None:
        found = self._conversations[connection] = Conversation(peer[1])
        self._write(at_s, found.opened())

    def closed(self, at_s: float, connection: int, why: str) -> None:
        if (found := self._conversations.pop(connection, None)) is not None:
            self._write(at_s, found.closed())
            self._file.flush()

    def passed(self, frame: Frame) -> None:
        if (found := self._conversations.get(frame.connection)) is not None:
            self._write(frame.at_s, found.sent(Sent(frame.data, frame.by_client)))

    def close(self) -> None:
        self._file.close()

    def _write(self, at_s: float, packets: Iterable[bytes]) -> None:
        for packet in packets:
            self._file.write(record(packet, int(at_s * 1_000_000)))
