"""The webhook's server without a part of its work: what the first review got is what all others get.

Usage: constant_webhook.py decision|response webhook --port … (and the webhook's other options)

`decision` still decodes each review, logs it and encodes the response; `response` only receives and sends.
"""

from __future__ import annotations

import sys
from typing import Any

from aiohttp import web

from podferry.cli.main import program
from podferry.webhook.admission import server
from podferry.webhook.admission.decide import decide
from podferry.webhook.admission.server import Webhook
from podferry.webhook.injection.inject import Decision

first: dict[str, Any] = {}
mutate = Webhook.mutate


def constant_decision(*arguments: Any) -> Decision:
    decision: Decision = first.setdefault("decision", None) or decide(*arguments)
    first["decision"] = decision
    return decision


async def constant_response(webhook: Webhook, request: web.Request) -> web.Response:
    if "body" not in first:
        first["body"] = (await mutate(webhook, request)).body
    await request.read()
    return web.Response(body=first["body"], content_type="application/json")


if sys.argv.pop(1) == "decision":
    server.decide = constant_decision
else:
    Webhook.mutate = constant_response  # type: ignore[method-assign]  # what is measured is all but this
program()
