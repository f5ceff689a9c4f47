import { UsageError } from '@millrace/kit/errors';
import { suggestion } from '@millrace/kit/nearest';

export interface AccumulatorText {
  name: string;
  op: string;
  field?: string;
}

const ops = ['count', 'sum', 'avg', 'min', 'max', 'count_distinct', 'first', 'last'];

/** Parses `oldest=max(age)`, `max(age)` or `count`. The default name is `max_age`, or `count`. */
export function parseAccumulator(text: string): AccumulatorText {
  const match = /^(?:([^=()\s]+)=)?([a-z_]+)(?:\(\s*([^()\s]*)\s*\))?$/.exec(text);
  const [, name, op, field] = match ?? [];
  if (op === undefined || !ops.includes(op)) {
    const hint = op === undefined ? '' : suggestion(op, ops);
    throw new UsageError(
      `"${text}" is not an aggregate. Write name=op(field), as in oldest=max(age); ops are ` +
        `${ops.join(', ')}${hint || '.'}`,
    );
  }
  if (!field && op !== 'count') {
    throw new UsageError(`"${text}" lacks a field. Write ${op}(field), as in ${op}(age).`);
  }
  if (!field) return { name: name ?? 'count', op };
  return { name: name ?? `${op}_${field}`, op, field };
}

/** A field, or an expression with the name of its values. */
export type GroupText =
  | string
  | { dateTrunc: { field: string; unit: string; zone?: string }; as: string }
  | { bucket: { field: string; edges: (number | string)[] }; as: string };

/** Parses `city,day=dateTrunc(at,day,Europe/Bern),size=bucket(n,0,10,100)`. */
export function parseGroups(text = ''): GroupText[] {
  const parts = text.match(/[^,()]+(?:\([^()]*\))?/g) ?? [];
  return parts.map((each) => {
    const part = each.trim();
    const match = /^(?:([^=()\s]+)=)?([A-Za-z]+)\(([^()]*)\)$/.exec(part);
    if (!match) return part;
    const [, name, op = '', given = ''] = match;
    const [field = '', ...rest] = given.split(',').map((one) => one.trim());
    const as = name ?? field;
    const [unit = '', zone] = rest;
    if (op === 'dateTrunc') return { dateTrunc: { field, unit, ...(zone && { zone }) }, as };
    if (op === 'bucket') {
      const edges = rest.map((edge) => (Number.isNaN(Number(edge)) ? edge : Number(edge)));
      return { bucket: { field, edges }, as };
    }
    throw new UsageError(
      `"${part}" is not an expression to group by. Write name=dateTrunc(field,unit,zone) or ` +
        `name=bucket(field,edge,edge)${suggestion(op, ['dateTrunc', 'bucket']) || '.'}`,
    );
  });
}
