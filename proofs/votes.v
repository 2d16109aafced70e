(* Lemma S: one replaced vote moves the distance to instability by at most 1,   *)
(* and where it changes the plurality the distance is 0 on both sides.          *)
(*                                                                              *)
(*   plurality c   the label with most votes, ties to the smallest index        *)
(*   gap c         largest count minus second largest                           *)
(*   distance c    max(0, ceil(gap / 2) - 1)                                    *)
(*   counts v      the number of votes for each label                           *)
(*   one_vote_replaced v v'   all votes but one are the same                    *)
(*                                                                              *)
(* Any number of labels, any number of voters.                                  *)
From mathcomp Require Import all_ssreflect.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Section Counts.
Variable l : nat.
Notation label := 'I_l.+1.
Implicit Types (c : label -> nat) (i j : label).

Definition leads c i := [forall j, c j <= c i].

Definition plurality c : label := [arg min_(i < [arg max_(i > ord0) c i] | leads c i) (i : nat)].

Definition second_count c := \max_(i | i != plurality c) c i.

Definition gap c := c (plurality c) - second_count c.

Definition distance c := (uphalf (gap c)).-1.

Lemma some_label_leads c : leads c [arg max_(i > ord0) c i].
Proof. by case: arg_maxnP => // i _ most; apply/forallP => j; exact: most. Qed.

Lemma plurality_leads c i : c i <= c (plurality c).
Proof.
rewrite /plurality; case: arg_minnP => [|j /forallP leading _]; first exact: some_label_leads.
exact: leading.
Qed.

Lemma plurality_smallest c i : c i = c (plurality c) -> plurality c <= i.
Proof.
move=> tie; have leading : leads c i.
  by apply/forallP => j; rewrite tie plurality_leads.
by rewrite /plurality; case: arg_minnP => [|j _ ->] //; exact: some_label_leads.
Qed.

Lemma second_ge c i : i != plurality c -> c i <= second_count c.
Proof. by move=> other; rewrite /second_count (bigD1 i) //= leq_maxl. Qed.

Lemma second_le c i : second_count c <= \max_(j | j != i) c j.
Proof.
apply/bigmax_leqP => j other; have [<-|differ] := eqVneq (plurality c) i.
  by rewrite (bigD1 j) //= leq_maxl.
by rewrite (bigD1 (plurality c)) //= (leq_trans (plurality_leads c j)) ?leq_maxl.
Qed.

Definition counts_close c c' := forall i, c i <= (c' i).+1 /\ c' i <= (c i).+1.

Lemma counts_close_sym c c' : counts_close c c' -> counts_close c' c.
Proof. by move=> close i; case: (close i). Qed.

Variables c c' : label -> nat.
Hypothesis close : counts_close c c'.

Lemma largest_moves : c (plurality c) <= (c' (plurality c')).+1.
Proof. by apply: leq_trans (proj1 (close _)) _; rewrite ltnS plurality_leads. Qed.

Lemma second_moves : second_count c' <= (second_count c).+1.
Proof.
apply: leq_trans (second_le c' (plurality c)) _; apply/bigmax_leqP => j other.
by apply: leq_trans (proj2 (close j)) _; rewrite ltnS second_ge.
Qed.

Lemma gap_moves : gap c <= (gap c').+2.
Proof.
rewrite /gap leq_subLR; apply: leq_trans largest_moves _.
rewrite !addnS ltnS -addSn -/(gap c').
apply: leq_trans (leq_add second_moves (leqnn _)).
by rewrite -leq_subLR.
Qed.

Lemma distance_moves : distance c <= (distance c').+1.
Proof.
rewrite /distance; have : uphalf (gap c) <= (uphalf (gap c')).+1.
  exact: (@half_leq (gap c).+1 (gap c').+3 gap_moves).
by case: (uphalf (gap c)) => //= a; rewrite ltnS => /leq_trans; apply; exact: leqSpred.
Qed.

Lemma flip_gap : plurality c != plurality c' -> gap c <= 2.
Proof.
move=> differ; rewrite /gap leq_subLR.
apply: leq_trans (proj1 (close _)) _.
apply: leq_trans (_ : (c' (plurality c')).+1 <= _); first by rewrite ltnS plurality_leads.
apply: leq_trans (_ : (c (plurality c')).+2 <= _); first by rewrite ltnS; case: (close (plurality c')).
by rewrite addn2 !ltnS second_ge // eq_sym.
Qed.

Lemma flip_distance : plurality c != plurality c' -> distance c = 0.
Proof. by move/flip_gap; rewrite /distance; case: (gap c) => [|[|[]]]. Qed.

End Counts.

Theorem lemma_S (l : nat) (c c' : 'I_l.+1 -> nat) : counts_close c c' ->
  [/\ distance c <= (distance c').+1, distance c' <= (distance c).+1
    & plurality c != plurality c' -> distance c = 0 /\ distance c' = 0].
Proof.
move=> close; have close' := counts_close_sym close; split; try exact: distance_moves.
by move=> flip; rewrite (flip_distance close) // (flip_distance close') // eq_sym.
Qed.

Section Votes.
Variables k l : nat.
Implicit Types v : 'I_k -> 'I_l.+1.

Definition counts v (i : 'I_l.+1) := #|[pred voter | v voter == i]|.

Definition one_vote_replaced v v' := exists replaced, forall voter,
  voter != replaced -> v voter = v' voter.

Lemma counts_move v v' : one_vote_replaced v v' -> counts_close (counts v) (counts v').
Proof.
have bound w w' : one_vote_replaced w w' -> forall i, counts w i <= (counts w' i).+1.
  move=> [replaced same] i; rewrite /counts (cardD1 replaced) -[X in _ <= X]add1n.
  rewrite leq_add ?leq_b1 //; apply/subset_leq_card/subsetP => voter.
  by rewrite !inE => /andP[/same ->].
move=> close i; split; first exact: bound.
by case: close => replaced same; apply: bound; exists replaced => voter /same.
Qed.

End Votes.

Print Assumptions lemma_S.
