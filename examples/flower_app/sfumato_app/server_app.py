"""What the SuperLink starts: the coordinator that is installed there."""

from sfumato.federated.flower.app import server_app

app = server_app()
