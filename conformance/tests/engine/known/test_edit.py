"""Narrowing an entry of a list: other lines, comments and the order stay, in every form that TOML has for a table."""

import tomllib

import pytest

from kipcheck.conformance.engine.known.edit import Update, without
from kipcheck.conformance.engine.known.files import parse
from kipcheck.conformance.engine.known.text import with_places

ENTRY = """\
[[{kind}]]
target = "odd"
versions = "1.0.0"
checks = ["wire/x"]
invariant = "wire/decodes"
shape = ["{shape}"]
reason = "This is a reason of four words."
link = "https://issues.apache.org/jira/browse/KAFKA-1"
expires = 2030-01-01
{where}
"""
ROWS = "[{kind}.where]\n# both\nA = '1'  # one\n\"B\" = '1-2' # two\n# the end"


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        (ROWS, '[deviation.where]\n# both\n"B" = "2" # two\n# the end'),
        ("where = { A = '1', B = \"1-2\" }  # inline", 'where = {  B = "2" }  # inline'),
        ("where.A = '1'\nwhere.B = '1-2' # two\n# the end", 'where.B = "2" # two\n# the end'),
        ("where.B = '1-2'\nseldom = true\nwhere.A = '1'", 'where.B = "2"\nseldom = true'),
    ],
)
@pytest.mark.parametrize("above", ["", "# About it.\n"])
def test_versions_change_and_subjects_go(above: str, where: str, wanted: str) -> None:
    text = above + ENTRY.format(kind="deviation", shape="x", where=where.replace("{kind}", "deviation"))
    entry = parse(text, "a.toml").entries[0]
    made = with_places(text, entry, {"A": None, "B": "2"})
    assert made.rstrip("\n") == (above + ENTRY.format(kind="deviation", shape="x", where=wanted)).rstrip("\n")
    assert tomllib.loads(made)["deviation"][0]["where"] == {"B": "2"}


def test_entries_of_both_kinds_keep_their_order() -> None:
    kinds = ("deviation", "flaky", "deviation", "flaky")
    texts = [
        f"# About {n}.\n"
        + ENTRY.format(kind=kind, shape=n, where=ROWS.format(kind=kind)).replace("wire/x", f"wire/{n}")
        for n, kind in enumerate(kinds)
    ]
    made = Update("\n".join(texts))
    entries = {each.checks[0]: each for each in parse(made.text, "a.toml").entries}
    without(made, entries["wire/3"], {("A", 1)}, set())
    without(made, entries["wire/2"], set(entries["wire/2"].exact_places), set())
    without(made, entries["wire/0"], {("A", 1), ("B", 1)}, set())
    less = [
        texts[0].replace("A = '1'  # one\n", "").replace("'1-2'", '"2"'),
        texts[1],
        texts[3].replace("A = '1'  # one\n", ""),
    ]
    assert made.text == "\n".join(less)
    assert (len(made.removed), len(made.narrowed)) == (1, 2)
