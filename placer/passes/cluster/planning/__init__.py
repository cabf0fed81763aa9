"""Bindings and the conditions under which they may be made, from objects and events alone, without a request."""
