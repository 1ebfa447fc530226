"""The ServerApp of a coordinator: waits for the sites, fits, writes the model and the report."""

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sfumato.bounds import Bounds
from sfumato.errors import InputError, SfumatoError
from sfumato.estimators.sir import PrivateSIR
from sfumato.estimators.sparse import PrivateSparseSIR
from sfumato.federated.coordinator import fit_remote
from sfumato.federated.outcome import write_json, write_outcome
from sfumato.federated.wire import canonical
from sfumato.settings.federated import SitesLostError

FACTS = canonical({"ask": "facts"})
PAUSE = 0.5
"""Seconds between two looks at who is there."""


def server_app() -> Any:
    """A Flower ServerApp that fits once and ends."""
    from flwr.serverapp import ServerApp

    app = ServerApp()
    app.main()(main)
    return app


def main(grid: Any, context: Any) -> None:
    """Fit with the parameters of the run configuration; what happened is in ``outcome.json`` in any case."""
    config = dict(context.run_config)
    folder = Path(str(config["out"]))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        transport = FlowerTransport(grid, int(config["sites"]), float(config["wait"]), float(config["timeout"]))
        fitted = fit_remote(
            estimator_of(config),
            transport,
            tuple(transport.nodes),
            minimum=int(config["minimum"]),
            run=str(config["run"]) or None,
            least=int(config["least"]),
        )
    except SfumatoError as error:
        write_json({"failed": str(error)}, folder)
        raise
    write_outcome(fitted, folder)


def estimator_of(config: Mapping[str, Any]) -> PrivateSIR:
    """The estimator a run configuration describes."""
    directions = str(config["directions"])
    kind = PrivateSparseSIR if config["sparse"] else PrivateSIR
    return kind(
        epsilon=float(config["epsilon"]),
        delta=float(config["delta"]),
        n_directions=int(directions) if directions.isdecimal() else directions,
        bounds=bounds_of(str(config["lower"]), str(config["upper"])),
        method=str(config["method"]),
        classes=str(config["classes"]).split("|") if config["classes"] else None,
    )


def bounds_of(lower: str, upper: str) -> Bounds | None:
    """Bounds from text: one number for all features, or one for each, separated by commas.

    >>> bounds_of("-6", "6").upper.tolist(), bounds_of("0,-1", "1,1").lower.tolist(), bounds_of("", "")
    (6.0, [0.0, -1.0], None)
    """
    if not lower and not upper:
        return None
    try:
        sides = [[float(value) for value in side.split(",")] for side in (lower, upper)]
    except ValueError:
        raise InputError("lower and upper must be numbers separated by commas, both or neither given.") from None
    return Bounds(*(side[0] if len(side) == 1 else side for side in sides))


class FlowerTransport:
    """Messages over a Flower `Grid`; the names of the sites are learnt from their first reply."""

    def __init__(self, grid: Any, sites: int, wait: float, timeout: float) -> None:
        self._grid = grid
        self._timeout = timeout
        self.nodes: dict[str, int] = {}
        self._first: dict[str, tuple[str, bytes]] = {}
        self._meet(sites, wait)

    def send(self, requests: Mapping[str, str]) -> Mapping[str, tuple[str, bytes]]:
        """Replies by site; who is slow or gone is absent."""
        if set(requests.values()) == {FACTS}:
            return self._first
        names = {self.nodes[name]: name for name in requests}
        replies = self._exchange({node: requests[name] for node, name in names.items()})
        return {names[node]: reply for node, reply in replies.items() if node in names}

    def _meet(self, sites: int, wait: float) -> None:
        """Ask everybody who is there for the public facts until `sites` have told them; asking costs nothing."""
        end = time.monotonic() + wait
        while len(self.nodes) < sites and time.monotonic() < end:
            known = set(self.nodes.values())
            there = [node for node in self._grid.get_node_ids() if node not in known]
            for node, reply in sorted(self._exchange(dict.fromkeys(there, FACTS)).items()):
                name = _name(reply[0], node)
                if name in self.nodes:
                    raise SitesLostError(f"two sites are called {name!r}; give every site its own name.")
                self.nodes[name], self._first[name] = node, reply
            time.sleep(PAUSE)

    def _exchange(self, requests: Mapping[int, str]) -> dict[int, tuple[str, bytes]]:
        from flwr.app import ConfigRecord, Message, MessageType, RecordDict

        messages = [
            Message(
                RecordDict({"request": ConfigRecord({"json": text})}),
                dst_node_id=node,
                message_type=MessageType.QUERY,
                ttl=self._timeout,
            )
            for node, text in requests.items()
        ]
        replies: dict[int, tuple[str, bytes]] = {}
        for message in self._replies(messages):
            record = message.content.get("reply") if message.has_content() else None
            node = message.metadata.src_node_id
            if isinstance(record, ConfigRecord) and node not in replies:  # the first of two replies counts
                values = record.get("values", b"")
                replies[node] = (str(record.get("json", "")), values if isinstance(values, bytes) else b"")
        return replies

    def _replies(self, messages: list[Any]) -> Iterator[Any]:
        """Replies as they come, until all are there or the time is over. Flower's own loop looks every 3 s only."""
        open_ids, end = set(self._grid.push_messages(messages)) - {None}, time.monotonic() + self._timeout
        while open_ids and time.monotonic() < end:
            found = list(self._grid.pull_messages(open_ids))
            yield from found
            open_ids -= {message.metadata.reply_to_message_id for message in found}
            if open_ids:
                time.sleep(PAUSE)


def _name(head: str, node: int) -> str:
    try:
        data = json.loads(head)
    except ValueError:
        return str(node)
    name = data.get("name") if isinstance(data, dict) else None
    return name if isinstance(name, str) and 0 < len(name) <= 100 else str(node)
