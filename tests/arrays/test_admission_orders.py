"""In which orders a kubelet admits pods: by creation, only some, none (C10)."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.arrays.admission_orders import Ordering, Orders, find_order
from placer.arrays.packed_kubelet import PackedKubelet
from placer.problem.numa import NumaDemand, NumaNode
from tests.examples import examples, exhaustive
from tests.numa_drawn import demands, nodes
from tests.numa_naive import creation_order, some_order, works
from tests.numa_words import demand, numa

FOUR_AND_TWO = numa("single", "container", "4 cpu 8 memory", "2 cpu 8 memory")
TWO_AND_FOUR = numa("single", "container", "2 cpu 8 memory", "4 cpu 8 memory")
TWO, THREE, FOUR = (demand(f"{cores} cpu 1 memory") for cores in (2, 3, 4))


def ordering(
    node: NumaNode, *pods: NumaDemand, created: tuple[float, ...] = (), limit: int = 10_000, **more: Any
) -> Ordering:
    kubelet = PackedKubelet(node)
    units = [kubelet.units(pod) for pod in pods]
    return find_order(kubelet, kubelet.start(node), units, created or (0.0,) * len(pods), limit=limit, **more)


def test_any_order() -> None:
    """Zones of 2 and 4: the pod of 4 skips zone 0, whoever comes first; the answer is the order of creation."""
    assert ordering(TWO_AND_FOUR, FOUR, TWO) == Ordering(Orders.CREATION, (0, 1))
    assert ordering(TWO_AND_FOUR, FOUR, TWO, created=(7, 3)) == Ordering(Orders.CREATION, (1, 0))
    assert ordering(TWO_AND_FOUR) == Ordering(Orders.CREATION, ())


def test_creation_order() -> None:
    """Zones of 4 and 2: only if the pod of 4 comes first both fit; it is the older one."""
    assert ordering(FOUR_AND_TWO, TWO, FOUR, created=(5, 4)) == Ordering(Orders.CREATION, (1, 0))


def test_an_assignment_exists_and_no_order_works() -> None:
    """Containers of 2 and 4 for zones of 4 and 2: the first takes of zone 0, whatever else is bound before or after."""
    torn = demand("2 cpu 1 memory", "4 cpu 1 memory")
    assert ordering(FOUR_AND_TWO, torn) == Ordering(Orders.NONE, None)
    assert ordering(TWO_AND_FOUR, torn) == Ordering(Orders.CREATION, (0,))
    # With a pod of 1 and zones of 5 and 2, all 7 cores would be in use; torn takes 2 of zone 0, so 4 fit nowhere.
    node = numa("single", "container", "5 cpu 8 memory", "2 cpu 8 memory")
    assert ordering(node, torn, demand("1 cpu 1 memory")) == Ordering(Orders.NONE, None)


def test_more_than_there_is_is_seen_at_once() -> None:
    """9 cores of 6, in 12 pods that are all different: no order is tried."""
    pods = [demand(f"1 cpu {number} memory") for number in range(1, 10)]
    node = numa("single", "container", "3 cpu 99 memory", "3 cpu 99 memory")
    assert ordering(node, *pods, limit=9) == Ordering(Orders.NONE, None)


def test_what_is_not_found_within_the_limit_may_exist() -> None:
    """Torn before five does not work, and that is both their age and their size; the other order is not reached."""
    node = numa("single", "container", "5 cpu 8 memory", "6 cpu 8 memory")
    pods = (demand("2 cpu 1 memory", "4 cpu 1 memory"), demand("5 cpu 1 memory"))
    assert ordering(node, *pods, limit=1) == Ordering(Orders.NONE, None, proved=False)
    assert ordering(node, *pods, limit=4) == Ordering(Orders.SOME, (1, 0))


def test_a_hint_is_tried_first() -> None:
    """Nothing has to be searched for then; a hint that does not work, or is of other pods, does no harm."""
    node = numa("single", "container", "5 cpu 8 memory", "6 cpu 8 memory")
    pods = (demand("2 cpu 1 memory", "4 cpu 1 memory"), demand("5 cpu 1 memory"))
    assert ordering(node, *pods, limit=0, hint=(1, 0)) == Ordering(Orders.SOME, (1, 0), proved=False)
    for hint in ((0, 1), (0,), ()):
        assert ordering(node, *pods, hint=hint) == Ordering(Orders.SOME, (1, 0))


def test_equal_pods_are_counted_and_not_named() -> None:
    """24 equal pods on 2 zones of 12 cores: 24 situations, one admission each, and not 24! orders."""
    node = numa("single", "container", "12 cpu 99 memory", "12 cpu 99 memory")
    pods = [demand("1 cpu 1 memory") for _ in range(24)]
    assert ordering(node, *pods, limit=24) == Ordering(Orders.CREATION, tuple(range(24)))
    assert ordering(node, *pods, limit=23).proved is False


@pytest.mark.parametrize("nodes_tried", [40, *exhaustive(160, 800)])
def test_zones_filled_to_the_last_core(nodes_tried: int) -> None:
    """Up to seven pods for nearly all cores of two to four zones, so that the way they are put together matters."""
    random, seen = Random(11), Counter[Orders]()
    for _ in range(nodes_tried):
        node, pods = _full(random)
        found = ordering(node, *pods, created=tuple(float(random.randint(1, 9)) for _ in pods), limit=20_000)
        assert found.proved
        assert (found.sequence is None) == (some_order(node, pods) is None)
        assert found.sequence is None or works(node, [pods[index] for index in found.sequence])
        seen[found.orders] += 1
    assert all(seen[each] >= nodes_tried // 8 for each in Orders), seen


def _full(random: Random) -> tuple[NumaNode, list[NumaDemand]]:
    zones, left = [], -random.randint(0, 1)
    for _ in range(random.randint(2, 4)):
        cores = random.randint(3, 8)
        free = random.randint(max(1, cores - 2), cores)
        left += free
        zones.append(f"{free} of {cores} cpu {random.randint(6, 12)} memory {random.randint(0, 2)} gpu")
    pods: list[NumaDemand] = []
    while left > 0 and len(pods) < 7:
        cores = random.randint(1, min(4, left))
        left -= cores
        rest = f"{random.randint(1, 4)} memory {random.choice((0, 0, 0, 1))} gpu"
        kinds = [demand(f"{cores} cpu {rest}")] * 6
        kinds.append(demand(f"{cores} cpu {rest}", qos="Burstable"))
        kinds.append(demand(f"init: {cores + random.randint(0, 2)} cpu 1 memory", f"{cores} cpu {rest}"))
        kinds += [demand(f"{cores // 2} cpu 1 memory", f"{cores - cores // 2} cpu {rest}")] * 2
        pods.append(random.choice(kinds))
    random.shuffle(pods)
    policy = random.choice(("single", "single", "restricted"))
    return numa(policy, random.choice(("container", "pod")), *zones), pods


@examples(300, derandomize=True)
@given(
    nodes(4), st.lists(demands(), min_size=2, max_size=4), st.lists(st.sampled_from((1.0, 2.0)), min_size=4, max_size=4)
)
def test_all_permutations_agree(node: NumaNode, pods: list[NumaDemand], times: list[float]) -> None:
    created = tuple(times[: len(pods)])
    found = ordering(node, *pods, created=created)
    assert found.proved
    assert found.orders is _by_trying(node, pods, created)
    if found.sequence is not None:
        assert sorted(found.sequence) == list(range(len(pods)))
        assert works(node, [pods[index] for index in found.sequence])
    if found.orders is Orders.CREATION:
        assert found.sequence == tuple(sorted(range(len(pods)), key=lambda index: created[index]))


def _by_trying(node: NumaNode, pods: list[NumaDemand], created: tuple[float, ...]) -> Orders:
    if creation_order(node, pods, created):
        return Orders.CREATION
    return Orders.NONE if some_order(node, pods) is None else Orders.SOME
