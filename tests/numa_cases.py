"""The kubelet's answers worked out by hand: nodes, pods in the order in which they are bound, the zones that each gets.

Zones are numbered from 0; a case lists the zones of each pod: ``0``, ``01``, ``-`` where it is refused, ``any`` where
nothing of it is aligned. The working stands above each case.
"""

from __future__ import annotations

from placer.problem.numa import NumaDemand, NumaNode
from tests.numa_words import demand, numa

TWO = ("4 cpu 8 memory 2 gpu", "4 cpu 8 memory 2 gpu")
UNEVEN = ("2 cpu 8 memory 0 gpu", "4 cpu 8 memory 2 gpu")
FOUR = ("4 cpu 8 memory 1 gpu",) * 4

SMALL = demand("1 cpu 1 memory")
HALF = demand("2 cpu 4 memory")
LARGE = demand("3 cpu 1 memory")
WHOLE = demand("4 cpu 8 memory")


def burstable(*containers: str) -> NumaDemand:
    return demand(*containers, qos="Burstable")


def best_effort(*containers: str) -> NumaDemand:
    return demand(*containers, qos="BestEffort")


#: Name of the case: node, pods in order, zones of each.
CASES: dict[str, tuple[NumaNode, list[NumaDemand], str]] = {
    # ---- single-numa-node, one container: the lowest zone that has all of it
    # 3 of 4 in zone 0; the second 3 fit only into zone 1; then both have 1 left.
    "the lowest zone that fits": (numa("single", "container", *TWO), [LARGE, LARGE, SMALL, SMALL], "0 1 0 1"),
    # 3 + 3 leave 1 core in each zone: 2 are free, in no zone.
    "free in sum is not enough": (numa("single", "container", *TWO), [LARGE, LARGE, HALF, SMALL], "0 1 - 0"),
    # Zone 0 has 2 cores, so the pod of 3 skips it.
    "a zone that is too small is skipped": (numa("single", "container", *UNEVEN), [LARGE, HALF], "1 0"),
    # 5 cores are in no zone.
    "more than any zone": (numa("single", "container", *TWO), [demand("5 cpu 1 memory")], "-"),
    # cpu would fit into zone 0, memory does not: 9 > 8 in every zone.
    "memory decides too": (numa("single", "container", *TWO), [demand("1 cpu 9 memory")], "-"),
    # After 6 memory in zone 0, 4 more do not fit there (2 left), though 3 cores are.
    "each resource for itself": (
        numa("single", "container", *TWO),
        [demand("1 cpu 6 memory"), demand("1 cpu 4 memory"), demand("1 cpu 2 memory")],
        "0 1 0",
    ),
    # The refused pod takes nothing: the third finds zone 0 as the first left it.
    "a refused pod takes nothing": (
        numa("single", "container", "4 cpu 8 memory"),
        [LARGE, HALF, SMALL],
        "0 - 0",
    ),
    # Of zone 0 only 1 of 4 cores is available: what counts is what is left, not the capacity.
    "available counts, not capacity": (
        numa("single", "container", "1 of 4 cpu 8 memory", "4 cpu 8 memory"),
        [HALF],
        "1",
    ),
    # Ids 1 and 3: zone 1 is the lower one.
    "ids may have gaps": (numa("single", "container", "1=1 cpu 8 memory", "3=4 cpu 8 memory"), [HALF, SMALL], "3 1"),
    # ---- container scope: containers one after the other, each where it fits
    # 3 in zone 0, then 3 in zone 1: the union is both.
    "two containers in two zones": (
        numa("single", "container", *TWO),
        [demand("3 cpu 1 memory", "3 cpu 1 memory"), SMALL],
        "01 0",
    ),
    # 2 take the low zone of 2 + 4; then 4 have only zone 1: fits. The other way round as well: 4 skip zone 0.
    "small then large": (numa("single", "container", *UNEVEN), [demand("2 cpu 1 memory", "4 cpu 1 memory")], "01"),
    # Zones of 4 and 2: the small container comes first and takes of zone 0, the large one then fits nowhere. The
    # assignment 2 -> zone 1, 4 -> zone 0 exists, the kubelet does not look for it.
    "no backtracking within a pod": (
        numa("single", "container", "4 cpu 8 memory", "2 cpu 8 memory"),
        [demand("2 cpu 1 memory", "4 cpu 1 memory")],
        "-",
    ),
    # The same two containers, large first: 4 -> zone 0, 2 -> zone 1.
    "the order of containers matters": (
        numa("single", "container", "4 cpu 8 memory", "2 cpu 8 memory"),
        [demand("4 cpu 1 memory", "2 cpu 1 memory")],
        "01",
    ),
    # The second container is refused, so the first one's cores are given back: 4 more fit.
    "a pod is admitted whole or not at all": (
        numa("single", "container", "4 cpu 8 memory"),
        [demand("3 cpu 1 memory", "2 cpu 1 memory"), WHOLE],
        "- 0",
    ),
    # ---- pod scope: the containers together in one zone
    # 3 + 3 = 6 cores are in no zone of 4.
    "the pod as a whole": (numa("single", "pod", *TWO), [demand("3 cpu 1 memory", "3 cpu 1 memory")], "-"),
    # 2 + 2 = 4 fill zone 0, the next four zone 1.
    "the sum fits one zone": (
        numa("single", "pod", *TWO),
        [demand("2 cpu 1 memory", "2 cpu 1 memory"), demand("1 cpu 1 memory", "3 cpu 1 memory"), SMALL],
        "0 1 -",
    ),
    # 4 cores and a quarter of overhead are in no zone; 3 and a quarter are, and a zone of 4 has 0.75 left then.
    "pod scope includes overhead": (
        numa("single", "pod", *TWO),
        [
            demand("4 cpu 1 memory", overhead="0.25 cpu"),
            demand("3 cpu 1 memory", overhead="0.25 cpu"),
            demand("3 cpu 1 memory", overhead="0.25 cpu"),
            SMALL,
        ],
        "- 0 1 -",
    ),
    # In container scope nobody aligns the overhead: 4 cores fit a zone of 4.
    "container scope knows no overhead": (
        numa("single", "container", *TWO),
        [demand("4 cpu 1 memory", overhead="0.25 cpu 8 memory")],
        "0",
    ),
    # 1 + 7 of overhead = 8 memory fill zone 0.
    "overhead of memory": (numa("single", "pod", *TWO), [demand("1 cpu 1 memory", overhead="7 memory"), SMALL], "0 1"),
    # No container asks whole cores, so no cpu is aligned, that of the overhead neither: zones without cpu will do.
    "overhead alone aligns no cpu": (
        numa("single", "pod", "0 cpu 8 memory"),
        [demand("0.5 cpu 1 memory", overhead="1 cpu")],
        "0",
    ),
    # ---- init containers and sidecars
    # The init container must fit: 5 cores are in no zone.
    "an init container must fit": (
        numa("single", "container", *TWO),
        [demand("init: 5 cpu 1 memory", "1 cpu 1 memory")],
        "-",
    ),
    # It runs in zone 0, is gone, and the app container has zone 0 to itself; 3 cores are left for the next pod.
    "an init container takes nothing": (
        numa("single", "container", *TWO),
        [demand("init: 4 cpu 8 memory", "1 cpu 1 memory"), LARGE],
        "0 0",
    ),
    # The init container of 3 fits zone 1 only, the app container of 1.5, which is not pinned, goes to zone 0.
    "init containers count among the zones of the pod": (
        numa("single", "container", *UNEVEN),
        [demand("init: 3 cpu 1 memory", "1.5 cpu 1 memory"), WHOLE],
        "01 1",
    ),
    # The same with an app container of 1, which gets cores of the init container again: 4 are free in no zone.
    "cores of an init container are used again": (
        numa("single", "container", *UNEVEN),
        [demand("init: 3 cpu 1 memory", "1 cpu 1 memory"), WHOLE],
        "1 -",
    ),
    # Zone 0 has 1 core for the init container and not 4 for the app container, which gets no other.
    "cores of an init container keep its pod out of a zone with room": (
        numa("single", "container", "3 cpu 8 memory", "4 cpu 8 memory"),
        [demand("init: 1 cpu 1 memory", "4 cpu 1 memory"), WHOLE],
        "- 1",
    ),
    # Of 2 cores of the init container the first gets 1 again, so the second, of 3, must go to zone 0, where 2 are left.
    "cores of an init container bind until all are used": (
        numa("single", "container", "3 cpu 8 memory", "4 cpu 8 memory"),
        [
            demand("init: 2 cpu 1 memory", "1 cpu 1 memory", "3 cpu 1 memory"),
            demand("init: 2 cpu 1 memory", "2 cpu 1 memory", "3 cpu 1 memory"),
        ],
        "- 01",
    ),
    # A sidecar uses them as well, and keeps them: the app container of 3 is free to go to zone 1.
    "a sidecar uses cores of an init container": (
        numa("single", "container", "3 cpu 8 memory", "4 cpu 8 memory"),
        [demand("init: 1 cpu 1 memory", "sidecar: 1 cpu 1 memory", "3 cpu 1 memory")],
        "01",
    ),
    # Half cores are not pinned: neither the init container of 1.5 nor the app container of 1.5 binds or is bound.
    "shared cores are not used again": (
        numa("single", "container", "3 cpu 7 memory", "4 cpu 9 memory"),
        [
            demand("init: 1.5 cpu 1 memory", "4 cpu 1 memory"),
            demand("init: 1 cpu 1 memory", "1.5 cpu 8 memory"),
        ],
        "01 01",
    ),
    # Devices are used again as cores are, by a pod of any class.
    "devices of an init container are used again": (
        numa("single", "container", "4 cpu 8 memory 1 gpu", "4 cpu 8 memory 2 gpu"),
        [burstable("init: 1 gpu", "2 gpu"), burstable("init: 2 gpu", "1 gpu")],
        "- 1",
    ),
    # The cores of two init containers are the same ones; one that asks for a GPU alone is free.
    "what is used again is told apart by resource": (
        numa("single", "container", "4 cpu 8 memory", "4 cpu 8 memory 1 gpu"),
        [demand("init: 1 cpu 1 memory", "init: 3 cpu 1 memory", "3 cpu 1 memory", "1 gpu")],
        "01",
    ),
    # Over both zones they bind to both, and 2 cores are to have one.
    "restricted: cores of an init container in two zones": (
        numa("restricted", "container", "4 cpu", "4 cpu"),
        [demand("init: 6 cpu", "2 cpu"), demand("init: 6 cpu", "5 cpu")],
        "- 01",
    ),
    # Scope pod: the pod has one zone, which has room for all of it at every moment.
    "pod scope: the zone has room for all": (
        numa("single", "pod", "3 cpu 8 memory", "4 cpu 8 memory"),
        [demand("init: 1 cpu 1 memory", "4 cpu 1 memory")],
        "1",
    ),
    # The sidecar keeps 2 in zone 0; the app container of 3 must go to zone 1; 2 are left in zone 0.
    "a sidecar takes": (
        numa("single", "container", *TWO),
        [demand("sidecar: 2 cpu 1 memory", "3 cpu 1 memory"), HALF],
        "01 0",
    ),
    # The init container comes after the sidecar and finds 2 in zone 0, so its 3 are in zone 1, as then are the app's 2.
    "an init container beside a sidecar": (
        numa("single", "container", *TWO),
        [demand("sidecar: 2 cpu 1 memory", "init: 3 cpu 1 memory", "2 cpu 1 memory"), WHOLE, HALF, HALF],
        "01 - 0 1",
    ),
    # One zone of 4: the sidecar has 2, the init container wants 3.
    "an init container that a sidecar leaves no room": (
        numa("single", "container", "4 cpu 8 memory"),
        [demand("sidecar: 2 cpu 1 memory", "init: 3 cpu 1 memory", "1 cpu 1 memory")],
        "-",
    ),
    # The other way round the init container is gone before the sidecar starts.
    "an init container before a sidecar": (
        numa("single", "container", "4 cpu 8 memory"),
        [demand("init: 3 cpu 1 memory", "sidecar: 2 cpu 1 memory", "1 cpu 1 memory"), SMALL, SMALL],
        "0 0 -",
    ),
    # Pod scope: at its worst moment the pod needs max(3 alone, 1 + 1) = 3 cores of the 3 that zone 1 has; it keeps 2.
    "pod scope: fits by its worst moment, takes what stays": (
        numa("single", "pod", "2 cpu 8 memory", "3 cpu 8 memory"),
        [demand("init: 3 cpu 1 memory", "1 cpu 1 memory", "1 cpu 1 memory"), SMALL, SMALL, SMALL, SMALL],
        "1 0 0 1 -",
    ),
    # Sidecar 1 + init 4 = 5 at the start: no zone of 4. Without the sidecar 4 would fit.
    "pod scope: an init container runs beside earlier sidecars": (
        numa("single", "pod", *TWO),
        [
            demand("sidecar: 1 cpu 1 memory", "init: 4 cpu 1 memory", "1 cpu 1 memory"),
            demand("init: 4 cpu 1 memory", "sidecar: 1 cpu 1 memory", "1 cpu 1 memory"),
            HALF,
        ],
        "- 0 0",
    ),
    # ---- QoS and whole cores
    # Of a Burstable pod neither cpu nor memory is aligned: it comes though no zone has 5 cores, and takes nothing.
    "burstable pods align no cpu and memory": (
        numa("single", "container", *TWO),
        [burstable("5 cpu 20 memory"), WHOLE, WHOLE],
        "any 0 1",
    ),
    # Devices are aligned for all: 2 gpu of zone 0, then of zone 1, then there are none.
    "devices align for burstable pods": (
        numa("single", "container", *TWO),
        [burstable("9 cpu 2 gpu"), burstable("1 gpu"), burstable("2 gpu"), burstable("1 gpu"), burstable("1 gpu")],
        "0 1 - 1 -",
    ),
    # Only zone 1 has any, 2 of them: the second pod finds one left.
    "devices align for best-effort pods": (
        numa("single", "pod", *UNEVEN),
        [best_effort("1 gpu"), best_effort("2 gpu"), best_effort("1 gpu")],
        "1 - 1",
    ),
    # Two containers with a gpu each, pod scope: both from one zone.
    "devices of a pod as a whole": (
        numa("single", "pod", *TWO),
        [burstable("1 gpu"), burstable("1 gpu", "1 gpu"), burstable("1 gpu", "1 gpu")],
        "0 1 -",
    ),
    # The gpu is in zone 1, so cpu and memory have to be there too; zone 0 has room for more of them than zone 1.
    "all resources from one zone": (
        numa("single", "container", "8 cpu 8 memory 0 gpu", "2 cpu 8 memory 1 gpu"),
        [demand("2 cpu 1 memory 1 gpu"), demand("2 cpu 1 memory")],
        "1 0",
    ),
    # A burstable pod's cpu does not bind it to the zone of its gpu, nor the zone to its cpu.
    "a burstable pod's cpu goes where it likes": (
        numa("single", "container", "8 cpu 8 memory 0 gpu", "2 cpu 8 memory 1 gpu"),
        [burstable("6 cpu 1 memory 1 gpu"), demand("2 cpu 1 memory")],
        "1 0",
    ),
    # 1.5 cores come from the shared pool: only memory is aligned, and zone 0 keeps its 4 cores.
    "parts of cores are not pinned": (
        numa("single", "container", *TWO),
        [demand("1.5 cpu 1 memory"), demand("4 cpu 1 memory"), demand("3.5 cpu 6 memory"), demand("9.5 cpu 1 memory")],
        "0 0 0 1",
    ),
    # Pod scope: of 2 + 0.5 + 1.5 cores the 2 are pinned; whole in sum is not whole.
    "pod scope: only containers with whole cores": (
        numa("single", "pod", "2 cpu 8 memory"),
        [
            demand("2 cpu 1 memory", "0.5 cpu 1 memory", "1.5 cpu 1 memory"),
            demand("0.5 cpu 1 memory", "0.5 cpu 1 memory"),
        ],
        "0 0",
    ),
    # Requests of cpu and memory for the pod as a whole: the kubelet aligns devices only.
    "pod-level resources align devices only": (
        numa("single", "pod", *TWO),
        [demand("9 cpu 9 memory 2 gpu", pod_level=True), demand("1 gpu", pod_level=True), WHOLE],
        "0 1 0",
    ),
    # ---- kinds of resources
    # 3 huge pages are in zone 1 only; a burstable pod may have them from anywhere.
    "hugepages align for guaranteed pods": (
        numa("single", "container", "4 cpu 8 memory 2 huge", "4 cpu 8 memory 4 huge"),
        [demand("1 cpu 1 memory 3 huge"), demand("1 cpu 1 memory 2 huge"), demand("1 cpu 1 memory 2 huge")],
        "1 0 -",
    ),
    # 9 are more than the zones list; nobody aligns them.
    "hugepages of burstable pods do not": (
        numa("single", "container", "4 cpu 8 memory 2 huge"),
        [burstable("1 cpu 9 huge")],
        "any",
    ),
    # No zone lists huge pages, so they are not aligned; cpu and memory are.
    "what no zone lists is not aligned": (
        numa("single", "container", *TWO),
        [demand("4 cpu 8 memory 99 huge"), demand("1 cpu 1 memory 99 huge")],
        "0 1",
    ),
    # Zones without memory: memory is not aligned.
    "zones without memory": (numa("single", "container", "4 cpu", "4 cpu"), [demand("4 cpu 99 memory"), SMALL], "0 1"),
    # Zone 1 does not list gpu, so it has none; zone 0 lists it with nothing left.
    "what one zone lists is 0 in the others": (
        numa("single", "container", "4 cpu 8 memory 0 of 2 gpu", "4 cpu 8 memory"),
        [burstable("1 gpu")],
        "-",
    ),
    # Disk space is nobody's to align, even where a zone lists it.
    "ephemeral storage is not aligned": (
        numa("single", "container", "4 cpu 8 memory 1 ephemeral-storage"),
        [demand("1 cpu 1 memory 9 ephemeral-storage")],
        "0",
    ),
    # 0 gpu is no request: zone 0, which has none, will do.
    "zero of a resource is none": (numa("single", "container", *UNEVEN), [demand("1 cpu 1 memory 0 gpu")], "0"),
    # No zone lists anything.
    "a node without zones aligns nothing": (numa("single", "container"), [WHOLE, demand("99 cpu 1 memory")], "any any"),
    # ---- restricted: the fewest zones that could hold it when empty, the same number for every resource
    # 3 cores and 1 memory need one zone each, as with single-numa-node.
    "restricted: one zone": (numa("restricted", "container", *TWO), [LARGE, LARGE, HALF], "0 1 -"),
    # 6 cores need two zones of 4, 10 memory two of 8: zones 0 and 1. Zone 0 is drained: 4 + 2 cores, 8 + 2 memory.
    "restricted: two zones, drained in order": (
        numa("restricted", "container", *TWO),
        [demand("6 cpu 10 memory"), demand("2 cpu 6 memory"), SMALL],
        "01 1 -",
    ),
    # 6 cores need two zones, 8 memory one: no set of zones is right for both, on any such node, however empty.
    "restricted: widths differ": (numa("restricted", "container", *TWO), [demand("6 cpu 8 memory")], "-"),
    # 9 cores are more than all zones have.
    "restricted: more than all zones": (numa("restricted", "container", *TWO), [demand("9 cpu 17 memory")], "-"),
    # Widths come from capacity: 3 cores could fit one zone of 4. 2 + 2 are left, so no single zone has them: refused,
    # although two zones together would do.
    "restricted: width is by capacity": (
        numa("restricted", "container", "2 of 4 cpu 8 memory", "2 of 4 cpu 8 memory"),
        [LARGE, HALF],
        "- 0",
    ),
    # Two of the zones of 4, 2, 1 cores could hold 5: 4 + 2. Sets with enough left: {0, 1} has 1 + 2, {0, 2} has 1 + 1,
    # {1, 2} has 2 + 1; none has 5.
    "restricted: the largest zones give the width": (
        numa("restricted", "container", "1 of 4 cpu 8 memory", "2 cpu 8 memory", "1 cpu 8 memory"),
        [demand("5 cpu 9 memory")],
        "-",
    ),
    # 6 cores and 9 memory: {0, 1} has 3 + 2 cores, {0, 2} has 3 + 4: taken, 3 of zone 0 and 3 of zone 2.
    "restricted: a set that has it": (
        numa("restricted", "container", "3 of 4 cpu 8 memory", "2 of 4 cpu 8 memory", "4 cpu 8 memory"),
        [demand("6 cpu 9 memory"), SMALL, HALF],
        "02 1 -",
    ),
    # Only the pair {0, 3} has 8 gpu left; zones of a set need not be neighbours.
    "restricted: any pair": (
        numa("restricted", "container", "4 gpu", "0 of 4 gpu", "0 of 4 gpu", "4 gpu"),
        [burstable("8 gpu")],
        "03",
    ),
    # {0, 3} has 1 + 7, {1, 2} has 4 + 4. The kubelet compares bit masks: 0110 = 6 is below 1001 = 9. Zones 0 and 3 keep
    # 1 and 7, of which 7 are in one zone (its capacity is 7) and 1 more in the other.
    "restricted: lowest as a bit mask": (
        numa("restricted", "container", "1 of 4 gpu", "4 gpu", "4 gpu", "7 gpu"),
        [burstable("8 gpu"), burstable("7 gpu"), burstable("1 gpu")],
        "12 3 0",
    ),
    # Two gpus are in two zones of 1; 5 cores too, 9 memory too: all three in {0, 1}.
    "restricted: devices have a width as well": (
        numa("restricted", "pod", *FOUR),
        [demand("5 cpu 9 memory 2 gpu"), demand("5 cpu 9 memory 2 gpu"), demand("5 cpu 9 memory 1 gpu")],
        "01 23 -",
    ),
    # A burstable pod's 2 gpus need two zones, whatever its cpu.
    "restricted: devices of burstable pods": (
        numa("restricted", "container", *FOUR),
        [burstable("1 cpu 2 gpu"), burstable("3 gpu"), burstable("1 gpu"), burstable("1 gpu")],
        "01 - 2 3",
    ),
    # Scope container: 3 + 3 cores one by one; scope pod: 6 cores need two zones, 2 memory one: refused.
    "restricted: scope container": (
        numa("restricted", "container", *TWO),
        [demand("3 cpu 1 memory", "3 cpu 1 memory")],
        "01",
    ),
    # The same pod, aligned as a whole.
    "restricted: scope pod": (numa("restricted", "pod", *TWO), [demand("3 cpu 1 memory", "3 cpu 1 memory")], "-"),
    # Pod scope: the init container makes it 6 cores and 10 memory at the start, two zones each; it keeps 2 and 2, which
    # are drained from zone 0.
    "restricted: fits at the start, takes what stays": (
        numa("restricted", "pod", *TWO),
        [demand("init: 6 cpu 10 memory", "2 cpu 2 memory"), WHOLE, HALF],
        "01 1 0",
    ),
    # A sidecar of 6 in both zones leaves 2 in zone 1 for the app container.
    "restricted: a sidecar over two zones": (
        numa("restricted", "container", *TWO),
        [demand("sidecar: 6 cpu 10 memory", "2 cpu 2 memory"), SMALL],
        "01 -",
    ),
    # The same as an init container: both zones are whole again for the app container of 4 + 4.
    "restricted: an init container over two zones": (
        numa("restricted", "container", *TWO),
        [demand("init: 6 cpu 10 memory", "8 cpu 16 memory")],
        "01",
    ),
    # 6.5 cores are not pinned; 8 memory fill that of zone 0. 4 + 8 fill zone 1. Zone 0 has 4 cores still, no memory.
    "restricted: parts of cores": (
        numa("restricted", "container", *TWO),
        [demand("6.5 cpu 8 memory"), demand("4 cpu 8 memory"), demand("4 cpu 1 memory")],
        "0 1 -",
    ),
    # ---- best-effort and none refuse nobody
    # What restricted would take is taken; where it would refuse, the fewest zones that have it all; else all of them.
    "not known: nothing aligned is admitted": (
        numa("unknown", "container", *TWO),
        [HALF, demand("1.5 cpu", qos="Burstable"), demand("1 gpu", qos="BestEffort"), HALF],
        "- any - -",
    ),
    "best-effort: as restricted where that works": (
        numa("best-effort", "container", *TWO),
        [LARGE, demand("6 cpu 10 memory")],
        "0 01",
    ),
    # 3 cores should be in one zone; 2 + 2 are left, so it gets two zones.
    "best-effort: wider than it should be": (
        numa("best-effort", "container", "2 of 4 cpu 8 memory", "2 of 4 cpu 8 memory"),
        [LARGE, SMALL],
        "01 1",
    ),
    # 6 cores need two zones, 8 memory one: both zones have it all together, drained in order; zone 1 keeps 2 and 8.
    "best-effort: widths differ": (numa("best-effort", "container", *TWO), [demand("6 cpu 8 memory"), HALF], "01 1"),
    # 9 of 2 cores: it gets all zones and all that is there. So does the next one.
    "best-effort: more than there is": (
        numa("best-effort", "pod", "1 cpu 8 memory", "1 cpu 8 memory"),
        [demand("9 cpu 1 memory"), SMALL],
        "01 01",
    ),
    # Whatever is asked.
    "none aligns nothing": (numa("none", "container", *TWO), [demand("9 cpu 99 memory 9 gpu"), WHOLE], "any any"),
}
