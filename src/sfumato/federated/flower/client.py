"""The ClientApp of a site that has a SuperNode of Flower's: hands every message to `Site` and its reply back.

Flower starts a process for every message, so the site is opened anew each time; what it must remember is in its ledger
and its folder of answers.
For the same reason it is apart from ``app.py``, whose coordinator takes twice as long to import.
"""

from typing import Any

from sfumato.federated.flower import library
from sfumato.federated.flower.transport import reply_to, request_of
from sfumato.federated.site import answer_or_refuse, handle
from sfumato.federated.site_settings import open_site


def client_app() -> Any:
    """A Flower ClientApp that answers from the table its node was configured with."""
    app = library.ClientApp()
    app.query()(answer)
    return app


def answer(message: Any, context: Any) -> Any:
    """Reply to one message. A refusal is a reply too: Flower would send the text of an error to the coordinator."""
    head, values = answer_or_refuse(lambda: handle(open_site(context.node_config), request_of(message)))
    return reply_to(message, head, values)
