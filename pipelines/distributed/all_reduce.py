"""Averages gradients over workers: every worker sends its own to rank 0, which returns the mean.

It stands in for NCCL or Gloo, which a real training uses: two CPU workers with a small network need no more.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
PAUSE_SECONDS = 0.1
"""Between two attempts to reach rank 0, which may start later."""
CONNECT_SECONDS = 120.0
"""How long rank 0 waits for each other worker, and they for rank 0."""
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Group:
    """The workers as this one sees them.

    Attributes:
        rank: This worker's number, from 0.
        world: Number of workers.
        peers: Connections: of rank 0 to all others, in the order in which they joined; of the others to
            rank 0.
    """

    rank: int
    world: int
    peers: tuple[Connection, ...]

    def average(self, arrays: Sequence[Array]) -> list[Array]:
        """The mean over all workers of each array; all workers must call this equally often."""
        flat = np.concatenate([array.ravel() for array in arrays])
        if self.rank == 0:
            for peer in self.peers:
                flat = flat + np.frombuffer(peer.recv_bytes(), np.float32)
            flat /= np.float32(self.world)
            for peer in self.peers:
                peer.send_bytes(flat.tobytes())
        else:
            self.peers[0].send_bytes(flat.tobytes())
            flat = np.frombuffer(self.peers[0].recv_bytes(), np.float32)
        ends = np.cumsum([array.size for array in arrays])[:-1]
        return [part.reshape(array.shape) for part, array in zip(np.split(flat, ends), arrays, strict=True)]


def join() -> Group:
    """Join the other workers, by the variables that torchrun sets, or Kubeflow's Trainer for torchrun.

    Raises:
        KeyError: A variable is missing.
        OSError: Rank 0 cannot be reached, or does not hear from all others in time.
    """
    rank, world = int(_variable("RANK", "PET_NODE_RANK")), int(_variable("WORLD_SIZE", "PET_NNODES"))
    address = (_variable("MASTER_ADDR", "PET_MASTER_ADDR"), int(_variable("MASTER_PORT", "PET_MASTER_PORT")))
    if rank:
        return Group(rank, world, (_connect(address),))
    return Group(rank, world, tuple(_accept(address, world - 1)))


def _accept(address: tuple[str, int], count: int) -> list[Connection]:
    """Wait for the other workers; on one machine nobody else can connect."""
    peers: list[Connection] = []
    host = LOOPBACK if address[0] == LOOPBACK else ""
    with socket.create_server((host, address[1]), backlog=count + 1) as server:
        server.settimeout(CONNECT_SECONDS)
        while len(peers) < count:
            try:
                accepted, _ = server.accept()
            except TimeoutError as error:
                raise TimeoutError(f"{len(peers)} of {count} other workers joined") from error
            peers.append(Connection(accepted.detach()))
    return peers


def _variable(name: str, of_trainer: str) -> str:
    return os.environ.get(name) or os.environ[of_trainer]


def _connect(address: tuple[str, int]) -> Connection:
    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            return Client(address)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE_SECONDS)
