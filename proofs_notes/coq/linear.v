(* Linear layer and residual.

     gamma n = n u / (1 - n u)
   Main results (n terms, n^2 u <= 1/4: up to 2048 terms in float32)
     linear_bound            |computed - W.xh|       <= gamma_n sum|W xh| + 2 n eta
     linear_bias_bound       |computed - (W.xh + b)| <= gamma_{n+1} (sum|W xh| + |b|) + (2n + 1) eta
                             any order, the bias anywhere in the sum, with or without fma
     residual_bound          |computed - (x + p)| <= (1 + u) (e_x + e_p) + u |x + p| + eta
     residual_early_bias_bound   the bias added to x first: u (|xh| + |b|) + eta more           *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
Require Import counter_calculus running_bound.
Open Scope R_scope.

Section Linear.
Set Default Proof Using "All".
Variables u eta : R.
Hypothesis u_ge0 : 0 <= u.
Hypothesis u_lt1 : u < 1.
Hypothesis eta_ge0 : 0 <= eta.
Local Notation L7 x := (x u eta u_ge0 u_lt1 eta_ge0 0 (Rle_refl 0)) (only parsing).
Local Notation L5 x := (x u eta u_ge0 u_lt1 eta_ge0) (only parsing).
Local Notation near := (near u eta).
Local Notation rho := (rho u).
Local Notation gamma := (gamma u).

Definition short n := INR n * INR n * u <= 1 / 4.
Lemma short_nu n : short n -> INR n * u <= 1 / 4.
Proof.
unfold short; intros H; destruct n as [|n]; [simpl; lra|].
assert (1 <= INR (S n)) by (apply (le_INR 1); lia).
assert (0 <= INR (S n) * u) by (apply Rmult_le_pos; lra).
assert (1 * (INR (S n) * u) <= INR (S n) * (INR (S n) * u)) by (apply Rmult_le_compat_r; lra). lra.
Qed.
Lemma short_le m n : (m <= n)%nat -> short n -> short m.
Proof.
unfold short; intros H S; apply le_INR in H; pose proof (pos_INR m).
assert (INR m * INR m <= INR n * INR n) by (apply Rmult_le_compat; lra).
assert (INR m * INR m * u <= INR n * INR n * u) by (apply Rmult_le_compat_r; lra). lra.
Qed.
Lemma gamma_short n : short n -> 0 <= gamma n /\ rho ^ n - 1 <= gamma n /\ INR n * gamma n <= 1 / 3.
Proof.
intros H; pose proof (short_nu n H); pose proof (pos_INR n).
assert (0 <= INR n * u) by (apply Rmult_le_pos; lra).
split; [apply (L5 gamma_ge0); lra|]; split; [apply (L5 rho_gamma); lra|].
unfold running_bound.gamma; apply Rmult_le_reg_r with (1 - INR n * u); [lra|].
unfold Rdiv; rewrite <- Rmult_assoc, Rmult_assoc, Rinv_l by lra; unfold short in H; lra.
Qed.
Lemma near_err x y : near x y -> Rabs (y - x) <= u * Rabs x + eta.
Proof. auto. Qed.

Theorem linear_bound W xh n y : short n -> dot_hat u eta W xh n y ->
  Rabs (y - sumn (fun i => W i * xh i) n) <= gamma n * sumn (fun i => Rabs (W i) * Rabs (xh i)) n + 2 * INR n * eta.
Proof.
intros Hn Hd; destruct (gamma_short n Hn) as (G0 & G1 & G2).
assert (N1 : (1 <= n)%nat) by (destruct Hd as (f & _ & Sm); exact ((L7 anysum_pos) _ _ _ Sm)).
pose proof ((L7 dot_raw) W xh xh (fun i => Rabs (xh i)) (fun _ => 0) n y Hd) as B; cbv beta in B.
assert (Z : forall i, Rabs (xh i - xh i) <= 0) by (intros i; replace (xh i - xh i) with 0 by ring; rewrite Rabs_R0; lra).
assert (B' := B (fun i _ => conj (Rle_refl _) (Z i))); clear B.
rewrite (sumn_ext (fun i => Rabs (W i) * (Rabs (xh i) + 0)) (fun i => Rabs (W i) * Rabs (xh i))) in B'
  by (intros; ring).
set (s := sumn (fun i => Rabs (W i) * Rabs (xh i)) n) in *.
assert (S0 : 0 <= s) by (apply sumn_ge0; intros; apply Rmult_le_pos; apply Rabs_pos).
assert ((rho ^ n - 1) * s <= gamma n * s) by (apply Rmult_le_compat_r; lra).
pose proof (L5 rho_pow_mono (n - 1) n ltac:(lia)).
assert (I1 : 1 <= INR n) by (apply (le_INR 1); lia).
assert (N : INR (2 * n - 1) = 2 * INR n - 1) by (rewrite minus_INR, mult_INR by lia; simpl; lra).
assert (INR (2 * n - 1) * rho ^ (n - 1) <= 2 * INR n).
{ rewrite N; assert ((2 * INR n - 1) * rho ^ (n - 1) <= (2 * INR n - 1) * (1 + gamma n)) by (apply Rmult_le_compat_l; lra).
  assert (0 <= gamma n) by lra. lra. }
assert (INR (2 * n - 1) * rho ^ (n - 1) * eta <= 2 * INR n * eta) by (apply Rmult_le_compat_r; lra).
lra.
Qed.

Definition affine_hat (W xh : nat -> R) b n y := exists f,
  (forall i, (i < n)%nat -> rounded_or_fused u eta (W i * xh i) (f i)) /\ f n = b /\ anysum u eta f (S n) y.
Theorem linear_bias_bound W xh b n y : (1 <= n)%nat -> short (S n) -> affine_hat W xh b n y ->
  Rabs (y - (sumn (fun i => W i * xh i) n + b)) <=
    gamma (S n) * (sumn (fun i => Rabs (W i) * Rabs (xh i)) n + Rabs b) + (2 * INR n + 1) * eta.
Proof.
intros N1 Hn (f & F & Fb & Sm); destruct (gamma_short (S n) Hn) as (G0 & G1 & G2).
set (sel := fun (j : nat) (x y : R) => if Nat.eqb j n then x else y).
assert (SE : forall h z, sumn (fun j => sel j z (h j)) (S n) = z + sumn h n).
{ intros h z; cbn [sumn]; unfold sel at 2; rewrite Nat.eqb_refl, Rplus_comm; f_equal.
  apply sumn_ext; intros j J; unfold sel; destruct (Nat.eqb_spec j n); [lia | reflexivity]. }
pose proof ((L7 anysum_error) f (fun j => sel j b (W j * xh j)) (fun j => sel j (Rabs b) (Rabs (W j) * Rabs (xh j)))
  (fun j => sel j 0 (u * (Rabs (W j) * Rabs (xh j)) + eta)) (S n) y Sm) as B.
rewrite !SE, sumn_plus, sumn_const, sumn_scal in B.
set (s := sumn (fun i => Rabs (W i) * Rabs (xh i)) n) in *.
assert (S0 : 0 <= s) by (apply sumn_ge0; intros; apply Rmult_le_pos; apply Rabs_pos).
replace (S n - 1)%nat with n in B by lia.
rewrite Rplus_comm with (r1 := sumn _ n) (r2 := b).
eapply Rle_trans; [apply B|].
- intros j J; cbv beta; unfold sel; destruct (Nat.eqb_spec j n) as [->|E].
  + rewrite Fb; split; [lra|]; replace (b - b) with 0 by ring; rewrite Rabs_R0; lra.
  + split; [rewrite Rabs_mult; lra|]; rewrite <- Rabs_mult.
    apply (L7 rf_error), F; lia.
- pose proof (L5 rho_ge); pose proof (L5 rho_pow_ge1 n) as P1; pose proof (Rabs_pos b).
  assert (K1 : rho ^ n * (s + u * s) <= rho ^ S n * s).
  { replace (rho ^ S n * s) with (rho ^ n * (rho * s)) by (simpl; ring).
    apply Rmult_le_compat_l; [lra|]; assert ((1 + u) * s <= rho * s) by (apply Rmult_le_compat_r; lra); lra. }
  pose proof (L5 rho_pow_mono n (S n) ltac:(lia)) as P2.
  assert (K2 : rho ^ n * Rabs b <= rho ^ S n * Rabs b) by (apply Rmult_le_compat_r; lra).
  assert (K3 : (rho ^ S n - 1) * (s + Rabs b) <= gamma (S n) * (s + Rabs b)) by (apply Rmult_le_compat_r; lra).
  assert (I1 : 1 <= INR n) by (apply (le_INR 1); lia).
  assert (K4 : 2 * INR n * rho ^ n <= 2 * INR n + 1).
  { assert (2 * INR n * rho ^ n <= 2 * INR n * (1 + gamma (S n))) by (apply Rmult_le_compat_l; lra).
    rewrite S_INR in G2; lra. }
  assert (2 * INR n * rho ^ n * eta <= (2 * INR n + 1) * eta) by (apply Rmult_le_compat_r; lra).
  lra.
Qed.

Theorem residual_bound xh ph x p ex ep y : Rabs (xh - x) <= ex -> Rabs (ph - p) <= ep -> near (xh + ph) y ->
  Rabs (y - (x + p)) <= (1 + u) * (ex + ep) + u * Rabs (x + p) + eta.
Proof.
intros Hx Hp N; eapply (L5 near_close); [exact N | now apply (L5 add_close)].
Qed.
(* x + b first, then the product with W *)
Theorem residual_early_bias_bound xh ph b x p ex ep t y : Rabs (xh - x) <= ex -> Rabs (ph - p) <= ep ->
  near (xh + b) t -> near (t + ph) y ->
  Rabs (y - (x + (p + b))) <= (1 + u) * (ex + ep + (u * (Rabs xh + Rabs b) + eta)) + u * Rabs (x + (p + b)) + eta.
Proof.
intros Hx Hp N1 N2.
assert (T : Rabs (t - (x + b)) <= ex + (u * (Rabs xh + Rabs b) + eta)).
{ unfold counter_calculus.near in N1; replace (t - (x + b)) with ((t - (xh + b)) + (xh - x)) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  pose proof (Rabs_triang xh b); assert (u * Rabs (xh + b) <= u * (Rabs xh + Rabs b)) by (apply Rmult_le_compat_l; lra).
  lra. }
replace (x + (p + b)) with ((x + b) + p) by ring.
eapply Rle_trans; [apply (residual_bound t ph (x + b) p _ ep y T Hp N2)|].
right; ring.
Qed.
End Linear.
