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
