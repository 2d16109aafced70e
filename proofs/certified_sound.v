(* The checker of certificates is sound: what it accepts satisfies Theorem C.   *)
(*                                                                              *)
(*   certificate_is_private   check_certificate t = true implies, for every two *)
(*                         data sets that differ in one record, every           *)
(*                         adversary, number of queries and event,              *)
(*                                                                              *)
(*       P_S(O) <= (1 + epsilon + ... + epsilon ^ k / k!) P_S'(O) + delta       *)
(*                                                                              *)
(* for the run that halts at the T-th hit, where t has T + 1 functions.         *)
From Coq Require Import NArith Ring Field.
From mathcomp Require Import all_ssreflect all_algebra.
From Conclave Require Import field_tactics votes game words release theorem_c piecewise.
From Conclave Require Import checker checker_sound certified.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Arguments N.of_nat : simpl never.
Arguments N.mul : simpl never.
Arguments N.add : simpl never.
Arguments N.sub : simpl never.

Section Spread.
Variables (R : realFieldType) (unit slope : N).
Add Field field_of_R : (operations_are_a_field R).
Hypothesis unit_ge1 : (1 <=? unit)%num.
Hypothesis slope_ge1 : (1 <=? slope)%num.
Notation value := (value R).
Implicit Types (K : certified.kinks) (x y z w : N).

Let u_gt0 : 0 < value unit. Proof. exact: value_gt0. Qed.
Let s_gt0 : 0 < value slope. Proof. exact: value_gt0. Qed.

Lemma over_unit (u v a : R) : u != 0 -> u * v * (a / u) = v * a.
Proof. by move=> u0; rewrite mulrC mulrA divfK // mulrC. Qed.

Lemma value_sub x y : value (x - y) = above0 (value x - value y).
Proof.
have [/N.leb_spec0 le_yx|/N.leb_spec0/N.nle_gt/N.lt_le_incl le_xy] := boolP (y <=? x)%num.
  rewrite -{2}(N.sub_add y x) // valueD addrK above0_pos //; exact: value_ge0.
move: (le_xy) => /N.sub_0_le ->; rewrite value0 above0_neg // subr_le0.
by apply: value_le; apply/N.leb_spec0.
Qed.

Definition kinks_of K : seq (R * R) := [seq (value k.1 / value unit, value k.2 / value slope) | k <- K].

Lemma value_spread K z w :
  value (certified.spread K z w)
    = value unit * value slope * piecewise.spread (kinks_of K) (value z / value unit) (value w).
Proof.
rewrite /piecewise.spread /kinks_of big_map; elim: K => [|[x k] K IHK] /=.
  by rewrite big_nil mulr0 value0.
rewrite big_cons valueD valueM IHK mulrDr value_sub valueM; congr (_ + _).
have u0 := lt0r_neq0 u_gt0; have s0 := lt0r_neq0 s_gt0.
have -> : value z - value x * value w = value unit * (value z / value unit - value x / value unit * value w).
  by real_field.
by rewrite -(above0_scaled _ (ltW u_gt0)) /=; real_field.
Qed.

Lemma spread_homogeneous (K : seq (R * R)) (a z w : R) : 0 <= a ->
  piecewise.spread K (a * z) (a * w) = a * piecewise.spread K z w.
Proof.
move=> a_ge0; rewrite /piecewise.spread mulr_sumr; apply: eq_bigr => k _.
have -> : a * z - k.1 * (a * w) = a * (z - k.1 * w) by real_ring.
by rewrite -(above0_scaled _ a_ge0) mulrCA.
Qed.

Lemma value_end_slope K : value (certified.end_slope K) = value slope * piecewise.end_slope (kinks_of K).
Proof.
rewrite /piecewise.end_slope /kinks_of big_map; elim: K => [|[x k] K IHK] /=.
  by rewrite big_nil mulr0 value0.
by rewrite big_cons valueD IHK mulrDr /=; have s0 := lt0r_neq0 s_gt0; real_field.
Qed.

Lemma kinks_convex K : convex (kinks_of K).
Proof. by apply/allP => k /mapP[k' _ ->] /=; rewrite divr_ge0 ?value_ge0. Qed.

Lemma rising_sound x K : rising x K ->
  path <%R (value x / value unit) (nodes (kinks_of K)).
Proof.
elim: K x => [|[y k] K IHK] x //= /andP[/(value_le R) lt_xy /IHK ->]; rewrite andbT.
rewrite ltr_pmul2r ?invr_gt0 //; apply: lt_le_trans lt_xy.
by rewrite valueD value1 ltr_addl ltr01.
Qed.

Lemma starts_at_0_sound K : starts_at_0 K ->
  path <%R 0 (behead (nodes (kinks_of K))) /\ head 1 (nodes (kinks_of K)) = 0.
Proof.
case: K => [|[[|x] k] K] //= /rising_sound; rewrite value0 mul0r => sorted.
by split.
Qed.

Lemma piecewise_value K x :
  value (certified.spread K x 1) = value unit * value slope * piecewise (kinks_of K) (value x / value unit).
Proof. by rewrite value_spread value1. Qed.

Lemma node_of K (g : R -> Prop) :
  (forall k, k \in K -> g (value k.1 / value unit)) ->
  forall y : R, y \in nodes (kinks_of K) -> g y.
Proof. by move=> holds y; rewrite /nodes /kinks_of -map_comp => /mapP[k k_in ->] /=; apply: holds. Qed.

Let us_gt0 : 0 < value unit * value slope. Proof. exact: mulr_gt0. Qed.

Lemma check_hit_sound range K K' P Q x :
    (1 <=? range)%num -> inside range P -> inside range Q -> check_hit range K K' P Q x ->
  hit_cost (kinks_of K) (kinks_of K') (value P / value range) (value Q / value range)
    (value x / value unit) <= piecewise (kinks_of K') (value x / value unit).
Proof.
move=> range_ge1 P_inside Q_inside /(value_le R).
rewrite valueD [value (range * _)]valueM piecewise_value !value_spread !valueM !value_complement //.
have W_gt0 : 0 < value range := value_gt0 R range_ge1.
have W0 := lt0r_neq0 W_gt0; have u0 := lt0r_neq0 u_gt0.
set W := value range in W_gt0 W0 *; set y := value x / value unit.
have -> : value x * value P / value unit = W * (y * (value P / W)) by rewrite /y; real_field.
have -> : value x * (W - value P) / value unit = W * (y * (1 - value P / W)) by rewrite /y; real_field.
have -> : value Q = W * (value Q / W) by real_field.
have -> : W - W * (value Q / W) = W * (1 - value Q / W) by real_ring.
have -> : W * (value Q / W) / W = value Q / W by real_field.
rewrite !spread_homogeneous ?(ltW W_gt0) // -mulrDr -mulrDr mulrCA.
by rewrite (ler_pmul2l W_gt0) (ler_pmul2l us_gt0).
Qed.

End Spread.

Lemma check_pairs_sound range K K' ws : check_pairs range K K' ws ->
  forall d k, (d.+1 < size ws)%N -> k \in K' ->
    check_hit range K K' (nth 0%num ws d) (nth 0%num ws d.+1) k.1
    /\ check_hit range K K' (nth 0%num ws d.+1) (nth 0%num ws d) k.1.
Proof.
elim: ws => [|P [|Q ws] IHws] //; rewrite -/(check_pairs range K K' [:: P, Q & ws]).
move=> /andP[first rest] [|d] k lt_d k_in; last exact: IHws rest d k lt_d k_in.
by have /allP/(_ k k_in)/andP[] := first.
Qed.

Lemma check_functions_sound range unit words Ks : check_functions range unit words Ks ->
  forall h, (h.+1 < size Ks)%N ->
    [/\ (certified.end_slope (nth nil Ks h) <=? certified.end_slope (nth nil Ks h.+1))%num,
        {in nth nil Ks h.+1, forall k,
          check_node range unit (head 0%num words) (nth nil Ks h) (nth nil Ks h.+1) k.1}
      & check_pairs range (nth nil Ks h) (nth nil Ks h.+1) words].
Proof.
elim: Ks => [|K [|K' Ks] IHKs] // /andP[/andP[/andP[slopes at_nodes] pairs] rest] [|h] lt_h.
  by split=> // k k_in; have /allP/(_ k k_in) := at_nodes.
exact: IHKs rest h lt_h.
Qed.

Lemma last_function (Ks : seq certified.kinks) : List.last Ks nil = nth nil Ks (size Ks).-1.
Proof. by elim: Ks => [|K [|K' Ks] IHKs]. Qed.

Section Sound.
Variables (R : realFieldType) (range : N) (t : certificate).
Add Field field_of_certificates : (operations_are_a_field R).
Hypothesis accepted : certificate_accepted range t.
Notation value := (value R).
Notation quotient := (quotient R).

(* The word that a query at distance d is compared with. *)
Definition certified_word (d : nat) : nat := nth (last 0%num (entries t)) (entries t) d.

Definition hits_paid : nat := (size (functions t)).-1.

Let K h : seq (R * R) := kinks_of R (node_unit t) (slope_unit t) (nth nil (functions t) h).
Let p : nat -> R := word_probability R range certified_word.
Let c : R := value (factor t) / value (node_unit t).

Lemma certificate_parts :
  [/\ check_shape range t, check_factor t, check_start t, check_loss t
    & check_functions range (slope_unit t) (entries t) (functions t)].
Proof. by move: accepted => /andP[/andP[/andP[/andP[? ?] ?] ?] ?]. Qed.

Lemma shape_parts :
  [/\ all (inside range) (entries t), inside range (head 0%num (entries t)), (1 <=? range)%num,
      (1 <=? node_unit t)%num && (1 <=? slope_unit t)%num
    & (1 <=? (budget_epsilon t).2)%num && (1 <=? (budget_delta t).2)%num
      && all starts_at_0 (functions t)].
Proof.
case: certificate_parts => /andP[/andP[/andP[/andP[/andP[/andP[/andP[a b] d] e] f] g] h] i] _ _ _ _.
by split; rewrite ?e ?f ?g ?h ?i.
Qed.

Let unit_ge1 : (1 <=? node_unit t)%num. Proof. by case: shape_parts => _ _ _ /andP[]. Qed.
Let slope_ge1 : (1 <=? slope_unit t)%num. Proof. by case: shape_parts => _ _ _ /andP[]. Qed.
Let range_ge1 : (1 <=? range)%num. Proof. by case: shape_parts. Qed.
Let u_gt0 : 0 < value (node_unit t). Proof. exact: value_gt0. Qed.
Let s_gt0 : 0 < value (slope_unit t). Proof. exact: value_gt0. Qed.
Let us_gt0 : 0 < value (node_unit t) * value (slope_unit t). Proof. exact: mulr_gt0. Qed.

Lemma certified_entry_inside d : inside range (nth (last 0%num (entries t)) (entries t) d).
Proof.
case: shape_parts => /allP all_inside first _ _ _; have [lt_d|le_d] := ltnP d (size (entries t)).
  exact/all_inside/mem_nth.
rewrite nth_default //; case: (entries t) all_inside first => //= P ws all_inside _.
exact/all_inside/mem_last.
Qed.

Lemma functions_some : (0 < size (functions t))%N.
Proof.
case: certificate_parts => _ _ /andP[] + _ _ _; case: (functions t) => //= /(value_le R).
by rewrite value0 leNgt s_gt0.
Qed.

Lemma next_parts h : (h < hits_paid)%N ->
  [/\ (certified.end_slope (nth nil (functions t) h)
         <=? certified.end_slope (nth nil (functions t) h.+1))%num,
      {in nth nil (functions t) h.+1, forall k, check_node range (slope_unit t)
         (head 0%num (entries t)) (nth nil (functions t) h) (nth nil (functions t) h.+1) k.1}
    & check_pairs range (nth nil (functions t) h) (nth nil (functions t) h.+1) (entries t)].
Proof.
move=> lt_h; case: certificate_parts => _ _ _ _ /check_functions_sound; apply.
by rewrite -(prednK functions_some) ltnS.
Qed.

Lemma first_entry : p 0%N = value (head 0%num (entries t)) / value range.
Proof. by rewrite /p /word_probability /certified_word; case: (entries t). Qed.

Lemma far_entries_same d : (size (entries t) <= d.+1)%N -> p d = p d.+1.
Proof.
rewrite /p /word_probability /certified_word => le_d; rewrite [in RHS]nth_default //.
congr (_%:R / _); move: le_d; rewrite leq_eqVlt => /orP[/eqP size_eq|le_d]; last by rewrite nth_default.
by rewrite -[d]/d.+1.-1 -size_eq nth_last; case: (entries t).
Qed.

Lemma accepted_nodes_hold : nodes_hold c p hits_paid K.
Proof.
have W_gt0 : 0 < value range := value_gt0 R range_ge1; have W0 := lt0r_neq0 W_gt0.
have u0 := lt0r_neq0 u_gt0; have s0 := lt0r_neq0 s_gt0.
have starts h : (h <= hits_paid)%N -> starts_at_0 (nth nil (functions t) h).
  case: shape_parts => _ _ _ _ /andP[_ /allP all_start] le_h; apply: all_start.
  by rewrite mem_nth // -(prednK functions_some) ltnS.
have [_ _ + _ _] := certificate_parts; rewrite /check_start.
have -> : List.hd nil (functions t) = nth nil (functions t) 0 by case: (functions t).
case/andP=> slope0 /allP start0; split.
- by rewrite divr_ge0 ?value_ge0.
- by move=> d; exact: (inside_lt R range_ge1 (certified_entry_inside d)).
- by move=> h /starts/(starts_at_0_sound R (slope_unit t) unit_ge1)[].
- by move=> h /starts/(starts_at_0_sound R (slope_unit t) unit_ge1)[].
- by move=> h _; exact: kinks_convex.
- apply: node_of => k k_in; have := value_le R (start0 k k_in).
  rewrite valueD !valueM (piecewise_value _ unit_ge1 slope_ge1) => le_k.
  rewrite ler_subl_addr -(ler_pmul2l us_gt0) mulrDr; apply: le_trans (le_trans _ le_k) _.
    by rewrite over_unit.
  by rewrite /c over_unit.
- have := value_le R slope0; rewrite (value_end_slope _ (node_unit t) slope_ge1).
  by rewrite -{1}[value (slope_unit t)]mulr1 ler_pmul2l.
- move=> h /next_parts[/(value_le R) + _ _].
  by rewrite !(value_end_slope _ (node_unit t) slope_ge1) ler_pmul2l.
- move=> h x lt_h; move: x; apply: node_of => k k_in; case: (next_parts lt_h) => _ at_nodes _.
  have /andP[/(value_le R) + _] := at_nodes k k_in.
  by rewrite !(piecewise_value _ unit_ge1 slope_ge1) ler_pmul2l.
- move=> h x lt_h; move: x; apply: node_of => k k_in; case: (next_parts lt_h) => _ at_nodes _.
  have /andP[_ /(value_le R)] := at_nodes k k_in; have [_ first _ _ _] := shape_parts.
  rewrite valueD !valueM value_complement // !(piecewise_value _ unit_ge1 slope_ge1) first_entry.
  rewrite -(ler_pmul2l (mulr_gt0 W_gt0 us_gt0)) => le_k; apply: le_trans (le_trans _ le_k) _.
    rewrite mulrDr mulrACA [X in X * _ + _]mulrC divfK //.
    rewrite ler_add2l mulrACA over_unit //.
    suff -> : value range * (1 - value (head 0%num (entries t)) / value range)
        = value range - value (head 0%num (entries t)) by [].
    by rewrite mulrBr mulr1 mulrCA divff // mulr1.
  by rewrite mulrA.
move=> h x d lt_h; move: x; apply: node_of => k k_in differ.
have lt_d : (d.+1 < size (entries t))%N.
  by rewrite ltnNge; apply: contra differ => /far_entries_same ->.
case: (next_parts lt_h) => _ _ /check_pairs_sound/(_ d k lt_d k_in).
rewrite !(set_nth_default (last 0%num (entries t)) 0%num) // 1?ltnW // => -[forth back].
have word_inside e := certified_entry_inside e.
split; first exact: (@check_hit_sound R _ _ unit_ge1 slope_ge1 _ _ _ _ _ _ range_ge1 (word_inside d) (word_inside d.+1) forth).
exact: (@check_hit_sound R _ _ unit_ge1 slope_ge1 _ _ _ _ _ _ range_ge1 (word_inside d.+1) (word_inside d) back).
Qed.

Lemma accepted_loss : piecewise (K hits_paid) 1 <= quotient (budget_delta t).
Proof.
case: certificate_parts => _ _ _ /(value_le R) + _.
rewrite last_function !valueM (piecewise_value _ unit_ge1 slope_ge1) divff ?lt0r_neq0 // => loss.
have d_gt0 : 0 < value (budget_delta t).2.
  by apply: value_gt0; case: shape_parts => _ _ _ _ /andP[/andP[]].
rewrite ler_pdivl_mulr // -(ler_pmul2l us_gt0); apply: le_trans (le_trans _ loss) _.
  by apply: equal_is_below; rewrite /K /hits_paid; real_ring.
by apply: equal_is_below; real_ring.
Qed.

Theorem accepted_certificate_is_private (Row Query : Type) (n k l : nat)
    (E : ensemble Row Query n k l) (S S' : 'I_n -> Row) queries
    (f : adversary Query _) (O : event _) :
  one_record_replaced S S' ->
  release_law R range certified_word E S queries hits_paid f O
    <= exponential_sum (quotient (budget_epsilon t)) (factor_terms t)
         * release_law R range certified_word E S' queries hits_paid f O
       + quotient (budget_delta t).
Proof.
move=> near; have range_gt0 : (0 < range)%N := nat_le range_ge1.
have holds := accepted_nodes_hold.
have word_le d : (certified_word d <= range)%N.
  have /andP[_] := piecewise.inside holds d; rewrite ltr_pdivr_mulr ?ltr0n // mul1r ltr_nat.
  exact: ltnW.
rewrite /release_law -!law_is_share //.
apply: le_trans (theorem_C (nodes_are_enough holds) (neighbouring_sides E near) queries f O) _.
apply: ler_add accepted_loss; apply: ler_wpmul2r.
  by rewrite law_is_share // divr_ge0 ?exprn_ge0 ?ler0n.
apply: (@exponential_sum_ge R (factor t, node_unit t)) => //.
  by case: shape_parts => _ _ _ _ /andP[/andP[]].
by case: certificate_parts => _ + _ _ _; rewrite /check_factor nat_of_N.
Qed.

End Sound.

(* The same of the checker as it runs, on words of 64 bits. *)
Definition certificate_is_private (R : realFieldType) (t : certificate)
    (accepted : check_certificate t) :=
  accepted_certificate_is_private R accepted.

Print Assumptions certificate_is_private.
