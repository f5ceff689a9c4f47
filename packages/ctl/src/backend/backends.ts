import type { DaemonSchema } from '@millrace/contract/daemon';
import { Refusal } from '@millrace/kit/errors';
import { suggestion } from '@millrace/kit/nearest';
import { daemonApi, type DaemonApi, type DaemonFlags } from '../daemon/api.js';
import type { Tools } from '../registry.js';

type Registry = DaemonSchema<'Registry'>;
type BackendRow = DaemonSchema<'BackendRow'>;
type Settings = DaemonSchema<'Settings'>;

export async function listBackends(flags: DaemonFlags, tools: Tools): Promise<void> {
  const api = await daemonApi(flags, tools);
  await showRegistry(api.call('GET', '/api/v1/backends'), tools);
}

export async function rescanBackends(flags: DaemonFlags, tools: Tools): Promise<void> {
  const api = await daemonApi(flags, tools);
  const { backends } = await showRegistry(api.call('POST', '/api/v1/backends/rescan'), tools);
  if (tools.terminal.json) return;
  const found = backends.filter(({ installed }) => installed).length;
  tools.terminal.out.write(`${found} of ${backends.length} are installed.\n`);
}

/** Loads what draws the table while the daemon is at work. */
async function showRegistry(asked: Promise<unknown>, tools: Tools): Promise<Registry> {
  const [answer, { registryScreen }] = await Promise.all([asked, import('./registry-screen.js')]);
  const registry = answer as Registry;
  show(tools, registry, registryScreen(registry, tools.terminal.out));
  return registry;
}

export async function setTier(
  id: string,
  tier: string,
  flags: DaemonFlags,
  tools: Tools,
): Promise<void> {
  const row = await update(id, { tier }, flags, tools);
  show(tools, row, `The tier of ${row.id} is ${row.tier} now.\n`);
}

export async function setEnabled(
  id: string,
  enabled: boolean,
  flags: DaemonFlags,
  tools: Tools,
): Promise<void> {
  const row = await update(id, { enabled }, flags, tools);
  show(tools, row, `${row.id} is ${row.enabled ? 'enabled' : 'disabled'} now.\n`);
}

export async function setDefault(id: string, flags: DaemonFlags, tools: Tools): Promise<void> {
  const api = await daemonApi(flags, tools);
  const registry = (await helpWithName(
    api,
    id,
    api.call('PUT', '/api/v1/backends/default', { id }),
  )) as Registry;
  show(tools, registry, `The default is ${id} now.\n`);
}

export async function setThinkingMode(
  mode: string,
  flags: DaemonFlags,
  tools: Tools,
): Promise<void> {
  const api = await daemonApi(flags, tools);
  const settings = (await api.call('PUT', '/api/v1/backends/thinking-mode', { mode })) as Settings;
  show(tools, settings, `The thinking mode is ${settings.internal_thinking_mode} now.\n`);
}

async function update(
  id: string,
  change: object,
  flags: DaemonFlags,
  tools: Tools,
): Promise<BackendRow> {
  const api = await daemonApi(flags, tools);
  const path = `/api/v1/backends/${encodeURIComponent(id)}`;
  return (await helpWithName(api, id, api.call('PATCH', path, change))) as BackendRow;
}

/** Adds "did you mean" when the daemon does not know the backend. */
async function helpWithName(api: DaemonApi, id: string, asked: Promise<unknown>): Promise<unknown> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'BACKEND_NOT_FOUND') throw error;
    const { backends } = (await api.call('GET', '/api/v1/backends')) as Registry;
    const ids = backends.map((row) => row.id);
    const meant = suggestion(id, ids) || `; there are ${ids.join(', ')}`;
    const detail = `no backend is called "${id}"${meant}`;
    throw new Refusal(error.code, /[?]$/.test(detail) ? detail : `${detail}.`);
  }
}

function show({ terminal: { out, json } }: Tools, answer: object, screen: string): void {
  out.write(json ? `${JSON.stringify(answer, null, 2)}\n` : screen);
}
