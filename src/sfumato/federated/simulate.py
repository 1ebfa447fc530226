"""A federation on one machine: the same doors, ledgers and sums as in a deployment, without a network."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from sfumato.errors import InputError, PrivacyWarning
from sfumato.estimators.inputs import fit_source
from sfumato.estimators.parameters import budget_of, noise_of, relation_of
from sfumato.estimators.pipeline import Task, run
from sfumato.estimators.session import REHEARSAL
from sfumato.estimators.sir import PrivateSIR
from sfumato.federated.agreement import Watched
from sfumato.federated.task import Facts, federated_task
from sfumato.privacy.curator import Curator
from sfumato.privacy.noise import Noise, SecureNoise
from sfumato.release import Release
from sfumato.settings.federated import FederatedCurator, LineNoise, SiteCurator, SiteLedger, Trust, trust_of
from sfumato.sources import Source
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray, Relation


def simulate(
    estimator: PrivateSIR,
    sites: Sequence[Any] | Mapping[str, Any],
    trust: str = "sites",
    *,
    honest: int | None = None,
    leave_out: bool = False,
) -> PrivateSIR:
    """Fit across sites that do not pool their records, on this machine.

    Every site has its own ledger, its own noise and the whole budget (epsilon, delta) of the estimator: a person
    belongs to one site, so the guarantee of each site is that person's guarantee.

    Parameters
    ----------
    estimator : PrivateSIR
        Left unfitted; a fitted copy is returned.
    sites : sequence of (X, y) or Source, or mapping from names to these
        The records of each site.
    trust : {"sites", "secure-aggregation"}
        "sites": each site noises fully, nobody needs to be trusted. "secure-aggregation": each site adds a share of
        the noise, which suffices if the server sees only sums over the sites and `honest` of them keep their share
        secret; nearly the accuracy of a central run.
    honest : int, optional
        How many sites must be honest under "secure-aggregation"; all but one by default.
    leave_out : bool
        Leave a site whose releases disagree with the others' out of later sums (trust="sites" alone).

    Returns
    -------
    PrivateSIR
        Fitted, with ``ledgers_`` (one per site, by name); ``ledger_`` is the first of them, all list the same
        releases. ``disagreeing_`` names the sites whose releases differ from the others' by more than chance and
        noise explain, and in what; this check uses nothing but what was released anyway.

    Examples
    --------
    >>> from sfumato import Bounds, PrivateSIR, subspace_distance
    >>> from sfumato.simulate import he
    >>> draws = he("V", n=30_000, random_state=0)
    >>> parts = [(draws.x[i::3], draws.y[i::3]) for i in range(3)]
    >>> sir = simulate(PrivateSIR(epsilon=1.0, delta=1e-5, n_directions=2, bounds=Bounds(-6, 6)), parts)
    >>> len(sir.ledgers_), round(sir.ledger_.total(), 3)
    (3, 1.0)
    >>> bool(subspace_distance(sir.directions_, draws.directions) < 0.3)
    True
    """
    fitted = _checked(estimator)
    named = dict(sites) if isinstance(sites, Mapping) else {f"site {i}": site for i, site in enumerate(sites, start=1)}
    relation, kind = relation_of(fitted.relation), trust_of(trust, max(len(named), 1), honest)
    sources = {name: _source(fitted, name, site) for name, site in named.items()}
    facts = {name: facts_of(source, relation) for name, source in sources.items()}
    task = federated_task(fitted, facts, relation)
    noises = {name: site_noise(fitted.random_state, name) for name in sources}
    if any(noise.rehearsal for noise in noises.values()):
        warnings.warn(REHEARSAL, PrivacyWarning, stacklevel=2)
    return fit_sites(fitted, task, sources, noises, kind, leave_out)


def fit_sites(
    fitted: PrivateSIR,
    task: Task,
    sources: Mapping[str, Source],
    noises: Mapping[str, Noise],
    trust: Trust,
    leave_out: bool = False,
) -> PrivateSIR:
    """Walk the plan over the sites and keep the outcome and every ledger."""
    budget, relation = budget_of(fitted.epsilon, fitted.delta, fitted.rho), relation_of(fitted.relation)
    plan = task.plan().calibrate(budget)
    ledgers, doors = {}, {}
    for name, source in sources.items():
        ledgers[name] = SiteLedger(budget, relation, rehearsal=noises[name].rehearsal)
        ledgers[name].trust = trust
        doors[name] = SiteCurator(OneThread(source), plan, ledgers[name], noises[name], trust)
    sizes = {name: facts_of(source, relation).n_records for name, source in sources.items()}
    watched = Watched(InProcess(doors, sizes), leave_out=leave_out and trust.share == 1)
    outcome = run(task, FederatedCurator(watched, relation))
    fitted.disagreeing_ = watched.disagreeing if trust.share == 1 else {}
    fitted._keep(outcome, next(iter(ledgers.values())))
    fitted.ledgers_ = ledgers
    return fitted


class InProcess:
    """Sites that are a function call away."""

    def __init__(self, doors: Mapping[str, Curator], sizes: Mapping[str, int | None]) -> None:
        self._doors = doors
        self._sizes = sizes

    @property
    def sizes(self) -> Mapping[str, int | None]:
        """Number of records of each site, None where it is private."""
        return self._sizes

    def ask(self, query: BoundedSum, name: str) -> Mapping[str, Release]:
        """Everybody's release."""
        with threadpool_limits(limits=1, user_api="blas"):
            return {site: door.answer(query, name) for site, door in self._doors.items()}


class OneThread:
    """Adds up one site's records; a hundred small sites have no use for a pool of threads each."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def sum(self, query: BoundedSum) -> IntArray:
        """The exact sum of the query over the site's records."""
        total = np.zeros(query.shape, dtype=np.int64)
        for part in self._source.parts():
            for records in self._source.read(part):
                total += query.of(records)
        return total


def facts_of(source: Source, relation: Relation) -> Facts:
    """What a site may say about its records."""
    count = source.count() if relation == "replace" else None
    return Facts(source.n_features, count, source.response, source.feature_names)


def site_noise(random_state: Any, site: str) -> Noise:
    """A site's own noise: cryptographic, or seeded by (seed, site, line) for a rehearsal."""
    if random_state is None:
        return SecureNoise()
    noise_of(random_state)  # refuses what is not a seed
    return LineNoise(int(random_state), site)


def _checked(estimator: Any) -> PrivateSIR:
    if not isinstance(estimator, PrivateSIR):
        raise InputError(f"estimator must be a PrivateSIR, got a {type(estimator).__name__}.")
    if estimator.ledger is not None:
        raise InputError("ledger: in a federation every site has its own; leave it None and see ledgers_.")
    fitted: PrivateSIR = clone(estimator)
    return fitted


def _source(estimator: PrivateSIR, name: str, site: Any) -> Source:
    if isinstance(site, Source):
        return fit_source(estimator, site, None, estimator.classes)
    if not isinstance(site, tuple) or len(site) != 2:
        raise InputError(f"sites: {name!r} must be a pair (X, y) or a scanned source.")
    return fit_source(estimator, site[0], site[1], estimator.classes)
