"""TLS contexts, and ports that speak TLS."""

import ssl

from aiohttp import web

from podferry.storage.network.tls import speaks_tls, tls_context


def test_a_context_verifies_and_trusts_the_bundle(private_ca):
    plain, context = tls_context(), tls_context(private_ca.pem)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert len(context.get_ca_certs()) == len(plain.get_ca_certs()) + 1


async def test_a_handshake_shows_whether_a_port_speaks_tls(answering, private_ca):
    async def answer(request):
        return web.Response()

    plain = await answering(answer)
    encrypted = await answering(answer, private_ca.server_context("other.test"))
    assert not await speaks_tls("127.0.0.1", int(plain.rpartition(":")[2]), 10)
    assert await speaks_tls("127.0.0.1", int(encrypted.rpartition(":")[2]), 10)
    assert not await speaks_tls("127.0.0.1", 1, 10)
