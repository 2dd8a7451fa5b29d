"""As on a machine that lacks the extra ``spark``."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import kipcheck.conformance.campaign.report
from kipcheck.conformance.campaign.report import arrow


@contextmanager
def without_arrow() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in [each for each in sys.modules if each.partition(".")[0] == "pyarrow"]:
            patch.delitem(sys.modules, name)
        patch.setitem(sys.modules, "pyarrow", None)
        patch.delitem(sys.modules, arrow.__name__)
        patch.delattr(kipcheck.conformance.campaign.report, "arrow")
        yield
