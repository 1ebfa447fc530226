"""Coordinator and site as a job of NVFlare's, for networks that run NVFlare already. Needs ``sfumato[nvflare]``.

`Coordinator` is the workflow of the server's job and `SiteExecutor` the executor of every site's. Both come from the
code that is installed where they run: the job is two files of settings (``examples/nvflare_job``), and needs no code of
its own ("BYOC"). Coordinator and site are those of `sfumato federated`; only the carrier differs.

What a site is (its records, its ledger, its caps) is told by a file of its own, ``local/sfumato-NAME.toml`` in its
workspace, and by nothing in the job: whoever submits one could name another ledger.

NVFlare sends a site's logs to its server unless told not to, and lets administrators read them. So nothing is logged
here at a site: what its operator must know is written to ``site.log`` beside its answers.
"""

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nvflare.apis.controller_spec import Task
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable

from sfumato.errors import SfumatoError
from sfumato.federated.run_settings import Limits, fit_as_told
from sfumato.federated.site import Site, answer_or_refuse, handle
from sfumato.federated.site_settings import Notes, demand_kept, open_site, read_settings
from sfumato.settings.federated import SitesLostError

TASK = "sfumato"
PAUSE = 0.1
"""Seconds between two looks at who is there and what has come."""


class SiteExecutor(Executor):
    """Hands every question of a job to the `Site` of the workspace it runs in, and its reply back.

    The site is called what NVFlare calls it. It is opened at the first question, and again at the next if that failed;
    what it must remember is in its ledger and its folder of answers, both outside the workspace.
    """

    def __init__(self) -> None:
        super().__init__()
        self._site: Site | None = None
        self._notes = Notes()

    def execute(self, task_name: str, shareable: Any, fl_ctx: Any, abort_signal: Any) -> Any:
        """Reply to one question. A refusal is a reply too: NVFlare logs the text of an error, and sends its logs."""
        asked = shareable.get("json")
        question = asked if isinstance(asked, str) else ""
        head, values = answer_or_refuse(lambda: handle(self._open(fl_ctx), question), self._notes.tell)
        return Shareable({"json": head, "values": values})

    def _open(self, fl_ctx: Any) -> Site:
        if self._site is None:
            name, workspace = fl_ctx.get_identity_name(), fl_ctx.get_workspace()
            told = read_settings(Path(workspace.get_site_config_dir()) / f"sfumato-{name}.toml")
            demand_kept(told, Path(workspace.get_root_dir()))
            if "folder" in told:
                self._notes.begin(Path(str(told["folder"])))
            self._site = open_site({**told, "name": name}, self._notes.tell)
        return self._site


class Coordinator(Controller):
    """Fits once over the sites of a job, and ends.

    Parameters
    ----------
    settings : mapping
        As in ``examples/nvflare_job``: `folder` on the server's machine, `sites` to wait for, `minimum`, `least`,
        `wait`, `timeout`, the estimator and its parameters.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(task_check_period=PAUSE)
        self._settings = settings

    def start_controller(self, fl_ctx: Any) -> None:
        """Nothing to do before the job runs."""

    def stop_controller(self, fl_ctx: Any) -> None:
        """Nothing to do after it."""

    def process_result_of_unknown_task(self, *_: Any, **__: Any) -> None:
        """A reply that came too late: the site keeps it, and repeats it when it is asked again."""

    def control_flow(self, abort_signal: Any, fl_ctx: Any) -> None:
        """Fit; the outcome is in ``folder/result``. A run that failed or was aborted goes on when submitted again."""

        def meet(count: int, limits: Limits) -> NVFlareNetwork:
            return NVFlareNetwork(self, fl_ctx, abort_signal, count, limits)

        def say(text: str) -> None:
            self.log_info(fl_ctx, text)

        try:
            self.fit(meet, say)
        except SfumatoError as error:
            if not abort_signal.triggered:
                self.system_panic(str(error), fl_ctx)

    def fit(self, meet: Callable[[int, Limits], "NVFlareNetwork"], say: Callable[[str], None]) -> None:
        """Fit as the settings say, over the sites that `meet` finds."""
        fit_as_told(self._settings, meet, say)


class NVFlareNetwork:
    """Questions to the clients of a job, as tasks of its workflow. Implements `Network`.

    Clients are known by the names in their certificates. Waits up to ``limits.wait`` seconds until `count` are there.
    """

    def __init__(self, controller: Any, fl_ctx: Any, abort_signal: Any, count: int, limits: Limits) -> None:
        self._controller, self._context, self._abort, self._limits = controller, fl_ctx, abort_signal, limits
        self.sites: tuple[str, ...] = ()
        end, engine = time.monotonic() + limits.wait, fl_ctx.get_engine()
        while len(self.sites) < count and time.monotonic() < end:
            self._pause()
            self.sites = tuple(sorted(client.name for client in engine.get_clients()))

    def send(self, requests: Mapping[str, str]) -> Mapping[str, tuple[str, bytes]]:
        """Replies by site; who is slow or gone is absent."""
        tasks = {name: self._begin(name, text) for name, text in requests.items()}
        while any(task.completion_status is None for task in tasks.values()):
            self._pause()
        replies = {name: reply_of(task) for name, task in tasks.items()}
        return {name: reply for name, reply in replies.items() if reply is not None}

    def _begin(self, name: str, text: str) -> Any:
        task = Task(TASK, Shareable({"json": text}), timeout=max(math.ceil(self._limits.timeout), 1))
        self._controller.broadcast(task, self._context, targets=[name], min_responses=1)
        return task

    def _pause(self) -> None:
        if self._abort.triggered:
            raise SitesLostError("the job was aborted.")
        time.sleep(PAUSE)


def reply_of(task: Any) -> tuple[str, bytes] | None:
    """Text and numbers of the reply to a task; None where there is none, or one that NVFlare made up."""
    result = next((each.result for each in task.client_tasks if each.result is not None), None)
    if not isinstance(result, Shareable) or result.get_return_code() != ReturnCode.OK:
        return None
    head, values = result.get("json"), result.get("values")
    return (head, values) if isinstance(head, str) and isinstance(values, bytes) else None
