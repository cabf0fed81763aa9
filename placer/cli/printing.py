"""Shared by commands: documents and lines on standard output and in files, progress, the console."""

from __future__ import annotations

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.base.errors import UsageError
from placer.base.text import legible, safe_lines, styled
from placer.base.version import API_VERSION
from placer.base.words import counted

if TYPE_CHECKING:
    from placer.answers.progress import Progress


#: Blanks at the end of a line, where styles may end behind them.
_TRAILING = re.compile(r" +((?:\x1b\[[0-9;]*m)*)(?=\n|\Z)")

FORMATS = ("json", "yaml", "wide", "name")  #: words after ``-o`` that are no files

COPIED = " " * 9  #: before options that people copy

PIPE_WIDTH = 140  #: columns of what is printed where standard output is no terminal

ENDINGS = (".json", ".yaml", ".yml", ".json.gz", ".yaml.gz", ".yml.gz")  #: of files that hold Kubernetes objects


def progress_of(options: argparse.Namespace, limit: float | None = None, began: float | None = None) -> Progress:
    """Progress of a command; ``limit``: seconds of all of it. ``began``: None: with the call."""
    from placer.answers.progress import Progress

    return Progress(quiet=options.quiet, began=options.began if began is None else began, limit=limit)


class Interruptible:
    """A block that Ctrl-C ends early where it has answers; :meth:`again` raises it once more."""

    def __init__(self, done: Sized, count: int, noun: str) -> None:
        self._done, self._count, self._noun = done, count, noun
        self._error: BaseException | None = None

    def __enter__(self) -> Interruptible:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> bool:
        self._error = error if isinstance(error, KeyboardInterrupt) and len(self._done) else None
        return self._error is not None

    def again(self) -> None:
        """Raise the interrupt, where there was one, with the number of answers."""
        if self._error is not None:
            words = f"{len(self._done):,} of {counted(self._count, self._noun)} done"
            raise KeyboardInterrupt(words) from self._error


def headed(kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Give a document of placer's with its version and kind."""
    return {"apiVersion": API_VERSION, "kind": kind, **content}


def listed(kind: str, items: Iterable[Any]) -> dict[str, Any]:
    """Give a list of placer's."""
    return headed(kind, {"items": list(items)})


def tell(document: Any, options: argparse.Namespace, names: Iterable[str] | None = None) -> None:
    """Print a document, or several, in the format of ``-o``, else as JSON.

    ``names``: for ``-o name``; None: those of the entries; where there are none, :class:`UsageError`.
    """
    from placer.kube.manifests.writing import to_json, to_yaml

    if options.format == "name":
        text = "".join(f"{each}\n" for each in dict.fromkeys(_names_in(document) if names is None else names))
    else:
        text = to_yaml(document) if options.format == "yaml" else to_json(document)
    sys.stdout.write(text)


def put_or_tell(document: Any, options: argparse.Namespace, names: Iterable[str] | None = None) -> bool:
    """Write and print what ``-o`` and ``--json`` ask for; whether text is still wanted."""
    aloud = options.output == "-"
    if options.output and not aloud:
        write(document, options.output)
    if options.json or aloud:
        tell(document, options, names)
    return not (options.json or aloud)


def check_output(options: argparse.Namespace) -> None:
    """Refuse before the work a file of ``-o`` that could not be written."""
    writable([Path(options.output)] if options.output not in (None, "-") else [])


def _names_in(document: Any) -> Iterator[str]:
    if not isinstance(document, Mapping):
        entries: Iterable[Any] = document
    else:
        entries = next((document[key] for key in _ENTRIES if isinstance(document.get(key), (list, tuple))), [document])
    for each in entries:
        yield _name_of(each)


#: Where a document may have its entries.
_ENTRIES = ("items", "groups", "domains", "checks", "violations")


def _name_of(entry: Any) -> str:
    if isinstance(entry, Mapping):
        group = entry.get("group", entry)
        if isinstance(group, Mapping) and {"kind", "namespace", "name"} <= set(group):
            return f"{group['kind'].lower()}/{group['namespace']}/{group['name']}"
        if "metadata" in entry:
            head, where = str(entry.get("kind", "object")).lower(), entry["metadata"]
            return "/".join(filter(None, (head, where.get("namespace"), where.get("name"))))
        if "subjects" in entry:
            return ", ".join(map(str, entry["subjects"]))
        for key in ("policy", "name", "check"):
            if isinstance(entry.get(key), str):
                return str(entry[key])
    raise UsageError("-o name: found a document whose entries have no names, expected json, yaml or wide")


def put(documents: Any, options: argparse.Namespace, as_json: bool = False) -> None:
    """Write objects to the file of ``-o``, or print them, as YAML where no format is asked for."""
    if options.output not in (None, "-"):
        write(documents, options.output)
    elif options.format == "name":
        tell(documents, options)
    else:
        write(documents, "-", as_json=options.format == "json" or (as_json and options.format != "yaml"))


def write(document: Any, target: str, as_json: bool | None = True) -> None:
    """Write to a file by its ending; to standard output as JSON, which YAML readers take too."""
    from placer.kube.manifests import dump

    with written(target):
        dump(document, target, as_json=as_json if target == "-" else None)


@contextmanager
def written(target: str) -> Iterator[None]:
    """Report, as a fault, a file that the block cannot write."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {error.strerror}") from error


def writable(targets: Sequence[Path], endings: tuple[str, ...] = ENDINGS) -> None:
    """Refuse before the work, not after it, where the result could not be written."""
    for target in targets:
        if not target.name.endswith(endings):
            formats = "" if target.suffix else f", or one of the formats {', '.join(FORMATS)}"
            raise UsageError(f"{target}: found no known ending, expected one of {', '.join(endings)}{formats}")
        if not target.absolute().parent.is_dir():
            raise UsageError(f"{target}: found no folder {target.absolute().parent}, expected one")
        new = not target.exists()
        with written(str(target)):
            target.open("ab").close()
        if new:
            target.unlink()


def say(lines: Iterable[str]) -> None:
    """Print lines, wrapped; commands to be copied remain whole for a shell."""
    terminal = console()
    wraps = sys.stdout.isatty() or "COLUMNS" in os.environ
    for line in map(legible, lines):
        wrap = _wrapped_options if line.startswith(COPIED) else _wrapped
        terminal.print(wrap(line, terminal.width) if wraps else line, markup=False, soft_wrap=True)


def _wrapped(line: str, width: int) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(line, width, subsequent_indent=f"{indent}  ", break_on_hyphens=False, break_long_words=False)


def _wrapped_options(line: str, width: int) -> str:
    first, *options = line.strip().replace(" --", "\n--").split("\n")
    lines = [COPIED + first]
    for option in options:
        if len(lines[-1]) + len(option) + 3 > width:
            lines[-1] += " \\"
            lines.append(COPIED + option)
        else:
            lines[-1] += f" {option}"
    return "\n".join(lines)


def console() -> Any:
    """Make the console of standard output, of the terminal's width, of ``COLUMNS``, or a fixed one."""
    from rich.console import Console
    from rich.segment import Segment

    class LegibleConsole(Console):
        def render(self, *arguments: Any, **options: Any) -> Iterator[Segment]:
            for text, style, control in super().render(*arguments, **options):
                yield Segment(text if control else safe_lines(text), style, control)

        def _render_buffer(self, buffer: Iterable[Segment]) -> str:
            return _TRAILING.sub(r"\1", super()._render_buffer(buffer))

    asked = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = None if asked else PIPE_WIDTH
    # What stands between colons is a name, of a function or a label, and no emoji.
    return LegibleConsole(file=styled(sys.stdout), width=width, highlight=False, emoji=False)
