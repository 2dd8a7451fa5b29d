"""``meta.properties`` and ``quorum-state``: what nodes wrote is read, and damage is refused with its place."""

import pytest

from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.quorum_files import PROPERTIES, QUORUM, decode, newest_readable

STATIC = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":3,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1},{"voterId":2}],"data_version":0}'
)


def test_meta_properties() -> None:
    zookeeper = b"#\n#Sat Nov 28 07:52:54 UTC 2026\nbroker.id=1\nversion=0\ncluster.id=ksDSg9ttSJ2E0q6icsdEqA"
    assert decode(PROPERTIES, zookeeper) == {"version": 0, "nodeId": 1, "clusterId": "ksDSg9ttSJ2E0q6icsdEqA"}
    kraft = b"node.id=-1\r\ndirectory.id=P5_L\r\nversion=1\r\ncluster.id=a\\=b\r\n"
    assert decode(PROPERTIES, kraft) == {"version": 1, "nodeId": -1, "clusterId": "a=b", "directoryId": "P5_L"}
    assert decode(PROPERTIES, b"") == {"version": 0}, "no key is needed in version 0"
    assert decode(PROPERTIES, b"version=7\nany=thing") == {"version": 7}, "unknown"


def test_quorum_state() -> None:
    assert decode(QUORUM, STATIC) == {
        "version": 0, "leaderId": 1, "leaderEpoch": 3, "votedId": -1, "currentVoters": [1, 2],
    }  # fmt: skip
    dynamic = b'{"leaderId":-1,"leaderEpoch":2,"votedId":1,"votedDirectoryId":"J8aA","data_version":1}\n'
    assert decode(QUORUM, dynamic) == {
        "version": 1, "leaderId": -1, "leaderEpoch": 2, "votedId": 1, "votedDirectoryId": "J8aA",
    }  # fmt: skip
    assert decode(QUORUM, b'{"data_version":2}') == {"version": 2}


@pytest.mark.parametrize(
    ("file", "data", "kind", "path", "offset"),
    [
        (PROPERTIES, b"broker.id=1\nversion=x\n", "range", "version", 12),
        (PROPERTIES, b"version=1\nnode.id=1\n", "missing", "cluster.id", 20),
        (PROPERTIES, b"version=1\ncluster.id=x\n", "missing", "node.id", 23),
        (PROPERTIES, b"version=1\ncluster.id=x\nnode.id=99999999999\n", "range", "node.id", 23),
        (PROPERTIES, b"version=0\nno pair\n", "type", "", 10),
        (PROPERTIES, b"version=0\n\xff", "text", "", 10),
        (QUORUM, b"", "truncated", "", 0),
        (QUORUM, STATIC[:-1], "truncated", "", len(STATIC) - 1),
        (QUORUM, b"[]", "type", "data_version", 0),
        (QUORUM, b'{"data_version":"0"}', "type", "data_version", 16),
        (QUORUM, b'{"data_version":true}', "type", "data_version", 16),
        (QUORUM, STATIC.replace(b'"leaderId":1', b'"leaderId":null'), "type", "leaderId", 27),
        (QUORUM, STATIC.replace(b'"leaderId":1,', b""), "missing", "leaderId", 0),
        (QUORUM, STATIC.replace(b'[{"voterId":1},{"voterId":2}]', b'"x"'), "type", "currentVoters", 92),
    ],
)
def test_damage_is_refused_with_its_place(file: str, data: bytes, kind: str, path: str, offset: int) -> None:
    with pytest.raises(Refused) as refused:
        decode(file, data)
    assert (refused.value.kind, refused.value.path, refused.value.offset) == (kind, path, offset)


@pytest.mark.parametrize(
    ("file", "release", "version"),
    [
        (PROPERTIES, "0.10.0.0", 0), (PROPERTIES, "2.7.2", 0), (PROPERTIES, "2.8.0", 1), (PROPERTIES, "4.4.0", 1),
        (QUORUM, "2.7.2", None), (QUORUM, "3.7.2", 0), (QUORUM, "3.8.0", 1), (QUORUM, "4.4.0", 1),
    ],
)  # fmt: skip
def test_the_newest_version_that_a_release_reads(file: str, release: str, version: int | None) -> None:
    assert newest_readable(file, Release.parse(release)) == version
