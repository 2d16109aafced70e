(* Theorem C: a certificate in place of the moment.                             *)
(*                                                                              *)
(* A certificate is a function V h of z >= 0 for each number h of hits left.    *)
(* z stands for the likelihood ratio so far.  It holds (certificate_holds) if   *)
(*   above_start    V 0 z >= 0 and V 0 z >= z - c                               *)
(*   rises          V h z <= V (h + 1) z                                        *)
(*   pays_labels    p_0 V h z + (1 - p_0) z <= V (h + 1) z                      *)
(*   pays_hits      q V h (z p / q) + (1 - q) V (h + 1) (z (1-p) / (1-q))       *)
(*                    <= V (h + 1) z for adjacent p and q, in both orders       *)
(*                                                                              *)
(*   theorem_C      P_s(O) <= c P_s'(O) + V T 1                                 *)
(*                                                                              *)
(* No powers, and no separate part of delta for labels.  That [pays_hits] need  *)
(* only be checked at the nodes of a piecewise linear V is not proved here.     *)
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

Record certificate_holds (c : R) p (V : nat -> R -> R) : Prop := CertificateHolds {
  c_ge0 : 0 <= c;
  entries_inside : forall d, 0 < p d < 1;
  above_start : forall z, 0 <= z -> 0 <= V 0%N z /\ z - c <= V 0%N z;
  rises : forall h z, 0 <= z -> V h z <= V h.+1 z;
  pays_labels : forall h z, 0 <= z -> p 0%N * V h z + (1 - p 0%N) * z <= V h.+1 z;
  pays_hits : forall h z d, 0 <= z -> pays_hit V p h z d d.+1 /\ pays_hit V p h z d.+1 d
}.

Variables (c : R) (p : nat -> R) (V : nat -> R -> R) (s s' : side X L).
Hypothesis holds : certificate_holds c p V.
Hypothesis near : neighbours s s'.

Let p_gt0 d : 0 < p d. Proof. by case/andP: (entries_inside holds d). Qed.
Let q_gt0 d : 0 < 1 - p d. Proof. by rewrite subr_gt0; case/andP: (entries_inside holds d). Qed.
Let p_probability d : 0 <= p d <= 1.
Proof. by case/andP: (entries_inside holds d) => /ltW-> /ltW. Qed.

Lemma above_leaf T z (b : bool) : 0 <= z -> z * b%:R - c * b%:R <= V T z.
Proof.
move=> z_ge0; elim: T => [|T IHT]; last exact: le_trans IHT (rises holds T z_ge0).
by have [V_ge0 V_ge] := above_start holds z_ge0; case: b; rewrite ?mulr1 ?mulr0 ?subrr.
Qed.

Lemma pays_hit_near h z i j : (i <= j.+1)%N -> (j <= i.+1)%N -> 0 <= z -> pays_hit V p h z i j.
Proof.
move=> le_ij le_ji z_ge0; move: le_ij; rewrite leq_eqVlt ltnS => /orP[/eqP->|le_ij].
  by case: (pays_hits holds h j z_ge0).
move: le_ji; rewrite leq_eqVlt ltnS => /orP[/eqP->|le_ji]; first by case: (pays_hits holds h i z_ge0).
have -> : i = j by apply/eqP; rewrite eqn_leq le_ij.
rewrite /pays_hit !mulfK ?lt0r_neq0 //.
have := ler_wpmul2l (ltW (p_gt0 j)) (rises holds h z_ge0).
rewrite -(ler_add2r ((1 - p j) * V h.+1 z)) => /le_trans; apply.
by rewrite -mulrDl addrC subrK mul1r.
Qed.

Lemma law_le1 s1 n T f O : law p s1 n T f O <= 1.
Proof. by rewrite -(law_total p s1 n T f); apply: law_subset. Qed.

Lemma weighted_law_le_certificate n T f O z : 0 <= z ->
  z * law p s n T f O - c * law p s' n T f O <= V T z.
Proof.
elim: n => [|n IHn] in T f O z *; case: T => [|T] z_ge0; try exact: above_leaf.
rewrite /=; set x := f [::]; have [below above flip] := near x.
have [same|differ] := boolP (agree s s' x); last first.
  have [-> ->] := flip differ; set l1 := law p s n T _ _; set l2 := law p s n T.+1 _ _.
  set k1 := law p s' n T _ _; set k2 := law p s' n T.+1 _ _.
  apply: le_trans (pays_labels holds T z_ge0).
  have -> : z * (p 0%N * l1 + (1 - p 0%N) * l2) - c * (p 0%N * k1 + (1 - p 0%N) * k2)
      = p 0%N * (z * l1 - c * k1) + (1 - p 0%N) * (z * l2 - c * k2) by real_ring.
  have hit_le : z * l1 - c * k1 <= V T z by exact: IHn.
  have answer_le : z * l2 - c * k2 <= z.
    have k2_ge0 : 0 <= c * k2 by rewrite mulr_ge0 ?(c_ge0 holds) ?law_ge0.
    rewrite ler_subl_addr; apply: le_trans (_ : z <= _); last by rewrite ler_addl.
    by apply: ler_pimulr => //; exact: law_le1.
  exact: ler_add (ler_wpmul2l (ltW (p_gt0 _)) hit_le) (ler_wpmul2l (ltW (q_gt0 _)) answer_le).
rewrite /released -/x -(eqP same).
set i := distance s x; set j := distance s' x; set o := Some _.
set l1 := law p s n T _ _; set l2 := law p s n T.+1 _ _.
set k1 := law p s' n T _ _; set k2 := law p s' n T.+1 _ _.
apply: le_trans (pays_hit_near T below above z_ge0).
have pj := lt0r_neq0 (p_gt0 j); have qj := lt0r_neq0 (q_gt0 j).
have -> : z * (p i * l1 + (1 - p i) * l2) - c * (p j * k1 + (1 - p j) * k2)
    = p j * (z * p i / p j * l1 - c * k1)
      + (1 - p j) * (z * (1 - p i) / (1 - p j) * l2 - c * k2) by real_field.
have hit_ge0 : 0 <= z * p i / p j by rewrite divr_ge0 ?mulr_ge0 // ltW ?p_gt0.
have answer_ge0 : 0 <= z * (1 - p i) / (1 - p j) by rewrite divr_ge0 ?mulr_ge0 // ltW ?q_gt0.
exact: ler_add (ler_wpmul2l (ltW (p_gt0 _)) (IHn _ _ _ _ hit_ge0))
               (ler_wpmul2l (ltW (q_gt0 _)) (IHn _ _ _ _ answer_ge0)).
Qed.

Theorem theorem_C n T f O : law p s n T f O <= c * law p s' n T f O + V T 1.
Proof.
rewrite -ler_subl_addl.
by have := weighted_law_le_certificate n T f O ler01; rewrite mul1r.
Qed.

End TheoremC.

Print Assumptions theorem_C.
