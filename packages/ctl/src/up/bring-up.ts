import { systemClock } from '@millrace/kit/clock';
import type { Address } from '@millrace/kit/config';
import { Refusal, systemCode } from '@millrace/kit/errors';
import { writePrivateFile } from '@millrace/kit/private-files';
import { humanDuration } from '@millrace/kit/units';
import { queueApi } from '../queue/api.js';
import { LogFile } from './log-file.js';
import { writeState } from './state-file.js';
import type { Tools } from '../base/tools.js';
import { setUpAgentsQueue } from './agents-queue.js';
import { eventsFor } from './banner.js';
import { exitText, startCtl } from './child.js';
import { ensureCredentials, type Credentials } from './credentials.js';
import { SupervisedPart, type PartEvent } from './supervised-part.js';
import { logWriter } from './log-lines.js';
import { queueAddressFile } from './own-files.js';
import { withUpFlags, partsOf, queueGrpcPort, type Part } from './parts.js';
import { Plan } from './plan.js';
import { loadSettings, type Settings, type UpOptions } from './settings.js';
import { startParts } from './supervisor.js';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

type Here = Pick<Tools, 'terminal' | 'lifecycle'>;

export interface BringUpOptions {
  readonly dataDir: string;
  readonly addresses: UpOptions;
  readonly stopped: Promise<void>;
}

/** The running servers. */
export interface BroughtUp {
  readonly supervised: readonly SupervisedPart[];
  /** False if it was stopped before all of them were running. */
  readonly hasStarted: boolean;
  /** Token of the daemon; undefined if it requires none. */
  readonly daemonToken: string | undefined;
  /** HTTP URL of a server. */
  url(name: Part['name']): string;
}

/**
 * Starts all servers with each other's addresses and tokens. If one fails to start, stops the
 * others.
 */
export async function bringUp(
  { dataDir, addresses, stopped }: BringUpOptions,
  here: Here,
): Promise<BroughtUp> {
  const { env } = here.terminal;
  const settings = loadSettings(dataDir, addresses, env);
  const credentials = await ensureCredentials(dataDir, settings, env);
  const daemonAddress = await withPort(settings.daemon.values.listen);
  const queueGrpc = await queueGrpcAddress(settings);
  const given = { dataDir, env, addresses, settings, credentials, daemonAddress, queueGrpc };
  const plan = new Plan(given);
  const supervised = keepParts(plan, dataDir, here);
  // The second Ctrl-C: leave no process behind.
  here.lifecycle.interrupted.addEventListener('abort', () =>
    supervised.forEach((part) => part.kill()),
  );
  const url = (name: Part['name']) => urlOf(supervised, name, 'http');
  const hasStarted = await startParts(stagesOf(supervised), stopped);
  const { daemonToken } = settings;
  if (!hasStarted) return { supervised, hasStarted, daemonToken, url };
  try {
    // With our process id, which shows when the file is stale, and where metrics and gRPC are.
    const metricsUrl = urlOf(supervised, 'queue', 'metrics');
    const grpcUrl = urlOf(supervised, 'queue', 'grpc');
    const lines = [url('queue'), process.pid, metricsUrl, grpcUrl];
    writePrivateFile(queueAddressFile(dataDir), `${lines.join('\n')}\n`);
    saveState(dataDir, supervised);
    await connect({ plan, settings, credentials, queueUrl: url('queue') }, here);
  } catch (error) {
    supervised.forEach((part) => part.kill());
    throw error;
  }
  return { supervised, hasStarted, daemonToken, url };
}

/**
 * Nobody asked for the default address, so a port that is in use is no reason to fail. A queue on
 * a free port gets a free port for gRPC too.
 */
async function queueGrpcAddress({ queue }: Settings): Promise<Address> {
  if (queue.grpc) return queue.grpc;
  const host = '127.0.0.1';
  return queue.listen.port === 0 ? { host, port: 0 } : orAnyPort({ host, port: queueGrpcPort });
}

function keepParts(plan: Plan, dataDir: string, { terminal }: Here): SupervisedPart[] {
  const toTerminal = logWriter(terminal);
  const file = new LogFile(dataDir);
  const onLog = (part: Part, line: string) => {
    file.append(part.name, line);
    toTerminal(part, line);
  };
  const report = eventWriter(terminal);
  const onEvent = (event: PartEvent) => {
    if (event.kind === 'back') saveState(dataDir, supervised);
    report(event);
  };
  const supervised: SupervisedPart[] = partsOf(dataDir).map(
    (part) =>
      new SupervisedPart(part, {
        clock: systemClock,
        launch: () =>
          startCtl(
            plan.commandFor(part.name, (name) => listenersOf(supervised, name)),
            {
              listeners: part.listeners,
              onLog: (line) => onLog(part, line),
              reword: (line) => withUpFlags(part, line),
            },
          ),
        onEvent,
      }),
  );
  return supervised;
}

/** For `ctl down` and `ctl restart`. */
function saveState(dataDir: string, supervised: readonly SupervisedPart[]): void {
  const pids = supervised.flatMap(({ part, pid }) => (pid === undefined ? [] : [[part.name, pid]]));
  writeState(dataDir, { pid: process.pid, parts: Object.fromEntries(pids) });
}

/** The daemon and the connectors get the addresses of the others. */
function stagesOf(supervised: readonly SupervisedPart[]): SupervisedPart[][] {
  const isFirst = ({ part }: SupervisedPart) => part.name === 'db' || part.name === 'queue';
  return [supervised.filter(isFirst), supervised.filter((part) => !isFirst(part))];
}

function listenersOf(supervised: readonly SupervisedPart[], name: Part['name']) {
  return supervised.find(({ part }) => part.name === name)?.listeners ?? [];
}

function urlOf(supervised: readonly SupervisedPart[], name: Part['name'], wanted: string): string {
  return listenersOf(supervised, name).find(({ listener }) => listener === wanted)?.url ?? '';
}

interface Connection {
  readonly plan: Plan;
  readonly settings: Settings;
  readonly credentials: Credentials;
  readonly queueUrl: string;
}

/** Connects the queue to the daemon. Failures are reported; the servers are useful without it. */
async function connect(
  { plan, settings, credentials, queueUrl }: Connection,
  { terminal, lifecycle }: Here,
): Promise<void> {
  const { ownerToken, signingSecret, isLetIn, notices } = credentials;
  const { err } = terminal;
  const notice = (text: string) => err.write(`${err.paint('warn', 'Notice:')} ${text}\n`);
  notices.forEach(notice);
  if (ownerToken === undefined || signingSecret === undefined || !isLetIn) return;
  const env = { MILLRACE_QUEUE_URL: queueUrl, MILLRACE_QUEUE_TOKEN: ownerToken };
  const needsToken = settings.daemonToken !== undefined;
  try {
    const api = queueApi({}, { terminal: { ...terminal, env }, lifecycle });
    const outcome = await setUpAgentsQueue(api, { url: plan.callbackUrl, needsToken });
    if (outcome !== 'foreign') return;
    notice('The queue "agents" has another callback than this daemon and was not changed.');
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    notice(`The queue "agents" could not be set up: ${error.detail}`);
  }
}

function eventWriter({ err, out, json }: Tools['terminal']): (event: PartEvent) => void {
  return (event) => {
    const { part } = event;
    if (event.kind === 'back') {
      if (json) out.write(eventsFor(event));
      else err.write(`${err.paint('ok', `The ${part.title} is running again.`)}\n`);
      return;
    }
    const { exit, againMs } = event;
    if (json) {
      const { code, signal } = exit;
      const event = { event: 'died', component: part.name, code, signal, again_ms: againMs };
      out.write(`${JSON.stringify(event)}\n`);
      return;
    }
    const when = `restarting in ${humanDuration(againMs)}`;
    err.write(`${err.paint('bad', `The ${part.title} exited:`)} ${exitText(exit)}; ${when}.\n`);
  };
}

/** The address with a free port, if its port is 0. */
async function withPort(address: Address): Promise<Address> {
  if (address.port !== 0) return address;
  const server = createServer();
  server.listen(0, address.host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return { host: address.host, port };
}

/** The address, or the same with port 0 if its port is in use. */
export async function orAnyPort(address: Address): Promise<Address> {
  const server = createServer();
  server.listen(address.port, address.host);
  try {
    await once(server, 'listening');
  } catch (error) {
    if (systemCode(error) !== 'EADDRINUSE') throw error;
    return { host: address.host, port: 0 };
  }
  server.close();
  await once(server, 'close');
  return address;
}
