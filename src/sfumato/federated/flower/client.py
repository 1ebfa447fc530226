"""The ClientApp of a site that has a SuperNode of Flower's: hands every message to `Site` and its reply back.

Flower starts a process for every message, so the site is opened anew each time; what it must remember is in its ledger
and its folder of answers.
"""

from collections.abc import Mapping
from typing import Any

from sfumato.errors import InputError
from sfumato.federated.flower import library
from sfumato.federated.flower.protocol import reply_to, request_of
from sfumato.federated.site import Site, answer_or_refuse, handle
from sfumato.privacy.budget import Budget
from sfumato.privacy.ledger import FileLedger
from sfumato.sources import response_kind_of
from sfumato.sources.files import open_source
from sfumato.sources.names import find

NEEDED = ("name", "data", "ledger", "folder")
_CATEGORICAL = "categorical."


def client_app() -> Any:
    """A Flower ClientApp that answers from the table its node was configured with."""
    app = library.ClientApp()
    app.query()(answer)
    return app


def answer(message: Any, context: Any) -> Any:
    """Reply to one message. A refusal is a reply too: Flower would send the text of an error to the coordinator."""
    head, values = answer_or_refuse(lambda: handle(open_site(context.node_config), request_of(message)))
    return reply_to(message, head, values)


def open_site(config: Mapping[str, Any]) -> Site:
    """The site a node was configured to be; lists are written as ``a|b|c``.

    Needs name, data, ledger and folder; takes response, features, second, classes, response-kind, person,
    categorical.COLUMN, most (epsilon that one run may spend), least (records the site must have) and seed.
    """
    missing = [key for key in NEEDED if key not in config]
    if missing:
        raise InputError(f"node-config: {missing[0]!r} is missing; a site needs {', '.join(NEEDED)}.")
    lists = {key: str(value).split("|") for key, value in config.items()}
    declared = {key.removeprefix(_CATEGORICAL): names for key, names in lists.items() if key.startswith(_CATEGORICAL)}
    told = {key: str(value) for key, value in config.items()}
    features, classes = lists.get("features"), lists.get("classes")
    kind, person = response_kind_of(told.get("response-kind")), told.get("person")
    source = open_source(
        find(told["data"]),
        told.get("response"),
        features,
        classes,
        declared,
        second=lists.get("second", ()),
        response_kind=kind,
        person=person,
    )
    seed, least = (int(told[key]) if key in told else None for key in ("seed", "least"))
    most = None
    if "most" in told:
        most = Budget.approximate(float(told["most"]), FileLedger(told["ledger"]).budget.delta or 1e-6)
    return Site(source, told["ledger"], told["folder"], name=told["name"], most=most, least=least, random_state=seed)
