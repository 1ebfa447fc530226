"""The desk in a real browser: the whole way, mistakes, two tabs, reloads, no scripts, other pages that attack."""

import json
import threading
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.browser.chromium import Tab, browsing, needs_chromium
from tests.web.served import serving, write_patients, write_slow

from sfumato import Budget, FileLedger
from sfumato.model import load_model

pytestmark = needs_chromium

TEXTS = (
    "main p, main td, main th, main li, label, legend, button, select, main input:not([type]), main a, main summary, "
    "main h2, dt, dd, footer p"
)
UNNAMED = """[...document.querySelectorAll(':is(input, select, textarea, button, progress, [role=meter])')]
  .filter(e => e.type !== 'hidden' && !(e.labels && e.labels.length && e.labels[0].textContent.trim())
    && !e.getAttribute('aria-label') && !e.innerText).map(e => e.outerHTML)"""
ORPHANS = """[...document.querySelectorAll('#mistakes a')].filter(a => !document.querySelector(
  '[id="' + a.getAttribute('href').slice(1) + '"]')).map(a => a.outerHTML)"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    write_patients(folder / "patients.csv")
    write_slow(folder / "slow.csv")
    return folder


@pytest.fixture(scope="module")
def desk(folder):
    with serving(folder) as (_, client):
        yield client


@pytest.fixture(scope="module")
def browser():
    with browsing() as tab:
        yield tab


@pytest.fixture(scope="module")
def entered(browser, desk) -> Tab:
    browser.open(desk.link)
    browser.wait("location.pathname === '/' && document.readyState === 'complete'")
    return browser


@pytest.fixture
def tab(entered, desk) -> Tab:
    entered.look()
    entered.open(desk.origin + "/")
    return entered


def fill(tab: Tab, **fields: str) -> None:
    for name, value in fields.items():
        selector = json.dumps(f'[name="{name.replace("_", "-")}"]')
        tab.js(f"document.querySelector({selector}).value = {json.dumps(value)}")


def send(tab: Tab, button: str) -> None:
    """Press a button and wait for the page that follows."""
    tab.js("window.before = true")
    found = f"[...document.querySelectorAll('button')].find(b => b.innerText.startsWith({json.dumps(button)}))"
    tab.js(f"{found}.click()")
    tab.wait("!window.before && document.readyState === 'complete'")


def follow(tab: Tab, link: str) -> None:
    tab.js("window.before = true")
    found = f"[...document.querySelectorAll('main a')].find(a => a.innerText.startsWith({json.dumps(link)}))"
    tab.js(f"{found}.click()")
    tab.wait("!window.before && document.readyState === 'complete'")


def text(tab: Tab) -> str:
    return str(tab.js("document.querySelector('main').innerText"))


def looks_right(tab: Tab) -> None:
    """Enough contrast by day and night, nothing cut off on a phone, a name for every control."""
    for scheme in ("light", "dark"):
        tab.look(scheme=scheme)
        assert min(tab.contrasts(TEXTS)) >= 4.5, tab.js("location.href")
    for width in (390, 768):
        tab.look(width=width)
        assert tab.js("document.documentElement.scrollWidth") <= width, tab.js("location.href")
    tab.look()
    assert tab.js(UNNAMED) == []
    assert tab.js(ORPHANS) == []
    assert tab.js("document.querySelectorAll('h1').length") == 1 and tab.js("document.title.length") > 5


def account(folder: Path) -> FileLedger:
    return FileLedger(folder / "sfumato" / "account.jsonl")


def test_the_whole_way_from_a_folder_to_a_report(tab, desk, folder):
    looks_right(tab)
    assert "open an account" in text(tab)
    follow(tab, "open an account")
    looks_right(tab)
    fill(tab, epsilon="nothing")
    send(tab, "Open the account")
    assert "is no number" in text(tab) and tab.js("document.activeElement.id") == "mistakes"
    looks_right(tab)
    fill(tab, epsilon="4")
    send(tab, "Open the account")
    assert "ε 4 of ε 4 is left" in text(tab)
    looks_right(tab)

    tab.open(desk.origin + "/")
    follow(tab, "patients.csv")
    looks_right(tab)
    send(tab, "Show the plan")
    assert "Choose the column to explain" in text(tab)
    fill(tab, role_5="response", lower_3="-5", upper_3="-6")
    send(tab, "Show the plan")
    assert (
        "the lower bound must be below" in text(tab) and tab.js("document.querySelector('#role-5').value") == "response"
    )
    looks_right(tab)
    fill(tab, upper_3="5")
    send(tab, "Show the plan")
    assert "Nothing was spent yet" in tab.js("document.body.innerText") and "3,000" in text(tab)
    looks_right(tab)

    before = tab.js("document.querySelector('#forecast').innerText")
    tab.js("(s => { s.value = -1; s.dispatchEvent(new Event('input')); })(document.querySelector('#epsilon + input'))")
    tab.wait(f"document.querySelector('#forecast').innerText !== {json.dumps(before)}")
    assert tab.js("document.querySelector('#epsilon').value") == "0.1"
    assert "ε 0.1" in tab.js("document.querySelector('#forecast').innerText")
    fill(tab, epsilon="-3")
    send(tab, "Update the plan")
    assert "write a number above 0" in text(tab)
    looks_right(tab)
    fill(tab, epsilon="2")
    send(tab, "Update the plan")
    assert account(folder).total() == 0.0  # nothing so far has cost anything

    send(tab, "Fit, and spend ε 2")
    tab.wait("!document.getElementById('running') && document.readyState === 'complete'", 120)
    fitted = load_model(next((folder / "sfumato" / "runs").glob("*/result/model.json")))
    assert fitted.verdict_.sentence in text(tab) and fitted.ledger_.guarantee in text(tab)
    looks_right(tab)
    assert tab.js("document.querySelector('iframe').contentDocument") is None  # a world of its own
    tab.open(tab.js("document.querySelector('iframe').src"))
    assert tab.js("document.querySelector('h1').innerText") == "Private sliced inverse regression"
    assert (
        tab.js("document.querySelectorAll('.loading rect').length") == fitted.directions_.size and tab.complaints == []
    )
    assert tab.js("getComputedStyle(document.querySelector('.loading rect')).fill") != "rgb(0, 0, 0)"

    tab.open(desk.origin + "/account")
    looks_right(tab)
    assert "fit los in patients.csv" in text(tab) and "all hashes agree" in text(tab)
    assert round(account(folder).total(), 6) == 2.0
    assert tab.complaints == []
    assert all(each.startswith((desk.origin, "data:")) for each in tab.requests)


def test_two_tabs_a_double_click_and_a_reload_in_mid_fit_are_one_fit(tab, desk, folder):
    runs = len(account(folder).runs())
    tab.open(desk.origin + "/declare?table=slow.csv")
    fill(tab, role_8="response")
    send(tab, "Show the plan")
    plan = tab.js("location.href")
    with tab.beside() as other:
        other.open(desk.origin + "/declare?table=slow.csv")
        fill(other, role_8="response")
        send(other, "Show the plan")
        assert other.js("location.href") == plan  # declared alike, it is the same plan
        tab.js("window.before = true")
        tab.js("(b => { b.click(); b.click(); b.form.submit(); })(document.querySelector('form.once button'))")
        tab.wait("!window.before && document.readyState === 'complete'")
        send(other, "Fit, and spend")
        for page in (tab, other):
            page.wait("!!document.getElementById('running')")
            page.send("Page.reload")
            page.wait("document.readyState === 'complete' && !!document.getElementById('running')")
        looks_right(tab)
        assert tab.js("document.getElementById('progress-words').getAttribute('aria-live')") == "polite"
        tab.wait("!document.getElementById('running') && document.readyState === 'complete'", 120)
        other.wait("!document.getElementById('running') && document.readyState === 'complete'", 120)
        assert "The guarantee, to quote".upper() in text(other).upper()
    tab.js("history.back()")
    tab.wait("document.readyState === 'complete'")
    assert len(account(folder).runs()) == runs + 1 and tab.complaints == []


def test_every_page_works_without_scripts(tab, desk):
    tab.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(desk.origin + "/declare?table=patients.csv")
        assert not tab.js("document.querySelector('input[type=range]')")
        fill(tab, role_5="response", role_3="out")
        send(tab, "Show the plan")
        fill(tab, n="500", epsilon="0.5")
        send(tab, "Update the plan")
        assert "500 records and ε 0.5" in text(tab)
        send(tab, "Fit, and spend ε 0.5")
        tab.wait("document.querySelector('main').innerText.toUpperCase().includes('TAKE WITH YOU')", 120)
    finally:
        tab.send("Emulation.setScriptExecutionDisabled", value=False)


@contextmanager
def another_page(content: str):
    """A page of another program on this machine."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(content.encode())

        def log_message(self, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.05))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_another_page_can_neither_send_our_forms_nor_show_or_read_our_pages(tab, desk, folder):
    spent = account(folder).total()
    form = f"<form method=post action='{desk.origin}/account'><input name=epsilon value=99></form>"
    form += "<script>document.forms[0].submit()</script>"
    with another_page(form) as evil:
        tab.send("Page.navigate", url=evil)
        tab.wait("document.body && document.body.innerText.includes('not sent from a page of this server')")
    frame = f"<iframe src='{desk.origin}/'></iframe>"
    with another_page(frame) as evil:
        tab.open(evil)
        assert any("frame-ancestors" in json.dumps(each) for each in tab.complaints)
        read = tab.js(f"fetch('{desk.origin}/', {{credentials: 'include'}}).then(() => 'read', () => 'refused')")
        assert read == "refused"
    with another_page(f"<script>location = '{desk.origin}/'.replace('127.0.0.1', 'localhost')</script>") as evil:
        tab.send("Page.navigate", url=evil)
        tab.wait("document.body && document.body.innerText.includes('Open the link')")
    assert account(folder).total() == spent and account(folder).budget == Budget.approximate(4, 1e-6)


def test_names_that_would_drive_the_page_are_shown_as_text(tab, desk, folder):
    name = "<img src=x onerror=alert(1)>\u202e"
    (folder / "odd & <b>.csv").write_text(f'"{name}",b,y\n' + "1,2,3\n" * 150, encoding="utf-8")
    tab.open(desk.origin + "/")
    assert "odd & <b>.csv" in text(tab)
    follow(tab, "odd & <b>.csv")
    assert "<img src=x onerror=alert(1)>\\u202e" in text(tab)
    assert tab.js("document.querySelectorAll('img').length") == 0 and tab.complaints == []
