(* What check_shared_table accepts is private, draws of its account included.   *)
(*                                                                              *)
(*   votes_of S     the side of a data set S: a query names the ensemble that   *)
(*                  votes on it, which may depend on every draw before          *)
(*                                                                              *)
(* shared_table_is_private                                                      *)
(*                  if the checker accepts a table, a moment and a delta, then  *)
(*                  for every two data sets that differ in one record, and      *)
(*                  every strategy (account.v) of at most the table's cutoff in *)
(*                  hits, whose draws have moments that multiply to that moment *)
(*                  at most, what is sent out is within that delta              *)
From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import NArith Ring Field.
From Conclave Require Import field_tactics order conversion votes game words moment theorem_a.
From Conclave Require Import account release checker checker_sound.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Votes.
Variables (Row Query : Type) (n k l : nat).
Implicit Types (S : 'I_n -> Row).

Definition asked : Type := ensemble Row Query n k l * Query.

Definition votes_of S : side asked [eqType of 'I_l.+1] :=
  Side (fun x : asked => votes.distance (counts (vote x.1 S x.2)))
       (fun x : asked => votes.plurality (counts (vote x.1 S x.2))).

Lemma neighbouring_votes S S' : one_record_replaced S S' -> neighbours (votes_of S) (votes_of S').
Proof. by move=> near x; exact: (neighbouring_sides x.1 near x.2). Qed.

End Votes.

Section Sound.
Variables (R : realFieldType) (range unit_bits : N) (t : table) (shared total : fraction).
Variable a : renyi_order R.
Add Field field_of_R : (operations_are_a_field R).
Hypothesis accepted : check_account range unit_bits t shared total.
Hypothesis order_of_table : is_dyadic a (order t).1 (halvings t).
Notation value := (value R).
Notation quotient := (quotient R).

Lemma account_parts :
  [/\ (1 <=? shared.2)%num, (1 <=? total.2)%num, (shared.2 <=? shared.1)%num,
      check_promise t shared total & check range unit_bits t].
Proof.
move: accepted; rewrite /check_account /is_fraction.
by case: ifP => // /andP[/andP[/andP[-> ->] ->] ->].
Qed.

Lemma accepted_table : check range unit_bits t. Proof. by case: account_parts. Qed.

Lemma account_delta :
  quotient shared * delta_hits a (cutoff t) (quotient (checker.ratio t)) (quotient (growth t))
    + delta_release (word_probability R range (word_at t)) (cutoff t) <= quotient total.
Proof.
have [shared2_ge1 total2_ge1 shared_ge1 sum_le _] := account_parts.
have [shared2_gt0 total2_gt0] := (value_gt0 R shared2_ge1, value_gt0 R total2_ge1).
have h2_gt0 := hits_2 R accepted_table; have r2_gt0 := release_2 R accepted_table.
have shared_ge0 : 0 <= quotient shared by rewrite divr_ge0 ?value_ge0.
apply: le_trans (ler_add (ler_wpmul2l shared_ge0 (accepted_delta_hits accepted_table order_of_table))
  (accepted_delta_release R accepted_table)) _.
move: (value_le R sum_le); rewrite !(valueD, valueM) => le_sum.
have [s2 t2] := (lt0r_neq0 shared2_gt0, lt0r_neq0 total2_gt0).
have [h2 r2] := (lt0r_neq0 h2_gt0, lt0r_neq0 r2_gt0).
have limit_gt0 : 0 < value total.2 * (value shared.2 * value (hits_share t).2 * value (release_share t).2).
  by rewrite !mulr_gt0.
rewrite -(ler_pmul2r limit_gt0); apply: le_trans (le_trans _ le_sum) _.
  by apply: equal_is_below; rewrite /checker_sound.quotient; real_field.
by apply: equal_is_below; rewrite /checker_sound.quotient; real_field.
Qed.

Theorem accepted_account_is_private (Row Query : Type) (n k l : nat) (S S' : 'I_n -> Row)
    (g : strategy (asked Row Query n k l) [eqType of 'I_l.+1] R) :
  one_record_replaced S S' -> charged a (cutoff t) (quotient shared) g ->
  chance (word_probability R range (word_at t)) true (@votes_of _ Query _ k l S) g
    <= exponential_sum (quotient (epsilon t)) (growth_terms t)
         * chance (word_probability R range (word_at t)) false (@votes_of _ Query _ k l S') g
       + quotient total.
Proof.
move=> near charged_g; have holds := accepted_table_holds accepted_table order_of_table.
apply: le_trans (account_A holds (neighbouring_votes near) (growth_gt0 R accepted_table) charged_g) _.
rewrite -addrA; apply: ler_add account_delta; apply: ler_wpmul2r.
  exact: (chance_ge0 holds false _ charged_g).
apply: exponential_sum_ge; try by apply: (fraction_ge1 accepted_table); rewrite !inE eqxx ?orbT.
case: (accepted_parts accepted_table) => _ growth_ok _ _ _; move: growth_ok.
by rewrite /check_growth nat_of_N.
Qed.

End Sound.

(* The same of the checker as it runs, on words of 64 bits, in every real closed field. *)
Section OrderOfTable.
Variables (R : rcfType) (t : table) (shared total : fraction).
Hypothesis accepted : check_shared_table t shared total.

Let table_accepted : check_table t. Proof. exact: accepted_table accepted. Qed.

Definition order_of_shared : renyi_order R := order_of R table_accepted.

Definition shared_table_is_private :=
  accepted_account_is_private accepted (order_is_dyadic R table_accepted).

End OrderOfTable.

Print Assumptions shared_table_is_private.
