"""How users call groups: two of one name in two systems are told apart."""

from __future__ import annotations

import pytest

from placer.answers.explain.cases import Case
from placer.answers.explain.explanation import find_groups
from placer.answers.making_room import groups_named
from placer.base.errors import UsageError
from placer.kube.manifests import from_documents
from placer.problem import GroupKey
from placer.problem.group_names import Selection, full_name
from tests.problem.test_unread_kinds import custom
from tests.support import Document, instance_of, node, pod, pod_group

COSCHEDULING = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {"name": "train", "namespace": "ml"},
    "spec": {"minMember": 1},
}
DOCUMENTS: list[Document] = [
    node("n1"),
    pod_group("train", "ml", minMember=1),
    COSCHEDULING,
    pod("v", group="train", namespace="ml"),
    pod("c", namespace="ml", labels={"scheduling.x-k8s.io/pod-group": "train"}),
    pod(
        "k",
        namespace="ml",
        labels={"kueue.x-k8s.io/pod-group-name": "train"},
        annotations={"kueue.x-k8s.io/pod-group-total-count": "1"},
    ),
    pod("train", namespace="ml"),
    pod("alone", namespace="ml"),
    pod("d"),
]
INSTANCE, CASE = instance_of(*DOCUMENTS), Case(from_documents(list(DOCUMENTS)))


@pytest.mark.parametrize("key", [key for key in INSTANCE.groups if key.name == "train"], ids=full_name)
def test_each_group_has_a_name_of_its_own(key: GroupKey) -> None:
    assert find_groups(CASE, full_name(key))[0] == groups_named(INSTANCE, full_name(key)).pop() == key


def job(name: str, **spec: object) -> Document:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main"}]}}
    head = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "ml"}}
    return {**head, "spec": {"template": template, **spec}}


@pytest.mark.parametrize(("words", "count"), [("ml/train", 4), ("podgroup/ml/train", 3)])
def test_an_ambiguous_name_lists_the_choices(words: str, count: int) -> None:
    choices = sorted(full_name(key) for key in INSTANCE.groups if key.name == "train")
    expected = f"found {count} groups of that name, expected one of {', '.join(choices[4 - count :])}"
    for option, find in (
        ("--group", lambda: find_groups(CASE, words)),
        ("--for", lambda: groups_named(INSTANCE, words)),
    ):
        with pytest.raises(UsageError) as told:
            find()
        assert str(told.value) == f"{option} {words}: {expected}"


@pytest.mark.parametrize("words", ["ml/llm", "llm", "vcjob/ml/llm", "job/wait", "ml/wait"])
def test_a_group_is_found_by_the_name_of_its_workload(words: str) -> None:
    """Volcano adds a uid to the job's name, and pods of a Job are groups of their own."""
    name = "llm-1c9ad1f0-7c52-4d0b-9d0f-6f0f2d6c8f1e"
    documents = [
        node("n1"),
        pod_group(name, "ml", minMember=1),
        pod("llm-worker-0", group=name, namespace="ml"),
        pod("wait-x7k2f", namespace="ml", labels={"batch.kubernetes.io/job-name": "wait"}),
    ]
    case = Case(from_documents(list(documents)))
    assert find_groups(case, words)[0].name in (name, "wait-x7k2f")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("web", ["web-7f9c-abcde", "web-7f9c-fghij"]),
        ("deployment/ml/web", ["web-7f9c-abcde", "web-7f9c-fghij"]),
        ("rs/web-7f9c", ["web-7f9c-abcde", "web-7f9c-fghij"]),
        ("sts/db", ["db-0"]),
        ("web-api", ["web-api-55d-klmno"]),
    ],
)
def test_a_deployment_stands_for_all_its_pods(words: str, names: list[str]) -> None:
    made = {"web-7f9c-abcde": "7f9c", "web-7f9c-fghij": "7f9c", "web-api-55d-klmno": "55d"}
    pods = [pod(name, namespace="ml", labels={"pod-template-hash": of}) for name, of in made.items()]
    case = Case(from_documents([node("n1"), *pods, pod("db-0", namespace="ml")]))
    assert [key.name for key in find_groups(case, words)] == names


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            job("train", suspend=True),
            "Job ml/train is suspended (spec.suspend: true) and makes no pods; --set job/ml/train:",
        ),
        (
            job("train", parallelism=0),
            "Job ml/train runs none at a time (spec.parallelism: 0) and makes no pods; --set ",
        ),
        (
            {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "train", "namespace": "ml"}},
            "PyTorchJob ml/train has no pods in the input, and placer makes none of this kind",
        ),
    ],
)
def test_a_workload_without_pods_is_named(document: Document, said: str) -> None:
    case = Case(from_documents([node("n1"), document]))
    with pytest.raises(UsageError) as told:
        find_groups(case, "train")
    assert str(told.value).startswith(f"--group train: {said}")


def test_a_suspended_job_set_is_named_with_its_jobs() -> None:
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "set", "controller": True}
    job_set = custom(owner["apiVersion"], "JobSet", "set", namespace="ml", spec={"suspend": True})
    child, other = job("child", suspend=True), job("other", suspend=True)
    child["metadata"]["ownerReferences"] = [owner]
    case = Case(from_documents([node("n1"), job_set, child, other]))
    with pytest.raises(UsageError) as told:
        find_groups(case, "set")
    edits = "--set jobset/ml/set:spec.suspend=false --set job/ml/child:spec.suspend=false explains"
    assert edits in str(told.value)


def test_a_name_of_no_group_is_an_error() -> None:
    for words in ("podgroup/ml/alone", "podgroup.scheduling.run.ai/ml/train", "other/train"):
        with pytest.raises(UsageError):
            find_groups(CASE, words)
        with pytest.raises(UsageError, match="no such group that waits"):
            groups_named(INSTANCE, words)


TWO_PLACES = [node("n1"), *(pod("web", namespace=each, labels={"app": each}) for each in ("a", "b", "pod"))]


@pytest.mark.parametrize(
    ("words", "namespace", "home", "found"),
    [
        ("web", None, "b", "pod/b/web"),
        ("web", "a", "b", "pod/a/web"),
        ("a/web", "b", "b", "pod/a/web"),
        ("pod/web", "b", "default", "pod/b/web"),
        ("pod/pod/web", None, "default", "pod/pod/web"),
    ],
)
def test_a_name_without_a_namespace_takes_the_one_that_is_given_else_the_users_own(
    words: str, namespace: str | None, home: str, found: str
) -> None:
    instance, case = instance_of(*TWO_PLACES), Case(from_documents(list(TWO_PLACES)))
    assert full_name(groups_named(instance, words, namespace, home).pop()) == found
    assert full_name(find_groups(case, words, namespace, home)[0]) == found
    with pytest.raises(UsageError, match="found 3 groups of that name, expected one of pod/a/web, pod/b/web, "):
        find_groups(case, "web")


@pytest.mark.parametrize("words", ["ml/trian", "trian", "podgroup/trian", "other/trian", "Train"])
def test_a_name_that_is_nearly_right_is_proposed(words: str) -> None:
    with pytest.raises(UsageError, match="; found like it: ml/train"):
        find_groups(CASE, words)
    with pytest.raises(UsageError, match="; found like it: ml/train"):
        groups_named(INSTANCE, words)


def test_namespace_labels_and_names_select_groups() -> None:
    instance = instance_of(*TWO_PLACES, pod("runs", namespace="a", node="n1", labels={"app": "a"}), pod("bare"))

    def found(**words: str) -> list[str]:
        return [full_name(key) for key in Selection(**words).groups(instance)]

    assert set(found()) == {"pod/a/web", "pod/b/web", "pod/pod/web", "pod/a/runs", "pod/default/bare"}
    assert set(found(namespace="a")) == {"pod/a/web", "pod/a/runs"}
    assert set(found(selector="app in (a, b)")) == {"pod/a/web", "pod/b/web", "pod/a/runs"}
    assert found(selector="!app") == ["pod/default/bare"]
    assert found(namespace="b", selector="app=b") == ["pod/b/web"]
    assert Selection("ab").none(instance, "waits") == "No group of namespace ab waits."
    with pytest.raises(UsageError, match="-l: found 'app in a', expected a selector"):
        found(selector="app in a")
