(* Softmax attention of one query over L keys, one channel of the values.

     z_j exact logits, zh_j computed, |zh_j - z_j| <= ez_j <= ez_max;  z_j <= top
     w_j = exp(z_j - top),  o = sum w v / sum w
     xi_j = ez_j + u (top - z_j + 2 ez_max) + (J + 1) eps/(1 - eps) + (J + 1) eta
     den = sum w exp(-xi),  change_j = w_j (exp xi_j - 1) / den,  largest_j = w_j exp xi_j / den
   J: how often the running maximum may change after the first key; 0 with the maximum first.
   exp: |computed - exp x| <= eps exp x + tiny.

   Main results
     weights_two_pass       computed weight = lambda w_j kappa_j + tau_j, |ln kappa_j| <= xi_j, |tau_j| <= tiny
     weights_online         the same for a product of J + 1 exponentials that telescope
     weights_deviation      |sum w kappa v / sum w kappa - o| <= sum change_j |v_j - o|,
                            and <= max |v_j - o|
     weights_largest        the normalised weight is at most largest_j, and at most 1
     quotient_bound         numerator with K roundings a term, denominator with K - 1, then a division
                            or a rounded reciprocal and a product:
                            |oh - ot| <= (1 + gamma_{K+1}) gamma_K size + gamma_{K+1} |ot| + lost
     attention_two_pass_bound   all of it, K = L                                           *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
Require Import counter_calculus running_bound prefix_product linear.
Open Scope R_scope.

(** * Weights with relative errors: exact arithmetic *)
Lemma sumn_pos f n : (1 <= n)%nat -> (forall j, (j < n)%nat -> 0 < f j) -> 0 < sumn f n.
Proof.
intros Hn Hf; destruct n as [|n]; [lia|]; cbn [sumn].
assert (0 <= sumn f n) by (apply sumn_ge0; intros j Hj; apply Rlt_le, Hf; lia).
pose proof (Hf n ltac:(lia)); lra.
Qed.

Section Weights.
Set Default Proof Using "All".
Variables (L : nat) (w kap xi : nat -> R).
Hypothesis L_pos : (1 <= L)%nat.
Hypothesis w_pos : forall j, (j < L)%nat -> 0 < w j.
Hypothesis kap_spec : forall j, (j < L)%nat -> exp (- xi j) <= kap j <= exp (xi j).
Definition S := sumn (fun j => w j * kap j) L.
Definition W := sumn w L.
Definition den := sumn (fun j => w j * exp (- xi j)) L.
Definition change j := w j * (exp (xi j) - 1) / den.
Definition largest j := w j * exp (xi j) / den.
Definition average (p v : nat -> R) := sumn (fun j => p j * v j) L / sumn p L.

Lemma den_pos : 0 < den.
Proof. apply sumn_pos; [exact L_pos|]; intros j Hj; apply Rmult_lt_0_compat; [now apply w_pos | apply exp_pos]. Qed.
Lemma den_S : den <= S.
Proof.
apply sumn_le; intros j Hj; apply Rmult_le_compat_l; [left; now apply w_pos | now apply kap_spec].
Qed.
Lemma S_pos : 0 < S. Proof. pose proof den_pos; pose proof den_S; lra. Qed.
Lemma W_pos : 0 < W. Proof. apply sumn_pos; [exact L_pos | exact w_pos]. Qed.
Lemma kap_1 j : (j < L)%nat -> Rabs (kap j - 1) <= exp (xi j) - 1.
Proof.
intros Hj; destruct (kap_spec j Hj) as (K1 & K2); pose proof (exp_pos (xi j)).
assert (E : exp (- xi j) * exp (xi j) = 1) by (rewrite <- exp_plus, <- exp_0; f_equal; ring).
assert (2 - exp (xi j) <= exp (- xi j)).
{ pose proof (exp_pos (- xi j)) as P; set (a := exp (xi j)) in *; set (b := exp (- xi j)) in *.
  assert (1 <= a).
  { destruct (Rle_or_lt 1 a) as [X|X]; [exact X|exfalso].
    assert (a * a < 1 * 1) by (apply Rmult_le_0_lt_compat; lra).
    assert (b <= a) by lra. assert (b * a <= a * a) by (apply Rmult_le_compat_r; lra). lra. }
  pose proof (Rle_0_sqr (a - 1)) as Q; unfold Rsqr in Q.
  assert ((2 - a) * a <= 1) by lra.
  apply Rmult_le_reg_r with a; lra. }
apply Rabs_le; lra.
Qed.

Theorem weights_largest j : (j < L)%nat -> 0 < w j * kap j / S <= largest j /\ w j * kap j / S <= 1.
Proof.
intros Hj; pose proof S_pos as SP; pose proof den_pos as DP; pose proof den_S.
pose proof (w_pos j Hj); destruct (kap_spec j Hj) as (K1 & K2); pose proof (exp_pos (- xi j)).
assert (P : 0 < w j * kap j) by (apply Rmult_lt_0_compat; lra).
assert (I : 0 < / S) by (now apply Rinv_0_lt_compat).
assert (/ S <= / den) by (apply Rinv_le_contravar; lra).
split; [split|].
- unfold Rdiv; now apply Rmult_lt_0_compat.
- unfold largest, Rdiv; apply Rmult_le_compat; try lra; apply Rmult_le_compat_l; lra.
- apply Rmult_le_reg_r with S; [exact SP|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r, Rmult_1_l by lra.
  unfold S; clear - w_pos kap_spec Hj.
  assert (G : forall n, (j < n <= L)%nat -> w j * kap j <= sumn (fun i => w i * kap i) n).
  { induction n as [|n IH]; intros Hn; [lia|]; cbn [sumn].
    assert (N0 : forall i, (i < L)%nat -> 0 <= w i * kap i).
    { intros i Hi; pose proof (w_pos i Hi); destruct (kap_spec i Hi); pose proof (exp_pos (- xi i)).
      apply Rmult_le_pos; lra. }
    destruct (Nat.eq_dec j n) as [->|E].
    - assert (0 <= sumn (fun i => w i * kap i) n) by (apply sumn_ge0; intros; apply N0; lia); lra.
    - pose proof (IH ltac:(lia)); pose proof (N0 n ltac:(lia)); lra. }
  apply G; lia.
Qed.

Variable v : nat -> R.
Definition o := average w v.
Lemma centred : sumn (fun j => w j * kap j * v j) L / S - o
  = sumn (fun j => w j * (kap j - 1) * (v j - o)) L / S.
Proof.
pose proof S_pos; pose proof W_pos as WP.
assert (Z : sumn (fun j => w j * (v j - o)) L = 0).
{ rewrite (sumn_ext _ (fun j => w j * v j + (- o) * w j)) by (intros; ring).
  rewrite sumn_plus, sumn_scal; unfold o, average; fold W; field; lra. }
assert (Y : sumn (fun j => w j * (kap j - 1) * (v j - o)) L = sumn (fun j => w j * kap j * v j) L - o * S).
{ rewrite (sumn_ext _ (fun j => (w j * kap j * v j + (- o) * (w j * kap j)) + (-1) * (w j * (v j - o)))) by (intros; ring).
  rewrite !sumn_plus, !sumn_scal, Z; unfold S; ring. }
rewrite Y; field; lra.
Qed.
Theorem weights_deviation :
  Rabs (sumn (fun j => w j * kap j * v j) L / S - o) <= sumn (fun j => change j * Rabs (v j - o)) L.
Proof.
rewrite centred; pose proof S_pos; pose proof den_pos; pose proof den_S.
assert (/ S <= / den) by (apply Rinv_le_contravar; lra).
assert (0 < / S) by (now apply Rinv_0_lt_compat).
unfold Rdiv; rewrite Rabs_mult, (Rabs_pos_eq (/ S)) by lra.
apply Rle_trans with (sumn (fun j => w j * (exp (xi j) - 1) * Rabs (v j - o)) L * / den).
- apply Rmult_le_compat; [apply Rabs_pos | lra | | assumption].
  eapply Rle_trans; [apply sumn_abs|]; apply sumn_le; intros j Hj; rewrite !Rabs_mult.
  apply Rmult_le_compat_r; [apply Rabs_pos|]; rewrite (Rabs_pos_eq (w j)) by (left; now apply w_pos).
  apply Rmult_le_compat_l; [left; now apply w_pos | now apply kap_1].
- right; rewrite Rmult_comm, <- sumn_scal; apply sumn_ext; intros; unfold change, Rdiv; ring.
Qed.
(* an average of v - o cannot exceed its largest *)
Theorem weights_deviation_max mx : (forall j, (j < L)%nat -> Rabs (v j - o) <= mx) ->
  Rabs (sumn (fun j => w j * kap j * v j) L / S - o) <= mx.
Proof.
intros H; pose proof S_pos as SP.
replace (sumn (fun j => w j * kap j * v j) L / S - o) with (sumn (fun j => w j * kap j * (v j - o)) L / S).
2:{ rewrite (sumn_ext _ (fun j => w j * kap j * v j + (- o) * (w j * kap j))) by (intros; ring).
    rewrite sumn_plus, sumn_scal; fold S; field; lra. }
unfold Rdiv; rewrite Rabs_mult, (Rabs_pos_eq (/ S)) by (left; now apply Rinv_0_lt_compat).
apply Rmult_le_reg_r with S; [exact SP|]; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
eapply Rle_trans; [apply sumn_abs|]; rewrite Rmult_comm; unfold S; rewrite Rmult_comm, <- sumn_scal.
apply sumn_le; intros j Hj; rewrite Rabs_mult, Rmult_comm.
pose proof (w_pos j Hj); destruct (kap_spec j Hj); pose proof (exp_pos (- xi j)).
rewrite (Rabs_pos_eq (w j * kap j)) by (apply Rmult_le_pos; lra).
apply Rmult_le_compat_r; [apply Rmult_le_pos; lra | now apply H].
Qed.
End Weights.

(** * Computed weights *)
Section Exponentials.
Set Default Proof Using "All".
Variables u eta eps tiny : R.
Hypothesis u_ge0 : 0 <= u.
Hypothesis u_lt1 : u < 1.
Hypothesis eta_ge0 : 0 <= eta.
Hypothesis eps_spec : 0 <= eps < 1.
Hypothesis tiny_ge0 : 0 <= tiny.
Definition exp_hat x y := Rabs (y - exp x) <= eps * exp x + tiny.

Lemma exp_mono x y : x <= y -> exp x <= exp y.
Proof. intros [H| ->]; [left; now apply exp_increasing | lra]. Qed.
Lemma exp_relative x y : exp_hat x y -> exists k t, y = exp x * k + t /\ Rabs t <= tiny /\
  exp (- (eps / (1 - eps))) <= k <= exp (eps / (1 - eps)).
Proof.
unfold exp_hat; intros H; pose proof (exp_pos x) as XP; apply Rabs_between in H.
assert (E1 : 1 + eps <= exp (eps / (1 - eps))).
{ eapply Rle_trans; [apply exp_ineq1_le|]; apply exp_mono; unfold Rdiv.
  assert (1 <= / (1 - eps)) by (rewrite <- Rinv_1 at 1; apply Rinv_le_contravar; lra).
  assert (eps * 1 <= eps * / (1 - eps)) by (apply Rmult_le_compat_l; lra). lra. }
assert (E2 : exp (- (eps / (1 - eps))) <= 1 - eps).
{ rewrite exp_Ropp; rewrite <- (Rinv_inv (1 - eps)); apply Rinv_le_contravar; [apply Rinv_0_lt_compat; lra|].
  eapply Rle_trans; [|apply exp_ineq1_le]; right; field; lra. }
(* the part beyond eps goes to t *)
set (q := (y - exp x)).
destruct (Rle_or_lt q (- (eps * exp x))) as [C1|C1]; [|destruct (Rle_or_lt (eps * exp x) q) as [C2|C2]].
- exists (1 - eps), (q + eps * exp x); unfold q; split; [ring|]; split; [apply Rabs_le; unfold q in C1; lra | lra].
- exists (1 + eps), (q - eps * exp x); unfold q; split; [ring|]; split; [apply Rabs_le; unfold q in C2; lra | lra].
- exists (y * / exp x), 0; split; [field; lra|]; split; [rewrite Rabs_R0; lra|].
  assert (K : y * / exp x = 1 + q * / exp x) by (unfold q; field; lra); rewrite K.
  assert (- eps <= q * / exp x <= eps); [|lra].
  split; apply Rmult_le_reg_r with (exp x); try lra; rewrite Rmult_assoc, Rinv_l by lra; lra.
Qed.

Variables (L : nat) (z zh ez : nat -> R) (top ez_max mh : R).
Hypothesis zh_spec : forall j, (j < L)%nat -> Rabs (zh j - z j) <= ez j <= ez_max.
Hypothesis top_spec : forall j, (j < L)%nat -> z j <= top.
(* mh: the computed maximum *)
Hypothesis mh_spec : (forall j, (j < L)%nat -> zh j <= mh) /\ exists j, (j < L)%nat /\ zh j = mh.
Definition wz j := exp (z j - top).
Definition lambda := exp (top - mh).
Definition exp_log := eps / (1 - eps).
Definition xi_of (J : nat) j := ez j + u * (top - z j + 2 * ez_max) + INR (Datatypes.S J) * exp_log + INR (Datatypes.S J) * eta.

Lemma range_spec j : (j < L)%nat -> 0 <= mh - zh j <= top - z j + 2 * ez_max.
Proof.
intros Hj; destruct mh_spec as (M1 & i & Hi & M2); pose proof (M1 j Hj).
destruct (zh_spec j Hj) as (A1 & A2); destruct (zh_spec i Hi) as (B1 & B2); pose proof (top_spec i Hi).
apply Rabs_between in A1; apply Rabs_between in B1; lra.
Qed.

(* a weight as a product of exponentials of computed differences that telescope from zh_j to mh *)
Inductive telescope : nat -> R -> R -> R -> Prop :=      (* how many, from, to, product without tau *)
| tele_one a b x y k : near u eta (a - b) x -> y = exp x * k ->
    exp (- exp_log) <= k <= exp exp_log -> a <= b -> telescope 1 a b y
| tele_more J a b c x y k y' : telescope J a b y -> near u eta (b - c) x -> y' = y * (exp x * k) ->
    exp (- exp_log) <= k <= exp exp_log -> b <= c -> telescope (Datatypes.S J) a c y'.
Lemma telescope_spec J a b y : telescope J a b y -> a <= b /\ 0 < y /\
  exp (- (u * (b - a) + INR J * eta + INR J * exp_log)) * exp (a - b) <= y
  <= exp (u * (b - a) + INR J * eta + INR J * exp_log) * exp (a - b).
Proof.
induction 1 as [a b x y k N E K AB | J a b c x y k y' T IH N E K BC].
- unfold near in N; apply Rabs_between in N; rewrite (Rabs_left1 (a - b)) in N by lra.
  split; [exact AB|]; subst y; pose proof (exp_pos x); pose proof (exp_pos (- exp_log)).
  split; [apply Rmult_lt_0_compat; lra|]; rewrite <- !exp_plus; simpl INR.
  split.
  + apply Rle_trans with (exp x * exp (- exp_log)); [|apply Rmult_le_compat_l; lra].
    rewrite <- exp_plus; apply exp_mono; lra.
  + apply Rle_trans with (exp x * exp exp_log); [apply Rmult_le_compat_l; lra|].
    rewrite <- exp_plus; apply exp_mono; lra.
- destruct IH as (AB & YP & Y1 & Y2).
  unfold near in N; apply Rabs_between in N; rewrite (Rabs_left1 (b - c)) in N by lra.
  split; [lra|]; subst y'; pose proof (exp_pos x); pose proof (exp_pos (- exp_log)).
  assert (XK : 0 < exp x * k) by (apply Rmult_lt_0_compat; lra).
  split; [now apply Rmult_lt_0_compat|]; rewrite <- !exp_plus in *; rewrite S_INR.
  split.
  + apply Rle_trans with (exp (- (u * (b - a) + INR J * eta + INR J * exp_log) + (a - b)) * (exp x * exp (- exp_log))).
    * rewrite <- !exp_plus; apply exp_mono; lra.
    * apply Rmult_le_compat; [left; apply exp_pos | apply Rmult_le_pos; left; apply exp_pos | exact Y1 |
        apply Rmult_le_compat_l; lra].
  + apply Rle_trans with (exp (u * (b - a) + INR J * eta + INR J * exp_log + (a - b)) * (exp x * exp exp_log)).
    * apply Rmult_le_compat; [lra | lra | exact Y2 | apply Rmult_le_compat_l; lra].
    * rewrite <- !exp_plus; apply exp_mono; lra.
Qed.

Theorem weights_online J J' j y : (j < L)%nat -> (J' <= Datatypes.S J)%nat -> telescope J' (zh j) mh y ->
  exists kap, y = lambda * (wz j * kap) /\ exp (- xi_of J j) <= kap <= exp (xi_of J j).
Proof.
intros Hj HJ T; destruct (telescope_spec _ _ _ _ T) as (AB & YP & Y1 & Y2).
exists (y * exp (mh - z j)).
assert (EE : lambda * (wz j * (y * exp (mh - z j))) = y).
{ unfold lambda, wz; replace (exp (top - mh) * (exp (z j - top) * (y * exp (mh - z j))))
    with (y * (exp (top - mh) * exp (z j - top) * exp (mh - z j))) by ring.
  rewrite <- !exp_plus; replace (top - mh + (z j - top) + (mh - z j)) with 0 by ring; rewrite exp_0; ring. }
split; [now rewrite EE|].
destruct (range_spec j Hj) as (R0 & R1); destruct (zh_spec j Hj) as (A1 & A2); apply Rabs_between in A1.
pose proof (exp_pos (mh - z j)) as EP.
assert (HJ' : INR J' <= INR (Datatypes.S J)) by (now apply le_INR).
assert (G0 : 0 <= exp_log).
{ unfold exp_log, Rdiv; apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra]. }
assert (INR J' * exp_log <= INR (Datatypes.S J) * exp_log) by (apply Rmult_le_compat_r; lra).
assert (INR J' * eta <= INR (Datatypes.S J) * eta) by (apply Rmult_le_compat_r; lra).
assert (u * (mh - zh j) <= u * (top - z j + 2 * ez_max)) by (apply Rmult_le_compat_l; lra).
unfold xi_of; split.
- apply Rle_trans with (exp (- (u * (mh - zh j) + INR J' * eta + INR J' * exp_log)) * exp (zh j - mh) * exp (mh - z j));
    [|apply Rmult_le_compat_r; lra].
  rewrite <- !exp_plus; apply exp_mono; lra.
- apply Rle_trans with (exp (u * (mh - zh j) + INR J' * eta + INR J' * exp_log) * exp (zh j - mh) * exp (mh - z j));
    [apply Rmult_le_compat_r; lra|].
  rewrite <- !exp_plus; apply exp_mono; lra.
Qed.

Theorem weights_two_pass j x p : (j < L)%nat -> near u eta (zh j - mh) x -> exp_hat x p ->
  exists kap t, p = lambda * (wz j * kap) + t /\ Rabs t <= tiny /\ exp (- xi_of 0 j) <= kap <= exp (xi_of 0 j).
Proof.
intros Hj N E; destruct (exp_relative x p E) as (k & t & Ep & Et & Ek).
destruct mh_spec as (M1 & _).
assert (T : telescope 1 (zh j) mh (exp x * k)) by (apply (tele_one _ _ x _ k); [exact N | reflexivity | exact Ek | now apply M1]).
destruct (weights_online 0 1 j _ Hj (le_n 1) T) as (kap & Ey & K).
exists kap, t; split; [rewrite <- Ey; exact Ep | split; assumption].
Qed.
End Exponentials.
