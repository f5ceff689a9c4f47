/**
 * Records as CSV (RFC 4180), for the command line and the dashboard. A header is the path of a field;
 * `$id`, `$key` and `$expires_at` are the record's own. An empty cell is a missing field, and a cell
 * in quotes is always text.
 */

export type CellType = 'text' | 'number' | 'boolean' | 'json';
export type CellTypes = Readonly<Record<string, CellType>>;

/** A cell: its text, and whether it was in quotes. */
interface Cell {
  text: string;
  isQuoted: boolean;
}

interface CsvRow {
  /** Where it begins. */
  line: number;
  cells: Cell[];
}

/** Thrown for a file or an option that cannot be used; the message has no place. */
export class CsvError extends Error {}

const cellTypes: readonly string[] = ['text', 'number', 'boolean', 'json'];

/** `name:text,qty:number,tags:json` as an object. */
export function parseCellTypes(text: string): CellTypes {
  const types: Record<string, CellType> = {};
  for (const part of text.split(',').filter((each) => each.trim() !== '')) {
    const at = part.lastIndexOf(':');
    const type = part.slice(at + 1).trim();
    if (at <= 0 || !cellTypes.includes(type)) {
      throw new CsvError(`"${part}" must be such as qty:number; types are ${cellTypes.join(', ')}`);
    }
    types[part.slice(0, at).trim()] = type as CellType;
  }
  return types;
}

/** Splits text that arrives in parts into rows. */
export class CsvParser {
  #line = 1;
  #startLine = 1;
  #cells: Cell[] = [];
  #text = '';
  #isQuoted = false;
  #isOpen = false;
  #wasQuote = false;

  *push(part: string): Iterable<CsvRow> {
    for (const letter of part) {
      if (letter === '\n') this.#line++;
      if (this.#isOpen && !this.#wasQuote) {
        if (letter === '"') this.#wasQuote = true;
        else this.#text += letter;
      } else if (this.#wasQuote && letter === '"') {
        this.#text += letter;
        this.#wasQuote = false;
      } else {
        this.#isOpen = this.#wasQuote = false;
        if (letter === ',') this.#endCell();
        else if (letter === '\n') yield* this.#endRow();
        else if (letter === '"' && this.#text === '') this.#isOpen = this.#isQuoted = true;
        else if (letter !== '\r') this.#text += letter;
      }
    }
  }

  *end(): Iterable<CsvRow> {
    if (this.#isOpen && !this.#wasQuote) {
      throw new CsvError(`a quote that begins in the row of line ${this.#startLine} has no end`);
    }
    if (this.#text !== '' || this.#isQuoted || this.#cells.length > 0) yield* this.#endRow();
  }

  #endCell(): void {
    this.#cells.push({ text: this.#text, isQuoted: this.#isQuoted });
    this.#text = '';
    this.#isQuoted = false;
  }

  *#endRow(): Iterable<CsvRow> {
    this.#endCell();
    const cells = this.#cells;
    const isBlank = cells.length === 1 && cells[0]!.text === '' && !cells[0]!.isQuoted;
    const line = this.#startLine;
    this.#cells = [];
    this.#startLine = this.#line;
    if (!isBlank) yield { line, cells };
  }
}

const numberPattern = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** The number that a text is; undefined for one that would be stored as another number. */
function numberOf(text: string): number | undefined {
  if (!numberPattern.test(text)) return undefined;
  const number = Number(text);
  // Beyond these, different whole numbers are stored as one; an export writes the stored one.
  const isExact = Number.isSafeInteger(number) || !Number.isInteger(number) || /e/i.test(text);
  return Number.isFinite(number) && (isExact || String(number) === text) ? number : undefined;
}

const ownNames = ['$id', '$key', '$expires_at'];

/** What a row says: a document, with the record's own members beside it. */
export interface CsvRecord {
  data: Record<string, unknown>;
  id?: string;
  key?: string;
  expires_at?: string;
}

/** Reads rows under a header. */
export function rowReader(
  header: readonly Cell[],
  types: CellTypes = {},
): (row: CsvRow) => CsvRecord {
  const names = header.map(({ text }) => text.trim());
  checkHeader(names, types);
  return ({ cells }) => {
    if (cells.length > names.length) {
      throw new CsvError(`has ${cells.length} cells under a header of ${names.length}`);
    }
    const record: CsvRecord = { data: {} };
    cells.forEach((cell, i) => {
      const name = names[i]!;
      const type = Object.hasOwn(types, name) ? types[name] : undefined;
      const value = valueOf(cell, type, name);
      if (value === undefined) return;
      if (ownNames.includes(name)) Object.assign(record, { [name.slice(1)]: cell.text });
      else setAt(record.data, name, value);
    });
    return record;
  };
}

function checkHeader(names: readonly string[], types: CellTypes): void {
  for (const [i, name] of names.entries()) {
    if (name === '' || name.split('.').includes('')) {
      throw new CsvError(`has a header without a name in column ${i + 1}`);
    }
    if (name.startsWith('$') && !ownNames.includes(name)) {
      throw new CsvError(`has a header "${name}"; with "$" there are ${ownNames.join(', ')}`);
    }
    if (name.split('.').includes('__proto__')) {
      throw new CsvError(`has a header "${name}", and no field can be named "__proto__"`);
    }
    const other = names.find(
      (each, n) => n !== i && (each === name || each.startsWith(`${name}.`)),
    );
    if (other === name) throw new CsvError(`has the header "${name}" twice`);
    if (other !== undefined) throw new CsvError(`has a header "${name}" and "${other}" inside it`);
  }
  const unknown = Object.keys(types).find((name) => !names.includes(name));
  if (unknown !== undefined) throw new CsvError(`has no header "${unknown}", which --types names`);
}

function valueOf({ text, isQuoted }: Cell, type: CellType | undefined, name: string): unknown {
  if (text === '' && !isQuoted) return undefined;
  const fail = (wanted: string) => new CsvError(`"${text}" in ${name} is not ${wanted}`);
  switch (type) {
    case 'text':
      return text;
    case 'number': {
      const number = numberOf(text.trim());
      if (number !== undefined) return number;
      const isInexact = numberPattern.test(text.trim());
      throw fail(isInexact ? 'a number that can be stored exactly; import it as text' : 'a number');
    }
    case 'boolean':
      if (text === 'true' || text === 'false') return text === 'true';
      throw fail('true or false');
    case 'json':
      try {
        return JSON.parse(text) as unknown;
      } catch {
        throw fail('JSON');
      }
    case undefined:
      if (isQuoted) return text;
      if (text === 'true' || text === 'false') return text === 'true';
      return numberOf(text) ?? text;
  }
}

function setAt(data: Record<string, unknown>, path: string, value: unknown): void {
  const names = path.split('.');
  const last = names.pop()!;
  let at = data;
  for (const name of names) {
    // Not what every object inherits, such as toString.
    if (!Object.hasOwn(at, name)) at[name] = {};
    at = at[name] as Record<string, unknown>;
  }
  at[last] = value;
}

/** The cells of a record by header: nested fields are dotted; lists and mixed fields are JSON. */
export function cellsOf(
  record: Omit<CsvRecord, 'data'> & { data: object },
  mixed: ReadonlySet<string> = new Set(),
): Map<string, string> {
  const cells = new Map<string, string>();
  for (const name of ownNames) {
    const own = record[name.slice(1) as keyof CsvRecord];
    if (typeof own === 'string' && own !== '') cells.set(name, quoted(own));
  }
  const add = (value: unknown, path: string) => {
    if (value === null || value === undefined) return;
    if (mixed.has(path)) cells.set(path, quoted(JSON.stringify(value)));
    else if (typeof value !== 'object') cells.set(path, cellText(value));
    else if (Array.isArray(value) || Object.keys(value).length === 0 || hasOddName(value)) {
      cells.set(path, quoted(JSON.stringify(value)));
    } else for (const [name, each] of Object.entries(value)) add(each, `${path}.${name}`);
  };
  for (const [name, value] of Object.entries(record.data)) {
    if (isOddName(name)) {
      throw new CsvError(`The field "${name}" cannot be a header of CSV: export it as NDJSON`);
    }
    add(value, name);
  }
  return cells;
}

function hasOddName(value: object): boolean {
  return Object.keys(value).some(isOddName);
}

/** A dot would read as a path, and a header is read without the spaces around it. */
function isOddName(name: string): boolean {
  return name === '' || name.includes('.') || name.trim() !== name;
}

/** The header over these cells, and its fields that are an object in some records only. */
export function columnsOf(names: ReadonlySet<string>): { header: string[]; mixed: Set<string> } {
  const header = new Set<string>();
  const mixed = new Set<string>();
  for (const name of names) {
    const parts = name.split('.');
    const parent = parts.map((_, i) => parts.slice(0, i).join('.')).find((each) => names.has(each));
    if (parent !== undefined) mixed.add(parent);
    header.add(parent ?? name);
  }
  return { header: [...header], mixed };
}

function cellText(value: unknown): string {
  if (typeof value !== 'string') return String(value);
  const isAmbiguous = value === '' || value === 'true' || value === 'false';
  return isAmbiguous || numberPattern.test(value) ? `"${value}"` : quoted(value);
}

function quoted(text: string): string {
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** One line of a file with this header, which must have every field. */
export function csvLine(header: readonly string[], cells: ReadonlyMap<string, string>): string {
  for (const name of cells.keys()) {
    if (!header.includes(name)) {
      throw new CsvError(`The field "${name}" is new since the header was written: export again`);
    }
  }
  return `${header.map((name) => cells.get(name) ?? '').join(',')}\n`;
}

export function headerLine(header: readonly string[]): string {
  return `${header.map(quoted).join(',')}\n`;
}
