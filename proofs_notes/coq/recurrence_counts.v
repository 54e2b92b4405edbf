(* How many roundings touch a term in each form of the recurrence
       S_{t+1} = g_t S_t + b_t k_t v_t          (one entry i, j of the state; t counts from 0)
       y_t     = sum_i q_i S_{t+1, i}.
   The state after t steps is a sum of terms: the write of step s has age a = t - 1 - s, the
   initial state has age t.  [F n aw a0 t] is the sum of the absolute terms, a term of age a
   multiplied by rho^(n a): "a term of age a is rounded n a times".

   Main results (a: age, L: length of a block)
     sequential_state_count         2a + 3
     masked_attention_state_count   a + t + 2
     chunked_state_count            a + a/C + C + 3
     scan_state_count               a + depth + 3
     scan_carried_state_count       a + a/C + C + 3    trees of C steps, the state carried on
     any_order_state_count          a + t + 3        any mixture of the above, any blocks
   The outputs are in output_counts.v.
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
replace (S L - 1 - L)%nat with 0%nat by lia; cbn [G]; rewrite Rabs_R1, Rmult_1_l; f_equal.
apply sumn_ext; intros j J.
replace (S L - 1 - j)%nat with (S (L - 1 - j)) by lia; cbn [G].
replace (S (s + j) + (L - 1 - j))%nat with (s + L)%nat by lia; rewrite Rabs_mult; ring.
Qed.
Lemma loc_dot n q (aw : nat -> nat -> R) D s L :
  loc n (fun r => sumn (fun i => q i * aw i r) D) s L = sumn (fun i => q i * loc n (aw i) s L) D.
Proof.
revert n; induction L as [|L IH]; intros n; simpl.
- rewrite (sumn_ext _ (fun i => 0 * q i)) by (intros; ring); rewrite sumn_scal; ring.
- rewrite IH, <- !sumn_scal, <- sumn_plus; apply sumn_ext; intros; ring.
Qed.

Lemma F_S n aw a0 t : F n aw a0 (S t) = Rabs (g t) * F (fun a => n (S a)) aw a0 t + p ^ n O * aw t.
Proof. unfold F; simpl; rewrite Rabs_mult; ring. Qed.
Lemma F_split n aw a0 s L :
  F n aw a0 (s + L) = Rabs (G g s L) * F (fun a => n (a + L)%nat) aw a0 s + loc n aw s L.
Proof. unfold F; rewrite loc_split, G_abs_split; simpl; ring. Qed.
Lemma F_scale d n aw a0 t : F (fun a => (d + n a)%nat) aw a0 t = p ^ d * F n aw a0 t.
Proof. unfold F; rewrite loc_scale, pow_add; ring. Qed.
Lemma F_mono n n' aw a0 t : (forall r, 0 <= aw r) -> 0 <= a0 ->
  (forall a, (a <= t)%nat -> (n a <= n' a)%nat) -> F n aw a0 t <= F n' aw a0 t.
Proof using p_ge1.
intros Hw H0 H; unfold F; apply Rplus_le_compat.
- apply loc_mono; [exact Hw | intros; apply H; lia].
- apply Rmult_le_compat_r; [now apply Rabs_ge0_mult | apply pow_p_mono, H; lia].
Qed.
Lemma F_ge0 n aw a0 t : (forall r, 0 <= aw r) -> 0 <= a0 -> 0 <= F n aw a0 t.
Proof using p_ge1.
intros Hw H0; unfold F; pose proof (loc_ge0 n aw 0 t Hw).
pose proof (pow_p_ge1 (n t)); pose proof (Rabs_ge0_mult (G g 0 t) a0 H0).
assert (0 <= p ^ n t * (Rabs (G g 0 t) * a0)) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma F_dot n q (aw : nat -> nat -> R) (a0 : nat -> R) D t :
  F n (fun r => sumn (fun i => q i * aw i r) D) (sumn (fun i => q i * a0 i) D) t
  = sumn (fun i => q i * F n (aw i) (a0 i) t) D.
Proof.
unfold F; rewrite loc_dot, <- !sumn_scal, <- sumn_plus; apply sumn_ext; intros; ring.
Qed.
Lemma A_F aw a0 t : A g aw a0 t = F (fun _ => O) aw a0 t.
Proof.
induction t as [|t IH]; [unfold F; simpl; rewrite Rabs_R1; ring|].
rewrite F_S; simpl; rewrite IH; ring.
Qed.
End Counted.

(** * Computed quantities *)
Section Forms.
Set Default Proof Using "All".
Variables u eta : R.
Hypothesis u_ge0 : 0 <= u.
Hypothesis u_lt1 : u < 1.
Hypothesis eta_ge0 : 0 <= eta.
Variable e : R.
Hypothesis e_ge0 : 0 <= e.
Local Notation L7 x := (x u eta u_ge0 u_lt1 eta_ge0 e e_ge0) (only parsing).
Local Notation L5 x := (x u eta u_ge0 u_lt1 eta_ge0) (only parsing).
Local Notation near := (near u eta).
Local Notation cv := (cv u e).
Local Notation rho := (rho u).
Variable g : nat -> R.
Local Notation G := (G g).
Local Notation phi := (phi g).
Local Notation loc := (loc g rho).
Local Notation F := (F g rho).
Variables (T : nat) (Gam : R).
Hypothesis Gam_spec : forall s n, (s + n <= T)%nat -> Rabs (G s n) <= Gam.
Hypothesis e_spec : eta * Gam <= e.

Lemma near_refl x : near x x.
Proof.
unfold counter_calculus.near; replace (x - x) with 0 by ring; rewrite Rabs_R0.
pose proof (Rabs_pos x); assert (0 <= u * Rabs x) by (apply Rmult_le_pos; lra); lra.
Qed.
Lemma rho_1 : 1 <= rho. Proof. exact (L5 rho_ge1). Qed.
Lemma rp1 n : 1 <= rho ^ n. Proof. exact (L5 rho_pow_ge1 n). Qed.
Lemma Gam_ge1 : 1 <= Gam.
Proof. pose proof (Gam_spec 0 0 ltac:(lia)) as H; simpl in H; rewrite Rabs_R1 in H; exact H. Qed.
Lemma eta_e : eta <= e.
Proof. pose proof Gam_ge1; assert (eta * 1 <= eta * Gam) by (apply Rmult_le_compat_l; lra); lra. Qed.
(* the one side condition of the calculus *)
Lemma side c : 1 <= c -> eta <= c * e.
Proof. intros H; pose proof eta_e; assert (1 * e <= c * e) by (apply Rmult_le_compat_r; lra); lra. Qed.
Lemma ge1_mul x y : 1 <= x -> 1 <= y -> 1 <= x * y.
Proof. intros; nra. Qed.
Lemma phi_pos t : 0 < phi t. Proof. pose proof (phi_ge1 g t); lra. Qed.
Lemma side_phi s t c : (s <= T)%nat -> 1 <= c -> eta <= phi t / phi s * c * e.
Proof.
intros Hs Hc; pose proof (phi_le g T Gam Gam_spec s Hs); pose proof (phi_ge1 g t); pose proof (phi_pos s).
pose proof Gam_ge1.
assert (/ Gam <= / phi s) by (apply Rinv_le_contravar; lra).
assert (0 < / Gam) by (apply Rinv_0_lt_compat; lra).
assert (/ Gam <= phi t / phi s).
{ unfold Rdiv; assert (1 * / phi s <= phi t * / phi s) by (apply Rmult_le_compat_r; lra); lra. }
assert (eta <= / Gam * e).
{ apply Rmult_le_reg_r with Gam; [lra|].
  replace (/ Gam * e * Gam) with e by (field; lra); exact e_spec. }
assert (/ Gam * e <= phi t / phi s * c * e).
{ apply Rmult_le_compat_r; [lra|].
  assert (phi t / phi s * 1 <= phi t / phi s * c) by (apply Rmult_le_compat_l; lra); lra. }
lra.
Qed.
Lemma rf_cv x a r m c y z : cv x a r m c y -> rounded_or_fused u eta y z -> eta <= c * e ->
  cv x a (rho * r) (S m) c z.
Proof.
intros H [N| ->] He; [eapply (L7 near_cv); eassumption|].
destruct H as (H1 & H2 & H3 & H4); pose proof (Rabs_pos x); pose proof rho_1; pose proof (rp1 m).
eapply (L7 weak_cv); [repeat split; eassumption | | lia | lra |].
- assert (1 * r <= rho * r) by (apply Rmult_le_compat_r; lra); lra.
- simpl; replace (c * (rho * rho ^ m)) with (rho * (c * rho ^ m)) by ring.
  apply Rmult_le_compat_l; lra.
Qed.

(** ** Products of the gates of a window and of the factors of a list, in any tree in which
    the gates stay neighbours *)
Inductive pt (f : nat -> R) : nat -> nat -> list nat -> R -> Prop :=
| pt_gate s : pt f s 1 [] (g s)
| pt_factor s i : pt f s 0 [i] (f i)
| pt_node s m n E1 E2 y1 y2 y : pt f s m E1 y1 -> pt f (s + m) n E2 y2 -> near (y1 * y2) y ->
    pt f s (m + n) (E1 ++ E2) y.
(* the last product may stay exact: the operand of an fma *)
Inductive pt_open (f : nat -> R) : nat -> nat -> list nat -> R -> Prop :=
| pt_rounded s n E y : pt f s n E y -> pt_open f s n E y
| pt_fused s m n E1 E2 y1 y2 : pt f s m E1 y1 -> pt f (s + m) n E2 y2 ->
    pt_open f s (m + n) (E1 ++ E2) (y1 * y2).

Lemma G_cap s n : Rabs (G s n) <= phi (s + n) / phi s.
Proof.
pose proof (phi_pos s); apply Rmult_le_reg_r with (phi s); [lra|].
replace (phi (s + n) / phi s * phi s) with (phi (s + n)) by (field; lra).
induction n as [|n IH]; [rewrite Nat.add_0_r; simpl; rewrite Rabs_R1; lra|].
rewrite Nat.add_succ_r; eapply Rle_trans; [|apply phi_gate]; simpl; rewrite Rabs_mult.
rewrite (Rmult_comm (Rabs (G s n))), Rmult_assoc; apply Rmult_le_compat_l; [apply Rabs_pos | exact IH].
Qed.

Section Product.
Variables (f x a r : nat -> R) (k : nat -> nat) (c : nat -> R).
Definition factors_ok E := forall i, In i E -> cv (x i) (a i) (r i) (k i) (c i) (f i) /\ 1 <= c i.
Lemma factors_app E1 E2 : factors_ok (E1 ++ E2) -> factors_ok E1 /\ factors_ok E2.
Proof. intros H; split; intros i I; apply H, in_or_app; auto. Qed.
Lemma pt_length s n E y : pt f s n E y -> (1 <= n + length E)%nat.
Proof. induction 1; simpl; rewrite ?app_length; lia. Qed.
Lemma lprod_c_ge1 E : factors_ok E -> 1 <= lprod c E.
Proof. intros H; apply lprod_ge1; intros i I; apply (H i I). Qed.

Lemma pt_cv s n E y : pt f s n E y -> (s + n <= T)%nat -> factors_ok E ->
  cv (G s n * lprod x E) (Rabs (G s n) * lprod a E)
     (rho ^ (n + length E - 1) * (Rabs (G s n) * lprod r E)) (n + length E - 1 + list_sum (map k E))
     (phi (s + n) / phi s * lprod c E) y.
Proof.
induction 1 as [s | s i | s m n E1 E2 y1 y2 y P1 IH1 P2 IH2 N]; intros Ht HE.
- assert (C : cv (g s) (Rabs (g s)) (Rabs (g s)) 0 (phi (s + 1) / phi s) (g s)).
  { apply (L7 exact_cv); pose proof (G_cap s 1) as Q; simpl G in Q.
    rewrite Nat.add_0_r, Rmult_1_l in Q; exact Q. }
  simpl; rewrite Nat.add_0_r, !Rmult_1_l, !Rmult_1_r; exact C.
- destruct (HE i (or_introl eq_refl)) as (C & _).
  simpl; rewrite Rabs_R1, Nat.add_0_r, !Rmult_1_l, !Rmult_1_r, Nat.add_0_r.
  replace (phi s / phi s * c i) with (c i) by (field; pose proof (phi_pos s); lra); exact C.
- destruct (factors_app _ _ HE) as (HE1 & HE2).
  specialize (IH1 ltac:(lia) HE1); specialize (IH2 ltac:(lia) HE2).
  pose proof (pt_length _ _ _ _ P1) as N1; pose proof (pt_length _ _ _ _ P2) as N2.
  pose proof (phi_pos s); pose proof (phi_pos (s + m)).
  pose proof ((L7 mul_cv) _ _ _ _ _ _ _ _ _ _ _ _ IH1 IH2) as C.
  assert (K : phi (s + m) / phi s * lprod c E1 * (phi (s + m + n) / phi (s + m) * lprod c E2)
    = phi (s + (m + n)) / phi s * lprod c (E1 ++ E2)).
  { rewrite lprod_app, Nat.add_assoc; field; lra. }
  rewrite K in C.
  apply (L7 near_cv) with (z := y) in C;
    [|exact N | apply side_phi; [lia | now apply lprod_c_ge1]].
  rewrite app_length, map_app, list_sum_app, !lprod_app, G_split, Rabs_mult.
  set (n1 := (m + length E1 - 1)%nat) in *; set (n2 := (n + length E2 - 1)%nat) in *.
  replace (m + n + (length E1 + length E2) - 1)%nat with (S (n1 + n2)) by (unfold n1, n2; lia).
  rewrite lprod_app in C.
  replace (S (n1 + n2) + (list_sum (map k E1) + list_sum (map k E2)))%nat
    with (S (n1 + list_sum (map k E1) + (n2 + list_sum (map k E2)))) by lia.
  replace (G s m * G (s + m) n * (lprod x E1 * lprod x E2))
    with (G s m * lprod x E1 * (G (s + m) n * lprod x E2)) by ring.
  replace (Rabs (G s m) * Rabs (G (s + m) n) * (lprod a E1 * lprod a E2))
    with (Rabs (G s m) * lprod a E1 * (Rabs (G (s + m) n) * lprod a E2)) by ring.
  replace (rho ^ S (n1 + n2) * (Rabs (G s m) * Rabs (G (s + m) n) * (lprod r E1 * lprod r E2)))
    with (rho * (rho ^ n1 * (Rabs (G s m) * lprod r E1) * (rho ^ n2 * (Rabs (G (s + m) n) * lprod r E2))))
    by (simpl; rewrite pow_add; ring).
  exact C.
Qed.

(* the cap in the unit of the state, and the fused case *)
Theorem pt_open_cv s n E y : pt_open f s n E y -> (s + n <= T)%nat -> factors_ok E ->
  cv (G s n * lprod x E) (Rabs (G s n) * lprod a E)
     (rho ^ (n + length E - 1) * (Rabs (G s n) * lprod r E)) (n + length E - 1 + list_sum (map k E))
     (phi (s + n) / phi s * lprod c E) y.
Proof.
destruct 1 as [s n E y P | s m n E1 E2 y1 y2 P1 P2]; intros Ht HE; [now apply pt_cv|].
destruct (factors_app _ _ HE) as (HE1 & HE2).
pose proof (pt_cv _ _ _ _ P1 ltac:(lia) HE1) as C1; pose proof (pt_cv _ _ _ _ P2 ltac:(lia) HE2) as C2.
pose proof (pt_length _ _ _ _ P1) as N1; pose proof (pt_length _ _ _ _ P2) as N2.
assert (Q : pt f s (m + n) (E1 ++ E2) (y1 * y2)) by (eapply pt_node; try eassumption; apply near_refl).
exact (pt_cv _ _ _ _ Q Ht HE).
Qed.
End Product.

(** ** One entry of the state *)
Section Entry.
Variables (b k v : nat -> R) (s0 : R).
Variables (om : nat -> R) (O0 : R).     (* caps of the writes and of the initial state *)
Hypothesis om_spec : forall t, (1 + Rabs (b t)) * (1 + Rabs (k t)) * (1 + Rabs (v t)) <= om t.
Hypothesis O0_spec : Rabs s0 <= O0.
Definition w t := b t * k t * v t.
Definition aw t := Rabs (w t).
Local Notation xl := (xl g w).
Local Notation state := (state g w s0).
Local Notation A := (A g aw (Rabs s0)).
Local Notation Fs n t := (F n aw (Rabs s0) t).
Definition oml s n := sumn (fun j => om (s + j)%nat) n.
Definition Om t := 1 + O0 + oml 0 t.

Lemma om_ge1 t : 1 <= om t.
Proof.
pose proof (Rabs_pos (b t)); pose proof (Rabs_pos (k t)); pose proof (Rabs_pos (v t)).
eapply Rle_trans; [|apply om_spec].
assert (1 <= (1 + Rabs (b t)) * (1 + Rabs (k t))) by nra. nra.
Qed.
Lemma aw_ge0 t : 0 <= aw t. Proof. apply Rabs_pos. Qed.
Lemma oml_S s n : oml s (S n) = oml s n + om (s + n)%nat. Proof. reflexivity. Qed.
Lemma oml_ge s n : INR n <= oml s n.
Proof.
induction n as [|n IH]; [unfold oml; simpl; lra|].
rewrite oml_S, S_INR; pose proof (om_ge1 (s + n)); lra.
Qed.
Lemma oml_ge1 s n : (1 <= n)%nat -> 1 <= oml s n.
Proof. intros H; eapply Rle_trans; [|apply oml_ge]; apply (le_INR 1 n H). Qed.
Lemma oml_split s m n : oml s (m + n) = oml s m + oml (s + m) n.
Proof.
induction n as [|n IH]; [rewrite Nat.add_0_r; unfold oml; simpl; lra|].
rewrite Nat.add_succ_r, !oml_S, IH, Nat.add_assoc; ring.
Qed.
Lemma Om_split s n : Om (s + n) = Om s + oml s n.
Proof. unfold Om; rewrite (oml_split 0 s n), Nat.add_0_l; ring. Qed.
Lemma Om_ge1 t : 1 <= Om t.
Proof.
unfold Om; pose proof (Rabs_pos s0); pose proof (oml_ge 0 t); pose proof (pos_INR t); lra.
Qed.
Lemma Om_mono s t : (s <= t)%nat -> Om s <= Om t.
Proof.
intros H; replace t with (s + (t - s))%nat by lia; rewrite Om_split.
pose proof (oml_ge s (t - s)); pose proof (pos_INR (t - s)); lra.
Qed.

(* terms: the factors of a write are b, k, v in any order *)
Definition fw s i := match i with 0%nat => b s | 1%nat => k s | _ => v s end.
(* write of step s, multiplied by the n gates after it *)
Definition aged s n y := exists E, Permutation E [0; 1; 2]%nat /\ pt_open (fw s) (S s) n E y.
Definition write s y := exists E, Permutation E [0; 1; 2]%nat /\ pt_open (fw s) (S s) 0 E y.

Lemma aged_cv s n y : (S s + n <= T)%nat -> aged s n y ->
  cv (G (S s) n * w s) (Rabs (G (S s) n) * aw s) (rho ^ (n + 2) * (Rabs (G (S s) n) * aw s)) (n + 2)
     (phi (S s + n) * om s) y.
Proof.
intros Ht (E & P & H).
set (c := fun i => 1 + Rabs (fw s i)).
assert (FO : factors_ok (fw s) (fw s) (fun i => Rabs (fw s i)) (fun i => Rabs (fw s i)) (fun _ => O) c E).
{ intros i _; unfold c; pose proof (Rabs_pos (fw s i)); split; [apply (L7 exact_cv); lra | lra]. }
pose proof (pt_open_cv _ _ _ _ _ _ _ _ _ _ H Ht FO) as C.
rewrite !(lprod_perm _ _ _ P), (Permutation_length P) in C; simpl lprod in C; simpl length in C.
replace (list_sum (map (fun _ : nat => 0%nat) E)) with 0%nat in C
  by (clear; induction E; simpl; auto).
replace (n + 3 - 1 + 0)%nat with (n + 2)%nat in C by lia.
replace (n + 3 - 1)%nat with (n + 2)%nat in C by lia.
unfold aw, w; rewrite !Rabs_mult.
replace (b s * k s * v s) with (b s * (k s * (v s * 1))) by ring.
replace (Rabs (b s) * Rabs (k s) * Rabs (v s)) with (Rabs (b s) * (Rabs (k s) * (Rabs (v s) * 1))) by ring.
assert (CC : phi (S s + n) / phi (S s) * (c 0%nat * (c 1%nat * (c 2%nat * 1))) <= phi (S s + n) * om s).
{ pose proof (phi_ge1 g (S s)); pose proof (phi_ge1 g (S s + n)); pose proof (om_spec s) as O.
  pose proof (om_ge1 s).
  assert (/ phi (S s) <= 1).
  { rewrite <- Rinv_1; apply Rinv_le_contravar; lra. }
  assert (0 < / phi (S s)) by (apply Rinv_0_lt_compat; lra).
  assert (phi (S s + n) / phi (S s) <= phi (S s + n)).
  { unfold Rdiv; assert (phi (S s + n) * / phi (S s) <= phi (S s + n) * 1) by (apply Rmult_le_compat_l; lra); lra. }
  apply Rmult_le_compat; [unfold Rdiv; apply Rmult_le_pos; lra | | assumption |].
  - unfold c; pose proof (Rabs_pos (fw s 0)); pose proof (Rabs_pos (fw s 1)); pose proof (Rabs_pos (fw s 2)).
    apply Rmult_le_pos; [lra|]; apply Rmult_le_pos; [lra|]; lra.
  - unfold c, fw; lra. }
eapply (L7 weak_cv); [exact C | apply Rle_refl | lia | exact CC |].
destruct C as (_ & _ & C & _); pose proof (rp1 (n + 2)).
eapply Rle_trans; [exact C | apply Rmult_le_compat_r; [lra | exact CC]].
Qed.
Lemma aw_om t : aw t <= om t.
Proof.
unfold aw, w; rewrite !Rabs_mult.
pose proof (Rabs_pos (b t)); pose proof (Rabs_pos (k t)); pose proof (Rabs_pos (v t)).
eapply Rle_trans; [|apply om_spec].
apply Rmult_le_compat; [apply Rmult_le_pos; lra | lra | apply Rmult_le_compat; lra | lra].
Qed.
Lemma loc_cap n s L m : (forall a, (a < L)%nat -> (n a <= m)%nat) ->
  loc n aw s L <= phi (s + L) * oml s L * rho ^ m.
Proof.
revert n; induction L as [|L IH]; intros n H; [unfold oml; simpl; lra|].
cbn [recurrence_counts.loc]; rewrite oml_S, Nat.add_succ_r.
specialize (IH (fun a => n (S a)) ltac:(intros a Ha; apply H; lia)).
pose proof (phi_gate g (s + L)); pose proof (phi_ge1 g (S (s + L))); pose proof (oml_ge s L).
pose proof (pos_INR L); pose proof (om_ge1 (s + L)); pose proof (aw_om (s + L)); pose proof (aw_ge0 (s + L)).
pose proof (rp1 m); pose proof (rp1 (n O)).
assert (Q : rho ^ n O <= rho ^ m) by (apply (L5 rho_pow_mono), H; lia).
assert (X1 : Rabs (g (s + L)) * loc (fun a => n (S a)) aw s L <= phi (S (s + L)) * (oml s L * rho ^ m)).
{ eapply Rle_trans; [apply Rmult_le_compat_l; [apply Rabs_pos | exact IH]|].
  replace (Rabs (g (s + L)) * (phi (s + L) * oml s L * rho ^ m))
    with (Rabs (g (s + L)) * phi (s + L) * (oml s L * rho ^ m)) by ring.
  apply Rmult_le_compat_r; [apply Rmult_le_pos; lra | assumption]. }
assert (X2 : rho ^ n O * aw (s + L) <= rho ^ m * om (s + L)) by (apply Rmult_le_compat; lra).
assert (X3 : 1 * (rho ^ m * om (s + L)) <= phi (S (s + L)) * (rho ^ m * om (s + L))).
{ apply Rmult_le_compat_r; [apply Rmult_le_pos; lra | lra]. }
lra.
Qed.
Lemma F_cap n t m : (forall a, (a <= t)%nat -> (n a <= m)%nat) -> Fs n t <= phi t * Om t * rho ^ m.
Proof.
intros H; unfold recurrence_counts.F.
pose proof (loc_cap n 0 t m ltac:(intros; apply H; lia)) as X; simpl in X.
pose proof (G_cap 0 t) as Y; simpl in Y; unfold Rdiv in Y; rewrite Rinv_1, Rmult_1_r in Y.
pose proof (phi_ge1 g t); pose proof (Rabs_pos (G 0 t)); pose proof (Rabs_pos s0); pose proof (rp1 m).
pose proof (rp1 (n t)).
assert (Rabs (G 0 t) * Rabs s0 <= phi t * O0) by (apply Rmult_le_compat; lra).
assert (0 <= Rabs (G 0 t) * Rabs s0) by (apply Rmult_le_pos; lra).
assert (rho ^ n t <= rho ^ m) by (apply (L5 rho_pow_mono), H; lia).
assert (rho ^ n t * (Rabs (G 0 t) * Rabs s0) <= rho ^ m * (phi t * O0)) by (apply Rmult_le_compat; lra).
assert (0 <= phi t * rho ^ m) by (apply Rmult_le_pos; lra).
unfold Om; lra.
Qed.
Lemma A_split s L : A (s + L) = Rabs (G s L) * A s + loc (fun _ => O) aw s L.
Proof. rewrite !(A_F g rho), F_split; reflexivity. Qed.

Lemma write_cv s y : (S s <= T)%nat -> write s y ->
  cv (w s) (aw s) (rho ^ 2 * aw s) 2 (phi (S s) * om s) y.
Proof.
intros Ht H; pose proof (aged_cv s 0 y ltac:(lia) H) as C.
simpl G in C; rewrite Rabs_R1, !Rmult_1_l, Nat.add_0_r in C; exact C.
Qed.

(* what a program holds of a state: enough to go on from *)
Definition holds (n : nat -> nat) m t y :=
  cv (state t) (A t) (Fs n t) m (phi t * Om t) y.

(* carry of a state through a block of n gates, products in any tree *)
Definition carried s n sh p := pt_open (fun _ => sh) s n [0%nat] p.
Lemma carried_cv s n sh p x a r m c : (s + n <= T)%nat -> carried s n sh p ->
  cv x a r m (phi s * c) sh -> 1 <= c ->
  cv (G s n * x) (Rabs (G s n) * a) (rho ^ n * (Rabs (G s n) * r)) (n + m) (phi (s + n) * c) p.
Proof.
intros Ht H C Hc.
assert (FO : factors_ok (fun _ => sh) (fun _ => x) (fun _ => a) (fun _ => r) (fun _ => m)
  (fun _ => phi s * c) [0%nat]).
{ intros i _; split; [exact C | apply ge1_mul; [apply phi_ge1 | exact Hc]]. }
pose proof (pt_open_cv _ _ _ _ _ _ _ _ _ _ H Ht FO) as Q; simpl in Q; rewrite !Rmult_1_r in Q.
replace (n + 1 - 1)%nat with n in Q by lia; rewrite Nat.add_0_r in Q.
replace (phi (s + n) / phi s * (phi s * c)) with (phi (s + n) * c) in Q
  by (field; pose proof (phi_pos s); lra); exact Q.
Qed.

(** *** Sums over a block *)
(* the writes of a block, each multiplied out, added in any order *)
Definition local_sum s L y := exists f,
  (forall j, (j < L)%nat -> aged (s + j) (L - 1 - j) (f j)) /\ anysum u eta f L y.
(* or combined in any tree, as a scan does *)
Inductive scan_tree : nat -> nat -> nat -> R -> Prop :=
| scan_leaf s z : write s z -> scan_tree s 1 0 z
| scan_node s m n d1 d2 u1 u2 p y : scan_tree s m d1 u1 -> scan_tree (s + m) n d2 u2 ->
    carried (s + m) n u1 p -> near (p + u2) y -> scan_tree s (m + n) (S (Nat.max d1 d2)) y.
Lemma scan_depth s n d y : scan_tree s n d y -> (1 <= n /\ d <= n - 1)%nat.
Proof. induction 1; lia. Qed.

Local Notation lA := (loc (fun _ => O) aw).

Lemma lA_1 s : lA s 1 = aw s.
Proof. simpl; rewrite Nat.add_0_r; ring. Qed.

Lemma local_sum_cv s L y : (s + L <= T)%nat -> local_sum s L y ->
  cv (xl s L) (lA s L) (loc (fun a => (a + L + 1)%nat) aw s L) (2 * L) (phi (s + L) * oml s L) y.
Proof.
intros Ht (f & H & Sm); pose proof (anysum_pos u eta u_ge0 u_lt1 eta_ge0 e e_ge0 _ _ _ Sm) as L1.
pose proof ((L7 anysum_cv) f (fun j => G (S (s + j)) (L - 1 - j) * w (s + j)%nat)
  (fun j => Rabs (G (S (s + j)) (L - 1 - j)) * aw (s + j)%nat)
  (fun j => rho ^ (L - 1 - j + 2) * (Rabs (G (S (s + j)) (L - 1 - j)) * aw (s + j)%nat))
  (L + 1)%nat (fun j => phi (s + L) * om (s + j)%nat) L y Sm) as C.
rewrite sumn_scal in C.
replace (sumn (fun j => G (S (s + j)) (L - 1 - j) * w (s + j)%nat) L) with (xl s L) in C
  by apply xl_sum.
replace (sumn (fun j => Rabs (G (S (s + j)) (L - 1 - j)) * aw (s + j)%nat) L) with (lA s L) in C
  by (rewrite loc_sum; apply sumn_ext; intros; simpl; ring).
replace (sumn (fun j => rho ^ (L - 1 - j + 2) * (Rabs (G (S (s + j)) (L - 1 - j)) * aw (s + j)%nat)) L)
  with (loc (fun a => (a + 2)%nat) aw s L) in C by apply loc_sum.
rewrite <- loc_scale in C.
rewrite (loc_ext g rho (fun a => (a + L + 1)%nat) (fun a => (L - 1 + (a + 2))%nat)) by (intros; lia).
replace (2 * L)%nat with (L + 1 + (L - 1))%nat by lia.
apply C; intros j J; cbv beta; split.
- assert (Tj : (S (s + j) + (L - 1 - j) <= T)%nat) by lia.
  pose proof (aged_cv _ _ _ Tj (H j J)) as Q.
  replace (S (s + j) + (L - 1 - j))%nat with (s + L)%nat in Q by lia.
  eapply (L7 weak_cv); [exact Q | apply Rle_refl | lia | apply Rle_refl |].
  destruct Q as (_ & _ & Q & _); eapply Rle_trans; [exact Q|].
  apply Rmult_le_compat_l; [|apply (L5 rho_pow_mono); lia].
  pose proof (phi_pos (s + L)); pose proof (om_ge1 (s + j)); apply Rmult_le_pos; lra.
- apply side, ge1_mul; [apply phi_ge1 | apply om_ge1].
Qed.

Lemma scan_tree_cv s L d y : scan_tree s L d y -> (s + L <= T)%nat ->
  cv (xl s L) (lA s L) (loc (fun a => (a + d + 2)%nat) aw s L) (L + d + 2) (phi (s + L) * oml s L) y.
Proof.
induction 1 as [s z W | s m n d1 d2 u1 u2 p y S1 IH1 S2 IH2 Cr N]; intros Ht.
- pose proof (write_cv s z ltac:(lia) W) as C.
  rewrite lA_1; simpl; rewrite !Nat.add_0_r, Rmult_0_r, Rmult_0_r, !Rplus_0_l.
  unfold oml; simpl; rewrite Nat.add_0_r, Rplus_0_l, Nat.add_1_r.
  eapply (L7 weak_cv); [exact C | simpl; lra | lia | lra |].
  destruct C as (_ & _ & C & _); pose proof (phi_pos (S s)); pose proof (om_ge1 s).
  replace (rho * (rho * 1) * aw s) with (rho ^ 2 * aw s) by (simpl; ring).
  eapply Rle_trans; [exact C|]; apply Rmult_le_compat_l; [apply Rmult_le_pos; simpl in *; lra|].
  apply (L5 rho_pow_mono); lia.
- specialize (IH1 ltac:(lia)); specialize (IH2 ltac:(lia)).
  destruct (scan_depth _ _ _ _ S1) as (m1 & _); destruct (scan_depth _ _ _ _ S2) as (n1 & _).
  assert (Tn : (s + m + n <= T)%nat) by lia.
  pose proof (carried_cv _ _ _ _ _ _ _ _ _ Tn Cr IH1 (oml_ge1 s m m1)) as C1.
  set (d := Nat.max d1 d2).
  apply (L7 weak_m) with (m' := (m + n + d + 2)%nat) (c' := phi (s + m + n) * oml s m) in C1;
    [|unfold d; lia | apply Rle_refl].
  apply (L7 weak_m) with (m' := (m + n + d + 2)%nat) (c' := phi (s + m + n) * oml (s + m) n) in IH2;
    [|unfold d; lia | apply Rle_refl].
  pose proof ((L7 add_cv) _ _ _ _ _ _ _ _ _ _ _ C1 IH2) as C.
  rewrite <- Rmult_plus_distr_l, <- oml_split, <- (Nat.add_assoc s m n) in C.
  apply (L7 near_cv) with (z := y) in C; [|exact N|].
  2:{ apply side, ge1_mul; [apply phi_ge1 | apply oml_ge1; lia]. }
  rewrite xl_split, (loc_split g rho (fun _ => O)).
  replace (m + n + S d + 2)%nat with (S (m + n + d + 2)) by lia.
  eapply (L7 weak_r); [exact C | | apply loc_cap; intros; lia].
  rewrite (loc_split g rho (fun a => (a + S d + 2)%nat)), Rmult_plus_distr_l.
  apply Rplus_le_compat.
  + replace (rho * (rho ^ n * (Rabs (G (s + m) n) * loc (fun a => (a + d1 + 2)%nat) aw s m)))
      with (Rabs (G (s + m) n) * (rho ^ S n * loc (fun a => (a + d1 + 2)%nat) aw s m)) by (simpl; ring).
    rewrite <- loc_scale; apply Rmult_le_compat_l; [apply Rabs_pos|].
    apply loc_mono; [exact rho_1 | exact aw_ge0 | intros; unfold d; lia].
  + replace rho with (rho ^ 1) at 1 by ring.
    rewrite <- loc_scale; apply loc_mono; [exact rho_1 | exact aw_ge0 | intros; unfold d; lia].
Qed.

(** *** Blocks: from what is held after s steps to what is held after s + L *)
Lemma holds_init n m : n O = O -> holds n m 0 s0.
Proof.
intros H; unfold holds; apply (L7 weak_m) with (m := O) (c := Om 0).
- unfold recurrence_counts.F; simpl; rewrite H, Rabs_R1; simpl.
  replace (0 + 1 * (1 * Rabs s0)) with (Rabs s0) by ring.
  apply (L7 exact_cv); unfold Om, oml; simpl; lra.
- lia.
- simpl; lra.
Qed.
Lemma holds_weak n m t y n' m' : holds n m t y -> (forall a, (a <= t)%nat -> (n a <= n' a)%nat) ->
  (m <= m')%nat -> (forall a, (a <= t)%nat -> (n' a <= m')%nat) -> holds n' m' t y.
Proof.
intros H Hn Hm Hm'; eapply (L7 weak_cv); [exact H | | exact Hm | apply Rle_refl | now apply F_cap].
apply F_mono; [exact rho_1 | exact aw_ge0 | apply Rabs_pos | exact Hn].
Qed.

Lemma holds_exact n m : (n O <= m)%nat -> holds n m 0 s0.
Proof.
intros H; eapply holds_weak; [apply (holds_init (fun _ => O) O); reflexivity | | |]; intros; cbv beta; try lia.
replace a with O by lia; exact H.
Qed.

(* the carried state meets the sum of the block in one addition *)
Lemma block_holds n m s L sh p kl ml U y n' m' :
  holds n m s sh -> carried s L sh p -> (1 <= L)%nat -> (s + L <= T)%nat ->
  cv (xl s L) (lA s L) (loc kl aw s L) ml (phi (s + L) * oml s L) U -> near (p + U) y ->
  (forall a, (a <= s)%nat -> (n a + L + 1 <= n' (a + L))%nat) ->
  (forall a, (a < L)%nat -> (kl a + 1 <= n' a)%nat) ->
  (L + m + 1 <= m')%nat -> (ml + 1 <= m')%nat -> (forall a, (a <= s + L)%nat -> (n' a <= m')%nat) ->
  holds n' m' (s + L) y.
Proof.
intros H Cr L1 Ht CU N Hn Hk Hm Hml Hm'.
pose proof (carried_cv _ _ _ _ _ _ _ _ _ Ht Cr H (Om_ge1 s)) as C1.
apply (L7 weak_m) with (m' := (m' - 1)%nat) (c' := phi (s + L) * Om s) in C1; [|lia | apply Rle_refl].
apply (L7 weak_m) with (m' := (m' - 1)%nat) (c' := phi (s + L) * oml s L) in CU; [|lia | apply Rle_refl].
pose proof ((L7 add_cv) _ _ _ _ _ _ _ _ _ _ _ C1 CU) as C.
rewrite <- Rmult_plus_distr_l, <- Om_split in C.
apply (L7 near_cv) with (z := y) in C; [|exact N|].
2:{ apply side, ge1_mul; [apply phi_ge1 | apply Om_ge1]. }
replace (S (m' - 1)) with m' in C by lia.
unfold holds; rewrite state_split, A_split.
eapply (L7 weak_r); [exact C | | now apply F_cap].
rewrite F_split, Rmult_plus_distr_l; apply Rplus_le_compat.
- replace (rho * (rho ^ L * (Rabs (G s L) * Fs n s))) with (Rabs (G s L) * (rho ^ S L * Fs n s))
    by (simpl; ring).
  rewrite <- F_scale; apply Rmult_le_compat_l; [apply Rabs_pos|].
  apply F_mono; [exact rho_1 | exact aw_ge0 | apply Rabs_pos | intros a Ha; specialize (Hn a Ha); lia].
- replace rho with (rho ^ 1) at 1 by ring.
  rewrite <- loc_scale; apply loc_mono; [exact rho_1 | exact aw_ge0 |].
  intros a Ha; specialize (Hk a Ha); lia.
Qed.

(* the carried state is one of the terms of the sum *)
Definition sum_block s L sh y := exists f, carried s L sh (f L) /\
  (forall j, (j < L)%nat -> aged (s + j) (L - 1 - j) (f j)) /\ anysum u eta f (S L) y.
Lemma sum_block_holds n m s L sh y n' m' :
  holds n m s sh -> sum_block s L sh y -> (s + L <= T)%nat ->
  (forall a, (a <= s)%nat -> (n a + 2 * L <= n' (a + L))%nat) ->
  (forall a, (a < L)%nat -> (a + L + 2 <= n' a)%nat) ->
  (m + 2 * L <= m')%nat -> (2 * L + 1 <= m')%nat -> (forall a, (a <= s + L)%nat -> (n' a <= m')%nat) ->
  holds n' m' (s + L) y.
Proof.
intros H (f & Cr & Ag & Sm) Ht Hn Hk Hm Hm1 Hm'.
pose proof (carried_cv _ _ _ _ _ _ _ _ _ Ht Cr H (Om_ge1 s)) as C1.
set (sel := fun (j : nat) (x y : R) => if Nat.eqb j L then x else y).
assert (SE : forall h z, sumn (fun j => sel j z (h j)) (S L) = z + sumn h L).
{ intros h z; cbn [sumn]; unfold sel at 2; rewrite Nat.eqb_refl, Rplus_comm; f_equal.
  apply sumn_ext; intros j J; unfold sel.
  destruct (Nat.eqb_spec j L); [lia | reflexivity]. }
set (mm := Nat.max (L + m) (L + 1)).
pose proof ((L7 anysum_cv) f (fun j => sel j (G s L * state s) (G (S (s + j)) (L - 1 - j) * w (s + j)%nat))
  (fun j => sel j (Rabs (G s L) * A s) (Rabs (G (S (s + j)) (L - 1 - j)) * aw (s + j)%nat))
  (fun j => sel j (rho ^ L * (Rabs (G s L) * Fs n s))
     (rho ^ (L - 1 - j + 2) * (Rabs (G (S (s + j)) (L - 1 - j)) * aw (s + j)%nat)))
  mm (fun j => sel j (phi (s + L) * Om s) (phi (s + L) * om (s + j)%nat)) (S L) y Sm) as C.
rewrite !SE, sumn_scal in C.
replace (sumn (fun j => G (S (s + j)) (L - 1 - j) * w (s + j)%nat) L) with (xl s L) in C
  by apply xl_sum.
replace (sumn (fun j => Rabs (G (S (s + j)) (L - 1 - j)) * aw (s + j)%nat) L) with (lA s L) in C
  by (rewrite loc_sum; apply sumn_ext; intros; simpl; ring).
replace (sumn (fun j => rho ^ (L - 1 - j + 2) * (Rabs (G (S (s + j)) (L - 1 - j)) * aw (s + j)%nat)) L)
  with (loc (fun a => (a + 2)%nat) aw s L) in C by apply loc_sum.
change (sumn (fun i => om (s + i)%nat) L) with (oml s L) in C.
rewrite <- state_split, <- A_split, <- Rmult_plus_distr_l, <- Om_split in C.
replace (S L - 1)%nat with L in C by lia.
unfold holds; eapply (L7 weak_cv); [apply C | | unfold mm; lia | apply Rle_refl | now apply F_cap].
- intros j J; cbv beta; unfold sel; destruct (Nat.eqb_spec j L) as [E|E].
  + subst j; split.
    * eapply (L7 weak_m); [exact C1 | unfold mm; lia | apply Rle_refl].
    * apply side, ge1_mul; [apply phi_ge1 | apply Om_ge1].
  + assert (J' : (j < L)%nat) by lia.
    assert (Tj : (S (s + j) + (L - 1 - j) <= T)%nat) by lia.
    pose proof (aged_cv _ _ _ Tj (Ag j J')) as Q.
    replace (S (s + j) + (L - 1 - j))%nat with (s + L)%nat in Q by lia; split.
    * eapply (L7 weak_m); [exact Q | unfold mm; lia | apply Rle_refl].
    * apply side, ge1_mul; [apply phi_ge1 | apply om_ge1].
- rewrite F_split, Rmult_plus_distr_l; apply Rplus_le_compat.
  + replace (rho ^ L * (rho ^ L * (Rabs (G s L) * Fs n s))) with (Rabs (G s L) * (rho ^ (L + L) * Fs n s))
      by (rewrite pow_add; ring).
    rewrite <- F_scale; apply Rmult_le_compat_l; [apply Rabs_pos|].
    apply F_mono; [exact rho_1 | exact aw_ge0 | apply Rabs_pos | intros a Ha; specialize (Hn a Ha); lia].
  + rewrite <- loc_scale; apply loc_mono; [exact rho_1 | exact aw_ge0 |].
    intros a Ha; specialize (Hk a Ha); lia.
Qed.

(** *** Sequential *)
Definition step t sh y := exists p z, rounded_or_fused u eta (g t * sh) p /\ write t z /\ near (p + z) y.
Inductive sequential : nat -> R -> Prop :=
| seq_init : sequential 0 s0
| seq_step t sh y : sequential t sh -> step t sh y -> sequential (S t) y.

Lemma step_carried t sh p : rounded_or_fused u eta (g t * sh) p -> carried t 1 sh p.
Proof.
intros [N| ->].
- apply pt_rounded; apply (pt_node _ t 1 0 [] [0%nat] (g t) sh p);
    [apply pt_gate | apply (pt_factor (fun _ => sh)) | exact N].
- apply (pt_fused _ t 1 0 [] [0%nat] (g t) sh); [apply pt_gate | apply (pt_factor (fun _ => sh))].
Qed.
Lemma write_block t z : (S t <= T)%nat -> write t z ->
  cv (xl t 1) (lA t 1) (loc (fun a => (a + 2)%nat) aw t 1) 2 (phi (t + 1) * oml t 1) z.
Proof.
intros Ht W.
pose proof (write_cv t z Ht W) as C; rewrite lA_1; simpl.
rewrite !Nat.add_0_r, Rmult_0_r, Rmult_0_r, !Rplus_0_l.
unfold oml; simpl; rewrite Nat.add_0_r, Rplus_0_l, Nat.add_1_r.
replace (rho * (rho * 1) * aw t) with (rho ^ 2 * aw t) by (simpl; ring); exact C.
Qed.

Theorem sequential_state_count t y : (t <= T)%nat -> sequential t y ->
  holds (fun a => (2 * a + 3)%nat) (2 * t + 3) t y.
Proof.
intros Ht H; induction H as [|t sh y H IH (p & z & Rf & W & N)]; [apply holds_exact; intros; lia|].
specialize (IH ltac:(lia)); pose proof (write_block t z Ht W) as CW.
replace (S t) with (t + 1)%nat by lia.
eapply block_holds; [exact IH | apply step_carried, Rf | lia | lia | exact CW | exact N | | | lia | lia |];
  intros a Ha; cbv beta; lia.
Qed.

(** *** Masked attention: one sum over everything *)
Theorem masked_attention_state_count t y : (1 <= t <= T)%nat -> sum_block 0 t s0 y ->
  holds (fun a => (a + t + 2)%nat) (2 * t + 2) t y.
Proof.
intros Ht H; change (holds (fun a => (a + t + 2)%nat) (2 * t + 2) (0 + t) y).
eapply sum_block_holds; [apply (holds_exact (fun _ => O) O); lia | exact H | lia | | | lia | lia |];
  intros a Ha; cbv beta; lia.
Qed.

(** *** Chunks of C, then a last one of r <= C *)
Definition local s L U := local_sum s L U \/ exists d, scan_tree s L d U.
Lemma local_cv s L U : (s + L <= T)%nat -> local s L U ->
  (1 <= L)%nat /\ cv (xl s L) (lA s L) (loc (fun a => (a + L + 1)%nat) aw s L) (2 * L + 1) (phi (s + L) * oml s L) U.
Proof.
intros Ht [H|(d & H)].
- assert (L1 : (1 <= L)%nat) by (destruct H as (f & _ & Sm); exact (L7 anysum_pos _ _ _ Sm)).
  split; [exact L1|]; eapply (L7 weak_m); [apply local_sum_cv; assumption | lia | apply Rle_refl].
- destruct (scan_depth _ _ _ _ H) as (L1 & D); split; [exact L1|].
  pose proof (scan_tree_cv _ _ _ _ H Ht) as C.
  eapply (L7 weak_cv); [exact C | | lia | apply Rle_refl | apply loc_cap; intros; lia].
  apply loc_mono; [exact rho_1 | exact aw_ge0 | intros; lia].
Qed.
Inductive chunk_states (C : nat) : nat -> R -> Prop :=
| cs_init : chunk_states C 0 s0
| cs_chunk c sh p U y : chunk_states C c sh -> carried (c * C) C sh p -> local (c * C) C U ->
    near (p + U) y -> chunk_states C (S c) y.
Definition chunked_state C c r y := exists sh p U, chunk_states C c sh /\ carried (c * C) r sh p /\
  local (c * C) r U /\ near (p + U) y.

Lemma div_step C a : (1 <= C)%nat -> ((a + C) / C = a / C + 1)%nat.
Proof. intros H; replace (a + C)%nat with (a + 1 * C)%nat by lia; rewrite Nat.div_add; lia. Qed.
Lemma div_mono C a b' : (a <= b')%nat -> (1 <= C)%nat -> (a / C <= b' / C)%nat.
Proof. intros; apply Nat.div_le_mono; lia. Qed.

Lemma chunk_states_holds C c y : (1 <= C)%nat -> (c * C <= T)%nat -> chunk_states C c y ->
  holds (fun a => (a + a / C + C + 2)%nat) (c * C + c + C + 2) (c * C) y.
Proof.
intros HC Ht H; induction H as [|c sh p U y H IH Cr Lo N].
{ apply holds_exact; rewrite Nat.div_0_l by lia; lia. }
assert (Ht' : (c * C + C <= T)%nat) by (simpl in Ht; lia).
destruct (local_cv _ _ _ Ht' Lo) as (L1 & CU).
assert (E : (c * C / C = c)%nat) by (apply Nat.div_mul; lia).
replace (S c * C)%nat with (c * C + C)%nat by (simpl; lia).
specialize (IH ltac:(lia)).
eapply block_holds; [exact IH | exact Cr | exact HC | exact Ht' | exact CU | exact N | | | lia | lia |].
- intros a Ha; cbv beta; rewrite div_step by lia; lia.
- intros a Ha; cbv beta; lia.
- intros a Ha; cbv beta; pose proof (div_mono C a (c * C + C) Ha HC) as Q.
  rewrite div_step, E in Q by lia; lia.
Qed.

(* a sequence shorter than C is one chunk: take C = r then *)
Lemma chunks_small C c r : (1 <= r <= C)%nat -> (C <= c * C + r)%nat -> (c + C <= c * C + r)%nat.
Proof. intros; destruct c; nia. Qed.
Lemma quotient_small C t : (1 <= C <= t)%nat -> (t / C + C <= t + 1)%nat.
Proof.
intros H; pose proof (Nat.div_mod t C ltac:(lia)) as E; assert (1 <= t / C)%nat by (apply Nat.div_le_lower_bound; lia).
nia.
Qed.
Theorem chunked_state_count C c r y : (1 <= r <= C)%nat -> (C <= c * C + r <= T)%nat ->
  chunked_state C c r y ->
  holds (fun a => (a + a / C + C + 3)%nat) (2 * (c * C + r) + 4) (c * C + r) y.
Proof.
intros Hr (HCt & Ht) (sh & p & U & H & Cr & Lo & N).
destruct (local_cv _ _ _ Ht Lo) as (L1 & CU); assert (HC : (1 <= C)%nat) by lia.
pose proof (chunks_small C c r Hr HCt) as Sc.
pose proof (chunk_states_holds C c sh HC ltac:(lia) H) as H'.
eapply block_holds; [exact H' | exact Cr | lia | exact Ht | exact CU | exact N | | | lia | lia |];
  intros a Ha; cbv beta.
- pose proof (div_mono C a (a + r) ltac:(lia) HC); lia.
- lia.
- pose proof (quotient_small C (c * C + r) ltac:(lia)); pose proof (div_mono C a (c * C + r) Ha HC); lia.
Qed.

(** *** Scan: any tree of depth d, then the initial state *)
Definition scan_state t d y := exists p U, scan_tree 0 t d U /\ carried 0 t s0 p /\ near (p + U) y.
Theorem scan_state_count t d y : (t <= T)%nat -> scan_state t d y ->
  holds (fun a => (a + d + 3)%nat) (t + d + 3) t y.
Proof.
intros Ht (p & U & Sc & Cr & N); destruct (scan_depth _ _ _ _ Sc) as (t1 & Hd).
assert (H0 : holds (fun _ => O) O 0 s0) by (apply holds_exact; lia).
pose proof (scan_tree_cv _ _ _ _ Sc Ht) as C.
change (holds (fun a => (a + d + 3)%nat) (t + d + 3) (0 + t) y).
eapply block_holds; [exact H0 | exact Cr | lia | exact Ht | exact C | exact N | | | lia | lia |];
  intros a Ha; cbv beta; lia.
Qed.

(** *** Scans of C steps each, the state carried from tree to tree: chunks whose insides are trees *)
Inductive tree_states (C : nat) : nat -> R -> Prop :=
| ts_init : tree_states C 0 s0
| ts_tree c sh p d U y : tree_states C c sh -> carried (c * C) C sh p -> scan_tree (c * C) C d U ->
    near (p + U) y -> tree_states C (S c) y.
Definition scan_carried_state C c r y := exists sh p d U, tree_states C c sh /\ carried (c * C) r sh p /\
  scan_tree (c * C) r d U /\ near (p + U) y.
Lemma scan_carried_chunked C c r y : scan_carried_state C c r y -> chunked_state C c r y.
Proof using.
intros (sh & p & d & U & H & Cr & Sc & N); exists sh, p, U.
split; [|split; [exact Cr | split; [right; exists d; exact Sc | exact N]]].
clear - H; induction H as [|c sh p d U y H IH Cr Sc N]; [constructor|].
eapply cs_chunk; [exact IH | exact Cr | right; exists d; exact Sc | exact N].
Qed.
Theorem scan_carried_state_count C c r y : (1 <= r <= C)%nat -> (C <= c * C + r <= T)%nat ->
  scan_carried_state C c r y ->
  holds (fun a => (a + a / C + C + 3)%nat) (2 * (c * C + r) + 4) (c * C + r) y.
Proof. intros Hr Ht H; now apply chunked_state_count, scan_carried_chunked. Qed.

(** *** Any order: any mixture of steps, chunks, scans and sums, any split *)
Inductive any_form : nat -> R -> Prop :=
| af_init : any_form 0 s0
| af_block s L sh p U y : any_form s sh -> carried s L sh p -> local s L U -> near (p + U) y ->
    any_form (s + L) y
| af_sum s L sh y : (1 <= L)%nat -> any_form s sh -> sum_block s L sh y -> any_form (s + L) y.
Theorem any_order_state_count t y : (t <= T)%nat -> any_form t y ->
  holds (fun a => (a + t + 3)%nat) (2 * t + 3) t y.
Proof.
intros Ht H.
induction H as [|s L sh p U y H IH Cr Lo N | s L sh y L1 H IH Sb]; [apply holds_exact; lia | |].
- destruct (local_cv _ _ _ Ht Lo) as (L1 & CU).
  eapply block_holds; [exact (IH ltac:(lia)) | exact Cr | lia | exact Ht | exact CU | exact N | | | lia | lia |];
    intros a Ha; cbv beta; lia.
- eapply sum_block_holds; [exact (IH ltac:(lia)) | exact Sb | exact Ht | | | lia | lia |];
    intros a Ha; cbv beta; lia.
Qed.
Lemma sequential_any_form t y : sequential t y -> any_form t y.
Proof.
induction 1 as [|t sh y H IH (p & z & Rf & W & N)]; [constructor|].
replace (S t) with (t + 1)%nat by lia.
eapply af_block; [exact IH | apply step_carried, Rf | right; exists O; exact (scan_leaf t z W) | exact N].
Qed.
Lemma chunked_any_form C c r y : chunked_state C c r y -> any_form (c * C + r) y.
Proof.
intros (sh & p & U & H & Cr & Lo & N); eapply af_block; [|exact Cr | exact Lo | exact N].
clear - H; induction H as [|c sh p U y H IH Cr Lo N]; [constructor|].
replace (S c * C)%nat with (c * C + C)%nat by (simpl; lia); eapply af_block; eassumption.
Qed.
Lemma scan_any_form t d y : scan_state t d y -> any_form t y.
Proof.
intros (p & U & Sc & Cr & N); change (any_form (0 + t) y).
eapply af_block; [apply af_init | exact Cr | right; exists d; exact Sc | exact N].
Qed.
Lemma masked_any_form t y : (1 <= t)%nat -> sum_block 0 t s0 y -> any_form t y.
Proof. intros Ht H; change (any_form (0 + t) y); eapply af_sum; [exact Ht | apply af_init | exact H]. Qed.
End Entry.
End Forms.
