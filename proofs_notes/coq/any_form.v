(* One bound for an implementation of unknown form.

   Main results
     any_form_state_bound     any mixture of the forms, the closed form in its range included:
                              count_bound 0 (3t + 4) + eta * underflow_amount
     any_form_output_bound    the same for an output: count_bound 0 (3t + D + 4)               *)
From Coq Require Import Reals Lra Lia.
Require Import counter_calculus recurrence_counts output_counts recurrence_bounds prefix_product.
Open Scope R_scope.

Lemma count_bound_mono u c c' t M A : 0 <= u -> 0 <= A -> 0 <= c <= c' -> (0 * INR t + c') * u < 1 ->
  count_bound u 0 c t M A <= count_bound u 0 c' t M A.
Proof.
intros Hu HA Hc HN; unfold count_bound, Rdiv.
assert (c * u <= c' * u) by (apply Rmult_le_compat_r; lra).
assert (c * A <= c' * A) by (apply Rmult_le_compat_r; lra).
assert (0 <= c * A) by (apply Rmult_le_pos; lra).
apply Rmult_le_compat.
- apply Rmult_le_pos; lra.
- left; apply Rinv_0_lt_compat; lra.
- apply Rmult_le_compat_l; lra.
- apply Rinv_le_contravar; lra.
Qed.
Lemma A_ge0 g aw a0 t : (forall r, 0 <= aw r) -> 0 <= a0 -> 0 <= A g aw a0 t.
Proof.
intros Hw H0; induction t as [|t IH]; [exact H0|]; cbn [A].
pose proof (Rabs_ge0_mult (g t) _ IH); pose proof (Hw t); lra.
Qed.

Section AnyForm.
Set Default Proof Using "All".
Variables u eta : R.
Hypothesis u_ge0 : 0 <= u.
Hypothesis u_lt1 : u < 1.
Hypothesis eta_ge0 : 0 <= eta.
Variable tiny : R.
Hypothesis tiny_pos : 0 < tiny.
Variables (g : nat -> R) (t : nat) (Gam : R).
Hypothesis Gam_spec : forall s n, (s + n <= t)%nat -> Rabs (G g s n) <= Gam.
Variables (b v : nat -> R) (k : nat -> nat -> R) (s0 : nat -> R) (q : nat -> R) (D : nat) (kc O0 : R).
Hypothesis kc_spec : forall r i, (i < D)%nat -> Rabs (k r i) <= kc.
Hypothesis O0_spec : forall i, (i < D)%nat -> Rabs (s0 i) <= O0.
Hypothesis D_pos : (1 <= D)%nat.

Theorem any_form_state_bound i M y : (i < D)%nat ->
  any_form u eta g b (ki k i) v (s0 i) t y \/
  segmented u eta tiny g b (fun r => k r i) v (s0 i) t y ->
  INR (2 * t + 6) * (u + eta * Gam) <= 1 / 16 -> (0 * INR t + (3 * INR t + 4)) * u < 1 ->
  Rabs (y - state g (w b (ki k i) v) (s0 i) t) <=
    count_bound u 0 (3 * INR t + 4) t M (A g (aw b (ki k i) v) (Rabs (s0 i)) t)
    + eta * underflow_amount t 1 Gam 0 kc (sources O0 b v t).
Proof.
intros Hi Hy Hu HN; pose proof (pos_INR t).
set (At := A g (aw b (ki k i) v) (Rabs (s0 i)) t).
assert (A0 : 0 <= At) by (apply A_ge0; intros; apply Rabs_pos).
assert (N1 : (2 * INR t + 4) * u <= (3 * INR t + 4) * u) by (apply Rmult_le_compat_r; lra).
assert (N2 : (3 * INR t + INR 0 + 3) * u <= (3 * INR t + 4) * u) by (apply Rmult_le_compat_r; simpl; lra).
destruct Hy as [Hy|Hy].
- pose proof (any_order_state_bound u eta u_ge0 u_lt1 eta_ge0 g t Gam Gam_spec b v k s0 q D kc O0 kc_spec O0_spec D_pos
    i Hi y Hy Hu ltac:(lra)) as B; fold At in B.
  pose proof (count_bound_mono u (2 * INR t + 4) (3 * INR t + 4) t (recurrence_counts.M g (aw b (ki k i) v) (Rabs (s0 i)) t) At
    u_ge0 A0 ltac:(lra) HN) as C.
  unfold count_bound in *; rewrite !Rmult_0_l in *; lra.
- pose proof (segmented_state_bound u eta u_ge0 u_lt1 eta_ge0 tiny tiny_pos g t Gam Gam_spec b v k s0 q D kc O0
    kc_spec O0_spec D_pos i M y Hi Hy Hu ltac:(lra)) as B.
  change (fun r => k r i) with (ki k i) in B; fold At in B.
  pose proof (count_bound_mono u (3 * INR t + INR 0 + 3) (3 * INR t + 4) t M At u_ge0 A0 ltac:(simpl; lra) HN) as C.
  lra.
Qed.

Theorem any_form_output_bound M y : (1 <= t)%nat ->
  any_output u eta g b v k s0 q D t y \/ segmented_output u eta tiny g b v k s0 q D t y ->
  INR (2 * t + 2 * D + 4) * (u + eta * Gam) <= 1 / 16 -> (0 * INR t + (3 * INR t + INR D + 4)) * u < 1 ->
  Rabs (y - out g b v k s0 q D t) <=
    count_bound u 0 (3 * INR t + INR D + 4) t M (A g (awq b v k q D) (a0q s0 q D) t)
    + eta * underflow_amount t D Gam (Q q D) kc (sources O0 b v t).
Proof.
intros Ht Hy Hu HN; pose proof (pos_INR t); pose proof (pos_INR D).
set (At := A g (awq b v k q D) (a0q s0 q D) t).
assert (A0 : 0 <= At).
{ apply A_ge0; [intros r|]; apply sumn_ge0; intros; apply Rabs_ge0_mult, Rabs_pos. }
assert (N1 : (2 * INR t + INR D + 4) * u <= (3 * INR t + INR D + 4) * u) by (apply Rmult_le_compat_r; lra).
assert (N2 : (3 * INR t + INR D + 3) * u <= (3 * INR t + INR D + 4) * u) by (apply Rmult_le_compat_r; lra).
destruct Hy as [Hy|Hy].
- pose proof (any_order_output_bound u eta u_ge0 u_lt1 eta_ge0 g t Gam Gam_spec b v k s0 q D kc O0 kc_spec O0_spec D_pos
    y Ht Hy Hu ltac:(lra)) as B; fold At in B.
  pose proof (count_bound_mono u (2 * INR t + INR D + 4) (3 * INR t + INR D + 4) t
    (recurrence_counts.M g (awq b v k q D) (a0q s0 q D) t) At u_ge0 A0 ltac:(lra) HN) as C.
  unfold count_bound in *; rewrite !Rmult_0_l in *; lra.
- pose proof (segmented_output_bound u eta u_ge0 u_lt1 eta_ge0 tiny tiny_pos g t Gam Gam_spec b v k s0 q D kc O0
    kc_spec O0_spec D_pos M y Ht Hy Hu ltac:(lra)) as B; fold At in B.
  pose proof (count_bound_mono u (3 * INR t + INR D + 3) (3 * INR t + INR D + 4) t M At u_ge0 A0 ltac:(lra) HN) as C.
  lra.
Qed.
End AnyForm.
