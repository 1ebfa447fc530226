"""What both ends of Flower share: messages with a question or its answer, and a sign of life every few seconds."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sfumato.federated.flower import library


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
