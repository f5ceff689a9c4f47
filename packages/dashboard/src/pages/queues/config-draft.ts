import type { Difference } from '../../parts/changes.js';

/** A queue config as JSON, edited by dotted paths such as `retry.max_attempts`. */
export type Json = Readonly<Record<string, unknown>>;

export interface ConfigField {
  path: string;
  label: string;
  kind: 'text' | 'number' | 'boolean' | 'choice';
  /** The values of a choice. */
  options?: readonly string[];
  /** What the server takes when the field is empty. */
  preset: string;
  hint?: string;
}

export interface ConfigGroup {
  title: string;
  fields: readonly ConfigField[];
}

const number = (path: string, label: string, preset: number, hint?: string): ConfigField => ({
  path,
  label,
  kind: 'number',
  preset: preset.toLocaleString('en'),
  ...(hint !== undefined && { hint }),
});

/** What the form offers; the JSON view has everything. */
export const configGroups: readonly ConfigGroup[] = [
  {
    title: 'Callback',
    fields: [
      {
        path: 'callback.protocol',
        label: 'Protocol',
        kind: 'choice',
        options: ['pull', 'http', 'grpc'],
        preset: 'http',
        hint: 'pull: workers claim the tasks; http and grpc: the queue calls you.',
      },
      { path: 'callback.url', label: 'URL', kind: 'text', preset: '' },
      number('callback.timeout_ms', 'Timeout (ms)', 30_000),
      { path: 'description', label: 'Description', kind: 'text', preset: 'none' },
    ],
  },
  {
    title: 'Retry',
    fields: [
      number('retry.max_attempts', 'Attempts', 15),
      number('retry.initial_backoff_ms', 'First backoff (ms)', 1_000),
      number('retry.max_backoff_ms', 'Longest backoff (ms)', 3_600_000),
      number('retry.multiplier', 'Multiplier', 2),
    ],
  },
  {
    title: 'Limits',
    fields: [
      number('limits.max_in_flight', 'In flight', 64),
      number('limits.dispatch_per_second', 'Dispatch per second', 0, '0 means no limit.'),
      number('limits.submit_per_second', 'Submit per second', 0, '0 means no limit.'),
      number('limits.max_pending', 'Pending', 0, '0 means no limit.'),
    ],
  },
  {
    title: 'Delivery',
    fields: [
      {
        path: 'ordering.mode',
        label: 'Ordering',
        kind: 'choice',
        options: ['none', 'group'],
        preset: 'none',
      },
      {
        path: 'circuit_breaker.enabled',
        label: 'Circuit breaker',
        kind: 'boolean',
        preset: 'on unless pull',
      },
      number('retention.succeeded_ms', 'Keep succeeded (ms)', 86_400_000),
      number('retention.dead_ms', 'Keep dead (ms)', 0, '0 means until purged.'),
    ],
  },
];

const readOnly = new Set(['name', 'paused', 'version', 'created_at', 'updated_at']);

/** The config without what the server sets. */
export function writable(config: Json): Json {
  return Object.fromEntries(Object.entries(config).filter(([name]) => !readOnly.has(name)));
}

export function valueAt(config: Json, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((value, name) => (value as Json | undefined)?.[name], config);
}

/** The config with one value set; undefined removes it, so that it gets its default. */
export function withValue(config: Json, path: string, value: unknown): Json {
  const [name = '', ...rest] = path.split('.');
  if (rest.length > 0) {
    const inner = withValue((config[name] ?? {}) as Json, rest.join('.'), value);
    return { ...config, [name]: inner };
  }
  const { [name]: _, ...others } = config;
  return value === undefined ? others : { ...others, [name]: value };
}

/** The values that differ between two configs, by path. */
export function differences(before: Json, after: Json): Difference[] {
  const [old, next] = [leaves(writable(before)), leaves(writable(after))];
  return [...new Set([...old.keys(), ...next.keys()])].flatMap((path) => {
    const [from, to] = [old.get(path), next.get(path)];
    return from === to ? [] : [{ path, before: from ?? 'not set', after: to ?? 'not set' }];
  });
}

function leaves(value: unknown, path = '', found = new Map<string, string>()): Map<string, string> {
  const isBranch = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isBranch) return found.set(path, JSON.stringify(value));
  for (const [name, child] of Object.entries(value)) {
    leaves(child, path === '' ? name : `${path}.${name}`, found);
  }
  return found;
}

/** Changes a field of the form. A pull queue has no address; the other protocols need one. */
export function withField(draft: Json, path: string, value: unknown): Json {
  const next = withValue(draft, path, value);
  if (path !== 'callback.protocol') return next;
  const url = value === 'pull' ? undefined : (valueAt(next, 'callback.url') ?? '');
  return withValue(next, 'callback.url', url);
}
