"""Take the pictures of report, desk and terminal that the pages show, light and dark, of a real fit of the flights.

python docs/_site/screenshots.py      # needs Chromium and sfumato[web]; writes docs/images/shot-*.webp
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.browser.chromium import Tab, browsing  # noqa: E402
from tests.web.served import serving  # noqa: E402

BOUNDS = """[bounds]
"dep_delay" = [-60, 180]
"air_time" = [0, 720]
"distance" = [0, 5000]
"arr_time" = [1, 2400]
"sched_arr_time" = [1, 2400]
"""
FEATURES = "dep_delay,air_time,distance,arr_time,sched_arr_time"
FIT = ("fit", "flights.csv", "--response", "arr_delay", "--features", FEATURES, "--bounds", "bounds.toml")
SHOWN = "sfumato fit flights.csv --response arr_delay --features ... --bounds bounds.toml"
COLUMNS = 84
PALETTES = {  # ground, text, and the colours of a terminal that read well on it
    "light": (
        "#fdfcf9",
        "#23262b",
        ("#23262b", "#b3402a", "#3c7a3f", "#946c00", "#1f6478", "#8a4a7d", "#1f6f78", "#696660"),
    ),
    "dark": (
        "#16181c",
        "#e6e3dc",
        ("#696660", "#e08a6d", "#8fbf86", "#d9b24c", "#6fb0bd", "#c99ac0", "#6fb0bd", "#a09c93"),
    ),
}
TERMINAL = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: {ground}; color: {text} }}
pre {{ margin: 0; padding: 24px 28px; font: 15px/1.42 "DejaVu Sans Mono", monospace; width: {columns}ch }}
</style><pre>{code}</pre>"""


def main() -> None:
    """Fit, then look at everything."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(folder, "datasets", "export", "flights", "flights.csv")
        (folder / "bounds.toml").write_text(BOUNDS, encoding="utf-8")
        said = run(folder, *FIT, "--directions", "2", "--out", "delay").splitlines()
        end = next(i for i, line in enumerate(said) if "sensitivity" in line)  # the ledger follows: it is in the report
        with serving(folder) as (_, desk), browsing() as tab:
            tab.send("Emulation.setScrollbarsHidden", hidden=True)
            tab.open((folder / "delay" / "report.html").as_uri())
            take(tab, "report", width=1000, height=1060)
            for scheme in PALETTES:
                page = folder / f"{scheme}.html"
                page.write_text(terminal("\n".join([f"$ {SHOWN}", *said[:end]]).rstrip(), scheme), encoding="utf-8")
                tab.open(page.as_uri())
                width, height = (
                    int(tab.js(f"document.querySelector('pre').offset{side}")) for side in ("Width", "Height")
                )
                take(tab, "terminal", width=width, height=height, schemes=(scheme,))
            plan(tab, desk.link, desk.origin)
            take(tab, "desk", width=1000, height=1060)


def plan(tab: Tab, link: str, desk: str) -> None:
    """Go to the page of a plan for the flights."""
    tab.open(link)
    tab.wait("location.pathname === '/' && document.readyState === 'complete'")
    tab.open(f"{desk}/account")
    press(tab, "main button")
    tab.open(f"{desk}/declare?table=flights.csv")
    tab.js("document.querySelector('#role-8').value = 'response'")  # arr_delay
    press(tab, "button[type=submit]")
    tab.wait("document.querySelector('input[type=range]') !== null")


def press(tab: Tab, selector: str) -> None:
    """Press a button and wait for the page that follows."""
    tab.js("window.before = true")
    tab.js(f"document.querySelector({json.dumps(selector)}).click()")
    tab.wait("!window.before && document.readyState === 'complete'")


def take(tab: Tab, name: str, *, width: int, height: int, schemes: Iterable[str] = PALETTES) -> None:
    """Write what is seen, light and dark."""
    for scheme in schemes:
        tab.look(scheme=scheme, width=width, height=height)
        tab.wait("document.readyState === 'complete'")
        tab.js("new Promise(done => setTimeout(done, 600))")  # sliders ask the server once more
        picture = tab.send("Page.captureScreenshot", format="webp", quality=82)["data"]
        (ROOT / "docs" / "images" / f"shot-{name}-{scheme}.webp").write_bytes(base64.b64decode(picture))


def run(folder: Path, *words: str) -> str:
    """What a command says on its standard output, with its colours."""
    command = [sys.executable, "-m", "sfumato", *words]
    env = os.environ | {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS)}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True)
    return done.stdout


def terminal(said: str, scheme: str) -> str:
    """A page that shows text of a terminal in its colours."""
    ground, text, colours = PALETTES[scheme]
    rgb = [tuple(bytes.fromhex(colour[1:])) for colour in (ground, text, *colours)]
    console = Console(record=True, width=COLUMNS, file=StringIO())
    console.print(Text.from_ansi(said))
    theme = TerminalTheme(rgb[0], rgb[1], rgb[2:], rgb[2:])
    code = console.export_html(theme=theme, inline_styles=True, code_format="{code}")
    return TERMINAL.format(ground=ground, text=text, columns=COLUMNS, code=code)


if __name__ == "__main__":
    main()
