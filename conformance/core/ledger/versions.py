"""Versions as text: ``0-4, 6``."""

from collections.abc import Iterable, Mapping


def spans(numbers: Iterable[int]) -> str:
    """``0-4, 6``."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{low}-{high}" if low != high else str(low) for low, high in found)


def numbers(spans: str) -> set[int]:
    """The versions in a text that ``spans`` wrote."""
    found: set[int] = set()
    for each in filter(None, spans.split(", ")):
        low, _, high = each.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return found


def where_of(places: Iterable[tuple[str, int | None]]) -> dict[str, str]:
    """Subject -> versions as ``spans``, of subjects with a version or None; sorted by subject."""
    found: dict[str, set[int]] = {}
    for subject, version in places:
        found.setdefault(subject, set()).update(() if version is None else (version,))
    return {subject: spans(versions) for subject, versions in sorted(found.items())}


def places_of(where: Mapping[str, str]) -> list[tuple[str, int | None]]:
    """The reverse of ``where_of``: subjects and versions, one by one."""
    return [
        (subject, version) for subject, versions in where.items() for version in (sorted(numbers(versions)) or (None,))
    ]
