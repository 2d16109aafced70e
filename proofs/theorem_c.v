(* Theorem C: a certificate in place of the moment.                             *)
(*                                                                              *)
(* A certificate is a function V h of z >= 0 for each number h = 0..T of hits   *)
(* left.  z stands for the likelihood ratio so far.  It holds                   *)
(* (certificate_holds) if for each h < T                                        *)
(*   above_start    V 0 z >= 0 and V 0 z >= z - c                               *)
(*   rises          V h z <= V (h + 1) z                                        *)
(*   pays_labels    p_0 V h z + (1 - p_0) z <= V (h + 1) z                      *)
(*   pays_hits      q V h (z p / q) + (1 - q) V (h + 1) (z (1-p) / (1-q))       *)
(*                    <= V (h + 1) z for adjacent p and q, in both orders       *)
(*                                                                              *)
(*   theorem_C      P_s(O) <= c P_s'(O) + V T 1                                 *)
(*                                                                              *)
(* No powers, and no separate part of delta for labels.  piecewise.v proves     *)
(* that nodes are enough where V is piecewise linear.                           *)
From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Ring Field.
From Conclave Require Import field_tactics game.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section TheoremC.
Variables (X : Type) (L : eqType) (R : realFieldType).
Add Field field_of_R : (operations_are_a_field R).
Implicit Types (p : nat -> R) (s : side X L) (f : adversary X L) (O : event L) (z : R).

Definition pays_hit (V : nat -> R -> R) p h z i j : Prop :=
  p j * V h (z * p i / p j) + (1 - p j) * V h.+1 (z * (1 - p i) / (1 - p j)) <= V h.+1 z.

Lemma same_entries_pay V p h z i j : 0 < p j < 1 -> p i = p j -> V h z <= V h.+1 z ->
  pays_hit V p h z i j.
Proof.
case/andP=> p_gt0 p_lt1 same le_V; have q_gt0 : 0 < 1 - p j by rewrite subr_gt0.
rewrite /pays_hit same !mulfK ?lt0r_neq0 //; have := ler_wpmul2l (ltW p_gt0) le_V.
rewrite -(ler_add2r ((1 - p j) * V h.+1 z)) => /le_trans; apply.
by rewrite -mulrDl addrC subrK mul1r.
Qed.

Record certificate_holds (c : R) p (T : nat) (V : nat -> R -> R) : Prop := CertificateHolds {
  c_ge0 : 0 <= c;
  entries_inside : forall d, 0 < p d < 1;
  above_start : forall z, 0 <= z -> 0 <= V 0%N z /\ z - c <= V 0%N z;
  rises : forall h z, (h < T)%N -> 0 <= z -> V h z <= V h.+1 z;
  pays_labels : forall h z, (h < T)%N -> 0 <= z -> p 0%N * V h z + (1 - p 0%N) * z <= V h.+1 z;
  pays_hits : forall h z d, (h < T)%N -> 0 <= z ->
    pays_hit V p h z d d.+1 /\ pays_hit V p h z d.+1 d
}.

Variables (c : R) (p : nat -> R) (T : nat) (V : nat -> R -> R) (s s' : side X L).
Hypothesis holds : certificate_holds c p T V.
Hypothesis near : neighbours s s'.

Let p_gt0 d : 0 < p d. Proof. by case/andP: (entries_inside holds d). Qed.
Let q_gt0 d : 0 < 1 - p d. Proof. by rewrite subr_gt0; case/andP: (entries_inside holds d). Qed.
Let p_probability d : 0 <= p d <= 1.
Proof. by case/andP: (entries_inside holds d) => /ltW-> /ltW. Qed.

Lemma above_leaf h z (b : bool) : (h <= T)%N -> 0 <= z -> z * b%:R - c * b%:R <= V h z.
Proof.
move=> + z_ge0; elim: h => [_|h IHh lt_hT]; last exact: le_trans (IHh (ltnW lt_hT)) (rises holds lt_hT z_ge0).
by have [V_ge0 V_ge] := above_start holds z_ge0; case: b; rewrite ?mulr1 ?mulr0 ?subrr.
Qed.

Lemma pays_hit_near h z i j : (i <= j.+1)%N -> (j <= i.+1)%N -> (h < T)%N -> 0 <= z ->
  pays_hit V p h z i j.
Proof.
move=> le_ij le_ji lt_hT z_ge0; move: le_ij; rewrite leq_eqVlt ltnS => /orP[/eqP->|le_ij].
  by case: (pays_hits holds j lt_hT z_ge0).
move: le_ji; rewrite leq_eqVlt ltnS => /orP[/eqP->|le_ji]; first by case: (pays_hits holds i lt_hT z_ge0).
have -> : i = j by apply/eqP; rewrite eqn_leq le_ij.
by apply: same_entries_pay (entries_inside holds j) _ (rises holds lt_hT z_ge0).
Qed.

Lemma law_le1 s1 n h f O : law p s1 n h f O <= 1.
Proof. by rewrite -(law_total p s1 n h f); apply: law_subset. Qed.

Lemma weighted_law_le_certificate n h f O z : (h <= T)%N -> 0 <= z ->
  z * law p s n h f O - c * law p s' n h f O <= V h z.
Proof.
elim: n => [|n IHn] in h f O z *; case: h => [|h] lt_hT z_ge0; try exact: above_leaf.
have le_hT := ltnW lt_hT.
rewrite /=; set x := f [::]; have [below above flip] := near x.
have [same|differ] := boolP (agree s s' x); last first.
  have [-> ->] := flip differ; set l1 := law p s n h _ _; set l2 := law p s n h.+1 _ _.
  set k1 := law p s' n h _ _; set k2 := law p s' n h.+1 _ _.
  apply: le_trans (pays_labels holds lt_hT z_ge0).
  have -> : z * (p 0%N * l1 + (1 - p 0%N) * l2) - c * (p 0%N * k1 + (1 - p 0%N) * k2)
      = p 0%N * (z * l1 - c * k1) + (1 - p 0%N) * (z * l2 - c * k2) by real_ring.
  have hit_le : z * l1 - c * k1 <= V h z by exact: IHn.
  have answer_le : z * l2 - c * k2 <= z.
    have k2_ge0 : 0 <= c * k2 by rewrite mulr_ge0 ?(c_ge0 holds) ?law_ge0.
    rewrite ler_subl_addr; apply: le_trans (_ : z <= _); last by rewrite ler_addl.
    by apply: ler_pimulr => //; exact: law_le1.
  exact: ler_add (ler_wpmul2l (ltW (p_gt0 _)) hit_le) (ler_wpmul2l (ltW (q_gt0 _)) answer_le).
rewrite /released -/x -(eqP same).
set i := distance s x; set j := distance s' x; set o := Some _.
set l1 := law p s n h _ _; set l2 := law p s n h.+1 _ _.
set k1 := law p s' n h _ _; set k2 := law p s' n h.+1 _ _.
apply: le_trans (pays_hit_near below above lt_hT z_ge0).
have pj := lt0r_neq0 (p_gt0 j); have qj := lt0r_neq0 (q_gt0 j).
have -> : z * (p i * l1 + (1 - p i) * l2) - c * (p j * k1 + (1 - p j) * k2)
    = p j * (z * p i / p j * l1 - c * k1)
      + (1 - p j) * (z * (1 - p i) / (1 - p j) * l2 - c * k2) by real_field.
have hit_ge0 : 0 <= z * p i / p j by rewrite divr_ge0 ?mulr_ge0 // ltW ?p_gt0.
have answer_ge0 : 0 <= z * (1 - p i) / (1 - p j) by rewrite divr_ge0 ?mulr_ge0 // ltW ?q_gt0.
exact: ler_add (ler_wpmul2l (ltW (p_gt0 _)) (IHn _ _ _ _ le_hT hit_ge0))
               (ler_wpmul2l (ltW (q_gt0 _)) (IHn _ _ _ _ lt_hT answer_ge0)).
Qed.

Theorem theorem_C n f O : law p s n T f O <= c * law p s' n T f O + V T 1.
Proof.
rewrite -ler_subl_addl.
by have := weighted_law_le_certificate n f O (leqnn T) ler01; rewrite mul1r.
Qed.

End TheoremC.

Print Assumptions theorem_C.
