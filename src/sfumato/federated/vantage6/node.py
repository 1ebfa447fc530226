"""Coordinator and site inside a container that a vantage6 node starts for every question, and forgets afterwards.

What a site is, is told by a file of its own, ``organization-ID.toml`` in the folder that its node mounts as the
database ``sfumato``; nothing in a task names a file. Records, ledger and answers are in that folder, which is the
host's: the container's own files are gone when it ends, and with them whatever was spent.

vantage6 keeps what a container prints, and may send it to its server. So a site prints nothing: what its operator must
know is written to ``site.log`` in that folder.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vantage6.common.task_status import has_task_finished

from sfumato.errors import InputError
from sfumato.federated.remote import FACTS, NumberedSites
from sfumato.federated.run_settings import Limits, fit_as_told
from sfumato.federated.site import Site, answer_or_refuse, handle
from sfumato.federated.site_settings import Notes, demand_kept, open_site, read_settings

LABEL = "sfumato"
"""Of the folder that a node mounts."""
OF_THE_NODE = Path("/mnt/data")
"""Where vantage6 keeps the files of its tasks, which it cleans."""
PAUSE = 1.0
"""Seconds between two looks at what has come."""


def reply(client: Any, question: Any) -> dict[str, str]:
    """A site's reply. A refusal is a reply too: vantage6 prints the text of an error, and sends what is printed."""
    notes = Notes()
    asked = question if isinstance(question, str) else ""
    head, values = answer_or_refuse(lambda: handle(_open(client.organization_id, notes), asked), notes.tell)
    return {"json": head, "values": values.hex()}


def _open(organization: int, notes: Notes) -> Site:
    mounted = _mounted()
    notes.begin(mounted)
    told = read_settings(mounted / f"organization-{organization}.toml")
    demand_kept(told, OF_THE_NODE)
    return open_site(told, notes.tell)


def _mounted() -> Path:
    folder = os.environ.get(f"{LABEL.upper()}_DATABASE_URI")
    if not folder:
        raise InputError(f"databases: the node has no folder {LABEL!r}; add one to its configuration for the ledger.")
    return Path(folder)


def coordinate(client: Any, settings: Any) -> dict[str, Any]:
    """Fit over the organizations of the settings. A run that was interrupted goes on, with the same settings."""
    told = dict(settings) if isinstance(settings, Mapping) else {}
    organizations = told.pop("organizations", None)
    if not isinstance(organizations, list) or not organizations or not all(type(each) is int for each in organizations):
        raise InputError("organizations: list the ids of those to fit over, such as [1, 2, 3].")
    demand_kept({"folder": told.get("folder", "")}, OF_THE_NODE)

    def meet(_: int, limits: Limits) -> Vantage6Network:
        return Vantage6Network(client, organizations, limits)

    return fit_as_told({**told, "sites": len(organizations)}, meet, print)


class Vantage6Network(NumberedSites):
    """Questions to organizations, each a task of its own. Implements `Network`.

    The sites call themselves what their settings say; all are asked for their public facts at once.
    """

    def __init__(self, client: Any, organizations: list[int], limits: Limits) -> None:
        super().__init__()
        self._client, self._limits = client, limits
        self._introduce(self._replies(dict.fromkeys(organizations, FACTS), limits.wait))

    def _exchange(self, requests: Mapping[int, str]) -> dict[int, tuple[str, bytes]]:
        return self._replies(requests, self._limits.timeout)

    def _replies(self, requests: Mapping[int, str], seconds: float) -> dict[int, tuple[str, bytes]]:
        tasks = {each: self._begin(each, text) for each, text in requests.items()}
        replies: dict[int, tuple[str, bytes]] = {}
        end = time.monotonic() + seconds
        while tasks:
            for each in [each for each, task in tasks.items() if self._finished(task)]:
                found = reply_of(self._client.result.from_task(tasks.pop(each)))
                replies |= {} if found is None else {each: found}
            if not tasks or time.monotonic() > end:
                break
            time.sleep(PAUSE)
        return replies

    def _begin(self, organization: int, text: str) -> int:
        asked = {"method": "answer", "kwargs": {"question": text}}
        return int(self._client.task.create(input_=asked, organizations=[organization], name=LABEL)["id"])

    def _finished(self, task: int) -> bool:
        runs = self._client.run.from_task(task)
        return bool(runs) and all(has_task_finished(run["status"]) for run in runs)


def reply_of(results: list[Any]) -> tuple[str, bytes] | None:
    """Text and numbers of the one result of a task; None where there is none that makes sense."""
    result = results[0] if len(results) == 1 and isinstance(results[0], dict) else {}
    head, values = result.get("json"), result.get("values")
    if not isinstance(head, str) or not isinstance(values, str):
        return None
    try:
        return head, bytes.fromhex(values)
    except ValueError:
        return None
