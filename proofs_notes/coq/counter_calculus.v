(* The counter calculus: from "how many roundings" to "how large an error".

   Arithmetic model.  An operation with exact result x returns some y with
       |y - x| <= u |x| + eta                                      (near x y)
   Round to nearest in binary32: u = 2^-24, eta = 2^-150; with flush-to-zero eta = 2^-126.
   A fused multiply-add is one operation.  Nothing else is assumed: two equal operations
   may round differently, so the results hold for any mixture of units.

   Main results
     near_cv, add_cv, mul_cv, exact_cv    the calculus: error of any expression tree
     cv_error                             what it says about the error
     anysum_cv                            sums in any order and any tree
     dot_cv                               dot products in any order, products rounded or fused
     rho_gamma                            n roundings cost at most n u / (1 - n u)
     underflow_gamma                      n roundings cost at most n e / (1 - n (u + e)) of underflow *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
Import ListNotations.
Open Scope R_scope.

(** * Sums and products over indices *)
Fixpoint sumn (f : nat -> R) (n : nat) : R :=
  match n with O => 0 | S m => sumn f m + f m end.
Fixpoint lsum (f : nat -> R) (l : list nat) : R :=
  match l with [] => 0 | i :: r => f i + lsum f r end.
Fixpoint lprod (f : nat -> R) (l : list nat) : R :=
  match l with [] => 1 | i :: r => f i * lprod f r end.

Lemma sumn_ext f f' n : (forall i, (i < n)%nat -> f i = f' i) -> sumn f n = sumn f' n.
Proof. induction n as [|n IH]; intros H; simpl; [reflexivity|]. rewrite IH, H; auto. Qed.
Lemma sumn_le f f' n : (forall i, (i < n)%nat -> f i <= f' i) -> sumn f n <= sumn f' n.
Proof. induction n as [|n IH]; intros H; simpl; [lra|]. apply Rplus_le_compat; auto. Qed.
Lemma sumn_ge0 f n : (forall i, (i < n)%nat -> 0 <= f i) -> 0 <= sumn f n.
Proof. induction n as [|n IH]; intros H; simpl; [lra|]. apply Rplus_le_le_0_compat; auto. Qed.
Lemma sumn_plus f f' n : sumn (fun i => f i + f' i) n = sumn f n + sumn f' n.
Proof. induction n as [|n IH]; simpl; lra. Qed.
Lemma sumn_scal c f n : sumn (fun i => c * f i) n = c * sumn f n.
Proof. induction n as [|n IH]; simpl; lra. Qed.
Lemma sumn_const c n : sumn (fun _ => c) n = INR n * c.
Proof. induction n as [|n IH]; [simpl; lra|]. rewrite S_INR; simpl; lra. Qed.
Lemma sumn_abs f n : Rabs (sumn f n) <= sumn (fun i => Rabs (f i)) n.
Proof.
induction n as [|n IH]; simpl; [rewrite Rabs_R0; lra|].
eapply Rle_trans; [apply Rabs_triang | lra].
Qed.
Lemma lsum_app f l r : lsum f (l ++ r) = lsum f l + lsum f r.
Proof. induction l as [|i l IH]; simpl; lra. Qed.
Lemma lsum_perm f l r : Permutation l r -> lsum f l = lsum f r.
Proof. induction 1; simpl; lra. Qed.
Lemma lsum_seq f n : lsum f (seq 0 n) = sumn f n.
Proof.
induction n as [|n IH]; [reflexivity|].
rewrite seq_S, lsum_app, IH; simpl; lra.
Qed.
Lemma lsum_ext f f' l : (forall i, In i l -> f i = f' i) -> lsum f l = lsum f' l.
Proof. induction l as [|i l IH]; intros H; simpl; [reflexivity|]. rewrite (H i), IH; simpl; auto. intros j Hj; apply H; simpl; auto. Qed.
Lemma lprod_app f l r : lprod f (l ++ r) = lprod f l * lprod f r.
Proof. induction l as [|i l IH]; simpl; [lra|]. rewrite IH; ring. Qed.
Lemma lprod_perm f l r : Permutation l r -> lprod f l = lprod f r.
Proof. induction 1; simpl; try congruence; try nra. Qed.
Lemma lprod_ge1 f l : (forall i, In i l -> 1 <= f i) -> 1 <= lprod f l.
Proof.
induction l as [|i l IH]; intros H; simpl; [lra|].
assert (1 <= f i) by (apply H; simpl; auto).
assert (1 <= lprod f l) by (apply IH; intros j Hj; apply H; simpl; auto). nra.
Qed.
Lemma lprod_ge0 f l : (forall i, In i l -> 0 <= f i) -> 0 <= lprod f l.
Proof.
induction l as [|i l IH]; intros H; simpl; [lra|].
apply Rmult_le_pos; [apply H; simpl; auto | apply IH; intros j Hj; apply H; simpl; auto].
Qed.

Section Model.
Set Default Proof Using "All".   (* every lemma takes the same arguments, in the same order *)
Variables u eta : R.
Hypothesis u_ge0 : 0 <= u.
Hypothesis u_lt1 : u < 1.
Hypothesis eta_ge0 : 0 <= eta.

Definition near x y := Rabs (y - x) <= u * Rabs x + eta.

(* One rounding costs a factor rho.  The factor 1 + u would do for sums and products; the
   slightly larger 1 / (1 - u) also covers division, and ends in the same gamma_n. *)
Definition rho := / (1 - u).
Lemma rho_ge : 1 + u <= rho.
Proof.
unfold rho; apply Rmult_le_reg_r with (1 - u); [lra|].
rewrite Rinv_l by lra; nra.
Qed.
Lemma rho_ge1 : 1 <= rho. Proof. pose proof rho_ge; lra. Qed.
Lemma rho_pow_ge1 n : 1 <= rho ^ n. Proof. apply pow_R1_Rle, rho_ge1. Qed.
Lemma rho_pow_mono m n : (m <= n)%nat -> rho ^ m <= rho ^ n.
Proof. intros H; apply Rle_pow; [apply rho_ge1 | exact H]. Qed.

Lemma bernoulli n x : 0 <= x <= 1 -> 1 - INR n * x <= (1 - x) ^ n.
Proof.
intros Hx; induction n as [|n IH]; [simpl; lra|].
rewrite S_INR; simpl pow; pose proof (pos_INR n).
assert (0 <= INR n * x * x) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra).
assert ((1 - x) * (1 - INR n * x) <= (1 - x) * (1 - x) ^ n) by (apply Rmult_le_compat_l; lra).
lra.
Qed.

Theorem rho_gamma n : INR n * u < 1 -> rho ^ n - 1 <= INR n * u / (1 - INR n * u).
Proof.
intros Hn; unfold rho; rewrite pow_inv.
pose proof (bernoulli n u ltac:(lra)) as B.
assert (/ (1 - u) ^ n <= / (1 - INR n * u)) by (apply Rinv_le_contravar; lra).
replace (INR n * u / (1 - INR n * u)) with (/ (1 - INR n * u) - 1) by (field; lra); lra.
Qed.

(** ** Underflow.  e is the underflow of one rounding in the unit of the largest factor that can
   still multiply it; rho1 = rho + e carries both kinds of error through a product. *)
Variable e : R.
Hypothesis e_ge0 : 0 <= e.
Definition rho1 := rho + e.
Definition du n := rho1 ^ n - rho ^ n.
Lemma rho1_ge1 : 1 <= rho1. Proof. unfold rho1; pose proof rho_ge1; lra. Qed.
Lemma rho1_pow_ge1 n : 1 <= rho1 ^ n. Proof. apply pow_R1_Rle, rho1_ge1. Qed.
Lemma rho1_pow_ge n : rho ^ n <= rho1 ^ n.
Proof. apply pow_incr; unfold rho1; pose proof rho_ge1; lra. Qed.
Lemma du_ge0 n : 0 <= du n. Proof. unfold du; pose proof (rho1_pow_ge n); lra. Qed.
Lemma du_add m n : du (m + n) = du m * rho1 ^ n + rho ^ m * du n.
Proof. unfold du; rewrite !pow_add; ring. Qed.
Lemma du_S n : rho * du n + e <= du (S n).
Proof.
unfold du; change (rho1 ^ S n) with ((rho + e) * rho1 ^ n); change (rho ^ S n) with (rho * rho ^ n).
pose proof (rho1_pow_ge1 n).
assert (e * 1 <= e * rho1 ^ n) by (apply Rmult_le_compat_l; lra); lra.
Qed.
Lemma du_mono m n : (m <= n)%nat -> du m <= du n.
Proof.
intros H; replace n with (m + (n - m))%nat by lia; rewrite du_add.
pose proof (du_ge0 m); pose proof (du_ge0 (n - m)); pose proof (rho1_pow_ge1 (n - m)).
pose proof (rho_pow_ge1 m).
assert (du m * 1 <= du m * rho1 ^ (n - m)) by (apply Rmult_le_compat_l; lra).
assert (0 <= rho ^ m * du (n - m)) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma du_low n : INR (S n) * e * rho ^ n <= du (S n).
Proof.
induction n as [|n IH]; [unfold du, rho1; simpl; lra|].
rewrite S_INR; replace (S (S n)) with (1 + S n)%nat by lia; rewrite du_add.
replace (du 1) with e by (unfold du, rho1; simpl; ring).
pose proof (rho1_pow_ge (S n)); pose proof rho_ge1.
assert (e * rho ^ S n <= e * rho1 ^ S n) by (apply Rmult_le_compat_l; lra).
assert (rho * (INR (S n) * e * rho ^ n) <= rho * du (S n)) by (apply Rmult_le_compat_l; lra).
simpl pow in *; nra.
Qed.

Theorem underflow_gamma n : INR n * (u + e) < 1 ->
  du n <= INR n * e / (1 - INR n * (u + e)).
Proof.
intros Hn.
(* du n = sum of n products of n - 1 factors, each at most rho1; and rho1 <= 1/(1 - u - e) *)
assert (U : du n <= INR n * e * rho1 ^ (n - 1)).
{ clear Hn; induction n as [|n IH]; [unfold du; simpl; lra|].
  replace (S n - 1)%nat with n by lia; rewrite S_INR.
  replace (S n) with (1 + n)%nat by lia; rewrite du_add; replace (du 1) with e by (unfold du, rho1; simpl; ring).
  rewrite pow_1.
  destruct n as [|n]; [unfold du; simpl; lra|].
  replace (S n - 1)%nat with n in IH by lia.
  assert (0 <= INR (S n) * e * rho1 ^ n).
  { apply Rmult_le_pos; [apply Rmult_le_pos; [apply pos_INR | lra] | pose proof (rho1_pow_ge1 n); lra]. }
  assert (rho * du (S n) <= rho1 * (INR (S n) * e * rho1 ^ n)).
  { apply Rmult_le_compat; [pose proof rho_ge1; lra | apply du_ge0 | unfold rho1; lra | exact IH]. }
  change (rho1 ^ S n) with (rho1 * rho1 ^ n) in *; lra. }
destruct n as [|n]; [unfold du; simpl; lra|].
replace (S n - 1)%nat with n in U by lia.
assert (Hue : u + e < 1).
{ rewrite S_INR in Hn; pose proof (pos_INR n).
  assert (0 <= INR n * (u + e)) by (apply Rmult_le_pos; lra); lra. }
assert (L : rho1 <= / (1 - (u + e))).
{ apply Rmult_le_reg_r with (1 - (u + e)); [lra|]; rewrite Rinv_l by lra.
  unfold rho1, rho.
  assert (0 < / (1 - u)) by (apply Rinv_0_lt_compat; lra).
  assert (/ (1 - u) * (1 - u) = 1) by (apply Rinv_l; lra).
  assert (1 <= / (1 - u)) by exact rho_ge1.
  assert (e * 1 <= e * / (1 - u)) by (apply Rmult_le_compat_l; lra).
  assert (0 <= e * (u + e)) by (apply Rmult_le_pos; lra). lra. }
assert (P : rho1 ^ n <= / (1 - INR (S n) * (u + e))).
{ eapply Rle_trans; [apply pow_incr; split; [pose proof rho1_ge1; lra | exact L]|].
  rewrite pow_inv; apply Rinv_le_contravar; [lra|].
  eapply Rle_trans; [|apply (bernoulli n (u + e)); lra].
  rewrite S_INR; lra. }
eapply Rle_trans; [exact U|]; unfold Rdiv; apply Rmult_le_compat_l; [|exact P].
apply Rmult_le_pos; [apply pos_INR | lra].
Qed.

(** * The calculus.
   cv x a r m c y:  y is a computed value of x;  a >= |x| is the same formula on absolute values;
   r >= a is the same formula on absolute values with a factor rho for each rounding;
   m bounds the roundings on a path;  c is a cap on a that later factors multiply.         *)
Definition cv (x a r : R) (m : nat) (c y : R) : Prop :=
  Rabs x <= a /\ a <= r /\ r <= c * rho ^ m /\ Rabs (y - x) <= r - a + c * du m.

Lemma cv_error x a r m c y : cv x a r m c y -> Rabs (y - x) <= r - a + c * du m.
Proof. intros (_ & _ & _ & H); exact H. Qed.
Lemma cv_c_ge0 x a r m c y : cv x a r m c y -> 0 <= c.
Proof.
intros (H1 & H2 & H3 & _); pose proof (Rabs_pos x); pose proof (rho_pow_ge1 m).
destruct (Rle_or_lt 0 c) as [P|P]; [exact P|].
assert (c * rho ^ m <= c * 1) by (apply Rmult_le_compat_neg_l; lra). lra.
Qed.

Lemma exact_cv x c : Rabs x <= c -> cv x (Rabs x) (Rabs x) 0 c x.
Proof.
intros H; unfold cv, du; simpl.
replace (x - x) with 0 by ring; rewrite Rabs_R0; repeat split; lra.
Qed.

Lemma weak_cv x a r m c y r' m' c' : cv x a r m c y ->
  r <= r' -> (m <= m')%nat -> c <= c' -> r' <= c' * rho ^ m' -> cv x a r' m' c' y.
Proof.
intros H Hr Hm Hc Hr'; pose proof (cv_c_ge0 _ _ _ _ _ _ H) as C0.
destruct H as (H1 & H2 & H3 & H4); unfold cv; repeat split; try lra.
pose proof (du_mono m m' Hm); pose proof (du_ge0 m).
assert (c * du m <= c' * du m') by (apply Rmult_le_compat; lra). lra.
Qed.

Lemma weak_m x a r m c y m' c' : cv x a r m c y -> (m <= m')%nat -> c <= c' -> cv x a r m' c' y.
Proof.
intros H Hm Hc; pose proof (cv_c_ge0 _ _ _ _ _ _ H); pose proof (rho_pow_ge1 m).
eapply weak_cv; [exact H | apply Rle_refl | exact Hm | exact Hc |].
destruct H as (_ & _ & H & _); eapply Rle_trans; [exact H|].
apply Rmult_le_compat; [lra | lra | exact Hc | now apply rho_pow_mono].
Qed.
Lemma weak_r x a r m c y r' : cv x a r m c y -> r <= r' -> r' <= c * rho ^ m -> cv x a r' m c y.
Proof. intros; eapply weak_cv; eauto; lra. Qed.

Theorem near_cv x a r m c y z : cv x a r m c y -> near y z -> eta <= c * e ->
  cv x a (rho * r) (S m) c z.
Proof.
intros H Hn He; pose proof (cv_c_ge0 _ _ _ _ _ _ H) as C0.
destruct H as (H1 & H2 & H3 & H4); unfold near in Hn; pose proof rho_ge as G; pose proof rho_ge1 as G1.
pose proof (Rabs_pos x).
unfold cv; split; [exact H1|]; split.
{ assert (1 * r <= rho * r) by (apply Rmult_le_compat_r; lra); lra. }
split.
{ simpl; replace (c * (rho * rho ^ m)) with (rho * (c * rho ^ m)) by ring.
  apply Rmult_le_compat_l; lra. }
replace (z - x) with ((z - y) + (y - x)) by ring.
eapply Rle_trans; [apply Rabs_triang|].
assert (Y : Rabs y <= Rabs x + Rabs (y - x)).
{ replace y with (x + (y - x)) at 1 by ring; apply Rabs_triang. }
assert (u * Rabs y <= u * (Rabs x + Rabs (y - x))) by (apply Rmult_le_compat_l; lra).
set (d := Rabs (y - x)) in *.
assert (0 <= d) by apply Rabs_pos.
assert ((1 + u) * d <= rho * d) by (apply Rmult_le_compat_r; lra).
assert (rho * d <= rho * (r - a + c * du m)) by (apply Rmult_le_compat_l; lra).
assert (u * Rabs x <= (rho - 1) * a) by (apply Rmult_le_compat; lra).
pose proof (du_S m).
assert (c * (rho * du m + e) <= c * du (S m)) by (apply Rmult_le_compat_l; lra).
lra.
Qed.

Theorem add_cv x1 a1 r1 c1 y1 x2 a2 r2 c2 y2 m :
  cv x1 a1 r1 m c1 y1 -> cv x2 a2 r2 m c2 y2 ->
  cv (x1 + x2) (a1 + a2) (r1 + r2) m (c1 + c2) (y1 + y2).
Proof.
intros (A1 & A2 & A3 & A4) (B1 & B2 & B3 & B4); unfold cv; repeat split; try lra.
- eapply Rle_trans; [apply Rabs_triang | lra].
- replace (y1 + y2 - (x1 + x2)) with ((y1 - x1) + (y2 - x2)) by ring.
  eapply Rle_trans; [apply Rabs_triang | lra].
Qed.

Theorem mul_cv x1 a1 r1 m1 c1 y1 x2 a2 r2 m2 c2 y2 :
  cv x1 a1 r1 m1 c1 y1 -> cv x2 a2 r2 m2 c2 y2 ->
  cv (x1 * x2) (a1 * a2) (r1 * r2) (m1 + m2) (c1 * c2) (y1 * y2).
Proof.
intros C1 C2.
pose proof (cv_c_ge0 _ _ _ _ _ _ C1) as P1; pose proof (cv_c_ge0 _ _ _ _ _ _ C2) as P2.
destruct C1 as (A1 & A2 & A3 & A4); destruct C2 as (B1 & B2 & B3 & B4).
pose proof (Rabs_pos x1); pose proof (Rabs_pos x2).
pose proof (du_ge0 m1) as D1; pose proof (du_ge0 m2) as D2.
pose proof (Rabs_pos (y1 - x1)); pose proof (Rabs_pos (y2 - x2)).
assert (M1 : c1 * rho1 ^ m1 = c1 * rho ^ m1 + c1 * du m1) by (unfold du; ring).
assert (M2 : c2 * rho1 ^ m2 = c2 * rho ^ m2 + c2 * du m2) by (unfold du; ring).
unfold cv; split; [rewrite Rabs_mult; apply Rmult_le_compat; lra|].
split; [apply Rmult_le_compat; lra|].
split.
{ rewrite pow_add; replace (c1 * c2 * (rho ^ m1 * rho ^ m2)) with (c1 * rho ^ m1 * (c2 * rho ^ m2)) by ring.
  apply Rmult_le_compat; lra. }
replace (y1 * y2 - x1 * x2) with
  (x1 * (y2 - x2) + (y1 - x1) * x2 + (y1 - x1) * (y2 - x2)) by ring.
eapply Rle_trans; [apply Rabs_triang|].
eapply Rle_trans; [apply Rplus_le_compat_r, Rabs_triang|].
rewrite !Rabs_mult.
set (e1 := Rabs (y1 - x1)) in *; set (e2 := Rabs (y2 - x2)) in *.
set (h1 := c1 * du m1) in *; set (h2 := c2 * du m2) in *.
assert (0 <= h1) by (apply Rmult_le_pos; lra).
assert (0 <= h2) by (apply Rmult_le_pos; lra).
assert (Rabs x1 * e2 <= a1 * (r2 - a2 + h2)) by (apply Rmult_le_compat; lra).
assert (e1 * Rabs x2 <= (r1 - a1 + h1) * a2) by (apply Rmult_le_compat; lra).
assert (e1 * e2 <= (r1 - a1 + h1) * (r2 - a2 + h2)) by (apply Rmult_le_compat; lra).
assert (Rabs x1 * e2 + e1 * Rabs x2 + e1 * e2 <= r1 * r2 - a1 * a2 + (r1 * h2 + r2 * h1 + h1 * h2)) by lra.
assert (r1 * h2 <= c1 * rho ^ m1 * h2) by (apply Rmult_le_compat_r; lra).
assert (r2 * h1 <= c2 * rho ^ m2 * h1) by (apply Rmult_le_compat_r; lra).
assert (E : c1 * c2 * du (m1 + m2) = c1 * rho ^ m1 * h2 + c2 * rho ^ m2 * h1 + h1 * h2).
{ unfold h1, h2; rewrite du_add, Rmult_plus_distr_l.
  replace (rho1 ^ m2) with (rho ^ m2 + du m2) by (unfold du; ring); ring. }
lra.
Qed.

(** * Sums in any order, any tree *)
Inductive sumtree (f : nat -> R) : list nat -> R -> Prop :=
| sum_leaf i : sumtree f [i] (f i)
| sum_node l1 y1 l2 y2 y : sumtree f l1 y1 -> sumtree f l2 y2 -> near (y1 + y2) y ->
    sumtree f (l1 ++ l2) y.
Definition anysum (f : nat -> R) (n : nat) (y : R) :=
  exists l, Permutation l (seq 0 n) /\ sumtree f l y.

Lemma sumtree_length f l y : sumtree f l y -> (1 <= length l)%nat.
Proof. induction 1; [simpl; lia | rewrite app_length; lia]. Qed.

Lemma sumtree_cv f x a r m c l y : sumtree f l y ->
  (forall i, In i l -> cv (x i) (a i) (r i) m (c i) (f i) /\ eta <= c i * e) ->
  cv (lsum x l) (lsum a l) (rho ^ (length l - 1) * lsum r l) (m + (length l - 1)) (lsum c l) y
  /\ eta <= lsum c l * e.
Proof.
induction 1 as [i | l1 y1 l2 y2 y T1 IH1 T2 IH2 N]; intros H.
- simpl. destruct (H i (or_introl eq_refl)) as (C & E).
  replace (m + 0)%nat with m by lia; rewrite !Rplus_0_r, Rmult_1_l; auto.
- destruct IH1 as (C1 & E1); [intros i I; apply H, in_or_app; auto|].
  destruct IH2 as (C2 & E2); [intros i I; apply H, in_or_app; auto|].
  pose proof (sumtree_length _ _ _ T1) as L1; pose proof (sumtree_length _ _ _ T2) as L2.
  rewrite !lsum_app, app_length.
  pose proof (cv_c_ge0 _ _ _ _ _ _ C1) as P1; pose proof (cv_c_ge0 _ _ _ _ _ _ C2) as P2.
  assert (EE : eta <= (lsum c l1 + lsum c l2) * e).
  { assert (0 <= lsum c l2 * e) by (apply Rmult_le_pos; lra); lra. }
  split; [|exact EE].
  set (k := (length l1 + length l2 - 2)%nat).
  assert (S1 : 0 <= lsum r l1).
  { destruct C1 as (Q1 & Q2 & _); pose proof (Rabs_pos (lsum x l1)).
    pose proof (rho_pow_ge1 (length l1 - 1)).
    destruct (Rle_or_lt 0 (lsum r l1)) as [Q|Q]; [exact Q|].
    assert (lsum r l1 * rho ^ (length l1 - 1) <= lsum r l1 * 1) by (apply Rmult_le_compat_neg_l; lra). lra. }
  assert (S2 : 0 <= lsum r l2).
  { destruct C2 as (Q1 & Q2 & _); pose proof (Rabs_pos (lsum x l2)).
    pose proof (rho_pow_ge1 (length l2 - 1)).
    destruct (Rle_or_lt 0 (lsum r l2)) as [Q|Q]; [exact Q|].
    assert (lsum r l2 * rho ^ (length l2 - 1) <= lsum r l2 * 1) by (apply Rmult_le_compat_neg_l; lra). lra. }
  assert (G1 : cv (lsum x l1) (lsum a l1) (rho ^ k * lsum r l1) (m + k) (lsum c l1) y1).
  { eapply weak_cv; [exact C1 | | unfold k; lia | lra |].
    - apply Rmult_le_compat_r; [exact S1 | apply rho_pow_mono; unfold k; lia].
    - destruct C1 as (_ & _ & Q & _).
      replace (m + k)%nat with ((m + (length l1 - 1)) + (length l2 - 1))%nat by (unfold k; lia).
      replace k with ((length l1 - 1) + (length l2 - 1))%nat by (unfold k; lia).
      rewrite !(pow_add rho _ (length l2 - 1)).
      replace (rho ^ (length l1 - 1) * rho ^ (length l2 - 1) * lsum r l1) with
        (rho ^ (length l1 - 1) * lsum r l1 * rho ^ (length l2 - 1)) by ring.
      rewrite <- Rmult_assoc; apply Rmult_le_compat_r;
        [pose proof (rho_pow_ge1 (length l2 - 1)); lra | exact Q]. }
  assert (G2 : cv (lsum x l2) (lsum a l2) (rho ^ k * lsum r l2) (m + k) (lsum c l2) y2).
  { eapply weak_cv; [exact C2 | | unfold k; lia | lra |].
    - apply Rmult_le_compat_r; [exact S2 | apply rho_pow_mono; unfold k; lia].
    - destruct C2 as (_ & _ & Q & _).
      replace (m + k)%nat with ((m + (length l2 - 1)) + (length l1 - 1))%nat by (unfold k; lia).
      replace k with ((length l2 - 1) + (length l1 - 1))%nat by (unfold k; lia).
      rewrite !(pow_add rho _ (length l1 - 1)).
      replace (rho ^ (length l2 - 1) * rho ^ (length l1 - 1) * lsum r l2) with
        (rho ^ (length l2 - 1) * lsum r l2 * rho ^ (length l1 - 1)) by ring.
      rewrite <- Rmult_assoc; apply Rmult_le_compat_r;
        [pose proof (rho_pow_ge1 (length l1 - 1)); lra | exact Q]. }
  pose proof (near_cv _ _ _ _ _ _ _ (add_cv _ _ _ _ _ _ _ _ _ _ _ G1 G2) N EE) as F.
  replace (m + (length l1 + length l2 - 1))%nat with (S (m + k)) by (unfold k; lia).
  replace (length l1 + length l2 - 1)%nat with (S k) by (unfold k; lia).
  replace (rho ^ S k * (lsum r l1 + lsum r l2)) with (rho * (rho ^ k * lsum r l1 + rho ^ k * lsum r l2))
    by (simpl; ring); exact F.
Qed.

Theorem anysum_cv f x a r m c n y : anysum f n y ->
  (forall i, (i < n)%nat -> cv (x i) (a i) (r i) m (c i) (f i) /\ eta <= c i * e) ->
  cv (sumn x n) (sumn a n) (rho ^ (n - 1) * sumn r n) (m + (n - 1)) (sumn c n) y.
Proof.
intros (l & P & T) H.
destruct (sumtree_cv f x a r m c l y T) as (C & _).
{ intros i I; apply H; apply (Permutation_in _ P) in I; apply in_seq in I; lia. }
rewrite !(lsum_perm _ _ _ P), !lsum_seq, (Permutation_length P), seq_length in C; exact C.
Qed.

(* without caps: any errors on the leaves *)
Lemma sumtree_error f x a er l y : sumtree f l y ->
  (forall i, In i l -> Rabs (x i) <= a i /\ Rabs (f i - x i) <= er i) ->
  Rabs (lsum x l) <= lsum a l /\
  Rabs (y - lsum x l) <= rho ^ (length l - 1) * (lsum a l + lsum er l) - lsum a l
                         + INR (length l - 1) * rho ^ (length l - 1) * eta.
Proof.
induction 1 as [i | l1 y1 l2 y2 y T1 IH1 T2 IH2 N]; intros H.
- destruct (H i (or_introl eq_refl)) as (A & E); simpl; rewrite !Rplus_0_r; split; lra.
- destruct IH1 as (A1 & E1); [intros i I; apply H, in_or_app; auto|].
  destruct IH2 as (A2 & E2); [intros i I; apply H, in_or_app; auto|].
  pose proof (sumtree_length _ _ _ T1) as L1; pose proof (sumtree_length _ _ _ T2) as L2.
  rewrite !lsum_app, app_length; split; [eapply Rle_trans; [apply Rabs_triang | lra]|].
  set (n1 := (length l1 - 1)%nat) in *; set (n2 := (length l2 - 1)%nat) in *.
  replace (length l1 + length l2 - 1)%nat with (S (n1 + n2)) by (unfold n1, n2; lia).
  assert (Q1 : 0 <= lsum a l1 + lsum er l1).
  { clear - H; assert (K : forall i, In i l1 -> 0 <= a i + er i).
    { intros i I; destruct (H i (in_or_app _ _ _ (or_introl I))) as (X & Y).
      pose proof (Rabs_pos (x i)); pose proof (Rabs_pos (f i - x i)); lra. }
    clear H; induction l1 as [|i l IH]; simpl; [lra|].
    assert (0 <= a i + er i) by (apply K; simpl; auto).
    assert (0 <= lsum a l + lsum er l) by (apply IH; intros j J; apply K; simpl; auto). lra. }
  assert (Q2 : 0 <= lsum a l2 + lsum er l2).
  { clear - H; assert (K : forall i, In i l2 -> 0 <= a i + er i).
    { intros i I; destruct (H i (in_or_app _ _ _ (or_intror I))) as (X & Y).
      pose proof (Rabs_pos (x i)); pose proof (Rabs_pos (f i - x i)); lra. }
    clear H; induction l2 as [|i l IH]; simpl; [lra|].
    assert (0 <= a i + er i) by (apply K; simpl; auto).
    assert (0 <= lsum a l + lsum er l) by (apply IH; intros j J; apply K; simpl; auto). lra. }
  set (s1 := lsum a l1 + lsum er l1) in *; set (s2 := lsum a l2 + lsum er l2) in *.
  set (x1 := lsum x l1) in *; set (x2 := lsum x l2) in *.
  set (a1 := lsum a l1) in *; set (a2 := lsum a l2) in *.
  unfold near in N.
  replace (y - (x1 + x2)) with ((y - (y1 + y2)) + ((y1 - x1) + (y2 - x2))) by ring.
  eapply Rle_trans; [apply Rabs_triang|].
  assert (T : Rabs (y1 - x1 + (y2 - x2)) <= Rabs (y1 - x1) + Rabs (y2 - x2)) by apply Rabs_triang.
  assert (Y : Rabs (y1 + y2) <= Rabs x1 + Rabs x2 + (Rabs (y1 - x1) + Rabs (y2 - x2))).
  { replace (y1 + y2) with ((x1 + x2) + ((y1 - x1) + (y2 - x2))) by ring.
    eapply Rle_trans; [apply Rabs_triang|]; pose proof (Rabs_triang x1 x2); lra. }
  set (d := Rabs (y1 - x1) + Rabs (y2 - x2)) in *.
  assert (D0 : 0 <= d) by (unfold d; pose proof (Rabs_pos (y1 - x1)); pose proof (Rabs_pos (y2 - x2)); lra).
  pose proof rho_ge as G; pose proof rho_ge1 as G1.
  assert (A0 : 0 <= a1 + a2) by (pose proof (Rabs_pos x1); pose proof (Rabs_pos x2); lra).
  assert (U1 : u * Rabs (y1 + y2) <= u * (a1 + a2 + d)) by (apply Rmult_le_compat_l; lra).
  assert (U2 : (1 + u) * d <= rho * d) by (apply Rmult_le_compat_r; lra).
  assert (U3 : u * (a1 + a2) <= (rho - 1) * (a1 + a2)) by (apply Rmult_le_compat_r; lra).
  set (p1 := rho ^ n1) in *; set (p2 := rho ^ n2) in *; set (p := rho ^ (n1 + n2)).
  assert (P1 : p1 <= p) by (apply rho_pow_mono; lia).
  assert (P2 : p2 <= p) by (apply rho_pow_mono; lia).
  assert (P0 : 1 <= p) by apply rho_pow_ge1.
  assert (d <= p * (s1 + s2) - (a1 + a2) + INR (n1 + n2) * p * eta).
  { assert (p1 * s1 <= p * s1) by (apply Rmult_le_compat_r; lra).
    assert (p2 * s2 <= p * s2) by (apply Rmult_le_compat_r; lra).
    pose proof (pos_INR n1); pose proof (pos_INR n2).
    assert (INR n1 * p1 * eta <= INR n1 * p * eta) by
      (apply Rmult_le_compat_r; [lra | apply Rmult_le_compat_l; lra]).
    assert (INR n2 * p2 * eta <= INR n2 * p * eta) by
      (apply Rmult_le_compat_r; [lra | apply Rmult_le_compat_l; lra]).
    rewrite plus_INR; unfold d; lra. }
  assert (U4 : rho * d <= rho * (p * (s1 + s2) - (a1 + a2) + INR (n1 + n2) * p * eta)) by
    (apply Rmult_le_compat_l; lra).
  change (rho ^ S (n1 + n2)) with (rho * p); rewrite S_INR.
  assert (1 * eta <= rho * p * eta) by (apply Rmult_le_compat_r; [lra|]; nra).
  unfold s1, s2 in *; lra.
Qed.

Theorem anysum_error f x a er n y : anysum f n y ->
  (forall i, (i < n)%nat -> Rabs (x i) <= a i /\ Rabs (f i - x i) <= er i) ->
  Rabs (y - sumn x n) <= rho ^ (n - 1) * (sumn a n + sumn er n) - sumn a n
                         + INR (n - 1) * rho ^ (n - 1) * eta.
Proof.
intros (l & P & T) H.
destruct (sumtree_error f x a er l y T) as (_ & C).
{ intros i I; apply H; apply (Permutation_in _ P) in I; apply in_seq in I; lia. }
rewrite !(lsum_perm _ _ _ P), !lsum_seq, (Permutation_length P), seq_length in C; exact C.
Qed.
Lemma anysum_pos f n y : anysum f n y -> (1 <= n)%nat.
Proof.
intros (l & P & T); apply sumtree_length in T.
rewrite (Permutation_length P), seq_length in T; exact T.
Qed.

(** * Dot product of exact q with computed x, in any order.
   A product is rounded before it is added, or is the operand of an fma. *)
Definition rounded_or_fused p z := near p z \/ z = p.
Definition dot_hat (q xh : nat -> R) n y :=
  exists f, (forall i, (i < n)%nat -> rounded_or_fused (q i * xh i) (f i)) /\ anysum f n y.

Lemma rf_error p z : rounded_or_fused p z -> Rabs (z - p) <= u * Rabs p + eta.
Proof.
intros [H| ->]; [exact H|]; replace (p - p) with 0 by ring; rewrite Rabs_R0.
pose proof (Rabs_pos p); assert (0 <= u * Rabs p) by (apply Rmult_le_pos; lra); lra.
Qed.

Lemma dot_raw q xh x a w n y : dot_hat q xh n y ->
  (forall i, (i < n)%nat -> Rabs (x i) <= a i /\ Rabs (xh i - x i) <= w i) ->
  Rabs (y - sumn (fun i => q i * x i) n) <=
    rho ^ n * sumn (fun i => Rabs (q i) * (a i + w i)) n - sumn (fun i => Rabs (q i) * a i) n
    + INR (2 * n - 1) * rho ^ (n - 1) * eta.
Proof.
intros (f & F & S) H; pose proof (anysum_pos _ _ _ S) as N1.
pose proof (anysum_error f (fun i => q i * x i) (fun i => Rabs (q i) * a i)
  (fun i => (rho - 1) * (Rabs (q i) * a i) + rho * (Rabs (q i) * w i) + eta) n y S) as B.
rewrite sumn_plus, sumn_plus, sumn_const, !sumn_scal in B.
assert (E : sumn (fun i => Rabs (q i) * (a i + w i)) n
  = sumn (fun i => Rabs (q i) * a i) n + sumn (fun i => Rabs (q i) * w i) n).
{ rewrite <- sumn_plus; apply sumn_ext; intros; ring. }
rewrite E; clear E.
assert (K : INR (2 * n - 1) = INR n + INR (n - 1)) by (rewrite <- plus_INR; f_equal; lia).
rewrite K; replace (rho ^ n) with (rho ^ (n - 1) * rho)
  by (destruct n as [|n']; [lia|]; simpl; rewrite Nat.sub_0_r; ring).
eapply Rle_trans; [apply B|].
- intros i I; destruct (H i I) as (A & W); pose proof (rf_error _ _ (F i I)) as R.
  pose proof (Rabs_pos (x i)); pose proof (Rabs_pos (q i)); pose proof rho_ge.
  split; [rewrite Rabs_mult; apply Rmult_le_compat_l; lra|].
  replace (f i - q i * x i) with ((f i - q i * xh i) + q i * (xh i - x i)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_mult.
  assert (Rabs (q i) * Rabs (xh i - x i) <= Rabs (q i) * w i) by (apply Rmult_le_compat_l; lra).
  assert (X : Rabs (q i * xh i) <= Rabs (q i) * (a i + w i)).
  { rewrite Rabs_mult; apply Rmult_le_compat_l; [lra|].
    replace (xh i) with (x i + (xh i - x i)) by ring; eapply Rle_trans; [apply Rabs_triang | lra]. }
  assert (0 <= Rabs (q i) * a i) by (apply Rmult_le_pos; lra).
  assert (0 <= Rabs (q i) * w i) by (apply Rmult_le_pos; [lra|]; pose proof (Rabs_pos (xh i - x i)); lra).
  assert (u * Rabs (q i * xh i) <= u * (Rabs (q i) * (a i + w i))) by (apply Rmult_le_compat_l; lra).
  assert (u * (Rabs (q i) * a i) <= (rho - 1) * (Rabs (q i) * a i)) by (apply Rmult_le_compat_r; lra).
  assert ((1 + u) * (Rabs (q i) * w i) <= rho * (Rabs (q i) * w i)) by (apply Rmult_le_compat_r; lra).
  lra.
- right; ring.
Qed.

(* cap of the result: (1 + |q|_1) c; n roundings per term, 2n - 1 roundings that may underflow *)
Theorem dot_cv q xh x a r m c n y : dot_hat q xh n y -> eta <= c * e ->
  (forall i, (i < n)%nat -> cv (x i) (a i) (r i) m c (xh i)) ->
  cv (sumn (fun i => q i * x i) n) (sumn (fun i => Rabs (q i) * a i) n)
     (rho ^ n * sumn (fun i => Rabs (q i) * r i) n) (m + (2 * n - 1))
     ((1 + sumn (fun i => Rabs (q i)) n) * c) y.
Proof.
intros D He H.
assert (N1 : (1 <= n)%nat) by (destruct D as (f & _ & S); exact (anysum_pos _ _ _ S)).
pose proof (cv_c_ge0 _ _ _ _ _ _ (H O N1)) as C0.
pose proof (dot_raw q xh x a (fun i => r i - a i + c * du m) n y D) as B.
set (Q := sumn (fun i => Rabs (q i)) n).
assert (Q0 : 0 <= Q) by (apply sumn_ge0; intros; apply Rabs_pos).
assert (E : sumn (fun i => Rabs (q i) * (a i + (r i - a i + c * du m))) n
  = sumn (fun i => Rabs (q i) * r i) n + c * du m * Q).
{ unfold Q; rewrite <- sumn_scal, <- sumn_plus; apply sumn_ext; intros; ring. }
cbv beta in B; rewrite E in B; clear E.
assert (AR : sumn (fun i => Rabs (q i) * a i) n <= sumn (fun i => Rabs (q i) * r i) n).
{ apply sumn_le; intros i I; apply Rmult_le_compat_l; [apply Rabs_pos | apply (H i I)]. }
assert (RC : sumn (fun i => Rabs (q i) * r i) n <= Q * (c * rho ^ m)).
{ unfold Q; rewrite Rmult_comm, <- sumn_scal; apply sumn_le; intros i I.
  rewrite Rmult_comm; apply Rmult_le_compat_r; [apply Rabs_pos | apply (H i I)]. }
assert (A0 : 0 <= sumn (fun i => Rabs (q i) * a i) n).
{ apply sumn_ge0; intros i I; apply Rmult_le_pos; [apply Rabs_pos|].
  destruct (H i I) as (X & _); pose proof (Rabs_pos (x i)); lra. }
pose proof (rho_pow_ge1 n) as Pn; pose proof (rho_pow_ge1 m) as Pm.
pose proof (rho_pow_mono n (2 * n - 1) ltac:(lia)) as Pnn.
set (sa := sumn (fun i => Rabs (q i) * a i) n) in *.
set (sr := sumn (fun i => Rabs (q i) * r i) n) in *.
assert (0 <= c * rho ^ m) by (apply Rmult_le_pos; lra).
unfold cv; split.
{ eapply Rle_trans; [apply sumn_abs|]; apply sumn_le; intros i I; rewrite Rabs_mult.
  apply Rmult_le_compat_l; [apply Rabs_pos | apply (H i I)]. }
split; [assert (1 * sr <= rho ^ n * sr) by (apply Rmult_le_compat_r; lra); lra|].
split.
{ rewrite pow_add.
  assert (rho ^ n * sr <= rho ^ (2 * n - 1) * (Q * (c * rho ^ m))) by (apply Rmult_le_compat; lra).
  assert (0 <= rho ^ (2 * n - 1) * (c * rho ^ m)) by (apply Rmult_le_pos; lra). lra. }
eapply Rle_trans; [apply B; intros i I; destruct (H i I) as (X & _ & _ & Y); split; [exact X | exact Y]|].
set (k := (2 * n - 1)%nat) in *.
rewrite du_add; pose proof (du_ge0 m) as Dm.
assert (K1 : rho ^ n * (c * du m * Q) <= (1 + Q) * c * (du m * rho1 ^ k)).
{ replace (rho ^ n * (c * du m * Q)) with (Q * c * (du m * rho ^ n)) by ring.
  assert (0 <= Q * c) by (apply Rmult_le_pos; lra).
  apply Rmult_le_compat; [lra | apply Rmult_le_pos; lra | nra |].
  apply Rmult_le_compat_l; [lra|]; pose proof (rho1_pow_ge k); lra. }
assert (K2 : INR k * rho ^ (n - 1) * eta <= (1 + Q) * c * (rho ^ m * du k)).
{ pose proof (du_low (k - 1)) as L; replace (S (k - 1)) with k in L by (unfold k; lia).
  assert (L2 : INR k * e * rho ^ (n - 1) <= du k).
  { eapply Rle_trans; [|exact L]; apply Rmult_le_compat_l.
    - apply Rmult_le_pos; [apply pos_INR | lra].
    - apply rho_pow_mono; unfold k; lia. }
  pose proof (pos_INR k); pose proof (rho_pow_ge1 (n - 1)).
  assert (INR k * rho ^ (n - 1) * eta <= INR k * rho ^ (n - 1) * (c * e)).
  { apply Rmult_le_compat_l; [apply Rmult_le_pos; lra | lra]. }
  assert (c * (INR k * e * rho ^ (n - 1)) <= c * du k) by (apply Rmult_le_compat_l; lra).
  pose proof (du_ge0 k).
  assert (0 <= c * du k) by (apply Rmult_le_pos; lra).
  assert (1 * (c * du k) <= rho ^ m * (c * du k)) by (apply Rmult_le_compat_r; lra).
  assert (0 <= Q * (rho ^ m * (c * du k))).
  { apply Rmult_le_pos; [lra|]; apply Rmult_le_pos; lra. }
  lra. }
lra.
Qed.

End Model.
