"""What a failing test prints makes the same instance again."""

from fractions import Fraction

import pytest

from placer import problem as room
from placer.base.quantity import Resources
from placer.problem.instance import NO_TIER
from tests.tiny import Tiny, tiny, tiny_network
from tests.written import written


@pytest.mark.parametrize(
    "made", [make(seed) for make in (tiny, tiny_network) for seed in range(30)], ids=lambda made: str(made.seed)
)
def test_an_instance_written_down_is_itself_again(made: Tiny) -> None:
    original = made.instance
    names = {name: getattr(room, name) for name in room.__all__}
    scope = {**names, "Resources": Resources, "Fraction": Fraction, "NO_TIER": NO_TIER}
    exec(written(original), scope)
    assert scope["instance"] == original
