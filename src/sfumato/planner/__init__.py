"""What to expect of a fit before there is data: loss, records needed, and what no method can beat.

Nothing here is looked up or fitted to simulations. The noise of every release is known from the plan; how it moves
the directions is worked out step by step for a population (`population`), with the records replaced by their law.
"""

from sfumato.planner.compare import Comparison, compare
from sfumato.planner.forecast import Forecast, forecast, records_needed
from sfumato.planner.population import Population
from sfumato.planner.recommend import recommend

__all__ = ["Comparison", "Forecast", "Population", "compare", "forecast", "recommend", "records_needed"]
