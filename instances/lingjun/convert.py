"""Turn the host table of Alibaba's Lingjun data set 2023 into an instance: the real fabric, and a queue that is known
to fit.

The table names for each host its core (DSW), aggregation (PSW) and top-of-rack switch (ASW). Names of ASW repeat
between PSW, so a rack is the pair. Racks become HyperNodes of tier 1, aggregation groups tier 2, the core tier 3;
hosts become nodes of 8 GPUs, named by the first twelve digits of their hashed address. The data set has no queue: one
is planted with ``placer generate``'s own means, so that all of it fits on the share of the hosts that ``--load``
says.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from dataclasses import dataclass
from pathlib import Path

from placer.kube.manifests import dump
from placer.lab.generate import bindings
from placer.lab.generate.carving import Fabric
from placer.lab.generate.clos_fabric import Cluster, PlantedOptions, plant

HERE = Path(__file__).parent
TABLE = HERE / "lingjun2023_topo.csv.gz"
#: Digits of a hashed address that name a node; a label value has room for 63 characters, the hash has 64.
DIGITS = 12


@dataclass(frozen=True, order=True)
class Host:
    """A row of the table."""

    dsw: str
    psw: str
    asw: str
    ip: str

    @property
    def domains(self) -> tuple[str, str, str]:
        """Names of its HyperNodes, lowest tier first."""
        return (f"{self.psw}-{self.asw}".lower(), self.psw.lower(), self.dsw.lower())


def read_hosts(table: Path) -> list[Host]:
    """Read the table, packed or not.

    Returns
    -------
    list of Host
        Sorted by switch, so that every domain is a range.

    Raises
    ------
    SystemExit
        The table has other columns, names one host twice, or puts a rack or group under two cores.
    """
    opener = gzip.open if table.suffix == ".gz" else open
    with opener(table, "rt", encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        if rows.fieldnames != ["ip", "DSW", "PSW", "ASW"]:
            raise SystemExit(f"{table}: found columns {rows.fieldnames}, expected ip, DSW, PSW, ASW")
        hosts = sorted(Host(row["DSW"], row["PSW"], row["ASW"], row["ip"]) for row in rows)
    if len({host.ip[:DIGITS] for host in hosts}) < len(hosts):
        raise SystemExit(f"{table}: found a host twice, expected each once")
    if len({host.dsw for host in hosts}) != 1 or len({(h.psw, h.dsw) for h in hosts}) != len({h.psw for h in hosts}):
        raise SystemExit(f"{table}: found several cores, expected one above all")
    return hosts


def cluster_of(hosts: list[Host]) -> Cluster:
    """Make the tree of the hosts."""
    starts: list[list[int]] = [[], [], []]
    names: list[list[str]] = [[], [], []]
    for number, host in enumerate(hosts):
        for tier, name in enumerate(host.domains):
            if not names[tier] or names[tier][-1] != name:
                starts[tier].append(number)
                names[tier].append(name)
    fabric = Fabric(tuple(map(tuple, starts)), (0,) * len(hosts))
    return Cluster(fabric, tuple(f"host-{host.ip[:DIGITS]}" for host in hosts), tuple(map(tuple, names)))


def main() -> None:
    """Write the instance, and beside it the planted placement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "table", nargs="?", type=Path, default=TABLE, help="the CSV, packed or not (default: beside this)"
    )
    parser.add_argument("-o", dest="output", type=Path, default=HERE / "lingjun.json.gz", help="a .json.gz file")
    parser.add_argument(
        "--load", type=float, default=0.95, help="share of the hosts that the queue fills (default 0.95)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the queue (default 1)")
    arguments = parser.parse_args()
    cluster = cluster_of(read_hosts(arguments.table))
    mix = PlantedOptions(
        seed=arguments.seed,
        nodes=cluster.fabric.nodes,
        fill=arguments.load,
        pod_sizes=(4, 8),
        subgroups=0.4,
        subgroup_sizes=(2, 3, 4, 6, 8),
        soft=0.2,
        priorities=3,
    )
    made = plant(cluster, mix)
    dump(made.documents, arguments.output)
    dump(bindings(made), arguments.output.with_name(arguments.output.name.replace(".json", ".planted.json")))
    print(", ".join(f"{name} {number:,}" for name, number in made.summary.items()))


if __name__ == "__main__":
    main()
