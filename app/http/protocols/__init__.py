"""Other servers' protocols on the same answers: Open Inference Protocol V2 and MLflow.

``v2.py`` has the V2 routes, ``v2_body.py`` and ``v2_tensors.py`` read its JSON and binary
tensors; ``mlflow.py`` is ``POST /invocations``.
"""
