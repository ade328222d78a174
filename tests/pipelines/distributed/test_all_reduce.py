import socket
import threading

import numpy as np
import pytest

from podferry.pipelines.distributed import all_reduce
from podferry.pipelines.distributed.all_reduce import Group, join


@pytest.fixture
def port(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    for name, value in (("RANK", "0"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", str(port))):
        monkeypatch.setenv(name, value)
    return port


@pytest.mark.timeout(20)
def test_a_worker_that_never_comes_ends_the_wait(port, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(all_reduce, "CONNECT_SECONDS", 0.05)
    with pytest.raises(TimeoutError, match="0 of 1 other workers joined"):
        join()


def test_the_mean_over_three_workers(port, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "3")
    means = {}

    def work(rank):
        group = Group(rank, 3, (all_reduce._connect(("127.0.0.1", port)),))
        means[rank] = group.average([np.full((2, 2), rank, np.float32), np.zeros(1, np.float32)])

    threads = [threading.Thread(target=work, args=(rank,)) for rank in (1, 2)]
    for thread in threads:
        thread.start()
    means[0] = join().average([np.zeros((2, 2), np.float32), np.full(1, 3, np.float32)])
    for thread in threads:
        thread.join()
    assert all(np.array_equal(mean[0], np.ones((2, 2))) and mean[1] == [1] for mean in means.values())
