"""An FTP server in a thread, from pyftpdlib."""

import contextlib
import threading

from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.filesystems import AbstractedFS
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.ioloop import IOLoop
from pyftpdlib.servers import FTPServer

from tests.support.patience import PATIENCE


def _files(refused):
    """Files of which some directories may not be listed: their names are in `refused`."""

    class Files(AbstractedFS):
        def listdir(self, path):
            if path.rpartition("/")[2] in refused:
                raise PermissionError(13, "Permission denied", path)
            return super().listdir(path)

    return Files


@contextlib.contextmanager
def serving(folder, refused=(), unknown=(), dtp=None):
    """The server's address, `host:port`.

    Args:
        folder: The root of its files.
        refused: Names of directories that may not be listed, looked at in each call.
        unknown: Commands that it does not know.
        dtp: The class of its data connections, or None for pyftpdlib's.
    """
    authorizer = DummyAuthorizer()
    authorizer.add_user("user", "password", str(folder), perm="elradfmwMT")
    commands = {name: found for name, found in FTPHandler.proto_cmds.items() if name not in unknown}
    own = {"authorizer": authorizer, "banner": "ready", "abstracted_fs": _files(refused)}
    if dtp is not None:
        own |= {"dtp_handler": dtp, "use_sendfile": False}
    handler = type("Handler", (FTPHandler,), {**own, "proto_cmds": commands})
    # By default all servers of a process share a loop, which only one thread may run.
    server = FTPServer(("127.0.0.1", 0), handler, ioloop=IOLoop())
    stopped = threading.Event()

    def serve():
        while not stopped.is_set():
            server.serve_forever(timeout=0.05, blocking=False)
        server.close_all()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{server.address[1]}"
    finally:
        stopped.set()
        thread.join(timeout=PATIENCE)
