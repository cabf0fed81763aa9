"""An AppGroup of two workloads, for tests of calls."""

from __future__ import annotations

from placer.instance import Dependency, Key
from tests.world import World

__all__ = ["SHOP", "shop"]

SHOP = Key("default", "shop")


def shop(world: World, *dependencies: Dependency, web: str = "w1 w2 w3", db: str = "d1 d2") -> World:
    """Pods of the workloads web and db, which call as the dependencies say; those of one workload are equal."""
    world.app_group("shop", *dependencies)
    gang = world.gang("shop", 0)
    for workload, names in (("web", web), ("db", db)):
        for name in names.split():
            world.pod(name, gang, app=SHOP, workload=workload)
    return world
