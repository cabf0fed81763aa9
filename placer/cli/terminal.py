"""Shared by commands: flags, reading an instance, writing files, the console."""

from __future__ import annotations

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.base.deadline import duration
from placer.base.errors import UsageError
from placer.base.text import legible, safe_lines, styled
from placer.base.version import API_VERSION
from placer.base.words import counted

if TYPE_CHECKING:
    from placer.answers.progress import Progress
    from placer.kube.manifests import Text
    from placer.passes.cluster import Snapshot
    from placer.problem import Instance
    from placer.problem.group_names import Selection
    from placer.problem.namespace_budget import NamespaceBudget

OK = 0

SECONDS = 60.0  #: of the whole call where no limit is given

#: Blanks at the end of a line, where styles may end behind them.
_TRAILING = re.compile(r" +((?:\x1b\[[0-9;]*m)*)(?=\n|\Z)")
CLUSTER = "cluster"  #: what the text is called that was read from one

FORMATS = ("json", "yaml", "wide", "name")  #: words after ``-o`` that are no files

COPIED = " " * 9  #: before options that people copy

PIPE_WIDTH = 140  #: columns of what is printed where standard output is no terminal

ENDINGS = (".json", ".yaml", ".yml", ".json.gz", ".yaml.gz", ".yml.gz")  #: of files that hold Kubernetes objects


def add_command(
    commands: Any, name: str, text: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    """Add a command; ``text`` is its help, a phrase; ``run`` returns the exit code."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.set_defaults(run=run)
    return parser


class _FilesAction(argparse.Action):
    def __call__(self, _parser: Any, namespace: argparse.Namespace, values: Any, _option: Any = None) -> None:
        more = [values] if isinstance(values, str) else values
        setattr(namespace, self.dest, [*getattr(namespace, self.dest), *more])


def add_inputs(
    parser: argparse.ArgumentParser, text: str, *, needed: bool, dest: str = "instance", metavar: str = "INSTANCE"
) -> None:
    """Add INSTANCE... and ``-f``, which is the same; ``needed``: there must be one."""
    files = parser.add_argument(dest, nargs="*", action=_FilesAction, default=[], metavar=metavar, help=text)
    files.needed = needed  # type: ignore[attr-defined]  # asked by the parser, for argparse would not count -f
    parser.add_argument(
        "-f", "--filename", dest=dest, action=_FilesAction, default=[], metavar="FILE", help=f"the same as {metavar}"
    )


def add_reading(parser: argparse.ArgumentParser, *, lenient: bool = False) -> None:
    """Add the flags of commands that read an instance; ``lenient``: and that may skip some of its objects."""
    group = parser.add_argument_group("reading")
    group.add_argument(
        "--scheduler-name",
        metavar="NAME",
        help="whose pending pods are ours, '*': any scheduler's (default: any; of a snapshot those it was taken for)",
    )
    group.add_argument("--strict", action="store_true", help="findings are errors (exit 3)")
    if lenient:
        group.add_argument(
            "--lenient",
            action="store_true",
            help="unreadable objects are findings, and their dependents wait, as in a cluster",
        )


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say which cluster."""
    group = parser.add_argument_group("cluster")
    group.add_argument(
        "--kubeconfig",
        metavar="FILE",
        help="default: KUBECONFIG, else ~/.kube/config, else the service account of the pod this runs in",
    )
    group.add_argument("--context", metavar="NAME", help="one of the kubeconfig's; default its current one")


def add_source(parser: argparse.ArgumentParser, *, lenient: bool = True) -> None:
    """Add INSTANCE, the flags of reading, and those of the cluster that is read without one."""
    add_inputs(parser, "files, folders or -; default: read the cluster", needed=False)
    add_reading(parser, lenient=lenient)
    add_cluster(parser)


def source_words(options: argparse.Namespace) -> list[str]:
    """Words of the command line with which another command reads the same; FILE for standard input."""
    flags = {"--kubeconfig": options.kubeconfig, "--context": options.context}
    flags["--scheduler-name"] = options.scheduler_name
    files = ("FILE" if str(each) == "-" else each for each in options.instance)
    return [*files, *(word for flag, value in flags.items() if value for word in (flag, value))]


def source(options: argparse.Namespace) -> Sequence[str | Text]:
    """The files, or the cluster's snapshot, with the pods of any scheduler, where none are given."""
    if not in_cluster(options):
        return list(options.instance)
    from placer.kube.manifests import Text
    from placer.problem import ANY_SCHEDULER

    text = BytesIO()
    snapshot(options, ANY_SCHEDULER).write_text(text)
    return [Text(CLUSTER, text.getvalue())]


def in_cluster(options: argparse.Namespace) -> bool:
    """Whether a cluster is read; files next to it are a :class:`UsageError`."""
    if options.instance and (options.kubeconfig is not None or options.context is not None):
        raise UsageError("--kubeconfig, --context: found INSTANCE with them, expected one or the other")
    return not options.instance


def snapshot(options: argparse.Namespace, scheduler_name: str = "placer") -> Snapshot:
    """Take a snapshot of the cluster; ``scheduler_name``: where the options name none."""
    from placer.passes.cluster import Client, take

    client = Client.connect(options.kubeconfig, options.context)
    with progress_of(options) as progress:
        name = options.scheduler_name or scheduler_name
        return take(client, name, lambda what, count: progress.phase(f"{what} {count:,}"))


def progress_of(options: argparse.Namespace, limit: float | None = None, began: float | None = None) -> Progress:
    """Progress of a command; ``limit``: seconds of all of it. ``began``: None: with the call."""
    from placer.answers.progress import Progress

    return Progress(quiet=options.quiet, began=options.began if began is None else began, limit=limit)


def add_time_limit(parser: Any, what: str = "of the whole call", default: float | None = SECONDS) -> None:
    """Add ``--time-limit``; ``parser`` may be a group of flags."""
    text = f"{what} (default 60)"
    parser.add_argument("--time-limit", type=duration, default=default, metavar="DURATION", help=text)


def add_workers(parser: Any) -> None:
    """Add the flags of the solver's threads and seed."""
    parser.add_argument("--workers", type=int, metavar="N", help="solver threads (default: the cores there are)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default 0")


def add_search_limits(parser: Any, what: str = "of the whole call") -> None:
    """Add the limits of a search, by time or by work."""
    add_time_limit(parser, what, None)
    parser.add_argument("--work-limit", type=float, metavar="N", help="deterministic work in place of time")
    add_workers(parser)


def time_limit_of(options: argparse.Namespace) -> float | None:
    """The limit of :func:`add_search_limits`; none where work is limited."""
    limit: float | None = options.time_limit
    return SECONDS if limit is None and options.work_limit is None else limit


def check_limit(options: argparse.Namespace) -> None:
    """Refuse a limit of time that is none."""
    from placer.search.search_limits import limit_faults

    if faults := limit_faults(options.time_limit):
        raise UsageError("; ".join(faults))


def namespace_budget(words: str, name: str = "--namespace-budget") -> NamespaceBudget | None:
    """The budget that an option states; a wrong one is a :class:`UsageError`."""
    from placer.problem.namespace_budget import parse_budget

    try:
        return parse_budget(words)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error


def add_what_if(parser: argparse.ArgumentParser) -> None:
    """Add the flags that change the instance before anything is decided."""
    edits = parser.add_argument_group("what if")
    edits.add_argument(
        "--with", dest="with_", action="append", default=[], metavar="FILE", help="add or replace objects"
    )
    edits.add_argument(
        "--without",
        action=_Edit,
        default=[],
        metavar="KIND/[NAMESPACE/]NAME",
        help="remove one; KIND[/NAMESPACE] --where SELECTOR: all with these labels",
    )
    edits.add_argument(
        "--set",
        dest="set_",
        action=_Edit,
        default=[],
        metavar="KIND/[NAMESPACE/]NAME:PATH=VALUE",
        help="change one field, such as podgroup/ml/train:spec.minMember=4; KIND[/NAMESPACE]:PATH=VALUE --where "
        "SELECTOR: of all with these labels",
    )
    edits.add_argument(
        "--where",
        action=_Where,
        default=argparse.SUPPRESS,
        metavar="SELECTOR",
        help="labels, as kubectl takes them, of the --without or --set before it: --without node --where rack=r7",
    )


def add_asking(parser: argparse.ArgumentParser, title: str = "which groups are shown") -> None:
    """Add the flags that say which groups are printed or asked about."""
    group = parser.add_argument_group(title)
    either = group.add_mutually_exclusive_group()
    either.add_argument("-n", "--namespace", metavar="NAMESPACE", help="those of one namespace (default: all)")
    either.add_argument("-A", "--all-namespaces", action="store_true", help="those of all namespaces, the default")
    group.add_argument("-l", "--selector", metavar="SELECTOR", help="those with such pods: app=train,tier!=web")


def selection(options: argparse.Namespace) -> Selection:
    """Give the groups that the flags of :func:`add_asking` select."""
    from placer.problem.group_names import Selection

    return Selection(options.namespace, options.selector)


def home_of(options: argparse.Namespace) -> str:
    """Find the namespace of names without one: the context's where a cluster is read."""
    from placer.problem.group_names import HOME

    if options.instance:
        return HOME
    from placer.passes.cluster.reading.credentials import context_namespace

    return context_namespace(options.kubeconfig, options.context) or HOME


class _Where(argparse.Action):
    """Takes a selector to the option before it that names objects."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        words = getattr(namespace, "edited", None)
        if not words or " --where " in words[-1]:
            parser.error(f"{option_string} {values}: expected a --without or --set before it, without a selector yet")
        words[-1] += f" --where {values}"


class _Edit(argparse.Action):
    def __call__(self, _parser: Any, namespace: argparse.Namespace, values: Any, _option: Any = None) -> None:
        words = [*getattr(namespace, self.dest), values]
        setattr(namespace, self.dest, words)
        namespace.edited = words


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


def is_edited(options: argparse.Namespace) -> bool:
    """Whether a *what if* was asked for."""
    return any(getattr(options, name, ()) for name in ("with_", "without", "set_"))


def read_instance(options: argparse.Namespace, paths: Sequence[str | Text], *, edited: bool = True) -> Instance:
    """Read an instance as the flags of reading and, if ``edited``, of *what if* say."""
    from placer.problem.reading import read

    asked = options if edited else argparse.Namespace()
    return read(
        *paths,
        scheduler_name=options.scheduler_name,
        strict=options.strict,
        lenient=getattr(options, "lenient", False),
        with_=getattr(asked, "with_", ()),
        without=getattr(asked, "without", ()),
        set_=getattr(asked, "set_", ()),
    )


class _OutputAction(argparse.Action):
    def __call__(self, _parser: Any, namespace: argparse.Namespace, values: Any, _option: Any = None) -> None:
        setattr(namespace, "format" if values in FORMATS else self.dest, values)


def add_output(parser: Any, text: str, default: str | None = None) -> None:
    """Add ``-o`` of a command that writes a file; ``text`` says which; ``parser`` may be a group of flags."""
    parser.add_argument(
        "-o",
        "--output",
        dest="output",
        action=_OutputAction,
        metavar="FILE|FORMAT",
        default=default,
        help=f"{text}; or how to print: {', '.join(FORMATS)}",
    )


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
        try:
            target.open("ab").close()
        except OSError as error:
            raise UsageError(f"{target}: cannot be written: {error.strerror}") from error
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
