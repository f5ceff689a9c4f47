/**
 * Looks for an order, one transaction after the other, in which everything that the transactions
 * saw could have been seen, and that ends in the state that is there now.
 */
export type Operation =
  | { kind: 'read'; collection: string; key: string }
  | { kind: 'select'; collection: string; atLeast: number }
  | { kind: 'insert'; collection: string; key: string; n: number; badge?: number }
  | { kind: 'update'; collection: string; key: string; n: number; badge?: number }
  | { kind: 'upsert'; collection: string; key: string; n: number; badge?: number }
  | { kind: 'delete'; collection: string; key: string };

export interface Observed {
  operation: Operation;
  saw: string;
}

export interface History {
  name: string;
  /** In real time; whoever ended before another began comes before it. */
  began: number;
  ended: number;
  observed: Observed[];
}

interface Row {
  n: number;
  badge?: number | undefined;
}
/** `collection/key` to its record. */
export type Model = ReadonlyMap<string, Row>;

/** The names in a possible order; undefined when there is none. */
export function serialOrder(
  start: Model,
  histories: readonly History[],
  end: Model,
): string[] | undefined {
  if (histories.length === 0) return textOf(start) === textOf(end) ? [] : undefined;
  for (const first of histories) {
    const others = histories.filter((each) => each !== first);
    if (others.some((other) => other.ended < first.began)) continue;
    const after = replay(start, first);
    const rest = after && serialOrder(after, others, end);
    if (rest) return [first.name, ...rest];
  }
  return undefined;
}

/** The state after a transaction, or undefined if it would have seen something else. */
function replay(start: Model, { observed }: History): Model | undefined {
  const rows = new Map(start);
  for (const { operation, saw } of observed) {
    if (!couldSee(perform(rows, operation, saw), saw)) return undefined;
  }
  // A unique value may pass from hand to hand inside a transaction, but in the end has one holder.
  const badges = [...rows].flatMap(([name, { badge }]) =>
    badge === undefined ? [] : [`${name.split('/')[0]!}/${badge}`],
  );
  return new Set(badges).size === badges.length ? rows : undefined;
}

function couldSee(possible: readonly string[], saw: string): boolean {
  return possible.includes(saw);
}

/** What an operation may answer in this state; carries it out as `saw` says. */
function perform(rows: Map<string, Row>, operation: Operation, saw: string): string[] {
  const { collection } = operation;
  if (operation.kind === 'select') return [select(rows, collection, operation.atLeast)];
  const name = `${collection}/${operation.key}`;
  const row = rows.get(name);
  if (operation.kind === 'read') return [row ? String(row.n) : 'none'];
  if (operation.kind === 'insert' && row) return ['DUPLICATE_KEY'];
  if ((operation.kind === 'update' || operation.kind === 'delete') && !row) {
    return ['KEY_NOT_FOUND'];
  }
  if (operation.kind === 'delete') {
    rows.delete(name);
    return ['ok'];
  }
  const { n, badge } = operation;
  const holder = [...rows].some(
    ([other, each]) => other !== name && other.startsWith(`${collection}/`) && each.badge === badge,
  );
  const isTaken = badge !== undefined && holder;
  if (saw === 'UNIQUE_VIOLATION') return isTaken ? [saw] : [];
  rows.set(name, { n, badge });
  return [operation.kind === 'upsert' ? (row ? 'updated' : 'created') : 'ok'];
}

export function select(rows: Model, collection: string, atLeast: number): string {
  return [...rows]
    .filter(([name, { n }]) => name.startsWith(`${collection}/`) && n >= atLeast)
    .map(([name, { n }]) => `${name.split('/')[1]}=${n}`)
    .sort()
    .join(' ');
}

function textOf(rows: Model): string {
  const text = [...rows].map(([name, { n, badge }]) => `${name}=${n}/${badge ?? ''}`);
  return text.sort().join(' ');
}
