"""The site builds without a warning, has every page, and loads nothing from elsewhere."""

import json
import re
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.browser.chromium import browsing, program

import sfumato

ROOT = Path(__file__).parents[2]
PICTURES_SHOW = """Promise.all([...document.images].map(image => (image.loading = "eager", image.decode()))).then(
  () => [...document.images].every(image => image.complete && image.naturalWidth > 0))"""


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "_site" / "build.py"), str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def test_every_page_is_on_the_site(site):
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs").with_suffix(".html")).exists()
    for page in (ROOT / "benchmarks" / "results").glob("*.md"):
        assert (site / "results" / f"{page.stem}.html").exists()


def test_every_notebook_was_run_and_shows_what_it_said(site):
    sources = sorted((ROOT / "docs" / "notebooks").glob("*.py"))
    assert len(sources) == 3
    for source in sources:
        cells = json.loads((site / "notebooks" / f"{source.stem}.ipynb").read_text("utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
        assert not [each for cell in code for each in cell["outputs"] if each["output_type"] == "error"]
        assert (site / "notebooks" / f"{source.stem}.html").read_text("utf-8").count('class="output"') > 1


def test_every_public_name_and_command_is_in_the_reference(site):
    text = "".join(page.read_text() for page in (site / "reference").glob("*.html"))
    assert [name for name in sfumato.__all__ if f'id="sfumato.{name}"' not in text] == []
    help_text = (site / "reference" / "cli.html").read_text()
    for command in ("fit", "transform", "explain", "report", "ledger-create", "audit-releases", "datasets-export"):
        assert f'id="sfumato-{command}"' in help_text


def test_no_page_loads_anything_from_elsewhere(site):
    asked = re.compile(r'<(?:script|img|iframe)[^>]+src="([^"]+)"|<link[^>]+rel="stylesheet"[^>]+href="([^"]+)"')
    for page in site.rglob("*.html"):
        loaded = [address for pair in asked.findall(page.read_text(encoding="utf-8")) for address in pair]
        assert not [address for address in loaded if address.startswith(("http", "//"))]


@pytest.fixture
def address(site):
    """The site, served on this machine only."""
    serve = partial(Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.skipif(program() is None, reason="no Chromium on this machine; install chromium to run this")
@pytest.mark.parametrize(("scheme", "pages"), [("light", ["index", "reference/cli"]), ("dark", ["gallery/index"])])
def test_pages_show_in_a_browser_without_a_complaint_and_ask_nobody_else(scheme, pages, address):
    with browsing() as tab:
        for page in pages:
            tab.look(scheme=scheme, width=1200)
            tab.open(f"{address}{page}.html")
            assert [each for each in tab.requests if not each.startswith((address, "data:", "blob:"))] == []
            assert tab.complaints == []
            assert tab.js(PICTURES_SHOW)
            light = sum(map(int, tab.js("getComputedStyle(document.body).backgroundColor")[4:-1].split(","))) > 380
            assert light == (scheme == "light")
            tab.look(scheme=scheme, width=360)
            assert tab.js("document.documentElement.scrollWidth") <= 360


def test_the_first_picture_shows_every_row_of_its_table():
    table = (ROOT / "benchmarks" / "results" / "table1-epsilon-1.md").read_text("utf-8")
    picture = (ROOT / "docs" / "images" / "accuracy.svg").read_text("utf-8")
    rows = re.findall(r"^\| (M\d) \|", table, re.MULTILINE)
    assert len(rows) == 16 and sorted(re.findall(r">(M\d)<", picture)) == sorted(rows)


def test_the_first_use_of_every_word_of_the_glossary_leads_there(site):
    link = re.compile(r'<a class="term" href="[./]*glossary\.html#([^"]+)"')
    used = set()
    for page in site.rglob("*.html"):
        found = link.findall(page.read_text(encoding="utf-8"))
        assert len(found) == len(set(found)), page
        used |= set(found)
    assert used == set(re.findall(r'<h2 id="([^"]+)"', (site / "glossary.html").read_text(encoding="utf-8")))


def test_every_drawing_has_a_dark_version(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert text.count('.svg#only-light"') == text.count('-dark.svg#only-dark"')
        assert not re.search(r'<img[^>]+src="(?!data:)[^"#]+\.svg"(?![^>]+logo)', text.partition("<article")[2])
