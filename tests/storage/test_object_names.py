from podferry.storage.object_names import is_temporary, temporary_name


def test_temporary_names_are_next_to_their_target():
    assert temporary_name("a/b/c").startswith("a/b/.podferry-")
    assert is_temporary(temporary_name("a/b/c"))
    assert is_temporary(temporary_name("c"))
    assert not is_temporary("a/.podferry/commits/1.json")
