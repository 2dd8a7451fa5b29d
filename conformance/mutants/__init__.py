"""Small targets with one planted defect each: the suite's own mutation test.

Each vice names the check and the invariant that have to catch it, on one subject, within the values that the check
draws by default, and what the case has to be shrunk to: the bytes of the guilty step, or its value where it has none;
a conversation in the shorthand of its machine; an ellipsis where that depends on chance.
"""

from importlib import import_module

from kipcheck.conformance.mutants.declare import VICES, Vice

__all__ = ["VICES", "Vice"]

for _family in (
    "codec",
    "controller",
    "leader",
    "sticky_leader",
    "mixed_leader",
    "nodes",
    "consumer_group",
    "member",
    "upgrade",
    "coordinator",
    "coordinator_facts",
    "streams_leaders",
    "streams_members",
):
    import_module(f"{__name__}.{_family}")
