"""No module of kipcheck imports itself, not even through others."""

from collections.abc import Iterator, Mapping

import grimp

ASIDE = ("kipcheck.conformance.tests", "kipcheck.conformance.benchmarks")


def circles(imports: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """The strongly connected components of more than one module, sorted (Tarjan 1972, without recursion)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    for root in sorted(imports):
        work = [(root, iter(sorted(imports[root])))] if root not in number else []
        if work:
            number[root] = low[root] = len(number)
            stack.append(root)
        while work:
            module, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[module])
                if low[module] == number[module]:
                    at = stack.index(module)
                    if len(stack) - at > 1:
                        yield sorted(stack[at:])
                    del stack[at:]
            elif following not in number:
                number[following] = low[following] = len(number)
                stack.append(following)
                work.append((following, iter(sorted(imports[following]))))
            elif following in stack:
                low[module] = min(low[module], number[following])


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a", "g"}, "g": set()}
    assert sorted(circles(graph)) == [["a", "b", "c"], ["d", "e"]]


def test_no_import_leads_back_to_its_own_module() -> None:
    """Imports for type checkers and inside of functions count too.

    A package that imports its submodules is no circle, unless one of them imports a name of the package itself.
    """
    graph = grimp.build_graph("kipcheck", cache_dir=None)
    modules = {each for each in graph.modules if not each.startswith(ASIDE)}
    imports = {each: graph.find_modules_directly_imported_by(each) & modules for each in modules}
    assert len(imports) > 300
    assert list(circles(imports)) == []
