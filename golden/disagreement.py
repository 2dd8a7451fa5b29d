"""The error that stops making vectors."""


class Disagreement(Exception):
    """A jar and the layout interpret a value differently: no file is written."""
