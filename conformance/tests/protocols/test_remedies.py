"""Every statement tells how it is mended, and no remedy is left of one that is gone."""

import re
import tomllib
from importlib.resources import files

from kipcheck.conformance.core.files.remedies import remedies
from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.tests.support.loops import for_each


def test_every_requirement_has_a_remedy_and_no_remedy_is_a_stranger() -> None:
    assert list(remedies()) == list(requirements())


def test_a_remedy_says_nothing_but_what_it_means_and_how_it_is_mended() -> None:
    listed = tomllib.loads((files("kipcheck.conformance") / "remedies.toml").read_text("utf-8"))
    for entry in listed.pop("failures"):
        assert entry.keys() <= {"invariant", "shape", "subject", "fix", "of"} and ("fix" in entry) != ("of" in entry)
    assert {key for each in listed.values() for key in each} == {"fix", "means"}


@for_each(requirements())
def test_a_remedy_is_a_few_sentences_of_its_own(id: str) -> None:
    remedy, text = remedies()[id], requirements()[id].text
    for stated in filter(None, (remedy.fix, remedy.means)):
        assert 25 <= len(stated) <= 420, stated
        assert stated[0].isupper() and stated.endswith("."), stated
        assert not re.search(r"\b(TODO|FIXME|TBD)\b|  ", stated)
        assert stated not in text and text not in stated, "it repeats the statement"


def test_no_two_remedies_are_the_same() -> None:
    fixes = [each.fix for each in remedies().values()]
    assert len(set(fixes)) == len(fixes)


def test_what_a_remedy_points_to_exists() -> None:
    named = {
        (id, other) for id, each in remedies().items()
        for other in re.findall(r"\b(?:\d{3}|grp|card)-\d{2,3}\b", each.fix + each.means)
    }  # fmt: skip
    assert named and all(other in requirements() and other != id for id, other in named)
