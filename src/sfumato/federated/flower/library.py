"""Every part of Flower that is used here, in one table, imported when it is first asked for.

Flower's commands start a process for every message and run whatever app the server sends; its own protocol clients do
neither. They are not a public interface: a range of versions is supported (`VERSIONS`), every name that is not public
is in this module and in no other, and for each version `tests/federated/test_canary.py` looks whether all are still
there, and `tests/federated` starts a real federation with it.
"""

from importlib import import_module
from typing import Any, Final

from sfumato.errors import InputError

VERSIONS: Final = ((1, 41), (1, 43))
"""Of Flower, from the first and before the second; the same as in pyproject.toml."""
_PLACES = {
    "httpx": ("HTTPError", "HTTPStatusError", "TransportError"),
    "cryptography.exceptions": ("UnsupportedAlgorithm",),
    "cryptography.hazmat.primitives.asymmetric.ec": ("EllipticCurvePrivateKey", "EllipticCurvePublicKey"),
    "cryptography.hazmat.primitives.serialization": ("load_ssh_private_key", "load_ssh_public_key"),
    "flwr.app": ("ConfigRecord", "Message", "MessageType", "RecordDict"),
    "flwr.app.message": ("remove_content_from_message",),
    "flwr.cli.build": ("build_fab_from_files",),
    "flwr.clientapp": ("ClientApp",),
    "flwr.serverapp": ("ServerApp",),
    "flwr.common.serde": ("fab_to_proto", "message_to_proto", "run_from_proto"),
    "flwr.proto.control_pb2": ("ListNodesRequest", "RegisterNodeRequest", "StartRunRequest"),
    "flwr.proto.fleet_pb2": (
        "ActivateNodeRequest",
        "DeactivateNodeRequest",
        "PullMessagesRequest",
        "PushMessagesRequest",
    ),
    "flwr.proto.heartbeat_pb2": ("SendNodeHeartbeatRequest",),
    "flwr.proto.node_pb2": ("Node",),
    "flwr.proto.runtime_pb2": (
        "AcquireTaskRequest",
        "PullAppMessagesRequest",
        "PullTaskInputRequest",
        "SendTaskHeartbeatRequest",
    ),
    "flwr.supercore.control": ("ControlHttpClient",),
    "flwr.supercore.fab": ("Fab",),
    "flwr.supercore.logger": ("console_handler",),
    "flwr.supercore.inflatable.inflatable_object": (
        "get_all_nested_objects",
        "get_object_tree",
        "no_object_id_recompute",
    ),
    "flwr.supercore.inflatable.inflatable_protobuf_utils": (
        "make_confirm_message_received_fn_protobuf",
        "make_pull_object_fn_protobuf",
        "make_push_object_fn_protobuf",
    ),
    "flwr.supercore.inflatable.inflatable_utils": (
        "ObjectPullError",
        "pull_and_inflate_object_from_tree",
        "push_objects",
    ),
    "flwr.supercore.interceptors": ("RuntimeVersionHttpInterceptor", "SuperExecAuthHttpInterceptor"),
    "flwr.supercore.primitives.asymmetric": ("public_key_to_bytes", "uses_nist_ec_curve"),
    "flwr.supercore.runtime": ("RuntimeHttpClient",),
    "flwr.supercore.task_identity": ("TaskIdentity",),
    "flwr.supernode.fleet_http_client": ("FleetHttpClient",),
    "flwr.supernode.node_auth_http_interceptor": ("NodeAuthHttpInterceptor",),
    "flwr.supercore.app_utils": ("start_parent_process_monitor",),
    "flwr.superlink": ("extensions",),
    "flwr.superlink.cli": ("flower_superlink",),
    "flwr.superlink.grid.http_grid": ("HttpGrid",),
    "starlette.middleware": ("Middleware",),
}
_HOME = {name: place for place, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"{name} is not among the parts of Flower that are used")
    if name == "extensions":
        return import_module("flwr.superlink.extensions")
    return getattr(import_module(_HOME[name]), name)


def absent_parts() -> list[str]:
    """What is used here and not there in the version of Flower that is installed; nothing, if it is supported."""
    found = []
    for name in _HOME:
        try:
            __getattr__(name)
        except (ImportError, AttributeError):
            found.append(f"{_HOME[name]}.{name}")
    return found


def stay(client: Any) -> Any:
    """The same client of Flower's, which goes where it was told to and nowhere else.

    Flower's follow redirects, also to plain http, with all that their requests are signed with.
    """
    client._client.follow_redirects = False
    return client


def connect_grid(address: str, ca: bytes, token: str, password: Any, patience: float) -> Any:
    """Flower's `Grid` for the run that `token` belongs to; `password` lets its requests through our gate."""
    grid = __getattr__("HttpGrid")(address, root_certificates=ca, token=token)
    grid._retry_invoker.max_time = patience
    client = stay(grid._runtime_client)
    client._interceptors = (*client._interceptors, password)
    found = client.PullTaskInput(__getattr__("PullTaskInputRequest")())
    identity = __getattr__("TaskIdentity")  # set on the class itself: Flower's clients read from it who they are
    identity.task_id, identity.run_id, identity.node_id = found.task_id, found.run.run_id, found.context.node_id
    grid.set_run(__getattr__("run_from_proto")(found.run))
    return grid


def client_of(grid: Any) -> Any:
    """The client that a `Grid` speaks through."""
    return grid._runtime_client


def close_at_once(grid: Any) -> None:
    """Close a `Grid` without waiting for a server that is being stopped."""
    grid._retry_invoker.max_tries = 1
    grid.close()


def name_message(message: Any, name: str) -> None:
    """Set a message's id as Flower does: it is not sent along."""
    message.metadata.__dict__["_message_id"] = name


def serve_behind(guard: Any) -> None:
    """``flower-superlink`` with one more middleware, the outermost of all."""
    __getattr__("extensions").get_middleware = lambda: (guard,)
    __getattr__("flower_superlink")()


def refuse_certificate(error: Exception, sentence: str) -> None:
    """Say what is wrong with a server's certificate, if that is why it was not reached."""
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        raise InputError(sentence) from None


def silence_logging() -> None:
    """What Flower's clients have to say is said by ours, in a sentence."""
    __getattr__("console_handler").setLevel("CRITICAL")
