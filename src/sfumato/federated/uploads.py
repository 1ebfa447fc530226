"""What a coordinator demands of an upload. Flower's own aggregation accepts NaN and broadcasts wrong shapes."""

from typing import Any

import numpy as np

from sfumato.errors import SfumatoError
from sfumato.federated.facts import Facts
from sfumato.privacy import mechanisms
from sfumato.privacy.events import Gaussian
from sfumato.privacy.plan import Line
from sfumato.records import Response
from sfumato.release import Release
from sfumato.sums import BoundedSum
from sfumato.typing import IntArray, Relation

REACH = 12.0
"""Standard deviations of noise an honest answer may be off by: one number in 10**32 is."""
_NO_COUNT = 2**40


class BadUploadError(SfumatoError):
    """An upload that no honest site sends; says what is wrong with it."""


def facts_from(head: dict[str, Any]) -> Facts:
    """A site's facts, or `BadUploadError`."""
    features, records, response = head.get("n_features"), head.get("n_records"), head.get("response")
    names = head.get("feature_names")
    if type(features) is not int or not 1 <= features <= 10**6:
        raise BadUploadError("the number of features is not a count.")
    if records is not None and (type(records) is not int or not 1 <= records < _NO_COUNT):
        raise BadUploadError("the number of records is not a count.")
    if not isinstance(response, dict) or set(response) != {"categories", "hashed"}:
        raise BadUploadError("the kind of response is missing.")
    if names is not None and (not isinstance(names, list) or not all(isinstance(name, str) for name in names)):
        raise BadUploadError("the feature names are not names.")
    kind = Response(response["categories"], bool(response["hashed"]))
    rehearsal = head.get("rehearsal") is not False
    return Facts(features, records, kind, None if names is None else tuple(names), rehearsal)


def release_from(
    head: dict[str, Any], values: bytes, query: BoundedSum, line: Line, relation: Relation, records: int | None
) -> Release:
    """The upload as a release with the noise the plan prescribes, or `BadUploadError`.

    No honest sum over n records has a coordinate beyond n times what one record may weigh, give or take the noise;
    where n is private only the shape and finiteness can be checked.
    """
    if head.get("line") != line.name or head.get("shape") != list(query.shape):
        raise BadUploadError("the upload has the wrong shape or answers another line.")
    if len(values) != 8 * int(np.prod(query.shape)):
        raise BadUploadError("the upload has the wrong length.")
    value = np.frombuffer(values, dtype="<f8").reshape(query.shape)
    if not np.isfinite(value).all():
        raise BadUploadError("the upload has values that are not finite (NaN or inf).")
    event = line.event
    assert isinstance(event, Gaussian)
    std = mechanisms.released_std(query, relation, event)
    if records is not None:
        largest = records * query.norm / query.weights * query.grid + REACH * std
        if (np.abs(value) > largest * (1 + 1e-9)).any():
            raise BadUploadError("the upload has values larger than its records can add up to.")
    return Release(value, std)


def picks_from(head: dict[str, Any], values: bytes, query: BoundedSum, line: Line) -> IntArray:
    """The upload as picks among the columns asked about, or `BadUploadError`."""
    if head.get("line") != line.name or head.get("shape") != [line.picks] or len(values) != 8 * line.picks:
        raise BadUploadError("the upload has the wrong shape or answers another line.")
    value = np.frombuffer(values, dtype="<f8")
    if not np.isfinite(value).all() or (value != np.rint(value)).any():
        raise BadUploadError("the upload has picks that are not whole numbers.")
    if value.min() < 0 or value.max() >= query.shape[-1] or np.unique(value).size < value.size:
        raise BadUploadError("the upload has picks that are not there, or one twice.")
    return value.astype(np.int64)
