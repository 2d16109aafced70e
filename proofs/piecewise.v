(* Convex piecewise linear functions, and why nodes are enough.                 *)
(*                                                                              *)
(* A function is a list of kinks: pairs of a node x and the rise of the slope   *)
(* there.  Rises are not negative, so that it is convex.                        *)
(*   spread K z w        the sum of k * max(0, z - x w) over the kinks (x, k)   *)
(*   piecewise K z       spread K z 1                                           *)
(*   end_slope K         the slope beyond the last node                         *)
(*   spread_scaled       w * piecewise K (z / w) = spread K z w, without        *)
(*                       quotients on the right                                 *)
(*   convex_growing m g  g is convex, and rises by m u at most over a length u  *)
(*                                                                              *)
(* below_from_nodes      a convex g that rises no faster at the end than a      *)
(*                       piecewise linear function is below it wherever it is   *)
(*                       below it at the nodes: for between two nodes the one   *)
(*                       is below its chord and the other is its chord.         *)
(* hit_cost_convex       the left side of [pays_hits] is convex in z, and in    *)
(*                       the pair (p, q) too (hit_cost_between), so that the    *)
(*                       pairs that are paid for form a convex set.             *)
From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Ring Field.
From Conclave Require Import field_tactics game theorem_c.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Piecewise.
Variable R : realFieldType.
Add Field field_of_R : (operations_are_a_field R).
Implicit Types (a b t u v w x y z m : R) (K : seq (R * R)) (g : R -> R).

Definition above0 u : R := Num.max 0 u.

Lemma above0_ge0 u : 0 <= above0 u. Proof. by rewrite le_maxr lexx. Qed.
Lemma above0_ge u : u <= above0 u. Proof. by rewrite le_maxr lexx orbT. Qed.
Lemma above0_le u v : 0 <= v -> u <= v -> above0 u <= v.
Proof. by move=> v_ge0 le_uv; rewrite le_maxl v_ge0. Qed.

Lemma above0_pos u : 0 <= u -> above0 u = u.
Proof. by move=> u_ge0; apply/le_anti; rewrite above0_le // above0_ge. Qed.

Lemma above0_neg u : u <= 0 -> above0 u = 0.
Proof. by move=> u_le0; apply/le_anti; rewrite above0_le // above0_ge0. Qed.

Lemma above0_scaled w u : 0 <= w -> w * above0 u = above0 (w * u).
Proof.
move=> w_ge0; have [u_ge0|/ltW u_le0] := leP 0 u; first by rewrite !above0_pos // mulr_ge0.
by rewrite !above0_neg ?mulr0 // mulr_ge0_le0.
Qed.

Definition mix t u v : R := t * u + (1 - t) * v.

Lemma mix_le t u v u' v' : 0 <= t <= 1 -> u <= u' -> v <= v' -> mix t u v <= mix t u' v'.
Proof.
case/andP=> t_ge0 t_le1 le_u le_v.
by rewrite ler_add // ler_wpmul2l // subr_ge0.
Qed.

Lemma mix_ge0 t u v : 0 <= t <= 1 -> 0 <= u -> 0 <= v -> 0 <= mix t u v.
Proof. by move=> t01 u_ge0 v_ge0; have := mix_le t01 u_ge0 v_ge0; rewrite /mix !mulr0 addr0. Qed.

Lemma above0_convex t u v : 0 <= t <= 1 -> above0 (mix t u v) <= mix t (above0 u) (above0 v).
Proof. by move=> t01; rewrite above0_le ?mix_ge0 ?above0_ge0 // mix_le // above0_ge. Qed.

Lemma above0_linear t u v : 0 <= t <= 1 -> (0 <= u) && (0 <= v) || (u <= 0) && (v <= 0) ->
  above0 (mix t u v) = mix t (above0 u) (above0 v).
Proof.
move=> t01 /orP[] /andP[u_sign v_sign]; first by rewrite !above0_pos ?mix_ge0.
rewrite !above0_neg //; first by rewrite /mix !mulr0 addr0.
by have := mix_le t01 u_sign v_sign; rewrite /mix !mulr0 addr0.
Qed.

Definition spread K z w : R := \sum_(k <- K) k.2 * above0 (z - k.1 * w).
Definition piecewise K z : R := spread K z 1.
Definition end_slope K : R := \sum_(k <- K) k.2.
Definition convex K : bool := all (fun k => 0 <= k.2) K.
Definition nodes K : seq R := [seq k.1 | k <- K].

Lemma spread_scaled K z w : 0 < w -> w * piecewise K (z / w) = spread K z w.
Proof.
move=> w_gt0; rewrite /piecewise /spread mulr_sumr; apply: eq_bigr => k _.
have w_neq0 := lt0r_neq0 w_gt0.
have -> : z - k.1 * w = w * (z / w - k.1 * 1) by real_field.
by rewrite -(above0_scaled _ (ltW w_gt0)) mulrCA.
Qed.

Lemma piecewise_ge0 K z : convex K -> 0 <= piecewise K z.
Proof.
move=> /allP K_ge0; rewrite /piecewise /spread big_seq; apply: sumr_ge0 => k /K_ge0 k_ge0.
by rewrite mulr_ge0 ?above0_ge0.
Qed.

Lemma spread_convex K t z z' w w' : convex K -> 0 <= t <= 1 ->
  spread K (mix t z z') (mix t w w') <= mix t (spread K z w) (spread K z' w').
Proof.
move=> /allP K_ge0 t01; rewrite /mix /spread !mulr_sumr -big_split /=.
rewrite !big_seq; apply: ler_sum => k /K_ge0 k_ge0.
rewrite [t * (_ * above0 _)]mulrCA [(1 - t) * (_ * above0 _)]mulrCA -mulrDr ler_wpmul2l //.
apply: le_trans (above0_convex _ _ t01); apply: equal_is_below; congr above0.
by rewrite /mix; real_ring.
Qed.

Lemma spread_grows K z w u : convex K -> 0 <= u -> spread K (z + u) w <= spread K z w + end_slope K * u.
Proof.
move=> /allP K_ge0 u_ge0; rewrite /spread /end_slope mulr_suml -big_split /= !big_seq.
apply: ler_sum => k /K_ge0 k_ge0; rewrite -mulrDr ler_wpmul2l //.
by rewrite above0_le ?addr_ge0 ?above0_ge0 // addrAC ler_add2r above0_ge.
Qed.

Lemma piecewise_between K t a b : 0 <= t <= 1 -> (forall x, x \in nodes K -> x <= a /\ x <= b \/ a <= x /\ b <= x) ->
  piecewise K (mix t a b) = mix t (piecewise K a) (piecewise K b).
Proof.
move=> t01 apart; rewrite /mix /piecewise /spread !mulr_sumr -big_split /=.
rewrite !big_seq; apply: eq_bigr => k k_in; rewrite !mulr1.
rewrite [t * (_ * above0 _)]mulrCA [(1 - t) * (_ * above0 _)]mulrCA -mulrDr -/(mix t (above0 _) (above0 _)); congr (_ * _).
rewrite -above0_linear //; first by congr above0; rewrite /mix; real_ring.
have /apart[] : k.1 \in nodes K by apply: map_f.
  by case=> le_a le_b; rewrite !subr_ge0 le_a le_b.
by case=> le_a le_b; rewrite !subr_le0 le_a le_b orbT.
Qed.

Lemma piecewise_beyond K z u : (forall x, x \in nodes K -> x <= z) -> 0 <= u ->
  piecewise K (z + u) = piecewise K z + end_slope K * u.
Proof.
move=> before u_ge0; rewrite /piecewise /spread /end_slope mulr_suml -big_split /= !big_seq.
apply: eq_bigr => k k_in; rewrite -mulrDr !mulr1; congr (_ * _).
have le_z : 0 <= z - k.1 by rewrite subr_ge0 before // map_f.
by rewrite [z + u - _]addrAC !above0_pos ?(addr_ge0 le_z).
Qed.

Definition convex_growing m g : Prop :=
  (forall t a b, 0 <= t <= 1 -> g (mix t a b) <= mix t (g a) (g b))
  /\ (forall z u, 0 <= u -> g (z + u) <= g z + m * u).

(* The cell of z: two nodes with no node between them, or beyond them all. *)
Lemma cell_of x (xs : seq R) z : path <%R x xs -> x <= z ->
  (exists l, [/\ l \in x :: xs, l <= z & forall y, y \in x :: xs -> y <= l]) \/
  exists a b, [/\ a \in x :: xs, b \in x :: xs, a <= z, z < b
    & forall y, y \in x :: xs -> y <= a \/ b <= y].
Proof.
elim: xs x => [|y xs IHxs] x /=; first by move=> _ le_xz; left; exists x; split; rewrite ?inE // => y; rewrite inE => /eqP->.
case/andP=> lt_xy path_y le_xz; have [le_yz|lt_zy] := leP y z.
  case: (IHxs y path_y le_yz) => [[l [l_in le_lz le_l]]|[a [b [a_in b_in le_az lt_zb apart]]]].
    left; exists l; split=> //; first by rewrite inE l_in orbT.
    move=> v; rewrite inE => /orP[/eqP->|/le_l //].
    exact: le_trans (ltW lt_xy) (le_l _ (mem_head _ _)).
  right; exists a, b; split=> //; [by rewrite inE a_in orbT | by rewrite inE b_in orbT | move=> v].
  rewrite inE => /orP[/eqP->|/apart //]; left; apply: le_trans (ltW lt_xy) _.
  have [//|le_by] := apart y (mem_head _ _).
  by move: (le_lt_trans le_yz lt_zb); rewrite ltNge le_by.
right; exists x, y; split; rewrite ?inE ?eqxx ?orbT // => v.
rewrite inE => /orP[/eqP->|v_in]; [by left | right].
move: v_in; rewrite inE => /orP[/eqP-> //|v_in]; apply: ltW.
by move: path_y; rewrite lt_path_sortedE => /andP[/allP/(_ v v_in)].
Qed.

Theorem below_from_nodes K m g : path <%R 0 (behead (nodes K)) -> head 1 (nodes K) = 0 ->
    convex_growing m g -> m <= end_slope K ->
    (forall x, x \in nodes K -> g x <= piecewise K x) ->
  forall z, 0 <= z -> g z <= piecewise K z.
Proof.
move=> sorted first [g_convex g_grows] le_m below z z_ge0.
have nodes_eq : nodes K = 0 :: behead (nodes K).
  by move: first; case: (nodes K) => [/eqP|x xs /= ->]; rewrite ?oner_eq0.
have := cell_of sorted z_ge0; rewrite -nodes_eq => -[[l [l_in le_lz le_l]]|[a [b [a_in b_in le_az lt_zb apart]]]].
  have u_ge0 : 0 <= z - l by rewrite subr_ge0.
  have -> : z = l + (z - l) by real_ring.
  apply: le_trans (g_grows _ _ u_ge0) _; rewrite piecewise_beyond //.
  by rewrite ler_add ?below // ler_wpmul2r.
have width : 0 < b - a by rewrite subr_gt0 (le_lt_trans le_az).
set t := (b - z) / (b - a).
have t01 : 0 <= t <= 1.
  rewrite divr_ge0 ?(ltW width) ?subr_ge0 ?(ltW lt_zb) //=.
  by rewrite ler_pdivr_mulr // mul1r ler_add2l ler_opp2.
have -> : z = mix t a b by rewrite /mix /t; have := lt0r_neq0 width => w0; real_field.
apply: le_trans (g_convex _ _ _ t01) _; rewrite piecewise_between //.
  by rewrite mix_le // below.
have le_ab : a <= b by apply: ltW (le_lt_trans le_az lt_zb).
move=> x /apart[le_x|ge_x]; [left | right]; split=> //; [exact: le_trans le_ab | exact: le_trans ge_x].
Qed.

Lemma mix_same t w : mix t w w = w.
Proof. by rewrite /mix; real_ring. Qed.

Lemma spread_convex_growing K v w : convex K -> 0 <= v ->
  convex_growing (end_slope K * v) (fun z => spread K (z * v) w).
Proof.
move=> K_convex v_ge0; split=> [t a b t01|z u u_ge0].
  have -> : mix t a b * v = mix t (a * v) (b * v) by rewrite /mix; real_ring.
  by rewrite -{1}(mix_same t w) spread_convex.
by rewrite mulrDl -mulrA [v * u]mulrC spread_grows ?mulr_ge0.
Qed.

Lemma piecewise_convex_growing K : convex K -> convex_growing (end_slope K) (piecewise K).
Proof.
move=> K_convex; split=> [t a b t01|z u]; last exact: spread_grows.
by rewrite /piecewise -{1}(mix_same t 1) spread_convex.
Qed.

Lemma add_convex_growing m m' g g' : convex_growing m g -> convex_growing m' g' ->
  convex_growing (m + m') (fun z => g z + g' z).
Proof.
case=> g_convex g_grows [g'_convex g'_grows]; split=> [t a b t01|z u u_ge0].
  apply: le_trans (ler_add (g_convex _ _ _ t01) (g'_convex _ _ _ t01)) _.
  by apply: equal_is_below; rewrite /mix; real_ring.
apply: le_trans (ler_add (g_grows _ _ u_ge0) (g'_grows _ _ u_ge0)) _.
by apply: equal_is_below; real_ring.
Qed.

Lemma scale_convex_growing a m g : 0 <= a -> convex_growing m g ->
  convex_growing (a * m) (fun z => a * g z).
Proof.
move=> a_ge0 [g_convex g_grows]; split=> [t x y t01|z u u_ge0].
  apply: le_trans (ler_wpmul2l a_ge0 (g_convex _ _ _ t01)) _.
  by apply: equal_is_below; rewrite /mix; real_ring.
apply: le_trans (ler_wpmul2l a_ge0 (g_grows _ _ u_ge0)) _.
by apply: equal_is_below; real_ring.
Qed.

Lemma line_convex_growing m e : convex_growing m (fun z => m * z + e).
Proof. by split=> [t a b _|z u _]; apply: equal_is_below; rewrite /mix; real_ring. Qed.

(* The left side of [pays_hits], where K is V h and K' is V (h + 1). *)
Definition hit_cost K K' p q z : R := spread K (z * p) q + spread K' (z * (1 - p)) (1 - q).

Lemma hit_costE K K' p q z : 0 < q < 1 ->
  q * piecewise K (z * p / q) + (1 - q) * piecewise K' (z * (1 - p) / (1 - q))
    = hit_cost K K' p q z.
Proof. by case/andP=> q_gt0 q_lt1; rewrite !spread_scaled ?subr_gt0. Qed.

Lemma hit_cost_convex K K' p q : convex K -> convex K' -> 0 <= p <= 1 ->
  convex_growing (end_slope K * p + end_slope K' * (1 - p)) (hit_cost K K' p q).
Proof.
move=> K_convex K'_convex /andP[p_ge0 p_le1].
by apply: add_convex_growing; apply: spread_convex_growing; rewrite ?subr_ge0.
Qed.

(* Pairs that are paid for form a convex set. *)
Lemma hit_cost_between K K' t p q p' q' z : convex K -> convex K' -> 0 <= t <= 1 ->
  hit_cost K K' (mix t p p') (mix t q q') z
    <= mix t (hit_cost K K' p q z) (hit_cost K K' p' q' z).
Proof.
move=> K_convex K'_convex t01; rewrite /hit_cost.
have -> : z * mix t p p' = mix t (z * p) (z * p') by rewrite /mix; real_ring.
have -> : z * (1 - mix t p p') = mix t (z * (1 - p)) (z * (1 - p')) by rewrite /mix; real_ring.
have -> : 1 - mix t q q' = mix t (1 - q) (1 - q') by rewrite /mix; real_ring.
apply: le_trans (ler_add (spread_convex _ _ _ _ K_convex t01) (spread_convex _ _ _ _ K'_convex t01)) _.
by apply: equal_is_below; rewrite /mix; real_ring.
Qed.

(* Theorem C's hypotheses at the nodes, and at the end. *)
Record nodes_hold (c : R) (p : nat -> R) (T : nat) (K : nat -> seq (R * R)) : Prop := NodesHold {
  factor_ge0 : 0 <= c;
  inside : forall d, 0 < p d < 1;
  nodes_sorted : forall h, (h <= T)%N -> path <%R 0 (behead (nodes (K h)));
  nodes_first : forall h, (h <= T)%N -> head 1 (nodes (K h)) = 0;
  all_convex : forall h, (h <= T)%N -> convex (K h);
  start : forall x, x \in nodes (K 0%N) -> x - c <= piecewise (K 0%N) x;
  start_slope : 1 <= end_slope (K 0%N);
  slopes_rise : forall h, (h < T)%N -> end_slope (K h) <= end_slope (K h.+1);
  rises_at : forall h x, (h < T)%N -> x \in nodes (K h.+1) -> piecewise (K h) x <= piecewise (K h.+1) x;
  labels_at : forall h x, (h < T)%N -> x \in nodes (K h.+1) ->
    p 0%N * piecewise (K h) x + (1 - p 0%N) * x <= piecewise (K h.+1) x;
  hits_at : forall h x d, (h < T)%N -> x \in nodes (K h.+1) -> p d != p d.+1 ->
    hit_cost (K h) (K h.+1) (p d) (p d.+1) x <= piecewise (K h.+1) x
    /\ hit_cost (K h) (K h.+1) (p d.+1) (p d) x <= piecewise (K h.+1) x
}.

Theorem nodes_are_enough c p T (K : nat -> seq (R * R)) : nodes_hold c p T K ->
  certificate_holds c p T (fun h => piecewise (K h)).
Proof.
move=> holds.
have from_nodes h m g : (h <= T)%N -> convex_growing m g -> m <= end_slope (K h) ->
    (forall x, x \in nodes (K h) -> g x <= piecewise (K h) x) ->
    forall z, 0 <= z -> g z <= piecewise (K h) z.
  by move=> le_hT; apply: below_from_nodes; [exact: (nodes_sorted holds le_hT) | exact: (nodes_first holds le_hT)].
have convex_at h : (h <= T)%N -> convex (K h) := all_convex holds (h := h).
have slope_ge1 h : (h <= T)%N -> 1 <= end_slope (K h).
  elim: h => [_|h IHh lt_hT]; first exact: (start_slope holds).
  exact: (le_trans (IHh (ltnW lt_hT)) (slopes_rise holds lt_hT)).
have rises_all h z : (h < T)%N -> 0 <= z -> piecewise (K h) z <= piecewise (K h.+1) z.
  move=> lt_hT; apply: (from_nodes _ _ _ lt_hT (piecewise_convex_growing (convex_at _ (ltnW lt_hT)))).
    exact: (slopes_rise holds lt_hT).
  by move=> x; apply: (rises_at holds lt_hT).
split=> //; [exact: (factor_ge0 holds) | exact: (inside holds) | | | ].
- move=> z z_ge0; split; first by rewrite piecewise_ge0 ?convex_at.
  have := from_nodes 0%N _ _ (leq0n T) (line_convex_growing 1 (- c)) (start_slope holds) _ z z_ge0.
  by rewrite mul1r; apply=> x x_in; rewrite mul1r; exact: (start holds x_in).
- move=> h z lt_hT; have /andP[p_gt0 p_lt1] := inside holds 0%N.
  have line := line_convex_growing (1 - p 0%N) 0.
  have sum := add_convex_growing (scale_convex_growing (ltW p_gt0)
    (piecewise_convex_growing (convex_at _ (ltnW lt_hT)))) line.
  move=> z_ge0; have := from_nodes _ _ _ lt_hT sum _ _ z z_ge0; rewrite /= addr0; apply.
    rewrite -[X in _ <= X](mix_same (p 0%N)) /mix.
    apply: ler_add; first by rewrite ler_wpmul2l ?(ltW p_gt0) ?(slopes_rise holds).
    by rewrite ler_pemulr ?subr_ge0 ?(ltW p_lt1) ?slope_ge1.
  by move=> x x_in; rewrite addr0; exact: (labels_at holds lt_hT x_in).
move=> h z d lt_hT z_ge0.
have pays i j : (forall x, x \in nodes (K h.+1) ->
    hit_cost (K h) (K h.+1) (p i) (p j) x <= piecewise (K h.+1) x) ->
    pays_hit (fun h => piecewise (K h)) p h z i j.
  move=> below; rewrite /pays_hit hit_costE ?(inside holds) //.
  have /andP[/ltW p_ge0 /ltW p_le1] := inside holds i.
  have p01 : 0 <= p i <= 1 by rewrite p_ge0.
  apply: (from_nodes _ _ _ lt_hT (hit_cost_convex _ (convex_at _ (ltnW lt_hT)) (convex_at _ lt_hT) p01)) => //.
  rewrite -[X in _ <= X](mix_same (p i)) /mix [p i * _]mulrC [(1 - p i) * _]mulrC ler_add2r.
  by rewrite ler_wpmul2r // (slopes_rise holds).
have [same|differ] := eqVneq (p d) (p d.+1); last first.
  by split; apply: pays => x x_in; have [] := hits_at holds lt_hT x_in differ.
have equal i j : p i = p j -> pays_hit (fun h => piecewise (K h)) p h z i j.
  by move=> pij; apply: (same_entries_pay (inside holds j) pij (rises_all _ _ lt_hT z_ge0)).
by split; apply: equal.
Qed.

End Piecewise.

Print Assumptions nodes_are_enough.
