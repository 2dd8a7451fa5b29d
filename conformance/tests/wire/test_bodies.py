"""Values of messages at places."""

import pytest

from kipcheck.conformance.core.operations.wire_form import SAME, Context, Unfit, Value
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.bodies import values_in

OFFSETS = {
    "throttleTimeMs": 0,
    "topics": [
        {"name": "t", "partitions": [
            {"partitionIndex": number, "errorCode": 0, "timestamp": -1, "offset": 10 * number, "leaderEpoch": -1}
            for number in (0, 1)
        ]},
        {"name": "u", "partitions": []},
    ],
}  # fmt: skip
ROWS = "topics[].name", "topics[].partitions[].partitionIndex", "topics[].partitions[].offset"


def test_rows_and_single_values_are_read_at_their_places() -> None:
    body = layout("apache", "ListOffsetsResponse", 6).decode(layout("apache", "ListOffsetsResponse", 6).encode(OFFSETS))
    assert values_in("ListOffsetsResponse", 6, body, ROWS, "throttleTimeMs") == ((("t", 0, 0), ("t", 1, 10)), 0)
    with pytest.raises(Unfit, match="2 topics in place of one"):
        values_in("ListOffsetsResponse", 6, body, "topics[0].name")


def test_a_version_without_a_field_has_its_default_or_that_of_the_other_place() -> None:
    found = {"errorCode": 15, "nodeId": -1, "host": "", "port": -1}
    place = ("coordinators[].errorCode | errorCode",)
    assert values_in("FindCoordinatorResponse", 0, found, place, "throttleTimeMs") == (((15,),), 0)
    several = {"coordinators": [{**found, "errorCode": code} for code in (15, 16)]}
    assert values_in("FindCoordinatorResponse", 4, several, place) == (((15,), (16,)),)


def test_values_are_converted_by_the_context() -> None:
    body = {"topics": [{"errorCode": 0, "name": "t", "partitions": [{}, {}]}]}
    context = Context({"number": Value(SAME.write, len)})
    (rows,) = values_in(
        "MetadataResponse", 5, body, ("topics[].name", "topics[].partitions as number"), context=context
    )
    assert rows == (("t", 2),)
