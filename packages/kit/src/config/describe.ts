import type { NamedSetting } from './define.js';
import { expectation } from './expectation.js';
import { coreOf, defaultOf, defOf } from './schema.js';

/** What a form needs to know about a setting. */
export interface SettingDescription {
  description: string;
  /** As written; `null` when there is none. */
  default: unknown;
  /** To follow "must be": "a duration such as 15m". */
  expected: string;
  /** The values of a choice. */
  choices: readonly string[] | undefined;
}

export function describeSetting({ schema, notes }: NamedSetting): SettingDescription {
  const def = defOf(coreOf(schema));
  return {
    description: notes.description ?? '',
    default: defaultOf(schema) ?? null,
    expected: expectation(schema),
    choices: def.type === 'enum' ? Object.values(def.entries).map(String) : undefined,
  };
}
