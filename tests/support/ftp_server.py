"""An FTP server in a thread, from pyftpdlib."""

import contextlib
import threading

from pyftpdlib.authorizers import DummyAuthorizer
from pyftpdlib.handlers import FTPHandler
from pyftpdlib.servers import FTPServer


@contextlib.contextmanager
def serving(folder):
    authorizer = DummyAuthorizer()
    authorizer.add_user("user", "password", str(folder), perm="elradfmwMT")
    handler = type("Handler", (FTPHandler,), {"authorizer": authorizer, "banner": "ready"})
    server = FTPServer(("127.0.0.1", 0), handler)
    stopped = threading.Event()

    def serve():
        while not stopped.is_set():
            server.serve_forever(timeout=0.05, blocking=False)
        server.close_all()

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"127.0.0.1:{server.address[1]}"
    stopped.set()
    thread.join(timeout=10)
