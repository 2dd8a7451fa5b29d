"""The files that identify a node of a cluster and its quorum: ``meta.properties`` and ``quorum-state``.

=====================  ==========================================================================================
file                   contents
=====================  ==========================================================================================
``meta.properties``    Java properties. Version 0, of ZooKeeper (a file without a version, too): ``broker.id`` and
                       ``cluster.id``, each may be missing. Version 1, of KRaft: ``node.id`` and ``cluster.id``.
                       Either may have ``directory.id`` (from 3.7.0 on).
``quorum-state``       one line of JSON with ``data_version``. Version 0: the voters of a static quorum. Version 1
                       (kraft.version 1): the directory that was voted for; the voters are in the log.
=====================  ==========================================================================================

Source: classes ``BrokerMetadataCheckpoint``, ``MetaProperties``, ``FileBasedStateStore`` and ``FileQuorumStateStore``;
message ``QuorumStateData``. Which release reads which version is in ``core/data/releases.toml``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from kipcheck.conformance.core.files.releases_table import table
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.jsontext import Broken, Scan, Text

PROPERTIES, QUORUM = "meta.properties", "quorum-state"
KNOWN: Final[Mapping[str, int]] = {PROPERTIES: 1, QUORUM: 1}
"""File -> the newest version that is decoded; of another one the version alone is returned."""
INTEGERS: Final = ("leaderId", "leaderEpoch", "votedId")

Value = dict[str, Any]


def newest_readable(file: str, release: Release) -> int | None:
    """The newest version of the file that a release reads; None for a release without such a file."""
    reads: Mapping[str, int] = table()["quorum-files"][file]
    return max((version for since, version in reads.items() if release >= Release.parse(since)), default=None)


def decode(file: str, data: bytes) -> Value:
    """Errors: ``Refused``, with path and offset; KeyError for another file."""
    return {PROPERTIES: _properties, QUORUM: _quorum}[file](data)


def _refuse(file: str, kind: str, why: str, path: str, offset: int, version: int = 0) -> NoReturn:
    raise Refused(kind, why, message=file, version=version, path=path, offset=offset)


# meta.properties


def _properties(data: bytes) -> Value:
    found = _pairs(data)
    version = _number(found, "version", 0) if "version" in found else 0
    value: Value = {"version": version}
    if version not in range(KNOWN[PROPERTIES] + 1):
        return value
    number = "node.id" if version else "broker.id"
    for key in (number, "cluster.id") if version else ():
        if key not in found:
            _refuse(PROPERTIES, "missing", f"the key {key!r} is missing", key, len(data), version)
    if number in found:
        value["nodeId"] = _number(found, number, version)
    value |= {
        name: found[key][0] for name, key in (("clusterId", "cluster.id"), ("directoryId", "directory.id"))
        if key in found
    }  # fmt: skip
    return value


def _pairs(data: bytes) -> dict[str, tuple[str, int]]:
    """Key -> value, and the offset of the line."""
    found, place = {}, 0
    for line in data.split(b"\n"):
        try:
            text = line.decode().strip()
        except UnicodeDecodeError as wrong:
            _refuse(PROPERTIES, "text", "no UTF-8", "", place + wrong.start)
        if text and text[0] not in "#!":
            key, separator, value = text.partition("=")
            if not separator:
                _refuse(PROPERTIES, "type", f"{text[:60]!r} where 'key=value' is wanted", "", place)
            found[key.strip()] = value.strip().replace("\\", ""), place
        place += len(line) + 1
    return found


def _number(found: Mapping[str, tuple[str, int]], key: str, version: int) -> int:
    text, offset = found[key]
    if not text.removeprefix("-").isascii() or not text.removeprefix("-").isdigit() or len(text) > 10:
        _refuse(PROPERTIES, "range", f"{text[:40]!r} where a whole number is wanted", key, offset, version)
    return int(text)


# quorum-state


def _quorum(data: bytes) -> Value:
    try:
        found = Scan(data.split(b"\n")[0]).value()
    except Broken as wrong:
        _refuse(QUORUM, wrong.kind, wrong.why, "", wrong.offset)
    version = _integer(found, "data_version", 0)
    if version not in range(KNOWN[QUORUM] + 1):
        return {"version": version}
    value: Value = {"version": version, **{key: _integer(found, key, version) for key in INTEGERS}}
    if version:
        return {**value, "votedDirectoryId": str(_at(found, "votedDirectoryId", version).value)}
    voters = _at(found, "currentVoters", version)
    if not isinstance(voters.value, Sequence) or isinstance(voters.value, str):
        _refuse(QUORUM, "type", "no list", "currentVoters", voters.offset, version)
    return {**value, "currentVoters": [_integer(each, "voterId", version) for each in voters.value]}


def _at(found: Text, key: str, version: int) -> Text:
    if not isinstance(found.value, Mapping):
        _refuse(QUORUM, "type", f"no object with the key {key!r}", key, found.offset, version)
    if key not in found.value:
        _refuse(QUORUM, "missing", f"the key {key!r} is missing", key, found.offset, version)
    return found.value[key]


def _integer(found: Text, key: str, version: int) -> int:
    at = _at(found, key, version)
    if not isinstance(at.value, int) or isinstance(at.value, bool):
        _refuse(QUORUM, "type", "no whole number", key, at.offset, version)
    return at.value
