// A megabyte of text would freeze the page.
const maxChars = 20_000;
const maxHexBytes = 4_096;
const rowBytes = 16;

export const bytesOf = (base64: string): Uint8Array =>
  Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));

/** The text, pretty-printed when it is JSON; undefined when the bytes are not UTF-8. */
export function textOf(
  content: Uint8Array,
): { whole: string; shown: string; isCut: boolean } | undefined {
  let whole: string;
  try {
    whole = new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch {
    return undefined;
  }
  const json = content.length <= 4 * maxChars ? jsonOf(whole) : undefined;
  const formatted = json ? JSON.stringify(json.value, undefined, 2) : whole;
  return { whole, shown: formatted.slice(0, maxChars), isCut: formatted.length > maxChars };
}

/** Wrapped, because `null` is JSON too. */
export function jsonOf(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** `00000010  7b 22 74 6f 22 3a  |{"to":|`. */
export function hexOf(content: Uint8Array): { text: string; isCut: boolean } {
  const shown = content.subarray(0, maxHexBytes);
  const lines: string[] = [];
  for (let at = 0; at < shown.length; at += rowBytes) {
    const row = [...shown.subarray(at, at + rowBytes)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const text = row
      .map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.'))
      .join('');
    lines.push(`${at.toString(16).padStart(8, '0')}  ${hex.padEnd(rowBytes * 3 - 1)}  |${text}|`);
  }
  return { text: lines.join('\n'), isCut: content.length > maxHexBytes };
}
