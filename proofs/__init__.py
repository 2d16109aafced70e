"""Theorems A and C and the checkers of their tables, in Coq, with the program that builds them.

``docs/proofs.md`` says what is checked by machine and what is not; read
``theorem_a.v`` first, from its header down.  Nothing here imports the server.
"""
