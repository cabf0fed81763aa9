"""kube-scheduler's and Volcano's filters of pods around a pod, as their policies have them."""

import pytest

from placer.lab.policies.mimicry import run
from placer.problem import Key
from tests.judge import placement
from tests.rules.test_upstream_neighbours import CASES, NODES
from tests.support import instance_of, node, pod
from tests.world import World, near, spread


@pytest.mark.parametrize("policy", ["kube-default", "volcano"])
@pytest.mark.parametrize("case", [name for name in CASES if "being deleted" not in name])
def test_a_single_pod_goes_where_upstream_lets_it(case: str, policy: str) -> None:
    labels, spec, there, expected = CASES[case]
    nodes = [node(name, labels) for name, labels in NODES.items()]
    instance = instance_of(*nodes, *there, pod("p", labels=labels, spec=spec, cpu=1))
    found = run(instance, policy).node_of.get(Key("default", "p"))
    assert found in expected.split() if expected else found is None


def test_a_spread_must_hold_at_every_moment() -> None:
    """Two zones, the one without room for the second pod: the first two find a place, the third none."""
    world = World()
    world.node("n1", 1, labels={"zone": "a"})
    world.node("n2", 4, labels={"zone": "b"})
    for name in ("a", "b", "c", "d"):
        world.pod(name, labels={"app": "web"}, asks=spread("zone", app="web"))
    assert len(run(world.instance(), "kube-default").bindings) == 3


def test_a_plugin_that_is_off_filters_nothing() -> None:
    world = World()
    world.node("n1", labels={"zone": "a"})
    world.pod("p", labels={"app": "web"}, asks=near("zone", app="db"))
    off = {"plugins": {"multiPoint": {"disabled": [{"name": "InterPodAffinity"}]}}}
    assert run(world.instance(), "kube-default").bindings == ()
    assert run(world.instance(), "kube-default", arguments=off).node_of == placement("p@n1").node_of
