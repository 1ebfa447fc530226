"""Whole records with noise from the device: x and y both private, nobody trusted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.bounds import Bounds, Grid
from sfumato.errors import InputError
from sfumato.local.answers import MISSING, one_value_each
from sfumato.local.randomisers import SliceRandomiser
from sfumato.privacy.budget import Budget
from sfumato.privacy.door import Asked, pass_on
from sfumato.privacy.events import Gaussian
from sfumato.privacy.noise import Noise, SecureNoise, rounded_gaussian
from sfumato.release import Release
from sfumato.statistics.moments import joint_diameter
from sfumato.steps.symmetric import inverse_root, noise_edge, upper_to_full
from sfumato.sums import round_within, shrink_into_ball, squared_norms
from sfumato.typing import FloatArray, IntArray

UNITS = 2**15
_ROWS = 2**13
COUNT = 0.5
"""Weight of the slice itself beside the record: the largest that costs nothing (see the proof)."""


@dataclass(frozen=True, slots=True)
class RecordRandomiser:
    """Your record's slice sums and second moment, with noise enough for one.

    Parameters
    ----------
    n_features : int
    bounds : Bounds
        Public ranges of the features; a record is clipped to the box, then radially to `radius` half widths.
    edges : sequence of float
        Public edges between slices of y.
    epsilon, delta : float
    radius : float, optional
        By default 0.45 sqrt(p): most records of features whose bounds are three standard deviations wide.

    Notes
    -----
    *Proof of the guarantee.* With ``u = x / radius`` in the unit ball and a the constant `COUNT`, a record answers
    ``(one-hot of its slice) x (u, a)`` and ``u u^T`` (upper triangle, off-diagonals weighted sqrt(2)). Two records of
    one slice differ by at most ``joint_diameter(1, 1) = sqrt(4.5)``. Two of different slices have orthogonal first
    parts: squared distance at most ``2 (1 + a^2) + 2``, which is 4.5 again at a = 1/2. The answer is an integer
    vector plus a rounded Gaussian whose standard deviation is that distance over mu: mu-GDP, and mu is the largest
    allowed by (epsilon, delta). This is what *one* record tells; no other record is needed for the bound.

    Examples
    --------
    >>> device = RecordRandomiser(3, Bounds(-1, 1), (0.0,), 1.0, 1e-6)
    >>> device.randomize([[0.1, -0.2, 0.5]], [2.0]).shape
    (1, 14)
    """

    n_features: int
    bounds: Bounds
    edges: Sequence[float]
    epsilon: float
    delta: float
    radius: float | None = None

    @property
    def n_slices(self) -> int:
        """Slices of y."""
        return SliceRandomiser(1.0, self.edges).n_slices

    @property
    def cap(self) -> float:
        """Longest record kept, in half widths."""
        return 0.45 * math.sqrt(self.n_features) if self.radius is None else float(self.radius)

    @property
    def event(self) -> Gaussian:
        """What one answer costs the person who gives it."""
        return Gaussian(Budget.approximate(self.epsilon, self.delta).mu())

    @property
    def stds(self) -> FloatArray:
        """Noise of one person's answer, coordinate by coordinate, relative to the unit ball."""
        reach = joint_diameter(1.0, 1.0) / self.event.mu
        row, column = np.triu_indices(self.n_features)
        pairs = np.where(row == column, reach, reach / np.sqrt(2.0))
        return np.concatenate([np.full(self.n_slices * (self.n_features + 1), reach), pairs])

    @np.errstate(all="ignore")  # whatever the user asked numpy for, no value raises or warns
    def randomize(self, x: Any, y: Any, noise: Noise | None = None) -> FloatArray:
        """The noisy answers (n, d) of n devices, each drawn on its own."""
        source, units = noise or SecureNoise(), self._units
        scale = np.ceil(self.stds * units).astype(np.int64)
        exact = self._contributions(x, y)
        asked = Asked(self, exact, self.event.mu, 1.0 / scale)  # lengths in standard deviations of the noise
        return pass_on(asked, np.asarray((exact + rounded_gaussian(source, scale, exact.shape)) / units))

    def exact_answers(self, x: Any, y: Any) -> FloatArray:
        """The answers without noise, which never leave a device: for forecasts about assumed people."""
        return np.asarray(self._contributions(x, y) / self._units)

    def total(self, x: FloatArray, y: FloatArray, noise: Noise | None = None) -> Release:
        """The sum of many devices' answers, in the order they come; memory for a few thousand at a time."""
        sums = sum(
            self.randomize(x[i : i + _ROWS], y[i : i + _ROWS], noise).sum(axis=0) for i in range(0, len(x), _ROWS)
        )
        return Release(np.asarray(sums), self.stds * np.sqrt(len(x)))

    @property
    def _units(self) -> FloatArray:
        pairs = self.n_features * (self.n_features + 1) // 2
        return np.concatenate([np.full(self.n_slices * (self.n_features + 1), float(UNITS)), np.full(pairs, UNITS**2)])

    def _contributions(self, x: Any, y: Any) -> IntArray:
        """Integers, one row per record; for the device's own eyes."""
        table = np.atleast_2d(np.asarray(x, dtype=np.float64))
        slices = SliceRandomiser(1.0, self.edges).slices(one_value_each(y))
        if table.shape != (len(slices), self.n_features):
            raise InputError(f"x must have one row per person and {self.n_features} columns.")
        if not np.isfinite(table).all():
            raise InputError(MISSING.replace("y has", "x has"))
        grid: Grid = self.bounds.grid(self.n_features)
        u = grid.integers(table)
        u *= UNITS / (self.cap * 2.0**grid.bits)
        round_within(u, self.n_features)
        u = shrink_into_ball(u, squared_norms(u), float(UNITS))
        augmented = np.column_stack([u, np.full(len(u), COUNT * UNITS)])
        first = np.zeros((len(u), self.n_slices, self.n_features + 1))
        first[np.arange(len(u)), slices] = augmented
        row, column = np.triu_indices(self.n_features)
        return np.column_stack([first.reshape(len(u), -1), u[:, row] * u[:, column]]).astype(np.int64)


def solve(total: Release, n: float, p: int, h: int) -> tuple[FloatArray, FloatArray]:
    """Whitened slice kernel's directions (p, r), in units of the ball, and singular values. Public numbers only."""
    first = total.value[: h * (p + 1)].reshape(h, p + 1) / n
    share = np.maximum(first[:, -1] / COUNT, 0.25 / h)
    share /= share.sum()
    mean = first[:, :p].sum(axis=0)
    second = upper_to_full(total.value[h * (p + 1) :] / n, p) - np.outer(mean, mean)
    floor = noise_edge(float(total.noise_std[-1]) / n, p)
    root = inverse_root(second, max(floor, 1e-9))
    kernel = root @ ((first[:, :p].T - np.outer(mean, share)) / np.sqrt(share))
    u, s, _ = np.linalg.svd(kernel, full_matrices=False)
    return root @ u, s
