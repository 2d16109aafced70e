(* One account: Theorem A of answers, and of draws made around them.            *)
(*                                                                              *)
(*   strategy      what is asked of a release, as a tree: Stop b ends, and b    *)
(*                 says whether the event has come; Ask x g h asks the query x  *)
(*                 and goes on as g after a hit and as h l after the label l;   *)
(*                 Draw u v h makes a draw, of law u on the first data set and  *)
(*                 v on the second, and goes on as h z after the value z        *)
(*   chance b s g  the probability that g on the side s ends in its event; b    *)
(*                 says of which data set the draws are                         *)
(*   charged T b g the strategy g asks nothing after T hits, and the moments of *)
(*                 its draws multiply to b at most on every path                *)
(*                                                                              *)
(*   account_A     for every two neighbouring sides s and s', and every         *)
(*                 strategy charged to T hits and the moment b,                 *)
(*                                                                              *)
(*                   P_s <= c P_s' + b R ^ T conversion_factor a c + 1 - p_0 ^ T*)
(*                                                                              *)
(* The strategy sees every draw, relabelling among them, so that what is asked, *)
(* and how a query is voted on, may depend on it.  A draw may come at any time. *)
(* chance_of_law: without draws this is the law of game.v, so that Theorem A is *)
(* a case of it.                                                                *)
From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Ring Field.
From Conclave Require Import field_tactics order conversion game moment theorem_a.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Account.
Variables (X : Type) (L : eqType) (R : realFieldType).
Add Field field_of_R : (operations_are_a_field R).

Inductive strategy : Type :=
  | Stop of bool
  | Ask of X & strategy & (L -> strategy)
  | Draw (A : finType) of (A -> R) & (A -> R) & (A -> strategy).

Fixpoint chance (p : nat -> R) (first : bool) (s : side X L) (g : strategy) : R :=
  match g with
  | Stop b => b%:R
  | Ask x g h =>
      p (distance s x) * chance p first s g
      + (1 - p (distance s x)) * chance p first s (h (plurality s x))
  | Draw A u v h => \sum_z (if first then u z else v z) * chance p first s (h z)
  end.

Record draw_costs (a : renyi_order R) (A : finType) (m : R) (u v : A -> R) : Prop := DrawCosts {
  cost_gt0 : 0 < m;
  first_law : (forall z, 0 <= u z) /\ \sum_z u z = 1;
  second_law : (forall z, 0 < v z) /\ \sum_z v z = 1;
  moment_of_draw : \sum_z ratio a (u z) (v z) <= m
}.

Fixpoint charged (a : renyi_order R) (T : nat) (b : R) (g : strategy) : Prop :=
  1 <= b /\
  match g with
  | Stop _ => True
  | Ask x g h => if T is T'.+1 then charged a T' b g /\ forall l, charged a T b (h l) else False
  | Draw A u v h => exists2 m, draw_costs a m u v & forall z, charged a T (b / m) (h z)
  end.

Variables (a : renyi_order R) (ratio_max : R) (p : nat -> R) (s s' : side X L).
Hypothesis holds : table_holds a ratio_max p.
Hypothesis near : neighbours s s'.

Let p_gt0 d : 0 < p d. Proof. by case/andP: (entries_inside holds d). Qed.
Let p_lt1 d : p d < 1. Proof. by case/andP: (entries_inside holds d). Qed.
Let q_gt0 d : 0 < 1 - p d. Proof. by rewrite subr_gt0. Qed.
Let ratio_gt0 : 0 < ratio_max. Proof. exact: lt_le_trans ltr01 (ratio_max_ge1 holds). Qed.

Lemma charged_ge1 T b g : charged a T b g -> 1 <= b.
Proof. by case: g => [?|???|????] []. Qed.

Lemma chance_ge0 first s1 T b g : charged a T b g -> 0 <= chance p first s1 g.
Proof.
elim: g T b => [c|x g IHg h IHh|A u v h IHh] T b /= [_]; first by rewrite ler0n.
  case: T => // T [charged_g charged_h].
  by rewrite addr_ge0 // mulr_ge0 ?(ltW (p_gt0 _)) ?(ltW (q_gt0 _)) ?(IHg T b) ?(IHh _ T.+1 b).
case=> m [_ [u_ge0 _] [v_gt0 _] _] charged_h; apply: sumr_ge0 => z _.
by apply: mulr_ge0 (IHh z T (b / m) (charged_h z)); case: (first) => //; exact: ltW.
Qed.

Lemma chance_le1 first s1 T b g : charged a T b g -> chance p first s1 g <= 1.
Proof.
elim: g T b => [c|x g IHg h IHh|A u v h IHh] T b /= [_]; first by case: c; rewrite ?lexx ?ler01.
  case: T => // T [charged_g charged_h].
  apply: le_trans (ler_add (ler_wpmul2l (ltW (p_gt0 (distance s1 x))) (IHg T b charged_g))
    (ler_wpmul2l (ltW (q_gt0 (distance s1 x))) (IHh _ T.+1 b (charged_h (plurality s1 x))))) _.
  by rewrite !mulr1 addrC subrK.
case=> m [_ [u_ge0 u_1] [v_gt0 v_1] _] charged_h.
apply: le_trans (_ : \sum_z (if first then u z else v z) <= 1); last first.
  by case: (first); rewrite ?u_1 ?v_1.
apply: ler_sum => z _; rewrite ler_pimulr ?(IHh z T (b / m)) //.
by case: (first) => //; exact: ltW.
Qed.

(* The moment of all that comes, with weights x and y of what came. *)
Lemma weighted_chance_le c T b g x y : 0 < c -> 0 <= x -> 0 < y -> charged a T b g ->
  x * chance p true s g - c * (y * chance p false (between s s') g)
    <= conversion_factor a c * (ratio a x y * (ratio_max ^+ T * b)).
Proof.
move=> c_gt0; have factor_ge0 := conversion_factor_ge0 a c_gt0.
have [R_ge1 p_inside adjacent] := holds.
have steps := adjacent_steps_hold R_ge1 p_inside adjacent.
elim: g T b x y => [e|q g IHg h IHh|A u v h IHh] T b x y x_ge0 y_gt0 /= [b_ge1].
- move=> _; have b_ge0 : 0 <= ratio_max ^+ T * b.
    by rewrite mulr_ge0 ?exprn_ge0 ?(ltW ratio_gt0) ?(le_trans ler01).
  have whole_ge : ratio a x y <= ratio a x y * (ratio_max ^+ T * b).
    rewrite ler_pemulr ?ratio_ge0 ?(ltW y_gt0) //.
    by apply: le_trans (exprn_ege1 T R_ge1) _; rewrite ler_pemulr ?exprn_ge0 ?(ltW ratio_gt0).
  apply: le_trans (ler_wpmul2l factor_ge0 whole_ge); case: e; rewrite ?mulr1 ?mulr0 ?mulr0 ?subrr.
    exact: conversion.
  by rewrite mulr_ge0 ?ratio_ge0 // ltW.
- case: T => // T [charged_g charged_h].
  set p1 := p (distance s q); set p2 := p (distance s' q).
  have x1_ge0 : 0 <= x * p1 by rewrite mulr_ge0 // ltW // p_gt0.
  have x2_ge0 : 0 <= x * (1 - p1) by rewrite mulr_ge0 // ltW // q_gt0.
  have y1_gt0 : 0 < y * p2 by rewrite mulr_gt0 // p_gt0.
  have y2_gt0 : 0 < y * (1 - p2) by rewrite mulr_gt0 // q_gt0.
  have := ler_add (IHg T b _ _ x1_ge0 y1_gt0 charged_g)
                  (IHh (plurality s q) T.+1 b _ _ x2_ge0 y2_gt0 (charged_h _)).
  rewrite !ratioM ?p_gt0 ?q_gt0 ?(ltW (p_gt0 _)) ?(ltW (q_gt0 _)) // => le_both.
  have R_neq0 := lt0r_neq0 ratio_gt0; have [below above _] := near q.
  have step : ratio a p1 p2 / ratio_max + ratio a (1 - p1) (1 - p2) <= 1 by exact: steps.
  have paid_ge0 : 0 <= conversion_factor a c * (ratio a x y * (ratio_max ^+ T.+1 * b)).
    apply: mulr_ge0 factor_ge0 (mulr_ge0 (ratio_ge0 _ x_ge0 (ltW y_gt0)) _).
    exact: mulr_ge0 (exprn_ge0 _ (ltW ratio_gt0)) (le_trans ler01 b_ge1).
  apply: le_trans (ler_pimulr paid_ge0 step); apply: le_trans (le_trans _ le_both) _.
    by apply: equal_is_below; real_ring.
  by apply: equal_is_below; rewrite exprS; real_field.
case=> m [m_gt0 [u_ge0 _] [v_gt0 _] moment_u] charged_h.
have b_ge0 : 0 <= b by exact: le_trans ler01 b_ge1.
have each z : x * u z * chance p true s (h z) - c * (y * v z * chance p false (between s s') (h z))
    <= conversion_factor a c * (ratio a x y * ratio a (u z) (v z) * (ratio_max ^+ T * (b / m))).
  rewrite -ratioM //; apply: IHh (charged_h z); [exact: mulr_ge0 | exact: mulr_gt0].
have -> : x * (\sum_z u z * chance p true s (h z))
      - c * (y * (\sum_z v z * chance p false (between s s') (h z)))
    = \sum_z (x * u z * chance p true s (h z)
              - c * (y * v z * chance p false (between s s') (h z))).
  by rewrite sumrB !mulr_sumr; congr (_ - _); apply: eq_bigr => z _; rewrite !mulrA.
apply: le_trans (ler_sum _ (fun z _ => each z)) _.
rewrite -mulr_sumr ler_wpmul2l // -mulr_suml -mulr_sumr -mulrA.
rewrite ler_wpmul2l ?ratio_ge0 ?(ltW y_gt0) //.
apply: le_trans (_ : m * (ratio_max ^+ T * (b / m)) <= _).
  by rewrite ler_wpmul2r // !mulr_ge0 ?exprn_ge0 ?(ltW ratio_gt0) ?invr_ge0 ?(ltW m_gt0).
by apply: equal_is_below; have m_neq0 := lt0r_neq0 m_gt0; real_field.
Qed.

(* The strategy that ends, outside its event, when a differing label gets out. *)
Fixpoint hide (g : strategy) : strategy :=
  match g with
  | Stop b => Stop b
  | Ask x g h => Ask x (hide g) (fun l => if agree s s' x then hide (h l) else Stop false)
  | Draw A u v h => Draw u v (fun z => hide (h z))
  end.

Lemma charged_hide T b g : charged a T b g -> charged a T b (hide g).
Proof.
elim: g T b => [c|x g IHg h IHh|A u v h IHh] T b //= [b_ge1 rest]; split=> //.
  case: T rest => // T [charged_g charged_h]; split=> [|l]; first exact: IHg.
  by case: ifP => _ //=; exact: IHh.
by case: rest => m costs charged_h; exists m => // z; exact: IHh.
Qed.

Lemma chance_hide_le first s1 T b g : charged a T b g ->
  chance p first s1 (hide g) <= chance p first s1 g.
Proof.
elim: g T b => [c|x g IHg h IHh|A u v h IHh] T b //= [_].
  case: T => // T [charged_g charged_h].
  rewrite ler_add // ler_wpmul2l ?(ltW (p_gt0 _)) ?(ltW (q_gt0 _)) ?(IHg T b) //.
  by case: ifP => _ /=; [exact: IHh (charged_h _) | exact: chance_ge0 (charged_h _)].
case=> m [_ [u_ge0 _] [v_gt0 _] _] charged_h; apply: ler_sum => z _.
by apply: ler_wpmul2l (IHh z T (b / m) (charged_h z)); case: (first) => //; exact: ltW.
Qed.

Lemma between_hides g : chance p false (between s s') (hide g) = chance p false s' (hide g).
Proof.
elim: g => [c|x g IHg h IHh|A u v h IHh] //=; last by apply: eq_bigr => z _; rewrite IHh.
rewrite IHg; congr (_ + _ * _); case: ifP => // same.
by rewrite IHh; move: same; rewrite /agree => /eqP->.
Qed.

Lemma chance_le_hide T b g : charged a T b g ->
  chance p true s g <= chance p true s (hide g) + (1 - p 0%N ^+ T).
Proof.
have power_le1 k : p 0%N ^+ k <= 1 by rewrite exprn_ile1 ?ltW.
elim: g T b => [c|x g IHg h IHh|A u v h IHh] T b /= [_]; first by rewrite ler_addl subr_ge0.
  case: T => // T [charged_g charged_h]; have [_ _ flip] := near x.
  have first_le := IHg T b charged_g.
  have [same|differ] := boolP (agree s s' x).
    have last_le := IHh (plurality s x) T.+1 b (charged_h _).
    apply: le_trans (ler_add (ler_wpmul2l (ltW (p_gt0 (distance s x))) first_le)
                             (ler_wpmul2l (ltW (q_gt0 (distance s x))) last_le)) _.
    rewrite [_ * (_ + (1 - p 0%N ^+ T))]mulrDr [_ * (_ + (1 - p 0%N ^+ T.+1))]mulrDr addrACA.
    rewrite ler_add2l; apply: le_trans (_ : p (distance s x) * (1 - p 0%N ^+ T.+1)
        + (1 - p (distance s x)) * (1 - p 0%N ^+ T.+1) <= _); last first.
      by rewrite -mulrDl addrC subrK mul1r.
    rewrite ler_add2r ler_wpmul2l ?(ltW (p_gt0 _)) // ler_add2l ler_opp2 exprS.
    by rewrite ler_pimull ?exprn_ge0 ?ltW.
  have [-> _] := flip differ; rewrite mulr0 addr0.
  apply: le_trans (ler_add (ler_wpmul2l (ltW (p_gt0 0%N)) first_le)
     (ler_wpmul2l (ltW (q_gt0 0%N)) (chance_le1 true s (charged_h (plurality s x))))) _.
  by apply: equal_is_below; rewrite exprS; real_ring.
case=> m [_ [u_ge0 u_1] _ _] charged_h.
rewrite -[1 - _]mul1r -{1}u_1 mulr_suml -big_split /=; apply: ler_sum => z _.
by rewrite -mulrDr ler_wpmul2l // (IHh z T (b / m)).
Qed.

Theorem account_A c T b g : 0 < c -> charged a T b g ->
  chance p true s g
    <= c * chance p false s' g + b * delta_hits a T ratio_max c + delta_release p T.
Proof.
move=> c_gt0 charged_g; apply: le_trans (chance_le_hide charged_g) _.
rewrite ler_add2r -ler_subl_addl.
have := weighted_chance_le c_gt0 ler01 ltr01 (charged_hide charged_g).
rewrite ratio_same ?oner_neq0 // !mul1r => le_hidden.
apply: le_trans (le_trans _ le_hidden) _; last first.
  by apply: equal_is_below; rewrite /delta_hits; real_ring.
rewrite ler_add2l ler_opp2 ler_wpmul2l ?(ltW c_gt0) // between_hides.
exact: chance_hide_le charged_g.
Qed.

End Account.

(* Without draws: the game of Theorem A. *)
Section Game.
Variables (X : Type) (L : eqType) (R : realFieldType).
Implicit Types (f : adversary X L) (O : event L).

Fixpoint strategy_of (n T : nat) f O : strategy X L R :=
  match n, T with
  | n'.+1, T'.+1 =>
      Ask (f [::]) (strategy_of n' T' (after (hit L) f) (after (hit L) O))
          (fun l => strategy_of n' T (after (Some l) f) (after (Some l) O))
  | _, _ => Stop _ _ _ (O [::])
  end.

Lemma chance_of_law (p : nat -> R) first s n T f O :
  chance p first s (strategy_of n T f O) = law p s n T f O.
Proof. by elim: n => [|n IHn] in T f O *; case: T => [|T] //=; rewrite !IHn. Qed.

Lemma charged_without_draws (a : renyi_order R) n T f O : charged a T 1 (strategy_of n T f O).
Proof. by elim: n => [|n IHn] in T f O *; case: T => [|T]. Qed.

End Game.

Print Assumptions account_A.
