"""Slurm's topology.conf and topology.yaml, hostlists, and topograph's spelling of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.errors import BadInstance, UsageError
from placer.topology.discovery.slurm import MOST_NAMES, discover_topology_conf, discover_topology_yaml, expand
from placer.topology.discovery.switches import Discovery
from tests.examples import examples

#: The examples of the manual page.
TREE = """
# Slurm's network topology configuration file for use with the
# topology/tree plugin
SwitchName=s0 Nodes=dev[0-5]
SwitchName=s1 Nodes=dev[6-11] LinkSpeed=100 # faster
SwitchName=s2 \\
  Nodes=dev[12-17]
switchname = s3 switches="s[0-2]"
"""
BLOCKS = """
BlockName=block1 Nodes=node[1-32]
BlockName=block2 Nodes=node[33-64]
BlockName=block3 Nodes=node[65-96]
BlockName=block4 Nodes=node[97-128]
"""


def shape(found: Discovery) -> dict[str, tuple[int, str | None, int]]:
    """Domain to its tier, its parent and how many hosts are on it."""
    return {name: (each.tier, each.parent, len(each.nodes)) for name, each in found.tree.hyper_nodes.items()}


def faults(error: pytest.ExceptionInfo[BadInstance]) -> list[str]:
    return [str(each) for each in error.value.faults]


# ----------------------------------------------------------------------------------------------------------- hostlists


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("tux[0-3,12,18-20]", ["tux0", "tux1", "tux2", "tux3", "tux12", "tux18", "tux19", "tux20"]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("n[8-11]", ["n8", "n9", "n10", "n11"]),
        ("n[001,3]", ["n001", "n3"]),
        ("r[1-2]n[01-02]-ib,x", ["r1n01-ib", "r1n02-ib", "r2n01-ib", "r2n02-ib", "x"]),
        ("switch.2.[1-2]", ["switch.2.1", "switch.2.2"]),
    ],
)
def test_hostlists(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(
    "text",
    ["", "a,,b", "n[1-2", "n1]", "n[[1]]", "n[]", "n[2-1]", "n[a-c]", "n[1-2-3]", "a b", "n[1-9999999]", "n[-1]"],
)
def test_what_is_no_hostlist(text: str) -> None:
    with pytest.raises(ValueError, match="more than 1,000,000 names" if "9999999" in text else "^'"):
        expand(text)


def test_a_hostlist_of_too_many_names_is_refused_before_it_is_written_out() -> None:
    with pytest.raises(ValueError, match="more than 1,000,000 names"):
        expand("a[1-99999]b[1-99999]c[1-99999]")
    assert len(expand(f"n[1-{MOST_NAMES}]")) == MOST_NAMES


def folded(names: list[str]) -> str:
    """Write names as a hostlist, as ``scontrol show hostlist`` does: runs of one prefix and one width in brackets."""
    parts: list[str] = []
    runs: list[tuple[str, int, int, int]] = []  # prefix, width, first, last
    for name in names:
        prefix = name.rstrip("0123456789")
        digits = name.removeprefix(prefix)
        if not digits:
            runs.append((name, 0, 0, 0))
        elif runs and runs[-1][:2] == (prefix, len(digits)) and runs[-1][3] + 1 == int(digits):
            runs[-1] = (*runs[-1][:3], int(digits))
        else:
            runs.append((prefix, len(digits), int(digits), int(digits)))
    for prefix, width, first, last in runs:
        parts.append(f"{prefix}[{first:0{width}d}-{last:0{width}d}]" if width else prefix)
    return ",".join(parts)


NAME = st.from_regex(r"[a-z][a-z.-]{0,3}", fullmatch=True)
RUNS = st.lists(st.tuples(NAME, st.integers(1, 4), st.integers(0, 9999), st.integers(0, 30)), min_size=1, max_size=5)


@examples(200)
@given(RUNS, st.lists(NAME, max_size=3))
def test_names_survive_being_folded(runs: list[tuple[str, int, int, int]], bare: list[str]) -> None:
    names = [
        f"{prefix}{number:0{width}d}"
        for prefix, width, first, more in runs
        for number in range(first, first + more + 1)
        if len(f"{number:0{width}d}") == len(f"{first:0{width}d}")
    ]
    assert expand(folded([*names, *bare])) == [*names, *bare]


# ----------------------------------------------------------------------------------------------------------------- conf


def test_a_tree() -> None:
    found = discover_topology_conf(TREE, "conf")
    assert shape(found) == {"s0": (1, "s3", 6), "s1": (1, "s3", 6), "s2": (1, "s3", 6), "s3": (2, None, 0)}
    assert found.tree.hyper_nodes["s0"].nodes == ("dev0", "dev1", "dev2", "dev3", "dev4", "dev5")
    assert found.notes == ()


def test_topographs_output_with_comments() -> None:
    text = """# switch.3.1=hpcislandid-1
SwitchName=switch.3.1 Switches=switch.2.[1-2]
# switch.2.1=network-block-1
SwitchName=switch.2.1 Switches=switch.1.1
SwitchName=switch.2.2 Switches=switch.1.2
SwitchName=switch.1.1 Nodes=node-1
SwitchName=switch.1.2 Nodes=node-2
"""
    tiers = {name: tier for name, (tier, _, _) in shape(discover_topology_conf(text, "conf")).items()}
    assert tiers == {"switch.1.1": 1, "switch.1.2": 1, "switch.2.1": 2, "switch.2.2": 2, "switch.3.1": 3}


def test_blocks_and_the_sizes_that_join_them() -> None:
    one = {f"block{number}": (1, None, 32) for number in (1, 2, 3, 4)}
    assert shape(discover_topology_conf(BLOCKS + "BlockSizes=30\n", "conf")) == one
    found = shape(discover_topology_conf(f"{BLOCKS}BlockName=b5 Nodes=n[1-30]\nBlockSizes=30,60,120\n", "conf"))
    assert {name: found[name][:2] for name in ("block1", "block4", "b5")} == {
        "block1": (1, "block1-to-block2-of-2"),
        "block4": (1, "block3-to-block4-of-2"),
        "b5": (1, None),
    }
    assert found["block3-to-block4-of-2"] == (2, "block1-to-block4-of-4", 0)
    assert found["block1-to-block4-of-4"] == (3, None, 0)
    assert len(found) == 8
    with pytest.raises(BadInstance, match=r"line 6: found 30,100, expected the size of a block, and then that times"):
        discover_topology_conf(f"{BLOCKS}BlockSizes=30,100\n", "conf")
    with pytest.raises(BadInstance, match="sizes that grow"):
        discover_topology_conf(f"{BLOCKS}BlockSizes=60,30,60\n".replace("60,30,60", "30,60,60"), "conf")


def test_rails_that_share_their_hosts_are_one_domain() -> None:
    """Each rail has its own leaf and spine."""
    text = "".join(
        f"SwitchName=leaf-{group}-{rail} Nodes=n[{group}0-{group}7]\n" for group in (1, 2) for rail in range(4)
    ) + "".join(f"SwitchName=spine-{rail} Switches=leaf-[1-2]-{rail}\n" for rail in range(4))
    found = discover_topology_conf(text, "conf")
    assert shape(found) == {
        "leaf-1-0": (1, "spine-0", 8),
        "leaf-2-0": (1, "spine-0", 8),
        "spine-0": (2, None, 0),
    }
    assert found.titles["spine-0"] == "spine-0, spine-1, spine-2, spine-3"
    (note,) = found.notes
    assert note == (
        "12 switches have the same hosts and make 3 domains, such as leaf-1-0, leaf-1-1, leaf-1-2, leaf-1-3"
    )


def test_every_fault_is_told_at_once() -> None:
    text = """SwitchName=s1 Nodes=n[1-4]
SwitchName=s1 Nodes=n5
SwitchName=s2 Nodes=n[4-8]
SwitchName=s3 Switches=s[1-2],s9
SwitchName=s4 Switches=s1
SwitchName=s5
"""
    with pytest.raises(BadInstance) as caught:
        discover_topology_conf(text, "conf")
    assert faults(caught) == [
        "conf: switch s1: line 2: found it again, after line 1, expected each switch once",
        "conf: switch s5: line 6: found neither hosts nor switches, expected one of them",
        "conf: switch s3: line 4: found switch s9 below it, which is not described, expected a switch that is",
    ]
    expected = "expected one, or switches with the same hosts"
    kept = [
        line for line in text.replace(",s9", "").splitlines() if line not in ("SwitchName=s1 Nodes=n5", "SwitchName=s5")
    ]
    with pytest.raises(BadInstance) as caught:
        discover_topology_conf("\n".join(kept), "conf")
    assert faults(caught) == [
        f"conf: host n4: found it on 2 switches: s1 (line 1), s2 (line 2), {expected}",
        f"conf: switch s1: found it on 2 switches: s3 (line 3), s4 (line 4), {expected}",
    ]
    with pytest.raises(BadInstance) as caught:
        discover_topology_conf("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "conf")
    assert faults(caught) == ["conf: switches a, b: found each below the other, in a circle, expected a tree"]


def test_lines_that_are_none() -> None:
    text = """SwitchName=s1 Node=n1
SwitchName=s2 Nodes=n[2-1]
SwitchName=s3 Nodes=n3 and more
SwitchName=s4 Nodes=n4 Nodes=n5
Switchname s5
RingName=r Nodes=n[1-8]
SwitchName=s6 Nodes=ALL
"""
    with pytest.raises(BadInstance) as caught:
        discover_topology_conf(text, "conf")
    assert faults(caught) == [
        "conf: line 1: found Node, expected one of nodes, switches, linkspeed; found like it: nodes",
        "conf: line 2: found 'n[2-1]' with the range '2-1', expected a hostlist such as tux[0-3,12]",
        "conf: line 3: found and more, expected KEY=VALUE",
        "conf: line 4: found Nodes twice, expected each key once",
        "conf: line 5: found Switchname s5, expected KEY=VALUE",
        "conf: line 6: found a ring, which has no domains, expected SwitchName or BlockName",
        "conf: line 7: found 'ALL', expected a hostlist such as tux[0-3,12]",
    ]


def test_a_file_with_both_kinds_needs_a_choice() -> None:
    with pytest.raises(UsageError, match="found the topologies tree, block, expected --topology"):
        discover_topology_conf(TREE + BLOCKS, "conf")
    assert len(shape(discover_topology_conf(TREE + BLOCKS, "conf", "block"))) == 4
    assert len(shape(discover_topology_conf(TREE + BLOCKS + "BlockSizes=30,60\n", "conf", "tree"))) == 4
    with pytest.raises(UsageError, match="found 'ring', expected one of those in conf: tree, block"):
        discover_topology_conf(TREE + BLOCKS, "conf", "ring")


# ----------------------------------------------------------------------------------------------------------------- yaml

#: As the manual page has it, and as topograph spells it.
YAML = [
    {
        "topology": "topo1",
        "cluster_default": False,
        "tree": {"switches": [{"switch": "sw_root", "nodes": "node[01-04]"}]},
    },
    {
        "topology": "topo2",
        "clusterDefault": True,
        "block": {
            "blockSizes": [4, 8],
            "blocks": [{"block": "b1", "nodes": "node[01-04]"}, {"block": "b2", "nodes": "node[05-08]"}],
        },
    },
    {"topology": "topo3", "cluster_default": False, "flat": True},
    {
        "topology": "topo4",
        "tree": {
            "switches": [
                {"switch": "S1", "children": "S[2-3]"},
                *({"switch": f"S{n}", "nodes": f"n{n}"} for n in (2, 3)),
            ]
        },
    },
]


def test_topologies_of_yaml() -> None:
    found = discover_topology_yaml(YAML, "yaml")
    assert shape(found) == {"b1": (1, "b1-to-b2-of-2", 4), "b2": (1, "b1-to-b2-of-2", 4), "b1-to-b2-of-2": (2, None, 0)}
    assert shape(discover_topology_yaml(YAML, "yaml", "topo1")) == {"sw_root": (1, None, 4)}
    assert shape(discover_topology_yaml(YAML, "yaml", "topo4")) == {
        "S1": (2, None, 0),
        "S2": (1, "S1", 1),
        "S3": (1, "S1", 1),
    }
    with pytest.raises(UsageError, match="found 'topo5', expected one of those in yaml: topo1, topo2, topo3, topo4"):
        discover_topology_yaml(YAML, "yaml", "topo5")
    with pytest.raises(UsageError, match="found the topologies topo1, topo3, expected --topology"):
        discover_topology_yaml([YAML[0], YAML[2]], "yaml")
    with pytest.raises(BadInstance, match="topology topo3: found flat, expected tree or block, which have domains"):
        discover_topology_yaml(YAML, "yaml", "topo3")


def test_faults_of_yaml() -> None:
    document = [
        {
            "topology": "t",
            "tree": {"switches": [{"nodes": "n1"}, {"switch": "s", "nodes": ["n2"]}, {"switch": "u", "nodes": "n[3"}]},
        }
    ]
    with pytest.raises(BadInstance) as caught:
        discover_topology_yaml(document, "yaml")
    assert faults(caught) == [
        "yaml: topology t: tree.switches[0].switch: found None, expected a name",
        "yaml: topology t: tree.switches[1].nodes: found ['n2'], expected a hostlist such as tux[0-3,12]",
        "yaml: topology t: tree.switches[2].nodes: found 'n[3', whose brackets do not pair, expected a hostlist "
        "such as tux[0-3,12]",
    ]
    with pytest.raises(BadInstance, match=r"tree\.switches: found nothing, expected a list of mappings"):
        discover_topology_yaml([{"topology": "t", "tree": {}}], "yaml")
