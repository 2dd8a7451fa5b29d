"""Starts the child process in an environment without kipcheck: makes the package importable, then runs ``child``.

Only ``kipcheck`` becomes importable, not the packages beside it, which may hold another release of the client under
test. The package is three folders above this file; the path is not resolved, since in a checkout it contains a link.
"""

import importlib.util
import runpy
import sys
from pathlib import Path


def main() -> None:
    root = Path(__file__).absolute().parents[3]
    spec = importlib.util.spec_from_file_location(
        "kipcheck", root / "__init__.py", submodule_search_locations=[str(root)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["kipcheck"] = package
    spec.loader.exec_module(package)
    runpy.run_module("kipcheck.conformance.targets.transport.child", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
