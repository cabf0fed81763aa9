"""What the shipped instances show of other schedulers, beside what is proved; and that README shows just that."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from placer.base.words import is_amount
from placer.lab.comparing import DEFAULT, ComparisonRow, compare
from placer.lab.policies.mimicry import POLICIES, SORTED, run
from placer.problem.placement import Value
from placer.problem.reading import read
from placer.rules.scoring import score
from tests.examples import exhaustive

ROOT = Path(__file__).parents[2]
NETWORK, NUMA, PLANTED = (ROOT / "instances" / family for family in ("network", "numa", "planted"))

#: NetworkOverhead with its filter and its score, and no other score.
ALONE: dict[str, Any] = {
    "plugins": {
        "multiPoint": {"enabled": [{"name": "NetworkOverhead"}]},
        "queueSort": {"enabled": [{"name": "TopologicalSort"}], "disabled": [{"name": "*"}]},
        "score": {"enabled": [{"name": "NetworkOverhead"}], "disabled": [{"name": "*"}]},
    }
}
#: Pods per node of the Online Boutique's instances to the least network cost (``instances/network/README.md``).
OPTIMUM = {2: 84, 3: 29}
#: Sort to the mean cost of a simulation of the plug-in alone, by others: ties at random, 2,000 runs each, for 2 and 3
#: pods a node. AlternateTarjan is left out: it depends on the order of a Go map.
SIMULATED = {
    "KahnSort": (189, 182),
    "TarjanSort": (190, 183),
    "AlternateKahn": (171, 162),
    "ReverseKahn": (135, 113),
    "ReverseTarjan": (137, 114),
}


def value(row: ComparisonRow, name: str) -> tuple[int, int | None]:
    """A value of the objective and its bound."""
    judged = next(each for each in row.objective if each.value.name == name)
    return judged.value.value, None if judged.bound is None else judged.bound.value


@pytest.mark.parametrize("pods", [2, *exhaustive(3)])
def test_each_of_the_six_sorts_beside_the_proved_optimum(pods: int) -> None:
    instance = read(NETWORK / f"online-boutique-{pods}.yaml")
    rows = {row.policy: row for row in compare(instance, [*SORTED, "exact"], workers=1)}
    assert len(rows) == 7
    assert value(rows["exact"], "networkCost") == (OPTIMUM[pods], OPTIMUM[pods])
    for row in rows.values():
        # Each places all pods near nothing in particular, so that the bound of the cost is its bound too.
        assert (row.error, row.placed_pods, row.violations) == (None, 11, {})
        assert value(row, "networkCost")[1] == OPTIMUM[pods]
    costs = {name: value(rows[name], "networkCost")[0] for name in SORTED}
    assert min(costs.values()) > 1.3 * OPTIMUM[pods]
    # Only with callees first does the plug-in see any call.
    reverse = [cost for name, cost in costs.items() if "Reverse" in name]
    assert max(reverse) < min(cost for name, cost in costs.items() if "Reverse" not in name)


@pytest.mark.parametrize("algorithm", SIMULATED)
def test_the_sorts_cost_what_others_found_by_simulation(algorithm: str) -> None:
    """Means of 200 runs; the standard deviation of one is about 25 to 30, so of the mean about 2."""
    for pods, expected in zip(OPTIMUM, SIMULATED[algorithm], strict=True):
        instance = read(NETWORK / f"online-boutique-{pods}.yaml")
        placements = (run(instance, f"network-overhead:{algorithm}", seed=seed, arguments=ALONE) for seed in range(200))
        costs = [
            next(each.value for each in score(instance, placement) if each.name == "networkCost")
            for placement in placements
        ]
        assert mean(costs) == pytest.approx(expected, abs=6)
        assert min(costs) >= OPTIMUM[pods]


def test_numa_match_beside_auto_and_what_the_kubelets_would_refuse() -> None:
    instance = read(NUMA / "numa-3.yaml")
    match, auto = compare(instance, ["numa-match", "auto"], workers=1)
    assert list(match.violations) == ["C10"]
    assert "is refused by the kubelet of Node" in match.examples["C10"]
    # All that was planted fits.
    assert (auto.placed_pods, auto.violations) == (len(instance.pending), {})
    assert (auto.weight and auto.weight.met, value(auto, "placed")[0] > value(match, "placed")[0]) == (True, True)


def test_every_policy_on_a_planted_queue() -> None:
    rows = compare(read(PLANTED / "planted-16.yaml"), time_limit=600, workers=1)
    assert tuple(row.policy for row in rows) == DEFAULT
    for row in rows:
        assert row.error is None
        assert row.examples.keys() == row.violations.keys()
        assert row.weight is not None
        assert row.weight.bound is not None
    assert rows[-1].policy == "auto"
    assert rows[-1].violations == {}
    assert rows[-1].weight is not None
    assert rows[-1].weight.met


def section() -> list[str]:
    """The page of comparisons up to its second heading, cut at its code."""
    return (ROOT / "docs" / "compare.md").read_text(encoding="utf-8").split("\n## ")[0].split("```")


def shown() -> tuple[str, dict[str, list[str]], dict[str, list[str]]]:
    """The command of its comparison, its rows of figures and its rows of values, by policy."""
    _, command, _, table, *_ = section()
    figures, values = table.split("Values, in the order they are compared")
    return command, by_policy(figures), by_policy(values)


def by_policy(table: str) -> dict[str, list[str]]:
    """First word of each line to the others."""
    return {words[0]: words[1:] for line in table.splitlines() if (words := line.split())}


def as_shown(values: Iterable[Value]) -> list[str]:
    """Values as the page shows them: amounts in nodes."""
    return [f"{each.value / 1e6:,.1f}" if is_amount(each.name) else f"{each.value:,}" for each in values]


def test_the_page_shows_what_the_command_prints() -> None:
    """Of policies, which do not change; seconds and memory do, and methods get better."""
    command, figures, values = shown()
    words = command.split()
    assert words[1:4] == ["placer", "compare", "instances/planted/planted-200-mixed.json.gz"]
    names = words[words.index("--policies") + 1].split(",")
    assert set(names) <= figures.keys() & values.keys()
    instance = read(ROOT / words[3])
    for row in compare(instance, [name for name in names if name in POLICIES]):
        broken = " ".join(f"{rule} {count}," for rule, count in row.violations.items()).rstrip(",")
        cells = " ".join(figures[row.policy][:-2])
        assert cells.startswith(f"{row.placed_pods:,} {row.placed_groups:,} {row.gpus_placed:,} ")
        assert cells.endswith(broken)
        assert values[row.policy] == as_shown(judged.value for judged in row.objective)
    # Everything is planted, and placed.
    assert int(figures["greedy"][0]) == int(figures["auto"][0]) == len(instance.pending)


def test_the_page_shows_the_six_sorts_and_numa_match_as_they_come_out() -> None:
    page = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    lines = page.split("\n## Network cost")[1].split("\n## ")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    rows = {name: row[1:] for row in cells for name in row[0].split(", ")}
    assert {"bound", "auto", *(name.partition(":")[2] for name in SORTED)} <= rows.keys()
    boutique, zones = read(NETWORK / "online-boutique-2.yaml"), read(NUMA / "numa-50.json.gz")
    for name in SORTED:
        values = {value.name: value.value for value in score(boutique, run(boutique, name))}
        assert rows[name.partition(":")[2]] == [str(values["networkCost"]), str(values["packedNodes"])]
    assert rows["bound"][0] == str(OPTIMUM[2])
    for row in compare(zones, ["kube-default", "numa-match"]):
        assert rows[row.policy][0] == str(row.placed_pods)
        assert rows[row.policy][2] == f"C10 {row.violations['C10']}"
    assert str(len(zones.pending)) in page
