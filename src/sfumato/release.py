"""Release: the only thing that leaves the curator."""

from dataclasses import dataclass

import numpy as np

from sfumato.typing import FloatArray


@dataclass(frozen=True, slots=True)
class Release:
    """A noisy sum that knows its own noise.

    Attributes
    ----------
    value : ndarray
        The sum plus noise, in the units of the query.
    noise_std : ndarray
        Standard deviation of the noise, coordinate by coordinate (same shape). Public: it depends on the plan
        and on earlier releases only, so whoever uses the value may correct for it.

    Examples
    --------
    Releases of two sites add like the sums they carry; independent noise adds in quadrature.

    >>> import numpy as np
    >>> a = Release(np.array([10.0]), np.array([3.0]))
    >>> b = Release(np.array([20.0]), np.array([4.0]))
    >>> (a + b).value, (a + b).noise_std
    (array([30.]), array([5.]))
    """

    value: FloatArray
    noise_std: FloatArray

    def __post_init__(self) -> None:
        if self.value.shape != self.noise_std.shape:
            raise ValueError("value and noise_std must have the same shape.")

    def __add__(self, other: "Release") -> "Release":
        return Release(self.value + other.value, np.hypot(self.noise_std, other.noise_std))
