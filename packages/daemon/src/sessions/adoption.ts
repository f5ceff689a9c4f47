import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '@millrace/kit/clock';
import type { Log } from '@millrace/kit/log';
import { isEnded, type Entry } from '../core/session.js';
import type { SessionRunner } from './runner.js';
import type { SessionStore } from './session-store.js';
import type { TalkingDriver } from './drivers/driver.js';
import { sessionsDirectory } from './drivers/session-files.js';
import { endFamily, listProcesses, startMarkOf } from './drivers/headless.js';

export interface AdoptionParts {
  store: SessionStore;
  clock: Clock;
  log: Log;
  dataDir: string;
  /** Its agents can be listed by name, whichever daemon started them. */
  tmux: TalkingDriver;
  runner: Pick<SessionRunner, 'isStarting' | 'feed'>;
}

/**
 * Finds the agents of the previous daemon. Agents whose start was interrupted are found by their
 * token, or marked as lost; processes under our name without a session are ended.
 */
export async function adopt(parts: AdoptionParts): Promise<void> {
  // Without sessions of an earlier daemon there is no need to list all processes.
  const hasFolders = foldersIn(sessionsDirectory(parts.dataDir)).length > 0;
  if (!hasFolders && parts.store.all().length === 0) return;
  const interrupted = parts.store.all().filter(({ session, handle }) => {
    const isLive = !isEnded(session) && handle.startMark === null;
    return isLive && !parts.runner.isStarting(session.id);
  });
  const wrappers = await findWrappers(parts.dataDir);
  for (const entry of interrupted) {
    await finishStart(parts, entry, wrappers.get(entry.session.id));
  }
  await reap(parts, wrappers);
}

interface Wrapper {
  pid: number;
  token: string;
}

/** The processes that run the script of a session of this very data directory. */
async function findWrappers(dataDir: string): Promise<Map<string, Wrapper>> {
  const found = new Map<string, Wrapper>();
  const home = sessionsDirectory(dataDir);
  for (const { pid, args } of await listProcesses()) {
    const parts = /^\S*sh (.*)\/([0-9A-Z]{26})\/run\.sh ([0-9a-f]{32})$/.exec(args.join(' '));
    if (parts?.[1] === home) found.set(parts[2]!, { pid, token: parts[3]! });
  }
  return found;
}

async function finishStart(
  { runner }: AdoptionParts,
  { session: { id }, handle }: Entry,
  wrapper: Wrapper | undefined,
): Promise<void> {
  const startMark = wrapper && (await startMarkOf(wrapper.pid));
  const isOurs = wrapper?.token === handle.token && startMark !== undefined;
  const found = isOurs ? { pid: wrapper.pid, startMark } : undefined;
  await runner.feed(id, { type: 'adopt', found });
}

/** Ends processes that are certainly ours and belong to no session. */
async function reap(
  { store, clock, log, dataDir, tmux }: AdoptionParts,
  wrappers: ReadonlyMap<string, Wrapper>,
): Promise<void> {
  const isWanted = (id: string, token?: string) => {
    const entry = store.get(id);
    if (!entry || isEnded(entry.session)) return false;
    return token === undefined || token === entry.handle.token;
  };
  for (const [id, { pid, token }] of wrappers) {
    if (isWanted(id, token)) continue;
    log.warn({ session: id, pid }, 'stopped agent without session');
    await endFamily(pid, clock);
  }
  for (const id of await tmux.agents()) {
    if (!isWanted(id)) await tmux.release(id);
  }
  for (const name of foldersIn(sessionsDirectory(dataDir))) {
    if (/^[0-9A-Z]{26}$/.test(name) && !store.get(name)) {
      rmSync(join(sessionsDirectory(dataDir), name), { recursive: true, force: true });
    }
  }
}

function foldersIn(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);
}
