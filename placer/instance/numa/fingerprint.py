"""The fingerprint of a set of pods that exporters put on a NodeResourceTopology.

It is a hash over the pods' hashes, sorted; the hash of a pod is that of its name, seeded with that of its namespace.
So it tells whether a given set is the one that was counted, and nothing about any other set.

Source: k8stopologyawareschedwg/podfingerprint, version v001; XXH64 as in the specification of xxHash.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["PREFIX", "pod_hash", "sign", "xxh64"]

#: What every fingerprint of the version that is read here starts with.
PREFIX = "pfp0v001"

_ALL = (1 << 64) - 1
_PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def pod_hash(namespace: str, name: str) -> int:
    """Hash one pod, 64 bits."""
    return xxh64(name.encode(), xxh64(namespace.encode()))


def sign(pods: Iterable[int]) -> str:
    """Make the fingerprint of a set of pods from their hashes.

    Examples
    --------
    >>> sign(pod_hash("production", name) for name in ("jaeger-dpgjk", "nginx-rt684", "envoy-g9m22"))
    'pfp0v001607b76a0e9d3aeb4'
    """
    return f"{PREFIX}{xxh64(b''.join(each.to_bytes(8, 'little') for each in sorted(pods))):016x}"


def xxh64(text: bytes, seed: int = 0) -> int:
    """Hash some bytes with XXH64.

    Examples
    --------
    >>> f"{xxh64(b''):x} {xxh64(b'abc'):x}"
    'ef46db3751d8e999 44bc2cf5ad770999'
    """
    first, second, third, fourth, fifth = _PRIMES
    at = 0
    if len(text) >= 32:
        lanes = [seed + first + second, seed + second, seed, seed - first]
        while at + 32 <= len(text):
            lanes = [_round(lane, _word(text, at + 8 * index, 8)) for index, lane in enumerate(lanes)]
            at += 32
        total = sum(_rotated(lane & _ALL, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            total = ((total ^ _round(0, lane)) * first + fourth) & _ALL
    else:
        total = seed + fifth
    total = (total + len(text)) & _ALL
    while at + 8 <= len(text):
        total = (_rotated(total ^ _round(0, _word(text, at, 8)), 27) * first + fourth) & _ALL
        at += 8
    if at + 4 <= len(text):
        total = (_rotated(total ^ (_word(text, at, 4) * first & _ALL), 23) * second + third) & _ALL
        at += 4
    for byte in text[at:]:
        total = _rotated(total ^ (byte * fifth & _ALL), 11) * first & _ALL
    total = (total ^ total >> 33) * second & _ALL
    total = (total ^ total >> 29) * third & _ALL
    return total ^ total >> 32


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _PRIMES[1]) & _ALL, 31) * _PRIMES[0] & _ALL


def _word(text: bytes, at: int, size: int) -> int:
    return int.from_bytes(text[at : at + size], "little")


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _ALL
