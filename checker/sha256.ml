(* SHA-256 of a string (FIPS 180-4), in hexadecimal digits. Not proved; tested against Python's. *)

let primes count =
  let rec from n found =
    if List.length found = count then List.rev found
    else from (n + 1) (if List.exists (fun p -> n mod p = 0) found then found else n :: found)
  in
  from 2 []

(* The first 32 bits behind the point of the k-th root of a prime, in integers. *)
let fraction k p =
  let scaled = Z.shift_left (Z.of_int p) (32 * k) in
  Z.to_int (Z.logand (Z.root scaled k) (Z.of_int 0xffffffff))

let rounds = Array.of_list (List.map (fraction 3) (primes 64))
let start = Array.of_list (List.map (fraction 2) (primes 8))
let word x = x land 0xffffffff
let turned x n = word ((x lsr n) lor (x lsl (32 - n)))

let padded text =
  let length = String.length text in
  let zeros = (119 - (length mod 64)) mod 64 in
  let last = Bytes.create 8 in
  Bytes.set_int64_be last 0 (Int64.of_int (8 * length));
  String.concat "" [ text; "\x80"; String.make zeros '\000'; Bytes.to_string last ]

let mix state block =
  let w = Array.make 64 0 in
  for t = 0 to 63 do
    w.(t) <-
      (if t < 16 then Int32.to_int (String.get_int32_be block (4 * t)) land 0xffffffff
       else
         let a = w.(t - 15) and b = w.(t - 2) in
         let small = turned a 7 lxor turned a 18 lxor (a lsr 3) in
         let large = turned b 17 lxor turned b 19 lxor (b lsr 10) in
         word (w.(t - 16) + small + w.(t - 7) + large))
  done;
  let s = Array.copy state in
  for t = 0 to 63 do
    let a = s.(0) and e = s.(4) in
    let choice = (e land s.(5)) lxor (lnot e land s.(6)) in
    let one = s.(7) + (turned e 6 lxor turned e 11 lxor turned e 25) + choice + rounds.(t) + w.(t) in
    let majority = (a land s.(1)) lxor (a land s.(2)) lxor (s.(1) land s.(2)) in
    let two = (turned a 2 lxor turned a 13 lxor turned a 22) + majority in
    Array.blit s 0 s 1 7;
    s.(4) <- word (s.(4) + one);
    s.(0) <- word (one + two)
  done;
  Array.map2 (fun x y -> word (x + y)) state s

let hex text =
  let text = padded text in
  let state = ref start in
  for block = 0 to (String.length text / 64) - 1 do
    state := mix !state (String.sub text (64 * block) 64)
  done;
  String.concat "" (List.map (Printf.sprintf "%08x") (Array.to_list !state))
