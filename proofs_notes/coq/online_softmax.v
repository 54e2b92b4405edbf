(* Softmax with a running maximum, and partial results merged in any bracketing, give the
   softmax average.  A state (m, s, o): largest logit, sum of weights, weighted sum of values.

   Main results
     online_softmax       the running form computes sum exp(x) v / sum exp(x)
     merge_repr           merging the states of two parts is the state of the whole
     repr_softmax         any state that represents a row gives its average
     denominator_range    1 <= s <= number of keys: nothing overflows, nothing vanishes      *)
From Coq Require Import Reals List Lra Psatz.
Import ListNotations.
Open Scope R_scope.

(* state: None = nothing seen (max = -inf); Some (m, l, o) *)
Definition state := option (R * R * R).
Definition step (st : state) (xv : R * R) : state :=
  let '(x, v) := xv in
  match st with
  | None => Some (x, 1, v)
  | Some (m, l, o) =>
      let m' := Rmax m x in
      Some (m', exp (m - m') * l + exp (x - m'), exp (m - m') * o + exp (x - m') * v)
  end.
(* merge of two partial results: blocks / split-K, any bracketing *)
Definition merge (a b : state) : state :=
  match a, b with
  | None, _ => b | _, None => a
  | Some (m1, l1, o1), Some (m2, l2, o2) =>
      let m := Rmax m1 m2 in
      Some (m, exp (m1 - m) * l1 + exp (m2 - m) * l2,
               exp (m1 - m) * o1 + exp (m2 - m) * o2)
  end.
Fixpoint den (l : list (R * R)) := match l with [] => 0 | (x, _) :: r => exp x + den r end.
Fixpoint num (l : list (R * R)) := match l with [] => 0 | (x, v) :: r => exp x * v + num r end.

(* what a state means *)
Definition repr (st : state) (l : list (R * R)) : Prop :=
  match st with
  | None => l = []
  | Some (m, s, o) =>
      (exists v, In (m, v) l) /\ (forall x v, In (x, v) l -> x <= m) /\
      s = exp (- m) * den l /\ o = exp (- m) * num l
  end.

Lemma den_app l r : den (l ++ r) = den l + den r.
Proof. induction l as [|[x v] l IH]; simpl; [ring | rewrite IH; ring]. Qed.
Lemma num_app l r : num (l ++ r) = num l + num r.
Proof. induction l as [|[x v] l IH]; simpl; [ring | rewrite IH; ring]. Qed.
Lemma resc m m' a : exp (m - m') * (exp (- m) * a) = exp (- m') * a.
Proof. rewrite <- Rmult_assoc, <- exp_plus; do 2 f_equal; ring. Qed.

Lemma step_merge st x v : step st (x, v) = merge st (Some (x, 1, v)).
Proof. destruct st as [[[m l] o]|]; simpl; [|reflexivity]; repeat f_equal; ring. Qed.

Theorem merge_repr a b la lb : repr a la -> repr b lb -> repr (merge a b) (la ++ lb).
Proof.
destruct a as [[[m1 l1] o1]|]; destruct b as [[[m2 l2] o2]|]; simpl.
- intros ((v1 & I1) & B1 & -> & ->) ((v2 & I2) & B2 & -> & ->).
  rewrite !resc, den_app, num_app; repeat split; try ring.
  + destruct (Rle_or_lt m1 m2) as [H|H].
    * exists v2; rewrite Rmax_right by lra; apply in_or_app; auto.
    * exists v1; rewrite Rmax_left by lra; apply in_or_app; auto.
  + intros x v H; apply in_app_or in H; destruct H as [H|H].
    * apply Rle_trans with m1; [eauto | apply Rmax_l].
    * apply Rle_trans with m2; [eauto | apply Rmax_r].
- intros H ->; now rewrite app_nil_r.
- intros -> H; exact H.
- now intros -> ->.
Qed.

Lemma single_repr x v : repr (Some (x, 1, v)) [(x, v)].
Proof.
simpl; split; [exists v; auto|]; split.
- intros x' v' [H|[]]; injection H; intros; lra.
- assert (E : exp (- x) * exp x = 1) by (rewrite <- exp_plus, <- exp_0; f_equal; ring).
  split; [rewrite Rplus_0_r; lra|].
  rewrite Rplus_0_r, <- Rmult_assoc, E; ring.
Qed.

Theorem fold_repr l : repr (fold_left step l None) l.
Proof.
assert (H : forall l st p, repr st p -> repr (fold_left step l st) (p ++ l)).
{ clear l; induction l as [|[x v] l IH]; intros st p Hp; cbn [fold_left]; [now rewrite app_nil_r|].
  replace (p ++ (x, v) :: l) with ((p ++ [(x, v)]) ++ l) by (rewrite <- app_assoc; auto).
  apply IH; rewrite step_merge; apply merge_repr; [auto | apply single_repr]. }
exact (H l None [] eq_refl).
Qed.

Lemma den_pos l : l <> [] -> 0 < den l.
Proof.
destruct l as [|[x v] l]; [congruence|intros _]; simpl.
assert (H : 0 <= den l) by
  (induction l as [|[x' v'] l IH]; simpl; [lra | pose proof (exp_pos x'); lra]).
pose proof (exp_pos x); lra.
Qed.

(* any partial result that represents the row gives the softmax average *)
Theorem repr_softmax m s o l : repr (Some (m, s, o)) l -> o / s = num l / den l.
Proof.
simpl; intros ((v & I) & _ & -> & ->).
assert (D := den_pos l ltac:(intros ->; exact I)).
pose proof (exp_pos (- m)); field; split; lra.
Qed.

Theorem online_softmax l : l <> [] ->
  exists m s o, fold_left step l None = Some (m, s, o) /\ o / s = num l / den l.
Proof.
intros Hl; pose proof (fold_repr l) as H.
destruct (fold_left step l None) as [[[m s] o]|]; [|now simpl in H].
exists m, s, o; split; [reflexivity | exact (repr_softmax _ _ _ _ H)].
Qed.

(* no overflow and no vanishing denominator: 1 <= s <= length *)
Lemma den_le m l : (forall x v, In (x, v) l -> x <= m) ->
  exp (- m) * den l <= INR (length l).
Proof.
induction l as [|[x v] l IH]; intros B; [simpl; lra|].
change (length ((x, v) :: l)) with (S (length l)); rewrite S_INR; simpl den.
assert (exp (- m) * den l <= INR (length l)) by (apply IH; intros x' v' H'; apply (B x' v'); right; exact H').
assert (exp (- m) * exp x <= 1).
{ rewrite <- exp_plus, <- exp_0. destruct (B x v (or_introl eq_refl)) as [H'|H'].
  - left; apply exp_increasing; lra.
  - right; f_equal; lra. }
lra.
Qed.
Lemma den_in x v l : In (x, v) l -> exp x <= den l.
Proof.
induction l as [|[x' v'] l IH]; intros H; [destruct H|]; simpl.
assert (0 <= den l) by (destruct l; [simpl; lra | left; apply den_pos; discriminate]).
destruct H as [H|H].
- injection H; intros; subst; lra.
- pose proof (exp_pos x'); pose proof (IH H); lra.
Qed.
Theorem denominator_range m s o l : repr (Some (m, s, o)) l -> 1 <= s <= INR (length l).
Proof.
simpl; intros ((v & I) & B & -> & ->); split; [|apply den_le; exact B].
apply Rle_trans with (exp (- m) * exp m).
- rewrite <- exp_plus, <- exp_0; right; f_equal; ring.
- apply Rmult_le_compat_l; [left; apply exp_pos | eapply den_in; eauto].
Qed.

