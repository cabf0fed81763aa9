"""Figures of many runs: read (``measured``), computed as plain numbers (``content``), drawn (``drawing``)."""
