"""The messages of a run over a Flower `Grid`: what a coordinator needs of it, and nothing that is not public."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sfumato.federated.flower.protocol import reply_of, request_to
from sfumato.federated.remote import FACTS, NumberedSites

PAUSE, LATE = 0.1, 2.0
"""Seconds between two looks at who is there and what has come, at first and after a while; Flower's own loop waits 3.

In between it is a tenth of what was waited already: an answer that took a minute is not found much later."""
ATTEMPT = 30.0
"""Seconds after which a question is sent again, then twice as many; a site that has its answer repeats it."""


Pull = Callable[[Any, Sequence[str]], Iterable[tuple[str, Any]]]


def pull_messages(grid: Any, ids: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Replies to these messages that are there, each with the id of the message it answers."""
    for message in grid.pull_messages(ids):
        yield message.metadata.reply_to_message_id, message


class FlowerTransport(NumberedSites):
    """Messages over a Flower `Grid`. The names of the sites are learnt from their first reply.

    Parameters
    ----------
    grid : Grid
    count : int
        Nodes to wait for, `wait` seconds at most.
    wait, timeout : float
        Seconds until the sites appear, and for each answer.
    admitted : frozenset of int, optional
        The nodes to talk to, whoever else is there; all of them if not given.
    pull : callable
        How replies are taken from the grid.
    """

    def __init__(
        self,
        grid: Any,
        count: int,
        wait: float,
        timeout: float,
        admitted: frozenset[int] | None = None,
        pull: Pull = pull_messages,
    ) -> None:
        super().__init__()
        self._grid, self._timeout, self._admitted, self._pull = grid, timeout, admitted, pull
        self._meet(count, wait)

    def _meet(self, count: int, wait: float) -> None:
        """Ask everybody who is there for the public facts until all have told them; asking costs nothing."""
        end = time.monotonic() + wait
        while len(self.nodes) < count and time.monotonic() < end:
            there = set(self._grid.get_node_ids()) - set(self.nodes.values())
            there = there if self._admitted is None else there & self._admitted
            self._introduce(self._exchange(dict.fromkeys(there, FACTS)))
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
        asked.pop(None, None)  # the id of a message that the server did not take
        begun = time.monotonic()
        while asked and (waited := time.monotonic() - begun) < seconds:
            for answered, message in self._pull(self._grid, list(asked)):
                node, record = asked.pop(answered, None), reply_of(message)
                if node is not None and record is not None:
                    replies[node] = record
            if asked:
                time.sleep(min(max(PAUSE, waited / 10.0), LATE))
        return replies
