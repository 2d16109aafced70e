(* Both checkers as programs in OCaml, with the integers of Zarith in place of  *)
(* N: verdicts.ml reads what they decide about.  That what is written computes  *)
(* what is defined is not proved: it is trusted.                                *)
From Coq Require Import ExtrOcamlBasic ExtrOcamlZBigInt.
From Conclave Require Import checker certified sweep.

Set Extraction Output Directory ".".
Extraction "checkers.ml" check_table sweep_certificate.
