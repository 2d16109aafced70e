(* Composition of shares: what is (c, delta)-private one after the other is so  *)
(* together, factors multiplied and deltas added up.                            *)
(*                                                                              *)
(*   within c d P P'   P(O) <= c P'(O) + d for every event O of the outcomes    *)
(*   followed P K      the law of a first outcome, and of a second one whose    *)
(*                     law is chosen by the first                               *)
(*                                                                              *)
(* composition_adds    first within c1, d1 and, after every first outcome,      *)
(*                     second within c2, d2: both within c1 c2, d1 + d2         *)
(* release_adds        the same of three: relabelling, answers, classifier      *)
(* processing_keeps    what is computed of an outcome is within the same        *)
(*                                                                              *)
(* c stands for e ^ epsilon, so that the epsilons add up.  Outcomes are any     *)
(* finite type; a law is a function on them, nowhere negative, whose sum is 1.  *)
(* A run of n queries has finitely many transcripts.                            *)
From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Composition.
Variable R : realFieldType.
Implicit Types (A B C : finType) (c d : R).

Definition is_law A (P : A -> R) := (forall x, 0 <= P x) /\ \sum_x P x = 1.

Definition within A c d (P P' : A -> R) :=
  forall O : pred A, \sum_(x | O x) P x <= c * (\sum_(x | O x) P' x) + d.

Definition followed A B (P : A -> R) (K : A -> B -> R) (x : A * B) : R := P x.1 * K x.1 x.2.

Lemma followed_law A B (P : A -> R) (K : A -> B -> R) :
  is_law P -> (forall x, is_law (K x)) -> is_law (followed P K).
Proof.
move=> [P_ge0 P_1] K_law; split=> [x|].
  by rewrite mulr_ge0 //; case: (K_law x.1) => K_ge0 _; apply: K_ge0.
rewrite -(pair_bigA _ (fun x y => P x * K x y)) /= -P_1; apply: eq_bigr => x _.
by rewrite -mulr_sumr; case: (K_law x) => _ ->; rewrite mulr1.
Qed.

(* A law within another, of weights between 0 and 1 in place of events. *)
Lemma within_weights A c d (P P' : A -> R) (w : A -> R) :
    0 <= d -> within c d P P' -> (forall x, 0 <= w x <= 1) ->
  \sum_x P x * w x <= c * (\sum_x P' x * w x) + d.
Proof.
move=> d_ge0 near w_01; pose O x := c * P' x <= P x.
have better x : (P x - c * P' x) * w x <= (P x - c * P' x) * (O x)%:R.
  have /andP[w_ge0 w_le1] := w_01 x; rewrite /O; case: (lerP (c * P' x) (P x)) => [le_P|lt_P].
    by rewrite mulr1 ler_pimulr ?subr_ge0.
  by rewrite mulr0 mulr_le0_ge0 // subr_le0 ltW.
rewrite -ler_subl_addl mulr_sumr -sumrB.
have -> : \sum_x (P x * w x - c * (P' x * w x)) = \sum_x (P x - c * P' x) * w x.
  by apply: eq_bigr => x _; rewrite mulrBl mulrA.
apply: le_trans (ler_sum _ (fun x _ => better x)) _.
have -> : \sum_x (P x - c * P' x) * (O x)%:R = \sum_(x | O x) P x - c * \sum_(x | O x) P' x.
  rewrite mulr_sumr -sumrB [RHS]big_mkcond; apply: eq_bigr => x _.
  by case: (O x); rewrite ?mulr1 ?mulr0.
by rewrite ler_subl_addl.
Qed.

Lemma followed_sum A B (P : A -> R) (K : A -> B -> R) (O : pred (A * B)) :
  \sum_(z | O z) followed P K z = \sum_x P x * \sum_(y | O (x, y)) K x y.
Proof.
have -> : \sum_x P x * (\sum_(y | O (x, y)) K x y)
    = \sum_x \sum_y (if O (x, y) then P x * K x y else 0).
  by apply: eq_bigr => x _; rewrite mulr_sumr big_mkcond.
rewrite (pair_bigA _ (fun x y => if O (x, y) then P x * K x y else 0)) [LHS]big_mkcond.
by apply: eq_bigr => -[x y] _.
Qed.

(* The second stage is moved first: its delta is weighed by a law, so it is     *)
(* paid once.  What remains of it is a weight between 0 and 1, with which the   *)
(* first is moved.                                                              *)
Theorem composition_adds A B c1 d1 c2 d2 (P P' : A -> R) (K K' : A -> B -> R) :
    is_law P -> is_law P' -> (forall x, is_law (K x)) -> (forall x, is_law (K' x)) ->
    0 <= c1 -> 0 <= c2 -> 0 <= d1 -> 0 <= d2 ->
    within c1 d1 P P' -> (forall x, within c2 d2 (K x) (K' x)) ->
  within (c1 * c2) (d1 + d2) (followed P K) (followed P' K').
Proof.
move=> P_law P'_law K_law K'_law c1_ge0 c2_ge0 d1_ge0 d2_ge0 first second O.
pose mass (Q : A -> B -> R) x := \sum_(y | O (x, y)) Q x y.
have mass_ge0 Q x : (forall x, is_law (Q x)) -> 0 <= mass Q x.
  by move=> Q_law; apply: sumr_ge0 => y _; case: (Q_law x).
have mass_le1 Q x : (forall x, is_law (Q x)) -> mass Q x <= 1.
  move=> Q_law; case: (Q_law x) => Q_ge0 <-; rewrite /mass big_mkcond.
  by apply: ler_sum => y _; case: (O _).
pose w x := Num.min 1 (c2 * mass K' x).
have w_01 x : 0 <= w x <= 1.
  apply/andP; split; last by rewrite /w le_minl lexx.
  by rewrite /w le_minr ler01 /= mulr_ge0 //; apply: mass_ge0.
have mass_le x : mass K x <= w x + d2.
  rewrite /w addr_minl le_minr; apply/andP; split; last exact: (second x (fun y => O (x, y))).
  by apply: le_trans (mass_le1 _ _ K_law) _; rewrite ler_addl.
rewrite !followed_sum; case: P_law => P_ge0 P_1; case: P'_law => P'_ge0 _.
apply: le_trans (_ : \sum_x P x * w x + d2 <= _).
  rewrite -[d2]mul1r -{1}P_1 mulr_suml -big_split /=.
  by apply: ler_sum => x _; rewrite -mulrDr; apply: ler_wpmul2l (mass_le x).
rewrite addrA ler_add2r; apply: le_trans (within_weights d1_ge0 first w_01) _.
rewrite ler_add2r -mulrA ler_wpmul2l // mulr_sumr; apply: ler_sum => x _.
rewrite mulrCA; apply: ler_wpmul2l => //; rewrite /w le_minl; apply/orP; right.
exact: lexx.
Qed.

Corollary release_adds A B C c1 d1 c2 d2 c3 d3 (P P' : A -> R) (K K' : A -> B -> R)
    (L L' : A * B -> C -> R) :
    is_law P -> is_law P' -> (forall x, is_law (K x)) -> (forall x, is_law (K' x)) ->
    (forall x, is_law (L x)) -> (forall x, is_law (L' x)) ->
    0 <= c1 -> 0 <= c2 -> 0 <= c3 -> 0 <= d1 -> 0 <= d2 -> 0 <= d3 ->
    within c1 d1 P P' -> (forall x, within c2 d2 (K x) (K' x)) ->
    (forall x, within c3 d3 (L x) (L' x)) ->
  within (c1 * c2 * c3) (d1 + d2 + d3) (followed (followed P K) L) (followed (followed P' K') L').
Proof.
move=> P_law P'_law K_law K'_law L_law L'_law c1_ge0 c2_ge0 c3_ge0 d1_ge0 d2_ge0 d3_ge0 first second third.
apply: composition_adds; rewrite ?mulr_ge0 ?addr_ge0 //; try exact: followed_law.
exact: composition_adds.
Qed.

Theorem processing_keeps A B c d (P P' : A -> R) (g : A -> B) : within c d P P' ->
  within c d (fun y => \sum_(x | g x == y) P x) (fun y => \sum_(x | g x == y) P' x).
Proof.
move=> near O; have gather Q : \sum_(y | O y) \sum_(x | g x == y) Q x = \sum_(x | O (g x)) Q x :> R.
  by rewrite [RHS](partition_big g O) //; apply: eq_bigr => y Oy; apply: eq_bigl => x; case: eqP => [->|]; rewrite ?Oy ?andbF.
by rewrite !gather; apply: near.
Qed.

End Composition.

Print Assumptions composition_adds.
Print Assumptions release_adds.
Print Assumptions processing_keeps.
