"""Reads the policy's YAML, strictly: a key that is written twice would silently undo the first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from podferry.contract.errors import InvalidSpec
from podferry.contract.yaml_evidence import yaml_evidence


class _Loader(yaml.SafeLoader):
    """Refuses a mapping with the same key twice."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Compose it; `<<` is resolved later, whose keys others may override."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        duplicate = next(_repeated(node), None)
        if duplicate is not None:
            problem = f"the key {duplicate.value!r} is written twice"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=duplicate.start_mark)
        return node


def read_document(text: str) -> dict[Any, Any]:
    """The mapping in the text's only document; `---` at its beginning or end adds none.

    Raises:
        InvalidSpec: The text is not YAML, has not exactly one document, or this is no mapping.
    """
    try:
        documents = [one for one in yaml.load_all(text, _Loader) if one is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # PyYAML raises ValueError for a date that does not exist.
        raise InvalidSpec.of("the policy is not YAML", yaml_evidence(error), "Correct it") from error
    if not documents:
        raise InvalidSpec.of("the policy is empty", "", "Write kind: InjectionPolicy and its keys")
    if len(documents) > 1:
        what = "the policy has several documents"
        raise InvalidSpec.of(what, str(len(documents)), "Write all its keys in one, without ---")
    if not isinstance(documents[0], dict):
        remedy = "Write kind: InjectionPolicy and its keys"
        raise InvalidSpec.of("the policy is not a mapping", repr(documents[0]), remedy)
    return documents[0]


def _repeated(node: yaml.MappingNode) -> Iterator[yaml.ScalarNode]:
    """The keys that an earlier one repeats."""
    seen: set[tuple[str, str]] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            if (key.tag, key.value) in seen:
                yield key
            seen.add((key.tag, key.value))
