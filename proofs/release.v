(* A whole release: records in chunks, one vote a chunk, the test on words.     *)
(*                                                                              *)
(*   position -> chunk     where each record goes, drawn without a look at rows *)
(*   learner i rows q      the vote of chunk i, fitted on its own rows alone    *)
(*   one_record_replaced   two data sets that differ in one record              *)
(*                                                                              *)
(* one_record_one_vote   a replaced record replaces one vote of every query     *)
(* release_is_private    with a table that holds, for every two data sets that  *)
(*                       differ in one record, every adversary, number of       *)
(*                       queries and event, the shares of the words that lead   *)
(*                       to it are within c and delta of one another            *)
(* mixture_is_private    the same when chunks, seeds and adversary are tossed   *)
(*                       beforehand, each with a weight                         *)
From mathcomp Require Import all_ssreflect all_algebra.
From Conclave Require Import order conversion votes game words moment theorem_a.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Release.
Variables (Row Query : Type) (n k l : nat).
Implicit Types (S : 'I_n -> Row) (q : Query).

Record ensemble := Ensemble {
  chunk : 'I_n -> 'I_k;
  learner : 'I_k -> seq Row -> Query -> 'I_l.+1
}.
Implicit Types E : ensemble.

Definition rows E S i := [seq S j | j <- enum 'I_n & chunk E j == i].
Definition vote E S q i := learner E i (rows E S i) q.

Definition one_record_replaced S S' := exists replaced, forall j, j != replaced -> S j = S' j.

Lemma other_rows_same E S S' replaced : (forall j, j != replaced -> S j = S' j) ->
  forall i, i != chunk E replaced -> rows E S i = rows E S' i.
Proof.
move=> same i other; apply/eq_in_map => j; rewrite mem_filter => /andP[/eqP in_i _].
by apply: same; apply: contra other => /eqP <-; rewrite in_i.
Qed.

Lemma one_record_one_vote E S S' q : one_record_replaced S S' ->
  one_vote_replaced (vote E S q) (vote E S' q).
Proof.
move=> [replaced same]; exists (chunk E replaced) => i other.
by rewrite /vote (other_rows_same same other).
Qed.

Definition side_of E S : side Query [eqType of 'I_l.+1] :=
  Side (fun q => votes.distance (counts (vote E S q)))
       (fun q => votes.plurality (counts (vote E S q))).

Lemma neighbouring_sides E S S' : one_record_replaced S S' ->
  neighbours (side_of E S) (side_of E S').
Proof.
move=> near q; have := lemma_S (counts_move (one_record_one_vote E q near)).
by case=> below above flip; split=> // /flip.
Qed.

Variables (R : realFieldType) (W : nat) (P : nat -> nat).
Implicit Types (f : adversary Query [eqType of 'I_l.+1]) (O : event [eqType of 'I_l.+1]).

(* The probability that the run of a release on data S ends in O. *)
Definition release_law E S (queries T : nat) f O : R :=
  share R queries (fun ws : seq 'I_W => O (run P (side_of E S) T f ws)).

Variables (a : renyi_order R) (ratio_max : R).
Hypothesis W_gt0 : (0 < W)%N.
Hypothesis holds : table_holds a ratio_max (word_probability R W P).

Let P_le d : (P d <= W)%N.
Proof.
have /andP[_] := entries_inside holds d.
by rewrite ltr_pdivr_mulr ?ltr0n // mul1r ltr_nat => /ltnW.
Qed.

Definition delta_total (T : nat) (c : R) : R :=
  delta_hits a T ratio_max c + delta_release (word_probability R W P) T.

Theorem release_is_private E S S' (c : R) queries T f O :
    one_record_replaced S S' -> 0 < c ->
  release_law E S queries T f O <= c * release_law E S' queries T f O + delta_total T c.
Proof.
move=> near c_gt0; rewrite /release_law -!law_is_share // /delta_total addrA.
exact: (theorem_A holds (neighbouring_sides E near) queries T f O c_gt0).
Qed.

Corollary mixture_is_private (coins : finType) (weight : coins -> R) (E : coins -> ensemble)
    (f : coins -> adversary Query _) (O : coins -> event _) S S' (c : R) queries T :
    (forall i, 0 <= weight i) -> \sum_i weight i = 1 -> one_record_replaced S S' -> 0 < c ->
  \sum_i weight i * release_law (E i) S queries T (f i) (O i)
    <= c * (\sum_i weight i * release_law (E i) S' queries T (f i) (O i)) + delta_total T c.
Proof.
move=> weight_ge0 weight_1 near c_gt0.
rewrite -[delta_total T c]mul1r -{1}weight_1 mulr_suml mulr_sumr -big_split /=.
apply: ler_sum => i _; rewrite [c * _]mulrCA -mulrDr ler_wpmul2l //.
exact: release_is_private.
Qed.

End Release.

Print Assumptions release_is_private.
Print Assumptions mixture_is_private.
