(* The bounds of the recurrence: count x majorant + underflow.  One theorem a claim.

     count_bound c1 c0 t = u (c1 M + c0 A) / (1 - (c1 t + c0) u)      M, A: aged and plain majorant
     underflow_amount    = D (3t + D + 6) Gam^2 (1 + |q|_1) (1 + max|k|) (1 + |S0| + sum (1+|b|)(1+|v|))
     |computed - exact| <= count_bound + eta * underflow_amount
   under   (2t + 2D + 4) (u + eta Gam) <= 1/16   (D = 1, no q for a state) and (c1 t + c0) u < 1.
   Gam bounds the product of every window of gates.

   Main results
     sequential_state_bound        sequential_output_bound          c1 = 2,       c0 = 3,  D + 3
     masked_attention_state_bound  masked_attention_output_bound    c1 = 1,       c0 = t + 2,  t + D + 2
     chunked_state_bound           chunked_output_bound             c1 = 1 + 1/C, c0 = 2C + 4,  2C + D + 4
     scan_state_bound              scan_output_bound                c1 = 1,       c0 = 2 log + 4,  2 log + D + 4
     scan_carried_state_bound      scan_carried_output_bound        those of chunked
     any_order_state_bound         any_order_output_bound           c1 = 0,       c0 = 2t + 4,  2t + D + 4      *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
Require Import counter_calculus recurrence_counts output_counts.
Open Scope R_scope.

(** * From counts to numbers *)
Definition count_bound (u c1 c0 : R) (t : nat) (M A : R) : R :=
  u * (c1 * M + c0 * A) / (1 - (c1 * INR t + c0) * u).
Definition underflow_amount (t D : nat) (Gam normq kc sources : R) : R :=
  INR D * INR (3 * t + D + 6) * (Gam * Gam) * (1 + normq) * (1 + kc) * sources.
Definition sources (O0 : R) (b v : nat -> R) t := 1 + O0 + sumn (fun s => (1 + Rabs (b s)) * (1 + Rabs (v s))) t.

Lemma scan_depth_free u eta g b k v s n d y : scan_tree u eta g b k v s n d y -> (1 <= n /\ d <= n - 1)%nat.
Proof. induction 1; lia. Qed.

Section Bounds.
Set Default Proof Using "All".
Variables u eta : R.
Hypothesis u_ge0 : 0 <= u.
Hypothesis u_lt1 : u < 1.
Hypothesis eta_ge0 : 0 <= eta.
Local Notation L5 x := (x u eta u_ge0 u_lt1 eta_ge0) (only parsing).
Local Notation rho := (rho u).
Variable g : nat -> R.
Local Notation F := (F g rho).

Lemma pow_count n N c : INR n <= c -> c <= N -> N * u < 1 -> rho ^ n - 1 <= c * u / (1 - N * u).
Proof.
intros H1 H2 H3; pose proof (pos_INR n).
assert (INR n * u <= c * u) by (apply Rmult_le_compat_r; lra).
assert (c * u <= N * u) by (apply Rmult_le_compat_r; lra).
eapply Rle_trans; [apply (L5 rho_gamma); lra|].
assert (0 <= INR n * u) by (apply Rmult_le_pos; lra).
unfold Rdiv; apply Rmult_le_compat; [lra | left; apply Rinv_0_lt_compat; lra | lra |].
apply Rinv_le_contravar; lra.
Qed.

Theorem counts_bound aw a0 t : (forall r, 0 <= aw r) -> 0 <= a0 ->
  forall (n : nat -> nat) c1 c0 N, 0 <= c1 -> (forall a, (a <= t)%nat -> INR (n a) <= c1 * INR a + c0) ->
  c1 * INR t + c0 <= N -> N * u < 1 ->
  F n aw a0 t - A g aw a0 t <= u * (c1 * M g aw a0 t + c0 * A g aw a0 t) / (1 - N * u).
Proof.
intros Hw H0; induction t as [|t IH]; intros n c1 c0 N C1 Hn HN Hu.
- unfold recurrence_counts.F; simpl; rewrite Rabs_R1.
  pose proof (pow_count (n O) N c0) as P; simpl in HN.
  assert (INR (n O) <= c0) by (specialize (Hn O (le_n O)); simpl in Hn; lra).
  specialize (P H ltac:(lra) Hu).
  assert ((rho ^ n O - 1) * a0 <= c0 * u / (1 - N * u) * a0) by (apply Rmult_le_compat_r; lra).
  unfold Rdiv in *; lra.
- rewrite F_S, !(S_INR t) in *; cbn [A M].
  assert (B1 : F (fun a => n (S a)) aw a0 t - A g aw a0 t
    <= u * (c1 * M g aw a0 t + (c1 + c0) * A g aw a0 t) / (1 - N * u)).
  { apply IH; [exact C1 | | lra | exact Hu].
    intros a Ha; specialize (Hn (S a) ltac:(lia)); rewrite S_INR in Hn; lra. }
  assert (N0 : INR (n O) <= c0) by (specialize (Hn O ltac:(lia)); simpl in Hn; lra).
  pose proof (pos_INR t).
  assert (0 <= c1 * INR t) by (apply Rmult_le_pos; lra).
  pose proof (pow_count (n O) N c0 N0 ltac:(lra) Hu) as P.
  assert ((rho ^ n O - 1) * aw t <= c0 * u / (1 - N * u) * aw t) by (apply Rmult_le_compat_r; [apply Hw | exact P]).
  assert (Rabs (g t) * (F (fun a => n (S a)) aw a0 t - A g aw a0 t) <=
    Rabs (g t) * (u * (c1 * M g aw a0 t + (c1 + c0) * A g aw a0 t) / (1 - N * u))).
  { apply Rmult_le_compat_l; [apply Rabs_pos | exact B1]. }
  unfold Rdiv in *; lra.
Qed.

(** * Underflow *)
Variables (t : nat) (Gam : R).
Hypothesis Gam_spec : forall s n, (s + n <= t)%nat -> Rabs (G g s n) <= Gam.
Local Notation e := (eta * Gam).
Lemma Gam_1 : 1 <= Gam.
Proof. pose proof (Gam_spec 0 0 ltac:(lia)) as H; simpl in H; rewrite Rabs_R1 in H; exact H. Qed.
Lemma e_0 : 0 <= e. Proof. pose proof Gam_1; apply Rmult_le_pos; lra. Qed.
Local Notation L7 x := (x u eta u_ge0 u_lt1 eta_ge0 e e_0) (only parsing).
Local Notation L12 x := (x u eta u_ge0 u_lt1 eta_ge0 e e_0 g t Gam Gam_spec (Rle_refl e)) (only parsing).

Lemma underflow_count (m N D : nat) : (m <= N)%nat -> INR N * (u + e) <= 1 / 16 ->
  (16 * m <= 15 * (D * (3 * t + D + 6)))%nat ->
  du u e m <= INR D * INR (3 * t + D + 6) * e.
Proof.
intros Hm HN HD; pose proof e_0.
assert (M1 : INR m <= INR N) by now apply le_INR.
assert (M2 : INR m * (u + e) <= INR N * (u + e)) by (apply Rmult_le_compat_r; lra).
eapply Rle_trans; [apply (L7 underflow_gamma); lra|].
pose proof (pos_INR m).
apply le_INR in HD; rewrite !mult_INR in HD.
replace (INR 16) with 16 in HD by (simpl; lra); replace (INR 15) with 15 in HD by (simpl; lra).
assert (0 <= INR m * e) by (apply Rmult_le_pos; lra).
assert (/ (1 - INR m * (u + e)) <= 16 / 15).
{ replace (16 / 15) with (/ (15 / 16)) by field; apply Rinv_le_contravar; lra. }
unfold Rdiv; apply Rle_trans with (INR m * e * (16 / 15)); [apply Rmult_le_compat_l; assumption|].
assert (INR m * (16 / 15) <= INR D * INR (3 * t + D + 6)) by lra.
assert (INR m * (16 / 15) * e <= INR D * INR (3 * t + D + 6) * e) by (apply Rmult_le_compat_r; lra).
lra.
Qed.

Variables (b v : nat -> R) (k : nat -> nat -> R) (s0 : nat -> R) (q : nat -> R) (D : nat).
Variables (kc O0 : R).
Hypothesis kc_spec : forall r i, (i < D)%nat -> Rabs (k r i) <= kc.
Hypothesis O0_spec : forall i, (i < D)%nat -> Rabs (s0 i) <= O0.
Hypothesis D_pos : (1 <= D)%nat.
Local Notation om := (om b v kc).
Local Notation Om := (recurrence_counts.Om om O0).
Local Notation Q := (Q q D).
Local Notation L18 x := (x b v k s0 q D kc O0 kc_spec O0_spec D_pos) (only parsing).

Lemma kc0 : 0 <= kc.
Proof. eapply Rle_trans; [apply Rabs_pos | apply (kc_spec 0 0); lia]. Qed.
Lemma O00 : 0 <= O0.
Proof. eapply Rle_trans; [apply Rabs_pos | apply (O0_spec 0); lia]. Qed.
Lemma Q0 : 0 <= Q.
Proof. apply sumn_ge0; intros; apply Rabs_pos. Qed.
Lemma sources_ge0 : 0 <= sources O0 b v t.
Proof.
unfold sources; pose proof O00.
assert (0 <= sumn (fun s => (1 + Rabs (b s)) * (1 + Rabs (v s))) t); [|lra].
apply sumn_ge0; intros i _; pose proof (Rabs_pos (b i)); pose proof (Rabs_pos (v i)).
apply Rmult_le_pos; lra.
Qed.
Lemma Om_sources : Om t <= (1 + kc) * sources O0 b v t.
Proof.
unfold recurrence_counts.Om, sources, recurrence_counts.oml; simpl.
rewrite (sumn_ext _ (fun s => (1 + kc) * ((1 + Rabs (b s)) * (1 + Rabs (v s)))));
  [|intros; unfold output_counts.om; ring].
rewrite sumn_scal; pose proof kc0; pose proof O00.
assert (0 <= kc * O0) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma cap_amount (n : nat) z : 0 <= z -> (1 <= n)%nat ->
  (1 + z) * (phi g t * Om t) * (INR n * INR (3 * t + n + 6) * e)
  <= eta * underflow_amount t n Gam z kc (sources O0 b v t).
Proof.
intros Hz Hn; pose proof (phi_le g t Gam Gam_spec t (le_n t)); pose proof (phi_ge1 g t).
pose proof Om_sources; pose proof sources_ge0; pose proof kc0; pose proof Gam_1.
assert (O1 : 1 <= Om t).
{ unfold recurrence_counts.Om; pose proof O00.
  assert (0 <= recurrence_counts.oml om 0 t); [|lra].
  unfold recurrence_counts.oml; apply sumn_ge0; intros i _; unfold output_counts.om.
  pose proof (Rabs_pos (b (0 + i)%nat)); pose proof (Rabs_pos (v (0 + i)%nat)).
  apply Rmult_le_pos; [apply Rmult_le_pos|]; lra. }
pose proof (pos_INR n); pose proof (pos_INR (3 * t + n + 6)).
assert (X : phi g t * Om t <= Gam * ((1 + kc) * sources O0 b v t)) by (apply Rmult_le_compat; lra).
unfold underflow_amount.
set (c := INR n * INR (3 * t + n + 6)) in *.
assert (0 <= c) by (apply Rmult_le_pos; lra).
assert (0 <= (1 + z) * (c * (eta * Gam))).
{ apply Rmult_le_pos; [lra|]; apply Rmult_le_pos; [lra|]; apply Rmult_le_pos; lra. }
replace ((1 + z) * (phi g t * Om t) * (c * (eta * Gam)))
  with ((1 + z) * (c * (eta * Gam)) * (phi g t * Om t)) by ring.
replace (eta * (c * (Gam * Gam) * (1 + z) * (1 + kc) * sources O0 b v t))
  with ((1 + z) * (c * (eta * Gam)) * (Gam * ((1 + kc) * sources O0 b v t))) by ring.
apply Rmult_le_compat_l; assumption.
Qed.

(** * States *)
Section State.
Variable i : nat.
Hypothesis Hi : (i < D)%nat.
Local Notation L18i x := (L12 x b (ki k i) v (s0 i) om O0 (om_spec u eta u_ge0 u_lt1 eta_ge0 e e_0 g t Gam Gam_spec (Rle_refl e) b v k s0 q D kc O0 kc_spec O0_spec D_pos i Hi) (O0_spec i Hi)) (only parsing).
Local Notation st := (state g (w b (ki k i) v) (s0 i)).
Local Notation Ai := (A g (aw b (ki k i) v) (Rabs (s0 i)) t).
Local Notation Mi := (M g (aw b (ki k i) v) (Rabs (s0 i)) t).
Local Notation H := (eta * underflow_amount t 1 Gam 0 kc (sources O0 b v t)).
Local Notation bound c1 c0 y :=
  (INR (2 * t + 6) * (u + e) <= 1 / 16 -> (c1 * INR t + c0) * u < 1 ->
   Rabs (y - st t) <= count_bound u c1 c0 t Mi Ai + H).

Lemma state_bound n m y c1 c0 : holds u e g b (ki k i) v (s0 i) om O0 n m t y -> (m <= 2 * t + 4)%nat ->
  0 <= c1 -> (forall a, (a <= t)%nat -> INR (n a) <= c1 * INR a + c0) -> bound c1 c0 y.
Proof.
intros Hh Hm C1 Hn Hu HN; pose proof ((L7 cv_error) _ _ _ _ _ _ Hh) as B.
pose proof (counts_bound (aw b (ki k i) v) (Rabs (s0 i)) t (fun r => Rabs_pos _) (Rabs_pos _) n c1 c0 _ C1 Hn
  (Rle_refl _) HN) as X.
pose proof (underflow_count m (2 * t + 6) 1 ltac:(lia) Hu ltac:(lia)) as U.
pose proof (cap_amount 1 0 (Rle_refl 0) (le_n 1)) as Y.
assert (C0 : 0 <= phi g t * Om t) by exact ((L7 cv_c_ge0) _ _ _ _ _ _ Hh).
assert (phi g t * Om t * du u e m <= phi g t * Om t * (INR 1 * INR (3 * t + 1 + 6) * e))
  by (apply Rmult_le_compat_l; assumption).
unfold count_bound; lra.
Qed.

Theorem sequential_state_bound y : sequential u eta g b (ki k i) v (s0 i) t y -> bound 2 3 y.
Proof.
intros Hy; eapply state_bound; [exact (L18i sequential_state_count t y (le_n t) Hy) | lia | lra |].
intros a _; cbv beta; rewrite plus_INR, mult_INR; simpl; lra.
Qed.
Theorem masked_attention_state_bound y : (1 <= t)%nat ->
  sum_block u eta g b (ki k i) v 0 t (s0 i) y -> bound 1 (INR t + 2) y.
Proof.
intros Ht Hy; eapply state_bound; [exact (L18i masked_attention_state_count t y ltac:(lia) Hy) | lia | lra |].
intros a _; cbv beta; rewrite !plus_INR; simpl; lra.
Qed.
Lemma INR_div a C : (1 <= C)%nat -> INR (a / C) <= INR a / INR C.
Proof.
intros HC; assert (1 <= INR C) by (apply (le_INR 1); lia).
apply Rmult_le_reg_r with (INR C); [lra|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
rewrite <- mult_INR; apply le_INR; rewrite Nat.mul_comm; apply Nat.mul_div_le; lia.
Qed.
(* t = c C + r; a sequence shorter than the chunk size has one chunk: C = t *)
Theorem chunked_state_bound C c r y : (1 <= r <= C)%nat -> (C <= t)%nat -> t = (c * C + r)%nat ->
  chunked_state u eta g b (ki k i) v (s0 i) C c r y -> bound (1 + / INR C) (2 * INR C + 4) y.
Proof.
intros Hr HC E Hy; assert (1 <= INR C) by (apply (le_INR 1); lia).
pose proof (L18i chunked_state_count C c r y Hr ltac:(lia) Hy) as X; rewrite <- E in X.
eapply state_bound; [exact X | lia | assert (0 < / INR C) by (apply Rinv_0_lt_compat; lra); lra |].
intros a _; cbv beta; pose proof (INR_div a C ltac:(lia)); rewrite !plus_INR; unfold Rdiv in *; simpl; lra.
Qed.
(* trees of C steps, the state carried from one to the next *)
Theorem scan_carried_state_bound C c r y : (1 <= r <= C)%nat -> (C <= t)%nat -> t = (c * C + r)%nat ->
  scan_carried_state u eta g b (ki k i) v (s0 i) C c r y -> bound (1 + / INR C) (2 * INR C + 4) y.
Proof. intros Hr HC E Hy; now apply (chunked_state_bound C c r y Hr HC E), scan_carried_chunked. Qed.
Theorem scan_state_bound d y : (d <= 2 * Nat.log2_up t + 1)%nat ->
  scan_state u eta g b (ki k i) v (s0 i) t d y -> bound 1 (2 * INR (Nat.log2_up t) + 4) y.
Proof.
intros Hd Hy.
assert (Hd' : (d <= t - 1)%nat) by (destruct Hy as (p & U & Sc & _); exact (proj2 (scan_depth_free _ _ _ _ _ _ _ _ _ _ Sc))).
eapply state_bound; [exact (L18i scan_state_count t d y (le_n t) Hy) | lia | lra |].
intros a _; cbv beta; apply le_INR in Hd; rewrite !plus_INR, mult_INR in *; simpl in *; lra.
Qed.
Theorem any_order_state_bound y : any_form u eta g b (ki k i) v (s0 i) t y -> bound 0 (2 * INR t + 4) y.
Proof.
intros Hy; eapply state_bound; [exact (L18i any_order_state_count t y (le_n t) Hy) | lia | lra |].
intros a Ha; cbv beta; apply le_INR in Ha; rewrite !plus_INR; simpl; lra.
Qed.
End State.

(** * Outputs *)
Local Notation L23 x := (L12 x b v k s0 q D kc O0 kc_spec O0_spec D_pos) (only parsing).
Local Notation y_exact := (out g b v k s0 q D t).
Local Notation B := (A g (awq b v k q D) (a0q s0 q D) t).
Local Notation BM := (M g (awq b v k q D) (a0q s0 q D) t).
Local Notation H := (eta * underflow_amount t D Gam Q kc (sources O0 b v t)).
Local Notation bound c1 c0 y :=
  (INR (2 * t + 2 * D + 4) * (u + e) <= 1 / 16 -> (c1 * INR t + c0) * u < 1 ->
   Rabs (y - y_exact) <= count_bound u c1 c0 t BM B + H).

Lemma output_bound n m y c1 c0 : holds_out u e g b v k s0 q D kc O0 n m t y -> (1 <= t)%nat ->
  (m <= 2 * t + 2 * D + 3)%nat ->
  0 <= c1 -> (forall a, (a <= t)%nat -> INR (n a) <= c1 * INR a + c0) -> bound c1 c0 y.
Proof.
intros Hh Ht Hm C1 Hn Hu HN; pose proof ((L7 cv_error) _ _ _ _ _ _ Hh) as X0.
pose proof (counts_bound (awq b v k q D) (a0q s0 q D) t (L23 awq_ge0) (L23 a0q_ge0) n c1 c0 _ C1 Hn
  (Rle_refl _) HN) as X.
pose proof (underflow_count m (2 * t + 2 * D + 4) D ltac:(lia) Hu ltac:(nia)) as U.
pose proof (cap_amount D Q Q0 D_pos) as Y.
assert (C0 : 0 <= (1 + Q) * (phi g t * Om t)) by exact ((L7 cv_c_ge0) _ _ _ _ _ _ Hh).
assert ((1 + Q) * (phi g t * Om t) * du u e m <= (1 + Q) * (phi g t * Om t) * (INR D * INR (3 * t + D + 6) * e))
  by (apply Rmult_le_compat_l; assumption).
unfold count_bound; lra.
Qed.

Theorem sequential_output_bound sh y : (1 <= t)%nat ->
  (forall i, (i < D)%nat -> sequential u eta g b (ki k i) v (s0 i) t (sh i)) -> dot_hat u eta q sh D y ->
  bound 2 (INR D + 3) y.
Proof.
intros Ht Hs Hy; eapply output_bound; [exact (L23 sequential_output_count t sh y (le_n t) Hs Hy) | lia | lia | lra |].
intros a _; cbv beta; rewrite !plus_INR, mult_INR; simpl; lra.
Qed.
Theorem masked_attention_output_bound y : (1 <= t)%nat ->
  attention u eta g b v k q D 0 t s0 y -> bound 1 (INR t + INR D + 2) y.
Proof.
intros Ht Hy; eapply output_bound; [exact (L23 masked_attention_output_count t y (le_n t) Hy) | lia | lia | lra |].
intros a _; cbv beta; rewrite !plus_INR; simpl; lra.
Qed.
Theorem chunked_output_bound C c r sh y : (1 <= r <= C)%nat -> (C <= t)%nat -> t = (c * C + r)%nat ->
  (forall i, (i < D)%nat -> chunk_states u eta g b (ki k i) v (s0 i) C c (sh i)) ->
  attention u eta g b v k q D (c * C) r sh y -> bound (1 + / INR C) (2 * INR C + INR D + 4) y.
Proof.
intros Hr HC E Hs Hy; assert (1 <= INR C) by (apply (le_INR 1); lia).
destruct (L23 chunked_output_count C c r sh y Hr ltac:(lia) Hs Hy) as (n & Hn & X); rewrite <- E in *.
eapply output_bound; [exact X | lia | lia | assert (0 < / INR C) by (apply Rinv_0_lt_compat; lra); lra |].
intros a Ha; destruct (Hn a Ha) as (Na & _); apply le_INR in Na.
pose proof (INR_div 0 D_pos a C ltac:(lia)) as Y; rewrite !plus_INR, mult_INR in Na; unfold Rdiv in Y; simpl in Na; lra.
Qed.
Theorem scan_carried_output_bound C c r sh y : (1 <= r <= C)%nat -> (C <= t)%nat -> t = (c * C + r)%nat ->
  (forall i, (i < D)%nat -> scan_carried_state u eta g b (ki k i) v (s0 i) C c r (sh i)) -> dot_hat u eta q sh D y ->
  bound (1 + / INR C) (2 * INR C + INR D + 4) y.
Proof.
intros Hr HC E Hs Hy; assert (1 <= INR C) by (apply (le_INR 1); lia).
pose proof (L23 scan_carried_output_count C c r sh y Hr ltac:(lia) Hs Hy) as X; rewrite <- E in X.
eapply output_bound; [exact X | lia | lia | assert (0 < / INR C) by (apply Rinv_0_lt_compat; lra); lra |].
intros a _; cbv beta; pose proof (INR_div 0 D_pos a C ltac:(lia)); rewrite !plus_INR; unfold Rdiv in *; simpl; lra.
Qed.
Theorem scan_output_bound d sh y : (1 <= t)%nat -> (d <= 2 * Nat.log2_up t + 1)%nat ->
  (forall i, (i < D)%nat -> scan_state u eta g b (ki k i) v (s0 i) t d (sh i)) -> dot_hat u eta q sh D y ->
  bound 1 (2 * INR (Nat.log2_up t) + INR D + 4) y.
Proof.
intros Ht Hd Hs Hy.
assert (Hd' : (d <= t - 1)%nat).
{ destruct (Hs 0%nat ltac:(lia)) as (p & U & Sc & _).
  exact (proj2 (scan_depth_free u eta g b (ki k 0) v _ _ _ _ Sc)). }
eapply output_bound; [exact (L23 scan_output_count t d sh y (le_n t) Hs Hy) | lia | lia | lra |].
intros a _; cbv beta; apply le_INR in Hd; rewrite !plus_INR, mult_INR in *; simpl in *; lra.
Qed.
Theorem any_order_output_bound y : (1 <= t)%nat ->
  any_output u eta g b v k s0 q D t y -> bound 0 (2 * INR t + INR D + 4) y.
Proof.
intros Ht Hy; eapply output_bound; [exact (L23 any_order_output_count t y (le_n t) Hy) | lia | lia | lra |].
intros a Ha; cbv beta; apply le_INR in Ha; rewrite !plus_INR; simpl; lra.
Qed.
End Bounds.
