(* Theorem A: the stability test with a table of probabilities is private.      *)
(*                                                                              *)
(*   theorem_A     for every two neighbouring sides s and s', every number n of *)
(*                 queries, every adversary f and every event O,                *)
(*                                                                              *)
(*                   P_s(O) <= c P_s'(O) + delta_hits + delta_release           *)
(*                                                                              *)
(*   delta_hits    = R ^ T * conversion_factor a c, which is                    *)
(*                   R ^ T c ^ (1-a) (1 - 1/a) ^ (a-1) / a                      *)
(*   delta_release = 1 - p_0 ^ T                                                *)
(*                                                                              *)
(* c stands for e ^ epsilon.  A table holds (table_holds) when its entries lie  *)
(* strictly between 0 and 1, R >= 1, and neighbouring entries satisfy the one-  *)
(* step inequality [*] in both orders.  That entries fall is not needed.        *)
(*                                                                              *)
(* The proof goes through the run in between, N.  To N from s: the moment bound *)
(* and the conversion (law_le_moment, moment_le).  From N to s': on the event   *)
(* that no differing query has its label released (hidden) both are one run     *)
(* (hidden_laws_agree), and the event fails with probability 1 - p_0 ^ T at     *)
(* most (hidden_ge).                                                            *)
From mathcomp Require Import all_ssreflect all_algebra.
From Conclave Require Import order conversion game moment.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section TheoremA.
Variables (X : Type) (L : eqType) (R : realFieldType).
Implicit Types (p : nat -> R) (s : side X L) (f : adversary X L) (O : event L).

Definition delta_hits (a : renyi_order R) (T : nat) (ratio_max c : R) := ratio_max ^+ T * conversion_factor a c.
Definition delta_release p (T : nat) : R := 1 - p 0%N ^+ T.

Record table_holds (a : renyi_order R) (ratio_max : R) p : Prop := TableHolds {
  ratio_max_ge1 : 1 <= ratio_max;
  entries_inside : forall d, 0 < p d < 1;
  steps_adjacent : forall d,
    step_holds a ratio_max (p d) (p d.+1) /\ step_holds a ratio_max (p d.+1) (p d)
}.

(* No query of the transcript whose plurality differs had a label released. *)
Fixpoint hidden s s' f (t : transcript L) : bool :=
  if t is o :: t' then
    (if o is Some _ then agree s s' (f [::]) else true) && hidden s s' (after o f) t'
  else true.

Variables (a : renyi_order R) (ratio_max : R) (p : nat -> R) (s s' : side X L).
Hypothesis holds : table_holds a ratio_max p.
Hypothesis near : neighbours s s'.

Let p_gt0 d : 0 < p d. Proof. by case/andP: (entries_inside holds d). Qed.
Let p_lt1 d : p d < 1. Proof. by case/andP: (entries_inside holds d). Qed.
Let p_probability d : 0 <= p d <= 1. Proof. by rewrite !ltW. Qed.
Let q_ge0 d : 0 <= 1 - p d. Proof. by rewrite subr_ge0 ltW. Qed.

Lemma hidden_ge n T f : p 0%N ^+ T <= law p s n T f (hidden s s' f).
Proof.
have power_le1 k : p 0%N ^+ k <= 1 by rewrite exprn_ile1 ?ltW.
elim: n => [|n IHn] in T f *; case: T => [|T] //=; rewrite ?power_le1 //.
set x := f [::]; have [_ _ flip] := near x.
have hit_ge : p 0%N ^+ T <= law p s n T (after (hit L) f) (after (hit L) (hidden s s' f)).
  exact: IHn.
have [same|differ] := boolP (agree s s' x); last first.
  have [-> _] := flip differ; rewrite exprS.
  apply: le_trans (ler_wpmul2l (ltW (p_gt0 0)) hit_ge) _.
  by rewrite ler_addl mulr_ge0 ?law_ge0.
have released_ge : p 0%N ^+ T.+1 <=
    law p s n T.+1 (after (released s f) f) (after (released s f) (hidden s s' f)).
  apply: le_trans (IHn _ _) _; rewrite le_eqVlt; apply/orP; left; apply/eqP.
  by apply: law_ext => t; rewrite /after /= same.
have hit_ge' : p 0%N ^+ T.+1 <= law p s n T (after (hit L) f) (after (hit L) (hidden s s' f)).
  by apply: le_trans hit_ge; rewrite exprS ler_pimull ?exprn_ge0 ?ltW.
apply: le_trans (ler_add (ler_wpmul2l (ltW (p_gt0 _)) hit_ge')
                         (ler_wpmul2l (q_ge0 (distance s x)) released_ge)).
by rewrite -mulrDl addrC subrK mul1r.
Qed.

Lemma not_hidden_le n T f O : law p s n T f (predD O (hidden s s' f)) <= delta_release p T.
Proof.
have -> : delta_release p T = law p s n T f predT - p 0%N ^+ T by rewrite law_total.
rewrite (law_split _ _ _ _ _ predT (hidden s s' f)) ler_subr_addr addrC ler_add //.
  have -> : law p s n T f (predI predT (hidden s s' f)) = law p s n T f (hidden s s' f).
    exact: law_ext.
  exact: hidden_ge.
by apply: law_subset => // t /andP[shown _]; apply/andP.
Qed.

Lemma law_predI0 s1 n T f O : law p s1 n T f (predI O pred0) = 0.
Proof.
elim: n => [|n IHn] in T f O *; case: T => [|T] /=; rewrite ?andbF //.
have none o : law p s1 n (if o is None then T else T.+1) (after o f) (after o (predI O pred0)) = 0.
  exact: (IHn _ _ (after o O)).
by rewrite (none None) (none (Some _)) !mulr0 addr0.
Qed.

Lemma hidden_laws_agree n T f O :
  law p (between s s') n T f (predI O (hidden s s' f))
    = law p s' n T f (predI O (hidden s s' f)).
Proof.
elim: n => [|n IHn] in T f O *; case: T => [|T] //=.
congr (_ * _ + _ * _); first exact: (IHn _ _ (after (hit L) O)).
rewrite /released /=; have [same|differ] := boolP (agree s s' (f [::])).
  rewrite -(eqP same); set o := Some _.
  have ext s1 : law p s1 n T.+1 (after o f) (after o (predI O (hidden s s' f)))
      = law p s1 n T.+1 (after o f) (predI (after o O) (hidden s s' (after o f))).
    by apply: law_ext => t; rewrite /after /= same.
  by rewrite !ext IHn.
have none s1 l : law p s1 n T.+1 (after (Some l) f) (after (Some l) (predI O (hidden s s' f))) = 0.
  rewrite -(law_predI0 s1 n T.+1 (after (Some l) f) (after (Some l) O)).
  by apply: law_ext => t; rewrite /after /= (negbTE differ).
by rewrite !none.
Qed.

Theorem theorem_A (c : R) n T f O : 0 < c ->
  law p s n T f O <= c * law p s' n T f O + delta_hits a T ratio_max c + delta_release p T.
Proof.
move=> c_gt0; have [R_ge1 p_inside adjacent] := holds.
have steps := adjacent_steps_hold R_ge1 p_inside adjacent.
have factor_ge0 := conversion_factor_ge0 a c_gt0.
rewrite (law_split _ _ _ _ _ O (hidden s s' f)) ler_add ?not_hidden_le //.
apply: le_trans (law_le_moment a p_inside s s' n T f _ c_gt0) _.
apply: ler_add; last by rewrite mulrC /delta_hits ler_wpmul2r // (moment_le p_inside R_ge1 n T f steps near).
by rewrite ler_wpmul2l ?(ltW c_gt0) // hidden_laws_agree law_subset // => t /andP[].
Qed.

End TheoremA.

Print Assumptions theorem_A.
