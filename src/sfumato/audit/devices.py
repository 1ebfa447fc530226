"""Answers from devices, and fits without a trusted curator, ready to be attacked.

Here the neighbours are two values of *one person*: there is no add-or-remove, as taking part is not hidden.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.audit.blackbox import Claim
from sfumato.audit.fits import Case, shown
from sfumato.federated import simulate
from sfumato.local.answers import Randomiser
from sfumato.local.randomisers import NumberRandomiser, SliceRandomiser, ThresholdRandomiser
from sfumato.local.records import RecordRandomiser
from sfumato.methods.about import BOX
from sfumato.methods.label_iht import LabelPrivateIHT
from sfumato.methods.label_sir import LabelPrivateSIR
from sfumato.methods.local_sir import LocalSIR
from sfumato.methods.sir import PrivateSIR
from sfumato.methods.sparse_sir import PrivateSparseSIR
from sfumato.privacy.accounting import gdp_mu
from sfumato.privacy.noise import Noise
from sfumato.records import Records
from sfumato.typing import FloatArray


@dataclass(frozen=True, slots=True)
class Attacked:
    """A mechanism, the two values of one person that tell most, and the claim."""

    mechanism: Callable[[Any, Noise], Any]
    d: Any
    d_prime: Any
    claimed: Claim

    @property
    def gaussian(self) -> bool:
        """Whether the claim is one of mu."""
        return not isinstance(self.claimed, tuple)


def devices(epsilon: float, delta: float) -> dict[str, Attacked]:
    """Every kind of answer that a device gives."""
    mu, pure = gdp_mu(epsilon, delta), (epsilon, 0.0)
    slices = {f"{len(edges) + 1} slices": SliceRandomiser(epsilon, edges) for edges in ([0.0], [-1.0, 0.0, 1.0, 2.0])}
    classes = SliceRandomiser(epsilon, classes=["a", "b", "c"])
    numbers = {kind: NumberRandomiser(-1.0, 1.0, epsilon, 0.0, kind) for kind in ("two-point", "laplace")}
    gaussian = NumberRandomiser(-1.0, 1.0, epsilon, delta, "gaussian")
    found = {name: Attacked(_answer(form), -1e9, 1e9, pure) for name, form in (slices | numbers).items()}
    found["3 classes and others"] = Attacked(_answer(classes), "a", "none of these", pure)
    found["gaussian"] = Attacked(_answer(gaussian), -1e9, 1e9, mu)
    found["whole record"] = _whole_record(epsilon, delta, mu)
    found["is y at least t?"] = Attacked(_answer(ThresholdRandomiser(epsilon, [0.0])), -1e9, 1e9, pure)
    return found


def _answer(form: Randomiser) -> Callable[[Any, Noise], Any]:
    return lambda y, noise: form.randomize([y], noise).values


def _whole_record(epsilon: float, delta: float, mu: float) -> Attacked:
    """Two records as far apart as the bound allows: at a right angle and of different slices."""
    device = RecordRandomiser(2, BOX, (0.0,), epsilon, delta, radius=1.0)

    def answer(record: FloatArray, noise: Noise) -> FloatArray:
        return np.asarray(device.randomize(record[None, :2], record[2:], noise)[0])

    # squared distance 2 (1 + 1/4) of the slice sums and 2 of the second moments: 4.5, the bound of the proof
    return Attacked(answer, np.array([1.0, 0.0, -1.0]), np.array([0.0, 1.0, 1.0]), mu)


def published_fits(epsilon: float, delta: float) -> dict[str, Attacked]:
    """What fits show that have no curator, or several: one person's value changed, everybody else the same."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (12, 2))
    y = x[:, 0] + 0.1 * rng.standard_normal(12)
    low, high = (Records(x, np.append(y[:-1], end)) for end in (-1e9, 1e9))
    ends = [np.vstack([x[:-1], corner]) for corner in ([[1.0, 0.0]], [[0.0, 1.0]])]
    one, other = (Records(table, np.append(y[:-1], end)) for table, end in zip(ends, (-1.0, 1.0), strict=True))
    label = LabelPrivateSIR(epsilon, 1)
    edges = LabelPrivateSIR(epsilon, 1, edges=[0.0], refine=False)
    waves = LabelPrivateSIR(epsilon, 1, edges=[-1.0, 1.0], waves=2)
    regression = LabelPrivateIHT(epsilon, n_active=1)
    local = LocalSIR(epsilon, delta, bounds=BOX, radius=1.0)
    central = PrivateSIR(epsilon, delta, 1, BOX, method="one-shot")
    votes = PrivateSparseSIR(epsilon, delta, 1, BOX)
    mu = gdp_mu(epsilon, delta)
    return {
        "LabelPrivateSIR, edges found": Attacked(_fitted(label), low, high, (epsilon, 0.0)),
        "LabelPrivateSIR, edges given": Attacked(_fitted(edges), low, high, (epsilon, 0.0)),
        "LabelPrivateSIR, in waves": Attacked(_fitted(waves), low, high, (epsilon, 0.0)),
        "LabelPrivateIHT": Attacked(_fitted(regression), low, high, (epsilon, 0.0)),
        "LocalSIR": Attacked(_fitted(local), one, other, mu),
        "federated, two sites": Attacked(_fitted(central, _two_sites), one, other, mu),
        "federated votes, two sites": Attacked(_fitted(votes, _two_sites), *_wide(rng, x, y), (epsilon, delta)),
    }


def _wide(rng: np.random.Generator, x: FloatArray, y: FloatArray) -> tuple[Records, Records]:
    """Six features; the last record, at the upper end of y, has all its signs turned: every score moves by two."""
    wide, ends = np.hstack([x, rng.uniform(-1.0, 1.0, (len(x), 4))]), np.append(y[:-1], 1.0)
    low, high = (Records(np.vstack([wide[:-1], sign * np.ones(6)]), ends) for sign in (-1.0, 1.0))
    return low, high


def _fitted(estimator: Any, fit: Callable[[Any, Records], Any] | None = None) -> Callable[[Records, Noise], FloatArray]:
    case = Case(estimator) if fit is None else Case(estimator, fit=fit)
    return lambda records, noise: shown(case.run(records, noise), records.x.shape[1])


def _two_sites(estimator: Any, records: Records) -> Any:
    """The attacked record is at the second site; the first could not protect it."""
    return simulate(estimator, [(records.x[:6], records.y[:6]), (records.x[6:], records.y[6:])])
