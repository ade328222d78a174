"""What a dataset is: a URI, a path, or a name that the policy declares."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from podferry.contract.corrected_uri import corrected_uri
from podferry.contract.dataset_reference import Reference, parse_reference
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.suggest import did_you_mean

Declared = Mapping[str, str | Problem]
"""References by name; instead of one, why the name cannot be used: then only who uses it is refused."""
NONE_DECLARED: Declared = MappingProxyType({})


def resolve_dataset(text: str, declared: Declared = NONE_DECLARED) -> Reference:
    """The reference for a URI, an absolute path, or the name of a declared dataset.

    Raises:
        InvalidSpec: It is none of these, and the problem lists the declared names; or the name has one.
    """
    if "://" in text or text.startswith("/") or corrected_uri(text):
        return parse_reference(text)
    if text in declared:
        return _declared_reference(text, declared[text])
    what = "neither a URI nor a declared dataset"
    if "/" in text:
        relative = text.startswith((".", "~"))
        remedy = "Write a URI, or an absolute path" if relative else f"Did you mean s3://{text}?"
        raise InvalidSpec.of(what, repr(text), remedy)
    if not declared:
        remedy = "Write a URI such as s3://datasets/digits: the policy declares no datasets"
        raise InvalidSpec.of(what, repr(text), remedy)
    names, guess = f"Declared: {', '.join(sorted(declared))}", did_you_mean(text, declared)
    raise InvalidSpec.of(what, repr(text), f"{guess} {names}" if guess else names)


def _declared_reference(name: str, text: str | Problem) -> Reference:
    if isinstance(text, Problem):
        raise InvalidSpec(text)
    try:
        return parse_reference(text)
    except InvalidSpec as error:
        what = f"the policy's dataset {name!r} is not a valid reference"
        named = (Problem(f"{what}: {one.what}", one.measured, one.remedy) for one in error.problems)
        raise InvalidSpec(*named) from error
