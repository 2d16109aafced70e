"""The Open Inference Protocol over gRPC, with the same answers, API keys and limits as HTTP.

Needs the extra ``grpc``; only ``app/main.py`` imports it, and only where ``server.grpc_port`` is
set.

* ``grpc_predict_v2.proto`` has the messages, ``grpc_predict_v2.binpb`` the same as protoc reads
  them, and ``messages.py`` turns them into what HTTP's JSON is read into, and answers into them.
* ``calls.py`` has a handler for each method, within the same edge as a route of HTTP.
* ``inference_server.py`` has the server: its limits, its start and its end.
"""
