//! The contract of `batchscan_store`, checked on both databases.
//!
//! A claim is a function over a [`Fixture`]; `on_both_stores!` turns each into two tests.
//! With `PARTITIONS=1`, the table of batches is partitioned on PostgreSQL (docs/REFERENCE.md).

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod audit;
mod blocks;
mod changes;
mod copies;
mod deliveries;
mod fixture;
mod imports;
mod model;
mod operators;
mod pages;
mod repairs;
mod seen;
mod sqlite_file;

// `cargo bolero` compiles this, too, and then needs its runtime (docs/TESTING.md).
use bolero as _;

use fixture::Fixture;

macro_rules! on_both_stores {
    ($($module:ident::$claim:ident),* $(,)?) => {
        on_both_stores!(@sqlite Fixture::sqlite: $($module::$claim),*);
        on_both_stores!(@postgres Fixture::postgres: $($module::$claim),*);
    };
    (@$backend:ident $fixture:ident::$new:ident: $($module:ident::$claim:ident),*) => {
        mod $backend {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $claim() {
                    super::$module::$claim(&super::$fixture::$new().await).await;
                }
            )*
        }
    };
}

on_both_stores!(
    audit::every_change_has_an_entry,
    audit::what_changes_nothing_has_no_entry,
    audit::entries_are_read_by_time_and_number,
    audit::numbers_follow_the_order_of_commits,
    pages::batches_are_ordered_by_time_then_by_the_bytes_of_their_id,
    pages::a_text_is_returned_as_it_was_imported,
    pages::both_ends_of_a_date_range_are_inclusive_to_the_microsecond,
    pages::pages_of_any_size_add_up_to_the_whole,
    pages::a_page_ends_at_its_limit_of_bytes,
    pages::an_array_has_all_batches_in_both_encodings,
    pages::a_credential_of_another_organisation_is_invalid,
    pages::skipping_by_version_reads_no_batches,
    pages::paging_never_returns_a_batch_again_that_moved,
    imports::every_change_creates_a_new_version,
    imports::an_import_without_changes_keeps_the_version,
    imports::a_known_id_is_corrected_even_if_its_date_moves,
    imports::the_last_of_several_batches_with_one_id_wins,
    imports::an_id_of_several_batches_is_a_warning_or_an_error,
    imports::a_file_replaces_other_batches_only_if_it_is_forced,
    imports::a_file_without_the_column_of_a_stored_value_must_be_forced,
    imports::an_empty_cell_that_empties_a_stored_value_is_a_warning,
    imports::an_id_with_other_leading_zeros_must_be_forced,
    imports::a_batch_that_is_restored_counts_as_unchanged,
    imports::a_dry_run_counts_and_keeps_nothing,
    imports::an_import_for_an_unknown_organisation_fails,
    changes::changes_come_in_pages_of_any_size,
    changes::a_batch_occurs_once_in_a_page,
    changes::without_news_nothing_is_read,
    changes::a_position_of_a_lost_version_is_gone,
    changes::a_position_is_gone_only_if_it_has_not_seen_a_pruned_removal,
    changes::only_the_newest_versions_are_kept,
    changes::versions_before_a_pruned_removal_are_deleted,
    changes::removing_is_all_or_nothing,
    changes::paging_does_not_return_a_batch_again_that_was_removed_and_imported,
    deliveries::every_import_is_recorded,
    deliveries::a_repeated_delivery_returns_the_first_result,
    deliveries::of_concurrent_deliveries_with_one_key_one_is_applied,
    deliveries::operator_tokens_are_issued_used_and_revoked,
    deliveries::a_revoked_operator_token_changes_nothing,
    deliveries::copies_and_backups_have_imports_and_operator_tokens,
    deliveries::watchers_are_listed_until_they_are_forgotten,
    operators::an_overview_has_the_time_of_the_last_change,
    operators::a_removed_organisation_takes_everything_with_it,
    operators::a_credential_has_at_most_two_secrets,
    operators::a_rotation_ends_sessions_and_links_with_the_old_secret,
    operators::links_do_not_end_sessions,
    operators::a_revoked_credential_stays_invalid,
    operators::keys_are_created_once_and_shared,
    operators::old_keys_are_kept_until_they_are_removed,
    operators::a_copy_is_equal_to_its_source,
    operators::the_last_use_only_moves_forward,
    operators::a_backup_is_a_complete_store,
    copies::a_copy_replaces_what_its_target_had,
    copies::a_change_of_the_source_during_the_copy_is_noticed,
    copies::a_target_with_the_history_of_others_is_not_overwritten,
    repairs::batches_newer_than_their_version_are_sent_again,
    repairs::a_client_continues_from_a_version_that_was_not_recorded,
    repairs::batches_without_an_organisation_are_deleted,
    seen::marks_belong_to_an_organisation,
    seen::marking_again_keeps_the_first_time,
    seen::a_note_and_being_seen_are_independent,
    seen::an_invalid_credential_neither_reads_nor_marks,
    seen::only_new_marks_are_kept,
    seen::concurrent_changes_are_all_applied,
    seen::copies_and_backups_have_marks,
    blocks::a_gzip_page_has_the_text_of_the_plain_one_after_any_import,
    blocks::no_block_is_added_to_a_full_page,
    blocks::a_repair_deletes_blocks_without_an_organisation,
    blocks::the_newest_batches_stay_uncompressed_until_they_fill_a_block,
    blocks::late_and_single_imports_do_not_leave_small_blocks,
    blocks::a_wrong_block_is_replaced_and_its_batches_are_sent_again,
    blocks::a_missing_block_is_harmless,
    model::random_operations_have_the_results_of_a_model,
);
