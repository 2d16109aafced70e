(* The checker is sound: what it accepts satisfies Theorem A.                   *)
(*                                                                              *)
(*   accepted_is_private   check_table t = true implies, for every two data     *)
(*                         sets that differ in one record, every adversary,     *)
(*                         number of queries and event,                         *)
(*                                                                              *)
(*       P_S(O) <= (1 + epsilon + ... + epsilon ^ k / k!) P_S'(O) + delta       *)
(*                                                                              *)
(* with the epsilon and delta of t.  The factor is below e ^ epsilon, as every  *)
(* beginning of a series of positive terms is.                                  *)
From Coq Require Import NArith Ring Field.
From mathcomp Require Import all_ssreflect all_algebra.
From Conclave Require Import field_tactics conversion votes game moment theorem_a words release.
From Conclave Require Import checker.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Arguments N.of_nat : simpl never.
Arguments N.mul : simpl never.
Arguments N.add : simpl never.

Section Values.
Variable R : realFieldType.
Add Field field_of_R : (operations_are_a_field R).
Implicit Types (x y : N).

Definition value x : R := (nat_of_bin x)%:R.
Definition quotient (q : fraction) : R := value q.1 / value q.2.

Lemma value_ge0 x : 0 <= value x. Proof. exact: ler0n. Qed.

Lemma value0 : value 0 = 0. Proof. by []. Qed.
Lemma value1 : value 1 = 1. Proof. by []. Qed.

Lemma valueD x y : value (x + y) = value x + value y.
Proof. by rewrite /value nat_of_add_bin natrD. Qed.

Lemma valueM x y : value (x * y) = value x * value y.
Proof. by rewrite /value nat_of_mul_bin natrM. Qed.

Lemma value_nat (n : nat) : value (N.of_nat n) = n%:R.
Proof.
elim: n => // n IHn; rewrite Nnat.Nat2N.inj_succ -N.add_1_l valueD IHn value1.
by rewrite -[in RHS]add1n natrD.
Qed.

Lemma nat_of_N x : N.to_nat x = x.
Proof.
rewrite -[in RHS](Nnat.N2Nat.id x); elim: (N.to_nat x) => // n IHn.
by rewrite Nnat.Nat2N.inj_succ -N.add_1_l nat_of_add_bin -IHn.
Qed.

Lemma valueX x y : value (x ^ y) = value x ^+ y.
Proof.
rewrite -nat_of_N -{1}(Nnat.N2Nat.id y); elim: (N.to_nat y) => // n IHn.
by rewrite Nnat.Nat2N.inj_succ N.pow_succ_r' valueM IHn exprS.
Qed.

Lemma nat_le x y : (x <=? y)%num -> (x <= y)%N.
Proof. by move/N.leb_spec0 => le_xy; rewrite -(N.sub_add _ _ le_xy) nat_of_add_bin leq_addl. Qed.

Lemma value_le x y : (x <=? y)%num -> value x <= value y.
Proof. by move/nat_le; rewrite ler_nat. Qed.

Lemma value_gt0 x : (1 <=? x)%num -> 0 < value x.
Proof. by move/value_le; rewrite value1; apply: lt_le_trans ltr01. Qed.

Lemma value_pred x : (1 <=? x)%num -> nat_of_bin x = (nat_of_bin (x - 1)).+1.
Proof. by move/N.leb_spec0/N.sub_add => {1}<-; rewrite nat_of_add_bin addn1. Qed.

Definition exponential_sum (e : R) k : R := \sum_(i < k.+1) e ^+ i / i`!%:R.

Lemma exponential_sound (e : fraction) k : (1 <=? e.2)%num ->
  let '(numerator, denominator, power) := exponential e k in
  [/\ value numerator = value denominator * exponential_sum (quotient e) k,
      value denominator = value e.2 ^+ k * k`!%:R & value power = value e.1 ^+ k].
Proof.
move=> e2_ge1; have e2_neq0 := lt0r_neq0 (value_gt0 e2_ge1).
elim: k => [|k IHk] /=.
  by rewrite /exponential_sum big_ord1 !value1 !expr0 mul1r fact0 divr1 mulr1.
case: (exponential e k) IHk => [[numerator denominator] power] [num_eq den_eq pow_eq].
rewrite !(valueD, valueM) value_nat num_eq den_eq pow_eq.
split; rewrite ?exprS ?factS ?natrM; [|by real_ring|by []].
have fact_neq0 : k`!%:R != 0 :> R by rewrite pnatr_eq0 -lt0n fact_gt0.
have k1_neq0 : k.+1%:R != 0 :> R by rewrite pnatr_eq0.
have e2k_neq0 := expf_neq0 k e2_neq0.
rewrite [exponential_sum _ k.+1]/exponential_sum big_ord_recr /= -/(exponential_sum _ _).
by rewrite factS natrM /quotient expr_div_n !exprS; real_field.
Qed.

Lemma exponential_sum_ge c k (e : fraction) : (1 <=? e.2)%num -> (1 <=? c.2)%num ->
    (let '(numerator, denominator, _) := exponential e k in
     c.1 * denominator <=? c.2 * numerator)%num ->
  quotient c <= exponential_sum (quotient e) k.
Proof.
move=> e2_ge1 c2_ge1; have := exponential_sound k e2_ge1.
case: (exponential e k) => [[numerator denominator] power] [num_eq den_eq _].
move=> /value_le; rewrite !valueM num_eq => le_c.
have den_gt0 : 0 < value denominator.
  by rewrite den_eq mulr_gt0 ?exprn_gt0 ?value_gt0 // ltr0n fact_gt0.
rewrite ler_pdivr_mulr ?value_gt0 // mulrC -(ler_pmul2r den_gt0).
by rewrite -mulrA [X in _ <= _ * X]mulrC.
Qed.

End Values.

Section Steps.
Variables (R : realFieldType) (range : N).
Add Field field_of_R2 : (operations_are_a_field R).
Hypothesis range_ge1 : (1 <=? range)%num.
Notation value := (value R).

Definition inside P := ((1 <=? P) && (P + 1 <=? range))%num.

Lemma inside_lt P : inside P -> 0 < value P / value range < 1.
Proof.
case/andP=> P_ge1 /(value_le R); rewrite valueD value1 => P_lt.
rewrite divr_gt0 ?value_gt0 // ltr_pdivr_mulr ?value_gt0 // mul1r.
by rewrite (lt_le_trans _ P_lt) // ltr_addl ltr01.
Qed.

Lemma value_complement P : inside P -> value (range - P) = value range - value P.
Proof.
case/andP=> _ /N.leb_spec0 P_lt; rewrite -[in RHS](N.sub_add P range) ?valueD ?addrK //.
by apply: N.le_trans P_lt; rewrite N.add_1_r; exact: N.le_succ_diag_r.
Qed.

Lemma check_step_sound m (r : fraction) P Q :
    inside P -> inside Q -> (1 <=? r.1)%num -> (1 <=? r.2)%num ->
    check_step range r (entry_of range m P) (entry_of range m Q) ->
  step_holds m (quotient R r) (value P / value range) (value Q / value range).
Proof.
move=> P_inside Q_inside r1_ge1 r2_ge1 /(value_le R).
have complement X : inside X ->
    1 - value X / value range = value (range - X) / value range /\ 0 < value (range - X).
  move=> X_inside; have /andP[_ X_lt1] := inside_lt X_inside.
  rewrite value_complement // mulrBl divff ?lt0r_neq0 ?value_gt0 //; split=> //.
  by rewrite subr_gt0 -(mul1r (value range)) -ltr_pdivr_mulr ?value_gt0.
rewrite /step_holds; have [-> A_gt0] := complement P P_inside; have [-> B_gt0] := complement Q Q_inside.
rewrite /moment.ratio /= !(valueD, valueM, valueX) => step.
have Q_gt0 : 0 < value Q by case/andP: Q_inside => /value_gt0.
have W_gt0 := value_gt0 R range_ge1.
have r1_gt0 := value_gt0 R r1_ge1; have r2_gt0 := value_gt0 R r2_ge1.
have W_neq0 := lt0r_neq0 W_gt0; have r1_neq0 := lt0r_neq0 r1_gt0.
have r2_neq0 := lt0r_neq0 r2_gt0; have Wm_neq0 := expf_neq0 m W_neq0.
have Qm_neq0 := expf_neq0 m (lt0r_neq0 Q_gt0); have Bm_neq0 := expf_neq0 m (lt0r_neq0 B_gt0).
set limit := value r.1 * (value range * _) in step.
have limit_gt0 : 0 < limit by rewrite !mulr_gt0 ?exprn_gt0.
rewrite -(ler_pmul2r limit_gt0) mul1r; apply: le_trans step; apply: equal_is_below.
by rewrite /limit /quotient !expr_div_n !exprS; real_field.
Qed.

Lemma check_steps_sound (r : fraction) m ws : check_steps range r (map (entry_of range m) ws) ->
  forall d, (d.+1 < size ws)%N ->
    check_step range r (entry_of range m (nth 0%num ws d)) (entry_of range m (nth 0%num ws d.+1))
    && check_step range r (entry_of range m (nth 0%num ws d.+1)) (entry_of range m (nth 0%num ws d)).
Proof.
elim: ws => [|P [|Q ws] IHws] //= /andP[first rest] [|d] // lt_d.
exact: (IHws rest d).
Qed.

End Steps.

Section Sound.
Variables (R : realFieldType) (range : N) (t : table).
Add Field field_of_R3 : (operations_are_a_field R).
Hypothesis accepted : check range t.
Notation value := (value R).
Notation quotient := (quotient R).

(* The word that a query at distance d is compared with. *)
Definition word_at (d : nat) : nat := nth (last 0%num (words t)) (words t) d.

Let m : nat := (order t - 1)%num.
Let p : nat -> R := word_probability R range word_at.

Lemma accepted_parts :
  [/\ check_ranges range t, check_growth t, check_hits t, check_release range t
    & check_delta t && check_steps range (checker.ratio t) (map (entry_of range (order t - 1)) (words t))].
Proof.
move: accepted; rewrite /check -/(andb _ _) => /andP[/andP[/andP[/andP[/andP[ranges growth] hits] rel] del] steps].
by split=> //; apply/andP.
Qed.

Lemma range_parts :
  [/\ all (inside range) (words t), (1 <=? head 0%num (words t))%num, (1 <=? range)%num, (2 <=? order t)%num
    & all is_fraction [:: epsilon t; delta t; checker.ratio t; growth t; hits_share t; release_share t]
      && (1 <=? (growth t).1)%num && ((checker.ratio t).2 <=? (checker.ratio t).1)%num].
Proof.
case: accepted_parts; rewrite /check_ranges.
move=> /andP[/andP[/andP[/andP[/andP[/andP[inner first] range1] order2] fractions] growth1] ratio1] _ _ _ _.
by split=> //; rewrite -andbA; apply/and3P.
Qed.

Lemma range_ge1 : (1 <=? range)%num. Proof. by case: range_parts. Qed.

Lemma fraction_ge1 q :
  q \in [:: epsilon t; delta t; checker.ratio t; growth t; hits_share t; release_share t] ->
  (1 <=? q.2)%num.
Proof. by case: range_parts => _ _ _ _ /andP[/andP[/allP fractions _] _] /fractions. Qed.

Lemma positive q :
  q \in [:: epsilon t; delta t; checker.ratio t; growth t; hits_share t; release_share t] ->
  0 < value q.2.
Proof. by move/fraction_ge1; apply: value_gt0. Qed.

Lemma epsilon_2 : 0 < value (epsilon t).2. Proof. by rewrite positive ?inE ?eqxx. Qed.
Lemma delta_2 : 0 < value (delta t).2. Proof. by rewrite positive ?inE ?eqxx ?orbT. Qed.
Lemma ratio_2 : 0 < value (checker.ratio t).2. Proof. by rewrite positive ?inE ?eqxx ?orbT. Qed.
Lemma growth_2 : 0 < value (growth t).2. Proof. by rewrite positive ?inE ?eqxx ?orbT. Qed.
Lemma hits_2 : 0 < value (hits_share t).2. Proof. by rewrite positive ?inE ?eqxx ?orbT. Qed.
Lemma release_2 : 0 < value (release_share t).2. Proof. by rewrite positive ?inE ?eqxx ?orbT. Qed.

Lemma growth_gt0 : 0 < quotient (growth t).
Proof.
rewrite divr_gt0 ?growth_2 // value_gt0 //.
by case: range_parts => _ _ _ _ /andP[/andP[_]].
Qed.

Lemma ratio_ge1 : 1 <= quotient (checker.ratio t).
Proof.
rewrite ler_pdivl_mulr ?ratio_2 // mul1r value_le //.
by case: range_parts => _ _ _ _ /andP[].
Qed.

Lemma order_eq : nat_of_bin (order t) = m.+1.
Proof.
case: range_parts => _ _ _ /N.leb_spec0 order_ge2 _; apply: value_pred.
by apply/N.leb_spec0; apply: N.le_trans order_ge2.
Qed.

Lemma order_above_1 : (0 < m)%N.
Proof. by case: range_parts => _ _ _ /nat_le; rewrite order_eq. Qed.

Lemma word_in_words d : nth (last 0%num (words t)) (words t) d \in words t.
Proof.
have [lt_d|le_d] := ltnP d (size (words t)); first exact: mem_nth.
rewrite nth_default //; case: range_parts => _; case: (words t) => // P ws _ _ _ _ /=.
exact: mem_last.
Qed.

Lemma word_inside d : inside range (nth (last 0%num (words t)) (words t) d).
Proof. by case: range_parts => /allP all_inside _ _ _ _; apply/all_inside/word_in_words. Qed.

Lemma accepted_table_holds : table_holds m (quotient (checker.ratio t)) p.
Proof.
split; [exact: order_above_1 | exact: ratio_ge1 | move=> d | move=> d]; first exact: (inside_lt R range_ge1 (word_inside d)).
have [lt_d|le_d] := ltnP d.+1 (size (words t)); last first.
  have -> : p d.+1 = p d; last by split; apply: equal_step_holds ratio_ge1 _; apply: inside_lt (word_inside d); exact: range_ge1.
  rewrite /p /word_probability /word_at nth_default //; congr (_%:R / _).
  move: le_d; rewrite leq_eqVlt => /orP[/eqP size_eq|]; last by move=> le_d; rewrite nth_default.
  by rewrite -[d]/d.+1.-1 -size_eq nth_last; case: (words t).
have := accepted_parts; case=> _ _ _ _ /andP[_ /check_steps_sound/(_ d lt_d)].
rewrite !(set_nth_default (last 0%num (words t)) 0%num) // 1?ltnW // => /andP[forth back].
have ratio2_ge1 : (1 <=? (checker.ratio t).2)%num.
  by apply: fraction_ge1; rewrite !inE eqxx !orbT.
have ratio1_ge1 : (1 <=? (checker.ratio t).1)%num.
  case: range_parts => _ _ _ _ /andP[_ /N.leb_spec0 ratio_le].
  by apply/N.leb_spec0; apply: N.le_trans ratio_le; apply/N.leb_spec0.
by split; apply: (check_step_sound R range_ge1) => //; exact: word_inside.
Qed.

Lemma accepted_delta_hits :
  delta_hits m (cutoff t) (quotient (checker.ratio t)) (quotient (growth t))
    <= quotient (hits_share t).
Proof.
case: accepted_parts => _ _ /(value_le R) hits _ _; move: hits.
rewrite !(valueM, valueX) order_eq -/m.
have -> : value (order t) = m.+1%:R by rewrite /checker_sound.value order_eq.
have -> : value (order t - 1) = m%:R by [].
set x := value _ * _ * _ * _; set y := _ * _ * _ * _ => le_xy.
have m1_gt0 : 0 < m.+1%:R :> R by rewrite ltr0n.
have growth1_gt0 : 0 < value (growth t).1.
  by case: range_parts => _ _ _ _ /andP[/andP[_ /value_gt0]].
set limit := value (hits_share t).2 * value (checker.ratio t).2 ^+ cutoff t * m.+1%:R ^+ m.+1
  * value (growth t).1 ^+ m.
have limit_gt0 : 0 < limit by rewrite !mulr_gt0 ?exprn_gt0 ?hits_2 ?ratio_2.
rewrite -(ler_pmul2r limit_gt0).
have [h2 r2 g1 g2] : [/\ value (hits_share t).2 != 0, value (checker.ratio t).2 ^+ cutoff t != 0,
    value (growth t).1 ^+ m != 0 & value (growth t).2 ^+ m != 0].
  by rewrite !expf_neq0 ?lt0r_neq0 ?hits_2 ?ratio_2 ?growth_2.
have m1 := expf_neq0 m (lt0r_neq0 m1_gt0); have m1' := lt0r_neq0 m1_gt0.
apply: le_trans (le_trans _ le_xy) _; apply: equal_is_below.
  by rewrite /x /limit /delta_hits /conversion_factor /quotient !expr_div_n !exprS; real_field.
by rewrite /y /limit /quotient !exprS; real_field.
Qed.

Lemma accepted_delta_release : delta_release p (cutoff t) <= quotient (release_share t).
Proof.
case: accepted_parts => _ _ _ /(value_le R) release _; move: release.
rewrite !(valueD, valueM, valueX) /delta_release /p /word_probability.
have -> : (word_at 0)%:R = value (List.hd 0%num (words t)).
  by rewrite /word_at /checker_sound.value; case: range_parts => _; case: (words t).
set k := nat_of_bin (cutoff t) => le_release.
have power_gt0 : 0 < value range ^+ k by rewrite exprn_gt0 ?value_gt0 ?range_ge1.
rewrite expr_div_n ler_subl_addr -ler_subl_addl.
have limit_gt0 : 0 < value (release_share t).2 * value range ^+ k by rewrite mulr_gt0 ?release_2.
rewrite -(ler_pmul2r limit_gt0).
have h2 := lt0r_neq0 release_2; have Wk := lt0r_neq0 power_gt0.
set x := value (release_share t).2 * _ in le_release.
have -> : (1 - quotient (release_share t)) * x
    = x - value (release_share t).1 * value range ^+ k by rewrite /x /quotient; real_field.
rewrite ler_subl_addl; apply: le_trans le_release _; apply: equal_is_below.
by rewrite /x; real_field.
Qed.

Lemma accepted_delta :
  delta_total range word_at m (quotient (checker.ratio t)) (cutoff t) (quotient (growth t))
    <= quotient (delta t).
Proof.
apply: le_trans (ler_add accepted_delta_hits accepted_delta_release) _.
case: accepted_parts => _ _ _ _ /andP[/(value_le R) shares _]; move: shares.
rewrite !(valueD, valueM) => le_shares.
have limit_gt0 : 0 < value (delta t).2 * (value (hits_share t).2 * value (release_share t).2).
  by rewrite !mulr_gt0 ?delta_2 ?hits_2 ?release_2.
have d2 := lt0r_neq0 delta_2; have h2 := lt0r_neq0 hits_2; have r2 := lt0r_neq0 release_2.
rewrite -(ler_pmul2r limit_gt0); apply: le_trans (le_trans _ le_shares) _.
  by apply: equal_is_below; rewrite /quotient; real_field.
by apply: equal_is_below; rewrite /quotient; real_field.
Qed.

Theorem accepted_is_private (Row Query : Type) (n k l : nat) (E : ensemble Row Query n k l)
    (S S' : 'I_n -> Row) queries (f : adversary Query _) (O : event _) :
  one_record_replaced S S' ->
  release_law R range word_at E S queries (cutoff t) f O
    <= exponential_sum (quotient (epsilon t)) (growth_terms t)
         * release_law R range word_at E S' queries (cutoff t) f O
       + quotient (delta t).
Proof.
move=> near; have range_gt0 : (0 < range)%N := nat_le range_ge1.
apply: le_trans (release_is_private range_gt0 accepted_table_holds E queries (cutoff t) f O near growth_gt0) _.
apply: ler_add accepted_delta; apply: ler_wpmul2r; first by rewrite divr_ge0 ?exprn_ge0 ?ler0n.
apply: exponential_sum_ge; try by apply: fraction_ge1; rewrite !inE eqxx ?orbT.
case: accepted_parts => _ growth_ok _ _ _; move: growth_ok.
by rewrite /check_growth nat_of_N.
Qed.

End Sound.

(* The same of the checker as it runs, on words of 64 bits. *)
Definition table_is_private (R : realFieldType) (t : table) (accepted : check_table t) :=
  accepted_is_private R accepted.

Print Assumptions table_is_private.
