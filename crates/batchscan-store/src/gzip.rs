//! Builds gzip bodies from pieces that are compressed separately. Knows nothing about HTTP.
//!
//! A gzip body is a header, deflate blocks, a checksum and a length (RFC 1952). A piece is a series of deflate blocks that
//! refers to nothing before it, ends on a byte boundary and is not final, so concatenated pieces are one valid stream.
//! Concatenated gzip files would be simpler, but some readers stop after the first one.

use std::cell::RefCell;
use std::io::Read as _;

use crc32fast::Hasher;
use flate2::read::GzDecoder;
use flate2::{Compress, CompressError, Compression, FlushCompress};

/// A third smaller than level 1 in the same time. Level 3 takes a quarter longer and saves a tenth.
const LEVEL: u32 = 2;
/// Shorter bodies are not compressed (decision 032).
pub(crate) const TEXT_BYTES_MIN: usize = 1_024;
/// Shorter texts, such as the end of a body, are stored uncompressed: a flush of a compressor clears 130 KB.
const STORED_BYTES_MAX: usize = 1_024;
/// The header: deflate, no name, no time, unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// An empty final block.
const FINAL_BLOCK: [u8; 2] = [0x03, 0x00];
/// Space for what a compressor adds to incompressible text.
const SLACK_BYTES: usize = 256;

thread_local! {
    /// Kept per thread: creating a compressor takes a third of the time of compressing fifty batches.
    static COMPRESSOR: RefCell<Compress> = RefCell::new(Compress::new(Compression::new(LEVEL), false));
}

/// Compresses a text into a gzip body.
pub fn gzip(text: &[u8]) -> Vec<u8> {
    gzip_body(&Deflated::new(text))
}

/// A gzip body with this content.
pub(crate) fn gzip_body(content: &Deflated) -> Vec<u8> {
    // One copy into a buffer of the right size, because the result may be cached.
    [&HEADER, content.bytes.as_slice(), &trailer(content.crc.clone(), content.text_bytes)].concat()
}

fn trailer(crc: Hasher, text_bytes: usize) -> [u8; 10] {
    #[expect(clippy::cast_possible_truncation, reason = "RFC 1952 stores the length modulo 2^32")]
    let length = (text_bytes as u32).to_le_bytes();
    let mut trailer = [0; 10];
    trailer[..2].copy_from_slice(&FINAL_BLOCK);
    trailer[2..6].copy_from_slice(&crc.finalize().to_le_bytes());
    trailer[6..].copy_from_slice(&length);
    trailer
}

/// A stored piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    /// The deflate blocks.
    pub(crate) bytes: &'a [u8],
    /// CRC-32 of the text.
    pub(crate) crc: u32,
    pub(crate) text_bytes: usize,
}

impl Piece<'_> {
    /// The text. Fails if the length or the checksum is wrong.
    pub(crate) fn text(self) -> std::io::Result<Vec<u8>> {
        let mut content = Deflated::default();
        content.push_piece(self);
        let mut text = Vec::new();
        // A damaged piece could expand to any size.
        let limit = (self.text_bytes as u64).saturating_add(1);
        GzDecoder::new(&*gzip_body(&content)).take(limit).read_to_end(&mut text)?;
        Ok(text)
    }
}

/// A piece that can be extended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deflated {
    bytes: Vec<u8>,
    crc: Hasher,
    text_bytes: usize,
}

impl Deflated {
    /// Compresses a text.
    pub(crate) fn new(text: &[u8]) -> Self {
        let mut deflated = Self::default();
        deflated.push_text(text);
        deflated
    }

    pub(crate) fn push_text(&mut self, text: &[u8]) {
        let start = self.bytes.len();
        if text.len() <= STORED_BYTES_MAX || self.compress(text).is_err() {
            self.bytes.truncate(start);
            self.store(text);
        }
        self.crc.update(text);
        self.text_bytes += text.len();
    }

    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    pub(crate) fn push_piece(&mut self, piece: Piece<'_>) {
        self.bytes.extend_from_slice(piece.bytes);
        self.crc.combine(&Hasher::new_with_initial_len(piece.crc, piece.text_bytes as u64));
        self.text_bytes += piece.text_bytes;
    }

    pub(crate) fn as_piece(&self) -> Piece<'_> {
        Piece { bytes: &self.bytes, crc: self.crc.clone().finalize(), text_bytes: self.text_bytes }
    }

    pub(crate) fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// Appends uncompressed deflate blocks.
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
            let (start, mut taken) = (compressor.total_in(), 0);
            // After a full flush, the next text refers to nothing before it: no reset is needed, which would take twice as long.
            while let Some(rest) = text.get(taken..) {
                self.bytes.reserve(text.len() / 4 + SLACK_BYTES);
                if let Err(error) = compressor.compress_vec(rest, &mut self.bytes, FlushCompress::Full) {
                    compressor.reset();
                    return Err(error);
                }
                taken = usize::try_from(compressor.total_in() - start).unwrap_or(usize::MAX);
                // Unused capacity means that the flush is complete.
                if taken == text.len() && self.bytes.len() < self.bytes.capacity() {
                    return Ok(());
                }
            }
            Ok(())
        })
    }
}

/// A gzip body that is sent piece by piece.
#[derive(Clone, Debug, Default)]
pub(crate) struct GzipStream {
    crc: Hasher,
    text_bytes: usize,
    has_header: bool,
}

impl GzipStream {
    /// The bytes to send for a piece.
    pub(crate) fn push(&mut self, piece: &Deflated) -> Vec<u8> {
        self.crc.combine(&piece.crc);
        self.text_bytes += piece.text_bytes;
        let header: &[u8] = if std::mem::replace(&mut self.has_header, true) { &[] } else { &HEADER };
        [header, &piece.bytes].concat()
    }

    /// The bytes to send at the end.
    pub(crate) fn finish(self) -> [u8; 10] {
        trailer(self.crc, self.text_bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads one gzip file. Fails if the checksum or the length is wrong, or if anything follows.
    fn decode(body: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        let mut decoder = GzDecoder::new(body);
        decoder.read_to_end(&mut text).unwrap();
        assert!(decoder.into_inner().is_empty(), "data after the end");
        text
    }

    /// Fuzzing: texts that are compressed, stored and joined in any way are restored. 255 separates them.
    #[test]
    fn joined_pieces_are_restored() {
        bolero::check!().for_each(|bytes: &[u8]| {
            let mut joined = Deflated::default();
            for (index, text) in bytes.split(|byte| *byte == 255).enumerate() {
                match index % 3 {
                    0 => joined.push_text(text),
                    1 => joined.push_piece(Deflated::new(text).as_piece()),
                    _ => joined.push_piece(Deflated::new(&text.repeat(200)).as_piece()),
                }
            }
            let expected = bytes.split(|byte| *byte == 255).enumerate();
            let repeated =
                |(index, text): (usize, &[u8])| if index % 3 == 2 { text.repeat(200) } else { text.to_vec() };
            assert_eq!(decode(&gzip_body(&joined)), expected.flat_map(repeated).collect::<Vec<u8>>());
        });
    }

    #[test]
    fn every_text_is_restored() {
        let mut random = vec![0u8; 300_000];
        ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut random).unwrap();
        for text in [&b""[..], b"short", &b"seedling ".repeat(20_000), &random] {
            assert_eq!(decode(&gzip(text)), text);
            assert_eq!(decode(&gzip(text)), text, "it must not refer to the same text before it");
        }
    }

    #[test]
    fn a_long_text_can_be_stored_uncompressed() {
        let text = b"seedling ".repeat(20_000);
        let mut piece = Deflated::default();
        piece.store(&text);
        piece.crc.update(&text);
        piece.text_bytes = text.len();
        assert_eq!(decode(&gzip_body(&piece)), text);
    }

    proptest! {
        /// Decision 049.
        #[test]
        fn concatenated_pieces_decode_to_the_concatenated_texts(
            texts in proptest::collection::vec(("[a-z{}\",:]{0,40}", 1usize..400), 0..12),
            send in proptest::collection::vec(any::<bool>(), 12),
        ) {
            let texts: Vec<String> = texts.into_iter().map(|(text, times)| text.repeat(times)).collect();
            let mut stream = GzipStream::default();
            let mut bytes = Vec::new();
            let mut pending = Deflated::default();
            for (text, send) in texts.iter().zip(send) {
                let piece = Deflated::new(text.as_bytes());
                prop_assert_eq!(piece.text_bytes(), text.len());
                pending.push_piece(piece.as_piece());
                if send {
                    bytes.extend(stream.push(&std::mem::take(&mut pending)));
                }
            }
            bytes.extend(stream.push(&pending));
            bytes.extend(stream.finish());
            prop_assert_eq!(decode(&bytes), texts.concat().into_bytes());
        }
    }
}
