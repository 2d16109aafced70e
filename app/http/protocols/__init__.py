"""Two other protocols for the same answers: Open Inference Protocol V2 and MLflow's.

* ``v2.py`` defines the routes below ``/v2``; ``v2_body.py`` parses and checks an inference request,
  and ``v2_tensors.py`` its tensors, in JSON and in binary; ``v2_fast.py`` is a fast path for
  requests of one row.
* ``v2_grpc/`` offers the Open Inference Protocol over gRPC.
* ``mlflow.py`` defines ``POST /invocations`` and ``GET /ping``; its function that answers many rows
  also serves ``v2.py``.
"""
