"""What to expect of a fit before there is data: loss, records needed, and what no method can beat.

Nothing here is looked up or fitted to simulations. The fit's own code is run on a stand-in that answers as records of
an assumed population would, with the noise of the plan.
"""

from sfumato.forecast.comparison import Comparison, compare
from sfumato.forecast.loss import Forecast, forecast, records_needed
from sfumato.forecast.populations import IndexResponse, Population
from sfumato.forecast.prospect import Prospect
from sfumato.forecast.stand_in import StandIn

__all__ = [
    "Comparison",
    "Forecast",
    "IndexResponse",
    "Population",
    "Prospect",
    "StandIn",
    "compare",
    "forecast",
    "records_needed",
]
