"""``known update``: what it changes in a list, and that it leaves the rest to the letter."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from importlib import metadata
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run as command
from kipcheck.conformance.core.ledger import Campaign, Ledger
from kipcheck.conformance.engine.execution.run import Options
from kipcheck.conformance.engine.known.edit import Update, updated
from kipcheck.conformance.engine.known.files import InvalidKnownFile
from kipcheck.conformance.tests.support.ledgers import campaigned
from kipcheck.conformance.tests.support.odd_client import ENTRY, LINK, REASON, SOME, Defect, Held, off_by_one, refused

TODAY = date(2026, 11, 21)
CAMPAIGN = Campaign.of(campaigned()["campaigns"][0])


MADE_BY = f'made_by = "kipcheck {metadata.version("kipcheck")}"\n'
HEAD = 'target = "odd"\n' + MADE_BY
"""Of a list that this kipcheck made: a new place or shape is news about the client."""


def rewritten(text: str, *ledgers: Ledger, today: date = TODAY) -> Update:
    return updated(text, "odd.toml", ledgers, None, today)


def uncounted(text: str) -> str:
    return re.sub(r"^cases = \d+\n", "", text, flags=re.MULTILINE)


def with_everything(ledger: Ledger) -> Ledger:
    """With a header that leaves nothing out."""
    options = ledger.header.options.update(checks=("*",), messages=("*",))
    return replace(ledger, header=ledger.header.update(options=options))


def whole(options: Options, executed: Held, defects: Mapping[int, Defect]) -> Ledger:
    """Of a run that left nothing out, as far as its header tells."""
    _, ledger = executed(replace(options, known=()), defects)
    return with_everything(ledger)


def test_a_list_is_begun_from_a_run_and_refused_until_it_is_filled_in(options: Options, executed: Held) -> None:
    made = rewritten("", whole(options, executed, SOME))
    assert (len(made.added), made.removed, made.narrowed) == (1, [], [])
    listed = Path(options.known[0])
    listed.write_text(made.text)
    assert executed(options)[0].exit_code == 2
    filled = made.text.replace('link = "TODO"', f'link = "{LINK}"')
    assert "TODO: HeartbeatRequest v" in filled
    listed.write_text("\n".join(f'reason = "{REASON}"' if "TODO" in line else line for line in filled.splitlines()))
    outcome, _ = executed(options)
    assert (outcome.exit_code, outcome.known) == (0, 1)
    assert rewritten(listed.read_text(), whole(options, executed, SOME)).text == listed.read_text()


COMMENTED = f"""\
# What odd does otherwise.
target = "odd"   # the one in our cellar
made_by = "kipcheck {metadata.version("kipcheck")}" # then

# The first of them,
# in two lines.
[[deviation]]
checks = ["wire/two-readings"]
invariant = "wire/decodes"   # and nothing else
versions = "1.0.0-1.9.9"
shape = ["misread", "int32", "int", "int"]
reason = '''{REASON}
[[deviation]] is no heading here.'''
link = "{LINK}"
[deviation.where]
# Both of these:
HeartbeatRequest = "1-3"  # since 0.9
HeartbeatResponse = '0'

# About another one.
[[deviation]]
checks=["wire/two-readings"]
invariant="wire/decodes"
versions="1.0.0-1.9.9"
shape=["refused", "text", "it takes no generation"]
reason="{REASON}"
link="{LINK}"
where = {{ HeartbeatRequest = "0, 4" }}  # inline

# The end.
"""


def test_the_rest_of_a_list_is_left_to_the_letter(options: Options, executed: Held) -> None:
    text = COMMENTED.replace("HeartbeatResponse = '0'\n", "").replace('"0, 4"', '"0"')
    unchanged = rewritten(text, whole(options, executed, {**SOME, 0: refused}))
    assert uncounted(unchanged.text) == text and unchanged.text.count("\ncases = ") == 2
    fewer = rewritten(text, whole(options, executed, {1: off_by_one, 3: off_by_one, 0: refused}))
    assert uncounted(fewer.text) == text.replace('"1-3"  # since', '"1, 3"  # since')
    assert (fewer.added, fewer.removed, len(fewer.narrowed)) == ([], [], 1)


def test_entries_and_places_that_are_gone_are_struck_off(options: Options, executed: Held) -> None:
    made = rewritten(COMMENTED, whole(options, executed, {**SOME, 4: refused}))
    assert uncounted(made.text) == COMMENTED.replace("HeartbeatResponse = '0'\n", "").replace('"0, 4"', '"4"')
    made = rewritten(COMMENTED, whole(options, executed, SOME))
    begin, end = COMMENTED.index("# About another one."), COMMENTED.index("# The end.")
    assert uncounted(made.text).startswith(COMMENTED[:begin].replace("HeartbeatResponse = '0'\n", ""))
    assert "another one" not in made.text and "inline" not in made.text and len(made.removed) == 1
    assert end > begin


def test_what_never_decides_is_not_added(options: Options, executed: Held) -> None:
    ledger = whole(options, executed, SOME)
    noted = ledger.failures[0].update(grade="INFO")
    assert rewritten("", replace(ledger, lines={**ledger.lines, "failure": [noted]})).added == []


def test_a_failure_that_spreads_is_added_where_it_is_new(options: Options, executed: Held) -> None:
    text = HEAD + ENTRY
    made = rewritten(text, whole(options, executed, {**SOME, 4: off_by_one}))
    assert made.text.startswith(text) and len(made.added) == 1 and 'link = "TODO"' in made.text
    assert made.text.endswith('[deviation.where]\nHeartbeatRequest = "4"\n')


def test_a_changed_reason_is_struck_off_and_added(options: Options, executed: Held) -> None:
    made = rewritten(HEAD + ENTRY, whole(options, executed, {**SOME, 2: refused}))
    assert 'HeartbeatRequest = "1, 3"' in made.text and 'HeartbeatRequest = "2"' in made.text
    assert (len(made.narrowed), len(made.added)) == (1, 1)


def test_what_the_lists_of_the_run_itself_said_does_not_count(options: Options, executed: Held) -> None:
    _, ledger = executed(options)
    assert ledger.failures[0].known is not None
    assert len(rewritten("", with_everything(ledger)).added) == 1


def test_what_the_run_left_out_is_left(options: Options, executed: Held) -> None:
    text = 'target = "odd"\n' + ENTRY.replace("HeartbeatRequest", "SyncGroupRequest")
    _, ledger = executed(replace(options, known=()), {})
    assert rewritten(text, ledger).text == text


def test_what_a_person_has_to_decide_is_left_and_told(options: Options, executed: Held) -> None:
    text = HEAD + ENTRY.replace("[deviation.where]", "expires = 2020-01-01\n[deviation.where]")
    made = rewritten(text, whole(options, executed, SOME), whole(replace(options, seed=1), executed, SOME))
    assert uncounted(made.text) == text and made.left == ["odd.toml:4: expired: it expired on 2020-01-01: review it"]


def test_ledgers_that_prove_nothing_are_refused(options: Options, executed: Held) -> None:
    text, ledger = HEAD + ENTRY, whole(options, executed, SOME)
    assert rewritten("", whole(replace(options, seed=5), executed, SOME)).text.startswith('target = "odd"\nseed = 5\n')
    with pytest.raises(InvalidKnownFile, match="use --target with one of its targets: odd"):
        updated(text, "odd.toml", [ledger], "even", TODAY)
    with pytest.raises(InvalidKnownFile, match="cut short"):
        rewritten(text, replace(ledger, lines={"target": ledger.targets}))
    with pytest.raises(InvalidKnownFile, match="its failures are of format 1, in which they have other shapes"):
        rewritten(text, ledger, replace(ledger, header=ledger.header.without("failure_format")))
    with pytest.raises(InvalidKnownFile, match=r"it is about edition kip-584, but .* about edition apache"):
        rewritten('edition = "kip-584"\n' + text, ledger)
    other = replace(ledger, lines={**ledger.lines, "target": [ledger.targets[0].update(version="1.2.4")]})
    with pytest.raises(InvalidKnownFile, match=r"odd 1\.2\.3, but odd 1\.2\.4 in"):
        rewritten(text, ledger, other)


# ---- several seeds


def recorded(options: Options, executed: Held, seeds: Mapping[int, Mapping[int, Defect]]) -> list[Ledger]:
    """Runs whose failures differ with the seed."""
    return [whole(replace(options, seed=seed), executed, defects) for seed, defects in seeds.items()]


SEEDS = {0: SOME, 1: {2: off_by_one, 4: off_by_one}, 2: {3: off_by_one, 4: off_by_one, 0: off_by_one}}


@pytest.mark.integration
def test_places_that_show_with_another_seed_are_added_as_seldom_and_nothing_is_removed(
    options: Options, executed: Held, listed: Path
) -> None:
    ledgers = recorded(options, executed, {1: SEEDS[1], 0: SEEDS[0], 2: SEEDS[2]})
    made = rewritten(HEAD + ENTRY, *ledgers)
    assert (made.added, made.removed, made.narrowed, made.left) == ([], [], [], [])
    assert len(made.explained) == len(made.widened) == 1
    exact, seldom = tomllib.loads(made.text)["deviation"]
    assert (exact["where"], exact["cases"]) == ({"HeartbeatRequest": "1-3"}, ledgers[1].failures[0].cases)
    assert (seldom["where"], seldom["seldom"], "cases" in seldom) == ({"HeartbeatRequest": "0, 4"}, True, False)
    assert (seldom["reason"], seldom["link"], seldom["shape"]) == (REASON, LINK, exact["shape"])
    listed.write_text(made.text)
    for seed, defects in SEEDS.items():
        outcome, ledger = executed(replace(options, seed=seed), defects)
        assert (outcome.exit_code, outcome.known, len(ledger.stale)) == (0, 1, 0)
    assert rewritten(made.text, *recorded(options, executed, SEEDS)).text == made.text
    assert executed(options, {**SOME, 0: off_by_one})[0].exit_code == 0, (
        "a seldom one may show with the list's own seed"
    )


def test_a_seldom_failure_that_shows_with_the_lists_own_seed_is_held_to_the_letter_from_then_on(
    options: Options, executed: Held
) -> None:
    seldom = ENTRY.replace("reason", "seldom = true\nreason").replace('"1-3"', '"0, 4"')
    whole_of_it = {**SOME, 0: off_by_one, 4: off_by_one}
    ledger = whole(options, executed, {0: off_by_one, 4: off_by_one})
    made = rewritten(HEAD + seldom, ledger)
    assert made.text == HEAD + seldom.replace("seldom = true\n", f"cases = {ledger.failures[0].cases}\n")
    ledger = whole(options, executed, {**SOME, 4: off_by_one})
    made = rewritten(HEAD + ENTRY + seldom, ledger)
    found = [(each["where"], each.get("cases")) for each in tomllib.loads(made.text)["deviation"]]
    assert found == [({"HeartbeatRequest": "1-4"}, ledger.failures[0].cases), ({"HeartbeatRequest": "0"}, None)]
    assert (made.added, made.explained) == ([], [])
    made = rewritten(HEAD + ENTRY, whole(replace(options, seed=1), executed, {}), whole(options, executed, whole_of_it))
    assert len(made.added) == 1, "a seldom entry has to name the place: else it is news"


def test_a_shape_that_another_seed_shows_is_to_be_explained_and_names_what_it_may_be(
    options: Options, executed: Held
) -> None:
    made = rewritten(HEAD + ENTRY, whole(replace(options, seed=1), executed, {2: refused}))
    assert len(made.added) == 1 and made.removed == made.narrowed == []
    assert f"# Perhaps as misread, int32, int, int: {REASON} {LINK}\n[[deviation]]" in made.text
    assert tomllib.loads(made.text)["deviation"][1]["seldom"] is True


def test_a_campaign_adds_to_a_list_that_runs_made(options: Options, executed: Held) -> None:
    ledger = whole(replace(options, seed=9), executed, {**SOME, 4: off_by_one})
    about = replace(ledger, header=ledger.header.update(campaigns=(CAMPAIGN,)))
    made = rewritten(HEAD + ENTRY, about)
    assert [each["where"] for each in tomllib.loads(made.text)["deviation"]] == [
        {"HeartbeatRequest": "1-3"},
        {"HeartbeatRequest": "4"},
    ]
    assert made.text.count("seldom = true") == 1 and "cases" not in made.text


# ---- the list of another kipcheck


def coarse(*shapes: str, link: str = LINK) -> str:
    entry = ENTRY.replace('"misread", "int32", "int", "int"', ", ".join(f'"{each}"' for each in shapes))
    return entry.replace(LINK, link)


def test_other_shapes_of_another_kipcheck_keep_reason_and_link(options: Options, executed: Held, listed: Path) -> None:
    for head in ('target = "odd"\n', HEAD.replace("kipcheck ", "kipcheck 0.0.")):
        made = rewritten(head + coarse("misread"), whole(options, executed, {**SOME, 2: refused}))
        assert (made.added, len(made.explained), len(made.removed)) == ([], 2, 1)
        assert made.text.startswith(HEAD) and "TODO" not in made.text
        assert {(each["reason"], each["link"]) for each in tomllib.loads(made.text)["deviation"]} == {(REASON, LINK)}
        listed.write_text(made.text)
        assert executed(options, {**SOME, 2: refused})[0].exit_code == 0


def test_the_nearest_of_several_entries_gives_the_reason(options: Options, executed: Held) -> None:
    other = "https://github.com/odd/client/issues/8"
    old = coarse("misread", "int32", "x") + coarse("refused", "x", link=other)
    made = rewritten('target = "odd"\n' + old, whole(options, executed, {**SOME, 2: refused}))
    links = {each["shape"][0]: each["link"] for each in tomllib.loads(made.text)["deviation"]}
    assert links == {"misread": LINK, "refused": other} and made.added == []


def test_where_several_entries_fit_equally_a_person_decides(options: Options, executed: Held) -> None:
    other = "https://github.com/odd/client/issues/8"
    made = rewritten('target = "odd"\n' + coarse("a") + coarse("b", link=other), whole(options, executed, SOME))
    assert (len(made.added), made.explained, len(made.removed)) == (1, [], 2)
    assert f"# Perhaps as a: {REASON} {LINK}\n# Perhaps as b: {REASON} {other}\n[[deviation]]" in made.text
    same = rewritten('target = "odd"\n' + coarse("a") + coarse("b"), whole(options, executed, SOME))
    assert same.added == [] and "Perhaps" not in same.text, "one reason is enough, wherever it is from"


def test_another_invariant_or_place_lends_no_reason(options: Options, executed: Held) -> None:
    for old in (coarse("a").replace('"1-3"', '"0"'), coarse("a").replace("wire/decodes", "wire/reads-back")):
        made = rewritten('target = "odd"\n' + old, whole(options, executed, SOME))
        assert len(made.added) == 1 and "Perhaps" not in made.text


def test_the_commands(
    options: Options, executed: Held, listed: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    executed(replace(options, known=()))
    fresh = listed.with_name("fresh.toml")
    assert command(["known", "update", str(fresh), "--from", str(options.out)]) == 1
    assert "added     wire/decodes: HeartbeatRequest" in capsys.readouterr().out
    assert command(["known", "check", str(fresh)]) == 1
    assert "fresh.toml:8: reason must be written" in capsys.readouterr().err
    misspelt = listed.with_name("misspelt.toml")
    misspelt.write_text(listed.read_text().replace('"odd"', '"kafka-pyhton"'))
    assert command(["known", "check", str(misspelt)]) == 1
    assert "unknown target 'kafka-pyhton': did you mean 'kafka-python'?" in capsys.readouterr().err
    assert command(["known", "check", str(listed)]) == 0, "odd may be the name of a testee"
    assert command(["known", "update", str(listed), "--from", str(options.out)]) == 0
    executed(replace(options, known=(), seed=1, out=options.out.with_name("1")), {**SOME, 4: off_by_one})
    both = ["--from", str(options.out.with_name("1")), "--from", str(options.out)]
    assert command(["known", "update", str(fresh), *both]) == 1
    assert command(["known", "update", str(listed), *both]) == 0
    out = capsys.readouterr().out
    assert f"with reason and link of {listed}:3 (misread, int32, int, int)" in out
    assert command(["known", "list", str(listed), "--json"]) == 0
    row, more = json.loads(capsys.readouterr().out)["known"]
    assert (row["where"], row["reason"], row["entry"]) == ({"HeartbeatRequest": "1-3"}, REASON, f"{listed}:3")
    assert (more["where"], more["seldom"], more["cases"]) == ({"HeartbeatRequest": "4"}, True, None)
    assert command(["known", "list", str(listed)]) == 0
    assert LINK in capsys.readouterr().out
    assert command(["known", "update", str(listed), "--from", str(listed.parent / "absent")]) == 2
