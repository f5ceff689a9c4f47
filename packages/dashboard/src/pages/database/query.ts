export interface Condition {
  field?: string;
  op?: string;
  value?: unknown;
  and?: readonly Condition[];
  or?: readonly Condition[];
}

export interface FindBody {
  filter?: Condition;
  order_by?: readonly { field: string; desc: boolean }[];
  limit?: number;
  cursor?: string;
  explain?: boolean;
  count_only?: boolean;
  /** Words to find; best hits first. */
  search?: string;
}

export type AggregateOp = 'count' | 'sum' | 'avg' | 'min' | 'max' | 'count_distinct';

export interface AggregateBody {
  filter?: Condition;
  group_by: readonly string[];
  aggregates: readonly { name: string; op: AggregateOp; field?: string }[];
  order_by?: readonly { field: string; desc: boolean }[];
  limit: number;
  explain: boolean;
}

/** One group of an aggregate. */
export interface Group {
  key: Readonly<Record<string, unknown>>;
  count: number;
  values: Readonly<Record<string, unknown>>;
}

/** One row of the query builder as typed. */
export interface Row {
  id: number;
  field: string;
  op: string;
  value: string;
}

export interface Draft {
  /** Words to find, in a collection with a search index. */
  search: string;
  rows: readonly Row[];
  match: 'all' | 'any';
  sortBy: string;
  descending: boolean;
  limit: string;
}

export const emptyDraft: Draft = {
  search: '',
  rows: [],
  match: 'all',
  sortBy: '',
  descending: false,
  limit: '1000',
};

/** The words of each operator. */
export const ops: Readonly<Record<string, string>> = {
  eq: 'is',
  ne: 'is not',
  gt: 'is greater than',
  gte: 'is at least',
  lt: 'is less than',
  lte: 'is at most',
  between: 'is between',
  in: 'is one of',
  nin: 'is not one of',
  contains: 'contains',
  prefix: 'starts with',
  regex: 'matches regex',
  exists: 'exists',
};

const lists = new Set(['in', 'nin', 'between']);
const texts = new Set(['prefix', 'regex']);

/** Example input for an operator. */
export function placeholderOf(op: string): string {
  if (op === 'between') return '10, 20';
  if (lists.has(op)) return 'red, blue';
  if (op === 'exists') return 'true';
  if (texts.has(op)) return 'text';
  return '18, true, "18", text';
}

export class DraftError extends Error {
  constructor(
    readonly rowId: number,
    message: string,
  ) {
    super(message);
  }
}

/** Builds the query of a draft. Throws a DraftError with the row that is invalid. */
export function queryOf({ search, rows, match, sortBy, descending }: Draft): FindBody {
  const conditions = rows.map(conditionOf);
  const [first, ...more] = conditions;
  const filter: Condition | undefined =
    more.length === 0 ? first : { [match === 'all' ? 'and' : 'or']: conditions };
  // The rank of the hits is their order.
  if (search.trim() !== '') return { ...(filter && { filter }), search: search.trim() };
  return {
    ...(filter && { filter }),
    ...(sortBy.trim() !== '' && { order_by: [{ field: sortBy.trim(), desc: descending }] }),
  };
}

function conditionOf({ id, field, op, value }: Row): Condition {
  if (field.trim() === '') throw new DraftError(id, 'Enter a field name, or remove the row.');
  return { field: field.trim(), op, value: valueOf(id, op, value) };
}

function valueOf(id: number, op: string, text: string): unknown {
  if (texts.has(op)) return text;
  if (op === 'exists') {
    if (text.trim() === 'true' || text.trim() === '') return true;
    if (text.trim() === 'false') return false;
    throw new DraftError(id, 'Enter true or false.');
  }
  if (!lists.has(op)) return readValue(text);
  const list = listOf(text);
  if (op === 'between' && list.length !== 2) {
    throw new DraftError(id, 'Enter two values separated by a comma.');
  }
  return list;
}

function listOf(text: string): unknown[] {
  const whole = readValue(text);
  if (Array.isArray(whole)) return whole;
  return text.trim() === '' ? [] : text.split(',').map((part) => readValue(part));
}

/** Parses JSON, so that 18 is a number and "18" a string; anything else is a string. */
export function readValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text.trim();
  }
}
