//! The contract of `batchscan_store`, held against every store there is.
//!
//! A claim is a function over a [`Fixture`]; `holds_on!` makes each of them a test of every store.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and so does what it is made of"
)]

mod fixture;
mod imports;
mod operators;
mod packs;
mod pages;
mod sqlite_file;
mod versions;

use fixture::Fixture;

macro_rules! holds_on {
    ($($module:ident::$claim:ident),* $(,)?) => {
        holds_on!(@sqlite Fixture::sqlite: $($module::$claim),*);
        holds_on!(@postgres Fixture::postgres: $($module::$claim),*);
    };
    (@$backend:ident $fixture:ident::$fresh:ident: $($module:ident::$claim:ident),*) => {
        mod $backend {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $claim() {
                    super::$module::$claim(&super::$fixture::$fresh().await).await;
                }
            )*
        }
    };
}

holds_on!(
    pages::batches_come_by_instant_then_by_the_bytes_of_their_id,
    pages::a_text_comes_out_as_it_went_in,
    pages::both_ends_of_a_window_are_inclusive_to_the_microsecond,
    pages::pages_of_any_size_together_are_the_whole,
    pages::a_page_ends_at_its_limit_of_bytes,
    pages::a_tenant_sees_its_own_batches_alone,
    pages::a_credential_of_another_organisation_is_dead,
    pages::what_is_known_of_the_version_spares_the_reading,
    pages::a_walk_never_meets_a_batch_again_whose_date_moved,
    packs::a_compressed_page_has_the_text_of_the_plain_one_whatever_was_imported,
    versions::every_change_gives_a_version_that_never_was,
    versions::an_import_that_changes_nothing_leaves_the_version_alone,
    versions::a_second_handle_sees_a_commit_at_once,
    imports::a_known_id_is_corrected_also_when_its_date_moves,
    imports::the_later_of_two_batches_with_one_id_wins_and_is_counted,
    imports::a_batch_that_comes_back_to_what_it_was_is_unchanged,
    imports::without_a_verdict_nothing_is_kept,
    imports::a_dry_run_counts_and_keeps_nothing,
    imports::an_import_for_nobody_is_refused,
    operators::organisations_are_added_renamed_and_removed,
    operators::a_removed_organisation_takes_all_that_is_its_own,
    operators::a_credential_has_two_secrets_at_most,
    operators::a_revoked_credential_is_dead_for_good,
    operators::a_credential_dies_in_the_moment_of_its_expiry,
    operators::keys_are_made_once_and_shared,
    operators::new_keys_come_beside_the_old_ones_until_those_are_forgotten,
    operators::what_is_poured_into_another_store_is_the_same_there,
    operators::the_last_use_only_moves_forward,
    operators::a_backup_is_a_whole_store,
    operators::an_examination_finds_a_sound_store_well,
);
