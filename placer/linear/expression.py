"""A linear expression with integer coefficients over variables of any kind."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

__all__ = ["LinearExpression"]

V = TypeVar("V", bound=Hashable)

#: What a variable may be worth: integers, or the fractions of a relaxation.
Number = TypeVar("Number", int, float)


@dataclass
class LinearExpression(Generic[V]):
    """A sum of terms, coefficient times variable, and a constant; it can still grow.

    Terms stand as they came, a variable that was added twice stands twice: solvers take two lists in one call, and
    merging is left to those who need each variable once.

    Parameters
    ----------
    variables, coefficients
        The terms, side by side.
    constant
        What is added to them.

    Examples
    --------
    >>> total = LinearExpression[str]().add(2, "x", "y").add(3, "x")
    >>> total.merged()
    {'x': 5, 'y': 2}
    >>> total.at({"x": 1, "y": 10}.__getitem__)
    25
    """

    variables: list[V] = field(default_factory=list)
    coefficients: list[int] = field(default_factory=list)
    constant: int = 0

    def add(self, coefficient: int, *variables: V) -> LinearExpression[V]:
        """Add ``coefficient`` times each variable; return the expression."""
        if coefficient:
            self.variables.extend(variables)
            self.coefficients.extend([coefficient] * len(variables))
        return self

    def plus(self, factor: int, *others: LinearExpression[V]) -> LinearExpression[V]:
        """Add ``factor`` times each of the other expressions; return the expression."""
        for other in others if factor else ():
            self.constant += factor * other.constant
            self.variables.extend(other.variables)
            self.coefficients.extend(factor * coefficient for coefficient in other.coefficients)
        return self

    def merged(self) -> dict[V, int]:
        """Variable to coefficient, each variable once, in the order in which they came first; the constant apart."""
        found: dict[V, int] = {}
        for variable, coefficient in zip(self.variables, self.coefficients, strict=True):
            found[variable] = found.get(variable, 0) + coefficient
        return found

    def at(self, value_of: Callable[[V], Number]) -> Number:
        """Value of the expression, constant included, where ``value_of`` gives the values of the variables."""
        terms = zip(self.variables, self.coefficients, strict=True)
        return self.constant + sum(coefficient * value_of(variable) for variable, coefficient in terms)
