import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@millrace/kit/clock';
import { expect, onTestFinished, test } from 'vitest';
import type { Entry } from '../../core/session.js';
import type { SessionSettings } from '../cli/settings.js';
import { TranscriptWatch } from './transcript.js';

test('transcript: one that is begun after the first look is found at the next one', async () => {
  const home = mkdtempSync(join(tmpdir(), 'mr-transcript-watch-'));
  onTestFinished(() => rmSync(home, { recursive: true }));
  let now = 1_000_000;
  const clock = { ...systemClock, monotonic: () => now };
  const places = { home, environment: {} };
  const settings = { values: { backends: { extra: [] } } } as unknown as SessionSettings;
  const watch = new TranscriptWatch({ clock, places, taken: () => new Set(), settings });
  const entry = (id: string) =>
    ({
      session: { id: 'a', backend_session_id: id, workdir: '/work' },
      handle: { cli: 'claude' },
    }) as unknown as Entry;
  const write = (project: string, id: string) => {
    const directory = join(home, '.claude', 'projects', project);
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, `${id}.jsonl`), '{}\n');
  };
  expect(await watch.inspect(entry('own'), { isOver: false })).toBeUndefined();
  write('-work', 'own');
  now += 300;
  expect(await watch.inspect(entry('own'), { isOver: false })).toMatchObject({ id: 'own' });
  // Elsewhere it is searched for every five seconds.
  write('-elsewhere', 'other');
  expect(await watch.inspect(entry('other'), { isOver: false })).toBeUndefined();
  now += 5_000;
  expect(await watch.inspect(entry('other'), { isOver: false })).toMatchObject({ id: 'other' });
});
