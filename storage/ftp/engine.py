"""What the engine of FTP declares."""

from podferry.storage.engine import Engine, Scheme

CREDENTIALS = ("FTP_USERNAME", "FTP_PASSWORD", "username", "password")
SERVERS = "vsftpd, pyftpdlib"

FTP = Engine(
    name="ftp",
    store="podferry.storage.ftp.store:FtpStore",
    schemes=(
        Scheme(names=("ftp",), page="ftp", tested_on=SERVERS, credentials=CREDENTIALS),
        Scheme(names=("ftps",), page="ftp", tested_on="vsftpd", credentials=(*CREDENTIALS, "FTP_TLS")),
    ),
)
