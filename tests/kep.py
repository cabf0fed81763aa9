"""The cluster of KEP-260's examples: 2 regions x 2 zones x 2 nodes, 20 between regions, 5 and 10 between zones."""

from __future__ import annotations

from tests.world import World


def kep_cluster(world: World | None = None, *, gpu: int = 4) -> World:
    """Zones Z1 = n1 n2 and Z2 = n3 n4 of us-west-1, Z3 = n5 n6 and Z4 = n7 n8 of us-east-1; 1 and 10 Gi."""
    world = world or World()
    for names, area in (("n1 n2", "us-west-1/Z1"), ("n3 n4", "us-west-1/Z2")):
        world.nodes(names, gpu, area=area)
    for names, area in (("n5 n6", "us-east-1/Z3"), ("n7 n8", "us-east-1/Z4")):
        world.nodes(names, gpu, area=area)
    world.links("region", "us-west-1=us-east-1", 20, 10 * 2**30)
    world.links("zone", "Z1=Z2", 5, 2**30)
    world.links("zone", "Z3=Z4", 10, 2**30)
    return world


#: Who calls whom in the KEP's AppGroup for the Online Boutique, in the order of the text; 15 edges over 11 workloads.
ONLINE_BOUTIQUE = {
    "P1": "P2 P3 P4 P6 P8 P9 P10",
    "P2": "P11",
    "P8": "P2 P3 P4 P5 P6 P7",
    "P9": "P3",
}
