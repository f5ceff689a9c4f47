import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Refusal, systemCode } from '@millrace/kit/errors';
import { isAlive } from '../base/is-alive.js';
import { writePrivateFile } from '@millrace/kit/private-files';
import type { Part } from './parts.js';

/** Process ids of a running `ctl up` and of its servers. */
export interface UpState {
  readonly pid: number;
  readonly parts: Readonly<Partial<Record<Part['name'], number>>>;
}

const stateFile = (dataDir: string) => join(dataDir, 'up.json');

export function writeState(dataDir: string, state: UpState): void {
  writePrivateFile(stateFile(dataDir), `${JSON.stringify(state)}\n`);
}

export function removeState(dataDir: string): void {
  rmSync(stateFile(dataDir), { force: true });
}

/** Undefined if no `ctl up` is running on this data directory. */
export function readState(dataDir: string): UpState | undefined {
  let text: string;
  try {
    text = readFileSync(stateFile(dataDir), 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    if (systemCode(error) !== 'EACCES') throw error;
    throw new Refusal(
      'FORBIDDEN',
      `You may not read ${dataDir}, which belongs to another user. Run this command as that user, ` +
        'or name your own directory with --data.',
      { cause: error },
    );
  }
  const state = JSON.parse(text) as UpState;
  return isAlive(state.pid) ? state : undefined;
}
