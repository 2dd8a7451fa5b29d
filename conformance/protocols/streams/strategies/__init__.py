"""Scripts for Streams groups."""

from kipcheck.conformance.protocols.streams.strategies.scripts import mixed_streams_scripts, streams_scripts

CONVERSATIONS = {"streams": streams_scripts, "streams-mixed": mixed_streams_scripts}
