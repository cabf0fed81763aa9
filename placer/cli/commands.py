"""All commands and their flags; the module that carries one out is imported when it runs.

``MODULE:FUNCTION`` of :mod:`placer.cli` carries a command out; it returns the exit code.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from placer.base.deadline import duration
from placer.cli import flags, printing
from placer.cli.flags import option, switch
from placer.cli.pass_flags import add_pass_flags
from placer.passes.configuration import METHOD_HELP, OPTIONS
from placer.search import METHODS

FIGURES = ("profile", "placed", "size", "gap")
SHELLS = ("bash", "zsh", "fish")

GENERATE = "make an instance from a seed"

#: Where the page is written where nobody says where.
REPORT = "report.html"

MOST = 60  #: domains that ``topology show`` prints where --depth does not say how many levels

_POLICIES = "policies, methods{}, and your own, NAME=package.module:function or NAME=PLACEMENT"
_FILE = ".json, .yaml, each also .gz"


# ------------------------------------------------------------------------------------------------------------- deciding


def _solve(commands: Any) -> None:
    parser = flags.add_command(commands, "solve", "decide, print a summary, write a Placement", "solving:run_solve")
    flags.add_source(parser)
    search = parser.add_argument_group("searching")
    option(search, "--method", "METHOD", METHOD_HELP, choices=METHODS, default="auto")
    flags.add_search_limits(search)
    option(search, "--milp-solver", "NAME", "PuLP's name of the solver of --method milp (HiGHS)", default="HiGHS")
    option(search, "--namespace-budget", "BUDGET", "budget of each namespace, or default (off)", default="off")
    switch(search, "--require-all", "exit 5 unless every pending pod was placed")
    flags.add_asking(parser, "which groups the summary lists; all are decided")
    flags.add_what_if(parser)
    output = parser.add_argument_group("writing")
    switch(output, "--wide", "name the nodes of each admitted group in the summary")
    flags.add_output(output, f"the Placement: {_FILE}; - is stdout")
    option(output, "--bindings", "FILE", "the bindings as a v1 List of v1 Bindings, in plan order")


def _verify(commands: Any) -> None:
    text = "judge any placement, print every violation"
    parser = flags.add_command(commands, "verify", text, "solving:run_verify")
    flags.add_inputs(parser, "files, folders or -", needed=True)
    option(parser, "placement", "PLACEMENT", "a Placement, or a List of v1 Bindings; - is stdin")
    flags.add_reading(parser, lenient=True)


def _expand(commands: Any) -> None:
    text = "print the PodGroups and Pods that workloads would make"
    parser = flags.add_command(commands, "expand", text, "solving:run_expand")
    flags.add_inputs(parser, "files, folders or -", needed=True)
    flags.add_reading(parser)
    flags.add_output(parser, "where to write; default standard output", "-")


# -------------------------------------------------------------------------------------------------------------- looking


_QUEUE = """Groups that wait or fit now, one line each, the most urgent and the oldest first. Groups of one priority
that wait for one reason share a line. Below the table is the next step for the first that wait, with its price.
Nothing in the cluster is changed."""


def _queue(commands: Any) -> None:
    text = "waiting groups, one line each, and the next step with its price"
    parser = flags.add_command(commands, "queue", text, "queueing:run", _QUEUE)
    flags.add_source(parser)
    flags.add_asking(parser)
    flags.add_time_limit(parser)
    switch(parser, "--wide", "a line for every group, and the whole reasons")
    costs = parser.add_argument_group("costs")
    switch(costs, "--cost", "the costs of each namespace in place of the waiting groups")
    option(costs, "--namespace-budget", "BUDGET", "most costs of each namespace, or default (off)", default="off")
    flags.add_what_if(parser)


def _explain(commands: Any) -> None:
    text = "why a group is pending, and which changes would admit it"
    parser = flags.add_command(commands, "explain", text, "explaining:run")
    flags.add_source(parser)
    flags.add_asking(parser)
    asking = parser.add_argument_group("asking")
    text = "one group, or those of a pod or workload (default: all that wait)"
    option(asking, "--group", "[KIND/][NAMESPACE/]NAME", text)
    option(asking, "--job", "FILE", "a job that is not submitted: fits now, with a change, or never")
    switch(asking, "--how-many", "how many copies of --group, or each group of --job, fit")
    option(asking, "--spare", "K@TIER", "of --how-many: also with K nodes of each domain lost")
    flags.add_time_limit(asking, "of the call")
    option(asking, "--changes", "FOLDER", "write the objects that changes add into files of FOLDER")
    _add_scheduler_config(asking)
    flags.add_what_if(parser)


def _audit(commands: Any) -> None:
    text = "judge running groups: broken rules, and the best possible place"
    parser = flags.add_command(commands, "audit", text, "auditing:run")
    flags.add_source(parser)
    flags.add_asking(parser)
    flags.add_time_limit(parser)
    switch(parser, "--sums", "only the cluster's sums: stranded resources, groups that still fit")
    flags.add_what_if(parser)


_REPORT = """One HTML page that needs no network: the cluster as a picture, and every fact of it in tables.
Files are recognised by their content: objects of the instance, a Placement (or v1 Bindings), rows of `compare`.
Without a placement the page shows the cluster as it is, with one before and after. Without an instance it shows
the objects of a cluster."""


def _report(commands: Any) -> None:
    text = "write one HTML page that shows a cluster and a placement"
    parser = flags.add_command(commands, "report", text, "reporting:run", _REPORT)
    text = "INSTANCE..., and if wanted a PLACEMENT and a COMPARISON; - is stdin; default: the cluster as it is"
    flags.add_inputs(parser, text, needed=False, dest="files", metavar="FILE")
    flags.add_reading(parser)
    flags.add_cluster(parser)
    flags.add_time_limit(parser)
    page = parser.add_argument_group("page")
    flags.add_output(page, f"the page, .html; - is stdout (default {REPORT})")
    switch(page, "--open", "open the page in the browser")
    text = "write the page again and again (30s, 1m) until Ctrl-C; it loads itself again as often"
    option(page, "--every", "DURATION", text, type=duration)
    option(page, "--cluster-name", "NAME", "title of the page (default: the context, or the first file)", default="")


def _topology(commands: Any) -> None:
    text = "show or discover the network: tier tree, HyperNodes, cost matrix"
    parser = flags.add_command(commands, "topology", text)
    topics = parser.add_subparsers(dest="topic", metavar="TOPIC", required=True, help="one of")
    _show(topics)
    _discover(topics)
    _costs(topics)


def _show(topics: Any) -> None:
    text = "print the tier tree with used and free resources of each domain"
    parser = flags.add_command(topics, "show", text, "topology.show:run")
    flags.add_source(parser, lenient=False)
    group = parser.add_argument_group("showing")
    option(group, "--domain", "NAME", "one domain and those below it; default: all of them")
    text = f"levels of domains, from the top; default all of them (of text as many as have {MOST} domains together)"
    option(group, "--depth", "N", text, type=int)
    text = "resource of the bars; default: GPUs if there are any, else the most used one"
    option(group, "--resource", "NAME", text)
    flags.add_output(parser, f"write the JSON to FILE: {_FILE}; - is stdout")


def _discover(topics: Any) -> None:
    text = "print HyperNodes made from labels of nodes, or from a description of the fabric"
    parser = flags.add_command(topics, "discover", text, "topology.discover:run")
    text = "files, folders or - with the nodes; none: those of a cluster, with --from none at all"
    flags.add_inputs(parser, text, needed=False)
    switch(parser, "--strict", "findings are errors (exit 3)")
    source = parser.add_mutually_exclusive_group(required=True)
    option(source, "--labels", "KEYS", "labels of nodes, nearest first: switch,rack,row")
    text = "output of ibnetdiscover, Slurm's topology.conf or topology.yaml, or topograph's; - is standard input"
    option(source, "--from", "FILE", text, dest="from_")
    text = "which one counts of a FILE with several; tree or block of a topology.conf"
    option(parser, "--topology", "NAME", text)
    flags.add_cluster(parser)
    group = parser.add_argument_group("writing into the cluster")
    switch(group, "--apply", "write the HyperNodes into the cluster, by server-side apply")
    switch(group, "--dry-run", "with --apply: print the changes, and write nothing")
    switch(group, "--prune", "with --apply: remove HyperNodes that placer made and does not find any more")
    switch(group, "--force-conflicts", "with --apply: take over fields that another manager owns")
    flags.add_output(parser, f"the HyperNodes: {_FILE}; default standard output")


def _costs(topics: Any) -> None:
    text = "print the costs of calls between regions and between zones"
    parser = flags.add_command(topics, "costs", text, "topology.costs:run")
    flags.add_source(parser, lenient=False)
    group = parser.add_argument_group("measurements, where the NetworkTopology names a ConfigMap")
    option(group, "--percentile", "N", "of the latencies (default 90)", type=int, default=90)
    text = "latency of cost 1 (default 1000: a millisecond)"
    option(group, "--unit", "MICROSECONDS", text, type=int, default=1000)
    flags.add_output(parser, f"write the JSON to FILE: {_FILE}; - is stdout")


# ---------------------------------------------------------------------------------------------------------- making room


def _preempt(commands: Any) -> None:
    text = "find the fewest pods to evict for a waiting group"
    parser = flags.add_command(commands, "preempt", text, "preempting:run_preempt")
    flags.add_source(parser)
    flags.add_asking(parser)
    asking = _add_limits(parser)
    text = "one group, or those of a pod or workload; may be repeated (default: all that wait)"
    option(asking, "--for", "[KIND/][NAMESPACE/]NAME", text, dest="groups", action="append")
    flags.add_what_if(parser)
    _add_apply(parser)


def _defrag(commands: Any) -> None:
    text = "find the fewest pods to move so that a future job fits, or domains become empty"
    parser = flags.add_command(commands, "defrag", text, "preempting:run_defrag")
    flags.add_source(parser)
    asking = _add_limits(parser)
    room = asking.add_mutually_exclusive_group(required=True)
    text = "'N x PODS x RESOURCES [@ TIER]', such as '4 x 8 x nvidia.com/gpu=8,cpu=96 @ 1'; or a file with a job"
    option(room, "--want", "SHAPE|FILE", text)
    option(room, "--free-domains", "K@TIER", "K HyperNodes of a tier that are to be empty")
    option(asking, "--max-moves", "M", "never move more pods (default: any number)", type=int)
    switch(asking, "--frontier", "a table: moves for 1, 2, ... of the wanted gangs")
    flags.add_what_if(parser)
    _add_apply(parser)


def _repair(commands: Any) -> None:
    text = "place pods of lost nodes again, and disturb the rest least"
    parser = flags.add_command(commands, "repair", text, "preempting:run_repair")
    flags.add_source(parser)
    asking = _add_limits(parser)
    option(asking, "--lost", "NODE,...", "nodes to count as lost (default: those that are not Ready)")
    flags.add_what_if(parser)
    _add_apply(parser)


def _add_limits(parser: argparse.ArgumentParser) -> Any:
    asking = parser.add_argument_group("asking")
    flags.add_time_limit(asking, "of the call")
    flags.add_workers(asking)
    flags.add_output(asking, f"the Placement: {_FILE}; - is stdout")
    return asking


def _add_apply(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("carrying the plan out")
    text = "evict and bind as the plan says, after showing it; of --scheduler-name alone (default placer)"
    switch(group, "--apply", text)
    text = "how long evicted pods may take to be gone, and controllers to make moved ones again (default 300)"
    option(group, "--gone-within", "DURATION", text, type=duration, default=300.0)
    OPTIONS["cool_down"].add_to(group)
    _add_lease(group)


def _add_lease(parser: Any) -> None:
    """Of the Lease, and so of the record of half-bound gangs; ``--help`` leaves them out."""
    for name in ("leader_elect_resource_namespace", "leader_elect_resource_name"):
        OPTIONS[name].add_to(parser)


# ----------------------------------------------------------------------------------------------------------- laboratory


def _add_scheduler_config(parser: Any) -> None:
    text = "a KubeSchedulerConfiguration or volcano-scheduler.conf, for the policy it belongs to; may be repeated"
    option(parser, "--scheduler-config", "FILE", text, action="append", default=[])


_COMPARE = """Bindings of other schedulers and of placer's methods, compared with the proved bound: one snapshot of one
queue, in which nothing arrives or ends. Each runs in a process of its own; verify and score judge all
alike. Broken rules are counted, not hidden."""


def _compare(commands: Any) -> None:
    text = "run policies and methods on one instance, one table"
    parser = flags.add_command(commands, "compare", text, "lab.comparing:run", _COMPARE)
    flags.add_source(parser)
    text = "in place of INSTANCE: folders of passes that --save kept, or Placements; compares the bindings of NEW"
    parser.add_argument("--passes", nargs=2, metavar=("OLD", "NEW"), help=text)
    rows = parser.add_argument_group("rows")
    text = f"names with commas: {_POLICIES.format(' of solve')} (every policy, greedy, auto)"
    option(rows, "--policies", "LIST", text)
    _add_scheduler_config(rows)
    flags.add_search_limits(rows, "of each method")
    flags.add_asking(parser, "which groups are listed; all are decided")
    flags.add_what_if(parser)
    flags.add_output(parser, f"the rows: {_FILE}; - is stdout")


_SWEEP = """Each argument is the path of an instance (a file or folder), or a family of `placer generate` with its
options in one quoted word: "planted --nodes 1000 --pod-sizes 1,2,4,8". Every run is a whole call in a process of its
own. The interval in brackets behind a median is by order statistics. It holds the true one with a probability of at
least 95 percent for six runs, of 94 for five. For fewer runs it is their range."""


def _sweep(commands: Any) -> None:
    text = "run policies over many instances and seeds, a line for each run"
    parser = flags.add_command(commands, "sweep", text, "lab.sweeping:run", _SWEEP)
    flags.add_inputs(parser, "see above", needed=True, dest="word", metavar="FAMILY|INSTANCE")
    text = "of families: their seed; of instances: the policy's (1-5)"
    option(parser, "--seeds", "LIST", text, default="1-5")
    text = f"names with commas: {_POLICIES.format('')} (greedy,auto)"
    option(parser, "--policies", "LIST", text, default="greedy,auto")
    _add_scheduler_config(parser)
    flags.add_reading(parser)
    flags.add_time_limit(parser, "of each method")
    option(parser, "--workers", "N", "solver threads of a run (default: cores / jobs)", type=int)
    option(parser, "--jobs", "N", "runs at once (1); more disturb each other", type=int, default=1)
    text = "where runs start: local, inline, dask:ADDRESS or package.module:function"
    option(parser, "--executor", "NAME", text, default="local")
    text = "a JSON line per run as soon as it is done; runs that FILE has without an error are skipped; - is stdout"
    flags.add_output(parser, text)


_PLOT = """Draws lines of `placer sweep -o`, several files as one sweep, or the output of `placer compare --json`.
profile: the share of instances on which a policy places a given part of the best result. placed: placed weight over
the optimum, or its bound, by family. size: time and memory by number of nodes, with the slope. gap: weight that is not
placed yet, over time. The extra `lab` has the libraries that it needs."""


def _plot(commands: Any) -> None:
    text = "draw figures from sweep's lines or compare's JSON"
    parser = flags.add_command(commands, "plot", text, "lab.plotting:run", _PLOT)
    option(parser, "file", "FILE", "see above", nargs="+")
    parser.add_argument("--figure", choices=FIGURES, default="profile", help="the figure to draw (profile)")
    text = "where to draw: .pdf, .svg, .png; .csv is a table; - is the table on stdout (default)"
    flags.add_output(parser, text, "-")


def _generate(commands: Any) -> None:
    parser = flags.add_command(commands, "generate", GENERATE, "lab.generating:run")
    from placer.lab.generate import FAMILIES

    families = parser.add_subparsers(dest="family", metavar="FAMILY", required=True, help="one of")
    for name, family in FAMILIES.items():
        one = families.add_parser(name, help=family.text, description=family.text)
        flags.add_output(one, "where to write; default standard output", "-")
        for each in family.flags:
            if each.switch:
                switch(one, each.flag, each.text, dest=f"option_{each.name}")
            else:
                default = ",".join(map(str, each.default)) if isinstance(each.default, tuple) else each.default
                text = f"{each.text} ({each.expected}; default {default})".replace("%", "%%")
                option(one, each.flag, "N", text, dest=f"option_{each.name}")


# ------------------------------------------------------------------------------------------------------- in the cluster


def _snapshot(commands: Any) -> None:
    text = "write the cluster's objects, as an instance"
    parser = flags.add_command(commands, "snapshot", text, "snapshotting:run")
    flags.add_cluster(parser)
    text = "whose pending pods are ours (default '*': any scheduler's)"
    option(parser, "--scheduler-name", "NAME", text, default="*")
    switch(parser, "--strict", "findings are errors (exit 3): nothing is written")
    text = "replace every name, label value and reference by another one; the decision is the same"
    switch(parser, "--anonymize", text)
    OPTIONS["cool_down"].add_to(parser)
    _add_lease(parser)
    flags.add_output(parser, f"{', '.join(printing.ENDINGS)}; default standard output", "-")


def _run(commands: Any) -> None:
    add_pass_flags(
        flags.add_command(commands, "run", "decide and bind in the cluster: one pass, or --every", "running:run")
    )


def _check(commands: Any) -> None:
    text = "check that this cluster and these rights suffice for passes"
    add_pass_flags(flags.add_command(commands, "check", text, "checking:run"))


def _config(commands: Any) -> None:
    text = "print the options that hold for a pass, and where each is from"
    add_pass_flags(flags.add_command(commands, "config", text, "configuring:run"))


_COMPLETION = """Print the script by which a shell completes commands, options, choices, policies and files. For bash
put `eval "$(placer completion bash)"` into ~/.bashrc; for zsh put `eval "$(placer completion zsh)"` into ~/.zshrc,
after compinit; for fish run `placer completion fish > ~/.config/fish/completions/placer.fish`."""


def _completion(commands: Any) -> None:
    text = "print the script by which a shell completes commands"
    parser = flags.add_command(commands, "completion", text, "completing:run", _COMPLETION)
    option(parser, "shell", "SHELL", ", ".join(SHELLS), choices=SHELLS)


def _version(commands: Any) -> None:
    flags.add_command(commands, "version", "print the version", "program:run_version")


def _help(commands: Any) -> None:
    parser = flags.add_command(commands, "help", "print the help of a command", "program:run_help")
    option(parser, "words", "COMMAND", "which; default: all commands in a line each", nargs="*")


_ADDING = (
    *(_solve, _verify, _expand, _queue, _explain, _preempt, _defrag, _repair, _audit, _generate, _compare, _sweep),
    *(_plot, _report, _topology, _snapshot, _run, _check, _config, _completion, _version, _help),
)

#: Command to what adds it with its flags.
COMMANDS: Mapping[str, Callable[[Any], None]] = {each.__name__.removeprefix("_"): each for each in _ADDING}

#: Commands by what a user wants, in the order in which ``placer --help`` lists them.
GROUPS = {
    "look": ("queue", "explain", "audit", "topology", "report", "verify"),
    "decide": ("solve", "expand"),
    "make room": ("preempt", "defrag", "repair"),
    "run in a cluster": ("run", "check", "snapshot"),
    "laboratory": ("compare", "sweep", "plot", "generate"),
    "administration": ("config", "completion", "version", "help"),
}

#: Command to two calls of it.
CALLS = {
    "audit": ("placer audit", "placer audit cluster.yaml -n ml -o json"),
    "check": ("placer check", "placer check --context staging --enforce gates"),
    "compare": (
        "placer compare cluster.yaml",
        "placer compare cluster.yaml --policies kube-default,volcano,auto -o rows.json",
    ),
    "completion": ('eval "$(placer completion bash)"', "placer completion fish > placer.fish"),
    "config": ("placer config --config placer.yaml", "placer config --time-limit 30s -o yaml"),
    "defrag": (
        "placer defrag --want '4 x 8 x nvidia.com/gpu=8 @ 1'",
        "placer defrag cluster.yaml --free-domains 1@rack --max-moves 20",
    ),
    "expand": ("placer expand jobs.yaml", "placer expand cluster.yaml jobs.yaml -o pods.yaml"),
    "explain": ("placer explain ml/train", "placer explain cluster.yaml --job new-job.yaml"),
    "generate": (
        "placer generate planted -o instance.json.gz",
        "placer generate planted --nodes 200 --seed 7 | placer solve -",
    ),
    "help": ("placer help solve", "placer help topology show"),
    "plot": ("placer plot runs.jsonl -o profile.svg", "placer plot rows.json --figure placed -o placed.png"),
    "preempt": ("placer preempt --for ml/train", "placer preempt cluster.yaml --for ml/train -o plan.yaml"),
    "queue": ("placer queue", "placer queue -n ml -o wide"),
    "repair": ("placer repair", "placer repair cluster.yaml --lost n17,n18"),
    "report": ("placer report cluster.yaml -o report.html", "placer report cluster.yaml placement.yaml -o report.html"),
    "run": ("placer run --dry-run", "placer run --every 30s"),
    "snapshot": ("placer snapshot --scheduler-name '*' -o now.json.gz", "placer snapshot --anonymize -o now.json.gz"),
    "solve": ("placer solve cluster.yaml", "placer solve cluster.yaml -o placement.yaml --time-limit 2m"),
    "sweep": (
        "placer sweep cluster.yaml --policies greedy,auto -o runs.jsonl",
        'placer sweep "planted --nodes 200" --seeds 1-10 -o runs.jsonl',
    ),
    "topology costs": ("placer topology costs", "placer topology costs cluster.yaml -o costs.yaml"),
    "topology discover": (
        "placer topology discover --labels rack,row -o hypernodes.yaml",
        "placer topology discover --from topology.conf nodes.yaml",
    ),
    "topology show": ("placer topology show", "placer topology show cluster.yaml --depth 2"),
    "verify": ("placer verify cluster.yaml placement.yaml", "placer verify cluster.yaml bindings.json -o json"),
    "version": ("placer version", "placer version -o json"),
}
