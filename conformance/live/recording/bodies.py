"""Reads requests, and writes answers, as their classes have them."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kipcheck.conformance.core.operations import wire_form
from kipcheck.conformance.core.operations.wire_form import SAME, Context, Value
from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.live.recording.received import Received, form
from kipcheck.conformance.live.server.topics import Topics
from kipcheck.conformance.protocols.group.model.messages import EMPTY
from kipcheck.conformance.wire.bodies import layout_of

T = TypeVar("T")
BLOB = Value(lambda blob: b"" if blob == EMPTY else blob, lambda data: data or EMPTY)


class Bodies:
    """``unknown``: the name of the topic with an id that ``topics`` have not; empty by default."""

    def __init__(
        self, edition: Edition, topics: Topics, blob: Value = BLOB, unknown: Callable[[uuid.UUID], str] = lambda id: ""
    ) -> None:
        self.edition = edition
        self.topics = topics
        self._values = {
            "error": Value(int, int), "blob": blob, "topic": SAME, "regex": SAME, "session": SAME, "timeout": SAME,
            "internal_topic": SAME,
            "topic_id": Value(lambda name: topics.by_name[name].id, self._name), "number": Value(SAME.write, len),
        }  # fmt: skip
        self._unknown = unknown

    def _name(self, id: uuid.UUID) -> str:
        topic = self.topics.by_id.get(id)
        return self._unknown(id) if topic is None else topic.name

    def read(self, made: type[T], request: Received) -> tuple[str, T]:
        """The id of the group, and the request."""
        layout = layout_of(made, request.version, form(self.edition, request.message))
        group: str = wire_form.named(made, layout, request.body)["group"]
        return group, wire_form.read(made, layout, request.body, Context(self._values))

    def written(
        self, answer: Any, version: int, group: str = "", asked: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """``asked``: the body of the request, of whose rows the answer has one each."""
        message = wire_form.message_of(type(answer))
        layout = layout_of(type(answer), version, form(self.edition, message))
        return wire_form.write(answer, layout, Context(self._values, {"group": group}), asked)
