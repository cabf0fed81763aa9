"""The words that people read for what Placements call by a key: values, amounts, who proved what.

JSON keeps the keys and the integers; ``models/glossary.md`` explains the words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = [
    "amount_digits",
    "and_list",
    "counted",
    "is_amount",
    "nodes_worth",
    "number_word",
    "prover_word",
    "some",
    "value_meaning",
    "value_word",
]

#: Most digits after the point of an amount: an amount is an integer number of micro-nodes.
_MOST_DIGITS = 6

_VALUES = {
    "admitted": "needs of admitted groups",
    "evicted": "evicted pods",
    "evictedUnits": "evicted units",
    "moved": "moved pods",
    "movedUnits": "moved units",
    "placed": "placed pods",
    "locality": "network distance",
    "span": "leaf switches used",
    "networkCost": "network cost",
    "packedHyperNodes": "HyperNodes newly opened",
    "packedNodes": "nodes newly opened",
}

_MEANINGS = {
    "admitted": "what the gangs that may start need at least; more is better, and it is compared before anything else "
    "of its priority",
    "placed": "how much of what waits gets a node, optional pods included; more is better",
    "evicted": "how much of what runs is evicted: the work that is lost; less is better",
    "evictedUnits": "how many gangs and single pods are evicted; less is better",
    "moved": "how much of what runs gets another node; less is better",
    "movedUnits": "how many gangs and single pods get another node; less is better",
    "locality": "how far apart the pods of gangs are: pods times the tier of the smallest domain with all of them; "
    "less is better",
    "span": "over how many leaf switches gangs are spread, added up; less is better",
    "networkCost": "what all calls between workloads cost together; less is better",
    "packedHyperNodes": "how many domains that were empty are not empty any more; less leaves more room in one piece",
    "packedNodes": "how many nodes that were empty are not empty any more; less leaves more room in one piece",
}

_AMOUNTS = frozenset({"admitted", "placed", "evicted", "moved"})

_PROVERS = {
    "volume": "total capacity",
    "counting": "counting",
    "lp": "a linear relaxation",
    "master": "the master problem",
    "splits": "the cheapest splits",
    "domains": "the least of any domain",
}


def value_word(name: str, priority: int | None = None) -> str:
    """What people call a value of the objective."""
    word = _VALUES.get(name, name)
    return word if priority is None else f"{word}, priority {priority:,}"


def value_meaning(name: str) -> str:
    """What a value of the objective measures, and which way is better; empty for one that is not known."""
    return _MEANINGS.get(name, "")


def is_amount(name: str) -> bool:
    """Whether a value is an amount of pods, in micro-nodes, and no count."""
    return name in _AMOUNTS


def prover_word(by: str) -> str:
    """Who proved a bound; a method by its name."""
    return _PROVERS.get(by, by)


def amount_digits(*amounts: int | None) -> int:
    """Digits after the point that tell different amounts (micro-nodes) apart, and any of them from 0; at least one."""
    told = {amount for amount in amounts if amount is not None} | {0}
    enough = (n for n in range(1, _MOST_DIGITS) if len({f"{each / 1e6:.{n}f}" for each in told}) == len(told))
    return next(enough, _MOST_DIGITS)


def nodes_worth(amount: int, digits: int | None = None) -> str:
    """An amount (micro-nodes) as people say it: ``12.0 nodes' worth``."""
    return f"{amount / 1e6:,.{amount_digits(amount) if digits is None else digits}f} nodes' worth"


def number_word(name: str, value: int, *beside: int | None) -> str:
    """A value as people say it, with the digits that tell it from what stands beside it."""
    return nodes_worth(value, amount_digits(value, *beside)) if is_amount(name) else f"{value:,}"


def counted(count: int, word: str) -> str:
    """``1 pod``, ``2,000 pods``."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def some(words: Sequence[str], most: int) -> list[str]:
    """The first few, and how many more there are.

    Examples
    --------
    >>> some(["a", "b", "c"], 2), some(["a"], 2)
    (['a', 'b', '1 more'], ['a'])
    """
    return [*words[:most], *([f"{len(words) - most:,} more"] if len(words) > most else [])]


def and_list(words: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    found = list(words)
    return " and ".join(part for part in (", ".join(found[:-1]), *found[-1:]) if part)
