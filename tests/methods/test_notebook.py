"""In a notebook: what is shown, what is drawn, and what a search warns of."""

import re
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from sfumato import Bounds, Budget, FileLedger, PrivacyWarning, PrivatePCA, PrivateSIR, account
from sfumato.errors import BudgetError, InputError
from sfumato.report import build

BOX = Bounds(-1, 1)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    x = np.random.default_rng(0).uniform(-1, 1, (3_000, 3))
    return pd.DataFrame(x, columns=["age", "<b>dose</b>", "third"])


@pytest.fixture(scope="module")
def sir(frame) -> PrivateSIR:
    return PrivateSIR(bounds=BOX, random_state=1).fit(frame, frame["age"])


def bare(page: str) -> str:
    return re.sub(r"<[^>]*>", "", page.partition("</style>")[2])


def test_a_fit_shows_its_verdict_loadings_and_guarantee(sir):
    page = sir._repr_html_()
    assert sir.verdict_.sentence in bare(page) and sir.ledger_.guarantee in bare(page)
    assert "&lt;b&gt;dose&lt;/b&gt;" in page and "<b>dose" not in page and "<script" not in page
    assert sir._repr_mimebundle_()["text/html"] == page


def test_before_the_fit_the_parameters_are_shown_as_scikit_learn_does():
    assert "PrivateSIR" in PrivateSIR()._repr_html_() and "sfumato-display" not in PrivateSIR()._repr_html_()


def test_a_plan_shows_every_release_and_what_to_expect():
    plan = PrivateSIR(bounds=BOX).explain(5_000, 4)
    page = bare(plan._repr_html_())
    assert all(row[0] in page for row in plan.rows()) and plan.expectations()[0][1] in page


def test_a_ledger_shows_its_releases_and_what_is_left(sir, tmp_path):
    assert all(entry.purpose in bare(sir.ledger_._repr_html_()) for entry in sir.ledger_)
    shared = FileLedger(tmp_path / "study.jsonl", Budget.approximate(2, 1e-6))
    assert "(epsilon = 2, delta = 1e-06) is left" in bare(shared._repr_html_())


def test_pictures_show_the_numbers_of_the_fit(sir, frame):
    mpl.use("agg")
    widths = sorted(abs(bar.get_width()) for bar in sir.plot_loadings().patches)
    np.testing.assert_allclose(widths, np.sort(np.abs(sir.loadings_[0])))
    heights = [bar.get_height() for bar in sir.plot_eigenvalues().patches]
    np.testing.assert_allclose(heights, sir.choice_.singular_values)
    assert len(sir.plot_forecast().lines) == len(build.SIZES) + 1  # a line for each, and none private
    pca = PrivatePCA(2, bounds=BOX, random_state=1).fit(frame)
    assert len(pca.plot_loadings(2).patches) == 3
    with pytest.raises(InputError, match="from 1 to 2"):
        pca.plot_loadings(3)


@pytest.mark.parametrize("make", [pd.DataFrame, lambda given: pl.DataFrame(dict(given))])
def test_a_frame_with_further_columns_is_projected_by_those_that_were_fitted(make, sir, frame):
    wider = frame.assign(ward="north")[["ward", "third", "age", "<b>dose</b>"]]
    np.testing.assert_array_equal(sir.transform(make(wider)), sir.transform(frame))


def test_fits_in_the_block_of_an_account_are_paid_from_it(frame, tmp_path):
    y = frame["age"].to_numpy()
    with account(tmp_path / "study.jsonl", epsilon=1.2) as outer:
        PrivateSIR(epsilon=1.0, bounds=BOX).fit(frame, y)
        with account(tmp_path / "other.jsonl", epsilon=2) as inner:
            PrivateSIR(epsilon=1.0, bounds=BOX).fit(frame, y)
        assert len(outer.runs()) == len(inner.runs()) == 1
        with pytest.raises(BudgetError, match="would pass the cap"):
            PrivateSIR(epsilon=1.0, bounds=BOX).fit(frame, y)
    assert not isinstance(PrivateSIR(bounds=BOX, random_state=0).fit(frame, y).ledger_, FileLedger)
    with pytest.raises(InputError, match="studdy"), account(tmp_path / "studdy.jsonl"):
        pass


def test_a_cross_validation_without_an_account_warns_that_each_fit_spends(frame, tmp_path):
    y = frame["age"].to_numpy()
    score = {"cv": 2, "scoring": lambda fit, X, y=None: 0.0}
    with pytest.warns(PrivacyWarning, match="spends its whole budget anew"):
        cross_val_score(make_pipeline(PrivateSIR(bounds=BOX, picture=False)), frame, y, **score)
    shared = FileLedger(tmp_path / "study.jsonl", Budget.approximate(5, 1e-6))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        cross_val_score(PrivateSIR(bounds=BOX, ledger=shared), frame, y, error_score="raise", **score)
    assert len(shared.runs()) == 2
