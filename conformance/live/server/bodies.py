"""Reads the requests of members, and writes their answers, as their classes have them."""

from collections.abc import Mapping
from typing import Any, TypeVar

from kipcheck.conformance.core.operations import wire_form
from kipcheck.conformance.core.operations.wire_form import SAME, Context, Value
from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.live.recording.received import Received, form
from kipcheck.conformance.live.server.topics import Topic, Topics
from kipcheck.conformance.protocols.group.model.messages import EMPTY
from kipcheck.conformance.wire.bodies import layout_of

T = TypeVar("T")
BLOB = Value(lambda blob: b"" if blob == EMPTY else blob, lambda data: data or EMPTY)


class Bodies:
    def __init__(self, edition: Edition, topics: Topics) -> None:
        self.edition = edition
        self._values = {
            "error": Value(int, int), "blob": BLOB, "topic": SAME, "regex": SAME, "session": SAME, "timeout": SAME,
            "topic_id": Value(lambda name: topics.by_name[name].id, lambda id: _name(topics.by_id.get(id))),
        }  # fmt: skip

    def read(self, made: type[T], request: Received, **others: Any) -> tuple[str, T]:
        """The id of the group, and the request. ``others``: the fields that no message has."""
        layout = layout_of(made, request.version, form(self.edition, request.message))
        group: str = wire_form.named(made, layout, request.body)["group"]
        return group, wire_form.read(made, layout, request.body, Context(self._values), **others)

    def written(
        self, answer: Any, version: int, group: str = "", asked: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """``asked``: the body of the request, of whose rows the answer has one each."""
        message = wire_form.message_of(type(answer))
        layout = layout_of(type(answer), version, form(self.edition, message))
        return wire_form.write(answer, layout, Context(self._values, {"group": group}), asked)


def _name(topic: Topic | None) -> str:
    """Empty for a topic that does not exist."""
    return "" if topic is None else topic.name
