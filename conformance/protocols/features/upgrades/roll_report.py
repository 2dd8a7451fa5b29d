"""What ``kipcheck roll`` prints of a roll."""

from collections.abc import Iterator, Mapping
from typing import Any

from kipcheck.conformance.protocols.features.upgrades import return_commands
from kipcheck.conformance.protocols.features.upgrades.roll import FAILS, IGNORES, READS, Change, Roll, Step
from kipcheck.conformance.protocols.features.upgrades.ways_back import INTER_BROKER, By


def lines(found: Roll) -> Iterator[str]:
    by = "" if found.edition == "apache" else f", as {found.edition} proposes"
    yield f"roll from {found.old} to {found.new}, {'KRaft' if found.mode == 'kraft' else 'ZooKeeper'}{by}"
    if found.assumed:
        yield f"assumed: {found.assumed}"
    for number, each in enumerate(found.steps):
        yield f"{number}. {each.does}"
        if number == 0:
            yield "   writes " + ", ".join(f"{format} {version}" for format, version in each.writes.items())
        else:
            yield from (f"   {line}" for line in _step_lines(found, number, each))
            if number <= found.last_undone + 1:  # there is no way back from later steps, whatever these would allow
                yield from (f"   {line}" for line in _way_lines(found, each))
    yield from _last_lines(found)
    if found.keeps.startswith("below"):
        yield f"an {INTER_BROKER} {found.keeps} keeps the way back to {found.old}"
    if found.unguarded:
        yield f"not guarded: {found.unguarded}; finish step 1 first"


def _step_lines(found: Roll, number: int, step: Step) -> Iterator[str]:
    if step.raised is not None:
        yield f"$ {return_commands.raising(step.raised)}"
    elif number == 1 and step.settings:
        yield "with " + ", ".join(f"{name}={value}" for name, value in step.settings.items())
    yield from (_change_text(each, found.old) for each in step.changes)
    if not step.changes:
        yield "writes the same formats"
    if step.raised is not None and not step.raised.lowered:
        yield f"{step.raised.feature} cannot be lowered again"


def _way_lines(found: Roll, step: Step) -> Iterator[str]:
    match step.by:
        case By.SNAPSHOT:
            yield f"WAIT FOR A SNAPSHOT on the way back: before it, {found.old} ends, although the level is lowered"
        case By.KEPT:
            yield f"{found.old} runs with it"
        case By.NOT_RUN:
            yield f"UNKNOWN whether {found.old} comes back after this step: not run with these releases"
    if step.by is not By.NOT_RUN and (shown := return_commands.evidence(step.runs, step.raised is not None)):
        yield shown


def _last_lines(found: Roll) -> Iterator[str]:
    last = found.last_undone
    if last == len(found.steps) - 1:
        waits = [str(number) for number, each in enumerate(found.steps) if each.by is By.SNAPSHOT]
        wait = f"; step {', '.join(waits)} only after the WAIT below" if waits else ""
        yield f"every step can be undone; the last one is {last}{wait}"
    elif found.steps[last + 1].by is By.NOT_RUN:
        yield f"last step that can be undone: {last or 'none'}; of step {last + 1} it is UNKNOWN"
    else:
        yield f"last step that can be undone: {last or 'none'}; step {last + 1} is the point of no return"
    undone = [each.raised for each in found.steps[: last + 1] if each.raised is not None]
    yield from return_commands.lines(found.old, found.new, undone)


def _change_text(change: Change, old: str) -> str:
    does = {READS: f"{old} reads it", IGNORES: f"{old} ignores it", FAILS: f"{old} cannot read it"}
    if change.before is None:
        what = change.format if change.after is None else f"{change.format} {change.after}, new"
    else:
        what = f"{change.format} {change.before} -> {change.after}"
    return f"{what}: {does[change.old_release]}"


def as_json(found: Roll) -> Mapping[str, Any]:
    return {
        "from": found.old,
        "to": found.new,
        "mode": found.mode,
        "edition": found.edition,
        "steps": [
            {
                "number": number,
                "does": each.does,
                "settings": dict(each.settings),
                "writes": dict(each.writes),
                "changes": [
                    {"format": one.format, "before": one.before, "after": one.after, "old_release": one.old_release}
                    for one in each.changes
                ],
                "undone": each.undone,
                "commands": [] if each.raised is None else [return_commands.raising(each.raised)],
                "way_back": return_commands.as_json(each.by, each.raised, found.new, each.runs),
            }
            for number, each in enumerate(found.steps)
        ],
        "last_undone": found.last_undone,
        "keeps": found.keeps,
        "unguarded": found.unguarded,
        "assumed": found.assumed,
    }
