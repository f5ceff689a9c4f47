import { systemClock } from '@millrace/kit/clock';
import { Refusal, systemCode } from '@millrace/kit/errors';
import { dataDirectory } from '../base/data-directory.js';
import { rest } from '../base/rest.js';
import type { Tools } from '../base/tools.js';
import { drainMs } from '../up/supervised-part.js';
import { partsOf, type Part } from '../up/parts.js';
import { isAlive } from '../base/is-alive.js';
import { readState, type UpState } from '../up/state-file.js';

export interface RunningFlags {
  data?: string;
}

const pollMs = 100;
/** `ctl up` kills a server that does not drain in time; its own exit takes a moment more. */
const patienceMs = 3 * drainMs + 10_000;

/** Stops a running `ctl up` gracefully and waits for its exit. */
export async function stopAll({ data }: RunningFlags, tools: Tools): Promise<void> {
  const { out, json, env } = tools.terminal;
  const dataDir = dataDirectory(data, env);
  const state = readState(dataDir);
  if (!state) {
    out.write(json ? '{"stopped":false}\n' : `Nothing is running on ${dataDir}.\n`);
    return;
  }
  terminate(state.pid, dataDir);
  await until(() => !isAlive(state.pid), tools, `process ${state.pid} is still running`);
  out.write(json ? '{"stopped":true}\n' : `Stopped process ${state.pid}.\n`);
}

/** Restarts servers of a running `ctl up` one after the other, each gracefully. */
export async function restart(
  only: string | undefined,
  { data }: RunningFlags,
  tools: Tools,
): Promise<void> {
  const { out, json, env } = tools.terminal;
  const dataDir = dataDirectory(data, env);
  const state = readState(dataDir);
  if (!state) {
    throw new Refusal('UNAVAILABLE', `Nothing is running on ${dataDir}. Start it with \`ctl up\`.`);
  }
  const chosen = partsOf(dataDir).filter(({ name }) => only === undefined || name === only);
  const restarted: Record<string, number> = {};
  for (const part of chosen) {
    restarted[part.name] = await restartPart(part, state, dataDir, tools);
    if (!json) out.write(`Restarted the ${part.title}, process ${restarted[part.name]}.\n`);
  }
  if (json) out.write(`${JSON.stringify({ restarted })}\n`);
}

/** `ctl up` starts a server again that was stopped by somebody else. */
async function restartPart(
  { name, title }: Part,
  { pid, parts: before }: UpState,
  dataDir: string,
  tools: Tools,
): Promise<number> {
  const old = before[name];
  if (old === undefined) throw new Refusal('UNAVAILABLE', `The ${title} is not running.`);
  terminate(old, dataDir);
  let fresh: number | undefined;
  await until(
    () => {
      if (!isAlive(pid)) throw new Refusal('UNAVAILABLE', '`ctl up` exited meanwhile.');
      fresh = readState(dataDir)?.parts[name];
      return fresh !== undefined && fresh !== old;
    },
    tools,
    `the ${title} is not running again`,
  );
  return fresh!;
}

function terminate(pid: number, dataDir: string): void {
  try {
    process.kill(pid, 'SIGTERM');
  } catch (error) {
    if (systemCode(error) !== 'EPERM') throw error;
    throw new Refusal(
      'FORBIDDEN',
      `Process ${pid} on ${dataDir} belongs to another user. Run this command as that user.`,
      { cause: error },
    );
  }
}

async function until(isDone: () => boolean, { lifecycle }: Tools, late: string): Promise<void> {
  const deadline = systemClock.monotonic() + patienceMs;
  while (!isDone()) {
    if (systemClock.monotonic() > deadline) {
      throw new Refusal('DEADLINE_EXCEEDED', `After ${patienceMs / 1000} seconds ${late}.`);
    }
    await rest(pollMs, lifecycle.interrupted);
  }
}
