(* Why the proved checker refuses a file, in the words of graphreg/verify.py. Not proved: it is only told. *)

open Refusal
open Numerals
open Reader

(* The block of a term, and its place there, by its number among all. *)
let rec located m b k =
  let size = Array.length m.blocks.(b).nodes in
  if k < size || b + 1 = Array.length m.blocks then (b, k) else located m (b + 1) (k - size)

let at_term m k what =
  let b, i = located m 0 k in
  raise (Not_proved (!where ^ place_of m b i ^ what))

(* Losses with a value everywhere have none here where exp is asked for more than it gives. *)
let without_value m k =
  let b, _ = located m 0 k in
  at_term m k (if List.mem m.blocks.(b).kind [ "poisson"; "gamma" ] then "exp of more than 4096" else outside)

let rec reason m says = function
  | Checker.IllFormed block -> refuse (in_file m block ^ " is not well formed")
  | NoValue term -> without_value m term
  | NoPrice term -> at_term m term outside
  | Lengths term -> at_term m term "too many prices and flows, or too few"
  | Unbalanced (node, column, left) ->
      let name names k = cut 40 (Json.quoted names.(Z.to_int k)) in
      let place = Printf.sprintf "at %s, %s:" (name m.labels node) (name m.columns column) in
      refuse (Printf.sprintf "flows and prices do not balance %s %s is left" place (shown (of_rational left)))
  | SmallBox -> refuse "a proof among the w of a box smaller than 2^1000 says nothing of the infimum"
  | OutsideBox -> refuse "w is not within the box"
  | Crossed -> refuse "the bounds cross, which only a faulty checker can say"
  | NoBounds -> refuse "the bounds are claimed, and what else there is"
  | Bounded (low, high) ->
      let low = shown ~side:(-1) (of_rational low) and high = shown ~side:1 (of_rational high) in
      refuse (Printf.sprintf "what is proved is %s %s" low high)
  | NoEdge -> refuse "only norms without a centre fuse and split"
  | NotPositive -> refuse "a distance is positive; that there is none is what `fused` says"
  | WideGap when says = "near" -> refuse "the gap is too large for this distance"
  | WideGap -> refuse "the gap is not exactly 0"
  | NoSlack when says = "near" -> refuse "the slack of the flow is too small for this distance"
  | NoSlack -> refuse "the flow has no slack"
  | NotExcluded -> refuse "equality is not excluded"
  | TermGrows _ | NothingFalls -> refuse "a term grows along the direction, or none falls for ever"
  | InClaim (_, why) -> reason m says why

let refusal m (claims : Claims.stated list) = function
  | Checker.InClaim (k, why) ->
      let says = (List.nth claims k).says in
      where := Printf.sprintf "claim %d, %s: " k says;
      reason m says why
  | why -> reason m "" why
