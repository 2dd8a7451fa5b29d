"""What ``kipcheck features plan`` prints of a plan."""

from collections.abc import Iterator, Mapping
from typing import Any

from kipcheck.conformance.protocols.features.upgrades import return_commands
from kipcheck.conformance.protocols.features.upgrades.upgrade_plan import Plan
from kipcheck.conformance.protocols.features.upgrades.ways_back import runs


def lines(plan: Plan) -> Iterator[str]:
    yield f"features from {plan.old} to {plan.new}"
    yield f"1. restart every broker and controller with {plan.new}, one by one"
    last = next((number for number, step in enumerate(plan.steps, 2) if not step.by.leads_back), None)
    for number, step in enumerate(plan.steps, 2):
        needs = f"; needs {step.needs}" if step.needs else ""
        undone = return_commands.after_it(step, plan.old)
        if last is not None and number > last:
            undone = f"; {'can' if step.lowered else 'cannot'} be lowered, and step {last} stays"
        yield f"{number}. raise {step.feature} from {step.before} to {step.after}{needs}{undone}"
        yield f"   $ {return_commands.raising(step)}"
    if not plan.steps:
        yield "no feature rises"
    kept = [step.feature for step in plan.steps if not step.lowered]
    yield f"cannot be undone: {', '.join(kept) or 'nothing'}"
    yield from return_commands.lines(plan.old, plan.new, plan.steps)
    yield f"explored: {plan.states} states and {plan.transitions} transitions, every order of restarts and updates"
    yield f"accepted before every node is new: {', '.join(plan.early) or 'nothing'}"
    if plan.unguarded:
        yield f"not guarded: {plan.unguarded}; finish step 1 first"
    else:
        yield "in every state each node supports every finalized level"


def as_json(plan: Plan) -> Mapping[str, Any]:
    return {
        "from": plan.old,
        "to": plan.new,
        "steps": [
            {"feature": step.feature, "before": step.before, "after": step.after, "needs": step.needs,
             "undone": step.undone, "commands": [return_commands.raising(step)],
             "way_back": return_commands.as_json(step.by, step, plan.new, runs(plan.old, plan.new, step.feature))}
            for step in plan.steps
        ],
        "explored": {"states": plan.states, "transitions": plan.transitions, "complete": True,
                     "early": [*plan.early], "unguarded": plan.unguarded},
    }  # fmt: skip
