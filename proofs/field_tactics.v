(* Equations of an ordered field, decided by the standard library's tactics.     *)
(*                                                                              *)
(*   real_ring    proves an equation without quotients.                         *)
(*   real_field   proves one with quotients, from hypotheses (or goals left)    *)
(*                that their denominators are not 0.                            *)
(*                                                                              *)
(* A section that uses them declares                                            *)
(*   Add Field field_of_R : (operations_are_a_field R).                         *)
(* The library reaches its operations by several paths of its hierarchy, so     *)
(* they are first rewritten to one constant each.                               *)
From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Ring Field.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Operations.
Variable R : realFieldType.
Implicit Types (x y : R) (n : nat).

Definition field_zero : R := 0.
Definition field_one : R := 1.
Definition field_nat n : R := n%:R.
Definition field_exp x n : R := x ^+ n.
Definition field_add x y : R := x + y.
Definition field_mul x y : R := x * y.
Definition field_opp x : R := - x.
Definition field_sub x y : R := x - y.
Definition field_inv x : R := x^-1.
Definition field_div x y : R := x / y.

Lemma fold_zero : 0 = field_zero. Proof. by []. Qed.
Lemma fold_one : 1 = field_one. Proof. by []. Qed.
Lemma fold_nat n : n%:R = field_nat n. Proof. by []. Qed.
Lemma fold_exp x n : x ^+ n = field_exp x n. Proof. by []. Qed.
Lemma fold_add x y : x + y = field_add x y. Proof. by []. Qed.
Lemma fold_mul x y : x * y = field_mul x y. Proof. by []. Qed.
Lemma fold_opp x : - x = field_opp x. Proof. by []. Qed.
Lemma fold_inv x : x^-1 = field_inv x. Proof. by []. Qed.

Lemma fold_equation x y : @eq (Num.RealField.sort R) x y -> x = y.
Proof. by []. Qed.

Lemma equal_is_below x y : x = y -> x <= y.
Proof. by move->. Qed.

Lemma operations_are_a_field :
  field_theory field_zero field_one field_add field_mul field_sub field_opp field_div
    field_inv (@eq R).
Proof.
split=> //; last by move=> x /eqP x_neq0; exact: mulVf.
  split=> //; [exact: add0r | exact: addrC | exact: addrA | exact: mul1r | exact: mulrC
    | exact: mulrA | exact: mulrDl | exact: subrr].
by move/eqP; rewrite oner_eq0.
Qed.

End Operations.

Ltac fold_field :=
  apply: fold_equation; rewrite ?(fold_nat, fold_exp, fold_zero, fold_one, fold_add, fold_mul,
    fold_opp, fold_inv).
Ltac real_ring := fold_field; ring.
Ltac real_field := fold_field; field; repeat (match goal with |- _ /\ _ => split end); apply/eqP.
