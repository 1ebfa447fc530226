"""A coordinator of NVFlare's that notes what sites reply, and may stop in the middle of a run. For a server's job."""

import json
from pathlib import Path

from sfumato.federated.nvflare import Coordinator
from sfumato.settings.federated import SitesLostError


class Recorder(Coordinator):
    """Notes in the file `notes`; stops after so many exchanges."""

    def __init__(self, settings, notes, lasts):
        super().__init__(settings)
        self._notes, self._lasts = notes, lasts

    def fit(self, meet, say):
        super().fit(lambda count, limits: Noted(meet(count, limits), Path(self._notes), self._lasts), say)


class Noted:
    def __init__(self, network, notes, lasts):
        self._network, self._notes, self._lasts, self.sites = network, notes, lasts, network.sites

    def send(self, requests):
        if self._lasts == 0:
            raise SitesLostError("stopped for the test.")
        self._lasts -= 1
        replies = self._network.send(requests)
        with self._notes.open("a") as file:
            for name, (head, values) in replies.items():
                note = {"site": name, "asked": json.loads(requests[name]), "head": head, "values": values.hex()}
                file.write(json.dumps(note) + "\n")
        return replies
