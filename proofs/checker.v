(* The checker: a program on integers that accepts a table only if Theorem A    *)
(* holds of it.  It is sound by checker_sound.v; this file has no proofs.       *)
(*                                                                              *)
(* A table is what the server writes: words out of word_range, the order, the   *)
(* cutoff, and rationals as pairs of integers (numerator, denominator):         *)
(*   ratio          R, the price of a hit                                       *)
(*   growth         c, at most e ^ epsilon                                      *)
(*   hits_share     the part of delta for the hits                              *)
(*   release_share  the part of delta for a label that gets out                 *)
(*                                                                              *)
(* check_table t    whether all of this holds:                                  *)
(*   check_ranges   0 < P < word_range for each word, R >= 1, no denominator 0  *)
(*   check_steps    [*] for each two adjacent words, in both orders             *)
(*   check_growth   c <= 1 + epsilon + ... + epsilon ^ k / k!                   *)
(*   check_hits     R ^ T c ^ (1-a) (1 - 1/a) ^ (a-1) / a <= hits_share         *)
(*   check_release  1 - p_0 ^ T <= release_share                                *)
(*   check_delta    hits_share + release_share <= delta                         *)
(*                                                                              *)
(* Every comparison is multiplied out, so that nothing is rounded.  What is     *)
(* long comes last, behind an if, so that a table is refused at once.           *)
From Coq Require Import NArith Bool List.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Local Open Scope N_scope.

Definition fraction : Set := N * N.

Record table : Set := Table {
  epsilon : fraction;
  delta : fraction;
  cutoff : N;
  order : N;
  ratio : fraction;
  growth : fraction;
  growth_terms : N;
  hits_share : fraction;
  release_share : fraction;
  words : list N
}.

Definition word_range : N := 2 ^ 64.

Section Checks.
Variable range : N.

(* A word P with its complement A, and the powers of both to the order less 1. *)
Record entry : Set := Entry { hit : N; answer : N; hit_power : N; answer_power : N }.

Definition entry_of (m P : N) : entry :=
  let A := range - P in Entry P A (P ^ m) (A ^ m).

Definition is_fraction (x : fraction) : bool := 1 <=? snd x.

Definition check_ranges (t : table) : bool :=
  forallb (fun P => (1 <=? P) && (P + 1 <=? range)) (words t)
  && (1 <=? hd 0 (words t)) && (1 <=? range) && (2 <=? order t)
  && forallb is_fraction (epsilon t :: delta t :: ratio t :: growth t
                               :: hits_share t :: release_share t :: nil)
  && (1 <=? fst (growth t)) && (snd (ratio t) <=? fst (ratio t)).

(* [*] for p = x and q = y. *)
Definition check_step (r : fraction) (x y : entry) : bool :=
  snd r * (hit x * (hit_power x * answer_power y))
    + fst r * (answer x * (answer_power x * hit_power y))
  <=? fst r * (range * (hit_power y * answer_power y)).

Fixpoint check_steps (r : fraction) (entries : list entry) : bool :=
  match entries with
  | x :: ((y :: _) as rest) =>
      if check_step r x y && check_step r y x then check_steps r rest else false
  | _ => true
  end.

(* Numerator, denominator, and the power of epsilon's numerator. *)
Fixpoint exponential (e : fraction) (k : nat) : N * N * N :=
  match k with
  | O => (1, 1, 1)
  | S k' =>
      let '(numerator, denominator, power) := exponential e k' in
      let factor := N.of_nat k * snd e in
      (factor * numerator + fst e * power, factor * denominator, fst e * power)
  end.

Definition check_growth (t : table) : bool :=
  let '(numerator, denominator, _) := exponential (epsilon t) (N.to_nat (growth_terms t)) in
  fst (growth t) * denominator <=? snd (growth t) * numerator.

Definition check_hits (t : table) : bool :=
  let m := order t - 1 in
  snd (hits_share t) * fst (ratio t) ^ cutoff t * m ^ m * snd (growth t) ^ m
  <=? fst (hits_share t) * snd (ratio t) ^ cutoff t * order t ^ order t * fst (growth t) ^ m.

Definition check_release (t : table) : bool :=
  let first := hd 0 (words t) in
  snd (release_share t) * range ^ cutoff t
  <=? fst (release_share t) * range ^ cutoff t + snd (release_share t) * first ^ cutoff t.

Definition check_delta (t : table) : bool :=
  snd (delta t) * (fst (hits_share t) * snd (release_share t)
                   + fst (release_share t) * snd (hits_share t))
  <=? fst (delta t) * (snd (hits_share t) * snd (release_share t)).

Definition check (t : table) : bool :=
  if check_ranges t && check_growth t && check_hits t && check_release t && check_delta t
  then check_steps (ratio t) (map (entry_of (order t - 1)) (words t)) else false.

End Checks.

Definition check_table : table -> bool := check word_range.
