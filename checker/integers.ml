(* Integers of zarith as the proved checker uses them, and a budget: a hostile file makes numbers of any size from small
   ones. Where the budget or the time is used up an exception refuses the file, which proves nothing of it. *)

open Refusal

let work = ref (1 lsl 28) (* products of 64-bit words that large numbers may take *)

let charge bits =
  if bits > 512 then begin
    work := !work - ((bits * bits) lsr 12);
    need (!work > 0) (fun () -> "the numbers grow too large")
  end

(* ---- what the extracted checker calls in place of functions of Coq's library, see Extract.v ---- *)

let ggcd a b =
  let g = Z.gcd a b in
  charge (Z.numbits a + Z.numbits b);
  if Z.sign g = 0 then (g, (Z.zero, Z.zero)) else (g, (Z.divexact a g, Z.divexact b g))

let sqrt_up n = if Z.sign n <= 0 then Z.zero else Z.succ (Z.sqrt (Z.pred n))
let log2 n = if Z.sign n <= 0 then Z.zero else Z.of_int (Z.numbits n - 1)
let pow x y = if Z.sign y < 0 then Z.zero else Z.pow x (Z.to_int y)
let even = Z.is_even

(* Coq divides by 0, too: the quotient is 0. *)
let div x y = if Z.sign y = 0 then Z.zero else Z.fdiv x y
