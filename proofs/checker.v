(* The checker: a program on integers that accepts a table only if Theorem A    *)
(* holds of it.  It is sound by checker_sound.v; this file has no proofs.       *)
(*                                                                              *)
(* A table is what the server writes: words out of word_range, the order, the   *)
(* cutoff, and rationals as pairs of integers (numerator, denominator):         *)
(*   order          (m, k), for order 1 + m / 2 ^ k                             *)
(*   ratio          R, the price of a hit                                       *)
(*   growth         c, at most e ^ epsilon                                      *)
(*   hits_share     the part of delta for the hits                              *)
(*   release_share  the part of delta for a label that gets out                 *)
(*                                                                              *)
(* check_table t    whether all of this holds:                                  *)
(*   check_ranges   0 < P < word_range for each word, R > 1, no denominator 0   *)
(*   check_shape    all else that the server asks of a table, clause by clause  *)
(*   check_steps    [*] for each two adjacent words, in both orders             *)
(*   check_growth   c <= 1 + epsilon + ... + epsilon ^ k / k!                   *)
(*   check_hits     R ^ T ((1 - 1/a) / c) ^ (a-1) / a <= hits_share             *)
(*   check_release  1 - p_0 ^ T <= release_share                                *)
(*   check_delta    hits_share + release_share <= delta                         *)
(*                                                                              *)
(* check_shared_table t moment total                                            *)
(*                  whether check_table t, and moment * hits_share              *)
(*                  + release_share <= total, for draws that share the account  *)
(*                  and whose moments multiply to moment at most                *)
(*                                                                              *)
(* A power x ^ (m / 2 ^ k) is bounded from above by power_above, in integers    *)
(* out of unit: every product, quotient and square root is rounded up.  All     *)
(* else is multiplied out, so that nothing is rounded.  What is long comes      *)
(* last, behind an if, so that a table is refused at once.                      *)
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
  order : fraction;
  ratio : fraction;
  growth : fraction;
  growth_terms : N;
  hits_share : fraction;
  release_share : fraction;
  words : list N
}.

Definition word_range : N := 2 ^ 64.

(* What the server asks beyond the theorem: limits of its own arithmetic. *)
Definition entry_count_max : N := 2 ^ 17.
Definition excess_max : N := 2 ^ 21 - 1.
Definition release_share_min : N := 2 ^ 60.

Definition precision : N := 192.

Section Powers.
Variable unit_bits : N.

Definition unit : N := 2 ^ unit_bits.

Definition times_above (x y : N) : N := N.shiftr (x * y) unit_bits + 1.
Definition quotient_above (x y : N) : N := N.shiftl x unit_bits / y + 1.
Definition root_above (x : N) : N := N.sqrt (N.shiftl x unit_bits) + 1.

Fixpoint positive_power_above (x : N) (n : positive) : N :=
  match n with
  | xH => x
  | xO n' => let y := positive_power_above x n' in times_above y y
  | xI n' => let y := positive_power_above x n' in times_above x (times_above y y)
  end.

Definition whole_power_above (x n : N) : N :=
  match n with N0 => unit | Npos n' => positive_power_above x n' end.

(* x ^ (m / 2 ^ k): the whole part, and the rest as a power of the square root. *)
Fixpoint power_above (x : N) (k : nat) (m : N) : N :=
  match k with
  | O => whole_power_above x m
  | S k' =>
      let halved := 2 ^ N.of_nat k in
      times_above (whole_power_above x (m / halved)) (power_above (root_above x) k' (m mod halved))
  end.

End Powers.

Section Checks.
Variables (range unit_bits : N).
Notation unit := (unit unit_bits).
Notation power_above := (power_above unit_bits).
Notation quotient_above := (quotient_above unit_bits).

Definition halvings (t : table) : nat := N.to_nat (snd (order t)).

Definition is_fraction (x : fraction) : bool := 1 <=? snd x.

Definition check_ranges (t : table) : bool :=
  forallb (fun P => (1 <=? P) && (P + 1 <=? range)) (words t)
  && (1 <=? hd 0 (words t)) && (1 <=? range) && (1 <=? fst (order t))
  && forallb is_fraction (epsilon t :: delta t :: ratio t :: growth t
                               :: hits_share t :: release_share t :: nil)
  && (1 <=? fst (growth t)) && (snd (ratio t) + 1 <=? fst (ratio t)).

Fixpoint falls (ws : list N) : bool :=
  match ws with
  | P :: ((Q :: _) as rest) => if Q <=? P then falls rest else false
  | _ => true
  end.

Definition check_shape (t : table) : bool :=
  (1 <=? cutoff t) && (1 <=? fst (epsilon t))
  && (1 <=? fst (hits_share t)) && (1 <=? fst (release_share t))
  && (cutoff t * snd (release_share t) <=? fst (release_share t) * release_share_min)
  && (fst (delta t) + 1 <=? snd (delta t))
  && (N.of_nat (length (words t)) <=? entry_count_max)
  && (fst (order t) <=? N.shiftl excess_max (snd (order t)))
  && falls (words t).

(* [*] for p = P and q = Q, words with their complements A and B. *)
Definition check_step (k : nat) (m : N) (r : fraction) (P Q : N) : bool :=
  let A := range - P in
  P * power_above (quotient_above P Q) k m * snd r
    + A * power_above (quotient_above A (range - Q)) k m * fst r
  <=? fst r * (range * unit).

Fixpoint check_steps (k : nat) (m : N) (r : fraction) (ws : list N) : bool :=
  match ws with
  | P :: ((Q :: _) as rest) =>
      if check_step k m r P Q && check_step k m r Q P then check_steps k m r rest else false
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
  let m := fst (order t) in
  let n := 2 ^ N.of_nat (halvings t) in
  let base := quotient_above (m * snd (growth t)) ((m + n) * fst (growth t)) in
  snd (hits_share t) * fst (ratio t) ^ cutoff t * n * power_above base (halvings t) m
  <=? fst (hits_share t) * snd (ratio t) ^ cutoff t * (m + n) * unit.

Definition check_release (t : table) : bool :=
  let first := hd 0 (words t) in
  snd (release_share t) * range ^ cutoff t
  <=? fst (release_share t) * range ^ cutoff t + snd (release_share t) * first ^ cutoff t.

Definition check_delta (t : table) : bool :=
  snd (delta t) * (fst (hits_share t) * snd (release_share t)
                   + fst (release_share t) * snd (hits_share t))
  <=? fst (delta t) * (snd (hits_share t) * snd (release_share t)).

Definition check (t : table) : bool :=
  if check_ranges t && check_shape t && check_growth t && check_hits t && check_release t
     && check_delta t
  then check_steps (halvings t) (fst (order t)) (ratio t) (words t) else false.

(* moment * (the part of delta for the hits) + the part for a label <= total *)
Definition check_promise (t : table) (moment total : fraction) : bool :=
  snd total * (fst moment * fst (hits_share t) * snd (release_share t)
               + snd moment * snd (hits_share t) * fst (release_share t))
  <=? fst total * (snd moment * snd (hits_share t) * snd (release_share t)).

Definition check_account (t : table) (moment total : fraction) : bool :=
  if is_fraction moment && is_fraction total && (snd moment <=? fst moment)
     && check_promise t moment total
  then check t else false.

End Checks.

Definition check_table : table -> bool := check word_range precision.
Definition check_shared_table : table -> fraction -> fraction -> bool :=
  check_account word_range precision.
