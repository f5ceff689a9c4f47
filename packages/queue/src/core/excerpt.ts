const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The longest prefix of a text within a number of UTF-8 bytes, cut between characters. */
export function cutText(text: string, maxBytes: number): string {
  const clean = storable(text);
  // No code unit takes more than three bytes.
  if (clean.length * 3 <= maxBytes) return clean;
  const { read } = encoder.encodeInto(clean, new Uint8Array(maxBytes));
  return clean.slice(0, read);
}

/** The first bytes of a response body as text, whatever it contains. */
export function textExcerpt(bytes: Uint8Array, maxBytes: number): string {
  if (bytes.length === 0) return '';
  if (bytes.length <= maxBytes) return cutText(decoder.decode(bytes), maxBytes);
  // In streaming mode the decoder drops a character that the cut has split.
  const start = new TextDecoder().decode(bytes.subarray(0, maxBytes), { stream: true });
  return cutText(start, maxBytes);
}

// Unpaired surrogates are not text, and some databases reject U+0000.
function storable(text: string): string {
  if (text.isWellFormed() && !text.includes('\0')) return text;
  return text.toWellFormed().replaceAll('\0', '\u{fffd}');
}
