import msgspec

from podferry.sidecar.launch.mount_view import MountView, view_of


def test_the_view_stays_when_directories_are_removed(tmp_path):
    (tmp_path / "c" / "d").mkdir(parents=True)
    view = view_of([str(tmp_path / "c" / "d")])
    assert view.is_present()
    (tmp_path / "c" / "d").rmdir()
    (tmp_path / "c").rmdir()
    assert view.is_present()


def test_another_volume_or_container_is_another_view(tmp_path):
    view = view_of([str(tmp_path)])
    assert not msgspec.structs.replace(view, namespace="boot mnt:[1]").is_present()
    assert not msgspec.structs.replace(view, devices={str(tmp_path): -1}).is_present()
    assert not MountView().is_present()
