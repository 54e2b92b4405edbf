(* The closed form with division, whole or in segments.

     P_j = product of the first j gates of a segment that starts after c steps
     W   = S_c + sum_j (b_j / P_{j+1}) k_j v_j          S_{c+L} = P_L W         y = P_L (q . W)
   A segment of length L gives a carried term L additions and L multiplications; a term written
   at its j-th step (from 0) gets j + 1 for the division, 2 for k and v, L additions and L
   multiplications: in all never more than 3t + 2 for a state and 3t + D + 2 for an output.

   Main results
     supports_implies_range     a float64 product >= 2 tiny implies |P| >= 3/2 tiny
     prefix_relative            inside the range the computed P is off by its roundings only
     segmented_state_bound      |computed - S_t| <= count_bound 0 (3t + 3) + H
     segmented_output_bound     |computed - y_t| <= count_bound 0 (3t + D + 3) + H
     prefix_product_state_bound, prefix_product_output_bound      one segment: the plain closed form
     closed_form_fails          where |P| <= eta a legal computation gives 0, whatever the truth
   Range (hypotheses): 3/2 tiny <= |P_j| in the segment, tiny the smallest normal number; nothing
   overflows (the program checks that its results are finite).                            *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
Require Import counter_calculus recurrence_counts output_counts recurrence_bounds.
Open Scope R_scope.

Lemma Rabs_between x b : Rabs x <= b -> - b <= x <= b.
Proof. unfold Rabs; destruct (Rcase_abs x); lra. Qed.

Section Prefix.
Set Default Proof Using "All".
Variables u eta : R.
Hypothesis u_ge0 : 0 <= u.
Hypothesis u_lt1 : u < 1.
Hypothesis eta_ge0 : 0 <= eta.
Local Notation L5 x := (x u eta u_ge0 u_lt1 eta_ge0) (only parsing).
Local Notation L7 x := (x u eta u_ge0 u_lt1 eta_ge0 0 (Rle_refl 0)) (only parsing).
Local Notation near := (near u eta).
Local Notation rho := (rho u).
Variable tiny : R.     (* smallest normal number: at and above it errors are relative *)
Hypothesis tiny_pos : 0 < tiny.
Definition near_normal x y := near x y /\ (tiny <= Rabs x -> Rabs (y - x) <= u * Rabs x).

Variable g : nat -> R.
Local Notation G := (G g).
Local Notation phi := (phi g).

(** * The prefix products *)
(* ph j: computed product of j >= 1 gates from step c on, one after the other *)
Definition prefixes c L (ph : nat -> R) := ph 1%nat = g c /\
  forall j, (1 <= j < L)%nat -> near_normal (ph j * g (c + j)%nat) (ph (S j)).
Definition in_range c L := forall j, (1 <= j <= L)%nat -> 3 / 2 * tiny <= Rabs (G c j).
Definition relative j x y := exists d, y = x * d /\ (1 - u) ^ j <= d <= rho ^ j.

Lemma pow_low j L : (j <= L)%nat -> INR L * u <= 1 / 4 -> 3 / 4 <= (1 - u) ^ j.
Proof.
intros H HL; eapply Rle_trans; [|apply (L5 bernoulli); lra].
apply le_INR in H; assert (INR j * u <= INR L * u) by (apply Rmult_le_compat_r; lra); lra.
Qed.

Theorem prefix_relative c L ph : INR L * u <= 1 / 4 -> in_range c L -> prefixes c L ph ->
  forall j, (1 <= j <= L)%nat -> relative (j - 1) (G c j) (ph j).
Proof.
intros HL HR (P1 & PS); induction j as [|j IH]; intros Hj; [lia|].
destruct (Nat.eq_dec j 0) as [->|J].
{ exists 1; rewrite P1; simpl; rewrite Nat.add_0_r; split; [ring | lra]. }
destruct (IH ltac:(lia)) as (d & Ed & D1 & D2).
destruct (PS j ltac:(lia)) as (_ & Rel).
assert (GS : G c (S j) = G c j * g (c + j)%nat) by reflexivity.
pose proof (HR (S j) ltac:(lia)) as R1.
pose proof (pow_low (j - 1) L ltac:(lia) HL) as D0.
assert (E : ph j * g (c + j)%nat = G c (S j) * d) by (rewrite Ed, GS; ring).
assert (T : tiny <= Rabs (ph j * g (c + j)%nat)).
{ rewrite E, Rabs_mult, (Rabs_pos_eq d) by lra.
  assert (3 / 2 * tiny * (3 / 4) <= Rabs (G c (S j)) * d) by (apply Rmult_le_compat; lra). lra. }
specialize (Rel T); rewrite E in Rel.
assert (Z : G c (S j) <> 0) by (intros Z; rewrite Z, Rabs_R0 in R1; lra).
exists (ph (S j) / G c (S j)); split; [field; exact Z|].
assert (X : Rabs (ph (S j) / G c (S j) - d) <= u * d).
{ replace (ph (S j) / G c (S j) - d) with ((ph (S j) - G c (S j) * d) / G c (S j)) by (field; exact Z).
  unfold Rdiv; rewrite Rabs_mult, Rabs_inv.
  apply Rmult_le_reg_r with (Rabs (G c (S j))); [lra|].
  rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  rewrite Rabs_mult, (Rabs_pos_eq d) in Rel by lra; lra. }
apply Rabs_between in X.
replace (S j - 1)%nat with (S (j - 1)) by lia; cbn [pow].
pose proof (L5 rho_ge); split.
- assert ((1 - u) * (1 - u) ^ (j - 1) <= (1 - u) * d) by (apply Rmult_le_compat_l; lra); lra.
- assert ((1 + u) * d <= rho * rho ^ (j - 1)) by (apply Rmult_le_compat; lra); lra.
Qed.

Lemma relative_error j x y : relative j x y -> Rabs (y - x) <= (rho ^ j - 1) * Rabs x.
Proof.
intros (d & -> & D1 & D2); replace (x * d - x) with ((d - 1) * x) by ring.
rewrite Rabs_mult; apply Rmult_le_compat_r; [apply Rabs_pos|].
pose proof (L5 rho_pow_ge1 j).
assert (Q : 2 - rho ^ j <= (1 - u) ^ j).
{ unfold counter_calculus.rho in *; rewrite pow_inv in *.
  assert (0 < (1 - u) ^ j) by (apply pow_lt; lra).
  set (z := (1 - u) ^ j) in *.
  assert (z * / z = 1) by (apply Rinv_r; lra).
  assert (0 < / z) by (apply Rinv_0_lt_compat; lra).
  assert (z <= 1).
  { apply Rmult_le_reg_r with (/ z); lra. }
  assert (0 <= (1 - z) * (/ z - 1)) by (apply Rmult_le_pos; lra).
  lra. }
apply Rabs_le; lra.
Qed.
Lemma relative_inv j x y : x <> 0 -> relative j x y -> y <> 0 /\ relative j (/ x) (/ y).
Proof.
intros Z (d & -> & D1 & D2).
assert (0 < (1 - u) ^ j) by (apply pow_lt; lra).
split; [apply Rmult_integral_contrapositive; split; lra|].
exists (/ d); split; [field; split; lra|].
unfold counter_calculus.rho in *; split.
- rewrite pow_inv in D2; rewrite <- (Rinv_inv ((1 - u) ^ j)); apply Rinv_le_contravar; lra.
- rewrite pow_inv; apply Rinv_le_contravar; lra.
Qed.

(** * Errors as r - a + h: r has the roundings, h the underflow *)
Definition er (x a r h y : R) := Rabs x <= a /\ a <= r /\ 0 <= h /\ Rabs (y - x) <= r - a + h.
Lemma er_near x a r h y z : er x a r h y -> near y z -> er x a (rho * r) (rho * h + eta) z.
Proof.
intros (H1 & H2 & H3 & H4) N; unfold counter_calculus.near in N.
pose proof (L5 rho_ge); pose proof (L5 rho_ge1); pose proof (Rabs_pos x).
assert (a * 1 <= r * rho) by (apply Rmult_le_compat; lra).
assert (1 * h <= rho * h) by (apply Rmult_le_compat_r; lra).
repeat split; try lra.
replace (z - x) with ((z - y) + (y - x)) by ring; eapply Rle_trans; [apply Rabs_triang|].
assert (Y : Rabs y <= Rabs x + Rabs (y - x)).
{ replace y with (x + (y - x)) at 1 by ring; apply Rabs_triang. }
assert (u * Rabs y <= u * (Rabs x + Rabs (y - x))) by (apply Rmult_le_compat_l; lra).
set (d := Rabs (y - x)) in *; assert (0 <= d) by apply Rabs_pos.
assert ((1 + u) * d <= rho * d) by (apply Rmult_le_compat_r; lra).
assert (rho * d <= rho * (r - a + h)) by (apply Rmult_le_compat_l; lra).
assert (u * Rabs x <= (rho - 1) * a) by (apply Rmult_le_compat; lra).
lra.
Qed.
Lemma refl x : near x x.
Proof.
unfold counter_calculus.near; replace (x - x) with 0 by ring; rewrite Rabs_R0.
pose proof (Rabs_pos x); assert (0 <= u * Rabs x) by (apply Rmult_le_pos; lra); lra.
Qed.
Lemma er_weak x a r h y r' h' : er x a r h y -> r <= r' -> h <= h' -> er x a r' h' y.
Proof. intros (H1 & H2 & H3 & H4) Hr Hh; repeat split; lra. Qed.
Lemma er_rf x a r h y z : er x a r h y -> rounded_or_fused u eta y z -> er x a (rho * r) (rho * h + eta) z.
Proof. intros H [N| ->]; eapply er_near; try eassumption; apply refl. Qed.
Lemma er_scale c x a r h y : er x a r h y -> er (c * x) (Rabs c * a) (Rabs c * r) (Rabs c * h) (c * y).
Proof.
intros (H1 & H2 & H3 & H4); pose proof (Rabs_pos c); unfold er; rewrite Rabs_mult.
replace (c * y - c * x) with (c * (y - x)) by ring; rewrite Rabs_mult.
repeat split; try (apply Rmult_le_compat_l; lra); [apply Rmult_le_pos; lra|].
assert (Rabs c * Rabs (y - x) <= Rabs c * (r - a + h)) by (apply Rmult_le_compat_l; lra); lra.
Qed.
Lemma er_relative j p ph x a r h y : relative j p ph -> er x a r h y ->
  er (p * x) (Rabs p * a) (rho ^ j * (Rabs p * r)) (rho ^ j * (Rabs p * h)) (ph * y).
Proof.
intros Rl (H1 & H2 & H3 & H4); pose proof (relative_error _ _ _ Rl) as E.
pose proof (Rabs_pos p); pose proof (L5 rho_pow_ge1 j); pose proof (Rabs_pos x).
assert (0 <= Rabs p * r) by (apply Rmult_le_pos; lra).
assert (0 <= Rabs p * h) by (apply Rmult_le_pos; lra).
unfold er; split; [rewrite Rabs_mult; apply Rmult_le_compat_l; lra|]; split.
{ assert (Rabs p * a <= Rabs p * r) by (apply Rmult_le_compat_l; lra).
  assert (1 * (Rabs p * r) <= rho ^ j * (Rabs p * r)) by (apply Rmult_le_compat_r; lra). lra. }
split; [apply Rmult_le_pos; lra|].
replace (ph * y - p * x) with (p * (y - x) + (ph - p) * y) by ring.
eapply Rle_trans; [apply Rabs_triang|]; rewrite !Rabs_mult.
assert (Y : Rabs y <= r + h).
{ replace y with (x + (y - x)) by ring; eapply Rle_trans; [apply Rabs_triang | lra]. }
assert (Rabs p * Rabs (y - x) <= Rabs p * (r - a + h)) by (apply Rmult_le_compat_l; lra).
assert (Rabs (ph - p) * Rabs y <= (rho ^ j - 1) * Rabs p * (r + h)).
{ apply Rmult_le_compat; [apply Rabs_pos | apply Rabs_pos | exact E | exact Y]. }
lra.
Qed.
Lemma er_exact x : er x (Rabs x) (Rabs x) 0 x.
Proof. unfold er; replace (x - x) with 0 by ring; rewrite Rabs_R0; lra. Qed.

(* a write divided by a computed P: (b / P) k, then v *)
Definition divided_write b k v ph z := exists c ck,
  near (b / ph) c /\ near (k * c) ck /\ rounded_or_fused u eta (v * ck) z.
Lemma divided_write_er j b k v p ph z : p <> 0 -> relative j p ph -> divided_write b k v ph z ->
  er (b * k * v / p) (Rabs (b * k * v) / Rabs p) (rho ^ (j + 3) * (Rabs (b * k * v) / Rabs p))
     (rho ^ 2 * eta * ((1 + Rabs k) * (1 + Rabs v))) z.
Proof.
intros Z Rl (c & ck & N1 & N2 & N3).
destruct (relative_inv _ _ _ Z Rl) as (_ & Ri).
pose proof (er_relative _ _ _ _ _ _ _ _ Ri (er_exact b)) as X1.
replace (/ ph * b) with (b / ph) in X1 by (unfold Rdiv; ring).
apply er_near with (z := c) in X1; [|exact N1].
apply (er_scale k) in X1; apply er_near with (z := ck) in X1; [|exact N2].
apply (er_scale v) in X1; apply er_rf with (z := z) in X1; [|exact N3].
rewrite Rabs_inv in X1.
replace (v * (k * (/ p * b))) with (b * k * v / p) in X1 by (unfold Rdiv; ring).
replace (Rabs v * (Rabs k * (/ Rabs p * Rabs b))) with (Rabs (b * k * v) / Rabs p) in X1
  by (rewrite !Rabs_mult; unfold Rdiv; ring).
eapply er_weak; [exact X1 | |].
- rewrite !Rabs_mult, pow_add; unfold Rdiv; simpl; right; ring.
- pose proof (L5 rho_ge1); pose proof (Rabs_pos k); pose proof (Rabs_pos v).
  replace (rho * (Rabs v * (rho * (Rabs k * (rho * (rho ^ j * (/ Rabs p * 0)) + eta)) + eta)) + eta)
    with (eta * (rho * rho * (Rabs k * Rabs v) + rho * Rabs v + 1)) by ring.
  replace (rho ^ 2 * eta * ((1 + Rabs k) * (1 + Rabs v)))
    with (eta * (rho * rho * ((1 + Rabs k) * (1 + Rabs v)))) by ring.
  apply Rmult_le_compat_l; [exact eta_ge0|].
  assert (0 <= Rabs k * Rabs v) by (apply Rmult_le_pos; lra).
  assert (1 <= rho * rho) by nra.
  assert (rho * Rabs v <= rho * rho * Rabs v) by (apply Rmult_le_compat_r; nra).
  assert (0 <= rho * rho * Rabs k) by (apply Rmult_le_pos; lra).
  lra.
Qed.

(** * One entry *)
Lemma state_divided (w : nat -> R) s0 c L : (forall j, (1 <= j <= L)%nat -> G c j <> 0) ->
  G c L * (state g w s0 c + sumn (fun j => w (c + j)%nat / G c (S j)) L) = state g w s0 (c + L).
Proof.
induction L as [|L IH]; intros HZ; [simpl; rewrite Nat.add_0_r; ring|].
rewrite Nat.add_succ_r; cbn [state sumn]; rewrite <- IH by (intros; apply HZ; lia).
pose proof (HZ (S L) ltac:(lia)) as Z; cbn [recurrence_counts.G] in *.
assert (G c L <> 0 /\ g (c + L)%nat <> 0) as (Z1 & Z2) by (split; intros E; apply Z; rewrite E; ring).
field; split; assumption.
Qed.
Lemma A_divided (aw : nat -> R) a0 c L : (forall j, (1 <= j <= L)%nat -> G c j <> 0) ->
  Rabs (G c L) * (A g aw a0 c + sumn (fun j => aw (c + j)%nat / Rabs (G c (S j))) L) = A g aw a0 (c + L).
Proof.
induction L as [|L IH]; intros HZ; [simpl; rewrite Nat.add_0_r, Rabs_R1; ring|].
rewrite Nat.add_succ_r; cbn [A sumn]; rewrite <- IH by (intros; apply HZ; lia).
pose proof (HZ (S L) ltac:(lia)) as Z; cbn [recurrence_counts.G] in *.
assert (G c L <> 0 /\ g (c + L)%nat <> 0) as (Z1 & Z2) by (split; intros E; apply Z; rewrite E; ring).
apply Rabs_no_R0 in Z1; apply Rabs_no_R0 in Z2.
rewrite !Rabs_mult; field; split; assumption.
Qed.

Section Entry.
Variables (b k v : nat -> R) (s0 kc : R).
Hypothesis kc_spec : forall r, Rabs (k r) <= kc.
Local Notation w := (w b k v).
Local Notation aw := (aw b k v).
Local Notation st := (state g w s0).
Local Notation At := (A g aw (Rabs s0)).

(* W of a segment: the state before it is one term of the sum *)
Definition divided_sum c L sh (ph : nat -> R) W := exists f, f L = sh /\
  (forall j, (j < L)%nat -> divided_write (b (c + j)%nat) (k (c + j)%nat) (v (c + j)%nat) (ph (S j)) (f j)) /\
  anysum u eta f (S L) W.
Definition defined_step t sh y := exists bk p z,
  near (b t * k t) bk /\ rounded_or_fused u eta (g t * sh) p /\ rounded_or_fused u eta (v t * bk) z /\ near (p + z) y.
Inductive segmented : nat -> R -> Prop :=
| sg_init : segmented 0 s0
| sg_define t sh y : segmented t sh -> defined_step t sh y -> segmented (S t) y
| sg_segment c L sh ph W y : (1 <= L)%nat -> segmented c sh -> in_range c L -> prefixes c L ph ->
    divided_sum c L sh ph W -> near (ph L * W) y -> segmented (c + L) y.

Definition vs t := (1 + kc) * sumn (fun s => 1 + Rabs (v s)) t.
Definition hb t := 3 * eta * rho ^ (2 * t + 2) * phi t * vs t.
Definition good t y := er (st t) (At t) (rho ^ (3 * t + 2) * At t) (hb t) y.

Lemma kc0 : 0 <= kc. Proof. eapply Rle_trans; [apply Rabs_pos | apply (kc_spec 0)]. Qed.
Lemma v_sum_ge n c : INR n <= sumn (fun j => 1 + Rabs (v (c + j)%nat)) n.
Proof.
induction n as [|n IH]; [simpl; lra|]; rewrite S_INR; cbn [sumn].
pose proof (Rabs_pos (v (c + n)%nat)); lra.
Qed.
Lemma vs_ge0 t : 0 <= vs t.
Proof.
unfold vs; pose proof kc0; apply Rmult_le_pos; [lra|]; apply sumn_ge0; intros i _.
pose proof (Rabs_pos (v i)); lra.
Qed.
Lemma vs_split c L : vs (c + L) = vs c + (1 + kc) * sumn (fun j => 1 + Rabs (v (c + j)%nat)) L.
Proof.
unfold vs; rewrite <- Rmult_plus_distr_l; f_equal.
induction L as [|L IH]; [rewrite Nat.add_0_r; simpl; ring|].
rewrite Nat.add_succ_r; cbn [sumn]; rewrite IH; ring.
Qed.
Lemma At_ge0 t : 0 <= At t.
Proof.
induction t as [|t IH]; [apply Rabs_pos|].
change (At (S t)) with (Rabs (g t) * At t + aw t).
pose proof (Rabs_ge0_mult (g t) _ IH); assert (0 <= aw t) by apply Rabs_pos; lra.
Qed.
Lemma er_nonneg x a r h y : er x a r h y -> 0 <= a /\ 0 <= r /\ 0 <= h.
Proof. intros (H1 & H2 & H3 & _); pose proof (Rabs_pos x); repeat split; lra. Qed.

Lemma divided_sum_er c L sh ph W : INR L * u <= 1 / 4 -> (1 <= L)%nat -> good c sh -> in_range c L ->
  prefixes c L ph -> divided_sum c L sh ph W ->
  er (st (c + L) / G c L) (At (c + L) / Rabs (G c L))
     (rho ^ (3 * c + L + 2 + L) * (At (c + L) / Rabs (G c L)))
     (rho ^ L * (hb c + rho ^ 2 * eta * ((1 + kc) * sumn (fun j => 1 + Rabs (v (c + j)%nat)) L) + INR L * eta)) W.
Proof.
intros HL L1 Hc HR HP (f & Fs & Fw & Sm).
assert (HZ : forall j, (1 <= j <= L)%nat -> G c j <> 0).
{ intros j Hj E; pose proof (HR j Hj) as X; rewrite E, Rabs_R0 in X; lra. }
pose proof (prefix_relative c L ph HL HR HP) as Rl.
set (sel := fun (j : nat) (x y : R) => if Nat.eqb j L then x else y).
assert (SE : forall h z, sumn (fun j => sel j z (h j)) (S L) = z + sumn h L).
{ intros h z; cbn [sumn]; unfold sel at 2; rewrite Nat.eqb_refl, Rplus_comm; f_equal.
  apply sumn_ext; intros j J; unfold sel; destruct (Nat.eqb_spec j L); [lia | reflexivity]. }
set (N := (3 * c + L + 2)%nat).
set (x := fun j => w (c + j)%nat / G c (S j)).
set (a := fun j => aw (c + j)%nat / Rabs (G c (S j))).
set (h := fun j => rho ^ 2 * eta * ((1 + kc) * (1 + Rabs (v (c + j)%nat)))).
assert (Lf : forall j, (j < L)%nat -> er (x j) (a j) (rho ^ N * a j) (h j) (f j)).
{ intros j Hj.
  assert (SJ : (1 <= S j <= L)%nat) by lia.
  pose proof (Rl (S j) SJ) as Rj; replace (S j - 1)%nat with j in Rj by lia.
  pose proof (divided_write_er j _ _ _ (G c (S j)) (ph (S j)) (f j) (HZ (S j) SJ) Rj (Fw j Hj)) as X.
  eapply er_weak; [exact X | |].
  - apply Rmult_le_compat_r; [|apply (L5 rho_pow_mono); unfold N; lia].
    destruct (er_nonneg _ _ _ _ _ X) as (Q & _); exact Q.
  - unfold h; apply Rmult_le_compat_l.
    + pose proof (L5 rho_pow_ge1 2); apply Rmult_le_pos; lra.
    + apply Rmult_le_compat_r; [pose proof (Rabs_pos (v (c + j)%nat)); lra|].
      pose proof (kc_spec (c + j)%nat); lra. }
assert (Cf : er (st c) (At c) (rho ^ N * At c) (hb c) (f L)).
{ rewrite Fs; eapply er_weak; [exact Hc | | lra].
  apply Rmult_le_compat_r; [apply At_ge0 | apply (L5 rho_pow_mono); unfold N; lia]. }
pose proof ((L7 anysum_error) f (fun j => sel j (st c) (x j)) (fun j => sel j (At c) (a j))
  (fun j => sel j (rho ^ N * At c - At c + hb c) (rho ^ N * a j - a j + h j)) (S L) W Sm) as B.
rewrite !SE in B.
assert (EX : st c + sumn x L = st (c + L) / G c L).
{ rewrite <- (state_divided w s0 c L HZ); unfold x; field; apply HZ; lia. }
assert (EA : At c + sumn a L = At (c + L) / Rabs (G c L)).
{ rewrite <- (A_divided aw (Rabs s0) c L HZ); unfold a; field; apply Rabs_no_R0, HZ; lia. }
assert (EE : sumn (fun j => rho ^ N * a j - a j + h j) L = (rho ^ N - 1) * sumn a L + sumn h L).
{ rewrite <- sumn_scal, <- sumn_plus; apply sumn_ext; intros; ring. }
assert (EH : sumn h L = rho ^ 2 * eta * ((1 + kc) * sumn (fun j => 1 + Rabs (v (c + j)%nat)) L)).
{ unfold h; rewrite <- !sumn_scal; reflexivity. }
rewrite EE, EX, EA, EH in B.
replace (S L - 1)%nat with L in B by lia.
assert (P0 : 0 <= At (c + L) / Rabs (G c L)).
{ rewrite <- EA; pose proof (At_ge0 c); assert (0 <= sumn a L); [|lra].
  apply sumn_ge0; intros j Hj; destruct (er_nonneg _ _ _ _ _ (Lf j Hj)); assumption. }
pose proof (L5 rho_pow_ge1 (N + L)).
unfold er; split; [|split; [|split]].
- unfold Rdiv; rewrite Rabs_mult, Rabs_inv; apply Rmult_le_compat_r.
  + left; apply Rinv_0_lt_compat, Rabs_pos_lt, HZ; lia.
  + generalize (c + L)%nat; clear; intros t; induction t as [|t IH]; [simpl; lra|].
    cbn [state A]; eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_mult; apply Rplus_le_compat;
      [apply Rmult_le_compat_l; [apply Rabs_pos | exact IH] | apply Rle_refl].
- fold N; assert (1 * (At (c + L) / Rabs (G c L)) <= rho ^ (N + L) * (At (c + L) / Rabs (G c L)))
    by (apply Rmult_le_compat_r; lra); lra.
- apply Rmult_le_pos; [pose proof (L5 rho_pow_ge1 L); lra|].
  destruct (er_nonneg _ _ _ _ _ Cf) as (_ & _ & H1).
  assert (0 <= sumn h L) by (apply sumn_ge0; intros j Hj; destruct (er_nonneg _ _ _ _ _ (Lf j Hj)) as (_ & _ & Q); exact Q).
  assert (0 <= INR L * eta) by (apply Rmult_le_pos; [apply pos_INR | lra]). lra.
- fold N; rewrite pow_add; eapply Rle_trans; [apply B|].
  + intros j Hj; cbv beta; unfold sel; destruct (Nat.eqb_spec j L) as [->|E].
    * destruct Cf as (Q1 & _ & _ & Q4); split; [exact Q1 | exact Q4].
    * destruct (Lf j ltac:(lia)) as (Q1 & _ & _ & Q4); split; [exact Q1 | exact Q4].
  + rewrite <- EA; right; ring.
Qed.

(* the underflow of a segment, after the product with P *)
Lemma segment_underflow c L : (1 <= L)%nat ->
  rho ^ L * Rabs (G c L) * (rho ^ L * (hb c + rho ^ 2 * eta * ((1 + kc) * sumn (fun j => 1 + Rabs (v (c + j)%nat)) L) + INR L * eta))
  + eta <= hb (c + L).
Proof.
intros L1; unfold hb at 2; rewrite vs_split.
set (X := (1 + kc) * sumn (fun j => 1 + Rabs (v (c + j)%nat)) L).
assert (X1 : INR L <= X).
{ unfold X; pose proof (v_sum_ge L c); pose proof kc0; pose proof (pos_INR L).
  assert (0 <= kc * sumn (fun j => 1 + Rabs (v (c + j)%nat)) L) by (apply Rmult_le_pos; lra). lra. }
assert (L1' : 1 <= INR L) by (apply (le_INR 1); lia).
pose proof (phi_ge1 g c); pose proof (phi_ge1 g (c + L)).
(* |G c L| phi c <= phi (c+L) *)
assert (GP : Rabs (G c L) * phi c <= phi (c + L)).
{ clear; induction L as [|L IH]; [simpl; rewrite Nat.add_0_r, Rabs_R1; lra|].
  rewrite Nat.add_succ_r; eapply Rle_trans; [|apply phi_gate]; cbn [recurrence_counts.G]; rewrite Rabs_mult.
  rewrite (Rmult_comm (Rabs (G c L))), Rmult_assoc; apply Rmult_le_compat_l; [apply Rabs_pos | exact IH]. }
assert (G1 : Rabs (G c L) <= phi (c + L)).
{ assert (Rabs (G c L) * 1 <= Rabs (G c L) * phi c) by (apply Rmult_le_compat_l; [apply Rabs_pos | lra]); lra. }
pose proof (L5 rho_pow_ge1 (2 * L)); pose proof (L5 rho_pow_ge1 2); pose proof (L5 rho_pow_ge1 (2 * c + 2)).
pose proof (vs_ge0 c); pose proof (Rabs_pos (G c L)).
replace (rho ^ L * Rabs (G c L) * (rho ^ L * (hb c + rho ^ 2 * eta * X + INR L * eta)))
  with (rho ^ (2 * L) * (Rabs (G c L) * hb c) + rho ^ (2 * L) * (Rabs (G c L) * (rho ^ 2 * eta * X + INR L * eta)))
  by (replace (2 * L)%nat with (L + L)%nat by lia; rewrite pow_add; ring).
assert (T1 : rho ^ (2 * L) * (Rabs (G c L) * hb c) <= 3 * eta * rho ^ (2 * (c + L) + 2) * phi (c + L) * vs c).
{ replace (2 * (c + L) + 2)%nat with (2 * L + (2 * c + 2))%nat by lia; rewrite pow_add; unfold hb.
  set (z := 3 * eta * (rho ^ (2 * L) * rho ^ (2 * c + 2)) * vs c).
  replace (rho ^ (2 * L) * (Rabs (G c L) * (3 * eta * rho ^ (2 * c + 2) * phi c * vs c)))
    with (z * (Rabs (G c L) * phi c)) by (unfold z; ring).
  replace (3 * eta * (rho ^ (2 * L) * rho ^ (2 * c + 2)) * phi (c + L) * vs c) with (z * phi (c + L))
    by (unfold z; ring).
  apply Rmult_le_compat_l; [|exact GP].
  unfold z; apply Rmult_le_pos; [|lra]; apply Rmult_le_pos; [lra|]; apply Rmult_le_pos; lra. }
set (p := rho ^ (2 * (c + L) + 2)) in *.
assert (PL : rho ^ (2 * L) * rho ^ 2 <= p) by (unfold p; rewrite <- pow_add; apply (L5 rho_pow_mono); lia).
assert (PL' : rho ^ (2 * L) <= p) by (unfold p; apply (L5 rho_pow_mono); lia).
assert (T2 : rho ^ (2 * L) * (Rabs (G c L) * (rho ^ 2 * eta * X + INR L * eta)) <= phi (c + L) * (2 * eta * p * X)).
{ replace (rho ^ (2 * L) * (Rabs (G c L) * (rho ^ 2 * eta * X + INR L * eta)))
    with (Rabs (G c L) * (rho ^ (2 * L) * rho ^ 2 * (eta * X) + rho ^ (2 * L) * (INR L * eta))) by ring.
  assert (0 <= eta * X) by (apply Rmult_le_pos; lra).
  assert (0 <= INR L * eta) by (apply Rmult_le_pos; lra).
  assert (INR L * eta <= X * eta) by (apply Rmult_le_compat_r; lra).
  assert (rho ^ (2 * L) * rho ^ 2 * (eta * X) <= p * (eta * X)) by (apply Rmult_le_compat_r; lra).
  assert (rho ^ (2 * L) * (INR L * eta) <= p * (eta * X)) by (apply Rmult_le_compat; lra).
  apply Rmult_le_compat; [lra | | lra | lra].
  assert (0 <= rho ^ (2 * L) * rho ^ 2 * (eta * X)) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra | lra]).
  assert (0 <= rho ^ (2 * L) * (INR L * eta)) by (apply Rmult_le_pos; lra). lra. }
assert (T3 : eta <= phi (c + L) * (eta * p * X)).
{ assert (1 * 1 <= p * X) by (apply Rmult_le_compat; lra).
  assert (1 * 1 <= phi (c + L) * (p * X)) by (apply Rmult_le_compat; lra).
  assert (eta * 1 <= eta * (phi (c + L) * (p * X))) by (apply Rmult_le_compat_l; lra). lra. }
lra.
Qed.

Lemma good_define t sh y : good t sh -> defined_step t sh y -> good (S t) y.
Proof.
intros Hg (bk & p & z & N1 & N2 & N3 & N4).
pose proof (er_rf _ _ _ _ _ _ (er_scale (g t) _ _ _ _ _ Hg) N2) as X1.
pose proof (er_near _ _ _ _ _ _ (er_exact (b t * k t)) N1) as Y.
apply (er_scale (v t)) in Y; apply er_rf with (z := z) in Y; [|exact N3].
set (h1 := rho * (Rabs (g t) * hb t) + eta) in *.
set (h2 := rho * (Rabs (v t) * (rho * 0 + eta)) + eta) in *.
pose proof (L5 rho_ge1) as R1; pose proof (L5 rho_pow_ge1 (3 * t + 2)) as R2; pose proof (At_ge0 t) as A0.
assert (Aw : 0 <= aw t) by apply Rabs_pos.
assert (Z : er (st (S t)) (At (S t)) (rho * (Rabs (g t) * (rho ^ (3 * t + 2) * At t)) + rho * (rho * aw t)) (h1 + h2) (p + z)).
{ destruct X1 as (A1 & A2 & A3 & A4); destruct Y as (B1 & B2 & B3 & B4).
  assert (E1 : v t * (b t * k t) = w t) by (unfold recurrence_counts.w; ring).
  assert (E2 : Rabs (v t) * Rabs (b t * k t) = aw t) by (rewrite <- Rabs_mult, E1; reflexivity).
  assert (E3 : Rabs (v t) * (rho * Rabs (b t * k t)) = rho * aw t) by (rewrite <- E2; ring).
  rewrite E1, E2, ?E3 in *; cbn [state A]; unfold er; repeat split; try lra.
  - eapply Rle_trans; [apply Rabs_triang | lra].
  - replace (p + z - (g t * st t + w t)) with ((p - g t * st t) + (z - w t)) by ring.
    eapply Rle_trans; [apply Rabs_triang | lra]. }
apply er_near with (z := y) in Z; [|exact N4].
eapply er_weak; [exact Z | |].
- cbn [A]; rewrite !Rmult_plus_distr_l.
  assert (0 <= Rabs (g t) * At t) by (now apply Rabs_ge0_mult).
  replace (rho * (rho * (Rabs (g t) * (rho ^ (3 * t + 2) * At t))))
    with (rho ^ (S (S (3 * t + 2))) * (Rabs (g t) * At t)) by (simpl; ring).
  replace (rho * (rho * (rho * aw t))) with (rho ^ 3 * aw t) by (simpl; ring).
  apply Rplus_le_compat; (apply Rmult_le_compat_r; [assumption | apply (L5 rho_pow_mono); lia]).
- unfold h1, h2; clear X1 Y Z N1 N2 N3 N4 Hg A0 Aw R2 h1 h2.
  unfold hb; replace (S t) with (t + 1)%nat by lia; rewrite vs_split; cbn [sumn]; rewrite Nat.add_0_r.
  replace (2 * (t + 1) + 2)%nat with (S (S (2 * t + 2))) by lia; cbn [pow].
  set (q := rho ^ (2 * t + 2)); assert (Q1 : 1 <= q) by (apply (L5 rho_pow_ge1)).
  pose proof (phi_ge1 g (t + 1)) as P1; pose proof (phi_ge1 g t) as P2; pose proof (vs_ge0 t) as V0.
  assert (P3 : Rabs (g t) * phi t <= phi (t + 1)) by (replace (t + 1)%nat with (S t) by lia; apply phi_gate).
  pose proof kc0 as K0; pose proof (Rabs_pos (v t)) as Pv; pose proof (Rabs_pos (g t)) as Pg.
  assert (B1 : rho * (rho * (Rabs (g t) * (3 * eta * q * phi t * vs t)))
     <= 3 * eta * (rho * (rho * q)) * phi (t + 1) * vs t).
  { set (zz := 3 * eta * (rho * (rho * q)) * vs t).
    replace (rho * (rho * (Rabs (g t) * (3 * eta * q * phi t * vs t)))) with (zz * (Rabs (g t) * phi t)) by (unfold zz; ring).
    replace (3 * eta * (rho * (rho * q)) * phi (t + 1) * vs t) with (zz * phi (t + 1)) by (unfold zz; ring).
    apply Rmult_le_compat_l; [|exact P3].
    unfold zz; apply Rmult_le_pos; [|exact V0]; apply Rmult_le_pos; [lra|].
    apply Rmult_le_pos; [lra|]; apply Rmult_le_pos; lra. }
  assert (B2 : rho * eta + rho * (rho * (Rabs (v t) * (rho * 0 + eta)) + eta) + eta
     <= 3 * eta * (rho * (rho * q)) * phi (t + 1) * ((1 + kc) * (0 + (1 + Rabs (v t))))).
  { assert (RR : 1 <= rho * rho) by nra.
    assert (RQ : rho * rho <= rho * (rho * q)).
    { rewrite <- Rmult_assoc; assert (rho * rho * 1 <= rho * rho * q) by (apply Rmult_le_compat_l; lra); lra. }
    assert (RP : rho * rho <= rho * (rho * q) * phi (t + 1)).
    { assert (rho * (rho * q) * 1 <= rho * (rho * q) * phi (t + 1)) by (apply Rmult_le_compat_l; lra); lra. }
    assert (RK : 1 + Rabs (v t) <= (1 + kc) * (0 + (1 + Rabs (v t)))).
    { assert (0 <= kc * (1 + Rabs (v t))) by (apply Rmult_le_pos; lra); lra. }
    assert (W : rho * rho * (1 + Rabs (v t)) <= rho * (rho * q) * phi (t + 1) * ((1 + kc) * (0 + (1 + Rabs (v t)))))
      by (apply Rmult_le_compat; lra).
    assert (V : 2 * rho + rho * rho * Rabs (v t) + 1 <= 3 * (rho * rho * (1 + Rabs (v t)))).
    { assert (rho <= rho * rho) by nra.
      assert (0 <= rho * rho * Rabs (v t)) by (apply Rmult_le_pos; lra). lra. }
    replace (rho * eta + rho * (rho * (Rabs (v t) * (rho * 0 + eta)) + eta) + eta)
      with (eta * (2 * rho + rho * rho * Rabs (v t) + 1)) by ring.
    replace (3 * eta * (rho * (rho * q)) * phi (t + 1) * ((1 + kc) * (0 + (1 + Rabs (v t)))))
      with (eta * (3 * (rho * (rho * q) * phi (t + 1) * ((1 + kc) * (0 + (1 + Rabs (v t))))))) by ring.
    apply Rmult_le_compat_l; lra. }
  lra.
Qed.

Lemma segmented_good t y : INR t * u <= 1 / 4 -> segmented t y -> good t y.
Proof.
intros Ht H; induction H as [|t sh y H IH St | c L sh ph W y L1 H IH HR HP HW N].
- unfold good, hb, vs; simpl sumn; simpl At; rewrite !Rmult_0_r.
  eapply er_weak; [apply er_exact | | lra].
  pose proof (L5 rho_pow_ge1 (3 * 0 + 2)); pose proof (Rabs_pos s0).
  assert (1 * Rabs s0 <= rho ^ (3 * 0 + 2) * Rabs s0) by (apply Rmult_le_compat_r; lra). lra.
- eapply good_define; [apply IH | exact St].
  rewrite S_INR in Ht; lra.
- rewrite plus_INR in Ht.
  pose proof (pos_INR c); pose proof (pos_INR L).
  assert (0 <= INR c * u) by (apply Rmult_le_pos; lra); assert (0 <= INR L * u) by (apply Rmult_le_pos; lra).
  assert (HL : INR L * u <= 1 / 4) by lra.
  pose proof (divided_sum_er c L sh ph W HL L1 (IH ltac:(lra)) HR HP HW) as X.
  pose proof (prefix_relative c L ph HL HR HP L ltac:(lia)) as Rl.
  apply (er_relative _ _ _ _ _ _ _ _ Rl) in X; apply er_near with (z := y) in X; [|exact N].
  assert (Z : G c L <> 0).
  { intros E; pose proof (HR L ltac:(lia)) as Y; rewrite E, Rabs_R0 in Y; lra. }
  assert (Z' : Rabs (G c L) <> 0) by now apply Rabs_no_R0.
  replace (G c L * (st (c + L) / G c L)) with (st (c + L)) in X by (field; exact Z).
  replace (Rabs (G c L) * (At (c + L) / Rabs (G c L))) with (At (c + L)) in X by (field; exact Z').
  assert (RL : rho * rho ^ (L - 1) = rho ^ L) by (replace L with (S (L - 1)) at 2 by lia; reflexivity).
  eapply er_weak; [exact X | |].
  + replace (rho * (rho ^ (L - 1) * (Rabs (G c L) * (rho ^ (3 * c + L + 2 + L) * (At (c + L) / Rabs (G c L))))))
      with (rho * rho ^ (L - 1) * rho ^ (3 * c + L + 2 + L) * At (c + L)) by (field; exact Z').
    rewrite RL, <- pow_add; apply Rmult_le_compat_r; [apply At_ge0 | apply (L5 rho_pow_mono); lia].
  + rewrite <- Rmult_assoc, RL, <- Rmult_assoc; apply segment_underflow; exact L1.
Qed.
End Entry.

(** * The bounds *)
Variables (t : nat) (Gam : R).
Hypothesis Gam_spec : forall s n, (s + n <= t)%nat -> Rabs (G s n) <= Gam.
Variables (b v : nat -> R) (k : nat -> nat -> R) (s0 : nat -> R) (q : nat -> R) (D : nat) (kc O0 : R).
Hypothesis kc_spec : forall r i, (i < D)%nat -> Rabs (k r i) <= kc.
Hypothesis O0_spec : forall i, (i < D)%nat -> Rabs (s0 i) <= O0.
Hypothesis D_pos : (1 <= D)%nat.
Local Notation e := (eta * Gam).
Local Notation Q := (Q q D).
Local Notation src := (sources O0 b v t).

Lemma Gam1 : 1 <= Gam.
Proof. pose proof (Gam_spec 0 0 ltac:(lia)) as H; simpl in H; rewrite Rabs_R1 in H; exact H. Qed.
Lemma k0 : 0 <= kc.
Proof. eapply Rle_trans; [apply Rabs_pos | apply (kc_spec 0 0); lia]. Qed.
Lemma O00 : 0 <= O0.
Proof. eapply Rle_trans; [apply Rabs_pos | apply (O0_spec 0); lia]. Qed.
Lemma sources_vs : sumn (fun s => 1 + Rabs (v s)) t + 1 <= src.
Proof.
unfold sources; pose proof O00.
assert (sumn (fun s => 1 + Rabs (v s)) t <= sumn (fun s => (1 + Rabs (b s)) * (1 + Rabs (v s))) t); [|lra].
apply sumn_le; intros i _; pose proof (Rabs_pos (b i)); pose proof (Rabs_pos (v i)); nra.
Qed.
Lemma small_power n N : (n <= N)%nat -> INR N * (u + e) <= 1 / 16 -> rho ^ n <= 16 / 15.
Proof.
intros Hn HN; pose proof Gam1; assert (0 <= e) by (apply Rmult_le_pos; lra).
pose proof (pos_INR N); assert (0 <= INR N * e) by (apply Rmult_le_pos; lra).
eapply Rle_trans; [apply (L5 rho_pow_mono n N Hn)|].
pose proof (L5 rho_gamma N ltac:(lra)) as P.
assert (0 <= INR N * u) by (apply Rmult_le_pos; lra).
assert (INR N * u / (1 - INR N * u) <= 1 / 15); [|lra].
apply Rmult_le_reg_r with (1 - INR N * u); [lra|].
unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra.
Qed.
Lemma count_0 n A M : 0 <= A -> (0 * INR t + (3 * INR t + INR n + 3)) * u < 1 ->
  (rho ^ (3 * t + 2 + n) - 1) * A <= count_bound u 0 (3 * INR t + INR n + 3) t M A.
Proof.
intros HA HN; set (c := 3 * INR t + INR n + 3) in *.
assert (P : rho ^ (3 * t + 2 + n) - 1 <= c * u / (1 - c * u)).
{ apply (pow_count u eta u_ge0 u_lt1 eta_ge0 g); [|apply Rle_refl | lra].
  unfold c; rewrite !plus_INR, mult_INR; simpl; lra. }
unfold count_bound; replace (0 * INR t + c) with c by ring.
replace (u * (0 * M + c * A) / (1 - c * u)) with (c * u / (1 - c * u) * A) by (unfold Rdiv; ring).
apply Rmult_le_compat_r; assumption.
Qed.

Theorem segmented_state_bound i M y : (i < D)%nat -> segmented (fun r => b r) (fun r => k r i) v (s0 i) t y ->
  INR (2 * t + 6) * (u + e) <= 1 / 16 -> (0 * INR t + (3 * INR t + INR 0 + 3)) * u < 1 ->
  Rabs (y - state g (w b (fun r => k r i) v) (s0 i) t) <=
    count_bound u 0 (3 * INR t + INR 0 + 3) t M (A g (aw b (fun r => k r i) v) (Rabs (s0 i)) t)
    + eta * underflow_amount t 1 Gam 0 kc src.
Proof.
intros Hi Hy Hu HN; pose proof Gam1 as G1; pose proof k0 as K0; pose proof sources_vs as SV.
assert (E0 : 0 <= e) by (apply Rmult_le_pos; lra).
assert (Ht : INR t * u <= 1 / 4).
{ rewrite plus_INR, mult_INR in Hu; pose proof (pos_INR t); simpl in Hu.
  assert (0 <= INR t * e) by (apply Rmult_le_pos; lra); assert (0 <= INR t * u) by (apply Rmult_le_pos; lra). lra. }
pose proof (segmented_good b (fun r => k r i) v (s0 i) kc (fun r => kc_spec r i Hi) t y Ht Hy) as (H1 & H2 & H3 & H4).
set (At := A g (aw b (fun r => k r i) v) (Rabs (s0 i)) t) in *.
assert (A0 : 0 <= At) by (eapply Rle_trans; [apply Rabs_pos | exact H1]).
pose proof (count_0 0 At M A0 HN) as C; rewrite Nat.add_0_r in C.
assert (HH : hb v kc t <= eta * underflow_amount t 1 Gam 0 kc src).
{ unfold hb, vs, underflow_amount.
  pose proof (small_power (2 * t + 2) (2 * t + 6) ltac:(lia) Hu) as P.
  pose proof (phi_le g t Gam Gam_spec t (le_n t)); pose proof (phi_ge1 g t).
  assert (V0 : 0 <= sumn (fun s => 1 + Rabs (v s)) t)
    by (apply sumn_ge0; intros j _; pose proof (Rabs_pos (v j)); lra).
  set (V := sumn (fun s => 1 + Rabs (v s)) t) in *.
  assert (PP : phi t <= Gam * Gam) by (assert (1 * Gam <= Gam * Gam) by (apply Rmult_le_compat_r; lra); lra).
  assert (RP : 3 * rho ^ (2 * t + 2) <= INR 1 * INR (3 * t + 1 + 6)).
  { rewrite !plus_INR, mult_INR; pose proof (pos_INR t); set (p := rho ^ (2 * t + 2)) in *; simpl; lra. }
  pose proof (L5 rho_pow_ge1 (2 * t + 2)).
  replace (3 * eta * rho ^ (2 * t + 2) * phi t * ((1 + kc) * V))
    with (eta * ((1 + kc) * (3 * rho ^ (2 * t + 2) * phi t * V))) by ring.
  replace (eta * (INR 1 * INR (3 * t + 1 + 6) * (Gam * Gam) * (1 + 0) * (1 + kc) * src))
    with (eta * ((1 + kc) * (INR 1 * INR (3 * t + 1 + 6) * (Gam * Gam) * src))) by ring.
  apply Rmult_le_compat_l; [lra|]; apply Rmult_le_compat_l; [lra|].
  apply Rmult_le_compat; [apply Rmult_le_pos; lra | lra | | lra].
  apply Rmult_le_compat; lra. }
lra.
Qed.

(* outputs: all entries of a column share the segments *)
Local Notation seg i := (segmented b (fun r => k r i) v (s0 i)).
Inductive segmented_output : nat -> R -> Prop :=
| so_state c sh y : (forall i, (i < D)%nat -> seg i c (sh i)) -> dot_hat u eta q sh D y -> segmented_output c y
| so_segment c L sh ph W d y : (1 <= L)%nat -> (forall i, (i < D)%nat -> seg i c (sh i)) -> in_range c L ->
    prefixes c L ph -> (forall i, (i < D)%nat -> divided_sum b (fun r => k r i) v c L (sh i) ph (W i)) ->
    dot_hat u eta q W D d -> near (ph L * d) y -> segmented_output (c + L) y.

Lemma dot_er m xh x a r h y : dot_hat u eta q xh D y -> 0 <= h ->
  (forall i, (i < D)%nat -> er (x i) (a i) (rho ^ m * r i) h (xh i)) ->
  er (sumn (fun i => q i * x i) D) (sumn (fun i => Rabs (q i) * a i) D)
     (rho ^ (D + m) * sumn (fun i => Rabs (q i) * r i) D)
     (rho ^ D * (Q * h) + INR (2 * D) * rho ^ D * eta) y.
Proof.
intros Hd Hh H.
pose proof ((L7 dot_raw) q xh x a (fun i => rho ^ m * r i - a i + h) D y Hd) as B.
cbv beta in B.
assert (E : sumn (fun i => Rabs (q i) * (a i + (rho ^ m * r i - a i + h))) D
  = rho ^ m * sumn (fun i => Rabs (q i) * r i) D + Q * h).
{ unfold output_counts.Q; rewrite (Rmult_comm (sumn _ D) h), <- !sumn_scal, <- sumn_plus.
  apply sumn_ext; intros; ring. }
rewrite E in B; clear E.
assert (B' := B (fun i Hi => conj (proj1 (H i Hi)) (proj2 (proj2 (proj2 (H i Hi)))))); clear B.
pose proof (L5 rho_pow_ge1 D) as PD.
assert (AR : sumn (fun i => Rabs (q i) * a i) D <= rho ^ m * sumn (fun i => Rabs (q i) * r i) D).
{ rewrite <- sumn_scal; apply sumn_le; intros i Hi; destruct (H i Hi) as (_ & X & _).
  rewrite <- Rmult_assoc, (Rmult_comm (rho ^ m)), Rmult_assoc; apply Rmult_le_compat_l; [apply Rabs_pos | exact X]. }
assert (A0 : 0 <= sumn (fun i => Rabs (q i) * a i) D).
{ apply sumn_ge0; intros i Hi; destruct (H i Hi) as (X & _); apply Rabs_ge0_mult.
  eapply Rle_trans; [apply Rabs_pos | exact X]. }
assert (Q0 : 0 <= Q) by (apply sumn_ge0; intros; apply Rabs_pos).
assert (0 <= Q * h) by (apply Rmult_le_pos; lra).
rewrite pow_add; set (sr := rho ^ m * sumn (fun i => Rabs (q i) * r i) D) in *.
unfold er; split; [|split; [|split]].
- eapply Rle_trans; [apply sumn_abs|]; apply sumn_le; intros i Hi; rewrite Rabs_mult.
  apply Rmult_le_compat_l; [apply Rabs_pos | apply (H i Hi)].
- rewrite Rmult_assoc; fold sr; assert (1 * sr <= rho ^ D * sr) by (apply Rmult_le_compat_r; lra); lra.
- assert (0 <= INR (2 * D) * rho ^ D * eta) by (apply Rmult_le_pos; [apply Rmult_le_pos; [apply pos_INR | lra] | lra]).
  assert (0 <= rho ^ D * (Q * h)) by (apply Rmult_le_pos; lra). lra.
- rewrite Rmult_assoc; fold sr.
  assert (INR (2 * D - 1) * rho ^ (D - 1) * eta <= INR (2 * D) * rho ^ D * eta).
  { apply Rmult_le_compat_r; [lra|]; apply Rmult_le_compat;
      [apply pos_INR | pose proof (L5 rho_pow_ge1 (D - 1)); lra | apply le_INR; lia | apply (L5 rho_pow_mono); lia]. }
  lra.
Qed.

Local Notation y_exact := (out g b v k s0 q D t).
Local Notation B := (A g (awq b v k q D) (a0q s0 q D) t).
Lemma B_eq : B = sumn (fun i => Rabs (q i) * A g (aw b (fun r => k r i) v) (Rabs (s0 i)) t) D.
Proof.
unfold awq, a0q; rewrite (A_F g rho).
rewrite (F_dot g rho (fun _ => O) (fun i => Rabs (q i)) (fun i => aw b (ki k i) v) (fun i => Rabs (s0 i)) D t).
apply sumn_ext; intros; now rewrite (A_F g rho).
Qed.

Theorem segmented_output_bound M y : (1 <= t)%nat -> segmented_output t y ->
  INR (2 * t + 2 * D + 4) * (u + e) <= 1 / 16 -> (0 * INR t + (3 * INR t + INR D + 3)) * u < 1 ->
  Rabs (y - y_exact) <= count_bound u 0 (3 * INR t + INR D + 3) t M B + eta * underflow_amount t D Gam Q kc src.
Proof.
intros T1 Hy Hu HN; pose proof Gam1 as G1; pose proof k0 as K0; pose proof sources_vs as SV.
assert (E0 : 0 <= e) by (apply Rmult_le_pos; lra).
assert (Ht : INR t * u <= 1 / 4).
{ rewrite !plus_INR, !mult_INR in Hu; pose proof (pos_INR t); pose proof (pos_INR D); simpl in Hu.
  assert (0 <= INR t * e) by (apply Rmult_le_pos; lra); assert (0 <= INR t * u) by (apply Rmult_le_pos; lra).
  assert (0 <= INR D * e) by (apply Rmult_le_pos; lra); assert (0 <= INR D * u) by (apply Rmult_le_pos; lra). lra. }
assert (Q0 : 0 <= Q) by (apply sumn_ge0; intros; apply Rabs_pos).
pose proof (phi_le g t Gam Gam_spec t (le_n t)) as PG; pose proof (phi_ge1 g t) as P1.
assert (V1 : 1 <= sumn (fun s => 1 + Rabs (v s)) t).
{ pose proof (v_sum_ge b (fun _ => 0) v 0 0 (fun _ => Req_le _ _ Rabs_R0) t 0) as X; simpl in X.
  assert (1 <= INR t) by (apply (le_INR 1); lia); lra. }
set (V := sumn (fun s => 1 + Rabs (v s)) t) in *.
assert (H0 : 0 <= hb v kc t).
{ unfold hb, vs; fold V; pose proof (L5 rho_pow_ge1 (2 * t + 2)).
  repeat (apply Rmult_le_pos; try lra). }
(* both cases: counts 3t + 2 + D, underflow below *)
enough (X : er y_exact B (rho ^ (3 * t + 2 + D) * B)
  (rho ^ D * (Q * hb v kc t) + INR (2 * D) * rho ^ (2 * t + 2 * D + 2) * phi t * eta + eta) y).
{ destruct X as (X1 & X2 & X3 & X4).
  assert (B0 : 0 <= B) by (eapply Rle_trans; [apply Rabs_pos | exact X1]).
  pose proof (count_0 D B M B0 HN) as C.
  assert (HH : rho ^ D * (Q * hb v kc t) + INR (2 * D) * rho ^ (2 * t + 2 * D + 2) * phi t * eta + eta
     <= eta * underflow_amount t D Gam Q kc src); [|lra].
  unfold underflow_amount, hb, vs; fold V.
  set (p := rho ^ (2 * t + 2 * D + 2)).
  assert (PP : p <= 16 / 15) by (apply (small_power _ (2 * t + 2 * D + 4)); [lia | exact Hu]).
  assert (Pp : 1 <= p) by apply (L5 rho_pow_ge1).
  assert (Pq : rho ^ D * rho ^ (2 * t + 2) <= p) by (unfold p; rewrite <- pow_add; apply (L5 rho_pow_mono); lia).
  assert (GG : phi t <= Gam * Gam) by (assert (1 * Gam <= Gam * Gam) by (apply Rmult_le_compat_r; lra); lra).
  set (Z := phi t * ((1 + kc) * V)).
  assert (Z1 : 1 <= Z).
  { unfold Z; assert (1 * 1 <= (1 + kc) * V) by (apply Rmult_le_compat; lra).
    assert (1 * 1 <= phi t * ((1 + kc) * V)) by (apply Rmult_le_compat; lra). lra. }
  assert (Zp : phi t <= Z).
  { unfold Z; assert (1 * 1 <= (1 + kc) * V) by (apply Rmult_le_compat; lra).
    assert (phi t * 1 <= phi t * ((1 + kc) * V)) by (apply Rmult_le_compat_l; lra). lra. }
  assert (D1 : 1 <= INR D) by (apply (le_INR 1); lia).
  assert (T1' : 1 <= INR t) by (apply (le_INR 1); lia).
  assert (N : INR (2 * D) = 2 * INR D) by (rewrite mult_INR; simpl; lra).
  rewrite N.
  assert (S1 : rho ^ D * (Q * (3 * eta * rho ^ (2 * t + 2) * phi t * ((1 + kc) * V))) <= eta * (3 * Q * (p * Z))).
  { replace (rho ^ D * (Q * (3 * eta * rho ^ (2 * t + 2) * phi t * ((1 + kc) * V))))
      with (3 * eta * Q * Z * (rho ^ D * rho ^ (2 * t + 2))) by (unfold Z; ring).
    replace (eta * (3 * Q * (p * Z))) with (3 * eta * Q * Z * p) by ring.
    apply Rmult_le_compat_l; [repeat (apply Rmult_le_pos; try lra) | exact Pq]. }
  assert (S2 : 2 * INR D * p * phi t * eta <= eta * (2 * INR D * (p * Z))).
  { replace (2 * INR D * p * phi t * eta) with (eta * (2 * INR D * p) * phi t) by ring.
    replace (eta * (2 * INR D * (p * Z))) with (eta * (2 * INR D * p) * Z) by ring.
    apply Rmult_le_compat_l; [|exact Zp]; apply Rmult_le_pos; [lra|].
    apply Rmult_le_pos; lra. }
  assert (S3 : eta <= eta * (p * Z)).
  { assert (1 * 1 <= p * Z) by (apply Rmult_le_compat; lra).
    assert (eta * 1 <= eta * (p * Z)) by (apply Rmult_le_compat_l; lra). lra. }
  assert (S4 : eta * ((3 * Q + 2 * INR D + 1) * (p * Z)) <=
     eta * (INR D * INR (3 * t + D + 6) * (Gam * Gam) * (1 + Q) * (1 + kc) * src)).
  { apply Rmult_le_compat_l; [exact eta_ge0|].
    assert (C1 : (3 * Q + 2 * INR D + 1) * p <= INR D * INR (3 * t + D + 6) * (1 + Q)).
    { rewrite !plus_INR, mult_INR; simpl.
      assert (C2 : 3 * Q + 2 * INR D + 1 <= (3 + 2 * INR D + 1) * (1 + Q)).
      { assert (0 <= INR D * Q) by (apply Rmult_le_pos; lra). lra. }
      assert (C3 : (3 + 2 * INR D + 1) * p <= INR D * ((1 + 1 + 1) * INR t + INR D + (1 + 1 + 1 + 1 + 1 + 1))).
      { assert ((3 + 2 * INR D + 1) * p <= (3 + 2 * INR D + 1) * (16 / 15)) by (apply Rmult_le_compat_l; lra).
        assert (INR D * (3 + INR D + 6) <= INR D * ((1 + 1 + 1) * INR t + INR D + (1 + 1 + 1 + 1 + 1 + 1)))
          by (apply Rmult_le_compat_l; lra).
        assert (1 * INR D <= INR D * INR D) by (apply Rmult_le_compat_r; lra). lra. }
      assert ((3 * Q + 2 * INR D + 1) * p <= (3 + 2 * INR D + 1) * (1 + Q) * p) by (apply Rmult_le_compat_r; lra).
      assert ((3 + 2 * INR D + 1) * p * (1 + Q) <= INR D * ((1 + 1 + 1) * INR t + INR D + (1 + 1 + 1 + 1 + 1 + 1)) * (1 + Q))
        by (apply Rmult_le_compat_r; lra).
      lra. }
    assert (C2 : Z <= (Gam * Gam) * ((1 + kc) * src)).
    { unfold Z; apply Rmult_le_compat; [lra | apply Rmult_le_pos; lra | exact GG |].
      apply Rmult_le_compat_l; lra. }
    replace (INR D * INR (3 * t + D + 6) * (Gam * Gam) * (1 + Q) * (1 + kc) * src)
      with (INR D * INR (3 * t + D + 6) * (1 + Q) * (Gam * Gam * ((1 + kc) * src))) by ring.
    rewrite <- Rmult_assoc; apply Rmult_le_compat; [|lra | exact C1 | exact C2].
    apply Rmult_le_pos; lra. }
  lra. }
assert (HT : exists t', t' = t /\ segmented_output t' y) by (exists t; auto).
clear HN Hy; destruct HT as (t' & Et & Hy); destruct Hy as [c sh y Hs Hd | c L sh ph W d y L1 Hs HR HP HW Hd N];
  [subst c|].
- pose proof (dot_er (3 * t + 2) sh (fun i => state g (w b (fun r => k r i) v) (s0 i) t)
    (fun i => A g (aw b (fun r => k r i) v) (Rabs (s0 i)) t) (fun i => A g (aw b (fun r => k r i) v) (Rabs (s0 i)) t) (hb v kc t) y Hd H0
    (fun i Hi => segmented_good b (fun r => k r i) v (s0 i) kc (fun r => kc_spec r i Hi) t (sh i) Ht (Hs i Hi))) as X.
  cbv beta in X; rewrite <- B_eq in X; eapply er_weak; [exact X | | ].
  + replace (D + (3 * t + 2))%nat with (3 * t + 2 + D)%nat by lia; lra.
  + assert (rho ^ D <= rho ^ (2 * t + 2 * D + 2)) by (apply (L5 rho_pow_mono); lia).
    pose proof (L5 rho_pow_ge1 D); pose proof (pos_INR (2 * D)).
    assert (INR (2 * D) * rho ^ D <= INR (2 * D) * rho ^ (2 * t + 2 * D + 2) * phi t).
    { assert (INR (2 * D) * rho ^ D <= INR (2 * D) * rho ^ (2 * t + 2 * D + 2)) by (apply Rmult_le_compat_l; lra).
      assert (0 <= INR (2 * D) * rho ^ (2 * t + 2 * D + 2)) by (apply Rmult_le_pos; lra).
      assert (INR (2 * D) * rho ^ (2 * t + 2 * D + 2) * 1 <= INR (2 * D) * rho ^ (2 * t + 2 * D + 2) * phi t)
        by (apply Rmult_le_compat_l; lra). lra. }
    assert (INR (2 * D) * rho ^ D * eta <= INR (2 * D) * rho ^ (2 * t + 2 * D + 2) * phi t * eta)
      by (apply Rmult_le_compat_r; lra). lra.
- assert (HcL : INR c * u <= 1 / 4 /\ INR L * u <= 1 / 4).
  { rewrite <- Et, plus_INR in Ht; pose proof (pos_INR c); pose proof (pos_INR L).
    assert (0 <= INR c * u) by (apply Rmult_le_pos; lra); assert (0 <= INR L * u) by (apply Rmult_le_pos; lra). lra. }
  pose proof B_eq as BE; rewrite <- Et in BE |- *; clear H0 PG P1 V1 SV V.
  destruct HcL as (Hc & HL).
  set (hW := rho ^ L * (hb v kc c + rho ^ 2 * eta * ((1 + kc) * sumn (fun j => 1 + Rabs (v (c + j)%nat)) L) + INR L * eta)).
  assert (Z : G c L <> 0).
  { intros E; pose proof (HR L ltac:(lia)) as Y; rewrite E, Rabs_R0 in Y; lra. }
  assert (Z' : Rabs (G c L) <> 0) by now apply Rabs_no_R0.
  assert (Wi : forall i, (i < D)%nat -> er (state g (w b (fun r => k r i) v) (s0 i) (c + L) / G c L)
     (A g (aw b (fun r => k r i) v) (Rabs (s0 i)) (c + L) / Rabs (G c L))
     (rho ^ (3 * c + L + 2 + L) * (A g (aw b (fun r => k r i) v) (Rabs (s0 i)) (c + L) / Rabs (G c L))) hW (W i)).
  { intros i Hi; apply (divided_sum_er b (fun r => k r i) v (s0 i) kc (fun r => kc_spec r i Hi) c L (sh i) ph (W i));
      auto; apply (segmented_good b (fun r => k r i) v (s0 i) kc (fun r => kc_spec r i Hi)); auto. }
  assert (hW0 : 0 <= hW) by (destruct (Wi O ltac:(lia)) as (_ & _ & X & _); exact X).
  pose proof (dot_er (3 * c + L + 2 + L) W (fun i => state g (w b (fun r => k r i) v) (s0 i) (c + L) / G c L)
    (fun i => A g (aw b (fun r => k r i) v) (Rabs (s0 i)) (c + L) / Rabs (G c L)) (fun i => A g (aw b (fun r => k r i) v) (Rabs (s0 i)) (c + L) / Rabs (G c L))
    hW d Hd hW0 Wi) as X.
  pose proof (prefix_relative c L ph HL HR HP L ltac:(lia)) as Rl.
  apply (er_relative _ _ _ _ _ _ _ _ Rl) in X; apply er_near with (z := y) in X; [|exact N].
  assert (RL : rho * rho ^ (L - 1) = rho ^ L) by (replace L with (S (L - 1)) at 2 by lia; reflexivity).
  assert (EX : G c L * sumn (fun i => q i * (state g (w b (fun r => k r i) v) (s0 i) (c + L) / G c L)) D
     = out g b v k s0 q D (c + L)).
  { unfold out; rewrite <- sumn_scal; apply sumn_ext; intros i _; unfold ki; field; exact Z. }
  assert (EB : Rabs (G c L) * sumn (fun i => Rabs (q i) * (A g (aw b (fun r => k r i) v) (Rabs (s0 i)) (c + L) / Rabs (G c L))) D
     = A g (awq b v k q D) (a0q s0 q D) (c + L)).
  { rewrite BE, <- sumn_scal; apply sumn_ext; intros i _; field; exact Z'. }
  cbv beta in X; rewrite EX, EB in X.
  assert (B0 : 0 <= A g (awq b v k q D) (a0q s0 q D) (c + L)).
  { destruct X as (X & _); eapply Rle_trans; [apply Rabs_pos | exact X]. }
  eapply er_weak; [exact X | |].
  + replace (rho * (rho ^ (L - 1) * (Rabs (G c L) * (rho ^ (D + (3 * c + L + 2 + L)) *
      sumn (fun i => Rabs (q i) * (A g (aw b (fun r => k r i) v) (Rabs (s0 i)) (c + L) / Rabs (G c L))) D))))
      with (rho * rho ^ (L - 1) * rho ^ (D + (3 * c + L + 2 + L)) * (Rabs (G c L) *
      sumn (fun i => Rabs (q i) * (A g (aw b (fun r => k r i) v) (Rabs (s0 i)) (c + L) / Rabs (G c L))) D)) by ring.
    rewrite EB, RL, <- pow_add; apply Rmult_le_compat_r; [exact B0 | apply (L5 rho_pow_mono); lia].
  + pose proof (segment_underflow b (fun _ => 0) v 0 kc (fun r => eq_ind_r (fun z => z <= kc) K0 Rabs_R0) c L L1) as SU.
    fold hW in SU.
    assert (GP : Rabs (G c L) <= phi (c + L)).
    { pose proof (phi_ge1 g c); pose proof (G_cap u eta u_ge0 u_lt1 eta_ge0 e E0 g t Gam Gam_spec (Rle_refl _) c L) as Y.
      pose proof (phi_ge1 g (c + L)); eapply Rle_trans; [exact Y|].
      assert (/ phi c <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
      unfold Rdiv; assert (phi (c + L) * / phi c <= phi (c + L) * 1) by (apply Rmult_le_compat_l; lra); lra. }
    replace (rho * (rho ^ (L - 1) * (Rabs (G c L) * (rho ^ D * (Q * hW) + INR (2 * D) * rho ^ D * eta))) + eta)
      with (rho ^ D * (Q * (rho * rho ^ (L - 1) * Rabs (G c L) * hW))
            + INR (2 * D) * (rho * rho ^ (L - 1) * rho ^ D) * Rabs (G c L) * eta + eta) by ring.
    rewrite RL, <- pow_add.
    apply Rplus_le_compat_r, Rplus_le_compat.
    * pose proof (L5 rho_pow_ge1 D); apply Rmult_le_compat_l; [lra|]; apply Rmult_le_compat_l; [exact Q0 | lra].
    * apply Rmult_le_compat_r; [exact eta_ge0|]; pose proof (L5 rho_pow_ge1 (L + D)).
      apply Rmult_le_compat; [apply Rmult_le_pos; [apply pos_INR | lra] | apply Rabs_pos | | exact GP].
      apply Rmult_le_compat_l; [apply pos_INR | apply (L5 rho_pow_mono); lia].
Qed.

(* the plain closed form is one segment from step 0 *)
Corollary prefix_product_state_bound i M ph W y : (i < D)%nat -> (1 <= t)%nat -> in_range 0 t -> prefixes 0 t ph ->
  divided_sum b (fun r => k r i) v 0 t (s0 i) ph W -> near (ph t * W) y ->
  INR (2 * t + 6) * (u + e) <= 1 / 16 -> (0 * INR t + (3 * INR t + INR 0 + 3)) * u < 1 ->
  Rabs (y - state g (w b (fun r => k r i) v) (s0 i) t) <=
    count_bound u 0 (3 * INR t + INR 0 + 3) t M (A g (aw b (fun r => k r i) v) (Rabs (s0 i)) t)
    + eta * underflow_amount t 1 Gam 0 kc src.
Proof.
intros Hi T1 HR HP HW N; apply segmented_state_bound; [exact Hi|].
change t with (0 + t)%nat; eapply sg_segment; [exact T1 | apply sg_init | exact HR | exact HP | exact HW | exact N].
Qed.
Corollary prefix_product_output_bound M ph W d y : (1 <= t)%nat -> in_range 0 t -> prefixes 0 t ph ->
  (forall i, (i < D)%nat -> divided_sum b (fun r => k r i) v 0 t (s0 i) ph (W i)) ->
  dot_hat u eta q W D d -> near (ph t * d) y ->
  INR (2 * t + 2 * D + 4) * (u + e) <= 1 / 16 -> (0 * INR t + (3 * INR t + INR D + 3)) * u < 1 ->
  Rabs (y - y_exact) <= count_bound u 0 (3 * INR t + INR D + 3) t M B + eta * underflow_amount t D Gam Q kc src.
Proof.
intros T1 HR HP HW Hd N; apply segmented_output_bound; [exact T1|].
change t with (0 + t)%nat; eapply so_segment; [exact T1 | | exact HR | exact HP | exact HW | exact Hd | exact N].
intros i _; apply sg_init.
Qed.
End Prefix.

(** * The test that a program can make *)
(* p: the product of |gates| in float64 (unit roundoff v, no underflow met); tiny = 2^-126 *)
Theorem supports_implies_range v tiny (g p : nat -> R) L : 0 <= v < 1 -> 0 < tiny -> INR L * v <= 1 / 4 ->
  p O = 1 -> (forall j, (j < L)%nat -> Rabs (p (S j) - p j * Rabs (g j)) <= v * Rabs (p j * Rabs (g j))) ->
  (forall j, (1 <= j <= L)%nat -> 2 * tiny <= p j) -> in_range tiny g 0 L.
Proof.
intros Hv Ht HL P0 PS PR j Hj.
assert (B : forall j, (j <= L)%nat -> 0 <= p j <= Rabs (G g 0 j) * (1 + v) ^ j).
{ clear j Hj; induction j as [|j IH]; intros Hj; [simpl; rewrite P0, Rabs_R1; lra|].
  specialize (IH ltac:(lia)); pose proof (PS j ltac:(lia)) as X; pose proof (PR (S j) ltac:(lia)).
  pose proof (Rabs_pos (g j)); pose proof (Rabs_pos (G g 0 j)).
  assert (Y : 0 <= p j * Rabs (g j)) by (apply Rmult_le_pos; lra).
  rewrite (Rabs_pos_eq _ Y) in X; apply Rabs_between in X.
  split; [lra|]; cbn [G pow]; rewrite Nat.add_0_l, Rabs_mult.
  assert (p j * Rabs (g j) * (1 + v) <= Rabs (G g 0 j) * (1 + v) ^ j * Rabs (g j) * (1 + v)).
  { apply Rmult_le_compat_r; [lra|]; apply Rmult_le_compat_r; lra. }
  lra. }
destruct (B j ltac:(lia)) as (_ & B2); pose proof (PR j Hj).
assert (E : (1 + v) ^ j <= 4 / 3).
{ assert (INR j <= INR L) by (apply le_INR; lia).
  assert (INR j * v <= INR L * v) by (apply Rmult_le_compat_r; lra).
  pose proof (rho_gamma v 0 ltac:(lra) ltac:(lra) (Rle_refl 0) j ltac:(lra)) as X.
  assert ((1 + v) ^ j <= rho v ^ j).
  { apply pow_incr; pose proof (rho_ge v 0 ltac:(lra) ltac:(lra) (Rle_refl 0)); lra. }
  assert (INR j * v / (1 - INR j * v) <= 1 / 3); [|lra].
  apply Rmult_le_reg_r with (1 - INR j * v); [lra|].
  unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra. }
pose proof (Rabs_pos (G g 0 j)).
assert (Rabs (G g 0 j) * (1 + v) ^ j <= Rabs (G g 0 j) * (4 / 3)) by (apply Rmult_le_compat_l; lra).
lra.
Qed.

(** * Why it fails outside: a product below eta may be computed as 0, and 0 times anything is 0 *)
Theorem closed_form_fails u eta P W : 0 <= u -> 0 <= eta -> Rabs P <= eta ->
  near u eta P 0 /\ near u eta (0 * W) 0 /\ Rabs (0 - P * W) = Rabs (P * W).
Proof.
intros Hu He HP; unfold near; rewrite Rmult_0_l, !Rminus_0_l, !Rabs_Ropp, Rabs_R0; pose proof (Rabs_pos P).
assert (0 <= u * Rabs P) by (apply Rmult_le_pos; lra); repeat split; lra.
Qed.
