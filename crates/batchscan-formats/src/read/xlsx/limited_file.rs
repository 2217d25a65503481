//! A workbook that the library reads in limited memory. It keeps some parts as a whole, and each cell: a file of some
//! KB can contain gigabytes of them.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Seek, SeekFrom};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use zip::ZipArchive;
use zip::result::ZipError;

use super::xml::{self, Contents};

/// The list of the parts, at the end of the file. A usual one has 2 KiB.
const DIRECTORY_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// A usual workbook has some ten parts.
const PARTS_MAX: usize = 10_000;
/// The part with the texts of all cells, which Excel writes. In lower case: names are compared without it.
const TEXTS_PART: &str = "xl/sharedstrings.xml";
const TEXTS_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// One of them. The library has three copies of it while it reads it.
const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// A text has four tags, and 24 bytes in memory.
const TEXTS_TAGS_MAX: usize = 8 * 1024 * 1024;
/// The library allocates memory for the claimed number of texts before it reads them.
const COUNT_DIGITS_MAX: usize = 8;
/// Each other part that the library keeps as a whole.
const PART_BYTES_MAX: u64 = 1024 * 1024;
/// The longest tag of such a part: the library copies the name of a font once per style.
const TAG_BYTES_MAX: usize = 2 * 1024;
/// The addresses of a sheet's links, of which Excel allows 65,530.
const RELATIONSHIPS_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// One of them. Excel allows 2,079 characters. The library has a copy for each link.
const RELATIONSHIP_BYTES_MAX: usize = 4 * 1024;
/// Compressed bytes of one cell: enough for every text that Excel can have. They are at most 1,032 times as many in
/// memory, in three copies.
const CELL_BYTES_MAX: u64 = 48 * 1024;
/// For the error.
pub(super) const LIMITS: &str = "the limits are 128 MiB for the texts of all cells, 1 MiB for one text, 48 KiB for a compressed cell, 16 MiB for the \
     addresses of links and 4 KiB for one address";

/// What the library may read now. Shared with the file that it owns.
pub(super) struct Limits {
    left: Cell<u64>,
    /// Where the parts begin that are too large to be kept.
    closed: RefCell<Vec<(u64, PartKind)>>,
    /// Why reading failed, if it was not the content. The library's errors do not tell.
    failure: RefCell<Option<io::Error>>,
    contents: Cell<Contents>,
}

impl Limits {
    /// To be called before each cell.
    pub(super) fn begin_cell(&self) {
        self.left.set(CELL_BYTES_MAX);
    }

    /// To be called before a part whose cells were checked is read as a whole.
    pub(super) fn begin_part(&self) {
        self.left.set(u64::MAX);
    }

    /// To be called after the parts that are kept were read. Those with addresses are also kept while links are read.
    pub(super) fn open_sheets(&self) {
        self.closed.borrow_mut().retain(|(_, kind)| *kind == PartKind::Relationships);
    }

    /// What a sheet may have.
    pub(super) fn contents(&self) -> Contents {
        self.contents.get()
    }

    pub(super) fn take_failure(&self) -> Option<io::Error> {
        self.failure.take()
    }
}

/// The file for the library.
pub(super) struct LimitedFile<'a> {
    file: File,
    is_checked: bool,
    position: u64,
    bytes_read: &'a AtomicU64,
    limits: Rc<Limits>,
}

impl<'a> LimitedFile<'a> {
    pub(super) fn new(file: File, bytes_read: &'a AtomicU64) -> Self {
        let limits = Limits {
            left: Cell::new(0),
            closed: RefCell::default(),
            failure: RefCell::default(),
            contents: Cell::default(),
        };
        Self { file, is_checked: false, position: 0, bytes_read, limits: Rc::new(limits) }
    }

    pub(super) fn limits(&self) -> Rc<Limits> {
        self.limits.clone()
    }

    /// Checks all parts, and finds those that are too large to be kept.
    pub(super) fn check_parts(self) -> Result<Self, PartsError> {
        let limits = self.limits();
        limits.left.set(DIRECTORY_BYTES_MAX);
        let mut archive = ZipArchive::new(self)?;
        if archive.len() > PARTS_MAX {
            limits.failure.replace(Some(too_large()));
            return Err(too_large().into());
        }
        check_names(&archive)?;
        limits.left.set(u64::MAX);
        // Else a file of some KB could contain the same large part thousands of times.
        if archive.has_overlapping_files()? {
            return Err(PartsError::Damaged("overlapping parts".into()));
        }
        let mut closed = Vec::new();
        for index in 0..archive.len() {
            closed.extend(check_part(&mut archive, index, &limits)?);
        }
        limits.left.set(u64::MAX);
        limits.closed.replace(closed);
        Ok(Self { is_checked: true, ..archive.into_inner() })
    }

    fn check(&self, count: usize) -> io::Result<()> {
        // Only reading from the start can decompress a part. The search for the directory reads the middle of others.
        let is_closed = self.limits.closed.borrow().iter().any(|(start, _)| *start == self.position);
        let left = self.limits.left.get().checked_sub(count as u64);
        match left {
            Some(left) if !is_closed => {
                self.limits.left.set(left);
                Ok(())
            }
            _ => Err(too_large()),
        }
    }
}

impl Read for LimitedFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer).and_then(|count| self.check(count).map(|()| count));
        match read {
            Ok(count) => {
                self.position += count as u64;
                if self.is_checked {
                    self.bytes_read.fetch_max(self.position, Ordering::Relaxed);
                }
                Ok(count)
            }
            Err(error) => {
                let kind = error.kind();
                self.limits.failure.replace(Some(error));
                Err(kind.into())
            }
        }
    }
}

impl Seek for LimitedFile<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = self.file.seek(to)?;
        Ok(self.position)
    }
}

pub(super) fn too_large() -> io::Error {
    io::ErrorKind::FileTooLarge.into()
}

/// Why a workbook cannot be read, before the library reads it.
#[derive(Debug, thiserror::Error)]
pub(super) enum PartsError {
    #[error("{0}")]
    OtherFormat(&'static str),
    #[error("{0}")]
    Damaged(String),
    #[error(transparent)]
    Zip(#[from] ZipError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Recognises other formats by their parts. Of parts with the same name, the library would read only one.
fn check_names(archive: &ZipArchive<LimitedFile<'_>>) -> Result<(), PartsError> {
    let has = |name| archive.index_for_name(name).is_some();
    if has("xl/workbook.bin") {
        Err(PartsError::OtherFormat("a binary workbook (.xlsb)"))
    } else if has("content.xml") {
        Err(PartsError::OtherFormat("an OpenDocument file such as .ods"))
    } else if !has("_rels/.rels") {
        Err(PartsError::OtherFormat("another format"))
    } else if archive.has_duplicate_names() {
        Err(PartsError::Damaged("two parts with the same name".into()))
    } else {
        Ok(())
    }
}

/// What limits a part has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PartKind {
    Texts,
    Relationships,
    Other,
}

impl PartKind {
    fn of_name(name: &str) -> Self {
        match name {
            TEXTS_PART => Self::Texts,
            _ if name.ends_with(".rels") => Self::Relationships,
            _ => Self::Other,
        }
    }

    fn bytes_max(self) -> u64 {
        match self {
            Self::Texts => TEXTS_BYTES_MAX,
            Self::Relationships => RELATIONSHIPS_BYTES_MAX,
            Self::Other => PART_BYTES_MAX,
        }
    }
}

/// Checks the XML of a part. Returns where the part begins if it is too large to be kept.
fn check_part(
    archive: &mut ZipArchive<LimitedFile<'_>>,
    index: usize,
    limits: &Limits,
) -> Result<Option<(u64, PartKind)>, PartsError> {
    limits.left.set(u64::MAX);
    // If it is one that the library reads, it fails there, too.
    let Ok(part) = archive.by_index(index) else { return Ok(None) };
    let name = part.name().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
    let start = part.data_start();
    let kind = PartKind::of_name(&name);
    let is_kept = is_kept(part, kind);
    if name.ends_with(".xml") || name.ends_with(".rels") {
        let checked = xml::check(archive.by_index(index)?, || limits.begin_cell());
        let found = checked.map_err(|error| PartsError::Damaged(format!("{name}: {error}")))?;
        let Contents { has_uncalculated, has_merged_cells, has_links } = limits.contents.get();
        limits.contents.set(Contents {
            has_uncalculated: has_uncalculated || found.has_uncalculated,
            has_merged_cells: has_merged_cells || found.has_merged_cells,
            has_links: has_links || found.has_links,
        });
    }
    Ok(start.filter(|_| !is_kept).map(|start| (start, kind)))
}

/// Whether the library can keep a part. Damage is left to it.
fn is_kept(part: impl Read, kind: PartKind) -> bool {
    let bytes_max = kind.bytes_max();
    let mut part = BufReader::with_capacity(64 * 1024, part.take(bytes_max + 1));
    let (mut scan, mut bytes) = (Scan::default(), 0);
    loop {
        let chunk = part.fill_buf().unwrap_or_default();
        if chunk.is_empty() {
            return bytes <= bytes_max;
        }
        let length = chunk.len();
        if !chunk.iter().all(|byte| scan.accept(*byte, kind)) {
            return false;
        }
        bytes += length as u64;
        part.consume(length);
    }
}

/// The current place in the XML of a part.
#[derive(Default)]
struct Scan {
    tags: usize,
    /// Bytes since a tag began or ended.
    length: usize,
    /// Digits since another character.
    digits: usize,
    is_in_tag: bool,
    quote: Option<u8>,
}

impl Scan {
    /// Whether the part can still be kept after this byte.
    fn accept(&mut self, byte: u8, kind: PartKind) -> bool {
        self.length += 1;
        self.digits = if byte.is_ascii_digit() { self.digits + 1 } else { 0 };
        match byte {
            // Not well-formed. It would hide the length of the tag.
            b'<' if self.is_in_tag => return false,
            b'<' => (self.is_in_tag, self.length, self.tags) = (true, 0, self.tags + 1),
            b'>' if self.is_in_tag && self.quote.is_none() => (self.is_in_tag, self.length) = (false, 0),
            b'"' | b'\'' if self.is_in_tag && self.quote.is_none() => self.quote = Some(byte),
            _ if self.quote == Some(byte) => self.quote = None,
            // Never in UTF-8, but in encodings that would hide the tags.
            0..b' ' if !matches!(byte, b'\t' | b'\r' | b'\n') => return false,
            _ => {}
        }
        match kind {
            PartKind::Texts => {
                self.tags <= TEXTS_TAGS_MAX
                    && self.length <= TEXT_BYTES_MAX
                    && (self.digits <= COUNT_DIGITS_MAX || !self.is_in_tag)
            }
            PartKind::Relationships => self.length <= RELATIONSHIP_BYTES_MAX,
            PartKind::Other => self.length <= TAG_BYTES_MAX,
        }
    }
}
