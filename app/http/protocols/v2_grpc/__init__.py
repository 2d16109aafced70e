"""The Open Inference Protocol over gRPC, with the same answers, API keys and limits as HTTP.

The folder needs the extra ``grpc``; only ``app/main.py`` imports it, and only if
``server.grpc_port`` is set.

* ``grpc_predict_v2.proto`` defines the messages, ``grpc_predict_v2.binpb`` is this file as compiled
  by protoc, and ``messages.py`` converts messages to the requests that JSON bodies contain in HTTP,
  and converts answers to messages.
* ``calls.py`` contains a handler for each method, with the same access control and error handling
  as an HTTP route.
* ``inference_server.py`` is the server: its limits, its start and its end.
"""
