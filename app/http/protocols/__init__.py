"""Two other protocols for the same answers: Open Inference Protocol V2 and MLflow's.

* ``v2.py`` has the routes below ``/v2``; ``v2_body.py`` reads and checks an inference request, and
  ``v2_tensors.py`` its tensors, in JSON and in binary; ``v2_plain.py`` is a fast path for one row.
* ``v2_grpc/`` has the same protocol over gRPC.
* ``mlflow.py`` has ``POST /invocations`` and ``GET /ping``, and the answers to many rows that both
  protocols share.
"""
