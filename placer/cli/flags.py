"""Shared by commands: flags, and the instance that they ask for."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from placer.base.deadline import duration
from placer.base.errors import UsageError
from placer.cli.printing import FORMATS, progress_of

if TYPE_CHECKING:
    from placer.kube.manifests import Text
    from placer.passes.cluster import Snapshot
    from placer.problem import Instance
    from placer.problem.group_names import Selection
    from placer.problem.namespace_budget import NamespaceBudget


OK = 0

SECONDS = 60.0  #: of the whole call where no limit is given

CLUSTER = "cluster"  #: what the text is called that was read from one


def add_command(commands: Any, name: str, text: str, run: str = "", description: str = "") -> argparse.ArgumentParser:
    """Add a command; ``text`` is its help, a phrase; ``run``: ``MODULE:FUNCTION`` that carries it out."""
    about = description or f"{text[0].upper()}{text[1:]}."
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=about)
    parser.set_defaults(run=run)
    return parser


def option(parser: Any, flag: str, metavar: str, text: str, **more: Any) -> Any:
    """Add an option with a value, or a positional argument; ``parser`` may be a group of flags."""
    return parser.add_argument(flag, metavar=metavar, help=text, **more)


def switch(parser: Any, flag: str, text: str, **more: Any) -> None:
    """Add an option without a value."""
    parser.add_argument(flag, action="store_true", help=text, **more)


def add_inputs(
    parser: argparse.ArgumentParser, text: str, *, needed: bool, dest: str = "instance", metavar: str = "INSTANCE"
) -> None:
    """Add INSTANCE... and ``-f``, which is the same; ``needed``: there must be one."""
    files = option(parser, dest, metavar, text, nargs="*", action="extend", default=[])
    files.needed = needed  # asked by the parser, for argparse would not count -f
    same = f"the same as {metavar}"
    parser.add_argument("-f", "--filename", dest=dest, action="append", default=[], metavar="FILE", help=same)


def add_reading(parser: argparse.ArgumentParser, *, lenient: bool = False) -> None:
    """Add the flags of commands that read an instance; ``lenient``: and that may skip some of its objects."""
    group = parser.add_argument_group("reading")
    text = "whose pending pods are ours, '*': any scheduler's (default: any; of a snapshot those it was taken for)"
    option(group, "--scheduler-name", "NAME", text)
    switch(group, "--strict", "findings are errors (exit 3)")
    if lenient:
        switch(group, "--lenient", "unreadable objects are findings, and their dependents wait, as in a cluster")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say which cluster."""
    group = parser.add_argument_group("cluster")
    text = "default: KUBECONFIG, else ~/.kube/config, else the service account of the pod this runs in"
    option(group, "--kubeconfig", "FILE", text)
    option(group, "--context", "NAME", "one of the kubeconfig's; default its current one")


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


def add_time_limit(parser: Any, what: str = "of the whole call", default: float | None = SECONDS) -> None:
    """Add ``--time-limit``; ``parser`` may be a group of flags."""
    option(parser, "--time-limit", "DURATION", f"{what} (default 60)", type=duration, default=default)


def add_workers(parser: Any) -> None:
    """Add the flags of the solver's threads and seed."""
    option(parser, "--workers", "N", "solver threads (default: the cores there are)", type=int)
    option(parser, "--seed", "N", "default 0", type=int, default=0)


def add_search_limits(parser: Any, what: str = "of the whole call") -> None:
    """Add the limits of a search, by time or by work."""
    add_time_limit(parser, what, None)
    option(parser, "--work-limit", "N", "deterministic work in place of time", type=float)
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
    option(edits, "--with", "FILE", "add or replace objects", dest="with_", action="append", default=[])
    text = "remove one; KIND[/NAMESPACE] --where SELECTOR: all with these labels"
    option(edits, "--without", "KIND/[NAMESPACE/]NAME", text, action=_Edit, default=[])
    text = (
        "change one field, such as podgroup/ml/train:spec.minMember=4; KIND[/NAMESPACE]:PATH=VALUE --where SELECTOR: "
    )
    text += "of all with these labels"
    option(edits, "--set", "KIND/[NAMESPACE/]NAME:PATH=VALUE", text, dest="set_", action=_Edit, default=[])
    text = "labels, as kubectl takes them, of the --without or --set before it: --without node --where rack=r7"
    option(edits, "--where", "SELECTOR", text, action=_Where, default=argparse.SUPPRESS)


def add_asking(parser: argparse.ArgumentParser, title: str = "which groups are shown") -> None:
    """Add the flags that say which groups are printed or asked about."""
    group = parser.add_argument_group(title)
    either = group.add_mutually_exclusive_group()
    either.add_argument("-n", "--namespace", metavar="NAMESPACE", help="those of one namespace (default: all)")
    either.add_argument("-A", "--all-namespaces", action="store_true", help="those of all namespaces, the default")
    group.add_argument("-l", "--selector", metavar="SELECTOR", help="those with such pods: app=train,tier!=web")
    option(group, "--queue", "QUEUE", "those of one Queue, or of one below it")


def selection(options: argparse.Namespace) -> Selection:
    """Give the groups that the flags of :func:`add_asking` select."""
    from placer.problem.group_names import Selection

    return Selection(options.namespace, options.selector, options.queue)


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
