(* Softmax attention of one query over L keys, one channel of the values.

     z_j exact logits, zh_j computed, |zh_j - z_j| <= ez_j <= ez_max;  z_j <= top
     w_j = exp(z_j - top),  o = sum w v / sum w
     xi_j = ez_j + u (top - z_j + 2 ez_max) + (J + 1) eps/(1 - eps) + (J + 1) eta
     den = sum w exp(-xi),  change_j = w_j (exp xi_j - 1) / den,  largest_j = min(1, w_j exp xi_j / den)
   J: how often the running maximum may change after the first key; 0 with the maximum first.
   exp: |computed - exp x| <= eps exp x + tiny.

   Main results
     weights_two_pass       computed weight = lambda w_j kappa_j + tau_j, |ln kappa_j| <= xi_j, |tau_j| <= tiny
     weights_online         the same for a product of J + 1 exponentials that telescope
     weights_deviation      |sum w kappa v / sum w kappa - o| <= sum change_j |v_j - o|,
                            and <= max |v_j - o|
     weights_largest        the normalised weight is at most largest_j
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
Definition largest j := Rmin 1 (w j * exp (xi j) / den).
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

Theorem weights_largest j : (j < L)%nat -> 0 < w j * kap j / S <= largest j.
Proof.
intros Hj; pose proof S_pos as SP; pose proof den_pos as DP; pose proof den_S.
pose proof (w_pos j Hj); destruct (kap_spec j Hj) as (K1 & K2); pose proof (exp_pos (- xi j)).
assert (P : 0 < w j * kap j) by (apply Rmult_lt_0_compat; lra).
assert (I : 0 < / S) by (now apply Rinv_0_lt_compat).
assert (/ S <= / den) by (apply Rinv_le_contravar; lra).
split; [unfold Rdiv; now apply Rmult_lt_0_compat | unfold largest; apply Rmin_glb].
2:{ unfold Rdiv; apply Rmult_le_compat; try lra; apply Rmult_le_compat_l; lra. }
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
(* the part of a computed exponential within eps; the rest is at most tiny *)
Definition clamped x y := Rmax ((1 - eps) * exp x) (Rmin ((1 + eps) * exp x) y).
Lemma exp_relative x y : exp_hat x y -> Rabs (y - clamped x y) <= tiny /\
  exp (- (eps / (1 - eps))) <= clamped x y / exp x <= exp (eps / (1 - eps)).
Proof.
unfold exp_hat; intros H; pose proof (exp_pos x) as XP; apply Rabs_between in H.
assert (E1 : 1 + eps <= exp (eps / (1 - eps))).
{ eapply Rle_trans; [apply exp_ineq1_le|]; apply exp_mono; unfold Rdiv.
  assert (1 <= / (1 - eps)) by (rewrite <- Rinv_1 at 1; apply Rinv_le_contravar; lra).
  assert (eps * 1 <= eps * / (1 - eps)) by (apply Rmult_le_compat_l; lra). lra. }
assert (E2 : exp (- (eps / (1 - eps))) <= 1 - eps).
{ rewrite exp_Ropp; rewrite <- (Rinv_inv (1 - eps)); apply Rinv_le_contravar; [apply Rinv_0_lt_compat; lra|].
  eapply Rle_trans; [|apply exp_ineq1_le]; right; field; lra. }
assert (B : (1 - eps) * exp x <= clamped x y <= (1 + eps) * exp x).
{ assert (0 <= eps * exp x) by (apply Rmult_le_pos; lra).
  unfold clamped, Rmax, Rmin; destruct (Rle_dec ((1 + eps) * exp x) y), (Rle_dec ((1 - eps) * exp x) _); lra. }
split.
- unfold clamped, Rmax, Rmin; destruct (Rle_dec ((1 + eps) * exp x) y), (Rle_dec ((1 - eps) * exp x) _);
    apply Rabs_le; lra.
- split; apply Rmult_le_reg_r with (exp x); try exact XP; unfold Rdiv; rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  + apply Rle_trans with ((1 - eps) * exp x); [apply Rmult_le_compat_r|]; lra.
  + apply Rle_trans with ((1 + eps) * exp x); [|apply Rmult_le_compat_r]; lra.
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
  let kap := y * exp (mh - z j) in
  y = lambda * (wz j * kap) /\ exp (- xi_of J j) <= kap <= exp (xi_of J j).
Proof.
intros Hj HJ T; destruct (telescope_spec _ _ _ _ T) as (AB & YP & Y1 & Y2); cbv zeta.
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

Lemma one_telescope j x p : (j < L)%nat -> near u eta (zh j - mh) x -> exp_hat x p -> telescope 1 (zh j) mh (clamped x p).
Proof.
intros Hj N E; destruct (exp_relative x p E) as (_ & Ek); destruct mh_spec as (M1 & _).
apply (tele_one _ _ x _ (clamped x p / exp x)); [exact N | field; pose proof (exp_pos x); lra | exact Ek | now apply M1].
Qed.
Theorem weights_two_pass j x p : (j < L)%nat -> near u eta (zh j - mh) x -> exp_hat x p ->
  let kap := clamped x p * exp (mh - z j) in
  Rabs (p - lambda * (wz j * kap)) <= tiny /\ exp (- xi_of 0 j) <= kap <= exp (xi_of 0 j).
Proof.
intros Hj N E; cbv zeta; destruct (exp_relative x p E) as (Et & _).
destruct (weights_online 0 1 j _ Hj (le_n 1) (one_telescope j x p Hj N E)) as (Ey & K); cbv zeta in *.
split; [rewrite <- Ey; exact Et | exact K].
Qed.
(* the largest weight is about 1, none is much larger *)
Lemma exp_half : exp (1 / 2) <= 2.
Proof.
assert (1 / 2 <= exp (- (1 / 2))) by (eapply Rle_trans; [|apply exp_ineq1_le]; lra).
rewrite exp_Ropp in H; pose proof (exp_pos (1 / 2)).
apply Rmult_le_reg_r with (/ exp (1 / 2)); [now apply Rinv_0_lt_compat|]; rewrite Rinv_r by lra; lra.
Qed.
Lemma clamped_range j x p : (j < L)%nat -> near u eta (zh j - mh) x -> exp_hat x p -> eta + exp_log <= 1 / 2 ->
  0 < clamped x p <= 2 /\ (zh j = mh -> 1 / 2 <= clamped x p).
Proof.
intros Hj N E Sm; destruct (telescope_spec _ _ _ _ (one_telescope j x p Hj N E)) as (AB & YP & Y1 & Y2).
simpl INR in *; rewrite <- exp_plus in *.
assert (0 <= (1 - u) * (mh - zh j)) by (apply Rmult_le_pos; lra).
split; [split; [exact YP|]|].
- eapply Rle_trans; [exact Y2|]; eapply Rle_trans; [|apply exp_half]; apply exp_mono; lra.
- intros Ez; rewrite Ez in *; eapply Rle_trans; [|exact Y1].
  apply Rle_trans with (exp (- (1 / 2))); [eapply Rle_trans; [|apply exp_ineq1_le]; lra | apply exp_mono; lra].
Qed.
End Exponentials.

(** * The quotient *)
Section Quotient.
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

(* a sum of terms that are not negative keeps its relative error on both sides *)
Lemma low_1 k : 0 < (1 - u) ^ k <= 1.
Proof.
induction k as [|k (I1 & I2)]; [simpl; lra|]; cbn [pow]; split; [apply Rmult_lt_0_compat; lra|].
assert ((1 - u) * (1 - u) ^ k <= 1 * 1) by (apply Rmult_le_compat; lra). lra.
Qed.
Lemma low_mono j k : (j <= k)%nat -> (1 - u) ^ k <= (1 - u) ^ j.
Proof.
intros H; replace k with (j + (k - j))%nat by lia; rewrite pow_add.
destruct (low_1 j), (low_1 (k - j)).
assert ((1 - u) ^ j * (1 - u) ^ (k - j) <= (1 - u) ^ j * 1) by (apply Rmult_le_compat_l; lra). lra.
Qed.
Lemma sumtree_low f l y : sumtree u eta f l y -> (forall i, In i l -> 0 <= f i) ->
  0 <= lsum f l /\ (1 - u) ^ (length l - 1) * lsum f l - INR (length l - 1) * rho ^ (length l - 1) * eta <= y.
Proof.
induction 1 as [i | l1 y1 l2 y2 y T1 IH1 T2 IH2 N]; intros H.
- pose proof (H i (or_introl eq_refl)); simpl; split; lra.
- destruct IH1 as (S1 & B1); [intros i I; apply H, in_or_app; auto|].
  destruct IH2 as (S2 & B2); [intros i I; apply H, in_or_app; auto|].
  pose proof ((L7 sumtree_length) _ _ _ T1) as L1; pose proof ((L7 sumtree_length) _ _ _ T2) as L2.
  rewrite lsum_app, app_length; split; [lra|].
  set (n1 := (length l1 - 1)%nat) in *; set (n2 := (length l2 - 1)%nat) in *.
  replace (length l1 + length l2 - 1)%nat with (Datatypes.S (n1 + n2)) by (unfold n1, n2; lia).
  set (s1 := lsum f l1) in *; set (s2 := lsum f l2) in *.
  pose proof (low_mono n1 (n1 + n2) ltac:(lia)) as M1; pose proof (low_mono n2 (n1 + n2) ltac:(lia)) as M2.
  pose proof (L5 rho_pow_mono n1 (n1 + n2) ltac:(lia)) as R1; pose proof (L5 rho_pow_mono n2 (n1 + n2) ltac:(lia)) as R2.
  set (q := (1 - u) ^ (n1 + n2)) in *; set (p := rho ^ (n1 + n2)) in *.
  assert (P1 : 1 <= p) by apply (L5 rho_pow_ge1).
  destruct (low_1 (n1 + n2)) as (Q0 & Q1); fold q in Q0, Q1.
  pose proof (pos_INR n1); pose proof (pos_INR n2).
  assert (A1 : q * s1 <= (1 - u) ^ n1 * s1) by (apply Rmult_le_compat_r; lra).
  assert (A2 : q * s2 <= (1 - u) ^ n2 * s2) by (apply Rmult_le_compat_r; lra).
  assert (HH1 : INR n1 * rho ^ n1 * eta <= INR n1 * p * eta) by (apply Rmult_le_compat_r; [lra | apply Rmult_le_compat_l; lra]).
  assert (HH2 : INR n2 * rho ^ n2 * eta <= INR n2 * p * eta) by (apply Rmult_le_compat_r; [lra | apply Rmult_le_compat_l; lra]).
  set (lo := q * (s1 + s2) - INR (n1 + n2) * p * eta).
  assert (LO : lo <= y1 + y2) by (unfold lo; rewrite plus_INR; lra).
  unfold near in N; apply Rabs_between in N.
  change ((1 - u) ^ Datatypes.S (n1 + n2)) with ((1 - u) * q); change (rho ^ Datatypes.S (n1 + n2)) with (rho * p); rewrite S_INR.
  pose proof (pos_INR (n1 + n2)); pose proof (L5 rho_ge) as G.
  assert (W0 : 0 <= INR (n1 + n2) * p * eta) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra | lra]).
  assert (W1 : (1 + u) * (INR (n1 + n2) * p * eta) <= rho * (INR (n1 + n2) * p * eta)) by (apply Rmult_le_compat_r; lra).
  assert (W2 : 1 * eta <= rho * p * eta) by (apply Rmult_le_compat_r; [lra|]; nra).
  assert (QS : 0 <= q * (s1 + s2)) by (apply Rmult_le_pos; lra).
  assert (US : 0 <= u * (q * (s1 + s2))) by (apply Rmult_le_pos; lra).
  assert (UW : 0 <= u * (INR (n1 + n2) * p * eta)) by (apply Rmult_le_pos; lra).
  destruct (Rle_or_lt 0 (y1 + y2)) as [C|C].
  + rewrite (Rabs_pos_eq (y1 + y2)) in N by exact C.
    assert ((1 - u) * lo <= (1 - u) * (y1 + y2)) by (apply Rmult_le_compat_l; lra). unfold lo in *; lra.
  + rewrite (Rabs_left (y1 + y2)) in N by exact C.
    assert ((1 + u) * lo <= (1 + u) * (y1 + y2)) by (apply Rmult_le_compat_l; lra). unfold lo in *; lra.
Qed.
Lemma anysum_low f n y : anysum u eta f n y -> (forall i, (i < n)%nat -> 0 <= f i) ->
  (1 - u) ^ (n - 1) * sumn f n - INR (n - 1) * rho ^ (n - 1) * eta <= y.
Proof.
intros (l & P & T) H; destruct (sumtree_low f l y T) as (_ & B).
{ intros i I; apply H; apply (Permutation_in _ P) in I; apply in_seq in I; lia. }
rewrite (lsum_perm _ _ _ P), lsum_seq, (Permutation_length P), seq_length in B; exact B.
Qed.

Definition quotient_hat N D y := near u eta (N / D) y \/ exists c, near u eta (/ D) c /\ near u eta (N * c) y.
Lemma quotient_hat_error N D y : quotient_hat N D y ->
  Rabs (y - N / D) <= (rho ^ 2 - 1) * Rabs (N / D) + (rho * Rabs N + 1) * eta.
Proof.
pose proof (L5 rho_ge1) as R1; pose proof (L5 rho_ge) as R2; pose proof (Rabs_pos N) as N0; pose proof (Rabs_pos (N / D)) as Q0.
assert (0 <= rho * Rabs N * eta) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra | lra]).
assert (RR : rho <= rho ^ 2) by (simpl; nra).
intros [H1|(c & H1 & H2)].
- unfold near in H1; assert (u * Rabs (N / D) <= (rho ^ 2 - 1) * Rabs (N / D)) by (apply Rmult_le_compat_r; lra). lra.
- pose proof (E8 er_near _ _ _ _ _ _ (E8 er_exact (/ D)) H1) as X; apply (E8 er_scale N) in X.
  apply (E8 er_near) with (z := y) in X; [|exact H2]; destruct X as (_ & _ & _ & X).
  change (N * / D) with (N / D) in X.
  replace (Rabs N * Rabs (/ D)) with (Rabs (N / D)) in X by (unfold Rdiv; apply Rabs_mult).
  replace (rho * (Rabs N * (rho * Rabs (/ D)))) with (rho ^ 2 * Rabs (N / D)) in X
    by (unfold Rdiv; rewrite Rabs_mult; simpl; ring).
  lra.
Qed.

Variables (K : nat) (Nn Dn ot size n0 l V s0 : R).
Hypothesis K_pos : (1 <= K)%nat.
Hypothesis K_small : INR (K + 1) * u <= 1 / 16.
Hypothesis N_spec : Rabs (Nn - ot) <= (rho ^ K - 1) * size + n0.
Hypothesis size_spec : Rabs ot <= size <= V.
Hypothesis n0_ge0 : 0 <= n0.
Hypothesis D_spec : (1 - u) ^ (K - 1) - l <= Dn <= rho ^ (K - 1) + l.
Hypothesis l_spec : 0 <= l <= 1 / 4.
Theorem quotient_bound y : Rabs (y - Nn / Dn) <= (rho ^ 2 - 1) * Rabs (Nn / Dn) + s0 ->
  Rabs (y - ot) <= (1 + gamma (K + 1)) * (gamma K * size) + gamma (K + 1) * Rabs ot + (2 * n0 + 4 * (V + n0) * l + s0).
Proof.
intros Hy; pose proof (L5 rho_ge1) as R1; pose proof (Rabs_pos ot) as O0.
assert (GK1 : rho ^ (K + 1) - 1 <= gamma (K + 1)) by (apply (L5 rho_gamma); lra).
assert (KU : INR K * u <= INR (K + 1) * u) by (apply Rmult_le_compat_r; [lra | apply le_INR; lia]).
assert (GK : rho ^ K - 1 <= gamma K) by (apply (L5 rho_gamma); lra).
assert (SM : rho ^ (K + 1) <= 16 / 15).
{ assert (gamma (K + 1) <= 1 / 15); [|lra]; unfold running_bound.gamma.
  apply Rmult_le_reg_r with (1 - INR (K + 1) * u); [lra|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra. }
set (A := rho ^ (K - 1)) in *; set (B := (1 - u) ^ (K - 1)) in *.
assert (AB : B * A = 1).
{ unfold A, B, counter_calculus.rho; rewrite <- Rpow_mult_distr, Rinv_r, pow1 by lra; reflexivity. }
assert (A1 : 1 <= A) by apply (L5 rho_pow_ge1).
assert (AK : A <= 16 / 15) by (pose proof (L5 rho_pow_mono (K - 1) (K + 1) ltac:(lia)); fold A in H; lra).
assert (B0 : 15 / 16 <= B).
{ apply Rmult_le_reg_r with A; [lra|]; rewrite AB; lra. }
assert (B1 : B <= 1) by (destruct (low_1 (K - 1)); assumption).
(* the nearest denominator with relative errors only *)
set (d0 := Rmax B (Rmin A Dn)).
assert (D0 : B <= d0 <= A /\ Rabs (Dn - d0) <= l).
{ unfold d0, Rmax, Rmin; destruct (Rle_dec A Dn), (Rle_dec B _); split; try lra; apply Rabs_le; lra. }
destruct D0 as ((D01 & D02) & Dl).
assert (DP : 11 / 16 <= Dn) by (apply Rabs_between in Dl; lra).
set (g := / d0).
assert (G0 : 0 < g) by (apply Rinv_0_lt_compat; lra).
assert (gd : g * d0 = 1) by (apply Rinv_l; lra).
assert (G1 : B <= g <= A).
{ split; apply Rmult_le_reg_r with d0; try lra; rewrite gd.
  - rewrite <- AB; apply Rmult_le_compat_l; lra.
  - rewrite <- AB, (Rmult_comm B A); apply Rmult_le_compat_l; lra. }
assert (G2 : Rabs (g - 1) <= A - 1).
{ apply Rabs_le; split; [|lra].
  assert (0 <= (A - 1) * (1 - B)) by (apply Rmult_le_pos; lra).
  assert (2 <= A + B) by lra. lra. }
set (dN := Rabs (Nn - ot)) in *.
assert (dN0 : 0 <= dN) by apply Rabs_pos.
assert (NB : Rabs Nn <= Rabs ot + dN).
{ unfold dN; replace Nn with (ot + (Nn - ot)) at 1 by ring; apply Rabs_triang. }
set (Q0 := g * Nn).
assert (QN : Rabs Q0 <= A * (Rabs ot + dN)).
{ unfold Q0; rewrite Rabs_mult, (Rabs_pos_eq g) by lra; apply Rmult_le_compat; try lra; apply Rabs_pos. }
assert (QO : Rabs (Q0 - ot) <= A * dN + (A - 1) * Rabs ot).
{ unfold Q0; replace (g * Nn - ot) with (g * (Nn - ot) + (g - 1) * ot) by ring.
  eapply Rle_trans; [apply Rabs_triang|]; rewrite !Rabs_mult, (Rabs_pos_eq g) by lra; fold dN.
  apply Rplus_le_compat; apply Rmult_le_compat_r; lra. }
assert (QD : Rabs (Nn / Dn - Q0) <= 2 * (Rabs ot + dN) * l).
{ unfold Q0; replace (Nn / Dn - g * Nn) with (Nn * ((d0 - Dn) * (g * / Dn))) by (unfold g; field; lra).
  rewrite !Rabs_mult, (Rabs_minus_sym d0 Dn), (Rabs_pos_eq g), (Rabs_pos_eq (/ Dn))
    by (try lra; left; apply Rinv_0_lt_compat; lra).
  assert (I : / Dn <= 16 / 11).
  { replace (16 / 11) with (/ (11 / 16)) by field; apply Rinv_le_contravar; lra. }
  assert (I0 : 0 < / Dn) by (apply Rinv_0_lt_compat; lra).
  assert (J : g * / Dn <= 2).
  { assert (g * / Dn <= 16 / 15 * (16 / 11)) by (apply Rmult_le_compat; lra). lra. }
  assert (J0 : 0 <= g * / Dn) by (apply Rmult_le_pos; lra).
  pose proof (Rabs_pos (Dn - d0)); pose proof (Rabs_pos Nn).
  assert (Rabs (Dn - d0) * (g * / Dn) <= l * 2) by (apply Rmult_le_compat; lra).
  assert (Rabs Nn * (Rabs (Dn - d0) * (g * / Dn)) <= (Rabs ot + dN) * (l * 2)).
  { apply Rmult_le_compat; try lra; apply Rmult_le_pos; lra. }
  lra. }
assert (P2 : 0 <= rho ^ 2 - 1) by (pose proof (L5 rho_pow_ge1 2); lra).
assert (P3 : rho ^ 2 <= 16 / 15) by (pose proof (L5 rho_pow_mono 2 (K + 1) ltac:(lia)); lra).
assert (PA : rho ^ 2 * A = rho ^ (K + 1)) by (unfold A; rewrite <- pow_add; f_equal; lia).
set (z := 2 * (Rabs ot + dN) * l) in *.
assert (QB : Rabs (Nn / Dn) <= Rabs Q0 + z).
{ replace (Nn / Dn) with (Q0 + (Nn / Dn - Q0)) by ring; eapply Rle_trans; [apply Rabs_triang | lra]. }
assert (M1 : (rho ^ 2 - 1) * Rabs (Nn / Dn) <= (rho ^ 2 - 1) * (A * (Rabs ot + dN) + z)) by (apply Rmult_le_compat_l; lra).
assert (M2 : Rabs (y - ot) <= rho ^ (K + 1) * dN + (rho ^ (K + 1) - 1) * Rabs ot + rho ^ 2 * z + s0).
{ replace (y - ot) with ((y - Nn / Dn) + ((Nn / Dn - Q0) + (Q0 - ot))) by ring.
  eapply Rle_trans; [apply Rabs_triang|]; pose proof (Rabs_triang (Nn / Dn - Q0) (Q0 - ot)).
  rewrite <- PA; lra. }
assert (S0 : 0 <= size) by lra.
assert (RK : 1 <= rho ^ K) by apply (L5 rho_pow_ge1).
pose proof (L5 rho_pow_ge1 (K + 1)) as RK1.
assert (RK' : rho ^ K <= 16 / 15) by (pose proof (L5 rho_pow_mono K (K + 1) ltac:(lia)); lra).
assert (M3 : rho ^ (K + 1) * dN <= (1 + gamma (K + 1)) * (gamma K * size) + 2 * n0).
{ assert (X1 : (rho ^ K - 1) * size <= gamma K * size) by (apply Rmult_le_compat_r; lra).
  assert (X0 : 0 <= (rho ^ K - 1) * size) by (apply Rmult_le_pos; lra).
  assert (X2 : rho ^ (K + 1) * ((rho ^ K - 1) * size) <= (1 + gamma (K + 1)) * (gamma K * size))
    by (apply Rmult_le_compat; lra).
  assert (X3 : rho ^ (K + 1) * dN <= rho ^ (K + 1) * ((rho ^ K - 1) * size + n0)) by (apply Rmult_le_compat_l; lra).
  assert (X4 : rho ^ (K + 1) * n0 <= 2 * n0) by (apply Rmult_le_compat_r; lra). lra. }
assert (M4 : (rho ^ (K + 1) - 1) * Rabs ot <= gamma (K + 1) * Rabs ot) by (apply Rmult_le_compat_r; lra).
assert (M5 : rho ^ 2 * z <= 4 * (V + n0) * l).
{ assert (Y1 : (rho ^ K - 1) * size <= 1 / 15 * V) by (apply Rmult_le_compat; lra).
  assert (Y2 : Rabs ot + dN <= 16 / 15 * V + n0) by lra.
  assert (Y3 : z <= 2 * (16 / 15 * V + n0) * l) by (unfold z; apply Rmult_le_compat_r; lra).
  assert (Z0 : 0 <= z) by (unfold z; apply Rmult_le_pos; lra).
  assert (rho ^ 2 * z <= 16 / 15 * (2 * (16 / 15 * V + n0) * l)) by (apply Rmult_le_compat; lra).
  assert (V0 : 0 <= V * l) by (apply Rmult_le_pos; lra); assert (0 <= n0 * l) by (apply Rmult_le_pos; lra). lra. }
lra.
Qed.
End Quotient.
