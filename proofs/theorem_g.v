(* Theorem G: a record in a generation that votes with others and retires.      *)
(*                                                                              *)
(* A query brings what is public when it is asked: the table in force, and the  *)
(* price of one hit.  The generation has an account (B, E):                     *)
(*   B   what is left for hits: the product of the prices of those to come is B *)
(*       at most                                                                *)
(*   E   what is left for labels: 1 - E of delta pays for those that differ     *)
(*                                                                              *)
(*   pays x A       the generation can pay for one hit more, so it votes        *)
(*   seen s x A     the side that votes: s where it pays, and else the others,  *)
(*                  who do not know the record                                  *)
(*   charge x A     the account after a hit: B over its price, E over p_0       *)
(*   life s n A f O the probability of O after n queries, from an account A     *)
(*                                                                              *)
(*   theorem_G      for every number of queries, every adversary and event, and *)
(*                  from any balance:                                           *)
(*                                                                              *)
(*       P_s(O) <= c P_s'(O) + B * conversion_factor a c + (1 - E)              *)
(*                                                                              *)
(* The adversary chooses tables and prices while it asks.  A price above B is a *)
(* generation that has retired.  Votes of other generations and their rows are  *)
(* part of the distance and the plurality of a query, which are of any form.    *)
From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Ring Field.
From Conclave Require Import field_tactics order conversion game moment.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section TheoremG.
Variables (X : Type) (L : eqType) (R : realFieldType).
Add Field field_of_R : (operations_are_a_field R).
Variables (table : X -> nat -> R) (price : X -> R) (others : side X L).
Implicit Types (s : side X L) (f : adversary X L) (O : event L) (A : R * R).

Definition pays x A : bool := (price x <= A.1) && (A.2 <= table x 0).
Definition seen s x A : side X L := if pays x A then s else others.
Definition charge x A : R * R := if pays x A then (A.1 / price x, A.2 / table x 0) else A.

(* The probability of a hit, and the label that is released without one. *)
Definition hit_at s x A : R := table x (distance (seen s x A) x).
Definition label_at s f A : outcome L := released (seen s (f [::]) A) f.

Fixpoint life s (n : nat) A f O : R :=
  if n is n'.+1 then
    hit_at s (f [::]) A * life s n' (charge (f [::]) A) (after (hit L) f) (after (hit L) O)
    + (1 - hit_at s (f [::]) A)
      * life s n' A (after (label_at s f A) f) (after (label_at s f A) O)
  else (O [::])%:R.

Record prices_hold (a : renyi_order R) : Prop := PricesHold {
  price_ge1 : forall x, 1 <= price x;
  entries_inside : forall x d, 0 < table x d < 1;
  steps_adjacent : forall x d, step_holds a (price x) (table x d) (table x d.+1)
    /\ step_holds a (price x) (table x d.+1) (table x d)
}.

Variables (a : renyi_order R) (s s' : side X L).
Hypothesis holds : prices_hold a.
Hypothesis near : neighbours s s'.

Let p_gt0 s1 x A : 0 < hit_at s1 x A. Proof. by case/andP: (entries_inside holds x (distance (seen s1 x A) x)). Qed.
Let q_gt0 s1 x A : 0 < 1 - hit_at s1 x A.
Proof. by rewrite subr_gt0; case/andP: (entries_inside holds x (distance (seen s1 x A) x)). Qed.

Lemma seen_near x A :
  [/\ (distance (seen s x A) x <= (distance (seen s' x A) x).+1)%N,
      (distance (seen s' x A) x <= (distance (seen s x A) x).+1)%N
    & ~~ agree (seen s x A) (seen s' x A) x ->
        [/\ pays x A, distance (seen s x A) x = 0%N & distance (seen s' x A) x = 0%N]].
Proof.
rewrite /seen; case: (pays x A); last by split; rewrite ?leqnSn // /agree eqxx.
by have [below above flip] := near x; split=> // /flip[d0 d0']; split.
Qed.

Lemma life_ge0 s1 n A f O : 0 <= life s1 n A f O.
Proof. by elim: n => [|n IHn] in A f O *; rewrite /= ?ler0n // addr_ge0 // mulr_ge0 // ltW. Qed.

Lemma life_total s1 n A f : life s1 n A f predT = 1.
Proof. by elim: n => [|n IHn] in A f *; rewrite //= !IHn !mulr1 addrC subrK. Qed.

Lemma life_ext s1 n A f O O' : O =1 O' -> life s1 n A f O = life s1 n A f O'.
Proof.
elim: n => [|n IHn] in A f O O' *; move=> same /=; rewrite ?same //.
by congr (_ * _ + _ * _); apply: IHn => t; apply: same.
Qed.

Lemma life_split s1 n A f O G :
  life s1 n A f O = life s1 n A f (predI O G) + life s1 n A f (predD O G).
Proof.
elim: n => [|n IHn] in A f O G *; rewrite /=.
  by case: (G [::]); rewrite ?andbF ?andbT /= ?addr0 ?add0r.
rewrite (IHn (charge _ _) _ _ (after (hit L) G)) (IHn A _ (after _ O) (after (label_at s1 f A) G)).
by rewrite !mulrDr addrACA.
Qed.

Lemma life_subset s1 n A f O O' : {subset O <= O'} -> life s1 n A f O <= life s1 n A f O'.
Proof.
move=> sub; rewrite (life_split _ _ _ _ O' O).
have -> : life s1 n A f (predI O' O) = life s1 n A f O.
  by apply: life_ext => t /=; apply/andb_idl => /sub.
by rewrite ler_addl life_ge0.
Qed.

(* The moment of the likelihood ratio, to the run with the distances of s'. *)
Fixpoint growth (n : nat) A f : R :=
  if n is n'.+1 then
    ratio a (hit_at s (f [::]) A) (hit_at s' (f [::]) A)
      * growth n' (charge (f [::]) A) (after (hit L) f)
    + ratio a (1 - hit_at s (f [::]) A) (1 - hit_at s' (f [::]) A)
      * growth n' A (after (label_at s f A) f)
  else 1.

Lemma charge_ge1 x A : 1 <= A.1 -> 1 <= (charge x A).1.
Proof.
rewrite /charge; case: ifP => // /andP[le_price _] _.
by rewrite ler_pdivl_mulr ?mul1r // (lt_le_trans ltr01) ?(price_ge1 holds).
Qed.

(* From any balance. *)
Lemma growth_le n A f : 1 <= A.1 -> growth n A f <= A.1.
Proof.
elim: n => [|n IHn] in A f *; move=> A_ge1 //=; set x := f [::].
set p := hit_at s x A; set q := hit_at s' x A.
have later := IHn _ (after (hit L) f) (charge_ge1 x A_ge1).
apply: (@le_trans _ _ (ratio a p q * (charge x A).1 + ratio a (1 - p) (1 - q) * A.1)).
  apply: ler_add; apply: ler_wpmul2l; [|exact: later| |exact: IHn].
    by apply: ratio_ge0; apply: ltW; apply: p_gt0.
  by apply: ratio_ge0; apply: ltW; apply: q_gt0.
rewrite /p /q /charge /hit_at /seen; case: ifP => [paid|_] /=; last first.
  have /andP[gt0 lt1] := entries_inside holds x (distance others x).
  by rewrite !ratio_same ?subr_eq0 ?gt_eqF // -mulrDl addrC subrK mul1r.
have r_neq0 : price x != 0 by rewrite gt_eqF // (lt_le_trans ltr01) ?(price_ge1 holds).
have [below above _] := near x.
have step : step_holds a (price x) (table x (distance s x)) (table x (distance s' x)).
  by apply: adjacent_steps_hold below above; [exact: (price_ge1 holds) | exact: (entries_inside holds) | exact: (steps_adjacent holds)].
set u := ratio a _ _ in step *; set v := ratio a _ _ in step *.
have -> : u * (A.1 / price x) + v * A.1 = (u / price x + v) * A.1 by real_field.
by apply: ler_pimull step; apply: le_trans A_ge1.
Qed.

Lemma between_hit x A : hit_at (between s s') x A = hit_at s' x A.
Proof. by rewrite /hit_at /seen; case: (pays x A). Qed.

Lemma between_label f A : label_at (between s s') f A = label_at s f A.
Proof. by rewrite /label_at /seen; case: (pays _ A). Qed.

Lemma weighted_life_le c n A f O x y : 0 < c -> 0 <= x -> 0 < y ->
  x * life s n A f O - c * (y * life (between s s') n A f O)
    <= conversion_factor a c * (ratio a x y * growth n A f).
Proof.
move=> c_gt0.
have leaf b u v : 0 <= u -> 0 < v ->
    u * (b : bool)%:R - c * (v * b%:R) <= conversion_factor a c * (ratio a u v * 1).
  move=> u_ge0 v_gt0; rewrite mulr1; case: b; rewrite ?mulr1 ?mulr0 ?mulr0 ?subrr.
    exact: conversion.
  by rewrite mulr_ge0 ?ratio_ge0 ?conversion_factor_ge0 // ltW.
elim: n => [|n IHn] in A f O x y *; move=> x_ge0 y_gt0; first exact: leaf.
rewrite /= between_hit between_label.
set p1 := hit_at s _ _; set p2 := hit_at s' _ _; set f1 := after _ f; set f2 := after _ f.
set O1 := after _ O; set O2 := after _ O; set A1 := charge _ _.
have x1_ge0 : 0 <= x * p1 by rewrite mulr_ge0 // ltW // p_gt0.
have x2_ge0 : 0 <= x * (1 - p1) by rewrite mulr_ge0 // ltW // q_gt0.
have y1_gt0 : 0 < y * p2 by rewrite mulr_gt0 // p_gt0.
have y2_gt0 : 0 < y * (1 - p2) by rewrite mulr_gt0 // q_gt0.
have := ler_add (IHn A1 f1 O1 _ _ x1_ge0 y1_gt0) (IHn A f2 O2 _ _ x2_ge0 y2_gt0).
rewrite !ratioM ?p_gt0 ?q_gt0 ?(ltW (p_gt0 _ _ _)) ?(ltW (q_gt0 _ _ _)) //; set lhs := _ + _ => le_lhs.
apply: le_trans (le_trans _ le_lhs) _; apply: equal_is_below; last by real_ring.
by rewrite /lhs; real_ring.
Qed.

(* No query whose pluralities differ had a label released. *)
Fixpoint hidden A f (t : transcript L) : bool :=
  if t is o :: t' then
    (if o is Some _ then agree (seen s (f [::]) A) (seen s' (f [::]) A) (f [::]) else true)
    && hidden (if o is Some _ then A else charge (f [::]) A) (after o f) t'
  else true.

Lemma charge_label x A : 0 <= A.2 <= 1 -> 0 <= (charge x A).2 <= 1 /\ A.2 <= (charge x A).2.
Proof.
case/andP=> ge0 le1; rewrite /charge; case: ifP => [/andP[_ paid]|_] /=; last by rewrite ge0 le1.
have /andP[p0_gt0 /ltW p0_le1] := entries_inside holds x 0%N.
rewrite divr_ge0 ?(ltW p0_gt0) // ler_pdivr_mulr // mul1r paid; split=> //.
by rewrite ler_pdivl_mulr // ler_pimulr.
Qed.

Lemma hidden_ge n A f : 0 <= A.2 <= 1 -> A.2 <= life s n A f (hidden A f).
Proof.
elim: n => [|n IHn] in A f *; move=> A01 /=; first by case/andP: A01.
set x := f [::]; have [_ _ flip] := seen_near x A; have [charged kept] := charge_label x A01.
have hit_ge : (charge x A).2 <= life s n (charge x A) (after (hit L) f) (after (hit L) (hidden A f)).
  exact: IHn.
have [same|/flip[paid d0 _]] := boolP (agree (seen s x A) (seen s' x A) x); last first.
  have /andP[p0_gt0 _] := entries_inside holds x 0%N.
  have first : A.2 = hit_at s x A * (charge x A).2.
    by rewrite /hit_at d0 /charge paid /= mulrCA divff ?mulr1 ?lt0r_neq0.
  rewrite {1}first; apply: le_trans (ler_wpmul2l (ltW (p_gt0 s x A)) hit_ge) _.
  by rewrite ler_addl mulr_ge0 ?life_ge0 // ltW.
have label_ge : A.2 <= life s n A (after (label_at s f A) f) (after (label_at s f A) (hidden A f)).
  apply: le_trans (IHn _ _ A01) _; rewrite le_eqVlt; apply/orP; left; apply/eqP.
  by apply: life_ext => t; rewrite /after /= same.
apply: le_trans (ler_add (ler_wpmul2l (ltW (p_gt0 s x A)) (le_trans kept hit_ge))
                         (ler_wpmul2l (ltW (q_gt0 s x A)) label_ge)).
by rewrite -mulrDl addrC subrK mul1r.
Qed.

Lemma not_hidden_le n A f O : 0 <= A.2 <= 1 -> life s n A f (predD O (hidden A f)) <= 1 - A.2.
Proof.
move=> A01; rewrite -(life_total s n A f) (life_split _ _ _ _ predT (hidden A f)) ler_subr_addr addrC ler_add //.
  have -> : life s n A f (predI predT (hidden A f)) = life s n A f (hidden A f) by exact: life_ext.
  exact: hidden_ge.
by apply: life_subset => // t /andP[shown _]; apply/andP.
Qed.

Lemma life_none s1 n A f O : (forall t, ~~ O t) -> life s1 n A f O = 0.
Proof.
elim: n => [|n IHn] in A f O *; move=> none /=; first by rewrite (negbTE (none _)).
by rewrite !IHn ?mulr0 ?addr0 // => t; apply: none.
Qed.

Lemma hidden_lives_agree n A f O :
  life (between s s') n A f (predI O (hidden A f)) = life s' n A f (predI O (hidden A f)).
Proof.
elim: n => [|n IHn] in A f O *; rewrite //= between_hit between_label.
congr (_ * _ + _ * _); first exact: (IHn _ _ (after (hit L) O)).
have [same|differ] := boolP (agree (seen s (f [::]) A) (seen s' (f [::]) A) (f [::])).
  have <- : label_at s f A = label_at s' f A by rewrite /label_at /released (eqP same).
  have ext s1 : life s1 n A (after (label_at s f A) f) (after (label_at s f A) (predI O (hidden A f)))
      = life s1 n A (after (label_at s f A) f)
          (predI (after (label_at s f A) O) (hidden A (after (label_at s f A) f))).
    by apply: life_ext => t; rewrite /after /= same.
  by rewrite !ext IHn.
by rewrite !life_none // => t; rewrite /after /= (negbTE differ) /= andbF.
Qed.

Theorem theorem_G (c : R) n A f O : 0 < c -> 1 <= A.1 -> 0 <= A.2 <= 1 ->
  life s n A f O <= c * life s' n A f O + A.1 * conversion_factor a c + (1 - A.2).
Proof.
move=> c_gt0 A_ge1 A01.
have factor_ge0 := conversion_factor_ge0 a c_gt0.
rewrite (life_split _ _ _ _ O (hidden A f)) ler_add ?not_hidden_le //.
have := weighted_life_le n A f (predI O (hidden A f)) c_gt0 ler01 ltr01.
rewrite ratio_same ?oner_neq0 // !mul1r ler_subl_addl => /le_trans; apply.
apply: ler_add; last by rewrite mulrC ler_wpmul2r ?growth_le.
by rewrite ler_wpmul2l ?(ltW c_gt0) // hidden_lives_agree life_subset // => t /andP[].
Qed.

End TheoremG.

Print Assumptions theorem_G.
