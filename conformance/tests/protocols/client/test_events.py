"""The JSON of events in answers, ledgers and failure files."""

from typing import Any

from kipcheck.conformance.protocols.client.events import EVENTS, RequestSeen

AT = {"ms": 7, "connection": 1}
SUBSCRIPTIONS: list[dict[str, Any] | None] = [
    {"version": 0, "topics": ["t"]},
    {"version": 3, "topics": ["t"], "data": "00", "owned": [], "generation": -1, "rack": "r"},
    None,
]
MEMBERS = [{"id": "m", "instance": None, "subscription": None}, {"id": "n", "instance": "i", "subscription": None}]
WRITTEN: list[dict[str, Any]] = [
    {"what": "request", **AT, "api": "Fetch", "version": 4, "correlation": 3, "digest": 9, "partitions": ["t-0"],
     "offsets": [5]},
    {"what": "request", **AT, "api": "JoinGroup", "version": 5, "member": "", "instance": "i", "session_ms": 10,
     "type": "consumer", "correlation": "3 after an answer", "digest": 9, "pipelined": True,
     "protocols": [["range", "00"], ["sticky", ""], ["x", "01"]], "subscriptions": SUBSCRIPTIONS},
    {"what": "request", **AT, "api": "SyncGroup", "version": 5, "member": "m", "generation": 1, "correlation": 3,
     "digest": 9, "assignments": [["m", []], ["n", None], ["o", ["t-0", "t-1"]]]},
    {"what": "request", **AT, "api": "ConsumerGroupHeartbeat", "version": 1, "member": "m", "generation": 0,
     "correlation": 3, "digest": 9, "owned": [], "topics": []},
    {"what": "answer", **AT, "api": "Produce", "version": 9},
    {"what": "answer", **AT, "api": "JoinGroup", "version": 5, "to": ["m", -1], "error": 0, "generation": 1,
     "member": "m", "leads": False, "protocol": "range"},
    {"what": "answer", **AT, "api": "JoinGroup", "version": 5, "error": 0, "generation": 1, "member": "m",
     "leads": True, "protocol": "range", "members": MEMBERS, "sizes": {"t": 4}},
    {"what": "answer", **AT, "api": "SyncGroup", "version": 5, "error": 0, "partitions": [], "empty": True},
    {"what": "answer", **AT, "api": "Metadata", "version": 9, "error": 0, "missing": True, "sizes": {}},
    {"what": "damaged", **AT, "api": "JoinGroupRequest", "version": 5, "group": "g", "member": "", "path": "p",
     "record": "r", "kind": "truncated", "field": "f", "at": 3, "start": None, "of": 1, "cause": "c", "hex": "",
     "size": 9, "readers": "none"},
    {"what": "launched", "ms": 0, "session_ms": 10, "assignors": ["range"], "topics": ["t"]},
    {"what": "settled", "ms": 9, "waited_ms": 2, "unsent": []},
    {"what": "ended", "ms": 9, "code": -9, "stderr": ""},
    {"what": "confirmed", "ms": 9, "law": "client/beats", "shape": ["no heartbeat"]},
]  # fmt: skip


def test_what_is_read_is_written_again() -> None:
    for written in WRITTEN:
        assert EVENTS.to_json(EVENTS.from_json(written)) == written


def test_fields_of_later_releases_are_ignored() -> None:
    event = EVENTS.from_json({**WRITTEN[0], "later": 1})
    assert isinstance(event, RequestSeen) and event.placed == (("t-0", 5),)
