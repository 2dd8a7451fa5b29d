"""Writes frames of Kafka's protocol as a packet capture: TCP conversations with port 9092, in classic pcap."""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

PORT = 9092
CLIENT_PORT = 40000
SEGMENT = 1400
"""The most bytes of a frame in one packet."""
_CLIENT, _BROKER = bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2))
_MACS = {_CLIENT: bytes((2, 0, 0, 0, 0, 1)), _BROKER: bytes((2, 0, 0, 0, 0, 2))}
_SYN, _ACK, _PUSH, _FIN = 0x02, 0x10, 0x08, 0x01
ETHERNET = 1


@dataclass(frozen=True, slots=True)
class Sent:
    """A frame with its size in front, and its sender."""

    data: bytes
    by_client: bool


def pcap(frames: Iterable[Sent]) -> bytes:
    """One conversation, with TCP handshake and close; timestamps count microseconds from 0, so equal frames give equal
    bytes."""
    packets = [*_packets(frames)]
    return file_header() + b"".join(record(packet, at) for at, packet in enumerate(packets))


def file_header() -> bytes:
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, ETHERNET)


def record(packet: bytes, at_us: int) -> bytes:
    """A packet as it stands in the file, with its time in microseconds."""
    return struct.pack("<IIII", *divmod(at_us, 1_000_000), len(packet), len(packet)) + packet


def _packets(frames: Iterable[Sent]) -> Iterator[bytes]:
    conversation = Conversation()
    yield from conversation.opened()
    for frame in frames:
        yield from conversation.sent(frame)
    yield from conversation.closed()


class Conversation:
    """The packets of one TCP connection."""

    def __init__(self, client_port: int = CLIENT_PORT) -> None:
        self._client_port = client_port
        self._numbers = {True: 0, False: 0}
        """Sequence number of the next byte of each side, the client's under True."""
        self._order = 0

    def opened(self) -> Iterator[bytes]:
        yield self._packet(True, _SYN)
        yield self._packet(False, _SYN | _ACK)
        yield self._packet(True, _ACK)

    def sent(self, frame: Sent) -> Iterator[bytes]:
        for start in range(0, len(frame.data), SEGMENT):
            yield self._packet(frame.by_client, _PUSH | _ACK, frame.data[start : start + SEGMENT])
        yield self._packet(not frame.by_client, _ACK)

    def closed(self) -> Iterator[bytes]:
        yield self._packet(True, _FIN | _ACK)
        yield self._packet(False, _FIN | _ACK)
        yield self._packet(True, _ACK)

    def _packet(self, by_client: bool, flags: int, data: bytes = b"") -> bytes:
        self._order = (self._order + 1) & 0xFFFF
        ends = (_CLIENT, _BROKER) if by_client else (_BROKER, _CLIENT)
        ports = (self._client_port, PORT) if by_client else (PORT, self._client_port)
        acknowledged = self._numbers[not by_client] if flags & _ACK else 0
        segment = _tcp(ends, ports, self._numbers[by_client], acknowledged, flags, data)
        made = _ethernet(ends, _ipv4(ends, self._order, segment))
        passed = self._numbers[by_client] + len(data) + bool(flags & (_SYN | _FIN))
        self._numbers[by_client] = passed & 0xFFFF_FFFF
        return made


def _ethernet(ends: tuple[bytes, bytes], payload: bytes) -> bytes:
    source, target = ends
    return _MACS[target] + _MACS[source] + b"\x08\x00" + payload


def _ipv4(ends: tuple[bytes, bytes], number: int, payload: bytes) -> bytes:
    source, target = ends

    def header(check: int) -> bytes:
        size, no_fragments, hops, tcp = 20 + len(payload), 0x4000, 64, 6
        return struct.pack(">BBHHHBBH", 0x45, 0, size, number, no_fragments, hops, tcp, check) + source + target

    return header(checksum(header(0))) + payload


def _tcp(
    ends: tuple[bytes, bytes], ports: tuple[int, int], number: int, acknowledged: int, flags: int, data: bytes
) -> bytes:
    source, target = ends
    size, window = 5 << 12, 65535

    def header(check: int) -> bytes:
        return struct.pack(">HHIIHHHH", *ports, number, acknowledged, size | flags, window, check, 0)

    pseudo = source + target + struct.pack(">BBH", 0, 6, 20 + len(data))
    return header(checksum(pseudo + header(0) + data)) + data


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    padded = data + b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f">{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
