import {
  CsvError,
  CsvParser,
  parseCellTypes,
  rowReader,
  type CellTypes,
  type CsvRecord,
} from '@millrace/contract/lists/csv';
import { Refusal, UsageError } from '@millrace/kit/errors';
import { linesOf } from './lines.js';

export type FileFormat = 'ndjson' | 'json' | 'csv';

/** One record of a file, as a line of NDJSON would have it. */
export interface ImportText {
  line: number;
  /** JSON, or why there is none. */
  text: string | UsageError;
  bytes: number;
}

/** The format that a file's name says; NDJSON where it says nothing. */
export function formatOfName(file: string | undefined): FileFormat {
  const ending = /\.(\w+)$/.exec(file ?? '')?.[1]?.toLowerCase();
  return ending === 'csv' || ending === 'json' ? ending : 'ndjson';
}

/** The types of `--types`, which only CSV needs. */
export function typesOf(text: string | undefined, format: FileFormat): CellTypes | undefined {
  if (text === undefined) return undefined;
  if (format !== 'csv') throw new UsageError('--types is for CSV; JSON has types of its own.');
  try {
    return parseCellTypes(text);
  } catch (error) {
    if (error instanceof CsvError) throw new UsageError(`--types: ${error.message}.`);
    throw error;
  }
}

interface ReadOptions {
  format: FileFormat;
  documents: boolean;
  types: CellTypes | undefined;
  /** Name of the input in errors. */
  place: string;
}

/** The records of a file. Refuses one that is in another format. */
export async function* importTexts(
  input: NodeJS.ReadableStream,
  options: ReadOptions,
): AsyncGenerator<ImportText, void, void> {
  const { format, place } = options;
  const checked = checkedInput(input, format, place);
  if (format === 'csv') return yield* csvTexts(checked, options);
  if (format === 'json') return yield* arrayTexts(checked, place);
  let line = 0;
  for await (const text of linesOf(checked)) {
    const bytes = Buffer.byteLength(text) + 1;
    yield { line: ++line, text: text.trim(), bytes };
  }
}

const names = { csv: 'CSV', json: 'a JSON array', ndjson: 'JSON lines' } as const;

/** The text of the input in parts, once its beginning fits the format. */
async function* checkedInput(
  input: NodeJS.ReadableStream,
  format: FileFormat,
  place: string,
): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  let isChecked = false;
  for await (const chunk of input) {
    const text = typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
    if (!isChecked && text.trim() !== '') {
      const found = foundIn(text.trimStart());
      if (found !== format) {
        throw new Refusal(
          'WRONG_FORMAT',
          `${place} was read as ${names[format]}, and begins like ${names[found]}. ` +
            `Read it with --format ${found}`,
        );
      }
      isChecked = true;
    }
    yield text;
  }
  yield decoder.decode();
}

function foundIn(text: string): FileFormat {
  if (text.startsWith('[')) return 'json';
  return text.startsWith('{') ? 'ndjson' : 'csv';
}

async function* csvTexts(
  input: AsyncIterable<string>,
  { types, place, documents }: ReadOptions,
): AsyncGenerator<ImportText, void, void> {
  const parser = new CsvParser();
  let read: ((row: Parameters<ReturnType<typeof rowReader>>[0]) => CsvRecord) | undefined;
  function* textsOf(rows: ReturnType<CsvParser['push']>, bytes: number): Iterable<ImportText> {
    for (const row of rows) {
      if (!read) {
        read = rowReader(row.cells, types);
        continue;
      }
      const shown = () => (documents ? read!(row).data : read!(row));
      yield { line: row.line, text: textOf(shown, `${place}:${row.line}`), bytes };
    }
  }
  try {
    for await (const part of input) yield* textsOf(parser.push(part), 0);
    yield* textsOf(parser.end(), 0);
  } catch (error) {
    if (error instanceof CsvError) throw new Refusal('BAD_FILE', `${place} ${error.message}.`);
    throw error;
  }
}

function textOf(record: () => object, place: string): string | UsageError {
  try {
    return JSON.stringify(record());
  } catch (error) {
    if (error instanceof CsvError) return new UsageError(`${place}: ${error.message}.`);
    throw error;
  }
}

/** The elements of a JSON array, one at a time. */
async function* arrayTexts(
  input: AsyncIterable<string>,
  place: string,
): AsyncGenerator<ImportText, void, void> {
  let [line, startLine, depth, text] = [1, 1, 0, ''];
  let [isOpen, isEnded, isFilled, isText, isEscaped] = [false, false, false, false, false];
  for await (const part of input) {
    for (const letter of part) {
      if (letter === '\n') line++;
      if (isText) {
        text += letter;
        isText = isEscaped || letter !== '"';
        isEscaped = !isEscaped && letter === '\\';
      } else if (!isOpen) isOpen = letter === '[';
      else if (isEnded) {
        if (letter.trim() !== '') throw badArray(place, `goes on after it, in line ${line}`);
      } else if (depth === 0 && (letter === ',' || letter === ']')) {
        isEnded = letter === ']';
        // Only an empty array has no element before its end.
        if (text === '' && (!isEnded || isFilled))
          throw badArray(place, `lacks an element in line ${line}`);
        if (text !== '') yield { line: startLine, text, bytes: Buffer.byteLength(text) };
        text = '';
        isFilled = true;
      } else if (text !== '' || letter.trim() !== '') {
        if (letter === '[' || letter === '{') depth++;
        if (letter === ']' || letter === '}') depth--;
        if (text === '') startLine = line;
        text += letter;
        isText = letter === '"';
      }
    }
  }
  if (isOpen && !isEnded) throw badArray(place, 'ends inside it');
}

function badArray(place: string, problem: string): Error {
  return new Refusal('BAD_FILE', `${place} is a JSON array and ${problem}.`);
}
