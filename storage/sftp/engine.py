"""What the engine of SFTP declares."""

from podferry.storage.engine import Engine, Scheme

SFTP = Engine(
    name="sftp",
    store="podferry.storage.sftp.store:SftpStore",
    schemes=(
        Scheme(
            names=("sftp", "ssh"),
            page="sftp",
            tested_on="OpenSSH",
            credentials=(
                "SFTP_USERNAME",
                "SFTP_PASSWORD",
                "SFTP_PRIVATE_KEY",
                "SFTP_PASSPHRASE",
                "SFTP_KNOWN_HOSTS",
                *("username", "password", "ssh-privatekey", "known_hosts"),  # keys of Secrets
            ),
            exclusive_create=True,
        ),
    ),
    requires=("asyncssh",),
    extra="sftp",
)
