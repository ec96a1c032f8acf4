(* The numbers of a proof: rationals, and the doubles of a model in their one spelling. Not proved. *)

open Refusal

let charge x =
  Integers.charge (Z.numbits (Q.num x) + Z.numbits (Q.den x));
  x

(* A hexadecimal number without leading zeros at i, up to 16384 digits: where it ends. *)
let hexadecimal s i ~zero =
  let n = String.length s in
  let rec from j = if j < n && j < i + 16384 && Json.hexadecimal s.[j] <> None && s.[j] > '9' = (s.[j] >= 'a') then from (j + 1) else j in
  if i < n && zero && s.[i] = '0' then Some (i + 1)
  else if i < n && s.[i] <> '0' && from i > i then Some (from i)
  else None

(* '-1a2bp-30/3f' in parts: the mantissa with its sign, how many digits it has, the exponent, the denominator. *)
let parts s =
  let n = String.length s in
  let sign = if n > 0 && s.[0] = '-' then 1 else 0 in
  let integer i j = Z.of_string_base 16 (String.sub s i (j - i)) in
  let exponent i =
    if i < n && s.[i] = 'p' then begin
      let first = if i + 1 < n && s.[i + 1] = '-' then i + 2 else i + 1 in
      let j = ref first in
      while !j < n && !j < first + 4 && '0' <= s.[!j] && s.[!j] <= '9' do incr j done;
      if !j > first && s.[first] <> '0' then Some (!j, int_of_string (String.sub s (i + 1) (!j - i - 1))) else None
    end
    else Some (i, 0)
  in
  let below i =
    if i < n && s.[i] = '/' then
      match hexadecimal s (i + 1) ~zero:false with Some j when j = n -> Some (Some (integer (i + 1) n)) | _ -> None
    else if i = n then Some None
    else None
  in
  let ( let* ) = Option.bind in
  let* j = hexadecimal s sign ~zero:true in
  let* k, power = exponent j in
  let* q = below k in
  let p = integer sign j in
  Some ((if sign = 1 then Z.neg p else p), j - sign, power, q)

let number = function
  | Json.Text s when parts s <> None ->
      let p, _, e, q = Option.get (parts s) in
      let q = Option.value q ~default:Z.one in
      charge (Q.make (Z.shift_left p (max e 0)) (Z.shift_left q (max (-e) 0)))
  | other -> refuse ("not a number: " ^ Json.repr 60 other)

(* The one spelling of a double: an odd integer in hexadecimal digits, and a power of two. *)
let spell x =
  if x = 0.0 then "0"
  else begin
    let mantissa, power = Float.frexp (Float.abs x) in
    let p = Z.of_float (Float.ldexp mantissa 53) in
    let twos = Z.trailing_zeros p in
    let e = power - 53 + twos in
    let digits = Z.format "%x" (Z.shift_right p twos) in
    (if x < 0.0 then "-" else "") ^ digits ^ if e = 0 then "" else "p" ^ string_of_int e
  end

let double data =
  let x =
    match data with
    | Json.Text s when String.length s < 24 -> (
        match parts s with
        | Some (p, digits, e, _) when digits < 15 && e < 972 -> Float.ldexp (Z.to_float p) e
        | _ -> 0.0)
    | _ -> 0.0
  in
  if Float.abs x = infinity then raised "OverflowError" "math range error";
  need (data = Json.Text (spell x)) (fun () -> "not the spelling of a double: " ^ Json.repr 60 data);
  x

let shown_of_text = function Json.Text s -> s | other -> Json.repr 300 other

let positive data =
  let x = double data in
  need (x > 0.0) (fun () -> "not positive: " ^ shown_of_text data);
  x

let exact data = Q.of_float (double data)

(* ---- shapes ---- *)

(* The entries of a list of this name and length (None: any), each read; [flat]: where entries are no lists, what is
   refused in one is said by its place. *)
let listed flat name length read data =
  let before = !where in
  let at = before ^ name ^ ": " in
  where := at;
  let entry k x = if flat then where := Printf.sprintf "%s%d: " at k; read k x in
  match data with
  | Json.List items ->
      let wanted = Option.value length ~default:(Array.length items) in
      need (Array.length items = wanted) (fun () ->
          Printf.sprintf "no list of %d entries: %s" wanted (Json.repr 60 data));
      let found = Array.mapi entry items in
      where := before;
      found
  | _ -> refuse ("no list: " ^ Json.repr 60 data)

let array_of name length read = listed true name length (fun _ x -> read x)

(* Of a list of lists. *)
let rows_of name length width read =
  listed false name length (fun k -> array_of (string_of_int k) width read)

let whole low high = function
  | Json.Int i when low <= i && i < high -> i
  | other -> refuse (Printf.sprintf "no integer in (%d, %d) %s" low (high - 1) (Json.repr 60 other))

(* ---- short numbers for people ---- *)

(* As Python writes a double: the fewest digits from which it is read again, and of these the nearest. *)
let repr x =
  if x = 0.0 then if 1.0 /. x < 0.0 then "-0.0" else "0.0"
  else begin
    let exact = Q.of_float x in
    let nearest count =
      let rounded = Printf.sprintf "%.*e" (count - 1) x in
      let cut = String.index rounded 'e' in
      let power = int_of_string (String.sub rounded (cut + 1) (String.length rounded - cut - 1)) in
      let digits = String.concat "" (String.split_on_char '.' (String.sub rounded 0 cut)) in
      let unit = power - count + 1 in
      let value d = if unit >= 0 then Q.of_bigint Z.(d * pow (of_int 10) unit) else Q.make d (Z.pow (Z.of_int 10) (-unit)) in
      let again d = float_of_string (Z.to_string d ^ "e" ^ string_of_int unit) = x in
      let d = Z.of_string digits in
      let far d = Q.abs (Q.sub (value d) exact) in
      let candidates = List.filter again [ d; Z.pred d; Z.succ d ] in
      match List.sort (fun a b -> Q.compare (far a) (far b)) candidates with [] -> None | d :: _ -> Some (d, unit)
    in
    let rec shortest count = match nearest count with Some found -> found | None -> shortest (count + 1) in
    let d, unit = shortest 1 in
    let digits = Z.to_string (Z.abs d) in
    let n = String.length digits in
    let rec bare k = if k > 1 && digits.[k - 1] = '0' then bare (k - 1) else k in
    let point = n + unit in
    (* the value is 0.DIGITS * 10^point *)
    let digits = String.sub digits 0 (bare n) in
    let n = String.length digits in
    let text =
      if point > 16 || point < -3 then begin
        let rest = if n > 1 then "." ^ String.sub digits 1 (n - 1) else "" in
        Printf.sprintf "%c%se%s%02d" digits.[0] rest (if point < 1 then "-" else "+") (abs (point - 1))
      end
      else if point <= 0 then "0." ^ String.make (-point) '0' ^ digits
      else if n <= point then digits ^ String.make (point - n) '0' ^ ".0"
      else String.sub digits 0 point ^ "." ^ String.sub digits point (n - point)
    in
    if x < 0.0 then "-" ^ text else text
  end

(* The double nearest to a rational whose size is that of a normal double; of two the even one. *)
let to_double x =
  let p = Z.abs (Q.num x) and q = Q.den x in
  if Z.sign p = 0 then 0.0
  else begin
    let shift = 55 - (Z.numbits p - Z.numbits q) in
    let top, below = if shift >= 0 then (Z.shift_left p shift, q) else (p, Z.shift_left q (-shift)) in
    let quotient, rest = Z.div_rem top below in
    (* 55 or 56 bits of it; one more that says whether anything is left *)
    let sticky = Z.add (Z.shift_left quotient 1) (if Z.sign rest = 0 then Z.zero else Z.one) in
    let drop = Z.numbits sticky - 53 in
    let kept = Z.shift_right sticky drop in
    let left = Z.sub sticky (Z.shift_left kept drop) and half = Z.shift_left Z.one (drop - 1) in
    let up = Z.compare left half > 0 || (Z.equal left half && Z.is_odd kept) in
    let kept = if up then Z.succ kept else kept in
    let y = Float.ldexp (Z.to_float kept) (drop - 1 - shift) in
    if Q.sign x < 0 then -.y else y
  end

(* The rational that a decimal number is: '-1.25e-07'. *)
let decimal s =
  let mantissa, power =
    match String.index_opt s 'e' with
    | Some i -> (String.sub s 0 i, int_of_string (String.sub s (i + 1) (String.length s - i - 1)))
    | None -> (s, 0)
  in
  let digits = String.concat "" (String.split_on_char '.' mantissa) in
  let behind = match String.index_opt mantissa '.' with Some i -> String.length mantissa - i - 1 | None -> 0 in
  let ten k = Z.pow (Z.of_int 10) k and unit = power - behind in
  if unit >= 0 then Q.of_bigint (Z.mul (Z.of_string digits) (ten unit)) else Q.make (Z.of_string digits) (ten (-unit))

(* A short number that is at most x (side -1), at least x (side 1), or near x: rounding must not make it false. *)
let shown ?(side = 0) x =
  let p = Q.num x and q = Q.den x in
  let size = Z.numbits p - Z.numbits q in
  if abs size < 1000 then begin
    let rec outwards y =
      if side * Q.compare (decimal (repr y)) x < 0 then outwards (if side > 0 then Float.succ y else Float.pred y) else y
    in
    repr (outwards (to_double x))
  end
  else begin
    let power k = if k >= 0 then Q.of_bigint (Z.shift_left Z.one k) else Q.make Z.one (Z.shift_left Z.one (-k)) in
    let size = if Q.lt (Q.abs x) (power size) then size - 1 else size in
    let away_from_zero = side * Q.sign x > 0 && Q.gt (Q.abs x) (power size) in
    Printf.sprintf "%s2^%d" (if Q.sign x < 0 then "-" else "") (size + if away_from_zero then 1 else 0)
  end
