"""Lasso-SIR (Lin, Zhao and Liu 2019), without privacy: the yardstick of the papers' real-data studies."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV

from sfumato.estimators.slice_moments import slice_rows
from sfumato.typing import FloatArray

MOST = 1000


def lasso_sir(x: FloatArray, y: FloatArray, n_slices: int) -> FloatArray:
    """The first direction: SIR's eigenvector in the space of slices, then a lasso on the response it implies.

    With ``m_h`` the slice means of centred x and ``v`` the leading eigenvector of their Gram matrix, the slice-wise
    constant response ``v_h`` has x-coefficients along the SIR direction; the lasso, its penalty by cross-validation,
    finds sparse ones, among the 1000 features that are most correlated with that response (for speed).

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 300))
    >>> b = lasso_sir(x, x[:, 4] + 0.1 * rng.normal(size=200), 5)
    >>> int(np.abs(b).argmax())
    4
    """
    x = x - x.mean(axis=0)
    rows = slice_rows(y, n_slices)
    means = np.array([x[members].mean(axis=0) * np.sqrt(len(members)) for members in rows])
    _, vectors = np.linalg.eigh(means @ means.T)
    response = np.empty(len(x))
    for members, value in zip(rows, vectors[:, -1], strict=True):
        response[members] = value / np.sqrt(len(members))
    likely = np.argsort(-np.abs(response @ x), kind="stable")[:MOST]
    found = np.zeros(x.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found[likely] = LassoCV(cv=5, eps=1e-2, alphas=20).fit(x[:, likely], response * np.sqrt(len(x))).coef_
    return found
