"""Figures of many runs: a performance profile, what is placed by family, time and memory by size, the gap over time.

Belongs here: runs out of lines of a sweep or rows of a comparison (``measured``), what a figure shows as plain numbers
(``content``), and the drawing of that (``drawing``, which alone needs matplotlib). Does not: tables for a terminal and
flags (``commands``).
"""
