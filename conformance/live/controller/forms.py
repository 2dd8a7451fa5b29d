"""How a cluster in KRaft mode is formatted so that it has given levels, and how levels that a tool prints are read."""

from collections.abc import Mapping
from dataclasses import dataclass

from kipcheck.conformance.core.files.releases_table import table
from kipcheck.conformance.protocols.features.model.kraft_rules import KRAFT, METADATA, Rules


@dataclass(frozen=True, slots=True)
class Form:
    """How a cluster is formatted."""

    level: str
    """Of metadata.version, as tools write it."""
    options: tuple[str, ...]
    dynamic: bool


def form_of(rules: Rules, level: int, levels: Mapping[str, int]) -> Form:
    """A new cluster with these levels; a feature that is not named has level 0."""
    options: list[str] = []
    for name in rules.supported if rules.all_or_nothing else ():
        if name not in (METADATA, KRAFT):
            options += ["--feature", f"{name}={levels.get(name, 0)}"]
    dynamic = levels.get(KRAFT, 0) > 0
    names = table()["feature-levels"]["metadata-names"]
    return Form(names[level - 1], (*options, *(["--feature", f"{KRAFT}=1"] if dynamic else [])), dynamic)


def level_of(text: str) -> int:
    """A number; of metadata.version, its name."""
    names: list[str] = table()["feature-levels"]["metadata-names"]
    return int(text) if text.isdigit() else names.index(text) + 1
