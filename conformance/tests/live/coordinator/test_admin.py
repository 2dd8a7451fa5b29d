"""What is read of a running broker by hand, without a schema."""

import pytest

from kipcheck.conformance.live.connections.connections import Garbled
from kipcheck.conformance.live.coordinator.admin import Reader


def test_a_response_in_the_layout_of_another_version_names_its_request() -> None:
    # ApiVersions 4 in answer to 0: a count in one byte, in place of four.
    body = Reader(b"\0\0\x02\0\x12\0\0\0\4\0\0\0\0\0", "ApiVersions v0")
    assert body.number("h") == 0 and body.number("i") > 1
    with pytest.raises(Garbled, match=r"the response to ApiVersions v0 has 14 bytes .* the layout of another version"):
        while True:
            body.number("h")
