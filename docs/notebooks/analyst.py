# %% [markdown]
# # A notebook for the analyst: what makes planes late?
#
# 50,000 flights from New York. Which few weighted sums of what is known at the gate and in the air explain the delay on
# arrival? One flight is one record, and no flight may be recognisable in what leaves this notebook.
#
# ## What is known before any record is read
# Limits come from what is known about each measurement, never from the table.

# %%
import pyarrow as pa

from sfumato import PrivateSIR, account, datasets

flights = datasets.load_flights()
bounds = {
    "dep_delay": (-60, 180),  # minutes; from three hours on US rules call it significant
    "air_time": (0, 720),  # minutes
    "distance": (0, 5000),  # miles
    "arr_time": (1, 2400),  # hhmm
    "sched_arr_time": (1, 2400),
}
x, delay = flights.select(list(bounds)), flights["arr_delay"].to_numpy()
x.schema.names

# %% [markdown]
# ## The plan, before anything is spent
# Every release with its share of the budget, and the loss to expect.

# %%
sir = PrivateSIR(epsilon=1.0, delta=1e-6, bounds=bounds, n_directions=1, picture=True)
sir.explain(n_samples=flights.num_rows, n_features=len(bounds))

# %% [markdown]
# ## One account for everything
# Whatever is fitted inside the block is paid from `study.jsonl`, and refused beyond its cap.

# %%
with account("study.jsonl", epsilon=3, delta=1e-6, purpose="what delays flights") as study:
    sir.fit(x, delay)
sir

# %% [markdown]
# *Air time* against *distance* is how slowly the plane flew; the *delay at departure* is what it started with.
#
# ## Pictures, from released values

# %%
_ = sir.plot_loadings()
# %%
_ = sir.summary_plot()
# %% [markdown]
# ## Use it
# With the picture bought, a prediction costs nothing more.

# %%
predicted = sir.predict(x)
low, high = sir.predict_interval(x, coverage=0.9).T
held = ((low <= delay) & (delay <= high)).mean()
assert sir.verdict_.level == "reliable" and 0.8 < held < 0.98
print(f"{held:.0%} of the delays lie between the ends of a 90 % interval")
pa.table({"delay": delay[:5], "predicted": predicted[:5].round(1)}).to_pandas()

# %% [markdown]
# ## What may leave
# The report and the account; not the predictions, which are values of the records.

# %%
sir.report("report.html")
print(study.remaining().describe(), "is left")
