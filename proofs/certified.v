(* A checker of certificates for Theorem C: a program on integers.  It is sound *)
(* by certified_sound.v; this file has no proofs.                               *)
(*                                                                              *)
(* A certificate has a function V h for h = 0..T hits left, each a list of      *)
(* kinks (node, rise of the slope), in units of its own:                        *)
(*   node_unit      a node x stands for x / node_unit                           *)
(*   slope_unit     a rise k stands for k / slope_unit                          *)
(*   factor         c times node_unit; c is at most e ^ budget_epsilon          *)
(*   functions      V 0, ..., V T                                               *)
(*   entries        the words of the table, out of range                        *)
(*                                                                              *)
(* check_certificate   whether all of this holds:                               *)
(*   check_shape    words inside the range, units above 0, each list of nodes   *)
(*                  begins with 0 and rises                                     *)
(*   check_factor   c <= 1 + epsilon + ... + epsilon ^ k / k!                   *)
(*   check_start    V 0 z >= z - c at its nodes, and its last slope is 1        *)
(*   check_next     from V h to V (h + 1): slopes, rises, labels, and hits for  *)
(*                  each two adjacent words in both orders, at the nodes        *)
(*   check_loss     V T 1 <= delta                                              *)
(*                                                                              *)
(* N.sub stops at 0, which is the max(0, .) of a kink.                          *)
From Coq Require Import NArith Bool List.
From Conclave Require Import checker.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Local Open Scope N_scope.

Definition kinks : Set := list (N * N).

Record certificate : Set := Certificate {
  budget_epsilon : fraction;
  budget_delta : fraction;
  factor_terms : N;
  node_unit : N;
  slope_unit : N;
  factor : N;
  functions : list kinks;
  entries : list N
}.

Section Checks.
Variable range : N.

(* In node units times slope units. *)
Fixpoint spread (K : kinks) (z w : N) : N :=
  match K with
  | (x, k) :: rest => k * (z - x * w) + spread rest z w
  | nil => 0
  end.

Fixpoint end_slope (K : kinks) : N :=
  match K with
  | (_, k) :: rest => k + end_slope rest
  | nil => 0
  end.

Fixpoint rising (x : N) (K : kinks) : bool :=
  match K with
  | (y, _) :: rest => (x + 1 <=? y) && rising y rest
  | nil => true
  end.

Definition starts_at_0 (K : kinks) : bool :=
  match K with
  | (0, _) :: rest => rising 0 rest
  | _ => false
  end.

Definition inside_range (P : N) : bool := (1 <=? P) && (P + 1 <=? range).

Definition check_shape (t : certificate) : bool :=
  forallb inside_range (entries t) && inside_range (hd 0 (entries t))
  && (1 <=? range) && (1 <=? node_unit t) && (1 <=? slope_unit t)
  && (1 <=? snd (budget_epsilon t)) && (1 <=? snd (budget_delta t))
  && forallb starts_at_0 (functions t).

Definition check_factor (t : certificate) : bool :=
  let '(numerator, denominator, _) :=
    exponential (budget_epsilon t) (N.to_nat (factor_terms t)) in
  factor t * denominator <=? node_unit t * numerator.

Definition check_start (t : certificate) : bool :=
  let K := hd nil (functions t) in
  (slope_unit t <=? end_slope K)
  && forallb (fun kink => slope_unit t * fst kink <=? spread K (fst kink) 1 + slope_unit t * factor t) K.

Definition check_hit (K K' : kinks) (P Q x : N) : bool :=
  spread K (x * P) Q + spread K' (x * (range - P)) (range - Q) <=? range * spread K' x 1.

Definition both_orders (K K' : kinks) (P Q x : N) : bool :=
  if check_hit K K' P Q x then check_hit K K' Q P x else false.

Fixpoint check_pairs (K K' : kinks) (words : list N) : bool :=
  match words with
  | P :: ((Q :: _) as rest) =>
      if forallb (fun kink => both_orders K K' P Q (fst kink)) K' then check_pairs K K' rest else false
  | _ => true
  end.

Definition check_node (unit first : N) (K K' : kinks) (x : N) : bool :=
  (spread K x 1 <=? spread K' x 1)
  && (first * spread K x 1 + (range - first) * (unit * x) <=? range * spread K' x 1).

Fixpoint check_functions (unit : N) (words : list N) (Ks : list kinks) : bool :=
  match Ks with
  | K :: ((K' :: _) as rest) =>
      if (end_slope K <=? end_slope K')
         && forallb (fun kink => check_node unit (hd 0 words) K K' (fst kink)) K'
         && check_pairs K K' words
      then check_functions unit words rest else false
  | _ => true
  end.

Definition check_loss (t : certificate) : bool :=
  snd (budget_delta t) * spread (last (functions t) nil) (node_unit t) 1
  <=? fst (budget_delta t) * (node_unit t * slope_unit t).

Definition certificate_accepted (t : certificate) : bool :=
  if check_shape t && check_factor t && check_start t && check_loss t
  then check_functions (slope_unit t) (entries t) (functions t) else false.

End Checks.

Definition check_certificate : certificate -> bool := certificate_accepted word_range.
