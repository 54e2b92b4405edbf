(* Softmax attention with a running maximum: sums are rescaled whenever it grows, and partial
   sums may be merged, in any order.  J: how often a sum is rescaled at most.

   Main results
     weight_error            a weight in use, a product of at most J + 1 computed exponentials, is within
                             2 (J + 1) tiny of one with relative error xi only
     rescaled_sum_error      a sum of L terms with J rescalings: L + J roundings a term
     attention_online_quotient   |computed - mean with the weights in use| <= quotient_error
     two_pass_is_online      sums without rescaling are the case J = 0
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

(** * One query *)
Section Online.
Set Default Proof Using "All".
Variables u eta eps tiny : R.
Hypothesis u_ge0 : 0 <= u.
Hypothesis u_lt1 : u < 1.
Hypothesis eta_ge0 : 0 <= eta.
Hypothesis eps_spec : 0 <= eps < 1.
Hypothesis eta_tiny : eta <= tiny.
Local Notation L5 x := (x u eta u_ge0 u_lt1 eta_ge0) (only parsing).
Local Notation E8 x := (x u eta u_ge0 u_lt1 eta_ge0 1 Rlt_0_1 (fun _ => 0)) (only parsing).
Local Notation rho := (rho u).
Local Notation gamma := (gamma u).
Lemma tiny_ge0 : 0 <= tiny. Proof. lra. Qed.
Variables (L J : nat) (z zh ez : nat -> R) (top ez_max mh : R).
Hypothesis L_pos : (1 <= L)%nat.
Hypothesis zh_spec : forall j, (j < L)%nat -> Rabs (zh j - z j) <= ez j <= ez_max.
Hypothesis top_spec : forall j, (j < L)%nat -> z j <= top.
Hypothesis mh_spec : (forall j, (j < L)%nat -> zh j <= mh) /\ exists j, (j < L)%nat /\ zh j = mh.
Hypothesis K_small : INR (L + J + 1) * u <= 1 / 16.
Hypothesis tiny_small : 80 * INR L * INR (Datatypes.S J) * tiny <= 1.
Hypothesis exp_small : INR (Datatypes.S J) * (eta + eps / (1 - eps) + tiny) <= 1 / 2.
Local Notation beta := (eta + eps / (1 - eps)).
Local Notation T11 th := (th u eta eps tiny u_ge0 u_lt1 eta_ge0 eps_spec tiny_ge0 L z zh ez top ez_max mh zh_spec top_spec mh_spec) (only parsing).

(* weights as they are used: a product of computed exponentials, from a key's logit to the maximum *)
Inductive weight : nat -> R -> R -> R -> R -> Prop :=
| weight_one a b x p : near u eta (a - b) x -> exp_hat eps tiny x p -> 0 <= p -> a <= b ->
    weight 1 a b p (clamped eps x p)
| weight_more n a b c p t x s : weight n a b p t -> near u eta (b - c) x -> exp_hat eps tiny x s -> 0 <= s -> b <= c ->
    weight (Datatypes.S n) a c (p * s) (t * clamped eps x s).
Definition scale_max := exp beta + tiny.
Lemma beta_ge0 : 0 <= beta.
Proof.
assert (0 <= eps / (1 - eps)); [|lra].
unfold Rdiv; apply Rmult_le_pos; [lra | left; apply Rinv_0_lt_compat; lra].
Qed.
Lemma scale_max_ge1 : 1 <= scale_max.
Proof. unfold scale_max; pose proof beta_ge0; pose proof (exp_ineq1_le beta); lra. Qed.
Lemma exp_pow x n : exp x ^ n = exp (INR n * x).
Proof.
induction n as [|n IH]; [simpl; rewrite Rmult_0_l, exp_0; reflexivity|].
rewrite S_INR; simpl; rewrite IH, <- exp_plus; f_equal; ring.
Qed.
Lemma scale_max_pow n : (n <= Datatypes.S J)%nat -> scale_max ^ n <= 2.
Proof.
intros Hn; pose proof beta_ge0 as B0; pose proof scale_max_ge1.
assert (S : scale_max <= exp (beta + tiny)).
{ unfold scale_max; assert (EP : exp (beta + tiny) = exp beta * exp tiny) by apply exp_plus; rewrite EP; pose proof (exp_ineq1_le tiny); pose proof (exp_ineq1_le beta).
  assert (exp beta * (1 + tiny) <= exp beta * exp tiny) by (apply Rmult_le_compat_l; [left; apply exp_pos | lra]).
  assert (1 * tiny <= exp beta * tiny) by (apply Rmult_le_compat_r; lra). lra. }
eapply Rle_trans; [apply pow_incr; split; [lra | exact S]|]; rewrite exp_pow.
eapply Rle_trans; [|exact (exp_half u eta eps tiny u_ge0 u_lt1 eta_ge0 eps_spec tiny_ge0 L z zh ez top ez_max mh zh_spec top_spec mh_spec)].
apply (exp_mono u eta eps tiny u_ge0 u_lt1 eta_ge0 eps_spec tiny_ge0).
apply le_INR in Hn; assert (INR n * (beta + tiny) <= INR (Datatypes.S J) * (beta + tiny)) by (apply Rmult_le_compat_r; lra). lra.
Qed.
Lemma clamped_spec a b x s : near u eta (a - b) x -> exp_hat eps tiny x s -> a <= b ->
  0 < clamped eps x s <= exp beta /\ Rabs (s - clamped eps x s) <= tiny.
Proof.
intros N E AB; destruct (exp_relative u eta eps tiny u_ge0 u_lt1 eta_ge0 eps_spec tiny_ge0 x s E) as (Et & K1 & K2).
pose proof (exp_pos x) as XP; pose proof (exp_pos (- (eps / (1 - eps)))).
unfold near in N; apply Rabs_between in N; rewrite (Rabs_left1 (a - b)) in N by lra.
assert (0 <= (1 - u) * (b - a)) by (apply Rmult_le_pos; lra).
split; [|exact Et]; split.
- assert (0 < clamped eps x s / exp x) by lra; replace (clamped eps x s) with (clamped eps x s / exp x * exp x) by (field; lra).
  apply Rmult_lt_0_compat; lra.
- replace (clamped eps x s) with (clamped eps x s / exp x * exp x) by (field; lra).
  apply Rle_trans with (exp (eps / (1 - eps)) * exp x); [apply Rmult_le_compat_r; lra|].
  rewrite <- exp_plus; apply (exp_mono u eta eps tiny u_ge0 u_lt1 eta_ge0 eps_spec tiny_ge0); lra.
Qed.
Lemma weight_telescope n a b p t : weight n a b p t -> telescope u eta eps n a b t.
Proof.
induction 1 as [a b x p N E P AB | n a b c p t x s W IH N E S BC].
- destruct (exp_relative u eta eps tiny u_ge0 u_lt1 eta_ge0 eps_spec tiny_ge0 x p E) as (_ & K).
  apply (tele_one _ _ _ a b x _ (clamped eps x p / exp x)); [exact N | field; pose proof (exp_pos x); lra | exact K | exact AB].
- destruct (exp_relative u eta eps tiny u_ge0 u_lt1 eta_ge0 eps_spec tiny_ge0 x s E) as (_ & K).
  apply (tele_more _ _ _ n a b c x t (clamped eps x s / exp x)); [exact IH | exact N | | exact K | exact BC].
  f_equal; field; pose proof (exp_pos x); lra.
Qed.
Lemma weight_range n a b p t : weight n a b p t -> 0 <= p /\ 0 < t <= scale_max ^ n /\ Rabs (p - t) <= INR n * tiny * scale_max ^ n.
Proof.
pose proof scale_max_ge1 as S1; pose proof tiny_ge0 as T0.
induction 1 as [a b x p N E P AB | n a b c p t x s W IH N E S BC].
- destruct (clamped_spec a b x p N E AB) as ((C1 & C2) & C3); unfold scale_max in *.
  split; [exact P|]; rewrite pow_1; split; [lra|]; simpl INR.
  assert (tiny * 1 <= tiny * (exp beta + tiny)) by (apply Rmult_le_compat_l; lra). lra.
- destruct IH as (P0 & (I1 & I2) & I3); destruct (clamped_spec b c x s N E BC) as ((C1 & C2) & C3).
  assert (CS : clamped eps x s <= scale_max) by (unfold scale_max; lra).
  assert (SS : s <= scale_max) by (unfold scale_max; apply Rabs_between in C3; lra).
  pose proof (pow_R1_Rle scale_max n S1) as PN; pose proof (pos_INR n).
  split; [apply Rmult_le_pos; lra|]; cbn [pow]; split; [split|].
  + apply Rmult_lt_0_compat; lra.
  + rewrite (Rmult_comm scale_max); apply Rmult_le_compat; lra.
  + replace (p * s - t * clamped eps x s) with ((p - t) * s + t * (s - clamped eps x s)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]; rewrite !Rabs_mult, (Rabs_pos_eq s), (Rabs_pos_eq t) by lra; rewrite S_INR.
    assert (A1 : Rabs (p - t) * s <= INR n * tiny * scale_max ^ n * scale_max) by (apply Rmult_le_compat; try lra; apply Rabs_pos).
    assert (A2 : t * Rabs (s - clamped eps x s) <= scale_max ^ n * tiny) by (apply Rmult_le_compat; try lra; apply Rabs_pos).
    assert (A3 : scale_max ^ n * tiny * 1 <= scale_max ^ n * tiny * scale_max) by (apply Rmult_le_compat_l; [apply Rmult_le_pos; lra | lra]).
    lra.
Qed.

(* the weights of all keys *)
Variables (wn : nat -> nat) (P t : nat -> R).
Hypothesis P_spec : forall j, (j < L)%nat -> (wn j <= Datatypes.S J)%nat /\ weight (wn j) (zh j) mh (P j) (t j).
Definition tau := 2 * INR (Datatypes.S J) * tiny.
Theorem weight_error j : (j < L)%nat -> 0 <= P j /\ 0 < t j <= 2 /\ Rabs (P j - t j) <= tau.
Proof.
intros Hj; destruct (P_spec j Hj) as (Hn & W); destruct (weight_range _ _ _ _ _ W) as (P0 & (T1 & T2) & PT).
pose proof (scale_max_pow (wn j) Hn); pose proof tiny_ge0 as T0; apply le_INR in Hn; pose proof (pos_INR (wn j)).
split; [exact P0|]; split; [lra|]; unfold tau.
assert (INR (wn j) * tiny <= INR (Datatypes.S J) * tiny) by (apply Rmult_le_compat_r; lra).
assert (0 <= INR (wn j) * tiny) by (apply Rmult_le_pos; lra).
pose proof (pow_R1_Rle scale_max (wn j) scale_max_ge1).
assert (INR (wn j) * tiny * scale_max ^ wn j <= INR (Datatypes.S J) * tiny * 2) by (apply Rmult_le_compat; lra). lra.
Qed.
Local Notation w := (wz z top).
Local Notation xi := (xi_of u eta eps z ez top ez_max J).
Definition kap j := t j * exp (mh - z j).
Lemma t_kap j : (j < L)%nat -> t j = lambda top mh * (w j * kap j) /\ exp (- xi j) <= kap j <= exp (xi j).
Proof.
intros Hj; destruct (P_spec j Hj) as (Hn & W).
exact (T11 weights_online J (wn j) j (t j) Hj Hn (weight_telescope _ _ _ _ _ W)).
Qed.
Lemma w_pos j : (j < L)%nat -> 0 < w j. Proof. intros _; apply exp_pos. Qed.
Local Notation Sw := (S L w kap).
Lemma C_S : weighted_mean.C L t = lambda top mh * Sw.
Proof. unfold weighted_mean.C, S; rewrite <- sumn_scal; apply sumn_ext; intros j Hj; apply (t_kap j Hj). Qed.
Lemma C_range : 1 / 2 <= weighted_mean.C L t <= 2 * INR L.
Proof.
split.
- destruct mh_spec as (_ & i & Hi & Ez); destruct (P_spec i Hi) as (Hn & W).
  assert (TI : 1 / 2 <= t i).
  { destruct (T11 telescope_spec _ _ _ _ (weight_telescope _ _ _ _ _ W)) as (_ & _ & Y1 & _).
    rewrite Ez in Y1; replace (mh - mh) with 0 in Y1 by ring; rewrite exp_0, Rmult_1_r in Y1.
    eapply Rle_trans; [|exact Y1]; eapply Rle_trans; [|apply exp_ineq1_le].
    apply le_INR in Hn; pose proof beta_ge0; pose proof tiny_ge0; pose proof (pos_INR (Datatypes.S J)); unfold exp_log.
    assert (INR (wn i) * beta <= INR (Datatypes.S J) * beta) by (apply Rmult_le_compat_r; lra).
    assert (0 <= INR (Datatypes.S J) * tiny) by (apply Rmult_le_pos; lra). lra. }
  eapply Rle_trans; [exact TI|]; unfold weighted_mean.C.
  assert (G : forall m, (i < m <= L)%nat -> t i <= sumn t m).
  { induction m as [|m IH]; intros Hm; [lia|]; cbn [sumn].
    destruct (Nat.eq_dec i m) as [->|E].
    - assert (0 <= sumn t m) by (apply sumn_ge0; intros k Hk; destruct (weight_error k ltac:(lia)) as (_ & (X & _) & _); lra); lra.
    - pose proof (IH ltac:(lia)); destruct (weight_error m ltac:(lia)) as (_ & (X & _) & _); lra. }
  apply G; lia.
- unfold weighted_mean.C; rewrite Rmult_comm, <- (sumn_const 2); apply sumn_le; intros j Hj; apply (weight_error j Hj).
Qed.
Lemma share j : (j < L)%nat -> t j / weighted_mean.C L t = w j * kap j / Sw.
Proof.
intros Hj; rewrite C_S; destruct (t_kap j Hj) as (E & _); rewrite E at 1.
pose proof (S_pos L w kap xi L_pos w_pos (fun j Hj => proj2 (t_kap j Hj))); pose proof (exp_pos (top - mh)); unfold lambda.
field; split; lra.
Qed.
Lemma share_spec j : (j < L)%nat -> 0 < t j / weighted_mean.C L t <= largest L w xi j.
Proof. intros Hj; rewrite share by exact Hj; exact (weights_largest L w kap xi L_pos w_pos (fun j Hj => proj2 (t_kap j Hj)) j Hj). Qed.

Variables (v vh ev : nat -> R) (mx : R).
Hypothesis vh_spec : forall j, (j < L)%nat -> Rabs (vh j - v j) <= ev j.
Definition o := average L w v.
Hypothesis mx_spec : forall j, (j < L)%nat -> Rabs (v j - o) <= mx.
Definition dev := Rmin (sumn (fun j => change L w xi j * Rabs (v j - o)) L) mx.
Definition inherited := sumn (fun j => largest L w xi j * ev j) L.
Definition numerator_size := sumn (fun j => largest L w xi j * (Rabs (v j) + ev j)) L.
Lemma vh_V j : (j < L)%nat -> Rabs (vh j) <= Rabs (v j) + ev j.
Proof.
intros Hj; replace (vh j) with (v j + (vh j - v j)) by ring; eapply Rle_trans; [apply Rabs_triang|].
pose proof (vh_spec j Hj); lra.
Qed.

Local Notation ot := (weighted_mean.ot L t vh).
Lemma ot_o : Rabs (ot - o) <= dev + inherited.
Proof.
pose proof C_range as (C1 & C2).
assert (E : ot = sumn (fun j => w j * kap j * v j) L / Sw + sumn (fun j => t j / weighted_mean.C L t * (vh j - v j)) L).
  { unfold weighted_mean.ot, Rdiv; rewrite (Rmult_comm _ (/ weighted_mean.C L t)), (Rmult_comm _ (/ Sw)), <- !sumn_scal, <- sumn_plus.
    apply sumn_ext; intros j Hj; pose proof (share j Hj) as Sh; unfold Rdiv in Sh.
    replace (/ Sw * (w j * kap j * v j)) with (w j * kap j * / Sw * v j) by ring; rewrite <- Sh; ring. }
  rewrite E; replace (sumn (fun j => w j * kap j * v j) L / Sw + sumn (fun j => t j / weighted_mean.C L t * (vh j - v j)) L - o)
    with ((sumn (fun j => w j * kap j * v j) L / Sw - o) + sumn (fun j => t j / weighted_mean.C L t * (vh j - v j)) L) by ring.
  eapply Rle_trans; [apply Rabs_triang|]; apply Rplus_le_compat.
  - unfold dev; apply Rmin_glb.
    + exact (weights_deviation L w kap xi L_pos w_pos (fun j Hj => proj2 (t_kap j Hj)) v).
    + exact (weights_deviation_max L w kap xi L_pos w_pos (fun j Hj => proj2 (t_kap j Hj)) v mx mx_spec).
  - eapply Rle_trans; [apply sumn_abs|]; apply sumn_le; intros j Hj; rewrite Rabs_mult.
    destruct (share_spec j Hj) as (S1 & S2); rewrite (Rabs_pos_eq (t j / weighted_mean.C L t)) by lra.
    apply Rmult_le_compat; try apply Rabs_pos; try lra; now apply vh_spec.
Qed.

Variable V : R.
Hypothesis V_spec : forall j, (j < L)%nat -> Rabs (v j) + ev j <= V.
Definition quotient_error := (1 + gamma (L + J + 1)) * (gamma (L + J) * numerator_size)
  + gamma (L + J + 1) * (Rabs o + dev + inherited) + 64 * INR L * INR (Datatypes.S J) * tiny * (1 + V).
(* numerator and denominator: the same weights, each key once, any order *)
Definition keys := map (fun j => (j, P j)) (seq 0 L).
Definition numerator_leaf j wj y := rounded_or_fused u eta (wj * vh j) y.
Definition denominator_leaf (j : nat) (wj y : R) := y = wj.
Variables (lN lD : list (nat * R)) (JN JD : nat) (Nh Dh y : R).
Hypothesis N_spec : acc u eta scale_max numerator_leaf lN JN Nh /\ Permutation lN keys /\ (JN <= J)%nat.
Hypothesis D_spec : acc u eta scale_max denominator_leaf lD JD Dh /\ Permutation lD keys /\ (JD <= J)%nat.
Hypothesis y_spec : quotient_hat u eta Nh Dh y.

Lemma keys_length l : Permutation l keys -> length l = L.
Proof. intros H; rewrite (Permutation_length H); unfold keys; rewrite map_length, seq_length; reflexivity. Qed.
Lemma lost_bound kl n : (n <= J)%nat -> (kl <= 1)%nat ->
  lost u eta scale_max kl L n <= (INR kl + INR (Datatypes.S J)) * (16 / 15) * 2 * (INR L * tiny).
Proof.
intros Hn Hk; unfold lost.
assert (SM : rho ^ (L - 1 + n) <= 16 / 15).
{ pose proof (L5 rho_pow_mono (L - 1 + n) (L + J + 1) ltac:(lia)); pose proof (L5 rho_gamma (L + J + 1) ltac:(lra)) as G.
  assert (INR (L + J + 1) * u / (1 - INR (L + J + 1) * u) <= 1 / 15); [|lra].
  apply Rmult_le_reg_r with (1 - INR (L + J + 1) * u); [lra|]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra. }
pose proof (scale_max_pow n ltac:(lia)) as S2; pose proof (pow_R1_Rle scale_max n scale_max_ge1) as S1.
pose proof (L5 rho_pow_ge1 (L - 1 + n)) as R1.
assert (E : INR (L * (kl + n + 1) - 1) <= INR L * (INR kl + INR (Datatypes.S J))).
{ rewrite <- plus_INR, <- mult_INR; apply le_INR; nia. }
pose proof (pos_INR (L * (kl + n + 1) - 1)) as E0; pose proof (pos_INR L); pose proof (pos_INR kl); pose proof (pos_INR (Datatypes.S J)).
set (q := INR L * (INR kl + INR (Datatypes.S J))) in *.
assert (A1 : rho ^ (L - 1 + n) * scale_max ^ n <= 16 / 15 * 2) by (apply Rmult_le_compat; lra).
assert (A2 : INR (L * (kl + n + 1) - 1) * (rho ^ (L - 1 + n) * scale_max ^ n) <= q * (16 / 15 * 2)).
{ apply Rmult_le_compat; try lra; apply Rmult_le_pos; lra. }
assert (A3 : INR (L * (kl + n + 1) - 1) * (rho ^ (L - 1 + n) * scale_max ^ n) * eta <= q * (16 / 15 * 2) * tiny).
{ apply Rmult_le_compat; try lra; apply Rmult_le_pos; try lra; apply Rmult_le_pos; lra. }
unfold q in A3; lra.
Qed.

Theorem attention_online_quotient : Rabs (y - ot) <= quotient_error.
Proof.
pose proof C_range as (C1 & C2); pose proof tiny_ge0 as T0.
assert (L1 : 1 <= INR L) by (apply (le_INR 1); lia).
assert (J1 : 1 <= INR (Datatypes.S J)) by (apply (le_INR 1); lia).
assert (LT : 0 <= INR L * tiny) by (apply Rmult_le_pos; lra).
assert (TT : INR L * tau = 2 * INR (Datatypes.S J) * (INR L * tiny)) by (unfold tau; ring).
assert (JT : 1 * (INR L * tiny) <= INR (Datatypes.S J) * (INR L * tiny)) by (apply Rmult_le_compat_r; lra).
destruct N_spec as (AN & PN & HN); destruct D_spec as (AD & PD & HD).
(* numerator *)
assert (LN : forall j wj y, 0 <= wj -> numerator_leaf j wj y ->
  er (wj * vh j) (wj * Rabs (vh j)) (rho ^ 1 * (wj * Rabs (vh j))) (INR 1 * eta) y).
{ intros j wj y' W Lf; pose proof (E8 er_rf _ _ _ _ _ _ (E8 er_exact (wj * vh j)) Lf) as X.
  rewrite Rabs_mult, (Rabs_pos_eq wj) in X by exact W.
  eapply (E8 er_weak); [exact X | simpl; lra | simpl; lra]. }
pose proof (rescaled_sum_error u eta u_ge0 u_lt1 eta_ge0 scale_max scale_max_ge1 numerator_leaf vh 1 LN lN JN Nh AN) as (_ & _ & _ & XN).
rewrite !(psum_perm _ _ _ PN), (keys_length lN PN) in XN; unfold keys in XN; rewrite !psum_keys in XN; unfold value, majorant in XN; simpl fst in XN; simpl snd in XN.
set (A := sumn (fun j => P j * Rabs (vh j)) L) in *.
assert (A0 : 0 <= A) by (apply sumn_ge0; intros j Hj; apply Rmult_le_pos; [apply (weight_error j Hj) | apply Rabs_pos]).
assert (BN : Rabs (Nh - sumn (fun j => P j * vh j) L) <= (rho ^ (L + J) - 1) * A + 2 * (16 / 15) * (INR L * tau)).
{ pose proof (lost_bound 1 JN HN (le_n 1)) as LB; simpl (INR 1) in LB.
  assert (rho ^ (L - 1 + JN + 1) * A <= rho ^ (L + J) * A) by (apply Rmult_le_compat_r; [exact A0 | apply (L5 rho_pow_mono); lia]).
  rewrite TT; lra. }
(* denominator *)
assert (LD : forall j wj y, 0 <= wj -> denominator_leaf j wj y ->
  er (wj * 1) (wj * Rabs 1) (rho ^ 0 * (wj * Rabs 1)) (INR 0 * eta) y).
{ intros j wj y' W Lf; unfold denominator_leaf in Lf; subst y'; rewrite Rabs_R1, Rmult_1_r; simpl; rewrite Rmult_1_l, Rmult_0_l.
  pose proof (E8 er_exact wj) as X; rewrite (Rabs_pos_eq wj) in X by exact W; exact X. }
pose proof (rescaled_sum_error u eta u_ge0 u_lt1 eta_ge0 scale_max scale_max_ge1 denominator_leaf (fun _ => 1) 0 LD lD JD Dh AD) as (_ & _ & _ & XD).
destruct (rescaled_sum_low u eta u_ge0 u_lt1 eta_ge0 scale_max scale_max_ge1 denominator_leaf (fun _ => 1) 0 LD lD JD Dh
  (fun j wj y _ Lf => Lf) eq_refl AD) as (P0 & XL).
rewrite !(psum_perm _ _ _ PD), (keys_length lD PD) in *; unfold keys in XD, XL, P0; rewrite !psum_keys in *;
  unfold value, majorant in XD; simpl fst in *; simpl snd in *.
rewrite (sumn_ext (fun j => P j * 1) P) in XD by (intros; ring).
rewrite (sumn_ext (fun j => P j * Rabs 1) P) in XD by (intros; rewrite Rabs_R1; ring).
change (sumn (fun j => P j) L) with (sumn P L) in *.
assert (BD : (1 - u) ^ (L + J - 1) * sumn P L - 16 / 15 * (INR L * tau) <= Dh <= rho ^ (L + J - 1) * sumn P L + 16 / 15 * (INR L * tau)).
{ pose proof (lost_bound 0 JD HD (Nat.le_0_l 1)) as LB; simpl (INR 0) in LB; apply Rabs_between in XD.
  assert (rho ^ (L - 1 + JD + 0) * sumn P L <= rho ^ (L + J - 1) * sumn P L) by (apply Rmult_le_compat_r; [exact P0 | apply (L5 rho_pow_mono); lia]).
  assert ((1 - u) ^ (L + J - 1) * sumn P L <= (1 - u) ^ (L - 1 + JD) * sumn P L).
  { apply Rmult_le_compat_r; [exact P0 | apply (low_mono u eta u_ge0 u_lt1 eta_ge0); lia]. }
  rewrite TT; lra. }
assert (TS : 40 * (INR L * tau) <= 1) by (rewrite TT; lra).
assert (ET : eta <= tau).
{ unfold tau; assert (1 * tiny <= INR (Datatypes.S J) * tiny) by (apply Rmult_le_compat_r; lra); lra. }
pose proof (weighted_mean_bound u eta u_ge0 u_lt1 eta_ge0 L (L + J) t P vh tau V Nh Dh y L_pos ltac:(lia) K_small
  (fun j Hj => proj1 (proj1 (proj2 (weight_error j Hj)))) (conj C1 C2)
  (fun j Hj => conj (proj1 (weight_error j Hj)) (proj2 (proj2 (weight_error j Hj))))
  (fun j Hj => Rle_trans _ _ _ (vh_V j Hj) (V_spec j Hj)) ET TS BN BD y_spec) as WM.
set (sz := weighted_mean.size L t vh) in *.
assert (I0 : 0 < / weighted_mean.C L t) by (apply Rinv_0_lt_compat; lra).
assert (SZ : sz <= numerator_size).
{ unfold sz, weighted_mean.size, numerator_size, Rdiv; rewrite Rmult_comm, <- sumn_scal; apply sumn_le; intros j Hj.
  destruct (share_spec j Hj) as (S1 & S2).
  replace (/ weighted_mean.C L t * (t j * Rabs (vh j))) with (t j / weighted_mean.C L t * Rabs (vh j)) by (unfold Rdiv; ring).
  apply Rmult_le_compat; try apply Rabs_pos; try lra; now apply vh_V. }
pose proof ot_o as OO.
assert (LU : INR (L + J) * u <= INR (L + J + 1) * u) by (apply Rmult_le_compat_r; [lra | apply le_INR; lia]).
assert (G1 : 0 <= gamma (L + J + 1)) by (apply (L5 gamma_ge0); lra).
assert (G0 : 0 <= gamma (L + J)) by (apply (L5 gamma_ge0); lra).
assert (OB : Rabs ot <= Rabs o + dev + inherited).
{ replace ot with (o + (ot - o)) by ring; eapply Rle_trans; [apply Rabs_triang | lra]. }
assert (M1 : (1 + gamma (L + J + 1)) * (gamma (L + J) * sz) <= (1 + gamma (L + J + 1)) * (gamma (L + J) * numerator_size)).
{ apply Rmult_le_compat_l; [lra|]; apply Rmult_le_compat_l; lra. }
assert (M2 : gamma (L + J + 1) * Rabs ot <= gamma (L + J + 1) * (Rabs o + dev + inherited)) by (apply Rmult_le_compat_l; lra).
unfold quotient_error; rewrite TT in WM; lra.
Qed.
Theorem attention_online_bound : Rabs (y - o) <= dev + inherited + quotient_error.
Proof.
replace (y - o) with ((y - ot) + (ot - o)) by ring; eapply Rle_trans; [apply Rabs_triang|].
pose proof ot_o; pose proof attention_online_quotient; lra.
Qed.
End Online.

(* the maximum first: one exponential a key, plain sums *)
Theorem two_pass_is_online u eta eps tiny scale_max leaf w f L y : anysum u eta f L y ->
  (forall j, (j < L)%nat -> 0 <= w j /\ leaf j (w j) (f j)) ->
  exists l, acc u eta scale_max leaf l 0 y /\ Permutation l (map (fun j => (j, w j)) (seq 0 L)) /\
  forall a b x p, near u eta (a - b) x -> exp_hat eps tiny x p -> 0 <= p -> a <= b -> weight u eta eps tiny 1 a b p (clamped eps x p).
Proof.
intros (l & Pl & Tr) H; exists (map (fun j => (j, w j)) l); split; [|split; [now apply Permutation_map|]].
2:{ intros; now apply weight_one. }
assert (HL : forall j, In j l -> 0 <= w j /\ leaf j (w j) (f j)).
{ intros j I; apply H; apply (Permutation_in _ Pl) in I; apply in_seq in I; lia. }
clear Pl H; induction Tr as [j | l1 y1 l2 y2 y T1 IH1 T2 IH2 N].
- destruct (HL j (or_introl eq_refl)); now apply acc_leaf.
- rewrite map_app; apply (acc_add u eta scale_max leaf _ _ 0 0 y1 y2 y);
    [apply IH1 | apply IH2 | exact N]; intros j I; apply HL, in_or_app; auto.
Qed.
