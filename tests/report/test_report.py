"""The report shows every released value, loads nothing, and survives any name or number."""

from __future__ import annotations

import io
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from rich.console import Console

from sfumato.cli.show import show_document
from sfumato.errors import InputError
from sfumato.forecast.assessment import Verdict
from sfumato.report import Document, Heatmap, LedgerRow, Loading, Spectrum, render
from sfumato.report.charts import loading_chart

NAN, INF = math.nan, math.inf
VOID = {"meta", "link"}
BANNER = "Rehearsal: noise was seeded; this run gives no privacy."
HOSTILE = "<script>alert(\"x\" & 'y')</script>"


@pytest.fixture
def document() -> Document:
    return Document(
        title="Private SIR of blood pressure",
        guarantee="Any one record may be replaced and hardly anything here would change.",
        subtitle="Fifteen features, one curator",
        facts=(("Records", "20,000"), ("Budget", "epsilon 1")),
        loadings=(
            Loading("age", (0.8125, -0.01), (0.031, 0.052)),
            Loading("body mass index", (-0.4375, 0.77), (0.033, 0.054)),
        ),
        spectrum=Spectrum((0.91, 0.36, 0.07), edge=0.123, chosen=2, why="Two lie above the edge."),
        heatmap=Heatmap((-1.0, 0.0, 2.0), (0.0, 5.0, 10.0), ((12.5, -3.25), (0.0, 88.0)), 4.5, "score", "pressure"),
        ledger=(
            LedgerRow("slices", "slice sums", "discrete Gaussian", 1.4142, 17.5, 0.61, 0.75),
            LedgerRow("moments", "second moments", "discrete Gaussian", 2.25, 40.5, None, 0.25),
        ),
        total="Together: epsilon 1 at delta 1e-6.",
        notes=("Bounds were given.",),
        reproduce='PrivateSIR(epsilon=1.0).fit(X, y).report("report.html")',
        rehearsal=False,
    )


class Page(HTMLParser):
    """Collects elements and visible text, and fails on tags that do not nest."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.open = "", list[str]()
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text += data

    def numbers(self, name: str = "data-value") -> set[float]:
        return {float(value) for _, attributes in self.elements if (value := attributes.get(name))}


def test_the_page_loads_nothing(document: Document) -> None:
    page = render(document)
    assert not re.search(r"https?:|@import|url\(|javascript:|<script|<iframe|<img|<object|<base", page, re.I)
    for _, attributes in Page(page).elements:
        assert not {"src", "srcset", "action"} & attributes.keys()
        assert (attributes.get("href") or "#").startswith(("#", "data:"))
    assert "default-src 'none'" in page


def test_every_released_number_can_be_read_back_exactly(document: Document) -> None:
    page = Page(render(document))
    assert document.heatmap is not None
    expected = {value for row in document.loadings for value in row.values}
    expected |= {*document.spectrum.values, document.spectrum.edge}
    expected |= {count for row in document.heatmap.counts for count in row}
    for row in document.ledger:
        expected |= {row.sensitivity, row.noise_std, row.share, *({row.epsilon_alone} - {None})}
    assert expected <= page.numbers()
    assert {error for row in document.loadings for error in row.errors} <= page.numbers("data-error")


def test_every_word_of_the_document_is_on_the_page(document: Document) -> None:
    text = Page(render(document)).text
    words = [
        document.title,
        document.guarantee,
        document.subtitle,
        document.total,
        document.reproduce,
        *document.notes,
    ]
    words += [document.spectrum.why, *(word for fact in document.facts for word in fact)]
    words += [word for row in document.ledger for word in (row.purpose, row.query, row.mechanism)]
    words += [row.feature for row in document.loadings]
    assert [word for word in words if word not in text] == []


def test_no_text_becomes_markup_wherever_it_stands(document: Document) -> None:
    assert document.heatmap is not None
    hostile = replace(
        document,
        title=HOSTILE,
        guarantee=HOSTILE,
        subtitle=HOSTILE,
        facts=((HOSTILE, HOSTILE),),
        loadings=(Loading(HOSTILE, (1.0,), (0.1,)),),
        spectrum=replace(document.spectrum, why=HOSTILE),
        heatmap=replace(document.heatmap, x_label=HOSTILE, y_label=HOSTILE),
        ledger=(replace(document.ledger[0], purpose=HOSTILE, query=HOSTILE, mechanism=HOSTILE),),
        total=HOSTILE,
        notes=(HOSTILE,),
        reproduce=HOSTILE,
    )
    page = render(hostile)
    assert "<script" not in page
    assert Page(page).text.count(HOSTILE) >= 12


def test_ids_are_unique_and_every_reference_has_its_target(document: Document) -> None:
    elements = Page(render(document)).elements
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [(a.get("href") or "")[1:] for tag, a in elements if tag == "a"]
    names = [n for _, a in elements for k in ("aria-labelledby", "aria-describedby") for n in (a.get(k) or "").split()]
    assert {*links, *names} <= set(ids)


def test_every_chart_has_a_name_and_a_description_for_those_who_do_not_see_it(document: Document) -> None:
    charts = re.findall(r"<svg.*?</svg>", render(document), re.S)
    assert len(charts) == document.n_directions + 3
    for root in map(ET.fromstring, charts):
        assert root.get("role") == "img"
        assert [child.tag for child in root][:2] == ["title", "desc"]
        assert root[0].text and root[1].text


def test_tables_have_captions_and_headers_with_a_scope(document: Document) -> None:
    elements = Page(render(document)).elements
    assert sum(tag == "table" for tag, _ in elements) == sum(tag == "caption" for tag, _ in elements) == 5
    assert all(attributes.get("scope") for tag, attributes in elements if tag == "th")


def test_only_a_rehearsal_says_that_it_gives_no_privacy(document: Document) -> None:
    assert BANNER not in render(document)
    rehearsal = render(replace(document, rehearsal=True))
    assert BANNER in rehearsal
    assert "itself a private release" in render(document)
    assert "The guarantee, to quote" not in rehearsal


def test_without_a_heat_map_there_is_no_picture_and_no_link_to_one(document: Document) -> None:
    page = render(replace(document, heatmap=None))
    assert 'id="picture"' not in page
    assert "#picture" not in page


def test_an_empty_report_is_still_a_page(document: Document) -> None:
    empty = replace(
        document,
        facts=(),
        loadings=(),
        spectrum=Spectrum((), 0.0, 0, ""),
        heatmap=None,
        ledger=(),
        notes=(),
        reproduce="",
    )
    assert "No direction was released." in Page(render(empty)).text


def test_what_is_not_finite_is_a_dash_and_never_a_word(document: Document) -> None:
    odd = (NAN, INF, -INF)
    broken = replace(
        document,
        loadings=tuple(Loading(f"x{i}", (value, 0.5), (0.1, value)) for i, value in enumerate(odd)),
        spectrum=Spectrum(odd, edge=NAN, chosen=1, why=""),
        heatmap=Heatmap((0, 1), (0, 1, 2, 3), (odd,), NAN, "x", "y"),
        ledger=tuple(LedgerRow("p", "q", "m", value, value, value, value) for value in odd),
    )
    page = render(broken)
    body = page[page.index("<body") :]
    assert re.search(r"\b(nan|inf|infinity)\b", body, re.I) is None
    assert body.count("—") > 12


@pytest.mark.parametrize("name", ["", "\x00\x1b", "\ud800", "年齢" * 40, "a\u0301" * 99, "مؤشر", "]]>", "--><b>"])
def test_any_name_gives_a_well_formed_chart_and_page(document: Document, name: str) -> None:
    loadings = (Loading(name, (1.0, 0.0), (0.1, 0.1)),)
    ET.fromstring(loading_chart(loadings, 0).encode())
    Page(render(replace(document, loadings=loadings, title=name))).text.encode()


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (lambda: Loading("x", (1.0,), ()), "errors"),
        (lambda: Heatmap((0,), (0, 1), (), 1.0, "x", "y"), "x_edges"),
        (lambda: Heatmap((0, 1), (0, INF), ((1.0,),), 1.0, "x", "y"), "y_edges"),
        (lambda: Heatmap((0, 1), (1, 0), ((1.0,),), 1.0, "x", "y"), "y_edges"),
        (lambda: Heatmap((0, 1), (0, 1), ((1.0, 2.0),), 1.0, "x", "y"), "counts"),
        (lambda: Spectrum((1.0,), 0.5, 2, ""), "chosen"),
    ],
)
def test_shapes_that_do_not_fit_are_refused_by_name(build: object, name: str) -> None:
    assert callable(build)
    with pytest.raises(InputError, match=name):
        build()


def test_loadings_of_different_lengths_are_refused(document: Document) -> None:
    with pytest.raises(InputError, match="loadings"):
        replace(document, loadings=(Loading("a", (1.0,), (0.1,)), Loading("b", (), ())))


def test_directions_that_differ_in_level_say_theirs(document):
    sentence = "The first direction would come out nearly the same on a fresh sample; the second would not."
    judged = replace(document, verdict=Verdict("weak", sentence, ("reliable", "weak")))
    text = Page(render(judged)).text
    assert "Reliable in part." in text and sentence in text
    assert "Direction 1: reliable" in text and "Direction 2: weak" in text
    alike = replace(document, verdict=Verdict("weak", sentence, ("weak", "weak")))
    assert "Direction 1: weak" not in Page(render(alike)).text
    console = Console(width=120, record=True, file=io.StringIO())
    show_document(console, judged, "fit", ())
    shown = console.export_text()
    assert "Reliable in part. The first" in shown and "direction 2 · weak" in shown
