(* Prints the values of every count and formula of claims.v at a grid of arguments, one quoted
   line each:   <kind> <id> <arguments> = <values>      rationals as n or n/d
   A test compares them with what the C++ functions return.                               *)
From Coq Require Import ZArith QArith List String DecimalString.
Require Import claims.
Import ListNotations.
Open Scope string_scope.

Definition show_z (z : Z) : string := NilZero.string_of_int (Z.to_int z).
Definition show_n (n : nat) : string := show_z (Z.of_nat n).
Definition show_q (q : Q) : string :=
  let r := Qred q in match Qden r with xH => show_z (Qnum r) | d => show_z (Qnum r) ++ "/" ++ show_z (Zpos d) end.
Fixpoint words (l : list string) : string :=
  match l with [] => "" | [w] => w | w :: r => w ++ " " ++ words r end.
Definition line kind id args values := words ([kind; id] ++ args ++ ["="] ++ values).

Infix "+++" := (@app string) (at level 60, right associativity).

Definition ts := [1; 2; 3; 4; 5; 7; 8; 9; 16; 17; 31; 33; 64; 100; 128; 257; 1000]%nat.
Definition ds := [1; 2; 24; 31; 64; 100]%nat.
Definition chunks := [1; 3; 16; 64; 2000]%nat.
Definition count_line id args c := line "count" id args [show_q (per_age c); show_q (fixed c)].
Definition over2 (f : nat -> nat -> string) := flat_map (fun t => map (f t) ds) ts.

Definition state_lines := flat_map (fun t =>
  [ count_line "recurrence.sequential.state" [show_n t] (sequential_state t);
    count_line "recurrence.masked_attention.state" [show_n t] (masked_attention_state t);
    count_line "recurrence.scan.state" [show_n t] (scan_state t);
    count_line "recurrence.any_order.state" [show_n t] (any_order_state t);
    count_line "recurrence.prefix_product.state" [show_n t] (prefix_product_state t);
    count_line "recurrence.any_form.state" [show_n t] (any_form_state t) ]
  +++ map (fun C => count_line "recurrence.chunked.state" [show_n t; show_n C] (chunked_state t C)) chunks) ts.
Definition output_lines :=
  over2 (fun t D => count_line "recurrence.sequential.output" [show_n t; show_n D] (sequential_output t D))
  +++ over2 (fun t D => count_line "recurrence.masked_attention.output" [show_n t; show_n D] (masked_attention_output t D))
  +++ over2 (fun t D => count_line "recurrence.scan.output" [show_n t; show_n D] (scan_output t D))
  +++ over2 (fun t D => count_line "recurrence.any_order.output" [show_n t; show_n D] (any_order_output t D))
  +++ over2 (fun t D => count_line "recurrence.prefix_product.output" [show_n t; show_n D] (prefix_product_output t D))
  +++ over2 (fun t D => count_line "recurrence.any_form.output" [show_n t; show_n D] (any_form_output t D))
  +++ flat_map (fun C => over2 (fun t D =>
       count_line "recurrence.chunked.output" [show_n t; show_n D; show_n C] (chunked_output t D C))) chunks.

Definition u24 : Q := 1 # 16777216.
Definition tiny126 : Q := 1 # (2 ^ 126).
Definition quadruples : list (Q * Q * Q * Q) :=
  [ (1, 0, 1, 1); (3 # 2, 5 # 4, 7 # 2, 11); (1024, 3, 1 # 8, 65 # 2); (1, 1000, 0, 2) ]%Q.
Definition underflow_lines := flat_map (fun t => flat_map (fun D => map (fun a => match a with (G, q, k, s) =>
  line "underflow" "recurrence.underflow" [show_n t; show_n D; show_q G; show_q q; show_q k; show_q s]
    [show_q (underflow_amount_q t D G q k s)] end) quadruples) ds) [1; 8; 128]%nat.
Definition bound_lines := flat_map (fun t => map (fun D =>
  line "bound" "recurrence.sequential.output" [show_n t; show_n D; "7/2"; "5/4"]
    [show_q (count_bound_q u24 (sequential_output t D) t (7 # 2) (5 # 4))]) ds) ts.

Definition ns := [1; 2; 8; 24; 64; 100; 768; 2043]%nat.
Definition axial_lines := flat_map (fun n =>
  [ line "roundings" "mean_roundings" [show_n n] [show_n (mean_roundings n)];
    line "roundings" "mean_square_roundings" [show_n n] [show_n (mean_square_roundings n)];
    line "roundings" "variance_roundings" [show_n n] [show_n (variance_roundings n)];
    line "roundings" "linear_roundings" [show_n n] [show_n (linear_roundings n)];
    line "roundings" "linear_with_bias_roundings" [show_n n] [show_n (linear_with_bias_roundings n)];
    line "roundings" "logit_roundings" [show_n n] [show_n (logit_roundings n)];
    line "roundings" "numerator_roundings" [show_n n; "0"] [show_n (numerator_roundings n 0)];
    line "roundings" "numerator_roundings" [show_n n; "7"] [show_n (numerator_roundings n 7)];
    line "roundings" "quotient_roundings" [show_n n; "0"] [show_n (quotient_roundings n 0)];
    line "roundings" "quotient_roundings" [show_n n; "7"] [show_n (quotient_roundings n 7)];
    line "lost" "quotient_lost" [show_n n; "0"; "5/4"] [show_q (quotient_lost_q n 0 tiny126 (5 # 4))];
    line "lost" "quotient_lost" [show_n n; "7"; "5/4"] [show_q (quotient_lost_q n 7 tiny126 (5 # 4))];
    line "gamma" "gamma" [show_n n] [show_q (gamma_q u24 n)] ]) ns
  +++ [ line "roundings" "root_roundings" [] [show_n root_roundings];
       line "roundings" "normalize_roundings" [] [show_n normalize_roundings];
       line "roundings" "folded_roundings" [] [show_n folded_roundings] ].

Set Printing Width 400.
Set Printing Depth 100000.
Eval vm_compute in state_lines.
Eval vm_compute in output_lines.
Eval vm_compute in underflow_lines.
Eval vm_compute in bound_lines.
Eval vm_compute in axial_lines.
