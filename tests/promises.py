"""Which tests show that a clause of the contracts on durable pauses is kept: M3's managed input (C) and the bridge (A).

What each clause asks for stands in docs/clauses.md. `test_promises.py` holds both against each other and against the
tests that there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

KEPT_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "C1": (
        "tests/handles/test_human_input.py::test_another_word_than_fail_or_managed_is_refused",
        "tests/handles/test_human_input.py::test_the_awaitable_kit_takes_it_by_keyword_only_and_refuses_the_same",
    ),
    "C2": ("tests/handles/test_human_input.py::test_only_an_agent_spec_can_be_submitted",),
    "C3": ("tests/handles/test_human_input.py::test_people_and_predefined_answers_exclude_each_other",),
    "C4": ("tests/handles/test_human_input.py::test_without_a_store_that_lasts_nobody_can_be_waited_for",),
    "C5": ("tests/handles/test_human_input.py::test_the_word_is_kept_with_the_execution",),
    "C6": (
        "tests/handles/test_human_input.py::test_by_default_a_server_that_asks_ends_the_execution_and_nobody_can_answer",
    ),
    "C7": (
        "tests/handles/test_pending.py::test_two_pending_elicitations_are_an_error_and_can_be_answered_one_by_one",
    ),
    "C8": (
        "tests/api/test_rounds_reading.py::test_leases_protocol_states_and_what_is_not_on_the_card_never_leave",
        "tests/handles/test_pending.py::test_what_is_shown_holds_no_lease",
        "tests/services/managed_input/test_creating.py::test_what_is_shown_of_a_pause_has_no_lease",
    ),
    "C9": (
        "tests/core/test_managed_input_values.py::test_what_breaks_a_rule_is_no_value",
        "tests/worker/test_legacy_sessions.py::test_a_held_session_is_answered_in_place_and_the_call_is_made_once",
        "tests/worker/test_modern_rounds.py::test_many_keys_of_one_round_and_a_server_that_asks_for_what_it_misses",
    ),
    "C10": (
        "tests/core/test_managed_input_values.py::test_what_breaks_a_rule_is_no_value",
        "tests/services/managed_input/test_creating.py::test_an_index_is_an_integer_below_its_limit",
        "tests/services/managed_input/test_creating.py::test_index_and_open_round_count_within_one_operation",
        "tests/services/managed_input/test_creating.py::test_rounds_of_an_operation_may_leave_gaps_and_never_share_an_index",
        "tests/services/managed_input/test_delivery.py::test_the_operation_may_ask_again_after_each_answer",
    ),
    "C11": (
        "tests/services/managed_input/test_creating.py::test_a_round_id_names_one_round_of_all_executions",
        "tests/services/managed_input/test_creating.py::test_another_question_under_the_same_id_is_a_conflict",
        "tests/services/managed_input/test_creating.py::test_the_identical_call_again_finds_the_round_in_any_state",
        "tests/services/managed_input/test_creating.py::test_the_same_round_opened_differently_is_a_conflict",
    ),
    "C12": (
        "tests/services/managed_input/test_creating.py::test_what_cannot_be_stored_is_refused",
        "tests/services/managed_input/test_responding.py::test_an_answer_needs_names_that_are_not_empty",
    ),
    "C13": (
        "tests/services/managed_input/test_responding.py::test_what_does_not_answer_the_round_is_refused_and_the_round_stays_pending",
    ),
    "C14": (
        "tests/core/test_managed_input_values.py::test_what_is_no_answer_is_refused",
        "tests/services/managed_input/test_responding.py::test_what_does_not_answer_the_round_is_refused_and_the_round_stays_pending",
    ),
    "C15": (
        "tests/services/managed_input/test_responding.py::test_an_empty_form_is_an_answer_where_the_schema_allows_it_and_no_form_is_none",
        "tests/services/managed_input/test_responding.py::test_what_does_not_answer_the_round_is_refused_and_the_round_stays_pending",
    ),
    "C16": (
        "tests/core/test_managed_input_values.py::test_declining_may_say_that_it_has_no_content",
        "tests/core/test_managed_input_values.py::test_what_is_no_answer_is_refused",
        "tests/services/managed_input/test_responding.py::test_declining_asks_no_schema",
    ),
    "C17": ("tests/services/managed_input/test_responding.py::test_agreeing_to_a_page_carries_no_content",),
    "C18": (
        "tests/services/managed_input/test_responding.py::test_a_schema_that_cannot_be_used_refuses_every_content",
        "tests/services/managed_input/test_responding.py::test_references_inside_a_schema_and_whole_floats_work",
    ),
    "C19": (
        "tests/services/managed_input/test_responding.py::test_an_accepted_answer_is_stored_and_its_turn_goes_on",
        "tests/services/managed_input/test_responding.py::test_what_does_not_answer_the_round_is_refused_and_the_round_stays_pending",
    ),
    "C20": (
        "tests/services/managed_input/test_responding.py::test_another_answer_is_a_conflict",
        "tests/services/managed_input/test_responding.py::test_the_same_answer_again_is_the_same_record",
    ),
    "C21": ("tests/services/managed_input/test_responding.py::test_another_answer_is_a_conflict",),
    "C22": (
        "tests/api/test_responding.py::test_a_wrong_type_in_the_body_names_its_field",
        "tests/services/managed_input/test_responding.py::test_refusals_come_in_one_order",
    ),
    "C23": ("tests/services/managed_input/test_leases.py::test_a_lease_is_over_at_exactly_its_end",),
    "C24": (
        "tests/handles/test_responding.py::test_a_round_of_nobody_or_of_another_execution_is_refused",
        "tests/services/managed_input/test_creating.py::test_rounds_belong_to_an_execution_that_exists",
        "tests/services/managed_input/test_leases.py::test_nobody_changes_a_round_that_is_not_there",
        "tests/services/managed_input/test_responding.py::test_refusals_come_in_one_order",
    ),
    "C25": (
        "tests/handles/test_responding.py::test_an_answer_after_the_end_is_refused_with_how_it_ended",
        "tests/services/managed_input/test_responding.py::test_a_cancelled_run_takes_no_answer",
        "tests/services/managed_input/test_responding.py::test_another_answer_is_a_conflict",
        "tests/services/managed_input/test_responding.py::test_refusals_come_in_one_order",
    ),
    "C26": (
        "tests/services/managed_input/test_contention.py::test_of_eight_different_answers_at_once_one_is_stored",
        "tests/services/managed_input/test_contention.py::test_the_same_answer_eight_times_at_once_is_one_answer",
    ),
    "C27": (
        "tests/services/managed_input/test_responding.py::test_the_answer_makes_the_run_due",
        "tests/services/managed_input/test_sqlite_file.py::test_an_answer_from_another_process_makes_the_run_due",
    ),
    "C28": (
        "tests/services/managed_input/test_contention.py::test_of_eight_that_claim_at_once_one_gets_the_round",
        "tests/services/managed_input/test_leases.py::test_every_change_compares_owner_and_token",
        "tests/services/managed_input/test_leases.py::test_what_has_been_delivered_or_has_ended_is_not_renewed",
        "tests/services/managed_input/test_recovery.py::test_the_old_worker_can_change_nothing_any_more",
    ),
    "C29": (
        "tests/services/managed_input/test_leases.py::test_renewing_keeps_the_token_and_counts_from_now",
        "tests/services/managed_input/test_leases.py::test_what_has_been_delivered_or_has_ended_is_not_renewed",
    ),
    "C30": (
        "tests/services/managed_input/test_delivery.py::test_an_answer_is_delivered_step_by_step",
        "tests/services/managed_input/test_delivery.py::test_no_step_is_skipped_or_undone",
        "tests/services/managed_input/test_delivery.py::test_what_failed_is_not_delivered",
        "tests/services/managed_input/test_leases.py::test_repeating_a_change_needs_a_live_lease_too",
    ),
    "C31": (
        "tests/services/managed_input/test_contention.py::test_of_eight_that_claim_at_once_one_gets_the_round",
        "tests/services/managed_input/test_recovery.py::test_a_round_is_taken_over_with_proof_alone",
        "tests/services/managed_input/test_recovery.py::test_claims_are_refused_in_one_order",
    ),
    "C32": (
        "tests/services/managed_input/test_recovery.py::test_a_round_is_taken_over_with_proof_alone",
        "tests/services/managed_input/test_recovery.py::test_a_second_delivery_counts_and_keeps_when_the_first_began_until_it_begins",
    ),
    "C33": (
        "tests/services/managed_input/test_delivery.py::test_a_known_cause_is_called_the_same_everywhere",
        "tests/services/managed_input/test_delivery.py::test_a_resolved_round_does_not_fail",
        "tests/services/managed_input/test_delivery.py::test_a_round_fails_from_every_unresolved_status",
        "tests/services/managed_input/test_delivery.py::test_failing_again_for_the_same_reason_changes_nothing_and_for_another_is_a_conflict",
        "tests/services/managed_input/test_leases.py::test_repeating_a_change_needs_a_live_lease_too",
    ),
    "C34": (
        "tests/services/managed_input/test_recovery.py::test_a_lost_session_fails_its_round_and_its_execution",
        "tests/services/managed_input/test_recovery.py::test_losing_it_again_changes_nothing_whatever_is_said",
        "tests/services/managed_input/test_recovery.py::test_nothing_is_given_up_before_its_lease_is_over",
    ),
    "C35": (
        "tests/services/managed_input/test_recovery.py::test_a_lost_session_fails_its_round_and_its_execution",
        "tests/services/managed_input/test_recovery.py::test_a_round_that_nobody_holds_cannot_be_lost",
        "tests/services/managed_input/test_recovery.py::test_an_execution_ends_with_the_last_round_that_was_held",
        "tests/worker/test_local_tools.py::test_after_a_crash_a_replayable_tool_runs_again_with_the_answers_already_given",
        "tests/worker/test_recovery.py::test_a_lost_live_session_fails_its_round_and_run_and_refuses_late_answers",
    ),
    "C36": (
        "tests/services/managed_input/test_creating.py::test_an_execution_that_has_ended_asks_nothing",
        "tests/services/managed_input/test_delivery.py::test_what_failed_is_not_delivered",
        "tests/services/managed_input/test_recovery.py::test_claims_are_refused_in_one_order",
        "tests/services/managed_input/test_recovery.py::test_losing_it_again_changes_nothing_whatever_is_said",
    ),
    "C37": (
        "tests/handles/test_life.py::test_rounds_of_a_reopened_file_are_read_without_starting_anything",
        "tests/services/managed_input/test_recovery.py::test_reading_starts_nothing",
        "tests/services/managed_input/test_sqlite_file.py::test_a_new_store_on_the_same_file_reads_what_was_stored_and_starts_nothing",
    ),
    "C38": (
        "tests/handles/test_ending.py::test_a_finished_execution_is_deleted_with_its_rounds",
        "tests/handles/test_ending.py::test_an_unfinished_execution_is_not_deleted",
        "tests/services/managed_input/test_recovery.py::test_with_a_finished_run_its_rounds_go",
    ),
    "C39": (
        "tests/services/managed_input/test_creating.py::test_a_turn_that_asks_has_begun_its_work_and_waits",
        "tests/services/managed_input/test_delivery.py::test_the_operation_may_ask_again_after_each_answer",
        "tests/services/managed_input/test_responding.py::test_a_turn_waits_until_its_last_round_is_answered",
        "tests/services/managed_input/test_responding.py::test_an_accepted_answer_is_stored_and_its_turn_goes_on",
    ),
    "C40": (
        "tests/handles/test_responding.py::test_an_answer_after_the_deadline_ends_the_execution_as_timed_out",
        "tests/services/managed_input/test_responding.py::test_the_deadline_is_no_business_of_the_store",
        "tests/services/test_rounds_answers.py::test_after_the_deadline_the_turn_has_timed_out_and_the_answer_is_refused",
    ),
    "C41": (
        "tests/handles/test_ending.py::test_an_execution_that_waits_for_an_answer_is_cancelled",
        "tests/handles/test_main_way.py::test_cancelling_one_request_answers_it_and_cancels_no_execution",
        "tests/services/managed_input/test_contention.py::test_cancelling_and_answering_at_once_end_in_one_truth",
        "tests/services/managed_input/test_responding.py::test_a_cancelled_run_takes_no_answer",
    ),
    "C42": (
        "tests/worker/test_bad_servers.py::test_an_unusable_schema_can_be_declined_and_a_server_that_never_stops_asking_meets_its_limit",
    ),
    "C43": (
        "tests/handles/test_result.py::test_a_timeout_that_is_not_above_zero_is_refused",
        "tests/handles/test_result.py::test_a_wait_that_is_over_leaves_the_execution_alive",
        "tests/handles/test_result.py::test_every_later_call_gives_the_same_result",
    ),
    "C44": (
        "tests/services/managed_input/test_responding.py::test_asking_and_answering_are_told_in_this_order",
    ),
    "C45": (
        "tests/core/test_redaction.py::test_userinfo_and_secret_parameters_of_urls_are_masked_anywhere_in_a_text",
        "tests/services/managed_input/test_redacted_responses.py::test_secrets_are_masked_in_the_copy_alone",
        "tests/services/managed_input/test_redacted_responses.py::test_there_is_nothing_to_show_before_an_answer",
    ),
    "C46": (
        "tests/services/managed_input/test_damaged_rows.py::test_a_damaged_row_is_refused_by_every_call",
    ),
    "C47": (
        "tests/core/test_managed_input_values.py::test_what_breaks_a_rule_is_no_value",
        "tests/handles/test_life.py::test_rounds_of_a_reopened_file_are_read_without_starting_anything",
        "tests/services/managed_input/test_leases.py::test_the_clock_has_a_time_zone",
        "tests/services/managed_input/test_leases.py::test_without_a_clock_it_is_now_in_utc",
        "tests/services/managed_input/test_sqlite_file.py::test_a_new_store_on_the_same_file_reads_what_was_stored_and_starts_nothing",
        "tests/services/managed_input/test_sqlite_file.py::test_an_operation_waits_for_another_one_only_as_long_as_it_is_told_to",
        "tests/services/managed_input/test_sqlite_file.py::test_nothing_stays_open_between_operations",
    ),
    "C48": (
        "tests/handles/test_selection.py::test_a_selected_tool_needs_no_approval_though_its_mode_would_ask",
        "tests/handles/test_selection.py::test_a_selection_opens_neither_a_blocked_nor_a_strict_tool",
        "tests/handles/test_selection.py::test_a_selection_that_cannot_be_meant_is_refused",
        "tests/handles/test_selection.py::test_a_tool_outside_the_selection_is_denied_and_never_called",
        "tests/handles/test_selection.py::test_in_plan_mode_a_selected_tool_waits_for_the_plan",
    ),
    "C49": (
        "tests/handles/test_main_way.py::test_a_program_answers_what_a_server_asks_and_the_call_goes_on_once",
        "tests/handles/test_main_way.py::test_the_awaitable_kit_does_the_same",
    ),
    "A1": (
        "tests/worker/test_legacy_sessions.py::test_a_held_session_is_answered_in_place_and_the_call_is_made_once",
        "tests/worker/test_local_tools.py::test_while_its_worker_lives_a_tool_that_asks_continues_in_place",
        "tests/worker/test_modern_rounds.py::test_prompts_and_resources_pause_like_tools",
    ),
    "A2": ("tests/handles/test_human_input.py::test_without_a_store_that_lasts_nobody_can_be_waited_for",),
    "A3": (
        "tests/mcp/test_legacy_prompts.py::test_without_anybody_to_ask_the_server_is_refused_at_once",
        "tests/worker/test_legacy_sessions.py::test_with_nobody_to_ask_the_server_is_refused_and_the_run_fails_clearly",
    ),
    "A4": (
        "tests/mcp/test_demo_servers.py::test_the_letter_and_the_label_ask_before_they_are_given",
        "tests/worker/test_local_tools.py::test_after_a_crash_a_replayable_tool_runs_again_with_the_answers_already_given",
        "tests/worker/test_replay.py::test_a_stored_answer_is_never_given_to_a_prompt_that_differs",
        "tests/worker/test_replay.py::test_the_open_round_waits_on_and_the_call_is_made_again_with_all_answers",
    ),
    "A5": (
        "tests/worker/test_legacy_sessions.py::test_a_held_session_is_answered_in_place_and_the_call_is_made_once",
        "tests/worker/test_session_keeper.py::test_cancelling_a_run_whose_session_is_held_ends_it_at_once",
    ),
    "A6": (
        "tests/worker/test_modern_rounds.py::test_prompts_and_resources_pause_like_tools",
        "tests/worker/test_moves.py::test_an_answer_is_applied_by_the_round_that_carries_it",
        "tests/worker/test_moves.py::test_the_rows_permit_one_move",
    ),
    "A8": (
        "tests/worker/test_legacy_sessions.py::test_several_held_sessions_of_a_parallel_group_wait_side_by_side",
        "tests/worker/test_legacy_sessions.py::test_two_prompts_at_once_of_one_call_are_asked_one_after_the_other",
    ),
    "A9": (
        "tests/worker/test_recovery.py::test_a_reply_that_was_journalled_is_used_and_the_call_not_repeated",
    ),
    "A10": (
        "tests/services/managed_input/test_creating.py::test_a_turn_that_asks_has_begun_its_work_and_waits",
        "tests/services/test_rounds_answers.py::test_after_the_deadline_the_turn_has_timed_out_and_the_answer_is_refused",
    ),
    "A11": (
        "tests/mcp/test_reattach_stdio.py::test_a_session_of_which_nobody_has_a_record_is_not_kept_and_its_call_not_sent",
        "tests/services/test_events.py::test_a_rollback_sends_no_hint_and_leaves_the_chain_whole",
    ),
    "A13": (
        "tests/services/test_events.py::test_a_hint_goes_out_after_the_commit_and_not_before",
        "tests/services/test_older_rows.py::test_a_pause_of_the_first_version_is_answered_after_every_migration",
    ),
    "A14": (
        "tests/worker/test_local_tools.py::test_after_a_crash_a_replayable_tool_runs_again_with_the_answers_already_given",
    ),
    "A15": ("tests/mcp/test_time.py::test_cancelling_during_a_prompt_frees_the_prompt",),
    "A16": (
        "tests/handles/test_life.py::test_a_closed_kit_refuses_work_and_its_handles_do_too",
        "tests/handles/test_life.py::test_whoever_waits_when_the_kit_closes_is_told",
    ),
    "A17": (
        "tests/core/test_durations.py::test_anything_else_is_refused_with_a_sentence_that_shows_how_to_write_it",
        "tests/core/test_durations.py::test_every_way_to_write_a_limit_is_read",
        "tests/core/test_durations.py::test_null_means_no_limit",
    ),
    "A18": (
        "tests/browser/test_time.py::test_when_time_runs_out_the_open_card_closes_late_answers_are_refused_and_the_run_says_so",
        "tests/services/test_moments.py::test_the_history_says_how_long_there_is_to_answer_and_until_when",
        "tests/services/test_rounds_answers.py::test_after_the_deadline_the_turn_has_timed_out_and_the_answer_is_refused",
        "tests/worker/test_recovery.py::test_a_deadline_that_passes_ends_round_and_run_as_timed_out",
    ),
    "A19": (
        "tests/services/test_turns.py::test_an_end_is_written_to_the_turn_its_run_and_the_history",
        "tests/services/test_turns.py::test_pauses_of_an_ending_turn_fail_with_the_code_of_the_cause",
    ),
    "A20": (
        "tests/mcp/test_legacy_prompts.py::test_every_action_reaches_the_server",
        "tests/worker/test_modern_rounds.py::test_a_declined_form_reaches_the_server_as_a_decline",
    ),
    "A21": (
        "tests/services/test_decisions_drafts.py::test_the_first_answer_is_kept_and_the_pause_stays",
        "tests/services/test_decisions_drafts.py::test_the_last_answer_sends_all_of_them",
    ),
    "A22": (
        "tests/worker/test_local_tools.py::test_while_its_worker_lives_a_tool_that_asks_continues_in_place",
    ),
    "A23": (
        "tests/worker/test_kill_points.py::test_killed_at_a_moment_of_the_call",
        "tests/worker/test_recovery.py::test_a_started_call_of_unknown_outcome_is_not_repeated_but_asked_about",
        "tests/worker/test_recovery.py::test_run_again_is_one_permission_for_one_attempt",
    ),
    "A24": (
        "tests/services/test_lease.py::test_of_eight_threads_that_claim_at_once_one_wins_and_the_others_learn_that_it_is_busy",
        "tests/worker/test_recovery.py::test_a_worker_that_was_replaced_writes_nothing",
    ),
    "A25": (
        "tests/services/test_control.py::test_a_run_that_is_not_there_is_not_found",
        "tests/services/test_rounds_answers.py::test_an_unknown_pause_is_not_found",
    ),
    "A26": (
        "tests/worker/test_session_keeper.py::test_a_worker_that_stops_after_the_answer_leaves_the_call_to_the_next_one",
        "tests/worker/test_tasks_recovery.py::test_another_worker_delivers_what_was_answered_while_none_was_there",
    ),
    "A27": (
        "tests/worker/test_modern_rounds.py::test_three_rounds_of_one_call_keep_their_order",
        "tests/worker/test_session_keeper.py::test_two_prompts_of_one_call_with_three_workers_are_two_rounds_and_one_execution",
    ),
    "A29": ("tests/services/test_rounds_answers.py::test_an_answer_is_no_message_and_opens_no_turn",),
    "A30": (
        "tests/worker/test_legacy_sessions.py::test_a_url_prompt_records_consent_and_carries_its_elicitation_id",
        "tests/worker/test_modern_rounds.py::test_many_keys_of_one_round_and_a_server_that_asks_for_what_it_misses",
    ),
    "A32": (
        "tests/worker/test_legacy_sessions.py::test_cancelling_the_run_cancels_the_call_on_its_server",
        "tests/worker/test_legacy_sessions.py::test_several_held_sessions_of_a_parallel_group_wait_side_by_side",
    ),
    "A33": (
        "tests/services/test_control_live.py::test_cancelling_ends_children_first_then_every_turn_and_pause",
        "tests/worker/test_own_pauses.py::test_cancelling_a_run_cancels_its_children_first_and_every_card_closes",
    ),
    "A35": (
        "tests/services/test_control_live.py::test_cancelling_one_child_leaves_its_siblings_and_parent_running",
    ),
    "A36": (
        "tests/mcp/test_legacy_prompts.py::test_an_exception_of_the_callback_stops_the_call_and_its_text_stays_here",
        "tests/mcp/test_time.py::test_cancelling_the_call_cancels_the_tool_over_stdio",
    ),
    "A38": (
        "tests/api/test_responding.py::test_every_kind_of_pause_can_be_answered",
        "tests/api/test_rounds_reading.py::test_every_kind_is_shown_with_the_facts_of_its_card",
    ),
}
