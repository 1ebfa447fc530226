"""What a site may say about itself. A site imports this and no estimator."""

from dataclasses import dataclass
from typing import Any

from sfumato.privacy.noise import Noise, SecureNoise
from sfumato.privacy.parameters import noise_of
from sfumato.privacy.unit import Kind
from sfumato.records import Response
from sfumato.settings.federated import LineNoise
from sfumato.sources import Source
from sfumato.typing import Relation


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """What a site says about itself; all of it public. `n_records` is None under add/remove-one, and where persons are
    protected.

    `rehearsal` says that its noise is seeded, so that nothing it releases is private. The last `n_second` of the
    features are those of a second table.
    """

    n_features: int
    n_records: int | None
    response: Response
    feature_names: tuple[str, ...] | None = None
    rehearsal: bool = False
    has_response: bool = True
    n_second: int = 0
    classes: tuple[str, ...] | None = None


def describe_site(source: Source, relation: Relation, protects: Kind = "record") -> SiteFacts:
    """What a site may say about its records; how many rows its persons have is private."""
    count = source.count() if relation == "replace" and protects == "record" else None
    return SiteFacts(
        source.n_features,
        count,
        source.response,
        source.feature_names,
        has_response=source.has_response,
        n_second=source.n_second,
        classes=source.classes,
    )


def site_noise(random_state: Any, site: str) -> Noise:
    """A site's own noise: cryptographic, or seeded by (seed, site, line) for a rehearsal."""
    if random_state is None:
        return SecureNoise()
    noise_of(random_state)  # refuses what is not a seed
    return LineNoise(int(random_state), site)
