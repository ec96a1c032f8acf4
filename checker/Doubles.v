(** [to_double], by which scales are defined, is what its name says: no double is nearer to x. *)
Require Import ZArith QArith Qround Qreals Reals Lra Lia List Bool.
From Checker Require Import Definitions Numbers.
Open Scope R_scope.

Definition two (e : Z) : R := powerRZ 2 e.
Lemma two_pos e : 0 < two e. Proof. apply powerRZ_lt. lra. Qed.
Lemma two_add a b : two (a + b) = two a * two b. Proof. apply powerRZ_add. lra. Qed.
Lemma two_Z e : (0 <= e)%Z -> IZR (2 ^ e) = two e.
Proof. intros H. destruct e as [|p|p]; [reflexivity| |lia]. exact (Zpower_pos_powerRZ 2 p). Qed.
Lemma two_inv e : two (- e) = / two e.
Proof.
  pose proof (two_pos e). apply Rmult_eq_reg_r with (two e); [|lra]. rewrite <- two_add, Rinv_l by lra.
  now replace (- e + e)%Z with 0%Z by lia.
Qed.
Lemma two_mono a b : (a <= b)%Z -> two a <= two b.
Proof.
  intros H. replace b with (a + (b - a))%Z by lia. rewrite two_add. pose proof (two_pos a).
  assert (1 <= two (b - a)). { rewrite <- two_Z by lia. apply IZR_le. pose proof (Z.pow_pos_nonneg 2 (b - a)). lia. }
  nra.
Qed.
Lemma power_R e : Q2R (power e) = two e.
Proof.
  unfold power. destruct (0 <=? e)%Z eqn:E.
  - apply Z.leb_le in E. unfold Q2R. cbn [Qnum Qden]. rewrite two_Z by auto. lra.
  - apply Z.leb_gt in E. unfold Q2R. cbn [Qnum Qden]. rewrite Z2Pos.id by (apply Z.pow_pos_nonneg; lia).
    rewrite two_Z, two_inv by lia. pose proof (two_pos e). field. lra.
Qed.
Lemma inject_R n : Q2R (inject_Z n) = IZR n. Proof. unfold Q2R. simpl. lra. Qed.

Lemma nearest_is q k : Rabs (Q2R q - IZR (nearest q)) <= Rabs (Q2R q - IZR k).
Proof.
  assert (L : IZR (Qfloor q) <= Q2R q) by (rewrite <- inject_R; apply Qle_Rle, Qfloor_le).
  assert (U : Q2R q < IZR (Qfloor q) + 1) by (rewrite <- plus_IZR, <- inject_R; apply Qlt_Rlt, Qlt_floor).
  unfold nearest. set (n := Qfloor q) in *.
  assert (K : IZR k <= IZR n \/ IZR n + 1 <= IZR k).
  { destruct (Z_le_gt_dec k n); [left; now apply IZR_le|right]. rewrite <- plus_IZR. apply IZR_le. lia. }
  assert (A : Q2R q - IZR n <= / 2 -> Rabs (Q2R q - IZR n) <= Rabs (Q2R q - IZR k)).
  { intros H. rewrite (Rabs_right (Q2R q - IZR n)) by lra. destruct K; [rewrite Rabs_right|rewrite Rabs_left]; lra. }
  assert (B : / 2 <= Q2R q - IZR n -> Rabs (Q2R q - IZR (n + 1)) <= Rabs (Q2R q - IZR k)).
  { intros H. rewrite plus_IZR, (Rabs_left (Q2R q - (IZR n + 1))) by lra.
    destruct K; [rewrite Rabs_right|rewrite Rabs_left1]; lra. }
  destruct (Qcompare (q - inject_Z n) (1 # 2)) eqn:C.
  - apply Qeq_alt, Qeq_eqR in C. autorewrite with q2r in C. rewrite inject_R in C.
    destruct (Z.even n); [apply A|apply B]; lra.
  - apply Qlt_alt, Qlt_Rlt in C. autorewrite with q2r in C. rewrite inject_R in C. apply A. lra.
  - apply Qgt_alt, Qlt_Rlt in C. autorewrite with q2r in C. rewrite inject_R in C. apply B. lra.
Qed.
Lemma exponent_le x : 0 < Q2R x -> two (exponent x) <= Q2R x.
Proof.
  intros X. unfold exponent. set (a := (Z.log2 (Qnum x) - Z.log2 (Zpos (Qden x)))%Z).
  destruct (Qle_bool (power a) x) eqn:E; [rewrite <- power_R; now apply qle_R|].
  assert (P : (0 < Qnum x)%Z).
  { rewrite <- Q2R_0 in X. apply Rlt_Qlt in X. unfold Qlt in X. simpl in X. lia. }
  destruct (Z.log2_spec (Qnum x) P) as [N _]. destruct (Z.log2_spec (Zpos (Qden x)) eq_refl) as [_ D].
  apply IZR_le in N. apply IZR_lt in D. rewrite two_Z in N, D by (pose proof (Z.log2_nonneg (Zpos (Qden x)));
    try apply Z.log2_nonneg; lia).
  pose proof (two_pos (Z.succ (Z.log2 (Zpos (Qden x))))) as S. set (d := IZR (Zpos (Qden x))) in *.
  assert (d0 : 0 < d) by (apply IZR_lt; reflexivity).
  unfold Q2R. fold d. replace (a - 1)%Z with (Z.log2 (Qnum x) + - Z.succ (Z.log2 (Zpos (Qden x))))%Z by (unfold a; lia).
  rewrite two_add, two_inv. apply Rmult_le_compat; [left; apply two_pos|left; now apply Rinv_0_lt_compat|exact N|].
  apply Rinv_le_contravar; lra.
Qed.

(** The doubles are m 2^e with |m| < 2^53 and e >= -1074. *)
Theorem to_double_nearest x m e : 0 < Q2R x -> (m <= 2 ^ 53)%Z -> (-1074 <= e)%Z ->
  Rabs (Q2R x - Q2R (to_double x)) <= Rabs (Q2R x - IZR m * two e).
Proof.
  intros X M E. unfold to_double. set (f := Z.max (exponent x - 52) (-1074)). set (q := (x * power (- f))%Q).
  rewrite Q2R_red, Q2R_mult, inject_R, power_R. pose proof (two_pos f) as F.
  assert (Q : Q2R x = Q2R q * two f).
  { unfold q. rewrite Q2R_mult, power_R, two_inv. field. lra. }
  assert (N : forall k, Rabs (Q2R x - IZR (nearest q) * two f) <= Rabs (Q2R x - IZR k * two f)).
  { intros k. rewrite Q, <- !Rmult_minus_distr_r, !Rabs_mult. apply Rmult_le_compat_r;
    [apply Rabs_pos|apply nearest_is]. }
  destruct (Z_le_gt_dec f e) as [L|L].
  - replace (IZR m * two e) with (IZR (m * 2 ^ (e - f)) * two f); [apply N|].
    rewrite mult_IZR, two_Z, Rmult_assoc, <- two_add by lia. do 2 f_equal. lia.
  - assert (G : f = (exponent x - 52)%Z) by lia. eapply Rle_trans; [apply (N (2 ^ 52)%Z)|].
    rewrite two_Z, <- two_add by lia. replace (52 + f)%Z with (exponent x) by lia. pose proof (exponent_le x X).
    assert (IZR m * two e <= two (exponent x)).
    { replace (exponent x) with (53 + (f - 1))%Z by lia. rewrite two_add. apply IZR_le in M. rewrite two_Z in M by lia.
      pose proof (two_mono e (f - 1) ltac:(lia)). pose proof (two_pos e). pose proof (two_pos 53).
      apply Rle_trans with (two 53 * two e); [apply Rmult_le_compat_r|apply Rmult_le_compat_l]; lra. }
    rewrite !Rabs_right by lra. lra.
Qed.
Lemma exponent_lt x : 0 < Q2R x -> Q2R x < two (exponent x + 1).
Proof.
  intros X. unfold exponent. set (a := (Z.log2 (Qnum x) - Z.log2 (Zpos (Qden x)))%Z).
  destruct (Qle_bool (power a) x) eqn:E.
  2: { replace (a - 1 + 1)%Z with a by lia. rewrite <- power_R. now apply qle_false. }
  assert (P : (0 < Qnum x)%Z).
  { rewrite <- Q2R_0 in X. apply Rlt_Qlt in X. unfold Qlt in X. simpl in X. lia. }
  destruct (Z.log2_spec (Qnum x) P) as [_ N]. destruct (Z.log2_spec (Zpos (Qden x)) eq_refl) as [D _].
  apply IZR_lt in N. apply IZR_le in D. rewrite two_Z in N by (pose proof (Z.log2_nonneg (Qnum x)); lia).
  rewrite two_Z in D by apply Z.log2_nonneg.
  pose proof (two_pos (Z.log2 (Zpos (Qden x)))) as S. set (d := IZR (Zpos (Qden x))) in *.
  unfold Q2R. fold d. replace (a + 1)%Z with (Z.succ (Z.log2 (Qnum x)) + - Z.log2 (Zpos (Qden x)))%Z by (unfold a; lia).
  rewrite two_add, two_inv. pose proof (Rinv_0_lt_compat d ltac:(lra)).
    apply Rlt_le_trans with (two (Z.succ (Z.log2 (Qnum x))) * / d).
  - apply Rmult_lt_compat_r; auto.
  - apply Rmult_le_compat_l; [left; apply two_pos|]. apply Rinv_le_contravar; lra.
Qed.
Theorem to_double_is_one x : 0 < Q2R x ->
  exists m e, (0 <= m <= 2 ^ 53)%Z /\ (-1074 <= e)%Z /\ Q2R (to_double x) = IZR m * two e.
Proof.
  intros X. unfold to_double. set (f := Z.max (exponent x - 52) (-1074)). set (q := (x * power (- f))%Q).
  exists (nearest q), f. rewrite Q2R_red, Q2R_mult, inject_R, power_R. split; [|split; [lia|reflexivity]].
  assert (Q : 0 < Q2R q < IZR (2 ^ 53)).
  { unfold q. rewrite Q2R_mult, power_R. pose proof (two_pos (- f)). split; [apply Rmult_lt_0_compat; auto|].
    rewrite two_Z by lia. pose proof (exponent_lt x X). apply Rlt_le_trans with (two (exponent x + 1) * two (- f)).
    - apply Rmult_lt_compat_r; auto.
    - rewrite <- two_add. apply two_mono. lia. }
  destruct Q as [Q1 Q2].
  assert (L : (0 <= Qfloor q)%Z). { apply (Qfloor_resp_le 0). rewrite <- Q2R_0 in Q1. now apply Qlt_le_weak, Rlt_Qlt. }
  assert (U : (Qfloor q < 2 ^ 53)%Z).
  { apply lt_IZR. eapply Rle_lt_trans; [|exact Q2]. rewrite <- inject_R. apply Qle_Rle, Qfloor_le. }
  unfold nearest. destruct (Qcompare _ _); [destruct (Z.even _)| |]; lia.
Qed.
