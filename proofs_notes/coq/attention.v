(* One query, L keys, one channel: scores, softmax and the weighted mean together.

   Main results
     logit_bound                computed logit against the scaled exact dot product of the computed q and k:
                                gamma_{d+3} scale sum|q k| + 4 d eta, the scale applied after the dot product
     logit_any_bound            the same with the scale applied anywhere: 2 eta sum(|q| + |k|) more
     logit_propagation          and against the exact one: |q.dk| + |k.dq| + sum e_q e_k
     attention_quotient_bound   |computed - weighted mean with the computed weights| <= quotient_error
     attention_two_pass_bound   |computed - o| <= dev + inherited + quotient_error, where
         dev            = min (sum change_j |v_j - o|, max |v_j - o|)
         inherited      = sum largest_j e_vj
         quotient_error = (1 + gamma_{L+1}) gamma_L sum largest_j (|v_j| + e_vj)
                          + gamma_{L+1} (|o| + dev + inherited) + 32 L tiny (1 + V)                *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
Require Import counter_calculus running_bound prefix_product linear softmax weighted_mean.
Open Scope R_scope.

Section Logits.
Set Default Proof Using "All".
Variables u eta : R.
Hypothesis u_ge0 : 0 <= u.
Hypothesis u_lt1 : u < 1.
Hypothesis eta_ge0 : 0 <= eta.
Local Notation L7 x := (x u eta u_ge0 u_lt1 eta_ge0 0 (Rle_refl 0)) (only parsing).
Local Notation L5 x := (x u eta u_ge0 u_lt1 eta_ge0) (only parsing).
Local Notation E8 x := (x u eta u_ge0 u_lt1 eta_ge0 1 Rlt_0_1 (fun _ => 0)) (only parsing).
Local Notation rho := (rho u).
Local Notation gamma := (gamma u).

(* c: the computed scale, off by two roundings: 1 / sqrt d with a rounded root, or its reciprocal;
   the product of dot and c is rounded; a division by the rounded root has one rounding less *)
Theorem logit_bound d qh kh s scale c y : (1 <= d)%nat -> short u (d + 3) -> 0 <= scale <= 1 ->
  relative u 2 scale c -> dot_hat u eta qh kh d s -> near u eta (c * s) y ->
  Rabs (y - scale * sumn (fun i => qh i * kh i) d) <=
    gamma (d + 3) * (scale * sumn (fun i => Rabs (qh i) * Rabs (kh i)) d) + 4 * INR d * eta.
Proof.
intros D1 Hd Hs Hc Hdot N.
pose proof ((L7 dot_raw) qh kh kh (fun i => Rabs (kh i)) (fun _ => 0) d s Hdot) as B; cbv beta in B.
assert (Z : forall i, Rabs (kh i - kh i) <= 0) by (intros i; replace (kh i - kh i) with 0 by ring; rewrite Rabs_R0; lra).
assert (B' := B (fun i _ => conj (Rle_refl _) (Z i))); clear B.
rewrite (sumn_ext (fun i => Rabs (qh i) * (Rabs (kh i) + 0)) (fun i => Rabs (qh i) * Rabs (kh i))) in B'
  by (intros; ring).
set (P := sumn (fun i => Rabs (qh i) * Rabs (kh i)) d) in *.
assert (P0 : 0 <= P) by (apply sumn_ge0; intros; apply Rmult_le_pos; apply Rabs_pos).
pose proof (L5 rho_pow_ge1 d) as P1; pose proof (L5 rho_pow_ge1 (d - 1)) as P2.
assert (Er : er (sumn (fun i => qh i * kh i) d) P (rho ^ d * P) (INR (2 * d - 1) * rho ^ (d - 1) * eta) s).
{ unfold er; split; [|split; [|split]].
  - eapply Rle_trans; [apply sumn_abs|]; apply sumn_le; intros; rewrite Rabs_mult; lra.
  - assert (1 * P <= rho ^ d * P) by (apply Rmult_le_compat_r; lra); lra.
  - apply Rmult_le_pos; [apply Rmult_le_pos; [apply pos_INR | lra] | lra].
  - exact B'. }
apply (E8 er_relative) with (j := 2%nat) (p := scale) (ph := c) in Er; [|exact Hc].
apply (E8 er_near) with (z := y) in Er; [|exact N]; destruct Er as (_ & _ & _ & X).
rewrite (Rabs_pos_eq scale) in X by lra.
destruct (gamma_short u eta u_ge0 u_lt1 eta_ge0 (d + 3) Hd) as (G0 & G1 & G2).
set (q := scale * P) in *; assert (Q0 : 0 <= q) by (unfold q; apply Rmult_le_pos; lra).
assert (E1 : rho * (rho ^ 2 * (scale * (rho ^ d * P))) = rho ^ (d + 3) * q).
{ unfold q; rewrite pow_add; simpl; ring. }
rewrite E1 in X.
assert ((rho ^ (d + 3) - 1) * q <= gamma (d + 3) * q) by (apply Rmult_le_compat_r; lra).
assert (I1 : 1 <= INR d) by (apply (le_INR 1); lia).
assert (K : rho * (rho ^ 2 * (scale * (INR (2 * d - 1) * rho ^ (d - 1) * eta))) + eta <= 4 * INR d * eta).
{ replace (rho * (rho ^ 2 * (scale * (INR (2 * d - 1) * rho ^ (d - 1) * eta))))
    with (scale * (INR (2 * d - 1) * (rho ^ 3 * rho ^ (d - 1)) * eta)) by (simpl; ring).
  rewrite <- pow_add; pose proof (L5 rho_pow_mono (3 + (d - 1)) (d + 3) ltac:(lia)) as M.
  assert (N2 : INR (2 * d - 1) = 2 * INR d - 1) by (rewrite minus_INR, mult_INR by lia; simpl; ring).
  assert (T1 : INR (2 * d - 1) * rho ^ (3 + (d - 1)) <= 2 * INR d).
  { rewrite N2; assert ((2 * INR d - 1) * rho ^ (3 + (d - 1)) <= (2 * INR d - 1) * (1 + gamma (d + 3))) by (apply Rmult_le_compat_l; lra).
    rewrite plus_INR in G2; assert (0 <= INR 3 * gamma (d + 3)) by (apply Rmult_le_pos; [apply pos_INR | lra]). lra. }
  assert (T2 : INR (2 * d - 1) * rho ^ (3 + (d - 1)) * eta <= 2 * INR d * eta) by (apply Rmult_le_compat_r; lra).
  assert (T0 : 0 <= INR (2 * d - 1) * rho ^ (3 + (d - 1)) * eta).
  { apply Rmult_le_pos; [apply Rmult_le_pos; [apply pos_INR | pose proof (L5 rho_pow_ge1 (3 + (d - 1))); lra] | lra]. }
  assert (scale * (INR (2 * d - 1) * rho ^ (3 + (d - 1)) * eta) <= 1 * (2 * INR d * eta)) by (apply Rmult_le_compat; lra).
  assert (1 * eta <= INR d * eta) by (apply Rmult_le_compat_r; lra). lra. }
lra.
Qed.

(* or applied to every entry of q, or of k, before the dot product *)
Lemma dot_hat_sym q k d y : dot_hat u eta q k d y -> dot_hat u eta k q d y.
Proof. intros (f & H & S); exists f; split; [intros i Hi; rewrite Rmult_comm; now apply H | exact S]. Qed.
Theorem logit_scaled_first_bound d qh kh qs scale c y : (1 <= d)%nat -> short u (d + 3) -> 0 <= scale <= 1 ->
  relative u 2 scale c -> (forall i, (i < d)%nat -> near u eta (c * qh i) (qs i)) -> dot_hat u eta qs kh d y ->
  Rabs (y - scale * sumn (fun i => qh i * kh i) d) <=
    gamma (d + 3) * (scale * sumn (fun i => Rabs (qh i) * Rabs (kh i)) d)
    + (4 * INR d * eta + 2 * eta * sumn (fun i => Rabs (kh i)) d).
Proof.
intros D1 Hd Hs Hc Hq Hdot.
set (w := fun i => (rho ^ 3 - 1) * (scale * Rabs (qh i)) + eta).
assert (HW : forall i, (i < d)%nat -> Rabs (scale * qh i) <= scale * Rabs (qh i) /\ Rabs (qs i - scale * qh i) <= w i).
{ intros i Hi; split; [rewrite Rabs_mult, (Rabs_pos_eq scale) by lra; lra|].
  pose proof (E8 er_exact (qh i)) as Er.
  apply (E8 er_relative) with (j := 2%nat) (p := scale) (ph := c) in Er; [|exact Hc].
  apply (E8 er_near) with (z := qs i) in Er; [|now apply Hq]; destruct Er as (_ & _ & _ & X).
  rewrite (Rabs_pos_eq scale) in X by lra; unfold w; simpl in *; lra. }
pose proof ((L7 dot_raw) kh qs (fun i => scale * qh i) (fun i => scale * Rabs (qh i)) w d y (dot_hat_sym _ _ _ _ Hdot) HW) as B.
cbv beta in B.
rewrite (sumn_ext (fun i => kh i * (scale * qh i)) (fun i => scale * (qh i * kh i))) in B by (intros; ring).
rewrite (sumn_ext (fun i => Rabs (kh i) * (scale * Rabs (qh i))) (fun i => scale * (Rabs (qh i) * Rabs (kh i)))) in B by (intros; ring).
rewrite (sumn_ext (fun i => Rabs (kh i) * (scale * Rabs (qh i) + w i))
  (fun i => rho ^ 3 * (scale * (Rabs (qh i) * Rabs (kh i))) + eta * Rabs (kh i))) in B by (intros; unfold w; ring).
rewrite sumn_plus, !sumn_scal in B.
set (P := scale * sumn (fun i => Rabs (qh i) * Rabs (kh i)) d) in *; set (K := sumn (fun i => Rabs (kh i)) d) in *.
assert (P0 : 0 <= P).
{ apply Rmult_le_pos; [lra|]; apply sumn_ge0; intros; apply Rmult_le_pos; apply Rabs_pos. }
assert (K0 : 0 <= K) by (apply sumn_ge0; intros; apply Rabs_pos).
destruct (gamma_short u eta u_ge0 u_lt1 eta_ge0 (d + 3) Hd) as (G0 & G1 & G2).
assert (I1 : 1 <= INR d) by (apply (le_INR 1); lia).
assert (GS : gamma (d + 3) <= 1 / 3).
{ assert (1 * gamma (d + 3) <= INR (d + 3) * gamma (d + 3)); [|lra].
  apply Rmult_le_compat_r; [exact G0|]; rewrite plus_INR; pose proof (pos_INR 3); lra. }
pose proof (L5 rho_pow_mono d (d + 3) ltac:(lia)) as M1; pose proof (L5 rho_pow_mono (d - 1) (d + 3) ltac:(lia)) as M2.
assert (E1 : rho ^ d * (rho ^ 3 * P + eta * K) = rho ^ (d + 3) * P + rho ^ d * (eta * K)) by (rewrite pow_add; ring).
rewrite E1 in B.
assert ((rho ^ (d + 3) - 1) * P <= gamma (d + 3) * P) by (apply Rmult_le_compat_r; lra).
assert (0 <= eta * K) by (apply Rmult_le_pos; lra).
assert (rho ^ d * (eta * K) <= 2 * (eta * K)) by (apply Rmult_le_compat_r; lra).
assert (N2 : INR (2 * d - 1) = 2 * INR d - 1) by (rewrite minus_INR, mult_INR by lia; simpl; ring).
assert (T1 : INR (2 * d - 1) * rho ^ (d - 1) <= 2 * (2 * INR d)).
{ rewrite N2; assert ((2 * INR d - 1) * rho ^ (d - 1) <= (2 * INR d - 1) * 2) by (apply Rmult_le_compat_l; lra). lra. }
assert (INR (2 * d - 1) * rho ^ (d - 1) * eta <= 2 * (2 * INR d) * eta) by (apply Rmult_le_compat_r; lra).
lra.
Qed.

(* the scale, off by two roundings, applied anywhere *)
Definition logit_hat d qh kh scale y := exists c, relative u 2 scale c /\
  ((exists s, dot_hat u eta qh kh d s /\ near u eta (c * s) y) \/
   (exists qs, (forall i, (i < d)%nat -> near u eta (c * qh i) (qs i)) /\ dot_hat u eta qs kh d y) \/
   (exists ks, (forall i, (i < d)%nat -> near u eta (c * kh i) (ks i)) /\ dot_hat u eta qh ks d y)).
Definition logit_lost d (qa ka : nat -> R) := 4 * INR d * eta + 2 * eta * (sumn qa d + sumn ka d).
Theorem logit_any_bound d qh kh scale y : (1 <= d)%nat -> short u (d + 3) -> 0 <= scale <= 1 ->
  logit_hat d qh kh scale y ->
  Rabs (y - scale * sumn (fun i => qh i * kh i) d) <=
    gamma (d + 3) * (scale * sumn (fun i => Rabs (qh i) * Rabs (kh i)) d)
    + logit_lost d (fun i => Rabs (qh i)) (fun i => Rabs (kh i)).
Proof.
intros D1 Hd Hs (c & Hc & H); unfold logit_lost.
assert (Q0 : 0 <= eta * sumn (fun i => Rabs (qh i)) d) by (apply Rmult_le_pos; [lra | apply sumn_ge0; intros; apply Rabs_pos]).
assert (K0 : 0 <= eta * sumn (fun i => Rabs (kh i)) d) by (apply Rmult_le_pos; [lra | apply sumn_ge0; intros; apply Rabs_pos]).
destruct H as [(s & Hdot & N)|[(qs & Hq & Hdot)|(ks & Hk & Hdot)]].
- pose proof (logit_bound d qh kh s scale c y D1 Hd Hs Hc Hdot N); lra.
- pose proof (logit_scaled_first_bound d qh kh qs scale c y D1 Hd Hs Hc Hq Hdot); lra.
- pose proof (logit_scaled_first_bound d kh qh ks scale c y D1 Hd Hs Hc Hk (dot_hat_sym _ _ _ _ Hdot)) as B.
  rewrite (sumn_ext (fun i => kh i * qh i) (fun i => qh i * kh i)) in B by (intros; ring).
  rewrite (sumn_ext (fun i => Rabs (kh i) * Rabs (qh i)) (fun i => Rabs (qh i) * Rabs (kh i))) in B by (intros; ring).
  lra.
Qed.

Theorem logit_propagation d q k qh kh eq ek scale y bq bk lost : 0 <= scale <= 1 ->
  (forall i, (i < d)%nat -> Rabs (qh i - q i) <= eq i) -> (forall i, (i < d)%nat -> Rabs (kh i - k i) <= ek i) ->
  Rabs (sumn (fun i => k i * (qh i - q i)) d) <= bq -> Rabs (sumn (fun i => q i * (kh i - k i)) d) <= bk ->
  (1 <= d)%nat -> short u (d + 3) ->
  Rabs (y - scale * sumn (fun i => qh i * kh i) d) <=
    gamma (d + 3) * (scale * sumn (fun i => Rabs (qh i) * Rabs (kh i)) d) + lost ->
  Rabs (y - scale * sumn (fun i => q i * k i) d) <=
    scale * (gamma (d + 3) * sumn (fun i => (Rabs (q i) + eq i) * (Rabs (k i) + ek i)) d
             + (bq + bk + sumn (fun i => eq i * ek i) d)) + lost.
Proof.
intros Hs Hq Hk Bq Bk D1 Hd Hy.
destruct (gamma_short u eta u_ge0 u_lt1 eta_ge0 (d + 3) Hd) as (G0 & _).
set (P := sumn (fun i => qh i * kh i) d) in *; set (P' := sumn (fun i => q i * k i) d).
assert (E : P - P' = (sumn (fun i => k i * (qh i - q i)) d + sumn (fun i => q i * (kh i - k i)) d)
   + sumn (fun i => (qh i - q i) * (kh i - k i)) d).
{ unfold P, P'; rewrite <- !sumn_plus.
  replace (sumn (fun i => qh i * kh i) d - sumn (fun i => q i * k i) d)
    with (sumn (fun i => qh i * kh i) d + (-1) * sumn (fun i => q i * k i) d) by ring.
  rewrite <- sumn_scal, <- sumn_plus; apply sumn_ext; intros; ring. }
assert (T3 : Rabs (sumn (fun i => (qh i - q i) * (kh i - k i)) d) <= sumn (fun i => eq i * ek i) d).
{ eapply Rle_trans; [apply sumn_abs|]; apply sumn_le; intros i Hi; rewrite Rabs_mult.
  apply Rmult_le_compat; try apply Rabs_pos; auto. }
assert (PD : Rabs (P - P') <= bq + bk + sumn (fun i => eq i * ek i) d).
{ rewrite E; eapply Rle_trans; [apply Rabs_triang|]; apply Rplus_le_compat; [|exact T3].
  eapply Rle_trans; [apply Rabs_triang | lra]. }
assert (SZ : sumn (fun i => Rabs (qh i) * Rabs (kh i)) d <= sumn (fun i => (Rabs (q i) + eq i) * (Rabs (k i) + ek i)) d).
{ apply sumn_le; intros i Hi; apply Rmult_le_compat; try apply Rabs_pos.
  - replace (qh i) with (q i + (qh i - q i)) by ring; eapply Rle_trans; [apply Rabs_triang|]; pose proof (Hq i Hi); lra.
  - replace (kh i) with (k i + (kh i - k i)) by ring; eapply Rle_trans; [apply Rabs_triang|]; pose proof (Hk i Hi); lra. }
assert (S1 : gamma (d + 3) * (scale * sumn (fun i => Rabs (qh i) * Rabs (kh i)) d)
   <= gamma (d + 3) * (scale * sumn (fun i => (Rabs (q i) + eq i) * (Rabs (k i) + ek i)) d)).
{ apply Rmult_le_compat_l; [exact G0|]; apply Rmult_le_compat_l; lra. }
assert (S2 : scale * Rabs (P - P') <= scale * (bq + bk + sumn (fun i => eq i * ek i) d)) by (apply Rmult_le_compat_l; lra).
replace (y - scale * P') with ((y - scale * P) + scale * (P - P')) by ring.
eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_mult, (Rabs_pos_eq scale) by lra; lra.
Qed.
End Logits.

Section TwoPass.
Set Default Proof Using "All".
Variables u eta eps tiny : R.
Hypothesis u_ge0 : 0 <= u.
Hypothesis u_lt1 : u < 1.
Hypothesis eta_ge0 : 0 <= eta.
Hypothesis eps_spec : 0 <= eps < 1.
Hypothesis eta_tiny : eta <= tiny.
Local Notation L7 x := (x u eta u_ge0 u_lt1 eta_ge0 0 (Rle_refl 0)) (only parsing).
Local Notation L5 x := (x u eta u_ge0 u_lt1 eta_ge0) (only parsing).
Local Notation rho := (rho u).
Local Notation gamma := (gamma u).
Lemma tiny_ge0 : 0 <= tiny. Proof. lra. Qed.

Variables (L : nat) (z zh ez : nat -> R) (top ez_max mh : R).
Hypothesis L_pos : (1 <= L)%nat.
Hypothesis zh_spec : forall j, (j < L)%nat -> Rabs (zh j - z j) <= ez j <= ez_max.
Hypothesis top_spec : forall j, (j < L)%nat -> z j <= top.
Hypothesis mh_spec : (forall j, (j < L)%nat -> zh j <= mh) /\ exists j, (j < L)%nat /\ zh j = mh.
Variables (v vh ev : nat -> R) (mx : R).
Hypothesis vh_spec : forall j, (j < L)%nat -> Rabs (vh j - v j) <= ev j.
Hypothesis L_small : INR (L + 1) * u <= 1 / 16.
Hypothesis tiny_small : 40 * INR L * tiny <= 1.
Hypothesis exp_small : eta + eps / (1 - eps) <= 1 / 2.

Local Notation w := (wz z top).
Local Notation xi := (xi_of u eta eps z ez top ez_max 0).
Definition o := average L w v.
Hypothesis mx_spec : forall j, (j < L)%nat -> Rabs (v j - o) <= mx.
Definition dev := Rmin (sumn (fun j => change L w xi j * Rabs (v j - o)) L) mx.
Definition inherited := sumn (fun j => largest L w xi j * ev j) L.
Definition numerator_size := sumn (fun j => largest L w xi j * (Rabs (v j) + ev j)) L.
(* the computation *)
Variables (x p : nat -> R).
Hypothesis x_spec : forall j, (j < L)%nat -> near u eta (zh j - mh) (x j).
Hypothesis p_spec : forall j, (j < L)%nat -> exp_hat eps tiny (x j) (p j) /\ 0 <= p j.

Definition kap j := clamped eps (x j) (p j) * exp (mh - z j).
Definition t j := clamped eps (x j) (p j).     (* the weight with relative error only *)
Local Notation T11 th := (th u eta eps tiny u_ge0 u_lt1 eta_ge0 eps_spec tiny_ge0 L z zh ez top ez_max mh zh_spec top_spec mh_spec) (only parsing).
Lemma kap_spec j : (j < L)%nat -> exp (- xi j) <= kap j <= exp (xi j).
Proof. intros Hj; exact (proj2 (T11 weights_two_pass j (x j) (p j) Hj (x_spec j Hj) (proj1 (p_spec j Hj)))). Qed.
Lemma t_eq j : (j < L)%nat -> t j = lambda top mh * (w j * kap j).
Proof.
intros Hj; unfold t, kap, lambda, wz.
replace (exp (top - mh) * (exp (z j - top) * (clamped eps (x j) (p j) * exp (mh - z j))))
  with (clamped eps (x j) (p j) * (exp (top - mh) * exp (z j - top) * exp (mh - z j))) by ring.
rewrite <- !exp_plus; replace (top - mh + (z j - top) + (mh - z j)) with 0 by ring; rewrite exp_0; ring.
Qed.
Lemma t_range j : (j < L)%nat -> 0 < t j <= 2 /\ (zh j = mh -> 1 / 2 <= t j).
Proof. intros Hj; exact (T11 clamped_range j (x j) (p j) Hj (x_spec j Hj) (proj1 (p_spec j Hj)) exp_small). Qed.
Lemma p_t j : (j < L)%nat -> Rabs (p j - t j) <= tiny.
Proof. intros Hj; rewrite t_eq by exact Hj; exact (proj1 (T11 weights_two_pass j (x j) (p j) Hj (x_spec j Hj) (proj1 (p_spec j Hj)))). Qed.
Lemma w_pos j : (j < L)%nat -> 0 < w j. Proof. intros _; apply exp_pos. Qed.
Definition C := sumn t L.
Local Notation Sw := (S L w kap).
Lemma C_S : C = lambda top mh * Sw.
Proof. unfold C, S; rewrite <- sumn_scal; apply sumn_ext; intros; now apply t_eq. Qed.
Lemma C_range : 1 / 2 <= C <= 2 * INR L.
Proof.
split.
- destruct mh_spec as (_ & i & Hi & Ez); destruct (t_range i Hi) as (_ & T); specialize (T Ez).
  eapply Rle_trans; [exact T|]; unfold C.
  assert (G : forall n, (i < n <= L)%nat -> t i <= sumn t n).
  { induction n as [|n IH]; intros Hn; [lia|]; cbn [sumn].
    destruct (Nat.eq_dec i n) as [->|E].
    - assert (0 <= sumn t n) by (apply sumn_ge0; intros k Hk; destruct (t_range k ltac:(lia)) as ((X & _) & _); lra); lra.
    - pose proof (IH ltac:(lia)); destruct (t_range n ltac:(lia)) as ((X & _) & _); lra. }
  apply G; lia.
- unfold C; rewrite Rmult_comm, <- (sumn_const 2); apply sumn_le; intros j Hj; destruct (t_range j Hj) as ((_ & X) & _); exact X.
Qed.
Lemma vh_V j : (j < L)%nat -> Rabs (vh j) <= Rabs (v j) + ev j.
Proof.
intros Hj; replace (vh j) with (v j + (vh j - v j)) by ring; eapply Rle_trans; [apply Rabs_triang|].
pose proof (vh_spec j Hj); lra.
Qed.
Definition ot := sumn (fun j => t j * vh j) L / C.
Definition size := sumn (fun j => t j * Rabs (vh j)) L / C.
Lemma share j : (j < L)%nat -> t j / C = w j * kap j / Sw.
Proof.
intros Hj; rewrite C_S, t_eq by exact Hj.
pose proof (S_pos L w kap xi L_pos w_pos kap_spec); pose proof (exp_pos (top - mh)); unfold lambda.
field; split; lra.
Qed.
Lemma share_spec j : (j < L)%nat -> 0 < t j / C <= largest L w xi j.
Proof. intros Hj; rewrite share by exact Hj; exact (weights_largest L w kap xi L_pos w_pos kap_spec j Hj). Qed.
Lemma ot_o : Rabs (ot - o) <= dev + inherited.
Proof.
pose proof C_range as (C1 & C2).
assert (E : ot = sumn (fun j => w j * kap j * v j) L / Sw + sumn (fun j => t j / C * (vh j - v j)) L).
{ unfold ot, Rdiv; rewrite (Rmult_comm _ (/ C)), (Rmult_comm _ (/ Sw)), <- !sumn_scal, <- sumn_plus; apply sumn_ext; intros j Hj.
  pose proof (share j Hj) as Sh; unfold Rdiv in Sh.
  replace (/ Sw * (w j * kap j * v j)) with (w j * kap j * / Sw * v j) by ring; rewrite <- Sh; ring. }
rewrite E; replace (sumn (fun j => w j * kap j * v j) L / Sw + sumn (fun j => t j / C * (vh j - v j)) L - o)
  with ((sumn (fun j => w j * kap j * v j) L / Sw - o) + sumn (fun j => t j / C * (vh j - v j)) L) by ring.
eapply Rle_trans; [apply Rabs_triang|]; apply Rplus_le_compat.
- unfold dev; apply Rmin_glb.
  + exact (weights_deviation L w kap xi L_pos w_pos kap_spec v).
  + exact (weights_deviation_max L w kap xi L_pos w_pos kap_spec v mx mx_spec).
- eapply Rle_trans; [apply sumn_abs|]; apply sumn_le; intros j Hj; rewrite Rabs_mult.
  destruct (share_spec j Hj) as (S1 & S2); rewrite (Rabs_pos_eq (t j / C)) by lra.
  apply Rmult_le_compat; try apply Rabs_pos; try lra; now apply vh_spec.
Qed.

(* the weighted sum of the values and the quotient *)
Variables (f : nat -> R) (Nh Dh y V : R).
Hypothesis V_spec : forall j, (j < L)%nat -> Rabs (v j) + ev j <= V.
Hypothesis f_spec : forall j, (j < L)%nat -> rounded_or_fused u eta (p j * vh j) (f j).
Hypothesis N_spec : anysum u eta f L Nh.
Hypothesis D_spec : anysum u eta p L Dh.
Hypothesis y_spec : quotient_hat u eta Nh Dh y.
Definition quotient_error := (1 + gamma (L + 1)) * (gamma L * numerator_size)
  + gamma (L + 1) * (Rabs o + dev + inherited) + 32 * INR L * tiny * (1 + V).

Lemma V0 : 0 <= V.
Proof. pose proof (V_spec 0 ltac:(lia)); pose proof (vh_V 0 ltac:(lia)); pose proof (Rabs_pos (vh 0%nat)); lra. Qed.
Lemma size_spec : Rabs ot <= size <= V /\ size <= numerator_size.
Proof.
pose proof C_range as (C1 & C2); assert (I : 0 < / C) by (apply Rinv_0_lt_compat; lra).
assert (T0 : forall j, (j < L)%nat -> 0 <= t j) by (intros j Hj; destruct (t_range j Hj) as ((X & _) & _); lra).
split; [split|].
- unfold ot, size, Rdiv; rewrite Rabs_mult, (Rabs_pos_eq (/ C)) by lra; apply Rmult_le_compat_r; [lra|].
  eapply Rle_trans; [apply sumn_abs|]; apply sumn_le; intros j Hj; rewrite Rabs_mult, (Rabs_pos_eq (t j)) by auto; lra.
- unfold size; apply Rmult_le_reg_r with C; [lra|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  unfold C; rewrite <- sumn_scal; apply sumn_le; intros j Hj; rewrite Rmult_comm.
  apply Rmult_le_compat_r; [auto|]; pose proof (vh_V j Hj); pose proof (V_spec j Hj); lra.
- unfold size, numerator_size, Rdiv; rewrite Rmult_comm, <- sumn_scal; apply sumn_le; intros j Hj.
  destruct (share_spec j Hj) as (S1 & S2).
  replace (/ C * (t j * Rabs (vh j))) with (t j / C * Rabs (vh j)) by (unfold Rdiv; ring).
  apply Rmult_le_compat; try apply Rabs_pos; try lra; now apply vh_V.
Qed.
Theorem attention_quotient_bound : Rabs (y - ot) <= quotient_error.
Proof.
pose proof size_spec as ((Z1 & Z2) & Z3).
assert (L1 : 1 <= INR L) by (apply (le_INR 1); lia).
assert (SM : rho ^ (L - 1) <= 16 / 15).
{ pose proof (L5 rho_pow_mono (L - 1) (L + 1) ltac:(lia)); pose proof (L5 rho_gamma (L + 1) ltac:(lra)) as G.
  assert (INR (L + 1) * u / (1 - INR (L + 1) * u) <= 1 / 15); [|lra].
  apply Rmult_le_reg_r with (1 - INR (L + 1) * u); [lra|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra. }
pose proof (L5 rho_pow_ge1 (L - 1)) as S0; pose proof (L5 rho_ge) as G; pose proof (L5 rho_ge1) as R1.
assert (T0 : 0 <= INR L * tiny) by (apply Rmult_le_pos; lra).
assert (TE : INR L * eta <= INR L * tiny) by (apply Rmult_le_compat_l; lra).
assert (PT : forall j, (j < L)%nat -> 0 <= p j /\ Rabs (p j - t j) <= tiny) by (intros j Hj; split; [apply (p_spec j Hj) | now apply p_t]).
assert (W : INR (L - 1) * rho ^ (L - 1) * eta <= 16 / 15 * (INR L * tiny)).
{ assert (INR (L - 1) <= INR L) by (apply le_INR; lia).
  replace (INR (L - 1) * rho ^ (L - 1) * eta) with (rho ^ (L - 1) * (INR (L - 1) * eta)) by ring.
  pose proof (pos_INR (L - 1)).
  assert (INR (L - 1) * eta <= INR L * eta) by (apply Rmult_le_compat_r; lra).
  apply Rmult_le_compat; try lra; apply Rmult_le_pos; lra. }
assert (BN : Rabs (Nh - sumn (fun j => p j * vh j) L) <=
   (rho ^ L - 1) * sumn (fun j => p j * Rabs (vh j)) L + 2 * (16 / 15) * (INR L * tiny)).
{ pose proof ((L7 anysum_error) f (fun j => p j * vh j) (fun j => p j * Rabs (vh j))
    (fun j => u * (p j * Rabs (vh j)) + eta) L Nh N_spec) as BN.
  rewrite sumn_plus, sumn_scal, sumn_const in BN; set (A := sumn (fun j => p j * Rabs (vh j)) L) in *.
  eapply Rle_trans; [apply BN|].
  - intros j Hj; destruct (PT j Hj) as (P0 & _); rewrite Rabs_mult, (Rabs_pos_eq (p j)) by exact P0; split; [lra|].
    pose proof ((L7 rf_error) _ _ (f_spec j Hj)) as X; rewrite Rabs_mult, (Rabs_pos_eq (p j)) in X by exact P0; exact X.
  - assert (A0 : 0 <= A) by (apply sumn_ge0; intros j Hj; apply Rmult_le_pos; [apply (PT j Hj) | apply Rabs_pos]).
    assert (RL : rho ^ (L - 1) * rho = rho ^ L) by (replace L with (Datatypes.S (L - 1)) at 2 by lia; simpl; ring).
    assert (X1 : rho ^ (L - 1) * ((1 + u) * A) <= rho ^ L * A).
    { rewrite <- RL, Rmult_assoc; apply Rmult_le_compat_l; [lra|]; apply Rmult_le_compat_r; lra. }
    assert (X2 : rho ^ (L - 1) * (INR L * eta) <= 16 / 15 * (INR L * tiny)) by (apply Rmult_le_compat; try lra; apply Rmult_le_pos; lra).
    lra. }
assert (BD : (1 - u) ^ (L - 1) * sumn p L - 16 / 15 * (INR L * tiny) <= Dh <= rho ^ (L - 1) * sumn p L + 16 / 15 * (INR L * tiny)).
{ pose proof ((L7 anysum_error) p p p (fun _ => 0) L Dh D_spec) as BD.
  rewrite sumn_const, Rmult_0_r, Rplus_0_r in BD.
  assert (BD' := BD (fun j Hj => conj (Req_le _ _ (Rabs_pos_eq _ (proj1 (PT j Hj))))
     (Req_le _ _ (eq_trans (f_equal Rabs (Rminus_diag_eq (p j) (p j) eq_refl)) Rabs_R0)))); clear BD.
  pose proof (anysum_low u eta u_ge0 u_lt1 eta_ge0 p L Dh D_spec (fun j Hj => proj1 (PT j Hj))) as BL.
  apply Rabs_between in BD'; lra. }
pose proof (weighted_mean_bound u eta u_ge0 u_lt1 eta_ge0 L L t p vh tiny V Nh Dh y L_pos L_pos L_small
  (fun j Hj => proj1 (proj1 (t_range j Hj))) C_range PT (fun j Hj => Rle_trans _ _ _ (vh_V j Hj) (V_spec j Hj))
  eta_tiny ltac:(lra) BN BD y_spec) as WM.
change (weighted_mean.ot L t vh) with ot in WM; change (weighted_mean.size L t vh) with size in WM.
assert (LU : INR L * u <= INR (L + 1) * u) by (apply Rmult_le_compat_r; [lra | apply le_INR; lia]).
assert (G1 : 0 <= gamma (L + 1)) by (apply (L5 gamma_ge0); lra).
assert (G0 : 0 <= gamma L) by (apply (L5 gamma_ge0); lra).
assert (OB : Rabs ot <= Rabs o + dev + inherited).
{ replace ot with (o + (ot - o)) by ring; eapply Rle_trans; [apply Rabs_triang|]; pose proof ot_o; lra. }
assert (M1 : (1 + gamma (L + 1)) * (gamma L * size) <= (1 + gamma (L + 1)) * (gamma L * numerator_size)).
{ apply Rmult_le_compat_l; [lra|]; apply Rmult_le_compat_l; lra. }
assert (M2 : gamma (L + 1) * Rabs ot <= gamma (L + 1) * (Rabs o + dev + inherited)) by (apply Rmult_le_compat_l; lra).
unfold quotient_error; lra.
Qed.
Theorem attention_two_pass_bound : Rabs (y - o) <= dev + inherited + quotient_error.
Proof.
replace (y - o) with ((y - ot) + (ot - o)) by ring; eapply Rle_trans; [apply Rabs_triang|].
pose proof attention_quotient_bound; pose proof ot_o; lra.
Qed.
End TwoPass.
