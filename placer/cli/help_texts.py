"""What ``placer --help`` and ``placer COMMAND --help`` say beyond the flags: groups of commands, and examples."""

from __future__ import annotations

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
EXAMPLES = {
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
