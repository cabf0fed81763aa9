"""Plan and carry out runs: each the whole call as a user makes it, in its own process, so that time and memory are its
own.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import resource
import shlex
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.base.errors import PlacerError, StrictFindings, UsageError
from placer.base.executors import open_executor
from placer.base.text import found_like
from placer.base.version import __version__
from placer.lab.deciders import NAMES, Asked, PeakOfTree, apart, ask, configuration_of, faults_of, high_water
from placer.lab.generate import FAMILIES, Option
from placer.lab.own_policies import OwnFunction, OwnPolicy, Proposal, load, parse
from placer.lab.sweep.machine import this_machine
from placer.lab.sweep.records import KEY, Key, KnownAnswer, RunRecord
from placer.problem.result import WEIGHT, Judged, Termination, Verdict
from placer.search.process import ProcessResult

if TYPE_CHECKING:
    from placer.problem import Instance
    from placer.problem.placement import Placement
    from placer.problem.result import Result

__all__ = ["Run", "Value", "answer", "make", "parse_seeds", "parse_subject", "plan", "planted_beside", "sweep"]


Value = int | float | bool | tuple[int | float, ...]

ENDINGS = (".json", ".yaml", ".yml", ".gz")  #: of names that are meant for files, whether they are there or not


@dataclass(frozen=True, slots=True)
class Subject:
    """By the word that was typed; without a ``family`` that is a path. Options are names and values, without the
    seed.
    """

    word: str
    family: str | None = None
    options: tuple[tuple[str, Value], ...] = ()


def parse_subject(word: str) -> Subject:
    """Read a word: a family and its options as ``placer generate`` takes them, or a path.

    Raises
    ------
    UsageError
        Neither a family nor a path; an option that the family does not have, out of range, or at odds with another.

    Examples
    --------
    >>> parse_subject("planted --nodes 16 --pod-sizes=4,8").options
    (('nodes', 16), ('pod_sizes', (4, 8)))
    """
    parts = _split(word)
    if parts and parts[0] in FAMILIES:
        try:
            options: dict[str, Any] = _options(parts[0], parts[1:])
            FAMILIES[parts[0]].options(**options)  # which checks what concerns several of them
        except UsageError as error:
            raise UsageError(f"{word}: {error}") from None
        return Subject(word, parts[0], tuple(options.items()))
    if word == "-":
        raise UsageError("-: found standard input, expected a file or folder, which can be read again for each run")
    meant = "/" in word.split(" ")[0] or word.endswith(ENDINGS)
    if not word or not (meant or Path(word).exists()):
        raise UsageError(
            f"{word or repr(word)}: found neither a file or folder nor a family, expected one of {', '.join(FAMILIES)}"
            + found_like(word.partition(" ")[0], FAMILIES)
        )
    return Subject(word)


def _split(word: str) -> list[str]:
    """Nothing where quotes do not match, as in the name of some file."""
    try:
        return shlex.split(word)
    except ValueError:
        return []


def _options(family: str, words: list[str]) -> dict[str, Value]:
    flags = {option.flag: option for option in FAMILIES[family].flags if option.name != "seed"}
    found: dict[str, Value] = {}
    left = list(reversed(words))
    while left:
        flag, equals, text = left.pop().partition("=")
        if flag == "--seed":
            raise UsageError("found --seed in the family's options, expected it in --seeds of the sweep")
        if flag not in flags:
            raise UsageError(f"found {flag!r}, expected one of {', '.join(flags)}{found_like(flag, flags)}")
        option = flags[flag]
        found[option.name] = (
            _switched(option, equals) if option.switch else option.parse(_text(option, equals, text, left))
        )
    return found


def _switched(option: Option, equals: str) -> bool:
    if equals:
        raise UsageError(f"{option.flag}: found a value, expected none")
    return True


def _text(option: Option, equals: str, text: str, left: list[str]) -> str:
    if equals:
        return text
    if not left:
        raise option.fault("nothing")
    return left.pop()


def planted_beside(path: str) -> str:
    """Where the planted placement of an instance goes.

    Examples
    --------
    >>> planted_beside("made/queue.yaml")
    'made/queue.planted.yaml'
    """
    return _beside(path, "planted")


def _beside(path: str, word: str) -> str:
    file = Path(path)
    if file.is_dir():
        return f"{file}.{word}.yaml"
    endings = "".join(file.suffixes[-2:] if file.suffix == ".gz" else file.suffixes[-1:])
    return str(file.with_name(f"{file.name.removesuffix(endings)}.{word}{endings}"))


MOST_SEEDS = 100_000  #: ``1-5`` is meant, ``1-5000000000`` is not


@dataclass(frozen=True, slots=True)
class Run:
    """One run to do; the seed is of the family's chance, or of the policy or solver where the instance is in files."""

    subject: Subject
    seed: int
    policy: str
    limit: float
    workers: int
    arguments: Mapping[str, Any] | None = None
    scheduler_name: str | None = None
    strict: bool = False
    own: OwnPolicy | None = None

    @property
    def key(self) -> Key:
        """Distinguishes it from other runs; its line has the same."""
        said = {} if self.scheduler_name is None else {"schedulerName": self.scheduler_name}
        if self.own is not None:
            said["own"] = self.own.digest
        config = _digest({**(self.arguments or {}), **said}) if self.arguments is not None or said else ""
        return self.subject.word, self.seed, self.policy, self.limit, self.workers, __version__, config

    @property
    def asked(self) -> Asked:
        """The question to the policy or method: of families the seed is theirs, and its own is 0."""
        seed = self.seed if self.subject.family is None else 0
        return Asked(self.policy, self.arguments, self.limit, None, self.workers, seed, self.own)

    def line(self, **found: Any) -> RunRecord:
        """Make its line."""
        return RunRecord.model_validate({**dict(zip(KEY, self.key, strict=True)), **found})


def _digest(arguments: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()[:12]


def plan(
    words: Sequence[str],
    *,
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
    policies: Sequence[str] = ("greedy", "auto"),
    time_limit: float = 60.0,
    workers: int = 1,
    arguments: Mapping[str, Mapping[str, Any]] | None = None,
    scheduler_name: str | None = None,
    strict: bool = False,
) -> list[Run]:
    """List the runs of a sweep, all of one instance together.

    Parameters
    ----------
    words
        Families with their options, and paths (:func:`parse_subject`); one given twice counts once.
    policies, arguments
        As :func:`placer.lab.comparing.compare` takes them.
    time_limit, workers
        Seconds of each whole call of a method; its solver threads.
    scheduler_name, strict
        As :func:`placer.read` takes them.

    Raises
    ------
    UsageError
        With every fault of every word.
    BadInstance, StrictFindings
        As :func:`placer.lab.own_policies.load` raises them.
    """
    configured, given = arguments or {}, {"seeds": seeds, "instances": words}
    targets, faults = parse(policies, NAMES)
    faults += faults_of(targets, configured, time_limit=time_limit, workers=workers, seeds=seeds)
    faults += [f"{what}: found none, expected at least one" for what in ("seeds", "instances") if not given[what]]
    subjects: list[Subject] = []
    for word in dict.fromkeys(words):
        try:
            subjects.append(parse_subject(word))
        except UsageError as error:
            faults.append(str(error))
    if faults:
        raise UsageError("; ".join(faults))
    own = load(targets, strict=strict)
    return [
        Run(
            subject,
            seed,
            policy,
            time_limit,
            workers,
            configuration_of(policy, configured),
            scheduler_name,
            strict,
            own.get(policy),
        )
        for subject in subjects
        for seed in dict.fromkeys(seeds)
        for policy in targets
    ]


def parse_seeds(text: str) -> list[int]:
    """Read numbers and ranges with commas; anything else, or more than 100,000 of them, is a :class:`UsageError`.

    Examples
    --------
    >>> parse_seeds("1-3,8")
    [1, 2, 3, 8]
    """
    seeds: list[int] = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        last = high if dash else low
        if not (low.isdecimal() and last.isdecimal() and int(low) <= int(last)):
            raise UsageError(f"seeds: found {part!r}, expected numbers and ranges such as 1-5,8")
        if len(seeds) + int(last) - int(low) >= MOST_SEEDS:
            raise UsageError(f"seeds: found more than {MOST_SEEDS:,}, expected at most so many")
        seeds += range(int(low), int(last) + 1)
    return seeds


_FINDINGS = 10  #: findings that the error of a line names; ``findings`` counts all
LONGEST = 2000  #: characters of an error in a line; a bad instance may have thousands of faults


def make(run: Run, target: str, emit: Callable[[Any], None]) -> str:  # noqa: ARG001  # nothing to tell on the way
    """Generate the instance of a run, with its planted placement next to it; the error, empty without one."""
    from placer.kube.manifests import dump
    from placer.lab.generate import bindings, generate

    try:
        made = generate(run.subject.family or "", **dict(run.subject.options), seed=run.seed)
        dump({"apiVersion": "v1", "kind": "List", "items": made.documents}, target)
        if made.planted is not None:
            dump(bindings(made), planted_beside(target))
    except PlacerError as error:
        return str(error)[:LONGEST]
    return ""


def answer(run: Run, path: str, target: str, emit: Callable[[Any], None]) -> RunRecord:
    """Decide upon the instance at ``path``, write the Placement (of a policy its Bindings) to ``target``, measure."""
    began = time.monotonic()
    emit(os.getpid())
    try:
        instance, figures = _decide(run, path, target, began)
        seconds, used, peak = time.monotonic() - began, _processor_seconds(), high_water("self")
        emit(None)
        line = run.line(
            nodes=len(instance.nodes),
            pending=len(instance.pending),
            seconds=round(seconds, 3),
            processor_seconds=round(used, 3),
            peak_memory_mib=round(peak / 1024, 1) or None,
            findings=Counter(finding.code for finding in instance.findings),
            machine=this_machine(),
            **figures,
        )
        return _beside_known(line, instance, path)
    except StrictFindings as error:
        return run.line(error=error.told(_FINDINGS), findings=Counter(fault.field for fault in error.faults))
    except PlacerError as error:
        return run.line(error=str(error)[:LONGEST])


def _processor_seconds() -> float:
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _decide(run: Run, path: str, target: str, began: float) -> tuple[Instance, dict[str, Any]]:
    from placer.problem.reading import read

    instance = read(path, scheduler_name=run.scheduler_name, strict=run.strict)
    # A function of the reader's may change what it is given, by mistake, and would be judged by that.
    given: Instance = pickle.loads(pickle.dumps(instance)) if isinstance(run.own, OwnFunction) else instance
    said = ask(given, run.asked, began)
    return instance, _of_policy(instance, said, target) if isinstance(said, Proposal) else _of_method(said, target)


def _of_policy(instance: Instance, said: Proposal, target: str) -> dict[str, Any]:
    from placer.answers.document import ValuePart, WeightPart, bindings_document
    from placer.kube.manifests import dump
    from placer.lab.placement_metrics import victims
    from placer.problem.disruption import outcome_of
    from placer.problem.placement import Value as NamedValue
    from placer.rules import in_order, verify
    from placer.rules.scoring import level_values, placed_weight

    placement = said.placement
    violations = verify(instance, placement)
    broken, told = Counter(violation.rule for violation in violations), victims(instance, placement, violations)
    outcome = outcome_of(instance, placement)
    values = level_values(outcome)
    objective = [Judged(*each) for each in zip(values, said.bounds or (None,) * len(values), strict=True)]
    weight = WeightPart.of(Judged(NamedValue(WEIGHT, placed_weight(instance, placement)), said.weight_bound))
    verdict = Verdict.OPTIMAL if all(each.met for each in objective) else Verdict.FEASIBLE
    figures = {
        "placed_pods": len(outcome.new),
        "placed_weight": weight.value,
        "weight_bound": weight.bound,
        "weight_gap": weight.gap,
        "weight_proved_by": weight.proved_by,
        "objective": [ValuePart.of(each) for each in objective],
        "violations": in_order(broken),
        "victims": told.as_dict() if told is not None else None,
        "verdict": None if broken else verdict,
        "termination": Termination.FINISHED,
        "notes": list(said.notes),
    }
    dump(bindings_document(placement), target)
    return figures


def _of_method(result: Result, target: str) -> dict[str, Any]:
    from placer.answers.document import placement_document
    from placer.kube.manifests import dump

    document = placement_document(result)
    dump(document.as_dict(), target)
    return {
        "placed_pods": len(document.bindings),
        "placed_weight": document.weight.value,
        "weight_bound": document.weight.bound,
        "weight_gap": document.weight.gap,
        "weight_proved_by": document.weight.proved_by,
        "objective": document.objective,
        "verdict": document.verdict,
        "termination": document.termination,
        "seconds_to_first": document.trace[0].seconds if document.trace else None,
        "trace": document.trace,
    }


def _beside_known(line: RunRecord, instance: Instance, path: str) -> RunRecord:
    from placer.rules.scoring import placed_weight

    try:
        planted = _verified(instance, planted_beside(path), "planted")
        best = _verified(instance, _beside(path, "best"), "best")
    except PlacerError as error:
        return line.model_copy(update={"error": str(error)[:LONGEST]})
    found: dict[str, Any] = {}
    if planted is not None:
        weight = placed_weight(instance, planted)
        share = (line.placed_weight or 0) / weight if weight else None
        found = {"planted_weight": weight, "placed_over_planted": share}
    if best is not None:
        found["known"] = _known(instance, best, _proved(_beside(path, "best")))
    elif planted is not None and not planted.disturbs:
        found["known"] = _known(instance, planted, {})
    return line.model_copy(update=found)


def _verified(instance: Instance, path: str, word: str) -> Placement | None:
    from placer.problem.reading import read_placement
    from placer.rules import verify

    if not Path(path).is_file():
        return None
    placement = read_placement(path)
    broken = verify(instance, placement)
    if broken:
        raise PlacerError(f"{path}: the {word} placement breaks {len(broken):,} rules, the first: {broken[0].message}")
    return placement


def _known(instance: Instance, placement: Placement, proved: Mapping[str, Any]) -> KnownAnswer:
    from placer.rules.scoring import placed_weight, score

    values = [each.value for each in score(instance, placement)]
    bounds = [row.get("bound") for row in proved.get("objective", ())]
    return KnownAnswer(
        weight=placed_weight(instance, placement),
        weight_bound=proved.get("weight", {}).get("bound"),
        values=values,
        bounds=bounds if len(bounds) == len(values) else [None] * len(values),
    )


def _proved(path: str) -> Mapping[str, Any]:
    from placer.kube.manifests import read_texts, split

    documents = [json.loads(bytes(raw.text)) for raw in split(read_texts([path])) if raw.kind == "Placement"]
    return documents[0] if len(documents) == 1 else {}


def sweep(
    runs: Sequence[Run],
    *,
    executor: str = "local",
    jobs: int = 1,
    begin: Callable[[Run], None] | None = None,
) -> Generator[RunRecord, None, None]:
    """Carry out runs: a line for each, as soon as it is done; a run that fails is a line with its error.

    Parameters
    ----------
    executor
        Name of an executor (:mod:`placer.base.executors`), which starts a process for each run.
    jobs
        Runs at once, at least 1. More than one compete for cores and memory, which shows in their seconds.
    begin
        Called with each run that is submitted (progress).

    Raises
    ------
    UsageError
        No such executor, or no such number of jobs.
    PlacerError
        The executor itself failed.
    """
    if jobs < 1:
        raise UsageError(f"jobs: found {jobs}, expected at least 1")
    # What a killed worker leaves behind is in one folder, which this process removes.
    with (
        tempfile.TemporaryDirectory(prefix="placer-sweep-", ignore_cleanup_errors=True) as scratch,
        open_executor(executor, jobs) as opened,
    ):
        going, asked = set[Future[RunRecord]](), dict[Future[RunRecord], Run]()

        def line_of(future: Future[RunRecord]) -> RunRecord:
            return _line_of(future, asked.pop(future))

        for run in runs:
            if begin is not None:
                begin(run)
            future = opened.submit(_carry_out, run, _anywhere(run), scratch)
            asked[future] = run
            going.add(future)
            if len(going) >= jobs:
                done, going = wait(going, return_when=FIRST_COMPLETED)
                yield from map(line_of, done)
        while going:
            done, going = wait(going, return_when=FIRST_COMPLETED)
            yield from map(line_of, done)


def _anywhere(run: Run) -> str:
    """The path does not depend on where a worker was started; of a family it is empty."""
    return str(Path(run.subject.word).absolute()) if run.subject.family is None else ""


def _line_of(future: Future[RunRecord], run: Run) -> RunRecord:
    error = future.exception()
    if error is not None:  # no run's fault: these are caught where it runs
        raise PlacerError(f"the executor failed: {type(error).__name__}: {error}") from error
    line = future.result()
    if line.version != run.line().version:
        raise PlacerError(f"the executor: found placer {line.version} there, expected {run.line().version} as here")
    return line


def _carry_out(run: Run, path: str, scratch: str) -> RunRecord:
    """Only the answer is measured, so the instance is made in another process. On another machine there is no
    ``scratch``.
    """
    within = scratch if Path(scratch).is_dir() else None
    with tempfile.TemporaryDirectory(dir=within, ignore_cleanup_errors=True) as folder:
        if run.subject.family is not None:
            path = str(Path(folder, "instance.json"))
            made = apart(make, (run, path), lambda _: None)
            if made.value != "":
                return run.line(error=made.value or _died(made))
        with PeakOfTree() as tree:
            answered = apart(answer, (run, path, str(Path(folder, "placement.json"))), tree.hear)
    line: RunRecord = answered.value or run.line(error=_died(answered))
    if line.peak_memory_mib is None:
        return line
    return line.model_copy(update={"peak_memory_mib": max(line.peak_memory_mib, round(tree.peak / 1024, 1))})


def _died(ended: ProcessResult) -> str:
    return f"the process of the run ended with {ended.detail}"
