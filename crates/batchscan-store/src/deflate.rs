//! Pieces of a gzip body, each compressed by itself: made once, kept, and put together by copying. Knows nothing of HTTP.
//!
//! A gzip body is a header, blocks of deflate, a checksum and a length (RFC 1952). A piece is a run of such blocks that refer
//! to nothing before them, end on a whole byte, and are not the last; so pieces one after another are one stream, which every
//! reader of gzip takes. Concatenating whole gzip files would be simpler, but some readers stop after the first.

use std::cell::RefCell;
use std::io::Read as _;

use crc32fast::Hasher;
use flate2::read::GzDecoder;
use flate2::{Compress, CompressError, Compression, FlushCompress};

/// A third smaller than at the level below, in the same time. The next one takes a quarter more time for a tenth.
const LEVEL: u32 = 2;
/// Less text than this is not worth compressing (decision 032).
pub const TEXT_BYTES_MIN: usize = 1_024;
/// Up to this a text is put into a block as it is, a cursor for instance: a compressor clears 130 KB before it begins.
const STORED_BYTES_MAX: usize = 1_024;
/// The beginning of every body: deflate, no name, no time, no particular system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// An empty block that says it is the last.
const LAST_BLOCK: [u8; 2] = [0x03, 0x00];
/// Room for what a compressor adds to a text that it cannot shrink.
const SLACK_BYTES: usize = 256;

thread_local! {
    /// Every thread that compresses keeps its compressor: making one takes a third of the time that fifty batches take.
    static COMPRESSOR: RefCell<Compress> = RefCell::new(Compress::new(Compression::new(LEVEL), false));
}

/// A piece that lies somewhere else, as it was kept.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The blocks.
    pub bytes: &'a [u8],
    /// The checksum (CRC-32) of the text in them.
    pub sum: u32,
    /// The length of that text.
    pub text_bytes: u64,
}

impl Piece<'_> {
    /// The text in it. Fails unless length and checksum are right.
    pub fn text(self) -> std::io::Result<Vec<u8>> {
        let mut whole = Deflated::default();
        whole.push_piece(self);
        let mut text = Vec::new();
        // A piece that is damaged could hold anything; past its length nothing is read.
        let limit = self.text_bytes.saturating_add(1);
        GzDecoder::new(&*whole_gzip(&whole)).take(limit).read_to_end(&mut text)?;
        Ok(text)
    }
}

/// A piece that grows.
#[derive(Clone, Debug, Default)]
pub struct Deflated {
    bytes: Vec<u8>,
    sum: Hasher,
    text_bytes: u64,
}

impl Deflated {
    /// A text, compressed.
    pub fn of(text: &[u8]) -> Self {
        let mut deflated = Self::default();
        deflated.push_text(text);
        deflated
    }

    /// Adds a text.
    pub fn push_text(&mut self, text: &[u8]) {
        let before = self.bytes.len();
        if text.len() <= STORED_BYTES_MAX || self.compress(text).is_err() {
            // In memory nothing fails; were it otherwise, the text would go out as it is.
            self.bytes.truncate(before);
            self.store(text);
        }
        self.sum.update(text);
        self.text_bytes += text.len() as u64;
    }

    /// Makes room, so that growing does not copy what is there.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Adds a piece, by copying.
    pub fn push_piece(&mut self, piece: Piece<'_>) {
        self.bytes.extend_from_slice(piece.bytes);
        self.sum.combine(&Hasher::new_with_initial_len(piece.sum, piece.text_bytes));
        self.text_bytes += piece.text_bytes;
    }

    /// The piece as it is to be kept.
    pub fn as_piece(&self) -> Piece<'_> {
        Piece { bytes: &self.bytes, sum: self.sum.clone().finalize(), text_bytes: self.text_bytes }
    }

    /// How long its text is.
    pub fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    /// Blocks that hold the text as it is.
    fn store(&mut self, text: &[u8]) {
        for part in text.chunks(usize::from(u16::MAX)) {
            let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
            self.bytes.push(0);
            self.bytes.extend_from_slice(&length.to_le_bytes());
            self.bytes.extend_from_slice(&(!length).to_le_bytes());
            self.bytes.extend_from_slice(part);
        }
    }

    fn compress(&mut self, text: &[u8]) -> Result<(), CompressError> {
        COMPRESSOR.with_borrow_mut(|compressor| {
            compressor.reset();
            loop {
                self.bytes.reserve(text.len() / 4 + SLACK_BYTES);
                let taken = usize::try_from(compressor.total_in()).unwrap_or(usize::MAX);
                let rest = text.get(taken..).unwrap_or_default();
                compressor.compress_vec(rest, &mut self.bytes, FlushCompress::Sync)?;
                // Room that is left is the sign that all of it, the flush included, is out.
                if compressor.total_in() == text.len() as u64 && self.bytes.len() < self.bytes.capacity() {
                    return Ok(());
                }
            }
        })
    }
}

/// A gzip body in the making, of pieces that are sent as they come.
#[derive(Clone, Debug, Default)]
pub struct GzipBody {
    sum: Hasher,
    text_bytes: u64,
    has_begun: bool,
}

impl GzipBody {
    /// What is to be sent for a piece.
    pub fn push(&mut self, piece: &Deflated) -> Vec<u8> {
        [self.count(piece), &piece.bytes].concat()
    }

    /// Counts a piece in; gives what goes before it.
    fn count(&mut self, piece: &Deflated) -> &'static [u8] {
        self.sum.combine(&piece.sum);
        self.text_bytes += piece.text_bytes;
        self.begin()
    }

    /// The header, the first time.
    fn begin(&mut self) -> &'static [u8] {
        if std::mem::replace(&mut self.has_begun, true) { &[] } else { &HEADER }
    }

    /// What is to be sent last.
    pub fn finish(mut self) -> Vec<u8> {
        let header = self.begin();
        // The length is told in 32 bits, whatever it is.
        #[expect(clippy::cast_possible_truncation, reason = "RFC 1952 wants the length modulo 2^32")]
        let length = (self.text_bytes as u32).to_le_bytes();
        [header, &LAST_BLOCK, &self.sum.finalize().to_le_bytes(), &length].concat()
    }
}

/// A whole text as a gzip body.
pub fn gzip(text: &[u8]) -> Vec<u8> {
    whole_gzip(&Deflated::of(text))
}

/// A piece that is all of it as a gzip body.
pub fn whole_gzip(piece: &Deflated) -> Vec<u8> {
    let mut body = GzipBody::default();
    // Copied once, into a buffer of its size: it may be kept, and is counted by what it holds.
    [body.count(piece), &piece.bytes, &body.finish()].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a reader of a single gzip file makes of it; it fails unless checksum and length are right.
    fn read(body: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        let mut decoder = GzDecoder::new(body);
        decoder.read_to_end(&mut text).unwrap();
        assert!(decoder.into_inner().is_empty(), "something follows the end");
        text
    }

    #[test]
    fn an_empty_body_is_a_body() {
        assert_eq!(read(&GzipBody::default().finish()), b"");
        assert_eq!(read(&gzip(b"")), b"");
    }

    #[test]
    fn a_long_text_can_be_kept_as_it_is() {
        let text = b"seedling ".repeat(20_000);
        let mut piece = Deflated::default();
        piece.store(&text);
        piece.sum.update(&text);
        piece.text_bytes = text.len() as u64;
        let mut body = GzipBody::default();
        assert_eq!(read(&[body.push(&piece), body.finish()].concat()), text);
    }

    #[test]
    fn what_cannot_be_compressed_comes_out_whole() {
        let mut noise = vec![0u8; 300_000];
        ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut noise).unwrap();
        assert_eq!(read(&gzip(&noise)), noise);
    }

    proptest! {
        /// Decision 049.
        #[test]
        fn pieces_put_together_are_the_texts_put_together(
            texts in proptest::collection::vec(("[a-z{}\",:]{0,40}", 1usize..400), 0..12),
            kept in proptest::collection::vec(any::<bool>(), 12),
        ) {
            let texts: Vec<String> = texts.into_iter().map(|(text, times)| text.repeat(times)).collect();
            let mut body = GzipBody::default();
            let mut bytes = Vec::new();
            let mut growing = Deflated::default();
            for (text, kept) in texts.iter().zip(kept) {
                let piece = Deflated::of(text.as_bytes());
                prop_assert_eq!(piece.text_bytes(), text.len() as u64);
                growing.push_piece(piece.as_piece());
                if kept {
                    bytes.extend(body.push(&std::mem::take(&mut growing)));
                }
            }
            bytes.extend(body.push(&growing));
            bytes.extend(body.finish());
            prop_assert_eq!(read(&bytes), texts.concat().into_bytes());
        }
    }
}
