(* Softmax attention with a running maximum: sums are rescaled whenever it grows, and partial
   sums may be merged, in any order.  J: how often a sum is rescaled at most.

   Main results
     weight_error            a weight in use, a product of at most J + 1 computed exponentials, is within
                             2 (J + 1) tiny of one with relative error xi only
     rescaled_sum_error      a sum of L terms with J rescalings: L + J roundings a term
     attention_online_bound  |computed - o| <= dev + inherited + quotient_error, as in attention.v with
         xi_j for J, gamma_{L+J}, gamma_{L+J+1} and 64 L (J + 1) tiny (1 + V)                     *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
Require Import counter_calculus running_bound prefix_product linear softmax weighted_mean.
Import ListNotations.
Open Scope R_scope.

Fixpoint psum (F : nat * R -> R) (l : list (nat * R)) : R :=
  match l with [] => 0 | p :: r => F p + psum F r end.
Lemma psum_app F l r : psum F (l ++ r) = psum F l + psum F r.
Proof. induction l as [|p l IH]; simpl; lra. Qed.
Lemma psum_perm F l r : Permutation l r -> psum F l = psum F r.
Proof. induction 1; simpl; lra. Qed.
Lemma psum_map F h l : psum F (map h l) = psum (fun p => F (h p)) l.
Proof. induction l as [|p l IH]; simpl; [reflexivity | now rewrite IH]. Qed.
Lemma psum_keys F w L : psum F (map (fun j => (j, w j)) (seq 0 L)) = sumn (fun j => F (j, w j)) L.
Proof.
rewrite <- lsum_seq; generalize (seq 0 L); intros l; induction l as [|j l IH]; simpl; [reflexivity | now rewrite IH].
Qed.
Lemma psum_scal c F l : psum (fun p => c * F p) l = c * psum F l.
Proof. induction l as [|p l IH]; simpl; lra. Qed.
Lemma psum_ext F F' l : (forall p, F p = F' p) -> psum F l = psum F' l.
Proof. intros H; induction l as [|p l IH]; simpl; [reflexivity | now rewrite H, IH]. Qed.

(** * Sums with rescaling *)
Section Sums.
Set Default Proof Using "All".
Variables u eta : R.
Hypothesis u_ge0 : 0 <= u.
Hypothesis u_lt1 : u < 1.
Hypothesis eta_ge0 : 0 <= eta.
Local Notation L5 x := (x u eta u_ge0 u_lt1 eta_ge0) (only parsing).
Local Notation E8 x := (x u eta u_ge0 u_lt1 eta_ge0 1 Rlt_0_1 (fun _ => 0)) (only parsing).
Local Notation rho := (rho u).
Variable top_scale : R.         (* no scale is larger *)
Hypothesis top_ge1 : 1 <= top_scale.

Definition rescale c (p : nat * R) := (fst p, c * snd p).
(* keys with the weights that have been applied to them so far, rescalings of the most rescaled, value *)
Inductive acc (leaf : nat -> R -> R -> Prop) : list (nat * R) -> nat -> R -> Prop :=
| acc_leaf j w y : 0 <= w -> leaf j w y -> acc leaf [(j, w)] 0 y
| acc_scale l J c y y' : 0 <= c <= top_scale -> acc leaf l J y -> rounded_or_fused u eta (c * y) y' ->
    acc leaf (map (rescale c) l) (Datatypes.S J) y'
| acc_add l1 l2 J1 J2 y1 y2 y : acc leaf l1 J1 y1 -> acc leaf l2 J2 y2 -> near u eta (y1 + y2) y ->
    acc leaf (l1 ++ l2) (Nat.max J1 J2) y.
Lemma acc_length leaf l J y : acc leaf l J y -> (1 <= length l)%nat.
Proof. induction 1; rewrite ?map_length, ?app_length; simpl in *; lia. Qed.

Variables (leaf : nat -> R -> R -> Prop) (val : nat -> R) (kl : nat).   (* kl: roundings of a leaf, 0 or 1 *)
Hypothesis leaf_spec : forall j w y, 0 <= w -> leaf j w y ->
  er (w * val j) (w * Rabs (val j)) (rho ^ kl * (w * Rabs (val j))) (INR kl * eta) y.
Definition value (p : nat * R) := snd p * val (fst p).
Definition majorant (p : nat * R) := snd p * Rabs (val (fst p)).
Definition lost n J := INR (n * (kl + J + 1) - 1) * rho ^ (n - 1 + J) * top_scale ^ J * eta.
Lemma scale_ge1 J : 1 <= top_scale ^ J. Proof. now apply pow_R1_Rle. Qed.
Lemma lost_ge0 n J : 0 <= lost n J.
Proof.
unfold lost; pose proof (pos_INR (n * (kl + J + 1) - 1)); pose proof (L5 rho_pow_ge1 (n - 1 + J)); pose proof (scale_ge1 J).
repeat (apply Rmult_le_pos; try lra).
Qed.
(* one more event fits *)
Lemma lost_step n J n' J' c : (1 <= n)%nat -> (n - 1 + J + 1 <= n' - 1 + J')%nat -> (J <= J')%nat -> 0 <= c ->
  (n * (kl + J + 1) - 1 + 1 <= n' * (kl + J' + 1) - 1)%nat -> c * top_scale ^ J <= top_scale ^ J' ->
  rho * (c * lost n J) + eta <= lost n' J'.
Proof.
intros Hn Hk HJ Hc HE Ht; unfold lost.
pose proof (L5 rho_pow_mono (n - 1 + J + 1) (n' - 1 + J') Hk) as R1.
pose proof (L5 rho_pow_ge1 (n - 1 + J)) as R2; pose proof (L5 rho_ge1) as R3.
apply le_INR in HE; rewrite plus_INR in HE; simpl (INR 1) in HE.
pose proof (pos_INR (n * (kl + J + 1) - 1)) as E0; pose proof (scale_ge1 J); pose proof (scale_ge1 J') as S1.
set (E := INR (n * (kl + J + 1) - 1)) in *; set (E' := INR (n' * (kl + J' + 1) - 1)) in *.
rewrite pow_add, pow_1 in R1; set (p := rho ^ (n - 1 + J)) in *; set (p' := rho ^ (n' - 1 + J')) in *.
assert (P' : 1 <= p') by (unfold p'; apply (L5 rho_pow_ge1)).
assert (X1 : rho * (c * (E * p * top_scale ^ J * eta)) <= E * p' * top_scale ^ J' * eta).
{ replace (rho * (c * (E * p * top_scale ^ J * eta))) with (E * ((p * rho) * (c * top_scale ^ J)) * eta) by ring.
  replace (E * p' * top_scale ^ J' * eta) with (E * (p' * top_scale ^ J') * eta) by ring.
  apply Rmult_le_compat_r; [lra|]; apply Rmult_le_compat_l; [lra|].
  apply Rmult_le_compat; try lra; apply Rmult_le_pos; lra. }
assert (X2 : 1 * eta <= p' * top_scale ^ J' * eta).
{ apply Rmult_le_compat_r; [lra|]; assert (1 * 1 <= p' * top_scale ^ J') by (apply Rmult_le_compat; lra); lra. }
assert (X3 : (E + 1) * (p' * top_scale ^ J' * eta) <= E' * (p' * top_scale ^ J' * eta)) by (apply Rmult_le_compat_r; lra).
lra.
Qed.

(* both sums' events, and one more *)
Lemma lost_add n1 J1 n2 J2 : (1 <= n1)%nat -> (1 <= n2)%nat ->
  rho * (lost n1 J1 + lost n2 J2) + eta <= lost (n1 + n2) (Nat.max J1 J2).
Proof.
intros L1 L2.
set (n := (n1 + n2)%nat); set (J := Nat.max J1 J2).
assert (T1 : top_scale ^ J1 <= top_scale ^ J) by (apply Rle_pow; [exact top_ge1 | unfold J; lia]).
assert (T2 : top_scale ^ J2 <= top_scale ^ J) by (apply Rle_pow; [exact top_ge1 | unfold J; lia]).
pose proof (scale_ge1 J1); pose proof (scale_ge1 J2); pose proof (scale_ge1 J).
set (q := rho ^ (n - 2 + J)); assert (Q1 : 1 <= q) by apply (L5 rho_pow_ge1).
assert (R1 : rho ^ (n1 - 1 + J1) <= q) by (apply (L5 rho_pow_mono); unfold n, J; lia).
assert (R2 : rho ^ (n2 - 1 + J2) <= q) by (apply (L5 rho_pow_mono); unfold n, J; lia).
pose proof (L5 rho_pow_ge1 (n1 - 1 + J1)); pose proof (L5 rho_pow_ge1 (n2 - 1 + J2)).
set (e1 := INR (n1 * (kl + J1 + 1) - 1)); set (e2 := INR (n2 * (kl + J2 + 1) - 1)).
assert (EE : e1 + e2 + 1 <= INR (n * (kl + J + 1) - 1)).
{ unfold e1, e2; change 1 with (INR 1); rewrite <- !plus_INR; apply le_INR; unfold n, J; nia. }
pose proof (pos_INR (n1 * (kl + J1 + 1) - 1)) as P1; fold e1 in P1.
pose proof (pos_INR (n2 * (kl + J2 + 1) - 1)) as P2; fold e2 in P2.
pose proof (L5 rho_ge1) as R0; set (s := top_scale ^ J) in *.
assert (Q2 : rho ^ (n - 1 + J) = rho * q).
{ unfold q; replace (n - 1 + J)%nat with (Datatypes.S (n - 2 + J)) by (unfold n; lia); reflexivity. }
unfold lost; fold n J e1 e2 s; rewrite Q2.
assert (Y1 : e1 * rho ^ (n1 - 1 + J1) * top_scale ^ J1 * eta <= e1 * q * s * eta).
{ apply Rmult_le_compat_r; [lra|]; apply Rmult_le_compat; try lra; [apply Rmult_le_pos; lra | apply Rmult_le_compat_l; lra]. }
assert (Y2 : e2 * rho ^ (n2 - 1 + J2) * top_scale ^ J2 * eta <= e2 * q * s * eta).
{ apply Rmult_le_compat_r; [lra|]; apply Rmult_le_compat; try lra; [apply Rmult_le_pos; lra | apply Rmult_le_compat_l; lra]. }
assert (Y3 : 1 * eta <= rho * q * s * eta).
{ apply Rmult_le_compat_r; [lra|]; assert (1 * 1 <= rho * q) by (apply Rmult_le_compat; lra).
  assert (1 * 1 <= rho * q * s) by (apply Rmult_le_compat; lra). lra. }
assert (Y4 : rho * (e1 * rho ^ (n1 - 1 + J1) * top_scale ^ J1 * eta + e2 * rho ^ (n2 - 1 + J2) * top_scale ^ J2 * eta)
   <= rho * (e1 * q * s * eta + e2 * q * s * eta)) by (apply Rmult_le_compat_l; lra).
assert (X0 : 0 <= rho * q * s * eta) by lra.
assert (Y5 : (e1 + e2 + 1) * (rho * q * s * eta) <= INR (n * (kl + J + 1) - 1) * (rho * q * s * eta)) by (apply Rmult_le_compat_r; lra).
lra.
Qed.

Lemma acc_weights l J y : acc leaf l J y -> forall p, In p l -> 0 <= snd p.
Proof.
induction 1 as [j w y W Lf | l J c y y' Hc A IH R | l1 l2 J1 J2 y1 y2 y A1 IH1 A2 IH2 N]; intros p Hp.
- destruct Hp as [<-|[]]; exact W.
- apply in_map_iff in Hp; destruct Hp as (q & <- & Hq); simpl; apply Rmult_le_pos; [lra | now apply IH].
- apply in_app_or in Hp; destruct Hp; auto.
Qed.
Lemma majorant_ge0 l : (forall p, In p l -> 0 <= snd p) -> 0 <= psum majorant l.
Proof.
induction l as [|p l IH]; intros H; simpl; [lra|].
assert (0 <= majorant p) by (unfold majorant; apply Rmult_le_pos; [apply H; now left | apply Rabs_pos]).
assert (0 <= psum majorant l) by (apply IH; intros q Hq; apply H; now right). lra.
Qed.
Theorem rescaled_sum_error l J y : acc leaf l J y ->
  er (psum value l) (psum majorant l) (rho ^ (length l - 1 + J + kl) * psum majorant l) (lost (length l) J) y.
Proof.
induction 1 as [j w y W Lf | l J c y y' Hc A IH R | l1 l2 J1 J2 y1 y2 y A1 IH1 A2 IH2 N].
- eapply (E8 er_weak); [|apply Rle_refl|].
  + pose proof (leaf_spec j w y W Lf) as X; simpl; unfold value, majorant; simpl; rewrite !Rplus_0_r; exact X.
  + unfold lost; simpl; rewrite !Rmult_1_r, !Nat.add_0_r; apply Rmult_le_compat_r; [exact eta_ge0 | apply le_INR; lia].
- pose proof (acc_length _ _ _ _ A) as L1.
  apply (E8 er_scale c) in IH; apply (E8 er_rf) with (z := y') in IH; [|exact R].
  rewrite (Rabs_pos_eq c) in IH by lra; rewrite map_length, !psum_map.
  rewrite (psum_ext (fun p => value (rescale c p)) (fun p => c * value p)) by (intros [j w]; unfold value, rescale; simpl; ring).
  rewrite (psum_ext (fun p => majorant (rescale c p)) (fun p => c * majorant p)) by (intros [j w]; unfold majorant, rescale; simpl; ring).
  rewrite !psum_scal; eapply (E8 er_weak); [exact IH | |].
  + right; replace (length l - 1 + Datatypes.S J + kl)%nat with (Datatypes.S (length l - 1 + J + kl)) by lia; simpl; ring.
  + apply lost_step; [exact L1 | lia | lia | lra | nia |].
    simpl; apply Rmult_le_compat_r; [pose proof (scale_ge1 J); lra | lra].
- pose proof (acc_length _ _ _ _ A1) as L1; pose proof (acc_length _ _ _ _ A2) as L2.
  pose proof (majorant_ge0 l1 (acc_weights _ _ _ A1)) as M1; pose proof (majorant_ge0 l2 (acc_weights _ _ _ A2)) as M2.
  rewrite !psum_app, app_length.
  set (k := (length l1 + length l2 - 2 + Nat.max J1 J2 + kl)%nat).
  assert (W1 : er (psum value l1) (psum majorant l1) (rho ^ k * psum majorant l1) (lost (length l1) J1) y1).
  { eapply (E8 er_weak); [exact IH1 | | lra]; apply Rmult_le_compat_r; [exact M1 | apply (L5 rho_pow_mono); unfold k; lia]. }
  assert (W2 : er (psum value l2) (psum majorant l2) (rho ^ k * psum majorant l2) (lost (length l2) J2) y2).
  { eapply (E8 er_weak); [exact IH2 | | lra]; apply Rmult_le_compat_r; [exact M2 | apply (L5 rho_pow_mono); unfold k; lia]. }
  assert (W : er (psum value l1 + psum value l2) (psum majorant l1 + psum majorant l2)
     (rho ^ k * (psum majorant l1 + psum majorant l2)) (lost (length l1) J1 + lost (length l2) J2) (y1 + y2)).
  { destruct W1 as (Q1 & Q2 & Q3 & Q4); destruct W2 as (S1 & S2 & S3 & S4); unfold er; repeat split; try lra.
    - eapply Rle_trans; [apply Rabs_triang | lra].
    - replace (y1 + y2 - (psum value l1 + psum value l2)) with ((y1 - psum value l1) + (y2 - psum value l2)) by ring.
      eapply Rle_trans; [apply Rabs_triang | lra]. }
  apply (E8 er_near) with (z := y) in W; [|exact N].
  eapply (E8 er_weak); [exact W | |].
  + right; replace (length l1 + length l2 - 1 + Nat.max J1 J2 + kl)%nat with (Datatypes.S k) by (unfold k; lia); simpl; ring.
  + now apply lost_add.
Qed.

(* not below (1 - u)^k of the sum either, when every value is 1 *)
Theorem rescaled_sum_low l J y : (forall j w y, 0 <= w -> leaf j w y -> y = w) -> kl = O -> acc leaf l J y ->
  0 <= psum snd l /\ (1 - u) ^ (length l - 1 + J) * psum snd l - lost (length l) J <= y.
Proof.
intros Hl Hk A.
assert (P0 : 0 <= psum snd l).
{ pose proof (acc_weights _ _ _ A) as W; clear A; induction l as [|p l IH]; simpl; [lra|].
  pose proof (W p (or_introl eq_refl)); assert (0 <= psum snd l) by (apply IH; intros q Hq; apply W; now right). lra. }
split; [exact P0|].
induction A as [j w y W Lf | l J c y y' Hc A IH R | l1 l2 J1 J2 y1 y2 y A1 IH1 A2 IH2 N].
- rewrite (Hl j w y W Lf); simpl; pose proof (lost_ge0 1 0); lra.
- pose proof (acc_length _ _ _ _ A) as L1; pose proof (acc_weights _ _ _ A) as W.
  assert (S0 : 0 <= psum snd l).
  { clear - W; induction l as [|p l IH]; simpl; [lra|]; pose proof (W p (or_introl eq_refl)).
    assert (0 <= psum snd l) by (apply IH; intros q Hq; apply W; now right). lra. }
  specialize (IH S0); rewrite map_length, psum_map in *.
  rewrite (psum_ext (fun p => snd (rescale c p)) (fun p => c * snd p)) in * by (intros [j w]; reflexivity).
  rewrite psum_scal in *; set (s := psum snd l) in *.
  replace (length l - 1 + Datatypes.S J)%nat with (Datatypes.S (length l - 1 + J)) by lia.
  set (q := (1 - u) ^ (length l - 1 + J)) in *; change ((1 - u) ^ Datatypes.S (length l - 1 + J)) with ((1 - u) * q).
  destruct (low_1 u eta u_ge0 u_lt1 eta_ge0 (length l - 1 + J)) as (Q0 & Q1); fold q in Q0, Q1.
  pose proof (lost_step (length l) J (length l) (Datatypes.S J) c L1 ltac:(lia) ltac:(lia) (proj1 Hc) ltac:(nia)) as LS.
  assert (LS' : rho * (c * lost (length l) J) + eta <= lost (length l) (Datatypes.S J)).
  { apply LS; simpl; apply Rmult_le_compat_r; [pose proof (scale_ge1 J); lra | lra]. }
  set (h := lost (length l) J) in *; pose proof (lost_ge0 (length l) J) as H0; fold h in H0.
  assert (B : c * (q * s - h) <= c * y) by (apply Rmult_le_compat_l; lra).
  assert (CH : 0 <= c * h) by (apply Rmult_le_pos; lra).
  assert (CQ : 0 <= c * (q * s)) by (apply Rmult_le_pos; [lra | apply Rmult_le_pos; lra]).
  assert (UC : 0 <= u * (c * (q * s))) by (apply Rmult_le_pos; lra).
  assert (RH : (1 + u) * (c * h) <= rho * (c * h)) by (apply Rmult_le_compat_r; [lra | apply (L5 rho_ge)]).
  assert (UH : 0 <= u * (c * h)) by (apply Rmult_le_pos; lra).
  assert (NR : Rabs (y' - c * y) <= u * Rabs (c * y) + eta).
  { exact (rf_error u eta u_ge0 u_lt1 eta_ge0 0 (Rle_refl 0) _ _ R). }
  apply Rabs_between in NR.
  destruct (Rle_or_lt 0 (c * y)) as [X|X].
  + rewrite (Rabs_pos_eq (c * y)) in NR by exact X.
    assert ((1 - u) * (c * (q * s - h)) <= (1 - u) * (c * y)) by (apply Rmult_le_compat_l; lra). lra.
  + rewrite (Rabs_left (c * y)) in NR by exact X.
    assert ((1 + u) * (c * (q * s - h)) <= (1 + u) * (c * y)) by (apply Rmult_le_compat_l; lra). lra.
- pose proof (acc_length _ _ _ _ A1) as L1; pose proof (acc_length _ _ _ _ A2) as L2.
  pose proof (acc_weights _ _ _ A1) as W1; pose proof (acc_weights _ _ _ A2) as W2.
  assert (SG : forall l, (forall p, In p l -> 0 <= snd p) -> 0 <= psum snd l).
  { clear; induction l as [|p l IH]; intros W; simpl; [lra|]; pose proof (W p (or_introl eq_refl)).
    assert (0 <= psum snd l) by (apply IH; intros q Hq; apply W; now right). lra. }
  pose proof (SG l1 W1) as S1; pose proof (SG l2 W2) as S2.
  specialize (IH1 S1); specialize (IH2 S2).
  rewrite psum_app, app_length in *.
  set (s1 := psum snd l1) in *; set (s2 := psum snd l2) in *; set (J := Nat.max J1 J2).
  set (m := (length l1 + length l2 - 2 + J)%nat).
  replace (length l1 + length l2 - 1 + J)%nat with (Datatypes.S m) by (unfold m; lia).
  change ((1 - u) ^ Datatypes.S m) with ((1 - u) * (1 - u) ^ m).
  pose proof (low_mono u eta u_ge0 u_lt1 eta_ge0 (length l1 - 1 + J1) m ltac:(unfold m, J; lia)) as M1.
  pose proof (low_mono u eta u_ge0 u_lt1 eta_ge0 (length l2 - 1 + J2) m ltac:(unfold m, J; lia)) as M2.
  destruct (low_1 u eta u_ge0 u_lt1 eta_ge0 m) as (Q0 & Q1).
  set (q := (1 - u) ^ m) in *.
  assert (A1' : q * s1 <= (1 - u) ^ (length l1 - 1 + J1) * s1) by (apply Rmult_le_compat_r; lra).
  assert (A2' : q * s2 <= (1 - u) ^ (length l2 - 1 + J2) * s2) by (apply Rmult_le_compat_r; lra).
  pose proof (lost_add (length l1) J1 (length l2) J2 L1 L2) as LA; fold J in LA.
  pose proof (lost_ge0 (length l1) J1) as G1; pose proof (lost_ge0 (length l2) J2) as G2.
  set (h1 := lost (length l1) J1) in *; set (h2 := lost (length l2) J2) in *.
  assert (LO : q * (s1 + s2) - (h1 + h2) <= y1 + y2) by lra.
  unfold near in N; apply Rabs_between in N; pose proof (L5 rho_ge) as G.
  assert (RH : (1 + u) * (h1 + h2) <= rho * (h1 + h2)) by (apply Rmult_le_compat_r; lra).
  assert (UH : 0 <= u * (h1 + h2)) by (apply Rmult_le_pos; lra).
  assert (QS : 0 <= q * (s1 + s2)) by (apply Rmult_le_pos; lra).
  assert (UQ : 0 <= u * (q * (s1 + s2))) by (apply Rmult_le_pos; lra).
  destruct (Rle_or_lt 0 (y1 + y2)) as [X|X].
  + rewrite (Rabs_pos_eq (y1 + y2)) in N by exact X.
    assert ((1 - u) * (q * (s1 + s2) - (h1 + h2)) <= (1 - u) * (y1 + y2)) by (apply Rmult_le_compat_l; lra). lra.
  + rewrite (Rabs_left (y1 + y2)) in N by exact X.
    assert ((1 + u) * (q * (s1 + s2) - (h1 + h2)) <= (1 + u) * (y1 + y2)) by (apply Rmult_le_compat_l; lra). lra.
Qed.
End Sums.
