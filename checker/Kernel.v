(** The lemma of "one kernel" (docs/certificates.md, "From a point that nearly balances to one that does"), over real
    numbers: of prices and flows v that nearly balance an exactly balanced point lies near. Nothing here is used by the
    checker of proof files, which has the balanced point written out.
      Not proved: the rounding of its float arithmetic, and
    the part in which squares absorb an imbalance. *)
Require Import Reals Lra Lia Arith Classical.
Open Scope R_scope.

(** Vectors are functions of an index below a size; f 0 + ... + f (n - 1): *)
Fixpoint sum (n : nat) (f : nat -> R) : R := match n with O => 0 | S k => sum k f + f k end.
Lemma sum_ext n f g : (forall i, (i < n)%nat -> f i = g i) -> sum n f = sum n g.
Proof. induction n; intros H; simpl; auto. rewrite IHn by (intros; apply H; lia). now rewrite H by lia. Qed.
Lemma sum_add n f g : sum n (fun i => f i + g i) = sum n f + sum n g.
Proof. induction n; simpl; lra. Qed.
Lemma sum_scale n c f : sum n (fun i => c * f i) = c * sum n f.
Proof. induction n; simpl; [lra|]. rewrite IHn. lra. Qed.
Lemma sum_le n f g : (forall i, (i < n)%nat -> f i <= g i) -> sum n f <= sum n g.
Proof. induction n; intros H; simpl; [lra|]. pose proof (IHn ltac:(intros; apply H; lia)). pose proof (H n ltac:(lia)).
  lra. Qed.
Lemma sum_zero n f : (forall i, (i < n)%nat -> f i = 0) -> sum n f = 0.
Proof. induction n; intros H; simpl; auto. rewrite IHn by (intros; apply H; lia). rewrite H by lia. lra. Qed.
Lemma sum_abs n f : Rabs (sum n f) <= sum n (fun i => Rabs (f i)).
Proof. induction n; simpl; [rewrite Rabs_R0; lra|]. pose proof (Rabs_triang (sum n f) (f n)). lra. Qed.
Lemma sum_swap n m (f : nat -> nat -> R) : sum n (fun i => sum m (fun j => f i j)) = sum m (fun j => sum n (fun i => f
  i j)).
Proof. induction n; simpl; [symmetry; now apply sum_zero|]. now rewrite IHn, <- sum_add. Qed.
Lemma sum_one n f k : (k < n)%nat -> (forall i, (i < n)%nat -> i <> k -> f i = 0) -> sum n f = f k.
Proof.
  induction n; intros H Z; [lia|]. simpl. destruct (Nat.eq_dec k n) as [->|N].
  - rewrite sum_zero; [lra|]. intros. apply Z; lia.
  - rewrite IHn; [|lia|intros; apply Z; lia]. rewrite (Z n); [lra|lia|auto].
Qed.

(** * A bounded sequence of vectors comes near some vector again and again *)
Definition close (d : nat) (e : R) (u l : nat -> R) : Prop := forall i, (i < d)%nat -> Rabs (u i - l i) < e.
Definition cluster (d : nat) (u : nat -> nat -> R) (l : nat -> R) : Prop :=
  forall e N, 0 < e -> exists n, (N <= n)%nat /\ close d e (u n) l.
Lemma cluster_exists d z (u : nat -> nat -> R) : (forall n i, (i < d)%nat -> Rabs (u n i) <= z i) -> exists l,
  cluster d u l.
Proof.
  induction d as [|d IH]; intros H.
  - exists (fun _ => 0). intros e N He. exists N. split; [lia|]. intros i Hi. lia.
  - destruct IH as [l C]; [intros; apply H; lia|].
    set (A := fun t => forall e N, 0 < e -> exists n, (N <= n)%nat /\ close d e (u n) l /\ t <= u n d).
    assert (B : bound A).
    { exists (z d). intros t T. destruct (T 1 O Rlt_0_1) as (n & _ & _ & Ht). pose proof (H n d ltac:(lia)).
      pose proof (Rle_abs (u n d)). lra. }
    assert (X : exists t, A t).
    { exists (- z d). intros e N He. destruct (C e N He) as (n & Hn & Cn). exists n. repeat split; auto.
      pose proof (H n d ltac:(lia)). pose proof (Rle_abs (- u n d)). rewrite Rabs_Ropp in *. lra. }
    destruct (completeness A B X) as [s [Up Least]].
    exists (fun i => if Nat.eq_dec i d then s else l i). intros e N He.
    assert (Below : exists t, A t /\ s - e < t).
    { apply NNPP. intros Q. assert (s <= s - e); [|lra]. apply Least. intros t T. apply Rnot_lt_le. intros L. apply Q.
      eauto. }
    destruct Below as (t & T & Ht).
    assert (Above : exists e0 N0, 0 < e0 /\ forall n, (N0 <= n)%nat -> close d e0 (u n) l -> u n d < s + e).
    { apply NNPP. intros Q. assert (s + e <= s); [|lra]. apply Up. intros e0 N0 E0. apply NNPP. intros Q'. apply Q.
      exists e0, N0. split; auto. intros n Hn Cn. apply Rnot_le_lt. intros L. apply Q'. eauto. }
    destruct Above as (e0 & N0 & E0 & Ab).
    destruct (T (Rmin e e0) (Nat.max N N0)) as (n & Hn & Cn & Tn); [now apply Rmin_glb_lt|].
    exists n. split; [lia|]. pose proof (Rmin_l e e0). pose proof (Rmin_r e e0). intros i Hi.
      destruct (Nat.eq_dec i d) as [->|Ni].
    + assert (u n d < s + e). { apply Ab; [lia|]. intros k Hk. specialize (Cn k Hk). lra. }
      apply Rabs_def1; lra.
    + specialize (Cn i ltac:(lia)). lra.
Qed.

(** * An affine map of a box into itself has a fixed point: averages of iterates do, in place of Brouwer's theorem *)
Section FixedPoint.
Variables (d : nat) (c : nat -> R) (E : nat -> nat -> R) (z : nat -> R).
Definition F (x : nat -> R) (i : nat) : R := c i + sum d (fun j => E i j * x j).
Hypothesis A : forall i, (i < d)%nat -> Rabs (c i) + sum d (fun j => Rabs (E i j) * z j) <= z i.
Definition in_box (x : nat -> R) : Prop := forall i, (i < d)%nat -> Rabs (x i) <= z i.
Lemma F_box x : in_box x -> in_box (F x).
Proof.
  intros H i Hi. unfold F. eapply Rle_trans; [apply Rabs_triang|]. eapply Rle_trans; [|now apply A].
  apply Rplus_le_compat_l. eapply Rle_trans; [apply sum_abs|]. apply sum_le. intros j Hj. rewrite Rabs_mult.
  apply Rmult_le_compat_l; [apply Rabs_pos|now apply H].
Qed.
Lemma z_pos i : (i < d)%nat -> in_box (fun _ => 0) -> 0 <= z i.
Proof. intros Hi H. specialize (H i Hi). cbv beta in H. rewrite Rabs_R0 in H. exact H. Qed.
Fixpoint iterate (n : nat) : nat -> R := match n with O => fun _ => 0 | S k => F (iterate k) end.
Definition average (n : nat) (i : nat) : R := / INR (S n) * sum (S n) (fun k => iterate k i).
Hypothesis Z : in_box (fun _ => 0).
Lemma iterate_box n : in_box (iterate n).
Proof. induction n; [exact Z|]. now apply F_box. Qed.
Lemma average_box n : in_box (average n).
Proof.
  intros i Hi. unfold average. pose proof (lt_0_INR (S n) ltac:(lia)) as P.
    rewrite Rabs_mult, (Rabs_right (/ INR (S n))).
  2: { left. now apply Rinv_0_lt_compat. }
  apply Rmult_le_reg_l with (INR (S n)); auto. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra.
  eapply Rle_trans; [apply sum_abs|]. replace (INR (S n) * z i) with (sum (S n) (fun _ => z i)).
  - apply sum_le. intros k _. now apply iterate_box.
  - generalize (S n). intros m. induction m; [simpl; lra|]. rewrite S_INR. cbn [sum]. rewrite IHm. lra.
Qed.
Lemma average_moves n i : (i < d)%nat -> F (average n) i - average n i = / INR (S n) * iterate (S n) i.
Proof.
  intros Hi. pose proof (lt_0_INR (S n) ltac:(lia)) as P. unfold F, average.
  rewrite (sum_ext d _ (fun j => / INR (S n) * sum (S n) (fun k => E i j * iterate k j))).
  2: { intros j _. rewrite sum_scale. ring. }
  rewrite sum_scale, sum_swap.
  assert (T : forall m, sum m (fun k => iterate (S k) i) = INR m * c i + sum m (fun k => sum d (fun j => E i j *
    iterate k j))).
  { induction m; [simpl; lra|]. rewrite S_INR. cbn [sum]. rewrite IHm. cbn [iterate]. unfold F at 1. lra. }
  assert (S : forall m, sum m (fun k => iterate (S k) i) = sum m (fun k => iterate k i) + iterate m i).
  { induction m; [simpl; lra|]. cbn [sum]. rewrite IHm. lra. }
  specialize (T (Datatypes.S n)). rewrite S in T. apply Rmult_eq_reg_l with (INR (Datatypes.S n)); [|lra].
  rewrite Rmult_minus_distr_l, Rmult_plus_distr_l, <- !Rmult_assoc, !Rinv_r, !Rmult_1_l by lra. lra.
Qed.
Theorem fixed_point : exists x, in_box x /\ forall i, (i < d)%nat -> F x i = x i.
Proof.
  destruct (cluster_exists d z average average_box) as [x C]. exists x. split.
  - intros i Hi. apply Rnot_lt_le. intros L. destruct (C (Rabs (x i) - z i) O ltac:(lra)) as (n & _ & Cn).
    specialize (Cn i Hi). pose proof (average_box n i Hi). pose proof (Rabs_triang_inv (x i) (average n i)).
    rewrite Rabs_minus_sym in Cn. lra.
  - intros i Hi. set (s := sum d (fun j => Rabs (E i j)) + 1).
    assert (S0 : 0 <= sum d (fun j => Rabs (E i j))).
    { rewrite <- (sum_zero d (fun _ => 0)) by auto. apply sum_le. intros. apply Rabs_pos. }
    assert (Small : forall e, 0 < e -> Rabs (F x i - x i) <= (s + 1) * e).
    { intros e He. pose proof (z_pos i Hi Z) as Zi.
      destruct (archimed_cor1 (e / (z i + 1)) ltac:(apply Rdiv_lt_0_compat; lra)) as (N & HN & N0).
      destruct (C e N He) as (n & Hn & Cn).
      assert (M : Rabs (F (average n) i - average n i) <= e).
      { rewrite average_moves by auto. rewrite Rabs_mult. pose proof (iterate_box (S n) i Hi) as I.
        pose proof (lt_0_INR N N0). pose proof (lt_0_INR (S n) ltac:(lia)).
        assert (/ INR (S n) <= / INR N) by (apply Rinv_le_contravar; [auto|apply le_INR; lia]).
        rewrite (Rabs_right (/ INR (S n))) by (left; now apply Rinv_0_lt_compat).
        pose proof (Rinv_0_lt_compat _ H0). pose proof (Rabs_pos (iterate (S n) i)).
        assert (/ INR (S n) * Rabs (iterate (S n) i) <= e / (z i + 1) * z i) by (apply Rmult_le_compat; lra).
        assert (e / (z i + 1) * z i <= e).
        { apply Rmult_le_reg_r with (z i + 1); [lra|]. replace (e / (z i + 1) * z i * (z i + 1)) with (e * z i)
          by (field; lra). nra. }
        lra. }
      assert (D : Rabs (F x i - F (average n) i) <= sum d (fun j => Rabs (E i j)) * e).
      { unfold F. replace (c i + sum d (fun j => E i j * x j) - (c i + sum d (fun j => E i j * average n j)))
          with (sum d (fun j => E i j * (x j - average n j))).
        - eapply Rle_trans; [apply sum_abs|]. rewrite Rmult_comm, <- sum_scale. apply sum_le. intros j Hj.
          rewrite Rabs_mult, Rmult_comm.
          apply Rmult_le_compat_r; [apply Rabs_pos|]. specialize (Cn j Hj). rewrite Rabs_minus_sym. lra.
        - rewrite (sum_ext d _ (fun j => E i j * x j + (-1) * (E i j * average n j))) by (intros; ring).
          rewrite sum_add, sum_scale. ring. }
      specialize (Cn i Hi). replace (F x i - x i) with ((F x i - F (average n) i) + ((F (average n) i - average n i) +
        (average n i - x i))) by ring.
      eapply Rle_trans; [apply Rabs_triang|]. eapply Rle_trans; [apply Rplus_le_compat_l, Rabs_triang|]. unfold s. lra.
        }
    destruct (Req_dec (F x i - x i) 0) as [E0|E0]; [lra|]. apply Rabs_pos_lt in E0. exfalso.
    set (a := Rabs (F x i - x i)) in *. specialize (Small (a / (2 * (s + 1))) ltac:(apply Rdiv_lt_0_compat; unfold s;
      lra)).
    replace ((s + 1) * (a / (2 * (s + 1)))) with (a / 2) in Small by (field; unfold s; lra). lra.
Qed.
End FixedPoint.

(** * One kernel. B has an equation for each of N numbers of w, and a column for each of V variables;
    M, which the documentation calls R, says how an imbalance is taken up. *)
Section Kernel.
Variables (N V : nat) (B : nat -> nat -> R) (M : nat -> nat -> R) (v z : nat -> R) (keep : nat -> bool).
Definition left (u : nat -> R) (i : nat) : R := sum V (fun j => B i j * u j).   (* (B u)_i *)
Definition BM (i k : nat) : R := sum V (fun j => B i j * M j k).
Definition delta (i k : nat) : R := if Nat.eq_dec i k then 1 else 0.
Definition sigma (j : nat) : R := sum N (fun k => Rabs (M j k) * z k).
Hypothesis z_pos' : forall i, (i < N)%nat -> 0 <= z i.
Hypothesis z_kept : forall i, (i < N)%nat -> keep i = false -> z i = 0.
Hypothesis kept : forall i, (i < N)%nat -> keep i = true ->   (* (A) *)
  Rabs (left v i) + sum N (fun k => Rabs (delta i k - BM i k) * z k) <= z i.
Hypothesis dropped : forall i, (i < N)%nat -> keep i = false ->   (* (B) *)
  exists y, y i <> 0 /\ (forall k, (k < N)%nat -> k <> i -> keep k = false -> y k = 0) /\
  sum N (fun k => y k * left v k) = 0 /\
  forall m, (m < N)%nat -> keep m = true -> sum N (fun k => y k * BM k m) = 0.

Theorem balanced : exists u, (forall j, (j < V)%nat -> Rabs (u j - v j) <= sigma j) /\ forall i, (i < N)%nat ->
  left u i = 0.
Proof.
  destruct (fixed_point N (fun i => if keep i then - left v i else 0) (fun i k => if keep i
    then delta i k - BM i k else 0) z) as (x & Bx & Fx).
  - intros i Hi. destruct (keep i) eqn:K.
    + rewrite Rabs_Ropp. now apply kept.
    + rewrite (sum_zero N) by (intros; rewrite Rabs_R0; ring). rewrite Rabs_R0. specialize (z_pos' i Hi). lra.
  - intros i Hi. rewrite Rabs_R0. auto.
  - set (u := fun j => v j + sum N (fun k => M j k * x k)). exists u.
    assert (X0 : forall k, (k < N)%nat -> keep k = false -> x k = 0).
    { intros k Hk K. specialize (Bx k Hk). rewrite (z_kept k Hk K) in Bx. pose proof (Rabs_pos (x k)).
      destruct (Req_dec (x k) 0) as [|Nz]; auto. apply Rabs_pos_lt in Nz. lra. }
    assert (U : forall i, left u i = left v i + sum N (fun k => BM i k * x k)).
    { intros i. unfold left, u. rewrite (sum_ext V _ (fun j => B i j * v j + sum N (fun k => B i j * M j k * x k))).
      - rewrite sum_add. f_equal. rewrite sum_swap. apply sum_ext. intros k _. unfold BM.
        rewrite (sum_ext V _ (fun j => x k * (B i j * M j k))) by (intros; ring). rewrite sum_scale. ring.
      - intros j _. rewrite Rmult_plus_distr_l, <- sum_scale. f_equal. apply sum_ext. intros. ring. }
    assert (Kept : forall i, (i < N)%nat -> keep i = true -> left u i = 0).
    { intros i Hi K. specialize (Fx i Hi). unfold F in Fx. rewrite K in Fx.
      rewrite (sum_ext N _ (fun k => delta i k * x k + (-1) * (BM i k * x k))) in Fx by (intros; ring).
      rewrite sum_add, sum_scale, (sum_one N _ i) in Fx; auto.
      - unfold delta in Fx. destruct (Nat.eq_dec i i); [|tauto]. rewrite U. lra.
      - intros k _ Nk. unfold delta. destruct (Nat.eq_dec i k); [congruence|ring]. }
    split.
    + intros j Hj. unfold u, sigma. replace (v j + sum N (fun k => M j k * x k) - v j)
      with (sum N (fun k => M j k * x k)) by ring.
      eapply Rle_trans; [apply sum_abs|]. apply sum_le. intros k Hk. rewrite Rabs_mult.
        apply Rmult_le_compat_l; [apply Rabs_pos|auto].
    + intros i Hi. destruct (keep i) eqn:K; auto. destruct (dropped i Hi K) as (y & Yi & Ys & Yv & Ym).
      assert (T : sum N (fun k => y k * left u k) = 0).
      { rewrite (sum_ext N _ (fun k => y k * left v k + sum N (fun m => x m * (y k * BM k m)))).
        - rewrite sum_add, Yv, sum_swap, sum_zero; [ring|]. intros m Hm. rewrite sum_scale.
          destruct (keep m) eqn:Km; [rewrite Ym by auto; ring|rewrite X0 by auto; ring].
        - intros k _. rewrite U, Rmult_plus_distr_l, <- sum_scale. f_equal. apply sum_ext. intros. ring. }
      rewrite (sum_one N _ i) in T; auto.
      * apply Rmult_integral in T. destruct T; [contradiction|auto].
      * intros k Hk Nk. destruct (keep k) eqn:Kk; [rewrite Kept by auto; ring|rewrite Ys by auto; ring].
Qed.
(** What Fenchel and Young say of P at every point, with its dual value D, bounds P by the least D of the box around v.
  *)
Theorem one_kernel (P : (nat -> R) -> R) (D : (nat -> R) -> R) (L : R) :
  (forall u w, P w >= D u + sum N (fun i => left u i * w i)) ->
  (forall u, (forall j, (j < V)%nat -> Rabs (u j - v j) <= sigma j) -> L <= D u) -> forall w, L <= P w.
Proof.
  intros Y H w. destruct balanced as (u & Hu & Bu). specialize (Y u w). specialize (H u Hu).
  rewrite sum_zero in Y; [lra|]. intros i Hi. rewrite Bu by auto. ring.
Qed.
End Kernel.
Print Assumptions one_kernel.
