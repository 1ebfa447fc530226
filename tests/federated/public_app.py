"""The app on Flower's public interface, in one process of a Flower environment: no server, real messages.

`Grid` is Flower's own abstract class; this one hands each message to the ClientApp of its node, as a SuperNode does.
Prints what came of it as JSON: ``python public_app.py FOLDER``.
"""

import json
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from flwr.app import Context, RecordDict
from flwr.serverapp import Grid

from sfumato.federated.flower import library


class Places(dict):
    """Where the parts of Flower are, and which of them were asked for."""

    def __init__(self, known):
        super().__init__(known)
        self.asked = set()

    def __getitem__(self, name):
        self.asked.add(super().__getitem__(name))
        return super().__getitem__(name)


class Here(Grid):
    """Nodes of this process: node id, and the settings of its node. It is lost after so many messages."""

    def __init__(self, app, nodes, lasts):
        self._app, self._nodes, self._replies, self._lasts = app, nodes, {}, lasts

    def set_run(self, run):
        raise NotImplementedError

    @property
    def run(self):
        raise NotImplementedError

    def create_message(self, content, message_type, dst_node_id, group_id, ttl=None):
        raise NotImplementedError

    def get_node_ids(self):
        return list(self._nodes)

    def push_messages(self, messages):
        for message in messages:
            if len(self._replies) == self._lasts:
                raise ConnectionError
            name, node = f"message-{len(self._replies)}", message.metadata.dst_node_id
            message.metadata.__dict__["_message_id"] = name
            context = Context(1, node, self._nodes[node], RecordDict({}), {})
            self._replies[name] = self._app(message, context)
            yield name

    def pull_messages(self, message_ids):
        return [self._replies[name] for name in message_ids]

    def send_and_receive(self, messages, *, timeout=None):
        raise NotImplementedError


def main(folder):
    places = library._HOME = Places(library._HOME)
    example = Path(__file__).parents[2] / "examples" / "flower_app"
    sys.path.insert(0, str(example))
    from sfumato_app.client_app import app as client
    from sfumato_app.server_app import app as server

    asked = set(places.asked)
    try:  # newer versions want to know whose messages these are before one is made
        identity = library.TaskIdentity
        identity.task_id, identity.run_id, identity.node_id = 1, 1, 1
    except ImportError:
        pass
    places.asked = asked
    config = tomllib.loads((example / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    nodes = {int(key): value for key, value in json.loads((folder / "nodes.json").read_text()).items()}
    told = config | json.loads((folder / "config.json").read_text())
    for lasts in (11, 1000):  # the first run ends in the middle of its lines, the second goes on with it
        with suppress(ConnectionError):
            server(Here(client, nodes, lasts), Context(1, 1, {}, RecordDict({}), told))
    print(json.dumps({"version": version("flwr"), "asked": sorted(places.asked)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
