"""Writes frames of Kafka's protocol as a packet capture: one TCP conversation with port 9092, in classic pcap."""

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
    """With TCP handshake and close; timestamps count microseconds from 0, so equal frames give equal bytes."""
    packets = [*_packets(frames)]
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, ETHERNET)
    return head + b"".join(
        struct.pack("<IIII", 0, at, len(packet), len(packet)) + packet for at, packet in enumerate(packets)
    )


def _packets(frames: Iterable[Sent]) -> Iterator[bytes]:
    numbers = {True: 0, False: 0}  # sequence number of the next byte of each side
    order = 0

    def packet(by_client: bool, flags: int, data: bytes = b"") -> bytes:
        nonlocal order
        order += 1
        ends = (_CLIENT, _BROKER) if by_client else (_BROKER, _CLIENT)
        ports = (CLIENT_PORT, PORT) if by_client else (PORT, CLIENT_PORT)
        acknowledged = numbers[not by_client] if flags & _ACK else 0
        made = _ethernet(ends, _ipv4(ends, order, _tcp(ends, ports, numbers[by_client], acknowledged, flags, data)))
        numbers[by_client] += len(data) + bool(flags & (_SYN | _FIN))
        return made

    yield packet(True, _SYN)
    yield packet(False, _SYN | _ACK)
    yield packet(True, _ACK)
    for frame in frames:
        for start in range(0, len(frame.data), SEGMENT):
            yield packet(frame.by_client, _PUSH | _ACK, frame.data[start : start + SEGMENT])
        yield packet(not frame.by_client, _ACK)
    yield packet(True, _FIN | _ACK)
    yield packet(False, _FIN | _ACK)
    yield packet(True, _ACK)


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
