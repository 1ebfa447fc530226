# %% [markdown]
# # A notebook for the researcher: what does privacy cost?
#
# A model whose truth is known (M1 of Xia, Zhang and Cai: a linear link, correlated features), so that the loss can be
# measured and set beside its forecast and the fit without privacy.

# %%
import numpy as np
import pandas as pd

from sfumato import SIR, Bounds, PrivateSIR, subspace_distance
from sfumato.simulate import xia

sample = xia("M1", n=20_000, p=15, random_state=0)
box = Bounds(-1.5, 1.5)

# %% [markdown]
# ## Before the fit
# How the expected loss changes with epsilon, from public numbers alone.

# %%
plan = PrivateSIR(epsilon=1.0, delta=1e-6, bounds=box, n_directions=1).explain(n_samples=20_000, n_features=15)
_ = plan.plot("epsilon")

# %% [markdown]
# ## Measured
# The same sample, fresh noise in every fit. A direction drawn at random would be at 1.37, and the forecast assumes that
# x explains 90 % of a function of y.


# %%
def losses(epsilon, fits=3):
    private = PrivateSIR(epsilon=epsilon, delta=1e-6, bounds=box, n_directions=1)
    return [subspace_distance(private.fit(sample.x, sample.y).directions_, sample.directions) for _ in range(fits)]


def foreseen(epsilon):
    private = PrivateSIR(epsilon=epsilon, delta=1e-6, bounds=box, n_directions=1)
    return private.explain(n_samples=20_000, n_features=15).forecast(signal=0.9).loss


plain = subspace_distance(SIR(n_directions=1).fit(sample.x, sample.y).directions_, sample.directions)
budgets = [0.25, 1.0, 4.0]
table = pd.DataFrame({"epsilon": budgets, "measured": [np.mean(losses(e)) for e in budgets]})
table["forecast"] = [foreseen(e) for e in budgets]
table["without privacy"] = plain
assert table["measured"].max() < 0.5
table.round(3)

# %% [markdown]
# ## Does it know how wrong it is?
# Standard errors follow from the releases. In units of them, the errors of the fifteen loadings:

# %%
sir = PrivateSIR(epsilon=1.0, delta=1e-6, bounds=box, n_directions=1).fit(sample.x, sample.y)
truth = sample.directions[0] * np.sign(sample.directions[0] @ sir.directions_[0])
z = (sir.directions_[0] - truth) / sir.standard_errors_[0]
z.round(1)

# %% [markdown]
# ## The eigenvalues, and where noise would end

# %%
_ = sir.plot_eigenvalues()
