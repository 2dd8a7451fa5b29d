"""Hooks of mkdocs: the navigation, with the findings by client, redirects of pages that moved, and what links of the
pages lead to outside ``docs``.

A link to a file of the repository leads to a copy below ``project/`` of the site: README, CONTRIBUTING and CHANGELOG
are pages there, with links of their own, and other files are copied as they are. A link to a file that does not exist
stays as it is, so that a strict build fails.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parents[3]
DOCS: Final = "conformance/docs"
PROJECT: Final = {name: f"project/{name.lower()}" for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")}
"""Pages of the repository outside ``docs``, and their places in the site."""
LINK: Final = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)\s#]+)(#[^)\s]*)?(?=\))")
FENCE: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
TARGET: Final = re.compile(r"^\| target \| (\S+)", re.MULTILINE)

GUIDES: Final = (
    "five-minutes", "test-your-client", "gate-your-ci", "plan-an-upgrade-of-streams", "run-a-night", "write-a-testee",
    "serve-a-broker", "read-a-failure", "report-a-false-alarm", "troubleshooting",
)  # fmt: skip
REFERENCE: Final = {
    "Targets": ("targets", "live-clients", "brokers", "testee"),
    "Runs": ("testing", "reports", "failures", "known", "ci/index", "campaigns", "scoreboard"),
    "Clusters and upgrades": ("inspect", "watch", "matrix", "records", "features", "stores"),
    "What is tested": ("groups", "coordinators", "compatible-coordinators", "assign", "assignments", "streams"),
}

MOVED: Final = {
    **{f"errands/{name}": f"guides/{name}" for name in GUIDES},
    "errands/glossary": "glossary",
    **{name: f"internals/{name}"
       for name in ("architecture", "declarations", "golden", "metadata", "mutants", "power", "style")},
}  # fmt: skip
"""Former places of pages: addresses in reports and elsewhere still lead to them."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    named = {name for names in REFERENCE.values() for name in names} | {"index", "glossary"}
    others = sorted({path.stem for path in (ROOT / DOCS).glob("*.md")} - named)
    internals = sorted(path.name for path in (ROOT / DOCS / "internals").glob("*.md"))
    config.nav = [
        {"Start": "index.md"},
        {"Guides": [f"guides/{name}.md" for name in GUIDES]},
        {"Reference": [{title: [f"{name}.md" for name in names]} for title, names in REFERENCE.items()]
                      + [f"{name}.md" for name in (*others, "glossary")]},
        {"Findings": ["findings/index.md", *({client: pages} for client, pages in findings().items())]},
        {"Project": [*PROJECT.values(), *(f"internals/{name}" for name in internals)]},
    ]  # fmt: skip
    return config


def findings() -> dict[str, list[str]]:
    """The pages about each client, by the name of its target."""
    by_client: dict[str, list[str]] = {}
    for path in sorted((ROOT / DOCS / "findings").glob("*.md")):
        if (target := TARGET.search(path.read_text("utf-8"))) is not None:
            by_client.setdefault(target[1], []).append(f"findings/{path.name}")
    return by_client


def on_files(files: Files, config: MkDocsConfig) -> Files:
    pages = [(f"{DOCS}/{file.src_uri}", file.content_string) for file in files.documentation_pages()]
    pages += [(name, (ROOT / name).read_text("utf-8")) for name in PROJECT]
    copied = {target for source, text in pages for target in links(source, text) if place(target) != target}
    for target in sorted({*copied, *PROJECT}):
        if files.get_file_from_path(place(target)) is None:
            files.append(File.generated(config, place(target), abs_src_path=str(ROOT / target)))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    for old, new in MOVED.items():
        path = Path(config.site_dir, f"{old}.html")
        path.parent.mkdir(exist_ok=True)
        target = posixpath.relpath(f"{new}.html", posixpath.dirname(old) or ".")
        path.write_text(
            f'<!doctype html><meta charset="utf-8"><title>Moved</title><meta http-equiv="refresh" content="0; '
            f'url={target}"><a href="{target}">This page has moved.</a>\n', "utf-8",
        )  # fmt: skip


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A head cell without a text is no head cell."""
    return html.replace("<th></th>", "<td></td>")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    uri = page.file.src_uri
    source = next((name for name, at in PROJECT.items() if at == uri), f"{DOCS}/{uri}")

    def rewritten(link: re.Match[str]) -> str:
        target = resolved(source, link[1])
        if not (ROOT / target).is_file():
            return link[0]
        return posixpath.relpath(place(target), posixpath.dirname(uri) or ".") + (link[2] or "")

    # A list directly below a paragraph is a list on GitHub; Python's Markdown needs an empty line.
    return outside_fences(markdown, lambda text: re.sub(r"^(?![-*\s|])(.+\n)(?=[-*] )", r"\1\n",
                                                        LINK.sub(rewritten, text), flags=re.MULTILINE))  # fmt: skip


def links(source: str, text: str) -> Iterator[str]:
    """The files of the repository that the page links to."""
    for link in LINK.finditer(FENCE.sub("", text)):
        if (ROOT / (target := resolved(source, link[1]))).is_file():
            yield target


def resolved(source: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def place(target: str) -> str:
    """The path in the site of a file of the repository."""
    if target.startswith(f"{DOCS}/"):
        return target.removeprefix(f"{DOCS}/")
    return PROJECT.get(target, f"project/{target}")


def outside_fences(text: str, change: Callable[[str], str]) -> str:
    parts, at = [], 0
    for fence in FENCE.finditer(text):
        parts += [change(text[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, change(text[at:])])
