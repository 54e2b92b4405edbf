(* Every form of the recurrence computes the same function.

       S_{t+1} = g_t S_t + beta_t k_t v_t^T        y_t = q_t^T S_{t+1}
   Steps count from 0: [S n] is the state after n steps.  Over any commutative ring; the forms
   with division over any field; the majorant over any ordered domain.

   Main results
     S_unrolled, y_masked_attention      masked attention, without division
     chunked_correct                     chunks of any size, ragged last chunk
     blocks_correct                      blocks of any sizes, one after the other
     carried_state_S, carried_state_y    splitting at any step and carrying the state
     scan_state, scan_tree_state         the scan in any order of its operator: any tree
     S_closed, y_closed                  the closed form with division, gates not zero
     S_segment, y_segment                the same from any step on, with the state carried
     segments_correct                    prefix_product_segmented: segments that divide, and single
                                         steps that do not, in any succession
     S_majorant, y_majorant              the recurrence on absolute values bounds every form      *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory.
Local Open Scope ring_scope.

Section CommutativeRing.
Variables (R : comRingType) (D M : nat).
Variables (g beta : nat -> R) (k q : nat -> 'cV[R]_D) (v : nat -> 'cV[R]_M).
Variable S0 : 'M[R]_(D, M).

Definition U s : 'M[R]_(D, M) := beta s *: (k s *m (v s)^T).
Fixpoint S n : 'M[R]_(D, M) := if n is n'.+1 then g n' *: S n' + U n' else S0.
Definition y t : 'rV[R]_M := (q t)^T *m S t.+1.

(* decay from just after step s to the end of step n-1 *)
Definition G s n : R := \prod_(s <= r < n) g r.

(* restart the recurrence at any step m *)
Theorem S_restart m n : (m <= n)%N ->
  S n = G m n *: S m + \sum_(m <= s < n) G s.+1 n *: U s.
Proof.
elim: n => [|n IH]; first by rewrite leqn0 => /eqP->; rewrite /G !big_geq // scale1r addr0.
rewrite leq_eqVlt => /orP[/eqP<-|]; first by rewrite /G !big_geq // scale1r addr0.
rewrite ltnS => le_mn; rewrite /= (IH le_mn) scalerDr scalerA.
rewrite big_nat_recr //= /G [\prod_(n.+1 <= _ < n.+1) _]big_geq // scale1r addrA.
rewrite [\prod_(m <= _ < n.+1) _]big_nat_recr //= mulrC; congr (_ + _ + _).
rewrite scaler_sumr; apply: eq_big_nat => s /andP[_ lt_sn].
by rewrite scalerA [in RHS]big_nat_recr //= mulrC.
Qed.

(* the unrolled state *)
Theorem S_unrolled n : S n = G 0 n *: S0 + \sum_(0 <= s < n) G s.+1 n *: U s.
Proof. exact: S_restart. Qed.

Definition score t s : R := ((q t)^T *m k s) 0 0.

Lemma qU t s : (q t)^T *m U s = (beta s * score t s) *: (v s)^T.
Proof.
rewrite /U -scalemxAr mulmxA -scalerA; congr (_ *: _).
by rewrite [(q t)^T *m k s]mx11_scalar mul_scalar_mx.
Qed.

(* masked attention from step m on: m = 0, or the start of a chunk *)
Theorem y_attention_from m t : (m <= t)%N ->
  y t = G m t.+1 *: ((q t)^T *m S m)
        + \sum_(m <= s < t.+1) (G s.+1 t.+1 * beta s * score t s) *: (v s)^T.
Proof.
move=> le_mt; rewrite /y (@S_restart m) ?(leqW le_mt) // mulmxDr -scalemxAr.
congr (_ + _); rewrite mulmx_sumr; apply: eq_bigr => s _.
by rewrite -scalemxAr qU scalerA mulrA.
Qed.

Theorem y_masked_attention t :
  y t = G 0 t.+1 *: ((q t)^T *m S0)
        + \sum_(0 <= s < t.+1) (G s.+1 t.+1 * beta s * score t s) *: (v s)^T.
Proof. exact: y_attention_from. Qed.

(* chunks of C steps; the last one may be shorter *)
Section Chunked.
Variable C : nat.
Fixpoint chunk_state c : 'M[R]_(D, M) :=
  if c is c'.+1 then
    G (c' * C) (c * C) *: chunk_state c'
    + \sum_(c' * C <= s < c * C) G s.+1 (c * C) *: U s
  else S0.
Definition chunk_out c i : 'rV[R]_M :=
  let t := (c * C + i)%N in
  G (c * C) t.+1 *: ((q t)^T *m chunk_state c)
  + \sum_(c * C <= s < t.+1) (G s.+1 t.+1 * beta s * score t s) *: (v s)^T.

Theorem chunk_stateE c : chunk_state c = S (c * C).
Proof.
elim: c => [|c IH] //; rewrite [LHS]/= IH -S_restart //.
by rewrite leq_mul2r leqnSn orbT.
Qed.

Theorem chunk_outE c i : chunk_out c i = y (c * C + i).
Proof. by rewrite /chunk_out chunk_stateE -y_attention_from // leq_addr. Qed.

Corollary chunked_correct t : chunk_out (t %/ C) (t %% C) = y t.
Proof. by rewrite chunk_outE -divn_eq. Qed.
End Chunked.

(* the scan operator *)
Definition T : Type := (R * 'M[R]_(D, M))%type.
Definition op (a b : T) : T := (a.1 * b.1, b.1 *: a.2 + b.2).
Definition id0 : T := (1, 0).

Theorem opA : associative op.
Proof.
move=> [g1 u1] [g2 u2] [g3 u3]; rewrite /op /= mulrA; congr (_, _).
by rewrite scalerDr scalerA [g3 * g2]mulrC addrA.
Qed.
Theorem op1m : left_id id0 op.
Proof. by move=> [a u]; rewrite /op /= mul1r scaler0 add0r. Qed.
Theorem opm1 : right_id id0 op.
Proof. by move=> [a u]; rewrite /op /= mulr1 scale1r addr0. Qed.
Canonical op_monoid := Monoid.Law opA op1m opm1.

Definition act (a : T) (X : 'M[R]_(D, M)) : 'M[R]_(D, M) := a.1 *: X + a.2.

(* scan over any window [m, n): by big_cat_nat / opA any bracketing agrees *)
Theorem scanE m n : (m <= n)%N ->
  \big[op/id0]_(m <= s < n) (g s, U s)
  = (G m n, \sum_(m <= s < n) G s.+1 n *: U s).
Proof.
elim: n => [|n IH]; first by rewrite leqn0 => /eqP->; rewrite /G !big_geq.
rewrite leq_eqVlt => /orP[/eqP<-|]; first by rewrite /G !big_geq.
rewrite ltnS => le_mn; rewrite big_nat_recr //= (IH le_mn) /op /= /G.
rewrite [\prod_(m <= _ < n.+1) _]big_nat_recr //=; congr (_, _).
rewrite big_nat_recr //= [\prod_(n.+1 <= _ < n.+1) _]big_geq // scale1r.
congr (_ + _); rewrite scaler_sumr; apply: eq_big_nat => s /andP[_ lt_sn].
by rewrite scalerA [in RHS]big_nat_recr //= mulrC.
Qed.

Theorem scan_split m p n : (m <= p)%N -> (p <= n)%N ->
  \big[op/id0]_(m <= s < n) (g s, U s)
  = op (\big[op/id0]_(m <= s < p) (g s, U s)) (\big[op/id0]_(p <= s < n) (g s, U s)).
Proof. by move=> le_mp le_pn; rewrite (@big_cat_nat _ _ _ p). Qed.

Theorem scan_state n : act (\big[op/id0]_(0 <= s < n) (g s, U s)) S0 = S n.
Proof. by rewrite scanE // S_unrolled. Qed.

Theorem foldl_scan_state n :
  act (foldl op id0 [seq (g s, U s) | s <- iota 0 n]) S0 = S n.
Proof.
rewrite -scan_state; congr (act _ _).
have foldlE a l : foldl op a l = op a (\big[op/id0]_(x <- l) x).
  elim: l a => [|x l IH] a /=; first by rewrite big_nil opm1.
  by rewrite IH big_cons opA.
by rewrite foldlE op1m big_map /index_iota subn0.
Qed.

(* blocks of any lengths, one after the other *)
Fixpoint blocks (c : nat) (X : 'M[R]_(D, M)) (ls : seq nat) : 'M[R]_(D, M) :=
  if ls is L :: r then
    blocks (c + L)%N (G c (c + L) *: X + \sum_(c <= s < c + L) G s.+1 (c + L) *: U s) r
  else X.
Theorem blocks_correct ls : blocks 0 S0 ls = S (sumn ls).
Proof.
suff H c : blocks c (S c) ls = S (c + sumn ls)%N by rewrite (H 0%N).
elim: ls c => [|L ls IH] c /=; first by rewrite addn0.
by rewrite -S_restart ?leq_addr // IH addnA.
Qed.

(* any bracketing of the scan operator *)
Inductive tree := Leaf | Node of tree & tree.
Fixpoint leaves t := if t is Node l r then (leaves l + leaves r)%N else 1%N.
Fixpoint scan_tree (s : nat) t : T :=
  if t is Node l r then op (scan_tree s l) (scan_tree (s + leaves l)%N r) else (g s, U s).
Theorem scan_tree_big s t :
  scan_tree s t = \big[op/id0]_(s <= r < s + leaves t) (g r, U r).
Proof.
elim: t s => [|l IHl r IHr] s /=; first by rewrite addn1 big_nat1.
by rewrite IHl IHr addnA -scan_split ?leq_addr.
Qed.
Theorem scan_tree_state t : act (scan_tree 0 t) S0 = S (leaves t).
Proof. by rewrite scan_tree_big add0n scan_state. Qed.
End CommutativeRing.

(* splitting: run the rest of the sequence from the state so far *)
Section Carried.
Variables (R : comRingType) (D M : nat).
Variables (g beta : nat -> R) (k q : nat -> 'cV[R]_D) (v : nat -> 'cV[R]_M) (S0 : 'M[R]_(D, M)) (m : nat).
Definition from {A} (f : nat -> A) t := f (m + t)%N.
Local Notation state := (S g beta k v S0).
Theorem carried_state_S n : S (from g) (from beta) (from k) (from v) (state m) n = state (m + n)%N.
Proof. by elim: n => [|n IH]; rewrite ?addn0 // addnS /= IH. Qed.
Theorem carried_state_y t :
  y (from g) (from beta) (from k) (from q) (from v) (state m) t = y g beta k q v S0 (m + t)%N.
Proof. by rewrite /y carried_state_S addnS. Qed.
End Carried.

(* Majorant: the same recurrence on absolute values dominates; by the theorems above it is
   the same number whichever form (masked, chunked, scan, closed) is run on absolute values. *)
Section Majorant.
Import Num.Theory Order.Theory.
Variables (R : numDomainType) (D M : nat).
Variables (g beta : nat -> R) (k q : nat -> 'cV[R]_D) (v : nat -> 'cV[R]_M).
Variable S0 : 'M[R]_(D, M).
Definition absmx m n (A : 'M[R]_(m, n)) := map_mx (fun x => `|x|) A.
Definition A n := S (fun r => `|g r|) (fun r => `|beta r|) (fun r => absmx (k r))
                    (fun r => absmx (v r)) (absmx S0) n.
Definition B t := y (fun r => `|g r|) (fun r => `|beta r|) (fun r => absmx (k r))
                    (fun r => absmx (q r)) (fun r => absmx (v r)) (absmx S0) t.
Theorem S_majorant n i j : `|S g beta k v S0 n i j| <= A n i j.
Proof.
elim: n => [|n IH]; first by rewrite /A /= mxE.
rewrite /A /= !mxE -/(A n) !big_ord1 !mxE.
apply: le_trans (ler_norm_add _ _) _; apply: ler_add; rewrite !normrM //.
by apply: ler_wpmul2l.
Qed.
Theorem y_majorant t j : `|y g beta k q v S0 t 0 j| <= B t 0 j.
Proof.
rewrite /B /y [X in `|X|]mxE [X in _ <= X]mxE; apply: le_trans (ler_norm_sum _ _ _) _.
apply: ler_sum => i _; rewrite normrM !mxE; apply: ler_wpmul2l => //.
by have := S_majorant t.+1 i j; rewrite /A /= !mxE.
Qed.
End Majorant.

(* the closed form with division: no gate may be zero *)
Section Field.
Variables (F : fieldType) (D M : nat).
Variables (g beta : nat -> F) (k q : nat -> 'cV[F]_D) (v : nat -> 'cV[F]_M).
Variable S0 : 'M[F]_(D, M).
Local Notation S := (S g beta k v S0).
Local Notation y := (y g beta k q v S0).
Definition P n : F := \prod_(0 <= r < n) g r.

Lemma P_neq0 n : (forall r, (r < n)%N -> g r != 0) -> P n != 0.
Proof.
move=> gn0; rewrite /P big_nat; apply: (big_ind (fun x => x != 0)).
- exact: oner_neq0.
- by move=> a b; apply: mulf_neq0.
- by move=> i /gn0.
Qed.

Theorem S_closed n : (forall r, (r < n)%N -> g r != 0) ->
  S n = P n *: (S0 + \sum_(0 <= s < n) (beta s / P s.+1) *: (k s *m (v s)^T)).
Proof.
move=> gn0; rewrite S_unrolled scalerDr; congr (_ + _).
rewrite scaler_sumr; apply: eq_big_nat => s /andP[_ lt_sn].
rewrite /U !scalerA; congr (_ *: _).
have Ps : P s.+1 != 0 by apply: P_neq0 => r lt_rs; apply: gn0; apply: leq_trans lt_sn.
rewrite /G /P (@big_cat_nat _ _ _ s.+1 0 n) //= -/(P s.+1).
by rewrite [beta s / _]mulrC !mulrA [P s.+1 * _]mulrC mulfK // mulrC.
Qed.

Theorem y_closed t : (forall r, (r <= t)%N -> g r != 0) ->
  y t = P t.+1 *: ((q t)^T *m
        (S0 + \sum_(0 <= s < t.+1) (beta s / P s.+1) *: (k s *m (v s)^T))).
Proof. by move=> gn0; rewrite /y S_closed // -scalemxAr. Qed.

(* the closed form from step c on: P counts from there *)
Definition Pc c n : F := \prod_(c <= r < n) g r.
Lemma Pc_neq0 c n : (forall r, (c <= r < n)%N -> g r != 0) -> Pc c n != 0.
Proof.
move=> gn0; rewrite /Pc big_nat; apply: (big_ind (fun x => x != 0)).
- exact: oner_neq0.
- by move=> a b; apply: mulf_neq0.
- by move=> i /gn0.
Qed.
Theorem S_segment c n : (c <= n)%N -> (forall r, (c <= r < n)%N -> g r != 0) ->
  S n = Pc c n *: (S c + \sum_(c <= s < n) (beta s / Pc c s.+1) *: (k s *m (v s)^T)).
Proof.
move=> le_cn gn0; rewrite (@S_restart _ _ _ _ _ _ _ _ c n) // scalerDr; congr (_ + _).
rewrite scaler_sumr; apply: eq_big_nat => s /andP[le_cs lt_sn].
rewrite /U !scalerA; congr (_ *: _).
have Ps : Pc c s.+1 != 0.
  apply: Pc_neq0 => r /andP[le_cr lt_rs]; apply: gn0; rewrite le_cr /=; exact: leq_trans lt_sn.
rewrite /G /Pc (@big_cat_nat _ _ _ s.+1 c n) //=; last exact: leqW.
by rewrite -/(Pc c s.+1) [beta s / _]mulrC !mulrA [Pc c s.+1 * _]mulrC mulfK // mulrC.
Qed.
Theorem y_segment c t : (c <= t.+1)%N -> (forall r, (c <= r < t.+1)%N -> g r != 0) ->
  y t = Pc c t.+1 *: ((q t)^T *m
        (S c + \sum_(c <= s < t.+1) (beta s / Pc c s.+1) *: (k s *m (v s)^T))).
Proof. by move=> le_ct gn0; rewrite /y (S_segment le_ct) // -scalemxAr. Qed.

(* segments: Some L divides over L steps, None is one step as the definition has it *)
Fixpoint segments (c : nat) (X : 'M[F]_(D, M)) (ls : seq (option nat)) : 'M[F]_(D, M) :=
  match ls with
  | [::] => X
  | Some L :: r => segments (c + L)%N
      (Pc c (c + L) *: (X + \sum_(c <= s < c + L) (beta s / Pc c s.+1) *: (k s *m (v s)^T))) r
  | None :: r => segments c.+1 (g c *: X + beta c *: (k c *m (v c)^T)) r
  end.
Fixpoint legal (c : nat) (ls : seq (option nat)) : Prop :=
  match ls with
  | [::] => True
  | Some L :: r => (forall s, (c <= s < c + L)%N -> g s != 0) /\ legal (c + L)%N r
  | None :: r => legal c.+1 r
  end.
Definition steps (ls : seq (option nat)) := sumn [seq odflt 1%N o | o <- ls].
Theorem segments_correct ls : legal 0 ls -> segments 0 S0 ls = S (steps ls).
Proof.
suff H c : legal c ls -> segments c (S c) ls = S (c + steps ls)%N by move=> /(H 0%N).
rewrite /steps; elim: ls c => [|[L|] ls IH] c /=; first by rewrite addn0.
- by case=> gn0 lg; rewrite -S_segment ?leq_addr // IH // addnA.
- by move=> lg; rewrite (IH c.+1 lg) addSnnS.
Qed.
End Field.
