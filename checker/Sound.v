(** The theorem: whatever the checker accepts holds, for all real w. *)
Require Import ZArith NArith QArith Qabs Qreals Reals Lra Psatz List Bool.
From Checker Require Import Definitions Numbers Compute ExpLog Functions Checker.
Import ListNotations.
Open Scope R_scope.

(** * Coordinates *)
Definition point_of (d : N) (t : tree) : point := fun i j => Q2R (get (var d i j) t).
Definition at_var (d : N) (w : point) (p : positive) : R := w (Pos.pred_N p / d)%N (Pos.pred_N p mod d)%N.
Lemma unvar d w i j : (j < d)%N -> at_var d w (var d i j) = w i j.
Proof.
  intros H. unfold at_var, var. rewrite N.pos_pred_succ, N.div_add_l, N.div_small, N.add_0_r by lia.
  rewrite N.add_comm, N.mod_add, N.mod_small by lia. reflexivity.
Qed.
Definition ranged (m : model) (K : list (list (N * N * Q))) : Prop := forallb (forallb (in_range m)) K = true.
Lemma row_Q d cs t : Q2R (rowQ d cs t) = row cs (point_of d t).
Proof.
  unfold rowQ. enough (H : forall a, Q2R (row_from d cs t a) = Q2R a + row cs (point_of d t)) by (rewrite H, Q2R_0; ring).
  induction cs as [|[[i j] q] cs IH]; intros a; simpl; [ring|]. rewrite IH. autorewrite with q2r. unfold point_of at 2. ring.
Qed.
Lemma rows_Q d K t : RV (map (fun cs => rowQ d cs t) K) = map (fun cs => row cs (point_of d t)) K.
Proof. unfold RV. rewrite map_map. apply map_ext. intros. apply row_Q. Qed.
Lemma numbers_Q d e t : RV (numbersQ d (plus e) (cells (at_ e)) t) = numbers e (point_of d t).
Proof. unfold numbersQ, numbers, shifted. destruct (plus e); rewrite ?addQ_R, rows_Q; reflexivity. Qed.
Lemma put_row_sum m v cs w : forallb (in_range m) cs = true -> forall t,
  sumT (put_row (columns m) v cs t) (at_var (columns m) w) = sumT t (at_var (columns m) w) + Q2R v * row cs w.
Proof.
  induction cs as [|[[i j] q] cs IH]; intros H t; simpl in *; [lra|].
  apply andb_true_iff in H. destruct H as [H H']. apply andb_true_iff in H. destruct H as [_ H]. apply N.ltb_lt in H.
    simpl in H.
  rewrite IH, put_sum, unvar by auto. autorewrite with q2r. lra.
Qed.
Lemma put_rows_sum m w u : forall K t, ranged m K ->
  sumT (put_rows (columns m) u K t) (at_var (columns m) w)
  = sumT t (at_var (columns m) w) + dot (RV u) (map (fun cs => row cs w) K).
Proof.
  induction u as [|v u IH]; intros [|cs K] t H; simpl; try lra.
  unfold ranged in H. simpl in H. apply andb_true_iff in H. destruct H as [H H']. rewrite IH by auto.
    rewrite put_row_sum by auto. unfold RV. lra.
Qed.

(** * Terms that are well formed *)
Definition arg (t : term) (w : point) : list R := numbers (snd t) w.
Definition cost (w : point) (t : term) : R := Q2R (fst t) * val (what (snd t)) (arg t w).
Definition inside_domain (w : point) (t : term) : Prop := dom (what (snd t)) (arg t w).
Definition good (m : model) (t : term) : Prop := well_formed_term m t = true.
Lemma add_length o : forall z, length o = length z -> length (add z o) = length z.
Proof. induction o; intros [|x z] H; simpl in *; auto. Qed.
Lemma good_spec m t : good m t ->
  0 < Q2R (fst t) /\ ranged m (cells (at_ (snd t))) /\
  (forall o, plus (snd t) = Some o -> length o = length (cells (at_ (snd t)))) /\
  (forall w, length (arg t w) = length (cells (at_ (snd t)))) /\ suits (what (snd t)) (length (cells (at_ (snd t)))) =
    true.
Proof.
  unfold good, well_formed_term. intros H. apply andb_true_iff in H. destruct H as [H P]. apply andb_true_iff in H.
    destruct H as [H O].
  apply andb_true_iff in H. destruct H as [H S]. apply andb_true_iff in H. destruct H as [_ F]. unfold fits in F.
    apply andb_true_iff in F.
  destruct F as [_ F]. apply positive_R in P.
  assert (L : forall o, plus (snd t) = Some o -> length o = length (cells (at_ (snd t)))).
  { intros o E. rewrite E in O. now apply Nat.eqb_eq. }
  repeat split; auto. intros w. unfold arg, numbers. destruct (plus (snd t)) as [o|]; rewrite ?add_length;
    rewrite ?map_length; auto.
Qed.
Lemma well_formed_terms m : well_formed m = true -> Forall (good m) (terms m).
Proof.
  unfold well_formed, terms. intros H. apply Forall_flat_map. apply Forall_forall. intros b Hb.
    rewrite forallb_forall in H. specialize (H b Hb).
  unfold well_formed_block in H. apply andb_true_iff in H. destruct H as [_ H]. apply Forall_forall. intros t Ht.
    rewrite forallb_forall in H. now apply H.
Qed.
(** Sums in one pass are the sums of each node. *)
Lemma sums_of_node es : forall i t, get (N.succ_pos i) (fold_left (fun t e => match node_of e
  with Some p => alter (fun a => to_double (a + weight e)) p t | None => t end) es t)
  = fold_left (fun t e => if is_at i e then to_double (t + weight e) else t) es (get (N.succ_pos i) t).
Proof.
  induction es as [|e es IH]; intros i t; cbn [fold_left]; auto. rewrite IH. f_equal. unfold node_of, is_at.
  destruct (at_ e) as [j k x| |]; auto. rewrite get_alter. destruct (N.eqb_spec i j) as [->|N].
  - now rewrite Pos.eqb_refl.
  - destruct (Pos.eqb_spec (N.succ_pos i) (N.succ_pos j)) as [E|]; auto. exfalso. apply N.
    apply (f_equal Pos.pred_N) in E. now rewrite !N.pos_pred_succ in E.
Qed.
Lemma fast_terms_eq b : fast_terms b = terms_of b.
Proof.
  unfold fast_terms, terms_of. rewrite long_combine_eq, long_map_eq. do 2 f_equal. unfold fast_bases, bases.
  destruct (by_ b); rewrite ?long_combine_eq, long_map_eq; auto. apply map_ext. intros e.
  unfold base_of_mean, node_of. destruct (at_ e); auto. unfold sums, of_node. now rewrite sums_of_node, get_leaf.
Qed.
Lemma demand_ok c why : demand c why = Ok tt -> c = true.
Proof. destruct c; [auto|discriminate]. Qed.
Lemma gather_spec m bs : forall k ts, gather m k bs = Ok ts -> forallb (well_formed_block m) bs = true /\ ts = flat_map
  terms_of bs.
Proof.
  induction bs as [|b bs IH]; intros k ts H; simpl in H; [now injection H as <-|].
  destruct (demand _ _) as [[]|] eqn:D; [|discriminate]. apply demand_ok in D.
  rewrite fast_terms_eq, !long_length_eq in D. rewrite fast_terms_eq in H.
  destruct (gather m (S k) bs) as [rest|] eqn:G; [|discriminate]. rewrite long_app_eq in H.
  injection H as <-. destruct (IH _ _ G) as [I1 ->].
  simpl. unfold well_formed_block at 1. now rewrite D, I1.
Qed.

(** * What a term adds to the gap *)
Definition left (m : model) (free : bool) (t : term) (u : list Q) (w : point) : R :=
  if (length u =? arity (what (snd t)) (length (cells (at_ (snd t)))))%nat then
    match charge free t u with Some q => cost w t + Q2R q - dot (RV (flow (fst t) (what (snd t)) u)) (arg t w) | None
      => 0 end
  else 0.
Fixpoint lefts (m : model) (free : option nat) (ts : list term) (us : list (list Q)) (w : point) : R :=
  match ts, us with
  | t :: ts', u :: us' => left m (isfree free) t u w + lefts m (next free) ts' us' w
  | _, _ => 0
  end.
Definition sum_of (w : point) (ts : list term) : R := total (map (cost w) ts).

Lemma zeros_dot u z : zeros z -> dot u z = 0.
Proof. intros H. revert u. induction H; intros [|? ?]; simpl; auto. subst. rewrite IHForall. lra. Qed.
Lemma norm_pos a z : isnorm a = true -> 0 <= val a z.
Proof. destruct a; simpl; intros; try discriminate; auto using norm1_pos, norm2_pos, normI_pos. Qed.
Lemma norm_dom a z : isnorm a = true -> dom a z. Proof. now destruct a. Qed.
Lemma norm_zero a z : isnorm a = true -> val a z <= 0 -> zeros z.
Proof.
  intros N H.
  assert (A : forall v, In v z -> Rabs v <= val a z).
  { clear H. intros v Hv. destruct a; try discriminate; simpl; clear N.
    - induction z as [|x z IH]; simpl in *; [tauto|]. pose proof (norm1_pos z). pose proof (Rabs_pos x).
      destruct Hv as [->|Hv]; [lra|]. specialize (IH Hv). lra.
    - rewrite <- sqrt_Rsqr_abs. apply sqrt_le_1; [apply Rle_0_sqr|apply dot_self_pos|].
      induction z as [|x z IH]; simpl in *; [tauto|]. pose proof (dot_self_pos z). unfold Rsqr in *.
      destruct Hv as [->|Hv]; [nra|]. specialize (IH Hv). nra.
    - induction z as [|x z IH]; simpl in *; [tauto|]. destruct Hv as [->|Hv]; [apply Rmax_l|].
      eapply Rle_trans; [apply (IH Hv)|apply Rmax_r]. }
  apply Forall_forall. intros v Hv. specialize (A v Hv). pose proof (Rabs_pos v).
  destruct (Req_dec v 0) as [|E]; auto. apply Rabs_no_R0 in E. lra.
Qed.
Lemma norm_flow s a u : isnorm a = true -> flow s a u = u. Proof. now destruct a. Qed.

Lemma left_pos m free t u w : good m t -> inside_domain w t -> (free = true -> zeros (arg t w)) ->
  0 <= left m free t u w.
Proof.
  intros G D F. unfold left. destruct (_ =? _)%nat eqn:L; [|lra]. apply Nat.eqb_eq in L.
  destruct (good_spec _ _ G) as (P & _ & _ & A & S). rewrite <- (A w) in L, S. unfold charge. destruct free.
  - destruct (guard _ _) eqn:E; [|lra]. apply guard_some in E. destruct E as [E ->]. apply andb_true_iff in E.
    destruct E as [N _]. rewrite Q2R_0. rewrite zeros_dot by auto.
    pose proof (norm_pos _ (arg t w) N). unfold cost. nra.
  - destruct (price _ _ _) eqn:E; [|lra]. destruct (price_sound _ _ _ (arg t w) _ S L E D). unfold cost. lra.
Qed.
Definition free_zero (free : option nat) (ts : list term) (w : point) : Prop :=
  match free with None => True | Some k => forall t, nth_error ts k = Some t -> zeros (arg t w) end.
Lemma free_next free t ts w : free_zero free (t :: ts) w -> (isfree free = true ->
  zeros (arg t w)) /\ free_zero (next free) ts w.
Proof. destruct free as [[|k]|]; simpl; intros H; split; auto; intros; discriminate. Qed.
Lemma lefts_pos m w ts : forall free us, Forall (good m) ts -> Forall (inside_domain w) ts -> free_zero free ts w ->
  0 <= lefts m free ts us w.
Proof.
  induction ts as [|t ts IH]; intros free us G D F; [simpl; lra|]. destruct us as [|u us]; simpl; [lra|].
  inversion D; inversion G; subst. destruct (free_next _ _ _ _ F) as [F1 F2].
  pose proof (left_pos m (isfree free) t u w H5 H1 F1). specialize (IH (next free) us H6 H2 F2). lra.
Qed.
Lemma left_le_lefts m w ts : forall us e t u, Forall (good m) ts -> Forall (inside_domain w) ts ->
  nth_error ts e = Some t -> nth_error us e = Some u -> left m false t u w <= lefts m None ts us w.
Proof.
  induction ts as [|t ts IH]; intros us e t' u' G D T U; [destruct e; discriminate|].
  destruct us as [|u us]; [destruct e; discriminate|]. inversion D; inversion G; subst. simpl.
  assert (0 <= left m false t u w) by (apply left_pos; auto; discriminate). destruct e; simpl in *.
  - injection T as <-. injection U as <-. pose proof (lefts_pos m w ts None us H6 H2 I). lra.
  - specialize (IH us e t' u' H6 H2 T U). lra.
Qed.

(** What the flow of a term does to its numbers, and to the balance. *)
Lemma pushed_dot m t u w : good m t -> dot (RV u) (arg t w) = dot (RV u) (map (fun cs => row cs w) (cells (at_ (snd
  t)))) + Q2R (pushed (plus (snd t)) u).
Proof.
  intros G. destruct (good_spec _ _ G) as (_ & _ & O & _ & _). unfold arg, numbers, pushed.
    destruct (plus (snd t)) as [o|].
  - rewrite add_dot by (rewrite map_length; auto). now rewrite dotQ_R.
  - rewrite Q2R_0. lra.
Qed.
Lemma dual_sum m w ts : Forall (good m) ts -> forall free k us s rest s' rest',
  dual (columns m) free k ts us s rest = Ok (s', rest') ->
  lefts m free ts us w <= sum_of w ts + (real s' - real s)
    - (sumT rest' (at_var (columns m) w) - sumT rest (at_var (columns m) w)).
Proof.
  induction 1 as [|[s0 e] ts G GS IH]; intros free k [|u us] s rest s' rest' H; simpl in H; try discriminate.
  - injection H as <- <-. unfold sum_of. simpl. lra.
  - cbn [lefts]. unfold left. cbn [fst snd]. destruct (_ =? _)%nat; [|discriminate].
    destruct (charge (isfree free) (s0, e) u) eqn:C; [|discriminate].
    apply IH in H. destruct (good_spec _ _ G) as (_ & R & _). cbn [snd] in R. rewrite put_rows_sum in H by auto.
    pose proof (pushed_dot _ _ (flow s0 (what e) u) w G) as K. cbn [snd] in K. rewrite real_add in H.
    pose proof (up_le (q - pushed (plus e) (flow s0 (what e) u))) as U. autorewrite with q2r in U.
    unfold sum_of in *. cbn [map total fold_right]. fold (total (map (cost w) ts)). lra.
Qed.
Definition in_box (B : option Q) (w : point) : Prop := match B with None => True | Some b => forall i j,
  Rabs (w i j) <= Q2R b end.
Lemma lower_bound m B free us n w : Forall (good m) (terms m) -> lower (columns m) B free (terms m) us = Ok n ->
  in_box B w ->
  lefts m free (terms m) us w <= P m w - real n.
Proof.
  intros G. unfold lower. destruct (dual _ _ _ _ _ _ _) as [[s rest]|] eqn:E; [|discriminate]. intros H I.
  apply (dual_sum m w) in E; auto. simpl in E. rewrite real_0 in E. change (P m w) with (sum_of w (terms m)).
  destruct B as [b|].
  - injection H as <-. rewrite real_opp, real_add. pose proof (charged_le b rest (at_var (columns m) w) ltac:(intros;
    apply I)).
    pose proof (Rle_abs (- sumT rest (at_var (columns m) w))). rewrite Rabs_Ropp in *. lra.
  - destruct (first rest _) as [[? ?]|] eqn:F; [discriminate|]. injection H as <-. rewrite real_opp.
    apply (first_none _ (at_var (columns m) w)) in F. lra.
Qed.

Lemma primal_sum m w ts : Forall (good m) ts -> forall k s n, primal (columns m) w k ts s = Ok n ->
  Forall (inside_domain (point_of (columns m) w)) ts /\ sum_of (point_of (columns m) w) ts <= real n - real s.
Proof.
  induction 1 as [|[s0 e] ts G GS IH]; intros k s n H; simpl in H.
  - injection H as <-. unfold sum_of. simpl. split; [constructor|lra].
  - destruct (value _ _ _) as [v|] eqn:V; [|discriminate]. destruct (good_spec _ _ G) as (Pos & _ & _ & A & S).
    cbn [fst snd] in *.
    apply value_sound in V; auto.
    2: { rewrite <- RV_length, numbers_Q. change (numbers e (point_of (columns m) w)) with (arg (s0,
      e) (point_of (columns m) w)). rewrite A. exact S. }
    rewrite numbers_Q in V. destruct V as [D V].
    apply IH in H. destruct H as [F H]. rewrite real_add in H. split; [now constructor|].
    pose proof (up_le v). unfold sum_of in *. cbn [map total fold_right].
      fold (total (map (cost (point_of (columns m) w)) ts)).
    unfold cost at 1. unfold arg. cbn [fst snd]. lra.
Qed.
Lemma residual_sum m w ts : Forall (good m) ts -> forall us s n, residuals (columns m) w ts us s = Some n ->
  lefts m None ts us (point_of (columns m) w) <= real n - real s.
Proof.
  induction 1 as [|[s0 e] ts G GS IH]; intros [|u us] s n H; simpl in H; try discriminate.
  - some. simpl. lra.
  - cbn [lefts]. unfold left. cbn [fst snd]. destruct (_ =? _)%nat; [|discriminate].
    destruct (value _ _ _) as [v|] eqn:V; [|discriminate]. destruct (price _ _ _) as [q|] eqn:C; [|discriminate].
    destruct (good_spec _ _ G) as (Pos & _ & _ & A & S). cbn [fst snd] in *. apply value_sound in V; auto.
    2: { rewrite <- RV_length, numbers_Q. change (numbers e (point_of (columns m) w)) with (arg (s0,
      e) (point_of (columns m) w)). rewrite A. exact S. }
    rewrite numbers_Q in V. destruct V as [_ V]. apply IH in H. rewrite real_add in H. simpl next in *.
    set (z := numbersQ _ _ _ _) in *. pose proof (up_le (v + q - dotQ (flow s0 (what e) u) z)) as U.
      autorewrite with q2r in U.
    rewrite dotQ_R in U. unfold z in U at 1. rewrite numbers_Q in U.
    unfold charge. cbn [isfree fst snd]. rewrite C. unfold cost, arg. cbn [fst snd]. lra.
Qed.
(** Without a box, what is left at two points differs by P alone. *)
Lemma dual_sum_eq m w v ts : Forall (good m) ts -> forall k us s rest s' rest',
  dual (columns m) None k ts us s rest = Ok (s', rest') ->
  lefts m None ts us w - sum_of w ts + (sumT rest' (at_var (columns m) w) - sumT rest (at_var (columns m) w))
  = lefts m None ts us v - sum_of v ts + (sumT rest' (at_var (columns m) v) - sumT rest (at_var (columns m) v)).
Proof.
  induction 1 as [|[s0 e] ts G GS IH]; intros k [|u us] s rest s' rest' H; simpl in H; try discriminate.
  - injection H as <- <-. unfold sum_of. simpl. lra.
  - cbn [lefts]. unfold left. cbn [fst snd]. destruct (_ =? _)%nat; [|discriminate]. cbn [isfree next].
    change (charge false (s0, e) u) with (price s0 (what e) u). destruct (price s0 (what e) u) eqn:C; [|discriminate].
    apply IH in H. destruct (good_spec _ _ G) as (_ & R & _). cbn [snd] in R. rewrite !put_rows_sum in H by auto.
    pose proof (pushed_dot _ _ (flow s0 (what e) u) w G) as K.
      pose proof (pushed_dot _ _ (flow s0 (what e) u) v G) as K'. cbn [snd] in K, K'.
    unfold sum_of in *. cbn [map total fold_right]. fold (total (map (cost w) ts)) (total (map (cost v) ts)). lra.
Qed.
Lemma lefts_change m us n w v : Forall (good m) (terms m) -> lower (columns m) None None (terms m) us = Ok n ->
  lefts m None (terms m) us w - P m w = lefts m None (terms m) us v - P m v.
Proof.
  intros G. unfold lower. destruct (dual _ _ _ _ _ _ _) as [[s rest]|] eqn:E; [|discriminate]. intros H.
  destruct (first rest _) as [[? ?]|] eqn:F; [discriminate|].
  apply (dual_sum_eq m w v) in E; auto. rewrite !(first_none _ _ _ F) in E. simpl in E.
  change (P m w) with (sum_of w (terms m)). change (P m v) with (sum_of v (terms m)). lra.
Qed.

(** * The edge that a claim is about *)
Definition whole (bs : list block) : Prop := Forall (fun b => length (terms_of b) = length (entries b)) bs.
Lemma well_formed_whole m bs : forallb (well_formed_block m) bs = true -> whole bs.
Proof.
  intros H. apply Forall_forall. intros b Hb. rewrite forallb_forall in H. specialize (H b Hb).
    apply andb_true_iff in H.
  destruct H as [H _]. now apply Nat.eqb_eq.
Qed.
Lemma whole_length bs : whole bs -> length (flat_map terms_of bs) = length (flat_map entries bs).
Proof. induction 1; simpl; auto. rewrite !app_length. lia. Qed.
Lemma combine_nth A B (l : list A) : forall (l' : list B) e b, length (combine l l') = length l' ->
  nth_error l' e = Some b ->
  exists a, nth_error (combine l l') e = Some (a, b).
Proof.
  induction l as [|x l IH]; intros [|y l'] [|e] b L H; simpl in *; try discriminate; [some; eauto|]. apply IH; auto.
Qed.
Lemma starts_spec bs : whole bs -> forall k0 b k bl e en, nth_error (starts k0 bs) b = Some k ->
  nth_error bs b = Some bl ->
  nth_error (entries bl) e = Some en -> exists o s, k = (k0 + o)%nat /\ nth_error (flat_map terms_of bs) (o + e) = Some
    (s, en).
Proof.
  induction 1 as [|b0 bs L W IH]; intros k0 [|b] k bl e en K B E; simpl in *; try discriminate;
    try rewrite long_length_eq in K.
  - some. exists 0%nat. destruct (combine_nth _ _ (map (fun q => finite (to_double (strength b0 * finite q))) (bases
    b0)) _ _ _ L E) as [s T].
    exists s. split; [lia|]. assert (T' : nth_error (terms_of b0) (0 + e) = Some (s, en)) by exact T.
    rewrite nth_error_app1; [exact T'|]. apply nth_error_Some. rewrite T'. discriminate.
  - destruct (IH _ _ _ _ _ _ K B E) as (o & s & -> & T). exists (length (entries b0) + o)%nat, s. split; [lia|].
    rewrite nth_error_app2 by lia. rewrite L. now replace (length (entries b0) + o + e - length (entries b0))%nat
      with (o + e)%nat by lia.
Qed.
Lemma counted bs : forall n, fold_left (fun n b => n + long_length (entries b))%nat bs n = (n + length (flat_map entries bs))%nat.
Proof.
  induction bs as [|b bs IH]; intros n; simpl; [lia|]. rewrite IH, app_length, long_length_eq. lia.
Qed.
Lemma index_spec m b e k : well_formed m = true -> index (edges m) (starts (length (flat_map entries (samples m)))
  (edges m)) b e = Some k ->
  exists t, nth_error (terms m) k = Some t /\ isnorm (what (snd t)) = true /\
  exists bl, nth_error (edges m) b = Some bl /\ nth_error (entries bl) e = Some (snd t).
Proof.
  intros W. unfold index. destruct (nth_error (edges m) b) as [bl|] eqn:B; [|discriminate].
  destruct (nth_error (starts _ _) b) as [k0|] eqn:K; [|discriminate].
    destruct (nth_error (entries bl) e) as [en|] eqn:E; [|discriminate].
  destruct (claimable en) eqn:C; [|discriminate]. intros H. some.
  apply well_formed_whole in W. apply Forall_app in W. destruct W as [W1 W2].
  destruct (starts_spec _ W2 _ _ _ _ _ _ K B E) as (o & s & -> & T). exists (s, en). split.
  - unfold terms. rewrite flat_map_app, nth_error_app2; rewrite whole_length by auto; [|lia].
    replace (length (flat_map entries (samples m)) + o + e - length (flat_map entries (samples m)))%nat
      with (o + e)%nat by lia. exact T.
  - apply andb_true_iff in C. destruct C as [C _]. eauto.
Qed.

Lemma price_norm c a u q : isnorm a = true -> price c a u = Some q -> Q2R q = 0.
Proof.
  unfold price. destruct (qlt 0 c); [|discriminate]. intros N H.
  destruct a; try discriminate; destruct (conjugate _ (scaleQ (/ c) u)) eqn:E; try discriminate; some;
    apply guard_some in E; destruct E as [_ ->]; autorewrite with q2r; lra.
Qed.
Lemma slack_sound m c' gap r t u w q0 : good m t -> isnorm (what (snd t)) = true -> slack c' gap r t u = true ->
  price (fst t) (what (snd t)) u = Some q0 -> length u = arity (what (snd t)) (length (cells (at_ (snd t)))) ->
  left m false t u w <= Q2R gap -> val (what (snd t)) (arg t w) <= Q2R r.
Proof.
  unfold slack. intros G N H C L Le. destruct (good_spec _ _ G) as (_ & _ & _ & A & S). rewrite <- (A w) in S.
  apply andb_true_iff in H. destruct H as [H H3]. apply andb_true_iff in H. destruct H as [H1 H2].
  destruct (price c' (what (snd t)) u) as [q|] eqn:E; [|discriminate]. apply qlt_R in H1. apply qle_R in H2.
    autorewrite with q2r in H2.
  unfold left in Le. rewrite (proj2 (Nat.eqb_eq _ _) L) in Le. rewrite <- (A w) in L. unfold charge in Le.
    rewrite C in Le. rewrite (price_norm _ _ _ _ N C) in Le. unfold cost in Le.
  destruct (price_sound _ _ _ (arg t w) _ S L E (norm_dom _ _ N)) as [_ F]. rewrite (price_norm _ _ _ _ N E) in F.
  rewrite norm_flow in F, Le by auto.
  set (v := val (what (snd t)) (arg t w)) in *. apply Rmult_le_reg_l with (Q2R (fst t) - Q2R c'); lra.
Qed.
Lemma priced d ts : forall free k us s rest x e t u, free = None -> dual d free k ts us s rest = Ok x ->
  nth_error ts e = Some t -> nth_error us e = Some u ->
  length u = arity (what (snd t)) (length (cells (at_ (snd t)))) /\ exists q, price (fst t) (what (snd t)) u = Some q.
Proof.
  induction ts as [|[s0 e0] ts IH]; intros free k [|u us] s rest x e t' u' -> H T U; try (destruct e; discriminate).
  simpl in H. destruct (_ =? _)%nat eqn:L; [|discriminate]. destruct (price s0 (what e0) u) as [q|] eqn:C;
    [|discriminate].
  apply Nat.eqb_eq in L. destruct e; simpl in *.
  - injection T as <-. injection U as <-. simpl in *. eauto.
  - eapply (IH None); eauto.
Qed.

(** * Along a direction *)
Definition moved (d : N) (v : tree) (w : point) : point := fun i j => w i j + point_of d v i j.
Lemma row_moved d v w cs : row cs (moved d v w) = row cs w + Q2R (rowQ d cs v).
Proof. rewrite row_Q. induction cs as [|[[i j] q] cs IH]; simpl; [lra|]. rewrite IH. unfold moved at 1. lra. Qed.
Lemma add_add v : forall z o, length v = length z -> length o = length z -> add (add z v) o = add (add z o) v.
Proof.
  induction v as [|q v IH]; intros [|x z] [|p o] L L'; simpl in *; try discriminate; auto.
  rewrite IH by lia. f_equal. lra.
Qed.
Lemma arg_moved m t v w : good m t ->
  arg t (moved (columns m) v w) = add (arg t w) (map (fun cs => rowQ (columns m) cs v) (cells (at_ (snd t)))).
Proof.
  intros G. destruct (good_spec _ _ G) as (_ & _ & O & _). unfold arg, numbers. set (K := cells (at_ (snd t))) in *.
  assert (E : map (fun cs => row cs (moved (columns m) v w)) K = add (map (fun cs => row cs w) K) (map (fun cs => rowQ
    (columns m) cs v) K)).
  { clear. induction K; simpl; auto. rewrite IHK, row_moved. reflexivity. }
  rewrite E. destruct (plus (snd t)) as [o|]; auto. apply add_add; rewrite !map_length; auto.
Qed.
Lemma recession_sound m v w ts : Forall (good m) ts -> forall k falls, recession (columns m) v k ts falls = Ok tt ->
  Forall (inside_domain w) ts ->
  let w' := moved (columns m) v w in
  Forall (inside_domain w') ts /\ sum_of w' ts <= sum_of w ts /\ (falls = true \/ sum_of w' ts < sum_of w ts).
Proof.
  induction 1 as [|[s e] ts G GS IH]; intros k falls H D w'.
  - simpl in H. destruct falls; [|discriminate]. unfold sum_of. simpl. split; [constructor|]. split; [lra|auto].
  - inversion D as [|? ? D1 D2]; subst. destruct (good_spec _ _ G) as (Pos & _ & _ & A & S). cbn [fst snd] in *.
    pose proof (changes_sound (what e) (map (fun cs => rowQ (columns m) cs v) (cells (at_ e))) (arg (s, e) w)) as C.
    rewrite A, map_length in C. specialize (C S eq_refl D1). pose proof (arg_moved m (s, e) v w G) as M.
      cbn [snd] in M. rewrite <- M in C. fold w' in C.
    cbn [recession] in H.
    assert (E : forall u, sum_of u ((s, e) :: ts) = Q2R s * val (what e) (arg (s, e) u) + sum_of u ts) by (intros;
      reflexivity).
    rewrite !E. destruct (changes _ _); [discriminate| |]; destruct C as [C1 C2];
      destruct (IH _ _ H D2) as (I1 & I2 & I3); fold w' in I1, I2, I3; (split; [now constructor|]).
    + assert (Q2R s * val (what e) (arg (s, e) w') <= Q2R s * val (what e) (arg (s, e) w)) by (apply Rmult_le_compat_l;
      lra).
      split; [lra|]. destruct I3; [auto|right; lra].
    + assert (Q2R s * val (what e) (arg (s, e) w') < Q2R s * val (what e) (arg (s, e) w)) by (apply Rmult_lt_compat_l;
      lra).
      split; [lra|]. right. lra.
Qed.

(** * The theorem *)
Lemma claims_ok p ts begins low high gap cs : forall k, check_claims p ts begins low high gap k cs = Ok tt ->
  forall c, In c cs -> check_claim p ts begins low high gap c = Ok tt.
Proof.
  induction cs as [|c0 cs IH]; intros k H c Hc; [destruct Hc|]. simpl in H.
  destruct (check_claim _ _ _ _ _ _ c0) as [[]|] eqn:E; [|discriminate]. destruct Hc as [<-|Hc]; [exact E|eauto].
Qed.

Theorem check_sound p low high : check p = Ok (low, high) ->
  well_formed (problem p) = true /\ holds (problem p) (within p) (Bounds low high) /\
  forall c, In c (claims p) -> holds (problem p) (within p) c.
Proof.
  unfold check. set (m := problem p). set (w := fill _ _ _ _). intros H.
  destruct (gather m 0 _) as [ts|] eqn:W; [|discriminate]. apply gather_spec in W. destruct W as [W T].
    change (ts = terms m) in T. subst ts.
  change (well_formed m = true) in W. rewrite counted in H. simpl (0 + _)%nat in H. set (begins := starts _ _) in H.
  pose proof (well_formed_terms m W) as G.
  destruct (match within p with None => Ok tt | Some _ => _ end) as [[]|] eqn:B; [|discriminate].
  destruct (primal _ _ _ _ _) as [hi|] eqn:Hh; [|discriminate].
  destruct (lower _ _ _ _ _) as [lo|] eqn:Hl; [|discriminate].
  destruct (demand (lo <=? hi)%Z _) as [[]|]; [|discriminate].
  destruct (demand (existsb _ _) _) as [[]|]; [|discriminate].
  set (gap := match within p with None => _ | Some _ => _ end) in H.
  destruct (check_claims _ _ _ _ _ _ _ _) as [[]|] eqn:K; [|discriminate]. injection H as <- <-.
  split; [exact W|].
  apply (primal_sum m w) in Hh; auto. destruct Hh as [Fw Uw]. rewrite real_0, Rminus_0_r in Uw.
    set (w0 := point_of (columns m) w) in *.
  change (sum_of w0 (terms m)) with (P m w0) in Uw.
  assert (Aw : allowed m (within p) w0).
  { split; [exact Fw|]. destruct (within p); auto. intros i j.
    destruct (demand (qle BOX q) _) as [[]|]; [|discriminate]. apply demand_ok in B. apply qle_R in B.
    pose proof (get_largest w (var (columns m) i j)). unfold w0, point_of. lra. }
  assert (Lo : forall v, allowed m (within p) v -> real lo <= P m v).
  { intros v [F I]. pose proof (lower_bound m (within p) None _ lo v G Hl I).
    pose proof (lefts_pos m v (terms m) None (dual_point p) G F Logic.I). lra. }
  assert (Gap : forall v, optimum m (within p) v -> lefts m None (terms m) (dual_point p) v <= Q2R (units gap)).
  { intros v [[F I] O]. specialize (O _ Aw).
    assert (V : lefts m None (terms m) (dual_point p) v <= real (hi - lo)).
    { pose proof (lower_bound m (within p) None _ lo v G Hl I). rewrite real_sub. lra. }
    change (lefts m None (terms m) (dual_point p) v <= real gap). unfold gap. destruct (within p); auto.
    destruct (existsb is_about_flow _); auto. destruct (residuals _ _ _ _ _) as [g|] eqn:R; auto.
    apply residual_sum in R; auto. rewrite real_0 in R. fold w0 in R. pose proof (lefts_change m _ _ v w0 G Hl).
    destruct (Z.min_spec g (hi - lo)) as [[_ ->]|[_ ->]]; auto. lra. }
  assert (S : forall k t u c' r, nth_error (terms m) k = Some t -> nth_error (dual_point p) k = Some u ->
    isnorm (what (snd t)) = true ->
    slack c' (units gap) r t u = true -> forall v, optimum m (within p) v -> val (what (snd t)) (arg t v) <= Q2R r).
  { intros k t u c' r T U N Sl v O. specialize (Gap v O). destruct O as [[F I] _].
    unfold lower in Hl. destruct (dual _ _ _ _ _ _ _) as [x|] eqn:E; [|discriminate].
    destruct (priced _ _ _ _ _ _ _ _ _ _ _ eq_refl E T U) as [L [q C]].
    assert (Gt : good m t) by (rewrite Forall_forall in G; apply G; eapply nth_error_In; eauto).
    eapply slack_sound; eauto. eapply Rle_trans; [|exact Gap]. eapply left_le_lefts; eauto. }
  split; [split; [exact Lo|exists w0; auto]|].
  intros c Hc. pose proof (claims_ok _ _ _ _ _ _ _ _ K c Hc) as H. clear K. unfold check_claim in H. fold m in H.
  destruct c as [l u|b e r|b e|b e us|direction].
  - apply demand_ok in H. apply andb_true_iff in H. destruct H as [H1 H2]. apply qle_R in H1, H2. split.
    + intros v A. eapply Rle_trans; [exact H1|]. now apply Lo.
    + exists w0. split; auto. eapply Rle_trans; [exact Uw|exact H2].
  - destruct (index _ _ b e) as [k|] eqn:X; [|discriminate]. destruct (index_spec _ _ _ _ W X) as (t & T & N & bl & Hb
    & He).
    rewrite T in H. destruct (nth_error (dual_point p) k) as [u|] eqn:U; [|discriminate].
    destruct (demand _ NotPositive) as [[]|]; [|discriminate]. destruct (demand _ WideGap) as [[]|]; [|discriminate].
      apply demand_ok in H.
    exists bl, (snd t). split; [exact Hb|]. split; [exact He|]. intros v O. eapply S; eauto.
  - destruct (index _ _ b e) as [k|] eqn:X; [|discriminate]. destruct (index_spec _ _ _ _ W X) as (t & T & N & bl & Hb
    & He).
    rewrite T in H. destruct (nth_error (dual_point p) k) as [u|] eqn:U; [|discriminate].
    destruct (demand _ WideGap) as [[]|]; [|discriminate]. apply demand_ok in H.
    exists bl, (snd t). split; [exact Hb|]. split; [exact He|]. intros v O. pose proof (S _ _ _ _ _ T U N H v O) as V.
      rewrite Q2R_0 in V.
    eapply norm_zero; eauto.
  - destruct (index _ _ b e) as [k|] eqn:X; [|discriminate]. destruct (index_spec _ _ _ _ W X) as (t & T & N & bl & Hb
    & He).
    destruct (lower _ _ (Some k) _ us) as [n|] eqn:L; [|discriminate]. apply demand_ok in H. apply Z.ltb_lt in H.
      apply real_lt in H.
    exists bl, (snd t). split; [exact Hb|]. split; [exact He|].
    intros v [[F I] O] Z. specialize (O _ Aw). pose proof (lower_bound m (within p) (Some k) us n v G L I).
    assert (0 <= lefts m (Some k) (terms m) us v); [|lra].
    apply lefts_pos; auto. simpl. intros t' T'. rewrite T in T'. injection T' as <-. exact Z.
  - intros v [[F I] O]. destruct (recession_sound m _ v _ G _ _ H F) as (F' & _ & [C|C]); [discriminate|].
    specialize (O (moved (columns m) (fill (columns m) 0 direction Leaf) v) (conj F' Logic.I)).
    change (sum_of v (terms m) <= sum_of (moved (columns m) (fill (columns m) 0 direction Leaf) v) (terms m)) in O. lra.
Qed.
Print Assumptions check_sound.
