"""The error of this package: a layout refuses bytes or a value."""

from typing import Final

CLASSES: Final = {
    "truncated": "the bytes end inside a field",
    "length": "a length or count runs past the end of the bytes, or is too large for its place",
    "varint": "a varint longer than it may be, or than its number needs",
    "null": "null where the layout has no null",
    "boolean": "a boolean that is neither 0 nor 1",
    "presence": "a presence byte that is neither -1 nor 1",
    "text": "bytes that are no UTF-8, or text that has no UTF-8",
    "tag": "tagged fields out of order, twice, or of another size than they say",
    "trailing": "bytes after the end of the message",
    "json": "text that is no JSON, or an object with a key twice",
    "missing": "an object without a key that must be there",
    "version": "a leading version that is not the one asked for",
    "type": "a value of another type than the field's",
    "range": "a number outside the field's range",
    "unknown-field": "a key that the layout does not know",
    "absent-field": "a value other than the default for a field that this version lacks",
    "checksum": "a checksum that the bytes do not have: of record batches",
}
"""Class of refusal -> its meaning."""


class Refused(ValueError):
    """A refusal: message, version, path and offset, and what is wrong."""

    def __init__(self, kind: str, why: str, *, message: str, version: int, path: str = "", offset: int | None = None):
        self.kind = kind
        """One of ``CLASSES``."""
        self.why = why
        self.message = message
        self.version = version
        self.path = path
        """``protocols[1].metadata``; empty for the message itself."""
        self.offset = offset
        """Offset of the byte where the error is detected; None while encoding."""
        super().__init__(str(self))

    def moved(self, offset: int) -> "Refused":
        """The same, of bytes that begin ``offset`` bytes later."""
        at = None if self.offset is None else self.offset + offset
        return Refused(self.kind, self.why, message=self.message, version=self.version, path=self.path, offset=at)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.kind, self.why, self.message, self.version, self.path, self.offset)

    def __str__(self) -> str:
        where = f"{self.message} v{self.version}" + (f" / {self.path}" if self.path else "")
        return f"{where}{'' if self.offset is None else f' at byte {self.offset}'}: {self.why}"


def _restore(kind: str, why: str, message: str, version: int, path: str, offset: int | None) -> Refused:
    return Refused(kind, why, message=message, version=version, path=path, offset=offset)
