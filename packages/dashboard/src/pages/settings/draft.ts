import { ApiError } from '@millrace/client';
import type { DaemonSchema } from '@millrace/contract/daemon';
import { faultsOf, type Difference } from '../../parts/changes.js';
import { unknown } from '../../parts/format.js';

export type ConfigView = DaemonSchema<'ConfigView'>;
export type ConfigEntry = DaemonSchema<'ConfigEntry'>;

/** New values by key; `null` restores the default. */
export type Draft = Readonly<Record<string, unknown>>;

export type InputKind = 'switch' | 'number' | 'choice' | 'list' | 'text';

/** Which input suits a setting. Sizes and durations such as 150k and 15m are text. */
export function inputKind({ choices, default: standard, value }: ConfigEntry): InputKind {
  if (choices) return 'choice';
  const sample = standard ?? value;
  if (typeof sample === 'boolean') return 'switch';
  if (typeof sample === 'number') return 'number';
  return Array.isArray(sample) ? 'list' : 'text';
}

/** The editable settings by the first part of their key, in the order of the keys. */
export function editableGroups({ entries }: ConfigView): [group: string, ConfigEntry[]][] {
  const groups = new Map<string, ConfigEntry[]>();
  for (const entry of entries) {
    if (!entry.editable) continue;
    const group = entry.key.split('.')[0]!;
    groups.set(group, [...(groups.get(group) ?? []), entry]);
  }
  return [...groups];
}

/** The draft with one setting changed; a value as it is now is no change. */
export function withSetting(draft: Draft, entry: ConfigEntry, value: unknown): Draft {
  const { [entry.key]: _, ...others } = draft;
  const isSame = JSON.stringify(value) === JSON.stringify(entry.value);
  return isSame ? others : { ...others, [entry.key]: value };
}

export function changesBetween(before: ConfigView, after: ConfigView): Difference[] {
  const old = new Map(before.entries.map((entry) => [entry.key, valueText(entry)]));
  return after.entries
    .map((entry) => ({
      path: entry.key,
      before: old.get(entry.key) ?? unknown,
      after: valueText(entry),
    }))
    .filter((change) => change.before !== change.after);
}

export function valueText({ value, secret }: ConfigEntry): string {
  if (value === null || value === undefined) return secret ? 'not set' : unknown;
  if (value === true) return 'on';
  if (value === false) return 'off';
  return typeof value === 'string' ? value || '""' : JSON.stringify(value);
}

/** The errors of refused values by key; empty when it failed for another reason. */
export function errorsOf(error: unknown): Map<string, string> {
  if (!(error instanceof ApiError) || error.code !== 'INVALID_REQUEST') return new Map();
  const faults = faultsOf(error);
  if (faults.length === 0) return new Map([['', error.detail]]);
  return new Map(
    faults.map(({ pointer, message }) => {
      const key = pointer.replace(/^values\//, '');
      // The key is shown beside the message.
      return [key, message.startsWith(`${key} `) ? message.slice(key.length + 1) : message];
    }),
  );
}

/** Why a setting is shown and not edited here; undefined for those that are. */
export function whyFixed({ editable, needs_restart, source, origin }: ConfigEntry) {
  if (editable) return undefined;
  if (source === 'flag' || source === 'environment') return `set by ${origin ?? source}`;
  return needs_restart ? 'needs a restart' : 'the config file cannot be written';
}
