"""C4: a pod that needs what is not modelled is never bound."""

from tests.judge import broken, messages
from tests.world import World


def world() -> World:
    made = World()
    made.nodes("n1")
    gang = made.gang("train", 1)
    made.pod("a", gang)
    made.pod("b", gang, unsupported=["spec.resourceClaims: devices", "spec.volumes[0]: claim data is not bound"])
    return made


def test_kept_by_the_rest_of_its_gang() -> None:
    assert broken(world(), "a@n1") == []


def test_bound_costs_one_however_many_fields_say_so() -> None:
    assert broken(world(), "a@n1 b@n1") == [("C4", ("Pod default/b",), 1)]
    assert messages(world(), "a@n1 b@n1") == [
        "Pod default/b needs unsupported fields and is bound to Node n1: "
        "spec.resourceClaims: devices; spec.volumes[0]: claim data is not bound"
    ]


def test_one_that_runs_already_is_nobodys_fault() -> None:
    made = world()
    made.running("r", "n1", unsupported=["spec.resourceClaims: devices"])
    assert broken(made, "a@n1") == []
