"""The ClientApp of a site: hands every message to `Site` and its reply back. Nothing else happens here."""

from collections.abc import Mapping
from typing import Any

from sfumato.errors import InputError
from sfumato.federated.site import Site, handle
from sfumato.sources import scan


def client_app() -> Any:
    """A Flower ClientApp that answers queries from the table its node was configured with."""
    from flwr.clientapp import ClientApp

    app = ClientApp()
    app.query()(answer)
    return app


def answer(message: Any, context: Any) -> Any:
    """Reply to one message; a refusal is a reply too."""
    head, values = handle(open_site(context.node_config), request_of(message))
    return reply_to(message, head, values)


def open_site(config: Mapping[str, Any]) -> Site:
    """The site a node was configured to be: data, response, ledger, folder, name; classes and seed if given."""
    missing = [key for key in ("data", "response", "ledger", "folder", "name") if key not in config]
    if missing:
        raise InputError(f"node-config: {missing[0]!r} is missing; start the site with `sfumato federated site`.")
    classes = str(config["classes"]).split("|") if "classes" in config else None
    features = str(config["features"]).split("|") if "features" in config else None
    source = scan(str(config["data"]), response=str(config["response"]), features=features, classes=classes)
    seed = int(config["seed"]) if "seed" in config else None
    return Site(source, str(config["ledger"]), str(config["folder"]), name=str(config["name"]), random_state=seed)


def request_of(message: Any) -> str:
    """The request a message carries; an empty one, which is refused, if there is none."""
    from flwr.app import ConfigRecord

    record = message.content.get("request")
    return str(record.get("json", "")) if isinstance(record, ConfigRecord) else ""


def reply_to(message: Any, head: str, values: bytes) -> Any:
    """A reply as Flower carries it."""
    from flwr.app import ConfigRecord, Message, RecordDict

    return Message(RecordDict({"reply": ConfigRecord({"json": head, "values": values})}), reply_to=message)
