import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anyPorts, Up } from './support/up.js';

/* Every SDK does the same with the same scenarios, against one real server. */

const sdks = fileURLToPath(new URL('../sdks', import.meta.url));
const scenariosFile = join(sdks, 'conformance', 'scenarios.json');

interface Outcome {
  status: string;
  result?: unknown;
}

interface Scenario {
  name: string;
  expect?: Outcome[];
  expect_count?: number;
  expect_after_crash?: Outcome[];
}

const scenarios = JSON.parse(readFileSync(scenariosFile, 'utf8')) as Scenario[];
const has = (...command: string[]) => spawnSync(command[0]!, command.slice(1)).status === 0;

const runners = [
  {
    language: 'TypeScript',
    isThere: true,
    command: [process.execPath, 'conformance/typescript.mjs'],
    cwd: sdks,
  },
  {
    language: 'Python (needs python3, 3.11 or newer)',
    isThere: has('python3', '-c', 'import sys; sys.exit(sys.version_info < (3, 11))'),
    command: ['python3', '-B', 'python/conformance.py'],
    cwd: sdks,
  },
  {
    language: 'Go (needs go)',
    isThere: has('go', 'version'),
    command: ['go', 'run', './conformance'],
    cwd: join(sdks, 'go'),
  },
];

let up: Up;
let data: string;

beforeAll(async () => {
  data = mkdtempSync(join(tmpdir(), 'mr-sdks-'));
  up = await new Up(data, anyPorts, false).ready();
});

afterAll(async () => {
  await up?.stop();
  rmSync(data, { recursive: true, force: true });
});

test('the page lists every scenario', () => {
  const page = readFileSync(join(sdks, 'conformance', 'README.md'), 'utf8').split('## Results')[1]!;
  const listed = [...page.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name);
  expect(listed).toEqual(scenarios.map(({ name }) => name));
});

// They wait for leases and retries more than they work.
describe.concurrent.each(runners)('$language', ({ language, isThere, command, cwd }) => {
  const prefix = language.split(' ')[0]!.toLowerCase();
  const run = (more: Record<string, string> = {}) => {
    const [program, ...args] = [...command, scenariosFile];
    const token = readFileSync(join(data, 'queue.token'), 'utf8').trim();
    const given = { MILLRACE_URL: up.url('queue'), MILLRACE_TOKEN: token, MILLRACE_PREFIX: prefix };
    const env = { ...process.env, ...given, ...more };
    return new Promise<{ isOk: boolean; stdout: string; stderr: string }>((resolve) => {
      execFile(program!, args, { cwd, env }, (error, stdout, stderr) => {
        resolve({ isOk: error === null, stdout, stderr });
      });
    });
  };

  test.skipIf(!isThere)('does what the scenarios say', async () => {
    const { stdout, stderr } = await run();
    const lines = stdout.split('\n').filter(Boolean);
    const results = lines.map((line) => JSON.parse(line) as { name: string; tasks: Outcome[] });
    const wanted = scenarios.filter(({ expect_after_crash }) => !expect_after_crash);
    expect(
      results.map(({ name }) => name),
      stderr,
    ).toEqual(wanted.map(({ name }) => name));
    for (const { name, expect: tasks, expect_count: count } of wanted) {
      const found = results.find((each) => each.name === name)!.tasks;
      if (tasks) expect({ name, tasks: found }).toMatchObject({ name, tasks });
      if (count === undefined) continue;
      expect(found.map(({ status }) => status)).toEqual(Array(count).fill('SUCCEEDED'));
      const payloads = found.map(({ result }) => Number(result)).toSorted((a, b) => a - b);
      expect(payloads).toEqual(Array.from({ length: count }, (_, n) => n));
    }
  });

  const crashes = scenarios.filter(({ expect_after_crash }) => expect_after_crash);
  // The command line of one language shows what a server does with a killed worker.
  const options = language === 'TypeScript' ? {} : { tags: 'campaign-transport' };
  test.skipIf(!isThere).each(crashes)(
    'killed and started again: $name',
    options,
    async (scenario) => {
      const only = { MILLRACE_ONLY: scenario.name };
      expect((await run(only)).stdout).toBe('');
      expect(await run({ ...only, MILLRACE_RESUME: '1' })).toMatchObject({ isOk: true });
      const token = readFileSync(join(data, 'queue.token'), 'utf8').trim();
      const url = `${up.url('queue')}/v1/queues/${prefix}-${scenario.name}/tasks`;
      const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
      const { tasks } = (await answer.json()) as { tasks: { id: string }[] };
      const read = await fetch(`${up.url('queue')}/v1/tasks/${tasks[0]!.id}`, {
        headers: { authorization: `Bearer ${token}` },
      });
      expect([await read.json()]).toMatchObject(scenario.expect_after_crash!);
    },
  );
});
