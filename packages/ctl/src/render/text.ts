import { createRequire } from 'node:module';

const ELLIPSIS = '…';
const REPLACEMENT = '\uFFFD';
const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** How many columns a text takes on a terminal: two for an ideograph or an emoji. */
export function widthOf(text: string): number {
  return isPlain(text) ? text.length : stringWidth(text);
}

let measure: ((text: string) => number) | undefined;

/** Loaded when first needed: it takes longer to load than most commands take to run. */
function stringWidth(text: string): number {
  measure ??= (require('string-width') as { default: (text: string) => number }).default;
  return measure(text);
}

const require = createRequire(import.meta.url);

/**
 * Text from elsewhere, made safe to show: an escape sequence in a task's name must not move the
 * cursor, and a line break must not break the table.
 */
export function printable(text: string): string {
  if (isPlain(text)) return text;
  return text
    .replaceAll(/\p{Cc}/gu, pictureOf)
    .replaceAll(/[\u200E\u200F\u2028\u2029\u202A-\u202E\u2066-\u2069]/g, REPLACEMENT);
}

/** Unicode has a picture for each of the first control characters, such as ␛ for escape. */
function pictureOf(control: string): string {
  const code = control.charCodeAt(0);
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : REPLACEMENT;
}

/** The text, or as much of it as fits before an ellipsis. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  return `${take(text, width - 1)[0]}${ELLIPSIS}`;
}

/** The text in lines of at most `width` columns, broken between words where that is possible. */
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

/** Splits a text after as many whole characters as fit in `width` columns. */
function take(text: string, width: number): [head: string, tail: string] {
  let used = 0;
  for (const { segment, index } of graphemes.segment(text)) {
    used += widthOf(segment);
    if (used > width) return [text.slice(0, index), text.slice(index)];
  }
  return [text, ''];
}

/** ASCII, and the one letter that we put into texts ourselves. */
function isPlain(text: string): boolean {
  return /^[\u0020-\u007E…]*$/.test(text);
}
