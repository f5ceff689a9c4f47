import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ifThere } from '@millrace/kit/errors';
import type { SessionConfigOption, SessionModeState } from '@agentclientprotocol/sdk';

/** Launch parameters of the host of one agent; written by the daemon before it starts the host. */
export interface HostLaunch {
  file: string;
  args: readonly string[];
  /** The workspace: files and terminals of the agent are confined to it. */
  cwd: string;
  socket: string;
  /** The agent's own session to continue. */
  resume: string | null;
  /** Prompt of a new session. */
  prompt: string | null;
  /** Prompt of a session that was continued. */
  resumePrompt: string | null;
  /** Model and mode to choose among those that the agent offers. */
  model: string | null;
  mode: string | null;
  /** Modes to choose instead of the agent's own first one, where it offers them. */
  modeInstead?: Readonly<Record<string, string>> | undefined;
}

/** A permission that the agent waits for. */
export interface PendingPermission {
  id: string;
  title: string;
  /** Kind of tool, such as `execute`; null when the agent does not say. */
  tool: string | null;
  body: string;
  options: { id: string; label: string; kind: string }[];
}

export interface Offer {
  id: string;
  name: string;
}

/** The host's state of its agent, from the protocol alone. */
export interface HostState {
  status: 'starting' | 'working' | 'waiting' | 'idle';
  /** Number of prompts sent to the agent. */
  turns: number;
  /** Why the last turn ended; null before the first end. */
  stopReason: string | null;
  /** The error of the last turn, and when it ended. */
  failure: { text: string; at: number } | null;
  /** The tool that it uses now. */
  doing: string | null;
  sessionId: string | null;
  agent: string | null;
  model: string | null;
  models: Offer[];
  /** The agent's own name of the setting that chooses the model. */
  modelConfigId: string | null;
  mode: string | null;
  modes: Offer[];
  contextTokens: number | null;
  contextWindow: number | null;
  permissions: PendingPermission[];
}

export const firstState: HostState = {
  status: 'starting',
  turns: 0,
  stopReason: null,
  failure: null,
  doing: null,
  sessionId: null,
  agent: null,
  model: null,
  models: [],
  modelConfigId: null,
  mode: null,
  modes: [],
  contextTokens: null,
  contextWindow: null,
  permissions: [],
};

/** A command of the daemon to the host; each is answered with one line. */
export type HostCommand =
  | { do: 'prompt'; text: string }
  | { do: 'cancel' }
  | { do: 'answer'; permission: string; option: string }
  /** Sends a line for every change of the state until the connection is closed. */
  | { do: 'watch' };

/** `taken`, or why not: `gone` for a permission that is no longer pending. */
export interface HostReply {
  reply: 'taken' | 'gone' | 'refused' | 'changed';
  detail?: string;
}

const launchName = 'acp.json';
const stateName = 'acp-state.json';

export function writeLaunch(directory: string, launch: HostLaunch): void {
  writeWhole(join(directory, launchName), launch);
}

export function readLaunch(directory: string): HostLaunch {
  return JSON.parse(readFileSync(join(directory, launchName), 'utf8')) as HostLaunch;
}

export function writeState(directory: string, state: HostState): void {
  writeWhole(join(directory, stateName), state);
}

/** Removes the state of an earlier host, which says nothing about the next one. */
export function clearState(directory: string): void {
  rmSync(join(directory, stateName), { force: true });
}

/** Undefined when no host has written one yet. */
export function readState(directory: string): HostState | undefined {
  const text = ifThere(() => readFileSync(join(directory, stateName), 'utf8'));
  return text === undefined ? undefined : (JSON.parse(text) as HostState);
}

/** Readers see the old or the new file, never half of one. */
function writeWhole(file: string, value: object): void {
  writeFileSync(`${file}.new`, JSON.stringify(value), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

type Offers = Pick<HostState, 'model' | 'models' | 'modelConfigId' | 'mode' | 'modes'>;

export function offersIn(opened: {
  modes?: SessionModeState | null;
  configOptions?: SessionConfigOption[] | null;
}): Partial<Offers> {
  const { modes, configOptions } = opened;
  return {
    ...(modes && {
      mode: modes.currentModeId,
      modes: modes.availableModes.map(({ id, name }) => ({ id, name })),
    }),
    ...modelsIn(configOptions ?? []),
  };
}

export function withConfig(state: HostState, options: SessionConfigOption[]): Partial<Offers> {
  const { model, models, modelConfigId } = { ...state, ...modelsIn(options) };
  return { model, models, modelConfigId };
}

function modelsIn(options: readonly SessionConfigOption[]): Partial<Offers> {
  const found = options.find(({ category, type }) => category === 'model' && type === 'select');
  if (found?.type !== 'select') return {};
  const models = found.options.flatMap((each): Offer[] =>
    'options' in each
      ? each.options.map(({ value, name }) => ({ id: value, name }))
      : [{ id: each.value, name: each.name }],
  );
  return { model: found.currentValue, models, modelConfigId: found.id };
}

/** The program that runs one agent over the Agent Client Protocol: run it with node. */
export const acpHostProgram = fileURLToPath(new URL('./acp-main.js', import.meta.url));
