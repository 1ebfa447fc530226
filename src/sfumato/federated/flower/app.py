"""An app on Flower's public interface alone, for networks that run Flower already. Needs ``sfumato[flower-app]``.

The network's own SuperLink starts `server_app` and its SuperNodes `client_app` (``client.py``), both from the code that
is installed where they run: the app that is sent is two lines for each (``examples/flower_app``). Coordinator and site
are those of `sfumato federated`; only the carrier differs.

A stock SuperNode runs whatever app it is sent. The site keeps its promises as long as that app is this one.
"""

from typing import Any

from sfumato.federated.flower import library
from sfumato.federated.flower.transport import FlowerTransport
from sfumato.federated.run_settings import Limits, fit_as_told


def server_app() -> Any:
    """A Flower ServerApp that fits once over the nodes that are there, and ends."""
    app = library.ServerApp()
    app.main()(_main)
    return app


def _main(grid: Any, context: Any) -> None:
    """Fit as the run's settings say, over the nodes of the grid."""

    def meet(count: int, limits: Limits) -> FlowerTransport:
        return FlowerTransport(grid, count, limits.wait, limits.timeout)

    fit_as_told(context.run_config, meet, print)
