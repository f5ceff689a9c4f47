/** Each queue with its server, one process that submits and one that works. */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startDatabase } from '../queue-postgres/servers.mjs';
import { startBase } from '../queue/contestants.mjs';
import { cpuUsOf, logFile, startModule, startProgram, stop } from '../shared/processes.mjs';

const token = 'bench-token-0123456789';

/** `root`: the build of Millrace to run. */
export async function startContestant(kind, root, home, name = kind) {
  const base =
    kind === 'millrace' ? await startQueue(root, join(home, name)) : await startBase(kind, home);
  const submitter = await startSide(kind, root, base.connection);
  const worker = await startSide(kind, root, base.connection);
  const pids = [base.pid, submitter.pid, worker.pid];
  return {
    name,
    submitter,
    worker,
    pid: base.pid,
    /** CPU time of the server and of both processes with the SDK. */
    cpuUs: () => pids.reduce((sum, pid) => sum + cpuUsOf(pid), 0),
    stop: async () => {
      await submitter.stop();
      await worker.stop();
      await base.stop();
    },
  };
}

/** Two servers on one PostgreSQL: tasks are submitted to one, the worker claims from the other. */
export async function startTwoServers(root, home, name) {
  const database = await startDatabase(join(home, `${name}-database`));
  const servers = [];
  for (const each of ['first', 'second']) {
    servers.push(await startQueue(root, join(home, `${name}-${each}`), database.url));
  }
  const [first, second] = servers;
  const submitter = await startSide('millrace', root, first.connection);
  const worker = await startSide('millrace', root, second.connection);
  return {
    name,
    submitter,
    worker,
    stop: async () => {
      for (const each of [submitter, worker, first, second, database]) await each.stop();
    },
  };
}

async function startSide(kind, root, connection) {
  // Of that build, so that it runs with its own SDK.
  const file = join(root, 'bench', 'workers', 'side.mjs');
  const child = startModule(file, [kind, JSON.stringify(connection)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  let waiting;
  child.on('message', (message) => waiting(message));
  child.on('exit', () => waiting?.({ error: `a side of ${kind} ended` }));
  const answer = async () => {
    const { value, error } = await new Promise((resolve) => (waiting = resolve));
    if (error) throw new Error(error);
    return value;
  };
  await answer();
  return {
    pid: child.pid,
    ask: (command, params = {}) => {
      child.send({ command, ...params });
      return answer();
    },
    stop: () => stop(child),
  };
}

export async function startQueue(root, directory, store = 'embedded') {
  mkdirSync(directory, { recursive: true });
  const hash = createHash('sha256').update(token).digest('hex');
  const grants = [{ queue: '*', role: 'admin' }];
  const tokens = [{ id: 'bench', principal: 'bench', token_sha256: hash, grants }];
  writeFileSync(join(directory, 'tokens.yaml'), JSON.stringify({ tokens }), { mode: 0o600 });
  const any = '127.0.0.1:0';
  const settings = {
    listen: any,
    metrics_listen: any,
    data: './data',
    storage: store,
    tokens_file: 'tokens.yaml',
    // The peers shed no load, and shed submits would be sent again a second later.
    shed_target_ms: 0,
    max_connections: 2_000,
    max_inflight: 2_000,
  };
  const config = join(directory, 'queue.yaml');
  writeFileSync(config, JSON.stringify(settings));
  const server = startProgram(
    process.execPath,
    [join(root, 'bin', 'ctl'), 'queue', 'serve', '--config', config],
    { stdio: ['ignore', 'pipe', logFile(directory, 'queue-server')] },
  );
  const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  const { value: line, done } = await lines.next();
  if (done) throw new Error(`ctl queue serve did not start: see ${directory}/queue-server.log`);
  server.stdout.resume();
  const { url } = JSON.parse(line);
  const answer = await fetch(`${url}/v1/admin/queues/bench/config`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      callback: { protocol: 'pull' },
      limits: { max_in_flight: 1_000 },
      retention: { succeeded_ms: 1_000 },
    }),
  });
  if (!answer.ok) throw new Error(`The queue could not be created: ${await answer.text()}`);
  return { connection: { url, token }, pid: server.pid, stop: () => stop(server) };
}
