"""Groups that wait for another scheduler: what placer would do, and whom the mimicked policy puts first."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from placer.answers.explain.cases import Case, Placed
from placer.answers.explain.explanation import Explanation, find_groups
from placer.answers.explain.question import Say
from placer.base.deadline import Deadline
from placer.cli import main
from placer.kube.manifests import from_documents
from placer.lab.other_schedulers import ElsewhereFate, OtherSchedulers
from placer.lab.policies.mimicry import mimic
from placer.problem import GroupKey
from tests.support import Document, hyper_node, listing, node, pod, pod_group

CLUSTER: list[Document] = [
    *(node(f"n{at}", gpu=8, cpu=64) for at in range(4)),
    hyper_node("r0", 1, nodes=("n0", "n1")),
    hyper_node("r1", 1, nodes=("n2", "n3")),
]


def gang(name: str, day: int, *gpus: int, scheduler: str = "volcano", **spec: object) -> list[Document]:
    """A gang of a day of January, and its pods, which name their scheduler."""
    group = pod_group(name, minMember=len(gpus), **spec)
    group["metadata"]["creationTimestamp"] = f"2026-01-{day:02}T00:00:00Z"
    members = [pod(f"{name}-{at}", group=name, gpu=gpu, **to(scheduler)) for at, gpu in enumerate(gpus)]
    return [group, *members]


def to(scheduler: str) -> dict[str, Document]:
    return {"spec": {"schedulerName": scheduler}}


#: Two small gangs came before one that wants a whole rack: a scheduler that takes them in turn splits the racks.
RIVALS = [
    *CLUSTER,
    *gang("a", 1, 8),
    *gang("b", 2, 8),
    *gang("c", 3, 8, 8, networkTopology={"mode": "hard", "highestTierAllowed": 1}),
]


LEAST = ((1, "a", 24), (2, "b", 16))


def others(case: Case) -> OtherSchedulers:
    assert case.placed is not None
    return OtherSchedulers(case, case.placed)


def fate(documents: list[Document], group: str) -> ElsewhereFate:
    case = Case(from_documents(documents))
    found = others(case).fate(find_groups(case, group)[0], Deadline.within(3600))
    assert found is not None
    return found


def test_who_went_first_and_from_whom_on_there_was_no_place() -> None:
    found = fate(RIVALS, "c")
    assert (found.scheduler, found.placer.admitted, found.placer.placed) == ("volcano", True, 2)
    told = found.mimicry
    assert told is not None
    assert (found.policy, told.admitted, told.fits_beside) == ("volcano", False, False)
    assert [key.name for key in told.first] == ["a", "b"]
    assert told.since is not None
    assert told.since.name == "b"


def test_what_is_bound_has_those_before_it_alone() -> None:
    told = fate(RIVALS, "b").mimicry
    assert told is not None
    assert told.admitted
    assert [key.name for key in told.first] == ["a"]
    assert (told.since, told.fits_beside) == (None, None)


def test_a_place_that_the_policy_does_not_find() -> None:
    """Pod after pod, the two small ones spread over both nodes; together on the larger one they leave the other."""
    documents = [node("x", gpu=5), node("y", gpu=6), *gang("first", 1, 0), *gang("g", 2, 3, 3, 5)]
    found = fate(documents, "g")
    assert found.placer.admitted
    assert found.mimicry is not None
    assert (found.mimicry.admitted, found.mimicry.fits_beside) == (False, True)


def test_what_does_not_fit_anyway_blames_nobody() -> None:
    told = fate([*CLUSTER, *gang("a", 1, 8), *gang("g", 2, 16)], "g").mimicry
    assert told is not None
    assert (told.admitted, told.since, told.fits_beside) == (False, None, False)


@pytest.mark.parametrize(
    ("scheduler", "api_group", "policy"),
    [
        ("default-scheduler", "scheduling.volcano.sh", "kube-default"),
        ("my-volcano", "scheduling.volcano.sh", "volcano"),
        ("default-scheduler", "scheduling.x-k8s.io", "coscheduling"),
        ("default-scheduler", "", "kube-default"),
        ("kai-scheduler", "", None),
    ],
)
def test_who_mimics(scheduler: str, api_group: str, policy: str | None) -> None:
    documents = [*CLUSTER, pod("p", gpu=8, **to(scheduler))]
    if api_group == "scheduling.volcano.sh":
        documents = [*CLUSTER, *gang("p", 1, 8, scheduler=scheduler)]
    elif api_group:
        version = {"apiVersion": f"{api_group}/v1alpha1"}
        member = pod("p-0", gpu=8, labels={f"{api_group}/pod-group": "p"}, **to(scheduler))
        documents = [*CLUSTER, pod_group("p", minMember=1) | version, member]
    found = fate(documents, "p")
    assert (found.policy, found.mimicry is None) == (policy, policy is None)


def test_pods_of_other_schedulers_are_no_rivals_in_mimicry() -> None:
    """Volcano does not place what waits for the default scheduler; placer, asked about all, does."""
    high = pod("other", gpu=8, **to("default-scheduler"))
    high["spec"]["priority"] = 100
    found = fate([node("n", gpu=8), high, *gang("g", 1, 8)], "g")
    assert not found.placer.admitted
    assert found.mimicry is not None
    assert found.mimicry.admitted
    assert found.mimicry.first == ()


def test_our_own_pods_and_those_that_name_none_are_of_no_other_scheduler() -> None:
    case = Case(from_documents([*CLUSTER, pod("p", gpu=8), pod("q", gpu=8, **to("placer"))]))
    assert others(case).names == {}


@pytest.mark.parametrize("policy", ["volcano", "coscheduling"])
def test_a_policy_stops_at_the_deadline(policy: str) -> None:
    instance = Case(from_documents(RIVALS)).instance
    told = mimic(instance, policy, deadline=Deadline(at=0.0))
    assert (told.ended, told.placement.bindings) == (False, ())
    assert mimic(instance, policy).ended


def test_what_a_policy_does_not_come_to_in_time_is_null(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case, soon = Case(from_documents(RIVALS)), _Soon(looks=[1, 1])
    asked = others(case)
    for name in "cb":
        found = asked.fate(find_groups(case, name)[0], soon)
        assert found is not None
        assert (found.policy, found.mimicry, found.as_dict()["mimicry"]) == ("volcano", None, None)
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": RIVALS}))
    assert main(["explain", str(path), "--group", "c", "--time-limit", "1e-9"]) == 0
    said = "The order of volcano is not known: policy volcano, which mimics it, did not come to its end in time"
    assert said in capsys.readouterr().out


def test_pods_that_a_job_will_make_wait_for_its_scheduler() -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "x"}]}}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "hold"}}
    job["spec"] = {"schedulerName": "volcano", "tasks": [{"name": "w", "replicas": 2, "template": template}]}
    found = fate([*CLUSTER, job], "hold")
    assert (found.scheduler, found.placer.admitted, found.placer.placed) == ("volcano", True, 2)


def test_groups_of_lower_priority_are_not_said_to_be_served_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small, wide = gang("small", 1, 8), gang("wide", 2, *[8] * 5)
    for each in wide[1:]:
        each["spec"]["priority"] = 9
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*CLUSTER, *small, *wide]}))
    assert main(["explain", str(path), "--group", "wide"]) == 0
    out = capsys.readouterr().out
    assert "    Placed although it waits, of lower priority: default/small.\n" in out
    assert "erved before it" not in out


@pytest.mark.parametrize(("scheduler", "share"), [("volcano", 2 / 3), ("placer", 1)])
def test_a_third_of_the_time_is_kept_for_other_schedulers(
    scheduler: str, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = []

    def explained(case: Case, keys: list[GroupKey], deadline: Deadline, placed: Placed, say: Say) -> list[Explanation]:
        left.append(deadline.left)
        return [Explanation(key, admitted=False) for key in keys]

    monkeypatch.setattr("placer.cli.explaining.explain", explained)
    path = tmp_path / "c.json"
    documents = [node("n", gpu=4), *gang("g", 1, 8, scheduler=scheduler)]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    assert main(["explain", str(path), "--group", "g", "--time-limit", "1e6"]) == 0
    assert 0.999e6 * share < left[0] <= 1e6 * share


@dataclass(frozen=True)
class _Soon(Deadline):
    """Over after some looks at it."""

    looks: list[int] = field(default_factory=list)

    @property
    def over(self) -> bool:
        return not self.looks or not self.looks.pop()


def test_explain_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": RIVALS}))
    assert main(["explain", str(path)]) == 0
    told = capsys.readouterr().out
    assert "PodGroup default/c waits for scheduler volcano." in told
    assert "placer would admit it: 2 pods placed under r" in told
    assert "Simulation, not the scheduler itself: policy volcano leaves it waiting." in told
    assert "Served before it: default/a, default/b." in told
    assert "but not after default/b." in told
    assert main(["explain", str(path), "--group", "c", "--json"]) == 0
    (entry,) = listing(capsys.readouterr().out)
    assert entry["causes"] == []
    assert entry["scheduler"]["placer"]["admitted"] is True
    assert entry["scheduler"]["mimicry"]["since"] == {"kind": "PodGroup", "namespace": "default", "name": "b"}


def test_a_group_that_volcano_let_in_is_not_kept_out_by_what_it_asks_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """32 GPUs, so 38.4 may be asked for; the first asks for 24 of them, both together for 40."""
    first, second = (gang(name, at, 8, minResources={"nvidia.com/gpu": least}) for at, name, least in LEAST)
    path = tmp_path / "in.json"
    told = []
    for phase in ("Pending", "Inqueue"):
        second[0]["status"] = {"phase": phase}
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*CLUSTER, *first, *second]}))
        assert main(["explain", str(path), "--group", "b"]) == 0
        told.append([line.strip() for line in capsys.readouterr().out.splitlines()])
    assert "Simulation, not the scheduler itself: policy volcano leaves it waiting." in told[0]
    kept_out = [line for line in told[0] if line.startswith("The action enqueue keeps it out: its minResources")]
    assert len(kept_out) == 1
    assert "Simulation, not the scheduler itself: policy volcano binds it: 1 pod placed." in told[1]


def test_a_configuration_of_the_scheduler_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, conf = tmp_path / "c.json", tmp_path / "volcano.conf"
    documents = [node("n", gpu=8), *gang("g", 1, 8)]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    for actions, placed in (("enqueue, allocate", 1), ("enqueue", 0)):
        conf.write_text(f'actions: "{actions}"\ntiers:\n- plugins:\n  - name: predicates\n  - name: ours\n')
        assert main(["explain", str(path), "--json", "--scheduler-config", str(conf)]) == 0
        (entry,) = listing(capsys.readouterr().out)
        assert entry["scheduler"]["mimicry"]["placed"] == placed
        assert any("ours" in note for note in entry["scheduler"]["mimicry"]["notes"])
