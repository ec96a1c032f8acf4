(* From the JSON of a proof to what the proved checker takes, and back to names and words. Not proved: nothing in here bears
   on whether what is accepted holds for the problem that [problem] is, everything on WHICH problem that is. It follows
   graphreg/verify.py line by line, so that the messages are the same. *)

open Refusal
open Numerals
open Json

let format = "graphreg-proof-1"

let fields_of =
  List.map
    (fun (what, names) -> (what, String.split_on_char ' ' names))
    [ ("proof", "format model w dual within claims");
      ("model", "labels columns samples edges");
      ("dual", "flows prices");
      ("samples", "loss parameter strength rule node weight x y offset");
      ("samples of rows", "loss parameter strength rule rows weight k y offset");
      ("edges", "penalty parameter strength tail head weight features center");
      ("rows", "penalty parameter strength k rows weight center");
      ("bounds", "says lower upper");
      ("near", "says block edge distance");
      ("fused", "says block edge");
      ("held", "says block edge");
      ("split", "says block edge dual");
      ("unattained", "says direction") ]

(* Of an object with these fields, and no others, each by its name. *)
let fields what data =
  let names = List.assoc what fields_of in
  match data with
  | Object items ->
      let lost = List.filter (fun name -> not (List.mem_assoc name items)) names in
      let more = List.filter (fun name -> not (List.mem name names)) (List.map fst items) in
      (match (lost, more) with
      | name :: _, _ -> refuse (Printf.sprintf "%s lacks field: %s" what (repr 60 (Text name)))
      | [], name :: _ -> refuse (Printf.sprintf "%s has no field: %s" what (repr 60 (Text name)))
      | [], [] -> fun name -> List.assoc name items)
  | _ -> refuse (Printf.sprintf "%s has the fields %s only: %s" what (String.concat " " names) (repr 60 data))

let has key = function Object items -> List.mem_assoc key items | _ -> false
let items name = array_of name None Fun.id
let rational x = { Checker.qnum = Q.num x; qden = Q.den x }
let of_rational { Checker.qnum; qden } = Q.make qnum qden
let double_of x = rational (exact x)
let z = Z.of_int
let list = Array.to_list

let distinct items =
  let seen = Hashtbl.create (2 * Array.length items) in
  Array.for_all (fun x -> (not (Hashtbl.mem seen x)) && (Hashtbl.add seen x (); true)) items

(* ---- losses and penalties ---- *)

let known what table kind =
  match kind with
  | Text name when List.mem name table -> name
  | _ -> refuse (Printf.sprintf "unknown %s %s" what (repr 60 kind))

let losses =
  [ "squared"; "mean"; "logistic"; "poisson"; "huber"; "quantile"; "multinomial"; "hinge"; "squared_hinge"; "expectile";
    "squared_epsilon"; "gamma" ]

let penalties = [ "L1"; "L2"; "LInf"; "SquaredL2"; "Quadratic"; "HuberNorm"; "Zero"; "Ball"; "NonNegative"; "Box" ]
let none what parameter = need (parameter = Null) (fun () -> Printf.sprintf "this %s has no parameter" what)

let tau parameter =
  let x = positive parameter in
  need (x < 1.0) (fun () -> "tau is not below 1");
  rational (Q.of_float x)

(* How many numbers a loss takes, where d are there, and the function by its target. *)
let loss name parameter d =
  let plain target f = none "loss" parameter; (1, fun y -> f (target y)) in
  let label y =
    need (y = Text "1" || y = Text "-1") (fun () -> "the labels are -1 and 1");
    double_of y
  in
  let where ok what y =
    let amount = exact y in
    need (ok amount) (fun () -> what);
    rational amount
  in
  match name with
  | "squared" -> plain double_of (fun y -> Checker.Squared y)
  | "mean" -> none "loss" parameter; (d, fun y -> Checker.Mean (list (array_of "target" (Some d) double_of y)))
  | "logistic" -> plain label (fun y -> Checker.Logistic y)
  | "poisson" -> plain (where (fun y -> Q.sign y >= 0) "counts are not negative") (fun y -> Checker.Poisson y)
  | "gamma" -> plain (where (fun y -> Q.sign y > 0) "amounts are positive") (fun y -> Checker.Gamma y)
  | "hinge" -> plain label (fun y -> Checker.Hinge y)
  | "squared_hinge" -> plain label (fun y -> Checker.SquaredHinge y)
  | "multinomial" ->
      let k = whole 2 (d + 1) parameter in
      (k, fun y -> Checker.Multinomial (whole 0 k y))
  | "huber" | "squared_epsilon" ->
      let delta = rational (Q.of_float (positive parameter)) in
      (1, fun y -> let y = double_of y in if name = "huber" then Checker.Huber (delta, y) else Checker.SquaredEpsilon (delta, y))
  | _ ->
      let tau = tau parameter in
      (1, fun y -> let y = double_of y in if name = "quantile" then Checker.Quantile (tau, y) else Checker.Expectile (tau, y))

(* The function that a penalty of k numbers is, and how many numbers state a flow. *)
let penalty name parameter k =
  let plain f = none "penalty" parameter; (f, k) in
  let sized () = rational (Q.of_float (positive parameter)) in
  match name with
  | "L1" -> plain Checker.L1
  | "L2" -> plain Checker.L2
  | "LInf" -> plain Checker.LInf
  | "SquaredL2" -> plain Checker.SquaredL2
  | "Zero" -> plain Checker.Zero
  | "NonNegative" -> plain Checker.NonNegative
  | "HuberNorm" -> (Checker.HuberNorm (sized ()), k)
  | "Ball" -> (Checker.Ball (sized ()), k)
  | "Quadratic" ->
      let root = Array.map list (rows_of "parameter" None (Some k) double_of parameter) in
      let rank = Array.length root in
      need (0 < rank && rank <= k) (fun () -> "the root of a Quadratic has as many rows as its rank");
      (Checker.Quadratic (list root), rank)
  | _ ->
      let side x = if x = Null then None else Some (double_of x) in
      let sides = function [| low; high |] -> (low, high) | _ -> assert false in
      (Checker.Box (list (Array.map sides (rows_of "parameter" (Some k) (Some 2) side parameter))), k)

(* ---- blocks ---- *)

(* What is said of a block, beside the block itself. *)
type described = {
  kind : string;
  strength : float;
  numbers : int; (* of a price or flow *)
  nodes : int list array; (* of each term; -1 is the ground *)
  features : int array option; (* of edges *)
  norm : bool; (* claims can be of them: a norm without a centre, or of rows *)
  record : Json.t array -> Json.t array -> int -> Json.t list; (* by labels and columns, of each term *)
  block : Checker.block;
}

let cells_of data n d k =
  let cell data =
    match array_of "cell" (Some 3) Fun.id data with
    | [| i; j; x |] ->
        need (x <> Text "0") (fun () -> "a coefficient of 0");
        let i = whole 0 n i in
        let j = whole 0 d j in
        (i, j, double_of x)
    | _ -> assert false
  in
  let rows = listed false "rows" None (fun r -> rows_of (string_of_int r) (Some k) None cell) data in
  let once number = distinct (Array.map (fun (i, j, _) -> (i, j)) number) in
  need (Array.for_all (Array.for_all once) rows) (fun () -> "a cell stands twice");
  rows

let nodes_of row =
  let seen = Hashtbl.create 8 and found = ref [] in
  let one (i, _, _) = if not (Hashtbl.mem seen i) then (Hashtbl.add seen i (); found := i :: !found) in
  Array.iter (Array.iter one) row;
  List.rev !found

let cells rows = Checker.Cells (list (Array.map (fun number -> list (Array.map (fun (i, j, x) -> ((z i, z j), x)) number)) rows))

(* The cells of a row by the names of their nodes and columns, in order. *)
let named_cells labels columns row =
  let named cell =
    match cell with List [| Int i; Int j; x |] -> List [| labels.(i); columns.(j); x |] | _ -> assert false
  in
  let number = function
    | List cells ->
        let cells = Array.map named cells in
        Array.sort compare cells;
        List cells
    | _ -> assert false
  in
  match row with List numbers -> List (Array.map number numbers) | _ -> assert false

let sorted_labels labels nodes =
  let found = List.filter_map (fun i -> if i < 0 then None else Some labels.(i)) nodes in
  List (Array.of_list (List.sort compare found))

let element data i = match data with List items -> items.(i) | _ -> Null
let sound_scale x = need (0.0 < x && x < infinity) (fun () -> "a scale that is no positive double")
let limit_of_rows = whole 1 list_limit

let samples n d data =
  let of_rows = has "rows" data in
  let get = fields (if of_rows then "samples of rows" else "samples") data in
  let kind = get "loss" and parameter = get "parameter" and rule = get "rule" and y = get "y" and offset = get "offset" in
  let strength = positive (get "strength") in
  let at = get (if of_rows then "rows" else "node") in
  let m = Array.length (items (if of_rows then "rows" else "node") at) in
  let name = known "loss" losses kind in
  let k, target = loss name parameter (if of_rows then limit_of_rows (get "k") else d) in
  let x = if of_rows then Null else get "x" in
  let places, nodes =
    if of_rows then begin
      let rows = cells_of at n d k in
      need (get "k" = Int k) (fun () -> Printf.sprintf "a row of this loss has %d numbers" k);
      (Array.map cells rows, Array.map nodes_of rows)
    end
    else begin
      let node = array_of "node" (Some m) (whole 0 n) at in
      need ((x = Null) = (name = "mean") && d mod k = 0) (fun () -> "the width of x");
      let given = if x = Null then Array.make m [ rational Q.one ] else Array.map list (rows_of "x" (Some m) (Some (d / k)) double_of x) in
      (Array.map2 (fun i x -> Checker.AtNode (z i, k, x)) node given, Array.map (fun i -> [ i ]) node)
    end
  in
  need (Array.length places = m) (fun () -> "");
  let functions = array_of "y" (Some m) target y in
  let offsets = Array.map list (rows_of "offset" (Some m) (Some k) double_of offset) in
  let weights = array_of "weight" (Some m) positive (get "weight") in
  let total = Hashtbl.create 16 in
  let of_node i = Option.value (Hashtbl.find_opt total i) ~default:0.0 in
  let by, bases, rules =
    match rule with
    | Text "mean" ->
        need (not of_rows) (fun () -> "a row has no node whose samples a mean is of");
        let node = Array.map List.hd nodes in
        Array.iteri (fun r i -> Hashtbl.replace total i (of_node i +. weights.(r))) node;
        let spelled i =
          if of_node i = infinity then raised "OverflowError" "cannot convert Infinity to integer ratio";
          List [| rule; Text (spell (of_node i)) |]
        in
        (Checker.MeanOfNode, Array.mapi (fun r i -> weights.(r) /. of_node i) node, Array.map spelled node)
    | Text "sum" -> (Checker.AsWeight, weights, Array.make m (List [| rule; Text "1" |]))
    | _ ->
        let factors = array_of "rule" (Some m) positive rule in
        let exactly = Array.map (fun x -> rational (Q.of_float x)) factors in
        (Checker.Times (list exactly), Array.map2 ( *. ) weights factors, items "rule" rule)
  in
  Array.iter (fun base -> sound_scale (strength *. base)) bases;
  let entry r =
    { Checker.what = functions.(r); at_ = places.(r); plus = Some offsets.(r); weight = rational (Q.of_float weights.(r)) }
  in
  let record labels columns r =
    let cells = if of_rows then named_cells labels columns (element at r) else Null in
    [ Text (if of_rows then "sample of a row" else "sample"); sorted_labels labels nodes.(r); cells; kind; parameter;
      get "strength"; rules.(r); element (get "weight") r; element x r; element y r; element offset r ]
  in
  let block = { Checker.strength = rational (Q.of_float strength); by_ = by; entries = List.init m entry } in
  { kind = name; strength; numbers = k; nodes; features = None; norm = false; record; block }

let constraints = [ "Zero"; "Ball"; "NonNegative"; "Box" ]

(* What rows and edges have alike. *)
let penalised get ~what ~places ~nodes ~at ~features k =
  let m = Array.length places and kind = get "penalty" and center = get "center" in
  let strength = positive (get "strength") in
  let name = known "penalty" penalties kind in
  let f, numbers = penalty name (get "parameter") k in
  let centers = if center = Null then None else Some (rows_of "center" (Some m) (Some k) exact center) in
  let weights = array_of "weight" (Some m) positive (get "weight") in
  let free = not (List.mem name constraints) in
  need (free || (strength = 1.0 && Array.for_all (( = ) 1.0) weights)) (fun () -> "a constraint has no weight");
  Array.iter (fun weight -> sound_scale (strength *. weight)) weights;
  let minus center = list (Array.map (fun x -> rational (Q.neg x)) center) in
  let entry e =
    { Checker.what = f; at_ = places.(e); plus = Option.map (fun each -> minus each.(e)) centers;
      weight = rational (Q.of_float weights.(e)) }
  in
  let record labels columns e =
    [ Text what; sorted_labels labels nodes.(e); at labels columns e; kind; get "parameter"; get "strength";
      element (get "weight") e; element center e ]
  in
  let block = { Checker.strength = rational (Q.of_float strength); by_ = AsWeight; entries = List.init m entry } in
  let norm = List.mem name [ "L1"; "L2"; "LInf" ] && (center = Null || features = None) in
  { kind = name; strength; numbers; nodes; features; norm; record; block }

let rows n d data =
  let get = fields "rows" data in
  let k = limit_of_rows (get "k") in
  let read = cells_of (get "rows") n d k in
  let at labels columns e = named_cells labels columns (element (get "rows") e) in
  penalised get ~what:"row" ~places:(Array.map cells read) ~nodes:(Array.map nodes_of read) ~at ~features:None k

let edges n d data =
  let get = fields "edges" data in
  let tail = array_of "tail" None (whole 0 n) (get "tail") in
  let head = array_of "head" (Some (Array.length tail)) (whole (-1) n) (get "head") in
  let no_loop e i = need (i <> head.(e)) (fun () -> Printf.sprintf "edge %d is a loop" e) in
  Array.iteri no_loop tail;
  let features = array_of "features" None (whole 0 d) (get "features") in
  let k = Array.length features in
  need (k > 0 && distinct features) (fun () -> "the features are distinct columns");
  let wanted = list (Array.map z features) in
  let place i j = Checker.Edge (z i, (if j < 0 then None else Some (z j)), wanted) in
  let at _ columns _ = List (Array.map (fun f -> columns.(f)) features) in
  let nodes = Array.map2 (fun i j -> [ i; j ]) tail head in
  let found = penalised get ~what:"edge" ~places:(Array.map2 place tail head) ~nodes ~at ~features:(Some features) k in
  let even = get "center" = Null && not (List.mem found.kind [ "NonNegative"; "Box" ]) in
  need (even || Array.for_all (( = ) (-1)) head) (fun () -> "a centre, or a one-sided penalty, between nodes");
  found

(* ---- the model ---- *)

type model = {
  labels : string array;
  columns : string array;
  samples_ : int; (* so many of the blocks are of samples *)
  blocks : described array;
  problem : Checker.model;
  hash : string;
}

let names what data =
  let strings = what ^ " are strings, and some" in
  let empty = match data with
    | Null | Bool false | Int 0 | Text "" | List [||] | Object [] -> true | _ -> false
  in
  need (not empty) (fun () -> strings);
  let found = Array.map (function Text name -> name | _ -> refuse strings) (items what data) in
  let seen = Hashtbl.create (2 * Array.length found) in
  let count name = Option.value (Hashtbl.find_opt seen name) ~default:0 in
  Array.iter (fun name -> Hashtbl.replace seen name (count name + 1)) found;
  let once name = need (count name = 1) (fun () -> Printf.sprintf "of the %s %s stands twice" what (quoted name)) in
  Array.iter once found;
  found

(* SHA-256 over the sorted records of all that P depends on; the order of nodes, samples and edges is free. *)
let hash_of labels columns blocks =
  let texts = Array.map (fun name -> Text name) in
  let labels = texts labels and columns = texts columns in
  let of_block b = List.init (Array.length b.nodes) (fun r -> b.record labels columns r) in
  let first = [ Text "columns"; List columns ] :: List.map (fun label -> [ Text "node"; label ]) (list labels) in
  let records = first @ List.concat_map of_block (list blocks) in
  let lines = List.sort compare (List.map (fun record -> dump (List (Array.of_list record))) records) in
  Sha256.hex (String.concat "\n" (format :: lines))

let model data =
  let get = fields "model" data in
  let labels = names "labels" (get "labels") in
  let columns = names "columns" (get "columns") in
  let n = Array.length labels and d = Array.length columns in
  let first = array_of "samples" None (samples n d) (get "samples") in
  let second = array_of "edges" None (fun block -> (if has "rows" block then rows else edges) n d block) (get "edges") in
  let parts blocks = list (Array.map (fun b -> b.block) blocks) in
  let problem = { Checker.nodes = z n; columns = z d; samples = parts first; edges = parts second } in
  let blocks = Array.append first second in
  { labels; columns; samples_ = Array.length first; blocks; problem; hash = hash_of labels columns blocks }

(* Where a block stands in the file, by its number among all. *)
let in_file m b =
  if b < m.samples_ then Printf.sprintf "samples[%d]" b else Printf.sprintf "edges[%d]" (b - m.samples_)

(* A dual point: the prices of each sample and the flows of each edge, block by block. *)
let point m data =
  let get = fields "dual" data in
  let flows = items "flows" (get "flows") in
  let prices = items "prices" (get "prices") in
  let right = Array.length prices = m.samples_ && Array.length flows = Array.length m.blocks - m.samples_ in
  need right (fun () -> "a block of the dual point for each");
  let given = Array.append prices flows in
  let block k t =
    let b = m.blocks.(k) in
    rows_of ("dual point of " ^ in_file m k) (Some (Array.length b.nodes)) (Some b.numbers) number t
  in
  Array.mapi block given

let matrix name m = rows_of name (Some (Array.length m.labels)) (Some (Array.length m.columns)) number
let rationals rows = list (Array.map (fun row -> list (Array.map rational row)) rows)
let flat blocks = List.concat_map rationals (list blocks)

(* Where a term stands: "L2 3 of edges[0] ('a' - 'b')". *)
let place_of m b i =
  let block = m.blocks.(b) in
  let first = List.filteri (fun k _ -> k < 9) block.nodes.(i) |> List.filter (fun j -> j >= 0) in
  let names = String.concat " - " (List.map (fun j -> cut 40 (quoted m.labels.(j))) first) in
  Printf.sprintf "%s %d of %s (%s): " block.kind i (in_file m b) names
