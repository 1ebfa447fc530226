"""The status of a coordinator as a page: what the text tells, and nothing more."""

import re

import pytest
from tests.federated.conftest import Consortium, draws
from typer.testing import CliRunner

from sfumato import Bounds, PrivateSIR
from sfumato.cli.app import app
from sfumato.federated.coordinator import describe_outcome, describe_status, fit_remote, make_status_page, write_json
from sfumato.federated.store import Journal

EVIL = "<script>alert(1)</script>\x1b[31m"


@pytest.fixture
def folder(tmp_path):
    """A coordinator's folder with a result, and a run that was interrupted after it."""
    parts, _ = draws(1_500)
    consortium = Consortium(tmp_path / "sites", parts, cap=9.0)
    sir = PrivateSIR(1.0, 1e-5, 1, Bounds(-6, 6), "one-shot")
    folder = tmp_path / "federation"
    (folder / "result").mkdir(parents=True)
    found = describe_outcome(fit_remote(sir, consortium, tuple(parts)))
    found["left_out"][EVIL] = "did not answer."
    write_json(found, folder / "result")
    consortium.faults = {"h2": _dies_on_slices}
    with pytest.raises(KeyboardInterrupt):
        fit_remote(sir, consortium, tuple(parts), run=Journal.resume(folder / "run.json", {}))
    return folder


def _dies_on_slices(request, answer):
    if '"line":"slices"' in request:
        raise KeyboardInterrupt
    return answer()


def _words(html):
    """What a reader of the page sees."""
    body = re.sub(r"(?s)<style>.*?</style>", "", html)
    return set(re.findall(r"[\w.=-]+", re.sub(r"<[^>]*>", " ", body)))


def test_the_page_says_what_the_text_says_without_scripts_or_foreign_requests(folder):
    page, text = make_status_page(folder), describe_status(folder)
    assert "<script" not in page and "http://" not in page and "https://" not in page
    assert "default-src 'none'" in page and "prefers-color-scheme: dark" in page
    assert "&lt;script&gt;alert(1)" in page and "\x1b" not in page
    for site in ("h0", "h1", "h2"):
        assert f'<tr><th scope="row">{site}</th><td class="n">500</td><td>takes part</td></tr>' in page
        assert f'<tr><th scope="row">{site}</th><td class="n">1</td><td>(epsilon = 9, delta = 1e-05)</td></tr>' in page
    assert '<th scope="row">ranks</th><td class="n">3</td>' in page and "slices" not in page
    # every number of the page that is not the time of writing is in the text
    shown = {word for word in _words(page.replace("&lt;", " ")) if re.fullmatch(r"\d[\d.e-]*", word)}
    assert {number for number in shown if not re.search(rf"(?<![\w.]){re.escape(number)}(?![\w])", text)} <= _time(page)


def _time(page):
    return set(re.findall(r"\d+(?:-\d+)*", re.search(r"tells, ([\d-]+ [\d:]+) UTC", page)[1]))


def test_a_page_is_written_whole_beside_the_text(folder, tmp_path):
    target = tmp_path / "status.html"
    done = CliRunner().invoke(app, ["federated", "status", str(folder), "--html", str(target)])
    assert done.exit_code == 0 and "is going on, or was interrupted" in done.output
    assert target.read_text().rstrip().endswith("</html>")
    (folder / "run.json").unlink()
    assert "No run is going on." in make_status_page(folder) and 'id="run"' not in make_status_page(folder)
