"""What ``kipcheck features plan`` prints of a plan."""

from collections.abc import Iterator, Mapping
from typing import Any

from kipcheck.conformance.protocols.features.upgrades import return_commands
from kipcheck.conformance.protocols.features.upgrades.upgrade_plan import Plan
from kipcheck.conformance.protocols.features.upgrades.ways_back import runs


def lines(found: Plan) -> Iterator[str]:
    yield f"features from {found.old} to {found.new}"
    yield f"1. restart every broker and controller with {found.new}, one by one"
    last = next((number for number, each in enumerate(found.steps, 2) if not each.by.leads_back), None)
    for number, each in enumerate(found.steps, 2):
        needs = f"; needs {each.needs}" if each.needs else ""
        undone = return_commands.after_it(each, found.old)
        if last is not None and number > last:
            undone = f"; {'can' if each.lowered else 'cannot'} be lowered, and step {last} stays"
        yield f"{number}. raise {each.feature} from {each.before} to {each.after}{needs}{undone}"
        yield f"   $ {return_commands.raising(each)}"
    if not found.steps:
        yield "no feature rises"
    kept = [each.feature for each in found.steps if not each.lowered]
    yield f"cannot be undone: {', '.join(kept) or 'nothing'}"
    yield from return_commands.lines(found.old, found.new, found.steps)
    yield f"explored: {found.states} states and {found.transitions} transitions, every order of restarts and updates"
    yield f"accepted before every node is new: {', '.join(found.early) or 'nothing'}"
    if found.unguarded:
        yield f"not guarded: {found.unguarded}; finish step 1 first"
    else:
        yield "in every state each node supports every finalized level"


def as_json(found: Plan) -> Mapping[str, Any]:
    return {
        "from": found.old,
        "to": found.new,
        "steps": [
            {"feature": each.feature, "before": each.before, "after": each.after, "needs": each.needs,
             "undone": each.undone, "commands": [return_commands.raising(each)],
             "way_back": return_commands.as_json(each.by, each, found.new, runs(found.old, found.new, each.feature))}
            for each in found.steps
        ],
        "explored": {"states": found.states, "transitions": found.transitions, "complete": True,
                     "early": [*found.early], "unguarded": found.unguarded},
    }  # fmt: skip
