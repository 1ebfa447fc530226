"""What a release costs: one frozen value for each mechanism, whose docstring is its mathematical contract.

All statements are about any pair of neighbouring data sets under the relation that the release declares, and
hold for adaptive composition: a release may depend on earlier ones, its cost may not.
"""

import math
from dataclasses import dataclass
from typing import assert_never

from sfumato.errors import InputError


def _not_negative(name: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise InputError(f"{name} must be a finite number, zero or more, got {name}={value!r}; recompute it.")


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Gaussian noise with mu = (L2 sensitivity) / (standard deviation).

    No test tells the neighbours apart better than N(0, 1) from N(mu, 1): mu-GDP (Dong, Roth and Su 2022),
    hence (mu**2 / 2)-zCDP (Bun and Steinke 2016). Rounding the noisy value is post-processing: free.

    >>> Gaussian(mu=0.5)
    Gaussian(mu=0.5)
    """

    mu: float

    def __post_init__(self) -> None:
        _not_negative("mu", self.mu)


@dataclass(frozen=True, slots=True)
class _Pure:
    """What is told by an epsilon alone."""

    epsilon: float

    def __post_init__(self) -> None:
        _not_negative("epsilon", self.epsilon)


@dataclass(frozen=True, slots=True)
class Laplace(_Pure):
    """Laplace noise with epsilon = (L1 sensitivity) / (scale): epsilon-DP.

    Only a single noised number (``vector=False``) is accounted by the loss of a scalar Laplace; that a vector is
    no worse is likely but not proved here, so a vector is accounted as any epsilon-DP release.

    >>> Laplace(epsilon=0.1)
    Laplace(epsilon=0.1, vector=False)
    """

    vector: bool = False


@dataclass(frozen=True, slots=True)
class Selection(_Pure):
    """`picks` choices by the exponential mechanism or Gumbel noise, each of bounded range `epsilon`.

    Bounded range: over all outcomes, the log-ratio of the two probabilities spans at most epsilon.
    A pick is then epsilon-DP and (epsilon**2 / 8)-zCDP (Dong, Durfee and Rogers 2020; Cesar and Rogers 2021).
    Permute-and-flip with the same noise spans twice as much and must not be booked here.

    >>> Selection(epsilon=0.2, picks=5)
    Selection(epsilon=0.2, picks=5)
    """

    picks: int

    def __post_init__(self) -> None:
        _Pure.__post_init__(self)
        if self.picks != int(self.picks) or self.picks < 0:
            raise InputError(f"picks must be a whole number, got picks={self.picks!r}; count the choices.")


@dataclass(frozen=True, slots=True)
class RandomisedResponse(_Pure):
    """A label of k classes kept with odds e^epsilon to 1 against each other class: epsilon-DP for each label.

    >>> RandomisedResponse(epsilon=1.0, k=10)
    RandomisedResponse(epsilon=1.0, k=10)
    """

    k: int


@dataclass(frozen=True, slots=True)
class NoGuarantee:
    """A release without any guarantee, and why; its cost is infinite, and so is every total that includes it.

    >>> NoGuarantee("noise of a printed formula below the sensitivity").reason
    'noise of a printed formula below the sensitivity'
    """

    reason: str


Event = Gaussian | Laplace | Selection | RandomisedResponse | NoGuarantee


def rho(event: Event) -> float:
    """The cost in zero-concentrated differential privacy (rho-zCDP); costs add up.

    >>> rho(Gaussian(mu=0.2)), rho(NoGuarantee("none"))
    (0.02..., inf)
    """
    match event:
        case Gaussian(mu):
            return mu * mu / 2
        case Laplace(epsilon) | RandomisedResponse(epsilon):
            return epsilon * epsilon / 2  # any epsilon-DP mechanism (Bun and Steinke 2016, proposition 3.3)
        case Selection(epsilon, picks):
            return picks * (epsilon * epsilon / 8)  # bounded range (Cesar and Rogers 2021)
        case NoGuarantee():
            return math.inf
        case _:
            assert_never(event)
