(* A release whose shares add up: relabelling, answers, classifier.             *)
(*                                                                              *)
(*   transcript_law   the law of the transcripts of n queries, a finite type    *)
(*   answered_release a labelling is drawn, and fixes ensemble and adversary;   *)
(*                    queries are answered; a classifier is drawn by what came  *)
(*                                                                              *)
(* transcripts_within  release_is_private, as a statement on that law           *)
(* shares_are_private  relabelling within c1, d1, answers by a table that       *)
(*                     holds, and a classifier within c3, d3 after whatever     *)
(*                     came, are together within c1 c c3, d1 + delta + d3       *)
From mathcomp Require Import all_ssreflect all_algebra.
From Conclave Require Import order conversion votes game words moment theorem_a release composition.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Shares.
Variables (Row Query : Type) (n k l : nat) (R : realFieldType) (W : nat) (P : nat -> nat).
Variables (queries T : nat).
Implicit Types (S : 'I_n -> Row) (E : ensemble Row Query n k l).

Definition label : finType := [finType of 'I_l.+1].
Definition transcripts : finType := [finType of queries.-bseq (option label)].

Lemma size_run (X : Type) (s : side X [eqType of label]) hits (f : adversary X [eqType of label]) (ws : seq 'I_W) :
  (size (run P s hits f ws) <= size ws)%N.
Proof. by elim: ws hits f => [|w ws IHws] [|hits] f //=; case: ifP => _ /=; rewrite ltnS IHws. Qed.

Definition transcript_law E S (f : adversary Query [eqType of 'I_l.+1]) (t : transcripts) : R :=
  release_law R W P E S queries T f (fun t' => t' == t).

Hypothesis W_gt0 : (0 < W)%N.

Lemma transcript_law_sum E S f (O : pred transcripts) :
  \sum_(t | O t) transcript_law E S f t
    = release_law R W P E S queries T f (fun t' : seq (option label) => [exists t, O t && (t' == t :> seq _)]).
Proof.
rewrite /transcript_law /release_law; under eq_bigr do rewrite share_sum.
rewrite share_sum -mulr_suml exchange_big /=; congr (_ / _); apply: eq_bigr => ws _.
have small : (size (run P (side_of E S) T f ws) <= queries)%N.
  by rewrite -[X in (_ <= X)%N](size_tuple ws) size_run.
rewrite (eq_bigr (fun t : transcripts => (t == Bseq small)%:R)); last by move=> t _; rewrite eq_sym -val_eqE.
have -> : \sum_(t | O t) (t == Bseq small)%:R = (O (Bseq small))%:R :> R.
  case Ob: (O (Bseq small)); last first.
    by rewrite big1 // => t Ot; case: eqP => // t_small; rewrite t_small Ob in Ot.
  by rewrite (bigD1 (Bseq small)) //= eqxx big1 ?addr0 // => t /andP[_ /negbTE ->].
congr (nat_of_bool _)%:R; case Ob: (O (Bseq small)); apply/esym.
  by apply/existsP; exists (Bseq small); rewrite Ob /=.
apply/existsP => -[t /andP[Ot /eqP same]]; move: Ob.
by rewrite (_ : Bseq small = t) ?Ot //; apply: val_inj.
Qed.

Lemma transcript_law_is_law E S f : is_law (transcript_law E S f).
Proof.
split=> [t|]; first by rewrite /transcript_law /release_law /share divr_ge0 ?exprn_ge0 ?ler0n.
rewrite /transcript_law /release_law; under eq_bigr do rewrite share_sum.
rewrite -mulr_suml exchange_big /= (eq_bigr (fun=> 1)) => [|ws _].
  rewrite sumr_const card_tuple card_ord natrX divff // expf_neq0 // pnatr_eq0 -lt0n //.
have small : (size (run P (side_of E S) T f ws) <= queries)%N.
  by rewrite -[X in (_ <= X)%N](size_tuple ws) size_run.
rewrite (bigD1 (Bseq small)) //= eqxx big1 ?addr0 // => t other.
by case: eqP => // same; case/eqP: other; apply: val_inj.
Qed.

Variables (a : renyi_order R) (ratio_max c : R).
Hypothesis holds : table_holds a ratio_max (word_probability R W P).
Hypothesis c_gt0 : 0 < c.

Lemma transcripts_within E S S' f : one_record_replaced S S' ->
  within c (delta_total W P a ratio_max T c) (transcript_law E S f) (transcript_law E S' f).
Proof. by move=> near O; rewrite !transcript_law_sum; exact: release_is_private. Qed.

Lemma delta_total_ge0 : 0 <= delta_total W P a ratio_max T c.
Proof.
have [R_ge1 inside _] := holds; have /andP[p_gt0 p_lt1] := inside 0%N.
apply: addr_ge0; last by rewrite subr_ge0 exprn_ile1 ?ltW.
by rewrite mulr_ge0 ?exprn_ge0 ?conversion_factor_ge0 ?(le_trans ler01).
Qed.

Theorem shares_are_private (H C : finType) (relabel relabel' : H -> R)
    (E : H -> ensemble Row Query n k l) (f : H -> adversary Query [eqType of 'I_l.+1])
    (classify classify' : H * transcripts -> C -> R) S S' c1 d1 c3 d3 :
    is_law relabel -> is_law relabel' ->
    (forall x, is_law (classify x)) -> (forall x, is_law (classify' x)) ->
    0 <= c1 -> 0 <= d1 -> 0 <= c3 -> 0 <= d3 ->
    within c1 d1 relabel relabel' -> (forall x, within c3 d3 (classify x) (classify' x)) ->
    one_record_replaced S S' ->
  within (c1 * c * c3) (d1 + delta_total W P a ratio_max T c + d3)
    (followed (followed relabel (fun h => transcript_law (E h) S (f h))) classify)
    (followed (followed relabel' (fun h => transcript_law (E h) S' (f h))) classify').
Proof.
move=> relabel_law relabel'_law classify_law classify'_law c1_ge0 d1_ge0 c3_ge0 d3_ge0 first last near.
apply: release_adds => //; rewrite ?(ltW c_gt0) ?delta_total_ge0 // => h;
  [exact: transcript_law_is_law | exact: transcript_law_is_law | exact: transcripts_within].
Qed.

End Shares.

Print Assumptions shares_are_private.
