"""What stops the making of vectors."""


class Disagreement(Exception):
    """A jar and the layout do not mean the same: nothing is written."""
