//! One contract, every store: each case below runs on each of them, in a fresh place.

mod artifacts;
mod belongings;
mod commits;
mod components;
mod differential;
mod journals;
mod kit;
mod lists;
mod rows;
mod sqlite;
mod upgrade;
mod values;

macro_rules! contract {
    ($($noun:ident: $($case:ident),+;)+) => {
        mod memory {
            $($(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                crate::$noun::$case(&crate::kit::Place::memory()).await;
            })+)+
        }
        mod sqlite_file {
            $($(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                crate::$noun::$case(&crate::kit::Place::sqlite()).await;
            })+)+
        }
    };
}

contract! {
    rows:
        a_task_is_durable_when_create_returns,
        an_id_is_taken_once,
        a_key_of_a_caller_is_taken_once,
        what_is_unknown_is_absent,
        every_field_comes_back,
        texts_come_back_byte_for_byte,
        figures_count_what_changed;
    commits:
        a_commit_is_durable_when_it_returns,
        what_was_fixed_stays_fixed,
        what_is_final_is_never_replaced,
        versions_only_grow,
        a_stale_commit_leaves_nothing,
        a_former_owner_is_fenced_off,
        of_two_commits_one_wins,
        of_several_claims_one_wins,
        fenced_commits_spoil_no_others,
        stale_commits_spoil_no_others;
    belongings:
        questions_come_back,
        questions_end_with_their_task,
        questions_of_a_call_that_can_be_made_again_stay,
        owners_come_and_go;
    journals:
        segments_come_back_in_order,
        a_segment_is_read_back_after_a_lost_answer,
        a_journal_has_no_gaps,
        a_segment_of_another_lease_is_refused,
        a_restart_point_deletes_what_lies_before,
        a_base_is_a_segment_and_only_grows,
        a_task_begins_with_a_restart_point,
        output_is_replaced_with_its_row;
    lists:
        pages_are_complete_under_inserts,
        lists_are_filtered,
        lists_are_of_a_range_of_ids,
        orphans_are_what_others_left,
        what_is_unfinished_is_complete_and_in_order,
        sweeping_is_bounded_and_takes_all;
    components:
        an_install_is_durable_when_it_returns,
        installing_the_same_changes_nothing,
        a_name_points_at_what_was_installed_last,
        descriptors_belong_to_the_digest,
        a_removed_name_is_gone,
        bytes_stay_while_they_are_needed,
        a_grant_lasts_as_long_as_its_name,
        tasks_and_components_share_a_store;
    values:
        a_change_is_durable_and_takes_place_once,
        every_component_of_every_tenant_has_values_of_its_own,
        values_have_room_for_so_much,
        keys_come_in_the_order_of_their_bytes,
        what_came_of_changes_goes_with_their_call;
    artifacts:
        an_artifact_is_durable_and_kept_once,
        an_artifact_is_its_callers_alone,
        a_call_leaves_so_much,
        what_a_task_left_goes_with_its_row,
        what_other_calls_left_goes_at_its_time;
}
