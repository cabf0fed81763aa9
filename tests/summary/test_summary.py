"""What people read: the verdict in words, amounts, groups, what is set aside; at any width, with no number cut."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

import placer
from placer.answers.document import placement_document
from placer.answers.summary import print_summary
from placer.base.words import nodes_worth
from placer.problem import Finding
from placer.problem.placement import Value
from placer.problem.result import Bound, Judged, Result, Termination, Verdict
from tests.support import Document, hyper_node, instance_of, node, pod, pod_group

SOFT = {"networkTopology": {"mode": "soft"}}


def shown(result: Result, width: int = 140, **options: Any) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_summary(result, console, **options)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def loose(text: str) -> str:
    """The same with single blanks, so that the width of columns does not matter."""
    return re.sub(" +", " ", text)


def gang(name: str, pods: int, *, namespace: str = "default", **amounts: Any) -> list[Document]:
    members = [pod(f"{name}-{number}", group=name, namespace=namespace, **amounts) for number in range(pods)]
    return [pod_group(name, namespace, minMember=pods, **SOFT), *members]


def solved(*documents: Document, **options: Any) -> Result:
    return placer.solve(instance_of(*documents, **options), method="greedy")


def leaves() -> list[Document]:
    """Two leaf switches of two nodes each under a spine."""
    return [
        *(node(f"n{number}") for number in range(4)),
        hyper_node("leaf-0", 1, nodes=("n0", "n1")),
        hyper_node("leaf-1", 1, nodes=("n2", "n3")),
        hyper_node("spine", 2, children=("leaf-0", "leaf-1")),
    ]


# --------------------------------------------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (12_000_000, "12.0 nodes"),
        (1_234_567_890_000, "1,234,567.9 nodes"),
        (0, "0.0 nodes"),
        (400, "0.0004 nodes"),
        (1, "0.000001 nodes"),
    ],
)
def test_amounts_are_so_many_nodes_worth(amount: int, words: str) -> None:
    assert nodes_worth(amount) == words


# ------------------------------------------------------------------------------------------------------------- verdicts


def with_values(result: Result, *judged: Judged, **changes: Any) -> Result:
    return replace(result, objective=judged, **changes)


def amounts(found: int, bound: int | None, by: str = "volume") -> tuple[Judged, Judged]:
    proved = None if bound is None else Bound(bound, by)
    return Judged(Value("admitted", found, 0), proved), Judged(Value("placed", found, 0), proved)


@pytest.fixture(scope="module")
def answer() -> Result:
    """One gang is placed, another waits."""
    return solved(*leaves(), *gang("fits", 4, cpu=4), *gang("large", 2, cpu=9))


def test_what_is_proved_and_what_may_improve(answer: Result) -> None:
    span = Judged(Value("span", 5), Bound(4, "counting"))
    nodes = Judged(Value("packedNodes", 7))
    found = with_values(answer, *amounts(2_000_000, 2_000_000), span, nodes, verdict=Verdict.FEASIBLE)
    text = shown(found)
    assert text.startswith(
        "FEASIBLE  all that can be placed is placed (proved); span (leaf switches): 5, at least 4; "
        "the values after it may improve, too\n"
    )
    assert "span (leaf switches) 5 at least 4 (gap 20.00%), proved by counting" in loose(text)
    assert "packing (nodes opened) 7 not proved" in loose(text)


def test_what_is_not_proved_to_be_all_is_not_said_to_be(answer: Result) -> None:
    text = shown(with_values(answer, *amounts(2_000_000, 2_500_000), verdict=Verdict.FEASIBLE))
    assert text.startswith("FEASIBLE  admitted groups: 2.0 nodes, at most 2.5;")
    assert "all that can be placed" not in text
    unproved = shown(with_values(answer, *amounts(2_000_000, None), verdict=Verdict.FEASIBLE))
    assert unproved.startswith("FEASIBLE  admitted groups: 2.0 nodes, and how much better it may be is not")


def test_what_is_not_modelled_is_no_part_of_what_can_be_placed() -> None:
    resources = {"resourceClaims": [{"name": "claim", "resourceClaimName": "gpu"}]}
    result = solved(node("n"), pod("p", cpu=1), *(pod(name, spec=resources) for name in "qr"))
    says = "all that can be placed is placed (proved); every value is at its best (proved)"
    assert shown(result).startswith(f"OPTIMAL  {says}, of all that placer reads; 2 pods are not read\n")
    assert "OPTIMAL" in repr(result)
    assert ", of all that placer reads; 2 pods are not read>" in repr(result)
    assert placement_document(result).instance.unsupported == 2


def test_a_level_that_comes_after_another_is_only_the_best_beside_it(answer: Result) -> None:
    cost = Judged(Value("networkCost", 3), Bound(3, "exact"))
    text = shown(with_values(answer, cost, *amounts(2_000_000, 2_000_000), verdict=Verdict.OPTIMAL))
    assert text.startswith("OPTIMAL  as much is placed as the values compared before allow (proved);")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"termination": Termination.TIME, "time_limit": 60.0}, "stopped at the 60 s limit; found by greedy"),
        (
            {"termination": Termination.TIME, "time_limit": None, "work_limit": 2.5},
            "stopped at the work limit of 2.5; found by greedy",
        ),
        ({"termination": Termination.INTERRUPTED}, "interrupted after 3.2 s; found by greedy"),
        ({"termination": Termination.FINISHED, "method": "milp"}, "finished after 3.2 s; found by milp"),
    ],
)
def test_why_it_stopped(answer: Result, changes: dict[str, Any], words: str) -> None:
    seconds = {**answer.seconds, "total": 3.21}
    assert shown(replace(answer, seconds=seconds, **changes)).splitlines()[1].startswith(words)


def test_a_value_of_nothing_is_left_out_though_nothing_is_proved_of_it(answer: Result) -> None:
    found = with_values(
        answer,
        *amounts(0, 2_000_000),
        Judged(Value("networkCost", 7), Bound(1, "counting")),
        Judged(Value("packedHyperNodes", 0)),
        verdict=Verdict.FEASIBLE,
    )
    text = loose(shown(found))
    assert "packing (HyperNodes opened)" not in text
    assert "placed pods 0.0 nodes at most 2.0, proved by total capacity" in text  # more than nothing is possible
    assert "%" not in text.partition("network cost")[0].partition("Values")[2]
    nothing = with_values(answer, Judged(Value("locality", 0), Bound(0, "counting")), verdict=Verdict.OPTIMAL)
    assert "Values" not in shown(nothing)


def test_what_more_is_possible_than_nothing_is_an_amount(answer: Result) -> None:
    weight = Judged(Value("weight", 0), Bound(2_100_000, "volume"))
    text = shown(replace(answer, weight=weight, verdict=Verdict.FEASIBLE))
    assert "0.0 nodes of 4.2 asked for; at most 2.1 is possible (total capacity)" in text
    more = Judged(Value("weight", 2_000_000), Bound(2_100_000, "volume"))
    assert "at most 5.00% more is possible (total capacity)" in shown(replace(answer, weight=more))


# -------------------------------------------------------------------------------------------------------------- groups


def test_admitted_groups_say_where_they_are() -> None:
    documents = [*gang("llm-8b", 4, namespace="ml", cpu=4), *gang("wide", 4, namespace="ml", cpu=4), pod("lone", cpu=1)]
    result = solved(*leaves(), node("n4"), *documents)
    text = shown(result)
    assert "Admitted: 2 PodGroups and 1 single pod\n" in text
    assert re.search(r"^  ml/llm-8b +4 pods  leaf-[01] \(tier 1\)$", text, re.MULTILINE)
    assert re.search(r"^  default/lone +1 pod +n4$", text, re.MULTILINE)
    assert "(2)" not in text
    assert re.search(
        r"^  ml/llm-8b +4 pods  leaf-0 \(tier 1\)  n0\(2\), n1\(2\)$", shown(result, wide=True), re.MULTILINE
    )


def test_pods_that_were_made_for_a_workload_without_any_are_told() -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    for documents, said in (([web], "2 pods that placer made from Deployment default/web (2)"), ([pod("p")], "")):
        text = shown(solved(node("n", cpu=4), *documents))
        assert ("expanded" in text, said in text) == (bool(said), True)


def test_without_a_tree_a_group_is_on_so_many_nodes() -> None:
    text = shown(solved(node("a"), node("b"), *gang("pair", 2, cpu=6), *gang("one", 2, cpu=1)))
    assert re.search(r"^  default/pair +2 pods  2 nodes$", text, re.MULTILINE)


def test_a_group_of_which_some_pods_wait_stands_in_both_lists() -> None:
    members = [pod(f"p{number}", group="elastic", cpu=5) for number in range(3)]
    text = shown(solved(node("a"), node("b"), pod_group("elastic", minMember=1), *members))
    assert "  default/elastic  2 of 3 pods  2 nodes\n" in text
    assert "Still pending: 1 PodGroup (" in text
    words = "2 of 3 pods placed; the rest: too little room is free"
    assert re.search(rf"^default +elastic +0 +- +1 +- +{words}$", text, re.MULTILINE)


def test_what_is_admitted_is_capped_and_equal_reasons_stand_once() -> None:
    fits = [pod(f"p{number:02d}", cpu="100m") for number in range(15)]
    large = [pod(f"q{number:02d}", cpu=20 + number) for number in range(14)]
    text = shown(solved(node("a"), *fits, *large))
    assert "Admitted: 15 single pods\n" in text
    assert "  ... and 3 more (-o wide lists all, and -o FILE writes them)\n" in text
    assert "Still pending: 14 single pods (InsufficientResources 14)\n" in text
    assert "14 single pods of priority 0: larger than any node\n" in text
    assert "  default/q00 (first of 14)  1 pod  InsufficientResources " in text
    assert len(re.findall(r"^  default/p", text, re.MULTILINE)) == 12


def test_names_are_text_and_no_markup() -> None:
    odd = {"apiVersion": "example.com/v1", "kind": "Odd[red]", "metadata": {"name": "x"}}
    assert "1 example.com/v1 Odd[red]" in shown(solved(node("a"), pod("p", cpu=1), odd))


# ----------------------------------------------------------------------------------------------------------- set aside


def test_nothing_to_place_is_no_proof_of_anything() -> None:
    others = [pod(f"v{number}", cpu=1, spec={"schedulerName": "volcano"}) for number in range(3)]
    gated = pod("g", cpu=1, spec={"schedulingGates": [{"name": "quota"}]})
    text = shown(solved(node("a"), *others, pod("d", cpu=1), gated, scheduler_name="placer"))
    assert text.startswith(
        'Nothing to place: 0 pending for scheduler "placer" (3 for volcano, 1 for default-scheduler, 1 gated)\n'
        "--scheduler-name volcano takes those for volcano, --scheduler-name '*' those for every scheduler\n"
    )
    assert "OPTIMAL" not in text
    assert "Values" not in text
    assert shown(solved(node("a"))).startswith("Nothing to place: 0 pending for any scheduler\n")


def test_what_is_set_aside_is_counted_beside_what_is_placed() -> None:
    ours = pod("ours", cpu=1, spec={"schedulerName": "placer"})
    text = shown(solved(node("a"), ours, pod("d", cpu=1), scheduler_name="placer"))
    assert "skipped          pods of other schedulers, or gated: 1 for default-scheduler\n" in text
    assert "set aside" not in shown(solved(node("a"), ours))


def test_many_kinds_that_are_not_read_are_capped() -> None:
    kinds = [{"apiVersion": "v1", "kind": f"Kind{number:02d}", "metadata": {"name": "x"}} for number in range(15)]
    text = shown(solved(node("a"), pod("p", cpu=1), *kinds))
    assert "Not read (other kinds): 1 v1 Kind00, " in text
    assert text.endswith("1 v1 Kind11, and 3 more kinds")


# --------------------------------------------------------------------------------------------------------------- widths


@pytest.fixture(scope="module")
def large() -> Result:
    """Values with many digits, two priorities, long names, groups that wait."""
    name = "a-job-whose-name-is-as-long-as-people-make-them-" + "x" * 30
    documents = [
        *leaves(),
        *gang("fits", 4, cpu=4),
        *gang(name, 2, cpu=9),
        pod("urgent", cpu=1, spec={"priority": 2_000_000_000}),
    ]
    result = solved(*documents)
    objective = tuple(
        Judged(replace(judged.value, value=987_654_321_012_345), Bound(987_654_321_012_399, "volume"))
        for judged in result.objective
    )
    return replace(result, objective=objective, verdict=Verdict.FEASIBLE)


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_lines_fit_and_no_number_is_cut(large: Result, width: int) -> None:
    text = shown(large, width, wide=True)
    assert max(map(len, text.splitlines())) <= width
    assert text.count("987,654,321.0123") >= 4
    assert text.count("987,654,321.0124") >= 4
    assert text.count("987,654,321,012,345") == 4
    assert text.count("987,654,321,012,399") == 4
    assert "2,000,000,000" in text
    assert "…" not in text


# ------------------------------------------------------------------------------------------------------------ notebooks


def test_notebooks_show_a_line_or_the_summary(answer: Result) -> None:
    assert repr(answer.instance) == "<Instance: 4 nodes, 3 HyperNodes, 6 pods, 6 of them pending in 2 groups>"
    assert re.fullmatch(
        r"<Result OPTIMAL: 4 of 6 pending pods placed, 1 group waits; proved after \d+\.\d s, found by greedy>",
        repr(answer),
    )
    html = answer._repr_html_()
    assert "all that can be placed is placed (proved)" in html
    assert html.startswith("<pre")
    assert html.endswith("</pre>")


def test_html_of_names_is_escaped(answer: Result) -> None:
    html = replace(answer, findings=(Finding("NoHyperNodes", "x", "<script>"),))._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
