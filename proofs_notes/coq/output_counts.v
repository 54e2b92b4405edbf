(* How many roundings touch a term in each form of the output  y = sum_i q_i S_{t,i}, t >= 1
   steps done, D = length of the dot product with q.  [holds_out n ...]: a term of age a is
   rounded at most n a times.

   Main results
     sequential_output_count        2a + D + 3
     masked_attention_output_count  a + t + D + 2
     chunked_output_count           at most a + a/C + 2C + D + 2
     scan_output_count              a + depth + D + 3
     scan_carried_output_count      a + a/C + C + D + 3    trees of C steps, the state carried on
     any_order_output_count         a + t + D + 3                                          *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
Require Import counter_calculus recurrence_counts.
Import ListNotations.
Open Scope R_scope.

Section Output.
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
Variables (T : nat) (Gam : R).
Hypothesis Gam_spec : forall s n, (s + n <= T)%nat -> Rabs (G s n) <= Gam.
Hypothesis e_spec : eta * Gam <= e.
Local Notation L12 x := (x u eta u_ge0 u_lt1 eta_ge0 e e_ge0 g T Gam Gam_spec e_spec) (only parsing).

Variables (b v : nat -> R) (k : nat -> nat -> R) (s0 : nat -> R) (q : nat -> R) (D : nat).
Variables (kc O0 : R).
Hypothesis kc_spec : forall r i, (i < D)%nat -> Rabs (k r i) <= kc.
Hypothesis O0_spec : forall i, (i < D)%nat -> Rabs (s0 i) <= O0.
Hypothesis D_pos : (1 <= D)%nat.

Definition om r := (1 + Rabs (b r)) * (1 + kc) * (1 + Rabs (v r)).
Definition ki i r := k r i.
Lemma kc_ge0 : 0 <= kc.
Proof. eapply Rle_trans; [apply Rabs_pos | apply (kc_spec 0 0); lia]. Qed.
Lemma O0_ge0 : 0 <= O0.
Proof. eapply Rle_trans; [apply Rabs_pos | apply (O0_spec 0); lia]. Qed.
Lemma om_spec i : (i < D)%nat ->
  forall t, (1 + Rabs (b t)) * (1 + Rabs (ki i t)) * (1 + Rabs (v t)) <= om t.
Proof.
intros Hi t; pose proof (kc_spec t i Hi); pose proof kc_ge0.
pose proof (Rabs_pos (b t)); pose proof (Rabs_pos (v t)); pose proof (Rabs_pos (k t i)).
unfold om, ki; apply Rmult_le_compat_r; [lra|]; apply Rmult_le_compat_l; lra.
Qed.
Local Notation holds i := (holds u e g b (ki i) v (s0 i) om O0).
Local Notation Om := (Om om O0).
Local Notation oml := (oml om).
Lemma om1 t : 1 <= om t.
Proof.
pose proof kc_ge0; pose proof (Rabs_pos (b t)); pose proof (Rabs_pos (v t)); unfold om.
assert (1 <= (1 + Rabs (b t)) * (1 + kc)) by nra. nra.
Qed.
Lemma Om1 t : 1 <= Om t.
Proof.
unfold recurrence_counts.Om; pose proof O0_ge0.
assert (0 <= oml 0 t); [|lra].
unfold recurrence_counts.oml; apply sumn_ge0; intros; pose proof (om1 (0 + i)); lra.
Qed.

(* the output, its majorant, and the majorant with counts: the same sums over i *)
Definition out t := sumn (fun i => q i * state g (w b (ki i) v) (s0 i) t) D.
Definition awq r := sumn (fun i => Rabs (q i) * aw b (ki i) v r) D.
Definition a0q := sumn (fun i => Rabs (q i) * Rabs (s0 i)) D.
Definition Q := sumn (fun i => Rabs (q i)) D.
Local Notation Fq n t := (F g rho n awq a0q t).
Local Notation locq n s L := (loc g rho n awq s L).
Definition holds_out n m t y := cv (out t) (A g awq a0q t) (Fq n t) m ((1 + Q) * (phi t * Om t)) y.

Lemma awq_ge0 r : 0 <= awq r.
Proof. apply sumn_ge0; intros; apply Rabs_ge0_mult, Rabs_pos. Qed.
Lemma a0q_ge0 : 0 <= a0q.
Proof. apply sumn_ge0; intros; apply Rabs_ge0_mult, Rabs_pos. Qed.
Lemma Q_ge0 : 0 <= Q.
Proof. apply sumn_ge0; intros; apply Rabs_pos. Qed.
Lemma Fq_eq n t : Fq n t = sumn (fun i => Rabs (q i) * F g rho n (aw b (ki i) v) (Rabs (s0 i)) t) D.
Proof. apply (F_dot g rho n (fun i => Rabs (q i)) (fun i => aw b (ki i) v) (fun i => Rabs (s0 i)) D t). Qed.
Lemma Aq_eq t : A g awq a0q t = sumn (fun i => Rabs (q i) * A g (aw b (ki i) v) (Rabs (s0 i)) t) D.
Proof.
rewrite (A_F g rho), Fq_eq; apply sumn_ext; intros; now rewrite (A_F g rho).
Qed.
Lemma Fq_cap n t m : (t <= T)%nat -> (forall a, (a <= t)%nat -> (n a <= m)%nat) ->
  Fq n t <= (1 + Q) * (phi t * Om t) * rho ^ m.
Proof.
intros Ht H; rewrite Fq_eq.
apply Rle_trans with (Q * (phi t * Om t * rho ^ m)).
- unfold Q; rewrite Rmult_comm, <- sumn_scal; apply sumn_le; intros i I; cbv beta.
  rewrite Rmult_comm; apply Rmult_le_compat_r; [apply Rabs_pos|].
  apply (L12 F_cap b (ki i) v (s0 i) om O0 (om_spec i I) (O0_spec i I)); exact H.
- pose proof (L5 rho_pow_ge1 m); pose proof (phi_ge1 g t); pose proof (Om1 t).
  assert (0 <= phi t * Om t * rho ^ m) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; lra). lra.
Qed.

(** ** The dot product with a state *)
Theorem dot_output n m t sh y : (t <= T)%nat -> (forall i, (i < D)%nat -> holds i n m t (sh i)) ->
  dot_hat u eta q sh D y -> holds_out (fun a => (D + n a)%nat) (m + (2 * D - 1)) t y.
Proof.
intros Ht H Hd; unfold holds_out.
pose proof ((L7 dot_cv) q sh (fun i => state g (w b (ki i) v) (s0 i) t)
  (fun i => A g (aw b (ki i) v) (Rabs (s0 i)) t)
  (fun i => F g rho n (aw b (ki i) v) (Rabs (s0 i)) t) m (phi t * Om t) D y Hd) as C.
rewrite F_scale, Fq_eq, Aq_eq; apply C; [|exact H].
apply (L12 side), (L12 ge1_mul); [apply phi_ge1 | apply Om1].
Qed.

(** ** Attention over a block: carried state and writes meet in one sum over the block *)
Definition fat r d i := match i with 0%nat => b r | 1%nat => d | _ => v r end.
Definition attends r n y := exists E d, Permutation E [0; 1; 2]%nat /\ dot_hat u eta q (k r) D d /\
  pt_open u eta g (fat r d) (S r) n E y.
Definition attention s L sh y := exists f,
  (exists d, dot_hat u eta q sh D d /\ carried u eta g s L d (f L)) /\
  (forall j, (j < L)%nat -> attends (s + j) (L - 1 - j) (f j)) /\ anysum u eta f (S L) y.

Lemma w_dot r : sumn (fun i => q i * w b (ki i) v r) D = b r * (sumn (fun i => q i * k r i) D * v r).
Proof.
rewrite (sumn_ext _ (fun i => (b r * v r) * (q i * k r i))) by (intros; unfold w, ki; ring).
rewrite sumn_scal; ring.
Qed.
Lemma awq_dot r : awq r = Rabs (b r) * (sumn (fun i => Rabs (q i) * Rabs (k r i)) D * Rabs (v r)).
Proof.
unfold awq; rewrite (sumn_ext _ (fun i => (Rabs (b r) * Rabs (v r)) * (Rabs (q i) * Rabs (k r i)))).
- rewrite sumn_scal; ring.
- intros i _; unfold aw, w, ki; rewrite !Rabs_mult; ring.
Qed.
Lemma phi_le1 s t : phi t / phi s <= phi t.
Proof.
pose proof (phi_ge1 g s); pose proof (phi_ge1 g t).
assert (/ phi s <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
unfold Rdiv; assert (phi t * / phi s <= phi t * 1) by (apply Rmult_le_compat_l; lra); lra.
Qed.

Lemma attends_cv r n y : (S r + n <= T)%nat -> attends r n y ->
  cv (G (S r) n * sumn (fun i => q i * w b (ki i) v r) D) (Rabs (G (S r) n) * awq r)
     (rho ^ (n + D + 2) * (Rabs (G (S r) n) * awq r)) (n + 2 * D + 1)
     ((1 + Q) * (phi (S r + n) * om r)) y.
Proof.
intros Ht (E & d & P & Hd & Hp).
pose proof Q_ge0 as Q0; pose proof kc_ge0 as K0.
set (x := fun i => match i with 0%nat => b r | 1%nat => sumn (fun i => q i * k r i) D | _ => v r end).
set (a := fun i => match i with 0%nat => Rabs (b r)
   | 1%nat => sumn (fun i => Rabs (q i) * Rabs (k r i)) D | _ => Rabs (v r) end).
set (rr := fun i => match i with 0%nat => Rabs (b r)
   | 1%nat => rho ^ D * sumn (fun i => Rabs (q i) * Rabs (k r i)) D | _ => Rabs (v r) end).
set (kk := fun i => match i with 1%nat => (2 * D - 1)%nat | _ => 0%nat end).
set (c := fun i => match i with 0%nat => 1 + Rabs (b r) | 1%nat => (1 + Q) * (1 + kc)
   | _ => 1 + Rabs (v r) end).
pose proof (Rabs_pos (b r)); pose proof (Rabs_pos (v r)).
assert (FO : factors_ok u e (fat r d) x a rr kk c E).
{ intros i I; apply (Permutation_in _ P) in I; simpl in I; destruct I as [<-|[<-|[<-|[]]]];
    unfold x, a, rr, kk, c, fat; (split; [|try lra; nra]); try (apply (L7 exact_cv); lra).
  assert (HK : forall i, (i < D)%nat -> cv (k r i) (Rabs (k r i)) (Rabs (k r i)) 0 (1 + kc) (k r i)).
  { intros i I; apply (L7 exact_cv); pose proof (kc_spec r i I); lra. }
  apply ((L7 dot_cv) q (k r) (k r) (fun i => Rabs (k r i)) (fun i => Rabs (k r i)) 0 (1 + kc) D d Hd);
    [apply (L12 side); lra | exact HK]. }
pose proof (L12 pt_open_cv _ _ _ _ _ _ _ _ _ _ Hp Ht FO) as C.
rewrite !(lprod_perm _ _ _ P), (Permutation_length P) in C; simpl lprod in C; simpl length in C.
assert (KS : list_sum (map kk E) = (2 * D - 1)%nat).
{ rewrite (Permutation_list_sum (Permutation_map kk P)); simpl; lia. }
rewrite KS in C.
unfold x, a, rr, c in C.
rewrite w_dot, awq_dot.
replace (b r * (sumn (fun i : nat => q i * k r i) D * v r))
  with (b r * (sumn (fun i : nat => q i * k r i) D * (v r * 1))) by ring.
replace (Rabs (b r) * (sumn (fun i : nat => Rabs (q i) * Rabs (k r i)) D * Rabs (v r)))
  with (Rabs (b r) * (sumn (fun i : nat => Rabs (q i) * Rabs (k r i)) D * (Rabs (v r) * 1))) by ring.
assert (CC : phi (S r + n) / phi (S r) * ((1 + Rabs (b r)) * ((1 + Q) * (1 + kc) * ((1 + Rabs (v r)) * 1)))
   <= (1 + Q) * (phi (S r + n) * om r)).
{ pose proof (phi_le1 (S r) (S r + n)); unfold om.
  set (z := (1 + Rabs (b r)) * ((1 + Q) * (1 + kc) * ((1 + Rabs (v r)) * 1))).
  assert (0 <= z).
  { unfold z; apply Rmult_le_pos; [lra|]; apply Rmult_le_pos; [apply Rmult_le_pos|]; lra. }
  replace ((1 + Q) * (phi (S r + n) * ((1 + Rabs (b r)) * (1 + kc) * (1 + Rabs (v r)))))
    with (phi (S r + n) * z) by (unfold z; ring).
  apply Rmult_le_compat_r; assumption. }
replace (n + 3 - 1 + (2 * D - 1))%nat with (n + 2 * D + 1)%nat in C by lia.
apply (L7 weak_m) with (m' := (n + 2 * D + 1)%nat) (c' := (1 + Q) * (phi (S r + n) * om r)) in C;
  [|lia | exact CC].
replace (rho ^ (n + D + 2) * (Rabs (G (S r) n) * (Rabs (b r) *
  (sumn (fun i : nat => Rabs (q i) * Rabs (k r i)) D * (Rabs (v r) * 1)))))
  with (rho ^ (n + 3 - 1) * (Rabs (G (S r) n) * (Rabs (b r) *
  (rho ^ D * sumn (fun i : nat => Rabs (q i) * Rabs (k r i)) D * (Rabs (v r) * 1))))).
- exact C.
- replace (n + D + 2)%nat with ((n + 3 - 1) + D)%nat by lia; rewrite pow_add; ring.
Qed.

Lemma out_split s L : out (s + L) = G s L * out s
  + sumn (fun j => G (S (s + j)) (L - 1 - j) * sumn (fun i => q i * w b (ki i) v (s + j)) D) L.
Proof.
unfold out; rewrite <- (xl_sum g (fun r => sumn (fun i => q i * w b (ki i) v r) D)), xl_dot.
rewrite <- sumn_scal, <- sumn_plus; apply sumn_ext; intros i _.
change (fun r => w b (ki i) v r) with (w b (ki i) v); rewrite state_split; ring.
Qed.

Theorem attention_holds n m s L sh y n' m' : (s + L <= T)%nat ->
  (forall i, (i < D)%nat -> holds i n m s (sh i)) -> attention s L sh y ->
  (forall a, (a <= s)%nat -> (n a + D + 2 * L <= n' (a + L))%nat) ->
  (forall a, (a < L)%nat -> (a + D + L + 2 <= n' a)%nat) ->
  (m + 2 * D + 2 * L <= m')%nat -> (2 * D + 2 * L <= m')%nat ->
  (forall a, (a <= s + L)%nat -> (n' a <= m')%nat) ->
  holds_out n' m' (s + L) y.
Proof.
intros Ht H (f & (d & Hd & Cr) & Ag & Sm) Hn Hk Hm Hm1 Hm'.
pose proof Q_ge0 as Q0.
pose proof (dot_output n m s sh d ltac:(lia) H Hd) as C0; unfold holds_out in C0.
replace ((1 + Q) * (phi s * Om s)) with (phi s * ((1 + Q) * Om s)) in C0 by ring.
assert (Q1 : 1 <= (1 + Q) * Om s) by (apply (L12 ge1_mul); [lra | apply Om1]).
assert (D0 : (0 < D)%nat) by lia.
pose proof (L12 carried_cv b (ki 0) v (s0 O) om O0 (om_spec O D0) (O0_spec O D0) _ _ _ _ _ _ _ _ _ Ht Cr C0 Q1) as C1.
set (sel := fun (j : nat) (x y : R) => if Nat.eqb j L then x else y).
assert (SE : forall h z, sumn (fun j => sel j z (h j)) (S L) = z + sumn h L).
{ intros h z; cbn [sumn]; unfold sel at 2; rewrite Nat.eqb_refl, Rplus_comm; f_equal.
  apply sumn_ext; intros j J; unfold sel.
  destruct (Nat.eqb_spec j L); [lia | reflexivity]. }
set (mm := Nat.max (L + (m + (2 * D - 1))) (L + 2 * D)).
pose proof ((L7 anysum_cv) f
  (fun j => sel j (G s L * out s) (G (S (s + j)) (L - 1 - j) * sumn (fun i => q i * w b (ki i) v (s + j)) D))
  (fun j => sel j (Rabs (G s L) * A g awq a0q s) (Rabs (G (S (s + j)) (L - 1 - j)) * awq (s + j)))
  (fun j => sel j (rho ^ L * (Rabs (G s L) * Fq (fun a => (D + n a)%nat) s))
     (rho ^ (L - 1 - j + D + 2) * (Rabs (G (S (s + j)) (L - 1 - j)) * awq (s + j))))
  mm (fun j => sel j (phi (s + L) * ((1 + Q) * Om s)) ((1 + Q) * (phi (s + L) * om (s + j)))) (S L) y Sm) as C.
rewrite !SE, !sumn_scal, <- out_split in C.
change (sumn (fun i => om (s + i)%nat) L) with (oml s L) in C.
replace (sumn (fun j => Rabs (G (S (s + j)) (L - 1 - j)) * awq (s + j)) L)
  with (locq (fun _ => O) s L) in C by (rewrite loc_sum; apply sumn_ext; intros; simpl; ring).
replace (sumn (fun j => rho ^ (L - 1 - j + D + 2) * (Rabs (G (S (s + j)) (L - 1 - j)) * awq (s + j))) L)
  with (locq (fun a => (a + D + 2)%nat) s L) in C by apply loc_sum.
replace (Rabs (G s L) * A g awq a0q s + locq (fun _ => O) s L) with (A g awq a0q (s + L)) in C
  by (rewrite !(A_F g rho), F_split; reflexivity).
replace (phi (s + L) * ((1 + Q) * Om s) + (1 + Q) * (phi (s + L) * oml s L))
  with ((1 + Q) * (phi (s + L) * Om (s + L))) in C.
2:{ unfold recurrence_counts.Om.
    replace (oml 0 (s + L)) with (oml 0 s + oml s L); [ring|].
    unfold recurrence_counts.oml; rewrite <- !lsum_seq, seq_app, lsum_app; f_equal.
    rewrite !lsum_seq.
    clear; induction L as [|L IH]; [reflexivity|].
    rewrite !seq_S, lsum_app, <- IH; simpl; ring. }
replace (S L - 1)%nat with L in C by lia.
unfold holds_out; eapply (L7 weak_cv); [apply C | | unfold mm; lia | apply Rle_refl | now apply Fq_cap].
- intros j J; cbv beta; unfold sel; destruct (Nat.eqb_spec j L) as [E|E].
  + subst j; split.
    * eapply (L7 weak_m); [exact C1 | unfold mm; lia | apply Rle_refl].
    * apply (L12 side), (L12 ge1_mul); [apply phi_ge1 | exact Q1].
  + assert (J' : (j < L)%nat) by lia.
    assert (Tj : (S (s + j) + (L - 1 - j) <= T)%nat) by lia.
    pose proof (attends_cv _ _ _ Tj (Ag j J')) as X.
    replace (S (s + j) + (L - 1 - j))%nat with (s + L)%nat in X by lia; split.
    * eapply (L7 weak_m); [exact X | unfold mm; lia | apply Rle_refl].
    * apply (L12 side), (L12 ge1_mul); [lra | apply (L12 ge1_mul); [apply phi_ge1 | apply om1]].
- rewrite F_split, Rmult_plus_distr_l; apply Rplus_le_compat.
  + replace (rho ^ L * (rho ^ L * (Rabs (G s L) * Fq (fun a => (D + n a)%nat) s)))
      with (Rabs (G s L) * (rho ^ (L + L) * Fq (fun a => (D + n a)%nat) s)) by (rewrite pow_add; ring).
    rewrite <- F_scale; apply Rmult_le_compat_l; [apply Rabs_pos|].
    apply F_mono; [exact (L5 rho_ge1) | exact awq_ge0 | exact a0q_ge0 |].
    intros a Ha; specialize (Hn a Ha); lia.
  + rewrite <- loc_scale; apply loc_mono; [exact (L5 rho_ge1) | exact awq_ge0 |].
    intros a Ha; specialize (Hk a Ha); lia.
Qed.
Lemma holds_out_weak n m t y n' m' : (t <= T)%nat -> holds_out n m t y ->
  (forall a, (a <= t)%nat -> (n a <= n' a)%nat) ->
  (m <= m')%nat -> (forall a, (a <= t)%nat -> (n' a <= m')%nat) -> holds_out n' m' t y.
Proof.
intros Ht H Hn Hm Hm'; eapply (L7 weak_cv); [exact H | | exact Hm | apply Rle_refl | now apply Fq_cap].
apply F_mono; [exact (L5 rho_ge1) | exact awq_ge0 | exact a0q_ge0 | exact Hn].
Qed.

(** ** The forms *)
Local Notation seq i := (sequential u eta g b (ki i) v (s0 i)).
Theorem sequential_output_count t sh y : (t <= T)%nat ->
  (forall i, (i < D)%nat -> seq i t (sh i)) -> dot_hat u eta q sh D y ->
  holds_out (fun a => (2 * a + D + 3)%nat) (2 * t + 2 * D + 3) t y.
Proof.
intros Ht H Hd; eapply holds_out_weak; [exact Ht | apply (dot_output (fun a => (2 * a + 3)%nat) (2 * t + 3) t sh y Ht) | | |].
- intros i I; exact (L12 sequential_state_count _ _ _ _ _ _ (om_spec i I) (O0_spec i I) t _ Ht (H i I)).
- exact Hd.
- intros a Ha; cbv beta; lia.
- lia.
- intros a Ha; cbv beta; lia.
Qed.

Theorem masked_attention_output_count t y : (t <= T)%nat -> attention 0 t s0 y ->
  holds_out (fun a => (a + t + D + 2)%nat) (2 * t + 2 * D + 2) t y.
Proof.
intros Ht H; change (holds_out (fun a => (a + t + D + 2)%nat) (2 * t + 2 * D + 2) (0 + t) y).
assert (H0 : forall i, (i < D)%nat -> holds i (fun _ => O) O 0 (s0 i)).
{ intros i I; apply (L12 holds_exact _ _ _ _ _ _ (om_spec i I) (O0_spec i I)); lia. }
eapply attention_holds; [exact Ht | exact H0 | exact H | | | lia | lia |]; intros a Ha; cbv beta; lia.
Qed.

Theorem chunked_output_count C c r sh y : (1 <= r <= C)%nat -> (C <= c * C + r <= T)%nat ->
  (forall i, (i < D)%nat -> chunk_states u eta g b (ki i) v (s0 i) C c (sh i)) ->
  attention (c * C) r sh y ->
  exists n, (forall a, (a <= c * C + r)%nat -> (n a <= a + a / C + 2 * C + D + 2 /\ n a <= 2 * (c * C + r) + D + 3)%nat)
    /\ holds_out n (2 * (c * C + r) + 2 * D + 3) (c * C + r) y.
Proof.
intros Hr (HCt & Ht) H Ha; assert (HC : (1 <= C)%nat) by lia.
destruct c as [|c].
(* the first chunk: the carried state is the exact initial state *)
- assert (H0 : forall i, (i < D)%nat -> holds i (fun _ => O) O (0 * C) (sh i)).
  { intros i I; pose proof (H i I) as X; inversion X.
    apply (L12 holds_exact _ _ _ _ _ _ (om_spec i I) (O0_spec i I)); lia. }
  exists (fun a => a + r + D + 2)%nat; split; [intros a A; lia|].
  eapply attention_holds; [exact Ht | exact H0 | exact Ha | | | lia | lia |]; intros a Ha'; cbv beta; lia.
- set (c' := S c) in *.
  assert (Hs : forall i, (i < D)%nat -> holds i (fun a => (a + a / C + C + 2)%nat) (c' * C + c' + C + 2) (c' * C) (sh i)).
  { intros i I; apply (L12 chunk_states_holds _ _ _ _ _ _ (om_spec i I) (O0_spec i I)); [lia | lia | exact (H i I)]. }
  assert (cC : (c' + C <= c' * C + 1)%nat) by (unfold c'; nia).
  exists (fun a => if Nat.ltb a r then a + r + D + 2 else (a - r) + (a - r) / C + C + 2 + D + 2 * r)%nat.
  assert (B : forall a, (a <= c' * C + r)%nat -> ((a - r) / C <= c')%nat).
  { intros a A; pose proof (Nat.div_le_mono (a - r) (c' * C) C ltac:(lia) ltac:(lia)) as X.
    rewrite Nat.div_mul in X by lia; exact X. }
  split.
  + intros a A; destruct (Nat.ltb_spec a r) as [X|X]; [lia|]; specialize (B a A).
    pose proof (Nat.div_le_mono (a - r) a C ltac:(lia) ltac:(lia)); lia.
  + eapply attention_holds; [exact Ht | exact Hs | exact Ha | | | lia | lia |]; intros a Ha'; cbv beta.
    * destruct (Nat.ltb_spec (a + r) r); [lia|]; replace (a + r - r)%nat with a by lia; lia.
    * destruct (Nat.ltb_spec a r); lia.
    * destruct (Nat.ltb_spec a r); [lia|]; specialize (B a Ha'); lia.
Qed.

Theorem scan_output_count t d sh y : (t <= T)%nat ->
  (forall i, (i < D)%nat -> scan_state u eta g b (ki i) v (s0 i) t d (sh i)) -> dot_hat u eta q sh D y ->
  holds_out (fun a => (a + d + D + 3)%nat) (t + d + 2 * D + 3) t y.
Proof.
intros Ht H Hd; eapply holds_out_weak; [exact Ht | apply (dot_output (fun a => (a + d + 3)%nat) (t + d + 3) t sh y Ht) | | |].
- intros i I; exact (L12 scan_state_count _ _ _ _ _ _ (om_spec i I) (O0_spec i I) t d _ Ht (H i I)).
- exact Hd.
- intros a Ha; cbv beta; lia.
- lia.
- intros a Ha; cbv beta; lia.
Qed.

(* trees of C steps, the state carried from one to the next *)
Theorem scan_carried_output_count C c r sh y : (1 <= r <= C)%nat -> (C <= c * C + r <= T)%nat ->
  (forall i, (i < D)%nat -> scan_carried_state u eta g b (ki i) v (s0 i) C c r (sh i)) -> dot_hat u eta q sh D y ->
  holds_out (fun a => (D + (a + a / C + C + 3))%nat) (2 * (c * C + r) + 4 + (2 * D - 1)) (c * C + r) y.
Proof.
intros Hr Ht H Hd; apply (dot_output (fun a => (a + a / C + C + 3)%nat) (2 * (c * C + r) + 4) (c * C + r) sh y);
  [lia | | exact Hd].
intros i I; exact (L12 scan_carried_state_count _ _ _ _ _ _ (om_spec i I) (O0_spec i I) C c r _ Hr Ht (H i I)).
Qed.

(* any mixture: a state of any form, then a dot product with it or attention over a last block *)
Local Notation form i := (any_form u eta g b (ki i) v (s0 i)).
Inductive any_output : nat -> R -> Prop :=
| ao_dot t sh y : (forall i, (i < D)%nat -> form i t (sh i)) -> dot_hat u eta q sh D y -> any_output t y
| ao_attention s L sh y : (forall i, (i < D)%nat -> form i s (sh i)) -> attention s L sh y ->
    any_output (s + L) y.
Theorem any_order_output_count t y : (t <= T)%nat -> any_output t y ->
  holds_out (fun a => (a + t + D + 3)%nat) (2 * t + 2 * D + 3) t y.
Proof.
intros Ht H; destruct H as [t sh y H Hd | s L sh y H Ha].
- eapply holds_out_weak; [exact Ht | apply (dot_output (fun a => (a + t + 3)%nat) (2 * t + 3) t sh y Ht) | | |].
  + intros i I; exact (L12 any_order_state_count _ _ _ _ _ _ (om_spec i I) (O0_spec i I) t _ Ht (H i I)).
  + exact Hd.
  + intros a Ha; cbv beta; lia.
  + lia.
  + intros a Ha; cbv beta; lia.
- assert (Hs : forall i, (i < D)%nat -> holds i (fun a => (a + s + 3)%nat) (2 * s + 3) s (sh i)).
  { intros i I; assert (s <= T)%nat by lia.
    apply (L12 any_order_state_count _ _ _ _ _ _ (om_spec i I) (O0_spec i I)); auto. }
  eapply attention_holds; [exact Ht | exact Hs | exact Ha | | | lia | lia |]; intros a Ha'; cbv beta; lia.
Qed.
End Output.
