"""What a SuperNode starts for every message: the site that is installed there."""

from sfumato.federated.flower.client import client_app

app = client_app()
