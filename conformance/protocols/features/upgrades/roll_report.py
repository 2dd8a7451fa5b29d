"""What ``kipcheck roll`` prints of a roll."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from kipcheck.conformance.protocols.features.upgrades import return_commands
from kipcheck.conformance.protocols.features.upgrades.roll import FAILS, IGNORES, READS, Change, Roll, Step
from kipcheck.conformance.protocols.features.upgrades.ways_back import INTER_BROKER, By


def lines(roll: Roll) -> Iterator[str]:
    by = "" if roll.edition == "apache" else f", as {roll.edition} proposes"
    yield f"roll from {roll.old} to {roll.new}, {'KRaft' if roll.mode == 'kraft' else 'ZooKeeper'}{by}"
    if roll.assumed:
        yield f"assumed: {roll.assumed}"
    for number, step in enumerate(roll.steps):
        yield f"{number}. {step.does}"
        if number == 0:
            yield "   writes " + ", ".join(f"{format} {version}" for format, version in step.writes.items())
        else:
            yield from (f"   {line}" for line in _step_lines(roll, number, step))
            if number <= roll.last_undone + 1:  # there is no way back from later steps, whatever these would allow
                yield from (f"   {line}" for line in _way_lines(roll, step))
    yield from _last_lines(roll)
    if roll.keeps.startswith("below"):
        yield f"an {INTER_BROKER} {roll.keeps} keeps the way back to {roll.old}"
    if roll.unguarded:
        yield f"not guarded: {roll.unguarded}; finish step 1 first"


def _step_lines(roll: Roll, number: int, step: Step) -> Iterator[str]:
    if step.raised is not None:
        yield f"$ {return_commands.raising(step.raised)}"
    elif number == 1 and step.settings:
        yield "with " + ", ".join(f"{name}={value}" for name, value in step.settings.items())
    yield from (_change_text(change, roll.old) for change in step.changes)
    if not step.changes:
        yield "writes the same formats"
    if step.raised is not None and not step.raised.lowered:
        yield f"{step.raised.feature} cannot be lowered again"


def _way_lines(roll: Roll, step: Step) -> Iterator[str]:
    match step.by:
        case By.SNAPSHOT:
            yield f"WAIT FOR A SNAPSHOT on the way back: before it, {roll.old} ends, although the level is lowered"
        case By.KEPT:
            yield f"{roll.old} runs with it"
        case By.NOT_RUN:
            yield f"UNKNOWN whether {roll.old} comes back after this step: not run with these releases"
    if step.by is not By.NOT_RUN and (shown := return_commands.evidence(step.runs, step.raised is not None)):
        yield shown


def _last_lines(roll: Roll) -> Iterator[str]:
    last = roll.last_undone
    if last == len(roll.steps) - 1:
        waits = [str(number) for number, step in enumerate(roll.steps) if step.by is By.SNAPSHOT]
        wait = f"; step {', '.join(waits)} only after the WAIT below" if waits else ""
        yield f"every step can be undone; the last one is {last}{wait}"
    elif roll.steps[last + 1].by is By.NOT_RUN:
        yield f"last step that can be undone: {last or 'none'}; of step {last + 1} it is UNKNOWN"
    else:
        yield f"last step that can be undone: {last or 'none'}; step {last + 1} is the point of no return"
    undone = [step.raised for step in roll.steps[: last + 1] if step.raised is not None]
    yield from return_commands.lines(roll.old, roll.new, undone)


def _change_text(change: Change, old: str) -> str:
    does = {READS: f"{old} reads it", IGNORES: f"{old} ignores it", FAILS: f"{old} cannot read it"}
    if change.before is None:
        what = change.format if change.after is None else f"{change.format} {change.after}, new"
    else:
        what = f"{change.format} {change.before} -> {change.after}"
    return f"{what}: {does[change.old_release]}"


def as_json(roll: Roll) -> Mapping[str, Any]:
    return {
        "from": roll.old,
        "to": roll.new,
        "mode": roll.mode,
        "edition": roll.edition,
        "steps": [
            {
                "number": number,
                "does": step.does,
                "settings": dict(step.settings),
                "writes": dict(step.writes),
                "changes": [asdict(change) for change in step.changes],
                "undone": step.undone,
                "commands": [] if step.raised is None else [return_commands.raising(step.raised)],
                "way_back": return_commands.as_json(step.by, step.raised, roll.new, step.runs),
            }
            for number, step in enumerate(roll.steps)
        ],
        "last_undone": roll.last_undone,
        "keeps": roll.keeps,
        "unguarded": roll.unguarded,
        "assumed": roll.assumed,
    }
