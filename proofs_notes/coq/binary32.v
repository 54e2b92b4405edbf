(* IEEE binary32 satisfies the arithmetic model.

   Main results
     binary32_near           round to nearest (any tie rule, ties to even included): u = 2^-24, eta = 2^-150
     binary32_near_normal    and a result at or above 2^-126 in size has a relative error only
     flushed_near            results below 2^-126 replaced by 0: eta = 2^-126
     Bplus_near, Bmult_near, Bfma_near, Bdiv_near, Bsqrt_near
                             the IEEE operations: a finite result of finite operands is such a rounding
   Overflow is a hypothesis in this form: a result that is finite did not overflow, so a program
   that checks that its results are finite has checked it.                                *)
From Coq Require Import Reals ZArith Lra Lia Psatz.
From Flocq Require Import Core Relative BinarySingleNaN.
Require Import counter_calculus prefix_product.
Open Scope R_scope.

Definition u32 := bpow radix2 (-24).
Definition eta32 := bpow radix2 (-150).
Definition tiny32 := bpow radix2 (-126).
Lemma u32_ge0 : 0 <= u32. Proof. apply bpow_ge_0. Qed.
Lemma u32_lt1 : u32 < 1. Proof. unfold u32; apply (bpow_lt radix2 (-24) 0); lia. Qed.
Lemma eta32_ge0 : 0 <= eta32. Proof. apply bpow_ge_0. Qed.
Lemma tiny32_pos : 0 < tiny32. Proof. apply bpow_gt_0. Qed.

Section Nearest.
Variable choice : Z -> bool.      (* the tie rule *)
Definition fl32 := round radix2 (FLT_exp (-149) 24) (Znearest choice).

Theorem binary32_near x : near u32 eta32 x (fl32 x).
Proof.
unfold near; destruct (error_N_FLT radix2 (-149) 24 eq_refl choice x) as (eps & et & He & Ht & _ & H).
unfold fl32; rewrite H; replace (x * (1 + eps) + et - x) with (eps * x + et) by ring.
eapply Rle_trans; [apply Rabs_triang|]; rewrite Rabs_mult.
assert (Hu : / 2 * bpow radix2 (- (24) + 1) = u32)
  by (unfold u32; change (/ 2) with (bpow radix2 (-1)); rewrite <- bpow_plus; reflexivity).
assert (Hn : / 2 * bpow radix2 (-149) = eta32)
  by (unfold eta32; change (/ 2) with (bpow radix2 (-1)); rewrite <- bpow_plus; reflexivity).
rewrite Hu in He; rewrite Hn in Ht.
apply Rplus_le_compat; [apply Rmult_le_compat_r; [apply Rabs_pos | exact He] | exact Ht].
Qed.

Lemma binary32_relative x : tiny32 <= Rabs x -> Rabs (fl32 x - x) <= u32 * Rabs x.
Proof.
intros Hx.
pose proof (relative_error_N_FLT radix2 (-149) 24 eq_refl choice x) as H.
assert (Hu : / 2 * bpow radix2 (- (24) + 1) = u32)
  by (unfold u32; change (/ 2) with (bpow radix2 (-1)); rewrite <- bpow_plus; reflexivity).
rewrite Hu in H; apply H; exact Hx.
Qed.
Theorem binary32_near_normal x : near_normal u32 eta32 tiny32 x (fl32 x).
Proof. split; [apply binary32_near | apply binary32_relative]. Qed.

(* flush to zero, decided on the rounded result *)
Definition flushed x := if Rlt_bool (Rabs (fl32 x)) tiny32 then 0 else fl32 x.
Lemma fl32_tiny : fl32 tiny32 = tiny32.
Proof.
apply round_generic; [apply valid_rnd_N|].
apply generic_format_bpow; unfold FLT_exp; simpl; lia.
Qed.
Theorem flushed_near x : near u32 tiny32 x (flushed x).
Proof.
unfold flushed; pose proof (binary32_near x) as B; unfold near in *.
pose proof u32_ge0; pose proof (Rabs_pos x); assert (0 <= u32 * Rabs x) by (apply Rmult_le_pos; lra).
destruct (Rlt_bool_spec (Rabs (fl32 x)) tiny32) as [L|L].
- (* |x| >= tiny would have rounded to at least tiny *)
  rewrite Rminus_0_l, Rabs_Ropp.
  destruct (Rle_or_lt (Rabs x) tiny32) as [X|X]; [lra|exfalso].
  assert (M : tiny32 <= Rabs (fl32 x)); [|lra].
  unfold fl32; apply abs_round_ge_generic; [apply (@FLT_exp_valid (-149) 24 eq_refl) | apply valid_rnd_N | | lra].
  apply generic_format_bpow; unfold FLT_exp; simpl; lia.
- assert (eta32 <= tiny32) by (apply bpow_le; lia). lra.
Qed.
Theorem flushed_near_normal x : near_normal u32 tiny32 tiny32 x (flushed x).
Proof.
split; [apply flushed_near|]; intros Hx; unfold flushed.
assert (M : tiny32 <= Rabs (fl32 x)).
{ unfold fl32; apply abs_round_ge_generic; [apply (@FLT_exp_valid (-149) 24 eq_refl) | apply valid_rnd_N | | exact Hx].
  apply generic_format_bpow; unfold FLT_exp; simpl; lia. }
rewrite Rlt_bool_false by exact M; now apply binary32_relative.
Qed.
End Nearest.

(** * The operations *)
Definition prec := 24%Z.
Definition emax := 128%Z.
Lemma Hprec : Prec_gt_0 prec. Proof. reflexivity. Qed.
Lemma Hmax : Prec_lt_emax prec emax. Proof. reflexivity. Qed.
Local Existing Instance Hprec.
Local Existing Instance Hmax.
Notation float32 := (binary_float prec emax).
Notation R_of := (@B2R prec emax).
Definition even : Z -> bool := fun z => negb (Z.even z).
Notation add := (@Bplus prec emax Hprec Hmax mode_NE).
Notation mul := (@Bmult prec emax Hprec Hmax mode_NE).
Notation fma := (@Bfma prec emax Hprec Hmax mode_NE).
Notation div := (@Bdiv prec emax Hprec Hmax mode_NE).
Notation sqr := (@Bsqrt prec emax Hprec Hmax mode_NE).

Lemma round_is x : round radix2 (SpecFloat.fexp prec emax) (round_mode mode_NE) x = fl32 even x.
Proof. reflexivity. Qed.

Theorem Bplus_near (x y : float32) : is_finite x = true -> is_finite y = true -> is_finite (add x y) = true ->
  near u32 eta32 (R_of x + R_of y) (R_of (add x y)).
Proof.
intros Fx Fy Fz; pose proof (Bplus_correct _ _ _ _ mode_NE x y Fx Fy) as C; rewrite round_is in C.
destruct (Rlt_bool_spec (Rabs (fl32 even (R_of x + R_of y))) (bpow radix2 emax)) as [L|L].
- destruct C as (-> & _); apply binary32_near.
- destruct C as (E & _); destruct (add x y); simpl in *; discriminate.
Qed.
Theorem Bmult_near (x y : float32) : is_finite x = true -> is_finite y = true -> is_finite (mul x y) = true ->
  near u32 eta32 (R_of x * R_of y) (R_of (mul x y)).
Proof.
intros Fx Fy Fz; pose proof (Bmult_correct _ _ _ _ mode_NE x y) as C; rewrite round_is in C.
destruct (Rlt_bool_spec (Rabs (fl32 even (R_of x * R_of y))) (bpow radix2 emax)) as [L|L].
- destruct C as (-> & _); apply binary32_near.
- destruct (mul x y); simpl in *; discriminate.
Qed.
Theorem Bfma_near (x y z : float32) : is_finite x = true -> is_finite y = true -> is_finite z = true ->
  is_finite (fma x y z) = true -> near u32 eta32 (R_of x * R_of y + R_of z) (R_of (fma x y z)).
Proof.
intros Fx Fy Fz Fw; pose proof (Bfma_correct _ _ _ _ mode_NE x y z Fx Fy Fz) as C; cbv zeta in C; rewrite round_is in C.
destruct (Rlt_bool_spec (Rabs (fl32 even (R_of x * R_of y + R_of z))) (bpow radix2 emax)) as [L|L].
- destruct C as (-> & _); apply binary32_near.
- destruct (fma x y z); simpl in *; discriminate.
Qed.
Theorem Bdiv_near (x y : float32) : is_finite x = true -> R_of y <> 0 -> is_finite (div x y) = true ->
  near u32 eta32 (R_of x / R_of y) (R_of (div x y)).
Proof.
intros Fx Zy Fz; pose proof (Bdiv_correct _ _ _ _ mode_NE x y Zy) as C; rewrite round_is in C.
destruct (Rlt_bool_spec (Rabs (fl32 even (R_of x / R_of y))) (bpow radix2 emax)) as [L|L].
- destruct C as (-> & _); apply binary32_near.
- destruct (div x y); simpl in *; discriminate.
Qed.
Theorem Bsqrt_near (x : float32) : near u32 eta32 (sqrt (R_of x)) (R_of (sqr x)).
Proof. destruct (Bsqrt_correct _ _ _ _ mode_NE x) as (-> & _); apply binary32_near. Qed.
