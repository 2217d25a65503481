//! `batchscan login` and `logout`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use batchscan_testbed::ScriptedServer;
use batchscan_testbed::scripted_server::Response;
use snapbox::{file, str};

use crate::program::Outcome;
use crate::scans;
use crate::service::Service;
use crate::site::Site;
use crate::user::User;

fn serve(site: &Site) -> Service {
    site.import(&site.write("a.ndjson", scans::ndjson(0..50, "x")));
    site.serve(&[])
}

/// A web server that is not batchscan.
fn other_server() -> ScriptedServer {
    let page = Response::new(200, "<html><title>Welcome</title></html>").with("Content-Type", "text/html");
    ScriptedServer::start(move |_| page.clone())
}

#[track_caller]
fn login(user: &User<'_>, name: &str) {
    user.run(&["login", "--profile", name]).succeeds();
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_login_is_saved_privately_and_used_by_other_commands() {
    let site = Site::new();
    let service = serve(&site);
    let user = User::of(&site, &service);
    user.transcript(
        &["login", "login --profile north", "login --list"],
        file!["snapshots/a_login_is_saved_privately_and_used_by_other_commands.txt"],
    );
    let file = site.path("config/batchscan/profiles.json");
    assert_eq!((mode(&file), mode(&site.path("config/batchscan"))), (0o600, 0o700));
    let bare = |words: &[&str]| Outcome::run(&mut user.bare(words)).succeeds();
    bare(&["pull", "-o", "a.csv"]);
    assert!(user.read("a.csv") == user.pulled("b.csv", &[]));
    assert!(bare(&["list", "--limit", "1"]).contains("Tray 49"));
    assert!(bare(&["summary", "--start-date", "2026-01", "--end-date", "2026-01"]).contains("Lettuce"));
    assert!(bare(&["check"]).contains("rules"));
    bare(&["pull", "-o", "c.csv", "--profile", "north"]);
    let mut by_variable = user.bare(&["pull", "-o", "d.csv"]);
    Outcome::run(by_variable.env("BATCHSCAN_PROFILE", "north")).succeeds();
    assert!(user.read("c.csv") == user.read("a.csv") && user.read("d.csv") == user.read("a.csv"));
}

#[test]
fn a_login_that_the_service_rejects_is_not_saved() {
    let site = Site::new();
    let service = serve(&site);
    let user = User::of(&site, &service);
    let config = site.path("config");
    let wrong = || Outcome::run(user.command(&["login"]).env("BATCHSCAN_CLIENT_SECRET", "hush"));
    wrong().fails(str![[r#"
error: the service rejected the credentials (The client_id or client_secret is wrong); check the client id and secret

"#]]);
    let other = other_server();
    assert_eq!(user.at(&other.url()).run(&["login"]).code, Some(1));
    assert!(!config.exists());
    // An existing profile stays.
    login(&user, "default");
    let before = std::fs::read(config.join("batchscan/profiles.json")).unwrap();
    assert_eq!(wrong().code, Some(1));
    assert_eq!(std::fs::read(config.join("batchscan/profiles.json")).unwrap(), before);
    let without = |name: &str| Outcome::run(user.command(&["login"]).env_remove(name));
    without("BATCHSCAN_URL").fails(str![[r#"
error: --url is missing

"#]]);
    without("BATCHSCAN_CLIENT_ID").fails(str![[r#"
error: --client-id is missing

"#]]);
    without("BATCHSCAN_CLIENT_SECRET").fails(str![[r#"
error: no client secret given: set BATCHSCAN_CLIENT_SECRET or use --client-secret-file

"#]]);
}

#[test]
fn profiles_are_listed_without_secrets_and_removed_by_name() {
    let site = Site::new();
    let service = serve(&site);
    let user = User::of(&site, &service);
    user.bare_transcript(
        &["login --list"],
        file!["snapshots/profiles_are_listed_without_secrets_and_removed_by_name.txt"],
    );
    login(&user, "south");
    login(&user, "north");
    user.bare_transcript(
        &[
            // There is no default.
            "list",
            "logout --profile north",
            "logout --profile north",
            "logout",
            "pull -o a.csv --profile north",
            "pull -o a.csv --profile south",
            "logout --profile south",
            "logout --profile south",
        ],
        file!["snapshots/profiles_are_listed_without_secrets_and_removed_by_name_2.txt"],
    );
    let file = std::fs::read_to_string(site.path("config/batchscan/profiles.json")).unwrap();
    assert!(!file.contains(&user.credential.secret));
}

#[test]
fn saved_credentials_are_not_sent_to_another_service() {
    let site = Site::new();
    let service = serve(&site);
    let user = User::of(&site, &service);
    login(&user, "default");
    let other = other_server();
    let (url, id) = (other.url(), &user.credential.id);
    user.bare_transcript(
        &[
            &format!("pull -o a.csv --url {url}"),
            &format!("list --url {url}"),
            &format!("summary --url {url} --client-id {id}"),
            // Nor for another client of the same service.
            "list --client-id bs_other",
        ],
        file!["snapshots/saved_credentials_are_not_sent_to_another_service.txt"],
    );
    assert_eq!(Outcome::run(user.bare(&["list"]).env("BATCHSCAN_URL", &url)).code, Some(1));
    assert!(other.requests().is_empty(), "it received a request");
    // Given explicitly, they are sent.
    user.at(&url).pull("a.csv", &[]);
    assert!(!other.requests().is_empty());
    let slash = format!("{}/", service.url);
    Outcome::run(&mut user.bare(&["pull", "-o", "a.csv", "--url", &slash])).succeeds();
}

#[test]
fn a_profile_on_the_command_line_overrides_the_environment() {
    let site = Site::new();
    let service = serve(&site);
    let user = User::of(&site, &service);
    login(&user, "north");
    let other = other_server();
    user.at(&other.url()).run(&["list", "--profile", "north"]).succeeds();
    assert_eq!(user.run(&["list", "--profile", "south"]).code, Some(1));
    assert!(other.requests().is_empty(), "it received a request");
}

#[test]
fn a_profile_file_that_other_users_can_read_is_rejected() {
    let site = Site::new();
    let service = serve(&site);
    let user = User::of(&site, &service);
    login(&user, "default");
    let file = site.path("config/batchscan/profiles.json");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    user.bare_transcript(
        &["pull -o a.csv", "list", "login --list", "logout"],
        file!["snapshots/a_profile_file_that_other_users_can_read_is_rejected.txt"],
    );
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    Outcome::run(&mut user.bare(&["pull", "-o", "a.csv"])).succeeds();
    std::fs::write(&file, "{\"default\": hush").unwrap();
    user.bare_transcript(
        &["list"],
        file!["snapshots/a_profile_file_that_other_users_can_read_is_rejected_2.txt"],
    );
}

#[test]
fn without_a_config_folder_a_login_fails_and_a_pull_works() {
    let site = Site::new();
    let service = serve(&site);
    let user = User::of(&site, &service);
    let homeless = |words: &[&str]| {
        let mut command = user.command(words);
        Outcome::run(command.env_remove("XDG_CONFIG_HOME").env_remove("HOME"))
    };
    homeless(&["login"]).fails(str![[r#"
error: no config folder: set HOME or XDG_CONFIG_HOME

"#]]);
    homeless(&["pull", "-o", "a.csv"]).succeeds();
    let mut at_home = user.command(&["login"]);
    at_home.env_remove("XDG_CONFIG_HOME").env("HOME", site.path("home"));
    assert!(Outcome::run(&mut at_home).succeeds().contains("home/.config/batchscan/profiles.json\n"));
}
