"""Requests that change nothing in a cluster, and the objects made of their answers."""
