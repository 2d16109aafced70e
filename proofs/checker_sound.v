(* The checker is sound: what it accepts satisfies Theorem A.                   *)
(*                                                                              *)
(*   power_above_le        the checker's power is above x ^ (m / 2 ^ k)         *)
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
From Conclave Require Import field_tactics order conversion votes game moment theorem_a words release.
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

Section Powers.
Variables (R : realFieldType) (unit_bits : N).
Add Field field_of_R1 : (operations_are_a_field R).
Notation value := (value R).
Notation unit := (unit unit_bits).
Notation power_above := (power_above unit_bits).
Notation quotient_above := (quotient_above unit_bits).
Notation times_above := (times_above unit_bits).
Notation root_above := (root_above unit_bits).
Notation whole_power_above := (whole_power_above unit_bits).

(* The number that an integer out of unit stands for. *)
Definition scaled x : R := value x / value unit.

Lemma unit_ge1 : (1 <=? unit)%num.
Proof. by apply/N.leb_spec0/N.lt_pred_le; rewrite /= ; apply/N.neq_0_lt_0/N.pow_nonzero. Qed.

Lemma value_unit_gt0 : 0 < value unit. Proof. exact: value_gt0 unit_ge1. Qed.

Lemma scaled_ge0 x : 0 <= scaled x.
Proof. by rewrite divr_ge0 ?value_ge0. Qed.

Lemma value_lt x y : (x < y)%num -> value x <= value y.
Proof. by move/N.lt_le_incl/N.leb_spec0; apply: value_le. Qed.

Lemma below_scaled x y z : (1 <=? y)%num -> (x * unit < y * z)%num -> value x / value y <= scaled z.
Proof.
move=> /(value_gt0 R) y_gt0 /value_lt; rewrite !valueM => le_z.
by rewrite ler_pdivl_mulr ?value_unit_gt0 // mulrAC ler_pdivr_mulr // [value z * _]mulrC.
Qed.

Lemma quotient_above_le x y : (1 <=? y)%num -> value x / value y <= scaled (quotient_above x y).
Proof.
move=> y_ge1; apply: below_scaled => //; rewrite /quotient_above N.shiftl_mul_pow2 N.add_1_r.
by apply: N.mul_succ_div_gt; move/N.leb_spec0: y_ge1 => y_ge1 y0; rewrite y0 in y_ge1.
Qed.

Lemma times_above_le x y : scaled x * scaled y <= scaled (times_above x y).
Proof.
rewrite /scaled mulf_div -!valueM; apply: below_scaled.
  by apply/N.leb_spec0/(N.mul_le_mono 1 _ 1); apply/N.leb_spec0/unit_ge1.
rewrite /times_above N.shiftr_div_pow2 N.add_1_r [(x * y * unit)%num]N.mul_comm -N.mul_assoc.
have unit_neq0 : unit <> 0%num by exact: N.pow_nonzero.
by apply: (proj1 (N.mul_lt_mono_pos_l _ _ _ (proj1 (N.neq_0_lt_0 _) unit_neq0))); apply: N.mul_succ_div_gt.
Qed.

Lemma root_above_le x : scaled x <= scaled (root_above x) ^+ 2.
Proof.
rewrite /root_above N.shiftl_mul_pow2 N.add_1_r.
have [_ /value_lt] := N.sqrt_spec (x * unit) (N.le_0_l _).
rewrite !valueM -expr2 => le_root; have unit_gt0 := value_unit_gt0; have unit_neq0 := lt0r_neq0 unit_gt0.
rewrite /scaled expr_div_n ler_pdivl_mulr ?exprn_gt0 //; apply: le_trans le_root.
by apply: equal_is_below; rewrite expr2; real_field.
Qed.

Lemma whole_power_above_le x (n : N) : scaled x ^+ n <= scaled (whole_power_above x n).
Proof.
case: n => [|n] /=; first by rewrite expr0 /scaled divff ?lt0r_neq0 ?value_unit_gt0.
elim: n => [n IHn|n IHn|] /=; rewrite ?NatTrec.doubleE ?expr1 //.
  rewrite exprS -addnn exprD; apply: le_trans (times_above_le _ _).
  rewrite ler_wpmul2l ?scaled_ge0 //; apply: le_trans (times_above_le _ _).
  by rewrite ler_pmul ?exprn_ge0 ?scaled_ge0.
rewrite -addnn exprD; apply: le_trans (times_above_le _ _).
by rewrite ler_pmul ?exprn_ge0 ?scaled_ge0.
Qed.

Lemma value_pow2 k : nat_of_bin (2 ^ N.of_nat k) = (2 ^ k)%N.
Proof.
elim: k => // k IHk; rewrite Nnat.Nat2N.inj_succ N.pow_succ_r' nat_of_mul_bin IHk.
by rewrite expnS.
Qed.

Lemma power_above_le x k (m : N) : scaled x ^+ m <= scaled (power_above x k m) ^+ (2 ^ k).
Proof.
elim: k => [|k IHk] in x m *; first by rewrite expr1 whole_power_above_le.
set halved := (2 ^ N.of_nat k.+1)%num.
have -> : power_above x k.+1 m = times_above (whole_power_above x (m / halved))
    (power_above (root_above x) k (m mod halved)) by [].
have halved_eq : nat_of_bin halved = (2 ^ k.+1)%N by exact: value_pow2.
have {1}-> : nat_of_bin m = (2 ^ k.+1 * (m / halved)%num + (m mod halved)%num)%N.
  by rewrite -halved_eq -nat_of_mul_bin -nat_of_add_bin -N.div_mod'.
have rest_le : scaled x ^+ (m mod halved)%num
    <= scaled (power_above (root_above x) k (m mod halved)) ^+ (2 ^ k.+1).
  rewrite expnS mulnC exprM; apply: le_trans (_ : (scaled (root_above x) ^+ (m mod halved)%num) ^+ 2 <= _).
    by rewrite -exprM mulnC exprM ler_expn2r ?nnegrE ?exprn_ge0 ?scaled_ge0 ?root_above_le.
  by rewrite ler_expn2r ?nnegrE ?exprn_ge0 ?scaled_ge0.
apply: le_trans (_ : (scaled (whole_power_above x (m / halved))
    * scaled (power_above (root_above x) k (m mod halved))) ^+ (2 ^ k.+1) <= _); last first.
  by apply: ler_expn2r; rewrite ?nnegrE ?scaled_ge0 //; [apply: mulr_ge0; apply: scaled_ge0 | apply: times_above_le].
have -> : scaled x ^+ (2 ^ k.+1 * (m / halved)%num + (m mod halved)%num)
    = (scaled x ^+ (m / halved)%num) ^+ (2 ^ k.+1) * scaled x ^+ (m mod halved)%num.
  by rewrite exprD mulnC exprM.
rewrite [X in _ <= X]exprMn; apply: (ler_pmul _ _ _ rest_le); rewrite ?exprn_ge0 ?scaled_ge0 //.
by apply: ler_expn2r; rewrite ?nnegrE ?exprn_ge0 ?scaled_ge0 ?whole_power_above_le.
Qed.

(* An order of which the checker knows that it is 1 + m / 2 ^ k. *)
Record is_dyadic (a : renyi_order R) (m k : nat) : Prop := IsDyadic {
  excess_is : excess a = m%:R / (2 ^ k)%:R;
  power_le : forall x y : R, 0 <= x -> 0 <= y -> x ^+ m <= y ^+ (2 ^ k) -> power a x <= y
}.

Lemma power_of_quotient_le (a : renyi_order R) (m : N) k x y : is_dyadic a m k -> (1 <=? y)%num ->
  power a (value x / value y) <= scaled (power_above (quotient_above x y) k m).
Proof.
move=> dyadic y_ge1; have quotient_ge0 : 0 <= value x / value y by rewrite divr_ge0 ?value_ge0.
apply: (power_le dyadic) quotient_ge0 (scaled_ge0 _) _.
apply: le_trans (power_above_le _ _ _).
apply: ler_expn2r; [by rewrite nnegrE divr_ge0 ?value_ge0 | exact: scaled_ge0 | exact: quotient_above_le].
Qed.

End Powers.

Section Steps.
Variables (R : realFieldType) (range unit_bits : N).
Add Field field_of_R2 : (operations_are_a_field R).
Hypothesis range_ge1 : (1 <=? range)%num.
Notation value := (value R).
Notation unit := (unit unit_bits).
Notation power_above := (power_above unit_bits).
Notation quotient_above := (quotient_above unit_bits).
Notation scaled := (scaled R unit_bits).

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

Lemma complement_ge1 P : inside P -> (1 <=? range - P)%num.
Proof. by case/andP=> _ /N.leb_spec0 P_lt; apply/N.leb_spec0/N.le_add_le_sub_l. Qed.

Lemma ratio_of_words_le (a : renyi_order R) (m : N) k (X Y : N) : is_dyadic a m k -> (1 <=? Y)%num ->
  conversion.ratio a (value X / value range) (value Y / value range)
    <= value X / value range * scaled (power_above (quotient_above X Y) k m).
Proof.
move=> dyadic Y_ge1; have W_gt0 := value_gt0 R range_ge1; have Y_gt0 := value_gt0 R Y_ge1.
have W_neq0 := lt0r_neq0 W_gt0; have Y_neq0 := lt0r_neq0 Y_gt0.
rewrite /conversion.ratio ler_wpmul2l ?divr_ge0 ?value_ge0 //.
have -> : value X / value range / (value Y / value range) = value X / value Y by real_field.
exact: power_of_quotient_le.
Qed.

Lemma check_step_sound (a : renyi_order R) (m : N) k (r : fraction) P Q : is_dyadic a (nat_of_bin m) k ->
    inside P -> inside Q -> (1 <=? r.1)%num -> (1 <=? r.2)%num -> check_step range unit_bits k m r P Q ->
  step_holds a (quotient R r) (value P / value range) (value Q / value range).
Proof.
move=> dyadic P_inside Q_inside r1_ge1 r2_ge1 /(value_le R); rewrite !(valueD, valueM) => step.
have W_gt0 := value_gt0 R range_ge1; have U_gt0 := value_unit_gt0 R unit_bits.
have r1_gt0 := value_gt0 R r1_ge1; have r2_gt0 := value_gt0 R r2_ge1.
have W_neq0 := lt0r_neq0 W_gt0; have U_neq0 := lt0r_neq0 U_gt0.
have r1_neq0 := lt0r_neq0 r1_gt0; have r2_neq0 := lt0r_neq0 r2_gt0.
have complement X : inside X -> 1 - value X / value range = value (range - X) / value range.
  by move=> X_inside; rewrite value_complement // mulrBl divff.
rewrite /step_holds !complement //; have Q_ge1 : (1 <=? Q)%num by case/andP: Q_inside.
have hit_le := ratio_of_words_le P dyadic Q_ge1.
have answer_le := ratio_of_words_le (range - P) dyadic (complement_ge1 Q_inside).
have quotient_ge0 : 0 <= (quotient R r)^-1 by rewrite invr_ge0 divr_ge0 ?value_ge0.
apply: le_trans (ler_add (ler_wpmul2r quotient_ge0 hit_le) answer_le) _.
have limit_gt0 : 0 < value r.1 * (value range * value unit) by rewrite !mulr_gt0.
rewrite -(ler_pmul2r limit_gt0) mul1r; apply: le_trans step; apply: equal_is_below.
by rewrite /checker_sound.scaled /quotient; real_field.
Qed.

Lemma check_steps_sound k m (r : fraction) ws : check_steps range unit_bits k m r ws ->
  forall d, (d.+1 < size ws)%N ->
    check_step range unit_bits k m r (nth 0%num ws d) (nth 0%num ws d.+1)
    && check_step range unit_bits k m r (nth 0%num ws d.+1) (nth 0%num ws d).
Proof.
elim: ws => [|P [|Q ws] IHws] //= /andP[first rest] [|d] // lt_d.
exact: (IHws rest d).
Qed.

End Steps.

Section Sound.
Variables (R : realFieldType) (range unit_bits : N) (t : table) (a : renyi_order R).
Add Field field_of_R3 : (operations_are_a_field R).
Hypothesis accepted : check range unit_bits t.
Hypothesis order_of_table : is_dyadic a (order t).1 (halvings t).
Notation value := (value R).
Notation quotient := (quotient R).

(* The word that a query at distance d is compared with. *)
Definition word_at (d : nat) : nat := nth (last 0%num (words t)) (words t) d.

Let p : nat -> R := word_probability R range word_at.

Lemma accepted_parts :
  [/\ check_ranges range t, check_growth t, check_hits unit_bits t, check_release range t
    & check_delta t
      && check_steps range unit_bits (halvings t) (order t).1 (checker.ratio t) (words t)].
Proof.
move: accepted; rewrite /check -/(andb _ _) => /andP[/andP[/andP[/andP[/andP[/andP[ranges _] growth] hits] rel] del] steps].
by split=> //; apply/andP.
Qed.

Lemma range_parts :
  [/\ all (inside range) (words t), (1 <=? head 0%num (words t))%num, (1 <=? range)%num, (1 <=? (order t).1)%num
    & all is_fraction [:: epsilon t; delta t; checker.ratio t; growth t; hits_share t; release_share t]
      && (1 <=? (growth t).1)%num && ((checker.ratio t).2 + 1 <=? (checker.ratio t).1)%num].
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
rewrite ler_pdivl_mulr ?ratio_2 // mul1r; case: range_parts => _ _ _ _ /andP[_].
by move/(value_le R); apply: le_trans; rewrite valueD ler_addl value_ge0.
Qed.

Lemma word_in_words d : nth (last 0%num (words t)) (words t) d \in words t.
Proof.
have [lt_d|le_d] := ltnP d (size (words t)); first exact: mem_nth.
rewrite nth_default //; case: range_parts => _; case: (words t) => // P ws _ _ _ _ /=.
exact: mem_last.
Qed.

Lemma word_inside d : inside range (nth (last 0%num (words t)) (words t) d).
Proof. by case: range_parts => /allP all_inside _ _ _ _; apply/all_inside/word_in_words. Qed.

Lemma accepted_table_holds : table_holds a (quotient (checker.ratio t)) p.
Proof.
split; [exact: ratio_ge1 | move=> d | move=> d]; first exact: (inside_lt R range_ge1 (word_inside d)).
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
  case: range_parts => _ _ _ _ /andP[_ /N.leb_spec0 ratio_le]; apply/N.leb_spec0.
  by apply: N.le_trans ratio_le; apply: N.le_add_l.
split.
  exact: (check_step_sound range_ge1 order_of_table (word_inside _) (word_inside _) ratio1_ge1 ratio2_ge1 forth).
exact: (check_step_sound range_ge1 order_of_table (word_inside _) (word_inside _) ratio1_ge1 ratio2_ge1 back).
Qed.

Lemma accepted_delta_hits :
  delta_hits a (cutoff t) (quotient (checker.ratio t)) (quotient (growth t))
    <= quotient (hits_share t).
Proof.
pose m := (order t).1; pose n := (2 ^ N.of_nat (halvings t))%num.
have n_eq : value n = (2 ^ halvings t)%:R by rewrite /checker_sound.value value_pow2.
have n_gt0 : 0 < value n by rewrite n_eq ltr0n expn_gt0.
have m_gt0 : 0 < value m by case: range_parts => _ _ _ /(value_gt0 R).
have g1_gt0 : 0 < value (growth t).1.
  by case: range_parts => _ _ _ _ /andP[/andP[_ /value_gt0]].
pose x := (m * (growth t).2)%num; pose y := ((m + n) * (growth t).1)%num.
have y_gt0 : 0 < value y by rewrite valueM valueD mulr_gt0 ?addr_gt0.
have y_ge1 : (1 <=? y)%num.
  by move: y_gt0; case: (y) => [|[]] //; rewrite value0 ltxx.
have [[n0 m0] g0] := (lt0r_neq0 n_gt0, lt0r_neq0 m_gt0, lt0r_neq0 g1_gt0).
have mn0 : value m + value n != 0 by rewrite lt0r_neq0 ?addr_gt0.
have [h0 r0] := (lt0r_neq0 hits_2, lt0r_neq0 ratio_2).
have [G0 U_gt0] := (lt0r_neq0 growth_2, value_unit_gt0 R unit_bits); have U0 := lt0r_neq0 U_gt0.
have excess_eq : excess a = value m / value n by rewrite n_eq (excess_is order_of_table).
have nm0 : value n + value m != 0 by rewrite addrC.
have base_eq : maximum a / quotient (growth t) = value x / value y.
  by rewrite /maximum excess_eq !(valueM, valueD) /quotient; real_field.
pose S := power_above unit_bits (quotient_above unit_bits x y) (halvings t) m.
have power_le' : power a (maximum a / quotient (growth t)) <= scaled R unit_bits S.
  by rewrite base_eq; apply: power_of_quotient_le order_of_table y_ge1.
have rT0 : value (checker.ratio t).2 ^+ cutoff t != 0 by rewrite expf_neq0.
have le_hits : value (hits_share t).2 * value (checker.ratio t).1 ^+ cutoff t * value n * value S
    <= value (hits_share t).1 * value (checker.ratio t).2 ^+ cutoff t * (value m + value n)
       * value (checker.unit unit_bits).
  rewrite -!valueX -valueD -!valueM; apply: value_le.
  by case: accepted_parts => _ _ hits _ _; exact: hits.
apply: le_trans (_ : quotient (checker.ratio t) ^+ cutoff t
  * (scaled R unit_bits S / (1 + excess a)) <= _).
  rewrite /delta_hits ler_wpmul2l ?exprn_ge0 ?(le_trans ler01 ratio_ge1) //.
  by rewrite ler_wpmul2r // invr_ge0 ltW ?order_gt0.
have limit_gt0 : 0 < value (hits_share t).2 * value (checker.ratio t).2 ^+ cutoff t
    * (value m + value n) * value (checker.unit unit_bits).
  by rewrite !mulr_gt0 ?exprn_gt0 ?hits_2 ?ratio_2 ?addr_gt0.
rewrite -(ler_pmul2r limit_gt0); apply: le_trans (le_trans _ le_hits) _; apply: equal_is_below.
  by rewrite excess_eq /quotient /scaled !expr_div_n; real_field.
by rewrite /quotient; real_field.
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
  delta_total range word_at a (quotient (checker.ratio t)) (cutoff t) (quotient (growth t))
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

(* The same of the checker as it runs, on words of 64 bits, in every real closed field. *)
Section OrderOfTable.
Variables (R : rcfType) (t : table).
Hypothesis accepted : check_table t.

Lemma order_above_1 : (0 < (order t).1)%N.
Proof. by case: (range_parts accepted) => _ _ _ /nat_le. Qed.

Definition order_of : renyi_order R := dyadic R (halvings t) order_above_1.

Lemma order_is_dyadic : is_dyadic order_of (order t).1 (halvings t).
Proof. by split; [|exact: dyadic_le]. Qed.

Definition table_is_private := accepted_is_private accepted order_is_dyadic.

End OrderOfTable.

Print Assumptions table_is_private.
