"""A federation on one machine: the same doors, ledgers and sums as in a deployment, without a network."""

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from sfumato.errors import InputError, PrivacyWarning
from sfumato.federated.sites import UNITS, Askable, ComparedSites, OwnUnits, in_own_units, refuse_unless_own
from sfumato.federated.task import (
    SitesTask,
    SparseSites,
    federated_task,
    refuse_unless_federated,
    run_sparse_sites,
    too_small,
)
from sfumato.methods.base import REHEARSAL, PrivateReducer
from sfumato.methods.inputs import first_rows
from sfumato.privacy.asking import drive
from sfumato.privacy.door import Door
from sfumato.privacy.ledger.file import current_account
from sfumato.privacy.noise import Noise
from sfumato.privacy.parameters import budget_of, relation_of
from sfumato.privacy.unit import RECORD, Unit, unit_of
from sfumato.release import Release
from sfumato.settings.central import one_blas_thread
from sfumato.settings.federated import (
    FederatedCurator,
    SiteLedger,
    Sites,
    Trust,
    describe_site,
    open_site,
    site_noise,
    trust_of,
)
from sfumato.sources import ArraySource, ResponseKind, Source
from sfumato.sources.files import open_source
from sfumato.sources.formats import open_tables
from sfumato.sources.names import expand, suggest
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray

Reducer = TypeVar("Reducer", bound=PrivateReducer)
MOST_SITES = 1_000
"""Of a file that is split by a column: more are a column of numbers, taken by mistake, and would take hours."""


def simulate(
    estimator: Reducer,
    sites: Sequence[Any] | Mapping[str, Any],
    trust: str = "sites",
    *,
    honest: int | None = None,
    leave_out: bool = False,
    own_units: bool = False,
    least: int | str | None = None,
) -> Reducer:
    """Fit across sites that do not pool their records, on this machine.

    Every site has its own ledger, its own noise and the whole budget (epsilon, delta) of the estimator: a person
    belongs to one site, so the guarantee of each site is that person's guarantee.

    Parameters
    ----------
    estimator : any of the family that sites can fit (``about.federated``)
        Left unfitted; a fitted copy is returned. Sparse fits need trust="sites", as every site votes privately for the
        features that matter.
    sites : sequence of (X, y), (X, y, groups) or Source, or mapping from names to these
        The records of each site; y is a second table for `PrivateCCA`, and None (or X stands alone) for components.
        With ids (groups, or ``scan(..., person=...)``) each site lets the first
        ``rows_per_person`` rows of each of its own people count; a person at two sites counts, and spends, at both.
    trust : {"sites", "secure-aggregation"}
        "sites": each site noises fully, nobody needs to be trusted. "secure-aggregation": each site adds a share of
        the noise, which suffices if the server sees only sums over the sites and `honest` of them keep their share
        secret; nearly the accuracy of a central run.
    honest : int, optional
        How many sites must be honest under "secure-aggregation"; all but one by default.
    leave_out : bool
        Leave a site whose releases disagree with the others' out of later sums (trust="sites" alone).
    own_units : bool
        Features have means and scales of their own at each site. Every site finds them privately, from the share that
        bounds=None pays for location, and its features are measured from there: ``(x - centre) / half width`` of its
        own bounds, ``local_[site]``. The directions belong to features in these units. Not for sparse fits, nor for
        principal components, whose meaning hangs on the units.
    least : int, "auto" or None
        Sites with fewer records do not take part and spend nothing (``left_out_`` names them); "auto" is
        `least_records`, what it takes for a site's sums to show through its own noise.

    Returns
    -------
    estimator
        A fitted copy, with ``ledgers_`` (one per site, by name); ``ledger_`` is the first of them, all list the same
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
    fitted: Any = _checked(estimator)
    named = dict(sites) if isinstance(sites, Mapping) else {f"site {i}": site for i, site in enumerate(sites, start=1)}
    relation = relation_of(fitted.relation)
    sources = {name: _source(fitted, name, site) for name, site in named.items()}
    unit = _unit(fitted, sources)
    sources = {name: first_rows(source, None, unit) for name, source in sources.items()}
    facts = {name: describe_site(source, relation, unit.kind) for name, source in sources.items()}
    fitted.left_out_ = too_small(facts, least, budget_of(fitted.epsilon, fitted.delta, fitted.rho))
    facts = {name: fact for name, fact in facts.items() if name not in fitted.left_out_}
    sources = {name: sources[name] for name in facts}
    kind = trust_of(trust, max(len(sources), 1), honest)
    task = federated_task(fitted, facts, relation, len(facts) / kind.share, unit)
    if kind.share != 1 and any(line.mechanism == "selection" for line in task.plan().lines):
        raise InputError("trust must be 'sites' for a sparse fit: a private pick is no sum whose noise can be shared.")
    if own_units:
        refuse_unless_own(fitted, kind.share)
        task = in_own_units(task)
    noises = {name: site_noise(fitted.random_state, name) for name in sources}
    if any(noise.rehearsal for noise in noises.values()):
        warnings.warn(REHEARSAL, PrivacyWarning, stacklevel=2)
    return cast(Reducer, fit_sites(fitted, task, sources, noises, kind, leave_out, own_units, unit))


def fit_sites(
    fitted: Any,
    task: SitesTask | SparseSites,
    sources: Mapping[str, Source],
    noises: Mapping[str, Noise],
    trust: Trust,
    leave_out: bool = False,
    own_units: bool = False,
    unit: Unit = RECORD,
) -> Any:
    """Walk the plan over the sites and keep the outcome and every ledger."""
    budget, relation = budget_of(fitted.epsilon, fitted.delta, fitted.rho), relation_of(fitted.relation)
    plan = task.plan().calibrate(budget, unit.factor)
    ledgers, doors = {}, {}
    for name, source in sources.items():
        ledgers[name] = SiteLedger(budget, relation, rehearsal=noises[name].rehearsal, unit=unit)
        ledgers[name].trust = trust
        doors[name] = open_site(OneThread(source), plan, ledgers[name], noises[name], trust, name)
    sizes = {name: describe_site(source, relation, unit.kind).n_records for name, source in sources.items()}
    here = InProcess(doors, sizes)
    outcome = walk_sites(fitted, task, here, {}, leave_out, own_units, whole=trust.share == 1)
    fitted._keep(outcome, next(iter(ledgers.values())))
    fitted.ledgers_ = ledgers
    return fitted


class AskableSites(Sites, Askable, Protocol):
    """Sites that answer the same question or one of their own."""


def walk_sites(
    fitted: Any,
    task: SitesTask | SparseSites,
    sites: AskableSites,
    lost: dict[str, str],
    leave_out: bool,
    own_units: bool,
    *,
    needed: int = 1,
    whole: bool = True,
) -> Any:
    """Walk the plan over sites; what comes of it is what the estimator keeps. Of a sparse fit sites vote in between.

    Sites that have no units of their own in the end are noted in `lost`. At least `needed` must answer; `whole` says
    that each adds all its noise, not a share of it.
    """
    columns = int(getattr(task, "size", task.n_features))  # of two tables those of both
    inside = OwnUnits(sites, columns, needed) if own_units else sites
    # shares cannot be told apart by site, and in units of their own sites differ by the noise of their centres
    compared = whole and not own_units
    watched = ComparedSites(inside, leave_out=leave_out and compared)
    curator = FederatedCurator(watched, needed, weigh=whole)
    fitted.disagreeing_ = watched.disagreeing if compared else {}
    if isinstance(inside, OwnUnits):
        fitted.local_ = inside.bounds
        for site in sites.sizes.keys() - inside.bounds.keys():
            lost.setdefault(site, "did not answer while it was asked for units of its own.")
        return drive(cast(SitesTask, replace(cast(Any, task), bounds=UNITS)).run(), curator)
    return drive(run_sparse_sites(task, curator) if isinstance(task, SparseSites) else task.run(), curator)


@dataclass(frozen=True, slots=True)
class InProcess:
    """Sites that are a function call away."""

    doors: Mapping[str, Door]
    sizes: Mapping[str, int | None]

    def ask(self, query: BoundedSum, name: str) -> Mapping[str, Release]:
        """Everybody's release."""
        return self.each(dict.fromkeys(self.doors, query), name)

    def each(self, queries: Mapping[str, BoundedSum], name: str) -> Mapping[str, Release]:
        """The releases of the sites in `queries`, each for its own question."""
        with one_blas_thread():
            return {site: self.doors[site].answer(query, name) for site, query in queries.items()}

    def pick(self, query: BoundedSum, name: str, asked: Collection[str]) -> Mapping[str, IntArray]:
        """The picks of those asked."""
        with one_blas_thread():
            return {site: self.doors[site].select(query, name) for site in asked}


@dataclass(frozen=True, slots=True)
class OneThread:
    """Adds up one site's records; a hundred small sites have no use for a pool of threads each."""

    source: Source

    def sum(self, query: BoundedSum) -> IntArray:
        """The exact sum of the query over the site's records."""
        total = np.zeros(query.shape, dtype=np.int64)
        with np.errstate(all="ignore"):  # as in `Central`
            for part in self.source.parts():
                for records in self.source.read(part):
                    total += query.of(records)
        return total


def _checked(estimator: Any) -> Any:
    """A copy to fit."""
    refuse_unless_federated(estimator)
    if estimator.ledger is not None:
        raise InputError("ledger: in a federation every site has its own; leave it None and see ledgers_.")
    if current_account() is not None:
        raise InputError("account: in a federation every site has its own; simulate outside of 'with account(...)'.")
    return clone(estimator)


def _source(estimator: PrivateReducer, name: str, site: Any) -> Source:
    if isinstance(site, Source):
        return estimator._read(site, None, unit=unit_of(estimator.rows_per_person, site.has_people))
    explains = get_tags(estimator).target_tags.required
    if not isinstance(site, tuple) and not explains:
        site = (site, None)
    if not isinstance(site, tuple) or len(site) not in (2, 3):
        raise InputError(f"sites: {name!r} must be a pair (X, y), or (X, y, groups), or a scanned source.")
    unit = unit_of(estimator.rows_per_person, has_ids=len(site) == 3)
    source = estimator._read(site[0], site[1], unit=unit)
    return source.of(site[2]) if len(site) == 3 and isinstance(source, ArraySource) else source


def _unit(estimator: PrivateReducer, sources: Mapping[str, Source]) -> Unit:
    """Whom the sites protect: all of them the same."""
    known = {source.has_people for source in sources.values()}
    if len(known) > 1:
        raise InputError("sites: some say whose row is whose and others do not; give ids for all of them, or for none.")
    return unit_of(estimator.rows_per_person, has_ids=True in known)


def split_by_column(
    path: str,
    column: str,
    response: str | None = None,
    classes: Sequence[Any] | None = None,
    response_kind: ResponseKind | None = None,
    second: Sequence[str] | None = None,
) -> dict[str, Source]:
    """The records of a file as sites by name: one for each value of `column`, which is read as text."""
    table = open_tables([Path(path)])[0]
    for name, option in ((column, "by"), (response, "response")):
        if name is not None:
            suggest(name, table.names, option)
    others = (column, response, *expand(second or (), table.names, "second"))
    if column in others[1:]:
        raise InputError(f"by: {column!r} is the response, or of the second set; name the column of the sites.")
    features = [name for name in table.names if name not in others]
    paths = [Path(path)]
    source = open_source(paths, response, features, classes, response_kind=response_kind, second=second or ())
    records = source.pooled()
    if not len(records):
        raise InputError(f"data: {path} holds no records; give a file with some.")
    # The column that names the sites is no feature: it is read apart, and as text whatever its type.
    labels = np.asarray(table.whole({column: "text"}).column(column).to_pylist(), dtype=object).astype(str)
    names = sorted(set(labels.tolist()))
    about: dict[str, Any] = {"has_response": source.has_response, "n_second": source.n_second}
    if len(names) > MOST_SITES:
        raise InputError(f"by: column {column!r} would make more than {MOST_SITES:,} sites; name the one of the sites.")
    return {
        label: ArraySource(records.x[mine], records.y[mine], source.response, source.feature_names, **about)
        for label in names
        for mine in (labels == label,)
    }
