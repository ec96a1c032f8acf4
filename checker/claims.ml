(* The claims of a proof: what the proved checker takes of each, and the line that says it. Not proved. *)

open Refusal
open Json
open Numerals
open Reader

let kinds = [ "bounds"; "near"; "fused"; "held"; "split"; "unattained" ]

(* A claim as it is read, or why it is none; that is told in its turn. *)
type stated = { says : string; claim : Checker.claim; said : string; bounds : (Q.t * Q.t) option }

let says_of = function
  | Object items when List.exists (function "says", Text _ -> true | _ -> false) items -> List.assoc "says" items
  | other -> refuse ("no claim: " ^ Json.repr 60 other)

let kind_of_all data =
  let says = array_of "claims" None says_of data in
  let known = function Text says -> List.mem says kinds | _ -> false in
  need (Array.mem (Text "bounds") says && Array.for_all known says) (fun () ->
      "'bounds' must be claimed, and else only " ^ String.concat " " (List.tl kinds));
  Array.map (function Text says -> says | _ -> assert false) says

(* Of the edge or row that a claim is about: its block among all, its place there, and its ends by name. *)
let edge m get =
  let block = whole 0 (Array.length m.blocks - m.samples_) (get "block") in
  let b = m.samples_ + block in
  let e = m.blocks.(b) in
  let i = whole 0 (Array.length e.nodes) (get "edge") in
  need e.norm (fun () -> "only norms without a centre fuse and split");
  let name i = quoted m.labels.(i) in
  let ends = String.concat " - " (List.map name (List.filter (fun j -> j >= 0) e.nodes.(i))) in
  let ends =
    match e.features with
    | None -> Printf.sprintf "row %d of %s (%s)" i (in_file m b) (cut 99 ends)
    | Some features when Array.length features < Array.length m.columns ->
        ends ^ " in " ^ String.concat ", " (list (Array.map (fun f -> quoted m.columns.(f)) features))
    | Some _ -> ends
  in
  (e, block, i, ends)

let read m within among data says =
  let get = fields says data in
  let stated ?bounds claim said = { says; claim; said; bounds } in
  match says with
  | "bounds" ->
      let low = number (get "lower") in
      let high = number (get "upper") in
      let said = Printf.sprintf "%s <= infimum%s <= %s" (shown ~side:(-1) low) among (shown ~side:1 high) in
      stated ~bounds:(low, high) (Checker.Bounds (rational low, rational high)) said
  | "near" ->
      let e, block, i, ends = edge m get in
      let r = number (get "distance") in
      need (Q.sign r > 0) (fun () -> "a distance is positive; that there is none is what `fused` says");
      let what = if e.features = None then "" else "the difference " in
      let said = Printf.sprintf "%s of %s%s is at most %s at every optimum%s" e.kind what ends (shown ~side:1 r) among in
      stated (Checker.Near (block, i, rational r)) said
  | "fused" | "held" ->
      let e, block, i, ends = edge m get in
      let what = if e.features = None then "holds" else "are equal" in
      stated (Checker.Fused (block, i)) (Printf.sprintf "%s %s at every optimum%s" ends what among)
  | "split" ->
      let e, block, i, ends = edge m get in
      let dual = flat (point m (get "dual")) in
      let what = if e.features = None then "holds at no" else "differ at every" in
      stated (Checker.Split (block, i, dual)) (Printf.sprintf "%s %s optimum%s" ends what among)
  | _ ->
      let v = matrix "direction" m (get "direction") in
      stated (Checker.Unattained (rationals v)) ("no minimum is attained" ^ if within = None then "" else " among all w of any size")

(* Bounds that nothing meets: in place of a claim that is none. *)
let nothing = { says = ""; claim = Checker.Bounds (rational Q.one, rational Q.zero); said = ""; bounds = None }

(* What is claimed, up to the first that is no claim, and what is wrong with that. *)
let all m within among claims =
  let data = match claims with List data -> data | _ -> [||] in
  let rec from k found kinds =
    match kinds with
    | [] -> (List.rev found, None)
    | says :: rest -> (
        where := Printf.sprintf "claim %d, %s: " k says;
        match read m within among data.(k) says with
        | claim -> from (k + 1) (claim :: found) rest
        | exception (Not_proved _ as wrong) -> (List.rev found, Some wrong))
  in
  let found = try from 0 [] (list (kind_of_all claims)) with Not_proved _ as wrong -> ([], Some wrong) in
  where := "";
  found
