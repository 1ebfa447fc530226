"""Why models keep less on private directions than on those of plain SIR: one cause taken away at a time.

    python -m benchmarks.causes --data .../statsmodels/datasets
    python -m benchmarks.causes --wide

A fit at epsilon = 1 is made again with the noise of some of its lines left out, with the true covariance, with hardly
any noise, with hardly any clipping, with more records. Such fits are not private.
"""

import argparse
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.honest import bounds_of
from benchmarks.location import plain_directions, scores
from benchmarks.location_tables import Table, awkward
from benchmarks.store import Store
from benchmarks.study import RESULTS, mean, write
from benchmarks.unseen import KEPT, table_of
from sfumato import PrivateSIR
from sfumato.methods import sir
from sfumato.privacy.door import Behind, Door, watching
from sfumato.release import Release
from sfumato.statistics.histograms import NormHistogram
from sfumato.statistics.moments import Moments
from sfumato.steps import shape
from sfumato.steps.descent import PLENTY
from sfumato.steps.noisy_histograms import kept_share, likely_counts
from sfumato.sums import BoundedSum, upper_pairs
from sfumato.typing import FloatArray, IntArray

TABLES = ("codes", "laboratory", "stay", "randhie", "death", "breast_cancer", "anes96")
"""Those of `benchmarks.unseen` on which something is lost."""
WIDE = ("rare 0/1, p = 60", "zero-inflated, p = 60", "mixed, p = 60")
"""Awkward ones of `benchmarks.location` with many features."""
MANY = 30_000
HUGE = 1_000.0
"""An epsilon that leaves no noise to speak of."""
CLEAR = 1.0 / 30.0
"""Part of the noise of the shape that a fit which is told the covariance takes it to have."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What is taken away: noise of lines whose names begin so, clipping; or what is known: the covariance."""

    name: str
    quiet: tuple[str, ...] = ()
    n: int = KEPT
    epsilon: float = 1.0
    whole: bool = False
    told: bool = False


CAUSES = (
    Cause("private"),
    Cause("ranks", ("response", "ranks")),
    Cause("lengths, sizes", ("radius", "residual")),
    Cause("shape", ("shape",)),
    Cause("steps", ("step",)),
    Cause("all", ("",)),
    Cause("true covariance", told=True),
    Cause("epsilon = 1000", epsilon=HUGE),
    Cause("and hardly clipped", epsilon=HUGE, whole=True),
    Cause(f"n = {MANY:,}", n=MANY),
)


@dataclass(frozen=True, slots=True)
class Quiet:
    """A door that leaves out the noise of some lines, or knows the covariance of the features."""

    door: Door
    behind: Behind
    cause: Cause
    x: FloatArray
    _lengths: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)

    def answer(self, query: BoundedSum, name: str) -> Release:
        released, asked = self.door.answer(query, name), self.behind.bounded(query)
        if any(name.startswith(begin) for begin in self.cause.quiet):
            exact = self.behind.setting.sum(asked) * asked.grid
            return Release(np.asarray(exact, dtype=float).reshape(released.value.shape), released.noise_std)
        if self.cause.told and isinstance(query, NormHistogram):
            self._lengths.append((likely_counts(released, len(self.x)), query.radii))
        if self.cause.told and isinstance(query, Moments):
            return Release(self._true_moments(query), released.noise_std * CLEAR)
        return released

    def select(self, query: BoundedSum, name: str) -> IntArray:
        return self.door.select(query, name)

    def _true_moments(self, query: Moments) -> FloatArray:
        """Moments of all records as they are, less the part of the second ones that clipping is known to take."""
        inside = np.clip((self.x - query.source.centre) / query.source.half_width, -1.0, 1.0)
        middle, kept = inside.mean(axis=0), kept_share(*self._lengths[-1], query.radius)
        second = kept * np.cov(inside.T, bias=True) + np.outer(middle, middle)
        return len(self.x) * np.concatenate([middle, second[upper_pairs(len(second))]])


@contextmanager
def without(cause: Cause, x: FloatArray) -> Iterator[None]:
    """Fits to x in the ``with`` block are made without the cause."""
    with ExitStack() as stack:
        stack.enter_context(watching(lambda door, behind: Quiet(door, behind, cause, x)))
        if cause.whole:
            whole = replace(PLENTY, levels=(0.99, 0.99))
            stack.enter_context(patch.object(sir, "schedule_of", lambda *_: whole))
            stack.enter_context(patch.object(shape, "FEWEST_WHOLE", 0.9))
            stack.enter_context(patch.dict(sir.CAPS, descent=12.0))
        yield


@cache
def whole_table(name: str, data: Path) -> Table:
    """All records of one of `TABLES` or of `WIDE`."""
    kind, _, p = name.partition(", p = ")
    return awkward(kind, int(p), 2 * MANY, 1) if p else table_of(name, data)


def split(x: FloatArray, n: int) -> tuple[IntArray, IntArray]:
    """Rows that are fitted and those that are held out, as in the study of what is kept."""
    rows = np.random.default_rng(5).permutation(len(x))
    return rows[: min(n, 3 * len(x) // 4)], rows[-min(8_000, len(x) // 4) :]


def private(name: str, cause: Cause, data: Path, seed: int) -> list[float]:
    """Held-out R^2 of trees and of a linear model on two private directions."""
    x, y = whole_table(name, data)
    train, test = split(x, cause.n)
    with without(cause, x[train]):
        fit = PrivateSIR(cause.epsilon, 1e-6, 2, bounds_of(x, "tight"), random_state=seed).fit(x[train], y[train])
    found = fit.transform(x)
    return scores(found[train], y[train], found[test], y[test]).tolist()


def plain(name: str, n: int, second: str, data: Path, seed: int) -> list[float]:
    """The same on directions of plain SIR: both of them, the first alone, or the first and any other one."""
    x, y = whole_table(name, data)
    train, test = split(x, n)
    found = (x - x.mean(axis=0)) @ plain_directions(x[train], y[train]).T
    if second != "its own":
        other = np.random.default_rng(seed).normal(size=x.shape[1]) / np.maximum(x.std(axis=0), 1e-12)
        found = found[:, :1] if second == "none" else np.column_stack([found[:, 0], (x - x.mean(axis=0)) @ other])
    return scores(found[train], y[train], found[test], y[test]).tolist()


def row_of(store: Store, name: str, seeds: int, data: Path) -> Iterator[tuple[Any, ...]]:
    """What trees and a linear model keep: two rows of the table."""
    alone = [
        np.array(store.get(f"{name}/plain/{n}/{second}", plain, name, n, second, data, 0))
        for n, second in ((KEPT, "its own"), (KEPT, "none"), (MANY, "its own"))
    ]
    make = partial(plain, name, KEPT, "any", data)
    any_other = np.array([store.get(f"{name}/any/{seed}", make, seed) for seed in range(seeds)])
    runs = {
        cause: np.array([store.get(f"{name}/{cause.name}/{s}", private, name, cause, data, s) for s in range(seeds)])
        for cause in CAUSES
    }
    for j, model in enumerate(("trees", "linear")):
        found = [mean(each[:, j]) for each in runs.values()]
        yield (
            *(name if j == 0 else "", model, f"{alone[0][j]:.3f}", f"{alone[1][j]:.3f}"),
            f"{any_other[:, j].min():.3f} to {any_other[:, j].max():.3f}",
            *(f"{each.mean:.3f} ± {each.error:.3f}" for each in found),
            f"{alone[2][j]:.3f}",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--data", type=Path, default=Path("data"), help="statsmodels/datasets.")
    parser.add_argument("--tables", nargs="*", default=TABLES)
    parser.add_argument("--wide", action="store_true", help="Tables of sixty features, on a page of their own.")
    parser.add_argument("--store", type=Path, default=RESULTS.parents[1] / "build" / "causes.json")
    o = parser.parse_args()
    warnings.simplefilter("ignore")
    o.store.parent.mkdir(exist_ok=True)
    store, rows = Store(o.store, np.inf), []
    with threadpool_limits(1):
        for name in WIDE if o.wide else o.tables:
            for row in row_of(store, name, o.seeds, o.data):
                rows.append(row)
                print(*row, sep=" | ", flush=True)
    wide = "Awkward tables of [what is kept](location-tables.md) with sixty features"
    lossy = "Tables of [what is kept](honest-unseen-kept.md) on which something is lost"
    write(
        "honest-causes-wide" if o.wide else "honest-causes",
        f"python -m benchmarks.causes --seeds {o.seeds} {'--wide' if o.wide else '--data .../statsmodels/datasets'}",
        "Why less is kept on private directions\n"
        f"{wide if o.wide else lossy}; n = {KEPT:,}, epsilon = 1, "
        f"delta = 1e-6, true range as bounds, two directions, {o.seeds} seeds: held-out R^2 of boosted trees and "
        "of a linear model, mean ± standard error. Plain SIR: on its two directions, on its first alone, on its first "
        f"and another one drawn at random ({o.seeds} of them, least to most). Private; without the noise of the ranks, "
        "of the histograms of lengths and of residuals, of the shape, of the steps, of all lines (what a fit believes "
        "about its noise is left as it is); whitened by the true covariance; with hardly any noise; with hardly any "
        "noise and clipping of a record in a hundred (levels 0.99, covariance of 90 % of the records whole, cap 12); "
        "and with more records, beside plain SIR on as many.",
        (
            *("table", "model", "plain", "first alone", "and any second"),
            *(cause.name if not cause.quiet else f"quiet: {cause.name}" for cause in CAUSES),
            f"plain, n = {MANY:,}",
        ),
        rows,
    )


if __name__ == "__main__":
    main()
