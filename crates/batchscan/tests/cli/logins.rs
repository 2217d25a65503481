//! `batchscan login` and `logout`: credentials kept under a name, for their service alone.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::program::Outcome;
use crate::scans;
use crate::service::Service;
use crate::site::Site;
use crate::stranger::Stranger;
use crate::user::User;

fn few(site: &Site) -> Service {
    site.import(&site.write("a.ndjson", scans::ndjson(0..50, "x")));
    site.serve(&[])
}

/// Logs in under a name, which must go well. Gives what was said.
#[track_caller]
fn login(user: &User<'_>, name: &str) -> String {
    user.run(&["login", "--profile", name]).done()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_login_is_kept_for_its_owner_alone_and_a_pull_needs_no_more() {
    let site = Site::new();
    let service = few(&site);
    let user = User::of(&site, &service);
    let kept = site.name("config/batchscan/profiles.json");
    let (url, id) = (&service.url, &user.credential.id);
    assert_eq!(
        login(&user, "default"),
        format!(
            "signed in to {url} as {id}; kept as profile default in {kept}\n\
             next: batchscan pull --start-date 30d --output batches.xlsx\n"
        )
    );
    assert_eq!((mode(kept.as_ref()), mode(&site.path("config/batchscan"))), (0o600, 0o700));
    let bare = |words: &[&str]| Outcome::of(&mut user.bare(words)).done();
    bare(&["pull", "-o", "a.csv"]);
    assert!(user.read("a.csv") == user.pulled("b.csv", &[]));
    assert!(bare(&["list", "--limit", "1"]).contains("Tray 49"));
    assert!(bare(&["summary", "--start-date", "2026-01", "--end-date", "2026-01"]).contains("Lettuce"));
    assert!(
        login(&user, "north")
            .ends_with("next: batchscan pull --profile north --start-date 30d --output batches.xlsx\n")
    );
    bare(&["pull", "-o", "c.csv", "--profile", "north"]);
    let mut by_variable = user.bare(&["pull", "-o", "d.csv"]);
    Outcome::of(by_variable.env("BATCHSCAN_PROFILE", "north")).done();
    assert!(user.read("c.csv") == user.read("a.csv") && user.read("d.csv") == user.read("a.csv"));
}

#[test]
fn a_login_that_the_service_refuses_is_not_kept() {
    let site = Site::new();
    let service = few(&site);
    let user = User::of(&site, &service);
    let config = site.path("config");
    let mut wrong = user.command(&["login"]);
    let message = "the service rejected the credentials (The client_id or client_secret is wrong); check the \
        client id and secret";
    Outcome::of(wrong.env("BATCHSCAN_CLIENT_SECRET", "hush")).fails(message);
    let nobody = Stranger::with_html("200 OK");
    let outcome = user.at(&nobody.url()).run(&["login"]);
    assert!(outcome.code == Some(1) && outcome.err.contains("does not respond like"), "{outcome:?}");
    assert!(!config.exists());
    // A good one stays when a bad one follows.
    login(&user, "default");
    let before = std::fs::read(config.join("batchscan/profiles.json")).unwrap();
    Outcome::of(wrong.env("BATCHSCAN_CLIENT_SECRET", "hush")).fails(message);
    assert_eq!(std::fs::read(config.join("batchscan/profiles.json")).unwrap(), before);
    for (name, message) in [
        ("BATCHSCAN_URL", "--url is missing"),
        ("BATCHSCAN_CLIENT_ID", "--client-id is missing"),
        (
            "BATCHSCAN_CLIENT_SECRET",
            "the client secret is missing: set BATCHSCAN_CLIENT_SECRET or give --client-secret-file",
        ),
    ] {
        Outcome::of(user.command(&["login"]).env_remove(name)).fails(message);
    }
}

#[test]
fn profiles_are_listed_without_their_secrets_and_forgotten_by_name() {
    let site = Site::new();
    let service = few(&site);
    let user = User::of(&site, &service);
    let list = || Outcome::of(&mut user.bare(&["login", "--list"])).done();
    assert_eq!(list(), "no profiles; keep one with `batchscan login --url URL --client-id ID`\n");
    login(&user, "south");
    login(&user, "north");
    let (url, id) = (&service.url, &user.credential.id);
    let (wide, gap) = (url.len(), " ".repeat(url.len() - 3));
    assert_eq!(
        list(),
        format!("profile  url{gap}  client id\nnorth    {url:wide$}  {id}\nsouth    {url:wide$}  {id}\n")
    );
    let logout = |words: &[&str]| Outcome::of(&mut user.bare(&[&["logout"], words].concat()));
    assert_eq!(logout(&["--profile", "north"]).done(), "forgot profile north\n");
    logout(&["--profile", "north"]).fails("there is no profile north: the saved ones are south");
    logout(&[]).fails("there is no profile default: the saved ones are south");
    let pull = |name: &str| Outcome::of(&mut user.bare(&["pull", "-o", "a.csv", "--profile", name]));
    pull("north").fails("there is no profile north: the saved ones are south");
    pull("south").done();
    assert_eq!(logout(&["--profile", "south"]).done(), "forgot profile south\n");
    logout(&["--profile", "south"])
        .fails("there is no profile south, nor any other: `batchscan login` saves one");
    let kept = std::fs::read_to_string(site.path("config/batchscan/profiles.json")).unwrap();
    assert!(!kept.contains(&user.credential.secret));
}

#[test]
fn kept_credentials_do_not_reach_another_service() {
    let site = Site::new();
    let service = few(&site);
    let user = User::of(&site, &service);
    login(&user, "default");
    let stranger = Stranger::with_html("200 OK");
    let url = stranger.url();
    let id = &format!("the client id is missing: profile default is for {}, not {url}", service.url);
    let secret = "the client secret is missing: set BATCHSCAN_CLIENT_SECRET or give --client-secret-file, or run \
        `batchscan login`";
    for words in [&["pull", "-o", "a.csv"][..], &["list"], &["summary"]] {
        let with = |more: &[&str]| Outcome::of(&mut user.bare(&[words, more].concat()));
        with(&["--url", &url]).fails(id);
        Outcome::of(user.bare(words).env("BATCHSCAN_URL", &url)).fails(id);
        with(&["--url", &url, "--client-id", &user.credential.id]).fails(secret);
        // Nor another client of the same service.
        with(&["--client-id", "bs_other"]).fails(secret);
    }
    assert_eq!(stranger.told(), b"", "the other service was spoken to");
    // Given by hand, they go where they are sent: the stranger does hear what is said to it.
    user.at(&url).pull("a.csv", &[]);
    assert!(!stranger.told().is_empty());
    let same = Outcome::of(&mut user.bare(&["pull", "-o", "a.csv", "--url", &format!("{}/", service.url)]));
    same.done();
}

#[test]
fn a_profile_that_is_named_counts_before_the_environment() {
    let site = Site::new();
    let service = few(&site);
    let user = User::of(&site, &service);
    login(&user, "north");
    let stranger = Stranger::with_html("200 OK");
    // `user.at` has its address, id and secret in the environment.
    user.at(&stranger.url()).run(&["list", "--profile", "north"]).done();
    let unknown = user.run(&["list", "--profile", "south"]);
    unknown.fails("there is no profile south: the saved ones are north");
    assert_eq!(stranger.told(), b"", "the other service was spoken to");
}

#[test]
fn a_file_of_profiles_that_others_can_read_is_refused_with_the_remedy() {
    let site = Site::new();
    let service = few(&site);
    let user = User::of(&site, &service);
    login(&user, "default");
    let kept = site.name("config/batchscan/profiles.json");
    let message = format!("{kept} holds secrets, and others can read or write it: chmod 600 {kept}");
    std::fs::set_permissions(&kept, PermissionsExt::from_mode(0o644)).unwrap();
    for words in [&["pull", "-o", "a.csv"][..], &["list"], &["login", "--list"], &["logout"]] {
        Outcome::of(&mut user.bare(words)).fails(&message);
    }
    std::fs::set_permissions(&kept, PermissionsExt::from_mode(0o600)).unwrap();
    Outcome::of(&mut user.bare(&["pull", "-o", "a.csv"])).done();
    std::fs::write(&kept, "{\"default\": hush").unwrap();
    let damaged = format!("{kept} is damaged: line 1, column 13: this is not JSON");
    Outcome::of(&mut user.bare(&["list"])).fails(&damaged);
}

#[test]
fn without_a_folder_for_profiles_a_login_says_so_and_a_pull_needs_none() {
    let site = Site::new();
    let service = few(&site);
    let user = User::of(&site, &service);
    let homeless = |words: &[&str]| {
        let mut command = user.command(words);
        Outcome::of(command.env_remove("XDG_CONFIG_HOME").env_remove("HOME"))
    };
    homeless(&["login"]).fails("there is no folder for profiles: set HOME or XDG_CONFIG_HOME");
    homeless(&["pull", "-o", "a.csv"]).done();
    let mut at_home = user.command(&["login"]);
    at_home.env_remove("XDG_CONFIG_HOME").env("HOME", site.path("home"));
    assert!(Outcome::of(&mut at_home).done().contains("home/.config/batchscan/profiles.json\n"));
}
