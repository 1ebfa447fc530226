"""The charts draw what they are given, to scale and inside their frame, at any size."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from sfumato.report import Heatmap, LedgerRow, Loading, Spectrum
from sfumato.report.charts import heatmap_chart, ledger_chart, loading_chart, spectrum_chart
from sfumato.report.document import figure, figures
from sfumato.report.svg import RAMP, shorten, shorten_each, ticks

NAN = math.nan


def numbers_of(chart: str, name: str = "data-value") -> list[float]:
    return [float(value) for element in ET.fromstring(chart).iter() if (value := element.get(name))]


def coordinates_of(chart: str) -> list[float]:
    keys = {"x", "y", "width", "height", "x1", "x2", "y1", "y2"}
    return [float(v) for element in ET.fromstring(chart).iter() for k, v in element.items() if k in keys]


def assert_drawn_inside(chart: str) -> None:
    _, _, width, height = map(float, ET.fromstring(chart).attrib["viewBox"].split())
    assert all(0 <= place <= max(width, height) for place in coordinates_of(chart))
    for bar in ET.fromstring(chart).iter("rect"):
        assert float(bar.get("x", 0)) + float(bar.attrib["width"]) <= width + 0.02
        assert float(bar.get("y", 0)) + float(bar.attrib["height"]) <= height + 0.02


@pytest.mark.parametrize("size", [0.0, 5e-324, 1e-9, 1.0, 1e12, 1.7e308])
@pytest.mark.parametrize("count", [0, 1, 2, 200])
def test_charts_stay_in_their_frame_at_any_size(count: int, size: float) -> None:
    values = tuple(size * (-1) ** i / (i + 1) for i in range(count))
    loadings = [Loading(f"feature {i}", (value,), (size,)) for i, value in enumerate(values)]
    spectrum = Spectrum(values, edge=size, chosen=count // 2, why="")
    heatmap = Heatmap((-1e300, 1e300), tuple(map(float, range(count + 2))), ((*values, size),), size, "x", "y")
    rows = [LedgerRow("p", "q", "m", 1.0, 1.0, None, value) for value in values]
    for chart in (
        loading_chart(loadings, 0),
        spectrum_chart(spectrum),
        heatmap_chart(heatmap),
        ledger_chart(rows),
    ):
        assert_drawn_inside(chart)
    assert numbers_of(loading_chart(loadings, 0)) == list(values)


def test_bars_start_at_zero_and_are_as_long_as_their_values() -> None:
    chart = loading_chart([Loading("a", (0.5,), (0.0,)), Loading("b", (-1.0,), (0.0,))], 0)
    long, short = (bar.attrib for bar in reversed(list(ET.fromstring(chart).iter("rect"))))
    assert float(long["width"]) == pytest.approx(2 * float(short["width"]), abs=0.02)
    assert float(long["x"]) + float(long["width"]) == pytest.approx(float(short["x"]), abs=0.02)


def test_all_directions_share_one_scale() -> None:
    rows = [Loading("a", (0.5, -0.5), (0.0, 0.0)), Loading("b", (0.1, 0.1), (0.0, 0.0))]
    first, second = (next(ET.fromstring(loading_chart(rows, k)).iter("rect")).attrib["width"] for k in (0, 1))
    assert first == second


def test_a_huge_error_does_not_squash_the_bars_of_the_others() -> None:
    chart = loading_chart([Loading("a", (1.0,), (0.1,)), Loading("b", (0.2,), (1e9,))], 0)
    assert float(next(ET.fromstring(chart).iter("rect")).attrib["width"]) > 30


def test_bars_within_two_errors_of_zero_or_of_unknown_error_are_pale() -> None:
    rows = [
        Loading("clear", (0.5,), (0.1,)),
        Loading("unclear", (0.5,), (0.3,)),
        Loading("unknown", (0.5,), (NAN,)),
    ]
    bars = [bar.attrib["style"] for bar in ET.fromstring(loading_chart(rows, 0)).iter("rect")]
    assert ["opacity" in style for style in bars] == [False, True, True]


def test_a_long_name_is_cut_but_kept_in_full_beside() -> None:
    name = "systolic blood pressure at the second visit " * 5
    root = ET.fromstring(loading_chart([Loading(name, (1.0,), (0.1,))], 0))
    labels = [text.text or "" for text in root.iter("text")]
    assert any(label.startswith("systolic") and label.endswith("…") and len(label) < 20 for label in labels)
    assert any(name in (title.text or "") for title in root.iter("title"))


def test_counts_below_zero_look_like_zero_and_the_largest_is_the_darkest() -> None:
    chart = heatmap_chart(Heatmap((0, 1, 2, 3), (0, 1), ((-50.0,), (0.0,), (7.0,)), 3.0, "x", "y"))
    cells = [cell.attrib for cell in ET.fromstring(chart).iter("rect") if "data-value" in cell.attrib]
    assert [cell["data-value"] for cell in cells] == ["-50.0", "0.0", "7.0"]
    assert RAMP[0] in cells[0]["style"] and cells[0]["style"] == cells[1]["style"]
    assert RAMP[-1] in cells[2]["style"]


def test_x_runs_right_and_y_runs_up() -> None:
    chart = heatmap_chart(Heatmap((0, 1, 3), (0, 1, 2), ((1.0, 2.0), (3.0, 4.0)), 1.0, "x", "y"))
    cells = {c.attrib["data-value"]: c.attrib for c in ET.fromstring(chart).iter("rect") if "data-value" in c.attrib}
    assert float(cells["3.0"]["x"]) > float(cells["1.0"]["x"])
    assert float(cells["2.0"]["y"]) < float(cells["1.0"]["y"])
    assert float(cells["3.0"]["width"]) == pytest.approx(2 * float(cells["1.0"]["width"]), abs=0.02)


def test_the_ramp_darkens_in_equal_steps() -> None:
    def lightness(colour: str) -> float:  # OKLab, Ottosson 2020
        srgb = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in srgb)
        long = math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b)
        medium = math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b)
        short = math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b)
        return 0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short

    steps = [lightness(a) - lightness(b) for a, b in pairwise(RAMP)]
    assert steps == pytest.approx([0.7 / 15] * 15, abs=0.004)


def test_shares_fill_the_bar_in_proportion() -> None:
    rows = [LedgerRow("p", "q", "m", 1.0, 1.0, None, share) for share in (0.25, 0.5)]
    bars = [float(bar.attrib["width"]) for bar in ET.fromstring(ledger_chart(rows)).iter("rect")]
    assert bars == pytest.approx([440, 110, 220])


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-4, 4), (1000.1, 1000.3), (0, 0), (-1e300, 1e300), (3e-9, 8e-9)])
def test_ticks_are_few_inside_the_axis_and_read_differently(low: float, high: float) -> None:
    marks = ticks(low, high)
    assert 1 <= len(marks) <= 5
    assert all(low - 1e-9 * abs(low) <= at <= high + 1e-9 * abs(high) for at, _ in marks)
    assert len({label for _, label in marks}) == len(marks)


def test_numbers_read_well() -> None:
    assert [figure(v) for v in (0, 0.99999, -1234.5, 1e6, 2e-5)] == [
        "0",
        "1.00",
        "−1,234",
        "1.00×10⁶",
        "2.00×10⁻⁵",
    ]
    assert figures([10.0, -0.001, NAN]) == ("10.0", "0.0", "—")
    assert figures([]) == ()


@pytest.mark.parametrize("letter", ["i", "a", "M", "年"])
def test_wide_letters_are_cut_earlier_and_all_fit(letter: str) -> None:
    kept = shorten(letter * 99, 100)
    assert kept.endswith("…")
    assert len(kept) <= {"i": 19, "a": 13, "M": 9, "年": 9}[letter]
    assert shorten(letter * 8, 100) == letter * 8


def test_long_names_that_begin_alike_can_be_told_apart():
    names = [f"a rather long name of measurement {j} (mmol/l)" for j in range(60)] + ["age", "a rather long name"]
    shown = shorten_each(names, 124)
    assert len(set(shown)) == len(names) and shown[-2] == "age"
    chart = loading_chart([Loading(name, (0.1,), (0.1,)) for name in names], 0)
    assert all(f">{short}<" in chart for short in shown)
