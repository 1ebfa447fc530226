"""Many sites at the cost of one: what K sites release and a server adds has a known law."""

from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import SecureNoise
from sfumato.privacy.plan import Plan
from sfumato.settings.central import Central
from sfumato.sources import ArraySource


class MergedSites:
    """Curators over pooled records with the noise of `clients` sites together, for studies alone.

    Sums over sites equal the pooled sum, and the noise of K sites, each calibrated to the whole budget, adds to a
    Gaussian of K times the variance: the law of `sfumato.federated.simulate` under trust="sites" (tested), for the time
    of one fit instead of K doors. The ledger states what each site spends.

    Parameters
    ----------
    source : ArraySource
        The records of all sites.
    clients : float
        Their number; with shares of the noise, number over honest ones.
    budget : Budget
        Of each site.
    """

    def __init__(self, source: ArraySource, clients: float, budget: Budget) -> None:
        self._source, self._clients, self._budget = source, clients, budget

    def open(self, plan: Plan) -> Curator:
        """For one plan, calibrated to each site's budget."""
        return self.merge(plan.calibrate(self._budget))

    def merge(self, plan: Plan) -> Curator:
        """For a plan that is calibrated already."""
        ledger = Ledger(self._budget, "replace")
        return Curator(Central(self._source), plan.merged(self._clients), ledger, SecureNoise())
