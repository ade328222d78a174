import importlib

import pytest

from podferry.storage.errors.exception_kinds import KIND_BY_CLASS_NAME
from podferry.storage.errors.vendor_fields import vendor_fields_of


def test_classes_are_known_by_name_without_their_package():
    for qualified, kind in KIND_BY_CLASS_NAME.items():
        module, _, name = qualified.rpartition(".")
        vendor = type(name, (Exception,), {"__module__": module})
        child = type("Child", (vendor,), {})
        assert vendor_fields_of(child("x")).kind == kind


@pytest.mark.parametrize("module", ["botocore.exceptions"])
def test_the_names_of_classes_are_those_of_the_packages(module):
    for qualified in KIND_BY_CLASS_NAME:
        if qualified.startswith(module):
            assert issubclass(
                getattr(importlib.import_module(module), qualified.rpartition(".")[2]), Exception
            )
