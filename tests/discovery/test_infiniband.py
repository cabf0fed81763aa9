"""What ibnetdiscover prints, to domains: names, rails, levels, what is left out and told."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.errors import BadInstance
from placer.topology.discovery import hyper_nodes
from placer.topology.discovery.infiniband import discover_infiniband
from placer.topology.discovery.switches import Discovery
from tests.discovery.fabrics import ibnetdiscover, three_tiers
from tests.examples import examples
from tests.support import instance_of, node


def shape(found: Discovery) -> dict[str, tuple[int, str | None, tuple[str, ...]]]:
    """Domain to its tier, its parent and its hosts."""
    return {name: (each.tier, each.parent, each.nodes) for name, each in found.tree.hyper_nodes.items()}


def guids(kind: str, count: int) -> list[str]:
    return [f"{kind}{number:014x}" for number in range(1, count + 1)]


#: The manual page's example, shortened: unmanaged switches, adapters without a host's name.
EXAMPLE = """
# Topology file: generated on Tue Jun  5 14:15:10 2007
#
# Max of 3 hops discovered

Non-Chassis Nodes

vendid=0x8f1
devid=0x5a06
sysimgguid=0x5442ba00003000
switchguid=0x5442ba00003080(5442ba00003080)
Switch  24 "S-005442ba00003080"         # "ISR9024 Voltaire" base port 0 lid 6 lmc 0
[22]    "H-0008f10403961354"[1](8f10403961355)         # "MT23108 InfiniHost Mellanox Technologies" lid 4 4xSDR
[10]    "S-0008f10400410015"[1]         # "SW-6IB4 Voltaire" lid 3 4xSDR
[8]     "H-0008f10403960558"[2](8f1040396055a)         # "triton HCA-1" lid 14 4xSDR

vendid=0x8f1
devid=0x5a05
switchguid=0x8f10400410015(8f10400410015)
Switch  8 "S-0008f10400410015"          # "SW-6IB4 Voltaire" base port 0 lid 3 lmc 0
[6]     "H-0008f10403960984"[1](8f10403960985)         # "skoll mlx4_0" lid 16 4xSDR
[1]     "S-005442ba00003080"[10]                # "ISR9024 Voltaire" lid 6 1xSDR

vendid=0x2c9
devid=0x5a44
caguid=0x8f10403961354
Ca      2 "H-0008f10403961354"          # "MT23108 InfiniHost Mellanox Technologies"
[1](8f10403961355)      "S-005442ba00003080"[22]                # lid 4 lmc 1 "ISR9024 Voltaire" lid 6 4xSDR

caguid=0x8f10403960558
Ca      2 "H-0008f10403960558"          # "triton HCA-1"
[2](8f1040396055a)      "S-005442ba00003080"[8]         # lid 14 lmc 1 "ISR9024 Voltaire" lid 6 4xSDR

caguid=0x8f10403960984
Ca      2 "H-0008f10403960984"          # "skoll mlx4_0"
[1](8f10403960985)      "S-0008f10400410015"[6]         # lid 16 lmc 1 "SW-6IB4 Voltaire" lid 3 4xSDR
"""


def test_switches_without_a_name_are_called_by_their_guid() -> None:
    found = discover_infiniband(EXAMPLE, "fabric")
    assert shape(found) == {
        "switch-005442ba00003080": (1, "switch-0008f10400410015-tier2", ("triton",)),
        "switch-0008f10400410015": (1, "switch-0008f10400410015-tier2", ("skoll",)),
        "switch-0008f10400410015-tier2": (2, None, ()),
    }
    assert [str(each) for each in found.findings] == [
        "HostWithoutName 1 channel adapter without a host's name, such as h-0008f10403961354 "
        "(MT23108 InfiniHost Mellanox Technologies): left out"
    ]


def test_three_tiers_with_rails() -> None:
    """Two pods of two groups of four leaves: one domain a group, a pod, and the whole."""
    found = discover_infiniband(three_tiers(pods=2, leaves=2, hosts=2, spines=2, cores=2, rails=4), "fabric")
    assert shape(found) == {
        "leaf-0-0-0": (1, "spine-0-0", ("gpu-0-0", "gpu-0-1")),
        "leaf-0-1-0": (1, "spine-0-0", ("gpu-0-2", "gpu-0-3")),
        "leaf-1-0-0": (1, "spine-1-0", ("gpu-1-0", "gpu-1-1")),
        "leaf-1-1-0": (1, "spine-1-0", ("gpu-1-2", "gpu-1-3")),
        "spine-0-0": (2, "core-0", ()),
        "spine-1-0": (2, "core-0", ()),
        "core-0": (3, None, ()),
    }
    assert found.titles["leaf-0-1-0"] == "leaf-0-1-0, leaf-0-1-1, leaf-0-1-2, leaf-0-1-3"
    assert found.notes == (
        "16 switches have the same hosts and make 4 domains, such as leaf-0-0-0, leaf-0-0-1, leaf-0-0-2, leaf-0-0-3",
        "4 switches of level 2 make 2 domains by their links, such as spine-0-0, spine-0-1",
        "2 switches of level 3 make 1 domain by their links, such as core-0, core-1",
    )
    assert found.findings == ()


def test_a_torn_rail_does_not_part_a_domain() -> None:
    """The second adapter of host b has no link: the leaves share host a all the same."""
    leaves, adapters = guids("01", 2), guids("04", 3)
    text = ibnetdiscover(
        dict(zip(leaves, ("leaf-a", "leaf-b"), strict=True)),
        dict(zip(adapters, ("a mlx5_0", "a mlx5_1", "b mlx5_0"), strict=True)),
        [(leaves[0], adapters[0]), (leaves[1], adapters[1]), (leaves[0], adapters[2])],
    )
    assert shape(discover_infiniband(text, "fabric")) == {"leaf-a": (1, None, ("a", "b"))}


def test_a_host_on_a_core_counts_only_if_it_is_a_node() -> None:
    """A storage server on the core makes it a leaf, and pods one domain of tier 2; as no node it is left out first."""
    text = three_tiers(pods=2, leaves=1, hosts=2, spines=1, cores=1)
    text += '\nCa\t1 "H-00000000000000ff"\t\t# "store HCA-1"\n[1](ff) \t"S-0300000000000000"[9]\t\t# lid 1 lmc 0\n'
    assert discover_infiniband(text, "fabric").tree.root_tier == 3
    found = discover_infiniband(text, "fabric", lambda host: host.startswith("gpu"))
    assert [shape(found)[name][0] for name in ("leaf-0-0-0", "spine-0-0", "core-0")] == [1, 2, 3]
    assert found.notes[-1] == "1 channel adapter in hosts that are no nodes: left out"


def test_modules_of_a_director_have_one_name_and_two_guids() -> None:
    leaves, adapters = guids("01", 2), guids("04", 2)
    text = ibnetdiscover(
        dict(zip(leaves, ("MF0;director:CS7500/L01/U1", "MF0;director:CS7500/L02/U1"), strict=True)),
        dict(zip(adapters, ("a HCA-1", "b HCA-1"), strict=True)),
        zip(leaves, adapters, strict=True),
    )
    assert list(shape(discover_infiniband(text, "fabric"))) == [f"director-{guid}" for guid in leaves]


def test_what_is_no_host_is_no_host() -> None:
    """Aggregation nodes of switches, adapters of a host that has not said its name."""
    leaves, adapters = guids("01", 1), guids("04", 4)
    words = ("a HCA-1 (Mellanox HCA)", "Mellanox Technologies Aggregation Node", "localhost mlx5_0", "bare")
    text = ibnetdiscover(
        {leaves[0]: "leaf"}, dict(zip(adapters, words, strict=True)), [(leaves[0], each) for each in adapters]
    )
    found = discover_infiniband(text, "fabric")
    assert shape(found) == {"leaf": (1, None, ("a", "bare"))}
    assert [each.code for each in found.findings] == ["HostWithoutName"]


def test_every_fault_is_told_at_once() -> None:
    text = EXAMPLE.replace("Ca      2", "Cab     2", 1).replace('"S-0008f10400410015"[1]', '"S-00000000000000aa"[1]')
    with pytest.raises(BadInstance) as caught:
        discover_infiniband(text, "fabric")
    told = [str(each) for each in caught.value.faults]
    assert len(told) == 3
    assert "line 27" in told[0]
    assert "found Cab     2" in told[0]
    assert "a link to h-0008f10403961354, which is not described" in told[1]
    assert "a link to s-00000000000000aa, which is not described" in told[2]
    with pytest.raises(
        BadInstance, match="2 switches and 2 hosts with a name, expected hosts whose names are those of"
    ):
        discover_infiniband(EXAMPLE, "fabric", lambda _: False)


@st.composite
def fabrics(draw: st.DrawFn) -> tuple[str, nx.Graph, dict[str, set[str]]]:
    """A fabric at random as text, its switches as a graph, and the hosts on each."""
    switches = guids("01", draw(st.integers(1, 7)))
    hosts = guids("04", draw(st.integers(1, 8)))
    pairs = st.tuples(st.sampled_from(switches), st.sampled_from(switches)).filter(lambda pair: pair[0] != pair[1])
    between = draw(st.lists(pairs, max_size=12)) if len(switches) > 1 else []
    on = [(draw(st.sampled_from(switches)), host) for host in hosts]
    on += draw(st.lists(st.tuples(st.sampled_from(switches), st.sampled_from(hosts)), max_size=3))
    text = ibnetdiscover(
        {each: f"sw{index}" for index, each in enumerate(switches)},
        {each: f"host{index} HCA-1" for index, each in enumerate(hosts)},
        [*between, *on],
    )
    graph = nx.Graph(between)
    graph.add_nodes_from(switches)
    held: dict[str, set[str]] = {each: set() for each in switches}
    for switch, host in on:
        held[switch].add(f"host{hosts.index(host)}")
    return text, graph, held


@examples(200)
@given(fabrics())
def test_domains_are_what_is_linked_without_going_higher(fabric: tuple[str, nx.Graph, dict[str, set[str]]]) -> None:
    """Two hosts have a domain of tier t or lower in common if and only if links that join at t or lower do."""
    text, graph, held = fabric
    found = discover_infiniband(text, "fabric")
    leaves = [switch for switch in graph if held[switch]]
    distance = nx.multi_source_dijkstra_path_length(graph, set(leaves))
    hosts = sorted(set[str]().union(*held.values()))
    links = nx.Graph()
    links.add_nodes_from(hosts)
    links.add_edges_from((switch, host, {"joins": 1}) for switch in graph for host in held[switch])
    for one, two in graph.edges:
        if one in distance and two in distance:
            low, high = sorted((distance[one] + 1, distance[two] + 1))
            links.add_edge(one, two, joins=high + (low == high))
    for one in hosts:
        for two in hosts:
            common = found.tree.smallest_common((one, two))
            tier = found.tree.tier(common) if common is not None else None
            assert tier == lowest(links, one, two), (one, two)
    documents, _ = hyper_nodes(found)
    instance = instance_of(*map(node, hosts), *documents)
    assert instance.findings == ()
    assert len(instance.topology.hyper_nodes) == len(documents)


def lowest(links: nx.Graph, one: str, two: str) -> int | None:
    """The lowest tier at which two hosts are connected; None: at none."""
    for tier in range(1, 12):
        part = links.edge_subgraph([(a, b) for a, b, joins in links.edges(data="joins") if joins <= tier])
        if one in part and two in part and nx.has_path(part, one, two):
            return tier
    return None
