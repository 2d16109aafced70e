(* The checker of certificates once more, by sweeps: what certified.v decides,  *)
(* in a time that grows with the number of nodes and not with its square.       *)
(*                                                                              *)
(*   cells K            behind each node: the sum of rises, and that of rises   *)
(*                      times nodes, so that spread K z w = s z - b w there     *)
(*   spreads C w zs     spread K z w at each of zs, which rise, by one pass     *)
(*                      over zs and the cells C of K                            *)
(*   sweep_certificate  whether a certificate is accepted                       *)
(*                                                                              *)
(* spreads_all          spreads is spread at each place                         *)
(* sweep_is_check       sweep_certificate t = check_certificate t               *)
From Coq Require Import NArith Bool List Lia.
From Conclave Require Import checker certified.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Local Open Scope N_scope.

Record cell : Set := Cell { from : N; slope : N; shift : N }.

Fixpoint cells_from (s b : N) (K : kinks) : list cell :=
  match K with
  | (x, k) :: rest => let s' := s + k in let b' := b + k * x in Cell x s' b' :: cells_from s' b' rest
  | nil => nil
  end.

Definition cells : kinks -> list cell := cells_from 0 0.

(* The cell that z / w lies in, from one before it; and the cells behind it. *)
Fixpoint advance (z w : N) (here : cell) (ahead : list cell) : cell * list cell :=
  match ahead with
  | next :: ahead' => if from next * w <=? z then advance z w next ahead' else (here, ahead)
  | nil => (here, nil)
  end.

Fixpoint spreads_from (w : N) (zs : list N) (here : cell) (ahead : list cell) : list N :=
  match zs with
  | z :: zs' =>
      let (here', ahead') := advance z w here ahead in
      slope here' * z - shift here' * w :: spreads_from w zs' here' ahead'
  | nil => nil
  end.

Definition spreads (C : list cell) (w : N) (zs : list N) : list N := spreads_from w zs (Cell 0 0 0) C.

Section Sweeps.
Variable range : N.

(* Whether a + b <= v at each place. *)
Fixpoint sums_below (l m vs : list N) : bool :=
  match l, m, vs with
  | a :: l', b :: m', v :: vs' => if a + b <=? v then sums_below l' m' vs' else false
  | _, _, _ => true
  end.

Definition sweep_order (C C' : list cell) (xs vs : list N) (P Q : N) : bool :=
  sums_below (spreads C Q (map (fun x => x * P) xs))
    (spreads C' (range - Q) (map (fun x => x * (range - P)) xs)) vs.

Fixpoint sweep_pairs (C C' : list cell) (xs vs words : list N) : bool :=
  match words with
  | P :: ((Q :: _) as rest) =>
      if sweep_order C C' xs vs P Q then
        if sweep_order C C' xs vs Q P then sweep_pairs C C' xs vs rest else false
      else false
  | _ => true
  end.

Fixpoint sweep_nodes (unit first : N) (xs before after : list N) : bool :=
  match xs, before, after with
  | x :: xs', b :: before', a :: after' =>
      if (b <=? a) && (first * b + (range - first) * (unit * x) <=? range * a)
      then sweep_nodes unit first xs' before' after' else false
  | _, _, _ => true
  end.

Fixpoint sweep_functions (unit : N) (words : list N) (Ks : list kinks) : bool :=
  match Ks with
  | K :: ((K' :: _) as rest) =>
      let C := cells K in
      let C' := cells K' in
      let xs := map fst K' in
      let values := spreads C' 1 xs in
      if (end_slope K <=? end_slope K')
         && sweep_nodes unit (hd 0 words) xs (spreads C 1 xs) values
      then
        if sweep_pairs C C' xs (map (N.mul range) values) words
        then sweep_functions unit words rest else false
      else false
  | _ => true
  end.

Fixpoint above_line (unit factor : N) (xs values : list N) : bool :=
  match xs, values with
  | x :: xs', v :: values' => if unit * x <=? v + unit * factor then above_line unit factor xs' values' else false
  | _, _ => true
  end.

Definition sweep_start (t : certificate) : bool :=
  let K := hd nil (functions t) in
  (slope_unit t <=? end_slope K)
  && above_line (slope_unit t) (factor t) (map fst K) (spreads (cells K) 1 (map fst K)).

Definition sweep_accepted (t : certificate) : bool :=
  if check_shape range t then
    if check_factor t && sweep_start t && check_loss t
    then sweep_functions (slope_unit t) (entries t) (functions t) else false
  else false.

End Sweeps.

Definition sweep_certificate : certificate -> bool := sweep_accepted word_range.

(* Places that rise. *)
Fixpoint climbing (z : N) (zs : list N) : Prop :=
  match zs with
  | z' :: zs' => z <= z' /\ climbing z' zs'
  | nil => True
  end.

Fixpoint behind (x : N) (K : kinks) : Prop :=
  match K with
  | (y, _) :: rest => x <= y /\ behind y rest
  | nil => True
  end.

Lemma rising_behind x K : rising x K = true -> behind x K.
Proof.
revert x; induction K as [|[y k] K IHK]; intros x; cbn; [easy|].
intros [le_xy rest]%andb_true_iff; apply N.leb_le in le_xy; split; [lia | now apply IHK].
Qed.

Lemma behind_less x y K : x <= y -> behind y K -> behind x K.
Proof. destruct K as [|[a k] K]; cbn; intuition lia. Qed.

(* Nodes to the right of z / w add nothing. *)
Lemma spread_right K z w x : behind x K -> z < x * w -> spread K z w = 0.
Proof.
revert x; induction K as [|[y k] K IHK]; intros x; cbn; [easy|].
intros [le_xy after] lt_z; assert (x * w <= y * w) by nia.
rewrite (IHK y) by (easy || lia); replace (z - y * w) with 0 by lia; lia.
Qed.

Lemma advance_spread z w K here :
  behind (from here) K -> from here * w <= z -> shift here * w <= slope here * z ->
  let '(here', ahead) := advance z w here (cells_from (slope here) (shift here) K) in
  exists K', ahead = cells_from (slope here') (shift here') K'
    /\ behind (from here') K'
    /\ from here' * w <= z /\ shift here' * w <= slope here' * z
    /\ (forall z', z <= z' ->
          slope here * z' - shift here * w + spread K z' w
            = slope here' * z' - shift here' * w + spread K' z' w)
    /\ spread K' z w = 0.
Proof.
revert here; induction K as [|[x k] K IHK]; intros here after le_here le_shift; cbn.
  exists nil; cbn; repeat split; auto.
destruct after as [le_x after]; destruct (N.leb_spec (x * w) z) as [le_z|lt_z].
  specialize (IHK (Cell x (slope here + k) (shift here + k * x)) after le_z); cbn in IHK.
  assert (more : (shift here + k * x) * w <= (slope here + k) * z).
    replace ((shift here + k * x) * w) with (shift here * w + k * (x * w)) by ring.
    assert (k * (x * w) <= k * z) by nia; nia.
  specialize (IHK more); destruct advance as [here' ahead].
  destruct IHK as (K' & -> & after' & le_here' & le_shift' & same & nothing).
  exists K'; repeat split; auto; intros z' le_z'; rewrite <- same by easy.
  replace ((shift here + k * x) * w) with (shift here * w + k * (x * w)) by ring.
  replace ((slope here + k) * z') with (slope here * z' + k * z') by ring.
  rewrite N.mul_sub_distr_l.
  assert (slope here * z <= slope here * z') by nia.
  assert (k * (x * w) <= k * z') by nia; lia.
exists ((x, k) :: K); repeat split; auto; cbn.
rewrite (@spread_right K z w x) by easy; replace (z - x * w) with 0 by lia; lia.
Qed.

Lemma spreads_from_all w K z0 zs here : climbing z0 zs -> behind (from here) K ->
  from here * w <= z0 -> shift here * w <= slope here * z0 ->
  spreads_from w zs here (cells_from (slope here) (shift here) K)
    = map (fun z => slope here * z - shift here * w + spread K z w) zs.
Proof.
revert z0 K here; induction zs as [|z zs IHzs]; intros z0 K here; [easy|].
intros [le_z up] after le_here le_shift; cbn [spreads_from map].
assert (shift here * w <= slope here * z) by nia.
assert (moved := @advance_spread z w K here after ltac:(lia) ltac:(lia)).
destruct advance as [here' ahead]; destruct moved as (K' & -> & after' & le_here' & le_shift' & same & nothing).
rewrite same, nothing, N.add_0_r by lia; f_equal.
rewrite (IHzs z K' here' up after' le_here' le_shift').
assert (all_up : forall z', In z' zs -> z <= z').
  clear - up; revert z up; induction zs as [|a zs IHzs]; intros z up z' z'_in; [easy|].
  destruct up as [le_a up]; destruct z'_in as [<-|z'_in]; [easy|].
  specialize (IHzs a up z' z'_in); lia.
apply map_ext_in; intros z' z'_in; symmetry; apply same; now apply all_up.
Qed.

Theorem spreads_all K w zs : behind 0 K -> climbing 0 zs ->
  spreads (cells K) w zs = map (fun z => spread K z w) zs.
Proof.
intros after up; apply (@spreads_from_all w K 0 zs (Cell 0 0 0)); cbn; auto; lia.
Qed.

Lemma starts_behind K : starts_at_0 K = true -> behind 0 K.
Proof.
destruct K as [|[[|x] k] K]; cbn; try easy; intros rises; split; [lia | now apply rising_behind].
Qed.

Lemma behind_climbing x K a : behind x K -> climbing (x * a) (map (fun y => y * a) (map fst K)).
Proof.
revert x; induction K as [|[y k] K IHK]; intros x; cbn; [easy|].
intros [le_xy after]; split; [nia | now apply IHK].
Qed.

Section Same.
Variable range : N.

Lemma nodes_climbing K : starts_at_0 K = true -> climbing 0 (map fst K).
Proof.
intros starts; replace (map fst K) with (map (fun y => y * 1) (map fst K)).
  exact (@behind_climbing 0 K 1 (starts_behind starts)).
induction (map fst K) as [|y ys IHys]; cbn; [easy|]; now rewrite IHys, N.mul_1_r.
Qed.

Lemma sums_below_map (f g v : N -> N) xs :
  sums_below (map f xs) (map g xs) (map v xs) = forallb (fun x => f x + g x <=? v x) xs.
Proof. induction xs as [|x xs IHxs]; cbn; [easy|]; rewrite <- IHxs; now destruct (_ <=? _). Qed.

Lemma forallb_fst (f : N -> bool) (K : kinks) :
  forallb (fun kink => f (fst kink)) K = forallb f (map fst K).
Proof. induction K as [|k K IHK]; cbn; [easy|]; now rewrite IHK. Qed.

Lemma values_all K K' : behind 0 K -> starts_at_0 K' = true ->
  spreads (cells K) 1 (map fst K') = map (fun x => spread K x 1) (map fst K').
Proof. intros after starts; apply spreads_all; [easy | now apply nodes_climbing]. Qed.

Lemma sweep_order_same K K' P Q : behind 0 K -> starts_at_0 K' = true ->
  sweep_order range (cells K) (cells K') (map fst K')
      (map (N.mul range) (spreads (cells K') 1 (map fst K'))) P Q
    = forallb (fun kink => check_hit range K K' P Q (fst kink)) K'.
Proof.
intros after starts; pose proof (starts_behind starts) as after'; unfold sweep_order.
rewrite (values_all after' starts), (forallb_fst (check_hit range K K' P Q)).
rewrite !spreads_all by (easy || now apply (@behind_climbing 0)).
generalize (map fst K') as xs; intros xs; rewrite !map_map.
exact (sums_below_map (fun x => spread K (x * P) Q)
  (fun x => spread K' (x * (range - P)) (range - Q)) (fun x => range * spread K' x 1) xs).
Qed.

Lemma forallb_and (f g : N * N -> bool) (K : kinks) :
  forallb (fun kink => f kink && g kink) K = forallb f K && forallb g K.
Proof.
induction K as [|k K IHK]; cbn; [easy|]; rewrite IHK.
destruct (f k), (g k), (forallb f K), (forallb g K); easy.
Qed.

Lemma sweep_pairs_same K K' ws : behind 0 K -> starts_at_0 K' = true ->
  sweep_pairs range (cells K) (cells K') (map fst K')
      (map (N.mul range) (spreads (cells K') 1 (map fst K'))) ws
    = check_pairs range K K' ws.
Proof.
intros after starts; induction ws as [|P [|Q ws] IHws]; try easy.
cbn [sweep_pairs check_pairs] in *; rewrite IHws, !sweep_order_same by easy.
rewrite (forallb_and (fun kink => check_hit range K K' P Q (fst kink))
  (fun kink => check_hit range K K' Q P (fst kink))); now destruct (forallb _ K').
Qed.

Lemma sweep_nodes_same unit first (f g : N -> N) xs :
  sweep_nodes range unit first xs (map f xs) (map g xs)
    = forallb (fun x => (f x <=? g x)
        && (first * f x + (range - first) * (unit * x) <=? range * g x)) xs.
Proof. induction xs as [|x xs IHxs]; cbn; [easy|]; rewrite <- IHxs; now destruct (_ && _). Qed.

Lemma sweep_functions_same unit ws Ks : forallb starts_at_0 Ks = true ->
  sweep_functions range unit ws Ks = check_functions range unit ws Ks.
Proof.
induction Ks as [|K [|K' Ks] IHKs]; try easy; intros [start starts]%andb_true_iff.
pose proof starts as [start' _]%andb_true_iff.
pose proof (starts_behind start) as after; pose proof (starts_behind start') as after'.
specialize (IHKs starts); cbn [sweep_functions check_functions] in *.
rewrite IHKs, (sweep_pairs_same _ after start').
rewrite (values_all after start'), (values_all after' start'), sweep_nodes_same.
rewrite (forallb_fst (check_node range unit (hd 0 ws) K K')); now destruct (_ && forallb _ _).
Qed.

Lemma above_line_same unit factor (f : N -> N) xs :
  above_line unit factor xs (map f xs) = forallb (fun x => unit * x <=? f x + unit * factor) xs.
Proof. induction xs as [|x xs IHxs]; cbn; [easy|]; rewrite <- IHxs; now destruct (_ <=? _). Qed.

Lemma sweep_start_same t : forallb starts_at_0 (functions t) = true ->
  sweep_start t = check_start t.
Proof.
unfold sweep_start, check_start; destruct (functions t) as [|K Ks]; cbn [hd]; [easy|].
intros [start _]%andb_true_iff; rewrite (values_all (starts_behind start) start), above_line_same.
symmetry; f_equal.
exact (forallb_fst (fun x => slope_unit t * x <=? spread K x 1 + slope_unit t * factor t) K).
Qed.

Theorem sweep_is_check t : sweep_accepted range t = certificate_accepted range t.
Proof.
unfold sweep_accepted, certificate_accepted; destruct (check_shape range t) eqn:shape; [|easy].
assert (starts : forallb starts_at_0 (functions t) = true).
  now unfold check_shape in shape; apply andb_true_iff in shape.
now rewrite (sweep_start_same starts), (sweep_functions_same _ _ starts).
Qed.

End Same.

Print Assumptions sweep_is_check.
