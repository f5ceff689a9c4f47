// @module-tag campaign-docs
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { commandsOf } from './support/markdown.js';
import { Sandbox } from './support/sandbox.js';

/* The guide to point-in-time restore, with a time and a commit of this run. */

let sandbox: Sandbox;
let time = '';
beforeAll(async () => {
  sandbox = await Sandbox.make();
});
afterAll(() => sandbox.end());

async function run(command: string): Promise<string> {
  const { code, out } = await sandbox.runHere(command);
  expect(code, out).toBe(0);
  return out;
}

async function put(teeth: number): Promise<{ seq: string; updated_at: string }> {
  const out = await run(`millrace db put parts wheel '{"teeth":${teeth}}' --json`);
  return (JSON.parse(out) as { record: { seq: string; updated_at: string } }).record;
}

const serveQueue =
  'millrace queue serve --data ./queue-data --tokens-file tokens.yaml --log-archive ./queue-archive';

const steps: Readonly<Record<string, (command: string) => Promise<unknown>>> = {
  'millrace db serve --data ./data --log-archive ./archive': async (command) => {
    await sandbox.serve('leader', `${command} --log-archive-interval 100ms`, /"socket"/);
    expect(readdirSync(join(sandbox.work, 'archive'))).toContain('base-000000000000.backup');
    await put(47);
    time = (await put(48)).updated_at;
    await put(49);
    const isArchived = (name: string) => name.startsWith('log-') && name.includes('-000000000003.');
    await vi.waitUntil(() => readdirSync(join(sandbox.work, 'archive')).some(isArchived), 60_000);
  },
  'millrace db backup --base --out ./archive': run,
  'millrace db restore --from ./archive --to 2026-05-04T09:30:00Z --data ./restored': (command) =>
    run(command.replace('2026-05-04T09:30:00Z', time)),
  'millrace db restore --from ./archive --to 1200 --data ./before': (command) =>
    run(command.replace('1200', '3')),
  'millrace db verify --data ./restored': async (command) =>
    expect(await run(command)).toMatch(/commit 2\b/),
  [serveQueue]: async (command) => {
    const grant = '--principal root --grant *:admin --tokens-file tokens.yaml --json';
    const { token } = JSON.parse(await run(`millrace queue token new ${grant}`)) as {
      token: string;
    };
    Object.assign(sandbox.env, { MILLRACE_QUEUE_TOKEN: token });
    const listen = '--listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0';
    const fast = '--log-archive-interval 100ms';
    await sandbox.serve('queue', `${command} ${fast} ${listen}`, /"listener":"metrics"/);
    await run('millrace queue create letters --pull --data ./queue-data');
    const submitted = await run('millrace queue submit letters write --data ./queue-data --json');
    time = (JSON.parse(submitted) as { created_at: string }).created_at;
  },
  'millrace queue backup --base --out ./queue-archive --data ./queue-data': async (command) => {
    await run(command);
    await sandbox.stop('queue');
  },
  'millrace queue restore --from ./queue-archive --to 2026-05-04T09:30:00Z --data ./restored-queue':
    async (command) => {
      const late = new Date(Date.parse(time) + 60_000).toISOString();
      expect(await run(command.replace('2026-05-04T09:30:00Z', late))).toContain('verified it');
    },
};

test.each(commandsOf('docs/how-to/restore-to-a-point-in-time.md'))('%s', async (command) => {
  const step = steps[command];
  if (!step) throw new Error('Say here what there must be before this command, and after it.');
  await step(command);
});
