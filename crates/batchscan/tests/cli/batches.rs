//! `batchscan batch`.

use snapbox::file;

use crate::organisations::on_a_terminal;
use crate::scans;
use crate::site::{ORG, Site};

#[test]
fn batches_are_shown_and_removed() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..4, "as scanned")));
    site.transcript(
        &[
            "batch show --org 'Green Valley' scan-0000001 scan-0000000",
            "batch show --org 'Green Valley' scan-0000001 other",
            "batch show --org Nort scan-0000001",
            "batch show --org 'Green Valley' ''",
            "batch remove --org 'Green Valley' scan-0000001",
            "batch remove --org 'Green Valley' scan-0000001 other --yes",
            "batch remove --org 'Green Valley' scan-0000001 --keep-removals 0 --yes",
            "batch remove --org 'Green Valley' scan-0000002 scan-0000001 scan-0000001 --yes",
            "batch show --org 'Green Valley' scan-0000001 scan-0000002 scan-0000003",
            "doctor --json",
        ],
        file!["snapshots/batches_are_shown_and_removed.txt"],
    );
}

#[test]
fn on_a_terminal_a_removal_is_confirmed() {
    let site = Site::new();
    site.import(&site.write("a.ndjson", scans::ndjson(0..1, "as scanned")));
    let remove = "batch remove --org 'Green Valley' scan-0000000";
    let cancelled = on_a_terminal(&site, remove, "no\n");
    assert!(cancelled.code == Some(1) && cancelled.out.contains("nothing was removed"), "{cancelled:?}");
    site.run(&["batch", "show", "--org", ORG, "scan-0000000"]).succeeds();
    let removed = on_a_terminal(&site, remove, "yes\n");
    assert!(removed.code == Some(0) && removed.out.contains("removed 1 batch from"), "{removed:?}");
    assert_eq!(site.run(&["batch", "show", "--org", ORG, "scan-0000000"]).code, Some(1));
}
