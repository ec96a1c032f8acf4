(** Rules of rounding of graphreg/certificate/kernel, for the doubles of Flocq: round to nearest even,
  gradual underflow, no
    overflow. Nothing here is used by the checker of proof files. Needs libcoq-flocq. *)
From Coq Require Import Reals ZArith Lra Lia.
From Flocq Require Import Core Pff2Flocq Relative Plus_error.
Open Scope R_scope.

Definition fl (x : R) : R := round radix2 (FLT_exp (-1074) 53) ZnearestE x.
Definition float (x : R) : Prop := generic_format radix2 (FLT_exp (-1074) 53) x.
Local Instance prec_gt_0 : Prec_gt_0 53. Proof. reflexivity. Qed.
Lemma fl_float x : float (fl x). Proof. apply generic_format_round; typeclasses eauto. Qed.
Lemma fl_opp x : fl (- x) = - fl x. Proof. apply round_NE_opp. Qed.
Lemma fl_id x : float x -> fl x = x. Proof. apply round_generic. typeclasses eauto. Qed.
Lemma fl_mono x y : x <= y -> fl x <= fl y. Proof. apply round_le; typeclasses eauto. Qed.
Lemma float_0 : float 0. Proof. apply generic_format_0. Qed.
Lemma fl_pos x : 0 <= x -> 0 <= fl x. Proof. intros H. rewrite <- (fl_id 0 float_0). now apply fl_mono. Qed.

(** two_sum, two_product and _leading of arithmetic.py, operation by operation. *)
Definition two_sum (a b : R) : R * R :=
  let s := fl (a + b) in let t := fl (s - a) in (s, fl (fl (a - fl (s - t)) + fl (b - t))).
Definition leading (a : R) : R := let c := fl (134217729 * a) in fl (c - fl (c - a)).
Definition two_product (a b : R) : R * R :=
  let p := fl (a * b) in
  let ah := leading a in let bh := leading b in
  let al := fl (a - ah) in let bl := fl (b - bh) in
  (p, fl (fl (fl (fl (fl (ah * bh) - p) + fl (ah * bl)) + fl (al * bh)) + fl (al * bl))).

Theorem two_sum_exact a b : float a -> float b -> fst (two_sum a b) + snd (two_sum a b) = a + b.
Proof.
  intros A B. apply (TwoSum_correct (-1074) 53); auto; try lia. intros x. rewrite Z.even_opp, Z.even_add.
    now destruct (Z.even x).
Qed.
Lemma leading_veltkamp a : leading a = fl (fl (a - fl (a * (bpow radix2 27 + 1))) + fl (a * (bpow radix2 27 + 1))).
Proof.
  unfold leading. assert (E : a * (bpow radix2 27 + 1) = 134217729 * a) by (simpl; lra). rewrite E.
  set (c := fl (134217729 * a)). f_equal. replace (a - c) with (- (c - a)) by ring. rewrite fl_opp. ring.
Qed.
(** Exact, but where the product is below 2^-969, and then within 4 units of 2^-1074 (the code allows 1e-300). *)
Theorem two_product_exact a b : float a -> float b ->
  (a * b = 0 \/ bpow radix2 (-969) <= Rabs (a * b) -> a * b = fst (two_product a b) + snd (two_product a b)) /\
  Rabs (a * b - (fst (two_product a b) + snd (two_product a b))) <= 7 / 2 * bpow radix2 (-1074).
Proof.
  intros A B. pose proof (Dekker radix2 (-1074) 53 (fun x => negb (Z.even x)) ltac:(lia) ltac:(lia) a b A B (or_introl
    eq_refl)) as D.
  change (53 - Z.div2 53)%Z with 27%Z in D. change (-1074 + 2 * 53 - 1)%Z with (-969)%Z in D.
  unfold two_product. cbn [fst snd]. rewrite !leading_veltkamp.
  set (p := fl (a * b)). fold (fl (a * b)) in D. fold p in D.
  match goal with |- context [fl (?x - p)] => replace (x - p) with (- p + x) by ring end. exact D.
Qed.

(** * One operation *)
Definition u : R := bpow radix2 (-53).
Lemma u_pos : 0 < u. Proof. apply bpow_gt_0. Qed.
Lemma u_small : u <= / 1000000. Proof. unfold u. simpl. apply Rinv_le_contravar; lra. Qed.
Lemma u_ro_u : u_ro radix2 53 = u.
Proof. unfold u_ro, u. change (-53)%Z with (- (53) + 1 + -1)%Z. rewrite bpow_plus. simpl. lra. Qed.
Lemma plus_rel x y : float x -> float y -> exists e, Rabs e <= u /\ fl (x + y) = (x + y) * (1 + e).
Proof.
  intros X Y. destruct (FLT_plus_error_N_ex radix2 (-1074) 53 (fun x => negb (Z.even x)) x y X Y) as (e & E & H).
  exists e. split; [|exact H]. rewrite u_ro_u in E. pose proof u_pos. eapply Rle_trans; [exact E|].
  apply Rmult_le_reg_r with (1 + u); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. nra.
Qed.
(** A product that is 0 or does not underflow. *)
Definition normal (x : R) : Prop := x = 0 \/ bpow radix2 (-1022) <= Rabs x.
Lemma times_rel x : normal x -> exists e, Rabs e <= u /\ fl x = x * (1 + e).
Proof.
  intros [-> | H].
  - exists 0. rewrite Rabs_R0. pose proof u_pos. split; [lra|]. rewrite fl_id by apply float_0. ring.
  - destruct (relative_error_N_FLT_ex radix2 (-1074) 53 ltac:(lia) (fun x => negb (Z.even x)) x H) as (e & E & F).
    exists e. split; [|exact F]. eapply Rle_trans; [exact E|]. right. rewrite <- u_ro_u. reflexivity.
Qed.

(** * What is computed from numbers that are not negative: [upwards] of arithmetic.py *)
Inductive expr := Num (x : R) | Plus (a b : expr) | Times (a b : expr).
Fixpoint exact (e : expr) : R := match e with Num x => x | Plus a b => exact a + exact b | Times a b => exact a * exact
  b end.
Fixpoint computed (e : expr) : R :=
  match e with Num x => x | Plus a b => fl (computed a + computed b) | Times a b => fl (computed a * computed b) end.
Fixpoint roundings (e : expr) : nat :=
  match e with Num _ => 0 | Plus a b => S (Nat.max (roundings a) (roundings b)) | Times a b => S (roundings a +
    roundings b) end.
Fixpoint sane (e : expr) : Prop :=
  match e with
  | Num x => float x /\ 0 <= x
  | Plus a b => sane a /\ sane b
  | Times a b => sane a /\ sane b /\ normal (computed a * computed b)
  end.
Lemma pow_shrinks q m n : 0 <= q <= 1 -> (m <= n)%nat -> q ^ n <= q ^ m.
Proof.
  intros Q H. replace n with (m + (n - m))%nat by lia. rewrite pow_add. rewrite <- (Rmult_1_r (q ^ m)) at 2.
  apply Rmult_le_compat_l; [apply pow_le; lra|]. rewrite <- (pow1 (n - m)). apply pow_incr. lra.
Qed.
Lemma computed_low e : sane e -> float (computed e) /\ 0 <= exact e /\ 0 <= computed e /\ exact e * (1 - u) ^ roundings
  e <= computed e.
Proof.
  pose proof u_pos. pose proof u_small. induction e as [x|a IHa b IHb|a IHa b IHb]; intros S;
    cbn [exact computed roundings sane] in *.
  - destruct S. repeat split; auto. lra.
  - destruct S as [Sa Sb]. destruct (IHa Sa) as (Fa & Pa & Ca & Ha), (IHb Sb) as (Fb & Pb & Cb & Hb).
    split; [apply fl_float|]. split; [lra|]. split; [apply fl_pos; lra|].
    destruct (plus_rel _ _ Fa Fb) as (e & E & ->). pose proof (Rle_abs (- e)). rewrite Rabs_Ropp in *.
    set (m := Nat.max _ _). change ((1 - u) ^ S m) with ((1 - u) * (1 - u) ^ m).
    pose proof (pow_shrinks (1 - u) (roundings a) m ltac:(lra) ltac:(lia)).
      pose proof (pow_shrinks (1 - u) (roundings b) m ltac:(lra) ltac:(lia)).
    assert (exact a * (1 - u) ^ m <= computed a) by (apply Rle_trans with (exact a * (1 - u) ^ roundings a);
      [now apply Rmult_le_compat_l|auto]).
    assert (exact b * (1 - u) ^ m <= computed b) by (apply Rle_trans with (exact b * (1 - u) ^ roundings b);
      [now apply Rmult_le_compat_l|auto]).
    apply Rle_trans with ((computed a + computed b) * (1 - u)); [|apply Rmult_le_compat_l; lra].
    replace ((exact a + exact b) * ((1 - u) * (1 - u) ^ m)) with ((exact a * (1 - u) ^ m + exact b * (1 - u) ^ m) * (1
      - u)) by ring.
    apply Rmult_le_compat_r; lra.
  - destruct S as (Sa & Sb & N). destruct (IHa Sa) as (Fa & Pa & Ca & Ha), (IHb Sb) as (Fb & Pb & Cb & Hb).
    split; [apply fl_float|]. split; [now apply Rmult_le_pos|]. split; [apply fl_pos; now apply Rmult_le_pos|].
    destruct (times_rel _ N) as (e & E & ->). pose proof (Rle_abs (- e)). rewrite Rabs_Ropp in *.
    change ((1 - u) ^ S (roundings a + roundings b)) with ((1 - u) * (1 - u) ^ (roundings a + roundings b)).
      rewrite pow_add.
    assert (P : forall n, 0 <= (1 - u) ^ n) by (intros; apply pow_le; lra).
    apply Rle_trans with (computed a * computed b * (1 - u)); [|apply Rmult_le_compat_l; [now apply Rmult_le_pos|lra]].
    replace (exact a * exact b * ((1 - u) * ((1 - u) ^ roundings a * (1 - u) ^ roundings b)))
      with (exact a * (1 - u) ^ roundings a * (exact b * (1 - u) ^ roundings b) * (1 - u)) by ring.
    apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat; auto; apply Rmult_le_pos; auto.
Qed.
Lemma bernoulli n : 1 - INR n * u <= (1 - u) ^ n.
Proof.
  pose proof u_pos. pose proof u_small. induction n; [simpl; lra|]. rewrite S_INR. cbn [pow].
  pose proof (pow_shrinks (1 - u) 0 n ltac:(lra) ltac:(lia)). simpl in H1. nra.
Qed.
(** A value >= 0 that was computed with m roundings is at most its float times 1 + (m + 3) 2^-52,
  and so is that product as
    it is rounded. *)
Theorem upwards_sound e : sane e -> INR (roundings e) <= 1000000000 ->
  normal (computed e * (1 + (INR (roundings e) + 3) * (2 * u))) ->
  exact e <= fl (computed e * (1 + (INR (roundings e) + 3) * (2 * u))).
Proof.
  intros S M N. destruct (computed_low e S) as (_ & P & C & H). destruct (times_rel _ N) as (d & D & ->).
  pose proof u_pos as U. assert (U' : u <= / 1000000000000). { unfold u. simpl. apply Rinv_le_contravar; lra. }
  pose proof (bernoulli (roundings e)) as B. pose proof (pos_INR (roundings e)) as M0.
    set (m := INR (roundings e)) in *.
  set (x := m * u) in *. assert (X : 0 <= x <= / 1000).
  { unfold x. split; [apply Rmult_le_pos; lra|]. apply Rle_trans with (1000000000 * / 1000000000000);
    [apply Rmult_le_compat; lra|lra]. }
  assert (H1 : exact e * (1 - x) <= computed e).
  { eapply Rle_trans; [|exact H]. apply Rmult_le_compat_l; lra. }
  pose proof (Rle_abs (- d)). rewrite Rabs_Ropp in *.
  assert (K : 1 <= (1 - x) * (1 + (m + 3) * (2 * u)) * (1 - u)).
  { replace ((m + 3) * (2 * u)) with (2 * x + 6 * u) by (unfold x; ring). nra. }
  apply Rle_trans with (exact e * (1 - x) * ((1 + (m + 3) * (2 * u)) * (1 - u))).
  { rewrite <- (Rmult_1_r (exact e)) at 1. rewrite Rmult_assoc. apply Rmult_le_compat_l; [auto|].
    rewrite <- Rmult_assoc. exact K. }
  assert (T : 0 <= 1 + (m + 3) * (2 * u)) by nra.
  apply Rle_trans with (computed e * ((1 + (m + 3) * (2 * u)) * (1 - u))).
  - apply Rmult_le_compat_r; [apply Rmult_le_pos; lra|auto].
  - rewrite <- Rmult_assoc. apply Rmult_le_compat_l; [now apply Rmult_le_pos|lra].
Qed.

(** * An entry of I - BR: a sum of products in any order, and a subtraction *)
Inductive sums := Product (b r : R) | Sum (s t : sums).
Fixpoint exact_sum (t : sums) : R := match t with Product b r => b * r | Sum s t => exact_sum s + exact_sum t end.
Fixpoint computed_sum (t : sums) : R := match t with Product b r => fl (b * r) | Sum s t => fl (computed_sum s +
  computed_sum t) end.
Fixpoint magnitude (t : sums) : R := match t with Product b r => Rabs b * Rabs r | Sum s t => magnitude s + magnitude t
  end.
Fixpoint products (t : sums) : nat := match t with Product _ _ => 1 | Sum s t => products s + products t end.
Fixpoint sane_sum (t : sums) : Prop := match t with Product b r => normal (b * r) | Sum s t => sane_sum s /\ sane_sum t
  end.
Lemma products_pos t : (1 <= products t)%nat. Proof. induction t; simpl; lia. Qed.
Lemma magnitude_pos t : 0 <= magnitude t.
Proof. induction t; simpl; [apply Rmult_le_pos; apply Rabs_pos|lra]. Qed.
Lemma exact_magnitude t : Rabs (exact_sum t) <= magnitude t.
Proof. induction t; simpl; [rewrite Rabs_mult; lra|]. pose proof (Rabs_triang (exact_sum t1) (exact_sum t2)). lra. Qed.
Lemma pow_grows m n : (m <= n)%nat -> (1 + u) ^ m <= (1 + u) ^ n.
Proof. intros H. apply Rle_pow; auto. pose proof u_pos. lra. Qed.
Lemma computed_near t : sane_sum t ->
  float (computed_sum t) /\ Rabs (computed_sum t - exact_sum t) <= ((1 + u) ^ products t - 1) * magnitude t.
Proof.
  pose proof u_pos. induction t as [b r|s IHs t IHt]; intros S;
    cbn [computed_sum exact_sum magnitude products sane_sum] in *.
  - split; [apply fl_float|]. destruct (times_rel _ S) as (e & E & ->).
    replace (b * r * (1 + e) - b * r) with (b * r * e) by ring.
    rewrite !Rabs_mult. rewrite pow_1. replace (1 + u - 1) with u by ring. rewrite (Rmult_comm u).
    apply Rmult_le_compat_l; [apply Rmult_le_pos; apply Rabs_pos|exact E].
  - destruct S as [Ss St]. destruct (IHs Ss) as [Fs Hs], (IHt St) as [Ft Ht]. split; [apply fl_float|].
    destruct (plus_rel _ _ Fs Ft) as (e & E & ->).
    pose proof (products_pos s). pose proof (products_pos t). set (k := (products s + products t - 1)%nat).
    replace (products s + products t)%nat with (S k) by (unfold k; lia).
    pose proof (pow_grows (products s) k ltac:(unfold k; lia)).
      pose proof (pow_grows (products t) k ltac:(unfold k; lia)).
    pose proof (magnitude_pos s). pose proof (magnitude_pos t). pose proof (exact_magnitude s).
      pose proof (exact_magnitude t).
    cbn [pow]. set (p := (1 + u) ^ k) in *. set (cs := computed_sum s) in *. set (ct := computed_sum t) in *.
    set (xs := exact_sum s) in *. set (xt := exact_sum t) in *. set (ms := magnitude s) in *.
      set (mt := magnitude t) in *.
    assert (A : Rabs (cs - xs) <= (p - 1) * ms) by (eapply Rle_trans; [exact Hs|apply Rmult_le_compat_r; lra]).
    assert (B : Rabs (ct - xt) <= (p - 1) * mt) by (eapply Rle_trans; [exact Ht|apply Rmult_le_compat_r; lra]).
    assert (C : Rabs (cs + ct) <= p * (ms + mt)).
    { replace (cs + ct) with ((cs - xs) + (ct - xt) + (xs + xt)) by ring.
      eapply Rle_trans; [apply Rabs_triang|]. pose proof (Rabs_triang (cs - xs) (ct - xt)).
        pose proof (Rabs_triang xs xt). lra. }
    replace ((cs + ct) * (1 + e) - (xs + xt)) with ((cs - xs) + (ct - xt) + (cs + ct) * e) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. pose proof (Rabs_triang (cs - xs) (ct - xt)).
    assert (Rabs ((cs + ct) * e) <= p * (ms + mt) * u) by (rewrite Rabs_mult; apply Rmult_le_compat;
      auto using Rabs_pos). lra.
Qed.
Lemma pow_linear n : INR n * u <= / 2 -> (1 + u) ^ n <= 1 + 2 * (INR n * u).
Proof.
  pose proof u_pos. induction n; intros H1; [simpl; lra|]. rewrite S_INR in *. cbn [pow]. pose proof (pos_INR n).
  assert (0 <= INR n * u) by (apply Rmult_le_pos; lra). specialize (IHn ltac:(lra)).
  apply Rle_trans with ((1 + u) * (1 + 2 * (INR n * u))); [apply Rmult_le_compat_l; lra|]. nra.
Qed.
(** As [Answers] of balance.py bounds it, with EPS = 2 u. *)
Theorem entry_bounded delta t : float delta -> sane_sum t -> INR (products t) <= 1000000000 ->
  Rabs (delta - exact_sum t)
  <= Rabs (fl (delta - computed_sum t)) * (1 + 4 * (2 * u)) + magnitude t * (INR (products t) + 4) * (2 * (2 * u)).
Proof.
  intros D S M. destruct (computed_near t S) as [F N]. pose proof u_pos as U. pose proof u_small as U'.
  assert (F' : float (- computed_sum t)) by now apply generic_format_opp.
  destruct (plus_rel _ _ D F') as (e & E & H). replace (delta + - computed_sum t) with (delta - computed_sum t) in H
    by ring. rewrite H.
  set (c := computed_sum t) in *. set (x := exact_sum t) in *. set (m := magnitude t) in *.
    set (n := INR (products t)) in *.
  assert (n0 : 0 <= n) by apply pos_INR. assert (m0 : 0 <= m) by apply magnitude_pos.
  assert (L : (1 + u) ^ products t <= 1 + 2 * (n * u)).
  { apply pow_linear. fold n. assert (V : u <= / 1000000000000) by (unfold u; simpl; apply Rinv_le_contravar; lra).
    apply Rle_trans with (1000000000 * / 1000000000000); [apply Rmult_le_compat; lra|lra]. }
  assert (A : Rabs (c - x) <= 2 * (n * u) * m) by (eapply Rle_trans; [exact N|apply Rmult_le_compat_r; lra]).
  assert (B : Rabs (delta - c) <= Rabs ((delta - c) * (1 + e)) * (1 + 4 * (2 * u))).
  { rewrite Rabs_mult, Rmult_assoc. rewrite <- (Rmult_1_r (Rabs (delta - c))) at 1.
    apply Rmult_le_compat_l; [apply Rabs_pos|].
    pose proof (Rle_abs (- e)). rewrite Rabs_Ropp in *. pose proof (Rle_abs (1 + e)). nra. }
  replace (delta - x) with ((delta - c) + (c - x)) by ring. eapply Rle_trans; [apply Rabs_triang|].
  assert (2 * (n * u) * m <= m * (n + 4) * (2 * (2 * u))); [|lra].
  replace (m * (n + 4) * (2 * (2 * u))) with (2 * (n * u) * m + (2 * (n * u) * m + 16 * (m * u))) by ring.
  assert (0 <= n * u * m) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra|auto]).
    assert (0 <= m * u) by (apply Rmult_le_pos; lra). lra.
Qed.

(** * Extraction: leading parts that add up exactly, in any order *)
Definition multiple (e : Z) (x : R) : Prop := exists z : Z, x = IZR z * bpow radix2 e.
Lemma multiple_plus e x y : multiple e x -> multiple e y -> multiple e (x + y).
Proof. intros [a ->] [b ->]. exists (a + b)%Z. rewrite plus_IZR. ring. Qed.
Lemma multiple_opp e x : multiple e x -> multiple e (- x).
Proof. intros [a ->]. exists (- a)%Z. rewrite opp_IZR. ring. Qed.
Lemma multiple_bpow e k : (e <= k)%Z -> multiple e (bpow radix2 k).
Proof.
  intros H. exists (2 ^ (k - e))%Z. replace k with (k - e + e)%Z at 1 by lia. rewrite bpow_plus. f_equal.
  change 2%Z with (radix_val radix2). rewrite IZR_Zpower by lia. reflexivity.
Qed.
Lemma multiple_float e x : (-1074 <= e)%Z -> multiple e x -> Rabs x <= bpow radix2 (e + 53) -> float x.
Proof.
  intros E [z ->] H. destruct (Z_lt_le_dec (Z.abs z) (2 ^ 53)) as [L|G].
  - apply generic_format_FLT. exists (Float radix2 z e); auto.
  - assert (Z : Z.abs z = (2 ^ 53)%Z).
    { apply Z.le_antisymm; auto. apply le_IZR. rewrite abs_IZR.
      rewrite Rabs_mult, (Rabs_right (bpow radix2 e)) in H by (apply Rle_ge, bpow_ge_0).
      rewrite Z.add_comm, bpow_plus in H. apply Rmult_le_reg_r with (bpow radix2 e); [apply bpow_gt_0|].
      change (IZR (2 ^ 53)) with (bpow radix2 53). exact H. }
    assert (P : float (bpow radix2 (e + 53))). { apply generic_format_bpow. unfold FLT_exp. lia. }
    rewrite Z.add_comm, bpow_plus in P. change (bpow radix2 53) with (IZR (2 ^ 53)) in P.
    destruct (Z.abs_eq_or_opp z) as [A|A]; rewrite A in Z.
    + now rewrite Z.
    + replace z with (- (2 ^ 53))%Z by lia. rewrite opp_IZR, Ropp_mult_distr_l_reverse. now apply generic_format_opp.
Qed.
Lemma float_multiple k x : float x -> bpow radix2 (k - 1) <= Rabs x -> multiple (k - 53) x.
Proof.
  intros F H. rewrite F. unfold F2R. simpl. set (c := cexp radix2 (FLT_exp (-1074) 53) x).
  assert (C : (k - 53 <= c)%Z).
  { unfold c, cexp, FLT_exp. pose proof (mag_ge_bpow radix2 x k H). lia. }
  set (z := Ztrunc (scaled_mantissa radix2 (FLT_exp (-1074) 53) x)). destruct (multiple_bpow (k - 53) c C) as [y Y].
  exists (z * y)%Z. rewrite mult_IZR, Y. ring.
Qed.
(** With sigma = 2^k, at least 4 |p|, q = fl(fl(sigma + p) - sigma): what is left of p is exact, and at most u sigma. *)
Definition part (sigma p : R) : R := fl (fl (sigma + p) - sigma).
Theorem extraction k p : (-1021 <= k)%Z -> float p -> 4 * Rabs p <= bpow radix2 k ->
  let q := part (bpow radix2 k) p in
  multiple (k - 53) q /\ Rabs q <= bpow radix2 k /\ float (p - q) /\ fl (p - q) = p - q /\ Rabs (p - q) <= u * bpow
    radix2 k.
Proof.
  intros K F H q. set (sigma := bpow radix2 k) in *. assert (S0 : 0 < sigma) by apply bpow_gt_0.
  assert (Fs : float sigma) by (apply generic_format_bpow; unfold FLT_exp; lia).
  pose proof (Rle_abs p). pose proof (Rle_abs (- p)). rewrite Rabs_Ropp in *.
  assert (Hk : bpow radix2 (k - 1) = sigma / 2). { unfold sigma. unfold Zminus. rewrite bpow_plus. simpl. lra. }
  assert (Hk1 : bpow radix2 (k + 1) = 2 * sigma). { unfold sigma. rewrite bpow_plus. simpl. lra. }
  set (s := fl (sigma + p)). pose proof (fl_float (sigma + p)) as FS. fold s in FS.
  assert (L : sigma / 2 <= s).
  { rewrite <- Hk. rewrite <- (fl_id (bpow radix2 (k - 1))) by (apply generic_format_bpow; unfold FLT_exp; lia).
    apply fl_mono. lra. }
  assert (M : s <= 2 * sigma).
  { rewrite <- Hk1. rewrite <- (fl_id (bpow radix2 (k + 1))) by (apply generic_format_bpow; unfold FLT_exp; lia).
    apply fl_mono. lra. }
  assert (Ms : multiple (k - 53) s) by (apply float_multiple; auto; rewrite Hk, Rabs_right; lra).
  assert (Md : multiple (k - 53) (s - sigma)).
  { apply multiple_plus; auto. apply multiple_opp. apply multiple_bpow. lia. }
  assert (B : Rabs (s - sigma) <= bpow radix2 (k - 53 + 53)). { replace (k - 53 + 53)%Z with k by lia. fold sigma.
    apply Rabs_le. lra. }
  assert (Q : q = s - sigma) by (unfold q, part; fold s; apply fl_id; now apply multiple_float with (k - 53)%Z;
    [lia| |]).
  assert (R0 : p - q = - (s - (sigma + p))) by (rewrite Q; ring).
  assert (FE : float (p - q)).
  { rewrite R0. apply generic_format_opp. unfold s, fl. apply plus_error; auto; typeclasses eauto. }
  split; [now rewrite Q|]. split; [rewrite Q; rewrite Z.sub_add in B; exact B|]. split; [exact FE|].
    split; [now apply fl_id|].
  rewrite R0, Rabs_Ropp. unfold s, fl. eapply Rle_trans; [apply error_le_half_ulp; typeclasses eauto|].
  assert (A : Rabs (sigma + p) < bpow radix2 (k + 1)). { rewrite Hk1. rewrite Rabs_right; lra. }
  assert (W : ulp radix2 (FLT_exp (-1074) 53) (sigma + p) <= bpow radix2 (k - 52)).
  { rewrite ulp_neq_0 by lra. apply bpow_le. unfold cexp, FLT_exp.
    pose proof (mag_le_bpow radix2 (sigma + p) (k + 1) ltac:(lra) A). lia. }
  assert (E : bpow radix2 (k - 52) = 2 * (u * sigma)).
  { unfold u, sigma. replace (k - 52)%Z with (1 + (-53 + k))%Z by lia. rewrite (bpow_plus _ 1), (bpow_plus _ (-53)).
    change (bpow radix2 1) with 2. ring. }
  lra.
Qed.
(** Sums of such parts, in any order, are exact while their magnitudes add up to no more than sigma. *)
Inductive order := One (q : R) | Both (s t : order).
Fixpoint exactly (t : order) : R := match t with One q => q | Both s t => exactly s + exactly t end.
Fixpoint added (t : order) : R := match t with One q => q | Both s t => fl (added s + added t) end.
Fixpoint size (t : order) : R := match t with One q => Rabs q | Both s t => size s + size t end.
Fixpoint multiples (e : Z) (t : order) : Prop := match t with One q => multiple e q | Both s t => multiples e s /\
  multiples e t end.
Lemma size_pos t : 0 <= size t. Proof. induction t; simpl; [apply Rabs_pos|lra]. Qed.
Lemma exactly_size t : Rabs (exactly t) <= size t.
Proof. induction t; simpl; [lra|]. pose proof (Rabs_triang (exactly t1) (exactly t2)). lra. Qed.
Lemma exactly_multiple e t : multiples e t -> multiple e (exactly t).
Proof. induction t; simpl; auto. intros [A B]. apply multiple_plus; auto. Qed.
Theorem parts_add_up k t : (-1021 <= k)%Z -> multiples (k - 53) t -> size t <= bpow radix2 k -> added t = exactly t.
Proof.
  intros K. induction t as [q|s IHs t IHt]; intros M S; [reflexivity|]. cbn [added exactly size multiples] in *.
    destruct M as [Ms Mt].
  pose proof (size_pos s). pose proof (size_pos t). rewrite IHs, IHt by (auto; lra). apply fl_id.
  apply multiple_float with (k - 53)%Z; [lia|apply multiple_plus; now apply exactly_multiple|].
  replace (k - 53 + 53)%Z with k by lia. pose proof (exactly_size s). pose proof (exactly_size t).
  pose proof (Rabs_triang (exactly s) (exactly t)). lra.
Qed.
Print Assumptions extraction.
