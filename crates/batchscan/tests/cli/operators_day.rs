//! What an operator does every day: status, the record of imports, backups, and commands with the service's settings.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use serde_json::Value;

use crate::http::{auth, token};
use crate::program::{Outcome, batchscan};
use crate::site::{ORG, Site};

fn status(site: &Site) -> (Option<i32>, Value) {
    let outcome = site.run(&["status", "--json"]);
    (outcome.code, serde_json::from_str(&outcome.out).unwrap())
}

#[test]
fn status_puts_what_needs_attention_first() {
    for site in [Site::new, Site::on_postgres] {
        let site = site();
        assert_eq!(status(&site).0, Some(0), "nothing yet");
        let good = site.write(
            "good.csv",
            "batch_id,batch_name,batch_creation_date,number_of_images,warnings\n\
                               b-1,Roma,2026-01-31T08:00:00Z,12,false\n",
        );
        let bad = site.write("bad.csv", "batch_id,batch_name\nb-1,Roma\n");
        site.run(&["import", "--org", ORG, &good]).succeeds();
        assert_eq!(site.run(&["import", "--org", ORG, &bad]).code, Some(1));
        site.run(&["credential", "issue", "--org", ORG, "--label", "ERP", "--expires", "10d"]).succeeds();
        let (code, found) = status(&site);
        assert_eq!(code, Some(1));
        let attention = found["attention"].to_string();
        for text in
            ["there is no backup", "bad.csv was rejected", "missing required column", "(ERP) expires at"]
        {
            assert!(attention.contains(text), "{text}: {attention}");
        }
        let org = &found["organisations"][0];
        assert_eq!(
            (org["batches"].as_u64(), &org["newest_batch_at"]),
            (Some(1), &"2026-01-31T08:00:00Z".into())
        );
        assert_eq!(org["last_import"]["new"], 1);
        let text = site.run(&["status"]).out;
        assert!(text.starts_with("needs attention:\n"), "{text}");
        // Only an import of the same file settles it.
        site.run(&["import", "--org", ORG, &good]).succeeds();
        assert!(status(&site).1["attention"].to_string().contains("bad.csv was rejected"));
        std::fs::copy(site.path("good.csv"), site.path("bad.csv")).unwrap();
        site.run(&["import", "--org", ORG, &bad]).succeeds();
        assert!(!status(&site).1["attention"].to_string().contains("rejected"));
        // Warnings stay until they are acknowledged, also after other imports.
        let future = std::fs::read_to_string(site.path("good.csv")).unwrap().replace("2026", "2999");
        let future = site.write("future.csv", future.replace("b-1", "b-2"));
        assert_eq!(site.run(&["import", "--org", ORG, &future]).code, Some(0));
        site.run(&["import", "--org", ORG, &good]).succeeds();
        let warned = "future.csv was imported with 1 warning";
        assert!(status(&site).1["attention"].to_string().contains(warned));
        let acknowledge = |file| site.run(&["imports", "--org", ORG, "--file", file, "--acknowledge"]);
        for (file, code, error) in
            [("good", 1, "contains \"good\" has unack"), ("", 2, "a value is required")]
        {
            let nothing = acknowledge(file);
            assert!(nothing.code == Some(code) && nothing.err.contains(error), "{nothing:?}");
        }
        assert!(status(&site).1["attention"].to_string().contains(warned), "another file");
        assert!(acknowledge("fut").succeeds().starts_with("acknowledged 1 import: "));
        assert!(!status(&site).1["attention"].to_string().contains(warned));
        let imports = site.run(&["imports", "--org", ORG]).succeeds();
        assert_eq!(imports.matches("rejected").count(), 1, "{imports}");
        assert!(imports.contains("bad.csv: line 1: warnings: missing required column"), "{imports}");
    }
}

/// Decision 006: the client cannot tell why it is rejected, the operator can.
#[test]
fn status_names_a_revoked_credential_that_is_still_used() {
    let site = Site::new();
    let credential = site.credential();
    let mut service = site.serve(&[]);
    token(&service, &credential);
    site.run(&["credential", "revoke", &credential.id]).succeeds();
    let rejected = auth(&service, &credential);
    assert!(rejected.text().contains("The client_id or client_secret is wrong"), "{rejected:?}");
    service.stop();
    let log = service.log();
    assert!(log.contains("the credential was revoked"), "{log}");
    let attention = status(&site).1["attention"].to_string();
    assert!(
        attention.contains(&format!("{} was revoked, but a client still used it at", credential.id)),
        "{attention}"
    );
}

#[test]
fn a_backup_with_keep_removes_the_oldest_and_nothing_else() {
    let site = Site::new();
    site.write("batchscan-2026-01-01T000000Z.db", "old");
    site.write("batchscan-notes.db", "kept");
    for _ in 0..2 {
        site.run(&["backup", "--keep", "1", &site.name(".")]).succeeds();
        // The name has seconds.
        std::thread::sleep(std::time::Duration::from_millis(1_100));
    }
    let names = std::fs::read_dir(site.path(".")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name.starts_with("batchscan-"));
    names.sort();
    assert!(
        matches!(names.as_slice(), [backup, notes] if backup > &"batchscan-2026-01-02".to_owned()
        && notes == "batchscan-notes.db"),
        "{names:?}"
    );
    // It can be opened, and has the record of itself and of the one before.
    let restored = format!("sqlite:{}", site.name(&names[0]));
    let audit = site.run(&["audit", "--database", &restored]).succeeds();
    assert_eq!(audit.matches(" backup ").count(), 2, "{audit}");
    let restored = site.run(&["status", "--database", &restored]).succeeds();
    assert!(restored.starts_with("nothing needs attention"), "{restored}");
}

#[test]
fn commands_use_the_settings_of_the_service() {
    let site = Site::new();
    site.write(
        "environment",
        format!(
            "# settings\nBATCHSCAN_DATABASE='{}'\nBATCHSCAN_PUBLIC_URL=\"https://scans.example.org\"\n",
            site.database
        ),
    );
    let run = |words: &[&str]| {
        let mut command = batchscan(words);
        command.current_dir(site.path(".")).env("BATCHSCAN_SETTINGS", site.path("environment"));
        Outcome::run(&mut command)
    };
    assert!(run(&["org", "list"]).succeeds().contains(ORG));
    let link = run(&["credential", "issue", "--org", ORG, "--link"]).succeeds();
    assert!(link.contains("https://scans.example.org/#sign-in-link="), "{link}");
    assert!(!run(&["org", "list", "--help"]).succeeds().contains("scans.db"));
    let settings = std::fs::read_to_string(site.path("environment")).unwrap();
    let listening = settings.replace(
        "PUBLIC_URL=\"https://scans.example.org\"",
        "LISTEN='0.0.0.0:9443'\nBATCHSCAN_TLS_CERT='a.pem'",
    );
    site.write("environment", listening);
    let link = run(&["credential", "issue", "--org", ORG, "--link"]);
    assert!(link.out.contains("https://127.0.0.1:9443/#sign-in-link="), "{link:?}");
    assert!(link.err.contains("listen at https://127.0.0.1:9443);"), "{link:?}");
    site.write(
        "environment",
        settings.replace("PUBLIC_URL=\"https://scans.example.org\"", "TLS_CERT='a.pem'"),
    );
    let link = run(&["credential", "issue", "--org", ORG, "--link"]);
    assert!(link.out.contains("https://127.0.0.1:8080/#sign-in-link="), "{link:?}");
    let other = run(&["org", "list", "--database", "sqlite:other.db"]);
    assert!(other.err.contains("there is no database at other.db"), "{other:?}");
}

#[test]
fn a_database_that_root_creates_belongs_to_the_folder_and_its_group() {
    let folder = tempfile::tempdir().unwrap();
    if rustix::process::geteuid().is_root() {
        chown(folder.path(), Some(12_345), Some(12_345)).unwrap();
    }
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o2770)).unwrap();
    let database = format!("sqlite:{}", folder.path().join("batchscan.db").display());
    Outcome::run(&mut batchscan(&["org", "add", ORG, "--database", &database])).succeeds();
    let file = folder.path().join("batchscan.db").metadata().unwrap();
    let folder = folder.path().metadata().unwrap();
    assert_eq!((file.uid(), file.gid(), file.mode() & 0o777), (folder.uid(), folder.gid(), 0o660));
    Outcome::run(&mut batchscan(&["doctor", "--database", &database])).succeeds();
}

#[test]
fn a_file_that_would_damage_stored_batches_must_be_forced() {
    for site in [Site::new, Site::on_postgres] {
        let site = site();
        let rows = "batch_id,batch_name,batch_creation_date,number_of_images,warnings,avg_germination_rate\n\
                    b-1,Roma,2026-11-16T07:00:00Z,12,false,92.50\n";
        site.import(&site.write("whole.csv", rows));
        let without_rate =
            site.write("without.csv", rows.replace(",avg_germination_rate", "").replace(",92.50", ""));
        let rejected = site.run(&["import", "--org", ORG, &without_rate]);
        assert!(
            rejected.err.contains("avg_germination_rate: no column or no values in the file"),
            "{rejected:?}"
        );
        let empty = site.write("empty.csv", rows.replace("92.50", ""));
        assert!(site.run(&["import", "--org", ORG, &empty]).err.contains("no values in the file"));
        let forced = site.run(&["import", "--org", ORG, &without_rate, "--force"]);
        assert!(forced.out.contains("1 corrected") && forced.err.contains("lose this value"), "{forced:?}");
    }
}

#[test]
fn the_settings_of_an_organisation_apply_to_its_files() {
    for site in [Site::new, Site::on_postgres] {
        let site = site();
        let file = site.write(
            "berlin.csv",
            "batch_id;batch_name;batch_creation_date;number_of_images;warnings;Keimrate\n\
             b-1;Roma;16.11.2026 08:00;12;nein;92,5\n",
        );
        let rejected = site.run(&["import", "--org", ORG, &file]);
        assert_eq!(rejected.code, Some(1), "{rejected:?}");
        assert!(rejected.err.contains("--timezone"), "{rejected:?}");
        let wrong = site.write("wrong.toml", "timezone = \"Berlin\"\n");
        let refused = site.run(&["org", "mapping", ORG, "--set", &wrong]);
        assert!(refused.err.contains("line 1: timezone: expected"), "{refused:?}");
        let mapping = site.write("right.toml", "[columns]\n\"Keimrate\" = \"avg_germination_rate\"\n");
        site.run(&["org", "mapping", ORG, "--set", &mapping]).succeeds();
        site.run(&["org", "set", ORG, "--timezone", "Europe/Berlin"]).succeeds();
        assert!(site.run(&["org", "mapping", ORG, "--show"]).succeeds().contains("Keimrate"));
        site.import(&file);
        let batch = site.run(&["batch", "show", "--org", ORG, "b-1"]).succeeds();
        assert!(batch.contains("\"batch_creation_date\":\"2026-11-16T07:00:00Z\""), "{batch}");
        assert!(batch.contains("\"avg_germination_rate\":\"92.50\""), "{batch}");
        // What `pull` writes has another decimal mark.
        let mapping = site.write("comma.toml", "decimal = \",\"\n");
        site.run(&["org", "mapping", ORG, "--set", &mapping]).succeeds();
        let pulled = site.write(
            "pulled.csv",
            "batch_id,batch_name,batch_creation_date,number_of_images,warnings,avg_germination_rate\n\
             b-1,Roma,2026-11-16T07:00:00Z,12,false,92.50\n",
        );
        let rejected = site.run(&["import", "--org", ORG, &pulled]);
        assert!(rejected.err.contains("for a file of another kind, add --no-mapping"), "{rejected:?}");
        let unchanged = site.run(&["import", "--org", ORG, &pulled, "--no-mapping"]).succeeds();
        assert!(unchanged.contains("1 unchanged"), "{unchanged}");
        // Ids of the mapping must differ.
        let template = site.write("template.toml", "batch_id = \"{batch_name}\"\n");
        let line = "Roma;2026-11-16T08:00:00Z;12;nein\n";
        let other = "Roma;2026-11-16T08:00:00Z;13;nein\n";
        let equal = site.write(
            "equal.csv",
            format!("batch_name;batch_creation_date;number_of_images;warnings\n{line}{other}"),
        );
        let text = "equal.csv: batch_id: two batches get the id \"Roma\" from the template in the mapping: add fields";
        let rejected = site.run(&["import", "--org", ORG, &equal, "--mapping", &template]);
        assert!(rejected.err.contains(text), "{rejected:?}");
        // Also if the first one was imported before.
        let first = equal.replace("equal", "first");
        std::fs::write(&first, format!("batch_name;batch_creation_date;number_of_images;warnings\n{line}"))
            .unwrap();
        site.run(&["import", "--org", ORG, &first, "--mapping", &template]).succeeds();
        for option in ["--dry-run", "--preview", "--json"] {
            let rejected = site.run(&["import", "--org", ORG, &equal, "--mapping", &template, option]);
            assert!(rejected.err.contains(text), "{option}: {rejected:?}");
        }
        let imports = site.run(&["imports", "--org", ORG]).succeeds();
        assert!(imports.contains("two batches get the id"), "{imports}");
        let status = site.run(&["status"]);
        assert!(status.code == Some(1) && status.out.contains("equal.csv was rejected at "), "{status:?}");
        site.run(&["imports", "--org", ORG, "--acknowledge"]).succeeds();
        assert!(!site.run(&["status"]).out.contains("equal.csv was rejected"));
        site.run(&["org", "mapping", ORG, "--clear"]).succeeds();
        assert!(site.run(&["org", "mapping", ORG, "--show"]).succeeds().contains("has no mapping"));
    }
}
