(* The axioms behind every main theorem, file by file; a test compares them with an allowed list.
   The theorems of a file are printed together: what is printed is the union of their axioms. *)
Require weighted_mean attention_online recurrence_forms online_softmax counter_calculus recurrence_counts output_counts running_bound prefix_product binary32 linear layer_norm softmax attention axial_block claims.

Definition of_recurrence_forms := (@recurrence_forms.S_restart, @recurrence_forms.S_unrolled,
  @recurrence_forms.y_masked_attention, @recurrence_forms.chunked_correct, @recurrence_forms.blocks_correct,
  @recurrence_forms.carried_state_S, @recurrence_forms.carried_state_y, @recurrence_forms.scan_state,
  @recurrence_forms.scan_tree_state, @recurrence_forms.foldl_scan_state, @recurrence_forms.S_closed,
  @recurrence_forms.y_closed, @recurrence_forms.S_segment, @recurrence_forms.y_segment,
  @recurrence_forms.segments_correct, @recurrence_forms.S_majorant, @recurrence_forms.y_majorant).
Goal True. idtac "file recurrence_forms". Abort. Print Assumptions of_recurrence_forms.

Definition of_online_softmax := (@online_softmax.online_softmax, @online_softmax.merge_repr,
  @online_softmax.repr_softmax, @online_softmax.denominator_range).
Goal True. idtac "file online_softmax". Abort. Print Assumptions of_online_softmax.

Definition of_counter_calculus := (@counter_calculus.exact_cv, @counter_calculus.near_cv, @counter_calculus.add_cv,
  @counter_calculus.mul_cv, @counter_calculus.cv_error, @counter_calculus.anysum_cv, @counter_calculus.dot_cv,
  @counter_calculus.rho_gamma, @counter_calculus.underflow_gamma).
Goal True. idtac "file counter_calculus". Abort. Print Assumptions of_counter_calculus.

Definition of_recurrence_counts := (@recurrence_counts.sequential_state_count,
  @recurrence_counts.masked_attention_state_count, @recurrence_counts.chunked_state_count,
  @recurrence_counts.scan_state_count, @recurrence_counts.scan_carried_state_count, @recurrence_counts.any_order_state_count).
Goal True. idtac "file recurrence_counts". Abort. Print Assumptions of_recurrence_counts.

Definition of_output_counts := (@output_counts.sequential_output_count, @output_counts.masked_attention_output_count,
  @output_counts.chunked_output_count, @output_counts.scan_output_count, @output_counts.scan_carried_output_count,
  @output_counts.any_order_output_count).
Goal True. idtac "file output_counts". Abort. Print Assumptions of_output_counts.

Definition of_running_bound := (@running_bound.running_state_bound, @running_bound.running_output_bound).
Goal True. idtac "file running_bound". Abort. Print Assumptions of_running_bound.

Definition of_prefix_product := (@prefix_product.prefix_relative, @prefix_product.supports_implies_range,
  @prefix_product.closed_form_fails, @prefix_product.segmented_state_bound, @prefix_product.segmented_output_bound).
Goal True. idtac "file prefix_product". Abort. Print Assumptions of_prefix_product.

Definition of_binary32 := (@binary32.binary32_near, @binary32.binary32_near_normal, @binary32.flushed_near,
  @binary32.flushed_near_normal, @binary32.Bplus_near, @binary32.Bmult_near, @binary32.Bfma_near,
  @binary32.Bdiv_near, @binary32.Bsqrt_near).
Goal True. idtac "file binary32". Abort. Print Assumptions of_binary32.

Definition of_linear := (@linear.linear_bound, @linear.linear_bias_bound, @linear.residual_bound,
  @linear.residual_early_bias_bound).
Goal True. idtac "file linear". Abort. Print Assumptions of_linear.

Definition of_layer_norm := (@layer_norm.mean_bound, @layer_norm.mean_square_bound,
  @layer_norm.two_pass_variance_bound, @layer_norm.one_pass_variance_bound, @layer_norm.root_bound,
  @layer_norm.correctly_rounded_root, @layer_norm.local_spec, @layer_norm.folded_spec, @layer_norm.local_any,
  @layer_norm.layer_norm_decomposition, @layer_norm.layer_norm_functional,
  @layer_norm.layer_norm_bound).
Goal True. idtac "file layer_norm". Abort. Print Assumptions of_layer_norm.

Definition of_softmax := (@softmax.weights_two_pass, @softmax.weights_online, @softmax.weights_deviation,
  @softmax.weights_deviation_max, @softmax.weights_largest, @softmax.quotient_bound).
Goal True. idtac "file softmax". Abort. Print Assumptions of_softmax.

Definition of_attention := (@attention.logit_bound, @attention.logit_scaled_first_bound, @attention.logit_any_bound,
  @attention.logit_propagation,
  @attention.attention_quotient_bound, @attention.attention_two_pass_bound).
Goal True. idtac "file attention". Abort. Print Assumptions of_attention.

Definition of_weighted_mean := @weighted_mean.weighted_mean_bound.
Goal True. idtac "file weighted_mean". Abort. Print Assumptions of_weighted_mean.

Definition of_attention_online := (@attention_online.weight_error, @attention_online.rescaled_sum_error,
  @attention_online.rescaled_sum_low, @attention_online.attention_online_quotient,
  @attention_online.attention_online_bound, @attention_online.two_pass_is_online).
Goal True. idtac "file attention_online". Abort. Print Assumptions of_attention_online.

Definition of_axial_block := (@axial_block.qkv_error, @axial_block.logit_error, @axial_block.projection_error,
  @axial_block.axial_pass_bound, @axial_block.axial_any_pass_bound, @axial_block.any_normalised_functional,
  @axial_block.any_normalised_channel, @axial_block.normalised_functional, @axial_block.normalised_channel,
  @axial_block.second_pass_input).
Goal True. idtac "file axial_block". Abort. Print Assumptions of_axial_block.

Definition of_claims := (@claims.recurrence_sequential_state, @claims.recurrence_sequential_output,
  @claims.recurrence_masked_attention_state, @claims.recurrence_masked_attention_output,
  @claims.recurrence_chunked_state, @claims.recurrence_chunked_output, @claims.recurrence_scan_state,
  @claims.recurrence_scan_output, @claims.recurrence_scan_carried_state, @claims.recurrence_scan_carried_output,
  @claims.recurrence_any_order_state, @claims.recurrence_any_order_output,
  @claims.recurrence_prefix_product_state, @claims.recurrence_prefix_product_output,
  @claims.recurrence_prefix_product_segmented_state, @claims.recurrence_prefix_product_segmented_output,
  @claims.recurrence_any_form_state, @claims.recurrence_any_form_output, @claims.recurrence_sequential_running,
  @claims.recurrence_sequential_running_state, @claims.recurrence_underflow, @claims.count_bound_q_spec,
  @claims.axial_layer_norm_two_pass, @claims.axial_layer_norm_one_pass, @claims.axial_layer_norm_counts,
  @claims.axial_layer_norm_root, @claims.axial_linear, @claims.axial_linear_without_bias, @claims.axial_logit,
  @claims.axial_attention_two_pass, @claims.axial_attention_online, @claims.axial_attention_counts, @claims.axial_residual,
  @claims.axial_residual_early_bias, @claims.axial_block, @claims.axial_block_tokens,
  @claims.axial_any_form, @claims.axial_any_form_tokens, @claims.axial_any_form_channel, @claims.axial_any_form_counts,
  @claims.axial_any_form_logit).
Goal True. idtac "file claims". Abort. Print Assumptions of_claims.
