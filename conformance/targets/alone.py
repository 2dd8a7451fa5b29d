"""The child of an environment without kipcheck: run by its path, it makes importable what kipcheck's child needs.

Only ``conformance`` becomes visible, not what lies beside it: another release of the client under test may.
"""

import importlib.util
import runpy
import sys
from pathlib import Path


def main() -> None:
    root = Path(__file__).resolve().parents[1]
    spec = importlib.util.spec_from_file_location(
        "conformance", root / "__init__.py", submodule_search_locations=[str(root)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["conformance"] = package
    spec.loader.exec_module(package)
    runpy.run_module("conformance.targets.child", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
