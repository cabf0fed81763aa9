"""Pages of the repository in the documentation site from where they are: nothing is copied.

For MkDocs every file has the path that it has in the repository, so that a link works on the site as it does in the
repository. What a page links to and is no page itself, such as a manifest, comes along as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
#: Where pages are beside ``docs/``; each of them stands in the navigation, or the build fails.
FOLDERS = ("models", "deploy", "instances")
_LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")


def pages() -> Iterator[Path]:
    """Pages that are not below ``docs/``."""
    yield from sorted(ROOT.glob("*.md"))
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.md"))


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Give every file its path in the repository; add the pages that lie elsewhere and what pages link to."""
    docs = Path(config.docs_dir)
    found = Files([])
    for file in files:
        source = file.abs_src_path
        below = source is not None and Path(source).is_relative_to(docs)
        found.append(_file(config, Path(str(source)), file.dest_uri) if below else file)
    for path in pages():
        found.append(_file(config, path, _target(path)))
    for page in [file for file in found if file.is_documentation_page()]:
        for path in _linked(Path(str(page.abs_src_path))):
            uri = path.relative_to(ROOT).as_posix()
            if found.get_file_from_path(uri) is None:
                found.append(_file(config, path, uri))
    return found


def _file(config: MkDocsConfig, path: Path, target: str) -> File:
    file = File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path))
    file.dest_uri = target
    file.generated_by = None  # it is a file of the repository: MkDocs is to tell faults in it as such
    return file


def _target(path: Path) -> str:
    """Path of a page in the site; a README is the index of its folder, but for that of the root."""
    uri = path.relative_to(ROOT).with_suffix(".html")
    if uri.stem != "README":
        return uri.as_posix()
    return "readme.html" if uri.parent == Path() else (uri.parent / "index.html").as_posix()


def _linked(page: Path) -> Iterator[Path]:
    """Files of the repository that a page links to and that are not pages."""
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        path = (page.parent / link).resolve()
        if "://" not in link and path.suffix != ".md" and path.is_relative_to(ROOT) and path.is_file():
            yield path
