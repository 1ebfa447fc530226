"""What to expect of a fit before there is data: loss, records needed, and what no method can beat.

Nothing here is looked up or fitted to simulations. The noise of every release is known from the plan; how it moves
the directions is worked out with the records replaced by their law: step by step for the response of an index
(`population`), for all else by running the fit's own code on a crowd that answers as records would (`crowd`).
"""

from sfumato.planner.compare import Comparison, compare
from sfumato.planner.forecast import Forecast, forecast, records_needed
from sfumato.planner.law import Law
from sfumato.planner.outlook import Outlook
from sfumato.planner.population import Population
from sfumato.planner.recommend import recommend

__all__ = [
    "Comparison",
    "Forecast",
    "Law",
    "Outlook",
    "Population",
    "compare",
    "forecast",
    "recommend",
    "records_needed",
]
