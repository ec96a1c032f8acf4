(** Of each loss and penalty: Fenchel and Young, the upper bound of the value, and what happens along a direction. *)
Require Import ZArith QArith Qabs Qreals Reals Lra Psatz List Bool.
From Checker Require Import Definitions Numbers Compute ExpLog.
Import ListNotations.
Open Scope R_scope.

Lemma guard_some c q r : guard c q = Some r -> c = true /\ r = q.
Proof. unfold guard. destruct c; intros H; [apply some_inj in H|discriminate H]; auto. Qed.
Ltac guards :=
  repeat match goal with H : guard _ _ = Some _ |- _ => apply guard_some in H; destruct H; subst end; some; bools.
Lemma half_R q : Q2R (half q) = Q2R q / 2.
Proof. unfold half. autorewrite with q2r. lra. Qed.
Lemma sq_R q : Q2R (sq q) = square (Q2R q).
Proof. unfold sq, square. now autorewrite with q2r. Qed.
Global Hint Rewrite half_R sq_R : q2r.
Lemma plus_opt_some a b q : plus_opt a b = Some q -> exists x y, a = Some x /\ b = Some y /\ Q2R q = Q2R x + Q2R y.
Proof.
  destruct a as [x|], b as [y|]; simpl; intros H; try discriminate. apply some_inj in H. subst.
  exists x, y. rewrite Q2R_qadd. auto.
Qed.
Lemma square_pos x : 0 <= x * x. Proof. exact (Rle_0_sqr x). Qed.

(** * Entropy *)
Lemma ln_le t : 0 < t -> ln t <= t - 1.
Proof. intros H. pose proof (exp_ineq1_le (ln t)). rewrite exp_ln in H0 by auto. lra. Qed.
Lemma gibbs a q : 0 < a -> 0 <= q -> q * ln a - q * ln q <= a - q.
Proof.
  intros A [Q| <-]; [|lra]. assert (T : 0 < a / q) by (apply Rdiv_lt_0_compat; lra). pose proof (ln_le _ T) as L.
  unfold Rdiv in L. rewrite ln_mult, ln_Rinv in L by (auto; now apply Rinv_0_lt_compat).
  apply (Rmult_le_compat_l q) in L; [|lra].
  replace (q * (a * / q - 1)) with (a - q) in L by (field; lra). lra.
Qed.
Lemma entropy_sound q e : entropy q = Some e -> 0 <= Q2R q /\ Q2R q * ln (Q2R q) <= Q2R e.
Proof.
  unfold entropy. destruct (qzero q) eqn:Z.
  - intros H. some. bools. rewrite Z. lra.
  - destruct (qlt 0 q) eqn:P; [|discriminate]. destruct (log_up q) eqn:L; [|discriminate]. intros H. some. bools.
    pose proof (log_up_sound _ _ L P). split; [lra|]. apply Rmult_le_compat_l; lra.
Qed.
Lemma sum_entropy E : 0 < E -> forall p z e, sum_opt entropy p = Some e -> length p = length z ->
  dot (RV p) z - ln E * total (RV p) <= Q2R e + total (map exp z) / E - total (RV p).
Proof.
  intros HE. induction p as [|q p IH]; intros [|x z] e H L; try discriminate; simpl in H |- *.
  - some. rewrite Q2R_0. lra.
  - apply plus_opt_some in H. destruct H as (a & b & Ha & Hb & ->). injection L as L. specialize (IH z b Hb L).
    apply entropy_sound in Ha. destruct Ha as [Q A]. fold (RV p).
    pose proof (gibbs (exp x / E) (Q2R q) ltac:(apply Rdiv_lt_0_compat; auto using exp_pos) Q) as G.
    unfold Rdiv in G. rewrite ln_mult, ln_exp, ln_Rinv in G by (auto using exp_pos, Rinv_0_lt_compat).
      unfold Rdiv in *. lra.
Qed.
Lemma bump_dot b : forall y z, (y < length z)%nat -> length b = length z ->
  dot (RV (bump y b)) z = dot (RV b) z + nth y z 0.
Proof.
  induction b as [|v b IH]; intros [|y] [|x z] Y L; simpl in *; try lia; autorewrite with q2r; [lra|].
  fold (RV (bump y b)) (RV b). rewrite IH by lia. lra.
Qed.
Lemma bump_total b : forall y, (y < length b)%nat -> total (RV (bump y b)) = total (RV b) + 1.
Proof.
  induction b as [|v b IH]; intros [|y] Y; simpl in *; try lia; autorewrite with q2r; [lra|].
  fold (RV (bump y b)) (RV b). rewrite IH by lia. lra.
Qed.
Lemma bump_length b : forall y, length (bump y b) = length b.
Proof. induction b; intros [|y]; simpl; auto. Qed.
Lemma total_exp_pos z : (1 <= length z)%nat -> 0 < total (map exp z).
Proof.
  destruct z as [|x z]; simpl; [lia|]. intros _. pose proof (exp_pos x). enough (0 <= total (map exp z)) by lra.
  induction z; simpl; [lra|]. pose proof (exp_pos a). lra.
Qed.

(** * Fenchel and Young *)
Lemma norm2_le b c : 0 <= c -> dot b b <= c * c -> norm2 b <= c.
Proof. intros H1 H2. rewrite <- (sqrt_square c) by auto. apply sqrt_le_1; auto using dot_self_pos. nra. Qed.
Lemma mean_fy y : forall b z, length z = length y ->
  dot (RV b) z <= dot (minus z y) (minus z y) / 2 + dot (RV b) (RV b) / 2 + dot (RV b) (RV y).
Proof.
  induction y as [|t y IH]; intros b [|x z] L; try discriminate.
  - destruct b; simpl; [lra|]. pose proof (dot_self_pos (RV b)). fold (RV b). pose proof (square_pos (Q2R q)). lra.
  - injection L as L. destruct b as [|v b]; simpl.
    + pose proof (dot_self_pos (minus z y)). pose proof (square_pos (x - Q2R t)). lra.
    + fold (RV b) (RV y). specialize (IH b z L). pose proof (square_pos (x - Q2R t - Q2R v)). nra.
Qed.
Lemma push_fy s : forall b z q, push b s = Some q -> Forall2 (fun x b => above (fst b) x /\ below x (snd b)) z s ->
  dot (RV b) z <= Q2R q.
Proof.
  induction s as [|[l h] s IH]; intros [|v b] z q H D; simpl in H; try discriminate.
  - some. inversion D. simpl. bools. lra.
  - apply plus_opt_some in H. destruct H as (e & p & He & Hp & ->). inversion D as [|x ? z' ? [Dl Dh] D' E1 E2]. subst.
    specialize (IH _ _ _ Hp D'). simpl. fold (RV b). simpl in Dl, Dh.
    enough (Q2R v * x <= Q2R e) by lra.
    destruct (qzero v) eqn:Z; [some; bools; rewrite Z; lra|].
    destruct (qlt 0 v) eqn:V.
    + destruct h; [|discriminate]. some. bools. simpl in Dh. nra.
    + destruct l; [|discriminate]. some. unfold qlt in V. apply negb_false_iff in V. apply qle_R in V. bools.
      simpl in Dl. nra.
Qed.
Lemma hub_fy d B r : 0 <= B -> B <= d -> 0 <= r -> B * r <= hub d r + B * B / 2.
Proof.
  intros. unfold hub. destruct (Rle_dec r d).
  - pose proof (square_pos (B - r)). lra.
  - pose proof (square_pos (d - B)). assert (0 <= (d - B) * (r - d)) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma abs_sq x : Rabs x * Rabs x = x * x.
Proof. rewrite <- Rabs_mult. apply Rabs_right. pose proof (square_pos x). lra. Qed.
Lemma sign_cases y : Qeq_bool y 1 || Qeq_bool y (-(1)) = true -> Q2R y = 1 \/ Q2R y = -1.
Proof.
  intros H. apply orb_true_iff in H. destruct H as [H|H]; apply Qeq_R in H; autorewrite with q2r in H; [left|right];
    lra.
Qed.
Lemma one_number (z : list R) : one (length z) = true -> exists x, z = [x].
Proof. unfold one. destruct z as [|x [|? ?]]; simpl; try discriminate. eauto. Qed.

Definition is_quadratic (f : func) : bool := match f with Quadratic _ => true | _ => false end.
Ltac scalar b z S H :=
  let v := fresh "v" in
  destruct b as [|v [|? ?]]; simpl in H; try discriminate; try (apply andb_true_iff in S; destruct S as [S S']);
  let x := fresh "x" in
  match goal with S : one (length z) = true |- _ => destruct (one_number _ S) as [x ->] end; simpl.

Theorem fenchel_young f b z q : is_quadratic f = false -> suits f (length z) = true -> length b = length z ->
  conjugate f b = Some q -> dom f z -> dot (RV b) z <= val f z + Q2R q.
Proof.
  destruct f; intros NQ S L H D; cbn [suits dom] in S, D; try discriminate NQ.
  - (* squared *) scalar b z S H. bools. some. unfold square. autorewrite with q2r.
    pose proof (square_pos (x - Q2R y - Q2R v)). lra.
  - (* mean *) simpl in H. some. autorewrite with q2r. rewrite !dotQ_R. simpl. apply Nat.eqb_eq in S.
    pose proof (mean_fy y b z ltac:(auto)). lra.
  - (* logistic *) scalar b z S H. apply sign_cases in S'.
    apply plus_opt_some in H. destruct H as (e1 & e2 & H1 & H2 & ->). apply entropy_sound in H1, H2.
      autorewrite with q2r in *.
    destruct H1 as [P1 H1], H2 as [P2 H2].
    set (Y := Q2R y) in *. set (s := - Y * x) in *. set (p := - Y * Q2R v) in *. pose proof (exp_pos s) as Es.
    set (E := 1 + exp s) in *. assert (HE : 0 < E) by (unfold E; lra).
    pose proof (gibbs (exp s / E) p ltac:(apply Rdiv_lt_0_compat; lra) P1) as G1.
    pose proof (gibbs (/ E) (1 + Y * Q2R v) ltac:(now apply Rinv_0_lt_compat) P2) as G2.
    unfold Rdiv in G1. rewrite ln_mult, ln_exp in G1 by (auto using Rinv_0_lt_compat).
      rewrite ln_Rinv in G1, G2 by auto.
    assert (F : exp s * / E + / E = 1). { unfold E in *. field. lra. }
    assert (V : Q2R v * x = p * s). { unfold p, s. destruct S' as [-> | ->]; ring. }
    assert (W : 1 + Y * Q2R v = 1 - p) by (unfold p; ring). rewrite W in *. lra.
  - (* poisson *) scalar b z S H.
    apply plus_opt_some in H. destruct H as (e1 & e2 & H1 & H2 & ->). apply entropy_sound in H1. some. bools.
      destruct H1 as [P1 H1].
    pose proof (gibbs (exp x) _ (exp_pos x) P1) as G. rewrite ln_exp in G. lra.
  - (* huber *) scalar b z S H. guards.
    pose proof (hub_fy (Q2R delta) (Rabs (Q2R v)) (Rabs (x - Q2R y)) (Rabs_pos _) H (Rabs_pos _)).
    pose proof (prod_le (Q2R v) (x - Q2R y)). pose proof (abs_sq (Q2R v)). lra.
  - (* quantile *) apply andb_true_iff in S. destruct S as [S S2]. scalar b z S H. guards. set (r := x - Q2R y).
    pose proof (Rmax_l (- Q2R tau * r) (Q2R (rest tau) * r)). pose proof (Rmax_r (- Q2R tau * r) (Q2R (rest tau) * r)).
    assert (Q2R v * r <= Rmax (- Q2R tau * r) (Q2R (rest tau) * r)); [|unfold r in *; lra].
    destruct (Rle_lt_dec 0 r); nra.
  - (* multinomial *) simpl in H. destruct (qzero (totalQ b)) eqn:Z; [|discriminate].
    apply andb_true_iff in S. destruct S as [S1 S2]. apply Nat.leb_le in S1. apply Nat.ltb_lt in S2.
    apply qzero_R in Z. rewrite totalQ_R in Z. set (E := total (map exp z)).
      assert (HE : 0 < E) by (apply total_exp_pos; lia).
    pose proof (sum_entropy E HE _ z _ H ltac:(now rewrite bump_length)) as K. fold E in K.
    rewrite bump_dot, bump_total in K by lia. rewrite Z in K. unfold Rdiv in K. rewrite Rinv_r in K by lra. simpl.
      fold E. lra.
  - (* hinge *) scalar b z S H. apply sign_cases in S'. guards.
    pose proof (Rmax_l 0 (1 - Q2R y * x)). pose proof (Rmax_r 0 (1 - Q2R y * x)).
    set (m := Rmax 0 (1 - Q2R y * x)) in *.
    set (g := Q2R v * Q2R y) in *. assert (E : Q2R v * x = g * (Q2R y * x)) by (unfold g; destruct S' as [-> | ->];
      ring).
    rewrite E. set (yx := Q2R y * x) in *.
    assert (0 <= - g * (m - (1 - yx))) by (apply Rmult_le_pos; lra).
    assert (0 <= (1 + g) * m) by (apply Rmult_le_pos; lra). lra.
  - (* squared hinge *) scalar b z S H. apply sign_cases in S'. guards. unfold square.
    pose proof (Rmax_l 0 (1 - Q2R y * x)). pose proof (Rmax_r 0 (1 - Q2R y * x)).
    set (m := Rmax 0 (1 - Q2R y * x)) in *.
    set (g := Q2R v * Q2R y) in *. assert (E : Q2R v * x = g * (Q2R y * x)) by (unfold g; destruct S' as [-> | ->];
      ring).
    assert (F : Q2R v * Q2R v = g * g) by (unfold g; destruct S' as [-> | ->]; ring).
    rewrite E. set (yx := Q2R y * x) in *. pose proof (square_pos (m + g)).
    assert (0 <= - g * (m - (1 - yx))) by (apply Rmult_le_pos; lra).
    replace (Q2R v * (Q2R v / 2 + Q2R y)) with (g * g / 2 + g) by (rewrite <- F; unfold g; field). lra.
  - (* expectile *) apply andb_true_iff in S. destruct S as [S S2]. scalar b z S H. guards. unfold square, Qdiv.
    autorewrite with q2r.
    set (r := x - Q2R y). set (t := Q2R tau) in *. set (u := Q2R (rest tau)) in *. set (V := Q2R v) in *.
    assert (A : forall s, 0 < s -> V * r <= s * (r * r) / 2 + V * (V / 2 * / s)).
    { intros s Hs. pose proof (square_pos (s * r - V)). apply Rmult_le_reg_l with s; auto.
      replace (s * (s * (r * r) / 2 + V * (V / 2 * / s))) with (s * s * (r * r) / 2 + V * V / 2) by (field; lra). lra. }
    assert (B : forall s, 0 < s -> 0 <= V * (V / 2 * / s)).
    { intros s Hs. pose proof (Rinv_0_lt_compat _ Hs). pose proof (square_pos V).
      replace (V * (V / 2 * / s)) with (V * V * (/ s / 2)) by (field; lra). apply Rmult_le_pos; lra. }
    pose proof (square_pos r).
    destruct (qlt v 0) eqn:N.
    + bools. fold V in N. rewrite (Q2R_inv tau) by exact S'. fold t. specialize (A t S'). specialize (B t S').
      destruct (Rlt_dec r 0); [unfold r in *; lra|].
      assert (V * r <= 0) by nra. assert (0 <= u * (r * r)) by (apply Rmult_le_pos; lra). unfold r in *. lra.
    + unfold qlt in N. apply negb_false_iff in N. apply qle_R in N. bools. fold V in N.
      rewrite (Q2R_inv (rest tau)) by exact H. fold u.
      specialize (A u H). specialize (B u H).
      destruct (Rlt_dec r 0); [|unfold r in *; lra].
      assert (V * r <= 0) by nra. assert (0 <= t * (r * r)) by (apply Rmult_le_pos; lra). unfold r in *. lra.
  - (* squared epsilon *) scalar b z S H. some. bools. unfold square. set (r := x - Q2R y).
    pose proof (Rmax_l 0 (Rabs r - Q2R epsilon)). pose proof (Rmax_r 0 (Rabs r - Q2R epsilon)).
    set (m := Rmax 0 (Rabs r - Q2R epsilon)) in *.
    pose proof (prod_le (Q2R v) r). pose proof (abs_sq (Q2R v)). pose proof (Rabs_pos (Q2R v)).
    pose proof (square_pos (m - Rabs (Q2R v))).
    assert (Rabs (Q2R v) * Rabs r <= Rabs (Q2R v) * (m + Q2R epsilon)) by (apply Rmult_le_compat_l; lra).
    unfold r in *. lra.
  - (* gamma *) scalar b z S H. destruct (entropy _) as [e|] eqn:E; [|discriminate]. some. bools.
    apply entropy_sound in E. unfold Qdiv in E. rewrite Q2R_mult, Q2R_inv in E by auto. autorewrite with q2r in E.
    set (Y := Q2R y) in *. set (p := (1 - Q2R v) * / Y) in *. destruct E as [P E].
    pose proof (gibbs (exp (- x)) p (exp_pos _) P) as G. rewrite ln_exp in G.
    assert (F : 1 - Q2R v = Y * p) by (unfold p; field; lra).
    assert (Y * (p * - x - Q2R e) <= Y * (exp (- x) - p)) by (apply Rmult_le_compat_l; lra). nra.
  - (* L1 *) simpl in H. guards. rewrite normIQ_R in H. simpl. pose proof (holder (RV b) z). pose proof (norm1_pos z).
    nra.
  - (* L2 *) simpl in H. guards. rewrite dotQ_R in H. simpl. pose proof (cauchy (RV b) z). pose proof (norm2_pos z).
    assert (norm2 (RV b) <= 1) by (apply norm2_le; lra). nra.
  - (* LInf *) simpl in H. guards. rewrite norm1Q_R in H. simpl. pose proof (holder' (RV b) z).
    pose proof (normI_pos z). nra.
  - (* squared L2 *) simpl in H. some. bools. rewrite dotQ_R. simpl. pose proof (cauchy (RV b) z). rewrite <- !norm2_sq.
    pose proof (square_pos (norm2 (RV b) - norm2 z)). lra.
  - (* Huber's norm *) simpl in H. guards. rewrite dotQ_R in *. simpl. pose proof (cauchy (RV b) z).
    assert (norm2 (RV b) <= Q2R delta) by (apply norm2_le; lra).
    pose proof (hub_fy (Q2R delta) _ _ (norm2_pos (RV b)) H1 (norm2_pos z)). rewrite <- norm2_sq. lra.
  - (* zero *) simpl in H. some. bools. simpl. clear L S.
    assert (forall u, dot u z = 0); [|rewrite H; lra].
    induction D; intros [|? ?]; simpl; auto. subst. rewrite IHD. lra.
  - (* ball *) simpl in H. some. bools. simpl. pose proof (cauchy (RV b) z). pose proof (norm2_pos (RV b)).
    pose proof (norm2_pos z).
    assert (P : 0 <= Q2R (dotQ b b)) by (rewrite dotQ_R; apply dot_self_pos).
    apply root_le in P. rewrite dotQ_R in P. fold (norm2 (RV b)) in P. nra.
  - (* not negative *) simpl in H. guards. simpl. enough (dot (RV b) z <= 0) by lra. clear L S.
    revert z D. induction b as [|v b IH]; intros [|x z] D; simpl in *; try lra. bools. fold (RV b).
    inversion D; subst. specialize (IH H0 z H4). nra.
  - (* box *) simpl in H. simpl. pose proof (push_fy _ _ _ _ H D). lra.
Qed.

(** * The upper bound of the value is one, and the point is feasible *)
Lemma hd_R z : hd 0 (RV z) = Q2R (hd 0%Q z).
Proof. destruct z; simpl; auto. now rewrite Q2R_0. Qed.
Lemma nth_R y : forall z, nth y (RV z) 0 = Q2R (nth y z 0%Q).
Proof. induction y; intros [|v z]; simpl; rewrite ?Q2R_0; auto. Qed.
Lemma hub_up s r d rr : 0 <= Q2R d -> 0 <= r -> Q2R s = r * r -> r <= Q2R rr -> hub (Q2R d) r <= Q2R (hubQ s rr d).
Proof.
  intros. unfold hubQ, hub. destruct (qle s (d * d)) eqn:E; bools; destruct (Rle_dec r (Q2R d)).
  - lra.
  - exfalso. apply n, Rsqr_incr_0_var; unfold Rsqr; lra.
  - exfalso. assert (r * r <= Q2R d * Q2R d) by (apply Rmult_le_compat; lra). lra.
  - assert (Q2R d * r <= Q2R d * Q2R rr) by (apply Rmult_le_compat_l; lra). lra.
Qed.
Lemma inside_R b : forall z, insideQ z b = true -> Forall2 (fun x b => above (fst b) x /\ below x (snd b)) (RV z) b.
Proof.
  induction b as [|[l h] b IH]; intros [|v z] H; simpl in H; try discriminate; [constructor|].
  apply andb_true_iff in H. destruct H as [H H']. apply andb_true_iff in H. destruct H as [H1 H2].
  simpl. constructor; [|now apply IH]. simpl. split.
  - destruct l; simpl; auto. now apply qle_R.
  - destruct h; simpl; auto. now apply qle_R.
Qed.
Lemma sum_exp m z : forall s, sum_opt (fun v => exp_up (qadd v (- m))) z = Some s ->
  exp (- Q2R m) * total (map exp (RV z)) <= Q2R s.
Proof.
  induction z as [|v z IH]; intros s H; simpl in *; some; bools; [lra|].
  apply plus_opt_some in H. destruct H as (a & b & Ha & Hb & ->). specialize (IH _ Hb). apply exp_up_sound in Ha.
    fold (RV z).
  autorewrite with q2r in Ha. rewrite exp_plus in Ha. lra.
Qed.
Lemma logistic_value s : ln (1 + exp s) = Rmax s 0 + ln (1 + exp (- Rabs s)).
Proof.
  destruct (Rle_lt_dec 0 s).
  - rewrite Rmax_left, Rabs_right by lra. pose proof (exp_pos (- s)). rewrite <- (ln_exp s) at 2.
    rewrite <- ln_mult by (auto using exp_pos; lra).
    f_equal. rewrite Rmult_plus_distr_l, <- exp_plus, Rplus_opp_r, exp_0. ring.
  - rewrite Rmax_right, Rabs_left, Ropp_involutive by lra. ring.
Qed.
Lemma ln_mono a b : 0 < a -> a <= b -> ln a <= ln b.
Proof. intros H [L| <-]; [left; now apply ln_increasing|lra]. Qed.

Theorem upper_value f z q : suits f (length z) = true -> upval f z = Some q -> dom f (RV z) /\ val f (RV z) <= Q2R q.
Proof.
  destruct f; cbn [suits upval val dom]; intros S H; rewrite ?hd_R; guards; cbv zeta; rewrite ?hd_R; (split; [auto|]);
    try (unfold square; lra).
  - rewrite <- minusQ_R, dotQ_R. lra.
  - destruct (exp_up _) as [e|] eqn:E; [|discriminate]. destruct (log_up _) as [l|] eqn:L; [|discriminate]. some. bools.
    apply exp_up_sound in E. set (x := Q2R (hd 0%Q z)) in *. autorewrite with q2r in E. fold x in E.
    match goal with K : (_ || _) = true |- _ => apply sign_cases in K; rename K into Y end.
      pose proof (exp_pos (- Rabs x)).
    apply log_up_sound in L; autorewrite with q2r in *; [|lra]. rewrite logistic_value.
    replace (Rabs (- Q2R y * x)) with (Rabs x).
    2: { rewrite Rabs_mult, Rabs_Ropp. destruct Y as [-> | ->]; [|replace (-1) with (- (1)) by lra; rewrite Rabs_Ropp];
      rewrite Rabs_R1; lra. }
    pose proof (ln_mono (1 + exp (- Rabs x)) (1 + Q2R e) ltac:(lra) ltac:(lra)). lra.
  - destruct (exp_up _) as [e|] eqn:E; [|discriminate]. some. bools. apply exp_up_sound in E. lra.
  - apply hub_up; autorewrite with q2r; auto using Rabs_pos; try lra. unfold square. now rewrite abs_sq.
  - match goal with K : (2 <=? _)%nat = true |- _ => apply Nat.leb_le in K; rename K into S1 end.
    set (m := maxQ _ _) in *. destruct (sum_opt _ _) as [s|] eqn:E; [|discriminate].
      destruct (log_up s) as [l|] eqn:L; [|discriminate].
    some. bools. apply sum_exp in E. pose proof (total_exp_pos (RV z) ltac:(rewrite RV_length; lia)) as T.
      pose proof (exp_pos (- Q2R m)) as M.
    assert (X : 0 < exp (- Q2R m) * total (map exp (RV z))) by (now apply Rmult_lt_0_compat).
    apply log_up_sound in L; [|lra]. pose proof (ln_mono _ _ X E) as K. rewrite ln_mult, ln_exp in K by auto.
      rewrite nth_R. lra.
  - unfold square. set (x := Q2R (hd 0%Q z)) in *. destruct (qlt (hd 0%Q z - y) 0) eqn:E.
    + apply qlt_R in E. autorewrite with q2r in E. fold x in E. destruct (Rlt_dec (x - Q2R y) 0); lra.
    + unfold qlt in E. apply negb_false_iff in E. apply qle_R in E. autorewrite with q2r in E. fold x in E.
      destruct (Rlt_dec (x - Q2R y) 0); lra.
  - destruct (exp_up _) as [e|] eqn:E; [|discriminate]. some. bools. apply exp_up_sound in E. autorewrite with q2r in E.
    apply (Rmult_le_compat_l (Q2R y)) in E; lra.
  - rewrite norm1Q_R. lra.
  - pose proof (root_le (dotQ z z)). rewrite dotQ_R in H. apply H, dot_self_pos.
  - rewrite normIQ_R. lra.
  - rewrite dotQ_R. lra.
  - replace (map (fun row => dot (map Q2R row) (RV z)) root) with (RV (map (fun r => dotQ r z) root)).
    + rewrite dotQ_R. lra.
    + unfold RV at 1. rewrite map_map. apply map_ext. intros r. apply dotQ_R.
  - pose proof (root_le (dotQ z z)). rewrite dotQ_R in *.
    apply hub_up; auto using norm2_pos; [lra| |]. rewrite dotQ_R. symmetry. apply norm2_sq. apply H, dot_self_pos.
  - apply Forall_forall. intros v Hv. unfold RV in Hv. apply in_map_iff in Hv. destruct Hv as [p [<- Hp]].
    rewrite forallb_forall in H. specialize (H p Hp). now apply qzero_R.
  - rewrite dotQ_R in *. apply norm2_le; lra.
  - apply Forall_forall. intros v Hv. unfold RV in Hv. apply in_map_iff in Hv. destruct Hv as [p [<- Hp]].
    rewrite forallb_forall in H. specialize (H p Hp). apply qle_R in H. now rewrite Q2R_0 in H.
  - now apply inside_R.
Qed.

(** * The same with a scale *)
Theorem price_sound s f t z q : suits f (length z) = true -> length t = arity f (length z) -> price s f t = Some q ->
  dom f z ->
  0 < Q2R s /\ dot (RV (flow s f t)) z <= Q2R s * val f z + Q2R q.
Proof.
  intros S L H D. unfold price in H. destruct (qlt 0 s) eqn:P; [|discriminate]. bools. split; auto.
  destruct (is_quadratic f) eqn:Q.
  - destruct f; try discriminate. some. autorewrite with q2r. rewrite dotQ_R. simpl flow.
    rewrite RV_scale, dot_scale, transposed_dot.
    cbn [val]. set (Rz := map (fun row => dot (map Q2R row) z) root).
    change (map (fun r => dot (RV r) z) root) with Rz. pose proof (cauchy (RV t) Rz) as C.
    rewrite <- !norm2_sq. pose proof (square_pos (norm2 (RV t) - norm2 Rz)).
    assert (Q2R s * dot (RV t) Rz <= Q2R s * (norm2 Rz * norm2 Rz / 2 + norm2 (RV t) * norm2 (RV t) / 2))
      by (apply Rmult_le_compat_l; lra). lra.
  - assert (E : exists c, conjugate f (scaleQ (/ s) t) = Some c /\ q = (s * c)%Q /\ flow s f t = t /\ arity f (length
    z) = length z).
    { destruct f; try discriminate; (destruct (conjugate _ (scaleQ (/ s) t)) as [c|]; [|discriminate]); some; eauto. }
    destruct E as (c & E & -> & -> & A). rewrite A in L.
    pose proof (fenchel_young f (scaleQ (/ s) t) z c Q S ltac:(unfold scaleQ; now rewrite map_length) E D) as F.
    rewrite RV_scale, dot_scale, Q2R_inv in F by auto. autorewrite with q2r.
    apply (Rmult_le_compat_l (Q2R s)) in F; [|lra]. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l in F by lra. lra.
Qed.
Lemma value_sound s f z q : 0 < Q2R s -> suits f (length z) = true -> value s f z = Some q ->
  dom f (RV z) /\ Q2R s * val f (RV z) <= Q2R q.
Proof.
  unfold value. intros P S. destruct (upval f z) eqn:E; [|discriminate]. intros H. some. bools.
  destruct (upper_value _ _ _ S E) as [D U]. split; auto. apply Rmult_le_compat_l; lra.
Qed.

(** * Along a direction *)
Lemma add_zero v : forall z, length v = length z -> forallb qzero v = true -> add z v = z.
Proof.
  induction v as [|q v IH]; intros [|x z] L H; simpl in *; try discriminate; auto.
  apply andb_true_iff in H. destruct H as [H H']. apply qzero_R in H. rewrite H, IH by auto. f_equal. lra.
Qed.
Lemma hinge_mono a b : a <= b -> Rmax 0 a <= Rmax 0 b.
Proof. intros H. apply Rmax_lub; [apply Rmax_l|]. eapply Rle_trans; [exact H|apply Rmax_r]. Qed.
Lemma add_dot r v : forall z, length v = length z -> dot r (add z v) = dot r z + dot r (RV v).
Proof.
  revert r. induction v as [|q v IH]; intros r [|x z] L; try discriminate; simpl.
  - rewrite dot_nil. lra.
  - destruct r as [|a r]; simpl; [lra|]. fold (RV v). rewrite IH by (simpl in L; lia). lra.
Qed.
Lemma outward_stays b : forall v z, outward v b = true -> length v = length z ->
  Forall2 (fun x b => above (fst b) x /\ below x (snd b)) z b ->
    Forall2 (fun x b => above (fst b) x /\ below x (snd b)) (add z v) b.
Proof.
  induction b as [|[l h] b IH]; intros [|q v] [|x z] H L D; simpl in H; try discriminate; simpl; auto.
  apply andb_true_iff in H. destruct H as [H H']. apply andb_true_iff in H. destruct H as [H1 H2].
  inversion D as [|? ? ? ? [Dl Dh] D' E1 E2]. subst. constructor; [|apply IH; auto]. simpl in *. split.
  - destruct l; simpl in *; auto. apply qle_R in H1. rewrite Q2R_0 in H1. lra.
  - destruct h; simpl in *; auto. apply qle_R in H2. rewrite Q2R_0 in H2. lra.
Qed.
(** exp of all entries of z + v, where no entry of v is above m, beside those of z. *)
Lemma total_add m v : forall z, length v = length z -> forallb (fun a => qle a m) v = true ->
  total (map exp (add z v)) <= exp (Q2R m) * total (map exp z) /\
  (forallb (qle m) v = false -> total (map exp (add z v)) < exp (Q2R m) * total (map exp z)).
Proof.
  induction v as [|q v IH]; intros [|x z] L H; simpl in *; try discriminate.
  - split; [lra|discriminate].
  - apply andb_true_iff in H. destruct H as [H H']. destruct (IH z ltac:(lia) H') as [A B].
    apply qle_R in H. rewrite exp_plus. pose proof (exp_mono _ _ H) as M. pose proof (exp_pos x) as X.
    assert (exp x * exp (Q2R q) <= exp (Q2R m) * exp x) by nra. split; [lra|].
    intros F. apply andb_false_iff in F. destruct F as [F|F].
    + apply qle_false in F. apply exp_increasing in F. assert (exp x * exp (Q2R q) < exp (Q2R m) * exp x) by nra. lra.
    + specialize (B F). lra.
Qed.
Lemma nth_add y v : forall z, length v = length z -> nth y (add z v) 0 = nth y z 0 + Q2R (nth y v 0%Q).
Proof.
  revert y. induction v as [|q v IH]; intros [|y] [|x z] L; simpl in *; try discriminate; rewrite ?Q2R_0; try lra.
    apply IH. lia.
Qed.
Lemma total_all m v : forall z, length v = length z -> forallb (qle m) v = true ->
  forallb (fun a => qle a m) v = true ->
  total (map exp (add z v)) = exp (Q2R m) * total (map exp z).
Proof.
  induction v as [|q v IH]; intros [|x z] L H G; simpl in *; try discriminate; [lra|].
  apply andb_true_iff in H, G. destruct H as [H H'], G as [G G']. apply qle_R in H, G. rewrite IH by (auto; lia).
  assert (E : Q2R q = Q2R m) by lra. rewrite exp_plus, E. lra.
Qed.
Lemma logistic_falls a b : a < b -> ln (1 + exp a) < ln (1 + exp b).
Proof. intros H. pose proof (exp_pos a). apply exp_increasing in H. apply ln_increasing; lra. Qed.

Definition goes (c : change) (f : func) (z z' : list R) : Prop :=
  match c with
  | Grows => True
  | Stays => dom f z' /\ val f z' <= val f z
  | Falls => dom f z' /\ val f z' < val f z
  end.
Theorem changes_sound f v z : suits f (length z) = true -> length v = length z -> dom f z ->
  goes (changes f v) f z (add z v).
Proof.
  intros S L D. unfold changes. destruct (forallb qzero v) eqn:Z0.
  { rewrite add_zero by auto. simpl. split; [exact D|lra]. }
  destruct f; cbn [suits] in S; try exact I.
  - (* logistic *) apply andb_true_iff in S. destruct S as [S Y]. destruct (one_number _ S) as [x ->].
    destruct v as [|q [|? ?]]; try discriminate L.
    cbn [hd]. destruct (qlt 0 (y * q)) eqn:P; [|exact I]. apply qlt_R in P. autorewrite with q2r in P. simpl.
      split; auto. apply logistic_falls. lra.
  - (* poisson *) apply andb_true_iff in S. destruct S as [S Y]. destruct (one_number _ S) as [x ->].
    destruct v as [|q [|? ?]]; try discriminate L.
    cbn [hd]. destruct (qlt q 0 && qzero y) eqn:P; [|exact I]. bools. simpl. split; auto. rewrite H0.
    pose proof (exp_increasing (x + Q2R q) x ltac:(lra)). lra.
  - (* multinomial *) cbn [hd]. set (m := nth y v 0%Q). destruct (forallb (fun a => qle a m) v) eqn:A; [|exact I].
    apply andb_true_iff in S. destruct S as [S1 S2]. apply Nat.leb_le in S1. apply Nat.ltb_lt in S2.
    pose proof (total_exp_pos z ltac:(lia)) as T. pose proof (exp_pos (Q2R m)) as M.
    assert (T' : 0 < total (map exp (add z v))).
    { apply total_exp_pos. clear - L S1. revert z L S1. induction v as [|q v IH]; intros [|x z] L S; simpl in *;
      try lia. }
    destruct (total_add m v z L A) as [_ B].
    assert (E : ln (exp (Q2R m) * total (map exp z)) = Q2R m + ln (total (map exp z))) by (rewrite ln_mult, ln_exp;
      auto).
    destruct (forallb (qle m) v) eqn:F; cbn [goes dom val]; (split; [auto|]); rewrite nth_add by auto; fold m.
    + rewrite (total_all m v z L F A), E. lra.
    + apply ln_increasing in B; auto. rewrite E in B. lra.
  - (* hinge *) apply andb_true_iff in S. destruct S as [S Y]. destruct (one_number _ S) as [x ->].
    destruct v as [|q [|? ?]]; try discriminate L.
    cbn [hd]. destruct (qlt 0 (y * q)) eqn:P; [|exact I]. apply qlt_R in P. autorewrite with q2r in P. simpl.
      split; auto. apply hinge_mono. lra.
  - (* squared hinge *) apply andb_true_iff in S. destruct S as [S Y]. destruct (one_number _ S) as [x ->].
    destruct v as [|q [|? ?]]; try discriminate L.
    cbn [hd]. destruct (qlt 0 (y * q)) eqn:P; [|exact I]. apply qlt_R in P. autorewrite with q2r in P. simpl.
      split; auto. unfold square.
    pose proof (hinge_mono (1 - Q2R y * (x + Q2R q)) (1 - Q2R y * x) ltac:(lra)).
      pose proof (Rmax_l 0 (1 - Q2R y * (x + Q2R q))). nra.
  - (* quadratic *) destruct (forallb (fun r => qzero (dotQ r v)) root) eqn:A; [|exact I]. split; [exact I|]. cbn [val].
    replace (map (fun row => dot (map Q2R row) (add z v)) root) with (map (fun row => dot (map Q2R row) z) root);
      [lra|].
    apply map_ext_in. intros r Hr. rewrite forallb_forall in A. specialize (A r Hr). apply qzero_R in A.
      rewrite dotQ_R in A.
    change (map Q2R r) with (RV r). rewrite add_dot by auto. lra.
  - (* not negative *) destruct (forallb (qle 0) v) eqn:A; [|exact I]. cbn [goes val dom] in *. split; [|lra].
    clear Z0 S. revert z L D. induction v as [|q v IH]; intros [|x z] L D; simpl in *; try discriminate; auto.
    apply andb_true_iff in A. destruct A as [A A']. apply qle_R in A. rewrite Q2R_0 in A. inversion D; subst.
      constructor; [lra|auto].
  - (* box *) destruct (outward v bounds) eqn:A; [|exact I]. cbn [goes val dom] in *. split; [|lra].
    now apply outward_stays.
Qed.
