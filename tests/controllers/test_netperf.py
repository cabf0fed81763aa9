"""Measurements in a ConfigMap: both spellings and units, percentiles, and what is no measurement."""

from __future__ import annotations

from typing import Any

import pytest

from placer.kube.core import ConfigMapManifest
from placer.problem.network_objects import Measurements, Pair, read_measurements
from tests.support import objects_of

NODES = ("n1", "n2", "ip-10-0-0-1.eu.internal", "a.destination.b")


def config_map(data: dict[str, str] | None) -> ConfigMapManifest:
    document: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "netperf-metrics"}}
    return objects_of(document if data is None else document | {"data": data}).config_maps[0]


def measured(data: dict[str, str] | None, percentile: int = 90) -> Measurements:
    return read_measurements(config_map(data), NODES, percentile)


def codes(found: Measurements) -> dict[str, str]:
    return {finding.code: finding.message for finding in found.findings}


def shipped(origin: str, destination: str, percentile: int = 90) -> str:
    return f"netperf.p{percentile}.latency.milliseconds.origin.{origin}.destination.{destination}"


def published(origin: str, destination: str, percentile: int = 90) -> str:
    return f"netperf_p{percentile}_latency_microseconds.origin.{origin}.destination.{destination}"


def test_both_spellings_in_one_unit() -> None:
    found = measured({shipped("n1", "n2"): "7", published("n2", "n1"): "345"})
    assert found == Measurements({Pair("n1", "n2"): 7000, Pair("n2", "n1"): 345})


def test_the_finer_unit_counts_where_both_are_there() -> None:
    for data in (
        {shipped("n1", "n2"): "1", published("n1", "n2"): "1345"},
        {published("n1", "n2"): "1345", shipped("n1", "n2"): "1"},
    ):
        assert measured(data).latencies == {Pair("n1", "n2"): 1345}


def test_node_names_with_dots() -> None:
    dotted = "ip-10-0-0-1.eu.internal"
    found = measured({shipped(dotted, "n1"): "3", shipped("n1", dotted): "4", shipped("a.destination.b", "n2"): "5"})
    assert found == Measurements(
        {Pair("a.destination.b", "n2"): 5000, Pair(dotted, "n1"): 3000, Pair("n1", dotted): 4000}
    )


def test_the_percentile_is_chosen() -> None:
    data = {shipped("n1", "n2", each): str(each) for each in (50, 90, 99)}
    for each in (50, 90, 99):
        assert measured(data, each) == Measurements({Pair("n1", "n2"): each * 1000})


def test_a_percentile_that_was_not_measured() -> None:
    found = measured({shipped("n1", "n2", 50): "1", published("n1", "n2", 99): "1"})
    assert found.latencies == {}
    assert codes(found) == {
        "NetperfPercentile": "ConfigMap default/netperf-metrics has no measurement of p90, but of p50, p99"
    }


@pytest.mark.parametrize("data", [None, {}, {"other": "7", "fast.netperf": "x"}])
def test_nothing_measured(data: dict[str, str] | None) -> None:
    assert measured(data) == Measurements({})


def test_fractions_are_rounded_up() -> None:
    found = measured({shipped("n1", "n2"): "0.1301", published("n2", "n1"): " 130.2\n"})
    assert found == Measurements({Pair("n1", "n2"): 131, Pair("n2", "n1"): 131})


def test_zero_is_a_measurement() -> None:
    assert measured({shipped("n1", "n2"): "0"}) == Measurements({Pair("n1", "n2"): 0})


@pytest.mark.parametrize("value", ["", "-3", "fast", "1e3", "NaN", "inf", "9" * 13, "1.", "١"])
def test_a_value_that_is_no_number_is_no_measurement(value: str) -> None:
    """The shipped controller takes it for 0, the best cost there is."""
    found = measured({shipped("n1", "n2"): value})
    assert found.latencies == {}
    assert codes(found) == {
        "NetperfValue": f"ConfigMap default/netperf-metrics: {shipped('n1', 'n2')} = {value!r}: no number of at "
        f"least 0, so not used"
    }


def test_nodes_that_are_gone_and_keys_that_are_none() -> None:
    found = measured(
        {
            shipped("n1", "gone"): "3",
            shipped("gone", "n2"): "3",
            "netperf.p90.latency.seconds.origin.n1.destination.n2": "3",
            shipped("n1", "n2"): "3",
        }
    )
    assert found.latencies == {Pair("n1", "n2"): 3000}
    assert codes(found) == {
        "NetperfKey": "ConfigMap default/netperf-metrics: netperf.p90.latency.seconds.origin.n1.destination.n2: no key "
        "of a measurement that is known, so not used",
        "NetperfNode": f"ConfigMap default/netperf-metrics: {shipped('gone', 'n2')} and 1 other: not two nodes that "
        f"are there, so not used",
    }
    assert {finding.object for finding in found.findings} == {"ConfigMap default/netperf-metrics"}
