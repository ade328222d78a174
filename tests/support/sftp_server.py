"""An SFTP server in a thread, from asyncssh."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import asyncssh

from tests.support.patience import PATIENCE

USER, PASSWORD = "user", "password"


class PasswordServer(asyncssh.SSHServer):
    """Lets one user in, and remembers the connections."""

    def __init__(self, connections: list[asyncssh.SSHServerConnection]) -> None:
        self._connections = connections

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connections.append(conn)

    def begin_auth(self, username: str) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        return (username, password) == (USER, PASSWORD)


class Rooted(asyncssh.SFTPServer):
    """Serves a folder; names that a test adds to `refused` may not be listed."""

    def __init__(self, chan: asyncssh.SSHServerChannel, folder: Path, refused: set[str]) -> None:
        super().__init__(chan, chroot=str(folder).encode())
        self._refused = refused

    def scandir(self, path: bytes):
        if path.decode().rpartition("/")[2] in self._refused:
            raise PermissionError(13, "Permission denied", path)
        return super().scandir(path)


async def serve(folder: Path, refused: set[str], started: asyncio.Future[int], stop: asyncio.Event) -> None:
    connections: list[asyncssh.SSHServerConnection] = []
    listening = asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        server_factory=partial(PasswordServer, connections),
        sftp_factory=partial(Rooted, folder=folder, refused=refused),
    )
    async with listening as server:
        started.set_result(server.get_port())
        await stop.wait()
    for connection in connections:
        connection.abort()
        await connection.wait_closed()
    await asyncio.sleep(0)  # a transport closes its socket one iteration later


@contextlib.contextmanager
def serving(folder: Path, refused: set[str]) -> Iterator[str]:
    """The server's address, `host:port`."""
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    started = loop.create_future()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(folder, refused, started, stop),))
    running = threading.Event()
    started.add_done_callback(lambda _: running.set())
    thread.start()
    assert running.wait(PATIENCE)
    try:
        yield f"127.0.0.1:{started.result()}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE)
        loop.close()
