"""Every part of Flower that is used here, in one table, imported when it is first asked for.

Flower's commands start a process for every message and run whatever app the server sends; its own protocol clients do
neither. They are not a public interface, so the version is pinned (``flwr==1.41.0``) and `tests/federated` starts a
real federation with it.
"""

from importlib import import_module
from typing import Any

from sfumato.errors import InputError

_PLACES = {
    "httpx": ("HTTPError", "HTTPStatusError", "TransportError"),
    "cryptography.exceptions": ("UnsupportedAlgorithm",),
    "cryptography.hazmat.primitives.asymmetric.ec": ("EllipticCurvePrivateKey", "EllipticCurvePublicKey"),
    "cryptography.hazmat.primitives.serialization": ("load_ssh_private_key", "load_ssh_public_key"),
    "flwr.app": ("ConfigRecord", "Message", "MessageType", "RecordDict"),
    "flwr.app.message": ("remove_content_from_message",),
    "flwr.cli.build": ("build_fab_from_files",),
    "flwr.clientapp": ("ClientApp",),
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


def stay(client: Any) -> Any:
    """The same client of Flower's, which goes where it was told to and nowhere else.

    Flower's follow redirects, also to plain http, with all that their requests are signed with.
    """
    client._client.follow_redirects = False
    return client


def refuse_certificate(error: Exception, sentence: str) -> None:
    """Say what is wrong with a server's certificate, if that is why it was not reached."""
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        raise InputError(sentence) from None


def silence_logging() -> None:
    """What Flower's clients have to say is said by ours, in a sentence."""
    __getattr__("console_handler").setLevel("CRITICAL")
