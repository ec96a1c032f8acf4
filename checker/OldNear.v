(** A rule that once stood in graphreg/verify.py for "near": gap < c r,
  and the dual norm of the flow at most c - gap / r.
    It is not sound. Here is a model, an optimum of it, and a claim that the rule accepts and that is false. *)
Require Import ZArith NArith QArith Qreals Reals Lra List Bool.
From Checker Require Import Definitions Numbers Compute ExpLog Functions Checker Sound.
Import ListNotations.
Open Scope R_scope.

Definition old_near (t : term) (gap r : Q) (u : list Q) : bool :=
  qlt 0 r && qlt gap (fst t * r)
  && match price (fst t - gap / r) (what (snd t)) u with Some _ => true | None => false end.

(** w_0^2 / 2 + (w_1 - 10)^2 / 2 + |w_0 - w_1|, whose optimum is (1, 9). *)
Definition sample (i : N) (y : Q) : entry := {| what := Squared y; at_ := AtNode i 1 [1%Q]; plus := Some [0%Q];
  weight := 1 |}.
Definition edge : entry := {| what := L1; at_ := Edge 0 (Some 1%N) [0%N]; plus := None; weight := 1 |}.
Definition m0 : model :=
  {| nodes := 2; columns := 1; samples := [{| strength := 1; by_ := AsWeight; entries := [sample 0 0; sample 1 10] |}];
     edges := [{| strength := 1; by_ := AsWeight; entries := [edge] |}] |}.
Definition us0 : list (list Q) := [[1%Q]; [(- (1))%Q]; [(- (1))%Q]].
Definition w0 : tree := fill 1 0 [[1%Q]; [9%Q]] Leaf.
Definition p0 (cs : list claim) : proof :=
  {| problem := m0; at_point := [[1%Q]; [9%Q]]; dual_point := us0; within := None; claims := cs |}.

(** The gap is exactly 0, the old rule accepts "at most 1 apart", and they are 8 apart. *)
Theorem old_near_is_unsound :
  residuals 1 w0 (terms m0) us0 0 = Some 0%Z /\ old_near (1%Q,
    edge) 0 1 [(- (1))%Q] = true /\ ~ holds m0 None (Near 0 0 1).
Proof.
  split; [vm_compute; reflexivity|]. split; [vm_compute; reflexivity|].
  intros (b & e & B & E & H). injection B as <-. injection E as <-.
  assert (K : check (p0 [Bounds 9 9]) = Ok (units (9 * Zpos UNIT), units (9 * Zpos UNIT))) by (vm_compute; reflexivity).
  apply check_sound in K. destruct K as (W & _ & K).
  specialize (K (Bounds 9 9) ltac:(simpl; auto)). destruct K as [L _].
  assert (U : primal 1 w0 0 (terms m0) 0 = Ok (9 * Zpos UNIT)%Z) by (vm_compute; reflexivity).
  assert (N : units (9 * Zpos UNIT) == 9) by (vm_compute; reflexivity).
    apply (primal_sum m0 w0 _ (well_formed_terms m0 W)) in U. destruct U as [F U].
  rewrite real_0, Rminus_0_r in U. apply Qeq_eqR in N. unfold real in U. rewrite N in U.
  assert (O : optimum m0 None (point_of 1 w0)).
  { split; [now split|]. intros v A. eapply Rle_trans; [exact U|]. now apply L. }
  specialize (H _ O). cbn [val what edge] in H. rewrite <- numbers_Q, <- norm1Q_R in H.
  apply Rle_Qle, Qle_bool_iff in H. assert (X : Qle_bool (norm1Q (numbersQ 1 None (cells (at_ edge)) w0)) 1 = false)
    by (vm_compute; reflexivity).
  change (Qle_bool (norm1Q (numbersQ 1 None (cells (at_ edge)) w0)) 1 = true) in H. rewrite X in H. discriminate H.
Qed.

(** The rule of today refuses it. *)
Example refused : check (p0 [Bounds 9 9; Near 0 0 1]) = No (InClaim 1 NoSlack).
Proof. vm_compute. reflexivity. Qed.
Print Assumptions old_near_is_unsound.
