(* Why a file is no proof, and where: in the words of graphreg/verify.py. *)

exception Not_proved of string

let where = ref "" (* the term or claim that is looked at *)

(* The first characters of a text in UTF-8. *)
let cut count text =
  let rec ends i left =
    if i >= String.length text then text
    else if Char.code text.[i] land 0xc0 = 0x80 then ends (i + 1) left
    else if left = 0 then String.sub text 0 i
    else ends (i + 1) (left - 1)
  in
  ends 0 count

let refuse what = raise (Not_proved (!where ^ cut 300 what))
let need ok what = if not ok then refuse (what ())

(* What Python raises of itself is reported with the name of the exception. *)
let raised kind what = raise (Not_proved (cut 300 (Printf.sprintf "%s%s: %s" !where kind what)))
let outside = "outside the domain"
