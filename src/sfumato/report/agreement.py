"""Two fits side by side: how far their directions are apart, how far errors alone would bring them, what each cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.report.document import MISSING, Loading
from sfumato.report.words import account_of, feature_names, loadings_of
from sfumato.steps.subspace import principal_angles
from sfumato.typing import FloatArray


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well two fits of the same features agree.

    Attributes
    ----------
    angles : tuple of float
        Principal angles between what their loadings span, in degrees, the smallest first.
    error : float
        The angle that the standard errors of both make on their own, root mean square; nan where a fit tells none.
    spent : (str, str)
        The budget of each.
    """

    angles: tuple[float, ...]
    error: float
    spent: tuple[str, str]

    @property
    def sentence(self) -> str:
        """What the numbers mean."""
        most = max(self.angles)
        if math.isnan(self.error):
            return f"The directions are up to {most:.0f}° apart; these methods do not tell their errors."
        if most <= 2.0 * self.error:
            return f"The directions are up to {most:.0f}° apart, no more than their errors explain ({self.error:.0f}°)."
        return f"The directions are up to {most:.0f}° apart, more than their errors explain ({self.error:.0f}°)."

    def rows(self) -> list[tuple[str, str]]:
        """Name and value pairs, as text."""
        listed = ", ".join(f"{angle:.1f}°" for angle in self.angles)
        error = MISSING if math.isnan(self.error) else f"{self.error:.1f}°"
        first, second = self.spent
        return [
            ("angles between the directions", listed),
            ("angle that errors alone make", error),
            ("budget of the first", first),
            ("budget of the second", second),
        ]


def compare_fits(first: Any, second: Any) -> Agreement:
    """Compare two fitted estimators of the same features; released values only, so it costs nothing.

    Angles are between loadings, which are per standard deviation (or bound) of each feature: those between directions
    in the units of the table would be those of the feature with the smallest unit.

    >>> from sfumato import Bounds, PrivateSIR
    >>> from sfumato.simulate import xia
    >>> sample = xia("M1", n=20_000, p=5, random_state=0)
    >>> fits = [PrivateSIR(bounds=Bounds(-1.5, 1.5), random_state=seed).fit(sample.x, sample.y) for seed in (1, 2)]
    >>> compare_fits(*fits).angles[0] < 5
    True
    """
    names = feature_names(first)
    if names != feature_names(second):
        raise InputError("model: the two were fitted on different features; compare fits of the same columns.")
    a, b = (loadings_of(fit)[0] for fit in (first, second))
    if not a or not b or not a[0].values or not b[0].values:
        raise InputError("model: one of the two has no direction to compare.")
    angles = np.degrees(principal_angles(_matrix(a, names), _matrix(b, names)))
    error = math.hypot(_error(a), _error(b))
    spent = (account_of(first).budget, account_of(second).budget)
    return Agreement(tuple(float(angle) for angle in angles), math.degrees(error), spent)


def _matrix(loadings: tuple[Loading, ...], names: tuple[str, ...]) -> FloatArray:
    """Directions as rows, zero where a sparse method kept nothing; of pairs, both tables side by side."""
    order = dict.fromkeys((*names, *(row.feature for row in loadings)))
    known = {row.feature: row.values for row in loadings}
    nothing = (0.0,) * len(loadings[0].values)
    return np.array([known.get(name, nothing) for name in order]).T


def _error(loadings: tuple[Loading, ...]) -> float:
    """Root mean square length of the errors of a direction: of a unit vector, about its angle to the true one."""
    errors = np.array([row.errors for row in loadings])
    return float(np.sqrt((errors**2).sum(axis=0).mean()))
