from podferry.contract.schemes import STORE_SCHEMES
from podferry.storage.engines import BUILT_IN


def test_the_schemes_of_our_engines() -> None:
    named = {name for engine in BUILT_IN for name in engine.scheme_names}
    assert set(STORE_SCHEMES) == named - {"file", "memory"}
    assert len(set(STORE_SCHEMES)) == len(STORE_SCHEMES)
