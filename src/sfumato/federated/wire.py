"""The questions that sites answer, a part of those in `sfumato.statistics.wire`; whatever else comes is refused."""

from typing import Any

from sfumato.bounds import Grid
from sfumato.statistics import wire
from sfumato.statistics.columns import OnColumns
from sfumato.statistics.gradients import Residual, ResidualHistogram, ResidualProduct
from sfumato.statistics.histograms import (
    Bins,
    DistanceHistograms,
    LinearHistograms,
    NormHistogram,
    OctaveHistograms,
    ResponseHistogram,
)
from sfumato.statistics.moments import Moments
from sfumato.statistics.pictures import ProjectionHistogram
from sfumato.statistics.scores import SignScores
from sfumato.statistics.slice_seconds import SliceSecondMoments
from sfumato.statistics.slices import SlicedMoments
from sfumato.statistics.squares import SquareSums
from sfumato.statistics.whitening import Whitening
from sfumato.statistics.wire import RefusedError, digest, dump_json, encode
from sfumato.sums import BoundedSum

__all__ = ["KINDS", "Decoder", "RefusedError", "digest", "dump_json", "encode"]

KINDS = (
    Grid,
    Bins,
    Whitening,
    Residual,
    ResponseHistogram,
    NormHistogram,
    OctaveHistograms,
    LinearHistograms,
    DistanceHistograms,
    Moments,
    ResidualHistogram,
    ResidualProduct,
    SlicedMoments,
    SliceSecondMoments,
    SignScores,
    SquareSums,
    OnColumns,
    ProjectionHistogram,
)


class Decoder(wire.Decoder):
    """Reads the questions of a run back."""

    def __init__(self) -> None:
        super().__init__(KINDS)

    def query(self, data: Any) -> BoundedSum:
        """The bounded sum, or `RefusedError`: columns are selected once, so that what is asked stays readable."""
        value = super().query(data)
        if isinstance(value, OnColumns) and isinstance(value.query, OnColumns):
            raise RefusedError("the question selects columns twice.")
        return value
