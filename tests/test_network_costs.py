"""``placer topology costs``: which list decides, what its matrices are, what measurements come to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from placer.base.errors import BadInstance, UsageError
from placer.cli import main
from placer.problem import Key
from placer.problem.reading import read
from placer.topology.network_costs import CostReport, read_costs
from tests.support import node, pod, policy

REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
GROUP = "appgroup.diktyo.x-k8s.io"
KEP = Path(__file__).parent.parent / "instances" / "network" / "kep-260.yaml"
Capture = pytest.CaptureFixture[str]
Document = dict[str, Any]

#: Zones a and b of region r, zone c of region s.
NODES = [
    node("a1", {REGION: "r", ZONE: "a"}),
    node("b1", {REGION: "r", ZONE: "b"}),
    node("c1", {REGION: "s", ZONE: "c"}),
]


def topology(*lists: Document, name: str = "nt-default", namespace: str = "default") -> Document:
    return {
        "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
        "kind": "NetworkTopology",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"configmapName": "netperf-metrics", "weights": list(lists)},
    }


def weights(name: str, *links: tuple[str, str, str, int], capacity: str | None = None) -> Document:
    """Links as key, origin, destination, cost; each of them one way."""
    return {
        "name": name,
        "topologyList": [
            {
                "topologyKey": key,
                "originList": [
                    {
                        "origin": one,
                        "costList": [
                            {"destination": two, "networkCost": cost}
                            | ({} if capacity is None else {"bandwidthCapacity": capacity})
                        ],
                    }
                ],
            }
            for key, one, two, cost in links
        ],
    }


def config_map(**latencies: str) -> Document:
    """Microseconds from node to node, as ``a1_b1="5000"``; p90."""
    data = {
        "netperf_p90_latency_microseconds.origin.{}.destination.{}".format(*pair.split("_")): value
        for pair, value in latencies.items()
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "netperf-metrics"}, "data": data}


def both(key: str, one: str, two: str, cost: int) -> tuple[tuple[str, str, str, int], ...]:
    return (key, one, two, cost), (key, two, one, cost)


USER = weights("UserDefined", *both(REGION, "r", "s", 20), *both(ZONE, "a", "b", 5))
OTHER = weights("Night", *both(REGION, "r", "s", 7), *both(ZONE, "a", "b", 3))


@pytest.fixture
def written(tmp_path: Path) -> Any:
    """Write objects as one file, and say where."""

    def write(*documents: Any) -> str:
        path = tmp_path / "instance.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)}))
        return str(path)

    return write


def costs(report: CostReport) -> dict[str, dict[str, dict[str, int]]]:
    """Region of the zones, ``between`` for regions, to the matrix."""
    found = report.as_dict()
    return {"between": found["regions"]["costs"]} | {each["region"]: each["costs"] for each in found["zones"]}


def test_the_matrices_of_the_kep() -> None:
    report = read_costs(KEP)
    assert (report.topology, report.weights) == (Key("default", "net-topology-test"), "UserDefined")
    assert costs(report) == {
        "between": {"us-east-1": {"us-west-1": 20}, "us-west-1": {"us-east-1": 20}},
        "us-east-1": {"z3": {"z3": 1, "z4": 10}, "z4": {"z3": 10, "z4": 1}},
        "us-west-1": {"z1": {"z1": 1, "z2": 5}, "z2": {"z1": 5, "z2": 1}},
    }
    assert {str(link): amount for link, amount in report.allocated.items()} == {"zone link z1 -> z2": 250 * 2**20}
    assert (report.config_map, report.measured, report.findings) == (Key("default", "netperf-metrics"), None, ())


def test_the_list_of_the_user_decides_unless_the_policy_says_otherwise(written: Any) -> None:
    usual = read_costs(written(*NODES, topology(OTHER, USER)))
    assert (usual.weights, usual.lists, costs(usual)["between"]["r"]) == (
        "UserDefined",
        ("Night", "UserDefined"),
        {"s": 20},
    )
    night = read_costs(written(*NODES, topology(OTHER, USER), policy(network={"weights": "Night"})))
    assert (night.weights, costs(night)["r"]["a"]) == ("Night", {"a": 1, "b": 3})
    first = read_costs(written(*NODES, topology(OTHER)))
    assert (first.weights, costs(first)["r"]["a"]["b"]) == ("Night", 3)
    none = read_costs(written(*NODES, topology()))
    assert (none.weights, costs(none)["r"]["a"]["b"]) == (None, 100)


def test_the_policy_names_the_object(written: Any) -> None:
    objects = [*NODES, topology(USER), topology(OTHER, name="other", namespace="net")]
    assert read_costs(written(*objects)).topology == Key("default", "nt-default")
    report = read_costs(written(*objects, policy(network={"topology": "net/other"})))
    assert (report.topology, report.weights) == (Key("net", "other"), "Night")


def test_an_unknown_cost_is_100_and_marked(written: Any, capsys: Capture) -> None:
    path = written(*NODES, topology(weights("UserDefined", (ZONE, "a", "b", 5))))
    report = read_costs(path)
    assert costs(report) == {
        "between": {"r": {"s": 100}, "s": {"r": 100}},
        "r": {"a": {"a": 1, "b": 5}, "b": {"a": 100, "b": 1}},
        "s": {"c": {"c": 1}},
    }
    found = report.as_dict()
    assert found["regions"]["unknown"] == [["r", "s"], ["s", "r"]]
    assert [each["unknown"] for each in found["zones"]] == [[["b", "a"]], []]
    assert main(["topology", "costs", path]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines if line.startswith("b ")] == [["b", "100*", "1"]]
    assert "* no entry, counts as 100" in lines


def test_what_the_measurements_come_to(written: Any, capsys: Capture) -> None:
    """r to s took 21.3 ms and a to b 1.2: in whole milliseconds 22 and 2, in units of 100 µs 213 and 12."""
    objects = [*NODES, topology(USER), config_map(a1_c1="21300", a1_b1="1200")]
    report = read_costs(written(*objects))
    assert report.measured is not None
    regions, r, s = report.measured.matrices
    assert (regions.cost("r", "s"), regions.cost("s", "r"), regions.cost("r", "r")) == (22, 22, None)
    assert (r.cost("a", "b"), r.cost("a", "a"), s.names) == (2, 1, ("c",))
    assert costs(report)["r"]["a"]["b"] == 5, "what decides is the user's list all the same"
    path = written(*objects)
    assert main(["topology", "costs", path, "--unit", "100", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)["measured"]
    assert (measured["percentile"], measured["microsecondsPerCost"]) == (90, 100)
    assert (measured["regions"]["costs"]["r"]["s"], measured["zones"][0]["costs"]["b"]["a"]) == (213, 12)
    assert main(["topology", "costs", path]) == 0
    assert "ConfigMap default/netperf-metrics: measured, p90, 1,000 microseconds cost 1" in capsys.readouterr().out


def test_measured_costs_decide_where_the_policy_chooses_them(written: Any, capsys: Capture) -> None:
    """What is shown as deciding is what solve uses: p90 in milliseconds, whatever is asked to be shown beside it."""
    chosen = policy(network={"weights": "NetperfCosts"})
    path = written(*NODES, topology(USER), config_map(a1_c1="21300", a1_b1="1200"), chosen)
    report = read_costs(path, unit=100)
    assert (report.weights, report.lists, report.findings) == ("NetperfCosts", ("UserDefined",), ())
    assert (costs(report)["between"]["r"], costs(report)["r"]["a"]["b"]) == ({"s": 22}, 2)
    network = read(path).network
    assert network is not None
    assert {str(link): cost for link, cost in network.costs.items()} == {
        "region link r -> s": 22,
        "region link s -> r": 22,
        "zone link a -> b": 2,
        "zone link b -> a": 2,
    }
    assert main(["topology", "costs", path]) == 0
    assert "NetworkTopology default/nt-default: list NetperfCosts (not UserDefined)" in capsys.readouterr().out


def test_a_percentile_that_was_not_measured_is_a_finding(written: Any, capsys: Capture) -> None:
    path = written(*NODES, topology(USER), config_map(a1_b1="1200"))
    assert main(["topology", "costs", path, "--percentile", "99", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [finding["code"] for finding in found["findings"]] == ["NetperfPercentile"]
    assert found["measured"]["zones"][0]["costs"]["a"] == {"a": 1, "b": 100}
    assert main(["topology", "costs", path, "--percentile", "99", "--strict"]) == 3
    assert "NetperfPercentile" in capsys.readouterr().err


def test_links_are_listed_with_what_is_taken_of_them(written: Any, capsys: Capture) -> None:
    links = weights("UserDefined", *both(ZONE, "a", "b", 5), *both(REGION, "r", "s", 20), capacity="1k")
    group = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "AppGroup",
        "metadata": {"name": "shop"},
        "spec": {
            "workloads": [
                {
                    "workload": {"kind": "Deployment", "name": "web", "selector": "web"},
                    "dependencies": [
                        {
                            "workload": {"kind": "Deployment", "name": "db", "selector": "db"},
                            "minBandwidth": "250",
                            "maxNetworkCost": 99,
                        }
                    ],
                },
                {"workload": {"kind": "Deployment", "name": "db", "selector": "db"}},
            ]
        },
    }
    pods = [
        pod(f"{name}-0", labels={GROUP: "shop", f"{GROUP}.workload": name}, node=where)
        for name, where in (("web", "b1"), ("db", "a1"))
    ]
    path = written(*NODES, topology(links), group, *pods)
    assert main(["topology", "costs", path]) == 0
    lines = capsys.readouterr().out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("Bandwidth, bit/s"))
    rows = [line.split() for line in lines[start + 2 : start + 6]]
    assert rows[0] == ["zone", "b", "->", "a", "1,000", "250", "25%"]
    assert [row[-2:] for row in rows[1:]] == [["0", "0%"]] * 3


def test_without_a_network_topology_there_is_nothing_to_show(written: Any, capsys: Capture) -> None:
    path = written(*NODES)
    with pytest.raises(BadInstance, match="NetworkTopology: found none, expected at least one"):
        read_costs(path)
    assert main(["topology", "costs", path]) == 3
    assert "NetworkTopology: found none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"percentile": 101}, "percentile: found 101, expected a number from 0 to 100"),
        ({"percentile": -1}, "percentile: found -1"),
        ({"unit": 0}, "unit: found 0, expected microseconds, at least 1"),
    ],
)
def test_options_out_of_range(options: dict[str, int], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_costs(KEP, **options)
    flags = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    assert main(["topology", "costs", str(KEP), *flags]) == 2


def test_a_topic_is_needed(capsys: Capture) -> None:
    assert main(["topology"]) == 2
    assert "TOPIC" in capsys.readouterr().err
