"""Lists editions, exact releases, and the versions that each release supports."""

from collections.abc import Mapping
from typing import Any

from kipcheck.conformance.core.values.edition import EDITIONS, Standing, edition
from kipcheck.conformance.wire.log_file_layouts import log_file_messages
from kipcheck.conformance.wire.log_files import VERSIONS
from kipcheck.conformance.wire.schema import release_table, stable_versions
from kipcheck.conformance.wire.stored_records import first_release


def editions_table() -> dict[str, Any]:
    """``{"releases": {RELEASE: {"JoinGroup": [0, 9], ...}, ...}}``: stable versions, every exact release."""
    table = release_table()
    return {"releases": {release: _versions_by_family(release) for release in table["releases"]}}


def _versions_by_family(release: str) -> dict[str, list[int | None]]:
    found = {family: stable_versions(family, release) for family in release_table()["messages"]}
    supported = {family: [versions.low, versions.high] for family, versions in found.items() if versions}
    files = log_file_messages(edition(f"apache@{release}"))
    return {**supported, **{each: [VERSIONS[each], VERSIONS[each]] for each in files}}


def text() -> str:
    """Text for ``editions``: the editions by name, and the supported versions by release."""
    table = release_table()
    names = {f"apache@{table['releases'][0]} ... apache@{table['releases'][-1]}": "one exact release of Apache Kafka"}
    for each in EDITIONS.values():
        draft = each.standing is Standing.DRAFT
        names[each.name] = (
            f"a draft based on {each.release}" if draft else "every version that a release ever supported"
        )
    names |= {"jar:PATH": "the definitions in a jar", "maven:RELEASE": "the definitions in the jars of a release"}
    spans = {
        family: ", ".join(_since(release, span) for release, span in changes.items())
        for family, changes in table["messages"].items()
    }
    spans |= {file: f"{first_release(file)} {version}" for file, version in VERSIONS.items()}
    heading = "Stable versions; each range starts at the release named before it:"
    return "\n".join((*_columns(names), "", heading, *_columns(spans)))


def _columns(table: Mapping[str, str]) -> list[str]:
    width = max(map(len, table))
    return [f"{left:{width}}  {right}" for left, right in table.items()]


def _since(release: str, span: list[int] | None) -> str:
    if span is None:
        return f"{release} none"
    low, high = span
    return f"{release} {low}" if low == high else f"{release} {low}-{high}"
