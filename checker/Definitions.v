(** What a proof file says, and what it means that a claim holds. This is the one file that a reader must agree with:
    [check_sound] in Sound.v says that whatever the checker accepts [holds], for all real w, and needs no reading. *)
Require Import ZArith NArith QArith Qround Qreals Reals List Bool.
Import ListNotations.
Open Scope R_scope.

(** * Losses and penalties: functions of a list z of real numbers. Of a loss, y is the target. *)
Inductive func :=
| Squared (y : Q) | Mean (y : list Q) | Logistic (y : Q) | Poisson (y : Q) | Huber (delta y : Q) | Quantile (tau y : Q)
| Multinomial (y : nat) | Hinge (y : Q) | SquaredHinge (y : Q) | Expectile (tau y : Q) | SquaredEpsilon (epsilon y : Q)
| Gamma (y : Q)
| L1 | L2 | LInf | SquaredL2 | Quadratic (root : list (list Q)) | HuberNorm (delta : Q)
| Zero | Ball (radius : Q) | NonNegative | Box (bounds : list (option Q * option Q)).

(** The double nearest to x > 0, ties to even: a multiple of 2^e, of 53 bits or with e = -1074. *)
Definition power (e : Z) : Q := if (0 <=? e)%Z then 2 ^ e # 1 else 1 # Z.to_pos (2 ^ (- e)).
Definition exponent (x : Q) : Z :=   (* 2^exponent <= x < 2^(exponent + 1) *)
  let a := (Z.log2 (Qnum x) - Z.log2 (Zpos (Qden x)))%Z in if Qle_bool (power a) x then a else (a - 1)%Z.
Definition nearest (x : Q) : Z :=
  let n := Qfloor x in
  match Qcompare (x - inject_Z n) (1 # 2) with Lt => n | Gt => (n + 1)%Z | Eq => if Z.even n then n else (n + 1)%Z end.
Definition to_double (x : Q) : Q :=
  let e := Z.max (exponent x - 52) (-1074) in Qred (inject_Z (nearest (x * power (- e))) * power e).
Definition rest (tau : Q) : Q := to_double (1 - tau).   (* 1 - tau is the double 1.0 - tau *)

Fixpoint dot (u z : list R) : R := match u, z with a :: u', b :: z' => a * b + dot u' z' | _, _ => 0 end.
Definition norm1 (z : list R) : R := fold_right (fun a s => Rabs a + s) 0 z.
Definition norm2 (z : list R) : R := sqrt (dot z z).
Definition normI (z : list R) : R := fold_right (fun a s => Rmax (Rabs a) s) 0 z.
Definition total (z : list R) : R := fold_right Rplus 0 z.
Fixpoint minus (z : list R) (y : list Q) : list R :=
  match z, y with a :: z', t :: y' => a - Q2R t :: minus z' y' | _, _ => [] end.
Definition square (x : R) : R := x * x.
Definition hub (d r : R) : R := if Rle_dec r d then r * r / 2 else d * r - d * d / 2.

Definition val (f : func) (z : list R) : R :=
  let x := hd 0 z in
  match f with
  | Squared y => square (x - Q2R y) / 2
  | Mean y => dot (minus z y) (minus z y) / 2
  | Logistic y => ln (1 + exp (- Q2R y * x))
  | Poisson y => exp x - Q2R y * x
  | Huber d y => hub (Q2R d) (Rabs (x - Q2R y))
  | Quantile t y => Rmax (- Q2R t * (x - Q2R y)) (Q2R (rest t) * (x - Q2R y))
  | Multinomial y => ln (total (map exp z)) - nth y z 0
  | Hinge y => Rmax 0 (1 - Q2R y * x)
  | SquaredHinge y => square (Rmax 0 (1 - Q2R y * x)) / 2
  | Expectile t y => (if Rlt_dec (x - Q2R y) 0 then Q2R t else Q2R (rest t)) * square (x - Q2R y) / 2
  | SquaredEpsilon e y => square (Rmax 0 (Rabs (x - Q2R y) - Q2R e)) / 2
  | Gamma y => x + Q2R y * exp (- x)
  | L1 => norm1 z
  | L2 => norm2 z
  | LInf => normI z
  | SquaredL2 => dot z z / 2
  | Quadratic root => let Rz := map (fun row => dot (map Q2R row) z) root in dot Rz Rz / 2
  | HuberNorm d => hub (Q2R d) (norm2 z)
  | Zero | Ball _ | NonNegative | Box _ => 0
  end.
(** Where it is finite: the constraints. A bound that is [None] is not there. *)
Definition above (l : option Q) (x : R) : Prop := match l with None => True | Some l => Q2R l <= x end.
Definition below (x : R) (h : option Q) : Prop := match h with None => True | Some h => x <= Q2R h end.
Definition zeros (z : list R) : Prop := Forall (fun x => x = 0) z.
Definition dom (f : func) (z : list R) : Prop :=
  match f with
  | Zero => zeros z
  | Ball r => norm2 z <= Q2R r
  | NonNegative => Forall (fun x => 0 <= x) z
  | Box bounds => Forall2 (fun x b => above (fst b) x /\ below x (snd b)) z bounds
  | _ => True
  end.

(** * The problem. w i j is the entry of node i and column j; indices begin with 0. *)
Inductive place :=
| AtNode (node : N) (k : nat) (x : list Q)
  (* k predictors: number c is the sum over f of x_f w[node, f k + c]; for Mean k = d and x = [1] *)
| Edge (tail : N) (head : option N) (features : list N)   (* w[tail, f] - w[head, f] for each f; None is the ground *)
| Cells (rows : list (list (N * N * Q))).    (* number q is the sum over its cells (node, column, coefficient) *)
Record entry :=   (* plus: the offset, or minus the centre *)
  { what : func; at_ : place; plus : option (list Q); weight : Q }.
Inductive rule := AsWeight | MeanOfNode | Times (factors : list Q).
Record block := { strength : Q; by_ : rule; entries : list entry }.   (* edges and rows go AsWeight *)
Record model := { nodes : N; columns : N; samples : list block; edges : list block }.

(** The scale of a term is a product of doubles, rounded: strength * base. What is no positive double is 0, and refused.
    For the mean, base is the weight over the sum of the node's weights, added one by one in the order of the file. *)
Definition is_positive (q : Q) : bool := negb (Qle_bool q 0).
Definition too_large : Q := 2 ^ 1024 # 1.
Definition finite (q : Q) : Q := if is_positive q && negb (Qle_bool too_large q) then q else 0%Q.
Definition is_at (i : N) (e : entry) : bool := match at_ e with AtNode j _ _ => (i =? j)%N | _ => false end.
Definition of_node (i : N) (es : list entry) : Q :=
  fold_left (fun t e => if is_at i e then to_double (t + weight e) else t) es 0%Q.
Definition base_of_mean (es : list entry) (e : entry) : Q :=
  match at_ e with AtNode i _ _ => to_double (weight e / finite (of_node i es)) | _ => 0%Q end.
Definition bases (b : block) : list Q :=
  match by_ b with
  | AsWeight => map weight (entries b)
  | MeanOfNode => map (base_of_mean (entries b)) (entries b)
  | Times factors => map (fun ef => to_double (weight (fst ef) * snd ef)) (combine (entries b) factors)
  end.
Definition term := (Q * entry)%type.
Definition terms_of (b : block) : list term :=
  combine (map (fun q => finite (to_double (strength b * finite q))) (bases b)) (entries b).
Definition terms (m : model) : list term := flat_map terms_of (samples m ++ edges m).

(** Its numbers are K w + plus, with the cells of K: *)
Fixpoint spaced (i j k : N) (x : list Q) : list (N * N * Q) :=
  match x with [] => [] | v :: x' => (i, j, v) :: spaced i (j + k) k x' end.
Definition cells (p : place) : list (list (N * N * Q)) :=
  match p with
  | AtNode i k x => map (fun c => spaced i (N.of_nat c) (N.of_nat k) x) (seq 0 k)
  | Edge i None fs => map (fun f => [(i, f, 1%Q)]) fs
  | Edge i (Some h) fs => map (fun f => [(i, f, 1%Q); (h, f, (- (1))%Q)]) fs
  | Cells rows => rows
  end.
Definition point := N -> N -> R.
Fixpoint row (cs : list (N * N * Q)) (w : point) : R :=
  match cs with [] => 0 | (i, j, q) :: cs' => Q2R q * w i j + row cs' w end.
Fixpoint add (z : list R) (o : list Q) : list R :=
  match z, o with a :: z', b :: o' => a + Q2R b :: add z' o' | _, _ => [] end.
Definition numbers (e : entry) (w : point) : list R :=
  let z := map (fun cs => row cs w) (cells (at_ e)) in match plus e with None => z | Some o => add z o end.
Definition P (m : model) (w : point) : R :=
  total (map (fun t => Q2R (fst t) * val (what (snd t)) (numbers (snd t) w)) (terms m)).
Definition feasible (m : model) (w : point) : Prop :=
  Forall (fun t => dom (what (snd t)) (numbers (snd t) w)) (terms m).

(** A model is well formed: indices in range, labels and parameters as they must be, scales positive doubles. *)
Definition one (k : nat) : bool := (k =? 1)%nat.
Definition suits (f : func) (k : nat) : bool :=   (* f is a function of k numbers *)
  match f with
  | Squared _ => one k
  | Mean y => (length y =? k)%nat
  | Logistic y | Hinge y | SquaredHinge y => one k && (Qeq_bool y 1 || Qeq_bool y (-(1)))
  | Poisson y => one k && Qle_bool 0 y
  | Gamma y => one k && is_positive y
  | Huber d _ | SquaredEpsilon d _ => one k && is_positive d
  | Quantile t _ | Expectile t _ => one k && is_positive t && is_positive (1 - t)
  | Multinomial y => (2 <=? k)%nat && (y <? k)%nat
  | Quadratic root => (1 <=? length root)%nat && (length root <=? k)%nat && forallb (fun r => length r =? k)%nat root
  | HuberNorm q | Ball q => is_positive q
  | Box bounds => (length bounds =? k)%nat
  | L1 | L2 | LInf | SquaredL2 | Zero | NonNegative => true
  end.
Definition in_range (m : model) (c : N * N * Q) : bool := (fst (fst c) <? nodes m)%N && (snd (fst c) <? columns m)%N.
Definition fits (m : model) (p : place) : bool :=
  match p with AtNode _ k x => (N.of_nat (length x) * N.of_nat k =? columns m)%N | _ => true end
  && forallb (forallb (in_range m)) (cells p).
Definition well_formed_term (m : model) (t : term) : bool :=
  let e := snd t in let k := length (cells (at_ e)) in
  (1 <=? k)%nat && fits m (at_ e) && suits (what e) k
  && match plus e with None => true | Some o => (length o =? k)%nat end && is_positive (fst t).
Definition well_formed_block (m : model) (b : block) : bool :=
  (length (terms_of b) =? length (entries b))%nat && forallb (well_formed_term m) (terms_of b).
Definition well_formed (m : model) : bool := forallb (well_formed_block m) (samples m ++ edges m).

(** * The claims. The evidence for a claim stands with it in the file, and plays no part in what it says. Edges and rows
    are named by their block and place in it. With a number B ("within") all is said of the w with |w i j| <= B. *)
Inductive claim :=
| Bounds (lower upper : Q) | Near (block edge : nat) (distance : Q) | Fused (block edge : nat)
| Split (block edge : nat) (dual : list (list Q)) | Unattained (direction : list (list Q)).
Definition allowed (m : model) (B : option Q) (w : point) : Prop :=
  feasible m w /\ match B with None => True | Some b => forall i j, Rabs (w i j) <= Q2R b end.
Definition optimum (m : model) (B : option Q) (w : point) : Prop :=
  allowed m B w /\ forall v, allowed m B v -> P m w <= P m v.
Definition at_optima (m : model) (B : option Q) (block edge : nat) (says : func -> list R -> Prop) : Prop :=
  exists b e, nth_error (edges m) block = Some b /\ nth_error (entries b) edge = Some e /\
  forall w, optimum m B w -> says (what e) (numbers e w).
Definition holds (m : model) (B : option Q) (c : claim) : Prop :=
  match c with
  | Bounds l u => (forall w, allowed m B w -> Q2R l <= P m w) /\ (exists w, allowed m B w /\ P m w <= Q2R u)
  | Near b e r => at_optima m B b e (fun f z => val f z <= Q2R r)
  | Fused b e => at_optima m B b e (fun _ z => zeros z)
  | Split b e _ => at_optima m B b e (fun _ z => ~ zeros z)
  | Unattained _ => forall w, ~ optimum m None w
  end.
