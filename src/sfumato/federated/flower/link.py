"""The coordinator's end of Flower: its server admits the sites' keys and carries messages for one run.

The server starts no app, neither its own nor anybody else's (``--isolation process``): the fit runs in the process that
started it, which alone knows the secret that a run's messages are sent with.

The app that Flower wants for a run is three lines for SuperNodes, which point at the code that a site has installed.
`sfumato federated site` does not even look at it, and nobody runs its server's part.
"""

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sfumato.errors import InputError
from sfumato.federated.flower import library
from sfumato.federated.flower.gate import Password
from sfumato.federated.flower.transport import keep_alive

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
        try:
            message = pull_whole(client, grid.node, head.metadata.run_id, tree)
        except library.ObjectPullError:
            message = None
        yield head.metadata.reply_to_message_id, message


def pull_whole(client: Any, node: Any, run: int, tree: Any) -> Any:
    """The message whose parts `tree` names, taken off the server by a node; `ObjectPullError` if some are missing."""
    return library.pull_and_inflate_object_from_tree(
        tree,
        library.make_pull_object_fn_protobuf(client.PullObject, node, run),
        library.make_confirm_message_received_fn_protobuf(client.ConfirmMessageReceived, node, run),
        return_type=library.Message,
        max_time=UPLOAD,
    )


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
