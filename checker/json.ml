(* Strict JSON as graphreg/verify.py reads it: ASCII, small integers, no floats, no key twice, of a bounded size and
   depth. Not proved. Strings are kept in UTF-8 (half a surrogate pair as three bytes), whose bytes are in the order of
   code points. *)

open Refusal

type t = Null | Bool of bool | Int of int | Text of string | List of t array | Object of (string * t) list

let file_limit, list_limit, entry_limit, depth_limit = (1 lsl 26, 1 lsl 22, 1 lsl 24, 900)

(* ---- writing: as Python's repr, and as its json.dumps ---- *)

exception Long_enough

let code_points text =
  let n = String.length text in
  let byte i = Char.code text.[i] land 0x3f in
  let rec from i found =
    if i >= n then List.rev found
    else
      match Char.code text.[i] with
      | c when c < 0x80 -> from (i + 1) (c :: found)
      | c when c < 0xe0 -> from (i + 2) ((((c land 0x1f) lsl 6) lor byte (i + 1)) :: found)
      | c when c < 0xf0 -> from (i + 3) ((((c land 0xf) lsl 12) lor (byte (i + 1) lsl 6) lor byte (i + 2)) :: found)
      | c ->
          let rest = (byte (i + 1) lsl 12) lor (byte (i + 2) lsl 6) lor byte (i + 3) in
          from (i + 4) ((((c land 7) lsl 18) lor rest) :: found)
  in
  from 0 []

let add_utf8 out c =
  let tail shift = Buffer.add_char out (Char.chr (0x80 lor ((c lsr shift) land 0x3f))) in
  if c < 0x80 then Buffer.add_char out (Char.chr c)
  else if c < 0x800 then (Buffer.add_char out (Char.chr (0xc0 lor (c lsr 6))); tail 0)
  else if c < 0x10000 then (Buffer.add_char out (Char.chr (0xe0 lor (c lsr 12))); tail 6; tail 0)
  else (Buffer.add_char out (Char.chr (0xf0 lor (c lsr 18))); tail 12; tail 6; tail 0)

(* Python asks the tables of Unicode; these are the ranges of characters without a shape that occur in practice. *)
let printable c =
  let hidden =
    [ (0, 0x1f); (0x7f, 0xa0); (0xad, 0xad); (0x1680, 0x1680); (0x2000, 0x200f); (0x2028, 0x202f); (0x205f, 0x206f);
      (0x3000, 0x3000); (0xd800, 0xf8ff); (0xfeff, 0xfeff); (0xfff0, 0xfffb); (0xfffe, 0xffff); (0xe0000, 0x10ffff) ]
  in
  not (List.exists (fun (low, high) -> low <= c && c <= high) hidden)

let quoted ?(shown = printable) text =
  let out = Buffer.create (String.length text + 2) in
  let quote = if String.contains text '\'' && not (String.contains text '"') then '"' else '\'' in
  let one c =
    if c = Char.code quote || c = 0x5c then (Buffer.add_char out '\\'; Buffer.add_char out (Char.chr c))
    else if shown c then add_utf8 out c
    else
      match c with
      | 9 -> Buffer.add_string out "\\t"
      | 10 -> Buffer.add_string out "\\n"
      | 13 -> Buffer.add_string out "\\r"
      | _ when c < 0x100 -> Printf.bprintf out "\\x%02x" c
      | _ when c < 0x10000 -> Printf.bprintf out "\\u%04x" c
      | _ -> Printf.bprintf out "\\U%08x" c
  in
  Buffer.add_char out quote;
  List.iter one (code_points text);
  Buffer.add_char out quote;
  Buffer.contents out

let ascii = quoted ~shown:(fun c -> 0x20 <= c && c < 0x7f)

(* The first characters of Python's repr. *)
let repr limit data =
  let out = Buffer.create 64 in
  let add text =
    Buffer.add_string out text;
    if Buffer.length out > 4 * limit then raise Long_enough
  in
  let between each = List.iteri (fun i x -> if i > 0 then add ", "; each x) in
  let rec value = function
    | Null -> add "None"
    | Bool x -> add (if x then "True" else "False")
    | Int i -> add (string_of_int i)
    | Text text -> add (quoted (cut (limit + 1) text))
    | List items -> add "["; between value (Array.to_list (Array.sub items 0 (min limit (Array.length items)))); add "]"
    | Object items -> add "{"; between (fun (key, x) -> value (Text key); add ": "; value x) items; add "}"
  in
  (try value data with Long_enough -> ());
  cut limit (Buffer.contents out)

(* One line of ASCII without spaces. *)
let dump data =
  let out = Buffer.create 256 in
  let character c =
    match c with
    | 0x22 -> Buffer.add_string out "\\\""
    | 0x5c -> Buffer.add_string out "\\\\"
    | 8 -> Buffer.add_string out "\\b"
    | 9 -> Buffer.add_string out "\\t"
    | 10 -> Buffer.add_string out "\\n"
    | 12 -> Buffer.add_string out "\\f"
    | 13 -> Buffer.add_string out "\\r"
    | _ when 0x20 <= c && c < 0x7f -> Buffer.add_char out (Char.chr c)
    | _ when c < 0x10000 -> Printf.bprintf out "\\u%04x" c
    | _ ->
        let c = c - 0x10000 in
        Printf.bprintf out "\\u%04x\\u%04x" (0xd800 lor (c lsr 10)) (0xdc00 lor (c land 0x3ff))
  in
  let rec value = function
    | Null -> Buffer.add_string out "null"
    | Bool x -> Buffer.add_string out (if x then "true" else "false")
    | Int i -> Buffer.add_string out (string_of_int i)
    | Text text ->
        Buffer.add_char out '"';
        List.iter character (code_points text);
        Buffer.add_char out '"'
    | List items ->
        Buffer.add_char out '[';
        Array.iteri (fun i x -> if i > 0 then Buffer.add_char out ','; value x) items;
        Buffer.add_char out ']'
    | Object items ->
        let pair i (key, x) =
          if i > 0 then Buffer.add_char out ',';
          value (Text key);
          Buffer.add_char out ':';
          value x
        in
        Buffer.add_char out '{';
        List.iteri pair items;
        Buffer.add_char out '}'
  in
  value data;
  Buffer.contents out

(* ---- reading ---- *)

let broken text what at =
  let before = String.sub text 0 at in
  let line = List.length (String.split_on_char '\n' before) in
  let column = match String.rindex_opt before '\n' with None -> at + 1 | Some i -> at - i in
  raised "broken JSON" (Printf.sprintf "%s: line %d column %d (char %d)" what line column at)

let small_integer s =
  let digits = if s <> "" && s.[0] = '-' then String.length s - 1 else String.length s in
  let plain = String.for_all (fun c -> c = '-' || ('0' <= c && c <= '9')) s in
  need (plain && 1 <= digits && digits <= 9) (fun () ->
      "numbers that are no small integers are written as strings: " ^ cut 30 s);
  Int (int_of_string s)

let without_doubles items =
  let seen = Hashtbl.create 16 in
  let fresh (key, _) = (not (Hashtbl.mem seen key)) && (Hashtbl.add seen key (); true) in
  if not (List.for_all fresh items) then begin
    let keys = List.filteri (fun i _ -> i < 8) items |> List.map (fun (key, _) -> quoted (cut 20 key)) in
    refuse ("a key stands twice: [" ^ String.concat ", " keys ^ "]")
  end;
  items

let hexadecimal c =
  match c with
  | '0' .. '9' -> Some (Char.code c - 48)
  | 'a' .. 'f' -> Some (Char.code c - 87)
  | 'A' .. 'F' -> Some (Char.code c - 55)
  | _ -> None

let parse text =
  let n = String.length text and at = ref 0 in
  let fail what i = broken text what i in
  let peek () = if !at < n then Some text.[!at] else None in
  let rec skip () =
    match peek () with Some (' ' | '\t' | '\n' | '\r') -> incr at; skip () | _ -> ()
  in
  let starts word = !at + String.length word <= n && String.sub text !at (String.length word) = word in
  let digits_from i =
    let j = ref i in
    while !j < n && '0' <= text.[!j] && text.[!j] <= '9' do incr j done;
    !j
  in
  let number () =
    let first = if text.[!at] = '-' then !at + 1 else !at in
    if first >= n || not ('0' <= text.[first] && text.[first] <= '9') then fail "Expecting value" !at;
    let whole = if text.[first] = '0' then first + 1 else digits_from first in
    let point = if whole < n && text.[whole] = '.' then digits_from (whole + 1) else whole in
    let point = if point > whole + 1 then point else whole in
    let power =
      if point < n && (text.[point] = 'e' || text.[point] = 'E') then begin
        let i = if point + 1 < n && (text.[point + 1] = '+' || text.[point + 1] = '-') then point + 2 else point + 1 in
        if digits_from i > i then digits_from i else point
      end
      else point
    in
    let s = String.sub text !at (power - !at) in
    at := power;
    small_integer s
  in
  let four_digits i =
    if i + 4 >= n then fail "Invalid \\uXXXX escape" i
    else
      List.fold_left
        (fun c k -> match hexadecimal text.[i + k] with Some d -> (16 * c) + d | None -> fail "Invalid \\uXXXX escape" (i - 1))
        0 [ 0; 1; 2; 3 ]
  in
  let quoted () =
    let start = !at and out = Buffer.create 16 in
    let rec from i =
      if i >= n then fail "Unterminated string starting at" start;
      match text.[i] with
      | '"' -> at := i + 1
      | '\\' -> escaped (i + 1)
      | c when c < ' ' -> fail "Invalid control character at" i
      | c -> Buffer.add_char out c; from (i + 1)
    and escaped i =
      if i >= n then fail "Unterminated string starting at" start;
      let put c = Buffer.add_char out c; from (i + 1) in
      match text.[i] with
      | ('"' | '\\' | '/') as c -> put c
      | 'b' -> put '\b'
      | 'f' -> put '\012'
      | 'n' -> put '\n'
      | 'r' -> put '\r'
      | 't' -> put '\t'
      | 'u' ->
          let c = four_digits (i + 1) and next = i + 5 in
          let pair = 0xd800 <= c && c < 0xdc00 && next + 6 < n && text.[next] = '\\' && text.[next + 1] = 'u' in
          let low = if pair then List.filter_map (fun k -> hexadecimal text.[next + k]) [ 2; 3; 4; 5 ] else [] in
          let low = if List.length low = 4 then List.fold_left (fun c d -> (16 * c) + d) 0 low else 0 in
          if 0xdc00 <= low && low < 0xe000 then begin
            add_utf8 out (0x10000 + ((c land 0x3ff) lsl 10) + (low land 0x3ff));
            from (next + 6)
          end
          else (add_utf8 out c; from next)
      | _ -> fail "Invalid \\escape: " (i - 1)
    in
    from (start + 1);
    Buffer.contents out
  in
  let rec value depth =
    if depth > depth_limit then raised "RecursionError" "maximum recursion depth exceeded while decoding a JSON document";
    match peek () with
    | None -> fail "Expecting value" !at
    | Some '"' -> Text (quoted ())
    | Some '[' -> List (Array.of_list (items ']' (fun () -> value (depth + 1))))
    | Some '{' -> Object (without_doubles (items '}' (fun () -> pair depth)))
    | Some ('-' | '0' .. '9') when not (starts "-Infinity") -> number ()
    | Some _ ->
        let word (s, found) = if starts s then (at := !at + String.length s; Some (found s)) else None in
        let constant x _ = x in
        let words =
          [ ("null", constant Null); ("true", constant (Bool true)); ("false", constant (Bool false));
            ("NaN", small_integer); ("Infinity", small_integer); ("-Infinity", small_integer) ]
        in
        (match List.find_map word words with Some x -> x | None -> fail "Expecting value" !at)
  and pair depth =
    if peek () <> Some '"' then fail "Expecting property name enclosed in double quotes" !at;
    let key = quoted () in
    skip ();
    if peek () <> Some ':' then fail "Expecting ':' delimiter" !at;
    incr at;
    skip ();
    let x = value (depth + 1) in
    (key, x)
  and items : 'a. char -> (unit -> 'a) -> 'a list = fun last each ->
    incr at;
    skip ();
    if peek () = Some last then (incr at; [])
    else
      let rec more found =
        let found = each () :: found in
        skip ();
        match peek () with
        | Some c when c = last -> incr at; List.rev found
        | Some ',' -> incr at; skip (); more found
        | _ -> fail "Expecting ',' delimiter" !at
      in
      more []
  in
  skip ();
  let found = value 0 in
  skip ();
  if !at <> n then fail "Extra data" !at;
  found

let count c text =
  let found = ref 0 in
  String.iter (fun x -> if x = c then incr found) text;
  !found

let load text =
  let lists = count '[' text + count '{' text in
  need (String.length text <= file_limit && count ',' text <= entry_limit && lists <= list_limit) (fun () ->
      "the file is too large");
  String.iteri
    (fun i c ->
      if c >= '\x80' then
        raised "UnicodeDecodeError"
          (Printf.sprintf "'ascii' codec can't decode byte 0x%02x in position %d: ordinal not in range(128)" (Char.code c) i))
    text;
  parse text
