"""The Flower apps: a thin edge around `Site` and `fit_remote`. Needs ``pip install sfumato[federated]``."""
