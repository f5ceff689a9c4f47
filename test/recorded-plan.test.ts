import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { agentTest, gitIn, newRepo } from '../packages/daemon/test/support/sessions.js';
import { ctl } from '../packages/ctl/test/run-ctl.js';
import { fencesOf } from './support/markdown.js';

const page = 'docs/explanation/a-recorded-plan.md';
const patience = { timeout: 120_000, interval: 200 };

/** Without ids, hashes and the blanks at the end of lines. */
function lines(text: string): string[] {
  const plain = text
    .replaceAll(/\b01[0-9A-Z]{4}(?:\.{3}[0-9A-Z]{4}|[0-9A-Z]{20})/g, 'ID')
    .replaceAll(/(uploads-(?:upload-1-claude|docs))-[0-9a-z]{6}/g, '$1-TAIL')
    .replaceAll(/\b[0-9a-f]{7}\b/g, 'HASH');
  return plain.split('\n').map((line) => line.trimEnd());
}

agentTest(
  `${page}: the plan of the page prints what the page shows`,
  async ({ newDaemon }) => {
    const daemon = await newDaemon();
    const [plan, race, waiting, answered, done, log] = fencesOf(page).map(({ text }) => text);
    const repo = newRepo(join(daemon.home, 'mill'));
    const file = join(daemon.home, 'plan.yaml');
    writeFileSync(file, plan!.replace('/home/ada/src/mill', repo));
    const env = { HOME: daemon.home, MILLRACE_URL: daemon.url };
    const agent = async (...args: string[]) => {
      const { code, out, err } = await ctl(['agent', ...args], env);
      expect([args, code, err]).toEqual([args, 0, err]);
      return lines(out);
    };
    const shows = (wanted: string | undefined) =>
      vi.waitFor(async () => {
        const shown = await agent('plan-show', 'uploads');
        expect(shown).toEqual(expect.arrayContaining(lines(wanted!.trim())));
      }, patience);
    await agent('plan', file, '--detach');
    await shows(race);
    const { plans } = await daemon.api.ok('GET', '/api/v1/plans');
    const { session_id: first } = plans[0].tasks[0].race[0];
    await agent('pick', 'uploads', 'upload', first);
    await shows(waiting);
    expect(await agent('answer', first, '1')).toEqual(lines(`${answered!.trim()}\n`));
    await shows(done);
    const graph = gitIn(repo, 'log', '--graph', '--oneline', 'main');
    expect(lines(graph)).toEqual(lines(log!.trim().replace('Start', 'first')));
  },
  300_000,
);
