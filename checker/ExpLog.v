(** The upper bounds of exp and log are right. *)
Require Import ZArith QArith Qreals Reals Lra Psatz List Bool.
From Checker Require Import Definitions Numbers Compute.
Open Scope R_scope.

(** A function that is 0 at 0 and grows from there is not negative. *)
Lemma growing f f' a : (forall x, derivable_pt_lim f x (f' x)) -> f 0 = 0 -> (forall x, 0 <= x <= a -> 0 <= f' x) ->
  forall x, 0 <= x <= a -> 0 <= f x.
Proof.
  intros D Z P x H. destruct (Req_dec x 0) as [->|N]; [lra|].
  destruct (MVT_cor2 f f' 0 x) as [c [E C]]; [lra|auto|].
  assert (0 <= f' c) by (apply P; lra). assert (0 <= f' c * (x - 0)) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma derivable_scaled_pow c n x : derivable_pt_lim (fun x => c * x ^ n) x (c * (INR n * x ^ pred n)).
Proof. apply (derivable_pt_lim_scal (fun x => x ^ n) c). apply derivable_pt_lim_pow. Qed.

(** * exp *)
Fixpoint taylor (n : nat) (x : R) : R := match n with O => 0 | S k => taylor k x + / INR (fact k) * x ^ k end.
Lemma fact_pos n : 0 < INR (fact n).
Proof. apply lt_0_INR, lt_O_fact. Qed.
Lemma fact_S n : fact (S n) = (S n * fact n)%nat.
Proof. reflexivity. Qed.
Lemma fact_step n : / INR (fact (S n)) * INR (S n) = / INR (fact n).
Proof.
  change (fact (S n)) with (S n * fact n)%nat. rewrite mult_INR. pose proof (fact_pos n).
  pose proof (not_0_INR (S n) ltac:(discriminate)). field. split; auto. lra.
Qed.
Lemma taylor_deriv s n x : derivable_pt_lim (fun x => taylor (S n) (s * x)) x (s * taylor n (s * x)).
Proof.
  induction n as [|n IH].
  - simpl. apply (derivable_pt_lim_ext (fun _ => 0 + / 1 * 1)); [intros; reflexivity|]. rewrite Rmult_0_r.
    apply derivable_pt_lim_const.
  - replace (s * taylor (S n) (s * x)) with (s * taylor n (s * x) + (/ INR (fact (S n)) * s ^ S n) * (INR (S n) * x ^
    pred (S n))).
    + apply (derivable_pt_lim_ext (fun x => taylor (S n) (s * x) + (/ INR (fact (S n)) * s ^ S n) * x ^ S n)).
      { intros y. change (taylor (S (S n)) (s * y)) with (taylor (S n) (s * y) + / INR (fact (S n)) * (s * y) ^ S n).
        rewrite Rpow_mult_distr. ring. }
      apply (derivable_pt_lim_plus (fun x => taylor (S n) (s * x)) (fun x => (/ INR (fact (S n)) * s ^ S n) * x ^ S
        n)); auto.
      apply derivable_scaled_pow.
    + simpl pred. change (taylor (S n) (s * x)) with (taylor n (s * x) + / INR (fact n) * (s * x) ^ n).
      rewrite <- (fact_step n), Rpow_mult_distr. change (s ^ S n) with (s * s ^ n). ring.
Qed.
Lemma taylor_0 n : taylor (S n) 0 = 1.
Proof. induction n; [simpl; lra|]. change (taylor (S (S n)) 0) with (taylor (S n) 0 + / INR (fact (S n)) * 0 ^ S n).
  rewrite IHn, pow_i; [lra|lia]. Qed.
Lemma exp_deriv s x : derivable_pt_lim (fun x => exp (s * x)) x (s * exp (s * x)).
Proof.
  rewrite Rmult_comm. apply (derivable_pt_lim_comp (fun x => s * x) exp).
  - pose proof (derivable_pt_lim_scal id s x 1 (derivable_pt_lim_id x)) as K. rewrite Rmult_1_r in K. exact K.
  - apply derivable_pt_lim_exp.
Qed.
Lemma exp_mono a b : a <= b -> exp a <= exp b.
Proof. intros [H| ->]; [left; now apply exp_increasing|lra]. Qed.
Lemma remainder s n : s = 1 \/ s = -1 -> forall x, 0 <= x <= 1 ->
  Rabs (exp (s * x) - taylor n (s * x)) <= 3 * / INR (fact n) * x ^ n.
Proof.
  intros V. induction n as [|n IH]; intros x H.
  - simpl. rewrite Rminus_0_r, Rinv_1, Rabs_right by (left; apply exp_pos).
    assert (exp (s * x) <= exp 1) by (apply exp_mono; destruct V; subst; lra). pose proof exp_le_3. lra.
  - set (g := fun x => exp (s * x) - taylor (S n) (s * x)).
    assert (G : forall x, derivable_pt_lim g x (s * exp (s * x) - s * taylor n (s * x))).
    { intros y. apply (derivable_pt_lim_minus (fun x => exp (s * x)) (fun x => taylor (S n) (s * x)));
        [apply exp_deriv|apply taylor_deriv]. }
    assert (B : forall x, derivable_pt_lim (fun x => 3 * / INR (fact (S n)) * x ^ S n) x (3 * / INR (fact n) * x ^ n)).
    { intros y. replace (3 * / INR (fact n) * y ^ n) with (3 * / INR (fact (S n)) * (INR (S n) * y ^ pred (S n))).
      apply derivable_scaled_pow. rewrite <- (fact_step n). simpl pred. ring. }
    assert (Z : g 0 = 0) by (unfold g; rewrite Rmult_0_r, taylor_0, exp_0; lra).
    assert (I : forall y, 0 <= y <= 1 -> Rabs (s * exp (s * y) - s * taylor n (s * y)) <= 3 * / INR (fact n) * y ^ n).
    { intros y Hy. rewrite <- Rmult_minus_distr_l, Rabs_mult. replace (Rabs s) with 1. { rewrite Rmult_1_l.
      now apply IH. }
      destruct V; subst; [rewrite Rabs_right|rewrite Rabs_left]; lra. }
    apply Rabs_le. split.
    + enough (0 <= g x + 3 * / INR (fact (S n)) * x ^ S n) by (unfold g in *; lra).
      apply (growing (fun x => g x + 3 * / INR (fact (S n)) * x ^ S n)
                     (fun x => (s * exp (s * x) - s * taylor n (s * x)) + 3 * / INR (fact n) * x ^ n) 1); auto.
      * intros y. apply (derivable_pt_lim_plus g (fun x => 3 * / INR (fact (S n)) * x ^ S n)); auto.
      * rewrite Z, pow_i by lia. lra.
      * intros y Hy. specialize (I y Hy). pose proof (Rle_abs (- (s * exp (s * y) - s * taylor n (s * y)))) as A.
        rewrite Rabs_Ropp in A. lra.
    + enough (0 <= 3 * / INR (fact (S n)) * x ^ S n - g x) by (unfold g in *; lra).
      apply (growing (fun x => 3 * / INR (fact (S n)) * x ^ S n - g x)
                     (fun x => 3 * / INR (fact n) * x ^ n - (s * exp (s * x) - s * taylor n (s * x))) 1); auto.
      * intros y. apply (derivable_pt_lim_minus (fun x => 3 * / INR (fact (S n)) * x ^ S n) g); auto.
      * rewrite Z, pow_i by lia. lra.
      * intros y Hy. specialize (I y Hy). pose proof (Rle_abs (s * exp (s * y) - s * taylor n (s * y))) as A. lra.
Qed.

Fixpoint hornerR (h : R) (i : nat) (t : R) : R := match i with O => t | S k => hornerR h k (1 + t * h / INR i) end.
Lemma hornerR_taylor h i : forall t, hornerR h i t = taylor i h + t * (/ INR (fact i) * h ^ i).
Proof.
  induction i as [|i IH]; intros t; simpl hornerR.
  - simpl. lra.
  - rewrite IH. change (taylor (S i) h) with (taylor i h + / INR (fact i) * h ^ i). rewrite <- (fact_step i).
    unfold Rdiv.
    change (h ^ S i) with (h * h ^ i). change (match i with O => 1 | S _ => INR i + 1 end) with (INR (S i)).
    pose proof (not_0_INR (S i) ltac:(discriminate)). field. split; auto. pose proof (fact_pos (S i)). lra.
Qed.

Definition one_R : R := IZR ONE.
Lemma one_pos : 0 < one_R. Proof. apply IZR_lt. reflexivity. Qed.
(** A quotient that is rounded down. *)
Lemma div_R a b : (0 < b)%Z -> IZR a / IZR b - 1 <= IZR (a / b) <= IZR a / IZR b.
Proof.
  intros H. pose proof (Z.mul_div_le a b H) as L. pose proof (Z.mul_succ_div_gt a b H) as G.
  apply IZR_le in L. apply IZR_lt in G. rewrite mult_IZR in *. rewrite succ_IZR in G. apply IZR_lt in H.
  assert (E : IZR a / IZR b * IZR b = IZR a) by (field; lra).
  split; apply Rmult_le_reg_r with (IZR b); auto; lra.
Qed.
Opaque ONE.
Lemma horner_near h i : (0 < ONE)%Z -> Rabs (IZR h) <= one_R / 4096 -> forall t tr, Rabs (IZR t - one_R * tr) <= 2 ->
  Rabs (IZR (horner h i t) - one_R * hornerR (IZR h / one_R) i tr) <= 2.
Proof.
  intros O H. pose proof one_pos as P. induction i as [|i IH]; intros t tr T; [exact T|]. cbn [horner hornerR].
    apply IH.
  rewrite plus_IZR. fold one_R. rewrite Z.div_div by lia.
  assert (N : 1 <= INR (S i)) by (rewrite S_INR; pose proof (pos_INR i); lra).
  set (n := INR (S i)) in *.
  assert (D : IZR (ONE * Z.of_nat (S i)) = one_R * n) by (rewrite mult_IZR, <- INR_IZR_INZ; reflexivity).
  destruct (div_R (t * h) (ONE * Z.of_nat (S i))) as [D1 D2]; [lia|]. rewrite D, mult_IZR in *.
  set (q := IZR (t * h / (ONE * Z.of_nat (S i)))) in *. set (x := IZR h / one_R). set (d := IZR t - one_R * tr) in *.
  assert (E : IZR t * IZR h / (one_R * n) - one_R * (tr * x / n) = d * x / n).
  { unfold d, x. field. lra. }
  assert (X : Rabs x <= / 4096).
  { unfold x, Rdiv. rewrite Rabs_mult, (Rabs_right (/ one_R)) by (left; now apply Rinv_0_lt_compat).
    apply Rmult_le_reg_r with one_R; auto. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  assert (F : Rabs (d * x / n) <= 1).
  { unfold Rdiv. rewrite !Rabs_mult, (Rabs_right (/ n)) by (left; apply Rinv_0_lt_compat; lra).
    pose proof (Rabs_pos d). pose proof (Rabs_pos x).
    assert (/ n <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
    assert (0 <= / n) by (left; apply Rinv_0_lt_compat; lra).
    assert (Rabs d * Rabs x <= 2 * / 4096) by (apply Rmult_le_compat; lra). nra. }
  replace (one_R + q - one_R * (1 + tr * x / n)) with (q - one_R * (tr * x / n)) by ring.
  apply Rabs_le. pose proof (Rle_abs (d * x / n)). pose proof (Rle_abs (- (d * x / n))). rewrite Rabs_Ropp in *. lra.
Qed.

Lemma ceil_div a : (0 < ONE)%Z -> IZR a / one_R <= IZR (- (- a / ONE)).
Proof.
  intros O. rewrite opp_IZR. destruct (div_R (- a) ONE O) as [_ H]. fold one_R in H. rewrite opp_IZR in H.
    unfold Rdiv in *. lra.
Qed.
Lemma squares_up n : (0 < ONE)%Z -> forall t x, exp x <= IZR t / one_R -> exp (2 ^ n * x) <= IZR (squares n t) / one_R.
Proof.
  intros O. pose proof one_pos as P. induction n as [|n IH]; intros t x H; simpl squares.
  - simpl. now rewrite Rmult_1_l.
  - replace (2 ^ S n * x) with (2 ^ n * (x + x)) by (simpl; lra). apply IH. rewrite exp_plus. pose proof (exp_pos x).
    apply Rle_trans with (IZR t / one_R * (IZR t / one_R)); [nra|].
    pose proof (ceil_div (t * t) O) as C. rewrite <- Z.mul_opp_l in C.
    rewrite mult_IZR in C. unfold Rdiv in *. pose proof (Rinv_0_lt_compat _ P). nra.
Qed.
Lemma Q2R_wide n : Q2R (n # WIDE) = IZR n / one_R. Proof. reflexivity. Qed.
Transparent ONE.
Lemma one_value : one_R = 2 ^ 272.
Proof. unfold one_R, ONE. now rewrite (pow_IZR 2 272). Qed.
Lemma fact_large n : 2 ^ n <= INR (fact (S n)).
Proof.
  induction n; [simpl; lra|]. change (fact (S (S n))) with (S (S n) * fact (S n))%nat. rewrite mult_INR.
  assert (2 <= INR (S (S n))) by (rewrite !S_INR; pose proof (pos_INR n); lra).
  change (2 ^ S n) with (2 * 2 ^ n). pose proof (pow_le 2 n). apply Rmult_le_compat; lra.
Qed.

Opaque fact.
Theorem exp_up_sound x q : exp_up x = Some q -> exp (Q2R x) <= Q2R q.
Proof.
  unfold exp_up. destruct (qlt x 4096); [|discriminate]. set (h := ceil _ _).
  destruct (Z.abs h <=? SMALL)%Z eqn:S; [|discriminate]. intros H. apply some_inj in H. subst q. apply Z.leb_le in S.
  rewrite Q2R_wide. pose proof one_pos as P.
  assert (X : Q2R x <= 2 ^ 24 * (IZR h / one_R)).
  { pose proof (ceil_le (qmax x (- (4096))) FINE) as C. fold h in C. rewrite Q2R_qmax in C.
    pose proof (Rmax_l (Q2R x) (Q2R (- (4096)))). eapply Rle_trans; [exact H|]. eapply Rle_trans; [exact C|].
    unfold Q2R. cbn [Qnum Qden]. unfold FINE. rewrite one_value.
    change (IZR (Zpos (2 ^ 248))) with (IZR (2 ^ Z.of_nat 248)). rewrite <- pow_IZR.
    right. replace 272%nat with (248 + 24)%nat by reflexivity. rewrite pow_add.
    field. }
  eapply Rle_trans; [apply exp_mono, X|]. apply squares_up; [reflexivity|].
  set (y := IZR h / one_R) in *.
  assert (A : Rabs (IZR h) <= one_R / 4096).
  { rewrite <- abs_IZR. apply IZR_le in S. rewrite one_value. eapply Rle_trans; [exact S|].
    change SMALL with (2 ^ Z.of_nat 260)%Z.
    rewrite <- pow_IZR. replace 272%nat with (260 + 12)%nat by reflexivity. rewrite pow_add.
    right. assert (2 ^ 12 = 4096) by (simpl; lra). rewrite H. lra. }
  assert (Y : Rabs y <= / 2 ^ 12).
  { unfold y, Rdiv. rewrite Rabs_mult, (Rabs_right (/ one_R)) by (left; now apply Rinv_0_lt_compat).
    apply Rmult_le_reg_r with one_R; auto. rewrite Rmult_assoc, Rinv_l by lra.
    assert (E : 2 ^ 12 = 4096) by (simpl; lra). rewrite E. lra. }
  assert (T : Rabs (IZR (horner h 20 ONE) - one_R * hornerR y 20 1) <= 2).
  { apply horner_near; [reflexivity|exact A|]. rewrite Rmult_1_r. unfold one_R.
    rewrite Rminus_diag_eq, Rabs_R0 by reflexivity. lra. }
  rewrite hornerR_taylor, Rmult_1_l in T.
  change (taylor 20 y + / INR (fact 20) * y ^ 20) with (taylor 21 y) in T.
  assert (G : exp y <= taylor 21 y + / one_R).
  { assert (exists s u, (s = 1 \/ s = -1) /\ 0 <= u <= / 2 ^ 12 /\ y = s * u) as (s & u & Hs & Hu & ->).
    { destruct (Rle_lt_dec 0 y).
      - exists 1, y. rewrite Rabs_right in Y by lra. split; [now left|]. split; [lra|ring].
      - exists (-1), (- y). rewrite Rabs_left in Y by lra. split; [now right|]. split; [lra|ring]. }
    assert (B : / 2 ^ 12 <= 1) by (simpl; lra).
    pose proof (remainder s 21 Hs u ltac:(lra)) as K. pose proof (Rle_abs (exp (s * u) - taylor 21 (s * u))) as L.
    enough (3 * / INR (fact 21) * u ^ 21 <= / one_R) by lra.
    assert (U : u ^ 21 <= / 2 ^ 252).
    { eapply Rle_trans; [apply pow_incr; exact Hu|]. rewrite pow_inv, <- pow_mult. right. reflexivity. }
    assert (F : / INR (fact 21) <= / (2 ^ 20 * 3)).
    { apply Rinv_le_contravar; [simpl; lra|]. rewrite fact_S, mult_INR.
      pose proof (fact_large 19). assert (INR 21 = 21) by (simpl; lra). rewrite H0. change (2 ^ 20) with (2 * 2 ^ 19).
      pose proof (pow_lt 2 19 ltac:(lra)). lra. }
    rewrite one_value. replace 272%nat with (20 + 252)%nat by reflexivity. rewrite pow_add.
    replace (/ (2 ^ 20 * 2 ^ 252)) with (3 * / (2 ^ 20 * 3) * / 2 ^ 252) by (field; split; apply pow_nonzero; lra).
    apply Rmult_le_compat; try lra.
    - pose proof (fact_pos 21). pose proof (Rinv_0_lt_compat _ H). lra.
    - apply pow_le. lra. }
  rewrite plus_IZR. pose proof (Rle_abs (- (IZR (horner h 20 ONE) - one_R * taylor 21 y))) as M. rewrite Rabs_Ropp in M.
  apply Rmult_le_reg_r with one_R; auto. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra.
  apply (Rmult_le_compat_r one_R) in G; [|lra]. rewrite Rmult_plus_distr_r, Rinv_l in G by lra. lra.
Qed.

(** * log *)
Fixpoint mercator (n : nat) (e : R) : R :=   (* 1 - e/2 + e^2/3 - ..., n summands *)
  match n with O => 0 | S k => mercator k e + (- e) ^ k / INR (S k) end.
Fixpoint geometric (n : nat) (e : R) : R := match n with O => 0 | S k => geometric k e + (- e) ^ k end.
Lemma geometric_sum n e : geometric n e * (1 + e) = 1 - (- e) ^ n.
Proof. induction n; simpl; [lra|]. rewrite Rmult_plus_distr_r, IHn. ring. Qed.
Lemma mercator_deriv n e : derivable_pt_lim (fun e => e * mercator n e) e (geometric n e).
Proof.
  induction n as [|n IH].
  - simpl. apply (derivable_pt_lim_ext (fun _ => 0)); [intros; ring|]. apply derivable_pt_lim_const.
  - set (c := (-1) ^ n / INR (S n)).
    assert (P : forall e, (- e) ^ n = (-1) ^ n * e ^ n) by (intros y; rewrite <- Rpow_mult_distr; f_equal; ring).
    apply (derivable_pt_lim_ext (fun e => e * mercator n e + c * e ^ S n)).
    { intros y. cbn [mercator]. rewrite P. unfold c. simpl pow. unfold Rdiv. ring. }
    cbn [geometric]. replace ((- e) ^ n) with (c * (INR (S n) * e ^ pred (S n))).
    + apply (derivable_pt_lim_plus (fun e => e * mercator n e) (fun e => c * e ^ S n)); auto.
      apply derivable_scaled_pow.
    + rewrite P. unfold c. simpl pred. pose proof (not_0_INR (S n) ltac:(discriminate)). field. auto.
Qed.
Lemma log_series e : -1 < e -> ln (1 + e) <= e * mercator 11 e.
Proof.
  intros H. enough (0 <= e * mercator 11 e - ln (1 + e)) by lra.
  set (f := fun e => e * mercator 11 e - ln (1 + e)). change (0 <= f e).
  assert (D : forall x, -1 < x -> derivable_pt_lim f x (geometric 11 x - / (1 + x))).
  { intros x Hx. apply (derivable_pt_lim_minus (fun e => e * mercator 11 e) (fun e => ln (1 + e)));
    [apply mercator_deriv|].
    rewrite <- (Rmult_1_r (/ (1 + x))). apply (derivable_pt_lim_comp (fun e => 1 + e) ln).
    - pose proof (derivable_pt_lim_plus (fun _ => 1) id x 0 1 (derivable_pt_lim_const 1 x) (derivable_pt_lim_id x)) as
      K.
      rewrite Rplus_0_l in K. exact K.
    - apply derivable_pt_lim_ln. lra. }
  assert (V : forall x, -1 < x -> geometric 11 x - / (1 + x) = x ^ 11 * / (1 + x)).
  { intros x Hx. apply Rmult_eq_reg_r with (1 + x); [|lra]. rewrite Rmult_minus_distr_r, geometric_sum.
    rewrite Rmult_assoc, Rinv_l by lra. ring. }
  assert (Z : f 0 = 0) by (unfold f; rewrite Rplus_0_r, ln_1; ring).
  destruct (Rtotal_order e 0) as [N|[->|N]]; [|lra|].
  - destruct (MVT_cor2 f (fun x => geometric 11 x - / (1 + x)) e 0) as [c [E C]]; [lra|intros; apply D; lra|].
    rewrite V in E by lra. pose proof (Rinv_0_lt_compat (1 + c)).
    assert (c ^ 11 <= 0). { replace (c ^ 11) with (- ((- c) ^ 11)) by ring. pose proof (pow_le (- c) 11). lra. }
    assert (0 <= - (c ^ 11) * / (1 + c)) by (apply Rmult_le_pos; lra).
    assert (0 <= - (c ^ 11) * / (1 + c) * (0 - e)) by (apply Rmult_le_pos; lra). lra.
  - destruct (MVT_cor2 f (fun x => geometric 11 x - / (1 + x)) 0 e) as [c [E C]]; [lra|intros; apply D; lra|].
    rewrite V in E by lra. pose proof (Rinv_0_lt_compat (1 + c)). pose proof (pow_le c 11).
    assert (0 <= c ^ 11 * / (1 + c)) by (apply Rmult_le_pos; lra).
    assert (0 <= c ^ 11 * / (1 + c) * (e - 0)) by (apply Rmult_le_pos; lra). lra.
Qed.
Fixpoint seriesR (e : R) (i : nat) (s : R) : R := match i with O => s | S k => seriesR e k (1 / INR (S k) - e * s) end.
Lemma seriesR_mercator e i : forall s, seriesR e i s = mercator i e + (- e) ^ i * s.
Proof.
  induction i as [|i IH]; intros s; cbn [seriesR mercator]; [simpl; ring|]. rewrite IH. simpl pow. unfold Rdiv. ring.
Qed.
Opaque ONE.
Lemma series_near e i : (0 < ONE)%Z -> Rabs (IZR e) <= one_R / 4 -> forall s sr, Rabs (IZR s - one_R * sr) <= 2 ->
  Rabs (IZR (series e i s) - one_R * seriesR (IZR e / one_R) i sr) <= 2.
Proof.
  intros O H. pose proof one_pos as P. induction i as [|i IH]; intros s sr T; [exact T|]. cbn [series seriesR].
    apply IH.
  rewrite minus_IZR. destruct (div_R ONE (Z.of_nat (S i))) as [D1 D2]; [lia|]. rewrite <- INR_IZR_INZ in *.
    fold one_R in *.
  destruct (div_R (e * s) ONE) as [E1 E2]; [exact O|]. fold one_R in *. rewrite mult_IZR in *.
  set (n := INR (S i)) in *. set (p := IZR (ONE / Z.of_nat (S i))) in *. set (q := IZR (e * s / ONE)) in *.
  set (x := IZR e / one_R). set (d := IZR s - one_R * sr) in *.
  assert (N : n <> 0) by (unfold n; apply not_0_INR; discriminate).
  assert (E : IZR e * IZR s / one_R = x * d + one_R * (x * sr)) by (unfold x, d; field; lra).
  assert (F : Rabs (x * d) <= / 2).
  { rewrite Rabs_mult. unfold x, Rdiv. rewrite Rabs_mult, (Rabs_right (/ one_R)) by (left; now apply Rinv_0_lt_compat).
    assert (Rabs (IZR e) * / one_R <= / 4).
    { apply Rmult_le_reg_r with one_R; auto. rewrite Rmult_assoc, Rinv_l by lra. lra. }
    replace (/ 2) with (/ 4 * 2) by lra. apply Rmult_le_compat; auto using Rabs_pos.
    rewrite <- (Rabs_right (/ one_R)) by (left; now apply Rinv_0_lt_compat). rewrite <- Rabs_mult. apply Rabs_pos. }
  replace (p - q - one_R * (1 / n - x * sr)) with (p - one_R / n - (q - one_R * (x * sr))) by (unfold Rdiv; ring).
  rewrite E in *. pose proof (Rle_abs (x * d)). pose proof (Rle_abs (- (x * d))). rewrite Rabs_Ropp in *.
  apply Rabs_le. lra.
Qed.
Lemma roots_up n : (0 < ONE)%Z -> forall y, (1 <= y)%Z ->
  (1 <= roots n y)%Z /\ ln (IZR y / one_R) <= 2 ^ n * ln (IZR (roots n y) / one_R).
Proof.
  intros O. pose proof one_pos as P. induction n as [|n IH]; intros y Y; cbn [roots].
  - simpl. split; auto. lra.
  - assert (S : (y * ONE <= Z.sqrt_up (y * ONE) * Z.sqrt_up (y * ONE) /\ 1 <= Z.sqrt_up (y * ONE))%Z).
    { pose proof (Z.sqrt_up_spec (y * ONE)). unfold Z.succ in *. nia. }
    destruct S as [S1 S2]. set (s := Z.sqrt_up (y * ONE)) in *. destruct (IH s S2) as [I1 I2]. split; auto.
    change (2 ^ Datatypes.S n) with (2 * 2 ^ n). apply Rle_trans with (2 * ln (IZR s / one_R)); [|lra].
    apply IZR_le in S1, S2, Y. rewrite !mult_IZR in S1. fold one_R in S1.
    assert (Y0 : 0 < IZR y / one_R) by (apply Rdiv_lt_0_compat; lra).
    assert (S0 : 0 < IZR s / one_R) by (apply Rdiv_lt_0_compat; lra).
    replace (2 * ln (IZR s / one_R)) with (ln (IZR s / one_R * (IZR s / one_R))) by (rewrite ln_mult; lra).
    assert (K : IZR y / one_R <= IZR s / one_R * (IZR s / one_R)).
    { apply Rmult_le_reg_r with (one_R * one_R); [nra|].
      replace (IZR y / one_R * (one_R * one_R)) with (IZR y * one_R) by (field; lra).
      replace (IZR s / one_R * (IZR s / one_R) * (one_R * one_R)) with (IZR s * IZR s) by (field; lra). exact S1. }
    destruct K as [K|K]; [left; now apply ln_increasing|rewrite K; lra].
Qed.
Transparent ONE.
Lemma log_core (e s : Z) (m : R) : Rabs (IZR s - one_R * m) <= 2 ->
  2 ^ 24 * (IZR e / one_R * m) <= Q2R (e * s + 4 * Z.abs e # LOG).
Proof.
  intros S. pose proof one_pos as P.
  assert (Q : Q2R (e * s + 4 * Z.abs e # LOG) = (IZR e * IZR s + 4 * Rabs (IZR e)) / (one_R * one_R) * 2 ^ 24).
  { unfold Q2R. cbn [Qnum Qden]. rewrite plus_IZR, !mult_IZR, abs_IZR. unfold LOG.
    change (IZR (Zpos (2 ^ 520))) with (IZR (2 ^ Z.of_nat 520)). rewrite <- pow_IZR, one_value.
    replace (2 ^ 272 * 2 ^ 272) with (2 ^ 520 * 2 ^ 24).
    - field.
    - rewrite <- !pow_add. reflexivity. }
  rewrite Q. rewrite Rmult_comm. apply Rmult_le_compat_r; [apply pow_le; lra|].
  apply Rmult_le_reg_r with (one_R * one_R); [nra|].
  replace ((IZR e * IZR s + 4 * Rabs (IZR e)) / (one_R * one_R) * (one_R * one_R))
    with (IZR e * IZR s + 4 * Rabs (IZR e)) by (field; lra).
  replace (IZR e / one_R * m * (one_R * one_R)) with (IZR e * (one_R * m)) by (field; lra).
  assert (K : IZR e * (one_R * m - IZR s) <= Rabs (IZR e) * 2).
  { eapply Rle_trans; [apply prod_le|]. apply Rmult_le_compat_l; [apply Rabs_pos|]. rewrite Rabs_minus_sym. exact S. }
  pose proof (Rabs_pos (IZR e)). lra.
Qed.
Lemma quarter_R e : (Z.abs e <= QUARTER)%Z -> Rabs (IZR e) <= one_R / 4.
Proof.
  intros A. rewrite <- abs_IZR. apply IZR_le in A. eapply Rle_trans; [exact A|]. rewrite one_value.
  change QUARTER with (2 ^ Z.of_nat 270)%Z. rewrite <- pow_IZR. replace 272%nat with (270 + 2)%nat by reflexivity.
  rewrite pow_add. simpl (2 ^ 2). lra.
Qed.
Opaque ONE roots series mercator LOG QUARTER LARGE.
Theorem log_up_sound x q : log_up x = Some q -> 0 < Q2R x -> ln (Q2R x) <= Q2R q.
Proof.
  unfold log_up. pose proof (ceil_le x WIDE) as XY. set (y := ceil x WIDE) in *. clearbody y. rewrite Q2R_wide in XY.
  destruct (_ && _) eqn:B; [|discriminate]. apply andb_true_iff in B. destruct B as [B _]. apply Z.leb_le in B.
  pose proof one_pos as P. assert (O : (0 < ONE)%Z) by (apply lt_IZR; exact P).
  destruct (roots_up 24 O y B) as [R1 R2]. set (r := roots 24 y) in *. clearbody r. cbv zeta.
  destruct (Z.abs (r - ONE) <=? QUARTER)%Z eqn:A; [|discriminate].
  intros H X. apply some_inj in H. subst q. apply Z.leb_le in A. apply quarter_R in A.
  apply Rle_trans with (2 ^ 24 * ln (IZR r / one_R)).
  { eapply Rle_trans; [|exact R2]. destruct XY as [K|K]; [left; now apply ln_increasing|rewrite K; lra]. }
  assert (E : IZR r / one_R = 1 + IZR (r - ONE) / one_R).
  { rewrite minus_IZR. fold one_R. field. lra. }
  apply IZR_le in R1.
  assert (E1 : -1 < IZR (r - ONE) / one_R). { assert (0 < IZR r / one_R) by (apply Rdiv_lt_0_compat; lra). lra. }
  rewrite E. pose proof (log_series _ E1) as L.
  pose proof (series_near (r - ONE) 11 O A 0 0) as S. rewrite Rmult_0_r, Rminus_0_r, Rabs_R0 in S.
    specialize (S ltac:(lra)).
  rewrite seriesR_mercator, Rmult_0_r, Rplus_0_r in S. apply (log_core (r - ONE)) in S.
  apply Rle_trans with (2 ^ 24 * (IZR (r - ONE) / one_R * mercator 11 (IZR (r - ONE) / one_R))); [|exact S].
  apply Rmult_le_compat_l; [apply pow_le; lra|exact L].
Qed.
