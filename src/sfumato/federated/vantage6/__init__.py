"""Coordinator and site as an algorithm of vantage6's, for networks that run vantage6. Needs ``sfumato[vantage6]``."""
