"""What the engine of WebDAV declares."""

from podferry.storage.credentials.web import BASIC_AUTH_KEYS, NETRC, web_variables
from podferry.storage.engine import Engine, Scheme

WEBDAV = Engine(
    name="webdav",
    store="podferry.storage.webdav.store:WebDavStore",
    schemes=(
        Scheme(
            names=("webdav", "webdavs"),
            page="webdav",
            tested_on="rclone, WsgiDAV",
            credentials=(*web_variables("WEBDAV_"), *BASIC_AUTH_KEYS, NETRC),
            exclusive_create=True,
            connection_pool=True,
        ),
    ),
)
