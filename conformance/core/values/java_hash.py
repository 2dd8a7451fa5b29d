"""``String.hashCode``, by which Kafka places names in tables, and groups in partitions."""

from functools import lru_cache


@lru_cache(maxsize=4096)
def string_hash(text: str) -> int:
    """Unsigned. Its documentation specifies it: over the UTF-16 units of the text, which may be halves of a pair."""
    found = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        found = (31 * found + (high << 8 | low)) & 0xFFFFFFFF
    return found
