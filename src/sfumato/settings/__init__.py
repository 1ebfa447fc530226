"""WHO adds: this process, the workers of a cluster, or sites that are curators themselves."""

from typing import Protocol

from sfumato.privacy.door import Setting
from sfumato.settings.central import Central
from sfumato.sources import Source


class Adder(Setting, Protocol):
    """Adds up records, and refuses those outside the declared domain before anything is spent."""

    def check(self) -> None:
        """Refuse values outside the declared domain."""


def adder_of(source: Source) -> Adder:
    """Who adds up a source: the cluster that it was scanned with or lies in, else this process."""
    if source.cluster is None:
        return Central(source)
    from sfumato.sources.streams import SparkTable

    if isinstance(source.cluster, SparkTable):
        from sfumato.settings.spark import SparkAdder

        return SparkAdder(source, source.cluster)
    from sfumato.settings.dask import dask_adder

    return dask_adder(source)
