(** What the checker computes: of each loss and penalty an upper bound of its value, and of its conjugate. *)
Require Import ZArith QArith Qabs List Bool.
From Checker Require Import Definitions Numbers.
Import ListNotations.
Open Scope Q_scope.

(** * exp and log, in integers with units of 2^-272 *)
Definition ONE : Z := (2 ^ 272)%Z.
Definition WIDE : positive := (2 ^ 272)%positive.
Definition FINE : positive := (2 ^ 248)%positive.
Definition LOG : positive := (2 ^ 520)%positive.
Definition LARGE : Z := (2 ^ 16383)%Z.
Definition SMALL : Z := (2 ^ 260)%Z.
Definition QUARTER : Z := (2 ^ 270)%Z.
(** 1 + h/1 (1 + h/2 (1 + ... )), rounded down; powers 2^n, rounded up. *)
Fixpoint horner (h : Z) (i : nat) (t : Z) : Z :=
  match i with O => t | S k => horner h k (ONE + t * h / ONE / Z.of_nat i)%Z end.
Fixpoint squares (n : nat) (t : Z) : Z := match n with O => t | S k => squares k (- (- t * t / ONE))%Z end.
(** An upper bound of exp(x): the 2^24-th power of exp(h), h = x 2^-24. *)
Definition exp_up (x : Q) : option Q :=
  if qlt x 4096 then
    let h := ceil (qmax x (- (4096))) FINE in
    if (Z.abs h <=? SMALL)%Z then Some (squares 24 (horner h 20 ONE + 4) # WIDE) else None
  else None.
Fixpoint roots (n : nat) (y : Z) : Z := match n with O => y | S k => roots k (Z.sqrt_up (y * ONE)) end.
(** 1 - e/2 + e^2/3 - ... up to e^10/11. *)
Fixpoint series (e : Z) (i : nat) (s : Z) : Z :=
  match i with O => s | S k => series e k (ONE / Z.of_nat i - e * s / ONE)%Z end.
(** An upper bound of log(x): 2^24 log(1 + e), with 1 + e the 2^24-th root of x, rounded up. *)
Definition log_up (x : Q) : option Q :=
  let y := ceil x WIDE in
  if (1 <=? y)%Z && (y <? LARGE)%Z then
    let e := (roots 24 y - ONE)%Z in
    if (Z.abs e <=? QUARTER)%Z then Some (e * series e 11 0 + 4 * Z.abs e # LOG) else None
  else None.
(** q log(q), which is 0 at 0. *)
Definition entropy (q : Q) : option Q :=
  if qzero q then Some 0 else if qlt 0 q then match log_up q with Some l => Some (q * l) | None => None end else None.

Definition guard (c : bool) (q : Q) : option Q := if c then Some q else None.
Definition plus_opt (a b : option Q) : option Q := match a, b with Some p, Some q => Some (qadd p q) | _, _ => None end.
Definition sum_opt {A} (f : A -> option Q) (l : list A) : option Q :=
  fold_right (fun a s => plus_opt (f a) s) (Some 0) l.
Definition half (q : Q) : Q := q * (1 # 2).
Definition sq (q : Q) : Q := q * q.
Fixpoint maxQ (m : Q) (z : list Q) : Q := match z with [] => m | v :: z' => maxQ (qmax m v) z' end.
(** z with 1 added to entry y. *)
Fixpoint bump (y : nat) (z : list Q) : list Q :=
  match z, y with [], _ => [] | v :: z', O => qadd v 1 :: z' | v :: z', S y' => v :: bump y' z' end.
(** The support function of a box at u. *)
Fixpoint push (u : list Q) (b : list (option Q * option Q)) : option Q :=
  match u, b with
  | [], [] => Some 0
  | v :: u', (l, h) :: b' =>
      plus_opt (if qzero v then Some 0
                else match (if qlt 0 v then h else l) with Some e => Some (v * e) | None => None end) (push u' b')
  | _, _ => None
  end.

(** f*(b), where b lies in its domain; of a Quadratic, b = R't is stated by t. *)
Definition conjugate (f : func) (b : list Q) : option Q :=
  match f, b with
  | Squared y, [v] => Some (v * (half v + y))
  | Mean y, _ => Some (half (dotQ b b) + dotQ b y)
  | Logistic y, [v] => plus_opt (entropy (- y * v)) (entropy (1 + y * v))
  | Poisson y, [v] => plus_opt (entropy (v + y)) (Some (- (v + y)))
  | Huber d y, [v] => guard (qle (qabs v) d) (v * (half v + y))
  | Quantile t y, [v] => guard (qle (- t) v && qle v (rest t)) (v * y)
  | Multinomial y, _ => if qzero (totalQ b) then sum_opt entropy (bump y b) else None
  | Hinge y, [v] => guard (qle (-(1)) (v * y) && qle (v * y) 0) (v * y)
  | SquaredHinge y, [v] => guard (qle (v * y) 0) (v * (half v + y))
  | Expectile t y, [v] => guard (qlt 0 (rest t)) (v * (half v / (if qlt v 0 then t else rest t) + y))
  | SquaredEpsilon e y, [v] => Some (v * (half v + y) + e * qabs v)
  | Gamma y, [v] => match entropy ((1 - v) / y) with Some q => Some (y * q - (1 - v)) | None => None end
  | L1, _ => guard (qle (normIQ b) 1) 0
  | L2, _ => guard (qle (dotQ b b) 1) 0
  | LInf, _ => guard (qle (norm1Q b) 1) 0
  | SquaredL2, _ | Quadratic _, _ => Some (half (dotQ b b))
  | HuberNorm d, _ => guard (qle (dotQ b b) (d * d)) (half (dotQ b b))
  | Zero, _ => Some 0
  | Ball r, _ => Some (r * root (dotQ b b))
  | NonNegative, _ => guard (forallb (fun v => qle v 0) b) 0
  | Box bounds, _ => push b bounds
  | _, _ => None
  end.

Definition hubQ (square r d : Q) : Q := if qle square (d * d) then half square else d * r - half (d * d).
Fixpoint insideQ (z : list Q) (b : list (option Q * option Q)) : bool :=
  match z, b with
  | [], [] => true
  | v :: z', (l, h) :: b' => match l with None => true | Some l => qle l v end
                             && match h with None => true | Some h => qle v h end && insideQ z' b'
  | _, _ => false
  end.
(** An upper bound of f(z), where that is finite. *)
Definition upval (f : func) (z : list Q) : option Q :=
  let x := hd 0 z in
  match f with
  | Squared y => Some (half (sq (x - y)))
  | Mean y => Some (half (dotQ (minusQ z y) (minusQ z y)))
  | Logistic y => match exp_up (- qabs x) with
                  | Some e => match log_up (1 + e) with Some l => Some (qmax (- y * x) 0 + l) | None => None end
                  | None => None end
  | Poisson y => match exp_up x with Some e => Some (e - y * x) | None => None end
  | Huber d y => Some (hubQ (sq (x - y)) (qabs (x - y)) d)
  | Quantile t y => Some (qmax (- t * (x - y)) (rest t * (x - y)))
  | Multinomial y =>
      let m := maxQ x z in
      match sum_opt (fun v => exp_up (qadd v (- m))) z with
      | Some s => match log_up s with Some l => Some (m - nth y z 0 + l) | None => None end
      | None => None end
  | Hinge y => Some (qmax 0 (1 - y * x))
  | SquaredHinge y => Some (half (sq (qmax 0 (1 - y * x))))
  | Expectile t y => Some ((if qlt (x - y) 0 then t else rest t) * half (sq (x - y)))
  | SquaredEpsilon e y => Some (half (sq (qmax 0 (qabs (x - y) - e))))
  | Gamma y => match exp_up (- x) with Some e => Some (x + y * e) | None => None end
  | L1 => Some (norm1Q z)
  | L2 => Some (root (dotQ z z))
  | LInf => Some (normIQ z)
  | SquaredL2 => Some (half (dotQ z z))
  | Quadratic root => let Rz := map (fun r => dotQ r z) root in Some (half (dotQ Rz Rz))
  | HuberNorm d => Some (hubQ (dotQ z z) (root (dotQ z z)) d)
  | Zero => guard (forallb qzero z) 0
  | Ball r => guard (qle (dotQ z z) (r * r)) 0
  | NonNegative => guard (forallb (qle 0) z) 0
  | Box b => guard (insideQ z b) 0
  end.

(** * Along a direction, how f changes where its numbers change by v *)
Inductive change := Grows | Stays | Falls.   (* from somewhere on; nowhere; everywhere and for ever *)
Fixpoint outward (v : list Q) (b : list (option Q * option Q)) : bool :=
  match v, b with
  | [], [] => true
  | v :: v', (l, h) :: b' => match l with None => true | Some _ => qle 0 v end
                             && match h with None => true | Some _ => qle v 0 end && outward v' b'
  | _, _ => false
  end.
Definition changes (f : func) (v : list Q) : change :=
  let x := hd 0 v in
  if forallb qzero v then Stays else
  match f with
  | Logistic y => if qlt 0 (y * x) then Falls else Grows
  | Hinge y | SquaredHinge y => if qlt 0 (y * x) then Stays else Grows
  | Poisson y => if qlt x 0 && qzero y then Falls else Grows
  | Multinomial y => if forallb (fun a => qle a (nth y v 0)) v
                     then (if forallb (qle (nth y v 0)) v then Stays else Falls) else Grows
  | Quadratic root => if forallb (fun r => qzero (dotQ r v)) root then Stays else Grows
  | NonNegative => if forallb (qle 0) v then Stays else Grows
  | Box b => if outward v b then Stays else Grows
  | _ => Grows
  end.

(** * With a scale: s f, and s f*(./s). *)
Definition price (s : Q) (f : func) (u : list Q) : option Q :=
  if qlt 0 s then
    match f with
    | Quadratic _ => Some (s * half (dotQ u u))
    | _ => match conjugate f (scaleQ (/ s) u) with Some q => Some (s * q) | None => None end
    end
  else None.
Definition flow (s : Q) (f : func) (t : list Q) : list Q :=
  match f with Quadratic root => scaleQ s (transposed root t) | _ => t end.
Definition arity (f : func) (k : nat) : nat := match f with Quadratic root => length root | _ => k end.
Definition value (s : Q) (f : func) (z : list Q) : option Q :=
  match upval f z with Some q => Some (s * q) | None => None end.
