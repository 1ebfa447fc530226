"""A site as a node of Flower, in one process.

Flower's own node fetches the app of a run from the server and starts it in a new process for every message. This one
speaks the same protocol with Flower's own client, and neither fetches nor starts anything: what the server sends is
text for the site's own code, which refuses all but known questions.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.federated.flower import library
from sfumato.federated.flower.keys import authority, private_key
from sfumato.federated.flower.link import pull_whole
from sfumato.federated.flower.transport import INTERVAL, keep_alive, reply_to, request_of
from sfumato.signals import defer_interrupts

SOON, LATE, AGAIN = 0.2, 2.0, 1.0
"""Seconds between two looks for a message: in a run, after a silence, and while there is no coordinator.

In between it is a tenth of the silence: who computes for a minute is answered within six seconds, and asked less."""
SLOWEST = 60.0
"""Seconds that a site waits at most before it turns again to somebody who did not make sense."""
ADMITTED, UNKNOWN, ABSENT = "connected to", "is not admitted (yet) by", "finds nobody (yet) at"
STRANGE = "does not understand what it was told, so it will try again later, at"
SKEW = 5.0
"""Seconds that Flower lets clocks differ by when it checks a signature."""


class Node:
    """Carries requests of a coordinator to `answer` and the replies back, until interrupted.

    Parameters
    ----------
    coordinator : str
        Its host:port.
    ca, key : Path
        Certificate of the authority that the coordinator's certificate must be signed by; the site's private key.
    answer : callable
        The reply, JSON and numbers, to a request.
    say : callable
        Told when the connection is made or lost.
    """

    def __init__(
        self,
        coordinator: str,
        ca: Path,
        key: Path,
        answer: Callable[[str], tuple[str, bytes]],
        say: Callable[[str], None],
    ) -> None:
        library.silence_logging()
        private = private_key(key)
        self._where, self._ca, self._answer, self._say = coordinator, ca, answer, say
        self._public = library.public_key_to_bytes(private.public_key())
        signed = library.NodeAuthHttpInterceptor(private, private.public_key())
        version = library.RuntimeVersionHttpInterceptor(component_name="SuperNode")
        self._client = library.stay(
            library.FleetHttpClient.from_server_address(
                coordinator, False, authority(ca), interceptors=[version, signed]
            )
        )
        self._odd = 0
        self._node: Any = None
        self._said = ""
        self._heard = time.monotonic()

    def serve(self) -> None:
        """Answer until interrupted; the coordinator may come, go and come back."""
        try:
            with keep_alive(self._beat):
                while True:
                    time.sleep(self._turn())
        finally:
            self._leave()

    def _turn(self) -> float:
        """Look for a message and answer it; the seconds to wait until the next look."""
        try:
            if self._node is None:
                self._enter()
            if self._look():
                self._heard = time.monotonic()
        except library.HTTPStatusError as error:
            if error.response.is_redirect:  # it would take our signature elsewhere
                return self._back_off()
            if error.response.status_code == 401 or self._node is None:
                self._node = None
                self._tell(_late(error.response.headers.get("date")) or UNKNOWN)
            return AGAIN  # anything else is about one message, which will be sent again if it is wanted
        except library.ObjectPullError:
            return AGAIN  # its sender died in the middle of it
        except library.TransportError as error:
            library.refuse_certificate(
                error,
                f"coordinator: the certificate at {self._where} was not signed by {self._ca}, is out of date, or does "
                "not name this host; ask the coordinator for a certificate that does.",
            )
            self._tell(ABSENT)
            return AGAIN
        except InputError:
            raise
        except Exception:  # whoever is there does not speak Flower: nothing of theirs may end a site
            return self._back_off()
        self._odd = 0
        self._tell(ADMITTED)
        return min(max(SOON, (time.monotonic() - self._heard) / 10.0), LATE)

    def _back_off(self) -> float:
        """Wait longer each time, and begin anew."""
        self._node, self._odd = None, self._odd + 1
        self._tell(STRANGE)
        return min(AGAIN * 2.0 ** min(self._odd, 10), SLOWEST)

    def _enter(self) -> None:
        request = library.ActivateNodeRequest(public_key=self._public, heartbeat_interval=INTERVAL)
        self._node = library.Node(node_id=self._client.ActivateNode(request).node_id)
        self._heard = time.monotonic()

    def _leave(self) -> None:
        if self._node is not None:
            with suppress(library.HTTPError, ValueError):
                self._client.DeactivateNode(library.DeactivateNodeRequest(node_id=self._node.node_id))
        self._client.close()

    def _beat(self) -> None:
        node = self._node
        if node is not None:
            self._client.SendNodeHeartbeat(library.SendNodeHeartbeatRequest(node=node, heartbeat_interval=INTERVAL))

    def _look(self) -> bool:
        found = self._client.PullMessages(library.PullMessagesRequest(node=self._node))
        if not found.messages_list:
            return False
        run, tree = found.messages_list[0].metadata.run_id, found.message_object_trees[0]
        message = pull_whole(self._client, self._node, run, tree)
        library.name_message(message, tree.object_id)
        with defer_interrupts():
            self._send(reply_to(message, *self._answer(request_of(message))), run)
        return True

    def _send(self, reply: Any, run: int) -> None:
        library.name_message(reply, reply.object_id)
        with library.no_object_id_recompute():
            request = library.PushMessagesRequest(
                node=self._node,
                messages_list=[library.message_to_proto(library.remove_content_from_message(reply))],
                message_object_trees=[library.get_object_tree(reply)],
            )
            told = self._client.PushMessages(request)
            push = library.make_push_object_fn_protobuf(self._client.PushObject, self._node, run, told.session_id)
            wanted = set(told.objects_to_push)
            library.push_objects(library.get_all_nested_objects(reply), push, object_ids_to_push=wanted)

    def _tell(self, what: str) -> None:
        if what != self._said:
            self._say(f"{what} {self._where}.")
        self._said = what


def _late(date: str | None) -> str:
    """What to say if this machine's clock is off the coordinator's, as the date of its reply tells; nothing if not."""
    try:
        theirs = parsedate_to_datetime(date or "").timestamp()
    except (TypeError, ValueError):
        return ""
    off = time.time() - theirs
    return (
        f"has a clock that is {abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} that of" if abs(off) > SKEW else ""
    )
