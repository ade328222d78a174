from podferry.storage.object_names import child_names, is_temporary, temporary_name


def test_temporary_names_are_next_to_their_target():
    assert temporary_name("a/b/c").startswith("a/b/.podferry-")
    assert is_temporary(temporary_name("a/b/c"))
    assert is_temporary(temporary_name("c"))
    assert not is_temporary("a/.podferry/commits/1.json")


def test_children_are_sorted_and_directories_end_with_a_slash():
    assert child_names(["d/b", "d/c"], ["a", "b"]) == ["a/", "b", "b/", "c"]
