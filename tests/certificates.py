"""Certificates for servers of tests, made on the spot by an authority that nobody else trusts."""

import ssl
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import trustme


class Certificate(NamedTuple):
    """Files: the authority, which a client trusts through `SSL_CERT_FILE`; the server's certificate and key."""

    authority: str
    certificate: str
    key: str

    def context(self) -> ssl.SSLContext:
        """What a server of Python's own speaks TLS with."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(self.certificate, self.key)
        made.set_alpn_protocols(["h2", "http/1.1"])
        return made


def certificate(folder: Path, name: str = "127.0.0.1", *, until: datetime | None = None) -> Certificate:
    authority = trustme.CA()
    server = authority.issue_cert(name, not_after=until)
    found = Certificate(*(str(folder / f"{part}.pem") for part in ("authority", "certificate", "key")))
    authority.cert_pem.write_to_path(found.authority)
    server.private_key_pem.write_to_path(found.key)
    for index, part in enumerate(server.cert_chain_pems):
        part.write_to_path(found.certificate, append=index > 0)
    return found
