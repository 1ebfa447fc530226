"""The coordinator's end of Flower: its server admits the sites' keys and carries messages for one run.

The server starts no app, neither its own nor anybody else's (``--isolation process``): the fit runs in the process that
started it, which alone knows the secret that a run's messages are sent with.
"""

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sfumato.errors import InputError
from sfumato.federated.flower import library
from sfumato.federated.flower.app import build_app
from sfumato.federated.flower.heartbeat import beating

_ACQUIRE = "/flwr.proto.Runtime/AcquireTask"
_SERVER_APP = "flwr-serverapp"
UPLOAD = 5.0
"""Seconds that the rest of a message may come after its head."""
LOST = 30.0
"""Seconds after which a server on this machine that does not answer is given up."""


@contextmanager
def open_grid(address: str, ca: bytes, secret: bytes, keys: Sequence[bytes]) -> Iterator[tuple[Any, list[int]]]:
    """A Flower `Grid` and the nodes with these public keys, in their order, as long as the block lasts."""
    library.quiet()
    try:
        run, nodes = _start_run(address, ca, keys)
        token = _token(address, ca, secret, run)
    except library.TransportError as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise InputError(
                f"certificate: it was not signed by the given ca, is out of date, or does not name {address}; "
                "a server's certificate must name the host that it listens on."
            ) from None
        raise InputError(f"the server on {address} does not answer; see its log.") from None
    grid = library.HttpGrid(address, root_certificates=ca, token=token)
    grid._retry_invoker.max_time = LOST
    found = grid._runtime_client.PullTaskInput(library.PullTaskInputRequest())
    identity = library.TaskIdentity
    identity.task_id, identity.run_id, identity.node_id = found.task_id, found.run.run_id, found.context.node_id
    grid.set_run(library.run_from_proto(found.run))
    with beating(lambda: grid._runtime_client.SendTaskHeartbeat(library.SendTaskHeartbeatRequest())):
        try:
            yield grid, nodes
        finally:
            grid._retry_invoker.max_tries = 1  # nobody waits for a server that is being stopped
            grid.close()


def arrived(grid: Any, ids: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Replies to these messages that are there, each with the message it answers; None if it was not uploaded whole.

    Flower's own loop waits minutes for the rest of an upload whose sender died in the middle of it.
    """
    client = grid._runtime_client
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


def _start_run(address: str, ca: bytes, keys: Sequence[bytes]) -> tuple[int, list[int]]:
    version = library.RuntimeVersionHttpInterceptor(component_name="flwr CLI")
    with library.ControlHttpClient.from_server_address(address, False, ca, interceptors=[version]) as control:
        known = {node.public_key: node.node_id for node in control.ListNodes(library.ListNodesRequest()).nodes_info}
        for key in (key for key in keys if key not in known):
            known[key] = control.RegisterNode(library.RegisterNodeRequest(public_key=key)).node_id
        app = build_app()
        fab = library.fab_to_proto(library.Fab(hashlib.sha256(app).hexdigest(), app, {}))
        return int(control.StartRun(library.StartRunRequest(fab=fab)).run_id), [known[key] for key in keys]


def _token(address: str, ca: bytes, secret: bytes, run: int) -> str:
    """What shows that messages of the run are ours."""
    version = library.RuntimeVersionHttpInterceptor(component_name="SuperExec")
    signed = library.SuperExecAuthHttpInterceptor(master_secret=secret, protected_methods={_ACQUIRE})
    with library.RuntimeHttpClient.from_server_address(address, False, ca, interceptors=[version, signed]) as runtime:
        end = time.monotonic() + LOST
        while time.monotonic() < end:
            found = runtime.AcquireTask(library.AcquireTaskRequest(supported_task_types=[_SERVER_APP]))
            if found.HasField("task") and found.task.run_id == run:
                return str(found.token)
    raise InputError(f"the server on {address} did not start the run; see its log.")
