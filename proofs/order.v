(* Orders of a moment: the functions x ^ (a - 1) by which likelihood ratios are *)
(* weighed.                                                                     *)
(*                                                                              *)
(*   renyi_order  a number excess > 0, that is a - 1, and a function power,     *)
(*                standing for x ^ (a - 1): it turns products into products, is *)
(*                not negative, and x * power x lies above its tangent at 1.    *)
(*                The proofs of this folder use nothing else of it.             *)
(*   whole m      order m + 1, in every ordered field: power x is x ^+ m.       *)
(*   dyadic m k   order 1 + m / 2 ^ k, in every real closed field, that of real *)
(*                numbers among them: power x is the m-th power of the k-fold   *)
(*                square root of x.                                             *)
(*                                                                              *)
(* dyadic_le    y is above power x as soon as y ^ (2 ^ k) is above x ^ m        *)
From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Ring Field.
From Conclave Require Import field_tactics.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Record renyi_order (R : realFieldType) := Order {
  excess : R;
  power : R -> R;
  excess_gt0 : 0 < excess;
  power_ge0 : forall x, 0 <= x -> 0 <= power x;
  power1 : power 1 = 1;
  powerM : forall x y, 0 <= x -> 0 <= y -> power (x * y) = power x * power y;
  tangent : forall x, 0 <= x -> (1 + excess) * x - excess <= x * power x
}.

Section Tangent.
Variable R : realFieldType.
Add Field field_of_R : (operations_are_a_field R).
Implicit Types (w x : R).

Lemma power_gap_ge0 x i j : 0 <= x -> (i <= j)%N -> 0 <= (x - 1) * (x ^+ j - x ^+ i).
Proof.
move=> x_ge0 le_ij; have -> : x ^+ j - x ^+ i = x ^+ i * (x ^+ (j - i) - 1).
  by rewrite mulrBr mulr1 -exprD subnKC.
rewrite mulrCA mulr_ge0 ?exprn_ge0 // subrX1 mulrA -expr2 mulr_ge0 ?sqr_ge0 //.
by apply: sumr_ge0 => l _; rewrite exprn_ge0.
Qed.

(* The tangent of x ^ ((m + n) / n) at 1, where w = x ^ (1 / n). *)
Lemma tangent_of_root m n w : 0 <= w ->
  (m + n)%:R * w ^+ n - m%:R <= n%:R * w ^+ (m + n).
Proof.
move=> w_ge0; elim: m => [|m IHm]; first by rewrite add0n subr0.
have : 0 <= \sum_(i < n) (w - 1) * (w ^+ (m + n) - w ^+ i).
  by apply: sumr_ge0 => i _; apply: power_gap_ge0 => //; exact: leq_trans (ltnW (ltn_ord i)) (leq_addl m n).
rewrite -mulr_sumr sumrB sumr_const card_ord mulrBr -subrX1 -[_ *+ n]mulr_natl => gaps.
rewrite -subr_ge0; rewrite -subr_ge0 in IHm; apply: le_trans (addr_ge0 IHm gaps) _.
by apply: equal_is_below; rewrite addSn exprS !mulrS; real_ring.
Qed.

Lemma whole_tangent m x : 0 <= x -> (1 + m%:R) * x - m%:R <= x * x ^+ m.
Proof.
by move=> x_ge0; have := tangent_of_root m 1 x_ge0; rewrite addn1 expr1 mul1r mulrS -exprS.
Qed.

End Tangent.

Section Whole.
Variables (R : realFieldType) (m : nat).
Hypothesis m_gt0 : (0 < m)%N.

Let excess_gt0 : 0 < m%:R :> R. Proof. by rewrite ltr0n. Qed.
Let power1 : 1 ^+ m = 1 :> R. Proof. exact: expr1n. Qed.
Let powerM (x y : R) : 0 <= x -> 0 <= y -> (x * y) ^+ m = x ^+ m * y ^+ m.
Proof. by rewrite exprMn. Qed.

Definition whole : renyi_order R :=
  Order excess_gt0 (fun x => @exprn_ge0 R m x) power1 powerM (@whole_tangent R m).

End Whole.

Section Dyadic.
Variables (R : rcfType) (m k : nat).
Add Field field_of_R2 : (operations_are_a_field R).
Hypothesis m_gt0 : (0 < m)%N.
Implicit Types (x y : R).

Definition root x : R := iter k Num.sqrt x.

Lemma root_ge0 x : 0 <= x -> 0 <= root x.
Proof. by rewrite /root; case: k => // k' _; exact: sqrtr_ge0. Qed.

Lemma root1 : root 1 = 1.
Proof. by rewrite /root; elim: k => //= k' ->; exact: sqrtr1. Qed.

Lemma rootM x y : 0 <= x -> root (x * y) = root x * root y.
Proof.
move=> x_ge0; rewrite /root; elim: k => //= k' ->; rewrite sqrtrM //.
by case: k' => //= k'; exact: sqrtr_ge0.
Qed.

Lemma rootK x : 0 <= x -> root x ^+ (2 ^ k) = x.
Proof.
move=> x_ge0; rewrite /root; elim: k => //= k' IHk; rewrite expnS exprM sqr_sqrtr //.
by case: k' {IHk} => //= k'; exact: sqrtr_ge0.
Qed.

Let excess_gt0 : 0 < m%:R / (2 ^ k)%:R :> R.
Proof. by rewrite divr_gt0 ?ltr0n ?expn_gt0. Qed.

Let power_ge0 x : 0 <= x -> 0 <= root x ^+ m.
Proof. by move/root_ge0/exprn_ge0. Qed.

Let power1 : root 1 ^+ m = 1. Proof. by rewrite root1 expr1n. Qed.

Let powerM x y : 0 <= x -> 0 <= y -> root (x * y) ^+ m = root x ^+ m * root y ^+ m.
Proof. by move=> x_ge0 _; rewrite rootM ?exprMn. Qed.

Let tangent x : 0 <= x ->
  (1 + m%:R / (2 ^ k)%:R) * x - m%:R / (2 ^ k)%:R <= x * root x ^+ m.
Proof.
move=> x_ge0; have n_gt0 : 0 < (2 ^ k)%:R :> R by rewrite ltr0n expn_gt0.
have n_neq0 := lt0r_neq0 n_gt0; rewrite -(ler_pmul2l n_gt0).
have := tangent_of_root m (2 ^ k) (root_ge0 x_ge0).
rewrite addnC exprD rootK // natrD => le_tangent.
apply: le_trans (le_trans _ le_tangent) _; apply: equal_is_below; last by [].
by real_field.
Qed.

Definition dyadic : renyi_order R := Order excess_gt0 power_ge0 power1 powerM tangent.

Lemma dyadic_le x y : 0 <= x -> 0 <= y -> x ^+ m <= y ^+ (2 ^ k) -> power dyadic x <= y.
Proof.
move=> x_ge0 y_ge0; rewrite -{1}(rootK x_ge0) -exprM mulnC exprM.
by rewrite ler_pexpn2r ?nnegrE ?exprn_ge0 ?root_ge0 ?expn_gt0.
Qed.

End Dyadic.
