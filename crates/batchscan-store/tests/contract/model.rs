//! Random operations on the store and on a model in memory: both must return the same. A failure names its seed;
//! `SEED=… cargo test -p batchscan-store --test contract model` repeats it.

use std::collections::BTreeMap;

use batchscan_model::{Batch, BatchId, DateRange};
use batchscan_store::{AdminError, ArrayRequest, Caller, Encoding, OrgName, PageRequest, PageResult, Store};
use batchscan_testbed::Random;

use crate::changes::Mirror;
use crate::fixture::{
    COMMIT, DRY_RUN, Fixture, at, batch, bytes_of, commented, decode, import, new_caller, range, request,
    texts_of, whole,
};

const OPERATIONS: usize = 400;
const NAMES: [&str; 3] = ["A", "B", "C"];
/// Few ids and dates, so that batches are corrected, moved and share dates.
const IDS: u64 = 40;
const DATES: u64 = 25;

/// An organisation: its caller, if the credential is valid, and its batches by id.
struct Org {
    caller: Caller,
    is_revoked: bool,
    batches: BTreeMap<String, Batch>,
    /// Copies that read changes at different times.
    mirrors: [Mirror; 3],
}

impl Org {
    fn new(caller: Caller) -> Self {
        Self { caller, is_revoked: false, batches: BTreeMap::new(), mirrors: Default::default() }
    }

    /// The texts in the batch order.
    fn texts(&self, range: DateRange) -> Vec<String> {
        let is_in = |batch: &&Batch| {
            range.start.is_none_or(|start| start <= batch.batch_creation_date)
                && range.end.is_none_or(|end| batch.batch_creation_date <= end)
        };
        let mut all: Vec<&Batch> = self.batches.values().filter(is_in).collect();
        all.sort_by(|a, b| {
            (a.batch_creation_date, a.batch_id.as_str()).cmp(&(b.batch_creation_date, b.batch_id.as_str()))
        });
        all.into_iter().map(Batch::to_json).collect()
    }
}

fn random_micros(random: &mut Random) -> i64 {
    random.below(DATES).cast_signed() - 5
}

fn random_range(random: &mut Random) -> DateRange {
    let mut end = || (random.below(2) == 0).then(|| random_micros(random));
    range(end(), end())
}

pub(crate) async fn random_operations_have_the_results_of_a_model(fixture: &Fixture) {
    let seed = std::env::var("SEED").map_or_else(
        |_| std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos().into(),
        |seed| seed.parse().unwrap(),
    );
    println!("SEED={seed}");
    let mut random = Random(seed);
    let mut orgs: BTreeMap<&str, Org> = BTreeMap::new();
    for number in 0..OPERATIONS {
        let name = NAMES[usize::try_from(random.below(3)).unwrap()];
        // The other handle may cache what this one changes.
        let store = if random.below(2) == 0 { &fixture.store } else { &fixture.second };
        match (random.below(20), orgs.get_mut(name)) {
            (_, None) => {
                let caller = new_caller(store, name, &format!("bs_{number}")).await;
                orgs.insert(name, Org::new(caller));
            }
            (0, Some(_)) => {
                let taken = store.add_org(&OrgName::new(name).unwrap(), at(0)).await;
                assert!(matches!(taken, Err(AdminError::OrgExists(_))));
            }
            (1, Some(org)) if random.below(4) == 0 => {
                store.remove_org(name, at(0)).await.unwrap();
                assert!(read_page(store, &org.caller, request(1)).await.is_none());
                orgs.remove(name);
            }
            (2, Some(org)) if random.below(4) == 0 && !org.is_revoked => {
                store.revoke_credential(&org.caller.client, at(0)).await.unwrap();
                org.is_revoked = true;
            }
            (3..=6, Some(org)) => import_some(store, name, org, &mut random).await,
            (7, Some(org)) => remove_some(store, name, org, &mut random).await,
            (8..=14, Some(org)) if !org.is_revoked => read_changes(store, org, &mut random).await,
            (_, Some(org)) => check_reads(store, org, &mut random).await,
        }
    }
    let report = fixture.store.doctor(std::sync::Arc::new(|_, _| {})).await.unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
}

async fn import_some(store: &Store, name: &str, org: &mut Org, random: &mut Random) {
    let mut batches = Vec::new();
    for _ in 0..random.below(30) {
        let new = batch(&format!("é{}", random.below(IDS)), random_micros(random));
        batches.push(commented(new, &"x".repeat(usize::try_from(random.below(300)).unwrap())));
    }
    match random.below(5) {
        0 => assert!(matches!(import(store, name, &batches, None).await, Err(AdminError::Aborted))),
        1 => drop(import(store, name, &batches, DRY_RUN).await.unwrap()),
        _ => {
            import(store, name, &batches, COMMIT).await.unwrap();
            org.batches.extend(batches.into_iter().map(|batch| (batch.batch_id.as_str().to_owned(), batch)));
        }
    }
}

async fn remove_some(store: &Store, name: &str, org: &mut Org, random: &mut Random) {
    let ids = (0..1 + random.below(3)).map(|_| format!("é{}", random.below(IDS)));
    let ids: std::collections::BTreeSet<String> = ids.collect();
    let remove = ids.iter().map(|id| BatchId::new(id).unwrap()).collect();
    let removed = store.remove_batches(name, remove, at(0), at(8)).await;
    if ids.iter().all(|id| org.batches.contains_key(id)) {
        removed.unwrap();
        org.batches.retain(|id, _| !ids.contains(id));
    } else {
        assert!(matches!(removed, Err(AdminError::BatchNotFound(_))), "{removed:?}");
    }
}

/// Continues a copy: some pages, or all, and then it is equal.
async fn read_changes(store: &Store, org: &mut Org, random: &mut Random) {
    let rows = 1 + usize::try_from(random.below(20)).unwrap();
    let encoding = if random.below(2) == 0 { Encoding::Gzip } else { Encoding::Identity };
    let mirror = &mut org.mirrors[usize::try_from(random.below(3)).unwrap()];
    if random.below(2) == 0 {
        mirror.read(store, &org.caller, rows, encoding).await;
        return;
    }
    while mirror.read(store, &org.caller, rows, encoding).await {}
    let expected: BTreeMap<_, _> =
        org.batches.iter().map(|(id, batch)| (id.clone(), batch.to_json())).collect();
    assert_eq!(mirror.batches, expected);
}

/// Walks over pages and reads an array, in a random range and encoding.
async fn check_reads(store: &Store, org: &Org, random: &mut Random) {
    let range = random_range(random);
    let encoding = if random.below(2) == 0 { Encoding::Gzip } else { Encoding::Identity };
    let rows = 1 + usize::try_from(random.below(20)).unwrap();
    let (mut resume, mut texts) = (None, Vec::new());
    loop {
        let next = PageRequest { range, encoding, resume, ..request(rows) };
        let Some(page) = read_page(store, &org.caller, next).await else {
            assert!(org.is_revoked);
            return;
        };
        assert!(page.rows <= rows);
        resume = page.next.clone();
        texts.extend(texts_of(page));
        if resume.is_none() {
            break;
        }
    }
    assert!(!org.is_revoked);
    assert_eq!(texts, org.texts(range));
    let range = if random.below(2) == 0 { whole() } else { range };
    let wanted = ArrayRequest { range, encoding, min_version: 0, now: at(0) };
    let PageResult::Read(array) = store.array(&org.caller, wanted, |_| None::<()>).await.unwrap() else {
        panic!("no array")
    };
    let body = bytes_of(array.body).await;
    assert_eq!(decode(array.encoding, &body), format!("[{}]", org.texts(range).join(",")));
}

async fn read_page(store: &Store, caller: &Caller, request: PageRequest) -> Option<batchscan_store::Page> {
    match store.page(caller, request, |_| None::<()>).await.unwrap() {
        PageResult::Read(page) => Some(page),
        PageResult::InvalidCredential => None,
        PageResult::Skipped(()) => panic!("nothing is skipped"),
    }
}
