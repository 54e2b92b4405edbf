(* A weighted mean computed as a quotient of two sums, whatever way the sums are formed.

   Exact weights t_j > 0, weights in use P_j with |P_j - t_j| <= tau, values vh_j, |vh_j| <= V.
     ot = sum t vh / sum t,  size = sum t |vh| / sum t,  T = L tau
   Main results
     weighted_mean_bound   numerator with K roundings a term, denominator with K - 1, both with an
                           underflow of about T, then a division or a rounded reciprocal and a product:
         |y - ot| <= (1 + gamma_{K+1}) gamma_K size + gamma_{K+1} |ot| + 32 T (1 + V)           *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
Require Import counter_calculus running_bound prefix_product linear softmax.
Open Scope R_scope.

Section Mean.
Set Default Proof Using "All".
Variables u eta : R.
Hypothesis u_ge0 : 0 <= u.
Hypothesis u_lt1 : u < 1.
Hypothesis eta_ge0 : 0 <= eta.
Local Notation L5 x := (x u eta u_ge0 u_lt1 eta_ge0) (only parsing).
Local Notation rho := (rho u).
Local Notation gamma := (gamma u).
Variables (L K : nat) (t P vh : nat -> R) (tau V Nh Dh y : R).
Definition C := sumn t L.
Definition ot := sumn (fun j => t j * vh j) L / C.
Definition size := sumn (fun j => t j * Rabs (vh j)) L / C.
Local Notation T := (INR L * tau).
Hypothesis L_pos : (1 <= L)%nat.
Hypothesis K_pos : (1 <= K)%nat.
Hypothesis K_small : INR (K + 1) * u <= 1 / 16.
Hypothesis t_pos : forall j, (j < L)%nat -> 0 < t j.
Hypothesis C_range : 1 / 2 <= C <= 2 * INR L.
Hypothesis P_spec : forall j, (j < L)%nat -> 0 <= P j /\ Rabs (P j - t j) <= tau.
Hypothesis V_spec : forall j, (j < L)%nat -> Rabs (vh j) <= V.
Hypothesis tau_spec : eta <= tau.
Hypothesis tau_small : 40 * T <= 1.
Hypothesis N_spec : Rabs (Nh - sumn (fun j => P j * vh j) L) <=
  (rho ^ K - 1) * sumn (fun j => P j * Rabs (vh j)) L + 2 * (16 / 15) * T.
Hypothesis D_spec : (1 - u) ^ (K - 1) * sumn P L - 16 / 15 * T <= Dh <= rho ^ (K - 1) * sumn P L + 16 / 15 * T.
Hypothesis y_spec : quotient_hat u eta Nh Dh y.

Lemma tau_ge0 : 0 <= tau. Proof. lra. Qed.
Lemma V0 : 0 <= V.
Proof. pose proof (V_spec 0 ltac:(lia)); pose proof (Rabs_pos (vh 0%nat)); lra. Qed.
Lemma size_spec : Rabs ot <= size <= V.
Proof.
destruct C_range as (C1 & C2); assert (I : 0 < / C) by (apply Rinv_0_lt_compat; lra); split.
- unfold ot, size, Rdiv; rewrite Rabs_mult, (Rabs_pos_eq (/ C)) by lra; apply Rmult_le_compat_r; [lra|].
  eapply Rle_trans; [apply sumn_abs|]; apply sumn_le; intros j Hj; rewrite Rabs_mult, (Rabs_pos_eq (t j)); [lra|].
  left; now apply t_pos.
- unfold size; apply Rmult_le_reg_r with C; [lra|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  unfold C; rewrite <- sumn_scal; apply sumn_le; intros j Hj; rewrite Rmult_comm.
  apply Rmult_le_compat_r; [left; now apply t_pos | now apply V_spec].
Qed.

Theorem weighted_mean_bound : Rabs (y - ot) <=
  (1 + gamma (K + 1)) * (gamma K * size) + gamma (K + 1) * Rabs ot + 32 * T * (1 + V).
Proof.
destruct C_range as (C1 & C2); pose proof V0 as VP; pose proof size_spec as (Z1 & Z2); pose proof tau_ge0 as tau0.
pose proof (Rabs_pos ot) as O0; pose proof (L5 rho_ge1) as R1.
assert (I0 : 0 < / C) by (apply Rinv_0_lt_compat; lra).
assert (I2 : / C <= 2) by (replace 2 with (/ (1 / 2)) by field; apply Rinv_le_contravar; lra).
assert (L1 : 1 <= INR L) by (apply (le_INR 1); lia).
assert (SM : forall k, (k <= K + 1)%nat -> rho ^ k <= 16 / 15).
{ intros k Hk; pose proof (L5 rho_pow_mono k (K + 1) Hk); pose proof (L5 rho_gamma (K + 1) ltac:(lra)) as G.
  assert (INR (K + 1) * u / (1 - INR (K + 1) * u) <= 1 / 15); [|lra].
  apply Rmult_le_reg_r with (1 - INR (K + 1) * u); [lra|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra. }
set (T := T) in *; assert (T0 : 0 <= T) by (unfold T; apply Rmult_le_pos; lra).
assert (TE : INR L * eta <= T) by (unfold T; apply Rmult_le_compat_l; lra).
assert (Te : eta <= T) by (assert (1 * eta <= INR L * eta) by (apply Rmult_le_compat_r; lra); lra).
assert (SP : Rabs (sumn P L - C) <= T).
{ unfold C, T; replace (sumn P L - sumn t L) with (sumn P L + (-1) * sumn t L) by ring.
  rewrite <- sumn_scal, <- sumn_plus, <- (sumn_const tau L); eapply Rle_trans; [apply sumn_abs|].
  apply sumn_le; intros j Hj; replace (P j + -1 * t j) with (P j - t j) by ring; now apply P_spec. }
assert (SPV : Rabs (sumn (fun j => P j * vh j) L - sumn (fun j => t j * vh j) L) <= T * V).
{ replace (sumn (fun j => P j * vh j) L - sumn (fun j => t j * vh j) L)
    with (sumn (fun j => P j * vh j) L + (-1) * sumn (fun j => t j * vh j) L) by ring.
  unfold T; rewrite Rmult_assoc, <- (sumn_const (tau * V) L), <- sumn_scal, <- sumn_plus.
  eapply Rle_trans; [apply sumn_abs|]; apply sumn_le; intros j Hj.
  replace (P j * vh j + -1 * (t j * vh j)) with ((P j - t j) * vh j) by ring; rewrite Rabs_mult.
  apply Rmult_le_compat; try apply Rabs_pos; [now apply P_spec | now apply V_spec]. }
set (A := sumn (fun j => P j * Rabs (vh j)) L) in *.
assert (SA : A <= C * size + T * V).
{ unfold size; replace (C * (sumn (fun j => t j * Rabs (vh j)) L / C)) with (sumn (fun j => t j * Rabs (vh j)) L) by (field; lra).
  unfold A, T; rewrite Rmult_assoc, <- (sumn_const (tau * V) L), <- sumn_plus; apply sumn_le; intros j Hj.
  destruct (P_spec j Hj) as (P0 & P1); apply Rabs_between in P1; pose proof (Rabs_pos (vh j)); pose proof (V_spec j Hj).
  assert ((P j - t j) * Rabs (vh j) <= tau * V).
  { apply Rle_trans with (tau * Rabs (vh j)); [apply Rmult_le_compat_r; lra | apply Rmult_le_compat_l; lra]. }
  lra. }
apply Rabs_between in SP.
pose proof (SM (K - 1)%nat ltac:(lia)) as S1; pose proof (L5 rho_pow_ge1 (K - 1)) as S0.
destruct (low_1 u eta u_ge0 u_lt1 eta_ge0 (K - 1)) as (B0 & B1).
set (a := rho ^ (K - 1)) in *; set (b := (1 - u) ^ (K - 1)) in *.
destruct D_spec as (D1 & D2).
assert (DB : b - 5 * T <= Dh / C <= a + 5 * T).
{ split; apply Rmult_le_reg_r with C; try lra; unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  - assert (b * (C - T) <= b * sumn P L) by (apply Rmult_le_compat_l; lra).
    assert (b * T <= 1 * T) by (apply Rmult_le_compat_r; lra).
    assert (5 * T * (1 / 2) <= 5 * T * C) by (apply Rmult_le_compat_l; lra). lra.
  - assert (a * sumn P L <= a * (C + T)) by (apply Rmult_le_compat_l; lra).
    assert (a * T <= 16 / 15 * T) by (apply Rmult_le_compat_r; lra).
    assert (5 * T * (1 / 2) <= 5 * T * C) by (apply Rmult_le_compat_l; lra). lra. }
assert (TV0 : 0 <= T * V) by (apply Rmult_le_pos; lra).
assert (NB : Rabs (Nh / C - ot) <= (rho ^ K - 1) * size + T * (3 * V + 5)).
{ unfold ot; replace (Nh / C - sumn (fun j => t j * vh j) L / C) with ((Nh - sumn (fun j => t j * vh j) L) * / C)
    by (unfold Rdiv; ring).
  rewrite Rabs_mult, (Rabs_pos_eq (/ C)) by lra.
  assert (X : Rabs (Nh - sumn (fun j => t j * vh j) L) <= (rho ^ K - 1) * (C * size) + 16 / 15 * (T * V) + 2 * (16 / 15) * T).
  { replace (Nh - sumn (fun j => t j * vh j) L) with ((Nh - sumn (fun j => P j * vh j) L)
      + (sumn (fun j => P j * vh j) L - sumn (fun j => t j * vh j) L)) by ring.
    eapply Rle_trans; [apply Rabs_triang|].
    pose proof (SM K ltac:(lia)); pose proof (L5 rho_pow_ge1 K).
    assert ((rho ^ K - 1) * A <= (rho ^ K - 1) * (C * size + T * V)) by (apply Rmult_le_compat_l; lra).
    assert (rho ^ K * (T * V) <= 16 / 15 * (T * V)) by (apply Rmult_le_compat_r; lra). lra. }
  apply Rle_trans with (((rho ^ K - 1) * (C * size) + 16 / 15 * (T * V) + 2 * (16 / 15) * T) * / C).
  - apply Rmult_le_compat_r; lra.
  - replace (((rho ^ K - 1) * (C * size) + 16 / 15 * (T * V) + 2 * (16 / 15) * T) * / C)
      with ((rho ^ K - 1) * size + (16 / 15 * (T * V) + 2 * (16 / 15) * T) * / C) by (field; lra).
    assert ((16 / 15 * (T * V) + 2 * (16 / 15) * T) * / C <= (16 / 15 * (T * V) + 2 * (16 / 15) * T) * 2)
      by (apply Rmult_le_compat_l; lra). lra. }
set (n0 := T * (3 * V + 5)) in *.
assert (N0 : 0 <= n0) by (unfold n0; apply Rmult_le_pos; lra).
assert (N1 : n0 <= 1 / 40 * (3 * V + 5)) by (unfold n0; apply Rmult_le_compat_r; lra).
assert (NC : Rabs Nh <= 2 * INR L * (16 / 15 * V + n0)).
{ replace Nh with (C * (ot + (Nh / C - ot))) by (field; lra); rewrite Rabs_mult, (Rabs_pos_eq C) by lra.
  pose proof (Rabs_triang ot (Nh / C - ot)); pose proof (SM K ltac:(lia)); pose proof (L5 rho_pow_ge1 K).
  assert (0 <= size) by lra.
  assert ((rho ^ K - 1) * size <= 1 / 15 * V) by (apply Rmult_le_compat; lra).
  apply Rmult_le_compat; try lra; apply Rabs_pos. }
pose proof (quotient_hat_error u eta u_ge0 u_lt1 eta_ge0 Nh Dh y y_spec) as QE.
assert (Dh0 : 0 < Dh).
{ destruct DB as (DB1 & _).
  assert (15 / 16 <= b).
  { unfold b; eapply Rle_trans; [|apply (L5 bernoulli); lra].
    assert (INR (K - 1) * u <= INR (K + 1) * u) by (apply Rmult_le_compat_r; [lra | apply le_INR; lia]). lra. }
  assert (0 < Dh / C) by lra. replace Dh with (Dh / C * C) by (field; lra). apply Rmult_lt_0_compat; lra. }
assert (QQ : Nh / Dh = (Nh / C) / (Dh / C)) by (field; lra).
rewrite QQ in QE.
assert (SB : (rho * Rabs Nh + 1) * eta <= T * (3 * V + 2)).
{ pose proof (SM 1%nat ltac:(lia)) as S2; rewrite pow_1 in S2.
  assert (X1 : rho * Rabs Nh <= 16 / 15 * (2 * INR L * (16 / 15 * V + n0))) by (apply Rmult_le_compat; try lra; apply Rabs_pos).
  assert (X2 : 16 / 15 * (2 * INR L * (16 / 15 * V + n0)) <= INR L * (5 / 2 * V + 1)).
  { assert (INR L * n0 <= INR L * (1 / 40 * (3 * V + 5))) by (apply Rmult_le_compat_l; lra).
    assert (0 <= INR L * V) by (apply Rmult_le_pos; lra). lra. }
  assert (X3 : rho * Rabs Nh * eta <= INR L * (5 / 2 * V + 1) * eta) by (apply Rmult_le_compat_r; lra).
  assert (X4 : INR L * eta * (5 / 2 * V + 1) <= T * (5 / 2 * V + 1)) by (apply Rmult_le_compat_r; lra). lra. }
assert (QE' : Rabs (y - Nh / C / (Dh / C)) <= (rho ^ 2 - 1) * Rabs (Nh / C / (Dh / C)) + T * (3 * V + 2)) by lra.
pose proof (quotient_bound u eta u_ge0 u_lt1 eta_ge0 K (Nh / C) (Dh / C) ot size n0 (5 * T) V (T * (3 * V + 2))
  K_pos K_small NB (conj Z1 Z2) N0 DB ltac:(lra) y QE') as QB.
assert (M3 : 2 * n0 + 4 * (V + n0) * (5 * T) + T * (3 * V + 2) <= 32 * T * (1 + V)).
{ assert (T * n0 <= T * (1 / 40 * (3 * V + 5))) by (apply Rmult_le_compat_l; lra). unfold n0 in *; lra. }
lra.
Qed.
End Mean.
