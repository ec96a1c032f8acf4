
val negb : bool -> bool

val fst : ('a1 * 'a2) -> 'a1

val snd : ('a1 * 'a2) -> 'a2

val length : 'a1 list -> int

val app : 'a1 list -> 'a1 list -> 'a1 list

type comparison =
| Eq
| Lt
| Gt

val add : int -> int -> int

module Nat :
 sig
  val ltb : int -> int -> bool
 end

module Pos :
 sig
  type mask =
  | IsNul
  | IsPos of Big_int_Z.big_int
  | IsNeg
 end

module Coq_Pos :
 sig
  val succ : Big_int_Z.big_int -> Big_int_Z.big_int

  val add : Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int

  val add_carry : Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int

  val pred_double : Big_int_Z.big_int -> Big_int_Z.big_int

  val pred_N : Big_int_Z.big_int -> Big_int_Z.big_int

  type mask = Pos.mask =
  | IsNul
  | IsPos of Big_int_Z.big_int
  | IsNeg

  val succ_double_mask : mask -> mask

  val double_mask : mask -> mask

  val double_pred_mask : Big_int_Z.big_int -> mask

  val sub_mask : Big_int_Z.big_int -> Big_int_Z.big_int -> mask

  val sub_mask_carry : Big_int_Z.big_int -> Big_int_Z.big_int -> mask

  val sub : Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int

  val mul : Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int

  val iter : ('a1 -> 'a1) -> 'a1 -> Big_int_Z.big_int -> 'a1

  val pow : Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int

  val size_nat : Big_int_Z.big_int -> int

  val size : Big_int_Z.big_int -> Big_int_Z.big_int

  val compare_cont :
    comparison -> Big_int_Z.big_int -> Big_int_Z.big_int -> comparison

  val compare : Big_int_Z.big_int -> Big_int_Z.big_int -> comparison

  val eqb : Big_int_Z.big_int -> Big_int_Z.big_int -> bool

  val leb : Big_int_Z.big_int -> Big_int_Z.big_int -> bool

  val sqrtrem_step :
    (Big_int_Z.big_int -> Big_int_Z.big_int) -> (Big_int_Z.big_int ->
    Big_int_Z.big_int) -> (Big_int_Z.big_int * mask) ->
    Big_int_Z.big_int * mask

  val sqrtrem : Big_int_Z.big_int -> Big_int_Z.big_int * mask

  val sqrt : Big_int_Z.big_int -> Big_int_Z.big_int

  val ggcdn :
    int -> Big_int_Z.big_int -> Big_int_Z.big_int ->
    Big_int_Z.big_int * (Big_int_Z.big_int * Big_int_Z.big_int)

  val ggcd :
    Big_int_Z.big_int -> Big_int_Z.big_int ->
    Big_int_Z.big_int * (Big_int_Z.big_int * Big_int_Z.big_int)

  val of_succ_nat : int -> Big_int_Z.big_int
 end

module N :
 sig
  val succ_double : Big_int_Z.big_int -> Big_int_Z.big_int

  val double : Big_int_Z.big_int -> Big_int_Z.big_int

  val succ : Big_int_Z.big_int -> Big_int_Z.big_int

  val succ_pos : Big_int_Z.big_int -> Big_int_Z.big_int

  val add : Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int

  val sub : Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int

  val mul : Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int

  val compare : Big_int_Z.big_int -> Big_int_Z.big_int -> comparison

  val eqb : Big_int_Z.big_int -> Big_int_Z.big_int -> bool

  val leb : Big_int_Z.big_int -> Big_int_Z.big_int -> bool

  val ltb : Big_int_Z.big_int -> Big_int_Z.big_int -> bool

  val pos_div_eucl :
    Big_int_Z.big_int -> Big_int_Z.big_int ->
    Big_int_Z.big_int * Big_int_Z.big_int

  val div_eucl :
    Big_int_Z.big_int -> Big_int_Z.big_int ->
    Big_int_Z.big_int * Big_int_Z.big_int

  val of_nat : int -> Big_int_Z.big_int
 end

module Z :
 sig
  val double : Big_int_Z.big_int -> Big_int_Z.big_int

  val succ_double : Big_int_Z.big_int -> Big_int_Z.big_int

  val pred_double : Big_int_Z.big_int -> Big_int_Z.big_int

  val pos_sub : Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int

  val add : Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int

  val opp : Big_int_Z.big_int -> Big_int_Z.big_int

  val succ : Big_int_Z.big_int -> Big_int_Z.big_int

  val pred : Big_int_Z.big_int -> Big_int_Z.big_int

  val sub : Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int

  val mul : Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int

  val pow_pos : Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int

  val pow : Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int

  val compare : Big_int_Z.big_int -> Big_int_Z.big_int -> comparison

  val sgn : Big_int_Z.big_int -> Big_int_Z.big_int

  val leb : Big_int_Z.big_int -> Big_int_Z.big_int -> bool

  val ltb : Big_int_Z.big_int -> Big_int_Z.big_int -> bool

  val eqb : Big_int_Z.big_int -> Big_int_Z.big_int -> bool

  val max : Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int

  val min : Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int

  val abs : Big_int_Z.big_int -> Big_int_Z.big_int

  val of_nat : int -> Big_int_Z.big_int

  val to_pos : Big_int_Z.big_int -> Big_int_Z.big_int

  val pos_div_eucl :
    Big_int_Z.big_int -> Big_int_Z.big_int ->
    Big_int_Z.big_int * Big_int_Z.big_int

  val div_eucl :
    Big_int_Z.big_int -> Big_int_Z.big_int ->
    Big_int_Z.big_int * Big_int_Z.big_int

  val div : Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int

  val even : Big_int_Z.big_int -> bool

  val log2 : Big_int_Z.big_int -> Big_int_Z.big_int

  val sqrt : Big_int_Z.big_int -> Big_int_Z.big_int

  val ggcd :
    Big_int_Z.big_int -> Big_int_Z.big_int ->
    Big_int_Z.big_int * (Big_int_Z.big_int * Big_int_Z.big_int)

  val sqrt_up : Big_int_Z.big_int -> Big_int_Z.big_int
 end

val zeq_bool : Big_int_Z.big_int -> Big_int_Z.big_int -> bool

val hd : 'a1 -> 'a1 list -> 'a1

val nth : int -> 'a1 list -> 'a1 -> 'a1

val nth_error : 'a1 list -> int -> 'a1 option

val rev_append : 'a1 list -> 'a1 list -> 'a1 list

val map : ('a1 -> 'a2) -> 'a1 list -> 'a2 list

val fold_left : ('a1 -> 'a2 -> 'a1) -> 'a2 list -> 'a1 -> 'a1

val fold_right : ('a2 -> 'a1 -> 'a1) -> 'a1 -> 'a2 list -> 'a1

val existsb : ('a1 -> bool) -> 'a1 list -> bool

val forallb : ('a1 -> bool) -> 'a1 list -> bool

val seq : int -> int -> int list

type q = { qnum : Big_int_Z.big_int; qden : Big_int_Z.big_int }

val inject_Z : Big_int_Z.big_int -> q

val qcompare : q -> q -> comparison

val qeq_bool : q -> q -> bool

val qle_bool : q -> q -> bool

val qplus : q -> q -> q

val qmult : q -> q -> q

val qopp : q -> q

val qminus : q -> q -> q

val qinv : q -> q

val qdiv : q -> q -> q

val qred : q -> q

val qfloor : q -> Big_int_Z.big_int

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

val power : Big_int_Z.big_int -> q

val exponent : q -> Big_int_Z.big_int

val nearest : q -> Big_int_Z.big_int

val to_double : q -> q

val rest : q -> q

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

val is_positive : q -> bool

val too_large : q

val finite : q -> q

type term = q * entry

val spaced :
  Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int -> q list ->
  ((Big_int_Z.big_int * Big_int_Z.big_int) * q) list

val cells : place -> ((Big_int_Z.big_int * Big_int_Z.big_int) * q) list list

val one : int -> bool

val suits : func -> int -> bool

val in_range : model -> ((Big_int_Z.big_int * Big_int_Z.big_int) * q) -> bool

val fits : model -> place -> bool

val well_formed_term : model -> term -> bool

type claim =
| Bounds of q * q
| Near of int * int * q
| Fused of int * int
| Split of int * int * q list list
| Unattained of q list list

val qadd : q -> q -> q

val qmul : q -> q -> q

val qle : q -> q -> bool

val qlt : q -> q -> bool

val qmax : q -> q -> q

val qmin : q -> q -> q

val qabs : q -> q

val qzero : q -> bool

val long_rev : 'a1 list -> 'a1 list

val long_map : ('a1 -> 'a2) -> 'a1 list -> 'a2 list

val long_app : 'a1 list -> 'a1 list -> 'a1 list

val long_length : 'a1 list -> int

val pairs : 'a1 list -> 'a2 list -> ('a1 * 'a2) list -> ('a1 * 'a2) list

val long_combine : 'a1 list -> 'a2 list -> ('a1 * 'a2) list

val scaleQ : q -> q list -> q list

val dotQ : q list -> q list -> q

val minusQ : q list -> q list -> q list

val addQ : q list -> q list -> q list

val plusQ : q list -> q list -> q list

val transposed : q list list -> q list -> q list

val totalQ : q list -> q

val norm1Q : q list -> q

val normIQ : q list -> q

val uNIT : Big_int_Z.big_int

val uNIT2 : Big_int_Z.big_int

val ceil : q -> Big_int_Z.big_int -> Big_int_Z.big_int

val up : q -> Big_int_Z.big_int

val units : Big_int_Z.big_int -> q

val root : q -> q

type tree =
| Leaf
| Node of tree * q * tree

val alter : (q -> q) -> Big_int_Z.big_int -> tree -> tree

val put : Big_int_Z.big_int -> q -> tree -> tree

val get : Big_int_Z.big_int -> tree -> q

val first :
  tree -> (Big_int_Z.big_int -> Big_int_Z.big_int) -> (Big_int_Z.big_int * q)
  option

val charged : q -> tree -> Big_int_Z.big_int

val largest : tree -> q

val oNE : Big_int_Z.big_int

val wIDE : Big_int_Z.big_int

val fINE : Big_int_Z.big_int

val lOG : Big_int_Z.big_int

val lARGE : Big_int_Z.big_int

val sMALL : Big_int_Z.big_int

val qUARTER : Big_int_Z.big_int

val horner :
  Big_int_Z.big_int -> int -> Big_int_Z.big_int -> Big_int_Z.big_int

val squares : int -> Big_int_Z.big_int -> Big_int_Z.big_int

val exp_up : q -> q option

val roots : int -> Big_int_Z.big_int -> Big_int_Z.big_int

val series :
  Big_int_Z.big_int -> int -> Big_int_Z.big_int -> Big_int_Z.big_int

val log_up : q -> q option

val entropy : q -> q option

val guard : bool -> q -> q option

val plus_opt : q option -> q option -> q option

val sum_opt : ('a1 -> q option) -> 'a1 list -> q option

val half : q -> q

val sq : q -> q

val maxQ : q -> q list -> q

val bump : int -> q list -> q list

val push : q list -> (q option * q option) list -> q option

val conjugate : func -> q list -> q option

val hubQ : q -> q -> q -> q

val insideQ : q list -> (q option * q option) list -> bool

val upval : func -> q list -> q option

type change =
| Grows
| Stays
| Falls

val outward : q list -> (q option * q option) list -> bool

val changes : func -> q list -> change

val price : q -> func -> q list -> q option

val flow : q -> func -> q list -> q list

val arity : func -> int -> int

val value : q -> func -> q list -> q option

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

val demand : bool -> why -> unit result

val var :
  Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int ->
  Big_int_Z.big_int

val row_from :
  Big_int_Z.big_int -> ((Big_int_Z.big_int * Big_int_Z.big_int) * q) list ->
  tree -> q -> q

val rowQ :
  Big_int_Z.big_int -> ((Big_int_Z.big_int * Big_int_Z.big_int) * q) list ->
  tree -> q

val shifted : q list option -> q list -> q list

val numbersQ :
  Big_int_Z.big_int -> q list option ->
  ((Big_int_Z.big_int * Big_int_Z.big_int) * q) list list -> tree -> q list

val put_row :
  Big_int_Z.big_int -> q -> ((Big_int_Z.big_int * Big_int_Z.big_int) * q)
  list -> tree -> tree

val put_rows :
  Big_int_Z.big_int -> q list ->
  ((Big_int_Z.big_int * Big_int_Z.big_int) * q) list list -> tree -> tree

val pushed : q list option -> q list -> q

val fill_row :
  Big_int_Z.big_int -> Big_int_Z.big_int -> Big_int_Z.big_int -> q list ->
  tree -> tree

val fill :
  Big_int_Z.big_int -> Big_int_Z.big_int -> q list list -> tree -> tree

val primal :
  Big_int_Z.big_int -> tree -> int -> term list -> Big_int_Z.big_int ->
  Big_int_Z.big_int result

val isnorm : func -> bool

val charge : bool -> term -> q list -> q option

val isfree : int option -> bool

val next : int option -> int option

val dual :
  Big_int_Z.big_int -> int option -> int -> term list -> q list list ->
  Big_int_Z.big_int -> tree -> (Big_int_Z.big_int * tree) result

val place_of :
  Big_int_Z.big_int -> Big_int_Z.big_int ->
  Big_int_Z.big_int * Big_int_Z.big_int

val lower :
  Big_int_Z.big_int -> q option -> int option -> term list -> q list list ->
  Big_int_Z.big_int result

val residuals :
  Big_int_Z.big_int -> tree -> term list -> q list list -> Big_int_Z.big_int
  -> Big_int_Z.big_int option

val starts : int -> block list -> int list

val claimable : entry -> bool

val index : block list -> int list -> int -> int -> int option

val sLACK : q

val inside : q -> q

val slack : q -> q -> q -> term -> q list -> bool

val near : q -> q -> q -> q

val recession :
  Big_int_Z.big_int -> tree -> int -> term list -> bool -> unit result

val check_claim :
  proof -> term list -> int list -> Big_int_Z.big_int -> Big_int_Z.big_int ->
  Big_int_Z.big_int -> claim -> unit result

val check_claims :
  proof -> term list -> int list -> Big_int_Z.big_int -> Big_int_Z.big_int ->
  Big_int_Z.big_int -> int -> claim list -> unit result

val node_of : entry -> Big_int_Z.big_int option

val sums : entry list -> tree

val fast_bases : block -> q list

val fast_terms : block -> term list

val gather : model -> int -> block list -> term list result

val is_bounds : claim -> bool

val is_about_flow : claim -> bool

val bOX : q

val check : proof -> (q * q) result
