# %% [markdown]
# # A notebook for a consortium: airlines that may not pool
#
# Each airline keeps its flights; only sums leave, with noise that the airline itself has added. Each has its own
# account. Here they are on one machine; [deployed](../howto/federated.md), the same code runs at each of them.

# %%
import numpy as np
import pandas as pd

from sfumato import PrivateSIR, datasets, subspace_distance
from sfumato.federated import simulate

flights = datasets.load_flights().to_pandas()
bounds = {"dep_delay": (-60, 180), "air_time": (0, 720), "distance": (0, 5000)}
airlines = {name: rows for name, rows in flights.groupby("carrier") if len(rows) > 2_000}
sites = {name: (rows[list(bounds)], rows["arr_delay"].to_numpy()) for name, rows in airlines.items()}
pd.Series({name: len(rows) for name, rows in airlines.items()}, name="flights").to_frame().T

# %% [markdown]
# ## The fit
# Sizes are public, everything else is private; nobody needs to be trusted.

# %%
one = PrivateSIR(epsilon=1.0, delta=1e-6, bounds=bounds, n_directions=1)
together = simulate(one, sites)
together

# %% [markdown]
# ## What each airline spent

# %%
next(iter(together.ledgers_.values()))

# %% [markdown]
# ## Are they alike?
# From what was released anyway: airlines fly different routes, and it shows.

# %%
for each in together.disagreeing_.values():
    print(f"{each.site} differs from the others in {each.about} (p = {each.p_value:.1g})")

# %% [markdown]
# ## What it costs not to pool
# The same budget with all records in one place, and the angle between the two answers.

# %%
rows = pd.concat(airlines.values())
pooled = PrivateSIR(epsilon=1.0, delta=1e-6, bounds=bounds, n_directions=1).fit(rows[list(bounds)], rows["arr_delay"])
spread = pooled.scale_  # a mile is not a minute: compare per standard deviation
apart = subspace_distance(together.directions_ * spread, pooled.directions_ * spread)
angle = np.degrees(np.arcsin(min(1.0, apart / np.sqrt(2))))
print(f"{angle:.1f} degrees apart")
