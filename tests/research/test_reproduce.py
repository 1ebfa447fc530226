"""Published tables: all are listed, each row runs, what is finished is kept."""

import json
import re
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from sfumato import SIR, InputError, subspace_distance
from sfumato.cli.reproduce import reproduce
from sfumato.research import run
from sfumato.research import study as catalogue
from sfumato.research.pages import colours, drawing, page, verdict
from sfumato.research.printed_noise import step_noise
from sfumato.research.study import Row, printed_table, summarise
from sfumato.research.xia_tables import (
    fixed_coefficients,
    high_dimension,
    high_fits,
    low_dimension,
    low_fits,
    sir_with_chosen,
    slice_study,
)
from sfumato.simulate import xia

app = typer.Typer()
app.command()(reproduce)
LOW = {
    "SIR",
    "DP-SIR full batch",
    "sfumato",
    "k-hat paper",
    "k-hat tight",
    "SIR, k chosen",
    "k-hat without privacy",
} | {f"DP-{m} {c}" for m in ("Ini", "SIR", "RF") for c in ("paper", "tight")}
HIGH = {"Oracle-SIR", "sfumato"} | {f"DP-{m} {c}" for m in ("SIni", "SSIR", "TRF") for c in ("paper", "tight")}


@pytest.fixture
def small(monkeypatch):
    """The first study with two small rows, known under its own name."""
    study = run.STUDIES["xia-slices"]
    study = replace(study, rows=study.rows[:2])
    monkeypatch.setitem(run.STUDIES, study.name, study)
    return study


PRINTED = {
    catalogue.FIRST: {"Table 1", "Table 2", "Table 3", "Figure 1", "Figure 2"},
    catalogue.NEWEST: {"Table 1", "Table 2", "Table 3", "Figure 1", "Figure 2"}
    | {f"Figure C.{number}" for number in range(1, 13)},
    catalogue.FSIR: {f"Table {number}" for number in range(1, 5)} | {f"Figure {number}" for number in range(1, 7)},
    catalogue.GEP: {"Experiments"},
    catalogue.IHT: {"Experiments"},
}
"""The tables and figures that the papers have captions for; the last two have none."""


def test_every_table_and_figure_is_listed_with_a_verdict_and_a_reason():
    shown = CliRunner().invoke(app, ["--list"]).output
    assert {paper: {item.name for item in items} for paper, items in catalogue.by_paper()} == PRINTED
    assert Counter((item.paper, item.name) for item in catalogue.ITEMS).most_common(1)[0][1] == 1
    for item in catalogue.ITEMS:
        assert item.verdict in get_args(catalogue.Verdict) and item.why and item.why in shown
        assert item.study in run.STUDIES or not item.study
    assert all(name in shown and study.title in shown for name, study in run.STUDIES.items())


def test_what_is_said_to_have_run_has_a_page_and_what_has_not_says_so():
    pages = {path.stem for path in (Path(__file__).parents[2] / "docs/reproductions").glob("*.md")}
    for item in catalogue.ITEMS:
        if item.study:
            assert item.study in pages, item


def test_every_page_is_of_one_run_with_bootstrapped_errors():
    """A page that is edited by hand, or whose columns are of several runs, would have to say so."""
    for path in (Path(__file__).parents[2] / "docs/reproductions").glob("*.md"):
        text, study = path.read_text(encoding="utf-8"), run.STUDIES[path.stem]
        assert re.search(r"`: (mean|median) over \d+ replications ± bootstrap standard error\.\n", text), path
        assert text.startswith(f"# {study.title}\n\n{study.note}\n\n"), path
        assert not re.search(r"^\*[^ ]", text, re.MULTILINE), path


def test_rows_that_are_said_to_be_reached_are_those_of_the_committed_pages():
    said = 0
    for item in catalogue.ITEMS:
        for count, rows, column in re.findall(r"(\d+) of (\d+) rows of (\S+) are reached", item.why):
            text = (Path(__file__).parents[2] / f"docs/reproductions/{item.study}.md").read_text(encoding="utf-8")
            line = next(line for line in text.splitlines() if line.startswith(f"* {column}: "))
            assert f"{count} of {rows} rows reach the printed value" in line
            said += 1
    assert said == 8  # both columns of the four tables of FSIR


def committed(name):
    """Values of the committed page of a study, by the name of the row and by column."""
    text = (Path(__file__).parents[2] / f"docs/reproductions/{name}.md").read_text(encoding="utf-8")
    lines = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {
        row[0]: dict(zip(lines[0][1:], (float(cell.split()[0]) for cell in row[1:]), strict=True)) for row in lines[2:]
    }


def measured_slices(model, figures):
    """Columns of the committed page of private slices, of the rows of these figures."""
    rows = [values for label, values in committed("xia-slices").items() if label.startswith(f"{figures}: {model} ")]
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_figure_2_of_fsir_shows_what_its_text_says():
    for label, angle in committed("fsir-figure-2").items():
        assert angle["MVG as printed"] < angle["IID as printed"], label
        if "n=50000" in label:
            assert angle["MVG as printed"] < 1.1 * angle["SIR, no privacy"]


def test_figure_4_of_fsir_shows_what_its_text_says():
    found = committed("fsir-figure-4")
    assert len(found) == 48 and all(angle["MVG as printed"] < angle["IID as printed"] for angle in found.values())


def test_figure_3_of_fsir_shows_what_its_text_says_but_for_few_records():
    angles = committed("fsir-figure-3")
    assert all(angle["MVG as printed"] < angle["IID as printed"] for angle in angles.values())
    for n, epsilon, column in product((200, 500, 1000, 1500), ("0.5", "1"), ("IID as printed", "MVG as printed")):
        by_sites = [angles[f"I n={n} K={sites} epsilon={epsilon}"][column] for sites in (2, 10, 50, 200)]
        assert by_sites == sorted(by_sites, reverse=True)


@pytest.mark.parametrize("model", ["M1", "M3"])
def test_the_figures_of_private_slices_show_what_their_text_says(model):
    """Private against quantiles; a hundredth is allowed for 200 replications where a curve is said to be constant."""
    gap, loss = "eigen-gap, private slices", "loss, private slices"
    records = measured_slices(model, "C.2, C.3")
    for what in ("eigen-gap", "loss"):
        apart = [
            abs(a / b - 1)
            for a, b in zip(records[f"{what}, private slices"], records[f"{what}, quantiles"], strict=True)
        ]
        assert apart[0] > apart[-1] and apart[-1] < 0.035
    assert abs(records[gap][3] / records["eigen-gap, quantiles"][3] - 1) < 0.01  # n = 2000; the text: 4 and 6 %
    epsilon = measured_slices(model, "C.4, C.5")
    assert epsilon[gap][0] < epsilon[gap][1] < epsilon[gap][2] and np.ptp(epsilon[gap][2:]) < 0.01
    assert epsilon[loss][0] > epsilon[loss][1] > epsilon[loss][2] - 0.01 and np.ptp(epsilon[loss][2:]) < 0.01
    strict, loose = measured_slices(model, "C.6, C.7"), measured_slices(model, "C.8, C.9")
    assert (
        strict[gap][0] < max(strict[gap]) > strict[gap][-1] and strict[loss][0] > min(strict[loss]) < strict[loss][-1]
    )
    assert loose[gap][0] < loose[gap][2] and np.ptp(loose[gap][3:]) < 0.01
    assert loose[loss][0] > loose[loss][2] and np.ptp(loose[loss][3:]) < 0.01
    slices = measured_slices(model, "C.10, C.11")
    assert slices[gap] == sorted(slices[gap]) and slices[loss] == sorted(slices[loss], reverse=True)
    assert slices[gap][1] - slices[gap][0] > slices[gap][3] - slices[gap][1]


@pytest.mark.parametrize(("source", "table"), [("002", 1), ("002", 2), ("000", 1), ("000", 2)])
def test_every_printed_table_has_sixteen_rows_of_four_methods(source, table):
    rows = printed_table(source, table)
    assert len(rows) == 16 and all(len(values) == 4 + (source == "002") for values in rows.values())
    assert ("k-hat" in next(iter(rows.values()))) == (source == "002")


def test_a_replication_of_table_1_measures_every_column():
    measured = low_dimension("M1", 4000, 5, "newest", 0)
    assert set(measured) == LOW
    assert all(0 <= value <= 1.4143 for name, value in measured.items() if not name.startswith("k-hat"))
    assert measured["k-hat tight"] == 1.0
    assert measured["sfumato"] < measured["DP-SIR paper"]


def test_a_replication_of_table_2_measures_every_column():
    measured = high_dimension("M3", 1500, 60, "first", 0)
    assert set(measured) == HIGH and all(0 <= value <= 2.0 + 1e-9 for value in measured.values())


def test_private_slices_hardly_change_the_eigen_gap_at_large_epsilon():
    measured = slice_study("M1", 1000, 10.0, 100, 10, 0)
    assert measured["eigen-gap, private slices"] == pytest.approx(measured["eigen-gap, quantiles"], rel=0.1)


def test_printed_noise_is_useless_in_the_first_row_as_the_errata_say():
    """Errata: with the noise of Lemma B.1 the measured mean loss of DP-Ini is 1.37, printed 0.237."""
    measured = [low_dimension("M1", 20_000, 15, "newest", seed)["DP-Ini paper"] for seed in range(3)]
    assert sum(measured) / 3 > 0.9


def test_a_run_goes_on_where_it_stopped(small, tmp_path):
    cache = tmp_path / "kept.jsonl"
    first = list(run.execute(small, 1, cache, 1))[-1]
    kept = cache.read_text()
    cache.write_text(kept + '{"study": "xia-sli')  # cut short
    steps = list(run.execute(small, 2, cache, 1))
    assert len(first) == 2 and len(steps) == 1 + 2  # what was kept, then two new replications
    assert {key: steps[-1][key] for key in first} == first


def test_rows_beyond_the_wanted_replications_do_not_enter_the_table(small, tmp_path):
    cache = tmp_path / "kept.jsonl"
    lines = [
        {"study": small.name, "row": row.label, "seed": s, "values": {"a": s}} for row in small.rows for s in (0, 1)
    ]
    cache.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = CliRunner().invoke(app, [small.name, "--replications", "1", "--cache", str(cache)])
    assert result.exit_code == 0 and "0.000 ± nan" in result.output


def test_the_command_writes_a_page_that_loads_nothing(small, tmp_path):
    options = [
        "--replications",
        "2",
        "--processes",
        "1",
        "--cache",
        str(tmp_path / "c"),
        "--html",
        str(tmp_path / "t.html"),
    ]
    result = CliRunner().invoke(app, [small.name, *options])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "t.html").read_text()
    assert small.rows[0].label in text and "<svg" in text and "http" not in text.replace("http-equiv", "")


def test_the_markdown_page_names_the_picture_beside_it_which_is_a_drawing_of_every_row(small, tmp_path):
    where = {"--cache": tmp_path / "c", "--markdown": tmp_path / "m.md", "--replications": 2, "--processes": 1}
    result = CliRunner().invoke(app, [small.name, *(str(word) for pair in where.items() for word in pair)])
    assert result.exit_code == 0, result.output
    assert "](m.svg)" in (tmp_path / "m.md").read_text()
    root = ElementTree.fromstring((tmp_path / "m.svg").read_text())
    words = {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {row.label for row in small.rows} <= words


def test_this_package_has_one_colour_in_every_picture_and_nobody_else_has_it():
    few, many = colours(["SIR", "sfumato"]), colours([*map(str, range(12)), "sfumato"])
    assert few["sfumato"] == many["sfumato"]
    assert list(many.values()).count(many["sfumato"]) == 1


def test_a_count_is_in_the_table_and_not_on_the_axis_of_losses():
    study = run.STUDIES["riboflavin"]
    done = {(row.label, seed): {"sfumato": 0.3, "features kept": 8.0} for row in study.rows for seed in (0, 1)}
    results = run.Results(study, done)
    assert "features kept" not in drawing(results) and "features kept" in results.table()[0]


def test_an_empty_page_is_still_a_page(small):
    assert page(run.Results(small, {}), "x").count("<tr>") == 3


def test_an_unknown_study_is_refused_by_name():
    with pytest.raises(InputError, match="xia-table-1"):
        run.find("xia-table-9")


def test_a_median_is_summarised_as_one():
    assert summarise([1.0, 2.0, 9.0], "median").value == 2.0


def test_standard_errors_hold_for_samples_of_two_peaks_and_agree_with_theory_for_normal_ones():
    """Half the distances exactly 0, half 1.4: the median jumps between them, which 1.25 times that of a mean hides."""
    peaks = summarise([0.0] * 51 + [1.4] * 49, "median")
    assert peaks.value == 0.0 and peaks.error > 0.5
    normal = np.random.default_rng(0).normal(size=400)
    for statistic, factor, tolerance in (("mean", 1.0, 0.15), ("median", 1.2533, 0.3)):
        assert summarise(normal, statistic).error == pytest.approx(factor / 20, rel=tolerance)
    assert summarise([0.3] * 20, "median").error < 1e-12


def test_every_figure_of_private_slices_has_its_panel_of_gap_and_loss():
    labels = " ".join(row.label for row in run.STUDIES["xia-slices"].rows)
    assert all(f"C.{number}" in labels for number in range(2, 12))
    assert set(slice_study("M3", 300, 1.0, 20, 5, 0)) == {
        f"{what}, {slices}" for what in ("eigen-gap", "loss") for slices in ("quantiles", "private slices")
    }


def test_the_verdict_names_rows_that_are_not_reached_and_rows_where_tight_noise_is_worse():
    rows = (Row("a", (), {"M": 0.2, "N": 0.5}), Row("b", (), {"M": 0.3}))
    study = replace(run.STUDIES["xia-slices"], rows=rows)
    measured = {"a": {"M paper": 1.0, "M tight": 0.5, "N paper": 0.4}, "b": {"M paper": 0.2, "M tight": 0.6}}
    done = {(row, seed): {k: v + 0.001 * seed for k, v in measured[row].items()} for row in "ab" for seed in (0, 1)}
    first, second, tight = verdict(run.Results(study, done))
    assert first.startswith("M: printed 0.200 to 0.300") and "1 of 2 rows reach" in first
    assert "1 of 1 rows reach" in second
    assert "1 of 2 comparisons; not so: M in b" in tight


def test_a_study_without_printed_noise_or_of_other_data_has_no_verdict():
    assert verdict(run.Results(run.STUDIES["xia-slices"], {})) == []
    table = run.STUDIES["xia-table-3"]  # an adjusted R^2 is no distance
    assert verdict(run.Results(table, {(row.label, 0): {"DP-SSIR paper": 0.1} for row in table.rows})) == []


@pytest.mark.parametrize(("version", "low", "high"), [("newest", 20, 10), ("first", 4, 4)])
def test_each_version_of_the_paper_is_run_with_its_own_slices_and_noise(version, low, high):
    printed = "paper" if version == "newest" else "first"
    for fits, slices in ((low_fits(version, 2000, 1), low), (high_fits(version, 2000, 1), high)):
        assert {fit.n_slices for name, fit in fits.items() if name != "sfumato"} == {slices}
        assert {fit.calibration for name, fit in fits.items() if name.endswith("paper")} == {printed}


def test_four_slices_give_the_first_versions_loss_of_sir_and_twenty_do_not():
    """M1 (20000, 20), median: printed 0.035."""
    losses = {4: [], 20: []}
    for seed in range(9):
        sample = xia("M1", n=20_000, p=20, version="first", random_state=seed)
        for slices, found in losses.items():
            fit = SIR(n_directions=1, n_slices=slices).fit(sample.x, sample.y)
            found.append(subspace_distance(fit.directions_, sample.directions))
    assert 0.025 < np.median(losses[4]) < 0.04 and np.median(losses[20]) < 0.023


def test_the_first_versions_sparse_steps_have_a_small_part_of_the_newest_ones_noise():
    n, picks = 2000, 6
    newest, first = (step_noise(n, 1000, 1, 0.25, 1.0, n**-1.1, picks, first) for first in (False, True))
    assert (newest.steps, first.steps) == (7, 8)
    assert 40 < newest.rows / first.rows < 60 and 40 < newest.peeling / first.peeling < 60 and first.laplace
    low = [step_noise(n, 20, 2, 0.25, 1.0, n**-1.1, None, first) for first in (False, True)]
    per_step = [noise.rows / (noise.steps**2 * np.sqrt(np.log(1.25 * noise.steps * n**1.1))) for noise in low]
    assert per_step[0] / per_step[1] == pytest.approx(np.sqrt(2))  # sqrt(k)


def test_the_verdict_counts_rows_of_every_table_with_their_standard_errors():
    """Labels of Xia's tables have commas; without privacy is no rival; a difference within two errors is none."""
    rows = tuple(
        Row(f"M1 ({n}, 15)", (), {"SIR": 0.01, "DP-SIR": printed})
        for n, printed in ((1, 0.9), (2, 0.1), (3, 0.21), (4, 0.2))
    )
    rows += (Row("M1, read otherwise", (), {"DP-SIR": 0.9}, beside=True),)
    study = replace(run.STUDIES["xia-table-1"], rows=rows)
    done = {(row.label, seed): {"sfumato": 0.2 + 0.01 * (-1) ** seed} for row in rows for seed in range(10)}
    (sentence,) = verdict(run.Results(study, done))
    assert sentence == (
        "sfumato is below the best private value printed in 2 of 4 rows (two standard errors); "
        "within two standard errors of it: M1 (4, 15); above it: M1 (2, 15)."
    )


def test_printed_values_are_marked_by_two_standard_errors_and_coloured():
    rows = tuple(Row(label, (), {"M": 0.2}) for label in ("same", "lower", "higher", "once"))
    study = replace(run.STUDIES["xia-slices"], rows=rows)
    centre = {"same": 0.21, "lower": 0.1, "higher": 0.3, "once": 0.2}
    done = {(row, seed): {"M paper": at + 0.02 * (-1) ** seed} for row, at in centre.items() for seed in range(10)}
    done = {key: values for key, values in done.items() if key[0] != "once" or key[1] == 0}
    _, shown = run.Results(study, done).table()
    assert [row[1] for row in shown] == ["0.200 ✓", "0.200 ↓", "0.200 ✗", "0.200"]
    text = page(run.Results(study, done), "x")
    assert all(f"<td class='{mark}'>0.200" in text and f".{mark}{{" in text for mark in ("same", "lower", "higher"))
    assert run.LEGEND in text and run.LEGEND in run.markdown(run.Results(study, done), "x", "x.svg")


def test_values_printed_for_another_table_are_not_marked():
    study = run.STUDIES["xia-table-3"]
    done = {(study.rows[0].label, seed): {"DP-SSIR paper": 0.747} for seed in range(5)}
    assert not run.Results(study, done).marks


def test_a_column_without_noise_is_said_to_come_out_or_not():
    rows = (Row("a", (), {"SIR": 0.2}), Row("b", (), {"SIR": 0.2}), Row("c", (), {"SIR": 0.2}, beside=True))
    study = replace(run.STUDIES["xia-slices"], rows=rows)
    done = {(row, seed): {"SIR": at + 0.01 * (-1) ** seed} for row, at in (("a", 0.2), ("b", 0.5)) for seed in (0, 1)}
    (sentence,) = verdict(run.Results(study, done))
    assert sentence.endswith("the same within two standard errors in 1 of 2 rows, lower in 0, higher in 1.")


def test_a_replication_after_a_line_that_was_cut_short_is_not_lost_with_it(small, tmp_path):
    cache = tmp_path / "kept.jsonl"
    cache.write_text('{"study": "xia-sli')
    done = list(run.execute(small, 1, cache, 1))[-1]
    assert len(done) == 2 and run.load(cache, small) == done


def test_a_row_whose_arguments_changed_is_run_anew(small, tmp_path):
    cache = tmp_path / "kept.jsonl"
    list(run.execute(small, 1, cache, 1))
    first, *others = small.rows
    changed = replace(small, rows=(replace(first, arguments=("M1", 300, 1.0, 20, 5)), *others))
    assert set(run.load(cache, small)) == {(row.label, 0) for row in small.rows}
    assert set(run.load(cache, changed)) == {(row.label, 0) for row in others}


@pytest.fixture
def few(small, monkeypatch):
    """All studies without rows, so that they run in no time, but for one."""
    for name, study in run.STUDIES.items():
        if name != small.name:
            monkeypatch.setitem(run.STUDIES, name, replace(study, rows=()))
    return small


def test_all_studies_run_in_rounds_into_one_index_and_go_on(few, tmp_path):
    folder = tmp_path / "all"
    options = ["--all", "--folder", str(folder), "--processes", "1", "--replications"]
    assert CliRunner().invoke(app, [*options, "1"]).exit_code == 0
    first = (folder / f"{few.name}.jsonl").read_text()
    result = CliRunner().invoke(app, [*options, "3"])
    assert result.exit_code == 0, result.output
    kept = (folder / f"{few.name}.jsonl").read_text()
    assert kept.startswith(first) and len(kept.splitlines()) == 3 * len(few.rows)
    index = (folder / "index.html").read_text()
    assert f"<a href='{few.name}.html'>{few.name}</a>, 3 replications" in index
    assert "riboflavin: needs its table" in index and "http" not in index.replace("http-equiv", "")
    assert all(item.name in index and item.paper.split("(")[0].strip() in index for item in catalogue.ITEMS)
    assert few.rows[0].label in (folder / f"{few.name}.html").read_text()


@pytest.mark.parametrize("more", [["xia-slices"], ["--html", "x.html"], ["--list"]])
def test_all_takes_nothing_that_is_for_one_study(more, tmp_path):
    result = CliRunner().invoke(app, ["--all", "--folder", str(tmp_path / "all"), *more])
    assert isinstance(result.exception, InputError) and "leave out" in str(result.exception)
    assert not (tmp_path / "all").exists()


def test_all_wants_a_folder_of_tables(tmp_path):
    (tmp_path / "t.csv").write_text("y\n1\n")
    for wrong in (["--data", str(tmp_path / "t.csv")], ["--folder", str(tmp_path / "t.csv")]):
        result = CliRunner().invoke(app, ["--all", *wrong])
        assert isinstance(result.exception, InputError)
    study = run.STUDIES["riboflavin"]
    (tmp_path / "riboflavin.csv").write_text("y\n1\n")
    assert run.table_in(tmp_path, study) == tmp_path / "riboflavin.csv" and run.table_in(None, study) is None


def test_coefficients_with_a_seed_of_their_own_stay_while_records_change():
    one, other, third = (xia("M4", 50, 4, coefficients=c, random_state=s) for c, s in ((3, 0), (3, 1), (4, 0)))
    np.testing.assert_array_equal(one.directions, other.directions)
    assert not np.array_equal(one.x, other.x)
    np.testing.assert_array_equal(one.x, third.x)
    assert subspace_distance(xia("M1", 5, 4, coefficients=3).directions, xia("M1", 5, 4, coefficients=4).directions) > 0


def test_the_printed_loss_of_sir_in_m3_is_that_of_a_chosen_number_of_directions():
    """Table 1, M3 (30000, 10): 0.200 and a mean k of 1.8. With the true k it would be a third of that."""
    printed = printed_table("002", 1)["M3", 30_000, 10]
    chosen, given = [], []
    for seed in range(40):
        sample = xia("M3", n=30_000, p=10, random_state=seed)
        chosen.append(sir_with_chosen(sample, 20))
        if seed < 5:
            fit = SIR(n_directions=2, n_slices=20).fit(sample.x, sample.y)
            given.append(subspace_distance(fit.directions_, sample.directions))
    error = np.std([values["SIR, k chosen"] for values in chosen]) / np.sqrt(40)
    assert np.mean([values["SIR, k chosen"] for values in chosen]) == pytest.approx(printed["SIR"], abs=2 * error)
    assert np.mean([values["k-hat without privacy"] for values in chosen]) == pytest.approx(printed["k-hat"], abs=0.1)
    assert np.mean(given) < printed["SIR"] / 2


def test_a_wrong_number_of_directions_costs_at_least_its_own_root():
    """Projections of rank k and 2 are at least sqrt(|k - 2|) apart."""
    measured = [fixed_coefficients("M3", 4000, 5, 0, seed) for seed in (0, 1)]
    assert {"SIR", "DP-Ini tight", "sfumato", "SIR, k chosen", "k-hat without privacy"} == set(measured[0])
    for values in measured:
        assert values["SIR, k chosen"] ** 2 >= abs(values["k-hat without privacy"] - 2) - 1e-9
