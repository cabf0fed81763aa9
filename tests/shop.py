"""An AppGroup of two workloads, for tests of calls."""

from __future__ import annotations

from placer.problem import Dependency, Key, Policy
from tests.kep import kep_cluster
from tests.world import World, calls

__all__ = ["MAJORITY", "MAJORITY_CASES", "SHOP", "shop", "star"]

SHOP = Key("default", "shop")
MAJORITY = Policy(network_cost="majority")

#: Who is where in a :func:`star`, and whether C8 allows it.
MAJORITY_CASES = [
    ("web@n1 x@n1 y@n2 z@n5", True),
    ("web@n1 x@n1 y@n5 z@n5", False),
    ("web@n1 x@n3 y@n5", True),
    ("web@n1 x@n5", False),
    ("x@n1 y@n5 z@n7", True),
]


def shop(world: World, *dependencies: Dependency, web: str = "w1 w2 w3", db: str = "d1 d2") -> World:
    """Pods of the workloads web and db, which call as the dependencies say; those of one workload are equal."""
    world.app_group("shop", *dependencies)
    gang = world.gang("shop", 0)
    for workload, names in (("web", web), ("db", db)):
        for name in names.split():
            world.pod(name, gang, app=SHOP, workload=workload)
    return world


def star(bandwidth: int = 0) -> World:
    """Workload web calls x, y and z with limit 5; majority decides."""
    world = kep_cluster(World(MAJORITY))
    world.app_group("shop", *(calls(f"web>{name}", 5, bandwidth) for name in "xyz"))
    for name in ("web", "x", "y", "z"):
        world.pod(name, app=SHOP, workload=name)
    return world
