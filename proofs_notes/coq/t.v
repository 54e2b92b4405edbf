(* How many roundings touch a term in each form of the recurrence
       S_{t+1} = g_t S_t + b_t k_t v_t          (one entry i, j of the state; t counts from 0)
       y_t     = sum_i q_i S_{t+1, i}.
   The state after t steps is a sum of terms: the write of step s has age a = t - 1 - s, the
   initial state has age t.  [F n aw a0 t] is the sum of the absolute terms, a term of age a
   multiplied by rho^(n a): "a term of age a is rounded n a times".

   Main results (a: age, L: length of a block, D: length of the dot product with q)
     sequential_state_count         2a + 3
     sequential_output_count        2a + D + 3
     masked_attention_state_count   a + t + 2
     masked_attention_output_count  a + t + D + 2
     chunked_state_count            a + a/C + C + 3
     chunked_output_count           a + a/C + 2C + D + 2
     scan_state_count               a + depth + 3
     scan_output_count              a + depth + D + 3
     any_order_state_count          a + t + 3        any mixture of the above, any blocks
     any_order_output_count         a + t + D + 3
   Every sum and product may be taken in any order and tree (products of gates: neighbours
   only), with or without fused multiply-add.  A zero that a program does not add, or a one
   that it does not multiply by, is a rounding with no error: [near_refl].                 *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
Require Import counter_calculus.
Import ListNotations.
Open Scope R_scope.

Lemma Rabs_ge0_mult a b : 0 <= b -> 0 <= Rabs a * b.
Proof. intros; apply Rmult_le_pos; [apply Rabs_pos | assumption]. Qed.

(** * Exact quantities *)
Section Exact.
Variable g : nat -> R.
(* product of the gates s, s+1, ..., s+n-1 *)
Fixpoint G (s n : nat) : R := match n with O => 1 | S m => G s m * g (s + m) end.
Lemma G_split s m n : G s (m + n) = G s m * G (s + m) n.
Proof.
induction n as [|n IH]; [rewrite Nat.add_0_r; simpl; ring|].
rewrite Nat.add_succ_r; simpl; rewrite IH, Nat.add_assoc; ring.
Qed.
Lemma G_abs_split s m n : Rabs (G s (m + n)) = Rabs (G s m) * Rabs (G (s + m) n).
Proof. rewrite G_split; apply Rabs_mult. Qed.

(* largest product of a window that ends here; gates divided by its growth are at most 1 *)
Fixpoint phi (t : nat) : R := match t with O => 1 | S n => Rmax 1 (Rabs (g n) * phi n) end.
Lemma phi_ge1 t : 1 <= phi t.
Proof. destruct t; simpl; [lra | apply Rmax_l]. Qed.
Lemma phi_gate t : Rabs (g t) * phi t <= phi (S t).
Proof. simpl; apply Rmax_r. Qed.
Lemma phi_window t : exists s n, (s + n = t)%nat /\ phi t = Rabs (G s n).
Proof.
induction t as [|t (s & n & E & H)]; [exists 0%nat, 0%nat; simpl; rewrite Rabs_R1; auto|].
simpl; unfold Rmax; destruct (Rle_dec 1 (Rabs (g t) * phi t)).
- exists s, (S n); split; [lia|]; rewrite H; simpl; rewrite E, Rabs_mult; ring.
- exists (S t), 0%nat; split; [lia|]; simpl; now rewrite Rabs_R1.
Qed.
Lemma phi_le T Gam : (forall s n, (s + n <= T)%nat -> Rabs (G s n) <= Gam) ->
  forall t, (t <= T)%nat -> phi t <= Gam.
Proof. intros H t Ht; destruct (phi_window t) as (s & n & E & ->); apply H; lia. Qed.

(* contribution of the writes w_s .. w_{s+n-1} to the state after them *)
Fixpoint xl (w : nat -> R) (s n : nat) : R :=
  match n with O => 0 | S m => g (s + m) * xl w s m + w (s + m)%nat end.
Fixpoint state (w : nat -> R) (s0 : R) (t : nat) : R :=
  match t with O => s0 | S n => g n * state w s0 n + w n end.
Lemma xl_split w s m n : xl w s (m + n) = G (s + m) n * xl w s m + xl w (s + m) n.
Proof.
induction n as [|n IH]; [rewrite Nat.add_0_r; simpl; ring|].
rewrite Nat.add_succ_r; simpl; rewrite IH, Nat.add_assoc; ring.
Qed.
Lemma state_split w s0 s n : state w s0 (s + n) = G s n * state w s0 s + xl w s n.
Proof.
induction n as [|n IH]; [rewrite Nat.add_0_r; simpl; ring|].
rewrite Nat.add_succ_r; simpl; rewrite IH; ring.
Qed.
Lemma xl_sum w s n : xl w s n = sumn (fun j => G (S (s + j)) (n - 1 - j) * w (s + j)%nat) n.
Proof.
induction n as [|n IH]; [reflexivity|].
cbn [xl]; rewrite IH, <- sumn_scal; cbn [sumn].
replace (S n - 1 - n)%nat with 0%nat by lia; cbn [G].
rewrite Rmult_1_l; f_equal; apply sumn_ext; intros j J.
replace (S n - 1 - j)%nat with (S (n - 1 - j)) by lia; cbn [G].
replace (S (s + j) + (n - 1 - j))%nat with (s + n)%nat by lia; ring.
Qed.
Lemma xl_dot q (w : nat -> nat -> R) D s n :
  xl (fun r => sumn (fun i => q i * w i r) D) s n = sumn (fun i => q i * xl (w i) s n) D.
Proof.
induction n as [|n IH]; simpl.
- rewrite (sumn_ext _ (fun i => 0 * q i)) by (intros; ring); rewrite sumn_scal; ring.
- rewrite IH, <- sumn_scal, <- sumn_plus; apply sumn_ext; intros; ring.
Qed.

(** ** Majorants, with and without counts.  [A]: sum of absolute terms; [M]: weighted by age. *)
Fixpoint A (aw : nat -> R) (a0 : R) (t : nat) : R :=
  match t with O => a0 | S n => Rabs (g n) * A aw a0 n + aw n end.
Fixpoint M (aw : nat -> R) (a0 : R) (t : nat) : R :=
  match t with O => 0 | S n => Rabs (g n) * (M aw a0 n + A aw a0 n) end.
End Exact.

Section Counted.
Variables (g : nat -> R) (p : R).   (* p: the factor of one rounding *)
Hypothesis p_ge1 : 1 <= p.
Fixpoint loc (n : nat -> nat) (aw : nat -> R) (s L : nat) : R :=
  match L with
  | O => 0
  | S m => Rabs (g (s + m)) * loc (fun a => n (S a)) aw s m + p ^ n O * aw (s + m)%nat
  end.
Definition F n aw a0 t := loc n aw 0 t + p ^ n t * (Rabs (G g 0 t) * a0).

Lemma pow_p_ge1 n : 1 <= p ^ n. Proof using p_ge1. now apply pow_R1_Rle. Qed.
Lemma pow_p_mono m n : (m <= n)%nat -> p ^ m <= p ^ n.
Proof using p_ge1. intros; now apply Rle_pow. Qed.

Lemma loc_ext n n' aw s L : (forall a, (a < L)%nat -> n a = n' a) -> loc n aw s L = loc n' aw s L.
Proof.
revert n n'; induction L as [|L IH]; intros n n' H; simpl; [reflexivity|].
rewrite (H O) by lia; rewrite (IH _ (fun a => n' (S a))); [reflexivity|].
intros a Ha; apply H; lia.
Qed.
Lemma loc_aw_ext n aw aw' s L : (forall r, aw r = aw' r) -> loc n aw s L = loc n aw' s L.
Proof. intros H; revert n; induction L as [|L IH]; intros n; simpl; [reflexivity|]. rewrite IH, H; reflexivity. Qed.
Lemma loc_ge0 n aw s L : (forall r, 0 <= aw r) -> 0 <= loc n aw s L.
Proof using p_ge1.
intros H; revert n; induction L as [|L IH]; intros n; simpl; [lra|].
pose proof (pow_p_ge1 (n O)); pose proof (H (s + L)%nat).
pose proof (Rabs_ge0_mult (g (s + L)) _ (IH (fun a => n (S a)))).
assert (0 <= p ^ n O * aw (s + L)%nat) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma loc_mono n n' aw s L : (forall r, 0 <= aw r) -> (forall a, (a < L)%nat -> (n a <= n' a)%nat) ->
  loc n aw s L <= loc n' aw s L.
Proof using p_ge1.
intros Hw; revert n n'; induction L as [|L IH]; intros n n' H; simpl; [lra|].
apply Rplus_le_compat.
- apply Rmult_le_compat_l; [apply Rabs_pos|]; apply IH; intros a Ha; apply H; lia.
- apply Rmult_le_compat_r; [apply Hw|]; apply pow_p_mono, H; lia.
Qed.
Lemma loc_scale d n aw s L : loc (fun a => (d + n a)%nat) aw s L = p ^ d * loc n aw s L.
Proof.
revert n; induction L as [|L IH]; intros n; simpl; [ring|].
rewrite (IH (fun a => n (S a))), pow_add; ring.
Qed.
Lemma loc_split n aw s m L :
  loc n aw s (m + L) = Rabs (G g (s + m) L) * loc (fun a => n (a + L)%nat) aw s m + loc n aw (s + m) L.
Proof.
revert n; induction L as [|L IH]; intros n.
- rewrite Nat.add_0_r; simpl; rewrite Rabs_R1.
  rewrite (loc_ext n (fun a => n (a + 0)%nat)); [ring | intros; f_equal; lia].
- rewrite Nat.add_succ_r; simpl; rewrite IH, Nat.add_assoc, Rabs_mult.
  rewrite (loc_ext (fun a => n (a + S L)%nat) (fun a => n (S (a + L)))) by (intros; f_equal; lia); ring.
Qed.
Lemma loc_sum n aw s L :
  loc n aw s L = sumn (fun j => p ^ n (L - 1 - j)%nat * (Rabs (G g (S (s + j)) (L - 1 - j)) * aw (s + j)%nat)) L.
Proof.
revert n; induction L as [|L IH]; intros n; [reflexivity|].
cbn [loc]; rewrite IH, <- sumn_scal; cbn [sumn].
replace (S L - 1 - L)%nat with 0%nat by lia; simpl G; rewrite Rabs_R1, Rmult_1_l; f_equal.
apply sumn_ext; intros j J.
replace (S L - 1 - j)%nat with (S (L - 1 - j)) by lia; cbn [G].
replace (S L - 1 - j)%nat with (S (L - 1 - j)) by lia. Show. cbn [G]. Show. Abort.
