(* The game of Theorem A, and the law of its transcripts.                       *)
(*                                                                              *)
(*   side          one data set as the test sees it: of each query the distance *)
(*                 to instability and the plurality label                       *)
(*   neighbours    two sides whose distances differ by at most 1, and are 0 on  *)
(*                 both wherever the pluralities differ                         *)
(*   transcript    what is sent out, oldest first: None is an unstable answer   *)
(*                 (a hit), Some l the label l                                  *)
(*   adversary     the next query, chosen by the transcript so far              *)
(*   event         any property of transcripts                                  *)
(*   law p s n T f O                                                            *)
(*                 the probability that n queries of f to the side s, halted at *)
(*                 the T-th hit, end in a transcript of O, where a query at     *)
(*                 distance d is a hit with probability p d                     *)
(*                                                                              *)
(* The adversary may go on for any number of queries, and its queries are of    *)
(* any type.  One that stops earlier asks on, and its events ignore the rest.   *)
(* The law is computed by recursion; words.v proves that it is the share of the *)
(* words that lead to O.                                                        *)
From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Game.
Variables (X : Type) (L : eqType).

Record side := Side { distance : X -> nat; plurality : X -> L }.

Definition agree (s s' : side) x := plurality s x == plurality s' x.

Definition neighbours (s s' : side) := forall x,
  [/\ (distance s x <= (distance s' x).+1)%N, (distance s' x <= (distance s x).+1)%N
    & ~~ agree s s' x -> distance s x = 0%N /\ distance s' x = 0%N].

Lemma neighbours_sym s s' : neighbours s s' -> neighbours s' s.
Proof.
by move=> near x; have [below above flip] := near x; split=> //; rewrite /agree eq_sym => /flip [].
Qed.

Definition outcome := option L.
Definition transcript := seq outcome.
Definition adversary := transcript -> X.
Definition event := pred transcript.

(* Of a function of the transcript, what is left of it after a first outcome. *)
Definition after (A : Type) (o : outcome) (f : transcript -> A) : transcript -> A :=
  fun t => f (o :: t).

Definition hit : outcome := None.
Definition released (s : side) (f : adversary) : outcome := Some (plurality s (f [::])).

Section Law.
Variables (R : realFieldType) (p : nat -> R).

Fixpoint law (s : side) (n T : nat) (f : adversary) (O : event) : R :=
  match n, T with
  | n'.+1, T'.+1 =>
      p (distance s (f [::])) * law s n' T' (after hit f) (after hit O)
      + (1 - p (distance s (f [::])))
        * law s n' T (after (released s f) f) (after (released s f) O)
  | _, _ => (O [::])%:R
  end.

Hypothesis p_probability : forall d, 0 <= p d <= 1.
Let p_ge0 d : 0 <= p d. Proof. by have /andP[] := p_probability d. Qed.
Let q_ge0 d : 0 <= 1 - p d. Proof. by rewrite subr_ge0; have /andP[] := p_probability d. Qed.

Lemma law_ge0 s n T f O : 0 <= law s n T f O.
Proof.
elim: n => [|n IHn] in T f O *; case: T => [|T] /=; rewrite ?ler0n //.
by rewrite addr_ge0 // mulr_ge0.
Qed.

Lemma law_total s n T f : law s n T f predT = 1.
Proof.
elim: n => [|n IHn] in T f *; case: T => [|T] //=.
by rewrite !IHn !mulr1 addrC subrK.
Qed.

Lemma law_ext s n T f O O' : O =1 O' -> law s n T f O = law s n T f O'.
Proof.
elim: n => [|n IHn] in T f O O' *; case: T => [|T] same /=; rewrite ?same //.
by congr (_ * _ + _ * _); apply: IHn => t; apply: same.
Qed.

Lemma law_split s n T f O G :
  law s n T f O = law s n T f (predI O G) + law s n T f (predD O G).
Proof.
elim: n => [|n IHn] in T f O G *; case: T => [|T] /=;
  try by case: (G [::]); rewrite ?andbF ?andbT /= ?addr0 ?add0r.
rewrite (IHn T _ _ (after hit G)) (IHn T.+1 _ _ (after (released s f) G)).
by rewrite !mulrDr addrACA.
Qed.

Lemma law_subset s n T f O O' : {subset O <= O'} -> law s n T f O <= law s n T f O'.
Proof.
move=> sub; rewrite (law_split _ _ _ _ O' O).
have -> : law s n T f (predI O' O) = law s n T f O.
  by apply: law_ext => t /=; apply/andb_idl => /sub.
by rewrite ler_addl law_ge0.
Qed.

End Law.
End Game.
