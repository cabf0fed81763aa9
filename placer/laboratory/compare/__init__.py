"""Side by side on one instance: what other schedulers would place, what the methods of placer place, what is proved.

Belongs here: one decision in a process of its own (``decide``), the measures of any placement (``metrics``, ``span``),
what becomes of each group (``fates``), the rows that a comparison is made of (``rows``, ``compare``). Does not: how a
policy or a method decides (``policies``, ``solve``), what is valid and how good it is (``verify``, ``score``), printing
(``cli``).

A comparison is of one snapshot: what each scheduler would bind now, from one queue, with nothing arriving or ending.
"""

from placer.laboratory.compare.compare import DEFAULT, NAMES, compare
from placer.laboratory.compare.fates import GroupFate, differing
from placer.laboratory.compare.metrics import Metrics, measure
from placer.laboratory.compare.rows import Row

__all__ = ["DEFAULT", "NAMES", "GroupFate", "Metrics", "Row", "compare", "differing", "measure"]
