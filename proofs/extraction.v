(* Both checkers as programs in OCaml, with the integers of Zarith, and its     *)
(* square root, in place of N: verdicts.ml reads what they decide about.  That  *)
(* what is written computes what is defined is not proved: it is trusted.       *)
From Coq Require Import NArith ExtrOcamlBasic ExtrOcamlZBigInt.
From Conclave Require Import checker certified sweep.

Extract Constant N.sqrt => "Big_int_Z.sqrt_big_int".
Set Extraction Output Directory ".".
Extraction "checkers.ml" check_table check_shared_table sweep_certificate.
