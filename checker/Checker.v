(** The checker: a program. That it is right is proved in Sound.v. *)
Require Import ZArith NArith QArith List Bool.
From Checker Require Import Definitions Numbers Compute.
Import ListNotations.
Open Scope Q_scope.

(** What a proof file holds: w, one list of prices or flows per term (samples first), B, and the claims. *)
Record proof :=
  { problem : model; at_point : list (list Q); dual_point : list (list Q); within : option Q; claims : list claim }.

(** Why a proof is refused. Terms are counted through all blocks, samples first; claims from 0. *)
Inductive why :=
| IllFormed (block : nat)                       (* blocks counted as terms are *)
| NoValue (term : nat)                          (* the point is outside of the domain, or its numbers are too large *)
| NoPrice (term : nat)                          (* the price or flow is outside of the domain *)
| Lengths (term : nat)                          (* too many or too few prices and flows *)
| Unbalanced (node column : N) (left : Q)
| SmallBox | OutsideBox                         (* B is below 2^1000; w is not inside *)
| Crossed                                       (* the lower bound lies above the upper one *)
| NoBounds                                      (* no claim of bounds *)
| Bounded (lower upper : Q)                     (* what is claimed of bounds is more than this *)
| NoEdge                                        (* no such edge, or none of a norm without a centre *)
| NotPositive                                   (* the distance *)
| WideGap | NoSlack                             (* the gap is too large; the flow has too little slack *)
| NotExcluded                                   (* equality is not excluded *)
| TermGrows (term : nat) | NothingFalls
| InClaim (claim : nat) (reason : why).
Inductive result (A : Type) := Ok (a : A) | No (reason : why).
Arguments Ok {A}. Arguments No {A}.
Definition demand (c : bool) (reason : why) : result unit := if c then Ok tt else No reason.
Notation "'let!' x := a 'in' b" := (match a with Ok x => b | No reason => No reason end) (at level 200, x pattern).

(** Entry (i, j) of w has the number i d + j + 1. *)
Definition var (d i j : N) : positive := N.succ_pos (i * d + j).
Fixpoint row_from (d : N) (cs : list (N * N * Q)) (w : tree) (sum : Q) : Q :=
  match cs with [] => sum | (i, j, q) :: cs' => row_from d cs' w (qadd sum (qmul q (get (var d i j) w))) end.
Definition rowQ (d : N) (cs : list (N * N * Q)) (w : tree) : Q := row_from d cs w 0.
Definition shifted (o : option (list Q)) (z : list Q) : list Q := match o with None => z | Some o => addQ z o end.
Definition numbersQ (d : N) (o : option (list Q)) (K : list (list (N * N * Q))) (w : tree) : list Q :=
  shifted o (map (fun cs => rowQ d cs w) K).
Fixpoint put_row (d : N) (v : Q) (cs : list (N * N * Q)) (t : tree) : tree :=
  match cs with [] => t | (i, j, q) :: cs' => put_row d v cs' (put (var d i j) (qmul v q) t) end.
Fixpoint put_rows (d : N) (u : list Q) (K : list (list (N * N * Q))) (t : tree) : tree :=
  match u, K with v :: u', cs :: K' => put_rows d u' K' (put_row d v cs t) | _, _ => t end.
Definition pushed (o : option (list Q)) (u : list Q) : Q := match o with None => 0 | Some o => dotQ u o end.

Fixpoint fill_row (d i j : N) (vs : list Q) (t : tree) : tree :=
  match vs with [] => t | v :: vs' => fill_row d i (N.succ j) vs' (put (var d i j) v t) end.
Fixpoint fill (d i : N) (rows : list (list Q)) (t : tree) : tree :=
  match rows with [] => t | vs :: rows' => fill d (N.succ i) rows' (fill_row d i 0 vs t) end.

(** The upper bound: P(w), each summand rounded up. *)
Fixpoint primal (d : N) (w : tree) (k : nat) (ts : list term) (sum : Z) : result Z :=
  match ts with
  | [] => Ok sum
  | (s, e) :: ts' =>
      match value s (what e) (numbersQ d (plus e) (cells (at_ e)) w) with
      | Some q => primal d w (S k) ts' (sum + up q)
      | None => No (NoValue k)
      end
  end.

(** The lower bound: - Q(u, a), each summand rounded up, and what is left of the balance. The flow of the term [free]
    has no domain and no value. *)
Definition isnorm (f : func) : bool := match f with L1 | L2 | LInf => true | _ => false end.
Definition charge (free : bool) (t : term) (u : list Q) : option Q :=
  if free then guard (isnorm (what (snd t)) && qle 0 (fst t)) 0 else price (fst t) (what (snd t)) u.
Definition isfree (free : option nat) : bool := match free with Some O => true | _ => false end.
Definition next (free : option nat) : option nat := match free with Some (S k) => Some k | _ => None end.
Fixpoint dual (d : N) (free : option nat) (k : nat) (ts : list term) (us : list (list Q)) (sum : Z) (rest : tree) :
  result (Z * tree) :=
  match ts, us with
  | [], [] => Ok (sum, rest)
  | (s, e) :: ts', t :: us' =>
      let K := cells (at_ e) in
      if (length t =? arity (what e) (length K))%nat then
        match charge (isfree free) (s, e) t with
        | Some q =>
            let u := flow s (what e) t in
            dual d (next free) (S k) ts' us' (sum + up (q - pushed (plus e) u)) (put_rows d u K rest)
        | None => No (NoPrice k)
        end
      else No (Lengths k)
  | _, _ => No (Lengths k)
  end.
Definition place_of (d : N) (p : positive) : N * N := N.div_eucl (Pos.pred_N p) d.
Definition lower (d : N) (B : option Q) (free : option nat) (ts : list term) (us : list (list Q)) : result Z :=
  let! (sum, rest) := dual d free 0 ts us 0%Z Leaf in
  match B with
  | None => match first rest (fun p => p) with
            | None => Ok (- sum)%Z
            | Some (p, q) => No (Unbalanced (fst (place_of d p)) (snd (place_of d p)) q) end
  | Some b => Ok (- (sum + charged b rest))%Z
  end.

(** The gap as a sum of residuals, each of which is at least 0. *)
Fixpoint residuals (d : N) (w : tree) (ts : list term) (us : list (list Q)) (sum : Z) : option Z :=
  match ts, us with
  | [], [] => Some sum
  | (s, e) :: ts', t :: us' =>
      let K := cells (at_ e) in
      let z := numbersQ d (plus e) K w in
      if (length t =? arity (what e) (length K))%nat then
        match value s (what e) z, price s (what e) t with
        | Some v, Some q => residuals d w ts' us' (sum + up (v + q - dotQ (flow s (what e) t) z))
        | _, _ => None
        end
      else None
  | _, _ => None
  end.

(** The edge that a claim is about: its place among all terms. The edges of each block begin at its [starts]. *)
Fixpoint starts (k : nat) (bs : list block) : list nat :=
  match bs with [] => [] | b :: bs' => k :: starts (k + long_length (entries b)) bs' end.
Definition claimable (e : entry) : bool :=
  isnorm (what e) && match plus e, at_ e with Some _, Cells _ => true | None, _ => true | _, _ => false end.
Definition index (bs : list block) (begins : list nat) (b e : nat) : option nat :=
  match nth_error bs b, nth_error begins b with
  | Some bl, Some k => match nth_error (entries bl) e with
                       | Some en => if claimable en then Some (k + e)%nat else None
                       | None => None end
  | _, _ => None
  end.

(** With a c' < c inside which the flow stays, (c - c') phi(z) <= gap at every optimum: so phi(z) <= r. *)
Definition SLACK : Q := 1 - (1 # (2 ^ 64)).
Definition inside (c : Q) : Q := c * SLACK.
Definition slack (c' gap r : Q) (t : term) (u : list Q) : bool :=
  qlt c' (fst t) && qle gap ((fst t - c') * r)
  && match price c' (what (snd t)) u with Some _ => true | None => false end.
Definition near (c gap r : Q) : Q := qmin (c - gap / r) (inside c).

Fixpoint recession (d : N) (v : tree) (k : nat) (ts : list term) (falls : bool) : result unit :=
  match ts with
  | [] => demand falls NothingFalls
  | (s, e) :: ts' =>
      match changes (what e) (map (fun cs => rowQ d cs v) (cells (at_ e))) with
      | Grows => No (TermGrows k)
      | Stays => recession d v (S k) ts' falls
      | Falls => recession d v (S k) ts' true
      end
  end.

Definition check_claim (p : proof) (ts : list term) (begins : list nat) (low high gap : Z) (c : claim) : result unit :=
  let m := problem p in
  match c with
  | Bounds l u => demand (qle l (units low) && qle (units high) u) (Bounded (units low) (units high))
  | Near b e r =>
      match index (edges m) begins b e with
      | Some k =>
          match nth_error ts k, nth_error (dual_point p) k with
          | Some t, Some u =>
              let c' := near (fst t) (units gap) r in
              let! _ := demand (qlt 0 r) NotPositive in
              let! _ := demand (qlt 0 c') WideGap in
              demand (slack c' (units gap) r t u) NoSlack
          | _, _ => No NoEdge end
      | None => No NoEdge end
  | Fused b e =>
      match index (edges m) begins b e with
      | Some k =>
          match nth_error ts k, nth_error (dual_point p) k with
          | Some t, Some u =>
              let! _ := demand (gap =? 0)%Z WideGap in
              demand (slack (inside (fst t)) (units gap) 0 t u) NoSlack
          | _, _ => No NoEdge end
      | None => No NoEdge end
  | Split b e us =>
      match index (edges m) begins b e with
      | Some k =>
          let! bound := lower (columns m) (within p) (Some k) ts us in
          demand (high <? bound)%Z NotExcluded
      | None => No NoEdge end
  | Unattained direction => recession (columns m) (fill (columns m) 0 direction Leaf) 0 ts false
  end.
Fixpoint check_claims (p : proof) (ts : list term) (begins : list nat) (low high gap : Z) (k : nat) (cs : list claim) :
  result unit :=
  match cs with
  | [] => Ok tt
  | c :: cs' => match check_claim p ts begins low high gap c with
                | Ok _ => check_claims p ts begins low high gap (S k) cs'
                | No reason => No (InClaim k reason) end
  end.

(** The terms of a block, where the weights of nodes are summed in one pass. *)
Definition node_of (e : entry) : option positive :=
  match at_ e with AtNode i _ _ => Some (N.succ_pos i) | _ => None end.
Definition sums (es : list entry) : tree :=
  fold_left (fun t e => match node_of e with Some p => alter (fun a => to_double (a + weight e)) p t | None => t end)
    es Leaf.
Definition fast_bases (b : block) : list Q :=
  match by_ b with
  | AsWeight => long_map weight (entries b)
  | MeanOfNode =>
      let t := sums (entries b) in
      long_map (fun e => match node_of e with
                         | Some p => to_double (weight e / finite (get p t))
                         | None => 0 end) (entries b)
  | Times factors => long_map (fun ef => to_double (weight (fst ef) * snd ef)) (long_combine (entries b) factors)
  end.
Definition fast_terms (b : block) : list term :=
  long_combine (long_map (fun q => finite (to_double (strength b * finite q))) (fast_bases b)) (entries b).
(** All terms, where they are well formed. *)
Fixpoint gather (m : model) (k : nat) (bs : list block) : result (list term) :=
  match bs with
  | [] => Ok []
  | b :: bs' =>
      let ts := fast_terms b in
      let! _ := demand ((long_length ts =? long_length (entries b))%nat && forallb (well_formed_term m) ts) (IllFormed k) in
      let! rest := gather m (S k) bs' in Ok (long_app ts rest)
  end.
Definition is_bounds (c : claim) : bool := match c with Bounds _ _ => true | _ => false end.
Definition is_about_flow (c : claim) : bool := match c with Near _ _ _ | Fused _ _ => true | _ => false end.
Definition BOX : Q := 2 ^ 1000 # 1.

(** The checker: the bounds in units of 2^-200, where all claims hold. *)
Definition check (p : proof) : result (Q * Q) :=
  let m := problem p in let d := columns m in
  let! ts := gather m 0 (samples m ++ edges m) in
  let begins := starts (fold_left (fun n b => n + long_length (entries b))%nat (samples m) 0%nat) (edges m) in
  let w := fill d 0 (at_point p) Leaf in
  let! _ := match within p with
            | None => Ok tt
            | Some b => let! _ := demand (qle BOX b) SmallBox in demand (qle (largest w) b) OutsideBox
            end in
  let! high := primal d w 0 ts 0%Z in
  let! low := lower d (within p) None ts (dual_point p) in
  let! _ := demand (low <=? high)%Z Crossed in
  let! _ := demand (existsb is_bounds (claims p)) NoBounds in
  let gap := match within p with
             | None => if existsb is_about_flow (claims p)
                       then match residuals d w ts (dual_point p) 0%Z with
                            | Some g => Z.min g (high - low) | None => (high - low)%Z end
                       else (high - low)%Z
             | Some _ => (high - low)%Z end in
  let! _ := check_claims p ts begins low high gap 0 (claims p) in
  Ok (units low, units high).
