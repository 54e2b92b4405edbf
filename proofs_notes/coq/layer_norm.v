(* LayerNorm over n features of an inexact input xh = x + dl, |dl_i| <= e_i.

     mu = mean x, f = x - mu, var = mean f^2, a = var + eps, r = 1 / sqrt a, n_i = w_i r f_i + bias_i
     e_mu      = gamma_{n+1} mean(|x| + e) + 2 eta
     input_var = 2 mean(|f| e) + mean e^2
     e_v       two-pass: gamma_{n+5} (var + shift) + shift + 8 eta,  shift = input_var + e_mu^2
               one-pass: (1+u) [gamma_{n+2} mean(|x|+e)^2 + (1+u)(2 m e_mu + e_mu^2) + u m^2]
                         + u (var + input_var) + input_var + 8 eta,  m = |mu| + mean e
     alpha     = ((1+u) e_v + u a) / a, no bound unless alpha < 1
     R         = (1 + gamma_root) / sqrt(1 - alpha) - 1

   Main results
     mean_bound, mean_square_bound         sums in any order, divided by n or times the rounded 1/n
     two_pass_variance_bound, one_pass_variance_bound
     root_bound                            |rh - r| <= R r
     correctly_rounded_root                sqrt and division correctly rounded: gamma_root = gamma_3
     local_spec                            difference, root, weight in any order, then the bias: local_i
     folded_spec, local_any                x s + (bias - m s) with s = w / root, or as before: any_local_i
     layer_norm_decomposition              nh_i - n_i = rel w r f + (1+rel) r w (dl_i - mean dl)
                                                        - (1+rel) r w em + l_i
                                           with |rel| <= R, |em| <= e_mu, |l_i| <= loc_i (local or any_local)
     layer_norm_functional                 |sum c_i (nh_i - n_i)|, the shared unknowns kept together
     layer_norm_bound                      |nh_i - n_i| <= common_i + loc_i                       *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
Require Import counter_calculus running_bound prefix_product linear.
Open Scope R_scope.

Section LayerNorm.
Set Default Proof Using "All".
Variables u eta : R.
Hypothesis u_ge0 : 0 <= u.
Hypothesis u_lt1 : u < 1.
Hypothesis eta_ge0 : 0 <= eta.
Hypothesis eta_small : 32 * eta <= u.
Local Notation L7 x := (x u eta u_ge0 u_lt1 eta_ge0 0 (Rle_refl 0)) (only parsing).
Local Notation L5 x := (x u eta u_ge0 u_lt1 eta_ge0) (only parsing).
Local Notation E8 x := (x u eta u_ge0 u_lt1 eta_ge0 1 Rlt_0_1 (fun _ => 0)) (only parsing).
Local Notation near := (near u eta).
Local Notation rho := (rho u).
Local Notation gamma := (gamma u).
Variable n : nat.
Hypothesis n_pos : (1 <= n)%nat.
Hypothesis n_short : short u (n + 5).
Definition mean (x : nat -> R) := sumn x n / INR n.

Lemma n1 : 1 <= INR n. Proof. apply (le_INR 1); lia. Qed.
Lemma n_inv : 0 < / INR n. Proof. apply Rinv_0_lt_compat; pose proof n1; lra. Qed.
Lemma mean_ext x y : (forall i, (i < n)%nat -> x i = y i) -> mean x = mean y.
Proof. intros H; unfold mean; f_equal; now apply sumn_ext. Qed.
Lemma mean_le x y : (forall i, (i < n)%nat -> x i <= y i) -> mean x <= mean y.
Proof. intros H; unfold mean, Rdiv; apply Rmult_le_compat_r; [pose proof n_inv; lra | now apply sumn_le]. Qed.
Lemma mean_ge0 x : (forall i, (i < n)%nat -> 0 <= x i) -> 0 <= mean x.
Proof. intros H; unfold mean, Rdiv; apply Rmult_le_pos; [now apply sumn_ge0 | pose proof n_inv; lra]. Qed.
Lemma mean_plus x y : mean (fun i => x i + y i) = mean x + mean y.
Proof. unfold mean; rewrite sumn_plus; unfold Rdiv; ring. Qed.
Lemma mean_scal c x : mean (fun i => c * x i) = c * mean x.
Proof. unfold mean; rewrite sumn_scal; unfold Rdiv; ring. Qed.
Lemma mean_const c : mean (fun _ => c) = c.
Proof. unfold mean; rewrite sumn_const; pose proof n1; field; lra. Qed.
Lemma mean_abs x : Rabs (mean x) <= mean (fun i => Rabs (x i)).
Proof.
unfold mean, Rdiv; rewrite Rabs_mult, (Rabs_pos_eq (/ INR n)) by (pose proof n_inv; lra).
apply Rmult_le_compat_r; [pose proof n_inv; lra | apply sumn_abs].
Qed.
Lemma rho_small k : (k <= n + 5)%nat -> rho ^ k <= 1 + gamma (n + 5) /\ INR n * gamma (n + 5) <= 1 / 3.
Proof.
intros H; destruct (gamma_short u eta u_ge0 u_lt1 eta_ge0 (n + 5) n_short) as (G0 & G1 & G2).
pose proof (L5 rho_pow_mono k (n + 5) H); rewrite plus_INR in G2; pose proof (pos_INR 5); split; [lra|].
assert (0 <= INR 5 * gamma (n + 5)) by (apply Rmult_le_pos; lra); lra.
Qed.
Lemma gamma_mono j k : (j <= k)%nat -> INR k * u < 1 -> gamma j <= gamma k.
Proof.
intros H Hk; apply le_INR in H; unfold running_bound.gamma, Rdiv.
assert (INR j * u <= INR k * u) by (apply Rmult_le_compat_r; lra).
pose proof (pos_INR j); assert (0 <= INR j * u) by (apply Rmult_le_pos; lra).
apply Rmult_le_compat; [lra | left; apply Rinv_0_lt_compat; lra | lra | apply Rinv_le_contravar; lra].
Qed.
Lemma rho_gamma_short k : (k <= n + 5)%nat -> rho ^ k - 1 <= gamma k.
Proof.
intros H; apply (L5 rho_gamma).
pose proof (L5 short_nu (n + 5) n_short); apply le_INR in H.
assert (INR k * u <= INR (n + 5) * u) by (apply Rmult_le_compat_r; lra); lra.
Qed.

(** * Means *)
(* a sum divided by n, or times a rounded 1/n (a normal number) *)
Definition divided s m := near (/ INR n * s) m \/
  exists c, Rabs (c - / INR n) <= u * / INR n /\ near (c * s) m.
Lemma divided_er x a r h s m : er x a r h s -> divided s m ->
  er (/ INR n * x) (/ INR n * a) (rho ^ 2 * (/ INR n * r)) (rho ^ 2 * (/ INR n * h) + eta) m.
Proof.
intros H D; pose proof n_inv as I0; pose proof (L5 rho_ge) as G; pose proof (L5 rho_ge1) as G1.
assert (Nn : 0 <= a /\ 0 <= r /\ 0 <= h).
{ destruct H as (H1 & H2 & H3 & _); pose proof (Rabs_pos x); repeat split; lra. }
assert (0 <= / INR n * r) by (apply Rmult_le_pos; lra).
assert (0 <= / INR n * h) by (apply Rmult_le_pos; lra).
destruct D as [N|(c & Hc & N)].
- apply (E8 er_scale (/ INR n)) in H; rewrite (Rabs_pos_eq (/ INR n)) in H by lra.
  apply (E8 er_near) with (z := m) in H; [|exact N].
  eapply (E8 er_weak); [exact H | |]; simpl; rewrite Rmult_1_r.
  + apply Rmult_le_compat_r; [lra|]; nra.
  + apply Rplus_le_compat_r, Rmult_le_compat_r; [lra|]; nra.
- assert (Rl : relative u 1 (/ INR n) c).
  { exists (c * INR n); pose proof n1; apply Rabs_between in Hc; split; [field; lra|]; rewrite !pow_1.
    assert (c * INR n <= (/ INR n + u * / INR n) * INR n) by (apply Rmult_le_compat_r; lra).
    assert ((/ INR n - u * / INR n) * INR n <= c * INR n) by (apply Rmult_le_compat_r; lra).
    assert (/ INR n * INR n = 1) by (apply Rinv_l; lra).
    split; [|assert ((/ INR n + u * / INR n) * INR n = 1 + u) by (field; lra)]; try lra.
    assert ((/ INR n - u * / INR n) * INR n = 1 - u) by (field; lra); lra. }
  apply (E8 er_relative) with (j := 1%nat) (p := / INR n) (ph := c) in H; [|exact Rl].
  apply (E8 er_near) with (z := m) in H; [|exact N].
  rewrite (Rabs_pos_eq (/ INR n)), !pow_1 in H by lra.
  eapply (E8 er_weak); [exact H | |]; simpl; rewrite Rmult_1_r; right; ring.
Qed.

Definition mean_hat xh m := exists s, anysum u eta xh n s /\ divided s m.
Theorem mean_bound xh m : mean_hat xh m ->
  Rabs (m - mean xh) <= gamma (n + 1) * mean (fun i => Rabs (xh i)) + 2 * eta.
Proof.
intros (s & Sm & Dv); pose proof n_inv as I0; pose proof n1 as N1.
pose proof ((L7 anysum_error) xh xh (fun i => Rabs (xh i)) (fun _ => 0) n s Sm) as B.
assert (Z : forall i, Rabs (xh i - xh i) <= 0) by (intros i; replace (xh i - xh i) with 0 by ring; rewrite Rabs_R0; lra).
assert (B' := B (fun i _ => conj (Rle_refl _) (Z i))); clear B.
rewrite sumn_const, Rmult_0_r, Rplus_0_r in B'.
set (A := sumn (fun i => Rabs (xh i)) n) in *.
assert (A0 : 0 <= A) by (apply sumn_ge0; intros; apply Rabs_pos).
pose proof (L5 rho_pow_ge1 (n - 1)) as P1.
assert (H0 : 0 <= INR (n - 1) * rho ^ (n - 1) * eta).
{ apply Rmult_le_pos; [apply Rmult_le_pos; [apply pos_INR | lra] | lra]. }
assert (Er : er (sumn xh n) A (rho ^ (n - 1) * A) (INR (n - 1) * rho ^ (n - 1) * eta) s).
{ unfold er; split; [apply sumn_abs|]; split; [|split; [exact H0 | lra]].
  assert (1 * A <= rho ^ (n - 1) * A) by (apply Rmult_le_compat_r; lra); lra. }
destruct (divided_er _ _ _ _ _ _ Er Dv) as (_ & _ & _ & X).
replace (/ INR n * sumn xh n) with (mean xh) in X by (unfold mean, Rdiv; ring).
replace (/ INR n * A) with (mean (fun i => Rabs (xh i))) in X by (unfold mean, A, Rdiv; ring).
set (mA := mean (fun i => Rabs (xh i))) in *.
assert (M0 : 0 <= mA) by (apply mean_ge0; intros; apply Rabs_pos).
pose proof (rho_gamma_short (n + 1) ltac:(lia)) as G1.
destruct (rho_small (n + 1) ltac:(lia)) as (R1 & R2).
assert (E1 : rho ^ 2 * rho ^ (n - 1) = rho ^ (n + 1)) by (rewrite <- pow_add; f_equal; lia).
assert (E2 : rho ^ 2 * (/ INR n * (rho ^ (n - 1) * A)) = rho ^ (n + 1) * mA).
{ rewrite <- E1; unfold mA, mean; fold A; unfold Rdiv; ring. }
rewrite E2 in X.
assert (K : rho ^ 2 * (/ INR n * (INR (n - 1) * rho ^ (n - 1) * eta)) <= eta).
{ replace (rho ^ 2 * (/ INR n * (INR (n - 1) * rho ^ (n - 1) * eta)))
    with (/ INR n * (INR (n - 1) * (rho ^ 2 * rho ^ (n - 1))) * eta) by ring.
  rewrite E1; replace eta with (1 * eta) at 2 by ring; apply Rmult_le_compat_r; [lra|].
  apply Rmult_le_reg_l with (INR n); [lra|]; rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l, Rmult_1_r by lra.
  replace (INR (n - 1)) with (INR n - 1) by (rewrite minus_INR by lia; simpl; ring).
  assert ((INR n - 1) * rho ^ (n + 1) <= (INR n - 1) * (1 + gamma (n + 5))) by (apply Rmult_le_compat_l; lra).
  destruct (gamma_short u eta u_ge0 u_lt1 eta_ge0 (n + 5) n_short) as (G0 & _); lra. }
assert ((rho ^ (n + 1) - 1) * mA <= gamma (n + 1) * mA) by (apply Rmult_le_compat_r; lra).
lra.
Qed.

Definition mean_square_hat z m := exists s, dot_hat u eta z z n s /\ divided s m.
Lemma mean_square_er z m : mean_square_hat z m ->
  er (mean (fun i => z i * z i)) (mean (fun i => z i * z i)) (rho ^ (n + 2) * mean (fun i => z i * z i)) (3 * eta) m.
Proof.
intros (s & Hd & Dv); pose proof n_inv as I0; pose proof n1 as N1.
pose proof ((L7 dot_raw) z z z (fun i => Rabs (z i)) (fun _ => 0) n s Hd) as B; cbv beta in B.
assert (Z : forall i, Rabs (z i - z i) <= 0) by (intros i; replace (z i - z i) with 0 by ring; rewrite Rabs_R0; lra).
assert (B' := B (fun i _ => conj (Rle_refl _) (Z i))); clear B.
assert (SQ : forall x, Rabs x * Rabs x = x * x).
{ intros x; rewrite <- Rabs_mult; apply Rabs_pos_eq; nra. }
rewrite (sumn_ext (fun i => Rabs (z i) * (Rabs (z i) + 0)) (fun i => z i * z i)) in B' by (intros; rewrite Rplus_0_r; apply SQ).
rewrite (sumn_ext (fun i => Rabs (z i) * Rabs (z i)) (fun i => z i * z i)) in B' by (intros; apply SQ).
set (A := sumn (fun i => z i * z i) n) in *.
assert (A0 : 0 <= A) by (apply sumn_ge0; intros; apply Rle_0_sqr).
pose proof (L5 rho_pow_ge1 (n - 1)) as P1; pose proof (L5 rho_pow_ge1 n) as P2.
assert (Er : er A A (rho ^ n * A) (INR (2 * n - 1) * rho ^ (n - 1) * eta) s).
{ unfold er; split; [rewrite Rabs_pos_eq; lra|]; split; [|split].
  - assert (1 * A <= rho ^ n * A) by (apply Rmult_le_compat_r; lra); lra.
  - apply Rmult_le_pos; [apply Rmult_le_pos; [apply pos_INR | lra] | lra].
  - exact B'. }
pose proof (divided_er _ _ _ _ _ _ Er Dv) as X.
replace (/ INR n * A) with (mean (fun i => z i * z i)) in X by (unfold mean, A, Rdiv; ring).
eapply (E8 er_weak); [exact X | |].
- right; unfold mean; fold A; rewrite pow_add; unfold Rdiv; ring.
- destruct (rho_small (n + 1) ltac:(lia)) as (R1 & R2).
  assert (E1 : rho ^ 2 * rho ^ (n - 1) = rho ^ (n + 1)) by (rewrite <- pow_add; f_equal; lia).
  replace (rho ^ 2 * (/ INR n * (INR (2 * n - 1) * rho ^ (n - 1) * eta)))
    with (/ INR n * (INR (2 * n - 1) * (rho ^ 2 * rho ^ (n - 1))) * eta) by ring.
  rewrite E1; assert (/ INR n * (INR (2 * n - 1) * rho ^ (n + 1)) <= 2).
  { apply Rmult_le_reg_l with (INR n); [lra|]; rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra.
    replace (INR (2 * n - 1)) with (2 * INR n - 1) by (rewrite minus_INR, mult_INR by lia; simpl; ring).
    assert ((2 * INR n - 1) * rho ^ (n + 1) <= (2 * INR n - 1) * (1 + gamma (n + 5))) by (apply Rmult_le_compat_l; lra).
    destruct (gamma_short u eta u_ge0 u_lt1 eta_ge0 (n + 5) n_short) as (G0 & _); lra. }
  assert (/ INR n * (INR (2 * n - 1) * rho ^ (n + 1)) * eta <= 2 * eta) by (apply Rmult_le_compat_r; lra). lra.
Qed.
Theorem mean_square_bound z m : mean_square_hat z m ->
  Rabs (m - mean (fun i => z i * z i)) <= gamma (n + 2) * mean (fun i => z i * z i) + 3 * eta.
Proof.
intros H; destruct (mean_square_er z m H) as (_ & _ & _ & X).
pose proof (rho_gamma_short (n + 2) ltac:(lia)) as G1.
set (q := mean (fun i => z i * z i)) in *.
assert (0 <= q) by (apply mean_ge0; intros; apply Rle_0_sqr).
assert ((rho ^ (n + 2) - 1) * q <= gamma (n + 2) * q) by (apply Rmult_le_compat_r; lra). lra.
Qed.

(** * The exact side *)
Variables (x dl e : nat -> R) (eps : R).
Hypothesis dl_spec : forall i, (i < n)%nat -> Rabs (dl i) <= e i.
Hypothesis eps_ge0 : 0 <= eps.
Definition xh i := x i + dl i.
Definition mu := mean x.
Definition f i := x i - mu.
Definition var := mean (fun i => f i * f i).
Definition a := var + eps.
Hypothesis a_pos : 0 < a.
Definition r := / sqrt a.
Definition size i := Rabs (x i) + e i.
Definition e_mu := gamma (n + 1) * mean size + 2 * eta.
Definition e_mean := mean e.
Definition input_var := 2 * mean (fun i => Rabs (f i) * e i) + mean (fun i => e i * e i).

Lemma size_spec i : (i < n)%nat -> Rabs (xh i) <= size i.
Proof. intros H; unfold xh, size; pose proof (Rabs_triang (x i) (dl i)); pose proof (dl_spec i H); lra. Qed.
Lemma e_ge0 i : (i < n)%nat -> 0 <= e i.
Proof. intros H; pose proof (dl_spec i H); pose proof (Rabs_pos (dl i)); lra. Qed.
Lemma mean_f : mean f = 0.
Proof.
unfold f; rewrite (mean_ext _ (fun i => x i + (-1) * mu)) by (intros; ring).
rewrite mean_plus, mean_const; unfold mu; ring.
Qed.
Lemma mean_dl : Rabs (mean dl) <= e_mean.
Proof. eapply Rle_trans; [apply mean_abs | now apply mean_le]. Qed.
Lemma mean_xh : mean xh = mu + mean dl.
Proof. apply mean_plus. Qed.
Lemma e_mu_spec m : mean_hat xh m -> Rabs (m - mean xh) <= e_mu.
Proof.
intros H; eapply Rle_trans; [now apply mean_bound|]; unfold e_mu.
apply Rplus_le_compat_r, Rmult_le_compat_l; [|apply mean_le, size_spec].
apply (L5 gamma_ge0); pose proof (L5 short_nu (n + 5) n_short).
assert (INR (n + 1) * u <= INR (n + 5) * u) by (apply Rmult_le_compat_r; [lra | apply le_INR; lia]); lra.
Qed.
Lemma e_mu_ge0 : 0 <= e_mu.
Proof.
unfold e_mu; assert (0 <= gamma (n + 1)).
{ apply (L5 gamma_ge0); pose proof (L5 short_nu (n + 5) n_short).
  assert (INR (n + 1) * u <= INR (n + 5) * u) by (apply Rmult_le_compat_r; [lra | apply le_INR; lia]); lra. }
assert (0 <= mean size).
{ apply mean_ge0; intros i Hi; pose proof (size_spec i Hi); pose proof (Rabs_pos (xh i)); lra. }
assert (0 <= gamma (n + 1) * mean size) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma var_ge0 : 0 <= var. Proof. apply mean_ge0; intros; apply Rle_0_sqr. Qed.

(* variance of xh about its own mean *)
Definition g i := f i + (dl i - mean dl).
Definition var_h := mean (fun i => g i * g i).
Lemma g_eq i : g i = xh i - mean xh.
Proof. rewrite mean_xh; unfold g, f, xh; ring. Qed.
Lemma mean_g : mean g = 0.
Proof.
rewrite (mean_ext g (fun i => f i + (dl i + (-1) * mean dl))) by (intros; unfold g; ring).
rewrite mean_plus, mean_f, mean_plus, mean_const; ring.
Qed.
Lemma var_h_bound : Rabs (var_h - var) <= input_var.
Proof.
assert (E : var_h = var + (2 * mean (fun i => f i * dl i) + (mean (fun i => dl i * dl i) - mean dl * mean dl))).
{ unfold var_h, var.
  rewrite (mean_ext _ (fun i => (f i * f i + 2 * (f i * dl i)) + ((dl i * dl i + (- (2 * mean dl)) * dl i)
     + (mean dl * mean dl + (- (2 * mean dl)) * f i)))) by (intros; unfold g; ring).
  rewrite !mean_plus, mean_const, !mean_scal, mean_f; ring. }
rewrite E; clear E.
replace (var + (2 * mean (fun i => f i * dl i) + (mean (fun i => dl i * dl i) - mean dl * mean dl)) - var)
  with (2 * mean (fun i => f i * dl i) + (mean (fun i => dl i * dl i) - mean dl * mean dl)) by ring.
assert (A1 : Rabs (mean (fun i => f i * dl i)) <= mean (fun i => Rabs (f i) * e i)).
{ eapply Rle_trans; [apply mean_abs|]; apply mean_le; intros i Hi; rewrite Rabs_mult.
  apply Rmult_le_compat_l; [apply Rabs_pos | now apply dl_spec]. }
assert (A2 : mean (fun i => dl i * dl i) <= mean (fun i => e i * e i)).
{ apply mean_le; intros i Hi; pose proof (dl_spec i Hi) as B; apply Rabs_between in B; nra. }
(* variance of dl is not negative *)
assert (A3 : 0 <= mean (fun i => dl i * dl i) - mean dl * mean dl).
{ assert (0 <= mean (fun i => (dl i - mean dl) * (dl i - mean dl))) by (apply mean_ge0; intros; apply Rle_0_sqr).
  rewrite (mean_ext _ (fun i => dl i * dl i + ((- (2 * mean dl)) * dl i + mean dl * mean dl))) in H by (intros; ring).
  rewrite !mean_plus, mean_const, mean_scal in H; lra. }
assert (0 <= mean dl * mean dl) by nra.
eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_mult, (Rabs_pos_eq 2), (Rabs_pos_eq (_ - _)) by lra.
unfold input_var; lra.
Qed.
Lemma input_var_ge0 : 0 <= input_var.
Proof. eapply Rle_trans; [apply Rabs_pos | apply var_h_bound]. Qed.

(** * Variance *)
Variable m : R.
Hypothesis m_spec : mean_hat xh m.
Definition em := m - mean xh.
Lemma em_spec : Rabs em <= e_mu. Proof. now apply e_mu_spec. Qed.
(* the rounded differences *)
Variable d : nat -> R.
Hypothesis d_spec : forall i, (i < n)%nat -> near (xh i - m) (d i).

Definition shift := input_var + e_mu * e_mu.
Definition two_pass_e_v := gamma (n + 5) * (var + shift) + shift + 8 * eta.

Lemma square_err y z : near y z -> Rabs (z * z - y * y) <= (rho ^ 3 - 1) * (y * y) + / 4 * eta.
Proof.
unfold counter_calculus.near; intros H; pose proof (L5 rho_ge) as G; pose proof (L5 rho_ge1) as G1.
assert (A : z * z - y * y = (z - y) * (2 * y) + (z - y) * (z - y)) by ring; rewrite A; clear A.
eapply Rle_trans; [apply Rabs_triang|]; rewrite !Rabs_mult, (Rabs_pos_eq 2) by lra.
set (q := Rabs (z - y)) in *; set (b := Rabs y) in *.
assert (BB : y * y = b * b).
{ unfold b; rewrite <- Rabs_mult, Rabs_pos_eq; [reflexivity | apply Rle_0_sqr]. }
rewrite BB.
assert (B0 : 0 <= b) by apply Rabs_pos; assert (Q0 : 0 <= q) by apply Rabs_pos.
assert (C1 : q * (2 * b) <= (u * b + eta) * (2 * b)) by (apply Rmult_le_compat_r; lra).
assert (C2 : q * q <= (u * b + eta) * (u * b + eta)) by (apply Rmult_le_compat; lra).
assert (R3 : 3 * u + 3 * (u * u) <= rho ^ 3 - 1).
{ assert ((1 + u) ^ 3 <= rho ^ 3) by (apply pow_incr; lra).
  replace ((1 + u) ^ 3) with (1 + 3 * u + 3 * (u * u) + u * u * u) in H0 by (simpl; ring).
  assert (0 <= u * u * u) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra). lra. }
assert (C3 : (3 * u + 3 * (u * u)) * (b * b) <= (rho ^ 3 - 1) * (b * b)) by (apply Rmult_le_compat_r; [apply Rle_0_sqr | exact R3]).
(* 2 b eta (1 + u) <= u b^2 + eta / 8, for eta <= u / 32 *)
assert (C4 : 4 * (b * eta) <= u * (b * b) + / 8 * eta).
{ assert (Sq : 0 <= u * (b - 2 * (eta * / u)) * (b - 2 * (eta * / u))).
  { rewrite Rmult_assoc; apply Rmult_le_pos; [lra | apply Rle_0_sqr]. }
  destruct (Req_dec u 0) as [U|U]; [assert (eta = 0) by lra; rewrite H0; nra|].
  replace (u * (b - 2 * (eta * / u)) * (b - 2 * (eta * / u))) with (u * (b * b) - 4 * (b * eta) + 4 * (eta * (eta * / u))) in Sq
    by (field; exact U).
  assert (eta * / u <= / 32).
  { apply Rmult_le_reg_r with u; [lra|]; rewrite Rmult_assoc, Rinv_l by exact U; lra. }
  assert (eta * (eta * / u) <= eta * / 32) by (apply Rmult_le_compat_l; lra). lra. }
assert (C5 : eta * eta <= / 32 * eta) by (apply Rmult_le_compat_r; lra).
assert (C6 : u * (b * eta) <= 1 * (b * eta)) by (apply Rmult_le_compat_r; [apply Rmult_le_pos; lra | lra]).
assert (0 <= b * eta) by (apply Rmult_le_pos; lra).
assert (0 <= u * u * (b * b)) by (apply Rmult_le_pos; apply Rle_0_sqr).
lra.
Qed.

Theorem two_pass_variance_bound vh : mean_square_hat d vh -> Rabs (vh - var) <= two_pass_e_v - 2 * eta.
Proof.
intros Hv; destruct (mean_square_er d vh Hv) as (_ & _ & _ & B).
set (y := fun i => xh i - m).
assert (EY : mean (fun i => y i * y i) = var_h + em * em).
{ unfold var_h; rewrite (mean_ext _ (fun i => g i * g i + ((- (2 * em)) * g i + em * em)))
    by (intros; unfold y, em; rewrite g_eq; ring).
  rewrite !mean_plus, mean_const, mean_scal, mean_g; ring. }
assert (SD : Rabs (mean (fun i => d i * d i) - mean (fun i => y i * y i))
   <= (rho ^ 3 - 1) * mean (fun i => y i * y i) + / 4 * eta).
{ replace (mean (fun i => d i * d i) - mean (fun i => y i * y i)) with (mean (fun i => d i * d i + (-1) * (y i * y i)))
    by (rewrite mean_plus, mean_scal; ring).
  rewrite <- mean_scal, <- (mean_const (/ 4 * eta)), <- mean_plus.
  eapply Rle_trans; [apply mean_abs|]; apply mean_le; intros i Hi.
  replace (d i * d i + -1 * (y i * y i)) with (d i * d i - y i * y i) by ring; apply square_err, d_spec, Hi. }
set (q := mean (fun i => y i * y i)) in *; set (p := mean (fun i => d i * d i)) in *.
assert (Q0 : 0 <= q) by (apply mean_ge0; intros; apply Rle_0_sqr).
pose proof var_h_bound as VB; pose proof em_spec as EM; pose proof e_mu_ge0; pose proof input_var_ge0; pose proof var_ge0.
apply Rabs_between in VB; apply Rabs_between in EM; apply Rabs_between in SD.
assert (EE : 0 <= em * em <= e_mu * e_mu) by (split; nra).
assert (QV : q <= var + shift) by (unfold shift; lra).
assert (QD : Rabs (q - var) <= shift) by (apply Rabs_le; unfold shift; lra).
pose proof (L5 rho_pow_ge1 (n + 2)) as P1; pose proof (L5 rho_pow_ge1 3) as P3.
pose proof (rho_gamma_short (n + 5) ltac:(lia)) as G5.
destruct (rho_small (n + 2) ltac:(lia)) as (R1 & R2); pose proof n1 as N1.
assert (R4 : rho ^ (n + 2) <= 2).
{ assert (1 * gamma (n + 5) <= INR n * gamma (n + 5)); [|lra].
  apply Rmult_le_compat_r; [|exact N1].
  destruct (gamma_short u eta u_ge0 u_lt1 eta_ge0 (n + 5) n_short); lra. }
assert (B2 : Rabs (vh - q) <= gamma (n + 5) * q + (3 + / 2) * eta).
{ replace (vh - q) with ((vh - p) + (p - q)) by ring; eapply Rle_trans; [apply Rabs_triang|].
  assert (T1 : Rabs (p - q) <= (rho ^ 3 - 1) * q + / 4 * eta) by (apply Rabs_le; lra).
  assert (T2 : (rho ^ (n + 2) - 1) * p <= (rho ^ (n + 2) - 1) * (rho ^ 3 * q + / 4 * eta)) by (apply Rmult_le_compat_l; lra).
  assert (T3 : rho ^ (n + 2) * rho ^ 3 = rho ^ (n + 5)) by (rewrite <- pow_add; f_equal; lia).
  assert (T4 : (rho ^ (n + 5) - 1) * q <= gamma (n + 5) * q) by (apply Rmult_le_compat_r; lra).
  rewrite <- T3 in T4.
  assert (T5 : rho ^ (n + 2) * (/ 4 * eta) <= 2 * (/ 4 * eta)) by (apply Rmult_le_compat_r; lra).
  lra. }
assert (gamma (n + 5) * q <= gamma (n + 5) * (var + shift)).
{ apply Rmult_le_compat_l; [|exact QV]. destruct (gamma_short u eta u_ge0 u_lt1 eta_ge0 (n + 5) n_short); lra. }
replace (vh - var) with ((vh - q) + (q - var)) by ring; eapply Rle_trans; [apply Rabs_triang|].
unfold two_pass_e_v; lra.
Qed.

Definition m_size := Rabs mu + e_mean.
Definition one_pass_e_v := (1 + u) * (gamma (n + 2) * mean (fun i => size i * size i)
    + (1 + u) * (2 * m_size * e_mu + e_mu * e_mu) + u * (m_size * m_size))
  + u * (var + input_var) + input_var + 8 * eta.
(* E[x^2] - m^2, the square rounded or fused *)
Theorem one_pass_variance_bound q vh p : mean_square_hat xh q -> rounded_or_fused u eta (m * m) p ->
  near (q - p) vh -> Rabs (vh - var) <= one_pass_e_v - 2 * eta.
Proof.
intros Hq Hp Hv; pose proof (mean_square_bound xh q Hq) as B.
pose proof em_spec as EM; pose proof e_mu_ge0 as E0; pose proof mean_dl as MD.
pose proof var_h_bound as VB; pose proof input_var_ge0 as I0; pose proof var_ge0 as V0.
set (Q := mean (fun i => xh i * xh i)) in *; set (mx := mean xh).
assert (EV : Q - mx * mx = var_h).
{ unfold var_h, Q; rewrite (mean_ext (fun i => g i * g i) (fun i => xh i * xh i + ((- (2 * mx)) * xh i + mx * mx)))
    by (intros; rewrite g_eq; unfold mx; ring).
  rewrite !mean_plus, mean_const, mean_scal; fold mx; ring. }
assert (MS : Rabs mx <= m_size).
{ unfold mx, m_size; rewrite mean_xh; eapply Rle_trans; [apply Rabs_triang | lra]. }
assert (QS : Q <= mean (fun i => size i * size i)).
{ apply mean_le; intros i Hi; pose proof (size_spec i Hi) as S; apply Rabs_between in S; nra. }
assert (MM : Rabs (m * m - mx * mx) <= 2 * m_size * e_mu + e_mu * e_mu).
{ replace (m * m - mx * mx) with (em * (2 * mx) + em * em) by (unfold em, mx; ring).
  eapply Rle_trans; [apply Rabs_triang|]; rewrite !Rabs_mult, (Rabs_pos_eq 2) by lra.
  pose proof (Rabs_pos em); pose proof (Rabs_pos mx).
  assert (Rabs em * (2 * Rabs mx) <= e_mu * (2 * m_size)) by (apply Rmult_le_compat; lra).
  assert (Rabs em * Rabs em <= e_mu * e_mu) by (apply Rmult_le_compat; lra). lra. }
assert (MX2 : Rabs (mx * mx) <= m_size * m_size).
{ rewrite Rabs_mult; apply Rmult_le_compat; try apply Rabs_pos; assumption. }
assert (P : Rabs (p - mx * mx) <= (1 + u) * (2 * m_size * e_mu + e_mu * e_mu) + u * (m_size * m_size) + eta).
{ pose proof ((L7 rf_error) _ _ Hp) as R.
  replace (p - mx * mx) with ((p - m * m) + (m * m - mx * mx)) by ring; eapply Rle_trans; [apply Rabs_triang|].
  assert (Rabs (m * m) <= Rabs (mx * mx) + Rabs (m * m - mx * mx)).
  { replace (m * m) with (mx * mx + (m * m - mx * mx)) at 1 by ring; apply Rabs_triang. }
  assert (u * Rabs (m * m) <= u * (m_size * m_size + (2 * m_size * e_mu + e_mu * e_mu))) by (apply Rmult_le_compat_l; lra).
  lra. }
assert (G2 : 0 <= gamma (n + 2)).
{ apply (L5 gamma_ge0); pose proof (L5 short_nu (n + 5) n_short).
  assert (INR (n + 2) * u <= INR (n + 5) * u) by (apply Rmult_le_compat_r; [lra | apply le_INR; lia]); lra. }
assert (Q0 : gamma (n + 2) * Q <= gamma (n + 2) * mean (fun i => size i * size i)) by (apply Rmult_le_compat_l; lra).
set (core := gamma (n + 2) * mean (fun i => size i * size i)
    + (1 + u) * (2 * m_size * e_mu + e_mu * e_mu) + u * (m_size * m_size)) in *.
assert (D1 : Rabs (q - p - var_h) <= core + 4 * eta).
{ rewrite <- EV; replace (q - p - (Q - mx * mx)) with ((q - Q) - (p - mx * mx)) by ring.
  unfold Rminus at 1; eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_Ropp; unfold core; lra. }
pose proof (L5 near_close _ _ _ _ Hv D1) as D2.
apply Rabs_between in VB.
assert (VH : Rabs var_h <= var + input_var) by (apply Rabs_le; lra).
assert (u * Rabs var_h <= u * (var + input_var)) by (apply Rmult_le_compat_l; lra).
assert (DV : Rabs (var_h - var) <= input_var) by (apply Rabs_le; lra).
replace (vh - var) with ((vh - var_h) + (var_h - var)) by ring; eapply Rle_trans; [apply Rabs_triang|].
assert (u * eta <= / 4 * eta).
{ apply Rmult_le_compat_r; [lra|]; pose proof (L5 short_nu (n + 5) n_short) as S; rewrite plus_INR in S.
  assert (1 * u <= (INR n + INR 5) * u) by (apply Rmult_le_compat_r; [lra|]; pose proof n1; pose proof (pos_INR 5); lra). lra. }
unfold one_pass_e_v; fold core; lra.
Qed.

(** * The root *)
Variables (vh ah rh e_v gr : R).
Hypothesis vh_spec : Rabs (vh - var) <= e_v - 2 * eta.
Hypothesis ah_spec : near (vh + eps) ah.
Definition alpha := ((1 + u) * e_v + u * a) / a.
Hypothesis alpha_lt1 : alpha < 1.
Hypothesis gr_spec : 0 <= gr <= 1.
Hypothesis rh_spec : 0 < ah -> Rabs (rh * sqrt ah - 1) <= gr.
Definition RR := (1 + gr) / sqrt (1 - alpha) - 1.

Lemma alpha_ge0 : 0 <= alpha.
Proof.
unfold alpha, Rdiv; apply Rmult_le_pos; [|left; now apply Rinv_0_lt_compat].
pose proof (Rabs_pos (vh - var)).
assert (0 <= (1 + u) * e_v) by (apply Rmult_le_pos; lra).
assert (0 <= u * a) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma ah_bounds : a * (1 - alpha) <= ah <= a * (1 + alpha).
Proof.
assert (E : a * alpha = (1 + u) * e_v + u * a) by (unfold alpha; field; lra).
assert (V : Rabs (vh + eps - a) <= e_v - 2 * eta) by (unfold a; replace (vh + eps - (var + eps)) with (vh - var) by ring; exact vh_spec).
pose proof (L5 near_close _ _ _ _ ah_spec V) as B; rewrite (Rabs_pos_eq a) in B by lra.
apply Rabs_between in B.
assert (0 <= u * eta) by (apply Rmult_le_pos; lra).
rewrite Rmult_minus_distr_l, Rmult_plus_distr_l, E; lra.
Qed.
Lemma ah_pos : 0 < ah.
Proof.
destruct ah_bounds as (B & _); assert (0 < a * (1 - alpha)) by (apply Rmult_lt_0_compat; lra). lra.
Qed.
Lemma r_pos : 0 < r. Proof. apply Rinv_0_lt_compat, sqrt_lt_R0, a_pos. Qed.

Theorem root_bound : Rabs (rh - r) <= RR * r.
Proof.
pose proof ah_pos as AP; pose proof (rh_spec AP) as H; pose proof alpha_ge0 as A0; destruct ah_bounds as (B1 & B2).
set (s := sqrt ah) in *; set (sa := sqrt a); set (sm := sqrt (1 - alpha)); set (sp := sqrt (1 + alpha)).
assert (S0 : 0 < s) by (apply sqrt_lt_R0; exact AP).
assert (Sa : 0 < sa) by (apply sqrt_lt_R0; exact a_pos).
assert (Sm : 0 < sm) by (apply sqrt_lt_R0; lra).
assert (Sp : 0 < sp) by (apply sqrt_lt_R0; lra).
assert (L : sa * sm <= s) by (unfold sa, sm, s; rewrite <- sqrt_mult by lra; apply sqrt_le_1_alt; exact B1).
assert (U : s <= sa * sp) by (unfold sa, sp, s; rewrite <- sqrt_mult by lra; apply sqrt_le_1_alt; exact B2).
apply Rabs_between in H.
set (p := / sm); set (q := / sp).
assert (P0 : 0 < p) by (now apply Rinv_0_lt_compat); assert (Q0 : 0 < q) by (now apply Rinv_0_lt_compat).
assert (IS : rh = (rh * s) * / s) by (field; lra).
assert (I1 : / s <= r * p).
{ unfold r, p; fold sa; rewrite <- Rinv_mult_distr by lra; apply Rinv_le_contravar; [apply Rmult_lt_0_compat|]; lra. }
assert (I2 : r * q <= / s).
{ unfold r, q; fold sa; rewrite <- Rinv_mult_distr by lra; apply Rinv_le_contravar; [|exact U]; lra. }
assert (S1 : 0 < / s) by (now apply Rinv_0_lt_compat).
pose proof r_pos as RP.
assert (Up : rh <= (1 + gr) * (r * p)) by (rewrite IS; apply Rmult_le_compat; lra).
assert (Lo : (1 - gr) * (r * q) <= rh).
{ rewrite IS; apply Rmult_le_compat; try lra; apply Rmult_le_pos; lra. }
(* p + q >= 2 sqrt(pq) >= 2 and p >= q *)
assert (PQ1 : q <= p).
{ unfold p, q; apply Rinv_le_contravar; [exact Sm|]; apply sqrt_le_1_alt; lra. }
assert (PQ2 : 1 <= p * q).
{ unfold p, q; rewrite <- Rinv_mult_distr by lra; apply Rle_trans with (/ 1); [lra | apply Rinv_le_contravar; [now apply Rmult_lt_0_compat|]].
  unfold sm, sp; rewrite <- sqrt_mult by lra; pose proof (Rle_0_sqr alpha) as X; unfold Rsqr in X.
  apply Rle_trans with (sqrt 1); [apply sqrt_le_1_alt; lra | rewrite sqrt_1; lra]. }
assert (PQ : 2 <= p + q).
{ destruct (Rle_or_lt 2 (p + q)) as [X|X]; [exact X|exfalso].
  pose proof (Rle_0_sqr (p - q)) as Y; unfold Rsqr in Y.
  assert ((p + q) * (p + q) < 2 * 2) by (apply Rmult_le_0_lt_compat; lra). lra. }
assert (RE : RR = (1 + gr) * p - 1) by reflexivity.
rewrite RE; apply Rabs_le.
assert (T1 : (2 - ((1 - gr) * q + (1 + gr) * p)) * r <= 0).
{ assert (0 <= gr * (p - q)) by (apply Rmult_le_pos; lra).
  assert (0 <= ((1 - gr) * q + (1 + gr) * p - 2) * r) by (apply Rmult_le_pos; lra). lra. }
lra.
Qed.

(** * The result *)
Variables (wt bias : nat -> R).
Hypothesis rh_applies : Rabs (rh - r) <= RR * r.      (* root_bound *)
Hypothesis u_small : u <= / 16.
Definition rel := rh * sqrt a - 1.
Definition spread i := e i * (1 - 2 / INR n) + e_mean.
Definition moved i := spread i + e_mu.
Definition gain i := Rabs (wt i) * r.
Definition common i := gain i * (RR * Rabs (f i) + (1 + RR) * moved i).
Definition product i := gain i * (1 + RR) * (Rabs (f i) + moved i).
Definition exact i := wt i * (r * f i) + bias i.
Definition scale_size i := (1 + Rabs (wt i)) * (1 + (1 + RR) * r) * (1 + (Rabs (f i) + moved i)).
Definition local i := gamma 3 * (1 + u) * product i + u * (Rabs (exact i) + common i) + 4 * eta * scale_size i.

(* difference, root and weight multiplied in any order, then the bias *)
Definition scaled d rh w t :=
  (exists t1, near (rh * d) t1 /\ rounded_or_fused u eta (w * t1) t) \/
  (exists t1, near (w * d) t1 /\ rounded_or_fused u eta (rh * t1) t) \/
  (exists t1, near (w * rh) t1 /\ rounded_or_fused u eta (d * t1) t).
Definition normalized_hat i y := exists t, scaled (d i) rh (wt i) t /\ near (t + bias i) y.

Lemma r_sqrt : r * sqrt a = 1.
Proof. unfold r; apply Rinv_l; pose proof (sqrt_lt_R0 _ a_pos); lra. Qed.
Lemma rh_rel : rh = (1 + rel) * r.
Proof. unfold rel, r; field; pose proof (sqrt_lt_R0 _ a_pos); lra. Qed.
Lemma rel_spec : Rabs rel <= RR.
Proof.
pose proof r_pos; replace rel with ((rh - r) * / r) by (rewrite rh_rel at 1; field; lra).
rewrite Rabs_mult, (Rabs_pos_eq (/ r)) by (left; apply Rinv_0_lt_compat; lra).
apply Rmult_le_reg_r with r; [lra|]; rewrite Rmult_assoc, Rinv_l by lra; lra.
Qed.
Lemma D_eq i : xh i - m = f i + ((dl i - mean dl) - em).
Proof. pose proof (g_eq i) as X; unfold g in X; unfold em; lra. Qed.
Lemma moved_spec i : (i < n)%nat -> Rabs ((dl i - mean dl) - em) <= moved i.
Proof.
intros Hi; pose proof em_spec; unfold moved, Rminus at 1.
eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_Ropp; apply Rplus_le_compat; [|exact H].
(* the mean of the others *)
assert (S : forall N, (N <= n)%nat -> Rabs (sumn dl N - (if Nat.ltb i N then dl i else 0)) <=
   sumn e N - (if Nat.ltb i N then e i else 0)).
{ induction N as [|N IH]; intros HN; [simpl; rewrite Rminus_0_r, Rabs_R0; lra|]; specialize (IH ltac:(lia)).
  cbn [sumn]; pose proof (dl_spec N ltac:(lia)) as B.
  destruct (Nat.ltb_spec i N) as [L|L]; destruct (Nat.ltb_spec i (S N)) as [L'|L']; try lia.
  - replace (sumn dl N + dl N - dl i) with (sumn dl N - dl i + dl N) by ring.
    eapply Rle_trans; [apply Rabs_triang | lra].
  - assert (i = N) by lia; subst N; replace (sumn dl i + dl i - dl i) with (sumn dl i - 0) by ring; lra.
  - replace (sumn dl N + dl N - 0) with (sumn dl N - 0 + dl N) by ring.
    eapply Rle_trans; [apply Rabs_triang | lra]. }
specialize (S n (le_n n)); destruct (Nat.ltb_spec i n); [|lia].
pose proof n1 as N1; pose proof n_inv as I0; unfold spread, e_mean, mean, Rdiv.
replace (dl i - sumn dl n * / INR n) with ((1 - / INR n) * dl i + - ((sumn dl n - dl i) * / INR n)) by (field; lra).
eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_Ropp, !Rabs_mult.
assert (/ INR n <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
rewrite (Rabs_pos_eq (1 - / INR n)), (Rabs_pos_eq (/ INR n)) by lra.
assert ((1 - / INR n) * Rabs (dl i) <= (1 - / INR n) * e i) by (apply Rmult_le_compat_l; [lra | now apply dl_spec]).
assert (Rabs (sumn dl n - dl i) * / INR n <= (sumn e n - e i) * / INR n) by (apply Rmult_le_compat_r; lra).
lra.
Qed.
Lemma RR_ge0 : 0 <= RR.
Proof. pose proof rel_spec; pose proof (Rabs_pos rel); lra. Qed.

Lemma er_mul2 x1 r1 h1 y1 x2 r2 h2 y2 a1 a2 : er x1 a1 r1 h1 y1 -> er x2 a2 r2 h2 y2 ->
  er (x1 * x2) (a1 * a2) (r1 * r2) (r1 * h2 + r2 * h1 + h1 * h2) (y1 * y2).
Proof.
intros (A1 & A2 & A3 & A4) (B1 & B2 & B3 & B4); pose proof (Rabs_pos x1); pose proof (Rabs_pos x2).
pose proof (Rabs_pos (y1 - x1)); pose proof (Rabs_pos (y2 - x2)).
unfold er; rewrite Rabs_mult; split; [apply Rmult_le_compat; lra|]; split; [apply Rmult_le_compat; lra|].
assert (0 <= r1 * h2) by (apply Rmult_le_pos; lra); assert (0 <= r2 * h1) by (apply Rmult_le_pos; lra).
assert (0 <= h1 * h2) by (apply Rmult_le_pos; lra); split; [lra|].
replace (y1 * y2 - x1 * x2) with (x1 * (y2 - x2) + (y1 - x1) * x2 + (y1 - x1) * (y2 - x2)) by ring.
eapply Rle_trans; [apply Rabs_triang|]; eapply Rle_trans; [apply Rplus_le_compat_r, Rabs_triang|]; rewrite !Rabs_mult.
assert (Rabs x1 * Rabs (y2 - x2) <= a1 * (r2 - a2 + h2)) by (apply Rmult_le_compat; lra).
assert (Rabs (y1 - x1) * Rabs x2 <= (r1 - a1 + h1) * a2) by (apply Rmult_le_compat; lra).
assert (Rabs (y1 - x1) * Rabs (y2 - x2) <= (r1 - a1 + h1) * (r2 - a2 + h2)) by (apply Rmult_le_compat; lra).
lra.
Qed.
Lemma rho_2 : rho * rho <= 3 / 2 /\ rho <= 5 / 4.
Proof.
assert (R : rho <= 16 / 15).
{ unfold counter_calculus.rho; replace (16 / 15) with (/ (15 / 16)) by field; apply Rinv_le_contravar; lra. }
pose proof (L5 rho_ge1); split; [nra | lra].
Qed.

Lemma scaled_bound D dh w t : near D dh -> scaled dh rh w t ->
  Rabs (t - w * (rh * D)) <= gamma 3 * (Rabs w * (Rabs rh * Rabs D)) + 2 * eta * ((1 + Rabs w) * (1 + Rabs rh) * (1 + Rabs D)).
Proof.
intros N S; pose proof (E8 er_near _ _ _ _ _ _ (E8 er_exact D) N) as X0.
destruct rho_2 as (R2 & R1); pose proof (L5 rho_ge1) as R0.
pose proof (Rabs_pos w) as W0; pose proof (Rabs_pos rh) as H0; pose proof (Rabs_pos D) as D0.
set (P := Rabs w * (Rabs rh * Rabs D)); set (Z := (1 + Rabs w) * (1 + Rabs rh) * (1 + Rabs D)).
assert (P0 : 0 <= P) by (unfold P; apply Rmult_le_pos; [lra | apply Rmult_le_pos; lra]).
assert (WH : 0 <= Rabs w * Rabs rh) by (apply Rmult_le_pos; lra).
assert (ZZ : 1 + Rabs w + Rabs rh + Rabs D + Rabs w * Rabs rh <= Z).
{ unfold Z; assert (0 <= Rabs w * Rabs D) by (apply Rmult_le_pos; lra).
  assert (0 <= Rabs rh * Rabs D) by (apply Rmult_le_pos; lra).
  assert (0 <= Rabs w * Rabs rh * Rabs D) by (apply Rmult_le_pos; lra). lra. }
assert (E1 : eta <= / 32 * / 16) by lra.
enough (X : er (w * (rh * D)) P (rho ^ 3 * P) (2 * eta * Z) t).
{ destruct X as (_ & _ & _ & X).
  assert (G : rho ^ 3 - 1 <= gamma 3) by (apply (L5 rho_gamma); simpl; lra).
  assert ((rho ^ 3 - 1) * P <= gamma 3 * P) by (apply Rmult_le_compat_r; lra). lra. }
assert (HB : forall q, q <= 3 / 2 * Rabs w * Rabs rh + 5 / 4 * (Rabs w + Rabs rh) + 3 / 2 * Rabs D + / 8 + 1 ->
   eta * q <= 2 * eta * Z).
{ intros q Hq; replace (2 * eta * Z) with (eta * (2 * Z)) by ring; apply Rmult_le_compat_l; lra. }
destruct S as [(t1 & N1 & N2)|[(t1 & N1 & N2)|(t1 & N1 & N2)]].
- apply (E8 er_scale rh) in X0; apply (E8 er_near) with (z := t1) in X0; [|exact N1].
  apply (E8 er_scale w) in X0; apply (E8 er_rf) with (z := t) in X0; [|exact N2].
  eapply (E8 er_weak); [exact X0 | right; unfold P; simpl; ring |].
  replace (rho * (Rabs w * (rho * (Rabs rh * (rho * 0 + eta)) + eta)) + eta)
    with (eta * (rho * rho * (Rabs w * Rabs rh) + rho * Rabs w + 1)) by ring.
  apply HB; assert (rho * rho * (Rabs w * Rabs rh) <= 3 / 2 * (Rabs w * Rabs rh)) by (apply Rmult_le_compat_r; lra).
  assert (rho * Rabs w <= 5 / 4 * Rabs w) by (apply Rmult_le_compat_r; lra). lra.
- apply (E8 er_scale w) in X0; apply (E8 er_near) with (z := t1) in X0; [|exact N1].
  apply (E8 er_scale rh) in X0; apply (E8 er_rf) with (z := t) in X0; [|exact N2].
  replace (rh * (w * D)) with (w * (rh * D)) in X0 by ring.
  replace (Rabs rh * (Rabs w * Rabs D)) with P in X0 by (unfold P; ring).
  eapply (E8 er_weak); [exact X0 | right; unfold P; simpl; ring |].
  replace (rho * (Rabs rh * (rho * (Rabs w * (rho * 0 + eta)) + eta)) + eta)
    with (eta * (rho * rho * (Rabs w * Rabs rh) + rho * Rabs rh + 1)) by ring.
  apply HB; assert (rho * rho * (Rabs w * Rabs rh) <= 3 / 2 * (Rabs w * Rabs rh)) by (apply Rmult_le_compat_r; lra).
  assert (rho * Rabs rh <= 5 / 4 * Rabs rh) by (apply Rmult_le_compat_r; lra). lra.
- pose proof (E8 er_near _ _ _ _ _ _ (E8 er_exact (w * rh)) N1) as X1.
  pose proof (er_mul2 _ _ _ _ _ _ _ _ _ _ X0 X1) as X; apply (E8 er_rf) with (z := t) in X; [|exact N2].
  replace (D * (w * rh)) with (w * (rh * D)) in X by ring.
  replace (Rabs D * Rabs (w * rh)) with P in X by (rewrite Rabs_mult; unfold P; ring).
  eapply (E8 er_weak); [exact X | right; rewrite Rabs_mult; unfold P; simpl; ring |].
  rewrite Rabs_mult.
  replace (rho * (rho * Rabs D * (rho * 0 + eta) + rho * (Rabs w * Rabs rh) * (rho * 0 + eta) + (rho * 0 + eta) * (rho * 0 + eta)) + eta)
    with (eta * (rho * rho * Rabs D + rho * rho * (Rabs w * Rabs rh) + rho * eta + 1)) by ring.
  apply HB; assert (rho * rho * (Rabs w * Rabs rh) <= 3 / 2 * (Rabs w * Rabs rh)) by (apply Rmult_le_compat_r; lra).
  assert (rho * rho * Rabs D <= 3 / 2 * Rabs D) by (apply Rmult_le_compat_r; lra).
  assert (rho * eta <= 5 / 4 * (/ 32 * / 16)) by (apply Rmult_le_compat; lra). lra.
Qed.

(* the affine image of the computed mean and root *)
Definition target i := wt i * (rh * (xh i - m)) + bias i.
Lemma rh_size : Rabs rh <= (1 + RR) * r.
Proof.
pose proof rel_spec as RS; pose proof r_pos as RP; pose proof RR_ge0 as R0.
rewrite rh_rel, Rabs_mult, (Rabs_pos_eq r) by lra; apply Rmult_le_compat_r; [lra|].
eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_R1; lra.
Qed.
Lemma target_size i : (i < n)%nat -> Rabs (target i) <= Rabs (exact i) + common i.
Proof.
intros Hi; pose proof rel_spec as RS; pose proof r_pos as RP; pose proof (moved_spec i Hi) as MS.
replace (target i) with (exact i + wt i * (r * (rel * f i + (1 + rel) * ((dl i - mean dl) - em)))).
2:{ unfold target, exact; rewrite D_eq, rh_rel; ring. }
eapply Rle_trans; [apply Rabs_triang|]; apply Rplus_le_compat_l.
unfold common, gain; rewrite Rabs_mult, Rmult_assoc; apply Rmult_le_compat_l; [apply Rabs_pos|].
rewrite Rabs_mult, (Rabs_pos_eq r) by lra; apply Rmult_le_compat_l; [lra|].
eapply Rle_trans; [apply Rabs_triang|]; rewrite !Rabs_mult; apply Rplus_le_compat.
- apply Rmult_le_compat_r; [apply Rabs_pos | exact RS].
- apply Rmult_le_compat; try apply Rabs_pos; [|exact MS].
  eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_R1; lra.
Qed.

Theorem local_spec i y : (i < n)%nat -> normalized_hat i y -> Rabs (y - target i) <= local i.
Proof.
intros Hi (t & Sc & N); unfold target.
pose proof RR_ge0 as R0; pose proof r_pos as RP; pose proof rh_size as RH.
pose proof (scaled_bound (xh i - m) (d i) (wt i) t (d_spec i Hi) Sc) as B.
pose proof (moved_spec i Hi) as MS.
assert (DD : Rabs (xh i - m) <= Rabs (f i) + moved i).
{ rewrite D_eq; eapply Rle_trans; [apply Rabs_triang | lra]. }
pose proof (Rabs_pos (wt i)) as W0; pose proof (Rabs_pos rh) as H0; pose proof (Rabs_pos (xh i - m)) as D0.
pose proof (Rabs_pos (f i)) as F0.
assert (M0 : 0 <= moved i) by (pose proof (Rabs_pos ((dl i - mean dl) - em)); lra).
assert (PB : Rabs (wt i) * (Rabs rh * Rabs (xh i - m)) <= product i).
{ unfold product, gain; replace (Rabs (wt i) * r * (1 + RR) * (Rabs (f i) + moved i))
    with (Rabs (wt i) * ((1 + RR) * r * (Rabs (f i) + moved i))) by ring.
  apply Rmult_le_compat_l; [lra|]; apply Rmult_le_compat; lra. }
assert (SB : (1 + Rabs (wt i)) * (1 + Rabs rh) * (1 + Rabs (xh i - m)) <= scale_size i).
{ unfold scale_size; apply Rmult_le_compat; [apply Rmult_le_pos; lra | lra | apply Rmult_le_compat_l; lra | lra]. }
assert (G3 : 0 <= gamma 3) by (apply (L5 gamma_ge0); simpl; lra).
assert (B2 : Rabs (t - wt i * (rh * (xh i - m))) <= gamma 3 * product i + 2 * eta * scale_size i).
{ eapply Rle_trans; [exact B|]; apply Rplus_le_compat; apply Rmult_le_compat_l; lra. }
assert (B3 : Rabs (t + bias i - (wt i * (rh * (xh i - m)) + bias i)) <= gamma 3 * product i + 2 * eta * scale_size i).
{ replace (t + bias i - (wt i * (rh * (xh i - m)) + bias i)) with (t - wt i * (rh * (xh i - m))) by ring; exact B2. }
pose proof (L5 near_close _ _ _ _ N B3) as B4.
pose proof (target_size i Hi) as CB; unfold target in CB.
assert (u * Rabs (wt i * (rh * (xh i - m)) + bias i) <= u * (Rabs (exact i) + common i)) by (apply Rmult_le_compat_l; lra).
assert (S1 : 1 <= scale_size i).
{ unfold scale_size; assert (0 <= (1 + RR) * r) by (apply Rmult_le_pos; lra).
  assert (1 * 1 <= (1 + Rabs (wt i)) * (1 + (1 + RR) * r)) by (apply Rmult_le_compat; lra).
  assert (1 * 1 <= (1 + Rabs (wt i)) * (1 + (1 + RR) * r) * (1 + (Rabs (f i) + moved i))) by (apply Rmult_le_compat; lra).
  lra. }
assert (eta * 1 <= eta * scale_size i) by (apply Rmult_le_compat_l; lra).
assert (u * (eta * scale_size i) <= / 16 * (eta * scale_size i)) by (apply Rmult_le_compat_r; [apply Rmult_le_pos|]; lra).
unfold local; lra.
Qed.

(** ** LayerNorm folded into x s + (bias - m s), s = wt rh; m s and x s rounded or fused *)
Definition folded_hat i y := exists s p c t, near (wt i * rh) s /\ rounded_or_fused u eta (m * s) p /\
  near (bias i - p) c /\ rounded_or_fused u eta (xh i * s) t /\ near (t + c) y.
Definition reach i := size i + (m_size + e_mu).        (* at least |xh i| + |m| *)
Definition folded_size i := gain i * (1 + RR) * (size i + 2 * (m_size + e_mu)) + Rabs (bias i).
Definition any_scale_size i := (1 + Rabs (wt i)) * (1 + (1 + RR) * r) * (1 + reach i).
(* for either way of computing it *)
Definition any_local i := gamma 3 * (1 + u) * product i + u * (Rabs (exact i) + common i)
  + gamma 2 * folded_size i + 8 * eta * any_scale_size i.
Lemma m_spec' : Rabs m <= m_size + e_mu.
Proof.
replace m with (mu + mean dl + em) by (unfold em; rewrite mean_xh; ring).
eapply Rle_trans; [apply Rabs_triang|]; pose proof em_spec; pose proof mean_dl; pose proof (Rabs_triang mu (mean dl)).
unfold m_size; lra.
Qed.
Lemma gamma_2 : 2 * u <= gamma 2.
Proof.
unfold running_bound.gamma; simpl; apply Rmult_le_reg_r with (1 - 2 * u); [lra|].
replace ((1 + 1) * u / (1 - (1 + 1) * u) * (1 - 2 * u)) with (2 * u) by (field; lra).
assert (0 <= u * u) by (apply Rmult_le_pos; lra); lra.
Qed.
Lemma gamma_3 : 3 * u <= gamma 3.
Proof.
unfold running_bound.gamma; simpl; apply Rmult_le_reg_r with (1 - 3 * u); [lra|].
replace ((1 + 1 + 1) * u / (1 - (1 + 1 + 1) * u) * (1 - 3 * u)) with (3 * u) by (field; lra).
assert (0 <= u * u) by (apply Rmult_le_pos; lra); lra.
Qed.
Lemma gain_size i z b : 0 <= z -> z <= b -> Rabs (wt i * rh) * z <= gain i * (1 + RR) * b.
Proof.
intros Z0 Zb; pose proof rh_size as RH; pose proof (Rabs_pos (wt i)); pose proof (Rabs_pos rh); pose proof r_pos; pose proof RR_ge0.
rewrite Rabs_mult; unfold gain; replace (Rabs (wt i) * r * (1 + RR)) with (Rabs (wt i) * ((1 + RR) * r)) by ring.
apply Rmult_le_compat; [apply Rmult_le_pos; lra | exact Z0 | apply Rmult_le_compat_l; lra | exact Zb].
Qed.
Lemma any_scale_size_ge i : (i < n)%nat -> 0 <= reach i /\ 1 + reach i <= any_scale_size i.
Proof.
intros Hi; pose proof (size_spec i Hi); pose proof (Rabs_pos (xh i)); pose proof m_spec'; pose proof (Rabs_pos m).
pose proof (Rabs_pos (wt i)); pose proof r_pos; pose proof RR_ge0.
assert (R0 : 0 <= reach i) by (unfold reach; lra); split; [exact R0|].
unfold any_scale_size; assert (0 <= (1 + RR) * r) by (apply Rmult_le_pos; lra).
assert (1 * 1 <= (1 + Rabs (wt i)) * (1 + (1 + RR) * r)) by (apply Rmult_le_compat; lra).
assert (1 * (1 + reach i) <= (1 + Rabs (wt i)) * (1 + (1 + RR) * r) * (1 + reach i)) by (apply Rmult_le_compat_r; lra). lra.
Qed.

Theorem folded_spec i y : (i < n)%nat -> folded_hat i y -> Rabs (y - target i) <= any_local i.
Proof.
intros Hi (s & p & c & t & Ns & Np & Nc & Nt & N); unfold target.
pose proof (target_size i Hi) as TS; unfold target in TS.
apply ((L7 rf_error)) in Np; apply ((L7 rf_error)) in Nt; unfold counter_calculus.near in Ns, Nc.
set (S := wt i * rh) in *; replace (wt i * (rh * (xh i - m))) with (S * (xh i - m)) in * by (unfold S; ring).
pose proof (size_spec i Hi) as XS; pose proof m_spec' as MS; destruct (any_scale_size_ge i Hi) as (RG & ZG).
pose proof (moved_spec i Hi) as MV.
assert (FS : Rabs (xh i - m) <= Rabs (f i) + moved i).
{ rewrite D_eq; eapply Rle_trans; [apply Rabs_triang | lra]. }
assert (FR : Rabs (xh i - m) <= Rabs (xh i) + Rabs m).
{ unfold Rminus; eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_Ropp; lra. }
pose proof (gain_size i (Rabs (xh i - m)) _ (Rabs_pos _) FS) as GP.
pose proof (gain_size i (Rabs (xh i)) _ (Rabs_pos _) XS) as GX.
pose proof (gain_size i (Rabs m) _ (Rabs_pos _) MS) as GM.
replace (gain i * (1 + RR) * (Rabs (f i) + moved i)) with (product i) in GP by reflexivity.
fold S in GP, GX, GM.
set (a := Rabs S) in *; set (X := Rabs (xh i)) in *; set (Mm := Rabs m) in *; set (F := Rabs (xh i - m)) in *.
assert (A0 : 0 <= a) by apply Rabs_pos; assert (X0 : 0 <= X) by apply Rabs_pos; assert (M0 : 0 <= Mm) by apply Rabs_pos.
assert (F0 : 0 <= F) by apply Rabs_pos; pose proof (Rabs_pos (bias i)) as B0.
assert (SS : Rabs s <= (1 + u) * a + eta).
{ replace s with (S + (s - S)) by ring; eapply Rle_trans; [apply Rabs_triang|]; fold a; lra. }
pose proof (Rabs_pos s) as S0.
rewrite Rabs_mult in Np, Nt; fold Mm in Np; fold X in Nt.
(* every product as an atom *)
assert (E1 : Rabs ((s - S) * (xh i - m)) <= u * (a * F) + eta * F).
{ rewrite Rabs_mult; fold F; replace (u * (a * F) + eta * F) with ((u * a + eta) * F) by ring; apply Rmult_le_compat_r; assumption. }
assert (XSs : X * Rabs s <= (1 + u) * (a * X) + eta * X).
{ replace ((1 + u) * (a * X) + eta * X) with (X * ((1 + u) * a + eta)) by ring; apply Rmult_le_compat_l; assumption. }
assert (MSs : Mm * Rabs s <= (1 + u) * (a * Mm) + eta * Mm).
{ replace ((1 + u) * (a * Mm) + eta * Mm) with (Mm * ((1 + u) * a + eta)) by ring; apply Rmult_le_compat_l; assumption. }
assert (aX0 : 0 <= a * X) by (now apply Rmult_le_pos); assert (aM0 : 0 <= a * Mm) by (now apply Rmult_le_pos).
assert (aF0 : 0 <= a * F) by (now apply Rmult_le_pos).
assert (hX0 : 0 <= eta * X) by (now apply Rmult_le_pos); assert (hM0 : 0 <= eta * Mm) by (now apply Rmult_le_pos).
assert (hF0 : 0 <= eta * F) by (now apply Rmult_le_pos).
assert (sc : forall k z, 0 <= z -> 0 <= k <= / 16 -> 0 <= k * z <= / 16 * z).
{ intros k z Hz Hk; split; [apply Rmult_le_pos; lra | apply Rmult_le_compat_r; lra]. }
assert (U0 : 0 <= u <= / 16) by lra.
assert (mono : forall z z', z <= z' -> u * z <= u * z') by (intros; apply Rmult_le_compat_l; lra).
assert (PP : Rabs p <= (1 + u) * (Mm * Rabs s) + eta).
{ replace p with (m * s + (p - m * s)) by ring; eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_mult; fold Mm; lra. }
assert (CP : Rabs (c - (bias i - p)) <= u * (Rabs (bias i) + Rabs p) + eta).
{ eapply Rle_trans; [exact Nc|]; apply Rplus_le_compat_r, mono.
  unfold Rminus; eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_Ropp; lra. }
pose proof (mono _ _ XSs) as UX; pose proof (mono _ _ MSs) as UM; pose proof (mono _ _ PP) as UP.
pose proof (mono _ _ UM) as UUM.
(* the sum of all errors but the last rounding *)
assert (E0 : Rabs (t + c - (S * (xh i - m) + bias i)) <=
   u * (a * F) + 2 * (u * (a * X)) * (9 / 16) + 4 * (u * (a * Mm)) * (5 / 8) + u * Rabs (bias i)
   + eta * (3 + / 8) + eta * F + / 8 * (eta * X) + / 4 * (eta * Mm)).
{ replace (t + c - (S * (xh i - m) + bias i))
    with (((t - xh i * s) + (c - (bias i - p))) + (- (p - m * s) + (s - S) * (xh i - m))) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (Rabs (t - xh i * s + (c - (bias i - p))) <= Rabs (t - xh i * s) + Rabs (c - (bias i - p))) by apply Rabs_triang.
  assert (Rabs (- (p - m * s) + (s - S) * (xh i - m)) <= Rabs (p - m * s) + Rabs ((s - S) * (xh i - m))).
  { eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_Ropp; lra. }
  pose proof (sc u (u * (a * X)) ltac:(apply Rmult_le_pos; lra) U0) as T1.
  pose proof (sc u (u * (a * Mm)) ltac:(apply Rmult_le_pos; lra) U0) as T2.
  pose proof (sc u (u * (u * (a * Mm))) ltac:(apply Rmult_le_pos; [lra | apply Rmult_le_pos; lra]) U0) as T3.
  pose proof (sc u (eta * X) hX0 U0) as T4; pose proof (sc u (eta * Mm) hM0 U0) as T5.
  pose proof (sc u (u * (eta * Mm)) ltac:(apply Rmult_le_pos; lra) U0) as T6.
  pose proof (sc u eta eta_ge0 U0) as T7.
  lra. }
pose proof (L5 near_close _ _ _ _ N E0) as B; clear E0.
eapply Rle_trans; [exact B|]; clear B.
pose proof (mono _ _ TS) as UT.
pose proof gamma_2 as G2; pose proof gamma_3 as G3.
assert (P0 : 0 <= product i) by lra.
assert (Q1 : 3 * u * (1 + u) * product i <= gamma 3 * (1 + u) * product i).
{ apply Rmult_le_compat_r; [exact P0|]; apply Rmult_le_compat_r; lra. }
set (gx := gain i * (1 + RR) * size i) in *; set (gm := gain i * (1 + RR) * (m_size + e_mu)) in *.
assert (FE : folded_size i = gx + 2 * gm + Rabs (bias i)) by (unfold folded_size, gx, gm; ring).
assert (Q2 : 2 * u * folded_size i <= gamma 2 * folded_size i) by (apply Rmult_le_compat_r; [rewrite FE; lra | exact G2]).
rewrite FE in Q2 at 1.
assert (Q3 : eta * (1 + reach i) <= eta * any_scale_size i) by (apply Rmult_le_compat_l; lra).
assert (Q4 : eta * (X + Mm) <= eta * reach i) by (apply Rmult_le_compat_l; unfold reach; lra).
assert (Q5 : eta * F <= eta * reach i) by (apply Rmult_le_compat_l; unfold reach; lra).
pose proof (mono _ _ GP) as V1; pose proof (mono _ _ GX) as V2; pose proof (mono _ _ GM) as V3.
assert (0 <= u * product i) by (apply Rmult_le_pos; lra).
assert (0 <= u * gx) by (apply Rmult_le_pos; lra). assert (0 <= u * gm) by (apply Rmult_le_pos; lra).
assert (0 <= u * Rabs (bias i)) by (apply Rmult_le_pos; lra).
pose proof (sc u (u * (a * F)) ltac:(apply Rmult_le_pos; lra) U0) as T0.
pose proof (sc u (u * (a * X)) ltac:(apply Rmult_le_pos; lra) U0) as T1.
pose proof (sc u (u * (a * Mm)) ltac:(apply Rmult_le_pos; lra) U0) as T2.
pose proof (sc u (u * Rabs (bias i)) ltac:(apply Rmult_le_pos; lra) U0) as T3.
pose proof (sc u (u * product i) ltac:(apply Rmult_le_pos; lra) U0) as T8.
pose proof (sc u (eta * X) hX0 U0) as T4; pose proof (sc u (eta * Mm) hM0 U0) as T5.
pose proof (sc u (eta * F) hF0 U0) as T6; pose proof (sc u eta eta_ge0 U0) as T7.
unfold any_local; lra.
Qed.

Theorem local_any i : (i < n)%nat -> local i <= any_local i.
Proof.
intros Hi; destruct (any_scale_size_ge i Hi) as (RG & ZG); pose proof r_pos; pose proof RR_ge0; pose proof gamma_2 as G2.
pose proof e_mu_ge0; pose proof (Rabs_pos (wt i)); pose proof (Rabs_pos (bias i)); pose proof (e_ge0 i Hi).
assert (0 <= e_mean) by (eapply Rle_trans; [apply Rabs_pos | apply mean_dl]).
assert (MR : Rabs (f i) + moved i <= reach i).
{ unfold moved, spread, reach, size, m_size, f; pose proof (Rabs_triang (x i) (- mu)) as T; rewrite Rabs_Ropp in T.
  replace (x i + - mu) with (x i - mu) in T by ring.
  assert (e i * (1 - 2 / INR n) <= e i * 1).
  { apply Rmult_le_compat_l; [assumption|]; pose proof n_inv; unfold Rdiv; lra. }
  lra. }
assert (SZ : scale_size i <= any_scale_size i).
{ unfold scale_size, any_scale_size; apply Rmult_le_compat_l; [|lra].
  apply Rmult_le_pos; [lra|]; assert (0 <= (1 + RR) * r) by (apply Rmult_le_pos; lra); lra. }
assert (E4 : 4 * eta * scale_size i <= 4 * eta * any_scale_size i) by (apply Rmult_le_compat_l; lra).
assert (0 <= eta * any_scale_size i) by (apply Rmult_le_pos; lra).
assert (0 <= gamma 2 * folded_size i).
{ apply Rmult_le_pos; [lra|]; unfold folded_size, gain.
  assert (0 <= Rabs (wt i) * r * (1 + RR)) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra).
  pose proof (Rabs_pos (xh i)); pose proof (size_spec i Hi); pose proof (Rabs_pos m); pose proof m_spec'.
  assert (0 <= Rabs (wt i) * r * (1 + RR) * (size i + 2 * (m_size + e_mu))) by (apply Rmult_le_pos; lra). lra. }
unfold local, any_local; lra.
Qed.

(** ** The error, where a computed value is within loc of the affine image *)
Definition located loc (nh : nat -> R) := forall i, (i < n)%nat -> Rabs (nh i - target i) <= loc i.
Lemma local_located nh : (forall i, (i < n)%nat -> normalized_hat i (nh i)) -> located local nh.
Proof. intros H i Hi; apply local_spec; auto. Qed.
Lemma any_located nh : (forall i, (i < n)%nat -> normalized_hat i (nh i) \/ folded_hat i (nh i)) -> located any_local nh.
Proof.
intros H i Hi; destruct (H i Hi) as [N|N]; [|now apply folded_spec].
eapply Rle_trans; [now apply local_spec | now apply local_any].
Qed.
Theorem layer_norm_decomposition loc : exists l,
  Rabs rel <= RR /\ Rabs em <= e_mu /\ forall nh, located loc nh -> forall i, (i < n)%nat ->
  nh i - exact i = rel * (wt i * (r * f i)) + (1 + rel) * r * (wt i * (dl i - mean dl))
                   - (1 + rel) * r * em * wt i + l nh i /\ Rabs (l nh i) <= loc i.
Proof.
exists (fun (nh : nat -> R) i => nh i - target i).
split; [apply rel_spec|]; split; [apply em_spec|]; intros nh H i Hi; split; [|now apply H].
unfold target, exact; rewrite D_eq, rh_rel; ring.
Qed.

Lemma sumn_centred (c : nat -> R) :
  sumn (fun i => c i * (wt i * (dl i - mean dl))) n
  = sumn (fun i => (c i * wt i - mean (fun j => c j * wt j)) * dl i) n.
Proof.
set (q := mean (fun j => c j * wt j)).
rewrite (sumn_ext (fun i => c i * (wt i * (dl i - mean dl))) (fun i => (c i * wt i) * dl i + (- mean dl) * (c i * wt i)))
  by (intros; ring).
rewrite (sumn_ext (fun i => (c i * wt i - q) * dl i) (fun i => (c i * wt i) * dl i + (- q) * dl i)) by (intros; ring).
rewrite !sumn_plus, !sumn_scal; unfold q, mean; field; pose proof n1; lra.
Qed.

(* a linear map of the errors, the unknowns that channels share kept together *)
Definition functional loc c := RR * Rabs (sumn (fun i => c i * (wt i * (r * f i))) n)
  + (1 + RR) * r * (sumn (fun i => Rabs (c i * wt i - mean (fun j => c j * wt j)) * e i) n
                    + e_mu * Rabs (sumn (fun i => c i * wt i) n))
  + sumn (fun i => Rabs (c i) * loc i) n.
Theorem layer_norm_functional loc c nh : located loc nh ->
  Rabs (sumn (fun i => c i * (nh i - exact i)) n) <= functional loc c.
Proof.
intros H; destruct (layer_norm_decomposition loc) as (l & R1 & R2 & Dc); specialize (Dc nh H).
pose proof r_pos as RP; pose proof RR_ge0 as R0; pose proof e_mu_ge0 as E0.
set (sf := sumn (fun i => c i * (wt i * (r * f i))) n); set (sw := sumn (fun i => c i * wt i) n).
set (sd := sumn (fun i => c i * (wt i * (dl i - mean dl))) n); set (sl := sumn (fun i => c i * l nh i) n).
assert (E : sumn (fun i => c i * (nh i - exact i)) n = rel * sf + (1 + rel) * r * (sd - em * sw) + sl).
{ unfold sf, sw, sd, sl; rewrite (sumn_ext _ (fun i => (rel * (c i * (wt i * (r * f i))) + ((1 + rel) * r) * (c i * (wt i * (dl i - mean dl))))
     + ((- ((1 + rel) * r * em)) * (c i * wt i) + c i * l nh i))).
  - rewrite !sumn_plus, !sumn_scal; ring.
  - intros i Hi; destruct (Dc i Hi) as (-> & _); ring. }
rewrite E; clear E.
assert (SD : Rabs sd <= sumn (fun i => Rabs (c i * wt i - mean (fun j => c j * wt j)) * e i) n).
{ unfold sd; rewrite sumn_centred; eapply Rle_trans; [apply sumn_abs|]; apply sumn_le; intros i Hi.
  rewrite Rabs_mult; apply Rmult_le_compat_l; [apply Rabs_pos | now apply dl_spec]. }
assert (SL : Rabs sl <= sumn (fun i => Rabs (c i) * loc i) n).
{ unfold sl; eapply Rle_trans; [apply sumn_abs|]; apply sumn_le; intros i Hi.
  rewrite Rabs_mult; apply Rmult_le_compat_l; [apply Rabs_pos | apply (Dc i Hi)]. }
assert (R3 : Rabs ((1 + rel) * r) <= (1 + RR) * r).
{ rewrite Rabs_mult, (Rabs_pos_eq r) by lra; apply Rmult_le_compat_r; [lra|].
  eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_R1; lra. }
assert (T2 : Rabs (sd - em * sw) <= sumn (fun i => Rabs (c i * wt i - mean (fun j => c j * wt j)) * e i) n + e_mu * Rabs sw).
{ unfold Rminus at 1; eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_Ropp, Rabs_mult.
  apply Rplus_le_compat; [exact SD | apply Rmult_le_compat_r; [apply Rabs_pos | exact R2]]. }
unfold functional; fold sf sw.
eapply Rle_trans; [apply Rabs_triang|]; apply Rplus_le_compat; [|exact SL].
eapply Rle_trans; [apply Rabs_triang|]; apply Rplus_le_compat.
- rewrite Rabs_mult; apply Rmult_le_compat_r; [apply Rabs_pos | exact R1].
- rewrite Rabs_mult; apply Rmult_le_compat; [apply Rabs_pos | apply Rabs_pos | exact R3 | exact T2].
Qed.

Theorem layer_norm_bound loc i nh : (i < n)%nat -> located loc nh ->
  Rabs (nh i - exact i) <= common i + loc i.
Proof.
intros Hi H; destruct (layer_norm_decomposition loc) as (l & R1 & R2 & Dc); destruct (Dc nh H i Hi) as (E & L).
replace (nh i - exact i) with (wt i * (r * (rel * f i + (1 + rel) * ((dl i - mean dl) - em))) + l nh i)
  by (rewrite E; ring).
eapply Rle_trans; [apply Rabs_triang|]; apply Rplus_le_compat; [|exact L].
pose proof r_pos as RP; pose proof RR_ge0 as R0; pose proof (moved_spec i Hi) as MS.
unfold common, gain; rewrite Rabs_mult, Rmult_assoc; apply Rmult_le_compat_l; [apply Rabs_pos|].
rewrite Rabs_mult, (Rabs_pos_eq r) by lra; apply Rmult_le_compat_l; [lra|].
eapply Rle_trans; [apply Rabs_triang|]; rewrite !Rabs_mult; apply Rplus_le_compat.
- apply Rmult_le_compat_r; [apply Rabs_pos | exact R1].
- apply Rmult_le_compat; try apply Rabs_pos; [|exact MS].
  eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_R1; lra.
Qed.
End LayerNorm.

(* sqrt and division correctly rounded, in the range where errors are relative *)
Theorem correctly_rounded_root u eta (u_ge0 : 0 <= u) (u_lt : 3 * u < 1) (eta_ge0 : 0 <= eta) ah s rh :
  0 < ah -> Rabs (s - sqrt ah) <= u * sqrt ah -> Rabs (rh - / s) <= u * / s ->
  Rabs (rh * sqrt ah - 1) <= gamma u 3.
Proof.
intros AP Hs Hr; assert (S0 : 0 < sqrt ah) by (now apply sqrt_lt_R0).
set (q := sqrt ah) in *.
apply Rabs_between in Hs.
assert (SP : 0 < s) by (assert (0 < (1 - u) * q) by (apply Rmult_lt_0_compat; lra); lra).
assert (I0 : 0 < / s) by (now apply Rinv_0_lt_compat).
apply Rabs_between in Hr.
set (z := q * / s).
assert (Z1 : z * s = q) by (unfold z; field; lra).
assert (ZP : 0 < z) by (unfold z; now apply Rmult_lt_0_compat).
assert (Zu : z * (1 - u) <= 1).
{ apply Rmult_le_reg_r with s; [exact SP|]; replace (z * (1 - u) * s) with ((1 - u) * (z * s)) by ring; rewrite Z1; lra. }
assert (Zl : 1 <= z * (1 + u)).
{ apply Rmult_le_reg_r with s; [exact SP|]; replace (z * (1 + u) * s) with ((1 + u) * (z * s)) by ring; rewrite Z1; lra. }
assert (R1 : rh * q <= (1 + u) * z).
{ unfold z; replace ((1 + u) * (q * / s)) with ((/ s + u * / s) * q) by ring; apply Rmult_le_compat_r; lra. }
assert (R2 : (1 - u) * z <= rh * q).
{ unfold z; replace ((1 - u) * (q * / s)) with ((/ s - u * / s) * q) by ring; apply Rmult_le_compat_r; lra. }
assert (G : gamma u 3 * (1 - 3 * u) = 3 * u) by (unfold gamma; simpl; field; lra).
assert (G0 : 0 <= gamma u 3).
{ unfold gamma, Rdiv; apply Rmult_le_pos; [simpl; lra | left; apply Rinv_0_lt_compat; simpl; lra]. }
apply Rabs_le; split.
- (* (1-u) z >= (1-u)/(1+u) >= 1 - 2u >= 1 - gamma *)
  assert ((1 - 2 * u) * (1 + u) <= (1 - u) * (z * (1 + u))).
  { assert ((1 - u) * 1 <= (1 - u) * (z * (1 + u))) by (apply Rmult_le_compat_l; lra). nra. }
  assert (1 - 2 * u <= (1 - u) * z).
  { apply Rmult_le_reg_r with (1 + u); lra. }
  assert (3 * u <= gamma u 3).
  { rewrite <- G; assert (gamma u 3 * (1 - 3 * u) <= gamma u 3 * 1) by (apply Rmult_le_compat_l; lra). lra. }
  lra.
- (* (1+u) z <= (1+u)/(1-u) <= 1 + gamma_3 *)
  assert (X : (1 + u) * z * (1 - u) <= (1 + gamma u 3) * (1 - u)).
  { assert ((1 + u) * (z * (1 - u)) <= (1 + u) * 1) by (apply Rmult_le_compat_l; lra).
    assert (2 * u <= gamma u 3 * (1 - u)); [|lra].
    assert (gamma u 3 * (1 - 3 * u) <= gamma u 3 * (1 - u)) by (apply Rmult_le_compat_l; lra). lra. }
  assert ((1 + u) * z <= 1 + gamma u 3) by (apply Rmult_le_reg_r with (1 - u); lra).
  lra.
Qed.
