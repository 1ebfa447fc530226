"""Messages over a Flower grid. Implements `Transport`."""

import json
import time
from collections.abc import Mapping
from typing import Any

from sfumato.federated.flower.link import arrived
from sfumato.federated.flower.messages import reply_of, request_to
from sfumato.federated.wire import canonical
from sfumato.settings.federated import SitesLostError

FACTS = canonical({"ask": "facts"})
PAUSE = 0.1
"""Seconds between two looks at who is there and what has come; Flower's own loop waits 3."""
ATTEMPT = 30.0
"""Seconds after which a question is sent again, then twice as many; a site that has its answer repeats it."""


class FlowerTransport:
    """Messages over a Flower `Grid` to the nodes that we admitted, whoever else is there.

    The names of the sites are learnt from their first reply.
    """

    def __init__(self, grid: Any, admitted: frozenset[int], wait: float, timeout: float) -> None:
        self._grid = grid
        self._timeout = timeout
        self.nodes: dict[str, int] = {}
        self._first: dict[str, tuple[str, bytes]] = {}
        self._meet(admitted, wait)

    def send(self, requests: Mapping[str, str]) -> Mapping[str, tuple[str, bytes]]:
        """Replies by site; who is slow or gone is absent."""
        if set(requests.values()) == {FACTS}:
            return self._first
        names = {self.nodes[name]: name for name in requests}
        replies = self._exchange({node: requests[name] for node, name in names.items()})
        return {names[node]: reply for node, reply in replies.items() if node in names}

    def _meet(self, admitted: frozenset[int], wait: float) -> None:
        """Ask everybody who is there for the public facts until all have told them; asking costs nothing."""
        end = time.monotonic() + wait
        while len(self.nodes) < len(admitted) and time.monotonic() < end:
            there = (admitted - set(self.nodes.values())) & set(self._grid.get_node_ids())
            for node, reply in sorted(self._exchange(dict.fromkeys(there, FACTS)).items()):
                name = _name(reply[0], node)
                if name in self.nodes:
                    raise SitesLostError(f"two sites are called {name!r}; give every site its own name.")
                self.nodes[name], self._first[name] = node, reply
            time.sleep(PAUSE)

    def _exchange(self, requests: Mapping[int, str]) -> dict[int, tuple[str, bytes]]:
        """Ask until all have answered or the time is over; who comes back in time is asked again, which is free."""
        replies: dict[int, tuple[str, bytes]] = {}
        end, seconds = time.monotonic() + self._timeout, ATTEMPT
        while (left := requests.keys() - replies.keys()) and time.monotonic() < end:
            there = left & set(self._grid.get_node_ids())
            if there:
                patience = max(min(end - time.monotonic(), seconds), 1.0)
                replies |= self._attempt({node: requests[node] for node in sorted(there)}, patience)
                seconds *= 2.0  # who is only slow gets the time it needs
            time.sleep(PAUSE if left - replies.keys() else 0.0)
        return replies

    def _attempt(self, requests: Mapping[int, str], seconds: float) -> dict[int, tuple[str, bytes]]:
        """Send, and take replies as they come, for a while; one reply to each message counts."""
        ids = self._grid.push_messages([request_to(node, text, seconds) for node, text in requests.items()])
        asked, replies = dict(zip(ids, requests, strict=True)), {}
        asked.pop(None, None)
        end = time.monotonic() + seconds
        while asked and time.monotonic() < end:
            for answered, message in arrived(self._grid, list(asked)):
                node, record = asked.pop(answered, None), reply_of(message)
                if node is not None and record is not None:
                    replies[node] = record
            if asked:
                time.sleep(PAUSE)
        return replies


def _name(head: str, node: int) -> str:
    try:
        data = json.loads(head)
    except ValueError:
        return str(node)
    name = data.get("name") if isinstance(data, dict) else None
    return name if isinstance(name, str) and 0 < len(name) <= 100 else str(node)
