(* graphreg-checker proof.json [--model HASH] [--gap G] [--seconds S]: what `graphreg verify` does, where the judgement is
   that of the function [check] that is proved in Coq and extracted to checker.ml. The rest, this file among it, is not
   proved: it reads the file (reader.ml, claims.ml, json.ml, numerals.ml, sha256.ml), and says in words what is judged
   (here, explain.ml). A file is said to be proved where [check] says so, and by nothing else. *)

open Refusal
open Json
open Numerals
open Reader

let proved, not_proved, no_proof, wide_gap, within_a_box = (0, 1, 2, 4, 8)
let two_to_the k = Q.of_bigint (Z.shift_left Z.one k)
let box_limit = two_to_the 1000

type proof = { model : model; within : Q.t option; claims : Claims.stated list }

let box w = function
  | Null -> None
  | data ->
      let size = number data in
      need (Q.geq size box_limit) (fun () ->
          "a proof among the w of a box smaller than 2^1000 says nothing of the infimum");
      need (Array.for_all (Array.for_all (fun v -> Q.leq (Q.abs v) size)) w) (fun () -> "w is not within the box");
      Some size

let check text =
  let get = fields "proof" (load text) in
  need (get "format" = Text format) (fun () -> "this is for the format " ^ format);
  let m = model (get "model") in
  let w = matrix "w" m (get "w") in
  let dual = point m (get "dual") in
  let within = box w (get "within") in
  let entries size = " among all w with entries up to " ^ shown ~side:(-1) size in
  let among = Option.fold ~none:"" ~some:entries within in
  let judged claims =
    let claims = List.map (fun c -> c.Claims.claim) claims in
    let bound = Option.map rational within in
    Checker.check { problem = m.problem; at_point = rationals w; dual_point = flat dual; within = bound; claims }
  in
  match Claims.all m within among (get "claims") with
  | claims, None -> (
      match judged claims with
      | Ok _ -> { model = m; within; claims }
      | No why -> Explain.refusal m claims why)
  | claims, Some wrong -> (
      (* What is wrong with a claim is told where nothing is wrong before. *)
      match judged (claims @ [ Claims.nothing ]) with
      | No (Checker.InClaim (k, _)) when k = List.length claims -> raise wrong
      | No why -> Explain.refusal m claims why
      | Ok _ -> raise wrong)

(* ---- what is said ---- *)

let best_bounds proof =
  let bounds = proof.claims |> List.filter_map (fun c -> c.Claims.bounds) in
  let all pick choose = List.fold_left (fun x y -> choose x (pick y)) (pick (List.hd bounds)) bounds in
  (all fst Q.max, all snd Q.min)

(* (high - low) / max(|low|, |high|) of the claimed bounds; 0 where both are 0. *)
let relative_gap proof =
  let low, high = best_bounds proof in
  let size = Q.max (Q.abs low) (Q.abs high) in
  if Q.sign size > 0 then Q.div (Q.sub high low) size else size

let words proof =
  let m = proof.model in
  let of_block b = Printf.sprintf "%d %s of strength %s" (Array.length b.nodes) b.kind (repr b.strength) in
  let sizes = String.concat ", " (list (Array.map of_block m.blocks)) in
  let low, high = best_bounds proof in
  let box = if proof.within = None then "" else " WITHIN A BOX ONLY" in
  let first = Printf.sprintf "PROVED%s for the model %s:" box m.hash in
  let problem = Printf.sprintf "%d nodes, %d columns; %s" (Array.length m.labels) (Array.length m.columns) sizes in
  let apart = shown ~side:1 (Q.sub high low) and relative = shown ~side:1 (relative_gap proof) in
  let gap = Printf.sprintf "the bounds are at most %s apart, %s of the larger" apart relative in
  String.concat "\n  " ((first :: problem :: List.map (fun c -> c.Claims.said) (proof.claims)) @ [ gap ])

(* ---- the command line ---- *)

let usage = "usage: graphreg-checker [-h] [--model HASH] [--gap G] [--seconds S] proof"

let help =
  usage
  ^ "\n\nCheck a proof of graphreg, in exact arithmetic, by a function that is proved in Coq.\n\n"
  ^ "  --model HASH  the model that it must be of\n"
  ^ "  --gap G       exit status 4 where the bounds are further apart than G times the larger of their sizes\n"
  ^ "  --seconds S   the time that it may take (3600)"

exception Usage of string

type asked = { path : string; hash : string option; gap : float option; seconds : float }

let not_negative name s =
  match float_of_string_opt (String.trim s) with
  | Some x when 0.0 <= x && x < infinity -> x
  | _ -> raise (Usage (Printf.sprintf "argument %s: invalid not_negative value: %s" name (quoted s)))

let hash_of s =
  let digit c = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') in
  let right = String.length s = 64 && String.for_all digit s in
  if not right then
    raise (Usage (Printf.sprintf "argument --model: no hash, 64 of 0-9 and a-f: %s; `graphreg hash` has a file's" (ascii s)));
  s

let rec read asked paths = function
  | [] -> (
      match paths with
      | [ path ] -> { asked with path }
      | [] -> raise (Usage "the following arguments are required: proof")
      | _ -> raise (Usage "one proof at a time"))
  | ("-h" | "--help") :: _ -> print_endline help; exit 0
  | "--" :: rest -> read asked (paths @ rest) []
  | option :: rest when String.length option > 1 && option.[0] = '-' ->
      let name, rest =
        match String.index_opt option '=' with
        | Some i -> (String.sub option 0 i, String.sub option (i + 1) (String.length option - i - 1) :: rest)
        | None -> (option, rest)
      in
      let value, rest =
        match rest with
        | value :: rest -> (value, rest)
        | [] -> raise (Usage (Printf.sprintf "argument %s: expected one argument" name))
      in
      let asked =
        match name with
        | "--model" -> { asked with hash = Some (hash_of value) }
        | "--gap" -> { asked with gap = Some (not_negative name value) }
        | "--seconds" -> { asked with seconds = not_negative name value }
        | _ -> raise (Usage ("unrecognized arguments: " ^ option))
      in
      read asked paths rest
  | path :: rest -> read asked (paths @ [ path ]) rest

(* The bytes of a file, as many as are looked at. *)
let bytes_of path =
  let file = Unix.openfile path [ Unix.O_RDONLY ] 0 in
  let out = Buffer.create 65536 and part = Bytes.create 65536 in
  let rec more () =
    let count = Unix.read file part 0 (min 65536 (file_limit + 1 - Buffer.length out)) in
    Buffer.add_subbytes out part 0 count;
    if count > 0 then more ()
  in
  more ();
  Unix.close file;
  Buffer.contents out

let contains text word =
  let n = String.length word in
  let rec from i =
    match String.index_from_opt text i word.[0] with
    | Some i when i + n > String.length text -> false
    | Some i -> String.sub text i n = word || from (i + 1)
    | None -> false
  in
  from 0

(* Lists of a large file are deeper than the stack that programs are given: the same again, once, with a larger one. *)
let again_with_a_larger_stack () =
  let told = "GRAPHREG_CHECKER_HAS_A_LARGER_STACK" in
  if Sys.getenv_opt told <> None then raised "RecursionError" "too much for the stack";
  ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_value = 0.0; it_interval = 0.0 });
  Unix.putenv told "";
  let run = "ulimit -s 2000000 2> /dev/null || ulimit -s $(ulimit -H -s); exec \"$0\" \"$@\"" in
  let arguments = Array.sub Sys.argv 1 (Array.length Sys.argv - 1) in
  Unix.execv "/bin/sh" (Array.append [| "/bin/sh"; "-c"; run; Sys.executable_name |] arguments)

(* What goes wrong of itself while a file is checked proves nothing of it. *)
let within_limits seconds text =
  let stop _ = refuse "the time is up (--seconds)" in
  Sys.set_signal Sys.sigalrm (Sys.Signal_handle stop);
  if seconds > 0.0 then ignore (Unix.setitimer Unix.ITIMER_REAL { Unix.it_value = seconds; it_interval = 0.0 })
  else stop 0;
  try check text with
  | Stack_overflow -> again_with_a_larger_stack ()
  | Out_of_memory -> raised "MemoryError" "out of memory"
  | (Not_found | Failure _ | Invalid_argument _ | Division_by_zero | Z.Overflow) as error ->
      raised "ValueError" (Printexc.to_string error)

let judge asked =
  let text = bytes_of asked.path in
  if not (contains text (Printf.sprintf "\"%s\"" format)) then begin
    let what = Printf.sprintf "this is no proof of graphreg: nothing in it says \"%s\"" format in
    Printf.eprintf "Error: %s: %s\n" (ascii asked.path) what;
    no_proof
  end
  else begin
    let proof = within_limits asked.seconds text in
    let right = asked.hash = None || asked.hash = Some proof.model.hash in
    need right (fun () -> "the proof is of another model, " ^ proof.model.hash);
    print_endline (words proof);
    if asked.hash = None then
      print_endline "This holds of the problem that the file states. Whether that is yours, its hash says: see --model.";
    match asked.gap with
    | Some gap when Q.gt (relative_gap proof) (Q.of_float gap) ->
        Printf.printf "WIDE: --gap %s asks for bounds that are closer.\n" (repr gap);
        wide_gap
    | _ when proof.within <> None ->
        print_endline "WITHIN A BOX ONLY: of w with larger entries, and so of the infimum, nothing is proved.";
        within_a_box
    | _ -> proved
  end

let main () =
  try
    let asked = { path = ""; hash = None; gap = None; seconds = 3600.0 } in
    let asked = read asked [] (List.tl (Array.to_list Sys.argv)) in
    try judge asked with
    | Unix.Unix_error (error, _, _) ->
        Printf.eprintf "Error: %s: %s\n" (ascii asked.path) (Unix.error_message error);
        no_proof
    | Not_proved what ->
        print_endline ("NOT PROVED: " ^ what);
        not_proved
  with Usage what ->
    Printf.eprintf "%s\ngraphreg-checker: error: %s\n" usage what;
    no_proof

let () = exit (main ())
