
(** val negb : bool -> bool **)

let negb = function
| true -> false
| false -> true

(** val fst : ('a1 * 'a2) -> 'a1 **)

let fst = function
| (x, _) -> x

(** val snd : ('a1 * 'a2) -> 'a2 **)

let snd = function
| (_, y) -> y

(** val length : 'a1 list -> int **)

let rec length = function
| [] -> 0
| _ :: l' -> Stdlib.Int.succ (length l')

(** val app : 'a1 list -> 'a1 list -> 'a1 list **)

let rec app l m =
  match l with
  | [] -> m
  | a :: l1 -> a :: (app l1 m)

type comparison =
| Eq
| Lt
| Gt

module Coq__1 = struct
 (** val add : int -> int -> int **)let rec add = (+)
end
include Coq__1

module Nat =
 struct
  (** val ltb : int -> int -> bool **)

  let ltb n0 m =
    (<=) (Stdlib.Int.succ n0) m
 end

module Pos =
 struct
  type mask =
  | IsNul
  | IsPos of Big_int_Z.big_int
  | IsNeg
 end

module Coq_Pos =
 struct
  (** val succ : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let rec succ = Big_int_Z.succ_big_int

  (** val add :
      Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

  let rec add = Big_int_Z.add_big_int

  (** val add_carry :
      Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

  and add_carry x y =
    (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
      (fun p ->
      (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
        (fun q0 ->
        (fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
        (add_carry p q0))
        (fun q0 -> Big_int_Z.mult_int_big_int 2 (add_carry p q0))
        (fun _ ->
        (fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
        (succ p))
        y)
      (fun p ->
      (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
        (fun q0 -> Big_int_Z.mult_int_big_int 2 (add_carry p q0))
        (fun q0 ->
        (fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
        (add p q0))
        (fun _ -> Big_int_Z.mult_int_big_int 2 (succ p))
        y)
      (fun _ ->
      (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
        (fun q0 ->
        (fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
        (succ q0))
        (fun q0 -> Big_int_Z.mult_int_big_int 2 (succ q0))
        (fun _ ->
        (fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
        Big_int_Z.unit_big_int)
        y)
      x

  (** val pred_double : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let rec pred_double x =
    (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
      (fun p ->
      (fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
      (Big_int_Z.mult_int_big_int 2 p))
      (fun p ->
      (fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
      (pred_double p))
      (fun _ -> Big_int_Z.unit_big_int)
      x

  (** val pred_N : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let pred_N x =
    (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
      (fun p -> (Big_int_Z.mult_int_big_int 2 p))
      (fun p -> (pred_double p))
      (fun _ -> Big_int_Z.zero_big_int)
      x

  type mask = Pos.mask =
  | IsNul
  | IsPos of Big_int_Z.big_int
  | IsNeg

  (** val succ_double_mask : mask -> mask **)

  let succ_double_mask = function
  | IsNul -> IsPos Big_int_Z.unit_big_int
  | IsPos p ->
    IsPos ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
      p)
  | IsNeg -> IsNeg

  (** val double_mask : mask -> mask **)

  let double_mask = function
  | IsPos p -> IsPos (Big_int_Z.mult_int_big_int 2 p)
  | x0 -> x0

  (** val double_pred_mask : Big_int_Z.big_int -> mask **)

  let double_pred_mask x =
    (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
      (fun p -> IsPos (Big_int_Z.mult_int_big_int 2
      (Big_int_Z.mult_int_big_int 2 p)))
      (fun p -> IsPos (Big_int_Z.mult_int_big_int 2
      (pred_double p)))
      (fun _ -> IsNul)
      x

  (** val sub_mask : Big_int_Z.big_int -> Big_int_Z.big_int -> mask **)

  let rec sub_mask x y =
    (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
      (fun p ->
      (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
        (fun q0 -> double_mask (sub_mask p q0))
        (fun q0 -> succ_double_mask (sub_mask p q0))
        (fun _ -> IsPos (Big_int_Z.mult_int_big_int 2 p))
        y)
      (fun p ->
      (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
        (fun q0 -> succ_double_mask (sub_mask_carry p q0))
        (fun q0 -> double_mask (sub_mask p q0))
        (fun _ -> IsPos (pred_double p))
        y)
      (fun _ ->
      (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
        (fun _ -> IsNeg)
        (fun _ -> IsNeg)
        (fun _ -> IsNul)
        y)
      x

  (** val sub_mask_carry : Big_int_Z.big_int -> Big_int_Z.big_int -> mask **)

  and sub_mask_carry x y =
    (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
      (fun p ->
      (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
        (fun q0 -> succ_double_mask (sub_mask_carry p q0))
        (fun q0 -> double_mask (sub_mask p q0))
        (fun _ -> IsPos (pred_double p))
        y)
      (fun p ->
      (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
        (fun q0 -> double_mask (sub_mask_carry p q0))
        (fun q0 -> succ_double_mask (sub_mask_carry p q0))
        (fun _ -> double_pred_mask p)
        y)
      (fun _ -> IsNeg)
      x

  (** val sub :
      Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

  let sub = (fun n m -> Big_int_Z.max_big_int
  Big_int_Z.unit_big_int (Big_int_Z.sub_big_int n m))

  (** val mul :
      Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

  let rec mul = Big_int_Z.mult_big_int

  (** val iter : ('a1 -> 'a1) -> 'a1 -> Big_int_Z.big_int -> 'a1 **)

  let rec iter f x n0 =
    (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
      (fun n' -> f (iter f (iter f x n') n'))
      (fun n' -> iter f (iter f x n') n')
      (fun _ -> f x)
      n0

  (** val pow :
      Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

  let pow x =
    iter (mul x) Big_int_Z.unit_big_int

  (** val size_nat : Big_int_Z.big_int -> int **)

  let rec size_nat p =
    (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
      (fun p0 -> Stdlib.Int.succ (size_nat p0))
      (fun p0 -> Stdlib.Int.succ (size_nat p0))
      (fun _ -> Stdlib.Int.succ 0)
      p

  (** val size : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let rec size p =
    (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
      (fun p0 -> succ (size p0))
      (fun p0 -> succ (size p0))
      (fun _ -> Big_int_Z.unit_big_int)
      p

  (** val compare_cont :
      comparison -> Big_int_Z.big_int -> Big_int_Z.big_int -> comparison **)

  let rec compare_cont = (fun c x y -> let s = Big_int_Z.compare_big_int x y in
  if s = 0 then c else if s < 0 then Lt else Gt)

  (** val compare : Big_int_Z.big_int -> Big_int_Z.big_int -> comparison **)

  let compare = (fun x y -> let s = Big_int_Z.compare_big_int x y in
  if s = 0 then Eq else if s < 0 then Lt else Gt)

  (** val eqb : Big_int_Z.big_int -> Big_int_Z.big_int -> bool **)

  let rec eqb = Big_int_Z.eq_big_int

  (** val leb : Big_int_Z.big_int -> Big_int_Z.big_int -> bool **)

  let leb x y =
    match compare x y with
    | Gt -> false
    | _ -> true

  (** val sqrtrem_step :
      (Big_int_Z.big_int -> Big_int_Z.big_int) -> (Big_int_Z.big_int ->
      Big_int_Z.big_int) -> (Big_int_Z.big_int * mask) ->
      Big_int_Z.big_int * mask **)

  let sqrtrem_step f g = function
  | (s, y) ->
    (match y with
     | IsPos r ->
       let s' =
         (fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
         (Big_int_Z.mult_int_big_int 2 s)
       in
       let r' = g (f r) in
       if leb s' r'
       then (((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
              s), (sub_mask r' s'))
       else ((Big_int_Z.mult_int_big_int 2 s), (IsPos r'))
     | _ ->
       ((Big_int_Z.mult_int_big_int 2 s),
         (sub_mask (g (f Big_int_Z.unit_big_int))
           (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
           Big_int_Z.unit_big_int)))))

  (** val sqrtrem : Big_int_Z.big_int -> Big_int_Z.big_int * mask **)

  let rec sqrtrem p =
    (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
      (fun p0 ->
      (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
        (fun p1 ->
        sqrtrem_step (fun x ->
          (fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
          x) (fun x ->
          (fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
          x) (sqrtrem p1))
        (fun p1 ->
        sqrtrem_step (fun x -> Big_int_Z.mult_int_big_int 2 x) (fun x ->
          (fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
          x) (sqrtrem p1))
        (fun _ -> (Big_int_Z.unit_big_int, (IsPos
        (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int))))
        p0)
      (fun p0 ->
      (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
        (fun p1 ->
        sqrtrem_step (fun x ->
          (fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
          x) (fun x -> Big_int_Z.mult_int_big_int 2 x) (sqrtrem p1))
        (fun p1 ->
        sqrtrem_step (fun x -> Big_int_Z.mult_int_big_int 2 x) (fun x ->
          Big_int_Z.mult_int_big_int 2 x) (sqrtrem p1))
        (fun _ -> (Big_int_Z.unit_big_int, (IsPos Big_int_Z.unit_big_int)))
        p0)
      (fun _ -> (Big_int_Z.unit_big_int, IsNul))
      p

  (** val sqrt : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let sqrt p =
    fst (sqrtrem p)

  (** val ggcdn :
      int -> Big_int_Z.big_int -> Big_int_Z.big_int ->
      Big_int_Z.big_int * (Big_int_Z.big_int * Big_int_Z.big_int) **)

  let rec ggcdn n0 a b =
    (fun fO fS n -> if n=0 then fO () else fS (n-1))
      (fun _ -> (Big_int_Z.unit_big_int, (a, b)))
      (fun n1 ->
      (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
        (fun a' ->
        (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
          (fun b' ->
          match compare a' b' with
          | Eq -> (a, (Big_int_Z.unit_big_int, Big_int_Z.unit_big_int))
          | Lt ->
            let (g, p) = ggcdn n1 (sub b' a') a in
            let (ba, aa) = p in
            (g, (aa, (add aa (Big_int_Z.mult_int_big_int 2 ba))))
          | Gt ->
            let (g, p) = ggcdn n1 (sub a' b') b in
            let (ab, bb) = p in
            (g, ((add bb (Big_int_Z.mult_int_big_int 2 ab)), bb)))
          (fun b0 ->
          let (g, p) = ggcdn n1 a b0 in
          let (aa, bb) = p in (g, (aa, (Big_int_Z.mult_int_big_int 2 bb))))
          (fun _ -> (Big_int_Z.unit_big_int, (a, Big_int_Z.unit_big_int)))
          b)
        (fun a0 ->
        (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
          (fun _ ->
          let (g, p) = ggcdn n1 a0 b in
          let (aa, bb) = p in (g, ((Big_int_Z.mult_int_big_int 2 aa), bb)))
          (fun b0 ->
          let (g, p) = ggcdn n1 a0 b0 in ((Big_int_Z.mult_int_big_int 2 g), p))
          (fun _ -> (Big_int_Z.unit_big_int, (a, Big_int_Z.unit_big_int)))
          b)
        (fun _ -> (Big_int_Z.unit_big_int, (Big_int_Z.unit_big_int, b)))
        a)
      n0

  (** val ggcd :
      Big_int_Z.big_int -> Big_int_Z.big_int ->
      Big_int_Z.big_int * (Big_int_Z.big_int * Big_int_Z.big_int) **)

  let ggcd a b =
    ggcdn (Coq__1.add (size_nat a) (size_nat b)) a b

  (** val of_succ_nat : int -> Big_int_Z.big_int **)

  let rec of_succ_nat n0 =
    (fun fO fS n -> if n=0 then fO () else fS (n-1))
      (fun _ -> Big_int_Z.unit_big_int)
      (fun x -> succ (of_succ_nat x))
      n0
 end

module N =
 struct
  (** val succ_double : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let succ_double x =
    (fun fO fp n -> if Big_int_Z.sign_big_int n <= 0 then fO () else fp n)
      (fun _ -> Big_int_Z.unit_big_int)
      (fun p ->
      ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x)) p))
      x

  (** val double : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let double n0 =
    (fun fO fp n -> if Big_int_Z.sign_big_int n <= 0 then fO () else fp n)
      (fun _ -> Big_int_Z.zero_big_int)
      (fun p -> (Big_int_Z.mult_int_big_int 2 p))
      n0

  (** val succ : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let succ = Big_int_Z.succ_big_int

  (** val succ_pos : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let succ_pos n0 =
    (fun fO fp n -> if Big_int_Z.sign_big_int n <= 0 then fO () else fp n)
      (fun _ -> Big_int_Z.unit_big_int)
      (fun p -> Coq_Pos.succ p)
      n0

  (** val add :
      Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

  let add = Big_int_Z.add_big_int

  (** val sub :
      Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

  let sub = (fun n m -> Big_int_Z.max_big_int Big_int_Z.zero_big_int
  (Big_int_Z.sub_big_int n m))

  (** val mul :
      Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

  let mul = Big_int_Z.mult_big_int

  (** val compare : Big_int_Z.big_int -> Big_int_Z.big_int -> comparison **)

  let compare = (fun x y -> let s = Big_int_Z.compare_big_int x y in
  if s = 0 then Eq else if s < 0 then Lt else Gt)

  (** val eqb : Big_int_Z.big_int -> Big_int_Z.big_int -> bool **)

  let eqb = Big_int_Z.eq_big_int

  (** val leb : Big_int_Z.big_int -> Big_int_Z.big_int -> bool **)

  let leb x y =
    match compare x y with
    | Gt -> false
    | _ -> true

  (** val ltb : Big_int_Z.big_int -> Big_int_Z.big_int -> bool **)

  let ltb = Big_int_Z.lt_big_int

  (** val pos_div_eucl :
      Big_int_Z.big_int -> Big_int_Z.big_int ->
      Big_int_Z.big_int * Big_int_Z.big_int **)

  let rec pos_div_eucl a b =
    (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
      (fun a' ->
      let (q0, r) = pos_div_eucl a' b in
      let r' = succ_double r in
      if leb b r' then ((succ_double q0), (sub r' b)) else ((double q0), r'))
      (fun a' ->
      let (q0, r) = pos_div_eucl a' b in
      let r' = double r in
      if leb b r' then ((succ_double q0), (sub r' b)) else ((double q0), r'))
      (fun _ ->
      (fun fO fp n -> if Big_int_Z.sign_big_int n <= 0 then fO () else fp n)
        (fun _ -> (Big_int_Z.zero_big_int, Big_int_Z.unit_big_int))
        (fun p ->
        (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
          (fun _ -> (Big_int_Z.zero_big_int,
          Big_int_Z.unit_big_int))
          (fun _ -> (Big_int_Z.zero_big_int,
          Big_int_Z.unit_big_int))
          (fun _ -> (Big_int_Z.unit_big_int, Big_int_Z.zero_big_int))
          p)
        b)
      a

  (** val div_eucl :
      Big_int_Z.big_int -> Big_int_Z.big_int ->
      Big_int_Z.big_int * Big_int_Z.big_int **)

  let div_eucl = Big_int_Z.(fun x y ->
    if eq_big_int zero_big_int y then (zero_big_int, x) else
    quomod_big_int x y)

  (** val of_nat : int -> Big_int_Z.big_int **)

  let of_nat n0 =
    (fun fO fS n -> if n=0 then fO () else fS (n-1))
      (fun _ -> Big_int_Z.zero_big_int)
      (fun n' -> (Coq_Pos.of_succ_nat n'))
      n0
 end

module Z =
 struct
  (** val double : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let double x =
    (fun fO fp fn z -> let s = Big_int_Z.sign_big_int z in
  if s = 0 then fO () else if s > 0 then fp z
  else fn (Big_int_Z.minus_big_int z))
      (fun _ -> Big_int_Z.zero_big_int)
      (fun p -> (Big_int_Z.mult_int_big_int 2 p))
      (fun p -> Big_int_Z.minus_big_int (Big_int_Z.mult_int_big_int 2 p))
      x

  (** val succ_double : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let succ_double x =
    (fun fO fp fn z -> let s = Big_int_Z.sign_big_int z in
  if s = 0 then fO () else if s > 0 then fp z
  else fn (Big_int_Z.minus_big_int z))
      (fun _ -> Big_int_Z.unit_big_int)
      (fun p ->
      ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
      p))
      (fun p -> Big_int_Z.minus_big_int (Coq_Pos.pred_double p))
      x

  (** val pred_double : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let pred_double x =
    (fun fO fp fn z -> let s = Big_int_Z.sign_big_int z in
  if s = 0 then fO () else if s > 0 then fp z
  else fn (Big_int_Z.minus_big_int z))
      (fun _ -> Big_int_Z.minus_big_int Big_int_Z.unit_big_int)
      (fun p -> (Coq_Pos.pred_double p))
      (fun p -> Big_int_Z.minus_big_int
      ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x)) p))
      x

  (** val pos_sub :
      Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

  let rec pos_sub x y =
    (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
      (fun p ->
      (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
        (fun q0 -> double (pos_sub p q0))
        (fun q0 -> succ_double (pos_sub p q0))
        (fun _ -> (Big_int_Z.mult_int_big_int 2 p))
        y)
      (fun p ->
      (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
        (fun q0 -> pred_double (pos_sub p q0))
        (fun q0 -> double (pos_sub p q0))
        (fun _ -> (Coq_Pos.pred_double p))
        y)
      (fun _ ->
      (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
        (fun q0 -> Big_int_Z.minus_big_int (Big_int_Z.mult_int_big_int 2
        q0))
        (fun q0 -> Big_int_Z.minus_big_int (Coq_Pos.pred_double q0))
        (fun _ -> Big_int_Z.zero_big_int)
        y)
      x

  (** val add :
      Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

  let add = Big_int_Z.add_big_int

  (** val opp : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let opp = Big_int_Z.minus_big_int

  (** val succ : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let succ = Big_int_Z.succ_big_int

  (** val pred : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let pred = Big_int_Z.pred_big_int

  (** val sub :
      Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

  let sub = Big_int_Z.sub_big_int

  (** val mul :
      Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

  let mul = Big_int_Z.mult_big_int

  (** val pow_pos :
      Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

  let pow_pos z0 =
    Coq_Pos.iter (mul z0) Big_int_Z.unit_big_int

  (** val pow :
      Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

  let pow = Integers.pow

  (** val compare : Big_int_Z.big_int -> Big_int_Z.big_int -> comparison **)

  let compare = (fun x y -> let s = Big_int_Z.compare_big_int x y in
  if s = 0 then Eq else if s < 0 then Lt else Gt)

  (** val sgn : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let sgn z0 =
    (fun fO fp fn z -> let s = Big_int_Z.sign_big_int z in
  if s = 0 then fO () else if s > 0 then fp z
  else fn (Big_int_Z.minus_big_int z))
      (fun _ -> Big_int_Z.zero_big_int)
      (fun _ -> Big_int_Z.unit_big_int)
      (fun _ -> Big_int_Z.minus_big_int Big_int_Z.unit_big_int)
      z0

  (** val leb : Big_int_Z.big_int -> Big_int_Z.big_int -> bool **)

  let leb = Big_int_Z.le_big_int

  (** val ltb : Big_int_Z.big_int -> Big_int_Z.big_int -> bool **)

  let ltb = Big_int_Z.lt_big_int

  (** val eqb : Big_int_Z.big_int -> Big_int_Z.big_int -> bool **)

  let eqb = Big_int_Z.eq_big_int

  (** val max :
      Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

  let max = Big_int_Z.max_big_int

  (** val min :
      Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

  let min = Big_int_Z.min_big_int

  (** val abs : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let abs = Big_int_Z.abs_big_int

  (** val of_nat : int -> Big_int_Z.big_int **)

  let of_nat n0 =
    (fun fO fS n -> if n=0 then fO () else fS (n-1))
      (fun _ -> Big_int_Z.zero_big_int)
      (fun n1 -> (Coq_Pos.of_succ_nat n1))
      n0

  (** val to_pos : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let to_pos z0 =
    (fun fO fp fn z -> let s = Big_int_Z.sign_big_int z in
  if s = 0 then fO () else if s > 0 then fp z
  else fn (Big_int_Z.minus_big_int z))
      (fun _ -> Big_int_Z.unit_big_int)
      (fun p -> p)
      (fun _ -> Big_int_Z.unit_big_int)
      z0

  (** val pos_div_eucl :
      Big_int_Z.big_int -> Big_int_Z.big_int ->
      Big_int_Z.big_int * Big_int_Z.big_int **)

  let rec pos_div_eucl a b =
    (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
      (fun a' ->
      let (q0, r) = pos_div_eucl a' b in
      let r' =
        add (mul (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int) r)
          Big_int_Z.unit_big_int
      in
      if ltb r' b
      then ((mul (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int) q0),
             r')
      else ((add
              (mul (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int) q0)
              Big_int_Z.unit_big_int), (sub r' b)))
      (fun a' ->
      let (q0, r) = pos_div_eucl a' b in
      let r' = mul (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int) r in
      if ltb r' b
      then ((mul (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int) q0),
             r')
      else ((add
              (mul (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int) q0)
              Big_int_Z.unit_big_int), (sub r' b)))
      (fun _ ->
      if leb (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int) b
      then (Big_int_Z.zero_big_int, Big_int_Z.unit_big_int)
      else (Big_int_Z.unit_big_int, Big_int_Z.zero_big_int))
      a

  (** val div_eucl :
      Big_int_Z.big_int -> Big_int_Z.big_int ->
      Big_int_Z.big_int * Big_int_Z.big_int **)

  let div_eucl = Big_int_Z.(fun x y ->
  match sign_big_int y with
  | 0 -> (zero_big_int, x)
  | 1 -> quomod_big_int x y
  | _ -> let (q, r) = quomod_big_int (add_int_big_int (-1) x) y in
          (add_int_big_int (-1) q, add_big_int (add_int_big_int 1 y) r))

  (** val div :
      Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

  let div = Integers.div

  (** val even : Big_int_Z.big_int -> bool **)

  let even = Integers.even

  (** val log2 : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let log2 = Integers.log2

  (** val sqrt : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let sqrt n0 =
    (fun fO fp fn z -> let s = Big_int_Z.sign_big_int z in
  if s = 0 then fO () else if s > 0 then fp z
  else fn (Big_int_Z.minus_big_int z))
      (fun _ -> Big_int_Z.zero_big_int)
      (fun p -> (Coq_Pos.sqrt p))
      (fun _ -> Big_int_Z.zero_big_int)
      n0

  (** val ggcd :
      Big_int_Z.big_int -> Big_int_Z.big_int ->
      Big_int_Z.big_int * (Big_int_Z.big_int * Big_int_Z.big_int) **)

  let ggcd = Integers.ggcd

  (** val sqrt_up : Big_int_Z.big_int -> Big_int_Z.big_int **)

  let sqrt_up = Integers.sqrt_up
 end

(** val zeq_bool : Big_int_Z.big_int -> Big_int_Z.big_int -> bool **)

let zeq_bool x y =
  match Z.compare x y with
  | Eq -> true
  | _ -> false

(** val hd : 'a1 -> 'a1 list -> 'a1 **)

let hd default = function
| [] -> default
| x :: _ -> x

(** val nth : int -> 'a1 list -> 'a1 -> 'a1 **)

let rec nth n0 l default =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> match l with
              | [] -> default
              | x :: _ -> x)
    (fun m -> match l with
              | [] -> default
              | _ :: t -> nth m t default)
    n0

(** val nth_error : 'a1 list -> int -> 'a1 option **)

let rec nth_error l n0 =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> match l with
              | [] -> None
              | x :: _ -> Some x)
    (fun n1 -> match l with
               | [] -> None
               | _ :: l0 -> nth_error l0 n1)
    n0

(** val rev_append : 'a1 list -> 'a1 list -> 'a1 list **)

let rec rev_append l l' =
  match l with
  | [] -> l'
  | a :: l0 -> rev_append l0 (a :: l')

(** val map : ('a1 -> 'a2) -> 'a1 list -> 'a2 list **)

let rec map f = function
| [] -> []
| a :: t -> (f a) :: (map f t)

(** val fold_left : ('a1 -> 'a2 -> 'a1) -> 'a2 list -> 'a1 -> 'a1 **)

let rec fold_left f l a0 =
  match l with
  | [] -> a0
  | b :: t -> fold_left f t (f a0 b)

(** val fold_right : ('a2 -> 'a1 -> 'a1) -> 'a1 -> 'a2 list -> 'a1 **)

let rec fold_right f a0 = function
| [] -> a0
| b :: t -> f b (fold_right f a0 t)

(** val existsb : ('a1 -> bool) -> 'a1 list -> bool **)

let rec existsb f = function
| [] -> false
| a :: l0 -> (||) (f a) (existsb f l0)

(** val forallb : ('a1 -> bool) -> 'a1 list -> bool **)

let rec forallb f = function
| [] -> true
| a :: l0 -> (&&) (f a) (forallb f l0)

(** val seq : int -> int -> int list **)

let rec seq start len =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> [])
    (fun len0 -> start :: (seq (Stdlib.Int.succ start) len0))
    len

type q = { qnum : Big_int_Z.big_int; qden : Big_int_Z.big_int }

(** val inject_Z : Big_int_Z.big_int -> q **)

let inject_Z x =
  { qnum = x; qden = Big_int_Z.unit_big_int }

(** val qcompare : q -> q -> comparison **)

let qcompare p q0 =
  Z.compare (Z.mul p.qnum q0.qden) (Z.mul q0.qnum p.qden)

(** val qeq_bool : q -> q -> bool **)

let qeq_bool x y =
  zeq_bool (Z.mul x.qnum y.qden) (Z.mul y.qnum x.qden)

(** val qle_bool : q -> q -> bool **)

let qle_bool x y =
  Z.leb (Z.mul x.qnum y.qden) (Z.mul y.qnum x.qden)

(** val qplus : q -> q -> q **)

let qplus x y =
  { qnum = (Z.add (Z.mul x.qnum y.qden) (Z.mul y.qnum x.qden)); qden =
    (Coq_Pos.mul x.qden y.qden) }

(** val qmult : q -> q -> q **)

let qmult x y =
  { qnum = (Z.mul x.qnum y.qnum); qden = (Coq_Pos.mul x.qden y.qden) }

(** val qopp : q -> q **)

let qopp x =
  { qnum = (Z.opp x.qnum); qden = x.qden }

(** val qminus : q -> q -> q **)

let qminus x y =
  qplus x (qopp y)

(** val qinv : q -> q **)

let qinv x =
  (fun fO fp fn z -> let s = Big_int_Z.sign_big_int z in
  if s = 0 then fO () else if s > 0 then fp z
  else fn (Big_int_Z.minus_big_int z))
    (fun _ -> { qnum = Big_int_Z.zero_big_int; qden =
    Big_int_Z.unit_big_int })
    (fun p -> { qnum = x.qden; qden = p })
    (fun p -> { qnum = (Big_int_Z.minus_big_int x.qden); qden = p })
    x.qnum

(** val qdiv : q -> q -> q **)

let qdiv x y =
  qmult x (qinv y)

(** val qred : q -> q **)

let qred q0 =
  let { qnum = q1; qden = q2 } = q0 in
  let (r1, r2) = snd (Z.ggcd q1 q2) in { qnum = r1; qden = (Z.to_pos r2) }

(** val qfloor : q -> Big_int_Z.big_int **)

let qfloor x =
  let { qnum = n0; qden = d } = x in Z.div n0 d

type func =
| Squared of q
| Mean of q list
| Logistic of q
| Poisson of q
| Huber of q * q
| Quantile of q * q
| Multinomial of int
| Hinge of q
| SquaredHinge of q
| Expectile of q * q
| SquaredEpsilon of q * q
| Gamma of q
| L1
| L2
| LInf
| SquaredL2
| Quadratic of q list list
| HuberNorm of q
| Zero
| Ball of q
| NonNegative
| Box of (q option * q option) list

(** val power : Big_int_Z.big_int -> q **)

let power e =
  if Z.leb Big_int_Z.zero_big_int e
  then { qnum =
         (Z.pow (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int) e);
         qden = Big_int_Z.unit_big_int }
  else { qnum = Big_int_Z.unit_big_int; qden =
         (Z.to_pos
           (Z.pow (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int)
             (Z.opp e))) }

(** val exponent : q -> Big_int_Z.big_int **)

let exponent x =
  let a = Z.sub (Z.log2 x.qnum) (Z.log2 x.qden) in
  if qle_bool (power a) x then a else Z.sub a Big_int_Z.unit_big_int

(** val nearest : q -> Big_int_Z.big_int **)

let nearest x =
  let n0 = qfloor x in
  (match qcompare (qminus x (inject_Z n0)) { qnum = Big_int_Z.unit_big_int;
           qden = (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int) } with
   | Eq -> if Z.even n0 then n0 else Z.add n0 Big_int_Z.unit_big_int
   | Lt -> n0
   | Gt -> Z.add n0 Big_int_Z.unit_big_int)

(** val to_double : q -> q **)

let to_double x =
  let e =
    Z.max
      (Z.sub (exponent x) (Big_int_Z.mult_int_big_int 2
        (Big_int_Z.mult_int_big_int 2
        ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
        (Big_int_Z.mult_int_big_int 2
        ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
        Big_int_Z.unit_big_int)))))) (Big_int_Z.minus_big_int
      (Big_int_Z.mult_int_big_int 2
      ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
      (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
      ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
      ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
      (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
      (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
      Big_int_Z.unit_big_int)))))))))))
  in
  qred (qmult (inject_Z (nearest (qmult x (power (Z.opp e))))) (power e))

(** val rest : q -> q **)

let rest tau =
  to_double
    (qminus { qnum = Big_int_Z.unit_big_int; qden = Big_int_Z.unit_big_int }
      tau)

type place =
| AtNode of Big_int_Z.big_int * int * q list
| Edge of Big_int_Z.big_int * Big_int_Z.big_int option
   * Big_int_Z.big_int list
| Cells of ((Big_int_Z.big_int * Big_int_Z.big_int) * q) list list

type entry = { what : func; at_ : place; plus : q list option; weight : q }

type rule =
| AsWeight
| MeanOfNode
| Times of q list

type block = { strength : q; by_ : rule; entries : entry list }

type model = { nodes : Big_int_Z.big_int; columns : Big_int_Z.big_int;
               samples : block list; edges : block list }

(** val is_positive : q -> bool **)

let is_positive q0 =
  negb
    (qle_bool q0 { qnum = Big_int_Z.zero_big_int; qden =
      Big_int_Z.unit_big_int })

(** val too_large : q **)

let too_large =
  { qnum =
    (Z.pow (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int)
      (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
      (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
      (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
      (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
      (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
      Big_int_Z.unit_big_int))))))))))); qden = Big_int_Z.unit_big_int }

(** val finite : q -> q **)

let finite q0 =
  if (&&) (is_positive q0) (negb (qle_bool too_large q0))
  then q0
  else { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int }

type term = q * entry

(** val spaced :
    Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int -> q list ->
    ((Big_int_Z.big_int * Big_int_Z.big_int) * q) list **)

let rec spaced i j k = function
| [] -> []
| v :: x' -> ((i, j), v) :: (spaced i (N.add j k) k x')

(** val cells :
    place -> ((Big_int_Z.big_int * Big_int_Z.big_int) * q) list list **)

let cells = function
| AtNode (i, k, x) ->
  map (fun c -> spaced i (N.of_nat c) (N.of_nat k) x) (seq 0 k)
| Edge (i, head, fs) ->
  (match head with
   | Some h ->
     map (fun f -> ((i, f), { qnum = Big_int_Z.unit_big_int; qden =
       Big_int_Z.unit_big_int }) :: (((h, f),
       (qopp { qnum = Big_int_Z.unit_big_int; qden = Big_int_Z.unit_big_int })) :: []))
       fs
   | None ->
     map (fun f -> ((i, f), { qnum = Big_int_Z.unit_big_int; qden =
       Big_int_Z.unit_big_int }) :: []) fs)
| Cells rows -> rows

(** val one : int -> bool **)

let one k =
  (=) k (Stdlib.Int.succ 0)

(** val suits : func -> int -> bool **)

let suits f k =
  match f with
  | Squared _ -> one k
  | Mean y -> (=) (length y) k
  | Logistic y ->
    (&&) (one k)
      ((||)
        (qeq_bool y { qnum = Big_int_Z.unit_big_int; qden =
          Big_int_Z.unit_big_int })
        (qeq_bool y
          (qopp { qnum = Big_int_Z.unit_big_int; qden =
            Big_int_Z.unit_big_int })))
  | Poisson y ->
    (&&) (one k)
      (qle_bool { qnum = Big_int_Z.zero_big_int; qden =
        Big_int_Z.unit_big_int } y)
  | Huber (d, _) -> (&&) (one k) (is_positive d)
  | Quantile (t, _) ->
    (&&) ((&&) (one k) (is_positive t))
      (is_positive
        (qminus { qnum = Big_int_Z.unit_big_int; qden =
          Big_int_Z.unit_big_int } t))
  | Multinomial y ->
    (&&) ((<=) (Stdlib.Int.succ (Stdlib.Int.succ 0)) k) (Nat.ltb y k)
  | Hinge y ->
    (&&) (one k)
      ((||)
        (qeq_bool y { qnum = Big_int_Z.unit_big_int; qden =
          Big_int_Z.unit_big_int })
        (qeq_bool y
          (qopp { qnum = Big_int_Z.unit_big_int; qden =
            Big_int_Z.unit_big_int })))
  | SquaredHinge y ->
    (&&) (one k)
      ((||)
        (qeq_bool y { qnum = Big_int_Z.unit_big_int; qden =
          Big_int_Z.unit_big_int })
        (qeq_bool y
          (qopp { qnum = Big_int_Z.unit_big_int; qden =
            Big_int_Z.unit_big_int })))
  | Expectile (t, _) ->
    (&&) ((&&) (one k) (is_positive t))
      (is_positive
        (qminus { qnum = Big_int_Z.unit_big_int; qden =
          Big_int_Z.unit_big_int } t))
  | SquaredEpsilon (d, _) -> (&&) (one k) (is_positive d)
  | Gamma y -> (&&) (one k) (is_positive y)
  | Quadratic root0 ->
    (&&)
      ((&&) ((<=) (Stdlib.Int.succ 0) (length root0)) ((<=) (length root0) k))
      (forallb (fun r -> (=) (length r) k) root0)
  | HuberNorm q0 -> is_positive q0
  | Ball q0 -> is_positive q0
  | Box bounds -> (=) (length bounds) k
  | _ -> true

(** val in_range :
    model -> ((Big_int_Z.big_int * Big_int_Z.big_int) * q) -> bool **)

let in_range m c =
  (&&) (N.ltb (fst (fst c)) m.nodes) (N.ltb (snd (fst c)) m.columns)

(** val fits : model -> place -> bool **)

let fits m p =
  (&&)
    (match p with
     | AtNode (_, k, x) ->
       N.eqb (N.mul (N.of_nat (length x)) (N.of_nat k)) m.columns
     | _ -> true) (forallb (forallb (in_range m)) (cells p))

(** val well_formed_term : model -> term -> bool **)

let well_formed_term m t =
  let e = snd t in
  let k = length (cells e.at_) in
  (&&)
    ((&&)
      ((&&) ((&&) ((<=) (Stdlib.Int.succ 0) k) (fits m e.at_))
        (suits e.what k))
      (match e.plus with
       | Some o -> (=) (length o) k
       | None -> true)) (is_positive (fst t))

type claim =
| Bounds of q * q
| Near of int * int * q
| Fused of int * int
| Split of int * int * q list list
| Unattained of q list list

(** val qadd : q -> q -> q **)

let qadd a b =
  qred (qplus a b)

(** val qmul : q -> q -> q **)

let qmul a b =
  qred (qmult a b)

(** val qle : q -> q -> bool **)

let qle =
  qle_bool

(** val qlt : q -> q -> bool **)

let qlt a b =
  negb (qle_bool b a)

(** val qmax : q -> q -> q **)

let qmax a b =
  if qle a b then b else a

(** val qmin : q -> q -> q **)

let qmin a b =
  if qle a b then a else b

(** val qabs : q -> q **)

let qabs a =
  if qle { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int } a
  then a
  else qopp a

(** val qzero : q -> bool **)

let qzero a =
  Z.eqb a.qnum Big_int_Z.zero_big_int

(** val long_rev : 'a1 list -> 'a1 list **)

let long_rev l =
  rev_append l []

(** val long_map : ('a1 -> 'a2) -> 'a1 list -> 'a2 list **)

let long_map f l =
  long_rev (fold_left (fun r x -> (f x) :: r) l [])

(** val long_app : 'a1 list -> 'a1 list -> 'a1 list **)

let long_app l m =
  rev_append (long_rev l) m

(** val long_length : 'a1 list -> int **)

let long_length l =
  fold_left (fun n0 _ -> Stdlib.Int.succ n0) l 0

(** val pairs :
    'a1 list -> 'a2 list -> ('a1 * 'a2) list -> ('a1 * 'a2) list **)

let rec pairs l m r =
  match l with
  | [] -> r
  | x :: l' -> (match m with
                | [] -> r
                | y :: m' -> pairs l' m' ((x, y) :: r))

(** val long_combine : 'a1 list -> 'a2 list -> ('a1 * 'a2) list **)

let long_combine l m =
  long_rev (pairs l m [])

(** val scaleQ : q -> q list -> q list **)

let scaleQ c u =
  map (qmul c) u

(** val dotQ : q list -> q list -> q **)

let rec dotQ u z0 =
  match u with
  | [] -> { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int }
  | a :: u' ->
    (match z0 with
     | [] -> { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int }
     | b :: z' -> qadd (qmul a b) (dotQ u' z'))

(** val minusQ : q list -> q list -> q list **)

let rec minusQ z0 y =
  match z0 with
  | [] -> []
  | a :: z' ->
    (match y with
     | [] -> []
     | t :: y' -> (qadd a (qopp t)) :: (minusQ z' y'))

(** val addQ : q list -> q list -> q list **)

let rec addQ z0 o =
  match z0 with
  | [] -> []
  | a :: z' -> (match o with
                | [] -> []
                | b :: o' -> (qadd a b) :: (addQ z' o'))

(** val plusQ : q list -> q list -> q list **)

let rec plusQ z0 y =
  match z0 with
  | [] -> y
  | a :: z' ->
    (match y with
     | [] -> z0
     | b :: y' -> (qadd a b) :: (plusQ z' y'))

(** val transposed : q list list -> q list -> q list **)

let rec transposed root0 t =
  match root0 with
  | [] -> []
  | r :: root' ->
    (match t with
     | [] -> []
     | v :: t' -> plusQ (scaleQ v r) (transposed root' t'))

(** val totalQ : q list -> q **)

let totalQ z0 =
  fold_right qadd { qnum = Big_int_Z.zero_big_int; qden =
    Big_int_Z.unit_big_int } z0

(** val norm1Q : q list -> q **)

let norm1Q z0 =
  fold_right (fun a s -> qadd (qabs a) s) { qnum = Big_int_Z.zero_big_int;
    qden = Big_int_Z.unit_big_int } z0

(** val normIQ : q list -> q **)

let normIQ z0 =
  fold_right (fun a s -> qmax (qabs a) s) { qnum = Big_int_Z.zero_big_int;
    qden = Big_int_Z.unit_big_int } z0

(** val uNIT : Big_int_Z.big_int **)

let uNIT =
  Coq_Pos.pow (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int)
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    (Big_int_Z.mult_int_big_int 2
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    Big_int_Z.unit_big_int)))))))

(** val uNIT2 : Big_int_Z.big_int **)

let uNIT2 =
  Coq_Pos.pow (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int)
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    Big_int_Z.unit_big_int))))))))

(** val ceil : q -> Big_int_Z.big_int -> Big_int_Z.big_int **)

let ceil a m =
  Z.opp (Z.div (Z.mul (Z.opp a.qnum) m) a.qden)

(** val up : q -> Big_int_Z.big_int **)

let up a =
  ceil a uNIT

(** val units : Big_int_Z.big_int -> q **)

let units n0 =
  { qnum = n0; qden = uNIT }

(** val root : q -> q **)

let root a =
  { qnum = (Z.sqrt_up (ceil a uNIT2)); qden = uNIT }

type tree =
| Leaf
| Node of tree * q * tree

(** val alter : (q -> q) -> Big_int_Z.big_int -> tree -> tree **)

let rec alter f p t =
  (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
    (fun p0 ->
    match t with
    | Leaf ->
      Node (Leaf, { qnum = Big_int_Z.zero_big_int; qden =
        Big_int_Z.unit_big_int }, (alter f p0 Leaf))
    | Node (l, a, r) -> Node (l, a, (alter f p0 r)))
    (fun p0 ->
    match t with
    | Leaf ->
      Node ((alter f p0 Leaf), { qnum = Big_int_Z.zero_big_int; qden =
        Big_int_Z.unit_big_int }, Leaf)
    | Node (l, a, r) -> Node ((alter f p0 l), a, r))
    (fun _ ->
    match t with
    | Leaf ->
      Node (Leaf,
        (f { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int }),
        Leaf)
    | Node (l, a, r) -> Node (l, (f a), r))
    p

(** val put : Big_int_Z.big_int -> q -> tree -> tree **)

let put p q0 t =
  alter (fun a -> qadd a q0) p t

(** val get : Big_int_Z.big_int -> tree -> q **)

let rec get p t =
  (fun f2p1 f2p f1 p ->
  if Big_int_Z.le_big_int p Big_int_Z.unit_big_int then f1 () else
  let (q,r) = Big_int_Z.quomod_big_int p (Big_int_Z.big_int_of_int 2) in
  if Big_int_Z.eq_big_int r Big_int_Z.zero_big_int then f2p q else f2p1 q)
    (fun p0 ->
    match t with
    | Leaf -> { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int }
    | Node (_, _, r) -> get p0 r)
    (fun p0 ->
    match t with
    | Leaf -> { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int }
    | Node (l, _, _) -> get p0 l)
    (fun _ ->
    match t with
    | Leaf -> { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int }
    | Node (_, a, _) -> a)
    p

(** val first :
    tree -> (Big_int_Z.big_int -> Big_int_Z.big_int) ->
    (Big_int_Z.big_int * q) option **)

let rec first t place0 =
  match t with
  | Leaf -> None
  | Node (l, a, r) ->
    if qzero a
    then (match first l (fun p -> place0 (Big_int_Z.mult_int_big_int 2 p)) with
          | Some p -> Some p
          | None ->
            first r (fun p ->
              place0
                ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
                p)))
    else Some ((place0 Big_int_Z.unit_big_int), a)

(** val charged : q -> tree -> Big_int_Z.big_int **)

let rec charged b = function
| Leaf -> Big_int_Z.zero_big_int
| Node (l, a, r) ->
  Z.add (up (qmult b (qabs a))) (Z.add (charged b l) (charged b r))

(** val largest : tree -> q **)

let rec largest = function
| Leaf -> { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int }
| Node (l, a, r) -> qmax (qabs a) (qmax (largest l) (largest r))

(** val oNE : Big_int_Z.big_int **)

let oNE =
  Z.pow (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int)
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int))))))))

(** val wIDE : Big_int_Z.big_int **)

let wIDE =
  Coq_Pos.pow (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int)
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int))))))))

(** val fINE : Big_int_Z.big_int **)

let fINE =
  Coq_Pos.pow (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int)
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    (Big_int_Z.mult_int_big_int 2
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    Big_int_Z.unit_big_int)))))))

(** val lOG : Big_int_Z.big_int **)

let lOG =
  Coq_Pos.pow (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int)
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    (Big_int_Z.mult_int_big_int 2
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int)))))))))

(** val lARGE : Big_int_Z.big_int **)

let lARGE =
  Z.pow (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int)
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    Big_int_Z.unit_big_int)))))))))))))

(** val sMALL : Big_int_Z.big_int **)

let sMALL =
  Z.pow (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int)
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int))))))))

(** val qUARTER : Big_int_Z.big_int **)

let qUARTER =
  Z.pow (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int)
    (Big_int_Z.mult_int_big_int 2
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
    Big_int_Z.unit_big_int))))))))

(** val horner :
    Big_int_Z.big_int -> int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

let rec horner h i t =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> t)
    (fun k ->
    horner h k (Z.add oNE (Z.div (Z.div (Z.mul t h) oNE) (Z.of_nat i))))
    i

(** val squares : int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

let rec squares n0 t =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> t)
    (fun k -> squares k (Z.opp (Z.div (Z.mul (Z.opp t) t) oNE)))
    n0

(** val exp_up : q -> q option **)

let exp_up x =
  if qlt x { qnum = (Big_int_Z.mult_int_big_int 2
       (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
       (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
       (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
       (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
       (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
       (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int))))))))))));
       qden = Big_int_Z.unit_big_int }
  then let h =
         ceil
           (qmax x
             (qopp { qnum = (Big_int_Z.mult_int_big_int 2
               (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
               (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
               (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
               (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
               (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
               (Big_int_Z.mult_int_big_int 2
               Big_int_Z.unit_big_int)))))))))))); qden =
               Big_int_Z.unit_big_int })) fINE
       in
       if Z.leb (Z.abs h) sMALL
       then Some { qnum =
              (squares (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
                (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
                (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
                (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
                (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
                (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
                (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
                (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
                0))))))))))))))))))))))))
                (Z.add
                  (horner h (Stdlib.Int.succ (Stdlib.Int.succ
                    (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
                    (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
                    (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
                    (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
                    (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
                    (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
                    0)))))))))))))))))))) oNE) (Big_int_Z.mult_int_big_int 2
                  (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int))));
              qden = wIDE }
       else None
  else None

(** val roots : int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

let rec roots n0 y =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> y)
    (fun k -> roots k (Z.sqrt_up (Z.mul y oNE)))
    n0

(** val series :
    Big_int_Z.big_int -> int -> Big_int_Z.big_int -> Big_int_Z.big_int **)

let rec series e i s =
  (fun fO fS n -> if n=0 then fO () else fS (n-1))
    (fun _ -> s)
    (fun k ->
    series e k (Z.sub (Z.div oNE (Z.of_nat i)) (Z.div (Z.mul e s) oNE)))
    i

(** val log_up : q -> q option **)

let log_up x =
  let y = ceil x wIDE in
  if (&&) (Z.leb Big_int_Z.unit_big_int y) (Z.ltb y lARGE)
  then let e =
         Z.sub
           (roots (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
             0)))))))))))))))))))))))) y) oNE
       in
       if Z.leb (Z.abs e) qUARTER
       then Some { qnum =
              (Z.add
                (Z.mul e
                  (series e (Stdlib.Int.succ (Stdlib.Int.succ
                    (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
                    (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
                    (Stdlib.Int.succ (Stdlib.Int.succ (Stdlib.Int.succ
                    0))))))))))) Big_int_Z.zero_big_int))
                (Z.mul (Big_int_Z.mult_int_big_int 2
                  (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int))
                  (Z.abs e))); qden = lOG }
       else None
  else None

(** val entropy : q -> q option **)

let entropy q0 =
  if qzero q0
  then Some { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int }
  else if qlt { qnum = Big_int_Z.zero_big_int; qden =
            Big_int_Z.unit_big_int } q0
       then (match log_up q0 with
             | Some l -> Some (qmult q0 l)
             | None -> None)
       else None

(** val guard : bool -> q -> q option **)

let guard c q0 =
  if c then Some q0 else None

(** val plus_opt : q option -> q option -> q option **)

let plus_opt a b =
  match a with
  | Some p -> (match b with
               | Some q0 -> Some (qadd p q0)
               | None -> None)
  | None -> None

(** val sum_opt : ('a1 -> q option) -> 'a1 list -> q option **)

let sum_opt f l =
  fold_right (fun a s -> plus_opt (f a) s) (Some { qnum =
    Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int }) l

(** val half : q -> q **)

let half q0 =
  qmult q0 { qnum = Big_int_Z.unit_big_int; qden =
    (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int) }

(** val sq : q -> q **)

let sq q0 =
  qmult q0 q0

(** val maxQ : q -> q list -> q **)

let rec maxQ m = function
| [] -> m
| v :: z' -> maxQ (qmax m v) z'

(** val bump : int -> q list -> q list **)

let rec bump y = function
| [] -> []
| v :: z' ->
  ((fun fO fS n -> if n=0 then fO () else fS (n-1))
     (fun _ ->
     (qadd v { qnum = Big_int_Z.unit_big_int; qden = Big_int_Z.unit_big_int }) :: z')
     (fun y' -> v :: (bump y' z'))
     y)

(** val push : q list -> (q option * q option) list -> q option **)

let rec push u b =
  match u with
  | [] ->
    (match b with
     | [] ->
       Some { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int }
     | _ :: _ -> None)
  | v :: u' ->
    (match b with
     | [] -> None
     | p :: b' ->
       let (l, h) = p in
       plus_opt
         (if qzero v
          then Some { qnum = Big_int_Z.zero_big_int; qden =
                 Big_int_Z.unit_big_int }
          else (match if qlt { qnum = Big_int_Z.zero_big_int; qden =
                           Big_int_Z.unit_big_int } v
                      then h
                      else l with
                | Some e -> Some (qmult v e)
                | None -> None)) (push u' b'))

(** val conjugate : func -> q list -> q option **)

let conjugate f b =
  match f with
  | Squared y ->
    (match b with
     | [] -> None
     | v :: l ->
       (match l with
        | [] -> Some (qmult v (qplus (half v) y))
        | _ :: _ -> None))
  | Mean y -> Some (qplus (half (dotQ b b)) (dotQ b y))
  | Logistic y ->
    (match b with
     | [] -> None
     | v :: l ->
       (match l with
        | [] ->
          plus_opt (entropy (qmult (qopp y) v))
            (entropy
              (qplus { qnum = Big_int_Z.unit_big_int; qden =
                Big_int_Z.unit_big_int } (qmult y v)))
        | _ :: _ -> None))
  | Poisson y ->
    (match b with
     | [] -> None
     | v :: l ->
       (match l with
        | [] -> plus_opt (entropy (qplus v y)) (Some (qopp (qplus v y)))
        | _ :: _ -> None))
  | Huber (d, y) ->
    (match b with
     | [] -> None
     | v :: l ->
       (match l with
        | [] -> guard (qle (qabs v) d) (qmult v (qplus (half v) y))
        | _ :: _ -> None))
  | Quantile (t, y) ->
    (match b with
     | [] -> None
     | v :: l ->
       (match l with
        | [] -> guard ((&&) (qle (qopp t) v) (qle v (rest t))) (qmult v y)
        | _ :: _ -> None))
  | Multinomial y ->
    if qzero (totalQ b) then sum_opt entropy (bump y b) else None
  | Hinge y ->
    (match b with
     | [] -> None
     | v :: l ->
       (match l with
        | [] ->
          guard
            ((&&)
              (qle
                (qopp { qnum = Big_int_Z.unit_big_int; qden =
                  Big_int_Z.unit_big_int }) (qmult v y))
              (qle (qmult v y) { qnum = Big_int_Z.zero_big_int; qden =
                Big_int_Z.unit_big_int })) (qmult v y)
        | _ :: _ -> None))
  | SquaredHinge y ->
    (match b with
     | [] -> None
     | v :: l ->
       (match l with
        | [] ->
          guard
            (qle (qmult v y) { qnum = Big_int_Z.zero_big_int; qden =
              Big_int_Z.unit_big_int }) (qmult v (qplus (half v) y))
        | _ :: _ -> None))
  | Expectile (t, y) ->
    (match b with
     | [] -> None
     | v :: l ->
       (match l with
        | [] ->
          guard
            (qlt { qnum = Big_int_Z.zero_big_int; qden =
              Big_int_Z.unit_big_int } (rest t))
            (qmult v
              (qplus
                (qdiv (half v)
                  (if qlt v { qnum = Big_int_Z.zero_big_int; qden =
                        Big_int_Z.unit_big_int }
                   then t
                   else rest t)) y))
        | _ :: _ -> None))
  | SquaredEpsilon (e, y) ->
    (match b with
     | [] -> None
     | v :: l ->
       (match l with
        | [] -> Some (qplus (qmult v (qplus (half v) y)) (qmult e (qabs v)))
        | _ :: _ -> None))
  | Gamma y ->
    (match b with
     | [] -> None
     | v :: l ->
       (match l with
        | [] ->
          (match entropy
                   (qdiv
                     (qminus { qnum = Big_int_Z.unit_big_int; qden =
                       Big_int_Z.unit_big_int } v) y) with
           | Some q0 ->
             Some
               (qminus (qmult y q0)
                 (qminus { qnum = Big_int_Z.unit_big_int; qden =
                   Big_int_Z.unit_big_int } v))
           | None -> None)
        | _ :: _ -> None))
  | L1 ->
    guard
      (qle (normIQ b) { qnum = Big_int_Z.unit_big_int; qden =
        Big_int_Z.unit_big_int }) { qnum = Big_int_Z.zero_big_int; qden =
      Big_int_Z.unit_big_int }
  | L2 ->
    guard
      (qle (dotQ b b) { qnum = Big_int_Z.unit_big_int; qden =
        Big_int_Z.unit_big_int }) { qnum = Big_int_Z.zero_big_int; qden =
      Big_int_Z.unit_big_int }
  | LInf ->
    guard
      (qle (norm1Q b) { qnum = Big_int_Z.unit_big_int; qden =
        Big_int_Z.unit_big_int }) { qnum = Big_int_Z.zero_big_int; qden =
      Big_int_Z.unit_big_int }
  | HuberNorm d -> guard (qle (dotQ b b) (qmult d d)) (half (dotQ b b))
  | Zero ->
    Some { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int }
  | Ball r -> Some (qmult r (root (dotQ b b)))
  | NonNegative ->
    guard
      (forallb (fun v ->
        qle v { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int })
        b) { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int }
  | Box bounds -> push b bounds
  | _ -> Some (half (dotQ b b))

(** val hubQ : q -> q -> q -> q **)

let hubQ square r d =
  if qle square (qmult d d)
  then half square
  else qminus (qmult d r) (half (qmult d d))

(** val insideQ : q list -> (q option * q option) list -> bool **)

let rec insideQ z0 b =
  match z0 with
  | [] -> (match b with
           | [] -> true
           | _ :: _ -> false)
  | v :: z' ->
    (match b with
     | [] -> false
     | p :: b' ->
       let (l, h) = p in
       (&&)
         ((&&) (match l with
                | Some l0 -> qle l0 v
                | None -> true)
           (match h with
            | Some h0 -> qle v h0
            | None -> true)) (insideQ z' b'))

(** val upval : func -> q list -> q option **)

let upval f z0 =
  let x =
    hd { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int } z0
  in
  (match f with
   | Squared y -> Some (half (sq (qminus x y)))
   | Mean y -> Some (half (dotQ (minusQ z0 y) (minusQ z0 y)))
   | Logistic y ->
     (match exp_up (qopp (qabs x)) with
      | Some e ->
        (match log_up
                 (qplus { qnum = Big_int_Z.unit_big_int; qden =
                   Big_int_Z.unit_big_int } e) with
         | Some l ->
           Some
             (qplus
               (qmax (qmult (qopp y) x) { qnum = Big_int_Z.zero_big_int;
                 qden = Big_int_Z.unit_big_int }) l)
         | None -> None)
      | None -> None)
   | Poisson y ->
     (match exp_up x with
      | Some e -> Some (qminus e (qmult y x))
      | None -> None)
   | Huber (d, y) -> Some (hubQ (sq (qminus x y)) (qabs (qminus x y)) d)
   | Quantile (t, y) ->
     Some (qmax (qmult (qopp t) (qminus x y)) (qmult (rest t) (qminus x y)))
   | Multinomial y ->
     let m = maxQ x z0 in
     (match sum_opt (fun v -> exp_up (qadd v (qopp m))) z0 with
      | Some s ->
        (match log_up s with
         | Some l ->
           Some
             (qplus
               (qminus m
                 (nth y z0 { qnum = Big_int_Z.zero_big_int; qden =
                   Big_int_Z.unit_big_int })) l)
         | None -> None)
      | None -> None)
   | Hinge y ->
     Some
       (qmax { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int }
         (qminus { qnum = Big_int_Z.unit_big_int; qden =
           Big_int_Z.unit_big_int } (qmult y x)))
   | SquaredHinge y ->
     Some
       (half
         (sq
           (qmax { qnum = Big_int_Z.zero_big_int; qden =
             Big_int_Z.unit_big_int }
             (qminus { qnum = Big_int_Z.unit_big_int; qden =
               Big_int_Z.unit_big_int } (qmult y x)))))
   | Expectile (t, y) ->
     Some
       (qmult
         (if qlt (qminus x y) { qnum = Big_int_Z.zero_big_int; qden =
               Big_int_Z.unit_big_int }
          then t
          else rest t) (half (sq (qminus x y))))
   | SquaredEpsilon (e, y) ->
     Some
       (half
         (sq
           (qmax { qnum = Big_int_Z.zero_big_int; qden =
             Big_int_Z.unit_big_int } (qminus (qabs (qminus x y)) e))))
   | Gamma y ->
     (match exp_up (qopp x) with
      | Some e -> Some (qplus x (qmult y e))
      | None -> None)
   | L1 -> Some (norm1Q z0)
   | L2 -> Some (root (dotQ z0 z0))
   | LInf -> Some (normIQ z0)
   | SquaredL2 -> Some (half (dotQ z0 z0))
   | Quadratic root0 ->
     let rz = map (fun r -> dotQ r z0) root0 in Some (half (dotQ rz rz))
   | HuberNorm d -> Some (hubQ (dotQ z0 z0) (root (dotQ z0 z0)) d)
   | Zero ->
     guard (forallb qzero z0) { qnum = Big_int_Z.zero_big_int; qden =
       Big_int_Z.unit_big_int }
   | Ball r ->
     guard (qle (dotQ z0 z0) (qmult r r)) { qnum = Big_int_Z.zero_big_int;
       qden = Big_int_Z.unit_big_int }
   | NonNegative ->
     guard
       (forallb
         (qle { qnum = Big_int_Z.zero_big_int; qden =
           Big_int_Z.unit_big_int }) z0) { qnum = Big_int_Z.zero_big_int;
       qden = Big_int_Z.unit_big_int }
   | Box b ->
     guard (insideQ z0 b) { qnum = Big_int_Z.zero_big_int; qden =
       Big_int_Z.unit_big_int })

type change =
| Grows
| Stays
| Falls

(** val outward : q list -> (q option * q option) list -> bool **)

let rec outward v b =
  match v with
  | [] -> (match b with
           | [] -> true
           | _ :: _ -> false)
  | v0 :: v' ->
    (match b with
     | [] -> false
     | p :: b' ->
       let (l, h) = p in
       (&&)
         ((&&)
           (match l with
            | Some _ ->
              qle { qnum = Big_int_Z.zero_big_int; qden =
                Big_int_Z.unit_big_int } v0
            | None -> true)
           (match h with
            | Some _ ->
              qle v0 { qnum = Big_int_Z.zero_big_int; qden =
                Big_int_Z.unit_big_int }
            | None -> true)) (outward v' b'))

(** val changes : func -> q list -> change **)

let changes f v =
  let x =
    hd { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int } v
  in
  if forallb qzero v
  then Stays
  else (match f with
        | Logistic y ->
          if qlt { qnum = Big_int_Z.zero_big_int; qden =
               Big_int_Z.unit_big_int } (qmult y x)
          then Falls
          else Grows
        | Poisson y ->
          if (&&)
               (qlt x { qnum = Big_int_Z.zero_big_int; qden =
                 Big_int_Z.unit_big_int }) (qzero y)
          then Falls
          else Grows
        | Multinomial y ->
          if forallb (fun a ->
               qle a
                 (nth y v { qnum = Big_int_Z.zero_big_int; qden =
                   Big_int_Z.unit_big_int })) v
          then if forallb
                    (qle
                      (nth y v { qnum = Big_int_Z.zero_big_int; qden =
                        Big_int_Z.unit_big_int })) v
               then Stays
               else Falls
          else Grows
        | Hinge y ->
          if qlt { qnum = Big_int_Z.zero_big_int; qden =
               Big_int_Z.unit_big_int } (qmult y x)
          then Stays
          else Grows
        | SquaredHinge y ->
          if qlt { qnum = Big_int_Z.zero_big_int; qden =
               Big_int_Z.unit_big_int } (qmult y x)
          then Stays
          else Grows
        | Quadratic root0 ->
          if forallb (fun r -> qzero (dotQ r v)) root0 then Stays else Grows
        | NonNegative ->
          if forallb
               (qle { qnum = Big_int_Z.zero_big_int; qden =
                 Big_int_Z.unit_big_int }) v
          then Stays
          else Grows
        | Box b -> if outward v b then Stays else Grows
        | _ -> Grows)

(** val price : q -> func -> q list -> q option **)

let price s f u =
  if qlt { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int } s
  then (match f with
        | Quadratic _ -> Some (qmult s (half (dotQ u u)))
        | _ ->
          (match conjugate f (scaleQ (qinv s) u) with
           | Some q0 -> Some (qmult s q0)
           | None -> None))
  else None

(** val flow : q -> func -> q list -> q list **)

let flow s f t =
  match f with
  | Quadratic root0 -> scaleQ s (transposed root0 t)
  | _ -> t

(** val arity : func -> int -> int **)

let arity f k =
  match f with
  | Quadratic root0 -> length root0
  | _ -> k

(** val value : q -> func -> q list -> q option **)

let value s f z0 =
  match upval f z0 with
  | Some q0 -> Some (qmult s q0)
  | None -> None

type proof = { problem : model; at_point : q list list;
               dual_point : q list list; within : q option;
               claims : claim list }

type why =
| IllFormed of int
| NoValue of int
| NoPrice of int
| Lengths of int
| Unbalanced of Big_int_Z.big_int * Big_int_Z.big_int * q
| SmallBox
| OutsideBox
| Crossed
| NoBounds
| Bounded of q * q
| NoEdge
| NotPositive
| WideGap
| NoSlack
| NotExcluded
| TermGrows of int
| NothingFalls
| InClaim of int * why

type 'a result =
| Ok of 'a
| No of why

(** val demand : bool -> why -> unit result **)

let demand c reason =
  if c then Ok () else No reason

(** val var :
    Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int ->
    Big_int_Z.big_int **)

let var d i j =
  N.succ_pos (N.add (N.mul i d) j)

(** val row_from :
    Big_int_Z.big_int -> ((Big_int_Z.big_int * Big_int_Z.big_int) * q) list
    -> tree -> q -> q **)

let rec row_from d cs w sum =
  match cs with
  | [] -> sum
  | p :: cs' ->
    let (p0, q0) = p in
    let (i, j) = p0 in
    row_from d cs' w (qadd sum (qmul q0 (get (var d i j) w)))

(** val rowQ :
    Big_int_Z.big_int -> ((Big_int_Z.big_int * Big_int_Z.big_int) * q) list
    -> tree -> q **)

let rowQ d cs w =
  row_from d cs w { qnum = Big_int_Z.zero_big_int; qden =
    Big_int_Z.unit_big_int }

(** val shifted : q list option -> q list -> q list **)

let shifted o z0 =
  match o with
  | Some o0 -> addQ z0 o0
  | None -> z0

(** val numbersQ :
    Big_int_Z.big_int -> q list option ->
    ((Big_int_Z.big_int * Big_int_Z.big_int) * q) list list -> tree -> q list **)

let numbersQ d o k w =
  shifted o (map (fun cs -> rowQ d cs w) k)

(** val put_row :
    Big_int_Z.big_int -> q -> ((Big_int_Z.big_int * Big_int_Z.big_int) * q)
    list -> tree -> tree **)

let rec put_row d v cs t =
  match cs with
  | [] -> t
  | p :: cs' ->
    let (p0, q0) = p in
    let (i, j) = p0 in put_row d v cs' (put (var d i j) (qmul v q0) t)

(** val put_rows :
    Big_int_Z.big_int -> q list ->
    ((Big_int_Z.big_int * Big_int_Z.big_int) * q) list list -> tree -> tree **)

let rec put_rows d u k t =
  match u with
  | [] -> t
  | v :: u' ->
    (match k with
     | [] -> t
     | cs :: k' -> put_rows d u' k' (put_row d v cs t))

(** val pushed : q list option -> q list -> q **)

let pushed o u =
  match o with
  | Some o0 -> dotQ u o0
  | None -> { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int }

(** val fill_row :
    Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int -> q list ->
    tree -> tree **)

let rec fill_row d i j vs t =
  match vs with
  | [] -> t
  | v :: vs' -> fill_row d i (N.succ j) vs' (put (var d i j) v t)

(** val fill :
    Big_int_Z.big_int -> Big_int_Z.big_int -> q list list -> tree -> tree **)

let rec fill d i rows t =
  match rows with
  | [] -> t
  | vs :: rows' ->
    fill d (N.succ i) rows' (fill_row d i Big_int_Z.zero_big_int vs t)

(** val primal :
    Big_int_Z.big_int -> tree -> int -> term list -> Big_int_Z.big_int ->
    Big_int_Z.big_int result **)

let rec primal d w k ts sum =
  match ts with
  | [] -> Ok sum
  | t :: ts' ->
    let (s, e) = t in
    (match value s e.what (numbersQ d e.plus (cells e.at_) w) with
     | Some q0 -> primal d w (Stdlib.Int.succ k) ts' (Z.add sum (up q0))
     | None -> No (NoValue k))

(** val isnorm : func -> bool **)

let isnorm = function
| L1 -> true
| L2 -> true
| LInf -> true
| _ -> false

(** val charge : bool -> term -> q list -> q option **)

let charge free t u =
  if free
  then guard
         ((&&) (isnorm (snd t).what)
           (qle { qnum = Big_int_Z.zero_big_int; qden =
             Big_int_Z.unit_big_int } (fst t))) { qnum =
         Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int }
  else price (fst t) (snd t).what u

(** val isfree : int option -> bool **)

let isfree = function
| Some n0 ->
  ((fun fO fS n -> if n=0 then fO () else fS (n-1))
     (fun _ -> true)
     (fun _ -> false)
     n0)
| None -> false

(** val next : int option -> int option **)

let next = function
| Some n0 ->
  ((fun fO fS n -> if n=0 then fO () else fS (n-1))
     (fun _ -> None)
     (fun k -> Some k)
     n0)
| None -> None

(** val dual :
    Big_int_Z.big_int -> int option -> int -> term list -> q list list ->
    Big_int_Z.big_int -> tree -> (Big_int_Z.big_int * tree) result **)

let rec dual d free k ts us sum rest0 =
  match ts with
  | [] -> (match us with
           | [] -> Ok (sum, rest0)
           | _ :: _ -> No (Lengths k))
  | t0 :: ts' ->
    let (s, e) = t0 in
    (match us with
     | [] -> No (Lengths k)
     | t :: us' ->
       let k0 = cells e.at_ in
       if (=) (length t) (arity e.what (length k0))
       then (match charge (isfree free) (s, e) t with
             | Some q0 ->
               let u = flow s e.what t in
               dual d (next free) (Stdlib.Int.succ k) ts' us'
                 (Z.add sum (up (qminus q0 (pushed e.plus u))))
                 (put_rows d u k0 rest0)
             | None -> No (NoPrice k))
       else No (Lengths k))

(** val place_of :
    Big_int_Z.big_int -> Big_int_Z.big_int ->
    Big_int_Z.big_int * Big_int_Z.big_int **)

let place_of d p =
  N.div_eucl (Coq_Pos.pred_N p) d

(** val lower :
    Big_int_Z.big_int -> q option -> int option -> term list -> q list list
    -> Big_int_Z.big_int result **)

let lower d b free ts us =
  match dual d free 0 ts us Big_int_Z.zero_big_int Leaf with
  | Ok a ->
    let (sum, rest0) = a in
    (match b with
     | Some b0 -> Ok (Z.opp (Z.add sum (charged b0 rest0)))
     | None ->
       (match first rest0 (fun p -> p) with
        | Some p0 ->
          let (p, q0) = p0 in
          No (Unbalanced ((fst (place_of d p)), (snd (place_of d p)), q0))
        | None -> Ok (Z.opp sum)))
  | No reason -> No reason

(** val residuals :
    Big_int_Z.big_int -> tree -> term list -> q list list ->
    Big_int_Z.big_int -> Big_int_Z.big_int option **)

let rec residuals d w ts us sum =
  match ts with
  | [] -> (match us with
           | [] -> Some sum
           | _ :: _ -> None)
  | t0 :: ts' ->
    let (s, e) = t0 in
    (match us with
     | [] -> None
     | t :: us' ->
       let k = cells e.at_ in
       let z0 = numbersQ d e.plus k w in
       if (=) (length t) (arity e.what (length k))
       then (match value s e.what z0 with
             | Some v ->
               (match price s e.what t with
                | Some q0 ->
                  residuals d w ts' us'
                    (Z.add sum
                      (up (qminus (qplus v q0) (dotQ (flow s e.what t) z0))))
                | None -> None)
             | None -> None)
       else None)

(** val starts : int -> block list -> int list **)

let rec starts k = function
| [] -> []
| b :: bs' -> k :: (starts (add k (long_length b.entries)) bs')

(** val claimable : entry -> bool **)

let claimable e =
  (&&) (isnorm e.what)
    (match e.plus with
     | Some _ -> (match e.at_ with
                  | Cells _ -> true
                  | _ -> false)
     | None -> true)

(** val index : block list -> int list -> int -> int -> int option **)

let index bs begins b e =
  match nth_error bs b with
  | Some bl ->
    (match nth_error begins b with
     | Some k ->
       (match nth_error bl.entries e with
        | Some en -> if claimable en then Some (add k e) else None
        | None -> None)
     | None -> None)
  | None -> None

(** val sLACK : q **)

let sLACK =
  qminus { qnum = Big_int_Z.unit_big_int; qden = Big_int_Z.unit_big_int }
    { qnum = Big_int_Z.unit_big_int; qden =
    (Coq_Pos.pow (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int)
      (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
      (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
      (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
      Big_int_Z.unit_big_int))))))) }

(** val inside : q -> q **)

let inside c =
  qmult c sLACK

(** val slack : q -> q -> q -> term -> q list -> bool **)

let slack c' gap r t u =
  (&&) ((&&) (qlt c' (fst t)) (qle gap (qmult (qminus (fst t) c') r)))
    (match price c' (snd t).what u with
     | Some _ -> true
     | None -> false)

(** val near : q -> q -> q -> q **)

let near c gap r =
  qmin (qminus c (qdiv gap r)) (inside c)

(** val recession :
    Big_int_Z.big_int -> tree -> int -> term list -> bool -> unit result **)

let rec recession d v k ts falls =
  match ts with
  | [] -> demand falls NothingFalls
  | t :: ts' ->
    let (_, e) = t in
    (match changes e.what (map (fun cs -> rowQ d cs v) (cells e.at_)) with
     | Grows -> No (TermGrows k)
     | Stays -> recession d v (Stdlib.Int.succ k) ts' falls
     | Falls -> recession d v (Stdlib.Int.succ k) ts' true)

(** val check_claim :
    proof -> term list -> int list -> Big_int_Z.big_int -> Big_int_Z.big_int
    -> Big_int_Z.big_int -> claim -> unit result **)

let check_claim p ts begins low high gap c =
  let m = p.problem in
  (match c with
   | Bounds (l, u) ->
     demand ((&&) (qle l (units low)) (qle (units high) u)) (Bounded
       ((units low), (units high)))
   | Near (b, e, r) ->
     (match index m.edges begins b e with
      | Some k ->
        (match nth_error ts k with
         | Some t ->
           (match nth_error p.dual_point k with
            | Some u ->
              let c' = near (fst t) (units gap) r in
              (match demand
                       (qlt { qnum = Big_int_Z.zero_big_int; qden =
                         Big_int_Z.unit_big_int } r) NotPositive with
               | Ok _ ->
                 (match demand
                          (qlt { qnum = Big_int_Z.zero_big_int; qden =
                            Big_int_Z.unit_big_int } c') WideGap with
                  | Ok _ -> demand (slack c' (units gap) r t u) NoSlack
                  | No reason -> No reason)
               | No reason -> No reason)
            | None -> No NoEdge)
         | None -> No NoEdge)
      | None -> No NoEdge)
   | Fused (b, e) ->
     (match index m.edges begins b e with
      | Some k ->
        (match nth_error ts k with
         | Some t ->
           (match nth_error p.dual_point k with
            | Some u ->
              (match demand (Z.eqb gap Big_int_Z.zero_big_int) WideGap with
               | Ok _ ->
                 demand
                   (slack (inside (fst t)) (units gap) { qnum =
                     Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int }
                     t u) NoSlack
               | No reason -> No reason)
            | None -> No NoEdge)
         | None -> No NoEdge)
      | None -> No NoEdge)
   | Split (b, e, us) ->
     (match index m.edges begins b e with
      | Some k ->
        (match lower m.columns p.within (Some k) ts us with
         | Ok bound -> demand (Z.ltb high bound) NotExcluded
         | No reason -> No reason)
      | None -> No NoEdge)
   | Unattained direction ->
     recession m.columns
       (fill m.columns Big_int_Z.zero_big_int direction Leaf) 0 ts false)

(** val check_claims :
    proof -> term list -> int list -> Big_int_Z.big_int -> Big_int_Z.big_int
    -> Big_int_Z.big_int -> int -> claim list -> unit result **)

let rec check_claims p ts begins low high gap k = function
| [] -> Ok ()
| c :: cs' ->
  (match check_claim p ts begins low high gap c with
   | Ok _ -> check_claims p ts begins low high gap (Stdlib.Int.succ k) cs'
   | No reason -> No (InClaim (k, reason)))

(** val node_of : entry -> Big_int_Z.big_int option **)

let node_of e =
  match e.at_ with
  | AtNode (i, _, _) -> Some (N.succ_pos i)
  | _ -> None

(** val sums : entry list -> tree **)

let sums es =
  fold_left (fun t e ->
    match node_of e with
    | Some p -> alter (fun a -> to_double (qplus a e.weight)) p t
    | None -> t) es Leaf

(** val fast_bases : block -> q list **)

let fast_bases b =
  match b.by_ with
  | AsWeight -> long_map (fun e -> e.weight) b.entries
  | MeanOfNode ->
    let t = sums b.entries in
    long_map (fun e ->
      match node_of e with
      | Some p -> to_double (qdiv e.weight (finite (get p t)))
      | None ->
        { qnum = Big_int_Z.zero_big_int; qden = Big_int_Z.unit_big_int })
      b.entries
  | Times factors ->
    long_map (fun ef -> to_double (qmult (fst ef).weight (snd ef)))
      (long_combine b.entries factors)

(** val fast_terms : block -> term list **)

let fast_terms b =
  long_combine
    (long_map (fun q0 -> finite (to_double (qmult b.strength (finite q0))))
      (fast_bases b)) b.entries

(** val gather : model -> int -> block list -> term list result **)

let rec gather m k = function
| [] -> Ok []
| b :: bs' ->
  let ts = fast_terms b in
  (match demand
           ((&&) ((=) (long_length ts) (long_length b.entries))
             (forallb (well_formed_term m) ts)) (IllFormed k) with
   | Ok _ ->
     (match gather m (Stdlib.Int.succ k) bs' with
      | Ok rest0 -> Ok (long_app ts rest0)
      | No reason -> No reason)
   | No reason -> No reason)

(** val is_bounds : claim -> bool **)

let is_bounds = function
| Bounds (_, _) -> true
| _ -> false

(** val is_about_flow : claim -> bool **)

let is_about_flow = function
| Near (_, _, _) -> true
| Fused (_, _) -> true
| _ -> false

(** val bOX : q **)

let bOX =
  { qnum =
    (Z.pow (Big_int_Z.mult_int_big_int 2 Big_int_Z.unit_big_int)
      (Big_int_Z.mult_int_big_int 2 (Big_int_Z.mult_int_big_int 2
      (Big_int_Z.mult_int_big_int 2
      ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
      (Big_int_Z.mult_int_big_int 2
      ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
      ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
      ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
      ((fun x -> Big_int_Z.succ_big_int (Big_int_Z.mult_int_big_int 2 x))
      Big_int_Z.unit_big_int)))))))))); qden = Big_int_Z.unit_big_int }

(** val check : proof -> (q * q) result **)

let check p =
  let m = p.problem in
  let d = m.columns in
  (match gather m 0 (app m.samples m.edges) with
   | Ok ts ->
     let begins =
       starts
         (fold_left (fun n0 b -> add n0 (long_length b.entries)) m.samples 0)
         m.edges
     in
     let w = fill d Big_int_Z.zero_big_int p.at_point Leaf in
     (match match p.within with
            | Some b ->
              (match demand (qle bOX b) SmallBox with
               | Ok _ -> demand (qle (largest w) b) OutsideBox
               | No reason -> No reason)
            | None -> Ok () with
      | Ok _ ->
        (match primal d w 0 ts Big_int_Z.zero_big_int with
         | Ok high ->
           (match lower d p.within None ts p.dual_point with
            | Ok low ->
              (match demand (Z.leb low high) Crossed with
               | Ok _ ->
                 (match demand (existsb is_bounds p.claims) NoBounds with
                  | Ok _ ->
                    let gap =
                      match p.within with
                      | Some _ -> Z.sub high low
                      | None ->
                        if existsb is_about_flow p.claims
                        then (match residuals d w ts p.dual_point
                                      Big_int_Z.zero_big_int with
                              | Some g -> Z.min g (Z.sub high low)
                              | None -> Z.sub high low)
                        else Z.sub high low
                    in
                    (match check_claims p ts begins low high gap 0 p.claims with
                     | Ok _ -> Ok ((units low), (units high))
                     | No reason -> No reason)
                  | No reason -> No reason)
               | No reason -> No reason)
            | No reason -> No reason)
         | No reason -> No reason)
      | No reason -> No reason)
   | No reason -> No reason)
