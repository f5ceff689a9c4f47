import { createRequire } from 'node:module';

const ELLIPSIS = '…';

/** Display width of a text: two columns for an ideograph or an emoji. */
export function widthOf(text: string): number {
  return isPlain(text) ? text.length : stringWidth(text);
}

let measure: ((text: string) => number) | undefined;

/** Loaded on demand: it takes longer to load than most commands take to run. */
function stringWidth(text: string): number {
  measure ??= (require('string-width') as { default: (text: string) => number }).default;
  return measure(text);
}

const require = createRequire(import.meta.url);

let segmenter: Intl.Segmenter | undefined;

/** Created on demand: it loads Unicode data that most commands do not need. */
function graphemesOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' });
  return segmenter.segment(text);
}

/** Characters that change the direction of text, or break a line without a line feed. */
const bidi = '\\u061C\\u200E\\u200F\\u2028\\u2029\\u202A-\\u202E\\u2066-\\u2069';
const unsafeInCell = new RegExp(`[\\p{Cc}${bidi}]`, 'gu');
const unsafeInText = new RegExp(`[^\\P{Cc}\\n\\t]|[${bidi}]`, 'gu');
const unsafeOnScreen = new RegExp(
  `\\u001B(?!\\[[\\d;]*m)|[^\\P{Cc}\\n\\t\\r\\u001B]|[${bidi}]`,
  'gu',
);

/**
 * Makes external text safe to show: an escape sequence in a task's name must not move the cursor,
 * and a line break must not break the table.
 */
export function printable(text: string): string {
  return isPlain(text) ? text : text.replaceAll(unsafeInCell, pictureOf);
}

/** Like `printable`, for text of several lines: keeps line breaks and tabs. */
export function printableLines(text: string): string {
  return text.replaceAll(unsafeInText, escapeOf);
}

/**
 * The last check before a terminal: only line breaks, tabs, carriage returns and colours pass.
 * Everything else becomes a JSON escape, so JSON stays JSON.
 */
export function safeForScreen(text: string): string {
  return text.replaceAll(unsafeOnScreen, escapeOf);
}

/** Unicode has a picture for the first control characters, such as ␛ for escape. */
function pictureOf(character: string): string {
  const code = character.charCodeAt(0);
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : escapeOf(character);
}

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** The text, cut with an ellipsis if it does not fit. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  return `${take(text, width - 1)[0]}${ELLIPSIS}`;
}

/** Wraps a text to lines of at most `width` columns, at spaces where possible. */
export function wrap(text: string, width: number): string[] {
  if (widthOf(text) <= width) return [text];
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (widthOf(longer) <= width) {
      line = longer;
      continue;
    }
    if (line !== '') lines.push(line);
    line = word;
    while (widthOf(line) > width) {
      const [head, tail] = take(line, width);
      if (head === '') break;
      lines.push(head);
      line = tail;
    }
  }
  return [...lines, line];
}

/** Splits a text after as many whole characters as fit into `width` columns. */
function take(text: string, width: number): [head: string, tail: string] {
  let used = 0;
  for (const { segment, index } of graphemesOf(text)) {
    used += widthOf(segment);
    if (used > width) return [text.slice(0, index), text.slice(index)];
  }
  return [text, ''];
}

/** ASCII, and the ellipsis that we add ourselves. */
function isPlain(text: string): boolean {
  return /^[\u0020-\u007E…]*$/.test(text);
}
