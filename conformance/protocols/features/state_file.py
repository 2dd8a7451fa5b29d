"""The state file of ``kipcheck features``: a cluster of KIP-584's draft, read from JSON and written back whole."""

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.core.files.unreadable_file import unreadable
from kipcheck.conformance.core.values.edition import KIP_584
from kipcheck.conformance.protocols.assignment.group_files import keys_of, list_at, number_at, object_at, refuse, shown
from kipcheck.conformance.protocols.features.model.cluster import Node
from kipcheck.conformance.protocols.features.model.ranges import Ranges, ranges
from kipcheck.conformance.protocols.features.model.tool import Cluster
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.jsontext import Path as JsonPath
from kipcheck.conformance.wire.workbench import Unreadable, object_of
from kipcheck.conformance.wire.znodes import znode

HIGHEST: Final = 0x7FFF
"""Levels have 16 bits (584-60)."""
KEYS: Final = ("brokers", "node", "epoch", "known")
NODE: Final = znode(KIP_584, "FeatureZNode", 0)
LOWEST, MOST = "min_version_level", "max_version_level"


@dataclass(frozen=True, slots=True)
class FeatureState(Cluster):
    known: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Release -> feature -> the highest level that the tool of this release knows."""


def read_state(path: Path) -> FeatureState:
    """Errors: ``Unreadable``, with the path in the file and what is valid there."""
    try:
        text = path.read_text("utf-8")
    except OSError as wrong:
        raise Unreadable("not-json", unreadable(wrong, path)) from None
    except UnicodeDecodeError:
        raise Unreadable("not-json", f"{path} cannot be read: it is not UTF-8") from None
    try:
        return state_of(object_of(text))
    except Unreadable as wrong:
        raise Unreadable(wrong.kind, f"{path}: {wrong}") from None


def state_of(content: dict[str, Any]) -> FeatureState:
    """Errors: ``Unreadable``."""
    keys_of((), content, KEYS)
    for key in ("brokers", "node"):
        if key not in content:
            refuse((key,), "the key is missing")
    brokers = tuple(
        _supported(("brokers", at), value) for at, value in enumerate(list_at(("brokers",), content["brokers"]))
    )
    known = object_at(("known",), content.get("known", {}))
    return FeatureState(
        brokers, _node(content), {release: _levels(("known", release), value) for release, value in known.items()}
    )


def _supported(path: JsonPath, value: Any) -> Ranges:
    spans = {}
    for name, span in object_at(path, value).items():
        at = (*path, name)
        if not name:
            refuse(path, "a feature has no name")
        if not isinstance(span, list) or len(span) != 2:
            refuse(at, f"must be [lowest, highest level], got {shown(span)}")
        low, high = (number_at((*at, n), level, 1, HIGHEST) for n, level in enumerate(span))
        if low > high:
            refuse(at, f"the lowest level, {low}, is above the highest, {high}")
        spans[name] = (low, high)
    return ranges(spans)


def _levels(path: JsonPath, value: Any) -> dict[str, int]:
    return {name: number_at((*path, name), level, 1, HIGHEST) for name, level in object_at(path, value).items()}


def _node(content: Mapping[str, Any]) -> Node | None:
    if content["node"] is None:
        if "epoch" in content:
            refuse(("epoch",), "there is no epoch where node is null")
        return None
    try:
        node = NODE.codec.decode(json.dumps(object_at(("node",), content["node"])).encode())
    except Refused as wrong:
        refuse(("node", *([wrong.path] if wrong.path else [])), wrong.why)
    epoch = number_at(("epoch",), content.get("epoch", 0), 0)
    features = {name: (level[LOWEST], level[MOST]) for name, level in node["features"].items()}
    return Node(epoch, node["status"] == 1, ranges(features))


def write_state(path: Path, state: FeatureState) -> None:
    """Writes the file whole: a reader finds the old contents or the new ones. Errors: OSError."""
    text = json.dumps(_plain(state), indent=2, ensure_ascii=False) + "\n"
    whole = path.resolve()  # a symbolic link stays one
    handle, temporary = tempfile.mkstemp(prefix=f".{whole.name}.", dir=whole.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, whole.stat().st_mode & 0o777)
        os.replace(temporary, whole)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _plain(state: FeatureState) -> dict[str, Any]:
    node, brokers = state.node, {"brokers": [{name: [*span] for name, span in each} for each in state.brokers]}
    if node is None:
        return {**brokers, "node": None, "known": state.known}
    features = {name: {LOWEST: span.low, MOST: span.high} for name, span in node.features}
    written = {"version": 0, "status": int(node.enabled), "features": features}
    return {**brokers, "node": written, "epoch": node.epoch, "known": state.known}
