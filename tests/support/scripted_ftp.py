"""A server of FTP that answers as a test says, and as a sound server where the test says nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress

Handler = Callable[["Session", str], Awaitable[None]]
"""Answers a command with this argument."""
FACTS = "Type=file;Size={};Modify=20261123200000; {}"


class Session:
    """One control connection.

    Attributes:
        writer: Of it.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._data: asyncio.Future[asyncio.StreamWriter] | None = None
        self._listener: asyncio.Server | None = None
        self._writers = [writer]

    async def say(self, *lines: str) -> None:
        """Send lines of a reply."""
        self.writer.write("".join(f"{line}\r\n" for line in lines).encode("utf-8", "surrogateescape"))
        await self.writer.drain()

    async def listen(self) -> int:
        """Wait for a data connection at the port that is returned."""
        self._data = asyncio.get_running_loop().create_future()
        await self.unlisten()
        self._listener = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return int(self._listener.sockets[0].getsockname()[1])

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        if self._data is not None and not self._data.done():
            self._data.set_result(writer)
        else:
            writer.close()

    async def close(self) -> None:
        """Cut all connections."""
        await self.unlisten()
        for writer in self._writers:
            writer.close()
            writer.transport.abort()
        await asyncio.sleep(0)  # a transport closes its socket one iteration later

    async def unlisten(self) -> None:
        """Take no more data connections."""
        if self._listener is not None:
            self._listener.close()

    async def data(self) -> asyncio.StreamWriter:
        """The data connection, after a reply that announces it."""
        assert self._data is not None
        await self.say("150 it comes")
        return await self._data

    async def transfer(self, data: bytes, last: str = "226 done") -> None:
        """Send bytes over the data connection, and a reply."""
        writer = await self.data()
        with suppress(OSError):
            writer.write(data)
            await writer.drain()
        writer.close()
        await self.say(last)

    async def lines(self) -> AsyncIterator[tuple[str, str]]:
        """Commands with their arguments."""
        while line := (await self._reader.readline()).decode("utf-8", "surrogateescape").rstrip("\r\n"):
            command, _, argument = line.partition(" ")
            yield command.upper(), argument


class ScriptedFtp:
    """Serves the file `/d/a` unless `answers` say otherwise, by command.

    Attributes:
        files: Content by path.
        commands: What was received, all sessions together.
        address: `host:port`.
        banner: What it says first.
    """

    def __init__(self, answers: Mapping[str, Handler]) -> None:
        self._answers = dict(answers)
        self.files = {"/d/a": b"0123456789"}
        self.commands: list[str] = []
        self.address = ""
        self.banner: Handler = _welcome
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One session."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        session = Session(reader, writer)
        try:
            with suppress(OSError, asyncio.CancelledError):
                await self.banner(session, "")
                await self._answer(session)
        finally:
            await session.close()

    async def _answer(self, session: Session) -> None:
        start, self.directory = 0, "/"
        async for command, argument in session.lines():
            self.commands.append(f"{command} {argument}".strip())
            if command in self._answers:
                await self._answers[command](session, argument)
            elif command == "REST":
                start = int(argument)
                await session.say("350 from there")
            elif command == "CWD":
                self.directory = argument
                below = argument.rstrip("/") + "/"
                known = any(path.startswith(below) for path in self.files)
                await session.say("250 there" if known else "550 there is no such directory")
            elif command in {"EPSV", "PASV"}:
                port = await session.listen()
                mode = f"227 (127,0,0,1,{port >> 8},{port & 255})"
                await session.say(f"229 (|||{port}|)" if command == "EPSV" else mode)
            elif command == "MLSD":
                below = self.directory.rstrip("/") + "/"
                rows = [(len(data), path[len(below) :]) for path, data in self.files.items()]
                await session.transfer("".join(f"{FACTS.format(*row)}\r\n" for row in rows).encode())
            elif command == "MLST" and argument in self.files:
                facts = FACTS.format(len(self.files[argument]), argument)
                await session.say("250-facts", f" {facts}", "250 end")
            elif command == "RETR" and argument in self.files:
                await session.transfer(self.files[argument][start:])
                start = 0
            else:
                await session.say(*REPLIES.get(command, ["550 no"]))

    async def close(self) -> None:
        """End all sessions."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


REPLIES = {
    "USER": ["331 and the password"],
    "PASS": ["230 welcome"],
    "FEAT": ["211-these", " MLST type*;size*;modify*;", " UTF8", "211 end"],
    "OPTS": ["200 so be it"],
    "TYPE": ["200 binary"],
    "QUIT": ["221 bye"],
}


async def _welcome(session: Session, _: str) -> None:
    await session.say("220 ready")


@asynccontextmanager
async def scripted_ftp(answers: Mapping[str, Handler]) -> AsyncIterator[ScriptedFtp]:
    """A running server with these answers."""
    server = ScriptedFtp(answers)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.address = f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listener.close()
        await server.close()
