import type { DaemonSchema } from '@millrace/contract/daemon';
import { Refusal } from '@millrace/kit/errors';
import { suggestion } from '@millrace/kit/nearest';
import { daemonApi, type DaemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../base/tools.js';

type Registry = DaemonSchema<'Registry'>;
type BackendRow = DaemonSchema<'BackendRow'>;
type Settings = DaemonSchema<'Settings'>;

export async function listBackends(flags: DaemonFlags, tools: Tools): Promise<void> {
  const api = await daemonApi(flags, tools);
  await showRegistry(api.call('listBackends'), tools);
}

export async function rescanBackends(
  { acp, ...flags }: DaemonFlags & { acp?: boolean },
  tools: Tools,
): Promise<void> {
  const api = await daemonApi(flags, tools);
  const request = api.call('rescanBackends', acp ? { query: { acp: true } } : {});
  const { backends } = await showRegistry(request, tools);
  if (tools.terminal.json) return;
  const found = backends.filter(({ installed }) => installed).length;
  tools.terminal.out.write(`${found} of ${backends.length} are installed.\n`);
}

/** Loads the table renderer while the daemon answers. */
async function showRegistry(request: Promise<Registry>, tools: Tools): Promise<Registry> {
  const [registry, { registryScreen }] = await Promise.all([
    request,
    import('./registry-screen.js'),
  ]);
  show(tools, registry, registryScreen(registry, tools.terminal.out));
  return registry;
}

export async function setTier(
  id: string,
  tier: DaemonSchema<'AssignableTier'>,
  flags: DaemonFlags,
  tools: Tools,
): Promise<void> {
  const row = await update(id, { tier }, flags, tools);
  show(tools, row, `The tier of ${row.id} is now ${row.tier}.\n`);
}

export async function setEnabled(
  id: string,
  enabled: boolean,
  flags: DaemonFlags,
  tools: Tools,
): Promise<void> {
  const row = await update(id, { enabled }, flags, tools);
  show(tools, row, `${row.id} is now ${row.enabled ? 'enabled' : 'disabled'}.\n`);
}

export async function setDefault(id: string, flags: DaemonFlags, tools: Tools): Promise<void> {
  const api = await daemonApi(flags, tools);
  const registry = await helpWithName(api, id, api.call('setDefaultBackend', { body: { id } }));
  show(tools, registry, `The default is now ${id}.\n`);
}

export async function setThinkingMode(
  mode: Settings['internal_thinking_mode'],
  flags: DaemonFlags,
  tools: Tools,
): Promise<void> {
  const api = await daemonApi(flags, tools);
  const settings = await api.call('setThinkingMode', { body: { mode } });
  show(tools, settings, `The thinking mode is now ${settings.internal_thinking_mode}.\n`);
}

async function update(
  id: string,
  change: DaemonSchema<'UpdateBackendRequest'>,
  flags: DaemonFlags,
  tools: Tools,
): Promise<BackendRow> {
  const api = await daemonApi(flags, tools);
  return helpWithName(api, id, api.call('updateBackend', { path: { id }, body: change }));
}

/** Adds "did you mean" if the daemon does not know the backend. */
async function helpWithName<Result>(
  api: DaemonApi,
  id: string,
  request: Promise<Result>,
): Promise<Result> {
  try {
    return await request;
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'BACKEND_NOT_FOUND') throw error;
    const { backends } = await api.call('listBackends');
    const ids = backends.map((row) => row.id);
    const meant = suggestion(id, ids) || `. Known backends: ${ids.join(', ')}`;
    const detail = `no backend is called "${id}"${meant}`;
    throw new Refusal(error.code, /[?]$/.test(detail) ? detail : `${detail}.`);
  }
}

function show({ terminal: { out, json } }: Tools, answer: object, screen: string): void {
  out.write(json ? `${JSON.stringify(answer, null, 2)}\n` : screen);
}
