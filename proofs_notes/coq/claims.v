(* The claims: one theorem an id, dots written as underscores.  Constants are functions into the
   rationals (or nat, for counts that enter gamma_n), so that evaluate.v can print their values and
   a test can compare them with the C++ functions of the same names.

   Main results
     recurrence_<form>_state, recurrence_<form>_output for
       sequential, masked_attention, chunked, scan, scan_carried, any_order, prefix_product,
       prefix_product_segmented, any_form
     recurrence_sequential_running       the running bound, state and output
     recurrence_underflow                the closed form of the underflow amount
     axial_layer_norm_two_pass, axial_layer_norm_one_pass, axial_linear,
     axial_attention_two_pass, axial_attention_online, axial_residual, axial_block, axial_any_form                     *)
From Coq Require Import Reals QArith Qreals List Lra Lia Permutation.
Require Import counter_calculus recurrence_counts output_counts recurrence_bounds running_bound
  prefix_product any_form linear layer_norm softmax weighted_mean attention attention_online axial_block.
Open Scope R_scope.

(** * Constants *)
Notation rational := QArith_base.Q.
Definition qn (n : nat) : rational := inject_Z (Z.of_nat n).
Lemma Q2R_qn n : Q2R (qn n) = INR n.
Proof. unfold qn, Q2R, inject_Z; simpl; rewrite <- INR_IZR_INZ; field. Qed.
Lemma qn_nonzero n : (1 <= n)%nat -> ~ (qn n == 0)%Q.
Proof.
intros H E; apply Qeq_eqR in E; rewrite Q2R_qn in E; apply (le_INR 1) in H; simpl in H.
change (Q2R 0) with (0 * / 1) in E; lra.
Qed.
Lemma Q2R_pos p : Q2R (inject_Z (Zpos p)) = IZR (Zpos p).
Proof. unfold Q2R; simpl; field. Qed.

Record count := Count { per_age : rational; fixed : rational }.
Local Open Scope Q_scope.
Definition sequential_output (t D : nat) := Count 2 (qn D + 3).
Definition sequential_state (t : nat) := Count 2 3.
Definition masked_attention_output (t D : nat) := Count 1 (qn t + qn D + 2).
Definition masked_attention_state (t : nat) := Count 1 (qn t + 2).
Definition chunked_output (t D chunk : nat) := let C := qn (Nat.min chunk t) in Count (1 + / C) (2 * C + qn D + 4).
Definition chunked_state (t chunk : nat) := let C := qn (Nat.min chunk t) in Count (1 + / C) (2 * C + 4).
Definition scan_output (t D : nat) := Count 1 (2 * qn (Nat.log2_up t) + qn D + 4).
Definition scan_state (t : nat) := Count 1 (2 * qn (Nat.log2_up t) + 4).
Definition any_order_output (t D : nat) := Count 0 (2 * qn t + qn D + 4).
Definition any_order_state (t : nat) := Count 0 (2 * qn t + 4).
Definition prefix_product_output (t D : nat) := Count 0 (3 * qn t + qn D + 3).
Definition prefix_product_state (t : nat) := Count 0 (3 * qn t + 3).
Definition any_form_output (t D : nat) := Count 0 (3 * qn t + qn D + 4).
Definition any_form_state (t : nat) := Count 0 (3 * qn t + 4).
Definition underflow_amount_q (t D : nat) (Gam normq kc src : rational) : rational :=
  qn D * qn (3 * t + D + 6) * (Gam * Gam) * (1 + normq) * (1 + kc) * src.
Definition count_bound_q (u : rational) (c : count) (t : nat) (M A : rational) : rational :=
  u * (per_age c * M + fixed c * A) / (1 - (per_age c * qn t + fixed c) * u).
Definition gamma_q (u : rational) (n : nat) : rational := qn n * u / (1 - qn n * u).
Local Close Scope Q_scope.

(* counts that enter gamma_n *)
Definition mean_roundings n := (n + 1)%nat.
Definition mean_square_roundings n := (n + 2)%nat.
Definition variance_roundings n := (n + 5)%nat.
Definition root_roundings := 3%nat.
Definition normalize_roundings := 3%nat.
Definition folded_roundings := 2%nat.
Definition linear_roundings (n : nat) := n.
Definition linear_with_bias_roundings n := Datatypes.S n.
Definition logit_roundings d := (d + 3)%nat.
Definition numerator_roundings L J := (L + J)%nat.
Definition quotient_roundings L J := (L + J + 1)%nat.
Definition quotient_lost_q (L J : nat) (tiny V : rational) : rational := (64 * qn L * qn (Datatypes.S J) * tiny * (1 + V))%Q.

Ltac to_reals := unfold sequential_output, sequential_state, masked_attention_output, masked_attention_state,
  chunked_output, chunked_state, scan_output, scan_state, any_order_output, any_order_state, prefix_product_output,
  prefix_product_state, any_form_output, any_form_state in *; cbv zeta in *; cbn [per_age fixed] in *;
  rewrite ?Q2R_plus, ?Q2R_mult, ?Q2R_plus, ?Q2R_qn, ?Q2R_pos in *;
  change (Q2R 0) with (0 * / 1) in *; change (Q2R 1) with (1 * / 1) in *; change (Q2R 2) with (2 * / 1) in *;
  change (Q2R 3) with (3 * / 1) in *; change (Q2R 4) with (4 * / 1) in *;
  rewrite ?Rinv_1, ?Rmult_1_r, ?Rmult_0_l in *.

(* the values that evaluate.v prints are those of the theorems *)
Theorem recurrence_underflow t D Gam normq kc src :
  Q2R (underflow_amount_q t D Gam normq kc src)
  = underflow_amount t D (Q2R Gam) (Q2R normq) (Q2R kc) (Q2R src).
Proof.
unfold underflow_amount_q, underflow_amount; rewrite !Q2R_mult, !Q2R_plus, !Q2R_qn.
replace (Q2R 1) with 1 by (unfold Q2R; simpl; field); reflexivity.
Qed.
Theorem count_bound_q_spec u c t M A :
  ~ ((1 - (per_age c * qn t + fixed c) * u)%Q == 0)%Q ->
  Q2R (count_bound_q u c t M A) = count_bound (Q2R u) (Q2R (per_age c)) (Q2R (fixed c)) t (Q2R M) (Q2R A).
Proof.
intros H; unfold count_bound_q, count_bound; rewrite Q2R_div by exact H.
rewrite !Q2R_mult, Q2R_minus, !Q2R_mult, !Q2R_plus, !Q2R_mult, Q2R_qn.
replace (Q2R 1) with 1 by (unfold Q2R; simpl; field); reflexivity.
Qed.

(** * The recurrence *)
Section Recurrence.
Variables u eta : R.
Hypothesis u_ge0 : 0 <= u.
Hypothesis u_lt1 : u < 1.
Hypothesis eta_ge0 : 0 <= eta.
Variables (g : nat -> R) (t : nat) (Gam : R).
Hypothesis Gam_spec : forall s n, (s + n <= t)%nat -> Rabs (recurrence_counts.G g s n) <= Gam.
Variables (b v : nat -> R) (k : nat -> nat -> R) (s0 : nat -> R) (q : nat -> R) (D : nat) (kc O0 : R).
Hypothesis kc_spec : forall r i, (i < D)%nat -> Rabs (k r i) <= kc.
Hypothesis O0_spec : forall i, (i < D)%nat -> Rabs (s0 i) <= O0.
Hypothesis D_pos : (1 <= D)%nat.
Hypothesis t_pos : (1 <= t)%nat.
Local Notation Lb x := (x u eta u_ge0 u_lt1 eta_ge0 g t Gam Gam_spec b v k s0 q D kc O0 kc_spec O0_spec D_pos) (only parsing).

Local Notation exact_state i := (recurrence_counts.state g (recurrence_counts.w b (ki k i) v) (s0 i) t).
Local Notation exact_output := (out g b v k s0 q D t).
Local Notation A_state i := (recurrence_counts.A g (recurrence_counts.aw b (ki k i) v) (Rabs (s0 i)) t).
Local Notation M_state i := (recurrence_counts.M g (recurrence_counts.aw b (ki k i) v) (Rabs (s0 i)) t).
Local Notation A_output := (recurrence_counts.A g (awq b v k q D) (a0q s0 q D) t).
Local Notation M_output := (recurrence_counts.M g (awq b v k q D) (a0q s0 q D) t).
Definition underflow_applies n := INR (2 * t + 2 * n + 4) * (u + eta * Gam) <= 1 / 16.
Definition applies (c : count) := (Q2R (per_age c) * INR t + Q2R (fixed c)) * u < 1.
Definition state_bound_of (c : count) i y := applies c -> underflow_applies 1 ->
  Rabs (y - exact_state i) <= count_bound u (Q2R (per_age c)) (Q2R (fixed c)) t (M_state i) (A_state i)
    + eta * underflow_amount t 1 Gam 0 kc (sources O0 b v t).
Definition output_bound_of (c : count) y := applies c -> underflow_applies D ->
  Rabs (y - exact_output) <= count_bound u (Q2R (per_age c)) (Q2R (fixed c)) t M_output A_output
    + eta * underflow_amount t D Gam (Q q D) kc (sources O0 b v t).
Lemma two_one : INR (2 * t + 2 * 1 + 4) = INR (2 * t + 6). Proof. f_equal; lia. Qed.
Ltac start := unfold state_bound_of, output_bound_of, applies, underflow_applies; rewrite ?two_one; intros Ha Hu; to_reals.

Theorem recurrence_sequential_state i y : (i < D)%nat ->
  sequential u eta g b (ki k i) v (s0 i) t y -> state_bound_of (sequential_state t) i y.
Proof. intros Hi H; start; now apply (Lb sequential_state_bound i Hi). Qed.
Theorem recurrence_sequential_output sh y :
  (forall i, (i < D)%nat -> sequential u eta g b (ki k i) v (s0 i) t (sh i)) -> dot_hat u eta q sh D y ->
  output_bound_of (sequential_output t D) y.
Proof. intros H Hd; start; now apply (Lb sequential_output_bound sh y t_pos H Hd). Qed.

Theorem recurrence_masked_attention_state i y : (i < D)%nat ->
  sum_block u eta g b (ki k i) v 0 t (s0 i) y -> state_bound_of (masked_attention_state t) i y.
Proof. intros Hi H; start; now apply (Lb masked_attention_state_bound i Hi y t_pos H). Qed.
Theorem recurrence_masked_attention_output y :
  attention u eta g b v k q D 0 t s0 y -> output_bound_of (masked_attention_output t D) y.
Proof. intros H; start; now apply (Lb masked_attention_output_bound y t_pos H). Qed.

(* chunks of C = min(chunk, t): c whole ones before the last, which has r steps *)
Theorem recurrence_chunked_state chunk c r i y : (i < D)%nat -> (1 <= chunk)%nat -> let C := Nat.min chunk t in
  (1 <= r <= C)%nat -> t = (c * C + r)%nat -> recurrence_counts.chunked_state u eta g b (ki k i) v (s0 i) C c r y ->
  state_bound_of (claims.chunked_state t chunk) i y.
Proof.
intros Hi H1 C Hr Ht H; assert (HC : (C <= t)%nat) by apply Nat.le_min_r.
assert (CN : ~ (qn C == 0)%Q) by (apply qn_nonzero; lia).
start; fold C in Ha |- *; rewrite !(Q2R_inv _ CN), !Q2R_qn in *.
now apply (Lb chunked_state_bound i Hi C c r y Hr HC Ht H).
Qed.
Theorem recurrence_chunked_output chunk c r sh y : (1 <= chunk)%nat -> let C := Nat.min chunk t in
  (1 <= r <= C)%nat -> t = (c * C + r)%nat ->
  (forall i, (i < D)%nat -> chunk_states u eta g b (ki k i) v (s0 i) C c (sh i)) ->
  attention u eta g b v k q D (c * C) r sh y -> output_bound_of (chunked_output t D chunk) y.
Proof.
intros H1 C Hr Ht H Ha; assert (HC : (C <= t)%nat) by apply Nat.le_min_r.
assert (CN : ~ (qn C == 0)%Q) by (apply qn_nonzero; lia).
rename Ha into Hatt; start; fold C in Ha |- *; rewrite !(Q2R_inv _ CN), !Q2R_qn in *.
now apply (Lb chunked_output_bound C c r sh y Hr HC Ht H Hatt).
Qed.

(* a scan whose trees have C = min(chunk, t) steps, the state carried from one to the next: the constants of chunked *)
Theorem recurrence_scan_carried_state chunk c r i y : (i < D)%nat -> (1 <= chunk)%nat -> let C := Nat.min chunk t in
  (1 <= r <= C)%nat -> t = (c * C + r)%nat -> recurrence_counts.scan_carried_state u eta g b (ki k i) v (s0 i) C c r y ->
  state_bound_of (claims.chunked_state t chunk) i y.
Proof.
intros Hi H1 C Hr Ht H; apply (recurrence_chunked_state chunk c r i y Hi H1 Hr Ht).
exact (scan_carried_chunked u eta g b (ki k i) v (s0 i) _ c r y H).
Qed.
Theorem recurrence_scan_carried_output chunk c r sh y : (1 <= chunk)%nat -> let C := Nat.min chunk t in
  (1 <= r <= C)%nat -> t = (c * C + r)%nat ->
  (forall i, (i < D)%nat -> recurrence_counts.scan_carried_state u eta g b (ki k i) v (s0 i) C c r (sh i)) ->
  dot_hat u eta q sh D y -> output_bound_of (chunked_output t D chunk) y.
Proof.
intros H1 C Hr Ht H Hy; assert (HC : (C <= t)%nat) by apply Nat.le_min_r.
assert (CN : ~ (qn C == 0)%Q) by (apply qn_nonzero; lia).
start; fold C in Ha |- *; rewrite !(Q2R_inv _ CN), !Q2R_qn in *.
now apply (Lb scan_carried_output_bound C c r sh y Hr HC Ht H Hy).
Qed.
Theorem recurrence_scan_state d i y : (i < D)%nat -> (d <= 2 * Nat.log2_up t + 1)%nat ->
  recurrence_counts.scan_state u eta g b (ki k i) v (s0 i) t d y -> state_bound_of (claims.scan_state t) i y.
Proof. intros Hi Hd H; start; now apply (Lb scan_state_bound i Hi d y Hd H). Qed.
Theorem recurrence_scan_output d sh y : (d <= 2 * Nat.log2_up t + 1)%nat ->
  (forall i, (i < D)%nat -> recurrence_counts.scan_state u eta g b (ki k i) v (s0 i) t d (sh i)) -> dot_hat u eta q sh D y ->
  output_bound_of (scan_output t D) y.
Proof. intros Hd H Hy; start; now apply (Lb scan_output_bound d sh y t_pos Hd H Hy). Qed.

Theorem recurrence_any_order_state i y : (i < D)%nat ->
  any_form u eta g b (ki k i) v (s0 i) t y -> state_bound_of (any_order_state t) i y.
Proof. intros Hi H; start; apply (Lb any_order_state_bound i Hi y H Hu); rewrite Rmult_0_l; exact Ha. Qed.
Theorem recurrence_any_order_output y :
  any_output u eta g b v k s0 q D t y -> output_bound_of (any_order_output t D) y.
Proof. intros H; start; apply (Lb any_order_output_bound y t_pos H Hu); rewrite Rmult_0_l; exact Ha. Qed.

(* divisions: products at or above tiny, the smallest normal number, have relative errors *)
Variable tiny : R.
Hypothesis tiny_pos : 0 < tiny.
Local Notation Lt x := (x u eta u_ge0 u_lt1 eta_ge0 tiny tiny_pos g t Gam Gam_spec b v k s0 q D kc O0 kc_spec O0_spec D_pos) (only parsing).
Theorem recurrence_prefix_product_segmented_state i y : (i < D)%nat ->
  segmented u eta tiny g b (ki k i) v (s0 i) t y -> state_bound_of (prefix_product_state t) i y.
Proof.
intros Hi H; start.
pose proof (Lt segmented_state_bound i (M_state i) y Hi H Hu) as B; simpl INR in B; rewrite Rmult_0_l, Rplus_0_r in B.
apply B; lra.
Qed.
Theorem recurrence_prefix_product_segmented_output y :
  segmented_output u eta tiny g b v k s0 q D t y -> output_bound_of (prefix_product_output t D) y.
Proof.
intros H; start; apply (Lt segmented_output_bound M_output y t_pos H Hu); rewrite Rmult_0_l; lra.
Qed.
Theorem recurrence_prefix_product_state i ph W y : (i < D)%nat -> in_range tiny g 0 t -> prefixes u eta tiny g 0 t ph ->
  divided_sum u eta b (ki k i) v 0 t (s0 i) ph W -> near u eta (ph t * W) y -> state_bound_of (prefix_product_state t) i y.
Proof.
intros Hi HR HP HW HN; apply (recurrence_prefix_product_segmented_state i y Hi).
change t with (0 + t)%nat; eapply sg_segment; [exact t_pos | apply sg_init | exact HR | exact HP | exact HW | exact HN].
Qed.
Theorem recurrence_prefix_product_output ph W d y : in_range tiny g 0 t -> prefixes u eta tiny g 0 t ph ->
  (forall i, (i < D)%nat -> divided_sum u eta b (ki k i) v 0 t (s0 i) ph (W i)) ->
  dot_hat u eta q W D d -> near u eta (ph t * d) y -> output_bound_of (prefix_product_output t D) y.
Proof.
intros HR HP HW Hd HN; apply recurrence_prefix_product_segmented_output.
change t with (0 + t)%nat; eapply so_segment; [exact t_pos | intros; apply sg_init | exact HR | exact HP | exact HW | exact Hd | exact HN].
Qed.

Theorem recurrence_any_form_state i y : (i < D)%nat ->
  any_form u eta g b (ki k i) v (s0 i) t y \/ segmented u eta tiny g b (ki k i) v (s0 i) t y ->
  state_bound_of (any_form_state t) i y.
Proof.
intros Hi H; start; apply (Lt any_form_state_bound i (M_state i) y Hi H Hu); rewrite Rmult_0_l; exact Ha.
Qed.
Theorem recurrence_any_form_output y :
  any_output u eta g b v k s0 q D t y \/ segmented_output u eta tiny g b v k s0 q D t y ->
  output_bound_of (any_form_output t D) y.
Proof.
intros H; start; apply (Lt any_form_output_bound M_output y t_pos H Hu); rewrite Rmult_0_l; exact Ha.
Qed.
End Recurrence.

Definition recurrence_sequential_running := running_output_bound.
Definition recurrence_sequential_running_state := running_state_bound.

(** * The axial block *)
Section Axial.
Variables u eta : R.
Hypothesis u_ge0 : 0 <= u.
Hypothesis u_lt1 : u < 1.
Hypothesis eta_ge0 : 0 <= eta.

Theorem axial_linear W xh b n y : (1 <= n)%nat -> short u (Datatypes.S n) -> affine_hat u eta W xh b n y ->
  Rabs (y - (sumn (fun i => W i * xh i) n + b)) <=
    gamma u (linear_with_bias_roundings n) * (sumn (fun i => Rabs (W i) * Rabs (xh i)) n + Rabs b) + (2 * INR n + 1) * eta.
Proof. exact (linear_bias_bound u eta u_ge0 u_lt1 eta_ge0 W xh b n y). Qed.
Theorem axial_linear_without_bias W xh n y : short u n -> dot_hat u eta W xh n y ->
  Rabs (y - sumn (fun i => W i * xh i) n) <=
    gamma u (linear_roundings n) * sumn (fun i => Rabs (W i) * Rabs (xh i)) n + 2 * INR n * eta.
Proof. exact (linear_bound u eta u_ge0 u_lt1 eta_ge0 W xh n y). Qed.
Theorem axial_layer_norm_counts n x e f r moved RR wt eps e_v gr bias i :
  (e_mu u eta n x e = gamma u (mean_roundings n) * mean n (layer_norm.size x e) + 2 * eta) /\
  (two_pass_e_v u eta n x e = gamma u (variance_roundings n) * (var n x + shift u eta n x e) + shift u eta n x e + 8 * eta) /\
  (one_pass_e_v u eta n x e = (1 + u) * (gamma u (mean_square_roundings n) * mean n (fun i => layer_norm.size x e i * layer_norm.size x e i)
    + (1 + u) * (2 * m_size n x e * e_mu u eta n x e + e_mu u eta n x e * e_mu u eta n x e) + u * (m_size n x e * m_size n x e))
    + u * (var n x + input_var n x e) + input_var n x e + 8 * eta) /\
  (f = layer_norm.f n x i -> r = layer_norm.r n x eps -> moved = layer_norm.moved u eta n x e i -> RR = layer_norm.RR u n x eps e_v gr ->
   local u eta n x e eps e_v gr wt bias i = gamma u normalize_roundings * (1 + u) * (Rabs (wt i) * r * (1 + RR) * (Rabs f + moved))
     + u * (Rabs (exact n x eps wt bias i) + common u eta n x e eps e_v gr wt i)
     + 4 * eta * ((1 + Rabs (wt i)) * (1 + (1 + RR) * r) * (1 + (Rabs f + moved)))).
Proof. repeat split; intros; subst; reflexivity. Qed.
Theorem axial_any_form_counts n x e f r moved RR wt eps e_v gr bias i size m :
  f = layer_norm.f n x i -> r = layer_norm.r n x eps -> moved = layer_norm.moved u eta n x e i -> RR = layer_norm.RR u n x eps e_v gr ->
  size = layer_norm.size x e i -> m = m_size n x e + e_mu u eta n x e ->
  any_local u eta n x e eps e_v gr wt bias i = gamma u normalize_roundings * (1 + u) * (Rabs (wt i) * r * (1 + RR) * (Rabs f + moved))
    + u * (Rabs (exact n x eps wt bias i) + common u eta n x e eps e_v gr wt i)
    + gamma u folded_roundings * (Rabs (wt i) * r * (1 + RR) * (size + 2 * m) + Rabs (bias i))
    + 8 * eta * ((1 + Rabs (wt i)) * (1 + (1 + RR) * r) * (1 + (size + m))).
Proof. intros; subst; reflexivity. Qed.
Definition axial_layer_norm_two_pass us eg es n eps np ns ee := normalised_functional u eta u_ge0 us eg es n eps np ns ee true.
Definition axial_layer_norm_one_pass us eg es n eps np ns ee := normalised_functional u eta u_ge0 us eg es n eps np ns ee false.
Theorem axial_layer_norm_root ah s rh : 3 * u < 1 -> 0 < ah -> Rabs (s - sqrt ah) <= u * sqrt ah -> Rabs (rh - / s) <= u * / s ->
  Rabs (rh * sqrt ah - 1) <= gamma u root_roundings.
Proof. intros H; exact (correctly_rounded_root u eta u_ge0 H eta_ge0 ah s rh). Qed.
Theorem axial_logit d qh kh s scale c y : (1 <= d)%nat -> short u (d + 3) -> 0 <= scale <= 1 ->
  relative u 2 scale c -> dot_hat u eta qh kh d s -> near u eta (c * s) y ->
  Rabs (y - scale * sumn (fun i => qh i * kh i) d) <=
    gamma u (logit_roundings d) * (scale * sumn (fun i => Rabs (qh i) * Rabs (kh i)) d) + 4 * INR d * eta.
Proof. exact (logit_bound u eta u_ge0 u_lt1 eta_ge0 d qh kh s scale c y). Qed.
Theorem axial_attention_counts eps tiny L J z ez top ez_max v ev mx V :
  attention_online.quotient_error u eta eps (Q2R tiny) L J z ez top ez_max v ev mx (Q2R V) =
    (1 + gamma u (quotient_roundings L J)) * (gamma u (numerator_roundings L J) * attention_online.numerator_size u eta eps L J z ez top ez_max v ev)
    + gamma u (quotient_roundings L J) * (Rabs (attention_online.o L z top v) + attention_online.dev u eta eps L J z ez top ez_max v mx
        + attention_online.inherited u eta eps L J z ez top ez_max ev)
    + Q2R (quotient_lost_q L J tiny V).
Proof.
unfold attention_online.quotient_error, quotient_lost_q; rewrite !Q2R_mult, Q2R_plus, !Q2R_qn.
replace (Q2R 64) with 64 by (unfold Q2R; simpl; field); replace (Q2R 1) with 1 by (unfold Q2R; simpl; field).
reflexivity.
Qed.
Definition axial_attention_two_pass := attention_two_pass_bound u eta.
Definition axial_attention_online := attention_online_bound u eta.
Definition axial_residual := residual_bound u eta u_ge0 u_lt1 eta_ge0.
Definition axial_residual_early_bias := residual_early_bias_bound u eta u_ge0 u_lt1 eta_ge0.
Definition axial_block := axial_pass_bound u eta.
Definition axial_block_tokens := normalised_functional u eta u_ge0.
(* a pass of unknown form: LayerNorm plain or folded, either variance, the scale of the logits anywhere, sums and
   rescalings in any order, the bias before or after the residual *)
Definition axial_any_form := axial_any_pass_bound u eta.
Definition axial_any_form_tokens := any_normalised_functional u eta u_ge0.
Definition axial_any_form_channel := any_normalised_channel u eta u_ge0.
Theorem axial_any_form_logit d qh kh scale y : (1 <= d)%nat -> short u (d + 3) -> 0 <= scale <= 1 ->
  logit_hat u eta d qh kh scale y ->
  Rabs (y - scale * sumn (fun i => qh i * kh i) d) <=
    gamma u (logit_roundings d) * (scale * sumn (fun i => Rabs (qh i) * Rabs (kh i)) d)
    + (4 * INR d * eta + 2 * eta * (sumn (fun i => Rabs (qh i)) d + sumn (fun i => Rabs (kh i)) d)).
Proof. exact (logit_any_bound u eta u_ge0 u_lt1 eta_ge0 d qh kh scale y). Qed.
End Axial.
