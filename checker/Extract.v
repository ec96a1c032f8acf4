(** The checker as an OCaml program on zarith's integers: extracted/checker.ml. Trusted with it are these directives. *)
Require Import ZArith NArith QArith List.
Require Import ExtrOcamlBasic ExtrOcamlNatInt ExtrOcamlZBigInt.
From Checker Require Import Definitions Numbers Compute Checker.
Extract Constant Z.sqrt_up => "Integers.sqrt_up".
Extract Constant Z.ggcd => "Integers.ggcd".
Extract Constant Z.div => "Integers.div".
Extract Constant Z.log2 => "Integers.log2".
Extract Constant Z.pow => "Integers.pow".
Extract Constant Z.even => "Integers.even".
Extract Constant Z.eqb => "Big_int_Z.eq_big_int".
Extract Constant N.eqb => "Big_int_Z.eq_big_int".
Extract Constant Pos.eqb => "Big_int_Z.eq_big_int".
Extract Constant N.ltb => "Big_int_Z.lt_big_int".
Extract Constant Z.leb => "Big_int_Z.le_big_int".
Extract Constant Z.ltb => "Big_int_Z.lt_big_int".
Extraction "extracted/checker.ml" check to_double exp_up log_up root.
