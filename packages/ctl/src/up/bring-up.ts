import { systemClock } from '@millrace/kit/clock';
import { Refusal } from '@millrace/kit/errors';
import { humanDuration } from '@millrace/kit/units';
import { queueApi } from '../queue/api.js';
import type { Tools } from '../tools.js';
import { setUpAgentsQueue } from './agents-queue.js';
import { eventsFor } from './banner.js';
import { exitText, startCtl } from './child.js';
import { withPort } from './free-port.js';
import { introduce, type Introductions } from './introductions.js';
import { KeptPart, type PartEvent } from './kept-part.js';
import { logWriter } from './log-lines.js';
import { queueAddressFile, writePrivate } from './own-files.js';
import { inWordsOfUp, parts, type Part } from './parts.js';
import { Plan } from './plan.js';
import { loadSettings, type Settings, type UpOptions } from './settings.js';
import { startParts } from './supervisor.js';

type Here = Pick<Tools, 'terminal' | 'lifecycle'>;

export interface UpAsk {
  readonly dataDir: string;
  readonly addresses: UpOptions;
  readonly stopped: Promise<void>;
}

/** The parts, under way. */
export interface BroughtUp {
  readonly kept: readonly KeptPart[];
  /** False when it was told to stop before all of them ran. */
  readonly hasStarted: boolean;
  /** What callers of the daemon must show; undefined when it asks for none. */
  readonly daemonToken: string | undefined;
  /** Where a part serves HTTP. */
  url(name: Part['name']): string;
}

/** Starts all parts so that they know one another. None is left behind when one cannot start. */
export async function bringUp(
  { dataDir, addresses, stopped }: UpAsk,
  here: Here,
): Promise<BroughtUp> {
  const { env } = here.terminal;
  const settings = loadSettings(dataDir, addresses, env);
  const introductions = await introduce(dataDir, settings, env);
  const daemonAddress = await withPort(settings.daemon.values.listen);
  const plan = new Plan({ dataDir, env, addresses, settings, introductions, daemonAddress });
  const kept = keepParts(plan, here);
  // The second Ctrl-C: nobody is left behind.
  here.lifecycle.interrupted.addEventListener('abort', () => kept.forEach((part) => part.kill()));
  const url = (name: Part['name']) => httpOf(kept, name);
  const hasStarted = await startParts(stagesOf(kept), stopped);
  const { daemonToken } = settings;
  if (!hasStarted) return { kept, hasStarted, daemonToken, url };
  try {
    // With our own id: an address that was left behind is then known for what it is.
    writePrivate(queueAddressFile(dataDir), `${url('queue')}\n${process.pid}\n`);
    await connect({ plan, settings, introductions, queueUrl: url('queue') }, here);
  } catch (error) {
    kept.forEach((part) => part.kill());
    throw error;
  }
  return { kept, hasStarted, daemonToken, url };
}

function keepParts(plan: Plan, { terminal }: Here): KeptPart[] {
  const onLog = logWriter(terminal);
  const onEvent = eventWriter(terminal);
  const kept: KeptPart[] = parts.map(
    (part) =>
      new KeptPart(part, {
        clock: systemClock,
        launch: () =>
          startCtl(
            plan.commandFor(part.name, (name) => listenersOf(kept, name)),
            {
              listeners: part.listeners,
              onLog: (line) => onLog(part, line),
              reword: (line) => inWordsOfUp(part, line),
            },
          ),
        onEvent,
      }),
  );
  return kept;
}

/** The daemon is told where the others are. */
function stagesOf(kept: readonly KeptPart[]): KeptPart[][] {
  const isDaemon = ({ part }: KeptPart) => part.name === 'daemon';
  return [kept.filter((part) => !isDaemon(part)), kept.filter(isDaemon)];
}

function listenersOf(kept: readonly KeptPart[], name: Part['name']) {
  return kept.find(({ part }) => part.name === name)?.listeners ?? [];
}

function httpOf(kept: readonly KeptPart[], name: Part['name']): string {
  return listenersOf(kept, name).find(({ listener }) => listener === 'http')?.url ?? '';
}

interface Connection {
  readonly plan: Plan;
  readonly settings: Settings;
  readonly introductions: Introductions;
  readonly queueUrl: string;
}

/** Leads the queue to the daemon. What cannot be had is told; the parts are of use without it. */
async function connect(
  { plan, settings, introductions, queueUrl }: Connection,
  { terminal, lifecycle }: Here,
): Promise<void> {
  const { ownerToken, signingSecret, isLetIn, notices } = introductions;
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
    notice('The queue "agents" calls something else than this daemon and was left as it is.');
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
      else err.write(`${err.paint('ok', `The ${part.title} is back.`)}\n`);
      return;
    }
    const { exit, againMs } = event;
    if (json) {
      const { code, signal } = exit;
      const told = { event: 'died', component: part.name, code, signal, again_ms: againMs };
      out.write(`${JSON.stringify(told)}\n`);
      return;
    }
    const when = `it is started again in ${humanDuration(againMs)}`;
    err.write(`${err.paint('bad', `The ${part.title} died:`)} ${exitText(exit)}; ${when}.\n`);
  };
}
