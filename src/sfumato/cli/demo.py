"""`sfumato demo`: a private fit of built-in data, in a few seconds."""

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.output import new_file
from sfumato.cli.progress import working
from sfumato.cli.terminal import stdout

RESPONSE = "arr_delay"
FEATURES = ("month", "day", "dep_delay", "arr_time", "sched_arr_time", "air_time", "distance")


def demo(
    out: Annotated[Path, typer.Option(help="The report to write.", dir_okay=False)] = Path("report.html"),
) -> None:
    """What explains the delay of 50,000 flights? A private answer, with its report.

    Spends epsilon = 1 at delta = 1e-6 on the built-in flights; the noise is cryptographic, so no two runs agree.
    """
    with new_file(out) as draft, working("loading the library") as bar:
        from sfumato import datasets
        from sfumato.bounds import Bounds
        from sfumato.cli.show import show_document, show_files
        from sfumato.methods.sir import PrivateSIR
        from sfumato.report.build import document
        from sfumato.report.html import render
        from sfumato.report.words import meanings
        from sfumato.sources.files import open_source

        domain = datasets.domain("flights")
        bounds = Bounds(*zip(*(domain[name] for name in FEATURES), strict=True))
        bar.say("reading the flights")
        source = open_source([datasets.path("flights")], RESPONSE, FEATURES)
        sir = PrivateSIR(epsilon=1.0, delta=1e-6, picture=True, bounds=bounds).fit(source)
        shown = document(sir)
        draft.write_text(render(shown), encoding="utf-8")
    show_document(stdout(), shown, f"{RESPONSE} of flights from New York", meanings(sir))
    show_files(stdout(), [(str(out), "the report: open it in a browser")])
