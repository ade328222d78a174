"""What the engine of web servers declares."""

from podferry.storage.credentials.web import BASIC_AUTH_KEYS, NETRC, web_variables
from podferry.storage.engine import Engine, Scheme

WEB = Engine(
    name="web",
    store="podferry.storage.web.store:WebStore",
    schemes=(
        Scheme(
            names=("http", "https"),
            page="http",
            tested_on="nginx, rclone",
            credentials=(*web_variables("HTTP_"), *BASIC_AUTH_KEYS, NETRC),
            writable=False,
            connection_pool=True,
        ),
    ),
)
