"""NUMA zones in the methods (C10): moves that only zones need; ``models/numa.md`` explains them."""
