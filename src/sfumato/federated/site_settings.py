"""A site from names and values: the settings of a SuperNode of Flower's, or a file at a site of NVFlare or vantage6."""

import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.federated.site import LOG, Site
from sfumato.privacy.budget import Budget
from sfumato.privacy.ledger import FileLedger
from sfumato.privacy.ledger.disk import MOUNTS, file_system_of
from sfumato.sources import response_kind_of
from sfumato.sources.files import open_source
from sfumato.sources.names import find

NEEDED = ("name", "data", "ledger", "folder")
_CATEGORICAL = "categorical."


def open_site(config: Mapping[str, Any], tell: Callable[[str], None] = LOG.warning) -> Site:
    """The site that these settings are of; lists are written as ``a|b|c``.

    Needs name, data, ledger and folder; takes response, features, second, classes, response-kind, person,
    categorical.COLUMN, most (epsilon that one run may spend), least (records the site must have) and seed.
    """
    missing = [key for key in NEEDED if key not in config]
    if missing:
        raise InputError(f"{missing[0]}: not in the site's settings; a site needs {', '.join(NEEDED)}.")
    lists = {key: str(value).split("|") for key, value in config.items()}
    declared = {key.removeprefix(_CATEGORICAL): names for key, names in lists.items() if key.startswith(_CATEGORICAL)}
    told = {key: str(value) for key, value in config.items()}
    features, classes = lists.get("features"), lists.get("classes")
    kind, person = response_kind_of(told.get("response-kind")), told.get("person")
    source = open_source(
        find(told["data"]),
        told.get("response"),
        features,
        classes,
        declared,
        second=lists.get("second", ()),
        response_kind=kind,
        person=person,
    )
    seed, least = (int(told[key]) if key in told else None for key in ("seed", "least"))
    most = None
    if "most" in told:
        most = Budget.approximate(float(told["most"]), FileLedger(told["ledger"]).budget.delta or 1e-6)
    rules: dict[str, Any] = {"most": most, "least": least, "tell": tell, "random_state": seed}
    return Site(source, told["ledger"], told["folder"], name=told["name"], **rules)


def read_settings(path: Path) -> Mapping[str, Any]:
    """The settings in a site's own file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise InputError(f"settings: {path} cannot be read; write the site's data, ledger and folder there.") from None
    except ValueError:
        raise InputError(
            f"settings: {path} is not TOML; write lines such as data = '/srv/north/records.csv'."
        ) from None


class Notes:
    """What a site's operator must know, and nobody else, where what is logged may be sent to a server.

    It goes to ``site.log`` in a folder of the site's; as long as that is not known, to the terminal.
    """

    def __init__(self) -> None:
        self._path: Path | None = None

    def begin(self, folder: Path) -> None:
        """Write to this folder from now on."""
        self._path = folder / "site.log"

    def tell(self, text: str) -> None:
        """Write a line; a disk that is full must not end the site."""
        if self._path is None:
            print(f"sfumato: {text}", flush=True)
            return
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {text}\n")


SHORT_LIVED = frozenset({"tmpfs", "ramfs", "overlay", "overlayfs", "aufs"})
"""File systems in memory, and the layers of a container."""


def demand_kept(config: Mapping[str, Any], passing: Path, mounts: Path = MOUNTS) -> None:
    """Refuse an account that does not outlast the job, in a folder that comes and goes or a container's own files.

    Every run would find its budget unspent. `passing` is a folder that belongs to the network, not to the site.
    """
    for key in (key for key in ("ledger", "folder") if key in config):
        path = Path(str(config[key]))
        if not path.is_absolute():
            raise InputError(f"{key}: name it by its whole path, such as '/srv/north/{path.name or key}'.")
        place = path.resolve()
        if place.is_relative_to(passing.resolve()):
            raise InputError(f"{key}: {path} is in {passing}, which jobs share and clean; put it elsewhere.")
        if file_system_of(place, mounts) in SHORT_LIVED:
            raise InputError(f"{key}: {path} is gone when this container or machine ends; keep it on a volume.")
