from podferry.sidecar.runtime.cgroups import groups_of, read_number


def test_the_innermost_group_is_first_and_those_above_follow(tmp_path):
    membership = tmp_path / "membership"
    membership.write_text("9:name=systemd:/\n5:cpu,memory:/pod1\n4:cpuset:/pod1/a\n0::/pod1/a\n")
    root = tmp_path / "cgroup"
    assert list(groups_of("cpu", root, membership)) == [
        (root / "cpu" / "pod1", False),
        (root / "cpu", False),
        (root / "pod1" / "a", True),
        (root / "pod1", True),
        (root, True),
    ]


def test_a_group_outside_of_the_container_ends_at_the_root(tmp_path):
    """cgroups(7): the path starts with `/..` if the process is not below the root of its namespace."""
    membership = tmp_path / "membership"
    membership.write_text("0::/../other/a\n")
    assert list(groups_of("cpu", tmp_path, membership))[-1] == (tmp_path, True)


def test_numbers(tmp_path):
    for text, expected in (("12\n", 12), ("max\n", None), ("-1\n", None), ("", None)):
        (tmp_path / "file").write_text(text)
        assert read_number(tmp_path / "file") == expected
    assert read_number(tmp_path / "absent") is None
