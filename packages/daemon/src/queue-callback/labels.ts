import { hostname } from 'node:os';

export type Labels = Readonly<Record<string, string>>;

const systemNames: Readonly<Record<string, string>> = { darwin: 'macos', win32: 'windows' };

/** Labels that every daemon sets for its machine; settings override them. */
export function machineLabels(configured: Labels): Labels {
  const os = systemNames[process.platform] ?? process.platform;
  return { os, arch: process.arch, host: hostname(), ...configured };
}

const handler = 'agent';
const handlerValue = /^[A-Za-z0-9._/@-]+$/;

/**
 * The handlers of the tasks that a daemon claims: `agent` for any machine, `agent.gpu` for machines
 * with the label gpu, `agent.gpu:true` for those where it has this value.
 */
export function handlersOf(labels: Labels): string[] {
  const own = Object.entries(labels).flatMap(([key, value]) => [
    `${handler}.${key}`,
    ...(handlerValue.test(value) ? [`${handler}.${key}:${value}`] : []),
  ]);
  return [handler, ...own];
}

/** The task header that lists required labels: `os=linux,gpu=true`. */
export const labelsHeader = 'x-agent-labels';

/** The required labels; undefined when the text is not a list of `key=value`. */
export function parseLabels(text: string): Labels | undefined {
  const pairs = text.split(',').flatMap((part) => part.trim() || []);
  const entries = pairs.map((pair): [string, string] | undefined => {
    const at = pair.indexOf('=');
    return at > 0 ? [pair.slice(0, at).trim(), pair.slice(at + 1).trim()] : undefined;
  });
  if (entries.includes(undefined)) return undefined;
  return Object.fromEntries(entries as [string, string][]);
}

/** The required labels that a machine does not have, as text; empty when it has all. */
export function missingLabels(required: Labels, own: Labels): string {
  return Object.entries(required)
    .filter(([key, value]) => own[key] !== value)
    .map(([key, value]) => `${key}=${value}`)
    .join(', ');
}
