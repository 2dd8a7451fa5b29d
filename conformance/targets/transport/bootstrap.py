"""The child of an environment without kipcheck: run by its path, it makes importable what kipcheck's child needs.

Only ``kipcheck`` becomes visible, not what lies beside it: another release of the client under test may. The package
is three folders above this file as it was named, for in a checkout there is a link between them.
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
