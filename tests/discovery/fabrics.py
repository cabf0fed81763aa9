"""Fabrics as ``ibnetdiscover`` prints them, written from the manual page's description of its format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

__all__ = ["ibnetdiscover", "three_tiers"]

HEAD = """#
# Topology file: generated on Tue Mar  3 10:00:00 2026
#
# Initiated from node 0c42a10300a1b2c0 port 0c42a10300a1b2c0

"""


def ibnetdiscover(switches: Mapping[str, str], hosts: Mapping[str, str], links: Iterable[tuple[str, str]]) -> str:
    """Print a fabric.

    Parameters
    ----------
    switches, hosts
        GUID (16 hexadecimal digits) to node description, of switches and of channel adapters.
    links
        Pairs of GUIDs.
    """
    ports: dict[str, list[str]] = {guid: [] for guid in (*switches, *hosts)}
    at: list[tuple[str, int, str, int]] = []
    for one, two in links:
        at.append((one, len(ports[one]) + 1, two, len(ports[two]) + 1))
        ports[one].append(two)
        ports[two].append(one)
    lines: dict[str, list[str]] = {guid: [] for guid in ports}
    for one, port, two, other in at:
        for guid, number, peer, far in ((one, port, two, other), (two, other, one, port)):
            words = switches.get(peer) or hosts.get(peer)
            if guid in switches:
                name = f'"S-{peer}"[{far}]' if peer in switches else f'"H-{peer}"[{far}]({peer.lstrip("0")})'
                lines[guid].append(f'[{number}]\t{name} \t\t# "{words}" lid 7 4xNDR')
            else:
                lines[guid].append(
                    f'[{number}]({guid.lstrip("0")}) \t"S-{peer}"[{far}]\t\t# lid 9 lmc 0 "{words}" lid 7 4xNDR'
                )
    records = [*(_switch(guid, words, lines[guid]) for guid, words in switches.items())]
    records += [_adapter(guid, words, lines[guid]) for guid, words in hosts.items()]
    return HEAD + "\n".join(records)


def _switch(guid: str, words: str, lines: Sequence[str]) -> str:
    short = guid.lstrip("0")
    head = f"vendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x{short}\nswitchguid=0x{short}({short})\n"
    return f'{head}Switch\t65 "S-{guid}"\t\t# "{words}" enhanced port 0 lid 7 lmc 0\n' + "".join(
        f"{line}\n" for line in lines
    )


def _adapter(guid: str, words: str, lines: Sequence[str]) -> str:
    short = guid.lstrip("0")
    head = f"vendid=0x2c9\ndevid=0x1021\nsysimgguid=0x{short}\ncaguid=0x{short}\n"
    return f'{head}Ca\t1 "H-{guid}"\t\t# "{words}"\n' + "".join(f"{line}\n" for line in lines)


def three_tiers(pods: int, leaves: int, hosts: int, spines: int, cores: int, rails: int = 1) -> str:
    """Print a fabric of pods; each host has an adapter on each rail's leaf, each leaf all spines of its pod, each spine
    all cores.
    """
    switches, adapters, links = dict[str, str](), dict[str, str](), list[tuple[str, str]]()

    def guid(kind: int, *places: int) -> str:
        return f"{kind:02x}" + "".join(f"{place:04x}" for place in places).rjust(14, "0")

    core_guids = [guid(3, number) for number in range(cores)]
    switches.update({each: f"MF0;core-{number}:MQM9700/U1" for number, each in enumerate(core_guids)})
    for pod in range(pods):
        spine_guids = [guid(2, pod, number) for number in range(spines)]
        switches.update({each: f"MF0;spine-{pod}-{number}:MQM9700/U1" for number, each in enumerate(spine_guids)})
        links += [(spine, core) for spine in spine_guids for core in core_guids]
        for leaf in range(leaves):
            rail_guids = [guid(1, pod, leaf, rail) for rail in range(rails)]
            for rail, each in enumerate(rail_guids):
                switches[each] = f"MF0;leaf-{pod}-{leaf}-{rail}:MQM9700/U1"
                links += [(each, spine) for spine in spine_guids]
            for host in range(hosts):
                for rail, each in enumerate(rail_guids):
                    adapter = guid(4, pod, leaf * hosts + host, rail)
                    adapters[adapter] = f"gpu-{pod}-{leaf * hosts + host} mlx5_{rail}"
                    links.append((each, adapter))
    return ibnetdiscover(switches, adapters, links)
