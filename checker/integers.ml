(* Integer functions of zarith under the names and conventions of Coq. *)
let sqrt_up x = if Z.sign x <= 0 then Z.zero else let s, r = Z.sqrt_rem x in if Z.sign r = 0 then s else Z.succ s
let div a b = if Z.sign b = 0 then Z.zero else Z.fdiv a b
let log2 x = if Z.sign x <= 0 then Z.zero else Z.of_int (Z.numbits x - 1)
let ggcd a b =
  let g = Z.gcd a b in
  if Z.sign g = 0 then (g, (g, g)) else (g, (Z.divexact a g, Z.divexact b g))
