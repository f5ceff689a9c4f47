import { readYamlFile, type YamlFile } from '@millrace/kit/config';
import { messageOf, Refusal, UsageError } from '@millrace/kit/errors';
import type { Filter } from '@millrace/db';
import { checkFilter } from '@millrace/db/client';
import { z } from 'zod';
import { parseConditions } from '../base/conditions.js';
import { positionsCollection } from './positions-collection.js';
import { checkTemplate, type Json } from './template.js';

export const changeOps = ['insert', 'update', 'delete'] as const;
export type ConnectorOp = (typeof changeOps)[number];

/** Which changes of a collection become tasks of a queue. */
export interface ConnectorConfig {
  readonly name: string;
  readonly collection: string;
  readonly on: readonly ConnectorOp[];
  readonly filter: Filter | undefined;
  readonly queue: string;
  readonly handler_ref: string;
  /** `after`, `before_after` or a template. */
  readonly payload: Json;
  /** `connectors.yaml:12`, for error messages. */
  readonly place: string;
}

const text = (pattern: RegExp, error: string) => z.string().regex(pattern, { error });

const schema = z.strictObject({
  connectors: z
    .array(
      z.strictObject({
        name: text(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, 'must be a name of letters, digits, _ . -'),
        collection: text(/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/, 'must be the name of a collection'),
        on: z
          .array(z.enum(changeOps))
          .min(1)
          .default([...changeOps]),
        filter: z.union([z.string(), z.record(z.string(), z.unknown())]).optional(),
        queue: text(/^[a-z0-9][a-z0-9._-]{0,127}$/i, 'must be the name of a queue'),
        handler_ref: text(
          /^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,255}$/,
          'must start with a letter or digit and continue with letters, digits and . _ : / @ -',
        ),
        payload: z.json().default('after'),
      }),
    )
    .min(1),
});

/** Reads `connectors.yaml`. Mistakes are a UsageError with file and line. */
export function readConnectors(file: string): ConnectorConfig[] {
  const read = readYamlFile(file, schema);
  const known = new Map<string, string>();
  return read.value.connectors.map((entry, i) => {
    const place = read.at('connectors', i);
    const before = known.get(entry.name);
    if (before !== undefined) {
      const at = read.at('connectors', i, 'name');
      throw new UsageError(`${at}: the name "${entry.name}" is already used at ${before}`);
    }
    known.set(entry.name, place);
    if (entry.collection === positionsCollection) {
      const at = read.at('connectors', i, 'collection');
      throw new UsageError(`${at}: connectors store their own positions in ${entry.collection}`);
    }
    checked(read, i, 'payload', () => checkTemplate(entry.payload));
    const filter = checked(read, i, 'filter', () => filterOf(entry.filter));
    return { ...entry, payload: entry.payload, filter, place };
  });
}

function filterOf(given: string | Record<string, unknown> | undefined): Filter | undefined {
  if (typeof given === 'string') return parseConditions(given.trim() === '' ? [] : [given]);
  try {
    checkFilter(given);
    return given;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new UsageError(`is not valid: ${error.detail}`);
  }
}

function checked<Result>(
  read: YamlFile<unknown>,
  index: number,
  member: string,
  check: () => Result,
): Result {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const at = read.at('connectors', index, member);
    throw new UsageError(`${at}: connectors[${index}].${member} ${messageOf(error)}`);
  }
}
