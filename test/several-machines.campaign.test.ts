// @module-tag campaign-process
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';
import { FakeClis } from '../packages/daemon/test/support/fake-clis.js';
import { startPostgres } from '../packages/queue/test/postgres/postgres-server.js';

/* Three daemons that pull from one queue on PostgreSQL with two servers; one of each is killed. */

/** MILLRACE_FLEET_TASKS=300 runs more. */
const taskCount = Number(process.env['MILLRACE_FLEET_TASKS'] ?? 30);
const token = 'token-of-the-fleet';
const patience = { timeout: 240_000, interval: 200 };

const programAt = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const ctl = programAt('../bin/ctl');
const queueProgram = programAt('../packages/queue/test/postgres/programs/serve-at.mjs');

interface Server {
  child: ChildProcess;
  url: URL;
}

function killAtEnd(child: ChildProcess): ChildProcess {
  onTestFinished(() => void (child.exitCode === null && child.kill('SIGKILL')));
  return child;
}

/** The address in the first line that a program prints. */
async function addressOf(child: ChildProcess): Promise<URL> {
  let [out, errors] = ['', ''];
  child.stderr!.on('data', (bytes: Buffer) => (errors += bytes.toString()));
  child.stdout!.on('data', (bytes: Buffer) => (out += bytes.toString()));
  return vi.waitFor(() => {
    const [, url] = /(http:\/\/127\.0\.0\.1:\d+)/.exec(out) ?? [];
    expect(url, errors).toBeDefined();
    return new URL(url!);
  }, patience);
}

async function startQueueServer(home: string, storage: string): Promise<Server> {
  mkdirSync(home);
  const tokens = [{ id: 't', principal: 'fleet', token, grants: [{ queue: '*', role: 'admin' }] }];
  writeFileSync(join(home, 'tokens.yaml'), JSON.stringify({ tokens }), { mode: 0o600 });
  const config = {
    listen: '127.0.0.1:0',
    metrics_listen: '127.0.0.1:0',
    data: join(home, 'data'),
    storage,
    tokens_file: join(home, 'tokens.yaml'),
  };
  writeFileSync(join(home, 'queue.yaml'), JSON.stringify(config));
  const env = { ...process.env, NODE_OPTIONS: '' };
  const child = killAtEnd(
    spawn(process.execPath, [queueProgram, join(home, 'queue.yaml')], { env }),
  );
  return { child, url: await addressOf(child) };
}

/** Passes connections to the first server that accepts them, in turn, as a load balancer does. */
async function startBalancer(servers: readonly Server[]): Promise<string> {
  let turn = 0;
  const balancer = createServer((socket) => {
    const order = [servers[turn % 2]!, servers[(turn + 1) % 2]!];
    turn++;
    const dial = ([server, ...others]: readonly Server[]) => {
      if (!server) return socket.destroy();
      const upstream = connect(Number(server.url.port), '127.0.0.1');
      upstream.on('error', () => (upstream.pending ? dial(others) : socket.destroy()));
      upstream.on('connect', () => {
        socket.on('error', () => upstream.destroy());
        socket.pipe(upstream).pipe(socket);
        upstream.on('close', () => socket.destroy());
      });
      return undefined;
    };
    dial(order);
  });
  balancer.listen(0, '127.0.0.1');
  await once(balancer, 'listening');
  onTestFinished(() => void balancer.close());
  return `http://127.0.0.1:${(balancer.address() as AddressInfo).port}`;
}

/** A daemon whose agents write their machine, process and prompt into a file. */
async function startMachine(
  name: string,
  parts: { home: string; queueUrl: string; runs: string; agent: string },
): Promise<Server> {
  const home = join(parts.home, name);
  const clis = new FakeClis(join(home, 'bin'));
  clis.add(
    'gemini',
    `require('node:fs').appendFileSync(${JSON.stringify(parts.runs)},
       '${name} ' + process.pid + ' ' + /task-\\d+/.exec(prompt)[0] + '\\n');
     ${parts.agent}`,
  );
  const flags = [
    '--listen=127.0.0.1:0',
    '--backends-local-url=http://127.0.0.1:9',
    '--queue-mode=pull',
    `--queue-url=${parts.queueUrl}`,
    `--queue-token=${token}`,
    '--queue-lease=10s',
    '--queue-max-agents=4',
  ];
  const env = {
    PATH: `${clis.path}:${process.env['PATH']}`,
    HOME: home,
    XDG_CONFIG_HOME: join(home, 'config'),
    XDG_DATA_HOME: join(home, 'share'),
  };
  const args = [ctl, 'daemon', 'serve', '--auth=none', ...flags];
  const child = killAtEnd(spawn(process.execPath, args, { env }));
  return { child, url: await addressOf(child) };
}

async function call(url: string, method: string, path: string, body?: object): Promise<any> {
  const answer = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  // A busy server sheds load.
  if (answer.status === 429) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    return call(url, method, path, body);
  }
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return JSON.parse(text);
}

test(
  'every task ends once when a machine and a queue server are killed',
  { timeout: 300_000 + taskCount * 5_000 },
  async () => {
    const home = mkdtempSync(join(tmpdir(), 'mr-fleet-'));
    onTestFinished(() => rmSync(home, { recursive: true, force: true, maxRetries: 20 }));
    const postgres = await startPostgres();
    onTestFinished(() => postgres.remove());
    const storage = await postgres.database('fleet');
    const servers = [
      await startQueueServer(join(home, 'queue-1'), storage),
      await startQueueServer(join(home, 'queue-2'), storage),
    ];
    const queueUrl = await startBalancer(servers);
    // The server that survives; requests of the test itself are not repeated.
    const queue = servers[1]!.url.origin;
    await call(queue, 'PUT', '/v1/admin/queues/agents/config', {
      callback: { protocol: 'pull' },
      retry: { max_attempts: 5, initial_backoff_ms: 50, max_backoff_ms: 100 },
    });

    const runs = join(home, 'runs');
    writeFileSync(runs, '');
    const runsNow = () =>
      readFileSync(runs, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => line.split(' ') as [machine: string, pid: string, task: string]);
    // Agents of the first machine never end, so it is killed in the middle of its work.
    const parts = { home, queueUrl, runs };
    const hang = { ...parts, agent: 'setInterval(() => {}, 1000);' };
    // Those of the others end when every machine has a task, so that two cannot do all of them.
    const allAtWork = join(home, 'all-at-work');
    const isOver = `require('node:fs').existsSync(${JSON.stringify(allAtWork)})`;
    const work = {
      ...parts,
      agent: `const timer = setInterval(() => ${isOver} && clearInterval(timer), 100);`,
    };
    onTestFinished(() => {
      for (const [machine, pid] of runsNow()) if (machine === 'a') kill(Number(pid));
    });
    const machines = [
      await startMachine('a', hang),
      await startMachine('b', work),
      await startMachine('c', work),
    ];
    const ids: string[] = [];
    const submit = async (number: number) => {
      const { id } = await call(queue, 'POST', '/v1/queues/agents/tasks', {
        handler_ref: 'agent',
        payload: Buffer.from(`do task-${number}`).toString('base64'),
        payload_content_type: 'text/plain',
      });
      ids.push(id as string);
    };
    for (const { url } of machines) {
      await call(url.origin, 'PUT', '/api/v1/backends/default', { id: 'gemini' });
    }
    for (let number = 0; number < taskCount; number++) await submit(number);

    const machinesAtWork = () => new Set(runsNow().map(([machine]) => machine));
    await vi.waitFor(
      () => expect([...machinesAtWork()].toSorted()).toEqual(['a', 'b', 'c']),
      patience,
    );
    writeFileSync(allAtWork, '');
    machines[0]!.child.kill('SIGKILL');
    servers[0]!.child.kill('SIGKILL');

    const countOf = async (status: string) => {
      const path = `/v1/queues/agents/tasks?limit=1000&status=${status}`;
      return ((await call(queue, 'GET', path)).tasks as unknown[]).length;
    };
    await vi.waitFor(
      async () => {
        const open = [await countOf('PENDING'), await countOf('IN_FLIGHT')];
        expect(open, `pending and in flight of ${taskCount}`).toEqual([0, 0]);
      },
      { timeout: 60_000 + taskCount * 4_000, interval: 1_000 },
    );
    for (const [number, id] of ids.entries()) {
      const { status, attempts } = await call(queue, 'GET', `/v1/tasks/${id}`);
      expect([id, status]).toEqual([id, 'SUCCEEDED']);
      const outcomes = (attempts as { outcome: string }[]).map(({ outcome }) => outcome);
      expect(outcomes.filter((outcome) => outcome === 'SUCCEEDED')).toHaveLength(1);
      // A machine that stood still for the length of a lease has lost its attempt too.
      const agents = runsNow().filter(([, , task]) => task === `task-${number}`);
      expect(agents.length, `agents of ${id}`).toBeLessThanOrEqual(outcomes.length);
    }
    const lost = runsNow().flatMap(([machine, , task]) => (machine === 'a' ? task : []));
    expect(lost.length).toBeGreaterThan(0);
    const done = runsNow().flatMap(([machine, , task]) => (machine === 'a' ? [] : task));
    for (const task of lost) expect(done).toContain(task);
  },
);

/** An agent outlives its daemon. */
function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended already.
  }
}
