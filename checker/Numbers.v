(** Rational numbers that compute, and what they say about real ones; vectors; finite maps. *)
Require Import ZArith QArith Qabs Qreals Reals Lra Psatz List Bool.
From Checker Require Import Definitions.
Import ListNotations.
Open Scope R_scope.

Definition qadd (a b : Q) : Q := Qred (a + b).
Definition qmul (a b : Q) : Q := Qred (a * b).
Definition qle (a b : Q) : bool := Qle_bool a b.
Definition qlt (a b : Q) : bool := negb (Qle_bool b a).
Definition qmax (a b : Q) : Q := if qle a b then b else a.
Definition qmin (a b : Q) : Q := if qle a b then a else b.
Definition qabs (a : Q) : Q := if qle 0 a then a else (- a)%Q.
Definition qzero (a : Q) : bool := (Qnum a =? 0)%Z.

Lemma Q2R_red a : Q2R (Qred a) = Q2R a.
Proof. apply Qeq_eqR, Qred_correct. Qed.
Lemma Q2R_qadd a b : Q2R (qadd a b) = Q2R a + Q2R b.
Proof. unfold qadd. now rewrite Q2R_red, Q2R_plus. Qed.
Lemma Q2R_qmul a b : Q2R (qmul a b) = Q2R a * Q2R b.
Proof. unfold qmul. now rewrite Q2R_red, Q2R_mult. Qed.
Lemma qle_R a b : qle a b = true -> Q2R a <= Q2R b.
Proof. intros H. now apply Qle_Rle, Qle_bool_iff. Qed.
Lemma qle_false a b : qle a b = false -> Q2R b < Q2R a.
Proof. intros H. apply Qlt_Rlt, Qnot_le_lt. intros C. apply Qle_bool_iff in C. unfold qle in H. congruence. Qed.
Lemma qlt_R a b : qlt a b = true -> Q2R a < Q2R b.
Proof. unfold qlt. intros H. apply negb_true_iff in H. now apply qle_false. Qed.
Lemma Q2R_0 : Q2R 0 = 0. Proof. unfold Q2R; simpl; lra. Qed.
Lemma Q2R_1 : Q2R 1 = 1. Proof. unfold Q2R; simpl; lra. Qed.
Lemma Q2R_half : Q2R (1#2) = / 2. Proof. unfold Q2R; simpl; lra. Qed.
Lemma Q2R_qmax a b : Q2R (qmax a b) = Rmax (Q2R a) (Q2R b).
Proof.
  unfold qmax. destruct (qle a b) eqn:E.
  - apply qle_R in E. now rewrite Rmax_right.
  - apply qle_false in E. rewrite Rmax_left; lra.
Qed.
Lemma Q2R_qabs a : Q2R (qabs a) = Rabs (Q2R a).
Proof.
  unfold qabs. destruct (qle 0 a) eqn:E.
  - apply qle_R in E. rewrite Q2R_0 in E. rewrite Rabs_right; lra.
  - apply qle_false in E. rewrite Q2R_0 in E. rewrite Q2R_opp, Rabs_left; lra.
Qed.
Lemma qmin_l a b : Q2R (qmin a b) <= Q2R a.
Proof. unfold qmin. destruct (qle a b) eqn:E; [lra|]. apply qle_false in E. lra. Qed.
Lemma Q2R_inv a : 0 < Q2R a -> Q2R (/ a) = / Q2R a.
Proof. intros H. apply Q2R_inv. intros C. apply Qeq_eqR in C. rewrite Q2R_0 in C. lra. Qed.
Lemma qzero_R a : qzero a = true -> Q2R a = 0.
Proof. unfold qzero, Q2R. intros H. apply Z.eqb_eq in H. rewrite H. lra. Qed.
Lemma Qeq_R a b : Qeq_bool a b = true -> Q2R a = Q2R b.
Proof. intros H. now apply Qeq_eqR, Qeq_bool_iff. Qed.
Lemma positive_R a : is_positive a = true -> 0 < Q2R a.
Proof. intros H. rewrite <- Q2R_0. now apply qlt_R. Qed.

Global Hint Rewrite Q2R_qadd Q2R_qmul Q2R_plus Q2R_minus Q2R_mult Q2R_opp Q2R_0 Q2R_1 Q2R_half Q2R_qmax Q2R_qabs
  Q2R_red : q2r.

Ltac bools :=
  repeat match goal with
  | H : (_ && _)%bool = true |- _ => apply andb_true_iff in H; destruct H
  | H : qle _ _ = true |- _ => apply qle_R in H
  | H : qlt _ _ = true |- _ => apply qlt_R in H
  | H : qle _ _ = false |- _ => apply qle_false in H
  | H : is_positive _ = true |- _ => apply positive_R in H
  | H : qzero _ = true |- _ => apply qzero_R in H
  | H : None = Some _ |- _ => discriminate H
  | H : Some _ = None |- _ => discriminate H
  end; autorewrite with q2r in *.
Lemma some_inj A (a b : A) : Some a = Some b -> b = a.
Proof. congruence. Qed.
Ltac some := repeat match goal with H : Some _ = Some _ |- _ => apply some_inj in H; subst end.

(** Lists as long as a file has samples: the functions of the library, without a stack as deep. *)
Definition long_rev {A} (l : list A) : list A := rev_append l [].
Definition long_map {A B} (f : A -> B) (l : list A) : list B := long_rev (fold_left (fun r x => f x :: r) l []).
Definition long_app {A} (l m : list A) : list A := rev_append (long_rev l) m.
Definition long_length {A} (l : list A) : nat := fold_left (fun n _ => S n) l 0%nat.
Fixpoint pairs {A B} (l : list A) (m : list B) (r : list (A * B)) : list (A * B) :=
  match l, m with x :: l', y :: m' => pairs l' m' ((x, y) :: r) | _, _ => r end.
Definition long_combine {A B} (l : list A) (m : list B) : list (A * B) := long_rev (pairs l m []).
Lemma long_rev_eq A (l : list A) : long_rev l = rev l.
Proof. unfold long_rev. now rewrite rev_append_rev, app_nil_r. Qed.
Lemma long_map_eq A B (f : A -> B) l : long_map f l = map f l.
Proof.
  unfold long_map. rewrite long_rev_eq. change (map f l) with ([] ++ map f l). rewrite <- (rev_involutive ([] ++ map f l)).
  f_equal. assert (H : forall r, fold_left (fun r x => f x :: r) l r = rev (map f l) ++ r).
  { induction l as [|x l IH]; intros r; simpl; auto. rewrite IH, <- app_assoc. reflexivity. }
  now rewrite H, app_nil_r.
Qed.
Lemma long_app_eq A (l m : list A) : long_app l m = l ++ m.
Proof. unfold long_app. now rewrite rev_append_rev, long_rev_eq, rev_involutive. Qed.
Lemma long_length_eq A (l : list A) : long_length l = length l.
Proof.
  unfold long_length. assert (H : forall n, fold_left (fun n _ => S n) l n = (n + length l)%nat); [|apply (H 0%nat)].
  induction l as [|x l IH]; intros n; simpl; [lia|]. rewrite IH. lia.
Qed.
Lemma long_combine_eq A B (l : list A) : forall (m : list B), long_combine l m = combine l m.
Proof.
  intros m. unfold long_combine. rewrite long_rev_eq. rewrite <- (rev_involutive (combine l m)). f_equal.
  assert (H : forall (m : list B) r, pairs l m r = rev (combine l m) ++ r); [|rewrite H, app_nil_r; reflexivity].
  clear m. induction l as [|x l IH]; intros [|y m] r; simpl; auto. rewrite IH, <- app_assoc. reflexivity.
Qed.

(** Vectors. *)
Definition RV (u : list Q) : list R := map Q2R u.
Definition scaleQ (c : Q) (u : list Q) : list Q := map (qmul c) u.
Fixpoint dotQ (u z : list Q) : Q :=
  match u, z with a :: u', b :: z' => qadd (qmul a b) (dotQ u' z') | _, _ => 0%Q end.
Fixpoint minusQ (z y : list Q) : list Q := match z, y with a :: z', t :: y' => qadd a (- t) :: minusQ z' y' | _,
  _ => [] end.
Fixpoint addQ (z o : list Q) : list Q := match z, o with a :: z', b :: o' => qadd a b :: addQ z' o' | _, _ => [] end.
(** The sum of two rows, of which one may be shorter, and R't. *)
Fixpoint plusQ (z y : list Q) : list Q := match z, y with a :: z', b :: y' => qadd a b :: plusQ z' y' | [], _ => y | _,
  [] => z end.
Fixpoint transposed (root : list (list Q)) (t : list Q) : list Q :=
  match root, t with r :: root', v :: t' => plusQ (scaleQ v r) (transposed root' t') | _, _ => [] end.
Definition totalQ (z : list Q) : Q := fold_right qadd 0%Q z.

Lemma dotQ_R u z : Q2R (dotQ u z) = dot (RV u) (RV z).
Proof. revert z; induction u; destruct z; simpl; autorewrite with q2r; auto; try lra. now rewrite IHu. Qed.
Lemma minusQ_R z : forall y, RV (minusQ z y) = minus (RV z) y.
Proof. induction z; intros [|t y]; simpl; auto. fold (RV z). rewrite <- IHz. autorewrite with q2r. f_equal. Qed.
Lemma addQ_R z : forall o, RV (addQ z o) = add (RV z) o.
Proof. induction z; intros [|t y]; simpl; auto. fold (RV z). rewrite <- IHz. autorewrite with q2r. f_equal. Qed.
Lemma totalQ_R z : Q2R (totalQ z) = total (RV z).
Proof. induction z; simpl; autorewrite with q2r; auto. now rewrite IHz. Qed.
Lemma dot_scale c u z : dot (map (Rmult c) u) z = c * dot u z.
Proof. revert z; induction u; destruct z; simpl; try lra. rewrite IHu. lra. Qed.
Lemma RV_scale c u : RV (scaleQ c u) = map (Rmult (Q2R c)) (RV u).
Proof. unfold RV, scaleQ. rewrite !map_map. apply map_ext. intros. apply Q2R_qmul. Qed.
Lemma dot_self_pos z : 0 <= dot z z.
Proof. induction z; simpl; nra. Qed.
Lemma dot_nil z : dot z [] = 0. Proof. now destruct z. Qed.
Lemma plusQ_dot a : forall b z, dot (RV (plusQ a b)) z = dot (RV a) z + dot (RV b) z.
Proof.
  induction a; intros [|q b] [|x z]; simpl; try lra. fold (RV (plusQ a0 b)) (RV a0) (RV b). rewrite IHa.
    autorewrite with q2r. lra.
Qed.
Lemma transposed_dot root : forall t z,
  dot (RV (transposed root t)) z = dot (RV t) (map (fun r => dot (RV r) z) root).
Proof.
  induction root as [|r root IH]; intros [|v t] z; simpl; auto.
  rewrite plusQ_dot, RV_scale, dot_scale. fold (RV t). now rewrite IH.
Qed.
Lemma RV_length z : length (RV z) = length z. Proof. apply map_length. Qed.

Definition norm1Q (z : list Q) : Q := fold_right (fun a s => qadd (qabs a) s) 0%Q z.
Definition normIQ (z : list Q) : Q := fold_right (fun a s => qmax (qabs a) s) 0%Q z.
Lemma norm1Q_R z : Q2R (norm1Q z) = norm1 (RV z).
Proof. induction z; simpl; autorewrite with q2r; auto. now rewrite IHz. Qed.
Lemma normIQ_R z : Q2R (normIQ z) = normI (RV z).
Proof. induction z; simpl; autorewrite with q2r; auto. now rewrite IHz. Qed.
Lemma norm1_pos z : 0 <= norm1 z.
Proof. induction z; simpl; [lra|]. pose proof (Rabs_pos a). lra. Qed.
Lemma normI_pos z : 0 <= normI z.
Proof. induction z; simpl; [lra|]. eapply Rle_trans; [apply Rabs_pos|apply Rmax_l]. Qed.
Lemma norm2_pos z : 0 <= norm2 z. Proof. apply sqrt_pos. Qed.
Lemma norm2_sq z : norm2 z * norm2 z = dot z z.
Proof. apply sqrt_sqrt, dot_self_pos. Qed.

Lemma prod_le a b : a * b <= Rabs a * Rabs b.
Proof. rewrite <- Rabs_mult. apply Rle_abs. Qed.
Lemma holder u z : dot u z <= normI u * norm1 z.
Proof.
  revert z; induction u as [|a u IH]; destruct z as [|b z]; simpl; try lra.
  specialize (IH z). pose proof (prod_le a b). pose proof (norm1_pos z). pose proof (normI_pos u).
  pose proof (Rabs_pos b). pose proof (Rabs_pos a).
  pose proof (Rmax_l (Rabs a) (normI u)). pose proof (Rmax_r (Rabs a) (normI u)).
  assert (Rabs a * Rabs b <= Rmax (Rabs a) (normI u) * Rabs b) by (apply Rmult_le_compat_r; lra).
  assert (normI u * norm1 z <= Rmax (Rabs a) (normI u) * norm1 z) by (apply Rmult_le_compat_r; lra).
  lra.
Qed.
Lemma dot_sym u z : dot u z = dot z u.
Proof. revert z; induction u; destruct z; simpl; try lra. rewrite IHu. lra. Qed.
Lemma holder' u z : dot u z <= norm1 u * normI z.
Proof. rewrite dot_sym. rewrite Rmult_comm. apply holder. Qed.
Lemma cs_sq u z : dot u z <= norm2 u * norm2 z /\ - dot u z <= norm2 u * norm2 z.
Proof.
  revert z; induction u as [|a u IH]; intros z.
  { simpl. unfold norm2. simpl. rewrite sqrt_0. lra. }
  destruct z as [|b z].
  { simpl. unfold norm2 at 2 4. simpl. rewrite sqrt_0. lra. }
  specialize (IH z). simpl.
  set (p := norm2 u) in *. set (q := norm2 z) in *. set (D := dot u z) in *.
  assert (Hp : p * p = dot u u) by apply norm2_sq. assert (Hq : q * q = dot z z) by apply norm2_sq.
  assert (P0 : 0 <= p) by apply norm2_pos. assert (Q0 : 0 <= q) by apply norm2_pos.
  unfold norm2. simpl. rewrite <- Hp, <- Hq. rewrite <- sqrt_mult by nra.
  assert (T : forall x, x * x <= (a * a + p * p) * (b * b + q * q) -> x <= sqrt ((a * a + p * p) * (b * b + q * q))).
  { intros x Hx. destruct (Rle_lt_dec x 0). { eapply Rle_trans; [exact r|apply sqrt_pos]. }
    rewrite <- (sqrt_square x) by lra. apply sqrt_le_1; nra. }
  assert (S : (a * b + D) * (a * b + D) <= (a * a + p * p) * (b * b + q * q)).
  { assert (D * D <= p * q * (p * q)) by nra.
    assert (2 * (a * b) * D <= a * a * (q * q) + p * p * (b * b)).
    { destruct (Rle_lt_dec 0 (a * b)).
      - assert (a * b * D <= a * b * (p * q)) by (apply Rmult_le_compat_l; lra).
        pose proof (Rle_0_sqr (a * q - p * b)). unfold Rsqr in *. lra.
      - assert (a * b * D <= - (a * b) * (p * q)) by nra.
        pose proof (Rle_0_sqr (a * q + p * b)). unfold Rsqr in *. lra. }
    lra. }
  split; apply T; nra.
Qed.
Lemma cauchy u z : dot u z <= norm2 u * norm2 z.
Proof. apply cs_sq. Qed.

(** Rounding up to a multiple of 2^-200, and square roots rounded up. *)
Definition UNIT : positive := (2 ^ 200)%positive.
Definition UNIT2 : positive := (2 ^ 400)%positive.
Definition ceil (a : Q) (m : positive) : Z := (- ((- Qnum a * Zpos m) / Zpos (Qden a)))%Z.
Definition up (a : Q) : Z := ceil a UNIT.
Definition units (n : Z) : Q := n # UNIT.
Definition real (n : Z) : R := Q2R (units n).
Lemma ceil_le a m : Q2R a <= Q2R (ceil a m # m).
Proof.
  unfold ceil. apply Qle_Rle. unfold Qle; simpl.
  pose proof (Z.mul_div_le (- Qnum a * Zpos m) (Zpos (Qden a)) eq_refl). lia.
Qed.
Lemma up_le a : Q2R a <= real (up a).
Proof. apply ceil_le. Qed.
Lemma real_IZR n : real n = IZR n * / IZR (Zpos UNIT).
Proof. reflexivity. Qed.
Lemma unit_pos : 0 < / IZR (Zpos UNIT).
Proof. apply Rinv_0_lt_compat. apply IZR_lt. reflexivity. Qed.
Lemma real_add a b : real (a + b) = real a + real b.
Proof. rewrite !real_IZR, plus_IZR. lra. Qed.
Lemma real_sub a b : real (a - b) = real a - real b.
Proof. rewrite !real_IZR, minus_IZR. lra. Qed.
Lemma real_opp a : real (- a) = - real a.
Proof. rewrite !real_IZR, opp_IZR. lra. Qed.
Lemma real_0 : real 0 = 0. Proof. rewrite real_IZR. lra. Qed.
Lemma real_le a b : (a <= b)%Z -> real a <= real b.
Proof. intros H. rewrite !real_IZR. apply IZR_le in H. pose proof unit_pos. nra. Qed.
Lemma real_lt a b : (a < b)%Z -> real a < real b.
Proof. intros H. rewrite !real_IZR. apply IZR_lt in H. pose proof unit_pos. nra. Qed.

Definition root (a : Q) : Q := Z.sqrt_up (ceil a UNIT2) # UNIT.
Lemma root_le a : 0 <= Q2R a -> sqrt (Q2R a) <= Q2R (root a).
Proof.
  intros H. pose proof (ceil_le a UNIT2) as C.
  set (n := ceil a UNIT2) in *. unfold root. fold n.
  assert (E : UNIT2 = (UNIT * UNIT)%positive) by reflexivity. rewrite E in C. clearbody n.
  assert (N : (0 <= n)%Z).
  { destruct (Z_lt_le_dec n 0); auto. exfalso.
    assert (Q2R (n # UNIT * UNIT) < 0); [|lra]. rewrite <- Q2R_0. apply Qlt_Rlt. unfold Qlt. simpl Qnum. simpl Qden.
      lia. }
  assert (S : (n <= Z.sqrt_up n * Z.sqrt_up n)%Z).
  { destruct (Z.eq_dec n 0) as [->|]; [reflexivity|]. pose proof (Z.sqrt_up_spec n). unfold Z.succ in *. lia. }
  pose proof (Z.sqrt_up_nonneg n) as S0. set (s := Z.sqrt_up n) in *.
  assert (0 <= Q2R (s # UNIT)) by (rewrite <- Q2R_0; apply Qle_Rle; unfold Qle; cbn -[UNIT]; lia).
  rewrite <- (sqrt_square (Q2R (s # UNIT))) by auto. apply sqrt_le_1; [auto|nra|].
  eapply Rle_trans; [exact C|]. rewrite <- Q2R_mult. apply Qle_Rle. unfold Qle. cbn -[UNIT]. nia.
Qed.

(** Finite maps, as tries: what the balance is added up in, and the point. *)
Inductive tree := Leaf | Node (l : tree) (q : Q) (r : tree).
Fixpoint alter (f : Q -> Q) (p : positive) (t : tree) : tree :=
  match p, t with
  | xH, Leaf => Node Leaf (f 0%Q) Leaf
  | xO p, Leaf => Node (alter f p Leaf) 0 Leaf
  | xI p, Leaf => Node Leaf 0 (alter f p Leaf)
  | xH, Node l a r => Node l (f a) r
  | xO p, Node l a r => Node (alter f p l) a r
  | xI p, Node l a r => Node l a (alter f p r)
  end.
Definition put (p : positive) (q : Q) (t : tree) : tree := alter (fun a => qadd a q) p t.
Fixpoint get (p : positive) (t : tree) : Q :=
  match p, t with
  | _, Leaf => 0%Q
  | xH, Node _ a _ => a
  | xO p, Node l _ _ => get p l
  | xI p, Node _ _ r => get p r
  end.
Lemma get_leaf p : get p Leaf = 0%Q. Proof. now destruct p. Qed.
Lemma get_alter f p : forall q t, get q (alter f p t) = if Pos.eqb q p then f (get p t) else get q t.
Proof. induction p; intros [q|q|] [|l a r]; simpl; auto; rewrite ?IHp, ?get_leaf; auto. Qed.
Fixpoint sumT (t : tree) (w : positive -> R) : R :=
  match t with
  | Leaf => 0
  | Node l a r => Q2R a * w xH + sumT l (fun p => w (xO p)) + sumT r (fun p => w (xI p))
  end.
Lemma put_sum p q t w : sumT (put p q t) w = sumT t w + Q2R q * w p.
Proof.
  unfold put. revert t w; induction p; destruct t; intros; simpl; rewrite ?IHp; simpl; autorewrite with q2r; lra.
Qed.
(** The first entry that is not 0, with its place. *)
Fixpoint first (t : tree) (place : positive -> positive) : option (positive * Q) :=
  match t with
  | Leaf => None
  | Node l a r => if qzero a then match first l (fun p => place (xO p)) with
                                 | None => first r (fun p => place (xI p)) | found => found end
                  else Some (place xH, a)
  end.
Lemma first_none t w : forall place, first t place = None -> sumT t w = 0.
Proof.
  revert w. induction t as [|l IHl a r IHr]; intros w place H; simpl in *; auto.
  destruct (qzero a) eqn:Z; [|discriminate]. destruct (first l _) eqn:L; [discriminate|].
  apply qzero_R in Z. rewrite Z, (IHl _ _ L), (IHr _ _ H). lra.
Qed.
(** What is left, charged B per unit. *)
Fixpoint charged (b : Q) (t : tree) : Z :=
  match t with Leaf => 0%Z | Node l a r => (up (b * qabs a) + (charged b l + charged b r))%Z end.
Lemma charged_le b t w : (forall p, Rabs (w p) <= Q2R b) -> Rabs (sumT t w) <= real (charged b t).
Proof.
  revert w; induction t as [|l IHl a r IHr]; intros w H; simpl; rewrite ?real_add.
  { rewrite Rabs_R0, real_0. lra. }
  eapply Rle_trans; [apply Rabs_triang|].
  eapply Rle_trans; [apply Rplus_le_compat_r, Rabs_triang|].
  specialize (IHl (fun p => w (xO p)) (fun p => H _)). specialize (IHr (fun p => w (xI p)) (fun p => H _)).
  pose proof (up_le (b * qabs a)). autorewrite with q2r in *.
  rewrite Rabs_mult. specialize (H xH). pose proof (Rabs_pos (Q2R a)). nra.
Qed.
Fixpoint largest (t : tree) : Q := match t with Leaf => 0%Q | Node l a r => qmax (qabs a) (qmax (largest l) (largest
  r)) end.
Lemma get_largest t : forall p, Rabs (Q2R (get p t)) <= Q2R (largest t).
Proof.
  induction t; intros [p|p|]; simpl; autorewrite with q2r; rewrite ?Rabs_R0; try lra.
  - eapply Rle_trans; [apply IHt2|]. eapply Rle_trans; [|apply Rmax_r]. apply Rmax_r.
  - eapply Rle_trans; [apply IHt1|]. eapply Rle_trans; [|apply Rmax_r]. apply Rmax_l.
  - apply Rmax_l.
Qed.
