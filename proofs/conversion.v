(* From a moment to delta, at any order.                                        *)
(*                                                                              *)
(* In Theorem A x stands for a probability under one data set, y for the same   *)
(* under the other, and a for the order.                                        *)
(*                                                                              *)
(*   ratio a x y  =  x (x / y) ^ (a-1)  =  x ^ a y ^ (1-a)                      *)
(*   conversion   :  x - c y  <=  conversion_factor a c * ratio a x y           *)
(*                                                                              *)
(* where conversion_factor a c = ((1 - 1/a) / c) ^ (a-1) / a, which is the      *)
(* number c ^ (1-a) (1 - 1/a) ^ (a-1) / a of the proof by hand.  The maximum of *)
(* (x - c) / x ^ a is a tangent, and an order has that tangent.                 *)
From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Ring Field.
From Conclave Require Import field_tactics order.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Conversion.
Variable R : realFieldType.
Add Field field_of_R : (operations_are_a_field R).
Implicit Types (a : renyi_order R) (c x y z : R).

Definition ratio a x y : R := x * power a (x / y).

(* 1 - 1/a and 1/a. *)
Definition maximum a : R := excess a / (1 + excess a).
Definition conversion_factor a c : R := power a (maximum a / c) / (1 + excess a).

Lemma order_gt0 a : 0 < 1 + excess a.
Proof. by rewrite addr_gt0 ?ltr01 ?excess_gt0. Qed.

Lemma maximum_ge0 a : 0 <= maximum a.
Proof. by rewrite divr_ge0 ?ltW ?order_gt0 ?excess_gt0. Qed.

Lemma conversion_factor_ge0 a c : 0 < c -> 0 <= conversion_factor a c.
Proof.
move=> c_gt0; rewrite divr_ge0 ?(ltW (order_gt0 a)) //.
by rewrite power_ge0 // divr_ge0 ?maximum_ge0 ?(ltW c_gt0).
Qed.

Lemma tangent_at_maximum a z : 0 <= z ->
  z - 1 <= z * power a (maximum a * z) / (1 + excess a).
Proof.
move=> z_ge0; have h_gt0 := excess_gt0 a.
have h_neq0 := lt0r_neq0 h_gt0; have a_neq0 := lt0r_neq0 (order_gt0 a).
have u_ge0 : 0 <= maximum a * z by rewrite mulr_ge0 ?maximum_ge0.
rewrite -(ler_pmul2l h_gt0); apply: le_trans (le_trans _ (tangent a u_ge0)) _.
  by apply: equal_is_below; rewrite /maximum; real_field.
by apply: equal_is_below; rewrite {1}/maximum; real_field.
Qed.

Lemma conversion a c x y : 0 < c -> 0 <= x -> 0 < y ->
  x - c * y <= conversion_factor a c * ratio a x y.
Proof.
move=> c_gt0 x_ge0 y_gt0; have cy_gt0 : 0 < c * y by rewrite mulr_gt0.
have c_neq0 := lt0r_neq0 c_gt0; have y_neq0 := lt0r_neq0 y_gt0.
have a_neq0 := lt0r_neq0 (order_gt0 a).
have -> : x - c * y = c * y * (x / (c * y) - 1) by real_field.
apply: le_trans (ler_wpmul2l (ltW cy_gt0) (tangent_at_maximum a _)) _.
  by rewrite divr_ge0 // ltW.
have -> : maximum a * (x / (c * y)) = (maximum a / c) * (x / y) by real_field.
have powers : power a (maximum a / c * (x / y)) = power a (maximum a / c) * power a (x / y).
  by apply: powerM; rewrite divr_ge0 ?maximum_ge0 // ltW.
by apply: equal_is_below; rewrite powers /conversion_factor /ratio; real_field.
Qed.

Lemma ratio_ge0 a x y : 0 <= x -> 0 <= y -> 0 <= ratio a x y.
Proof. by move=> x_ge0 y_ge0; rewrite mulr_ge0 ?power_ge0 ?divr_ge0. Qed.

Lemma ratioM a x y u v : 0 <= x -> 0 < y -> 0 <= u -> 0 < v ->
  ratio a (x * u) (y * v) = ratio a x y * ratio a u v.
Proof.
move=> x_ge0 y_gt0 u_ge0 v_gt0; rewrite /ratio.
have -> : x * u / (y * v) = x / y * (u / v) by rewrite invfM mulrACA.
rewrite powerM; first exact: mulrACA.
  by rewrite divr_ge0 // ltW.
by rewrite divr_ge0 // ltW.
Qed.

Lemma ratio_same a x : x != 0 -> ratio a x x = x.
Proof. by move=> x_neq0; rewrite /ratio divff // power1 mulr1. Qed.

End Conversion.
