"""The coordinator's end of Flower: its server admits the sites' keys and carries messages for one run.

The server starts no app, neither its own nor anybody else's (``--isolation process``): the fit runs in the process that
started it, which alone knows the secret that a run's messages are sent with.

The app that Flower wants for a run is three lines for SuperNodes, which point at the code that a site has installed.
`sfumato federated site` does not even look at it, and nobody runs its server's part.
"""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sfumato.errors import InputError
from sfumato.federated.flower import library
from sfumato.federated.flower.gate import Password
from sfumato.federated.flower.protocol import keep_alive, reply_of, request_to
from sfumato.settings.federated import SitesLostError
from sfumato.statistics.wire import dump_json

_ACQUIRE = "/flwr.proto.Runtime/AcquireTask"
_SERVER_APP = "flwr-serverapp"
GONE = "unregistered"
"""What Flower calls a node that was taken off its list; its key cannot be put on it again."""
UPLOAD = 5.0
"""Seconds that the rest of a message may come after its head."""
LOST = 30.0
"""Seconds after which a server on this machine that does not answer is given up."""


@contextmanager
def open_grid(address: str, ca: bytes, secret: bytes, keys: Sequence[bytes]) -> Iterator[tuple[Any, list[int]]]:
    """A Flower `Grid` and the nodes with these public keys, in their order, as long as the block lasts."""
    library.silence_logging()
    try:
        _refuse_unless_guarded(address, ca)
        run, nodes = _start_run(address, ca, secret, keys)
        token = _token(address, ca, secret, run)
    except library.TransportError as error:
        library.refuse_certificate(
            error,
            f"certificate: it was not signed by the given ca, is out of date, or does not name {address}; "
            "a server's certificate must name the host that it listens on.",
        )
        raise InputError(f"the server on {address} does not answer; see its log.") from None
    grid = library.connect_grid(address, ca, token, Password(secret), LOST)
    with keep_alive(lambda: library.client_of(grid).SendTaskHeartbeat(library.SendTaskHeartbeatRequest())):
        try:
            yield grid, nodes
        finally:
            library.close_at_once(grid)


def pull_replies(grid: Any, ids: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Replies to these messages that are there, each with the message it answers; None if it was not uploaded whole.

    Flower's own loop waits minutes for the rest of an upload whose sender died in the middle of it.
    """
    client = library.client_of(grid)
    found = client.PullMessages(library.PullAppMessagesRequest(message_ids=ids))
    for head, tree in zip(found.messages_list, found.message_object_trees, strict=True):
        run = head.metadata.run_id
        try:
            message = library.pull_and_inflate_object_from_tree(
                tree,
                library.make_pull_object_fn_protobuf(client.PullObject, grid.node, run),
                library.make_confirm_message_received_fn_protobuf(client.ConfirmMessageReceived, grid.node, run),
                return_type=library.Message,
                max_time=UPLOAD,
            )
        except library.ObjectPullError:
            message = None
        yield head.metadata.reply_to_message_id, message


def _control(address: str, ca: bytes, *more: Any) -> Any:
    """Flower's client of the control interface."""
    version = library.RuntimeVersionHttpInterceptor(component_name="flwr CLI")
    return library.stay(
        library.ControlHttpClient.from_server_address(address, False, ca, interceptors=[version, *more])
    )


def _refuse_unless_guarded(address: str, ca: bytes) -> None:
    """Refuse a server that lets strangers in: another version of Flower might not ask our gate."""
    with _control(address, ca) as stranger:
        try:
            stranger.ListNodes(library.ListNodesRequest())
        except library.HTTPStatusError as error:
            if error.response.status_code == 403:
                return
    raise InputError(
        f"the server on {address} lets strangers admit nodes; install a version of Flower that is supported."
    )


def _start_run(address: str, ca: bytes, secret: bytes, keys: Sequence[bytes]) -> tuple[int, list[int]]:
    with _control(address, ca, Password(secret)) as control:
        there = control.ListNodes(library.ListNodesRequest()).nodes_info
        known = {node.public_key: node.node_id for node in there if node.status != GONE}
        for key in (key for key in keys if key not in known):
            try:
                known[key] = control.RegisterNode(library.RegisterNodeRequest(public_key=key)).node_id
            except library.HTTPStatusError:
                raise InputError(
                    "site: a key was admitted here once and then taken off the list; delete the file nodes-*.db in the "
                    "coordinator's folder and start again."
                ) from None
        app = build_app()
        fab = library.fab_to_proto(library.Fab(hashlib.sha256(app).hexdigest(), app, {}))
        return int(control.StartRun(library.StartRunRequest(fab=fab)).run_id), [known[key] for key in keys]


def _token(address: str, ca: bytes, secret: bytes, run: int) -> str:
    """What shows that messages of the run are ours."""
    version = library.RuntimeVersionHttpInterceptor(component_name="SuperExec")
    signed = library.SuperExecAuthHttpInterceptor(master_secret=secret, protected_methods={_ACQUIRE})
    passes = [version, signed, Password(secret)]
    with library.RuntimeHttpClient.from_server_address(address, False, ca, interceptors=passes) as runtime:
        library.stay(runtime)
        end = time.monotonic() + LOST
        while time.monotonic() < end:
            found = runtime.AcquireTask(library.AcquireTaskRequest(supported_task_types=[_SERVER_APP]))
            if found.HasField("task") and found.task.run_id == run:
                return str(found.token)
    raise InputError(f"the server on {address} did not start the run; see its log.")


_PROJECT = b"""[project]
name = "sfumato-federation"
version = "1.0.0"
description = "Private dimension reduction over sites"
license = "Apache-2.0"
dependencies = []
[tool.flwr.app]
publisher = "sfumato"
[tool.flwr.app.components]
serverapp = "sfumato_federation.client:app"
clientapp = "sfumato_federation.client:app"
"""
_CLIENT = b"from sfumato.federated.flower.client import client_app\n\napp = client_app()\n"


def build_app() -> bytes:
    """The app as Flower's own builder packs it; the same bytes every time."""
    files = {"pyproject.toml": _PROJECT, "sfumato_federation/__init__.py": b"", "sfumato_federation/client.py": _CLIENT}
    built: bytes = library.build_fab_from_files(files)[0]
    return built


FACTS = dump_json({"ask": "facts"})
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
        asked.pop(None, None)  # the id of a message that the server did not take
        end = time.monotonic() + seconds
        while asked and time.monotonic() < end:
            for answered, message in pull_replies(self._grid, list(asked)):
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
