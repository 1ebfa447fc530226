"""Built-in data: flights, wines and handwritten digits, with bounds that anyone may know.

The files and their sources, licences and citations are in ``sfumato/data/README.md``.
"""

from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow.parquet as pq

from sfumato.errors import InputError

Domain = dict[str, tuple[float, float]]

# Bounds must not come from the records, or they would tell about them. Each of these could be written down
# before the data were collected; what lies outside is clipped, and some of it does.
_FLIGHTS: Domain = {
    "month": (1, 12),
    "day": (1, 31),
    "dep_delay": (-60, 180),  # minutes; from three hours on US rules call it significant
    "arr_time": (1, 2400),  # hhmm
    "sched_arr_time": (1, 2400),
    "air_time": (0, 720),  # minutes; Honolulu, the farthest place served, is eleven hours away
    "distance": (0, 5000),  # miles, likewise
    "arr_delay": (-60, 180),
}
# Limits of law and practice for still wine (International Organisation of Vine and Wine, European Union).
_WINE: Domain = {
    "fixed_acidity": (3, 15),  # g/l tartaric acid
    "volatile_acidity": (0, 1.5),  # g/l acetic acid; the legal limit is 1.2
    "citric_acid": (0, 1),  # g/l, legal limit
    "residual_sugar": (0, 45),  # g/l; sweet wine begins here
    "chlorides": (0, 0.5),  # g/l sodium chloride; half the limit of Australian law
    "free_sulfur_dioxide": (0, 100),  # mg/l; smelt from 50
    "total_sulfur_dioxide": (0, 300),  # mg/l, legal limit unless very sweet
    "density": (0.985, 1.01),  # g/ml; from strong and dry to light and sweet
    "pH": (2.7, 4.2),
    "sulphates": (0, 1.5),  # g/l potassium sulphate, legal limit for aged wine
    "alcohol": (8, 15),  # % by volume, the European Union's definition of wine, rounded
    "red": (0, 1),
    "quality": (0, 10),  # the tasters' scale
}
# Eight points along the pen's path, scaled to a square of 0 to 100 when the data were made.
_PENDIGITS: Domain = {f"{axis}{point}": (0, 100) for point in range(1, 9) for axis in "xy"}
_PENDIGITS |= {"digit": (0, 9), "test": (0, 1)}
_DOMAINS = MappingProxyType({"flights": _FLIGHTS, "pendigits": _PENDIGITS, "wine": _WINE})


def names() -> tuple[str, ...]:
    """Names of the built-in data sets.

    Examples
    --------
    >>> names()
    ('flights', 'pendigits', 'wine')
    """
    return tuple(_DOMAINS)


def path(name: str) -> Path:
    """The Parquet file of a built-in data set, to be scanned like one's own.

    Examples
    --------
    >>> path("wine").name
    'wine.parquet'
    """
    if name not in _DOMAINS:
        raise InputError(f"name must be one of {', '.join(map(repr, _DOMAINS))}, got {name!r}.")
    return Path(str(resources.files("sfumato"))) / "data" / f"{name}.parquet"


def domain(name: str) -> Domain:
    """Public bounds {column: (lower, upper)} of the numeric columns of a built-in data set.

    They come from the meaning of the columns (a month has at most 31 days; the law limits what is in wine),
    not from the smallest and largest record, so stating them costs no privacy. Values outside exist, mostly
    delays of more than three hours; they are clipped like anybody else's.

    Examples
    --------
    >>> domain("flights")["month"]
    (1, 12)
    """
    path(name)
    return dict(_DOMAINS[name])


def load_flights() -> Any:
    """50,000 of the 327,346 completed flights that left New York City in 2013, drawn at random.

    `arr_delay` (minutes) is the usual response; `carrier` divides the records into 16 natural sites.

    Returns
    -------
    pyarrow.Table
        month, day, dep_delay, arr_time, sched_arr_time, air_time, distance, carrier, arr_delay. Use
        ``.to_pandas()`` for pandas.

    Examples
    --------
    >>> load_flights().num_rows
    50000
    """
    return pq.read_table(path("flights"))


def load_wine() -> Any:
    """6,497 Portuguese wines: 11 measurements, whether red, and the tasters' `quality` (0 to 10).

    Returns
    -------
    pyarrow.Table
        1,599 red wines, then 4,898 white ones. Use ``.to_pandas()`` for pandas.

    Examples
    --------
    >>> load_wine().column_names[-3:]
    ['alcohol', 'red', 'quality']
    """
    return pq.read_table(path("wine"))


def load_pendigits() -> Any:
    """10,992 digits written on a tablet: eight points (x, y) along the pen's path, and which `digit` it was.

    Returns
    -------
    pyarrow.Table
        7,494 training rows by 30 writers, then 3,498 rows by 14 others, marked `test`. Use ``.to_pandas()``
        for pandas.

    Examples
    --------
    >>> load_pendigits().column_names[:4]
    ['x1', 'y1', 'x2', 'y2']
    """
    return pq.read_table(path("pendigits"))
