"""Watches a packet capture, classic pcap or pcapng, as if its packets passed now."""

import ipaddress
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

import dpkt

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.live.watch.flow import Flow, is_request
from kipcheck.conformance.live.watch.watcher import Watcher

STDIN: Final = "-"
TICK_S: Final = 0.2
MOST_FLOWS: Final = 5000
LONGEST_PACKET: Final = 16 << 20
PCAPNG: Final = b"\x0a\x0d\x0d\x0a"
ETHERNET, RAW, LINUX_SLL, LINUX_SLL2, NULL, LOOP = 1, 101, 113, 276, 0, 108
RAWS: Final = frozenset({RAW, 12, 14, 228, 229})
End = tuple[bytes, int]


class NoCapture(Exception):
    """The file is no capture; the text says what is wrong and what to do."""


@dataclass(slots=True)
class Flows:
    """The connections of a capture."""

    watcher: Watcher
    flows: dict[tuple[End, End], Flow] = field(default_factory=dict)
    """By the ends of client and broker, the ones that were used last at the end."""
    begun_earlier: int = 0
    gaps: int = 0

    def packet(self, at_s: float, ip: Any, tcp: Any) -> None:
        source, target = (ip.src, tcp.sport), (ip.dst, tcp.dport)
        data = bytes(tcp.data)
        syn, ack = tcp.flags & dpkt.tcp.TH_SYN, tcp.flags & dpkt.tcp.TH_ACK
        if syn:
            ends = (target, source) if ack else (source, target)
            if not ack or ends not in self.flows:
                self._open(ends, at_s)
        elif (source, target) in self.flows:
            ends = source, target
        elif (target, source) in self.flows:
            ends = target, source
        elif data and is_request(data) and int.from_bytes(data[:4], "big") + 4 >= len(data):
            ends = source, target
            self._open(ends, at_s).began_earlier()
            self.begun_earlier += 1
        else:
            return
        flow = self.flows[ends] = self.flows.pop(ends)
        flow.at_s = at_s
        self._pass(flow, source == ends[0], tcp, data, syn)
        if tcp.flags & dpkt.tcp.TH_RST or (flow.up.finished and flow.down.finished):
            self._close(ends)

    def _open(self, ends: tuple[End, End], at_s: float) -> Flow:
        self._close(ends)
        flow = self.flows[ends] = Flow(self.watcher, _host(ends[0][0]), f"{_host(ends[1][0])}:{ends[1][1]}")
        flow.at_s = at_s
        while len(self.flows) > MOST_FLOWS:
            self._close(next(iter(self.flows)))
        return flow

    def _pass(self, flow: Flow, by_client: bool, tcp: Any, data: bytes, syn: int) -> None:
        mine, other = (flow.up, flow.down) if by_client else (flow.down, flow.up)
        if syn:
            mine.opened(tcp.seq)
            if not by_client:
                flow.accepted()
            return
        if by_client:
            flow.confirmed()
        if tcp.flags & dpkt.tcp.TH_ACK:
            other.acknowledged(tcp.ack if not other.finished else (tcp.ack - 1) % (1 << 32))
        if flow.foreign:
            return
        mine.segment(tcp.seq, data)
        mine.finished = mine.finished or bool(tcp.flags & dpkt.tcp.TH_FIN)

    def _close(self, ends: tuple[End, End]) -> None:
        if (flow := self.flows.pop(ends, None)) is not None:
            flow.end()
            self.gaps += flow.gaps

    def end(self) -> None:
        for ends in [*self.flows]:
            self._close(ends)


def watch_capture(name: str, edition: Edition, print_line: Callable[[str], None]) -> Watcher:
    """Reads a capture to its end, or until Ctrl-C. ``name``: a file, or - for standard input.

    Errors: OSError; ``NoCapture``.
    """
    watcher = Watcher(edition, print_line)
    flows, last_s, tick_s = Flows(watcher), 0.0, 0.0
    with ExitStack() as stack:
        file = sys.stdin.buffer if name == STDIN else stack.enter_context(open(name, "rb"))
        print_line(f"reading {_shown(name)}")
        try:
            for at_s, ip, tcp in _segments(_packets(name, file, watcher), watcher):
                flows.packet(at_s, ip, tcp)
                last_s = at_s
                if at_s >= tick_s:
                    watcher.tick(at_s)
                    tick_s = at_s + TICK_S
        except KeyboardInterrupt:
            if name != STDIN:  # the end of a capture that is being written is when its reader is interrupted
                watcher.unread = "interrupted: the rest of the capture was not read"
                print_line(watcher.unread)
    flows.end()
    watcher.end(last_s)
    if flows.begun_earlier:
        watcher.counts["connections that began before the capture"] = flows.begun_earlier
    if flows.gaps:
        watcher.counts["places where segments are missing"] = flows.gaps
    return watcher


class _Bounded:
    """A file of which no damaged length makes a reader take the whole."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.start = self._rest = file.read(4)
        self.is_cut = False
        """Whether it ended amid what was to be read."""

    def read(self, size: int) -> bytes:
        """Errors: ValueError for a length that no packet has."""
        if not 0 <= size <= LONGEST_PACKET:
            raise ValueError(f"{size} bytes")
        taken, self._rest = self._rest[:size], self._rest[size:]
        if len(taken) < size:
            taken += self._file.read(size - len(taken))
        self.is_cut = 0 < len(taken) < size
        return taken


def _shown(name: str) -> str:
    return "standard input" if name == STDIN else name


def _packets(name: str, file: BinaryIO, watcher: Watcher) -> Iterator[tuple[float, int, bytes]]:
    """Time, link type and bytes of each packet."""
    bounded = _Bounded(file)
    start = bounded.start
    try:
        reader = (dpkt.pcapng.Reader if start == PCAPNG else dpkt.pcap.Reader)(bounded)
    except (ValueError, dpkt.UnpackError, struct.error):
        what = f"begins with the bytes {start.hex()}" if start else "is empty"
        raise NoCapture(
            f"{_shown(name)} is no packet capture, it {what}: use a file that tcpdump -w or Wireshark wrote (pcap or "
            "pcapng)"
        ) from None
    link, begin = reader.datalink(), None
    while not bounded.is_cut:
        try:
            at, data = next(reader)
        except StopIteration:
            break
        except (ValueError, dpkt.UnpackError, struct.error):
            if not bounded.is_cut:
                number = watcher.counts["packets"]
                watcher.unread = f"{_shown(name)} is damaged after packet {number}: the rest was not read"
                watcher.say(watcher.unread)
            break
        begin = float(at) if begin is None else begin
        yield float(at) - begin, link, data
    if bounded.is_cut:
        watcher.counts["captures that end amid a packet"] += 1
        watcher.say(f"{_shown(name)} ends amid a packet: what came before is judged")


def _segments(packets: Iterator[tuple[float, int, bytes]], watcher: Watcher) -> Iterator[tuple[float, Any, Any]]:
    for at_s, link, data in packets:
        watcher.counts["packets"] += 1
        try:
            ip = _ip(link, data)
        except (dpkt.UnpackError, struct.error, IndexError):
            ip = None
        if ip is None and link not in {ETHERNET, LINUX_SLL, LINUX_SLL2, NULL, LOOP, *RAWS}:
            raise NoCapture(f"the capture has the link type {link}: use one of an Ethernet or loopback interface")
        tcp = getattr(ip, "data", None)
        if isinstance(tcp, dpkt.tcp.TCP):
            yield at_s, ip, _cut(ip, tcp)


def _ip(link: int, data: bytes) -> Any:
    """The IP packet of a frame; None if it has none."""
    if link == ETHERNET:
        found: Any = dpkt.ethernet.Ethernet(data).data
    elif link == LINUX_SLL:
        found = dpkt.sll.SLL(data).data
    elif link == LINUX_SLL2:
        found = dpkt.sll2.SLL2(data).data
    elif link in (NULL, LOOP):
        found = _raw(data[4:])
    else:
        found = _raw(data)
    return found if isinstance(found, dpkt.ip.IP | dpkt.ip6.IP6) else None


def _raw(data: bytes) -> Any:
    return dpkt.ip6.IP6(data) if data[:1] and data[0] >> 4 == 6 else dpkt.ip.IP(data)


def _cut(ip: Any, tcp: Any) -> Any:
    """The segment without the padding of short Ethernet frames, which dpkt takes off for IPv4."""
    if isinstance(ip, dpkt.ip6.IP6):
        size = ip.plen - tcp.off * 4
        tcp.data = bytes(tcp.data)[: max(size, 0)]
    return tcp


def _host(address: bytes) -> str:
    return str(ipaddress.ip_address(address))
