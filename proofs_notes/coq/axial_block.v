(* One pass of the axial block over one sequence, from the normalised tokens to the residual.

   The tokens' normalisation enters through [fn t c], a bound on any linear map c of its error
   (layer_norm_functional), and [en t i], a bound on each channel's (layer_norm_bound).  Every
   later stage pushes the errors of earlier ones through its exact linear maps before absolute
   values are taken:
     td      = gamma_D sum|W| (|n| + en) + 2 D eta           rounding of one dot product
     through = fn (sum_c k_c W_c) + sum_c |k_c| td_c         sum_c k_c (computed - exact) of a head
     ez      = scale (gamma_{d+3} sum (|q|+eq)(|k|+ek) + through(k) + through(q) + sum eq ek)
               + 4 d eta + 2 eta sum (|q|+eq + |k|+ek)
     proj    = sum over heads of  min(sum_j change_j |v_j - o|, max |v_j - o|)   v, o times W_out
                                  + sum_j largest_j through(W_out) + sum_c |W_out| quotient_error

   Main results
     qkv_error            |computed - exact| of an entry of Q, K, V
     logit_error          |computed - exact| of a logit
     projection_error     |W_out (computed heads - exact heads)| <= proj
     axial_pass_bound     |computed - exact| of an entry of the pass's result
     axial_any_pass_bound the same where the bias may be added to x first
     normalised_functional, normalised_channel
                          a computed LayerNorm provides fn and en, for exact or inexact tokens
     any_normalised_functional, any_normalised_channel
                          the same where LayerNorm may be folded into x s + (bias - m s)
     second_pass_input    the bound of the first pass is the input error e of the second
   Softmax in one pass or two, J h rescalings at most in head h (0 with the maximum first), partial
   sums merged in any order; the scale 1/sqrt d applied to q, to k, or after the dot product. *)
From Coq Require Import Reals List Lra Lia Psatz Permutation.
Require Import counter_calculus running_bound prefix_product linear softmax weighted_mean attention attention_online layer_norm.
Open Scope R_scope.

Lemma sumn_swap f m n : sumn (fun i => sumn (fun j => f i j) n) m = sumn (fun j => sumn (fun i => f i j) m) n.
Proof.
induction m as [|m IH]; simpl.
- rewrite (sumn_const 0 n); ring.
- rewrite IH, <- sumn_plus; apply sumn_ext; reflexivity.
Qed.
Lemma sumn_blocks f H d : sumn f (H * d) = sumn (fun h => sumn (fun c => f (h * d + c)%nat) d) H.
Proof.
assert (A : forall m n, sumn f (m + n) = sumn f m + sumn (fun c => f (m + c)%nat) n).
{ intros m n; induction n as [|n IH]; [rewrite Nat.add_0_r; simpl; ring|].
  rewrite Nat.add_succ_r; simpl; rewrite IH; ring. }
induction H as [|H IH]; [reflexivity|].
replace (Datatypes.S H * d)%nat with (H * d + d)%nat by (simpl; lia); rewrite A, IH; reflexivity.
Qed.

Section Pass.
Set Default Proof Using "All".
Variables u eta eps tiny : R.
Hypothesis u_ge0 : 0 <= u.
Hypothesis u_lt1 : u < 1.
Hypothesis eta_ge0 : 0 <= eta.
Hypothesis eps_spec : 0 <= eps < 1.
Hypothesis eta_tiny : eta <= tiny.
Local Notation gamma := (gamma u).
Variables (L d H : nat) (J : nat -> nat).
Local Notation D := (H * d)%nat.
Hypothesis L_pos : (1 <= L)%nat.
Hypothesis D_pos : (1 <= D)%nat.
Hypothesis D_short : short u (Datatypes.S D).
Hypothesis d_short : short u (d + 3).
Hypothesis K_small : forall h, (h < H)%nat -> INR (L + J h + 1) * u <= 1 / 16.
Hypothesis tiny_small : forall h, (h < H)%nat -> 80 * INR L * INR (Datatypes.S (J h)) * tiny <= 1.
Hypothesis exp_small : forall h, (h < H)%nat -> INR (Datatypes.S (J h)) * (eta + eps / (1 - eps) + tiny) <= 1 / 2.

(** ** Normalised tokens *)
Variables (n nh en : nat -> nat -> R) (fn : nat -> (nat -> R) -> R).
Hypothesis fn_spec : forall t c, (t < L)%nat -> Rabs (sumn (fun i => c i * (nh t i - n t i)) D) <= fn t c.
Hypothesis en_spec : forall t i, (t < L)%nat -> (i < D)%nat -> Rabs (nh t i - n t i) <= en t i.

(** ** Q, K, V: rows 0 .. 3D-1 of W *)
Variables (W qkvh : nat -> nat -> R).
Hypothesis qkvh_spec : forall t r, (t < L)%nat -> (r < 3 * D)%nat -> dot_hat u eta (W r) (nh t) D (qkvh t r).
Definition qkv t r := sumn (fun i => W r i * n t i) D.
Definition td t r := gamma D * sumn (fun i => Rabs (W r i) * (Rabs (n t i) + en t i)) D + 2 * INR D * eta.
Definition eqkv t r := fn t (W r) + td t r.
Definition tau t r := qkvh t r - sumn (fun i => W r i * nh t i) D.

Lemma D_short' : short u D. Proof. apply (short_le u eta u_ge0 u_lt1 eta_ge0 D (Datatypes.S D)); [lia | exact D_short]. Qed.
Lemma nh_size t i : (t < L)%nat -> (i < D)%nat -> Rabs (nh t i) <= Rabs (n t i) + en t i.
Proof.
intros Ht Hi; replace (nh t i) with (n t i + (nh t i - n t i)) by ring; eapply Rle_trans; [apply Rabs_triang|].
pose proof (en_spec t i Ht Hi); lra.
Qed.
Lemma tau_spec t r : (t < L)%nat -> (r < 3 * D)%nat -> Rabs (tau t r) <= td t r.
Proof.
intros Ht Hr; eapply Rle_trans; [apply (linear_bound u eta u_ge0 u_lt1 eta_ge0 _ _ _ _ D_short' (qkvh_spec t r Ht Hr))|].
unfold td; apply Rplus_le_compat_r, Rmult_le_compat_l.
- destruct (gamma_short u eta u_ge0 u_lt1 eta_ge0 D D_short'); assumption.
- apply sumn_le; intros i Hi; apply Rmult_le_compat_l; [apply Rabs_pos | now apply nh_size].
Qed.
Lemma qkv_split t r : qkvh t r - qkv t r = sumn (fun i => W r i * (nh t i - n t i)) D + tau t r.
Proof.
unfold tau, qkv; replace (sumn (fun i => W r i * (nh t i - n t i)) D)
  with (sumn (fun i => W r i * nh t i) D + (-1) * sumn (fun i => W r i * n t i) D); [ring|].
rewrite <- sumn_scal, <- sumn_plus; apply sumn_ext; intros; ring.
Qed.
Theorem qkv_error t r : (t < L)%nat -> (r < 3 * D)%nat -> Rabs (qkvh t r - qkv t r) <= eqkv t r.
Proof.
intros Ht Hr; rewrite qkv_split; eapply Rle_trans; [apply Rabs_triang|].
apply Rplus_le_compat; [now apply fn_spec | now apply tau_spec].
Qed.

(* a linear map of d entries of Q, K or V *)
Definition through t (k : nat -> R) first :=
  fn t (fun i => sumn (fun c => k c * W (first + c)%nat i) d) + sumn (fun c => Rabs (k c) * td t (first + c)%nat) d.
Lemma through_spec t k first : (t < L)%nat -> (first + d <= 3 * D)%nat ->
  Rabs (sumn (fun c => k c * (qkvh t (first + c) - qkv t (first + c))) d) <= through t k first.
Proof.
intros Ht Hf.
assert (E : sumn (fun c => k c * (qkvh t (first + c) - qkv t (first + c))) d
  = sumn (fun i => sumn (fun c => k c * W (first + c)%nat i) d * (nh t i - n t i)) D
    + sumn (fun c => k c * tau t (first + c)) d).
{ rewrite (sumn_ext _ (fun c => sumn (fun i => k c * W (first + c)%nat i * (nh t i - n t i)) D + k c * tau t (first + c))).
  - rewrite sumn_plus, sumn_swap; f_equal; apply sumn_ext; intros i _.
    rewrite (Rmult_comm (sumn _ d)), <- sumn_scal; apply sumn_ext; intros; ring.
  - intros c _; rewrite qkv_split, Rmult_plus_distr_l, <- sumn_scal; f_equal; apply sumn_ext; intros; ring. }
rewrite E; eapply Rle_trans; [apply Rabs_triang|]; apply Rplus_le_compat; [now apply fn_spec|].
eapply Rle_trans; [apply sumn_abs|]; apply sumn_le; intros c Hc; rewrite Rabs_mult.
apply Rmult_le_compat_l; [apply Rabs_pos | apply tau_spec; [exact Ht | lia]].
Qed.

(** ** One query *)
Variables (l : nat) (scale : R).
Hypothesis l_spec : (l < L)%nat.
Hypothesis scale_spec : 0 <= scale <= 1.
Local Notation qr h := (h * d)%nat.
Local Notation kr h := (D + h * d)%nat.
Local Notation vr h := (D + D + h * d)%nat.
Definition z h j := scale * sumn (fun c => qkv l (qr h + c) * qkv j (kr h + c)) d.
Definition ez h j :=
  scale * (gamma (d + 3) * sumn (fun c => (Rabs (qkv l (qr h + c)) + eqkv l (qr h + c)) * (Rabs (qkv j (kr h + c)) + eqkv j (kr h + c))) d
    + (through l (fun c => qkv j (kr h + c)) (qr h) + through j (fun c => qkv l (qr h + c)) (kr h)
       + sumn (fun c => eqkv l (qr h + c) * eqkv j (kr h + c)) d))
  + logit_lost eta d (fun c => Rabs (qkv l (qr h + c)) + eqkv l (qr h + c)) (fun c => Rabs (qkv j (kr h + c)) + eqkv j (kr h + c)).
Variables (zh : nat -> nat -> R).
Hypothesis zh_spec : forall h j, (h < H)%nat -> (j < L)%nat ->
  logit_hat u eta d (fun c => qkvh l (qr h + c)) (fun c => qkvh j (kr h + c)) scale (zh h j).
Lemma head_fits h : (h < H)%nat -> (h * d + d <= D)%nat. Proof. intros; nia. Qed.
Theorem logit_error h j : (h < H)%nat -> (j < L)%nat -> Rabs (zh h j - z h j) <= ez h j.
Proof.
intros Hh Hj; pose proof (head_fits h Hh) as HF.
assert (d1 : (1 <= d)%nat) by (destruct d; lia).
pose proof (logit_any_bound u eta u_ge0 u_lt1 eta_ge0 d _ _ scale (zh h j) d1 d_short scale_spec (zh_spec h j Hh Hj)) as B.
assert (SZ : forall t r, (t < L)%nat -> (r < 3 * D)%nat -> Rabs (qkvh t r) <= Rabs (qkv t r) + eqkv t r).
{ intros t r Ht Hr; replace (qkvh t r) with (qkv t r + (qkvh t r - qkv t r)) by ring; eapply Rle_trans; [apply Rabs_triang|].
  pose proof (qkv_error t r Ht Hr); lra. }
assert (LM : logit_lost eta d (fun c => Rabs (qkvh l (qr h + c))) (fun c => Rabs (qkvh j (kr h + c))) <=
  logit_lost eta d (fun c => Rabs (qkv l (qr h + c)) + eqkv l (qr h + c)) (fun c => Rabs (qkv j (kr h + c)) + eqkv j (kr h + c))).
{ unfold logit_lost; apply Rplus_le_compat_l, Rmult_le_compat_l; [lra|].
  apply Rplus_le_compat; apply sumn_le; intros c Hc; apply SZ; (assumption || lia). }
apply Rle_trans with (2 := Rplus_le_compat_l _ _ _ LM) in B.
apply (logit_propagation u eta u_ge0 u_lt1 eta_ge0 d (fun c => qkv l (qr h + c)) (fun c => qkv j (kr h + c))
  (fun c => qkvh l (qr h + c)) (fun c => qkvh j (kr h + c)) (fun c => eqkv l (qr h + c)) (fun c => eqkv j (kr h + c))
  scale (zh h j) _ _ _ scale_spec); try assumption.
- intros c Hc; apply qkv_error; [exact l_spec | lia].
- intros c Hc; apply qkv_error; [exact Hj | lia].
- apply through_spec; [exact l_spec | lia].
- apply through_spec; [exact Hj | lia].
Qed.

(** ** Softmax of each head *)
Variables (ez_max top mh : nat -> R).
Hypothesis ez_max_spec : forall h j, (h < H)%nat -> (j < L)%nat -> ez h j <= ez_max h.
Hypothesis top_spec : forall h j, (h < H)%nat -> (j < L)%nat -> z h j <= top h.
Hypothesis mh_spec : forall h, (h < H)%nat ->
  (forall j, (j < L)%nat -> zh h j <= mh h) /\ exists j, (j < L)%nat /\ zh h j = mh h.
(* weights: products of at most J h + 1 computed exponentials *)
Variables (wn : nat -> nat -> nat) (P t : nat -> nat -> R).
Hypothesis P_spec : forall h j, (h < H)%nat -> (j < L)%nat ->
  (wn h j <= Datatypes.S (J h))%nat /\ weight u eta eps tiny (wn h j) (zh h j) (mh h) (P h j) (t h j).
Local Notation w h := (wz (z h) (top h)).
Local Notation xi h := (xi_of u eta eps (z h) (ez h) (top h) (ez_max h) (J h)).
Local Notation vals h c := (fun j => qkv j (vr h + c)).
Local Notation valsh h c := (fun j => qkvh j (vr h + c)).
Local Notation verr h c := (fun j => eqkv j (vr h + c)).
Definition o h c := average L (w h) (vals h c).
Variables (mx V : nat -> nat -> R).
Hypothesis mx_spec : forall h c j, (h < H)%nat -> (c < d)%nat -> (j < L)%nat -> Rabs (vals h c j - o h c) <= mx h c.
Hypothesis V_spec : forall h c j, (h < H)%nat -> (c < d)%nat -> (j < L)%nat -> Rabs (vals h c j) + verr h c j <= V h c.
(* numerator and denominator of each channel: every key once, in any order, rescaled on the way *)
Variables (lN lD : nat -> nat -> list (nat * R)) (JN JD : nat -> nat -> nat) (Nh Dh oh : nat -> nat -> R).
Local Notation smax := (scale_max eta eps tiny).
Hypothesis N_spec : forall h c, (h < H)%nat -> (c < d)%nat ->
  acc u eta smax (numerator_leaf u eta (valsh h c)) (lN h c) (JN h c) (Nh h c) /\ Permutation (lN h c) (keys L (P h)) /\ (JN h c <= J h)%nat.
Hypothesis Dh_spec : forall h c, (h < H)%nat -> (c < d)%nat ->
  acc u eta smax denominator_leaf (lD h c) (JD h c) (Dh h c) /\ Permutation (lD h c) (keys L (P h)) /\ (JD h c <= J h)%nat.
Hypothesis oh_spec : forall h c, (h < H)%nat -> (c < d)%nat -> quotient_hat u eta (Nh h c) (Dh h c) (oh h c).
Definition quot h c := attention_online.quotient_error u eta eps tiny L (J h) (z h) (ez h) (top h) (ez_max h) (vals h c) (verr h c) (mx h c) (V h c).
Definition eo h c := attention_online.dev u eta eps L (J h) (z h) (ez h) (top h) (ez_max h) (vals h c) (mx h c)
  + attention_online.inherited u eta eps L (J h) (z h) (ez h) (top h) (ez_max h) (verr h c) + quot h c.
Local Notation T th h Hh := (th u eta eps tiny u_ge0 u_lt1 eta_ge0 eps_spec eta_tiny L (J h) (z h) (zh h) (ez h) (top h) (ez_max h) (mh h)
  L_pos (fun j Hj => conj (logit_error h j Hh Hj) (ez_max_spec h j Hh Hj)) (fun j Hj => top_spec h j Hh Hj) (mh_spec h Hh)
  (K_small h Hh) (tiny_small h Hh) (exp_small h Hh) (wn h) (P h) (t h) (fun j Hj => P_spec h j Hh Hj)) (only parsing).

Theorem head_error h c : (h < H)%nat -> (c < d)%nat -> Rabs (oh h c - o h c) <= eo h c.
Proof.
intros Hh Hc; pose proof (head_fits h Hh).
apply (T attention_online_bound h Hh (vals h c) (valsh h c) (verr h c) (mx h c)
  (fun j Hj => qkv_error j (vr h + c) Hj ltac:(lia)) (fun j Hj => mx_spec h c j Hh Hc Hj)
  (V h c) (fun j Hj => V_spec h c j Hh Hc Hj) (lN h c) (lD h c) (JN h c) (JD h c) (Nh h c) (Dh h c) (oh h c)
  (N_spec h c Hh Hc) (Dh_spec h c Hh Hc) (oh_spec h c Hh Hc)).
Qed.

(** ** Output projection and residual, one output channel *)
Variables (Wo : nat -> R) (bo : R).
Local Notation wo h c := (Wo (h * d + c)%nat).
Definition vo h j := sumn (fun c => wo h c * vals h c j) d.          (* values through W_out *)
Definition vo_err h j := through j (fun c => wo h c) (vr h).
Definition oo h := sumn (fun c => wo h c * o h c) d.
Variable mxo : nat -> R.
Hypothesis mxo_spec : forall h j, (h < H)%nat -> (j < L)%nat -> Rabs (vo h j - oo h) <= mxo h.
Definition proj := sumn (fun h =>
  attention_online.dev u eta eps L (J h) (z h) (ez h) (top h) (ez_max h) (vo h) (mxo h)
  + attention_online.inherited u eta eps L (J h) (z h) (ez h) (top h) (ez_max h) (vo_err h)
  + sumn (fun c => Rabs (wo h c) * quot h c) d) H.

Lemma oo_average h : oo h = attention_online.o L (z h) (top h) (vo h).
Proof.
unfold oo, o, attention_online.o, average, vo, Rdiv.
rewrite (sumn_ext (fun j => w h j * sumn (fun c => wo h c * vals h c j) d)
  (fun j => sumn (fun c => wo h c * (w h j * vals h c j)) d)).
- rewrite sumn_swap, Rmult_comm, <- sumn_scal; apply sumn_ext; intros c _; rewrite sumn_scal; ring.
- intros j _; rewrite <- sumn_scal; apply sumn_ext; intros; ring.
Qed.
Lemma head_projection h : (h < H)%nat -> Rabs (sumn (fun c => wo h c * (oh h c - o h c)) d) <=
  attention_online.dev u eta eps L (J h) (z h) (ez h) (top h) (ez_max h) (vo h) (mxo h)
  + attention_online.inherited u eta eps L (J h) (z h) (ez h) (top h) (ez_max h) (vo_err h)
  + sumn (fun c => Rabs (wo h c) * quot h c) d.
Proof.
intros Hh; pose proof (head_fits h Hh) as HF.
set (voh := fun j => sumn (fun c => wo h c * valsh h c j) d).
set (otc := fun c => weighted_mean.ot L (t h) (valsh h c)).
assert (E : sumn (fun c => wo h c * (oh h c - o h c)) d =
   (weighted_mean.ot L (t h) voh - attention_online.o L (z h) (top h) (vo h)) + sumn (fun c => wo h c * (oh h c - otc c)) d).
{ assert (E1 : weighted_mean.ot L (t h) voh = sumn (fun c => wo h c * otc c) d).
  { unfold otc, weighted_mean.ot, voh, Rdiv.
    rewrite (sumn_ext (fun j => t h j * sumn (fun c => wo h c * valsh h c j) d)
      (fun j => sumn (fun c => wo h c * (t h j * valsh h c j)) d)).
    - rewrite sumn_swap, Rmult_comm, <- sumn_scal; apply sumn_ext; intros c _; rewrite sumn_scal; ring.
    - intros j _; rewrite <- sumn_scal; apply sumn_ext; intros; ring. }
  rewrite E1, <- oo_average; unfold oo.
  replace (sumn (fun c => wo h c * otc c) d - sumn (fun c => wo h c * o h c) d)
    with (sumn (fun c => wo h c * otc c) d + (-1) * sumn (fun c => wo h c * o h c) d) by ring.
  rewrite <- sumn_scal, <- !sumn_plus; apply sumn_ext; intros; ring. }
rewrite E; eapply Rle_trans; [apply Rabs_triang|]; apply Rplus_le_compat.
- apply (T attention_online.ot_o h Hh (vo h) voh (vo_err h) (mxo h)).
  + intros j Hj; unfold voh, vo, vo_err.
    replace (sumn (fun c => wo h c * valsh h c j) d - sumn (fun c => wo h c * vals h c j) d)
      with (sumn (fun c => wo h c * (qkvh j (vr h + c) - qkv j (vr h + c))) d).
    * apply through_spec; [exact Hj | lia].
    * replace (sumn (fun c => wo h c * valsh h c j) d - sumn (fun c => wo h c * vals h c j) d)
        with (sumn (fun c => wo h c * valsh h c j) d + (-1) * sumn (fun c => wo h c * vals h c j) d) by ring.
      rewrite <- sumn_scal, <- sumn_plus; apply sumn_ext; intros; ring.
  + intros j Hj; rewrite <- oo_average; now apply mxo_spec.
- eapply Rle_trans; [apply sumn_abs|]; apply sumn_le; intros c Hc; rewrite Rabs_mult.
  apply Rmult_le_compat_l; [apply Rabs_pos|].
  apply (T attention_online_quotient h Hh (vals h c) (valsh h c) (verr h c) (mx h c)
    (fun j Hj => qkv_error j (vr h + c) Hj ltac:(lia)) (fun j Hj => mx_spec h c j Hh Hc Hj)
    (V h c) (fun j Hj => V_spec h c j Hh Hc Hj) (lN h c) (lD h c) (JN h c) (JD h c) (Nh h c) (Dh h c) (oh h c)
    (N_spec h c Hh Hc) (Dh_spec h c Hh Hc) (oh_spec h c Hh Hc)).
Qed.

(* heads joined: channel i belongs to head i / d *)
Definition ohat i := oh (i / d) (i mod d).
Definition oexact i := o (i / d) (i mod d).
Definition oerr i := eo (i / d) (i mod d).
Lemma channel h c : (c < d)%nat -> ((h * d + c) / d = h /\ (h * d + c) mod d = c)%nat.
Proof.
intros Hc; split.
- symmetry; apply (Nat.div_unique _ d h c Hc); lia.
- symmetry; apply (Nat.mod_unique _ d h c Hc); lia.
Qed.
Theorem projection_error : Rabs (sumn (fun i => Wo i * (ohat i - oexact i)) D) <= proj.
Proof.
rewrite sumn_blocks; eapply Rle_trans; [apply sumn_abs|]; apply sumn_le; intros h Hh.
rewrite (sumn_ext _ (fun c => wo h c * (oh h c - o h c))); [now apply head_projection|].
intros c Hc; unfold ohat, oexact; destruct (channel h c Hc) as (-> & ->); reflexivity.
Qed.

Variables (x0 xin ex ph y : R).      (* exact input, computed input, its error, projection, result *)
Hypothesis xin_spec : Rabs (xin - x0) <= ex.
Definition y_exact := x0 + (sumn (fun i => Wo i * oexact i) D + bo).
Definition ph_rounding s := gamma (Datatypes.S D) * (sumn (fun i => Rabs (Wo i) * (Rabs (oexact i) + oerr i)) D + Rabs s)
   + (2 * INR D + 1) * eta.
Definition pass_error := ex + (proj + ph_rounding bo).
Definition pass_bound := (1 + u) * pass_error + u * Rabs y_exact + eta.

(* the bias added to x first: one rounding of x + bias more *)
Definition early_bias := u * (Rabs x0 + ex + Rabs bo) + eta.
Definition any_pass_bound := (1 + u) * (pass_error + early_bias) + u * Rabs y_exact + eta.

Lemma ohat_sum : sumn (fun i => Rabs (Wo i) * Rabs (ohat i)) D <= sumn (fun i => Rabs (Wo i) * (Rabs (oexact i) + oerr i)) D.
Proof.
apply sumn_le; intros i Hi; apply Rmult_le_compat_l; [apply Rabs_pos|].
assert (d1 : (1 <= d)%nat) by (destruct d; lia).
assert (Hh : (i / d < H)%nat) by (apply Nat.div_lt_upper_bound; lia).
assert (Hc : (i mod d < d)%nat) by (apply Nat.mod_upper_bound; lia).
unfold ohat, oexact, oerr; pose proof (head_error _ _ Hh Hc).
replace (oh (i / d) (i mod d)) with (o (i / d) (i mod d) + (oh (i / d) (i mod d) - o (i / d) (i mod d))) by ring.
eapply Rle_trans; [apply Rabs_triang | lra].
Qed.
Lemma projected q s : Rabs (q - (sumn (fun i => Wo i * ohat i) D + s)) <= ph_rounding s ->
  Rabs (q - (sumn (fun i => Wo i * oexact i) D + s)) <= proj + ph_rounding s.
Proof.
intros B; replace (q - (sumn (fun i => Wo i * oexact i) D + s)) with
    (sumn (fun i => Wo i * (ohat i - oexact i)) D + (q - (sumn (fun i => Wo i * ohat i) D + s))).
- eapply Rle_trans; [apply Rabs_triang|]; pose proof projection_error; lra.
- replace (sumn (fun i => Wo i * (ohat i - oexact i)) D)
    with (sumn (fun i => Wo i * ohat i) D + (-1) * sumn (fun i => Wo i * oexact i) D); [ring|].
  rewrite <- sumn_scal, <- sumn_plus; apply sumn_ext; intros; ring.
Qed.
Lemma affine_projected : affine_hat u eta Wo ohat bo D ph ->
  Rabs (ph - (sumn (fun i => Wo i * oexact i) D + bo)) <= proj + ph_rounding bo.
Proof.
intros Hp; apply projected; pose proof (linear_bias_bound u eta u_ge0 u_lt1 eta_ge0 Wo ohat bo D ph D_pos D_short Hp) as B.
destruct (gamma_short u eta u_ge0 u_lt1 eta_ge0 (Datatypes.S D) D_short) as (G0 & _); pose proof ohat_sum.
eapply Rle_trans; [exact B|]; unfold ph_rounding; apply Rplus_le_compat_r, Rmult_le_compat_l; lra.
Qed.

Theorem axial_pass_bound : affine_hat u eta Wo ohat bo D ph -> near u eta (xin + ph) y -> Rabs (y - y_exact) <= pass_bound.
Proof.
intros Hp N; apply (residual_bound u eta u_ge0 u_lt1 eta_ge0 xin ph x0 _ ex _ y xin_spec (affine_projected Hp) N).
Qed.
Theorem axial_any_pass_bound :
  (affine_hat u eta Wo ohat bo D ph /\ near u eta (xin + ph) y) \/
  (exists xb, dot_hat u eta Wo ohat D ph /\ near u eta (xin + bo) xb /\ near u eta (xb + ph) y) ->
  Rabs (y - y_exact) <= any_pass_bound.
Proof.
assert (E0 : 0 <= early_bias).
{ unfold early_bias; pose proof (Rabs_pos (xin - x0)); pose proof (Rabs_pos x0); pose proof (Rabs_pos bo).
  assert (0 <= u * (Rabs x0 + ex + Rabs bo)) by (apply Rmult_le_pos; lra); lra. }
assert (M : 0 <= (1 + u) * early_bias) by (apply Rmult_le_pos; lra).
intros [(Hp & N)|(xb & Hp & N1 & N2)].
- pose proof (axial_pass_bound Hp N); unfold pass_bound, any_pass_bound in *; lra.
- assert (PB : Rabs (ph - sumn (fun i => Wo i * oexact i) D) <= proj + ph_rounding bo).
  { pose proof (linear_bound u eta u_ge0 u_lt1 eta_ge0 Wo ohat D ph D_short' Hp) as B.
    destruct (gamma_short u eta u_ge0 u_lt1 eta_ge0 (Datatypes.S D) D_short) as (G0 & _).
    destruct (gamma_short u eta u_ge0 u_lt1 eta_ge0 D D_short') as (G1 & _).
    assert (GM : gamma D <= gamma (Datatypes.S D)).
    { pose proof (short_nu u eta u_ge0 u_lt1 eta_ge0 _ D_short) as Nu.
      assert (INR D <= INR (Datatypes.S D)) by (apply le_INR; lia); pose proof (pos_INR D).
      assert (INR D * u <= INR (Datatypes.S D) * u) by (apply Rmult_le_compat_r; lra).
      assert (0 <= INR D * u) by (apply Rmult_le_pos; lra).
      unfold running_bound.gamma, Rdiv; apply Rmult_le_compat;
        [lra | left; apply Rinv_0_lt_compat; lra | lra | apply Rinv_le_contravar; lra]. }
    pose proof ohat_sum as OS; pose proof (Rabs_pos bo).
    assert (S0 : 0 <= sumn (fun i => Rabs (Wo i) * Rabs (ohat i)) D) by (apply sumn_ge0; intros; apply Rmult_le_pos; apply Rabs_pos).
    assert (Q1 : gamma D * sumn (fun i => Rabs (Wo i) * Rabs (ohat i)) D <=
      gamma (Datatypes.S D) * (sumn (fun i => Rabs (Wo i) * (Rabs (oexact i) + oerr i)) D + Rabs bo)) by (apply Rmult_le_compat; lra).
    replace (ph - sumn (fun i => Wo i * oexact i) D) with
      (sumn (fun i => Wo i * (ohat i - oexact i)) D + (ph - sumn (fun i => Wo i * ohat i) D)).
    - eapply Rle_trans; [apply Rabs_triang|]; pose proof projection_error; unfold ph_rounding; lra.
    - replace (sumn (fun i => Wo i * (ohat i - oexact i)) D)
        with (sumn (fun i => Wo i * ohat i) D + (-1) * sumn (fun i => Wo i * oexact i) D); [ring|].
      rewrite <- sumn_scal, <- sumn_plus; apply sumn_ext; intros; ring. }
  pose proof (residual_early_bias_bound u eta u_ge0 u_lt1 eta_ge0 xin ph bo x0 _ ex _ xb y xin_spec PB N1 N2) as B.
  unfold any_pass_bound, y_exact; eapply Rle_trans; [exact B|].
  apply Rplus_le_compat_r, Rplus_le_compat_r, Rmult_le_compat_l; [lra|].
  assert (XS : Rabs xin <= Rabs x0 + ex).
  { replace xin with (x0 + (xin - x0)) by ring; eapply Rle_trans; [apply Rabs_triang | lra]. }
  assert (u * (Rabs xin + Rabs bo) <= u * (Rabs x0 + ex + Rabs bo)) by (apply Rmult_le_compat_l; lra).
  unfold pass_error, early_bias; lra.
Qed.
End Pass.

(** * LayerNorm in front, passes in a row *)
Section Normalised.
Set Default Proof Using "All".
Variables u eta : R.
Hypothesis u_ge0 : 0 <= u.
Hypothesis u_small : u <= / 16.
Hypothesis eta_ge0 : 0 <= eta.
Hypothesis eta_small : 32 * eta <= u.
Lemma u_lt1 : u < 1. Proof. lra. Qed.
Variables (n : nat) (eps : R).
Hypothesis n_pos : (1 <= n)%nat.
Hypothesis n_short : short u (n + 5).
Hypothesis eps_ge0 : 0 <= eps.

(* a token x with input error dl: its computed mean, differences, variance and root; gr bounds the root's error *)
Definition moments (two_pass : bool) (x dl : nat -> R) (gr m : R) (d : nat -> R) (vh ah rh : R) :=
  mean_hat u eta n (xh x dl) m /\ (forall i, (i < n)%nat -> near u eta (xh x dl i - m) (d i)) /\
  (if two_pass then mean_square_hat u eta n d vh
   else exists q p, mean_square_hat u eta n (xh x dl) q /\ rounded_or_fused u eta (m * m) p /\ near u eta (q - p) vh) /\
  near u eta (vh + eps) ah /\ (0 < ah -> Rabs (rh * sqrt ah - 1) <= gr).
(* its computed normalisation nh: the rounded difference times root and weight, plus the bias; *)
Definition normalised (two_pass : bool) (x dl wt bias : nat -> R) (gr : R) (nh : nat -> R) :=
  exists m d vh ah rh, moments two_pass x dl gr m d vh ah rh /\
  forall i, (i < n)%nat -> normalized_hat u eta d rh wt bias i (nh i).
(* or, channel by channel, folded into x s + (bias - m s) *)
Definition any_normalised (two_pass : bool) (x dl wt bias : nat -> R) (gr : R) (nh : nat -> R) :=
  exists m d vh ah rh, moments two_pass x dl gr m d vh ah rh /\
  forall i, (i < n)%nat -> normalized_hat u eta d rh wt bias i (nh i) \/ folded_hat u eta x dl m rh wt bias i (nh i).
Definition e_v (two_pass : bool) x e := if two_pass then two_pass_e_v u eta n x e else one_pass_e_v u eta n x e.

(* E bounds the variance's error: where either variance may be taken, the larger of the two *)
Variables (two_pass : bool) (x dl e wt bias : nat -> R) (gr E : R) (nh : nat -> R).
Hypothesis dl_spec : forall i, (i < n)%nat -> Rabs (dl i) <= e i.
Hypothesis a_pos : 0 < a n x eps.
Hypothesis gr_spec : 0 <= gr <= 1.
Hypothesis E_spec : e_v two_pass x e <= E.
Hypothesis alpha_lt1 : alpha u n x eps E < 1.

Lemma variance_ok m d vh ah rh : moments two_pass x dl gr m d vh ah rh -> Rabs (vh - var n x) <= E - 2 * eta.
Proof.
intros (Hm & Hd & Hv & _); apply Rle_trans with (e_v two_pass x e - 2 * eta); [|lra]; unfold e_v; destruct two_pass.
- exact (two_pass_variance_bound u eta u_ge0 u_lt1 eta_ge0 eta_small n n_pos n_short x dl e eps dl_spec eps_ge0 a_pos m Hm d Hd vh Hv).
- destruct Hv as (q & p & Hq & Hp & Hv).
  exact (one_pass_variance_bound u eta u_ge0 u_lt1 eta_ge0 eta_small n n_pos n_short x dl e eps dl_spec eps_ge0 a_pos m Hm d Hd q vh p Hq Hp Hv).
Qed.
Local Notation given Hm Hd V Ha Hr x := (x u eta u_ge0 u_lt1 eta_ge0 eta_small n n_pos n_short _ dl e eps dl_spec eps_ge0 a_pos _ Hm _ Hd
  _ _ _ E gr V Ha alpha_lt1 gr_spec Hr) (only parsing).
Local Notation loc := (local u eta n x e eps E gr wt bias).
Local Notation any_loc := (any_local u eta n x e eps E gr wt bias).
Local Notation error i := (nh i - exact n x eps wt bias i).

Theorem normalised_functional c : normalised two_pass x dl wt bias gr nh ->
  Rabs (sumn (fun i => c i * error i) n) <= functional u eta n x e eps E gr wt loc c.
Proof.
intros (m & d & vh & ah & rh & M & Hn); pose proof (variance_ok _ _ _ _ _ M) as V; destruct M as (Hm & Hd & Hv & Ha & Hr).
pose proof (given Hm Hd V Ha Hr root_bound) as RB.
exact (given Hm Hd V Ha Hr layer_norm_functional wt bias RB u_small loc c nh (given Hm Hd V Ha Hr local_located wt bias RB u_small nh Hn)).
Qed.
Theorem normalised_channel i : (i < n)%nat -> normalised two_pass x dl wt bias gr nh ->
  Rabs (error i) <= common u eta n x e eps E gr wt i + loc i.
Proof.
intros Hi (m & d & vh & ah & rh & M & Hn); pose proof (variance_ok _ _ _ _ _ M) as V; destruct M as (Hm & Hd & Hv & Ha & Hr).
pose proof (given Hm Hd V Ha Hr root_bound) as RB.
exact (given Hm Hd V Ha Hr layer_norm_bound wt bias RB u_small loc i nh Hi (given Hm Hd V Ha Hr local_located wt bias RB u_small nh Hn)).
Qed.
Theorem any_normalised_functional c : any_normalised two_pass x dl wt bias gr nh ->
  Rabs (sumn (fun i => c i * error i) n) <= functional u eta n x e eps E gr wt any_loc c.
Proof.
intros (m & d & vh & ah & rh & M & Hn); pose proof (variance_ok _ _ _ _ _ M) as V; destruct M as (Hm & Hd & Hv & Ha & Hr).
pose proof (given Hm Hd V Ha Hr root_bound) as RB.
exact (given Hm Hd V Ha Hr layer_norm_functional wt bias RB u_small any_loc c nh (given Hm Hd V Ha Hr any_located wt bias RB u_small nh Hn)).
Qed.
Theorem any_normalised_channel i : (i < n)%nat -> any_normalised two_pass x dl wt bias gr nh ->
  Rabs (error i) <= common u eta n x e eps E gr wt i + any_loc i.
Proof.
intros Hi (m & d & vh & ah & rh & M & Hn); pose proof (variance_ok _ _ _ _ _ M) as V; destruct M as (Hm & Hd & Hv & Ha & Hr).
pose proof (given Hm Hd V Ha Hr root_bound) as RB.
exact (given Hm Hd V Ha Hr layer_norm_bound wt bias RB u_small any_loc i nh Hi (given Hm Hd V Ha Hr any_located wt bias RB u_small nh Hn)).
Qed.
End Normalised.

Theorem second_pass_input (row rowh bound : nat -> R) D : (forall i, (i < D)%nat -> Rabs (rowh i - row i) <= bound i) ->
  forall i, (i < D)%nat -> xh row (fun i => rowh i - row i) i = rowh i /\ Rabs ((fun i => rowh i - row i) i) <= bound i.
Proof. intros H i Hi; unfold xh; split; [ring | now apply H]. Qed.
