"""``explain``: why a group waits and what would admit it; when a job would fit, and how many copies of one."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.answers.explain.cases import Case, Placed
from placer.answers.explain.copies import Copies, how_many, with_spares
from placer.answers.explain.decisions import Correction
from placer.answers.explain.explanation import (
    Explanation,
    JobAnswer,
    JobFits,
    as_things_stand,
    equal_pods,
    explain,
    explain_job,
    find_groups,
    gates_words,
    job_groups,
    reasons_of,
    waiting,
)
from placer.answers.explain.prices import FEW
from placer.answers.explain.tried_changes import TriedChange
from placer.answers.progress import Progress
from placer.answers.summary import print_absent, print_findings
from placer.answers.summary.queue import nothing_waits, print_queue, print_steps, queue_items
from placer.base.deadline import Deadline, within
from placer.base.errors import UsageError
from placer.base.words import and_list, counted, prover_word, some
from placer.cli import flags, printing
from placer.cli.lab.shared import scheduler_configs
from placer.cli.queueing import with_steps
from placer.kube.manifests import Text, read_texts, validate
from placer.kube.manifests.faults import Faults
from placer.kube.manifests.raw_objects import split
from placer.lab.other_schedulers import ElsewhereFate, MimickedFate, OtherSchedulers
from placer.lab.placement_metrics import GroupFate
from placer.problem import GroupKey, Instance
from placer.problem.disruption import outcome_of
from placer.problem.expansion import suspended_workloads
from placer.problem.reading import refuse_findings
from placer.problem.wanted import count_at_tier
from placer.search.search_limits import limit_faults

if TYPE_CHECKING:
    #: What JSON says of one group, and lines for people.
    Answer = tuple[Mapping[str, Any], Iterable[str]]

    #: Number of a change to the file with the objects that it adds.
    Files = Mapping[int, str]

NAMED = 8  #: groups that are named of those that another scheduler puts first, and of equal ones

_NEAREST = re.compile("; Node .*")  #: which differs with all that runs

NOT_NOW = 5  #: exit code of ``--job`` where something of it does not fit now


def run(options: argparse.Namespace) -> int:
    """Carry out ``explain``."""
    _name_among_files(options)
    _check(options)
    deadline = Deadline(options.began + options.time_limit)
    paths = flags.source(options)
    with printing.progress_of(options, options.time_limit) as progress:
        progress.phase("reading")
        case = _job_case(options, paths) if options.job else _case(options, paths, options.with_)
        if options.strict:
            refuse_findings(paths, case.instance.findings)
        keys = _keys(options, case, paths)
        if options.how_many:
            code = _how_many(options, case, keys or [], deadline, progress)
        elif options.job:
            code = _job(options, case, keys or [], deadline, progress)
        else:
            code = _groups(options, case, keys, deadline, progress)
    if not options.json:
        _print_findings(options, case, keys or [])
    return code


def _name_among_files(options: argparse.Namespace) -> None:
    """Take the one word that is no file for the name of a group, as ``kubectl placer why`` does."""
    words = [
        each
        for each in options.instance
        if each != "-" and not each.endswith(printing.ENDINGS) and not Path(each).exists()
    ]
    if len(words) == 1 and not (options.group or options.job):
        options.group = words[0]
        options.instance.remove(words[0])


def _print_findings(options: argparse.Namespace, case: Case, keys: Sequence[GroupKey]) -> None:
    names = tuple(f"{key.namespace}/{key.name}" for key in keys)
    near = [each for each in case.instance.findings if any(name in str(each) for name in names)]
    print_findings(near, printing.console())
    others = [each for each in case.instance.findings if each not in near]
    print_findings(others, printing.console(), brief="" if options.wide else "Other findings" if near else "Findings")


def _check(options: argparse.Namespace) -> None:
    wrong = []
    if options.job and options.group:
        wrong.append("--job: found --group with it, expected one of the two")
    if options.how_many and not (options.job or options.group):
        wrong.append("--how-many: expected --group or --job with it")
    if options.spare and not options.how_many:
        wrong.append("--spare: expected --how-many with it")
    wrong += limit_faults(options.time_limit)
    if wrong:
        raise UsageError("; ".join(wrong))


def _job_case(options: argparse.Namespace, paths: Sequence[str | Text]) -> Case:
    texts, faults = read_texts([options.job]), Faults()
    raws = split(texts, faults, added=True)
    resumed = [] if faults else suspended_workloads(validate(raws, lenient=True))
    for each in resumed:
        words = f"{each.kind} {each.namespace}/{each.name} is suspended (spec.suspend: true): answered as if it ran"
        print(words, file=sys.stderr if options.json else sys.stdout)
    edits = [f"{each.kind}.{each.group}/{each.namespace}/{each.name}:spec.suspend=false" for each in resumed]
    return _case(options, paths, [*options.with_, *texts], edits)


def _case(
    options: argparse.Namespace, paths: Sequence[str | Text], with_: Sequence[str | Text], edits: Sequence[str] = ()
) -> Case:
    if not hasattr(options, "texts"):  # what comes from standard input comes once
        options.texts = {str(path): text for path in ("-",) if path in paths for text in read_texts([path])}
    return Case.read(
        [options.texts.get(str(path), path) for path in paths],
        with_=with_,
        without=options.without,
        set_=[*options.set_, *edits],
        scheduler_name=options.scheduler_name,
        lenient=options.lenient,
    )


def _keys(options: argparse.Namespace, case: Case, paths: Sequence[str | Text]) -> list[GroupKey] | None:
    if options.job:
        return job_groups(case, _case(options, paths, options.with_))
    return (
        None if options.group is None else find_groups(case, options.group, options.namespace, flags.home_of(options))
    )


def _groups(
    options: argparse.Namespace, case: Case, keys: list[GroupKey] | None, deadline: Deadline, progress: Progress
) -> int:
    progress.phase("placing all waiting groups")
    placed = as_things_stand(case, deadline, keys)
    others = OtherSchedulers(case, placed, scheduler_configs(options.scheduler_config))
    shown = set(flags.selection(options).groups(case.instance))
    asked = [key for key in (waiting(placed, others.names) if keys is None else keys) if key in shown]
    if keys is None and asked and not options.json:
        with progress.hidden():
            if _print_table(options, placed, asked, others.names, deadline):
                return flags.OK
    said: set[GroupKey] = set()

    def answers() -> Iterator[Answer]:
        for one in explain(case, asked, others.causes_until(asked, deadline), placed, progress.phase):
            other = others.fate(one.group, deadline)
            known = one.group in said
            said.update(() if other is not None else one.equal)
            entry = one.as_dict() | ({} if other is None else {"scheduler": other.as_dict()})
            files = _files(options, one)
            lines = () if known else _told(one, files, case.instance)
            yield entry, lines if other is None else _told_elsewhere(one, other, files, case.instance)

    if asked or options.json:
        _tell_each(options, "ExplanationList", answers(), len(asked), progress)
        _print_absent(options, case.instance)
    else:
        printing.say(nothing_waits(case.instance, flags.selection(options)))
    return flags.OK


def _print_absent(options: argparse.Namespace, instance: Instance) -> None:
    if not (options.json or options.group):
        print_absent(flags.selection(options).absent_work(instance), printing.console())


def _files(options: argparse.Namespace, explained: Explanation) -> Files:
    files: dict[int, str] = {}
    for number, each in enumerate(explained.changes, 1):
        if options.changes is not None and each.change.with_:
            folder, key = Path(options.changes), explained.group
            files[number] = str(folder / f"{key.namespace}-{key.name}-{number}.yaml")
            with printing.written(options.changes):
                folder.mkdir(parents=True, exist_ok=True)
            printing.write({"apiVersion": "v1", "kind": "List", "items": list(each.change.with_)}, files[number])
    return files


def _tell_each(
    options: argparse.Namespace, kind: str, answers: Iterable[Answer], count: int, progress: Progress
) -> list[Mapping[str, Any]]:
    entries: list[Mapping[str, Any]] = []
    asked, last = printing.Interruptible(entries, count, "group"), _Said()
    with asked:
        for entry, lines in answers:
            entries.append(entry)
            if not options.json:
                with progress.hidden():
                    printing.say(last.new(entry["group"], list(lines)))
    if options.json:
        printing.tell(printing.listed(kind, entries), options)
    printing.say(last.like_it())
    asked.again()
    return entries


class _Said:
    """The last lines about a group, so that those of the next one are not repeated where only its name differs."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._names: list[str] = []

    def new(self, group: Mapping[str, str], lines: list[str]) -> list[str]:
        name = f"{group['namespace']}/{group['name']}"
        if not lines:
            return []
        if self._without_names(lines, name) == self._without_names(self._lines, name):
            self._names.append(name)
            return []
        before, self._lines, self._names = self.like_it(), lines, [name]
        return [*before, *lines]

    def like_it(self) -> list[str]:
        more = self._names[1:]
        self._names = self._names[:1]
        return [f"  The same holds for {len(more):,} more: {and_list(some(more, NAMED))}."] if more else []

    def _without_names(self, lines: Iterable[str], name: str) -> list[str]:
        either = "|".join(re.escape(each) for each in (name, *self._names[:1]))
        return [re.sub(rf"\b(?:{either})(?![\w-]|\.\w)", "*", line) for line in lines]


def _print_table(
    options: argparse.Namespace,
    placed: Placed,
    asked: Sequence[GroupKey],
    elsewhere: Container[GroupKey],
    deadline: Deadline,
) -> bool:
    told, now = reasons_of(placed, deadline), time.time()
    found = queue_items(outcome_of(placed.instance, placed.placement), told, now)
    shown = {key: item for key, item in found.items() if key in asked}
    terminal = printing.console()
    print_queue([*shown.values()], terminal, now, wide=options.wide)
    many = len({key if key in elsewhere else told.get(key) for key in asked}) > FEW
    if many:
        print_steps(with_steps(placed.instance, shown, flags.source_words(options)), terminal)
        _print_absent(options, placed.instance)
    one = shlex.join(["placer", "explain", "--group", "NAME", *flags.source_words(options)])
    terminal.print(f"`{one}` explains one of them." if many else "", markup=False)
    return many


def _job(options: argparse.Namespace, case: Case, keys: list[GroupKey], deadline: Deadline, progress: Progress) -> int:
    fits: list[str] = []

    def answers() -> Iterator[Answer]:
        for each in explain_job(case, keys, deadline, progress.phase):
            yield each.as_dict(), _told_of_job(each, fits, _files(options, each.explanation))
            if each.answer is JobFits.NOW:
                fits.append(f"{each.explanation.group.namespace}/{each.explanation.group.name}")

    entries = _tell_each(options, "ExplanationList", answers(), len(keys), progress)
    return flags.OK if all(each["answer"] == JobFits.NOW for each in entries) else NOT_NOW


def _how_many(
    options: argparse.Namespace, case: Case, keys: list[GroupKey], deadline: Deadline, progress: Progress
) -> int:
    spare = None if options.spare is None else count_at_tier("--spare", options.spare, case.instance)

    def answers() -> Iterator[Answer]:
        equal: Mapping[GroupKey, object] = within(deadline, lambda: equal_pods(case.instance), {})
        counts: dict[object, tuple[Copies, Copies | None]] = {}
        for key in keys:
            kind = equal.get(key, key)
            if kind not in counts:
                progress.phase(f"{key.namespace}/{key.name}: counting copies")
                count = how_many(case.instance, key, deadline)
                left = None if spare is None else how_many(with_spares(case.instance, key, *spare), key, deadline)
                counts[kind] = count, left
            found, left = replace(counts[kind][0], group=key), counts[kind][1]
            entry = found.as_dict()
            if left is not None and spare is not None:
                entry["spare"] = {"nodes": spare[0], "tier": spare[1], **left.as_dict()}
                del entry["spare"]["group"]
            yield entry, _told_of_copies(found, left, spare)

    _tell_each(options, "CopiesList", answers(), len(keys), progress)
    if options.job and len(keys) > 1 and not options.json:
        single = sum(not key.api_group for key in keys)
        said = (
            f"  {single:,} pods of the job are single pods, each counted by itself: this is no count of whole jobs. "
            "`gangs: owners` of a Policy makes a gang of them."
        )
        printing.say([said] if single else [])
    return flags.OK


# ---------------------------------------------------------------------------------------------------------------- text


def _told(found: Explanation, files: Files, instance: Instance) -> Iterator[str]:
    if found.admitted and not found.pods:
        yield f"{found.group} does not wait for room: it is admitted, or runs."
        return
    if _has_minimum(found, instance):
        yield f"{_running(found, instance, found.pods)}."
    elif found.admitted:
        yield f"{found.group} is admitted; {_optional(found)}."
    elif found.empty:
        yield f"{found.group} needs no pod, and has none; {_optional(found)}."
    else:
        counts = f" It has {counted(found.pods, 'pending pod')}, and needs {found.needed:,}."
        yield f"{found.group} waits{_equal(found)}.{counts if found.group.api_group else ''}"
    yield from _why(found, files)


def _has_minimum(found: Explanation, instance: Instance) -> bool:
    group = instance.groups[found.group]
    return found.admitted and bool(group.bound) and not group.need


def _running(found: Explanation, instance: Instance, left: int) -> str:
    group = instance.groups[found.group]
    waits = f"{counted(left, 'optional pod')} {'waits' if left == 1 else 'wait'}"
    return f"{found.group} runs with {counted(len(group.bound), 'pod')} (needs {group.min_member:,}); {waits}"


def _optional(found: Explanation) -> str:
    return f"{counted(found.pods, 'optional pod')} of it {'waits' if found.pods == 1 else 'wait'}"


def _equal(found: Explanation) -> str:
    if not found.equal:
        return ""
    names = and_list(some([f"{key.namespace}/{key.name}" for key in found.equal], NAMED))
    ones, do = ("one", "does") if len(found.equal) == 1 else ("ones", "do")
    return f", and so {do} {len(found.equal):,} equal {ones}: {names}"


def _why(found: Explanation, files: Files) -> Iterator[str]:
    if found.gated:
        yield f"  It has {gates_words(found.gated)}."
    yield from _causes(found)
    if found.never:
        shown = [cause.message for causes in found.corrections for cause in causes]
        known = _NEAREST.sub("", found.never) in (_NEAREST.sub("", each) for each in shown)
        yield f"  It never fits, not even on the empty cluster{'.' if known else f': {found.never}'}"
    yield from _changes(found, files)


def _told_elsewhere(found: Explanation, elsewhere: ElsewhereFate, files: Files, instance: Instance) -> Iterator[str]:
    group = instance.groups[found.group]
    runs = _has_minimum(found, instance)
    said = _running(found, instance, len(group.pending)) if runs else f"{found.group} waits"
    yield f"{said} for scheduler {elsewhere.scheduler}."
    if runs:
        yield f"  placer would place {elsewhere.placer.placed - len(group.bound):,} of them."
    elif found.admitted:
        yield f"  placer would admit it: {_where(elsewhere.placer)}{f'; {_optional(found)}' if found.pods else ''}."
    else:
        yield "  With placer it would wait, too."
    yield from _why(found, files) if found.pods or not found.admitted else ()
    if elsewhere.mimicry is not None:
        yield from _mimicry(found, elsewhere.mimicry, elsewhere.policy, instance)
        return
    why = elsewhere.error or "no policy here mimics it"
    if elsewhere.policy is not None and not elsewhere.error:
        why = f"policy {elsewhere.policy}, which mimics it, did not come to its end in time (--time-limit)"
    yield f"  The order of {elsewhere.scheduler} is not known: {why}."


def _mimicry(found: Explanation, told: MimickedFate, policy: str | None, instance: Instance) -> Iterator[str]:
    ends = f"binds it: {_where(told.fate)}" if told.fate is not None and told.admitted else "leaves it waiting"
    if told.fate is not None and _has_minimum(found, instance):
        ends = f"binds {told.fate.placed - len(instance.groups[found.group].bound):,} of them"
    yield f"  Simulation, not the scheduler itself: policy {policy} {ends}."
    yield from _served(found.group, told, instance)
    yield from _fitting_beside(told)
    for note in told.notes:
        yield f"    Not mimicked: {note}"
    if not found.admitted and told.admitted and policy == "network-overhead":
        yield "    It weighs all calls of a pod together, as `networkCost: majority` of a Policy does for placer."


def _served(group: GroupKey, told: MimickedFate, instance: Instance) -> Iterator[str]:
    own = instance.groups[group].priority
    lower = [] if told.admitted else [key for key in told.first if instance.groups[key].priority < own]
    first = [key for key in told.first if key not in lower]
    if first or not lower:
        yield f"    Served before it: {_among(first)}." if first else "    No group is served before it."
    if lower:  # they may have come after it, once it had found no place
        yield f"    Placed although it waits, of lower priority: {_among(lower)}."


def _among(keys: Sequence[GroupKey]) -> str:
    names = [f"{key.namespace}/{key.name}" for key in keys]
    return ", ".join(names if len(names) <= NAMED else [*names[: NAMED - 1], f"{len(names) - NAMED} more", names[-1]])


def _fitting_beside(told: MimickedFate) -> Iterator[str]:
    if told.outside:
        yield (
            "    The action enqueue keeps it out: its minResources and those of PodGroups let in before it exceed "
            "the free amounts with overcommit."
        )
    elif told.since is not None:
        yield f"    It would fit next to the running pods, but not after {told.since.namespace}/{told.since.name}."
    elif told.fits_beside:
        yield "    It would fit next to all groups served before it: that policy does not find the place."
    elif told.fits_beside is None and not told.admitted and not (told.fate and told.fate.placed):
        yield "    Whether it would fit next to all groups served before it was not decided in time."


def _where(fate: GroupFate) -> str:
    under = f" under {fate.hyper_node} (tier {fate.tier})" if fate.hyper_node is not None else ""
    return f"{counted(fate.placed, 'pod')} placed{under}"


def _causes(found: Explanation) -> Iterator[str]:
    if not found.corrections and found.reason is not None and found.reason.code != "NotDecided":
        yield f"  {found.reason.code}: {found.reason.message}."
    elif not found.corrections:
        yield "  Why was not decided in time (--time-limit)."
    for number, causes in enumerate(found.corrections):
        yield from _set(number, causes)


def _set(number: int, causes: Correction) -> Iterator[str]:
    several = len(causes) > 1
    first = f"  Because of {'all of' if several else 'this'}:"
    yield f"  Alternatively, it would be enough to resolve{' all of' if several else ''}:" if number else first
    for cause in causes:
        rules = f" ({', '.join(cause.rules)})" if cause.rules else ""
        yield f"    {cause.code}{rules}: {cause.message}"


def _changes(explained: Explanation, files: Files) -> Iterator[str]:
    found = explained.changes
    optional = explained.admitted or explained.empty
    if not found:
        yield _no_change(explained, optional=optional)
        return
    tried = "tried by placing all waiting groups again; nothing in the cluster is changed"
    does = "gives one more of them a node" if optional else f"admits {'one of them' if explained.equal else 'it'}"
    yield f"  Each of these alone {does} ({tried}), least disturbance first:"
    for number, each in enumerate(found, 1):
        names = ", ".join(f"{key.namespace}/{key.name}" for key in each.loses)
        yield f"    {number}. {each.change.message}" + (f"; then {names} would wait" if names else "")
        yield _options(each, files.get(number))


def _no_change(explained: Explanation, *, optional: bool) -> str:
    if not explained.corrections:
        return "  No change was tried in time."
    return f"  No change that was tried {'gives one more of them a node.' if optional else _without(explained)}"


def _without(explained: Explanation) -> str:
    codes = [cause.code for causes in explained.corrections[:1] for cause in causes]
    first = f"{codes[0]}" if "InvalidGroup" in codes else "one of the causes"
    again = f": resolve {first} first, then explain again with it (--set, --with, --without)"
    return f"admits it, alone or with one more{again if len(codes) > 1 else ''}."


def _options(tried: TriedChange, file: str | None) -> str:
    change = tried.change
    if change.with_ and file is None:
        heads = ((each["kind"], each["metadata"]) for each in change.with_)
        names = [f"{kind} {'/'.join(filter(None, (head.get('namespace'), head['name'])))}" for kind, head in heads]
        return f"{printing.COPIED[:-2]}(--changes FOLDER writes the objects to add: {and_list(some(names, NAMED))})"
    words = [f"--without {shlex.quote(each)}" for each in change.without]
    words += [f"--set {shlex.quote(each)}" for each in change.set_]
    return printing.COPIED + " ".join([*words, *([] if file is None else [f"--with {shlex.quote(file)}"])])


def _told_of_job(found: JobAnswer, fits: Sequence[str], files: Files) -> Iterator[str]:
    key, by = found.explanation.group, " and ".join(found.decided_by)
    if found.answer is JobFits.NOW:
        where = f"in {found.hyper_node} (tier {found.tier})" if found.hyper_node else "on the nodes there are"
        yield f"{key} fits now {where} (found by {by})."
        return
    if found.answer is None:
        yield f"{key}: whether it fits was not decided in time."
    elif found.answer is JobFits.NEVER:
        yield f"{key} never fits, not even on the empty cluster (proved by {by})."
    else:
        beside = f" with {and_list(fits)} of the same job" if fits else ""
        yield f"{key} does not fit now{beside} (proved by {by}), and would on the empty cluster."
    yield from _causes(found.explanation)
    yield from _changes(found.explanation, files)


def _told_of_copies(found: Copies, left: Copies | None, spare: tuple[int, int] | None) -> Iterator[str]:
    yield f"{found.group}: {_copies(found)}"
    if left is not None and spare is not None:
        count, tier = spare
        nodes = "roomiest node" if count == 1 else f"{count:,} roomiest nodes"
        yield f"  with the {nodes} of each domain of tier {tier} lost: {_copies(left)}"


def _copies(found: Copies) -> str:
    fit = "1 fits" if found.copies == 1 else f"{found.copies:,} fit together"
    no_more = ", and no more" if found.copies == found.bound else f"; {found.bound + 1:,} do not"
    return f"{fit}{no_more} (proved by {prover_word(found.proved_by)})"
