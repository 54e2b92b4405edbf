(* The running bound of the sequential form, one step at a time, and the output from it.

     E_0 = bound on the initial state
     w_t = ((1+u)^2 - 1) |b k v| + eta ((1+u) |v| + 1)
     E_{t+1} = (1+u) [ (1+u) |g| E_t + u |g| |s_t| + eta + w_t ] + u |s_{t+1}| + eta

   Main results
     running_state_bound    |computed state - state| <= E_t, every step plain or with either fma
     running_output_bound   |computed y - y| <= sum |q| (E + gamma_D (|s| + E)) + 3 D eta,
                            the dot product in any order                                  *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
Require Import counter_calculus.
Open Scope R_scope.

Section Running.
Set Default Proof Using "All".
Variables u eta : R.
Hypothesis u_ge0 : 0 <= u.
Hypothesis u_lt1 : u < 1.
Hypothesis eta_ge0 : 0 <= eta.
Local Notation near := (near u eta).
Local Notation L7 x := (x u eta u_ge0 u_lt1 eta_ge0 0 (Rle_refl 0)) (only parsing).
Local Notation L5 x := (x u eta u_ge0 u_lt1 eta_ge0) (only parsing).

Lemma near_close y z x e : near y z -> Rabs (y - x) <= e -> Rabs (z - x) <= (1 + u) * e + u * Rabs x + eta.
Proof.
unfold counter_calculus.near; intros N H; replace (z - x) with ((z - y) + (y - x)) by ring.
eapply Rle_trans; [apply Rabs_triang|].
assert (Rabs y <= Rabs x + Rabs (y - x)).
{ replace y with (x + (y - x)) at 1 by ring; apply Rabs_triang. }
assert (u * Rabs y <= u * (Rabs x + e)) by (apply Rmult_le_compat_l; lra).
lra.
Qed.
Lemma mul_close c xh x e : Rabs (xh - x) <= e -> Rabs (c * xh - c * x) <= Rabs c * e.
Proof.
intros H; replace (c * xh - c * x) with (c * (xh - x)) by ring.
rewrite Rabs_mult; apply Rmult_le_compat_l; [apply Rabs_pos | exact H].
Qed.
Lemma add_close x1 xh1 e1 x2 xh2 e2 : Rabs (xh1 - x1) <= e1 -> Rabs (xh2 - x2) <= e2 ->
  Rabs (xh1 + xh2 - (x1 + x2)) <= e1 + e2.
Proof.
intros H1 H2; replace (xh1 + xh2 - (x1 + x2)) with ((xh1 - x1) + (xh2 - x2)) by ring.
eapply Rle_trans; [apply Rabs_triang | lra].
Qed.

(* one step: b k first, then v; the product with g or the write may be the operand of an fma *)
Definition running_step (g b k v s y : R) := exists bk p z,
  near (b * k) bk /\ rounded_or_fused u eta (g * s) p /\ rounded_or_fused u eta (bk * v) z /\ near (p + z) y.

Variables (g b k v : nat -> R) (s0 : R).
Fixpoint s t := match t with O => s0 | S t => g t * s t + b t * k t * v t end.
Definition w t := ((1 + u) ^ 2 - 1) * Rabs (b t * k t * v t) + eta * ((1 + u) * Rabs (v t) + 1).
Fixpoint E (E0 : R) t := match t with
  | O => E0
  | S t => let e := (1 + u) * Rabs (g t) * E E0 t + u * (Rabs (g t) * Rabs (s t)) + eta + w t in
           (1 + u) * e + u * Rabs (s (S t)) + eta
  end.

Theorem running_state_bound (sh : nat -> R) E0 T :
  Rabs (sh O - s0) <= E0 ->
  (forall t, (t < T)%nat -> running_step (g t) (b t) (k t) (v t) (sh t) (sh (S t))) ->
  forall t, (t <= T)%nat -> Rabs (sh t - s t) <= E E0 t.
Proof.
intros H0 Hs; induction t as [|t IH]; intros HT; [exact H0|].
specialize (IH ltac:(lia)); destruct (Hs t ltac:(lia)) as (bk & p & z & Nbk & Rp & Rz & Ny).
pose proof (Rabs_pos (v t)) as Pv; pose proof (Rabs_pos (b t * k t * v t)) as Pw.
assert (Hbkv : Rabs (v t) * Rabs (b t * k t) = Rabs (b t * k t * v t)) by
  (rewrite <- Rabs_mult; f_equal; ring).
assert (Wf : Rabs (bk * v t - b t * k t * v t) <= Rabs (v t) * (u * Rabs (b t * k t) + eta)).
{ rewrite !(Rmult_comm _ (v t)); now apply mul_close. }
assert (0 <= eta * Rabs (v t)) by (apply Rmult_le_pos; lra).
assert (0 <= u * (eta * Rabs (v t))) by (apply Rmult_le_pos; lra).
assert (0 <= u * Rabs (b t * k t * v t)) by (apply Rmult_le_pos; lra).
assert (0 <= u * (u * Rabs (b t * k t * v t))) by (apply Rmult_le_pos; lra).
assert (Wz : Rabs (z - b t * k t * v t) <= w t).
{ destruct Rz as [N| ->].
  - eapply Rle_trans; [eapply near_close; [exact N | exact Wf]|]; unfold w; simpl.
    rewrite Rmult_plus_distr_l, <- !Rmult_assoc, (Rmult_comm _ u), Rmult_assoc, Hbkv; nra.
  - eapply Rle_trans; [exact Wf|]; unfold w; simpl; nra. }
pose proof (mul_close (g t) _ _ _ IH) as Gf.
assert (Gp : Rabs (p - g t * s t)
   <= (1 + u) * Rabs (g t) * E E0 t + u * (Rabs (g t) * Rabs (s t)) + eta).
{ destruct Rp as [N| ->].
  - eapply Rle_trans; [eapply near_close; [exact N | exact Gf]|]; rewrite (Rabs_mult (g t) (s t)); lra.
  - eapply Rle_trans; [exact Gf|].
    assert (0 <= E E0 t) by (eapply Rle_trans; [apply Rabs_pos | exact IH]).
    pose proof (Rabs_pos (g t)); pose proof (Rabs_pos (s t)).
    assert (0 <= u * (Rabs (g t) * E E0 t)) by (apply Rmult_le_pos; [lra | apply Rmult_le_pos; lra]).
    assert (0 <= u * (Rabs (g t) * Rabs (s t))) by (apply Rmult_le_pos; [lra | apply Rmult_le_pos; lra]).
    lra. }
simpl E; eapply near_close; [exact Ny|]; simpl s.
eapply Rle_trans; [apply add_close; eassumption | lra].
Qed.
End Running.

Section RunningOutput.
Set Default Proof Using "All".
Variables u eta : R.
Hypothesis u_ge0 : 0 <= u.
Hypothesis u_lt1 : u < 1.
Hypothesis eta_ge0 : 0 <= eta.
Local Notation L7 x := (x u eta u_ge0 u_lt1 eta_ge0 0 (Rle_refl 0)) (only parsing).
Local Notation L5 x := (x u eta u_ge0 u_lt1 eta_ge0) (only parsing).
Definition gamma n := INR n * u / (1 - INR n * u).
Lemma gamma_ge0 n : INR n * u < 1 -> 0 <= gamma n.
Proof.
intros H; unfold gamma, Rdiv; apply Rmult_le_pos.
- apply Rmult_le_pos; [apply pos_INR | lra].
- left; apply Rinv_0_lt_compat; lra.
Qed.

(* the dot product of exact q with values known to within E, in any order *)
Theorem dot_bound q sh s E D y : dot_hat u eta q sh D y -> INR D * u <= 1 / 16 ->
  (forall i, (i < D)%nat -> Rabs (sh i - s i) <= E i) ->
  Rabs (y - sumn (fun i => q i * s i) D) <=
    sumn (fun i => Rabs (q i) * (E i + gamma D * (Rabs (s i) + E i))) D + 3 * INR D * eta.
Proof.
intros Hd HD HE.
assert (D1 : (1 <= D)%nat) by (destruct Hd as (f & _ & Sm); exact ((L7 anysum_pos) _ _ _ Sm)).
pose proof ((L7 dot_raw) q sh s (fun i => Rabs (s i)) E D y Hd
  (fun i Hi => conj (Rle_refl _) (HE i Hi))) as B; cbv beta in B.
pose proof (L5 rho_gamma D ltac:(lra)) as G; fold (gamma D) in G.
pose proof (gamma_ge0 D ltac:(lra)) as G0.
set (s1 := sumn (fun i => Rabs (q i) * (Rabs (s i) + E i)) D) in *.
set (s2 := sumn (fun i => Rabs (q i) * Rabs (s i)) D) in *.
assert (S0 : 0 <= s1).
{ apply sumn_ge0; intros i I; apply Rmult_le_pos; [apply Rabs_pos|].
  pose proof (Rabs_pos (s i)); specialize (HE i I); pose proof (Rabs_pos (sh i - s i)); lra. }
assert (EQ : sumn (fun i => Rabs (q i) * (E i + gamma D * (Rabs (s i) + E i))) D = s1 - s2 + gamma D * s1).
{ unfold s1, s2; rewrite <- sumn_scal.
  replace (sumn (fun i => Rabs (q i) * (Rabs (s i) + E i)) D - sumn (fun i => Rabs (q i) * Rabs (s i)) D)
    with (sumn (fun i => Rabs (q i) * (Rabs (s i) + E i)) D + (-1) * sumn (fun i => Rabs (q i) * Rabs (s i)) D) by ring.
  rewrite <- sumn_scal, <- !sumn_plus; apply sumn_ext; intros; ring. }
rewrite EQ; clear EQ.
assert ((rho u ^ D - 1) * s1 <= gamma D * s1) by (apply Rmult_le_compat_r; lra).
assert (P : rho u ^ (D - 1) <= 16 / 15).
{ eapply Rle_trans; [apply (L5 rho_pow_mono (D - 1) D); lia|].
  assert (gamma D <= 1 / 15); [|lra].
  unfold gamma; apply Rmult_le_reg_r with (1 - INR D * u); [lra|].
  unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra. }
assert (N : INR (2 * D - 1) <= 2 * INR D).
{ replace 2 with (INR 2) by (simpl; lra); rewrite <- mult_INR; apply le_INR; lia. }
pose proof (pos_INR (2 * D - 1)); pose proof (pos_INR D).
assert (INR (2 * D - 1) * rho u ^ (D - 1) <= 2 * INR D * (16 / 15)).
{ apply Rmult_le_compat; try lra; pose proof (L5 rho_pow_ge1 (D - 1)); lra. }
assert (INR (2 * D - 1) * rho u ^ (D - 1) * eta <= 3 * INR D * eta) by (apply Rmult_le_compat_r; lra).
lra.
Qed.

(* y from D running states of one step *)
Theorem running_output_bound q sh g b k v s0 E0 (D T : nat) y :
  (forall i, (i < D)%nat -> Rabs (sh i O - s0 i) <= E0 i) ->
  (forall i t, (i < D)%nat -> (t < T)%nat ->
     running_step u eta (g t) (b t) (k i t) (v t) (sh i t) (sh i (S t))) ->
  INR D * u <= 1 / 16 -> dot_hat u eta q (fun i => sh i T) D y ->
  Rabs (y - sumn (fun i => q i * s g b (k i) v (s0 i) T) D) <=
    sumn (fun i => Rabs (q i) * (E u eta g b (k i) v (s0 i) (E0 i) T
       + gamma D * (Rabs (s g b (k i) v (s0 i) T) + E u eta g b (k i) v (s0 i) (E0 i) T))) D + 3 * INR D * eta.
Proof.
intros H0 Hs HD Hd; apply (dot_bound q (fun i => sh i T) (fun i => s g b (k i) v (s0 i) T)
  (fun i => E u eta g b (k i) v (s0 i) (E0 i) T) D y Hd HD).
intros i I; apply (running_state_bound u eta u_ge0 u_lt1 eta_ge0 g b (k i) v (s0 i) (sh i) (E0 i) T (H0 i I));
  [intros t Ht; apply Hs; assumption | lia].
Qed.
End RunningOutput.
