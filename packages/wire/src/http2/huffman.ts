import { ConnectionError } from './protocol.js';

// Code lengths of RFC 7541, Appendix B. The code is canonical: shorter codes come first, and codes
// of one length are ordered by symbol, so the lengths define it.
const codeLengths = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
  28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5,
  6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6,
  7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23,
  23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22,
  22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22,
  23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27,
  27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25,
  24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];
const endOfString = 256;
const lengths = [...codeLengths, 30];
const minCodeBits = 5;

/**
 * Consecutive tables of 256 entries; the first decodes the first 8 bits of a code. An entry is
 * `bits << 9 | symbol` for a code that ends after `bits` bits, or the negated number of the table
 * for the next 8 bits.
 */
const tables = decodingTables();

function decodingTables(): Int32Array {
  const entries: number[] = Array.from({ length: 256 }, () => 0);
  let code = 0;
  let codeBits = 0;
  const symbols = lengths.map((_, symbol) => symbol);
  symbols.sort((a, b) => lengths[a]! - lengths[b]! || a - b);
  for (const symbol of symbols) {
    const bits = lengths[symbol]!;
    code = code * 2 ** (bits - codeBits);
    codeBits = bits;
    placeCode(entries, symbol, code, bits);
    code++;
  }
  return Int32Array.from(entries);
}

function placeCode(entries: number[], symbol: number, code: number, bits: number): void {
  let table = 0;
  let left = bits;
  for (; left > 8; left -= 8) {
    const at = table * 256 + (Math.floor(code / 2 ** (left - 8)) & 0xff);
    if (entries[at] === 0) {
      entries[at] = -(entries.length / 256);
      entries.push(...Array.from({ length: 256 }, () => 0));
    }
    table = -entries[at]!;
  }
  const first = table * 256 + ((code * 2 ** (8 - left)) & 0xff);
  entries.fill((left << 9) | symbol, first, first + 2 ** (8 - left));
}

let scratch = Buffer.allocUnsafeSlow(4_096);

/** Decodes the bytes from `start` to `end`. */
export function huffmanDecoded(bytes: Buffer, start: number, end: number): string {
  const maxLength = Math.ceil(((end - start) * 8) / minCodeBits);
  if (scratch.length < maxLength) scratch = Buffer.allocUnsafeSlow(2 * maxLength);
  let length = 0;
  let table = 0;
  let pending = 0;
  let pendingBits = 0;
  let codeBits = 0;
  for (let at = start; at < end; at++) {
    pending = ((pending << 8) | bytes[at]!) & 0xffff;
    pendingBits += 8;
    while (pendingBits >= 8) {
      const entry = tables[table * 256 + ((pending >> (pendingBits - 8)) & 0xff)]!;
      if (entry < 0) {
        table = -entry;
        pendingBits -= 8;
        codeBits += 8;
      } else {
        if ((entry & 0x1ff) === endOfString) throw notHuffman();
        scratch[length++] = entry;
        pendingBits -= entry >> 9;
        table = 0;
        codeBits = 0;
      }
    }
  }
  // The rest may hold short codes, then up to 7 bits of EOS padding, which are ones.
  for (;;) {
    const ones = (1 << (8 - pendingBits)) - 1;
    const entry = tables[table * 256 + (((pending << (8 - pendingBits)) | ones) & 0xff)]!;
    if (entry < 0 || entry >> 9 > pendingBits) break;
    if ((entry & 0x1ff) === endOfString) throw notHuffman();
    scratch[length++] = entry;
    pendingBits -= entry >> 9;
    table = 0;
    codeBits = 0;
  }
  const padding = (1 << pendingBits) - 1;
  if (codeBits > 0 || (pending & padding) !== padding) throw notHuffman();
  return scratch.toString('latin1', 0, length);
}

function notHuffman(): ConnectionError {
  return new ConnectionError('COMPRESSION_ERROR', 'HPACK: invalid Huffman code');
}
