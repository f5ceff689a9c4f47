import { coreOf, defOf, notesOf, type Schema } from './schema.js';

/** The expected value, to follow "must be": "a whole number of at least 1". */
export function expectation(schema: Schema): string {
  const { expected } = notesOf(schema);
  if (expected !== undefined) return expected;
  const core = coreOf(schema);
  const def = defOf(core);
  if (def.type === 'number') return expectedNumber(core);
  if (def.type === 'string') return expectedText(core);
  if (def.type === 'enum') return oneOf(Object.values(def.entries));
  if (def.type === 'literal') return oneOf(def.values);
  if (def.type === 'array') return `a list${expectedLength(core, ['item', 'items'])}`;
  if (def.type === 'union') return [...new Set(def.options.map(expectation))].join(' or ');
  return others[def.type] ?? 'something else';
}

const others: Readonly<Record<string, string>> = {
  boolean: 'true or false',
  bigint: 'a whole number',
  object: 'a map',
  record: 'a map',
  tuple: 'a list',
  null: 'nothing',
};

interface CheckDef {
  check: string;
  value?: number;
  inclusive?: boolean;
  format?: string;
  minimum?: number;
  maximum?: number;
  length?: number;
  pattern?: RegExp;
  prefix?: string;
}

// A format such as z.int() or z.url() is a check in the schema itself.
function checksOf(schema: Schema): CheckDef[] {
  const def = defOf(schema);
  const own = 'check' in def ? [def as unknown as CheckDef] : [];
  const added = (def.checks ?? []).map(({ _zod: internals }) => internals.def);
  return [...own, ...(added as unknown as CheckDef[])];
}

function expectedNumber(schema: Schema): string {
  let kind = 'a number';
  let low: CheckDef | undefined;
  let high: CheckDef | undefined;
  let step = '';
  for (const check of checksOf(schema)) {
    if (check.check === 'number_format' && check.format !== 'float64') kind = 'a whole number';
    if (check.check === 'greater_than' && (!low || check.value! > low.value!)) low = check;
    if (check.check === 'less_than' && (!high || check.value! < high.value!)) high = check;
    if (check.check === 'multiple_of') step = ` that ${check.value} divides`;
  }
  return `${kind}${bounds(low, high)}${step}`;
}

function bounds(low: CheckDef | undefined, high: CheckDef | undefined): string {
  if (low?.inclusive && high?.inclusive) return ` from ${low.value} to ${high.value}`;
  const texts = [
    low && (low.inclusive ? `of at least ${low.value}` : `above ${low.value}`),
    high && (high.inclusive ? `of at most ${high.value}` : `below ${high.value}`),
  ].filter((text) => text !== undefined);
  return texts.length > 0 ? ` ${texts.join(' and ')}` : '';
}

const formats: Readonly<Record<string, string>> = {
  url: 'a URL',
  email: 'an e-mail address',
  datetime: 'an RFC 3339 time such as 2030-01-31T08:00:00Z',
  date: 'a date such as 2030-01-31',
  uuid: 'a UUID',
  ulid: 'a ULID',
  ipv4: 'an IPv4 address',
  ipv6: 'an IPv6 address',
  cidrv4: 'a network such as 10.0.0.0/8',
  cidrv6: 'a network such as fd00::/8',
  base64: 'base64',
};

function expectedText(schema: Schema): string {
  for (const check of checksOf(schema)) {
    if (check.check !== 'string_format') continue;
    const known = formats[check.format ?? ''];
    if (known) return known;
    if (check.format === 'starts_with') return `text that starts with "${check.prefix}"`;
    if (check.pattern) return `text that matches ${check.pattern.source}`;
  }
  return `text${expectedLength(schema, ['character', 'characters'])}`;
}

function expectedLength(schema: Schema, [one, many]: readonly [string, string]): string {
  let low = 0;
  let high = Infinity;
  for (const check of checksOf(schema)) {
    if (check.check === 'min_length') low = Math.max(low, check.minimum!);
    if (check.check === 'max_length') high = Math.min(high, check.maximum!);
    if (check.check === 'length_equals') low = high = check.length!;
  }
  const units = (count: number) => `${count} ${count === 1 ? one : many}`;
  if (low === high) return ` of ${units(low)}`;
  if (low === 1 && high === Infinity) return ' that is not empty';
  if (high === Infinity) return low > 0 ? ` of at least ${units(low)}` : '';
  return low > 0 ? ` of ${low} to ${units(high)}` : ` of at most ${units(high)}`;
}

function oneOf(values: readonly unknown[]): string {
  const texts = values.map((value) => (value === '' ? '""' : String(value)));
  if (texts.length === 1) return texts[0]!;
  return `one of ${texts.slice(0, -1).join(', ')} or ${texts.at(-1)}`;
}
