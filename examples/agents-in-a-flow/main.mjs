// Three agents work on one prompt, each in its own branch; tests, a judge and a person decide what
// is merged. Kill this program and start it again: what is done stays done, no agent is paid twice.
import { execFile } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { connectQueue, defineTasks, PermanentError } from '@millrace/worker';
import { z } from 'zod';

const text = z.string();
const tasks = defineTasks({
  'feature.build': {
    payload: z.object({ repo: text, backend: text, prompt: text, choose: text, test: text }),
    result: z.object({ merged: text.nullable() }),
  },
});
const run = promisify(execFile);
const git = (cwd, ...args) => run('git', args, { cwd });

/** Runs the tests of a branch in a worktree that is removed afterwards. */
async function isTested(repo, branch, command) {
  const folder = join(mkdtempSync(join(tmpdir(), 'test-')), 'tree');
  await git(repo, 'worktree', 'add', '--detach', folder, branch);
  const test = run('sh', ['-c', command], { cwd: folder });
  const isGood = await test.then(() => true).catch(() => false);
  await git(repo, 'worktree', 'remove', '--force', folder);
  return isGood;
}

async function build({ payload: { repo, backend, prompt, choose, test }, step, task }) {
  const agent = (name, prompt) => {
    const branch = `${task.id.slice(-6).toLowerCase()}-${name}`;
    const where = { queue: 'agents', repo, backend, branch, worktree: true };
    return step.agent(name, { ...where, prompt });
  };
  const plan = await agent('plan', `Plan this, but change nothing.\n${prompt}`);
  const whole = `${prompt}\n\n${plan.output}`;
  const made = await Promise.all(['one', 'two', 'three'].map((name) => agent(name, whole)));
  const good = [];
  for (const { branch } of made) {
    if (await step.run(`test ${branch}`, () => isTested(repo, branch, test))) good.push(branch);
  }
  if (good.length === 0) throw new PermanentError('The tests of every branch fail.');
  const judge = await agent('judge', `${choose}\nAnswer with one of ${good.join(', ')}.`);
  const best = good.find((branch) => judge.output.trim().endsWith(branch.slice(7))) ?? good[0];
  console.log(`Approve ${best}: ctl queue signal ${task.id} approved true`);
  if (!(await step.signal('approved', { timeout: '7 days' }))) return { merged: null };
  await step.run('merge', async () => void (await git(repo, 'merge', '--no-edit', best)));
  return { merged: best };
}

const { QUEUE_URL: url, QUEUE_TOKEN: token } = process.env;
const queue = connectQueue({ url, token }, tasks);
queue.createWorker({ queue: 'features' }, { 'feature.build': build });
const payload = JSON.parse(process.argv[2]);
const options = { uniqueKey: payload.prompt };
const { result } = await queue.submitAndWait('features', 'feature.build', payload, options);
console.log(result.merged ? `Merged ${result.merged}.` : 'Nothing was merged.');
await queue.close();
