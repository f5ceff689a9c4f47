import { cellText } from './fields.js';
import type { AggregateBody, AggregateOp, Condition, Group, Row } from './query.js';

export const aggregateOps: Readonly<Record<AggregateOp, string>> = {
  count: 'number of records',
  sum: 'sum of',
  avg: 'average of',
  min: 'minimum of',
  max: 'maximum of',
  count_distinct: 'distinct values of',
};

/** An aggregate as typed. */
export interface AggregateDraft {
  /** Field names with commas between. */
  groupBy: string;
  op: AggregateOp;
  field: string;
  order: 'value' | 'group';
  limit: string;
}

export const emptyAggregate: AggregateDraft = {
  groupBy: '',
  op: 'count',
  field: '',
  order: 'value',
  limit: '20',
};

/** Reads `group`, `op`, `of`, `order` and `top` of the address. */
export function aggregateIn(text: string): AggregateDraft {
  const params = new URLSearchParams(text);
  const op = params.get('op') ?? '';
  const limit = params.get('top') ?? '';
  return {
    groupBy: params.get('group') ?? '',
    op: Object.hasOwn(aggregateOps, op) ? (op as AggregateOp) : emptyAggregate.op,
    field: params.get('of') ?? '',
    order: params.get('order') === 'group' ? 'group' : 'value',
    limit: /^[1-9]\d{0,2}$/.test(limit) ? limit : emptyAggregate.limit,
  };
}

export function aggregateParams({ groupBy, op, field, order, limit }: AggregateDraft) {
  return {
    group: groupBy.trim(),
    op: op === emptyAggregate.op ? '' : op,
    of: op === 'count' ? '' : field.trim(),
    order: order === emptyAggregate.order ? '' : order,
    top: limit === emptyAggregate.limit ? '' : limit,
  };
}

/** Why the draft cannot run; undefined when it can. */
export function aggregateError({ op, field }: AggregateDraft): string | undefined {
  return op !== 'count' && field.trim() === '' ? 'Enter the field to compute with.' : undefined;
}

/** The name of the computed value; a space keeps it apart from fields. */
export const valueName = 'computed value';

const fieldsIn = (text: string): string[] =>
  text
    .split(',')
    .map((one) => one.trim())
    .filter(Boolean);

export function aggregateBody(draft: AggregateDraft, filter: Condition | undefined): AggregateBody {
  const { op, field, order, limit } = draft;
  return {
    ...(filter && { filter }),
    group_by: fieldsIn(draft.groupBy),
    aggregates: [{ name: valueName, op, ...(op !== 'count' && { field: field.trim() }) }],
    ...(order === 'value' && { order_by: [{ field: valueName, desc: true }] }),
    // One more than shown, which reports that there are more.
    limit: Number(limit) + 1,
    explain: true,
  };
}

export interface ShownGroup {
  label: string;
  count: number;
  value: unknown;
  /** Length of its bar; null when the value is not a number. */
  percent: number | null;
  /** The conditions that its records meet; undefined when they cannot be written. */
  rows: readonly Omit<Row, 'id'>[] | undefined;
}

export function shownGroups(groups: readonly Group[]): ShownGroup[] {
  const numbers = groups.map(({ values }) => values[valueName]).filter(isNumber);
  const top = Math.max(...numbers.map(Math.abs), 0);
  return groups.map(({ key, count, values }) => {
    const value = values[valueName];
    const entries = Object.entries(key);
    return {
      label:
        entries.length === 0 ? 'All records' : entries.map(([, one]) => keyText(one)).join(' · '),
      count,
      value,
      percent: isNumber(value) ? (top === 0 ? 0 : (100 * Math.abs(value)) / top) : null,
      rows: conditionsOf(entries),
    };
  });
}

const isNumber = (value: unknown): value is number => typeof value === 'number';

const keyText = (value: unknown): string =>
  value === null || value === undefined ? '(none)' : cellText(value) || '""';

function conditionsOf(entries: readonly [string, unknown][]): ShownGroup['rows'] {
  // A group without a value has records with null and without the field.
  if (entries.some(([, value]) => value === null || value === undefined)) return undefined;
  return entries.map(([field, value]) => ({ field, op: 'eq', value: JSON.stringify(value) }));
}
