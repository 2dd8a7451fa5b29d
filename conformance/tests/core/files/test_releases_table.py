"""The table of releases: complete, in order, and without a name that nothing reads."""

import re
from pathlib import Path

import pytest

import kipcheck
from kipcheck.conformance.core.files.releases_table import jar, jars, judges, listed, named, patches, since, span, table
from kipcheck.conformance.core.values.release import NEWEST, Release, judged_lines, lines, releases
from kipcheck.conformance.wire.schema import release_table

SECTIONS = (
    "behaviours", "coordinator", "consumer-coordinator", "streams-coordinator", "consumer", "streams", "controller",
)  # fmt: skip


def test_releases_are_in_order_and_belong_to_their_lines() -> None:
    numbers = [Release.parse(each) for each in patches()]
    assert numbers == sorted(set(numbers)) and patches()[-1] == NEWEST
    for line in table()["line"]:
        assert {each.rpartition(".")[0] for each in line["patches"]} == {line["name"]}
        assert set(line) <= {"name", "patches", "clients", "streams"}
        for part in ("clients", "streams"):
            assert set(line.get(part, ())) <= set(line["patches"])


def test_judges_are_on_maven_central() -> None:
    for part in ("clients", "streams"):
        there = releases(jars()[part])
        assert judges(part) and all(Release.parse(each) in there for each in judges(part))
    assert set(judged_lines("streams")) <= set(lines("streams"))
    assert [jar(part) for part in ("clients", "core")] == ["kafka-clients", "kafka_2.13"]


def test_the_newest_patch_of_each_line() -> None:
    assert lines()[0] == "0.10.0.1" and lines()[-1] == NEWEST and len(lines()) == len(table()["line"])
    assert "4.2.2" in lines() and "4.2.1" in lines("streams") and lines("streams")[-1] == "4.4.0"
    assert judged_lines("streams")[-1] == "4.3.1"


def test_what_is_named_is_a_release() -> None:
    there = set(patches())
    assert {named(each) for each in table()["names"]} <= there
    assert {each for name in table()["lists"] for each in listed(name)} <= there


@pytest.mark.parametrize("section", SECTIONS)
def test_spans_begin_and_end_at_releases(section: str) -> None:
    for name in table()[section]:
        assert releases(span(name, section)).spans, name
        ends = {each for part in span(name, section).split(",") for each in part.strip().rstrip("+").split("-")}
        later = {each for each in ends if Release.parse(each) > Release.parse(NEWEST)}
        odd = {each for each in ends - later if each not in patches() and each != "0.0.0" and not each.endswith(".99")}
        assert not odd, name


def test_the_first_release_with_a_behaviour() -> None:
    assert since("kip-848") == "4.0.0"
    with pytest.raises(ValueError, match="eager-streams has no single first release"):
        since("eager-streams")
    with pytest.raises(KeyError):
        since("unheard-of")


def test_versions_of_messages_change_at_releases() -> None:
    assert release_table()["releases"] == list(patches())
    assert {each for spans in release_table()["messages"].values() for each in spans} <= set(patches())


def test_everything_in_the_table_is_read() -> None:
    root = Path(kipcheck.__file__).parent
    tops = [(root / each).resolve() for each in ("conformance", "strategies", "golden")]
    paths = [each for top in tops for each in top.rglob("*.py") if each.name != Path(__file__).name]
    nightly = tops[0].parent / "noxfile.py"
    text = "\n".join(each.read_text("utf-8") for each in (*paths, nightly))
    names = [name for section in ("names", "lists", *SECTIONS) for name in table()[section]]
    read = set(re.findall(r'"([a-z0-9-]+)"', text))
    read |= {each.replace("_", "-") for each in re.findall(r"^    (\w+): bool$", text, re.MULTILINE)}
    assert [each for each in names if each not in read] == []
