"""The options of passes in one file: equal to the flags, validated, and overruled by what is given."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from placer.base.errors import UsageError
from placer.cli import main
from placer.cli.pass_flags import configured, pass_options
from placer.cli.program import parser
from placer.passes.configuration import OPTIONS, read_configuration

HEADER = "apiVersion: placer.dev/v1alpha1\nkind: Configuration\n"
#: A value for each key that is no default and goes into a flag as it is written.
VALUES: dict[str, Any] = {
    "kubeconfig": "/a",
    "context": "b",
    "scheduler_name": "c",
    "strict": True,
    "method": "milp",
    "time_limit": 7.5,
    "namespace_budget": "terms=500",
    "workers": 3,
    "seed": 11,
    "dry_run": "server",
    "bind_workers": 2,
    "gang_grace": 1.5,
    "half_bound_patience": float("inf"),
    "roll_back": True,
    "settle": 0.5,
    "cool_down": 12.0,
    "inqueue": True,
    "leader_elect_resource_namespace": "d",
    "leader_elect_resource_name": "e",
    "no_conditions": True,
    "no_events": True,
    "no_group_status": True,
    "tell_limit": 4.0,
    "save": "/tmp",
    "save_keep": 6,
    "save_keep_bytes": 99,
    "namespaces": ["ml", "web"],
    "node_selector": "pool=batch,!spare",
    "max_bindings": 8,
    "max_evictions_per_hour": 9,
    "gone_within": 20.0,
    "hold_room": 700.0,
    "controllers": ["AppGroup", "HyperNode"],
    "every": "30s",
    "metrics_bind_address": ":8080",
    "report_bind_address": "127.0.0.1:8090",
    "enforce": "gates",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "placer.yaml"


def options(*words: str, command: str = "run") -> argparse.Namespace:
    return configured(parser().parse_args([command, *words]))


def flags(command: str) -> dict[str, argparse.Action]:
    """The flags of a command that are no keys apart, by what argparse calls them."""
    (commands,) = (each for each in parser()._actions if isinstance(each, argparse._SubParsersAction))
    apart = ("help", "help_all", "json", "format", "quiet", "config")
    return {each.dest: each for each in commands.choices[command]._actions if each.dest not in apart}


@pytest.mark.parametrize("command", ["run", "check", "config"])
def test_every_key_is_a_flag_and_every_flag_a_key(command: str) -> None:
    assert flags(command).keys() == OPTIONS.keys()
    for name, action in flags(command).items():
        assert action.option_strings == [f"--{name.replace('_', '-')}"]


def test_every_key_is_tried() -> None:
    assert VALUES.keys() == OPTIONS.keys()
    assert OPTIONS["time_limit"].key == "timeLimit"


@pytest.mark.parametrize("name", VALUES)
def test_a_key_means_what_its_flag_means(name: str, file: Path) -> None:
    value = VALUES[name]
    text = "inf" if value == float("inf") else json.dumps(value)
    file.write_text(f"{HEADER}{OPTIONS[name].key}: {text}\n")
    flag = f"--{name.replace('_', '-')}"
    given = (
        options(flag) if value is True else options(f"{flag}={','.join(value) if isinstance(value, list) else value}")
    )
    read, default = options("--config", str(file)), options()
    assert getattr(read, name) == getattr(given, name) == value != getattr(default, name)
    assert {each for each in read.origins if getattr(read, each) != getattr(default, each)} == {name}
    assert read.origins[name] == ("file", f"{file}: {OPTIONS[name].key}")
    assert given.origins[name] == ("flag", flag)
    assert default.origins[name] == ("default", flag)


def test_a_flag_goes_before_the_file_and_the_file_before_the_default(file: Path) -> None:
    file.write_text(f"{HEADER}timeLimit: 7\nsettle: 1\n")
    found = options("--config", str(file), "--settle", "2")
    assert (found.time_limit, found.settle, found.gang_grace) == (7, 2, 30)
    assert [found.origins[name].source for name in ("time_limit", "settle", "gang_grace")] == [
        "file",
        "flag",
        "default",
    ]


def test_a_flag_that_says_the_default_goes_before_the_file(file: Path) -> None:
    file.write_text(f"{HEADER}settle: 1\n")
    assert options("--config", str(file), "--settle", "5").settle == 5


def test_json_is_read_and_null_is_left_out(file: Path) -> None:
    file.write_text(json.dumps({"apiVersion": "placer.dev/v1alpha1", "kind": "Configuration", "seed": 3, "save": None}))
    found = options("--config", str(file))
    assert (found.seed, found.save, found.origins["save"].source) == (3, None, "default")


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("", ["found [], expected one mapping"]),
        ("- 1\n", ["found [1], expected one mapping"]),
        (f"{HEADER}---\n{HEADER}", ["expected one mapping of keys to values"]),
        ("a: [\n", ["line 2, column 1"]),
        ("{}", ["apiVersion: found nothing, expected placer.dev/v1alpha1", "kind: found nothing"]),
        ("apiVersion: v1\nkind: ConfigMap\n", ['apiVersion: found "v1", expected', 'kind: found "ConfigMap"']),
        (f"{HEADER}timelimit: 3\n", ["timelimit: found a key that there is not", "found like it: timeLimit"]),
        (f"{HEADER}zzz: 3\n", ["zzz: found a key that there is not, expected one that is a flag of `placer run`"]),
        (f"{HEADER}timeLimit: soon\n", ['timeLimit: found "soon", expected a number']),
        (f"{HEADER}workers: 2.5\n", ["workers: found 2.5, expected a whole number"]),
        (f"{HEADER}strict: 'yes'\n", ['strict: found "yes", expected true or false']),
        (f"{HEADER}bindWorkers: 0\n", ["bindWorkers: found 0, expected a whole number, 1 to 256"]),
        (f"{HEADER}settle: 601\n", ["settle: found 601, expected a number, 0 to 600"]),
        (f"{HEADER}every: 61m\n", ['every: found "61m", expected a duration of 1s to 1h, such as 30s or 1m30s']),
        (f"{HEADER}every: 10 s\n", ['every: found "10 s", expected a duration']),
        (f"{HEADER}every: 10\n", ["every: found 10, expected a duration"]),
        (
            f"{HEADER}metricsBindAddress: '8080'\n",
            ['metricsBindAddress: found "8080", expected an address and a port, such as :8080'],
        ),
        (f"{HEADER}saveKeep: 0\n", ["saveKeep: found 0, expected a whole number, at least 1"]),
        (f"{HEADER}method: best\n", ['found "best", expected one of auto, greedy, exact, decomposed, milp']),
        (f"{HEADER}maxBindings: 0\n", ["maxBindings: found 0, expected a whole number, at least 1"]),
        (f"{HEADER}namespaces: ml\n", ['namespaces: found "ml", expected a list of texts']),
        (f"{HEADER}namespaces: [ml, 7]\n", ["namespaces[1]: found 7, expected a list of texts"]),
        (f"{HEADER}namespaces: []\n", ["namespaces: found [], expected a list of texts"]),
        (f"{HEADER}halfBoundPatience: -1\n", ["halfBoundPatience: found -1, expected a number, at least 0"]),
    ],
)
def test_what_is_wrong_is_told_with_file_key_found_and_expected(text: str, faults: list[str], file: Path) -> None:
    file.write_text(text)
    found, told = read_configuration(str(file))
    assert found == {}
    assert len(told) == (1 if "found like it" in str(faults) else len(faults))
    assert all(each.startswith(f"{file}: ") for each in told)
    assert all(each in "\n".join(told) for each in faults)


@pytest.mark.parametrize("command", ["run", "check", "config"])
def test_limits_that_cannot_be_are_told_all_at_once_before_anything_is_asked(
    command: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(f"{HEADER}timeLimit: -5\nworkers: -3\n")
    assert main([command, "--config", str(file), "--seed", "-9999999999999"]) == 2
    told = capsys.readouterr().err
    assert "timeLimit: found -5.0, expected seconds, at least 0" in told
    assert "workers: found -3, expected at least 1" in told
    assert "--seed: found -9999999999999, expected 0 to 2147483647" in told


def test_a_file_that_is_not_there_is_told(file: Path) -> None:
    assert read_configuration(str(file)) == (
        {},
        [f"{file}: found no such file, expected a file that can be read"],
    )


@pytest.mark.parametrize("command", ["run", "check", "config"])
def test_everything_that_is_wrong_is_told_at_once(command: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(f"{HEADER}settle: -1\nzzz: 1\n")
    assert main([command, "--config", str(file), "--gang-grace", "-1", "--kubeconfig", "/nowhere"]) == 2
    told = capsys.readouterr().err
    assert f"{file}: settle: found -1" in told
    assert f"{file}: zzz: found a key that there is not" in told
    assert "--gang-grace: found -1.0" in told


def test_what_only_makes_no_sense_together_is_told_by_where_it_is_from(file: Path) -> None:
    file.write_text(
        f"{HEADER}saveKeep: 2\nschedulerName: '*'\nleaderElectResourceName: A_B\n"
        "namespaces: [A_B]\nnodeSelector: 'a b'\n"
    )
    with pytest.raises(UsageError) as error:
        pass_options(options("--config", str(file)))
    for key in ("saveKeep", "schedulerName", "leaderElectResourceName", "namespaces", "nodeSelector"):
        assert f"{file}: {key}: found" in str(error.value)


# ----------------------------------------------------------------------------------------------------------- config


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict[str, Any]]:
    assert main(["config", "--json", *words]) == 0
    found: dict[str, dict[str, Any]] = json.loads(capsys.readouterr().out)
    return {key: value for key, value in found.items() if key not in ("apiVersion", "kind")}


def test_config_prints_every_value_and_where_it_is_from(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(f"{HEADER}timeLimit: 7\nhalfBoundPatience: inf\n")
    monkeypatch.setenv("KUBECONFIG", "/etc/kubeconfig")
    monkeypatch.setattr("placer.passes.cluster.reading.client.own_namespace", lambda: "batch")
    told = printed(capsys, "--config", str(file), "--seed", "4")
    assert set(told) == {OPTIONS[name].key for name in VALUES}
    assert told["timeLimit"] == {"value": 7.0, "source": "file", "name": f"{file}: timeLimit"}
    assert told["halfBoundPatience"]["value"] == "inf"
    assert told["seed"] == {"value": 4, "source": "flag", "name": "--seed"}
    assert told["kubeconfig"] == {"value": "/etc/kubeconfig", "source": "environment", "name": "KUBECONFIG"}
    namespace = {"value": "batch", "source": "environment", "name": "the pod's namespace"}
    assert told["leaderElectResourceNamespace"] == namespace
    assert told["settle"] == {"value": 5.0, "source": "default", "name": "--settle"}
    assert told["workers"]["value"] >= 1


def test_what_config_prints_is_a_configuration(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its values, written into a file, hold as before."""
    before = printed(capsys, "--half-bound-patience=inf", "--seed=7", "--dry-run")
    values = {key: each["value"] for key, each in before.items()}
    file.write_text(json.dumps({"apiVersion": "placer.dev/v1alpha1", "kind": "Configuration", **values}))
    after = printed(capsys, "--config", str(file))
    assert {key: each["value"] for key, each in after.items()} == values


def test_config_prints_a_table_for_people(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(f"{HEADER}noEvents: true\n")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(file.parent)
    assert main(["config", "--config", file.name]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["noEvents", "true", "file", "placer.yaml:", "noEvents"] in lines
    assert ["dryRun", "-", "default"] in lines
    assert len(lines) == len(VALUES) + 1


def test_seconds_in_a_file_may_be_durations(file: Path) -> None:
    file.write_text(f"{HEADER}timeLimit: 10s\nsettle: 500ms\nhalfBoundPatience: 10m\ncoolDown: 7\n")
    found, told = read_configuration(str(file))
    assert told == []
    assert found == {"time_limit": 10, "settle": 0.5, "half_bound_patience": 600, "cool_down": 7}
