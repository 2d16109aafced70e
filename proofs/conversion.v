(* From a moment to delta, for integer orders.                                  *)
(*                                                                              *)
(* In Theorem A the order is a = m + 1 and x stands for a probability under one *)
(* data set, y for the same under the other.                                    *)
(*                                                                              *)
(*   conversion :  x - c y  <=  conversion_factor m c * (x ^ (m + 1) / y ^ m)   *)
(*                                                                              *)
(* where conversion_factor m c = (1 - 1/a) ^ m / (a c ^ m), which is the number *)
(* c ^ (1-a) (1 - 1/a) ^ (a-1) / a of the proof by hand.  The field is ordered, *)
(* nothing else: the maximum of (x - c) / x ^ a is a tangent, and the tangent   *)
(* is Bernoulli's inequality.                                                   *)
From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Ring Field.
From Conclave Require Import field_tactics.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Conversion.
Variable R : realFieldType.
Add Field field_of_R : (operations_are_a_field R).
Implicit Types (c u x y z : R) (m : nat).

Definition conversion_factor m c : R := (m%:R / m.+1%:R) ^+ m / (m.+1%:R * c ^+ m).

(* The tangent of u ^ (m + 1) at 1. *)
Lemma bernoulli m u : 0 <= u -> m.+1%:R * u - m%:R <= u ^+ m.+1.
Proof.
move=> u_ge0; elim: m => [|m IHm]; first by rewrite mul1r subr0.
rewrite exprS; apply: le_trans (ler_wpmul2l u_ge0 IHm); rewrite -subr_ge0.
have -> : u * (m.+1%:R * u - m%:R) - (m.+2%:R * u - m.+1%:R) = m.+1%:R * (u - 1) ^+ 2.
  by rewrite expr2 !mulrS; real_ring.
by rewrite mulr_ge0 ?ler0n ?sqr_ge0.
Qed.

Lemma bernoulli_at_maximum m z : (0 < m)%N -> 0 <= z ->
  z - 1 <= (m%:R / m.+1%:R) ^+ m / m.+1%:R * z ^+ m.+1.
Proof.
move=> m_gt0 z_ge0.
have m_pos : 0 < m%:R :> R by rewrite ltr0n.
have a_neq0 : 1 + m%:R != 0 :> R by rewrite -mulrS pnatr_eq0.
rewrite -(ler_pmul2l m_pos).
have -> : m%:R * (z - 1) = m.+1%:R * (m%:R / m.+1%:R * z) - m%:R.
  by rewrite mulrS; real_field.
apply: le_trans (bernoulli _ _) _; first by rewrite mulr_ge0 ?divr_ge0 ?ler0n.
rewrite !exprMn !exprS mulrS; apply: equal_is_below.
by real_field.
Qed.

Lemma conversion m c x y : (0 < m)%N -> 0 < c -> 0 <= x -> 0 < y ->
  x - c * y <= conversion_factor m c * (x ^+ m.+1 / y ^+ m).
Proof.
move=> m_gt0 c_gt0 x_ge0 y_gt0.
have c_neq0 := lt0r_neq0 c_gt0; have y_neq0 := lt0r_neq0 y_gt0.
have cy_gt0 : 0 < c * y by rewrite mulr_gt0.
have -> : x - c * y = c * y * (x / (c * y) - 1).
  by real_field.
apply: le_trans (ler_wpmul2l (ltW cy_gt0) (bernoulli_at_maximum m_gt0 _)) _.
  by rewrite divr_ge0 // ltW.
have a_neq0 : m.+1%:R != 0 :> R by rewrite pnatr_eq0.
have am_neq0 := expf_neq0 m a_neq0; have cm_neq0 := expf_neq0 m c_neq0; have ym_neq0 := expf_neq0 m y_neq0.
rewrite /conversion_factor !(exprMn, exprVn) !exprS; apply: equal_is_below.
by real_field.
Qed.

End Conversion.
