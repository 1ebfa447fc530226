"""What a task of vantage6's may call: ``PKG_NAME=sfumato.federated.vantage6.algorithm`` in the image.

vantage6 calls whatever callable a task names in this module, with arguments of the task's choice. So nothing else is
imported here, and everything that sees a file is in ``node.py``.
"""

from vantage6.algorithm.tools.decorators import algorithm_client

from sfumato.federated.vantage6 import node as _node

fit = algorithm_client(_node.coordinate)
"""The coordinator: fits once over the organizations of its ``settings``; the outcome."""
answer = algorithm_client(_node.reply)
"""The site: its reply to one ``question`` of a coordinator's."""
