"""Connections to one SFTP server: opened when needed, shared by operations, replaced when lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

import asyncssh

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import Uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.sftp.channel import SftpChannel
from podferry.storage.sftp.client import SftpClient
from podferry.storage.sftp.errors import host_key_error, login_error, private_key_error
from podferry.storage.sftp.login import Login, login_for
from podferry.storage.timeouts_and_limits import KIB, MIB, Limits

MAX_CONNECTIONS = 4
"""Of a store. OpenSSH refuses some logins when ten are under way at once (MaxStartups 10:30:100)."""
GROW_SECONDS = 0.5
"""How long all connections must be busy until another one is opened: a login takes 0.1 s of two cores."""
USERS_PER_CONNECTION = 32
"""Operations at a time on one connection: each may hold a file open at the server."""
WINDOW_BYTES = 8 * MIB
"""What a server may send ahead: 80 MB/s over 100 ms to and fro, for each connection."""
PACKET_BYTES = 128 * KIB
"""Largest packet that a server may send: OpenSSH's own client takes 32 KiB, which costs more per byte."""
CIPHERS = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"
"""Preferred: processors have instructions for them; measured, they take half of the time of ChaCha20."""


class Connection:
    """An SSH connection with one channel."""

    def __init__(self, ssh: asyncssh.SSHClientConnection, client: SftpClient) -> None:
        self.ssh, self.client = ssh, client

    async def close(self) -> None:
        """Close it; errors are of no interest any more."""
        self.client.abort(ConnectionAbortedError("the store is closed"))
        self.ssh.abort()
        with suppress(Exception):
            await self.ssh.wait_closed()


class HostKeyCheck(asyncssh.SSHClient):
    """Remembers a host key that is not known."""

    def __init__(self) -> None:
        self.presented = ""

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """See `SSHClient`: called for a key that is not known."""
        self.presented = f"{key.get_algorithm()} {key.get_fingerprint()}"
        return False


class Connections:
    """The connections of one store; all calls are for one event loop.

    Attributes:
        answered: Whether the server has let this client in before.
        rejected: Extensions that it announces and does not support, with its responses.
    """

    def __init__(
        self, uri: Uri, variables: Callable[[], Mapping[str, str]], location: StoreLocation, limits: Limits
    ) -> None:
        """Prepare connections; `variables` reads the credentials before each login, for they may change."""
        self._uri, self._variables, self._location, self._limits = uri, variables, location, limits
        self._open: list[Connection] = []
        self._opening: asyncio.Task[Connection] | None = None
        self._free = asyncio.Semaphore(MAX_CONNECTIONS * USERS_PER_CONNECTION)
        self._busy_since: float | None = None
        self.answered = False
        self.rejected: dict[str, str] = {}

    @asynccontextmanager
    async def client(self) -> AsyncIterator[SftpClient]:
        """The least used connection, for one operation.

        Raises:
            FerryError: The server does not let this client in.
            OSError, asyncssh.Error: There is no connection.
        """
        async with self._free:
            client = await self._least_used()
            client.users += 1
            try:
                yield client
            finally:
                client.users -= 1

    async def close(self) -> None:
        """Close all connections."""
        if self._opening is not None:
            self._opening.cancel()
            with suppress(Exception, asyncio.CancelledError):
                await self._opening
        found, self._open = self._open, []
        await asyncio.gather(*(connection.close() for connection in found))

    async def _least_used(self) -> SftpClient:
        lost = [connection for connection in self._open if connection.client.failure is not None]
        for connection in lost:
            self._open.remove(connection)
            await connection.close()
        if not self._open:
            await self._opened()
        self._grow_if_busy()
        return min((connection.client for connection in self._open), key=lambda client: client.users)

    def _grow_if_busy(self) -> None:
        """Open another connection in the background if all have been busy for some time."""
        now = asyncio.get_running_loop().time()
        if len(self._open) == MAX_CONNECTIONS or any(not each.client.users for each in self._open):
            self._busy_since = None
        elif self._busy_since is None:
            self._busy_since = now
        elif now - self._busy_since >= GROW_SECONDS and self._opening is None:
            self._busy_since = None
            self._start_opening().add_done_callback(_ignore)

    async def _opened(self) -> None:
        """Wait until there is a connection; all that wait share one attempt."""
        await asyncio.shield(self._opening or self._start_opening())

    def _start_opening(self) -> asyncio.Task[Connection]:
        async def opened() -> Connection:
            try:
                connection = await self._connect()
            finally:
                self._opening = None
            self._open.append(connection)
            self.answered = True
            return connection

        self._opening = asyncio.ensure_future(opened())
        return self._opening

    async def _connect(self) -> Connection:
        login = await asyncio.to_thread(lambda: login_for(self._uri, self._variables()))
        keys = await asyncio.to_thread(_parsed_keys, login)
        check, location = HostKeyCheck(), self._location
        seconds = self._limits.connect_seconds
        try:
            async with asyncio.timeout(seconds + self._limits.stall_seconds):
                ssh = await _ssh(login, keys, check, seconds)
                try:
                    return Connection(ssh, await _sftp(ssh, self._limits, self.rejected))
                except BaseException:
                    ssh.abort()
                    raise
        except asyncssh.HostKeyNotVerifiable as error:
            known = login.known_hosts is not None and _is_known(login)
            presented = check.presented or "a revoked key"
            raise host_key_error(presented, known, location, self.answered) from error
        except (asyncssh.Error, OSError) as error:
            found = None if self.answered else login_error(error, login, location)
            if found is not None:
                raise found from error
            raise


def _ignore(task: asyncio.Task[Connection]) -> None:
    """A further connection is optional: who waited for it gets the error."""
    if not task.cancelled():
        task.exception()


def _parsed_keys(login: Login) -> list[asyncssh.SSHKey]:
    try:
        return [asyncssh.import_private_key(key, login.passphrase or None) for key in login.private_keys]
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, ValueError) as error:
        raise private_key_error(error) from None


def _known_hosts(login: Login) -> asyncssh.SSHKnownHosts | None:
    if login.known_hosts is None:
        return None
    try:
        return asyncssh.import_known_hosts(login.known_hosts)
    except ValueError as error:
        remedy = "Store the lines that `ssh-keyscan` prints"
        raise InvalidSpec.of("SFTP_KNOWN_HOSTS is not valid", str(error)[:200], remedy) from error


def _is_known(login: Login) -> bool:
    known = _known_hosts(login)
    return known is not None and any(known.match(login.host, "", login.port))


async def _ssh(
    login: Login, keys: list[asyncssh.SSHKey], check: HostKeyCheck, seconds: float
) -> asyncssh.SSHClientConnection:
    """Log in, with nothing but what `login` has."""
    return await asyncssh.connect(
        login.host,
        login.port,
        username=login.user,
        password=login.password or None,
        client_keys=keys or None,
        known_hosts=_known_hosts(login),
        client_factory=lambda: check,
        connect_timeout=seconds,
        config=None,
        agent_path=None,
        gss_auth=False,
        gss_kex=False,
        host_based_auth=False,
        compression_algs=["none"],
        encryption_algs=CIPHERS,
    )


async def _sftp(ssh: asyncssh.SSHClientConnection, limits: Limits, rejected: dict[str, str]) -> SftpClient:
    channel = SftpChannel(limits.stall_seconds)
    await ssh.create_session(
        lambda: channel, subsystem="sftp", encoding=None, window=WINDOW_BYTES, max_pktsize=PACKET_BYTES
    )
    client = SftpClient(channel, rejected)
    await client.start()
    return client
