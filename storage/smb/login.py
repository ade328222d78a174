"""Opens a connection: negotiates, logs in, and connects to a share."""

from __future__ import annotations

import asyncio
import os

import msgspec

from podferry.storage.smb.authentication import Authentication
from podferry.storage.smb.connection import Connection
from podferry.storage.smb.messages import Request, Response
from podferry.storage.smb.negotiation import (
    ENCRYPTS_SESSION,
    IS_ANONYMOUS,
    IS_GUEST,
    LARGE_MTU,
    SIGNING_ENABLED,
    SIGNING_REQUIRED,
    SMB_3_0,
    SMB_3_1_1,
    Negotiated,
    Offer,
    check_validation,
    read_negotiated,
    read_session_setup,
    read_tree,
    session_setup,
    tree_connect,
)
from podferry.storage.smb.nt_status import (
    MORE_PROCESSING_REQUIRED,
    NOT_SUPPORTED,
    SUCCESS,
    ClosedByServer,
    ConnectionLost,
    LoginRefused,
    NoFiles,
    OldServer,
    ProtocolError,
    StatusError,
    TurnedAway,
)
from podferry.storage.smb.old_server import speaks_only_smb_1
from podferry.storage.smb.options import SmbOptions
from podferry.storage.smb.signing import Cipher, Signer, derive_keys, preauth_hash
from podferry.storage.timeouts_and_limits import Limits


class Share(msgspec.Struct, frozen=True):
    """A connection to a share, and what its server can do."""

    connection: Connection
    negotiated: Negotiated


async def connect(options: SmbOptions, limits: Limits) -> Share:
    """A connection that is ready for requests to the share.

    Raises:
        StatusError: The server refuses the user or the share.
        OldServer, LoginRefused, NoFiles: See there.
        OSError, TimeoutError: It does not respond.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(limits.connect_seconds):
        _, connection = await loop.create_connection(
            lambda: Connection(limits.stall_seconds), options.host, options.port
        )
    try:
        async with asyncio.timeout(limits.stall_seconds):
            return await _Login(connection, options).run()
    except ProtocolError as error:
        connection.abort()
        if await speaks_only_smb_1(options.host, options.port, limits.connect_seconds):
            raise OldServer("it speaks SMB 1 alone") from error
        raise
    except BaseException:
        connection.abort()
        raise


class _Login:
    """The first messages of a connection."""

    def __init__(self, connection: Connection, options: SmbOptions) -> None:
        self._connection, self._options = connection, options
        security = SIGNING_ENABLED if options.guest else SIGNING_REQUIRED
        self._offer = Offer(os.urandom(16), security)
        self._hash = bytes(64)

    async def run(self) -> Share:
        """Negotiate, log in, connect to the share."""
        try:
            answer = await self._hashed(self._offer.request())
        except StatusError as error:
            if error.status == NOT_SUPPORTED:
                raise OldServer(f"{error}; it may speak SMB 2.0.2 or 1 alone") from error
            raise
        except ClosedByServer as error:
            raise TurnedAway(str(error)) from error
        except ConnectionLost as error:
            raise ProtocolError(f"while the dialect is negotiated: {error}") from error
        negotiated = read_negotiated(answer)
        flags = await self._log_in(negotiated)
        self._connection.large_requests = bool(negotiated.capabilities & LARGE_MTU)
        if self._connection.signer is not None and SMB_3_0 <= negotiated.dialect < SMB_3_1_1:
            check_validation(await self._answered(self._offer.validation()), negotiated)
        path = rf"\\{self._options.host}\{self._options.share}"
        response = await self._answered(tree_connect(path))
        has_files, encrypts = read_tree(response)
        if not has_files:
            raise NoFiles(path)
        self._connection.tree = int.from_bytes(response.data[36:40], "little")
        if (encrypts or self._options.encrypt) and not flags & ENCRYPTS_SESSION:
            self._encrypt(negotiated)
        self._connection.is_recorded = False
        return Share(self._connection, negotiated)

    async def _answered(self, request: Request) -> Response:
        (response,) = await self._connection.call(request)
        if response.status != SUCCESS:
            raise StatusError(response.status)
        return response

    async def _hashed(self, request: Request) -> Response:
        """Send a message that the keys depend on; its response counts unless it is the login's last one."""
        (response,) = await self._connection.call(request)
        self._hash = preauth_hash(self._hash, self._connection.last_sent)
        if response.status in {SUCCESS, MORE_PROCESSING_REQUIRED}:
            if response.status == MORE_PROCESSING_REQUIRED or not self._connection.session:
                self._hash = preauth_hash(self._hash, self._connection.last_received)
            return response
        raise StatusError(response.status)

    async def _log_in(self, negotiated: Negotiated) -> int:
        """Log in; the flags of the session."""
        login = await asyncio.to_thread(Authentication, self._options)
        status, answer = MORE_PROCESSING_REQUIRED, negotiated.token
        while status != SUCCESS:
            token = await asyncio.to_thread(login.answer, answer)
            if not token:
                raise LoginRefused("the server does not complete the login")
            response = await self._hashed(session_setup(token, self._offer.security))
            status, (flags, answer) = response.status, read_session_setup(response)
        if answer:
            await asyncio.to_thread(login.answer, answer)
        self._secure(negotiated, login.session_key, flags, response)
        return flags

    def _secure(self, negotiated: Negotiated, session_key: bytes, flags: int, response: Response) -> None:
        """Sign and encrypt from now on; a guest has no keys."""
        if flags & (IS_GUEST | IS_ANONYMOUS):
            if not self._options.guest:
                raise LoginRefused("the server accepts the user only as a guest, whom nothing protects")
            return
        self._keys = derive_keys(negotiated, session_key, self._hash)
        signer = Signer(negotiated, self._keys.signing)
        if negotiated.dialect >= SMB_3_1_1 or response.data[16] & 0x8:
            signer.check(response.data)
        self._connection.signer = signer
        if flags & ENCRYPTS_SESSION:
            self._encrypt(negotiated)

    def _encrypt(self, negotiated: Negotiated) -> None:
        if not negotiated.cipher or self._connection.signer is None:
            raise LoginRefused("encryption is required, and the server has none for this session")
        self._connection.cipher = Cipher(negotiated, self._keys, self._connection.session)
