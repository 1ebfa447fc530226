"""Messages over Flower: a question or its answer, a sign of life every few seconds, and the messages of a whole run.

What passes is what a coordinator needs, and nothing that is not public.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from sfumato.federated.flower import library
from sfumato.federated.remote import FACTS, NumberedSites


def request_to(node: int, text: str, seconds: float) -> Any:
    """A question to a node, which has so long to answer."""
    content = library.RecordDict({"request": library.ConfigRecord({"json": text})})
    return library.Message(content, dst_node_id=node, message_type=library.MessageType.QUERY, ttl=seconds)


def request_of(message: Any) -> str:
    """The request a message carries; an empty one, which is refused, if there is none."""
    record = message.content.get("request") if message.has_content() else None
    return str(record.get("json", "")) if isinstance(record, library.ConfigRecord) else ""


def reply_to(message: Any, head: str, values: bytes) -> Any:
    """The answer to a message."""
    content = library.RecordDict({"reply": library.ConfigRecord({"json": head, "values": values})})
    return library.Message(content, reply_to=message)


def reply_of(message: Any) -> tuple[str, bytes] | None:
    """Text and numbers of a reply; None for what Flower makes up when a node is gone."""
    record = message.content.get("reply") if message is not None and message.has_content() else None
    if not isinstance(record, library.ConfigRecord):
        return None
    values = record.get("values", b"")
    return str(record.get("json", "")), values if isinstance(values, bytes) else b""


INTERVAL = 10.0
"""Seconds; the shortest that Flower takes. Who misses two is taken to be gone."""


@contextmanager
def keep_alive(send: Callable[[], object], seconds: float = 0.7 * INTERVAL) -> Iterator[None]:
    """Call `send` until the block ends. A connection that is lost, or a reply that is none, is not its business."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(seconds):
            with suppress(library.HTTPError, ValueError):
                send()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()


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
