import { watch, type FSWatcher } from 'node:fs';
import { systemCode } from '@millrace/kit/errors';
import type { PendingPermission } from '../../acp-host/state.js';
import {
  openRequests,
  requestsDirectory,
  resetRequests,
  writeAnswer,
} from '../../permission-tool/request-files.js';
import { permissionFlags, permissionToolProgram } from '../../permission-tool/index.js';
import { sessionDirectory } from './session-files.js';

export interface PermissionRequestsParts {
  dataDir: string;
  /** Called when an agent has a new request. */
  onNews: () => void;
  /** The program of the tool; for tests. */
  program?: string | undefined;
}

const allowOption = 'allow';
const rejectOption = 'reject';
const options = [
  { id: allowOption, label: 'Allow', kind: 'allow_once' },
  { id: rejectOption, label: 'Reject', kind: 'reject_once' },
];

/** Permission requests of headless agents, made through the permission tool. */
export class PermissionRequests {
  readonly #parts: PermissionRequestsParts;
  readonly #watchers = new Map<string, FSWatcher>();

  constructor(parts: PermissionRequestsParts) {
    this.#parts = parts;
  }

  /** Prepares a start: the flags for permission requests. */
  prepare(id: string): string[] {
    this.release(id);
    resetRequests(this.#directory(id));
    const program = this.#parts.program ?? permissionToolProgram;
    return permissionFlags(program, sessionDirectory(this.#parts.dataDir, id));
  }

  /** The pending requests of the agent; reports new ones from now on. */
  pending(id: string): PendingPermission[] {
    this.#watch(id);
    return openRequests(this.#directory(id)).map((request) => ({ ...request, options }));
  }

  /** `gone` when the agent no longer waits for the answer. */
  answer(id: string, request: string, option: string, message?: string): 'taken' | 'gone' {
    const isAllowed = option === allowOption;
    const text = message ?? 'The permission was denied.';
    const answer = { isAllowed, message: isAllowed ? '' : text };
    return writeAnswer(this.#directory(id), request, answer) ? 'taken' : 'gone';
  }

  release(id: string): void {
    this.#watchers.get(id)?.close();
    this.#watchers.delete(id);
  }

  close(): void {
    for (const id of this.#watchers.keys()) this.release(id);
  }

  /** Without it, requests are still found when agents are inspected. */
  #watch(id: string): void {
    if (this.#watchers.has(id)) return;
    try {
      const watcher = watch(this.#directory(id), { persistent: false }, () => this.#parts.onNews());
      watcher.on('error', () => this.release(id));
      this.#watchers.set(id, watcher);
    } catch (error) {
      // An agent of an older version has no such folder, or the system watches no more of them.
      if (!['ENOENT', 'ENOSPC', 'EMFILE'].includes(systemCode(error))) throw error;
    }
  }

  #directory(id: string): string {
    return requestsDirectory(sessionDirectory(this.#parts.dataDir, id));
  }
}
