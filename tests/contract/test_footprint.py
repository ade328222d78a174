from podferry.contract.footprint import Footprint


def test_the_limit_has_room_for_what_is_usual() -> None:
    agent = Footprint()
    assert agent.typical < agent.resident
