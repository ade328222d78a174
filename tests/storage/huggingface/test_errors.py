"""The sentences of errors: what each response of the Hub leads to is in test_store.py."""

from podferry.contract.uri import Uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.huggingface.errors import no_hub


def test_another_server_is_named():
    (problem,) = no_hub(StoreLocation(Uri("hf", "org", "name"), "http://mirror"), "HTTP 302").problems
    assert "hf://org/name" in problem.what
    assert "http://mirror" in problem.measured
    assert "HF_ENDPOINT" in problem.remedy
