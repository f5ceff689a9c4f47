import { ApiError } from '@millrace/client';

/** Keys whose values belong to the user: nothing in them is renamed. */
type Opaque = 'headers' | 'payload' | 'result';

type CamelName<Name> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelName<Rest>>}`
  : Name;

/** A value of the wire as code has it: names in camelCase, at any depth. */
export type Camel<Value> = Value extends readonly (infer Item)[]
  ? Camel<Item>[]
  : Value extends object
    ? {
        [Name in keyof Value as CamelName<Name>]: Name extends Opaque
          ? Value[Name]
          : Camel<Value[Name]>;
      }
    : Value;

const opaque: ReadonlySet<string> = new Set<Opaque>(['headers', 'payload', 'result']);
const toCamel = new Map<string, string>([['timezone', 'timeZone']]);
const toSnake = new Map<string, string>([['timeZone', 'timezone']]);

function camelName(name: string): string {
  let known = toCamel.get(name);
  if (known === undefined) {
    known = name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
    toCamel.set(name, known);
  }
  return known;
}

function snakeName(name: string): string {
  let known = toSnake.get(name);
  if (known === undefined) {
    known = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    toSnake.set(name, known);
  }
  return known;
}

/** A value of the wire in the names of code. */
export function fromWire<Value>(value: Value): Camel<Value> {
  return renamed(value, camelName) as Camel<Value>;
}

/** Options in the names of the wire: without what is undefined, times as RFC 3339. */
export function toWire(value: object): Record<string, unknown> {
  return renamed(value, snakeName) as Record<string, unknown>;
}

export function timeText(time: Date): string {
  if (Number.isNaN(time.getTime())) throw new TypeError('The Date is invalid: it has no time.');
  return time.toISOString();
}

function renamed(value: unknown, nameOf: (name: string) => string): unknown {
  if (value instanceof Date) return timeText(value);
  if (Array.isArray(value)) return value.map((item) => renamed(item, nameOf));
  if (typeof value !== 'object' || value === null) return value;
  const result: Record<string, unknown> = {};
  for (const [name, inner] of Object.entries(value)) {
    if (inner === undefined) continue;
    result[nameOf(name)] = opaque.has(name) ? (inner as unknown) : renamed(inner, nameOf);
  }
  return result;
}

interface Fault {
  pointer: string;
  message: string;
}

const wireName = /(?<=^|[\s("'`])\/?[a-z][a-z0-9]*(?:[_/][a-z0-9_/]+)?(?=$|[\s,.;:)"'`])/g;

/** The refusal in the names of the call: `delayMs` for `/delay_ms`. */
export function inCallNames(error: unknown, request: object | undefined): unknown {
  if (!(error instanceof ApiError)) return error;
  const { errors, ...body } = (error.body ?? {}) as { errors?: readonly Fault[] };
  const names = new Set<string>();
  collectNames(request, names);
  // What is said of a field names fields; elsewhere a word may be the name of a queue.
  const isName = (word: string) => word.startsWith('/') || names.has(word) || errors !== undefined;
  const rename = (text: string) =>
    text.replaceAll(wireName, (word) => (isName(word) ? pathOf(word) : word));
  const faults = errors?.map(({ pointer, message }) => ({
    path: pathOf(pointer),
    message: rename(message),
  }));
  return new ApiError(
    error.status,
    { ...body, detail: rename(error.detail), ...(faults && { errors: faults }) },
    error.retryAfterMs,
  );
}

function pathOf(pointer: string): string {
  return pointer.replace(/^\//, '').split('/').map(camelName).join('.');
}

function collectNames(value: unknown, names: Set<string>): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, inner] of Object.entries(value)) {
    if (name.includes('_')) names.add(name);
    if (!opaque.has(name)) collectNames(inner, names);
  }
}
