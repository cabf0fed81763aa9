"""The command line: arguments, progress, exit codes (contract.md). What a command needs is imported when it runs."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import placer
from placer.errors import BadInstance, NothingFound, PlacerError, UsageError
from placer.solve import METHODS

if TYPE_CHECKING:
    from placer.instance import Instance

__all__ = ["main"]

OK, VIOLATIONS, REQUIRE_ALL_NOT_MET = 0, 1, 5
INTERRUPTED = 130  #: Ctrl-C before there was an answer, as shells expect it

SAME_WISH = 1.0  #: seconds within which signals are one and the same

PIPE_WIDTH = 140  #: columns of the summary where standard output is no terminal


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments
        Without the program's name; default ``sys.argv[1:]``.

    Returns
    -------
    int
        The exit code of contract.md.
    """
    began = time.monotonic()
    options = _parser().parse_args(arguments)
    options.began = began
    with _heeded_signals():
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    """Run the chosen command; what it raises on purpose becomes a message and an exit code."""
    try:
        run: Callable[[argparse.Namespace], int] = options.run
        code = run(options)
        sys.stdout.flush()
    except PlacerError as error:
        _complain(error, options.json)
        return error.exit_code
    except KeyboardInterrupt:
        print("placer: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone; nobody is left to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    return code


@contextlib.contextmanager
def _heeded_signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM interrupt, once: timeout(1) and wrappers signal us and then our whole group, and the
    second signal of one wish must not cost the answer that the first one asked for.
    """
    last = -math.inf

    def interrupt(*_: object) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > SAME_WISH:
            last = now
            raise KeyboardInterrupt

    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    for each, handler in before.items():
        if handler != signal.SIG_IGN:  # a job in the background of a script does not heed Ctrl-C
            signal.signal(each, interrupt)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _complain(error: PlacerError, as_json: bool) -> None:
    if as_json:
        faults = [
            {name: getattr(fault, name) for name in ("file", "document", "object", "field", "found", "expected")}
            for fault in (error.faults if isinstance(error, BadInstance) else ())
        ]
        document = {"error": type(error).__name__, "message": str(error), "faults": faults}
        print(json.dumps(document, indent=2), file=sys.stderr)
    else:
        print(f"placer: {error}", file=sys.stderr)


# ---------------------------------------------------------------------------------------------------------------- flags


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="placer",
        description="Place the whole pending queue of a Kubernetes cluster at once, and prove how good the answer is.",
        epilog="`placer COMMAND --help` tells more. Exit codes: 0 answered, 1 violations or a bug, 2 usage, 3 bad "
        "instance, 4 nothing found in time, 5 --require-all not met, 6 cluster error.",
    )
    parser.add_argument("--version", action="version", version=f"placer {placer.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_solve(commands)
    _add_verify(commands)
    _add_expand(commands)
    _add_generate(commands)
    return parser


def _command(commands: Any, name: str, text: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.add_argument("--json", action="store_true", help="the machine-readable form of what is printed")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(run=run)
    return parser


def _add_reading(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reading")
    group.add_argument("--scheduler-name", metavar="NAME", help="whose pending pods are ours (default: any)")
    group.add_argument("--strict", action="store_true", help="findings are errors (exit 3)")


def _add_solve(commands: Any) -> None:
    parser = _command(commands, "solve", "decide, print a summary, write a Placement", _solve)
    parser.add_argument("instance", nargs="+", metavar="INSTANCE", help="files, folders or - (YAML, JSON, gzip)")
    _add_reading(parser)
    search = parser.add_argument_group("searching")
    search.add_argument("--method", choices=METHODS, default="auto", help="default auto: never worse than greedy")
    search.add_argument("--time-limit", type=float, metavar="SECONDS", help="of the whole call (default 60)")
    search.add_argument("--work-limit", type=float, metavar="N", help="deterministic work in place of time")
    search.add_argument("--workers", type=int, metavar="N", help="solver threads (default: the cores there are)")
    search.add_argument("--seed", type=int, default=0, metavar="N", help="default 0")
    search.add_argument(
        "--milp-solver", default="HiGHS", metavar="NAME", help="PuLP's name of the solver of --method milp (HiGHS)"
    )
    search.add_argument("--require-all", action="store_true", help="exit 5 unless every pending pod was placed")
    edits = parser.add_argument_group("what if")
    edits.add_argument(
        "--with", dest="with_", action="append", default=[], metavar="FILE", help="add or replace objects"
    )
    edits.add_argument("--without", action="append", default=[], metavar="KIND/[NAMESPACE/]NAME", help="remove one")
    edits.add_argument("--set", dest="set_", action="append", default=[], metavar="KIND/[NAMESPACE/]NAME:PATH=VALUE")
    output = parser.add_argument_group("writing")
    output.add_argument(
        "-o", dest="output", metavar="FILE", help="the Placement: .json, .yaml, each also .gz; - is stdout"
    )
    output.add_argument("--bindings", metavar="FILE", help="the bindings as a v1 List of v1 Bindings, in plan order")


def _add_verify(commands: Any) -> None:
    parser = _command(commands, "verify", "judge any placement, print every violation", _verify)
    parser.add_argument("instance", nargs="+", metavar="INSTANCE", help="files, folders or -")
    parser.add_argument("placement", metavar="PLACEMENT", help="a Placement, or a List of v1 Bindings; - is stdin")
    _add_reading(parser)


def _add_expand(commands: Any) -> None:
    parser = _command(commands, "expand", "print the PodGroups and Pods that workloads would make", _expand)
    parser.add_argument("instance", nargs="+", metavar="INSTANCE", help="files, folders or -")
    _add_reading(parser)
    parser.add_argument(
        "-o", dest="output", metavar="FILE", default="-", help="where to write; default standard output"
    )


def _add_generate(commands: Any) -> None:
    from placer.generate import FAMILIES

    parser = _command(commands, "generate", "make an instance from a seed", _generate)
    families = parser.add_subparsers(dest="family", metavar="FAMILY", required=True)
    for name, family in FAMILIES.items():
        one = families.add_parser(name, help=family.text, description=family.text)
        one.add_argument(
            "-o", dest="output", metavar="FILE", default="-", help="where to write; default standard output"
        )
        for option in family.flags:
            if option.switch:
                one.add_argument(option.flag, dest=f"option_{option.name}", action="store_true", help=option.text)
            else:
                text = f"{option.text} ({option.expected}; default {_shown(option.default)})"
                one.add_argument(option.flag, dest=f"option_{option.name}", metavar="N", help=text.replace("%", "%%"))


def _shown(default: object) -> str:
    return ",".join(map(str, default)) if isinstance(default, tuple) else str(default)


# ------------------------------------------------------------------------------------------------------------- commands


def _read(options: argparse.Namespace, paths: Sequence[str]) -> Instance:
    from placer.read import read

    return read(
        *paths,
        scheduler_name=options.scheduler_name,
        strict=options.strict,
        with_=getattr(options, "with_", ()),
        without=getattr(options, "without", ()),
        set_=getattr(options, "set_", ()),
    )


def _solve(options: argparse.Namespace) -> int:
    from placer.document import bindings_document, placement_document
    from placer.progress import Progress
    from placer.solve import solve

    if options.output == options.bindings == "-":
        raise UsageError("-o - --bindings -: found two documents for standard output, expected one")
    targets = [Path(target) for target in (options.output, options.bindings) if target not in (None, "-")]
    _writable(targets)
    with Progress(quiet=options.quiet, began=options.began, limit=_time_limit(options)) as progress:
        progress.phase("reading")
        instance = _read(options, options.instance)
        progress.knows(instance)
        result = solve(
            instance,
            method=options.method,
            time_limit=_time_limit(options),
            work_limit=options.work_limit,
            workers=options.workers,
            seed=options.seed,
            require_all=options.require_all,
            milp_solver=options.milp_solver,
            began=options.began,
            watch=progress.point,
        )
    if result.placement is None:
        raise NothingFound(f"{result.method} found nothing before it had to stop ({result.termination})")
    document = placement_document(result).as_dict()
    if options.bindings:
        _write(bindings_document(result.placement), options.bindings)
    if options.output:
        _write(document, options.output)
    printed = "-" in (options.output, options.bindings)  # standard output has its one document then
    if options.json and not printed:
        _write(document, "-")
    elif not printed:
        from placer.summary import print_summary

        print_summary(result, _console())
    return REQUIRE_ALL_NOT_MET if options.require_all and not result.everything_placed else OK


def _time_limit(options: argparse.Namespace) -> float | None:
    if options.time_limit is None:
        return None if options.work_limit is not None else 60.0
    limit: float = options.time_limit
    return limit


def _verify(options: argparse.Namespace) -> int:
    from placer.read import read_placement
    from placer.score import score
    from placer.summary import print_findings, print_violations
    from placer.verify import verify

    instance = _read(options, options.instance)
    placement = read_placement(options.placement)
    violations = verify(instance, placement)
    if options.json:
        document = {
            "valid": not violations,
            "violations": [
                {"rule": v.rule, "subjects": list(v.subjects), "amount": v.amount, "message": v.message}
                for v in violations
            ],
            "objective": [
                {"name": v.name, **({} if v.priority is None else {"priority": v.priority}), "value": v.value}
                for v in score(instance, placement)
            ],
            "findings": [{"code": f.code, "object": f.object, "message": f.message} for f in instance.findings],
        }
        print(json.dumps(document, indent=2))
    else:
        console = _console()
        print_violations(instance, len(placement.bindings), violations, console)
        print_findings(instance.findings, console)
    return VIOLATIONS if violations else OK


def _expand(options: argparse.Namespace) -> int:
    from placer.read import read_expansion

    documents, findings = read_expansion(options.instance, strict=options.strict)
    _write(documents, options.output, as_json=options.json or None)
    for finding in findings:
        print(f"placer: {finding.code} {finding.object}: {finding.message}", file=sys.stderr)
    return OK


def _generate(options: argparse.Namespace) -> int:
    from placer.generate import FAMILIES, bindings, generate

    flags = {option.name: option for option in FAMILIES[options.family].flags}
    given = {name: getattr(options, f"option_{name}") for name in flags}
    values = {
        name: value if flags[name].switch else flags[name].parse(value)
        for name, value in given.items()
        if value not in (None, False)
    }
    _writable([Path(options.output)] if options.output != "-" else [])
    made = generate(options.family, **values)
    _write({"apiVersion": "v1", "kind": "List", "items": made.documents}, options.output)
    if options.output != "-":
        if made.planted is not None:
            _write(bindings(made), _beside(options.output))
        print(", ".join(f"{name} {number:,}" for name, number in made.summary.items()))
    return OK


def _write(document: Any, target: str, as_json: bool | None = True) -> None:
    """Write to a file by its ending; to standard output as JSON, which YAML readers take too."""
    from placer.manifests import dump

    try:
        dump(document, target, as_json=as_json if target == "-" else None)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {error.strerror}") from error


def _beside(output: str) -> str:
    """``queue.json.gz`` to ``queue.planted.json.gz``: where the planted placement goes."""
    path = Path(output)
    endings = "".join(path.suffixes[-2:] if path.suffix == ".gz" else path.suffixes[-1:])
    return str(path.with_name(path.name.removesuffix(endings) + ".planted" + endings))


def _writable(targets: Sequence[Path]) -> None:
    """Refuse before the work, not after it, where the result could not be written."""
    endings = (".json", ".yaml", ".yml", ".json.gz", ".yaml.gz", ".yml.gz")
    for target in targets:
        if not target.name.endswith(endings):
            raise UsageError(f"{target}: found no known ending, expected one of {', '.join(endings)}")
        if not target.absolute().parent.is_dir():
            raise UsageError(f"{target}: found no folder {target.absolute().parent}, expected one")
        new = not target.exists()
        try:
            target.open("ab").close()
        except OSError as error:
            raise UsageError(f"{target}: cannot be written: {error.strerror}") from error
        if new:
            target.unlink()


def _console() -> Any:
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False)


if __name__ == "__main__":
    sys.exit(main())
