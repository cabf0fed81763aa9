"""Rules that are no sums on a node, after what others did since the snapshot; figures worked out by hand."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from placer.answers.solving import solve
from placer.passes.cluster.planning.scheduler_cache import SchedulerCache
from placer.passes.cluster.reading.earlier_passes import prepared
from placer.problem import GroupKey
from placer.problem.placement import Placement
from placer.rules import verify
from tests.cluster.caches import alone, bind, cache_of, event, mine, theirs
from tests.cluster.snapshots import snapshot_of
from tests.cluster.things import numa_topology
from tests.netdocs import APP, REGION, WORKLOAD, ZONE, app_group, call, costs, network_topology, place, weights
from tests.support import Document, hyper_node, node, pod_group, policy, queue

GANG = GroupKey("scheduling.volcano.sh", "default", "train")


def changed(document: Document, part: str, **values: Any) -> Document:
    return {**document, part: {**document[part], **values}}


# ---------------------------------------------------------------- C12 affinity, C13 anti-affinity, C14 spread


def keeping_off(name: str, where: str, app: str) -> Document:
    """A pod that shares its host with no pod of an app."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    made = theirs(name, where)
    return changed(made, "spec", affinity=anti)


def test_a_pod_that_has_come_and_keeps_ours_off() -> None:
    labels = {"kubernetes.io/hostname": "n1"}
    cache = cache_of(node("n1", labels), mine("web", labels={"app": "web"}), mine("other", labels={"app": "other"}))
    cache.pod_happened("ADDED", event(keeping_off("alone", "n1", "web")))
    assert cache.refusal(alone("web"), [bind("web", "n1")]) == (
        "Domain kubernetes.io/hostname=n1: required pod anti-affinity of Pod default/alone keeps off Pod default/web: "
        "1 pair too many"
    )
    assert cache.refusal(alone("other"), [bind("other", "n1")]) is None
    cache.pod_happened("DELETED", event(keeping_off("alone", "n1", "web")))
    assert cache.refusal(alone("web"), [bind("web", "n1")]) is None


def test_a_member_with_other_labels_has_not_been_bound_by_another_client() -> None:
    documents = [each for each in gang(1) if each["metadata"]["name"] != "train-1"]
    runs = changed(theirs("runs", "n1"), "metadata", annotations={"scheduling.k8s.io/group-name": "train"})
    cache = cache_of(*documents, runs)
    for app in ("a", "b"):
        cache.pod_happened("MODIFIED", event(changed(runs, "metadata", labels={"app": app})))
        assert "another client" not in str(cache.refusal([GANG], [bind("train-0", "n1")]))
    cache.pod_happened("ADDED", event(changed(runs, "metadata", name="other", uid="other")))
    assert "default/other of PodGroup default/train has been bound by" in str(
        cache.refusal([GANG], [bind("train-0", "n1")])
    )


def test_rules_are_asked_again_before_later_tries_where_something_has_changed() -> None:
    """Between the first look at a gang and its last binding: a pod that keeps ours off comes, and goes again."""
    labels = {"kubernetes.io/hostname": "n1"}
    cache = cache_of(node("n1", labels), mine("web", labels={"app": "web"}), mine("free", labels={"app": "free"}))
    web, free = bind("web", "n1"), bind("free", "n1")
    assert cache.refusal([*alone("web"), *alone("free")], [web, free]) is None
    cache.assume([web, free])
    assert cache.late_refusal(web) is None
    cache.pod_happened("ADDED", event(keeping_off("alone", "n1", "web")))
    assert "keeps off Pod default/web" in str(cache.late_refusal(web))
    assert cache.late_refusal(free) is None
    cache.pod_happened("DELETED", event(keeping_off("alone", "n1", "web")))
    assert cache.late_refusal(web) is None


# ------------------------------------------------------------------------------------ C7 by label, C15 exclusive

EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"


def replica(made: Document, index: int) -> Document:
    labels = {"leaderworkerset.sigs.k8s.io/name": "llm", "leaderworkerset.sigs.k8s.io/group-index": str(index)}
    return changed(made, "metadata", labels=labels, annotations={EXCLUSIVE: "rack"})


def test_a_replica_that_has_come_to_the_domain_of_ours() -> None:
    cache = cache_of(node("n1", {"rack": "a"}), node("n2", {"rack": "b"}), replica(mine("ours"), 0))
    cache.pod_happened("ADDED", event(replica(theirs("other", "n1"), 1)))
    assert cache.refusal(alone("ours"), [bind("ours", "n2")]) is None
    refusal = cache.refusal(alone("ours"), [bind("ours", "n1")])
    assert refusal is not None
    assert refusal.startswith("Domain rack=a holds pods of replica 0 of LeaderWorkerSet default/llm and of replica 1")


def test_a_pod_of_our_replica_that_has_come_elsewhere() -> None:
    cache = cache_of(node("n1", {"rack": "a"}), node("n2", {"rack": "b"}), replica(mine("ours"), 0))
    cache.pod_happened("ADDED", event(replica(theirs("other", "n2"), 0)))
    assert cache.refusal(alone("ours"), [bind("ours", "n2")]) is None
    assert cache.refusal(alone("ours"), [bind("ours", "n1")]) == (
        "replica 0 of LeaderWorkerSet default/llm asks for one domain of rack: its 1 bound and 1 new pod are in "
        "rack=a and rack=b"
    )


# ------------------------------------------------------------------------------------------------- C7 tier limits


def gang(limit: int | None) -> list[Document]:
    spec: dict[str, Any] = {} if limit is None else {"networkTopology": {"mode": "hard", "highestTierAllowed": limit}}
    return [
        node("n1", {"rack": "r1"}),
        node("n2", {"rack": "r2"}),
        hyper_node("leaf", 1, nodes=("n1",)),
        pod_group("train", minMember=1, **spec),
        mine("train-0", group="train"),
    ]


@pytest.mark.parametrize("limit", [1, None])
def test_a_member_that_another_scheduler_bound(limit: int | None) -> None:
    """It may be anywhere, which matters where the gang has a limit."""
    cache = cache_of(*gang(limit))
    member = theirs("train-9", "n2")
    notes = {"scheduling.k8s.io/group-name": "train"}
    cache.pod_happened("ADDED", event(changed(member, "metadata", annotations=notes)))
    refusal = "Pod default/train-9 of PodGroup default/train has been bound by another client"
    assert cache.refusal([GANG], [bind("train-0", "n1")]) == (refusal if limit else None)
    cache.pod_happened("DELETED", event(member))
    assert cache.refusal([GANG], [bind("train-0", "n1")]) is None


@pytest.mark.parametrize("limit", [1, None])
def test_a_node_with_other_labels_may_be_elsewhere(limit: int | None) -> None:
    cache = cache_of(*gang(limit))
    cache.node_happened("MODIFIED", json.dumps(node("n1", {"rack": "r9"})).encode())
    refusal = "labels of Node n1 have changed, and HyperNodes may go by them"
    assert cache.refusal([GANG], [bind("train-0", "n1")]) == (refusal if limit else None)


# ---------------------------------------------------------------------------------------- C8 network cost, C9 bandwidth


def member(name: str, workload: str, where: str | None = None) -> Document:
    labels = {APP: "shop", WORKLOAD: workload}
    return mine(name, labels=labels) if where is None else changed(theirs(name, where), "metadata", labels=labels)


def shop(**rules: str) -> list[Document]:
    """web calls db: cost 5 at most, 60 bit/s a pair. Zones a and b cost 3, a and c 9, 100 bit/s between all."""
    links = [(one, other, cost, "100") for one, other, cost in (("a", "b", 3), ("b", "a", 3), ("a", "c", 9))]
    return [
        *(place(f"n-{zone}", f"r/{zone}") for zone in "abc"),
        app_group("shop", {"web": [call("db", cost=5, bandwidth="60")], "db": []}),
        network_topology(weights(zone=costs(*links))),
        *([policy(rules=rules)] if rules else []),
        member("web-0", "web"),
        member("web-1", "web"),
        mine("lone"),
    ]


def test_a_callee_that_has_come_too_far_away() -> None:
    cache = cache_of(*shop())
    cache.pod_happened("ADDED", event(member("db-0", "db", "n-c")))
    refusal = cache.refusal(alone("web-0"), [bind("web-0", "n-a")])
    assert refusal == (
        "AppGroup default/shop: web -> db allows cost 5, and 1 new pair from zone a of region r to zone c of region r "
        "has 9"
    )
    assert cache.refusal(alone("web-0"), [bind("web-0", "n-c")]) is None
    assert cache.refusal(alone("lone"), [bind("lone", "n-a")]) is None
    cache.pod_happened("DELETED", event(member("db-0", "db", "n-c")))
    assert cache.refusal(alone("web-0"), [bind("web-0", "n-a")]) is None


def test_a_rule_that_is_off_is_off_here_too() -> None:
    cache = cache_of(*shop(C8="off", C9="off"))
    cache.pod_happened("ADDED", event(member("db-0", "db", "n-c")))
    assert cache.refusal(alone("web-0"), [bind("web-0", "n-a")]) is None


def test_bandwidth_that_others_have_taken() -> None:
    """One pair takes 60 of 100 bit/s, two take 120: whether the second one is ours or theirs."""
    cache = cache_of(*shop())
    cache.pod_happened("ADDED", event(member("db-0", "db", "n-b")))
    assert cache.refusal(alone("web-0"), [bind("web-0", "n-a")]) is None
    cache.assume([bind("web-0", "n-a")])
    refusal = cache.refusal(alone("web-1"), [bind("web-1", "n-a")]) or ""
    assert refusal.endswith(
        "carries 120 bit/s (60 before, 60 new, by web -> db of AppGroup default/shop) of 100: 20 too much"
    )
    cache.forget(bind("web-0", "n-a"))
    assert cache.refusal(alone("web-1"), [bind("web-1", "n-a")]) is None
    cache.pod_happened("ADDED", event(member("db-1", "db", "n-b")))
    assert "carries 120 bit/s" in (cache.refusal(alone("web-1"), [bind("web-1", "n-a")]) or "")


def test_a_node_in_another_zone() -> None:
    cache = cache_of(*shop(), member("db-0", "db", "n-b"))
    assert cache.refusal(alone("web-0"), [bind("web-0", "n-a")]) is None
    cache.node_happened("MODIFIED", json.dumps(node("n-b", {REGION: "r", ZONE: "c"})).encode())
    assert "web -> db allows cost 5" in (cache.refusal(alone("web-0"), [bind("web-0", "n-a")]) or "")


def test_while_no_pod_of_an_app_group_came_or_went_the_plan_stands() -> None:
    """Even beside a pair that breaks the rule already: new pods were decided upon knowing it."""
    cache = cache_of(*shop(), member("db-0", "db", "n-c"))
    cache.pod_happened("ADDED", event(theirs("other", "n-a")))
    assert cache.refusal(alone("web-0"), [bind("web-0", "n-a")]) is None


# --------------------------------------------------------------------------------------------------------- C10 zones


def guaranteed(document: Document) -> Document:
    (container,) = document["spec"]["containers"]
    requests = container["resources"]["requests"]
    return changed(
        document, "spec", containers=[{**container, "resources": {"requests": requests, "limits": requests}}]
    )


@pytest.fixture
def aligning() -> SchedulerCache:
    """A node whose kubelet aligns, with one pod that it aligned; a and b are ours."""
    sizes: dict[str, Any] = {"cpu": 1, "memory": "1Gi"}
    return cache_of(
        node("n1", memory="8Gi"),
        numa_topology("n1", {"cpu": "8", "memory": "8Gi"}),
        guaranteed(theirs("old", "n1", **sizes)),
        guaranteed(mine("a", **sizes)),
        guaranteed(mine("b", **sizes)),
    )


STIRRED = "pods have come or gone on Node n1, whose kubelet aligns them"


def test_where_kubelets_align_no_other_pod_may_have_come_or_gone(aligning: SchedulerCache) -> None:
    with_zones = bind("a", "n1", zones=("node-0",))
    aligning.assume([bind("b", "n1", zones=("node-0",))])
    aligning.pod_happened("MODIFIED", event(guaranteed(mine("b", cpu=1, memory="1Gi")), "n1"))  # our own do not count
    assert aligning.refusal(alone("a"), [with_zones]) is None
    aligning.pod_happened("DELETED", event(theirs("old", "n1")))
    assert aligning.refusal(alone("a"), [with_zones]) == STIRRED
    assert aligning.refusal(alone("a"), [bind("a", "n1")]) is None  # sums suffice where it aligns nothing of the pod


def test_pods_that_a_kubelet_does_not_align_take_nothing_of_its_zones(aligning: SchedulerCache) -> None:
    with_zones = [bind("a", "n1", zones=("node-0",))]
    burstable = theirs("daemon", "n1", cpu="100m")
    aligning.pod_happened("ADDED", event(burstable))
    aligning.pod_happened("DELETED", event(burstable))
    assert aligning.refusal(alone("a"), with_zones) is None
    aligning.pod_happened("ADDED", event(guaranteed(theirs("new", "n1", cpu=1, memory="1Gi"))))
    assert aligning.refusal(alone("a"), with_zones) == STIRRED


def test_a_binding_that_was_not_made_stirs_nothing(aligning: SchedulerCache) -> None:
    aligning.assume([bind("b", "n1", zones=("node-0",))])
    aligning.forget(bind("b", "n1"))
    assert aligning.refusal(alone("a"), [bind("a", "n1", zones=("node-0",))]) is None


def test_a_nominated_pod_that_is_bound_has_come(aligning: SchedulerCache) -> None:
    """Until then its room counts and its zones do not: the kubelet has not heard of it."""
    waiting = guaranteed(mine("urgent", cpu=1, memory="1Gi", spec={"schedulerName": "default-scheduler"}))
    with_zones = [bind("a", "n1", zones=("node-0",))]
    aligning.pod_happened("ADDED", event(waiting, nominatedNodeName="n1"))
    assert aligning.refusal(alone("a"), with_zones) is None
    aligning.pod_happened("MODIFIED", event(waiting, "n1"))
    assert aligning.refusal(alone("a"), with_zones) == STIRRED


# -------------------------------------------------------------------------------------------------------- C11 queues


QUEUED = {"scheduling.volcano.sh/queue-name": "team"}


def queued(document: Document) -> Document:
    return changed(document, "metadata", annotations=QUEUED)


@pytest.fixture
def team() -> SchedulerCache:
    """Queue team may use 8 cpu, its parent 9; 3 are in use, a wants 4, b wants 2."""
    return cache_of(
        node("n1", cpu=64),
        queue("dept", {"cpu": 9}),
        queue("team", {"cpu": 8}, parent="dept"),
        queued(theirs("old", "n1", cpu=3)),
        queued(mine("a", cpu=4)),
        queued(mine("b", cpu=2)),
        mine("free", cpu=10),
    )


def test_a_queue_whose_capability_others_have_used(team: SchedulerCache) -> None:
    assert team.refusal(alone("a"), [bind("a", "n1")]) is None
    team.pod_happened("ADDED", event(queued(theirs("new", "n1", cpu=2))))
    assert team.refusal(alone("a"), [bind("a", "n1")]) == ("the capability of Queue team is used up: cpu 4 of 3 left")
    assert team.refusal(alone("b"), [bind("b", "n1")]) is None
    assert team.refusal(alone("free"), [bind("free", "n1")]) is None
    team.pod_happened("MODIFIED", event(queued(theirs("new", "n1", cpu=2)), phase="Succeeded"))
    assert team.refusal(alone("a"), [bind("a", "n1")]) is None


def test_what_goes_out_counts_against_its_queue(team: SchedulerCache) -> None:
    team.assume([bind("a", "n1")])
    assert team.refusal(alone("b"), [bind("b", "n1")]) == "the capability of Queue team is used up: cpu 2 of 1 left"
    team.forget(bind("a", "n1"))
    assert team.refusal(alone("b"), [bind("b", "n1")]) is None


def test_before_a_later_try_the_queue_is_looked_at_again(team: SchedulerCache) -> None:
    """What is to be bound counts once, and what others have used since counts, too."""
    team.assume([bind("a", "n1")])
    team.pod_happened("ADDED", event(theirs("apart", "n2")))
    assert team.late_refusal(bind("a", "n1")) is None
    team.pod_happened("ADDED", event(queued(theirs("other", "n2", cpu=4))))
    assert "the capability of Queue" in str(team.late_refusal(bind("a", "n1")))


def test_the_capability_of_a_parent_counts_too(team: SchedulerCache) -> None:
    """3 + 4 are 7 of 8 in team; 3 more in its parent are 10 of 9."""
    notes = {"scheduling.volcano.sh/queue-name": "dept"}
    team.pod_happened("ADDED", event(changed(theirs("beside", "n1", cpu=3), "metadata", annotations=notes)))
    assert team.refusal(alone("a"), [bind("a", "n1")]) == "the capability of Queue dept is used up: cpu 4 of 3 left"


def test_members_of_a_gang_count_against_the_gangs_queue(team: SchedulerCache) -> None:
    cache = cache_of(
        node("n1", cpu=64), queue("team", {"cpu": 8}), pod_group("train", queue="team"), queued(mine("a", cpu=4))
    )
    notes = {"scheduling.k8s.io/group-name": "train"}
    cache.pod_happened("ADDED", event(changed(theirs("train-0", "n1", cpu=5), "metadata", annotations=notes)))
    assert cache.refusal(alone("a"), [bind("a", "n1")]) == "the capability of Queue team is used up: cpu 4 of 3 left"


def test_pods_that_are_gone_by_a_list_give_back_what_they_used(team: SchedulerCache) -> None:
    team.pod_happened("ADDED", event(queued(theirs("new", "n1", cpu=2))))
    assert team.refusal(alone("a"), [bind("a", "n1")]) is not None
    ours = [event(queued(mine("a", cpu=4))), event(queued(mine("b", cpu=2))), event(mine("free", cpu=10))]
    team.pods_replaced([event(queued(theirs("old", "n1", cpu=3))), *ours])
    assert team.changed() == set()
    assert team.refusal(alone("a"), [bind("a", "n1")]) is None


def around(draw: random.Random, name: str, **options: Any) -> Document:
    """A pod that asks for one, or is asked about: near, apart or evenly spread."""
    selector = {"labelSelector": {"matchLabels": {"app": draw.choice("abc")}}}
    term = {"topologyKey": draw.choice(["rack", "kubernetes.io/hostname"]), **selector}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    asked: list[dict[str, Any]] = [
        {},
        {"affinity": {"podAffinity": required}},
        {"affinity": {"podAntiAffinity": required}},
        {"topologySpreadConstraints": [{**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]},
    ]
    node_of = options.pop("where", None)
    made = theirs(name, node_of) if node_of else mine(name)
    labels = {"app": draw.choice("abc")}
    return changed(changed(made, "metadata", labels=labels), "spec", **draw.choice(asked))


@pytest.mark.parametrize("seed", range(20))
def test_what_is_refused_is_what_a_judge_refuses_that_reads_all_anew(seed: int) -> None:
    """Others come, go and get other labels while single pods are bound one after the other."""
    draw = random.Random(seed)
    nodes = [node(f"n{at}", {"rack": "ab"[at % 2], "kubernetes.io/hostname": f"n{at}"}) for at in range(4)]
    there = {f"old-{at}": around(draw, f"old-{at}", where=f"n{draw.randrange(4)}") for at in range(4)}
    ours = {f"new-{at}": around(draw, f"new-{at}") for at in range(5)}
    cache = cache_of(*nodes, *there.values(), *ours.values())
    instance = prepared(snapshot_of([*nodes, *there.values(), *ours.values()]), ()).instance
    result = solve(instance, method="greedy", time_limit=60.0)
    assert result.placement is not None
    for number, bound in enumerate(result.placement.bindings):
        for at in range(draw.choice((0, 0, 0, 1, 3))):
            kind = draw.choice(["ADDED", "MODIFIED", "DELETED"])
            name = f"late-{number}-{at}" if kind == "ADDED" or not there else draw.choice(sorted(there))
            if kind == "DELETED" and there:
                cache.pod_happened("DELETED", event(there.pop(name)))
                continue
            before = there.get(name)
            where = before["spec"]["nodeName"] if before is not None else f"n{draw.randrange(4)}"
            there[name] = around(draw, name, where=where)
            if before is not None:  # a running pod gets other labels, and asks for what it asked
                there[name] = {**before, "metadata": there[name]["metadata"]}
            cache.pod_happened("ADDED" if before is None else "MODIFIED", event(there[name]))
        pod, where = bound.pod.name, bound.node
        now = prepared(snapshot_of([*nodes, *there.values(), *ours.values()]), ()).instance
        judged = verify(now, Placement.of([(bound.pod, where)]))
        refused = cache.refusal(alone(pod), [bind(pod, where)])
        assert (refused is not None) == any(each.rule in ("C12", "C13", "C14") for each in judged), (refused, judged)
        if refused is None:
            cache.assume([bind(pod, where)])
            ours[pod] = changed(ours[pod], "spec", nodeName=where)
