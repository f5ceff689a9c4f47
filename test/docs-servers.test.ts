import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { demandInstalled } from './support/installed.js';
import { exceptionOf } from './support/exceptions.js';
import { commandsOf, fencesIn, root } from './support/markdown.js';
import { isOfRepository, pagesOfServers, testOptionsOf } from './support/pages.js';
import { noTmux, Sandbox, type Outcome } from './support/sandbox.js';
import { patient } from './support/up.js';

/* Every `ctl` command of the pages that speak of a running Millrace, as a newcomer types them:
 * those of README and tutorials as processes, of the others those that need one. */

const detach = '\u0002d';
let sandbox: Sandbox;

beforeAll(async () => {
  demandInstalled();
  sandbox = await Sandbox.make();
  const [pipeline = ''] = fencesIn('docs/how-to/run-pipelines.md', 'Pipelines', 'yaml');
  const here = pipeline.replace('/home/ada/src/mill', sandbox.work);
  expect(here).not.toBe(pipeline);
  writeFileSync(join(sandbox.work, 'upload.yaml'), here);
  writeFileSync(join(sandbox.work, 'plan.yaml'), planHere());
  const [connectors = ''] = fencesIn('docs/how-to/react-to-changes.md', 'Connectors', 'yaml');
  writeFileSync(join(sandbox.work, 'connectors.yaml'), connectors);
});
afterAll(async () => {
  const { out } = await sandbox.runHere('millrace agent list --json');
  const { sessions } = JSON.parse(out) as { sessions: { id: string }[] };
  // Agents outlive the daemon, and must not outlive this test.
  for (const { id } of sessions) await sandbox.runHere(`millrace agent stop ${id}`);
  await sandbox.end();
});

/** The plan of the page with what the sandbox has: one backend, whose fake agent takes orders. */
function planHere(): string {
  const [plan = ''] = fencesIn('docs/how-to/run-a-plan.md', 'Write the plan', 'yaml');
  const changes: [string, string][] = [
    ['/home/ada/src/mill', sandbox.work],
    ['base: main\n', ''],
    ['Retry the upload once when the connection drops, with a test.', 'write upload.txt'],
    ['[claude, codex]', '[claude, claude]'],
    ['by: codex', 'by: claude'],
    ['npm test', 'test -f upload.txt'],
  ];
  return changes.reduce((text, [from, to]) => {
    expect(text).toContain(from);
    return text.replace(from, to);
  }, plan);
}

/** Waits until the task of the plan waits for this, or the plan has ended. */
async function untilPlan(waitsFor: string | null): Promise<void> {
  await vi.waitFor(async () => {
    const { out } = await sandbox.runHere('millrace agent plan-show uploads --json');
    const plan = JSON.parse(out) as { status: string; tasks: { waiting_for: string | null }[] };
    const isOver = plan.status !== 'running';
    expect([isOver, plan.tasks[0]!.waiting_for]).toEqual([waitsFor === null, waitsFor]);
    if (isOver) expect(plan).toMatchObject({ status: 'done', tasks: [{ merged: true }, {}] });
  }, patient);
}

let shownPlans = 0;

/** What has to be so before a command means anything. */
const preparations: Readonly<Record<string, () => Promise<unknown>>> = {
  'millrace git commit -m "Grease the wheel"': async () => {
    writeFileSync(join(sandbox.work, 'wheel.txt'), 'greased\n');
    return expectOk(await sandbox.run('git add wheel.txt'));
  },
  'millrace agent send fix-upload "Yes, go on."': () => untilIdle('fix-upload'),
  'millrace agent diff retry-docs --stat': async () => {
    const { worktree } = await untilAtRest('retry-docs');
    writeFileSync(join(worktree, 'RETRY.md'), 'It retries once.\n');
  },
  'millrace agent push retry-docs': async () => {
    const remote = join(sandbox.work, '..', 'remote.git');
    expectOk(await sandbox.run(`git init --quiet --bare ${remote}`));
    expectOk(await sandbox.run(`git remote add origin ${remote}`));
  },
  'millrace agent answer release 1': () => untilAsking('release'),
  'millrace agent plan-show uploads': () => untilPlan(shownPlans++ === 0 ? 'pick' : null),
  'millrace agent answer "uploads: upload (claude)" 1': () => untilPlan('merge'),
};

async function untilAtRest(agent: string): Promise<{ worktree: string }> {
  return vi.waitFor(async () => {
    const { out } = await sandbox.runHere(`millrace agent show ${agent} --json`);
    const session = JSON.parse(out) as { status: string; worktree: string };
    expect(['idle', 'done']).toContain(session.status);
    return session;
  }, patient);
}

async function untilIdle(agent: string): Promise<void> {
  await vi.waitFor(async () => {
    const { out } = await sandbox.runHere(`millrace agent show ${agent} --json`);
    expect(JSON.parse(out)).toMatchObject({ status: 'idle' });
  }, patient);
}

async function untilAsking(agent: string): Promise<void> {
  await vi.waitFor(async () => {
    const { out } = await sandbox.runHere(`millrace agent show ${agent} --json`);
    expect(JSON.parse(out)).toMatchObject({ status: 'waiting_for_input' });
  }, patient);
}

function expectOk({ code, out }: Outcome): void {
  expect(code, out).toBe(0);
}

async function run(command: string, isTutorial: boolean): Promise<void> {
  await preparations[command]?.();
  if (command === 'npm start' || command === 'millrace up') {
    const at = command === 'npm start' ? root : sandbox.work;
    await sandbox.serve('up', command, /^Ctrl-C stops everything/m, at);
  } else if (command === 'millrace connect --config connectors.yaml') {
    await sandbox.serve('connect', command, /"component":"connect"/);
  } else if (command.includes(' agent attach ')) {
    const typed = [{ after: /Done|claude|upload/, keys: detach }];
    expectOk(await sandbox.run(command, { typed }));
  } else if (command.includes(' logs -f ')) {
    const { out } = await sandbox.run(command, { until: /\S/ });
    expect(out).toContain('Fix the failing upload test');
  } else {
    const instead = exceptionOf(command)?.instead ?? command;
    expectOk(await (isTutorial ? sandbox.run(instead) : sandbox.runHere(instead)));
  }
}

/** Nobody can type into an agent that has no terminal. */
function needsTmux(command: string): boolean {
  return / agent (?:attach|send|answer) | logs -f /.test(command);
}

for (const page of pagesOfServers) describe(page, testOptionsOf(page), () => testPage(page));

function testPage(file: string): void {
  const commands = commandsOf(file).filter((command) => !isOfRepository(command));
  const isTutorial = file === 'README.md' || file.startsWith('docs/tutorials/');

  test('has commands', () => expect(commands.length).toBeGreaterThan(0));

  for (const command of commands) {
    const reason = needsTmux(command) ? noTmux : undefined;
    test.skipIf(reason)(`${command}${reason ? ` (${reason})` : ''}`, () =>
      run(command, isTutorial),
    );
  }
}
