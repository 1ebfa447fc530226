"""The report in a real browser: its numbers, its keys, its colours, its print."""

import base64
from pathlib import Path

import numpy as np
import pytest
from tests.browser.chromium import Tab, browsing, needs_chromium

from sfumato import Bounds, PrivateSIR
from sfumato.report.build import build_document

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def fitted() -> PrivateSIR:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(4000, 5))
    y = x[:, 0] - 0.7 * x[:, 1] + 0.3 * rng.normal(size=4000)
    return PrivateSIR(bounds=Bounds(-5, 5), picture=True).fit(x, y)


@pytest.fixture(scope="module")
def browser():
    with browsing() as tab:
        yield tab


@pytest.fixture
def page(browser, fitted, tmp_path) -> Tab:
    browser.look()
    path: Path = fitted.report(tmp_path / "report.html")
    browser.open(path.as_uri())
    return browser


def values(page: Tab, selector: str, name: str = "value") -> list[float]:
    return page.js(f"[...document.querySelectorAll('{selector}')].map(e => Number(e.dataset.{name}))")


def test_every_chart_shows_the_numbers_of_the_model(page, fitted):
    shown = build_document(fitted)
    loadings = [row.values[k] for k in range(shown.n_directions) for row in shown.loadings]
    assert values(page, ".loading rect") == loadings
    assert values(page, ".loading rect", "error") == [
        row.errors[k] for k in range(shown.n_directions) for row in shown.loadings
    ]
    assert values(page, ".spectrum rect") == fitted.choice_.singular_values.tolist()
    assert values(page, ".spectrum .edge") == [fitted.choice_.edge]
    assert values(page, ".cells rect") == fitted.picture_.counts.ravel().tolist()
    assert sum(values(page, ".shares rect[data-value]")) == pytest.approx(1.0)
    assert values(page, ".whatif circle") == [value for row in shown.what_if.losses for value in row]


def test_what_is_drawn_is_to_scale(page, fitted):
    """Pixels on the screen, not attributes: bar lengths are proportional to loadings, columns to singular values."""
    widths = page.js("[...document.querySelectorAll('.loading rect')].map(e => e.getBoundingClientRect().width)")
    loadings = np.abs([row.values[0] for row in build_document(fitted).loadings])
    np.testing.assert_allclose(np.array(widths[:5]) / max(widths[:5]), loadings / loadings.max(), atol=0.01)
    heights = page.js("[...document.querySelectorAll('.spectrum rect')].map(e => e.getBoundingClientRect().height)")
    singular = fitted.choice_.singular_values
    np.testing.assert_allclose(np.array(heights) / max(heights), singular / singular.max(), atol=0.01)


def test_the_page_asks_for_nothing_and_complains_of_nothing(page):
    assert [each for each in page.requests if not each.startswith(("file:", "data:"))] == []
    assert sum(each.startswith("file:") for each in page.requests) == 1
    assert page.complaints == []


def test_every_control_is_reached_by_the_keyboard_in_order_and_its_focus_is_seen(page):
    expected = page.js("document.querySelectorAll('a[href], summary').length")
    page.js("document.querySelectorAll('details').forEach(d => d.open = true)")
    places, seen = [], 0
    for _ in range(60):
        page.press("Tab", 9)
        at = page.js(
            """(() => { const e = document.activeElement; if (!e || e === document.body) return null;
            const s = getComputedStyle(e); return [e.tagName, [...document.querySelectorAll('*')].indexOf(e),
            s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2, e.getBoundingClientRect().left >= 0]; })()"""
        )
        if at is None or (places and at[1] <= places[-1]):
            break
        assert at[2] and at[3], at
        places.append(at[1])
        seen += at[0] in ("A", "SUMMARY")
    assert seen == expected
    regions = page.js(
        "[...document.querySelectorAll('[tabindex=\"0\"]')].map(e => [...document.querySelectorAll('*')].indexOf(e))"
    )
    assert set(regions) <= set(places)  # what scrolls can be scrolled without a mouse


def test_enter_opens_the_numbers_behind_a_chart(page):
    page.js("document.querySelector('summary').focus()")
    page.press("Enter", 13)
    assert page.js("document.querySelector('details').open") is True


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_enough_contrast(scheme, page):
    page.look(scheme=scheme)
    page.js("document.querySelectorAll('details').forEach(d => d.open = true)")
    ratios = page.contrasts("main p, main td, main th, main dt, main dd, h1, h2, h3, a, summary, li, pre")
    assert len(ratios) > 60 and min(ratios) >= 4.5  # WCAG 2.2, level AA
    ground = page.js("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 150) == (scheme == "dark")


@pytest.mark.parametrize("width", [320, 768, 1600])
def test_nothing_is_cut_off_at_any_width(width, page):
    page.look(width=width)
    assert page.js("document.documentElement.scrollWidth") <= width


def test_it_prints_in_the_light_without_navigation(page):
    page.look(media="print", scheme="dark")
    assert page.js("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert page.js("getComputedStyle(document.body).color") == "rgb(35, 38, 43)"
    pdf = base64.b64decode(page.send("Page.printToPDF", printBackground=True)["data"])
    assert pdf.startswith(b"%PDF") and 2 <= pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") <= 6
