(* The moment bound: whatever is asked, and however often, hits cost R each.    *)
(*                                                                              *)
(* The order of the moment, a, is any of order.v.                               *)
(*   ratio a x y       x ^ a y ^ (1 - a)                                        *)
(*   step_holds a R p q  [*]: p ^ a q ^ (1-a) / R + (1-p) ^ a (1-q) ^ (1-a) <= 1*)
(*   steps_hold        [*] for every two entries at most one apart              *)
(*   between s s'      the run in between, N: distances of s', labels of s      *)
(*   moment            the expectation under N of the a-th power of the         *)
(*                     likelihood ratio of the run of s to N                    *)
(*                                                                              *)
(* moment_le           [*] implies moment <= R ^ T, for any number of queries   *)
(* law_le_moment       P_s(O) - c P_N(O) <= conversion_factor a c * moment      *)
(* adjacent_steps_hold [*] need only be checked for neighbours in the table, in *)
(*                     both orders: equal entries satisfy it for R >= 1         *)
From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Ring Field.
From Conclave Require Import field_tactics order conversion game.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Step.
Variable R : realFieldType.
Add Field field_of_R : (operations_are_a_field R).
Implicit Types (a : renyi_order R) (p q ratio_max : R).

Definition step_holds a ratio_max p q : Prop :=
  ratio a p q / ratio_max + ratio a (1 - p) (1 - q) <= 1.

Definition steps_hold a ratio_max (p : nat -> R) := forall i j,
  (i <= j.+1)%N -> (j <= i.+1)%N -> step_holds a ratio_max (p i) (p j).

Lemma equal_step_holds a ratio_max p : 1 <= ratio_max -> 0 < p < 1 -> step_holds a ratio_max p p.
Proof.
move=> ratio_ge1 /andP[p_gt0 p_lt1].
rewrite /step_holds !ratio_same ?subr_eq0 ?gt_eqF // -ler_subr_addr opprB addrC subrK.
by rewrite ler_pdivr_mulr ?(lt_le_trans ltr01) // ler_pemulr // ltW.
Qed.

Lemma adjacent_steps_hold a ratio_max (p : nat -> R) :
    1 <= ratio_max -> (forall d, 0 < p d < 1) ->
    (forall d, step_holds a ratio_max (p d) (p d.+1) /\ step_holds a ratio_max (p d.+1) (p d)) ->
  steps_hold a ratio_max p.
Proof.
move=> ratio_ge1 p_inside adjacent i j; rewrite leq_eqVlt ltnS => /orP[/eqP-> _|le_ij].
  by case: (adjacent j).
rewrite leq_eqVlt ltnS => /orP[/eqP->|le_ji]; first by case: (adjacent i).
have -> : i = j by apply/eqP; rewrite eqn_leq le_ij.
exact: equal_step_holds.
Qed.

End Step.

Section Moment.
Variables (X : Type) (L : eqType) (R : realFieldType) (p : nat -> R).
Add Field field_of_R : (operations_are_a_field R).
Implicit Types (s : side X L) (f : adversary X L) (O : event L).

Definition between s s' : side X L := Side (distance s') (plurality s).

Fixpoint moment (a : renyi_order R) s s' (n T : nat) f : R :=
  match n, T with
  | n'.+1, T'.+1 =>
      ratio a (p (distance s (f [::]))) (p (distance s' (f [::])))
        * moment a s s' n' T' (after (hit L) f)
      + ratio a (1 - p (distance s (f [::]))) (1 - p (distance s' (f [::])))
        * moment a s s' n' T (after (released s f) f)
  | _, _ => 1
  end.

Variables (a : renyi_order R) (ratio_max : R).
Hypothesis p_inside : forall d, 0 < p d < 1.
Hypothesis ratio_max_ge1 : 1 <= ratio_max.

Let p_gt0 d : 0 < p d. Proof. by case/andP: (p_inside d). Qed.
Let q_gt0 d : 0 < 1 - p d. Proof. by rewrite subr_gt0; case/andP: (p_inside d). Qed.
Let p_probability d : 0 <= p d <= 1. Proof. by case/andP: (p_inside d) => /ltW-> /ltW. Qed.

Lemma moment_le s s' n T f : steps_hold a ratio_max p -> neighbours s s' ->
  moment a s s' n T f <= ratio_max ^+ T.
Proof.
move=> steps near; have R_gt0 : 0 < ratio_max := lt_le_trans ltr01 ratio_max_ge1.
elim: n => [|n IHn] in T f *; case: T => [|T] //=; rewrite ?exprn_ege1 //.
have [below above _] := near (f [::]).
set p1 := p (distance s _); set p2 := p (distance s' _).
apply: (@le_trans _ _ (ratio a p1 p2 * ratio_max ^+ T
                       + ratio a (1 - p1) (1 - p2) * ratio_max ^+ T.+1)).
  by rewrite ler_add // ler_wpmul2l // ratio_ge0 // ltW // ?p_gt0 ?q_gt0.
have R_neq0 := lt0r_neq0 R_gt0.
have -> : ratio a p1 p2 * ratio_max ^+ T + ratio a (1 - p1) (1 - p2) * ratio_max ^+ T.+1
    = (ratio a p1 p2 / ratio_max + ratio a (1 - p1) (1 - p2)) * ratio_max ^+ T.+1.
  by rewrite exprS; real_field.
by apply: ler_pimull; [exact: exprn_ge0 (ltW R_gt0) | exact: steps].
Qed.

Lemma weighted_law_le_moment c s s' n T f O x y :
    0 < c -> 0 <= x -> 0 < y ->
  x * law p s n T f O - c * (y * law p (between s s') n T f O)
    <= conversion_factor a c * (ratio a x y * moment a s s' n T f).
Proof.
move=> c_gt0.
have leaf b u v : 0 <= u -> 0 < v ->
    u * (b : bool)%:R - c * (v * b%:R) <= conversion_factor a c * (ratio a u v * 1).
  move=> u_ge0 v_gt0; rewrite mulr1; case: b; rewrite ?mulr1 ?mulr0 ?mulr0 ?subrr.
    exact: conversion.
  by rewrite mulr_ge0 ?ratio_ge0 ?conversion_factor_ge0 // ltW.
elim: n => [|n IHn] in T f O x y *; case: T => [|T] x_ge0 y_gt0; try exact: leaf.
rewrite /=; set p1 := p _; set p2 := p _; set f1 := after _ f; set f2 := after _ f.
set O1 := after _ O; set O2 := after _ O.
have x1_ge0 : 0 <= x * p1 by rewrite mulr_ge0 // ltW // p_gt0.
have x2_ge0 : 0 <= x * (1 - p1) by rewrite mulr_ge0 // ltW // q_gt0.
have y1_gt0 : 0 < y * p2 by rewrite mulr_gt0 // p_gt0.
have y2_gt0 : 0 < y * (1 - p2) by rewrite mulr_gt0 // q_gt0.
have := ler_add (IHn T f1 O1 _ _ x1_ge0 y1_gt0) (IHn T.+1 f2 O2 _ _ x2_ge0 y2_gt0).
rewrite !ratioM ?p_gt0 ?q_gt0 ?(ltW (p_gt0 _)) ?(ltW (q_gt0 _)) //; set lhs := _ + _ => le_lhs.
apply: le_trans (le_trans _ le_lhs) _; apply: equal_is_below; last by real_ring.
by rewrite /lhs; real_ring.
Qed.

Lemma law_le_moment c s s' n T f O : 0 < c ->
  law p s n T f O
    <= c * law p (between s s') n T f O + conversion_factor a c * moment a s s' n T f.
Proof.
move=> c_gt0; rewrite -ler_subl_addl.
have := weighted_law_le_moment s s' n T f O c_gt0 ler01 ltr01.
by rewrite ratio_same ?oner_neq0 // !mul1r.
Qed.

End Moment.
