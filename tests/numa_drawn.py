"""NUMA nodes and pods by chance, of sizes at which kubelets both admit and refuse."""

from __future__ import annotations

from hypothesis import strategies as st

from placer.base.quantity import Resources
from placer.problem.numa import NumaContainer, NumaDemand, NumaNode, NumaZone, Qos, Stage

NAMES = ("cpu", "memory", "nvidia.com/gpu", "hugepages-2Mi", "ephemeral-storage")


@st.composite
def nodes(draw: st.DrawFn, most: int = 5, policies: tuple[str, ...] = ("single-numa-node", "restricted")) -> NumaNode:
    """Zones of about the size of two or three containers, some resources left out of some zones."""
    listed = [name for name in NAMES if draw(st.integers(0, 5))]
    zones = []
    for number in sorted(draw(st.sets(st.integers(0, 11), min_size=2, max_size=most))):
        here = [name for name in listed if draw(st.integers(0, 7))]
        capacity = {name: draw(st.integers(2, 8)) * (1000 if name == "cpu" else 1) for name in here}
        gone = {name: draw(st.sampled_from((0, 0, 1, 2))) * (500 if name == "cpu" else 1) for name in here}
        available = {name: max(0, amount - gone[name]) for name, amount in capacity.items()}
        total = Resources(capacity)
        zones.append(NumaZone(number, f"node-{number}", total, Resources(available), total, frozenset(here)))
    return NumaNode(draw(st.sampled_from(policies)), draw(st.sampled_from(("container", "pod"))), tuple(zones))


@st.composite
def demands(draw: st.DrawFn) -> NumaDemand:
    """Mostly Guaranteed pods of one or two containers, some that ask for devices alone, more than a zone has."""
    if draw(st.integers(0, 3)) == 0:
        devices = Resources({"nvidia.com/gpu": draw(st.integers(1, 12))})
        return NumaDemand(Qos.BURSTABLE, (NumaContainer("c0", Stage.APP, devices),))
    containers = []
    for number in range(draw(st.sampled_from((1, 1, 1, 2, 2, 3)))):
        requests = {
            "cpu": draw(st.sampled_from((1000, 2000, 2000, 3000, 500, 5000, 0))),
            "memory": draw(st.integers(1, 5)),
            "nvidia.com/gpu": draw(st.sampled_from((0, 0, 0, 1, 3))),
            "hugepages-2Mi": draw(st.sampled_from((0, 0, 0, 2))),
            "ephemeral-storage": draw(st.sampled_from((0, 9))),
        }
        stage = draw(st.sampled_from((Stage.APP, Stage.APP, Stage.APP, Stage.INIT, Stage.SIDECAR)))
        containers.append(NumaContainer(f"c{number}", stage, Resources(requests)))
    containers.sort(key=lambda each: each.stage is Stage.APP)
    qos = draw(st.sampled_from((Qos.GUARANTEED, Qos.GUARANTEED, Qos.BURSTABLE)))
    overhead = Resources({"cpu": draw(st.sampled_from((0, 0, 250))), "memory": draw(st.sampled_from((0, 0, 1)))})
    return NumaDemand(qos, tuple(containers), overhead, draw(st.integers(0, 9)) == 0)
