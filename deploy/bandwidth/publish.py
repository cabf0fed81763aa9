"""Publishes the link speed of the node that it runs on as the resource ``network.aware.com/bandwidth``, in bit/s.

The link is that of the default route, unless one is named. It is written into ``status.capacity``; the kubelet takes it
over into ``status.allocatable``, and pods request it as they request cpu. A kubelet that begins anew sets it to zero,
so it is written again and again. It runs alone, with nothing but the standard library, in the network of its node.
"""

from __future__ import annotations

import argparse
import json
import os
import ssl
import sys
import time
import urllib.request
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote

__all__ = ["RESOURCE", "LinkUnknown", "bandwidth", "main_interface", "publish"]

RESOURCE = "network.aware.com/bandwidth"
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
#: Seconds until an API server that gives no answer is asked anew, at the next time.
TIMEOUT = 20.0
#: Of a route in ``/proc/net/route``: it is up.
_UP = 1


class LinkUnknown(Exception):
    """Which link is the main one, or how fast it is, nothing says; the message names the file."""


def main_interface(proc: Path) -> str:
    """The interface of the default route with the lowest metric, of IPv4 or else of IPv6.

    Raises
    ------
    LinkUnknown
        There is none.
    """
    found = []
    for line in _lines(proc / "net" / "route")[1:]:
        interface, destination, _gateway, flags, _references, _uses, metric, mask, *_ = line.split()
        if destination == mask == "00000000" and int(flags, 16) & _UP:
            found.append((0, int(metric), interface))
    for line in _lines(proc / "net" / "ipv6_route"):
        destination, length, *_, metric, _references, _uses, flags, interface = line.split()
        if not int(destination, 16) and not int(length, 16) and int(flags, 16) & _UP and interface != "lo":
            found.append((1, int(metric, 16), interface))
    if not found:
        raise LinkUnknown(f"{proc}/net/route and ipv6_route: found no default route, expected one (or --interface)")
    return min(found)[2]


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="ascii").splitlines() if path.exists() else []


def bandwidth(sys_: Path, interface: str) -> int:
    """What a link can carry, in bit/s.

    Raises
    ------
    LinkUnknown
        The link is not there or down, or is one that has no speed, as those of many virtual machines.
    """
    path = sys_ / "class" / "net" / interface / "speed"
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise LinkUnknown(f"{path}: cannot be read: {error.strerror}; expected Mbit/s (or --mbit)") from error
    if not text.isdecimal() or int(text) == 0:
        raise LinkUnknown(f"{path}: found {text or 'nothing'}, expected Mbit/s, more than 0 (or --mbit)")
    return int(text) * 1_000_000


def publish(url: str, node: str, bits: int, account: Path = ACCOUNT) -> None:
    """Write it into the status of a node, as the service account of which a folder has token and certificate.

    Raises
    ------
    OSError
        The server does not answer, or refuses; ``HTTPError`` is one.
    """
    body = json.dumps({"status": {"capacity": {RESOURCE: str(bits)}}}).encode()
    asked = urllib.request.Request(f"{url}/api/v1/nodes/{quote(node)}/status", body, method="PATCH")
    asked.add_header("Authorization", f"Bearer {(account / 'token').read_text(encoding='ascii').strip()}")
    asked.add_header("Content-Type", "application/merge-patch+json")
    asked.add_header("User-Agent", "placer-bandwidth")
    trusted = ssl.create_default_context(cafile=str(account / "ca.crt"))
    with urllib.request.urlopen(asked, timeout=TIMEOUT, context=trusted) as answer:
        answer.read()


def main() -> None:
    """Publish again and again; what goes wrong is told, and tried anew the next time."""
    parser = argparse.ArgumentParser(description="publish the link speed of this node as an extended resource")
    parser.add_argument("--node", required=True, help="name of the node")
    parser.add_argument("--interface", help="default: that of the default route")
    parser.add_argument("--mbit", type=int, help="what to publish where the link has no speed")
    parser.add_argument("--every", type=float, default=300.0, help="seconds between two writes")
    options = parser.parse_args()
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    url = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    while True:
        try:
            interface = options.interface or main_interface(Path("/proc"))
            bits = options.mbit * 1_000_000 if options.mbit else bandwidth(Path("/sys"), interface)
            publish(url, options.node, bits)
            print(f"Node {options.node}: {RESOURCE} {bits} ({interface})", flush=True)
        except HTTPError as error:
            said = error.read().decode(errors="replace")
            print(f"Node {options.node}: {error.code}: {said}", file=sys.stderr, flush=True)
        except (LinkUnknown, OSError) as error:
            print(f"Node {options.node}: {error}", file=sys.stderr, flush=True)
        time.sleep(options.every)


if __name__ == "__main__":
    main()
