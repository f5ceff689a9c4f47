import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { silentLog } from '@millrace/kit/log';
import { systemRandom } from '@millrace/kit/random';
import { AlertStore, type InboxNote } from '../../src/notify/alert-store.js';
import { Questions } from '../../src/questions/questions.js';
import type { Question } from '../../src/questions/question.js';
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

/** Puts a question of a session that is gone into the store of a daemon that is not running. */
export async function seedQuestion(home: string): Promise<Question> {
  const world = { clock: systemClock, random: systemRandom, log: silentLog };
  const { database, close } = await openStore(join(home, 'data', 'daemon'), world);
  const questions = await Questions.open({ ...world, database });
  const { question } = await questions.add('01K9ZQ5A2N4P6R8S0T1V3W5X7Y', {
    kind: 'permission',
    title: 'Do you want to proceed?',
    body: 'make test',
    tool: 'execute',
    options: [{ id: '1', label: 'Yes', kind: 'allow_once' }],
  });
  await close();
  return question;
}
