// @module-tag campaign-docs
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startPostgres } from '../packages/queue/test/postgres/postgres-server.js';
import { fencesOf, root } from './support/markdown.js';

/* The programs of the pages "Coming from ...": ours always, theirs where the peer is installed. */

interface Peers {
  missing(kind: string): string | undefined;
  startBase(
    kind: string,
    home: string,
  ): Promise<{ connection: { port: number }; stop(): Promise<void> }>;
}
const peers = (await import(join(root, 'bench/queue/contestants.mjs'))) as Peers;

function programIn(page: string, language: string): string {
  const [fence] = fencesOf(`docs/how-to/coming-from-${page}.md`).filter(
    (each) => each.language === language,
  );
  return fence!.text;
}

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'mr-coming-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Runs a program as a module in a folder whose packages it uses. */
async function run(text: string, folder: string, env: Record<string, string> = {}) {
  const child = spawn(process.execPath, ['--input-type=module', '-e', text], {
    cwd: join(root, folder),
    env: { ...process.env, ...env },
  });
  let printed = '';
  child.stdout.on('data', (chunk) => (printed += String(chunk)));
  child.stderr.on('data', (chunk) => (printed += String(chunk)));
  const code = await new Promise((resolve) => child.on('exit', resolve));
  return { code, printed };
}

test.each(['bullmq', 'pg-boss', 'river', 'temporal'])('coming from %s: ours runs', async (page) => {
  const data = JSON.stringify(join(newDirectory(), 'mail'));
  const program = programIn(page, 'js').replace("'./data/mail'", data);
  expect(program).toContain(data);
  expect(await run(program, '.')).toEqual({ code: 0, printed: 'Mail to ada\n' });
});

test('coming from bullmq: the table of lines counts those of both programs', () => {
  const linesOf = (language: string) =>
    programIn('bullmq', language)
      .split('\n')
      .filter((line) => line.trim() !== '').length;
  const page = readFileSync(join(root, 'docs/how-to/coming-from-bullmq.md'), 'utf8');
  const row = /^\| the program +\| (\d+) .*\| (\d+) +\|/m.exec(page)!;
  expect(row.slice(1).map(Number)).toEqual([linesOf('js'), linesOf('mjs')]);
});

/** The environment in which the program of a peer finds its database. */
const bases: Record<string, () => Promise<Record<string, string>>> = {
  bullmq: async () => {
    const base = await peers.startBase('bullmq', newDirectory());
    onTestFinished(() => base.stop());
    return { REDIS_PORT: String(base.connection.port) };
  },
  'pg-boss': async () => {
    const server = await startPostgres();
    onTestFinished(() => server.remove());
    return { DATABASE_URL: await server.database('boss') };
  },
};

for (const [kind, start] of Object.entries(bases)) {
  const problem = peers.missing(kind);
  const name = `coming from ${kind}: theirs runs`;
  test.skipIf(problem)(problem ? `${name} (${problem})` : name, async () => {
    const ran = await run(programIn(kind, 'mjs'), 'bench', await start());
    expect(ran).toEqual({ code: 0, printed: 'Mail to ada\n' });
  });
}
