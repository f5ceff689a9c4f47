import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { AlertStore } from '../../src/notify/alert-store.js';
import type { InboxNote } from '../../src/notify/alert.js';
import { openStore } from '../../src/storage/store.js';

/** Puts notes into the inbox of a daemon that is not running, oldest first. */
export async function seedNotes(home: string, titles: readonly string[]): Promise<InboxNote[]> {
  const world = { clock: systemClock, random: systemRandom, log: silentLog };
  const { database, close } = await openStore(join(home, 'data', 'daemon'), world);
  const store = new AlertStore(database);
  const notes: InboxNote[] = [];
  for (const title of titles) {
    const now = systemClock.now();
    const note: InboxNote = {
      id: systemRandom.ulid(now),
      ts: new Date(now).toISOString(),
      kind: 'errored',
      severity: 'critical',
      title,
      body: '',
      agent_id: null,
      read: false,
    };
    notes.push(note);
    await store.add(note, { once: undefined, outbox: undefined });
  }
  await close();
  return notes;
}
