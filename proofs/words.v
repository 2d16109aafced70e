(* The test as it runs, on uniform words.                                       *)
(*                                                                              *)
(*   run P s T f ws   the transcript when the words ws are drawn: a query at    *)
(*                    distance d is a hit iff its word is below P d, and        *)
(*                    nothing follows the T-th hit                              *)
(*   share n E        the share of the lists of n words below W that lie in E   *)
(*                                                                              *)
(* law_is_share    the law of game.v at p d = P d / W is the share of the words *)
(*                 whose run lies in the event.                                 *)
From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Ring Field.
From Conclave Require Import field_tactics game.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Run.
Variables (X : Type) (L : eqType) (W : nat) (P : nat -> nat).
Implicit Types (s : side X L) (f : adversary X L) (O : event L) (ws : seq 'I_W).

Fixpoint run s (T : nat) f ws : transcript L :=
  match ws, T with
  | w :: ws', T'.+1 =>
      if (w < P (distance s (f [::])))%N then hit L :: run s T' (after (hit L) f) ws'
      else released s f :: run s T (after (released s f) f) ws'
  | _, _ => [::]
  end.

End Run.

Section Share.
Variables (R : realFieldType) (W : nat).
Add Field field_of_R : (operations_are_a_field R).
Hypothesis W_gt0 : (0 < W)%N.

Definition share n (E : pred (seq 'I_W)) : R :=
  #|[set ws : n.-tuple 'I_W | E ws]|%:R / W%:R ^+ n.

Let W_neq0 : W%:R != 0 :> R. Proof. by rewrite pnatr_eq0 -lt0n. Qed.

Lemma share0 E : share 0 E = (E [::])%:R.
Proof.
rewrite /share expr0 divr1; congr _%:R; case: (boolP (E _)) => E_nil /=; last first.
  by apply/eqP; rewrite cards_eq0 -subset0; apply/subsetP => ws; rewrite inE tuple0 (negbTE E_nil).
rewrite (_ : [set ws : 0.-tuple 'I_W | E ws] = setT) ?cardsT ?card_tuple ?expn0 //.
by apply/setP => ws; rewrite !inE tuple0.
Qed.

Lemma share_sum n E : share n E = (\sum_(ws : n.-tuple 'I_W) (E ws)%:R) / W%:R ^+ n.
Proof.
rewrite /share; congr (_ / _); rewrite -sum1_card natr_sum big_mkcond /=.
by apply: eq_bigr => ws _; rewrite inE; case: (E ws).
Qed.

Lemma shareS n E : share n.+1 E = W%:R^-1 * \sum_(w < W) share n (fun ws => E (w :: ws)).
Proof.
rewrite share_sum exprS invfM mulrCA; congr (_ * _).
under [RHS]eq_bigr do rewrite share_sum; rewrite -mulr_suml; congr (_ * _).
rewrite pair_bigA /=.
rewrite (reindex (fun wws : 'I_W * n.-tuple 'I_W => cons_tuple wws.1 wws.2)) //=.
exists (fun ws : n.+1.-tuple 'I_W => (thead ws, [tuple of behead ws])) => [[w ws] _|ws _] /=.
  by congr pair; apply: val_inj.
by rewrite [RHS]tuple_eta.
Qed.

Lemma share_ext n E E' : E =1 E' -> share n E = share n E'.
Proof. by move=> same; rewrite !share_sum; congr (_ / _); apply: eq_bigr => ws _; rewrite same. Qed.

Lemma share_const n (b : bool) : share n (fun _ => b) = b%:R.
Proof.
rewrite share_sum sumr_const card_tuple card_ord -[_ *+ _]mulr_natr natrX.
by rewrite -mulrA divff ?mulr1 // expf_neq0.
Qed.

Lemma sum_below (P : nat) (a b : R) : (P <= W)%N ->
  P%:R / W%:R * a + (1 - P%:R / W%:R) * b
    = W%:R^-1 * \sum_(w < W) (if (w < P)%N then a else b).
Proof.
move=> le_PW; have split w : (if (w < P)%N then a else b : R) = (w < P)%N%:R * (a - b) + b.
  by case: (_ < _)%N; rewrite ?mul1r ?mul0r ?subrK ?add0r.
under eq_bigr do rewrite split; rewrite big_split /= -mulr_suml sumr_const card_ord.
have -> : \sum_(w < W) (w < P)%N%:R = P%:R :> R.
  rewrite -natr_sum; congr _%:R; rewrite -[RHS]card_ord -sum1_card.
  by rewrite (big_ord_widen _ (fun=> 1%N) le_PW) [RHS]big_mkcond /=; apply: eq_bigr => w _; case: ifP.
by rewrite -[b *+ W]mulr_natr; real_field.
Qed.

End Share.

Section LawIsShare.
Variables (X : Type) (L : eqType) (R : realFieldType) (W : nat) (P : nat -> nat).
Hypothesis W_gt0 : (0 < W)%N.
Hypothesis P_le : forall d, (P d <= W)%N.

Definition word_probability d : R := (P d)%:R / W%:R.

Theorem law_is_share (s : side X L) n T f (O : event L) :
  law word_probability s n T f O = share R n (fun ws : seq 'I_W => O (run P s T f ws)).
Proof.
elim: n => [|n IHn] in T f O *; first by rewrite share0 //; case: T.
case: T => [|T].
  by rewrite (@share_ext _ _ _ _ (fun=> O [::])) ?share_const // => -[|w ws].
rewrite shareS //= !IHn sum_below //; congr (_ * _); apply: eq_bigr => w _.
by case: ifP.
Qed.

End LawIsShare.

Print Assumptions law_is_share.
